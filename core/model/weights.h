// SPDX-License-Identifier: Apache-2.0
// Products with neighbouring weights of a unit taken as one where they lie together in the bucket.
#pragma once

#include "core/engine/engine.h"
#include "core/model/adapters.h"

#include <ATen/core/Tensor.h>

namespace shardscope::model {

/// `count` matrices [O_i, I] of a unit from `first` on, applied to the same input; with as many biases from `firstBias`
/// on, unless that is kAbsent, and with the adapters that they have.
struct WeightGroup
{
    static constexpr size_t kAbsent = shapes::BlockParameters::kAbsent;

    engine::Engine &engine;
    observe::UnitIndex unit;
    size_t first;
    size_t count;
    size_t firstBias = kAbsent;
    const Adapters *adapters = nullptr;

    /// y_MO = x_MI · [all weights]ᵀ + [all biases], their outputs side by side; then what adapters add.
    void forward(const at::Tensor &y_MO, const at::Tensor &x_MI) const;
    /// dx_MI = dy_MO · [all weights].
    void backwardInput(const at::Tensor &dx_MI, const at::Tensor &dy_MO) const;
    /// The weights', biases' and adapters' gradients from dy_MO and x_MI.
    void backwardWeight(const at::Tensor &dy_MO, const at::Tensor &x_MI) const;

private:
    void forwardWeights(const at::Tensor &y_MO, const at::Tensor &x_MI) const;
    void backwardThroughWeights(const at::Tensor &dx_MI, const at::Tensor &dy_MO) const;
    template <typename F>
    void forEachAdapter(const at::Tensor &outputs, F f) const;
    at::Tensor bias(size_t index) const; ///< undefined where there are none
    at::Tensor allBiases() const;
};

} // namespace shardscope::model
