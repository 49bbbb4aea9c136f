// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/run_list_view.h"

#include "ui/common/icons.h"
#include "ui/common/paths.h"
#include "ui/monitor/run_delegate.h"
#include "ui/monitor/run_files.h"
#include "ui/monitor/run_list_model.h"
#include "ui/monitor/run_watcher.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QInputDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QMessageBox>
#include <QPushButton>
#include <QScrollBar>
#include <QSortFilterProxyModel>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>

namespace shardscope::ui {

RunListView::RunListView(RunWatcher &watcher, QAction *newRun, QWidget *parent)
    : QWidget(parent)
    , m_watcher(watcher)
    , m_model(new RunListModel(this))
    , m_proxy(new QSortFilterProxyModel(this))
    , m_filter(new QLineEdit(this))
    , m_list(new QListView(this))
    , m_empty(new QLabel(this))
    , m_stack(new QStackedWidget(this))
{
    m_proxy->setSourceModel(m_model);
    m_proxy->setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_list->setModel(m_proxy);
    m_list->setItemDelegate(new RunDelegate(m_list));
    buildActions();
    buildLayout(newRun);
    updateLooks();
    connect(&watcher, &RunWatcher::changed, this, &RunListView::onListChanged);
    connect(m_filter, &QLineEdit::textChanged, this, [this](const QString &text) {
        m_proxy->setFilterFixedString(text);
        onListChanged();
    });
    connect(m_list->selectionModel(), &QItemSelectionModel::currentChanged, this, &RunListView::onCurrentChanged);
    connect(m_list->verticalScrollBar(), &QScrollBar::valueChanged, this, &RunListView::tellVisible);
    onListChanged();
}

void RunListView::buildActions()
{
    m_rename = new QAction(tr("&Rename…"), this);
    m_rename->setShortcut(Qt::Key_F2);
    m_show = new QAction(tr("Show in &file manager"), this);
    m_show->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_F);
    m_copyPath = new QAction(tr("Copy the folder's &path"), this);
    m_delete = new QAction(tr("&Delete…"), this);
    m_delete->setShortcut(Qt::SHIFT | Qt::Key_Delete);
    m_actions = {m_rename, m_show, m_copyPath, m_delete};
    connect(m_rename, &QAction::triggered, this, &RunListView::rename);
    connect(m_show, &QAction::triggered, this, [this] {
        showInFileManager(this, currentFolder(), [this](const Result<> &result) {
            if (!result)
                Q_EMIT failed(QString::fromStdString(result.error().text));
        });
    });
    connect(m_copyPath, &QAction::triggered, this, [this] { QApplication::clipboard()->setText(currentFolder()); });
    connect(m_delete, &QAction::triggered, this, &RunListView::removeCurrent);
    m_list->setContextMenuPolicy(Qt::ActionsContextMenu);
    m_list->addActions(m_actions);
}

void RunListView::buildLayout(QAction *newRun)
{
    m_filter->setPlaceholderText(tr("Filter runs"));
    m_filter->setClearButtonEnabled(true);
    m_filter->setAccessibleName(tr("Filter runs by name"));
    m_list->setAccessibleName(tr("Runs"));
    m_list->setUniformItemSizes(true);
    m_list->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->viewport()->installEventFilter(this);
    m_empty->setWordWrap(true);
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setMargin(16);
    m_empty->setTextFormat(Qt::PlainText);
    m_stack->addWidget(m_list);
    m_stack->addWidget(m_empty);
    auto *button = new QPushButton(this);
    button->setObjectName(QStringLiteral("newRunButton"));
    button->setText(newRun->text());
    button->setIcon(newRun->icon());
    button->setToolTip(newRun->toolTip());
    connect(newRun, &QAction::changed, button, [button, newRun] { button->setIcon(newRun->icon()); });
    connect(button, &QPushButton::clicked, newRun, &QAction::trigger);
    auto *heading = new QLabel(tr("&Runs"), this);
    QFont bold = font();
    bold.setBold(true);
    heading->setFont(bold);
    heading->setBuddy(m_filter);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(8);
    layout->addWidget(heading);
    layout->addWidget(m_filter);
    layout->addWidget(m_stack, 1);
    layout->addWidget(button);
    setMinimumWidth(200);
}

