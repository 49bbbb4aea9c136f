// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/hf_config.h"

#include "core/base/file.h"
#include "core/shapes/hf_json.h"
#include "core/shapes/hf_rope.h"

#include <algorithm>

namespace shardscope::shapes {

using nlohmann::json;

namespace {

// Above what anyone trains, and low enough that no product of them leaves int64.
constexpr int64_t kMostVocabulary = int64_t{1} << 30;
constexpr int64_t kMostHidden = int64_t{1} << 20;
constexpr int64_t kMostFeedForward = int64_t{1} << 22;
constexpr int64_t kMostLayers = int64_t{1} << 14;
constexpr int64_t kMostHeads = int64_t{1} << 14;
constexpr int64_t kMostHeadSize = int64_t{1} << 12;
constexpr int64_t kMostSequence = int64_t{1} << 40;
constexpr size_t kMostBytes = 16 << 20;

/// What a family's class in transformers 5.23 takes where config.json leaves a field out.
struct Family
{
    ModelFamily family;
    std::string_view type;
    std::string_view architecture;
    int64_t keyValueHeads; ///< 0: as many as heads
    int64_t maxSequence;
    int64_t headSize; ///< 0: hidden ÷ heads
};
constexpr Family kFamilies[] = {
    {ModelFamily::Llama, "llama", "LlamaForCausalLM", 0, 2048, 0},
    {ModelFamily::Mistral, "mistral", "MistralForCausalLM", 8, 4096 * 32, 0},
    {ModelFamily::Qwen2, "qwen2", "Qwen2ForCausalLM", 32, 32768, 0},
    {ModelFamily::Qwen3, "qwen3", "Qwen3ForCausalLM", 32, 32768, 128},
};
constexpr int64_t kUsualWindow = 4096;
constexpr int64_t kUsualFullLayers = 28;
constexpr double kUsualEps = 1e-6;

const Family &familyOf(ModelFamily family)
{
    return *std::ranges::find(kFamilies, family, &Family::family);
}

/// Goes through one config.json.
class ConfigReader
{
public:
    explicit ConfigReader(const json &config)
        : m_config(config)
        , m_fields(config, m_problems)
    {
    }
    HfConfig read();
    const std::vector<std::string> &problems() const { return m_problems; }

private:
    bool readFamily();
    void readSizes();
    void readHeads();
    void readWhatDiffers();
    void readWindows();
    void readLayerTypes(int64_t window);
    void refuseOthers();

