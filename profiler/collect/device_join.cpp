// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/device_join.h"

#include "profiler/collect/kernel_name.h"

#include <algorithm>
#include <utility>

namespace shardscope::collect {

namespace {

// 4 bits of phase, 20 of unit + 1, 1 of aside, 39 of step + 1.
constexpr int kUnitShift = 4;
constexpr int kAsideShift = 24;
constexpr int kStepShift = 25;
/// Entries of m_order that aren't worth looking through.
constexpr size_t kOrderSlack = 4096;

bool isDeviceWork(ActivityKind kind)
{
    return kind == ActivityKind::Kernel || kind == ActivityKind::Memcpy || kind == ActivityKind::Memset;
}

} // namespace

uint64_t packContext(const SpanContext &context)
{
    return static_cast<uint64_t>(context.phase) | static_cast<uint64_t>(context.unit + 1) << kUnitShift |
           uint64_t{context.aside} << kAsideShift | static_cast<uint64_t>(context.step + 1) << kStepShift;
}

SpanContext unpackContext(uint64_t packed)
{
    return {static_cast<int64_t>(packed >> kStepShift) - 1,
            static_cast<observe::UnitIndex>(packed >> kUnitShift & 0xfffff) - 1, static_cast<Phase>(packed & 0xf),
            (packed >> kAsideShift & 1) != 0};
}

void DeviceJoin::take(std::vector<ActivityRecord> &&records)
{
    ++m_batch;
    for (const ActivityRecord &record : records) {
        if (record.kind == ActivityKind::Correlation)
            correlate(record);
    }
    for (const ActivityRecord &record : records) {
        if (record.kind == ActivityKind::Call)
            call(record);
    }
    const auto waiting = m_waiting.size();
    for (size_t i = 0; i < waiting; ++i) {
        Waiting oldest = std::move(m_waiting.front());
        m_waiting.pop_front();
        if (join(oldest.record, false))
            continue;
        if (m_batch - oldest.batch >= kRecordPatience)
            m_sinks.work({std::move(oldest.record), std::nullopt, std::nullopt});
        else
            m_waiting.push_back(std::move(oldest));
    }
    // Buffers come in any order; brackets of phases want the order of time.
    std::ranges::sort(records, {}, &ActivityRecord::startNs);
    for (ActivityRecord &record : records) {
        if (isDeviceWork(record.kind) && !join(record, true))
            m_waiting.push_back({std::move(record), m_batch});
    }
    forgetDoneCalls();
    forgetOldCalls();
}

void DeviceJoin::correlate(const ActivityRecord &record)
{
    const auto [entry, isNew] = m_calls.try_emplace(record.correlation);
    Call &call = entry->second;
    if (isNew)
        m_order.push_back(record.correlation);
    if (call.done)
        return; // too late for its record, which was handed on
    if (record.context == ContextKind::Collective) {
        call.collective = static_cast<int64_t>(record.contextValue);
        return;
    }
    call.context = unpackContext(record.contextValue);
    if (call.context->step != kNoStep && !call.owed) {
        call.owed = true;
        m_sinks.owes(call.context->step);
    }
}

void DeviceJoin::settle(Call &call, int64_t endNs)
{
    if (std::exchange(call.owed, false))
        m_sinks.paid(call.context->step, endNs);
}

void DeviceJoin::call(const ActivityRecord &record)
{
    const auto found = m_calls.find(record.correlation);
    if (found == m_calls.end()) {
        m_sinks.work({record, std::nullopt, std::nullopt});
        return;
    }
    m_sinks.work({record, found->second.context, found->second.collective});
    if (!record.launches)
        finish(record.correlation, found->second);
}

void DeviceJoin::finish(uint32_t correlation, Call &call)
{
    settle(call, 0);
    if (!std::exchange(call.done, true))
        m_done.push_back(correlation);
}

bool DeviceJoin::join(const ActivityRecord &record, bool mayWait)
{
    const auto found = m_calls.find(record.correlation);
    if (found == m_calls.end())
        return false;
    Call &call = found->second;
    // Its collective's correlation may come in the next buffer: without it the collective would have no times, or
    // NCCL's set-up would pass for copies of the unit.
    const bool isCopy = record.kind != ActivityKind::Kernel;
    const bool maybeOfCollective = isCopy ? call.context && call.context->aside : isNcclKernel(record.name);
    if (mayWait && !call.collective && maybeOfCollective)
        return false;
    // And what is in a collective's bracket but no kernel of NCCL's has its unit and step from its span alone.
    if (mayWait && call.collective && !call.context && (isCopy || !isNcclKernel(record.name)))
        return false;
    m_sinks.work({record, call.context, call.collective});
    settle(call, record.endNs);
    // The launch of a graph stands for many kernels; every other call for one.
    if (record.graphId == 0)
        finish(record.correlation, call);
    return true;
}

void DeviceJoin::forgetDoneCalls()
{
    for (const uint32_t correlation : m_doneBefore)
        m_calls.erase(correlation);
    m_doneBefore = std::exchange(m_done, {});
}

void DeviceJoin::forgetOldCalls()
{
    while (!m_order.empty() && (m_calls.size() > kCallsKept || !m_calls.contains(m_order.front()))) {
        const auto found = m_calls.find(m_order.front());
        m_order.pop_front();
        if (found == m_calls.end())
            continue;
        settle(found->second, 0);
        m_calls.erase(found);
    }
    // A call that never gets a record (it copied nothing) stays at the front and keeps what is gone behind it.
    if (m_order.size() > 2 * m_calls.size() + kOrderSlack)
        std::erase_if(m_order, [this](uint32_t correlation) { return !m_calls.contains(correlation); });
}

void DeviceJoin::drain()
{
    for (Waiting &waiting : m_waiting) {
        if (!join(waiting.record, false))
            m_sinks.work({std::move(waiting.record), std::nullopt, std::nullopt});
    }
    m_waiting.clear();
}

} // namespace shardscope::collect
