// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/density_strip.h"
#include "ui/timeline/lane_canvas.h"
#include "ui/timeline/timeline_ruler.h"

#include <QWidget>

namespace shardscope::ui::timeline {

class TimelineActions;

/// Strip, ruler and lanes, one above the other over one axis; what the timeline's keys work in.
class TimelineView : public QWidget
{
    Q_OBJECT
public:
    explicit TimelineView(TimelineState &state, QWidget *parent = nullptr);

    void connectActions(TimelineActions &actions);
    LaneCanvas &lanes() { return *m_lanes; }
    TimelineRuler &ruler() { return *m_ruler; }
    /// Picks a span and brings it into view.
    void goTo(const SpanRef &span);

private:
    void zoom(double factor);
    void markTime();
    void fitSelection();
    void goToNeighbour(bool forward);

    TimelineState &m_state;
    DensityStrip *m_strip;
    TimelineRuler *m_ruler;
    LaneCanvas *m_lanes;
};

} // namespace shardscope::ui::timeline
