// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/names.h"
#include "profiler/collect/recorder.h"

#include <optional>

namespace shardscope::collect {

/// The dense peak of a device in floating-point operations a second, in the dtype of the products: NVIDIA's own figures
/// for the cards that this table knows, nothing for others. fp32 is that of the CUDA cores (TF32 is off in training).
std::optional<double> peakFlops(const DeviceDescription &device, Precision compute);

} // namespace shardscope::collect