    const json &m_config;
    std::vector<std::string> m_problems;
    HfFields m_fields;
    const Family *m_family = nullptr;
    HfConfig m_result;
};

HfConfig ConfigReader::read()
{
    if (!readFamily())
        return {};
    readSizes();
    readHeads();
    readWhatDiffers();
    readWindows();
    readRope(m_config, m_result.shape, m_problems, m_result.warnings);
    refuseOthers();
    return std::move(m_result);
}

bool ConfigReader::readFamily()
{
    const auto type = m_fields.text("model_type");
    if (!type) {
        if (m_problems.empty())
            m_fields.problem("model_type is missing.");
        return false;
    }
    m_family = std::ranges::find(kFamilies, *type, &Family::type);
    if (m_family == std::end(kFamilies)) {
        m_fields.problem("Models of the type \"{}\" are not supported. Supported: llama, mistral, qwen2, qwen3.",
                         *type);
        return false;
    }
    m_result.shape.family = m_family->family;
    const json *architectures = m_fields.find("architectures");
    if (architectures && architectures->is_array() && !architectures->empty() &&
        std::ranges::find(*architectures, json(m_family->architecture)) == architectures->end())
        m_fields.problem("architectures = {} is not supported: a folder of this type must hold a {}.",
                         architectures->dump(), m_family->architecture);
    return true;
}

void ConfigReader::readSizes()
{
    ModelShape &shape = m_result.shape;
    shape.vocabulary = m_fields.requiredCount("vocab_size", kMostVocabulary);
    shape.hidden = m_fields.requiredCount("hidden_size", kMostHidden);
    shape.ffnHidden = m_fields.requiredCount("intermediate_size", kMostFeedForward);
    shape.layers = m_fields.requiredCount("num_hidden_layers", kMostLayers);
    shape.configuredSequence = m_fields.count("max_position_embeddings", kMostSequence).value_or(m_family->maxSequence);
    shape.normEps = m_fields.number("rms_norm_eps").value_or(kUsualEps);
    shape.initialStd = m_fields.number("initializer_range").value_or(0.02);
    if (shape.normEps <= 0 || shape.normEps > 1)
        m_fields.problem("rms_norm_eps = {} must be above 0 and at most 1.", shape.normEps);
    if (shape.initialStd < 0)
        m_fields.problem("initializer_range = {} must not be negative.", shape.initialStd);
}

void ConfigReader::readHeads()
{
    ModelShape &shape = m_result.shape;
    shape.heads = m_fields.requiredCount("num_attention_heads", kMostHeads);
    if (shape.heads == 0)
        return;
    const bool isNull = m_fields.isPresent("num_key_value_heads") && !m_fields.find("num_key_value_heads");
    const int64_t usual = isNull || m_family->keyValueHeads == 0 ? shape.heads : m_family->keyValueHeads;
    shape.keyValueHeads = m_fields.count("num_key_value_heads", kMostHeads).value_or(usual);
    if (shape.heads % shape.keyValueHeads != 0)
        m_fields.problem("num_attention_heads = {} must be a multiple of num_key_value_heads = {}.", shape.heads,
                         shape.keyValueHeads);
    const bool nullHead = m_fields.isPresent("head_dim") && !m_fields.find("head_dim");
    const int64_t split = shape.hidden / shape.heads;
    const int64_t usualHead = nullHead || m_family->headSize == 0 ? split : m_family->headSize;
    shape.headSize = m_fields.count("head_dim", kMostHeadSize).value_or(usualHead);
    if (!m_fields.find("head_dim") && m_family->headSize == 0 && shape.hidden % shape.heads != 0)
        m_fields.problem("hidden_size = {} is no multiple of num_attention_heads = {}, and head_dim is missing.",
                         shape.hidden, shape.heads);
    else if (shape.headSize % 2 != 0)
        m_fields.problem("A head of {} elements is odd, and RoPE rotates pairs.", shape.headSize);
}

/// Biases, norms of heads and ties, as the family's class has them.
void ConfigReader::readWhatDiffers()
{
    ModelShape &shape = m_result.shape;
    const bool isLlama = shape.family == ModelFamily::Llama;
    const bool isQwen3 = shape.family == ModelFamily::Qwen3;
    const bool attentionBias = m_fields.flag("attention_bias").value_or(false) && (isLlama || isQwen3);
    shape.queryKeyValueBias = attentionBias || shape.family == ModelFamily::Qwen2;
    shape.outputBias = attentionBias;
    shape.feedForwardBias = m_fields.flag("mlp_bias").value_or(false) && isLlama;
    shape.queryKeyNorm = isQwen3;
    m_result.tied = m_fields.flag("tie_word_embeddings");
    shape.tiedEmbeddings = m_result.tied.value_or(false);
}

void ConfigReader::readWindows()
{
    ModelShape &shape = m_result.shape;
    if (shape.family == ModelFamily::Llama)
        return;
    std::optional<int64_t> window = m_fields.count("sliding_window", kMostSequence);
    if (!window && !m_fields.isPresent("sliding_window"))
        window = kUsualWindow;
    if (shape.family == ModelFamily::Mistral) {
        if (window)
            shape.windows.assign(static_cast<size_t>(shape.layers), *window);
        return;
    }
    if (!m_fields.flag("use_sliding_window").value_or(false))
        window.reset();
    if (m_fields.find("layer_types"))
        return readLayerTypes(window.value_or(0));
    if (!window)
        return;
    const json *full = m_fields.find("max_window_layers");
    if (full && !full->is_number_integer())
        m_fields.problem("max_window_layers must be a whole number.");
    const int64_t firstSliding = full && full->is_number_integer() ? full->get<int64_t>() : kUsualFullLayers;
    for (int64_t layer = 0; layer < shape.layers; ++layer)
        shape.windows.push_back(layer >= firstSliding ? *window : 0);
}

/// window: 0 where sliding attention is off.
void ConfigReader::readLayerTypes(int64_t window)
{
    ModelShape &shape = m_result.shape;
    const json &types = *m_fields.find("layer_types");
    if (!types.is_array() || static_cast<int64_t>(types.size()) != shape.layers) {
        m_fields.problem("layer_types must be a list of num_hidden_layers = {} texts.", shape.layers);
        return;
    }
    bool anySlides = false;
    for (const json &type : types) {
        const bool slides = type == json("sliding_attention");
        if (!slides && type != json("full_attention")) {
            m_fields.problem(
                "layer_types has {}, which is not supported. Supported: full_attention, sliding_attention.",
                type.dump(-1, ' ', false, json::error_handler_t::replace));
            return;
        }
        anySlides = anySlides || slides;
        shape.windows.push_back(slides ? window : 0);
    }
    if (anySlides && window == 0)
        m_fields.problem("layer_types has sliding_attention, but use_sliding_window and sliding_window turn it off.");
    if (!anySlides)
        shape.windows.clear();
}

void ConfigReader::refuseOthers()
{
    const std::string activation = m_fields.text("hidden_act").value_or("silu");
    if (activation != "silu" && activation != "swish")
        m_fields.problem("hidden_act = \"{}\" is not supported: the feed-forward is SwiGLU (silu) here.", activation);
    if (m_fields.find("quantization_config"))
        m_fields.problem("quantization_config: quantized weights can't be trained here. Use the folder of the weights "
                         "in float32, bfloat16 or float16.");
    if (m_fields.number("attention_dropout").value_or(0) != 0)
        m_result.warnings.emplace_back("attention_dropout is not applied: nothing drops out here.");
}

} // namespace

std::string_view toText(ModelFamily family)
{
    return familyOf(family).type;
}

Result<HfConfig> parseHfConfig(std::string_view text, std::string_view where)
{
    const json config = json::parse(text, nullptr, false);
    if (config.is_discarded() || !config.is_object())
        return fail("{} is no JSON object.", where);
    ConfigReader reader(config);
    HfConfig result = reader.read();
    if (!reader.problems().empty())
        return fail("{} can't be used:\n  {}", where, fmt::join(reader.problems(), "\n  "));
    return result;
}

Result<HfConfig> readHfConfig(const std::filesystem::path &folder)
{
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored))
        return fail("There is no folder {}. model.path is a folder with a config.json in Hugging Face's layout.",
                    folder.string());
    const std::filesystem::path path = folder / "config.json";
    if (!std::filesystem::exists(path, ignored))
        return fail("{} has no config.json. model.path is a folder in Hugging Face's layout.", folder.string());
    if (const auto bytes = std::filesystem::file_size(path, ignored); !ignored && bytes > kMostBytes)
        return fail("{} has {} bytes: that is no configuration.", path.string(), bytes);
    const auto text = readTextFile(path);
    if (!text)
        return tl::unexpected(text.error());
    auto config = parseHfConfig(*text, path.string());
    if (config) {
        const std::filesystem::path real = std::filesystem::weakly_canonical(folder, ignored);
        config->shape.name = (ignored ? folder : real).filename().string();
    }
    return config;
}

