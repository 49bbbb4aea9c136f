// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "profiler/store/cancel.h"
#include "profiler/store/snapshot.h"
#include "ui/common/time_range.h"

#include <memory>
#include <optional>
#include <vector>

namespace shardscope::store {
class Recording;
}

namespace shardscope::ui::memory {

/// What the page asks for: one process, one of its places, the peak of one step.
struct MemoryRequest
{
    store::Index process = store::kNone; ///< kNone: the first rank of the newest attempt
    std::string place;                   ///< "": the first that the process has
    std::optional<int64_t> step;         ///< empty: the step with the highest peak
};

/// The memory of one process and place. Made on the reader's thread, never changed afterwards.
struct MemorySnapshot
{
    std::shared_ptr<const store::Catalog> catalog;
    std::vector<store::Index> ranks; ///< those that can be chosen, all attempts
    store::Index process = store::kNone;
    std::vector<std::string> places;
    store::MemoryColumns samples;
    std::optional<store::MemoryPeak> peak;
    std::vector<int64_t> steps;        ///< whose peaks were sampled, ascending
    std::optional<int64_t> limitBytes; ///< of the device
    int additions = 0;                 ///< reads since all samples were read
};

/// Reads on from `before` where that is of the same process and place, else everything. Now and then everything all the
/// same: the retention thins out old samples.
Result<std::shared_ptr<const MemorySnapshot>> readMemory(store::Recording &recording, const MemoryRequest &request,
                                                         const std::shared_ptr<const MemorySnapshot> &before,
                                                         const store::CancelToken &cancel);

/// Replaces the samples from the first of `later` on by those.
void append(store::MemoryColumns &samples, const store::MemoryColumns &later);

/// At most `most` samples that stand for those in the range: of each bucket of time its highest and its lowest in
/// allocated bytes, so that no peak is lost. Indices, ascending. The neighbours outside are among them.
std::vector<size_t> thinned(const store::MemoryColumns &samples, TimeRange range, size_t most);

/// The sample in force at a time: the last one not after it. Empty: there is none yet.
std::optional<size_t> sampleAt(const store::MemoryColumns &samples, int64_t timeNs);

} // namespace shardscope::ui::memory
