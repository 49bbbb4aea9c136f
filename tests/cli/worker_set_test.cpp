// SPDX-License-Identifier: Apache-2.0
// `set` on a running job of two real ranks, through every mode: the curve stays that of the untouched run, memory
// changes as it should and back, and the recording tells of it.
#include "core/config/unit_rules.h"
#include "profiler/analysis/change_effect.h"
#include "tests/cli/changing_run.h"

#include <gmock/gmock.h>

using namespace shardscope;
using nlohmann::json;

namespace {

class WithWorkerSet : public test::ChangingRun
{
protected:
    using test::ChangingRun::ChangingRun;

    int64_t make(const test::Change &change) override
    {
        std::vector<std::string> words = {"set", kName, "--format", "json"};
        if (change.isUndo())
            words.emplace_back("--undo");
        for (const auto &[key, value] : change.values) {
            if (change.unit.empty())
                words.push_back(key + "=" + value);
            else
                words.insert(words.end(), {"--unit", fmt::format("{}.*:{}={}", change.unit, ruleKey(key), value)});
        }
        const test::Finished finished = cli.run(words);
        EXPECT_EQ(finished.exitCode, 0) << finished.errors;
        const json step = finished.exitCode == 0 ? json::parse(finished.out)["step"] : json();
        EXPECT_TRUE(step.is_number()) << finished.out;
        return step.is_number() ? step.get<int64_t>() : 0;
    }
    static std::string ruleKey(const std::string &path)
    {
        for (const config::RuleKey &key : config::ruleKeys()) {
            if (key.key && key.key->path == path)
                return std::string(key.name);
        }
        ADD_FAILURE() << "no rule sets " << path;
        return {};
    }
    /// The figures of the card before → after, against medians taken by SQL.
    void expectTheEffectOf(const std::string &name)
    {
        const auto effect = analysis::lastChangeEffect(*m_recording).value();
        ASSERT_TRUE(effect);
        EXPECT_EQ(effect->firstStep, firstStep(name));
        std::map<std::string, test::Sides> sides = figuresAround(name);
        for (const auto &[figure, found] :
             {std::pair{"step", &effect->stepNs}, {"peak", &effect->peakBytes}, {"exposed", &effect->exposedNs}}) {
            SCOPED_TRACE(figure);
            ASSERT_TRUE(found->before && found->after);
            test::Sides &expected = sides[figure];
            expected.after.resize(std::min<size_t>(expected.after.size(), analysis::kStepsAtMost));
            EXPECT_EQ(found->before->steps, expected.before.size());
            EXPECT_EQ(found->after->steps, expected.after.size());
            EXPECT_DOUBLE_EQ(found->before->median, test::median(expected.before));
            EXPECT_DOUBLE_EQ(found->after->median, test::median(expected.after));
        }
        EXPECT_GT(effect->peakBytes.after->median, effect->peakBytes.before->median) << "every rank holds all now";
        EXPECT_TRUE(effect->peakBytes.significant());
    }
    void expectEveryModeToBeWell()
    {
        start();
        goThroughEveryMode();
        stop();
        if (HasFailure())
            return;
        expectAllToBeWell();
        expectTheEffectOf("compared");
    }
};

class WithWorkerSetCuda : public WithWorkerSet
{
protected:
    WithWorkerSetCuda()
        : WithWorkerSet(DeviceKind::Cuda)
    {
    }
};

TEST_F(WithWorkerSet, everyModeLeavesTheCurveAsItWasAndNothingBehind)
{
    expectEveryModeToBeWell();
}

TEST_F(WithWorkerSetCuda, everyModeLeavesTheCurveAsItWasAndNothingBehind)
{
    expectEveryModeToBeWell();
}

} // namespace
