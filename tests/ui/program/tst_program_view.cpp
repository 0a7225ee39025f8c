// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/program_study.h"
#include "core/support/file.h"
#include "tests/test_class.h"
#include "ui/program/nodes_model.h"
#include "ui/program/program_canvas.h"
#include "ui/program/program_view.h"
#include "ui/study/spec_edit.h"
#include "ui/theme/theme.h"
#include "ui/widgets/elided_label.h"

#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QSlider>
#include <QTableView>
#include <QTextBrowser>

namespace tst_program_view {

using namespace meshwright;
using namespace meshwright::ui;

class TestProgramView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void emptyAtFirst();
    void aClickSaysWhy();
    void aClickSelectsTheArray();
    void selectionOfOthersIsFollowed();
    void aCollectiveIsSelectedBothWays();
    void rowsSelectNodes();
    void theKeyboardGoesAlongEdges();
    void loopsOpenAndClose();
    void whatIsSelectedStaysInItsPlace();
    void shardMapIsOpenAtFirst();
    void pipelinesAreShown();
    void propagationIsSteppedThrough();
    void aSpecIsSet();
    void wheelAndDragMoveIt();
    void brokenStudiesKeepTheLastGraph();
    void programFiles();
    void pictureAndCommand();

private:
    std::shared_ptr<const sim::Analysis> analysed(const std::string& file, const std::vector<std::string>& settings = {});
    std::unique_ptr<sim::Session> m_session;
};

namespace {

struct Shown {
    explicit Shown(std::shared_ptr<const sim::Analysis> analysis)
        : view(selection)
    {
        view.resize(900, 700);
        view.show();
        (void)QTest::qWaitForWindowExposed(&view);
        canvas = view.findChild<ProgramCanvas*>();
        table = view.findChild<QTableView*>();
        if (analysis)
            take(std::move(analysis));
    }

    void take(std::shared_ptr<const sim::Analysis> analysis)
    {
        selection.setAnalysis(*analysis);
        view.setAnalysis(std::move(analysis));
        wait();
    }

    void wait() const
    {
        QVERIFY(QTest::qWaitFor([&] { return !view.isBusy(); }));
    }

    /// -1: none.
    int node(const std::string& title, const std::string& detail = {}) const
    {
        const auto& nodes = canvas->drawing().nodes;
        const auto found = std::find_if(nodes.begin(), nodes.end(),
            [&](const DrawnGraphNode& one) { return one.title.starts_with(title) && one.detail.starts_with(detail); });
        return found == nodes.end() ? -1 : static_cast<int>(found - nodes.begin());
    }

    int firstCollective() const
    {
        const auto& nodes = canvas->drawing().nodes;
        const auto found = std::find_if(
            nodes.begin(), nodes.end(), [](const DrawnGraphNode& one) { return one.kind == GraphNodeKind::Collective; });
        return static_cast<int>(found - nodes.begin());
    }

    void click(int node) const
    {
        QVERIFY(node >= 0);
        canvas->bringIntoView(static_cast<std::size_t>(node));
        QTest::mouseClick(canvas, Qt::LeftButton, {}, canvas->placeOf(static_cast<std::size_t>(node)));
    }

    GraphEmphasis emphasis(int node) const { return canvas->drawing().nodes[static_cast<std::size_t>(node)].emphasis; }
    QString why() const { return view.findChild<QTextBrowser*>()->toPlainText(); }

    Selection selection;
    ProgramView view;
    ProgramCanvas* canvas = nullptr;
    QTableView* table = nullptr;
};

} // namespace

void TestProgramView::initTestCase()
{
    m_session = std::make_unique<sim::Session>(valueOf(sim::defaultCatalogue()));
    qApp->setPalette(paletteOf(Theme::Light));
}

