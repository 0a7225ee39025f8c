// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/test_class.h"
#include "ui/theme/theme.h"
#include "ui/widgets/painter.h"
#include "ui/widgets/picture_export.h"
#include "ui/widgets/view.h"

namespace tst_painter {

using namespace meshwright;

/// A picture on screen has the shapes and colours that its display list says, and files carry the same.
class TestPainter : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void shapesHaveTheirColours();
    void textIsWhereItsAnchorSays();
    void exportsByEnding_data();
    void exportsByEnding();
    void refusesOtherEndings();
    void refusesHugePictures();
    void themesDiffer();
    void wordsAreQuoted();
    void sentencesHaveTheirSigns_data();
    void sentencesHaveTheirSigns();
};

namespace {

DisplayList onePicture()
{
    DisplayList list;
    list.width = 100;
    list.height = 60;
    list.title = "one picture";
    ShapeStyle filled;
    filled.fill = ColourRole::AllReduce;
    list.items.push_back({RectShape{{10, 10}, 30, 20, filled}});
    list.items.push_back({LineShape{{60, 5}, {60, 55}, ColourRole::Accent, 6.0}});
    return list;
}

QImage painted(const DisplayList& list, Theme theme)
{
    QImage image(static_cast<int>(list.width), static_cast<int>(list.height), QImage::Format_ARGB32);
    image.fill(Qt::magenta);
    QPainter painter(&image);
    ui::paint(painter, list, theme);
    return image;
}

} // namespace

void TestPainter::shapesHaveTheirColours()
{
    for (const Theme theme : {Theme::Light, Theme::Dark}) {
        const QImage image = painted(onePicture(), theme);
        QCOMPARE(image.pixel(20, 20), ui::qtColour(ColourRole::AllReduce, theme).rgb());
        QCOMPARE(image.pixel(60, 30), ui::qtColour(ColourRole::Accent, theme).rgb());
        QCOMPARE(image.pixel(90, 50), ui::qtColour(ColourRole::Background, theme).rgb());
    }
}

void TestPainter::textIsWhereItsAnchorSays()
{
    const auto inkedColumns = [](TextAnchor anchor) {
        DisplayList list;
        list.width = 200;
        list.height = 40;
        list.items.push_back({TextShape{{100, 20}, "layers.1.w", 14, anchor}});
        const QImage image = painted(list, Theme::Light);
        int first = image.width();
        int last = -1;
        for (int x = 0; x < image.width(); ++x) {
            for (int y = 0; y < image.height(); ++y) {
                if (qGray(image.pixel(x, y)) < 128) {
                    first = std::min(first, x);
                    last = std::max(last, x);
                }
            }
        }
        return std::pair(first, last);
    };
    const auto [startFirst, startLast] = inkedColumns(TextAnchor::Start);
    QVERIFY(startFirst >= 99 && startLast > 150);
    const auto [endFirst, endLast] = inkedColumns(TextAnchor::End);
    QVERIFY(endLast <= 101 && endFirst < 50);
    const auto [middleFirst, middleLast] = inkedColumns(TextAnchor::Middle);
    QVERIFY(std::abs((middleFirst + middleLast) / 2 - 100) <= 2);
}

void TestPainter::exportsByEnding_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QByteArray>("beginning");
    QTest::newRow("svg") << "picture.svg" << QByteArray("<svg ");
    QTest::newRow("png") << "picture.PNG" << QByteArray("\x89PNG");
    QTest::newRow("pdf") << "picture.pdf" << QByteArray("%PDF-");
}

void TestPainter::exportsByEnding()
{
    QFETCH(QString, name);
    QFETCH(QByteArray, beginning);
    const QTemporaryDir folder;
    const QString path = folder.filePath(name);
    QVERIFY(ui::exportPicture(onePicture(), Theme::Light, path));
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QVERIFY(file.readAll().startsWith(beginning));
    if (name.endsWith("PNG")) {
        const QImage image(path);
        QCOMPARE(image.size(), QSize(200, 120));
        QCOMPARE(image.pixel(40, 40), ui::qtColour(ColourRole::AllReduce, Theme::Light).rgb());
    }
}

void TestPainter::refusesOtherEndings()
{
    const QTemporaryDir folder;
    const auto result = ui::exportPicture(onePicture(), Theme::Light, folder.filePath("picture.bmp"));
    QVERIFY(!result);
    QCOMPARE(result.error().front().id, std::string("MW1801"));
}

void TestPainter::refusesHugePictures()
{
    const QTemporaryDir folder;
    DisplayList huge = onePicture();
    huge.width = 1e9;
    const auto result = ui::exportPicture(huge, Theme::Light, folder.filePath("picture.png"));
    QVERIFY(!result);
    QCOMPARE(result.error().front().id, std::string("MW1802"));
    QVERIFY(!QFile::exists(folder.filePath("picture.png")));
}

void TestPainter::themesDiffer()
{
    QCOMPARE(ui::themeOf(ui::paletteOf(Theme::Light)), Theme::Light);
    QCOMPARE(ui::themeOf(ui::paletteOf(Theme::Dark)), Theme::Dark);
}

void TestPainter::wordsAreQuoted()
{
    const sim::StudySource source{"", "my study.yaml", {"mesh.data=8", "sharding.x=P('data', None)"}};
    QCOMPARE(
        ui::studyArguments(source), QStringLiteral("'my study.yaml' --set mesh.data=8 --set \"sharding.x=P('data', None)\""));
    QCOMPARE(ui::shellQuoted("it's $5"), QStringLiteral("'it'\\''s $5'"));
}

void TestPainter::sentencesHaveTheirSigns_data()
{
    QTest::addColumn<std::string>("sentence");
    QTest::addColumn<QString>("shown");

    QTest::newRow("a change") << std::string("-50.0 s: each device multiplies less (8.01 PFLOP -> 952 TFLOP)")
                              << QString("\u221250.0 s: each device multiplies less (8.01 PFLOP \u2192 952 TFLOP)");
    QTest::newRow("inside") << std::string("+22.7 % compute; -11 % exposed reduce_scatter over fsdp")
                            << QString("+22.7 % compute; \u221211 % exposed reduce-scatter over fsdp");
    QTest::newRow("no minus") << std::string("act.layers.25-26 of v5e-64 takes 1e-05 s, 16-bit dot_general")
                              << QString("act.layers.25-26 of v5e-64 takes 1e-05 s, 16-bit dot_general");
}

void TestPainter::sentencesHaveTheirSigns()
{
    QFETCH(std::string, sentence);
    QFETCH(QString, shown);
    QCOMPARE(ui::shownSentence(sentence), shown);
}

MESHWRIGHT_TEST(TestPainter)

} // namespace tst_painter

#include "tst_painter.moc"
