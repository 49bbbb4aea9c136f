// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

namespace shardscope::launch {

struct LaunchPlan;

using Environment = std::map<std::string, std::string>;

/// The variables of this process.
Environment processEnvironment();

/// Fds that a rank inherits; -1: none.
struct InheritedFds
{
    int control = -1;
    int store = -1;
};

/// A rank's variables: the plan's environment without what another job left there (RANK, MASTER_PORT, TORCHELASTIC_…),
/// and with this job's.
Environment rankEnvironment(const LaunchPlan &plan, int rank, int storePort, const InheritedFds &fds);

} // namespace shardscope::launch
