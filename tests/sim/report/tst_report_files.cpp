// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/json_reader.h"
#include "tests/sim/report/reports.h"

#include "tests/json_schema.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QRegularExpression>

#include <cmath>
#include <cstring>

namespace tst_report_files {

using namespace meshwright;
using namespace meshwright::sim;
using namespace meshwright::tests;

using Words = std::vector<std::string>;

/// Pages, Markdown, CSV and JSON of reports, and reading them back.
class TestReportFiles : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void roundTrip_data();
    void roundTrip();
    void jsonIsValid_data();
    void jsonIsValid();
    void pageIsWellFormed_data();
    void pageIsWellFormed();
    void pageLoadsNothing();
    void pageIsWholeWithoutScript();
    void hostileTextStaysText();
    void picturesFollowTheTheme();
    void unreadable_data();
    void unreadable();
    void tooDeepOrTooLarge();
    void cutAnywhere();
    void damagedAnywhere();
    void reportsAllWrongParts();
    void whatIsAReport_data();
    void whatIsAReport();
    void trainingResults_data();
    void trainingResults();
    void notFiniteIsKept();
    void markdown();
    void csv();
};

namespace {

constexpr const char* kEmbedded = "<script type=\"application/json\" id=\"meshwright-report\">";

/// Everything that a report can hold, and text that means something to a page.
Report hostileReport()
{
    Report report = exampleReport("digits", {}, {.training = trainedExample("digits")});
    report.title = "</script><script>alert(1)</script><!-- & \"'` | * _ \\ ]]>";
    report.study.text = report.title + "\n\tname: x\r\n";
    report.facts.push_back({"<b>", "&amp;"});
    report.answers.front().headline = report.title;
    report.sections.front().blocks.push_back(ReportParagraph{report.title, ReportTone::Error});
    report.sections.front().blocks.push_back(ReportProblems{{{Severity::Note, "MW1", "<a>", report.title, "<i>", "&"}}});
    report.sections.front().blocks.push_back(ReportCode{"<code>", "```\n" + report.title});
    return report;
}

/// What is wrong with the nesting and the ids of a page; elements of HTML that have no end are known.
QString nestingErrors(const QString& html)
{
    static const QRegularExpression kScripts(
        "<script[^>]*>.*?</script>|<style>.*?</style>|<!DOCTYPE html>", QRegularExpression::DotMatchesEverythingOption);
    static const QRegularExpression kTag(R"(<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s+[a-zA-Z][a-zA-Z0-9:-]*(?:="[^"<]*")?)*)\s*(/?)>)");
    static const QRegularExpression kId(R"re(\sid="([^"]*)")re");
    static const QRegularExpression kReference(R"re((?:href="#|aria-labelledby="|url\(#)([^")]*))re");
    QString body = html;
    body.remove(kScripts);
    QStringList open;
    QSet<QString> ids;
    qsizetype at = 0;
    auto tags = kTag.globalMatch(body);
    while (tags.hasNext()) {
        const auto tag = tags.next();
        if (body.mid(at, tag.capturedStart() - at).contains('<') || body.mid(at, tag.capturedStart() - at).contains('>'))
            return "markup out of place: " + body.mid(at, 80);
        at = tag.capturedEnd();
        const QString name = tag.captured(2);
        if (const auto id = kId.match(tag.captured(3)); id.hasMatch()) {
            if (ids.contains(id.captured(1)))
                return "two ids " + id.captured(1);
            ids.insert(id.captured(1));
        }
        if (name == "meta" || !tag.captured(4).isEmpty())
            continue;
        if (tag.captured(1).isEmpty())
            open << name;
        else if (open.isEmpty() || open.takeLast() != name)
            return "</" + name + "> does not close what is open at " + body.mid(tag.capturedStart() - 60, 80);
    }
    auto references = kReference.globalMatch(body);
    while (references.hasNext()) {
        const QString id = references.next().captured(1);
        if (!ids.contains(id))
            return "nothing has the id " + id;
    }
    return open.isEmpty() ? QString() : "left open: " + open.join(' ');
}

} // namespace

void TestReportFiles::roundTrip_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<Words>("settings");
    QTest::addColumn<bool>("trained");
    QTest::newRow("wide") << "wide_mlp" << Words{} << false;
    QTest::newRow("does not fit") << "wide_mlp" << Words{"batch=4194304"} << false;
    QTest::newRow("three axes") << "three_d" << Words{} << false;
    QTest::newRow("no hardware") << "fsdp" << Words{"hardware=null"} << false;
    QTest::newRow("problems") << "digits" << Words{"mesh.data=100", "sharding={}"} << false;
    QTest::newRow("GPUs") << "wide_mlp" << Words{"hardware={chip: h100, hosts: 1, per_host: 8}"} << false;
    QTest::newRow("trained") << "digits" << Words{} << true;
}

