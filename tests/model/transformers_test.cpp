// SPDX-License-Identifier: Apache-2.0
// Against Hugging Face's transformers, both ways: small random models that its own classes make give the same logits
// here, and what is written here gives them there (tests/peers/transformers_models.py).
#include "core/base/file.h"
#include "core/model/decoder.h"
#include "core/model/pretrained_weights.h"
#include "tests/support/temporary_folder.h"

#include <ATen/Parallel.h>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <torch/torch.h>

using namespace shardscope;

namespace {

constexpr int64_t kSequences = 2;
constexpr int64_t kTokens = 40;
constexpr double kTolerance = 1e-4;

std::filesystem::path dependencies()
{
    const char *deps = std::getenv("SHARDSCOPE_DEPS");
    const char *source = std::getenv("SHARDSCOPE_SOURCE");
    return deps && *deps ? std::filesystem::path(deps) : std::filesystem::path(source ? source : ".") / ".deps";
}

/// Lines that the peer prints.
std::vector<std::string> runPeer(const std::string &verb, const std::filesystem::path &folder)
{
    const char *source = std::getenv("SHARDSCOPE_SOURCE");
    const std::filesystem::path output = folder / (verb + ".out");
    // The folder's name has quotes in it.
    const auto quoted = [](const std::filesystem::path &path) {
        std::string text = "'";
        for (const char c : path.string())
            text += c == '\'' ? std::string("'\\''") : std::string(1, c);
        return text + "'";
    };
    const std::string command =
        "PYTHONPATH=" + quoted(dependencies() / "test-wheels") + " " + quoted(dependencies() / "venv/bin/python") +
        " " + quoted(std::filesystem::path(source ? source : ".") / "tests/peers/transformers_models.py") + " " + verb +
        " " + quoted(folder) + " >" + quoted(output) + " 2>" + quoted(folder / (verb + ".err"));
    const int status = std::system(command.c_str());
    EXPECT_EQ(status, 0) << readTextFile(folder / (verb + ".err")).value_or("");
    std::istringstream text(readTextFile(output).value_or(""));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);)
        lines.push_back(line);
    return lines;
}

at::Tensor readRaw(const std::filesystem::path &path, at::IntArrayRef sizes, at::ScalarType type)
{
    at::Tensor tensor = at::empty(sizes, type);
    std::ifstream file(path, std::ios::binary);
    file.read(static_cast<char *>(tensor.mutable_data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
    EXPECT_TRUE(file.good()) << path;
    return tensor;
}

/// Loads the case's model, compares logits, and writes it again beside.
void compareLogits(const std::filesystem::path &place)
{
    const auto folder = pretrained::WeightFolder::open(place / "model");
    ASSERT_TRUE(folder.has_value()) << folder.error().text;
    EXPECT_TRUE(folder->warnings().empty()) << folder->warnings().front();
    observe::Observer observer;
    auto communicator = engine::Communicator::create({}, observer);
    ASSERT_TRUE(communicator.has_value());
    model::Decoder decoder(folder->shape(), {}, **communicator, observer);
    const auto loaded = model::loadWeights(decoder.engine(), *folder);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().text;
    const at::Tensor tokens = readRaw(place / "tokens", {kSequences, kTokens}, at::kLong);
    const at::Tensor expected =
        readRaw(place / "logits", {kSequences, kTokens, folder->shape().vocabulary}, at::kFloat);
    EXPECT_LT((decoder.forwardLogits(tokens) - expected).abs().max().item<double>(), kTolerance);

    auto writer = pretrained::FolderWriter::create(place / "export", folder->shape(),
                                                   {.shardBytes = 100'000, .original = place / "model"});
    ASSERT_TRUE(writer.has_value()) << writer.error().text;
    ASSERT_TRUE(model::writeWeights(decoder.engine(), folder->shape(), &*writer).has_value());
    const auto finished = writer->finish();
    ASSERT_TRUE(finished.has_value()) << finished.error().text;
}

} // namespace

TEST(Transformers, logitsAreTheSameBothWays)
{
    if (!std::filesystem::exists(dependencies() / "test-wheels/transformers"))
        GTEST_SKIP() << "transformers is not installed: packaging/test_wheels.sh installs it";
    at::set_num_threads(1);
    const test::TemporaryFolder temporary;
    const std::filesystem::path &folder = temporary.path();
    const std::vector<std::string> cases = runPeer("make", folder);
    ASSERT_EQ(cases.size(), 14U);
    for (const std::string &name : cases) {
        SCOPED_TRACE(name);
        compareLogits(folder / name);
    }
    for (const std::string &line : runPeer("check", folder)) {
        const std::string rest = line.substr(line.find(' ') + 1);
        char *end = nullptr;
        const double error = std::strtod(rest.c_str(), &end);
        EXPECT_TRUE(*end == '\0' && error < kTolerance) << line;
    }
}
