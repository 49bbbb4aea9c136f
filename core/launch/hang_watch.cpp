// SPDX-License-Identifier: Apache-2.0
#include "core/launch/hang_watch.h"

#include "core/base/text.h"
#include "core/run/process_identity.h"

#include <algorithm>

namespace fs = std::filesystem;

namespace shardscope::launch {

/// Below this share of one core a rank waits and does not compute.
static constexpr double kBusyShare = 0.05;

RankPulse takePulse(const run::RunFolder &folder, int attempt, int rank, int64_t pid)
{
    RankPulse pulse{.rank = rank};
    if (const auto use = run::processUse(pid)) {
        pulse.stopped = use->stopped;
        pulse.cpuNs = use->cpuNs;
    }
    const auto flight = observe::readFlight(folder.flightFile(attempt, rank));
    if (!flight || flight->records.empty())
        return pulse;
    pulse.begun = flight->records.back().number + 1;
    pulse.ended = std::ranges::count_if(flight->records, [](const auto &record) { return record.endedNs.has_value(); });
    pulse.inCollective = flight->pending() != nullptr;
    pulse.last = pulse.inCollective ? *flight->pending() : flight->records.back();
    return pulse;
}

std::optional<int> lateRank(const std::vector<RankPulse> &ranks)
{
    if (ranks.empty())
        return std::nullopt;
    if (const auto found = std::ranges::find_if(ranks, &RankPulse::stopped); found != ranks.end())
        return found->rank;
    const auto [fewest, most] = std::ranges::minmax_element(ranks, {}, &RankPulse::begun);
    if (fewest->begun < most->begun)
        return fewest->rank;
    if (const auto found = std::ranges::find(ranks, false, &RankPulse::inCollective); found != ranks.end())
        return found->rank;
    return std::nullopt;
}

/// Changes while a checkpoint is written: its files and their sizes.
static std::string checkpointSignature(const run::RunFolder &folder)
{
    std::string signature;
    std::error_code error;
    const fs::path checkpoints = folder.checkpointsFolder();
    for (fs::recursive_directory_iterator entry(checkpoints, error), end; !error && entry != end;
         entry.increment(error)) {
        std::error_code ignored;
        const uintmax_t size = entry->is_regular_file(ignored) ? entry->file_size(ignored) : 0;
        signature += fmt::format("{}:{} ", entry->path().filename().string(), size);
    }
    return signature;
}

HangWatch::HangWatch(run::RunFolder folder, int attempt, int64_t limitNs)
    : m_folder(std::move(folder))
    , m_attempt(attempt)
    , m_limitNs(limitNs)
{
}

void HangWatch::moved(int64_t nowNs)
{
    m_stillSinceNs = nowNs;
    m_signature.clear();
}

std::optional<run::RunFailure> HangWatch::check(const std::vector<run::RankStatus> &ranks, int64_t nowNs)
{
    if (m_limitNs <= 0)
        return std::nullopt;
    std::vector<RankPulse> pulses;
    std::string signature = checkpointSignature(m_folder);
    int64_t cpuNs = 0;
    for (const run::RankStatus &rank : ranks) {
        const RankPulse &pulse = pulses.emplace_back(takePulse(m_folder, m_attempt, rank.rank, rank.pid));
        signature += fmt::format("{}/{} ", pulse.begun, pulse.ended);
        cpuNs += pulse.cpuNs;
    }
    if (signature != m_signature) {
        if (!m_signature.empty())
            m_stillSinceNs = nowNs;
        m_signature = std::move(signature);
        m_cpuNs = cpuNs;
    }
    const int64_t stillNs = nowNs - m_stillSinceNs;
    if (stillNs < m_limitNs)
        return std::nullopt;
    // A long step without collectives is work, not a hang: of one rank, or of replicas on a slow processor.
    const bool waiting = std::ranges::any_of(pulses, &RankPulse::inCollective);
    const bool busy = static_cast<double>(cpuNs - m_cpuNs) > kBusyShare * static_cast<double>(stillNs);
    if (!waiting && busy)
        return std::nullopt;
    return describe(pulses);
}

run::RunFailure HangWatch::describe(const std::vector<RankPulse> &ranks) const
{
    run::RunFailure failure;
    failure.rank = lateRank(ranks);
    failure.text = fmt::format("The run has hung: for {} no rank has done a step, or begun or ended a collective.",
                               formatDuration(m_limitNs));
    for (const RankPulse &rank : ranks) {
        const bool late = failure.rank == rank.rank;
        failure.text += fmt::format("\nRank {}{}{} ", rank.rank, late ? ", which is late," : "",
                                    rank.stopped ? " is stopped by a signal (SIGSTOP) and" : "");
        if (!rank.last)
            failure.text += "has begun no collective.";
        else
            failure.text += (rank.inCollective ? "is in " : "was last in ") + observe::describe(*rank.last) + ".";
    }
    failure.text += fmt::format("\nGo on from the newest checkpoint with: shardscope-cli run --resume \"{}\". If it "
                                "hangs there again, the logs of the ranks say more. Where a step may take that long, "
                                "raise run.hang_seconds (0: wait for ever).",
                                m_folder.root().string());
    return failure;
}

} // namespace shardscope::launch
