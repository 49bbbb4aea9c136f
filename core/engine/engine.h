// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: G a whole padded bucket, S a rank's slice of it, K scalars of a step.
#pragma once

#include "core/config/run_configuration.h"
#include "core/engine/bucket.h"
#include "core/engine/communicator.h"
#include "core/engine/gradient_offload.h"
#include "core/engine/parameter_reader.h"
#include "core/engine/process_groups.h"
#include "core/engine/slot_pool.h"
#include "core/engine/state_memory.h"
#include "core/engine/state_update.h"
#include "core/engine/step_factor.h"
#include "core/engine/step_scalars.h"
#include "core/observe/observer.h"
#include "core/shapes/unit_plan.h"

#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shardscope::engine {

/// What is fixed for a run beside its plan.
struct EngineOptions
{
    Precision compute = Precision::Fp32;
    Precision reduce = Precision::Fp32;  ///< what gradients travel in between ranks: fp32 or bf16
    Precision moments = Precision::Fp32; ///< fp32 or bf16
    OptimizerKind optimizer = OptimizerKind::AdamW;
    double beta1 = 0.9;
    double beta2 = 0.95;
    double eps = 1e-8;
    double momentum = 0;
    double weightDecay = 0.1;
    std::vector<std::string> noDecay = {"norm", "bias"};
    std::optional<GradientScaler::Options> scaler; ///< of fp16
    std::string offloadPath; ///< folder for what is offloaded to nvme; "": the system's for temporary files
    int updateThreads = 0;   ///< for updates on the host; 0: cores ÷ ranks − 2, at least 1
    /// Elements of a state that are on their way at once, a multiple of kFileBlock.
    int64_t updateChunkElements = int64_t{1} << 22;

    static EngineOptions from(const config::RunConfiguration &configuration);
};

/// One state ("master", "exp_avg", "exp_avg_sq", "momentum") of one bucket as this rank holds it: what a checkpoint
/// writes and reads. data_S is the live flat tensor: reading a checkpoint copies into it. It lies on the device or,
/// offloaded, on the host: in memory, or as a mapping of the file. Let it go before the next step. Masters are
/// fp32, moments fp32 or bf16; a frozen bucket's master is in the compute dtype.
struct StateShard
{
    observe::UnitIndex unit = observe::kNoUnit;
    std::string state;
    const BucketLayout *layout = nullptr;
    ElementRange held;  ///< of the bucket, in data_S: this rank's group's part, or all of it under `none`
    ElementRange owned; ///< of the bucket, inside `held`: what this rank writes; all ranks' together are the bucket
    at::Tensor data_S;

    at::Tensor ownedData() const { return data_S.narrow(0, owned.begin - held.begin, owned.size()); }
};

/// The sharding engine: flat masters, gathers, gradients, reductions and the optimizer of a model's units, each of
/// which is one bucket or several that are sharded in ways of their own.
///
/// The model's side of a pass, unit by unit: acquire() → views by parameter() → compute → release(); in backward also
/// gradient() for each parameter and reduce() once the unit's gradients are complete. beginPass()/endPass() bracket it.
/// The loop's side of a step: passes → reduceScalars() → optimizerStep(). Call all from one thread.
class Engine
{
public:
    Engine(shapes::ModelPlan plan, EngineOptions options, Communicator &communicator, observe::Observer &observer);
    ~Engine();

    // --- What there is
    const EngineOptions &options() const { return m_options; }
    Communicator &communicator() { return m_communicator; }
    observe::Observer &observer() { return m_observer; }
    at::Device device() const { return m_communicator.device(); }
    at::ScalarType computeType() const;
    const shapes::ModelPlan &plan() const { return m_plan; }
    int64_t unitCount() const { return static_cast<int64_t>(m_units.size()); }
    const shapes::UnitSettings &settings(observe::UnitIndex unit) const { return unitAt(unit).settings; }
    /// Whether any of the unit's parameters is trained.
    bool trains(observe::UnitIndex unit) const;
    /// The first unit with a parameter that is trained: no gradient is wanted before it.
    observe::UnitIndex firstTrained() const;
    /// In the order of the units; a unit that is one bucket has the bucket's index.
    const std::vector<Bucket> &buckets() const { return m_buckets; }
    /// Units in the order of the forward pass, then buckets that a rule sets apart, with their unit as parent. The
    /// index is the UnitIndex of spans, collectives and memory tags.
    std::vector<observe::UnitInfo> unitInfos() const;

