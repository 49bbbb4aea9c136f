// SPDX-License-Identifier: Apache-2.0
// What counting costs an allocation on the CPU, with its free. Not a CTest: its numbers depend on the machine.
#include "profiler/allocator/cpu_allocator.h"

#include <benchmark/benchmark.h>
#include <c10/core/CPUAllocator.h>

namespace shardscope::allocator {
namespace {

void plain(benchmark::State &state)
{
    for (auto _ : state)
        benchmark::DoNotOptimize(c10::GetDefaultCPUAllocator()->allocate(static_cast<size_t>(state.range(0))));
}
BENCHMARK(plain)->Arg(256)->Arg(64 << 10);

void counted(benchmark::State &state)
{
    CpuAllocator allocator(*c10::GetDefaultCPUAllocator(), std::make_shared<collect::CurrentMemoryTag>());
    for (auto _ : state)
        benchmark::DoNotOptimize(allocator.allocate(static_cast<size_t>(state.range(0))));
}
BENCHMARK(counted)->Arg(256)->Arg(64 << 10);

} // namespace
} // namespace shardscope::allocator

BENCHMARK_MAIN();
