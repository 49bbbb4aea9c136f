// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/legend.h"

#include "ui/common/colors.h"
#include "ui/common/flow_layout.h"
#include "ui/common/text.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>

namespace shardscope::ui::timeline {

namespace {

QPixmap swatch(const QColor &color, const QColor &border, double scale)
{
    QPixmap pixmap(QSize(12, 12) * scale);
    pixmap.setDevicePixelRatio(scale);
    pixmap.fill(color);
    QPainter painter(&pixmap);
    painter.setPen(border);
    painter.drawRect(QRectF(0.5, 0.5, 11, 11));
    return pixmap;
}

} // namespace

Legend::Legend(TimelineState &state, QWidget *parent)
    : QWidget(parent)
    , m_state(state)
{
    auto *layout = new FlowLayout(4);
    layout->setContentsMargins(8, 0, 8, 2);
    setLayout(layout);
    for (size_t i = 0; i < kCategories; ++i) {
        const auto category = static_cast<SpanCategory>(i);
        auto *button = new QToolButton(this);
        button->setText(nameOf(category));
        button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
        button->setCheckable(true);
        button->setChecked(true);
        button->setAutoRaise(true);
        button->setFocusPolicy(Qt::TabFocus);
        button->setToolTip(tr("Show or hide spans of this category"));
        connect(button, &QToolButton::toggled, this, [this, category](bool on) { m_state.setShown(category, on); });
        m_buttons[i] = button;
        layout->addWidget(button);
    }
    auto *phases = new QLabel(tr("Phases:"), this);
    phases->setContentsMargins(8, 3, 2, 0);
    layout->addWidget(phases);
    for (const Phase phase : {Phase::Input, Phase::Forward, Phase::Recompute, Phase::Backward, Phase::Optimizer,
                              Phase::Checkpoint, Phase::Validate}) {
        auto *pair = new QWidget(this);
        auto *pairLayout = new QHBoxLayout(pair);
        pairLayout->setContentsMargins(2, 3, 2, 0);
        pairLayout->setSpacing(4);
        auto *label = new QLabel(pair);
        m_phases.emplace_back(label, phase);
        pairLayout->addWidget(label);
        pairLayout->addWidget(new QLabel(nameOf(phase), pair));
        layout->addWidget(pair);
    }
    updateColors();
}

void Legend::updateColors()
{
    const Colors &colors = Colors::of(palette());
    const double scale = devicePixelRatioF();
    for (size_t i = 0; i < kCategories; ++i) {
        QIcon icon;
        const QPixmap on = swatch(colors.category(static_cast<SpanCategory>(i)), colors.border, scale);
        const QPixmap off = swatch(colors.card, colors.muted, scale);
        icon.addPixmap(on, QIcon::Normal, QIcon::On);
        icon.addPixmap(off, QIcon::Normal, QIcon::Off);
        m_buttons[i]->setIcon(icon);
        m_buttons[i]->setIconSize({12, 12});
    }
    for (const auto &[label, phase] : m_phases)
        label->setPixmap(swatch(colors.phase(phase), colors.border, scale));
}

void Legend::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange)
        updateColors();
    QWidget::changeEvent(event);
}

} // namespace shardscope::ui::timeline