std::shared_ptr<const sim::Analysis> TestProgramView::analysed(const std::string& file, const std::vector<std::string>& settings)
{
    std::string path = MESHWRIGHT_SOURCE_DIR "/resources/examples/" + file;
    std::string text = valueOf(readFile(path));
    if (file.ends_with(".mlir")) { // as the window opens it
        text = valueOf(programStudyText(path, text));
        path = std::filesystem::path(path).replace_extension(".yaml").string();
    }
    return m_session->analyse({text, path, settings});
}

void TestProgramView::emptyAtFirst()
{
    Shown shown(nullptr);
    QVERIFY(shown.view.findChild<ElidedLabel*>()->whole().startsWith("Open a study"));
    shown.view.grab();
}

/// The activation is split by data because x is.
void TestProgramView::aClickSaysWhy()
{
    Shown shown(analysed("data_parallel.yaml"));
    const int node = shown.node("act.");
    shown.click(node);
    QCOMPARE(shown.emphasis(node), GraphEmphasis::Selected);
    QVERIFY2(shown.why().contains("split by data") && shown.why().contains("written at sharding.x"), qPrintable(shown.why()));
    QCOMPARE(shown.emphasis(shown.node("x")), GraphEmphasis::Lit); // the chain back to the annotation
}

void TestProgramView::aClickSelectsTheArray()
{
    Shown shown(analysed("data_parallel.yaml"));
    shown.click(shown.node("x"));
    QCOMPARE(shown.selection.array(), QString("x"));
}

void TestProgramView::selectionOfOthersIsFollowed()
{
    Shown shown(analysed("data_parallel.yaml"));
    shown.selection.setArray("layers.1.w");
    QCOMPARE(shown.emphasis(shown.node("layers.1.w")), GraphEmphasis::Selected);
    QCOMPARE(shown.table->currentIndex().siblingAtColumn(NodesModel::Name).data().toString(), QString("layers.1.w"));
}

void TestProgramView::aCollectiveIsSelectedBothWays()
{
    Shown shown(analysed("data_parallel.yaml"));
    const int node = shown.firstCollective();
    shown.click(node);
    QVERIFY(shown.selection.collective());
    QVERIFY2(shown.why().contains("Why: ") && shown.why().contains("Moves "), qPrintable(shown.why()));
    const CollectiveId id = *shown.selection.collective();
    shown.click(shown.node("x"));
    shown.selection.setCollective({});
    shown.selection.setCollective(id);
    QCOMPARE(shown.emphasis(node), GraphEmphasis::Selected);
}

void TestProgramView::rowsSelectNodes()
{
    Shown shown(analysed("data_parallel.yaml"));
    const QAbstractItemModelTester tester(shown.table->model(), QAbstractItemModelTester::FailureReportingMode::Fatal);
    QCOMPARE(shown.table->model()->rowCount(), static_cast<int>(shown.canvas->drawing().nodes.size()));
    for (int row = 0; row < shown.table->model()->rowCount(); ++row) {
        shown.table->selectRow(row);
        QCOMPARE(shown.emphasis(row), GraphEmphasis::Selected);
        QVERIFY(shown.canvas->rect().contains(shown.canvas->placeOf(static_cast<std::size_t>(row))));
    }
}

void TestProgramView::theKeyboardGoesAlongEdges()
{
    Shown shown(analysed("data_parallel.yaml"));
    const int x = shown.node("x");
    shown.click(x);
    QTest::keyClick(shown.canvas, Qt::Key_Right);
    QVERIFY(shown.emphasis(x) != GraphEmphasis::Selected);
    QTest::keyClick(shown.canvas, Qt::Key_Left);
    QTest::keyClick(shown.canvas, Qt::Key_F);
    const double before = shown.canvas->scale();
    QTest::keyClick(shown.canvas, Qt::Key_W);
    QVERIFY(shown.canvas->scale() > before);
    QTest::keyClick(shown.canvas, Qt::Key_0);
    QVERIFY(shown.canvas->scale() <= 1.0);
}

