// SPDX-License-Identifier: Apache-2.0
#include "core/model/adapters.h"

#include "core/model/ops.h"

#include <ATen/ATen.h>

namespace shardscope::model {

Adapters::Adapters(engine::Engine &engine, observe::UnitIndex unit, double scale)
    : m_engine(engine)
    , m_unit(unit)
    , m_scale(scale)
{
    const auto &parameters = engine.plan().units[static_cast<size_t>(unit)].shape.parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
        if (parameters[i].adapter == shapes::AdapterPart::A)
            m_adapters[parameters[i].adapts].a = i;
        else if (parameters[i].adapter == shapes::AdapterPart::B)
            m_adapters[parameters[i].adapts].b = i;
    }
}

std::vector<size_t> Adapters::of(const std::vector<size_t> &weights) const
{
    std::vector<size_t> parameters;
    for (const size_t weight : weights) {
        if (const auto found = m_adapters.find(weight); found != m_adapters.end())
            parameters.insert(parameters.end(), {found->second.a, found->second.b});
    }
    return parameters;
}

/// s·(x·Aᵀ) [M, R]
at::Tensor Adapters::scaledInside(const Pair &pair, const at::Tensor &x_MI) const
{
    return at::mm(x_MI, m_engine.parameter(m_unit, pair.a).t()).mul_(m_scale);
}

/// s·(dy·B) [M, R]
at::Tensor Adapters::scaledGradient(const Pair &pair, const at::Tensor &dy_MO) const
{
    return at::mm(dy_MO, m_engine.parameter(m_unit, pair.b)).mul_(m_scale);
}

void Adapters::forward(size_t weight, const at::Tensor &y_MO, const at::Tensor &x_MI) const
{
    const Pair &pair = m_adapters.at(weight);
    at::Tensor out = y_MO;
    at::addmm_out(out, out, scaledInside(pair, x_MI), m_engine.parameter(m_unit, pair.b).t());
}

void Adapters::backwardInput(size_t weight, const at::Tensor &dx_MI, const at::Tensor &dy_MO) const
{
    const Pair &pair = m_adapters.at(weight);
    ops::linearBackwardInput(dx_MI, scaledGradient(pair, dy_MO), m_engine.parameter(m_unit, pair.a), true);
}

void Adapters::backwardWeight(size_t weight, const at::Tensor &dy_MO, const at::Tensor &x_MI) const
{
    const Pair &pair = m_adapters.at(weight);
    ops::linearBackwardWeight(m_engine.gradient(m_unit, pair.b), dy_MO, scaledInside(pair, x_MI));
    ops::linearBackwardWeight(m_engine.gradient(m_unit, pair.a), scaledGradient(pair, dy_MO), x_MI);
}

} // namespace shardscope::model
