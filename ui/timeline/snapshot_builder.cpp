// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/snapshot_builder.h"

#include "profiler/store/recording.h"
#include "ui/timeline/activity.h"

#include <map>
#include <set>
#include <tuple>

namespace shardscope::ui::timeline {

namespace {

constexpr int64_t kNever = INT64_MAX;
/// How long a rank's part of a collective may come after another's: the reader joins no farther.
constexpr int64_t kJoinNs = 30'000'000'000;

/// The number from which on steps may have changed: those after the last one that has lost its spans. The retention
/// goes on where it was, and what it has done is done.
int64_t firstThatMayChange(const RankTimeline &old)
{
    const auto lastDeleted =
        std::find_if(old.steps->rbegin(), old.steps->rend(), [](const auto &step) { return !step.spansKept; });
    return lastDeleted == old.steps->rend() ? 0 : lastDeleted->number + 1;
}

class Builder
{
public:
    Builder(store::Recording &recording, std::shared_ptr<const Snapshot> before, const store::CancelToken &cancel,
            const Progress &progress)
        : m_recording(recording)
        , m_before(std::move(before))
        , m_cancel(cancel)
        , m_progress(progress)
    {
    }

    Result<std::shared_ptr<const Snapshot>> build()
    {
        auto catalog = m_recording.refresh();
        if (!catalog)
            return tl::unexpected(catalog.error());
        m_now->catalog = *catalog;
        if (auto done = readTail(); !done)
            return tl::unexpected(done.error());
        if (auto done = readRanks(); !done)
            return tl::unexpected(done.error());
        if (auto done = readCollectives(); !done)
            return tl::unexpected(done.error());
        finish();
        return std::shared_ptr<const Snapshot>(m_now);
    }

private:
    Result<> readTail();
    Result<> readRanks();
    Result<> readRank(store::Index process);
    Result<> readLane(const store::LaneInfo &info, store::Index index, const RankTimeline *old, int64_t fromNs,
                      RankTimeline &rank);
    Result<> readSteps(const RankTimeline *old, RankTimeline &rank);
    Result<> readCollectives();
    void mergeCollectives(std::vector<store::CollectiveCall> &calls, int64_t fromNs) const;
    bool isForgotten(const store::CollectivePart &part) const;
    void indexCollectives();
    void finish();
    const RankTimeline *oldRank(store::Index process) const;

