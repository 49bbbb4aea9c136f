// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/names.h"
#include "core/shapes/attention_kind.h"

#include <cstdint>

namespace shardscope::shapes {

inline constexpr int64_t kFp32Bytes = 4;

/// Of one element.
inline int64_t bytesOf(Precision precision)
{
    return precision == Precision::Fp32 ? kFp32Bytes : 2;
}

/// What decides, beside the model, how much memory the operations of a pass take.
struct WorkSize
{
    int64_t sequences = 1; ///< of a micro-batch
    int64_t positions = 1; ///< of a sequence
    Precision compute = Precision::Fp32;
    DeviceKind device = DeviceKind::Cuda;
    AttentionKind attention = AttentionKind::Cudnn;
    int64_t threads = 1; ///< of a rank on the CPU
    int64_t rows() const { return sequences * positions; }
    int64_t elementBytes() const { return bytesOf(compute); }
};

} // namespace shardscope::shapes
