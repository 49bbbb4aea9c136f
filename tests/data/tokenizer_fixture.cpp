// SPDX-License-Identifier: Apache-2.0
#include "tests/data/tokenizer_fixture.h"

#include "core/base/file.h"
#include "core/data/helper_process.h"
#include "core/data/token_source.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sentencepiece_trainer.h>
#include <sstream>
#include <unistd.h>

namespace shardscope::data {

namespace fs = std::filesystem;

void TokenizerFixture::SetUp()
{
    folder = fs::path(testing::TempDir()) / fmt::format("tokens \"of\" дом {}", ::getpid());
    fs::remove_all(folder);
    fs::create_directories(folder);
}

void TokenizerFixture::TearDown()
{
    fs::remove_all(folder);
}

fs::path TokenizerFixture::write(const fs::path &name, std::string_view text) const
{
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << text;
    return folder / name;
}

std::string TokenizerFixture::longText()
{
    std::string text = readTextFile("LICENSES/GPL-3.0-or-later.txt").value();
    text += readTextFile("LICENSES/Apache-2.0.txt").value();
    return text + text + "Grüße, naïve Leser: 三 🙂\n" + text;
}

fs::path TokenizerFixture::sentencePiece(const std::string &name, const std::string &settings) const
{
    // The trainer takes no file names with commas or quotes.
    const fs::path work = fs::path(testing::TempDir()) / fmt::format("sentencepiece-{}", ::getpid());
    fs::create_directories(work);
    std::ofstream(work / "text", std::ios::binary) << longText();
    const auto status = sentencepiece::SentencePieceTrainer::Train(
        fmt::format("--input={} --model_prefix={} --minloglevel=3 --num_threads=1 {}", (work / "text").string(),
                    (work / "model").string(), settings));
    EXPECT_TRUE(status.ok()) << status.ToString();
    fs::copy_file(work / "model.model", folder / name, fs::copy_options::overwrite_existing);
    fs::remove_all(work);
    return folder / name;
}

DatasetOptions TokenizerFixture::options(const fs::path &texts, const fs::path &tokenizer) const
{
    DatasetOptions options{.path = texts, .validationShare = 0, .sequenceLength = 4, .tokenizer = tokenizer.string()};
    options.separator = "auto";
    options.cacheFolder = folder / "cache";
    return options;
}

std::vector<int64_t> tokensOf(const DatasetOptions &options)
{
    const auto source = openTokens(options);
    EXPECT_TRUE(source) << source.error().text;
    if (!source)
        return {};
    std::vector<int64_t> tokens(static_cast<size_t>(source->store.tokens()));
    source->store.read(0, tokens);
    return tokens;
}

std::string messageOf(const DatasetOptions &options)
{
    const auto source = openTokens(options);
    return source ? "opened" : source.error().text;
}

std::vector<std::string> TokenizerFixture::cached() const
{
    std::vector<std::string> names;
    std::error_code error; // there may be no cache
    for (const auto &entry : fs::directory_iterator(folder / "cache", error))
        names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
}

std::string pythonWithTokenizers()
{
    std::vector<std::string> candidates;
    if (const char *asked = std::getenv("SHARDSCOPE_PYTHON"))
        candidates.emplace_back(asked);
    candidates.emplace_back(SHARDSCOPE_BUILT_WITH "/venv/bin/python");
    candidates.emplace_back("python3");
    for (const std::string &python : candidates) {
        auto process = HelperProcess::start({python, "-c", "import tokenizers; print('there')"});
        if (process && process->receiveLine({}))
            return python;
    }
    return {};
}

std::vector<int64_t> numbersOfPython(const std::string &script, const std::vector<std::string> &arguments)
{
    std::vector<std::string> command = {pythonWithTokenizers(), "-c", script};
    command.insert(command.end(), arguments.begin(), arguments.end());
    auto process = HelperProcess::start(command);
    const auto line = process ? process->receiveLine({}) : Result<std::string>(tl::unexpected(process.error()));
    EXPECT_TRUE(line) << line.error().text;
    std::istringstream words(line.value_or(""));
    return {std::istream_iterator<int64_t>(words), {}};
}

} // namespace shardscope::data
