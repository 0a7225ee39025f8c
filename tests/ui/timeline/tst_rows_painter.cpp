// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/test_class.h"
#include "tests/ui/timeline/timelines.h"
#include "ui/theme/theme.h"
#include "ui/timeline/minimap.h"
#include "ui/timeline/rows_painter.h"
#include "ui/timeline/timeline_colours.h"

namespace tst_rows_painter {

using namespace meshwright;
using ui::RowsPainter;
using ui::RowsPicture;
using ui::RowsScene;

/// Pixels of the rows: colours, edges, hatches, folded slices, names, in both themes and at two scales.
class TestRowsPainter : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void slicesHaveTheirColours_data();
    void slicesHaveTheirColours();
    void everyPixelIsWritten();
    void waitingIsHatched();
    void foldedSlicesAreStriped();
    void namesOnlyWhereTheyFit();
    void namesComeOverSeveralPictures();
    void scrollingMovesRows();
    void collapsedRowsAreGone();
    void equalScenesGiveEqualPictures();
    void minimapShowsEveryGroup();
};

namespace {

RowsScene sceneOf(std::shared_ptr<const ui::TimelineModel> model, double ratio = 1.0, Theme theme = Theme::Light)
{
    RowsScene scene;
    scene.axis = ui::TimeAxis(*model, false);
    scene.layout = ui::RowLayout(*model, {}, false, 200.0);
    scene.window = scene.axis.whole();
    scene.size = QSize(ui::kGutterWidth + 400, 200);
    scene.ratio = ratio;
    scene.theme = theme;
    scene.model = std::move(model);
    return scene;
}

RowsPicture pictureOf(const RowsScene& scene, int newLabels = RowsPainter::kNewLabelsAtOnce)
{
    RowsPainter painter;
    RowsPicture picture;
    painter.paint(scene, picture, newLabels);
    return picture;
}

/// The pixel at a moment of a row, near the row's lower edge, where there is no text.
QRgb pixelAt(const RowsScene& scene, const RowsPicture& picture, std::size_t line, double seconds, double fromBottom = 2.5)
{
    const double y = scene.layout.lines()[line].bottom() - scene.scrolled - fromBottom;
    return picture.image.pixel(static_cast<int>(scene.x(seconds) * scene.ratio), static_cast<int>(std::floor(y * scene.ratio)));
}

QRgb colour(ColourRole role, Theme theme)
{
    return ui::qtColour(role, theme).rgb();
}

/// Compute 0 to 100, all-reduce 100 to 200, nothing to 300, waiting 300 to 400; on the row below all-gather over everything.
std::shared_ptr<const ui::TimelineModel> fourParts()
{
    return test::modelOf({test::timelineOf(Clock::Wall, 2,
        {{0, 0.0, 100.0, SliceCategory::Compute, "a"}, {0, 100.0, 100.0, SliceCategory::AllReduce, "b"},
            {0, 300.0, 100.0, SliceCategory::Wait, "c"}, {1, 0.0, 400.0, SliceCategory::AllGather, "d"}})});
}

int inked(const QImage& image, QRect area, QRgb ink)
{
    int count = 0;
    for (int y = area.top(); y <= area.bottom(); ++y) {
        for (int x = area.left(); x <= area.right(); ++x)
            count += image.pixel(x, y) == ink ? 1 : 0;
    }
    return count;
}

} // namespace

void TestRowsPainter::slicesHaveTheirColours_data()
{
    QTest::addColumn<double>("ratio");
    QTest::addColumn<int>("themeNumber");
    for (const double ratio : {1.0, 1.5, 2.0}) {
        for (const Theme theme : {Theme::Light, Theme::Dark})
            QTest::addRow("%g %s", ratio, theme == Theme::Light ? "light" : "dark") << ratio << static_cast<int>(theme);
    }
}

