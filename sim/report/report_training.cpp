// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_curves.h"
#include "core/schedule/pipeline_uses.h"
#include "core/support/text.h"
#include "sim/report/report_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace meshwright::sim {

namespace {

constexpr std::size_t kMostTensors = 12;
constexpr double kWideRange = 50.0; ///< losses that fall this far are drawn on a logarithmic axis

ReportPicture curve(const char* id, const char* title, const char* yTitle, const std::vector<double>& values,
    const std::vector<MeasuredPhase>& phases, bool isLoss)
{
    CurvesDrawing drawing;
    drawing.xTitle = "step";
    drawing.yTitle = yTitle;
    drawing.xQuantity = Quantity::Count;
    drawing.width = 420.0;
    drawing.height = 260.0;
    Curve line;
    line.name = yTitle;
    line.paint = isLoss ? ColourRole::Compute : ColourRole::ReduceScatter;
    line.y = values;
    line.x.resize(values.size());
    std::iota(line.x.begin(), line.x.end(), 0.0);
    std::int64_t begin = 0;
    for (std::size_t i = 1; i < phases.size(); ++i) {
        begin += phases[i - 1].steps;
        if (phases[i].mesh != phases[i - 1].mesh)
            drawing.marks.push_back(
                {static_cast<double>(begin), fmt::format("mesh {} → {}", phases[i - 1].mesh, phases[i].mesh)});
    }
    double least = 0.0;
    double most = 0.0;
    for (const double value : values) {
        if (!std::isfinite(value))
            continue;
        least = least == 0.0 ? value : std::min(least, value);
        most = std::max(most, value);
    }
    drawing.logarithmic = isLoss && least > 0.0 && most / least > kWideRange;
    drawing.fromZero = !drawing.logarithmic;
    drawing.curves.push_back(std::move(line));
    return pictureOf(id, title, drawCurves(drawing));
}

ReportValue plainValue(double value)
{
    if (!std::isfinite(value))
        return wordsValue("not finite");
    return {fmt::format("{:.4g}", value), value, {}};
}

/// How many of the collectives were called as often, and with as many bytes, as was predicted.
struct Counted {
    std::size_t all = 0;
    std::size_t asPredicted = 0;
};

Counted countedCollectives(const MeasuredTraining& training)
{
    Counted counted;
    for (const MeasuredCollective& collective : training.collectives) {
        const auto phase = std::find_if(
            training.phases.begin(), training.phases.end(), [&](const MeasuredPhase& p) { return p.mesh == collective.mesh; });
        const bool whole = !training.interrupted && phase != training.phases.end();
        const bool calls = whole ? collective.countedCalls == collective.count * phase->steps
                                 : collective.count > 0 && collective.countedCalls % collective.count == 0;
        ++counted.all;
        counted.asPredicted += calls && collective.countedBytes == collective.countedCalls * collective.payloadBytes ? 1 : 0;
    }
    return counted;
}

using CollectiveKey = std::tuple<std::string, std::string, std::int64_t, std::int64_t, std::string>;

ReportFigures figures(const MeasuredTraining& training)
{
    ReportFigures figures;
    const auto add = [&](std::string label, ReportValue value, ReportOpening opening = {}) {
        figures.figures.push_back({std::move(label), std::move(value), std::move(opening)});
    };
    add("Steps", countValue(training.steps()),
        {training.interrupted ? "It was interrupted before all steps were done." : "", {}, {}});
    if (!training.losses.empty()) {
        ReportValue last = plainValue(training.losses.back());
        add("Loss", {fmt::format("{} → {}", plainValue(training.losses.front()).text, last.text), last.number, {}},
            {training.interrupted ? "Of the first and the last step's batch, each before its update."
                                  : "Of the first batch before its update, and of the last batch after it.",
                {}, {}});
    }
    if (training.heldOutAccuracy)
        add("Held-out accuracy", shareValue(*training.heldOutAccuracy),
            {{}, "right / examples", {{"examples", formatWhole(training.heldOutExamples), "held out from training"}}});
    add("Step on this computer", secondsValue(training.stepSecondsMedian),
        {"Measured; the devices share the cores of one computer.", "median over steps",
            {{"fastest", formatSeconds(training.stepSecondsMin), "measured"},
                {"slowest", formatSeconds(training.stepSecondsMax), "measured"}}});
    add("Samples", rateValue(training.samplesPerSecond, "samples"), {"Measured over the whole run.", {}, {}});
    add("Memory of a device", bytesValue(static_cast<double>(training.stepArenaBytes)),
        {"Planned for this computer's order of ops, which differs from an accelerator's.", {}, {}});
    const Counted counted = countedCollectives(training);
    add("Collectives as predicted",
        {fmt::format("{} of {}", counted.asPredicted, counted.all), static_cast<double>(counted.asPredicted), {}},
        {"The devices count their calls and bytes while they run.",
            "counted calls = predicted calls × steps;  counted bytes = calls × predicted bytes", {}});
    return figures;
}

ReportParagraph verdict(const MeasuredTraining& training)
{
    if (!training.verification)
        return {"The run was not verified against one device; `meshwright train --verify` and `meshwright report --train` do."};
    const MeasuredVerification& v = *training.verification;
    if (v.passed && !v.provesAnything)
        return {"Nothing was proved: on one device nothing is finite and larger than its rounding.", ReportTone::Warning};
    if (v.passed)
        return {fmt::format("Equal to one device: at {} checked steps every tensor is within its tolerance (largest error {:.1e} "
                            "of a tensor's scale).",
                    v.checkedSteps.size(), v.maxRelError),
            ReportTone::Good};
    const auto failed
        = std::count_if(v.tensors.begin(), v.tensors.end(), [](const MeasuredTensor& tensor) { return !tensor.passed; });
    return {fmt::format("DIFFERENT from one device: {} of {} tensors are outside their tolerance.", failed, v.tensors.size()),
        ReportTone::Error};
}

ReportTable tensorTable(const MeasuredVerification& verification, std::int64_t devices)
{
    std::vector<MeasuredTensor> tensors = verification.tensors;
    const auto used = [](const MeasuredTensor& tensor) { return tensor.tolerance > 0.0 ? tensor.error / tensor.tolerance : 0.0; };
    std::stable_sort(tensors.begin(), tensors.end(), [&](const MeasuredTensor& a, const MeasuredTensor& b) {
        return std::pair(!a.passed, used(a)) > std::pair(!b.passed, used(b));
    });
    ReportTable table;
    table.title = "Tensors against one device in double precision";
    table.columns = {{"Tensor"}, {"Error, sharded", true}, {"Error, one device", true}, {"Allowed", true}, {"Verdict"}};
    for (std::size_t i = 0; i < std::min(kMostTensors, tensors.size()); ++i) {
        const MeasuredTensor& tensor = tensors[i];
        const auto figure = [](double value) {
            return std::isfinite(value) ? ReportValue{fmt::format("{:.2e}", value), value, {}} : wordsValue("not finite");
        };
        table.rows.push_back({{wordsValue(tensor.name), figure(tensor.error), figure(tensor.unshardedError),
                                  figure(tensor.tolerance), wordsValue(tensor.passed ? "equal" : "different")},
            {{}, fmt::format("allowed = 4 × {:.2e} + {} devices × ε × {:.4g}", tensor.unshardedError, devices, tensor.scale),
                {}}});
    }
    table.note = "Allowed: 4 × the error of one device + devices × ε × the largest value of the reference, ε being a rounding of "
                 "the tensor's type.";
    if (tensors.size() > kMostTensors)
        table.note += fmt::format(" {} more tensors are further inside.", tensors.size() - kMostTensors);
    return table;
}

ReportSection absent(const ReportInputs& inputs, ReportSection section)
{
    if (inputs.study != nullptr && !inputs.study->trains()) {
        section.blocks.push_back(ReportParagraph{"Not measured: the study's model is a program file, which has no training."});
        return section;
    }
    section.blocks.push_back(ReportParagraph{
        "Not measured. Training on virtual devices adds losses, the comparison with one device, and counted collectives:"});
    section.blocks.push_back(
        ReportCode{"Command", commandText("report", inputs.studyFile, inputs.settings, "--train -o report.html")});
    return section;
}

} // namespace

