// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "tests/test_class.h"
#include "ui/shapes/shapes_view.h"
#include "ui/widgets/picture_view.h"

namespace tst_shapes_view {

using namespace meshwright;

/// All shapes of a mesh, each with the step that the study takes on it.
class TestShapesView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void listsAllShapes_data();
    void listsAllShapes();
    void everyShapeHasItsOwnCell_data() { listsAllShapes_data(); }
    void everyShapeHasItsOwnCell();
    void headsDoNotOverlap_data();
    void headsDoNotOverlap();
    void stepsAreThoseOfTheStudies();
    void aPipelineKeepsItsStages();
    void oneStageKeepsNoAxis();
    void saysWhyThereAreNone_data();
    void saysWhyThereAreNone();
    void whatCannotBeSaysWhy();
    void aClickTakesAShape();
    void aHiddenViewStops();
    void thePictureFillsItsRoom();
};

namespace {

std::shared_ptr<const sim::Catalogue> catalogue()
{
    static const auto all = std::make_shared<const sim::Catalogue>(valueOf(sim::defaultCatalogue()));
    return all;
}

std::shared_ptr<const sim::Analysis> analysed(const std::string& example, const std::vector<std::string>& settings = {})
{
    const std::string path = (resourcesDirectory() / "examples" / example).string();
    return sim::analysed({valueOf(readFile(path)), path, settings}, *catalogue(), {}, false);
}

std::vector<MeshAxis> axesOf(int count)
{
    static const std::array<const char*, 4> kNames = {"a", "b", "c", "d"};
    std::vector<MeshAxis> axes;
    for (int i = 0; i < count; ++i)
        axes.push_back({kNames[static_cast<std::size_t>(i)], 1});
    return axes;
}

struct Shown {
    explicit Shown(const std::shared_ptr<const sim::Analysis>& analysis)
    {
        view.resize(800, 500);
        view.show();
        view.setAnalysis(analysis);
    }

    ui::Selection selection;
    ui::ShapesView view{selection, catalogue()};
};

} // namespace

void TestShapesView::listsAllShapes_data()
{
    QTest::addColumn<int>("axes");
    QTest::addColumn<qint64>("devices");
    QTest::addColumn<std::size_t>("count");

    QTest::newRow("one axis") << 1 << qint64{8} << std::size_t{1};
    QTest::newRow("two axes") << 2 << qint64{8} << std::size_t{4};
    QTest::newRow("not a power of two") << 2 << qint64{12} << std::size_t{6}; // 1, 2, 3, 4, 6, 12
    QTest::newRow("64 over three") << 3 << qint64{64} << std::size_t{28}; // 2^6 into three: 8 over 2
    QTest::newRow("64 over four") << 4 << qint64{64} << std::size_t{84}; // 9 over 3
}

void TestShapesView::listsAllShapes()
{
    QFETCH(int, axes);
    QFETCH(qint64, devices);
    QFETCH(std::size_t, count);
    const auto shapes = ui::allShapes(axesOf(axes), devices);
    QCOMPARE(shapes.size(), count);
    std::set<std::string> seen;
    for (const std::vector<MeshAxis>& shape : shapes) {
        QVERIFY(seen.insert(ui::shapeWords(shape)).second);
        qint64 product = 1;
        for (const MeshAxis& axis : shape)
            product *= axis.size;
        QCOMPARE(product, devices);
    }
}

void TestShapesView::everyShapeHasItsOwnCell()
{
    QFETCH(int, axes);
    QFETCH(qint64, devices);
    std::vector<ui::MeshShape> shapes;
    for (const auto& axesOfShape : ui::allShapes(axesOf(axes), devices)) {
        shapes.emplace_back().axes = axesOfShape;
        shapes.back().isKnown = true;
        shapes.back().seconds = 1e-3 * static_cast<double>(shapes.size());
        shapes.back().fits = true;
    }
    const DisplayList picture = ui::shapesPicture(shapes, 0, 900.0, 600.0);
    std::vector<RectShape> cells;
    for (const DisplayItem& item : picture.items) {
        if (item.id.starts_with("shape:"))
            cells.push_back(std::get<RectShape>(item.shape));
    }
    QCOMPARE(cells.size(), shapes.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const QRectF one(cells[i].topLeft.x, cells[i].topLeft.y, cells[i].width, cells[i].height);
        QVERIFY(QRectF(0.0, 0.0, 900.0, 600.0).contains(one));
        for (std::size_t j = i + 1; j < cells.size(); ++j)
            QVERIFY(!one.intersects(QRectF(cells[j].topLeft.x, cells[j].topLeft.y, cells[j].width, cells[j].height)));
    }
}

void TestShapesView::headsDoNotOverlap_data()
{
    QTest::addColumn<std::vector<std::string>>("names");
    QTest::addColumn<qint64>("devices");
    QTest::addColumn<std::string>("says");

    QTest::newRow("short heads stay whole") << std::vector<std::string>{"a", "b"} << qint64{8} << std::string("a=8");
    QTest::newRow("405B's") << std::vector<std::string>{"pipe", "data", "tensor"} << qint64{16384} << std::string("pipe \u2192");
    QTest::newRow("two axes") << std::vector<std::string>{"pipeline", "data"} << qint64{65536} << std::string("pipeline \u2192");
}

