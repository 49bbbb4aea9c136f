// SPDX-License-Identifier: Apache-2.0
// What blocks keep for their backward under each mode of recompute and with activation offload: its bytes are those of
// the formulas, and losses and gradients are those of a decoder that keeps everything, to the bit.
#include "core/model/decoder.h"
#include "core/shapes/activations.h"
#include "tests/model/counting_allocator.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"

#include <ATen/Parallel.h>
#include <cstdlib>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace shardscope {

using test::CountingAllocator;

static constexpr int64_t kBatch = 3;
static constexpr int64_t kPositions = 21;
static constexpr double kScale = 1.0 / (kBatch * kPositions);

static shapes::ModelShape deepShape(bool odd = false, bool tied = false, bool grouped = false)
{
    shapes::ModelShape shape = test::smallShape(odd, tied, grouped);
    shape.layers = 4;
    return shape;
}

/// What a test watches of one rank: spans, and memory at the moment when everything that is kept is there.
class Watch : public test::TagObserver
{
public:
    int64_t beginSpan(const observe::SpanInfo &info) override
    {
        if (info.phase == Phase::Recompute && info.name == "recompute")
            recomputed.push_back(info.unit);
        if (info.category == SpanCategory::Copy)
            copies.push_back({std::string(info.name), info.unit, info.bytes});
        if (info.name == "loss")
            atLoss = CountingAllocator::instance().liveBytesOfUnits(MemoryCategory::Activations);
        return 0;
    }
    void memoryHeld(const observe::HeldMemory &held) override
    {
        EXPECT_EQ(held.place, observe::MemoryPlace::Pinned);
        hostUsed += held.usedBytes;
        hostReserved += held.reservedBytes;
        hostHighest = std::max(hostHighest, hostUsed);
    }
    struct Copy
    {
        std::string name;
        observe::UnitIndex unit;
        int64_t bytes;
        bool operator==(const Copy &) const = default;
    };
    std::vector<observe::UnitIndex> recomputed;
    std::vector<Copy> copies;
    std::map<observe::UnitIndex, int64_t> atLoss; ///< activations, by unit
    int64_t hostUsed = 0;
    int64_t hostReserved = 0;
    int64_t hostHighest = 0;
};

/// A decoder with the same weights and tokens each time.
class Training
{
public:
    Training(const shapes::ModelShape &shape, Precision precision, at::Device device, observe::Observer &observer)
    {
        engine::Communicator::Options communicatorOptions;
        communicatorOptions.device = device;
        auto created = engine::Communicator::create(communicatorOptions, observer);
        if (!created)
            throw std::runtime_error(created.error().text);
        m_communicator = std::move(*created);
        start(shape, precision, *m_communicator, observer);
    }
    Training(const shapes::ModelShape &shape, Precision precision, engine::Communicator &communicator,
             observe::Observer &observer)
    {
        start(shape, precision, communicator, observer);
    }