void TestProgramView::loopsOpenAndClose()
{
    Shown shown(analysed("transformer_digits.yaml"));
    const std::size_t closed = shown.canvas->drawing().nodes.size();
    shown.click(shown.node("repeat"));
    QTest::keyClick(shown.canvas, Qt::Key_Return);
    shown.wait();
    QVERIFY(shown.canvas->drawing().nodes.size() > closed);
    shown.click(shown.node("repeat"));
    QTest::keyClick(shown.canvas, Qt::Key_Return);
    shown.wait();
    QCOMPARE(shown.canvas->drawing().nodes.size(), closed);
}

/// Loops that open and specs that change make the graph another one; what people look at does not jump away.
void TestProgramView::whatIsSelectedStaysInItsPlace()
{
    Shown shown(analysed("transformer_digits.yaml"));
    const auto place = [&](const char* title) { return shown.canvas->placeOf(static_cast<std::size_t>(shown.node(title))); };
    const double scale = shown.canvas->scale();
    shown.click(shown.node("repeat"));
    const QPoint before = place("repeat");
    QTest::keyClick(shown.canvas, Qt::Key_Return);
    shown.wait();
    QVERIFY((place("repeat") - before).manhattanLength() <= 2);
    QCOMPARE(shown.canvas->scale(), scale);

    shown.click(shown.node("head.w"));
    const QPoint ofHead = place("head.w");
    shown.take(analysed("transformer_digits.yaml", {"sharding.head.w=P()"}));
    QVERIFY((place("head.w") - ofHead).manhattanLength() <= 2);
}

/// A program that is all in one computation is not one box.
void TestProgramView::shardMapIsOpenAtFirst()
{
    Shown shown(analysed("megatron_pair.mlir"));
    QVERIFY(shown.node("dot_general") >= 0);
    const int gather = shown.node("all-gather over model");
    shown.click(gather);
    QVERIFY2(shown.why().contains("Moves "), qPrintable(shown.why()));
}

void TestProgramView::pipelinesAreShown()
{
    Shown shown(analysed("pipeline_1f1b.yaml"));
    const int send = shown.node("send activations 0 to 1");
    shown.click(send);
    QVERIFY(shown.selection.collective());
    QVERIFY2(shown.why().contains("stage 0 sends to stage 1"), qPrintable(shown.why()));

    Shown large(analysed("llama3_405b_h100.yaml")); // 8 of 126 layers in a stage, in four parts
    const int gather = large.node("all-gather over data", "416 MiB × 4");
    QVERIFY(gather >= 0);
    large.click(gather);
    QVERIFY2(large.why().contains("Moves 416 MiB per device, 4 times in a step."), qPrintable(large.why()));
}

/// Before the first step nothing is split; at the end the graph is as it was.
void TestProgramView::propagationIsSteppedThrough()
{
    Shown shown(analysed("data_parallel.yaml"));
    const GraphDrawing whole = shown.canvas->drawing();
    auto* steps = shown.view.findChild<QSlider*>();
    QCOMPARE(steps->value(), steps->maximum());
    steps->setValue(0);
    const auto isSplit = [](const DrawnGraphNode& node) { return node.isSplit; };
    const auto& nodes = shown.canvas->drawing().nodes;
    QVERIFY(std::none_of(nodes.begin(), nodes.end(), isSplit));
    auto before = std::ptrdiff_t{0};
    for (const int step : {1, steps->maximum() / 2, steps->maximum()}) {
        steps->setValue(step);
        const auto& now = shown.canvas->drawing().nodes;
        const auto count = std::count_if(now.begin(), now.end(), isSplit);
        QVERIFY(count >= before);
        before = count;
    }
    QVERIFY(before > 0);
    for (std::size_t node = 0; node < whole.nodes.size(); ++node)
        QCOMPARE(shown.canvas->drawing().nodes[node].tooltip, whole.nodes[node].tooltip);
}

