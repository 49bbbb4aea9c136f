// SPDX-License-Identifier: Apache-2.0
#include "core/pretrained/open_model.h"

namespace shardscope::pretrained {

Result<Model> openModel(const config::RunConfiguration &configuration)
{
    const auto &asked = configuration.model;
    Model model;
    if (asked.path.empty()) {
        auto shape = shapes::presetShape(asked.preset);
        if (!shape)
            return tl::unexpected(shape.error());
        model.shape = std::move(*shape);
        model.shape.tiedEmbeddings = asked.tieEmbeddings;
        return model;
    }
    auto folder = WeightFolder::open(asked.path, asked.tieEmbeddings);
    if (!folder)
        return tl::unexpected(folder.error());
    model.shape = folder->shape();
    model.warnings = folder->warnings();
    if (folder->hasWeights())
        model.weights = std::move(*folder);
    return model;
}

} // namespace shardscope::pretrained
