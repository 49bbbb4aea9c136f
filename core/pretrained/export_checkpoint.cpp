// SPDX-License-Identifier: Apache-2.0
#include "core/pretrained/export_checkpoint.h"

#include "core/base/file.h"
#include "core/files/checkpoint_reader.h"
#include "core/files/float_values.h"
#include "core/pretrained/checkpoint_model.h"
#include "core/pretrained/folder_writer.h"

#include <algorithm>

namespace shardscope::pretrained {

namespace {

constexpr int64_t kPieceElements = int64_t{1} << 20;

/// Where a parameter's weights are in a checkpoint.
struct Weights
{
    std::string state; ///< "master": the first of its bucket
    files::TensorType type = files::TensorType::F32;
};

/// One export: what is read, what is written, and a buffer for each.
class Exporter
{
public:
    Exporter(files::CheckpointReader reader, FolderWriter writer, const ExportOptions &options)
        : m_reader(std::move(reader))
        , m_writer(std::move(writer))
        , m_options(options)
    {
    }
    Result<> copyAll(const shapes::ModelShape &shape);

private:
    Result<Weights> find(const shapes::ParameterShape &parameter) const;
    Result<> copy(const shapes::ParameterShape &parameter);

    files::CheckpointReader m_reader;
    FolderWriter m_writer;
    const ExportOptions &m_options;
    std::vector<std::byte> m_stored;
    std::vector<float> m_values;
};

Result<> Exporter::copyAll(const shapes::ModelShape &shape)
{
    const int64_t elementBytes = files::elementBytes(m_writer.type());
    const int64_t totalBytes = shapes::parameterCount(shape) * elementBytes;
    int64_t doneBytes = 0;
    for (const shapes::UnitShape &unit : shapes::unitsOf(shape)) {
        for (const shapes::ParameterShape &parameter : unit.parameters) {
            if (auto copied = copy(parameter); !copied)
                return copied;
            doneBytes += parameter.elements() * elementBytes;
            if (m_options.progress && !m_options.progress(doneBytes, totalBytes))
                return fail("The export was broken off.");
        }
    }
    return m_writer.finish();
}

Result<Weights> Exporter::find(const shapes::ParameterShape &parameter) const
{
    for (const files::BucketEntry &bucket : m_reader.manifest().buckets) {
        const auto tensor = std::ranges::find(bucket.tensors, parameter.name, &files::TensorEntry::name);
        if (tensor == bucket.tensors.end())
            continue;
        if (tensor->sizes != parameter.sizes)
            return fail("The checkpoint has {} of the shape [{}], and the model [{}]. Is the model's folder another "
                        "one by now?",
                        tensor->name, fmt::join(tensor->sizes, ", "), fmt::join(parameter.sizes, ", "));
        const auto type = bucket.states.empty() ? std::nullopt : files::tensorTypeOf(bucket.states.front().dtype);
        if (!type)
            return fail("The checkpoint has no weights of {}.", parameter.name);
        return Weights{bucket.states.front().name, *type};
    }
    return fail("The checkpoint has no parameter {}.", parameter.name);
}

Result<> Exporter::copy(const shapes::ParameterShape &parameter)
{
    const auto weights = find(parameter);
    if (!weights)
        return tl::unexpected(weights.error());
    const int64_t writtenBytes = files::elementBytes(m_writer.type());
    for (int64_t begin = 0; begin < parameter.elements(); begin += kPieceElements) {
        const int64_t end = std::min(begin + kPieceElements, parameter.elements());
        const auto count = static_cast<size_t>(end - begin);
        m_values.resize(count);
        m_stored.resize(count * static_cast<size_t>(files::elementBytes(weights->type)));
        if (auto read = m_reader.read({parameter.name, weights->state, {begin, end}}, m_stored); !read)
            return read;
        files::toFloats(weights->type, m_stored, m_values);
        m_stored.resize(count * static_cast<size_t>(writtenBytes));
        files::fromFloats(m_writer.type(), m_values, m_stored);
        if (auto written = m_writer.write(parameter.name, begin * writtenBytes, m_stored); !written)
            return written;
    }
    return {};
}

/// Beside the target, whose name it gets once it is whole.
std::filesystem::path partialPathOf(const std::filesystem::path &target)
{
    return target.parent_path() / ("." + target.filename().string() + ".partial");
}

Result<> exportInto(const std::filesystem::path &partial, files::CheckpointReader reader, const CheckpointModel &model,
                    const ExportOptions &options)
{
    FolderWriterOptions writing;
    const bool isBf16 = model.configuration.precision.compute == Precision::Bf16;
    writing.type = options.type.value_or(isBf16 ? files::TensorType::Bf16 : files::TensorType::F32);
    writing.original = model.configuration.model.path;
    auto writer = FolderWriter::create(partial, model.shape, writing);
    if (!writer)
        return tl::unexpected(writer.error());
    return Exporter(std::move(reader), std::move(*writer), options).copyAll(model.shape);
}

/// The rename would take an empty folder's place too, but not a file's or a full one's.
Result<> giveName(const std::filesystem::path &partial, const std::filesystem::path &target)
{
    std::error_code error;
    std::filesystem::rename(partial, target, error);
    if (error)
        return fail("Can't rename {} to {}: {}.", partial.string(), target.string(), error.message());
    return syncFolder(target.parent_path());
}

} // namespace

Result<> checkExportTarget(const std::filesystem::path &target)
{
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::symlink_status(target, error)))
        return fail("{} exists already. Give a folder that doesn't.", target.string());
    if (!std::filesystem::is_directory(target.parent_path(), error))
        return fail("There is no folder {} to make {} in.", target.parent_path().string(), target.filename().string());
    return {};
}

Result<> exportCheckpoint(const std::filesystem::path &checkpoint, const std::filesystem::path &target,
                          const ExportOptions &options)
{
    if (auto free = checkExportTarget(target); !free)
        return free;
    auto reader = files::CheckpointReader::open(checkpoint);
    if (!reader)
        return tl::unexpected(reader.error());
    // A run that goes on may delete it while it is exported.
    if (auto opened = reader->openFiles(); !opened)
        return opened;
    const auto model = modelOf(reader->manifest(), checkpoint);
    if (!model)
        return tl::unexpected(model.error());
    const std::filesystem::path partial = partialPathOf(target);
    std::error_code ignored;
    std::filesystem::remove_all(partial, ignored); // of an export that was killed
    auto result =
        exportInto(partial, std::move(*reader), *model, options).and_then([&] { return giveName(partial, target); });
    if (!result)
        std::filesystem::remove_all(partial, ignored);
    return result;
}

} // namespace shardscope::pretrained
