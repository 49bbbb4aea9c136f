// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <array>
#include <cmath>

namespace shardscope::engine {

/// What one step sums over all ranks in one small collective, on the device until host() is called.
class StepScalars
{
public:
    static constexpr int64_t kWords = 6;
    struct Values
    {
        double lossSum = 0;         ///< over all ranks
        double gradientSquares = 0; ///< of the whole gradient, before clipping
        std::array<double, kWords> words{};
        double gradientNorm() const { return std::sqrt(gradientSquares); }
    };

    StepScalars() = default;
    explicit StepScalars(at::Tensor scalars_K)
        : m_scalars_K(std::move(scalars_K))
    {
    }
    /// fp64: [squares of the gradient, loss, words …].
    const at::Tensor &tensor() const { return m_scalars_K; }
    /// Waits for the device.
    Values host() const;

private:
    at::Tensor m_scalars_K;
};

} // namespace shardscope::engine
