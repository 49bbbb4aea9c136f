// SPDX-License-Identifier: Apache-2.0
// What a recording at light or full starts beside its own thread: at the start of a rank, or when its level is raised.
#pragma once

#include "profiler/collect/metrics_sampler.h"
#include "profiler/collect/recorder.h"

#include <memory>
#include <string>
#include <vector>

namespace shardscope::collect {

/// Starts what records the device (options.activity, where a test gives one), or says why there will be no kernels.
/// Null at off, and where the device is no CUDA device.
Result<std::unique_ptr<ActivitySource>> startActivity(RecorderOptions &options);

/// Null at off. What is missing is a warning.
std::unique_ptr<MetricsSampler> startMetrics(RecorderOptions &options, std::vector<std::string> &warnings);

} // namespace shardscope::collect
