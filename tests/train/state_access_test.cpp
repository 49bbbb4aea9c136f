// SPDX-License-Identifier: Apache-2.0
// States go from any grouping, ranks and dtypes to any other: buckets made by hand, no engine.
#include "core/train/state_access.h"
#include "core/train/state_snapshot.h"
#include "tests/files/temporary_folder.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

using namespace shardscope;
using namespace shardscope::testing;
using train::StateShards;

namespace {

shapes::ParameterShape parameter(const std::string &name, std::vector<int64_t> sizes)
{
    shapes::ParameterShape shape;
    shape.name = name;
    shape.sizes = std::move(sizes);
    return shape;
}

engine::BucketLayout layout(const std::string &name, const std::vector<shapes::ParameterShape> &parameters,
                            int64_t worldSize)
{
    shapes::UnitShape unit;
    unit.name = name;
    unit.parameters = parameters;
    return engine::layOut(unit, worldSize);
}

/// The value of an element of a parameter's state: exact in bf16 too.
float valueOf(const std::string &name, const std::string &state, int64_t element)
{
    return static_cast<float>(static_cast<int64_t>(name.size() * 31 + state.size() * 7 + name.back()) % 64) +
           static_cast<float>(element % 100);
}

engine::StateShard shard(const engine::BucketLayout &layout, const std::string &state, engine::ElementRange held,
                         engine::ElementRange owned, at::ScalarType type)
{
    engine::StateShard made;
    made.state = state;
    made.layout = &layout;
    made.held = held;
    made.owned = owned;
    made.data_S = at::full({held.size()}, 999, at::TensorOptions().dtype(type));
    return made;
}

at::Tensor expectedOf(const engine::StateShard &shard)
{
    at::Tensor expected = at::zeros({shard.held.size()});
    for (const engine::ParameterPlace &place : shard.layout->parameters) {
        const auto held = engine::intersect(place.range(), shard.held);
        for (int64_t i = held.begin; i < held.end; ++i)
            expected[i - shard.held.begin] = valueOf(place.shape.name, shard.state, i - place.offset);
    }
    return expected.to(shard.data_S.scalar_type());
}

class StateAccess : public ::testing::Test
{
protected:
    /// Three ranks with moments in bf16, of which the second rank owns nothing, write one bucket.
    void write(bool snapshot, CheckpointFormat format)
    {
        const engine::BucketLayout bucket =
            layout("all", {parameter("a", {40, 10}), parameter("b", {7}), parameter("cc", {33, 9})}, 3);
        const std::vector<engine::ElementRange> owned = {
            {0, 500}, {500, 500}, {500, bucket.paddedElements}}; // parts that are no slices
        files::Manifest manifest;
        manifest.step = 1;
        manifest.format = format;
        manifest.worldSize = 3;
        manifest.configurationJson = "{}";
        ASSERT_TRUE(m_folder.begin(1));
        for (int rank = 0; rank < 3; ++rank) {
            const auto held = owned[static_cast<size_t>(rank)];
            StateShards shards = {shard(bucket, "master", held, held, at::kFloat),
                                  shard(bucket, "exp_avg", held, held, at::kBFloat16)};
            for (engine::StateShard &each : shards)
                each.data_S.copy_(expectedOf(each));
            manifest.buckets = train::bucketsOf(shards);
            const files::PartPlan plan{{"", 1, rank}, format, manifest.buckets};
            if (rank == 0) {
                ASSERT_TRUE(files::createSharedFiles(m_folder.partialPathOf(1), plan));
            }
            auto writer = files::PartWriter::create(m_folder.partialPathOf(1), plan).value();
            if (snapshot) {
                train::StateSnapshot copy(shards, at::kCPU);
                for (engine::StateShard &each : shards)
                    each.data_S.fill_(5); // the next step
                copy.wait();
                ASSERT_TRUE(copy.write(writer));
            } else {
                ASSERT_TRUE(train::writeOwned(shards, writer));
            }
            files::addFiles(manifest.files, writer.finish().value());
        }
        manifest.buckets = files::storedBuckets({{"", 1, 0}, format, manifest.buckets});
        const auto committed = m_folder.commit(manifest);
        ASSERT_TRUE(committed) << committed.error().text;
    }

