// SPDX-License-Identifier: Apache-2.0
#include "core/pretrained/checkpoint_weights.h"

#include "core/files/float_values.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace shardscope::pretrained {

Result<CheckpointWeights> CheckpointWeights::open(const std::filesystem::path &checkpoint)
{
    auto reader = files::CheckpointReader::open(checkpoint);
    if (!reader)
        return tl::unexpected(reader.error());
    if (auto opened = reader->openFiles(); !opened)
        return tl::unexpected(opened.error());
    return CheckpointWeights(std::move(*reader));
}

/// The first state of a parameter's bucket: "master".
static Result<files::StateEntry> weightsOf(const files::Manifest &manifest, const shapes::ParameterShape &parameter)
{
    for (const files::BucketEntry &bucket : manifest.buckets) {
        const auto tensor = std::ranges::find(bucket.tensors, parameter.name, &files::TensorEntry::name);
        if (tensor == bucket.tensors.end())
            continue;
        if (tensor->sizes != parameter.sizes)
            return fail("The checkpoint has {} of the shape [{}], and the model [{}]. Is the model's folder another "
                        "one by now?",
                        tensor->name, fmt::join(tensor->sizes, ", "), fmt::join(parameter.sizes, ", "));
        if (!bucket.states.empty() && files::tensorTypeOf(bucket.states.front().dtype))
            return bucket.states.front();
    }
    return fail("The checkpoint has no weights of {}.", parameter.name);
}

Result<> CheckpointWeights::read(const shapes::ParameterShape &parameter, files::ElementSpan elements,
                                 std::span<float> values)
{
    const auto weights = weightsOf(manifest(), parameter);
    if (!weights)
        return tl::unexpected(weights.error());
    const files::TensorType type = *files::tensorTypeOf(weights->dtype);
    m_stored.resize(values.size() * static_cast<size_t>(files::elementBytes(type)));
    if (auto read = m_reader.read({parameter.name, weights->name, elements}, m_stored); !read)
        return read;
    files::toFloats(type, m_stored, values);
    return {};
}

Result<std::vector<float>> CheckpointWeights::readAll(const shapes::ParameterShape &parameter)
{
    std::vector<float> values(static_cast<size_t>(parameter.elements()));
    return read(parameter, {0, parameter.elements()}, values).map([&] { return std::move(values); });
}

} // namespace shardscope::pretrained
