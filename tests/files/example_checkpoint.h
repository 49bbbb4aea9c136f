// SPDX-License-Identifier: Apache-2.0
// A small checkpoint of two ranks: two buckets of 8 and 4 elements, with masters in fp32 and one moment in bf16.
#pragma once

#include "core/files/checkpoint_part.h"
#include "core/files/checkpoint_reader.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace shardscope::testing {

inline files::Manifest exampleManifest(int64_t step, CheckpointFormat format = CheckpointFormat::Sharded)
{
    files::Manifest manifest;
    manifest.id = fmt::format("id-of-{}", step);
    manifest.format = format;
    manifest.step = step;
    manifest.worldSize = 2;
    manifest.createdNs = 1000 + step;
    manifest.model = "tiny";
    manifest.shape = {{"heads", 4}, {"norm_eps", 1e-5}};
    manifest.optimizer = "sgd";
    manifest.optimizerSteps = step;
    manifest.scaler = {1024, 5, 2};
    manifest.data = {step * 4, 4, 7, "123:abc", 256, 0.01};
    manifest.configurationJson = R"({"train":{"steps":20}})";
    const std::vector<files::StateEntry> states = {{"master", "fp32"}, {"momentum", "bf16"}};
    manifest.buckets = {
        {"embedding", 8, states, {{"embedding.weight", {2, 3}, 0}}},
        {"block.0", 4, states, {{"block.0.a", {2}, 0}, {"block.0.b", {1}, 2}}},
    };
    return manifest;
}

inline files::PartPlan examplePlan(const files::Manifest &manifest, int32_t rank)
{
    return {{manifest.id, manifest.step, rank}, manifest.format, manifest.buckets};
}

/// The bytes of an element of a bucket's state: values that differ everywhere.
inline std::vector<std::byte> exampleBytes(const files::BucketEntry &bucket, const files::StateEntry &state,
                                           files::ElementSpan elements)
{
    std::vector<std::byte> bytes;
    const auto size = static_cast<size_t>(files::dtypeBytes(state.dtype));
    for (int64_t i = elements.begin; i < elements.end; ++i) {
        const auto value = static_cast<uint32_t>(i + 1) * 0x01010101U ^ static_cast<uint32_t>(bucket.name.size() << 9) ^
                           static_cast<uint32_t>(size << 4);
        const auto *first = reinterpret_cast<const std::byte *>(&value);
        bytes.insert(bytes.end(), first, first + size);
    }
    return bytes;
}

/// What a rank owns.
inline files::ElementSpan exampleOwned(const files::BucketEntry &bucket, int32_t rank)
{
    const int64_t cut = bucket.paddedElements / 2;
    return rank == 0 ? files::ElementSpan{0, cut} : files::ElementSpan{cut, bucket.paddedElements};
}

inline std::vector<files::FileEntry> writeExampleRank(const std::filesystem::path &folder,
                                                      const files::Manifest &manifest, int32_t rank)
{
    const files::PartPlan plan = examplePlan(manifest, rank);
    if (rank == 0) {
        EXPECT_TRUE(files::createSharedFiles(folder, plan));
    }
    auto writer = files::PartWriter::create(folder, plan).value();
    for (const files::BucketEntry &bucket : manifest.buckets) {
        for (const files::StateEntry &state : bucket.states) {
            const auto owned = exampleOwned(bucket, rank);
            const auto bytes = exampleBytes(bucket, state, owned);
            EXPECT_TRUE(writer.write(bucket.name, state.name, owned, [&](int64_t offset, int64_t size) {
                return std::span(bytes).subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
            }));
        }
    }
    const std::string random = fmt::format("random state of rank {}", rank);
    EXPECT_TRUE(writer.writeBlob("random.cpu", std::as_bytes(std::span(random))));
    return writer.finish().value();
}

/// All ranks' files in `folder`, and the manifest that lists them.
inline files::Manifest writeExampleFiles(const std::filesystem::path &folder, files::Manifest manifest)
{
    for (int32_t rank = 0; rank < manifest.worldSize; ++rank)
        files::addFiles(manifest.files, writeExampleRank(folder, manifest, rank));
    manifest.buckets = files::storedBuckets(examplePlan(manifest, 0));
    return manifest;
}

/// Writes a whole checkpoint and returns its folder.
inline std::filesystem::path writeExample(const files::CheckpointFolder &folder, int64_t step,
                                          CheckpointFormat format = CheckpointFormat::Sharded)
{
    EXPECT_TRUE(folder.begin(step));
    EXPECT_TRUE(folder.commit(writeExampleFiles(folder.partialPathOf(step), exampleManifest(step, format))));
    return folder.pathOf(step);
}

/// All elements of all states of all tensors.
inline std::vector<files::CheckpointReader::Part> exampleParts()
{
    std::vector<files::CheckpointReader::Part> parts;
    for (const files::BucketEntry &bucket : exampleManifest(0).buckets) {
        for (const files::StateEntry &state : bucket.states) {
            for (const files::TensorEntry &tensor : bucket.tensors)
                parts.push_back({tensor.name, state.name, {0, tensor.elements()}});
        }
    }
    return parts;
}

} // namespace shardscope::testing
