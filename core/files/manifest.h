// SPDX-License-Identifier: Apache-2.0
// manifest.json of a checkpoint: names, shapes and dtypes of the parameters, how they lie in buckets, and which bytes
// of which rank's file hold which slice. With it a checkpoint can be read without the program that wrote it.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::files {

inline constexpr int64_t kManifestVersion = 1;

/// A parameter as its model's author names and shapes it, and where it begins in its bucket.
struct TensorEntry
{
    std::string name;
    std::vector<int64_t> sizes;
    int64_t offsetElements = 0;
    bool operator==(const TensorEntry &) const = default;
    int64_t elements() const;
};

/// Parameters in one flat buffer that is cut into world-size equal slices; rank r owns [r, r + 1) × sliceElements.
struct BucketEntry
{
    std::string name;
    std::string dtype; ///< of the masters and moments: "fp32"
    int64_t paddedElements = 0;
    int64_t sliceElements = 0;
    std::vector<std::string> states; ///< "master", "exp_avg", …
    std::vector<TensorEntry> tensors;
    bool operator==(const BucketEntry &) const = default;
};

/// One rank's slice of one state of a bucket, as a range of bytes of the rank's file.
struct SectionEntry
{
    std::string bucket;
    std::string state;
    int64_t offsetBytes = 0;
    int64_t sizeBytes = 0;
    uint64_t checksum = 0;
    bool operator==(const SectionEntry &) const = default;
};

struct FileEntry
{
    std::string name; ///< "rank-0.bin"
    int32_t rank = 0;
    int64_t sizeBytes = 0;
    std::vector<SectionEntry> sections;
    bool operator==(const FileEntry &) const = default;
};

/// Where the training stood in its data. The next step takes the samples from nextSample on.
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

struct Manifest
{
    int64_t step = 0; ///< steps that are done
    int32_t worldSize = 1;
    int64_t createdNs = 0; ///< CLOCK_REALTIME
    std::string model;
    std::string optimizer; ///< "adamw", "sgd"
    int64_t optimizerSteps = 0;
    DataPosition data;
    std::string configurationJson; ///< an object: the configuration in force
    std::vector<BucketEntry> buckets;
    std::vector<FileEntry> files;
    bool operator==(const Manifest &) const = default;
};

std::string manifestToJson(const Manifest &manifest);

/// A file's part of the manifest alone: what a rank tells rank 0 of the file that it wrote.
std::string fileEntryToJson(const FileEntry &file);
Result<FileEntry> parseFileEntry(std::string_view json);

/// Parses and checks: ranks complete, slices × world size = bucket, each state of each bucket once a file and in its
/// file's range. `where` names the file in messages.
Result<Manifest> parseManifest(std::string_view json, std::string_view where);

/// What a job that wants to go on expects to find.
struct Expectation
{
    int32_t worldSize = 1;
    std::string optimizer;
    DataPosition data; ///< nextSample is not compared
    std::vector<BucketEntry> buckets;
};

/// Compares everything before anything is touched; the message lists all differences at once.
Result<> checkFits(const Manifest &manifest, const Expectation &expected, std::string_view where);

} // namespace shardscope::files
