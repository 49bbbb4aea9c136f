// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/recorder_event.h"
#include "profiler/store/rows.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

namespace shardscope::collect {

/// The collectives whose times are not all known yet. A row is handed on when the call is known and again when its
/// transfer has ended; with CUDA that is what the device's kernels say, with Gloo what the host says.
class Collectives
{
public:
    using RowSink = std::function<void(const store::CollectiveRow &)>;
    explicit Collectives(RowSink sink)
        : m_sink(std::move(sink))
    {
    }

    struct Open
    {
        store::CollectiveRow row;
        int64_t step = kNoStep;
        std::optional<uint32_t> stream = {}; ///< that it was enqueued in, where that is known
        int64_t startedMonotonicNs = 0;
    };

    void began(const store::CollectiveRow &row, const CollectiveEvent &event);
    /// Returns the collective once its end is known, to make a span of it.
    std::optional<Open> transfer(const TransferEvent &event);
    /// A kernel or copy of the collective ran; several widen it.
    std::optional<Open> deviceWork(int64_t number, int64_t startNs, int64_t endNs);
    /// Nothing where it is not known, or no longer.
    const Open *find(int64_t number) const;
    /// Forgets what began before number `ended` and has ended, and all before number `any`: without device records no
    /// end is ever known. Looks through all of them: not to be called at each collective.
    void forgetBefore(int64_t ended, int64_t any);

private:
    RowSink m_sink;
    std::unordered_map<int64_t, Open> m_open;
};

} // namespace shardscope::collect
