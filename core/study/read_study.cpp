// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/arrays.h"
#include "core/study/other_file.h"
#include "core/study/program_study.h"
#include "core/study/setting_path.h"
#include "core/study/shrink.h"
#include "core/study/study_reader.h"
#include "core/study/transformer_keys.h"
#include "core/study/yaml_text.h"
#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace meshwright {

namespace {

/// Keys of Hugging Face, PyTorch, Optax and Megatron-LM, and ours of the same meaning.
constexpr auto kKeysElsewhere = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"lr", "learning_rate"},
    {"b1", "beta1"},
    {"b2", "beta2"},
    {"eps", "epsilon"},
    {"wd", "weight_decay"},
    {"grad_clip", "clip_norm"},
    {"max_grad_norm", "clip_norm"},
    {"batch_size", "batch"},
    {"global_batch_size", "batch"},
    {"seq_len", "sequence"},
    {"seq_length", "sequence"},
    {"activation_checkpointing", "recompute"},
    {"remat", "recompute"},
    {"hidden_size", "hidden"},
    {"d_model", "hidden"},
    {"dim", "hidden"},
    {"intermediate_size", "ffn"},
    {"ffn_hidden_size", "ffn"},
    {"d_ff", "ffn"},
    {"num_layers", "layers"},
    {"n_layers", "layers"},
    {"num_hidden_layers", "layers"},
    {"num_heads", "heads"},
    {"n_heads", "heads"},
    {"num_attention_heads", "heads"},
    {"num_key_value_heads", "kv_heads"},
    {"n_kv_heads", "kv_heads"},
    {"vocab_size", "vocabulary"},
    {"num_stages", "stages"},
    {"num_microbatches", "microbatches"},
    {"gradient_accumulation_steps", "accumulate"},
});

/// Our word for a key of other programs; else the key itself.
std::string_view ownKey(std::string_view key)
{
    const auto ours = std::ranges::find(kKeysElsewhere, key, [](const auto& words) { return words.first; });
    return ours == kKeysElsewhere.end() ? key : ours->second;
}

/// Of Hugging Face, of MaxText.
bool isModelConfig(const DocNode& root)
{
    return root.find("meshwright") == nullptr && root.find("model") == nullptr
        && std::ranges::any_of(std::array{"model_type", "architectures", "hidden_size", "num_hidden_layers", "base_emb_dim"},
            [&](const char* key) { return root.find(key) != nullptr; });
}

} // namespace

