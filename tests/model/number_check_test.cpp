// SPDX-License-Identifier: Apache-2.0
// The first NaN or infinity of a pass is found where it was put: in every operation, in forward and backward, on the
// rank whose tokens make it.
#include "core/model/decoder.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace shardscope {

using model::NumberCheck;
using model::NumberFinding;
using Weights = std::map<std::string, double>; ///< names without "block.1."; a whole parameter has one value

/// "forward block.1 ffn.down rank 0"
static std::string textOf(const std::optional<NumberFinding> &finding, model::Decoder &decoder)
{
    if (!finding)
        return "nothing";
    std::string text =
        fmt::format("{} {} {}", toText(finding->phase),
                    decoder.engine().unitInfos()[static_cast<size_t>(finding->unit)].name, finding->operation);
    if (!finding->parameter.empty())
        text += " " + finding->parameter;
    return text + fmt::format(" rank {}", finding->rank);
}

static at::Tensor tokensOf(const shapes::ModelShape &shape, int rank)
{
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(rank) + 3);
    return at::randint(1, shape.vocabulary, {2, 12}, generator, at::TensorOptions(at::kLong)); // never token 0
}

/// One pass with weights overwritten. tokenZeroOf: the rank whose tokens have a 0; −1: none.
static std::string findingOf(int worldSize, const config::RunConfiguration &configuration, const Weights &weights,
                             int tokenZeroOf = -1, const std::function<void(model::Decoder &)> &prepare = {})
{
    std::vector<std::string> texts(static_cast<size_t>(worldSize));
    observe::Observer observer;
    const shapes::ModelShape shape = test::shapeWithEverything(true);
    test::runRanks(worldSize, observer, [&](engine::Communicator &communicator) {
        model::Decoder decoder(shape, configuration, communicator, observer);
        engine::Engine &engine = decoder.engine();
        engine.initialize(1);
        for (const auto &[name, value] : weights) {
            const std::string whole = name.find("head.") == 0 ? name : "block.1." + name;
            const at::Tensor old = engine.gatherParameter(whole).value();
            EXPECT_TRUE(engine.loadParameter(whole, at::full_like(old, value)));
        }
        if (prepare)
            prepare(decoder);
        at::Tensor tokens = tokensOf(shape, communicator.rank());
        if (communicator.rank() == tokenZeroOf)
            tokens[1][4] = 0;
        NumberCheck check(engine);
        check.lookAtParameters();
        auto finding = check.first();
        if (!finding) {
            engine.reduceScalars(decoder.forwardBackward(tokens, tokens, 0.01, true, &check));
            check.lookAtReducedGradients();
            finding = check.first();
        }
        engine.dropGradients();
        texts[static_cast<size_t>(communicator.rank())] = textOf(finding, decoder);
    });
    for (const std::string &text : texts)
        EXPECT_EQ(text, texts[0]) << "the ranks agree";
    return texts[0];
}

static config::RunConfiguration configurationOf(Strategy strategy, Recompute recompute = Recompute::Off)
{
    config::RunConfiguration configuration;
    configuration.parallel.strategy = strategy;
    configuration.memory.recompute = recompute;
    return configuration;
}

TEST(NumberCheck, findsNothingWhereAllIsFinite)
{
    for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None}) {
        for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
            config::RunConfiguration configuration = configurationOf(strategy);
            configuration.precision.compute = precision;
            EXPECT_EQ(findingOf(2, configuration, {}), "nothing");
        }
    }
}

TEST(NumberCheck, namesEachOperationOfAForward)
{
    const std::vector<std::pair<Weights, std::string>> cases = {
        {{{"attention_norm.weight", 3e38}}, "block.1 attention_norm"},
        {{{"attention.q.weight", 3e38}}, "block.1 attention.qkv"},
        {{{"attention.v.weight", 0}, {"attention.v.bias", 1e37}, {"attention.o.weight", 1e2}}, "block.1 attention.o"},
        {{{"attention.q_norm.weight", 3e38}}, "block.1 attention.q_norm"},
        {{{"attention.k_norm.weight", 3e38}}, "block.1 attention.k_norm"},
        {{{"attention.q_norm.weight", 1e30}, {"attention.k_norm.weight", 1e30}}, "block.1 attention"},
        {{{"ffn_norm.weight", 3e38}}, "block.1 ffn_norm"},
        {{{"ffn.gate.weight", 3e38}}, "block.1 ffn.gate_up"},
        {{{"ffn.gate.bias", 1e30}, {"ffn.up.bias", 1e30}}, "block.1 ffn.swiglu"},
        {{{"ffn.gate.bias", 1e15}, {"ffn.up.bias", 1e15}, {"ffn.down.weight", 1e10}}, "block.1 ffn.down"},
        {{{"head.norm.weight", 3e38}}, "head norm"},
        {{{"head.norm.weight", 1e37}, {"head.weight", 1e3}}, "head logits"},
    };
    for (const auto &[weights, where] : cases)
        EXPECT_EQ(findingOf(1, configurationOf(Strategy::Full), weights), "forward " + where + " rank 0");
}

