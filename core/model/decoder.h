// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: B sequences, T tokens of one, M = B·T, C hidden width, H half a head.
#pragma once

#include "core/base/result.h"
#include "core/engine/engine.h"
#include "core/model/activation_offload.h"
#include "core/model/block.h"
#include "core/model/head.h"
#include "core/model/number_check.h"
#include "core/model/rope.h"
#include "core/shapes/model_shape.h"

#include <ATen/core/Tensor.h>
#include <memory>
#include <vector>

namespace shardscope::model {

/// A Llama-shaped decoder with an explicit forward and backward on a sharding engine that it owns. Each unit is
/// gathered, computed and released in turn; the moment at which a unit's gradient is complete is a line of code here.
class Decoder
{
public:
    /// The configuration's plan must have been found possible (shapes::planOf()).
    Decoder(shapes::ModelShape shape, const config::RunConfiguration &configuration, engine::Communicator &communicator,
            observe::Observer &observer);
    ~Decoder();

    engine::Engine &engine() { return *m_engine; }
    const shapes::ModelShape &shape() const { return m_shape; }

    /// Forward and backward of one micro-batch; the gradient of lossScale × (sum of the tokens' losses) is added to the
    /// step's. tokens_BT, targets_BT: int64 on the engine's device; a negative target is not counted. Returns that
    /// scaled sum (fp64 scalar on the device, not waited for). lastMicroBatch: the step's last call. check: looks at
    /// what each operation leaves.
    at::Tensor forwardBackward(const at::Tensor &tokens_BT, const at::Tensor &targets_BT, double lossScale,
                               bool lastMicroBatch, NumberCheck *check = nullptr);
    /// The same sum without a gradient; leaves weights, gradients and moments as they are. Not between the passes of
    /// one step.
    at::Tensor forwardLoss(const at::Tensor &tokens_BT, const at::Tensor &targets_BT, double lossScale);

    /// All logits, [B, T, V] in the compute dtype: for comparisons and for whoever wants to see a prediction.
    at::Tensor forwardLogits(const at::Tensor &tokens_BT);

private:
    PassShape beginPass(const at::Tensor &tokens_BT, bool keepsForBackward);
    Stream forwardUnits(const PassShape &pass, const at::Tensor &tokens_M, std::vector<BlockSaved> &saved);
    Head::Result runHead(const PassShape &pass, Stream &stream, const at::Tensor &targets_M, double lossScale,
                         bool backward);
    void backwardUnits(const PassShape &pass, const at::Tensor &d_MC, const at::Tensor &tokens_M,
                       std::vector<BlockSaved> &saved);
    void growRopeTables(int64_t positions);
    ActivationOffload &offload();

    shapes::ModelShape m_shape;
    std::unique_ptr<engine::Engine> m_engine;
    std::vector<Block> m_blocks;
    observe::UnitIndex m_embedding = observe::kNoUnit;
    observe::UnitIndex m_headUnit = observe::kNoUnit;
    std::unique_ptr<Head> m_head;
    std::unique_ptr<ActivationOffload> m_offload; ///< from the first time on that a unit asks for it
    RopeTables m_rope;                            ///< as long as the longest sequence seen
};

} // namespace shardscope::model
