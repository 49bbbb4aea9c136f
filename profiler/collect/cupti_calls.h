// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/cupti_api.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::collect {

/// The runtime's and the driver's calls by number: their names, which of them put work on the device, and which are not
/// worth a record.
class CuptiCalls
{
public:
    explicit CuptiCalls(const CuptiApi &api);

    bool launches(CUpti_ActivityKind kind, uint32_t number) const;
    /// "cudaLaunchKernel", without the version that CUPTI appends.
    std::string_view name(CUpti_ActivityKind kind, uint32_t number) const;
    /// After their kinds were enabled: no longer records muted_calls.h's.
    CUptiResult mute(const CuptiApi &api) const;
    /// After their kinds were enabled: records none but the launching ones.
    CUptiResult muteAllButLaunches(const CuptiApi &api) const;

private:
    struct Call
    {
        std::string name;
        bool launches = false;
        bool muted = false;
    };
    /// All for which `which` holds, or up to the first that fails.
    CUptiResult muteThose(const CuptiApi &api, bool (*which)(const Call &)) const;
    static std::vector<Call> read(const CuptiApi &api, CUpti_CallbackDomain domain, uint32_t count);
    const Call *find(CUpti_ActivityKind kind, uint32_t number) const;

    std::vector<Call> m_runtime;
    std::vector<Call> m_driver;
};

} // namespace shardscope::collect
