// SPDX-License-Identifier: Apache-2.0
#include "core/train/batch_loader.h"

#include <algorithm>
#include <torch/torch.h>

namespace shardscope::train {

BatchLoader::BatchLoader(const data::Dataset &dataset, at::Device device)
    : m_dataset(dataset)
    , m_device(device)
{
}

template <typename ReadSample>
Batch BatchLoader::make(int64_t count, ReadSample readSample) const
{
    const int64_t length = m_dataset.sequenceLength();
    const auto options = at::TensorOptions().dtype(at::kLong).pinned_memory(m_device.is_cuda());
    at::Tensor host_2BT = at::empty({2, count, length}, options);
    auto *tokens = host_2BT.mutable_data_ptr<int64_t>();
    int64_t *targets = tokens + count * length;
    std::vector<int64_t> sample(static_cast<size_t>(length) + 1);
    Batch batch;
    for (int64_t row = 0; row < count; ++row) {
        const bool counts = readSample(row, std::span(sample));
        std::copy_n(sample.begin(), length, tokens + row * length);
        if (counts)
            std::copy_n(sample.begin() + 1, length, targets + row * length);
        else
            std::fill_n(targets + row * length, length, int64_t{-1});
        batch.countedTokens += counts ? length : 0;
    }
    const at::Tensor device_2BT = host_2BT.to(m_device, /*non_blocking=*/true);
    batch.tokens_BT = device_2BT.select(0, 0);
    batch.targets_BT = device_2BT.select(0, 1);
    return batch;
}

Batch BatchLoader::training(int64_t first, int64_t count) const
{
    return make(count, [&](int64_t row, std::span<int64_t> sample) {
        m_dataset.sample(first + row, sample);
        return true;
    });
}

Batch BatchLoader::validation(int64_t first, int64_t count, int64_t available) const
{
    return make(count, [&](int64_t row, std::span<int64_t> sample) {
        const bool counts = first + row < available;
        m_dataset.validationSample(counts ? first + row : 0, sample);
        return counts;
    });
}

} // namespace shardscope::train