void TestRowsPainter::slicesHaveTheirColours()
{
    QFETCH(double, ratio);
    QFETCH(int, themeNumber);
    const auto theme = static_cast<Theme>(themeNumber);
    const RowsScene scene = sceneOf(fourParts(), ratio, theme);
    const RowsPicture picture = pictureOf(scene);
    QCOMPARE(picture.image.size(), (QSizeF(scene.size) * ratio).toSize());
    QCOMPARE(pixelAt(scene, picture, 1, 50.0), colour(ColourRole::Compute, theme));
    QCOMPARE(pixelAt(scene, picture, 1, 150.0), colour(ColourRole::AllReduce, theme));
    QCOMPARE(pixelAt(scene, picture, 1, 250.0), colour(ColourRole::Background, theme));
    QCOMPARE(pixelAt(scene, picture, 2, 250.0), colour(ColourRole::AllGather, theme));
    // One pixel of background keeps neighbours apart.
    QCOMPARE(pixelAt(scene, picture, 1, 99.5), colour(ColourRole::Background, theme));
    QCOMPARE(pixelAt(scene, picture, 1, 98.0), colour(ColourRole::Compute, theme));
    QCOMPARE(pixelAt(scene, picture, 1, 100.5), colour(ColourRole::AllReduce, theme));
    // Beside and below the rows.
    QCOMPARE(picture.image.pixel(0, picture.image.height() - 1), colour(ColourRole::Surface, theme));
    QCOMPARE(picture.image.pixel(picture.image.width() - 1, picture.image.height() - 1), colour(ColourRole::Background, theme));
    QCOMPARE(picture.rows.size(), std::size_t{2});
    QCOMPARE(picture.rows[0].slices.size(), std::size_t{3});
    QVERIFY(picture.rowOf(1) && picture.rowOf(2) && !picture.rowOf(0));
}

void TestRowsPainter::everyPixelIsWritten()
{
    const RowsScene scene = sceneOf(fourParts(), 1.5);
    RowsPainter painter;
    RowsPicture picture;
    picture.image = QImage((QSizeF(scene.size) * 1.5).toSize(), QImage::Format_RGB32);
    picture.image.fill(Qt::magenta);
    painter.paint(scene, picture);
    QCOMPARE(inked(picture.image, picture.image.rect(), QColor(Qt::magenta).rgb()), 0);
}

void TestRowsPainter::waitingIsHatched()
{
    const RowsScene scene = sceneOf(fourParts());
    const RowsPicture picture = pictureOf(scene);
    const ui::TimelineColours colours = ui::timelineColours(Theme::Light);
    const ui::LayoutLine& line = scene.layout.lines()[1];
    const QRect wait(ui::kGutterWidth + 310, static_cast<int>(line.top), 80, static_cast<int>(line.height));
    const auto index = static_cast<std::size_t>(SliceCategory::Wait);
    QVERIFY(inked(picture.image, wait, colours.hatch[index]) > wait.width() * wait.height() / 12);
    QVERIFY(inked(picture.image, wait, colours.solid[index]) > wait.width() * wait.height() / 3);
    const QRect compute(ui::kGutterWidth + 70, static_cast<int>(line.top), 25, static_cast<int>(line.height));
    QCOMPARE(inked(picture.image, compute, colours.solid[0]), compute.width() * compute.height());
}

void TestRowsPainter::foldedSlicesAreStriped()
{
    const auto model = test::modelOf({test::randomTimeline({.rows = 1, .slices = 20000, .gapShare = 0.0})});
    const RowsScene scene = sceneOf(model);
    const RowsPicture picture = pictureOf(scene);
    QVERIFY(picture.rows[0].slices.empty());
    const ui::LayoutLine& line = scene.layout.lines()[1];
    std::set<QRgb> down;
    for (double y = line.top + 1.0; y < line.bottom(); y += 1.0)
        down.insert(picture.image.pixel(ui::kGutterWidth + 200, static_cast<int>(y)));
    QCOMPARE(down.size(), std::size_t{2}); // its shade, and the stripe
}

void TestRowsPainter::namesOnlyWhereTheyFit()
{
    const auto model = test::modelOf({test::timelineOf(Clock::Wall, 2,
        {{0, 0.0, 200.0, SliceCategory::Compute, "short"},
            {0, 200.0, 50.0, SliceCategory::Compute, "a_very_long_name_that_does_not_fit"},
            {1, 0.0, 400.0, SliceCategory::Compute, "x"}})});
    const RowsScene scene = sceneOf(model);
    const RowsPicture picture = pictureOf(scene);
    const QRgb fill = ui::timelineColours(Theme::Light).solid[0];
    const ui::LayoutLine& line = scene.layout.lines()[1];
    const auto area = [&](int left, int width) {
        return QRect(ui::kGutterWidth + left, static_cast<int>(line.top), width, static_cast<int>(line.height));
    };
    QVERIFY(inked(picture.image, area(0, 199), fill) < 199 * static_cast<int>(line.height) - 50);
    QCOMPARE(inked(picture.image, area(200, 49), fill), 49 * static_cast<int>(line.height));
    QCOMPARE(ui::labelTexts("all_reduce grad.w"), (std::vector<std::string>{"all_reduce grad.w", "grad.w", "all_reduce"}));
    QCOMPARE(ui::labelTexts("fused h (3 ops)"), (std::vector<std::string>{"fused h (3 ops)", "h", "fused"}));
    QCOMPARE(ui::labelTexts("wait for grad.w"), (std::vector<std::string>{"wait for grad.w", "wait"}));
    QCOMPARE(ui::labelTexts("floor(act.h1, ..)"), (std::vector<std::string>{"floor(act.h1, ..)", "floor"}));
    QCOMPARE(ui::labelTexts("layers.0.w"), (std::vector<std::string>{"layers.0.w"}));
}

