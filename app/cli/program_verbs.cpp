// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/verb_table.h"

#include "app/cli/verbs.h"
#include "core/support/text.h"

#include <CLI/App.hpp>

#include <memory>

namespace meshwright::cli {

namespace {

constexpr const char* kRunExamples = R"help(  meshwright run program.mlir --verify
  meshwright run program.mlir --function main --seed 7
  meshwright run program.mlir --args x.npy,w.npy --out results
  meshwright run program.mlir --grad --verify
  meshwright run program.mlir --time 5x5)help";

constexpr const char* kPropagateExamples = R"help(  meshwright propagate program.mlir -o sharded.mlir
  meshwright propagate program.mlir --explain %3
  meshwright propagate program.mlir --strategy basic --steps
  meshwright propagate program.mlir --mode explicit
  cat program.mlir | meshwright propagate -)help";

constexpr const char* kPartitionExamples = R"help(  meshwright partition program.mlir -o device.mlir
  meshwright partition program.mlir --shardy --format json
  meshwright propagate program.mlir | meshwright partition - --only insert-reshards)help";

} // namespace

void addRun(VerbTable& table)
{
    const auto options = std::make_shared<RunOptions>();
    Verb& verb = table.add("run", "Execute a StableHLO program, sharded as its text says.", kRunExamples, {Format::Text},
        [options](Output& output) { return runRun(*options, output); });
    verb.needed.push_back(
        verb.app->add_option("FILE", options->file, "StableHLO text with Shardy's shardings; - is standard input")
            ->type_name(""));
    verb.app->add_option("--function", options->function, "Which function, when there are several")->type_name("NAME");
    auto* arguments = verb.app->add_option("--args", options->arguments, "The arguments as NPY files (default: random numbers)")
                          ->type_name("A.npy,B.npy")
                          ->delimiter(',');
    verb.app->add_option("--seed", options->seed, "Seed of random arguments (default 0)")
        ->type_name("N")
        ->check(wholeNumber(0))
        ->excludes(arguments);
    verb.addFile("--out", options->folder, "Folder for the results as whole arrays: result0.npy and so on",
        WrittenFile::Kind::Folder, "FOLDER");
    verb.app->add_flag("--grad", options->gradient, "Also the gradient of the sum of the results by each argument");
    verb.app->add_flag("--verify", options->verify, "Check the results against one device; exit code 5 on a difference");
    verb.app->add_option("--time", options->time, "Time so many repetitions of so many runs, and the unsharded program too")
        ->type_name("5x5");
    verb.app->add_option("--permits", options->permits, "Devices that compute at once (default: one for each core)")
        ->type_name("N")
        ->check(wholeNumber(1, 1024));
    addEngine(*verb.app, options->engine);
    addFaultFlags(*verb.app, options->faults);
    addDeviceMemory(*verb.app, options->deviceMemory);
}

void addPropagate(VerbTable& table)
{
    const auto options = std::make_shared<PropagateOptions>();
    Verb& verb = table.add("propagate", "Give every value of a StableHLO program its sharding, and say why.", kPropagateExamples,
        {Format::Text, Format::Json}, [options](Output& output) { return runPropagate(*options, output); });
    verb.needed.push_back(
        verb.app->add_option("FILE", options->file, "StableHLO text with Shardy's shardings; - is standard input")
            ->type_name(""));
    verb.app->add_option("--strategy", options->strategy, "How far to go: " + join(strategyNames(), ", "))->type_name("NAME");
    verb.app
        ->add_option("--mode", options->mode,
            "Whose rules: " + join(propagationModeNames(), ", ") + " (explicit: JAX's sharding in types, as a type checker)")
        ->type_name("NAME");
    verb.app->add_option("--explain", options->explain, "Only why this value lies as it does: a name, %arg0, %3")
        ->type_name("VALUE");
    verb.app->add_flag("--steps", options->steps, "Only the reasons in order, as JSON");
    verb.addFile("-o,--output", options->result, "File to write instead of standard output", WrittenFile::Kind::Result);
}

void addPartition(VerbTable& table)
{
    const auto options = std::make_shared<PartitionVerbOptions>();
    Verb& verb = table.add("partition", "Turn a StableHLO program into what one device runs, with its collectives.",
        kPartitionExamples, {Format::Text, Format::Json}, [options](Output& output) { return runPartition(*options, output); });
    verb.needed.push_back(
        verb.app->add_option("FILE", options->file, "StableHLO text with Shardy's shardings; - is standard input")
            ->type_name(""));
    verb.app
        ->add_option(
            "--only", options->only, "One pass, without propagation: insert-reshards, reshard-to-collectives or global-to-local")
        ->type_name("PASS");
    verb.app->add_flag("--shardy", options->shardy, "Where and how Shardy moves data, instead of the least bytes");
    verb.addFile("-o,--output", options->result, "File to write instead of standard output", WrittenFile::Kind::Result);
}

} // namespace meshwright::cli
