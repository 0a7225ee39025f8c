// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/test_class.h"
#include "ui/mesh/axis_bar.h"
#include "ui/mesh/mesh_view.h"
#include "ui/theme/theme.h"
#include "ui/widgets/notice.h"
#include "ui/widgets/picture_view.h"

namespace tst_mesh_view {

using namespace meshwright;
using namespace meshwright::ui;

/// Pointing at an axis lights its links, clicking a device selects it; a study that breaks leaves the last machine standing.
class TestMeshView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void emptyAtFirst();
    void showsTheMachine();
    void cardsSayWhatAnAxisHas();
    void cardsThatDoNotFitARowAreBelow();
    void pointingAtACardLightsItsLinks();
    void pointingAtALinkLightsItsAxis();
    void theKeyboardLightsAxesToo();
    void otherViewsLightAxes();
    void clicksSelectDevices();
    void theSliceOfWhatIsSelectedIsShown();
    void redrawnToTheRoom();
    void brokenStudiesKeepTheLastMachine();
    void noHardware();
    void aMeshThatDoesNotFit();
    void commands_data();
    void commands();
    void exportedPicture();
    void bothThemes();

private:
    std::shared_ptr<const sim::Analysis> analysed(const std::vector<std::string>& settings = {});

    std::unique_ptr<sim::Session> m_session;
    std::string m_text;
};

namespace {

/// A view on screen with its parts at hand.
struct Shown {
    explicit Shown(std::shared_ptr<const sim::Analysis> analysis, QSize size = {700, 560})
        : view(selection)
    {
        view.resize(size);
        if (analysis)
            view.setAnalysis(std::move(analysis));
        view.show();
        (void)QTest::qWaitForWindowExposed(&view);
        QCoreApplication::processEvents();
        picture = view.findChild<PictureView*>();
        axes = view.findChild<AxisBar*>();
    }

    /// The colour of a pixel of the picture.
    QRgb pixel(QPoint place) const
    {
        const QImage image = picture->grab().toImage();
        return image.pixel((QPointF(place) * image.devicePixelRatio()).toPoint());
    }

    /// Between two devices that are neighbours across.
    QPoint between(const char* left, const char* right) const { return (picture->placeOf(left) + picture->placeOf(right)) / 2; }

    bool says(const QString& words) const
    {
        const auto labels = view.findChildren<QLabel*>();
        return std::any_of(labels.begin(), labels.end(),
            [&](const QLabel* label) { return label->isVisible() && label->text().contains(words); });
    }

