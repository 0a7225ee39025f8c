// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partition.h"
#include "core/program/verify.h"
#include "core/runtime/executor.h"
#include "core/text/program_text.h"
#include "tests/core/runtime/random_program.h"
#include "tests/core/runtime/runtime_test.h"
#include "tests/core/text/compare_programs.h"
#include "tests/rank_threads.h"

#include <QFile>
#include <QtTest>

using namespace meshwright;
using namespace meshwright::test;

namespace {

/// Why a recipe's program does not do what it should; empty when it does.
std::string faultOf(const Recipe& recipe)
{
    const Program program = RandomProgram(recipe).program();
    if (const Problems problems = verify(program); hasErrors(problems))
        return "unsound: " + describe(problems);

    const auto read = readProgram(writeProgram(program), "written");
    if (!read)
        return "cannot be read again: " + describe(read.error());
    if (const std::string difference = differenceOf(program, *read); !difference.empty())
        return "not the same after writing and reading: " + difference;

    auto partitioned = propagateAndPartition(program);
    if (!partitioned)
        return "cannot be partitioned: " + describe(partitioned.error());
    Function again = partitioned->propagated.functions.front();
    if (const auto report = propagate(again, partitioned->propagated.meshes); !report)
        return "cannot be propagated again: " + describe(report.error());
    for (std::size_t i = 0; i < again.values.size(); ++i) {
        if (i < partitioned->propagated.functions.front().values.size()
            && again.values[i].sharding != partitioned->propagated.functions.front().values[i].sharding)
            return fmt::format("no fixed point: propagating again changes value {}", i);
    }

    const Function& function = program.functions.front();
    std::vector<HostArray> arguments;
    for (const ValueId argument : function.arguments()) {
        std::vector<double> values = randomArray({DType::S32, function[argument].type.shape}, arguments.size() + 1).values();
        arguments.push_back(HostArray::of(function[argument].type, values));
    }
    const auto expected = evaluate(function, arguments);
    if (!expected)
        return "cannot be evaluated: " + describe(expected.error());

    const auto devices = valueOf(VirtualDevices::create(program.meshes.front().mesh.deviceCount()));
    const ScheduledProgram scheduled = schedule(partitioned->device, SchedulePolicy::Host);
    const auto loaded
        = LoadedFunction::load(scheduled.stages.front().functions.front(), scheduled.stages.front().meshes, *devices);
    if (!loaded)
        return "cannot be loaded: " + describe(loaded.error());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (const auto written = (*loaded)->writeArgument(i, arguments[i]); !written)
            return "cannot be given its arguments: " + describe(written.error());
    }
    if (const auto done = (*loaded)->run(); !done)
        return "fails: " + describe(done.error());
    for (std::size_t i = 0; i < expected->size(); ++i) {
        if (!(*loaded)->replicasAgree(i))
            return fmt::format("the replicas of result {} differ", i);
        // Numbers are small integers: exact in either type, in any order.
        if (const std::string wrong = difference((*loaded)->readResult(i), (*expected)[i].values(), 0.0); !wrong.empty())
            return fmt::format("result {}: {}", i, wrong);
    }
    return {};
}

/// The results of a recipe's program on devices that one process has, or several share; empty when it cannot be loaded or fails.
std::vector<HostArray> resultsOf(const Recipe& recipe, const std::shared_ptr<Ranks>& ranks)
{
    const Program program = RandomProgram(recipe).program();
    const auto partitioned = propagateAndPartition(program);
    const auto devices = VirtualDevices::create(program.meshes.front().mesh.deviceCount(), {.permits = 1, .ranks = ranks});
    if (!partitioned || !devices)
        return {};
    const ScheduledProgram scheduled = schedule(partitioned->device, SchedulePolicy::Host);
    const auto loaded
        = LoadedFunction::load(scheduled.stages.front().functions.front(), scheduled.stages.front().meshes, **devices);
    if (!loaded)
        return {};
    const Function& function = program.functions.front();
    for (std::size_t i = 0; i < function.arguments().size(); ++i) {
        const TensorType type = function[function.arguments()[i]].type;
        const std::vector<double> values = randomArray({DType::S32, type.shape}, i + 1).values();
        if (!(*loaded)->writeArgument(i, HostArray::of(type, values)))
            return {};
    }
    std::vector<HostArray> results;
    if (!(*loaded)->run())
        return results;
    for (std::size_t i = 0; i < function.results().size(); ++i)
        results.push_back((*loaded)->readResult(i));
    return results;
}

