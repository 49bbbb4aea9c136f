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

Manifest whole(CheckpointFormat format = CheckpointFormat::Sharded)
{
    const shardscope::testing::TemporaryFolder folder;
    return shardscope::testing::writeExampleFiles(folder.path(), shardscope::testing::exampleManifest(3, format));
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
    Expectation expected{manifest.optimizer, manifest.data, manifest.shape, {}};
    for (const BucketEntry &bucket : manifest.buckets) {
        for (const TensorEntry &tensor : bucket.tensors)
            expected.tensors.push_back({tensor.name, tensor.sizes, {"master", "momentum"}});
    }
    return expected;
}

TEST(Checksum, IsXxh3AndReadsBack)
{
    // XXH3_64bits of nothing, from the reference implementation.
    EXPECT_EQ(checksumText(checksumOf({})), "xxh3:2d06800538d394c2");
    EXPECT_EQ(parseChecksum("xxh3:2d06800538d394c2"), checksumOf({}));
    EXPECT_EQ(parseChecksum("xxh3:2d06800538d394c"), std::nullopt);
    EXPECT_EQ(parseChecksum("xxh3:2d06800538d394cg"), std::nullopt);
    EXPECT_EQ(parseChecksum("md5:2d06800538d394c2"), std::nullopt);
    const std::vector<uint64_t> several = {1, 0xabc, ~uint64_t{0}};
    EXPECT_EQ(checksumsText(several), "xxh3:0000000000000001,0000000000000abc,ffffffffffffffff");
    EXPECT_EQ(parseChecksums(checksumsText(several)), several);
    EXPECT_EQ(parseChecksums("xxh3:")->size(), 0U);
    EXPECT_EQ(parseChecksums("xxh3:0000000000000001,"), std::nullopt);
    EXPECT_EQ(parseChecksums("xxh3:00000000000000010000000000000abc"), std::nullopt);
}

TEST(ManifestTest, ReadsBackWhatWasWritten)
{
    for (const CheckpointFormat format : {CheckpointFormat::Sharded, CheckpointFormat::Full}) {
        const Manifest manifest = whole(format);
        const auto read = parseManifest(manifestToJson(manifest), "m.json");
        ASSERT_TRUE(read) << read.error().text;
        EXPECT_EQ(*read, manifest);
    }
}

TEST(ManifestTest, AFullOneListsEachTensorAlone)
{
    const Manifest manifest = whole(CheckpointFormat::Full);
    ASSERT_EQ(manifest.buckets.size(), 3U);
    EXPECT_EQ(manifest.buckets[2].name, "block.0.b");
    ASSERT_EQ(manifest.files.size(), 4U); // two ranks', model, optimizer
    EXPECT_EQ(manifest.files[1].name, "model.safetensors");
    EXPECT_FALSE(manifest.files[1].rank);
}

/// As version 0.3 wrote it: sections are slices, a bucket has one dtype, nothing is known of the shape.
TEST(ManifestTest, TheFirstVersionIsRead)
{
    const std::string text = R"({"format":"shardscope-checkpoint","schema_version":1,"step":3,"world_size":2,
        "created_ns":5,"model":"tiny","optimizer":{"kind":"sgd","steps":3},"configuration":{},
        "data":{"next_sample":12,"global_batch":4,"seed":7,"fingerprint":"f","sequence_length":8,"validation":0.1},
        "buckets":[{"name":"b","dtype":"fp32","padded_elements":4,"slice_elements":2,"states":["master"],
                    "tensors":[{"name":"w","shape":[3],"offset_elements":0}]}],
        "files":[{"name":"rank-0.bin","rank":0,"size_bytes":8,"sections":[{"bucket":"b","state":"master",
                  "offset_bytes":0,"size_bytes":8,"checksum":"xxh3:0000000000000001"}]},
                 {"name":"rank-1.bin","rank":1,"size_bytes":8,"sections":[{"bucket":"b","state":"master",
                  "offset_bytes":0,"size_bytes":8,"checksum":"xxh3:0000000000000002"}]}]})";
    const auto manifest = parseManifest(text, "m.json");
    ASSERT_TRUE(manifest) << manifest.error().text;
    EXPECT_EQ(manifest->files[1].sections[0].elements, (ElementSpan{2, 4}));
    EXPECT_EQ(manifest->files[1].sections[0].checksums, std::vector<uint64_t>{2});
    EXPECT_EQ(manifest->buckets[0].states[0], (StateEntry{"master", "fp32"}));
    EXPECT_TRUE(manifest->id.empty());
    const auto again = parseManifest(manifestToJson(*manifest), "m.json");
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(*again, *manifest);
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
    EXPECT_THAT(errorAfter([](json &m) { m["files"][1]["name"] = "rank-0.bin"; }), HasSubstr("lists rank-0.bin twice"));
    EXPECT_THAT(errorAfter([](json &m) { m["files"][0]["name"] = "../../etc/passwd"; }), HasSubstr("is no name"));
    EXPECT_THAT(errorAfter([](json &m) { m["files"][0].erase("size_bytes"); }), HasSubstr("size_bytes"));
    EXPECT_THAT(errorAfter([](json &m) { m["files"][0]["blobs"][0]["size_bytes"] = 1 << 20; }),
                HasSubstr("random.cpu reaches out of rank-0.bin"));
    EXPECT_THAT(errorAfter([](json &m) { m["layout"] = "striped"; }), HasSubstr("its layout is 'striped'"));
}

