// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/transformer_keys.h"

#include "core/study/yaml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace meshwright {

namespace {

using C = TransformerConfig;

constexpr std::array<TransformerKey<std::int64_t>, 36> kSizes{{{"layers", &C::layers, "layers"}, {"hidden", &C::hidden, "hidden"},
    {"heads", &C::heads, "heads"}, {"kv_heads", &C::keyValueHeads, "keyValueHeads"}, {"head_dim", &C::headDim, "headDim"},
    {"ffn", &C::ffn, "ffn"}, {"vocabulary", &C::vocabulary, "vocabulary"}, {"max_positions", &C::maxPositions, "maxPositions"},
    {"window", &C::slidingWindow, "slidingWindow"}, {"window_layers", &C::slidingWindowLayers, "slidingWindowLayers"},
    {"experts", &C::experts, "experts"}, {"experts_per_token", &C::expertsPerToken, "expertsPerToken"},
    {"expert_ffn", &C::expertFfn, "expertFfn"}, {"shared_experts", &C::sharedExperts, "sharedExperts"},
    {"dense_layers", &C::denseLayers, "denseLayers"}, {"query_rank", &C::queryRank, "queryRank"},
    {"kv_rank", &C::keyValueRank, "keyValueRank"}, {"latent_rotary_dim", &C::latentRotaryDim, "latentRotaryDim"},
    {"value_head_dim", &C::valueHeadDim, "valueHeadDim"}, {"output_rank", &C::outputRank, "outputRank"},
    {"output_groups", &C::outputGroups, "outputGroups"}, {"compression", &C::compression, "compression"},
    {"compression_overlap", &C::compressionOverlap, "compressionOverlap"}, {"index_heads", &C::indexHeads, "indexHeads"},
    {"index_head_dim", &C::indexHeadDim, "indexHeadDim"}, {"index_keys", &C::indexKeys, "indexKeys"},
    {"state_heads", &C::stateHeads, "stateHeads"}, {"state_key_heads", &C::stateKeyHeads, "stateKeyHeads"},
    {"state_key_dim", &C::stateKeyDim, "stateKeyDim"}, {"state_value_dim", &C::stateValueDim, "stateValueDim"},
    {"convolution", &C::convolution, "convolution"}, {"decay_rank", &C::decayRank, "decayRank"},
    {"gate_rank", &C::gateRank, "gateRank"}, {"expert_hidden", &C::expertHidden, "expertHidden"},
    {"residual_streams", &C::residualStreams, "residualStreams"}, {"sequence", nullptr, "sequence"}}};

constexpr std::array<TransformerKey<double>, 6> kNumbers{
    {{"norm_epsilon", &C::normEpsilon, "normEpsilon"}, {"rotary_base", &C::rotaryBase, "rotaryBase"},
        {"rotary_fraction", &C::rotaryFraction, "rotaryFraction"}, {"query_scale", &C::queryScale, "queryScale"},
        {"attention_softcap", &C::attentionSoftcap, "attentionSoftcap"}, {"logit_softcap", &C::logitSoftcap, "logitSoftcap"}}};

constexpr std::array<TransformerKey<bool>, 12> kFlags{
    {{"gated", &C::gatedFfn, "gatedFfn"}, {"tied", &C::tiedEmbeddings, "tiedEmbeddings"},
        {"attention_bias", &C::attentionBias, "attentionBias"}, {"output_bias", &C::outputBias, "outputBias"},
        {"ffn_bias", &C::ffnBias, "ffnBias"}, {"parallel_block", &C::parallelBlock, "parallelBlock"},
        {"qk_norm", &C::queryKeyNorm, "queryKeyNorm"}, {"post_norms", &C::postNorms, "postNorms"},
        {"embedding_scale", &C::embeddingScale, "embeddingScale"}, {"output_gate", &C::outputGate, "outputGate"},
        {"keys_as_values", &C::keysAsValues, "keysAsValues"}, {"ffn_beside_experts", &C::ffnBesideExperts, "ffnBesideExperts"}}};

template <typename T>
const char* keyOf(std::span<const TransformerKey<T>> keys, std::string_view name)
{
    const auto found = std::find_if(keys.begin(), keys.end(), [&](const auto& key) { return key.name == name; });
    return found == keys.end() ? nullptr : found->key;
}

} // namespace

