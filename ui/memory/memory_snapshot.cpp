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

constexpr int kMostAdditions = 30;

/// Whether `before` is of what is asked for, so that only newer samples need be read.
bool goesOn(const MemoryRequest &request, const MemorySnapshot *before, store::Index process)
{
    return before && before->additions < kMostAdditions && before->process == process && before->samples.size() > 0 &&
           (request.place.empty() || request.place == before->samples.place);
}

/// The newest step's peak: peaks of steps that run are written late, but lie after it. Without any, everything.
int64_t firstThatMayChangeNs(const store::MemoryColumns &samples)
{
    for (size_t i = samples.size(); i-- > 0;) {
        if (samples.isStepPeak[i])
            return samples.timeNs[i];
    }
    return store::kBeginning;
}

/// All columns, so that none is forgotten.
template <typename Samples, typename Function>
void forEachColumn(Samples &samples, Function function)
{
    function(samples.memoryId, &store::MemoryColumns::memoryId);
    function(samples.timeNs, &store::MemoryColumns::timeNs);
    function(samples.step, &store::MemoryColumns::step);
    function(samples.isStepPeak, &store::MemoryColumns::isStepPeak);
    function(samples.roundingBytes, &store::MemoryColumns::roundingBytes);
    function(samples.pendingFreeBytes, &store::MemoryColumns::pendingFreeBytes);
    function(samples.allocatedBytes, &store::MemoryColumns::allocatedBytes);
    function(samples.activeBytes, &store::MemoryColumns::activeBytes);
    function(samples.reservedBytes, &store::MemoryColumns::reservedBytes);
    function(samples.processUsedBytes, &store::MemoryColumns::processUsedBytes);
    function(samples.deviceUsedBytes, &store::MemoryColumns::deviceUsedBytes);
}

/// Sorts the places that were read into the snapshot. The wanted one's samples go on from before.
void take(MemorySnapshot &snapshot, std::vector<store::MemoryColumns> places, const MemoryRequest &request,
          const MemorySnapshot *before)
{
    if (before) {
        snapshot.places = before->places;
        snapshot.samples = before->samples;
        snapshot.additions = before->additions + 1;
    }
    for (store::MemoryColumns &samples : places) {
        if (std::find(snapshot.places.begin(), snapshot.places.end(), samples.place) == snapshot.places.end())
            snapshot.places.push_back(samples.place);
        if (before && samples.place == before->samples.place)
            append(snapshot.samples, samples);
        else if (!before && (request.place.empty() ? snapshot.samples.place.empty() : samples.place == request.place))
            snapshot.samples = std::move(samples);
    }
}

} // namespace

void append(store::MemoryColumns &samples, const store::MemoryColumns &later)
{
    if (later.size() == 0)
        return;
    const auto kept = std::lower_bound(samples.timeNs.begin(), samples.timeNs.end(), later.timeNs.front());
    const auto size = kept - samples.timeNs.begin();
    const auto replace = [size](auto &column, const auto &more) {
        column.erase(column.begin() + size, column.end());
        column.insert(column.end(), more.begin(), more.end());
    };
    forEachColumn(samples, [&](auto &column, auto member) { replace(column, later.*member); });
    for (size_t c = 0; c < samples.categoryBytes.size(); ++c)
        replace(samples.categoryBytes[c], later.categoryBytes[c]);
}

Result<std::shared_ptr<const MemorySnapshot>> readMemory(store::Recording &recording, const MemoryRequest &request,
                                                         const std::shared_ptr<const MemorySnapshot> &before,
                                                         const store::CancelToken &cancel)
{
    auto snapshot = std::make_shared<MemorySnapshot>();
    snapshot->catalog = recording.catalog();
    snapshot->ranks = ranksOf(*snapshot->catalog);
    snapshot->process = request.process != store::kNone ? request.process : firstOfNewest(*snapshot->catalog);
    if (snapshot->process == store::kNone)
        return std::shared_ptr<const MemorySnapshot>(snapshot);
    const MemorySnapshot *known = goesOn(request, before.get(), snapshot->process) ? before.get() : nullptr;
    const int64_t fromNs = known ? firstThatMayChangeNs(known->samples) : store::kBeginning;
    auto places = recording.memory(snapshot->process, fromNs, store::kEnd, cancel);
    if (!places)
        return tl::unexpected(places.error());
    take(*snapshot, std::move(*places), request, known);
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
