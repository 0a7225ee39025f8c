// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/document.h"
#include "core/study/flow_specs.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_document {

using namespace meshwright;

/// What any text may do to the reader: nothing but be read or refused, with a place.
class TestDocument : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void tree();
    void aliases();
    void refusals_data();
    void refusals();
    void deepest();
    void unquotedSpecs();
    void columnsAfterQuotes();
    void settings_data();
    void settings();
    void settingIntoMeshText();
    void badSettings_data();
    void badSettings();
    void anyBytes();
};

namespace {

QString where(const Problem& problem)
{
    return QString("%1 %2:%3").arg(tests::text(problem.id)).arg(problem.place.line).arg(problem.place.column);
}

QString allOf(const Problems& problems)
{
    QStringList list;
    for (const Problem& problem : problems)
        list << where(problem);
    return list.join(' ');
}

/// The tree in one line: `{a: [1, "b"], c: ~}`.
QString shown(const DocNode& node)
{
    QStringList parts;
    switch (node.kind) {
    case DocNode::Kind::Null:
        return "~";
    case DocNode::Kind::Scalar:
        return node.quoted ? '"' + tests::text(node.text) + '"' : tests::text(node.text);
    case DocNode::Kind::List:
        for (const DocEntry& entry : node.entries)
            parts << shown(entry.value);
        return '[' + parts.join(", ") + ']';
    case DocNode::Kind::Map:
        for (const DocEntry& entry : node.entries)
            parts << tests::text(entry.key) + ": " + shown(entry.value);
        return '{' + parts.join(", ") + '}';
    }
    return {};
}

} // namespace

void TestDocument::tree()
{
    const Document document = parseDocument("b: [1, '2', null]\na:\n  c: \"x\"\n", "f.yaml");
    QVERIFY(document.problems.empty());
    QCOMPARE(shown(document.root), "{b: [1, \"2\", ~], a: {c: \"x\"}}");
    const DocNode* a = document.root.find("a");
    QVERIFY(a != nullptr);
    QCOMPARE(a->find("c")->line, 3);
    QCOMPARE(a->find("c")->column, 6);
    QCOMPARE(document.root.entries[1].line, 2);
    QCOMPARE(document.root.find("b")->place("b").file, "f.yaml");
    QCOMPARE(shown(parseDocument("{\"a\": [1, 2.5],\n\t\"b\": true}", "f.json").root), "{a: [1, 2.5], b: true}");
    QCOMPARE(shown(parseDocument("\"a: b\":\n'c:d': 1\n", "f.yaml").root), "{a: b: ~, c:d: 1}");
}

void TestDocument::aliases()
{
    const Document document = parseDocument("a: &x {p: 1}\nb: *x\nc: [*x, *x]\n", "f");
    QVERIFY(document.problems.empty());
    QCOMPARE(shown(document.root), "{a: {p: 1}, b: {p: 1}, c: [{p: 1}, {p: 1}]}");
    QCOMPARE(document.root.find("b")->line, 2); // where the alias stands
}

void TestDocument::refusals_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("problems");

    QByteArray laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n";
    for (char c = 'b'; c < 'k'; ++c)
        laughs += QByteArray(1, c) + ": &" + QByteArray(1, c) + " [" + (QByteArray("*") + char(c - 1) + ",").repeated(9) + "]\n";

    QTest::newRow("not YAML") << QByteArray("a: 1\nb: [1") << "MW1402 2:6";
    QTest::newRow("no space behind a colon") << QByteArray("mesh: {pipe:2, data:2}") << "MW1402 1:8";
    QTest::newRow("a stray bracket") << QByteArray("a: 1\nb: }") << "MW1402 2:4";
    QTest::newRow("a program") << QByteArray("// what it does\nmodule @jit_f {\n}\n") << "MW1402 1:1";
    QTest::newRow("NUL") << QByteArray("a: \0b", 5) << "MW1403 1:4";
    QTest::newRow("control character") << QByteArray("a: 1\nb: \x04") << "MW1403 2:4";
    QTest::newRow("not UTF-8") << QByteArray("a: \xff") << "MW1403 1:4";
    QTest::newRow("half a character") << QByteArray("a: \xe2\x82") << "MW1403 1:4";
    QTest::newRow("overlong") << QByteArray("a: \xc0\xaf") << "MW1403 1:4";
    QTest::newRow("UTF-16") << QByteArray("\xff\xfe"
                                          "a\0",
        4) << "MW1403 1:1";
    QTest::newRow("deep lists") << QByteArray(1'000, '[') + QByteArray(1'000, ']') << "MW1404 1:65";
    QTest::newRow("deep mappings") << QByteArray("{a: ").repeated(10'000) << "MW1404 1:253";
    QTest::newRow("deep dashes") << QByteArray("- ").repeated(10'000) << "MW1404 1:129";
    QTest::newRow("brackets without end") << QByteArray(1'000'000, '[') << "MW1404 1:33";
    QTest::newRow("alias of itself") << QByteArray("a: &a [*a]") << "MW1405 1:8";
    QTest::newRow("alias of nothing") << QByteArray("a: *b") << "MW1405 1:4";
    QTest::newRow("billion laughs") << laughs << "MW1406 6:4";
    QTest::newRow("nine megabytes") << QByteArray(9'000'000, 'a') << "MW1406 0:0";
    QTest::newRow("two documents") << QByteArray("a: 1\n---\nb: 2\n") << "MW1407 2:1";
    QTest::newRow("a key twice") << QByteArray("a: 1\nb: 2\na: 3\na: 4\n") << "MW1408 3:1 MW1408 4:1";
    QTest::newRow("tab") << QByteArray("a:\n\tb: 1\n") << "MW1410 2:1";
    QTest::newRow("a list as key") << QByteArray("? [a]\n: b\n") << "MW1411 1:3";
    QTest::newRow("a merge key") << QByteArray("a: &m {b: 1}\nc: {<<: *m}\n") << "MW1411 2:5";
    QTest::newRow("a tag") << QByteArray("a: !!python/object x") << "MW1411 1:4";
    QTest::newRow("empty") << QByteArray() << "MW1412 1:1";
    QTest::newRow("only a comment") << QByteArray("# nothing\n") << "MW1412 1:1";
}

void TestDocument::refusals()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, problems);

    const Document document = parseDocument(text.toStdString(), "f.yaml");
    QCOMPARE(allOf(document.problems), problems);
    for (const Problem& problem : document.problems)
        QCOMPARE(problem.place.file, "f.yaml");
}

