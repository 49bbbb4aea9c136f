// SPDX-License-Identifier: Apache-2.0
// Rows of settings in which every pair of two axes' values occurs: what a test takes in place of every combination.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace shardscope::test {

/// One value of each axis, by its number.
using Row = std::vector<int>;

class CoveringRows
{
public:
    /// `sizes`: values of each axis. Only rows that `allowed` says yes to are used, and only pairs of such rows wanted.
    CoveringRows(std::vector<int> sizes, const std::function<bool(const Row &)> &allowed);

    /// Every allowed row.
    const std::vector<Row> &all() const { return m_all; }
    /// `count` rows, always the same, that hold as many pairs as can be, and of those that do, the triples that rows()
    /// has not given before. The last axis takes its values in turn: row i has value i modulo its size.
    std::vector<Row> rows(size_t count);
    /// Pairs of some allowed row that `rows` lack.
    size_t missingPairs(const std::vector<Row> &rows) const;
    size_t pairs() const { return missingPairs({}); }

private:
    /// A pair or triple of values is a number: each value counts among those of all axes.
    template <typename F>
    void forEachPair(const Row &row, F f) const;
    template <typename F>
    void forEachTriple(const Row &row, F f) const;
    size_t gainOf(const Row &row, const std::vector<char> &wantedPairs) const;

    std::vector<int> m_sizes;
    std::vector<size_t> m_firsts; ///< number of each axis' first value
    size_t m_values = 0;
    std::vector<Row> m_all;
    std::vector<char> m_pairs; ///< 1: of some allowed row
    std::vector<char> m_newTriples;
};

} // namespace shardscope::test
