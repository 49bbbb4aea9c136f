// SPDX-License-Identifier: Apache-2.0
// A run that diverges, from end to end: it stops with a checkpoint of the last good step and names where the first NaN
// or infinity was, or leaves such steps out.
#include "tests/cli/with_worker.h"

#include <gmock/gmock.h>

using namespace shardscope;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

namespace {

/// On the CPU, or both ranks on the one GPU.
class WithWorkerNan : public test::WithWorker
{
protected:
    using test::WithWorker::WithWorker;
    /// Each update makes the weights 900,000 times as large: after some, products of them are infinite.
    test::Finished diverge(const std::string &onNan)
    {
        std::vector<std::string> more = {"--steps", "6"};
        for (const std::string key :
             {"optimizer.kind=sgd", "optimizer.learning_rate=900", "optimizer.min_learning_rate=900",
              "optimizer.warmup_steps=0", "optimizer.clip_norm=0", "optimizer.weight_decay=1000"})
            more.insert(more.end(), {"--set", key});
        more.insert(more.end(), {"--set", "train.on_nan=" + onNan});
        return cli.run(arguments("a", more));
    }
    void expectItStopsWithTheLastGoodStep();
    void expectItGoesOnWithoutTheStep();
};

class WithWorkerNanCuda : public WithWorkerNan
{
protected:
    WithWorkerNanCuda()
        : WithWorkerNan(DeviceKind::Cuda)
    {
    }
};

void WithWorkerNan::expectItStopsWithTheLastGoodStep()
{
    const test::Finished finished = diverge("stop");
    ASSERT_EQ(finished.exitCode, 1) << finished.out << finished.errors;
    const json broken = rows("a", "select number, state, loss from step where state <> 'ok' group by number");
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
    const json events = rows("a", "select number, detail_json, text from event join step using (process_id, step_id) "
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

void WithWorkerNan::expectItGoesOnWithoutTheStep()
{
    const test::Finished finished = diverge("skip");
    ASSERT_EQ(finished.exitCode, 0) << finished.out << finished.errors;
    EXPECT_THAT(finished.out + finished.errors, AllOf(HasSubstr("appeared first in"), HasSubstr("was left out")));
    EXPECT_EQ(rows("a", "select distinct number from step").size(), 6U);
    EXPECT_GE(rows("a", "select distinct number from step where state in ('nan', 'inf')").size(), 1U);
    EXPECT_EQ(run::readStatus(cli.runFolder("a")).value().state, RunState::Done);
}

} // namespace

TEST_F(WithWorkerNan, stopsWithTheLastGoodStep)
{
    expectItStopsWithTheLastGoodStep();
}

TEST_F(WithWorkerNan, goesOnWithoutTheStep)
{
    expectItGoesOnWithoutTheStep();
}

TEST_F(WithWorkerNanCuda, stopsWithTheLastGoodStep)
{
    expectItStopsWithTheLastGoodStep();
}

TEST_F(WithWorkerNanCuda, goesOnWithoutTheStep)
{
    expectItGoesOnWithoutTheStep();
}
