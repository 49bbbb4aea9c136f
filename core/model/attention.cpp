// SPDX-License-Identifier: Apache-2.0
#include "core/model/attention.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>

namespace shardscope::model {

static Attention::Kind chooseKind(at::Device device, at::ScalarType type, int64_t headSize)
{
    if (device.is_cpu())
        return Attention::Kind::Cpu;
    const cudaDeviceProp *properties = at::cuda::getDeviceProperties(device.index());
    const Precision precision = type == at::kFloat ? Precision::Fp32 : Precision::Bf16; // fp16's are bf16's
    return shapes::attentionKindOnCuda(properties->major * 10 + properties->minor, precision, headSize,
                                       at::globalContext().deterministicAlgorithms());
}

Attention::Attention(at::Device device, at::ScalarType type, int64_t headSize, int64_t window)
    : m_kind(chooseKind(device, type, headSize))
    , m_window(window)
{
}

/// [B, KV, T, D] → [B, KV · group, T, D], each head repeated for the query heads that share it.
static at::Tensor repeatHeads(const at::Tensor &x, int64_t group)
{
    const auto sizes = x.sizes();
    return x.unsqueeze(2)
        .expand({sizes[0], sizes[1], group, sizes[2], sizes[3]})
        .reshape({sizes[0], sizes[1] * group, sizes[2], sizes[3]});
}

static at::Tensor sumHeads(const at::Tensor &x, int64_t group)
{
    const auto sizes = x.sizes();
    return x.reshape({sizes[0], sizes[1] / group, group, sizes[2], sizes[3]}).sum(2);
}

at::Tensor Attention::forEachQueryHead(const at::Tensor &x_BHTD, int64_t heads)
{
    const int64_t group = heads / x_BHTD.size(1);
    return group == 1 ? x_BHTD : repeatHeads(x_BHTD, group);
}

AttentionSaved Attention::forward(const at::Tensor &q_BHTD, const at::Tensor &k_BHTD, const at::Tensor &v_BHTD) const
{
    return forwardEqualHeads(q_BHTD, forEachQueryHead(k_BHTD, q_BHTD.size(1)),
                             forEachQueryHead(v_BHTD, q_BHTD.size(1)));
}

AttentionGradients Attention::backward(const at::Tensor &dout_BHTD, const at::Tensor &q_BHTD, const at::Tensor &k_BHTD,
                                       const at::Tensor &v_BHTD, const AttentionSaved &saved) const
{
    const int64_t group = q_BHTD.size(1) / k_BHTD.size(1);
    if (group == 1)
        return backwardEqualHeads(dout_BHTD, q_BHTD, k_BHTD, v_BHTD, saved);
    AttentionGradients gradients =
        backwardEqualHeads(dout_BHTD, q_BHTD, repeatHeads(k_BHTD, group), repeatHeads(v_BHTD, group), saved);
    gradients.dk_BHTD = sumHeads(gradients.dk_BHTD, group);
    gradients.dv_BHTD = sumHeads(gradients.dv_BHTD, group);
    return gradients;
}

/// True where a position must not look: ahead, and further back than the window (0: none).
static at::Tensor maskOf(int64_t positions, int64_t window, at::Device device)
{
    const at::Tensor all = at::ones({positions, positions}, at::TensorOptions(device).dtype(at::kBool));
    const at::Tensor ahead = all.triu(1);
    return window == 0 ? ahead : ahead.logical_or_(all.tril(-window));
}

/// softmax(q·kᵀ/√D) with what is masked left out, in fp32.
static at::Tensor plainWeights(const at::Tensor &q, const at::Tensor &k, int64_t window)
{
    const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(3)));
    at::Tensor scores = at::matmul(q.to(at::kFloat), k.to(at::kFloat).transpose(2, 3)).mul_(scale);
    scores.masked_fill_(maskOf(q.size(2), window, q.device()), -INFINITY);
    return at::softmax(scores, -1);
}

static AttentionSaved plainForward(const at::Tensor &q, const at::Tensor &k, const at::Tensor &v, int64_t window)
{
    const at::Tensor weights = plainWeights(q, k, window);
    const at::Tensor out = at::matmul(weights, v.to(at::kFloat)).to(q.scalar_type());
    return {out.transpose(1, 2).contiguous().transpose(1, 2), {}, {}, {}};
}

static AttentionGradients plainBackward(const at::Tensor &dout, const at::Tensor &q, const at::Tensor &k,
                                        const at::Tensor &v, int64_t window)
{
    const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(3)));
    const at::Tensor weights = plainWeights(q, k, window);
    const at::Tensor dout32 = dout.to(at::kFloat);
    const at::Tensor dv = at::matmul(weights.transpose(2, 3), dout32);
    const at::Tensor dWeights = at::matmul(dout32, v.to(at::kFloat).transpose(2, 3));
    const at::Tensor dScores = at::_softmax_backward_data(dWeights, weights, -1, at::kFloat).mul_(scale);
    const at::Tensor dq = at::matmul(dScores, k.to(at::kFloat));
    const at::Tensor dk = at::matmul(dScores.transpose(2, 3), q.to(at::kFloat));
    const auto type = q.scalar_type();
    return {dq.to(type), dk.to(type), dv.to(type)};
}

/// What the CPU's operator adds to the scores, in their dtype.
static at::Tensor addendOf(int64_t positions, int64_t window, const at::Tensor &like)
{
    return at::zeros({positions, positions}, like.options())
        .masked_fill_(maskOf(positions, window, like.device()), -INFINITY);
}

