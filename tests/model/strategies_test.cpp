// SPDX-License-Identifier: Apache-2.0
// Strategies by bucket, groups of ranks, and changes of both between two steps: all train as one rank does.
#include "core/model/decoder.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"
#include "tests/model/training_curve.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <mutex>
#include <set>

namespace shardscope {

using config::RunConfiguration;
using test::Curve;
using test::expectSameCurve;
using test::train;
using test::TrainingCase;
using testing::HasSubstr;

static TrainingCase caseOf(int worldSize, Strategy strategy)
{
    TrainingCase test;
    test.worldSize = worldSize;
    test.configuration.parallel.strategy = strategy;
    test.configuration.optimizer.clipNorm = 0.25;
    return test;
}

static const Curve &oneRank(Precision precision)
{
    static std::map<Precision, Curve> curves;
    TrainingCase test = caseOf(1, Strategy::Full);
    test.configuration.precision.compute = precision;
    if (!curves.contains(precision))
        curves[precision] = train(test);
    return curves[precision];
}

// 4 ranks in groups of 2 are in the grid.
TEST(Strategies, hybridInOtherGroupsTrainsAsOneRankDoes)
{
    at::set_num_threads(1);
    const struct
    {
        int worldSize;
        int group;
        Precision precision;
        ReduceEvery every;
    } cases[] = {{2, 1, Precision::Bf16, ReduceEvery::Step},
                 {4, 1, Precision::Fp32, ReduceEvery::MicroBatch},
                 {6, 3, Precision::Fp32, ReduceEvery::Step},
                 {6, 2, Precision::Bf16, ReduceEvery::MicroBatch}};
    for (const auto &[worldSize, group, precision, every] : cases) {
        SCOPED_TRACE(fmt::format("{} ranks in groups of {}", worldSize, group));
        TrainingCase test = caseOf(worldSize, Strategy::Hybrid);
        test.accumulation = worldSize == 4 ? 3 : 2; // of 12 sequences
        test.configuration.parallel.shardGroup = group;
        test.configuration.parallel.reduceEvery = every;
        test.configuration.precision.compute = precision;
        expectSameCurve(train(test), oneRank(precision), precision);
    }
}

TEST(Strategies, reshardingToASmallerGroupChangesNoBit)
{
    at::set_num_threads(1);
    TrainingCase test = caseOf(4, Strategy::Full);
    test.steps = test::kStepsToTheBit;
    test.configuration.precision.compute = Precision::Bf16;
    const Curve whole = train(test);
    for (const int group : {1, 2}) {
        test.configuration.parallel.reshardGroup = group;
        expectEqualToTheBit(train(test), whole);
    }
}

TEST(Strategies, prefetchChangesNoBit)
{
    at::set_num_threads(1);
    TrainingCase test = caseOf(2, Strategy::Full);
    test.steps = test::kStepsToTheBit;
    const Curve plain = train(test);
    for (const Prefetch prefetch : {Prefetch::Off, Prefetch::Post, Prefetch::Pre}) {
        for (const int64_t depth : {1, 3}) {
            for (const int64_t limit : {0, 30'000}) {
                test.configuration.parallel.prefetch = prefetch;
                test.configuration.parallel.prefetchDepth = depth;
                test.configuration.parallel.gatherLimitBytes = limit;
                expectEqualToTheBit(train(test), plain);
            }
        }
    }
}

/// An embedding `none`, linear weights `full`, norms `grad_op` in one model.
static std::vector<config::UnitRule> mixedRules()
{
    return {{.match = "embedding.*", .settings = {{"parallel.strategy", "none"}}},
            {.kind = ParameterKind::Norm, .settings = {{"parallel.strategy", "grad_op"}}},
            {.match = "block.1.ffn.*", .wrap = true},
            {.match = "block.0.attention.k.*", .settings = {{"parallel.strategy", "none"}}}};
}

// Weights that are not tied are in the grid.
TEST(Strategies, mixedInAModelOfTiedWeights)
{
    at::set_num_threads(1);
    TrainingCase test = caseOf(1, Strategy::Full);
    test.tied = true;
    const Curve reference = train(test);
    test.worldSize = 3;
    test.configuration.units = mixedRules();
    expectSameCurve(train(test), reference, Precision::Fp32);
}

TEST(Strategies, wrappedAndIgnoredPartsOfEveryUnitTrainAsTheWholeDoes)
{
    at::set_num_threads(1);
    for (const bool tied : {false, true}) {
        TrainingCase test = caseOf(1, Strategy::Full);
        test.tied = tied;
        test.steps = test::kStepsToTheBit;
        const Curve reference = train(test);
        for (const int worldSize : {1, 3}) {
            SCOPED_TRACE(fmt::format("{} ranks{}", worldSize, tied ? ", tied" : ""));
            test.worldSize = worldSize;
            test.configuration.units = {{.wrap = true}, {.kind = ParameterKind::Norm, .wrap = true}};
            expectSameCurve(train(test), reference, Precision::Fp32);
            test.configuration.units = {{.match = "block.1.ffn.*", .ignore = true},
                                        {.match = "head.*", .ignore = true}};
            expectSameCurve(train(test), reference, Precision::Fp32);
        }
    }
}

TEST(Strategies, frozenParametersStayAndCostNoGradient)
{
    at::set_num_threads(1);
    TrainingCase test = caseOf(1, Strategy::Full);
    test.configuration.units = {{.match = "embedding.*", .frozen = true},
                                {.match = "block.0.*", .frozen = true},
                                {.match = "*.attention.*", .frozen = true}};
    const Curve reference = train(test);
    for (const auto &[name, weight] : reference.lastWeights) {
        const bool frozen = name.starts_with("embedding.") || name.starts_with("block.0.") ||
                            name.find(".attention.") != std::string::npos;
        EXPECT_EQ(at::equal(weight, reference.firstWeights.at(name)), frozen) << name;
        EXPECT_EQ(reference.firstGradients.contains(name), !frozen) << name;
    }
    for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None}) {
        test.worldSize = 2;
        test.configuration.parallel.strategy = strategy;
        expectSameCurve(train(test), reference, Precision::Fp32);
    }
}

