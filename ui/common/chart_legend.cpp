// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/chart_legend.h"

#include "ui/common/flow_layout.h"

#include <QPainter>
#include <QToolButton>
#include <algorithm>

namespace shardscope::ui {

static constexpr int kSwatch = 10;

ChartLegend::ChartLegend(QWidget *parent)
    : QWidget(parent)
{
    setLayout(new FlowLayout(2));
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

void ChartLegend::setNames(const std::vector<QString> &names)
{
    const bool same = std::equal(names.begin(), names.end(), m_buttons.begin(), m_buttons.end(),
                                 [](const QString &name, const QToolButton *button) { return name == button->text(); });
    if (same)
        return; // what is hidden stays hidden
    for (QToolButton *button : m_buttons)
        delete button;
    m_buttons.clear();
    for (size_t i = 0; i < names.size(); ++i) {
        auto *button = new QToolButton(this);
        button->setText(names[i]);
        button->setCheckable(true);
        button->setChecked(true);
        button->setAutoRaise(true);
        button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
        button->setIconSize(QSize(kSwatch, kSwatch));
        button->setToolTip(tr("Show or hide %1").arg(names[i]));
        // Checked is the normal state here: only the swatch tells, else the whole legend looks pressed.
        button->setStyleSheet(QStringLiteral("QToolButton { border: none; padding: 1px 4px; }"
                                             "QToolButton:hover, QToolButton:focus { border-radius: 3px;"
                                             " background: palette(midlight); }"));
        connect(button, &QToolButton::toggled, this,
                [this, i](bool shown) { Q_EMIT toggled(static_cast<int>(i), shown); });
        layout()->addWidget(button);
        m_buttons.push_back(button);
    }
    setVisible(names.size() > 1);
}

void ChartLegend::setColors(const std::vector<QColor> &colors)
{
    for (size_t i = 0; i < m_buttons.size() && i < colors.size(); ++i) {
        QIcon icon;
        for (const bool shown : {true, false}) {
            QPixmap swatch(QSize(kSwatch, kSwatch) * 2);
            swatch.setDevicePixelRatio(2);
            swatch.fill(Qt::transparent);
            QPainter painter(&swatch);
            painter.setPen(QPen(colors[i], 1.5));
            painter.setBrush(shown ? QBrush(colors[i]) : Qt::NoBrush);
            painter.drawRect(QRectF(1, 1, kSwatch - 2, kSwatch - 2));
            painter.end();
            icon.addPixmap(swatch, QIcon::Normal, shown ? QIcon::On : QIcon::Off);
        }
        m_buttons[i]->setIcon(icon);
    }
}

bool ChartLegend::isShown(size_t index) const
{
    return index >= m_buttons.size() || m_buttons[index]->isChecked();
}

} // namespace shardscope::ui