/// Forward multiplies the large numbers by zero.
static const Weights kBackwardOnly = {{"ffn.gate.bias", 1e6}, {"ffn.gate.weight", 0}, {"ffn.up.weight", 0},
                                      {"ffn.up.bias", 0},     {"ffn.down.bias", 0},   {"ffn.down.weight", 1e37}};

TEST(NumberCheck, namesABackwardUnderEveryStrategy)
{
    for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None}) {
        for (const Recompute recompute : {Recompute::Off, Recompute::Selective, Recompute::Block})
            EXPECT_EQ(findingOf(2, configurationOf(strategy, recompute), kBackwardOnly),
                      "backward block.1 ffn.swiglu rank 0");
    }
}

TEST(NumberCheck, namesTheRankWhoseTokensMadeIt)
{
    // The embedding of token 0 and attention's bias are finite, their sum is not.
    const auto prepare = [](model::Decoder &decoder) {
        at::Tensor weight = decoder.engine().gatherParameter("embedding.weight").value();
        weight[0].fill_(2.5e38);
        EXPECT_TRUE(decoder.engine().loadParameter("embedding.weight", weight));
    };
    for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None})
        EXPECT_EQ(findingOf(3, configurationOf(strategy), {{"attention.o.bias", 2.5e38}}, 2, prepare),
                  "forward block.1 residual rank 2");
    EXPECT_EQ(
        findingOf(2, configurationOf(Strategy::Full), {{"attention.o.bias", 2.5e38}}, -1, prepare).find("residual"),
        std::string::npos);
}

TEST(NumberCheck, namesAParameterThatIsNone)
{
    // The rank whose slice it lies in: the unit's last matrix in the last one.
    for (const double value : {static_cast<double>(INFINITY), static_cast<double>(NAN)})
        EXPECT_EQ(findingOf(2, configurationOf(Strategy::Full), {{"ffn.down.weight", value}}),
                  "forward block.1 parameter block.1.ffn.down.weight rank 1");
    // Finite as a master, infinite in what products use.
    config::RunConfiguration configuration = configurationOf(Strategy::GradOp);
    configuration.precision.compute = Precision::Bf16;
    EXPECT_EQ(findingOf(2, configuration, {{"ffn_norm.weight", 3.4e38}}),
              "forward block.1 parameter block.1.ffn_norm.weight rank 0");
}

TEST(NumberCheck, tellsAnInfinityFromANan)
{
    for (const auto &[value, isNan] : {std::pair{std::numeric_limits<double>::infinity(), false},
                                       {-std::numeric_limits<double>::infinity(), false},
                                       {std::numeric_limits<double>::quiet_NaN(), true}}) {
        for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
            observe::Observer observer;
            auto communicator = engine::Communicator::create({}, observer);
            const shapes::ModelShape shape = test::smallShape(false, false, false);
            model::Decoder decoder(shape, {}, **communicator, observer);
            NumberCheck check(decoder.engine());
            at::Tensor values = at::arange(1000, type);
            check.look({0, Phase::Forward, "fine"}, values);
            check.look({0, Phase::Forward, "nothing"}, {});
            values[777] = value;
            check.look({1, Phase::Backward, "broken"}, values);
            const auto finding = check.first();
            ASSERT_TRUE(finding);
            EXPECT_EQ(finding->operation, "broken");
            EXPECT_EQ(finding->isNan, isNan);
        }
    }
}

TEST(NumberCheck, namesAReductionThatOverflows)
{
    // Each rank's gradient is finite, their sum is not.
    observe::Observer observer;
    const shapes::ModelShape shape = test::smallShape(false, false, false);
    test::runRanks(2, observer, [&](engine::Communicator &communicator) {
        model::Decoder decoder(shape, configurationOf(Strategy::Full), communicator, observer);
        engine::Engine &engine = decoder.engine();
        engine.initialize(1);
        engine.beginPass(engine::Engine::PassKind::Train, true);
        NumberCheck check(engine);
        for (observe::UnitIndex unit = 0; unit < engine.unitCount(); ++unit) {
            const size_t parameters = engine.plan().units[static_cast<size_t>(unit)].shape.parameters.size();
            for (size_t i = 0; i < parameters; ++i)
                engine.gradient(unit, i).grad.fill_(unit == 1 ? 2e38 : 1);
            check.lookAtGradients(unit);
            engine.reduce(unit);
        }
        engine.endPass();
        EXPECT_EQ(textOf(check.first(), decoder), "nothing");
        engine.reduceScalars({});
        check.lookAtReducedGradients();
        EXPECT_EQ(textOf(check.first(), decoder),
                  "backward block.0 reduce_scatter block.0.attention_norm.weight rank 0");
        engine.dropGradients();
    });
}

} // namespace shardscope
