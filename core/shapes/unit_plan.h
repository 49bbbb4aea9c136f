// SPDX-License-Identifier: Apache-2.0
// Which parameters of a model lie, are gathered and are updated together, and how: the [[unit]] rules applied to its
// units. Units and buckets are fixed at the start of a run; their settings may change between two steps.
#pragma once

#include "core/base/names.h"
#include "core/base/result.h"
#include "core/config/run_configuration.h"
#include "core/shapes/model_shape.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::shapes {

/// How one bucket is sharded and where its state lies.
struct BucketSettings
{
    Strategy strategy = Strategy::Full;
    int64_t shardGroup = 1; ///< neighbouring ranks that share one copy: 1 under `none`, all under `full` and `grad_op`
    int64_t reshardGroup = 1; ///< neighbouring ranks that share it between forward and backward; at most shardGroup
    OffloadPlace offloadParameters = OffloadPlace::None;
    OffloadPlace offloadGradients = OffloadPlace::None;
    OffloadPlace offloadOptimizer = OffloadPlace::None;
    bool operator==(const BucketSettings &) const = default;

    /// The gathered parameters are freed between forward and backward.
    bool reshardsAfterForward() const { return strategy == Strategy::Full || strategy == Strategy::Hybrid; }
};

/// How one unit is computed.
struct UnitSettings
{
    Recompute recompute = Recompute::Off;
    bool activationOffload = false;
    Prefetch prefetch = Prefetch::Pre; ///< of the gathers ahead of this unit's backward
    bool operator==(const UnitSettings &) const = default;
};

/// Parameters of a unit that lie in one flat buffer.
struct BucketPlan
{
    std::string name;               ///< the unit's, or "block.3/norm" for what a rule sets apart
    std::vector<size_t> parameters; ///< indices into the unit's, ascending
    bool frozen = false;            ///< no gradient, no moments, no reduction
    bool wrapped = false;           ///< gathered only while it is used within the unit; of blocks
    BucketSettings settings;
};

struct UnitPlan
{
    UnitShape shape;
    UnitSettings settings;
    std::vector<BucketPlan> buckets; ///< what no rule sets apart comes first, if there is any
};

/// Reductions that may be in flight while the next unit's backward writes its gradient: each holds 4 bytes a parameter.
inline constexpr size_t kReductionsInFlight = 1;

/// What holds for a whole pass.
struct PassSettings
{
    bool forwardPrefetch = true;
    int64_t prefetchDepth = 1;    ///< units gathered ahead
    int64_t gatherLimitBytes = 0; ///< nothing is gathered ahead beyond it; 0: no limit
    ReduceEvery reduceEvery = ReduceEvery::MicroBatch;
    bool operator==(const PassSettings &) const = default;
};

/// A model's units in the order of the forward pass.
struct ModelPlan
{
    int64_t worldSize = 1;
    PassSettings pass;
    std::vector<UnitPlan> units;
};

/// Keys that mean something to blocks only: memory.recompute and memory.activation_offload.
bool isOfBlocks(std::string_view key);

/// The plan of a run at its start, with the adapters that it asks for (withAdapters()); beside them nothing is trained
/// but what a rule's frozen = false says. A message for a rule that matches nothing, that asks of a part of a unit
/// what only a whole unit can do (recompute, activation_offload, prefetch), or of no block what only blocks can.
Result<ModelPlan> planOf(const std::vector<UnitShape> &units, const config::RunConfiguration &configuration,
                         int64_t worldSize);

/// The same units and buckets with the settings of another configuration, whose first rules are those of the start. A
/// message where a rule covers a bucket in part.
Result<ModelPlan> replanned(const ModelPlan &plan, const config::RunConfiguration &configuration);

/// Floating-point operations a trained token costs: flopsPerToken() of the shape, without the weights' gradients of
/// what is frozen, and with 6 for each parameter of an adapter.
double flopsPerToken(const ModelPlan &plan, const ModelShape &shape, int64_t sequenceLength);

/// "1.23 M of 16.4 M parameters are trained, the others are frozen."; empty where all are trained.
std::string trainedShare(const ModelPlan &plan);

/// Whether a rule is about a parameter.
bool matches(const config::UnitRule &rule, const ParameterShape &parameter);

} // namespace shardscope::shapes
