// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/elimination.h"
#include "sim/search/wide_elimination.h"
#include "tests/seeds.h"
#include "tests/sim/search/oracles.h"
#include "tests/test_class.h"

#include <cmath>
#include <numeric>
#include <random>

namespace tst_elimination {

using namespace meshwright::sim;
using namespace meshwright::tests;

/// Variable elimination against trying everything, and against an integer programming solver where there is one.
class TestElimination : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void equalsBruteForce_data();
    void equalsBruteForce();
    void boundIsNeverAbove_data();
    void boundIsNeverAbove();
    void moreMemoryIsNeverSlower_data();
    void moreMemoryIsNeverSlower();
    void namesDoNotMatter_data();
    void namesDoNotMatter();
    void edges_data();
    void edges();
    void longChain_data();
    void longChain();
    void equalsTheSolver_data();
    void equalsTheSolver();
    void wideGraphs_data();
    void wideGraphs();
};

namespace {

using Random = std::mt19937;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

ChoiceGraph randomGraph(Random& random, std::size_t variables, std::size_t choices, double density)
{
    ChoiceGraph graph;
    for (std::size_t i = 0; i < variables; ++i) {
        auto& own = graph.variables.emplace_back();
        const std::size_t count = 1 + random() % choices;
        for (std::size_t choice = 0; choice < count; ++choice)
            own.push_back({static_cast<double>(random() % 100), static_cast<double>(random() % 50)});
    }
    for (std::size_t a = 0; a < variables; ++a) {
        for (std::size_t b = a + 1; b < variables; ++b) {
            if (static_cast<double>(random() % 1000) >= 1000.0 * density)
                continue;
            const bool turned = random() % 2 == 0;
            ChoiceGraph::Edge edge{turned ? b : a, turned ? a : b, {}};
            for (std::size_t i = 0; i < graph.variables[a].size() * graph.variables[b].size(); ++i)
                edge.seconds.push_back(random() % 12 == 0 ? kInfinite : static_cast<double>(random() % 60));
            graph.edges.push_back(std::move(edge));
        }
    }
    return graph;
}

} // namespace

void TestElimination::equalsBruteForce_data()
{
    addSeeds({1, 2});
}

void TestElimination::equalsBruteForce()
{
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    for (int i = 0; i < 1000; ++i) {
        const ChoiceGraph graph = randomGraph(random, 1 + random() % 6, 4, 0.2 + 0.1 * static_cast<double>(random() % 7));
        EliminationLimits limits;
        if (random() % 3 != 0)
            limits.budgetBytes = static_cast<double>(random() % 150);
        limits.labels = 100000;
        const EliminationResult result = eliminate(graph, limits);
        const auto expected = bruteForce(graph, limits.budgetBytes);
        QVERIFY(result.exact);
        QCOMPARE(result.front.size(), expected.size());
        for (std::size_t point = 0; point < expected.size(); ++point) {
            QCOMPARE(result.front[point].seconds, expected[point].first);
            QCOMPARE(result.front[point].bytes, expected[point].second);
        }
        QCOMPARE(result.lowerBoundSeconds, expected.empty() ? kInfinite : expected.front().first);
    }
}

void TestElimination::boundIsNeverAbove_data()
{
    addSeeds({2, 3});
}

void TestElimination::boundIsNeverAbove()
{
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    int capped = 0;
    int feasible = 0;
    double shares = 0.0;
    for (int i = 0; i < 80; ++i) {
        const ChoiceGraph graph = randomGraph(random, 5 + random() % 2, 4, 0.3);
        EliminationLimits limits;
        limits.labels = 2;
        if (i % 4 != 0)
            limits.budgetBytes = static_cast<double>(60 + random() % 100);
        const EliminationResult result = eliminate(graph, limits);
        const auto expected = bruteForce(graph, limits.budgetBytes);
        if (expected.empty())
            continue;
        capped += result.exact ? 0 : 1;
        QVERIFY(result.lowerBoundSeconds <= expected.front().first + 1e-9);
        ++feasible;
        shares += expected.front().first > 0.0 ? result.lowerBoundSeconds / expected.front().first : 1.0;
        for (const Assignment& found : result.front)
            QVERIFY(found.seconds >= expected.front().first && found.bytes <= limits.budgetBytes);
        // Whatever is dropped, what needs the least memory is found: the answer is never that nothing fits where something does.
        QVERIFY(!result.front.empty());
        QCOMPARE(result.front.back().bytes, expected.back().second);
    }
    QVERIFY(capped > 10);
    QVERIFY2(shares > 0.6 * feasible, qPrintable(QString("%1 of %2").arg(shares).arg(feasible)));
}

void TestElimination::moreMemoryIsNeverSlower_data()
{
    addSeeds({3, 4});
}

void TestElimination::moreMemoryIsNeverSlower()
{
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    const ChoiceGraph graph = randomGraph(random, 10, 4, 0.25);
    double before = kInfinite;
    for (double budget = 0.0; budget < 500.0; budget += 10.0) {
        EliminationLimits limits;
        limits.budgetBytes = budget;
        const EliminationResult result = eliminate(graph, limits);
        QVERIFY(result.lowerBoundSeconds <= before);
        before = result.lowerBoundSeconds;
    }
    QVERIFY(before == eliminate(graph, {}).lowerBoundSeconds); // all plans fit the largest budget, if there is one at all
}

void TestElimination::namesDoNotMatter_data()
{
    addSeeds({4, 5});
}

