// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters (LoRA) beside linear weights, forward and backward. Shape suffixes: M tokens, I and O a weight's in
// and out, R the adapters' rank.
#pragma once

#include "core/engine/engine.h"

#include <ATen/core/Tensor.h>
#include <map>
#include <vector>

namespace shardscope::model {

/// The adapters of one unit, by the index of the weight that each is for: y = x·Wᵀ + s·(x·Aᵀ)·Bᵀ. What lies between the
/// two products is computed again in backward: it costs little, and nothing is kept for it. Products are in the compute
/// dtype, gradients are fp32.
class Adapters
{
public:
    /// scale: s, which is alpha ÷ rank.
    Adapters(engine::Engine &engine, observe::UnitIndex unit, double scale);

    bool empty() const { return m_adapters.empty(); }
    bool has(size_t weight) const { return m_adapters.contains(weight); }
    /// The unit's parameters that belong to adapters of these weights.
    std::vector<size_t> of(const std::vector<size_t> &weights) const;

    /// y_MO += s·(x·Aᵀ)·Bᵀ; y_MO may be columns of a wider matrix.
    void forward(size_t weight, const at::Tensor &y_MO, const at::Tensor &x_MI) const;
    /// dx_MI += s·(dy·B)·A
    void backwardInput(size_t weight, const at::Tensor &dx_MI, const at::Tensor &dy_MO) const;
    /// The gradients of A and B: s·(dy·B)ᵀ·x and s·dyᵀ·(x·Aᵀ).
    void backwardWeight(size_t weight, const at::Tensor &dy_MO, const at::Tensor &x_MI) const;

private:
    struct Pair
    {
        size_t a = 0; ///< indices of the unit's parameters
        size_t b = 0;
    };
    at::Tensor scaledInside(const Pair &pair, const at::Tensor &x_MI) const;
    at::Tensor scaledGradient(const Pair &pair, const at::Tensor &dy_MO) const;

    engine::Engine &m_engine;
    observe::UnitIndex m_unit;
    double m_scale;
    std::map<size_t, Pair> m_adapters;
};

} // namespace shardscope::model
