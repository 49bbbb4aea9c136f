// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/config/check.h"
#include "core/config/run_configuration.h"
#include "core/pretrained/weight_folder.h"
#include "core/shapes/model_shape.h"

#include <optional>
#include <string>
#include <vector>

namespace shardscope::pretrained {

/// The model that a configuration names.
struct Model
{
    shapes::ModelShape shape;
    std::optional<WeightFolder> weights; ///< model.path's, where it has any; else the run begins with fresh weights
    std::vector<std::string> warnings;   ///< for the log
};

/// model.preset, or model.path's config.json and the headers of its weights.
Result<Model> openModel(const config::RunConfiguration &configuration);

} // namespace shardscope::pretrained
