// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: B sequences, T tokens of one.
#pragma once

#include "core/base/result.h"
#include "core/engine/engine.h"
#include "core/shapes/model_shape.h"

#include <ATen/core/Tensor.h>
#include <memory>

namespace shardscope::model {

/// A Llama-shaped decoder with an explicit forward and backward on a sharding engine that it owns.
class Decoder
{
public:
    Decoder(shapes::ModelShape shape, engine::EngineOptions options, engine::Communicator &communicator,
            observe::Observer &observer);
    ~Decoder();

    engine::Engine &engine() { return *m_engine; }
    const shapes::ModelShape &shape() const { return m_shape; }

    /// Forward and backward of one micro-batch; the gradient of lossScale × (sum of the tokens' losses) is added to the
    /// step's. tokens_BT, targets_BT: int64 on the engine's device; a target of -1 is not counted. Returns the sum of
    /// the losses times lossScale (fp32 scalar on the device, no wait). lastMicroBatch: the step's last call.
    at::Tensor forwardBackward(const at::Tensor &tokens_BT, const at::Tensor &targets_BT, double lossScale,
                               bool lastMicroBatch);
    /// The same loss without a gradient; leaves weights, gradients and moments as they are. Not between the passes of
    /// one step.
    at::Tensor forwardLoss(const at::Tensor &tokens_BT, const at::Tensor &targets_BT, double lossScale);

private:
    struct Pass;
    shapes::ModelShape m_shape;
    std::unique_ptr<engine::Engine> m_engine;
    at::Tensor m_ropeCos_TH; ///< fp32, grown to the longest sequence seen
    at::Tensor m_ropeSin_TH;
};

} // namespace shardscope::model
