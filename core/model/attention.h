// SPDX-License-Identifier: Apache-2.0
// Causal attention, within a sliding window where a layer has one, on LibTorch's fused operators. Shape suffixes: B
// batch, H heads, T positions, D head size.
#pragma once

#include "core/shapes/attention_kind.h"

#include <ATen/core/Tensor.h>

namespace shardscope::model {

/// What the backward of one attention needs.
struct AttentionSaved
{
    at::Tensor out_BHTD; ///< dense in the order B, T, H, D: its rows are those of the output projection
    at::Tensor logsumexp;
    at::Tensor seed;
    at::Tensor offset;
};

struct AttentionGradients
{
    at::Tensor dq_BHTD;
    at::Tensor dk_BHTD;
    at::Tensor dv_BHTD;
};

/// Which operator computes: chosen once from device, dtype and head size.
class Attention
{
public:
    using Kind = shapes::AttentionKind;

    /// window: positions that each reaches back, its own included (Mistral); 0: all.
    Attention(at::Device device, at::ScalarType type, int64_t headSize, int64_t window = 0);
    explicit Attention(Kind kind, int64_t window = 0)
        : m_kind(kind)
        , m_window(window)
    {
    }

    Kind kind() const { return m_kind; }
    /// k or v with a head for each of `heads` query heads; itself where it has them. forward() does it too, but whoever
    /// counts memory wants this apart: it is not kept.
    static at::Tensor forEachQueryHead(const at::Tensor &x_BHTD, int64_t heads);
    /// q, k, v may be strided views; k and v may have fewer heads, each of which serves a group of neighbours.
    AttentionSaved forward(const at::Tensor &q_BHTD, const at::Tensor &k_BHTD, const at::Tensor &v_BHTD) const;
    AttentionGradients backward(const at::Tensor &dout_BHTD, const at::Tensor &q_BHTD, const at::Tensor &k_BHTD,
                                const at::Tensor &v_BHTD, const AttentionSaved &saved) const;

private:
    bool isWindowed(int64_t positions) const { return m_window > 0 && positions > m_window; }
    AttentionSaved forwardEqualHeads(const at::Tensor &q, const at::Tensor &k, const at::Tensor &v) const;
    AttentionGradients backwardEqualHeads(const at::Tensor &dout, const at::Tensor &q, const at::Tensor &k,
                                          const at::Tensor &v, const AttentionSaved &saved) const;
    AttentionSaved forwardWindowed(const at::Tensor &q, const at::Tensor &k, const at::Tensor &v) const;
    AttentionGradients backwardWindowed(const at::Tensor &dout, const at::Tensor &q, const at::Tensor &k,
                                        const at::Tensor &v, const AttentionSaved &saved) const;
    Kind m_kind;
    int64_t m_window;
};

} // namespace shardscope::model