    Selection selection;
    MeshView view;
    PictureView* picture = nullptr;
    AxisBar* axes = nullptr;
};

void pointAt(QWidget* widget)
{
    QEnterEvent enter(QPointF(5, 5), QPointF(5, 5), widget->mapToGlobal(QPointF(5, 5)));
    QCoreApplication::sendEvent(widget, &enter);
}

void pointAway(QWidget* widget)
{
    QEvent leave(QEvent::Leave);
    QCoreApplication::sendEvent(widget, &leave);
}

void moveTo(QWidget* widget, QPoint place)
{
    QMouseEvent move(QEvent::MouseMove, place, widget->mapToGlobal(place), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QCoreApplication::sendEvent(widget, &move);
}

} // namespace

void TestMeshView::initTestCase()
{
    QFile file(MESHWRIGHT_SOURCE_DIR "/resources/examples/wide_mlp.yaml");
    QVERIFY(file.open(QIODevice::ReadOnly));
    m_text = file.readAll().toStdString();
    m_session = std::make_unique<sim::Session>(valueOf(sim::defaultCatalogue()));
    qApp->setPalette(paletteOf(Theme::Light));
}

std::shared_ptr<const sim::Analysis> TestMeshView::analysed(const std::vector<std::string>& settings)
{
    std::vector<std::string> all = {"batch=8192"};
    all.insert(all.end(), settings.begin(), settings.end());
    return m_session->analyse({m_text, "wide_mlp.yaml", all});
}

void TestMeshView::emptyAtFirst()
{
    const Shown shown(nullptr);
    QVERIFY(shown.says("Open a study or an example"));
    QVERIFY(!shown.picture->isVisible());
    QCOMPARE(shown.view.command(), QString("meshwright list hardware"));
    QVERIFY(shown.view.picture().width > 0.0);
}

void TestMeshView::showsTheMachine()
{
    const Shown shown(analysed());
    QVERIFY(shown.says("TPU v5e, 4x2 chips, no wraparound: mesh data=4,model=2"));
    // JAX puts model along y: device 1 is under device 0, device 2 beside it.
    const QPoint first = shown.picture->placeOf("device:0");
    QCOMPARE(shown.picture->placeOf("device:1").x(), first.x());
    QVERIFY(shown.picture->placeOf("device:1").y() > first.y());
    QVERIFY(shown.picture->placeOf("device:2").x() > first.x());
    QCOMPARE(shown.pixel(first + QPoint(-12, -12)), qtColour(DeviceColours(analysed()->mesh()).of(0)).rgb());
    QVERIFY(shown.says("ICI link of a chip, each way: 45.0 GB/s (jax-ml/scaling-book"));
    QCOMPARE(shown.picture->accessibleName(), QString("TPU v5e, 4x2 chips, no wraparound"));
}

void TestMeshView::cardsSayWhatAnAxisHas()
{
    const Shown shown(analysed());
    const AxisCard* data = shown.axes->card("data");
    QVERIFY(data != nullptr && data->isVisible());
    QCOMPARE(data->accessibleName(), QString("Mesh axis data = 4"));
    QCOMPARE(data->accessibleDescription(), QString("x: ICI 45.0 GB/s each way. 2 groups"));

    const Shown pod(analysed({"hardware.topology=[16,16]", "mesh.data=64", "mesh.model=4"}));
    QCOMPARE(pod.axes->card("data")->accessibleDescription(),
        QString("x (4 of 16, every 4) and y: ICI 11.2 GB/s each way. 4 groups, wraps round, shares links with model"));
}

void TestMeshView::cardsThatDoNotFitARowAreBelow()
{
    const Shown shown(analysed({"mesh={data: 2, model: 2, other: 2}"}), {420, 560});
    QCOMPARE(shown.axes->height(), shown.axes->heightForWidth(shown.axes->width()));
    for (const char* axis : {"data", "model", "other"}) {
        const AxisCard* card = shown.axes->card(axis);
        QVERIFY(card != nullptr);
        QVERIFY2(shown.axes->rect().contains(card->geometry()), axis);
    }
}

void TestMeshView::pointingAtACardLightsItsLinks()
{
    const Shown shown(analysed());
    const QPoint link = shown.between("device:0", "device:2");
    const QRgb accent = qtColour(ColourRole::Accent, Theme::Light).rgb();
    QVERIFY(shown.pixel(link) != accent);
    pointAt(shown.axes->card("data"));
    QCOMPARE(shown.selection.hoveredAxis(), QString("data"));
    QCOMPARE(shown.pixel(link), accent);
    QVERIFY(shown.axes->card("data")->isLit() && !shown.axes->card("model")->isLit());
    pointAway(shown.axes->card("data"));
    QCOMPARE(shown.selection.hoveredAxis(), QString());
    QVERIFY(shown.pixel(link) != accent);
}

void TestMeshView::pointingAtALinkLightsItsAxis()
{
    const Shown shown(analysed());
    moveTo(shown.picture, shown.between("device:0", "device:1"));
    QCOMPARE(shown.selection.hoveredAxis(), QString("model"));
    QVERIFY(shown.axes->card("model")->isLit());
    moveTo(shown.picture, shown.picture->placeOf("device:0"));
    QCOMPARE(shown.selection.hoveredAxis(), QString());
    moveTo(shown.picture, shown.between("device:0", "device:2"));
    QCOMPARE(shown.selection.hoveredAxis(), QString("data"));
    pointAway(shown.picture);
    QCOMPARE(shown.selection.hoveredAxis(), QString());
}

void TestMeshView::theKeyboardLightsAxesToo()
{
    Shown shown(analysed());
    shown.view.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&shown.view));
    shown.axes->card("data")->setFocus();
    QCOMPARE(shown.selection.hoveredAxis(), QString("data"));
    QTest::keyClick(shown.axes->card("data"), Qt::Key_Tab);
    QVERIFY(shown.axes->card("model")->hasFocus());
    QCOMPARE(shown.selection.hoveredAxis(), QString("model"));
    // The pointer goes elsewhere and comes back: the focused card keeps its axis.
    pointAt(shown.axes->card("data"));
    QCOMPARE(shown.selection.hoveredAxis(), QString("data"));
    pointAway(shown.axes->card("data"));
    QCOMPARE(shown.selection.hoveredAxis(), QString("model"));
    // In the picture the arrow keys go from part to part, and Return selects.
    shown.picture->setFocus();
    for (int i = 0; i < 20 && shown.selection.devices().empty(); ++i) {
        QTest::keyClick(shown.picture, Qt::Key_Right);
        QTest::keyClick(shown.picture, Qt::Key_Return);
    }
    QCOMPARE(shown.selection.devices(), std::set<DeviceId>{0});
}