void TestDocument::deepest()
{
    const std::string most = std::string(static_cast<std::size_t>(kDeepestDocument), '[')
        + std::string(static_cast<std::size_t>(kDeepestDocument), ']');
    QVERIFY(parseDocument(most, "f").problems.empty());
    QCOMPARE(allOf(parseDocument("[" + most + "]", "f").problems), "MW1404 1:65");
    // An alias does not help to go deeper.
    const std::string half = fmt::format("{}x{}", std::string(40, '['), std::string(40, ']'));
    const std::string deep = fmt::format("[&a {}, {}*a{}]", half, std::string(40, '['), std::string(40, ']'));
    QCOMPARE(allOf(parseDocument(deep, "f").problems).left(6), "MW1404");
}

void TestDocument::unquotedSpecs()
{
    const Document document = parseDocument("a: {w: P('data', None), b: P(None, 'model'), c: P('x'), d: \"P('data', None)\"}\n"
                                            "e: P('data', None) # {w: P('data', None)}\n"
                                            "f: |\n  {w: P('data', None)}\n",
        "f");
    QCOMPARE(allOf(document.problems), "MW1409 1:8 MW1409 1:28");
    QCOMPARE(tests::text(document.problems[0].fix), "write \"P('data', None)\"");
    QCOMPARE(
        shown(*document.root.find("a")), "{w: \"P('data', None)\", b: \"P(None, 'model')\", c: P('x'), d: \"P('data', None)\"}");
    QCOMPARE(shown(*document.root.find("e")), "P('data', None)");
    QCOMPARE(tests::text(document.root.find("f")->text), "{w: P('data', None)}\n");
}

void TestDocument::columnsAfterQuotes()
{
    // Columns are those of what the user wrote, not of the text with quotes.
    const Document document = parseDocument("a: {w: P('d', None), b: 1, c: P('d', None), d: 2}", "f");
    const DocNode* a = document.root.find("a");
    QVERIFY(a != nullptr);
    QCOMPARE(a->find("w")->column, 8);
    QCOMPARE(a->entries[1].column, 22);
    QCOMPARE(a->find("b")->column, 25);
    QCOMPARE(a->find("c")->column, 31);
    QCOMPARE(a->entries[3].column, 45);
}

