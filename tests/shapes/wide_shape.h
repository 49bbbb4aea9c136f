// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/shapes/model_shape.h"

namespace shardscope::test {

/// Half as many heads of keys as of queries, of 64 elements.
inline shapes::ModelShape wideShape(int64_t layers, int64_t heads)
{
    shapes::ModelShape shape;
    shape.name = "wide";
    shape.hidden = heads * 64;
    shape.heads = heads;
    shape.keyValueHeads = heads / 2;
    shape.headSize = 64;
    shape.ffnHidden = 1024;
    shape.vocabulary = 4096;
    shape.layers = layers;
    shape.maxSequence = 2048;
    return shape;
}

/// Has a head size that no fused operator takes.
inline shapes::ModelShape oddWideShape()
{
    shapes::ModelShape shape = wideShape(2, 8);
    shape.headSize = 60;
    shape.hidden = 500;
    shape.ffnHidden = 1001;
    shape.vocabulary = 4057;
    return shape;
}

} // namespace shardscope::test
