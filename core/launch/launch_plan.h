// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/run/run_folder.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace shardscope::launch {

/// What the supervisor starts: the folder and its attempt are made, and the attempt's config.json is written.
struct LaunchPlan
{
    run::RunFolder folder;
    int attempt = 1;
    std::filesystem::path worker; ///< shardscope-worker
    int ranks = 1;
    bool shareDevice = false; ///< several ranks on one GPU: each gets an NCCL_HOSTID of its own
    int64_t steps = 0;        ///< shown until the first rank says it
};

/// A rank's environment: the parent's without what another job left there (RANK, MASTER_PORT, TORCHELASTIC_…), and with
/// this job's. coresPerRank sets OMP_NUM_THREADS where the user did not.
std::map<std::string, std::string> rankEnvironment(const std::map<std::string, std::string> &parent,
                                                   const LaunchPlan &plan, int rank, int storePort, int controlFd,
                                                   int storeFd, int cores);

/// shardscope-worker: in SHARDSCOPE_WORKER, beside the running program, or in PATH.
Result<std::filesystem::path> findWorker();

} // namespace shardscope::launch
