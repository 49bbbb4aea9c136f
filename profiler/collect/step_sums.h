// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/names.h"
#include "core/observe/observer.h"
#include "profiler/store/rows.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace shardscope::collect {

/// Steps that run or whose records have not all come in, and the spans that their sums are made of. A step's row is
/// handed on when it begins, when its values come, and when it is finished.
///
/// On the CPU a step's time is that of the host. On CUDA the host runs ahead of the device, so a step lasts from the
/// end of the step before (or from its first call, where that is later) to the end of the last work it put on the
/// device: steps then follow each other without overlap, and each holds its own kernels.
class StepSumsKeeper
{
public:
    using RowSink = std::function<void(const store::StepRow &)>;
    StepSumsKeeper(DeviceKind device, RowSink sink);

    /// A row of level off gets no sums.
    void began(const store::StepRow &row, int64_t monotonicNs);
    /// The host's end of a step.
    void ended(int64_t number, int64_t monotonicNs, const observe::StepResult &result,
               std::optional<int64_t> peakAllocatedBytes);
    /// Values that came later than the end.
    void values(int64_t number, const observe::StepResult &result);
    /// The host's end of a step (CLOCK_REALTIME); nothing where it is not known, or not any more.
    std::optional<int64_t> hostEndNs(int64_t number) const;
    void span(const store::TimedSpan &span);

    /// A call of step `number` may have put work on the device, whose record has not come in yet; and then it has, with
    /// the end of the work, or it put none there (`endNs` 0), which says nothing of how far the device is.
    void deviceOwes(int64_t number);
    void devicePaid(int64_t number, int64_t endNs);
    /// The same for collectives whose ends the host tells.
    void collectiveOwes(int64_t number) { deviceOwes(number); }
    void collectivePaid(int64_t number) { paid(number, 0, true); }

    /// Finishes the steps whose records are all in, or no longer to be expected. With `all`, every step that has ended.
    void finish(int64_t nowNs, bool all = false);

    /// A call may leave no record (it failed, it copied nothing). Streams run in order, so this long after the first
    /// record of a later step came in (two flushes), what an earlier one still owes never comes.
    static constexpr int64_t kSettleNs = 1'000'000'000;
    /// The last step before a pause sees no later one: this long after its values came (two flushes) all its calls are
    /// known. Not after the host's end: CUPTI keeps a buffer until the device has done all that is in it, and a step's
    /// values are what the device tells when it is through.
    static constexpr int64_t kQuietNs = 2'000'000'000;
    /// And nothing is waited for longer than this after its values.
    static constexpr int64_t kPatienceNs = 60'000'000'000;

private:
    struct Step
    {
        store::StepRow row;
        int64_t beganMonotonicNs = 0;
        int64_t hostEndNs = 0; ///< 0: runs
        int64_t deviceEndNs = 0;
        int64_t owed = 0;
        bool valuesKnown = false;  ///< or those of a later step
        int64_t knownAtNs = 0;     ///< when finish() saw that first
        bool newerSeen = false;    ///< a later step's call was seen: all calls of this one are known
        int64_t newerPaidAtNs = 0; ///< when the first record of a later step came in
        bool finished = false;
    };
    const Step *find(int64_t number) const;
    Step *find(int64_t number);
    void valuesCame(int64_t number);
    void paid(int64_t number, int64_t endNs, bool ran);
    bool complete(const Step &step, int64_t nowNs) const;
    void finish(Step &step);
    void forgetOld();

    const DeviceKind m_device;
    RowSink m_sink;
    std::deque<Step> m_steps;
    std::vector<store::TimedSpan> m_spans;
    int64_t m_lastEndNs = 0; ///< of the last step finished
    int64_t m_nowNs = 0;     ///< of the last finish()
};

} // namespace shardscope::collect
