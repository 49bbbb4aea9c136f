// SPDX-License-Identifier: Apache-2.0
// What sharding makes of a model's states: bytes of one rank, all ranks alike, from the plan alone. The formulas are
// those of the engine's documentation, with P trainable and Q frozen elements, g ranks that share a bucket, c bytes of
// the compute dtype and U elements of a unit, all of them padded:
//
//     parameters   4P/g masters, cQ/g frozen; cP more where a copy in another dtype stays whole (`none`)
//     optimizer    8P/g AdamW, 4P/g SGD with momentum; in bf16 half of it
//     gathered     in a step: d slots of cU, d by the depth of prefetching (`full`, `hybrid`); cP and cQ (`grad_op`)
//     gradients    in a step: 4P/g, grown unit by unit in backward, and 4U for each gradient before its reduction
#pragma once

#include "core/base/names.h"
#include "core/plan/gradient_walk.h"
#include "core/shapes/unit_plan.h"

#include <cstdint>
#include <vector>

namespace shardscope::plan {

struct LedgerOptions
{
    Precision compute = Precision::Fp32;
    Precision moments = Precision::Fp32;
    OptimizerKind optimizer = OptimizerKind::AdamW;
    double momentum = 0;      ///< of SGD; 0: no moment
    int64_t microBatches = 1; ///< of a step

    static LedgerOptions from(const config::RunConfiguration &configuration);
};

/// The plan's buckets with their sizes, units in the order of the forward pass.
std::vector<LedgerUnit> ledgerUnitsOf(const shapes::ModelPlan &plan);

/// What a rank keeps of a bucket from step to step, wherever it lies.
struct StateBytes
{
    int64_t master = 0;
    int64_t copy = 0; ///< in the compute dtype, beside the master
    int64_t moment = 0;
    int64_t moments = 0; ///< how many of these
};
StateBytes stateBytesOf(const LedgerBucket &bucket, const LedgerOptions &options);

/// Bytes on the device.
struct LedgerBytes
{
    int64_t parameters = 0;
    int64_t optimizer = 0;
    int64_t gathered = 0;
    int64_t gradients = 0;
    int64_t total() const { return parameters + optimizer + gathered + gradients; }
    bool operator==(const LedgerBytes &) const = default;
};

struct MemoryLedger
{
    LedgerBytes atRest;          ///< between two steps, from the first one on
    LedgerBytes peak;            ///< of each category by itself, in a step
    int64_t gradientsBefore = 0; ///< of gradients: when the last micro-batch's forward begins
    /// Of gradients: while each unit's backward runs in the last micro-batch; units in the order of the forward pass.
    std::vector<int64_t> gradientsAtUnit;
    int64_t gatheredAtLastBlock = 0; ///< while backward is at the last block that it reaches; exact where none is kept
    int64_t unreduced = 0;           ///< of peak.gradients: what waits for its reduction, or is in it
    int64_t paddingElements = 0;     ///< of all buckets, before ranks share them
    int64_t hostBytes = 0;           ///< offloaded to the host's memory
    int64_t fileBytes = 0;           ///< offloaded to a drive
};

/// Gathered bytes are exact without a limit on them, with one they are the most that it allows. Of offloaded gradients
/// the device holds the two largest at most.
MemoryLedger ledgerOf(const shapes::ModelPlan &plan, const LedgerOptions &options);

} // namespace shardscope::plan
