// SPDX-License-Identifier: Apache-2.0
// The safetensors format (github.com/huggingface/safetensors): 8 bytes little-endian length of the header, the header
// (JSON: name → dtype, shape, data_offsets from the header's end; __metadata__: texts), then the tensors' bytes without
// gaps. Everything in a header is checked before it is believed.
#pragma once

#include "core/files/file_handle.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::files {

/// The dtypes of the format; sub-byte ones are refused by name.
enum class TensorType { F32, Bf16, F16, F64, I64, I32, I16, I8, U64, U32, U16, U8, Bool, F8E4M3, F8E5M2 };
/// "F32", "BF16", as headers write them.
std::string_view toText(TensorType type);
std::optional<TensorType> tensorTypeFrom(std::string_view text);
int64_t elementBytes(TensorType type);

struct SafeTensor
{
    std::string name;
    TensorType type = TensorType::F32;
    std::vector<int64_t> sizes; ///< empty: one element
    int64_t offsetBytes = 0;    ///< from the file's start
    int64_t sizeBytes = 0;
    int64_t elements() const { return sizeBytes / elementBytes(type); }
    bool operator==(const SafeTensor &) const = default;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader
{
    std::vector<SafeTensor> tensors; ///< in the order of their bytes
    SafetensorsMetadata metadata;
    int64_t dataOffsetBytes = 0; ///< where the first tensor begins
    int64_t fileBytes = 0;       ///< what the file's length must be
};

/// Reads and checks the header of a file of that length: offsets without gap or overlap, sizes that fit shape and
/// dtype, no name twice, a header of at most 100 MB. Takes none of it on trust. `where` names the file in messages.
Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view json, int64_t fileBytes, std::string_view where);

/// Opened for reading: its header is checked, its tensors are read by ranges.
class SafetensorsReader
{
public:
    static Result<SafetensorsReader> open(const std::filesystem::path &path);

    const std::vector<SafeTensor> &tensors() const { return m_header.tensors; }
    const SafetensorsMetadata &metadata() const { return m_header.metadata; }
    const SafeTensor *find(std::string_view name) const;
    const std::filesystem::path &path() const { return m_path; }

    /// Bytes [offsetBytes, offsetBytes + bytes.size()) of the tensor. Thread-safe.
    Result<> read(const SafeTensor &tensor, int64_t offsetBytes, std::span<std::byte> bytes) const;

private:
    FileHandle m_file;
    std::filesystem::path m_path;
    SafetensorsHeader m_header;
    std::map<std::string, size_t, std::less<>> m_byName;
};

/// A tensor that is to be written.
struct SafeTensorSpec
{
    std::string name;
    TensorType type = TensorType::F32;
    std::vector<int64_t> sizes;
};

/// The header and the places of all tensors, in the given order, before a byte of them is there. The data begin at a
/// multiple of 4,096 bytes (padded with spaces, which the format allows).
struct SafetensorsPlan
{
    std::string head; ///< the length and the JSON: the file's first bytes
    SafetensorsHeader header;
};
SafetensorsPlan planSafetensors(const std::vector<SafeTensorSpec> &tensors, const SafetensorsMetadata &metadata);

/// Writes tensors piece by piece, in any order: never more than a piece is in memory. Several processes may write one
/// file, each its pieces: one creates it, the others join.
class SafetensorsWriter
{
public:
    /// Makes the file with its header, at its full length (an older one is replaced).
    static Result<SafetensorsWriter> create(const std::filesystem::path &path, SafetensorsPlan plan);
    /// Opens what another process created by the same plan.
    static Result<SafetensorsWriter> join(const std::filesystem::path &path, SafetensorsPlan plan);

    const SafetensorsHeader &header() const { return m_plan.header; }
    /// Bytes [offsetBytes, offsetBytes + bytes.size()) of the tensor with that index in the plan.
    Result<> write(size_t tensor, int64_t offsetBytes, std::span<const std::byte> bytes);
    /// Syncs the file to the disk. Where one writer writes all: fails if a byte of a tensor was never written.
    Result<> finish();
    Result<> finishOwnPart(); ///< syncs only

private:
    FileHandle m_file;
    std::filesystem::path m_path;
    SafetensorsPlan m_plan;
    std::vector<int64_t> m_writtenBytes; ///< of each tensor
};

} // namespace shardscope::files
