// SPDX-License-Identifier: Apache-2.0
#include "core/files/checksum.h"
#include "tests/files/example_checkpoint.h"
#include "tests/files/temporary_folder.h"

#include <functional>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using namespace shardscope::files;
using nlohmann::json;
using ::testing::HasSubstr;

namespace {

Manifest whole()
{
    const shardscope::testing::TemporaryFolder folder;
    Manifest manifest = shardscope::testing::exampleManifest(3);
    for (int32_t rank = 0; rank < 2; ++rank)
        manifest.files.push_back(shardscope::testing::writeExampleRank(folder.path(), manifest, rank));
    return manifest;
}

std::string errorAfter(const std::function<void(json &)> &change)
{
    json object = json::parse(manifestToJson(whole()));
    change(object);
    const auto manifest = parseManifest(object.dump(), "m.json");
    return manifest ? "" : manifest.error().text;
}

Expectation expectationOf(const Manifest &manifest)
{
    return {manifest.worldSize, manifest.optimizer, manifest.data, manifest.buckets};
}

TEST(Checksum, IsXxh3AndReadsBack)
{
    // XXH3_64bits of nothing, from the reference implementation.
    EXPECT_EQ(checksumText(checksumOf({})), "xxh3:2d06800538d394c2");
    EXPECT_EQ(parseChecksum("xxh3:2d06800538d394c2"), checksumOf({}));
    EXPECT_EQ(parseChecksum("xxh3:2d06800538d394c"), std::nullopt);
    EXPECT_EQ(parseChecksum("xxh3:2d06800538d394cg"), std::nullopt);
    EXPECT_EQ(parseChecksum("md5:2d06800538d394c2"), std::nullopt);
}

TEST(ManifestTest, ReadsBackWhatWasWritten)
{
    const Manifest manifest = whole();
    const auto read = parseManifest(manifestToJson(manifest), "m.json");
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(*read, manifest);
}

TEST(ManifestTest, NewerVersionsAndForeignFilesAreRefused)
{
    EXPECT_THAT(errorAfter([](json &m) { m["schema_version"] = 99; }), HasSubstr("m.json has version 99"));
    EXPECT_THAT(errorAfter([](json &m) { m["format"] = "other"; }), HasSubstr("no manifest of a Shardscope"));
    const auto noJson = parseManifest("{\"format\": ", "m.json");
    ASSERT_FALSE(noJson);
    EXPECT_THAT(noJson.error().text, HasSubstr("m.json is damaged"));
}

TEST(ManifestTest, ContradictionsAreFound)
{
    EXPECT_THAT(errorAfter([](json &m) { m["files"].erase(1); }), HasSubstr("1 rank files for a world size of 2"));
    EXPECT_THAT(errorAfter([](json &m) { m["world_size"] = 0; }), HasSubstr("world size of 0"));
    EXPECT_THAT(errorAfter([](json &m) { std::swap(m["files"][0], m["files"][1]); }),
                HasSubstr("its file 0 is rank 1's"));
    EXPECT_THAT(errorAfter([](json &m) { m["buckets"][0]["slice_elements"] = 3; }), HasSubstr("is not 2 slices of 3"));
    EXPECT_THAT(errorAfter([](json &m) { m["buckets"][1]["tensors"][1]["offset_elements"] = 4; }),
                HasSubstr("block.0.b reaches out of its bucket"));
    EXPECT_THAT(errorAfter([](json &m) { m["files"][0]["sections"].erase(3); }),
                HasSubstr("rank-0.bin lacks momentum of bucket block.0"));
    EXPECT_THAT(errorAfter([](json &m) { m["files"][0]["sections"][3]["offset_bytes"] = 1 << 20; }),
                HasSubstr("momentum of bucket block.0 reaches out of rank-0.bin"));
    EXPECT_THAT(errorAfter([](json &m) { m["files"][0]["name"] = "../../etc/passwd"; }), HasSubstr("is no name"));
    EXPECT_THAT(errorAfter([](json &m) { m["files"][0].erase("size_bytes"); }), HasSubstr("size_bytes"));
}

TEST(ManifestCheck, AFittingJobFits)
{
    const Manifest manifest = whole();
    const auto fits = checkFits(manifest, expectationOf(manifest), "step-000003");
    EXPECT_TRUE(fits) << fits.error().text;
}

TEST(ManifestCheck, AllDifferencesAreListedAtOnce)
{
    const Manifest manifest = whole();
    Expectation expected = expectationOf(manifest);
    expected.worldSize = 4;
    expected.data.seed = 8;
    expected.data.fingerprint = "9:other";
    expected.data.sequenceLength = 128;
    expected.data.validation = 0.1;
    expected.buckets[0].tensors[0].sizes = {3, 2};
    expected.buckets[1].tensors.push_back({"block.0.c", {1}, 3});
    const auto fits = checkFits(manifest, expected, "step-000003");
    ASSERT_FALSE(fits);
    for (const char *part :
         {"it was written by 2 ranks, this job has 4 (give --ranks 2)", "its seed is 7, this job's 8",
          "its sequences have 256 tokens, this job's 128 (give --set train.sequence_length=256)",
          "0.01 of its data is held out, 0.1 of this job's (give --set data.validation=0.01)", "the data have changed",
          "embedding.weight has shape [2, 3] in it, [3, 2] in this model", "block.0.c is missing in it"})
        EXPECT_THAT(fits.error().text, HasSubstr(part));
}

TEST(ManifestCheck, AnotherOptimizerAndMissingUnitsAreNamed)
{
    const Manifest manifest = whole();
    Expectation expected = expectationOf(manifest);
    expected.optimizer = "adamw";
    expected.buckets.pop_back();
    const auto fits = checkFits(manifest, expected, "step-000003");
    ASSERT_FALSE(fits);
    EXPECT_THAT(fits.error().text, HasSubstr("its optimizer is sgd, this job's adamw"));
    EXPECT_THAT(fits.error().text, HasSubstr("unit block.0 is not in this model"));
}

} // namespace
