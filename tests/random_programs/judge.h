// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/complex_pairs.h"
#include "core/partition/partition.h"
#include "core/program/transform.h"
#include "core/program/verify.h"
#include "core/runtime/executor.h"
#include "core/text/program_text.h"
#include "tests/plain_evaluator.h"
#include "tests/random_programs/random_program.h"

/// Runs random programs on virtual devices, and says whether they gave what the plain evaluator gives.
namespace meshwright::tests {

struct Verdict {
    enum class Kind : std::uint8_t { Right, Refused, Fault };
    Kind kind = Kind::Right;
    std::string text; ///< of a fault: what is wrong; of a refusal: its ids

    bool isFault() const { return kind == Kind::Fault; }
};

inline Verdict fault(std::string text)
{
    return {Verdict::Kind::Fault, std::move(text)};
}

/// A drawn program, what it takes and what it should give.
struct Judged {
    Program program;
    Program real; ///< on pairs of real numbers where it has complex ones
    std::vector<HostArray> arguments;
    std::vector<Array> expected;
    std::vector<bool> isExact; ///< of the results
};

inline std::vector<HostArray> argumentsFor(const Function& function)
{
    std::vector<HostArray> arguments;
    Random random(7);
    for (const ValueId argument : function.arguments()) {
        const TensorType& type = function[argument].type;
        std::vector<double> values;
        for (std::int64_t i = 0; i < type.elements(); ++i)
            values.push_back(static_cast<double>(type.dtype == DType::Pred ? pick(random, 0, 1)
                    : isUnsigned(type.dtype)                               ? pick(random, 0, 16)
                                                                           : pick(random, -8, 8)));
        arguments.push_back(HostArray::of(type, values));
    }
    return arguments;
}

/// True where no op on the way to a value rounds.
inline std::vector<bool> exactResults(const Function& function)
{
    std::vector<bool> exact(function.values.size(), true);
    const auto rounds = [](const Op& op) {
        static const std::set<OpKind> kRounding = {OpKind::Exp, OpKind::Log, OpKind::Log1p, OpKind::Tanh, OpKind::Logistic,
            OpKind::Sqrt, OpKind::Rsqrt, OpKind::Sine, OpKind::Cosine, OpKind::Cbrt, OpKind::Expm1, OpKind::Erf, OpKind::Power,
            OpKind::Atan2, OpKind::Sinh, OpKind::Cosh, OpKind::Asinh, OpKind::Fft, OpKind::FftOfPairs, OpKind::Cholesky,
            OpKind::TriangularSolve, OpKind::BatchNormTraining, OpKind::BatchNormInference, OpKind::BatchNormGrad,
            OpKind::Attention, OpKind::AttentionGrad};
        return kRounding.contains(op.kind);
    };
    for (const Op& op : function.ops) { // in the order in which they were made: operands come first
        bool isExact = !rounds(op);
        for (const ValueId operand : op.operands)
            isExact = isExact && exact[operand.at()];
        for (const BlockId body : op.bodies) {
            for (const OpId inside : function[body].ops)
                isExact = isExact && !rounds(function[inside]);
        }
        for (const ValueId result : op.results)
            exact[result.at()] = isExact;
    }
    std::vector<bool> results;
    for (const ValueId result : function.results())
        results.push_back(exact[result.at()]);
    return results;
}

/// Empty when it is sound, comes back from its text, and can be put on real numbers. What is run is what was read.
inline std::string prepare(Program program, Judged& judged)
{
    judged.program = std::move(program);
    if (const Problems problems = verify(judged.program); hasErrors(problems))
        return "unsound: " + describe(problems);
    auto read = readProgram(writeProgram(judged.program), "written");
    if (!read)
        return "cannot be read again: " + describe(read.error());
    if (const Problems problems = verify(*read); hasErrors(problems))
        return "unsound when read again: " + describe(problems);
    judged.real = *std::move(read);
    Function& function = judged.real.functions.front();
    if (hasComplexValues(function)) {
        auto pairs = withComplexPairs(function);
        if (!pairs)
            return "has no form on real numbers: " + describe(pairs.error());
        function = *std::move(pairs);
    }
    const Function& drawn = judged.program.functions.front();
    judged.arguments = argumentsFor(drawn);
    judged.isExact = exactResults(drawn);
    std::vector<Array> arguments;
    for (const HostArray& argument : judged.arguments)
        arguments.push_back({argument.type().shape, argument.values()});
    judged.expected = evaluatePlainly(drawn, arguments, judged.program.meshes);
    return {};
}

/// "" when a result is what is expected: to the last bit, or nearly so where numbers are rounded.
inline std::string differenceOf(const HostArray& got, const Array& expected, bool isExact)
{
    const std::vector<double> values = got.values();
    if (values.size() != expected.data.size())
        return fmt::format("{} elements instead of {}", values.size(), expected.data.size());
    double scale = 1;
    for (const double value : expected.data)
        scale = std::max(scale, std::isfinite(value) ? std::abs(value) : 0.0);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const bool isNear = values[i] == expected.data[i] || (std::isnan(values[i]) && std::isnan(expected.data[i]))
            || (!isExact && std::abs(values[i] - expected.data[i]) <= 2e-4 * scale);
        if (!isNear)
            return fmt::format("element {} of {}: {} instead of {}", i, typeText(got.type()), values[i], expected.data[i]);
    }
    return {};
}

