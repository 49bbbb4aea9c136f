// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>
#include <QString>
#include <utility>
#include <vector>

class QCPItemStraightLine;
class QCPItemText;
class QCustomPlot;

namespace shardscope::ui {

struct Colors;

/// The vertical lines of a chart's events, each with its name where there is room. Names stand in rows below each other
/// and never touch, those of many alike in the first row only; those without room are left to the hover readout.
class ChartMarkers
{
public:
    using Markers = std::vector<std::pair<double, QString>>;

    explicit ChartMarkers(QCustomPlot *plot);

    const Markers &markers() const { return m_markers; }
    /// In any order. False: they are what they were (a live page says so with each poll).
    bool set(Markers markers);
    void setLooks(const Colors &colors, const QFont &font);
    /// Finds a place for each name. After the plot's layout: again when the view or the size changed.
    void place();
    /// Names of those within a few pixels of x.
    std::vector<QString> near(double x) const;
    /// Where the names that have room stand, in pixels; also for tests.
    std::vector<QRectF> nameRects() const;

private:
    struct Item
    {
        QCPItemStraightLine *line;
        QCPItemText *text;
        QRectF rect; ///< of the name; null: no room
    };

    void makeItems();
    QRectF freeRect(double x, double width, double height, bool repeated) const;

    QCustomPlot *m_plot;
    Markers m_markers; ///< ascending
    std::vector<Item> m_items;
};

} // namespace shardscope::ui
