// SPDX-License-Identifier: Apache-2.0
#include "core/train/rank_exchange.h"

#include <set>

namespace shardscope::train {

RankExchange::RankExchange(c10::intrusive_ptr<c10d::Store> store, int rank, int worldSize)
    : m_store(std::move(store))
    , m_rank(rank)
    , m_worldSize(worldSize)
{
}

std::string RankExchange::key(std::string_view what, int rank) const
{
    return fmt::format("shardscope/{}/{}/{}", m_calls, what, rank);
}

static std::vector<uint8_t> bytesOf(const std::string &text)
{
    return {text.begin(), text.end()};
}

static std::string textOf(const std::vector<uint8_t> &bytes)
{
    return {bytes.begin(), bytes.end()};
}

/// All have answered this call, so all are past those before it: what this rank left for these nobody reads any more.
/// A long run would else fill rank 0's memory.
void RankExchange::forgetRead(std::string latest)
{
    for (const std::string &key : m_left) {
        try {
            m_store->deleteKey(key);
        } catch (const std::exception &) {
            // A store that can't forget keeps a text that nobody asks for.
        }
    }
    m_left = {std::move(latest)};
}

Result<std::vector<std::string>> RankExchange::allGather(std::string_view what, const std::string &text)
{
    if (m_worldSize == 1)
        return std::vector{text};
    ++m_calls;
    std::vector<std::string> all;
    try {
        m_store->set(key(what, m_rank), bytesOf(text));
        for (int rank = 0; rank < m_worldSize; ++rank)
            all.push_back(rank == m_rank ? text : textOf(m_store->get(key(what, rank))));
    } catch (const std::exception &error) {
        return fail("Rank {} got no answer from rank {} ({}): {}", m_rank, all.size(), what, error.what());
    }
    forgetRead(key(what, m_rank));
    return all;
}

Result<std::string> RankExchange::fromRoot(std::string_view what, const std::string &text)
{
    if (m_worldSize == 1)
        return text;
    ++m_calls;
    try {
        if (m_rank == 0) {
            m_store->set(key(what, 0), bytesOf(text));
            m_left.push_back(key(what, 0));
            return text;
        }
        return textOf(m_store->get(key(what, 0)));
    } catch (const std::exception &error) {
        return fail("Rank {} got no answer from rank 0 ({}): {}", m_rank, what, error.what());
    }
}

Result<> combine(const std::vector<Result<>> &ofRanks)
{
    std::string text;
    std::set<std::string> seen; // the same message from every rank says nothing more
    for (size_t rank = 0; rank < ofRanks.size(); ++rank) {
        if (ofRanks[rank] || !seen.insert(ofRanks[rank].error().text).second)
            continue;
        text += fmt::format("{}{}{}", text.empty() ? "" : "\n",
                            ofRanks.size() > 1 ? fmt::format("Rank {}: ", rank) : "", ofRanks[rank].error().text);
    }
    if (text.empty())
        return {};
    return fail("{}", text);
}

Result<> RankExchange::agree(std::string_view what, const Result<> &mine)
{
    const auto all = allGather(what, mine ? "" : mine.error().text);
    if (!all)
        return tl::unexpected(all.error());
    std::vector<Result<>> outcomes;
    for (const std::string &error : *all)
        outcomes.push_back(error.empty() ? Result<>{} : tl::unexpected(Error{error}));
    return combine(outcomes);
}

static std::string postedKey(const std::string &name)
{
    return "shardscope/posted/" + name;
}

Result<> RankExchange::post(const std::string &name, const std::string &text)
{
    if (!m_store) {
        m_own[name] = text;
        return {};
    }
    try {
        m_store->set(postedKey(name), bytesOf(text));
        return {};
    } catch (const std::exception &error) {
        return fail("Rank {} can't tell the others of {}: {}", m_rank, name, error.what());
    }
}

Result<std::optional<std::string>> RankExchange::peek(const std::string &name)
{
    if (!m_store) {
        const auto found = m_own.find(name);
        return found == m_own.end() ? std::nullopt : std::optional(found->second);
    }
    try {
        if (!m_store->check({postedKey(name)}))
            return std::nullopt;
        return textOf(m_store->get(postedKey(name)));
    } catch (const std::exception &error) {
        return fail("Rank {} can't ask for {}: {}", m_rank, name, error.what());
    }
}

void RankExchange::withdraw(const std::string &name)
{
    if (!m_store) {
        m_own.erase(name);
        return;
    }
    try {
        m_store->deleteKey(postedKey(name));
    } catch (const std::exception &) {
        // A store that can't forget (FileStore's older ones) keeps a text that nobody asks for.
    }
}

} // namespace shardscope::train
