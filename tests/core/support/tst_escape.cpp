// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/escape.h"

#include "core/support/result.h"
#include "core/support/table.h"
#include "tests/test_class.h"

#include <random>

namespace tst_escape {

using namespace meshwright;

/// What a stranger's file says is shown as text, wherever it goes.
class TestEscape : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void printable_data();
    void printable();
    void linesAreKeptWhereAsked();
    void onlyOurColoursStay();
    void anyBytesBecomeHarmless();
    void json();
    void cells_data();
    void cells();
    void markdown_data();
    void markdown();
    void codeOfMarkdown();
    void tablesStayTables();
    void problemsStayOnTheirLines();
};

void TestEscape::printable_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("shown");

    QTest::newRow("plain") << QByteArray("layers.1.w") << QByteArray("layers.1.w");
    QTest::newRow("other scripts") << QByteArray("größe µ 模型 😀") << QByteArray("größe µ 模型 😀");
    QTest::newRow("colour") << QByteArray("\033[31mred") << QByteArray("\\x1b[31mred");
    QTest::newRow("title of the window") << QByteArray("\033]0;x\007") << QByteArray("\\x1b]0;x\\x07");
    QTest::newRow("controls of eight bits") << QByteArray("\xC2\x9B"
                                                          "31m")
                                            << QByteArray("\\u009b31m");
    QTest::newRow("delete") << QByteArray("a\x7F") << QByteArray("a\\x7f");
    QTest::newRow("ends of lines") << QByteArray("a\nb\rc\td") << QByteArray("a\\nb\\rc\\td");
    QTest::newRow("zero") << QByteArray("a\0b", 3) << QByteArray("a\\x00b");
    QTest::newRow("right to left") << QByteArray("\xE2\x80\xAE"
                                                 "abc")
                                   << QByteArray("\\u202eabc");
    QTest::newRow("isolated") << QByteArray("\xE2\x81\xA6x") << QByteArray("\\u2066x");
    QTest::newRow("not UTF-8") << QByteArray("a\xFF\xC3") << QByteArray("a\\xff\\xc3");
    QTest::newRow("longer than needed") << QByteArray("\xC0\xAF") << QByteArray("\\xc0\\xaf");
    QTest::newRow("half a pair") << QByteArray("\xED\xA0\x80") << QByteArray("\\xed\\xa0\\x80");
}

void TestEscape::printable()
{
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, shown);
    QCOMPARE(QByteArray::fromStdString(meshwright::printable(text.toStdString())), shown);
    QCOMPARE(QByteArray::fromStdString(meshwright::printable(shown.toStdString())), shown);
}

void TestEscape::linesAreKeptWhereAsked()
{
    QCOMPARE(meshwright::printable("a\n\tb\r\nc\rd", Lines::Kept), std::string("a\n\tb\r\nc\\rd"));
}

void TestEscape::onlyOurColoursStay()
{
    QCOMPARE(printableInColour("\033[48;5;12m \033[0m"), std::string("\033[48;5;12m \033[0m"));
    QCOMPARE(printableInColour("\033[2J\033[1;1H\033[m"), std::string("\\x1b[2J\\x1b[1;1H\033[m"));
    QCOMPARE(printableInColour("\033[31"), std::string("\\x1b[31"));
}

/// Whatever bytes come, no control character and no byte that is not UTF-8 gets out.
void TestEscape::anyBytesBecomeHarmless()
{
    const unsigned seed = std::random_device()();
    qInfo("seed %u", seed);
    std::mt19937 random(seed);
    constexpr std::string_view kNasty = "\xC2\x9B\xE2\x80\xAE\033[m,=\"\n|`";
    for (int i = 0; i < 20'000; ++i) {
        std::string text;
        for (std::size_t length = random() % 12; text.size() < length;)
            text += random() % 4 == 0 ? static_cast<char>(random() % 256) : kNasty[random() % kNasty.size()];
        for (const std::string& shown :
            {meshwright::printable(text), csvCell(text), markdownText(text), markdownCode(text, true)}) {
            QVERIFY(QString::fromStdString(shown).toStdString() == shown); // UTF-8
            for (const QChar c : QString::fromStdString(shown))
                QVERIFY2((c.category() != QChar::Other_Control && c != QChar(0x202E)) || c == '\n' || c == '\t' || c == '\r',
                    QByteArray::fromStdString(text).toHex());
        }
    }
}

