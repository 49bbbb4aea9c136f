// SPDX-License-Identifier: Apache-2.0
// Model families as arithmetic: every parameter's name, shape, kind and unit. Used by the plan and by the engine.
#pragma once

#include "core/base/names.h"
#include "core/base/result.h"
#include "core/shapes/rope_scaling.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::shapes {

/// Families of Hugging Face that a decoder here can be; their `model_type`s are llama, mistral, qwen2, qwen3.
enum class ModelFamily { Llama, Mistral, Qwen2, Qwen3 };

/// A Llama-shaped decoder: RMSNorm, RoPE (half-split layout), grouped-query attention, SwiGLU; with what Mistral
/// (sliding windows), Qwen2 (biases) and Qwen3 (norms of q and k) add.
struct ModelShape
{
    std::string name;
    ModelFamily family = ModelFamily::Llama;
    int64_t vocabulary = 0;
    int64_t hidden = 0;
    int64_t layers = 0;
    int64_t heads = 0;
    int64_t keyValueHeads = 0;
    int64_t headSize = 0;
    int64_t ffnHidden = 0;
    int64_t maxSequence = 0;        ///< tokens of a sequence at most
    int64_t configuredSequence = 0; ///< max_position_embeddings where maxSequence is more; 0: the same
    double normEps = 1e-5;
    double ropeTheta = 10000.0;
    RopeScaling ropeScaling;
    bool tiedEmbeddings = false;
    bool queryKeyValueBias = false;
    bool outputBias = false;      ///< of attention's o
    bool feedForwardBias = false; ///< of gate, up and down
    bool queryKeyNorm = false;    ///< RMSNorm of each head of q and k, before RoPE
    /// Tokens that each layer's attention reaches back, its own included; 0: all. Empty: all for all layers.
    std::vector<int64_t> windows;
    double initialStd = 0.02; ///< spread of fresh matrices

    /// What max_position_embeddings says; maxSequence is longer where RoPE's scaling stretches it.
    int64_t trainedSequence() const { return configuredSequence > 0 ? configuredSequence : maxSequence; }
    int64_t windowOf(int64_t layer) const { return windows.empty() ? 0 : windows[static_cast<size_t>(layer)]; }
};

using shardscope::ParameterKind;

/// A part of a low-rank adapter of a linear weight W (Hu et al., arXiv 2106.09685), with s = alpha ÷ rank:
/// y = x·Wᵀ + s·(x·Aᵀ)·Bᵀ
enum class AdapterPart { None, A, B };

/// One parameter, as its model's author names and shapes it ([out, in] for a linear weight).
struct ParameterShape
{
    std::string name; ///< "block.3.attention.q.weight"
    std::vector<int64_t> sizes;
    ParameterKind kind = ParameterKind::Linear;
    /// Fresh values: norms 1, biases 0, matrices normal with this spread; of adapters A uniform within ±1/√in, B 0.
    double initialStd = 0.02;
    AdapterPart adapter = AdapterPart::None;
    size_t adapts = 0; ///< an adapter's: the index of W in the unit
    int64_t elements() const;
};

/// What is gathered and freed together: the embedding, a decoder block, the head (final norm and output weight).
struct UnitShape
{
    std::string name; ///< "embedding", "block.3", "head"
    UnitKind kind = UnitKind::Other;
    std::vector<ParameterShape> parameters;
    int64_t elements() const;
};

/// The names that presetShape() takes: tiny, 15m, 124m, 350m, 1b3, 2b7, 6b7.
const std::vector<std::string> &presetNames();
Result<ModelShape> presetShape(std::string_view name);

/// Indices of a block's parameters, in their order; kAbsent where the model has none.
struct BlockParameters
{
    static constexpr size_t kAbsent = ~size_t{0};
    static constexpr size_t attentionNorm = 0, q = 1, k = 2, v = 3, o = 4, feedForwardNorm = 5, gate = 6, up = 7,
                            down = 8;
    size_t qBias = kAbsent, kBias = kAbsent, vBias = kAbsent, oBias = kAbsent;
    size_t qNorm = kAbsent, kNorm = kAbsent;
    size_t gateBias = kAbsent, upBias = kAbsent, downBias = kAbsent;

    explicit BlockParameters(const ModelShape &shape);
    /// All that the block's attention uses, its norm included; and all that its feed-forward does.
    std::vector<size_t> ofAttention() const;
    std::vector<size_t> ofFeedForward() const;
};

/// All units in the order of the forward pass. Parameters of a block: attention_norm.weight,
/// attention.{q,k,v,o}.weight, ffn_norm.weight, ffn.{gate,up,down}.weight; then, where the model has them,
/// attention.{q,k,v}.bias, attention.o.bias, attention.{q_norm,k_norm}.weight, ffn.{gate,up,down}.bias. With tied
/// embeddings the head has its norm only and uses embedding.weight.
std::vector<UnitShape> unitsOf(const ModelShape &shape);
int64_t parameterCount(const ModelShape &shape);

/// Floating-point operations a trained token costs, forward and backward: 6 × (parameters without the embedding) +
/// 12 × heads × headSize × sequenceLength a layer (PaLM, appendix B), or × its window where that is shorter.
double flopsPerToken(const ModelShape &shape, int64_t sequenceLength);

} // namespace shardscope::shapes
