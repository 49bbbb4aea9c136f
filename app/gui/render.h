// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/gui/command_line.h"

namespace shardscope::gui {

/// Draws one page of a run into a PNG. The exit code: 0 done, 1 the page could not be drawn (why is on standard error),
/// 2 no such run or steps. A QApplication must exist.
int renderPage(const Arguments &arguments);

/// From here on Qt's messages about what an offscreen platform lacks are left out; all others still come. Before the
/// QApplication is made: some come from its constructor.
void silenceQtNoise();

} // namespace shardscope::gui
