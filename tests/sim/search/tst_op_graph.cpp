// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partition.h"
#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/support/resources.h"
#include "sim/collective/network_cost.h"
#include "sim/hardware/catalogue.h"
#include "sim/search/op_graph.h"
#include "sim/search/program_search.h"
#include "sim/search/wide_elimination.h"
#include "tests/seeds.h"
#include "tests/sim/search/oracles.h"
#include "tests/test_class.h"

#include <random>

namespace tst_op_graph {

using namespace meshwright;
using namespace meshwright::sim;
using namespace meshwright::tests;

/// Whole programs as choice graphs: generated graphs of ops, not only chains.
class TestOpGraph : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void equalsBruteForce_data();
    void equalsBruteForce();
    void equalsTheSolver_data();
    void equalsTheSolver();
    void moreMemoryIsNeverSlower_data();
    void moreMemoryIsNeverSlower();
    void relabelledAxes_data();
    void relabelledAxes();
    void assignmentsArePlans_data();
    void assignmentsArePlans();
    void knownOptimum();
    void loops();
    void search_data();
    void search();
    void problems();
};

namespace {

using Random = std::mt19937;

Machine machine(std::vector<std::int64_t> topology = {2, 2})
{
    static const Catalogue kCatalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    return valueOf(buildMachine(kCatalogue, {"v5e", std::move(topology)}));
}

/// A graph on a machine, with all that it refers to.
struct OnMachine {
    OnMachine(Function made, const std::string& meshText, const Machine& where = machine())
        : function(std::move(made))
        , mesh(valueOf(parseMesh(meshText)))
        , placement(valueOf(placeMesh(mesh, where)))
        , device(valueOf(DeviceCost::create(where, valueOf(costOptionsOf(where.chip)))))
        , network(placement)
        , graph(function, mesh, device, network)
    {
    }
    Function function;
    Mesh mesh;
    MeshPlacement placement;
    DeviceCost device;
    NetworkCost network;
    OpGraph graph;
};

/// Some products, sums, transposes and reductions over a few arrays, each used once or several times.
Function randomFunction(Random& random, int ops, std::int64_t size = 256)
{
    Function function;
    function.name = "main";
    Builder builder(function);
    std::vector<ValueId> values;
    for (int i = 0; i < 2; ++i)
        values.push_back(builder.argument({DType::F32, {size << random() % 2, size << random() % 2}}, "a" + std::to_string(i)));
    const auto pick = [&] { return values[random() % values.size()]; };
    for (int i = 0; i < ops; ++i) {
        const ValueId a = pick();
        const ValueId b = pick();
        const Shape left = builder.type(a).shape;
        const Shape right = builder.type(b).shape;
        switch (random() % 4) {
        case 0:
        case 1: {
            DotAttributes dot;
            for (std::size_t l = 0; l < 2 && dot.lhsContracting.empty(); ++l) {
                for (std::size_t r = 0; r < 2 && dot.lhsContracting.empty(); ++r) {
                    if (left[l] == right[r]) {
                        dot.lhsContracting = {l};
                        dot.rhsContracting = {r};
                    }
                }
            }
            if (!dot.lhsContracting.empty())
                values.push_back(builder.dot(a, b, dot));
            break;
        }
        case 2:
            values.push_back(left == right ? builder.binary(OpKind::Add, a, b) : builder.unary(OpKind::Tanh, a));
            break;
        default: {
            const ValueId row = builder.reduce(ReduceKind::Sum, a, {1});
            values.push_back(random() % 2 == 0 ? builder.transpose(a, {1, 0})
                                               : builder.binary(OpKind::Subtract, a, builder.broadcast(row, left, {0})));
            break;
        }
        }
    }
    builder.setResults({values.back()}, {"out"});
    return valueOf(withoutLayouts(function));
}

double assignmentsOf(const ChoiceGraph& graph)
{
    double count = 1.0;
    for (const auto& choices : graph.variables)
        count *= static_cast<double>(choices.size());
    return count;
}

Program programOf(Function function, const Mesh& mesh)
{
    Program program;
    program.meshes = {{"mesh", mesh}};
    program.functions = {std::move(function)};
    return program;
}

std::vector<std::uint32_t> randomChoices(Random& random, const ChoiceGraph& graph)
{
    std::vector<std::uint32_t> choices;
    for (const auto& own : graph.variables)
        choices.push_back(static_cast<std::uint32_t>(random() % own.size()));
    return choices;
}

} // namespace

