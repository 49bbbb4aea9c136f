// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/chart.h"

#include "ui/common/chart_input.h"
#include "ui/common/chart_legend.h"
#include "ui/common/chart_table.h"
#include "ui/common/chart_ticker.h"
#include "ui/common/colors.h"

#include "ui/common/custom_plot.h"
#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QLabel>
#include <QMenu>
#include <QMessageBox>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

namespace shardscope::ui {

static constexpr int kSeparatedPointPx = 4; ///< stacked layers with points nearer than this have no lines between them

Chart::Chart(const QString &title, const QString &xTitle, ChartUnit xUnit, QWidget *parent)
    : QWidget(parent)
    , m_title(title)
    , m_xTitle(xTitle)
    , m_xUnit(xUnit)
    , m_heading(new QLabel(title, this))
    , m_legend(new ChartLegend(this))
    , m_plot(new QCustomPlot(this))
    , m_input(new ChartInput(m_plot))
    , m_readout(new QLabel(m_plot))
    , m_brushItem(new QCPItemRect(m_plot))
    , m_cursorItem(new QCPItemStraightLine(m_plot))
{
    buildLayout();
    buildPlot();
    connectInput();
    applyTheme();
}

Chart::~Chart() = default;

void Chart::buildLayout()
{
    QFont bold = font();
    bold.setBold(true);
    m_heading->setFont(bold);
    auto *menuButton = new QToolButton(this);
    menuButton->setText(QStringLiteral("⋮"));
    menuButton->setAutoRaise(true);
    menuButton->setPopupMode(QToolButton::InstantPopup);
    menuButton->setToolTip(tr("Copy, table and zoom of this chart"));
    menuButton->setAccessibleName(tr("%1: chart menu").arg(m_title));
    menuButton->setStyleSheet(QStringLiteral("QToolButton::menu-indicator { image: none; }"));
    auto *menu = new QMenu(menuButton);
    connect(menu, &QMenu::aboutToShow, this, [this, menu] { buildMenu(menu); });
    menuButton->setMenu(menu);

    auto *header = new QHBoxLayout;
    header->setSpacing(8);
    header->addWidget(m_heading, 1);
    header->addWidget(menuButton);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 4, 8, 4);
    layout->setSpacing(0);
    layout->addLayout(header);
    layout->addWidget(m_legend);
    layout->addWidget(m_plot, 1);
    setAutoFillBackground(true);
    setBackgroundRole(QPalette::Base);
    setFocusProxy(m_plot);
    m_plot->setAccessibleName(tr("Chart: %1").arg(m_title));
    m_plot->setAccessibleDescription(tr("“Show as table” in the chart's menu has the same numbers."));
    m_plot->setMinimumSize(240, 96);
}

void Chart::buildPlot()
{
    m_plot->setNoAntialiasingOnDrag(false);
    m_plot->axisRect()->setupFullAxesBox(false);
    m_plot->axisRect()->setMinimumMargins(QMargins(8, 8, 8, 4));
    m_plot->xAxis->setTicker(QSharedPointer<ChartTicker>::create(m_xUnit));
    m_plot->xAxis->setLabel(m_xTitle);
    m_plot->yAxis2->setTickLabels(true);
    m_plot->yAxis2->setVisible(false);
    m_plot->xAxis2->setVisible(false);
    m_brushItem->setVisible(false);
    for (QCPItemPosition *position : {m_brushItem->topLeft, m_brushItem->bottomRight}) {
        position->setTypeX(QCPItemPosition::ptPlotCoords);
        position->setTypeY(QCPItemPosition::ptAxisRectRatio);
    }
    m_cursorItem->setVisible(false);
    m_readout->setAttribute(Qt::WA_TransparentForMouseEvents);
    m_readout->setTextFormat(Qt::RichText);
    m_readout->setMargin(6);
    m_readout->setAutoFillBackground(true);
    m_readout->setFrameShape(QFrame::StyledPanel);
    m_readout->hide();
    m_plot->setContextMenuPolicy(Qt::CustomContextMenu);
    connect(m_plot, &QWidget::customContextMenuRequested, this, [this](const QPoint &position) {
        QMenu menu;
        buildMenu(&menu);
        menu.exec(m_plot->mapToGlobal(position));
    });
}

