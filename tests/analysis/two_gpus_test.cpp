// SPDX-License-Identifier: Apache-2.0
// What the analysis says of a run on two GPUs, against plain SQL over the same databases.
#include "profiler/analysis/analysis.h"
#include "real_recordings.h"
#include "tests/support/temporary_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>

namespace shardscope::analysis {
namespace {

/// Of each step: its number, its wall, and the union of what its streams did of the given categories. A span adds what
/// lies beyond the latest end before it.
std::string unionSql(const std::string &categories)
{
    return fmt::format(
        "WITH part AS (SELECT number, max(s.start_ns, t.start_ns) AS a, min(s.start_ns + duration_ns, t.end_ns) AS b "
        "FROM step t JOIN span s ON s.start_ns < t.end_ns AND s.start_ns + duration_ns > t.start_ns "
        "JOIN lane l ON l.lane_id = s.lane_id WHERE l.kind = 'stream' AND category IN ({})), "
        "ordered AS (SELECT *, max(b) OVER (PARTITION BY number ORDER BY a, b "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM part) "
        "SELECT sum(max(0, b - max(a, ifnull(before, a)))) FROM ordered GROUP BY number ORDER BY number",
        categories);
}

class TwoGpus : public testing::Test
{
protected:
    TwoGpus()
    {
        test::copyRecording("two_gpus", run());
        for (int rank = 0; rank < 2; ++rank)
            m_sql[size_t(rank)] = std::make_unique<test::PlainSql>(run(), rank);
        m_recording.emplace(std::move(store::Recording::open(run()).value()));
        m_analysis = analyze(*m_recording).value();
    }
    std::filesystem::path run() const { return m_folder.path() / "run"; }
    const test::PlainSql &sql(size_t rank) const { return *m_sql[rank]; }
    const Analysis &analysis() const { return m_analysis; }
    const store::Recording &recording() const { return *m_recording; }

private:
    test::TemporaryFolder m_folder;
    std::array<std::unique_ptr<test::PlainSql>, 2> m_sql;
    std::optional<store::Recording> m_recording;
    Analysis m_analysis;
};

TEST_F(TwoGpus, TheCategoriesOfEachStepAndRankSumToItsWall)
{
    for (int rank = 0; rank < 2; ++rank) {
        const auto steps = recording().steps(recording().catalog()->rankProcess(1, rank));
        ASSERT_TRUE(steps) << steps.error().text;
        const test::PlainSql &ofRank = sql(size_t(rank));
        const auto walls = ofRank.rows("SELECT end_ns - start_ns FROM step ORDER BY number");
        const auto compute = ofRank.rows(unionSql("'compute'"));
        const auto communication = ofRank.rows(unionSql("'compute', 'communication'"));
        const auto all = ofRank.rows(unionSql("'compute', 'communication', 'copy'"));
        ASSERT_EQ(steps->size(), 6u);
        ASSERT_EQ(all.size(), 6u);
        store::StepSums total;
        for (size_t i = 0; i < steps->size(); ++i) {
            SCOPED_TRACE(fmt::format("rank {}, step {}", rank, (*steps)[i].number));
            const store::StepSums &sums = (*steps)[i].sums.value();
            EXPECT_EQ(sums.wallNs, walls[i][0]);
            EXPECT_EQ(sums.computeNs, compute[i][0]);
            EXPECT_EQ(sums.exposedCommunicationNs, communication[i][0] - compute[i][0]);
            EXPECT_EQ(sums.exposedCopyNs, all[i][0] - communication[i][0]);
            EXPECT_EQ(sums.idleNs, walls[i][0] - all[i][0]);
            EXPECT_EQ(sums.idleHostNs + sums.idlePeerNs + sums.idleOtherNs, sums.idleNs);
            EXPECT_EQ(sums.exposedAllGatherNs + sums.exposedReduceScatterNs + sums.exposedAllReduceNs +
                          sums.exposedOtherCommunicationNs,
                      sums.exposedCommunicationNs);
            total.wallNs += sums.wallNs;
            total.computeNs += sums.computeNs;
            total.exposedCommunicationNs += sums.exposedCommunicationNs;
        }
        const store::StepSums &summary = analysis().ranks.at(size_t(rank)).all.sums.value();
        EXPECT_EQ(summary.wallNs, total.wallNs);
        EXPECT_EQ(summary.computeNs, total.computeNs);
        EXPECT_EQ(summary.exposedCommunicationNs, total.exposedCommunicationNs);
    }
}

TEST_F(TwoGpus, TheSlowestRankHasTheLongestWall)
{
    const int64_t walls[] = {sql(0).value("SELECT sum(end_ns - start_ns) FROM step"),
                             sql(1).value("SELECT sum(end_ns - start_ns) FROM step")};
    ASSERT_NE(walls[0], walls[1]);
    ASSERT_TRUE(analysis().slowest);
    EXPECT_EQ(analysis().ranks[*analysis().slowest].rank, walls[1] > walls[0] ? 1 : 0);
    for (size_t r = 0; r < 2; ++r)
        EXPECT_EQ(analysis().ranks[r].all.sums->wallNs, walls[r]);
}

TEST_F(TwoGpus, FindingsAreOfTheStepsAfterTheFirst)
{
    EXPECT_EQ(analysis().attempts.at(0).warmUpSteps, std::vector<int64_t>{1});
    double worst = 0;
    for (size_t r = 0; r < 2; ++r) {
        const auto rows = sql(r).rows("SELECT count(*), sum(end_ns - start_ns), sum(exposed_communication_ns), "
                                      "sum(tokens) FROM step WHERE number > 1");
        const RankFigures &steady = analysis().ranks[r].steady;
        EXPECT_EQ(steady.steps, rows[0][0]);
        EXPECT_EQ(steady.sums->wallNs, rows[0][1]);
        EXPECT_EQ(steady.sums->exposedCommunicationNs, rows[0][2]);
        EXPECT_DOUBLE_EQ(steady.tokensPerSecond.value(), double(rows[0][3]) * 1e9 / double(rows[0][1]));
        worst = std::max(worst, double(rows[0][2]) / double(rows[0][1]));
    }
    const auto exposed = std::find_if(analysis().findings.begin(), analysis().findings.end(),
                                      [](const Finding &finding) { return finding.cause == "exposed_communication"; });
    ASSERT_EQ(exposed != analysis().findings.end(), worst > kExposedShareLimit);
    if (exposed != analysis().findings.end()) {
        EXPECT_DOUBLE_EQ(exposed->share.value(), worst);
    }
}

TEST_F(TwoGpus, TheOthersWaitForTheRankThatStandsLeastInCollectives)
{
    std::array<int64_t, 2> standingNs{};
    for (size_t r = 0; r < 2; ++r)
        standingNs[r] = sql(r).value("SELECT sum(exposed_communication_ns + idle_peer_ns) / count(*) FROM step WHERE "
                                     "number > 1");
    const int last = standingNs[1] < standingNs[0] ? 1 : 0;
    ASSERT_NE(standingNs[0], standingNs[1]);
    ASSERT_TRUE(analysis().waitedFor);
    EXPECT_EQ(analysis().ranks[analysis().waitedFor->rank].rank, last);
    EXPECT_EQ(analysis().waitedFor->lateNs, std::abs(standingNs[1] - standingNs[0]));
    // Where it counts, it is the one whose part in collectives starts later.
    const int64_t wallNs = sql(0).value("SELECT sum(wall_ns) FROM step WHERE number > 1");
    const int64_t laterNs =
        sql(0).value("SELECT sum(d.started_ns - c.started_ns) FROM collective c JOIN other.collective d USING "
                     "(sequence) JOIN step s ON s.step_id = c.step_id WHERE s.number > 1");
    if (std::abs(laterNs) > wallNs / 10) {
        EXPECT_EQ(last, laterNs > 0 ? 1 : 0);
    }
}

TEST_F(TwoGpus, WaitAndTransferAreThoseOfBothRanksStartsAndEnds)
{
    // Transfer: from the later start to the later end. Wait: the earlier rank's, up to the later start.
    const auto rows = sql(0).texts(
        "SELECT c.operation, ifnull(u.name, ''), c.phase, count(*), sum(abs(d.started_ns - c.started_ns)), "
        "sum(max(c.ended_ns, d.ended_ns) - max(c.started_ns, d.started_ns)) FROM collective c "
        "JOIN other.collective d USING (sequence) LEFT JOIN unit u ON u.unit_id = c.unit_id GROUP BY 1, 2, 3");
    ASSERT_EQ(rows.size(), analysis().collectives.size());
    for (const auto &row : rows) {
        SCOPED_TRACE(fmt::format("{} {} {}", row[0], row[1], row[2]));
        const auto found = std::find_if(analysis().collectives.begin(), analysis().collectives.end(),
                                        [&row](const CollectiveSummary &summary) {
                                            return toText(summary.operation) == row[0] && summary.unit == row[1] &&
                                                   toText(*summary.phase) == row[2];
                                        });
        ASSERT_NE(found, analysis().collectives.end());
        EXPECT_EQ(found->count, std::stoll(row[3]));
        EXPECT_EQ(found->waitNs, std::stoll(row[4]));
        EXPECT_NEAR(found->meanNs.value(), std::stod(row[5]) / std::stod(row[3]), 1e-6);
    }
}

TEST_F(TwoGpus, ExposedIsWhatNoKernelRunsBeside)
{
    // Kernels of one stream follow each other, so what runs beside a call is the sum of their parts in it.
    const std::string query =
        "SELECT c.operation, ifnull(u.name, ''), c.phase, sum(c.ended_ns - c.started_ns - ifnull((SELECT "
        "sum(min(s.start_ns + duration_ns, c.ended_ns) - max(s.start_ns, c.started_ns)) FROM span s "
        "JOIN lane l ON l.lane_id = s.lane_id WHERE l.kind = 'stream' AND category = 'compute' AND s.start_ns < "
        "c.ended_ns "
        "AND s.start_ns + duration_ns > c.started_ns), 0)) FROM collective c LEFT JOIN unit u ON u.unit_id = c.unit_id "
        "GROUP BY 1, 2, 3";
    std::map<std::string, int64_t> expected, found;
    for (size_t r = 0; r < 2; ++r) {
        ASSERT_EQ(sql(r).value("SELECT count(DISTINCT lane_id) FROM span JOIN lane USING (lane_id) "
                               "WHERE kind = 'stream' AND category = 'compute'"),
                  1);
        for (const auto &row : sql(r).texts(query))
            expected[fmt::format("{} {} {}", row[0], row[1], row[2])] += std::stoll(row[3]);
    }
    for (const CollectiveSummary &summary : analysis().collectives)
        found[fmt::format("{} {} {}", toText(summary.operation), summary.unit, toText(*summary.phase))] =
            summary.exposedNs.value();
    EXPECT_EQ(found, expected);
}

TEST_F(TwoGpus, MemoryAtThePeakIsTheHighestSample)
{
    for (size_t r = 0; r < 2; ++r) {
        const auto peak =
            sql(r).rows("SELECT parameters_bytes, gathered_bytes, gradients_bytes, optimizer_bytes, "
                        "activations_bytes, communication_bytes, temporary_bytes, input_bytes, other_bytes, "
                        "rounding_bytes FROM memory WHERE is_step_peak ORDER BY allocated_bytes DESC, time_ns");
        const RankSummary &rank = analysis().ranks[r];
        EXPECT_EQ(rank.peakAllocatedBytes, sql(r).value("SELECT max(allocated_bytes) FROM memory"));
        const auto &bytes = rank.memoryAtPeakBytes.value();
        EXPECT_EQ(std::vector(bytes.begin(), bytes.end()), peak.at(0));
    }
}

} // namespace
} // namespace shardscope::analysis
