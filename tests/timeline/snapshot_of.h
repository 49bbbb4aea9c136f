// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/snapshot.h"

namespace shardscope::ui::timeline {

/// A snapshot of made-up lanes, for tests that need no database. Names "name 0" … "name 19", units "block.0" ….
inline std::shared_ptr<const Snapshot> snapshotOf(std::vector<std::vector<Lane>> ranks)
{
    auto catalog = std::make_shared<store::Catalog>();
    for (int i = 0; i < 20; ++i)
        catalog->names.push_back("name " + std::to_string(i));
    for (int i = 0; i < 6; ++i) {
        store::UnitEntry unit;
        unit.name = "block." + std::to_string(i);
        catalog->units.push_back(unit);
    }
    store::AttemptInfo attempt;
    auto snapshot = std::make_shared<Snapshot>();
    for (size_t r = 0; r < ranks.size(); ++r) {
        store::ProcessInfo process;
        process.rank = static_cast<int64_t>(r);
        catalog->processes.push_back(process);
        attempt.ranks.push_back(static_cast<store::Index>(r));
        RankTimeline rank;
        rank.process = static_cast<store::Index>(r);
        rank.rank = static_cast<int64_t>(r);
        rank.steps = std::make_shared<const std::vector<store::StepInfo>>();
        for (Lane &lane : ranks[r]) {
            snapshot->spans += lane.spanCount();
            const TimeRange extent = lane.extent();
            snapshot->extent = snapshot->extent.isEmpty()
                                   ? extent
                                   : TimeRange{std::min(snapshot->extent.startNs, extent.startNs),
                                               std::max(snapshot->extent.endNs, extent.endNs)};
            rank.lanes.push_back(std::make_shared<const Lane>(std::move(lane)));
        }
        auto activity = std::make_shared<Activity>();
        updateActivity(*activity, rank.lanes, INT64_MIN);
        rank.activity = activity;
        snapshot->ranks.push_back(std::move(rank));
    }
    catalog->attempts.push_back(attempt);
    snapshot->catalog = catalog;
    snapshot->collectives = std::make_shared<const std::vector<store::CollectiveCall>>();
    return snapshot;
}

inline Lane laneWith(LaneKind kind, int64_t id, const std::string &name, const std::vector<SpanRecord> &records)
{
    Lane lane({id, name, kind, id});
    lane.append(records);
    return lane;
}

inline SpanRecord spanAt(int64_t startNs, int64_t durationNs, int32_t name = 0,
                         SpanCategory category = SpanCategory::Compute, int64_t id = 1)
{
    SpanRecord record;
    record.startNs = startNs;
    record.durationNs = durationNs;
    record.name = name;
    record.category = category;
    record.spanId = id;
    return record;
}

} // namespace shardscope::ui::timeline
