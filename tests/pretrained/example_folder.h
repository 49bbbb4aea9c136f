// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/files/safetensors.h"
#include "core/shapes/hf_config.h"
#include "core/shapes/hf_names.h"
#include "tests/support/temporary_folder.h"

#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace shardscope::testing {

/// A small model's folder as somebody else wrote it: each tensor's elements are 0, 1, 2, … from a number of its own.
class ExampleFolder
{
public:
    struct Tensor
    {
        std::vector<int64_t> sizes;
        files::TensorType type = files::TensorType::F32;
        float first = 0;
    };

    ExampleFolder()
    {
        config = R"({"model_type": "llama", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 12,
                     "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
                     "max_position_embeddings": 64, "tie_word_embeddings": false})";
        const auto shape = shapes::parseHfConfig(config, "config.json")->shape;
        float first = 1;
        for (const auto &unit : shapes::unitsOf(shape)) {
            for (const auto &parameter : unit.parameters)
                tensors[shapes::hfNameOf(parameter.name)] = {parameter.sizes, files::TensorType::F32, first += 1000};
        }
    }

    /// One file, or as many as asked with an index.
    void write(size_t shards = 1)
    {
        text("config.json", config);
        std::vector<std::vector<std::string>> names(shards);
        size_t next = 0;
        for (const auto &[name, tensor] : tensors)
            names[next++ % shards].push_back(name);
        std::string map;
        for (size_t i = 0; i < shards; ++i) {
            writeFile(fileName(i, shards), names[i]);
            for (const std::string &name : names[i])
                map += (map.empty() ? "\"" : ", \"") + name + "\": \"" + fileName(i, shards) + "\"";
        }
        if (shards > 1)
            text("model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
    }
    void text(const std::string &name, const std::string &content) const
    {
        std::ofstream(folder.path() / name) << content;
    }
    static std::string fileName(size_t i, size_t shards)
    {
        return shards == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards);
    }

    test::TemporaryFolder folder;
    std::string config;
    std::map<std::string, Tensor> tensors;

private:
    void writeFile(const std::string &file, const std::vector<std::string> &names)
    {
        std::vector<files::SafeTensorSpec> specs;
        for (const std::string &name : names)
            specs.push_back({name, tensors[name].type, tensors[name].sizes});
        auto writer = files::SafetensorsWriter::create(folder.path() / file, files::planSafetensors(specs, {})).value();
        for (size_t i = 0; i < specs.size(); ++i) {
            const auto elements = static_cast<size_t>(writer.header().tensors[i].elements());
            std::vector<float> values(elements);
            for (size_t k = 0; k < elements; ++k)
                values[k] = tensors[names[i]].first + static_cast<float>(k);
            std::vector<std::byte> bytes(static_cast<size_t>(writer.header().tensors[i].sizeBytes));
            std::memcpy(bytes.data(), values.data(), std::min(bytes.size(), elements * sizeof(float)));
            (void)writer.write(i, 0, bytes);
        }
        (void)writer.finish();
    }
};

} // namespace shardscope::testing
