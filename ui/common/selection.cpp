// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/selection.h"

#include <algorithm>

namespace shardscope::ui {

void Selection::setRange(std::optional<TimeRange> range)
{
    if (range && range->startNs > range->endNs)
        std::swap(range->startNs, range->endNs);
    if (range && range->startNs == range->endNs)
        range.reset();
    if (range == m_range)
        return;
    m_range = range;
    Q_EMIT rangeChanged();
    Q_EMIT changed();
}

void Selection::setRanks(std::vector<int> ranks)
{
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    if (ranks == m_ranks)
        return;
    m_ranks = std::move(ranks);
    Q_EMIT ranksChanged();
    Q_EMIT changed();
}

bool Selection::includesRank(int rank) const
{
    return m_ranks.empty() || std::binary_search(m_ranks.begin(), m_ranks.end(), rank);
}

void Selection::setUnit(std::optional<QString> unit)
{
    if (unit == m_unit)
        return;
    m_unit = std::move(unit);
    Q_EMIT unitChanged();
    Q_EMIT changed();
}

void Selection::setStep(std::optional<int64_t> step)
{
    if (step == m_step)
        return;
    m_step = step;
    Q_EMIT stepChanged();
    Q_EMIT changed();
}

void Selection::clear()
{
    setRange(std::nullopt);
    setRanks({});
    setUnit(std::nullopt);
    setStep(std::nullopt);
}

} // namespace shardscope::ui
