// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/chart.h"

#include "ui/common/chart_input.h"
#include "ui/common/chart_legend.h"
#include "ui/common/chart_markers.h"
#include "ui/common/chart_table.h"
#include "ui/common/chart_ticker.h"
#include "ui/common/colors.h"

#include "ui/common/custom_plot.h"
#include "ui/common/elided_label.h"
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

Chart::Chart(const QString &title, const QString &xTitle, ChartUnit xUnit, QWidget *parent)
    : QWidget(parent)
    , m_title(title)
    , m_xTitle(xTitle)
    , m_xUnit(xUnit)
    , m_heading(new ElidedLabel(title, this))
    , m_beside(new ElidedLabel(this))
    , m_legend(new ChartLegend(this))
    , m_plot(new QCustomPlot(this))
    , m_input(new ChartInput(m_plot))
    , m_readout(new QLabel(m_plot))
    , m_markers(std::make_unique<ChartMarkers>(m_plot))
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
    m_beside->setForegroundRole(QPalette::PlaceholderText);
    header->addWidget(m_heading);
    header->addWidget(m_beside, 1); // gives way first
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
    connect(m_plot, &QCustomPlot::afterLayout, this, &Chart::drawPoints);
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
    holdValues();
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
        if (m_series[i].lasting)
            m_graphs[i]->setLineStyle(QCPGraph::lsStepRight);
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
    holdValues();
    refill();
}

void Chart::setMarkers(std::vector<std::pair<double, QString>> markers)
{
    if (!m_markers->set(std::move(markers)))
        return;
    m_markers->setLooks(Colors::of(palette()), font());
    m_drawnFor.reset();
    rescale();
}

void Chart::setRemark(const QString &remark)
{
    m_remark = remark;
    showBeside();
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

void Chart::placeBrush(std::optional<std::pair<double, double>> range)
{
    m_brushItem->setVisible(range.has_value());
    if (range) {
        m_brushItem->topLeft->setCoords(range->first, 0);
        m_brushItem->bottomRight->setCoords(range->second, 1);
    }
}

} // namespace shardscope::ui
