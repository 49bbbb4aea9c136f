// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/gui/open_target.h"
#include "app/gui/pages.h"
#include "app/gui/remembered.h"
#include "ui/common/recording_reader.h"
#include "ui/common/selection.h"
#include "ui/monitor/run_watcher.h"

#include <QMainWindow>

class QActionGroup;
class QLineEdit;
class QStackedWidget;

namespace shardscope::ui {
class Inspector;
class RunCommands;
class RunLauncher;
class RunListView;
class RunStatusLine;
class Theme;
} // namespace shardscope::ui

namespace shardscope::gui {

struct Actions;

/// The frame: runs on the left, pages in the middle, the inspector on the right; menus, tool bar, status bar. It wires
/// parts of ui/ together and does nothing of its own with runs or recordings.
class MainWindow : public QMainWindow
{
    Q_OBJECT
public:
    MainWindow(ui::Theme &theme, const QSettings &settings, const QString &runsDirectory);
    ~MainWindow() override;

    /// A run's folder, its name, or a database.
    void open(const QString &pathOrName);
    /// What was open when the window was closed.
    void openLast();
    void closeRun();
    void showPage(const QString &id);

protected:
    void closeEvent(QCloseEvent *event) override;
    void changeEvent(QEvent *event) override;
    void dragEnterEvent(QDragEnterEvent *event) override;
    void dropEvent(QDropEvent *event) override;

private:
    void buildPages();
    void buildDocks();
    void buildMenus();
    void buildToolBar();
    void connectParts();
    void updateLooks();
    void rememberLayout();
    void restoreLayout();

    void openTarget(const OpenTarget &target);
    void onRunsChanged();
    void applyRun(const run::RunSummary *run);
    void notice(RunState before, const run::RunSummary &run);
    void inspect(const ui::InspectorContent &content);
    void newRun();
    void resumeRun(const QString &folder);
    void chooseFolder();
    void chooseFile();
    void find();
    void go(int direction);
    void pushHistory();
    void showPalette();
    void showKeys();
    void showAbout();
    void sayWhatGoesOn();
    QList<QAction *> allActions() const;

    ui::Theme &m_theme;
    Remembered m_remembered;
    ui::RecordingReader m_reader;
    ui::Selection m_selection;
    ui::RunWatcher m_watcher;
    ui::RunCommands *m_commands;
    ui::RunLauncher *m_launcher; ///< of runs that go on; new ones have their dialog's
    std::unique_ptr<Actions> m_actions;
    Pages m_pages;
    QStackedWidget *m_stack;
    ui::RunListView *m_list;
    ui::Inspector *m_inspector;
    QDockWidget *m_listDock;
    QDockWidget *m_inspectorDock;
    QLineEdit *m_search;
    ui::RunStatusLine *m_status;

    quint64 m_opening = 0;                ///< counts what was asked to be opened: the last one wins
    QString m_path;                       ///< what is open; empty: nothing
    std::optional<run::RunSummary> m_run; ///< its state, where it is a run
    struct Place
    {
        QString path;
        QString page;
        bool operator==(const Place &) const = default;
    };
    std::vector<Place> m_history;
    size_t m_here = 0; ///< index into m_history
    bool m_travelling = false;
    bool m_inspectorWaits = false; ///< hidden for want of room, not by the user: the first thing to inspect shows it
};

} // namespace shardscope::gui
