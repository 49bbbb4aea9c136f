// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/memory/memory_snapshot.h"

#include "profiler/store/recording.h"

#include <algorithm>

namespace shardscope::ui::memory {

namespace {

std::vector<store::Index> ranksOf(const store::Catalog &catalog)
{
    std::vector<store::Index> ranks;
    for (const store::AttemptInfo &attempt : catalog.attempts) {
        for (const store::Index process : attempt.ranks) {
            if (process != store::kNone)
                ranks.push_back(process);
        }
    }
    return ranks;
}

store::Index firstOfNewest(const store::Catalog &catalog)
{
    for (auto attempt = catalog.attempts.rbegin(); attempt != catalog.attempts.rend(); ++attempt) {
        for (const store::Index process : attempt->ranks) {
            if (process != store::kNone)
                return process;
        }
    }
    return store::kNone;
}

} // namespace

Result<std::shared_ptr<const MemorySnapshot>> readMemory(store::Recording &recording, const MemoryRequest &request,
                                                         const store::CancelToken &cancel)
{
    auto snapshot = std::make_shared<MemorySnapshot>();
    snapshot->catalog = recording.catalog();
    snapshot->ranks = ranksOf(*snapshot->catalog);
    snapshot->process = request.process != store::kNone ? request.process : firstOfNewest(*snapshot->catalog);
    if (snapshot->process == store::kNone)
        return std::shared_ptr<const MemorySnapshot>(snapshot);
    auto places = recording.memory(snapshot->process, store::kBeginning, store::kEnd, cancel);
    if (!places)
        return tl::unexpected(places.error());
    for (store::MemoryColumns &samples : *places) {
        snapshot->places.push_back(samples.place);
        const bool wanted = request.place.empty() ? snapshot->samples.place.empty() : samples.place == request.place;
        if (wanted)
            snapshot->samples = std::move(samples);
    }
    const store::MemoryColumns &samples = snapshot->samples;
    for (size_t i = 0; i < samples.size(); ++i) {
        if (samples.isStepPeak[i] && samples.step[i] >= 0)
            snapshot->steps.push_back(samples.step[i]);
    }
    std::sort(snapshot->steps.begin(), snapshot->steps.end());
    snapshot->steps.erase(std::unique(snapshot->steps.begin(), snapshot->steps.end()), snapshot->steps.end());
    if (samples.device != store::kNone) {
        const int64_t bytes = snapshot->catalog->devices[static_cast<size_t>(samples.device)].memoryBytes;
        if (bytes > 0)
            snapshot->limitBytes = bytes;
    }
    auto peak = recording.memoryPeak(snapshot->process, request.step);
    if (!peak)
        return tl::unexpected(peak.error());
    snapshot->peak = std::move(*peak);
    return std::shared_ptr<const MemorySnapshot>(snapshot);
}

std::vector<size_t> thinned(const store::MemoryColumns &samples, TimeRange range, size_t most)
{
    const auto &times = samples.timeNs;
    auto from = static_cast<size_t>(std::lower_bound(times.begin(), times.end(), range.startNs) - times.begin());
    auto to = static_cast<size_t>(std::upper_bound(times.begin(), times.end(), range.endNs) - times.begin());
    from = from > 0 ? from - 1 : 0;
    to = std::min(to + 1, times.size());
    std::vector<size_t> indices;
    const size_t buckets = std::max<size_t>(1, most / 2);
    if (to - from <= most) {
        for (size_t i = from; i < to; ++i)
            indices.push_back(i);
        return indices;
    }
    const double bucketNs = static_cast<double>(times[to - 1] - times[from] + 1) / static_cast<double>(buckets);
    const auto &bytes = samples.allocatedBytes;
    for (size_t i = from; i < to;) {
        const auto bucket = static_cast<int64_t>(static_cast<double>(times[i] - times[from]) / bucketNs);
        size_t highest = i, lowest = i;
        for (; i < to && static_cast<int64_t>(static_cast<double>(times[i] - times[from]) / bucketNs) == bucket; ++i) {
            if (bytes[i] > bytes[highest])
                highest = i;
            if (bytes[i] < bytes[lowest])
                lowest = i;
        }
        indices.push_back(std::min(highest, lowest));
        if (highest != lowest)
            indices.push_back(std::max(highest, lowest));
    }
    return indices;
}

std::optional<size_t> sampleAt(const store::MemoryColumns &samples, int64_t timeNs)
{
    const auto after = std::upper_bound(samples.timeNs.begin(), samples.timeNs.end(), timeNs);
    if (after == samples.timeNs.begin())
        return std::nullopt;
    return static_cast<size_t>(after - samples.timeNs.begin()) - 1;
}

} // namespace shardscope::ui::memory
