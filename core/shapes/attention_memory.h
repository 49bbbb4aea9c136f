// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/shapes/memory_walk.h"
#include "core/shapes/model_shape.h"
#include "core/shapes/work_size.h"

namespace shardscope::shapes {

/// What one attention of model::Attention takes, whose keys and values have as many heads as its queries. MA: bytes of
/// such a matrix in the compute dtype. What the CPU's operator takes is cpu_flash_attention()'s and its backward's
/// (ATen/native/cpu/FlashAttentionKernel.cpp), what Flash takes is mha_bwd()'s (flash_attn/flash_api.cpp), what
/// Efficient takes is _efficient_attention_backward()'s (transformers/cuda/attention_backward.cu: its delta, which only
/// kernels of half precision compute themselves), what plain takes is core/model/attention.cpp's and on a GPU
/// softmax_backward_cuda_out()'s (ATen/native/cuda/SoftMax.cu).
class AttentionMemory
{
public:
    /// window: positions that each reaches back; 0: all.
    AttentionMemory(const ModelShape &shape, const WorkSize &work, int64_t window);

    int64_t MA() const { return rowsOfHeads() * m_headSize * m_work.elementBytes(); }
    /// What a forward leaves: MA and the statistics.
    int64_t leftBytes() const;
    void forward(MemoryWalk &walk) const;
    /// Leaves the gradients of queries, keys and values: three times MA.
    void backward(MemoryWalk &walk) const;

private:
    int64_t rowsOfHeads() const { return m_work.rows() * m_heads; }
    bool isHalf() const { return m_work.compute != Precision::Fp32; }
    int64_t tileRows() const;
    int64_t tile() const;
    int64_t forwardWorkspace() const;
    int64_t backwardWorkspace() const;
    int64_t takeAddend(MemoryWalk &walk) const;
    void plainForward(MemoryWalk &walk) const;
    void plainBackward(MemoryWalk &walk) const;

    WorkSize m_work;
    int64_t m_heads;
    int64_t m_headSize;
    bool m_isWindowed;
};

} // namespace shardscope::shapes
