// SPDX-License-Identifier: Apache-2.0
#include "core/engine/communicator.h"

#include "core/engine/communication_lane.h"
#include "core/engine/dtype.h"
#include "core/engine/flat_kernels.h"
#include "core/engine/gloo_device.h"
#include "core/engine/gloo_exchange.h"

#include <ATen/ATen.h>
#include <algorithm>
#include <c10/core/ScalarType.h>
#include <c10/cuda/CUDAStream.h>
#include <chrono>
#include <numeric>
#include <random>
#include <spdlog/spdlog.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace shardscope::engine {

static constexpr auto kStorePrefix = "shardscope/communicator";

static int64_t bytesOf(const at::Tensor &tensor)
{
    return static_cast<int64_t>(tensor.nbytes());
}

static std::string newUid()
{
    std::random_device entropy;
    return fmt::format("{:08x}{:08x}", entropy(), entropy());
}

Result<std::unique_ptr<Communicator>> Communicator::create(const Options &options, observe::Observer &observer)
{
    if (options.worldSize > 1 && !options.store)
        return fail("Rank {} of {} was given no store to meet the other ranks in.", options.rank, options.worldSize);
    try {
        std::vector<int32_t> members(static_cast<size_t>(options.worldSize));
        std::iota(members.begin(), members.end(), 0);
        std::unique_ptr<Communicator> communicator(
            new Communicator(options, observer, CommunicationLane::create(options.device), std::move(members)));
        if (options.worldSize > 1)
            communicator->connect();
        return communicator;
    } catch (const std::exception &error) {
        return fail("Rank {} could not connect to the other {} ranks over {}: {}", options.rank, options.worldSize - 1,
                    options.device.is_cuda() ? "NCCL" : "Gloo", error.what());
    }
}

Communicator::Communicator(const Options &options, observe::Observer &observer, std::shared_ptr<CommunicationLane> lane,
                           std::vector<int32_t> members)
    : m_options(options)
    , m_observer(observer)
    , m_lane(std::move(lane))
    , m_members(std::move(members))
{
}

std::unique_ptr<Communicator> Communicator::subgroup(const std::vector<int> &members, bool ownQueue)
{
    Options options = m_options;
    options.worldSize = static_cast<int>(members.size());
    const auto own = std::ranges::find(members, rank());
    TORCH_CHECK(own != members.end(), "rank ", rank(), " is no member of the group that it is to make");
    options.rank = static_cast<int>(own - members.begin());
    std::vector<int32_t> global;
    for (const int member : members)
        global.push_back(m_members[static_cast<size_t>(member)]);
    std::unique_ptr<Communicator> group(new Communicator(
        options, m_observer, ownQueue && device().is_cuda() ? CommunicationLane::create(device()) : m_lane,
        std::move(global)));
    group->m_parent = this;
    group->m_glooDevice = m_glooDevice; // one thread for all, as one queue
    {
        const std::lock_guard lock(m_mutex);
        m_subgroups.push_back(group.get());
        group->m_number = m_made[group->m_members]++;
    }
    if (options.worldSize > 1)
        group->connect();
    return group;
}

/// Of its own for each group, lest one finds what another of the same members left there.
std::string Communicator::storePrefix() const
{
    return fmt::format("{}/{}/{}", kStorePrefix, fmt::join(m_members, "-"), m_number);
}

Communicator::~Communicator()
{
    if (m_parent) {
        const std::lock_guard lock(m_parent->m_mutex);
        std::erase(m_parent->m_subgroups, this);
    }
    // Waits for the other ranks to finish theirs; after an abort, or without a connection, nobody would come.
    if (!m_connected || m_aborted)
        return;
    try {
        m_group->shutdown();
    } catch (const std::exception &error) {
        spdlog::warn("The connection to the other ranks did not close in order: {}", error.what());
    }
}

