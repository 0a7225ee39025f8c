// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/sim/report/reports.h"
#include "tests/test_class.h"
#include "ui/report/page_layout.h"
#include "ui/report/page_text.h"
#include "ui/report/report_files.h"
#include "ui/widgets/painter.h"

#include <set>

namespace tst_page_layout {

using namespace meshwright;
using namespace meshwright::tests;
using namespace meshwright::ui;

using Words = std::vector<std::string>;

/// The report on paper: nothing cut, nothing lost, nothing outside its page.
class TestPageLayout : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void linesFit_data();
    void linesFit();
    void everythingIsOnItsPage_data();
    void everythingIsOnItsPage();
    void nothingIsLost();
    void endlessTextsAreCut();
    void tablesRepeatTheirHeads();
    void headingsAreNotLast();
    void pagesAreNumbered();
    void narrowPages();
    void emptyReport();
    void writesEveryFormat_data();
    void writesEveryFormat();
    void refusesOtherEndings();
    void prints();
    void printingNeedsAReport();
};

namespace {

QStringList textsOf(const DisplayList& page)
{
    QStringList texts;
    for (const DisplayItem& item : page.items) {
        if (const TextShape* text = std::get_if<TextShape>(&item.shape))
            texts << QString::fromStdString(text->text);
    }
    return texts;
}

/// Frames of all texts as they are painted.
std::vector<QRectF> textFrames(const DisplayList& page)
{
    std::vector<QRectF> frames;
    for (const DisplayItem& item : page.items) {
        const TextShape* text = std::get_if<TextShape>(&item.shape);
        if (text == nullptr)
            continue;
        QFont font = QGuiApplication::font();
        font.setPixelSize(std::max(1, qRound(text->size)));
        font.setBold(text->bold);
        const double width = QFontMetricsF(font).horizontalAdvance(QString::fromStdString(text->text));
        const double left = text->anchor == TextAnchor::Start ? text->at.x
            : text->anchor == TextAnchor::Middle              ? text->at.x - width / 2.0
                                                              : text->at.x - width;
        frames.emplace_back(left, text->at.y - text->size / 2.0, width, text->size);
    }
    return frames;
}

} // namespace

void TestPageLayout::linesFit_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<double>("room");
    QTest::newRow("words") << "one two three four five six seven eight nine ten" << 80.0;
    QTest::newRow("one long word") << QString("a").repeated(300) << 50.0;
    QTest::newRow("a long word among others") << "see " + QString("layers.0.w.").repeated(20) + " there" << 90.0;
    QTest::newRow("newlines") << "a\n\n  indented b\nc" << 100.0;
    QTest::newRow("other letters") << QString::fromUtf8("ÄÖÜ 漢字漢字漢字漢字漢字漢字漢字漢字 𝛼𝛼𝛼𝛼𝛼𝛼𝛼𝛼𝛼") << 60.0;
    QTest::newRow("empty") << "" << 60.0;
    QTest::newRow("spaces") << "   " << 60.0;
}

void TestPageLayout::linesFit()
{
    QFETCH(QString, text);
    QFETCH(double, room);
    PageText measure;
    QString joined;
    const auto lines = measure.lines(text.toStdString(), 12, false, room);
    QVERIFY(!lines.empty());
    for (const std::string& line : lines) {
        QVERIFY2(measure.width(line, 12) <= room + 0.01, line.c_str());
        joined += QString::fromStdString(line);
    }
    // No letter is lost.
    QString letters = text;
    QCOMPARE(joined.remove(' '), letters.remove(' ').remove('\n'));
}

void TestPageLayout::everythingIsOnItsPage_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<Words>("settings");
    QTest::newRow("wide") << "wide_mlp" << Words{};
    QTest::newRow("does not fit") << "wide_mlp" << Words{"batch=4194304"};
    QTest::newRow("three axes") << "three_d" << Words{};
    QTest::newRow("GPUs") << "wide_mlp" << Words{"hardware={chip: h100, hosts: 1, per_host: 8}"};
    QTest::newRow("problems") << "digits" << Words{"mesh.data=100", "sharding={}"};
    QTest::newRow("no hardware") << "fsdp" << Words{"hardware=null"};
}

