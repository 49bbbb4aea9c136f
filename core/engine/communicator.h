// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/observe/observer.h"

#include <ATen/core/Tensor.h>
#include <chrono>
#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace shardscope::engine {

class CommunicationLane;

/// What was enqueued and may not be done yet. Copies are handles to the same work; an empty one is done.
class Pending
{
public:
    struct State;
    Pending() = default;
    explicit Pending(std::shared_ptr<State> state)
        : m_state(std::move(state))
    {
    }
    /// CUDA: the current stream waits, the thread does not. CPU: the thread waits. Throws what the work threw.
    void wait() const;
    explicit operator bool() const { return m_state != nullptr; }

private:
    std::shared_ptr<State> m_state;
};

/// What a collective belongs to, for the observer.
struct CollectiveTag
{
    observe::UnitIndex unit = observe::kNoUnit;
    Phase phase = Phase::Forward;
};

/// A process group of c10d (NCCL for a CUDA device, Gloo for the CPU) as a queue: collectives run one after the other
/// in the order of the calls, beside the computation, each ordered after what the caller enqueued before it. With NCCL
/// the queue is a high-priority stream; with Gloo it is a thread. Sums run in the order of the ranks with Gloo, so that
/// equal runs are equal to the bit. With one rank nothing is sent, and nothing is reported.
///
/// Call all of it from one thread, in the same order on all ranks. Tensors must stay alive until the Pending is waited
/// for.
class Communicator
{
public:
    struct Options
    {
        c10::intrusive_ptr<c10d::Store> store; ///< may be null with one rank
        int rank = 0;
        int worldSize = 1;
        at::Device device = at::kCPU;
        std::chrono::milliseconds timeout = std::chrono::minutes(30);
    };
    /// Connects all ranks; tells the observer of the process group.
    static Result<std::unique_ptr<Communicator>> create(const Options &options, observe::Observer &observer);
    ~Communicator();

    int rank() const { return m_options.rank; }
    int worldSize() const { return m_options.worldSize; }
    at::Device device() const { return m_options.device; }

    /// Copies slice_S (any dtype; may already lie there) to this rank's place in gathered_G and gathers the others'.
    Pending allGather(const at::Tensor &gathered_G, const at::Tensor &slice_S, CollectiveTag tag);
    /// Sums the ranks' full_G and leaves this rank's part in slice_S (added where accumulate). scratch_G: with Gloo a
    /// buffer like full_G (the all-to-all needs one); else undefined.
    Pending reduceScatter(const at::Tensor &full_G, const at::Tensor &slice_S, const at::Tensor &scratch_G,
                          bool accumulate, CollectiveTag tag);
    /// Sums over the ranks, in place.
    Pending allReduce(const at::Tensor &tensor, CollectiveTag tag);
    Pending broadcast(const at::Tensor &tensor, int root, CollectiveTag tag);
    /// Runs a plain copy (with a cast) in the queue, as part of no collective.
    Pending copy(const at::Tensor &to, const at::Tensor &from);
    /// Returns when all ranks have come here.
    void barrier();
    /// True where reduceScatter wants scratch_G.
    bool needsReduceScratch() const { return m_options.worldSize > 1 && !m_options.device.is_cuda(); }

    /// Breaks off what waits for another rank (from any thread), so that this process can end.
    void abort();

private:
    Communicator(const Options &options, observe::Observer &observer);
    void connect();
    int64_t beginCollective(Operation operation, const at::Tensor &input, int64_t inputBytes, int64_t outputBytes,
                            CollectiveTag tag);

    Options m_options;
    observe::Observer &m_observer;
    c10::intrusive_ptr<c10d::Backend> m_group;
    std::unique_ptr<CommunicationLane> m_lane;
    int32_t m_communicator = 0;
    int64_t m_sequence = 0;
};

} // namespace shardscope::engine