void TestOpGraph::equalsBruteForce_data()
{
    tests::addSeeds({11, 12});
}

void TestOpGraph::equalsBruteForce()
{
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    int tried = 0;
    int joined = 0; // graphs with more edges than a tree
    while (tried < 1000) {
        const OnMachine one(randomFunction(random, 2 + static_cast<int>(random() % 4)), "x=4");
        const ChoiceGraph& graph = one.graph.graph();
        if (assignmentsOf(graph) > 3000.0 || graph.edges.empty())
            continue;
        ++tried;
        joined += graph.edges.size() >= graph.variables.size() ? 1 : 0;
        EliminationLimits limits;
        limits.labels = 100000;
        if (random() % 3 != 0)
            limits.budgetBytes = static_cast<double>(1 + random() % 12) * 256 * 256;
        const auto expected = bruteForce(graph, limits.budgetBytes);
        const EliminationResult result = eliminate(graph, limits);
        QVERIFY(result.exact);
        QCOMPARE(result.front.empty(), expected.empty());
        if (expected.empty())
            continue;
        QVERIFY(std::abs(result.front.front().seconds - expected.front().first) <= 1e-12 * expected.front().first);
        QVERIFY(result.lowerBoundSeconds <= expected.front().first * (1.0 + 1e-12));
        double parts = 0.0;
        for (const double seconds : one.graph.partsOf(result.front.front().choices))
            parts += seconds;
        QVERIFY(std::abs(parts - result.front.front().seconds) <= 1e-9 * parts);
        if (tried % 20 != 0)
            continue;
        WideLimits narrow;
        narrow.entries = 40;
        narrow.budgetBytes = limits.budgetBytes;
        const EliminationResult wide = eliminateWide(graph, narrow);
        QVERIFY(wide.lowerBoundSeconds <= expected.front().first * (1.0 + 1e-9));
        QVERIFY(wide.front.empty() || wide.front.front().seconds >= expected.front().first * (1.0 - 1e-9));
    }
    QVERIFY2(joined > 50, qPrintable(QString::number(joined)));
}

void TestOpGraph::equalsTheSolver_data()
{
    tests::addSeeds({12, 13});
}

void TestOpGraph::equalsTheSolver()
{
    if (Solver::program().isEmpty())
        QSKIP("cbc is not installed");
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    Solver solver;
    double expected = 0.0;
    for (int tried = 0; tried < 200; ++tried) {
        const OnMachine one(randomFunction(random, 6), "x=4");
        ChoiceGraph graph = one.graph.graph();
        for (auto& choices : graph.variables) {
            for (ChoiceCost& cost : choices)
                cost = {1e6 * cost.seconds, cost.bytes / 65536.0}; // as solvers like their figures
        }
        for (auto& edge : graph.edges) {
            for (double& seconds : edge.seconds)
                seconds *= 1e6;
        }
        const EliminationResult result = eliminate(graph);
        expected += result.front.front().seconds;
        solver.add(graph, std::numeric_limits<double>::infinity());
    }
    const auto optimum = solver.optimum();
    QVERIFY(optimum);
    QVERIFY2(std::abs(*optimum / expected - 1.0) < 1e-6, qPrintable(QString("%1 against %2").arg(*optimum).arg(expected)));
}

void TestOpGraph::moreMemoryIsNeverSlower_data()
{
    tests::addSeeds({13, 14});
}

