// SPDX-License-Identifier: Apache-2.0
#include "core/files/rank_file.h"

#include "core/files/checksum.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace shardscope::files {

using nlohmann::json;

static constexpr int64_t kPageBytes = 4096; // direct I/O reads whole pages
static constexpr std::string_view kFormat = "shardscope-rank-file";

std::string rankFileName(int32_t rank)
{
    return fmt::format("rank-{}.bin", rank);
}

/// A page of text: a line of JSON, spaces, a line's end.
static std::string pageOf(const FileStamp &stamp)
{
    const json object = {
        {"format", kFormat}, {"checkpoint", stamp.checkpoint}, {"step", stamp.step}, {"rank", stamp.rank}};
    std::string page = object.dump();
    page.resize(static_cast<size_t>(kPageBytes), ' ');
    page.back() = '\n';
    return page;
}

Result<RankFileWriter> RankFileWriter::create(const std::filesystem::path &folder, const FileStamp &stamp)
{
    RankFileWriter writer;
    writer.m_entry.name = rankFileName(stamp.rank);
    writer.m_entry.rank = stamp.rank;
    writer.m_path = folder / writer.m_entry.name;
    writer.m_file = FileHandle(::open(writer.m_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (writer.m_file.get() < 0)
        return writeError(writer.m_path, errno);
    const std::string page = pageOf(stamp);
    if (const int error = writeAll(writer.m_file.get(), std::as_bytes(std::span(page)), 0))
        return writeError(writer.m_path, error);
    writer.m_entry.sizeBytes = kPageBytes;
    return writer;
}

int64_t RankFileWriter::nextOffsetBytes() const
{
    return (m_entry.sizeBytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

Result<> RankFileWriter::append(std::string bucket, std::string state, ElementSpan elements, int64_t elementBytes,
                                const PieceReader &read)
{
    SectionEntry section;
    section.bucket = std::move(bucket);
    section.state = std::move(state);
    section.elements = elements;
    section.offsetBytes = nextOffsetBytes();
    section.sizeBytes = elements.size() * elementBytes;
    section.chunkBytes = kChunkBytes;
    for (int64_t done = 0; done < section.sizeBytes; done += kChunkBytes) {
        const auto bytes = read(done, std::min(kChunkBytes, section.sizeBytes - done));
        if (!bytes)
            return tl::unexpected(bytes.error());
        section.checksums.push_back(checksumOf(*bytes));
        if (const int error = writeAll(m_file.get(), *bytes, section.offsetBytes + done))
            return writeError(m_path, error);
    }
    m_entry.sizeBytes = section.offsetBytes + section.sizeBytes;
    m_entry.sections.push_back(std::move(section));
    return {};
}

Result<> RankFileWriter::appendBlob(std::string name, std::span<const std::byte> bytes)
{
    const BlobEntry blob{std::move(name), nextOffsetBytes(), static_cast<int64_t>(bytes.size()), checksumOf(bytes)};
    if (const int error = writeAll(m_file.get(), bytes, blob.offsetBytes))
        return writeError(m_path, error);
    m_entry.sizeBytes = blob.offsetBytes + blob.sizeBytes;
    m_entry.blobs.push_back(blob);
    return {};
}

Result<FileEntry> RankFileWriter::finish()
{
    // An empty last section leaves the file shorter than its place in the manifest.
    if (::ftruncate(m_file.get(), m_entry.sizeBytes) != 0 || ::fsync(m_file.get()) != 0)
        return writeError(m_path, errno);
    return m_entry;
}

/// What is wrong with a file's first page; empty where it is the one that is looked for.
static std::string faultOfPage(int descriptor, const FileEntry &entry, const std::string &checkpoint)
{
    std::string page(static_cast<size_t>(kPageBytes), '\0');
    if (const int error = readAll(descriptor, std::as_writable_bytes(std::span(page)), 0))
        return fmt::format("its first page can't be read: {}", std::strerror(error));
    try {
        const json object = json::parse(page);
        if (object.at("format") != kFormat)
            return "it is no file of a Shardscope checkpoint";
        const auto step = object.at("step").get<int64_t>();
        const auto rank = object.at("rank").get<int32_t>();
        if (object.at("checkpoint") != checkpoint)
            return fmt::format("it is rank {}'s of another checkpoint, of step {}", rank, step);
        if (rank != entry.rank)
            return fmt::format("it is rank {}'s: files were exchanged or renamed", rank);
    } catch (const std::exception &) {
        return "its first page is damaged, or it is no file of a Shardscope checkpoint";
    }
    return {};
}

Result<FileHandle> openRankFile(const std::filesystem::path &folder, const FileEntry &entry,
                                const std::string &checkpoint)
{
    const std::filesystem::path path = folder / entry.name;
    FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status = {};
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
        return fail("can't read {}: {}", path.string(), std::strerror(errno));
    if (status.st_size != entry.sizeBytes)
        return fail("{} has {} bytes, its manifest says {}: it was cut off or replaced", path.string(),
                    static_cast<int64_t>(status.st_size), entry.sizeBytes);
    const std::string fault = checkpoint.empty() ? "" : faultOfPage(file.get(), entry, checkpoint);
    if (!fault.empty())
        return fail("{} is not what its manifest says: {}", path.string(), fault);
    return file;
}

} // namespace shardscope::files
