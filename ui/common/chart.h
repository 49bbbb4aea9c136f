// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QString>
#include <QWidget>
#include <functional>
#include <optional>
#include <vector>

class QAbstractItemModel;
class QCPAbstractItem;
class QCPAxis;
class QCPGraph;
class QCPItemStraightLine;
class QCPItemText;
class QCustomPlot;
class QMenu;

namespace shardscope::ui {

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
    bool step = false; ///< the value holds until the next point (memory does)
};

/// A chart over QCustomPlot with what every chart here has: axis titles with units, a legend that hides series, a
/// hover readout, zoom and pan in x with a reset, a brush, copy as image or CSV, and the same numbers as a table
/// (charts have no accessibility of their own). Follows the palette.
class Chart : public QWidget
{
    Q_OBJECT
public:
    Chart(const QString &title, const QString &xTitle, ChartUnit xUnit, QWidget *parent = nullptr);
    ~Chart() override;

    void setYAxis(const QString &title, ChartUnit unit);
    void setSecondYAxis(const QString &title, ChartUnit unit);
    void setSeries(std::vector<ChartSeries> series);
    /// One x for all; each column has as many values as x, NaN where not measured. Columns go with setSeries().
    void setData(std::vector<double> x, std::vector<std::vector<double>> columns);
    /// Vertical lines with a label (events).
    void setMarkers(std::vector<std::pair<double, QString>> markers);
    /// The brushed range drawn in the chart; nullopt: none.
    void setBrush(std::optional<std::pair<double, double>> range);
    /// A vertical cursor at x; nullopt: none.
    void setCursor(std::optional<double> x);
    /// Fixed view in x; nullopt: fit the data.
    void setXRange(std::optional<std::pair<double, double>> range);
    /// The query that the chart's numbers come from; shown by "Show the query".
    void setSql(const QString &sql) { m_sql = sql; }

    QString title() const { return m_title; }
    QString csv() const;
    QImage image() const;
    QCustomPlot *plot() const { return m_plot; }
    /// The hover readout's text at x, also for tests.
    QString readout(double x) const;
    void addContextActions(QMenu *menu);

public Q_SLOTS:
    void resetZoom();
    void copyImage();
    void copyCsv();
    void showTable();

Q_SIGNALS:
    /// The view in x was changed by the user; charts that share an axis follow. fit: the zoom was reset.
    void xRangeChanged(double lower, double upper, bool fit);
    /// Dragged with Shift (or the brush mode) over a range; equal ends: cleared.
    void brushed(double lower, double upper);
    void hovered(double x);
    void hoverLeft();
    /// Clicked at x.
    void picked(double x);

protected:
    void changeEvent(QEvent *event) override;
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void buildPlot();
    void applyTheme();
    void refill();
    void rescale();
    void updateHover(double x);
    void toggleSeries(int index);
    void showMenu(const QPoint &position);
    bool isStackedOver(size_t series) const;
    QString valueText(size_t series, double value) const;
    QString unitText(ChartUnit unit, double value) const;

    QString m_title;
    QString m_xTitle;
    ChartUnit m_xUnit;
    QString m_yTitle, m_y2Title;
    ChartUnit m_yUnit = ChartUnit::Number;
    ChartUnit m_y2Unit = ChartUnit::Number;
    QString m_sql;
    QCustomPlot *m_plot;
    std::vector<ChartSeries> m_series;
    std::vector<bool> m_hidden;
    std::vector<QCPGraph *> m_graphs;
    std::vector<double> m_x;
    std::vector<std::vector<double>> m_columns;
    std::vector<std::pair<double, QString>> m_markers;
    std::optional<std::pair<double, double>> m_fixedRange;
    std::optional<std::pair<double, double>> m_brush;
    std::optional<double> m_cursor;
    std::optional<double> m_pressX; ///< where a brush began
    bool m_zoomed = false;
};

} // namespace shardscope::ui
