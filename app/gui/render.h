// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/gui/command_line.h"

namespace shardscope::gui {

/// Draws one page of a run into a PNG. The exit code: 0 done, 1 the page could not be drawn (why is on standard error),
/// 2 no such run. A QApplication must exist.
int renderPage(const Arguments &arguments);

} // namespace shardscope::gui
