// SPDX-License-Identifier: GPL-3.0-or-later
// The part of Chart that puts its data into the plot, as far as the view has pixels for it.
#include "ui/common/chart.h"

#include "ui/common/chart_columns.h"
#include "ui/common/chart_legend.h"
#include "ui/common/chart_markers.h"
#include "ui/common/colors.h"
#include "ui/common/custom_plot.h"
#include "ui/common/elided_label.h"

#include <QLabel>
#include <algorithm>
#include <cmath>

namespace shardscope::ui {

static constexpr double kColumnPx = 2;            ///< of a stack's points nearer to each other than this one is drawn
static constexpr double kWorthCutting = 2;        ///< times what is left, at least
static constexpr size_t kPointsForOneBeyond = 20; ///< of so many one may go beyond the scale, and one of fewer
static constexpr int kSeparatedPointPx = 4; ///< stacked layers with points nearer than this have no lines between them

/// Height of the stack of those that are shown, at each point; NaN where none of them was measured.
static std::vector<double> heights(const std::vector<ChartSeries> &series,
                                   const std::vector<std::vector<double>> &columns, const ChartLegend &legend,
                                   size_t points)
{
    std::vector<double> sums(points, std::nan(""));
    for (size_t i = 0; i < series.size(); ++i) {
        if (!series[i].stacked || !legend.isShown(i))
            continue;
        for (size_t k = 0; k < points; ++k) {
            if (!std::isnan(columns[i][k]))
                sums[k] = (std::isnan(sums[k]) ? 0 : sums[k]) + columns[i][k];
        }
    }
    return sums;
}

void Chart::refill()
{
    m_drawnFor.reset();
    rescale();
}

std::pair<double, double> Chart::dataRange() const
{
    if (m_x.empty())
        return {0, 1};
    double last = m_x.back();
    for (const auto &[x, label] : m_markers->markers()) // a run's end comes after its last step
        last = std::max(last, x);
    const double span = last - m_x.front();
    return span > 0 ? std::pair{m_x.front(), last} : std::pair{m_x.front() - 0.5, m_x.front() + 0.5};
}

/// First, and one behind the last. What holds from before the view on, or lasts beyond it, is seen too; what lasts up
/// to the view's very begin is not.
std::pair<size_t, size_t> Chart::pointsIn(double lower, double upper) const
{
    const bool lasting = any(&ChartSeries::lasting);
    const auto first =
        lasting ? std::upper_bound(m_x.begin(), m_x.end(), lower) : std::lower_bound(m_x.begin(), m_x.end(), lower);
    auto from = static_cast<size_t>(first - m_x.begin());
    auto to = static_cast<size_t>(std::upper_bound(m_x.begin(), m_x.end(), upper) - m_x.begin());
    from -= any(&ChartSeries::step) && from > 0;
    to += lasting && to < m_x.size();
    return {from, to};
}

Chart::ScaleLimit Chart::scaleLimit(const std::vector<double> &stack, double lower, double upper) const
{
    if (!any(&ChartSeries::lasting))
        return {};
    const auto [from, to] = pointsIn(lower, upper);
    std::vector<double> seen;
    for (size_t k = from; k < to; ++k) {
        if (std::isfinite(stack[k]))
            seen.push_back(stack[k]);
    }
    if (seen.empty())
        return {};
    const auto middle = seen.begin() + static_cast<std::ptrdiff_t>(seen.size() / 2);
    std::nth_element(seen.begin(), middle, seen.end());
    if (*middle <= 0) // a layer that is mostly zero: its few values are what there is to see
        return {};
    ScaleLimit found{.value = *middle * kFarAbove};
    double highestWithin = 0;
    for (size_t k = from; k < to; ++k) {
        if (!std::isfinite(stack[k]))
            continue;
        if (stack[k] <= found.value) {
            highestWithin = std::max(highestWithin, stack[k]);
            continue;
        }
        if (found.beyond == 0 || stack[k] > stack[found.highest])
            found.highest = k;
        ++found.beyond;
    }
    const bool areFew = found.beyond <= std::max<size_t>(1, seen.size() / kPointsForOneBeyond);
    // To cut off what is hardly higher than others would gain nothing.
    const bool isWorthIt = found.beyond > 0 && stack[found.highest] > kWorthCutting * highestWithin;
    return isWorthIt && areFew ? found : ScaleLimit{};
}

QString Chart::beyondText(const ScaleLimit &limit, const std::vector<double> &stack) const
{
    if (limit.beyond == 0)
        return {};
    const QString most = axisText(m_yUnit, stack[limit.highest]);
    if (limit.beyond > 1)
        return tr("%n points beyond the scale, up to %1", nullptr, static_cast<int>(limit.beyond)).arg(most);
    return tr("%1 goes beyond the scale, to %2")
        .arg(limit.highest < m_labels.size() ? m_labels[limit.highest] : axisText(m_xUnit, m_x[limit.highest]), most);
}

std::pair<double, double> Chart::valueRange(bool secondAxis, double lower, double upper,
                                            const std::function<bool(size_t)> &isBeyond) const
{
    double least = HUGE_VAL;
    double most = -HUGE_VAL;
    bool fromZero = false;
    const auto take = [&](double value) {
        if (std::isfinite(value)) {
            least = std::min(least, value);
            most = std::max(most, value);
        }
    };
    const auto [from, to] = pointsIn(lower, upper);
    for (size_t k = from; k < to; ++k) {
        if (isBeyond(k)) // with all of its layers: the lower ones are no ordinary ones either
            continue;
        double sum = 0;
        for (size_t i = 0; i < m_series.size(); ++i) {
            if (m_series[i].secondAxis != secondAxis || !shown(i))
                continue;
            const double value = drawnColumn(i)[k];
            if (m_series[i].stacked) {
                sum += std::isnan(value) ? 0 : value;
                fromZero = true;
                take(sum);
            } else {
                take(value);
            }
        }
    }
    if (!(most >= least))
        return {0, 1};
    if (fromZero || (least >= 0 && least < most * 0.3)) // near zero: show it
        least = 0;
    const double margin = most > least ? (most - least) * 0.06 : std::max(std::abs(most) * 0.1, 1e-12);
    return {least == 0 ? 0 : least - margin, most + margin};
}

void Chart::rescale()
{
    const auto [lower, upper] = m_fixedRange.value_or(dataRange());
    m_plot->xAxis->setRange(lower, upper);
    const std::vector<double> stack = heights(m_series, m_columns, *m_legend, m_x.size());
    const ScaleLimit limit = scaleLimit(stack, lower, upper);
    m_beyond = beyondText(limit, stack);
    const auto [low, high] =
        valueRange(false, lower, upper, [&](size_t k) { return limit.beyond > 0 && stack[k] > limit.value; });
    m_plot->yAxis->setRange(low, high);
    if (m_plot->yAxis2->visible()) {
        const auto [low2, high2] = valueRange(true, lower, upper, [](size_t) { return false; });
        m_plot->yAxis2->setRange(low2, high2);
    }
    showBeside();
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

/// A sample that lacks a figure is no change of it: the one before holds on, up to a gap of the whole chart.
void Chart::holdValues()
{
    const auto isGap = [this](size_t k) {
        return std::ranges::all_of(m_columns, [k](const auto &column) { return std::isnan(column[k]); });
    };
    m_held.assign(m_series.size(), {});
    for (size_t i = 0; i < m_series.size(); ++i) {
        if (!m_series[i].step || m_series[i].stacked)
            continue;
        m_held[i] = m_columns[i];
        for (size_t k = 1; k < m_held[i].size(); ++k) {
            if (std::isnan(m_held[i][k]) && !isGap(k))
                m_held[i][k] = m_held[i][k - 1];
        }
    }
}

const std::vector<double> &Chart::drawnColumn(size_t series) const
{
    return m_held[series].empty() ? m_columns[series] : m_held[series];
}

/// After the plot's layout: then the width is known.
void Chart::drawPoints()
{
    const QCPRange view = m_plot->xAxis->range();
    const int width = m_plot->axisRect()->width();
    const std::tuple key{view.lower, view.upper, width};
    if (m_drawnFor == key || width <= 0)
        return;
    m_drawnFor = key;
    const bool stack = std::any_of(m_series.begin(), m_series.end(), [](const auto &one) { return one.stacked; });
    const std::vector<double> sums = heights(m_series, m_columns, *m_legend, m_x.size());
    // Lines are thinned by QCustomPlot itself, which keeps their extremes; beside a stack they take its points.
    const DrawnPoints drawn = stack ? drawnPoints(m_x, sums, view.lower, view.upper, view.size() / width * kColumnPx)
                                    : drawnPoints(m_x, sums, -HUGE_VAL, HUGE_VAL, 0);
    const QVector<double> keys(drawn.x.begin(), drawn.x.end());
    std::vector<double> below(drawn.indices.size(), 0.0);
    for (size_t i = 0; i < m_series.size(); ++i) {
        m_graphs[i]->setVisible(shown(i));
        if (!shown(i))
            continue;
        QVector<double> values(keys.size());
        for (size_t k = 0; k < drawn.indices.size(); ++k) {
            const size_t index = drawn.indices[k];
            const double value = drawnColumn(i)[index];
            if (m_series[i].stacked)
                below[k] += std::isnan(value) ? 0 : value;
            const double top = std::isnan(sums[index]) ? sums[index] : below[k];
            values[static_cast<qsizetype>(k)] = m_series[i].stacked ? top : value;
        }
        m_graphs[i]->setData(keys, values, true);
    }
    drawLines(static_cast<int>(drawn.indices.size()) * kSeparatedPointPx < width);
    m_thinned = drawn.thinned;
    showBeside();
    m_markers->place();
}

/// A line between layers helps where hues are lost; where points are closer than a few pixels such lines would cover
/// them, and so would a line round them.
void Chart::drawLines(bool roomy)
{
    const QPen between = roomy ? QPen(Colors::of(palette()).card, 1) : QPen(Qt::NoPen);
    bool whole = true; // with a layer hidden, the height of the whole stack is news
    for (size_t i = 0; i < m_series.size(); ++i)
        whole = whole && (!m_series[i].stacked || shown(i));
    for (size_t i = 0; i < m_series.size(); ++i) {
        if (m_series[i].stacked) {
            m_graphs[i]->setPen(between);
            m_graphs[i]->setAntialiasedFill(roomy); // else neighbours' hues would mix
        } else if (m_series[i].outline) {
            m_graphs[i]->setVisible(shown(i) && (roomy || !whole));
        }
    }
}

void Chart::showBeside()
{
    QStringList texts;
    if (!m_remark.isEmpty())
        texts << m_remark;
    if (!m_beyond.isEmpty())
        texts << m_beyond;
    if (m_thinned)
        texts << tr("highest of each few points");
    m_beside->setText(texts.isEmpty() ? QString() : tr("· %1").arg(texts.join(QStringLiteral(" · "))));
    m_beside->setToolTip(
        m_thinned
            ? tr("There are more points than pixels: of each few the highest is drawn, all of its parts as they were "
                 "at that moment. Zoom in to see each; the readout, the table and copies have all.")
            : QString());
}

} // namespace shardscope::ui