/// Counts what is reduced of each unit in backward.
class ReducedUnits : public observe::Observer
{
public:
    int64_t beginCollective(const observe::CollectiveInfo &info) override
    {
        const std::lock_guard lock(m_mutex);
        if (info.phase == Phase::Backward && info.operation != Operation::AllGather)
            units.insert(info.unit);
        return 0;
    }
    std::set<observe::UnitIndex> units;

private:
    std::mutex m_mutex;
};

TEST(Strategies, frozenParametersAreNotReduced)
{
    at::set_num_threads(1);
    for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None}) {
        TrainingCase test = caseOf(2, strategy);
        test.configuration.units = {{.match = "block.1.*", .frozen = true}};
        ReducedUnits reduced;
        test::runRanks(2, reduced, [&](engine::Communicator &communicator) {
            const shapes::ModelShape shape = test::smallShape(true, false, true);
            model::Decoder decoder(shape, test.configuration, communicator, reduced);
            decoder.engine().initialize(3);
            test::trainStep(decoder, test, test::stepTokens(shape, 0), nullptr);
        });
        EXPECT_THAT(reduced.units, testing::ElementsAre(0, 1, 3, 4)) << toText(strategy) << ": not block.1, the third";
    }
}

TEST(Strategies, changeBetweenStepsKeepsEveryValue)
{
    at::set_num_threads(1);
    const Precision precision = Precision::Bf16;
    TrainingCase test = caseOf(4, Strategy::Full);
    test.configuration.precision.compute = precision;
    test.configuration.units = {{.kind = ParameterKind::Norm}};
    test.beforeStep = [&](model::Decoder &decoder, RunConfiguration &configuration, int step) {
        const Strategy order[] = {Strategy::Full, Strategy::None, Strategy::Hybrid, Strategy::GradOp};
        configuration.parallel.strategy = order[step % 4];
        configuration.parallel.shardGroup = 2;
        configuration.parallel.reshardGroup = step % 3 == 0 ? 2 : 0;
        configuration.parallel.prefetchDepth = 1 + step % 2;
        configuration.units.resize(1);
        if (step % 5 == 4)
            configuration.units.push_back({.match = "block.1.*", .settings = {{"parallel.strategy", "none"}}});
        const test::NamedTensors before = test::weightsOf(decoder.engine());
        decoder.engine().reconfigure(shapes::replanned(decoder.engine().plan(), configuration).value());
        for (const auto &[name, value] : before)
            EXPECT_TRUE(at::equal(decoder.engine().gatherParameter(name).value(), value)) << name;
    };
    expectSameCurve(train(test), oneRank(precision), precision);
}

} // namespace shardscope
