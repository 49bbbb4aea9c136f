// SPDX-License-Identifier: GPL-3.0-or-later
// What the window does; main_window_layout.cpp builds it.
#include "app/gui/main_window.h"

#include "app/gui/about_dialog.h"
#include "app/gui/actions.h"
#include "app/gui/desktop_notice.h"
#include "ui/common/background.h"
#include "ui/common/command_palette.h"
#include "ui/common/inspector.h"
#include "ui/common/paths.h"
#include "ui/common/text.h"
#include "ui/common/theme.h"
#include "ui/launch/new_run_dialog.h"
#include "ui/launch/run_launcher.h"
#include "ui/monitor/failure_card.h"
#include "ui/monitor/live_page.h"
#include "ui/monitor/logs_page.h"
#include "ui/monitor/run_commands.h"
#include "ui/monitor/run_list_view.h"
#include "ui/monitor/run_status_line.h"

#include <QCloseEvent>
#include <QDockWidget>
#include <QFileDialog>
#include <QLineEdit>
#include <QMessageBox>
#include <QMimeData>
#include <QStackedWidget>
#include <algorithm>
#include <cstdio>

namespace shardscope::gui {

using ui::fromPath;

void MainWindow::open(const QString &pathOrName)
{
    const QString runs = m_watcher.runsDirectory();
    ui::inBackground(
        this, [pathOrName, runs] { return resolveTarget(pathOrName, runs); },
        [this, serial = ++m_opening](const Result<OpenTarget> &target) {
            if (serial != m_opening)
                return; // something else was opened, or closed, meanwhile
            if (target)
                openTarget(*target);
            else
                m_status->showMessage(QString::fromStdString(target.error().text), true);
        });
}

void MainWindow::openLast()
{
    const QString last = m_remembered.value(QStringLiteral("lastRun")).toString();
    if (last.isEmpty())
        return;
    const QString runs = m_watcher.runsDirectory();
    ui::inBackground(
        this, [last, runs] { return resolveTarget(last, runs); },
        [this, serial = ++m_opening](const Result<OpenTarget> &target) {
            if (target && serial == m_opening) // it may have been deleted since: nothing to complain of
                openTarget(*target);
        });
}

void MainWindow::openTarget(const OpenTarget &target)
{
    if (target.path == m_path)
        return;
    m_path = target.path;
    m_selection.clear();
    m_inspector->clear();
    m_reader.open(target.path);
    m_run.reset();
    if (target.run) {
        if (QFileInfo(target.path).absolutePath() != m_watcher.runsDirectory())
            m_watcher.addRun(target.path);
        applyRun(&*target.run);
    } else {
        applyRun(nullptr);
        if (m_pages.byId(QStringLiteral("timeline")))
            showPage(QStringLiteral("timeline")); // a bare database has no state to watch
    }
    m_list->setCurrent(target.path);
    m_remembered.set(QStringLiteral("lastRun"), target.path);
    m_actions->closeRun->setEnabled(true);
    pushHistory();
}

void MainWindow::closeRun()
{
    ++m_opening;
    m_path.clear();
    m_run.reset();
    m_selection.clear();
    m_inspector->clear();
    m_reader.close();
    applyRun(nullptr);
    m_actions->closeRun->setEnabled(false);
    m_remembered.set(QStringLiteral("lastRun"), {});
}

void MainWindow::onRunsChanged()
{
    const auto runs = m_watcher.runs();
    if (!runs || m_path.isEmpty())
        return;
    const auto found = std::find_if(runs->begin(), runs->end(), [this](const run::RunSummary &summary) {
        return fromPath(summary.folder.root()) == m_path;
    });
    if (found == runs->end())
        return;
    const std::optional<RunState> before = m_run ? std::optional(m_run->status.state) : std::nullopt;
    const std::string gapBefore = m_run ? m_run->status.recordingProblem : std::string();
    applyRun(&*found);
    if (const std::string &gap = found->status.recordingProblem; !gap.empty() && gap != gapBefore)
        m_status->showMessage(QString::fromStdString(gap), true);
    if (before && *before != found->status.state)
        notice(*before, *found);
}

void MainWindow::applyRun(const run::RunSummary *run)
{
    m_run = run ? std::optional(*run) : std::nullopt;
    m_reader.setLive(run && run->status.live());
    m_commands->setRun(run ? m_path : QString(), run ? run->status : run::RunStatus());
    for (ui::Page *page : m_pages.all)
        page->setRun(m_run ? &*m_run : nullptr);
    m_status->setRun(m_run ? &m_run->status : nullptr, m_reader.catalog().get());
    setWindowTitle(m_path.isEmpty() ? QString()
                   : run            ? QString::fromStdString(run->shownName())
                                    : QFileInfo(m_path).fileName());
}

void MainWindow::notice(RunState before, const run::RunSummary &run)
{
    const RunState now = run.status.state;
    const bool ended = now == RunState::Done || now == RunState::Failed || now == RunState::Lost;
    const bool wasLive = before != RunState::Done && before != RunState::Failed && before != RunState::Lost;
    if (!ended || !wasLive || isActiveWindow())
        return; // who looks at the window sees it there
    const QString name = QString::fromStdString(run.shownName());
    if (now == RunState::Done)
        sendDesktopNotice(run.status.stoppedEarly() ? tr("%1 has stopped").arg(name) : tr("%1 is done").arg(name),
                          tr("Loss %1").arg(ui::lossText(run.status.loss)), false);
    else
        sendDesktopNotice(tr("%1 failed").arg(name), ui::FailureCard::headline(run.status), true);
}

void MainWindow::showPage(const QString &id)
{
    ui::Page *page = m_pages.byId(id);
    if (!page)
        return;
    m_stack->setCurrentWidget(page);
    for (QAction *action : m_actions->pages->actions())
        action->setChecked(action->data().toString() == id);
    m_remembered.set(QStringLiteral("page"), id);
    pushHistory();
}

void MainWindow::pushHistory()
{
    const auto *page = static_cast<ui::Page *>(m_stack->currentWidget());
    const Place place{m_path, page->id()};
    if (!m_travelling && (m_history.empty() || m_history[m_here] != place)) {
        if (!m_history.empty())
            m_history.resize(m_here + 1);
        m_history.push_back(place);
        m_here = m_history.size() - 1;
    }
    m_actions->back->setEnabled(m_here > 0);
    m_actions->forward->setEnabled(m_here + 1 < m_history.size());
}

void MainWindow::go(int direction)
{
    const size_t there = m_here + static_cast<size_t>(direction);
    if (there >= m_history.size())
        return;
    m_here = there;
    const Place place = m_history[there];
    m_travelling = true;
    showPage(place.page);
    if (!place.path.isEmpty() && place.path != m_path)
        open(place.path); // arrives later; the place is in the history already
    m_travelling = false;
    pushHistory();
}

void MainWindow::inspect(const ui::InspectorContent &content)
{
    m_inspector->setContent(content);
    if (m_inspectorWaits && !content.title.isEmpty()) {
        m_inspectorWaits = false;
        m_inspectorDock->show();
    }
}

void MainWindow::newRun()
{
    auto *dialog = new ui::NewRunDialog(m_watcher.runsDirectory(), this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &ui::NewRunDialog::launched, this, [this](const QString &folder) {
        m_watcher.refresh();
        open(folder);
        showPage(QStringLiteral("live"));
    });
    dialog->open();
}

void MainWindow::resumeRun(const QString &folder)
{
    const Result<QString> program = ui::findCommandLine();
    if (!program) {
        m_status->showMessage(QString::fromStdString(program.error().text), true);
        return;
    }
    const int attempt = m_run ? static_cast<int>(m_run->status.attempt) : 0;
    m_commands->setResuming(folder);
    m_status->showMessage(tr("The run goes on…"), false);
    m_launcher->launch(*program, {QStringLiteral("run"), QStringLiteral("--resume"), folder}, folder, attempt);
}

void MainWindow::chooseFolder()
{
    auto *dialog = new QFileDialog(this, tr("Open a run's folder"), m_watcher.runsDirectory());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::open);
    dialog->open();
}

