// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace shardscope::train {

/// Short texts between all ranks, through the job's store: for what is rare and no tensor. All ranks make the same
/// calls in the same order.
class RankExchange
{
public:
    /// The store may be null with one rank.
    RankExchange(c10::intrusive_ptr<c10d::Store> store, int rank, int worldSize);

    /// Every rank's text, in the order of the ranks. Waits for all of them.
    Result<std::vector<std::string>> allGather(std::string_view what, const std::string &text);
    /// Rank 0's text.
    Result<std::string> fromRoot(std::string_view what, const std::string &text);
    /// An error on any rank is an error on all, with the ranks named.
    Result<> agree(std::string_view what, const Result<> &mine);

    int rank() const { return m_rank; }
    int worldSize() const { return m_worldSize; }

private:
    std::string key(std::string_view what, int rank) const;

    c10::intrusive_ptr<c10d::Store> m_store;
    int m_rank;
    int m_worldSize;
    int64_t m_calls = 0;
};

} // namespace shardscope::train
