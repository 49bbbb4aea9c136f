// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/chart.h"

#include "ui/common/custom_plot.h"

namespace shardscope::ui {

/// A value of an axis as people read it: "1.50 GiB", "12.4 ms", "2:30".
QString axisText(ChartUnit unit, double value);

/// The same beside a tick, with as many digits as the ticks' distance needs and its neighbours have: "6.0" between
/// "5.9" and "6.1".
QString tickText(ChartUnit unit, double tick, double step);

/// A round distance between ticks that is near to the wanted one: 1-2-5 for numbers, powers of two for bytes, and what
/// clocks show for seconds and durations.
double roundTickStep(ChartUnit unit, double wanted);

/// Ticks that are round in the unit of the axis and are written by the one formatter.
class ChartTicker : public QCPAxisTicker
{
public:
    explicit ChartTicker(ChartUnit unit)
        : m_unit(unit)
    {
        setTickCount(5);
    }

protected:
    double getTickStep(const QCPRange &range) override;
    int getSubTickCount(double) override { return 0; }
    QString getTickLabel(double tick, const QLocale &, QChar, int) override;

private:
    ChartUnit m_unit;
    double m_step = 1;
};

} // namespace shardscope::ui