/// Leaves out arguments and ops for as long as the rest still has a fault.
Recipe shrunk(Recipe recipe)
{
    const auto attempt = [&](std::vector<std::uint64_t> Recipe::*list) {
        bool changed = false;
        for (std::size_t i = (recipe.*list).size(); i-- > 0;) {
            Recipe smaller = recipe;
            (smaller.*list).erase((smaller.*list).begin() + static_cast<std::ptrdiff_t>(i));
            if (!faultOf(smaller).empty()) {
                recipe = std::move(smaller);
                changed = true;
            }
        }
        return changed;
    };
    while (attempt(&Recipe::ops) || attempt(&Recipe::arguments)) { }
    return recipe;
}

} // namespace

/// Programs over the op set, on meshes of 1 to 12 devices, with shardings of all kinds: each is read as it was written, reaches a fixed point,
/// partitions, runs on devices, and gives what one device gives, to the last bit.
/// In the environment: MESHWRIGHT_RANDOM_PROGRAMS=10000 for a long run, MESHWRIGHT_RANDOM_FIRST the first seed.
class TestRandomPrograms : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void equalTheirUnshardedRun();
    void equalOverSeveralProcesses();
    void useTheWholeOpSet();
};

void TestRandomPrograms::equalTheirUnshardedRun()
{
    const bool isLong = qEnvironmentVariableIsSet("MESHWRIGHT_RANDOM_PROGRAMS");
    const int count = isLong ? qEnvironmentVariableIntValue("MESHWRIGHT_RANDOM_PROGRAMS") : 300;
    const int first = qEnvironmentVariableIntValue("MESHWRIGHT_RANDOM_FIRST");
    int faults = 0;
    for (int seed = first; seed < first + count && faults < 10; ++seed) {
        const Recipe recipe = randomRecipe(static_cast<std::uint64_t>(seed));
        if (faultOf(recipe).empty())
            continue;
        ++faults;
        const Recipe small = shrunk(recipe);
        const QString name = QString("random_program_%1.mlir").arg(seed);
        QFile file(name);
        if (file.open(QIODevice::WriteOnly))
            file.write(writeProgram(RandomProgram(small).program()).c_str());
        qWarning("seed %d: %s (%s)", seed, faultOf(small).c_str(), qPrintable(name));
    }
    QCOMPARE(faults, 0);
}

void TestRandomPrograms::equalOverSeveralProcesses()
{
    int compared = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const Recipe recipe = randomRecipe(seed);
        const std::int64_t devices = RandomProgram(recipe).program().meshes.front().mesh.deviceCount();
        const int count = seed % 2 == 0 ? 2 : 3;
        if (devices < count)
            continue;
        const std::vector<HostArray> alone = resultsOf(recipe, nullptr);
        QVERIFY2(!alone.empty(), fmt::format("seed {}", seed).c_str());
        QVERIFY2(tests::onRanks(count, [&](const std::shared_ptr<Ranks>& ranks) { return resultsOf(recipe, ranks) == alone; }),
            fmt::format("seed {}", seed).c_str());
        ++compared;
    }
    QVERIFY(compared > 30);
}

void TestRandomPrograms::useTheWholeOpSet()
{
    std::set<OpKind> seen;
    std::set<std::string> seenKept;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const Program program = RandomProgram(randomRecipe(seed)).program();
        for (const Op& op : program.functions.front().ops) {
            if (const auto* other = std::get_if<OtherAttributes>(&op.attributes))
                seenKept.insert(other->name);
            else
                seen.insert(op.kind);
        }
    }
    for (const OpKind kind : {OpKind::Constant, OpKind::Iota, OpKind::Negate, OpKind::Add, OpKind::Select, OpKind::BroadcastInDim,
             OpKind::Reshape, OpKind::Transpose, OpKind::Reduce, OpKind::DotGeneral, OpKind::Slice, OpKind::Pad, OpKind::Concatenate,
             OpKind::Reverse, OpKind::DynamicSlice, OpKind::DynamicUpdateSlice, OpKind::Gather, OpKind::Scatter, OpKind::ShardingConstraint,
             OpKind::Repeat, OpKind::While, OpKind::Case})
        QVERIFY2(seen.contains(kind), opName(kind));
    for (const char* name : {"stablehlo.sort", "stablehlo.convolution", "stablehlo.reduce_window"})
        QVERIFY2(seenKept.contains(name), name);
}

QTEST_APPLESS_MAIN(TestRandomPrograms)
#include "tst_random_programs.moc"
