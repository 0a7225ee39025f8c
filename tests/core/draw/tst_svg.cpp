// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/svg.h"
#include "tests/test_class.h"

#include <QXmlStreamReader>

namespace tst_svg {

using namespace meshwright;

class TestSvg : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void wholeDocument();
    void themes();
    void hatches();
    void invisible();
    void animations();
    void escaping_data();
    void escaping();
    void fragments();
    void classesHaveRules();
    void numbers_data();
    void numbers();
};

void TestSvg::wholeDocument()
{
    DisplayList list{120.0, 40.5, "a & b"};
    ShapeStyle style;
    style.fill = Colour{255, 0, 16};
    style.outline = Colour{0, 0, 0};
    list.items.push_back({RectShape{{1, 2}, 30, 10.25, style, 2.0}, "shard:0", "x[0:4]\n\"TPU 0\""});
    list.items.push_back({LineShape{{0, 0}, {5, 5}, Colour{1, 1, 1}, 1.5, true}});
    list.items.push_back({TextShape{{10, 20}, "0 < 1", 10.0, TextAnchor::Middle, Colour{2, 2, 2}, true}});
    list.items.push_back({PolygonShape{{{0, 0}, {4, 0}, {0, 4}}, style}, {}, "tip"});
    const std::string expected
        = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"120\" height=\"40.5\" viewBox=\"0 0 120 40.5\" role=\"img\" "
          "font-family=\"DejaVu Sans, Verdana, sans-serif\">\n"
          "<title>a &amp; b</title>\n"
          "<rect width=\"120\" height=\"40.5\" fill=\"#ffffff\"/>\n"
          "<g data-id=\"shard:0\"><title>x[0:4]\n&quot;TPU 0&quot;</title>\n"
          "<rect x=\"1\" y=\"2\" width=\"30\" height=\"10.25\" rx=\"2\" fill=\"#ff0010\" stroke=\"#000000\" "
          "stroke-width=\"1\"/>\n"
          "</g>\n"
          "<line x1=\"0\" y1=\"0\" x2=\"5\" y2=\"5\" stroke=\"#010101\" stroke-width=\"1.5\" stroke-dasharray=\"4 3\"/>\n"
          "<text x=\"10\" y=\"23.65\" font-size=\"10\" fill=\"#020202\" text-anchor=\"middle\" font-weight=\"bold\" "
          "xml:space=\"preserve\">0 &lt; 1</text>\n"
          "<g><title>tip</title>\n"
          "<polygon fill-rule=\"evenodd\" points=\"0,0 4,0 0,4\" fill=\"#ff0010\" stroke=\"#000000\" stroke-width=\"1\"/>\n"
          "</g>\n"
          "</svg>\n";
    QCOMPARE(svgText(list, Theme::Light), expected);
    QCOMPARE(svgText(list, Theme::Light), expected); // the same bytes again
}

void TestSvg::themes()
{
    DisplayList list{10.0, 10.0};
    list.items.push_back({TextShape{{1, 1}, "x"}});
    for (const Theme theme : {Theme::Light, Theme::Dark}) {
        const std::string svg = svgText(list, theme);
        QVERIFY(svg.find(hexText(colourOf(ColourRole::Background, theme))) != std::string::npos);
        QVERIFY(svg.find("fill=\"" + hexText(colourOf(ColourRole::Text, theme)) + "\"") != std::string::npos);
    }
}

void TestSvg::hatches()
{
    DisplayList list{10.0, 10.0};
    ShapeStyle style;
    style.fill = kWhite;
    style.hatch = Hatch::Rising;
    style.hatchPaint = kBlack;
    for (int i = 0; i < 3; ++i)
        list.items.push_back({RectShape{{0, 0}, 5, 5, style, 0.0}});
    style.hatch = Hatch::Crossed;
    list.items.push_back({RectShape{{0, 0}, 5, 5, style, 0.0}});
    const QString svg = QString::fromStdString(svgText(list, Theme::Light));
    QCOMPARE(svg.count("<pattern "), qsizetype{2}); // one for each kind, however often it is used
    QCOMPARE(svg.count("fill=\"url(#hatch0)\""), qsizetype{3});
    QCOMPARE(svg.count("fill=\"url(#hatch1)\""), qsizetype{1});
}

