// SPDX-License-Identifier: Apache-2.0
// What recording costs the thread that trains: nanoseconds a span, a collective, a change of tag. Not a CTest: its
// numbers depend on the machine. Run: test_recorder_bench
#include "profiler/collect/recorder.h"
#include "tests/support/temporary_folder.h"

#include <benchmark/benchmark.h>

#include <memory>
#include <thread>

namespace shardscope::collect {
namespace {

using test::TemporaryFolder;

struct Bench
{
    TemporaryFolder folder;
    std::unique_ptr<Recorder> recorder;
    Bench()
    {
        RecorderOptions options;
        options.database = folder.path() / "rank-0.sqlite";
        options.flight = folder.path() / "rank-0.flight";
        options.device = hostDevice();
        options.queueEvents = size_t{1} << 20;
        recorder = std::move(*Recorder::open(std::move(options)));
        recorder->stepBegan(1);
    }
};

void span(benchmark::State &state)
{
    Bench bench;
    for (auto _ : state)
        bench.recorder->endSpan(bench.recorder->beginSpan({.name = "attention", .unit = 3}));
}
BENCHMARK(span)->Iterations(200'000);

void collective(benchmark::State &state)
{
    Bench bench;
    for (auto _ : state) {
        const int64_t number = bench.recorder->beginCollective({.dtype = "bf16"});
        bench.recorder->collectiveEnqueued(number);
        bench.recorder->collectiveStarted(number);
        bench.recorder->collectiveEnded(number);
    }
}
BENCHMARK(collective)->Iterations(100'000);

void memoryTag(benchmark::State &state)
{
    Bench bench;
    for (auto _ : state)
        benchmark::DoNotOptimize(bench.recorder->setMemoryTag({MemoryCategory::Temporary, 1}));
}
BENCHMARK(memoryTag)->Iterations(1'000'000);

} // namespace
} // namespace shardscope::collect

BENCHMARK_MAIN();
