// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/builder.h"
#include "core/program/data_flow.h"

#include "tests/test_class.h"
#include "tests/values.h"

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/topological_sort.hpp>

namespace tst_data_flow {

using namespace meshwright;

BOOST_CONCEPT_ASSERT((boost::BidirectionalGraphConcept<DataFlow>));
BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<DataFlow>));

namespace {

constexpr BlockId kBody{std::int32_t{0}};

/// A diamond: 0 exp x, 1 tanh of it, 2 negate of it, 3 the product of both; 4 sine x stands alone.
Function diamond()
{
    Function f;
    Builder b(f);
    const ValueId x = b.argument({DType::F32, {2}}, "x");
    const ValueId e = b.unary(OpKind::Exp, x);
    const ValueId t = b.unary(OpKind::Tanh, e);
    const ValueId n = b.unary(OpKind::Negate, e);
    const ValueId product = b.binary(OpKind::Multiply, t, n);
    b.setResults({product, b.unary(OpKind::Sine, x)});
    return f;
}

} // namespace

class TestDataFlow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void edges();
    void parallelEdges();
    void boostAlgorithms();
    void criticalPaths_data();
    void criticalPaths();
    void emptyBlock();
};

void TestDataFlow::edges()
{
    const Function f = diamond();
    const DataFlow graph(f, kBody);
    QCOMPARE(graph.size(), std::size_t{5});
    QCOMPARE(out_degree(0, graph), std::size_t{2});
    QCOMPARE(in_degree(0, graph), std::size_t{0}); // arguments are no vertices
    QCOMPARE(in_degree(3, graph), std::size_t{2});
    QCOMPARE(degree(4, graph), std::size_t{0});
    const DataFlow::Edge edge = graph.in(3).front();
    QCOMPARE(source(edge, graph), std::size_t{1});
    QVERIFY(f[f[edge.value].producer].kind == OpKind::Tanh);
    QCOMPARE(target(edge, graph), std::size_t{3});
    QVERIFY(f[graph.op(4)].kind == OpKind::Sine);
}

void TestDataFlow::parallelEdges()
{
    Function f;
    Builder b(f);
    const ValueId e = b.unary(OpKind::Exp, b.argument({DType::F32, {2}}));
    b.setResults({b.binary(OpKind::Multiply, e, e)});
    const DataFlow graph(f, kBody);
    QCOMPARE(out_degree(0, graph), std::size_t{2});
}

void TestDataFlow::boostAlgorithms()
{
    const Function f = diamond();
    const DataFlow graph(f, kBody);
    std::vector<std::size_t> order;
    boost::topological_sort(graph, std::back_inserter(order), boost::vertex_index_map(boost::identity_property_map()));
    QCOMPARE(order.size(), std::size_t{5});
    std::vector<std::size_t> place(5);
    for (std::size_t i = 0; i < order.size(); ++i)
        place[order[i]] = order.size() - i;
    for (std::size_t v = 0; v < graph.size(); ++v) {
        for (const DataFlow::Edge& edge : graph.out(v))
            QVERIFY(place[edge.source] < place[edge.target]);
    }
    std::vector<int> distance(5, -1);
    distance[0] = 0;
    const auto recorder = boost::make_bfs_visitor(boost::record_distances(distance.data(), boost::on_tree_edge()));
    boost::breadth_first_search(graph, std::size_t{0}, boost::visitor(recorder).vertex_index_map(boost::identity_property_map()));
    QCOMPARE(distance, (std::vector<int>{0, 1, 1, 2, -1}));
}

void TestDataFlow::criticalPaths_data()
{
    QTest::addColumn<std::vector<double>>("cost");
    QTest::addColumn<double>("total");
    QTest::addColumn<std::vector<std::size_t>>("path");

    QTest::newRow("through tanh") << std::vector<double>{1, 5, 2, 1, 0} << 7.0 << std::vector<std::size_t>{0, 1, 3};
    QTest::newRow("through negate") << std::vector<double>{1, 2, 5, 1, 0} << 7.0 << std::vector<std::size_t>{0, 2, 3};
    QTest::newRow("alone") << std::vector<double>{1, 1, 1, 1, 9} << 9.0 << std::vector<std::size_t>{4};
}

void TestDataFlow::criticalPaths()
{
    QFETCH(std::vector<double>, cost);
    QFETCH(double, total);
    QFETCH(std::vector<std::size_t>, path);
    const Function f = diamond();
    const auto found = criticalPath(DataFlow(f, kBody), cost);
    QCOMPARE(found.first, total);
    QCOMPARE(found.second, path);
}

void TestDataFlow::emptyBlock()
{
    Function f;
    Builder b(f);
    b.setResults({});
    const auto found = criticalPath(DataFlow(f, kBody), {});
    QCOMPARE(found.first, 0.0);
    QVERIFY(found.second.empty());
}

MESHWRIGHT_TEST(TestDataFlow)

} // namespace tst_data_flow

#include "tst_data_flow.moc"
