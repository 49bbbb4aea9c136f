// SPDX-License-Identifier: Apache-2.0
#include "core/data/source_files.h"

#include "core/base/file.h"
#include "core/data/bin_file.h"
#include "core/data/unreadable.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace shardscope::data {

namespace fs = std::filesystem;

namespace {

enum class FileKind { Text, Binary, Empty };

/// Binary is what git calls so: a NUL byte near the beginning.
Result<FileKind> kindOf(const fs::path &path)
{
    std::ifstream in(path, std::ios::binary);
    std::array<char, 8192> start{};
    if (in)
        in.read(start.data(), start.size());
    if (!in && !in.eof())
        return unreadable(path, errno);
    const auto size = static_cast<size_t>(in.gcount());
    if (size == 0)
        return FileKind::Empty;
    return std::memchr(start.data(), 0, size) ? FileKind::Binary : FileKind::Text;
}

Result<int64_t> sizeOf(const fs::path &path)
{
    std::error_code error;
    const auto size = fs::file_size(path, error);
    if (error)
        return unreadable(path, error);
    return static_cast<int64_t>(size);
}

Result<SourceFiles> tokenFile(const fs::path &path, int64_t tokenBytes, int64_t vocabulary)
{
    const auto bin = openBinFile(path, tokenBytes, vocabulary);
    if (!bin)
        return tl::unexpected(bin.error());
    SourceFiles sources;
    sources.width = bin->width;
    sources.files = {bin->file};
    sources.totalBytes = bin->file.sizeBytes;
    sources.name = fmt::format("token file {}", path.string());
    return sources;
}

Result<SourceFiles> textFile(const fs::path &path)
{
    const auto kind = kindOf(path);
    if (!kind)
        return tl::unexpected(kind.error());
    if (*kind == FileKind::Empty)
        return fail("{} is empty. Put text into it, or name other data with --data.", path.string());
    if (*kind == FileKind::Binary)
        return fail("{} is not text: it holds NUL bytes. Give text in UTF-8, or tokens in a file that ends in .bin.",
                    path.string());
    const auto sizeBytes = sizeOf(path);
    if (!sizeBytes)
        return tl::unexpected(sizeBytes.error());
    SourceFiles sources;
    sources.files = {{path, *sizeBytes, 0}};
    sources.totalBytes = *sizeBytes;
    sources.name = fmt::format("text file {}", path.string());
    return sources;
}

bool isHidden(const fs::path &path)
{
    return path.filename().native().starts_with('.');
}

/// All regular files below a folder, sorted by their path's bytes. Hidden ones are left out; links to folders are not
/// followed, so there are no circles.
Result<std::vector<fs::path>> filesBelow(const fs::path &folder)
{
    std::vector<fs::path> files;
    std::error_code error;
    fs::recursive_directory_iterator entry(folder, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
        std::error_code ignored; // a link that leads nowhere is no regular file
        if (isHidden(entry->path()))
            entry.disable_recursion_pending();
        else if (entry->is_regular_file(ignored))
            files.push_back(entry->path());
    }
    if (error)
        return unreadable(folder, error);
    std::ranges::sort(files, {}, [](const fs::path &path) -> const std::string & { return path.native(); });
    return files;
}

std::string counted(int64_t count, std::string_view what)
{
    return fmt::format("{} {} file{}", count, what, count == 1 ? "" : "s");
}

Result<SourceFiles> textFolder(const fs::path &folder)
{
    const auto paths = filesBelow(folder);
    if (!paths)
        return tl::unexpected(paths.error());
    SourceFiles sources;
    std::array<int64_t, 3> counts{};
    bool hasBin = false;
    for (const fs::path &path : *paths) {
        const auto kind = kindOf(path);
        const auto sizeBytes = sizeOf(path);
        if (!kind || !sizeBytes)
            return tl::unexpected(kind ? sizeBytes.error() : kind.error());
        ++counts[static_cast<size_t>(*kind)];
        hasBin |= path.extension() == ".bin";
        if (*kind != FileKind::Text)
            continue;
        sources.files.push_back({path, *sizeBytes, 0});
        sources.totalBytes += *sizeBytes;
    }
    std::vector<std::string> leftOut;
    if (const int64_t binary = counts[static_cast<size_t>(FileKind::Binary)])
        leftOut.push_back(counted(binary, "binary"));
    if (const int64_t empty = counts[static_cast<size_t>(FileKind::Empty)])
        leftOut.push_back(counted(empty, "empty"));
    if (sources.files.empty())
        return fail("{} holds no text files{}.{}", folder.string(),
                    leftOut.empty() ? "" : fmt::format(", only {}", fmt::join(leftOut, " and ")),
                    hasBin ? " To train on tokens, name one .bin file with --data."
                           : " Put text into it, or name other data with --data.");
    if (!leftOut.empty())
        sources.remarks = fmt::format("; left out: {}", fmt::join(leftOut, ", "));
    sources.name =
        fmt::format("{} in folder {}", counted(static_cast<int64_t>(sources.files.size()), "text"), folder.string());
    return sources;
}

/// Folders below parent whose name begins so, sorted. Links (perl/5.36 → perl/5.36.0) would double what they lead to.
std::vector<fs::path> foldersNamed(const fs::path &parent, std::string_view beginning)
{
    std::vector<fs::path> folders;
    std::error_code error;
    for (const fs::path &path : entriesOf(parent)) {
        if (path.filename().native().starts_with(beginning) &&
            fs::symlink_status(path, error).type() == fs::file_type::directory)
            folders.push_back(path);
    }
    std::ranges::sort(folders);
    return folders;
}

/// Adds what can be read of a folder's files of these kinds, up to the limit. A system's folder may hold files that
/// only root reads; the corpus is what anyone can.
void addFiles(SourceFiles &sources, const fs::path &folder, std::span<const std::string_view> extensions,
              int64_t limitBytes)
{
    const auto paths = filesBelow(folder);
    if (!paths)
        return;
    for (const fs::path &path : *paths) {
        std::error_code error;
        const std::string extension = path.extension().string();
        const bool isWanted = extensions.empty() || std::ranges::find(extensions, extension) != extensions.end();
        if (!isWanted || fs::is_symlink(path, error))
            continue;
        const auto kind = kindOf(path);
        const auto sizeBytes = sizeOf(path);
        if (!kind || *kind != FileKind::Text || !sizeBytes || sources.totalBytes + *sizeBytes > limitBytes)
            continue;
        sources.files.push_back({path, *sizeBytes, 0});
        sources.totalBytes += *sizeBytes;
    }
}

} // namespace

