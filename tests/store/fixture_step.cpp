// SPDX-License-Identifier: Apache-2.0
#include "fixture_step.h"

#include <algorithm>
#include <array>

namespace shardscope::test {
namespace {

constexpr int64_t kNoUnit = 0;
constexpr int64_t kKib = 1024;
constexpr int64_t kIdsAStep = 1000; ///< ids of a step begin at number × this + 1

constexpr int64_t kInputUs = 300, kGatherUs = 200, kForwardUs = 400, kBackwardUs = 800, kReduceUs = 300,
                  kAllReduceUs = 100, kOptimizerUs = 500, kCopyUs = 50, kLateUs = 10;
constexpr int64_t kShardBytes = 128 * kKib;

std::string spanName(Operation operation)
{
    switch (operation) {
    case Operation::AllGather:
        return "ncclDevKernel_AllGather_RING_LL";
    case Operation::ReduceScatter:
        return "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL";
    default:
        return "ncclDevKernel_AllReduce_Sum_f64_RING_LL";
    }
}

std::optional<int64_t> idOrNone(int64_t id)
{
    return id == kNoUnit ? std::nullopt : std::optional<int64_t>(id);
}

} // namespace

FixtureStep::FixtureStep(store::Writer &writer, const FixtureOptions &options, int64_t rank, int64_t number)
    : m_writer(writer)
    , m_options(options)
    , m_rank(rank)
    , m_number(number)
    , m_nextSpan((number - options.firstStep) * kIdsAStep + 1)
    , m_nextCollective(m_nextSpan)
    , m_nextMemory(m_nextSpan)
{
}

int64_t FixtureStep::stepId() const
{
    return m_number - m_options.firstStep + 1;
}

int64_t FixtureStep::stepStartNs() const
{
    // The first step begins 1 ms after the origin; later attempts a second later each.
    return m_options.originNs + 1'000'000 + (m_options.attempt - 1) * 1'000'000'000 +
           (m_number - m_options.firstStep) * m_options.stepNs;
}

void FixtureStep::write()
{
    span(kMainThread, "input", SpanCategory::Host, Phase::Input, kNoUnit, 0, kInputUs);
    m_cursorUs = kInputUs;
    sample(0, false, 0, 0, 0);
    writeForward();
    writeBackward();
    writeEnd();

    const int64_t endNs = stepStartNs() + m_options.stepNs;
    store::StepRow row{.stepId = stepId(), .number = m_number, .configId = 1, .startNs = stepStartNs(), .endNs = endNs};
    row.loss = 5.0 - 0.25 * static_cast<double>(m_number);
    row.gradientNorm = 1.0;
    row.learningRate = 1e-3;
    row.tokens = 1024;
    row.state = StepState::Ok;
    row.sums = store::waterfallOf(m_timed, stepStartNs(), endNs);
    row.peakAllocatedBytes = fixturePeakBytes(m_options);
    if (m_number == m_options.firstStep + m_options.steps - 1)
        row.validationLoss = *row.loss + 0.5;
    m_writer.put(row);
}

void FixtureStep::writeForward()
{
    if (m_options.prefetch)
        m_cursorUs = communicate(Operation::AllGather, Phase::Forward, 1, m_cursorUs, kGatherUs);
    for (int64_t unit = 1; unit <= units(); ++unit) {
        const int64_t startUs = m_cursorUs;
        if (!m_options.prefetch)
            m_cursorUs = communicate(Operation::AllGather, Phase::Forward, unit, m_cursorUs, kGatherUs);
        else if (unit < units())
            communicate(Operation::AllGather, Phase::Forward, unit + 1, m_cursorUs, kGatherUs);
        compute("attention", Phase::Forward, unit, kForwardUs / 2);
        compute("ffn", Phase::Forward, unit, kForwardUs / 2);
        bracket("forward", Phase::Forward, unit, startUs, m_cursorUs - startUs);
        sample(m_cursorUs, false, m_options.prefetch && unit < units() ? 1024 : 512, 256 * unit, 0);
    }
}

void FixtureStep::writeBackward()
{
    if (m_options.prefetch)
        m_cursorUs = communicate(Operation::AllGather, Phase::Backward, units(), m_cursorUs, kGatherUs);
    for (int64_t unit = units(); unit >= 1; --unit) {
        const int64_t startUs = m_cursorUs;
        if (!m_options.prefetch) {
            m_cursorUs = communicate(Operation::AllGather, Phase::Backward, unit, m_cursorUs, kGatherUs);
        } else {
            int64_t atUs = m_cursorUs;
            if (unit > 1)
                atUs = communicate(Operation::AllGather, Phase::Backward, unit - 1, atUs, kGatherUs);
            if (unit < units())
                communicate(Operation::ReduceScatter, Phase::Backward, unit + 1, atUs, kReduceUs);
        }
        if (unit == units())
            writeMemory();
        compute("backward", Phase::Backward, unit, kBackwardUs);
        if (!m_options.prefetch)
            m_cursorUs = communicate(Operation::ReduceScatter, Phase::Backward, unit, m_cursorUs, kReduceUs);
        bracket("backward", Phase::Backward, unit, startUs, m_cursorUs - startUs);
        sample(m_cursorUs, false, m_options.prefetch && unit > 1 ? 1024 : 512, 256 * (unit - 1),
               128 * (units() - unit + 1));
    }
    if (m_options.prefetch)
        m_cursorUs = communicate(Operation::ReduceScatter, Phase::Backward, 1, m_cursorUs, kReduceUs);
}

void FixtureStep::writeEnd()
{
    m_cursorUs = communicate(Operation::AllReduce, Phase::Optimizer, kNoUnit, m_cursorUs, kAllReduceUs);
    const int64_t optimizerUs = kOptimizerUs + (m_options.slowRank == m_rank ? m_options.slowUs : 0);
    bracket("optimizer", Phase::Optimizer, kNoUnit, m_cursorUs, optimizerUs);
    compute("adamw", Phase::Optimizer, kNoUnit, optimizerUs);
    span(kCopies, "Memcpy DtoH", SpanCategory::Copy, Phase::Optimizer, kNoUnit, m_cursorUs, kCopyUs);
    m_cursorUs += kCopyUs;
    sample(m_cursorUs, false, 0, 0, 0);
}

void FixtureStep::compute(const char *name, Phase phase, int64_t unit, int64_t us)
{
    span(kCompute, name, SpanCategory::Compute, phase, unit, m_cursorUs, us);
    m_cursorUs += us;
}

int64_t FixtureStep::communicate(Operation operation, Phase phase, int64_t unit, int64_t atUs, int64_t us)
{
    const int64_t lateUs = m_rank * kLateUs;
    const int64_t id = m_nextCollective++;
    const int64_t startNs = stepStartNs() + (atUs + lateUs) * kUs;
    store::CollectiveRow row{.collectiveId = id, .communicatorId = 1, .sequence = id - 1, .operation = operation};
    row.unitId = idOrNone(unit);
    row.stepId = stepId();
    row.phase = phase;
    row.dtype = operation == Operation::AllReduce ? "fp64" : "fp32";
    const int64_t wholeBytes = kShardBytes * m_options.ranks;
    row.inputBytes = operation == Operation::AllReduce       ? 64
                     : operation == Operation::ReduceScatter ? wholeBytes
                                                             : kShardBytes;
    row.outputBytes = operation == Operation::AllReduce   ? 64
                      : operation == Operation::AllGather ? wholeBytes
                                                          : kShardBytes;
    row.enqueuedNs = startNs - 5 * kUs;
    row.startedNs = startNs;
    row.endedNs = stepStartNs() + (atUs + us) * kUs;
    m_writer.put(row);
    span(kCommunication, spanName(operation), SpanCategory::Communication, phase, unit, atUs + lateUs, us - lateUs, id,
         operation);
    return atUs + us;
}

void FixtureStep::span(FixtureLane lane, const std::string &name, SpanCategory category, std::optional<Phase> phase,
                       int64_t unit, int64_t atUs, int64_t us, std::optional<int64_t> collective,
                       std::optional<Operation> operation)
{
    store::SpanRow row{.laneId = lane,
                       .startNs = stepStartNs() + atUs * kUs,
                       .spanId = m_nextSpan++,
                       .durationNs = us * kUs,
                       .nameId = m_writer.nameId(m_options.namePrefix + name),
                       .category = category,
                       .phase = phase,
                       .stepId = stepId(),
                       .unitId = idOrNone(unit),
                       .collectiveId = collective};
    if (category == SpanCategory::Copy)
        row.bytes = 64;
    m_writer.add(row);
    if (lane != kPhases) {
        m_timed.push_back({row.startNs, row.startNs + *row.durationNs, category, phase, operation, lane,
                           lane == kMainThread || !m_options.cuda});
    }
}

void FixtureStep::bracket(const char *name, Phase phase, int64_t unit, int64_t atUs, int64_t us)
{
    span(kPhases, name, SpanCategory::Compute, phase, unit, atUs, us);
}

void FixtureStep::writeMemory()
{
    writePeakCells(m_nextMemory);
    sample(m_cursorUs, true, m_options.prefetch ? 1024 : 512, 256 * units(), 0);
}

void FixtureStep::sample(int64_t atUs, bool isPeak, int64_t gathered, int64_t activations, int64_t gradients)
{
    store::MemoryRow row{.memoryId = m_nextMemory++};
    row.place = m_options.cuda ? "device" : "host";
    row.deviceId = 1;
    row.timeNs = stepStartNs() + atUs * kUs;
    row.stepId = stepId();
    row.isStepPeak = isPeak;
    // parameters, gathered, gradients, optimizer, activations, communication, temporary, input, other
    row.categoryBytes = {4096 * kKib, gathered * kKib, gradients * kKib, 8192 * kKib, activations * kKib,
                         64 * kKib,   32 * kKib,       16 * kKib,        8 * kKib};
    row.roundingBytes = 4 * kKib;
    row.pendingFreeBytes = 2 * kKib;
    row.allocatedBytes = row.roundingBytes;
    for (const int64_t bytes : row.categoryBytes)
        row.allocatedBytes += bytes;
    row.activeBytes = row.allocatedBytes + row.pendingFreeBytes;
    row.reservedBytes = 32 * 1024 * kKib;
    if (m_options.cuda) {
        row.processUsedBytes = row.reservedBytes + 300 * 1024 * kKib;
        row.deviceUsedBytes = *row.processUsedBytes * m_options.ranks;
    }
    m_writer.add(row);
}

void FixtureStep::writePeakCells(int64_t memoryId)
{
    const auto cell = [&](int64_t unit, MemoryCategory category, int64_t kib) {
        if (kib > 0)
            m_writer.add(store::MemoryPeakRow{memoryId, 1, idOrNone(unit), category, kib * kKib});
    };
    for (int64_t unit = 1; unit <= units(); ++unit) {
        const int64_t remainder = unit == 1 ? 1 : 0;
        cell(unit, MemoryCategory::Parameters, 4096 / units() + remainder * (4096 % units()));
        cell(unit, MemoryCategory::Optimizer, 8192 / units() + remainder * (8192 % units()));
        cell(unit, MemoryCategory::Activations, 256);
    }
    cell(units(), MemoryCategory::Gathered, 512);
    if (m_options.prefetch)
        cell(units() - 1, MemoryCategory::Gathered, 512);
    cell(kNoUnit, MemoryCategory::Communication, 64);
    cell(kNoUnit, MemoryCategory::Temporary, 32);
    cell(kNoUnit, MemoryCategory::Input, 16);
    cell(kNoUnit, MemoryCategory::Other, 8);
}

} // namespace shardscope::test
