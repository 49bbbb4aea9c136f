// SPDX-License-Identifier: Apache-2.0
// Collectives on Gloo's point-to-point messages. Gloo's own all-gather runs in a ring with copies (58 ms for 64 MB and
// two ranks, against 24 ms for the same bytes sent directly), and its reduce-scatter is an all-reduce and a copy.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace shardscope::engine::gloo {

/// gathered_G is as many equal parts as there are ranks; this rank's lies there already, the others' come.
void allGather(c10d::Backend &group, const at::Tensor &gathered_G);
/// slice_S (+)= Σ over ranks of their part of full_G for this rank, added in the order of the ranks. fp32 or fp64, or
/// full_G bf16 and slice_S fp32; scratch_G is like full_G. slice_S may be this rank's part of full_G.
void reduceScatter(c10d::Backend &group, const at::Tensor &full_G, const at::Tensor &slice_S,
                   const at::Tensor &scratch_G, bool accumulate);

} // namespace shardscope::engine::gloo
