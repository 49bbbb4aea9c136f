// SPDX-License-Identifier: Apache-2.0
// What the analysis says of eight ranks in two groups (hybrid) that share a card, against plain SQL over their
// databases.
#include "profiler/analysis/analysis.h"
#include "real_recordings.h"
#include "tests/support/temporary_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace shardscope::analysis {
namespace {

constexpr int kRanks = 8;

/// Where a call's ranks stand.
struct Call
{
    std::string what; ///< communicator, operation, unit, phase
    int64_t ranks = 0;
    int64_t startsNs = 0; ///< the sum of all starts
    int64_t lastStartNs = std::numeric_limits<int64_t>::min();
    int64_t lastEndNs = std::numeric_limits<int64_t>::min();
};

TEST(EightRanks, WaitAndTransferAreThoseOfEachGroup)
{
    const test::TemporaryFolder folder;
    const std::filesystem::path run = folder.path() / "run";
    test::copyRecording("eight_ranks", run);
    std::map<std::pair<std::string, int64_t>, Call> calls; // by uid and sequence
    for (int rank = 0; rank < kRanks; ++rank) {
        const test::PlainSql sql(run / "attempt-1" / fmt::format("rank-{}.sqlite", rank));
        for (const auto &row : sql.texts("SELECT uid, sequence, operation, ifnull(unit.name, ''), phase, started_ns, "
                                         "ended_ns FROM collective JOIN communicator USING (communicator_id) LEFT "
                                         "JOIN unit USING (unit_id)")) {
            Call &call = calls[{row[0], std::stoll(row[1])}];
            call.what = fmt::format("{} {} {} {}", row[0], row[2], row[3], row[4]);
            ++call.ranks;
            call.startsNs += std::stoll(row[5]);
            call.lastStartNs = std::max<int64_t>(call.lastStartNs, std::stoll(row[5]));
            call.lastEndNs = std::max<int64_t>(call.lastEndNs, std::stoll(row[6]));
        }
    }
    // Calls, wait and transfer of what has the same communicator, operation, unit and phase.
    std::map<std::string, std::array<int64_t, 3>> expected;
    for (const auto &[key, call] : calls) {
        std::array<int64_t, 3> &sums = expected[call.what];
        ++sums[0];
        sums[1] += call.ranks * call.lastStartNs - call.startsNs;
        sums[2] += call.lastEndNs - call.lastStartNs;
    }
    auto recording = store::Recording::open(run);
    ASSERT_TRUE(recording) << recording.error().text;
    const auto analysis = analyze(*recording);
    ASSERT_TRUE(analysis) << analysis.error().text;
    std::map<std::string, std::array<int64_t, 3>> shown;
    for (const CollectiveSummary &summary : analysis->collectives)
        shown[fmt::format("{} {} {} {}", summary.communicator, toText(summary.operation), summary.unit,
                          toText(*summary.phase))] = {
            summary.count, summary.waitNs.value(),
            std::llround(summary.meanNs.value() * static_cast<double>(summary.count))};
    EXPECT_EQ(shown.size(), analysis->collectives.size());
    EXPECT_EQ(shown, expected);
}

} // namespace
} // namespace shardscope::analysis
