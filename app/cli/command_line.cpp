// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command_line.h"

#include "app/cli/verbs.h"
#include "core/sharding/logical_axes.h"
#include "core/sharding/notation.h"
#include "core/support/file.h"
#include "core/support/quantity.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/compare/gates.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <unordered_map>

namespace meshwright::cli {

namespace {

constexpr const char* kMainExamples = R"help(  meshwright tour
  meshwright train study.yaml --verify
  meshwright simulate study.yaml --set mesh.data=8
  meshwright search --model llama3_8b --hw v5e-64 --tokens 1M --seq 4096
  meshwright sweep study.yaml --vary mesh="data*model=8"
  meshwright report study.yaml -o report.html
  meshwright gui study.yaml
  meshwright show --mesh data=4,model=2 --shape 8192x8192 --spec "P('data', 'model')"
  meshwright mesh --hw v3 --topology 2x2 --mesh a=8
  meshwright partition program.mlir
  meshwright check study.yaml --set mesh.data=8
  meshwright explain MW1104
  meshwright list examples)help";

constexpr const char* kShowExamples = R"help(  meshwright show --mesh a=4,b=2 --shape 8192x8192 --spec "P('a', 'b')"
  meshwright show --mesh x=8 --shape 128x512 --spec "P(None, 'x')" --format json
  meshwright show --mesh a=4,b=2 --device-order 0,1,2,3,6,7,4,5 --shape 64x64x64 --spec "P('a')" --format svg -o layout.svg)help";

constexpr const char* kMeshExamples = R"help(  meshwright mesh --hw v3 --topology 2x2 --mesh a=8
  meshwright mesh --hw v5e --topology 4x4 --mesh data=4,model=4 --format json
  meshwright mesh --hw h100 --hosts 4 --mesh data=4,model=8
  meshwright mesh --hw v5e --topology 4x4 --mesh data=4,model=4 --format svg
  meshwright mesh --hw v4 --topology 2x2x2 --ici data=4,model=2 --dcn data=2)help";

constexpr const char* kCheckExamples = R"help(  meshwright check study.yaml
  meshwright check *.yaml --fail-on warning
  meshwright check study.yaml --set mesh.data=8 --set "sharding.x=P('data')" --format json
  meshwright check study.yaml --fix
  meshwright check *.yaml --format sarif > check.sarif
  meshwright check program.mlir
  meshwright check --mesh x=4,y=2 --shape 8x3 --spec "P('x', 'y')"
  cat study.yaml | meshwright check - --fix > mended.yaml)help";

constexpr const char* kConvertExamples = R"help(  meshwright convert "P('data', None)" --mesh data=4,model=2 --to hlo
  meshwright convert "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}"
  meshwright convert "A[I_X, J]" --mesh X=4 --shape 8x8
  meshwright convert --logical "embed,mlp" --stacked layers@1 --rules maxtext --mesh data=2,fsdp=4,tensor=2 --to jax)help";

constexpr const char* kExplainExamples = R"help(  meshwright explain MW1104
  meshwright explain train.log
  meshwright explain "mat1 and mat2 shapes cannot be multiplied (64x784 and 392x10)"
  python train.py 2>&1 | meshwright explain - --mesh data=4,model=2)help";

constexpr const char* kListExamples = R"help(  meshwright list hardware
  meshwright list models
  meshwright list examples
  meshwright list problems --format json)help";

