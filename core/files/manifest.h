// SPDX-License-Identifier: Apache-2.0
// manifest.json of a checkpoint: names, shapes and dtypes of the parameters, how they lie in buckets, and which bytes
// of which file hold which elements of a bucket. With it a checkpoint can be read without the program that wrote it, at
// any other world size, strategy and grouping: parameters are found by name, never by the place that they had.
#pragma once

#include "core/base/names.h"
#include "core/base/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::files {

inline constexpr int64_t kManifestVersion = 2;

/// Bytes of "fp32", "bf16", "fp16"; 0 for what is none.
int64_t dtypeBytes(std::string_view dtype);

/// A half-open range of elements of a bucket or of a tensor.
struct ElementSpan
{
    int64_t begin = 0;
    int64_t end = 0;
    int64_t size() const { return end - begin; }
    bool operator==(const ElementSpan &) const = default;
};

/// A parameter as its model's author names and shapes it, and where it begins in its bucket.
struct TensorEntry
{
    std::string name;
    std::vector<int64_t> sizes;
    int64_t offsetElements = 0;
    bool operator==(const TensorEntry &) const = default;
    int64_t elements() const;
    ElementSpan inBucket() const { return {offsetElements, offsetElements + elements()}; }
};

/// "master", "exp_avg", … and the dtype that its elements are stored in.
struct StateEntry
{
    std::string name;
    std::string dtype = "fp32";
    bool operator==(const StateEntry &) const = default;
};

/// Parameters that lie one after the other. The first state is their weights. Each rank wrote ranges of it: which ones
/// its file's sections say.
struct BucketEntry
{
    std::string name;
    int64_t paddedElements = 0;
    std::vector<StateEntry> states;
    std::vector<TensorEntry> tensors;
    bool operator==(const BucketEntry &) const = default;
    const StateEntry *find(std::string_view state) const;
};

/// A range of one state of a bucket, as a range of bytes of a file. A checksum covers each chunkBytes of it (the last
/// may be shorter), so that a part can be read and checked without the rest.
struct SectionEntry
{
    std::string bucket;
    std::string state;
    ElementSpan elements;
    int64_t offsetBytes = 0;
    int64_t sizeBytes = 0;
    int64_t chunkBytes = 1;
    std::vector<uint64_t> checksums;
    bool operator==(const SectionEntry &) const = default;
};

/// What a rank keeps beside its tensors: the state of its random numbers.
struct BlobEntry
{
    std::string name; ///< "random.cpu"
    int64_t offsetBytes = 0;
    int64_t sizeBytes = 0;
    uint64_t checksum = 0;
    bool operator==(const BlobEntry &) const = default;
};

struct FileEntry
{
    std::string name;            ///< "rank-0.bin", "model.safetensors"
    std::optional<int32_t> rank; ///< nothing: all ranks wrote it together
    int64_t sizeBytes = 0;
    std::vector<SectionEntry> sections;
    std::vector<BlobEntry> blobs;
    bool operator==(const FileEntry &) const = default;
};

/// Where the training stood in its data. The next step takes the samples from nextSample on: each is read once whatever
/// the ranks, the micro-batches and the accumulation that go on.
struct DataPosition
{
    int64_t nextSample = 0; ///< global sample index
    int64_t globalBatch = 0;
    int64_t seed = 0;
    std::string fingerprint; ///< of the tokens; a changed file has another
    int64_t sequenceLength = 0;
    double validation = 0; ///< held-out share: it says where the training's tokens end
    bool operator==(const DataPosition &) const = default;
};

/// The loss scale of fp16 training.
struct ScalerState
{
    double scale = 1;
    int64_t growthTracker = 0; ///< steps without overflow since the scale last changed
    int64_t skippedSteps = 0;  ///< all in all
    bool operator==(const ScalerState &) const = default;
};

/// The numbers of a model's shape by name ("heads": 12): equal tensors may still be another model's.
using ShapeNumbers = std::map<std::string, double>;

struct Manifest
{
    std::string id; ///< made for this checkpoint; each of its files carries it. Empty before version 2
    CheckpointFormat format = CheckpointFormat::Sharded;
    int64_t step = 0; ///< steps that are done
    int32_t worldSize = 1;
    int64_t createdNs = 0; ///< CLOCK_REALTIME
    std::string model;
    ShapeNumbers shape;    ///< empty before version 2
    std::string optimizer; ///< "adamw", "sgd"
    int64_t optimizerSteps = 0;
    std::optional<ScalerState> scaler;
    DataPosition data;
    std::string configurationJson; ///< an object: the configuration in force
    std::vector<BucketEntry> buckets;
    std::vector<FileEntry> files;
    bool operator==(const Manifest &) const = default;
};

std::string manifestToJson(const Manifest &manifest);

/// What one rank wrote: what it tells rank 0.
std::string filesToJson(const std::vector<FileEntry> &files);
Result<std::vector<FileEntry>> parseFiles(std::string_view json);
/// Adds what another rank wrote; sections of a file that all write together are joined.
void addFiles(std::vector<FileEntry> &all, std::vector<FileEntry> more);

/// Parses and checks: all ranks' files, no section outside of its file or bucket, every element of every tensor and
/// state exactly once. `where` names the file in messages.
Result<Manifest> parseManifest(std::string_view json, std::string_view where);

/// Empty, or what contradicts what in it.
std::string contradictionIn(const Manifest &manifest);

/// What a job that wants to go on expects to find. Its dtypes may differ: values are converted.
struct Expectation
{
    struct Tensor
    {
        std::string name;
        std::vector<int64_t> sizes;
        std::vector<std::string> states;
    };
    std::string optimizer;
    /// nextSample and globalBatch are not compared: the position is by samples. Nor is a fingerprint that is empty: not
    /// known yet.
    DataPosition data;
    ShapeNumbers shape;
    std::vector<Tensor> tensors;
};

/// "its model has heads = 4, this one 8": what tells a stored model from another one. Nothing where none was stored.
std::vector<std::string> modelDifferences(const ShapeNumbers &stored, const ShapeNumbers &expected);

/// Compares all but the tensors: what is known before a job has any.
Result<> checkJobFits(const Manifest &manifest, const Expectation &expected, std::string_view where);

/// Compares everything before anything is touched; the message lists all differences at once.
Result<> checkFits(const Manifest &manifest, const Expectation &expected, std::string_view where);

} // namespace shardscope::files
