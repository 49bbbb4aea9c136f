// SPDX-License-Identifier: Apache-2.0
// A checkpoint of two ranks becomes a folder that reads as what the ranks held.
#include "core/pretrained/export_checkpoint.h"

#include "core/base/file.h"
#include "core/files/checkpoint_folder.h"
#include "core/files/checkpoint_part.h"
#include "core/pretrained/checkpoint_model.h"
#include "core/pretrained/weight_folder.h"
#include "tests/pretrained/example_folder.h"

#include <bit>
#include <csignal>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

using namespace shardscope;
using namespace shardscope::pretrained;
using shardscope::testing::ExampleFolder;
using ::testing::HasSubstr;

namespace {

/// One bucket a unit; the element i of a bucket is i + 0.1 in its master.
class ExportCheckpoint : public ::testing::Test
{
protected:
    void SetUp() override
    {
        m_example.text("config.json", m_example.config);
        m_example.text("tokenizer.json", "{}");
        m_shape = shapes::readHfConfig(m_example.folder.path())->shape;
    }
    std::filesystem::path write(const char *precision = "fp32", CheckpointFormat format = CheckpointFormat::Sharded);

    ExampleFolder m_example;
    shapes::ModelShape m_shape;
    test::TemporaryFolder m_run;
};

/// While it lives, no file grows beyond it: writes fail as on a full disk.
class FileSizeLimit
{
public:
    explicit FileSizeLimit(rlim_t bytes)
        : m_handler(std::signal(SIGXFSZ, SIG_IGN))
    {
        ::getrlimit(RLIMIT_FSIZE, &m_before);
        const rlimit limit = {bytes, m_before.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FileSizeLimit()
    {
        ::setrlimit(RLIMIT_FSIZE, &m_before);
        std::signal(SIGXFSZ, m_handler);
    }
    FileSizeLimit(const FileSizeLimit &) = delete;

private:
    void (*m_handler)(int);
    rlimit m_before = {};
};

std::vector<files::BucketEntry> bucketsOf(const shapes::ModelShape &shape)
{
    std::vector<files::BucketEntry> buckets;
    for (const shapes::UnitShape &unit : shapes::unitsOf(shape)) {
        files::BucketEntry bucket{unit.name, 0, {{"master", "fp32"}}, {}};
        for (const shapes::ParameterShape &parameter : unit.parameters) {
            bucket.tensors.push_back({parameter.name, parameter.sizes, bucket.paddedElements});
            bucket.paddedElements += (parameter.elements() + 127) / 128 * 128;
        }
        buckets.push_back(std::move(bucket));
    }
    return buckets;
}

std::filesystem::path ExportCheckpoint::write(const char *precision, CheckpointFormat format)
{
    files::Manifest manifest;
    manifest.id = "an-id";
    manifest.format = format;
    manifest.step = 3;
    manifest.worldSize = 2;
    manifest.createdNs = 1;
    manifest.model = "example";
    manifest.shape = shapeNumbers(m_shape, {});
    manifest.optimizer = "sgd";
    manifest.data = {0, 1, 0, "f", 8, 0};
    manifest.configurationJson = nlohmann::json{
        {"model", {{"preset", ""}, {"path", m_example.folder.path().string()}}},
        {"precision",
         {{"compute", precision}}}}.dump();
    manifest.buckets = bucketsOf(m_shape);
    const files::CheckpointFolder folder(m_run.path());
    EXPECT_TRUE(folder.begin(3));
    const std::filesystem::path partial = folder.partialPathOf(3);
    for (int32_t rank = 0; rank < 2; ++rank) {
        const files::PartPlan plan{{manifest.id, 3, rank}, format, manifest.buckets};
        if (rank == 0) {
            EXPECT_TRUE(files::createSharedFiles(partial, plan));
        }
        auto writer = files::PartWriter::create(partial, plan).value();
        for (const files::BucketEntry &bucket : manifest.buckets) {
            const int64_t half = bucket.paddedElements / 2;
            std::vector<float> values(static_cast<size_t>(half));
            for (int64_t i = 0; i < half; ++i)
                values[static_cast<size_t>(i)] = static_cast<float>(rank * half + i) + 0.1F;
            const auto bytes = std::as_bytes(std::span(values));
            EXPECT_TRUE(writer.write(bucket.name, "master", {rank * half, (rank + 1) * half},
                                     [&](int64_t offset, int64_t size) {
                                         return bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
                                     }));
        }
        files::addFiles(manifest.files, writer.finish().value());
    }
    manifest.buckets = files::storedBuckets({{manifest.id, 3, 0}, format, manifest.buckets});
    EXPECT_TRUE(folder.commit(manifest));
    return folder.pathOf(3);
}

} // namespace

TEST_F(ExportCheckpoint, holdsWhatTheRanksHeld)
{
    for (const CheckpointFormat format : {CheckpointFormat::Sharded, CheckpointFormat::Full}) {
        const test::TemporaryFolder out;
        const auto done = exportCheckpoint(write("fp32", format), out.path() / "model", {});
        ASSERT_TRUE(done.has_value()) << done.error().text;
        const auto folder = WeightFolder::open(out.path() / "model");
        ASSERT_TRUE(folder.has_value()) << folder.error().text;
        for (const files::BucketEntry &bucket : bucketsOf(m_shape)) {
            for (const files::TensorEntry &tensor : bucket.tensors) {
                std::vector<float> values(static_cast<size_t>(tensor.elements()));
                ASSERT_TRUE(folder->read(folder->parameter(tensor.name), 0, std::as_writable_bytes(std::span(values))));
                for (int64_t i = 0; i < tensor.elements(); ++i)
                    ASSERT_EQ(values[static_cast<size_t>(i)], static_cast<float>(tensor.offsetElements + i) + 0.1F);
            }
        }
        EXPECT_TRUE(std::filesystem::exists(out.path() / "model/tokenizer.json"));
        EXPECT_FALSE(std::filesystem::exists(out.path() / ".model.partial"));
    }
}

TEST_F(ExportCheckpoint, roundsToBf16WhereTheRunComputedInIt)
{
    const test::TemporaryFolder out;
    const auto done = exportCheckpoint(write("bf16"), out.path() / "model", {});
    ASSERT_TRUE(done.has_value()) << done.error().text;
    const auto folder = WeightFolder::open(out.path() / "model");
    ASSERT_TRUE(folder.has_value()) << folder.error().text;
    const StoredParameter &stored = folder->parameter("embedding.weight");
    EXPECT_EQ(stored.tensor->type, files::TensorType::Bf16);
    std::vector<uint16_t> values(2);
    ASSERT_TRUE(folder->read(stored, 0, std::as_writable_bytes(std::span(values))));
    EXPECT_EQ(std::bit_cast<float>(uint32_t{values[0]} << 16), 0.10009765625F);
    EXPECT_EQ(std::bit_cast<float>(uint32_t{values[1]} << 16), 1.1015625F);
    const auto config = readTextFile(out.path() / "model/config.json").value();
    EXPECT_EQ(nlohmann::json::parse(config)["dtype"], "bfloat16");
}

TEST_F(ExportCheckpoint, leavesNothingBehindWhereItFails)
{
    const test::TemporaryFolder out;
    const auto checkpoint = write();
    const auto expectRefused = [&](const char *text) {
        const auto done = exportCheckpoint(checkpoint, out.path() / "model", {});
        ASSERT_FALSE(done.has_value());
        EXPECT_THAT(done.error().text, HasSubstr(text));
        EXPECT_TRUE(std::filesystem::is_empty(out.path()));
    };
    const auto stop =
        exportCheckpoint(checkpoint, out.path() / "a/b/model", {.progress = [](int64_t, int64_t) { return false; }});
    EXPECT_FALSE(stop.has_value());
    EXPECT_TRUE(std::filesystem::is_empty(out.path()));
    {
        const FileSizeLimit limit(5000);
        expectRefused("Can't write");
    }
    std::filesystem::remove(m_example.folder.path() / "config.json");
    expectRefused("can't be read any more");
    std::string another = m_example.config;
    m_example.text("config.json", another.replace(another.find("\"num_attention_heads\": 2"), 24,
                                                  "\"rope_theta\": 5, \"num_attention_heads\": 2"));
    expectRefused("its model has rope_theta = 10000, this one 5. Put the config.json back");
    m_example.text("config.json", m_example.config);
    std::filesystem::resize_file(checkpoint / "rank-1.bin", 100);
    expectRefused(("can't be used: " + (checkpoint / "rank-1.bin").string()).c_str());
    std::filesystem::create_directory(out.path() / "model");
    EXPECT_THAT(exportCheckpoint(checkpoint, out.path() / "model", {}).error().text, HasSubstr("exists already"));
    std::ofstream(out.path() / "file") << "text";
    EXPECT_THAT(exportCheckpoint(checkpoint, out.path() / "file/b/model", {}).error().text,
                HasSubstr("file is no folder to make b/model in"));
}

TEST_F(ExportCheckpoint, whatCannotBeIsKnownBefore)
{
    const auto checkpoint = write();
    EXPECT_TRUE(checkExportFormat(checkpoint, ExportFormat::HuggingFace));
    EXPECT_THAT(checkExportFormat(checkpoint, ExportFormat::Adapter).error().text, HasSubstr("has no adapters"));
    std::filesystem::remove(m_example.folder.path() / "config.json");
    EXPECT_THAT(checkExportFormat(checkpoint, ExportFormat::HuggingFace).error().text,
                HasSubstr("can't be read any more"));
}

TEST_F(ExportCheckpoint, makesTheFoldersAboveToo)
{
    const test::TemporaryFolder out;
    const auto done = exportCheckpoint(write(), out.path() / "a/b/model", {});
    ASSERT_TRUE(done.has_value()) << done.error().text;
    EXPECT_TRUE(std::filesystem::exists(out.path() / "a/b/model/config.json"));
}
