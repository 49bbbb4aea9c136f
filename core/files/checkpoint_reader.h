// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/files/checkpoint_folder.h"
#include "core/files/file_handle.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace shardscope::files {

/// Reads a checkpoint by tensor names and ranges of elements, whoever wrote which part of it. Memory: one chunk.
class CheckpointReader
{
public:
    /// Elements of one state of a tensor, counted within the tensor.
    struct Part
    {
        std::string tensor;
        std::string state;
        ElementSpan elements;
    };

    /// Reads and checks the manifest; opens no other file yet.
    static Result<CheckpointReader> open(const std::filesystem::path &folder);

    const Manifest &manifest() const { return m_manifest; }
    /// "fp32", of a state that is there; empty where it is not.
    std::string dtypeOf(std::string_view tensor, std::string_view state) const;

    /// Opens all files, so that what is read is there even if the checkpoint is deleted meanwhile.
    Result<> openFiles();
    /// Reads all of it and checks files and checksums; keeps nothing. The message names all damages at once.
    Result<> verify(const std::vector<Part> &parts);
    /// Fills `bytes` (elements × bytes of the stored dtype), checked.
    Result<> read(const Part &part, std::span<std::byte> bytes);
    /// What a rank wrote beside its tensors; empty where it has none of that name.
    Result<std::vector<std::byte>> blob(int32_t rank, std::string_view name);

private:
    struct Place
    {
        const BucketEntry *bucket = nullptr;
        const TensorEntry *tensor = nullptr;
    };
    struct Located
    {
        size_t file = 0;
        const SectionEntry *section = nullptr;
    };
    struct ChunkId
    {
        const SectionEntry *section = nullptr;
        int64_t index = -1;
        auto operator<=>(const ChunkId &) const = default;
    };
    using SectionKey = std::pair<std::string_view, std::string_view>;

    explicit CheckpointReader(std::filesystem::path folder)
        : m_folder(std::move(folder))
    {
    }
    void index();
    Result<int> descriptorOf(size_t file);
    /// The chunk's bytes in m_chunk, checked.
    Result<> load(const Located &located, int64_t chunk, const Part &part);
    template <typename Take>
    Result<> visit(const Part &part, Take take);
    tl::unexpected<Error> damaged(std::string_view what) const;

    std::filesystem::path m_folder;
    Manifest m_manifest;
    std::map<std::string_view, Place> m_tensors;
    std::map<SectionKey, std::vector<Located>> m_sections; ///< by the first element
    std::map<size_t, Result<FileHandle>> m_files;          ///< those that were needed
    std::vector<std::byte> m_chunk;
    ChunkId m_loaded; ///< which one is in m_chunk
};

} // namespace shardscope::files
