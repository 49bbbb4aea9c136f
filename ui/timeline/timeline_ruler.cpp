// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_ruler.h"

#include "ui/common/colors.h"
#include "ui/common/text.h"
#include "ui/timeline/lane_canvas.h"
#include "ui/timeline/ticks.h"

#include <QMouseEvent>
#include <QPainter>

namespace shardscope::ui::timeline {

namespace {

constexpr int kStepsPx = 21;
constexpr double kTickSpacingPx = 90;

} // namespace

TimelineRuler::TimelineRuler(TimelineState &state, QWidget *parent)
    : QWidget(parent)
    , m_state(state)
{
    setFixedHeight(kHeightPx);
    setAccessibleName(tr("Steps and time"));
    connect(&state, &TimelineState::contentChanged, this, qOverload<>(&QWidget::update));
    connect(&state, &TimelineState::viewChanged, this, qOverload<>(&QWidget::update));
    connect(&state, &TimelineState::decorationChanged, this, qOverload<>(&QWidget::update));
    connect(&state, &TimelineState::cursorChanged, this, qOverload<>(&QWidget::update));
}

void TimelineRuler::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange)
        update();
    QWidget::changeEvent(event);
}

double TimelineRuler::xOf(int64_t timeNs) const
{
    constexpr double kFarPx = 50'000;
    return LaneCanvas::kHeaderPx + std::clamp(m_state.axis().xOf(timeNs), -kFarPx, kFarPx);
}

std::vector<TimelineRuler::Step> TimelineRuler::visibleSteps() const
{
    // The ranks' steps differ by microseconds: each attempt's first rank stands for them.
    std::vector<Step> steps;
    int64_t lastAttempt = -1;
    for (const RankTimeline &rank : m_state.snapshot()->ranks) {
        if (rank.attempt == lastAttempt)
            continue;
        lastAttempt = rank.attempt;
        const TimeRange &visible = m_state.axis().visible();
        const int64_t lastNs = m_state.snapshot()->extent.endNs;
        // Steps follow each other, so their ends ascend as their starts do; those that run have none yet.
        const auto first = std::partition_point(rank.steps->begin(), rank.steps->end(), [&](const auto &step) {
            return step.endNs.value_or(lastNs) <= visible.startNs;
        });
        for (auto step = first; step != rank.steps->end() && step->startNs < visible.endNs; ++step) {
            const TimeRange range{step->startNs, step->endNs.value_or(lastNs)};
            if (range.intersects(visible))
                steps.push_back({step->number, range});
        }
    }
    return steps;
}

void TimelineRuler::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    const Colors &colors = Colors::of(palette());
    painter.fillRect(rect(), colors.page);
    if (!m_state.snapshot())
        return;
    painter.setPen(colors.muted);
    painter.drawText(QRect(8, 0, LaneCanvas::kHeaderPx - 16, kStepsPx), Qt::AlignVCenter | Qt::AlignLeft, tr("Step"));
    const QString shown = tr("%1 in view").arg(durationText(m_state.axis().visible().durationNs()));
    painter.drawText(QRect(8, kStepsPx, LaneCanvas::kHeaderPx - 16, height() - kStepsPx),
                     Qt::AlignVCenter | Qt::AlignLeft, shown);
    painter.setClipRect(LaneCanvas::kHeaderPx, 0, width(), height());
    paintSteps(painter);
    paintTimes(painter);
    paintMarks(painter);
    painter.setClipping(false);
    painter.setPen(colors.border);
    painter.drawLine(0, height() - 1, width(), height() - 1);
}

