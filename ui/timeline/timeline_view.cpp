// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_view.h"

#include "ui/timeline/timeline_actions.h"

#include <QStyle>
#include <QVBoxLayout>

namespace shardscope::ui::timeline {

namespace {

constexpr double kZoomStep = 0.7;

/// Strip and ruler end where the lanes end: left of their scroll bar.
QHBoxLayout *besideScrollBar(QWidget *widget)
{
    auto *layout = new QHBoxLayout;
    layout->setContentsMargins(0, 0, widget->style()->pixelMetric(QStyle::PM_ScrollBarExtent), 0);
    layout->addWidget(widget);
    return layout;
}

} // namespace

TimelineView::TimelineView(TimelineState &state, QWidget *parent)
    : QWidget(parent)
    , m_state(state)
    , m_strip(new DensityStrip(state, this))
    , m_ruler(new TimelineRuler(state, this))
    , m_lanes(new LaneCanvas(state, this))
{
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(besideScrollBar(m_strip));
    layout->addLayout(besideScrollBar(m_ruler));
    layout->addWidget(m_lanes, 1);
    setFocusProxy(m_lanes);
}

void TimelineView::connectActions(TimelineActions &actions)
{
    connect(actions.zoomIn, &QAction::triggered, this, [this] { zoom(kZoomStep); });
    connect(actions.zoomOut, &QAction::triggered, this, [this] { zoom(1 / kZoomStep); });
    connect(actions.earlier, &QAction::triggered, this, [this] { m_state.panPixels(-m_lanes->lanesWidth() / 8.0); });
    connect(actions.later, &QAction::triggered, this, [this] { m_state.panPixels(m_lanes->lanesWidth() / 8.0); });
    connect(actions.rowsUp, &QAction::triggered, this, [this] { m_lanes->scrollRows(-2); });
    connect(actions.rowsDown, &QAction::triggered, this, [this] { m_lanes->scrollRows(2); });
    connect(actions.fit, &QAction::triggered, &m_state, &TimelineState::fit);
    connect(actions.fitSelection, &QAction::triggered, this, &TimelineView::fitSelection);
    connect(actions.follow, &QAction::toggled, &m_state, &TimelineState::setFollows);
    connect(&m_state, &TimelineState::followsChanged, actions.follow, &QAction::setChecked);
    connect(actions.mark, &QAction::triggered, this, &TimelineView::markTime);
    connect(actions.clearMarks, &QAction::triggered, &m_state, &TimelineState::clearMarks);
    connect(actions.foldAll, &QAction::triggered, this, [this] { m_state.foldAll(true); });
    connect(actions.unfoldAll, &QAction::triggered, this, [this] { m_state.foldAll(false); });
    connect(actions.nextSame, &QAction::triggered, this, [this] { goToNeighbour(true); });
    connect(actions.previousSame, &QAction::triggered, this, [this] { goToNeighbour(false); });
}

void TimelineView::zoom(double factor)
{
    const auto &cursor = m_state.cursorNs();
    m_state.zoomAt(cursor ? m_state.axis().xOf(*cursor) : m_state.axis().widthPx() / 2, factor);
}

void TimelineView::markTime()
{
    if (!m_state.snapshot())
        return;
    const auto &cursor = m_state.cursorNs();
    if (cursor)
        m_state.toggleMark(*cursor);
    else if (m_state.picked())
        m_state.toggleMark(m_state.snapshot()->record(*m_state.picked()).startNs);
    else
        m_state.toggleMark(m_state.axis().timeAt(m_state.axis().widthPx() / 2));
}

void TimelineView::fitSelection()
{
    if (m_state.brush()) {
        m_state.setVisible(*m_state.brush());
    } else if (m_state.picked()) {
        const SpanRecord record = m_state.snapshot()->record(*m_state.picked());
        const int64_t room = record.durationNs / 20;
        m_state.setVisible({record.startNs - room, record.endNs() + room});
    }
}

void TimelineView::goToNeighbour(bool forward)
{
    if (!m_state.snapshot() || !m_state.picked())
        return;
    if (const auto span = neighbour(*m_state.snapshot(), *m_state.picked(), forward))
        goTo(*span);
}

void TimelineView::goTo(const SpanRef &span)
{
    const SpanRecord record = m_state.snapshot()->record(span);
    m_state.reveal({record.startNs, record.endNs()});
    m_lanes->reveal(span);
    m_state.pick(span);
}

} // namespace shardscope::ui::timeline
