// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_painter.h"

#include "ui/timeline/collective_links.h"
#include "ui/timeline/ticks.h"

#include <cmath>

namespace shardscope::ui::timeline {

namespace {

QImage emptyImage(const LanePainter::View &view, const QColor &color)
{
    const QSize size(std::max(1, static_cast<int>(std::lround(view.size.width() * view.scale))),
                     std::max(1, static_cast<int>(std::lround(view.size.height() * view.scale))));
    QImage image(size, QImage::Format_RGB32);
    image.setDevicePixelRatio(view.scale);
    image.fill(color);
    return image;
}

} // namespace

LanePainter::LanePainter(const TimelineState &state, const Colors &colors, const View &view)
    : m_state(state)
    , m_snapshot(*state.snapshot())
    , m_colors(colors)
    , m_view(view)
    , m_range(state.axis().visible())
    , m_image(emptyImage(view, colors.card))
    , m_raster(m_image)
    , m_nsPerColumn(static_cast<double>(m_range.durationNs()) / m_image.width())
    , m_exclusive(m_snapshot.ranks.size())
{
}

QColor LanePainter::colorOf(const Colors &colors, SpanCategory category, std::optional<Phase> phase, LaneKind lane)
{
    if (lane == LaneKind::Phase && category == SpanCategory::Compute && phase)
        return colors.phase(*phase);
    return colors.category(category);
}

QImage LanePainter::paint()
{
    paintGrid();
    for (const Row &row : m_state.layout().rows()) {
        if (row.y + row.height > m_view.scrollY && row.y < m_view.scrollY + m_view.size.height())
            paintRow(row);
    }
    return m_image;
}

std::vector<LabelPlace> LanePainter::takeLabels()
{
    if (m_labels.size() > kMostLabels) {
        std::nth_element(m_labels.begin(), m_labels.begin() + kMostLabels, m_labels.end(),
                         [](const LabelPlace &a, const LabelPlace &b) { return a.width > b.width; });
        m_labels.resize(kMostLabels);
    }
    return std::move(m_labels);
}

double LanePainter::deviceX(int64_t timeNs) const
{
    return static_cast<double>(timeNs - m_range.startNs) / m_nsPerColumn;
}

void LanePainter::paintGrid()
{
    const Ticks ticks = ticksFor(m_range, m_view.size.width(), 90);
    for (const int64_t timeNs : ticks.timesNs) {
        const int x = static_cast<int>(deviceX(timeNs));
        m_raster.fill(x, x + 1, 0, m_raster.height(), m_colors.grid.rgb());
    }
}

void LanePainter::paintRow(const Row &row)
{
    const RankTimeline &rank = m_snapshot.ranks[row.rank];
    const auto deviceY = [&](double y) { return static_cast<int>(std::lround((y - m_view.scrollY) * m_view.scale)); };
    if (row.kind == Row::Kind::Rank) {
        m_raster.fill(0, m_raster.width(), deviceY(row.y), deviceY(row.y + row.height), m_colors.page.rgb());
        if (row.folded) {
            paintTrack({rank.activity->exclusive, rank, row.rank, LaneKind::Stream, deviceY(row.y + 3),
                        deviceY(row.y + row.height - 3), false, false});
        }
        return;
    }
    const Lane &lane = *rank.lanes[row.lane];
    const bool roomy = row.trackHeight >= 12;
    for (size_t t = 0; t < lane.tracks().size(); ++t) {
        const double top = row.y + static_cast<double>(t) * row.trackHeight;
        const double height = roomy ? row.trackHeight - 4 : row.trackHeight;
        paintTrack({lane.tracks()[t], rank, row.rank, lane.info.kind, deviceY(top), deviceY(top + height),
                    roomy && lane.info.kind != LaneKind::Phase, roomy});
    }
}

void LanePainter::paintTrack(const Track &track)
{
    const std::vector<Column> columns = coverageOf(track.spans, m_range, m_raster.width());
    paintCoverage(track, columns);
    paintRectangles(track, columns);
    if (track.underlines)
        paintExposed(track, columns);
}

void LanePainter::paintCoverage(const Track &track, const std::vector<Column> &columns)
{
    const double height = track.bottom - track.top;
    const double pixelsPerNs = height / m_nsPerColumn;
    const int least = std::max(1, static_cast<int>(m_view.scale * 2));
    std::array<QRgb, kCategories> colors{};
    for (size_t i = 0; i < kCategories; ++i)
        colors[i] = m_colors.category(static_cast<SpanCategory>(i)).rgb();
    for (int x = 0; x < m_raster.width(); ++x) {
        const Column &column = columns[static_cast<size_t>(x)];
        if (column.spans <= column.wide)
            continue;
        if (track.kind == LaneKind::Phase)
            colors[0] = phaseColorOf(track, x).rgb();
        double y = track.bottom;
        bool any = false;
        for (size_t i = 0; i < kCategories; ++i) {
            if (!m_state.isShown(static_cast<SpanCategory>(i)) || column.busy.ns[i] == 0)
                continue;
            const double top = std::max<double>(track.top, y - static_cast<double>(column.busy.ns[i]) * pixelsPerNs);
            // What is there at all is seen: the thinnest part is two pixels high.
            const int from = std::min(static_cast<int>(std::lround(top)), static_cast<int>(y) - (any ? 1 : least));
            m_raster.fill(x, x + 1, std::max(from, track.top), static_cast<int>(std::lround(y)), colors[i]);
            y = std::max<double>(from, track.top);
            any = true;
        }
        if (column.busy.totalNs() == 0) // only spans of no length
            m_raster.fill(x, x + 1, track.bottom - least, track.bottom, m_colors.muted.rgb());
    }
}

QColor LanePainter::phaseColorOf(const Track &track, int column) const
{
    const SpanPosition from = track.spans.firstTouching(columnStartNs(m_range, m_raster.width(), column));
    const SpanPosition to = track.spans.firstFrom(columnStartNs(m_range, m_raster.width(), column + 1), from);
    if (from >= to)
        return m_colors.category(SpanCategory::Compute);
    const SpanPosition longest = track.spans.longest(from, to);
    return colorOf(m_colors, SpanCategory::Compute, track.spans.chunk(longest).phase(longest.index), LaneKind::Phase);
}

void LanePainter::paintRectangles(const Track &track, const std::vector<Column> &columns)
{
    const auto minimumNs = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(kRectanglePx * m_nsPerColumn)));
    const SpanPosition from = track.spans.firstTouching(m_range.startNs);
    track.spans.forEachLonger(from, track.spans.firstFrom(m_range.endNs, from), minimumNs,
                              [&](SpanPosition p) { paintRectangle(track, p, columns); });
}

