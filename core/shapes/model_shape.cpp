// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/model_shape.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace shardscope::shapes {

static ModelShape decoder(std::string name, int64_t hidden, int64_t layers, int64_t heads, int64_t ffnHidden,
                          int64_t vocabulary, int64_t maxSequence)
{
    ModelShape shape;
    shape.name = std::move(name);
    shape.hidden = hidden;
    shape.layers = layers;
    shape.heads = shape.keyValueHeads = heads;
    shape.headSize = hidden / heads;
    shape.ffnHidden = ffnHidden;
    shape.vocabulary = vocabulary;
    shape.maxSequence = maxSequence;
    return shape;
}

static const std::vector<ModelShape> &presets()
{
    static const std::vector<ModelShape> shapes = {
        decoder("tiny", 128, 4, 4, 384, 512, 2048),       decoder("15m", 288, 6, 6, 768, 32000, 2048),
        decoder("124m", 768, 12, 12, 2048, 50304, 4096),  decoder("350m", 1024, 24, 16, 2816, 32000, 4096),
        decoder("1b3", 2048, 24, 16, 5632, 32000, 8192),  decoder("2b7", 2560, 32, 20, 6912, 32000, 8192),
        decoder("6b7", 4096, 32, 32, 11008, 32000, 8192),
    };
    return shapes;
}

int64_t ParameterShape::elements() const
{
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

int64_t UnitShape::elements() const
{
    int64_t sum = 0;
    for (const ParameterShape &parameter : parameters)
        sum += parameter.elements();
    return sum;
}

const std::vector<std::string> &presetNames()
{
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const ModelShape &shape : presets())
            all.push_back(shape.name);
        return all;
    }();
    return names;
}

Result<ModelShape> presetShape(std::string_view name)
{
    const auto found = std::ranges::find(presets(), name, &ModelShape::name);
    if (found == presets().end())
        return fail("There is no preset \"{}\". There are: {}.", name, fmt::join(presetNames(), ", "));
    return *found;
}

BlockParameters::BlockParameters(const ModelShape &shape)
{
    size_t next = down + 1;
    if (shape.queryKeyValueBias) {
        qBias = next++;
        kBias = next++;
        vBias = next++;
    }
    if (shape.outputBias)
        oBias = next++;
    if (shape.queryKeyNorm) {
        qNorm = next++;
        kNorm = next++;
    }
    if (shape.feedForwardBias) {
        gateBias = next++;
        upBias = next++;
        downBias = next++;
    }
}

static std::vector<size_t> present(std::vector<size_t> indices)
{
    std::erase(indices, BlockParameters::kAbsent);
    return indices;
}

std::vector<size_t> BlockParameters::ofAttention() const
{
    return present({attentionNorm, q, k, v, o, qBias, kBias, vBias, oBias, qNorm, kNorm});
}

std::vector<size_t> BlockParameters::ofFeedForward() const
{
    return present({feedForwardNorm, gate, up, down, gateBias, upBias, downBias});
}

namespace {

/// A block's parameters, added one by one.
struct BlockBuilder
{
    const ModelShape &shape;
    UnitShape unit;

    void add(std::string_view name, std::vector<int64_t> sizes, ParameterKind kind)
    {
        unit.parameters.push_back({fmt::format("{}.{}", unit.name, name), std::move(sizes), kind, shape.initialStd});
    }
    void norm(std::string_view name, int64_t width) { add(name, {width}, ParameterKind::Norm); }
    void linear(std::string_view name, int64_t out, int64_t in) { add(name, {out, in}, ParameterKind::Linear); }
    void bias(std::string_view name, int64_t width) { add(name, {width}, ParameterKind::Bias); }
};

} // namespace

/// In the order of BlockParameters.
static UnitShape blockUnit(const ModelShape &shape, int64_t index)
{
    BlockBuilder block{shape, {fmt::format("block.{}", index), UnitKind::Block, {}}};
    const int64_t queryWidth = shape.heads * shape.headSize;
    const int64_t keyValueWidth = shape.keyValueHeads * shape.headSize;
    block.norm("attention_norm.weight", shape.hidden);
    block.linear("attention.q.weight", queryWidth, shape.hidden);
    block.linear("attention.k.weight", keyValueWidth, shape.hidden);
    block.linear("attention.v.weight", keyValueWidth, shape.hidden);
    block.linear("attention.o.weight", shape.hidden, queryWidth);
    block.norm("ffn_norm.weight", shape.hidden);
    block.linear("ffn.gate.weight", shape.ffnHidden, shape.hidden);
    block.linear("ffn.up.weight", shape.ffnHidden, shape.hidden);
    block.linear("ffn.down.weight", shape.hidden, shape.ffnHidden);
    if (shape.queryKeyValueBias) {
        block.bias("attention.q.bias", queryWidth);
        block.bias("attention.k.bias", keyValueWidth);
        block.bias("attention.v.bias", keyValueWidth);
    }
    if (shape.outputBias)
        block.bias("attention.o.bias", shape.hidden);
    if (shape.queryKeyNorm) {
        block.norm("attention.q_norm.weight", shape.headSize);
        block.norm("attention.k_norm.weight", shape.headSize);
    }
    if (shape.feedForwardBias) {
        block.bias("ffn.gate.bias", shape.ffnHidden);
        block.bias("ffn.up.bias", shape.ffnHidden);
        block.bias("ffn.down.bias", shape.hidden);
    }
    return std::move(block.unit);
}

std::vector<UnitShape> unitsOf(const ModelShape &shape)
{
    std::vector<UnitShape> units;
    units.push_back(
        {"embedding",
         UnitKind::Embedding,
         {{"embedding.weight", {shape.vocabulary, shape.hidden}, ParameterKind::Embedding, shape.initialStd}}});
    for (int64_t i = 0; i < shape.layers; ++i)
        units.push_back(blockUnit(shape, i));
    UnitShape head{"head", UnitKind::Head, {{"head.norm.weight", {shape.hidden}, ParameterKind::Norm}}};
    if (!shape.tiedEmbeddings)
        head.parameters.push_back(
            {"head.weight", {shape.vocabulary, shape.hidden}, ParameterKind::Linear, shape.initialStd});
    units.push_back(std::move(head));
    return units;
}

int64_t parameterCount(const ModelShape &shape)
{
    int64_t sum = 0;
    for (const UnitShape &unit : unitsOf(shape))
        sum += unit.elements();
    return sum;
}

double flopsPerToken(const ModelShape &shape, int64_t sequenceLength)
{
    const int64_t embedding = shape.tiedEmbeddings ? 0 : shape.vocabulary * shape.hidden;
    const double products = 6.0 * static_cast<double>(parameterCount(shape) - embedding);
    int64_t reached = 0;
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
        const int64_t window = shape.windowOf(layer);
        reached += window == 0 ? sequenceLength : std::min(window, sequenceLength);
    }
    const double attention = 12.0 * static_cast<double>(shape.heads * shape.headSize * reached);
    return products + attention;
}

} // namespace shardscope::shapes