void TestProgramView::aSpecIsSet()
{
    Shown shown(analysed("data_parallel.yaml"));
    const QSignalSpy chosen(&shown.view, &ProgramView::specChosen);
    auto* spec = shown.view.findChild<SpecEdit*>();
    QVERIFY(!spec->isEnabled());
    shown.click(shown.node("layers.0.w"));
    QVERIFY(spec->isEnabled());
    spec->setText("P('data', 'nonsense')");
    QTest::keyClick(spec, Qt::Key_Return);
    QCOMPARE(chosen.count(), qsizetype{0}); // what is wrong is not set
    spec->setText("P(None, 'data')");
    QTest::keyClick(spec, Qt::Key_Return);
    QCOMPARE(chosen.count(), qsizetype{1});
    QCOMPARE(chosen.front().at(0).toString(), QString("sharding.layers.0.w"));
    QCOMPARE(chosen.front().at(1).toString(), QString("P(None, 'data')"));

    Shown jax(analysed("mlp.mlir")); // whose names are those of a tree
    const QSignalSpy ofJax(&jax.view, &ProgramView::specChosen);
    jax.click(jax.node("params['w1']"));
    spec = jax.view.findChild<SpecEdit*>();
    QVERIFY(spec->isEnabled());
    spec->setText("P('data', 'model')");
    QTest::keyClick(spec, Qt::Key_Return);
    QCOMPARE(ofJax.count(), qsizetype{1});
    const std::string setting = (ofJax.front().at(0).toString() + "=" + ofJax.front().at(1).toString()).toStdString();
    QCOMPARE(setting, std::string("sharding.params['w1']=P('data', 'model')"));
    QCOMPARE(analysed("mlp.mlir", {setting})->findArray("params['w1']")->spec, std::string("P('data', 'model')"));
}

void TestProgramView::wheelAndDragMoveIt()
{
    Shown shown(analysed("data_parallel.yaml"));
    const double before = shown.canvas->scale();
    const QPointF middle = QRectF(shown.canvas->rect()).center();
    QWheelEvent wheel(
        middle, shown.canvas->mapToGlobal(middle), {}, {0, 240}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(shown.canvas, &wheel);
    QVERIFY(shown.canvas->scale() > before);
    const QPoint place = shown.canvas->placeOf(0);
    QTest::mousePress(shown.canvas, Qt::LeftButton, {}, {100, 100});
    QMouseEvent move(QEvent::MouseMove, QPointF(160, 120), shown.canvas->mapToGlobal(QPointF(160, 120)), Qt::NoButton,
        Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(shown.canvas, &move);
    QTest::mouseRelease(shown.canvas, Qt::LeftButton, {}, {160, 120});
    QVERIFY(shown.canvas->placeOf(0) != place);
}

void TestProgramView::brokenStudiesKeepTheLastGraph()
{
    Shown shown(analysed("data_parallel.yaml"));
    const std::size_t nodes = shown.canvas->drawing().nodes.size();
    shown.take(analysed("data_parallel.yaml", {"sharding.x=P('nowhere')"}));
    QCOMPARE(shown.canvas->drawing().nodes.size(), nodes);
    QVERIFY(!shown.canvas->isEnabled());
    shown.take(analysed("data_parallel.yaml"));
    QVERIFY(shown.canvas->isEnabled());
}

void TestProgramView::programFiles()
{
    Shown shown(analysed("mlp.mlir"));
    QVERIFY(shown.node("dot_general") >= 0);
    QVERIFY(shown.view.command().startsWith("meshwright propagate "));
    shown.click(shown.node("dot_general")); // a value without a name is asked for as the written program calls it
    QVERIFY2(shown.view.command().endsWith(" --explain %0"), qPrintable(shown.view.command()));
}

void TestProgramView::pictureAndCommand()
{
    Shown shown(analysed("data_parallel.yaml"));
    QVERIFY(shown.view.picture().items.size() > 20);
    QVERIFY(shown.view.command().startsWith("meshwright simulate "));
}

MESHWRIGHT_TEST(TestProgramView)

} // namespace tst_program_view

#include "tst_program_view.moc"
