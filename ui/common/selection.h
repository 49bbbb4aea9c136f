// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/time_range.h"

#include <QObject>
#include <QString>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardscope::ui {

/// What is selected, for all pages of a run: brushing a range in one view selects it in all. Times count from the
/// run's origin. Setters emit only on a change; clear() is what a newly opened run begins with.
class Selection : public QObject
{
    Q_OBJECT
public:
    using QObject::QObject;

    const std::optional<TimeRange> &range() const { return m_range; }
    /// Ends are put in order; an empty range selects nothing.
    void setRange(std::optional<TimeRange> range);

    /// Global ranks, ascending; empty means all.
    const std::vector<int> &ranks() const { return m_ranks; }
    void setRanks(std::vector<int> ranks);
    bool includesRank(int rank) const;

    /// A unit's name ("block.3") or a bucket's ("block.3/norm").
    const std::optional<QString> &unit() const { return m_unit; }
    void setUnit(std::optional<QString> unit);

    const std::optional<int64_t> &step() const { return m_step; }
    void setStep(std::optional<int64_t> step);

    void clear();

Q_SIGNALS:
    void rangeChanged();
    void ranksChanged();
    void unitChanged();
    void stepChanged();
    /// After any of the above.
    void changed();

private:
    std::optional<TimeRange> m_range;
    std::vector<int> m_ranks;
    std::optional<QString> m_unit;
    std::optional<int64_t> m_step;
};

} // namespace shardscope::ui