void Communicator::connect()
{
    const auto store = c10::make_intrusive<c10d::PrefixStore>(storePrefix(), m_options.store);
    if (rank() == 0)
        store->set("uid", newUid());
    const std::vector<uint8_t> uid = store->get("uid");
    if (device().is_cuda()) {
        auto options = c10d::ProcessGroupNCCL::Options::create(true);
        options->timeout = m_options.timeout;
        m_group = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank(), worldSize(), options);
    } else {
        auto options = c10d::ProcessGroupGloo::Options::create(m_options.timeout);
        if (!m_glooDevice)
            m_glooDevice = gloo::loopbackDevice();
        options->devices.push_back(m_glooDevice);
        options->threads = 1; // the queue runs one at a time
        m_group = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank(), worldSize(), options);
    }
    observe::CommunicatorInfo info;
    info.uid = std::string(uid.begin(), uid.end());
    info.backend = device().is_cuda() ? "nccl" : "gloo";
    info.rankInIt = rank();
    info.members = m_members;
    m_communicator = m_observer.onCommunicator(info);
    // NCCL connects at the first call: make it here, so that what prevents it is told here.
    barrier();
    m_connected = true;
}

Pending Communicator::enqueue(CollectiveTag tag, std::function<void()> work)
{
    return m_lane->enqueue([&observer = m_observer, tag, work = std::move(work)] {
        const observe::DeviceWorkScope scope(observer, tag.phase, tag.unit);
        work();
    });
}

Pending Communicator::enqueue(observe::CollectiveInfo info, CollectiveTag tag, std::function<void()> prepare,
                              std::function<void()> transfer)
{
    info.communicator = m_communicator;
    info.sequence = m_sequence++;
    info.unit = tag.unit;
    info.phase = tag.phase;
    if (device().is_cuda()) {
        int64_t collective = observe::kNoCollective;
        const Pending pending = enqueue(tag, [&] {
            if (prepare)
                prepare();
            info.stream = c10::cuda::getCurrentCUDAStream().stream();
            collective = m_observer.beginCollective(info);
            transfer();
            m_observer.collectiveEnqueued(collective);
        });
        return pending.numbered(collective);
    }
    const int64_t collective = m_observer.beginCollective(info);
    const Pending pending = m_lane->enqueue(
        [&observer = m_observer, collective, prepare = std::move(prepare), transfer = std::move(transfer)] {
            if (prepare)
                prepare();
            observer.collectiveStarted(collective);
            transfer();
            observer.collectiveEnded(collective);
        });
    m_observer.collectiveEnqueued(collective);
    return pending.numbered(collective);
}

at::Tensor Communicator::scratch(int64_t elements, const at::Tensor &like, CollectiveTag tag)
{
    const observe::MemoryScope memory(m_observer, {MemoryCategory::Communication, tag.unit});
    return at::empty({elements}, like.options());
}

Pending Communicator::allGather(const at::Tensor &gathered_G, const at::Tensor &slice_S, CollectiveTag tag)
{
    const at::Tensor own_S = gathered_G.narrow(0, rank() * slice_S.numel(), slice_S.numel());
    auto prepare = [own_S, slice_S] { copyInto(own_S, slice_S); };
    if (worldSize() == 1)
        return enqueue(tag, prepare);
    observe::CollectiveInfo info;
    info.operation = Operation::AllGather;
    info.dtype = dtypeName(gathered_G.scalar_type());
    info.inputBytes = bytesOf(own_S);
    info.outputBytes = bytesOf(gathered_G);
    auto transfer = [group = m_group, gathered_G, own_S, cuda = device().is_cuda()] {
        if (!cuda)
            return gloo::allGather(*group, gathered_G);
        c10d::AllgatherOptions options;
        options.asyncOp = false; // on the current stream, which is the lane's
        at::Tensor output = gathered_G, input = own_S;
        group->_allgather_base(output, input, options);
    };
    return enqueue(info, tag, prepare, transfer);
}

