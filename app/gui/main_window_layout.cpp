// SPDX-License-Identifier: GPL-3.0-or-later
// Builds MainWindow and remembers its layout.
#include "app/gui/actions.h"
#include "app/gui/main_window.h"
#include "ui/common/icons.h"
#include "ui/common/inspector.h"
#include "ui/common/theme.h"
#include "ui/launch/run_launcher.h"
#include "ui/monitor/live_page.h"
#include "ui/monitor/logs_page.h"
#include "ui/monitor/run_commands.h"
#include "ui/monitor/run_list_view.h"
#include "ui/monitor/run_status_line.h"

#include <QApplication>
#include <QDockWidget>
#include <QEvent>
#include <QLineEdit>
#include <QMenuBar>
#include <QScreen>
#include <QStackedWidget>
#include <QStatusBar>
#include <QToolBar>

namespace shardscope::gui {

MainWindow::MainWindow(ui::Theme &theme, const QSettings &settings, const QString &runsDirectory)
    : m_theme(theme)
    , m_remembered(settings)
    , m_watcher(runsDirectory)
    , m_commands(new ui::RunCommands(this))
    , m_launcher(new ui::RunLauncher(this))
    , m_actions(std::make_unique<Actions>(this))
    , m_stack(new QStackedWidget(this))
    , m_list(new ui::RunListView(m_watcher, m_actions->newRun, this))
    , m_inspector(new ui::Inspector(this))
    , m_listDock(new QDockWidget(tr("Runs"), this))
    , m_inspectorDock(new QDockWidget(tr("Inspector"), this))
    , m_search(new QLineEdit(this))
    , m_status(new ui::RunStatusLine(this))
{
    setWindowIcon(QIcon(QStringLiteral(":/icons/shardscope.svg")));
    setAcceptDrops(true);
    setCentralWidget(m_stack);
    buildPages();
    buildDocks();
    buildMenus();
    buildToolBar();
    statusBar()->addWidget(m_status, 1);
    statusBar()->setSizeGripEnabled(false);
    connectParts();
    updateLooks();
    restoreLayout();
    m_actions->closeRun->setEnabled(false);
}

MainWindow::~MainWindow()
{
    // Pages stop asking before the reader that they ask is gone.
    m_reader.close();
    for (ui::Page *page : m_pages.all)
        delete page;
}

void MainWindow::buildPages()
{
    m_pages = makePages({m_reader, m_selection}, *m_commands, m_stack);
    int number = 0;
    for (ui::Page *page : m_pages.all) {
        m_stack->addWidget(page);
        auto *action = new QAction(page->title(), this);
        action->setCheckable(true);
        action->setData(page->id());
        action->setShortcut(QKeySequence(Qt::CTRL | static_cast<Qt::Key>(Qt::Key_1 + number++)));
        action->setToolTip(tr("%1 (%2)").arg(page->title(), action->shortcut().toString(QKeySequence::NativeText)));
        m_actions->pages->addAction(action);
        connect(action, &QAction::triggered, this, [this, page] {
            showPage(page->id());
            if (page->focusProxy()) // its keys work at once, without a click into it
                page->setFocus(Qt::ShortcutFocusReason);
        });
        connect(page, &ui::Page::showPage, this, &MainWindow::showPage);
        connect(page, &ui::Page::inspect, this, &MainWindow::inspect);
        connect(page, &ui::Page::cancelled, this, &MainWindow::closeRun);
    }
}

void MainWindow::buildDocks()
{
    m_listDock->setObjectName(QStringLiteral("runs"));
    m_listDock->setWidget(m_list);
    m_listDock->setFeatures(QDockWidget::NoDockWidgetFeatures);
    m_listDock->setTitleBarWidget(new QWidget(m_listDock)); // the list has a heading of its own
    addDockWidget(Qt::LeftDockWidgetArea, m_listDock);
    m_inspectorDock->setObjectName(QStringLiteral("inspector"));
    m_inspectorDock->setWidget(m_inspector);
    m_inspectorDock->setFeatures(QDockWidget::DockWidgetClosable | QDockWidget::DockWidgetMovable);
    addDockWidget(Qt::RightDockWidgetArea, m_inspectorDock);
    m_listDock->toggleViewAction()->setShortcut(Qt::Key_F8);
    m_inspectorDock->toggleViewAction()->setShortcut(Qt::Key_F9);
    connect(m_inspectorDock->toggleViewAction(), &QAction::triggered, this, [this] { m_inspectorWaits = false; });
    resizeDocks({m_listDock, m_inspectorDock}, {256, 240}, Qt::Horizontal);
}

void MainWindow::buildMenus()
{
    QMenu *file = menuBar()->addMenu(tr("&File"));
    file->addActions({m_actions->newRun, m_actions->openFolder, m_actions->openFile, m_actions->closeRun});
    file->addSeparator();
    file->addAction(m_actions->quit);

    QMenu *run = menuBar()->addMenu(tr("&Run"));
    run->addActions({m_commands->pauseAction(), m_commands->checkpointAction(), m_commands->stopAction(),
                     m_commands->killAction(), m_commands->resumeAction()});
    run->addSeparator();
    run->addActions(m_list->runActions());

    QMenu *view = menuBar()->addMenu(tr("&View"));
    view->addActions(m_actions->pages->actions());
    for (ui::Page *page : m_pages.all) {
        const QList<QAction *> actions = page->pageActions();
        if (!actions.isEmpty())
            view->addMenu(tr("On the page %1").arg(page->title()))->addActions(actions);
    }
    view->addSeparator();
    view->addActions({m_actions->back, m_actions->forward, m_actions->find, m_actions->palette});
    view->addSeparator();
    view->addActions({m_listDock->toggleViewAction(), m_inspectorDock->toggleViewAction()});
    view->addMenu(tr("&Theme"))->addActions(m_actions->themes->actions());

    QMenu *help = menuBar()->addMenu(tr("&Help"));
    help->addActions({m_actions->keys, m_actions->about});
}

void MainWindow::buildToolBar()
{
    auto *bar = new QToolBar(tr("Pages"), this);
    bar->setObjectName(QStringLiteral("pages"));
    bar->setMovable(false);
    bar->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    bar->addActions({m_actions->back, m_actions->forward});
    bar->widgetForAction(m_actions->back)->setProperty("toolButtonStyle", Qt::ToolButtonIconOnly);
    bar->widgetForAction(m_actions->forward)->setProperty("toolButtonStyle", Qt::ToolButtonIconOnly);
    bar->addSeparator();
    bar->addActions(m_actions->pages->actions());
    auto *room = new QWidget(bar);
    room->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    bar->addWidget(room);
    m_search->setPlaceholderText(tr("Find on this page (Ctrl+F)"));
    m_search->setClearButtonEnabled(true);
    m_search->setAccessibleName(tr("Find on this page"));
    m_search->setMaximumWidth(240);
    bar->addWidget(m_search);
    addToolBar(bar);
    setContextMenuPolicy(Qt::NoContextMenu); // no menu that hides the bar for good
}

void MainWindow::connectParts()
{
    connect(m_actions->newRun, &QAction::triggered, this, &MainWindow::newRun);
    connect(m_actions->openFolder, &QAction::triggered, this, &MainWindow::chooseFolder);
    connect(m_actions->openFile, &QAction::triggered, this, &MainWindow::chooseFile);
    connect(m_actions->closeRun, &QAction::triggered, this, &MainWindow::closeRun);
    connect(m_actions->quit, &QAction::triggered, this, &QWidget::close);
    connect(m_actions->back, &QAction::triggered, this, [this] { go(-1); });
    connect(m_actions->forward, &QAction::triggered, this, [this] { go(1); });
    connect(m_actions->palette, &QAction::triggered, this, &MainWindow::showPalette);
    connect(m_actions->keys, &QAction::triggered, this, &MainWindow::showKeys);
    connect(m_actions->about, &QAction::triggered, this, &MainWindow::showAbout);
    connect(m_actions->find, &QAction::triggered, this, [this] {
        m_search->setFocus();
        m_search->selectAll();
    });
    connect(m_search, &QLineEdit::returnPressed, this, &MainWindow::find);
    const std::pair<QAction *, ui::Theme::Mode> modes[] = {{m_actions->themeSystem, ui::Theme::Mode::System},
                                                           {m_actions->themeLight, ui::Theme::Mode::Light},
                                                           {m_actions->themeDark, ui::Theme::Mode::Dark}};
    for (const auto &[action, mode] : modes) {
        action->setChecked(m_theme.mode() == mode);
        connect(action, &QAction::triggered, this, [this, mode = mode] {
            m_theme.setMode(mode);
            m_remembered.set(QStringLiteral("theme"), ui::Theme::textOf(mode));
        });
    }
    connect(m_list, &ui::RunListView::chosen, this, &MainWindow::open);
    connect(m_list, &ui::RunListView::failed, this,
            [this](const QString &message) { m_status->showMessage(message, true); });
    connect(m_list, &ui::RunListView::deleted, this, [this](const QString &folder) {
        if (folder == m_path)
            closeRun();
    });
    connect(m_commands, &ui::RunCommands::finished, this,
            [this](const QString &message) { m_status->showMessage(message, false); });
    connect(m_commands, &ui::RunCommands::failed, this,
            [this](const QString &message) { m_status->showMessage(message, true); });
    connect(m_commands, &ui::RunCommands::resumeWanted, this, &MainWindow::resumeRun);
    connect(m_launcher, &ui::RunLauncher::started, this, [this] {
        m_commands->setResuming({});
        m_watcher.refresh();
    });
    connect(m_launcher, &ui::RunLauncher::failed, this, [this](const QString &message) {
        m_commands->setResuming({});
        m_status->showMessage(message, true);
    });
    connect(&m_watcher, &ui::RunWatcher::changed, this, &MainWindow::onRunsChanged);
    const auto showCounts = [this] { m_status->setRun(m_run ? &m_run->status : nullptr, m_reader.catalog().get()); };
    connect(&m_reader, &ui::RecordingReader::opened, this, showCounts);
    connect(&m_reader, &ui::RecordingReader::changed, this, showCounts);
    connect(m_pages.live, &ui::LivePage::showLogs, this, [this](int rank) {
        m_pages.logs->showRank(rank);
        showPage(QStringLiteral("logs"));
    });
}

void MainWindow::changeEvent(QEvent *event)
{
    QMainWindow::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && m_status)
        updateLooks();
}