void TestSvg::invisible()
{
    DisplayList list{10.0, 10.0};
    list.background = Paint{};
    list.items.push_back({LineShape{{0, 0}, {1, 1}, Paint{}}});
    list.items.push_back({TextShape{{0, 0}, "x", 10.0, TextAnchor::Start, Paint{}}});
    const QString svg = QString::fromStdString(svgText(list, Theme::Light));
    QVERIFY(!svg.contains("<line") && !svg.contains("<text") && !svg.contains("<rect"));
}

/// Each frame is seen in its part of the time, the last one also where nothing moves; together they are one good document.
void TestSvg::animations()
{
    std::vector<DisplayList> frames;
    for (const char* word : {"one", "two", "three"}) {
        DisplayList list{60.0, 20.0, "a change"};
        list.items.push_back({TextShape{{10, 10}, word}});
        frames.push_back(std::move(list));
    }
    const QString svg = QString::fromStdString(animatedSvgText(frames, Theme::Light, 2.0));
    QXmlStreamReader reader(svg);
    QStringList visible;
    QStringList times;
    while (!reader.atEnd()) {
        if (reader.readNext() != QXmlStreamReader::StartElement)
            continue;
        if (reader.name() == QString("g"))
            visible << reader.attributes().value("visibility").toString();
        if (reader.name() == QString("animate"))
            times << reader.attributes().value("values").toString() + " at " + reader.attributes().value("keyTimes").toString();
    }
    QVERIFY(!reader.hasError());
    QCOMPARE(visible, (QStringList{"hidden", "hidden", "visible"}));
    QCOMPARE(
        times, (QStringList{"visible;hidden at 0;0.33", "hidden;visible;hidden at 0;0.33;0.67", "hidden;visible at 0;0.67"}));
    QVERIFY(svg.contains("dur=\"6s\""));
    frames.resize(1);
    QCOMPARE(animatedSvgText(frames, Theme::Dark, 2.0), svgText(frames.front(), Theme::Dark));
}

void TestSvg::escaping_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("read"); // by a parser of XML

    const QString bad = QString(QChar(0xFFFD));
    QTest::newRow("markup") << QByteArray("<b>&amp;\"'</b>") << "<b>&amp;\"'</b>";
    QTest::newRow("UTF-8") << QByteArray("µ ─ 𝛼") << "µ ─ 𝛼";
    QTest::newRow("control") << QByteArray("a\x01z\x1b[0m") << "a" + bad + "z" + bad + "[0m";
    QTest::newRow("tab") << QByteArray("a\tb") << "a\tb";
    QTest::newRow("cut short") << QByteArray("a\xE2\x94") << "a" + bad + bad;
    QTest::newRow("lone continuation") << QByteArray("\x94z") << bad + "z";
    QTest::newRow("too long a form") << QByteArray("\xC0\xAFz") << bad + bad + "z";
    QTest::newRow("surrogate") << QByteArray("\xED\xA0\x80z") << bad + bad + bad + "z";
    QTest::newRow("nul") << QByteArray("a\0b", 3) << "a" + bad + "b";
}

void TestSvg::escaping()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, read);
    DisplayList list{10.0, 10.0, text.toStdString()};
    list.items.push_back({TextShape{{1, 1}, text.toStdString()}, text.toStdString(), text.toStdString()});
    QXmlStreamReader xml(QByteArray::fromStdString(svgText(list, Theme::Light)));
    QStringList found;
    while (!xml.atEnd()) {
        xml.readNext();
        if (!xml.isStartElement())
            continue;
        if (xml.name() == QLatin1String("g"))
            found << xml.attributes().value("data-id").toString().replace(
                ' ', read.contains('\t') ? '\t' : ' '); // attributes lose their tabs
        if (xml.name() == QLatin1String("title") || xml.name() == QLatin1String("text"))
            found << xml.readElementText();
    }
    QVERIFY2(!xml.hasError(), qPrintable(xml.errorString()));
    QCOMPARE(found, (QStringList{read, read, read, read}));
}