    /// Takes the settings of another plan of the same units and buckets (shapes::replanned()), keeping all values to
    /// the bit. Between two steps, on all ranks alike. One bucket's state at a time exists twice.
    void reconfigure(const shapes::ModelPlan &plan);

    // --- Weights
    /// Normal with std 0.02 (norms: 1), each parameter from a generator of (seed, its ordinal): the same weights at
    /// every world size and strategy, and with adapters as without, which initializeAdapters() fills. One unit's
    /// parameters at a time exist whole.
    void initialize(int64_t seed);
    /// A uniform within ±1/√in, as PyTorch's kaiming_uniform_(a = √5) and peft have it, each from a generator of (seed,
    /// its name); B 0: the model is what it is without them.
    void initializeAdapters(int64_t seed);
    /// Copies one whole parameter in (any float dtype, on any device), the same on all ranks; each keeps its slice.
    Result<> loadParameter(std::string_view name, const at::Tensor &value);
    /// The whole parameter in fp32 on the device, gathered from all ranks. All ranks call it.
    Result<at::Tensor> gatherParameter(std::string_view name);
    /// The whole reduced gradient in fp32, without the scaler's scale, after reduceScalars() and before
    /// optimizerStep(). All ranks call it.
    Result<at::Tensor> gatherGradient(std::string_view name);

    // --- A pass, for the model
    enum class PassKind { Train, Evaluate };
    /// lastMicroBatch: the gradients are complete after this pass (`none` reduces then, `grad_op` frees its weights).
    void beginPass(PassKind kind, bool lastMicroBatch);
    /// What the forward of this pass counts as: `forward` in training, `validate` in an evaluation.
    Phase forwardPhase() const { return m_pass == PassKind::Evaluate ? Phase::Validate : Phase::Forward; }
    /// Makes the unit's parameters whole, and enqueues the gathers of `next` (and as many behind the last of them as
    /// the depth of prefetching says) ahead of what the caller computes with this one, as far as slots are free and the
    /// limit allows. In backward nothing next means that this is the last: slots that are free then are given up. Not
    /// inside a compute span: on the CPU it waits.
    void acquire(observe::UnitIndex unit, Phase phase, std::initializer_list<observe::UnitIndex> next = {});
    /// A view of the gathered parameter in the compute dtype; valid between acquire() and release().
    at::Tensor parameter(observe::UnitIndex unit, size_t index) const;
    /// `count` neighbouring matrices as one, [sum of rows, columns]; undefined where they do not lie without a gap.
    at::Tensor fusedParameter(observe::UnitIndex unit, size_t first, size_t count) const;
    /// The caller is done with the parameters; they are freed where the strategy says so. needAgain: the next unit of
    /// its size that this pass uses is the same one (the last block: forward, then backward), so it keeps its slot.
    void release(observe::UnitIndex unit, bool needAgain = false);

