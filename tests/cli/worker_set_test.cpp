// SPDX-License-Identifier: Apache-2.0
// `set` on a running job of two real ranks: the curve stays that of the untouched run, and the recording tells of it.
#include "core/launch/launch_plan.h"
#include "tests/cli/program.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;

class WithWorkerSet : public testing::Test
{
protected:
    void SetUp() override
    {
        if (const auto worker = launch::findWorker(); !worker)
            GTEST_SKIP() << "shardscope-worker is not built: " << worker.error().text;
        std::ofstream text(data());
        for (int line = 0; line < 3000; ++line)
            text << line << " quick brown foxes jump over " << line % 97 << " lazy dogs\n";
    }
    std::filesystem::path data() const { return cli.folder() / "a text.txt"; }
    std::vector<std::string> arguments(const std::string &name) const
    {
        return {"run",
                "--preset",
                "tiny",
                "--data",
                data().string(),
                "--ranks",
                "2",
                "--device",
                "cpu",
                "--set",
                "run.name=" + name,
                "--set",
                "train.sequence_length=32",
                "--set",
                "train.micro_batch=1",
                "--steps",
                "200"};
    }
    json rows(const std::string &name, const std::string &query)
    {
        const test::Finished sql = cli.run({"sql", name, query, "--format", "json"});
        EXPECT_EQ(sql.exitCode, 0) << sql.errors;
        return json::parse(sql.out)["rows"];
    }
    int64_t set(std::vector<std::string> what)
    {
        what.insert(what.begin(), {"set", "touched"});
        what.insert(what.end(), {"--format", "json"});
        const test::Finished finished = cli.run(what);
        EXPECT_EQ(finished.exitCode, 0) << finished.errors;
        return finished.exitCode == 0 ? json::parse(finished.out)["step"].get<int64_t>() : 0;
    }
    test::CommandLine cli;
};

TEST_F(WithWorkerSet, leavesTheCurveAsItWasAndIsRecorded)
{
    ASSERT_EQ(cli.run(arguments("untouched")).exitCode, 0);
    test::Program program = cli.start(arguments("touched"));
    cli.waitFor(
        "touched", [](const auto &s) { return s.state == RunState::Running && s.step > 2; }, 60s);
    const std::vector<int64_t> firstSteps = {
        set({"parallel.strategy=none"}), set({"parallel.strategy=grad_op", "--unit", "block.1.*:strategy=full"}),
        set({"parallel.prefetch=off", "parallel.reduce_every=step", "record.level=full"}), set({"--undo"})};
    const test::Finished finished = program.wait(120s);
    ASSERT_EQ(finished.exitCode, 0) << finished.errors << cli.run({"logs", "touched"}).out;
    EXPECT_THAT(finished.out, HasSubstr("parallel.strategy: full → none"));

    const std::string losses = "select distinct number, loss from step where loss is not null order by number";
    const json expected = rows("untouched", losses);
    const json found = rows("touched", losses);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i][1].get<double>() / expected[i][1].get<double>(), 1, 1e-4) << found[i][0];

    const json configs = rows("touched", "select first_step, origin, count(*) from config group by 1, 2 order by 1");
    ASSERT_EQ(configs.size(), 5u);
    for (size_t i = 0; i < firstSteps.size(); ++i) {
        EXPECT_EQ(configs[i + 1][0], firstSteps[i]);
        EXPECT_EQ(configs[i + 1][1], i == 3 ? "undo" : "user");
        EXPECT_EQ(configs[i + 1][2], 2) << "on both ranks";
        const json level = rows("touched", fmt::format("select distinct step.level, config.first_step from step join "
                                                       "config using (process_id, config_id) where number = {}",
                                                       firstSteps[i]));
        ASSERT_EQ(level.size(), 1u) << "the ranks agree";
        EXPECT_EQ(level[0][0], i == 2 ? "full" : "light");
        EXPECT_EQ(level[0][1], firstSteps[i]);
    }
    EXPECT_EQ(rows("touched", "select count(*) from event where kind = 'toggle'")[0][0], 8);
    EXPECT_GT(rows("touched", "select count(*) from allocation")[0][0], 0);
}
