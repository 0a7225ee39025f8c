// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/verbs/verbs.h"

#include "core/partition/explicit_reshards.h"
#include "core/partition/partition.h"
#include "core/partition/reshard_passes.h"
#include "core/support/json_text.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "core/text/program_text.h"
#include "sim/report/results.h"
#include "sim/session/engine.h"
#include "sim/session/verdict.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

enum class Pass : std::uint8_t { All, InsertReshards, ReshardToCollectives, GlobalToLocal };

constexpr std::array kPassNames = {"all", "insert-reshards", "reshard-to-collectives", "global-to-local"};

/// What came out of the passes.
struct Partitioned {
    Program program;
    std::vector<std::vector<CollectiveUse>> collectives; ///< of each function
    std::string proof = {}; ///< whether it is shown to compute the program; empty: not asked
};

Result<Partitioned> onShards(Program program, const PartitionOptions& options, bool proves)
{
    auto partitioned = propagateAndPartition(std::move(program), options);
    if (!partitioned)
        return partitioned.error();
    Partitioned result;
    if (proves)
        result.proof = sim::proofText(sim::proofOf(*partitioned));
    DeviceStage& stage = partitioned->device.stages.front();
    for (DeviceFunction& device : stage.functions) {
        result.collectives.push_back(collectivesOf(device, stage.mesh()));
        result.program.functions.push_back(std::move(device.function));
    }
    result.program.meshes = std::move(stage.meshes);
    return result;
}

Result<Partitioned> runPass(Program program, Pass pass, bool shardy, bool proves)
{
    if (pass == Pass::All || pass == Pass::GlobalToLocal) {
        return onShards(std::move(program),
            {.style = shardy ? ReshardStyle::Shardy : ReshardStyle::Cheapest, .localOnly = pass == Pass::GlobalToLocal}, proves);
    }
    Partitioned result;
    for (Function& function : program.functions) {
        constraintsToReshards(function);
        function = pass == Pass::InsertReshards ? insertExplicitReshards(function, program.meshes)
                                                : reshardsToCollectives(function, program.meshes, BytesThenStepsCost(),
                                                    {.style = shardy ? ReshardStyle::Shardy : ReshardStyle::Cheapest});
        result.collectives.push_back(collectivesOnArrays(function, program.meshes));
    }
    result.program = std::move(program);
    return result;
}

std::string collectivesText(const Partitioned& partitioned)
{
    std::string text;
    for (std::size_t i = 0; i < partitioned.collectives.size(); ++i) {
        const std::vector<CollectiveUse>& uses = partitioned.collectives[i];
        std::int64_t total = 0;
        for (const CollectiveUse& use : uses)
            total += use.count * use.payloadBytes;
        const std::string& name = partitioned.program.functions[i].name;
        text += uses.empty()
            ? fmt::format("{}: no collectives\n", name)
            : fmt::format("{}: {} of data a device\n{}", name, formatBytes(total), sim::collectivesTable(uses).text(2));
    }
    return text;
}

std::string partitionJson(const Partitioned& partitioned, Pass pass, bool shardy)
{
    Json functions = Json::array();
    for (std::size_t i = 0; i < partitioned.collectives.size(); ++i) {
        Json collectives = Json::array();
        std::int64_t total = 0;
        for (const CollectiveUse& use : partitioned.collectives[i]) {
            total += use.count * use.payloadBytes;
            collectives.push_back(sim::useJson(use));
        }
        functions.push_back({{"name", partitioned.program.functions[i].name}, {"bytes_per_device", total},
            {"collectives", std::move(collectives)}});
    }
    const Json document
        = {{"schema", "meshwright.partition/1"}, {"meshwright", kVersion}, {"pass", kPassNames[static_cast<std::size_t>(pass)]},
            {"style", shardy ? "shardy" : "cheapest"}, {"collective_cost", BytesThenStepsCost().id()},
            {"functions", std::move(functions)}, {"program", writeProgram(partitioned.program)}};
    return jsonText(document);
}

} // namespace

int runPartition(const PartitionVerbOptions& options, Output& output)
{
    std::size_t pass = 0;
    while (pass < kPassNames.size() && options.only != kPassNames[pass])
        ++pass;
    if (options.only.empty())
        pass = 0;
    else if (pass == 0 || pass == kPassNames.size())
        return fail({Problem{"MW1903", fmt::format("--only: \"{}\" is not allowed here", options.only),
                        "one of: insert-reshards, reshard-to-collectives, global-to-local"}},
            output);
    auto program = readProgramFile(options.file, output);
    if (!program)
        return fail(program.error(), output);
    if (program->meshes.empty())
        return fail({sim::noMesh(options.file == "-" ? "standard input" : options.file)}, output);
    const auto partitioned
        = runPass(*std::move(program), static_cast<Pass>(pass), options.shardy, options.proves && output.format == Format::Text);
    if (!partitioned)
        return fail(inFile(partitioned.error(), options.file), output);
    if (output.format == Format::Json)
        return writeResult(partitionJson(*partitioned, static_cast<Pass>(pass), options.shardy), options.result, output);
    const std::string narration = collectivesText(*partitioned);
    output.narrate(narration.substr(0, narration.size() - 1));
    if (!partitioned->proof.empty())
        output.narrate(partitioned->proof);
    return writeResult(writeProgram(partitioned->program), options.result, output);
}

} // namespace meshwright::cli
