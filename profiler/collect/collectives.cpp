// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/collectives.h"

#include <algorithm>

namespace shardscope::collect {

void Collectives::began(const store::CollectiveRow &row, const CollectiveEvent &event)
{
    m_open.insert_or_assign(event.number, Open{.row = row, .step = event.step, .stream = event.stream});
    m_sink(row);
}

const Collectives::Open *Collectives::find(int64_t number) const
{
    const auto found = m_open.find(number);
    return found == m_open.end() ? nullptr : &found->second;
}

std::optional<Collectives::Open> Collectives::transfer(const TransferEvent &event)
{
    const auto found = m_open.find(event.number);
    if (found == m_open.end())
        return std::nullopt;
    Open &open = found->second;
    if (!event.ended) {
        open.row.startedNs = event.timeNs;
        open.startedMonotonicNs = event.monotonicNs;
        return std::nullopt;
    }
    if (open.row.endedNs)
        return std::nullopt;
    // An end without a beginning: the beginning was dropped. Its length is then not known.
    open.row.endedNs =
        open.row.startedNs ? *open.row.startedNs + (event.monotonicNs - open.startedMonotonicNs) : event.timeNs;
    m_sink(open.row);
    return open;
}

std::optional<Collectives::Open> Collectives::deviceWork(int64_t number, int64_t startNs, int64_t endNs)
{
    const auto found = m_open.find(number);
    if (found == m_open.end())
        return std::nullopt;
    store::CollectiveRow &row = found->second.row;
    row.startedNs = std::min(row.startedNs.value_or(startNs), startNs);
    row.endedNs = std::max(row.endedNs.value_or(endNs), endNs);
    m_sink(row);
    return found->second;
}

void Collectives::forgetBefore(int64_t ended, int64_t any)
{
    std::erase_if(m_open, [&](const auto &entry) {
        return entry.first < any || (entry.first < ended && entry.second.row.endedNs);
    });
}

} // namespace shardscope::collect