void TestElimination::namesDoNotMatter()
{
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    for (int i = 0; i < 50; ++i) {
        const ChoiceGraph graph = randomGraph(random, 8, 3, 0.3);
        std::vector<std::size_t> order(graph.variables.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::shuffle(order.begin(), order.end(), random);
        ChoiceGraph other;
        other.variables.resize(graph.variables.size());
        for (std::size_t variable = 0; variable < order.size(); ++variable)
            other.variables[order[variable]] = graph.variables[variable];
        for (const auto& edge : graph.edges)
            other.edges.push_back({order[edge.from], order[edge.to], edge.seconds});
        const EliminationResult a = eliminate(graph);
        const EliminationResult b = eliminate(other);
        QCOMPARE(a.front.size(), b.front.size());
        for (std::size_t point = 0; point < a.front.size(); ++point) {
            QCOMPARE(a.front[point].seconds, b.front[point].seconds);
            QCOMPARE(a.front[point].bytes, b.front[point].bytes);
        }
    }
}

void TestElimination::edges_data()
{
    addSeeds({5, 6});
}

void TestElimination::edges()
{
    QVERIFY(eliminate({}).exact);
    QCOMPARE(eliminate({}).front.size(), std::size_t{1}); // nothing to choose costs nothing
    // Two edges between the same two add up; one that allows nothing leaves nothing.
    ChoiceGraph pair{{{{1.0, 0.0}, {2.0, 0.0}}, {{1.0, 0.0}}}, {{0, 1, {5.0, 1.0}}, {1, 0, {5.0, 1.0}}}};
    QCOMPARE(eliminate(pair).front.front().seconds, 5.0);
    pair.edges.push_back({0, 1, {kInfinite, kInfinite}});
    QVERIFY(eliminate(pair).front.empty());
    // Eight variables that all meet need a table of 4^7.
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    ChoiceGraph dense;
    for (int i = 0; i < 8; ++i)
        dense.variables.push_back(std::vector<ChoiceCost>(4));
    for (std::size_t a = 0; a < 8; ++a) {
        for (std::size_t b = a + 1; b < 8; ++b)
            dense.edges.push_back({a, b, std::vector<double>(16, 1.0)});
    }
    EliminationLimits narrow;
    narrow.entries = 1000;
    QVERIFY(eliminate(dense, narrow).tooWide);
    QCOMPARE(eliminate(dense).front.front().seconds, 28.0);
}

void TestElimination::longChain_data()
{
    addSeeds({6, 7});
}

/// Three hundred layers in a row: the work grows with their number, not with the number of assignments.
void TestElimination::longChain()
{
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    ChoiceGraph chain;
    for (std::size_t i = 0; i < 300; ++i) {
        chain.variables.push_back({{1.0, 3.0}, {2.0, 1.0}, {4.0, 0.0}});
        if (i > 0)
            chain.edges.push_back({i - 1, i, {0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0}});
    }
    EliminationLimits limits;
    limits.labels = 8;
    limits.budgetBytes = 300.0;
    const EliminationResult result = eliminate(chain, limits);
    QVERIFY(!result.front.empty());
    QVERIFY(result.lowerBoundSeconds <= result.front.front().seconds);
    QVERIFY((result.front.front().seconds - result.lowerBoundSeconds) / result.front.front().seconds < 0.01);
}

void TestElimination::equalsTheSolver_data()
{
    addSeeds({7, 8});
}

/// 200 graphs against COIN-OR's cbc, where it is installed.
void TestElimination::equalsTheSolver()
{
    if (Solver::program().isEmpty())
        QSKIP("cbc is not installed");
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    Solver solver;
    double expected = 0.0;
    for (int solved = 0; solved < 200;) {
        const ChoiceGraph graph = randomGraph(random, 4 + random() % 5, 3, 0.35);
        EliminationLimits limits;
        limits.labels = 100000;
        limits.budgetBytes = static_cast<double>(80 + random() % 120);
        const EliminationResult result = eliminate(graph, limits);
        if (result.front.empty())
            continue;
        ++solved;
        expected += result.front.front().seconds;
        solver.add(graph, limits.budgetBytes);
    }
    const auto optimum = solver.optimum();
    QVERIFY(optimum);
    QVERIFY2(std::abs(*optimum - expected) < 1e-3, qPrintable(QString("%1 against %2").arg(*optimum).arg(expected)));
}

void TestElimination::wideGraphs_data()
{
    addSeeds({8, 9});
}

/// Tables that are too wide: the bound stays below what there is, the assignment above, and both meet often.
void TestElimination::wideGraphs()
{
    QFETCH(quint64, seed);
    Random random(static_cast<std::mt19937::result_type>(seed));
    int met = 0;
    for (int i = 0; i < 150; ++i) {
        const ChoiceGraph graph = randomGraph(random, 6 + random() % 2, 3, 0.8);
        WideLimits limits;
        limits.entries = 27;
        if (random() % 2 == 0)
            limits.budgetBytes = static_cast<double>(80 + random() % 150);
        const auto expected = bruteForce(graph, limits.budgetBytes);
        const EliminationResult result = eliminateWide(graph, limits);
        if (expected.empty()) {
            QVERIFY(result.front.empty());
            continue;
        }
        QVERIFY(result.lowerBoundSeconds <= expected.front().first + 1e-9);
        if (result.front.empty())
            continue; // a heuristic under a budget may miss what there is
        QVERIFY(result.front.front().seconds >= expected.front().first - 1e-9);
        QVERIFY(result.front.front().bytes <= limits.budgetBytes);
        QCOMPARE(costOf(graph, result.front.front().choices).seconds, result.front.front().seconds);
        met += result.front.front().seconds <= expected.front().first + 1e-9 ? 1 : 0;
        QVERIFY(!result.exact || result.front.front().seconds <= expected.front().first + 1e-9);
    }
    QVERIFY2(met > 60, qPrintable(QString::number(met)));
}

MESHWRIGHT_TEST(TestElimination)

} // namespace tst_elimination

#include "tst_elimination.moc"
