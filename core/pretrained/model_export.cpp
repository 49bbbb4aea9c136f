// SPDX-License-Identifier: Apache-2.0
#include "core/pretrained/model_export.h"

#include "core/files/float_values.h"
#include "core/pretrained/folder_writer.h"
#include "core/shapes/adapters.h"

#include <algorithm>

namespace shardscope::pretrained {

namespace {

constexpr int64_t kPieceElements = int64_t{1} << 20;

/// An adapter's numbers, rows one after the other: A [rank, in], B [out, rank].
struct LoadedAdapter
{
    std::vector<float> a;
    std::vector<float> b;
    int64_t rank = 0;
};

/// rows [rows, in] += s·B·A, of B's rows from `first` on.
void addAdapter(std::span<float> rows, int64_t first, const LoadedAdapter &adapter, double scale)
{
    const size_t in = adapter.a.size() / static_cast<size_t>(adapter.rank);
    for (size_t row = 0; row < rows.size() / in; ++row) {
        float *sum = rows.data() + row * in;
        for (size_t k = 0; k < static_cast<size_t>(adapter.rank); ++k) {
            const size_t place = (static_cast<size_t>(first) + row) * static_cast<size_t>(adapter.rank) + k;
            const auto factor = static_cast<float>(scale * static_cast<double>(adapter.b[place]));
            const float *a = adapter.a.data() + k * in;
            for (size_t i = 0; i < in; ++i)
                sum[i] += factor * a[i];
        }
    }
}

class ModelExport
{
public:
    ModelExport(CheckpointWeights &weights, const CheckpointModel &model, FolderWriter writer,
                const ExportOptions &options)
        : m_weights(weights)
        , m_model(model)
        , m_scale(shapes::adapterScale(model.configuration))
        , m_writer(std::move(writer))
        , m_options(options)
    {
    }

    Result<> copyAll()
    {
        const auto units = shapes::withAdapters(shapes::unitsOf(m_model.shape), m_model.configuration);
        if (!units)
            return tl::unexpected(units.error());
        const int64_t elementBytes = files::elementBytes(m_writer.type());
        const int64_t totalBytes = shapes::parameterCount(m_model.shape) * elementBytes;
        int64_t doneBytes = 0;
        for (const shapes::UnitShape &unit : *units) {
            for (size_t i = 0; i < unit.parameters.size(); ++i) {
                const shapes::ParameterShape &parameter = unit.parameters[i];
                if (parameter.adapter != shapes::AdapterPart::None)
                    continue;
                if (auto copied = copy(unit, i); !copied)
                    return copied;
                doneBytes += parameter.elements() * elementBytes;
                if (m_options.progress && !m_options.progress(doneBytes, totalBytes))
                    return fail("The export was broken off.");
            }
        }
        return m_writer.finish();
    }

private:
    /// Of the unit's weight; nothing where it has none.
    Result<std::optional<LoadedAdapter>> adapterOf(const shapes::UnitShape &unit, size_t weight)
    {
        LoadedAdapter adapter;
        for (const shapes::ParameterShape &part : unit.parameters) {
            if (part.adapter == shapes::AdapterPart::None || part.adapts != weight)
                continue;
            auto values = m_weights.readAll(part);
            if (!values)
                return tl::unexpected(values.error());
            const bool isA = part.adapter == shapes::AdapterPart::A;
            if (isA)
                adapter.rank = part.sizes[0];
            (isA ? adapter.a : adapter.b) = std::move(*values);
        }
        return adapter.rank == 0 ? std::nullopt : std::optional(std::move(adapter));
    }

    /// Whole rows at a time.
    Result<> copy(const shapes::UnitShape &unit, size_t index)
    {
        const shapes::ParameterShape &parameter = unit.parameters[index];
        const auto adapter = adapterOf(unit, index);
        if (!adapter)
            return tl::unexpected(adapter.error());
        const int64_t width = parameter.sizes.back();
        const int64_t step = std::max<int64_t>(1, kPieceElements / width) * width;
        const int64_t writtenBytes = files::elementBytes(m_writer.type());
        for (int64_t begin = 0; begin < parameter.elements(); begin += step) {
            const int64_t end = std::min(begin + step, parameter.elements());
            m_values.resize(static_cast<size_t>(end - begin));
            if (auto read = m_weights.read(parameter, {begin, end}, m_values); !read)
                return read;
            if (*adapter)
                addAdapter(m_values, begin / width, **adapter, m_scale);
            m_stored.resize(m_values.size() * static_cast<size_t>(writtenBytes));
            files::fromFloats(m_writer.type(), m_values, m_stored);
            if (auto written = m_writer.write(parameter.name, begin * writtenBytes, m_stored); !written)
                return written;
        }
        return {};
    }

    CheckpointWeights &m_weights;
    const CheckpointModel &m_model;
    double m_scale;
    FolderWriter m_writer;
    const ExportOptions &m_options;
    std::vector<float> m_values;
    std::vector<std::byte> m_stored;
};

} // namespace

Result<> exportModel(CheckpointWeights &weights, const CheckpointModel &model, const std::filesystem::path &folder,
                     const ExportOptions &options)
{
    FolderWriterOptions writing;
    const bool isBf16 = model.configuration.precision.compute == Precision::Bf16;
    writing.type = options.type.value_or(isBf16 ? files::TensorType::Bf16 : files::TensorType::F32);
    writing.original = model.configuration.model.path;
    auto writer = FolderWriter::create(folder, model.shape, writing);
    if (!writer)
        return tl::unexpected(writer.error());
    return ModelExport(weights, model, std::move(*writer), options).copyAll();
}

} // namespace shardscope::pretrained
