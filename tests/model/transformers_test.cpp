// SPDX-License-Identifier: Apache-2.0
// Against Hugging Face's transformers, both ways: small random models that its own classes make give the same logits
// here, and what is written here gives them there (tests/peers/transformers_models.py).
#include "core/model/decoder.h"
#include "core/model/pretrained_weights.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/transformers_peer.h"

#include <ATen/Parallel.h>
#include <fstream>
#include <gtest/gtest.h>
#include <torch/torch.h>

using namespace shardscope;

namespace {

constexpr int64_t kSequences = 2;
constexpr int64_t kTokens = 40;

at::Tensor readRaw(const std::filesystem::path &path, at::IntArrayRef sizes, at::ScalarType type)
{
    at::Tensor tensor = at::empty(sizes, type);
    std::ifstream file(path, std::ios::binary);
    file.read(static_cast<char *>(tensor.mutable_data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
    EXPECT_TRUE(file.good()) << path;
    return tensor;
}

/// Loads the case's model, compares logits, and writes it again beside.
void compareLogits(const std::filesystem::path &place, at::Device device)
{
    const auto folder = pretrained::WeightFolder::open(place / "model");
    ASSERT_TRUE(folder.has_value()) << folder.error().text;
    EXPECT_TRUE(folder->warnings().empty()) << folder->warnings().front();
    observe::Observer observer;
    auto communicator = engine::Communicator::create({.device = device}, observer);
    ASSERT_TRUE(communicator.has_value());
    model::Decoder decoder(folder->shape(), {}, **communicator, observer);
    const auto loaded = model::loadWeights(decoder.engine(), *folder);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().text;
    const at::Tensor tokens = readRaw(place / "tokens", {kSequences, kTokens}, at::kLong);
    const at::Tensor expected =
        readRaw(place / "logits", {kSequences, kTokens, folder->shape().vocabulary}, at::kFloat);
    EXPECT_LT((decoder.forwardLogits(tokens.to(device)).cpu() - expected).abs().max().item<double>(),
              test::kLogitTolerance);

    auto writer = pretrained::FolderWriter::create(place / "export", folder->shape(),
                                                   {.shardBytes = 100'000, .original = place / "model"});
    ASSERT_TRUE(writer.has_value()) << writer.error().text;
    ASSERT_TRUE(model::writeWeights(decoder.engine(), folder->shape(), &*writer).has_value());
    const auto finished = writer->finish();
    ASSERT_TRUE(finished.has_value()) << finished.error().text;
}

/// Every case, on this device. The peer computes on the CPU.
void compareAllCases(at::Device device)
{
    if (!test::TransformersPeer::isInstalled())
        GTEST_SKIP() << test::TransformersPeer::kMissing;
    at::set_num_threads(1);
    const test::TemporaryFolder temporary;
    const std::filesystem::path &folder = temporary.path();
    const test::TransformersPeer peer(folder);
    const std::vector<std::string> cases = peer.run("make");
    ASSERT_EQ(cases.size(), 14U);
    for (const std::string &name : cases) {
        SCOPED_TRACE(name);
        compareLogits(folder / name, device);
    }
    peer.expectSameLogits("check", cases);
}

} // namespace

TEST(Transformers, logitsAreTheSameBothWays)
{
    compareAllCases(at::kCPU);
}

TEST(TransformersCuda, logitsAreTheSameBothWays)
{
    if (!torch::cuda::is_available())
        GTEST_SKIP() << "no CUDA device";
    compareAllCases({at::kCUDA, 0});
}
