// SPDX-License-Identifier: Apache-2.0
#include "core/model/head.h"

#include "core/model/ops.h"
#include "core/model/workspace.h"
#include "core/shapes/unit_memory.h"

#include <ATen/ATen.h>
#include <algorithm>

namespace shardscope::model {

/// Parameter of the head, in the order of core/shapes.
static constexpr size_t kNorm = 0;

Head::Result Head::run(const PassShape &pass, const Stream &in, const at::Tensor &targets_M, double lossScale,
                       bool backward) const
{
    const Workspace work(m_engine, m_unit, false);
    const Phase phase = backward ? Phase::Backward : m_engine.forwardPhase();
    const shapes::ModelShape &model = *pass.model;
    const int64_t rows = pass.rows();
    const at::Tensor norm_C = m_engine.parameter(m_unit, kNorm);
    const at::Tensor y_MC = work.temporary({rows, model.hidden});
    const at::Tensor input_MC = work.temporary({rows, model.hidden});
    const at::Tensor rstd_M = work.temporaryFp32({rows});
    ops::rmsNorm(y_MC, rstd_M, input_MC, in.residual_MC, in.delta_MC, norm_C, model.normEps);
    pass.left(m_unit, m_engine.forwardPhase(), "residual", input_MC);
    pass.left(m_unit, m_engine.forwardPhase(), "norm", y_MC);

    const at::Tensor losses_M = work.temporaryFp32({rows});
    const int64_t step = shapes::logitRows(y_MC.is_cuda() ? DeviceKind::Cuda : DeviceKind::Cpu, rows,
                                           model.vocabulary * static_cast<int64_t>(y_MC.element_size()));
    const at::Tensor logits = work.temporary({step, model.vocabulary});
    for (int64_t start = 0; start < rows; start += step) {
        const observe::SpanScope span(m_engine.observer(), {"loss_chunk", SpanCategory::Compute, phase, m_unit});
        const int64_t count = std::min(step, rows - start);
        runChunk(pass, y_MC.narrow(0, start, count), logits.narrow(0, 0, count), losses_M.narrow(0, start, count),
                 targets_M.narrow(0, start, count), lossScale, backward);
    }
    Result result;
    result.loss = losses_M.sum(at::kDouble).mul_(lossScale);
    if (backward) {
        result.d_MC = work.temporary({rows, model.hidden}); // y holds its own gradient by now
        ops::rmsNormBackward(result.d_MC, m_engine.gradient(m_unit, kNorm), y_MC, input_MC, norm_C, rstd_M, {});
        pass.left(m_unit, phase, "norm", result.d_MC);
    }
    return result;
}

at::Tensor Head::logits(const PassShape &pass, const Stream &in) const
{
    const Workspace work(m_engine, m_unit, false);
    const at::Tensor y_MC = work.temporary({pass.rows(), pass.model->hidden});
    const at::Tensor input_MC = work.temporary({pass.rows(), pass.model->hidden});
    const at::Tensor rstd_M = work.temporaryFp32({pass.rows()});
    ops::rmsNorm(y_MC, rstd_M, input_MC, in.residual_MC, in.delta_MC, m_engine.parameter(m_unit, kNorm),
                 pass.model->normEps);
    const at::Tensor logits_MV = work.temporary({pass.rows(), pass.model->vocabulary});
    m_output.forward(logits_MV, y_MC);
    return logits_MV;
}

/// One chunk: its rows of y become their gradient.
void Head::runChunk(const PassShape &pass, const at::Tensor &y_MC, const at::Tensor &logits_MV,
                    const at::Tensor &losses_M, const at::Tensor &targets_M, double lossScale, bool backward) const
{
    m_output.forward(logits_MV, y_MC);
    pass.left(m_unit, m_engine.forwardPhase(), "logits", logits_MV);
    if (!backward)
        return ops::crossEntropyLoss(logits_MV, losses_M, targets_M);
    ops::crossEntropy(logits_MV, losses_M, targets_M, lossScale, m_engine.gradientScale());
    pass.left(m_unit, m_engine.forwardPhase(), "cross_entropy", losses_M);
    pass.left(m_unit, Phase::Backward, "cross_entropy", logits_MV);
    m_output.backwardWeight(logits_MV, y_MC);
    m_output.backwardInput(y_MC, logits_MV);
    pass.left(m_unit, Phase::Backward, "logits", y_MC);
}

void Head::lookAtGradients(NumberCheck &check) const
{
    check.lookAtGradients(m_unit);
    if (m_output.unit != m_unit)
        check.lookAtGradient(m_output.unit, m_output.first);
}

} // namespace shardscope::model
