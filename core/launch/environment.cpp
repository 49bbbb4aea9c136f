// SPDX-License-Identifier: Apache-2.0
#include "core/launch/environment.h"

#include "core/launch/launch_plan.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unistd.h>

namespace shardscope::launch {

/// What torchrun and its like leave in the environment, and what is between a supervisor and its own ranks.
static bool belongsToAnotherJob(std::string_view name)
{
    static constexpr std::array<std::string_view, 12> names = {
        "RANK",      "WORLD_SIZE",      "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",  "GROUP_WORLD_SIZE",
        "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME",  "MASTER_ADDR",      "MASTER_PORT", "NCCL_COMM_ID"};
    static constexpr std::array<std::string_view, 4> ours = {"SHARDSCOPE_CONTROL_FD", "SHARDSCOPE_STORE_FD",
                                                             "SHARDSCOPE_ATTEMPT", "SHARDSCOPE_RESUME"};
    return name.starts_with("TORCHELASTIC_") || std::find(names.begin(), names.end(), name) != names.end() ||
           std::find(ours.begin(), ours.end(), name) != ours.end();
}

Environment processEnvironment()
{
    Environment environment;
    for (char **entry = ::environ; entry && *entry; ++entry) {
        const std::string_view text(*entry);
        const size_t equals = text.find('=');
        if (equals != std::string_view::npos && equals > 0)
            environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    return environment;
}

Environment rankEnvironment(const LaunchPlan &plan, int rank, int storePort, const InheritedFds &fds)
{
    Environment environment;
    for (const auto &[name, value] : plan.environment) {
        if (!belongsToAnotherJob(name))
            environment.emplace(name, value);
    }
    const std::string rankText = std::to_string(rank);
    environment["RANK"] = rankText;
    environment["LOCAL_RANK"] = rankText;
    environment["WORLD_SIZE"] = std::to_string(plan.ranks);
    environment["LOCAL_WORLD_SIZE"] = std::to_string(plan.ranks);
    environment["MASTER_ADDR"] = "127.0.0.1";
    environment["MASTER_PORT"] = std::to_string(storePort);
    environment["SHARDSCOPE_ATTEMPT"] = std::to_string(plan.attempt);
    if (plan.resumeFrom)
        environment["SHARDSCOPE_RESUME"] = plan.resumeFrom->path.string();
    if (fds.control >= 0)
        environment["SHARDSCOPE_CONTROL_FD"] = std::to_string(fds.control);
    if (fds.store >= 0)
        environment["SHARDSCOPE_STORE_FD"] = std::to_string(fds.store);
    // Without it each rank would start as many threads as there are cores, and they would fight.
    environment.emplace("OMP_NUM_THREADS", std::to_string(std::max(1, plan.cores / std::max(1, plan.ranks))));
    if (plan.shareDevice) {
        // NCCL refuses two ranks of one host on one GPU: each becomes a host of its own, and they talk over loopback.
        environment["NCCL_HOSTID"] = "shardscope-" + rankText;
        environment["NCCL_SOCKET_IFNAME"] = "lo";
    }
    return environment;
}

} // namespace shardscope::launch