void RunListView::updateLooks()
{
    m_rename->setIcon(icon(QStringLiteral("edit-rename"), palette()));
    m_show->setIcon(icon(QStringLiteral("folder-open"), palette()));
    m_copyPath->setIcon(icon(QStringLiteral("edit-copy"), palette()));
    m_delete->setIcon(icon(QStringLiteral("user-trash"), palette()));
}

QString RunListView::currentFolder() const
{
    return m_list->currentIndex().data(RunListModel::FolderRole).toString();
}

void RunListView::setCurrent(const QString &folder)
{
    m_wanted = folder;
    const QModelIndex index = m_proxy->mapFromSource(m_model->indexOf(folder));
    if (!index.isValid())
        return;
    m_wanted.clear();
    m_quiet = true;
    m_list->setCurrentIndex(index);
    m_list->scrollTo(index);
    m_quiet = false;
}

void RunListView::onListChanged()
{
    const bool seen = m_list->viewport()->rect().intersects(m_list->visualRect(m_list->currentIndex()));
    if (const auto runs = m_watcher.runs())
        m_model->update(*runs);
    if (seen) // a run that has just begun moves to its place; what the user has scrolled away from stays away
        m_list->scrollTo(m_list->currentIndex());
    if (!m_wanted.isEmpty())
        setCurrent(m_wanted);
    if (!m_watcher.runs())
        m_empty->setText(tr("Looking for runs…"));
    else if (m_model->rowCount() == 0)
        m_empty->setText(tr("No runs yet.\n\nStart one with “New run” below, or with shardscope-cli run in a terminal: "
                            "it appears here.\n\nA run's folder can be dropped anywhere on this window."));
    else
        m_empty->setText(tr("No run has “%1” in its name.").arg(m_filter->text()));
    m_stack->setCurrentIndex(m_proxy->rowCount() > 0 ? 0 : 1);
    updateActions();
    tellVisible();
}

void RunListView::onCurrentChanged()
{
    updateActions();
    if (!m_quiet && m_list->currentIndex().isValid())
        Q_EMIT chosen(currentFolder());
}

void RunListView::updateActions()
{
    const bool any = m_list->currentIndex().isValid();
    for (QAction *action : std::as_const(m_actions))
        action->setEnabled(any);
}

void RunListView::showEvent(QShowEvent *event)
{
    QWidget::showEvent(event);
    tellVisible();
}

bool RunListView::eventFilter(QObject *watched, QEvent *event)
{
    if (event->type() == QEvent::Resize)
        tellVisible();
    return QWidget::eventFilter(watched, event);
}

void RunListView::tellVisible()
{
    QStringList folders;
    const QRect area = m_list->viewport()->rect();
    for (int row = 0; row < m_proxy->rowCount(); ++row) {
        const QModelIndex index = m_proxy->index(row, 0);
        if (m_list->visualRect(index).intersects(area))
            folders << index.data(RunListModel::FolderRole).toString();
    }
    m_watcher.setVisible(folders);
}

void RunListView::rename()
{
    const QString folder = currentFolder();
    auto *dialog = new QInputDialog(this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Rename the run"));
    dialog->setLabelText(tr("&Shown name (the folder keeps its own; empty: the folder's):"));
    dialog->setTextValue(m_list->currentIndex().data().toString());
    connect(dialog, &QInputDialog::textValueSelected, this, [this, folder](const QString &name) {
        renameRun(this, folder, name, [this](const Result<> &result) {
            if (!result)
                Q_EMIT failed(QString::fromStdString(result.error().text));
            m_watcher.refresh();
        });
    });
    dialog->open();
}

void RunListView::removeCurrent()
{
    const QString folder = currentFolder();
    auto *box = new QMessageBox(
        QMessageBox::Question, tr("Delete the run?"),
        tr("“%1” with its recording and checkpoints goes to the bin.").arg(m_list->currentIndex().data().toString()),
        QMessageBox::Cancel, this);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->setInformativeText(folder);
    QPushButton *yes = box->addButton(tr("Move to the bin"), QMessageBox::DestructiveRole);
    connect(yes, &QPushButton::clicked, this, [this, folder] {
        moveRunToBin(this, folder, [this, folder](const Result<> &result) {
            if (!result)
                Q_EMIT failed(QString::fromStdString(result.error().text));
            else
                Q_EMIT deleted(folder);
            m_watcher.removeAdded(folder);
        });
    });
    box->open();
}

} // namespace shardscope::ui
