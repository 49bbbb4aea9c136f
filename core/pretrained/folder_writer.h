// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/files/safetensors.h"
#include "core/shapes/model_shape.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::pretrained {

struct FolderWriterOptions
{
    files::TensorType type = files::TensorType::F32; ///< F32, BF16 or F16
    int64_t shardBytes = int64_t{5} << 30;           ///< a file has at most so much, or one tensor
    /// The folder that the model came from, or empty: its other fields of config.json, its tokenizer and generation
    /// files are copied.
    std::filesystem::path original;
};

/// Writes a folder that transformers opens: config.json, safetensors (with an index where there are several), and what
/// belongs to the tokenizer. Tensors are written piece by piece, in any order. The caller makes the folder appear as a
/// whole: it is written beside and renamed after finish().
class FolderWriter
{
public:
    /// The folder is made where it isn't there. Files of these names are replaced.
    static Result<FolderWriter> create(const std::filesystem::path &folder, const shapes::ModelShape &shape,
                                       const FolderWriterOptions &options);

    files::TensorType type() const { return m_type; }
    /// Bytes from offsetBytes on of the parameter that core/shapes calls so, in type().
    Result<> write(std::string_view name, int64_t offsetBytes, std::span<const std::byte> bytes);
    /// All was written, or a message; syncs files and folder.
    Result<> finish();

private:
    struct Place
    {
        size_t file = 0;
        size_t tensor = 0;
    };
    Result<> createFiles(const shapes::ModelShape &shape, int64_t shardBytes);
    Result<> writeConfig(const shapes::ModelShape &shape, const std::filesystem::path &original);
    Result<> copyCompanions(const std::filesystem::path &original) const;

    std::filesystem::path m_folder;
    files::TensorType m_type = files::TensorType::F32;
    std::vector<files::SafetensorsWriter> m_files;
    std::map<std::string, Place, std::less<>> m_places;
};

} // namespace shardscope::pretrained
