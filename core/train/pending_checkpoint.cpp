// SPDX-License-Identifier: Apache-2.0
#include "core/train/pending_checkpoint.h"

#include "core/base/clock.h"
#include "core/base/text.h"

#include <pthread.h>

namespace shardscope::train {

/// What a posted text begins with.
static constexpr char kGood = '+';
static constexpr char kBad = '-';

static std::string encode(const Result<std::string> &result)
{
    return result ? kGood + *result : kBad + result.error().text;
}

static Result<std::string> decode(const std::string &text)
{
    if (text.starts_with(kGood))
        return text.substr(1);
    return tl::unexpected(Error{text.empty() ? "A rank's answer is empty." : text.substr(1)});
}

PendingCheckpoint::PendingCheckpoint(CheckpointPlan plan, const StateShards &shards, RandomStates random,
                                     at::Device device, RankExchange &exchange, int64_t number)
    : m_plan(std::move(plan))
    , m_exchange(exchange)
    , m_number(number)
    , m_random(std::move(random))
{
    try {
        m_snapshot.emplace(shards, device);
    } catch (const std::exception &error) {
        m_snapshotError = error.what();
        m_direct = shards;
    }
}

PendingCheckpoint::~PendingCheckpoint()
{
    if (m_thread.joinable())
        m_thread.join();
}

static std::string nameOf(int64_t number, std::string_view what, int rank)
{
    return fmt::format("checkpoint-{}/{}/{}", number, what, rank);
}

std::string PendingCheckpoint::name(std::string_view what, int rank) const
{
    return nameOf(m_number, what, rank);
}

/// Rank 0, once all have written their parts: all have read the id, and know how the checkpoint before this one ended.
void PendingCheckpoint::forgetRead()
{
    m_exchange.withdraw(name("begun", 0));
    if (m_number > 0)
        m_exchange.withdraw(nameOf(m_number - 1, "done", 0));
}

/// The thread runs work(), a Result<std::string>(), and nothing else.
template <typename Work>
void PendingCheckpoint::startThread(Work work)
{
    m_threadDone = false;
    m_thread = std::thread([this, work = std::move(work)] {
        ::pthread_setname_np(::pthread_self(), "checkpoint");
        try {
            m_threadResult = work();
        } catch (const std::exception &error) {
            m_threadResult = tl::unexpected(Error{error.what()});
        }
        m_threadDone.store(true, std::memory_order_release);
    });
}

std::string PendingCheckpoint::start()
{
    m_result = goOn();
    if (m_snapshot)
        return {};
    while (!m_result && m_stage == Stage::Beginning) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        m_result = goOn();
    }
    m_direct.clear();
    return fmt::format(
        "There is no host memory for a copy of the state, so the checkpoint of step {} is written before "
        "the training goes on: {}",
        m_plan.step(), m_snapshotError);
}

std::optional<Result<>> PendingCheckpoint::advance()
{
    return m_result ? m_result : goOn();
}

std::optional<Result<>> PendingCheckpoint::goOn()
{
    switch (m_stage) {
    case Stage::Beginning:
        return begin();
    case Stage::Writing:
        return postPart();
    case Stage::Gathering:
        return gather();
    case Stage::Committing:
        return postOutcome();
    case Stage::Learning:
        return learn();
    }
    return std::nullopt;
}

std::optional<Result<>> PendingCheckpoint::fail(const Error &error)
{
    return Result<>(tl::unexpected(error));
}

std::optional<Result<>> PendingCheckpoint::begin()
{
    if (m_plan.rank == 0) {
        m_plan.manifest.id = newCheckpointId();
        const auto begun = beginCheckpoint(m_plan);
        const auto posted = m_exchange.post(
            name("begun", 0), encode(begun ? Result<std::string>(m_plan.manifest.id) : tl::unexpected(begun.error())));
        if (!begun || !posted)
            return fail(begun ? posted.error() : begun.error());
    } else {
        const auto heard = m_exchange.peek(name("begun", 0));
        if (!heard)
            return fail(heard.error());
        if (!*heard)
            return std::nullopt;
        auto id = decode(**heard);
        if (!id)
            return fail(id.error());
        m_plan.manifest.id = std::move(*id);
    }
    m_stage = Stage::Writing;
    const auto write = [this]() -> Result<std::string> { return writePart().map(files::filesToJson); };
    if (m_snapshot) {
        startThread(write);
    } else { // the tensors change with the next step: they are written now
        m_threadResult = write();
        m_threadDone = true;
    }
    return goOn();
}