Pending Communicator::reduceScatter(const at::Tensor &full_G, const at::Tensor &slice_S, bool accumulate,
                                    CollectiveTag tag)
{
    TORCH_CHECK(full_G.numel() == slice_S.numel() * worldSize(), "reduceScatter: the slice is not one of ",
                worldSize());
    if (worldSize() == 1) {
        return enqueue(tag, [=] {
            if (accumulate)
                at::Tensor(slice_S).add_(full_G);
            else
                at::Tensor(slice_S).copy_(full_G);
        });
    }
    observe::CollectiveInfo info;
    info.operation = Operation::ReduceScatter;
    info.dtype = dtypeName(full_G.scalar_type());
    info.inputBytes = bytesOf(full_G);
    info.outputBytes = bytesOf(slice_S);
    if (!device().is_cuda()) {
        const at::Tensor scratch_G = scratch(full_G.numel(), full_G, tag);
        return enqueue(info, tag, {}, [group = m_group, full_G, slice_S, scratch_G, accumulate] {
            gloo::reduceScatter(*group, full_G, slice_S, scratch_G, accumulate);
        });
    }
    return enqueue(info, tag, {}, [this, full_G, slice_S, accumulate] {
        c10d::ReduceScatterOptions options;
        options.asyncOp = false;
        // In place, so that adding to the slice needs no third buffer.
        at::Tensor own_S = full_G.narrow(0, rank() * slice_S.numel(), slice_S.numel());
        at::Tensor input = full_G, output = accumulate ? own_S : slice_S;
        m_group->_reduce_scatter_base(output, input, options);
        if (accumulate)
            at::Tensor(slice_S).add_(own_S);
    });
}

Pending Communicator::allReduce(const at::Tensor &tensor, CollectiveTag tag, const Pending &after)
{
    if (worldSize() == 1)
        return {};
    observe::CollectiveInfo info;
    info.operation = Operation::AllReduce;
    info.dtype = dtypeName(tensor.scalar_type());
    info.inputBytes = info.outputBytes = bytesOf(tensor);
    if (device().is_cuda()) {
        return enqueue(
            info, tag, [&after] { after.wait(); },
            [group = m_group, tensor] {
                c10d::AllreduceOptions options;
                options.asyncOp = false;
                std::vector<at::Tensor> tensors{tensor};
                group->allreduce(tensors, options);
            });
    }
    const int64_t ranks = worldSize();
    if (tensor.numel() % ranks == 0 && tensor.numel() >= 1024 * ranks) {
        const at::Tensor scratch_G = scratch(tensor.numel(), tensor, tag);
        return enqueue(info, tag, {}, [group = m_group, tensor, scratch_G] {
            const int64_t part = tensor.numel() / group->getSize();
            gloo::reduceScatter(*group, tensor, tensor.narrow(0, group->getRank() * part, part), scratch_G, false);
            gloo::allGather(*group, tensor);
        });
    }
    // A few numbers: everybody gets everybody's and adds them in the order of the ranks.
    const at::Tensor all = scratch(tensor.numel() * ranks, tensor, tag);
    return enqueue(info, tag, {}, [group = m_group, tensor, all] {
        const int64_t elements = tensor.numel();
        all.narrow(0, group->getRank() * elements, elements).copy_(tensor);
        gloo::allGather(*group, all);
        at::sum_out(const_cast<at::Tensor &>(tensor), all.view({group->getSize(), elements}), 0);
    });
}

Pending Communicator::broadcast(const at::Tensor &tensor, int root, CollectiveTag tag)
{
    if (worldSize() == 1)
        return {};
    observe::CollectiveInfo info;
    info.operation = Operation::Broadcast;
    info.dtype = dtypeName(tensor.scalar_type());
    info.inputBytes = info.outputBytes = bytesOf(tensor);
    return enqueue(info, tag, {}, [group = m_group, tensor, root, cuda = device().is_cuda()] {
        c10d::BroadcastOptions options;
        options.rootRank = root;
        options.asyncOp = !cuda;
        std::vector<at::Tensor> tensors{tensor};
        const auto work = group->broadcast(tensors, options);
        if (!cuda)
            work->wait();
    });
}

void Communicator::barrier()
{
    const at::Tensor one = at::ones({1}, at::TensorOptions(device()).dtype(at::kDouble));
    allReduce(one, {observe::kNoUnit, Phase::Input}).wait();
    if (one.cpu().item<double>() != static_cast<double>(worldSize()) && worldSize() > 1)
        throw std::runtime_error("a barrier of the ranks gave a wrong count: their collectives are out of step");
}

void Communicator::abort()
{
    m_aborted = true;
    if (m_group)
        m_group->abort();
    const std::lock_guard lock(m_mutex);
    for (Communicator *group : m_subgroups)
        group->abort();
}

} // namespace shardscope::engine