inline std::string idsText(const Problems& problems)
{
    std::set<std::string> ids;
    for (const Problem& problem : problems) {
        if (problem.severity == Severity::Error)
            ids.insert(problem.id);
    }
    return fmt::format("{}", fmt::join(ids, " "));
}

/// Runs the first function of a device program on what the drawn one takes, and compares.
inline Verdict run(const Judged& judged, const DeviceStage& stage, const DeviceFunction& function, VirtualDevices& devices,
    std::vector<HostArray>* results = nullptr)
{
    const auto loaded = LoadedFunction::load(schedule(function, SchedulePolicy::Host), stage.meshes, devices);
    if (!loaded) {
        const std::string ids = idsText(loaded.error());
        return ids == "MW1501" ? Verdict{Verdict::Kind::Refused, ids} : fault("cannot be loaded: " + describe(loaded.error()));
    }
    for (std::size_t i = 0; i < judged.arguments.size(); ++i) {
        if (const auto written = (*loaded)->writeArgument(i, judged.arguments[i]); !written)
            return fault("cannot be given its arguments: " + describe(written.error()));
    }
    if (const auto done = (*loaded)->run(); !done)
        return fault("fails: " + describe(done.error()));
    for (std::size_t i = 0; i < judged.expected.size(); ++i) {
        const HostArray got = (*loaded)->readResult(i);
        if (const std::string wrong = differenceOf(got, judged.expected[i], judged.isExact[i]); !wrong.empty())
            return fault(fmt::format("result {}: {}", i, wrong));
        if (!(*loaded)->replicasAgree(i))
            return fault(fmt::format("the replicas of result {} differ", i));
        if (results != nullptr)
            results->push_back(got);
    }
    return {};
}

/// What partitioning gave, and whether it keeps what the program says.
struct OnShards {
    PartitionedProgram partitioned;
    Verdict verdict;

    const DeviceStage& stage() const { return partitioned.device.stages.front(); }
    const DeviceFunction& function() const { return stage().functions.front(); }
};

/// Which part of a dimension a device has, as a fraction of the whole.
inline std::pair<std::int64_t, std::int64_t> partOf(const DimSharding& dim, const Mesh& mesh, DeviceId device)
{
    std::int64_t position = 0;
    while (mesh.deviceAt(position) != device)
        ++position;
    return {shardIndex(position, dim.axes, mesh), shardCount(dim.axes)};
}

/// True when each device has what the declared sharding gives it; of open dimensions it may have less.
inline bool liesAs(const TensorSharding& got, const Mesh& mesh, const TensorSharding& declared, const Mesh& meant)
{
    for (std::size_t dim = 0; dim < declared.dims.size(); ++dim) {
        for (DeviceId device = 0; device < mesh.deviceCount() && !declared.dims[dim].open; ++device) {
            if (partOf(got.dims[dim], mesh, device) != partOf(declared.dims[dim], meant, device))
                return false;
        }
    }
    return true;
}

