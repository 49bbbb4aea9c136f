// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/snapshot.h"

#include <set>

namespace shardscope::ui::timeline {

/// A strip of the timeline: a rank's own (its name; folded, what its device did), or one lane's.
struct Row
{
    enum class Kind { Rank, Lane };
    Kind kind = Kind::Rank;
    uint32_t rank = 0;
    uint32_t lane = 0; ///< of Kind::Lane
    bool folded = false;
    int y = 0;
    int height = 0;
    double trackHeight = 0; ///< of one sub-lane
};

/// Where rows stand, from top to bottom, in logical pixels from the top of the content. Folding is remembered by
/// process and lane, so that it outlives snapshots.
class RowLayout
{
public:
    static constexpr int kRankHeight = 24;
    static constexpr int kTrackHeight = 18;
    static constexpr int kGap = 3; ///< below each row

    void update(const Snapshot &snapshot);
    const std::vector<Row> &rows() const { return m_rows; }
    int height() const { return m_height; }
    /// Index into rows(), or −1. The gap below a row belongs to it.
    int rowAt(int y) const;
    /// The sub-lane under y, cut to those that the row has.
    static uint32_t trackAt(const Row &row, int y, size_t tracks);

    void setRankFolded(store::Index process, bool folded);
    void setLaneFolded(store::Index process, int64_t laneId, bool folded);
    void foldAll(const Snapshot &snapshot, bool folded);
    void clear();

private:
    std::vector<Row> m_rows;
    int m_height = 0;
    std::set<store::Index> m_foldedRanks;
    std::set<std::pair<store::Index, int64_t>> m_foldedLanes;
};

} // namespace shardscope::ui::timeline
