// SPDX-License-Identifier: Apache-2.0
#include "tests/model/covering_rows.h"

#include <algorithm>

namespace shardscope::test {

template <typename F>
void CoveringRows::forEachPair(const Row &row, F f) const
{
    for (size_t i = 0; i < row.size(); ++i) {
        for (size_t j = i + 1; j < row.size(); ++j)
            f((m_firsts[i] + static_cast<size_t>(row[i])) * m_values + m_firsts[j] + static_cast<size_t>(row[j]));
    }
}

template <typename F>
void CoveringRows::forEachTriple(const Row &row, F f) const
{
    forEachPair(row, [&](size_t pair) {
        // Only axes behind the pair's second one, so that each triple comes once.
        for (size_t k = row.size(); k-- > 0 && m_firsts[k] > pair % m_values;)
            f(pair * m_values + m_firsts[k] + static_cast<size_t>(row[k]));
    });
}

CoveringRows::CoveringRows(std::vector<int> sizes, const std::function<bool(const Row &)> &allowed)
    : m_sizes(std::move(sizes))
{
    for (const int size : m_sizes) {
        m_firsts.push_back(m_values);
        m_values += static_cast<size_t>(size);
    }
    m_pairs.resize(m_values * m_values, 0);
    m_newTriples.resize(m_values * m_values * m_values, 1);
    Row row(m_sizes.size(), 0);
    for (size_t axis = 0; axis < row.size();) { // counts up, the first axis fastest
        if (allowed(row)) {
            m_all.push_back(row);
            forEachPair(row, [&](size_t pair) { m_pairs[pair] = 1; });
        }
        for (axis = 0; axis < row.size() && ++row[axis] == m_sizes[axis]; ++axis)
            row[axis] = 0;
    }
}

size_t CoveringRows::gainOf(const Row &row, const std::vector<char> &wantedPairs) const
{
    static constexpr size_t kMoreThanTriples = 1000; // a row has fewer
    size_t gain = 0;
    forEachPair(row, [&](size_t pair) { gain += wantedPairs[pair] ? kMoreThanTriples : 0; });
    forEachTriple(row, [&](size_t triple) { gain += m_newTriples[triple] ? 1 : 0; });
    return gain;
}

std::vector<Row> CoveringRows::rows(size_t count)
{
    std::vector<char> wantedPairs = m_pairs;
    std::vector<Row> chosen;
    while (chosen.size() < count) {
        const int turn = static_cast<int>(chosen.size()) % m_sizes.back();
        const Row *best = nullptr;
        size_t bestGain = 0;
        for (const Row &row : m_all) {
            const size_t gain = row.back() == turn ? gainOf(row, wantedPairs) : 0;
            if (gain > bestGain || (!best && row.back() == turn)) {
                best = &row;
                bestGain = gain;
            }
        }
        forEachPair(*best, [&](size_t pair) { wantedPairs[pair] = 0; });
        forEachTriple(*best, [&](size_t triple) { m_newTriples[triple] = 0; });
        chosen.push_back(*best);
    }
    return chosen;
}

size_t CoveringRows::missingPairs(const std::vector<Row> &rows) const
{
    std::vector<char> missing = m_pairs;
    for (const Row &row : rows)
        forEachPair(row, [&](size_t pair) { missing[pair] = 0; });
    return static_cast<size_t>(std::ranges::count(missing, 1));
}

} // namespace shardscope::test