void TestDocument::settings_data()
{
    QTest::addColumn<QString>("setting");
    QTest::addColumn<QString>("expected");

    QTest::newRow("replaces")
        << "train.steps=0"
        << "{train: {steps: 0}, mesh: {data: 4}, sharding: {layers.1: {w: s}, x: P()}, list: [a, b], none: ~}";
    QTest::newRow("appends")
        << "mesh.model=2"
        << "{train: {steps: 5}, mesh: {data: 4, model: 2}, sharding: {layers.1: {w: s}, x: P()}, list: [a, b], none: ~}";
    QTest::newRow("makes mappings")
        << "a.b.c=1"
        << "{train: {steps: 5}, mesh: {data: 4}, sharding: {layers.1: {w: s}, x: P()}, list: [a, b], none: ~, a: {b: {c: 1}}}";
    QTest::newRow("dotted key")
        << "sharding.layers.1.w=P('a', None)"
        << "{train: {steps: 5}, mesh: {data: 4}, sharding: {layers.1: {w: P('a', None)}, x: P()}, list: [a, b], none: ~}";
    QTest::newRow("a new name beside its beginning")
        << "sharding.x.input=[a]"
        << "{train: {steps: 5}, mesh: {data: 4}, sharding: {layers.1: {w: s}, x: P(), x.input: [a]}, list: [a, b], none: ~}";
    QTest::newRow("new dotted key")
        << "sharding.layers.2.w=[a]"
        << "{train: {steps: 5}, mesh: {data: 4}, sharding: {layers.1: {w: s}, x: P(), layers.2.w: [a]}, list: [a, b], none: ~}";
    QTest::newRow("list entry")
        << "list[1]=c"
        << "{train: {steps: 5}, mesh: {data: 4}, sharding: {layers.1: {w: s}, x: P()}, list: [a, c], none: ~}";
    QTest::newRow("list entry, dotted")
        << "list.0={x: 1}"
        << "{train: {steps: 5}, mesh: {data: 4}, sharding: {layers.1: {w: s}, x: P()}, list: [{x: 1}, b], none: ~}";
    QTest::newRow("below nothing")
        << "none.x=1"
        << "{train: {steps: 5}, mesh: {data: 4}, sharding: {layers.1: {w: s}, x: P()}, list: [a, b], none: {x: 1}}";
    QTest::newRow("to nothing") << "mesh=null"
                                << "{train: {steps: 5}, mesh: ~, sharding: {layers.1: {w: s}, x: P()}, list: [a, b], none: ~}";
    QTest::newRow("removes") << "mesh="
                             << "{train: {steps: 5}, sharding: {layers.1: {w: s}, x: P()}, list: [a, b], none: ~}";
    QTest::newRow("removes a dotted key")
        << "sharding.layers.1.w="
        << "{train: {steps: 5}, mesh: {data: 4}, sharding: {layers.1: {}, x: P()}, list: [a, b], none: ~}";
    QTest::newRow("removes what is not there")
        << "mesh.model="
        << "{train: {steps: 5}, mesh: {data: 4}, sharding: {layers.1: {w: s}, x: P()}, list: [a, b], none: ~}";
    QTest::newRow("entries keep their indices")
        << "list[0]="
        << "{train: {steps: 5}, mesh: {data: 4}, sharding: {layers.1: {w: s}, x: P()}, list: [~, b], none: ~}";
    QTest::newRow("equals sign in the value")
        << "mesh=data=8"
        << "{train: {steps: 5}, mesh: data=8, sharding: {layers.1: {w: s}, x: P()}, list: [a, b], none: ~}";
}

void TestDocument::settings()
{
    QFETCH(QString, setting);
    QFETCH(QString, expected);

    Document document
        = parseDocument("train: {steps: 5}\nmesh: {data: 4}\nsharding: {layers.1: {w: s}, x: P()}\nlist: [a, b]\nnone:\n", "f");
    const std::vector<std::string> settings = {setting.toStdString()};
    QCOMPARE(allOf(applySettings(document.root, settings)), QString());
    QCOMPARE(shown(document.root), expected);
}

void TestDocument::settingIntoMeshText()
{
    Document document = parseDocument("mesh: data=4,model=2\n", "f");
    const std::vector<std::string> settings = {"mesh.model=1", "mesh.pipe=3"};
    QCOMPARE(allOf(applySettings(document.root, settings)), QString());
    QCOMPARE(shown(document.root), "{mesh: {data: 4, model: 1, pipe: 3}}");
}

void TestDocument::badSettings_data()
{
    QTest::addColumn<QString>("setting");
    QTest::addColumn<QString>("id");

    QTest::newRow("no equals sign") << "train.steps"
                                    << "MW1433";
    QTest::newRow("no path") << "=1"
                             << "MW1433";
    QTest::newRow("empty part") << "train..steps=1"
                                << "MW1433";
    QTest::newRow("into a value") << "a.b=1"
                                  << "MW1433";
    QTest::newRow("past the end") << "list[2]=1"
                                  << "MW1433";
    QTest::newRow("no index") << "list.x=1"
                              << "MW1433";
    QTest::newRow("no YAML") << "a=[1"
                             << "MW1402";
}

void TestDocument::badSettings()
{
    QFETCH(QString, setting);
    QFETCH(QString, id);

    Document document = parseDocument("a: 1\nlist: [1, 2]\n", "f");
    const std::vector<std::string> settings = {setting.toStdString()};
    const Problems problems = applySettings(document.root, settings);
    QCOMPARE(problems.size(), std::size_t{1});
    QCOMPARE(tests::text(problems[0].id), id);
    QCOMPARE(tests::text(problems[0].place.file), "--set " + setting);
    QVERIFY(!problems[0].fix.empty());
    QCOMPARE(shown(document.root), "{a: 1, list: [1, 2]}");
}

/// Short texts of the characters that mean something to YAML, in all kinds of order: read or refused, never worse.
void TestDocument::anyBytes()
{
    const std::string alphabet = "a:-?[]{},#&*!|>'\"%@`\n \tP(";
    std::uint64_t state = 12345;
    for (int round = 0; round < 20'000; ++round) {
        std::string text;
        for (int i = 0; i < 24; ++i) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            text += alphabet[(state >> 33U) % alphabet.size()];
        }
        const Document document = parseDocument(text, "f");
        QVERIFY(document.readable || !document.problems.empty());
    }
}

MESHWRIGHT_TEST(TestDocument)

} // namespace tst_document

#include "tst_document.moc"
