// SPDX-License-Identifier: Apache-2.0
#include "core/engine/dtype.h"

namespace shardscope::engine {

at::ScalarType scalarTypeOf(Precision precision)
{
    switch (precision) {
    case Precision::Bf16:
        return at::kBFloat16;
    case Precision::Fp16:
        return at::kHalf;
    case Precision::Fp32:
        break;
    }
    return at::kFloat;
}

std::string_view dtypeName(at::ScalarType type)
{
    for (const Precision precision : {Precision::Fp32, Precision::Bf16, Precision::Fp16}) {
        if (scalarTypeOf(precision) == type)
            return toText(precision);
    }
    if (type == at::kDouble)
        return "fp64";
    return type == at::kLong ? "int64" : c10::toString(type);
}

} // namespace shardscope::engine
