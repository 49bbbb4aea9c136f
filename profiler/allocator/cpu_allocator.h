// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/memory_source.h"

#include <c10/core/Allocator.h>

#include <memory>

namespace shardscope::allocator {

/// Live blocks, their sums and their peak; shared by the allocator, by the blocks it gave out and by the recorder.
class CpuMemory;

/// An allocator in front of another that counts what passes. What is known of a block stands in front of its bytes, so
/// a free needs no look-up and works on any thread, also after the counting has ended, and the context of a DataPtr is
/// its data pointer, as c10's raw interface (which oneDNN's kernels use) demands. These kHeaderBytes of each block are
/// the recorder's own and are not counted.
///
/// Counting costs one short lock an allocation: the peak across threads needs one order of all allocations anyway.
class CpuAllocator final : public c10::Allocator
{
public:
    /// A multiple of the 64 bytes that LibTorch aligns its blocks to.
    static constexpr size_t kHeaderBytes = 128;

    /// `base` must outlive every block.
    CpuAllocator(c10::Allocator &base, std::shared_ptr<collect::CurrentMemoryTag> tag);

    c10::DataPtr allocate(size_t bytes) override;
    c10::DeleterFnPtr raw_deleter() const override;
    void copy_data(void *target, const void *source, size_t bytes) const override;

    std::shared_ptr<collect::MemorySource> memory() const;

private:
    c10::Allocator &m_base;
    std::shared_ptr<collect::CurrentMemoryTag> m_tag;
    std::shared_ptr<CpuMemory> m_memory;
};

} // namespace shardscope::allocator