QRgb LanePainter::rgb(const Track &track, const SpanChunk &chunk, uint32_t index) const
{
    const SpanCategory category = chunk.category(index);
    const QColor color = colorOf(m_colors, category, chunk.phase(index), track.kind);
    // Neighbouring units differ a little, so that equal neighbours can be told apart.
    return chunk.unit(index) % 2 == 1 ? color.lighter(m_colors.dark ? 86 : 112).rgb() : color.rgb();
}

void LanePainter::paintRectangle(const Track &track, SpanPosition p, const std::vector<Column> &columns)
{
    const SpanChunk &chunk = track.spans.chunk(p);
    if (!m_state.isShown(chunk.category(p.index)))
        return;
    const double left = deviceX(chunk.startNs(p.index));
    const double right = deviceX(chunk.endNs(p.index));
    // The columns at its ends may hold narrow spans too: there the coverage tells more than a rounded edge.
    const auto holdsNarrow = [&](int x) {
        return x >= 0 && x < m_raster.width() &&
               columns[static_cast<size_t>(x)].spans > columns[static_cast<size_t>(x)].wide;
    };
    const double width = m_raster.width();
    const int leftColumn = static_cast<int>(std::floor(std::max(left, -2.0)));
    const int rightColumn = static_cast<int>(std::floor(std::min(right, width + 2)));
    const int x0 = holdsNarrow(leftColumn) ? leftColumn + 1 : static_cast<int>(std::lround(std::max(left, -2.0)));
    const int x1 = holdsNarrow(rightColumn) ? rightColumn : static_cast<int>(std::lround(std::min(right, width + 2)));
    const QRgb fill = rgb(track, chunk, p.index);
    m_raster.fill(x0, x1, track.top, track.bottom, fill);
    int hatchEnd = x0;
    const auto *call = chunk.category(p.index) == SpanCategory::Communication
                           ? m_snapshot.callOf(track.rankIndex, chunk.collective(p.index))
                           : nullptr;
    if (call) {
        const TimeRange wait = waitOf(track.spans.record(p), *call);
        const int waitEnd = static_cast<int>(std::lround(std::clamp(deviceX(wait.endNs), -2.0, width + 2)));
        const int stripe = std::max(2, static_cast<int>(3 * m_view.scale));
        hatchEnd = std::min(waitEnd, x1);
        m_raster.hatch(x0, hatchEnd, track.top, track.bottom, fill, m_colors.card.rgb(), stripe);
    }
    if (right - left >= 6 * m_view.scale)
        m_raster.fill(x0, x0 + 1, track.top, track.bottom, QColor(fill).darker(140).rgb());
    const double visible = (std::min(right, width) - std::max(left, 0.0)) / m_view.scale;
    if (track.labels && visible >= kLabelPx) {
        m_labels.push_back({std::max(left, 0.0) / m_view.scale, track.top / m_view.scale, visible,
                            (track.bottom - track.top) / m_view.scale, chunk.name(p.index), chunk.unit(p.index),
                            call ? std::optional(call->operation) : std::nullopt, fill,
                            std::max(0, hatchEnd - std::max(x0, 0)) / m_view.scale});
    }
}

const std::vector<Column> &LanePainter::exclusiveOf(uint32_t rank)
{
    if (m_exclusive[rank].empty())
        m_exclusive[rank] = coverageOf(m_snapshot.ranks[rank].activity->exclusive, m_range, m_raster.width());
    return m_exclusive[rank];
}

void LanePainter::paintExposed(const Track &track, const std::vector<Column> &columns)
{
    const QRgb color = m_colors.warning.rgb();
    const int top = track.bottom + static_cast<int>(m_view.scale);
    const int bottom = top + static_cast<int>(2 * m_view.scale);
    for (int x = 0; x < m_raster.width(); ++x) {
        if (columns[static_cast<size_t>(x)].busy[SpanCategory::Communication] == 0)
            continue;
        if (exclusiveOf(track.rankIndex)[static_cast<size_t>(x)].busy[SpanCategory::Communication] > 0)
            m_raster.fill(x, x + 1, top, bottom, color);
    }
}

} // namespace shardscope::ui::timeline
