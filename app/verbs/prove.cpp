// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/verbs/study_file.h"
#include "app/verbs/verbs.h"

#include "core/partition/complex_pairs.h"
#include "core/partition/partition.h"
#include "core/prove/prove.h"
#include "core/schedule/label.h"
#include "core/study/pipeline_choice.h"
#include "core/study/program_study.h"
#include "core/support/clock.h"
#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "core/text/program_text.h"
#include "sim/session/engine.h"
#include "sim/session/verdict.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

struct TimedProof {
    Proof proof;
    std::optional<double> partitionSeconds; ///< absent: the device program was given
};

/// Ops on complex numbers are partitioned, and proved, on pairs of real ones.
Result<TimedProof> proofOfProgram(Program program)
{
    for (Function& function : program.functions) {
        if (!hasComplexValues(function))
            continue;
        auto pairs = withComplexPairs(function);
        if (!pairs)
            return pairs.error();
        function = *std::move(pairs);
    }
    const auto start = std::chrono::steady_clock::now();
    const auto partitioned = propagateAndPartition(std::move(program));
    if (!partitioned)
        return partitioned.error();
    const double seconds = secondsSince(start);
    return TimedProof{sim::proofOf(*partitioned), seconds};
}

Result<TimedProof> proofOfStudy(const Study& study)
{
    TimedProof timed;
    auto start = std::chrono::steady_clock::now();
    if (isPipelined(stepPipeline(study))) { // as it trains
        const auto phases = sim::trainingPhases(study);
        if (!phases)
            return phases.error();
        timed.partitionSeconds = secondsSince(start);
        timed.proof = sim::proofOf(*phases);
        return timed;
    }
    const std::size_t phases = std::max<std::size_t>(1, study.phases.size());
    for (std::size_t phase = 0; phase < phases; ++phase) {
        start = std::chrono::steady_clock::now();
        const auto built = sim::buildPhase(study, phase);
        if (!built)
            return built.error();
        timed.partitionSeconds = timed.partitionSeconds.value_or(0.0) + secondsSince(start);
        add(timed.proof, sim::proofOf(*built));
    }
    return timed;
}

/// Whether arrays of `program` are larger than those of `other` at the borders of their functions, and none is smaller: it is the whole program then,
/// and the other one that of a device.
bool isWholeOf(const Program& program, const Program& other)
{
    bool isLarger = false;
    for (const Function& function : program.functions) {
        const Function* const counterpart = other.find(function.name);
        if (counterpart == nullptr)
            continue;
        const auto shapesOf = [](const Function& of) {
            std::vector<Shape> shapes;
            for (const auto* values : {&of.arguments(), &of.results()}) {
                for (const ValueId value : *values)
                    shapes.push_back(of[value].type.shape);
            }
            return shapes;
        };
        const std::vector<Shape> own = shapesOf(function);
        const std::vector<Shape> others = shapesOf(*counterpart);
        for (std::size_t i = 0; i < std::min(own.size(), others.size()); ++i) {
            for (std::size_t dim = 0; dim < std::min(own[i].size(), others[i].size()); ++dim) {
                if (own[i][dim] < others[i][dim])
                    return false;
                isLarger = isLarger || own[i][dim] > others[i][dim];
            }
        }
    }
    return isLarger;
}

/// Of a device program that is read from a text, as it stands there. Where FILE is the whole program, the other one is the device's.
Result<TimedProof> proofAgainst(Program device, const ProveOptions& options, Output& output)
{
    auto source = readProgramFile(options.against, output);
    if (!source)
        return source.error();
    if (source->meshes.empty())
        return sim::noMesh(options.against);
    if (isWholeOf(device, *source)) {
        output.narrate(fmt::format("{} has the whole arrays, so {} is proved against it", options.file, options.against));
        std::swap(device, *source);
    }
    const auto whole = asPartitioned(*std::move(source), device);
    if (!whole)
        return whole.error();
    const auto start = std::chrono::steady_clock::now();
    Proof proof = prove(*whole, deviceProgramOf(std::move(device)));
    proof.seconds = secondsSince(start);
    return TimedProof{std::move(proof), {}};
}

/// A program that shows an obstacle; empty when there is none.
std::string cutText(const Function& function, const std::vector<NamedMesh>& meshes)
{
    return function.blocks.empty() ? std::string() : writeProgram({meshes, {function}, {}, {}, {}, {}, {}});
}

