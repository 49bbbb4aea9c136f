// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/stat_card.h"

#include "ui/common/elided_label.h"

#include <QLabel>
#include <QVBoxLayout>

namespace shardscope::ui {

StatCard::StatCard(const QString &caption, const QString &toolTip, QWidget *parent)
    : QFrame(parent)
    , m_caption(new QLabel(caption, this))
    , m_value(new QLabel(QStringLiteral("—"), this))
    , m_detail(new ElidedLabel(this))
{
    QFont large = font();
    large.setPointSizeF(large.pointSizeF() * 1.5);
    m_value->setFont(large);
    m_value->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_detail->setMinimumHeight(m_detail->fontMetrics().height());
    m_detail->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    for (QLabel *label : {m_caption, m_value, m_detail})
        label->setTextFormat(Qt::PlainText);
    setToolTip(toolTip);
    setAccessibleName(caption);
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    setBackgroundRole(QPalette::Base); // roles, not colours: they follow the theme by themselves
    m_caption->setForegroundRole(QPalette::PlaceholderText);
    m_value->setForegroundRole(QPalette::Text);
    m_detail->setForegroundRole(QPalette::PlaceholderText);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(12, 8, 12, 8);
    layout->setSpacing(0);
    layout->addWidget(m_caption);
    layout->addWidget(m_value);
    layout->addWidget(m_detail);
    // Cards stay as wide as their widest usual text: they must not jump while figures change.
    setMinimumWidth(QFontMetrics(large).horizontalAdvance(QStringLiteral("000.0 GiB")) + 28);
}

void StatCard::setValue(const QString &value, const QString &detail)
{
    m_value->setText(value);
    m_detail->setText(detail);
    setAccessibleDescription(detail.isEmpty() ? value : value + QStringLiteral(", ") + detail);
}

QString StatCard::value() const
{
    return m_value->text();
}

} // namespace shardscope::ui
