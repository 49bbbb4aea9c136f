// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/activations.h"

#include "core/shapes/work_size.h"

namespace shardscope::shapes {

BlockActivations blockActivationsPerToken(const ModelShape &shape, Precision compute, Recompute recompute)
{
    const int64_t element = bytesOf(compute);
    const int64_t attention = shape.heads * shape.headSize;
    const int64_t keyValues = shape.keyValueHeads * shape.headSize;
    switch (recompute) {
    case Recompute::Off:
        return {element * 2 * (shape.hidden + attention + keyValues + shape.ffnHidden), 4 * (2 + shape.heads)};
    case Recompute::Selective:
        return {element * (shape.hidden + attention), 4 * shape.heads};
    case Recompute::Block:
        break;
    }
    return {element * shape.hidden, 0};
}

} // namespace shardscope::shapes