void TestShapesView::headsDoNotOverlap()
{
    QFETCH(std::vector<std::string>, names);
    QFETCH(qint64, devices);
    QFETCH(std::string, says);
    std::vector<MeshAxis> axes;
    for (const std::string& name : names)
        axes.push_back({name, 1});
    std::vector<ui::MeshShape> shapes;
    for (const auto& axesOfShape : ui::allShapes(axes, devices))
        shapes.emplace_back().axes = axesOfShape;
    const DisplayList picture = ui::shapesPicture(shapes, 0, 590.0, 560.0);
    std::vector<QRectF> heads;
    bool isSaid = false;
    for (const DisplayItem& item : picture.items) {
        const auto* text = std::get_if<TextShape>(&item.shape);
        if (text == nullptr || (text->anchor == TextAnchor::Middle && text->at.y > 30.0)) // inside a cell
            continue;
        const double width = estimatedWidth(text->text, text->size);
        const double left = text->at.x - (text->anchor == TextAnchor::End ? width : 0.5 * width);
        heads.push_back({left, text->at.y - 0.5 * text->size, width, text->size});
        isSaid |= text->text == says;
        QVERIFY2(QRectF(0.0, 0.0, 590.0, 560.0).contains(heads.back()), text->text.c_str());
    }
    QVERIFY(isSaid);
    for (std::size_t i = 0; i < heads.size(); ++i) {
        for (std::size_t j = i + 1; j < heads.size(); ++j)
            QVERIFY(!heads[i].intersects(heads[j]));
    }
}

