// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/monitor/live_series.h"

#include <QWidget>
#include <map>

namespace shardscope::ui {

class Chart;
class FlowLayout;
class Selection;

/// The charts of the Live page: they share the axis of running time, the cursor and the brush, which is the
/// selection's range.
class LiveCharts : public QWidget
{
    Q_OBJECT
public:
    explicit LiveCharts(Selection &selection, QWidget *parent = nullptr);

    /// Draws what is in the series now; rank: one, or all (the slowest rank's step times, a memory chart each).
    void refresh(const LiveSeries &series, std::optional<int> rank);
    /// All charts, in seconds of running time.
    void showRange(double lower, double upper) { follow(nullptr, lower, upper, false); }
    /// After refresh(): of the same run.
    void setEvents(const std::vector<store::EventInfo> &events);

Q_SIGNALS:
    /// Clicked at seconds of running time.
    void picked(double seconds);
    /// Another part is in view: refresh() has more or fewer points of it.
    void viewChanged();

private:
    struct MemoryChart
    {
        Chart *chart = nullptr;
        bool hasProcessUsed = false; ///< as a line: measured, and not far above the rest
    };

    Chart *addChart(const QString &title);
    void follow(Chart *leader, double lower, double upper, bool fit);
    void brush();
    void refreshStepTime(ChartData data);
    void refreshMemory(const LiveSeries &series, std::optional<int> rank);
    void refreshMemoryOf(int rank, const LiveSeries &series, bool seriesChanged);
    void setMemorySeries(const MemoryChart &memory);
    std::vector<std::vector<double>> memoryColumns(const ChartData &data, bool hasProcessUsed) const;

    Selection &m_selection;
    FlowLayout *m_layout;
    std::optional<std::pair<double, double>> m_view; ///< before the charts: they are made with it
    RunningTime m_time;                              ///< what x counts
    std::vector<Chart *> m_charts;                   ///< all of them
    Chart *m_loss;
    Chart *m_norm;
    Chart *m_stepTime;
    std::map<int, MemoryChart> m_memory; ///< by rank
    std::array<bool, kMemoryCategories + 1> m_used{};
    bool m_hasReserve = false;
    std::array<bool, kStepParts> m_usedParts{};
};

} // namespace shardscope::ui