void TestReportFiles::roundTrip()
{
    QFETCH(QString, example);
    QFETCH(Words, settings);
    QFETCH(bool, trained);
    ReportChoices choices;
    if (trained)
        choices.training = trainedExample(example.toStdString());
    const Report report = exampleReport(example.toStdString(), settings, choices);
    const std::string page = reportHtml(report);
    const auto fromPage = readReport(page, "report.html");
    QVERIFY2(fromPage, qPrintable(described(fromPage)));
    QVERIFY(*fromPage == report);
    QVERIFY(reportHtml(*fromPage) == page);
    const auto fromJson = readReport(reportJson(report), "report.json");
    QVERIFY2(fromJson, qPrintable(described(fromJson)));
    QVERIFY(*fromJson == report);
}

void TestReportFiles::jsonIsValid_data()
{
    roundTrip_data();
}

void TestReportFiles::jsonIsValid()
{
    QFETCH(QString, example);
    QFETCH(Words, settings);
    QFETCH(bool, trained);
    ReportChoices choices;
    if (trained)
        choices.training = trainedExample(example.toStdString());
    const std::string json = reportJson(exampleReport(example.toStdString(), settings, choices));
    QCOMPARE(resultErrors(QByteArray::fromStdString(json)), QString());
    QVERIFY(!text(json).contains('<'));
}

void TestReportFiles::pageIsWellFormed_data()
{
    roundTrip_data();
}

void TestReportFiles::pageIsWellFormed()
{
    QFETCH(QString, example);
    QFETCH(Words, settings);
    const QString page = text(reportHtml(exampleReport(example.toStdString(), settings)));
    QVERIFY(page.startsWith("<!DOCTYPE html>\n<html lang=\"en\">"));
    QCOMPARE(nestingErrors(page), QString());
}

