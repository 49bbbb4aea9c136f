// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/cupti_api.h"

#include <vector>

namespace shardscope::collect {

namespace {

constexpr auto kSoname = "libcupti.so.13";

/// LibTorch has CUPTI loaded already. Else it lies beside the CUDA runtime, in the wheels and in toolkits.
std::vector<std::string> candidates()
{
    std::vector<std::string> names = {kSoname};
    for (const char *neighbour : {"libcudart.so.13", "libnccl.so.2"}) {
        if (const std::string folder = folderOfLoaded(neighbour); !folder.empty())
            names.push_back(folder + "/" + kSoname);
    }
    names.emplace_back("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13");
    return names;
}

template <typename Pointer>
bool bind(const DynamicLibrary &library, Pointer &function, const char *name, std::string &missing)
{
    function = reinterpret_cast<Pointer>(library.find(name));
    if (!function && missing.empty())
        missing = name;
    return function != nullptr;
}

/// The name of the first function that the library lacks, or nothing.
std::string bindAll(CuptiApi &api)
{
    const DynamicLibrary &library = api.library;
    std::string missing;
    bind(library, api.getVersion, "cuptiGetVersion", missing);
    bind(library, api.getResultString, "cuptiGetResultString", missing);
    bind(library, api.getCallbackName, "cuptiGetCallbackName", missing);
    bind(library, api.subscribe, "cuptiSubscribe", missing);
    bind(library, api.unsubscribe, "cuptiUnsubscribe", missing);
    bind(library, api.setThreadIdType, "cuptiSetThreadIdType", missing);
    bind(library, api.setAttribute, "cuptiActivitySetAttribute", missing);
    bind(library, api.registerCallbacks, "cuptiActivityRegisterCallbacks", missing);
    bind(library, api.enable, "cuptiActivityEnable", missing);
    bind(library, api.disable, "cuptiActivityDisable", missing);
    bind(library, api.enableRuntimeApi, "cuptiActivityEnableRuntimeApi", missing);
    bind(library, api.enableDriverApi, "cuptiActivityEnableDriverApi", missing);
    bind(library, api.flushAll, "cuptiActivityFlushAll", missing);
    bind(library, api.getNextRecord, "cuptiActivityGetNextRecord", missing);
    bind(library, api.getDropped, "cuptiActivityGetNumDroppedRecords", missing);
    bind(library, api.push, "cuptiActivityPushExternalCorrelationId", missing);
    bind(library, api.pop, "cuptiActivityPopExternalCorrelationId", missing);
    bind(library, api.getStreamId, "cuptiGetStreamIdEx", missing);
    return missing;
}

} // namespace

Result<CuptiApi> CuptiApi::load()
{
    const std::vector<std::string> driver = {"libcuda.so.1"};
    if (auto found = DynamicLibrary::open(driver); !found)
        return fail("There is no NVIDIA driver ({}).", found.error().text);
    auto library = DynamicLibrary::open(candidates());
    if (!library) {
        return fail("CUPTI was not found: {}. It comes with the wheel nvidia-cuda-cupti; name its lib folder in "
                    "LD_LIBRARY_PATH.",
                    library.error().text);
    }
    CuptiApi api{.library = std::move(*library)};
    if (const std::string missing = bindAll(api); !missing.empty())
        return fail("This CUPTI has no {}: it is too old. Version 13.0 or newer is needed.", missing);
    // Records are read as version 13 lays them out.
    uint32_t version = 0;
    if (api.getVersion(&version) != CUPTI_SUCCESS || version / 10000 != CUPTI_API_VERSION / 10000)
        return fail("CUPTI reports version {}; this program was built for {}.", version, CUPTI_API_VERSION);
    return api;
}

std::string CuptiApi::text(CUptiResult result) const
{
    const char *text = nullptr;
    if (getResultString(result, &text) != CUPTI_SUCCESS || !text)
        return fmt::format("CUPTI error {}", static_cast<int>(result));
    return text;
}

} // namespace shardscope::collect
