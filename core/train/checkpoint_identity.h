// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/files/manifest.h"
#include "core/shapes/model_shape.h"

#include <string>

namespace shardscope::train {

/// What a checkpoint says of the job beside its tensors.
struct JobIdentity
{
    std::string model;
    std::string configurationJson;
    files::DataPosition data; ///< nextSample is filled in when one is written
    files::ShapeNumbers shape;
};

/// All numbers that make a model of its tensors: two models whose tensors have the same shapes may differ in these. The
/// vocabulary's and the layers' numbers are in the tensors too, but say it in fewer words.
files::ShapeNumbers shapeNumbers(const shapes::ModelShape &shape);

/// Where a training loop stands between two steps.
struct LoopState
{
    int64_t step = 0;       ///< steps that are done
    int64_t nextSample = 0; ///< the global sample index that the next step begins with
    std::optional<files::ScalerState> scaler;
};

} // namespace shardscope::train
