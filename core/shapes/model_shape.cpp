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

static UnitShape blockUnit(const ModelShape &shape, int64_t index)
{
    const std::string prefix = fmt::format("block.{}", index);
    const int64_t queryWidth = shape.heads * shape.headSize;
    const int64_t keyValueWidth = shape.keyValueHeads * shape.headSize;
    const auto norm = [&](std::string_view name) {
        return ParameterShape{fmt::format("{}.{}.weight", prefix, name), {shape.hidden}, ParameterKind::Norm};
    };
    const auto linear = [&](std::string_view name, int64_t out, int64_t in) {
        return ParameterShape{fmt::format("{}.{}.weight", prefix, name), {out, in}, ParameterKind::Linear};
    };
    return {prefix,
            UnitKind::Block,
            {norm("attention_norm"), linear("attention.q", queryWidth, shape.hidden),
             linear("attention.k", keyValueWidth, shape.hidden), linear("attention.v", keyValueWidth, shape.hidden),
             linear("attention.o", shape.hidden, queryWidth), norm("ffn_norm"),
             linear("ffn.gate", shape.ffnHidden, shape.hidden), linear("ffn.up", shape.ffnHidden, shape.hidden),
             linear("ffn.down", shape.hidden, shape.ffnHidden)}};
}

std::vector<UnitShape> unitsOf(const ModelShape &shape)
{
    std::vector<UnitShape> units;
    units.push_back({"embedding",
                     UnitKind::Embedding,
                     {{"embedding.weight", {shape.vocabulary, shape.hidden}, ParameterKind::Embedding}}});
    for (int64_t i = 0; i < shape.layers; ++i)
        units.push_back(blockUnit(shape, i));
    UnitShape head{"head", UnitKind::Head, {{"head.norm.weight", {shape.hidden}, ParameterKind::Norm}}};
    if (!shape.tiedEmbeddings)
        head.parameters.push_back({"head.weight", {shape.vocabulary, shape.hidden}, ParameterKind::Linear});
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
    const double attention = 12.0 * static_cast<double>(shape.layers * shape.heads * shape.headSize * sequenceLength);
    return products + attention;
}

} // namespace shardscope::shapes