void TimelineRuler::paintSteps(QPainter &painter) const
{
    const Colors &colors = Colors::of(palette());
    const QFontMetrics metrics(font());
    std::vector<StepBand> bands;
    std::vector<QString> numbers;
    double drawnTo = -1;
    for (const Step &step : visibleSteps()) {
        const double x0 = std::max<double>(LaneCanvas::kHeaderPx, xOf(step.range.startNs));
        const double x1 = std::min<double>(width(), xOf(step.range.endNs));
        if (x1 - x0 < 1 && x0 < drawnTo + 1)
            continue; // nothing to be seen of it, and there may be a hundred thousand
        drawnTo = x0;
        if (x1 - x0 >= 1)
            painter.fillRect(QRectF(x0, 2, x1 - x0, kStepsPx - 4), step.number % 2 ? colors.grid : colors.card);
        painter.setPen(colors.border);
        if (x1 - x0 >= 4)
            painter.drawLine(QPointF(x0, 2), QPointF(x0, kStepsPx - 2));
        numbers.push_back(QString::number(step.number));
        bands.push_back({x0, x1, metrics.horizontalAdvance(numbers.back()) + 8.0});
    }
    painter.setPen(colors.text);
    for (const size_t i : numberedBands(bands, width())) { // after all bands: a number may stand over those that follow
        painter.drawText(QRectF(bands[i].left + 4, 0, bands[i].numberPx, kStepsPx), Qt::AlignVCenter | Qt::AlignLeft,
                         numbers[i]);
    }
}

void TimelineRuler::paintTimes(QPainter &painter) const
{
    const Colors &colors = Colors::of(palette());
    const QFontMetrics metrics(font());
    const Ticks ticks = ticksFor(m_state.axis().visible(), m_state.axis().widthPx(), kTickSpacingPx);
    for (const int64_t timeNs : ticks.timesNs) {
        const double x = std::floor(xOf(timeNs)) + 0.5;
        painter.setPen(colors.border);
        painter.drawLine(QPointF(x, kStepsPx + 2), QPointF(x, height()));
        const QString text = timeMarkText(timeNs, ticks.spacingNs);
        if (x + 4 + metrics.horizontalAdvance(text) > width())
            continue; // half a number would be another one
        painter.setPen(colors.muted);
        painter.drawText(QRectF(x + 4, kStepsPx, kTickSpacingPx, height() - kStepsPx), Qt::AlignVCenter | Qt::AlignLeft,
                         text);
    }
}

void TimelineRuler::paintMarks(QPainter &painter) const
{
    const Colors &colors = Colors::of(palette());
    const QFontMetrics metrics(font());
    const auto flag = [&](int64_t timeNs, const QString &text, const QColor &fill) {
        const double textWidth = metrics.horizontalAdvance(text) + 8;
        const double x = std::min(xOf(timeNs), width() - textWidth);
        const QRectF rect(x, kStepsPx + 2, textWidth, height() - kStepsPx - 4);
        painter.fillRect(rect, fill);
        painter.setPen(Colors::onFill(fill));
        painter.drawText(rect, Qt::AlignCenter, text);
    };
    for (size_t i = 0; i < m_state.marks().size(); ++i) {
        const int64_t mark = m_state.marks()[i];
        const QString text =
            i == 0 ? timeMarkText(mark, 1000) : tr("+%1").arg(durationText(mark - m_state.marks()[i - 1]));
        flag(mark, text, colors.good);
    }
    if (m_state.cursorNs()) {
        const auto digitNs = static_cast<int64_t>(std::max(1.0, m_state.axis().nsPerPixel()));
        int64_t power = 1;
        while (power * 10 <= digitNs)
            power *= 10;
        const int64_t shown = *m_state.cursorNs() / power * power;
        flag(*m_state.cursorNs(), timeMarkText(shown, power), colors.muted);
    }
}

void TimelineRuler::mousePressEvent(QMouseEvent *event)
{
    if (!m_state.snapshot() || event->position().y() > kStepsPx)
        return;
    const int64_t timeNs = m_state.axis().timeAt(event->position().x() - LaneCanvas::kHeaderPx);
    for (const Step &step : visibleSteps()) {
        if (step.range.contains(timeNs)) {
            Q_EMIT stepClicked(step.number, step.range);
            return;
        }
    }
}

} // namespace shardscope::ui::timeline
