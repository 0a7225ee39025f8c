// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/elimination.h"

#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QtTest>

#include <cmath>
#include <numeric>
#include <random>

using namespace meshwright::sim;

/// Variable elimination against trying everything, and against an integer programming solver where there is one.
class TestElimination : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void equalsBruteForce();
    void boundIsNeverAbove();
    void moreMemoryIsNeverSlower();
    void namesDoNotMatter();
    void edges();
    void longChain();
    void equalsTheSolver();
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

/// Every assignment within the budget that no other beats: (seconds, bytes), the quickest first.
std::vector<std::pair<double, double>> bruteForce(const ChoiceGraph& graph, double budget)
{
    std::vector<std::pair<double, double>> all;
    std::vector<std::uint32_t> choices(graph.variables.size(), 0);
    while (true) {
        const Assignment one = costOf(graph, choices);
        if (one.seconds < kInfinite && one.bytes <= budget)
            all.emplace_back(one.seconds, one.bytes);
        std::size_t at = 0;
        while (at < choices.size() && ++choices[at] == graph.variables[at].size())
            choices[at++] = 0;
        if (at == choices.size())
            break;
    }
    std::sort(all.begin(), all.end());
    std::vector<std::pair<double, double>> front;
    for (const auto& point : all) {
        if (front.empty() || point.second < front.back().second)
            front.push_back(point);
    }
    return front;
}

} // namespace

void TestElimination::equalsBruteForce()
{
    Random random(1);
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

void TestElimination::boundIsNeverAbove()
{
    Random random(2);
    int capped = 0;
    int feasible = 0;
    double shares = 0.0;
    for (int i = 0; i < 80; ++i) {
        const ChoiceGraph graph = randomGraph(random, 5 + random() % 2, 4, 0.3);
        EliminationLimits limits;
        limits.labels = 2;
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
    }
    QVERIFY(capped > 10);
    QVERIFY2(shares > 0.6 * feasible, qPrintable(QString("%1 of %2").arg(shares).arg(feasible)));
}

void TestElimination::moreMemoryIsNeverSlower()
{
    Random random(3);
    const ChoiceGraph graph = randomGraph(random, 10, 4, 0.25);
    double before = kInfinite;
    for (double budget = 0.0; budget < 500.0; budget += 10.0) {
        EliminationLimits limits;
        limits.budgetBytes = budget;
        const EliminationResult result = eliminate(graph, limits);
        QVERIFY(result.lowerBoundSeconds <= before);
        before = result.lowerBoundSeconds;
    }
    QVERIFY(before < kInfinite);
}

void TestElimination::namesDoNotMatter()
{
    Random random(4);
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
    Random random(5);
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

/// Three hundred layers in a row: the work grows with their number, not with the number of assignments.
void TestElimination::longChain()
{
    Random random(6);
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

/// 200 graphs against COIN-OR's cbc, where it is installed.
void TestElimination::equalsTheSolver()
{
    const QString solver = QStandardPaths::findExecutable("cbc");
    if (solver.isEmpty())
        QSKIP("cbc is not installed");
    Random random(7);
    QTemporaryDir folder;
    // One file of all graphs: independent blocks, whose optima add up.
    QString objective = "Minimize\n obj: 0 zero";
    QString rows = "\nSubject To\n fixed: zero = 0\n";
    QString binaries = "\nBinary\n";
    double expected = 0.0;
    int solved = 0;
    for (int g = 0; solved < 200; ++g) {
        const ChoiceGraph graph = randomGraph(random, 4 + random() % 5, 3, 0.35);
        EliminationLimits limits;
        limits.labels = 100000;
        limits.budgetBytes = static_cast<double>(80 + random() % 120);
        const EliminationResult result = eliminate(graph, limits);
        if (result.front.empty())
            continue;
        ++solved;
        expected += result.front.front().seconds;
        const auto name = [&](std::size_t v, std::size_t c) { return QString("s%1_%2_%3").arg(g).arg(v).arg(c); };
        QString bytes;
        for (std::size_t v = 0; v < graph.variables.size(); ++v) {
            QString one;
            for (std::size_t c = 0; c < graph.variables[v].size(); ++c) {
                objective += QString("\n + %1 %2").arg(graph.variables[v][c].seconds).arg(name(v, c));
                bytes += QString(" + %1 %2").arg(graph.variables[v][c].bytes).arg(name(v, c));
                one += " + " + name(v, c);
                binaries += ' ' + name(v, c) + '\n';
            }
            rows += one + " = 1\n";
        }
        rows += bytes + QString(" <= %1\n").arg(limits.budgetBytes);
        for (std::size_t e = 0; e < graph.edges.size(); ++e) {
            const auto& edge = graph.edges[e];
            const std::size_t width = graph.variables[edge.to].size();
            const auto pair = [&](std::size_t p, std::size_t q) { return QString("e%1_%2_%3_%4").arg(g).arg(e).arg(p).arg(q); };
            for (std::size_t p = 0; p < graph.variables[edge.from].size(); ++p) {
                QString row;
                for (std::size_t q = 0; q < width; ++q) {
                    const double seconds = edge.seconds[p * width + q];
                    if (seconds == kInfinite)
                        rows += ' ' + pair(p, q) + " = 0\n";
                    else
                        objective += QString("\n + %1 %2").arg(seconds).arg(pair(p, q));
                    row += " + " + pair(p, q);
                }
                rows += row + " - " + name(edge.from, p) + " = 0\n";
            }
            for (std::size_t q = 0; q < width; ++q) {
                QString column;
                for (std::size_t p = 0; p < graph.variables[edge.from].size(); ++p)
                    column += " + " + pair(p, q);
                rows += column + " - " + name(edge.to, q) + " = 0\n";
            }
        }
    }
    QFile file(folder.filePath("graphs.lp"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write((objective + rows + binaries + "End\n").toUtf8());
    file.close();
    QProcess process;
    process.start(solver, {file.fileName(), "ratio", "0", "allow", "0", "solve", "solution", folder.filePath("solution.txt")});
    QVERIFY(process.waitForFinished(60'000));
    QFile solution(folder.filePath("solution.txt"));
    QVERIFY(solution.open(QIODevice::ReadOnly));
    const QString first = solution.readLine(); // "Optimal - objective value 1234.00000000"
    QVERIFY2(first.startsWith("Optimal"), qPrintable(first));
    QVERIFY2(std::abs(first.section(' ', -1).trimmed().toDouble() - expected) < 1e-3 * 1.0,
        qPrintable(first + QString::number(expected)));
}

QTEST_APPLESS_MAIN(TestElimination)
#include "tst_elimination.moc"
