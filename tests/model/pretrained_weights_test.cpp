// SPDX-License-Identifier: Apache-2.0
// A folder's weights on several ranks and back: what is written is what was read.
#include "core/model/decoder.h"
#include "core/model/pretrained_weights.h"
#include "tests/model/ranks.h"
#include "tests/pretrained/example_folder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

using namespace shardscope;
using shardscope::testing::ExampleFolder;

/// The numbers of the example: a parameter's first, then each one more.
static at::Tensor expectedOf(const ExampleFolder &example, const shapes::ParameterShape &parameter)
{
    const float first = example.tensors.at(shapes::hfNameOf(parameter.name)).first;
    return (at::arange(parameter.elements(), at::kFloat) + first).view(parameter.sizes);
}

static void roundTrip(engine::Communicator &communicator, Strategy strategy, const ExampleFolder &example,
                      const std::filesystem::path &out)
{
    const auto folder = pretrained::WeightFolder::open(example.folder.path());
    ASSERT_TRUE(folder.has_value()) << folder.error().text;
    config::RunConfiguration configuration;
    configuration.parallel.strategy = strategy;
    observe::Observer observer;
    model::Decoder decoder(folder->shape(), configuration, communicator, observer);
    const auto loaded = model::loadWeights(decoder.engine(), *folder);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().text;
    for (const shapes::UnitShape &unit : shapes::unitsOf(folder->shape())) {
        for (const shapes::ParameterShape &parameter : unit.parameters) {
            const auto held = decoder.engine().gatherParameter(parameter.name);
            ASSERT_TRUE(held.has_value()) << held.error().text;
            EXPECT_TRUE(at::equal(*held, expectedOf(example, parameter))) << parameter.name;
        }
    }
    Result<pretrained::FolderWriter> writer = fail("not this rank's");
    if (communicator.rank() == 0)
        writer = pretrained::FolderWriter::create(out, folder->shape(), {.original = example.folder.path()});
    const auto written = model::writeWeights(decoder.engine(), folder->shape(), writer ? &*writer : nullptr);
    ASSERT_TRUE(written.has_value()) << written.error().text;
    if (writer) {
        ASSERT_TRUE(writer->finish().has_value());
    }
    communicator.barrier();
}

TEST(PretrainedWeights, comeBackFromThreeRanks)
{
    ExampleFolder example;
    example.write(2);
    for (const Strategy strategy : {Strategy::Full, Strategy::None}) {
        const test::TemporaryFolder out;
        observe::Observer observer;
        test::runRanks(3, observer, [&](engine::Communicator &communicator) {
            roundTrip(communicator, strategy, example, out.path() / "model");
        });
        const auto again = pretrained::WeightFolder::open(out.path() / "model");
        ASSERT_TRUE(again.has_value()) << again.error().text;
        for (const shapes::UnitShape &unit : shapes::unitsOf(again->shape())) {
            for (const shapes::ParameterShape &parameter : unit.parameters) {
                at::Tensor value = at::empty(parameter.sizes);
                ASSERT_TRUE(again->read(again->parameter(parameter.name), 0,
                                        {static_cast<std::byte *>(value.data_ptr()), value.nbytes()}));
                EXPECT_TRUE(at::equal(value, expectedOf(example, parameter))) << parameter.name;
            }
        }
    }
}
