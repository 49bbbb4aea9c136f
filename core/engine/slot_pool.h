// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <cstdint>
#include <vector>

namespace shardscope::engine {

/// Gathered buffers of fixed number. Buckets that are never needed together share a class of slots as large as the
/// largest of them. Slots are allocated when first wanted and freed by clear(). A slot that comes back is
/// handed out again in the order of the compute stream, which has waited for the gather into it, and every gather waits
/// for that stream: so no foreign stream is still at it.
class SlotPool
{
public:
    /// Forgets all classes; no slot may be out.
    void reset() { m_classes.clear(); }
    /// Returns the number of the new class.
    size_t addClass(int64_t elements, size_t limit);
    /// The flat buffer of a free slot; undefined where all of the class are taken.
    at::Tensor take(size_t slotClass, const at::TensorOptions &options);
    void giveBack(size_t slotClass, at::Tensor slot);
    /// Frees what is not out.
    void clear();

private:
    struct SlotClass
    {
        int64_t elements = 0;
        size_t limit = 1;
        std::vector<at::Tensor> free;
        size_t made = 0;
    };
    std::vector<SlotClass> m_classes;
};

} // namespace shardscope::engine
