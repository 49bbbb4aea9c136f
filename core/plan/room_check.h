// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/plan/step_forecast.h"

#include <optional>

namespace shardscope::plan {

/// What a rank has: on its device, and beside a GPU in the host's memory.
struct Room
{
    int64_t peakBytes = 0;                ///< what it was measured to hold at its fullest
    std::optional<int64_t> freeBytes;     ///< of its device for it, beyond that; none: not known
    std::optional<int64_t> freeHostBytes; ///< for what is offloaded there; none: not known, or the same memory
    DeviceKind device = DeviceKind::Cpu;
};

/// The peak of a running job under another configuration: the measured one, and by how much the plan says that the two
/// differ. So what the plan knows nothing of is as measured.
int64_t predictedPeak(const StepForecast &now, const StepForecast &next, int64_t measuredPeakBytes);

/// What a user should know before a run begins that is predicted to need more than a rank can have; empty where it is
/// not. Buffers of collectives and what the device's own libraries hold come on top.
std::string warningOfNeed(const StepForecast &forecast, int64_t capacityBytes);

/// Whether a change of a running job's configuration fits. A message with the predicted peak by category, with what
/// there is, and with the keys of which each by itself brings it below that. plan: the job's units and buckets, with
/// any settings.
Result<> checkRoom(const shapes::ModelPlan &plan, const shapes::ModelShape &shape, const config::RunConfiguration &now,
                   const config::RunConfiguration &next, const Room &room);

} // namespace shardscope::plan
