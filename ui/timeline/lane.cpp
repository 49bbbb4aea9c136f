// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane.h"

namespace shardscope::ui::timeline {

uint64_t Lane::spanCount() const
{
    uint64_t count = 0;
    for (const SpanTrack &track : m_tracks)
        count += track.size();
    return count;
}

TimeRange Lane::extent() const
{
    TimeRange all;
    bool first = true;
    for (const SpanTrack &track : m_tracks) {
        if (track.isEmpty())
            continue;
        const TimeRange extent = track.extent();
        all = first ? extent : TimeRange{std::min(all.startNs, extent.startNs), std::max(all.endNs, extent.endNs)};
        first = false;
    }
    return all;
}

size_t Lane::sizeBytes() const
{
    size_t bytes = sizeof(*this);
    for (const SpanTrack &track : m_tracks)
        bytes += track.sizeBytes();
    return bytes;
}

Busy Lane::busyIn(TimeRange range) const
{
    Busy sum;
    for (const SpanTrack &track : m_tracks)
        sum += track.busyIn(range);
    return sum;
}

void Lane::append(std::span<const SpanRecord> records)
{
    std::vector<int64_t> freeFromNs;
    for (const SpanTrack &track : m_tracks)
        freeFromNs.push_back(track.isEmpty() ? INT64_MIN : track.extent().endNs);
    std::vector<std::vector<SpanRecord>> added(m_tracks.size());
    for (const SpanRecord &record : records) {
        size_t track = 0;
        while (track < freeFromNs.size() && freeFromNs[track] > record.startNs)
            ++track;
        if (track == freeFromNs.size()) {
            freeFromNs.push_back(0);
            added.emplace_back();
        }
        freeFromNs[track] = record.endNs();
        added[track].push_back(record);
    }
    m_tracks.resize(added.size());
    for (size_t i = 0; i < added.size(); ++i)
        m_tracks[i].append(added[i]);
}

void Lane::eraseStartingIn(TimeRange range)
{
    for (SpanTrack &track : m_tracks)
        track.eraseStartingIn(range);
    while (!m_tracks.empty() && m_tracks.back().isEmpty())
        m_tracks.pop_back();
}

bool comesBefore(const SpanRecord &a, const SpanRecord &b)
{
    if (a.startNs != b.startNs)
        return a.startNs < b.startNs;
    if (a.durationNs != b.durationNs)
        return a.durationNs > b.durationNs;
    return a.spanId < b.spanId;
}

} // namespace shardscope::ui::timeline