void TestShapesView::stepsAreThoseOfTheStudies()
{
    Shown shown(analysed("notebook_mlp.yaml"));
    QCOMPARE(shown.view.shapes().size(), std::size_t{4});
    QTRY_VERIFY_WITH_TIMEOUT(!shown.view.isBusy(), 30'000);
    for (const ui::MeshShape& shape : shown.view.shapes()) {
        const auto analysis = sim::analysed(shape.source, *catalogue(), {}, false);
        QVERIFY(analysis->simulated);
        QCOMPARE(analysis->study->mesh, shape.axes);
        QCOMPARE(shape.seconds, analysis->simulated->simulation.stepSeconds);
    }
    QVERIFY(shown.view.command().contains("{data: 4, model: 2}"));
    shown.view.setAnalysis(analysed("notebook_mlp.yaml", {"batch=many"})); // the shapes stay, and there is no mesh to vary
    QCOMPARE(shown.view.shapes().size(), std::size_t{4});
    QVERIFY2(!shown.view.command().contains("--vary"), qPrintable(shown.view.command()));
}

/// Two stages on four devices: what differs is inside a stage, and the axis of the stages stays.
void TestShapesView::aPipelineKeepsItsStages()
{
    const auto analysis = analysed("pipeline_transformer.yaml", {"mesh.data=1"});
    Shown shown(analysis);
    QCOMPARE(shown.view.shapes().size(), std::size_t{2}); // model x data = 2
    QTRY_VERIFY_WITH_TIMEOUT(!shown.view.isBusy(), 30'000);
    for (const ui::MeshShape& shape : shown.view.shapes()) {
        QVERIFY2(shape.seconds > 0.0, shape.why.c_str());
        QCOMPARE(sim::analysed(shape.source, *catalogue(), {}, false)->study->pipeline.stages, std::int64_t{2});
    }
    QVERIFY(shown.view.findChild<QLabel*>()->text().contains("pipe=2"));
    QVERIFY2(shown.view.command().contains("pipe: 2"), qPrintable(shown.view.command()));
    auto* picture = shown.view.findChild<ui::PictureView*>();
    QSignalSpy chosen(&shown.view, &ui::ShapesView::meshChosen);
    QTest::mouseClick(picture, Qt::LeftButton, {}, picture->placeOf("shape:1"));
    QCOMPARE(chosen.at(0).at(0).toStringList(), (QStringList{"mesh.model=1", "mesh.data=2"}));
}

/// The axis of the one stage only shards arrays.
void TestShapesView::oneStageKeepsNoAxis()
{
    Shown shown(analysed("three_d.yaml"));
    QCOMPARE(shown.view.shapes().size(), std::size_t{10}); // 8 over three axes
    QTRY_VERIFY_WITH_TIMEOUT(!shown.view.isBusy(), 30'000);
    const auto own = std::ranges::find(
        shown.view.shapes(), std::string("2x2x2"), [](const ui::MeshShape& shape) { return ui::shapeWords(shape.axes); });
    QVERIFY2(own != shown.view.shapes().end() && own->seconds > 0.0, own->why.c_str());
    QVERIFY(!shown.view.findChild<QLabel*>()->text().contains("stages"));
}

void TestShapesView::saysWhyThereAreNone_data()
{
    QTest::addColumn<std::vector<std::string>>("settings");
    QTest::addColumn<QString>("says");

    QTest::newRow("only the stages' axis") << std::vector<std::string>{"mesh={pipe: 2}", "sharding={}"}
                                           << "pipe is the only axis";
    QTest::newRow("not divisible") << std::vector<std::string>{"mesh={pipe: 3, model: 1}", "pipeline.stages=3",
        "pipeline.layers=[2, 1, 1]"}
                                   << "4 devices are not divisible by 3 stages";
}

void TestShapesView::saysWhyThereAreNone()
{
    QFETCH(std::vector<std::string>, settings);
    QFETCH(QString, says);
    Shown shown(analysed("pipeline_transformer.yaml", settings));
    QVERIFY(shown.view.shapes().empty());
    QVERIFY2(shown.view.findChild<QLabel*>()->text().contains(says), qPrintable(shown.view.findChild<QLabel*>()->text()));
}

void TestShapesView::whatCannotBeSaysWhy()
{
    Shown shown(analysed("notebook_mlp.yaml", {"batch=4"})); // which eight devices cannot split
    QTRY_VERIFY_WITH_TIMEOUT(!shown.view.isBusy(), 30'000);
    const ui::MeshShape& eight = shown.view.shapes().front();
    QCOMPARE(ui::shapeWords(eight.axes), std::string("8x1"));
    QCOMPARE(eight.seconds, 0.0);
    QVERIFY2(eight.why.find('8') != std::string::npos && eight.why.find('4') != std::string::npos, eight.why.c_str());
    QVERIFY(shown.view.shapes().back().seconds > 0.0);
    auto* status = shown.view.findChild<QLabel*>();
    QVERIFY2(status->text().contains("4 shapes; crossed out: 1 that cannot be simulated."), qPrintable(status->text()));
    QSignalSpy chosen(&shown.view, &ui::ShapesView::meshChosen);
    auto* shownPicture = shown.view.findChild<ui::PictureView*>();
    QTest::mouseClick(shownPicture, Qt::LeftButton, {}, shownPicture->placeOf("shape:0"));
    QCOMPARE(chosen.count(), 0);
    QVERIFY2(
        status->text().contains("8x1 cannot be simulated: " + QString::fromStdString(eight.why)), qPrintable(status->text()));
    const DisplayList picture = shown.view.picture();
    QVERIFY(std::any_of(picture.items.begin(), picture.items.end(),
        [&](const DisplayItem& item) { return item.id == "shape:0" && item.tooltip.find(eight.why) != std::string::npos; }));
}

void TestShapesView::aClickTakesAShape()
{
    const auto analysis = analysed("notebook_mlp.yaml");
    Shown shown(analysis);
    QTRY_VERIFY_WITH_TIMEOUT(!shown.view.isBusy(), 30'000);
    QSignalSpy chosen(&shown.view, &ui::ShapesView::meshChosen);
    auto* picture = shown.view.findChild<ui::PictureView*>();
    QTest::mouseClick(picture, Qt::LeftButton, {}, picture->placeOf("shape:2"));
    QCOMPARE(chosen.count(), 1);
    const QStringList settings = chosen.at(0).at(0).toStringList();
    QCOMPARE(settings, (QStringList{"mesh.data=2", "mesh.model=4"}));
    const auto taken = analysed("notebook_mlp.yaml", {"mesh.data=2", "mesh.model=4"});
    shown.view.setAnalysis(taken); // the shapes are the same: nothing is simulated again
    QVERIFY(!shown.view.isBusy());
    QCOMPARE(shown.view.shapes()[2].seconds, taken->simulated->simulation.stepSeconds);
    shown.view.setAnalysis(analysed("notebook_mlp.yaml", {"batch=4096"}));
    QVERIFY(shown.view.isBusy());
}

void TestShapesView::aHiddenViewStops()
{
    Shown shown(analysed("notebook_mlp.yaml"));
    QVERIFY(shown.view.isBusy());
    shown.view.hide();
    QVERIFY(!shown.view.isBusy());
    shown.view.show();
    QTRY_VERIFY_WITH_TIMEOUT(!shown.view.isBusy(), 30'000);
    for (const ui::MeshShape& shape : shown.view.shapes())
        QVERIFY(shape.isKnown);
}

void TestShapesView::thePictureFillsItsRoom()
{
    Shown shown(analysed("notebook_mlp.yaml"));
    auto* picture = shown.view.findChild<ui::PictureView*>();
    for (const int width : {900, 500}) {
        shown.view.resize(width, 500);
        QTRY_COMPARE(picture->picture().width, static_cast<double>(picture->width()));
        QVERIFY(picture->width() < width && picture->width() > width - 40);
    }
}

MESHWRIGHT_TEST(TestShapesView)

} // namespace tst_shapes_view

#include "tst_shapes_view.moc"
