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
    large.setPointSizeF(large.pointSizeF() * 1.35);
    QFont small = font();
    small.setPointSizeF(small.pointSizeF() * 0.9);
    m_caption->setFont(small);
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
    layout->setContentsMargins(6, 8, 6, 8);
    layout->setSpacing(0);
    layout->addWidget(m_caption);
    layout->addWidget(m_value);
    layout->addWidget(m_detail);
    // Cards stay as wide as their widest usual text: they must not jump while figures change. Six of them stand in a
    // row beside the dock of settings on 1280 pixels.
    const int text = QFontMetrics(large).horizontalAdvance(QStringLiteral("0000 MiB"));
    setMinimumWidth(text + layout->contentsMargins().left() + layout->contentsMargins().right() + 2 * frameWidth());
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