    /// Two micro-batches and an update. The loss; gradients if asked for.
    double step(test::NamedTensors *gradients = nullptr)
    {
        engine::Engine &engine = m_decoder->engine();
        at::Tensor loss = m_decoder->forwardBackward(m_tokens, m_targets, kScale, false);
        loss = loss + m_decoder->forwardBackward(m_targets, m_tokens, kScale, true);
        const engine::StepScalars scalars = engine.reduceScalars(loss);
        if (gradients) {
            for (const auto &[name, weight] : m_weights)
                (*gradients)[name] = engine.gatherGradient(name)->cpu();
        }
        engine.optimizerStep(1e-3, 1.0, scalars);
        return scalars.host().lossSum;
    }
    test::NamedTensors weights()
    {
        test::NamedTensors all;
        for (const auto &[name, weight] : m_weights)
            all[name] = m_decoder->engine().gatherParameter(name)->cpu();
        return all;
    }
    /// Of blocks first … last, counted from 1 as units are.
    void use(Recompute recompute, bool offload, int64_t first, int64_t last)
    {
        shapes::ModelPlan plan = m_decoder->engine().plan();
        for (int64_t block = first; block <= last; ++block) {
            plan.units[static_cast<size_t>(block)].settings.recompute = recompute;
            plan.units[static_cast<size_t>(block)].settings.activationOffload = offload;
        }
        m_decoder->engine().reconfigure(plan);
    }
    void use(Recompute recompute, bool offload) { use(recompute, offload, 1, m_decoder->shape().layers); }
    model::Decoder &decoder() { return *m_decoder; }

private:
    void start(const shapes::ModelShape &shape, Precision precision, engine::Communicator &communicator,
               observe::Observer &observer)
    {
        config::RunConfiguration configuration;
        configuration.precision.compute = precision;
        m_decoder = std::make_unique<model::Decoder>(shape, configuration, communicator, observer);
        m_weights = test::randomWeights(shape, 7);
        for (const auto &[name, value] : m_weights)
            EXPECT_TRUE(m_decoder->engine().loadParameter(name, value).has_value());
        const auto generator = at::detail::createCPUGenerator(11);
        const auto draw = [&] {
            return at::randint(0, shape.vocabulary, {kBatch, kPositions}, generator, at::TensorOptions(at::kLong))
                .to(communicator.device());
        };
        m_tokens = draw();
        m_targets = draw();
    }
    std::unique_ptr<engine::Communicator> m_communicator;
    std::unique_ptr<model::Decoder> m_decoder;
    test::NamedTensors m_weights;
    at::Tensor m_tokens;
    at::Tensor m_targets;
};

static void expectSame(const test::NamedTensors &some, const test::NamedTensors &others)
{
    ASSERT_EQ(some.size(), others.size());
    for (const auto &[name, tensor] : some)
        EXPECT_TRUE(at::equal(tensor, others.at(name))) << name;
}

struct KeepingCase
{
    Recompute recompute;
    bool offload;
    Precision precision;
    at::DeviceType device = at::kCPU;
};

static std::string nameOf(const testing::TestParamInfo<KeepingCase> &info)
{
    return std::string(toText(info.param.recompute)) + (info.param.offload ? "Offload" : "") +
           std::string(toText(info.param.precision));
}

class Keeping : public testing::TestWithParam<KeepingCase>
{
protected:
    static void SetUpTestSuite()
    {
        // Of each operator the one that gives the same bits each time, cuBLAS's included.
        ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
        at::globalContext().setDeterministicAlgorithms(true, false);
    }
    static void TearDownTestSuite() { at::globalContext().setDeterministicAlgorithms(false, false); }
    void SetUp() override
    {
        if (GetParam().device == at::kCUDA && !torch::cuda::is_available())
            GTEST_SKIP() << "no CUDA device";
        at::set_num_threads(1);
    }
    at::Device device() const
    {
        return {GetParam().device, static_cast<int8_t>(GetParam().device == at::kCUDA ? 0 : -1)};
    }
};

TEST_P(Keeping, changesNoBit)
{
    const KeepingCase &test = GetParam();
    for (const auto &[odd, tied, grouped] : {std::tuple{false, false, false}, {true, true, true}}) {
        const shapes::ModelShape shape = deepShape(odd, tied, grouped);
        observe::Observer observer;
        test::NamedTensors expected;
        test::NamedTensors found;
        Training plain(shape, test.precision, device(), observer);
        const double loss = plain.step(&expected);
        Training saving(shape, test.precision, device(), observer);
        saving.use(test.recompute, test.offload);
        EXPECT_EQ(saving.step(&found), loss);
        expectSame(found, expected);
        EXPECT_EQ(saving.step(), plain.step());
        expectSame(saving.weights(), plain.weights());
    }
}

