// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters on a frozen base: against autograd, at every world size and strategy, and what they cost.
#include "core/model/decoder.h"
#include "core/shapes/adapters.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"
#include "tests/model/training_curve.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <torch/torch.h>

namespace shardscope {

using config::RunConfiguration;
using test::Curve;
using test::NamedTensors;
using test::train;
using test::TrainingCase;

namespace {

constexpr double kRate = 1e-2;

RunConfiguration loraConfiguration(bool head = true)
{
    RunConfiguration configuration;
    configuration.lora.rank = 3;
    configuration.lora.alpha = 7;
    configuration.lora.targets = {"block.*"};
    if (head)
        configuration.lora.targets.push_back("head");
    return configuration;
}

bool isAdapter(const std::string &name)
{
    return name.find(".lora_") != std::string::npos;
}

/// The name of the other half, or of the weight: "x.lora_a.weight" → "x" + suffix.
std::string besides(const std::string &name, const std::string &suffix)
{
    return name.substr(0, name.rfind(".lora_")) + suffix;
}

NamedTensors valuesOf(engine::Engine &engine, bool gradients = false)
{
    NamedTensors values;
    for (const engine::Bucket &bucket : engine.buckets()) {
        for (const engine::ParameterPlace &place : bucket.layout.parameters) {
            if (!gradients)
                values[place.shape.name] = engine.gatherParameter(place.shape.name).value();
            else if (!bucket.frozen)
                values[place.shape.name] = engine.gatherGradient(place.shape.name).value();
        }
    }
    return values;
}

/// B as fresh is zero, which leaves A without a gradient: other values, the same on all ranks.
void loadSecondHalves(engine::Engine &engine)
{
    const auto generator = at::detail::createCPUGenerator(11);
    for (const auto &[name, value] : valuesOf(engine)) {
        if (name.ends_with(".lora_b.weight")) {
            ASSERT_TRUE(engine.loadParameter(name, 0.05 * at::randn(value.sizes(), generator)));
        }
    }
}

/// The adapters of a decoder as leaves of autograd, with PyTorch's AdamW.
class Reference
{
public:
    Reference(const shapes::ModelShape &shape, const RunConfiguration &configuration, NamedTensors values)
        : m_shape(shape)
        , m_scale(shapes::adapterScale(configuration))
    {
        for (auto &[name, value] : values)
            (isAdapter(name) ? m_adapters : m_base)[name] = value;
        std::vector<at::Tensor> leaves;
        for (auto &[name, value] : m_adapters)
            leaves.push_back(value.requires_grad_(true));
        const auto &optimizer = configuration.optimizer;
        m_optimizer.emplace(leaves, torch::optim::AdamWOptions(kRate)
                                        .betas({optimizer.betas[0], optimizer.betas[1]})
                                        .eps(optimizer.eps)
                                        .weight_decay(optimizer.weightDecay));
    }

