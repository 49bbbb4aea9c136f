// SPDX-License-Identifier: Apache-2.0
// Offloaded parameters, gradients and optimizer states train as those on the device do, and leave nothing behind.
#include "core/model/decoder.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"
#include "tests/model/training_curve.h"

#include <ATen/Parallel.h>
#include <array>
#include <filesystem>
#include <gmock/gmock.h>
#include <mutex>
#include <torch/torch.h>
#include <unistd.h>

namespace shardscope {

using config::RunConfiguration;
using observe::MemoryPlace;
using test::Curve;
using test::expectEqualToTheBit;
using test::expectSameCurve;
using test::train;
using test::TrainingCase;

namespace {

struct Places
{
    OffloadPlace parameters = OffloadPlace::None;
    OffloadPlace gradients = OffloadPlace::None;
    OffloadPlace optimizer = OffloadPlace::None;
};

void setPlaces(RunConfiguration &configuration, const Places &places)
{
    configuration.offload.parameters = places.parameters;
    configuration.offload.gradients = places.gradients;
    configuration.offload.optimizer = places.optimizer;
}

std::string textOf(const Places &places)
{
    return fmt::format("parameters {}, gradients {}, optimizer {}", toText(places.parameters), toText(places.gradients),
                       toText(places.optimizer));
}

/// A folder for the files, which must be empty when the run is over.
class OffloadFolder
{
public:
    OffloadFolder() { std::filesystem::create_directories(m_path); }
    ~OffloadFolder()
    {
        EXPECT_TRUE(std::filesystem::is_empty(m_path));
        std::filesystem::remove_all(m_path);
    }
    std::string path() const { return m_path.string(); }

private:
    const std::filesystem::path m_path =
        std::filesystem::temp_directory_path() / fmt::format("shardscope-offloaded-{}", ::getpid());
};

constexpr OffloadPlace kNone = OffloadPlace::None;
constexpr OffloadPlace kCpu = OffloadPlace::Cpu;
constexpr OffloadPlace kNvme = OffloadPlace::Nvme;
constexpr Places kFilePlaces[] = {{kNone, kNone, kNvme}, {kNvme, kNone, kNone}, {kNvme, kNone, kNvme}};

} // namespace

// Each strategy at one world size; in all combinations, within the tolerances, they are in the grid.
TEST(Offload, inAFileChangesNoBit)
{
    at::set_num_threads(1);
    const OffloadFolder folder;
    const struct
    {
        int worldSize;
        Strategy strategy;
        int accumulation;
        ReduceEvery every;
        Precision precision;
        OptimizerKind optimizer;
    } cases[] = {
        {1, Strategy::Full, 2, ReduceEvery::Step, Precision::Fp32, OptimizerKind::AdamW},
        {2, Strategy::GradOp, 3, ReduceEvery::MicroBatch, Precision::Bf16, OptimizerKind::AdamW},
        {3, Strategy::None, 2, ReduceEvery::Step, Precision::Bf16, OptimizerKind::Sgd},
        {4, Strategy::Hybrid, 1, ReduceEvery::MicroBatch, Precision::Fp32, OptimizerKind::AdamW},
    };
    for (const auto &[worldSize, strategy, accumulation, every, precision, optimizer] : cases) {
        TrainingCase test;
        test.worldSize = worldSize;
        test.steps = test::kStepsToTheBit;
        test.accumulation = accumulation;
        test.tied = strategy == Strategy::Hybrid;
        test.configuration.parallel.strategy = strategy;
        test.configuration.parallel.reduceEvery = every;
        test.configuration.precision.compute = precision;
        test.configuration.optimizer.kind = optimizer;
        test.configuration.offload.path = folder.path();
        for (const double clipNorm : {0.0, 0.25}) {
            test.configuration.optimizer.clipNorm = clipNorm;
            setPlaces(test.configuration, {});
            const Curve plain = train(test);
            for (const Places &places : kFilePlaces) {
                SCOPED_TRACE(fmt::format("{} ranks, {}, clipped at {}: {}", worldSize, toText(strategy), clipNorm,
                                         textOf(places)));
                setPlaces(test.configuration, places);
                expectEqualToTheBit(train(test), plain);
            }
        }
    }
}

TEST(Offload, byRulesForSomeBucketsAndWithFrozenOnes)
{
    at::set_num_threads(1);
    const OffloadFolder folder;
    TrainingCase test;
    test.worldSize = 2;
    test.validateEvery = 3;
    test.configuration.precision.compute = Precision::Bf16;
    test.configuration.optimizer.clipNorm = 0.25;
    test.configuration.units = {{.kind = ParameterKind::Norm},
                                {.match = "block.0.attention.*", .frozen = true},
                                {.match = "block.1.*", .wrap = true}};
    const Curve plain = train(test);
    test.configuration.offload.path = folder.path();
    test.configuration.units[0].settings = {{"offload.optimizer", "nvme"}};
    test.configuration.units[1].settings = {{"offload.parameters", "nvme"}};
    test.configuration.units[2].settings = {{"offload.parameters", "nvme"}, {"parallel.strategy", "none"}};
    TrainingCase replicated = test;
    for (config::UnitRule &rule : replicated.configuration.units)
        std::erase_if(rule.settings, [](const auto &setting) { return setting.key.starts_with("offload."); });
    expectEqualToTheBit(train(test), train(replicated));
    expectSameCurve(train(test), plain, Precision::Bf16);
}

/// Sums what the engine says of memory that lies elsewhere, over the ranks of this process.
class PlaceObserver : public observe::Observer
{
public:
    void memoryHeld(const observe::HeldMemory &held) override
    {
        const std::lock_guard lock(m_mutex);
        m_bytes[static_cast<size_t>(held.place)][static_cast<size_t>(held.tag.category)] += held.usedBytes;
    }
    int64_t bytes(MemoryPlace place, MemoryCategory category)
    {
        const std::lock_guard lock(m_mutex);
        return m_bytes[static_cast<size_t>(place)][static_cast<size_t>(category)];
    }
    int64_t bytes(MemoryPlace place)
    {
        int64_t sum = 0;
        for (size_t category = 0; category < kMemoryCategories; ++category)
            sum += bytes(place, static_cast<MemoryCategory>(category));
        return sum;
    }

private:
    std::mutex m_mutex;
    std::array<std::array<int64_t, kMemoryCategories>, 4> m_bytes{};
};

static void trainOneStep(model::Decoder &decoder, const RunConfiguration &configuration, int step)
{
    TrainingCase test;
    test.worldSize = decoder.engine().communicator().worldSize();
    test.configuration = configuration;
    test::trainStep(decoder, test, test::stepTokens(decoder.shape(), step).to(decoder.engine().device()), nullptr);
}

TEST(Offload, changesBetweenStepsKeepEveryValueAndFreeTheOldPlace)
{
    at::set_num_threads(1);
    const OffloadFolder folder;
    PlaceObserver observer;
    const shapes::ModelShape shape = test::smallShape(true, false, true);
    test::runRanks(2, observer, [&](engine::Communicator &communicator) {
        RunConfiguration configuration;
        configuration.precision.compute = Precision::Bf16;
        configuration.optimizer.clipNorm = 0.25;
        configuration.offload.path = folder.path();
        model::Decoder plain(shape, configuration, communicator, observer);
        model::Decoder moved(shape, configuration, communicator, observer);
        plain.engine().initialize(3);
        moved.engine().initialize(3);
        for (int step = 0; step < 12; ++step) {
            const Strategy order[] = {Strategy::Full, Strategy::None, Strategy::GradOp};
            configuration.parallel.strategy = order[step / 2 % 3];
            configuration.optimizer.clipNorm = step % 4 == 3 ? 0 : 0.25;
            setPlaces(configuration, {});
            plain.engine().reconfigure(shapes::replanned(plain.engine().plan(), configuration).value());
            setPlaces(configuration, step % 2 ? Places{} : kFilePlaces[step / 2 % 3]);
            moved.engine().reconfigure(shapes::replanned(moved.engine().plan(), configuration).value());
            communicator.barrier();
            if (step % 2) {
                EXPECT_EQ(observer.bytes(MemoryPlace::Nvme), 0) << "step " << step;
                EXPECT_EQ(observer.bytes(MemoryPlace::Host), 0) << "step " << step;
            } else {
                const bool optimizer = configuration.offload.optimizer == kNvme && step > 0;
                EXPECT_EQ(observer.bytes(MemoryPlace::Nvme, MemoryCategory::Optimizer) > 0, optimizer);
                EXPECT_EQ(observer.bytes(MemoryPlace::Nvme, MemoryCategory::Parameters) > 0,
                          configuration.offload.parameters == kNvme);
            }
            communicator.barrier();
            trainOneStep(plain, configuration, step);
            trainOneStep(moved, configuration, step);
            const auto expected = plain.engine().stateShards();
            const auto states = moved.engine().stateShards();
            ASSERT_EQ(states.size(), expected.size());
            for (size_t i = 0; i < states.size(); ++i)
                EXPECT_TRUE(at::equal(states[i].data_S, expected[i].data_S))
                    << "step " << step << ", " << states[i].layout->name << " " << states[i].state;
        }
    });
    EXPECT_EQ(observer.bytes(MemoryPlace::Nvme), 0);
    EXPECT_EQ(observer.bytes(MemoryPlace::Host), 0);
}

TEST(Offload, whatACheckpointRestoresIsWhatTrains)
{
    at::set_num_threads(1);
    const OffloadFolder folder;
    PlaceObserver observer;
    const shapes::ModelShape shape = test::smallShape(true, false, true);
    test::runRanks(2, observer, [&](engine::Communicator &communicator) {
        RunConfiguration configuration;
        configuration.optimizer.clipNorm = 0.25;
        model::Decoder plain(shape, configuration, communicator, observer);
        configuration.offload.path = folder.path();
        setPlaces(configuration, {kNvme, kNone, kNvme});
        model::Decoder offloaded(shape, configuration, communicator, observer);
        plain.engine().initialize(3);
        offloaded.engine().initialize(4);
        for (int step = 0; step < 3; ++step)
            trainOneStep(plain, configuration, step);
        trainOneStep(offloaded, configuration, 9);
        {
            const auto from = plain.engine().stateShards();
            const auto to = offloaded.engine().stateShards();
            for (size_t i = 0; i < from.size(); ++i)
                at::Tensor(to[i].data_S).copy_(from[i].data_S);
            offloaded.engine().stateRestored(plain.engine().optimizerSteps());
        }
        for (int step = 3; step < 5; ++step) {
            trainOneStep(plain, configuration, step);
            trainOneStep(offloaded, configuration, step);
        }
        for (const engine::Bucket &bucket : plain.engine().buckets()) {
            for (const engine::ParameterPlace &place : bucket.layout.parameters) {
                EXPECT_TRUE(at::equal(plain.engine().gatherParameter(place.shape.name).value(),
                                      offloaded.engine().gatherParameter(place.shape.name).value()))
                    << place.shape.name;
            }
        }
    });
}

/// On one GPU, one rank: every combination against the run without, and nothing of a place once it is left.
TEST(OffloadCuda, everyCombinationTrainsAsWithout)
{
    if (!torch::cuda::is_available())
        GTEST_SKIP() << "no CUDA device";
    const OffloadFolder folder;
    PlaceObserver observer;
    auto communicator = engine::Communicator::create({.device = at::Device(at::kCUDA, 0)}, observer);
    ASSERT_TRUE(communicator.has_value()) << communicator.error().text;
    const shapes::ModelShape shape = test::smallShape(true, false, true);
    for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
        for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None}) {
            for (const double clipNorm : {0.0, 0.25}) {
                RunConfiguration configuration;
                configuration.precision.compute = precision;
                configuration.parallel.strategy = strategy;
                configuration.optimizer.clipNorm = clipNorm;
                configuration.offload.path = folder.path();
                const auto curveOf = [&](const Places &places, int accumulation) {
                    setPlaces(configuration, places);
                    model::Decoder decoder(shape, configuration, **communicator, observer);
                    decoder.engine().initialize(3);
                    TrainingCase test;
                    test.accumulation = accumulation;
                    test.configuration = configuration;
                    std::vector<double> values;
                    for (int step = 0; step < 10; ++step) {
                        const auto scalars = test::trainStep(
                            decoder, test, test::stepTokens(shape, step).to((*communicator)->device()), nullptr);
                        values.push_back(scalars.lossSum);
                        values.push_back(scalars.gradientNorm());
                    }
                    // Back to the device: what it trained on from there must be the same.
                    setPlaces(configuration, {});
                    decoder.engine().reconfigure(shapes::replanned(decoder.engine().plan(), configuration).value());
                    EXPECT_EQ(observer.bytes(MemoryPlace::Pinned), 0);
                    EXPECT_EQ(observer.bytes(MemoryPlace::Nvme), 0);
                    for (int step = 10; step < 12; ++step)
                        values.push_back(test::trainStep(decoder, test,
                                                         test::stepTokens(shape, step).to((*communicator)->device()),
                                                         nullptr)
                                             .lossSum);
                    return values;
                };
                for (const int accumulation : {1, 3}) {
                    const std::vector<double> plain = curveOf({}, accumulation);
                    for (const OffloadPlace parameters : {kNone, kCpu, kNvme}) {
                        for (const OffloadPlace gradients : {kNone, kCpu}) {
                            for (const OffloadPlace optimizer : {kNone, kCpu, kNvme}) {
                                const Places places{parameters, gradients, optimizer};
                                SCOPED_TRACE(fmt::format("{}, {}, accumulation {}, clipped at {}: {}",
                                                         toText(precision), toText(strategy), accumulation, clipNorm,
                                                         textOf(places)));
                                const std::vector<double> values = curveOf(places, accumulation);
                                const double tolerance = precision == Precision::Fp32 ? 1e-5 : 1e-2;
                                for (size_t i = 0; i < values.size(); ++i)
                                    EXPECT_NEAR(values[i] / plain[i], 1.0, tolerance) << "value " << i;
                            }
                        }
                    }
                }
            }
        }
    }
}

} // namespace shardscope
