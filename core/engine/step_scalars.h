// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <array>
#include <cmath>
#include <functional>

namespace shardscope::engine {

/// What one step sums over all ranks in one small collective, on the device until host() is called.
class StepScalars
{
public:
    static constexpr int64_t kWords = 6;
    static constexpr int64_t kSquares = 0;
    static constexpr int64_t kLoss = 1;
    static constexpr int64_t kFirstWord = 2;
    static constexpr int64_t kCount = kFirstWord + kWords;
    struct Values
    {
        double lossSum = 0;         ///< over all ranks
        double gradientSquares = 0; ///< of the whole gradient, before clipping
        std::array<double, kWords> words{};
        double gradientNorm() const { return std::sqrt(gradientSquares); }
    };

    StepScalars() = default;
    /// scalars_K: fp64, on the device. Starts the copy to the host; what the device is given later is not waited for.
    explicit StepScalars(at::Tensor scalars_K);

    const at::Tensor &tensor() const { return m_scalars_K; }
    /// Waits until the device has come to these scalars.
    Values host() const;
    /// min(1, clipNorm ÷ (norm + 1e-6)) as an fp32 scalar on the device, as torch.nn.utils.clip_grad_norm_.
    at::Tensor clipCoefficient(double clipNorm) const;

private:
    at::Tensor m_scalars_K;
    at::Tensor m_host_K;
    std::function<void()> m_waitForCopy;
};

} // namespace shardscope::engine