void TestRowsPainter::namesComeOverSeveralPictures()
{
    const RowsScene scene = sceneOf(fourParts());
    RowsPainter painter;
    RowsPicture picture;
    painter.paint(scene, picture, 1);
    QVERIFY(!picture.hasAllLabels);
    painter.paint(scene, picture, 1);
    painter.paint(scene, picture, 1);
    painter.paint(scene, picture, 1);
    QVERIFY(picture.hasAllLabels);
    QCOMPARE(picture.image, pictureOf(scene).image);
}

void TestRowsPainter::scrollingMovesRows()
{
    RowsScene scene = sceneOf(fourParts());
    scene.scrolled = 30.0;
    const RowsPicture picture = pictureOf(scene);
    QCOMPARE(pixelAt(scene, picture, 1, 50.0), colour(ColourRole::Compute, Theme::Light));
    QCOMPARE(pixelAt(scene, picture, 2, 250.0), colour(ColourRole::AllGather, Theme::Light));
    scene.scrolled = 10000.0;
    QVERIFY(pictureOf(scene).rows.empty());
}

void TestRowsPainter::collapsedRowsAreGone()
{
    RowsScene scene = sceneOf(fourParts());
    scene.collapsed = {0};
    scene.layout = ui::RowLayout(*scene.model, scene.collapsed, false, 200.0);
    const RowsPicture picture = pictureOf(scene);
    QVERIFY(picture.rows.empty());
    QCOMPARE(inked(picture.image, picture.image.rect(), colour(ColourRole::Compute, Theme::Light)), 0);
}

void TestRowsPainter::equalScenesGiveEqualPictures()
{
    RowsScene scene = sceneOf(test::modelOf({test::randomTimeline({.rows = 8, .slices = 300})}));
    scene.window = {1e-5, 4e-5};
    RowsPainter painter;
    RowsPicture picture;
    painter.paint(scene, picture);
    RowsScene other = scene;
    other.window = {0.0, 1e-5};
    painter.paint(other, picture);
    painter.paint(scene, picture);
    QCOMPARE(picture.image, pictureOf(scene).image);
}

void TestRowsPainter::minimapShowsEveryGroup()
{
    const auto model = test::modelOf({test::timelineOf(Clock::Simulated, 2, {{0, 0.0, 10.0, SliceCategory::Compute}}),
        test::timelineOf(Clock::Wall, 128,
            {{4, 0.0, 20.0, SliceCategory::AllGather}, {5, 0.0, 20.0, SliceCategory::AllGather},
                {6, 0.0, 20.0, SliceCategory::AllGather}, {7, 0.0, 20.0, SliceCategory::AllGather}})});
    const ui::TimeAxis axis(*model, false);
    const QImage image = ui::minimapImage(*model, axis, Theme::Dark, QSize(200, 65));
    QVERIFY(inked(image, QRect(0, 0, 100, 65), colour(ColourRole::Compute, Theme::Dark)) >= 99);
    QCOMPARE(inked(image, QRect(101, 0, 99, 65), colour(ColourRole::Compute, Theme::Dark)), 0);
    QVERIFY(inked(image, QRect(101, 0, 99, 65), colour(ColourRole::AllGather, Theme::Dark)) >= 99);
    QVERIFY(!ui::minimapImage({}, axis, Theme::Dark, QSize(20, 20)).isNull());
}

MESHWRIGHT_TEST(TestRowsPainter)

} // namespace tst_rows_painter

#include "tst_rows_painter.moc"