TEST_P(Keeping, mayDifferFromBlockToBlock)
{
    const KeepingCase &test = GetParam();
    const shapes::ModelShape shape = deepShape();
    observe::Observer observer;
    Training plain(shape, test.precision, device(), observer);
    Training saving(shape, test.precision, device(), observer);
    saving.use(test.recompute, test.offload);
    saving.use(Recompute::Off, false, 2, 2);
    saving.use(test.recompute == Recompute::Block ? Recompute::Selective : Recompute::Block, test.offload, 3, 3);
    for (int step = 0; step < 2; ++step)
        EXPECT_EQ(saving.step(), plain.step());
    expectSame(saving.weights(), plain.weights());
}

static std::vector<KeepingCase> casesOn(at::DeviceType device)
{
    std::vector<KeepingCase> cases;
    for (const Recompute recompute : {Recompute::Off, Recompute::Selective, Recompute::Block}) {
        for (const bool offload : {false, true}) {
            for (const Precision precision : {Precision::Fp32, Precision::Bf16})
                cases.push_back({recompute, offload, precision, device});
        }
    }
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Cpu, Keeping, testing::ValuesIn(casesOn(at::kCPU)), nameOf);
INSTANTIATE_TEST_SUITE_P(Cuda, Keeping, testing::ValuesIn(casesOn(at::kCUDA)), nameOf);

class KeptBytes : public testing::TestWithParam<KeepingCase>
{
};

/// Bytes of a whole micro-batch that a block keeps.
static shapes::BlockActivations keptOf(const shapes::ModelShape &shape, const KeepingCase &test)
{
    shapes::BlockActivations kept = shapes::blockActivationsPerToken(shape, test.precision, test.recompute);
    kept.matrixBytes *= kBatch * kPositions;
    kept.statisticsBytes *= kBatch * kPositions;
    return kept;
}

TEST_P(KeptBytes, areTheFormulas)
{
    const KeepingCase &test = GetParam();
    at::set_num_threads(1);
    const shapes::ModelShape shape = deepShape(false, false, true);
    Watch watch;
    watch.setMemoryTag({});
    Training training(shape, test.precision, at::kCPU, watch);
    training.use(test.recompute, test.offload);
    training.step();

    const shapes::BlockActivations kept = keptOf(shape, test);
    const int64_t stream =
        shapes::blockActivationsPerToken(shape, test.precision, Recompute::Block).matrixBytes * kBatch * kPositions;
    std::map<observe::UnitIndex, int64_t> expected;
    const auto last = static_cast<observe::UnitIndex>(shape.layers);
    // The first block's input is the embedding's.
    if (!test.offload)
        expected[0] = stream;
    for (observe::UnitIndex block = 1; block <= last; ++block) {
        const bool leaves = test.offload && block != last;
        const int64_t bytes = leaves ? kept.statisticsBytes : kept.bytes();
        expected[block] = bytes - (block == 1 && !leaves ? stream : 0);
    }
    std::erase_if(expected, [](const auto &unit) { return unit.second == 0; });
    EXPECT_EQ(watch.atLoss, expected);

    std::vector<observe::UnitIndex> recomputed;
    for (int pass = 0; pass < 2 && test.recompute != Recompute::Off; ++pass) {
        for (observe::UnitIndex block = last; block >= 1; --block)
            recomputed.push_back(block);
    }
    EXPECT_EQ(watch.recomputed, recomputed);
    EXPECT_EQ(CountingAllocator::instance().liveBytes(MemoryCategory::Activations), 0);
    EXPECT_EQ(CountingAllocator::instance().liveBytes(MemoryCategory::Temporary), 0);
}

class OffloadedBytes : public testing::TestWithParam<KeepingCase>
{
};