void StudyReader::read(const DocNode& root)
{
    Fields fields(*this, root, "");
    if (!fields.isMap())
        return;
    if (isModelConfig(root)) {
        problems = {Problem{"MW1420", "this is the configuration of a model, not a study",
            "write model: {transformer: {config: FILE}} in a study, or `meshwright plan FILE --on 64xH100 --tokens 1T`",
            root.place("")}};
        gaps = {true, true};
        return;
    }
    const DocNode* version = fields.require("meshwright", "begin the study with \"meshwright: 1\"");
    if (version == nullptr) {
        if (root.find("model") != nullptr) // else it may be anything, and nothing is to be written into it
            problems.back().fixSettings = {"meshwright=1"};
    } else {
        const auto value = integer(*version, "meshwright");
        if (value && *value != 1) {
            problems = {Problem{"MW1426", fmt::format("the study has version {}, this program reads version 1", *value),
                *value > 1 ? "use a newer Meshwright" : "write \"meshwright: 1\"", version->place("meshwright")}};
            gaps = {true, true};
            study = Study{};
            return;
        }
    }
    setText(fields.take("name"), "name", study.name);
    if (const DocNode* node = fields.take("hardware"))
        readHardware(*node);
    if (const DocNode* node = fields.take("mesh"))
        readMesh(*node, "mesh", study.mesh, study.deviceOrder);
    readOrder(fields.take("device_order"), "device_order", study.deviceOrder);
    if (const DocNode* node = fields.require("model", "add one: model: {mlp: {layers: [64, 256, 10]}}"))
        readModel(*node);
    if (const DocNode* node = fields.take("init"))
        readInit(*node);
    if (const DocNode* node = fields.take("batch")) {
        const auto batch = integer(*node, "batch");
        study.batch = batch.value_or(1);
        gaps.sizes = gaps.sizes || !batch;
    } else if (study.trains()) {
        fields.require("batch", "add the number of examples in a step: batch: 128");
        gaps.sizes = true;
    }
    readTransformerChoices(fields);
    if (const DocNode* node = fields.take("dtype"))
        readDtype(*node);
    if (const DocNode* node = fields.take("sharding"))
        readSharding(*node);
    if (const DocNode* node = fields.take("optimizer"))
        readOptimizer(*node);
    setNumber(fields.take("dropout"), "dropout", study.dropout);
    if (UpdateChoices* update = updateChoices(study.optimizer))
        update->countsSteps = study.dropout > 0.0;
    if (const DocNode* node = fields.take("train"))
        readTrain(*node);
    if (const DocNode* node = fields.take("phases"))
        readPhases(*node);
    if (const DocNode* node = fields.take("pipeline"))
        readPipeline(*node);
    if (const DocNode* node = fields.take("faults"))
        readFaults(*node);
    if (const DocNode* node = fields.take("network"))
        readNetwork(*node);
    setText(fields.take("stack"), "stack", study.stack);
    if (const DocNode* node = fields.take("shrink")) {
        shrinks = truth(*node, "shrink").value_or(false);
        if (shrinks && !study.trains())
            report("MW1468", "a program cannot be shrunk: the sizes of its arrays are fixed in its text", "leave shrink out",
                node->place("shrink"));
    }
    fields.close();
    reportUnknownKeys();
}

void StudyReader::reportUnknownKeys()
{
    for (UnknownKey& unknown : m_unknownKeys) {
        std::string fix = fixOf(unknown);
        std::vector<std::string> settings = renamed(unknown);
        report("MW1420", fmt::format("unknown key \"{}\"", unknown.key), std::move(fix), std::move(unknown.place)).fixSettings
            = std::move(settings);
    }
}

/// Settings that give the value of an unknown key to the key that was meant, where its mapping has that and nobody gave it.
std::vector<std::string> StudyReader::renamed(const UnknownKey& unknown) const
{
    const std::vector<std::string>& known = m_keys.at(unknown.around);
    const std::string own(ownKey(unknown.key));
    const auto meant = std::ranges::find(known, own) != known.end() ? own : nearestName(unknown.key, known);
    const DocNode& value = *unknown.mapping->find(unknown.key);
    if (!meant || unknown.mapping->find(*meant) != nullptr || value.kind == DocNode::Kind::Null
        || !std::ranges::all_of(unknown.key, isNameLetter))
        return {};
    const std::string around = unknown.around.empty() ? std::string() : unknown.around + ".";
    return {
        fmt::format("{}{}=", around, unknown.key), fmt::format("{}{}={}", around, *meant, valueText(value, {.inFlow = true}))};
}

std::string StudyReader::fixOf(const UnknownKey& unknown) const
{
    if (unknown.around == "optimizer.adam" && unknown.key == "weight_decay")
        return "write adamw, which has it: optimizer: {adamw: {weight_decay: 0.1}}";
    const std::string key(ownKey(unknown.key));
    const auto has = [&](const std::string& path) {
        const auto keys = m_keys.find(path);
        return keys != m_keys.end() && std::ranges::find(keys->second, key) != keys->second.end();
    };
    const std::vector<std::string>& known = m_keys.at(unknown.around);
    if (has(unknown.around))
        return fmt::format("write {}", key);
    if (!nearestName(unknown.key, known)) { // a key of another mapping, of those around it first
        for (std::string path = unknown.around; !path.empty();) {
            path.resize(path.find('.') == std::string::npos ? 0 : path.rfind('.'));
            if (has(path))
                return fmt::format("move it: \"{}\" is a key of {}", key, path.empty() ? "the study itself" : path);
        }
        for (const auto& [path, keys] : m_keys) {
            if (has(path))
                return fmt::format("move it: \"{}\" is a key of {}", key, path);
        }
    }
    return suggestion(unknown.key, known);
}

