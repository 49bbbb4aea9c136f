// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QActionGroup>
#include <QPalette>

namespace shardscope::gui {

/// The window's own commands, each with its shortcut; those of runs and pages come from their parts.
struct Actions
{
    explicit Actions(QWidget *window);
    /// Icons are light or dark: again on a change of the theme.
    void updateIcons(const QPalette &palette);

    QAction *newRun;
    QAction *openFolder;
    QAction *openFile;
    QAction *closeRun;
    QAction *quit;
    QAction *back;
    QAction *forward;
    QAction *find;
    QAction *palette;
    QAction *keys;
    QAction *about;
    QAction *themeSystem;
    QAction *themeLight;
    QAction *themeDark;
    QActionGroup *themes;
    QActionGroup *pages; ///< filled by the window, one for each page
};

} // namespace shardscope::gui
