// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/inspector.h"

#include <QApplication>
#include <QClipboard>
#include <QFontDatabase>
#include <QGridLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

namespace shardscope::ui {

Inspector::Inspector(QWidget *parent)
    : QWidget(parent)
    , m_title(new QLabel(this))
    , m_facts(new QWidget(this))
    , m_sqlLabel(new QLabel(tr("The &query behind it:"), this))
    , m_sql(new QPlainTextEdit(this))
    , m_copy(new QPushButton(tr("Copy the query"), this))
{
    QFont bold = font();
    bold.setBold(true);
    m_title->setFont(bold);
    m_title->setWordWrap(true);
    m_title->setTextFormat(Qt::PlainText);
    m_title->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_sqlLabel->setBuddy(m_sql);
    m_sql->setReadOnly(true);
    m_sql->setTabChangesFocus(true);
    m_sql->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_sql->setFixedHeight(m_sql->fontMetrics().lineSpacing() * 5 + 12);
    connect(m_copy, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(m_sql->toPlainText()); });
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(8);
    layout->addWidget(m_title);
    layout->addWidget(m_facts);
    layout->addStretch(1);
    layout->addWidget(m_sqlLabel);
    layout->addWidget(m_sql);
    layout->addWidget(m_copy, 0, Qt::AlignRight);
    setMinimumWidth(220);
    clear();
}

void Inspector::clear()
{
    setContent({});
}

void Inspector::setContent(const InspectorContent &content)
{
    const bool nothing = content.title.isEmpty() && content.facts.isEmpty();
    m_title->setText(nothing ? tr("Nothing is selected. Click a step, a span or a unit on a page.") : content.title);
    auto *facts = new QWidget(this);
    auto *grid = new QGridLayout(facts);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(4);
    grid->setColumnStretch(1, 1);
    for (int row = 0; row < content.facts.size(); ++row) {
        auto *name = new QLabel(content.facts[row].first, facts);
        name->setForegroundRole(QPalette::PlaceholderText);
        name->setWordWrap(true); // the dock may be narrow
        auto *value = new QLabel(content.facts[row].second, facts);
        value->setTextFormat(Qt::PlainText);
        value->setWordWrap(true);
        value->setAlignment(Qt::AlignRight | Qt::AlignTop);
        value->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
        value->setAccessibleName(content.facts[row].first);
        grid->addWidget(name, row, 0, Qt::AlignTop);
        grid->addWidget(value, row, 1);
    }
    delete layout()->replaceWidget(m_facts, facts);
    delete m_facts; // the old one
    m_facts = facts;
    m_sql->setPlainText(content.sql);
    for (QWidget *widget :
         {static_cast<QWidget *>(m_sqlLabel), static_cast<QWidget *>(m_sql), static_cast<QWidget *>(m_copy)})
        widget->setVisible(!content.sql.isEmpty());
}

} // namespace shardscope::ui
