// SPDX-License-Identifier: Apache-2.0
// The same decoder from LibTorch's plain operators under autograd: what the explicit backward is measured against.
#pragma once

#include "core/shapes/model_shape.h"

#include <ATen/core/Tensor.h>
#include <map>
#include <string>

namespace shardscope::test {

using NamedTensors = std::map<std::string, at::Tensor>;

/// Random weights of the shape, fp32: matrices normal with std 0.05, norms near 1 but not equal.
NamedTensors randomWeights(const shapes::ModelShape &shape, int64_t seed);

struct ReferenceResult
{
    double loss = 0; ///< lossScale × Σ of the tokens' losses
    NamedTensors gradients;
};
/// Forward and backward with autograd in the dtype of the weights. Negative targets are not counted.
ReferenceResult referenceStep(const shapes::ModelShape &shape, const NamedTensors &weights, const at::Tensor &tokens_BT,
                              const at::Tensor &targets_BT, double lossScale);

/// A decoder that takes milliseconds: `odd` gives sizes that no power of two divides.
shapes::ModelShape smallShape(bool odd, bool tied, bool grouped);
/// The same with biases everywhere, norms of q and k, and a window on every second layer.
shapes::ModelShape shapeWithEverything(bool odd);

} // namespace shardscope::test
