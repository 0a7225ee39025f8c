// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layout/layout_view.h"

#include "sim/session/engine.h"
#include "tests/test_class.h"
#include "tests/ui/layout/example_analysis.h"
#include "ui/layout/picture_area.h"
#include "ui/study/spec_edit.h"

namespace tst_layout_view {

using namespace meshwright;
using namespace meshwright::ui;
using tests::exampleAnalysis;
using tests::programAnalysis;
using tests::unevenAnalysis;

/// The layout view as people use it.
class TestLayoutView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void listAndSelectionAgree();
    void columnsFitTheList();
    void filterByKeyboard();
    void clickSelectsDevices();
    void piecesByKeyboard();
    void pixelsHaveTheDevicesColours_data();
    void pixelsHaveTheDevicesColours();
    void hoverShowsThePiece();
    void factsAndReason();
    void linkAsksForTheSpec();
    void aReshardIsPlanned_data();
    void aReshardIsPlanned();
    void keepsTheArrayThroughEdits();
    void staleStudyIsPale();
    void slicesOfThreeDimensions();
    void rowsAndColumnsChangePlaces();
    void whatIsSplitIsDrawn();
    void theListHasRoomForNames();
    void zooms();
    void fitsItsRoom_data();
    void fitsItsRoom();
    void everyArrayOfEveryExample_data();
    void everyArrayOfEveryExample();
    void commands_data();
    void commands();
};

namespace {

/// A view on screen with its selection, showing an analysis.
struct Shown {
    Selection selection;
    LayoutView view{selection};

    explicit Shown(const std::shared_ptr<const sim::Analysis>& analysis, QSize size = {900, 600})
    {
        view.resize(size);
        view.setAnalysis(analysis);
        view.show();
        const bool exposed = QTest::qWaitForWindowExposed(&view);
        Q_ASSERT(exposed);
        Q_UNUSED(exposed);
    }

    PictureArea* area() { return view.findChild<PictureArea*>(); }
    PictureView* picture() { return area()->view(); }
    QTreeView* list() { return view.findChild<QTreeView*>(); }
    QLineEdit* filter()
    {
        const QList<QLineEdit*> edits = view.findChildren<QLineEdit*>();
        const auto found
            = std::ranges::find_if(edits, [](const QLineEdit* edit) { return qobject_cast<const SpecEdit*>(edit) == nullptr; });
        return found == edits.end() ? nullptr : *found;
    }
    QString title() { return QString::fromStdString(picture()->picture().title); }

    QLabel* label(const QString& accessibleName)
    {
        for (QLabel* found : view.findChildren<QLabel*>()) {
            if (found->accessibleName() == accessibleName)
                return found;
        }
        return nullptr;
    }

    QStringList visibleArrays()
    {
        QStringList names;
        for (QModelIndex index = list()->model()->index(0, 0); index.isValid(); index = list()->indexBelow(index)) {
            if (index.parent().isValid())
                names << index.data().toString();
        }
        return names;
    }

    void click(const char* id, Qt::KeyboardModifiers modifiers = {})
    {
        QTest::mouseClick(picture(), Qt::LeftButton, modifiers, picture()->placeOf(id));
    }

