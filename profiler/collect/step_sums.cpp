// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/step_sums.h"

#include <algorithm>
#include <utility>

namespace shardscope::collect {

namespace {

/// Steps that are kept after they are finished: a late record corrects the sums of a recent step.
constexpr size_t kFinishedKept = 4;

void take(store::StepRow &row, const observe::StepResult &result)
{
    row.loss = result.loss;
    row.gradientNorm = result.gradientNorm;
    row.validationLoss = result.validationLoss;
    row.learningRate = result.learningRate;
    row.tokens = result.tokens;
    row.state = result.state;
}

} // namespace

StepSumsKeeper::StepSumsKeeper(DeviceKind device, RowSink sink)
    : m_device(device)
    , m_sink(std::move(sink))
{
}

const StepSumsKeeper::Step *StepSumsKeeper::find(int64_t number) const
{
    const auto found =
        std::find_if(m_steps.rbegin(), m_steps.rend(), [&](const Step &step) { return step.row.number == number; });
    return found == m_steps.rend() ? nullptr : &*found;
}

StepSumsKeeper::Step *StepSumsKeeper::find(int64_t number)
{
    return const_cast<Step *>(std::as_const(*this).find(number));
}

void StepSumsKeeper::began(const store::StepRow &row, int64_t monotonicNs)
{
    // One step at a time: where the end of one was lost in a full queue, it ended before this one began.
    for (Step &step : m_steps) {
        if (step.hostEndNs == 0)
            step.hostEndNs = std::max(row.startNs, step.row.startNs + 1);
    }
    m_steps.push_back({row, monotonicNs});
    m_sink(row);
}

void StepSumsKeeper::ended(int64_t number, int64_t monotonicNs, const observe::StepResult &result,
                           std::optional<int64_t> peakAllocatedBytes)
{
    Step *step = find(number);
    if (!step)
        return;
    step->hostEndNs = step->row.startNs + (monotonicNs - step->beganMonotonicNs);
    step->row.peakAllocatedBytes = peakAllocatedBytes;
    take(step->row, result);
    if (m_device == DeviceKind::Cpu || result.loss)
        valuesCame(number);
}

void StepSumsKeeper::valuesCame(int64_t number)
{
    for (Step &step : m_steps)
        step.valuesKnown |= step.row.number <= number;
}

void StepSumsKeeper::values(int64_t number, const observe::StepResult &result)
{
    valuesCame(number);
    Step *step = find(number);
    if (!step)
        return;
    take(step->row, result);
    m_sink(step->row); // not only when it is finished: a rank that is killed before that keeps its losses
}

std::optional<int64_t> StepSumsKeeper::hostEndNs(int64_t number) const
{
    const Step *step = find(number);
    return !step || step->hostEndNs == 0 ? std::nullopt : std::optional(step->hostEndNs);
}

void StepSumsKeeper::span(const store::TimedSpan &span)
{
    m_spans.push_back(span);
    // A record that comes after its step was finished corrects it.
    for (Step &step : m_steps) {
        if (step.finished && span.startNs < *step.row.endNs && span.endNs > step.row.startNs)
            step.finished = false;
    }
}

void StepSumsKeeper::deviceOwes(int64_t number)
{
    for (Step &step : m_steps) {
        if (step.row.number == number)
            ++step.owed;
        else if (step.row.number < number)
            step.newerSeen = true;
    }
}

void StepSumsKeeper::devicePaid(int64_t number, int64_t endNs)
{
    paid(number, endNs, endNs != 0);
}

void StepSumsKeeper::paid(int64_t number, int64_t endNs, bool ran)
{
    for (Step &step : m_steps) {
        if (step.row.number == number) {
            --step.owed;
            step.deviceEndNs = std::max(step.deviceEndNs, endNs);
        } else if (ran && step.row.number < number && step.newerPaidAtNs == 0) {
            step.newerPaidAtNs = m_nowNs;
        }
    }
}

bool StepSumsKeeper::complete(const Step &step, int64_t nowNs) const
{
    if (step.hostEndNs == 0 || !step.valuesKnown)
        return false;
    const bool callsKnown = m_device == DeviceKind::Cpu || step.newerSeen || nowNs - step.knownAtNs > kQuietNs;
    if (callsKnown && step.owed <= 0)
        return true;
    if (step.newerPaidAtNs != 0 && nowNs - step.newerPaidAtNs > kSettleNs)
        return true;
    return nowNs - step.knownAtNs > kPatienceNs;
}

void StepSumsKeeper::finish(int64_t nowNs, bool all)
{
    m_nowNs = nowNs;
    for (Step &step : m_steps) {
        if (step.valuesKnown && step.knownAtNs == 0)
            step.knownAtNs = nowNs;
    }
    // In order: a step begins where the one before ended.
    for (Step &step : m_steps) {
        if (step.finished)
            continue;
        if (!complete(step, nowNs) && !(all && step.hostEndNs != 0))
            break;
        finish(step);
    }
    forgetOld();
}

void StepSumsKeeper::finish(Step &step)
{
    // Corrected by a late record, a step keeps its place.
    if (!step.row.endNs) {
        step.row.startNs = std::max(step.row.startNs, m_lastEndNs);
        step.row.endNs = std::max({step.row.startNs, step.hostEndNs, step.deviceEndNs});
        m_lastEndNs = *step.row.endNs;
    }
    if (step.row.level != RecordLevel::Off)
        step.row.sums = store::waterfallOf(m_spans, step.row.startNs, *step.row.endNs);
    step.finished = true;
    m_sink(step.row);
}

void StepSumsKeeper::forgetOld()
{
    const auto finished = std::ranges::find_if(m_steps, [](const Step &step) { return !step.finished; });
    size_t surplus = static_cast<size_t>(finished - m_steps.begin());
    surplus -= std::min(surplus, kFinishedKept);
    m_steps.erase(m_steps.begin(), m_steps.begin() + static_cast<ptrdiff_t>(surplus));
    const int64_t fromNs = m_steps.empty() ? m_lastEndNs : m_steps.front().row.startNs;
    std::erase_if(m_spans, [&](const store::TimedSpan &span) { return span.endNs <= fromNs; });
}

} // namespace shardscope::collect
