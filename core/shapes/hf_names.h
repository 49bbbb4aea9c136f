// SPDX-License-Identifier: Apache-2.0
// Names of parameters here and in Hugging Face's files: "block.3.attention.q.weight" is
// "model.layers.3.self_attn.q_proj.weight" there. Shapes are the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardscope::shapes {

/// The name in Hugging Face's files; empty for a name that core/shapes doesn't give.
std::string hfNameOf(std::string_view name);
/// The name here; nullopt for a tensor that no decoder here has.
std::optional<std::string> nameOfHf(std::string_view hfName);

} // namespace shardscope::shapes
