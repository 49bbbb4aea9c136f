// SPDX-License-Identifier: Apache-2.0
#include "core/model/block.h"

#include "core/model/ops.h"
#include "core/model/workspace.h"

#include <ATen/ATen.h>

namespace shardscope::model {

using Parameters = shapes::BlockParameters;

/// q, k and v of packed rows as [B, heads, T, D], without a copy.
struct QkvViews
{
    /// qk: rows of q and k heads, which may be qkv itself.
    QkvViews(const at::Tensor &qk, const at::Tensor &qkv, const kernels::QkvLayout &layout)
    {
        q = headsOf(qk, layout).narrow(1, 0, layout.heads);
        k = headsOf(qk, layout).narrow(1, layout.heads, layout.keyValueHeads);
        v = headsOf(qkv, layout).narrow(1, layout.heads + layout.keyValueHeads, layout.keyValueHeads);
    }
    at::Tensor q, k, v;

private:
    static at::Tensor headsOf(const at::Tensor &rows, const kernels::QkvLayout &layout)
    {
        return rows.view({layout.batch, layout.positions, -1, layout.headSize}).transpose(1, 2);
    }
};

Block::Block(engine::Engine &engine, observe::UnitIndex unit, const shapes::BlockParameters &parameters,
             Attention attention, double adapterScale)
    : m_engine(engine)
    , m_unit(unit)
    , m_at(parameters)
    , m_adapters(engine, unit, adapterScale)
    , m_ofAttention(parameters.ofAttention())
    , m_ofFeedForward(parameters.ofFeedForward())
    , m_attention(attention)
{
    for (std::vector<size_t> *part : {&m_ofAttention, &m_ofFeedForward}) {
        const std::vector<size_t> adapters = m_adapters.of(*part);
        part->insert(part->end(), adapters.begin(), adapters.end());
    }
}

void BlockSaved::dropRecomputed()
{
    if (recompute == Recompute::Off)
        return;
    for (at::Tensor *tensor : {&middle_MC, &rstd1_M, &rstd2_M, &qkv, &gateUp_MF2})
        tensor->reset();
    if (recompute == Recompute::Block)
        attention = {};
}

Stream Block::forward(const PassShape &pass, const Stream &in, Recompute recompute, BlockSaved &saved) const
{
    const Run run{pass, m_engine.forwardPhase(), pass.keepsForBackward && recompute != Recompute::Block,
                  pass.keepsForBackward && recompute == Recompute::Off};
    const Workspace work(m_engine, m_unit, pass.keepsForBackward);
    const int64_t rows = pass.rows();
    const int64_t hidden = pass.model->hidden;

    saved.recompute = recompute;
    saved.rstd1_M = run.keepsAll ? work.keptFp32({rows}) : work.temporaryFp32({rows});
    const at::Tensor y_MC = work.temporary({rows, hidden});
    // The first block's input is the embedding's output itself.
    saved.input_MC = in.delta_MC.defined() ? work.kept({rows, hidden}) : in.residual_MC;
    const at::Tensor attended_MC = attentionPart(run, in, y_MC, saved);
    feedForward(run, y_MC, attended_MC, saved);
    const Stream out{saved.middle_MC, attended_MC};
    saved.dropRecomputed();
    return out;
}

void Block::recompute(const PassShape &pass, BlockSaved &saved) const
{
    if (saved.recompute == Recompute::Off)
        return;
    const observe::SpanScope span(m_engine.observer(), {"recompute", SpanCategory::Compute, Phase::Recompute, m_unit});
    const Run run{pass, Phase::Recompute};
    const Workspace work(m_engine, m_unit, false);
    saved.rstd1_M = work.temporaryFp32({pass.rows()});
    const at::Tensor y_MC = work.temporary({pass.rows(), pass.model->hidden});
    feedForward(run, y_MC, attentionPart(run, {saved.input_MC, {}}, y_MC, saved), saved);
}

/// The norm and attention. Where the stream has a delta, saved.input_MC receives the sum.
at::Tensor Block::attentionPart(const Run &run, const Stream &in, const at::Tensor &y_MC, BlockSaved &saved) const
{
    const engine::PartScope part(m_engine, m_unit, m_ofAttention, run.phase);
    ops::rmsNorm(y_MC, saved.rstd1_M, in.delta_MC.defined() ? saved.input_MC : at::Tensor(), in.residual_MC,
                 in.delta_MC, m_engine.parameter(m_unit, Parameters::attentionNorm), run.pass.model->normEps);
    run.left(m_unit, "residual", saved.input_MC);
    run.left(m_unit, "attention_norm", y_MC);
    return attentionForward(run, y_MC, saved);
}

/// The output projection of attention; attention itself only where saved lacks it.
at::Tensor Block::attentionForward(const Run &run, const at::Tensor &y_MC, BlockSaved &saved) const
{
    const observe::SpanScope span(m_engine.observer(), {"attention", SpanCategory::Compute, run.phase, m_unit});
    const Workspace work(m_engine, m_unit, run.keepsAll);
    const kernels::QkvLayout layout = run.pass.qkvLayout();
    saved.qkv = work.kept({run.pass.rows(), layout.rowElements()});
    weights(Parameters::q, 3, m_at.qBias).forward(saved.qkv, y_MC);
    run.left(m_unit, "attention.qkv", saved.qkv);
    const bool norms = m_at.qNorm != Parameters::kAbsent;
    if (!norms) {
        ops::rope(saved.qkv, run.pass.cosine_TH, run.pass.sine_TH, layout);
        run.left(m_unit, "attention.rope", saved.qkv);
    }
    if (!saved.attention.out_BHTD.defined()) {
        at::Tensor rstd;
        const QkvViews views =
            norms ? normedAndRotated(run.pass, saved.qkv, rstd) : QkvViews(saved.qkv, saved.qkv, layout);
        if (norms) {
            run.left(m_unit, "attention.q_norm", views.q);
            run.left(m_unit, "attention.k_norm", views.k);
        }
        const at::Tensor k = Attention::forEachQueryHead(views.k, layout.heads);
        const at::Tensor v = Attention::forEachQueryHead(views.v, layout.heads);
        const Workspace results(m_engine, m_unit, run.keepsAttention);
        const auto scope = results.keptScope();
        saved.attention = m_attention.forward(views.q, k, v);
        run.left(m_unit, "attention", saved.attention.out_BHTD);
    }
    const at::Tensor out_MA = saved.attention.out_BHTD.transpose(1, 2).reshape({run.pass.rows(), -1});
    const at::Tensor projected_MC = work.temporary({run.pass.rows(), run.pass.model->hidden});
    weights(Parameters::o, 1, m_at.oBias).forward(projected_MC, out_MA);
    run.left(m_unit, "attention.o", projected_MC);
    return projected_MC;
}

/// y_MC is scratch. attended_MC becomes the block's delta, except in a recomputation, where nothing needs that.
void Block::feedForward(const Run &run, const at::Tensor &y_MC, const at::Tensor &attended_MC, BlockSaved &saved) const
{
    const engine::PartScope part(m_engine, m_unit, m_ofFeedForward, run.phase);
    const Workspace work(m_engine, m_unit, run.keepsAll);
    const shapes::ModelShape &model = *run.pass.model;
    const int64_t rows = run.pass.rows();
    saved.middle_MC = work.kept({rows, model.hidden});
    saved.rstd2_M = work.keptFp32({rows});
    ops::rmsNorm(y_MC, saved.rstd2_M, saved.middle_MC, saved.input_MC, attended_MC,
                 m_engine.parameter(m_unit, Parameters::feedForwardNorm), model.normEps);
    run.left(m_unit, "residual", saved.middle_MC);
    run.left(m_unit, "ffn_norm", y_MC);
    const observe::SpanScope span(m_engine.observer(), {"feed_forward", SpanCategory::Compute, run.phase, m_unit});
    saved.gateUp_MF2 = work.kept({rows, 2 * model.ffnHidden});
    weights(Parameters::gate, 2, m_at.gateBias).forward(saved.gateUp_MF2, y_MC);
    run.left(m_unit, "ffn.gate_up", saved.gateUp_MF2);
    if (run.phase == Phase::Recompute)
        return;
    const at::Tensor h_MF = work.temporary({rows, model.ffnHidden});
    ops::swiglu(h_MF, saved.gateUp_MF2);
    run.left(m_unit, "ffn.swiglu", h_MF);
    weights(Parameters::down, 1, m_at.downBias).forward(attended_MC, h_MF); // attended's last use is over
    run.left(m_unit, "ffn.down", attended_MC);
}

/// rstd: of the norms, which headNormRopeBackward() wants.
QkvViews Block::normedAndRotated(const PassShape &pass, const at::Tensor &qkv, at::Tensor &rstd) const
{
    const Workspace work(m_engine, m_unit, false);
    const kernels::QkvLayout layout = pass.qkvLayout();
    const int64_t heads = layout.heads + layout.keyValueHeads;
    const at::Tensor qk = work.temporary({pass.rows(), heads * layout.headSize});
    rstd = work.temporaryFp32({pass.rows(), heads});
    ops::headNormRope(qk, rstd, qkv, m_engine.parameter(m_unit, m_at.qNorm), m_engine.parameter(m_unit, m_at.kNorm),
                      pass.cosine_TH, pass.sine_TH, layout, pass.model->normEps);
    return {qk, qkv, layout};
}

void Block::backward(const PassShape &pass, const at::Tensor &d_MC, BlockSaved &saved) const
{
    feedForwardBackward(pass, d_MC, saved);
    attentionBackward(pass, d_MC, saved);
}

void Block::feedForwardBackward(const PassShape &pass, const at::Tensor &d_MC, BlockSaved &saved) const
{
    const observe::SpanScope span(m_engine.observer(),
                                  {"feed_forward", SpanCategory::Compute, Phase::Backward, m_unit});
    const engine::PartScope part(m_engine, m_unit, m_ofFeedForward, Phase::Backward);
    const Workspace work(m_engine, m_unit, false);
    const shapes::ModelShape &model = *pass.model;
    const at::Tensor norm_C = m_engine.parameter(m_unit, Parameters::feedForwardNorm);
    {
        const at::Tensor dh_MF = work.temporary({pass.rows(), model.ffnHidden});
        const WeightGroup down = weights(Parameters::down, 1, m_at.downBias);
        down.backwardInput(dh_MF, d_MC);
        pass.left(m_unit, Phase::Backward, "ffn.down", dh_MF);
        const at::Tensor &h_MF = dh_MF; // one is written where the other has been read
        ops::swigluBackward(saved.gateUp_MF2, h_MF, dh_MF, saved.gateUp_MF2);
        pass.left(m_unit, Phase::Backward, "ffn.swiglu", saved.gateUp_MF2);
        down.backwardWeight(d_MC, h_MF);
    }
    const at::Tensor &dGateUp_MF2 = saved.gateUp_MF2;
    const at::Tensor y_MC = work.temporary({pass.rows(), model.hidden});
    ops::rmsNorm(y_MC, saved.rstd2_M, {}, saved.middle_MC, {}, norm_C, model.normEps);
    const WeightGroup gateUp = weights(Parameters::gate, 2, m_at.gateBias);
    gateUp.backwardWeight(dGateUp_MF2, y_MC);
    gateUp.backwardInput(y_MC, dGateUp_MF2); // y's last use is over: it becomes its own gradient
    pass.left(m_unit, Phase::Backward, "ffn.gate_up", y_MC);
    ops::rmsNormBackward(d_MC, m_engine.gradient(m_unit, Parameters::feedForwardNorm), y_MC, saved.middle_MC, norm_C,
                         saved.rstd2_M, d_MC);
    pass.left(m_unit, Phase::Backward, "ffn_norm", d_MC);
    saved.gateUp_MF2.reset();
    saved.middle_MC.reset();
}

void Block::attentionBackward(const PassShape &pass, const at::Tensor &d_MC, BlockSaved &saved) const
{
    const observe::SpanScope span(m_engine.observer(), {"attention", SpanCategory::Compute, Phase::Backward, m_unit});
    const engine::PartScope part(m_engine, m_unit, m_ofAttention, Phase::Backward);
    const Workspace work(m_engine, m_unit, false);
    const kernels::QkvLayout layout = pass.qkvLayout();
    const at::Tensor norm_C = m_engine.parameter(m_unit, Parameters::attentionNorm);
    const at::Tensor dqkv = work.temporary({pass.rows(), layout.rowElements()});
    {
        const at::Tensor out_MA = saved.attention.out_BHTD.transpose(1, 2).reshape({pass.rows(), -1});
        const WeightGroup output = weights(Parameters::o, 1, m_at.oBias);
        output.backwardWeight(d_MC, out_MA);
        const at::Tensor dout_MA = work.temporary(out_MA.sizes());
        output.backwardInput(dout_MA, d_MC);
        pass.left(m_unit, Phase::Backward, "attention.o", dout_MA);
        qkvBackward(pass, dqkv, dout_MA, saved);
        pass.left(m_unit, Phase::Backward, "attention.rope", dqkv);
    }
    saved.attention = {};
    saved.qkv.reset();
    const at::Tensor y_MC = work.temporary({pass.rows(), pass.model->hidden});
    ops::rmsNorm(y_MC, saved.rstd1_M, {}, saved.input_MC, {}, norm_C, pass.model->normEps);
    const WeightGroup qkv = weights(Parameters::q, 3, m_at.qBias);
    qkv.backwardWeight(dqkv, y_MC);
    qkv.backwardInput(y_MC, dqkv);
    pass.left(m_unit, Phase::Backward, "attention.qkv", y_MC);
    ops::rmsNormBackward(d_MC, m_engine.gradient(m_unit, Parameters::attentionNorm), y_MC, saved.input_MC, norm_C,
                         saved.rstd1_M, d_MC);
    pass.left(m_unit, Phase::Backward, "attention_norm", d_MC);
    saved = {};
}

/// Attention itself, the rotation and the norms of heads: from the gradient of attention's output to that of qkv.
void Block::qkvBackward(const PassShape &pass, const at::Tensor &dqkv, const at::Tensor &dout_MA,
                        BlockSaved &saved) const
{
    const kernels::QkvLayout layout = pass.qkvLayout();
    const bool norms = m_at.qNorm != Parameters::kAbsent;
    const at::Tensor dout_BHTD =
        dout_MA.view({layout.batch, layout.positions, layout.heads, layout.headSize}).transpose(1, 2);
    at::Tensor rstd;
    AttentionGradients gradients;
    {
        const QkvViews views = norms ? normedAndRotated(pass, saved.qkv, rstd) : QkvViews(saved.qkv, saved.qkv, layout);
        gradients = m_attention.backward(dout_BHTD, views.q, views.k, views.v, saved.attention);
    }
    for (const at::Tensor &gradient : {gradients.dq_BHTD, gradients.dk_BHTD, gradients.dv_BHTD})
        pass.left(m_unit, Phase::Backward, "attention", gradient);
    if (!norms)
        return ops::ropeBackward(dqkv, gradients.dq_BHTD, gradients.dk_BHTD, gradients.dv_BHTD, pass.cosine_TH,
                                 pass.sine_TH, layout);
    ops::headNormRopeBackward(
        dqkv, m_engine.gradient(m_unit, m_at.qNorm), m_engine.gradient(m_unit, m_at.kNorm), gradients.dq_BHTD,
        gradients.dk_BHTD, gradients.dv_BHTD,
        {saved.qkv, rstd, m_engine.parameter(m_unit, m_at.qNorm), m_engine.parameter(m_unit, m_at.kNorm)},
        pass.cosine_TH, pass.sine_TH, layout);
}

} // namespace shardscope::model
