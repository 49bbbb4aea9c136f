// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: G a whole padded bucket, S what this rank holds of it.
#pragma once

#include "core/engine/communicator.h"
#include "core/engine/flat_layout.h"

#include <ATen/core/Tensor.h>
#include <map>
#include <vector>

namespace shardscope::engine {

/// Gathered buffers of fixed number. A size class is a number of elements; its slots are allocated when first wanted
/// and freed together by clear(). A slot that comes back is handed out again in the order of the compute stream, which
/// has waited for the gather into it, and every gather waits for that stream: so no foreign stream is still at it.
class SlotPool
{
public:
    /// The flat buffer of a free slot of that class; undefined where all `limit` slots are taken.
    at::Tensor take(int64_t elements, size_t limit, const at::TensorOptions &options);
    void giveBack(at::Tensor buffer_G);
    void clear();

private:
    struct SizeClass
    {
        std::vector<at::Tensor> free;
        size_t made = 0;
    };
    std::map<int64_t, SizeClass> m_classes;
};

/// One sharded unit: its layout and whatever exists of it at the moment. The engine moves it through its states.
struct ShardedUnit
{
    observe::UnitIndex index = observe::kNoUnit;
    UnitKind kind = UnitKind::Other;
    BucketLayout layout;
    ElementRange held; ///< of the masters: this rank's slice, or the whole bucket under `none`
    std::vector<DecayRange> decay;

    at::Tensor master_S;   ///< fp32
    at::Tensor moment1_S;  ///< exp_avg, or the momentum of SGD
    at::Tensor moment2_S;  ///< exp_avg_sq
    at::Tensor resident_G; ///< `none` with bf16: the copy that products use

    at::Tensor gathered_G; ///< whole parameters in the compute dtype, while acquired or on their way
    Pending gathering;
    at::Tensor slot;          ///< gathered_G lies in it; undefined where gathered_G owns its buffer or is a master
    int64_t slotElements = 0; ///< its size class
    size_t slotLimit = 1;     ///< slots of that class

    at::Tensor gradient_S;      ///< fp32, from the first backward of a step to the optimizer
    bool gradientHolds = false; ///< gradient_S has the sum of earlier passes
    at::Tensor unreduced_G;     ///< fp32, this pass's gradient before its reduction
    at::Tensor scratch_G;
    std::vector<bool> written; ///< of unreduced_G, by parameter
    Pending reducing;
};

} // namespace shardscope::engine
