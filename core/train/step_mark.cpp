// SPDX-License-Identifier: Apache-2.0
#include "core/train/step_mark.h"

#include "core/base/clock.h"

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>
#include <cmath>

namespace shardscope::train {

struct StepMark::CudaEvent
{
    at::cuda::CUDAEvent event{cudaEventDefault}; // with timing
};

StepMark::StepMark() = default;
StepMark::~StepMark() = default;
StepMark::StepMark(StepMark &&) noexcept = default;
StepMark &StepMark::operator=(StepMark &&) noexcept = default;

StepMark StepMark::now(c10::Device device)
{
    StepMark mark;
    mark.m_hostNs = monotonicNs();
    if (device.is_cuda()) {
        mark.m_event = std::make_unique<CudaEvent>();
        mark.m_event->event.record(c10::cuda::getCurrentCUDAStream(device.index()));
    }
    return mark;
}

int64_t StepMark::nsSince(const StepMark &earlier) const
{
    if (!m_event || !earlier.m_event)
        return m_hostNs - earlier.m_hostNs;
    m_event->event.synchronize();
    return std::llround(static_cast<double>(earlier.m_event->event.elapsed_time(m_event->event)) * 1e6);
}

} // namespace shardscope::train
