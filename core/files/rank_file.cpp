// SPDX-License-Identifier: Apache-2.0
#include "core/files/rank_file.h"

#include "core/base/text.h"
#include "core/files/checksum.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardscope::files {

static constexpr int64_t kAlignmentBytes = 4096; // direct I/O reads whole pages

Result<RankFileWriter> RankFileWriter::create(const std::filesystem::path &folder, int32_t rank)
{
    RankFileWriter writer;
    writer.m_entry.name = fmt::format("rank-{}.bin", rank);
    writer.m_entry.rank = rank;
    writer.m_path = folder / writer.m_entry.name;
    writer.m_file = FileHandle(::open(writer.m_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (writer.m_file.get() < 0)
        return writeError(writer.m_path, errno);
    return writer;
}

Result<> RankFileWriter::append(std::string bucket, std::string state, std::span<const std::byte> bytes)
{
    SectionEntry section;
    section.bucket = std::move(bucket);
    section.state = std::move(state);
    section.offsetBytes = (m_entry.sizeBytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
    section.sizeBytes = static_cast<int64_t>(bytes.size());
    section.checksum = checksumOf(bytes);
    if (const int error = writeAll(m_file.get(), bytes, section.offsetBytes))
        return writeError(m_path, error);
    m_entry.sizeBytes = section.offsetBytes + section.sizeBytes;
    m_entry.sections.push_back(std::move(section));
    return {};
}

Result<FileEntry> RankFileWriter::finish()
{
    // An empty last section leaves the file shorter than its place in the manifest.
    if (::ftruncate(m_file.get(), m_entry.sizeBytes) != 0 || ::fsync(m_file.get()) != 0)
        return writeError(m_path, errno);
    return m_entry;
}

Result<RankFileReader> RankFileReader::open(const std::filesystem::path &folder, const FileEntry &entry)
{
    static constexpr std::string_view kRemedy = "Delete that checkpoint's folder to go on from an earlier one.";
    RankFileReader reader;
    reader.m_entry = entry;
    reader.m_path = folder / entry.name;
    reader.m_file = FileHandle(::open(reader.m_path.c_str(), O_RDONLY | O_CLOEXEC));
    if (reader.m_file.get() < 0)
        return fail("Can't read {}: {}. {}", reader.m_path.string(), std::strerror(errno), kRemedy);
    struct stat status = {};
    if (::fstat(reader.m_file.get(), &status) != 0)
        return fail("Can't read {}: {}. {}", reader.m_path.string(), std::strerror(errno), kRemedy);
    if (status.st_size != entry.sizeBytes)
        return fail("{} has {} bytes, its manifest says {}: it was cut off or replaced. {}", reader.m_path.string(),
                    static_cast<int64_t>(status.st_size), entry.sizeBytes, kRemedy);
    return reader;
}

Result<> RankFileReader::read(std::string_view bucket, std::string_view state, std::span<std::byte> bytes) const
{
    const auto section = std::ranges::find_if(m_entry.sections, [&](const SectionEntry &candidate) {
        return candidate.bucket == bucket && candidate.state == state;
    });
    if (section == m_entry.sections.end())
        return fail("{} has no {} of {}.", m_path.string(), state, bucket);
    if (section->sizeBytes != static_cast<int64_t>(bytes.size()))
        return fail("{} holds {} of {}'s {}; this job needs {}.", m_path.string(), formatBytes(section->sizeBytes),
                    bucket, state, formatBytes(static_cast<int64_t>(bytes.size())));
    if (const int error = readAll(m_file.get(), bytes, section->offsetBytes))
        return fail("Can't read {}: {}.", m_path.string(), std::strerror(error));
    if (checksumOf(bytes) != section->checksum)
        return fail("{} is damaged: {} of {} (bytes {} to {}) does not match its checksum. Delete that checkpoint's "
                    "folder to go on from an earlier one.",
                    m_path.string(), state, bucket, section->offsetBytes, section->offsetBytes + section->sizeBytes);
    return {};
}

} // namespace shardscope::files
