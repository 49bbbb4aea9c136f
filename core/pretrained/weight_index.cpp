// SPDX-License-Identifier: Apache-2.0
#include "core/pretrained/weight_index.h"

#include "core/base/file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace shardscope::pretrained {

using nlohmann::json;

/// An index of the largest models has less than 10 MB.
static constexpr uintmax_t kMostIndexBytes = 64 << 20;

/// A name in the folder and nothing else: an index must not lead out of it.
static bool isPlainName(const std::string &name)
{
    return !name.empty() && name.find('/') == std::string::npos && name.find('\0') == std::string::npos &&
           name != "." && name != "..";
}

Result<WeightIndex> parseWeightIndex(std::string_view text, std::string_view where)
{
    std::vector<std::string> repeated;
    std::vector<std::map<std::string, int>> keys;
    const auto noteKeys = [&](int depth, json::parse_event_t event, json &parsed) {
        if (event == json::parse_event_t::key && depth == 2 && ++keys.back()[parsed.get<std::string>()] == 2)
            repeated.push_back(parsed.get<std::string>());
        if (event == json::parse_event_t::object_start)
            keys.emplace_back();
        return true;
    };
    const json index = json::parse(text, noteKeys, false);
    if (index.is_discarded() || !index.is_object() || !index.contains("weight_map") ||
        !index["weight_map"].is_object() || index["weight_map"].empty())
        return fail("{} has no weight_map: it is no index of safetensors files. Copy the folder anew.", where);
    if (!repeated.empty())
        return fail("{} names a tensor twice: {}. Copy the folder anew.", where, fmt::join(repeated, ", "));
    WeightIndex result;
    for (const auto &[tensor, file] : index["weight_map"].items()) {
        if (!file.is_string() || !isPlainName(file.get<std::string>()))
            return fail("{} gives the tensor {} to {}, which is no file name in the folder.", where, tensor,
                        file.dump(-1, ' ', false, json::error_handler_t::replace));
        const auto name = file.get<std::string>();
        const auto known = std::ranges::find(result.files, name);
        result.fileOf[tensor] = static_cast<size_t>(known - result.files.begin());
        if (known == result.files.end())
            result.files.push_back(name);
    }
    return result;
}

/// Why a folder without model.safetensors and without an index has no weights; empty: it has none in any format.
static std::string otherWeights(const std::filesystem::path &folder)
{
    for (const std::filesystem::path &path : entriesOf(folder)) {
        const std::string name = path.filename().string();
        if (name.ends_with(".safetensors"))
            return fmt::format("{} has {}, but neither {} nor {}. Copy what is missing.", folder.string(), name,
                               kSingleFile, kIndexFile);
        if (name.starts_with("pytorch_model") && (name.ends_with(".bin") || name.ends_with(".json")))
            return fmt::format("{} has its weights in PyTorch's own format ({}), which is not read here. Save it with "
                               "save_pretrained(…), which writes safetensors.",
                               folder.string(), name);
    }
    return {};
}

Result<WeightIndex> readWeightIndex(const std::filesystem::path &folder)
{
    std::error_code error;
    if (std::filesystem::exists(folder / kSingleFile, error))
        return WeightIndex{{std::string(kSingleFile)}, {}};
    const std::filesystem::path path = folder / kIndexFile;
    if (!std::filesystem::exists(path, error)) {
        if (const std::string other = otherWeights(folder); !other.empty())
            return fail("{}", other);
        return WeightIndex{};
    }
    if (const auto bytes = std::filesystem::file_size(path, error); !error && bytes > kMostIndexBytes)
        return fail("{} has {} bytes: that is no index of safetensors files.", path.string(), bytes);
    const auto text = readTextFile(path);
    if (!text)
        return tl::unexpected(text.error());
    return parseWeightIndex(*text, path.string());
}

std::string shardName(size_t number, size_t count)
{
    if (count == 1)
        return std::string(kSingleFile);
    return fmt::format("model-{:05}-of-{:05}.safetensors", number, count);
}

std::string weightIndexText(const WeightIndex &index, int64_t totalBytes)
{
    json map = json::object();
    for (const auto &[tensor, file] : index.fileOf)
        map[tensor] = index.files[file];
    const json text = {{"metadata", {{"total_size", totalBytes}}}, {"weight_map", std::move(map)}};
    return text.dump(2) + "\n";
}

} // namespace shardscope::pretrained
