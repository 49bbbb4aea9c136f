// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/names.h"

#include <cstdint>

namespace shardscope::shapes {

/// Which of LibTorch's operators computes attention. cudnn and flash: bf16 and fp16 on CUDA; efficient: fp32 on CUDA;
/// cpu: all on the CPU; plain: products and a softmax, for head sizes and devices that no fused operator takes.
enum class AttentionKind { Cudnn, Flash, Efficient, Cpu, Plain };

/// On a CUDA device of this compute capability (9.0 is 90).
inline AttentionKind attentionKindOnCuda(int capability, Precision compute, int64_t headSize, bool deterministic)
{
    if (headSize % 8 != 0 || headSize > 256)
        return AttentionKind::Plain;
    if (compute == Precision::Fp32) // its kernel does nothing but print on what came after 12.0
        return capability > 120 ? AttentionKind::Plain : AttentionKind::Efficient;
    if (capability < 80)
        return AttentionKind::Plain;
    // cuDNN's backward adds dQ up in no fixed order; Flash has a deterministic one.
    return deterministic || headSize > 128 || capability < 90 ? AttentionKind::Flash : AttentionKind::Cudnn;
}

} // namespace shardscope::shapes
