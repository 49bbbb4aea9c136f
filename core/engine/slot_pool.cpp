// SPDX-License-Identifier: Apache-2.0
#include "core/engine/sharded_unit.h"

#include <ATen/ops/empty.h>

namespace shardscope::engine {

at::Tensor SlotPool::take(int64_t elements, size_t limit, const at::TensorOptions &options)
{
    SizeClass &sizes = m_classes[elements];
    if (!sizes.free.empty()) {
        at::Tensor slot = std::move(sizes.free.back());
        sizes.free.pop_back();
        return slot;
    }
    if (sizes.made == limit)
        return {};
    ++sizes.made;
    return at::empty({elements}, options);
}

void SlotPool::giveBack(at::Tensor slot)
{
    m_classes[slot.numel()].free.push_back(std::move(slot));
}

void SlotPool::clear()
{
    m_classes.clear();
}

} // namespace shardscope::engine