void TestSvg::fragments()
{
    DisplayList list{10.0, 10.0, "a & b"};
    ShapeStyle style;
    style.fill = ColourRole::Compute;
    style.outline = ColourRole::Outline;
    list.items.push_back({RectShape{{0, 0}, 5, 5, style, 0.0}});
    style.fill = Colour{1, 2, 3};
    style.outline = Paint{};
    style.hatch = Hatch::Rising;
    list.items.push_back({RectShape{{5, 5}, 5, 5, style, 0.0}});
    list.items.push_back({PolylineShape{{{0, 0}, {1, 1}}, ColourRole::Accent}});
    list.items.push_back({TextShape{{1, 1}, "x"}});
    const std::string expected
        = "<svg class=\"picture\" width=\"10\" height=\"10\" viewBox=\"0 0 10 10\" role=\"img\" aria-labelledby=\"p1-title\">\n"
          "<title id=\"p1-title\">a &amp; b</title>\n"
          "<defs>\n<pattern id=\"p1-hatch0\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
          "<path d=\"M-2 2L2 -2M0 8L8 0M6 10L10 6\" class=\"line-outline\" fill=\"none\"/></pattern>\n</defs>\n"
          "<rect width=\"10\" height=\"10\" class=\"fill-background\"/>\n"
          "<rect x=\"0\" y=\"0\" width=\"5\" height=\"5\" class=\"fill-compute line-outline\" stroke-width=\"1\"/>\n"
          "<rect x=\"5\" y=\"5\" width=\"5\" height=\"5\" fill=\"#010203\"/>\n"
          "<rect x=\"5\" y=\"5\" width=\"5\" height=\"5\" fill=\"url(#p1-hatch0)\"/>\n"
          "<polyline points=\"0,0 1,1\" class=\"line-accent\" fill=\"none\" stroke-width=\"1\" stroke-linejoin=\"round\"/>\n"
          "<text x=\"1\" y=\"5.38\" font-size=\"12\" class=\"fill-text\">x</text>\n"
          "</svg>\n";
    QCOMPARE(svgFragment(list, "p1-"), expected);
}

void TestSvg::classesHaveRules()
{
    const QString rules = QString::fromStdString(svgClassRules());
    for (const Theme theme : {Theme::Light, Theme::Dark}) {
        const QString variables = QString::fromStdString(themeVariables(theme));
        for (const ColourRole role : kAllRoles) {
            const QString name = colourRoleName(role);
            QVERIFY(variables.contains("--" + name + ':' + QString::fromStdString(hexText(colourOf(role, theme))) + ';'));
            QVERIFY(rules.contains(".fill-" + name + "{fill:var(--" + name + ")}"));
            QVERIFY(rules.contains(".line-" + name + "{stroke:var(--" + name + ")}"));
        }
    }
}

void TestSvg::numbers_data()
{
    QTest::addColumn<double>("value");
    QTest::addColumn<QString>("expected");

    QTest::newRow("whole") << 100.0 << "100";
    QTest::newRow("one decimal") << 0.5 << "0.5";
    QTest::newRow("rounded") << 1.0 / 3.0 << "0.33";
    QTest::newRow("rounded to whole") << 2.999 << "3";
    QTest::newRow("no minus zero") << -0.001 << "0";
    QTest::newRow("negative") << -1.25 << "-1.25";
}

void TestSvg::numbers()
{
    QFETCH(double, value);
    QFETCH(QString, expected);
    DisplayList list{10.0, 10.0};
    list.items.push_back({LineShape{{value, 0}, {1, 1}}});
    QVERIFY(QString::fromStdString(svgText(list, Theme::Light)).contains("x1=\"" + expected + "\""));
}

MESHWRIGHT_TEST(TestSvg)

} // namespace tst_svg

#include "tst_svg.moc"
