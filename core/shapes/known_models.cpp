// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/known_models.h"

#include "core/shapes/hf_config.h"
#include "core/shapes/model_shape.h"

namespace shardscope::shapes {

static config::KnownModel folderModel(std::string_view path)
{
    config::KnownModel model;
    model.name = path;
    model.isFolder = true;
    if (const auto config = readHfConfig(std::filesystem::path(path))) {
        model.vocabulary = config->shape.vocabulary;
        model.maxSequence = config->shape.maxSequence;
    } else {
        model.problem = config.error().text;
    }
    return model;
}

std::vector<config::KnownModel> knownModels(std::string_view modelPath)
{
    std::vector<config::KnownModel> models;
    for (const std::string &name : presetNames()) {
        const ModelShape shape = presetShape(name).value();
        models.push_back({.name = name, .vocabulary = shape.vocabulary, .maxSequence = shape.maxSequence});
    }
    if (!modelPath.empty())
        models.push_back(folderModel(modelPath));
    return models;
}

} // namespace shardscope::shapes
