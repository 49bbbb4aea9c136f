// SPDX-License-Identifier: Apache-2.0
#include "tests/model/reference_decoder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

namespace shardscope::test {

using at::Tensor;

shapes::ModelShape smallShape(bool odd, bool tied, bool grouped)
{
    shapes::ModelShape shape;
    shape.name = "small";
    shape.headSize = odd ? 10 : 16;
    shape.heads = grouped ? 6 : 4;
    shape.keyValueHeads = grouped ? 2 : 4;
    shape.hidden = odd ? 37 : 64;
    shape.layers = 3;
    shape.ffnHidden = odd ? 51 : 96;
    shape.vocabulary = odd ? 101 : 128;
    shape.maxSequence = 64;
    shape.tiedEmbeddings = tied;
    return shape;
}

shapes::ModelShape shapeWithEverything(bool odd)
{
    shapes::ModelShape shape = smallShape(odd, false, true);
    shape.queryKeyValueBias = shape.outputBias = shape.feedForwardBias = true;
    shape.queryKeyNorm = true;
    shape.windows = {0, 5, 0};
    shape.ropeScaling.attentionFactor = 1.2;
    return shape;
}

NamedTensors randomWeights(const shapes::ModelShape &shape, int64_t seed)
{
    // A generator of its own: ranks are threads of one process.
    const auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(seed));
    NamedTensors weights;
    for (const shapes::UnitShape &unit : shapes::unitsOf(shape)) {
        for (const shapes::ParameterShape &parameter : unit.parameters) {
            const bool isNorm = parameter.kind == shapes::ParameterKind::Norm;
            weights[parameter.name] = isNorm ? 1.0 + 0.1 * at::randn(parameter.sizes, generator)
                                             : 0.05 * at::randn(parameter.sizes, generator);
        }
    }
    return weights;
}

static Tensor rotate(const Tensor &x_BHTD, double theta, double factor)
{
    const int64_t positions = x_BHTD.size(2);
    const int64_t headSize = x_BHTD.size(3);
    const auto fp32 = at::TensorOptions(x_BHTD.device()).dtype(at::kFloat);
    const Tensor inverse = 1.0 / torch::pow(theta, torch::arange(0, headSize, 2, fp32) / headSize);
    Tensor angles = torch::outer(torch::arange(positions, fp32), inverse);
    angles = torch::cat({angles, angles}, -1);
    const Tensor low = x_BHTD.slice(-1, 0, headSize / 2);
    const Tensor high = x_BHTD.slice(-1, headSize / 2);
    const auto type = x_BHTD.scalar_type();
    return (x_BHTD * angles.cos().to(type) + torch::cat({-high, low}, -1) * angles.sin().to(type)) * factor;
}

static Tensor norm(const Tensor &x, const Tensor &weight, double eps)
{
    return at::rms_norm(x, {x.size(-1)}, weight, eps);
}

/// True where a position is masked.
static Tensor maskOf(int64_t positions, int64_t window)
{
    const Tensor q = torch::arange(positions).unsqueeze(1);
    const Tensor k = torch::arange(positions).unsqueeze(0);
    const Tensor ahead = k > q;
    return window == 0 ? ahead : ahead.logical_or(k <= q - window);
}

static Tensor block(const shapes::ModelShape &shape, const NamedTensors &w, int64_t layer, Tensor x)
{
    const std::string prefix = "block." + std::to_string(layer) + ".";
    const auto weight = [&](const char *name) { return w.at(prefix + name + ".weight"); };
    const auto linear = [&](const Tensor &y, const char *name) {
        const auto bias = w.find(prefix + name + ".bias");
        return at::linear(y, weight(name), bias == w.end() ? std::optional<Tensor>() : bias->second);
    };
    const int64_t batch = x.size(0);
    const int64_t positions = x.size(1);
    const auto heads = [&](const Tensor &y, const char *name, int64_t count) {
        return linear(y, name).view({batch, positions, count, shape.headSize}).transpose(1, 2);
    };
    const auto rotated = [&](Tensor y, const char *normName) {
        if (shape.queryKeyNorm)
            y = norm(y, weight(normName), shape.normEps);
        return rotate(y, shape.ropeTheta, shape.ropeScaling.attentionFactor);
    };
    Tensor y = norm(x, weight("attention_norm"), shape.normEps);
    const Tensor q = rotated(heads(y, "attention.q", shape.heads), "attention.q_norm");
    const int64_t group = shape.heads / shape.keyValueHeads;
    const Tensor k =
        rotated(heads(y, "attention.k", shape.keyValueHeads), "attention.k_norm").repeat_interleave(group, 1);
    const Tensor v = heads(y, "attention.v", shape.keyValueHeads).repeat_interleave(group, 1);
    Tensor scores = torch::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(shape.headSize));
    const Tensor masked = maskOf(positions, shape.windowOf(layer)).to(x.device());
    const Tensor attended = torch::matmul(torch::softmax(scores.masked_fill(masked, -INFINITY), -1), v);
    x = x + linear(attended.transpose(1, 2).reshape({batch, positions, -1}), "attention.o");
    y = norm(x, weight("ffn_norm"), shape.normEps);
    return x + linear(torch::silu(linear(y, "ffn.gate")) * linear(y, "ffn.up"), "ffn.down");
}

ReferenceResult referenceStep(const shapes::ModelShape &shape, const NamedTensors &weights, const Tensor &tokens_BT,
                              const Tensor &targets_BT, double lossScale)
{
    NamedTensors w;
    for (const auto &[name, value] : weights)
        w[name] = value.detach().clone().requires_grad_(true);
    Tensor x = at::embedding(w.at("embedding.weight"), tokens_BT);
    for (int64_t i = 0; i < shape.layers; ++i)
        x = block(shape, w, i, x);
    x = norm(x, w.at("head.norm.weight"), shape.normEps);
    const Tensor logits = at::linear(x, w.at(shape.tiedEmbeddings ? "embedding.weight" : "head.weight"));
    const Tensor targets = torch::where(targets_BT < 0, torch::full_like(targets_BT, -100), targets_BT);
    const auto options = torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum).ignore_index(-100);
    const Tensor loss =
        torch::nn::functional::cross_entropy(logits.flatten(0, 1).to(at::kFloat), targets.flatten(), options) *
        lossScale;
    loss.backward();
    ReferenceResult result;
    result.loss = loss.item<double>();
    for (const auto &[name, value] : w)
        result.gradients[name] = value.grad();
    return result;
}

} // namespace shardscope::test
