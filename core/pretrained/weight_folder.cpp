// SPDX-License-Identifier: Apache-2.0
#include "core/pretrained/weight_folder.h"

#include "core/shapes/hf_names.h"

#include <algorithm>
#include <cstring>

namespace shardscope::pretrained {

static constexpr std::string_view kEmbedding = "model.embed_tokens.weight";
static constexpr std::string_view kHead = "lm_head.weight";
/// Lines of problems that a message shows; a folder of another model has one for each tensor.
static constexpr size_t kShownProblems = 40;
static constexpr size_t kShownNames = 5;
static constexpr int64_t kComparedBytes = int64_t{1} << 20;

static bool isFloat(files::TensorType type)
{
    using files::TensorType;
    return type == TensorType::F32 || type == TensorType::Bf16 || type == TensorType::F16 || type == TensorType::F64;
}

static tl::unexpected<Error> allOf(const std::filesystem::path &folder, std::vector<std::string> problems)
{
    const size_t count = problems.size();
    if (count > kShownProblems) {
        problems.resize(kShownProblems);
        problems.push_back(fmt::format("and {} more.", count - kShownProblems));
    }
    return fail("{} can't be loaded:\n  {}", folder.string(), fmt::join(problems, "\n  "));
}

Result<WeightFolder> WeightFolder::open(const std::filesystem::path &path, bool tie)
{
    WeightFolder folder;
    std::vector<std::string> problems;
    auto config = shapes::readHfConfig(path);
    const auto index = readWeightIndex(path);
    if (!config || !index) {
        if (!config)
            problems.push_back(config.error().text);
        if (!index)
            problems.push_back(index.error().text);
        return problems.size() == 1 ? fail("{}", problems.front()) : allOf(path, std::move(problems));
    }
    folder.m_config = std::move(*config);
    folder.openFiles(*index, path, problems);
    folder.findTensors(*index, problems);
    const bool isComplete = problems.empty();
    folder.settleTie(tie, problems);
    // With a file missing, each of its tensors would be a line of its own that says the same.
    if (isComplete && folder.hasWeights())
        folder.compareWithShape(problems);
    if (!problems.empty())
        return allOf(path, std::move(problems));
    folder.warnOfUnused();
    return folder;
}

void WeightFolder::openFiles(const WeightIndex &index, const std::filesystem::path &folder,
                             std::vector<std::string> &problems)
{
    for (const std::string &name : index.files) {
        std::error_code ignored;
        if (!std::filesystem::exists(folder / name, ignored)) {
            problems.push_back(fmt::format("{} is missing, and {} names it. Copy it.", name, kIndexFile));
            continue;
        }
        auto file = files::SafetensorsReader::open(folder / name);
        if (file)
            m_files.push_back(std::move(*file));
        else
            problems.push_back(file.error().text);
    }
}

/// What is stored, by the folder's names. Where there is an index, it says what counts.
void WeightFolder::findTensors(const WeightIndex &index, std::vector<std::string> &problems)
{
    for (size_t i = 0; i < m_files.size(); ++i) {
        const std::string file = m_files[i].path().filename().string();
        for (const files::SafeTensor &tensor : m_files[i].tensors()) {
            const auto listed = index.fileOf.find(tensor.name);
            if (listed != index.fileOf.end() && index.files[listed->second] != file)
                continue; // another shard's
            if (!m_stored.emplace(tensor.name, StoredParameter{i, &tensor}).second)
                problems.push_back(fmt::format("{} is stored twice, in {} and in {}.", tensor.name,
                                               m_files[m_stored.at(tensor.name).file].path().filename().string(),
                                               file));
        }
    }
    for (const auto &[tensor, number] : index.fileOf) {
        const auto isOpen = [&](const auto &file) { return file.path().filename() == index.files[number]; };
        if (!m_stored.contains(tensor) && std::ranges::any_of(m_files, isOpen))
            problems.push_back(fmt::format("{} has no tensor {}, which {} says it holds: is it another model's shard?",
                                           index.files[number], tensor, kIndexFile));
    }
}

/// The embedding and the head of one dtype, compared piece by piece.
bool WeightFolder::headEqualsEmbedding() const
{
    const StoredParameter &head = m_stored.at(std::string(kHead));
    const auto embedding = m_stored.find(kEmbedding);
    if (embedding == m_stored.end() || embedding->second.tensor->sizes != head.tensor->sizes ||
        embedding->second.tensor->type != head.tensor->type)
        return false;
    std::vector<std::byte> a(kComparedBytes);
    std::vector<std::byte> b(kComparedBytes);
    for (int64_t offset = 0; offset < head.tensor->sizeBytes; offset += kComparedBytes) {
        const auto count = static_cast<size_t>(std::min(kComparedBytes, head.tensor->sizeBytes - offset));
        const std::span<std::byte> left = std::span(a).first(count);
        const std::span<std::byte> right = std::span(b).first(count);
        if (!read(head, offset, left) || !read(embedding->second, offset, right) ||
            std::memcmp(a.data(), b.data(), count) != 0)
            return false;
    }
    return true;
}

void WeightFolder::settleTie(bool tie, std::vector<std::string> &problems)
{
    shapes::ModelShape &shape = m_config.shape;
    const bool stored = m_stored.contains(kHead);
    if (tie)
        shape.tiedEmbeddings = true;
    if (!hasWeights())
        return;
    if (!m_config.tied && !tie && !stored) {
        shape.tiedEmbeddings = true;
        m_config.warnings.push_back(fmt::format("config.json has no tie_word_embeddings and no {} is stored: taken as "
                                                "tied to {}.",
                                                kHead, kEmbedding));
    }
    if (!shape.tiedEmbeddings && !stored)
        problems.push_back(fmt::format("{} is missing, and tie_word_embeddings is false. If the head is meant to use "
                                       "the embedding's weight, set model.tie_embeddings = true.",
                                       kHead));
    if (shape.tiedEmbeddings && stored && !headEqualsEmbedding())
        problems.push_back(fmt::format("{} is stored and differs from {}, but {} says that they are one. Remove the "
                                       "tensor, or the tie.",
                                       kHead, kEmbedding, tie ? "model.tie_embeddings" : "tie_word_embeddings"));
}

void WeightFolder::compareWithShape(std::vector<std::string> &problems)
{
    for (const shapes::UnitShape &unit : shapes::unitsOf(m_config.shape)) {
        for (const shapes::ParameterShape &parameter : unit.parameters) {
            const std::string name = shapes::hfNameOf(parameter.name);
            const auto found = m_stored.find(name);
            if (found == m_stored.end()) {
                if (name != kHead) // settleTie() speaks of it
                    problems.push_back(fmt::format("{} is missing.", name));
                continue;
            }
            const files::SafeTensor &tensor = *found->second.tensor;
            if (tensor.sizes != parameter.sizes)
                problems.push_back(fmt::format("{} has the shape [{}], but by config.json it must be [{}].", name,
                                               fmt::join(tensor.sizes, ", "), fmt::join(parameter.sizes, ", ")));
            else if (!isFloat(tensor.type))
                problems.push_back(fmt::format("{} has the dtype {}; it must be F32, BF16, F16 or F64.", name,
                                               files::toText(tensor.type)));
            m_parameters[parameter.name] = found->second;
        }
    }
}

void WeightFolder::warnOfUnused()
{
    std::vector<std::string> unused;
    for (const auto &[name, stored] : m_stored) {
        const auto ours = shapes::nameOfHf(name);
        const bool isTiedHead = name == kHead && m_config.shape.tiedEmbeddings;
        if (!isTiedHead && (!ours || !m_parameters.contains(*ours)))
            unused.push_back(name);
    }
    if (unused.empty())
        return;
    const size_t count = unused.size();
    unused.resize(std::min(count, kShownNames));
    m_config.warnings.push_back(
        fmt::format("{} of the folder {} not used by the model: {}{}.", count == 1 ? "A tensor" : "Tensors",
                    count == 1 ? "is" : "are", fmt::join(unused, ", "),
                    count > kShownNames ? fmt::format(" and {} more", count - kShownNames) : ""));
}

const StoredParameter &WeightFolder::parameter(std::string_view name) const
{
    return m_parameters.find(name)->second;
}

Result<> WeightFolder::read(const StoredParameter &parameter, int64_t offsetBytes, std::span<std::byte> bytes) const
{
    return m_files[parameter.file].read(*parameter.tensor, offsetBytes, bytes);
}

} // namespace shardscope::pretrained
