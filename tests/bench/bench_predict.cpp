// SPDX-License-Identifier: GPL-3.0-or-later
//
// How far off `train --predict` is: the examples that this computer can run, and trainings of varied width, depth, batch, mesh and optimizer, none of
// which `calibrate` runs.
// usage: bench_predict [--profile HOST.json] [--write HOST.json] [--rows] [STUDY.yaml ...]      (default: the studies below)
// Prints a line for each study: its name, predicted and measured virtual time of a step, the error in total and by class; then the median and the worst.
// --rows: also a line for each instruction: row,<study>,<class>,<name>,predicted_s,measured_s of a device in a step.

#include "core/devices/clocks.h"
#include "core/schedule/label.h"
#include "core/study/study.h"
#include "core/support/file.h"
#include "sim/calibrate/host_measure.h"
#include "sim/calibrate/host_predict.h"
#include "sim/calibrate/host_reference.h"
#include "sim/session/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

using namespace meshwright;
using namespace meshwright::sim;

namespace {

struct NamedText {
    std::string name;
    std::string text;
};

[[noreturn]] void die(const Problems& problems)
{
    fmt::print(stderr, "{}\n", describe(problems));
    std::exit(1);
}

std::string mlp(
    const char* mesh, const char* layers, int batch, const char* sharding, const char* optimizer, const char* more = "")
{
    return fmt::format(
        "meshwright: 1\nname: bench\nmesh: {}\nmodel: {{mlp: {{layers: {}, loss: cross_entropy}}}}\nbatch: {}\nsharding:\n"
        "  x: P('data', None)\n  y: P('data', None)\n{}optimizer: {{{}}}\n{}train: {{steps: 25, seed: 0, data: random}}\n",
        mesh, layers, batch, sharding, optimizer, more);
}

std::string transformer(const char* mesh, int layers, int hidden, int heads, int batch)
{
    return fmt::format(
        "meshwright: 1\nname: bench\nmesh: {}\nmodel:\n  transformer: {{layers: {}, hidden: {}, heads: {}, ffn: {}, "
        "vocabulary: 32, activation: gelu_tanh, predict: last_token}}\nsequence: 64\nbatch: {}\nsharding:\n"
        "  x: P('data', None)\n  y: P('data')\n"
        "  layers.attention: {{q.w: \"P(None, None, 'model', None)\", k.w: \"P(None, None, 'model', None)\", "
        "v.w: \"P(None, None, 'model', None)\", o.w: \"P(None, 'model', None, None)\"}}\n"
        "  layers.ffn: {{up.w: \"P(None, None, 'model')\", down.w: \"P(None, 'model', None)\"}}\n"
        "optimizer: {{adam: {{learning_rate: 1.0e-3}}}}\ntrain: {{steps: 25, seed: 0, data: digits}}\n",
        mesh, layers, hidden, heads, 4 * hidden, batch);
}

std::vector<NamedText> builtIn()
{
    std::vector<NamedText> studies;
    for (const char* name : {"digits", "data_parallel", "fsdp", "fsdp_small_batch", "hybrid_fsdp", "phases", "pipeline_1f1b",
             "pipeline_gpipe", "pipeline_transformer", "replicated", "sequence_parallel", "sequence_parallel_transformer",
             "tensor_parallel", "three_d", "transformer_digits", "two_d", "zero1", "zero2"}) {
        const auto text = readFile(std::string(MESHWRIGHT_EXAMPLES) + "/" + name + ".yaml");
        if (!text)
            die(text.error());
        studies.push_back({name, *text});
    }
    constexpr const char* kSame = "  match: [{path: \"*\", spec: []}]\n";
    constexpr const char* kFully = "  match: [{path: \"*.w\", spec: [data, null]}, {path: \"*.b\", spec: []}]\n";
    constexpr const char* kSplit
        = "  layers.1: {w: \"P(None, 'model')\", b: \"P('model')\"}\n  layers.2: {w: \"P('model', None)\"}\n"
          "  match: [{path: \"*\", spec: []}]\n";
    constexpr const char* kNarrow = "dtype: {parameters: f32, matmul: bf16}\n";
    constexpr const char* kSgd = "sgd: {learning_rate: 1.0e-4}";
    constexpr const char* kAdam = "adam: {learning_rate: 1.0e-4}";
    const std::vector<NamedText> variations = {
        {"1 device, width 512", mlp("{data: 1}", "[784, 512, 512, 10]", 256, kSame, kAdam)},
        {"data 2, width 256", mlp("{data: 2}", "[64, 256, 256, 256, 10]", 256, kSame, kAdam)},
        {"data 4, width 64", mlp("{data: 4}", "[64, 64, 64, 10]", 64, kSame, kSgd)},
        {"data 8, width 768", mlp("{data: 8}", "[300, 768, 768, 768, 24]", 384, kSame, kAdam)},
        {"data 8, width 1024", mlp("{data: 8}", "[784, 1024, 1024, 1024, 10]", 512, kSame, kSgd)},
        {"data 16, width 320", mlp("{data: 16}", "[128, 320, 320, 10]", 320, kSame, kSgd)},
        {"fully sharded 4, width 200", mlp("{data: 4}", "[100, 200, 200, 200, 200, 20]", 400, kFully, kSgd)},
        {"fully sharded 8, width 512", mlp("{data: 8}", "[256, 512, 512, 512, 16]", 512, kFully, kAdam)},
        {"2 x 2, width 96", mlp("{data: 2, model: 2}", "[64, 96, 96, 96, 10]", 128, kSplit, kAdam)},
        {"2 x 4, width 384", mlp("{data: 2, model: 4}", "[128, 384, 384, 384, 10]", 192, kSplit, kAdam)},
        {"1 x 8, width 1024", mlp("{data: 1, model: 8}", "[784, 1024, 1024, 1024, 10]", 512, kSplit, kSgd)},
        {"4 x 4, width 1536", mlp("{data: 4, model: 4}", "[512, 1536, 1536, 1536, 10]", 1024, kSplit, kSgd)},
        {"transformer 2 x 2, hidden 64", transformer("{data: 2, model: 2}", 2, 64, 4, 32)},
        {"transformer 4 x 1, hidden 96", transformer("{data: 4, model: 1}", 3, 96, 6, 32)},
        {"transformer 2 x 4, hidden 128", transformer("{data: 2, model: 4}", 2, 128, 8, 16)},
        {"bf16 products, 4 x 2, width 640", mlp("{data: 4, model: 2}", "[256, 640, 640, 16]", 256, kSplit, kSgd, kNarrow)},
        {"bf16 products, data 8, width 320", mlp("{data: 8}", "[128, 320, 320, 16]", 512, kSame, kAdam, kNarrow)},
    };
    studies.insert(studies.end(), variations.begin(), variations.end());
    return studies;
}

/// Predicted and measured of each instruction, by name.
void printRows(const std::string& study, const ScheduledFunction& step, const Mesh& mesh, const HostProfile& profile,
    const Timeline& typical)
{
    struct Row {
        HostClass hostClass = HostClass::Elementwise;
        double predicted = 0.0;
        double measured = 0.0;
        HostCosts amounts{};
    };
    std::map<std::string, Row> rows;
    forEachWork(step, mesh, profile, [&](const HostWork& work) {
        if (work.isWait)
            return;
        Row& row = rows[instructionLabel(step.device.function, *work.instruction)];
        row.hostClass = work.hostClass;
        row.predicted += work.seconds(profile.costs);
        std::ranges::transform(row.amounts, work.amounts, row.amounts.begin(), std::plus{});
    });
    for (const Slice& slice : typical.slices()) {
        if (slice.category != SliceCategory::Wait)
            rows[typical.text(slice.name)].measured += slice.durationSeconds / static_cast<double>(mesh.deviceCount());
    }
    for (const auto& [name, row] : rows) {
        std::string amounts;
        for (std::size_t i = 0; i < kHostCosts; ++i) {
            if (row.amounts[i] > 0.0)
                amounts += fmt::format(" {}:{:.4g}", hostCostName(static_cast<HostCost>(i)), row.amounts[i]);
        }
        fmt::print(
            "row,{},{},{},{:.3e},{:.3e},{}\n", study, hostClassName(row.hostClass), name, row.predicted, row.measured, amounts);
    }
}

/// The error in total.
double compare(const NamedText& named, const HostProfile& measuredProfile, bool withRows)
{
    const auto study = readStudy(named.text, named.name);
    if (!study)
        die(study.error());
    const auto reference = HostReference::create(measuredProfile.permits);
    if (!reference)
        die(reference.error());
    const auto result
        = trainStudy(*study, {.typical = true, .besides = [&] { static_cast<void>((*reference)->run({})); }}, {}, {});
    if (!result)
        die(result.error());
    const auto phases = trainingPhases(*study);
    if (!phases)
        die(phases.error());
    const ScheduledProgram& scheduled = phases->back().scheduled;
    const HostSpeed now = (*reference)->speed();
    const HostProfile profile = atSpeed(measuredProfile, now);
    const HostSeconds predicted = predictHost(scheduled, profile);
    const HostSeconds measured = measuredHost(scheduled, result->typicalTime);
    const double error = predicted.total / measured.total - 1.0;
    fmt::print("{:34} {:9.3f} ms {:9.3f} ms {:+6.1f} %  (as quick as when measured: {:+6.1f} %; products now {:.2f} x, others "
               "{:.2f} x) ",
        named.name, predicted.total * 1e3, measured.total * 1e3, error * 100.0,
        100.0 * (predictHost(scheduled, measuredProfile).total / measured.total - 1.0),
        now.productSeconds / measuredProfile.reference.productSeconds, now.otherSeconds / measuredProfile.reference.otherSeconds);
    for (std::size_t i = 0; i < kHostClasses; ++i) {
        if (measured.byClass[i] > 0.02 * measured.total)
            fmt::print(" {} {:+.0f} % of {:.0f} %", hostClassName(static_cast<HostClass>(i)),
                100.0 * (predicted.byClass[i] / measured.byClass[i] - 1.0), 100.0 * measured.byClass[i] / measured.total);
    }
    fmt::print("\n");
    const ScheduledStage& stage = scheduled.stages.front();
    if (const ScheduledFunction* step = stage.find("step"); withRows && step != nullptr)
        printRows(named.name, *step, stage.mesh(), profile, result->typicalTime);
    std::fflush(stdout);
    return error;
}

} // namespace

int main(int argc, char** argv)
{
    std::vector<NamedText> studies;
    std::string file;
    std::string written;
    bool withRows = false;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--profile" && i + 1 < argc)
            file = argv[++i];
        else if (argument == "--write" && i + 1 < argc)
            written = argv[++i];
        else if (argument == "--rows")
            withRows = true;
        else if (const auto text = readFile(argument))
            studies.push_back({argument, *text});
        else
            die(text.error());
    }
    const double start = wallSeconds();
    const auto profile = file.empty() ? measureHost({}) : readHostProfile(file);
    if (!profile)
        die(profile.error());
    if (file.empty())
        fmt::print("measured in {:.1f} s\n", wallSeconds() - start);
    if (!written.empty()) {
        if (const auto done = writeFileAtomically(written, hostProfileJson(*profile)); !done)
            die(done.error());
    }
    std::vector<double> errors;
    for (const NamedText& study : studies.empty() ? builtIn() : studies)
        errors.push_back(std::abs(compare(study, *profile, withRows)));
    std::ranges::sort(errors);
    fmt::print("median {:.1f} %, worst {:.1f} % of {} studies\n", 100.0 * errors[errors.size() / 2], 100.0 * errors.back(),
        errors.size());
}
