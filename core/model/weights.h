// SPDX-License-Identifier: Apache-2.0
// Products with neighbouring weights of a unit taken as one where they lie together in the bucket.
#pragma once

#include "core/engine/engine.h"

#include <ATen/core/Tensor.h>

namespace shardscope::model {

/// `count` matrices [O_i, I] of a unit from `first` on, applied to the same input.
struct WeightGroup
{
    engine::Engine &engine;
    observe::UnitIndex unit;
    size_t first;
    size_t count;

    /// y_MO = x_MI · [all weights]ᵀ, their outputs side by side.
    void forward(const at::Tensor &y_MO, const at::Tensor &x_MI) const;
    /// dx_MI = dy_MO · [all weights].
    void backwardInput(const at::Tensor &dx_MI, const at::Tensor &dy_MO) const;
    /// The weights' gradients from dy_MO and x_MI.
    void backwardWeight(const at::Tensor &dy_MO, const at::Tensor &x_MI) const;
};

} // namespace shardscope::model
