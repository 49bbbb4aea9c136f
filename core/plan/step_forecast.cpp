// SPDX-License-Identifier: Apache-2.0
#include "core/plan/step_forecast.h"

#include "core/shapes/activations.h"
#include "core/shapes/unit_memory.h"

#include <algorithm>

namespace shardscope::plan {

namespace {

using shapes::UnitMemory;

shapes::WorkSize workOf(const shapes::ModelShape &shape, const config::RunConfiguration &configuration)
{
    static constexpr int kUsualCapability = 90;
    const bool onCpu = configuration.parallel.device == "cpu";
    const Precision compute = configuration.precision.compute;
    return {.sequences = configuration.train.microBatch,
            .positions = configuration.train.sequenceLength,
            .compute = compute,
            .device = onCpu ? DeviceKind::Cpu : DeviceKind::Cuda,
            .attention = onCpu ? shapes::AttentionKind::Cpu
                               : shapes::attentionKindOnCuda(kUsualCapability, compute, shape.headSize,
                                                             configuration.train.deterministic)};
}

bool trains(const shapes::UnitPlan &unit)
{
    return std::ranges::any_of(unit.buckets, [](const shapes::BucketPlan &bucket) { return !bucket.frozen; });
}

/// Whether a matrix of the model's own is trained: adapters' gradients are small.
bool trainsWeights(const shapes::UnitPlan &unit)
{
    return std::ranges::any_of(unit.buckets, [&](const shapes::BucketPlan &bucket) {
        return !bucket.frozen && std::ranges::any_of(bucket.parameters, [&](size_t index) {
            const shapes::ParameterShape &parameter = unit.shape.parameters[index];
            return parameter.sizes.size() == 2 && parameter.adapter == shapes::AdapterPart::None;
        });
    });
}

/// Goes through the units as model::Decoder does.
class MomentWalk
{
public:
    MomentWalk(const shapes::ModelPlan &plan, const shapes::ModelShape &shape,
               const config::RunConfiguration &configuration)
        : m_plan(plan)
        , m_shape(shape)
        , m_work(workOf(shape, configuration))
        , m_ledger(ledgerOf(plan, LedgerOptions::from(configuration)))
        , m_head(plan.units.size() - 1)
        , m_firstTrained(static_cast<size_t>(std::ranges::find_if(plan.units, trains) - plan.units.begin()))
    {
        for (size_t unit = 0; unit < plan.units.size(); ++unit)
            m_memory.push_back(memoryOf(unit));
    }

    StepForecast fullest()
    {
        forward();
        backward();
        m_fullest.other = m_work.device == DeviceKind::Cuda ? kProductsBytes : 0;
        m_fullest.hostBytes = m_ledger.hostBytes;
        return m_fullest;
    }

private:
    bool isBlock(size_t unit) const { return unit > 0 && unit < m_head; }
    UnitMemory memoryOf(size_t unit) const
    {
        if (unit == m_head)
            return headMemory(m_shape, m_work, trainsWeights(m_plan.units[m_shape.tiedEmbeddings ? 0 : unit]));
        if (unit == 0)
            return embeddingMemory(m_shape, m_work);
        return blockMemory(m_shape, m_work,
                           {.layer = static_cast<int64_t>(unit) - 1,
                            .recompute = m_plan.units[unit].settings.recompute,
                            .givesWeightGradients = trainsWeights(m_plan.units[unit])});
    }
    /// The last block's activations are needed at once, so they stay.
    bool offloads(size_t unit) const
    {
        return isBlock(unit) && unit + 1 < m_head && m_plan.units[unit].settings.activationOffload;
    }
    /// What goes to the host, the first block's input included.
    int64_t matrixBytes(size_t unit) const
    {
        const auto ofToken =
            shapes::blockActivationsPerToken(m_shape, m_work.compute, m_plan.units[unit].settings.recompute);
        return m_work.rows() * ofToken.matrixBytes;
    }
    /// On the device between the unit's forward and its backward.
    int64_t staysBytes(size_t unit) const
    {
        if (unit == 0) // the first block's input
            return m_firstTrained <= 1 && !offloads(1) ? m_memory[0].keptBytes : 0;
        if (!isBlock(unit) || unit < m_firstTrained)
            return 0;
        const int64_t inputBytes = unit == 1 ? streamBytes() : 0;
        return m_memory[unit].keptBytes - (offloads(unit) ? matrixBytes(unit) - inputBytes : 0);
    }
    /// Beside the next unit's forward. A unit that keeps nothing has the stream itself still to hand on.
    int64_t leftBytes(size_t unit) const
    {
        const bool isCounted = unit == 0
                                   ? m_firstTrained <= 1
                                   : unit >= m_firstTrained || m_plan.units[unit].settings.recompute != Recompute::Off;
        return m_memory[unit].leftBytes + (isCounted ? 0 : streamBytes());
    }
    /// A matrix of the hidden width: what units hand on.
    int64_t streamBytes() const { return m_memory[0].keptBytes; }