void TestMeshView::otherViewsLightAxes()
{
    Shown shown(analysed());
    shown.selection.setHoveredAxis("model");
    QVERIFY(shown.axes->card("model")->isLit());
    QCOMPARE(shown.pixel(shown.between("device:2", "device:3")), qtColour(ColourRole::Accent, Theme::Light).rgb());
    shown.selection.setHoveredAxis("fsdp"); // of another study
    QVERIFY(!shown.axes->card("model")->isLit());
}

void TestMeshView::clicksSelectDevices()
{
    Shown shown(analysed());
    QTest::mouseClick(shown.picture, Qt::LeftButton, {}, shown.picture->placeOf("device:3"));
    QCOMPARE(shown.selection.devices(), std::set<DeviceId>{3});
    QTest::mouseClick(shown.picture, Qt::LeftButton, Qt::ControlModifier, shown.picture->placeOf("device:6"));
    QCOMPARE(shown.selection.devices(), (std::set<DeviceId>{3, 6}));
    QTest::mouseClick(shown.picture, Qt::LeftButton, Qt::ControlModifier, shown.picture->placeOf("device:3"));
    QCOMPARE(shown.selection.devices(), std::set<DeviceId>{6});
    QTest::mouseClick(shown.picture, Qt::LeftButton, {}, {2, 2}); // beside everything
    QVERIFY(shown.selection.devices().empty());

    shown.selection.setDevices({5}); // another view's
    const auto& items = shown.picture->picture().items;
    QVERIFY(std::any_of(items.begin(), items.end(), [](const DisplayItem& item) {
        const auto* rect = std::get_if<RectShape>(&item.shape);
        return rect && rect->style.outline == Paint(ColourRole::Accent);
    }));
}

void TestMeshView::theSliceOfWhatIsSelectedIsShown()
{
    Shown shown(analysed({"hardware.slices=2", "mesh={data: 8, model: 2}"})); // 16 devices, 8 a slice
    const auto isDrawn = [&](const char* id) { return !shown.picture->placeOf(id).isNull(); };
    QVERIFY(isDrawn("device:0") && !isDrawn("device:12"));
    QVERIFY2(shown.view.minimumSizeHint().width() < 420, "a long title does not make the view wider");
    shown.selection.setDevices({12}); // in another view
    QVERIFY(isDrawn("device:12") && !isDrawn("device:0"));
    shown.selection.setDevices({3, 12}); // some of it is drawn: nothing moves
    QVERIFY(isDrawn("device:12"));
    QTest::mouseClick(shown.picture, Qt::LeftButton, {}, shown.picture->placeOf("slice:0"));
    QVERIFY(isDrawn("device:0") && !isDrawn("device:12"));
    QCOMPARE(shown.selection.devices(), (std::set<DeviceId>{3, 12}));
    shown.view.setAnalysis(analysed()); // one slice has no boxes
    QVERIFY(!isDrawn("slice:0") && isDrawn("device:0"));

    Shown large(
        analysed({"hardware={chip: v5e, topology: [16, 16], slices: 2}", "mesh={replica: 2, data: 64, model: 4}"}), {860, 640});
    const auto* scroll = large.view.findChild<QScrollArea*>();
    QVERIFY2(!scroll->verticalScrollBar()->isVisible() && !scroll->horizontalScrollBar()->isVisible(), "it fits the room");
}

void TestMeshView::redrawnToTheRoom()
{
    Shown shown(analysed({"hardware.topology=[16,16]", "mesh.data=16", "mesh.model=16"}), {700, 560});
    const double small = shown.picture->picture().height;
    auto* scroll = shown.view.findChild<QScrollArea*>();
    QVERIFY(!scroll->horizontalScrollBar()->isVisible() && !scroll->verticalScrollBar()->isVisible());
    shown.view.resize(1200, 1000);
    QCoreApplication::processEvents();
    QVERIFY(shown.picture->picture().height > 1.3 * small);
    QVERIFY(!scroll->verticalScrollBar()->isVisible());
    shown.view.resize(600, 500);
    QCoreApplication::processEvents();
    QVERIFY(shown.picture->picture().height < small);
}

