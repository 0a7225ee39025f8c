// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verb_table.h"

#include "app/verbs/verbs.h"
#include "core/support/text.h"

#include <CLI/App.hpp>
#include <fmt/format.h>

#include <memory>

namespace meshwright::cli {

namespace {

constexpr const char* kGuiExamples = R"help(  meshwright gui
  meshwright gui study.yaml
  meshwright gui program.mlir --hw v5e-8 --mesh data=4,model=2
  meshwright gui report.html)help";

constexpr const char* kOpenExamples = R"help(  meshwright open page.ipynb
  meshwright open page.md --hw v3-8 --cells 1-30
  meshwright open page.ipynb -o page.html
  meshwright open page.py --folder data -o page.ipynb
  meshwright open page.ipynb --check)help";

constexpr const char* kLessonExamples = R"help(  meshwright lesson
  meshwright lesson 3
  meshwright lesson 5 -o lesson.html)help";

constexpr const char* kCheckExamples = R"help(  meshwright check study.yaml
  meshwright check *.yaml --fail-on warning
  meshwright check study.yaml --set mesh.data=8 --set "sharding.x=P('data')" --format json
  meshwright check study.yaml --fix
  meshwright check study.yaml --plan "FSDP + TP 2" --fix
  meshwright check *.yaml --format sarif > check.sarif
  meshwright check program.mlir
  meshwright check --mesh x=4,y=2 --shape 8x3 --spec "P('x', 'y')"
  cat study.yaml | meshwright check - --fix > fixed.yaml)help";

constexpr const char* kExplainExamples = R"help(  meshwright explain MW1104
  meshwright explain train.log
  meshwright explain "mat1 and mat2 shapes cannot be multiplied (64x784 and 392x10)"
  python train.py 2>&1 | meshwright explain - --mesh data=4,model=2
  meshwright explain module_0042.jit_step.after_optimizations.txt --mesh data=4,model=2 --hw v5e-8
  meshwright explain before.txt after.txt --mesh data=8)help";

constexpr const char* kListExamples = R"help(  meshwright list hardware
  meshwright list models
  meshwright list examples
  meshwright list problems --format json)help";

constexpr const char* kTourExamples = R"help(  meshwright tour
  meshwright tour --report report.html)help";

constexpr const char* kCalibrateExamples = R"help(  meshwright calibrate -o host.json
  meshwright calibrate --nccl all_reduce_perf.txt --nccl all_gather_perf.json -o links.json
  meshwright train study.yaml --predict --profile host.json)help";

constexpr const char* kValidateExamples = R"help(  meshwright validate published/ plans/
  meshwright validate records.json --format json
  meshwright validate records.json --format csv)help";

constexpr const char* kConfigExamples = R"help(  meshwright config study.yaml --set mesh.data=8
  meshwright config)help";

constexpr const char* kDoctorExamples = "  meshwright doctor";

std::string positiveNumber(const std::string& text)
{
    const auto number = parseNumber(text);
    return number && *number > 0 ? std::string() : fmt::format("\"{}\" is not a number above 0", text);
}

} // namespace

void addGui(VerbTable& table)
{
    const auto options = std::make_shared<GuiOptions>();
    Verb& verb = table.add("gui", "Start the desktop program.", kGuiExamples, {Format::Text},
        [options](Output& output) { return runGui(*options, output); });
    verb.app->add_option("FILE", options->file, "A study, a program as StableHLO text or a report to open")->type_name("");
    addSettings(*verb.app, options->settings);
    addHardware(*verb.app, options->settings);
    addMesh(*verb.app, options->settings);
}

