// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/time_axis.h"

#include <cmath>

namespace shardscope::ui::timeline {

namespace {

int64_t rounded(double value)
{
    return static_cast<int64_t>(std::llround(value));
}

} // namespace

void TimeAxis::setLimits(TimeRange limits)
{
    if (limits.durationNs() < kShortestNs)
        limits.endNs = limits.startNs + kShortestNs;
    const bool showedAll = showsAll();
    m_limits = limits;
    if (showedAll)
        fit();
    else
        setVisible(m_visible);
}

void TimeAxis::setWidth(double widthPx)
{
    m_widthPx = std::max(1.0, widthPx);
}

void TimeAxis::setVisible(TimeRange visible)
{
    const int64_t shortest = std::min(kShortestNs, m_limits.durationNs());
    const int64_t length = std::clamp(visible.durationNs(), shortest, m_limits.durationNs());
    const int64_t begin = std::clamp(visible.startNs, m_limits.startNs, m_limits.endNs - length);
    m_visible = {begin, begin + length};
}

double TimeAxis::xOf(int64_t timeNs) const
{
    return static_cast<double>(timeNs - m_visible.startNs) / nsPerPixel();
}

int64_t TimeAxis::timeAt(double xPx) const
{
    return m_visible.startNs + rounded(xPx * nsPerPixel());
}

void TimeAxis::zoomAt(double xPx, double factor)
{
    const double length = static_cast<double>(m_visible.durationNs());
    const int64_t shortest = std::min(kShortestNs, m_limits.durationNs());
    const int64_t newLength = std::clamp(rounded(length * factor), shortest, m_limits.durationNs());
    const double share = xPx / m_widthPx;
    const int64_t anchor = timeAt(xPx);
    const int64_t begin = anchor - rounded(share * static_cast<double>(newLength));
    setVisible({begin, begin + newLength});
}

void TimeAxis::panPixels(double pixels)
{
    const int64_t shift = rounded(pixels * nsPerPixel());
    setVisible({m_visible.startNs + shift, m_visible.endNs + shift});
}

void TimeAxis::followEnd()
{
    const int64_t length = m_visible.durationNs();
    setVisible({m_limits.endNs - length, m_limits.endNs});
}

void TimeAxis::reveal(TimeRange range)
{
    const int64_t room = m_visible.durationNs() / 10;
    if (range.startNs >= m_visible.startNs && range.endNs <= m_visible.endNs)
        return;
    if (range.durationNs() > m_visible.durationNs() - 2 * room) {
        const int64_t margin = std::max<int64_t>(range.durationNs() / 4, 1);
        setVisible({range.startNs - margin, range.endNs + margin});
        return;
    }
    const int64_t length = m_visible.durationNs();
    const int64_t begin = range.startNs < m_visible.startNs ? range.startNs - room : range.endNs + room - length;
    setVisible({begin, begin + length});
}

} // namespace shardscope::ui::timeline
