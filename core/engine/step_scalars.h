// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/engine/gradient_scaler.h"
#include "core/observe/observer.h"

#include <ATen/core/Tensor.h>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

namespace shardscope::engine {

/// A digest of the collectives that this rank has issued since the last digest(): which, of what, in which order. It
/// must be the same on all ranks, or their collectives would wait for each other in vain, or mix what does not belong
/// together.
class CollectiveOrder
{
public:
    void add(Operation operation, observe::UnitIndex bucket)
    {
        m_digest =
            (m_digest * 31 + static_cast<uint64_t>(operation) * 1009 + static_cast<uint64_t>(bucket) + 7) % kModulus;
    }
    /// Exact in a double, also summed over ranks; begins anew.
    double digest() { return static_cast<double>(std::exchange(m_digest, 0)); }

private:
    static constexpr uint64_t kModulus = (uint64_t{1} << 40U) - 87; // a prime
    uint64_t m_digest = 0;
};

/// What one step sums over all ranks in one small collective, on the device until host() is called.
class StepScalars
{
public:
    static constexpr int64_t kWords = 6;
    static constexpr int64_t kSquares = 0;
    static constexpr int64_t kLoss = 1;
    static constexpr int64_t kOrder = 2;
    static constexpr int64_t kFirstWord = 3;
    static constexpr int64_t kSummed = kFirstWord + kWords;
    static constexpr int64_t kScale = kSummed; ///< the same on all ranks, and not summed
    static constexpr int64_t kCount = kScale + 1;
    struct Values
    {
        double lossSum = 0;         ///< over all ranks
        double gradientSquares = 0; ///< of the whole gradient, before clipping and without the scaler's scale
        double scale = 0;           ///< that the scaler of fp16 training had in this step; 0: there is none
        std::array<double, kWords> words{};
        double gradientNorm() const { return std::sqrt(gradientSquares); }
        /// Loss and gradient; an update of what is not changes nothing.
        bool isFinite() const { return std::isfinite(lossSum) && std::isfinite(gradientSquares); }
        /// A gradient passed what fp16 holds while a lower scale may help: the step was skipped, the scale is lower.
        bool overflowed() const
        {
            return scale > GradientScaler::kFloor && std::isfinite(lossSum) && !std::isfinite(gradientSquares);
        }
        bool isAtFloor() const { return scale > 0 && scale <= GradientScaler::kFloor; }
    };

    StepScalars() = default;
    /// scalars_K: fp64, on the device. Starts the copy to the host; what the device is given later is not waited for.
    /// order: what its element kOrder must be (CollectiveOrder::digest() × ranks).
    explicit StepScalars(at::Tensor scalars_K, double order = 0);

    const at::Tensor &tensor() const { return m_scalars_K; }
    /// Holds no memory of the device, and knows but host().
    StepScalars withoutDevice() const;
    /// Waits until the device has come to these scalars. Throws where the ranks have not issued the same collectives.
    Values host() const;

private:
    at::Tensor m_scalars_K;
    at::Tensor m_host_K;
    double m_order = 0;
    std::function<void()> m_waitForCopy;
};

} // namespace shardscope::engine
