// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters (LoRA) as parameters of their own, in the unit of the linear weight that they are for.
#pragma once

#include "core/base/result.h"
#include "core/config/run_configuration.h"
#include "core/shapes/model_shape.h"

#include <string>
#include <vector>

namespace shardscope::shapes {

/// The units with the adapters that lora.rank and lora.targets ask for, behind the parameters that the units have: for
/// "block.3.attention.q.weight" [out, in] "block.3.attention.q.lora_a.weight" [rank, in] and "….lora_b.weight"
/// [out, rank]. The units as they are where lora.rank is 0.
///
/// A target is a glob over names, or over their last parts from a dot on, with or without ".weight", here or in Hugging
/// Face's files: "block.*.attention.q.weight", "attention.q", "q_proj". Of what it matches linear weights get adapters.
/// A message for one that matches none, with the names that there are.
Result<std::vector<UnitShape>> withAdapters(std::vector<UnitShape> units,
                                            const config::RunConfiguration &configuration);

/// lora.alpha, or what it is where that is left to be derived: lora.rank.
double adapterAlpha(const config::RunConfiguration &configuration);
/// alpha ÷ rank; 0 without adapters.
double adapterScale(const config::RunConfiguration &configuration);

} // namespace shardscope::shapes