    store::Recording &m_recording;
    std::shared_ptr<const Snapshot> m_before;
    const store::CancelToken &m_cancel;
    const Progress &m_progress;
    std::shared_ptr<Snapshot> m_now = std::make_shared<Snapshot>();
    std::map<store::Index, int64_t> m_changedFromNs;            ///< by process
    std::map<store::Index, std::vector<TimeRange>> m_forgotten; ///< by process, ascending
    int64_t m_firstChangeNs = kNever;
    int64_t m_lastEndNs = 0;
    size_t m_lanesDone = 0;
};

Result<> Builder::readTail()
{
    auto tails = m_recording.tail(m_before ? m_before->seenFlushes : std::vector<int64_t>{});
    if (!tails)
        return tl::unexpected(tails.error());
    m_now->seenFlushes.assign(m_now->catalog->processes.size(), 0);
    if (m_before)
        std::copy(m_before->seenFlushes.begin(), m_before->seenFlushes.end(), m_now->seenFlushes.begin());
    for (const store::Tail &tail : *tails) {
        m_now->seenFlushes[static_cast<size_t>(tail.process)] = tail.lastFlushId;
        m_lastEndNs = std::max(m_lastEndNs, tail.lastEndNs.value_or(0));
        if (!tail.firstStartNs)
            continue;
        m_changedFromNs[tail.process] = *tail.firstStartNs;
        m_firstChangeNs = std::min(m_firstChangeNs, *tail.firstStartNs);
    }
    return {};
}

Result<> Builder::readRanks()
{
    for (const store::AttemptInfo &attempt : m_now->catalog->attempts) {
        for (const store::Index process : attempt.ranks) {
            if (process == store::kNone)
                continue;
            if (auto done = readRank(process); !done)
                return done;
        }
    }
    return {};
}

const RankTimeline *Builder::oldRank(store::Index process) const
{
    if (!m_before)
        return nullptr;
    for (const RankTimeline &rank : m_before->ranks) {
        if (rank.process == process)
            return &rank;
    }
    return nullptr;
}

/// Ranges of steps that had spans before and have none now.
std::vector<TimeRange> forgottenSteps(const RankTimeline &old, const std::vector<store::StepInfo> &steps)
{
    std::vector<TimeRange> ranges;
    auto before = old.steps->begin();
    for (const store::StepInfo &step : steps) {
        while (before != old.steps->end() && before->number < step.number)
            ++before;
        if (before == old.steps->end())
            break;
        if (before->number == step.number && before->spansKept && !step.spansKept && step.endNs)
            ranges.push_back({step.startNs, *step.endNs});
    }
    return ranges;
}

std::shared_ptr<const Activity> activityOf(const RankTimeline *old, const RankTimeline &now,
                                           const std::vector<TimeRange> &forgotten, int64_t fromNs)
{
    auto activity = old ? std::make_shared<Activity>(*old->activity) : std::make_shared<Activity>();
    if (old) {
        for (const TimeRange &range : forgotten)
            activity->eraseStartingIn(range);
        for (const auto &lane : old->lanes)
            fromNs = std::min(fromNs, lane->openFromNs);
    }
    updateActivity(*activity, now.lanes, fromNs);
    return activity;
}

Result<> Builder::readSteps(const RankTimeline *old, RankTimeline &rank)
{
    const int64_t fromNumber = old ? firstThatMayChange(*old) : 0;
    auto read = m_recording.steps(rank.process, fromNumber);
    if (!read)
        return tl::unexpected(read.error());
    auto steps = std::make_shared<std::vector<store::StepInfo>>();
    if (old)
        std::copy_if(old->steps->begin(), old->steps->end(), std::back_inserter(*steps),
                     [fromNumber](const auto &step) { return step.number < fromNumber; });
    steps->insert(steps->end(), read->begin(), read->end());
    rank.steps = std::move(steps);
    if (old)
        m_forgotten[rank.process] = forgottenSteps(*old, *rank.steps);
    return {};
}

Result<> Builder::readRank(store::Index process)
{
    const store::ProcessInfo &info = m_now->catalog->processes[static_cast<size_t>(process)];
    const RankTimeline *old = oldRank(process);
    const auto changed = m_changedFromNs.find(process);
    if (old && changed == m_changedFromNs.end()) {
        m_now->ranks.push_back(*old);
        m_lanesDone += old->lanes.size();
        return {};
    }
    RankTimeline rank;
    rank.process = process;
    rank.attempt = info.attempt;
    rank.rank = info.rank;
    if (auto done = readSteps(old, rank); !done)
        return done;
    const int64_t fromNs = old ? changed->second : store::kBeginning;
    const auto &lanes = m_now->catalog->lanes;
    for (size_t i = 0; i < lanes.size(); ++i) {
        if (lanes[i].process != process)
            continue;
        if (auto done = readLane(lanes[i], static_cast<store::Index>(i), old, fromNs, rank); !done)
            return done;
    }
    std::stable_sort(rank.lanes.begin(), rank.lanes.end(), [](const auto &a, const auto &b) {
        return std::pair(a->info.kind != LaneKind::Phase, a->info.sortOrder) <
               std::pair(b->info.kind != LaneKind::Phase, b->info.sortOrder);
    });
    rank.activity = activityOf(old, rank, m_forgotten[process], fromNs);
    m_now->ranks.push_back(std::move(rank));
    return {};
}

Result<> Builder::readLane(const store::LaneInfo &info, store::Index index, const RankTimeline *old, int64_t fromNs,
                           RankTimeline &rank)
{
    if (m_cancel.cancelled())
        return fail("cancelled");
    std::shared_ptr<const Lane> known;
    for (size_t i = 0; old && i < old->lanes.size(); ++i) {
        if (old->lanes[i]->info.laneId == info.laneId)
            known = old->lanes[i];
    }
    const int64_t laneFromNs = known ? std::min(fromNs, known->openFromNs) : store::kBeginning;
    auto columns = m_recording.spansStarting(index, laneFromNs, store::kEnd, m_cancel);
    if (!columns)
        return tl::unexpected(columns.error());
    Lane lane = known ? *known : Lane({info.laneId, info.name, info.kind, info.sortOrder});
    lane.eraseStartingIn({laneFromNs, INT64_MAX});
    for (const TimeRange &range : m_forgotten[rank.process])
        lane.eraseStartingIn(range);
    const std::vector<SpanRecord> records = recordsOf(*columns, m_lastEndNs);
    const auto open = std::find_if(records.begin(), records.end(), [](const SpanRecord &r) { return r.open; });
    lane.openFromNs = open == records.end() ? INT64_MAX : open->startNs;
    lane.append(records);
    rank.lanes.push_back(std::make_shared<const Lane>(std::move(lane)));
    ++m_lanesDone;
    if (m_progress)
        m_progress(static_cast<double>(m_lanesDone) / static_cast<double>(m_now->catalog->lanes.size()));
    return {};
}

Result<> Builder::readCollectives()
{
    if (m_before && m_firstChangeNs == kNever) {
        m_now->collectives = m_before->collectives;
        return {};
    }
    // A peer's part of a changed call may be older than the change.
    const int64_t fromNs = m_before ? m_firstChangeNs - kJoinNs : store::kBeginning;
    auto calls = m_recording.collectives(fromNs, store::kEnd, m_cancel);
    if (!calls)
        return tl::unexpected(calls.error());
    if (m_cancel.cancelled())
        return fail("cancelled");
    if (m_before)
        mergeCollectives(*calls, fromNs);
    m_now->collectives = std::make_shared<const std::vector<store::CollectiveCall>>(std::move(*calls));
    indexCollectives();
    return {};
}

bool Builder::isForgotten(const store::CollectivePart &part) const
{
    const auto ranges = m_forgotten.find(part.process);
    return ranges != m_forgotten.end() &&
           std::any_of(ranges->second.begin(), ranges->second.end(),
                       [&](const TimeRange &range) { return range.contains(part.enqueuedNs); });
}

/// Puts the calls from before fromNs, as they were known, in front of those that were read again.
void Builder::mergeCollectives(std::vector<store::CollectiveCall> &calls, int64_t fromNs) const
{
    using Key = std::tuple<int64_t, std::string, int64_t>;
    const auto keyOf = [](const store::CollectiveCall &call) {
        return Key(call.attempt, call.communicator, call.sequence);
    };
    const auto isOld = [fromNs](const store::CollectivePart &part) { return part.enqueuedNs < fromNs; };
    std::set<Key> across; // those with parts on both sides
    for (const store::CollectiveCall &call : calls) {
        if (std::any_of(call.parts.begin(), call.parts.end(), isOld))
            across.insert(keyOf(call));
    }
    std::vector<store::CollectiveCall> merged;
    merged.reserve(m_before->collectives->size() + calls.size());
    for (const store::CollectiveCall &call : *m_before->collectives) {
        if (!std::all_of(call.parts.begin(), call.parts.end(), isOld) ||
            (!across.empty() && across.contains(keyOf(call))))
            continue;
        if (!std::all_of(call.parts.begin(), call.parts.end(), [this](const auto &part) { return isForgotten(part); }))
            merged.push_back(call);
    }
    std::move(calls.begin(), calls.end(), std::back_inserter(merged));
    calls = std::move(merged);
}

void Builder::indexCollectives()
{
    std::map<store::Index, std::unordered_map<int32_t, uint32_t>> callOf;
    for (uint32_t i = 0; i < m_now->collectives->size(); ++i) {
        for (const store::CollectivePart &part : (*m_now->collectives)[i].parts)
            callOf[part.process][static_cast<int32_t>(part.collectiveId)] = i;
    }
    for (RankTimeline &rank : m_now->ranks) {
        rank.callOf = std::make_shared<const std::unordered_map<int32_t, uint32_t>>(std::move(callOf[rank.process]));
    }
}

void Builder::finish()
{
    bool first = true;
    const auto include = [&](int64_t startNs, int64_t endNs) {
        TimeRange &extent = m_now->extent;
        extent = first ? TimeRange{startNs, endNs}
                       : TimeRange{std::min(extent.startNs, startNs), std::max(extent.endNs, endNs)};
        first = false;
    };
    for (const RankTimeline &rank : m_now->ranks) {
        for (const auto &lane : rank.lanes) {
            m_now->spans += lane->spanCount();
            if (lane->spanCount() > 0)
                include(lane->extent().startNs, lane->extent().endNs);
        }
        for (const store::StepInfo &step : *rank.steps)
            include(step.startNs, step.endNs.value_or(step.startNs));
    }
    m_now->deleted = deletedStepsOf(m_now->ranks);
    m_now->newest = m_now->extent;
    if (!m_now->deleted.empty() && m_now->deleted.back().range.endNs < m_now->extent.endNs)
        m_now->newest.startNs = m_now->deleted.back().range.endNs;
}

} // namespace

std::vector<SpanRecord> recordsOf(const store::SpanColumns &columns, int64_t nowNs)
{
    std::vector<SpanRecord> records(columns.size());
    for (size_t i = 0; i < records.size(); ++i) {
        SpanRecord &record = records[i];
        record.startNs = columns.startNs[i];
        record.open = columns.durationNs[i] < 0;
        record.durationNs = record.open ? std::max<int64_t>(0, nowNs - record.startNs) : columns.durationNs[i];
        record.spanId = columns.spanId[i];
        record.name = columns.name[i];
        record.category = columns.category[i];
        if (columns.phase[i] >= 0)
            record.phase = static_cast<Phase>(columns.phase[i]);
        record.step = columns.step[i];
        record.unit = columns.unit[i];
        record.collective = static_cast<int32_t>(columns.collectiveId[i]);
        record.bytes = columns.bytes[i];
    }
    std::sort(records.begin(), records.end(), comesBefore);
    return records;
}

Result<std::shared_ptr<const Snapshot>> readSnapshot(store::Recording &recording,
                                                     const std::shared_ptr<const Snapshot> &before,
                                                     const store::CancelToken &cancel, const Progress &progress)
{
    return Builder(recording, before, cancel, progress).build();
}

} // namespace shardscope::ui::timeline