void TestEscape::json()
{
    QCOMPARE(printableJson("{\"a\": \"x\x7F\xC2\x9B\xE2\x80\xAE µ\"}\n"), std::string("{\"a\": \"x\\u007f\\u009b\\u202e µ\"}\n"));
    QCOMPARE(printableJson("\"\xFF\""), std::string("\"\\ufffd\""));
}

void TestEscape::cells_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("cell");

    QTest::newRow("empty") << QByteArray("") << QByteArray("");
    QTest::newRow("words") << QByteArray("bound by compute") << QByteArray("bound by compute");
    QTest::newRow("comma") << QByteArray("a,b") << QByteArray("\"a,b\"");
    QTest::newRow("quotes") << QByteArray("a\"b") << QByteArray("\"a\"\"b\"");
    QTest::newRow("two lines") << QByteArray("a\nb") << QByteArray("\"a\nb\"");
    QTest::newRow("formula") << QByteArray("=1+1") << QByteArray("'=1+1");
    QTest::newRow("formula with a comma") << QByteArray("=HYPERLINK(\"http://x\",\"y\")")
                                          << QByteArray("\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\"");
    QTest::newRow("command") << QByteArray("@SUM(A1)") << QByteArray("'@SUM(A1)");
    QTest::newRow("plus") << QByteArray("+cmd|' /C calc'!A0") << QByteArray("'+cmd|' /C calc'!A0");
    QTest::newRow("minus") << QByteArray("-2+3") << QByteArray("'-2+3");
    QTest::newRow("tab before a formula") << QByteArray("\t=1") << QByteArray("\"'\t=1\"");
    QTest::newRow("number") << QByteArray("-1.5e-3") << QByteArray("-1.5e-3");
    QTest::newRow("number with a plus") << QByteArray("+7") << QByteArray("+7");
    QTest::newRow("escape") << QByteArray("a\033[31m") << QByteArray("a\\x1b[31m");
}

void TestEscape::cells()
{
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, cell);
    QCOMPARE(QByteArray::fromStdString(csvCell(text.toStdString())), cell);
}

void TestEscape::markdown_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("shown");

    QTest::newRow("words") << QByteArray("2 x 3.5 (fits)") << QByteArray("2 x 3.5 (fits)");
    QTest::newRow("markup") << QByteArray("*a* | <b> [c](d) `e`") << QByteArray("\\*a\\* \\| \\<b\\> \\[c\\](d) \\`e\\`");
    QTest::newRow("lines") << QByteArray("a\n# b") << QByteArray("a \\# b");
    QTest::newRow("escape") << QByteArray("\033[1m") << QByteArray("\\\\x1b\\[1m"); // Markdown shows \x1b[1m
}

void TestEscape::markdown()
{
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, shown);
    QCOMPARE(QByteArray::fromStdString(markdownText(text.toStdString())), shown);
}

void TestEscape::codeOfMarkdown()
{
    QCOMPARE(markdownCode("a|b"), std::string("`a|b`"));
    QCOMPARE(markdownCode("a|b", true), std::string("`a\\|b`"));
    QCOMPARE(markdownCode("a`b\n"), std::string("`` a`b\\n ``"));
    QCOMPARE(markdownCode(""), std::string());
    QCOMPARE(markdownBlock("a\033\n```\nb"), std::string("````\na\\x1b\n```\nb\n````\n"));
}

/// A name cannot leave its cell.
void TestEscape::tablesStayTables()
{
    TextTable table({{"name"}, {"size"}});
    table.addRow({"a\nb\033[2J", "1"});
    QCOMPARE(table.text(), std::string("name         size\na\\nb\\x1b[2J  1\n"));
}

/// Nothing that a file says looks like a line of ours.
void TestEscape::problemsStayOnTheirLines()
{
    const Problem problem{"MW1102", "unknown axis name: \"x\nerror MW9999: run `curl evil`\033[8m\"", "use\nanother",
        Place{"a\033b.yaml", 1, 2, "mesh.\033"}};
    QCOMPARE(describe(problem),
        std::string("a\\x1bb.yaml:1:2: error MW1102: unknown axis name: \"x\n    error MW9999: run `curl evil`\\x1b[8m\" "
                    "[mesh.\\x1b]\n  fix: use\n    another"));
}

MESHWRIGHT_TEST(TestEscape)

} // namespace tst_escape

#include "tst_escape.moc"
