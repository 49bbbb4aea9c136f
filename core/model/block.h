// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: M tokens of the micro-batch (B·T), C hidden width, F hidden of the feed-forward, H half a head.
#pragma once

#include "core/engine/engine.h"
#include "core/model/attention.h"
#include "core/model/kernels/kernels.h"
#include "core/shapes/model_shape.h"

#include <ATen/core/Tensor.h>

namespace shardscope::model {

/// What runs between units: the residual stream is residual + delta, and the norm that comes next adds them in its own
/// pass. delta is undefined after the embedding.
struct Stream
{
    at::Tensor residual_MC;
    at::Tensor delta_MC;
};

/// What all blocks of a pass share.
struct PassShape
{
    const shapes::ModelShape *model = nullptr;
    int64_t batch = 0;
    int64_t positions = 0;
    at::Tensor cosine_TH;
    at::Tensor sine_TH;
    bool keepsForBackward = true;

    int64_t rows() const { return batch * positions; }
    kernels::QkvLayout qkvLayout() const
    {
        return {batch, positions, model->heads, model->keyValueHeads, model->headSize};
    }
};

/// What a block keeps from its forward to its backward; the normed inputs and SwiGLU's output are computed again.
struct BlockSaved
{
    at::Tensor input_MC;  ///< before the attention norm
    at::Tensor middle_MC; ///< before the feed-forward norm
    at::Tensor rstd1_M;
    at::Tensor rstd2_M;
    at::Tensor qkv; ///< packed rows, rotated
    AttentionSaved attention;
    at::Tensor gateUp_MF2;
};

/// One decoder block as two functions on the engine's parameters.
class Block
{
public:
    Block(engine::Engine &engine, observe::UnitIndex unit, Attention attention)
        : m_engine(engine)
        , m_unit(unit)
        , m_attention(attention)
    {
    }
    observe::UnitIndex unit() const { return m_unit; }
    /// The unit's parameters are acquired. saved is left empty where the pass keeps nothing.
    Stream forward(const PassShape &pass, const Stream &in, BlockSaved &saved) const;
    /// d_MC is the gradient of the stream behind the block; it becomes that of the stream before it. Uses saved up.
    void backward(const PassShape &pass, const at::Tensor &d_MC, BlockSaved &saved) const;

private:
    at::Tensor attentionForward(const PassShape &pass, const at::Tensor &y_MC, BlockSaved &saved) const;
    void feedForwardBackward(const PassShape &pass, const at::Tensor &d_MC, BlockSaved &saved) const;
    void attentionBackward(const PassShape &pass, const at::Tensor &d_MC, BlockSaved &saved) const;

    engine::Engine &m_engine;
    observe::UnitIndex m_unit;
    Attention m_attention;
};

} // namespace shardscope::model
