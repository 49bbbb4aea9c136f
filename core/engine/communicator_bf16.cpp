// SPDX-License-Identifier: Apache-2.0
// Reductions that send bf16 and add in fp32. NCCL's own would add in bf16, in an order of its choice: the parts are
// exchanged, and each rank adds those that are its own.
#include "core/engine/communication_lane.h"
#include "core/engine/communicator.h"
#include "core/engine/flat_kernels.h"
#include "core/engine/gloo_exchange.h"
#include "core/engine/sum_parts.h"
#include "core/model/kernels/kernels.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>

namespace shardscope::engine {

static constexpr int64_t kBf16Bytes = 2;

/// What travels of one tensor. On CUDA it is made on the lane, whose stream alone uses it; on the CPU before, because
/// memory tags are the caller's thread's, and the lane's work holds it.
struct Communicator::Bf16Parts
{
    c10::intrusive_ptr<c10d::Backend> group;
    at::Tensor sent_G;
    at::Tensor received_G;

    int64_t partElements() const { return sent_G.numel() / group->getSize(); }
    at::Tensor ownOf(const at::Tensor &whole_G) const
    {
        return whole_G.narrow(0, group->getRank() * partElements(), partElements());
    }
    static void widen(const at::Tensor &to, const at::Tensor &from)
    {
        if (to.is_cuda())
            at::Tensor(to).copy_(from);
        else
            sumParts(to.mutable_data_ptr<float>(), {static_cast<const uint16_t *>(from.const_data_ptr())}, to.numel(),
                     false);
    }
    void reduceScatter(const at::Tensor &full_G, const at::Tensor &slice_S, bool accumulate) const;
    void allGather() const;
};

Communicator::Bf16Parts Communicator::bf16Parts(const at::Tensor &full_G, CollectiveTag tag)
{
    const observe::MemoryScope memory(m_observer, {MemoryCategory::Communication, tag.unit});
    const auto bf16 = full_G.options().dtype(at::kBFloat16);
    return {m_group, at::empty({full_G.numel()}, bf16), at::empty({full_G.numel()}, bf16)};
}

void Communicator::Bf16Parts::reduceScatter(const at::Tensor &full_G, const at::Tensor &slice_S, bool accumulate) const
{
    copyInto(sent_G, full_G);
    if (!full_G.is_cuda())
        return gloo::reduceScatter(*group, sent_G, slice_S, received_G, accumulate);
    c10d::AllToAllOptions options;
    options.asyncOp = false;
    at::Tensor output = received_G, input = sent_G;
    std::vector<int64_t> equal; // parts
    group->alltoall_base(output, input, equal, equal, options);
    model::kernels::cuda::sumParts(slice_S.mutable_data_ptr<float>(),
                                   static_cast<const uint16_t *>(received_G.const_data_ptr()), group->getSize(),
                                   partElements(), accumulate, c10::cuda::getCurrentCUDAStream().stream());
}

/// Of sent_G, in which this rank's own part has what it gives.
void Communicator::Bf16Parts::allGather() const
{
    if (!sent_G.is_cuda())
        return gloo::allGather(*group, sent_G);
    c10d::AllgatherOptions options;
    options.asyncOp = false;
    at::Tensor output = sent_G, input = ownOf(sent_G);
    group->_allgather_base(output, input, options);
}

Pending Communicator::reduceScatterInBf16(const at::Tensor &full_G, const at::Tensor &slice_S, bool accumulate,
                                          CollectiveTag tag)
{
    TORCH_CHECK(full_G.numel() == slice_S.numel() * worldSize(), "reduceScatterInBf16: the slice is not one of ",
                worldSize());
    if (worldSize() == 1) // nothing travels
        return reduceScatter(full_G, slice_S, accumulate, tag);
    observe::CollectiveInfo info;
    info.operation = Operation::ReduceScatter;
    info.dtype = toText(Precision::Bf16);
    info.inputBytes = full_G.numel() * kBf16Bytes;
    info.outputBytes = slice_S.numel() * kBf16Bytes;
    const Bf16Parts before = device().is_cuda() ? Bf16Parts() : bf16Parts(full_G, tag);
    return enqueue(info, tag, {}, [=, this] {
        const Bf16Parts parts = before.group ? before : bf16Parts(full_G, tag);
        parts.reduceScatter(full_G, slice_S, accumulate);
    });
}

Pending Communicator::allReduceInBf16(const at::Tensor &tensor, CollectiveTag tag, const Pending &after)
{
    TORCH_CHECK(tensor.numel() % worldSize() == 0, "allReduceInBf16: ", worldSize(), " ranks don't divide ",
                tensor.numel(), " elements");
    if (worldSize() == 1)
        return {};
    observe::CollectiveInfo info;
    info.operation = Operation::AllReduce;
    info.dtype = toText(Precision::Bf16);
    info.inputBytes = info.outputBytes = tensor.numel() * kBf16Bytes;
    const Bf16Parts before = device().is_cuda() ? Bf16Parts() : bf16Parts(tensor, tag);
    std::function<void()> follow;
    if (device().is_cuda()) // with Gloo it is the same queue
        follow = [&after] { after.wait(); };
    return enqueue(info, tag, follow, [=, this] {
        const Bf16Parts parts = before.group ? before : bf16Parts(tensor, tag);
        const at::Tensor own_S = parts.ownOf(tensor);
        parts.reduceScatter(tensor, own_S, false);
        copyInto(parts.ownOf(parts.sent_G), own_S);
        parts.allGather();
        Bf16Parts::widen(tensor, parts.sent_G);
    });
}

} // namespace shardscope::engine