void TestPageLayout::everythingIsOnItsPage()
{
    QFETCH(QString, example);
    QFETCH(Words, settings);
    const PageGeometry geometry;
    const auto pages = pagesOf(exampleReport(example.toStdString(), settings), geometry);
    QVERIFY(pages.size() >= 2);
    for (const DisplayList& page : pages) {
        QCOMPARE(page.width, geometry.width);
        for (const QRectF& frame : textFrames(page)) {
            QVERIFY2(frame.left() >= geometry.sideMargin - 1.0 && frame.right() <= geometry.width - geometry.sideMargin + 2.0,
                qPrintable(QString("%1: %2 to %3").arg(QString::fromStdString(page.title)).arg(frame.left()).arg(frame.right())));
            QVERIFY(frame.top() >= geometry.topMargin - 1.0 && frame.bottom() <= geometry.height - 20.0);
        }
    }
}

void TestPageLayout::nothingIsLost()
{
    const sim::Report report = exampleReport("wide_mlp");
    QString all;
    QStringList words;
    for (const DisplayList& page : pagesOf(report))
        all += textsOf(page).join(' ') + ' ';
    for (const sim::ReportSection& section : report.sections) {
        words << QString::fromStdString(section.title);
        for (const auto& block : blocksOf<sim::ReportFigures>(report, section.id.c_str())) {
            for (const sim::ReportFigure& figure : block.figures)
                words << QString::fromStdString(figure.label) << QString::fromStdString(figure.value.text);
        }
        for (const auto& table : blocksOf<sim::ReportTable>(report, section.id.c_str())) {
            for (const sim::ReportRow& row : table.rows)
                words << QString::fromStdString(row.cells.front().text).split(' ')
                      << QString::fromStdString(row.opening.formula).split(' ');
        }
    }
    for (const sim::ReportAnswer& answer : report.answers)
        words << QString::fromStdString(answer.sentence).split(' ') << QString::fromStdString(answer.opening.formula).split(' ');
    QVERIFY(words.size() > 300);
    for (const QString& word : words)
        QVERIFY2(word.isEmpty() || all.contains(word) || QString(all).remove(' ').contains(word), qPrintable(word));
}

/// Texts of damaged reports: lines in any number, one word of any length, words in any number. Each ends soon, and is cut off.
void TestPageLayout::endlessTextsAreCut()
{
    constexpr std::size_t kBytes = 8 << 20;
    std::string words;
    while (words.size() < kBytes)
        words += "ab ";
    for (const std::string& text : {std::string(kBytes, '\n'), std::string(kBytes, 'x'), words}) {
        PageText breaker;
        std::size_t lines = 0;
        for (int i = 0; i < 4; ++i)
            lines += breaker.lines(text, 12, false, 300.0).size();
        QVERIFY2(lines <= PageText::kMostLines + 8, qPrintable(QString::number(lines)));
    }
    sim::Report report = exampleReport("fsdp", {}, {.training = {}, .mostTrials = 0});
    report.title = std::string(100'000, 't');
    for (const DisplayList& page : pagesOf(report))
        QVERIFY(page.title.size() < 200);
}

void TestPageLayout::tablesRepeatTheirHeads()
{
    // Collectives with their formulas take more than a page.
    int heads = 0;
    int pagesWithRows = 0;
    for (const DisplayList& page : pagesOf(exampleReport("wide_mlp"))) {
        const QStringList texts = textsOf(page);
        const bool rows = texts.count("all-reduce") >= 2 && texts.contains("backward");
        pagesWithRows += rows ? 1 : 0;
        heads += rows && texts.contains("Waited for") && texts.contains("Phase") ? 1 : 0;
    }
    QVERIFY(pagesWithRows >= 2);
    QCOMPARE(heads, pagesWithRows);
}

void TestPageLayout::headingsAreNotLast()
{
    const PageGeometry geometry;
    for (const char* example : {"wide_mlp", "digits", "three_d"}) {
        const sim::Report report = exampleReport(example);
        std::set<std::string> headings;
        for (const sim::ReportSection& section : report.sections)
            headings.insert(section.title);
        for (const DisplayList& page : pagesOf(report, geometry)) {
            double lowest = 0.0;
            double lowestHeading = -1.0;
            for (const DisplayItem& item : page.items) {
                const TextShape* text = std::get_if<TextShape>(&item.shape);
                if (text == nullptr || text->at.y > geometry.height - geometry.bottomMargin)
                    continue;
                lowest = std::max(lowest, text->at.y);
                if (text->bold && text->size > 15.0 && headings.contains(text->text))
                    lowestHeading = std::max(lowestHeading, text->at.y);
            }
            QVERIFY2(lowestHeading < lowest - 10.0, page.title.c_str());
        }
    }
}

void TestPageLayout::pagesAreNumbered()
{
    const auto pages = pagesOf(exampleReport("wide_mlp"));
    for (std::size_t i = 0; i < pages.size(); ++i)
        QVERIFY(textsOf(pages[i]).contains(QString("%1 of %2").arg(i + 1).arg(pages.size())));
}

void TestPageLayout::narrowPages()
{
    const PageGeometry narrow{420.0, 600.0, 30.0, 30.0, 40.0};
    const auto pages = pagesOf(exampleReport("wide_mlp"), narrow);
    QVERIFY(pages.size() > 15);
    for (const DisplayList& page : pages) {
        for (const QRectF& frame : textFrames(page))
            QVERIFY(frame.right() <= narrow.width - narrow.sideMargin + 6.0);
    }
}

void TestPageLayout::emptyReport()
{
    QCOMPARE(pagesOf(sim::Report{}).size(), std::size_t{1});
}

void TestPageLayout::writesEveryFormat_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QByteArray>("start");
    QTest::newRow("HTML") << "r.html" << QByteArray("<!DOCTYPE html>");
    QTest::newRow("Markdown") << "r.md" << QByteArray("# wide MLP");
    QTest::newRow("CSV") << "r.csv" << QByteArray("section,");
    QTest::newRow("JSON") << "r.json" << QByteArray("{\"schema\":\"meshwright.report/1\"");
    QTest::newRow("PDF") << "r.PDF" << QByteArray("%PDF-");
}