bool measuresAnotherStudy(const ReportInputs& inputs)
{
    std::map<CollectiveKey, std::int64_t> difference;
    const Mesh& mesh = inputs.partitioned->device.stages.front().mesh();
    const auto expect = [&](const CollectiveUse& use) {
        ++difference[{opName(use.kind), use.axes, use.count, use.payloadBytes, use.cause.value}];
    };
    if (inputs.pipeline != nullptr) {
        for (const StageUse& one : collectivesOf(*inputs.pipeline, inputs.study->pipeline.axis))
            expect(one.use);
    } else {
        for (const CollectiveUse& use : collectivesOf(inputs.scheduled->device, mesh))
            expect(use);
    }
    for (const MeasuredCollective& measured : inputs.training->collectives) {
        if (measured.mesh == mesh.text())
            --difference[{measured.op, measured.axes, measured.count, measured.payloadBytes, measured.value}];
    }
    // What is measured beside the training (--metrics) is no other study.
    std::erase_if(difference, [](const auto& entry) { return std::get<4>(entry.first).starts_with("grad_norm"); });
    return std::ranges::any_of(difference, [](const auto& entry) { return entry.second != 0; });
}

ReportSection trainingSection(const ReportInputs& inputs)
{
    ReportSection section{"training", "Training", {}};
    if (!inputs.training)
        return absent(inputs, std::move(section));
    const MeasuredTraining& training = *inputs.training;
    std::string intro
        = fmt::format("Trained on {} virtual devices of one computer, which hold their shards and really exchange data. "
                      "What was learnt and what was sent is real; its speed says nothing about the machine above.",
            training.devices);
    if (training.phases.size() > 1)
        intro += fmt::format(" In {} phases, each on its own mesh.", training.phases.size());
    section.blocks.push_back(ReportParagraph{std::move(intro)});
    if (inputs.scheduled != nullptr && measuresAnotherStudy(inputs))
        section.blocks.push_back(
            ReportParagraph{"The result is of another study: the collectives of its step are not those that this report lists.",
                ReportTone::Warning});
    section.blocks.push_back(verdict(training));
    section.blocks.push_back(figures(training));
    ReportPictures curves;
    if (training.losses.size() > 1)
        curves.pictures.push_back(curve("losses", "Loss of each step", "loss", training.losses, training.phases, true));
    if (training.accuracies.size() > 1)
        curves.pictures.push_back(
            curve("accuracies", "Accuracy on each step's batch", "accuracy", training.accuracies, training.phases, false));
    if (!curves.pictures.empty())
        section.blocks.push_back(std::move(curves));
    if (training.verification && !training.verification->tensors.empty())
        section.blocks.push_back(tensorTable(*training.verification, training.devices));
    return section;
}

} // namespace meshwright::sim
