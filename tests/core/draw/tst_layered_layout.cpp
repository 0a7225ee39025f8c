// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/layered_layout.h"

#include "tests/test_class.h"

#include <QElapsedTimer>

#include <random>

namespace tst_layered_layout {

using namespace meshwright;

class TestLayeredLayout : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void nothing();
    void argumentsAreBesideTheirUses();
    void untanglesWhatCanBeUntangled();
    void ranksFollowTheEdges_data();
    void ranksFollowTheEdges();
    void nodesDoNotOverlap_data() { ranksFollowTheEdges_data(); }
    void nodesDoNotOverlap();
    void sameGraphSameLayout();
    void fiveThousandNodesInASecond();
};

namespace {

/// A chain with arguments and some edges far back, as a step with its backward pass has them.
LayeredGraph randomGraph(std::size_t nodes, unsigned seed)
{
    std::mt19937 random(seed);
    LayeredGraph graph;
    for (std::size_t node = 0; node < nodes; ++node) {
        graph.nodes.push_back({100.0 + static_cast<double>(random() % 80), 30.0 + static_cast<double>(random() % 50)});
        const std::size_t near = std::min<std::size_t>(node, 12);
        for (auto uses = node == 0 ? 0 : random() % 3; uses > 0; --uses)
            graph.edges.push_back({node - 1 - random() % near, node});
        if (node > 0 && random() % 10 == 0)
            graph.edges.push_back({random() % node, node});
    }
    return graph;
}

bool overlap(const LayeredGraph& graph, const LayeredLayout& layout, std::size_t a, std::size_t b)
{
    const auto within = [](double one, double oneSize, double other, double otherSize) {
        return one < other + otherSize - 1e-6 && other < one + oneSize - 1e-6;
    };
    return within(layout.topLefts[a].x, graph.nodes[a].width, layout.topLefts[b].x, graph.nodes[b].width)
        && within(layout.topLefts[a].y, graph.nodes[a].height, layout.topLefts[b].y, graph.nodes[b].height);
}

} // namespace

void TestLayeredLayout::nothing()
{
    const LayeredLayout layout = layeredLayout({});
    QCOMPARE(layout.topLefts.size(), std::size_t{0});
    QCOMPARE(layout.width, 0.0);
}

/// w1 is used by the second product: it belongs to the rank before it, not to the first.
void TestLayeredLayout::argumentsAreBesideTheirUses()
{
    LayeredGraph graph;
    graph.nodes.assign(5, {10.0, 10.0}); // x, w0, product, w1, product
    graph.edges = {{0, 2}, {1, 2}, {2, 4}, {3, 4}};
    QCOMPARE(layeredLayout(graph).ranks, (std::vector<int>{0, 0, 1, 1, 2}));
}

void TestLayeredLayout::untanglesWhatCanBeUntangled()
{
    LayeredGraph graph;
    graph.nodes.assign(6, {10.0, 10.0});
    graph.edges = {{0, 5}, {1, 4}, {2, 3}};
    const LayeredLayout layout = layeredLayout(graph);
    for (const auto& [from, to] : graph.edges)
        QCOMPARE(layout.topLefts[from].y, layout.topLefts[to].y);
}

void TestLayeredLayout::ranksFollowTheEdges_data()
{
    QTest::addColumn<int>("nodes");
    QTest::addColumn<unsigned>("seed");

    for (const int nodes : {1, 2, 10, 100, 600}) {
        for (const unsigned seed : {1U, 2U, 3U})
            QTest::addRow("%d nodes, seed %u", nodes, seed) << nodes << seed;
    }
}

void TestLayeredLayout::ranksFollowTheEdges()
{
    QFETCH(int, nodes);
    QFETCH(unsigned, seed);
    const LayeredGraph graph = randomGraph(static_cast<std::size_t>(nodes), seed);
    const LayeredLayout layout = layeredLayout(graph);
    QCOMPARE(layout.ways.size(), graph.edges.size());
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
        const auto [from, to] = graph.edges[i];
        QVERIFY(layout.ranks[from] < layout.ranks[to]);
        const auto& way = layout.ways[i];
        QVERIFY(way.size() >= 3);
        QVERIFY(std::is_sorted(way.begin(), way.end(), [](const Point& a, const Point& b) { return a.x < b.x; }));
        QCOMPARE(way.front().x, layout.topLefts[from].x + graph.nodes[from].width);
        QCOMPARE(way.back().x, layout.topLefts[to].x);
        QVERIFY(way.back().y > layout.topLefts[to].y && way.back().y < layout.topLefts[to].y + graph.nodes[to].height);
    }
}

void TestLayeredLayout::nodesDoNotOverlap()
{
    QFETCH(int, nodes);
    QFETCH(unsigned, seed);
    const LayeredGraph graph = randomGraph(static_cast<std::size_t>(nodes), seed);
    const LayeredLayout layout = layeredLayout(graph);
    for (std::size_t a = 0; a < graph.nodes.size(); ++a) {
        const Point at = layout.topLefts[a];
        QVERIFY(at.x >= 0.0 && at.x + graph.nodes[a].width <= layout.width + 1e-6);
        QVERIFY(at.y >= -1e-6 && at.y + graph.nodes[a].height <= layout.height + 1e-6);
        for (std::size_t b = a + 1; b < graph.nodes.size(); ++b)
            QVERIFY(!overlap(graph, layout, a, b));
    }
}

void TestLayeredLayout::sameGraphSameLayout()
{
    const LayeredGraph graph = randomGraph(300, 7);
    const LayeredLayout first = layeredLayout(graph);
    const LayeredLayout second = layeredLayout(graph);
    QCOMPARE(first.topLefts, second.topLefts);
    QCOMPARE(first.ways, second.ways);
}

void TestLayeredLayout::fiveThousandNodesInASecond()
{
    const LayeredGraph graph = randomGraph(5000, 1);
    QElapsedTimer timer;
    timer.start();
    const LayeredLayout layout = layeredLayout(graph);
    QCOMPARE(layout.topLefts.size(), std::size_t{5000});
#ifdef NDEBUG
    QVERIFY2(timer.elapsed() < 1000, qPrintable(QString::number(timer.elapsed()) + " ms"));
#endif
}

MESHWRIGHT_TEST(TestLayeredLayout)

} // namespace tst_layered_layout

#include "tst_layered_layout.moc"
