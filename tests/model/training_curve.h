// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/model/decoder.h"
#include "tests/model/reference_decoder.h"

#include <functional>
#include <optional>
#include <vector>

namespace shardscope::test {

inline constexpr int kSteps = 20;
/// Of runs that are to be equal to the bit: what is not the same shows by the second step, what moves has moved to and
/// fro.
inline constexpr int kStepsToTheBit = 8;
inline constexpr int64_t kGlobalBatch = 12;
inline constexpr int64_t kPositions = 16;

/// A short training of a small model on random tokens, on one rank or several.
struct TrainingCase
{
    int worldSize = 1;
    int steps = kSteps;
    int64_t globalBatch = kGlobalBatch; ///< sequences a step
    int accumulation = 1;
    at::Device device = at::kCPU; ///< CUDA: of one rank
    bool tied = false;
    std::optional<shapes::ModelShape> shape; ///< in place of the small one with odd sizes
    int validateEvery = 0;                   ///< steps; 0: never
    bool countsUnequally = false;            ///< some targets are -1: another number of each row, all of two rows
    config::RunConfiguration configuration;  ///< strategy, precision, optimizer, clipping, rules
    /// Called on each rank before each step (0, 1, …); the configuration is the rank's own, and the
    /// step clips as it says.
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

/// int64 [batch, kPositions + 1].
at::Tensor stepTokens(const shapes::ModelShape &shape, int step, int64_t batch = kGlobalBatch);
/// What follows each of these tokens, -1 where the case does not count it: int64 [batch, kPositions].
at::Tensor stepTargets(const TrainingCase &test, const at::Tensor &tokens);
/// Those that make sense at a world size: `hybrid` where two groups can share the ranks.
std::vector<Strategy> strategiesAt(int worldSize);
/// One rank's part of one step, `tokens` on its device; returns the step's global loss and norm.
engine::StepScalars::Values trainStep(model::Decoder &decoder, const TrainingCase &test, const at::Tensor &tokens,
                                      Curve *firstGradients);
/// Every parameter by its name, whole. All ranks call it.
NamedTensors weightsOf(engine::Engine &engine);
/// At a learning rate of 1e-3.
Curve train(const TrainingCase &test);

/// By the table of tolerances: fp32 1e-5; bf16 5e-4 for losses, 1e-2 for norms, 3e-2 for the first gradients.
void expectSameCurve(const Curve &curve, const Curve &reference, Precision precision);
void expectEqualToTheBit(const Curve &a, const Curve &b);
/// The first step's norm is that of its gradients, each parameter counted once.
void expectNormOfTheGradients(const Curve &curve);

} // namespace shardscope::test
