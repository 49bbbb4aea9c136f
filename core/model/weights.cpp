// SPDX-License-Identifier: Apache-2.0
#include "core/model/weights.h"

#include "core/model/ops.h"

#include <ATen/ATen.h>

namespace shardscope::model {

/// Calls f(index of a parameter, its columns of a tensor whose columns are all outputs).
template <typename F>
static void forEachWeight(const WeightGroup &group, const at::Tensor &outputs, F f)
{
    int64_t column = 0;
    for (size_t i = group.first; i < group.first + group.count; ++i) {
        const int64_t width = group.engine.parameter(group.unit, i).size(0);
        f(i, outputs.narrow(1, column, width));
        column += width;
    }
}

at::Tensor WeightGroup::bias(size_t index) const
{
    return firstBias == kAbsent ? at::Tensor() : engine.parameter(unit, firstBias + index - first);
}

at::Tensor WeightGroup::allBiases() const
{
    if (firstBias == kAbsent)
        return {};
    std::vector<at::Tensor> biases;
    for (size_t i = first; i < first + count; ++i)
        biases.push_back(bias(i));
    return count == 1 ? biases.front() : at::cat(biases);
}

/// Calls f(weight, its columns) for the weights that have an adapter.
template <typename F>
void WeightGroup::forEachAdapter(const at::Tensor &outputs, F f) const
{
    if (!adapters || adapters->empty())
        return;
    forEachWeight(*this, outputs, [&](size_t i, const at::Tensor &columns) {
        if (adapters->has(i))
            f(i, columns);
    });
}

void WeightGroup::forward(const at::Tensor &y_MO, const at::Tensor &x_MI) const
{
    forwardWeights(y_MO, x_MI);
    forEachAdapter(y_MO, [&](size_t i, const at::Tensor &columns) { adapters->forward(i, columns, x_MI); });
}

void WeightGroup::forwardWeights(const at::Tensor &y_MO, const at::Tensor &x_MI) const
{
    const at::Tensor whole = engine.fusedParameter(unit, first, count);
    if (whole.defined())
        return ops::linear(y_MO, x_MI, whole, allBiases());
    forEachWeight(*this, y_MO, [&](size_t i, const at::Tensor &columns) {
        ops::linear(columns, x_MI, engine.parameter(unit, i), bias(i));
    });
}

void WeightGroup::backwardInput(const at::Tensor &dx_MI, const at::Tensor &dy_MO) const
{
    backwardThroughWeights(dx_MI, dy_MO);
    forEachAdapter(dy_MO, [&](size_t i, const at::Tensor &columns) { adapters->backwardInput(i, dx_MI, columns); });
}

void WeightGroup::backwardThroughWeights(const at::Tensor &dx_MI, const at::Tensor &dy_MO) const
{
    const at::Tensor whole = engine.fusedParameter(unit, first, count);
    if (whole.defined())
        return ops::linearBackwardInput(dx_MI, dy_MO, whole);
    forEachWeight(*this, dy_MO, [&](size_t i, const at::Tensor &columns) {
        ops::linearBackwardInput(dx_MI, columns, engine.parameter(unit, i), i > first);
    });
}

void WeightGroup::backwardWeight(const at::Tensor &dy_MO, const at::Tensor &x_MI) const
{
    forEachAdapter(dy_MO, [&](size_t i, const at::Tensor &columns) { adapters->backwardWeight(i, columns, x_MI); });
    if (firstBias != kAbsent) {
        forEachWeight(*this, dy_MO, [&](size_t i, const at::Tensor &columns) {
            ops::biasBackward(engine.gradient(unit, firstBias + i - first), columns);
        });
    }
    if (engine.fusedParameter(unit, first, count).defined())
        return ops::linearBackwardWeight(engine.fusedGradient(unit, first, count), dy_MO, x_MI);
    forEachWeight(*this, dy_MO, [&](size_t i, const at::Tensor &columns) {
        ops::linearBackwardWeight(engine.gradient(unit, i), columns, x_MI);
    });
}

} // namespace shardscope::model
