// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/observe/observer.h"
#include "profiler/collect/activity_source.h"
#include "profiler/collect/recorder_event.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

namespace shardscope::collect {

/// What a span pushes round the calls inside it, in the 64 bits that CUPTI carries.
struct SpanContext
{
    int64_t step = kNoStep;
    observe::UnitIndex unit = observe::kNoUnit;
    Phase phase = Phase::Forward;
    bool aside = false; ///< beside the computation: of its phase, but not what the rank is in then
    bool operator==(const SpanContext &) const = default;
};
uint64_t packContext(const SpanContext &context);
SpanContext unpackContext(uint64_t packed);

/// A device record with what it belongs to.
struct JoinedRecord
{
    ActivityRecord record;
    std::optional<SpanContext> context;
    std::optional<int64_t> collective;
};

/// Joins device records to the calls that caused them, by correlation id, and so to the spans and collectives round
/// those. Records and correlations come in any order and in different batches; the two correlations of a call may come
/// apart too, so a call is remembered one batch longer than needed, and an NCCL kernel or a copy beside the computation
/// waits one for its collective.
class DeviceJoin
{
public:
    struct Sinks
    {
        std::function<void(const JoinedRecord &)> work; ///< calls too
        /// A call of this step put work on the device whose record has not come yet, and now it has (or never will).
        std::function<void(int64_t step)> owes;
        std::function<void(int64_t step, int64_t endNs)> paid;
    };
    explicit DeviceJoin(Sinks sinks)
        : m_sinks(std::move(sinks))
    {
    }

    void take(std::vector<ActivityRecord> &&records);
    /// Hands on what still waits for its correlation.
    void drain();
    /// Calls whose records may come, in all places where they are remembered.
    size_t remembered() const { return std::max(m_calls.size(), m_order.size()); }

    /// Batches that a record waits for its correlation, and a correlation for its record once newer ones are paid.
    static constexpr uint32_t kRecordPatience = 4;
    static constexpr size_t kCallsKept = 1 << 18;

private:
    struct Call
    {
        std::optional<SpanContext> context;
        std::optional<int64_t> collective;
        bool owed = false;
        bool done = false; ///< its record has come; forgotten with the next batch but one
    };
    struct Waiting
    {
        ActivityRecord record;
        uint32_t batch = 0;
    };
    void correlate(const ActivityRecord &record);
    /// mayWait: what is missing may come with the next batch.
    bool join(const ActivityRecord &record, bool mayWait);
    void call(const ActivityRecord &record);
    void settle(Call &call, int64_t endNs);
    void finish(uint32_t correlation, Call &call);
    void forgetDoneCalls();
    void forgetOldCalls();

    Sinks m_sinks;
    std::unordered_map<uint32_t, Call> m_calls;
    std::deque<uint32_t> m_order;       ///< of m_calls, oldest first; may name calls that are gone
    std::vector<uint32_t> m_done;       ///< of m_calls, in this batch
    std::vector<uint32_t> m_doneBefore; ///< and in the batch before
    std::deque<Waiting> m_waiting;
    uint32_t m_batch = 0;
};

} // namespace shardscope::collect
