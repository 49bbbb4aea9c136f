// SPDX-License-Identifier: Apache-2.0
// Order and defaults of the fields are those of transformers 5.23, modeling_rope_utils.py (RotaryEmbeddingConfigMixin).
#include "core/shapes/hf_rope.h"

#include "core/shapes/hf_config.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace shardscope::shapes {

using Kind = RopeScaling::Kind;
using nlohmann::json;

static constexpr double kUsualTheta = 10000.0;
static constexpr int64_t kLongestSequence = int64_t{1} << 40;

static constexpr std::pair<Kind, std::string_view> kKinds[] = {{Kind::Default, "default"},
                                                               {Kind::Linear, "linear"},
                                                               {Kind::Dynamic, "dynamic"},
                                                               {Kind::Llama3, "llama3"},
                                                               {Kind::Yarn, "yarn"}};

std::string_view toText(RopeScaling::Kind kind)
{
    return std::ranges::find(kKinds, kind, &std::pair<Kind, std::string_view>::first)->second;
}

/// The object that says how RoPE is scaled, and its name; an empty object where there is none.
static std::pair<json, std::string> ropeObject(const HfFields &top)
{
    for (const char *name : {"rope_scaling", "rope_parameters"}) { // in that order there, too
        const json *found = top.find(name);
        if (!found || (found->is_object() && found->empty()))
            continue;
        if (found->is_object())
            return {*found, name};
        top.problem("{} must be an object.", name);
    }
    return {json::object(), "rope_parameters"};
}

static double positive(const HfFields &rope, const char *name, std::optional<double> usual)
{
    const std::optional<double> value = rope.number(name);
    if (!value && !usual && !rope.find(name))
        rope.problem("{} is missing.", name);
    if (value && *value <= 0)
        rope.problem("{} = {} must be above 0.", name, *value);
    return std::max(value.value_or(usual.value_or(1.0)), 1e-30);
}

/// The factor on cosines and sines that YaRN's authors found for a stretch.
static double yarnScale(double stretch, double weight)
{
    return stretch <= 1 ? 1.0 : 0.1 * weight * std::log(stretch) + 1.0;
}

static void readYarn(const HfFields &rope, RopeScaling &scaling)
{
    scaling.betaFast = rope.number("beta_fast").value_or(0);
    scaling.betaSlow = rope.number("beta_slow").value_or(0);
    scaling.betaFast = scaling.betaFast == 0 ? 32 : scaling.betaFast;
    scaling.betaSlow = scaling.betaSlow == 0 ? 1 : scaling.betaSlow;
    scaling.truncate = rope.flag("truncate").value_or(true);
    const double mscale = rope.number("mscale").value_or(0);
    const double mscaleAll = rope.number("mscale_all_dim").value_or(0);
    if (const auto stated = rope.number("attention_factor"))
        scaling.attentionFactor = *stated;
    else if (mscale != 0 && mscaleAll != 0)
        scaling.attentionFactor = yarnScale(scaling.factor, mscale) / yarnScale(scaling.factor, mscaleAll);
    else
        scaling.attentionFactor = yarnScale(scaling.factor, 1);
    if (scaling.attentionFactor <= 0 || scaling.betaFast <= 0 || scaling.betaSlow <= 0)
        rope.problem("attention_factor, beta_fast and beta_slow must be above 0.");
}

static void readScaling(const HfFields &rope, const HfFields &top, ModelShape &shape)
{
    RopeScaling &scaling = shape.ropeScaling;
    if (scaling.kind == Kind::Default)
        return;
    const bool hasOriginal = scaling.kind == Kind::Llama3 || scaling.kind == Kind::Yarn;
    if (hasOriginal) {
        const auto outside = top.count("original_max_position_embeddings", kLongestSequence);
        const auto inside = rope.count("original_max_position_embeddings", kLongestSequence);
        scaling.originalMaxSequence = outside.value_or(inside.value_or(shape.configuredSequence));
    }
    std::optional<double> usual;
    if (scaling.kind == Kind::Yarn && rope.isPresent("factor") && scaling.originalMaxSequence > 0)
        usual = static_cast<double>(shape.configuredSequence) / static_cast<double>(scaling.originalMaxSequence);
    scaling.factor = positive(rope, "factor", usual);
    if (scaling.kind == Kind::Llama3) {
        scaling.lowFrequencyFactor = positive(rope, "low_freq_factor", std::nullopt);
        scaling.highFrequencyFactor = positive(rope, "high_freq_factor", std::nullopt);
        if (scaling.highFrequencyFactor <= scaling.lowFrequencyFactor)
            rope.problem("high_freq_factor must be above low_freq_factor.");
    }
    if (scaling.kind == Kind::Yarn)
        readYarn(rope, scaling);
}

