// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/time_range.h"

namespace shardscope::ui::timeline {

/// Which part of a recording is in view, and where a time stands on the screen. Knows nothing of widgets. Pixels are
/// logical and may be fractions; positions are computed from differences of integers, so no precision is lost.
class TimeAxis
{
public:
    /// Fewer nanoseconds than this are never shown: clocks are no finer.
    static constexpr int64_t kShortestNs = 100;

    const TimeRange &limits() const { return m_limits; }
    const TimeRange &visible() const { return m_visible; }
    double widthPx() const { return m_widthPx; }
    double nsPerPixel() const { return static_cast<double>(m_visible.durationNs()) / m_widthPx; }
    bool showsAll() const { return m_visible == m_limits; }

    /// The whole recording. What was in view stays in view as far as it still exists; a view of all stays one of all.
    void setLimits(TimeRange limits);
    void setWidth(double widthPx);
    /// Moved and cut to fit the limits, never shorter than kShortestNs (unless the limits are).
    void setVisible(TimeRange visible);
    void fit() { m_visible = m_limits; }

    double xOf(int64_t timeNs) const;
    int64_t timeAt(double xPx) const;

    /// factor < 1 shows less (zooms in). The time under xPx keeps its place, unless the limits are in the way.
    void zoomAt(double xPx, double factor);
    /// Positive: towards later times.
    void panPixels(double pixels);
    /// Moves the view so that its end is the limits' end: what following a live recording means.
    void followEnd();
    bool atEnd() const { return m_visible.endNs >= m_limits.endNs; }
    /// Moves (and where need be widens) the view as little as possible so that range is in it with some room around.
    void reveal(TimeRange range);

private:
    TimeRange m_limits{0, kShortestNs};
    TimeRange m_visible{0, kShortestNs};
    double m_widthPx = 1;
};

} // namespace shardscope::ui::timeline
