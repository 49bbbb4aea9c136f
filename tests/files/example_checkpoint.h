// SPDX-License-Identifier: Apache-2.0
// A small checkpoint of two ranks: two buckets of 8 and 4 elements, with masters and one moment.
#pragma once

#include "core/files/checkpoint_folder.h"
#include "core/files/rank_file.h"

#include <gtest/gtest.h>
#include <vector>

namespace shardscope::testing {

inline files::Manifest exampleManifest(int64_t step)
{
    files::Manifest manifest;
    manifest.step = step;
    manifest.worldSize = 2;
    manifest.createdNs = 1000 + step;
    manifest.model = "tiny";
    manifest.optimizer = "sgd";
    manifest.optimizerSteps = step;
    manifest.data = {step * 4, 4, 7, "123:abc", 256, 0.01};
    manifest.configurationJson = R"({"train":{"steps":20}})";
    manifest.buckets = {
        {"embedding", "fp32", 8, 4, {"master", "momentum"}, {{"embedding.weight", {2, 3}, 0}}},
        {"block.0", "fp32", 4, 2, {"master", "momentum"}, {{"block.0.a", {2}, 0}, {"block.0.b", {1}, 2}}},
    };
    return manifest;
}

/// What rank `rank` writes for a state of a bucket: values that differ everywhere.
inline std::vector<float> exampleSlice(const files::BucketEntry &bucket, const std::string &state, int32_t rank)
{
    std::vector<float> values(static_cast<size_t>(bucket.sliceElements));
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i) + 10.0F * static_cast<float>(rank) + (state == "master" ? 0.5F : 0.25F) +
                    static_cast<float>(bucket.name.size());
    return values;
}

inline files::FileEntry writeExampleRank(const std::filesystem::path &folder, const files::Manifest &manifest,
                                         int32_t rank)
{
    auto writer = files::RankFileWriter::create(folder, rank).value();
    for (const files::BucketEntry &bucket : manifest.buckets) {
        for (const std::string &state : bucket.states) {
            const auto values = exampleSlice(bucket, state, rank);
            EXPECT_TRUE(writer.append(bucket.name, state, std::as_bytes(std::span(values))));
        }
    }
    return writer.finish().value();
}

/// Writes a whole checkpoint and returns its folder.
inline std::filesystem::path writeExample(const files::CheckpointFolder &folder, int64_t step)
{
    files::Manifest manifest = exampleManifest(step);
    EXPECT_TRUE(folder.begin(step));
    for (int32_t rank = 0; rank < manifest.worldSize; ++rank)
        manifest.files.push_back(writeExampleRank(folder.partialPathOf(step), manifest, rank));
    EXPECT_TRUE(folder.commit(manifest));
    return folder.pathOf(step);
}

} // namespace shardscope::testing