Result<SourceFiles> sourcesOf(const fs::path &path, int64_t tokenBytes, int64_t vocabulary)
{
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found)
        return fail("There is no {}. Give a text file, a folder of text files or a .bin file of tokens.",
                    path.string());
    if (error)
        return unreadable(path, error);
    if (fs::is_directory(status))
        return textFolder(path);
    if (!fs::is_regular_file(status))
        return fail("{} is neither a file nor a folder. Name a text file, a folder of text files or a .bin file of "
                    "tokens with --data.",
                    path.string());
    return path.extension() == ".bin" ? tokenFile(path, tokenBytes, vocabulary) : textFile(path);
}

Result<SourceFiles> defaultCorpus(const fs::path &systemRoot, int64_t limitBytes)
{
    static constexpr std::array<std::string_view, 1> python = {".py"};
    static constexpr std::array<std::string_view, 3> perl = {".pm", ".pl", ".pod"};
    SourceFiles sources;
    std::vector<std::string> parts;
    const auto add = [&](std::string_view part, const std::vector<fs::path> &folders,
                         std::span<const std::string_view> extensions) {
        const size_t before = sources.files.size();
        for (const fs::path &folder : folders)
            addFiles(sources, folder, extensions, limitBytes);
        if (sources.files.size() > before)
            parts.push_back(fmt::format("{} {}", sources.files.size() - before, part));
    };
    add("licence texts", {systemRoot / "usr/share/common-licenses"}, {});
    add("Python sources", foldersNamed(systemRoot / "usr/lib", "python3"), python);
    std::vector<fs::path> perlFolders = foldersNamed(systemRoot / "usr/share/perl", "5.");
    for (const fs::path &architecture : foldersNamed(systemRoot / "usr/lib", "")) {
        for (fs::path &folder : foldersNamed(architecture, "perl-base"))
            perlFolders.push_back(std::move(folder));
    }
    add("Perl sources", perlFolders, perl);
    if (sources.files.empty())
        return fail("This machine has neither licence texts nor Python's or Perl's sources to train on. "
                    "Give a text file or folder with --data.");
    sources.name = fmt::format("this machine's own texts ({})", fmt::join(parts, ", "));
    return sources;
}

} // namespace shardscope::data