void StudyReader::readHardware(const DocNode& node)
{
    if (node.kind == DocNode::Kind::Scalar && !node.text.empty()) { // hardware: v5e-64
        HardwareChoice named;
        setText(&node, "hardware", named.chip);
        study.hardware = std::move(named);
        return;
    }
    Fields fields(*this, node, "hardware");
    if (!fields.isMap())
        return;
    HardwareChoice hardware;
    setText(fields.take("chip"), "hardware.chip", hardware.chip);
    if (const DocNode* topology = fields.take("topology")) {
        if (topology->kind == DocNode::Kind::Scalar && topology->text.find('x') != std::string::npos) {
            for (const std::string& part : split(topology->text, 'x')) {
                const auto size = parseInteger(part);
                if (!size) {
                    wrongKind(*topology, "hardware.topology", "a list of integers, or 4x4");
                    break;
                }
                hardware.topology.push_back(*size);
            }
        } else {
            hardware.topology
                = integers(*topology, "hardware.topology", "a list of integers, or 4x4").value_or(hardware.topology);
        }
    }
    if (const DocNode* hosts = fields.take("hosts"))
        hardware.hosts = integer(*hosts, "hardware.hosts");
    if (const DocNode* perHost = fields.take("per_host"))
        hardware.chipsPerHost = integer(*perHost, "hardware.per_host");
    if (const DocNode* slices = fields.take("slices"))
        hardware.slices = integer(*slices, "hardware.slices");
    setText(fields.take("profile"), "hardware.profile", hardware.profile);
    if (const DocNode* file = fields.take("file")) // another word for it
        setText(file, "hardware.profile", hardware.profile);
    fields.close();
    study.hardware = std::move(hardware);
}

void StudyReader::readOrder(const DocNode* node, const std::string& path, std::vector<DeviceId>& order)
{
    if (node == nullptr)
        return;
    if (!order.empty()) {
        report("MW1427", "the device order is given twice", "keep one of the two", node->place(path));
        return;
    }
    order = integers(*node, path, "a list of device ids").value_or(order);
}

void StudyReader::readMesh(
    const DocNode& node, const std::string& path, std::vector<MeshAxis>& axes, std::vector<DeviceId>& order)
{
    if (node.kind == DocNode::Kind::Scalar && node.text.find('=') != std::string::npos) { // --set mesh=data=8
        const auto mesh = parseMesh(node.text);
        if (mesh) {
            axes = mesh->axes();
            for (const MeshAxis& axis : axes)
                study.places.at[fmt::format("{}.{}", path, axis.name)] = node.place(path);
            return;
        }
        for (Problem problem : mesh.error()) {
            problem.place = node.place(path);
            problems.push_back(std::move(problem));
        }
        gaps = {true, true};
        return;
    }
    if (node.kind != DocNode::Kind::Map) {
        wrongKind(node, path, "a mapping (axis names with sizes)", "write axes with their sizes: mesh: {data: 4, model: 2}");
        gaps = {true, true};
        return;
    }
    if (tooMany(node, path, kMostAxes, "mesh axes")) {
        gaps = {true, true};
        return;
    }
    for (const DocEntry& entry : node.entries) {
        const std::string entryPath = fmt::format("{}.{}", path, entry.key);
        study.places.at[entryPath] = entry.value.place(entryPath);
        if (entry.key == "device_order") {
            readOrder(isNull(&entry.value) ? nullptr : &entry.value, entryPath, order);
            continue;
        }
        const auto size = integer(entry.value, entryPath);
        axes.push_back({entry.key, size.value_or(1)});
        gaps.sizes = gaps.sizes || !size;
    }
}

