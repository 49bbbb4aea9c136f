// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/device_join.h"

#include <algorithm>
#include <utility>

namespace shardscope::collect {

namespace {

// 4 bits of phase, 20 of unit + 1, 40 of step + 1.
constexpr int kUnitShift = 4;
constexpr int kStepShift = 24;

bool isDeviceWork(ActivityKind kind)
{
    return kind == ActivityKind::Kernel || kind == ActivityKind::Memcpy || kind == ActivityKind::Memset;
}

} // namespace

uint64_t packContext(const SpanContext &context)
{
    return static_cast<uint64_t>(context.phase) | static_cast<uint64_t>(context.unit + 1) << kUnitShift |
           static_cast<uint64_t>(context.step + 1) << kStepShift;
}

SpanContext unpackContext(uint64_t packed)
{
    return {static_cast<int64_t>(packed >> kStepShift) - 1,
            static_cast<observe::UnitIndex>(packed >> kUnitShift & 0xfffff) - 1, static_cast<Phase>(packed & 0xf)};
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
        if (join(oldest.record))
            continue;
        if (m_batch - oldest.batch >= kRecordPatience)
            m_sinks.work({std::move(oldest.record), std::nullopt, std::nullopt});
        else
            m_waiting.push_back(std::move(oldest));
    }
    // Buffers come in any order; brackets of phases want the order of time.
    std::ranges::sort(records, {}, &ActivityRecord::startNs);
    for (ActivityRecord &record : records) {
        if (isDeviceWork(record.kind) && !join(record))
            m_waiting.push_back({std::move(record), m_batch});
    }
    forgetOldCalls();
}

void DeviceJoin::correlate(const ActivityRecord &record)
{
    const auto [entry, isNew] = m_calls.try_emplace(record.correlation);
    Call &call = entry->second;
    if (isNew)
        m_order.push_back(record.correlation);
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
    if (!record.launches) {
        settle(found->second, 0);
        m_calls.erase(found);
    }
}

bool DeviceJoin::join(const ActivityRecord &record)
{
    const auto found = m_calls.find(record.correlation);
    if (found == m_calls.end())
        return false;
    Call &call = found->second;
    m_sinks.work({record, call.context, call.collective});
    settle(call, record.endNs);
    // The launch of a graph stands for many kernels; every other call for one.
    if (record.graphId == 0)
        m_calls.erase(found);
    return true;
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
}

void DeviceJoin::drain()
{
    for (Waiting &waiting : m_waiting)
        m_sinks.work({std::move(waiting.record), std::nullopt, std::nullopt});
    m_waiting.clear();
}

} // namespace shardscope::collect
