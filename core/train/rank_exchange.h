// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace shardscope::train {

/// One outcome of all ranks' (in their order): the errors with the ranks that had them, or none.
Result<> combine(const std::vector<Result<>> &ofRanks);

/// Short texts between all ranks, through the job's store: for what is rare and no tensor. All ranks make the same
/// waiting calls in the same order. Call all from one thread: a wait of one would hold up another's.
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

    /// Leaves a text for the others under a name of the caller's that was never used before, and goes on.
    Result<> post(const std::string &name, const std::string &text);
    /// What was left under that name, or nothing as yet. Never waits.
    Result<std::optional<std::string>> peek(const std::string &name);
    /// Forgets it, once nobody will look any more.
    void withdraw(const std::string &name);

    int rank() const { return m_rank; }
    int worldSize() const { return m_worldSize; }

private:
    std::string key(std::string_view what, int rank) const;
    void forgetRead(std::string latest);

    c10::intrusive_ptr<c10d::Store> m_store;
    int m_rank;
    int m_worldSize;
    int64_t m_calls = 0;
    std::vector<std::string> m_left;          ///< own keys that others may not have read yet
    std::map<std::string, std::string> m_own; ///< posted where there is no store
};

} // namespace shardscope::train
