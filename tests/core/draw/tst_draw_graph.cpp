// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_graph.h"

#include "core/draw/svg.h"
#include "tests/core/draw/picture_checks.h"
#include "tests/test_class.h"

namespace tst_draw_graph {

using namespace meshwright;
using namespace meshwright::tests;

class TestDrawGraph : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void nodesHaveTheirWords();
    void onlyWhatIsSeenIsDrawn();
    void smallTextIsLeftOut();
    void farEdgesAreStubsUntilTheyAreLit();
    void longWordsAreCut();
    void sameBytes();
};

namespace {

GraphDrawing product()
{
    GraphDrawing drawing;
    drawing.title = "A product";
    drawing.nodes = {{"value:0", GraphNodeKind::Argument, "x", "f32[8,4]"}, {"value:1", GraphNodeKind::Argument, "w", "f32[4,2]"},
        {"value:2", GraphNodeKind::Op, "dot_general", "f32[8,2]"},
        {"collective:0", GraphNodeKind::Collective, "all_reduce over data", "64 B", "", ColourRole::AllReduce}};
    drawing.edges = {{0, 2, "P('data', None)"}, {1, 2, "P()"}, {2, 3, "P()"}};
    return drawing;
}

std::size_t textCount(const DisplayList& list)
{
    return static_cast<std::size_t>(std::count_if(list.items.begin(), list.items.end(),
        [](const DisplayItem& item) { return std::holds_alternative<TextShape>(item.shape); }));
}

DisplayList whole(const GraphDrawing& drawing)
{
    const LayeredLayout layout = graphLayout(drawing);
    return drawGraph(drawing, layout, wholeGraph(layout));
}

} // namespace

void TestDrawGraph::nodesHaveTheirWords()
{
    const DisplayList list = whole(product());
    QCOMPARE(textCount(list), std::size_t{11}); // a title and a detail each, and three specs
    for (const char* id : {"value:0", "value:1", "value:2", "collective:0"})
        QVERIFY(itemOf(list, id) != nullptr);
}

void TestDrawGraph::onlyWhatIsSeenIsDrawn()
{
    const GraphDrawing drawing = product();
    const LayeredLayout layout = graphLayout(drawing);
    const DisplayList list = drawGraph(drawing, layout, {layout.topLefts[3], 50.0, 20.0, 1.0});
    QVERIFY(itemOf(list, "collective:0") != nullptr);
    QVERIFY(itemOf(list, "value:0") == nullptr);
    QVERIFY(drawGraph(drawing, layout, {{1e6, 1e6}, 50.0, 20.0, 1.0}).items.empty());
}

void TestDrawGraph::smallTextIsLeftOut()
{
    const GraphDrawing drawing = product();
    const LayeredLayout layout = graphLayout(drawing);
    QCOMPARE(textCount(drawGraph(drawing, layout, {{0.0, 0.0}, 2000.0, 1000.0, 0.1})), std::size_t{0});
}

void TestDrawGraph::farEdgesAreStubsUntilTheyAreLit()
{
    GraphDrawing drawing;
    for (int i = 0; i < 20; ++i) {
        drawing.nodes.push_back({"value:" + std::to_string(i), GraphNodeKind::Op, "add", "f32[2]"});
        if (i > 0)
            drawing.edges.push_back({static_cast<std::size_t>(i - 1), static_cast<std::size_t>(i)});
    }
    const auto lines = [](const DisplayList& list, bool dashed) {
        return std::count_if(list.items.begin(), list.items.end(), [&](const DisplayItem& item) {
            const auto* line = std::get_if<LineShape>(&item.shape);
            return line != nullptr && line->dashed == dashed;
        });
    };
    drawing.edges.push_back({0, 19});
    QCOMPARE(lines(whole(drawing), true), std::ptrdiff_t{2});
    drawing.edges.back().emphasis = GraphEmphasis::Lit;
    QCOMPARE(lines(whole(drawing), true), std::ptrdiff_t{0});
}

void TestDrawGraph::longWordsAreCut()
{
    GraphDrawing drawing = product();
    drawing.nodes[0].title = std::string(20, 'a') + "äöü äöü äöü äöü äöü";
    const DisplayList list = whole(drawing);
    const auto cut = std::find_if(list.items.begin(), list.items.end(), [](const DisplayItem& item) {
        const auto* text = std::get_if<TextShape>(&item.shape);
        return text != nullptr && text->text.ends_with("…");
    });
    QVERIFY(cut != list.items.end());
    QVERIFY(!QString::fromStdString(std::get<TextShape>(cut->shape).text).contains(QChar::ReplacementCharacter));
}

void TestDrawGraph::sameBytes()
{
    QCOMPARE(svgText(whole(product()), Theme::Light), svgText(whole(product()), Theme::Light));
}

MESHWRIGHT_TEST(TestDrawGraph)

} // namespace tst_draw_graph

#include "tst_draw_graph.moc"