    QStringList texts()
    {
        QStringList all;
        for (const DisplayItem& item : picture()->picture().items) {
            if (const auto* text = std::get_if<TextShape>(&item.shape))
                all << QString::fromStdString(text->text);
        }
        return all;
    }
};

/// As the pointer does; QTest::mouseMove cannot leave the (small) screen.
void moveTo(QWidget* widget, QPoint at)
{
    QMouseEvent event(QEvent::MouseMove, at, widget->mapToGlobal(QPointF(at)), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QCoreApplication::sendEvent(widget, &event);
}

void turnWheel(QWidget* widget, QPoint at, int notches, Qt::KeyboardModifiers modifiers)
{
    QWheelEvent event(
        at, widget->mapToGlobal(QPointF(at)), {}, QPoint(0, 120 * notches), Qt::NoButton, modifiers, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(widget, &event);
}

} // namespace

void TestLayoutView::listAndSelectionAgree()
{
    Shown shown(exampleAnalysis("wide_mlp"));
    QCOMPARE(shown.selection.array(), QString("layers.0.w")); // the first parameter
    QCOMPARE(shown.list()->currentIndex().data().toString(), QString("layers.0.w"));

    shown.selection.setArray("layers.1.w"); // as another view does
    QCOMPARE(shown.title(), QString("layers.1.w: 8192x8192 P(None, 'model')"));
    QCOMPARE(shown.list()->currentIndex().data().toString(), QString("layers.1.w"));

    const QModelIndex below = shown.list()->indexBelow(shown.list()->currentIndex());
    shown.list()->scrollTo(below);
    QTest::mouseClick(shown.list()->viewport(), Qt::LeftButton, {}, shown.list()->visualRect(below).center());
    QCOMPARE(shown.selection.array(), QString("layers.1.b"));
    QCOMPARE(shown.title(), QString("layers.1.b: 8192 P('model',)"));

    shown.selection.setArray("add(x, ..)"); // no array: what is shown stays
    QCOMPARE(shown.title(), QString("layers.1.b: 8192 P('model',)"));
}

void TestLayoutView::columnsFitTheList()
{
    Shown shown(exampleAnalysis("wide_mlp"));
    QTreeView* list = shown.list();
    for (const int width : {180, 240, 300, 420, 700}) {
        list->parentWidget()->setFixedWidth(width);
        QCoreApplication::processEvents();
        QCOMPARE(list->header()->length(), list->viewport()->width());
        QVERIFY(list->columnWidth(0) >= 60 && list->columnWidth(1) >= 40);
    }
    for (int column = 0; column < 4; ++column)
        QVERIFY(!list->isColumnHidden(column)); // there is room for all by now
}

void TestLayoutView::filterByKeyboard()
{
    Shown shown(exampleAnalysis("wide_mlp"));
    shown.view.activateWindow();
    shown.filter()->setFocus();
    const qsizetype all = shown.visibleArrays().size();
    QTest::keyClicks(shown.filter(), "2.w");
    QStringList names = shown.visibleArrays();
    QVERIFY(!names.isEmpty() && names.size() < all);
    for (const QString& name : names)
        QVERIFY(name.contains("2.w"));
    QCOMPARE(shown.selection.array(), QString("layers.0.w")); // hiding the row that is current chooses nothing

    shown.filter()->clear();
    QTest::keyClicks(shown.filter(), "gradients"); // the name of a group
    names = shown.visibleArrays();
    QVERIFY(names.contains("grad.layers.0.w") && !names.contains("layers.0.w"));
    shown.filter()->clear();
    QTest::keyClicks(shown.filter(), "'model'"); // what splits it
    QVERIFY(shown.visibleArrays().contains("layers.1.w"));
    QVERIFY(!shown.visibleArrays().contains("layers.0.w"));
    shown.filter()->clear();
    QCOMPARE(shown.visibleArrays().size(), all);
    QCOMPARE(shown.list()->currentIndex().data().toString(), QString("layers.0.w"));
    QTest::keyClick(shown.filter(), Qt::Key_Down); // into the list
    QVERIFY(shown.list()->hasFocus());
    QTest::keyClick(shown.list(), Qt::Key_Down);
    QCOMPARE(shown.selection.array(), QString("layers.0.b"));
    QTest::keyClick(shown.list(), Qt::Key_F, Qt::ControlModifier);
    QVERIFY(shown.filter()->hasFocus());
}

void TestLayoutView::clickSelectsDevices()
{
    Shown shown(exampleAnalysis("wide_mlp"));
    shown.selection.setArray("layers.1.w"); // two pieces with four copies each
    shown.click("shard:1");
    QCOMPARE(shown.selection.devices(), (std::set<DeviceId>{1, 3, 5, 7}));
    const auto accents = [&] {
        const auto& items = shown.picture()->picture().items;
        return std::count_if(items.begin(), items.end(), [](const DisplayItem& item) {
            const auto* rect = std::get_if<RectShape>(&item.shape);
            return rect != nullptr && rect->style.outline == Paint(ColourRole::Accent);
        });
    };
    QCOMPARE(accents(), std::ptrdiff_t{1});
    shown.click("shard:0", Qt::ControlModifier);
    QCOMPARE(shown.selection.devices().size(), std::size_t{8});
    QCOMPARE(accents(), std::ptrdiff_t{2});
    shown.click("shard:1", Qt::ControlModifier); // takes them away again
    QCOMPARE(shown.selection.devices(), (std::set<DeviceId>{0, 2, 4, 6}));
    QTest::mouseClick(shown.picture(), Qt::LeftButton, {}, QPoint(1, 1));
    QVERIFY(shown.selection.devices().empty());
    QCOMPARE(accents(), std::ptrdiff_t{0});
}

void TestLayoutView::piecesByKeyboard()
{
    Shown shown(exampleAnalysis("wide_mlp"));
    shown.selection.setArray("layers.1.w");
    shown.picture()->setFocus();
    QTest::keyClick(shown.picture(), Qt::Key_Right);
    QTest::keyClick(shown.picture(), Qt::Key_Right);
    QVERIFY(shown.label("The piece under the pointer")->text().startsWith("[0:8192, 4096:8192]"));
    QTest::keyClick(shown.picture(), Qt::Key_Return);
    QCOMPARE(shown.selection.devices(), (std::set<DeviceId>{1, 3, 5, 7}));
}

void TestLayoutView::pixelsHaveTheDevicesColours_data()
{
    QTest::addColumn<int>("theme");
    QTest::newRow("light") << static_cast<int>(Theme::Light);
    QTest::newRow("dark") << static_cast<int>(Theme::Dark);
}

void TestLayoutView::pixelsHaveTheDevicesColours()
{
    QFETCH(int, theme);
    const auto analysis = exampleAnalysis("wide_mlp", {"sharding.layers.1.w=P('data', 'model')"});
    Shown shown(analysis);
    shown.selection.setArray("layers.1.w");
    shown.view.setPalette(paletteOf(static_cast<Theme>(theme))); // at run time
    const QImage image = shown.picture()->grab().toImage();
    const DeviceColours colours(analysis->mesh());
    for (DeviceId device = 0; device < 8; ++device) {
        const QByteArray id = "shard:" + QByteArray::number(device); // the cells are the devices in order
        const DisplayList& list = shown.picture()->picture();
        const auto item
            = std::find_if(list.items.begin(), list.items.end(), [&](const DisplayItem& i) { return i.id == id.toStdString(); });
        QVERIFY(item != list.items.end());
        const QRectF frame = frameOf(*item);
        const QPoint corner
            = shown.picture()->placeOf(id) - QPointF(frame.width() / 2.0 - 5.0, frame.height() / 2.0 - 5.0).toPoint();
        QCOMPARE(image.pixelColor(corner * image.devicePixelRatio()).rgb(), qtColour(colours.of(device)).rgb());
    }
    QCOMPARE(image.pixelColor(1, 1).rgb(), qtColour(ColourRole::Background, static_cast<Theme>(theme)).rgb());
}

void TestLayoutView::hoverShowsThePiece()
{
    Shown shown(exampleAnalysis("wide_mlp"));
    shown.selection.setArray("layers.1.w");
    QVERIFY(shown.label("The piece under the pointer")->accessibleDescription().startsWith("Click to select"));
    const QPoint place = shown.picture()->placeOf("shard:1");
    moveTo(shown.picture(), place);
    const QStringList told = shown.label("The piece under the pointer")->accessibleDescription().split("  ·  ");
    const QStringList piece = {"[0:8192, 4096:8192]", "TPU 1,3,5,7", "4 copies", "128 MiB"}; // the name and the spec stand above
    QCOMPARE(told, piece);
    QHelpEvent help(QEvent::ToolTip, place, shown.picture()->mapToGlobal(place));
    QCoreApplication::sendEvent(shown.picture(), &help);
    QCOMPARE(QToolTip::text(), "layers.1.w[0:8192, 4096:8192]\nP(None, 'model')\nTPU 1,3,5,7\n4 copies\n128 MiB");
}

void TestLayoutView::factsAndReason()
{
    Shown shown(exampleAnalysis("wide_mlp"));
    shown.selection.setArray("layers.1.w");
    const auto facts = [&] { return shown.label("Shape, shards, bytes and copies")->text(); };
    QCOMPARE(facts(), QString("parameter  ·  8192x8192 f32  ·  8192x4096 a device, 128 MiB  ·  4\u00a0copies of each shard"));
    QVERIFY(shown.label("Why the array is sharded this way")->text().startsWith("Asked for at <a href=\"sharding.layers.1.w\">"));
    shown.selection.setArray("layers.0.w");
    QVERIFY(facts().endsWith("whole on each device, 24.5 MiB  ·  8\u00a0copies"));
    QCOMPARE(shown.label("Why the array is sharded this way")->text(), QString("Nothing splits it: no annotation reaches it."));
    shown.selection.setArray("act.layers.2.product");
    QVERIFY(shown.label("Why the array is sharded this way")->text().startsWith("Follows from others: dim 0 by data, from x"));

    Shown partial(programAnalysis("a=4,b=2", "8x8xf32", R"([{"a"}, {}], unreduced={"b"})"));
    QCOMPARE(partial.label("Shape, shards, bytes and copies")->text(),
        QString("activation  ·  8x8 f32  ·  2x8 a device, 64 B  ·  no copies  ·  partial sums over b: 2 of them make one value"));
    QVERIFY(partial.texts().contains("hatched: partial sums over b"));
    QCOMPARE(partial.view.command(),
        QString("meshwright show --mesh a=4,b=2 --shape 8x8 --spec \"P('a',)\" --platform device --name x  # partial sums "
                "over b "
                "are not drawn"));

    Shown uneven(unevenAnalysis("a=4", {10, 8}, "P('a')"));
    QVERIFY(uneven.label("Shape, shards, bytes and copies")->text().contains("3x8 a device, 96 B  ·  uneven: "));
    QVERIFY(uneven.view.command().endsWith(" --pad"));
}

void TestLayoutView::linkAsksForTheSpec()
{
    Shown shown(exampleAnalysis("wide_mlp"));
    shown.selection.setArray("layers.1.w");
    QSignalSpy requested(&shown.view, &LayoutView::specRequested);
    QLabel* reason = shown.label("Why the array is sharded this way");
    reason->setFocus(Qt::TabFocusReason);
    QTest::keyClick(reason, Qt::Key_Tab);
    QTest::keyClick(reason, Qt::Key_Return);
    QCOMPARE(requested.count(), 1);
    QCOMPARE(requested.at(0).at(0).toString(), QString("sharding.layers.1.w"));
}

void TestLayoutView::aReshardIsPlanned_data()
{
    QTest::addColumn<QString>("spec");
    QTest::addColumn<QString>("says"); ///< empty: nothing

    QTest::newRow("other dimension") << "P('model', None)"
                                     << "all-to-all over model, 128 MiB. In all 128 MiB per device in ";
    QTest::newRow("whole") << "P()"
                           << "all-gather over model";
    QTest::newRow("the same") << "P(None, 'model')"
                              << "Nothing moves";
    QTest::newRow("unknown axis") << "P('expert')"
                                  << "unknown axis name: \"expert\"";
    QTest::newRow("half typed") << "P(None, 'mo"
                                << "";
    QTest::newRow("none") << ""
                          << "";
}

void TestLayoutView::aReshardIsPlanned()
{
    QFETCH(QString, spec);
    QFETCH(QString, says);
    Shown shown(exampleAnalysis("wide_mlp"));
    shown.selection.setArray("layers.1.w");
    shown.view.findChild<SpecEdit*>()->setText(spec);
    const QLabel* way = shown.label("What the reshard moves");
    QCOMPARE(way->isVisible(), !says.isEmpty());
    QVERIFY2(says.isEmpty() || way->text().startsWith(says), qPrintable(way->text()));
    shown.selection.setArray("layers.1.b");
    QVERIFY(!way->isVisible());
}

void TestLayoutView::keepsTheArrayThroughEdits()
{
    Shown shown(exampleAnalysis("wide_mlp"));
    shown.selection.setArray("layers.1.w");
    shown.view.setAnalysis(exampleAnalysis("wide_mlp", {"mesh.data=2", "mesh.model=4"}));
    QCOMPARE(shown.title(), QString("layers.1.w: 8192x8192 P(None, 'model')"));
    QVERIFY(shown.texts().join(' ').contains("TPU 3,7"));
    QCOMPARE(shown.list()->currentIndex().data().toString(), QString("layers.1.w"));
    shown.selection.setArray("layers.3.w");
    shown.view.setAnalysis(exampleAnalysis("digits")); // which has three layers
    QCOMPARE(shown.selection.array(), QString("layers.0.w"));
    QCOMPARE(shown.title(), QString("layers.0.w: 64x256 P()"));
}

void TestLayoutView::staleStudyIsPale()
{
    Shown shown(exampleAnalysis("wide_mlp"));
    shown.selection.setArray("layers.1.w");
    QLabel* stale = shown.label("Why the layout is not up to date");
    QVERIFY(stale->isHidden());
    QCoreApplication::processEvents(); // the facts of another array may need another line
    const QImage good = shown.picture()->grab().toImage();
    shown.view.setAnalysis(exampleAnalysis("wide_mlp", {"sharding.x=P('expert')"}));
    QVERIFY(stale->isVisible());
    QVERIFY2(stale->text().contains("last good state") && stale->text().contains("expert"), qPrintable(stale->text()));
    QCOMPARE(shown.title(), QString("layers.1.w: 8192x8192 P(None, 'model')"));
    QVERIFY(shown.picture()->grab().toImage() != good);
    shown.view.setAnalysis(exampleAnalysis("wide_mlp"));
    QVERIFY(stale->isHidden());
    QTRY_COMPARE(shown.picture()->grab().toImage(), good); // once the line has given its room back

    Shown never(exampleAnalysis("wide_mlp", {"sharding.x=P('expert')"})); // from the start
    QVERIFY(never.label("Why the layout is not up to date")->isVisible());
    QVERIFY(never.picture()->picture().items.empty());
    QVERIFY(never.view.picture().items.empty());
}

void TestLayoutView::slicesOfThreeDimensions()
{
    const auto analysis = programAnalysis("a=2,b=2,c=2", "4x6x8xf32", R"([{"a"}, {"b"}, {"c"}])");
    QVERIFY2(analysis->built, describe(analysis->problems).c_str());
    Shown shown(analysis);
    QVERIFY(shown.texts().contains("x[0:2, :, :]"));
    QVERIFY(shown.texts().contains("device 0"));
    QVERIFY(!shown.texts().contains("device 4"));
    auto* slider = shown.view.findChild<QSlider*>("slice0");
    QVERIFY(slider != nullptr && slider->isVisible());
    slider->setFocus();
    QTest::keyClick(slider, Qt::Key_Right);
    QVERIFY(shown.texts().contains("x[2:4, :, :]"));
    for (const char* device : {"device 4", "device 5", "device 6", "device 7"})
        QVERIFY2(shown.texts().contains(device), device);
    shown.click("shard:4");
    QCOMPARE(shown.selection.devices(), std::set<DeviceId>{4});
    // Back to two dimensions there is nothing to choose.
    shown.view.setAnalysis(exampleAnalysis("wide_mlp"));
    QVERIFY(
        shown.view.findChildren<QComboBox*>().front()->isHidden() || !shown.view.findChildren<QComboBox*>().front()->isVisible());
}

void TestLayoutView::rowsAndColumnsChangePlaces()
{
    Shown shown(programAnalysis("a=2,b=2,c=2", "4x6x8xf32", R"([{"a"}, {"b"}, {"c"}])"));
    const auto combos = shown.view.findChildren<QComboBox*>();
    QCOMPARE(combos.size(), qsizetype{2});
    QCOMPARE(combos[0]->currentText(), QString("dim 1: 6"));
    QCOMPARE(combos[1]->currentText(), QString("dim 2: 8"));
    QTest::keyClick(combos[0], Qt::Key_Up); // rows: dimension 0
    QVERIFY(shown.texts().contains("x[:, 0:3, :]"));
    QVERIFY(shown.view.findChild<QSlider*>("slice1") != nullptr);
    QTest::keyClick(combos[1], Qt::Key_Up);
    QTest::keyClick(combos[1], Qt::Key_Up); // columns: dimension 0 too, so rows become what columns were
    QCOMPARE(combos[1]->currentText(), QString("dim 0: 4"));
    QCOMPARE(combos[0]->currentText(), QString("dim 1: 6"));
    QVERIFY(shown.texts().contains("x[:, :, 0:4]"));
}

/// Of a long array it is the split dimensions that are rows and columns, until the user chooses others.
void TestLayoutView::whatIsSplitIsDrawn()
{
    Shown shown(programAnalysis("a=2,b=2", "4x6x8x10xf32", R"([{"a"}, {}, {"b"}, {}])"));
    const auto combos = shown.view.findChildren<QComboBox*>();
    QCOMPARE(combos[0]->currentText(), QString("dim 0: 4"));
    QCOMPARE(combos[1]->currentText(), QString("dim 2: 8"));
    shown.view.setAnalysis(programAnalysis("a=2,b=2", "4x6x8x10xf32", R"([{}, {}, {"b"}, {"a"}])"));
    QCOMPARE(combos[0]->currentText(), QString("dim 2: 8"));
    QCOMPARE(combos[1]->currentText(), QString("dim 3: 10"));
    QTest::keyClick(combos[0], Qt::Key_Up); // dimension 1
    shown.view.setAnalysis(programAnalysis("a=2,b=2", "4x6x8x10xf32", R"([{"a"}, {}, {"b"}, {}])"));
    QCOMPARE(combos[0]->currentText(), QString("dim 1: 6"));
}

/// The list is as wide as its names and specs, and never takes the picture's half.
void TestLayoutView::theListHasRoomForNames()
{
    Shown shown(exampleAnalysis("transformer_64"));
    shown.view.resize(1200, 600);
    QCoreApplication::processEvents();
    QTreeView* list = shown.list();
    for (const int column : {0, 1})
        QVERIFY(list->columnWidth(column) >= list->sizeHintForIndex(list->currentIndex().siblingAtColumn(column)).width());
    QVERIFY(list->width() >= 340); // "layers.attention.norm.scale" and its spec
    shown.view.resize(700, 600);
    QCoreApplication::processEvents();
    QVERIFY2(2 * list->width() <= shown.view.width(), qPrintable(QString::number(list->width())));
    QVERIFY(list->columnWidth(0) > list->columnWidth(1)); // specs are elided first
}

void TestLayoutView::zooms()
{
    Shown shown(exampleAnalysis("wide_mlp"));
    shown.selection.setArray("layers.1.w");
    const double fitted = shown.picture()->picture().width;
    const QPoint at = shown.picture()->placeOf("shard:1");
    turnWheel(shown.picture(), at, 1, Qt::NoModifier);
    QCOMPARE(shown.area()->zoom(), 1.0);
    turnWheel(shown.picture(), at, 4, Qt::ControlModifier);
    QCOMPARE(shown.area()->zoom(), 1.25 * 1.25 * 1.25 * 1.25);
    QVERIFY(shown.picture()->picture().width > 2.0 * fitted);
    const QPoint now = shown.picture()->placeOf("shard:1") + shown.picture()->pos(); // what was under the pointer still is
    QVERIFY2((now - at).manhattanLength() <= 3, qPrintable(QString("%1, %2").arg(now.x() - at.x()).arg(now.y() - at.y())));
    shown.picture()->setFocus();
    QTest::keyClick(shown.picture(), Qt::Key_Minus);
    QCOMPARE(shown.area()->zoom(), 1.25 * 1.25 * 1.25);
    QTest::keyClick(shown.picture(), Qt::Key_Plus);
    QTest::keyClick(shown.picture(), Qt::Key_0);
    QCOMPARE(shown.area()->zoom(), 1.0);
    QCOMPARE(shown.picture()->picture().width, fitted);
    for (QToolButton* button : shown.view.findChildren<QToolButton*>()) {
        if (button->text() == "+")
            QTest::mouseClick(button, Qt::LeftButton);
    }
    QCOMPARE(shown.area()->zoom(), 1.25);
    for (int i = 0; i < 40; ++i)
        shown.area()->zoomIn();
    QCOMPARE(shown.area()->zoom(), PictureArea::kLargestZoom);
}

void TestLayoutView::fitsItsRoom_data()
{
    QTest::addColumn<QSize>("size");
    QTest::newRow("small") << QSize(620, 420);
    QTest::newRow("usual") << QSize(900, 600);
    QTest::newRow("large") << QSize(1800, 950);
    QTest::newRow("tall") << QSize(640, 900);
}

/// Without zoom there is nothing to scroll, and what there is uses the room one way at least.
void TestLayoutView::fitsItsRoom()
{
    QFETCH(QSize, size);
    Shown shown(exampleAnalysis("wide_mlp"), size);
    for (const char* array : {"layers.0.w", "layers.1.w", "x", "act.layers.2.product", "grad.layers.3.w"}) {
        shown.selection.setArray(array);
        const DisplayList& list = shown.picture()->picture();
        const QSizeF room = shown.area()->wantedSize();
        QVERIFY2(list.width <= room.width() + 1.0 && list.height <= room.height() + 1.0,
            qPrintable(QString("%1: %2 x %3 in %4 x %5")
                           .arg(array)
                           .arg(list.width)
                           .arg(list.height)
                           .arg(room.width())
                           .arg(room.height())));
        QVERIFY2(list.width > 0.85 * room.width() || list.height > 0.85 * room.height(), array);
        QVERIFY(!shown.area()->horizontalScrollBar()->isVisible());
        QVERIFY(!shown.area()->verticalScrollBar()->isVisible());
    }
}

void TestLayoutView::everyArrayOfEveryExample_data()
{
    QTest::addColumn<QString>("example");
    for (const QFileInfo& file :
        QDir(QString::fromStdString((resourcesDirectory() / "examples").string())).entryInfoList({"*.yaml"}))
        QTest::newRow(qPrintable(file.baseName())) << file.baseName();
}

void TestLayoutView::everyArrayOfEveryExample()
{
    QFETCH(QString, example);
    const auto analysis = exampleAnalysis(example);
    QVERIFY(!analysis->arrays.empty());
    Shown shown(analysis);
    for (const sim::ProgramArray& array : analysis->arrays) {
        shown.selection.setArray(QString::fromStdString(array.name));
        QVERIFY2(shown.title().startsWith(QString::fromStdString(array.name)), array.name.c_str());
        QVERIFY(!shown.picture()->picture().items.empty());
        if (analysis->mesh().deviceCount() <= 1024) { // of more it takes minutes to go through all items
            std::set<DeviceId> holders;
            const auto layout = layoutOf(array.type.shape, array.sharding, analysis->mesh());
            for (const DisplayItem& item : shown.picture()->picture().items) {
                if (!item.id.empty())
                    holders.merge(devicesUnder(layout, {}, item.id));
            }
            // Of three dimensions and more a cut is shown, which need not go through every device's piece.
            if (array.type.shape.size() <= 2)
                QCOMPARE(static_cast<std::int64_t>(holders.size()), analysis->mesh().deviceCount());
            QVERIFY(!holders.empty());
        }
        QVERIFY(shown.view.command().startsWith("meshwright show --mesh "));
        QVERIFY(!shown.view.picture().title.empty());
    }
}

void TestLayoutView::commands_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("type");
    QTest::addColumn<QString>("sharding");
    QTest::addColumn<QString>("command");

    QTest::newRow("matrix")
        << "data=4,model=2"
        << "8192x8192xf32"
        << R"([{"data"}, {"model"}])"
        << "meshwright show --mesh data=4,model=2 --shape 8192x8192 --spec \"P('data', 'model')\" --platform device "
           "--name x";
    QTest::newRow("vector of bf16")
        << "a=4"
        << "16xbf16"
        << R"([{"a"}])"
        << "meshwright show --mesh a=4 --shape 16 --spec \"P('a',)\" --dtype bf16 --platform device --name x";
    QTest::newRow("scalar") << "a=4"
                            << "f32"
                            << R"([])"
                            << "meshwright show --mesh a=4 --shape scalar --spec 'P()' --platform device --name x";
    QTest::newRow("part of an axis")
        << "a=8"
        << "16x4xf32"
        << R"([{"a":(2)2}, {}])"
        << "meshwright show --mesh a_0=2,a_1=2,a_2=2 --shape 16x4 --spec \"P('a_1',)\" --platform device "
           "--name x";
}

void TestLayoutView::commands()
{
    QFETCH(QString, mesh);
    QFETCH(QString, type);
    QFETCH(QString, sharding);
    const auto analysis = programAnalysis(mesh, type, sharding);
    QVERIFY2(analysis->built, describe(analysis->problems).c_str());
    QVERIFY(analysis->findArray("x") != nullptr);
    Shown shown(analysis);
    QTEST(shown.view.command(), "command");
}

MESHWRIGHT_TEST(TestLayoutView)

} // namespace tst_layout_view

#include "tst_layout_view.moc"
