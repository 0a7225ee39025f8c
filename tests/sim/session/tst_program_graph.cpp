// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/program_graph.h"

#include "core/study/program_study.h"
#include "core/support/file.h"
#include "tests/test_class.h"

namespace tst_program_graph {

using namespace meshwright;

class TestProgramGraph : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void edgesMakeNoCycle_data();
    void edgesMakeNoCycle();
    void everyCollectiveHasANode_data() { edgesMakeNoCycle_data(); }
    void everyCollectiveHasANode();
    void collectivesAreThoseOfTheStep_data() { edgesMakeNoCycle_data(); }
    void collectivesAreThoseOfTheStep();
    void aReductionStandsBehindItsProduct();
    void loopsOpen();
    void roundsLeadToTheShardings_data() { edgesMakeNoCycle_data(); }
    void roundsLeadToTheShardings();
    void selectionIsLit();

private:
    std::shared_ptr<const sim::Analysis> analysed(const std::string& file, const std::vector<std::string>& settings = {});
    std::unique_ptr<sim::Session> m_session;
};

namespace {

sim::ProgramGraph graphOf(const std::shared_ptr<const sim::Analysis>& analysis, const std::set<OpId>& opened = {})
{
    const auto step = analysis->simulated ? analysis->simulated->simulation.collectives : std::vector<sim::SimulatedCollective>();
    return sim::programGraph(analysis, opened, step);
}

std::size_t countOf(const sim::ProgramGraph& graph, GraphNodeKind kind)
{
    return static_cast<std::size_t>(
        std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const sim::ProgramNode& node) { return node.kind == kind; }));
}

/// Every op that has a body.
std::set<OpId> withBodies(const Function& function)
{
    std::set<OpId> found;
    for (const Block& block : function.blocks) {
        for (const OpId op : block.ops) {
            if (!function[op].bodies.empty())
                found.insert(op);
        }
    }
    return found;
}

} // namespace

void TestProgramGraph::initTestCase()
{
    m_session = std::make_unique<sim::Session>(valueOf(sim::defaultCatalogue()));
}

std::shared_ptr<const sim::Analysis> TestProgramGraph::analysed(const std::string& file, const std::vector<std::string>& settings)
{
    std::string path = MESHWRIGHT_SOURCE_DIR "/resources/examples/" + file;
    std::string text = valueOf(readFile(path));
    if (file.ends_with(".mlir")) { // as the window opens it
        text = valueOf(programStudyText(path, text));
        path = std::filesystem::path(path).replace_extension(".yaml").string();
    }
    return m_session->analyse({text, path, settings});
}

void TestProgramGraph::edgesMakeNoCycle_data()
{
    QTest::addColumn<QString>("file");

    for (const char* file : {"notebook_mlp.yaml", "fsdp.yaml", "tensor_parallel.yaml", "two_d.yaml", "transformer_digits.yaml",
             "three_d.yaml", "sequence_parallel_transformer.yaml", "matmul.mlir", "mlp.mlir"})
        QTest::newRow(file) << file;
}

void TestProgramGraph::edgesMakeNoCycle()
{
    QFETCH(QString, file);
    const auto analysis = analysed(file.toStdString());
    QVERIFY2(analysis->built != nullptr, describe(analysis->problems).c_str());
    const sim::ProgramGraph closed = graphOf(analysis);
    for (const sim::ProgramGraph& graph : {closed, graphOf(analysis, withBodies(*closed.function))}) {
        QVERIFY(!graph.nodes.empty() && !graph.edges.empty());
        const GraphDrawing drawing = sim::graphDrawing(graph);
        const LayeredLayout layout = graphLayout(drawing); // which asserts that there is none
        for (const sim::ProgramEdge& edge : graph.edges)
            QVERIFY(layout.ranks[edge.from] < layout.ranks[edge.to]);
    }
}

/// Once all loops are open. Each is between others: nothing that moves comes from nowhere.
void TestProgramGraph::everyCollectiveHasANode()
{
    QFETCH(QString, file);
    const auto analysis = analysed(file.toStdString());
    const sim::ProgramGraph graph = graphOf(analysis, withBodies(*graphOf(analysis).function));
    QCOMPARE(countOf(graph, GraphNodeKind::Collective), graph.collectives.size());
    for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
        if (graph.nodes[node].kind != GraphNodeKind::Collective)
            continue;
        QVERIFY2(
            std::any_of(graph.edges.begin(), graph.edges.end(), [&](const sim::ProgramEdge& edge) { return edge.to == node; }),
            graph.collectives[graph.nodes[node].collective].use.cause.reason.c_str());
    }
}