TEST(ManifestTest, ContradictionsOfBucketsAreFound)
{
    const auto error = [](const char *pointer, const json &value) {
        return errorAfter([&](json &m) { m["buckets"][1][json::json_pointer(pointer)] = value; });
    };
    EXPECT_THAT(error("/tensors/1/offset_elements", 4), HasSubstr("block.0.b reaches out of its bucket"));
    EXPECT_THAT(error("/tensors/1/offset_elements", 1), HasSubstr("block.0.b overlaps block.0.a"));
    EXPECT_THAT(error("/tensors/1/name", "block.0.a"), HasSubstr("has block.0.a twice"));
    EXPECT_THAT(error("/tensors/1/shape", json::array({int64_t{1} << 40, int64_t{1} << 40})), HasSubstr("reaches out"));
    EXPECT_THAT(error("/states/1/dtype", "fp8"), HasSubstr("unknown dtype fp8"));
    EXPECT_THAT(error("/states/1/name", "master"), HasSubstr("has master twice"));
    EXPECT_THAT(error("/name", "embedding"), HasSubstr("has the bucket embedding twice"));
    EXPECT_THAT(error("/padded_elements", -1), HasSubstr("has -1 elements"));
}

TEST(ManifestTest, ContradictionsOfSectionsAreFound)
{
    const auto error = [](const char *pointer, const json &value) {
        return errorAfter([&](json &m) { m["files"][0]["sections"][3][json::json_pointer(pointer)] = value; });
    };
    EXPECT_THAT(errorAfter([](json &m) { m["files"][0]["sections"].erase(3); }),
                HasSubstr("lack momentum of block.0.a in bucket block.0"));
    EXPECT_THAT(error("/offset_bytes", 1 << 20), HasSubstr("momentum of bucket block.0 reaches out of rank-0.bin"));
    EXPECT_THAT(error("/elements", json::array({0, 9})), HasSubstr("has elements 0 to 9"));
    EXPECT_THAT(error("/elements", json::array({0, 1})), HasSubstr("4 bytes for 1 elements bf16"));
    EXPECT_THAT(error("/elements", json::array({1, 3})), HasSubstr("twice from element 2 on"));
    EXPECT_THAT(error("/checksums", "xxh3:"), HasSubstr("has 0 checksums"));
    EXPECT_THAT(error("/checksums", "md5:1"), HasSubstr("a checksum is not of the form"));
    EXPECT_THAT(error("/chunk_bytes", 0), HasSubstr("checksums"));
    EXPECT_THAT(error("/bucket", "block.9"), HasSubstr("which there is none of"));
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
    expected.data.seed = 8;
    expected.data.fingerprint = "9:other";
    expected.data.sequenceLength = 128;
    expected.data.validation = 0.1;
    expected.shape["heads"] = 8;
    expected.shape["sliding_window"] = 64;
    expected.tensors[0].sizes = {3, 2};
    expected.tensors[1].name = "block.0.c";
    expected.tensors[2].states.emplace_back("second");
    const auto fits = checkFits(manifest, expected, "step-000003");
    ASSERT_FALSE(fits);
    for (const char *part :
         {"its seed is 7, this job's 8", "its model has heads = 4, this one 8",
          "its model has sliding_window = 0, this one 64",
          "its sequences have 256 tokens, this job's 128 (give --set train.sequence_length=256)",
          "0.01 of its data is held out, 0.1 of this job's (give --set data.validation=0.01)", "the data have changed",
          "embedding.weight has shape [2, 3] in it, [3, 2] in this model", "block.0.c is missing in it",
          "block.0.a is not in this model", "it has no second of block.0.b"})
        EXPECT_THAT(fits.error().text, HasSubstr(part));
}

TEST(ManifestCheck, AJobIsComparedBeforeItHasTensors)
{
    const Manifest manifest = whole();
    Expectation expected = expectationOf(manifest);
    expected.tensors.clear();
    expected.data.fingerprint.clear();
    EXPECT_TRUE(checkJobFits(manifest, expected, "step-000003"));
    EXPECT_FALSE(checkFits(manifest, expected, "step-000003"));
    expected.data.seed = 8;
    expected.shape["heads"] = 8;
    const auto fits = checkJobFits(manifest, expected, "step-000003");
    ASSERT_FALSE(fits);
    EXPECT_THAT(fits.error().text, AllOf(HasSubstr("its seed is 7, this job's 8"), HasSubstr("heads = 4, this one 8"),
                                         Not(HasSubstr("embedding.weight"))));
}

TEST(ManifestCheck, RanksBucketsAndBatchesMayDiffer)
{
    Manifest manifest = whole();
    Expectation expected = expectationOf(manifest);
    manifest.worldSize = 7;
    expected.data.globalBatch = 9;
    expected.data.nextSample = 0;
    manifest.buckets[1].name = "block.0/norm";
    EXPECT_TRUE(checkFits(manifest, expected, "step-000003"));
}

TEST(ManifestCheck, AnotherOptimizerIsNamedOnce)
{
    const Manifest manifest = whole();
    Expectation expected = expectationOf(manifest);
    expected.optimizer = "adamw";
    for (Expectation::Tensor &tensor : expected.tensors)
        tensor.states = {"master", "exp_avg", "exp_avg_sq"};
    const auto fits = checkFits(manifest, expected, "step-000003");
    ASSERT_FALSE(fits);
    EXPECT_EQ(fits.error().text, "Can't go on from step-000003: its optimizer is sgd, this job's adamw (give --set "
                                 "optimizer.kind=sgd).");
}

} // namespace
