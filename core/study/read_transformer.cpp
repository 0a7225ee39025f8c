// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/model_file.h"
#include "core/study/study_reader.h"
#include "core/study/transformer_keys.h"

#include <algorithm>

namespace meshwright {

/// The configuration file, relative to the study; a plain name may also be that of a model that comes with Meshwright.
bool StudyReader::readConfig(const DocNode& node, TransformerConfig& config)
{
    const std::string path = "model.transformer.config";
    const auto name = text(node, path, "the name of a file");
    if (!name)
        return false;
    std::filesystem::path file = study.resolved(*name);
    if (file == "-")
        file = "./-"; // a study never waits for the standard input
    const auto content = readModelFile(*name, file);
    std::vector<std::string> notes;
    auto read = content ? readTransformerConfig(content->text, content->path.string(), &notes)
                        : Result<TransformerConfig>(content.error());
    if (read) {
        config = *std::move(read);
        for (const std::string& note : notes) {
            Problem& said = problems.emplace_back(
                Problem{"MW1357", fmt::format("{}: {}", content->path.filename().string(), note), {}, node.place(path)});
            said.severity = Severity::Note;
        }
        return true;
    }
    for (Problem problem : read.error()) {
        if (problem.place.line == 0) { // the field, if there is one, is in the message
            if (content)
                problem.message = fmt::format("{}: {}", content->path.filename().string(), problem.message);
            problem.place = node.place(path);
        }
        problems.push_back(std::move(problem));
    }
    return false;
}

/// False when a value could not be read.
bool StudyReader::readSizes(Fields& fields, TransformerConfig& config)
{
    bool good = true;
    const auto set = [&](auto value, auto& target) {
        good = good && value.has_value();
        target = value.value_or(target);
    };
    for (const auto& key : transformerSizes()) {
        if (const DocNode* node = fields.take(key.key))
            set(integer(*node, fields.pathOf(key.key)), config.*key.member);
    }
    for (const auto& key : transformerNumbers()) {
        if (const DocNode* node = fields.take(key.key))
            set(number(*node, fields.pathOf(key.key)), config.*key.member);
    }
    for (const auto& key : transformerFlags()) {
        if (const DocNode* node = fields.take(key.key))
            set(truth(*node, fields.pathOf(key.key)), config.*key.member);
    }
    word(fields.take("mixer"), fields.pathOf("mixer"), mixerWords(), config.mixer);
    return good;
}

/// `kinds: [{mixer: state_space, ..}, {}]`, each with the keys in which it differs from the model's own, and `pattern: [0, 0, 1]`, the kind of each
/// layer, which begins again where there are more layers. False when a value could not be read.
bool StudyReader::readKinds(Fields& fields, TransformerConfig& config)
{
    const DocNode* kinds = fields.take("kinds");
    const DocNode* pattern = fields.take("pattern");
    if (kinds == nullptr && pattern == nullptr)
        return true;
    const std::string path = fields.pathOf("kinds");
    if (kinds == nullptr || pattern == nullptr || kinds->kind != DocNode::Kind::List || pattern->kind != DocNode::Kind::List) {
        const DocNode& given = kinds != nullptr ? *kinds : *pattern;
        wrongKind(given, path, "two lists, kinds and pattern", "write kinds: [{mixer: state_space}, {}], pattern: [0, 0, 1]");
        return false;
    }
    const auto most = static_cast<std::size_t>(kMostTransformerLayers);
    if (tooMany(*kinds, path, most, "kinds of layers")
        || tooMany(*pattern, fields.pathOf("pattern"), most, "layers in a pattern"))
        return false;
    bool good = true;
    TransformerConfig base = config;
    base.kinds.clear();
    base.pattern.clear();
    base.denseLayers = base.slidingWindowLayers = base.layers = 0;
    config.kinds.clear();
    config.pattern.clear();
    for (std::size_t i = 0; i < kinds->entries.size(); ++i) {
        Fields own(*this, kinds->entries[i].value, fmt::format("{}.{}", path, i));
        TransformerConfig& kind = config.kinds.emplace_back(base);
        good = readSizes(own, kind) && good;
        own.close();
    }
    for (const DocEntry& entry : pattern->entries) {
        const auto kind = integer(entry.value, fields.pathOf("pattern"));
        good = good && kind.has_value();
        config.pattern.push_back(kind.value_or(0));
    }
    return good;
}

void countKinds(TransformerConfig& config)
{
    const std::vector<std::int64_t> period = std::move(config.pattern);
    const std::int64_t layers = std::clamp<std::int64_t>(config.layers, 0, kMostTransformerLayers);
    config.pattern.clear();
    for (TransformerConfig& kind : config.kinds)
        kind.layers = 0;
    for (std::int64_t i = 0; i < layers && !period.empty(); ++i) {
        const std::int64_t kind = period[static_cast<std::size_t>(i) % period.size()];
        config.pattern.push_back(kind);
        if (kind >= 0 && kind < static_cast<std::int64_t>(config.kinds.size()))
            ++config.kinds[static_cast<std::size_t>(kind)].layers;
    }
    for (std::size_t i = config.kinds.size(); i-- > 0;) {
        if (config.kinds[i].layers > 0)
            continue;
        config.kinds.erase(config.kinds.begin() + static_cast<std::ptrdiff_t>(i));
        for (std::int64_t& kind : config.pattern)
            kind -= kind > static_cast<std::int64_t>(i) ? 1 : 0;
    }
}

/// Keys beside a configuration count for all kinds of its layers that have what they are about.
void StudyReader::passToKinds(Fields& fields, TransformerConfig& config)
{
    for (TransformerConfig& kind : config.kinds) {
        const auto pass = [&](const auto& keys) {
            for (const auto& key : keys) {
                if (fields.take(key.key) != nullptr && kind.*key.member != 0)
                    kind.*key.member = config.*key.member;
            }
        };
        pass(transformerSizes());
        pass(transformerNumbers());
        for (const auto& key : transformerFlags()) {
            if (fields.take(key.key) != nullptr)
                kind.*key.member = config.*key.member;
        }
    }
}

namespace {

/// The largest number up to `most` that divides `number`. Preconditions: both >= 1.
std::int64_t largestDivisor(std::int64_t number, std::int64_t most)
{
    constexpr std::int64_t kTried = 1 << 20; // of heads nobody has more
    std::int64_t divisor = std::min({number, most, kTried});
    while (number % divisor != 0)
        --divisor;
    return divisor;
}

} // namespace

/// What follows from other sizes where it is not given.
void StudyReader::completeSizes(Fields& fields, TransformerConfig& config)
{
    const auto absent = [&](const char* key) { return fields.take(key) == nullptr; };
    if (absent("kv_heads"))
        config.keyValueHeads = config.heads;
    if (const DocNode* heads = fields.take("heads"); absent("head_dim") && config.heads > 0) {
        config.headDim = config.hidden / config.heads;
        if (config.hidden % config.heads != 0 && config.hidden > 0 && heads != nullptr)
            report("MW1353", fmt::format("a hidden size of {} is not divisible by {} heads", config.hidden, config.heads),
                fmt::format("use {} heads, or give the size of a head: head_dim: {}", largestDivisor(config.hidden, config.heads),
                    std::max<std::int64_t>(1, config.headDim)),
                heads->place(fields.pathOf("heads")), "without head_dim a head has hidden / heads elements")
                .fixSettings
                = {fmt::format("{}={}", fields.pathOf("heads"), largestDivisor(config.hidden, config.heads))};
    }
    const bool hasDense = config.experts == 0 || config.denseLayers > 0;
    const std::int64_t usual = config.hidden <= kLargestDimension / 4 ? 4 * config.hidden : config.hidden;
    if (absent("ffn") && hasDense)
        config.ffn = usual;
    if (absent("expert_ffn") && config.experts > 0)
        config.expertFfn = config.ffn > 0 ? config.ffn : usual;
}

/// `{cross_entropy: {chunks: 8, kernels: in_place}}`
void StudyReader::readLoss(const DocNode& node, const std::string& path, TransformerModel& model)
{
    Fields fields(*this, node, path);
    if (const DocNode* choices = fields.require("cross_entropy", "write {cross_entropy: {chunks: 8}}")) {
        Fields inner(*this, *choices, path + ".cross_entropy");
        if (const DocNode* given = inner.take("chunks"))
            model.lossChunks = integer(*given, path + ".cross_entropy.chunks").value_or(model.lossChunks);
        word(inner.take("kernels"), path + ".cross_entropy.kernels", lossKernelWords(), model.lossKernels);
        inner.close();
    }
    fields.close();
}

/// `plain`, or of fused attention `{context: ring, zigzag: 8}`
void StudyReader::readAttention(const DocNode& node, const std::string& path, TransformerModel& model)
{
    if (node.kind != DocNode::Kind::Map)
        return word(&node, path, attentionWords(), model.attention);
    Fields fields(*this, node, path);
    word(fields.require("context", "say how keys and values are exchanged: {context: ring}"), path + ".context", contextWords(),
        model.context);
    setInteger(fields.take("zigzag"), path + ".zigzag", model.zigzag);
    fields.close();
}

void StudyReader::readTransformer(const DocNode& node)
{
    const std::string path = "model.transformer";
    Fields fields(*this, node, path);
    TransformerModel model;
    std::string name;
    setText(fields.take("name"), path + ".name", name);
    bool good = true;
    if (const DocNode* config = fields.take("config")) {
        good = readConfig(*config, model.config) && readSizes(fields, model.config);
        passToKinds(fields, model.config);
    } else {
        for (const char* key : {"layers", "hidden", "heads", "vocabulary"})
            good = fields.require(key, "give it, or name a file: transformer: {config: config.json}") != nullptr && good;
        good = readSizes(fields, model.config) && good;
        completeSizes(fields, model.config);
    }
    if (!name.empty())
        model.config.name = name;
    word(fields.take("norm"), path + ".norm", normWords(), model.config.norm);
    word(fields.take("position"), path + ".position", positionWords(), model.config.position);
    word(fields.take("activation"), path + ".activation", transformerActivationWords(), model.config.activation);
    good = readKinds(fields, model.config) && good;
    for (TransformerConfig& kind : model.config.kinds) {
        kind.norm = model.config.norm;
        kind.position = model.config.position;
        kind.activation = model.config.activation;
    }
    countKinds(model.config);
    word(fields.take("predict"), path + ".predict", predictionWords(), model.predict);
    word(fields.take("lookup"), path + ".lookup", lookupWords(), model.lookup);
    if (const DocNode* attention = fields.take("attention"))
        readAttention(*attention, path + ".attention", model);
    if (const DocNode* loss = fields.take("loss"))
        readLoss(*loss, path + ".loss", model);
    if (const DocNode* unroll = fields.take("unroll"))
        model.unrolled = truth(*unroll, path + ".unroll").value_or(false);
    setNumber(fields.take("capacity_factor"), path + ".capacity_factor", model.capacityFactor);
    setInteger(fields.take("dispatch_groups"), path + ".dispatch_groups", model.dispatchGroups);
    fields.close();
    if (good)
        study.model = std::move(model);
}

/// Some of the names that there are for a list of `recompute`.
std::vector<std::string> StudyReader::keptNames(
    const DocNode& names, const std::string& path, const std::vector<std::string>& known)
{
    std::vector<std::string> read;
    if (names.kind != DocNode::Kind::List) {
        wrongKind(names, path, "a list of names of values");
        return read;
    }
    for (const DocEntry& entry : names.entries) {
        const auto name = text(entry.value, path, "the name of a value of a layer");
        if (name && std::ranges::find(known, *name) == known.end())
            unknownName(entry.value, path, known);
        else if (name)
            read.push_back(*name);
    }
    return read;
}

/// `full`, `save_qkv_proj`, or `{keep: [attention.q, ffn.hidden], offload: [input]}`
void StudyReader::readRecompute(const DocNode& node, TransformerModel& model)
{
    if (node.kind != DocNode::Kind::Map) {
        const auto policy = std::ranges::find(keptByName(), node.text, &KeptByName::policy);
        if (policy != keptByName().end()) {
            model.recompute = Recompute::Named;
            model.kept = policy->kept;
            model.offloaded = policy->offloaded;
            return;
        }
        const auto name = text(node, "recompute", "a name");
        const auto known = std::ranges::find_if(recomputeWords(), [&](const auto& one) { return name && one.first == *name; });
        if (known != recomputeWords().end()) {
            model.recompute = known->second;
        } else if (name) {
            std::vector<std::string> names = namesOf(recomputeWords());
            std::ranges::transform(keptByName(), std::back_inserter(names), &KeptByName::policy);
            unknownName(node, "recompute", names);
        }
        return;
    }
    Fields fields(*this, node, "recompute");
    const DocNode* offloaded = fields.take("offload");
    const DocNode* kept = offloaded != nullptr
        ? fields.take("keep")
        : fields.require("keep", "name values of a layer: {keep: [attention.q], offload: [ffn.hidden]}");
    fields.close();
    if (kept == nullptr && offloaded == nullptr)
        return;
    model.recompute = Recompute::Named;
    if (kept != nullptr)
        model.kept = keptNames(*kept, "recompute.keep", keepableNames());
    if (offloaded != nullptr)
        model.offloaded = keptNames(*offloaded, "recompute.offload", offloadableNames());
    for (const std::string& name : model.offloaded) {
        if (std::ranges::find(model.kept, name) != model.kept.end())
            report("MW1493", fmt::format("recompute keeps \"{}\" on the device and offloads it to the host", name),
                "name it in one of keep and offload", offloaded->place("recompute.offload"));
    }
}

/// The keys of the study that are for transformers.
void StudyReader::readTransformerChoices(Fields& fields)
{
    const DocNode* sequence = fields.take("sequence");
    const DocNode* recompute = fields.take("recompute");
    auto* model = std::get_if<TransformerModel>(&study.model);
    if (model == nullptr) {
        for (const auto& [key, given] : {std::pair{"sequence", sequence}, std::pair{"recompute", recompute}}) {
            if (given != nullptr && study.trains())
                report(
                    "MW1490", fmt::format("\"{}\" is for transformers, the model is an MLP", key), "remove it", given->place(key))
                    .fixSettings
                    = {std::string(key) + "="};
        }
        return;
    }
    std::optional<std::int64_t> tokens;
    if (sequence != nullptr)
        tokens = integer(*sequence, "sequence");
    else
        fields.require("sequence", "add the number of tokens in a row: sequence: 1024");
    if (recompute != nullptr)
        readRecompute(*recompute, *model);
    model->sequence = tokens.value_or(1);
    const auto givePositions = [&](TransformerConfig& config) {
        if (config.position == PositionKind::Learned && config.maxPositions == 0)
            config.maxPositions = model->sequence;
    };
    givePositions(model->config);
    std::ranges::for_each(model->config.kinds, givePositions);
    gaps.sizes = gaps.sizes || !tokens;
}

} // namespace meshwright