void TestReportFiles::pageLoadsNothing()
{
    const QString page = text(reportHtml(exampleReport("wide_mlp")));
    for (const char* word : {"http:", "https:", "src=", "@import", "<link", "<img", "<iframe", "fetch(", "XMLHttp"})
        QVERIFY2(!page.contains(word), word);
    static const QRegularExpression kUrl(R"re((?:url\(|href=")(?!#))re");
    QVERIFY(!kUrl.match(page).hasMatch());
    QVERIFY(page.contains("default-src 'none'"));
}

void TestReportFiles::pageIsWholeWithoutScript()
{
    const Report report = exampleReport("wide_mlp");
    QString page = text(reportHtml(report));
    page.truncate(page.indexOf("<script")); // as text/html, without what scripts add
    for (const ReportAnswer& answer : report.answers)
        QVERIFY(page.contains(text(answer.headline)));
    for (const ReportTable& table : blocksOf<ReportTable>(report, "collectives")) {
        for (const ReportRow& row : table.rows) {
            QVERIFY(page.contains(text(row.cells.back().text)));
            QVERIFY(page.contains(text(row.opening.formula)));
        }
    }
    QCOMPARE(page.count("<svg "), page.count("</svg>"));
    QVERIFY(page.count("<svg ") >= 7);
    QCOMPARE(page.count("scope=\"col\"") > 20, true);
}

void TestReportFiles::hostileTextStaysText()
{
    const Report report = hostileReport();
    const QString page = text(reportHtml(report));
    QVERIFY(!page.contains("<script>alert"));
    QVERIFY(!page.contains("<!--"));
    QCOMPARE(page.count("</script>"), qsizetype{2});
    QCOMPARE(nestingErrors(page), QString());
    const auto read = readReport(reportHtml(report), "report.html");
    QVERIFY2(read, qPrintable(described(read)));
    QVERIFY(*read == report);
    QVERIFY(!reportMarkdown(report).empty());
}

void TestReportFiles::picturesFollowTheTheme()
{
    const QString page = text(reportHtml(exampleReport("wide_mlp")));
    for (const Theme theme : {Theme::Light, Theme::Dark})
        QVERIFY(page.contains(QString("--compute:%1;").arg(text(hexText(colourOf(ColourRole::Compute, theme))))));
    const QString pictures = page.mid(page.indexOf("<svg"));
    QVERIFY(pictures.contains("class=\"fill-compute"));
    // No colour of a role stands in a picture as itself.
    QVERIFY(!pictures.left(pictures.indexOf("<script"))
                 .contains("=\"" + text(hexText(colourOf(ColourRole::AllReduce, Theme::Light))) + '"'));
    QVERIFY(page.contains("@media screen and (prefers-color-scheme:dark)")); // paper stays light
}

void TestReportFiles::unreadable_data()
{
    QTest::addColumn<QByteArray>("input");
    QTest::addColumn<QString>("ids");
    const QByteArray page = QByteArray::fromStdString(reportHtml(exampleReport("fsdp", {}, {.training = {}, .mostTrials = 0})));
    const QByteArray json = QByteArray::fromStdString(reportJson(exampleReport("fsdp", {}, {.training = {}, .mostTrials = 0})));
    const auto changed = [&](const char* from, const char* to) { // the first one only
        QByteArray copy = json;
        return copy.replace(copy.indexOf(from), static_cast<qsizetype>(std::strlen(from)), to);
    };
    QTest::newRow("empty") << QByteArray() << "MW1820";
    QTest::newRow("blank") << QByteArray(" \n") << "MW1820";
    QTest::newRow("text") << QByteArray("meshwright: 1\n") << "MW1820";
    QTest::newRow("another page") << QByteArray("<!DOCTYPE html><html><body>hello</body></html>") << "MW1820";
    QTest::newRow("another JSON") << QByteArray("{\"schema\":\"meshwright.training/1\"}") << "MW1820";
    QTest::newRow("JSON without a schema") << QByteArray("{}") << "MW1820";
    QTest::newRow("a list") << QByteArray("[]") << "MW1820";
    QTest::newRow("cut before the report") << page.left(page.indexOf(kEmbedded) - 1000) << "MW1821";
    QTest::newRow("cut in the report") << page.left(page.indexOf(kEmbedded) + 1000) << "MW1821";
    QTest::newRow("cut JSON") << json.left(json.size() / 2) << "MW1821";
    QTest::newRow("newer") << changed("meshwright.report/1", "meshwright.report/2") << "MW1822";
    QTest::newRow("no title") << changed("\"title\":\"fully sharded data parallel\",", "") << "MW1823";
    QTest::newRow("a number for text") << changed("\"command\":\"", "\"command\":7,\"c\":\"") << "MW1823";
    QTest::newRow("unknown tone") << changed("\"tone\":\"good\"", "\"tone\":\"splendid\"") << "MW1823";
    QTest::newRow("unknown colour") << changed("\"fill\":\"", "\"fill\":\"#12345\",\"f\":\"") << "MW1823";
    QTest::newRow("a cell too few") << changed("\"cells\":[{\"text\":\"", "\"cells\":[],\"c\":[{\"text\":\"") << "MW1823";
    QTest::newRow("half a point") << changed("\"shape\":\"rect\",\"at\":[", "\"shape\":\"rect\",\"at\":[1,") << "MW1823";
    // Whatever draws these would take any time and memory: a dashed line of any length, letters of any size, a text of any length.
    QTest::newRow("a line without end") << changed(
        "\"shape\":\"rect\",\"at\":[", "\"shape\":\"line\",\"dashed\":true,\"at\":[0,0,1e300,0],\"a\":[")
                                        << "MW1823";
    QTest::newRow("letters without end") << changed("\"shape\":\"text\",", "\"shape\":\"text\",\"size\":1e9,\"s\":1,\"t\":2,")
                                         << "MW1823";
    QTest::newRow("a title without end") << changed("\"title\":\"", ("\"title\":\"" + std::string(1 << 20, 'x')).c_str())
                                         << "MW1823";
    QTest::newRow("settings no list") << changed("\"settings\":[]", "\"settings\":{}") << "MW1823";
}

void TestReportFiles::unreadable()
{
    QFETCH(QByteArray, input);
    QFETCH(QString, ids);
    const auto read = readReport(input.toStdString(), "some.html");
    QVERIFY(!read);
    QCOMPARE(idsOf(read), ids);
    for (const Problem& problem : read.error())
        QCOMPARE(text(problem.place.file), "some.html");
}

void TestReportFiles::tooDeepOrTooLarge()
{
    const auto deep = readReport("{\"schema\":" + std::string(100'000, '[') + "}", "deep.json");
    QCOMPARE(idsOf(deep), "MW1824");
    const auto large = readReport(std::string(kLargestReportBytes + 1, ' '), "large.json");
    QCOMPARE(idsOf(large), "MW1824");
    QCOMPARE(idsOf(readTrainingResult(std::string(100'000, '{'), "deep.json")), "MW1824");
    std::string many = "{\"schema\":\"meshwright.report/1\",\"answers\":[";
    for (std::size_t i = 0; i < kMostJsonValues; ++i)
        many += "1,";
    QCOMPARE(idsOf(readReport(many + "1]}", "many.json")), "MW1824");
}

void TestReportFiles::cutAnywhere()
{
    const std::string page = reportHtml(exampleReport("fsdp", {}, {.training = {}, .mostTrials = 0}));
    for (std::size_t i = 0; i < 150; ++i) {
        const std::size_t length = page.size() * i / 150;
        const auto read = readReport(std::string_view(page).substr(0, length), "cut.html");
        const bool whole = length > page.rfind("</script>\n<script>");
        QVERIFY2(read.has_value() == whole, qPrintable(QString::number(length)));
    }
}

void TestReportFiles::damagedAnywhere()
{
    const std::string json = reportJson(exampleReport("fsdp", {}, {.training = {}, .mostTrials = 0}));
    std::uint32_t random = 12345;
    const auto next = [&](std::size_t below) {
        random = random * 1664525U + 1013904223U;
        return static_cast<std::size_t>(random >> 8U) % below;
    };
    constexpr std::string_view kBytes = "\"{}[],:0-e \\\x00\xFF"
                                        "ant";
    int refused = 0;
    for (int i = 0; i < 120; ++i) {
        std::string damaged = json;
        for (int n = 0; n < 3; ++n)
            damaged[next(damaged.size())] = kBytes[next(kBytes.size())];
        const auto read = readReport(damaged, "damaged.json");
        refused += read ? 0 : 1;
        if (read)
            QVERIFY(!reportHtml(*read).empty());
    }
    QVERIFY(refused > 20);
}

void TestReportFiles::reportsAllWrongParts()
{
    QByteArray json = QByteArray::fromStdString(reportJson(exampleReport("fsdp")));
    json.replace("\"shape\":\"rect\"", "\"shape\":\"blob\"").replace("\"command\":", "\"order\":");
    const auto read = readReport(json.toStdString(), "wrong.json");
    QVERIFY(!read);
    QVERIFY(read.error().size() > 5 && read.error().size() <= 20);
    QVERIFY2(described(read).contains("sections[") && described(read).contains("\"blob\""), qPrintable(described(read)));
    QVERIFY(described(read).contains("\"command\" is missing"));
}

void TestReportFiles::whatIsAReport_data()
{
    QTest::addColumn<QByteArray>("input");
    QTest::addColumn<bool>("expected");
    QTest::newRow("page") << QByteArray("\n<!DOCTYPE html>") << true;
    QTest::newRow("JSON") << QByteArray("{\"schema\":\"meshwright.report/1\",") << true;
    QTest::newRow("newer JSON") << QByteArray("{ \"schema\": \"meshwright.report/9\",") << true;
    QTest::newRow("study") << QByteArray("meshwright: 1\n") << false;
    QTest::newRow("study as JSON") << QByteArray("{\"meshwright\": 1}") << false;
    QTest::newRow("empty") << QByteArray() << false;
}

void TestReportFiles::whatIsAReport()
{
    QFETCH(QByteArray, input);
    QFETCH(bool, expected);
    QCOMPARE(isReport(input.toStdString()), expected);
}

void TestReportFiles::trainingResults_data()
{
    QTest::addColumn<QByteArray>("from");
    QTest::addColumn<QByteArray>("to");
    QTest::addColumn<QString>("ids");
    QTest::newRow("as written") << QByteArray() << QByteArray() << "";
    QTest::newRow("not JSON") << QByteArray("{\n") << QByteArray("{,") << "MW1825";
    QTest::newRow("a simulation") << QByteArray("meshwright.training/1") << QByteArray("meshwright.simulation/1") << "MW1825";
    QTest::newRow("no schema") << QByteArray("\"schema\"") << QByteArray("\"scheme\"") << "MW1825";
    QTest::newRow("no losses") << QByteArray("\"losses\"") << QByteArray("\"gains\"") << "MW1826 MW1826";
    QTest::newRow("no devices") << QByteArray("\"devices\": 8") << QByteArray("\"devices\": 0") << "MW1826";
    QTest::newRow("half a device") << QByteArray("\"devices\": 8") << QByteArray("\"devices\": 8.5") << "MW1826";
    QTest::newRow("unknown verdict") << QByteArray("\"verdict\": \"equal\"") << QByteArray("\"verdict\": \"similar\"")
                                     << "MW1826";
    QTest::newRow("a word for a number") << QByteArray("\"samples_per_s\": ")
                                         << QByteArray("\"samples_per_s\": \"fast\", \"s\": ") << "MW1826";
}

void TestReportFiles::trainingResults()
{
    static const QByteArray json = QByteArray::fromStdString(trainedExample("digits").json);
    QFETCH(QByteArray, from);
    QFETCH(QByteArray, to);
    QFETCH(QString, ids);
    QByteArray changed = json;
    if (!from.isEmpty())
        changed.replace(from, to);
    const auto read = readTrainingResult(changed.toStdString(), "result.json");
    QCOMPARE(idsOf(read), ids);
    if (read)
        QCOMPARE(QByteArray::fromStdString(read->json), json);
}

void TestReportFiles::notFiniteIsKept()
{
    QByteArray json = QByteArray::fromStdString(trainedExample("digits").json);
    const auto at = json.indexOf("\"losses\": [") + 11;
    json.insert(at, "null,");
    const auto read = readTrainingResult(json.toStdString(), "result.json");
    QVERIFY2(read, qPrintable(described(read)));
    QVERIFY(std::isnan(read->losses.front()));
    const Report report = exampleReport("digits", {}, {.training = *read});
    const auto again = readReport(reportJson(report), "report.json");
    QVERIFY2(again, qPrintable(described(again)));
    QVERIFY(*again == report);
}

void TestReportFiles::markdown()
{
    for (const Report& report : {exampleReport("wide_mlp"), hostileReport()}) {
        const QStringList lines = text(reportMarkdown(report)).split('\n');
        int columns = 0;
        int tables = 0;
        for (const QString& line : lines) {
            if (!line.startsWith('|')) {
                columns = 0;
                continue;
            }
            static const QRegularExpression kBar(R"((?<!\\)(?:\\\\)*\|)");
            const int bars = static_cast<int>(line.count(kBar));
            tables += columns == 0 ? 1 : 0;
            QVERIFY2(columns == 0 || bars == columns, qPrintable(line));
            columns = bars;
        }
        QVERIFY(tables >= 6);
        QVERIFY(!lines.filter(QRegularExpression("^## Collectives")).isEmpty());
    }
}

void TestReportFiles::csv()
{
    const Report report = exampleReport("wide_mlp");
    const QString csv = text(reportCsv(report));
    QVERIFY(csv.startsWith("section,item,name,value,unit,text\n"));
    static const QRegularExpression kRow(R"re(^(?:(?:[^",\n]*|"(?:[^"]|"")*"),){5}(?:[^",\n]*|"(?:[^"]|"")*")$)re");
    for (const QString& line : csv.trimmed().split('\n'))
        QVERIFY2(kRow.match(line).hasMatch(), qPrintable(line));
    const double step = analysed(exampleSource("wide_mlp"))->simulated->simulation.stepSeconds;
    QVERIFY(csv.contains(QString("\nbreakdown,,Step,%1,s,35.6 ms\n").arg(text(fmt::format("{}", step)))));
    QVERIFY(csv.contains("\ncollectives,Collectives of a step 1,Bytes on a device,268435456,B,256 MiB\n"));
}

MESHWRIGHT_TEST(TestReportFiles)

} // namespace tst_report_files

#include "tst_report_files.moc"
