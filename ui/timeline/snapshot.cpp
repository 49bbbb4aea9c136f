// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/snapshot.h"

#include <fmt/format.h>

namespace shardscope::ui::timeline {

std::string_view Snapshot::nameOf(int32_t name) const
{
    if (name < 0 || static_cast<size_t>(name) >= catalog->names.size())
        return "?";
    return catalog->names[static_cast<size_t>(name)];
}

std::string_view Snapshot::unitOf(int32_t unit) const
{
    if (unit < 0 || static_cast<size_t>(unit) >= catalog->units.size())
        return {};
    return catalog->units[static_cast<size_t>(unit)].name;
}

const store::CollectiveCall *Snapshot::callOf(uint32_t rank, int32_t collective) const
{
    if (collective < 0 || !ranks[rank].callOf)
        return nullptr;
    const auto found = ranks[rank].callOf->find(collective);
    return found == ranks[rank].callOf->end() ? nullptr : &(*collectives)[found->second];
}

std::optional<SpanRef> Snapshot::find(const Snapshot &old, const SpanRef &ref) const
{
    const SpanRecord wanted = old.record(ref);
    const store::Index process = old.ranks[ref.rank].process;
    const int64_t laneId = old.lane(ref).info.laneId;
    for (uint32_t r = 0; r < ranks.size(); ++r) {
        if (ranks[r].process != process)
            continue;
        for (uint32_t l = 0; l < ranks[r].lanes.size(); ++l) {
            const Lane &lane = *ranks[r].lanes[l];
            if (lane.info.laneId != laneId)
                continue;
            for (uint32_t t = 0; t < lane.tracks().size(); ++t) {
                const SpanTrack &track = lane.tracks()[t];
                SpanPosition p = track.firstFrom(wanted.startNs);
                for (; p != track.end() && track.chunk(p).startNs(p.index) == wanted.startNs; p = track.next(p)) {
                    if (track.record(p).spanId == wanted.spanId)
                        return SpanRef{r, l, t, p};
                }
            }
        }
    }
    return std::nullopt;
}

size_t Snapshot::sizeBytes() const
{
    size_t bytes = sizeof(*this);
    for (const RankTimeline &rank : ranks) {
        bytes += rank.activity->exclusive.sizeBytes() + rank.activity->communication.sizeBytes() +
                 rank.activity->copies.sizeBytes();
        for (const auto &lane : rank.lanes)
            bytes += lane->sizeBytes();
    }
    return bytes;
}

std::string labelOf(const Snapshot &snapshot, const RankTimeline &rank)
{
    if (!rank.rank) {
        const store::ProcessInfo &process = snapshot.catalog->processes[static_cast<size_t>(rank.process)];
        return process.command.empty() ? fmt::format("process {}", process.pid) : process.command;
    }
    if (snapshot.catalog->attempts.size() > 1)
        return fmt::format("attempt {}, rank {}", rank.attempt, *rank.rank);
    return fmt::format("rank {}", *rank.rank);
}

} // namespace shardscope::ui::timeline
