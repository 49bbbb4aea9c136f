// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QList>

namespace shardscope::ui::timeline {

/// The timeline's commands. Single letters work where the lanes (or what is round them) have the focus; each has an
/// arrow key or its place in menu and toolbar as a twin, because keyboards differ.
class TimelineActions : public QObject
{
    Q_OBJECT
public:
    explicit TimelineActions(QWidget *keysFor);

    QAction *zoomIn, *zoomOut, *earlier, *later, *rowsUp, *rowsDown;
    QAction *fit, *fitSelection, *follow;
    QAction *previousSame, *nextSame, *search, *nextHit, *previousHit;
    QAction *mark, *clearMarks, *foldAll, *unfoldAll, *clear;

    QList<QAction *> all() const { return m_all; }
    void updateIcons(const QPalette &palette);

private:
    QAction *add(const char *name, const QString &text, const QString &icon, const QList<QKeySequence> &keys);
    void addMovements();
    void addCommands();

    QWidget *m_keysFor;
    QList<QAction *> m_all;
};

} // namespace shardscope::ui::timeline
