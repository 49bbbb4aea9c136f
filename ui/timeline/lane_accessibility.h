// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace shardscope::ui::timeline {

/// Lets screen readers walk the rows of every LaneCanvas: each a list item with its name and number of spans. Safe to
/// call more than once.
void installLaneAccessibility();

} // namespace shardscope::ui::timeline
