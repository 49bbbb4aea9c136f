// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: S a rank's part of a bucket.
#include "core/train/state_snapshot.h"

#include <ATen/Functions.h>
#include <algorithm>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <iterator>

namespace shardscope::train {

/// LibTorch rounds pinned memory up to a power of two: blocks that are one waste nothing, and are taken again by the
/// next checkpoint.
static constexpr int64_t kBlockBytes = int64_t{64} << 20;
static constexpr int64_t kAlignBytes = 256; // sections of another dtype need it, copies like it

StateSnapshot::StateSnapshot(const StateShards &shards, at::Device device)
{
    const at::NoGradGuard noGrad;
    for (const engine::StateShard &shard : shards) {
        m_sections.push_back({shard.layout->name, shard.state, {shard.owned.begin, shard.owned.end}, m_sizeBytes});
        const int64_t size = shard.owned.size() * shard.data_S.element_size();
        m_sizeBytes += (size + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
    }
    const auto options = at::TensorOptions().dtype(at::kByte).pinned_memory(device.is_cuda());
    for (int64_t allocated = 0; allocated < m_sizeBytes; allocated += kBlockBytes)
        m_blocks.push_back(at::empty({std::min(kBlockBytes, m_sizeBytes - allocated)}, options));
    for (size_t i = 0; i < shards.size(); ++i)
        copy(shards[i].ownedData(), m_sections[i].offsetBytes);
    // What lies on the host is copied by now, and is the engine's again with its next step.
    std::ranges::copy_if(shards, std::back_inserter(m_source),
                         [](const engine::StateShard &shard) { return shard.data_S.is_cuda(); });
    if (device.is_cuda()) {
        const c10::impl::VirtualGuardImpl guard(device.type());
        m_copied.emplace(device.type());
        m_copied->record(guard.getStream(device));
    }
}

void StateSnapshot::copy(const at::Tensor &owned_S, int64_t offsetBytes)
{
    const int64_t elementBytes = owned_S.element_size();
    for (int64_t done = 0; done < owned_S.numel();) {
        const int64_t at = offsetBytes + done * elementBytes;
        const int64_t inBlock = at % kBlockBytes;
        const int64_t elements = std::min(owned_S.numel() - done, (kBlockBytes - inBlock) / elementBytes);
        m_blocks[static_cast<size_t>(at / kBlockBytes)]
            .narrow(0, inBlock, elements * elementBytes)
            .view(owned_S.scalar_type())
            .copy_(owned_S.narrow(0, done, elements), /*non_blocking=*/true);
        done += elements;
    }
}

void StateSnapshot::wait()
{
    if (m_copied)
        m_copied->synchronize();
    m_source.clear();
}

std::span<const std::byte> StateSnapshot::bytes(int64_t offsetBytes, int64_t sizeBytes,
                                                std::vector<std::byte> &scratch) const
{
    const auto part = [&](int64_t at, int64_t size) {
        const at::Tensor &block = m_blocks[static_cast<size_t>(at / kBlockBytes)];
        return std::span(static_cast<const std::byte *>(block.const_data_ptr()) + at % kBlockBytes,
                         static_cast<size_t>(size));
    };
    const int64_t first = std::min(sizeBytes, kBlockBytes - offsetBytes % kBlockBytes);
    if (first == sizeBytes)
        return part(offsetBytes, sizeBytes);
    scratch.resize(static_cast<size_t>(sizeBytes));
    std::ranges::copy(part(offsetBytes, first), scratch.begin());
    std::ranges::copy(part(offsetBytes + first, sizeBytes - first), scratch.begin() + first);
    return scratch;
}

Result<> StateSnapshot::write(files::PartWriter &writer) const
{
    std::vector<std::byte> scratch;
    for (const Section &section : m_sections) {
        const auto read = [&](int64_t offset, int64_t size) -> Result<std::span<const std::byte>> {
            return bytes(section.offsetBytes + offset, size, scratch);
        };
        if (auto written = writer.write(section.bucket, section.state, section.elements, read); !written)
            return written;
    }
    return {};
}

} // namespace shardscope::train
