// SPDX-License-Identifier: Apache-2.0
#include "core/files/checkpoint_reader.h"

#include "core/files/checkpoint_part.h"
#include "core/files/checksum.h"

#include <algorithm>
#include <cstring>
#include <fmt/ranges.h>

namespace shardscope::files {

Result<CheckpointReader> CheckpointReader::open(const std::filesystem::path &folder)
{
    auto manifest = CheckpointFolder::readManifest(folder);
    if (!manifest)
        return tl::unexpected(manifest.error());
    CheckpointReader reader(folder);
    reader.m_manifest = std::move(*manifest);
    reader.index();
    return reader;
}

void CheckpointReader::index()
{
    for (const BucketEntry &bucket : m_manifest.buckets) {
        for (const TensorEntry &tensor : bucket.tensors)
            m_tensors.emplace(tensor.name, Place{&bucket, &tensor});
    }
    for (size_t file = 0; file < m_manifest.files.size(); ++file) {
        for (const SectionEntry &section : m_manifest.files[file].sections)
            m_sections[{section.bucket, section.state}].push_back({file, &section});
    }
    for (auto &[key, sections] : m_sections)
        std::ranges::sort(sections, {}, [](const Located &located) { return located.section->elements.begin; });
}

std::string CheckpointReader::dtypeOf(std::string_view tensor, std::string_view state) const
{
    const auto place = m_tensors.find(tensor);
    const StateEntry *entry = place == m_tensors.end() ? nullptr : place->second.bucket->find(state);
    return entry ? entry->dtype : "";
}

/// A file that all ranks wrote together.
static Result<FileHandle> openSharedFile(const std::filesystem::path &folder, const FileEntry &entry,
                                         const std::string &checkpoint)
{
    auto reader = SafetensorsReader::open(folder / entry.name);
    if (!reader)
        return tl::unexpected(reader.error());
    const auto id = reader->metadata().find(std::string(kCheckpointKey));
    if (id == reader->metadata().end() || id->second != checkpoint)
        return fail("{} is not what its manifest says: it is another checkpoint's", (folder / entry.name).string());
    return openRankFile(folder, entry, ""); // it has no page of a rank
}

Result<int> CheckpointReader::descriptorOf(size_t file)
{
    auto known = m_files.find(file);
    if (known == m_files.end()) {
        const FileEntry &entry = m_manifest.files[file];
        known = m_files
                    .emplace(file, entry.rank ? openRankFile(m_folder, entry, m_manifest.id)
                                              : openSharedFile(m_folder, entry, m_manifest.id))
                    .first;
    }
    if (!known->second)
        return tl::unexpected(known->second.error());
    return known->second->get();
}

Result<> CheckpointReader::openFiles()
{
    for (size_t file = 0; file < m_manifest.files.size(); ++file) {
        if (const auto descriptor = descriptorOf(file); !descriptor)
            return damaged(descriptor.error().text);
    }
    return {};
}

Result<> CheckpointReader::load(const Located &located, int64_t chunk, const Part &part)
{
    const SectionEntry &section = *located.section;
    if (m_loaded == ChunkId{&section, chunk})
        return {};
    m_loaded = {};
    const auto descriptor = descriptorOf(located.file);
    if (!descriptor)
        return tl::unexpected(descriptor.error());
    const std::filesystem::path path = m_folder / m_manifest.files[located.file].name;
    const int64_t begin = chunk * section.chunkBytes;
    m_chunk.resize(static_cast<size_t>(std::min(section.chunkBytes, section.sizeBytes - begin)));
    if (const int error = readAll(*descriptor, m_chunk, section.offsetBytes + begin))
        return fail("can't read {}: {}", path.string(), std::strerror(error));
    if (checksumOf(m_chunk) != section.checksums[static_cast<size_t>(chunk)])
        return fail("{} is damaged: {} of {} (bytes {} to {}) does not match its checksum", path.string(), part.state,
                    part.tensor, section.offsetBytes + begin,
                    section.offsetBytes + begin + static_cast<int64_t>(m_chunk.size()));
    m_loaded = {&section, chunk};
    return {};
}

/// Calls take(located, chunk, bytes in the chunk, bytes from the part's begin) for each piece of the part, in order.
template <typename Take>
Result<> CheckpointReader::visit(const Part &part, Take take)
{
    const auto place = m_tensors.find(part.tensor);
    const StateEntry *state = place == m_tensors.end() ? nullptr : place->second.bucket->find(part.state);
    if (!state)
        return fail("it has no {} of {}", part.state, part.tensor);
    const int64_t elementBytes = dtypeBytes(state->dtype);
    const int64_t shift = place->second.tensor->offsetElements;
    const ElementSpan wanted = {part.elements.begin + shift, part.elements.end + shift};
    for (const Located &located : m_sections[{place->second.bucket->name, state->name}]) {
        const SectionEntry &section = *located.section;
        const int64_t begin = std::max(wanted.begin, section.elements.begin);
        const int64_t end = std::min(wanted.end, section.elements.end);
        int64_t at = (begin - section.elements.begin) * elementBytes; // in the section
        const int64_t endBytes = (end - section.elements.begin) * elementBytes;
        while (begin < end && at < endBytes) {
            const int64_t chunk = at / section.chunkBytes;
            const int64_t stop = std::min(endBytes, (chunk + 1) * section.chunkBytes);
            const int64_t inPart = at - (wanted.begin - section.elements.begin) * elementBytes;
            const int64_t inChunk = at - chunk * section.chunkBytes;
            if (auto taken = take(located, chunk, ElementSpan{inChunk, inChunk + stop - at}, inPart); !taken)
                return taken;
            at = stop;
        }
    }
    return {};
}

tl::unexpected<Error> CheckpointReader::damaged(std::string_view what) const
{
    return fail("The checkpoint {} can't be used: {}. Delete that checkpoint's folder to use an earlier one.",
                m_folder.string(), what);
}

Result<> CheckpointReader::verify(const std::vector<Part> &parts)
{
    std::set<ChunkId> seen;
    std::vector<std::string> damages;
    for (const Part &part : parts) {
        const auto check = [&](const Located &located, int64_t chunk, ElementSpan, int64_t) -> Result<> {
            if (!seen.insert({located.section, chunk}).second)
                return {};
            auto loaded = load(located, chunk, part);
            if (!loaded && std::ranges::find(damages, loaded.error().text) == damages.end())
                damages.push_back(loaded.error().text);
            return {};
        };
        if (auto visited = visit(part, check); !visited)
            damages.push_back(visited.error().text);
    }
    if (damages.empty())
        return {};
    return damaged(fmt::format("{}", fmt::join(damages, "; ")));
}

Result<> CheckpointReader::read(const Part &part, std::span<std::byte> bytes)
{
    const auto copy = [&](const Located &located, int64_t chunk, ElementSpan inChunk, int64_t inPart) -> Result<> {
        if (auto loaded = load(located, chunk, part); !loaded)
            return loaded;
        std::memcpy(bytes.data() + inPart, m_chunk.data() + inChunk.begin, static_cast<size_t>(inChunk.size()));
        return {};
    };
    if (const auto size = part.elements.size() * dtypeBytes(dtypeOf(part.tensor, part.state));
        size != static_cast<int64_t>(bytes.size()))
        return fail("{} of {}: {} bytes are asked for, there are {}.", part.state, part.tensor, bytes.size(), size);
    if (auto done = visit(part, copy); !done)
        return damaged(done.error().text);
    return {};
}

Result<std::vector<std::byte>> CheckpointReader::blob(int32_t rank, std::string_view name)
{
    for (size_t file = 0; file < m_manifest.files.size(); ++file) {
        const FileEntry &entry = m_manifest.files[file];
        const auto found = std::ranges::find(entry.blobs, name, &BlobEntry::name);
        if (entry.rank != rank || found == entry.blobs.end())
            continue;
        const auto descriptor = descriptorOf(file);
        if (!descriptor)
            return damaged(descriptor.error().text);
        std::vector<std::byte> bytes(static_cast<size_t>(found->sizeBytes));
        if (const int error = readAll(*descriptor, bytes, found->offsetBytes))
            return damaged(fmt::format("can't read {}: {}", (m_folder / entry.name).string(), std::strerror(error)));
        if (checksumOf(bytes) != found->checksum)
            return damaged(fmt::format("{} is damaged: {} does not match its checksum",
                                       (m_folder / entry.name).string(), found->name));
        return bytes;
    }
    return std::vector<std::byte>{};
}

} // namespace shardscope::files
