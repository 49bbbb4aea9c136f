// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: G a whole padded bucket, S what this rank holds of it.
#pragma once

#include "core/engine/communicator.h"
#include "core/engine/flat_layout.h"
#include "core/engine/parameter_reader.h"
#include "core/engine/state_memory.h"
#include "core/shapes/unit_plan.h"

#include <ATen/core/Tensor.h>
#include <functional>
#include <optional>
#include <vector>

namespace shardscope::engine {

/// The process groups that a bucket's settings ask for.
struct BucketGroups
{
    Communicator *shard = nullptr;   ///< neighbouring ranks that share one copy, a part each
    Communicator *replica = nullptr; ///< the ranks that hold the same part
    Communicator *reshard = nullptr; ///< neighbouring ranks that share it between forward and backward
};

/// One flat bucket: its layout, how it is sharded, and whatever exists of it at the moment. The engine moves it through
/// its states.
struct Bucket
{
    observe::UnitIndex index = observe::kNoUnit; ///< in what the observer was told
    UnitKind kind = UnitKind::Other;             ///< its unit's
    BucketLayout layout;
    shapes::BucketSettings settings;
    bool frozen = false;
    bool wrapped = false;
    BucketGroups groups;
    ElementRange held;  ///< of the masters on this rank: its group's part, or the whole bucket in a group of one
    ElementRange owned; ///< inside `held`: what no other rank counts, writes or sums
    std::vector<DecayRange> decay;

    StateMemory master;    ///< fp32; of a frozen bucket in the compute dtype
    StateMemory moment1;   ///< exp_avg, or the momentum of SGD; fp32 or bf16
    StateMemory moment2;   ///< exp_avg_sq
    StateMemory copy;      ///< of offloaded masters of another dtype: what is gathered, in the compute dtype
    at::Tensor resident_G; ///< held whole on the device with another compute dtype: the copy that products use

    Pending updating;             ///< by the thread of the updates
    bool isUpdated = false;       ///< in this step, before its optimizerStep()
    at::Tensor updatedGradient_S; ///< what that update reads, while it does

    at::Tensor gathered_G; ///< whole parameters in the compute dtype, while acquired or on their way
    Pending gathering;
    std::optional<ParameterReader::Read> reading; ///< of offloaded parameters in a file, ahead of their gather
    at::Tensor slot; ///< gathered_G lies in it; undefined where gathered_G owns its buffer or is a master
    size_t slotClass = 0;
    at::Tensor resharded_S; ///< compute dtype: this rank's part in the reshard group, between forward and backward

    at::Tensor gradient_S;                 ///< fp32, from the first backward of a step to the optimizer
    bool gradientHolds = false;            ///< gradient_S has the sum of earlier passes
    StateMemory gradientOnHost;            ///< of offloaded gradients, and of those that the host's update reads
    bool gradientIsAway = false;           ///< it lies there and not in gradient_S
    std::function<void()> waitForGradient; ///< blocks a thread until it does
    std::function<void()> fetching;        ///< gradient_S is on its way back; makes the current stream wait
    at::Tensor squares;                    ///< fp64 scalar: Σ of the squares of what is owned, where taken early
    at::Tensor unreduced_G;                ///< fp32, the gradient before its reduction
    bool unreducedHolds = false;           ///< unreduced_G has the sum of earlier passes
    std::vector<bool> written;             ///< by this pass, by parameter
    Pending reducing;
    Pending replicating;          ///< the sum over replicas, where only the update waits for it
    bool isLastReduction = false; ///< of the step's last micro-batch

    bool isSharded() const { return settings.shardGroup > 1; }
    /// The part of the reduced gradient that this rank owns: over all ranks each element once, replicas too.
    at::Tensor ownedGradient() const { return gradient_S.narrow(0, owned.begin - held.begin, owned.size()); }
    bool hasGradient() const { return gradient_S.defined() || gradientIsAway; }
    /// Its update needs more than the device's memory.
    bool hasOffloadedState() const
    {
        return master.place() != OffloadPlace::None || moment1.place() != OffloadPlace::None ||
               moment2.place() != OffloadPlace::None;
    }
    /// What its gradient's reduction leaves goes elsewhere at once, ahead of the update of the others.
    bool handsGradientOn() const { return hasOffloadedState() || settings.offloadGradients != OffloadPlace::None; }
    /// Gathered parameters are freed between forward and backward. Under `none` there is nothing to gather, but
    /// offloaded parameters are brought to the device by each unit's use.
    bool freesAfterForward() const
    {
        return settings.reshardsAfterForward() ||
               (settings.strategy == Strategy::None && settings.offloadParameters != OffloadPlace::None);
    }
    bool isWhole() const { return held.size() == layout.paddedElements; }
};

/// Where a unit's parameter lies.
struct ParameterAddress
{
    size_t bucket = 0; ///< of the engine's
    size_t place = 0;  ///< in the bucket's layout
};

/// What is gathered and computed together.
struct Unit
{
    observe::UnitIndex index = observe::kNoUnit;
    std::string name;
    UnitKind kind = UnitKind::Other;
    shapes::UnitSettings settings;
    std::vector<size_t> buckets;              ///< of the engine's
    std::vector<ParameterAddress> parameters; ///< in the order of core/shapes
    bool inBackward = false;                  ///< it was last acquired for its backward
};

} // namespace shardscope::engine
