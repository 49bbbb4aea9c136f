// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/chart_ticker.h"

#include "ui/common/text.h"

#include <cmath>

namespace shardscope::ui {

static constexpr double kNsPerSecond = 1e9;

static double roundDecimal(double wanted)
{
    const double power = std::pow(10.0, std::floor(std::log10(wanted)));
    const double mantissa = wanted / power;
    return power * (mantissa < 1.5 ? 1 : mantissa < 3.5 ? 2 : mantissa < 7.5 ? 5 : 10);
}

static double roundSeconds(double wanted)
{
    if (wanted <= 1)
        return roundDecimal(wanted);
    static constexpr double steps[] = {1,   2,   5,    10,   15,   30,    60,    120,  300,
                                       600, 900, 1800, 3600, 7200, 21600, 43200, 86400};
    for (const double step : steps) {
        if (wanted <= step * 1.3)
            return step;
    }
    return 86400 * std::ceil(wanted / 86400);
}

double roundTickStep(ChartUnit unit, double wanted)
{
    if (!(wanted > 0) || !std::isfinite(wanted))
        return 1;
    switch (unit) {
    case ChartUnit::Bytes:
        return std::exp2(std::round(std::log2(std::max(1.0, wanted))));
    case ChartUnit::Seconds:
        return roundSeconds(wanted);
    case ChartUnit::Duration:
        return wanted < kNsPerSecond ? roundDecimal(wanted) : kNsPerSecond * roundSeconds(wanted / kNsPerSecond);
    case ChartUnit::Number:
    case ChartUnit::Share:
    case ChartUnit::Count:
        break;
    }
    return roundDecimal(wanted);
}

/// 12.5 s, 2:30, 1:02:00
static QString secondsText(double seconds)
{
    const qint64 whole = std::llround(std::abs(seconds));
    if (whole < 60)
        return QStringLiteral("%1 s").arg(QString::number(seconds, 'g', 4));
    const QString sign = seconds < 0 ? QStringLiteral("-") : QString();
    const QChar zero(u'0');
    if (whole < 3600)
        return sign + QStringLiteral("%1:%2").arg(whole / 60).arg(whole % 60, 2, 10, zero);
    return sign +
           QStringLiteral("%1:%2:%3").arg(whole / 3600).arg(whole / 60 % 60, 2, 10, zero).arg(whole % 60, 2, 10, zero);
}

QString axisText(ChartUnit unit, double value)
{
    if (!std::isfinite(value))
        return std::isnan(value) ? QStringLiteral("—") : QStringLiteral("∞");
    switch (unit) {
    case ChartUnit::Seconds:
        return secondsText(value);
    case ChartUnit::Bytes:
        return bytesText(static_cast<int64_t>(std::llround(value)));
    case ChartUnit::Duration:
        return durationText(static_cast<int64_t>(std::llround(value)));
    case ChartUnit::Share:
        return shareText(value);
    case ChartUnit::Count:
        return countText(value);
    case ChartUnit::Number:
        break;
    }
    return QString::number(value, 'g', 5);
}

double ChartTicker::getTickStep(const QCPRange &range)
{
    m_step = roundTickStep(m_unit, range.size() / tickCount());
    return m_step;
}

QString ChartTicker::getTickLabel(double tick, const QLocale &, QChar, int)
{
    if (std::abs(tick) < m_step * 1e-6)
        tick = 0; // sums of steps miss zero by a hair
    return m_unit == ChartUnit::Share ? QStringLiteral("%1 %").arg(QString::number(tick * 100, 'g', 4))
                                      : axisText(m_unit, tick);
}

} // namespace shardscope::ui
