// SPDX-License-Identifier: Apache-2.0
#include "core/model/block.h"

#include "core/model/ops.h"
#include "core/model/weights.h"
#include "core/model/workspace.h"

#include <ATen/ATen.h>

namespace shardscope::model {

/// Parameters of a block, in the order of core/shapes.
enum BlockParameter : size_t { kNorm1, kQ, kK, kV, kO, kNorm2, kGate, kUp, kDown };

/// q, k and v of packed rows as [B, heads, T, D], without a copy.
struct QkvViews
{
    QkvViews(const at::Tensor &qkv, const kernels::QkvLayout &layout)
    {
        const at::Tensor heads =
            qkv.view({layout.batch, layout.positions, layout.heads + 2 * layout.keyValueHeads, layout.headSize})
                .transpose(1, 2);
        q = heads.narrow(1, 0, layout.heads);
        k = heads.narrow(1, layout.heads, layout.keyValueHeads);
        v = heads.narrow(1, layout.heads + layout.keyValueHeads, layout.keyValueHeads);
    }
    at::Tensor q, k, v;
};

Stream Block::forward(const PassShape &pass, const Stream &in, BlockSaved &saved) const
{
    const Workspace work(m_engine, m_unit, pass.keepsForBackward);
    const shapes::ModelShape &model = *pass.model;
    const int64_t rows = pass.rows();

    saved.rstd1_M = work.keptFp32({rows});
    const at::Tensor y_MC = work.temporary({rows, model.hidden});
    // The first block's input is the embedding's output itself.
    saved.input_MC = in.delta_MC.defined() ? work.kept({rows, model.hidden}) : in.residual_MC;
    ops::rmsNorm(y_MC, saved.rstd1_M, in.delta_MC.defined() ? saved.input_MC : at::Tensor(), in.residual_MC,
                 in.delta_MC, m_engine.parameter(m_unit, kNorm1), model.normEps);
    const at::Tensor attended_MC = attentionForward(pass, y_MC, saved);

    saved.middle_MC = work.kept({rows, model.hidden});
    saved.rstd2_M = work.keptFp32({rows});
    ops::rmsNorm(y_MC, saved.rstd2_M, saved.middle_MC, saved.input_MC, attended_MC, m_engine.parameter(m_unit, kNorm2),
                 model.normEps);
    const observe::SpanScope span(m_engine.observer(),
                                  {"feed_forward", SpanCategory::Compute, m_engine.forwardPhase(), m_unit});
    saved.gateUp_MF2 = work.kept({rows, 2 * model.ffnHidden});
    WeightGroup{m_engine, m_unit, kGate, 2}.forward(saved.gateUp_MF2, y_MC);
    const at::Tensor h_MF = work.temporary({rows, model.ffnHidden});
    ops::swiglu(h_MF, saved.gateUp_MF2);
    ops::linear(attended_MC, h_MF, m_engine.parameter(m_unit, kDown)); // its last use is over
    return {saved.middle_MC, attended_MC};
}

at::Tensor Block::attentionForward(const PassShape &pass, const at::Tensor &y_MC, BlockSaved &saved) const
{
    const observe::SpanScope span(m_engine.observer(),
                                  {"attention", SpanCategory::Compute, m_engine.forwardPhase(), m_unit});
    const Workspace work(m_engine, m_unit, pass.keepsForBackward);
    const kernels::QkvLayout layout = pass.qkvLayout();
    saved.qkv = work.kept({pass.rows(), layout.rowElements()});
    WeightGroup{m_engine, m_unit, kQ, 3}.forward(saved.qkv, y_MC);
    ops::rope(saved.qkv, pass.cosine_TH, pass.sine_TH, layout);
    const QkvViews views(saved.qkv, layout);
    {
        const at::Tensor k = Attention::forEachQueryHead(views.k, layout.heads);
        const at::Tensor v = Attention::forEachQueryHead(views.v, layout.heads);
        const auto scope = work.keptScope();
        saved.attention = m_attention.forward(views.q, k, v);
    }
    const at::Tensor out_MA = saved.attention.out_BHTD.transpose(1, 2).reshape({pass.rows(), -1});
    at::Tensor projected_MC = work.temporary({pass.rows(), pass.model->hidden});
    ops::linear(projected_MC, out_MA, m_engine.parameter(m_unit, kO));
    return projected_MC;
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
    const Workspace work(m_engine, m_unit, false);
    const shapes::ModelShape &model = *pass.model;
    const at::Tensor norm_C = m_engine.parameter(m_unit, kNorm2);
    {
        const at::Tensor dh_MF = work.temporary({pass.rows(), model.ffnHidden});
        const at::Tensor h_MF = work.temporary({pass.rows(), model.ffnHidden});
        ops::linearBackwardInput(dh_MF, d_MC, m_engine.parameter(m_unit, kDown));
        ops::swigluBackward(saved.gateUp_MF2, h_MF, dh_MF, saved.gateUp_MF2);
        ops::linearBackwardWeight(m_engine.gradient(m_unit, kDown), d_MC, h_MF);
    }
    const at::Tensor &dGateUp_MF2 = saved.gateUp_MF2;
    const at::Tensor y_MC = work.temporary({pass.rows(), model.hidden});
    ops::rmsNorm(y_MC, saved.rstd2_M, {}, saved.middle_MC, {}, norm_C, model.normEps);
    const WeightGroup gateUp{m_engine, m_unit, kGate, 2};
    gateUp.backwardWeight(dGateUp_MF2, y_MC);
    gateUp.backwardInput(y_MC, dGateUp_MF2); // y's last use is over: it becomes its own gradient
    ops::rmsNormBackward(d_MC, m_engine.gradient(m_unit, kNorm2), y_MC, saved.middle_MC, norm_C, saved.rstd2_M, d_MC);
    saved.gateUp_MF2.reset();
    saved.middle_MC.reset();
}

void Block::attentionBackward(const PassShape &pass, const at::Tensor &d_MC, BlockSaved &saved) const
{
    const observe::SpanScope span(m_engine.observer(), {"attention", SpanCategory::Compute, Phase::Backward, m_unit});
    const Workspace work(m_engine, m_unit, false);
    const kernels::QkvLayout layout = pass.qkvLayout();
    const at::Tensor norm_C = m_engine.parameter(m_unit, kNorm1);
    const at::Tensor dqkv = work.temporary({pass.rows(), layout.rowElements()});
    {
        const at::Tensor out_MA = saved.attention.out_BHTD.transpose(1, 2).reshape({pass.rows(), -1});
        ops::linearBackwardWeight(m_engine.gradient(m_unit, kO), d_MC, out_MA);
        const at::Tensor dout_MA = work.temporary(out_MA.sizes());
        ops::linearBackwardInput(dout_MA, d_MC, m_engine.parameter(m_unit, kO));
        const at::Tensor dout_BHTD =
            dout_MA.view({layout.batch, layout.positions, layout.heads, layout.headSize}).transpose(1, 2);
        const QkvViews views(saved.qkv, layout);
        const AttentionGradients gradients =
            m_attention.backward(dout_BHTD, views.q, views.k, views.v, saved.attention);
        ops::ropeBackward(dqkv, gradients.dq_BHTD, gradients.dk_BHTD, gradients.dv_BHTD, pass.cosine_TH, pass.sine_TH,
                          layout);
    }
    saved.attention = {};
    saved.qkv.reset();
    const at::Tensor y_MC = work.temporary({pass.rows(), pass.model->hidden});
    ops::rmsNorm(y_MC, saved.rstd1_M, {}, saved.input_MC, {}, norm_C, pass.model->normEps);
    const WeightGroup qkv{m_engine, m_unit, kQ, 3};
    qkv.backwardWeight(dqkv, y_MC);
    qkv.backwardInput(y_MC, dqkv);
    ops::rmsNormBackward(d_MC, m_engine.gradient(m_unit, kNorm1), y_MC, saved.input_MC, norm_C, saved.rstd1_M, d_MC);
    saved = {};
}

} // namespace shardscope::model
