// SPDX-License-Identifier: Apache-2.0
#include "core/pretrained/folder_writer.h"

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/pretrained/weight_index.h"
#include "core/shapes/hf_config.h"
#include "core/shapes/hf_names.h"

namespace shardscope::pretrained {

/// What lies beside the weights and is the same after training.
static constexpr std::string_view kCompanions[] = {
    "tokenizer.json", "tokenizer.model", "tokenizer_config.json",  "special_tokens_map.json", "added_tokens.json",
    "vocab.json",     "merges.txt",      "generation_config.json", "chat_template.jinja",     "chat_template.json",
    "LICENSE",        "vocab.txt",
};

static std::string_view dtypeOf(files::TensorType type)
{
    switch (type) {
    case files::TensorType::Bf16:
        return "bfloat16";
    case files::TensorType::F16:
        return "float16";
    default:
        return "float32";
    }
}

Result<FolderWriter> FolderWriter::create(const std::filesystem::path &folder, const shapes::ModelShape &shape,
                                          const FolderWriterOptions &options)
{
    FolderWriter writer;
    writer.m_folder = folder;
    writer.m_type = options.type;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return fail("Can't make the folder {}: {}.", folder.string(), error.message());
    if (auto made = writer.createFiles(shape, options.shardBytes); !made)
        return tl::unexpected(made.error());
    if (auto written = writer.writeConfig(shape, options.original); !written)
        return tl::unexpected(written.error());
    if (auto copied = writer.copyCompanions(options.original); !copied)
        return tl::unexpected(copied.error());
    return writer;
}

/// A disk that fills up half an hour later would say the same.
static Result<> checkSpace(const std::filesystem::path &folder, int64_t sizeBytes)
{
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(folder, error);
    if (!error && space.available < static_cast<uintmax_t>(sizeBytes))
        return fail("The weights have {}, and {} has room for {}. Free some space, or choose another disk.",
                    formatBytes(sizeBytes), folder.parent_path().string(),
                    formatBytes(static_cast<int64_t>(space.available)));
    return {};
}

/// Tensors in the order of the forward pass; a new file where one more would be too much.
Result<> FolderWriter::createFiles(const shapes::ModelShape &shape, int64_t shardBytes)
{
    std::vector<std::vector<files::SafeTensorSpec>> shards(1);
    int64_t inShard = 0;
    int64_t total = 0;
    for (const shapes::UnitShape &unit : shapes::unitsOf(shape)) {
        for (const shapes::ParameterShape &parameter : unit.parameters) {
            const int64_t bytes = parameter.elements() * files::elementBytes(m_type);
            if (inShard > 0 && inShard + bytes > shardBytes) {
                shards.emplace_back();
                inShard = 0;
            }
            m_places[parameter.name] = {shards.size() - 1, shards.back().size()};
            shards.back().push_back({shapes::hfNameOf(parameter.name), m_type, parameter.sizes});
            inShard += bytes;
            total += bytes;
        }
    }
    if (auto fits = checkSpace(m_folder, total); !fits)
        return fits;
    WeightIndex index;
    for (size_t i = 0; i < shards.size(); ++i) {
        index.files.push_back(shardName(i + 1, shards.size()));
        for (const files::SafeTensorSpec &tensor : shards[i])
            index.fileOf[tensor.name] = i;
        // transformers wants to be told which library's tensors these are.
        auto file = files::SafetensorsWriter::create(m_folder / index.files.back(),
                                                     files::planSafetensors(shards[i], {{"format", "pt"}}));
        if (!file)
            return tl::unexpected(file.error());
        m_files.push_back(std::move(*file));
    }
    if (shards.size() == 1)
        return {};
    return writeFileAtomically(m_folder / kIndexFile, weightIndexText(index, total));
}

Result<> FolderWriter::writeConfig(const shapes::ModelShape &shape, const std::filesystem::path &original)
{
    std::string config;
    if (!original.empty()) {
        auto text = readTextFile(original / "config.json");
        if (!text)
            return tl::unexpected(text.error());
        config = std::move(*text);
    }
    const auto text = shapes::hfConfigText(shape, dtypeOf(m_type), config);
    if (!text)
        return tl::unexpected(text.error());
    return writeFileAtomically(m_folder / "config.json", *text);
}

Result<> FolderWriter::copyCompanions(const std::filesystem::path &original) const
{
    if (original.empty())
        return {};
    for (const std::string_view name : kCompanions) {
        std::error_code error;
        if (!std::filesystem::exists(original / name, error))
            continue;
        std::filesystem::copy_file(original / name, m_folder / name, std::filesystem::copy_options::overwrite_existing,
                                   error);
        if (error)
            return fail("Can't copy {} to {}: {}.", (original / name).string(), m_folder.string(), error.message());
    }
    return {};
}

Result<> FolderWriter::write(std::string_view name, int64_t offsetBytes, std::span<const std::byte> bytes)
{
    const auto place = m_places.find(name);
    if (place == m_places.end())
        return fail("The model has no parameter {}.", name);
    return m_files[place->second.file].write(place->second.tensor, offsetBytes, bytes);
}

Result<> FolderWriter::finish()
{
    for (files::SafetensorsWriter &file : m_files) {
        if (auto finished = file.finish(); !finished)
            return finished;
    }
    return syncFolder(m_folder);
}

} // namespace shardscope::pretrained
