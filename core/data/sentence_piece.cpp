// SPDX-License-Identifier: Apache-2.0
#include "core/data/sentence_piece.h"

#include "core/data/data_progress.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <sentencepiece_processor.h>
#include <thread>

namespace shardscope::data {

namespace {

constexpr unsigned kMostThreads = 16;

class SentencePiece : public Tokenizer
{
public:
    static Result<std::unique_ptr<Tokenizer>> open(const TokenizerChoice &choice);

    int64_t vocabulary() const override { return m_processor.GetPieceSize(); }
    std::optional<uint32_t> separator() const override { return m_separator; }
    Result<std::vector<std::vector<uint32_t>>> encode(std::span<const std::string_view> pieces,
                                                      const CancelFunction &isCancelled) override;

private:
    Result<> findSeparator(const TokenizerChoice &choice);

    sentencepiece::SentencePieceProcessor m_processor;
    std::string m_file;
    std::optional<uint32_t> m_separator;
};

Result<std::unique_ptr<Tokenizer>> SentencePiece::open(const TokenizerChoice &choice)
{
    auto tokenizer = std::make_unique<SentencePiece>();
    tokenizer->m_file = choice.file.string();
    if (const auto status = tokenizer->m_processor.Load(tokenizer->m_file); !status.ok())
        return fail("{} is no model of SentencePiece, or it is damaged: {}.", choice.file.string(), status.ToString());
    if (auto found = tokenizer->findSeparator(choice); !found)
        return tl::unexpected(found.error());
    return tokenizer;
}

Result<> SentencePiece::findSeparator(const TokenizerChoice &choice)
{
    const SeparatorChoice &wanted = choice.separator;
    int64_t id = -1;
    if (wanted.none)
        return {};
    if (!wanted.texts.empty()) {
        const int found = m_processor.PieceToId(wanted.texts.front()); // of the unknown where there is none
        id = m_processor.IdToPiece(found) == wanted.texts.front() ? found : -1;
    } else {
        id = wanted.id.value_or(m_processor.eos_id());
    }
    if (id < 0 || id >= vocabulary())
        return noSeparator(choice);
    m_separator = static_cast<uint32_t>(id);
    return {};
}

Result<std::vector<std::vector<uint32_t>>> SentencePiece::encode(std::span<const std::string_view> pieces,
                                                                 const CancelFunction &isCancelled)
{
    std::vector<std::vector<uint32_t>> ids(pieces.size());
    std::atomic<size_t> next = 0;
    std::mutex mutex;
    std::string problem;
    const auto work = [&] {
        std::vector<int> found;
        for (size_t i = next++; i < pieces.size(); i = next++) {
            const auto status = m_processor.Encode({pieces[i].data(), pieces[i].size()}, &found);
            if (!status.ok()) {
                const std::lock_guard lock(mutex);
                problem = status.ToString();
                return;
            }
            ids[i].assign(found.begin(), found.end());
        }
    };
    const size_t cores = std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads);
    {
        std::vector<std::jthread> helpers;
        for (size_t i = 1; i < std::min(cores, pieces.size()); ++i)
            helpers.emplace_back(work);
        work();
    }
    if (isCancelled && isCancelled())
        return fail("{}", kCancelled);
    if (!problem.empty())
        return fail("SentencePiece ({}) can't tokenise: {}.", m_file, problem);
    return ids;
}

} // namespace

Result<std::unique_ptr<Tokenizer>> openSentencePiece(const TokenizerChoice &choice)
{
    return SentencePiece::open(choice);
}

} // namespace shardscope::data