void addOpen(VerbTable& table)
{
    const auto options = std::make_shared<OpenOptions>();
    Verb& verb = table.add("open", "Run the cells of a page that uses JAX, unchanged, on virtual devices.", kOpenExamples,
        {Format::Text, Format::Json, Format::Html}, [options](Output& output) { return runOpen(*options, output); });
    verb.needed.push_back(
        verb.app->add_option("PAGE", options->file, "A notebook, Markdown with Python cells, a script, or text with In [1]:")
            ->type_name(""));
    verb.app->add_option("--hw", options->hardware, "Machine that the page is to see: v3-8, h100x8 (default: what it asks for)")
        ->type_name("NAME");
    verb.app->add_option("--cells", options->cells, "Cells to run (default: all)")->type_name("1-30");
    verb.app->add_option("--folder", options->folder, "Folder that the page may read and write (default: none of yours)")
        ->type_name("FOLDER");
    verb.app->add_flag(
        "--check", options->checks, "Exit code 1 when a cell raises, has a finding, or prints something else than the page says");
    verb.app->add_flag("--trust", options->isTrusted, "Do not warn again that this page runs code");
    verb.app->add_flag("--measure", options->measures, "%timeit measures here (default: it simulates the page's machine)");
    verb.app->add_flag("--unsafe", options->isUnsafe, "Run the page with all your rights, not confined");
    verb.app->add_option("--timeout", options->seconds, "Seconds after which the page is stopped (default 600)")
        ->type_name("SECONDS")
        ->check(CLI::Validator(positiveNumber, ""));
    verb.app->add_option("--flops", options->flops, "Most operations for one value; layouts need none (default 1e12)")
        ->type_name("N")
        ->check(CLI::Validator(positiveNumber, ""));
    addBytes(*verb.app, "--memory", options->memory, "Memory limit of the page (default: three quarters of the computer's)");
    verb.addFile("-o,--output", options->result, "File to write: .html, .ipynb, .json or .txt", WrittenFile::Kind::Result);
}

void addLesson(VerbTable& table)
{
    const auto options = std::make_shared<LessonOptions>();
    Verb& verb = table.add("lesson", "Learn to predict collectives: six lessons with questions that the engine checks.",
        kLessonExamples, {Format::Text, Format::Html}, [options](Output& output) { return runLesson(*options, output); });
    verb.app->add_option("LESSON", options->which, "Number of the lesson (default: list them)")->type_name("");
    verb.addFile(
        "-o,--output", options->result, "File to write the lesson to, with its answers folded: .html", WrittenFile::Kind::Result);
}

void addCheck(VerbTable& table)
{
    const auto options = std::make_shared<CheckOptions>();
    const auto failOn = std::make_shared<std::string>("error");
    Verb& verb = table.add("check", "Find every mistake in studies, programs or a spec, each with its place and a fix.",
        kCheckExamples, {Format::Text, Format::Json, Format::Sarif, Format::Junit}, [options, failOn](Output& output) {
            options->failOn = *failOn == "note" ? Severity::Note : *failOn == "warning" ? Severity::Warning : Severity::Error;
            return runCheck(*options, output);
        });
    verb.app
        ->add_option(
            "FILE", options->files, "Studies, programs as StableHLO text, or scripts that launch a training; - is standard input")
        ->type_name("");
    addSettings(*verb.app, options->settings);
    addHardware(*verb.app, options->settings);
    verb.app->add_option("--spec", options->spec, "Check this spec instead of files: P('x', None)")->type_name("SPEC");
    verb.app->add_option("--mesh", options->mesh, "The mesh of the spec, or in place of that of a study or a program: x=4,y=2")
        ->type_name("AXES");
    verb.app->add_option("--shape", options->shape, "The shape of the spec's array: 8192x8192, or scalar")->type_name("SHAPE");
    verb.app->add_flag("--explicit", options->explicitTypes, "Check the types of StableHLO programs as JAX's explicit mode does");
    addNoProve(*verb.app, options->proves);
    verb.app
        ->add_option("--plan", options->plan,
            "Check a study without specs with those of a plan, and with --fix write them: FSDP, HSDP, \"ZeRO-1 + TP 8\", "
            "Megatron")
        ->type_name("NAME");
    verb.app->add_flag("--fix", options->fix, "Apply the fixes that have only one answer, in place (for -, to standard output)");
    verb.app->add_option("--fail-on", *failOn, "Lowest severity that gives exit code 1: note, warning or error (default)")
        ->type_name("SEVERITY");
    verb.choices.push_back({"--fail-on", failOn.get(), {"note", "warning", "error"}});
}

