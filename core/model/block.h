// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: M tokens of the micro-batch (B·T), C hidden width, F hidden of the feed-forward, H half a head.
#pragma once

#include "core/engine/engine.h"
#include "core/model/adapters.h"
#include "core/model/attention.h"
#include "core/model/kernels/kernels.h"
#include "core/model/number_check.h"
#include "core/model/weights.h"
#include "core/shapes/model_shape.h"

#include <ATen/core/Tensor.h>
#include <array>

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
    NumberCheck *check = nullptr; ///< of a pass that looks for NaN and infinities

    /// What an operation has left: its output in forward, the gradient of its input in backward.
    void left(observe::UnitIndex unit, Phase phase, std::string_view operation, const at::Tensor &result) const
    {
        if (check)
            check->look({unit, phase, operation}, result);
    }
    int64_t rows() const { return batch * positions; }
    kernels::QkvLayout qkvLayout() const
    {
        return {batch, positions, model->heads, model->keyValueHeads, model->headSize};
    }
};

/// What a block keeps from its forward to its backward. In every mode the normed inputs and SwiGLU's output are
/// computed again; what else is, says the mode (core/shapes/activations.h has the bytes):
///
/// off        input, middle, qkv, attention's output and statistics, gate-up, the norms' statistics.
/// selective  input, attention's output and statistics. Everything else is linear in the sequence's length to compute
///            and runs again: both norms, the qkv, output and gate-up products, RoPE. All these products cost the same
///            time a byte that they save (2 · hidden operations an element), so keeping some of them is no better than
///            recomputing all of them in some of the blocks, which a rule for those units does.
/// block      input. Attention runs again too, whose time grows with the square of the sequence's length.
///
/// What runs again is the same kernels on the same values in the same order, so it gives the same bits. Nothing here
/// draws random numbers (there is no dropout); whoever adds an operation that does must keep its seed in BlockSaved.
struct BlockSaved
{
    Recompute recompute = Recompute::Off; ///< that the forward ran with
    at::Tensor input_MC;                  ///< before the attention norm
    at::Tensor middle_MC;                 ///< before the feed-forward norm
    at::Tensor rstd1_M;
    at::Tensor rstd2_M;
    at::Tensor qkv; ///< packed rows, rotated; as projected where q and k are normed, which is done again
    AttentionSaved attention;
    at::Tensor gateUp_MF2;

    /// Drops what recompute() makes again.
    void dropRecomputed();
    /// What activation offload moves: the tensors of the compute dtype. The statistics, a few bytes a token, stay.
    std::array<at::Tensor *, 5> matrices() { return {&input_MC, &middle_MC, &qkv, &attention.out_BHTD, &gateUp_MF2}; }
};

struct QkvViews;

/// One decoder block as two functions on the engine's parameters.
class Block
{
public:
    /// adapterScale: of the adapters that the unit may have.
    Block(engine::Engine &engine, observe::UnitIndex unit, const shapes::BlockParameters &parameters,
          Attention attention, double adapterScale);
    observe::UnitIndex unit() const { return m_unit; }
    /// The unit's parameters are acquired. saved is left empty where the pass keeps nothing.
    Stream forward(const PassShape &pass, const Stream &in, Recompute recompute, BlockSaved &saved) const;
    /// Computes what saved lacks; before backward(), with the unit's parameters acquired. Nothing to do under `off`.
    void recompute(const PassShape &pass, BlockSaved &saved) const;
    /// d_MC is the gradient of the stream behind the block; it becomes that of the stream before it. Uses saved up.
    void backward(const PassShape &pass, const at::Tensor &d_MC, BlockSaved &saved) const;

private:
    /// One run through the forward: in its own time, or again in backward.
    struct Run
    {
        const PassShape &pass;
        Phase phase;
        bool keepsAttention = false;
        bool keepsAll = false;
        void left(observe::UnitIndex unit, std::string_view operation, const at::Tensor &result) const
        {
            pass.left(unit, phase, operation, result);
        }
    };
    at::Tensor attentionPart(const Run &run, const Stream &in, const at::Tensor &y_MC, BlockSaved &saved) const;
    at::Tensor attentionForward(const Run &run, const at::Tensor &y_MC, BlockSaved &saved) const;
    void feedForward(const Run &run, const at::Tensor &y_MC, const at::Tensor &attended_MC, BlockSaved &saved) const;
    void feedForwardBackward(const PassShape &pass, const at::Tensor &d_MC, BlockSaved &saved) const;
    void attentionBackward(const PassShape &pass, const at::Tensor &d_MC, BlockSaved &saved) const;
    QkvViews normedAndRotated(const PassShape &pass, const at::Tensor &qkv, at::Tensor &rstd) const;
    void qkvBackward(const PassShape &pass, const at::Tensor &dqkv, const at::Tensor &dout_MA, BlockSaved &saved) const;
    WeightGroup weights(size_t first, size_t count, size_t firstBias) const
    {
        return {m_engine, m_unit, first, count, firstBias, &m_adapters};
    }

    engine::Engine &m_engine;
    observe::UnitIndex m_unit;
    shapes::BlockParameters m_at; ///< indices of the unit's parameters
    Adapters m_adapters;
    std::vector<size_t> m_ofAttention;
    std::vector<size_t> m_ofFeedForward;
    Attention m_attention;
};

} // namespace shardscope::model
