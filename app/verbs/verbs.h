// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/terminal/output.h"
#include "sim/search/search_request.h"
#include "sim/session/plan_training.h"

#include <optional>
#include <string>
#include <vector>

/// The verbs: each has its options as a plain value, and a function that does the work and gives the exit code.
namespace meshwright::sim {
struct NetworkOptions;
}

namespace meshwright::cli {

struct ShowOptions {
    std::string mesh; ///< "data=4,model=2"
    std::string deviceOrder; ///< "0,1,3,2"; empty: the default order
    std::string shape; ///< "8192x8192"
    std::string spec; ///< "P('data', None)", or a sharding in any other notation
    std::string dtype = "f32";
    std::string platform = "TPU";
    std::string name = "x"; ///< of the array, for headings
    double scale = 1.0; ///< of the text drawing
    bool pad = false; ///< pad dimensions that do not divide, as values inside a program are; otherwise they are refused
    std::string file; ///< where the result goes; empty or `-`: standard output
};
/// Draws an array's layout: text, JSON (`meshwright.layout/1`) or SVG.
/// Problems: MW1906 no shape, MW1401 sizes out of range, MW1907 more devices than can be drawn, MW1903 no element type or scale;
/// those of meshes and specs; MW1005.
int runShow(const ShowOptions& options, Output& output);

/// Reads `8192x8192`; `scalar` has no dimensions. Problems: MW1906 it is not a shape, MW1401 a size out of range.
Result<Shape> parseShape(const std::string& text);

/// Reads the chips along each axis of a slice, `4x2`. Problems: MW1910 it is not a topology.
Result<std::vector<std::int64_t>> parseTopology(const std::string& text);

struct MeshOptions {
    std::string chip; ///< a key or alias of the catalogue
    std::string topology; ///< chips of a TPU slice: "2x2"
    std::int64_t hosts = 0; ///< of a GPU machine; 0: not given
    std::int64_t perHost = 0; ///< GPUs of a host; 0: not given
    std::string mesh; ///< "data=4,model=2", or empty with the two below
    std::string inner; ///< within each slice (TPU) or host (GPU)
    std::string outer; ///< over slices or hosts
    std::string order = "jax"; ///< or "axes"
    bool wholeAxes = false; ///< no physical axis serves several axes of the mesh
    bool contiguousSubmeshes = false;
    std::string file; ///< where the result goes; empty or `-`: standard output
};
/// The device order of a logical mesh on a machine: text, JSON (`meshwright.mesh/1`) or a picture of one slice as SVG.
/// Problems: MW1910 no topology, MW1911 neither or both of --mesh and --ici with --dcn, MW1903 no such order; those of meshes, `buildMachine`
/// and `planMesh`; MW1005.
int runMesh(const MeshOptions& options, Output& output);

struct ConvertOptions {
    std::string text; ///< a sharding in any notation, or `-` for standard input; empty with `logical`
    std::string mesh; ///< "data=4,model=2", or as JAX or PyTorch print meshes; empty: the text names its own, or needs none
    std::string deviceOrder; ///< "0,1,3,2"; empty: the mesh's own
    std::string shape; ///< "8192x8192"; empty: not known
    std::string to; ///< name of a notation; empty: all
    std::string logical; ///< names of an array's dimensions, "batch,embed", which `rules` turn into a spec
    std::string rules; ///< a built-in list ("maxtext"), rules written out, or a YAML file that has them
    std::string semantics = "linen"; ///< or "nnx"
    std::string stacked; ///< "layers@1": the array is stacked over layers along a new dimension 1
};
/// Writes a sharding in another notation, or what logical axis rules make of an array, with their decisions.
/// Problems: MW1159 no such notation, MW1184 not exactly one of a sharding and logical names, MW1185 rules that are not list, built-in or file, MW1903
/// no such semantics, MW1186 no place for the stacked dimension; those of meshes, of `parseSharding` and `printSharding`, of `linenAxes`
/// and `nnxAxes`.
int runConvert(const ConvertOptions& options, Output& output);

struct CheckOptions {
    std::vector<std::string> files; ///< studies, and programs as StableHLO text
    std::vector<std::string> settings; ///< with any, a program is checked as the study that simulates it
    Severity failOn = Severity::Error;
    bool explicitTypes = false; ///< the files are programs, whose types are checked as JAX's explicit mode does
    std::string plan; ///< "FSDP + TP 2": puts the specs of this plan into studies that have none; empty: nothing is put in
    bool fix
        = false; ///< applies the fixes that a program can apply, to the files (standard input: to standard output), and writes the plan
    std::string spec; ///< "P('x', None)", checked instead of files, on ..
    std::string mesh; ///< "x=4,y=2", of files in place of their own, and ..
    std::string shape; ///< "8192x8192"
    bool proves = true; ///< says whether the device program is proved
};
/// Every mistake in studies and programs, or in one spec. With `fix` what was changed comes first, and the problems are those that are left;
/// settings are only looked at. A study without specs is offered the plans that it could have (mesh_templates.h).
/// Problems: those of studies, programs and `lintStudy`; MW1005 a file cannot be written, MW1904 --mesh or
/// --shape is missing beside --spec, MW1932 a spec beside files, MW1938 a plan that the study cannot have.
int runCheck(const CheckOptions& options, Output& output);

struct ExplainOptions {
    std::string what; ///< "MW1104", a message, a file with messages, a dump of HLO, `-` for standard input
    std::string after = {}; ///< a second dump, which `what` is compared with; empty: none
    std::string hardware = {}; ///< "v5e-8": where the collectives of a dump are timed; empty: nowhere
    std::string mesh; ///< "data=4,model=2": of the program that the messages are of; empty: as they say
    std::string shape; ///< "8192x8192": of the array, where a message does not say it; empty: not known
};
/// What a problem id means, or what messages of JAX, XLA, PyTorch and others mean, all of a log (`meshwright.messages/1`). Of a dump of HLO the
/// collectives, or what two dumps differ in (`meshwright.hlo/1`).
/// Problems: MW1908 it is not an id, MW1930 (and exit code 4: nothing found) a text with no message that is known, MW1931 an empty text, MW1951 hardware or
/// a second file for what is not a dump; those of `hloReport`, `readFile`, of meshes and shapes.
int runExplain(const ExplainOptions& options, Output& output);

struct ListOptions {
    std::string what; ///< "hardware", "models", "examples" or "problems"
};
/// What there is. Problems: MW1903 it lists no such thing.
int runList(const ListOptions& options, Output& output);

struct ValidateOptions {
    std::vector<std::string> paths; ///< files of records, and folders with them
};
/// Published measurements, predicted and compared: a table, JSON (`meshwright.validation/1`) or a row for every record as CSV.
/// Problems: those of `recordFiles` and `validateFiles`.
int runValidate(const ValidateOptions& options, Output& output);

struct CalibrateOptions {
    std::vector<std::string> logs; ///< of nccl-tests; empty: this computer is measured
    std::string base; ///< chip of the catalogue whose links the logs are of; empty: as the logs name it
    int devices = 8;
    int permits = 0;
    bool quick = false;
    std::string file; ///< for the profile; empty: standard output
};
/// A hardware profile: of this computer, or of the links that logs of nccl-tests measured.
/// Problems: those of `measureHost` and `readNcclLog`.
int runCalibrate(const CalibrateOptions& options, Output& output);

struct SimulateOptions {
    std::vector<std::string> studies; ///< or programs, in place of studies
    std::vector<std::string> settings;
    std::string trace; ///< file for the timelines; empty: none
    std::string chakra; ///< folder for the step as Chakra traces; empty: none
    std::string chakraIn; ///< folder with the traces of a step, in place of studies
    std::string hardware; ///< a chip and how many, "h100x64": of the studies, in place of their own, or for `chakraIn`
    std::string fidelity; ///< closed, fluid or message; empty: fluid
    std::string algorithm; ///< as `parseAlgorithms` takes it; empty: none is forced
    bool proves = true; ///< says whether the device program is proved
};
/// Step time, breakdown, collectives and memory on hardware; a row each for several studies. Infeasible when one does not fit.
/// With `chakraIn` the traces are replayed (`meshwright.replay/1`).
/// Problems: MW1904, MW1903 neither studies nor `chakraIn` with hardware, or both, or traces of several studies; those of studies and `simulateStudy`, of `StepTraces`, `writeChakraFolder`, `replayFolder`; MW1005.
int runSimulate(const SimulateOptions& options, Output& output);
/// The part of it that replays `options.chakraIn` on `options.hardware`.
int runReplay(
    const SimulateOptions& options, const sim::Catalogue& catalogue, const sim::NetworkOptions& network, Output& output);

/// What `train` and `run` look out for, and what is to go wrong on purpose.
struct FaultFlags {
    bool checkNumerics = false;
    double stallTimeout = 600.0; ///< seconds; 0: for ever
    std::vector<std::string> inject; ///< "fail:device=3,step=10"
};

struct SearchVerbOptions {
    std::string study; ///< or a program; empty: `words` say what is searched. One of `words.hardware` is in place of its own
    std::vector<std::string> settings;
    std::string mesh; ///< of a program that is searched: this one alone; empty: all meshes
    sim::SearchWords words;
    std::vector<std::string> fixed; ///< "tensor=8,zero=3"
    bool perOp = false; ///< a layout for each op of the study's program
    std::int64_t top = 5;
    std::int64_t threads = 0; ///< 0: one for each core
    std::optional<double>
        gap; ///< percent of the step by which another plan may be quicker; none: 1 with a time limit, else only the most promising plans are simulated
    bool explains = true; ///< what other choices, templates and more or less memory take
    std::optional<double> timeLimit; ///< seconds
    std::string file; ///< study of the best plan (or its program, `.mlir`); empty: none
};
/// The best plans of a transformer on hardware, why they are, and what the others lose (`meshwright.search/2`). Infeasible when none fits, with the
/// changes that would. Interrupted it prints the best so far.
/// Problems: MW1933 nothing to search, MW1934 a study beside what it says itself, plans for another model than a transformer, or --mesh for a model whose plans have axes of their own, MW1903 --top or --time-limit; those of studies, of search_request.h,
/// `searchMachineOf` and `studyText`; MW1005.
int runSearch(const SearchVerbOptions& options, Output& output);

struct PlanVerbOptions {
    sim::PlanWords words;
    std::int64_t threads = 0; ///< 0: one for each core
    std::optional<double> timeLimit = 120.0; ///< seconds
    std::string file; ///< the page, or (`.yaml`) the study of the best plan; empty: standard output
    bool formatGiven = false;
};
/// What training a model on machines takes, on one page (`meshwright.plan/1`). Infeasible when no plan fits, or what was wanted is not met.
/// Problems: those of `planTraining`; MW1903 --time-limit or the file's ending; MW1005.
int runPlan(const PlanVerbOptions& options, Output& output);

struct SweepOptions {
    std::string file; ///< a study, or a sweep file
    std::vector<std::string> vary; ///< `path=values`
    std::vector<std::string> settings;
    std::string database; ///< empty: nothing is kept
    int jobs = 0; ///< 0: one for each core
    bool dryRun = false;
    std::string failOn; ///< empty, "unfit" or "refused"
    std::string result; ///< where the result goes; empty or `-`: standard output
    bool formatGiven = false; ///< false: the ending of `result` says
};
/// Simulates a study with every combination of what is varied: text, JSON (`meshwright.sweep/1`), JSON lines, CSV, or a report as Markdown or HTML.
/// Infeasible when no point fits. An interrupt keeps what is done.
/// Problems: MW1903 the ending of `result`, --fail-on; those of `readFile`, `readSweepFile`, `parseVary`, `checkPlan`, `runSweep`; MW1005.
int runSweepVerb(const SweepOptions& options, Output& output);

struct TrainOptions {
    std::string study;
    std::vector<std::string> settings;
    bool verify = false;
    int permits = 0; ///< devices that compute at once; 0: one for each core
    std::string engine = "auto"; ///< as `parseEngine` takes it
    std::int64_t deviceMemory = 0; ///< bytes that each device may use; 0: any amount
    bool predict = false; ///< predicted beside measured, in virtual time
    std::string profile; ///< of this computer, as `calibrate` writes it; empty: measured first
    std::string trace; ///< file for the measured timelines; empty: none
    std::string result; ///< file for the result as JSON; empty: none
    std::string metrics; ///< file for a line of JSON for each step; empty: none
    std::string checkpoint; ///< folder for checkpoints; empty: none
    std::int64_t every = 0; ///< steps between two of them; 0: only after the last
    std::int64_t keep = 0; ///< newest that stay; 0: all
    std::string resume; ///< checkpoint or folder of checkpoints to go on from; empty: from the first step
    FaultFlags faults;
    bool proves = true; ///< says whether the device program is proved
};
/// Trains on virtual devices; with `verify` beside one device. Problems: MW1526; those of studies and `trainStudy`.
int runTrain(const TrainOptions& options, Output& output);

struct RunOptions {
    std::string file; ///< StableHLO text
    std::string function; ///< empty: the only one
    std::vector<std::string> arguments; ///< NPY files; none: drawn from the seed
    std::int64_t seed = 0; ///< of the arguments' values
    std::vector<std::string>
        settings; ///< with any, the program runs as the study that simulates it: its mesh, specs and hardware
    std::string folder; ///< where the results go as NPY files; empty: nowhere
    std::string time; ///< "5x5": repetitions and runs in each; empty: no times
    bool gradient = false;
    bool verify = false;
    int permits = 0;
    std::string engine = "auto"; ///< as `parseEngine` takes it
    FaultFlags faults;
    std::int64_t deviceMemory = 0; ///< bytes that each device may use; 0: any amount
    bool proves = true; ///< says whether the device program is proved
};
/// Executes a program, sharded as its text or the settings say: text with small results, or JSON (`meshwright.run/1`). With hardware its step is
/// simulated too. Problems: those of `loadStudy`, `buildPhase` and `simulateStudy` with settings; MW1526; MW1732 no such function, MW1903 --time has another form, MW1005 a result cannot be written; those of `readNpy` and `runProgram`.
int runRun(const RunOptions& options, Output& output);

struct OpenOptions {
    std::string file; ///< a notebook, Markdown, a script or text with prompts
    /// The machine that the page is to see, as `readMachineName` takes it; empty: the one that it names, or CPU devices as it needs them.
    std::string hardware;
    std::string cells; ///< "1-30,32"; empty: all
    std::string result; ///< .html, .ipynb, .json or .txt; empty or `-`: standard output
    std::string folder; ///< what the page may read and write; empty: nothing of the user's
    bool checks = false; ///< exit code 1 where a cell raises, has a finding, or prints something else than the page says
    bool isTrusted = false; ///< not told again that this page is a program
    bool isUnsafe = false; ///< not confined
    bool measures = false; ///< %timeit measures here; else it simulates the page's machine
    double seconds = 600.0;
    double flops = 1e12; ///< of one value that a cell asks for
    std::int64_t memory = 0; ///< bytes; 0: three quarters of the computer's
};
/// Runs the cells of a page on virtual devices: text, JSON (`meshwright.page/1`), HTML, or a notebook. Where the page cannot be confined it is only
/// read. Problems: those of `readFile`, `readPage`, `machineOfPage` and `runPage`; MW1903 --cells or the ending of `result`; MW1001 no such folder;
/// MW1005.
int runOpen(const OpenOptions& options, Output& output);

struct LessonOptions {
    std::string which; ///< the number of a lesson; empty: list the lessons
    std::string result; ///< .html: write the lesson as a page, with its answers folded; empty: go through it
};
/// Lists the lessons with what is done of them, goes through one (its questions are asked on the terminal, or take their answers from standard input), or
/// writes it. Right answers are kept in a file of the user's (lesson.cpp). Problems: MW1903 no such lesson, or the ending of `result`; those of `readPage` and `PageSession`.
int runLesson(const LessonOptions& options, Output& output);

struct DiffOptions {
    std::string before; ///< a study, a program, a result as JSON, or MaxText's named shardings; `-` is standard input
    std::string after; ///< the same; empty: `before` again, with other settings
    std::vector<std::string> settings; ///< of studies, on both sides
    std::vector<std::string> settingsBefore; ///< of the first only
    std::vector<std::string> settingsAfter; ///< of the second only
    std::optional<std::string> failOn; ///< as `parseGates` takes it; nothing: differences do not fail
    std::string result; ///< where the result goes; empty or `-`: standard output
    bool formatGiven = false; ///< false: the ending of `result` says
};
/// What differs between two things: text, JSON (`meshwright.diff/1`), Markdown, SARIF or JUnit. With gates, exit code 1 when one fails.
/// Problems: MW1904 nothing to compare with, MW1903 the ending of `result`, standard input for both; those of `parseGates`, `judge`, `readFile`,
/// `readComparable`, studies and programs; MW1005.
int runDiff(const DiffOptions& options, Output& output);

struct ReportOptions {
    std::string study; ///< a study, a program, or a report whose study is reported on again; empty with `sweep`
    std::string sweep; ///< database of a sweep to report on in place of a study; empty: none
    std::vector<std::string> settings;
    bool train = false; ///< adds what training measures, verified against one device
    std::string result; ///< file of a training result to add instead; empty: none
    std::string file; ///< where the report goes; empty or `-`: standard output
    bool formatGiven = false; ///< false: the ending of `file` says
};
/// Writes the report of a study, or of the last sweep of a database: HTML, Markdown, CSV or JSON (`meshwright.report/1`). Infeasible, with the report written, when it does not fit.
/// Problems: MW1903 the ending of `file` names no format, or both kinds of training, MW1904 neither a study nor a sweep,
/// MW1940 both; those of `SweepDatabase::lastSweep`, `readReport` and `readTrainingResult`; MW1005.
int runReport(const ReportOptions& options, Output& output);

struct GuiOptions {
    std::string file; ///< a study, a program or a report; empty: none
    std::vector<std::string> settings; ///< of the study or of the program in its place, as edits that can be undone
};
/// Becomes the desktop program. Problems: MW1827 it is not installed, MW1904 settings without a file.
int runGui(const GuiOptions& options, Output& output);

struct TourOptions {
    std::string report; ///< file for the report of the trained example; empty: none
};
struct ReshardOptions {
    std::string mesh; ///< "data=4,model=2"; empty: the layouts name their own
    std::string shape; ///< "8192x8192"
    std::string dtype = "f32";
    std::string from; ///< a sharding in any notation
    std::string to;
    std::string hardware; ///< chip of the catalogue; empty: no times
    std::string topology; ///< "4x2"
    std::int64_t hosts = 0; ///< of GPUs; 0: one
    bool shardy = false; ///< Shardy's sequence instead of the cheapest
    bool dryRun = false; ///< of checkpoints: only who reads what
    std::vector<std::string> settings; ///< of checkpoints: `path=value`, that override the study's
    std::string result; ///< file to write; empty: standard output; for checkpoints: folder for the new one
};
/// The collectives that bring an array from one layout into another, their bytes, memory and time (`meshwright.reshard/1`), or
/// as pictures of who holds what after each of them.
/// Problems: MW1920 the layouts are on different meshes, MW1915 they are of two arrays, MW1921 more devices than are planned for, MW1910 no topology, MW1903 no element
/// type, MW1904 a topology without a chip, MW1906 no shape; MW1104, MW1145, MW1220 layouts that do not fit; those of meshes, notations and
/// machines.
int runReshard(const ReshardOptions& options, Output& output);

/// True when `--from` names a folder: checkpoints are brought into the layouts of the study that `--to` names.
bool isCheckpointReshard(const ReshardOptions& options);

/// Which device reads which bytes of a checkpoint (`meshwright.restore/1`), and, unless it is a dry run, a new checkpoint in the new layouts.
/// Problems: MW1904 neither a folder for it nor a dry run; those of studies, `CheckpointReader::open`, `restorePlan` and `convertCheckpoint`.
int runCheckpointReshard(const ReshardOptions& options, Output& output);

struct PropagateOptions {
    std::string file; ///< StableHLO text
    std::string mode = "shardy"; ///< one of `propagationModeNames`
    std::string strategy = "pipeline"; ///< of Shardy: one of `strategyNames`
    std::string explain; ///< a value; empty: the whole program
    bool steps = false; ///< the reasons as JSON
    std::string result; ///< where the result goes; empty or `-`: standard output
};
/// A program with the sharding of every value, or why they are so (`meshwright.propagation/1`).
/// Problems: MW1903 no such strategy or mode, MW1923 no such value; those of `readProgram`, `propagate` and the modes (propagate_modes.h).
int runPropagate(const PropagateOptions& options, Output& output);
std::vector<std::string> strategyNames();
std::vector<std::string> propagationModeNames();

struct PartitionVerbOptions {
    std::string file; ///< StableHLO text
    std::string only; ///< one pass; empty: propagation and all passes
    bool shardy = false; ///< placed as Shardy does instead of by the least bytes
    bool proves = true; ///< says whether the result is proved
    std::string result; ///< where the result goes; empty or `-`: standard output
};
/// A program on shards with its collectives, which are narrated with their causes or listed (`meshwright.partition/1`).
/// Problems: MW1903 no such pass, MW1222 the program has no mesh; those of `readProgram`, `propagate` and `partition`.
int runPartition(const PartitionVerbOptions& options, Output& output);

struct ProveOptions {
    std::string file; ///< StableHLO text or a study; with `against` the text of a device program
    std::string against; ///< StableHLO text: the program that `file` is to compute; empty: `file` is partitioned
    std::vector<std::string> settings; ///< of a study; with any, a program is proved as the study that simulates it
    std::string result; ///< where the result goes; empty or `-`: standard output
};
/// Whether the program that partitioning makes is shown to compute the program, and if not, at which op (`meshwright.proof/1`). Exit code 5
/// where it is not. Problems: MW1222 the program has no mesh; those of `readProgram`, `loadStudy`, `propagate` and `partition`.
int runProve(const ProveOptions& options, Output& output);

/// The main job on the built-in examples: trains, verifies, simulates, and sums it up.
int runTour(const TourOptions& options, Output& output);

inline constexpr const char* kAllExports = "all"; ///< commands are written out, files are asked for one by one
struct ExportOptions {
    std::string file; ///< a study, or a program as StableHLO text
    std::vector<std::string> settings;
    std::string to = kAllExports; ///< one of `exportWords`
    std::string result; ///< where it goes; empty or `-`: standard output
};
/// The programs and formats that a study may be written for.
const std::vector<std::string>& exportWords();
/// A study in the words of another program. Problems: those of studies; MW1759 that program cannot say it.
int runExport(const ExportOptions& options, Output& output);

struct ConfigOptions {
    std::string file; ///< a study; empty: the installation
    std::vector<std::string> settings;
};
/// The values that the program goes by, and where it has each from. Problems: those of studies and of `machineOf`.
int runConfig(const ConfigOptions& options, Output& output);

/// Whether this machine is fit, and what the program found on it.
int runDoctor(Output& output);

} // namespace meshwright::cli