void TestPageLayout::writesEveryFormat()
{
    QFETCH(QString, file);
    QFETCH(QByteArray, start);
    QTemporaryDir folder;
    const QString path = folder.filePath(file);
    const auto written = writeReport(exampleReport("wide_mlp"), path);
    QVERIFY2(written, written ? "" : describe(written.error()).c_str());
    QFile in(path);
    QVERIFY(in.open(QIODevice::ReadOnly));
    QVERIFY(in.readAll().startsWith(start));
}

void TestPageLayout::refusesOtherEndings()
{
    QTemporaryDir folder;
    const auto written = writeReport(exampleReport("fsdp"), folder.filePath("r.docx"));
    QVERIFY(!written);
    QCOMPARE(written.error().front().id, std::string("MW1828"));
    QVERIFY(QDir(folder.path()).isEmpty());
}

void TestPageLayout::prints()
{
    QTemporaryDir folder;
    const sim::Report report = exampleReport("digits");
    QVERIFY(writeReport(report, folder.filePath("page.html")));
    const auto printed = printReport(folder.filePath("page.html"), folder.filePath("out.pdf"));
    QVERIFY2(printed, printed ? "" : describe(printed.error()).c_str());
    QFile pdf(folder.filePath("out.pdf"));
    QVERIFY(pdf.open(QIODevice::ReadOnly));
    const QByteArray bytes = pdf.readAll();
    QVERIFY(bytes.startsWith("%PDF-"));
    QCOMPARE(bytes.count("/Type /Page\n"), static_cast<qsizetype>(pagesOf(report).size()));
}

void TestPageLayout::printingNeedsAReport()
{
    QTemporaryDir folder;
    QFile file(folder.filePath("other.html"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("<html></html>");
    file.close();
    const auto printed = printReport(file.fileName(), folder.filePath("out.pdf"));
    QVERIFY(!printed);
    QCOMPARE(printed.error().front().id, std::string("MW1820"));
    QVERIFY(!QFile::exists(folder.filePath("out.pdf")));
    QVERIFY(!printReport(folder.filePath("nowhere.html"), folder.filePath("out.pdf")));
}

MESHWRIGHT_TEST(TestPageLayout)

} // namespace tst_page_layout

#include "tst_page_layout.moc"
