// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/clock_watch.h"
#include "profiler/collect/host_facts.h"
#include "profiler/collect/kernel_name.h"
#include "profiler/collect/nvml.h"
#include "profiler/collect/nvml_types.h"
#include "profiler/collect/peak_rate.h"

#include "core/base/clock.h"

#include <gtest/gtest.h>

#if __has_include(<nvml.h>)
#include <cstddef>
#include <nvml.h>
static_assert(sizeof(shardscope::collect::nvml::ProcessInfo) == sizeof(nvmlProcessInfo_t));
static_assert(offsetof(shardscope::collect::nvml::ProcessInfo, usedBytes) ==
              offsetof(nvmlProcessInfo_t, usedGpuMemory));
static_assert(sizeof(shardscope::collect::nvml::Memory) == sizeof(nvmlMemory_t));
static_assert(offsetof(shardscope::collect::nvml::Memory, used) == offsetof(nvmlMemory_t, used));
static_assert(sizeof(shardscope::collect::nvml::Utilization) == sizeof(nvmlUtilization_t));
static_assert(shardscope::collect::nvml::kClockSm == NVML_CLOCK_SM);
static_assert(shardscope::collect::nvml::kTemperatureGpu == NVML_TEMPERATURE_GPU);
static_assert(shardscope::collect::nvml::kPcieRx == NVML_PCIE_UTIL_RX_BYTES);
#endif

namespace shardscope::collect {
namespace {

TEST(KernelName, IsShort)
{
    EXPECT_EQ(shortKernelName("_Z6squarePfi"), "square");
    EXPECT_EQ(shortKernelName("_ZN2at6native12_GLOBAL__N_113reduce_kernelILi512ELi1EfEEvT1_"),
              "reduce_kernel<512, 1, float>");
    EXPECT_EQ(shortKernelName("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"),
              "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64");
    EXPECT_LE(shortKernelName("_Z" + std::to_string(900) + std::string(900, 'k') + "v").size(), kKernelNameLength + 2);
}

TEST(KernelName, KnowsNcclsAndHidesTheProtocolThatIsNotTheirs)
{
    EXPECT_TRUE(isNcclKernel("ncclDevKernel_AllGather_RING_LL"));
    EXPECT_TRUE(isNcclKernel("ncclKernel_AllReduce_RING_LL_Sum_float"));
    EXPECT_TRUE(isNcclKernel("ncclSymkDevKernel_AllGather_LL"));
    EXPECT_FALSE(isNcclKernel("my_ncclDevKernel_"));
    EXPECT_EQ(shortKernelName("_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE"),
              "ncclDevKernel_AllGather");
}

TEST(PeakRate, IsThatOfTheCardOrNothing)
{
    DeviceDescription device{.kind = DeviceKind::Cuda, .name = "NVIDIA H200"};
    EXPECT_DOUBLE_EQ(peakFlops(device, Precision::Bf16).value_or(0), 989.4e12);
    EXPECT_DOUBLE_EQ(peakFlops(device, Precision::Fp32).value_or(0), 66.9e12);
    EXPECT_DOUBLE_EQ(peakFlops(device, Precision::Fp16).value_or(0), 989.4e12);
    device.name = "NVIDIA A100-SXM4-80GB";
    EXPECT_DOUBLE_EQ(peakFlops(device, Precision::Bf16).value_or(0), 311.9e12);
    device.name = "NVIDIA GeForce RTX 4090";
    EXPECT_DOUBLE_EQ(peakFlops(device, Precision::Bf16).value_or(0), 165.2e12);
    for (const char *unlike : {"NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA RTX A1000",
                               "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "Tesla K80", "NVIDIA H2000"}) {
        device.name = unlike;
        EXPECT_EQ(peakFlops(device, Precision::Bf16), std::nullopt) << unlike;
    }
    EXPECT_EQ(peakFlops(hostDevice(), Precision::Fp32), std::nullopt);
}

TEST(HostFacts, AreThisMachines)
{
    EXPECT_FALSE(processorName().empty());
    EXPECT_GT(hostDevice().memoryBytes.value_or(0), int64_t{1} << 28);
    const int64_t before = processorTimeNs();
    volatile int64_t sum = 0;
    for (int64_t i = 0; i < 5'000'000; ++i)
        sum = sum + i;
    EXPECT_GT(processorTimeNs(), before);
    EXPECT_GT(residentBytes().value_or(0), 1 << 20);
    EXPECT_LT(residentBytes().value_or(0), *hostDevice().memoryBytes);
}

TEST(ClockWatch, TellsAJumpFromASlew)
{
    ClockWatch watch;
    constexpr int64_t kTen = 10'000'000'000;
    EXPECT_TRUE(watch.due(0));
    EXPECT_EQ(watch.take({1'000 * kTen, 0, 0}), std::nullopt);
    EXPECT_FALSE(watch.due(kTen - 1));
    EXPECT_TRUE(watch.due(kTen));
    EXPECT_EQ(watch.take({1'001 * kTen + 4'000'000, kTen, 0}), std::nullopt);
    const auto jump = watch.take({1'002 * kTen + 3'604'000'000, 2 * kTen, 0});
    EXPECT_EQ(jump, 3'600'000'000);
    EXPECT_EQ(watch.take({1'003 * kTen + 3'604'000'000, 3 * kTen, 0}), std::nullopt);

    const ClockPair now = ClockPair::now();
    EXPECT_LT(std::abs(now.realtimeNs - realtimeNs()), 1'000'000'000);
    EXPECT_GE(now.uncertaintyNs, 0);
}

TEST(Nvml, SaysWhatIsMissing)
{
    auto nvml = Nvml::open("00000000:FE:1F.0");
    ASSERT_FALSE(nvml) << "there is a GPU at an address that no machine uses";
    EXPECT_NE(nvml.error().text.find("no metrics"), std::string::npos) << nvml.error().text;
}

} // namespace
} // namespace shardscope::collect
