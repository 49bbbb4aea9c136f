// SPDX-License-Identifier: Apache-2.0
#include "core/config/machine_facts.h"

#include <cstdlib>
#include <gmock/gmock.h>

using namespace shardscope::config;
using testing::HasSubstr;

namespace {

/// What the probe finds while the fake driver is told a thing.
MachineFacts probeWith(const char *variable = nullptr, const char *value = nullptr)
{
    const char *driver = std::getenv("FAKE_CUDA_DRIVER");
    if (!driver) {
        ADD_FAILURE() << "FAKE_CUDA_DRIVER names no library: CTest sets it.";
        return {};
    }
    if (variable)
        ::setenv(variable, value, 1);
    MachineFacts facts = probeMachine(driver);
    if (variable)
        ::unsetenv(variable);
    return facts;
}

} // namespace

TEST(ProbeMachine, tellsDevicesOfTheDriver)
{
    const MachineFacts facts = probeWith();
    EXPECT_EQ(facts.cudaProblem, "");
    EXPECT_EQ(facts.cudaDriverVersion, 13000);
    ASSERT_EQ(facts.cudaDevices.size(), 2);
    EXPECT_EQ(facts.cudaDevices[0].name, "Fake A");
    EXPECT_EQ(facts.cudaDevices[1].name, "Fake B");
    EXPECT_EQ(facts.cudaDevices[1].memoryBytes, int64_t{16} << 30);
    EXPECT_EQ(facts.cudaDevices[0].computeCapability, 86);
    EXPECT_EQ(facts.cudaDevices[0].uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    EXPECT_EQ(facts.cudaDevices[0].pci, "0000:1b:00.0");
}

TEST(ProbeMachine, saysWhyThereIsNoDevice)
{
    EXPECT_THAT(probeMachine("libno-such-driver.so.1").cudaProblem, HasSubstr("no NVIDIA driver"));
    EXPECT_THAT(probeMachine("libm.so.6").cudaProblem, HasSubstr("install driver 580"));
    EXPECT_THAT(probeWith("FAKE_CUDA_VERSION", "12040").cudaProblem,
                HasSubstr("supports CUDA 12.4, and 13.0 is needed"));
    EXPECT_THAT(probeWith("FAKE_CUDA_INIT", "100").cudaProblem, HasSubstr("CUDA_VISIBLE_DEVICES"));
    EXPECT_THAT(probeWith("FAKE_CUDA_INIT", "803").cudaProblem, HasSubstr("restart"));
    EXPECT_THAT(probeWith("FAKE_CUDA_COUNT", "0").cudaProblem, HasSubstr("no GPU"));
    const MachineFacts broken = probeWith("FAKE_CUDA_BROKEN", "1");
    EXPECT_THAT(broken.cudaProblem, HasSubstr("GPU 1 does not answer"));
    EXPECT_TRUE(broken.cudaDevices.empty());
}

TEST(ProbeMachine, knowsProcessorAndMemory)
{
    const MachineFacts facts = probeMachine("libno-such-driver.so.1");
    EXPECT_GE(facts.cpuThreads, 1);
    EXPECT_GT(facts.memoryBytes, int64_t{64} << 20);
}
