// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QString>
#include <QWidget>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

class QCPGraph;
class QCPItemStraightLine;
class QCPItemRect;
class QCustomPlot;
class QLabel;
class QMenu;

namespace shardscope::ui {

class ChartInput;
class ChartLegend;
class ChartMarkers;
class ElidedLabel;
struct Colors;

/// How a chart's axis counts and how its values read in tick labels, hover readout and table.
enum class ChartUnit { Number, Seconds, Bytes, Duration, Share, Count };

/// A line or a layer of a stack. x is shared by all series of a chart.
struct ChartSeries
{
    QString name;
    /// Asked again when the theme changes.
    std::function<QColor(const Colors &)> color;
    bool stacked = false;    ///< filled, on top of the stacked series before it
    bool secondAxis = false; ///< against the right axis
    bool dashed = false;
    bool points = false;  ///< dots: values that are far between
    bool step = false;    ///< the value holds until the next point (memory does)
    bool lasting = false; ///< the value is of the time since the point before (a step's is)
    bool outline = false; ///< is the height of the stack: no line of its own where points are close together
};

/// A line this many times above what else a chart shows would press it flat: it is told in words, not drawn.
inline constexpr double kFarAbove = 4;

/// A chart over QCustomPlot with what every chart here has: axis titles with units, a legend that hides series, a
/// hover readout, zoom and pan in x with a reset, a brush, copy as image or CSV, and the same numbers as a table
/// (charts have no accessibility of their own). Follows the palette. Where a stack has more points than pixels, the
/// highest point of each few stands for them, whole (chart_columns.h); readout, table and copies have all. Where a few
/// of many points of a stack of what lasts are kFarAbove times the median (a first step), the scale is that of the
/// others, and the heading says what goes beyond it.
class Chart : public QWidget
{
    Q_OBJECT
public:
    Chart(const QString &title, const QString &xTitle, ChartUnit xUnit, QWidget *parent = nullptr);
    ~Chart() override;

    void setYAxis(const QString &title, ChartUnit unit);
    void setSecondYAxis(const QString &title, ChartUnit unit);
    void setSeries(std::vector<ChartSeries> series);
    /// One x for all; each column has as many values as x, NaN where not measured. A stack ends and begins anew where
    /// all of it is NaN. Columns go with setSeries().
    void setData(std::vector<double> x, std::vector<std::vector<double>> columns);
    /// A text for each point, shown first in the hover readout: "Step 214". Empty: none.
    void setPointLabels(std::vector<QString> labels) { m_labels = std::move(labels); }
    /// Vertical lines with a label (events).
    void setMarkers(std::vector<std::pair<double, QString>> markers);
    /// The brushed range drawn in the chart; nullopt: none.
    void setBrush(std::optional<std::pair<double, double>> range);
    /// A vertical cursor at x; nullopt: none.
    void setCursor(std::optional<double> x);
    /// Fixed view in x; nullopt: fit the data.
    void setXRange(std::optional<std::pair<double, double>> range);
    /// Said beside the title, shortened where there is no room; empty: nothing.
    void setRemark(const QString &remark);
    /// The query that the chart's numbers come from; shown by "Show the query".
    void setSql(const QString &sql) { m_sql = sql; }

    QString title() const { return m_title; }
    QString csv() const;
    QImage image() const;
    QCustomPlot *plot() const { return m_plot; }
    /// The hover readout's text at x, also for tests.
    QString readout(double x) const;
    const ChartMarkers &markers() const { return *m_markers; }
    QSize sizeHint() const override { return {480, 260}; }

public Q_SLOTS:
    void resetZoom();
    void copyImage();
    void copyCsv();
    void showTable();

Q_SIGNALS:
    /// The view in x was changed by the user; charts that share an axis follow. fit: the zoom was reset.
    void xRangeChanged(double lower, double upper, bool fit);
    /// A range was dragged over. Show it with setBrush().
    void brushed(double lower, double upper);
    void hovered(double x);
    void hoverLeft();
    /// Clicked at x.
    void picked(double x);

protected:
    void changeEvent(QEvent *event) override;

private:
    /// What the scale is not made for: the points of a view that are higher than `value`.
    struct ScaleLimit
    {
        double value = 0;   ///< means nothing where none is beyond
        size_t beyond = 0;  ///< points
        size_t highest = 0; ///< index of the highest of them
    };

    void buildLayout();
    void buildPlot();
    void connectInput();
    void applyTheme();
    void refill();
    void rescale();
    std::pair<double, double> dataRange() const;
    std::pair<size_t, size_t> pointsIn(double lower, double upper) const;
    std::pair<double, double> valueRange(bool secondAxis, double lower, double upper,
                                         const std::function<bool(size_t)> &isBeyond) const;
    ScaleLimit scaleLimit(const std::vector<double> &stack, double lower, double upper) const;
    QString beyondText(const ScaleLimit &limit, const std::vector<double> &stack) const;
    void holdValues();
    const std::vector<double> &drawnColumn(size_t series) const;
    void drawPoints();
    void drawLines(bool roomy);
    void showBeside();
    void placeBrush(std::optional<std::pair<double, double>> range);
    void hover(double x, const QPointF &position);
    void userView(double lower, double upper);
    void buildMenu(QMenu *menu);
    void showSql();
    bool shown(size_t series) const;
    bool any(bool ChartSeries::*kind) const;
    std::optional<size_t> indexAt(double x) const;
    ChartUnit unitOf(size_t series) const { return m_series[series].secondAxis ? m_y2Unit : m_yUnit; }

    QString m_title;
    QString m_xTitle;
    ChartUnit m_xUnit;
    QString m_yTitle, m_y2Title;
    ChartUnit m_yUnit = ChartUnit::Number;
    ChartUnit m_y2Unit = ChartUnit::Number;
    QString m_sql;

    ElidedLabel *m_heading;
    QString m_remark;
    QString m_beyond;      ///< what goes beyond the scale
    ElidedLabel *m_beside; ///< the two, and that points are drawn for several where they are
    ChartLegend *m_legend;
    QCustomPlot *m_plot;
    ChartInput *m_input;
    QLabel *m_readout; ///< floats over the plot

    std::vector<ChartSeries> m_series;
    std::vector<QCPGraph *> m_graphs;
    std::vector<double> m_x;
    std::vector<std::vector<double>> m_columns;
    std::vector<std::vector<double>> m_held; ///< m_columns as drawn, of series whose values hold; empty of the others
    std::vector<QString> m_labels;
    std::unique_ptr<ChartMarkers> m_markers;
    /// View and width that the graphs have their points for; empty: none, or the data has changed.
    std::optional<std::tuple<double, double, int>> m_drawnFor;
    bool m_thinned = false; ///< points are drawn for several
    QCPItemRect *m_brushItem;
    QCPItemStraightLine *m_cursorItem;
    std::optional<std::pair<double, double>> m_fixedRange; ///< what setXRange() or the user said
    std::optional<std::pair<double, double>> m_brush;
};

} // namespace shardscope::ui