void TestOpGraph::moreMemoryIsNeverSlower()
{
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    for (int i = 0; i < 10; ++i) {
        const OnMachine one(randomFunction(random, 8), "x=2,y=2");
        double before = std::numeric_limits<double>::infinity();
        for (double budget = 64 * 1024; budget < 16e6; budget *= 2.0) {
            EliminationLimits limits;
            limits.budgetBytes = budget;
            const EliminationResult result = eliminate(one.graph.graph(), limits);
            QVERIFY(result.lowerBoundSeconds <= before);
            before = result.lowerBoundSeconds;
        }
        QVERIFY(before < std::numeric_limits<double>::infinity());
    }
}

void TestOpGraph::relabelledAxes_data()
{
    tests::addSeeds({14, 15});
}

/// Names of axes mean nothing.
void TestOpGraph::relabelledAxes()
{
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    const Machine where = machine();
    const DeviceCost device = valueOf(DeviceCost::create(where, valueOf(costOptionsOf(where.chip))));
    const BytesThenStepsCost alike;
    for (int i = 0; i < 20; ++i) {
        const Function function = randomFunction(random, 5);
        std::vector<double> seconds;
        std::vector<double> bytes;
        for (const char* axes : {"x=2,y=4", "tensor=2,data=4", "b=2,a=4"}) {
            const Mesh mesh = valueOf(parseMesh(axes));
            const OpGraph graph(function, mesh, device, alike);
            const EliminationResult result = eliminate(graph.graph());
            seconds.push_back(result.front.front().seconds);
            bytes.push_back(graph.graph().variables.size() > 0 ? result.front.back().bytes : 0.0);
        }
        for (const std::size_t other : {1U, 2U}) {
            QCOMPARE(seconds[other], seconds[0]);
            QCOMPARE(bytes[other], bytes[0]);
        }
    }
}

void TestOpGraph::assignmentsArePlans_data()
{
    tests::addSeeds({15, 16});
}

/// Any assignment is a plan: it is partitioned as it stands, and its shards compute what the whole program does.
void TestOpGraph::assignmentsArePlans()
{
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    for (int i = 0; i < 60; ++i) {
        const OnMachine one(randomFunction(random, 5, 8), "x=2,y=2");
        const auto choices = randomChoices(random, one.graph.graph());
        const auto partitioned = propagateAndPartition(programOf(one.graph.annotated(choices), one.mesh));
        QVERIFY2(partitioned, partitioned ? "" : partitioned.error().front().message.c_str());
        const Function& whole = partitioned->propagated.functions.front();
        const auto& arguments = whole.arguments();
        for (std::size_t a = 0; a < arguments.size(); ++a)
            QCOMPARE(layoutText(*whole[arguments[a]].sharding, one.mesh), one.graph.specOf(one.function.arguments()[a], choices));
    }
}

/// Rows of a large batch through a small weight: the batch is split, nothing moves but the loss.
void TestOpGraph::knownOptimum()
{
    Function function;
    function.name = "main";
    Builder builder(function);
    const ValueId x = builder.argument({DType::F32, {8192, 512}}, "x");
    const ValueId w = builder.argument({DType::F32, {512, 512}}, "w");
    const ValueId y = builder.matmul(x, w, DType::BF16);
    builder.setResults({builder.reduce(ReduceKind::Sum, builder.unary(OpKind::Tanh, y), {0, 1})}, {"loss"});
    const OnMachine one(valueOf(withoutLayouts(function)), "x=4");
    const EliminationResult result = eliminate(one.graph.graph());
    const auto& choices = result.front.front().choices;
    QCOMPARE(QString::fromStdString(one.graph.specOf(x, choices)), QString("P('x',)"));
    QVERIFY(one.graph.specOf(w, choices).find("'x'") == std::string::npos);
    QCOMPARE(one.graph.partsOf(choices)[static_cast<std::size_t>(OpPart::Reshards)], 0.0);
    QVERIFY(one.graph.partsOf(choices)[static_cast<std::size_t>(OpPart::PartialSums)] > 0.0);
}