void TestMeshView::brokenStudiesKeepTheLastMachine()
{
    Shown shown(analysed());
    const DisplayList before = shown.picture->picture();
    shown.view.setAnalysis(analysed({"mesh.data=16"})); // 32 devices for 8 chips
    QVERIFY(shown.says("Not up to date: "));
    QVERIFY(!shown.picture->isEnabled()); // pale
    QVERIFY(!shown.axes->isEnabled());
    QVERIFY(std::any_of(before.items.begin(), before.items.end(), [](const DisplayItem& item) { return item.id == "device:7"; }));
    QVERIFY(!shown.picture->placeOf("device:7").isNull());
    QCOMPARE(shown.view.command(), QString("meshwright mesh --hw v5e --topology 4x2 --mesh data=4,model=2"));

    shown.view.setAnalysis(analysed());
    QVERIFY(!shown.says("Not up to date"));
    QVERIFY(shown.picture->isEnabled() && shown.axes->isEnabled());
}

void TestMeshView::noHardware()
{
    std::string text = m_text;
    const std::size_t at = text.find("hardware:");
    text.erase(at, text.find('\n', at) + 1 - at);
    const auto analysis = m_session->analyse({text, "wide_mlp.yaml", {}});
    QVERIFY(analysis->machine == nullptr);
    Shown shown(analysis);
    QVERIFY(shown.says("The study has no hardware"));
    QVERIFY(!shown.picture->isVisible());
}

void TestMeshView::aMeshThatDoesNotFit()
{
    // Nothing was shown before: the machine alone, and why.
    const Shown shown(analysed({"mesh.data=16"}));
    QVERIFY(shown.says("Without its mesh: "));
    QVERIFY(!shown.picture->placeOf("device:7").isNull());
    QCOMPARE(shown.view.command(), QString("meshwright mesh --hw v5e --topology 4x2"));
}

void TestMeshView::commands_data()
{
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<QString>("expected");
    QTest::newRow("TPU") << QStringList{} << "meshwright mesh --hw v5e --topology 4x2 --mesh data=4,model=2";
    QTest::newRow("GPUs") << QStringList{"hardware={chip: h100, hosts: 2, per_host: 4}"}
                          << "meshwright mesh --hw h100 --hosts 2 --per-host 4 --mesh data=4,model=2";
}

void TestMeshView::commands()
{
    QFETCH(QStringList, settings);
    QFETCH(QString, expected);
    std::vector<std::string> all;
    for (const QString& setting : settings)
        all.push_back(setting.toStdString());
    const Shown shown(analysed(all));
    QCOMPARE(shown.view.command(), expected);
}

void TestMeshView::exportedPicture()
{
    const Shown shown(analysed());
    const DisplayList picture = shown.view.picture();
    const auto has = [&](const std::string& words) {
        return std::any_of(picture.items.begin(), picture.items.end(), [&](const DisplayItem& item) {
            const auto* text = std::get_if<TextShape>(&item.shape);
            return text && text->text.find(words) != std::string::npos;
        });
    };
    QVERIFY(has("TPU v5e, 4x2 chips")); // alone it needs its title and its legend
    QVERIFY(has("data 4: x, ICI 45.0 GB/s each way, 2 groups"));
}

void TestMeshView::bothThemes()
{
    Shown shown(analysed());
    QCOMPARE(shown.pixel({1, 1}), qtColour(ColourRole::Background, Theme::Light).rgb());
    shown.view.setAnalysis(analysed({"mesh.data=16"}));
    const auto* notice = shown.view.findChild<Notice*>();
    QCOMPARE(notice->palette().color(QPalette::WindowText).rgb(), qtColour(ColourRole::Warning, Theme::Light).rgb());
    qApp->setPalette(paletteOf(Theme::Dark));
    QCoreApplication::processEvents();
    QCOMPARE(notice->palette().color(QPalette::WindowText).rgb(), qtColour(ColourRole::Warning, Theme::Dark).rgb());
    shown.view.setAnalysis(analysed());
    QCOMPARE(shown.pixel({1, 1}), qtColour(ColourRole::Background, Theme::Dark).rgb());
    qApp->setPalette(paletteOf(Theme::Light));
}

MESHWRIGHT_TEST(TestMeshView)

} // namespace tst_mesh_view

#include "tst_mesh_view.moc"