void TestProgramGraph::collectivesAreThoseOfTheStep()
{
    QFETCH(QString, file);
    const auto analysis = analysed(file.toStdString());
    if (!analysis->simulated)
        QSKIP("a program without hardware");
    const sim::ProgramGraph graph = graphOf(analysis);
    QCOMPARE(graph.collectives.size(), analysis->simulated->simulation.collectives.size());
    const std::set<int> places(graph.stepCollective.begin(), graph.stepCollective.end());
    QCOMPARE(places.size(), graph.collectives.size());
    QVERIFY(places.count(-1) == 0);
}

/// A gradient sums over the batch, which data splits: each device has a part of the sum.
void TestProgramGraph::aReductionStandsBehindItsProduct()
{
    const auto analysis = analysed("data_parallel.yaml");
    const sim::ProgramGraph graph = graphOf(analysis);
    const auto reduction = std::find_if(graph.nodes.begin(), graph.nodes.end(),
        [](const sim::ProgramNode& node) { return node.kind == GraphNodeKind::Collective; });
    QVERIFY(reduction != graph.nodes.end());
    const auto index = static_cast<std::size_t>(reduction - graph.nodes.begin());
    const auto into
        = std::find_if(graph.edges.begin(), graph.edges.end(), [&](const sim::ProgramEdge& edge) { return edge.to == index; });
    QVERIFY(into != graph.edges.end());
    const OpKind maker = (*graph.function)[graph.nodes[into->from].op].kind;
    QVERIFY2(maker == OpKind::DotGeneral || maker == OpKind::Reduce, "made by another op");
}

void TestProgramGraph::loopsOpen()
{
    const auto analysis = analysed("transformer_digits.yaml");
    const sim::ProgramGraph closed = graphOf(analysis);
    const sim::ProgramGraph open = graphOf(analysis, withBodies(*closed.function));
    QVERIFY(countOf(closed, GraphNodeKind::Body) > 0);
    QVERIFY(open.nodes.size() > closed.nodes.size());
    const GraphDrawing drawing = sim::graphDrawing(closed);
    QVERIFY(std::any_of(drawing.nodes.begin(), drawing.nodes.end(),
        [](const DrawnGraphNode& node) { return node.kind == GraphNodeKind::Body && node.title.starts_with("repeat × "); }));
}

void TestProgramGraph::roundsLeadToTheShardings()
{
    QFETCH(QString, file);
    const auto analysis = analysed(file.toStdString());
    const sim::ProgramGraph graph = graphOf(analysis);
    const auto rounds = sim::propagationRounds(*graph.report);
    QVERIFY(!rounds.empty());
    QCOMPARE(rounds.back().end, graph.report->reasons.size());
    for (std::size_t i = 1; i < rounds.size(); ++i)
        QVERIFY(rounds[i - 1].end < rounds[i].end);
    const auto before = sim::shardingsAfter(*graph.function, *graph.report, 0);
    QVERIFY(std::all_of(before.begin(), before.end(), [](const TensorSharding& sharding) { return sharding.isReplicated(); }));
    const auto after = sim::shardingsAfter(*graph.function, *graph.report, rounds.back().end);
    for (const sim::ProgramArray& array : analysis->arrays)
        QCOMPARE(layoutText(after[array.value.at()], graph.mesh()), array.spec);
}

void TestProgramGraph::selectionIsLit()
{
    const sim::ProgramGraph graph = graphOf(analysed("matmul.mlir"));
    sim::ProgramFocus focus;
    focus.selected = {0};
    const GraphDrawing drawing = sim::graphDrawing(graph, focus);
    QCOMPARE(drawing.nodes[0].emphasis, GraphEmphasis::Selected);
    QVERIFY(std::any_of(drawing.edges.begin(), drawing.edges.end(),
        [](const DrawnGraphEdge& edge) { return edge.from == 0 && edge.emphasis == GraphEmphasis::Lit; }));
}

MESHWRIGHT_TEST(TestProgramGraph)

} // namespace tst_program_graph

#include "tst_program_graph.moc"
