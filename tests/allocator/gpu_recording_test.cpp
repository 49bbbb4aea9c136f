// SPDX-License-Identifier: Apache-2.0
// A small workload of LibTorch on a real GPU: CUPTI's kernels in the database, joined to their units, and the memory
// equation against the allocator's own statistics.
#include "core/engine/communicator.h"
#include "profiler/allocator/cuda_memory.h"
#include "profiler/collect/activity_source.h"
#include "profiler/collect/muted_calls.h"
#include "tests/support/plain_sql.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <numeric>
#include <set>
#include <unistd.h>

namespace shardscope::allocator {
namespace {

using collect::Recorder;

/// Whether there is a device, without making a context: that is the recorder's turn.
bool hasGpu()
{
    int count = 0;
    return ::cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

collect::RecorderOptions options(const std::filesystem::path &folder, RecordLevel level,
                                 const std::shared_ptr<collect::CurrentMemoryTag> &tag)
{
    collect::RecorderOptions options;
    options.database = folder / "rank-0.sqlite";
    options.flight = folder / "rank-0.flight";
    options.level = level;
    options.memoryTag = tag;
    options.device = *describeCudaDevice(0);
    options.compute = Precision::Bf16;
    return options;
}

/// Two products, an elementwise pass, a copy each way and a cross-stream free: a step as the recorder sees one.
void step(Recorder &recorder, int64_t number, const at::Tensor &weight)
{
    const auto on = weight.options();
    recorder.stepBegan(number);
    at::Tensor kept;
    {
        const observe::SpanScope span(recorder, {.name = "forward", .phase = Phase::Forward, .unit = 0});
        const observe::MemoryScope tag(recorder, {MemoryCategory::Activations, 0});
        const at::Tensor input = at::ones({1000, 512}, at::kFloat).to(on.device(), at::kBFloat16);
        kept = at::relu(at::matmul(input, weight));
    }
    {
        const observe::SpanScope span(recorder, {.name = "backward", .phase = Phase::Backward, .unit = 1});
        const observe::MemoryScope tag(recorder, {MemoryCategory::Temporary, 1});
        const at::Tensor product = at::matmul(kept, weight.t());
        recorder.sampleMemory();
        const auto side = c10::cuda::getStreamFromPool();
        c10::cuda::CUDACachingAllocator::recordStream(product.storage().data_ptr(), side);
    }
    const double sum = kept.to(at::kFloat).sum().item<double>();
    EXPECT_GE(sum, 0);
    kept.reset();
    recorder.stepEnded({.loss = sum});
}

class GpuRecording : public testing::Test
{
protected:
    void SetUp() override
    {
        if (!hasGpu())
            GTEST_SKIP() << "no CUDA device";
    }
    const test::TemporaryFolder folder;
    const std::shared_ptr<collect::CurrentMemoryTag> tag = std::make_shared<collect::CurrentMemoryTag>();
};

TEST_F(GpuRecording, HoldsKernelsWithTheirUnitsAndAnExactMemorySum)
{
    auto memory = trackCudaMemory(0, tag);
    ASSERT_TRUE(memory) << memory.error().text;
    auto described = options(folder.path(), RecordLevel::Light, tag);
    described.memory = {*memory};
    auto opened = Recorder::open(std::move(described));
    ASSERT_TRUE(opened) << opened.error().text;
    Recorder &recorder = **opened;
    recorder.onUnits(std::vector<observe::UnitInfo>{{.name = "block.0"}, {.name = "block.1"}});

    constexpr int64_t kSteps = 5;
    tag->set({MemoryCategory::Parameters, 0});
    at::Tensor weight = at::randn({512, 384}, at::TensorOptions().device(at::kCUDA).dtype(at::kBFloat16));
    const at::Tensor odd = at::empty({100}, weight.options()); // 200 bytes, of which the allocator makes 512
    tag->set({});
    std::vector<int64_t> peaks;
    for (int64_t number = 1; number <= kSteps; ++number) {
        c10::cuda::CUDACachingAllocator::resetPeakStats(0);
        step(recorder, number, weight);
        peaks.push_back(c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0].peak);
        // Read while it lives, against the allocator's own figure.
        const auto reading = (*memory)->read();
        ASSERT_TRUE(reading);
        const int64_t allocated = c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0].current;
        EXPECT_EQ(reading->allocatedBytes, allocated);
        EXPECT_EQ(std::accumulate(reading->categories.begin(), reading->categories.end(), int64_t{0}) +
                      reading->roundingBytes,
                  allocated);
        EXPECT_EQ(reading->differenceBytes, 0);
    }
    c10::cuda::device_synchronize();
    ASSERT_TRUE(recorder.close(0));

