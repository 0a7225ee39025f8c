// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/build_report.h"

#include "core/draw/svg.h"
#include "core/program/spoken_op.h"
#include "core/support/find.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/report/report_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace meshwright::sim {

namespace {

std::string fileName(const std::string& path)
{
    return std::filesystem::path(path).filename().string();
}

std::string modelText(const Study& study)
{
    if (const TransformerModel* transformer = study.transformer()) {
        const TransformerConfig& c = transformer->config;
        const std::string name = c.name.empty() ? std::string("transformer") : "transformer " + c.name;
        return fmt::format("{}, {} parameters, {} layers, hidden {}, sequence {}", name,
            formatCount(static_cast<double>(parameterCounts(c).total)), c.layers, c.hidden, transformer->sequence);
    }
    const MlpModel* mlp = study.mlp();
    if (mlp == nullptr) {
        const auto* program = std::get_if<ProgramFile>(&study.model);
        return program == nullptr ? std::string() : "program " + fileName(program->file);
    }
    std::vector<std::string> sizes;
    for (const std::int64_t size : mlp->layers)
        sizes.push_back(std::to_string(size));
    return fmt::format("MLP {}, {}, {}", join(sizes, " → "), activationName(mlp->activation), lossName(mlp->loss));
}

std::string optimizerText(const Optimizer& optimizer)
{
    const UpdateChoices* update = updateChoices(optimizer);
    if (update == nullptr)
        return "none, gradients only";
    const auto* sgd = std::get_if<SgdOptimizer>(&optimizer);
    std::string text = sgd == nullptr ? std::get<AdamOptimizer>(optimizer).isAdamW ? "AdamW" : "Adam"
        : sgd->momentum != 0.0        ? "SGD with momentum"
                                      : "SGD";
    if (update->weightDecay != 0.0)
        text += fmt::format(", weight decay {}", update->weightDecay);
    if (update->masters)
        text += ", masters in f32";
    if (update->clipNorm != 0.0)
        text += fmt::format(", gradients clipped to norm {}", update->clipNorm);
    if (!update->lossScale.isPlain())
        text += fmt::format(", loss scaled by {}{}", update->lossScale.scale, update->lossScale.isDynamic() ? " at first" : "");
    if (update->schedule.kind != LearningRateSchedule::Kind::Constant)
        text += fmt::format(", {} decay of the learning rate", rateScheduleName(update->schedule.kind));
    if (update->schedule.warmupSteps != 0)
        text += fmt::format(", {} steps of warm-up", update->schedule.warmupSteps);
    return text;
}

std::vector<ReportInput> factsOf(const ReportInputs& inputs)
{
    std::vector<ReportInput> facts;
    if (inputs.machine != nullptr)
        facts.push_back({"Machine", inputs.machine->text()});
    if (inputs.partitioned != nullptr) {
        const Mesh& mesh = inputs.partitioned->device.stages.front().mesh();
        facts.push_back({"Mesh", mesh.text()});
    }
    if (inputs.study != nullptr) {
        if (std::string model = modelText(*inputs.study); !model.empty())
            facts.push_back({"Model", std::move(model)});
        if (inputs.study->trains()) {
            facts.push_back({"Batch", formatWhole(inputs.study->batch)});
            facts.push_back({"Types",
                fmt::format(
                    "{} parameters, {} products", dtypeName(inputs.study->parameterType), dtypeName(inputs.study->matmulType))});
            facts.push_back({"Optimizer", optimizerText(inputs.study->optimizer)});
        }
    }
    return facts;
}

/// `text` without the folder that the study lies in, so that a report does not tell where it was made.
std::string withoutFolder(std::string text, const std::string& studyFile)
{
    const std::string folder = std::filesystem::path(studyFile).parent_path().string();
    if (folder.empty())
        return validXmlText(text);
    const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at))
        text.erase(at, prefix.size());
    return validXmlText(text);
}

