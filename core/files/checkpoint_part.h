// SPDX-License-Identifier: Apache-2.0
// What one rank writes of a checkpoint, in either format. Sharded: its ranges of all buckets in a file of its own.
// Full: its ranges of each tensor, in safetensors files that all ranks write together; only its blobs in a file of its
// own. In neither format is more than a chunk of what is written in memory, on any rank.
#pragma once

#include "core/files/rank_file.h"
#include "core/files/safetensors.h"

namespace shardscope::files {

inline constexpr std::string_view kModelFile = "model.safetensors";         ///< the first state of each bucket
inline constexpr std::string_view kOptimizerFile = "optimizer.safetensors"; ///< the others: "<tensor>.exp_avg"
inline constexpr std::string_view kCheckpointKey = "shardscope_checkpoint"; ///< in their metadata: the manifest's id

struct PartPlan
{
    FileStamp stamp;
    CheckpointFormat format = CheckpointFormat::Sharded;
    std::vector<BucketEntry> buckets; ///< as the job has them; the same on all ranks
};

/// The buckets as the manifest lists them: as they are, or (full) each tensor as a bucket of its own.
std::vector<BucketEntry> storedBuckets(const PartPlan &plan);

/// Rank 0 calls it before any rank writes: makes the files that all write together.
Result<> createSharedFiles(const std::filesystem::path &folder, const PartPlan &plan);

class PartWriter
{
public:
    static Result<PartWriter> create(const std::filesystem::path &folder, PartPlan plan);

    /// A range of a state of a bucket; `read` counts from the range's begin.
    Result<> write(std::string_view bucket, std::string_view state, ElementSpan elements, const PieceReader &read);
    Result<> writeBlob(std::string name, std::span<const std::byte> bytes)
    {
        return m_own.appendBlob(std::move(name), bytes);
    }
    /// Syncs and says what this rank wrote.
    Result<std::vector<FileEntry>> finish();

private:
    struct SharedFile
    {
        SafetensorsWriter writer;
        FileEntry entry;
        std::map<std::string, size_t, std::less<>> tensors; ///< name in the file → index
    };
    PartWriter(PartPlan plan, RankFileWriter own)
        : m_plan(std::move(plan))
        , m_own(std::move(own))
    {
    }
    Result<> joinSharedFiles(const std::filesystem::path &folder);
    Result<> writeTensor(const TensorEntry &tensor, bool isWeights, const StateEntry &state, ElementSpan inBucket,
                         int64_t readOffsetBytes, const PieceReader &read);

    PartPlan m_plan;
    RankFileWriter m_own;
    std::map<std::string_view, SharedFile> m_shared; ///< by kModelFile, kOptimizerFile
};

} // namespace shardscope::files