void addExplain(VerbTable& table)
{
    const auto options = std::make_shared<ExplainOptions>();
    Verb& verb = table.add("explain",
        "Explain a problem id, the messages of JAX, XLA and PyTorch in a log, or the collectives of an HLO dump.",
        kExplainExamples, {Format::Text, Format::Json}, [options](Output& output) { return runExplain(*options, output); });
    verb.needed.push_back(verb.app
                              ->add_option("WHAT", options->what,
                                  "An id such as MW1104, a message, a file with messages, an HLO dump; - is standard input")
                              ->type_name(""));
    verb.app->add_option("AFTER", options->after, "A second HLO dump: says which collectives are new or gone")->type_name("");
    verb.app->add_option("--hw", options->hardware, "Hardware that times the collectives of a dump: v5e-8, H100x64")
        ->type_name("CHIPS");
    verb.app->add_option("--mesh", options->mesh, "Axes with their sizes, if the text does not state them: data=4,model=2")
        ->type_name("AXES");
    verb.app->add_option("--shape", options->shape, "Sizes of the array, if a message does not state them: 8192x8192")
        ->type_name("SHAPE");
}

void addList(VerbTable& table)
{
    const auto options = std::make_shared<ListOptions>();
    Verb& verb = table.add("list", "List the chips, the models, the examples or the problem ids.", kListExamples,
        {Format::Text, Format::Json}, [options](Output& output) { return runList(*options, output); });
    verb.needed.push_back(verb.app->add_option("WHAT", options->what, "hardware, models, examples or problems")->type_name(""));
}

void addTour(VerbTable& table)
{
    const auto options = std::make_shared<TourOptions>();
    Verb& verb = table.add("tour", "Train, verify and simulate the built-in examples, and print a summary.", kTourExamples,
        {Format::Text}, [options](Output& output) { return runTour(*options, output); });
    verb.addFile("--report", options->report, "File for the report of the trained example, as HTML", WrittenFile::Kind::Beside);
}

void addCalibrate(VerbTable& table)
{
    const auto options = std::make_shared<CalibrateOptions>();
    Verb& verb = table.add("calibrate", "Measure this computer, or read logs of nccl-tests: a profile of the hardware.",
        kCalibrateExamples, {Format::Text, Format::Json}, [options](Output& output) { return runCalibrate(*options, output); });
    verb.app->add_option("--nccl", options->logs, "Log of nccl-tests, text or JSON (-J); can be repeated")->type_name("FILE");
    verb.app->add_option("--base", options->base, "Chip of the catalogue for a profile of links (default: as the log says)")
        ->type_name("CHIP");
    verb.app->add_option("--devices", options->devices, "Virtual devices that measure barriers and collectives (default 8)")
        ->type_name("N")
        ->check(wholeNumber(2, 1024));
    verb.app->add_option("--permits", options->permits, "Devices that compute at once (default: one per core)")
        ->type_name("N")
        ->check(wholeNumber(1, 1024));
    verb.app->add_flag("--quick", options->quick, "Measure a coarser grid of products, in about a second");
    verb.addFile("-o,--output", options->file, "File for the profile", WrittenFile::Kind::Beside);
}

void addValidate(VerbTable& table)
{
    const auto options = std::make_shared<ValidateOptions>();
    Verb& verb = table.add("validate", "Predict published measurements and report the errors.", kValidateExamples,
        {Format::Text, Format::Json, Format::Csv}, [options](Output& output) { return runValidate(*options, output); });
    verb.needed.push_back(
        verb.app->add_option("RECORDS", options->paths, "Files of records, and folders with them")->type_name(""));
}

void addConfig(VerbTable& table)
{
    const auto options = std::make_shared<ConfigOptions>();
    Verb& verb = table.add("config", "List the values that a study or this installation uses, and where each comes from.",
        kConfigExamples, {Format::Text, Format::Json}, [options](Output& output) { return runConfig(*options, output); });
    verb.app->add_option("STUDY", options->file, "A study; - is standard input (default: the installation)")->type_name("");
    addSettings(*verb.app, options->settings);
    addHardware(*verb.app, options->settings);
    addMesh(*verb.app, options->settings);
    addStack(*verb.app, options->settings);
}

void addDoctor(VerbTable& table)
{
    table.add("doctor", "Check this machine and installation, and report what was found.", kDoctorExamples,
        {Format::Text, Format::Json}, [](Output& output) { return runDoctor(output); });
}

} // namespace meshwright::cli
