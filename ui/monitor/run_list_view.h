// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QAction;
class QLabel;
class QLineEdit;
class QListView;
class QMenu;
class QSortFilterProxyModel;
class QStackedWidget;

namespace shardscope::ui {

class RunListModel;
class RunWatcher;

/// The sidebar: the runs, a filter over them, what can be done with one, and New run at its foot.
class RunListView : public QWidget
{
    Q_OBJECT
public:
    /// newRun is the window's action; the button triggers it.
    RunListView(RunWatcher &watcher, QAction *newRun, QWidget *parent = nullptr);

    RunListModel *model() const { return m_model; }
    QLineEdit *filterField() const { return m_filter; }
    QString currentFolder() const;
    /// Selects the row once it is there, without saying chosen().
    void setCurrent(const QString &folder);
    /// Rename, Show in file manager, Copy the path, Delete: for the Run menu.
    const QList<QAction *> &runActions() const { return m_actions; }
    void updateLooks();

Q_SIGNALS:
    void chosen(const QString &folder);
    void failed(const QString &message);
    void deleted(const QString &folder);

protected:
    void showEvent(QShowEvent *event) override;
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void buildActions();
    void buildLayout(QAction *newRun);
    void onListChanged();
    void onCurrentChanged();
    void tellVisible();
    void updateActions();
    void rename();
    void removeCurrent();

    RunWatcher &m_watcher;
    RunListModel *m_model;
    QSortFilterProxyModel *m_proxy;
    QLineEdit *m_filter;
    QListView *m_list;
    QLabel *m_empty;
    QStackedWidget *m_stack;
    QAction *m_rename;
    QAction *m_show;
    QAction *m_copyPath;
    QAction *m_delete;
    QList<QAction *> m_actions;
    QString m_wanted; ///< to be selected
    bool m_quiet = false;
};

} // namespace shardscope::ui
