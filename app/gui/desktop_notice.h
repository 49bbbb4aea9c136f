// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace shardscope::gui {

/// A notice of the desktop (org.freedesktop.Notifications); nothing where the desktop has none. lasting: it stays until
/// its user closes it. Sent at once, so that it is out before a closing window's program ends.
void sendDesktopNotice(const QString &headline, const QString &text, bool lasting);

} // namespace shardscope::gui
