// SPDX-License-Identifier: Apache-2.0
// analyze and sql on the folder of a run on two GPUs.
#include "real_recordings.h"
#include "tests/cli/program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

TEST(TwoGpus, analyzeAndSqlAgree)
{
    test::CommandLine cli;
    const std::filesystem::path run = cli.folder() / "two gpus";
    test::copyRecording("two_gpus", run);
    const test::Finished analyzed = cli.run({"analyze", run.string(), "--format", "json"});
    ASSERT_EQ(analyzed.exitCode, 0) << analyzed.errors;
    EXPECT_EQ(analyzed.errors, "");
    const json analysis = json::parse(analyzed.out);
    EXPECT_TRUE(analysis["complete"].get<bool>());

    const test::Finished asked =
        cli.run({"sql", run.string(), "--format", "json",
                 "SELECT rank, count(*) AS steps, sum(wall_ns) AS wall_ns, sum(compute_ns) AS compute_ns, "
                 "sum(exposed_communication_ns) AS exposed_communication_ns, sum(idle_ns) AS idle_ns, "
                 "max(peak_allocated_bytes) AS peak_allocated_bytes FROM step JOIN process USING (process_id) "
                 "GROUP BY rank ORDER BY rank"});
    ASSERT_EQ(asked.exitCode, 0) << asked.errors;
    const json result = json::parse(asked.out);
    ASSERT_EQ(result["rows"].size(), 2u) << asked.out;
    for (size_t r = 0; r < 2; ++r) {
        for (size_t c = 0; c < result["columns"].size(); ++c) {
            const std::string key = result["columns"][c];
            EXPECT_EQ(result["rows"][r][c], analysis["ranks"][r][key]) << "rank " << r << ", " << key;
        }
        const test::PlainSql plain(run, static_cast<int>(r)); // both programs against SQLite itself
        EXPECT_EQ(analysis["ranks"][r]["wall_ns"], plain.value("SELECT sum(end_ns - start_ns) FROM step"));
    }

    const test::Finished text = cli.run({"analyze", run.string()});
    EXPECT_EQ(text.exitCode, 0) << text.errors;
    EXPECT_THAT(text.out,
                AllOf(HasSubstr("2 ranks, steps 1 to 6"), HasSubstr("NVIDIA H200"), HasSubstr("reduce_scatter")));
}