void MainWindow::chooseFile()
{
    auto *dialog = new QFileDialog(this, tr("Open a recording"), m_watcher.runsDirectory());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    dialog->setNameFilters({tr("Recordings (*.sqlite)"), tr("All files (*)")});
    connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::open);
    dialog->open();
}

void MainWindow::find()
{
    const QString text = m_search->text();
    auto *page = static_cast<ui::Page *>(m_stack->currentWidget());
    if (!text.isEmpty() && !page->find(text))
        m_status->showMessage(tr("“%1” was not found on the page %2.").arg(text, page->title()), false);
}

QList<QAction *> MainWindow::allActions() const
{
    QList<QAction *> actions{m_actions->newRun,        m_actions->openFolder,     m_actions->openFile,
                             m_actions->closeRun,      m_commands->pauseAction(), m_commands->checkpointAction(),
                             m_commands->stopAction(), m_commands->killAction(),  m_commands->resumeAction()};
    actions += m_list->runActions();
    actions += m_actions->pages->actions();
    actions += QList{m_actions->back, m_actions->forward, m_actions->find, m_listDock->toggleViewAction(),
                     m_inspectorDock->toggleViewAction()};
    actions += m_actions->themes->actions();
    actions += static_cast<ui::Page *>(m_stack->currentWidget())->pageActions();
    actions += QList{m_actions->palette, m_actions->keys, m_actions->about, m_actions->quit};
    return actions;
}

