// SPDX-License-Identifier: Apache-2.0
#include "core/model/rope.h"

#include <ATen/ATen.h>
#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardscope::model {

using shapes::RopeScaling;

/// 1 ÷ theta^(2i ÷ headSize).
static at::Tensor plainFrequencies(double theta, int64_t headSize)
{
    const at::Tensor exponents = at::arange(0, headSize, 2, at::kFloat).div_(static_cast<double>(headSize));
    return at::pow(at::Scalar(theta), exponents).reciprocal_();
}

/// NTK-aware scaling: a larger theta, so that the slowest pair alone is stretched by what the sequence is longer.
static at::Tensor dynamicFrequencies(const shapes::ModelShape &shape, int64_t positions)
{
    const auto size = static_cast<double>(shape.headSize);
    const double length = static_cast<double>(std::max(positions, shape.trainedSequence()));
    const double factor = shape.ropeScaling.factor;
    const double stretch = factor * length / static_cast<double>(shape.trainedSequence()) - (factor - 1);
    return plainFrequencies(shape.ropeTheta * std::pow(stretch, size / (size - 2)), shape.headSize);
}

/// Llama 3.1: long wavelengths are stretched, short ones not, those between in proportion.
static at::Tensor llama3Frequencies(const shapes::ModelShape &shape)
{
    const RopeScaling &scaling = shape.ropeScaling;
    const at::Tensor plain = plainFrequencies(shape.ropeTheta, shape.headSize);
    const auto length = static_cast<double>(scaling.originalMaxSequence);
    const double longest = length / scaling.lowFrequencyFactor;
    const double shortest = length / scaling.highFrequencyFactor;
    const at::Tensor wavelengths = at::reciprocal(plain) * (2 * std::numbers::pi);
    const at::Tensor isLong = wavelengths > longest;
    const at::Tensor stretched = at::where(isLong, plain / scaling.factor, plain);
    const at::Tensor smooth = (at::reciprocal(wavelengths) * length - scaling.lowFrequencyFactor) /
                              (scaling.highFrequencyFactor - scaling.lowFrequencyFactor);
    const at::Tensor between = (1 - smooth) * stretched / scaling.factor + smooth * stretched;
    const at::Tensor isBetween = (wavelengths >= shortest).logical_and_(isLong.logical_not());
    return at::where(isBetween, between, stretched);
}

/// Pair of a head that turns that often in the original length (YaRN, Peng et al. 2023, section 3.2).
static double correctionPair(double rotations, const shapes::ModelShape &shape)
{
    const auto length = static_cast<double>(shape.ropeScaling.originalMaxSequence);
    return static_cast<double>(shape.headSize) * std::log(length / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(shape.ropeTheta));
}

/// YaRN: pairs that turn often keep their frequency, those that turn seldom are stretched, a ramp lies between.
static at::Tensor yarnFrequencies(const shapes::ModelShape &shape)
{
    const RopeScaling &scaling = shape.ropeScaling;
    double low = correctionPair(scaling.betaFast, shape);
    double high = correctionPair(scaling.betaSlow, shape);
    if (scaling.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(shape.headSize - 1));
    if (low == high)
        high += 0.001;
    const at::Tensor ramp = at::arange(0, shape.headSize / 2, at::kFloat).sub_(low).div_(high - low).clamp_(0.0, 1.0);
    const at::Tensor plain = plainFrequencies(shape.ropeTheta, shape.headSize);
    return plain / scaling.factor * ramp + plain * (1 - ramp);
}

at::Tensor ropeFrequencies(const shapes::ModelShape &shape, int64_t positions)
{
    switch (shape.ropeScaling.kind) {
    case RopeScaling::Kind::Linear:
        return plainFrequencies(shape.ropeTheta, shape.headSize) / shape.ropeScaling.factor;
    case RopeScaling::Kind::Dynamic:
        return dynamicFrequencies(shape, positions);
    case RopeScaling::Kind::Llama3:
        return llama3Frequencies(shape);
    case RopeScaling::Kind::Yarn:
        return yarnFrequencies(shape);
    case RopeScaling::Kind::Default:
        break;
    }
    return plainFrequencies(shape.ropeTheta, shape.headSize);
}

bool ropeTablesGrow(const shapes::ModelShape &shape, int64_t positions)
{
    return shape.ropeScaling.kind != RopeScaling::Kind::Dynamic || positions <= shape.trainedSequence();
}

RopeTables ropeTables(const shapes::ModelShape &shape, int64_t positions, at::Device device)
{
    const at::TensorOptions fp32 = at::TensorOptions(device).dtype(at::kFloat);
    const at::Tensor angles_TH = at::outer(at::arange(positions, fp32), ropeFrequencies(shape, positions).to(device));
    const double factor = shape.ropeScaling.attentionFactor;
    return {angles_TH.cos().mul_(factor), angles_TH.sin().mul_(factor)};
}

} // namespace shardscope::model
