// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/shapes/hf_json.h"
#include "core/shapes/model_shape.h"

namespace shardscope::shapes {

/// Fills in theta, scaling and the longest sequence of a shape whose configuredSequence is known, from
/// `rope_parameters {rope_type}` or the older `rope_theta` and `rope_scaling {type}`.
void readRope(const nlohmann::json &config, ModelShape &shape, std::vector<std::string> &problems,
              std::vector<std::string> &warnings);
/// `rope_parameters` of transformers 5.
nlohmann::json ropeParametersOf(const ModelShape &shape);

} // namespace shardscope::shapes
