// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/train/state_access.h"

#include <c10/core/Event.h>
#include <optional>

namespace shardscope::train {

/// A copy on the host of what a rank owns of all states, at one step. It is taken in the order of the device's work:
/// what the training enqueues afterwards does not change it. Host memory: the bytes that the rank owns (12 a parameter
/// ÷ ranks with AdamW), pinned where there is a GPU, until it is destroyed.
class StateSnapshot
{
public:
    /// Enqueues the copies and does not wait for the device. Throws (c10::Error) where memory lacks.
    StateSnapshot(const StateShards &shards, at::Device device);

    /// Until the copies are done. Any thread.
    void wait();
    /// After wait(). Any thread; touches no device.
    Result<> write(files::PartWriter &writer) const;

    int64_t sizeBytes() const { return m_sizeBytes; }

private:
    struct Section
    {
        std::string bucket;
        std::string state;
        files::ElementSpan elements;
        int64_t offsetBytes = 0; ///< in the blocks, one after the other
    };
    void copy(const at::Tensor &owned_S, int64_t offsetBytes);
    std::span<const std::byte> bytes(int64_t offsetBytes, int64_t sizeBytes, std::vector<std::byte> &scratch) const;

    std::vector<Section> m_sections;
    std::vector<at::Tensor> m_blocks; ///< uint8, of kBlockBytes each, the last one smaller
    int64_t m_sizeBytes = 0;
    std::optional<c10::Event> m_copied;
    StateShards m_source; ///< keeps the device's tensors alive until they are copied
};

} // namespace shardscope::train
