// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/arrays.h"
#include "core/study/check_spec.h"
#include "core/study/document.h"
#include "core/study/study_parts.h"
#include "core/study/transformer_keys.h"
#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace meshwright {

namespace {

/// Bounds that no study reaches, so that the work of reading a file is bounded by its size.
constexpr std::size_t kMostAxes = 64;
constexpr std::size_t kMostLayers = 10'000;
constexpr std::size_t kMostRules = 1'000;

bool isNull(const DocNode* node)
{
    return node == nullptr || node->kind == DocNode::Kind::Null;
}

bool isDigits(std::string_view text)
{
    if (text.starts_with('-') || text.starts_with('+'))
        text.remove_prefix(1);
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// True for what YAML, JSON, C and Python write for numbers that are none, and for numbers too large for a double.
bool isNotFinite(std::string_view text)
{
    if (text.starts_with('-') || text.starts_with('+'))
        text.remove_prefix(1);
    if (text.starts_with('.'))
        text.remove_prefix(1);
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
        [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    if (lower == "nan" || lower == "inf" || lower == "infinity")
        return true;
    const bool numeric
        = !lower.empty() && lower.find_first_not_of("0123456789.e+-") == std::string::npos && lower[0] >= '0' && lower[0] <= '9';
    return numeric && lower.find('e') != std::string::npos && lower.back() >= '0' && lower.back() <= '9' && !parseNumber(lower);
}

template <typename T>
std::vector<std::string> namesOf(const Words<T>& words)
{
    std::vector<std::string> names;
    for (const auto& [name, value] : words)
        names.emplace_back(name);
    return names;
}

class StudyReader {
public:
    void read(const DocNode& root);

    Study study;
    Problems problems;
    ReadGaps gaps;

private:
    /// The keys of one mapping. What is not asked for by the time it is closed is unknown.
    class Fields {
    public:
        Fields(StudyReader& reader, const DocNode& node, std::string path)
            : m_reader(reader)
            , m_node(node)
            , m_path(std::move(path))
        {
            m_isMap = node.kind == DocNode::Kind::Map;
            if (!m_isMap)
                reader.wrongKind(node, m_path, "a mapping (keys with values)");
        }

        bool isMap() const { return m_isMap; }
        std::string pathOf(std::string_view key) const
        {
            return m_path.empty() ? std::string(key) : fmt::format("{}.{}", m_path, key);
        }

        /// The value of a key; null when it is absent or has none.
        const DocNode* take(const char* key)
        {
            m_known.emplace_back(key);
            const DocNode* value = m_isMap ? m_node.find(key) : nullptr;
            if (value != nullptr)
                m_reader.study.places.at[pathOf(key)] = value->place(pathOf(key));
            return isNull(value) ? nullptr : value;
        }

        /// As `take`; a problem when it is absent.
        const DocNode* require(const char* key, const char* fix)
        {
            const DocNode* value = take(key);
            if (value == nullptr && m_isMap)
                m_reader.report("MW1421", fmt::format("\"{}\" is missing", pathOf(key)), fix, m_node.place(m_path));
            return value;
        }

        void close()
        {
            if (!m_isMap)
                return;
            for (const DocEntry& entry : m_node.entries) {
                if (std::find(m_known.begin(), m_known.end(), entry.key) == m_known.end())
                    m_reader.report("MW1420", fmt::format("unknown key \"{}\"", entry.key), suggestion(entry.key, m_known),
                        entry.place(pathOf(entry.key)));
            }
        }

    private:
        StudyReader& m_reader;
        const DocNode& m_node;
        std::string m_path;
        bool m_isMap = false;
        std::vector<std::string> m_known;
    };

    Problem& report(const char* id, std::string message, std::string fix, Place place, std::string rule = {})
    {
        return problems.emplace_back(
            Problem{id, std::move(message), std::move(fix), std::move(place), Severity::Error, std::move(rule), {}});
    }

    /// A name that is none of those that may be chosen; mended by the nearest one.
    Problem& unknownName(const DocNode& node, const std::string& path, const std::vector<std::string>& names)
    {
        Problem& problem
            = report("MW1423", fmt::format("unknown name \"{}\"", node.text), suggestion(node.text, names), node.place(path));
        if (const auto near = nearestName(node.text, names))
            problem.fixSettings = {path + "=" + *near};
        return problem;
    }

    void wrongKind(const DocNode& node, const std::string& path, const char* expected, std::string fix = {})
    {
        report("MW1422", fmt::format("expected {}, found {}", expected, node.kindText()),
            fix.empty() ? fmt::format("give {}", expected) : fix, node.place(path));
    }

    /// True, with a problem, when the list or mapping has more than `most` entries.
    bool tooMany(const DocNode& node, const std::string& path, std::size_t most, const char* what)
    {
        if (node.entries.size() <= most)
            return false;
        report("MW1437", fmt::format("{} {}, at most {} are read", node.entries.size(), what, most), "is this the right file?",
            node.place(path));
        return true;
    }

    std::optional<std::int64_t> integer(const DocNode& node, const std::string& path);
    std::optional<double> number(const DocNode& node, const std::string& path);
    std::optional<bool> truth(const DocNode& node, const std::string& path);
    std::optional<std::string> text(const DocNode& node, const std::string& path, const char* expected);
    std::optional<std::vector<std::int64_t>> integers(const DocNode& node, const std::string& path, const char* expected);
    std::optional<PartitionSpec> spec(const DocNode& node, const std::string& path);
    std::optional<std::vector<std::string>> axesOf(const DocNode& node, const std::string& path);

    template <typename T>
    void word(const DocNode* node, const std::string& path, const Words<T>& words, T& target)
    {
        if (node == nullptr)
            return;
        const auto name = text(*node, path, "a name");
        if (!name)
            return;
        const auto found = std::find_if(words.begin(), words.end(), [&](const auto& w) { return *name == w.first; });
        if (found != words.end())
            target = found->second;
        else
            unknownName(*node, path, namesOf(words));
    }

    void setInteger(const DocNode* node, const std::string& path, std::int64_t& target)
    {
        if (node != nullptr)
            target = integer(*node, path).value_or(target);
    }
    void setNumber(const DocNode* node, const std::string& path, double& target)
    {
        if (node != nullptr)
            target = number(*node, path).value_or(target);
    }
    void setText(const DocNode* node, const std::string& path, std::string& target)
    {
        if (node != nullptr)
            target = text(*node, path, "a text").value_or(target);
    }

    /// For a mapping with one key that says which kind it is: that key's value. A plain name stands for the key without values.
    struct Choice {
        std::string kind;
        const DocNode* value = nullptr;
    };
    std::optional<Choice> choice(const DocNode& node, const std::string& path, const std::vector<std::string>& kinds);

    void readHardware(const DocNode& node);
    void readMesh(const DocNode& node, const std::string& path, std::vector<MeshAxis>& axes, std::vector<DeviceId>& order);
    void readOrder(const DocNode* node, const std::string& path, std::vector<DeviceId>& order);
    void readModel(const DocNode& node);
    void readMlp(const DocNode& node);
    void readTransformer(const DocNode& node);
    bool readConfig(const DocNode& node, TransformerConfig& config);
    bool readSizes(Fields& fields, TransformerConfig& config);
    void completeSizes(Fields& fields, TransformerConfig& config);
    void readTransformerChoices(Fields& fields);
    void readInit(const DocNode& node);
    void readDtype(const DocNode& node);
    void readSharding(const DocNode& node);
    void readShardingEntry(const std::string& name, const DocEntry& entry, const std::string& path);
    void readMatch(const DocNode& node);
    void readRules(const DocNode& node);
    void readOptimizer(const DocNode& node);
    void readTrain(const DocNode& node);
    void readData(const DocNode& node, const std::string& path);
    void readPhases(const DocNode& node);
    void readPipeline(const DocNode& node);

    std::set<std::string> m_sharded; ///< arrays that have a spec of their own
    std::size_t m_wildcards = 0;
};

std::optional<std::int64_t> StudyReader::integer(const DocNode& node, const std::string& path)
{
    if (node.kind == DocNode::Kind::Scalar && !node.quoted) {
        if (const auto value = parseInteger(node.text.starts_with('+') ? std::string_view(node.text).substr(1) : node.text))
            return value;
        if (isDigits(node.text)) {
            report("MW1401", fmt::format("{} does not fit 64 bits", node.text), fmt::format("give at most {}", kLargestDimension),
                node.place(path));
            return std::nullopt;
        }
        if (isNotFinite(node.text)) {
            report("MW1424", fmt::format("\"{}\" is not a finite number", node.text), "give an integer", node.place(path));
            return std::nullopt;
        }
    }
    wrongKind(node, path, "an integer");
    if (node.kind == DocNode::Kind::Scalar && parseInteger(node.text))
        problems.back().fixSettings = {path + "=" + node.text}; // without its quotes
    return std::nullopt;
}

std::optional<double> StudyReader::number(const DocNode& node, const std::string& path)
{
    if (node.kind == DocNode::Kind::Scalar && !node.quoted) {
        if (const auto value = parseNumber(node.text.starts_with('+') ? std::string_view(node.text).substr(1) : node.text))
            return value;
        if (isNotFinite(node.text)) {
            report("MW1424", fmt::format("\"{}\" is not a finite number", node.text), "give a number such as 0.01",
                node.place(path));
            return std::nullopt;
        }
    }
    wrongKind(node, path, "a number");
    if (node.kind == DocNode::Kind::Scalar && parseNumber(node.text))
        problems.back().fixSettings = {path + "=" + node.text}; // without its quotes
    return std::nullopt;
}

std::optional<bool> StudyReader::truth(const DocNode& node, const std::string& path)
{
    if (node.kind == DocNode::Kind::Scalar && !node.quoted) {
        if (node.text == "true" || node.text == "True")
            return true;
        if (node.text == "false" || node.text == "False")
            return false;
    }
    wrongKind(node, path, "true or false");
    return std::nullopt;
}

std::optional<std::string> StudyReader::text(const DocNode& node, const std::string& path, const char* expected)
{
    if (node.kind == DocNode::Kind::Scalar)
        return node.text;
    wrongKind(node, path, expected);
    return std::nullopt;
}

std::optional<std::vector<std::int64_t>> StudyReader::integers(const DocNode& node, const std::string& path, const char* expected)
{
    if (node.kind != DocNode::Kind::List) {
        wrongKind(node, path, expected);
        return std::nullopt;
    }
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < node.entries.size(); ++i) {
        const std::string entryPath = fmt::format("{}[{}]", path, i);
        study.places.at[entryPath] = node.entries[i].value.place(entryPath);
        if (const auto value = integer(node.entries[i].value, entryPath))
            values.push_back(*value);
    }
    if (values.size() != node.entries.size())
        return std::nullopt;
    return values;
}

/// One entry of a spec, or what a logical axis stands for: null, a name, or a list of names.
std::optional<std::vector<std::string>> StudyReader::axesOf(const DocNode& node, const std::string& path)
{
    std::vector<std::string> axes;
    if (node.kind == DocNode::Kind::Null || (node.kind == DocNode::Kind::Scalar && !node.quoted && node.text == "None"))
        return axes;
    if (node.kind == DocNode::Kind::Scalar)
        return std::vector<std::string>{node.text};
    if (node.kind == DocNode::Kind::List) {
        for (const DocEntry& entry : node.entries) {
            if (entry.value.kind != DocNode::Kind::Scalar) {
                wrongKind(entry.value, path, "the name of a mesh axis");
                return std::nullopt;
            }
            axes.push_back(entry.value.text);
        }
        return axes;
    }
    wrongKind(node, path, "a mesh axis, a list of mesh axes, or null");
    return std::nullopt;
}

std::optional<PartitionSpec> StudyReader::spec(const DocNode& node, const std::string& path)
{
    study.places.at[path] = node.place(path);
    if (node.kind == DocNode::Kind::Scalar) {
        auto parsed = parseTypedSpec(node.text, study.mesh, study.deviceOrder);
        if (parsed)
            return *std::move(parsed);
        for (Problem problem : parsed.error()) {
            const int inside = std::max(0, problem.place.column - 1) + (node.quoted ? 1 : 0);
            problem.place = node.place(path);
            if (problem.place.line > 0)
                problem.place.column += inside;
            problems.push_back(std::move(problem));
        }
        return std::nullopt;
    }
    if (node.kind != DocNode::Kind::List) {
        wrongKind(node, path, "a PartitionSpec", "write \"P('data', None)\", or a list such as [data, null]; [] replicates");
        return std::nullopt;
    }
    PartitionSpec read;
    for (const DocEntry& entry : node.entries) {
        auto axes = axesOf(entry.value, path);
        if (!axes)
            return std::nullopt;
        read.dims.push_back(*std::move(axes));
    }
    return read;
}

std::optional<StudyReader::Choice> StudyReader::choice(
    const DocNode& node, const std::string& path, const std::vector<std::string>& kinds)
{
    if (node.kind == DocNode::Kind::Scalar) {
        if (std::find(kinds.begin(), kinds.end(), node.text) != kinds.end())
            return Choice{node.text, nullptr};
        unknownName(node, path, kinds);
        return std::nullopt;
    }
    Fields fields(*this, node, path);
    std::vector<Choice> given;
    for (const std::string& kind : kinds) {
        const DocNode* value = fields.take(kind.c_str());
        if (value != nullptr || (node.kind == DocNode::Kind::Map && node.find(kind) != nullptr))
            given.push_back({kind, value});
    }
    fields.close();
    if (node.kind != DocNode::Kind::Map)
        return std::nullopt;
    if (given.size() == 1)
        return given.front();
    std::vector<std::string> names;
    for (const Choice& one : given)
        names.push_back(one.kind);
    report("MW1427",
        fmt::format("\"{}\" has {}", path, given.empty() ? std::string("none of its kinds") : join(names, " and ") + " at once"),
        "give exactly one of: " + join(kinds, ", "), node.place(path));
    return std::nullopt;
}

void StudyReader::read(const DocNode& root)
{
    Fields fields(*this, root, "");
    if (!fields.isMap())
        return;
    const DocNode* version = fields.require("meshwright", "begin the study with \"meshwright: 1\"");
    if (version == nullptr) {
        problems.back().fixSettings = {"meshwright=1"};
    } else {
        const auto value = integer(*version, "meshwright");
        if (value && *value != 1) {
            problems = {Problem{"MW1426", fmt::format("the study is of version {}, this program reads version 1", *value),
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
    if (const DocNode* node = fields.take("train"))
        readTrain(*node);
    if (const DocNode* node = fields.take("phases"))
        readPhases(*node);
    if (const DocNode* node = fields.take("pipeline"))
        readPipeline(*node);
    fields.close();
}

void StudyReader::readHardware(const DocNode& node)
{
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
    std::error_code error;
    if (!std::filesystem::exists(file, error) && name->find_first_of("./\\") == std::string::npos) {
        if (const auto shipped = findResource(fmt::format("models/{}.json", *name)))
            file = *shipped;
    }
    const auto content = readFile(file);
    auto read = content ? readTransformerConfig(*content, file.string()) : Result<TransformerConfig>(content.error());
    if (read) {
        config = *std::move(read);
        return true;
    }
    for (Problem problem : read.error()) {
        if (problem.place.line == 0) { // the field, if there is one, is in the message
            problem.message = fmt::format("{}: {}", file.filename().string(), problem.message);
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
    return good;
}

/// What follows from other sizes where it is not given.
void StudyReader::completeSizes(Fields& fields, TransformerConfig& config)
{
    const auto absent = [&](const char* key) { return fields.take(key) == nullptr; };
    if (absent("kv_heads"))
        config.keyValueHeads = config.heads;
    if (absent("head_dim") && config.heads > 0)
        config.headDim = config.hidden / config.heads;
    const bool hasDense = config.experts == 0 || config.denseLayers > 0;
    const std::int64_t usual = config.hidden <= kLargestDimension / 4 ? 4 * config.hidden : config.hidden;
    if (absent("ffn") && hasDense)
        config.ffn = usual;
    if (absent("expert_ffn") && config.experts > 0)
        config.expertFfn = config.ffn > 0 ? config.ffn : usual;
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
    word(fields.take("predict"), path + ".predict", predictionWords(), model.predict);
    word(fields.take("lookup"), path + ".lookup", lookupWords(), model.lookup);
    if (const DocNode* unroll = fields.take("unroll"))
        model.unrolled = truth(*unroll, path + ".unroll").value_or(false);
    setNumber(fields.take("capacity_factor"), path + ".capacity_factor", model.capacityFactor);
    fields.close();
    if (good)
        study.model = std::move(model);
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
    word(recompute, "recompute", recomputeWords(), model->recompute);
    model->sequence = tokens.value_or(1);
    if (model->config.position == PositionKind::Learned && model->config.maxPositions == 0)
        model->config.maxPositions = model->sequence;
    gaps.sizes = gaps.sizes || !tokens;
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
    constexpr std::string_view kOut = ".out";
    const bool isOutput = name.starts_with("layers.") && name.ends_with(kOut);
    const std::string array = isOutput ? "act." + name.substr(0, name.size() - kOut.size()) : name;
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
            report("MW1423", fmt::format("there is no list of rules \"{}\"", node.text),
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

void StudyReader::readOptimizer(const DocNode& node)
{
    const auto kind = choice(node, "optimizer", {"sgd", "adam", "none"});
    if (!kind)
        return;
    const std::string path = "optimizer." + kind->kind;
    if (kind->kind == "none") {
        study.optimizer = NoOptimizer{};
        return;
    }
    SgdOptimizer sgd;
    AdamOptimizer adam;
    if (kind->value != nullptr) {
        Fields fields(*this, *kind->value, path);
        if (kind->kind == "sgd") {
            setNumber(fields.take("learning_rate"), path + ".learning_rate", sgd.learningRate);
            setNumber(fields.take("momentum"), path + ".momentum", sgd.momentum);
        } else {
            setNumber(fields.take("learning_rate"), path + ".learning_rate", adam.learningRate);
            setNumber(fields.take("beta1"), path + ".beta1", adam.beta1);
            setNumber(fields.take("beta2"), path + ".beta2", adam.beta2);
            setNumber(fields.take("epsilon"), path + ".epsilon", adam.epsilon);
        }
        fields.close();
    }
    if (kind->kind == "sgd")
        study.optimizer = sgd;
    else
        study.optimizer = adam;
}

void StudyReader::readTrain(const DocNode& node)
{
    Fields fields(*this, node, "train");
    setInteger(fields.take("steps"), "train.steps", study.train.steps);
    setInteger(fields.take("seed"), "train.seed", study.train.seed);
    if (const DocNode* data = fields.take("data"))
        readData(*data, "train.data");
    fields.close();
}

void StudyReader::readData(const DocNode& node, const std::string& path)
{
    TrainingData& data = study.train.data;
    if (node.kind == DocNode::Kind::Map) {
        Fields fields(*this, node, path);
        data.kind = TrainingData::Kind::File;
        setText(fields.require("file", "name a CSV file"), path + ".file", data.file);
        setNumber(fields.take("scale"), path + ".scale", data.scale);
        setInteger(fields.take("held_out"), path + ".held_out", data.heldOut);
        if (const DocNode* shuffle = fields.take("shuffle"))
            data.shuffle = truth(*shuffle, path + ".shuffle").value_or(data.shuffle);
        fields.close();
        return;
    }
    const auto name = text(node, path, "random, digits, or a file");
    if (!name || *name == "random")
        return;
    if (*name == "digits") {
        data.kind = TrainingData::Kind::Digits;
    } else if (name->find_first_of("./") != std::string::npos) {
        data.kind = TrainingData::Kind::File;
        data.file = *name;
    } else {
        unknownName(node, path, {"random", "digits"}).fix += " A file's name has a dot or a slash";
    }
}

void StudyReader::readPhases(const DocNode& node)
{
    if (node.kind != DocNode::Kind::List) {
        wrongKind(node, "phases", "a list of phases", "write phases: [{steps: 30, mesh: {data: 8}}]");
        return;
    }
    if (tooMany(node, "phases", kMostRules, "phases"))
        return;
    for (std::size_t i = 0; i < node.entries.size(); ++i) {
        const std::string path = fmt::format("phases[{}]", i);
        study.places.at[path] = node.entries[i].value.place(path);
        Fields fields(*this, node.entries[i].value, path);
        StudyPhase phase;
        setInteger(fields.require("steps", "say how long it lasts: steps: 30"), path + ".steps", phase.steps);
        if (const DocNode* mesh = fields.require("mesh", "give its mesh: mesh: {data: 8}"))
            readMesh(*mesh, path + ".mesh", phase.mesh, phase.deviceOrder);
        readOrder(fields.take("device_order"), path + ".device_order", phase.deviceOrder);
        fields.close();
        study.phases.push_back(std::move(phase));
    }
}

void StudyReader::readPipeline(const DocNode& node)
{
    Fields fields(*this, node, "pipeline");
    setText(fields.take("axis"), "pipeline.axis", study.pipeline.axis);
    setInteger(fields.take("stages"), "pipeline.stages", study.pipeline.stages);
    setInteger(fields.take("microbatches"), "pipeline.microbatches", study.pipeline.microbatches);
    word(fields.take("schedule"), "pipeline.schedule", scheduleWords(), study.pipeline.schedule);
    setInteger(fields.take("chunks"), "pipeline.chunks", study.pipeline.chunks);
    const DocNode* layers = fields.take("layers");
    if (layers != nullptr && !tooMany(*layers, "pipeline.layers", kMostLayers, "numbers of layers"))
        study.pipeline.layers
            = integers(*layers, "pipeline.layers", "a list of numbers of layers").value_or(study.pipeline.layers);
    fields.close();
}

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

} // namespace

StudyReading readStudyInPart(std::string_view text, const std::string& fileName, std::span<const std::string> settings)
{
    Document document = parseDocument(text, fileName);
    StudyReading reading;
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
    return readStudy(*text, path == "-" ? std::string("standard input") : path.string(), settings);
}

Problems examineStudy(std::string_view text, const std::string& fileName, std::span<const std::string> settings)
{
    return readStudyInPart(text, fileName, settings).problems;
}

} // namespace meshwright
