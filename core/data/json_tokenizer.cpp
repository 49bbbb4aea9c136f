// SPDX-License-Identifier: Apache-2.0
#include "core/data/json_tokenizer.h"

#include "core/data/helper_process.h"
#include "core/data/tokenizer_server.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>

namespace shardscope::data {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

class JsonTokenizer : public Tokenizer
{
public:
    JsonTokenizer(HelperProcess process, int64_t vocabulary, std::optional<uint32_t> separator)
        : m_process(std::move(process))
        , m_vocabulary(vocabulary)
        , m_separator(separator)
    {
    }

    int64_t vocabulary() const override { return m_vocabulary; }
    std::optional<uint32_t> separator() const override { return m_separator; }
    Result<std::vector<std::vector<uint32_t>>> encode(std::span<const std::string_view> pieces,
                                                      const CancelFunction &isCancelled) override;

private:
    HelperProcess m_process;
    int64_t m_vocabulary;
    std::optional<uint32_t> m_separator;
};

Result<std::vector<std::vector<uint32_t>>> JsonTokenizer::encode(std::span<const std::string_view> pieces,
                                                                 const CancelFunction &isCancelled)
{
    std::vector<uint32_t> lengths = {static_cast<uint32_t>(pieces.size())};
    std::string texts;
    for (const std::string_view piece : pieces) {
        lengths.push_back(static_cast<uint32_t>(piece.size()));
        texts += piece;
    }
    std::vector<uint32_t> counts(pieces.size());
    auto told =
        m_process.send(std::as_bytes(std::span(lengths)), isCancelled)
            .and_then([&] { return m_process.send(std::as_bytes(std::span(texts)), isCancelled); })
            .and_then([&] { return m_process.receive(std::as_writable_bytes(std::span(counts)), isCancelled); });
    std::vector<std::vector<uint32_t>> ids(pieces.size());
    for (size_t i = 0; told && i < ids.size(); ++i) {
        ids[i].resize(counts[i]);
        told = m_process.receive(std::as_writable_bytes(std::span(ids[i])), isCancelled);
    }
    if (!told)
        return tl::unexpected(told.error());
    return ids;
}

tl::unexpected<Error> packageMissing(const TokenizerChoice &choice, const std::vector<std::string> &tried)
{
    return fail("{} needs Python's tokenizers package, and {} it. Install it with: {} -m pip install "
                "tokenizers=={}, or name a Python that has it in SHARDSCOPE_PYTHON.",
                choice.file.string(),
                tried.size() == 1 ? tried.front() + " lacks" : fmt::format("none of {} has", fmt::join(tried, ", ")),
                tried.front(), SHARDSCOPE_TOKENIZERS_VERSION);
}

Result<std::optional<uint32_t>> separatorOf(const TokenizerChoice &choice, const json &hello, int64_t vocabulary)
{
    const SeparatorChoice &wanted = choice.separator;
    if (wanted.none)
        return std::nullopt;
    for (const json &id : hello.at("ids")) {
        if (id.is_number())
            return id.get<uint32_t>();
    }
    if (wanted.id && *wanted.id >= 0 && *wanted.id < vocabulary)
        return static_cast<uint32_t>(*wanted.id);
    return noSeparator(choice);
}

} // namespace

std::vector<std::string> pythons()
{
    std::vector<std::string> found;
    const auto add = [&](const std::string &python, bool isThere) {
        if (isThere && std::ranges::find(found, python) == found.end())
            found.push_back(python);
    };
    std::error_code error;
    if (const char *asked = std::getenv("SHARDSCOPE_PYTHON"); asked && *asked)
        add(asked, true);
    for (const char *deps : {static_cast<const char *>(std::getenv("SHARDSCOPE_DEPS")), SHARDSCOPE_BUILT_WITH}) {
        if (deps && *deps) {
            const fs::path python = fs::path(deps) / "venv" / "bin" / "python";
            add(python.string(), fs::exists(python, error));
        }
    }
    add("python3", true);
    return found;
}

Result<std::unique_ptr<Tokenizer>> openJsonTokenizer(const TokenizerChoice &choice,
                                                     const std::vector<std::string> &pythons,
                                                     const CancelFunction &isCancelled)
{
    std::vector<std::string> tried;
    for (const std::string &python : pythons) {
        std::vector<std::string> command = {python, "-c", kTokenizerServer, choice.file.string()};
        command.insert(command.end(), choice.separator.texts.begin(), choice.separator.texts.end());
        auto process = HelperProcess::start(command);
        const auto line =
            process ? process->receiveLine(isCancelled) : Result<std::string>(tl::unexpected(process.error()));
        if (!line && isCancelled && isCancelled())
            return tl::unexpected(line.error());
        const json hello = line ? json::parse(*line, nullptr, false) : json();
        if (hello.contains("error"))
            return fail("{} is no tokenizer.json that the tokenizers package reads: {}.", choice.file.string(),
                        hello.at("error").get<std::string>());
        if (hello.contains("vocabulary")) {
            const auto vocabulary = hello.at("vocabulary").get<int64_t>();
            return separatorOf(choice, hello, vocabulary)
                .map([&](std::optional<uint32_t> separator) -> std::unique_ptr<Tokenizer> {
                    return std::make_unique<JsonTokenizer>(std::move(*process), vocabulary, separator);
                });
        }
        tried.push_back(python);
    }
    return packageMissing(choice, tried);
}

} // namespace shardscope::data
