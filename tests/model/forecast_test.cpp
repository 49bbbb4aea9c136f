// SPDX-License-Identifier: Apache-2.0
// The forecast of a step's peak against what ranks allocate in a step: everything that a plan knows of at once, states
// and what is computed with them. (ledger_test.cpp has the states by themselves, unit_memory_test.cpp the units.)
#include "core/plan/step_forecast.h"

#include "core/config/registry.h"
#include "core/model/decoder.h"
#include "tests/model/counting_allocator.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace shardscope {

namespace {

using config::RunConfiguration;
using test::CountingAllocator;

/// What differs from the configuration that runs start with.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct ForecastCase
{
    const char *name;
    int worldSize;
    Settings settings;
    std::vector<config::UnitRule> rules = {};
};

class Forecast : public testing::TestWithParam<std::tuple<ForecastCase, Precision>>
{
protected:
    void SetUp() override { at::globalContext().setUserEnabledMkldnn(false); } // its own buffers are no plan's
    void TearDown() override { at::globalContext().setUserEnabledMkldnn(true); }
};

TEST_P(Forecast, isTheStepsPeak)
{
    const auto &[test, precision] = GetParam();
    RunConfiguration configuration;
    configuration.parallel.device = "cpu";
    configuration.precision.compute = precision;
    configuration.train.microBatch = 2;
    configuration.train.accumulation = 1;
    configuration.train.sequenceLength = 40;
    for (const auto &[key, value] : test.settings)
        ASSERT_TRUE(config::setKey(configuration, key, value)) << key;
    configuration.units = test.rules;
    shapes::ModelShape shape = test::smallShape(true, false, true);
    shape.layers = 4;
    const auto plan = shapes::planOf(shapes::unitsOf(shape), configuration, test.worldSize).value();
    const plan::StepForecast forecast = plan::forecastOf(plan, shape, configuration);
    test::TagObserver observer;
    CountingAllocator &counter = CountingAllocator::instance();
    test::runRanks(test.worldSize, observer, [&](engine::Communicator &communicator) {
        const int rank = communicator.rank();
        CountingAllocator::thisThreadIsRank(rank);
        model::Decoder decoder(shape, configuration, communicator, observer);
        decoder.engine().initialize(1);
        const at::Tensor tokens =
            at::ones({configuration.train.microBatch, configuration.train.sequenceLength}, at::kLong);
        for (int step = 0; step < 2; ++step) { // the first one makes the moments
            communicator.barrier();
            if (rank == 0)
                counter.forgetHighest();
            communicator.barrier();
            at::Tensor loss;
            for (int64_t i = 0; i < configuration.train.accumulation; ++i)
                loss = decoder.forwardBackward(tokens, tokens, 0.01, i + 1 == configuration.train.accumulation);
            decoder.engine().optimizerStep(1e-3, 1.0, decoder.engine().reduceScalars(loss));
        }
        const auto measured = static_cast<double>(counter.highestPlannedBytes(rank));
        EXPECT_NEAR(static_cast<double>(forecast.total()), measured, 0.02 * measured)
            << "parameters " << forecast.states.parameters << ", optimizer " << forecast.states.optimizer
            << ", gathered " << forecast.states.gathered << ", gradients " << forecast.states.gradients
            << ", activations " << forecast.activations << ", temporary " << forecast.temporary;
    });
}

const Settings kRecomputed = {{"memory.recompute", "block"}};

std::vector<ForecastCase> forecastCases()
{
    return {
        {"plain", 1, {}},
        {"selective", 1, {{"memory.recompute", "selective"}}},
        {"block", 1, kRecomputed},
        {"accumulated", 1, {{"train.accumulation", "2"}, {"memory.recompute", "block"}}},
        {"everySecond", 1, {{"memory.recompute", "block"}, {"memory.recompute_every", "2"}}},
        {"activationsAway", 1, {{"memory.activation_offload", "true"}}},
        {"recomputedAway", 1, {{"memory.activation_offload", "true"}, {"memory.recompute", "block"}}},
        {"frozen", 1, {}, {{.match = "block.*", .frozen = true}, {.match = "embedding.*", .frozen = true}}},
        {"frozenBelow", 1, {}, {{.match = "embedding.*", .frozen = true}, {.match = "block.[01].*", .frozen = true}}},
        {"frozenBelowDeep",
         1,
         {{"parallel.prefetch_depth", "2"}, {"memory.recompute", "block"}},
         {{.match = "embedding.*", .frozen = true}, {.match = "block.[01].*", .frozen = true}}},
        {"adapters", 1, {{"lora.rank", "2"}}},
        {"full", 2, {}},
        {"fullRecomputed", 2, kRecomputed},
        {"fullAccumulated", 2, {{"train.accumulation", "2"}, {"parallel.reduce_every", "step"}}},
        {"gradOp", 2, {{"parallel.strategy", "grad_op"}}},
        {"none", 2, {{"parallel.strategy", "none"}}},
        {"noneAccumulated", 2, {{"parallel.strategy", "none"}, {"train.accumulation", "2"}}}};
}

INSTANTIATE_TEST_SUITE_P(Cases, Forecast,
                         testing::Combine(testing::ValuesIn(forecastCases()),
                                          testing::Values(Precision::Fp32, Precision::Bf16)),
                         [](const auto &info) {
                             return std::string(std::get<0>(info.param).name) +
                                    std::string(toText(std::get<1>(info.param)));
                         });

} // namespace

} // namespace shardscope
