// SPDX-License-Identifier: Apache-2.0
// Which of CUDA's calls are left out of recordings, and that users are told.
#include "core/base/file.h"
#include "profiler/collect/muted_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#if __has_include(<cupti.h>)
#include "profiler/collect/cupti_calls.h"
#endif

namespace shardscope::collect {
namespace {

TEST(MutedCalls, AreThoseThatOnlyAsk)
{
    for (const char *call :
         {"cudaGetDevice", "cudaGetDevice_v3020", "cuDevicePrimaryCtxGetState", "cuGetProcAddress_v2",
          "cudaStreamIsCapturing_ptsz_v10000", "cudaStreamGetCaptureInfo_v2_ptsz_v11030"})
        EXPECT_TRUE(isMuted(call)) << call;
    for (const char *call :
         {"cudaGetDeviceCount_v3020", "cudaSetDevice_v3020", "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020",
          "cudaMalloc_v3020", "cudaEventQuery_v3020", "cudaStreamQuery_v3020", "cudaStreamSynchronize_v3020",
          "cudaFuncGetAttributes_v3020", "cuKernelGetAttribute", "cuLaunchKernel", "cuMemCreate", "cudaGetDeviceX", ""})
        EXPECT_FALSE(isMuted(call)) << call;
}

TEST(MutedCalls, AreNamedByTheContract)
{
    const auto contract = readTextFile("docs/contract.md");
    ASSERT_TRUE(contract) << contract.error().text;
    const size_t begin = contract->find("\n`record.level`: ");
    ASSERT_NE(begin, std::string::npos);
    const std::string paragraph = contract->substr(begin, contract->find("\n\n", begin) - begin);
    for (const std::string_view call : kMutedCalls)
        EXPECT_THAT(paragraph, testing::HasSubstr("`" + std::string(call) + "`"));
    const std::string list = paragraph.substr(paragraph.find("count them: "));
    const auto ticks = static_cast<size_t>(std::ranges::count(list, '`'));
    EXPECT_EQ(ticks, 2 * (kMutedCalls.size() + 3)) << "and no others, beside _v2, _v3 and _ptsz";
}

#if __has_include(<cupti.h>)

/// What CUPTI was told of a call: its number, positive to record it and negative not to.
std::vector<int> &told(CUpti_CallbackDomain domain)
{
    static std::vector<int> runtime;
    static std::vector<int> driver;
    return domain == CUPTI_CB_DOMAIN_RUNTIME_API ? runtime : driver;
}

CUptiResult CUPTIAPI nameOf(CUpti_CallbackDomain domain, uint32_t number, const char **name)
{
    static constexpr std::array kRuntime = {"cudaGetDevice_v3020", "cudaLaunchKernel_v7000", "cudaEventQuery_v3020"};
    static constexpr std::array kDriver = {"cuLaunchKernel", "cuKernelGetName"};
    const bool isRuntime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
    if (number > (isRuntime ? kRuntime.size() : kDriver.size()))
        return CUPTI_ERROR_INVALID_PARAMETER;
    *name = isRuntime ? kRuntime[number - 1] : kDriver[number - 1];
    return CUPTI_SUCCESS;
}

CUptiResult tell(CUpti_CallbackDomain domain, CUpti_CallbackId number, uint8_t enable)
{
    told(domain).push_back(enable ? static_cast<int>(number) : -static_cast<int>(number));
    return CUPTI_SUCCESS;
}

TEST(MutedCalls, AreTurnedOffOneByOne)
{
    auto library = DynamicLibrary::open(std::vector<std::string>{"libc.so.6"});
    ASSERT_TRUE(library) << library.error().text;
    CuptiApi api{.library = std::move(*library)};
    api.getCallbackName = nameOf;
    api.enableRuntimeApi = [](CUpti_CallbackId number, uint8_t enable) {
        return tell(CUPTI_CB_DOMAIN_RUNTIME_API, number, enable);
    };
    api.enableDriverApi = [](CUpti_CallbackId number, uint8_t enable) {
        return tell(CUPTI_CB_DOMAIN_DRIVER_API, number, enable);
    };
    const CuptiCalls calls(api);
    EXPECT_EQ(calls.mute(api), CUPTI_SUCCESS);
    EXPECT_THAT(std::exchange(told(CUPTI_CB_DOMAIN_RUNTIME_API), {}), testing::ElementsAre(-1));
    EXPECT_THAT(std::exchange(told(CUPTI_CB_DOMAIN_DRIVER_API), {}), testing::ElementsAre(-2));
    EXPECT_EQ(calls.muteAllButLaunches(api), CUPTI_SUCCESS);
    EXPECT_THAT(std::exchange(told(CUPTI_CB_DOMAIN_RUNTIME_API), {}), testing::ElementsAre(-1, -3));
    EXPECT_THAT(std::exchange(told(CUPTI_CB_DOMAIN_DRIVER_API), {}), testing::ElementsAre(-2));
    api.enableDriverApi = [](CUpti_CallbackId, uint8_t) { return CUPTI_ERROR_NOT_SUPPORTED; };
    EXPECT_EQ(calls.mute(api), CUPTI_ERROR_NOT_SUPPORTED);
    told(CUPTI_CB_DOMAIN_RUNTIME_API).clear();
}

#endif

} // namespace
} // namespace shardscope::collect
