// SPDX-License-Identifier: Apache-2.0
// Strategies by bucket, groups of ranks, and changes of both between two steps: all train as one rank does.
#include "core/model/decoder.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"
#include "tests/model/training_curve.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>

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

TEST(Strategies, hybridTrainsAsOneRankDoes)
{
    at::set_num_threads(1);
    for (const auto &[worldSize, group] : {std::pair{2, 1}, {4, 2}, {4, 1}, {6, 3}, {6, 2}}) {
        for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
            for (const ReduceEvery every : {ReduceEvery::MicroBatch, ReduceEvery::Step}) {
                SCOPED_TRACE(fmt::format("{} ranks in groups of {}, {}, reduced every {}", worldSize, group,
                                         toText(precision), toText(every)));
                TrainingCase test = caseOf(worldSize, Strategy::Hybrid);
                test.accumulation = worldSize == 4 ? 3 : 2; // of 12 sequences
                test.configuration.parallel.shardGroup = group;
                test.configuration.parallel.reduceEvery = every;
                test.configuration.precision.compute = precision;
                expectSameCurve(train(test), oneRank(precision), precision);
            }
        }
    }
}

TEST(Strategies, reshardingToASmallerGroupChangesNoBit)
{
    at::set_num_threads(1);
    for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
        TrainingCase test = caseOf(4, Strategy::Full);
        test.configuration.precision.compute = precision;
        const Curve whole = train(test);
        for (const int group : {1, 2}) {
            test.configuration.parallel.reshardGroup = group;
            expectEqualToTheBit(train(test), whole);
        }
    }
}

TEST(Strategies, prefetchChangesNoBit)
{
    at::set_num_threads(1);
    TrainingCase test = caseOf(2, Strategy::Full);
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

TEST(Strategies, mixedInOneModel)
{
    at::set_num_threads(1);
    for (const int worldSize : {1, 2, 3, 4}) {
        for (const bool tied : {false, true}) {
            SCOPED_TRACE(fmt::format("{} ranks{}", worldSize, tied ? ", tied" : ""));
            TrainingCase test = caseOf(1, Strategy::Full);
            test.tied = tied;
            const Curve reference = train(test);
            test.worldSize = worldSize;
            test.configuration.units = mixedRules();
            expectSameCurve(train(test), reference, Precision::Fp32);
        }
    }
}

TEST(Strategies, oddWorldsAndParametersSmallerThanThem)
{
    at::set_num_threads(1);
    for (const int worldSize : {3, 6}) {
        for (const Strategy strategy : {Strategy::Full, Strategy::GradOp}) {
            SCOPED_TRACE(fmt::format("{} ranks, {}", worldSize, toText(strategy)));
            TrainingCase test = caseOf(worldSize, strategy);
            // A bucket of one norm has fewer elements than an aligned slice: all ranks but the first hold padding
            // alone.
            test.configuration.units = {{.kind = ParameterKind::Norm}};
            const Curve curve = train(test);
            expectSameCurve(curve, oneRank(Precision::Fp32), Precision::Fp32);
            for (const auto &[name, weight] : curve.lastWeights)
                EXPECT_FALSE(at::equal(weight, curve.firstWeights.at(name))) << name << " never moved";
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

TEST(Strategies, changeBetweenStepsKeepsEveryValue)
{
    at::set_num_threads(1);
    for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
        TrainingCase test = caseOf(4, Strategy::Full);
        test.configuration.precision.compute = precision;
        test.configuration.units = {{.kind = ParameterKind::Norm}};
        std::vector<Strategy> seen;
        test.beforeStep = [&](model::Decoder &decoder, RunConfiguration &configuration, int step) {
            const Strategy order[] = {Strategy::Full, Strategy::None, Strategy::Hybrid, Strategy::GradOp};
            configuration.parallel.strategy = order[step % 4];
            configuration.parallel.shardGroup = 2;
            configuration.parallel.reshardGroup = step % 3 == 0 ? 2 : 0;
            configuration.parallel.prefetchDepth = 1 + step % 2;
            configuration.units.resize(1);
            if (step % 5 == 4)
                configuration.units.push_back({.match = "block.1.*", .settings = {{"parallel.strategy", "none"}}});
            std::map<std::string, at::Tensor> before;
            for (const engine::Bucket &bucket : decoder.engine().buckets()) {
                for (const engine::ParameterPlace &place : bucket.layout.parameters)
                    before[place.shape.name] = decoder.engine().gatherParameter(place.shape.name).value();
            }
            decoder.engine().reconfigure(shapes::replanned(decoder.engine().plan(), configuration).value());
            for (const auto &[name, value] : before)
                EXPECT_TRUE(at::equal(decoder.engine().gatherParameter(name).value(), value)) << name;
        };
        expectSameCurve(train(test), oneRank(precision), precision);
    }
}

} // namespace shardscope
