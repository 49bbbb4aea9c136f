// SPDX-License-Identifier: Apache-2.0
#include "core/engine/gloo_exchange.h"

#include "core/engine/sum_parts.h"

#include <ATen/ops/narrow.h>
#include <vector>

namespace shardscope::engine::gloo {

/// The queue runs one collective at a time and messages of one pair keep their order, so one tag does.
static constexpr int kTag = 0;

static at::Tensor part(const at::Tensor &whole_G, int64_t index, int64_t parts)
{
    const int64_t elements = whole_G.numel() / parts;
    return whole_G.narrow(0, index * elements, elements);
}

/// Sends out(peer) to each peer and receives into in(peer) from it, all at once.
template <typename Out, typename In>
static void exchange(c10d::Backend &group, Out out, In in)
{
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (int step = 1; step < group.getSize(); ++step) {
        // Each rank begins with another peer, so that no one is sent to by all.
        const int from = (group.getRank() + group.getSize() - step) % group.getSize();
        const int to = (group.getRank() + step) % group.getSize();
        std::vector<at::Tensor> received{in(from)};
        works.push_back(group.recv(received, from, kTag));
        std::vector<at::Tensor> sent{out(to)};
        works.push_back(group.send(sent, to, kTag));
    }
    for (const auto &work : works)
        work->wait();
}

void allGather(c10d::Backend &group, const at::Tensor &gathered_G)
{
    const int64_t size = group.getSize();
    exchange(
        group, [&](int) { return part(gathered_G, group.getRank(), size); },
        [&](int from) { return part(gathered_G, from, size); });
}

/// Part: of the parts' elements, those of bf16 as their bits.
template <typename T, typename Part = T>
static void sumInto(const at::Tensor &slice_S, const std::vector<at::Tensor> &parts, bool accumulate)
{
    std::vector<const Part *> pointers;
    for (const at::Tensor &one : parts)
        pointers.push_back(static_cast<const Part *>(one.const_data_ptr()));
    sumParts(slice_S.mutable_data_ptr<T>(), pointers, slice_S.numel(), accumulate);
}

void reduceScatter(c10d::Backend &group, const at::Tensor &full_G, const at::Tensor &slice_S,
                   const at::Tensor &scratch_G, bool accumulate)
{
    const int64_t size = group.getSize();
    exchange(
        group, [&](int to) { return part(full_G, to, size); }, [&](int from) { return part(scratch_G, from, size); });
    std::vector<at::Tensor> parts;
    for (int64_t rank = 0; rank < size; ++rank)
        parts.push_back(part(rank == group.getRank() ? full_G : scratch_G, rank, size));
    if (full_G.scalar_type() == at::kDouble)
        sumInto<double>(slice_S, parts, accumulate);
    else if (full_G.scalar_type() == at::kBFloat16)
        sumInto<float, uint16_t>(slice_S, parts, accumulate);
    else
        sumInto<float>(slice_S, parts, accumulate);
}

} // namespace shardscope::engine::gloo
