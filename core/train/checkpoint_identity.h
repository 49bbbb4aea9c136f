// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/files/manifest.h"

#include <cstdint>
#include <optional>
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

/// Where a training loop stands between two steps.
struct LoopState
{
    int64_t step = 0;       ///< steps that are done
    int64_t nextSample = 0; ///< the global sample index that the next step begins with
    std::optional<files::ScalerState> scaler;
};

} // namespace shardscope::train
