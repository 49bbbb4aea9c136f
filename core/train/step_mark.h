// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <cstdint>
#include <memory>

namespace shardscope::train {

/// A moment by the clock that times a step: the device's on CUDA, where the host runs ahead, else the host's.
class StepMark
{
public:
    StepMark();
    ~StepMark();
    StepMark(StepMark &&) noexcept;
    StepMark &operator=(StepMark &&) noexcept;

    /// CUDA: when the work enqueued so far on the current stream is done. Waits for nothing.
    static StepMark now(c10::Device device);
    /// Waits until both moments have come.
    int64_t nsSince(const StepMark &earlier) const;

private:
    struct CudaEvent;
    int64_t m_hostNs = 0; ///< CLOCK_MONOTONIC
    std::unique_ptr<CudaEvent> m_event;
};

} // namespace shardscope::train
