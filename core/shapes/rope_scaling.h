// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace shardscope::shapes {

/// How the angles of RoPE are changed for sequences longer than those a model was first trained on. Names and meanings
/// are those of Hugging Face's `rope_parameters` (transformers, modeling_rope_utils.py); core/model computes with them.
struct RopeScaling
{
    enum class Kind { Default, Linear, Dynamic, Llama3, Yarn };

    Kind kind = Kind::Default;
    double factor = 1;               ///< all but Default
    int64_t originalMaxSequence = 0; ///< Llama3, Yarn
    double lowFrequencyFactor = 1;   ///< Llama3
    double highFrequencyFactor = 4;  ///< Llama3
    double betaFast = 32;            ///< Yarn
    double betaSlow = 1;             ///< Yarn
    bool truncate = true;            ///< Yarn: whole dimensions bound the ramp
    /// Yarn: multiplies cosines and sines, as the file says or follows from factor and mscale; 1 for the others.
    double attentionFactor = 1;

    bool operator==(const RopeScaling &) const = default;
};

} // namespace shardscope::shapes