    /// Loss and gradients of A and B: those of W + s·B·A, taken on by autograd.
    test::ReferenceResult step(const at::Tensor &tokens, const at::Tensor &targets, double lossScale)
    {
        NamedTensors weights = m_base;
        for (const auto &[name, a] : m_adapters) {
            if (name.ends_with(".lora_a.weight")) {
                at::Tensor &weight = weights.at(besides(name, ".weight"));
                weight = weight + m_scale * m_adapters.at(besides(name, ".lora_b.weight")).mm(a);
            }
        }
        test::ReferenceResult result = test::referenceStep(m_shape, weights, tokens, targets, lossScale);
        m_optimizer->zero_grad();
        for (const auto &[name, weight] : weights) {
            if (weight.requires_grad())
                weight.backward(result.gradients.at(name));
        }
        result.gradients.clear();
        for (const auto &[name, value] : m_adapters)
            result.gradients[name] = value.grad().clone();
        m_optimizer->step();
        return result;
    }
    const NamedTensors &adapters() const { return m_adapters; }

private:
    shapes::ModelShape m_shape;
    double m_scale;
    NamedTensors m_base;
    NamedTensors m_adapters;
    std::optional<torch::optim::AdamW> m_optimizer;
};

double relative(const at::Tensor &value, const at::Tensor &reference)
{
    return ((value - reference).norm() / reference.norm()).item<double>();
}

/// A few steps beside the reference.
void expectParity(const shapes::ModelShape &shape, const RunConfiguration &configuration)
{
    observe::Observer observer;
    auto communicator = engine::Communicator::create({}, observer);
    ASSERT_TRUE(communicator.has_value());
    model::Decoder decoder(shape, configuration, **communicator, observer);
    engine::Engine &engine = decoder.engine();
    engine.initializeAdapters(5);
    for (const auto &[name, value] : test::randomWeights(shape, 3))
        ASSERT_TRUE(engine.loadParameter(name, value));
    loadSecondHalves(engine);
    Reference reference(shape, configuration, valuesOf(engine));
    for (int step = 0; step < 5; ++step) {
        SCOPED_TRACE(fmt::format("step {}", step));
        const at::Tensor all = test::stepTokens(shape, step).narrow(0, 0, 4);
        const at::Tensor tokens = all.slice(1, 0, test::kPositions).contiguous();
        const at::Tensor targets = all.slice(1, 1).contiguous();
        const at::Tensor loss = decoder.forwardBackward(tokens, targets, 0.01, true);
        const engine::StepScalars scalars = engine.reduceScalars(loss);
        const NamedTensors gradients = valuesOf(engine, true);
        engine.optimizerStep(kRate, 0, scalars);
        const test::ReferenceResult expected = reference.step(tokens, targets, 0.01);
        EXPECT_NEAR(scalars.host().lossSum / expected.loss, 1.0, 1e-5);
        ASSERT_EQ(gradients.size(), expected.gradients.size());
        for (const auto &[name, gradient] : gradients)
            EXPECT_LT(relative(gradient, expected.gradients.at(name)), 1e-5) << name;
    }
    for (const auto &[name, value] : reference.adapters())
        EXPECT_LT(relative(engine.gatherParameter(name).value(), value.detach()), 1e-5) << name;
}

TrainingCase caseOf(int worldSize, Strategy strategy, Precision precision = Precision::Fp32)
{
    TrainingCase test;
    test.worldSize = worldSize;
    test.configuration = loraConfiguration();
    test.configuration.parallel.strategy = strategy;
    test.configuration.precision.compute = precision;
    test.configuration.optimizer.clipNorm = 0.25;
    test.beforeStep = [](model::Decoder &decoder, RunConfiguration &, int step) {
        if (step == 0)
            loadSecondHalves(decoder.engine());
    };
    return test;
}

const Curve &oneRank(Precision precision)
{
    static std::map<Precision, Curve> curves;
    if (!curves.contains(precision))
        curves[precision] = train(caseOf(1, Strategy::Full, precision));
    return curves[precision];
}

} // namespace

TEST(Lora, gradientsAndStepsAreThoseOfAutograd)
{
    at::set_num_threads(1);
    for (const Recompute recompute : {Recompute::Off, Recompute::Selective, Recompute::Block}) {
        SCOPED_TRACE(toText(recompute));
        RunConfiguration configuration = loraConfiguration();
        configuration.memory.recompute = recompute;
        expectParity(test::shapeWithEverything(true), configuration);
    }
    SCOPED_TRACE("tied");
    expectParity(test::smallShape(false, true, false), loraConfiguration(false));
    SCOPED_TRACE("some layers");
    RunConfiguration some = loraConfiguration(false);
    some.lora.targets = {"block.0.attention.k", "model.layers.2.mlp.*", "v_proj"};
    expectParity(test::smallShape(true, false, true), some);
}

TEST(Lora, beginsTheSameEverywhereAndAsTheModelWithout)
{
    at::set_num_threads(1);
    const shapes::ModelShape shape = test::smallShape(true, false, true);
    const auto weightsOf = [&](int worldSize, const RunConfiguration &configuration, at::Tensor *logits) {
        NamedTensors weights;
        observe::Observer observer;
        test::runRanks(worldSize, observer, [&](engine::Communicator &communicator) {
            model::Decoder decoder(shape, configuration, communicator, observer);
            decoder.engine().initialize(3);
            NamedTensors own = valuesOf(decoder.engine());
            const at::Tensor out = decoder.forwardLogits(test::stepTokens(shape, 1));
            if (communicator.rank() == 0) {
                weights = std::move(own);
                *logits = out;
            }
        });
        return weights;
    };
    at::Tensor plainLogits;
    const NamedTensors plain = weightsOf(1, {}, &plainLogits);
    std::optional<NamedTensors> first;
    for (const int worldSize : {1, 2, 3, 4}) {
        for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None, Strategy::Hybrid}) {
            SCOPED_TRACE(fmt::format("{} ranks, {}", worldSize, toText(strategy)));
            RunConfiguration configuration = loraConfiguration();
            configuration.parallel.strategy = strategy;
            at::Tensor logits;
            const NamedTensors weights = weightsOf(worldSize, configuration, &logits);
            EXPECT_TRUE(at::equal(logits, plainLogits)) << "B is zero";
            for (const auto &[name, value] : weights) {
                EXPECT_TRUE(isAdapter(name) || at::equal(value, plain.at(name))) << name;
                EXPECT_TRUE(!first || at::equal(value, first->at(name))) << name;
            }
            if (!first)
                first = weights;
        }
    }
    std::set<float> firsts;
    for (const auto &[name, value] : *first) {
        if (name.ends_with(".lora_b.weight")) {
            EXPECT_TRUE(at::equal(value, at::zeros_like(value))) << name;
        }
        if (!name.ends_with(".lora_a.weight"))
            continue;
        const double bound = 1.0 / std::sqrt(static_cast<double>(value.size(1)));
        EXPECT_LE(value.abs().max().item<double>(), bound) << name;
        EXPECT_NEAR(value.std().item<double>(), bound / std::sqrt(3.0), 0.12 * bound) << name;
        EXPECT_TRUE(firsts.insert(value.flatten()[0].item<float>()).second) << name << " is another one's";
    }
}