    /// Where the unit's fp32 gradient goes. accumulate: it already holds something that must stay; else every element
    /// of the parameter must be written. grad is undefined where the parameter is frozen: nothing is to be computed.
    struct GradientPlace
    {
        at::Tensor grad;
        bool accumulate = false;
    };
    GradientPlace gradient(observe::UnitIndex unit, size_t index) { return fusedGradient(unit, index, 1); }
    /// Of neighbouring parameters for which fusedParameter() is defined.
    GradientPlace fusedGradient(observe::UnitIndex unit, size_t first, size_t count);
    /// What this pass has written of a parameter's gradient, before reduce(); undefined where that is nothing.
    at::Tensor writtenGradient(observe::UnitIndex unit, size_t index) const;
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
    /// Before a step's passes: it will end with optimizerStep(learningRate, 0, …) whatever its gradient is, finite or
    /// not. Where
    /// masters or moments are offloaded, a bucket's update may then begin as soon as its gradient is complete, behind
    /// the rest of the backward pass.
    void expectUpdate(double learningRate);
    /// Clips by the norm in `scalars` (clipNorm 0: not), updates masters and moments, frees the gradients. Where loss
    /// or gradient in `scalars` is not finite, all of them stay as they are, on all ranks, and the step counts for
    /// nothing: the device decides that, and nothing waits for it (not after expectUpdate()). Where masters or moments
    /// are offloaded, only begins to: the updates go on under the next forward pass, unit by unit in its order, and
    /// whatever needs their results waits for them.
    void optimizerStep(double learningRate, double clipNorm, const StepScalars &scalars);
    /// Frees the gradients without an update; not after expectUpdate().
    void dropGradients();
    /// What the scaler of fp16 training multiplies this step's gradients by: an fp64 scalar on the device; undefined
    /// without one.
    at::Tensor gradientScale() const { return m_scaler ? m_scaler->scale() : at::Tensor(); }

    // --- Checkpoints
    /// Every state of every bucket, on this rank, after the last update. Moments exist (zero) from the first call or
    /// step on.
    std::vector<StateShard> stateShards();
    /// Steps that were made and not skipped; waits until the device knows of the last one.
    int64_t optimizerSteps();
    /// The scaler's after the last step, where there is one; waits for the device.
    std::optional<ScalerState> scalerState() const;
    /// Before a step; without a scaler nothing happens.
    void restoreScaler(const ScalerState &state);
    /// After the tensors of stateShards() were overwritten: takes the count of steps and refreshes what is derived.
    void stateRestored(int64_t optimizerSteps);

    /// The caller uses these parameters of an acquired unit until endPart(): gathers those of them that are wrapped.
    void beginPart(observe::UnitIndex unit, std::span<const size_t> parameters, Phase phase);
    void endPart(observe::UnitIndex unit, std::span<const size_t> parameters);

private:
    Unit &unitAt(observe::UnitIndex unit) { return m_units[static_cast<size_t>(unit)]; }
    const Unit &unitAt(observe::UnitIndex unit) const { return m_units[static_cast<size_t>(unit)]; }
    Bucket &bucketOf(observe::UnitIndex unit, size_t parameter)
    {
        return m_buckets[unitAt(unit).parameters[parameter].bucket];
    }
    const Bucket &bucketOf(observe::UnitIndex unit, size_t parameter) const
    {
        return m_buckets[unitAt(unit).parameters[parameter].bucket];
    }
    const ParameterPlace &placeOf(observe::UnitIndex unit, size_t parameter) const;
    std::pair<int64_t, int64_t> fusedSize(observe::UnitIndex unit, size_t first, size_t count) const;
    at::TensorOptions fp32() const;
    at::ScalarType masterType(const Bucket &bucket) const;
    void setUpUnit(const shapes::UnitPlan &plan);
    void setUpBucket(Bucket &bucket);
    void place(Bucket &bucket, const shapes::BucketSettings &settings);
    void assignSlots();
    at::Tensor allocate(int64_t elements, const at::TensorOptions &options, MemoryCategory category,
                        observe::UnitIndex unit, bool zero = false);
    bool startGather(Unit &unit, Phase phase);
    bool startGather(Bucket &bucket, Phase phase);
    void gatherAhead(std::span<const observe::UnitIndex> next, Phase phase);
    bool gatherIsWithinLimit(const Unit &unit) const;
    void waitForGather(Bucket &bucket, Phase phase);
    void freeGathered(Bucket &bucket);
    void keepPart(Bucket &bucket);
    at::Tensor &gradientBuffer(Bucket &bucket);
    void clearPadding(const Bucket &bucket, const at::Tensor &buffer_G);
    void completeGradient(Bucket &bucket);
    void reduce(Bucket &bucket);
    void drainReductions(size_t keep);
    void finishReductions();
    observe::UnitIndex firstGathered(Phase phase) const;
    void completed(Bucket &bucket);
    void takeSquares(Bucket &bucket);
    void freeGradient(Bucket &bucket);
    void ensureMoments();
    UpdateRule updateRule(double learningRate) const;
    void updateBucket(Bucket &bucket, const UpdateRule &rule, const StepFactor &factor);
    StepFactor stepFactor(const StepScalars &scalars, double clipNorm);
    void countLastStep();
    void fillParameters(const std::function<std::optional<uint64_t>(const shapes::ParameterShape &)> &seedFor);
    void storeParameter(Bucket &bucket, const ParameterPlace &place, const at::Tensor &value);
    void refreshCopies(Bucket &bucket);

