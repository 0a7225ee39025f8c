// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/openers.h"

#include "core/checkpoint/checkpoint.h"
#include "core/hlo/module.h"
#include "core/study/document.h"
#include "core/study/edit_text.h"
#include "core/study/program_study.h"
#include "core/support/escape.h"
#include "core/support/file.h"
#include "core/train/byte_stream.h"
#include "sim/plan/launch_line.h"
#include "sim/report/read_trace.h"
#include "sim/report/report.h"
#include "sim/session/launch_source.h"
#include "sim/session/study_machine.h"

#include <fmt/format.h>

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace meshwright::ui {

namespace {

bool endsIn(const FileStart& file, std::string_view ending)
{
    return file.path.size() >= ending.size()
        && QString::fromStdString(file.path).endsWith(
            QLatin1String(ending.data(), static_cast<int>(ending.size())), Qt::CaseInsensitive);
}

/// Without control characters but those that lay out and colour text.
bool isText(const FileStart& file)
{
    return !file.text.empty() && std::none_of(file.text.begin(), file.text.end(), [](char letter) {
        const auto code = static_cast<unsigned char>(letter);
        return code < 0x20 && (code < '\t' || code > '\r') && code != 0x1B;
    });
}

bool hasKey(const FileStart& file, std::string_view key)
{
    return file.text.find(fmt::format("\"{}\"", key)) != std::string_view::npos;
}

bool isJson(const FileStart& file)
{
    const std::size_t first = file.text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    return first != std::string_view::npos && file.text[first] == '{';
}

bool isReportFile(const FileStart& file)
{
    return sim::isReport(file.text) && (!isJson(file) || !hasKey(file, "traceEvents"));
}

/// JSON of a verb of Meshwright; its schema stands at its beginning. Which of them a study can be compared with is said when it is read.
bool isResult(const FileStart& file)
{
    constexpr std::size_t kBeginning = 512;
    const std::size_t schema = file.text.substr(0, kBeginning).find("\"schema\"");
    return isJson(file) && schema != std::string_view::npos
        && file.text.substr(schema, kBeginning).find("\"meshwright.") != std::string_view::npos;
}

/// The manifest, which stands for its folder.
bool isCheckpoint(const FileStart& file)
{
    return isJson(file) && hasKey(file, "meshwright.checkpoint/1");
}

bool isTrace(const FileStart& file)
{
    return isText(file) && sim::isTraceJson(file.text);
}

/// A notebook; a Markdown page or a script whose code is JAX's; a page saved as text, with `In [1]:` before its cells.
bool isPage(const FileStart& file)
{
    if (!isText(file))
        return false;
    if (isJson(file))
        return hasKey(file, "cells") && (hasKey(file, "nbformat") || endsIn(file, ".ipynb"));
    const auto has = [&](std::string_view part) { return file.text.find(part) != std::string_view::npos; };
    if (endsIn(file, ".md"))
        return has("```{code-cell") || has("```py") || has("```question");
    if (endsIn(file, ".py"))
        return true;
    return has("In [1]:");
}

/// The `config.json` of a model: its fields in the names of the families that are read.
bool isModel(const FileStart& file)
{
    return isJson(file) && !hasKey(file, "meshwright") && (hasKey(file, "model_type") || hasKey(file, "architectures"))
        && (hasKey(file, "hidden_size") || hasKey(file, "n_embd") || hasKey(file, "text_config") || hasKey(file, "d_model"));
}

/// A module as XLA dumps it; Explain lists its collectives.
bool isDump(const FileStart& file)
{
    return isText(file) && isHloText(file.text);
}

bool isProgram(const FileStart& file)
{
    return isText(file) && isProgramText(file.path, file.text);
}

/// A script or a line that starts a training in another framework.
bool isLaunch(const FileStart& file)
{
    return isText(file) && !isJson(file) && sim::isLaunchText(file.path, file.text);
}

/// By its first keys. A file that ends as studies do and cannot be read is a study with mistakes, which the user repairs in Source.
bool isStudy(const FileStart& file)
{
    if (!isText(file))
        return false;
    const bool hasPart = file.text.starts_with("meshwright:") || file.text.starts_with("model:")
        || file.text.find("\nmeshwright:") != std::string_view::npos || file.text.find("\nmodel:") != std::string_view::npos;
    if (endsIn(file, ".yaml") || endsIn(file, ".yml")) {
        const Document document = parseDocument(file.text, file.path);
        return hasPart || !document.readable;
    }
    return hasPart || (isJson(file) && hasKey(file, "meshwright") && hasKey(file, "model"));
}

/// Any other text may have messages in it, but not what is plainly a document of another kind.
bool isMessages(const FileStart& file)
{
    return isText(file) && !isJson(file) && !endsIn(file, ".yaml") && !endsIn(file, ".yml") && !endsIn(file, ".html");
}

bool isCompressed(std::string_view start)
{
    return start.starts_with("\x1f\x8b");
}

/// What the beginning of a compressed file says.
std::string unpackedStart(std::string_view start, const std::string& name)
{
    ByteStream stream(start, name);
    std::string text;
    while (text.size() < kStartBytes) {
        const auto more = stream.next();
        if (!more || more->empty())
            break;
        text += *more;
    }
    text.resize(std::min(text.size(), kStartBytes));
    return text;
}

/// What it is, as far as that is known; empty: no idea.
std::string kindOf(const FileStart& file)
{
    if (file.text.empty())
        return "an empty file";
    if (isCompressed(file.text))
        return "a compressed file: unpack it first";
    if (file.text.starts_with("PK\x03\x04"))
        return "a ZIP archive: unpack it first";
    if (file.text.size() > 9 && file.text[8] == '{' && endsIn(file, ".safetensors"))
        return "weights: open the model's config.json";
    if (isJson(file))
        return "a JSON document of another program";
    if (!isText(file))
        return "a binary file";
    return "a document of another program";
}

/// What the model's positions allow, and not more than people begin with.
std::int64_t sequenceOf(const QString& configPath)
{
    constexpr std::int64_t kUsual = 4096;
    const auto text = readFile(configPath.toStdString(), kLargestDocumentBytes);
    const QJsonObject config = text ? QJsonDocument::fromJson(QByteArray::fromStdString(*text)).object() : QJsonObject();
    for (const char* key : {"max_position_embeddings", "n_positions", "n_ctx"}) {
        if (const qint64 most = config[QLatin1String(key)].toInteger(); most > 0)
            return std::min<std::int64_t>(most, kUsual);
    }
    return kUsual;
}

} // namespace

const std::vector<Opener>& openers()
{
    static const std::vector<Opener> kAll = {
        {QT_TRANSLATE_NOOP("openers", "a dump of HLO"), "*.txt *.hlo", isDump, OpenAs::Messages},
        {QT_TRANSLATE_NOOP("openers", "a program (StableHLO text)"), "*.mlir", isProgram, OpenAs::Program},
        {QT_TRANSLATE_NOOP("openers", "a checkpoint (its folder or its checkpoint.json)"), "*.json", isCheckpoint,
            OpenAs::Checkpoint},
        {QT_TRANSLATE_NOOP("openers", "a report that Meshwright wrote (HTML, JSON)"), "*.html *.json", isReportFile,
            OpenAs::Report},
        {QT_TRANSLATE_NOOP("openers", "a result of simulate, check, train, search or sweep (JSON)"), "*.json", isResult,
            OpenAs::Result},
        {QT_TRANSLATE_NOOP("openers", "a trace (Perfetto, Chrome and PyTorch JSON)"), "*.json *.json.gz", isTrace, OpenAs::Trace},
        {QT_TRANSLATE_NOOP("openers", "a page with Python cells (a notebook, Markdown, a script)"), "*.ipynb *.md *.py", isPage,
            OpenAs::Page},
        {QT_TRANSLATE_NOOP("openers", "a model's config.json"), "*.json", isModel, OpenAs::Model},
        {QT_TRANSLATE_NOOP("openers", "a study (YAML)"), "*.yaml *.yml", isStudy, OpenAs::Study},
        {QT_TRANSLATE_NOOP("openers", "a launch script (Megatron-LM, torchtitan, MaxText)"), "*.sh *.sbatch *.slurm *.toml",
            isLaunch, OpenAs::Launch},
        {QT_TRANSLATE_NOOP("openers", "a log or an error text"), "*.log *.txt", isMessages, OpenAs::Messages},
    };
    return kAll;
}

QString whatCanBeOpened()
{
    QStringList names;
    for (const Opener& opener : openers())
        names << QCoreApplication::translate("openers", opener.what);
    return names.join(QStringLiteral(", "));
}

Result<OpenAs> recognised(const QString& path)
{
    const std::string name = path.toStdString();
    if (QFileInfo(path).isDir()) {
        if (QFileInfo::exists(path + QLatin1Char('/') + QLatin1String(kManifestName)) || !checkpointsIn(name).empty())
            return OpenAs::Checkpoint;
        return Problem{"MW1830", fmt::format("\"{}\" is a folder without checkpoints", name),
            "open a file, or a folder of checkpoints", Place{name}};
    }
    std::ifstream stream(name, std::ios::binary);
    if (!stream)
        return readFile(name, kStartBytes).error(); // which says why
    std::string start(kStartBytes, '\0');
    stream.read(start.data(), static_cast<std::streamsize>(start.size()));
    start.resize(static_cast<std::size_t>(stream.gcount()));
    if (isCompressed(start) && isTrace({name, unpackedStart(start, name)}))
        return OpenAs::Trace; // the one kind that is read as it is
    return recognised(FileStart{name, start});
}

Result<OpenAs> recognised(const FileStart& file)
{
    const auto opener = std::find_if(openers().begin(), openers().end(), [&](const Opener& one) { return one.isOne(file); });
    if (opener != openers().end())
        return opener->as;
    return Problem{"MW1830",
        fmt::format("{} cannot be opened: it is {}", file.path.empty() ? "what is copied" : fmt::format("\"{}\"", file.path),
            kindOf(file)),
        fmt::format("what can be opened: {}", whatCanBeOpened().toStdString()), Place{file.path}};
}

QString endingOf(OpenAs as)
{
    switch (as) {
    case OpenAs::Program:
        return QStringLiteral(".mlir");
    case OpenAs::Study:
        return QStringLiteral(".yaml");
    case OpenAs::Page:
        return QStringLiteral(".ipynb");
    case OpenAs::Messages:
        return QStringLiteral(".txt");
    case OpenAs::Launch:
        return QStringLiteral(".sh");
    case OpenAs::Model:
    case OpenAs::Report:
    case OpenAs::Result:
    case OpenAs::Trace:
    case OpenAs::Checkpoint:
        break;
    }
    return QStringLiteral(".json");
}

sim::StudySource studyOfModel(const QString& configPath)
{
    const QFileInfo config(configPath);
    const bool isNamed = config.completeBaseName() != QLatin1String("config"); // else its folder has the model's name
    const QString name = isNamed ? config.completeBaseName() : config.dir().dirName();
    const std::string path = config.absoluteFilePath().toStdString();
    std::string text = fmt::format(
        "# The model of {}, on eight devices, fully sharded. Change the hardware and the mesh, or search a plan.\n", path);
    text += fmt::format("meshwright: 1\nname: {}\n", settingText(name.toStdString()));
    text += "hardware: {chip: h100, hosts: 1, per_host: 8}\nmesh: {fsdp: 8}\nmodel:\n";
    text += fmt::format("  transformer: {{config: {}}}\n", settingText(path));
    text += fmt::format("sequence: {}\n", sequenceOf(configPath));
    text += "recompute: full\nbatch: 8\ndtype: {parameters: f32, matmul: bf16, activations: bf16}\nsharding:\n"
            "  x: P('fsdp', None)\n  y: P('fsdp', None)\n  match:\n"
            "    - {path: \"*\", min_elements: 65536, divisible: largest_dim, spec: [fsdp]}\n    - {path: \"*\", spec: []}\n"
            "optimizer: {adam: {learning_rate: 3.0e-4}}\n";
    return {std::move(text), config.dir().filePath(name + QStringLiteral(".yaml")).toStdString(), {}};
}

Result<sim::StudySource> studyOfLaunch(const QString& path)
{
    const std::string file = path.toStdString();
    const auto text = readFile(file, kLargestDocumentBytes);
    if (!text)
        return text.error();
    const auto launch = sim::readLaunchLine(file, *text);
    if (!launch)
        return launch.error();
    const bool isForTpus = launch->framework == "maxtext"
        && std::ranges::none_of(
            launch->options, [](const sim::LaunchOption& one) { return one.name == "hardware" && one.value != "tpu"; });
    const auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return catalogue.error();
    const std::int64_t devices = launch->devices.value_or(64);
    std::vector<std::string> notes;
    const auto on = [&](const std::string& hardware) {
        notes.clear();
        return sim::studySourceOf({*text, file, {"hardware=" + hardware}}, *catalogue, notes);
    };
    const auto machine = [&](std::int64_t count) { return fmt::format("{}x{}", isForTpus ? "v5p" : "h100", count); };
    std::string hardware = launch->hardware.empty() ? machine(devices) : launch->hardware;
    std::string why = launch->hardware.empty() ? ": the line does not say its chips" : "";
    auto source = on(hardware);
    if (!source && launch->hardware.empty() && source.error().front().id == "MW1496") {
        // Scripts that people share say one host, and degrees for many.
        constexpr std::int64_t kMostTimes = 256;
        const Problems refused = source.error();
        for (std::int64_t times = 2; times <= kMostTimes && !source; ++times) {
            hardware = machine(times * devices);
            source = on(hardware);
        }
        if (!source)
            return refused;
        why = fmt::format(", the fewest on which its degrees go: the line starts {}", devices);
    }
    if (!source)
        return source.error();
    std::string said = fmt::format(
        "# The training that {} starts, on {}{}.\n", settingText(QFileInfo(path).fileName().toStdString()), hardware, why);
    for (const std::string& note : notes)
        said += fmt::format("# {}.\n", printable(note));
    source->text = said + source->text.substr(source->text.find('\n') + 1);
    source->file = std::filesystem::path(file).replace_extension(".yaml").string();
    return source;
}

} // namespace meshwright::ui
