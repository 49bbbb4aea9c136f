// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/known_models.h"

#include "core/shapes/model_shape.h"

namespace shardscope::shapes {

std::vector<config::KnownModel> knownModels()
{
    std::vector<config::KnownModel> models;
    for (const std::string &name : presetNames()) {
        const ModelShape shape = presetShape(name).value();
        models.push_back({name, shape.vocabulary, shape.maxSequence});
    }
    return models;
}

} // namespace shardscope::shapes
