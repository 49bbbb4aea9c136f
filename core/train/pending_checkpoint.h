// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/train/checkpoint_plan.h"
#include "core/train/rank_exchange.h"
#include "core/train/state_snapshot.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace shardscope::train {

/// A checkpoint that is being written behind the training. A thread of its own copies the snapshot to the disk and
/// speaks to nobody; what the ranks must tell each other the training's thread posts and looks up in advance(), between
/// its steps, and never waits for. All ranks come to the same result, at whichever of their steps they learn of it.
///
/// The course: rank 0 makes the folder and posts its id → each rank writes its part and posts what it wrote → rank 0
/// gives the checkpoint its name, once it has heard of all, and posts how that went.
class PendingCheckpoint
{
public:
    /// `number` counts the checkpoints that were begun, alike on all ranks. Takes the snapshot.
    PendingCheckpoint(CheckpointPlan plan, const StateShards &shards, RandomStates random, at::Device device,
                      RankExchange &exchange, int64_t number);
    /// Waits for the thread's file operation; the outcome is lost.
    ~PendingCheckpoint();
    PendingCheckpoint(const PendingCheckpoint &) = delete;

    /// The first part of the course. Where memory lacked for the snapshot, this rank writes its part from the engine's
    /// tensors before it returns, for which it waits for rank 0's folder; it says so. Else it waits for nothing and
    /// returns "".
    std::string start();
    /// Does what can be done without waiting. The result once it is known, of all ranks alike.
    std::optional<Result<>> advance();
    /// Waits for the result.
    Result<> finish();

    const CheckpointPlan &plan() const { return m_plan; }

private:
    enum class Stage { Beginning, Writing, Gathering, Committing, Learning };

    std::string name(std::string_view what, int rank) const;
    void forgetRead();
    std::optional<Result<>> goOn();
    std::optional<Result<>> begin();
    std::optional<Result<>> postPart();
    std::optional<Result<>> gather();
    std::optional<Result<>> postOutcome();
    std::optional<Result<>> learn();
    std::optional<Result<>> fail(const Error &error);
    Result<std::vector<files::FileEntry>> writePart();
    template <typename Work>
    void startThread(Work work);

    CheckpointPlan m_plan;
    RankExchange &m_exchange;
    int64_t m_number;
    StateShards m_direct; ///< where there is no snapshot
    std::optional<StateSnapshot> m_snapshot;
    RandomStates m_random;
    std::string m_snapshotError;
    Stage m_stage = Stage::Beginning;
    std::thread m_thread;
    std::atomic<bool> m_threadDone = false;
    Result<std::string> m_threadResult; ///< the thread's, until m_threadDone
    std::optional<Result<>> m_result;   ///< known before anybody asked
};

} // namespace shardscope::train