std::span<const TransformerKey<std::int64_t>> transformerSizes()
{
    return std::span(kSizes).first(kSizes.size() - 1); // the sequence is a key of the study
}

std::span<const TransformerKey<double>> transformerNumbers()
{
    return kNumbers;
}

std::span<const TransformerKey<bool>> transformerFlags()
{
    return kFlags;
}

const Words<NormKind>& normWords()
{
    static const Words<NormKind> words = {{"rms", NormKind::RmsNorm}, {"layer", NormKind::LayerNorm}};
    return words;
}

const Words<PositionKind>& positionWords()
{
    static const Words<PositionKind> words
        = {{"rotary", PositionKind::Rotary}, {"learned", PositionKind::Learned}, {"none", PositionKind::None}};
    return words;
}

const Words<TransformerActivation>& transformerActivationWords()
{
    static const Words<TransformerActivation> words
        = {{"silu", TransformerActivation::Silu}, {"gelu", TransformerActivation::Gelu},
            {"gelu_tanh", TransformerActivation::GeluTanh}, {"relu", TransformerActivation::Relu}};
    return words;
}

const Words<MixerKind>& mixerWords()
{
    static const Words<MixerKind> words = {{"attention", MixerKind::Attention}, {"delta_rule", MixerKind::DeltaRule},
        {"state_space", MixerKind::StateSpace}, {"none", MixerKind::None}};
    return words;
}

const Words<Prediction>& predictionWords()
{
    static const Words<Prediction> words = {{"every_token", Prediction::EveryToken}, {"last_token", Prediction::LastToken}};
    return words;
}

const Words<TokenLookup>& lookupWords()
{
    static const Words<TokenLookup> words = {{"gather", TokenLookup::Gather}, {"one_hot", TokenLookup::Product}};
    return words;
}

const Words<AttentionOp>& attentionWords()
{
    static const Words<AttentionOp> words = {{"fused", AttentionOp::Fused}, {"plain", AttentionOp::Plain}};
    return words;
}

const Words<ContextExchange>& contextWords()
{
    static const Words<ContextExchange> words
        = {{"gather", ContextExchange::Gather}, {"ring", ContextExchange::Ring}, {"ulysses", ContextExchange::Ulysses}};
    return words;
}

const Words<LossKernels>& lossKernelWords()
{
    static const Words<LossKernels> words
        = {{"fused", LossKernels::Fused}, {"in_place", LossKernels::InPlace}, {"separate", LossKernels::Separate}};
    return words;
}

const Words<Recompute>& recomputeWords()
{
    static const Words<Recompute> words = {{"none", Recompute::None}, {"selective", Recompute::Selective},
        {"full", Recompute::Full}, {"layer", Recompute::Layer}, {"everything_saveable", Recompute::Nothing},
        {"dots_saveable", Recompute::Dots}, {"dots_with_no_batch_dims_saveable", Recompute::DotsWithoutBatch},
        {"minimal", Recompute::DotsWithoutBatch}, // MaxText's name
        {"offload_dot_with_no_batch_dims", Recompute::OffloadedDots}, {"minimal_offloaded", Recompute::OffloadedDots},
        {"minimal_with_context", Recompute::DotsAndAttention}};
    return words;
}

const std::vector<KeptByName>& keptByName()
{
    static const std::vector<KeptByName> policies = {
        {"save_dot_with_context_except_mlp", {"attention.q", "attention.k", "attention.v", "attention.mixed", "attention", "ffn"},
            {}},
        {"save_dot_except_mlp", {"attention.q", "attention.k", "attention.v", "attention", "ffn"}, {}},
        {"save_dot_except_mlpwi", {"attention.q", "attention.k", "attention.v", "attention", "ffn"}, {}},
        {"save_qkv_proj", {"attention.q", "attention.k", "attention.v"}, {}},
        {"save_out_proj", {"attention"}, {}},
        {"save_context", {"attention.mixed"}, {}},
        {"qkv_proj_offloaded", {}, {"attention.q", "attention.k", "attention.v"}},
    };
    return policies;
}