    void note(int64_t activations, int64_t temporary, int64_t gradients, int64_t gathered)
    {
        StepForecast moment{.states = m_ledger.peak, .activations = activations, .temporary = temporary};
        moment.states.gradients = gradients;
        moment.states.gathered = gathered;
        if (moment.total() > m_fullest.total())
            m_fullest = moment;
    }
    void forward()
    {
        int64_t stays = 0; // of the units before
        for (size_t unit = 0; unit <= m_head; ++unit) {
            const UnitMemory &own = m_memory[unit];
            const int64_t leaving = unit > 0 && offloads(unit - 1) ? matrixBytes(unit - 1) : 0;
            const int64_t left = unit > 0 ? leftBytes(unit - 1) : 0;
            note(stays + leaving + own.keptBytes, left + own.forwardBytes - own.keptBytes,
                 unit == m_head ? m_ledger.gradientsAtUnit[unit] : m_ledger.gradientsBefore, m_ledger.peak.gathered);
            stays += staysBytes(unit);
        }
    }
    void backward()
    {
        const int64_t stream = m_memory[m_head].leftBytes;
        int64_t stays = 0; // of the units before
        for (size_t unit = 0; unit < m_head; ++unit)
            stays += staysBytes(unit);
        const size_t last = std::max<size_t>(1, m_firstTrained);
        for (size_t unit = m_head; unit-- > 1 && unit >= m_firstTrained;) {
            stays -= staysBytes(unit);
            const UnitMemory &own = m_memory[unit];
            const bool fetchesAhead = unit - 1 >= m_firstTrained && offloads(unit - 1);
            const int64_t input = unit == 1 && offloads(unit) ? streamBytes() : 0;
            note(stays + input + (fetchesAhead ? matrixBytes(unit - 1) : 0) + own.keptBytes,
                 stream + own.backwardBytes - own.keptBytes, m_ledger.gradientsAtUnit[unit],
                 unit == last ? m_ledger.gatheredAtLastBlock : m_ledger.peak.gathered);
        }
        note(0, stream, m_ledger.gradientsAtUnit[0], m_ledger.gatheredAtLastBlock);
    }

    const shapes::ModelPlan &m_plan;
    const shapes::ModelShape &m_shape;
    const shapes::WorkSize m_work;
    const MemoryLedger m_ledger;
    const size_t m_head;
    const size_t m_firstTrained;
    std::vector<UnitMemory> m_memory; ///< by unit
    StepForecast m_fullest;
};

} // namespace

StepForecast forecastOf(const shapes::ModelPlan &plan, const shapes::ModelShape &shape,
                        const config::RunConfiguration &configuration)
{
    return MomentWalk(plan, shape, configuration).fullest();
}

} // namespace shardscope::plan