    test::PlainSql database(folder.path() / "rank-0.sqlite");
    const std::string ofStreams = " FROM span JOIN lane USING (lane_id) WHERE lane.kind = 'stream' ";
    EXPECT_GE(database.value("SELECT count(*)" + ofStreams + "AND category = 'compute'"), kSteps * 4);
    EXPECT_GE(database.value("SELECT count(*)" + ofStreams + "AND category = 'copy'"), kSteps);
    // Two products and their like in each step, in both units.
    for (const char *unit : {"1", "2"}) {
        EXPECT_EQ(database.value("SELECT count(DISTINCT step_id)" + ofStreams + "AND unit_id = " + unit), kSteps)
            << "unit " << unit;
    }
    EXPECT_EQ(database.value("SELECT count(*)" + ofStreams + "AND unit_id = 2 AND phase <> 'backward'"), 0);
    EXPECT_GE(database.value("SELECT count(*) FROM span JOIN lane USING (lane_id) WHERE lane.kind = 'phase'"),
              2 * kSteps);
    // Times of the device stand within those of the run.
    EXPECT_EQ(database.value("SELECT count(*)" + ofStreams +
                             "AND (duration_ns < 0 OR start_ns < (SELECT started_ns "
                             "FROM process) OR start_ns + duration_ns > (SELECT ended_ns FROM process))"),
              0);
    EXPECT_EQ(database.value("SELECT count(*) FROM step WHERE compute_ns > 0 AND "
                             "compute_ns + exposed_communication_ns + exposed_copy_ns + idle_ns = end_ns - start_ns"),
              kSteps);
    EXPECT_EQ(database.value("SELECT sum(dropped_records) FROM flush"), 0);

