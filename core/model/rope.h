// SPDX-License-Identifier: Apache-2.0
// The angles of RoPE. Shape suffixes: T positions, H half a head.
#pragma once

#include "core/shapes/model_shape.h"

#include <ATen/core/Tensor.h>

namespace shardscope::model {

/// Angles a position of each pair of a head, [H] fp32 on the CPU, in the half-split layout (Su et al. 2021), scaled as
/// the model says for sequences of that many positions. The same formulas in the same precision as Hugging Face's
/// modeling_rope_utils.py.
at::Tensor ropeFrequencies(const shapes::ModelShape &shape, int64_t positions);

struct RopeTables
{
    at::Tensor cosine_TH; ///< fp32
    at::Tensor sine_TH;
};
RopeTables ropeTables(const shapes::ModelShape &shape, int64_t positions, at::Device device);

/// The tables of more positions begin with those of fewer: not so for `dynamic` beyond the model's own length.
bool ropeTablesGrow(const shapes::ModelShape &shape, int64_t positions);

} // namespace shardscope::model
