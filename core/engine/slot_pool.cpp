// SPDX-License-Identifier: Apache-2.0
#include "core/engine/slot_pool.h"

#include <ATen/ops/empty.h>

namespace shardscope::engine {

size_t SlotPool::addClass(int64_t elements, size_t limit)
{
    m_classes.push_back({elements, limit, {}, 0});
    return m_classes.size() - 1;
}

at::Tensor SlotPool::take(size_t slotClass, const at::TensorOptions &options)
{
    SlotClass &slots = m_classes[slotClass];
    if (!slots.free.empty()) {
        at::Tensor slot = std::move(slots.free.back());
        slots.free.pop_back();
        return slot;
    }
    if (slots.made == slots.limit)
        return {};
    ++slots.made;
    return at::empty({slots.elements}, options);
}

void SlotPool::giveBack(size_t slotClass, at::Tensor slot)
{
    m_classes[slotClass].free.push_back(std::move(slot));
}

void SlotPool::clear()
{
    for (SlotClass &slots : m_classes) {
        slots.made -= slots.free.size();
        slots.free.clear();
    }
}

} // namespace shardscope::engine