/// The inputs as a report may tell them: the study's file without its folder, problems without paths of this machine.
ReportInputs withoutPaths(ReportInputs inputs)
{
    for (Problem& problem : inputs.problems) {
        for (std::string* words : {&problem.message, &problem.rule, &problem.fix, &problem.place.file, &problem.place.path})
            *words = withoutFolder(*words, inputs.studyFile);
    }
    inputs.studyFile = validXmlText(fileName(inputs.studyFile));
    inputs.studyText = validXmlText(inputs.studyText);
    for (std::string& setting : inputs.settings)
        setting = validXmlText(setting);
    return inputs;
}

double rounded(double value)
{
    const double result = std::round(value * 100.0) / 100.0;
    return result == 0.0 ? 0.0 : result; // no minus zero
}

struct Rounder {
    static void round(Point& point) { point = {rounded(point.x), rounded(point.y)}; }
    static void round(double& value) { value = rounded(value); }
    static void round(std::vector<Point>& points)
    {
        for (Point& point : points)
            round(point);
    }
    static void round(ShapeStyle& style)
    {
        round(style.outlineWidth);
        if (style.hatch == Hatch::None)
            style.hatchPaint = ShapeStyle{}.hatchPaint; // it means nothing
    }

    void operator()(RectShape& rect) const
    {
        round(rect.topLeft);
        round(rect.width);
        round(rect.height);
        round(rect.style);
        round(rect.cornerRadius);
    }
    void operator()(PolygonShape& polygon) const
    {
        round(polygon.corners);
        round(polygon.style);
    }
    void operator()(LineShape& line) const
    {
        round(line.from);
        round(line.to);
        round(line.width);
    }
    void operator()(PolylineShape& line) const
    {
        round(line.points);
        round(line.width);
    }
    void operator()(TextShape& text) const
    {
        round(text.at);
        round(text.size);
    }
};

} // namespace

std::string commandText(
    const std::string& verb, const std::string& file, const std::vector<std::string>& settings, const std::string& rest)
{
    std::string text
        = fmt::format("meshwright {} {}", verb, file.empty() ? std::string("study.yaml") : shellQuoted(fileName(file)));
    for (const std::string& setting : settings)
        text += " --set " + shellQuoted(setting);
    return rest.empty() ? text : text + " " + rest;
}

std::vector<std::string> withSettings(std::vector<std::string> settings, const std::vector<std::string>& more)
{
    const auto pathOf = [](const std::string& setting) { return setting.substr(0, setting.find('=')); };
    for (const std::string& added : more)
        std::erase_if(settings, [&](const std::string& setting) { return pathOf(setting) == pathOf(added); });
    settings.insert(settings.end(), more.begin(), more.end());
    return settings;
}

ReportValue wordsValue(std::string text)
{
    return {std::move(text), std::nullopt, {}};
}

namespace {

ReportValue numberValue(std::string text, double number, std::string unit)
{
    if (!std::isfinite(number))
        return wordsValue("not a number");
    return {std::move(text), number, std::move(unit)};
}

} // namespace

ReportValue secondsValue(double seconds)
{
    return numberValue(formatSeconds(seconds), seconds, "s");
}

ReportValue bytesValue(double bytes)
{
    return numberValue(formatBytes(bytes), bytes, "B");
}

ReportValue countValue(std::int64_t count)
{
    return numberValue(formatWhole(count), static_cast<double>(count), {});
}

ReportValue shareValue(double share)
{
    return numberValue(percentText(share), share, {});
}

ReportValue rateValue(double perSecond, const std::string& what)
{
    return numberValue(fmt::format("{} {}/s", formatRate(perSecond), what), perSecond, what + "/s");
}

std::string percentText(double share)
{
    const double percent = 100.0 * share;
    if (percent > 0.0 && percent < 0.1)
        return "< 0.1 %";
    return percent >= 9.95 || percent <= -9.95 ? fmt::format("{:.0f} %", percent) : fmt::format("{:.1f} %", percent);
}

