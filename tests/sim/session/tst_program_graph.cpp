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
    void layersAreOneNodeEach();
    void stagesSendWhatLiesAtTheCuts_data();
    void stagesSendWhatLiesAtTheCuts();
    void gradientsOfStagesHaveTimes();
    void ownCollectivesAreNodes();
    void movedValuesHaveColours();
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

/// Every loop and layer.
std::set<OpId> everyPart(const Function& function)
{
    std::set<OpId> all;
    for (const Block& block : function.blocks)
        all.insert(block.ops.begin(), block.ops.end());
    return all;
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
             "three_d.yaml", "sequence_parallel_transformer.yaml", "matmul.mlir", "mlp.mlir", "megatron_pair.mlir",
             "spmd_step.mlir", "pipeline_1f1b.yaml", "pipeline_interleaved.yaml", "pipeline_transformer.yaml"})
        QTest::newRow(file) << file;
}

void TestProgramGraph::edgesMakeNoCycle()
{
    QFETCH(QString, file);
    const auto analysis = analysed(file.toStdString());
    QVERIFY2(analysis->built != nullptr, describe(analysis->problems).c_str());
    const sim::ProgramGraph closed = graphOf(analysis);
    for (const sim::ProgramGraph& graph : {closed, graphOf(analysis, everyPart(*closed.function))}) {
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
    const sim::ProgramGraph graph = graphOf(analysis, everyPart(*graphOf(analysis).function));
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
    if (analysis->pipeline)
        QSKIP("its step is done by stages and microbatches");
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
    const sim::ProgramGraph open = graphOf(analysis, everyPart(*closed.function));
    QVERIFY(countOf(closed, GraphNodeKind::Body) > 0);
    QVERIFY(open.nodes.size() > closed.nodes.size());
    const GraphDrawing drawing = sim::graphDrawing(closed);
    QVERIFY(std::any_of(drawing.nodes.begin(), drawing.nodes.end(),
        [](const DrawnGraphNode& node) { return node.kind == GraphNodeKind::Body && node.title.starts_with("repeat × "); }));
}

/// Layers that are written out: forward, backward and update of each.
void TestProgramGraph::layersAreOneNodeEach()
{
    const auto analysis = analysed("pipeline_transformer.yaml", {"model.transformer.layers=8"});
    const sim::ProgramGraph closed = graphOf(analysis);
    const GraphDrawing drawing = sim::graphDrawing(closed);
    for (int layer = 0; layer < 8; ++layer) {
        for (const char* phase : {"forward", "backward"}) {
            const std::string title = fmt::format("layers.{}, {}", layer, phase);
            const auto nodes = std::count_if(drawing.nodes.begin(), drawing.nodes.end(),
                [&](const DrawnGraphNode& node) { return node.kind == GraphNodeKind::Body && node.title == title; });
            QVERIFY2(nodes > 0, title.c_str());
        }
    }
    const sim::ProgramGraph all = graphOf(analysis, everyPart(*closed.function));
    QVERIFY(closed.nodes.size() * 2 < all.nodes.size());
    const auto layer = std::find_if(
        closed.nodes.begin(), closed.nodes.end(), [](const sim::ProgramNode& node) { return !node.layer.empty(); });
    const sim::ProgramGraph one = graphOf(analysis, {layer->part});
    const auto ofPart = [&](const sim::ProgramNode& node) { return node.part == layer->part; };
    QCOMPARE(static_cast<std::size_t>(std::count_if(one.nodes.begin(), one.nodes.end(), ofPart)), layer->ops);
}

void TestProgramGraph::stagesSendWhatLiesAtTheCuts_data()
{
    QTest::addColumn<QString>("file");

    for (const char* file :
        {"pipeline_gpipe.yaml", "pipeline_1f1b.yaml", "pipeline_interleaved.yaml", "pipeline_transformer.yaml"})
        QTest::newRow(file) << file;
}

void TestProgramGraph::stagesSendWhatLiesAtTheCuts()
{
    QFETCH(QString, file);
    const auto analysis = analysed(file.toStdString());
    QVERIFY(analysis->simulated && analysis->pipeline);
    const auto& step = analysis->simulated->simulation.collectives;
    const sim::ProgramGraph graph = graphOf(analysis);
    std::set<int> shown;
    for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
        if (graph.nodes[node].kind != GraphNodeKind::Collective)
            continue;
        const std::size_t collective = graph.nodes[node].collective;
        shown.insert(graph.stepCollective[collective]);
        if (!graph.collectives[collective].label.starts_with("send "))
            continue;
        QVERIFY2(
            std::any_of(graph.edges.begin(), graph.edges.end(), [&](const sim::ProgramEdge& edge) { return edge.to == node; }),
            graph.collectives[collective].label.c_str());
    }
    for (std::size_t i = 0; i < step.size(); ++i)
        QVERIFY2(!step[i].label.starts_with("send ") || shown.count(static_cast<int>(i)) == 1, step[i].label.c_str());
}

/// Those of the second stage, which computes longest: the step's times are its.
void TestProgramGraph::gradientsOfStagesHaveTimes()
{
    const sim::ProgramGraph graph = graphOf(analysed("pipeline_1f1b.yaml"));
    for (const char* parameter : {"layers.1.w", "layers.3.w"}) {
        const auto reduction
            = std::find_if(graph.collectives.begin(), graph.collectives.end(), [&](const sim::SimulatedCollective& one) {
                  return one.use.kind == OpKind::AllReduce && one.use.cause.value.ends_with(parameter);
              });
        QVERIFY2(reduction != graph.collectives.end(), parameter);
        QVERIFY(reduction->seconds > 0.0);
    }
}

/// Those of a program's own, as shard_map has them, are the nodes of their ops, each once.
void TestProgramGraph::ownCollectivesAreNodes()
{
    const auto analysis = analysed("megatron_pair.mlir");
    const sim::ProgramGraph graph = graphOf(analysis, sim::openedAtFirst(*analysis));
    QCOMPARE(countOf(graph, GraphNodeKind::Collective), std::size_t{2});
    for (const sim::ProgramNode& node : graph.nodes)
        QVERIFY(node.kind != GraphNodeKind::Collective || node.op.valid());
    for (const DrawnGraphNode& node : sim::graphDrawing(graph).nodes)
        QVERIFY2(node.kind != GraphNodeKind::Op || !node.title.starts_with("own_"), node.title.c_str());
}

void TestProgramGraph::movedValuesHaveColours()
{
    const sim::ProgramGraph graph = graphOf(analysed("fsdp.yaml"));
    for (const DrawnGraphEdge& edge : sim::graphDrawing(graph).edges) {
        const bool isMoved
            = graph.nodes[edge.from].kind == GraphNodeKind::Collective || graph.nodes[edge.to].kind == GraphNodeKind::Collective;
        QCOMPARE(edge.moved.has_value(), isMoved);
    }
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
