// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verb_table.h"

#include "app/verbs/verbs.h"
#include "core/study/study.h"
#include "core/support/text.h"
#include "sim/compare/gates.h"

#include <CLI/App.hpp>

#include <memory>

namespace meshwright::cli {

namespace {

constexpr const char* kTrainExamples = R"help(  meshwright train study.yaml --verify
  meshwright train study.yaml --set train.steps=50 --set mesh.data=2 --format json
  meshwright train study.yaml --trace trace.json -o result.json
  meshwright train study.yaml --checkpoint checkpoints --every 100 --keep 3
  meshwright train study.yaml --resume checkpoints --set mesh.data=2 --set mesh.model=4
  meshwright train study.yaml --check-numerics --inject nan:device=1,step=4)help";

constexpr const char* kSimulateExamples = R"help(  meshwright simulate study.yaml
  meshwright simulate study.yaml --set mesh.data=8 --set mesh.model=1 --format json
  meshwright simulate resources/examples/*.yaml --format csv
  meshwright simulate program.mlir --hw h100x32 --mesh data=8,model=4
  meshwright simulate run.sh --hw h100x64
  meshwright simulate study.yaml --trace trace.json
  meshwright simulate study.yaml --fidelity message --algorithm all_reduce=ring
  meshwright simulate study.yaml --chakra traces
  meshwright simulate --chakra-in traces --hw h100x8)help";

constexpr const char* kSearchExamples = R"help(  meshwright search --model llama3_8b --hw v5e-64 --tokens 1M --seq 4096 --top 3
  meshwright search --model config.json --hw h100x64 --global-batch 512 --seq 8k --format json
  meshwright search --model llama3_70b --hw h100,v5p --chips 64..512 --tokens 4M --seq 4k
  meshwright search --model llama3_8b --hw h100x64 --tokens 1M --seq 4k --fix pipeline=1,context=1
  meshwright search study.yaml --set hardware.hosts=8 -o plan.yaml
  meshwright search program.mlir --hw v5e-8 -o plan.mlir
  meshwright search program.mlir --hw v5e-8 --mesh data=4,model=2)help";

constexpr const char* kPlanExamples = R"help(  meshwright plan llama3_8b --on 512xH100 --tokens 15T --seq 8k
  meshwright plan config.json --on v5p-512 --tokens 2T --batch 4M -o plan.html
  meshwright plan llama3_8b --on h100 --tokens 1T --deadline 30d --price 2.50
  meshwright plan llama3_70b --on 64xH100 --tokens 100B -o plan.yaml)help";

constexpr const char* kSweepExamples = R"help(  meshwright sweep study.yaml --vary mesh="data*model=64" --vary batch=1k,4k
  meshwright sweep study.yaml --vary hardware.topology=[4,2],[4,4],[8,8] --vary dtype.matmul=f32,bf16 -o sweep.html
  meshwright sweep study.yaml --vary mesh="data*model=2^3..2^8" --db runs.sqlite --jobs 8 --format csv
  meshwright sweep sweep.yaml --dry-run
  meshwright report --sweep runs.sqlite -o sweep.html)help";

constexpr const char* kExportExamples = R"help(  meshwright export plan.yaml
  meshwright export study.yaml --to jax -o train.py
  meshwright export plan.yaml --to megatron --set mesh.tensor=4
  meshwright export study.yaml --to perfetto -o step.json)help";

constexpr const char* kDiffExamples = R"help(  meshwright diff fsdp.yaml tensor_parallel.yaml
  meshwright diff study.yaml --set-b mesh.data=8 --set-b mesh.model=1
  meshwright simulate study.yaml --format json > budget.json
  meshwright diff budget.json study.yaml --fail-on "sharding,new-collectives,time>5%,memory>2%"
  meshwright diff old/named_shardings.json new/named_shardings.json --fail-on sharding --format junit -o diff.xml
  meshwright diff before.mlir after.mlir --format md)help";

constexpr const char* kReportExamples = R"help(  meshwright report study.yaml -o report.html
  meshwright report study.yaml --train -o report.html
  meshwright report study.yaml --result result.json -o report.md
  meshwright report study.yaml --set mesh.data=8 --format csv
  meshwright report program.mlir --hw h100x32 --mesh data=8,model=4 -o report.html
  meshwright report --sweep runs.sqlite -o sweep.html
  meshwright report report.html -o again.html)help";

} // namespace

void addTrain(VerbTable& table)
{
    const auto options = std::make_shared<TrainOptions>();
    Verb& verb = table.add("train", "Train a study, sharded over virtual devices.", kTrainExamples, {Format::Text, Format::Json},
        [options](Output& output) { return runTrain(*options, output); });
    verb.needed.push_back(verb.app->add_option("STUDY", options->study, "Study file; - is standard input")->type_name(""));
    addSettings(*verb.app, options->settings);
    verb.app->add_flag("--verify", options->verify, "Check steps against one device; exit code 5 on a difference");
    addNoProve(*verb.app, options->proves);
    verb.app->add_option("--permits", options->permits, "Devices that compute at once (default: one per core)")
        ->type_name("N")
        ->check(wholeNumber(1, 1024));
    addEngine(*verb.app, options->engine);
    addDeviceMemory(*verb.app, options->deviceMemory);
    const CLI::Option* predict = verb.app->add_flag(
        "--predict", options->predict, "Also predict the step in virtual time, to compare with the measurement");
    const CLI::Option* profile
        = verb.app->add_option("--profile", options->profile, "Profile of this computer for --predict (default: measured first)")
              ->type_name("FILE");
    verb.addFile(
        "--trace", options->trace, "File for the measured timeline of the last step, for Perfetto", WrittenFile::Kind::Beside);
    verb.addFile("-o,--output", options->result, "File for the result as JSON", WrittenFile::Kind::Beside);
    verb.addFile("--metrics", options->metrics,
        "File for a line of JSON for each step: loss, accuracy, gradient norm, learning rate", WrittenFile::Kind::Beside);
    const CLI::Option* checkpoint = verb.addFile("--checkpoint", options->checkpoint,
        "Folder for checkpoints: parameters, optimizer states, step, random state", WrittenFile::Kind::Folder, "FOLDER");
    const CLI::Option* every
        = verb.app->add_option("--every", options->every, "Steps between two checkpoints (default: only after the last step)")
              ->type_name("N")
              ->check(wholeNumber(0));
    const CLI::Option* keep = verb.app->add_option("--keep", options->keep, "Number of newest checkpoints to keep (default: all)")
                                  ->type_name("N")
                                  ->check(wholeNumber(0));
    verb.app->add_option("--resume", options->resume, "Resume from a checkpoint, or from the newest complete one in a folder")
        ->type_name("FOLDER");
    addFaultFlags(*verb.app, options->faults);
    verb.followers = {{every, checkpoint}, {keep, checkpoint}, {profile, predict}};
}

void addSimulate(VerbTable& table)
{
    const auto options = std::make_shared<SimulateOptions>();
    Verb& verb = table.add("simulate", "Predict a step on hardware: its time, what bounds it, and whether it fits in memory.",
        kSimulateExamples, {Format::Text, Format::Json, Format::Csv},
        [options](Output& output) { return runSimulate(*options, output); });
    verb.app
        ->add_option("STUDY", options->studies,
            "Study files, programs as StableHLO text, or scripts that launch a training; - is standard input")
        ->type_name("");
    addSettings(*verb.app, options->settings);
    verb.app
        ->add_option("--hw", options->hardware,
            "Chips or machines and how many, in place of the study's, or to replay traces on: v5e-64, h100x64")
        ->type_name("NAME");
    addMesh(*verb.app, options->settings);
    addStack(*verb.app, options->settings);
    verb.addFile("--trace", options->trace, "File for the timeline, for Perfetto", WrittenFile::Kind::Beside);
    verb.addFile("--chakra", options->chakra,
        "Folder for the step as Chakra execution traces, a file for each rank, for ASTRA-sim", WrittenFile::Kind::Folder,
        "FOLDER");
    verb.app->add_option("--chakra-in", options->chakraIn, "Replay the Chakra traces of a step instead of a study")
        ->type_name("FOLDER");
    verb.app->add_option("--fidelity", options->fidelity, "Network model: formulas, flows that share links, or every message")
        ->type_name("closed|fluid|message");
    verb.app->add_option("--algorithm", options->algorithm, "Algorithm of collectives: ring, tree ...; or all_reduce=ring,...")
        ->type_name("NAME");
    addNoProve(*verb.app, options->proves);
}

void addSearch(VerbTable& table)
{
    const auto options = std::make_shared<SearchVerbOptions>();
    Verb& verb = table.add("search", "Find the fastest layouts of a training step on hardware, and explain why the others lose.",
        kSearchExamples, {Format::Text, Format::Json, Format::Csv, Format::Markdown},
        [options](Output& output) { return runSearch(*options, output); });
    CLI::App& app = *verb.app;
    app.add_option("STUDY", options->study,
           "A study, a program as StableHLO text, or a script that launches a training; its own mesh and specs are ignored")
        ->type_name("");
    addSettings(app, options->settings);
    app.add_option("--mesh", options->mesh, "Search a program's layouts on this mesh alone: data=8,model=4 (default: all meshes)")
        ->type_name("AXES");
    app.add_option(
           "--model", options->words.model, "A Hugging Face config.json, a model file of MaxText, or a built-in model: llama3_8b")
        ->type_name("FILE");
    app.add_option("--hw", options->words.hardware,
           "Chips or machines and how many: v5e-64, h100x64, \"p5.48xlarge x 8\", v5e-256x2 for two slices; several to compare")
        ->type_name("NAME")
        ->allow_extra_args(false);
    app.add_option("--chips", options->words.chips, "Number of chips, or a range that doubles: 16..256")->type_name("N");
    app.add_option("--tokens", options->words.tokens, "Tokens per step; k, M, G and T count in 1,024s: 0.5M is 524,288")
        ->type_name("N");
    app.add_option("--seq", options->words.sequence, "Tokens per sequence (default: 4k, or the model's number of positions)")
        ->type_name("N");
    app.add_option("--global-batch", options->words.globalBatch, "Sequences per step, instead of --tokens")->type_name("N");
    app.add_option("--dtype", options->words.format, "Number format of products (default bf16)")
        ->type_name("bf16|fp16|fp32|tf32|fp8|fp4");
    app.add_option("--fp8", options->words.recipe, "Multiply in 8 bits; the recipe chooses which values share a scale")
        ->type_name("delayed|current|rowwise|blockwise");
    app.add_option("--stack", options->words.stack,
           "Software to search for: " + join(stackWords(), ", ") + " (default: the usual one on each chip)")
        ->type_name("NAME");
    app.add_option("--price", options->words.prices, "Dollars per hour and chip: one for all, or one for each --hw")
        ->type_name("USD")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("--fix,--plan", options->fixed,
           "Choices to fix: data, fsdp, expert, context, tensor, pipeline, microbatch, chunks, zero, recompute, "
           "schedule; or a plan by its name: FSDP, HSDP, \"ZeRO-1 + TP 8\", Megatron, \"tp=8 pp=4\"")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
    app.add_flag("--per-op", options->perOp,
        "Choose a layout for every op of the study's training step instead of a known strategy; programs are always "
        "searched this way");
    app.add_flag(
        "!--plans-only", options->explains, "List the plans only: no alternatives, templates, other memory sizes or lower bound");
    app.add_option("--top", options->top, "Number of meshes to list (default 5)")->type_name("N")->check(wholeNumber(1));
    app.add_option("--gap", options->gap,
           "Simulate plans until no other can be quicker by more than this many percent (1 with --time-limit; else only the most "
           "promising are simulated)")
        ->type_name("PERCENT")
        ->transform([](const std::string& text) { return text.ends_with('%') ? text.substr(0, text.size() - 1) : text; })
        ->check(anyNumber);
    app.add_option("--time-limit", options->timeLimit, "Stop after this many seconds with the best plan so far")
        ->type_name("SECONDS")
        ->check(anyNumber);
    app.add_option("-j,--threads", options->threads, "Threads (default: one per core); the result does not depend on them")
        ->type_name("N")
        ->check(wholeNumber(1, 1024));
    verb.addFile("-o,--output", options->file,
        "File for the best plan as a study; the plan of a program is written next to it, or alone as plan.mlir",
        WrittenFile::Kind::Beside);
}

void addPlan(VerbTable& table)
{
    const auto options = std::make_shared<PlanVerbOptions>();
    Verb& verb = table.add("plan",
        "Plan a training on a cluster: layout, memory, days, dollars, failures, and what would change the answer.", kPlanExamples,
        {Format::Text, Format::Json, Format::Html, Format::Markdown}, [options, &table](Output& output) {
            options->formatGiven = table.isFormatGiven();
            return runPlan(*options, output);
        });
    CLI::App& app = *verb.app;
    sim::PlanWords& words = options->words;
    verb.needed = {app.add_option("CONFIG", words.model,
                          "A Hugging Face config.json, a model file of MaxText, or a built-in model: llama3_8b")
                       ->type_name(""),
        app.add_option("--on", words.machine,
               "Chips or machines and how many: 512xH100, v5p-512; a chip alone with --deadline, --budget or --min-gpus")
            ->type_name("NAME"),
        app.add_option(
               "--tokens", words.tokens, "Tokens of the whole training: 15T, 300B, 1.5e12 (k, M, B and T are powers of 1000)")
            ->type_name("N")};
    app.add_option("--seq", words.sequence, "Tokens per sequence (default: 4k, or the model's number of positions)")
        ->type_name("N");
    app.add_option("--batch", words.batch, "Tokens per step; k, M count in 1,024s (default: about 4M)")->type_name("N");
    app.add_option("--global-batch", words.globalBatch, "Sequences per step, instead of --batch")->type_name("N");
    app.add_option("--deadline", words.deadline, "Find the smallest cluster that is done in this time: 30d, 36h, 4w")
        ->type_name("TIME");
    app.add_option("--budget", words.budget, "Find the largest cluster that this many dollars pay for: 2M, 500k")
        ->type_name("USD");
    app.add_flag("--min-gpus", words.leastChips, "Find the smallest cluster that the model fits");
    app.add_option("--price", words.price, "Dollars per hour and chip (default: the last published price that is known)")
        ->type_name("USD");
    app.add_option("--dtype", words.format, "Number format of products (default bf16)")->type_name("bf16|fp16|fp32|tf32|fp8|fp4");
    app.add_option("--stack", words.stack,
           "Software to predict for: " + join(stackWords(), ", ") + " (default: the usual one on the chip)")
        ->type_name("NAME");
    app.add_option("--fix,--plan", words.fixed, "Choices to fix, as of search: tensor=8, recompute=full, HSDP")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
    app.add_option("--time-limit", options->timeLimit, "Seconds to search and simulate (default 120)")
        ->type_name("SECONDS")
        ->check(anyNumber);
    app.add_option("-j,--threads", options->threads, "Threads (default: one per core)")
        ->type_name("N")
        ->check(wholeNumber(1, 1024));
    verb.addFile("-o,--output", options->file,
        "Output file; its ending chooses the format, and .yaml writes the best plan as a study", WrittenFile::Kind::Result);
}

void addSweep(VerbTable& table)
{
    const auto options = std::make_shared<SweepOptions>();
    Verb& verb
        = table.add("sweep", "Simulate a study with every combination of values, and list which are fastest and which fit.",
            kSweepExamples, {Format::Text, Format::Json, Format::JsonLines, Format::Csv, Format::Markdown, Format::Html},
            [options, &table](Output& output) {
                options->formatGiven = table.isFormatGiven();
                return runSweepVerb(*options, output);
            });
    verb.needed.push_back(verb.app
                              ->add_option("STUDY", options->file,
                                  "Study file, a program as StableHLO text, a script that launches a training, or a sweep file "
                                  "that names one; - is standard input")
                              ->type_name(""));
    verb.app
        ->add_option("--vary", options->vary,
            "What to vary, and its values: batch=1k,4k; 1..8; 2^0..2^6; mesh=\"data*model=64\" is every factorisation")
        ->type_name("PATH=VALUES")
        ->allow_extra_args(false);
    addSettings(*verb.app, options->settings);
    addHardware(*verb.app, options->settings);
    addMesh(*verb.app, options->settings);
    addStack(*verb.app, options->settings);
    verb.app->add_option("--db", options->database, "SQLite file that keeps finished points; the same command resumes from it")
        ->type_name("FILE");
    verb.app->add_option("-j,--jobs", options->jobs, "Points simulated at once (default: one per core)")
        ->type_name("N")
        ->check(wholeNumber(1, 1024));
    verb.app->add_flag("--dry-run", options->dryRun, "Only list the points");
    verb.app->add_option("--fail-on", options->failOn, "Exit code 1 if a point is refused; with unfit, also if one does not fit")
        ->type_name("refused|unfit");
    verb.addFile("-o,--output", options->result, "File to write instead of standard output; its ending chooses the format",
        WrittenFile::Kind::Result);
}

void addDiff(VerbTable& table)
{
    const auto options = std::make_shared<DiffOptions>();
    Verb& verb = table.add("diff",
        "Compare two studies, results or programs: layouts, collectives, time and memory. Can gate CI.", kDiffExamples,
        {Format::Text, Format::Json, Format::Markdown, Format::Sarif, Format::Junit}, [options, &table](Output& output) {
            options->formatGiven = table.isFormatGiven();
            return runDiff(*options, output);
        });
    verb.needed.push_back(verb.app
                              ->add_option("A", options->before,
                                  "A study, a program (.mlir), JSON of simulate, train, search, sweep, check, propagate or "
                                  "partition, or MaxText's "
                                  "named_shardings.json; - is standard input")
                              ->type_name(""));
    verb.app->add_option("B", options->after, "The same; default: A with --set-b")->type_name("");
    addSettings(*verb.app, options->settings);
    addHardware(*verb.app, options->settings);
    addMesh(*verb.app, options->settings);
    verb.app->add_option("--set-a", options->settingsBefore, "Override a value in study A only")
        ->type_name("PATH=VALUE")
        ->allow_extra_args(false);
    verb.app->add_option("--set-b", options->settingsAfter, "Override a value in study B only")
        ->type_name("PATH=VALUE")
        ->allow_extra_args(false);
    verb.app
        ->add_option("--fail-on", options->failOn,
            "Exit code 1 if one of these differs: " + join(sim::gateNames(), ", ")
                + "; bytes, time and memory take a limit in percent: time>5%")
        ->type_name("GATES");
    verb.addFile("-o,--output", options->result, "File to write instead of standard output; its ending chooses the format",
        WrittenFile::Kind::Result);
}

void addReport(VerbTable& table)
{
    const auto options = std::make_shared<ReportOptions>();
    Verb& verb
        = table.add("report", "Write a report on a study: whether it fits, how fast it is, what bounds it, what to do next.",
            kReportExamples, {Format::Html, Format::Markdown, Format::Csv, Format::Json}, [options, &table](Output& output) {
                options->formatGiven = table.isFormatGiven();
                return runReport(*options, output);
            });
    verb.app
        ->add_option("STUDY", options->study,
            "Study file, a program as StableHLO text, a script that launches a training, or a report to write again; - is "
            "standard input")
        ->type_name("");
    verb.app->add_option("--sweep", options->sweep, "Instead of a study: the last sweep in a database of `meshwright sweep --db`")
        ->type_name("RUNS.sqlite");
    addSettings(*verb.app, options->settings);
    addHardware(*verb.app, options->settings);
    addMesh(*verb.app, options->settings);
    addStack(*verb.app, options->settings);
    verb.app->add_flag("--train", options->train, "Also train, verified against one device, and add the measurements");
    verb.app->add_option("--result", options->result, "Add the measurements of an earlier training (train -o RESULT.json)")
        ->type_name("RESULT.json");
    verb.addFile("-o,--output", options->file, "File to write instead of standard output; its ending chooses the format",
        WrittenFile::Kind::Result);
}

void addExport(VerbTable& table)
{
    const auto options = std::make_shared<ExportOptions>();
    Verb& verb
        = table.add("export", "Write a study as code for JAX or Flax, as the command of a framework, or as a trace for Perfetto.",
            kExportExamples, {Format::Text, Format::Json}, [options](Output& output) { return runExport(*options, output); });
    verb.needed.push_back(
        verb.app
            ->add_option("STUDY", options->file,
                "A study, a program as StableHLO text, or a script that launches a training; - is standard input")
            ->type_name(""));
    verb.app
        ->add_option("--to", options->to,
            "What to write: " + join(exportWords(), ", ") + " (default all: the commands, and how to ask for the rest)")
        ->type_name("NAME");
    verb.choices.push_back({"--to", &options->to, exportWords()});
    addSettings(*verb.app, options->settings);
    addHardware(*verb.app, options->settings);
    addMesh(*verb.app, options->settings);
    verb.addFile("-o,--output", options->result, "File to write instead of standard output", WrittenFile::Kind::Result);
}

} // namespace meshwright::cli
