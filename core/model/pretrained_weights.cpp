// SPDX-License-Identifier: Apache-2.0
#include "core/model/pretrained_weights.h"

#include <ATen/ATen.h>

namespace shardscope::model {

static at::ScalarType scalarTypeOf(files::TensorType type)
{
    switch (type) {
    case files::TensorType::Bf16:
        return at::kBFloat16;
    case files::TensorType::F16:
        return at::kHalf;
    case files::TensorType::F64:
        return at::kDouble;
    default:
        return at::kFloat; // WeightFolder takes no other
    }
}

static std::span<std::byte> bytesOf(const at::Tensor &tensor)
{
    return {static_cast<std::byte *>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

Result<> loadWeights(engine::Engine &engine, const pretrained::WeightFolder &folder)
{
    for (const shapes::UnitShape &unit : shapes::unitsOf(folder.shape())) {
        for (const shapes::ParameterShape &parameter : unit.parameters) {
            const pretrained::StoredParameter &stored = folder.parameter(parameter.name);
            const at::Tensor value = at::empty(parameter.sizes, scalarTypeOf(stored.tensor->type));
            if (auto read = folder.read(stored, 0, bytesOf(value)); !read)
                return read;
            if (auto loaded = engine.loadParameter(parameter.name, value); !loaded)
                return loaded;
        }
    }
    return {};
}

Result<> writeWeights(engine::Engine &engine, const shapes::ModelShape &shape, pretrained::FolderWriter *writer)
{
    Result<> result;
    for (const shapes::UnitShape &unit : shapes::unitsOf(shape)) {
        for (const shapes::ParameterShape &parameter : unit.parameters) {
            const auto gathered = engine.gatherParameter(parameter.name);
            if (!gathered)
                return tl::unexpected(gathered.error());
            if (!writer || !result)
                continue;
            const at::Tensor value =
                gathered->to(at::TensorOptions(at::kCPU).dtype(scalarTypeOf(writer->type()))).contiguous();
            result = writer->write(parameter.name, 0, bytesOf(value));
        }
    }
    return result;
}

} // namespace shardscope::model