/// A loop's body is there once, whatever its count, and its seconds grow with the count.
void TestOpGraph::loops()
{
    std::vector<double> seconds;
    std::vector<std::size_t> variables;
    for (const std::int64_t count : {4, 8}) {
        Function function;
        function.name = "main";
        Builder builder(function);
        const ValueId x = builder.argument({DType::F32, {1024, 512}}, "x");
        const ValueId w = builder.argument({DType::F32, {count, 512, 512}}, "w");
        const OpId loop = builder.beginRepeat({count, 1, 1, false}, {x, w});
        const Block& body = function[function[loop].bodies.front()];
        const ValueId carry = body.arguments[0];
        const ValueId slice = body.arguments[1];
        builder.setBlock(function[loop].bodies.front());
        const ValueId next = builder.unary(OpKind::Tanh, builder.matmul(carry, slice, DType::F32));
        builder.setResults({next});
        builder.setResults(builder.endRepeat(loop), {"out"});
        const OnMachine one(valueOf(withoutLayouts(function)), "x=2,y=2");
        const EliminationResult result = eliminate(one.graph.graph());
        seconds.push_back(result.front.front().seconds);
        variables.push_back(one.graph.graph().variables.size());
        const auto partitioned = propagateAndPartition(programOf(one.graph.annotated(result.front.front().choices), one.mesh));
        QVERIFY2(partitioned, partitioned ? "" : partitioned.error().front().message.c_str());
    }
    QCOMPARE(variables[0], variables[1]);
    QVERIFY(seconds[1] > 1.5 * seconds[0]);
}

void TestOpGraph::search_data()
{
    tests::addSeeds({16, 17});
}

void TestOpGraph::search()
{
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    const Function function = randomFunction(random, 10);
    const Machine where = machine({4, 2});
    const Program program = programOf(function, Mesh());
    std::vector<SearchResult> results;
    for (const unsigned threads : {1U, 3U}) {
        SearchOptions options;
        options.threads = threads;
        results.push_back(
            valueOf(searchProgram({"random", program, "main", valueOf(costOptionsOf(where.chip))}, where, options)));
    }
    const SearchResult& result = results.front();
    QVERIFY(result.complete);
    QCOMPARE(result.plans.size(), std::size_t{4}); // one for each mesh of 8 devices
    QVERIFY(result.lowerBoundSeconds <= result.plans.front().modelSeconds);
    QVERIFY(!result.templates.empty());
    QVERIFY(!result.others.empty());
    QVERIFY(QString::fromStdString(result.plans.front().why.back()).contains("machine"));
    for (std::size_t i = 0; i < result.plans.size(); ++i) {
        QCOMPARE(result.plans[i].mesh, results[1].plans[i].mesh);
        QCOMPARE(result.plans[i].modelSeconds, results[1].plans[i].modelSeconds);
        QCOMPARE(result.plans[i].specs, results[1].plans[i].specs);
        QVERIFY(result.plans[i].program != nullptr);
    }
    for (std::size_t i = 1; i < result.front.size(); ++i)
        QVERIFY(result.front[i].modelSeconds >= result.front[i - 1].modelSeconds
            && result.front[i].peakBytes < result.front[i - 1].peakBytes);
    // Stopped before it began it has nothing, and says so.
    std::stop_source stop;
    stop.request_stop();
    SearchOptions stopped;
    stopped.stop = stop.get_token();
    const SearchResult none
        = valueOf(searchProgram({"random", program, "main", valueOf(costOptionsOf(where.chip))}, where, stopped));
    QVERIFY(!none.complete && none.plans.empty());
    QCOMPARE(orderedFactors(8, 2), (std::vector<std::vector<std::int64_t>>{{8}, {2, 4}, {4, 2}}));
    QCOMPARE(orderedFactors(1, 3), (std::vector<std::vector<std::int64_t>>{{1}}));
}

void TestOpGraph::problems()
{
    Function manual;
    manual.name = "main";
    Builder builder(manual);
    const ValueId x = builder.argument({DType::F32, {8}}, "x");
    CollectiveAttributes attributes;
    builder.setResults({builder.add(OpKind::AllReduce, {x}, attributes)});
    QCOMPARE(withoutLayouts(manual).error().front().id, std::string("MW1782"));
}

MESHWRIGHT_TEST(TestOpGraph)

} // namespace tst_op_graph

#include "tst_op_graph.moc"
