// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QIcon>
#include <QPalette>

namespace shardscope::ui {

/// A Breeze icon by its name ("media-playback-start") from the resource compiled in at build time, light or dark as the
/// palette asks. Without a desktop Qt's own theme is empty, and Breeze is not recoloured by Qt: so both are built in.
QIcon icon(const QString &name, const QPalette &palette);

/// The same drawing in one colour: a state's, say. size in logical pixels.
QPixmap tintedIcon(const QString &name, const QColor &color, int size, qreal devicePixelRatio);

} // namespace shardscope::ui