std::string mfuText(double mfu)
{
    return mfu > 0.0 && mfu < 0.0005 ? std::string("< 0.1 %") : fmt::format("{:.1f} %", 100.0 * mfu);
}

std::string spokenBound(const std::string& boundBy)
{
    const std::size_t over = boundBy.find(" over ");
    return over == std::string::npos ? boundBy : spokenOp(boundBy.substr(0, over)) + boundBy.substr(over);
}

std::string sourceText(const OptionalFigure& figure)
{
    if (!figure)
        return "assumed";
    return figure->note.empty() ? "catalogue: " + figure->source
                                : fmt::format("catalogue: {} ({})", figure->source, figure->note);
}

ColourRole roleOf(OpKind kind)
{
    switch (kind) {
    case OpKind::AllReduce:
        return ColourRole::AllReduce;
    case OpKind::AllGather:
        return ColourRole::AllGather;
    case OpKind::ReduceScatter:
        return ColourRole::ReduceScatter;
    case OpKind::AllToAll:
        return ColourRole::AllToAll;
    default:
        return ColourRole::Permute;
    }
}

ReportPicture pictureOf(std::string id, std::string title, DisplayList list, std::string caption)
{
    list.width = rounded(list.width);
    list.height = rounded(list.height);
    for (DisplayItem& item : list.items)
        std::visit(Rounder{}, item.shape);
    if (list.title.empty())
        list.title = title;
    return {std::move(id), std::move(title), std::move(caption), std::move(list)};
}

std::int64_t usableBytes(const Simulation& simulation)
{
    return simulation.capacityBytes - simulation.reserveBytes;
}

std::string reserveRule(const Machine& machine)
{
    return machine.chip.chipClass == ChipClass::Tpu ? "4 % of the memory" : "4 % of the memory and 1 GiB, at most a tenth";
}

const char* reportToneName(ReportTone tone)
{
    switch (tone) {
    case ReportTone::Neutral:
        return "neutral";
    case ReportTone::Good:
        return "good";
    case ReportTone::Warning:
        return "warning";
    case ReportTone::Error:
        return "error";
    }
    return "neutral";
}

const ReportSection* Report::findSection(std::string_view id) const
{
    return findBy(sections, id, &ReportSection::id);
}

const ReportAnswer* Report::findAnswer(std::string_view id) const
{
    return findBy(answers, id, &ReportAnswer::id);
}

Report buildReport(const ReportInputs& given)
{
    const ReportInputs inputs = withoutPaths(given);
    Report report;
    report.version = kVersion;
    report.study = {inputs.studyFile, inputs.studyText, inputs.settings};
    report.title = inputs.study != nullptr && !inputs.study->name.empty() ? inputs.study->name : report.study.file;
    if (report.title.empty())
        report.title = "A study without a name";
    report.facts = factsOf(inputs);
    report.command = commandText(
        "report", report.study.file, report.study.settings, inputs.training ? "--train -o report.html" : "-o report.html");
    report.answers = reportAnswers(inputs);
    if (!inputs.trials.empty())
        report.sections.push_back(trialsSection(inputs));
    report.sections.push_back(layoutsSection(inputs));
    if (inputs.machine != nullptr)
        report.sections.push_back(machineSection(inputs));
    report.sections.push_back(collectivesSection(inputs));
    if (inputs.simulated != nullptr) {
        report.sections.push_back(breakdownSection(inputs));
        report.sections.push_back(timelineSection(inputs));
        report.sections.push_back(memorySection(inputs));
    }
    report.sections.push_back(trainingSection(inputs));
    report.sections.push_back(problemsSection(inputs));
    report.sections.push_back(originSection(inputs, report.command));
    if (inputs.training)
        report.trainingResult = inputs.training->json;
    return report;
}

} // namespace meshwright::sim