void Chart::connectInput()
{
    connect(m_legend, &ChartLegend::toggled, this, [this] { refill(); });
    connect(m_input, &ChartInput::viewWanted, this, &Chart::userView);
    connect(m_input, &ChartInput::fitWanted, this, &Chart::resetZoom);
    connect(m_input, &ChartInput::picked, this, &Chart::picked);
    connect(m_input, &ChartInput::hovered, this, &Chart::hover);
    connect(m_input, &ChartInput::brushing, this, [this](double from, double to) {
        placeBrush(std::pair{std::min(from, to), std::max(from, to)});
        m_plot->replot(QCustomPlot::rpQueuedReplot);
    });
    connect(m_input, &ChartInput::brushed, this, [this](double lower, double upper) {
        setBrush(std::pair{lower, upper});
        Q_EMIT brushed(lower, upper);
    });
    connect(m_input, &ChartInput::left, this, [this] {
        m_readout->hide();
        setCursor(std::nullopt);
        Q_EMIT hoverLeft();
    });
}

void Chart::setYAxis(const QString &title, ChartUnit unit)
{
    m_yTitle = title;
    m_yUnit = unit;
    m_plot->yAxis->setLabel(title);
    m_plot->yAxis->setTicker(QSharedPointer<ChartTicker>::create(unit));
}

void Chart::setSecondYAxis(const QString &title, ChartUnit unit)
{
    m_y2Title = title;
    m_y2Unit = unit;
    m_plot->yAxis2->setLabel(title);
    m_plot->yAxis2->setTicker(QSharedPointer<ChartTicker>::create(unit));
    m_plot->yAxis2->setVisible(true);
}

void Chart::setSeries(std::vector<ChartSeries> series)
{
    m_series = std::move(series);
    m_columns.assign(m_series.size(), std::vector<double>(m_x.size(), std::nan("")));
    m_plot->clearGraphs();
    m_graphs.assign(m_series.size(), nullptr);
    // Stacked layers are drawn from the top one down, each filled to zero: what stays visible is its own part.
    for (size_t i = m_series.size(); i-- > 0;) {
        if (m_series[i].stacked)
            m_graphs[i] = m_plot->addGraph();
    }
    for (size_t i = 0; i < m_series.size(); ++i) {
        if (!m_series[i].stacked)
            m_graphs[i] = m_plot->addGraph(m_plot->xAxis, m_series[i].secondAxis ? m_plot->yAxis2 : m_plot->yAxis);
        if (m_series[i].step)
            m_graphs[i]->setLineStyle(QCPGraph::lsStepLeft);
    }
    std::vector<QString> names;
    for (const ChartSeries &one : m_series)
        names.push_back(one.name);
    m_legend->setNames(names);
    applyTheme();
}

void Chart::setData(std::vector<double> x, std::vector<std::vector<double>> columns)
{
    Q_ASSERT(columns.size() == m_series.size());
    m_x = std::move(x);
    m_columns = std::move(columns);
    refill();
}

void Chart::setMarkers(std::vector<std::pair<double, QString>> markers)
{
    if (markers == m_markers)
        return; // a live page says so with each poll
    m_markers = std::move(markers);
    rescale();
    placeMarkers();
}