void StudyReader::readModel(const DocNode& node)
{
    if (node.kind == DocNode::Kind::Scalar) {
        wrongKind(node, "model", "a mapping", "write model: {mlp: {layers: [64, 256, 10]}}, or model: {program: step.mlir}");
        return;
    }
    const auto kind = choice(node, "model", {"mlp", "transformer", "program"});
    if (!kind)
        return;
    const std::string path = "model." + kind->kind;
    if (kind->value == nullptr) {
        const char* fix = kind->kind == "mlp" ? "give its layers: mlp: {layers: [64, 256, 10]}"
            : kind->kind == "program"         ? "name a file: program: step.mlir"
                                              : "name a file: transformer: {config: config.json}";
        report("MW1421", fmt::format("\"{}\" says nothing", path), fix, node.place(path));
    } else if (kind->kind == "mlp") {
        readMlp(*kind->value);
    } else if (kind->kind == "transformer") {
        readTransformer(*kind->value);
    } else if (kind->value->kind == DocNode::Kind::Scalar) {
        study.model = ProgramFile{kind->value->text, {}};
    } else {
        Fields fields(*this, *kind->value, path);
        ProgramFile program;
        setText(fields.require("file", "name a file of StableHLO text"), path + ".file", program.file);
        setText(fields.take("function"), path + ".function", program.function);
        fields.close();
        study.model = std::move(program);
    }
}

void StudyReader::readMlp(const DocNode& node)
{
    Fields fields(*this, node, "model.mlp");
    MlpModel mlp;
    std::optional<std::vector<std::int64_t>> layers;
    const DocNode* sizes = fields.require("layers", "give the sizes: layers: [64, 256, 10]");
    if (sizes != nullptr && !tooMany(*sizes, "model.mlp.layers", kMostLayers, "layers"))
        layers = integers(*sizes, "model.mlp.layers", "a list of sizes");
    word(fields.take("activation"), "model.mlp.activation", activationWords(), mlp.activation);
    if (const DocNode* bias = fields.take("bias"))
        mlp.bias = truth(*bias, "model.mlp.bias").value_or(mlp.bias);
    word(fields.take("loss"), "model.mlp.loss", lossWords(), mlp.loss);
    fields.close();
    if (!layers)
        return;
    mlp.layers = *std::move(layers);
    study.model = std::move(mlp);
}

void StudyReader::readInit(const DocNode& node)
{
    if (node.kind == DocNode::Kind::Scalar) {
        word(&node, "init", initializerWords(), study.weightInit);
        return;
    }
    Fields fields(*this, node, "init");
    word(fields.take("w"), "init.w", initializerWords(), study.weightInit);
    word(fields.take("b"), "init.b", initializerWords(), study.biasInit);
    word(
        fields.take("random"), "init.random", Words<bool>{{"partitionable", true}, {"legacy", false}}, study.partitionableRandom);
    fields.close();
}

void StudyReader::readDtype(const DocNode& node)
{
    if (node.kind == DocNode::Kind::Scalar) {
        word(&node, "dtype", dtypeWords(), study.parameterType);
        study.matmulType = study.parameterType;
        return;
    }
    Fields fields(*this, node, "dtype");
    word(fields.take("parameters"), "dtype.parameters", dtypeWords(), study.parameterType);
    word(fields.take("matmul"), "dtype.matmul", dtypeWords(), study.matmulType);
    if (const DocNode* activations = fields.take("activations")) {
        if (study.mlp() != nullptr)
            report("MW1490", "\"dtype.activations\" is for transformers: those of an MLP have the parameters' type", "remove it",
                activations->place("dtype.activations"))
                .fixSettings
                = {"dtype.activations="};
        word(activations, "dtype.activations", dtypeWords(), study.activationType.emplace(study.parameterType));
    }
    if (const DocNode* gradients = fields.take("gradients"))
        word(gradients, "dtype.gradients", dtypeWords(), study.gradientType.emplace(study.parameterType));
    if (const DocNode* recipe = fields.take("fp8")) {
        if (study.transformer() == nullptr)
            report("MW1490", "\"dtype.fp8\" is for transformers", "remove it", recipe->place("dtype.fp8")).fixSettings
                = {"dtype.fp8="};
        word(recipe, "dtype.fp8", fp8Words(), study.fp8);
    }
    fields.close();
}

