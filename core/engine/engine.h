// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: G a whole padded bucket, S a rank's slice of it, K scalars of a step.
#pragma once

#include "core/config/run_configuration.h"
#include "core/engine/communicator.h"
#include "core/engine/flat_layout.h"
#include "core/engine/sharded_unit.h"
#include "core/engine/step_scalars.h"
#include "core/observe/observer.h"

#include <deque>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace shardscope::engine {

struct EngineOptions
{
    Strategy strategy = Strategy::Full;
    Precision compute = Precision::Fp32;
    bool prefetch = true;        ///< gather ahead in backward
    bool forwardPrefetch = true; ///< gather ahead in forward
    OptimizerKind optimizer = OptimizerKind::AdamW;
    double beta1 = 0.9;
    double beta2 = 0.95;
    double eps = 1e-8;
    double momentum = 0;
    double weightDecay = 0.1;
    std::vector<std::string> noDecay = {"norm"};

    static EngineOptions from(const config::RunConfiguration &configuration);
};

/// One state ("master", "exp_avg", "exp_avg_sq", "momentum") of one bucket as this rank holds it: what a checkpoint
/// writes and reads. data_S is the live tensor (fp32, flat): reading a checkpoint copies into it.
struct StateShard
{
    observe::UnitIndex unit = observe::kNoUnit;
    std::string state;
    const BucketLayout *layout = nullptr;
    ElementRange held;  ///< of the bucket, in data_S: this rank's slice, or all of it under `none`
    ElementRange owned; ///< of the bucket: what this rank writes (its slice under every strategy), inside `held`
    at::Tensor data_S;

    at::Tensor ownedData() const { return data_S.narrow(0, owned.begin - held.begin, owned.size()); }
};

/// The sharding engine: flat masters, gathers, gradients, reductions and the optimizer of a model's units.
///
/// The model's side of a pass, unit by unit: acquire() → views by parameter() → compute → release(); in backward also
/// gradient() for each parameter and reduce() once the unit's gradients are complete. beginPass()/endPass() bracket it.
/// The loop's side of a step: passes → reduceScalars() → optimizerStep(). Call all from one thread.
class Engine
{
public:
    Engine(std::vector<shapes::UnitShape> units, EngineOptions options, Communicator &communicator,
           observe::Observer &observer);
    ~Engine();

    // --- What there is
    const EngineOptions &options() const { return m_options; }
    Communicator &communicator() { return m_communicator; }
    observe::Observer &observer() { return m_observer; }
    at::Device device() const { return m_communicator.device(); }
    at::ScalarType computeType() const;
    int64_t unitCount() const { return static_cast<int64_t>(m_units.size()); }
    const BucketLayout &layout(observe::UnitIndex unit) const;
    /// In the order of the forward pass; the index is the UnitIndex of spans, collectives and memory tags.
    std::vector<observe::UnitInfo> unitInfos() const;

    // --- Weights
    /// Normal with std 0.02 (norms: 1), each parameter from a generator of (seed, its ordinal): the same weights at
    /// every world size and strategy. One unit's parameters at a time exist whole.
    void initialize(int64_t seed);
    /// Copies one whole parameter in (any float dtype, on any device), the same on all ranks; each keeps its slice.
    Result<> loadParameter(std::string_view name, const at::Tensor &value);
    /// The whole parameter in fp32 on the device, gathered from all ranks. All ranks call it.
    Result<at::Tensor> gatherParameter(std::string_view name);
    /// The whole reduced gradient in fp32, after reduceScalars() and before optimizerStep(). All ranks call it.
    Result<at::Tensor> gatherGradient(std::string_view name);

