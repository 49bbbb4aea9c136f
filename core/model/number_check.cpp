// SPDX-License-Identifier: Apache-2.0
#include "core/model/number_check.h"

#include <ATen/ATen.h>
#include <cmath>
#include <ranges>

namespace shardscope::model {

void NumberCheck::look(const Place &place, const at::Tensor &result)
{
    Look look{place, m_microBatch, {}};
    if (result.defined() && result.numel() > 0) {
        const auto [smallest, largest] = at::aminmax(result);
        look.extremes = at::stack({smallest, largest}).to(at::kFloat);
    }
    m_looks.push_back(std::move(look));
}

/// A look for each parameter of a bucket, on ranks that have nothing of it too.
void NumberCheck::lookAtShare(const engine::BucketLayout &layout, const engine::ElementRange &held,
                              const at::Tensor &share_S, Place place)
{
    for (const engine::ParameterPlace &parameter : layout.parameters) {
        const engine::ElementRange own = engine::intersect(parameter.range(), held);
        place.parameter = parameter.shape.name;
        look(place, own.size() > 0 && share_S.defined() ? share_S.narrow(0, own.begin - held.begin, own.size())
                                                        : at::Tensor());
    }
}

void NumberCheck::lookAtParameters()
{
    const at::NoGradGuard noGrad;
    for (const engine::StateShard &shard : m_engine.stateShards()) {
        if (shard.state == "master")
            lookAtShare(*shard.layout, shard.held, shard.data_S.to(m_engine.computeType()),
                        {shard.unit, Phase::Forward, "parameter"});
    }
}

void NumberCheck::lookAtReducedGradients()
{
    const at::NoGradGuard noGrad;
    for (const engine::Bucket &bucket : m_engine.buckets() | std::views::reverse) {
        if (bucket.frozen)
            continue;
        at::Tensor gradient_S = bucket.gradient_S;
        if (bucket.gradientIsAway) {
            bucket.waitForGradient();
            gradient_S = bucket.gradientOnHost.tensor();
        }
        lookAtShare(bucket.layout, bucket.held, gradient_S,
                    {bucket.index, Phase::Backward,
                     toText(bucket.isSharded() ? Operation::ReduceScatter : Operation::AllReduce)});
    }
}

void NumberCheck::lookAtGradient(observe::UnitIndex unit, size_t parameter)
{
    const auto &parameters = m_engine.plan().units[static_cast<size_t>(unit)].shape.parameters;
    look({unit, Phase::Backward, "gradient", parameters[parameter].name}, m_engine.writtenGradient(unit, parameter));
}

void NumberCheck::lookAtGradients(observe::UnitIndex unit)
{
    const size_t count = m_engine.plan().units[static_cast<size_t>(unit)].shape.parameters.size();
    for (size_t parameter = 0; parameter < count; ++parameter)
        lookAtGradient(unit, parameter);
}

/// What a look saw, as a number that is summed over the ranks: 0 nothing, 1 an infinity, 2 a NaN.
static double verdictOf(const at::Tensor &extremes)
{
    if (!extremes.defined())
        return 0;
    const at::Tensor host = extremes.cpu();
    const float *values = host.const_data_ptr<float>();
    if (std::isnan(values[0]) || std::isnan(values[1]))
        return 2;
    return std::isinf(values[0]) || std::isinf(values[1]) ? 1 : 0;
}

std::optional<NumberFinding> NumberCheck::first()
{
    const engine::Communicator &communicator = m_engine.communicator();
    const auto ranks = static_cast<size_t>(communicator.worldSize());
    std::vector<double> found(2 * ranks); // of each rank: the number of its first one, from 1 on, and what it is
    double *own = &found[2 * static_cast<size_t>(communicator.rank())];
    for (size_t i = 0; i < m_looks.size() && own[0] == 0; ++i) {
        own[1] = verdictOf(m_looks[i].extremes);
        own[0] = own[1] > 0 ? static_cast<double>(i + 1) : 0;
    }
    found = m_engine.sumOverRanks(found);
    std::optional<size_t> first;
    for (size_t rank = 0; rank < ranks; ++rank) {
        const double number = found[2 * rank];
        if (number > 0 && (!first || number < found[2 * *first]))
            first = rank;
    }
    if (!first)
        return std::nullopt;
    const Look &look = m_looks[static_cast<size_t>(found[2 * *first]) - 1];
    return NumberFinding{static_cast<int>(*first),
                         look.place.unit,
                         look.place.phase,
                         std::string(look.place.operation),
                         std::string(look.place.parameter),
                         look.microBatch,
                         found[2 * *first + 1] == 2};
}

} // namespace shardscope::model