/// Stretched positions count: max_position_embeddings is what the model was trained on first, except for llama3, where
/// it is the stretched length itself.
static int64_t longestSequence(const ModelShape &shape)
{
    const RopeScaling &scaling = shape.ropeScaling;
    const auto times = [&](int64_t length) {
        return static_cast<int64_t>(std::min(static_cast<double>(length) * std::max(scaling.factor, 1.0),
                                             static_cast<double>(kLongestSequence)));
    };
    switch (scaling.kind) {
    case Kind::Linear:
    case Kind::Dynamic:
        return times(shape.configuredSequence);
    case Kind::Yarn:
        return std::max(shape.configuredSequence, times(scaling.originalMaxSequence));
    case Kind::Default:
    case Kind::Llama3:
        break;
    }
    return shape.configuredSequence;
}

static void warnOfUnknown(const json &object, const std::string &name, std::vector<std::string> &warnings)
{
    static const std::set<std::string> known = {"rope_type",       "type",
                                                "rope_theta",      "partial_rotary_factor",
                                                "factor",          "original_max_position_embeddings",
                                                "beta_fast",       "beta_slow",
                                                "low_freq_factor", "high_freq_factor",
                                                "mscale",          "mscale_all_dim",
                                                "truncate",        "finetuned",
                                                "attention_factor"};
    for (const auto &[field, value] : object.items()) {
        if (!known.contains(field))
            warnings.push_back(fmt::format("{}.{} is not known here and has no effect.", name, field));
    }
}

void readRope(const json &config, ModelShape &shape, std::vector<std::string> &problems,
              std::vector<std::string> &warnings)
{
    const HfFields top(config, problems);
    const auto [object, name] = ropeObject(top);
    const HfFields rope(object, problems, name + ".");
    const bool isNested = object.contains("full_attention") || object.contains("sliding_attention");
    if (isNested) {
        top.problem("{} differs between kinds of layers, which is not supported: one RoPE serves all layers.", name);
        return;
    }
    warnOfUnknown(object, name, warnings);
    std::optional<std::string> type = rope.text("rope_type");
    if (!type)
        type = rope.text("type");
    const auto kind = std::ranges::find(kKinds, type.value_or("default"), &std::pair<Kind, std::string_view>::second);
    if (kind == std::end(kKinds)) {
        top.problem("RoPE of the kind \"{}\" ({}) is not supported. Supported: default, linear, dynamic, llama3, yarn.",
                    *type, name);
        return;
    }
    shape.ropeScaling.kind = kind->first;
    const auto outside = top.number("rope_theta");
    shape.ropeTheta = rope.number("rope_theta").value_or(outside.value_or(kUsualTheta));
    if (shape.ropeTheta <= 1)
        top.problem("rope_theta = {} must be above 1.", shape.ropeTheta);
    const auto share =
        rope.find("partial_rotary_factor") ? rope.number("partial_rotary_factor") : top.number("partial_rotary_factor");
    if (share.value_or(1.0) != 1.0)
        top.problem("partial_rotary_factor = {} is not supported: RoPE rotates whole heads here.", *share);
    readScaling(rope, top, shape);
    shape.maxSequence = longestSequence(shape);
}

json ropeParametersOf(const ModelShape &shape)
{
    const RopeScaling &scaling = shape.ropeScaling;
    json object = {{"rope_type", toText(scaling.kind)}, {"rope_theta", shape.ropeTheta}};
    if (scaling.kind == Kind::Default)
        return object;
    object["factor"] = scaling.factor;
    if (scaling.kind == Kind::Llama3 || scaling.kind == Kind::Yarn)
        object["original_max_position_embeddings"] = scaling.originalMaxSequence;
    if (scaling.kind == Kind::Llama3) {
        object["low_freq_factor"] = scaling.lowFrequencyFactor;
        object["high_freq_factor"] = scaling.highFrequencyFactor;
    }
    if (scaling.kind == Kind::Yarn) {
        object["attention_factor"] = scaling.attentionFactor;
        object["beta_fast"] = scaling.betaFast;
        object["beta_slow"] = scaling.betaSlow;
        object["truncate"] = scaling.truncate;
    }
    return object;
}

} // namespace shardscope::shapes