constexpr const char* kSimulateExamples = R"help(  meshwright simulate study.yaml
  meshwright simulate study.yaml --set mesh.data=8 --set mesh.model=1 --format json
  meshwright simulate resources/examples/*.yaml --format csv
  meshwright simulate study.yaml --trace trace.json
  meshwright simulate study.yaml --fidelity message --algorithm all_reduce=ring)help";

constexpr const char* kSearchExamples = R"help(  meshwright search --model llama3_8b --hw v5e-64 --tokens 1M --seq 4096 --top 3
  meshwright search --model config.json --hw h100x64 --global-batch 512 --seq 8k --format json
  meshwright search --model llama3_70b --hw h100,v5p --chips 64..512 --tokens 4M --seq 4k
  meshwright search --model llama3_8b --hw h100x64 --tokens 1M --seq 4k --fix pipeline=1,context=1
  meshwright search study.yaml --set hardware.hosts=8 -o plan.yaml
  meshwright search program.yaml -o plan.mlir)help";

constexpr const char* kDiffExamples = R"help(  meshwright diff fsdp.yaml tensor_parallel.yaml
  meshwright diff study.yaml --set-b mesh.data=8 --set-b mesh.model=1
  meshwright simulate study.yaml --format json > budget.json
  meshwright diff budget.json study.yaml --fail-on "sharding,new-collectives,time>5%,memory>2%"
  meshwright diff old/named_shardings.json new/named_shardings.json --fail-on sharding --format junit -o diff.xml
  meshwright diff before.mlir after.mlir --format md)help";

constexpr const char* kSweepExamples = R"help(  meshwright sweep study.yaml --vary mesh="data*model=64" --vary batch=1k,4k
  meshwright sweep study.yaml --vary hardware.topology=[4,2],[4,4],[8,8] --vary dtype.matmul=f32,bf16 -o sweep.html
  meshwright sweep study.yaml --vary mesh="data*model=2^3..2^8" --db runs.sqlite --jobs 8 --format csv
  meshwright sweep sweep.yaml --dry-run
  meshwright report --sweep runs.sqlite -o sweep.html)help";

constexpr const char* kTrainExamples = R"help(  meshwright train study.yaml --verify
  meshwright train study.yaml --set train.steps=50 --set mesh.data=2 --format json
  meshwright train study.yaml --trace trace.json -o result.json
  meshwright train study.yaml --checkpoint checkpoints --every 100 --keep 3
  meshwright train study.yaml --resume checkpoints --set mesh.data=2 --set mesh.model=4
  meshwright train study.yaml --check-numerics --inject nan:device=1,step=4)help";

constexpr const char* kReshardExamples
    = R"help(  meshwright reshard --mesh data=4,model=2 --shape 8192x8192 --from "P('data', None)" --to "P(None, 'model')"
  meshwright reshard --mesh x=4,y=2 --shape 64x64x64 --from "P('y', None, 'x')" --to "P(None, ('x', 'y'), None)" --shardy
  meshwright reshard --mesh x=4,y=2 --shape 8192x8192 --dtype bf16 --from "P('x')" --to "P(None, 'x')" --hw v5e --topology 4x2
  meshwright reshard --mesh x=4 --shape 8x8 --from "P('x', None)" --to "P(None, 'x')" --format svg -o moves.svg
  meshwright reshard --from checkpoints/ --to other_mesh.yaml --dry-run)help";

constexpr const char* kPropagateExamples = R"help(  meshwright propagate program.mlir -o sharded.mlir
  meshwright propagate program.mlir --explain %3
  meshwright propagate program.mlir --strategy basic --steps
  meshwright propagate program.mlir --mode explicit
  cat program.mlir | meshwright propagate -)help";

constexpr const char* kPartitionExamples = R"help(  meshwright partition program.mlir -o device.mlir
  meshwright partition program.mlir --shardy --format json
  meshwright propagate program.mlir | meshwright partition - --only insert-reshards)help";

constexpr const char* kRunExamples = R"help(  meshwright run program.mlir --verify
  meshwright run program.mlir --function main --seed 7
  meshwright run program.mlir --args x.npy,w.npy --out results
  meshwright run program.mlir --grad --verify
  meshwright run program.mlir --time 5x5)help";

constexpr const char* kReportExamples = R"help(  meshwright report study.yaml -o report.html
  meshwright report study.yaml --train -o report.html
  meshwright report study.yaml --result result.json -o report.md
  meshwright report study.yaml --set mesh.data=8 --format csv
  meshwright report --sweep runs.sqlite -o sweep.html
  meshwright report report.html -o again.html)help";

constexpr const char* kGuiExamples = R"help(  meshwright gui
  meshwright gui study.yaml
  meshwright gui report.html)help";

constexpr const char* kTourExamples = R"help(  meshwright tour
  meshwright tour --report report.html)help";

constexpr const char* kCalibrateExamples = R"help(  meshwright calibrate -o host.json
  meshwright calibrate --nccl all_reduce_perf.txt --nccl all_gather_perf.json -o links.json
  meshwright train study.yaml --predict --profile host.json)help";
constexpr const char* kValidateExamples = R"help(  meshwright validate published/ plans/
  meshwright validate records.json --format json
  meshwright validate records.json --format csv)help";

constexpr const char* kDoctorExamples = "  meshwright doctor";

/// Help with the examples first; they are the footer of each App.
class ExamplesFirst final : public CLI::Formatter {
public:
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override
    {
        if (mode == CLI::AppFormatMode::Sub)
            return make_expanded(app);
        std::string help = make_description(app);
        help += "\nExamples:\n" + app->get_footer() + "\n" + make_usage(app, std::move(name));
        help += make_positionals(app) + make_groups(app, mode) + make_subcommands(app, mode);
        return help;
    }
};

/// A file or folder that a verb writes. Whether it can be is asked before the verb does its work.
struct WrittenFile {
    enum class Kind { Result, Beside, Folder }; ///< in place of standard output; a file of its own; a folder of files
    std::string flag;
    const std::string* path = nullptr; ///< empty: not asked for
    Kind kind = Kind::Result;
};

/// A flag that says nothing without another one.
struct Follower {
    const CLI::Option* option = nullptr;
    const CLI::Option* leader = nullptr;
};

/// One verb of the command line.
struct Verb {
    CLI::App* app = nullptr;
    std::vector<Format> formats;
    std::vector<CLI::Option*> needed; ///< options and arguments that it cannot do without
    std::vector<WrittenFile> files;
    std::vector<Follower> followers;
    std::function<int(Output&)> run;

    CLI::Option* addFile(
        const char* names, std::string& target, const char* description, WrittenFile::Kind kind, const char* type = "FILE")
    {
        CLI::Option* option = app->add_option(names, target, description)->type_name(type);
        files.push_back({option->get_name(), &target, kind});
        return option;
    }
};

constexpr std::int64_t kMostCounted = std::int64_t{1} << 62;

/// Takes whole numbers of a range; says so in our words, where CLI11 would speak of conversions.
std::function<std::string(const std::string&)> wholeNumber(std::int64_t least, std::int64_t most = kMostCounted)
{
    return [=](const std::string& text) {
        const auto number = parseInteger(text);
        if (number && *number >= least && *number <= most)
            return std::string();
        return most == kMostCounted ? fmt::format("\"{}\" is no whole number of {} or more", text, least)
                                    : fmt::format("\"{}\" is no whole number from {} to {}", text, least, most);
    };
}

/// Takes numbers; their range is the verb's to judge.
std::string anyNumber(const std::string& text)
{
    return parseNumber(text) ? std::string() : fmt::format("\"{}\" is no number", text);
}

std::string secondsOrZero(const std::string& text)
{
    const auto number = parseNumber(text);
    return number && *number >= 0.0 ? std::string() : fmt::format("\"{}\" is no number of seconds, 0 or more", text);
}

/// Bytes with a unit, "512MiB", as their number.
std::string bytesOf(std::string& text)
{
    const auto bytes = parseBytes(text);
    if (!bytes || *bytes < 1)
        return fmt::format("\"{}\" is no amount of memory; write 512MiB, 2GB or a number of bytes", text);
    text = std::to_string(*bytes);
    return {};
}

/// The flags that all verbs have, as typed.
struct CommonFlags {
    std::string format = {}; ///< empty: the verb's first
    std::string colour = "auto";
    bool quiet = false;
};

class CommandLine {
public:
    CommandLine()
    {
        m_app.name("meshwright");
        m_app.description("Plans, runs and simulates sharded training: draws layouts, finds mistakes, shows why.");
        m_app.footer(kMainExamples);
        m_app.formatter(std::make_shared<ExamplesFirst>());
        m_app.set_version_flag("--version", std::string("meshwright ") + kVersion, "Print the version and end");
        m_app.set_help_flag("-h,--help", "Print this help and end");
        m_app.allow_extras(); // unknown arguments are ours to report, with the nearest name
        addShow();
        addMesh();
        addTrain();
        addSimulate();
        addSearch();
        addSweep();
        addDiff();
        addReport();
        addGui();
        addRun();
        addCheck();
        addConvert();
        addReshard();
        addPropagate();
        addPartition();
        addExplain();
        addList();
        addTour();
        addCalibrate();
        addValidate();
        addDoctor();
    }

    int run(std::span<const std::string> arguments);

private:
    Verb& addVerb(const char* name, const char* description, const char* examples, std::vector<Format> formats,
        std::function<int(Output&)> run)
    {
        CLI::App* app = m_app.add_subcommand(name, description);
        app->footer(examples);
        app->allow_extras();
        std::vector<std::string> names;
        for (const Format format : formats)
            names.emplace_back(formatName(format));
        app->add_option("--format", m_common.format, "What to write: " + join(names, ", "))->type_name("FORMAT");
        app->add_option("--color", m_common.colour, "Colours: auto (on a terminal, unless NO_COLOR is set), always or never")
            ->type_name("WHEN");
        app->add_flag("-q,--quiet", m_common.quiet, "No narration on standard error");
        m_verbs.push_back({app, std::move(formats), {}, {}, {}, std::move(run)});
        return m_verbs.back();
    }

    void addShow()
    {
        Verb& verb = addVerb("show", "Draw how an array lies on a mesh of devices.", kShowExamples,
            {Format::Text, Format::Json, Format::Svg}, [this](Output& output) { return runShow(m_show, output); });
        verb.needed.push_back(
            verb.app->add_option("--mesh", m_show.mesh, "Axes with their sizes: data=4,model=2")->type_name("AXES"));
        verb.needed.push_back(
            verb.app->add_option("--shape", m_show.shape, "Sizes of the array: 8192x8192, or scalar")->type_name("SHAPE"));
        verb.needed.push_back(
            verb.app->add_option("--spec", m_show.spec, "PartitionSpec: \"P('data', None)\", or a sharding in any notation")
                ->type_name("SPEC"));
        verb.app->add_option("--device-order", m_show.deviceOrder, "Device ids in mesh order: 0,1,3,2 (default 0,1,2,...)")
            ->type_name("IDS");
        verb.app->add_option("--platform", m_show.platform, "The word before device ids (default TPU)")->type_name("WORD");
        verb.app->add_option("--dtype", m_show.dtype, "Element type (default f32)")->type_name("TYPE");
        verb.app->add_option("--name", m_show.name, "Name of the array in headings (default x)")->type_name("NAME");
        verb.app->add_option("--scale", m_show.scale, "Size of the text drawing (default 1)")
            ->type_name("NUMBER")
            ->check(anyNumber);
        verb.app->add_flag(
            "--pad", m_show.pad, "Pad dimensions that do not divide, as inside a program, instead of refusing them");
        verb.addFile("-o,--output", m_show.file, "File to write instead of standard output", WrittenFile::Kind::Result);
    }

    void addMesh()
    {
        Verb& verb = addVerb("mesh", "Order the devices of a machine for a logical mesh, and say what each axis gets.",
            kMeshExamples, {Format::Text, Format::Json, Format::Svg}, [this](Output& output) { return runMesh(m_mesh, output); });
        verb.needed.push_back(verb.app->add_option("--hw", m_mesh.chip, "The chip: v3, v5e, h100, ...")->type_name("CHIP"));
        verb.app->add_option("--topology", m_mesh.topology, "Chips of a TPU slice along x, y and z: 4x4")->type_name("SIZES");
        verb.app->add_option("--hosts", m_mesh.hosts, "Hosts of GPUs (default 1)")->type_name("N")->check(wholeNumber(1));
        verb.app->add_option("--per-host", m_mesh.perHost, "GPUs of a host (default: as many as share its fast links)")
            ->type_name("N")
            ->check(wholeNumber(1));
        verb.app->add_option("--mesh", m_mesh.mesh, "Axes with their sizes, in devices: data=4,model=2")->type_name("AXES");
        verb.app->add_option("--ici", m_mesh.inner, "Axes within each of several slices (or hosts), with --dcn")
            ->type_name("AXES");
        verb.app->add_option("--dcn", m_mesh.outer, "Axes over slices (or hosts)")->type_name("AXES");
        verb.app->add_option("--order", m_mesh.order, "jax: as create_device_mesh (default); axes: along the physical axes")
            ->type_name("ORDER");
        verb.app->add_flag("--whole-axes", m_mesh.wholeAxes,
            "Refuse a mesh that needs parts of physical axes (create_device_mesh without allow_split_physical_axes)");
        verb.app->add_flag(
            "--contiguous-submeshes", m_mesh.contiguousSubmeshes, "Every host owns a contiguous part of the mesh (TPU v4, v5p)");
        verb.addFile("-o,--output", m_mesh.file, "File to write instead of standard output", WrittenFile::Kind::Result);
    }

    void addCheck()
    {
        Verb& verb = addVerb("check", "Find every mistake in studies, programs or a spec, each with its place and a fix.",
            kCheckExamples, {Format::Text, Format::Json, Format::Sarif, Format::Junit},
            [this](Output& output) { return runCheck(m_check, output); });
        verb.app->add_option("FILE", m_check.files, "Studies, or programs as StableHLO text; - is standard input")->type_name("");
        addSettings(*verb.app, m_check.settings);
        verb.app->add_option("--spec", m_check.spec, "Check this spec instead of files: P('x', None)")->type_name("SPEC");
        verb.app->add_option("--mesh", m_check.mesh, "The mesh of the spec: x=4,y=2")->type_name("AXES");
        verb.app->add_option("--shape", m_check.shape, "The shape of the spec's array: 8192x8192, or scalar")->type_name("SHAPE");
        verb.app->add_flag("--explicit", m_check.explicitTypes,
            "The files are StableHLO programs: check their types as JAX's explicit mode does");
        verb.app->add_flag("--fix", m_check.fix, "Apply the fixes that need no decision, in place; - goes to standard output");
        verb.app->add_option("--fail-on", m_failOn, "Least severity that makes the exit code 1: note, warning or error (default)")
            ->type_name("SEVERITY");
    }

    void addConvert()
    {
        Verb& verb = addVerb("convert", "Write a sharding in another notation, or in all of them.", kConvertExamples,
            {Format::Text, Format::Json}, [this](Output& output) { return runConvert(m_convert, output); });
        verb.app->add_option("SHARDING", m_convert.text, "In any notation; the text tells which")->type_name("");
        verb.app
            ->add_option("--mesh", m_convert.mesh,
                "Axes with their sizes, where the text does not say: data=4,model=2, or a printed Mesh(..)")
            ->type_name("AXES");
        verb.app->add_option("--device-order", m_convert.deviceOrder, "Device ids in mesh order: 0,1,3,2 (default 0,1,2,...)")
            ->type_name("IDS");
        verb.app->add_option("--shape", m_convert.shape, "Sizes of the array, where a notation needs them")->type_name("SHAPE");
        verb.app
            ->add_option("--logical", m_convert.logical,
                "Instead of a sharding: logical names of the dimensions, for --rules: batch,embed")
            ->type_name("NAMES");
        verb.app
            ->add_option("--rules", m_convert.rules,
                "Logical axis rules: " + join(logicalRuleListNames(), ", ")
                    + ", [['batch', 'data'], ...], or a YAML file that has them")
            ->type_name("RULES");
        verb.app->add_option("--semantics", m_convert.semantics, "How rules apply: linen (default) or nnx")->type_name("NAME");
        verb.app->add_option("--stacked", m_convert.stacked, "The array is stacked over layers: layers@1")->type_name("NAME@DIM");
        std::vector<std::string> names;
        for (const Notation notation : allNotations())
            names.emplace_back(notationName(notation));
        verb.app->add_option("--to", m_convert.to, "Notation to write (default: all): " + join(names, ", "))
            ->type_name("NOTATION");
    }

    void addReshard()
    {
        Verb& verb
            = addVerb("reshard", "Find the cheapest collectives that bring an array into another layout.", kReshardExamples,
                {Format::Text, Format::Json, Format::Svg}, [this](Output& output) { return runReshard(m_reshard, output); });
        verb.app->add_option("--mesh", m_reshard.mesh, "Axes with their sizes, where the layouts do not say: data=4,model=2")
            ->type_name("AXES");
        verb.app->add_option("--shape", m_reshard.shape, "Sizes of the array: 8192x8192, or scalar")->type_name("SHAPE");
        verb.needed.push_back(
            verb.app->add_option("--from", m_reshard.from, "Sharding before, in any notation; or a folder of checkpoints")
                ->type_name("SHARDING"));
        verb.needed.push_back(
            verb.app->add_option("--to", m_reshard.to, "Sharding after, in any notation; of checkpoints: the study to restore to")
                ->type_name("SHARDING"));
        verb.app->add_flag("--dry-run", m_reshard.dryRun, "Of checkpoints: only say which device reads what");
        verb.app
            ->add_option("-o,--output", m_reshard.result,
                "File to write instead of standard output; of checkpoints: folder for the new one")
            ->type_name("PATH");
        addSettings(*verb.app, m_reshard.settings);
        verb.app->add_option("--dtype", m_reshard.dtype, "Element type (default f32)")->type_name("TYPE");
        verb.app->add_option("--hw", m_reshard.hardware, "Chip, for times: v5e, h100 (choose the quickest way)")
            ->type_name("CHIP");
        verb.app->add_option("--topology", m_reshard.topology, "Chips along each axis of a slice: 4x2")->type_name("SIZES");
        verb.app->add_option("--hosts", m_reshard.hosts, "Hosts of GPUs (default 1)")->type_name("N")->check(wholeNumber(1));
        verb.app->add_flag("--shardy", m_reshard.shardy, "The sequence that Shardy takes, instead of the cheapest");
    }

    void addPropagate()
    {
        Verb& verb
            = addVerb("propagate", "Give every value of a StableHLO program its sharding, and say why.", kPropagateExamples,
                {Format::Text, Format::Json}, [this](Output& output) { return runPropagate(m_propagate, output); });
        verb.needed.push_back(
            verb.app->add_option("FILE", m_propagate.file, "StableHLO text with Shardy's shardings; - is standard input")
                ->type_name(""));
        verb.app->add_option("--strategy", m_propagate.strategy, "How far to go: " + join(strategyNames(), ", "))
            ->type_name("NAME");
        verb.app
            ->add_option("--mode", m_propagate.mode,
                "Whose rules: " + join(propagationModeNames(), ", ") + " (explicit: JAX's sharding in types, as a type checker)")
            ->type_name("NAME");
        verb.app->add_option("--explain", m_propagate.explain, "Only why this value lies as it does: a name, %arg0, %3")
            ->type_name("VALUE");
        verb.app->add_flag("--steps", m_propagate.steps, "Only the reasons in order, as JSON");
        verb.addFile("-o,--output", m_propagate.result, "File to write instead of standard output", WrittenFile::Kind::Result);
    }

    void addPartition()
    {
        Verb& verb = addVerb("partition", "Turn a StableHLO program into what one device runs, with its collectives.",
            kPartitionExamples, {Format::Text, Format::Json},
            [this](Output& output) { return runPartition(m_partition, output); });
        verb.needed.push_back(
            verb.app->add_option("FILE", m_partition.file, "StableHLO text with Shardy's shardings; - is standard input")
                ->type_name(""));
        verb.app
            ->add_option("--only", m_partition.only,
                "One pass, without propagation: insert-reshards, reshard-to-collectives or global-to-local")
            ->type_name("PASS");
        verb.app->add_flag("--shardy", m_partition.shardy, "Where and how Shardy moves data, instead of the least bytes");
        verb.addFile("-o,--output", m_partition.result, "File to write instead of standard output", WrittenFile::Kind::Result);
    }

    void addExplain()
    {
        Verb& verb = addVerb("explain", "Explain a problem id, or the messages of JAX, XLA and PyTorch in a text or a log.",
            kExplainExamples, {Format::Text, Format::Json}, [this](Output& output) { return runExplain(m_explain, output); });
        verb.needed.push_back(
            verb.app
                ->add_option("WHAT", m_explain.what, "An id such as MW1104, a message, a file with messages; - is standard input")
                ->type_name(""));
        verb.app->add_option("--mesh", m_explain.mesh, "Axes with their sizes, where the messages do not say: data=4,model=2")
            ->type_name("AXES");
        verb.app->add_option("--shape", m_explain.shape, "Sizes of the array, where a message does not say: 8192x8192")
            ->type_name("SHAPE");
    }

    void addList()
    {
        Verb& verb = addVerb("list", "List the chips, the models, the examples or the problem ids.", kListExamples,
            {Format::Text, Format::Json}, [this](Output& output) { return runList(m_list, output); });
        verb.needed.push_back(verb.app->add_option("WHAT", m_list.what, "hardware, models, examples or problems")->type_name(""));
    }

    void addSimulate()
    {
        Verb& verb = addVerb("simulate", "Say how long a step takes on hardware, what bounds it, and whether it fits.",
            kSimulateExamples, {Format::Text, Format::Json, Format::Csv},
            [this](Output& output) { return runSimulate(m_simulate, output); });
        verb.needed.push_back(
            verb.app->add_option("STUDY", m_simulate.studies, "Study files; - is standard input")->type_name(""));
        addSettings(*verb.app, m_simulate.settings);
        verb.addFile("--trace", m_simulate.trace, "File for the timeline, for Perfetto", WrittenFile::Kind::Beside);
        verb.app
            ->add_option(
                "--fidelity", m_simulate.fidelity, "The network by formulas, as flows that share links, or every message")
            ->type_name("closed|fluid|message");
        verb.app
            ->add_option("--algorithm", m_simulate.algorithm, "How collectives are done: ring, tree ...; or all_reduce=ring,...")
            ->type_name("NAME");
    }

    void addSearch()
    {
        Verb& verb = addVerb("search", "Find the best layouts of a training step on hardware, and say why the others lose.",
            kSearchExamples, {Format::Text, Format::Json, Format::Csv, Format::Markdown},
            [this](Output& output) { return runSearch(m_search, output); });
        CLI::App& app = *verb.app;
        app.add_option("STUDY", m_search.study, "A study; its own mesh and specs do not count")->type_name("");
        addSettings(app, m_search.settings);
        app.add_option("--model", m_search.words.model, "A config.json of Hugging Face, or a model that comes along: llama3_8b")
            ->type_name("FILE");
        app.add_option("--hw", m_search.words.hardware,
               "Chips and how many: v5e-64, h100x64, v5e-256x2 for two slices; several to compare")
            ->type_name("NAME")
            ->delimiter(',')
            ->allow_extra_args(false);
        app.add_option("--chips", m_search.words.chips, "How many chips, or from how many to how many, doubling: 16..256")
            ->type_name("N");
        app.add_option("--tokens", m_search.words.tokens, "Tokens of a step; k, M and G count in 1,024s")->type_name("N");
        app.add_option(
               "--seq", m_search.words.sequence, "Tokens of a sequence (default: 4k, or as many as the model has positions)")
            ->type_name("N");
        app.add_option("--global-batch", m_search.words.globalBatch, "Sequences of a step, in place of --tokens")->type_name("N");
        app.add_option("--dtype", m_search.words.format, "Number format of products (default bf16)")
            ->type_name("bf16|fp16|fp8|fp32");
        app.add_option("--fp8", m_search.words.recipe, "Products in 8 bits, and which values share a scale")
            ->type_name("delayed|current|rowwise|blockwise");
        app.add_option("--price", m_search.words.prices, "Dollars an hour for a chip: one for all, or one for each --hw")
            ->type_name("USD")
            ->delimiter(',')
            ->allow_extra_args(false);
        app.add_option("--fix", m_search.fixed,
               "Choices that are made: data, fsdp, expert, context, tensor, pipeline, microbatch, chunks, zero, recompute, "
               "schedule")
            ->type_name("NAME=VALUE")
            ->allow_extra_args(false);
        app.add_flag("--per-op", m_search.perOp,
            "Choose a layout for every op of the study's training step, not one of the known ways; programs are always searched "
            "so");
        app.add_option("--top", m_search.top, "How many meshes to tell of (default 5)")->type_name("N")->check(wholeNumber(1));
        app.add_option("--time-limit", m_search.timeLimit, "Stop after so many seconds with the best so far")
            ->type_name("SECONDS")
            ->check(anyNumber);
        app.add_option(
               "-j,--threads", m_search.threads, "Threads (default: one for each core); the answer does not depend on them")
            ->type_name("N")
            ->check(wholeNumber(1, 1024));
        verb.addFile("-o,--output", m_search.file,
            "File for the best plan as a study; a program's plan has its program beside it, or alone: plan.mlir",
            WrittenFile::Kind::Beside);
    }

    void addSweep()
    {
        Verb& verb = addVerb("sweep",
            "Simulate a study with every combination of values: which is fastest, which fit, what the others lose.",
            kSweepExamples, {Format::Text, Format::Json, Format::JsonLines, Format::Csv, Format::Markdown, Format::Html},
            [this](Output& output) {
                m_sweep.formatGiven = !m_common.format.empty();
                return runSweepVerb(m_sweep, output);
            });
        verb.needed.push_back(
            verb.app->add_option("STUDY", m_sweep.file, "Study file, or a sweep file that names one; - is standard input")
                ->type_name(""));
        verb.app
            ->add_option("--vary", m_sweep.vary,
                "What is varied, and its values: batch=1k,4k; 1..8; 2^0..2^6; mesh=\"data*model=64\" is every factorisation")
            ->type_name("PATH=VALUES")
            ->allow_extra_args(false);
        addSettings(*verb.app, m_sweep.settings);
        verb.app->add_option("--db", m_sweep.database, "SQLite file that keeps what is done: the same command goes on from there")
            ->type_name("FILE");
        verb.app->add_option("-j,--jobs", m_sweep.jobs, "Points that are simulated at once (default: one for each core)")
            ->type_name("N")
            ->check(wholeNumber(1, 1024));
        verb.app->add_flag("--dry-run", m_sweep.dryRun, "Only list the points");
        verb.app
            ->add_option("--fail-on", m_sweep.failOn, "Exit code 1 when any point is refused, or does not fit (or is refused)")
            ->type_name("refused|unfit");
        verb.addFile("-o,--output", m_sweep.result, "File to write instead of standard output; its ending says the format",
            WrittenFile::Kind::Result);
    }

    void addDiff()
    {
        Verb& verb = addVerb("diff",
            "Say what differs between two studies, results or programs: layouts, collectives, time and memory; a gate for CI.",
            kDiffExamples, {Format::Text, Format::Json, Format::Markdown, Format::Sarif, Format::Junit}, [this](Output& output) {
                m_diff.formatGiven = !m_common.format.empty();
                return runDiff(m_diff, output);
            });
        verb.needed.push_back(verb.app
                                  ->add_option("A", m_diff.before,
                                      "A study, a program (.mlir), JSON of simulate, train, search, sweep, check, propagate or "
                                      "partition, or MaxText's "
                                      "named_shardings.json; - is standard input")
                                  ->type_name(""));
        verb.app->add_option("B", m_diff.after, "The same; without it A again, with --set-b")->type_name("");
        addSettings(*verb.app, m_diff.settings);
        verb.app->add_option("--set-a", m_diff.settingsBefore, "Override a value of the study A only")
            ->type_name("PATH=VALUE")
            ->allow_extra_args(false);
        verb.app->add_option("--set-b", m_diff.settingsAfter, "Override a value of the study B only")
            ->type_name("PATH=VALUE")
            ->allow_extra_args(false);
        verb.app
            ->add_option("--fail-on", m_diff.failOn,
                "Exit code 1 when something of this differs: " + join(sim::gateNames(), ", ")
                    + "; bytes, time and memory may grow by so much: time>5%")
            ->type_name("GATES");
        verb.addFile("-o,--output", m_diff.result, "File to write instead of standard output; its ending says the format",
            WrittenFile::Kind::Result);
    }

    void addTrain()
    {
        Verb& verb = addVerb("train", "Really train a study, sharded over virtual devices.", kTrainExamples,
            {Format::Text, Format::Json}, [this](Output& output) { return runTrain(m_train, output); });
        verb.needed.push_back(verb.app->add_option("STUDY", m_train.study, "Study file; - is standard input")->type_name(""));
        addSettings(*verb.app, m_train.settings);
        verb.app->add_flag("--verify", m_train.verify, "Check steps against one device; exit code 5 on a difference");
        verb.app->add_option("--permits", m_train.permits, "Devices that compute at once (default: one for each core)")
            ->type_name("N")
            ->check(wholeNumber(1, 1024));
        addDeviceMemory(*verb.app, m_train.deviceMemory);
        const CLI::Option* predict
            = verb.app->add_flag("--predict", m_train.predict, "Predict the step in virtual time beside what is measured");
        const CLI::Option* profile
            = verb.app
                  ->add_option("--profile", m_train.profile, "Profile of this computer for --predict (default: measured first)")
                  ->type_name("FILE");
        verb.addFile(
            "--trace", m_train.trace, "File for the measured timeline of the last step, for Perfetto", WrittenFile::Kind::Beside);
        verb.addFile("-o,--output", m_train.result, "File for the result as JSON", WrittenFile::Kind::Beside);
        verb.addFile("--metrics", m_train.metrics,
            "File for a line of JSON for each step: loss, accuracy, gradient norm, learning rate", WrittenFile::Kind::Beside);
        const CLI::Option* checkpoint = verb.addFile("--checkpoint", m_train.checkpoint,
            "Folder for checkpoints: parameters, optimizer states, step, random state", WrittenFile::Kind::Folder, "FOLDER");
        const CLI::Option* every
            = verb.app->add_option("--every", m_train.every, "Steps between two checkpoints (default: only after the last step)")
                  ->type_name("N")
                  ->check(wholeNumber(0));
        const CLI::Option* keep
            = verb.app->add_option("--keep", m_train.keep, "How many of the newest checkpoints stay (default: all)")
                  ->type_name("N")
                  ->check(wholeNumber(0));
        verb.app->add_option("--resume", m_train.resume, "Go on from a checkpoint, or from the newest complete one in a folder")
            ->type_name("FOLDER");
        addFaultFlags(*verb.app, m_train.faults);
        verb.followers = {{every, checkpoint}, {keep, checkpoint}, {profile, predict}};
    }

    static void addFaultFlags(CLI::App& app, FaultFlags& faults)
    {
        app.add_flag("--check-numerics", faults.checkNumerics, "Stop at the first op that makes NaN or infinity, and name it");
        app.add_option("--stall-timeout", faults.stallTimeout,
               "Seconds to wait for a device that does not arrive (default 600; 0: for ever)")
            ->type_name("SECONDS")
            ->check(secondsOrZero);
        app.add_option("--inject", faults.inject,
               "A fault on purpose: fail:device=3,step=10, memory:, nan:, stall:, slow:device=2,factor=3")
            ->type_name("FAULT")
            ->allow_extra_args(false);
    }

    void addRun()
    {
        Verb& verb = addVerb("run", "Execute a StableHLO program, sharded as its text says.", kRunExamples, {Format::Text},
            [this](Output& output) { return runRun(m_run, output); });
        verb.needed.push_back(
            verb.app->add_option("FILE", m_run.file, "StableHLO text with Shardy's shardings; - is standard input")
                ->type_name(""));
        verb.app->add_option("--function", m_run.function, "Which function, when there are several")->type_name("NAME");
        auto* arguments = verb.app->add_option("--args", m_run.arguments, "The arguments as NPY files (default: random numbers)")
                              ->type_name("A.npy,B.npy")
                              ->delimiter(',');
        verb.app->add_option("--seed", m_run.seed, "Seed of random arguments (default 0)")
            ->type_name("N")
            ->check(wholeNumber(0))
            ->excludes(arguments);
        verb.addFile("--out", m_run.folder, "Folder for the results as whole arrays: result0.npy and so on",
            WrittenFile::Kind::Folder, "FOLDER");
        verb.app->add_flag("--grad", m_run.gradient, "Also the gradient of the sum of the results by each argument");
        verb.app->add_flag("--verify", m_run.verify, "Check the results against one device; exit code 5 on a difference");
        verb.app->add_option("--time", m_run.time, "Time so many repetitions of so many runs, and the unsharded program too")
            ->type_name("5x5");
        verb.app->add_option("--permits", m_run.permits, "Devices that compute at once (default: one for each core)")
            ->type_name("N")
            ->check(wholeNumber(1, 1024));
        addFaultFlags(*verb.app, m_run.faults);
        addDeviceMemory(*verb.app, m_run.deviceMemory);
    }

    static void addDeviceMemory(CLI::App& app, std::int64_t& bytes)
    {
        app.add_option("--device-memory", bytes, "Memory that each device may use; what would not fit is refused before it runs")
            ->type_name("512MiB")
            ->transform(CLI::Validator(bytesOf, ""));
    }

    void addReport()
    {
        Verb& verb = addVerb("report", "Write what is known of a study: does it fit, how fast, bound by what, what to do next.",
            kReportExamples, {Format::Html, Format::Markdown, Format::Csv, Format::Json}, [this](Output& output) {
                m_report.formatGiven = !m_common.format.empty();
                return runReport(m_report, output);
            });
        verb.app->add_option("STUDY", m_report.study, "Study file, or a report to be written again; - is standard input")
            ->type_name("");
        verb.app
            ->add_option("--sweep", m_report.sweep, "Instead of a study: the last sweep in a database of `meshwright sweep --db`")
            ->type_name("RUNS.sqlite");
        addSettings(*verb.app, m_report.settings);
        verb.app->add_flag("--train", m_report.train, "Really train, verified against one device, and add what was measured");
        verb.app->add_option("--result", m_report.result, "Add what an earlier training measured (train -o RESULT.json)")
            ->type_name("RESULT.json");
        verb.addFile("-o,--output", m_report.file, "File to write instead of standard output; its ending says the format",
            WrittenFile::Kind::Result);
    }

    void addGui()
    {
        Verb& verb = addVerb("gui", "Start the desktop program.", kGuiExamples, {Format::Text},
            [this](Output& output) { return runGui(m_gui, output); });
        verb.app->add_option("FILE", m_gui.file, "A study or a report to open")->type_name("");
    }

    void addTour()
    {
        Verb& verb = addVerb("tour", "Train, verify and simulate the built-in examples, and sum it up.", kTourExamples,
            {Format::Text}, [this](Output& output) { return runTour(m_tour, output); });
        verb.addFile("--report", m_tour.report, "File for the report of the trained example, as HTML", WrittenFile::Kind::Beside);
    }

    void addCalibrate()
    {
        Verb& verb = addVerb("calibrate", "Measure this computer, or read logs of nccl-tests: a profile of the hardware.",
            kCalibrateExamples, {Format::Text, Format::Json},
            [this](Output& output) { return runCalibrate(m_calibrate, output); });
        verb.app->add_option("--nccl", m_calibrate.logs, "Log of nccl-tests, text or JSON (-J); several times for several")
            ->type_name("FILE");
        verb.app
            ->add_option("--base", m_calibrate.base, "Chip of the catalogue for a profile of links (default: as the log says)")
            ->type_name("CHIP");
        verb.app->add_option("--devices", m_calibrate.devices, "Virtual devices of barrier and collectives (default 8)")
            ->type_name("N")
            ->check(wholeNumber(2, 1024));
        verb.app->add_option("--permits", m_calibrate.permits, "Devices that compute at once (default: one for each core)")
            ->type_name("N")
            ->check(wholeNumber(1, 1024));
        verb.app->add_flag("--quick", m_calibrate.quick, "A coarser grid of products, in about a second");
        verb.addFile("-o,--output", m_calibrate.file, "File for the profile", WrittenFile::Kind::Beside);
    }

    void addValidate()
    {
        Verb& verb
            = addVerb("validate", "Predict published measurements and say how far off the predictions are.", kValidateExamples,
                {Format::Text, Format::Json, Format::Csv}, [this](Output& output) { return runValidate(m_validate, output); });
        verb.needed.push_back(
            verb.app->add_option("RECORDS", m_validate.paths, "Files of records, and folders with them")->type_name(""));
    }

    void addDoctor()
    {
        addVerb("doctor", "Say whether this machine is fit, and what was found on it.", kDoctorExamples, {Format::Text},
            [](Output& output) { return runDoctor(output); });
    }

    /// `--set path=value`, any number of times.
    static void addSettings(CLI::App& app, std::vector<std::string>& settings)
    {
        app.add_option("--set", settings, "Override a value of the study: train.steps=0, mesh.data=8")
            ->type_name("PATH=VALUE")
            ->allow_extra_args(false);
    }

    const Verb* verbNamed(const std::string& name) const; ///< null: there is none
    std::vector<std::string> verbNames() const;
    Problem unknownVerb(const std::string& name) const;
    Problems unexpected(const Verb* verb) const;
    static Problems leaderless(const Verb& verb);
    static Problems unwritable(const Verb& verb, Output& output);
    Problems wrongFlags(const Verb& verb, Output& output);

    CLI::App m_app;
    std::vector<Verb> m_verbs;
    CommonFlags m_common;
    std::string m_failOn = "error";
    ShowOptions m_show;
    MeshOptions m_mesh;
    CheckOptions m_check;
    CalibrateOptions m_calibrate;
    ValidateOptions m_validate;
    SimulateOptions m_simulate;
    SearchVerbOptions m_search;
    SweepOptions m_sweep;
    DiffOptions m_diff;
    TrainOptions m_train;
    RunOptions m_run;
    ReportOptions m_report;
    GuiOptions m_gui;
    TourOptions m_tour;
    ConvertOptions m_convert;
    ReshardOptions m_reshard;
    PropagateOptions m_propagate;
    PartitionVerbOptions m_partition;
    ExplainOptions m_explain;
    ListOptions m_list;
};

std::string helpOf(const Verb& verb)
{
    return fmt::format("see the examples of `meshwright {} --help`", verb.app->get_name());
}

std::vector<std::string> flagsOf(const CLI::App& app)
{
    std::vector<std::string> flags;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames())
            flags.push_back("--" + name);
    }
    return flags;
}

/// The name that is near, or where all of them are listed.
std::string nearOrHelp(const std::string& wrong, const std::vector<std::string>& names, const std::string& help)
{
    const auto near = nearestName(wrong, names);
    return near ? fmt::format("did you mean \"{}\"?", *near) : fmt::format("`{}` names all", help);
}

const Verb* CommandLine::verbNamed(const std::string& name) const
{
    const auto found
        = std::find_if(m_verbs.begin(), m_verbs.end(), [&](const Verb& verb) { return verb.app->get_name() == name; });
    return found == m_verbs.end() ? nullptr : &*found;
}

std::vector<std::string> CommandLine::verbNames() const
{
    std::vector<std::string> names;
    for (const Verb& verb : m_verbs)
        names.push_back(verb.app->get_name());
    return names;
}

Problem CommandLine::unknownVerb(const std::string& name) const
{
    return {"MW1902", fmt::format("unknown verb \"{}\"", name), suggestion(name, verbNames())};
}

/// What is left over of the command line.
Problems CommandLine::unexpected(const Verb* verb) const
{
    Problems problems;
    if (verb == nullptr) {
        const std::vector<std::string> left = m_app.remaining();
        if (left.empty())
            return {Problem{"MW1904", "a verb is missing", "one of: " + join(verbNames(), ", ")}};
        if (left.front().starts_with('-'))
            return {Problem{"MW1901", fmt::format("unknown flag \"{}\"", left.front()),
                nearOrHelp(left.front(), flagsOf(m_app), "meshwright --help")}};
        return {unknownVerb(left.front())};
    }
    std::vector<std::string> left = verb->app->remaining();
    for (const std::string& more : m_app.remaining())
        left.push_back(more);
    const std::string help = fmt::format("meshwright {} --help", verb->app->get_name());
    for (const std::string& argument : left) {
        const std::string flag = argument.substr(0, argument.find('='));
        if (flag.size() > 1 && flag[0] == '-')
            problems.push_back({"MW1901", fmt::format("unknown flag \"{}\"", flag), nearOrHelp(flag, flagsOf(*verb->app), help)});
    }
    // After an unknown flag, what follows may have been its value: only the flag is reported.
    if (problems.empty()) {
        for (const std::string& argument : left)
            problems.push_back(
                {"MW1905", fmt::format("\"{}\" is an argument too many", argument), fmt::format("see `{}`", help)});
    }
    return problems;
}

/// What the flags that all verbs share say, put into `output`.
Problems CommandLine::wrongFlags(const Verb& verb, Output& output)
{
    Problems problems;
    std::vector<std::string> formats;
    for (const Format format : verb.formats) {
        formats.emplace_back(formatName(format));
        if (m_common.format == formats.back())
            output.format = format;
    }
    const auto refuse = [&](const char* flag, const std::string& value, const std::vector<std::string>& allowed) {
        if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
            problems.push_back(
                {"MW1903", fmt::format("{}: \"{}\" is not allowed here", flag, value), "one of: " + join(allowed, ", ")});
    };
    if (m_common.format.empty())
        output.format = verb.formats.front();
    else
        refuse("--format", m_common.format, formats);
    refuse("--color", m_common.colour, {"auto", "always", "never"});
    refuse("--fail-on", m_failOn, {"note", "warning", "error"});
    output.colour = m_common.colour == "always" ? ColourChoice::Always
        : m_common.colour == "never"            ? ColourChoice::Never
                                                : ColourChoice::Auto;
    output.quiet = m_common.quiet;
    m_check.failOn = m_failOn == "note" ? Severity::Note : m_failOn == "warning" ? Severity::Warning : Severity::Error;
    for (const CLI::Option* option : verb.needed) {
        if (option->count() == 0)
            problems.push_back({"MW1904", fmt::format("{} is missing", option->get_name()), helpOf(verb)});
    }
    return problems;
}

/// Flags that say nothing as they stand.
Problems CommandLine::leaderless(const Verb& verb)
{
    Problems problems;
    for (const Follower& follower : verb.followers) {
        if (follower.option->count() > 0 && follower.leader->count() == 0)
            problems.push_back(
                {"MW1912", fmt::format("{} says nothing without {}", follower.option->get_name(), follower.leader->get_name()),
                    fmt::format("add {}, or leave {} out", follower.leader->get_name(), follower.option->get_name())});
    }
    return problems;
}

/// The files that could not be written. What goes to standard output as a file pushes the verb's own words off it.
Problems CommandLine::unwritable(const Verb& verb, Output& output)
{
    Problems problems;
    std::vector<std::string> onStandardOutput;
    for (const WrittenFile& file : verb.files) {
        if (const auto good
            = file.kind == WrittenFile::Kind::Folder ? checkFolderWritable(*file.path) : checkWritable(*file.path);
            !good)
            append(problems, good.error());
        if (file.kind == WrittenFile::Kind::Beside && *file.path == "-")
            onStandardOutput.push_back(file.flag);
    }
    if (onStandardOutput.size() > 1)
        problems.push_back(
            {"MW1903", join(onStandardOutput, " and ") + " cannot both go to standard output", "give one of them a file"});
    output.wordsOnError = !onStandardOutput.empty();
    return problems;
}

int CommandLine::run(std::span<const std::string> arguments)
{
    std::vector<std::string> words(arguments.begin(), arguments.end());
    Output output;
    if (!words.empty() && words.front() == "help") { // `help show` is `show --help`
        words.erase(words.begin());
        words.emplace_back("--help");
        if (words.front() != "--help" && verbNamed(words.front()) == nullptr)
            return fail({unknownVerb(words.front())}, output);
    }
    const Verb* named = words.empty() ? nullptr : verbNamed(words.front());
    std::reverse(words.begin(), words.end()); // CLI11 takes them from the back
    try {
        m_app.parse(words);
    } catch (const CLI::Success& request) {
        const int code = m_app.exit(request);
        return output.finish() && code == 0 ? kExitOk : kExitInvalid;
    } catch (const CLI::ParseError& error) {
        return fail(
            {Problem{"MW1903", error.what(), named == nullptr ? "`meshwright --help` shows examples" : helpOf(*named)}}, output);
    }
    const auto chosen = std::find_if(m_verbs.begin(), m_verbs.end(), [](const Verb& verb) { return verb.app->parsed(); });
    const Verb* verb = chosen == m_verbs.end() ? nullptr : &*chosen;
    Problems problems = verb == nullptr ? Problems{} : wrongFlags(*verb, output);
    if (Problems left = unexpected(verb); verb == nullptr || !m_app.remaining(true).empty()) {
        // Something misspelt is why something else is missing.
        std::erase_if(problems, [](const Problem& problem) { return problem.id == "MW1904"; });
        append(problems, std::move(left));
    }
    if (verb != nullptr)
        append(problems, leaderless(*verb));
    if (!problems.empty())
        return fail(problems, output);
    if (Problems files = unwritable(*verb, output); !files.empty())
        return fail(files, output);
    const int code = verb->run(output);
    if (const auto written = output.finish(); !written) {
        output.format = Format::Text;
        return fail(written.error(), output);
    }
    return code;
}

} // namespace

int runCommandLine(std::span<const std::string> arguments)
{
    CommandLine line;
    return line.run(arguments);
}

} // namespace meshwright::cli
