// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "ui/timeline/snapshot.h"

#include "profiler/store/cancel.h"
#include <string>

namespace shardscope::ui::timeline {

/// What to look for; all that is given must hold. Typed as "ncclDevKernel unit:block.3 >1.5ms".
struct SpanQuery
{
    std::string name;         ///< part of the name, in any case
    std::string unit;         ///< part of the unit's name, in any case
    int64_t longerThanNs = 0; ///< 0: any

    bool isEmpty() const { return name.empty() && unit.empty() && longerThanNs == 0; }
    bool operator==(const SpanQuery &) const = default;

    /// Fails on a ">" without a duration (ns, us, µs, ms, s; a bare number is milliseconds).
    static Result<SpanQuery> parse(std::string_view text);
};

/// The spans found, by start. All are counted; the list ends at kMostHits, which the user is told.
struct SearchResult
{
    static constexpr size_t kMostHits = 1'000'000;
    static constexpr size_t kBins = 4096;

    struct Hit
    {
        int64_t startNs = 0;
        SpanRef span;
    };
    std::shared_ptr<const Snapshot> snapshot; ///< whose spans these are
    SpanQuery query;
    uint64_t count = 0;
    std::vector<Hit> hits;
    std::vector<uint32_t> bins; ///< hits by start over the snapshot's extent, for the strip
};

/// Runs on the reader's thread.
Result<std::shared_ptr<const SearchResult>> search(std::shared_ptr<const Snapshot> snapshot, const SpanQuery &query,
                                                   const store::CancelToken &cancel);

} // namespace shardscope::ui::timeline
