// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QDialog>
#include <QList>
#include <QPointer>

class QLineEdit;
class QListWidget;

namespace shardscope::ui {

/// Ctrl+K: every command by its name. Words may be given in any order and shortened.
class CommandPalette : public QDialog
{
    Q_OBJECT
public:
    CommandPalette(const QList<QAction *> &actions, QWidget *parent = nullptr);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void filter();
    void choose();

    QList<QPointer<QAction>> m_actions;
    QLineEdit *m_text;
    QListWidget *m_list;
};

/// An action's text without the ampersand of its mnemonic and the dots of its dialog.
QString plainText(const QAction &action);

/// F1: every key, by menu.
class KeysDialog : public QDialog
{
    Q_OBJECT
public:
    KeysDialog(const QList<QAction *> &actions, const QList<std::pair<QString, QString>> &others,
               QWidget *parent = nullptr);
};

} // namespace shardscope::ui