void StudyReader::readSharding(const DocNode& node)
{
    if (node.kind != DocNode::Kind::Map) {
        wrongKind(node, "sharding", "a mapping (array names with specs)");
        return;
    }
    for (const DocEntry& entry : node.entries) {
        if (isNull(&entry.value) && (entry.key == "match" || entry.key == "rules"))
            continue;
        if (entry.key == "match")
            readMatch(entry.value);
        else if (entry.key == "rules")
            readRules(entry.value);
        else
            readShardingEntry(entry.key, entry, "sharding." + entry.key);
    }
}

/// `layers.1: {w: ..}` and `layers.1.w: ..` say the same.
void StudyReader::readShardingEntry(const std::string& name, const DocEntry& entry, const std::string& path)
{
    if (entry.value.kind == DocNode::Kind::Map) {
        for (const DocEntry& inner : entry.value.entries)
            readShardingEntry(fmt::format("{}.{}", name, inner.key), inner, fmt::format("{}.{}", path, inner.key));
        return;
    }
    auto read = spec(entry.value, path);
    if (!read)
        return;
    const std::string array = arrayOfEntry(name);
    m_wildcards += array.find_first_of("*?") != std::string::npos ? 1U : 0U;
    if (!m_sharded.insert(array).second)
        report("MW1408", fmt::format("the spec of \"{}\" is given twice", array), "remove one of the two", entry.place(path));
    else if (m_wildcards == kMostRules + 1)
        report("MW1437", fmt::format("more than {} specs with * or ?", kMostRules), "is this the right file?", entry.place(path));
    else if (m_wildcards <= kMostRules)
        study.sharding.entries.push_back({array, *std::move(read), path});
}

void StudyReader::readMatch(const DocNode& node)
{
    if (node.kind != DocNode::Kind::List) {
        wrongKind(node, "sharding.match", "a list of rules", "write match: [{path: \"*.w\", spec: [data]}]");
        return;
    }
    if (tooMany(node, "sharding.match", kMostRules, "rules"))
        return;
    for (std::size_t i = 0; i < node.entries.size(); ++i) {
        const std::string path = fmt::format("sharding.match[{}]", i);
        const DocNode& rule = node.entries[i].value;
        study.places.at[path] = rule.place(path);
        Fields fields(*this, rule, path);
        if (!fields.isMap())
            continue;
        MatchRule read;
        setText(fields.require("path", "say which arrays: path: \"*.w\""), path + ".path", read.glob);
        setInteger(fields.take("min_elements"), path + ".min_elements", read.minElements);
        word(fields.take("divisible"), path + ".divisible", Words<bool>{{"largest_dim", true}}, read.largestDivisibleDim);
        const DocNode* specNode = fields.require("spec", "say how: spec: [data], or [] to replicate");
        fields.close();
        if (specNode == nullptr)
            continue;
        auto readSpec = spec(*specNode, path + ".spec");
        if (!readSpec)
            continue;
        read.spec = *std::move(readSpec);
        study.sharding.match.push_back(std::move(read));
    }
    if (study.sharding.match.size() != node.entries.size())
        study.sharding.match.clear(); // their indices name places; nothing is checked of rules that are not all there
}

void StudyReader::readRules(const DocNode& node)
{
    const auto refuse = [&](const DocNode& wrong, const std::string& path) {
        wrongKind(wrong, path, "a list of pairs", "write rules: [[batch, data], [embed, null]], or rules: maxtext");
    };
    if (node.kind == DocNode::Kind::Scalar) {
        study.places.at["sharding.rules"] = node.place("sharding.rules");
        if (const LogicalRuleList* list = findLogicalRuleList(node.text)) {
            study.sharding.rules = list->rules;
            study.sharding.ruleList = list->name;
        } else {
            report("MW1423", fmt::format("unknown list of rules \"{}\"", node.text),
                suggestion(node.text, logicalRuleListNames()), node.place("sharding.rules"));
        }
        return;
    }
    if (node.kind != DocNode::Kind::List) {
        refuse(node, "sharding.rules");
        return;
    }
    for (std::size_t i = 0; i < node.entries.size(); ++i) {
        const std::string path = fmt::format("sharding.rules[{}]", i);
        const DocNode& rule = node.entries[i].value;
        study.places.at[path] = rule.place(path);
        if (rule.kind != DocNode::Kind::List || rule.entries.size() != 2 || rule.entries[0].value.kind != DocNode::Kind::Scalar) {
            refuse(rule, path);
            continue;
        }
        if (auto axes = axesOf(rule.entries[1].value, path))
            study.sharding.rules.push_back({rule.entries[0].value.text, {*std::move(axes)}});
    }
}

