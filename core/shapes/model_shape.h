// SPDX-License-Identifier: Apache-2.0
// Model families as arithmetic: every parameter's name, shape, kind and unit. Used by the plan and by the engine.
#pragma once

#include "core/base/names.h"
#include "core/base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::shapes {

/// A Llama-shaped decoder: RMSNorm, RoPE (half-split layout), grouped-query attention, SwiGLU.
struct ModelShape
{
    std::string name;
    int64_t vocabulary = 0;
    int64_t hidden = 0;
    int64_t layers = 0;
    int64_t heads = 0;
    int64_t keyValueHeads = 0;
    int64_t headSize = 0;
    int64_t ffnHidden = 0;
    int64_t maxSequence = 0;
    double normEps = 1e-5;
    double ropeTheta = 10000.0;
    bool tiedEmbeddings = false;
};

enum class ParameterKind { Embedding, Linear, Norm };

/// One parameter, as its model's author names and shapes it ([out, in] for a linear weight).
struct ParameterShape
{
    std::string name; ///< "block.3.attention.q.weight"
    std::vector<int64_t> sizes;
    ParameterKind kind = ParameterKind::Linear;
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

/// All units in the order of the forward pass. Parameters of a block: attention_norm.weight,
/// attention.{q,k,v,o}.weight, ffn_norm.weight, ffn.{gate,up,down}.weight. With tied embeddings the head has its norm
/// only and uses embedding.weight.
std::vector<UnitShape> unitsOf(const ModelShape &shape);
int64_t parameterCount(const ModelShape &shape);

/// Floating-point operations a trained token costs, forward and backward: 6 × (parameters without the embedding) +
/// 12 × layers × heads × headSize × sequenceLength (PaLM, appendix B).
double flopsPerToken(const ModelShape &shape, int64_t sequenceLength);

} // namespace shardscope::shapes
