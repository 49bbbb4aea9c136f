// SPDX-License-Identifier: GPL-3.0-or-later
// From a store::Recording to the timeline's snapshot. Runs on the reader's thread.
#pragma once

#include "core/base/result.h"
#include "ui/timeline/snapshot.h"

#include "profiler/store/cancel.h"
#include <functional>

namespace shardscope::store {
class Recording;
}

namespace shardscope::ui::timeline {

/// Told of the share done, 0…1. Called on the reader's thread.
using Progress = std::function<void(double)>;

/// Reads what is new since `before` (everything, where that is empty) and gives the snapshot of now. Spans from the
/// first changed start on are read again; steps whose spans the retention has deleted lose them here too.
Result<std::shared_ptr<const Snapshot>> readSnapshot(store::Recording &recording,
                                                     const std::shared_ptr<const Snapshot> &before,
                                                     const store::CancelToken &cancel, const Progress &progress = {});

/// The columns of a lane as records in the order that Lane::append() takes. An open span lasts until nowNs.
std::vector<SpanRecord> recordsOf(const store::SpanColumns &columns, int64_t nowNs);

} // namespace shardscope::ui::timeline
