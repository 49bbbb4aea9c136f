// SPDX-License-Identifier: GPL-3.0-or-later
// What the timeline makes of runs on real GPUs, against plain SQL over the same databases: two ranks on a card each,
// and eight that share one, as two groups that hold the model each (hybrid).
#include "loaded_recording.h"
#include "ui/timeline/collective_links.h"
#include "ui/timeline/coverage.h"

#include <map>
#include <set>

namespace shardscope::ui::timeline {
namespace {

class RealRecording : public testing::TestWithParam<const char *>
{
protected:
    void SetUp() override
    {
        LoadedRecording &loaded = s_loaded[GetParam()];
        if (!loaded.snapshot)
            loaded = load(GetParam());
        ASSERT_TRUE(loaded.snapshot);
        ASSERT_EQ(snapshot().ranks.size(), std::string_view(GetParam()) == "two_gpus" ? 2U : 8U);
    }
    static void TearDownTestSuite() { s_loaded.clear(); }

    static const test::PlainSql &sql(size_t rank) { return *s_loaded.at(GetParam()).sql.at(rank); }
    static const Snapshot &snapshot() { return *s_loaded.at(GetParam()).snapshot; }

private:
    static std::map<std::string, LoadedRecording> s_loaded;
};
std::map<std::string, LoadedRecording> RealRecording::s_loaded;

TEST_P(RealRecording, LanesAreThePhasesThenTheStreamsThenTheThreadsOfEachRank)
{
    for (size_t r = 0; r < snapshot().ranks.size(); ++r) {
        std::vector<test::PlainSql::Row> shown;
        for (const auto &lane : snapshot().ranks[r].lanes) {
            const TimeRange extent = lane->extent();
            shown.push_back({fmt::format("{}", toText(lane->info.kind)), lane->info.name,
                             std::to_string(lane->spanCount()), std::to_string(extent.startNs),
                             std::to_string(extent.endNs)});
        }
        EXPECT_EQ(shown,
                  sql(r).texts(fmt::format(
                      "SELECT lane.kind, lane.name, count(*), min(start_ns) - {0}, max(start_ns + duration_ns) - "
                      "{0} FROM lane JOIN span USING (lane_id) GROUP BY lane_id ORDER BY "
                      "instr('phase stream thread', kind), sort_order",
                      sql(r).originNs())));
        std::vector<std::string> names;
        for (const auto &row : shown)
            names.push_back(row[0] + ' ' + row[1]);
        EXPECT_EQ(std::vector(names.begin(), names.begin() + 3),
                  (std::vector<std::string>{"phase phases", "stream compute", "stream communication"}));
        EXPECT_EQ(std::count(names.begin(), names.end(), "thread train thread"), 1);
    }
}

TEST_P(RealRecording, KernelsAndPhasesLieInTheirStep)
{
    for (size_t r = 0; r < snapshot().ranks.size(); ++r) {
        const RankTimeline &rank = snapshot().ranks[r];
        std::map<int64_t, TimeRange> steps;
        for (const store::StepInfo &step : *rank.steps)
            steps[step.number] = {step.startNs, step.endNs.value()};
        ASSERT_EQ(int64_t(steps.size()), sql(r).value("SELECT count(*) FROM step"));
        ASSERT_GE(steps.size(), 4u);
        int64_t inSteps = 0;
        for (const auto &lane : rank.lanes) {
            if (lane->info.kind == LaneKind::Thread)
                continue; // the host runs ahead of the device
            for (const SpanTrack &track : lane->tracks()) {
                track.forEach(track.begin(), track.end(), [&](SpanPosition p) {
                    const SpanRecord record = track.record(p);
                    if (record.step == kNone)
                        return;
                    ++inSteps;
                    const TimeRange &step = steps.at(record.step);
                    EXPECT_TRUE(record.startNs >= step.startNs && record.endNs() <= step.endNs)
                        << snapshot().nameOf(record.name) << " of step " << record.step;
                });
            }
        }
        EXPECT_EQ(inSteps, sql(r).value("SELECT count(*) FROM span JOIN lane USING (lane_id) "
                                        "WHERE kind <> 'thread' AND step_id IS NOT NULL"));
    }
}

TEST_P(RealRecording, ColumnsOfTheWholeRecordingLoseNoBusyTime)
{
    for (const int columns : {1, 1094, 3840}) {
        for (size_t r = 0; r < snapshot().ranks.size(); ++r) {
            std::vector<test::PlainSql::Row> shown;
            for (const auto &lane : snapshot().ranks[r].lanes) {
                Busy busy;
                for (const SpanTrack &track : lane->tracks()) {
                    for (const Column &column : coverageOf(track, snapshot().extent, columns))
                        busy += column.busy;
                }
                for (size_t c = 0; c < kCategories; ++c) {
                    if (busy.ns[c] > 0)
                        shown.push_back({std::to_string(lane->info.laneId),
                                         std::string(toText(static_cast<SpanCategory>(c))),
                                         std::to_string(busy.ns[c])});
                }
            }
            std::sort(shown.begin(), shown.end());
            EXPECT_EQ(shown, sql(r).texts("SELECT CAST(lane_id AS TEXT), category, sum(duration_ns) FROM span "
                                          "GROUP BY 1, 2 ORDER BY 1, 2"))
                << columns << " columns, rank " << r;
        }
    }
}

/// The recorder wrote these sums while the run went on; the timeline makes its own from the spans.
TEST_P(RealRecording, TheStepsSumsAreThoseOfTheRecorder)
{
    for (size_t r = 0; r < snapshot().ranks.size(); ++r) {
        const auto rows =
            sql(r).rows("SELECT wall_ns, compute_ns, communication_ns, exposed_communication_ns, copy_ns, "
                        "exposed_copy_ns, idle_ns FROM step ORDER BY number");
        ASSERT_EQ(rows.size(), snapshot().ranks[r].steps->size());
        for (size_t i = 0; i < rows.size(); ++i) {
            const store::StepInfo &step = (*snapshot().ranks[r].steps)[i];
            const ActivitySums sums = sumsOf(*snapshot().ranks[r].activity, {step.startNs, step.endNs.value()});
            EXPECT_EQ((std::vector<int64_t>{sums.wallNs, sums.computeNs, sums.communicationNs,
                                            sums.exposedCommunicationNs, sums.copyNs, sums.exposedCopyNs, sums.idleNs}),
                      rows[i])
                << "rank " << r << ", step " << step.number;
        }
    }
}

/// Of every call the spans of its communicator's ranks and no others, where their databases have them.
TEST_P(RealRecording, ACallIsLinkedInTheRanksOfItsGroup)
{
    // By communicator's uid and sequence: the ranks, and when the last one's part began and ended.
    std::map<std::pair<std::string, int64_t>, std::map<size_t, TimeRange>> recorded;
    std::map<std::string, size_t> sizes;
    for (size_t r = 0; r < snapshot().ranks.size(); ++r) {
        for (const auto &row :
             sql(r).texts("SELECT uid, sequence, started_ns, ended_ns, json_array_length(members_json) "
                          "FROM collective JOIN communicator USING (communicator_id)")) {
            recorded[{row[0], std::stoll(row[1])}][r] = {std::stoll(row[2]) - sql(r).originNs(),
                                                         std::stoll(row[3]) - sql(r).originNs()};
            sizes[row[0]] = std::stoull(row[4]);
        }
    }
    ASSERT_EQ(recorded.size(), snapshot().collectives->size());
    std::set<size_t> groups;
    for (const store::CollectiveCall &call : *snapshot().collectives) {
        SCOPED_TRACE(fmt::format("{} {}", call.communicator, call.sequence));
        const auto &ranks = recorded.at({call.communicator, call.sequence});
        groups.insert(ranks.size());
        EXPECT_EQ(ranks.size(), sizes.at(call.communicator));
        EXPECT_EQ(call.size, int64_t(ranks.size()));
        EXPECT_TRUE(call.operationsAgree);
        std::map<size_t, TimeRange> shown;
        for (const SpanRef &span : linkedSpans(snapshot(), call)) {
            const SpanRecord record = snapshot().record(span);
            EXPECT_TRUE(snapshot().lane(span).info.name.starts_with("communication"));
            shown[span.rank] = {record.startNs, record.endNs()};
        }
        ASSERT_EQ(shown.size(), ranks.size());
        for (const auto &[rank, range] : ranks) {
            EXPECT_EQ(shown.at(rank).startNs, range.startNs);
            EXPECT_EQ(shown.at(rank).endNs, range.endNs);
        }
    }
    EXPECT_EQ(groups, snapshot().ranks.size() == 2 ? std::set<size_t>{2} : (std::set<size_t>{2, 4, 8}));
}

/// The sums over replicas run beside the gathers and reductions of the shards: in a lane of their own, at the same
/// time.
TEST_P(RealRecording, GroupsOfReplicasHaveALaneOfTheirOwn)
{
    for (size_t r = 0; r < snapshot().ranks.size(); ++r) {
        std::map<int64_t, std::set<int64_t>> sizesOfLane;
        for (const auto &row :
             sql(r).rows("SELECT s.lane_id, m.size FROM span s JOIN lane USING (lane_id) JOIN collective "
                         "USING (collective_id) JOIN communicator m USING (communicator_id) WHERE kind "
                         "= 'stream' AND s.step_id IS NOT NULL AND category = 'communication'"))
            sizesOfLane[row[0]].insert(row[1]);
        if (snapshot().ranks.size() == 2) {
            EXPECT_EQ(sizesOfLane.size(), 1U);
            continue;
        }
        std::set<std::set<int64_t>> lanes;
        for (const auto &[lane, sizes] : sizesOfLane)
            lanes.insert(sizes);
        EXPECT_EQ(lanes, (std::set<std::set<int64_t>>{{2}, {4, 8}}));
        EXPECT_GT(sql(r).value("SELECT count(*) FROM collective a JOIN collective b ON a.started_ns < b.ended_ns AND "
                               "b.started_ns < a.ended_ns WHERE a.operation = 'all_reduce' AND b.operation = "
                               "'reduce_scatter' AND a.step_id IS NOT NULL"),
                  0);
    }
}

INSTANTIATE_TEST_SUITE_P(Runs, RealRecording, testing::Values("two_gpus", "eight_ranks"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace shardscope::ui::timeline