TEST(Lora, trainsAsOneRankDoesAndMovesNothingElse)
{
    at::set_num_threads(1);
    for (const auto &[worldSize, strategy, precision, accumulation] :
         {std::tuple{1, Strategy::None, Precision::Fp32, 3},
          {2, Strategy::None, Precision::Fp32, 1},
          {2, Strategy::Full, Precision::Bf16, 2},
          {3, Strategy::GradOp, Precision::Fp32, 2},
          {3, Strategy::Full, Precision::Fp32, 1},
          {4, Strategy::Hybrid, Precision::Fp32, 3},
          {4, Strategy::GradOp, Precision::Bf16, 1}}) {
        SCOPED_TRACE(fmt::format("{} ranks, {}, {}", worldSize, toText(strategy), toText(precision)));
        TrainingCase test = caseOf(worldSize, strategy, precision);
        test.accumulation = accumulation;
        const Curve curve = train(test);
        expectSameCurve(curve, oneRank(precision), precision);
        for (const auto &[name, weight] : curve.lastWeights) {
            EXPECT_EQ(at::equal(weight, curve.firstWeights.at(name)), !isAdapter(name)) << name;
            EXPECT_EQ(curve.firstGradients.contains(name), isAdapter(name)) << name;
        }
    }
    const Curve &reference = oneRank(Precision::Fp32);
    EXPECT_LT(reference.firstBatchAfter, reference.losses.front());
}

TEST(Lora, offloadRecomputeAndRulesChangeNoBit)
{
    at::set_num_threads(1);
    TrainingCase test = caseOf(2, Strategy::Full);
    test.configuration.units = {
        {.kind = ParameterKind::Norm}, {.match = "block.1.ffn.*", .wrap = true}, {.match = "block.*.lora_b.*"}};
    const Curve plain = train(test);
    expectSameCurve(plain, oneRank(Precision::Fp32), Precision::Fp32);
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / fmt::format("lora-offload-{}", ::getpid());
    std::filesystem::create_directories(folder);
    test.configuration.offload.path = folder.string();
    test.configuration.offload.parameters = OffloadPlace::Nvme;
    test.configuration.offload.optimizer = OffloadPlace::Nvme;
    test.configuration.memory.recompute = Recompute::Selective;
    expectEqualToTheBit(train(test), plain);
    std::filesystem::remove_all(folder);
    test = caseOf(2, Strategy::Full);
    test.configuration.units = {{.kind = ParameterKind::Norm}};
    const auto loads = test.beforeStep;
    test.beforeStep = [&](model::Decoder &decoder, RunConfiguration &configuration, int step) {
        loads(decoder, configuration, step);
        const Strategy order[] = {Strategy::Full, Strategy::None, Strategy::GradOp};
        configuration.parallel.strategy = order[step % 3];
        decoder.engine().reconfigure(shapes::replanned(decoder.engine().plan(), configuration).value());
    };
    const Curve changed = train(test);
    expectSameCurve(changed, plain, Precision::Fp32);
    for (const auto &[name, weight] : changed.lastWeights)
        EXPECT_EQ(at::equal(weight, changed.firstWeights.at(name)), !isAdapter(name)) << name;
}

/// With no token counted there is no gradient, and an update is the decay alone.
TEST(Lora, weightDecayReachesTheAdaptersAndNoDecayExemptsThem)
{
    at::set_num_threads(1);
    const shapes::ModelShape shape = test::smallShape(true, false, true);
    for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None, Strategy::Hybrid}) {
        SCOPED_TRACE(toText(strategy));
        RunConfiguration configuration = loraConfiguration();
        configuration.parallel.strategy = strategy;
        configuration.optimizer.weightDecay = 0.5;
        configuration.optimizer.noDecay = {"norm", "bias", "*.attention.v.lora_b.*"};
        observe::Observer observer;
        std::mutex mutex;
        test::runRanks(4, observer, [&](engine::Communicator &communicator) {
            model::Decoder decoder(shape, configuration, communicator, observer);
            engine::Engine &engine = decoder.engine();
            engine.initialize(3);
            loadSecondHalves(engine);
            const NamedTensors before = valuesOf(engine);
            const at::Tensor tokens = test::stepTokens(shape, 0).narrow(0, communicator.rank(), 1);
            const at::Tensor loss = decoder.forwardBackward(tokens, at::full_like(tokens, -1), 1.0, true);
            engine.optimizerStep(kRate, 1.0, engine.reduceScalars(loss));
            const NamedTensors after = valuesOf(engine);
            const std::scoped_lock lock(mutex);
            for (const auto &[name, value] : before) {
                const bool decays = isAdapter(name) && name.find(".v.lora_b") == std::string::npos;
                EXPECT_TRUE(at::allclose(after.at(name), decays ? value * (1 - kRate * 0.5) : value, 1e-6, 0)) << name;
                EXPECT_EQ(at::equal(after.at(name), value), !decays) << name;
            }
        });
    }
}

} // namespace shardscope
