// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_actions.h"

#include "ui/common/icons.h"

#include <QWidget>

namespace shardscope::ui::timeline {

TimelineActions::TimelineActions(QWidget *keysFor)
    : QObject(keysFor)
    , m_keysFor(keysFor)
{
    addMovements();
    addCommands();
    updateIcons(keysFor->palette());
}

QAction *TimelineActions::add(const char *name, const QString &text, const QString &icon,
                              const QList<QKeySequence> &keys)
{
    auto *action = new QAction(text, this);
    action->setObjectName(QLatin1String(name));
    action->setData(icon);
    action->setShortcuts(keys);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    QStringList texts;
    for (const QKeySequence &key : keys)
        texts << key.toString(QKeySequence::NativeText);
    action->setToolTip(texts.isEmpty() ? text : tr("%1 (%2)").arg(QString(text).remove(u'&'), texts.join(tr(" or "))));
    m_keysFor->addAction(action);
    m_all << action;
    return action;
}

void TimelineActions::addMovements()
{
    zoomIn = add("zoomIn", tr("Zoom &in"), QStringLiteral("zoom-in"), {Qt::Key_W, Qt::Key_Plus, Qt::Key_Equal});
    zoomOut = add("zoomOut", tr("Zoom &out"), QStringLiteral("zoom-out"), {Qt::Key_S, Qt::Key_Minus});
    earlier = add("earlier", tr("Move to &earlier"), QStringLiteral("go-previous"), {Qt::Key_A, Qt::Key_Left});
    later = add("later", tr("Move to &later"), QStringLiteral("go-next"), {Qt::Key_D, Qt::Key_Right});
    rowsUp = add("rowsUp", tr("Scroll rows up"), {}, {Qt::Key_Up});
    rowsDown = add("rowsDown", tr("Scroll rows down"), {}, {Qt::Key_Down});
    fit = add("fit", tr("&Fit the whole recording"), QStringLiteral("zoom-fit-best"), {Qt::Key_F, Qt::Key_Home});
    fitSelection = add("fitSelection", tr("Zoom to the &selection"), QStringLiteral("zoom-original"),
                       {QKeySequence(Qt::SHIFT | Qt::Key_F), QKeySequence(Qt::Key_Z)});
    follow =
        add("follow", tr("Follow the &end of a running job"), QStringLiteral("media-playback-start"), {Qt::Key_End});
    follow->setCheckable(true);
}

void TimelineActions::addCommands()
{
    search = add("search", tr("&Search spans"), QStringLiteral("edit-find"), {Qt::Key_Slash});
    nextHit = add("nextHit", tr("Next hit"), {}, {Qt::Key_N, Qt::Key_F3});
    previousHit = add("previousHit", tr("Previous hit"), {},
                      {QKeySequence(Qt::SHIFT | Qt::Key_N), QKeySequence(Qt::SHIFT | Qt::Key_F3)});
    previousSame = add("previousSame", tr("&Previous of the same name"), {},
                       {Qt::Key_BracketLeft, QKeySequence(Qt::ALT | Qt::Key_Left)});
    nextSame = add("nextSame", tr("&Next of the same name"), {},
                   {Qt::Key_BracketRight, QKeySequence(Qt::ALT | Qt::Key_Right)});
    mark = add("mark", tr("&Mark the time under the mouse"), QStringLiteral("flag"), {Qt::Key_M});
    clearMarks = add("clearMarks", tr("Remove all marks"), {}, {});
    foldAll = add("foldAll", tr("Fold all ranks"), {}, {});
    unfoldAll = add("unfoldAll", tr("Unfold all ranks"), {}, {});
    clear = add("clear", tr("&Clear selection and search"), QStringLiteral("edit-clear"), {Qt::Key_Escape});
}

void TimelineActions::updateIcons(const QPalette &palette)
{
    for (QAction *action : m_all) {
        if (!action->data().toString().isEmpty())
            action->setIcon(icon(action->data().toString(), palette));
    }
}

} // namespace shardscope::ui::timeline
