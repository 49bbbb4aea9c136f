// SPDX-License-Identifier: Apache-2.0
// A run that diverges, from end to end: it stops with a checkpoint of the last good step and names where the first NaN
// or infinity was, or leaves such steps out.
#include "core/launch/launch_plan.h"
#include "tests/cli/program.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class WithWorkerNan : public testing::Test
{
protected:
    void SetUp() override
    {
        if (const auto worker = launch::findWorker(); !worker)
            GTEST_SKIP() << "shardscope-worker is not built: " << worker.error().text;
        std::ofstream text(cli.folder() / "text.txt");
        for (int line = 0; line < 3000; ++line)
            text << line << " quick brown foxes jump over " << line % 97 << " lazy dogs\n";
    }
    /// Each update makes the weights 900,000 times as large: after some, products of them are infinite.
    std::vector<std::string> diverging(const std::string &onNan) const
    {
        std::vector<std::string> all = {
            "run",      "--preset", "tiny",    "--data", (cli.folder() / "text.txt").string(), "--ranks", "2",
            "--device", "cpu",      "--steps", "6"};
        for (const std::string &key :
             {std::string("run.name=a"), std::string("train.sequence_length=32"), std::string("train.micro_batch=1"),
              std::string("optimizer.kind=sgd"), std::string("optimizer.learning_rate=900"),
              std::string("optimizer.min_learning_rate=900"), std::string("optimizer.warmup_steps=0"),
              std::string("optimizer.clip_norm=0"), std::string("optimizer.weight_decay=1000"),
              "train.on_nan=" + onNan}) {
            all.emplace_back("--set");
            all.push_back(key);
        }
        return all;
    }
    json rows(const std::string &query)
    {
        const test::Finished sql = cli.run({"sql", "a", query, "--format", "json"});
        EXPECT_EQ(sql.exitCode, 0) << sql.errors;
        return json::parse(sql.out)["rows"];
    }
    test::CommandLine cli;
};

TEST_F(WithWorkerNan, stopsWithTheLastGoodStep)
{
    const test::Finished finished = cli.run(diverging("stop"));
    ASSERT_EQ(finished.exitCode, 1) << finished.out << finished.errors;
    const json broken = rows("select number, state, loss from step where state <> 'ok' group by number");
    ASSERT_EQ(broken.size(), 1U) << finished.out << finished.errors;
    const auto number = broken[0][0].get<int64_t>();
    EXPECT_THAT(finished.errors, AllOf(HasSubstr(fmt::format("of step {} is", number)), HasSubstr("appeared first in"),
                                       HasSubstr(fmt::format("checkpoint of step {}", number - 1))));
    const auto status = run::readStatus(cli.runFolder("a")).value();
    EXPECT_EQ(status.state, RunState::Failed);
    EXPECT_EQ(status.failure->exitCode, 1);
    EXPECT_THAT(status.failure->text, HasSubstr("appeared first in"));
    EXPECT_EQ(status.checkpointStep, number - 1);
    EXPECT_EQ(cli.newestCheckpoint("a")->step, number - 1);
    const json events = rows("select number, detail_json, text from event join step using (process_id, step_id) "
                             "where kind = 'nan'");
    ASSERT_EQ(events.size(), 2U) << "on both ranks";
    for (const json &event : events) {
        EXPECT_EQ(event[0], number);
        const json detail = json::parse(event[1].get<std::string>());
        EXPECT_EQ(detail["step"], number);
        for (const char *key : {"rank", "unit", "operation", "direction", "value"})
            EXPECT_FALSE(detail[key].is_null()) << key;
    }
}

TEST_F(WithWorkerNan, goesOnWithoutTheStep)
{
    const test::Finished finished = cli.run(diverging("skip"));
    ASSERT_EQ(finished.exitCode, 0) << finished.out << finished.errors;
    EXPECT_THAT(finished.out + finished.errors, AllOf(HasSubstr("appeared first in"), HasSubstr("was left out")));
    EXPECT_EQ(rows("select distinct number from step").size(), 6U);
    EXPECT_GE(rows("select distinct number from step where state in ('nan', 'inf')").size(), 1U);
    EXPECT_EQ(run::readStatus(cli.runFolder("a")).value().state, RunState::Done);
}