    const std::string sum =
        "parameters_bytes + gathered_bytes + gradients_bytes + optimizer_bytes + activations_bytes + "
        "communication_bytes + temporary_bytes + input_bytes + other_bytes";
    EXPECT_GE(database.value("SELECT count(*) FROM memory"), kSteps * 4);
    EXPECT_EQ(database.value("SELECT count(*) FROM memory WHERE " + sum + " + rounding_bytes <> allocated_bytes"), 0);
    EXPECT_EQ(database.value("SELECT count(*) FROM memory WHERE allocated_bytes + pending_free_bytes <> active_bytes"),
              0);
    EXPECT_GT(database.value("SELECT max(pending_free_bytes) FROM memory"), 0) << "the cross-stream free is not seen";
    EXPECT_GT(database.value("SELECT max(rounding_bytes) FROM memory"), 0);
    const auto kept = database.lines("SELECT peak_allocated_bytes FROM step ORDER BY number");
    ASSERT_EQ(kept.size(), peaks.size());
    for (size_t i = 0; i < peaks.size(); ++i)
        EXPECT_EQ(kept[i], std::to_string(peaks[i])) << "the allocator's own peak of step " << i + 1;
    EXPECT_EQ(
        database.value("SELECT count(*) FROM (SELECT memory.memory_id FROM memory JOIN memory_peak USING (memory_id) "
                       "GROUP BY memory.memory_id HAVING sum(bytes) + rounding_bytes <> allocated_bytes)"),
        0);
    // A broken sum or a missing CUPTI would be a warning.
    for (const std::string &text : database.lines("SELECT text FROM event WHERE kind = 'warning'"))
        ADD_FAILURE() << text;
}

/// What is cast or copied for a gather, in no span of its own, ahead of the unit's turn.
TEST_F(GpuRecording, WhatIsCopiedForAGatherIsOfItsUnitAndStep)
{
    auto opened = Recorder::open(options(folder.path(), RecordLevel::Light, tag));
    ASSERT_TRUE(opened) << opened.error().text;
    Recorder &recorder = **opened;
    recorder.onUnits(std::vector<observe::UnitInfo>{{.name = "block.0"}, {.name = "block.1"}});
    {
        engine::Communicator::Options one;
        one.device = at::Device(at::kCUDA, 0);
        auto communicator = engine::Communicator::create(one, recorder);
        ASSERT_TRUE(communicator) << communicator.error().text;
        const at::Tensor slice = at::ones({1 << 20}, one.device);
        const at::Tensor cast = at::empty({1 << 20}, slice.options().dtype(at::kBFloat16));
        const at::Tensor copied = at::empty({1 << 20}, slice.options());
        recorder.stepBegan(1);
        {
            const observe::SpanScope span(recorder, {.name = "backward", .phase = Phase::Backward, .unit = 1});
            at::relu(slice);
            (*communicator)->allGather(cast, slice, {.unit = 0, .phase = Phase::Backward}).wait();
            at::relu(slice);
        }
        (*communicator)->allGather(copied, slice, {.unit = 1, .phase = Phase::Forward}).wait();
        c10::cuda::device_synchronize();
        recorder.stepEnded({.loss = 1});
    }
    ASSERT_TRUE(recorder.close(0));

    test::PlainSql database(folder.path() / "rank-0.sqlite");
    // The cast is a kernel, the copy is not; both run in the communicator's own stream.
    EXPECT_EQ(database.lines("SELECT category, phase, number, unit_id, collective_id FROM span JOIN lane USING "
                             "(lane_id) JOIN step USING (step_id) WHERE lane.kind = 'stream' AND native_id <> (SELECT "
                             "native_id FROM span JOIN lane USING (lane_id) JOIN name USING (name_id) WHERE lane.kind "
                             "= 'stream' AND unit_id = 2 AND phase = 'backward' LIMIT 1) ORDER BY span.start_ns"),
              (std::vector<std::string>{"compute|backward|1|1|-", "copy|forward|1|2|-"}));
    EXPECT_EQ(database.lines("SELECT unit_id FROM span JOIN lane USING (lane_id) WHERE lane.kind = 'phase'"),
              std::vector<std::string>{"2"})
        << "the gather breaks the block's backward in two";
}

/// A copy that NCCL makes in a stream of its own while it is given a collective.
TEST_F(GpuRecording, ACopyInAnotherStreamIsNoPartOfItsCollective)
{
    auto opened = Recorder::open(options(folder.path(), RecordLevel::Light, tag));
    ASSERT_TRUE(opened) << opened.error().text;
    Recorder &recorder = **opened;
    recorder.onUnits(std::vector<observe::UnitInfo>{{.name = "block.0"}});
    recorder.onCommunicator({.uid = "abc", .backend = "nccl", .members = {0, 1}});
    const at::Tensor memory = at::ones({1 << 16}, at::TensorOptions().device(at::kCUDA));
    const auto own = c10::cuda::getStreamFromPool(true, 0);
    const auto foreign = c10::cuda::getStreamFromPool(false, 0);
    c10::cuda::device_synchronize();
    recorder.stepBegan(1);
    const auto half = memory.nbytes() / 2;
    auto *bytes = static_cast<char *>(memory.mutable_data_ptr());
    for (int i = 0; i < 3; ++i) {
        const observe::DeviceWorkScope work(recorder, Phase::Forward, 0);
        const int64_t collective = recorder.beginCollective(
            {.operation = Operation::AllGather, .unit = 0, .dtype = "fp32", .stream = own.stream()});
        ASSERT_EQ(::cudaMemsetAsync(bytes, 0, half, foreign.stream()), cudaSuccess);
        ASSERT_EQ(::cudaMemcpyAsync(bytes + half, bytes, half, cudaMemcpyDeviceToDevice, own.stream()), cudaSuccess);
        recorder.collectiveEnqueued(collective);
    }
    c10::cuda::device_synchronize();
    recorder.stepEnded({.loss = 1});
    ASSERT_TRUE(recorder.close(0));

    test::PlainSql database(folder.path() / "rank-0.sqlite");
    EXPECT_EQ(database.lines("SELECT lane.name, name.text, phase, step_id, unit_id, group_concat(collective_id), "
                             "count(*) FROM span JOIN lane USING (lane_id) JOIN name USING (name_id) WHERE lane.kind = "
                             "'stream' AND category = 'copy' GROUP BY lane_id ORDER BY lane.name"),
              (std::vector<std::string>{"NCCL set-up|memset|forward|1|-|-|3",
                                        "copies|memcpy device to device|forward|1|1|1,2,3|3"}));
}

TEST_F(GpuRecording, AtFullKeepsTheKernelsShapesAndTheCalls)
{
    auto opened = Recorder::open(options(folder.path(), RecordLevel::Full, tag));
    ASSERT_TRUE(opened) << opened.error().text;
    (*opened)->onUnits(std::vector<observe::UnitInfo>{{.name = "block.0"}, {.name = "block.1"}});
    const at::Tensor weight = at::randn({512, 384}, at::TensorOptions().device(at::kCUDA).dtype(at::kBFloat16));
    step(**opened, 1, weight);
    c10::cuda::device_synchronize();
    ASSERT_TRUE((*opened)->close(0));
    test::PlainSql database(folder.path() / "rank-0.sqlite");
    EXPECT_GE(database.value("SELECT count(*) FROM kernel WHERE registers > 0 AND grid <> '' AND block <> ''"), 4);
    EXPECT_GE(database.value("SELECT count(*) FROM span JOIN name USING (name_id) WHERE text = 'cudaLaunchKernel'"), 1);
    // Its calls lie in the lane of the thread that made them, which is this one.
    EXPECT_EQ(database.lines("SELECT DISTINCT lane.name || ' ' || native_id FROM span JOIN name USING (name_id) "
                             "JOIN lane USING (lane_id) WHERE text = 'cudaLaunchKernel'"),
              std::vector{"train thread " + std::to_string(::getpid())});
    const auto calls = database.lines("SELECT DISTINCT text FROM span JOIN name USING (name_id) JOIN lane USING "
                                      "(lane_id) WHERE kind = 'thread' AND correlation IS NOT NULL");
    EXPECT_GE(calls.size(), 3U);
    for (const std::string &call : calls)
        EXPECT_FALSE(collect::isMuted(call)) << call;
}

/// Straight from CUPTI: neither a record of a call that is left out, nor one of what it lay in, which would wait for
/// it.
TEST_F(GpuRecording, CallsThatOnlyAskLeaveNoRecords)
{
    auto opened = collect::makeCuptiSource();
    ASSERT_TRUE(opened) << opened.error().text;
    collect::ActivitySource &source = **opened;
    ASSERT_TRUE(source.start(RecordLevel::Light));
    const auto ask = [&] {
        source.push(collect::ContextKind::Span, 7);
        void *memory = nullptr;
        int device = -1;
        auto capturing = cudaStreamCaptureStatusNone;
        EXPECT_EQ(::cudaGetDevice(&device), cudaSuccess);
        EXPECT_EQ(::cudaMalloc(&memory, 1024), cudaSuccess);
        EXPECT_EQ(::cudaMemsetAsync(memory, 0, 1024, nullptr), cudaSuccess);
        EXPECT_EQ(::cudaStreamIsCapturing(nullptr, &capturing), cudaSuccess);
        EXPECT_EQ(::cudaPeekAtLastError(), cudaSuccess);
        EXPECT_EQ(::cudaDeviceSynchronize(), cudaSuccess);
        EXPECT_EQ(::cudaFree(memory), cudaSuccess);
        source.pop(collect::ContextKind::Span);
    };
    ask();
    ASSERT_TRUE(source.setLevel(RecordLevel::Full));
    ask();
    // At `light` what puts work on the device is told from where it belongs, after `full` too.
    ASSERT_TRUE(source.setLevel(RecordLevel::Light));
    ask();
    // What is left out at `full` is so again after another level.
    ASSERT_TRUE(source.setLevel(RecordLevel::Full));
    ask();
    const collect::ActivityBatch batch = source.stop();
    EXPECT_THAT(batch.warnings, testing::Not(testing::Contains(testing::HasSubstr("calls that are of no use"))));
    EXPECT_EQ(batch.dropped, 0);
    std::map<std::string, int> calls;
    std::set<uint32_t> known, memsets, correlated;
    for (const collect::ActivityRecord &record : batch.records) {
        if (record.kind == collect::ActivityKind::Memset)
            memsets.insert(record.correlation);
        if (record.kind == collect::ActivityKind::Correlation)
            correlated.insert(record.correlation);
        if (record.kind != collect::ActivityKind::Call)
            continue;
        ++calls[std::string(record.name)];
        known.insert(record.correlation);
    }
    EXPECT_EQ(memsets.size(), 4U);
    EXPECT_TRUE(std::ranges::includes(correlated, memsets));
    for (const char *kept : {"cudaMalloc", "cudaDeviceSynchronize", "cudaFree"})
        EXPECT_EQ(calls[kept], 2) << kept;
    EXPECT_EQ(calls["cudaMemsetAsync"], 4);
    for (const auto &[name, count] : calls)
        EXPECT_FALSE(collect::isMuted(name)) << name << ", " << count << " times";
    for (const collect::ActivityRecord &record : batch.records) {
        const bool isCorrelation = record.kind == collect::ActivityKind::Correlation;
        EXPECT_TRUE(!isCorrelation || known.contains(record.correlation)) << "of a call without a record";
    }
}

} // namespace
} // namespace shardscope::allocator
