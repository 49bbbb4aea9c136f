// SPDX-License-Identifier: Apache-2.0
// The one reader: a run folder (one to n databases of several attempts and processes), an attempt's folder, or one
// database; live or finished. Never on the GUI thread: every call reads files. One thread at a time uses a Recording;
// several threads open one each. Reads are many short transactions, so that a writer is never held up.
#pragma once

#include "core/base/result.h"
#include "profiler/store/cancel.h"
#include "profiler/store/snapshot.h"
#include "profiler/store/sql_result.h"

#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::store {

struct RecordingOptions
{
    /// Where databases are copied to whose folder is not writable, and merged ones are kept.
    /// Empty: $XDG_CACHE_HOME/shardscope, else ~/.cache/shardscope.
    std::filesystem::path cacheFolder;
};

inline constexpr int64_t kBeginning = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

class Recording
{
public:
    /// Fails where there is no recording, or one of a newer schema version. A rank that is missing or unreadable is no
    /// failure: Catalog::attempts and ::problems tell of it. A run folder without any database yet opens, empty.
    static Result<Recording> open(const std::filesystem::path &path, const RecordingOptions &options = {});
    Recording(Recording &&) noexcept;
    Recording &operator=(Recording &&) noexcept;
    ~Recording();

    /// What open() or the last refresh() found. Safe to keep and to share between threads.
    std::shared_ptr<const Catalog> catalog() const;
    /// Looks for new files, lanes, names, units, ends. Indices handed out before stay valid.
    Result<std::shared_ptr<const Catalog>> refresh();

    /// Steps of one process from a number on, by number.
    Result<std::vector<StepInfo>> steps(Index process, int64_t fromNumber = 0) const;

    /// The spans of a lane that overlap [fromNs, toNs), open ones included. A name, unit or lane that is not in the
    /// catalogue yet is kNone until the next refresh().
    Result<SpanColumns> spans(Index lane, int64_t fromNs = kBeginning, int64_t toNs = kEnd,
                              const CancelToken &cancel = {}) const;
    /// The same, but only those that start in [fromNs, toNs): what a live view reads again from Tail::firstStartNs.
    Result<SpanColumns> spansStarting(Index lane, int64_t fromNs, int64_t toNs = kEnd,
                                      const CancelToken &cancel = {}) const;

    /// Collectives enqueued in [fromNs, toNs), joined across ranks, by time. Ranks whose part lies just outside are
    /// found too.
    Result<std::vector<CollectiveCall>> collectives(int64_t fromNs = kBeginning, int64_t toNs = kEnd,
                                                    const CancelToken &cancel = {}) const;

    /// Memory samples in [fromNs, toNs), one entry for each place ("device", "host", …) that the process has.
    Result<std::vector<MemoryColumns>> memory(Index process, int64_t fromNs = kBeginning, int64_t toNs = kEnd,
                                              const CancelToken &cancel = {}) const;
    /// The peak of a step; without a number, of the step with the highest one. Empty: none was sampled.
    Result<std::optional<MemoryPeak>> memoryPeak(Index process, std::optional<int64_t> stepNumber = {}) const;

    /// Events of all processes beyond a position, by time.
    Result<std::vector<EventInfo>> events(const EventPosition &after = {}) const;
    Result<std::vector<MetricSeries>> metrics(Index process, int64_t fromNs = kBeginning,
                                              const CancelToken &cancel = {}) const;

    /// What has been committed since the flush ids in `seen` (by process; missing ones: from the beginning).
    Result<std::vector<Tail>> tail(const std::vector<int64_t> &seen = {}) const;

    /// Runs one reading statement on the whole recording: on the file itself where there is only one, else on a merged
    /// database in the cache (made when it is out of date). Writing statements are refused.
    Result<SqlResult> sql(const std::string &query, size_t maxRows = 100000, const CancelToken &cancel = {}) const;

private:
    struct State;
    explicit Recording(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

} // namespace shardscope::store
