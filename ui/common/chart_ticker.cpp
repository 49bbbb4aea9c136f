// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/chart_ticker.h"

#include "ui/common/text.h"

#include <algorithm>
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

/// From a minute on, as clocks have it: 2:30, 1:02:00, with a fraction 2:30.25.
static QString clockText(double seconds, int decimals)
{
    const double scale = std::pow(10.0, decimals);
    const qint64 parts = std::llround(std::abs(seconds) * scale);
    const qint64 whole = parts / static_cast<qint64>(scale);
    const QChar zero(u'0');
    QString text = seconds < 0 ? QStringLiteral("-") : QString();
    if (whole < 3600)
        text += QStringLiteral("%1:%2").arg(whole / 60).arg(whole % 60, 2, 10, zero);
    else
        text +=
            QStringLiteral("%1:%2:%3").arg(whole / 3600).arg(whole / 60 % 60, 2, 10, zero).arg(whole % 60, 2, 10, zero);
    if (decimals > 0)
        text += QStringLiteral(".%1").arg(parts % static_cast<qint64>(scale), decimals, 10, zero);
    return text;
}

/// 12.5 s, 2:30, 1:02:00
static QString secondsText(double seconds)
{
    if (std::llround(std::abs(seconds)) < 60)
        return QStringLiteral("%1 s").arg(QString::number(seconds, 'g', 4));
    return clockText(seconds, 0);
}

/// Digits after the point that tell neighbours apart.
static int decimalsOf(double step)
{
    return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
}

static int exponentOf(double value)
{
    return static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9)); // sums of steps miss powers by a hair
}

/// The ticks' distance decides on the notation, so that neighbours share it.
static QString numberTickText(double tick, double step)
{
    if (tick == 0)
        return QStringLiteral("0");
    constexpr double kLong = 1e6; // from such steps on, and below the inverse, powers of ten are shorter
    if (step < kLong && step > 1 / kLong)
        return QString::number(tick, 'f', decimalsOf(step));
    return QString::number(tick, 'e', std::clamp(exponentOf(tick) - exponentOf(step), 0, 15));
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

QString tickText(ChartUnit unit, double tick, double step)
{
    if (std::abs(tick) < step * 1e-6)
        tick = 0; // sums of steps miss zero by a hair
    if (tick == 0 && unit != ChartUnit::Share)
        return QStringLiteral("0"); // of no unit, as its neighbours' differ
    switch (unit) {
    case ChartUnit::Seconds:
        if (std::abs(tick) < 60)
            return timeMarkText(std::llround(tick * kNsPerSecond), std::llround(step * kNsPerSecond));
        return clockText(tick, decimalsOf(step));
    case ChartUnit::Duration:
        if (step < kNsPerSecond)
            return timeMarkText(std::llround(tick), std::llround(step));
        break;
    case ChartUnit::Share:
        return QStringLiteral("%1 %").arg(numberTickText(tick * 100, step * 100));
    case ChartUnit::Number:
        return numberTickText(tick, step);
    case ChartUnit::Bytes:
    case ChartUnit::Count:
        break;
    }
    return axisText(unit, tick);
}

double ChartTicker::getTickStep(const QCPRange &range)
{
    m_step = roundTickStep(m_unit, range.size() / tickCount());
    return m_step;
}

QString ChartTicker::getTickLabel(double tick, const QLocale &, QChar, int)
{
    return tickText(m_unit, tick, m_step);
}

} // namespace shardscope::ui