AttentionSaved Attention::forwardEqualHeads(const at::Tensor &q, const at::Tensor &k, const at::Tensor &v) const
{
    if (isWindowed(q.size(2)))
        return forwardWindowed(q, k, v);
    switch (m_kind) {
    case Kind::Cudnn: {
        const auto result = at::_scaled_dot_product_cudnn_attention(q, k, v, std::nullopt, true, 0.0, true, false);
        return {std::get<0>(result), std::get<1>(result), std::get<6>(result), std::get<7>(result)};
    }
    case Kind::Flash: {
        const auto result = at::_scaled_dot_product_flash_attention(q, k, v, 0.0, true, false);
        return {std::get<0>(result), std::get<1>(result), std::get<6>(result), std::get<7>(result)};
    }
    case Kind::Efficient: {
        const auto result = at::_scaled_dot_product_efficient_attention(q, k, v, std::nullopt, true, 0.0, true);
        return {std::get<0>(result), std::get<1>(result), std::get<2>(result), std::get<3>(result)};
    }
    case Kind::Cpu: {
        const auto result = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, true);
        return {std::get<0>(result), std::get<1>(result), {}, {}};
    }
    case Kind::Plain:
        break;
    }
    return plainForward(q, k, v, 0);
}

AttentionGradients Attention::backwardEqualHeads(const at::Tensor &dout, const at::Tensor &q, const at::Tensor &k,
                                                 const at::Tensor &v, const AttentionSaved &saved) const
{
    const at::Tensor none;
    const at::Tensor &out = saved.out_BHTD;
    const int64_t length = q.size(2);
    if (isWindowed(length))
        return backwardWindowed(dout, q, k, v, saved);
    switch (m_kind) {
    case Kind::Cudnn: {
        auto [dq, dk, dv] = at::_scaled_dot_product_cudnn_attention_backward(
            dout, q, k, v, out, saved.logsumexp, saved.seed, saved.offset, none, none, none, length, length, 0.0, true);
        return {dq, dk, dv};
    }
    case Kind::Flash: {
        auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
            dout, q, k, v, out, saved.logsumexp, none, none, length, length, 0.0, true, saved.seed, saved.offset);
        return {dq, dk, dv};
    }
    case Kind::Efficient: {
        auto [dq, dk, dv, dBias] = at::_scaled_dot_product_efficient_attention_backward(
            dout, q, k, v, none, out, saved.logsumexp, saved.seed, saved.offset, 0.0, {true, true, true, false}, true);
        return {dq, dk, dv};
    }
    case Kind::Cpu: {
        auto [dq, dk, dv] =
            at::_scaled_dot_product_flash_attention_for_cpu_backward(dout, q, k, v, out, saved.logsumexp, 0.0, true);
        return {dq, dk, dv};
    }
    case Kind::Plain:
        break;
    }
    return plainBackward(dout, q, k, v, 0);
}

/// The operators below take [B, T, H, D].
static at::Tensor turned(const at::Tensor &x_BHTD)
{
    return x_BHTD.transpose(1, 2);
}

/// The efficient operator's mask that begins at the top left.
static constexpr int64_t kCausal = 1;

/// cuDNN's operator has no window, so Flash takes its place.
AttentionSaved Attention::forwardWindowed(const at::Tensor &q, const at::Tensor &k, const at::Tensor &v) const
{
    const int64_t length = q.size(2);
    switch (m_kind) {
    case Kind::Cudnn:
    case Kind::Flash: {
        const auto result =
            at::_flash_attention_forward(turned(q), turned(k), turned(v), std::nullopt, std::nullopt, length, length,
                                         0.0, true, false, std::nullopt, m_window - 1, 0);
        return {turned(std::get<0>(result)), std::get<1>(result), std::get<2>(result), std::get<3>(result)};
    }
    case Kind::Efficient: {
        const auto result =
            at::_efficient_attention_forward(turned(q), turned(k), turned(v), std::nullopt, std::nullopt, std::nullopt,
                                             length, length, 0.0, kCausal, true, std::nullopt, std::nullopt, m_window);
        return {turned(std::get<0>(result)), std::get<1>(result), std::get<2>(result), std::get<3>(result)};
    }
    case Kind::Cpu: {
        const auto result =
            at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, false, addendOf(length, m_window, q));
        return {std::get<0>(result), std::get<1>(result), {}, {}};
    }
    case Kind::Plain:
        break;
    }
    return plainForward(q, k, v, m_window);
}

AttentionGradients Attention::backwardWindowed(const at::Tensor &dout, const at::Tensor &q, const at::Tensor &k,
                                               const at::Tensor &v, const AttentionSaved &saved) const
{
    const at::Tensor none;
    const at::Tensor &out = saved.out_BHTD;
    const int64_t length = q.size(2);
    switch (m_kind) {
    case Kind::Cudnn:
    case Kind::Flash: {
        auto [dq, dk, dv] = at::_flash_attention_backward(turned(dout), turned(q), turned(k), turned(v), turned(out),
                                                          saved.logsumexp, none, none, length, length, 0.0, true,
                                                          saved.seed, saved.offset, std::nullopt, m_window - 1, 0);
        return {turned(dq), turned(dk), turned(dv)};
    }
    case Kind::Efficient: {
        auto [dq, dk, dv, dBias] = at::_efficient_attention_backward(
            turned(dout), turned(q), turned(k), turned(v), std::nullopt, turned(out), std::nullopt, std::nullopt,
            length, length, saved.logsumexp, 0.0, saved.seed, saved.offset, kCausal, false, std::nullopt, std::nullopt,
            m_window);
        return {turned(dq), turned(dk), turned(dv)};
    }
    case Kind::Cpu: {
        auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
            dout, q, k, v, out, saved.logsumexp, 0.0, false, addendOf(length, m_window, q));
        return {dq, dk, dv};
    }
    case Kind::Plain:
        break;
    }
    return plainBackward(dout, q, k, v, m_window);
}

} // namespace shardscope::model
