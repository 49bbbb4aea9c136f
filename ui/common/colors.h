// SPDX-License-Identifier: GPL-3.0-or-later
// The one table of colours. Widgets ask for it with their palette and ask again on PaletteChange; no widget has a
// colour of its own.
#pragma once

#include "core/base/names.h"

#include <QColor>
#include <QPalette>

namespace shardscope::ui {

/// What the theme says beyond QPalette. Light and dark are two constant values.
struct Colors
{
    bool dark = false;
    QColor page;      ///< behind cards and charts
    QColor card;      ///< of a card, a chart, a list
    QColor border;    ///< lines between areas
    QColor grid;      ///< chart grids and rulers
    QColor text;      ///< first level of emphasis
    QColor muted;     ///< second level: captions, axes, what is off
    QColor accent;    ///< selection, focus, links
    QColor selection; ///< fill over a selected range (translucent)
    QColor good;      ///< running, done
    QColor warning;   ///< paused, dropped records, exposed communication
    QColor bad;       ///< failed, lost, NaN

    /// The table that goes with a palette (its window colour tells light from dark).
    static const Colors &of(const QPalette &palette);

    /// Okabe–Ito, told apart by colour-blind readers and in grey. The same in every chart, report and export.
    QColor category(MemoryCategory category) const;
    QColor category(SpanCategory category) const;
    QColor phase(Phase phase) const;
    /// Black or white, whichever reads better on a fill: a contrast of 4.5 at least, on every fill.
    static QColor onFill(const QColor &fill);
    /// Contrast ratio of two opaque colours by WCAG 2.1: 1 to 21; texts need 4.5.
    static double contrast(const QColor &a, const QColor &b);
    /// What the allocator rounds up; the gap between categories and allocated bytes.
    QColor rounding() const;
    /// Lines of charts by index; repeats after eight.
    QColor series(int index) const;
    QColor state(RunState state) const;
};

/// The palettes that the theme gives to QApplication.
QPalette lightPalette();
QPalette darkPalette();

} // namespace shardscope::ui
