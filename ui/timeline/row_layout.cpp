// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/row_layout.h"

namespace shardscope::ui::timeline {

void RowLayout::update(const Snapshot &snapshot)
{
    m_rows.clear();
    int y = 0;
    const auto add = [&](Row row) {
        row.y = y;
        y += row.height + kGap;
        m_rows.push_back(row);
    };
    for (uint32_t r = 0; r < snapshot.ranks.size(); ++r) {
        const RankTimeline &rank = snapshot.ranks[r];
        const bool rankFolded = m_foldedRanks.contains(rank.process);
        add({Row::Kind::Rank, r, 0, rankFolded, 0, kRankHeight, kRankHeight});
        for (uint32_t l = 0; !rankFolded && l < rank.lanes.size(); ++l) {
            const Lane &lane = *rank.lanes[l];
            if (lane.spanCount() == 0)
                continue;
            const auto tracks = static_cast<int>(lane.tracks().size());
            const bool folded = m_foldedLanes.contains({rank.process, lane.info.laneId});
            // Folded sub-lanes become thin but stay: from two pixels each.
            const int height = folded ? std::max(kTrackHeight, 2 * tracks) : kTrackHeight * tracks;
            add({Row::Kind::Lane, r, l, folded, 0, height, static_cast<double>(height) / tracks});
        }
    }
    m_height = y;
}

int RowLayout::rowAt(int y) const
{
    const auto after =
        std::upper_bound(m_rows.begin(), m_rows.end(), y, [](int value, const Row &row) { return value < row.y; });
    if (after == m_rows.begin() || y >= m_height)
        return -1;
    return static_cast<int>(after - m_rows.begin()) - 1;
}

uint32_t RowLayout::trackAt(const Row &row, int y, size_t tracks)
{
    const int track = static_cast<int>((y - row.y) / row.trackHeight);
    return static_cast<uint32_t>(std::clamp(track, 0, static_cast<int>(tracks) - 1));
}

void RowLayout::setRankFolded(store::Index process, bool folded)
{
    if (folded)
        m_foldedRanks.insert(process);
    else
        m_foldedRanks.erase(process);
}

void RowLayout::setLaneFolded(store::Index process, int64_t laneId, bool folded)
{
    if (folded)
        m_foldedLanes.insert({process, laneId});
    else
        m_foldedLanes.erase({process, laneId});
}

void RowLayout::foldAll(const Snapshot &snapshot, bool folded)
{
    for (const RankTimeline &rank : snapshot.ranks)
        setRankFolded(rank.process, folded);
}

void RowLayout::clear()
{
    m_foldedRanks.clear();
    m_foldedLanes.clear();
    m_rows.clear();
    m_height = 0;
}

} // namespace shardscope::ui::timeline