TEST_P(OffloadedBytes, goToTheHostAndBack)
{
    const KeepingCase &test = GetParam();
    at::set_num_threads(1);
    const shapes::ModelShape shape = deepShape();
    Watch watch;
    Training training(shape, test.precision, at::kCPU, watch);
    training.use(test.recompute, true);
    training.step();
    std::vector<Watch::Copy> copies;
    const auto last = static_cast<observe::UnitIndex>(shape.layers);
    int64_t bytes = 0;
    for (int pass = 0; pass < 2; ++pass) {
        for (observe::UnitIndex block = 1; block < last; ++block)
            copies.push_back({"offload activations", block, 0});
        for (observe::UnitIndex block = last; --block >= 1;)
            copies.push_back({"fetch activations", block, 0});
    }
    ASSERT_EQ(watch.copies.size(), copies.size());
    for (size_t i = 0; i < copies.size(); ++i) {
        EXPECT_EQ(watch.copies[i].name, copies[i].name);
        EXPECT_EQ(watch.copies[i].unit, copies[i].unit);
        // Each tensor begins at a multiple of 256.
        EXPECT_GE(watch.copies[i].bytes, keptOf(shape, test).matrixBytes);
        EXPECT_LT(watch.copies[i].bytes, keptOf(shape, test).matrixBytes + 5 * 256);
        bytes = watch.copies[i].bytes;
    }
    EXPECT_EQ(watch.hostHighest, bytes * (last - 1));
    EXPECT_EQ(watch.hostUsed, 0);
    const int64_t reserved = watch.hostReserved;
    EXPECT_GE(reserved, watch.hostHighest);
    training.step();
    EXPECT_EQ(watch.hostReserved, reserved); // the same buffers
    training.use(test.recompute, false);
    training.step();
    EXPECT_EQ(watch.hostReserved, 0);
}

static std::vector<KeepingCase> offloadingCases()
{
    std::vector<KeepingCase> cases = casesOn(at::kCPU);
    std::erase_if(cases, [](const KeepingCase &test) { return !test.offload; });
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Modes, KeptBytes, testing::ValuesIn(casesOn(at::kCPU)), nameOf);
INSTANTIATE_TEST_SUITE_P(Modes, OffloadedBytes, testing::ValuesIn(offloadingCases()), nameOf);

TEST(Recompute, changesBetweenStepsWithoutATrace)
{
    at::set_num_threads(1);
    const shapes::ModelShape shape = deepShape();
    Watch watch;
    watch.setMemoryTag({});
    Training plain(shape, Precision::Bf16, at::kCPU, watch);
    Training changing(shape, Precision::Bf16, at::kCPU, watch);
    std::vector<int64_t> atRest;
    for (int round = 0; round < 3; ++round) {
        for (const Recompute recompute : {Recompute::Off, Recompute::Block, Recompute::Selective}) {
            for (const bool offload : {false, true}) {
                changing.use(recompute, offload);
                EXPECT_EQ(changing.step(), plain.step());
            }
        }
        atRest.push_back(CountingAllocator::instance().liveBytes());
    }
    expectSame(changing.weights(), plain.weights());
    EXPECT_EQ(atRest[2], atRest[1]);
}

TEST(Recompute, evaluatesWithoutKeeping)
{
    at::set_num_threads(1);
    const shapes::ModelShape shape = deepShape();
    Watch watch;
    Training training(shape, Precision::Fp32, at::kCPU, watch);
    training.use(Recompute::Block, true);
    const at::Tensor tokens = torch::randint(0, shape.vocabulary, {2, 16}, at::kLong);
    training.decoder().forwardLoss(tokens, tokens, kScale);
    EXPECT_TRUE(watch.recomputed.empty());
    EXPECT_TRUE(watch.copies.empty());
    EXPECT_TRUE(watch.atLoss.empty());
}

TEST(Recompute, recomputesOnGatheredParametersOfTwoRanks)
{
    const shapes::ModelShape shape = deepShape();
    observe::Observer observer;
    std::map<Recompute, double> losses;
    for (const Recompute recompute : {Recompute::Off, Recompute::Selective, Recompute::Block}) {
        test::runRanks(2, observer, [&](engine::Communicator &communicator) {
            Training training(shape, Precision::Fp32, communicator, observer);
            training.use(recompute, true);
            training.step();
            const double loss = training.step();
            if (communicator.rank() == 0)
                losses[recompute] = loss;
        });
    }
    EXPECT_EQ(losses[Recompute::Selective], losses[Recompute::Off]);
    EXPECT_EQ(losses[Recompute::Block], losses[Recompute::Off]);
}

} // namespace shardscope