void MainWindow::showPalette()
{
    (new ui::CommandPalette(allActions(), this))->open();
}

void MainWindow::showKeys()
{
    const QList<std::pair<QString, QString>> others = {
        {tr("Launch, in the dialog of a new run"), tr("Ctrl+Return")},
        {tr("Charts: zoom in and out"), tr("+ and −, or the wheel")},
        {tr("Charts: move"), tr("← and →, or Shift and drag")},
        {tr("Charts: select a range"), tr("Drag")},
        {tr("Charts: fit"), tr("Home, or double click")},
    };
    (new ui::KeysDialog(allActions(), others, this))->open();
}

void MainWindow::showAbout()
{
    (new AboutDialog(this))->open();
}

void MainWindow::closeEvent(QCloseEvent *event)
{
    rememberLayout();
    sayWhatGoesOn();
    event->accept();
}

void MainWindow::sayWhatGoesOn()
{
    QStringList names;
    if (const auto runs = m_watcher.runs()) {
        for (const run::RunSummary &run : *runs) {
            if (run.problem.empty() && run.status.live())
                names << QString::fromStdString(run.shownName());
        }
    }
    if (names.isEmpty())
        return;
    const QString headline = names.size() == 1 ? tr("A run goes on without the window")
                                               : tr("%1 runs go on without the window").arg(names.size());
    const QString text =
        tr("%1. Open Shardscope to watch or stop, or use shardscope-cli status.").arg(names.join(QStringLiteral(", ")));
    std::fprintf(stderr, "shardscope: %s: %s\n", qPrintable(headline), qPrintable(text));
    sendDesktopNotice(headline, text, true);
}

void MainWindow::dragEnterEvent(QDragEnterEvent *event)
{
    const QList<QUrl> urls = event->mimeData()->urls();
    if (std::any_of(urls.begin(), urls.end(), [](const QUrl &url) { return url.isLocalFile(); }))
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent *event)
{
    for (const QUrl &url : event->mimeData()->urls()) {
        if (url.isLocalFile())
            open(url.toLocalFile());
    }
    event->acceptProposedAction();
}

} // namespace shardscope::gui
