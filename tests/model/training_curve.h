// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/model/decoder.h"
#include "tests/model/reference_decoder.h"

#include <functional>
#include <vector>

namespace shardscope::test {

/// A short training of a small model on random tokens, on one rank or several.
struct TrainingCase
{
    int worldSize = 1;
    int accumulation = 1;
    bool tied = false;
    int validateEvery = 0;                  ///< steps; 0: never
    config::RunConfiguration configuration; ///< strategy, precision, optimizer, clipping, rules
    /// Called on each rank before each step (0, 1, …); the configuration is the rank's own.
    std::function<void(model::Decoder &, config::RunConfiguration &, int step)> beforeStep;
};

/// What came of it, as rank 0 saw it.
struct Curve
{
    std::vector<double> losses;
    std::vector<double> norms;
    NamedTensors firstWeights;
    NamedTensors firstGradients; ///< of trained parameters
    NamedTensors lastWeights;
    double firstBatchAfter = 0; ///< loss of step 0's tokens after the last step
};

inline constexpr int kSteps = 20;
inline constexpr int64_t kGlobalBatch = 12;
inline constexpr int64_t kPositions = 16;

/// int64 [kGlobalBatch, kPositions + 1].
at::Tensor stepTokens(const shapes::ModelShape &shape, int step);
/// One rank's part of one step, `tokens` on its device; returns the step's global loss and norm.
engine::StepScalars::Values trainStep(model::Decoder &decoder, const TrainingCase &test, const at::Tensor &tokens,
                                      Curve *firstGradients);
/// kSteps steps at a learning rate of 1e-3.
Curve train(const TrainingCase &test);

/// By the table of tolerances: fp32 1e-5; bf16 5e-4 for losses, 1e-2 for norms, 3e-2 for the first gradients.
void expectSameCurve(const Curve &curve, const Curve &reference, Precision precision);
void expectEqualToTheBit(const Curve &a, const Curve &b);

} // namespace shardscope::test