void MainWindow::updateLooks()
{
    m_actions->updateIcons(palette());
    m_commands->updateLooks();
    m_list->updateLooks();
    for (QAction *action : m_actions->pages->actions()) {
        if (const ui::Page *page = m_pages.byId(action->data().toString()))
            action->setIcon(ui::icon(page->iconName(), palette()));
    }
}

void MainWindow::rememberLayout()
{
    m_remembered.set(QStringLiteral("layout"), saveState());
    m_remembered.set(QStringLiteral("inspectorWaits"), m_inspectorWaits);
    m_remembered.set(QStringLiteral("maximized"), isMaximized());
    if (!isMaximized())
        m_remembered.set(QStringLiteral("size"), size());
}

void MainWindow::restoreLayout()
{
    // Sizes only: positions are the compositor's on Wayland, and of a screen that may be gone elsewhere.
    const QSize available = screen()->availableSize();
    const QSize usual = QSize(1440, 900).boundedTo(available);
    const QSize before = m_remembered.value(QStringLiteral("size")).toSize();
    resize((before.isValid() ? before : usual).boundedTo(available));
    const bool remembered = restoreState(m_remembered.value(QStringLiteral("layout")).toByteArray());
    m_inspectorWaits = remembered ? m_remembered.value(QStringLiteral("inspectorWaits")).toBool() : width() < 1400;
    if (!remembered && m_inspectorWaits)
        m_inspectorDock->hide(); // the page needs the room more, until there is something to show
    if (m_remembered.value(QStringLiteral("maximized")).toBool())
        setWindowState(Qt::WindowMaximized);
    const QString page = m_remembered.value(QStringLiteral("page")).toString();
    showPage(m_pages.byId(page) ? page : QStringLiteral("live"));
}

} // namespace shardscope::gui
