// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/search_bar.h"

#include "ui/common/colors.h"
#include "ui/common/icons.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>

namespace shardscope::ui::timeline {

SearchBar::SearchBar(QWidget *parent)
    : QWidget(parent)
    , m_edit(new QLineEdit(this))
    , m_message(new QLabel(this))
{
    auto *layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    m_edit->setPlaceholderText(tr("Search, e.g. gather unit:block.3 >1.5ms"));
    m_edit->setToolTip(tr("Part of a name; unit: and part of a unit; > and a duration (ns, us, ms, s).\n"
                          "Enter: next hit, Shift+Enter: previous, Esc: back to the lanes"));
    m_edit->setAccessibleName(tr("Search spans"));
    m_edit->setClearButtonEnabled(true);
    m_edit->setMinimumWidth(180);
    m_edit->installEventFilter(this);
    layout->addWidget(m_edit, 1);
    layout->addWidget(m_message);
    connect(m_edit, &QLineEdit::textChanged, this, &SearchBar::textChanged);
}

QString SearchBar::text() const
{
    return m_edit->text();
}

void SearchBar::setText(const QString &text)
{
    m_edit->setText(text);
}

void SearchBar::start()
{
    m_edit->setFocus(Qt::ShortcutFocusReason);
    m_edit->selectAll();
}

void SearchBar::showHits(quint64 count, qint64 current, bool truncated)
{
    QLocale locale = QLocale::c();
    locale.setNumberOptions({}); // with thousands separated
    QString text = count == 1 ? tr("1 hit") : tr("%1 hits").arg(locale.toString(count));
    if (current >= 0)
        text = tr("%1 of %2").arg(locale.toString(current + 1), text);
    m_message->setText(text);
    m_message->setToolTip(truncated ? tr("Only the first million can be gone through one by one") : QString());
}

void SearchBar::showError(const QString &message)
{
    m_message->setText(tr("not understood"));
    m_message->setToolTip(message);
}

void SearchBar::clearMessage()
{
    m_message->clear();
    m_message->setToolTip({});
}

bool SearchBar::eventFilter(QObject *watched, QEvent *event)
{
    if (watched != m_edit || event->type() != QEvent::KeyPress)
        return QWidget::eventFilter(watched, event);
    const auto *key = static_cast<QKeyEvent *>(event);
    if (key->key() == Qt::Key_Escape) {
        Q_EMIT left();
        return true;
    }
    if (key->key() != Qt::Key_Return && key->key() != Qt::Key_Enter)
        return false;
    if (key->modifiers() & Qt::ShiftModifier)
        Q_EMIT previous();
    else
        Q_EMIT next();
    return true;
}

} // namespace shardscope::ui::timeline
