// SPDX-License-Identifier: Apache-2.0
// Shape suffixes: M tokens of the micro-batch, C hidden width, V vocabulary.
#pragma once

#include "core/model/block.h"

namespace shardscope::model {

/// The final norm, the logits and the loss, forward and backward at once in chunks of tokens, so that the logits of all
/// tokens never exist together.
class Head
{
public:
    /// The output weight is parameter `index` of `weightUnit`: the head's own, or the embedding's where tied.
    /// adapterScale: of the adapter that it may have.
    Head(engine::Engine &engine, observe::UnitIndex unit, observe::UnitIndex weightUnit, size_t weightIndex,
         double adapterScale)
        : m_engine(engine)
        , m_unit(unit)
        , m_adapters(engine, weightUnit, adapterScale)
        , m_output{engine, weightUnit, weightIndex, 1, WeightGroup::kAbsent, &m_adapters}
    {
    }
    Head(const Head &) = delete;
    Head &operator=(const Head &) = delete;
    struct Result
    {
        at::Tensor loss; ///< fp64 scalar: scale × Σ of the tokens' losses
        at::Tensor d_MC; ///< gradient of the stream before the head; undefined without a backward
    };
    /// Both units' parameters are acquired. targets_M: int64, negative ones are not counted.
    Result run(const PassShape &pass, const Stream &in, const at::Tensor &targets_M, double lossScale,
               bool backward) const;

    /// The logits of all tokens, [M, V]. Both units' parameters are acquired.
    at::Tensor logits(const PassShape &pass, const Stream &in) const;

    /// Of the parameters that run() has given gradients.
    void lookAtGradients(NumberCheck &check) const;

private:
    void runChunk(const PassShape &pass, const at::Tensor &y_MC, const at::Tensor &logits_MV,
                  const at::Tensor &losses_M, const at::Tensor &targets_M, double lossScale, bool backward) const;

    engine::Engine &m_engine;
    observe::UnitIndex m_unit;
    Adapters m_adapters;
    WeightGroup m_output;
};

} // namespace shardscope::model