    // --- Offloading (engine_offload.cpp)
    bool updatesOnHost(const Bucket &bucket) const;
    void beginUpdate(Bucket &bucket, const UpdateRule &rule, const StepFactor &factor);
    void waitForUpdate(Bucket &bucket);
    void waitForUpdates();
    void sendGradient(Bucket &bucket);
    void fetchGradient(Bucket &bucket);
    void beginFetch(Bucket &bucket);
    at::Tensor gatherSource(Bucket &bucket);
    void readAhead(const Unit &unit, Phase phase);
    void endReading(Bucket &bucket);
    void freeOffloadBuffers();
    StateMemory moved(const StateMemory &state, OffloadPlace place, ElementRange before, ElementRange after,
                      Communicator *gathers, const Bucket &bucket, MemoryCategory category);
    void redistribute(Bucket &bucket, const shapes::BucketSettings &settings);
    Bucket *find(std::string_view parameter, const ParameterPlace **place);
    Result<at::Tensor> gatherFlat(std::string_view name, bool gradient);

    EngineOptions m_options;
    shapes::ModelPlan m_plan;
    Communicator &m_communicator;
    observe::Observer &m_observer;
    ProcessGroups m_groups;
    StatePlaces m_places;
    std::vector<Unit> m_units;
    std::vector<Bucket> m_buckets;
    SlotPool m_slots;
    std::deque<Bucket *> m_reducing;
    CollectiveOrder m_order;
    std::optional<GradientScaler> m_scaler;
    int64_t m_optimizerSteps = 0;
    std::optional<StepScalars> m_uncounted; ///< of the last step, which m_optimizerSteps lacks unless it was skipped
    PassKind m_pass = PassKind::Train;
    bool m_lastMicroBatch = true;
    std::vector<observe::UnitIndex> m_gatherAfter; ///< what `post` gathers once the unit at hand is computed
    std::optional<double> m_expectedRate;          ///< this step's, where its updates may begin in backward
    // Made when something is first offloaded; last, because their threads use the buckets' memory.
    std::unique_ptr<GradientOffload> m_gradientOffload;
    std::unique_ptr<ParameterReader> m_reader;
    std::unique_ptr<StateUpdater> m_updater;
};

/// beginPart() and endPart() for the length of a C++ scope.
class PartScope
{
public:
    PartScope(Engine &engine, observe::UnitIndex unit, std::span<const size_t> parameters, Phase phase)
        : m_engine(engine)
        , m_unit(unit)
        , m_parameters(parameters)
    {
        engine.beginPart(unit, parameters, phase);
    }
    ~PartScope() { m_engine.endPart(m_unit, m_parameters); }
    PartScope(const PartScope &) = delete;
    PartScope &operator=(const PartScope &) = delete;

private:
    Engine &m_engine;
    observe::UnitIndex m_unit;
    std::span<const size_t> m_parameters;
};

} // namespace shardscope::engine