void Chart::setBrush(std::optional<std::pair<double, double>> range)
{
    m_brush = range;
    placeBrush(range);
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

void Chart::setCursor(std::optional<double> x)
{
    m_cursorItem->setVisible(x.has_value());
    if (x) {
        m_cursorItem->point1->setCoords(*x, 0);
        m_cursorItem->point2->setCoords(*x, 1);
    }
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

void Chart::setXRange(std::optional<std::pair<double, double>> range)
{
    m_fixedRange = range;
    rescale();
}

void Chart::userView(double lower, double upper)
{
    if (!(upper - lower > 0) || !std::isfinite(upper - lower))
        return;
    setXRange(std::pair{lower, upper});
    Q_EMIT xRangeChanged(lower, upper, false);
}

void Chart::resetZoom()
{
    setXRange(std::nullopt);
    const QCPRange view = m_plot->xAxis->range();
    Q_EMIT xRangeChanged(view.lower, view.upper, true);
}

bool Chart::shown(size_t series) const
{
    return m_legend->isShown(series);
}

void Chart::refill()
{
    const QVector<double> keys(m_x.begin(), m_x.end());
    std::vector<double> sums(m_x.size(), 0.0);
    for (size_t i = 0; i < m_series.size(); ++i) {
        m_graphs[i]->setVisible(shown(i));
        if (!shown(i))
            continue;
        QVector<double> values(m_columns[i].begin(), m_columns[i].end());
        if (m_series[i].stacked) {
            for (size_t k = 0; k < sums.size(); ++k) {
                if (!std::isnan(m_columns[i][k]))
                    sums[k] += m_columns[i][k];
                values[static_cast<qsizetype>(k)] = sums[k];
            }
        }
        m_graphs[i]->setData(keys, values, true);
    }
    rescale();
}

std::pair<double, double> Chart::dataRange() const
{
    if (m_x.empty())
        return {0, 1};
    double last = m_x.back();
    for (const auto &[x, label] : m_markers) // a run's end comes after its last step
        last = std::max(last, x);
    const double span = last - m_x.front();
    return span > 0 ? std::pair{m_x.front(), last} : std::pair{m_x.front() - 0.5, m_x.front() + 0.5};
}

std::pair<double, double> Chart::valueRange(bool secondAxis, double lower, double upper) const
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
    for (size_t k = 0; k < m_x.size(); ++k) {
        if (m_x[k] < lower || m_x[k] > upper)
            continue;
        double sum = 0;
        for (size_t i = 0; i < m_series.size(); ++i) {
            if (m_series[i].secondAxis != secondAxis || !shown(i))
                continue;
            const double value = m_columns[i][k];
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
    const auto [low, high] = valueRange(false, lower, upper);
    m_plot->yAxis->setRange(low, high);
    if (m_plot->yAxis2->visible()) {
        const auto [low2, high2] = valueRange(true, lower, upper);
        m_plot->yAxis2->setRange(low2, high2);
    }
    separateLayers();
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

/// A line between layers helps where hues are lost; where points are closer than a few pixels such lines would cover
/// them.
void Chart::separateLayers()
{
    const QCPRange view = m_plot->xAxis->range();
    const auto first = std::lower_bound(m_x.begin(), m_x.end(), view.lower);
    const auto last = std::upper_bound(first, m_x.end(), view.upper);
    const bool roomy = (last - first) * kSeparatedPointPx < m_plot->axisRect()->width();
    const QPen pen = roomy ? QPen(Colors::of(palette()).card, 1) : QPen(Qt::NoPen);
    for (size_t i = 0; i < m_series.size(); ++i) {
        if (m_series[i].stacked)
            m_graphs[i]->setPen(pen);
    }
}

void Chart::placeMarkers()
{
    for (QCPItemStraightLine *line : m_markerLines)
        m_plot->removeItem(line);
    for (QCPItemText *text : m_markerTexts)
        m_plot->removeItem(text);
    m_markerLines.clear();
    m_markerTexts.clear();
    const Colors &colors = Colors::of(palette());
    int row = 0; // neighbours take turns, so that their labels don't lie upon each other
    for (const auto &[x, label] : m_markers) {
        auto *line = new QCPItemStraightLine(m_plot);
        line->point1->setCoords(x, 0);
        line->point2->setCoords(x, 1);
        line->setPen(QPen(colors.muted, 1, Qt::DashLine));
        auto *text = new QCPItemText(m_plot);
        text->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
        text->position->setCoords(x, 0.1 * (row++ % 3));
        const bool rightHalf = x > m_plot->xAxis->range().center(); // else it would be cut at the edge
        text->setPositionAlignment((rightHalf ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignTop);
        text->setPadding(QMargins(3, 1, 3, 1));
        text->setText(label);
        text->setFont(font());
        text->setColor(colors.muted);
        m_markerLines.push_back(line);
        m_markerTexts.push_back(text);
    }
}

void Chart::placeBrush(std::optional<std::pair<double, double>> range)
{
    m_brushItem->setVisible(range.has_value());
    if (range) {
        m_brushItem->topLeft->setCoords(range->first, 0);
        m_brushItem->bottomRight->setCoords(range->second, 1);
    }
}

} // namespace shardscope::ui