std::string obstacleText(const FunctionProof& function, const ProofObstacle& obstacle)
{
    std::string text = "  " + function.name;
    if (!obstacle.opName.empty())
        text += fmt::format(", {}", opLabel(obstacle.opName, obstacle.value));
    if (!obstacle.place.empty())
        text += fmt::format(" at {}", obstacle.place);
    text += fmt::format(": {}\n", obstacle.reason);
    for (const ProofValue& value : obstacle.has)
        text += fmt::format("    has    {}: {}, {}\n", value.name, value.type, value.pieces);
    if (!obstacle.needs.empty())
        text += fmt::format("    needs  {}\n", obstacle.needs);
    if (const std::string device = cutText(obstacle.device, function.meshes); !device.empty())
        text += fmt::format("  The smallest programs with this obstacle. The source's:\n{}  The devices':\n{}",
            cutText(obstacle.source, function.meshes), device);
    return text;
}

std::string proofText(const TimedProof& timed)
{
    const Proof& proof = timed.proof;
    std::string text = headline(proof) + "\n";
    for (const FunctionProof& function : proof.functions) {
        if (function.isProved() && function.isByIdentity)
            text
                += fmt::format("  {}: in part by identities, which can be wrong with a chance below 1 in 10^12\n", function.name);
    }
    if (proof.isProved())
        return text;
    for (const FunctionProof& function : proof.functions) {
        for (const ProofObstacle& obstacle : function.obstacles)
            text += obstacleText(function, obstacle);
    }
    return text + "  A program that is not proved can still be correct: check it with --verify.\n";
}

std::string proofJson(const TimedProof& timed)
{
    Json functions = Json::array();
    for (const FunctionProof& function : timed.proof.functions) {
        Json obstacles = Json::array();
        for (const ProofObstacle& obstacle : function.obstacles) {
            Json has = Json::array();
            for (const ProofValue& value : obstacle.has)
                has.push_back({{"value", value.name}, {"type", value.type}, {"pieces", value.pieces}});
            obstacles.push_back({{"op", obstacle.opName}, {"value", obstacle.value}, {"place", obstacle.place},
                {"reason", obstacle.reason}, {"has", std::move(has)}, {"needs", obstacle.needs},
                {"source", cutText(obstacle.source, function.meshes)}, {"device", cutText(obstacle.device, function.meshes)}});
        }
        functions.push_back({{"name", function.name}, {"proved", function.isProved()}, {"ops", function.ops},
            {"by_identities", function.isByIdentity}, {"obstacles", std::move(obstacles)}});
    }
    const Json document = {{"schema", "meshwright.proof/1"}, {"meshwright", kVersion}, {"proved", timed.proof.isProved()},
        {"ops", timed.proof.ops()}, {"devices", timed.proof.devices}, {"partition_s", timed.partitionSeconds.value_or(0.0)},
        {"prove_s", timed.proof.seconds}, {"functions", std::move(functions)}};
    return jsonText(document);
}

} // namespace

int runProve(const ProveOptions& options, Output& output)
{
    const auto text = readFile(options.file);
    if (!text)
        return fail(text.error(), output);
    const std::string name = options.file == "-" ? "standard input" : options.file;
    Result<TimedProof> timed = TimedProof();
    if (isProgramText(options.file, *text) && options.settings.empty()) {
        auto program = readProgram(*text, name);
        if (!program)
            return fail(program.error(), output);
        if (program->meshes.empty())
            return fail({sim::noMesh(name)}, output);
        timed
            = options.against.empty() ? proofOfProgram(*std::move(program)) : proofAgainst(*std::move(program), options, output);
    } else {
        const auto study = readStudyFile(options.file, options.settings, output);
        if (!study)
            return fail(study.error(), output);
        if (!options.against.empty())
            return fail(
                {Problem{"MW1903", "--against compares two programs; FILE is a study", "give the device program's text as FILE"}},
                output);
        timed = proofOfStudy(*study);
    }
    if (!timed)
        return fail(inFile(timed.error(), options.file), output);
    const std::string partitioned
        = timed->partitionSeconds ? fmt::format("partitioned in {}, ", formatSeconds(*timed->partitionSeconds)) : "";
    output.narrate(fmt::format("{}proved in {}", partitioned, formatSeconds(timed->proof.seconds)));
    const int written
        = writeResult(output.format == Format::Json ? proofJson(*timed) : proofText(*timed), options.result, output);
    return written != 0 ? written : timed->proof.isProved() ? 0 : 5;
}

} // namespace meshwright::cli