inline OnShards partitioned(const Judged& judged)
{
    auto made = propagateAndPartition(judged.real);
    if (!made)
        return {{}, {Verdict::Kind::Refused, idsText(made.error())}};
    OnShards on{*std::move(made), {}};
    if (const Problems problems = verify(on.function().function, on.stage().meshes); hasErrors(problems)) {
        on.verdict = fault("becomes unsound on shards: " + describe(problems));
        return on;
    }
    const Function& propagated = on.partitioned.propagated.functions.front();
    const std::vector<NamedMesh>& meshes = on.partitioned.propagated.meshes;
    const Function& drawn = judged.real.functions.front();
    for (std::size_t i = 0; i < drawn.resultShardings.size(); ++i) {
        const std::optional<TensorSharding>& declared = drawn.resultShardings[i];
        const ValueId result = on.function().function.results()[i];
        const std::optional<TensorSharding>& got = on.function().function[result].sharding;
        if (!declared || !got || drawn[drawn.results()[i]].type.elements() == 0)
            continue;
        const Mesh& meant = judged.real.meshes[static_cast<std::size_t>(declared->mesh)].mesh;
        const Mesh& mesh = on.stage().meshes[static_cast<std::size_t>(got->mesh)].mesh;
        if (!liesAs(*got, mesh, *declared, meant)) {
            on.verdict = fault(fmt::format(
                "result {} does not lie as declared: {} instead of {}", i, layoutText(*got, mesh), layoutText(*declared, meant)));
            return on;
        }
    }
    Function again = propagated;
    if (const auto report = propagate(again, meshes); !report) {
        on.verdict = fault("cannot be propagated again: " + describe(report.error()));
        return on;
    }
    for (std::size_t i = 0; i < std::min(again.values.size(), propagated.values.size()); ++i) {
        if (again.values[i].sharding != propagated.values[i].sharding) {
            on.verdict = fault(fmt::format("no fixed point: propagating again changes value {}", i));
            return on;
        }
    }
    return on;
}

/// Devices that fail when one of them waits in vain for so long.
inline std::unique_ptr<VirtualDevices> devicesFor(const DeviceStage& stage, double stallSeconds = 5)
{
    return valueOf(VirtualDevices::create(stage.mesh().deviceCount(), {.permits = 1, .stallSeconds = stallSeconds}));
}

/// The kind of fault that a text describes, without its numbers and details.
inline std::string kindOf(const std::string& text)
{
    std::string kind;
    for (const char c : text) {
        if (c == '\n' || (c == ':' && !text.starts_with("c"))) // "cannot ..", "crashed ..": what follows says more
            break;
        if (std::isdigit(static_cast<unsigned char>(c)) == 0)
            kind += c;
    }
    return kind.substr(0, 110);
}

/// What a program does.
inline Verdict verdictOf(Program program)
{
    Judged judged;
    if (std::string wrong = prepare(std::move(program), judged); !wrong.empty())
        return fault(std::move(wrong));
    const OnShards on = partitioned(judged);
    if (on.verdict.kind != Verdict::Kind::Right)
        return on.verdict;
    return run(judged, on.stage(), on.function(), *devicesFor(on.stage()));
}

/// Leaves out ops and arguments for as long as the rest still has a fault, and tries fewer devices.
inline Recipe shrunk(Recipe recipe, const std::function<bool(const Recipe&)>& isFaulty)
{
    const auto attempt = [&](std::vector<std::uint64_t> Recipe::*list) {
        bool changed = false;
        for (std::size_t i = (recipe.*list).size(); i-- > 0;) {
            Recipe smaller = recipe;
            (smaller.*list).erase((smaller.*list).begin() + static_cast<std::ptrdiff_t>(i));
            if (isFaulty(smaller)) {
                recipe = std::move(smaller);
                changed = true;
            }
        }
        return changed;
    };
    const auto size = [](const Recipe& r) {
        const std::vector<NamedMesh> meshes = drawMeshes(r.meshes);
        return meshes.front().mesh.deviceCount() * static_cast<std::int64_t>(meshes.size());
    };
    while (attempt(&Recipe::ops) || attempt(&Recipe::arguments)) { }
    for (std::uint64_t meshes = 0; meshes < 16; ++meshes) {
        Recipe other = recipe;
        other.meshes = meshes;
        if (size(other) < size(recipe) && isFaulty(other))
            recipe = other;
    }
    while (attempt(&Recipe::ops) || attempt(&Recipe::arguments)) { }
    return recipe;
}

/// The program without what no result needs, and with one result if that is enough.
inline Program shrunk(const Program& program, const std::function<bool(const Program&)>& isFaulty)
{
    Program small = program;
    const Function& whole = program.functions.front();
    std::vector<std::vector<std::size_t>> choices;
    for (std::size_t i = 0; i < whole.results().size(); ++i)
        choices.push_back({i});
    std::vector<std::size_t> all(whole.results().size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    choices.push_back(all);
    for (const std::vector<std::size_t>& results : choices) {
        small.functions.front() = restrictedTo(whole, results);
        if (isFaulty(small))
            return small;
    }
    return program;
}

} // namespace meshwright::tests