Problem inStudyWords(Problem problem)
{
    const std::string name = problem.place.path;
    const char* key = keyOf<std::int64_t>(kSizes, name);
    key = key != nullptr ? key : keyOf<double>(kNumbers, name);
    if (name == "capacityFactor")
        key = "capacity_factor";
    if (name == "dispatchGroups")
        key = "dispatch_groups";
    if (name == "zigzag" || name == "context")
        key = name == "zigzag" ? "attention.zigzag" : "attention.context";
    if (name == "lossChunks")
        key = "loss.cross_entropy.chunks";
    if (key == nullptr)
        return problem;
    if (problem.message.starts_with(name + " "))
        problem.message = key + problem.message.substr(name.size());
    problem.place.path = name == "sequence" ? name : fmt::format("model.transformer.{}", key);
    return problem;
}

std::string recomputeText(const TransformerModel& model)
{
    if (model.recompute != Recompute::Named)
        return wordOf(recomputeWords(), model.recompute);
    if (model.offloaded.empty())
        return fmt::format("{{keep: [{}]}}", fmt::join(model.kept, ", "));
    const std::string kept = model.kept.empty() ? std::string() : fmt::format("keep: [{}], ", fmt::join(model.kept, ", "));
    return fmt::format("{{{}offload: [{}]}}", kept, fmt::join(model.offloaded, ", "));
}

namespace {

/// The keys in which `c` differs from `from`.
std::vector<std::string> differences(const TransformerConfig& c, const TransformerConfig& from)
{
    std::vector<std::string> parts;
    const auto add = [&](const auto& keys) {
        for (const auto& key : keys) {
            if (c.*key.member != from.*key.member)
                parts.push_back(fmt::format("{}: {}", key.key, c.*key.member));
        }
    };
    add(transformerSizes());
    add(transformerNumbers());
    add(transformerFlags());
    if (c.mixer != from.mixer)
        parts.push_back(fmt::format("mixer: {}", wordOf(mixerWords(), c.mixer)));
    return parts;
}

/// `kinds: [{mixer: delta_rule, state_heads: 4}, {}], pattern: [0, 0, 0, 1]`
void addKinds(const TransformerConfig& c, std::vector<std::string>& parts)
{
    std::vector<std::string> kinds;
    for (TransformerConfig kind : c.kinds) {
        kind.layers = c.layers; // counted by the pattern
        kinds.push_back(fmt::format("{{{}}}", fmt::join(differences(kind, c), ", ")));
    }
    parts.push_back(fmt::format("kinds: [{}], pattern: [{}]", fmt::join(kinds, ", "), fmt::join(c.pattern, ", ")));
}

} // namespace

std::string transformerText(const TransformerModel& model)
{
    const TransformerConfig& c = model.config;
    std::vector<std::string> parts = differences(c, {});
    const auto add = [&](const char* key, const auto& value) { parts.push_back(fmt::format("{}: {}", key, value)); };
    if (!c.name.empty())
        parts.insert(parts.begin(), fmt::format("name: {}", inQuotes(c.name)));
    if (!c.kinds.empty())
        addKinds(c, parts);
    add("norm", wordOf(normWords(), c.norm));
    add("position", wordOf(positionWords(), c.position));
    add("activation", wordOf(transformerActivationWords(), c.activation));
    add("predict", wordOf(predictionWords(), model.predict));
    if (model.lookup != TokenLookup::Gather)
        add("lookup", wordOf(lookupWords(), model.lookup));
    if (model.attention != AttentionOp::Fused)
        add("attention", wordOf(attentionWords(), model.attention));
    else if (model.zigzag > 0)
        add("attention", fmt::format("{{context: {}, zigzag: {}}}", wordOf(contextWords(), model.context), model.zigzag));
    else if (model.context != ContextExchange::Gather)
        add("attention", fmt::format("{{context: {}}}", wordOf(contextWords(), model.context)));
    std::vector<std::string> loss;
    if (model.lossChunks != 1)
        loss.push_back(fmt::format("chunks: {}", model.lossChunks));
    if (model.lossKernels != LossKernels::Fused)
        loss.push_back("kernels: " + wordOf(lossKernelWords(), model.lossKernels));
    if (!loss.empty())
        add("loss", fmt::format("{{cross_entropy: {{{}}}}}", fmt::join(loss, ", ")));
    if (model.unrolled)
        add("unroll", true);
    if (model.capacityFactor != TransformerModel{}.capacityFactor)
        add("capacity_factor", model.capacityFactor);
    if (model.dispatchGroups != 1)
        add("dispatch_groups", model.dispatchGroups);
    return fmt::format("transformer: {{{}}}", fmt::join(parts, ", "));
}

} // namespace meshwright
