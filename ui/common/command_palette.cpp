// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/command_palette.h"

#include <QDialogButtonBox>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QTableWidget>
#include <QVBoxLayout>

namespace shardscope::ui {

QString plainText(const QAction &action)
{
    QString text = action.text();
    text.remove(u'&');
    if (text.endsWith(u'…'))
        text.chop(1);
    return text;
}

CommandPalette::CommandPalette(const QList<QAction *> &actions, QWidget *parent)
    : QDialog(parent)
    , m_text(new QLineEdit(this))
    , m_list(new QListWidget(this))
{
    setWindowTitle(tr("Commands"));
    setAttribute(Qt::WA_DeleteOnClose);
    for (QAction *action : actions)
        m_actions << action;
    m_text->setPlaceholderText(tr("Type a command"));
    m_text->setAccessibleName(tr("Command"));
    m_text->installEventFilter(this);
    m_list->setAccessibleName(tr("Commands"));
    connect(m_text, &QLineEdit::textChanged, this, &CommandPalette::filter);
    connect(m_text, &QLineEdit::returnPressed, this, &CommandPalette::choose);
    connect(m_list, &QListWidget::itemActivated, this, &CommandPalette::choose);
    connect(m_list, &QListWidget::itemClicked, this, &CommandPalette::choose);
    auto *layout = new QVBoxLayout(this);
    layout->addWidget(m_text);
    layout->addWidget(m_list);
    resize(480, 420);
    filter();
}

void CommandPalette::filter()
{
    const QStringList words = m_text->text().split(u' ', Qt::SkipEmptyParts);
    m_list->clear();
    for (qsizetype i = 0; i < m_actions.size(); ++i) {
        const QAction *action = m_actions[i];
        if (!action || action->text().isEmpty())
            continue;
        const QString name = plainText(*action);
        const bool fits = std::all_of(words.begin(), words.end(), [&name](const QString &word) {
            return name.contains(word, Qt::CaseInsensitive);
        });
        if (!fits)
            continue;
        const QString keys = action->shortcut().toString(QKeySequence::NativeText);
        auto *item = new QListWidgetItem(action->icon(), keys.isEmpty() ? name : name + QStringLiteral("    ") + keys);
        item->setData(Qt::UserRole, i);
        if (!action->isEnabled())
            item->setFlags(Qt::NoItemFlags);
        m_list->addItem(item);
    }
    for (int row = 0; row < m_list->count() && !m_list->currentItem(); ++row) {
        if (m_list->item(row)->flags() & Qt::ItemIsEnabled)
            m_list->setCurrentRow(row);
    }
}

void CommandPalette::choose()
{
    const QListWidgetItem *item = m_list->currentItem();
    if (!item || !(item->flags() & Qt::ItemIsEnabled))
        return;
    const QPointer<QAction> action = m_actions[item->data(Qt::UserRole).toInt()];
    accept();
    if (action)
        action->trigger();
}

bool CommandPalette::eventFilter(QObject *watched, QEvent *event)
{
    if (event->type() == QEvent::KeyPress) {
        const auto *key = static_cast<QKeyEvent *>(event);
        const int step = key->key() == Qt::Key_Down ? 1 : key->key() == Qt::Key_Up ? -1 : 0;
        for (int row = m_list->currentRow() + step; step != 0 && row >= 0 && row < m_list->count(); row += step) {
            if (m_list->item(row)->flags() & Qt::ItemIsEnabled) {
                m_list->setCurrentRow(row);
                break;
            }
        }
        if (step != 0)
            return true;
    }
    return QDialog::eventFilter(watched, event);
}

KeysDialog::KeysDialog(const QList<QAction *> &actions, const QList<std::pair<QString, QString>> &others,
                       QWidget *parent)
    : QDialog(parent)
{
    setWindowTitle(tr("Keys"));
    setAttribute(Qt::WA_DeleteOnClose);
    QList<std::pair<QString, QString>> rows;
    for (const QAction *action : actions) {
        if (!action->shortcut().isEmpty())
            rows << std::pair{plainText(*action), action->shortcut().toString(QKeySequence::NativeText)};
    }
    rows += others;
    auto *table = new QTableWidget(static_cast<int>(rows.size()), 2, this);
    table->setHorizontalHeaderLabels({tr("What"), tr("Key")});
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setShowGrid(false);
    table->setAlternatingRowColors(true);
    table->verticalHeader()->hide();
    table->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
    table->horizontalHeader()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    for (int row = 0; row < rows.size(); ++row) {
        table->setItem(row, 0, new QTableWidgetItem(rows[row].first));
        table->setItem(row, 1, new QTableWidgetItem(rows[row].second));
    }
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto *layout = new QVBoxLayout(this);
    layout->addWidget(table);
    layout->addWidget(buttons);
    resize(520, 560);
}

} // namespace shardscope::ui
