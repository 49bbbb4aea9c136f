// SPDX-License-Identifier: Apache-2.0
#include "core/pretrained/folder_writer.h"

#include "core/pretrained/weight_folder.h"
#include "tests/pretrained/example_folder.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace shardscope;
using namespace shardscope::pretrained;
using shardscope::testing::ExampleFolder;
using ::testing::HasSubstr;

/// Reads all of one folder and writes it to another.
static Result<> copyWeights(const WeightFolder &from, FolderWriter &to, std::string_view without = {})
{
    for (const shapes::UnitShape &unit : shapes::unitsOf(from.shape())) {
        for (const shapes::ParameterShape &parameter : unit.parameters) {
            const StoredParameter &stored = from.parameter(parameter.name);
            std::vector<std::byte> bytes(static_cast<size_t>(stored.tensor->sizeBytes));
            if (auto read = from.read(stored, 0, bytes); !read)
                return read;
            if (parameter.name == without)
                continue;
            if (auto written = to.write(parameter.name, 0, bytes); !written)
                return written;
        }
    }
    return to.finish();
}

TEST(FolderWriter, writesWhatReadsTheSame)
{
    ExampleFolder example;
    example.write();
    example.text("tokenizer.json", "{}");
    example.text("README.md", "of the original");
    const auto original = WeightFolder::open(example.folder.path());
    ASSERT_TRUE(original.has_value()) << original.error().text;
    for (const int64_t shardBytes : {int64_t{1} << 30, int64_t{1000}}) {
        const test::TemporaryFolder target;
        const auto path = target.path() / "out";
        auto writer = FolderWriter::create(path, original->shape(),
                                           {.shardBytes = shardBytes, .original = example.folder.path()});
        ASSERT_TRUE(writer.has_value()) << writer.error().text;
        const auto copied = copyWeights(*original, *writer);
        ASSERT_TRUE(copied.has_value()) << copied.error().text;
        const auto again = WeightFolder::open(path);
        ASSERT_TRUE(again.has_value()) << again.error().text;
        for (const auto &[name, tensor] : example.tensors) {
            const auto ours = shapes::nameOfHf(name).value();
            float first = 0;
            ASSERT_TRUE(
                again->read(again->parameter(ours), 0, std::as_writable_bytes(std::span(&first, 1))).has_value());
            EXPECT_EQ(first, tensor.first) << name;
        }
        EXPECT_TRUE(std::filesystem::exists(path / "tokenizer.json"));
        EXPECT_FALSE(std::filesystem::exists(path / "README.md"));
        EXPECT_EQ(std::filesystem::exists(path / kSingleFile), shardBytes > 1000);
        EXPECT_EQ(std::filesystem::exists(path / kIndexFile), shardBytes == 1000);
    }
}

TEST(FolderWriter, failsWhereATensorWasForgotten)
{
    ExampleFolder example;
    example.write();
    const auto original = WeightFolder::open(example.folder.path());
    ASSERT_TRUE(original.has_value());
    const test::TemporaryFolder target;
    auto writer = FolderWriter::create(target.path(), original->shape(), {});
    ASSERT_TRUE(writer.has_value());
    const auto copied = copyWeights(*original, *writer, "head.norm.weight");
    ASSERT_FALSE(copied.has_value());
    EXPECT_THAT(copied.error().text, HasSubstr("of model.norm.weight were written"));
    EXPECT_FALSE(writer->write("no.such", 0, {}).has_value());
}

TEST(FolderWriter, saysBeforehandWhereTheDiskHasNoRoom)
{
    shapes::ModelShape shape = shapes::presetShape("tiny").value();
    shape.vocabulary = int64_t{1} << 42; // 2 PiB
    const test::TemporaryFolder target;
    const auto writer = FolderWriter::create(target.path() / "out", shape, {});
    ASSERT_FALSE(writer.has_value());
    EXPECT_THAT(writer.error().text, HasSubstr("has room for"));
    EXPECT_TRUE(std::filesystem::is_empty(target.path() / "out"));
}
