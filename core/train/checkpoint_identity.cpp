// SPDX-License-Identifier: Apache-2.0
#include "core/train/checkpoint_identity.h"

namespace shardscope::train {

files::ShapeNumbers shapeNumbers(const shapes::ModelShape &shape)
{
    const auto number = [](int64_t value) { return static_cast<double>(value); };
    const shapes::RopeScaling &rope = shape.ropeScaling;
    files::ShapeNumbers numbers = {{"vocabulary", number(shape.vocabulary)},
                                   {"hidden", number(shape.hidden)},
                                   {"layers", number(shape.layers)},
                                   {"heads", number(shape.heads)},
                                   {"key_value_heads", number(shape.keyValueHeads)},
                                   {"head_size", number(shape.headSize)},
                                   {"ffn_hidden", number(shape.ffnHidden)},
                                   {"norm_eps", shape.normEps},
                                   {"rope_theta", shape.ropeTheta},
                                   {"tied_embeddings", shape.tiedEmbeddings ? 1.0 : 0.0},
                                   {"query_key_value_bias", shape.queryKeyValueBias ? 1.0 : 0.0},
                                   {"output_bias", shape.outputBias ? 1.0 : 0.0},
                                   {"feed_forward_bias", shape.feedForwardBias ? 1.0 : 0.0},
                                   {"query_key_norm", shape.queryKeyNorm ? 1.0 : 0.0},
                                   {"rope_kind", number(static_cast<int64_t>(rope.kind))},
                                   {"rope_factor", rope.factor},
                                   {"rope_original_sequence", number(rope.originalMaxSequence)},
                                   {"rope_low_frequency_factor", rope.lowFrequencyFactor},
                                   {"rope_high_frequency_factor", rope.highFrequencyFactor},
                                   {"rope_beta_fast", rope.betaFast},
                                   {"rope_beta_slow", rope.betaSlow},
                                   {"rope_truncate", rope.truncate ? 1.0 : 0.0},
                                   {"rope_attention_factor", rope.attentionFactor}};
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
        if (shape.windowOf(layer) != 0)
            numbers["window." + std::to_string(layer)] = number(shape.windowOf(layer));
    }
    return numbers;
}

} // namespace shardscope::train
