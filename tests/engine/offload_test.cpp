// SPDX-License-Identifier: Apache-2.0
// The file that states are offloaded to, and updates by pieces of it.
#include "core/engine/offload_file.h"
#include "core/engine/state_memory.h"
#include "core/engine/state_update.h"
#include "core/engine/worker_team.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/Sleep.h>
#include <algorithm>
#include <atomic>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <memory>
#include <span>
#include <unistd.h>

namespace shardscope::engine {

using testing::HasSubstr;
namespace fs = std::filesystem;

class Offload : public testing::Test
{
protected:
    void SetUp() override { fs::create_directories(m_folder); }
    void TearDown() override { fs::remove_all(m_folder); }
    const fs::path m_folder = fs::temp_directory_path() / fmt::format("shardscope-offload-{}", ::getpid());
};

TEST(WorkerTeam, callsEachPieceOnceAndThrowsWhatOneThrew)
{
    for (const int threads : {1, 3}) {
        WorkerTeam team(threads, "test");
        EXPECT_EQ(team.threads(), threads);
        for (int round = 0; round < 20; ++round) {
            std::vector<std::atomic<int>> calls(101);
            team.run(101, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
            for (const auto &count : calls)
                EXPECT_EQ(count, 1);
        }
        EXPECT_THROW(team.run(8, [](int64_t i) { i == 5 ? throw std::runtime_error("five") : void(); }),
                     std::runtime_error);
        std::atomic<int> after = 0;
        team.run(4, [&](int64_t) { ++after; });
        EXPECT_EQ(after, 4);
    }
}

TEST_F(Offload, fileHasNoNameAndGivesItsSpaceBack)
{
    auto file = OffloadFile::create(m_folder / "made", 0);
    ASSERT_TRUE(file.has_value()) << file.error().text;
    EXPECT_TRUE(fs::is_empty(m_folder / "made")) << "nothing is left behind by a kill";
    const int64_t first = (*file)->reserve(2 * kFileBlock, "a test").value();
    const int64_t second = (*file)->reserve(kFileBlock, "a test").value();
    EXPECT_NE(first, second);
    std::byte *data = (*file)->map(first, 2 * kFileBlock).value();
    std::memset(data, 7, 2 * kFileBlock);
    OffloadFile::unmap(data, 2 * kFileBlock);
    (*file)->release(first, 2 * kFileBlock);
    (*file)->release(second, kFileBlock);
    EXPECT_EQ((*file)->reserve(3 * kFileBlock, "a test").value(), first) << "neighbours become one again";
    data = (*file)->map(first, 3 * kFileBlock).value();
    EXPECT_TRUE(std::all_of(data, data + 3 * kFileBlock, [](std::byte b) { return b == std::byte{0}; }));
    OffloadFile::unmap(data, 3 * kFileBlock);
}

TEST_F(Offload, mappingAndTransferSeeTheSame)
{
    auto file = OffloadFile::create(m_folder, 0);
    ASSERT_TRUE(file.has_value()) << file.error().text;
    const int64_t bytes = int64_t{3} << 20; // several requests
    const int64_t offset = (*file)->reserve(bytes, "a test").value();
    const auto transfer = (*file)->transfer();
    auto *memory = static_cast<std::byte *>(std::aligned_alloc(kFileBlock, static_cast<size_t>(bytes)));
    for (int round = 0; round < 3; ++round) {
        std::byte *mapped = (*file)->map(offset, bytes).value();
        for (int64_t i = 0; i < bytes; ++i)
            mapped[i] = static_cast<std::byte>(i * 31 + round);
        OffloadFile::unmap(mapped, bytes);
        const FilePiece read{false, offset, memory, bytes};
        transfer->run({&read, 1});
        for (int64_t i = 0; i < bytes; i += 1023)
            ASSERT_EQ(memory[i], static_cast<std::byte>(i * 31 + round)) << i;
        std::memset(memory, 100 + round, static_cast<size_t>(bytes));
        const FilePiece halves[] = {{true, offset, memory, bytes / 2},
                                    {true, offset + bytes / 2, memory + bytes / 2, bytes / 2}};
        transfer->run(halves);
        mapped = (*file)->map(offset, bytes).value();
        EXPECT_EQ(std::memcmp(mapped, memory, static_cast<size_t>(bytes)), 0);
        OffloadFile::unmap(mapped, bytes);
    }
    std::free(memory);
}

TEST_F(Offload, threadsAndRingMoveTheSameBytes)
{
    const int file = ::open((m_folder / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_DIRECT, 0600);
    if (file < 0)
        GTEST_SKIP() << m_folder << " is on a file system that refuses O_DIRECT";
    const size_t bytes = (size_t{3} << 20) + kFileBlock; // several requests
    ASSERT_EQ(::ftruncate(file, static_cast<off_t>(bytes)), 0);
    std::string problem; // whether there is a ring is the system's to say
    const auto first = FileTransfer::open(file, problem);
    EXPECT_EQ(first->name() == "io_uring", problem.empty()) << problem;
    const auto threads = FileTransfer::byThreads(file);
    const auto buffer = [](size_t size) {
        return std::unique_ptr<std::byte[], decltype(&std::free)>(
            static_cast<std::byte *>(std::aligned_alloc(kFileBlock, size)), &std::free);
    };
    const auto writtenBytes = buffer(bytes);
    const auto readBytes = buffer(bytes);
    const std::span written(writtenBytes.get(), bytes);
    const std::span read(readBytes.get(), bytes);
    int round = 0;
    for (const auto &[writer, reader] : {std::pair{&first, &threads}, {&threads, &first}, {&threads, &threads}}) {
        ++round;
        for (size_t i = 0; i < bytes; ++i)
            written[i] = static_cast<std::byte>(i * 31 + static_cast<size_t>(round));
        const FilePiece in{true, 0, written.data(), static_cast<int64_t>(bytes)};
        const FilePiece out{false, 0, read.data(), static_cast<int64_t>(bytes)};
        (*writer)->run({&in, 1});
        (*reader)->run({&out, 1});
        EXPECT_TRUE(std::ranges::equal(read, written)) << (*writer)->name() << " to " << (*reader)->name();
    }
    const FilePiece beyond{false, static_cast<int64_t>(bytes), read.data(), kFileBlock};
    EXPECT_THROW(threads->run({&beyond, 1}), std::runtime_error);
    ::close(file);
}

TEST_F(Offload, goesByThreadsWhereAFileSystemRefusesODirect)
{
    const int file = ::open((m_folder / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    std::string problem;
    EXPECT_THAT(FileTransfer::open(file, problem)->name(), HasSubstr("threads"));
    EXPECT_THAT(problem, HasSubstr("O_DIRECT"));
    ::close(file);
}

TEST_F(Offload, fullDriveIsSaidBeforeAnythingIsWritten)
{
    auto file = OffloadFile::create(m_folder, 0);
    ASSERT_TRUE(file.has_value()) << file.error().text;
    const auto refused = (*file)->reserve(int64_t{1} << 55, "offloaded optimizer states");
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().text, HasSubstr("offloaded optimizer states"));
    EXPECT_THAT(refused.error().text, HasSubstr("are free"));
    EXPECT_THAT(refused.error().text, HasSubstr("offload.path"));
    EXPECT_TRUE((*file)->reserve(kFileBlock, "a test").has_value());
}

TEST_F(Offload, folderThatCannotBeMadeIsNamed)
{
    std::ofstream(m_folder / "file") << "no folder";
    const auto file = OffloadFile::create(m_folder / "file" / "below", 0);
    ASSERT_FALSE(file.has_value());
    EXPECT_THAT(file.error().text, HasSubstr("file/below"));
}

/// Counts what lies where.
class HeldCounter : public observe::Observer
{
public:
    void memoryHeld(const observe::HeldMemory &held) override
    {
        bytes[static_cast<size_t>(held.place)] += held.usedBytes;
    }
    int64_t of(observe::MemoryPlace place) const { return bytes[static_cast<size_t>(place)]; }
    std::array<int64_t, 4> bytes{};
};

TEST_F(Offload, updateByPiecesHasTheBitsOfOneUpdate)
{
    HeldCounter observer;
    const int64_t elements = 5 * 4096 + 384;
    const ElementRange held{12800, 12800 + elements}; // of a bucket that others hold the rest of
    const std::vector<DecayRange> decay = {{{0, 15000 / 128 * 128}, true}, {{15000 / 128 * 128, 1 << 20}, false}};
    for (const OptimizerKind kind : {OptimizerKind::AdamW, OptimizerKind::Sgd}) {
        UpdateRule rule;
        rule.kind = kind;
        rule.learningRate = rule.adamW.learningRate = 1e-2F;
        rule.adamW.weightDecay = 0.1F;
        rule.weightDecay = 0.1;
        rule.momentum = 0.9;
        const at::Tensor clip = at::scalar_tensor(0.37, at::kFloat);
        const auto generator = [](uint64_t seed) { return at::detail::createCPUGenerator(seed); };
        UpdateParts plain{at::randn({elements}, generator(1)), at::zeros({elements}), at::zeros({elements}), {}};
        if (kind == OptimizerKind::Sgd)
            plain.moment2 = at::Tensor();
        StatePlaces places(at::kCPU, 0, m_folder, observer);
        StateUpdater updater(at::kCPU, 3, 4096, places, observer);
        StateUpdate update;
        const auto inFile = [&](const at::Tensor &value, at::ScalarType type) {
            StateMemory memory =
                places.make(OffloadPlace::Nvme, elements, type, {MemoryCategory::Optimizer, 0}, "a test");
            memory.tensor().copy_(value);
            return memory;
        };
        update.held = held;
        update.decay = decay;
        update.master = inFile(plain.master, at::kFloat);
        update.moment1 = inFile(plain.moment1, at::kFloat);
        if (plain.moment2.defined())
            update.moment2 = inFile(plain.moment2, at::kFloat);
        update.copy = inFile(plain.master, at::kBFloat16);
        update.onHost = true;
        update.rule = rule;
        update.begin = [clip] { return clip; };
        for (uint64_t step = 0; step < 4; ++step) {
            plain.gradient = at::randn({elements}, generator(100 + step));
            update.gradient_S = plain.gradient.clone();
            updateParts(plain, held, decay, rule, clip);
            updater.enqueue(update).wait();
            EXPECT_TRUE(at::equal(update.master.tensor(), plain.master));
            EXPECT_TRUE(at::equal(update.moment1.tensor(), plain.moment1));
            const bool hasSecond = plain.moment2.defined();
            EXPECT_TRUE(!hasSecond || at::equal(update.moment2.tensor(), plain.moment2));
            EXPECT_TRUE(at::equal(update.copy.tensor(), plain.master.to(at::kBFloat16)));
        }
        EXPECT_GT(observer.of(observe::MemoryPlace::Nvme), 0);
        update = {};
        updater.freeBuffers();
        EXPECT_EQ(observer.of(observe::MemoryPlace::Nvme), 0);
        EXPECT_EQ(observer.of(observe::MemoryPlace::Host), 0);
    }
}

/// Buffers on the device are made of memory that the computation has given back and is still at work on.
TEST_F(Offload, cudaBuffersAreNotWrittenBeforeTheComputationHasLeftThem)
{
    if (c10::cuda::device_count() == 0)
        GTEST_SKIP() << "no CUDA device";
    const at::Device device(at::kCUDA, 0);
    observe::Observer observer;
    StatePlaces places(device, 0, m_folder, observer);
    constexpr int64_t kElements = 4096;
    StateUpdater updater(device, 1, kElements, places, observer);
    StateUpdate update;
    const auto make = [&](OffloadPlace place) {
        return places.make(place, kElements, at::kFloat, {MemoryCategory::Optimizer, 0}, "a test");
    };
    update.held = {0, kElements};
    update.mostHeld = kElements;
    update.decay = {{{0, kElements}, false}};
    update.master = make(OffloadPlace::None);
    update.moment1 = make(OffloadPlace::Cpu);
    update.moment2 = make(OffloadPlace::Cpu);
    update.gradient_S = at::ones({kElements}, device);
    update.rule.adamW = {.learningRate = 1e-2F, .biasCorrection1 = 0.1F, .biasCorrection2 = 0.001F};
    // All that the allocator has of this size, and a computation that writes there, late.
    std::vector<at::Tensor> used;
    for (int i = 0; i < 64; ++i)
        used.push_back(at::zeros({kElements}, device));
    c10::cuda::device_synchronize();
    at::cuda::sleep(400'000'000); // some tenths of a second
    for (const at::Tensor &one : used)
        one.fill_(std::nan(""));
    used.clear();
    const auto isThere = std::make_shared<at::cuda::CUDAEvent>();
    isThere->record(c10::cuda::getCurrentCUDAStream());
    update.begin = [isThere] {
        isThere->block(c10::cuda::getCurrentCUDAStream());
        return at::Tensor();
    };
    updater.enqueue(update).wait();
    EXPECT_FALSE(update.moment1.tensor().isnan().any().item<bool>());
    EXPECT_NEAR(update.master.tensor().min().item<float>(), -1e-2, 1e-6); // a first step of Adam is its learning rate
    EXPECT_NEAR(update.master.tensor().max().item<float>(), -1e-2, 1e-6);
}

} // namespace shardscope::engine