    // --- A pass, for the model
    enum class PassKind { Train, Evaluate };
    /// lastMicroBatch: the gradients are complete after this pass (`none` reduces then, `grad_op` frees its weights).
    void beginPass(PassKind kind, bool lastMicroBatch);
    /// What the forward of this pass counts as: `forward` in training, `validate` in an evaluation.
    Phase forwardPhase() const { return m_pass == PassKind::Evaluate ? Phase::Validate : Phase::Forward; }
    /// Makes the unit's parameters whole, and enqueues the gathers of `next` ahead of what the caller computes with
    /// this one (as far as slots are free). Not inside a compute span: on the CPU it waits.
    void acquire(observe::UnitIndex unit, Phase phase, std::initializer_list<observe::UnitIndex> next = {});
    /// A view of the gathered parameter in the compute dtype; valid between acquire() and release().
    at::Tensor parameter(observe::UnitIndex unit, size_t index) const;
    /// `count` neighbouring matrices as one, [sum of rows, columns]; undefined where they do not lie without a gap.
    at::Tensor fusedParameter(observe::UnitIndex unit, size_t first, size_t count) const;
    /// The caller is done with the parameters; they are freed where the strategy says so. needAgain: the next unit of
    /// its size that this pass uses is the same one (the last block: forward, then backward), so it keeps its slot.
    void release(observe::UnitIndex unit, bool needAgain = false);

    /// Where the unit's fp32 gradient goes. accumulate: it already holds something that must stay; else every element
    /// of the parameter must be written.
    struct GradientPlace
    {
        at::Tensor grad;
        bool accumulate = false;
    };
    GradientPlace gradient(observe::UnitIndex unit, size_t index) { return fusedGradient(unit, index, 1); }
    /// Of neighbouring parameters for which fusedParameter() is defined.
    GradientPlace fusedGradient(observe::UnitIndex unit, size_t first, size_t count);
    /// The unit's gradients are all written and its parameters released for this pass: starts the reduction.
    void reduce(observe::UnitIndex unit);
    void endPass();

    // --- A step, for the loop
    /// After the last pass: waits for the reductions, and sums over all ranks, in one collective: the squares of the
    /// gradient, the loss (fp64 or fp32 scalar on the device, may be undefined) and `words` (at most
    /// StepScalars::kWords, each rank's; rank 0 puts its command there and others 0). Does not wait for the device.
    StepScalars reduceScalars(const at::Tensor &lossSum, std::span<const double> words = {});
    /// Sums `values` over the ranks without gradients (validation); waits for the result.
    std::vector<double> sumOverRanks(std::span<const double> values);
    /// Clips by the norm in `scalars` (clipNorm 0: not), updates masters and moments, frees the gradients.
    void optimizerStep(double learningRate, double clipNorm, const StepScalars &scalars);
    /// Frees the gradients without an update.
    void dropGradients();

    // --- Checkpoints
    /// Every state of every bucket, on this rank. Moments exist (zero) from the first call or step on.
    std::vector<StateShard> stateShards();
    int64_t optimizerSteps() const { return m_optimizerSteps; }
    /// After the tensors of stateShards() were overwritten: takes the count of steps and refreshes what is derived.
    void stateRestored(int64_t optimizerSteps);

private:
    ShardedUnit &unit(observe::UnitIndex index) { return *m_units[static_cast<size_t>(index)]; }
    const ShardedUnit &unit(observe::UnitIndex index) const { return *m_units[static_cast<size_t>(index)]; }
    at::TensorOptions fp32() const;
    bool isSharded() const { return m_options.strategy != Strategy::None && m_communicator.worldSize() > 1; }
    void setUpUnit(ShardedUnit &unit, const shapes::UnitShape &shape);
    void assignSlots();
    at::Tensor allocate(int64_t elements, const at::TensorOptions &options, MemoryCategory category,
                        observe::UnitIndex unit, bool zero = false);
    bool startGather(ShardedUnit &unit, Phase phase);
    void freeGathered(ShardedUnit &unit);
    at::Tensor &gradientBuffer(ShardedUnit &unit);
    void clearPadding(const ShardedUnit &unit, const at::Tensor &buffer_G);
    void drainReductions(size_t keep);
    void ensureMoments();
    void updateUnit(ShardedUnit &unit, double learningRate, const at::Tensor &clip);
    void storeParameter(ShardedUnit &unit, const ParameterPlace &place, const at::Tensor &value);
    void refreshResident(ShardedUnit &unit);
    Result<at::Tensor> gatherFlat(std::string_view name, bool gradient);

    EngineOptions m_options;
    Communicator &m_communicator;
    observe::Observer &m_observer;
    std::vector<std::unique_ptr<ShardedUnit>> m_units;
    SlotPool m_slots;
    std::deque<ShardedUnit *> m_reducing;
    int64_t m_optimizerSteps = 0;
    PassKind m_pass = PassKind::Train;
    bool m_lastMicroBatch = true;
};

} // namespace shardscope::engine