/// Runs in the thread where there is a snapshot.
Result<std::vector<files::FileEntry>> PendingCheckpoint::writePart()
{
    auto writer = files::PartWriter::create(m_plan.folder.partialPathOf(m_plan.step()), m_plan.part());
    if (!writer)
        return tl::unexpected(writer.error());
    if (m_snapshot)
        m_snapshot->wait();
    const auto written = (m_snapshot ? m_snapshot->write(*writer) : writeOwned(m_direct, *writer)).and_then([&] {
        return writeRandomStates(m_random, *writer);
    });
    if (!written)
        return tl::unexpected(written.error());
    return writer->finish();
}

std::optional<Result<>> PendingCheckpoint::postPart()
{
    if (!m_threadDone.load(std::memory_order_acquire))
        return std::nullopt;
    if (m_thread.joinable())
        m_thread.join();
    m_snapshot.reset();
    if (auto posted = m_exchange.post(name("part", m_plan.rank), encode(m_threadResult)); !posted)
        return fail(posted.error());
    m_stage = m_plan.rank == 0 ? Stage::Gathering : Stage::Learning;
    return goOn();
}

/// Rank 0: once all have answered, the checkpoint gets its name, or is given up.
std::optional<Result<>> PendingCheckpoint::gather()
{
    for (int rank = m_exchange.worldSize() - 1; rank >= 0; --rank) { // the last one is likely to be the late one
        const auto heard = m_exchange.peek(name("part", rank));
        if (!heard)
            return fail(heard.error());
        if (!*heard)
            return std::nullopt;
    }
    std::vector<std::string> parts;
    std::vector<Result<>> outcomes;
    for (int rank = 0; rank < m_exchange.worldSize(); ++rank) {
        const auto heard = m_exchange.peek(name("part", rank));
        const auto part = heard ? decode(heard->value_or("")) : tl::unexpected(heard.error());
        m_exchange.withdraw(name("part", rank));
        outcomes.push_back(part ? Result<>{} : tl::unexpected(part.error()));
        parts.push_back(part.value_or(""));
    }
    forgetRead();
    m_stage = Stage::Committing;
    startThread([this, parts = std::move(parts), all = combine(outcomes)]() -> Result<std::string> {
        auto committed = all ? commitCheckpoint(m_plan, parts) : all;
        if (!committed) {
            m_plan.folder.discard(m_plan.step());
            return tl::unexpected(committed.error());
        }
        return std::string();
    });
    return std::nullopt;
}

std::optional<Result<>> PendingCheckpoint::postOutcome()
{
    if (!m_threadDone.load(std::memory_order_acquire))
        return std::nullopt;
    m_thread.join();
    const auto posted = m_exchange.post(name("done", 0), encode(m_threadResult));
    if (!m_threadResult)
        return fail(m_threadResult.error());
    return posted;
}

std::optional<Result<>> PendingCheckpoint::learn()
{
    const auto heard = m_exchange.peek(name("done", 0));
    if (!heard)
        return fail(heard.error());
    if (!*heard)
        return std::nullopt;
    const auto outcome = decode(**heard);
    return outcome ? Result<>{} : Result<>(tl::unexpected(outcome.error()));
}

Result<> PendingCheckpoint::finish()
{
    static constexpr int64_t kPatienceNs = 3600 * int64_t{1'000'000'000};
    const int64_t beganNs = monotonicNs();
    for (;;) {
        if (auto result = advance())
            return std::move(*result);
        if (monotonicNs() - beganNs > kPatienceNs)
            return shardscope::fail("Rank {} has waited {} for the checkpoint of step {}, which is not written yet. Is "
                                    "the disk of {} in order?",
                                    m_plan.rank, formatDuration(kPatienceNs), m_plan.step(), m_plan.path().string());
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

} // namespace shardscope::train
