// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "profiler/store/recording.h"

#include <map>

namespace shardscope::ui {

/// How far the Live page has read, by process.
struct LivePosition
{
    struct Process
    {
        int64_t nextStep = 0; ///< the first one whose row may still change
        int64_t nextMemoryNs = store::kBeginning;
    };
    std::map<store::Index, Process> processes;
    store::EventPosition events;
};

/// What has been recorded since a position: every rank's steps, samples of the memory that the model lies in, events.
struct LiveDelta
{
    /// What the indices in here are of: the reader's own catalogue may be an older or a newer one.
    std::shared_ptr<const store::Catalog> catalog;
    std::vector<store::StepInfo> steps; ///< the last ones again, as long as they may still change
    /// One place a rank: the device's on CUDA, else the host's. From its first sample on it replaces what was read
    /// before: a step's peak is written after younger samples.
    std::vector<store::MemoryColumns> memory;
    std::vector<store::EventInfo> events;
    LivePosition position; ///< to go on from
};

/// Reads from position on. Runs on the reader thread.
Result<std::shared_ptr<const LiveDelta>> loadLive(store::Recording &recording, const LivePosition &position,
                                                  const store::CancelToken &cancel);

} // namespace shardscope::ui
