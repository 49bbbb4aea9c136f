// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/cupti_calls.h"

#include "profiler/collect/muted_calls.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace shardscope::collect {

namespace {

/// By name and not by number: newer versions of CUDA have more of them.
bool putsWorkOnDevice(std::string_view name)
{
    static constexpr std::array<std::string_view, 10> kPrefixes = {
        "cudaLaunchKernel", "cudaLaunchCooperative", "cudaMemcpy", "cudaMemset", "cudaGraphLaunch",
        "cuLaunchKernel",   "cuLaunchCooperative",   "cuMemcpy",   "cuMemset",   "cuGraphLaunch"};
    return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// "cudaLaunchKernel_v7000" → "cudaLaunchKernel"; "cuMemcpyHtoD_v2" keeps what belongs to its name.
std::string withoutVersion(std::string name)
{
    const size_t at = name.rfind("_v");
    if (at != std::string::npos && name.size() - at > 5 &&
        std::all_of(name.begin() + static_cast<ptrdiff_t>(at) + 2, name.end(),
                    [](unsigned char c) { return std::isdigit(c); }))
        name.resize(at);
    return name;
}

} // namespace

CuptiCalls::CuptiCalls(const CuptiApi &api)
    : m_runtime(read(api, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE))
    , m_driver(read(api, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE))
{
}

std::vector<CuptiCalls::Call> CuptiCalls::read(const CuptiApi &api, CUpti_CallbackDomain domain, uint32_t count)
{
    std::vector<Call> calls(count);
    for (uint32_t number = 1; number < count; ++number) {
        const char *name = nullptr;
        if (api.getCallbackName(domain, number, &name) != CUPTI_SUCCESS || !name)
            continue;
        calls[number] = {withoutVersion(name), putsWorkOnDevice(name), isMuted(name)};
    }
    return calls;
}

const CuptiCalls::Call *CuptiCalls::find(CUpti_ActivityKind kind, uint32_t number) const
{
    const std::vector<Call> &calls = kind == CUPTI_ACTIVITY_KIND_RUNTIME ? m_runtime : m_driver;
    return number < calls.size() ? &calls[number] : nullptr;
}

bool CuptiCalls::launches(CUpti_ActivityKind kind, uint32_t number) const
{
    const Call *call = find(kind, number);
    return call && call->launches;
}

std::string_view CuptiCalls::name(CUpti_ActivityKind kind, uint32_t number) const
{
    const Call *call = find(kind, number);
    return call && !call->name.empty() ? std::string_view(call->name) : std::string_view("CUDA call");
}

CUptiResult CuptiCalls::mute(const CuptiApi &api) const
{
    return muteThose(api, [](const Call &call) { return call.muted; });
}

CUptiResult CuptiCalls::muteAllButLaunches(const CuptiApi &api) const
{
    return muteThose(api, [](const Call &call) { return !call.name.empty() && !call.launches; });
}

CUptiResult CuptiCalls::muteThose(const CuptiApi &api, bool (*which)(const Call &)) const
{
    for (uint32_t number = 0; number < m_runtime.size(); ++number) {
        if (!which(m_runtime[number]))
            continue;
        if (const CUptiResult result = api.enableRuntimeApi(number, 0); result != CUPTI_SUCCESS)
            return result;
    }
    for (uint32_t number = 0; number < m_driver.size(); ++number) {
        if (!which(m_driver[number]))
            continue;
        if (const CUptiResult result = api.enableDriverApi(number, 0); result != CUPTI_SUCCESS)
            return result;
    }
    return CUPTI_SUCCESS;
}

} // namespace shardscope::collect
