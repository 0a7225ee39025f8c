// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verb_table.h"

#include "app/verbs/verbs.h"
#include "core/support/text.h"

#include <CLI/App.hpp>

#include <memory>

namespace meshwright::cli {

namespace {

constexpr const char* kRunExamples = R"help(  meshwright run program.mlir --verify
  meshwright run program.mlir --function main --seed 7
  meshwright run program.mlir --mesh data=4,model=2 --hw v5e-8
  meshwright run program.mlir --args x.npy,w.npy --out results
  meshwright run program.mlir --grad --verify --format json
  meshwright run program.mlir --time 5x5)help";

constexpr const char* kPropagateExamples = R"help(  meshwright propagate program.mlir -o sharded.mlir
  meshwright propagate program.mlir --explain %3
  meshwright propagate program.mlir --strategy basic --steps
  meshwright propagate program.mlir --mode explicit
  cat program.mlir | meshwright propagate -)help";

constexpr const char* kPartitionExamples = R"help(  meshwright partition program.mlir -o device.mlir
  meshwright partition program.mlir --shardy --format json
  meshwright propagate program.mlir | meshwright partition - --only insert-reshards)help";

constexpr const char* kProveExamples = R"help(  meshwright prove program.mlir
  meshwright prove study.yaml --set mesh.data=64
  meshwright prove program.mlir --mesh data=8,model=4 --format json
  meshwright prove device.mlir --against program.mlir)help";

} // namespace

void addRun(VerbTable& table)
{
    const auto options = std::make_shared<RunOptions>();
    Verb& verb = table.add("run", "Run a StableHLO program with the shardings of its text.", kRunExamples,
        {Format::Text, Format::Json}, [options](Output& output) { return runRun(*options, output); });
    verb.needed.push_back(
        verb.app->add_option("FILE", options->file, "StableHLO text with Shardy's shardings; - is standard input")
            ->type_name(""));
    addSettings(*verb.app, options->settings);
    addHardware(*verb.app, options->settings);
    addMesh(*verb.app, options->settings);
    verb.app->add_option("--function", options->function, "Function to run (default: the only one, or main)")->type_name("NAME");
    auto* arguments = verb.app->add_option("--args", options->arguments, "The arguments as NPY files (default: random numbers)")
                          ->type_name("A.npy,B.npy")
                          ->delimiter(',');
    verb.app->add_option("--seed", options->seed, "Seed of random arguments (default 0)")
        ->type_name("N")
        ->check(wholeNumber(0))
        ->excludes(arguments);
    verb.addFile("--out", options->folder, "Folder for the results as whole arrays: result0.npy and so on",
        WrittenFile::Kind::Folder, "FOLDER");
    verb.app->add_flag(
        "--grad", options->gradient, "Also compute the gradient of the summed results with respect to each argument");
    verb.app->add_flag("--verify", options->verify, "Check the results against one device; exit code 5 on a difference");
    addNoProve(*verb.app, options->proves);
    verb.app->add_option("--time", options->time, "Time repetitions x runs, sharded and unsharded")->type_name("5x5");
    verb.app->add_option("--permits", options->permits, "Devices that compute at once (default: one per core)")
        ->type_name("N")
        ->check(wholeNumber(1, 1024));
    addEngine(*verb.app, options->engine);
    addFaultFlags(*verb.app, options->faults);
    addDeviceMemory(*verb.app, options->deviceMemory);
}

void addPropagate(VerbTable& table)
{
    const auto options = std::make_shared<PropagateOptions>();
    Verb& verb = table.add("propagate", "Propagate shardings to every value of a StableHLO program, and explain each.",
        kPropagateExamples, {Format::Text, Format::Json}, [options](Output& output) { return runPropagate(*options, output); });
    verb.needed.push_back(
        verb.app->add_option("FILE", options->file, "StableHLO text with Shardy's shardings; - is standard input")
            ->type_name(""));
    verb.app->add_option("--strategy", options->strategy, "Propagation strategy: " + join(strategyNames(), ", "))
        ->type_name("NAME");
    verb.app
        ->add_option("--mode", options->mode,
            "Propagation rules: " + join(propagationModeNames(), ", ")
                + " (explicit: JAX's sharding in types, as a type checker)")
        ->type_name("NAME");
    verb.app->add_option("--explain", options->explain, "Only explain the sharding of this value: a name, %arg0, %3")
        ->type_name("VALUE");
    verb.app->add_flag("--steps", options->steps, "Only list the reasons in order, as JSON");
    verb.addFile("-o,--output", options->result, "File to write instead of standard output", WrittenFile::Kind::Result);
}

void addPartition(VerbTable& table)
{
    const auto options = std::make_shared<PartitionVerbOptions>();
    Verb& verb = table.add("partition", "Partition a StableHLO program into the program of one device, with its collectives.",
        kPartitionExamples, {Format::Text, Format::Json}, [options](Output& output) { return runPartition(*options, output); });
    verb.needed.push_back(
        verb.app->add_option("FILE", options->file, "StableHLO text with Shardy's shardings; - is standard input")
            ->type_name(""));
    verb.app
        ->add_option(
            "--only", options->only, "One pass, without propagation: insert-reshards, reshard-to-collectives or global-to-local")
        ->type_name("PASS");
    verb.app->add_flag("--shardy", options->shardy, "Place collectives as Shardy does, instead of moving the fewest bytes");
    addNoProve(*verb.app, options->proves);
    verb.addFile("-o,--output", options->result, "File to write instead of standard output", WrittenFile::Kind::Result);
}

void addProve(VerbTable& table)
{
    const auto options = std::make_shared<ProveOptions>();
    Verb& verb = table.add("prove", "Prove that the partitioned program computes the program, for every input.", kProveExamples,
        {Format::Text, Format::Json}, [options](Output& output) { return runProve(*options, output); });
    verb.needed.push_back(
        verb.app->add_option("FILE", options->file, "A study, or StableHLO text with Shardy's shardings; - is standard input")
            ->type_name(""));
    verb.app->add_option("--against", options->against, "The source program that FILE, the program of one device, must compute")
        ->type_name("SOURCE");
    addSettings(*verb.app, options->settings);
    addMesh(*verb.app, options->settings);
    verb.addFile("-o,--output", options->result, "File to write instead of standard output", WrittenFile::Kind::Result);
}

} // namespace meshwright::cli
