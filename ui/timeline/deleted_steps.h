// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/time_range.h"

#include <QString>
#include <vector>

class QFontMetricsF;

namespace shardscope::ui::timeline {

struct RankTimeline;

/// Steps next to each other whose spans the retention has deleted.
struct DeletedSteps
{
    TimeRange range;
    int64_t first = 0; ///< numbers; of several ranks or attempts the lowest and the highest
    int64_t last = 0;
    bool operator==(const DeletedSteps &) const = default;
};

/// Ascending, apart from each other. Until the next step begins: what lies between two steps goes with them.
std::vector<DeletedSteps> deletedStepsOf(const std::vector<RankTimeline> &ranks);

/// "spans of steps 10–1361 were not kept (record.keep_steps)"
QString textOf(const DeletedSteps &steps);
/// As much of it as fits into a width; empty: nothing does.
QString textOf(const DeletedSteps &steps, const QFontMetricsF &metrics, double width);

} // namespace shardscope::ui::timeline
