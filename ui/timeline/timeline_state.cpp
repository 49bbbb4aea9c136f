// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_state.h"

#include "ui/timeline/collective_links.h"

#include <cmath>

namespace shardscope::ui::timeline {

void TimelineState::setSnapshot(std::shared_ptr<const Snapshot> snapshot)
{
    const auto moved = [&](const std::optional<SpanRef> &span) {
        return span && m_snapshot ? snapshot->find(*m_snapshot, *span) : std::nullopt;
    };
    m_picked = moved(m_picked);
    m_hovered = moved(m_hovered);
    m_links.clear();
    const bool first = !m_snapshot;
    m_snapshot = std::move(snapshot);
    m_axis.setLimits(m_snapshot->extent);
    if (first)
        m_axis.setVisible(m_snapshot->newest.isEmpty() ? m_snapshot->extent : m_snapshot->newest);
    else if (m_follows)
        m_axis.followEnd();
    m_layout.update(*m_snapshot);
    updateLinks();
    Q_EMIT contentChanged();
    Q_EMIT viewChanged();
}

void TimelineState::clear()
{
    m_snapshot.reset();
    m_layout.clear();
    m_hovered.reset();
    m_picked.reset();
    m_links.clear();
    m_brush.reset();
    m_marks.clear();
    m_cursorNs.reset();
    m_found.reset();
    Q_EMIT contentChanged();
}

void TimelineState::setWidth(double widthPx)
{
    m_axis.setWidth(widthPx);
    Q_EMIT viewChanged();
}

void TimelineState::afterView(bool byUser)
{
    if (byUser && m_follows && !m_axis.atEnd())
        setFollows(false);
    Q_EMIT viewChanged();
}

void TimelineState::setVisible(TimeRange visible)
{
    m_axis.setVisible(visible);
    afterView(true);
}

void TimelineState::zoomAt(double xPx, double factor)
{
    m_axis.zoomAt(xPx, factor);
    if (m_follows)
        m_axis.followEnd();
    afterView(false);
}

void TimelineState::panPixels(double pixels)
{
    m_axis.panPixels(pixels);
    afterView(true);
}

void TimelineState::fit()
{
    m_axis.fit();
    afterView(false);
}

void TimelineState::reveal(TimeRange range)
{
    m_axis.reveal(range);
    afterView(true);
}

void TimelineState::setFollows(bool follows)
{
    if (m_follows == follows)
        return;
    m_follows = follows;
    if (follows) {
        m_axis.followEnd();
        Q_EMIT viewChanged();
    }
    Q_EMIT followsChanged(follows);
}

void TimelineState::toggleFold(const Row &row)
{
    const RankTimeline &rank = m_snapshot->ranks[row.rank];
    if (row.kind == Row::Kind::Rank)
        m_layout.setRankFolded(rank.process, !row.folded);
    else
        m_layout.setLaneFolded(rank.process, rank.lanes[row.lane]->info.laneId, !row.folded);
    m_layout.update(*m_snapshot);
    Q_EMIT contentChanged();
}

void TimelineState::foldAll(bool folded)
{
    if (!m_snapshot)
        return;
    m_layout.foldAll(*m_snapshot, folded);
    m_layout.update(*m_snapshot);
    Q_EMIT contentChanged();
}

void TimelineState::setShown(SpanCategory category, bool shown)
{
    m_shown[static_cast<size_t>(category)] = shown;
    Q_EMIT contentChanged();
}

void TimelineState::setHovered(std::optional<SpanRef> span)
{
    if (m_hovered == span)
        return;
    m_hovered = span;
    updateLinks();
    Q_EMIT decorationChanged();
}

void TimelineState::pick(std::optional<SpanRef> span)
{
    m_picked = span;
    updateLinks();
    Q_EMIT decorationChanged();
    Q_EMIT spanPicked();
}

void TimelineState::updateLinks()
{
    m_links.clear();
    if (!m_snapshot)
        return;
    for (const auto &span : {m_hovered, m_picked}) {
        if (!span)
            continue;
        const auto *call = m_snapshot->callOf(span->rank, m_snapshot->record(*span).collective);
        if (!call)
            continue;
        m_links = linkedSpans(*m_snapshot, *call);
        return;
    }
}

void TimelineState::setBrush(std::optional<TimeRange> brush)
{
    if (brush && brush->isEmpty())
        brush.reset();
    if (m_brush == brush)
        return;
    m_brush = brush;
    Q_EMIT decorationChanged();
    Q_EMIT brushChanged();
}

void TimelineState::toggleMark(int64_t timeNs)
{
    const auto near = [&](int64_t mark) { return std::abs(m_axis.xOf(mark) - m_axis.xOf(timeNs)) <= 3; };
    const auto taken = std::find_if(m_marks.begin(), m_marks.end(), near);
    if (taken != m_marks.end())
        m_marks.erase(taken);
    else
        m_marks.insert(std::upper_bound(m_marks.begin(), m_marks.end(), timeNs), timeNs);
    Q_EMIT decorationChanged();
}

void TimelineState::clearMarks()
{
    m_marks.clear();
    Q_EMIT decorationChanged();
}

void TimelineState::setCursor(std::optional<int64_t> timeNs)
{
    if (m_cursorNs == timeNs)
        return;
    m_cursorNs = timeNs;
    Q_EMIT cursorChanged();
}

void TimelineState::setFound(std::shared_ptr<const SearchResult> found)
{
    m_found = std::move(found);
    Q_EMIT decorationChanged();
}

} // namespace shardscope::ui::timeline
