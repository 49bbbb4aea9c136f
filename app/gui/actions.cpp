// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/actions.h"

#include "ui/common/icons.h"

#include <QCoreApplication>
#include <QWidget>

namespace shardscope::gui {

static QString tr(const char *text)
{
    return QCoreApplication::translate("shardscope::gui::Actions", text);
}

static QAction *make(QWidget *window, const QString &text, const QKeySequence &keys, const QString &toolTip = {})
{
    auto *action = new QAction(text, window);
    action->setShortcut(keys);
    if (!toolTip.isEmpty())
        action->setToolTip(toolTip);
    return action;
}

Actions::Actions(QWidget *window)
    : newRun(make(window, tr("&New run…"), Qt::CTRL | Qt::Key_N, tr("Set up and launch a run (Ctrl+N)")))
    , openFolder(make(window, tr("&Open a run's folder…"), Qt::CTRL | Qt::Key_O))
    , openFile(make(window, tr("Open a &recording…"), Qt::CTRL | Qt::SHIFT | Qt::Key_O))
    , closeRun(make(window, tr("&Close the run's view"), Qt::CTRL | Qt::Key_W, tr("The run itself goes on")))
    , quit(make(window, tr("&Quit"), Qt::CTRL | Qt::Key_Q, tr("Runs go on without the window")))
    , back(make(window, tr("&Back"), Qt::ALT | Qt::Key_Left, tr("Back (Alt+Left)")))
    , forward(make(window, tr("&Forward"), Qt::ALT | Qt::Key_Right, tr("Forward (Alt+Right)")))
    , find(make(window, tr("F&ind on this page"), Qt::CTRL | Qt::Key_F))
    , palette(make(window, tr("All &commands…"), Qt::CTRL | Qt::Key_K))
    , keys(make(window, tr("&Keys…"), Qt::Key_F1))
    , about(make(window, tr("&About Shardscope…"), {}))
    , themeSystem(make(window, tr("Follow the &system"), {}))
    , themeLight(make(window, tr("&Light"), {}))
    , themeDark(make(window, tr("&Dark"), {}))
    , themes(new QActionGroup(window))
    , pages(new QActionGroup(window))
{
    for (QAction *action : {themeSystem, themeLight, themeDark}) {
        action->setCheckable(true);
        themes->addAction(action);
    }
    quit->setMenuRole(QAction::QuitRole);
    about->setMenuRole(QAction::AboutRole);
    back->setEnabled(false);
    forward->setEnabled(false);
}

void Actions::updateIcons(const QPalette &colors)
{
    const std::pair<QAction *, const char *> icons[] = {
        {newRun, "list-add"},        {openFolder, "document-open-folder"},
        {openFile, "document-open"}, {closeRun, "window-close"},
        {quit, "application-exit"},  {back, "go-previous"},
        {forward, "go-next"},        {find, "edit-find"},
        {palette, "system-run"},     {keys, "input-keyboard"},
        {about, "help-about"}};
    for (const auto &[action, name] : icons)
        action->setIcon(ui::icon(QString::fromLatin1(name), colors));
}

} // namespace shardscope::gui
