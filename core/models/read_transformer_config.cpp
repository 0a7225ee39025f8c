// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/config_fields.h"

#include "core/models/layer_fields.h"
#include "core/models/maxtext_config.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

namespace meshwright {

namespace {

using Json = nlohmann::json;

constexpr const char* kWhatIsRead = "give a config.json of Hugging Face, or a model file of MaxText";

void readGpt2(FieldReader& reader, Problems& problems, TransformerConfig& c)
{
    c.layers = reader.size("n_layer", 12);
    c.hidden = reader.size("n_embd", 768);
    c.heads = c.keyValueHeads = reader.size("n_head", 12);
    c.headDim = evenHeadDim(reader, problems, c);
    c.ffn = reader.size("n_inner", std::min(4 * c.hidden, kLargestTransformerSize));
    c.vocabulary = reader.size("vocab_size", 50257);
    c.maxPositions = reader.size("n_positions", 1024);
    c.tiedEmbeddings = reader.flag("tie_word_embeddings", true);
    c.norm = NormKind::LayerNorm;
    c.normEpsilon = reader.number("layer_norm_epsilon", 1e-5);
    c.position = PositionKind::Learned;
    c.activation = activationOf(reader, "activation_function", "gelu_new");
    c.attentionBias = c.outputBias = c.ffnBias = true;
}

void readNeoX(FieldReader& reader, Problems& problems, TransformerConfig& c)
{
    c.layers = reader.size("num_hidden_layers", 44);
    c.hidden = reader.size("hidden_size", 6144);
    c.heads = c.keyValueHeads = reader.size("num_attention_heads", 64);
    c.headDim = evenHeadDim(reader, problems, c);
    c.ffn = reader.size("intermediate_size", 24576);
    c.vocabulary = reader.size("vocab_size", 50432);
    c.maxPositions = reader.size("max_position_embeddings", 2048);
    c.tiedEmbeddings = reader.flag("tie_word_embeddings", false);
    c.norm = NormKind::LayerNorm;
    c.normEpsilon = reader.number("layer_norm_eps", 1e-5);
    c.position = PositionKind::Rotary;
    c.rotaryFraction = rotaryNumber(reader, problems, "rotary_pct", "partial_rotary_factor", 0.25);
    c.rotaryBase = rotaryNumber(reader, problems, "rotary_emb_base", "rope_theta", 10000.0);
    c.activation = activationOf(reader, "hidden_act", "gelu");
    c.parallelBlock = reader.flag("use_parallel_residual", true);
    c.attentionBias = c.outputBias = reader.flag("attention_bias", true);
    c.ffnBias = true;
}

/// The defaults in which the models of LLaMA's form differ.
struct LlamaForm {
    std::int64_t layers = 32;
    std::int64_t hidden = 4096;
    std::int64_t heads = 32;
    std::int64_t keyValueHeads = 0; ///< 0: as heads
    std::int64_t headDim = 0; ///< 0: hidden / heads
    std::int64_t ffn = 11008;
    std::int64_t vocabulary = 32000;
    std::int64_t maxPositions = 2048;
    double epsilon = 1e-6;
    double rotaryBase = 10000.0;
    const char* activation = "silu";
    bool tied = false;
};

void readLlamaForm(FieldReader& reader, Problems& problems, const LlamaForm& form, TransformerConfig& c)
{
    c.layers = reader.size("num_hidden_layers", form.layers);
    c.hidden = reader.size("hidden_size", form.hidden);
    c.heads = reader.size("num_attention_heads", form.heads);
    c.keyValueHeads = reader.size("num_key_value_heads", form.keyValueHeads > 0 ? form.keyValueHeads : c.heads);
    const bool saysHeadDim = form.headDim > 0 || reader.find("head_dim") != nullptr;
    c.headDim = reader.size("head_dim", form.headDim > 0 ? form.headDim : c.hidden / c.heads);
    if (!saysHeadDim)
        c.headDim = evenHeadDim(reader, problems, c);
    c.ffn = reader.size("intermediate_size", form.ffn);
    c.gatedFfn = true;
    c.vocabulary = reader.size("vocab_size", form.vocabulary);
    c.maxPositions = reader.size("max_position_embeddings", form.maxPositions);
    c.tiedEmbeddings = reader.flag("tie_word_embeddings", form.tied);
    c.norm = NormKind::RmsNorm;
    c.normEpsilon = reader.number("rms_norm_eps", form.epsilon);
    c.position = PositionKind::Rotary;
    c.rotaryBase = rotaryNumber(reader, problems, "rope_theta", "rope_theta", form.rotaryBase);
    const char* activationField = reader.find("hidden_activation") ? "hidden_activation" : "hidden_act";
    c.activation = activationOf(reader, activationField, form.activation);
}

void readLlama(FieldReader& reader, Problems& problems, TransformerConfig& c)
{
    readLlamaForm(reader, problems, {}, c);
    c.attentionBias = c.outputBias = reader.flag("attention_bias", false);
    c.ffnBias = reader.flag("mlp_bias", false);
}

void readMistral(FieldReader& reader, Problems& problems, TransformerConfig& c)
{
    readLlamaForm(reader, problems, {.keyValueHeads = 8, .ffn = 14336, .maxPositions = 131072}, c);
    // A null here is a choice (no window), not a field that is left out.
    c.slidingWindow = reader.has("sliding_window") ? reader.size("sliding_window", 0) : 4096;
}

void readMixtral(FieldReader& reader, Problems& problems, TransformerConfig& c)
{
    readLlamaForm(
        reader, problems, {.keyValueHeads = 8, .ffn = 14336, .maxPositions = 131072, .epsilon = 1e-5, .rotaryBase = 1e6}, c);
    c.slidingWindow = reader.size("sliding_window", 0);
    c.experts = reader.size("num_local_experts", 8);
    c.expertsPerToken = reader.size("num_experts_per_tok", 2);
    c.expertFfn = c.ffn;
}

/// Qwen's windows are those of layer_types, or start after max_window_layers layers, and only where use_sliding_window says so.
void readQwenWindow(FieldReader& reader, TransformerConfig& c)
{
    const bool used = reader.flag("use_sliding_window", false);
    const std::int64_t window = reader.has("sliding_window") ? reader.size("sliding_window", 0) : 4096;
    const std::int64_t whole = reader.size("max_window_layers", 28, 0);
    const std::int64_t windowed = windowedLayers(reader, c.layers).value_or(c.layers - whole);
    if (!used || window == 0 || windowed <= 0)
        return;
    c.slidingWindow = window;
    c.slidingWindowLayers = windowed;
}

void readQwen2(FieldReader& reader, Problems& problems, TransformerConfig& c)
{
    readLlamaForm(reader, problems, {.ffn = 22016, .vocabulary = 151936, .maxPositions = 32768}, c);
    readQwenWindow(reader, c);
    c.attentionBias = true;
}

void readQwen3(FieldReader& reader, Problems& problems, TransformerConfig& c)
{
    readLlamaForm(reader, problems, {.headDim = 128, .ffn = 22016, .vocabulary = 151936, .maxPositions = 32768}, c);
    readQwenWindow(reader, c);
    c.attentionBias = c.outputBias = reader.flag("attention_bias", false);
    c.queryKeyNorm = true;
}

void readGemmaForm(FieldReader& reader, Problems& problems, const LlamaForm& defaults, TransformerConfig& c)
{
    readLlamaForm(reader, problems, defaults, c);
    // The library takes hidden_activation, and where that is missing the tanh form, whatever the older hidden_act says.
    if (!reader.find("hidden_activation"))
        c.activation = TransformerActivation::GeluTanh;
    c.attentionBias = c.outputBias = reader.flag("attention_bias", false);
    c.embeddingScale = true;
}

void readGemma(FieldReader& reader, Problems& problems, TransformerConfig& c)
{
    readGemmaForm(reader, problems,
        {.layers = 28,
            .hidden = 3072,
            .heads = 16,
            .keyValueHeads = 16,
            .headDim = 256,
            .ffn = 24576,
            .vocabulary = 256000,
            .maxPositions = 8192,
            .activation = "gelu_pytorch_tanh",
            .tied = true},
        c);
}

void readGemma2(FieldReader& reader, Problems& problems, TransformerConfig& c)
{
    readGemmaForm(reader, problems,
        {.layers = 26,
            .hidden = 2304,
            .heads = 8,
            .keyValueHeads = 4,
            .headDim = 256,
            .ffn = 9216,
            .vocabulary = 256000,
            .maxPositions = 8192,
            .activation = "gelu_pytorch_tanh",
            .tied = true},
        c);
    c.postNorms = true;
    const std::int64_t windowed
        = windowedLayers(reader, c.layers).value_or((c.layers + 1) / 2); // every other layer, from the first
    const std::int64_t window = reader.has("sliding_window") ? reader.size("sliding_window", 0) : 4096;
    c.slidingWindow = windowed > 0 ? window : 0;
    c.slidingWindowLayers = c.slidingWindow > 0 ? windowed : 0;
    c.queryScale = reader.number("query_pre_attn_scalar", 256.0);
    c.attentionSoftcap = reader.has("attn_logit_softcapping") ? reader.number("attn_logit_softcapping", 0.0) : 50.0;
    c.logitSoftcap = reader.has("final_logit_softcapping") ? reader.number("final_logit_softcapping", 0.0) : 30.0;
}

/// Latent attention, and experts in all layers but the first ones. `form` and `experts` have the defaults in which the versions differ.
void readDeepSeek(
    FieldReader& reader, Problems& problems, const LlamaForm& form, const TransformerConfig& experts, TransformerConfig& c)
{
    readLlamaForm(reader, problems, form, c);
    // Null is a choice: queries straight from the residual.
    c.queryRank = reader.has("q_lora_rank") ? reader.size("q_lora_rank", 0) : 1536;
    c.keyValueRank = reader.size("kv_lora_rank", 512);
    c.headDim = reader.size("qk_nope_head_dim", 128);
    c.latentRotaryDim = reader.size("qk_rope_head_dim", 64);
    c.valueHeadDim = reader.size("v_head_dim", 128);
    c.experts = reader.size("n_routed_experts", experts.experts);
    c.expertsPerToken = reader.size("num_experts_per_tok", experts.expertsPerToken);
    c.sharedExperts = reader.size("n_shared_experts", experts.sharedExperts, 0);
    c.expertFfn = reader.size("moe_intermediate_size", experts.expertFfn);
    c.denseLayers = reader.size("first_k_dense_replace", experts.denseLayers, 0);
    if (reader.size("moe_layer_freq", 1) != 1)
        problems.push_back({"MW1353", "moe_layer_freq must be 1: experts in only some of the later layers are not supported", {},
            {.path = "moe_layer_freq"}});
    if (reader.flag("attention_bias", false))
        problems.push_back({"MW1353", "attention_bias must be false: biases of latent attention are not supported", {},
            {.path = "attention_bias"}});
}

void readDeepSeekV2(FieldReader& reader, Problems& problems, TransformerConfig& c)
{
    TransformerConfig experts;
    experts.experts = 64;
    experts.expertsPerToken = 6;
    experts.sharedExperts = 2;
    experts.expertFfn = 1407;
    readDeepSeek(reader, problems, {.vocabulary = 102400}, experts, c);
}

void readDeepSeekV3(FieldReader& reader, Problems& problems, TransformerConfig& c)
{
    TransformerConfig experts;
    experts.experts = 256;
    experts.expertsPerToken = 8;
    experts.sharedExperts = 1;
    experts.expertFfn = 2048;
    experts.denseLayers = 3;
    readDeepSeek(reader, problems,
        {.layers = 61, .hidden = 7168, .heads = 128, .ffn = 18432, .vocabulary = 129280, .maxPositions = 4096}, experts, c);
}

struct Family {
    const char* modelType;
    void (*read)(FieldReader&, Problems&, TransformerConfig&);
};
constexpr std::array<Family, 11> kFamilies{{{"gpt2", readGpt2}, {"gpt_neox", readNeoX}, {"llama", readLlama},
    {"mistral", readMistral}, {"mixtral", readMixtral}, {"qwen2", readQwen2}, {"qwen3", readQwen3}, {"gemma", readGemma},
    {"gemma2", readGemma2}, {"deepseek_v2", readDeepSeekV2}, {"deepseek_v3", readDeepSeekV3}}};

constexpr int kMostDeep = 100; ///< objects and lists inside of each other
constexpr std::array<std::string_view, 3> kInfinities = {"NaN", "Infinity", "-Infinity"};

Place placeOfByte(std::string_view text, std::size_t byte)
{
    Place place{.line = 1, .column = 1};
    for (std::size_t i = 0; i < std::min(byte, text.size()); ++i) {
        ++place.column;
        if (text[i] == '\n') {
            ++place.line;
            place.column = 1;
        }
    }
    return place;
}

/// Python writes numbers that JSON does not have: here they are texts, which no field of a size takes.
std::string withQuotedInfinities(std::string_view text)
{
    std::string plain;
    bool isQuoted = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (!isQuoted) {
            const std::string_view rest = text.substr(at);
            const auto word
                = std::find_if(kInfinities.begin(), kInfinities.end(), [&](auto name) { return rest.starts_with(name); });
            if (word != kInfinities.end()) {
                plain += fmt::format("\"{}\"", *word);
                at += word->size() - 1;
                continue;
            }
        }
        if (text[at] == '"')
            isQuoted = !isQuoted;
        plain += text[at];
        if (isQuoted && text[at] == '\\' && at + 1 < text.size())
            plain += text[++at];
    }
    return plain;
}

Result<Json> parsed(std::string_view text, std::vector<std::string>& notes)
{
    const std::string plain = withQuotedInfinities(text);
    std::vector<std::set<std::string>> open; // objects, by their keys so far
    bool isDeep = false;
    const auto look = [&](int depth, Json::parse_event_t event, Json& key) {
        isDeep = isDeep || depth > kMostDeep;
        if (event == Json::parse_event_t::object_start)
            open.emplace_back();
        else if (event == Json::parse_event_t::object_end)
            open.pop_back();
        else if (event == Json::parse_event_t::key && !open.back().insert(key.get<std::string>()).second)
            notes.push_back(fmt::format("\"{}\" is given twice: the last one counts", key.get<std::string>()));
        return !isDeep;
    };
    try {
        Json json = Json::parse(plain, look);
        if (isDeep)
            return Problem{"MW1350", fmt::format("a model's configuration is at most {} objects and lists deep", kMostDeep)};
        return json;
    } catch (const Json::parse_error& error) {
        const std::size_t byte = error.byte > 0 ? error.byte - 1 : 0;
        const bool isCut = byte >= plain.size();
        return Problem{"MW1350", isCut ? "the text ends in the middle of JSON" : "this is not JSON",
            isCut ? "the file was cut off, or is empty: download it again" : kWhatIsRead, placeOfByte(plain, byte)};
    } catch (const Json::exception&) {
        return Problem{"MW1350", "this is not JSON", kWhatIsRead};
    }
}

/// The part of a configuration that describes the language model; with what the whole says of it where it is silent itself.
Json languagePart(const Json& whole, std::vector<std::string>& notes, std::vector<std::string>& ignored)
{
    for (const char* name : {"text_config", "language_config", "llm_config"}) {
        const auto part = whole.find(name);
        if (part == whole.end() || !part->is_object())
            continue;
        Json language = *part;
        for (const char* field : {"tie_word_embeddings", "model_type"}) {
            if (!language.contains(field) && whole.contains(field))
                language[field] = whole[field];
        }
        notes.push_back(fmt::format("the language model alone is read (\"{}\"): other towers are left out", name));
        Json rest = whole;
        rest.erase(name);
        rest.erase("tie_word_embeddings");
        Problems none;
        noteIgnored(FieldReader(rest, none), notes, ignored);
        return language;
    }
    return whole;
}

/// With the sizes that some files keep in objects by parts of a layer where all others have them.
Json flattened(Json json)
{
    for (const char* name : {"attn_config", "ffn_config"}) {
        const auto part = json.find(name);
        if (part == json.end() || !part->is_object())
            continue;
        const Json inner = *part;
        json.erase(part);
        json.insert(inner.begin(), inner.end()); // what is there stays
    }
    return json;
}

/// The first field that says that layers of an encoder stand beside those of the decoder, which attends to them, or the kind of model, whose class has
/// both where no field says otherwise; empty: none does.
std::string encoderField(const Json& json)
{
    for (const char* field : {"is_encoder_decoder", "encoder_layers", "num_encoder_layers", "num_decoder_layers", "encoder"}) {
        const auto found = json.find(field);
        if (found != json.end() && !found->is_null() && *found != false && *found != 0)
            return field;
    }
    constexpr std::array kOfBoth = {"t5", "mt5", "umt5", "longt5", "bart", "mbart", "pegasus", "marian", "whisper"};
    const auto said = json.find("is_encoder_decoder");
    const auto family = json.find("model_type");
    const bool isOfBoth = family != json.end() && std::ranges::find(kOfBoth, *family) != kOfBoth.end();
    return isOfBoth && (said == json.end() || said->is_null()) ? "model_type" : std::string();
}

bool isMasked(const Json& json)
{
    const auto names = json.find("architectures");
    return names != json.end() && names->is_array() && std::any_of(names->begin(), names->end(), [](const Json& name) {
        return name.is_string() && name.get<std::string>().ends_with("ForMaskedLM");
    });
}

/// Sizes that the file leaves to its family: as Transformers does, but a file that was meant to say them has lost them.
void noteDefaults(FieldReader& reader, const TransformerConfig& c, std::vector<std::string>& notes)
{
    const auto note = [&](FieldReader::Names names, std::int64_t value) {
        if (const std::string name = reader.nameOf(names); reader.find(name) == nullptr)
            notes.push_back(fmt::format("\"{}\" is not given: {}, as its kind of model has it", name, value));
    };
    note({"num_hidden_layers", "n_layer"}, c.layers);
    note({"hidden_size", "n_embd"}, c.hidden);
    note({"num_attention_heads", "n_head"}, c.heads);
    note({"vocab_size"}, c.vocabulary);
    if (c.gatedFfn) // others have four times the hidden size
        note({"intermediate_size"}, c.ffn);
}

Result<TransformerConfig> configOf(const Json& whole, std::vector<std::string>& notes, std::vector<std::string>& ignored)
{
    if (!whole.is_object())
        return Problem{"MW1350", "a model's configuration is a JSON object", kWhatIsRead};
    const Json json = flattened(languagePart(whole, notes, ignored));
    if (const std::string field = encoderField(json); !field.empty())
        return Problem{"MW1351", fmt::format("\"{}\": an encoder and a decoder that attends to it are not known", field),
            "Only one stack of layers is: give the configuration of a decoder, or one with the decoder's sizes.",
            {.path = field}};
    if (isMasked(json))
        notes.emplace_back("the model is taken as a decoder: its tokens attend to those before them, not to all");
    Problems problems;
    FieldReader reader(json, problems);
    const std::string modelType = reader.word("model_type", "");
    if (!problems.empty())
        return problems;
    if (modelType.empty() && reader.find(reader.nameOf({"hidden_size", "n_embd", "d_model", "dim"})) == nullptr)
        return Problem{"MW1352", "\"model_type\" is missing", "Name the kind of model, such as llama, or give its sizes.",
            {.path = "model_type"}};
    TransformerConfig config;
    config.name = reader.word("name", reader.word("_name_or_path", modelType));
    const auto family
        = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& known) { return known.modelType == modelType; });
    if (family != kFamilies.end()) {
        family->read(reader, problems, config);
        noteDefaults(reader, config, notes);
        noteIgnored(reader, notes, ignored);
    } else
        readByFields(reader, problems, config, notes, ignored);
    if (problems.empty())
        append(problems, transformerProblems(config));
    if (!problems.empty())
        return problems;
    return config;
}

} // namespace

Result<TransformerConfig> readTransformerConfig(
    std::string_view json, std::string_view file, std::vector<std::string>* notes, std::vector<std::string>* ignored)
{
    std::vector<std::string> found;
    const auto document = isMaxTextConfig(json) ? Result<Json>(fieldsOfMaxText(json, found)) : parsed(json, found);
    if (!document)
        return inFile(document.error(), std::string(file));
    std::vector<std::string> unknown;
    auto config = configOf(*document, found, unknown);
    if (ignored != nullptr)
        *ignored = std::move(unknown);
    if (notes != nullptr)
        *notes = std::move(found);
    if (!config)
        return inFile(config.error(), std::string(file));
    return config;
}

} // namespace meshwright