Result<std::string> hfConfigText(const ModelShape &shape, std::string_view dtype, std::string_view original)
{
    json config = original.empty() ? json::object() : json::parse(original, nullptr, false);
    if (!config.is_object())
        return fail("The config.json that a copy should be made of is no JSON object.");
    for (const char *old : {"rope_scaling", "rope_theta", "torch_dtype", "original_max_position_embeddings"})
        config.erase(old);
    const Family &family = familyOf(shape.family);
    config["model_type"] = family.type;
    config["architectures"] = {family.architecture};
    config["vocab_size"] = shape.vocabulary;
    config["hidden_size"] = shape.hidden;
    config["intermediate_size"] = shape.ffnHidden;
    config["num_hidden_layers"] = shape.layers;
    config["num_attention_heads"] = shape.heads;
    config["num_key_value_heads"] = shape.keyValueHeads;
    config["head_dim"] = shape.headSize;
    config["max_position_embeddings"] = shape.trainedSequence();
    config["rms_norm_eps"] = shape.normEps;
    config["initializer_range"] = shape.initialStd;
    config["hidden_act"] = "silu";
    config["tie_word_embeddings"] = shape.tiedEmbeddings;
    config["rope_parameters"] = ropeParametersOf(shape);
    config["dtype"] = dtype;
    if (shape.family == ModelFamily::Llama || shape.family == ModelFamily::Qwen3)
        config["attention_bias"] = shape.queryKeyValueBias;
    if (shape.family == ModelFamily::Llama)
        config["mlp_bias"] = shape.feedForwardBias;
    // Tokens' ids of the class's defaults would be beyond a small vocabulary.
    for (const char *id : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
        if (!config.contains(id))
            config[id] = nullptr;
    }
    const int64_t window = shape.windows.empty() ? 0 : *std::ranges::max_element(shape.windows);
    if (shape.family == ModelFamily::Mistral)
        config["sliding_window"] = window == 0 ? json(nullptr) : json(window);
    if (shape.family == ModelFamily::Qwen2 || shape.family == ModelFamily::Qwen3) {
        config["use_sliding_window"] = window != 0;
        config["sliding_window"] = window == 0 ? json(nullptr) : json(window);
        json types = json::array();
        for (int64_t layer = 0; layer < shape.layers; ++layer)
            types.push_back(shape.windowOf(layer) == 0 ? "full_attention" : "sliding_attention");
        config["layer_types"] = std::move(types);
    }
    return config.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace shardscope::shapes
