// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/files/safetensors.h"
#include "core/pretrained/weight_index.h"
#include "core/shapes/hf_config.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::pretrained {

/// One of the model's parameters as the folder stores it.
struct StoredParameter
{
    size_t file = 0; ///< of the folder's files
    const files::SafeTensor *tensor = nullptr;
};

/// A Hugging Face folder whose weights were compared with its config.json: name, shape and dtype of each. Reads
/// headers alone; weights are read by ranges, when asked.
class WeightFolder
{
public:
    /// Everything that is wrong with the folder is listed at once, and nothing of it is loaded then.
    ///
    /// Ties: config.json's tie_word_embeddings, and where it doesn't say, what is stored (no lm_head.weight: tied).
    /// Tied and yet stored, lm_head.weight must equal the embedding. tie: model.tie_embeddings, which ties where
    /// config.json doesn't.
    static Result<WeightFolder> open(const std::filesystem::path &folder, bool tie = false);

    const shapes::ModelShape &shape() const { return m_config.shape; }
    /// False for a folder with a config.json alone: its model is trained from scratch.
    bool hasWeights() const { return !m_files.empty(); }
    /// Tensors that the model doesn't use, fields that have no effect: for the log.
    const std::vector<std::string> &warnings() const { return m_config.warnings; }

    /// By the name that core/shapes gives; there is one for every parameter of shape() where hasWeights().
    const StoredParameter &parameter(std::string_view name) const;
    /// Bytes from offsetBytes on of a parameter, as stored. Thread-safe.
    Result<> read(const StoredParameter &parameter, int64_t offsetBytes, std::span<std::byte> bytes) const;

private:
    void openFiles(const WeightIndex &index, const std::filesystem::path &folder, std::vector<std::string> &problems);
    void findTensors(const WeightIndex &index, std::vector<std::string> &problems);
    void settleTie(bool tie, std::vector<std::string> &problems);
    void compareWithShape(std::vector<std::string> &problems);
    void warnOfUnused();
    bool headEqualsEmbedding() const;

    shapes::HfConfig m_config;
    std::vector<files::SafetensorsReader> m_files;
    std::map<std::string, StoredParameter, std::less<>> m_stored; ///< by the folder's names
    std::map<std::string, StoredParameter, std::less<>> m_parameters;
};

} // namespace shardscope::pretrained
