// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace shardscope::worker {

/// What the environment says of this process's place in its job: torchrun's variables, and those of our supervisor.
struct RankEnvironment
{
    int rank = 0;
    int worldSize = 1;
    int localRank = 0;
    int localWorldSize = 1;
    std::string masterAddress = "127.0.0.1";
    std::optional<int> masterPort;
    bool agentStore = false; ///< torchrun's agent holds the store: everybody is a client of it
    std::string storePrefix; ///< keeps restarts under one agent apart
    int restarts = 0;        ///< how often torchrun has started this job again

    // From our supervisor
    bool supervised = false;
    std::optional<int> storeFd; ///< rank 0's: the listening socket of the store
    std::optional<int> attempt;
    std::optional<std::filesystem::path> resumeFrom;
};

/// The value of a variable; nothing where it is unset or empty.
using Variables = std::function<std::optional<std::string>(const char *name)>;
std::optional<std::string> processVariable(const char *name);

/// Without RANK and WORLD_SIZE: one rank, alone. An error names the variable and what it must be.
Result<RankEnvironment> readRankEnvironment(const Variables &variable = processVariable);

} // namespace shardscope::worker
