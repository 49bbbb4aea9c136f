// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer_choice.h"

#include "core/base/file.h"
#include "core/data/dataset_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

namespace shardscope::data {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char *kJsonFile = "tokenizer.json";
constexpr const char *kSentencePieceFile = "tokenizer.model";

std::optional<TokenizerChoice> tokenizerIn(const fs::path &folder)
{
    std::error_code error;
    if (fs::is_regular_file(folder / kJsonFile, error))
        return TokenizerChoice{TokenizerKind::Json, folder / kJsonFile, {}};
    if (fs::is_regular_file(folder / kSentencePieceFile, error))
        return TokenizerChoice{TokenizerKind::SentencePiece, folder / kSentencePieceFile, {}};
    return std::nullopt;
}

Result<TokenizerChoice> tokenizerAt(const fs::path &path)
{
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found)
        return fail("There is no {}. data.tokenizer is \"bytes\", a SentencePiece model (.model), a tokenizer.json, or "
                    "a folder with one of them.",
                    path.string());
    if (error)
        return fail("Can't read {}: {}.", path.string(), error.message());
    if (fs::is_directory(status)) {
        if (auto found = tokenizerIn(path))
            return *found;
        return fail("{} has neither {} nor {} in it.", path.string(), kJsonFile, kSentencePieceFile);
    }
    if (path.extension() == ".json")
        return TokenizerChoice{TokenizerKind::Json, path, {}};
    if (path.extension() == ".model")
        return TokenizerChoice{TokenizerKind::SentencePiece, path, {}};
    return fail("data.tokenizer = {}: its name ends neither in .model (SentencePiece) nor in .json (tokenizers).",
                path.string());
}

/// A JSON object beside a tokenizer, or nothing: these files only help to find the end-of-document token.
json jsonBeside(const fs::path &tokenizer, const char *name)
{
    const auto text = readTextFile(tokenizer.parent_path() / name);
    json value = text ? json::parse(*text, nullptr, false) : json();
    return value.is_object() ? value : json::object();
}

/// What a Hugging Face folder says of the token that ends a text: the tokenizer's settings as a text, the model's as an
/// id. Last, the names that tokenizers give it.
SeparatorChoice separatorOfJson(const fs::path &file)
{
    static constexpr std::array<const char *, 6> kUsual = {"<|endoftext|>", "<|end_of_text|>", "</s>",
                                                           "<eos>",         "<|eos|>",         "[SEP]"};
    SeparatorChoice choice;
    const json settings = jsonBeside(file, "tokenizer_config.json");
    if (const auto token = settings.find("eos_token"); token != settings.end()) {
        if (token->is_string())
            choice.texts.push_back(token->get<std::string>());
        else if (token->is_object() && token->value("content", json()).is_string())
            choice.texts.push_back(token->at("content").get<std::string>());
    }
    const json model = jsonBeside(file, "config.json");
    if (auto id = model.find("eos_token_id"); choice.texts.empty() && id != model.end()) {
        const json first = id->is_array() && !id->empty() ? id->front() : *id;
        if (first.is_number_unsigned())
            choice.id = first.get<int64_t>();
    }
    if (choice.texts.empty() && !choice.id)
        choice.texts.assign(kUsual.begin(), kUsual.end());
    return choice;
}

SeparatorChoice askedSeparator(const std::string &separator)
{
    SeparatorChoice choice;
    choice.asked = true;
    int64_t id = 0;
    const auto [end, error] = std::from_chars(separator.data(), separator.data() + separator.size(), id);
    if (error == std::errc() && end == separator.data() + separator.size())
        choice.id = id;
    else
        choice.texts = {separator};
    return choice;
}

SeparatorChoice separatorOf(const TokenizerChoice &tokenizer, const std::string &separator)
{
    if (separator == "none")
        return {.none = true};
    if (!separator.empty() && separator != "auto")
        return askedSeparator(separator);
    switch (tokenizer.kind) {
    case TokenizerKind::Bytes:
        return {.id = 0}; // no text has a NUL byte
    case TokenizerKind::Json:
        return separatorOfJson(tokenizer.file);
    case TokenizerKind::SentencePiece:
        break;
    }
    return {}; // the model has it
}

} // namespace

std::string TokenizerChoice::name() const
{
    return kind == TokenizerKind::Bytes ? "bytes" : file.string();
}

Result<TokenizerChoice> chooseTokenizer(const std::string &tokenizer, const std::string &separator,
                                        const fs::path &modelFolder)
{
    Result<TokenizerChoice> choice;
    if (tokenizer.empty() && !modelFolder.empty())
        choice = tokenizerIn(modelFolder).value_or(TokenizerChoice());
    else if (!tokenizer.empty() && tokenizer != kBytesTokenizer)
        choice = tokenizerAt(tokenizer);
    if (choice)
        choice->separator = separatorOf(*choice, separator);
    if (choice && choice->kind == TokenizerKind::Bytes && !choice->separator.none &&
        (!choice->separator.id || *choice->separator.id < 0 || *choice->separator.id > 255))
        return fail("data.separator = {}: where bytes are tokens it is a number from 0 to 255, \"none\" or \"auto\" "
                    "(0).",
                    separator);
    return choice;
}

} // namespace shardscope::data
