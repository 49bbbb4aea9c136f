// SPDX-License-Identifier: Apache-2.0
#include "core/files/checkpoint_part.h"

#include "core/files/checksum.h"
#include "core/files/float_values.h"

#include <algorithm>

namespace shardscope::files {

static std::string nameInFile(const TensorEntry &tensor, std::string_view state, bool isWeights)
{
    return isWeights ? tensor.name : fmt::format("{}.{}", tensor.name, state);
}

/// Both files' tensors and places, the same on all ranks. A file without tensors is left out.
static std::map<std::string_view, SafetensorsPlan> plansOf(const PartPlan &plan)
{
    std::map<std::string_view, std::vector<SafeTensorSpec>> specs;
    for (const BucketEntry &bucket : plan.buckets) {
        for (const TensorEntry &tensor : bucket.tensors) {
            for (size_t i = 0; i < bucket.states.size(); ++i) {
                const StateEntry &state = bucket.states[i];
                specs[i == 0 ? kModelFile : kOptimizerFile].push_back(
                    {nameInFile(tensor, state.name, i == 0), tensorTypeOf(state.dtype).value(), tensor.sizes});
            }
        }
    }
    std::map<std::string_view, SafetensorsPlan> plans;
    const SafetensorsMetadata metadata = {{"format", "pt"},
                                          {std::string(kCheckpointKey), plan.stamp.checkpoint},
                                          {"step", fmt::format("{}", plan.stamp.step)}};
    for (const auto &[file, tensors] : specs)
        plans.emplace(file, planSafetensors(tensors, metadata));
    return plans;
}

std::vector<BucketEntry> storedBuckets(const PartPlan &plan)
{
    if (plan.format == CheckpointFormat::Sharded)
        return plan.buckets;
    std::vector<BucketEntry> each;
    for (const BucketEntry &bucket : plan.buckets) {
        for (const TensorEntry &tensor : bucket.tensors)
            each.push_back({tensor.name, tensor.elements(), bucket.states, {{tensor.name, tensor.sizes, 0}}});
    }
    return each;
}

Result<> createSharedFiles(const std::filesystem::path &folder, const PartPlan &plan)
{
    if (plan.format == CheckpointFormat::Sharded)
        return {};
    for (auto &[name, file] : plansOf(plan)) {
        if (auto made = SafetensorsWriter::create(folder / name, file); !made)
            return tl::unexpected(made.error());
    }
    return {};
}

Result<PartWriter> PartWriter::create(const std::filesystem::path &folder, PartPlan plan)
{
    auto own = RankFileWriter::create(folder, plan.stamp);
    if (!own)
        return tl::unexpected(own.error());
    PartWriter writer(std::move(plan), std::move(*own));
    if (writer.m_plan.format == CheckpointFormat::Full) {
        if (auto joined = writer.joinSharedFiles(folder); !joined)
            return tl::unexpected(joined.error());
    }
    return writer;
}

Result<> PartWriter::joinSharedFiles(const std::filesystem::path &folder)
{
    for (auto &[name, plan] : plansOf(m_plan)) {
        auto writer = SafetensorsWriter::join(folder / name, plan);
        if (!writer)
            return tl::unexpected(writer.error());
        SharedFile file{std::move(*writer), {}, {}};
        file.entry.name = name;
        file.entry.sizeBytes = plan.header.fileBytes;
        for (size_t i = 0; i < plan.header.tensors.size(); ++i)
            file.tensors.emplace(plan.header.tensors[i].name, i);
        m_shared.emplace(name, std::move(file));
    }
    return {};
}

static ElementSpan common(const ElementSpan &a, const ElementSpan &b)
{
    const int64_t begin = std::max(a.begin, b.begin);
    return {begin, std::max(begin, std::min(a.end, b.end))};
}

Result<> PartWriter::write(std::string_view bucketName, std::string_view stateName, ElementSpan elements,
                           const PieceReader &read)
{
    const auto bucket = std::ranges::find(m_plan.buckets, bucketName, &BucketEntry::name);
    const StateEntry *state = bucket == m_plan.buckets.end() ? nullptr : bucket->find(stateName);
    if (!state)
        return fail("A checkpoint has no {} of {}.", stateName, bucketName);
    const int64_t elementBytes = dtypeBytes(state->dtype);
    if (m_plan.format == CheckpointFormat::Sharded)
        return m_own.append(bucket->name, state->name, elements, elementBytes, read);
    for (const TensorEntry &tensor : bucket->tensors) {
        const ElementSpan part = common(tensor.inBucket(), elements);
        if (part.size() == 0)
            continue;
        const int64_t readOffsetBytes = (part.begin - elements.begin) * elementBytes;
        const bool isWeights = state == &bucket->states.front();
        if (auto written = writeTensor(tensor, isWeights, *state, part, readOffsetBytes, read); !written)
            return written;
    }
    return {};
}

Result<> PartWriter::writeTensor(const TensorEntry &tensor, bool isWeights, const StateEntry &state,
                                 ElementSpan inBucket, int64_t readOffsetBytes, const PieceReader &read)
{
    SharedFile &file = m_shared.at(isWeights ? kModelFile : kOptimizerFile);
    const size_t index = file.tensors.find(nameInFile(tensor, state.name, isWeights))->second;
    const int64_t elementBytes = dtypeBytes(state.dtype);
    SectionEntry section;
    section.bucket = tensor.name;
    section.state = state.name;
    section.elements = {inBucket.begin - tensor.offsetElements, inBucket.end - tensor.offsetElements};
    const int64_t offsetInTensor = section.elements.begin * elementBytes;
    section.offsetBytes = file.writer.header().tensors[index].offsetBytes + offsetInTensor;
    section.sizeBytes = section.elements.size() * elementBytes;
    section.chunkBytes = kChunkBytes;
    for (int64_t done = 0; done < section.sizeBytes; done += kChunkBytes) {
        const auto bytes = read(readOffsetBytes + done, std::min(kChunkBytes, section.sizeBytes - done));
        if (!bytes)
            return tl::unexpected(bytes.error());
        section.checksums.push_back(checksumOf(*bytes));
        if (auto written = file.writer.write(index, offsetInTensor + done, *bytes); !written)
            return written;
    }
    file.entry.sections.push_back(std::move(section));
    return {};
}

Result<std::vector<FileEntry>> PartWriter::finish()
{
    auto own = m_own.finish();
    if (!own)
        return tl::unexpected(own.error());
    std::vector<FileEntry> files = {std::move(*own)};
    for (auto &[name, file] : m_shared) {
        if (auto synced = file.writer.finishOwnPart(); !synced)
            return tl::unexpected(synced.error());
        files.push_back(file.entry);
    }
    return files;
}

} // namespace shardscope::files
