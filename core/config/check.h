// SPDX-License-Identifier: Apache-2.0
// Is this configuration one that can run here? The command line, the worker and the window's form ask the same
// function.
#pragma once

#include "core/base/result.h"
#include "core/config/machine_facts.h"
#include "core/config/run_configuration.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shardscope::config {

/// What the checks must know of a model (core/shapes says it: shapes::knownModels()).
struct KnownModel
{
    std::string name; ///< of the preset, or the folder's path
    int64_t vocabulary = 0;
    int64_t maxSequence = 0;
    bool isFolder = false;
    std::string problem; ///< why the folder can't be used; empty: it can
};

/// One thing that is wrong, and the key in which a form shows it.
struct Problem
{
    std::string key; ///< "train.steps"
    std::string message;
};

/// A configuration with nothing left to derive.
struct ResolvedRun
{
    RunConfiguration configuration; ///< batches, rates and parallel.device are definite
    KnownModel model;
    DeviceKind device = DeviceKind::Cpu;
    std::vector<int64_t> deviceOfRank; ///< CUDA ordinal of each rank of this machine; empty on the CPU
    std::vector<std::string> notes;    ///< what was decided in the user's stead, as sentences for the log
};

struct CheckResult
{
    std::vector<Problem> problems;
    std::optional<ResolvedRun> resolved; ///< where there are no problems
};

/// Everything that is wrong, not only the first. Reads no files: the data are Dataset::open()'s to check.
CheckResult checkRun(const RunConfiguration &configuration, const MachineFacts &machine,
                     std::span<const KnownModel> models);
/// The same for those who only go on if all is well: all messages, one a line.
Result<ResolvedRun> resolveRun(const RunConfiguration &configuration, const MachineFacts &machine,
                               std::span<const KnownModel> models);

} // namespace shardscope::config
