// SPDX-License-Identifier: Apache-2.0
// Shape suffix: S what a rank holds of a bucket.
#pragma once

#include "core/engine/engine.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::model {

/// Where a NaN or an infinity appeared first.
struct NumberFinding
{
    int rank = 0;
    observe::UnitIndex unit = observe::kNoUnit;
    Phase phase = Phase::Forward;
    std::string operation; ///< "ffn.down"; "reduce_scatter"; "parameter" where a weight itself is no number
    std::string parameter; ///< whose value or gradient it is: "block.3.ffn.down.weight"; else empty
    int64_t microBatch = 0;
    bool isNan = false; ///< else an infinity
};

/// Looks for NaN and infinities in what a rank computes, tensor by tensor. All ranks look at the same tensors in the
/// same order, so that the first of all ranks is known. A look reads the tensor once, takes no memory to speak of and
/// does not wait for the device; first() does.
class NumberCheck
{
public:
    explicit NumberCheck(engine::Engine &engine)
        : m_engine(engine)
    {
    }

    struct Place
    {
        observe::UnitIndex unit = observe::kNoUnit;
        Phase phase = Phase::Forward;
        std::string_view operation;      ///< a literal
        std::string_view parameter = {}; ///< of the engine's plan
    };
    void look(const Place &place, const at::Tensor &result);
    /// This rank's share of all parameters, in the dtype of products: what is too large for it is infinite there.
    void lookAtParameters();
    /// The gradients that a unit's backward has just written.
    void lookAtGradients(observe::UnitIndex unit);
    void lookAtGradient(observe::UnitIndex unit, size_t parameter);
    /// This rank's share of the gradients, after Engine::reduceScalars().
    void lookAtReducedGradients();
    /// What is looked at from now on is of this micro-batch; the first is 0.
    void beginMicroBatch(int64_t number) { m_microBatch = number; }

    /// The first one of all ranks: by the order of the looks, then by rank. All ranks call it.
    std::optional<NumberFinding> first();

private:
    struct Look
    {
        Place place;
        int64_t microBatch = 0;
        at::Tensor extremes; ///< fp32 [2], smallest and largest, a NaN in both; undefined: nothing to look at
    };
    void lookAtShare(const engine::BucketLayout &layout, const engine::ElementRange &held, const at::Tensor &share_S,
                     Place place);

    engine::Engine &m_engine;
    int64_t m_microBatch = 0;
    std::vector<Look> m_looks;
};

} // namespace shardscope::model
