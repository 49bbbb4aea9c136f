// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: G a whole padded bucket, S one rank's slice of it.
#pragma once

#include "core/base/result.h"
#include "core/observe/observer.h"

#include <ATen/core/Tensor.h>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace gloo::transport {
class Device;
}

namespace shardscope::engine {

class CommunicationLane;

/// What was enqueued and may not be done yet. Copies are handles to the same work; an empty one is done.
class Pending
{
public:
    struct State;
    Pending() = default;
    explicit Pending(std::shared_ptr<State> state, int64_t collective = observe::kNoCollective)
        : m_state(std::move(state))
        , m_collective(collective)
    {
    }
    /// CUDA: the current stream waits, the thread does not. CPU: the thread waits. Throws what the work threw.
    void wait() const;
    explicit operator bool() const { return m_state != nullptr; }
    /// The number that the observer gave it.
    int64_t collective() const { return m_collective; }
    Pending numbered(int64_t collective) const { return Pending(m_state, collective); }

private:
    std::shared_ptr<State> m_state;
    int64_t m_collective = observe::kNoCollective;
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
/// Call all of it from one thread, in the same order on all ranks. Tensors must stay alive, and on the device's current
/// stream, until the Pending is waited for.
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
    /// A process group of some of this one's ranks, in ascending order, this one among them. The members call it alike,
    /// in the same order, and nobody else need. Throws where they can't connect. This must outlive it. ownQueue: on
    /// CUDA its collectives run beside the others', so what its sums need of those is given to them as `after`; without
    /// it, and with Gloo, in the same queue.
    std::unique_ptr<Communicator> subgroup(const std::vector<int> &members, bool ownQueue = false);

    int rank() const { return m_options.rank; }
    int worldSize() const { return m_options.worldSize; }
    at::Device device() const { return m_options.device; }

    /// Copies slice_S (any float dtype) to this rank's place in gathered_G and gathers the others' there.
    Pending allGather(const at::Tensor &gathered_G, const at::Tensor &slice_S, CollectiveTag tag);
    /// Sums the ranks' full_G (fp32) and leaves this rank's part in slice_S, or adds it there. full_G is used up.
    Pending reduceScatter(const at::Tensor &full_G, const at::Tensor &slice_S, bool accumulate, CollectiveTag tag);
    /// Sums over the ranks, in place; fp32 or fp64. after: what must be done first, of another queue.
    Pending allReduce(const at::Tensor &tensor, CollectiveTag tag, const Pending &after = {});
    /// The two with fp32 tensors that travel in bf16: every rank's part is rounded, its own too, and the parts are
    /// added in fp32 in the order of the ranks. allReduceInBf16() rounds the sum as well, so that all ranks have the
    /// same; the ranks must divide its elements.
    Pending reduceScatterInBf16(const at::Tensor &full_G, const at::Tensor &slice_S, bool accumulate,
                                CollectiveTag tag);
    Pending allReduceInBf16(const at::Tensor &tensor, CollectiveTag tag, const Pending &after = {});
    Pending broadcast(const at::Tensor &tensor, int root, CollectiveTag tag);
    /// Returns when all ranks have come here.
    void barrier();

    /// Breaks off what waits for another rank (from any thread), subgroups included, so that this process can end.
    void abort();

private:
    Communicator(const Options &options, observe::Observer &observer, std::shared_ptr<CommunicationLane> lane,
                 std::vector<int32_t> members);
    void connect();
    std::string storePrefix() const;
    /// The work in the queue, for the observer of this unit and phase. With NCCL it is called at once.
    Pending enqueue(CollectiveTag tag, std::function<void()> work);
    /// Reports the collective, and enqueues prepare() and transfer() with what the backend needs for its report.
    Pending enqueue(observe::CollectiveInfo info, CollectiveTag tag, std::function<void()> prepare,
                    std::function<void()> transfer);
    at::Tensor scratch(int64_t elements, const at::Tensor &like, CollectiveTag tag);
    struct Bf16Parts;
    Bf16Parts bf16Parts(const at::Tensor &full_G, CollectiveTag tag);

    Options m_options;
    observe::Observer &m_observer;
    std::shared_ptr<::gloo::transport::Device> m_glooDevice; ///< subgroups have their parent's; with NCCL none
    c10::intrusive_ptr<c10d::Backend> m_group;
    std::shared_ptr<CommunicationLane> m_lane;
    std::vector<int32_t> m_members; ///< global ranks
    int32_t m_communicator = 0;
    int64_t m_sequence = 0;
    bool m_connected = false;
    Communicator *m_parent = nullptr;
    int m_number = 0;   ///< of those that were made of the same ranks before it
    std::mutex m_mutex; ///< guards the next two
    std::vector<Communicator *> m_subgroups;
    std::map<std::vector<int32_t>, int> m_made; ///< how many, by members
    std::atomic<bool> m_aborted = false;
};

} // namespace shardscope::engine