namespace {

/// The problems of the file by their places, then those of settings; duplicates removed.
void sortProblems(Problems& problems, const std::string& fileName)
{
    std::stable_sort(problems.begin(), problems.end(), [&](const Problem& a, const Problem& b) {
        const auto key = [&](const Problem& p) { return std::tuple(p.place.file != fileName, p.place.line, p.place.column); };
        return key(a) < key(b);
    });
    const auto same
        = [](const Problem& a, const Problem& b) { return a.id == b.id && a.message == b.message && a.place == b.place; };
    problems.erase(std::unique(problems.begin(), problems.end(), same), problems.end());
}

/// A study's document, or that of a program which stands in its place.
Document readDocument(std::string_view text, const std::string& fileName)
{
    const bool isProgram = isProgramText(fileName, text);
    const auto study = isProgram ? programStudyText(fileName, text) : Result<std::string>(std::string());
    Document document;
    if (study) {
        document = parseDocument(isProgram ? *study : text, fileName);
        if (isProgram || text.starts_with(kMadeStudy))
            clearLines(document.root); // nobody wrote it: nothing of it has a place
    } else {
        document.problems = study.error();
        document.readable = false;
    }
    return document;
}

} // namespace

StudyReading readStudyInPart(std::string_view text, const std::string& fileName, std::span<const std::string> settings)
{
    StudyReading reading;
    if (const auto other = otherFileOf(text, fileName)) {
        reading.readable = false;
        reading.problems.push_back(
            {"MW1420", fmt::format("this is {}, not a study", other->what), other->use, Place{fileName, 1, 1, {}}});
        return reading;
    }
    Document document = readDocument(text, fileName);
    reading.readable = document.readable;
    reading.problems = std::move(document.problems);
    if (!document.readable)
        return reading;
    append(reading.problems, applySettings(document.root, settings));

    StudyReader reader;
    reader.study.places.file = fileName;
    reader.read(document.root);
    reader.study.places.file = fileName;
    append(reading.problems, std::move(reader.problems));
    append(reading.problems, checkStudyParts(reader.study, reader.gaps));
    if (reader.shrinks && !hasErrors(reading.problems)) {
        reader.study = shrunk(std::move(reader.study));
        append(reading.problems, checkStudyParts(reader.study, reader.gaps));
    }
    reading.problems = inFile(std::move(reading.problems), fileName);
    sortProblems(reading.problems, fileName);
    reading.study = std::move(reader.study);
    return reading;
}

Result<Study> readStudy(std::string_view text, const std::string& fileName, std::span<const std::string> settings)
{
    StudyReading reading = readStudyInPart(text, fileName, settings);
    if (hasErrors(reading.problems))
        return std::move(reading.problems);
    return std::move(reading.study);
}

Result<Study> loadStudy(const std::filesystem::path& path, std::span<const std::string> settings)
{
    const auto text = readFile(path);
    if (!text)
        return text.error();
    auto study = readStudy(*text, path == "-" ? std::string("standard input") : path.string(), settings);
    if (study) {
        if (Problems missing = checkFiles(*study); !missing.empty())
            return missing;
    }
    return study;
}

Problems examineStudy(std::string_view text, const std::string& fileName, std::span<const std::string> settings)
{
    return readStudyInPart(text, fileName, settings).problems;
}

} // namespace meshwright