    /// Two ranks read it into two buckets: one they both hold whole, one in slices; moments in fp32.
    void read()
    {
        const engine::BucketLayout first = layout("x", {parameter("cc", {33, 9}), parameter("a", {40, 10})}, 2);
        const engine::BucketLayout second = layout("y", {parameter("b", {7})}, 2);
        for (int rank = 0; rank < 2; ++rank) {
            StateShards shards;
            for (const char *state : {"master", "exp_avg"}) {
                shards.push_back(shard(first, state, first.sliceOf(rank), first.sliceOf(rank), at::kFloat));
                shards.push_back(shard(second, state, {0, second.paddedElements}, second.sliceOf(rank), at::kFloat));
            }
            auto reader = files::CheckpointReader::open(m_folder.pathOf(1)).value();
            const auto verified = reader.verify(train::heldParts(shards));
            ASSERT_TRUE(verified) << verified.error().text;
            const auto done = train::readStates(shards, reader);
            ASSERT_TRUE(done) << done.error().text;
            for (const engine::StateShard &each : shards)
                EXPECT_TRUE(at::equal(each.data_S, expectedOf(each)))
                    << each.layout->name << " " << each.state << " of rank " << rank;
        }
    }

    TemporaryFolder m_temporary;
    files::CheckpointFolder m_folder{m_temporary.path()};
};

TEST_F(StateAccess, OtherRanksBucketsAndDtypes)
{
    write(false, CheckpointFormat::Sharded);
    read();
}

TEST_F(StateAccess, ASnapshotKeepsTheStep)
{
    write(true, CheckpointFormat::Sharded);
    read();
}

TEST_F(StateAccess, FullFilesAreReadTheSame)
{
    write(true, CheckpointFormat::Full);
    read();
    const auto model = files::SafetensorsReader::open(m_folder.pathOf(1) / "model.safetensors").value();
    ASSERT_EQ(model.tensors().size(), 3U);
    const files::SafeTensor *tensor = model.find("cc");
    ASSERT_TRUE(tensor);
    EXPECT_EQ(tensor->sizes, (std::vector<int64_t>{33, 9}));
    std::vector<float> values(33 * 9);
    ASSERT_TRUE(model.read(*tensor, 0, std::as_writable_bytes(std::span(values))));
    for (size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(values[i], valueOf("cc", "master", static_cast<int64_t>(i)));
    const auto optimizer = files::SafetensorsReader::open(m_folder.pathOf(1) / "optimizer.safetensors").value();
    ASSERT_TRUE(optimizer.find("b.exp_avg"));
    EXPECT_EQ(optimizer.find("b.exp_avg")->type, files::TensorType::Bf16);
}

TEST(RandomStates, AreThoseOfTheRank)
{
    const TemporaryFolder temporary;
    const files::CheckpointFolder folder(temporary.path());
    ASSERT_TRUE(folder.begin(1));
    files::Manifest manifest;
    manifest.step = 1;
    manifest.configurationJson = "{}";
    manifest.id = "x";
    auto writer =
        files::PartWriter::create(folder.partialPathOf(1), {{"x", 1, 0}, CheckpointFormat::Sharded, {}}).value();
    const train::RandomStates states = train::randomStates(at::kCPU);
    const at::Tensor drawn = at::rand({5});
    ASSERT_TRUE(train::writeRandomStates(states, writer));
    files::addFiles(manifest.files, writer.finish().value());
    ASSERT_TRUE(folder.commit(manifest));
    auto reader = files::CheckpointReader::open(folder.pathOf(1)).value();
    ASSERT_TRUE(train::restoreRandomStates(at::kCPU, 1, reader)); // there was no such rank: goes on as it is
    EXPECT_FALSE(at::equal(at::rand({5}), drawn));
    ASSERT_TRUE(train::restoreRandomStates(at::kCPU, 0, reader));
    EXPECT_TRUE(at::equal(at::rand({5}), drawn));
}

} // namespace
