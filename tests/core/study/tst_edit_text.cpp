// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/document.h"
#include "core/study/edit_text.h"
#include "core/study/study.h"
#include "core/support/file.h"
#include "tests/random_shardings.h"
#include "tests/seeds.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <filesystem>

namespace tst_edit_text {

using namespace meshwright;
using namespace meshwright::tests;

/// Settings written into a text: what is asked for changes, every other byte stays, and the text reads as the settings say.
class TestEditText : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void edits_data();
    void edits();
    void examples_data();
    void examples();
    void commentsOfExamplesStay();
    void randomTexts_data();
    void randomTexts();
    void randomSettings_data();
    void randomSettings();
    void rewrites_data();
    void rewrites();
    void refuses_data();
    void refuses();
    void withSetting_data();
    void withSetting();
    void settingTexts();
};

namespace {

std::vector<std::string> listOf(const QStringList& settings)
{
    std::vector<std::string> list;
    for (const QString& setting : settings)
        list.push_back(setting.toStdString());
    return list;
}

/// Empty when the edited text reads as `applySettings` says; else what went wrong.
std::string difference(const std::string& text, const std::vector<std::string>& settings, const EditedText& edited)
{
    Document before = parseDocument(text, "s.yaml");
    if (!applySettings(before.root, settings).empty())
        return "the settings are refused";
    const Document after = parseDocument(edited.text, "s.yaml");
    if (!after.readable)
        return "broken: " + describe(after.problems) + "\n" + edited.text;
    return sameContent(before.root, after.root) ? std::string() : "reads otherwise:\n" + edited.text;
}

const char* const kBlock = "# a study\n"
                           "meshwright: 1\n"
                           "mesh:            # counts devices\n"
                           "  data: 4        # the batch\n"
                           "  model: 2\n"
                           "  # the last axis is the fastest\n"
                           "\n"
                           "# what is trained\n"
                           "model:\n"
                           "  mlp: {layers: [784,  8192, 10], loss: mse} # wide\n"
                           "sharding:\n"
                           "  x: P('data', None)\n"
                           "  layers.1: {w: \"P(None, 'model')\"}\n"
                           "  match:\n"
                           "    - {path: '*.w', spec: [data]}\n"
                           "    - path: \"*\"\n"
                           "      spec: []   # all others\n"
                           "# how long\n"
                           "train: {steps: 3}\n";

/// kBlock with one text in the place of another.
QString block(const char* what, const char* by)
{
    return QString(kBlock).replace(what, by);
}

} // namespace

void TestEditText::edits_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<QString>("expected");

    const auto row = [](const char* name, const char* setting, const char* what, const char* by) {
        QTest::newRow(name) << QString(kBlock) << QStringList(setting) << block(what, by);
    };
    row("nothing new", "mesh.data=4", "", "");
    row("scalar", "mesh.data=16", "data: 4        #", "data: 16        #");
    row("in a flow mapping", "train.steps=30", "steps: 3", "steps: 30");
    row("entry of a flow list", "model.mlp.layers.1=64", "784,  8192, 10", "784,  64, 10");
    row("longer flow list", "model.mlp.layers=[784, 8192, 64, 10]", "784,  8192, 10", "784,  8192, 64, 10");
    row("shorter flow list", "model.mlp.layers=[784, 8192]", "784,  8192, 10", "784,  8192");
    row("a spec on its line", "sharding.x=P(None, 'data')", "x: P('data', None)", "x: P(None, 'data')");
    row("a spec in flow keeps its quotes", "sharding.layers.1.w=P('model', None)", "\"P(None, 'model')\"",
        "\"P('model', None)\"");
    row("a new spec on a line", "sharding.y=P('data', None)", "      spec: []   # all others\n",
        "      spec: []   # all others\n  y: P('data', None)\n");
    row("a new key in flow", "train.seed=7", "{steps: 3}", "{steps: 3, seed: 7}");
    row("a new spec in flow needs quotes", "sharding.layers.1={w: \"P(None, 'model')\", b: \"P('model',)\"}",
        "\"P(None, 'model')\"}", "\"P(None, 'model')\", b: \"P('model',)\"}");
    row("after the comments of the mapping", "mesh.pipe=2", "is the fastest\n", "is the fastest\n  pipe: 2\n");
    row("a whole mapping, entry by entry", "mesh={data: 8, model: 1}", "data: 4        # the batch\n  model: 2",
        "data: 8        # the batch\n  model: 1");
    row("a renamed key", "mesh={batch: 4, model: 2}", "  data: 4        #", "  batch: 4        #");
    row("a key less", "mesh={model: 2}", "  data: 4        # the batch\n", "");
    row("the last key less", "mesh={data: 4}", "  model: 2\n", "");
    row("other order", "mesh={model: 2, data: 4}", "data: 4        # the batch\n  model: 2", "model: 2\n  data: 4");
    row("a block becomes a word", "mesh=data=8", "            # counts devices\n  data: 4        # the batch\n  model: 2\n",
        " data=8            # counts devices\n");
    row("removes a line", "sharding.x=", "  x: P('data', None)\n", "");
    row("removes from flow", "model.mlp.loss=", ", loss: mse", "");
    row("removes the first from flow", "model.mlp.layers=", "layers: [784,  8192, 10], ", "");
    row("removes the only one", "train.steps=", "{steps: 3}", "{}");
    row("removes a block", "mesh=", "mesh:            # counts devices\n  data: 4        # the batch\n  model: 2\n", "");
    row("removes what is not there", "mesh.pipe=", "", "");
    row("at the end of the file", "batch=32", "train: {steps: 3}\n", "train: {steps: 3}\nbatch: 32\n");
    row("a mapping at the end", "optimizer.sgd.learning_rate=0.1", "train: {steps: 3}\n",
        "train: {steps: 3}\noptimizer: {sgd: {learning_rate: 0.1}}\n");
    row("in a list of blocks", "sharding.match.1.spec=[data, null]", "spec: []   #", "spec: [data, null]   #");
    row("a key in a list of blocks", "sharding.match.1.min_elements=9", "# all others\n",
        "# all others\n      min_elements: 9\n");
    row("single quotes stay", "sharding.match[0].path=\"*.b\"", "'*.w'", "'*.b'");
    row("a list of blocks grows", "sharding.match=[{path: \"*.w\", spec: [data]}, {path: \"*\", spec: []}, {path: a, spec: [b]}]",
        "# all others\n", "# all others\n    - {path: a, spec: [b]}\n");
    row("a list of blocks shrinks", "sharding.match=[{path: \"*.w\", spec: [data]}]",
        "    - path: \"*\"\n      spec: []   # all others\n", "");
    row("null", "train.steps=null", "steps: 3", "steps: null");

    const auto small = [](const char* name, const char* text, const QStringList& settings, const char* expected) {
        QTest::newRow(name) << QString(text) << settings << QString(expected);
    };
    small("no line end", "a: 1", {"b=2"}, "a: 1\nb: 2");
    small("no line end, a block", "m:\n  a: 1", {"m.b=2"}, "m:\n  a: 1\n  b: 2");
    small("no line end, inline", "m:\n  a: 1", {"m=2"}, "m: 2");
    small("Windows line ends", "a: 1\r\nm:\r\n  b: 2 # c\r\n", {"m.d=3", "a=5"}, "a: 5\r\nm:\r\n  b: 2 # c\r\n  d: 3\r\n");
    small("byte order mark",
        "\xEF\xBB\xBF"
        "a: 1\n",
        {"a=2"},
        "\xEF\xBB\xBF"
        "a: 2\n");
    small("document marks", "%YAML 1.2\n---\na: 1\n...\n", {"b=2"}, "%YAML 1.2\n---\na: 1\nb: 2\n...\n");
    small("nothing there yet", "mesh:\nname: x\n", {"mesh.data=4"}, "mesh: {data: 4}\nname: x\n");
    small("nothing there yet, a comment", "mesh: # axes\nname: x\n", {"mesh.data=4"}, "mesh: {data: 4} # axes\nname: x\n");
    small("written nothing", "a: ~ # no\nb: null\n", {"a=1", "b=2"}, "a: 1 # no\nb: 2\n");
    small("nothing in flow", "a: {b: , c: ~, d: 1}\n", {"a.b=1", "a.c=2"}, "a: {b: 1 , c: 2, d: 1}\n");
    small("empty flow", "a: {}\nb: []\n", {"a.x=1", "b=[1]"}, "a: {x: 1}\nb: [1]\n");
    small("sharding on lines of its own", "a: 1\n", {"sharding.x=P('data', None)", "sharding.y=P()"},
        "a: 1\nsharding:\n  x: P('data', None)\n  y: P()\n");
    small("text that looks like a number", "a: x\nb: \"3\"\n", {"a=\"3\"", "b=4"}, "a: \"3\"\nb: 4\n");
    small("text that needs quotes", "a: x\n", {"a=\"b: c\""}, "a: \"b: c\"\n");
    small("text of several lines", "a: one\n  two # c\nb: \"x\n  y\"\nc: |\n  k\n  l\nd: 1\n", {"a=1", "b=2", "c=3"},
        "a: 1 # c\nb: 2\nc: 3\nd: 1\n");
    small("JSON", "{\"a\": {\"b\": 1}, \"c\": \"x\"}\n", {"a.b=2", "a.d=y", "c=z", "e=[1, q]"},
        "{\"a\": {\"b\": 2, \"d\": \"y\"}, \"c\": \"z\", \"e\": [1, \"q\"]}\n");
    small("JSON on lines", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", {"c=3", "a="}, "{\n  \"b\": 2,\n  \"c\": 3\n}\n");
    small("flow on lines", "m: {\n  a: 1, # first\n  b: 2, # second\n}\n", {"m.c=3"},
        "m: {\n  a: 1, # first\n  b: 2, # second\n  c: 3,\n}\n");
    small("flow on lines, no last comma", "m: {\n  a: 1,\n  b: 2 # second\n}\n", {"m.c=3"},
        "m: {\n  a: 1,\n  b: 2, # second\n  c: 3\n}\n");
    small("list at its key's column", "l:\n- a\n- b\nm: 1\n", {"l=[a, b, c]", "l.0=x"}, "l:\n- x\n- b\n- c\nm: 1\n");
    small("brackets in quotes", "m: {a: \"}]\", b: ']{'} # }\n", {"m.c=1"}, "m: {a: \"}]\", b: ']{', c: 1} # }\n");
    small("keys in quotes", "\"a b\": {'c': 1}\n", {"a b.c=2", "a b.d=3"}, "\"a b\": {'c': 2, d: 3}\n");
    small("specs get the quotes they lack", "sharding: {x: P('data', None), y: \"P()\"} # c\n", {"sharding.y=P('data', None)"},
        "sharding: {x: \"P('data', None)\", y: \"P('data', None)\"} # c\n");
    small("specs get the quotes they lack, without settings", "s: {x: P('data', None)}\n", {}, "s: {x: \"P('data', None)\"}\n");
    small("an anchor elsewhere", "a: &x {b: 1}\nc: *x\nd: 1\n", {"d=2"}, "a: &x {b: 1}\nc: *x\nd: 2\n");
    small("mesh text spelt out", "mesh: data=4,model=2 # m\n", {"mesh.model=1"}, "mesh: {data: 4, model: 1} # m\n");
    small("several, the later on the earlier", "a: 1\n", {"b.c=1", "b.d=2", "b.c=3"}, "a: 1\nb: {c: 3, d: 2}\n");
}

void TestEditText::edits()
{
    QFETCH(QString, text);
    QFETCH(QStringList, settings);
    QFETCH(QString, expected);

    const auto edited = editedText(text.toStdString(), "s.yaml", listOf(settings));
    QVERIFY2(edited, qPrintable(described(edited)));
    QCOMPARE(tests::text(edited->text), expected);
    QVERIFY(!edited->rewritten);
    QCOMPARE(difference(text.toStdString(), listOf(settings), *edited), std::string());
}

namespace {

std::vector<std::filesystem::path> exampleFiles()
{
    std::vector<std::filesystem::path> files;
    for (const auto& entry :
        std::filesystem::directory_iterator(std::filesystem::path(MESHWRIGHT_SOURCE_DIR) / "resources/examples")) {
        if (entry.path().extension() == ".yaml")
            files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

/// What people change in a study, and some odd things.
const QStringList kSettings = {"mesh.data=2", "mesh={data: 2, model: 4}", "mesh={batch: 8}", "mesh.pipe=2", "mesh=data=8",
    "mesh=", "name=another", "name=\"a: b\"", "name=", "hardware.chip=h100", "hardware={chip: h100, hosts: 1, per_host: 8}",
    "hardware.topology=[2, 2, 2]", "hardware.topology=", "model.mlp.layers=[64, 32, 10]", "model.mlp.layers.1=512",
    "model.mlp.activation=tanh", "model.mlp.bias=false", "model={program: step.mlir}", "batch=1024",
    "batch=", "dtype.matmul=bf16", "dtype={parameters: bf16, matmul: bf16}", "init=lecun_normal", "sharding.x=P(None, 'data')",
    "sharding.layers.1.w=P('data', None)", "sharding.layers.1.w=", "sharding.layers.1={w: \"P()\"}", "sharding.layers.7.b=[data]",
    "sharding.opt.m.*=P('data')", "sharding.match=[]", "sharding.match=[{path: \"*\", spec: [data]}]", "sharding=", "sharding={}",
    "optimizer=none", "optimizer={adam: {learning_rate: 0.5}}", "optimizer.sgd.learning_rate=2", "train.steps=1",
    "train.data=random", "train={seed: 3}", "train=", "phases=[{steps: 3, mesh: {data: 8}}]", "phases=", "pipeline.stages=1",
    "meshwright=1"};

} // namespace

void TestEditText::examples_data()
{
    QTest::addColumn<QString>("file");
    for (const auto& file : exampleFiles())
        QTest::newRow(file.stem().c_str()) << tests::text(file.string());
}

/// Each setting alone, then all one after the other.
void TestEditText::examples()
{
    QFETCH(QString, file);
    const std::string original = valueOf(readFile(file.toStdString()));
    std::string together = original;
    for (const QString& setting : kSettings) {
        const std::vector<std::string> settings = {setting.toStdString()};
        for (std::string* text : {&together, static_cast<std::string*>(nullptr)}) {
            const std::string before = text != nullptr ? *text : original;
            Document document = parseDocument(before, "s.yaml");
            const auto edited = editedText(before, "s.yaml", settings);
            if (!applySettings(document.root, settings).empty()) { // into "optimizer: none", say
                QVERIFY(!edited);
                continue;
            }
            QVERIFY2(edited, qPrintable(setting + "\n" + described(edited)));
            const std::string wrong = difference(before, settings, *edited);
            QVERIFY2(wrong.empty(), (settings.front() + "\n" + wrong).c_str());
            QVERIFY2(!edited->rewritten, (settings.front() + "\n" + edited->text).c_str());
            if (text != nullptr)
                *text = edited->text;
        }
    }
}

/// Every line of an example that has nothing to do with a setting is still there afterwards.
void TestEditText::commentsOfExamplesStay()
{
    for (const auto& file : exampleFiles()) {
        const std::string original = valueOf(readFile(file));
        const auto edited = valueOf(editedText(original, "s.yaml", listOf({"batch=64", "sharding.y=P()", "train.steps=7"})));
        const QStringList after = tests::text(edited.text).split('\n');
        for (const QString& line : tests::text(original).split('\n')) {
            if (!line.startsWith("batch:") && !line.contains("y: ") && !line.startsWith("train:"))
                QVERIFY2(after.contains(line), qPrintable(line));
        }
    }
}

namespace {

/// A random value in YAML, with random spaces, quotes, comments, styles.
class RandomText {
public:
    explicit RandomText(Random& random)
        : m_random(random)
    {
    }

    std::string document()
    {
        std::string out = chance(m_random, 30) ? "# head\n" : "";
        blockMap(out, 0, 3);
        if (chance(m_random, 20))
            out += "# tail\n";
        if (chance(m_random, 10) && out.ends_with('\n'))
            out.pop_back();
        return out;
    }

    std::string setting()
    {
        std::string path = key();
        for (std::int64_t i = pick(m_random, 0, 2); i > 0; --i)
            path += "." + (chance(m_random, 20) ? std::to_string(pick(m_random, 0, 2)) : key());
        return path + "=" + (chance(m_random, 15) ? "" : flow(2));
    }

private:
    std::string key() { return std::string(1, static_cast<char>('a' + pick(m_random, 0, 4))); }

    std::string scalar(bool inFlow)
    {
        switch (pick(m_random, 0, 7)) {
        case 0:
            return "'it''s'";
        case 1:
            return "\"x \\\"y\\\" # z\"";
        case 2:
            return inFlow ? "\"P('data', None)\"" : "P('data', None)";
        case 3:
            return "~";
        case 4:
            return "1.5e3";
        case 5:
            return "\"7\"";
        default:
            return std::to_string(pick(m_random, -3, 99));
        }
    }

    std::string space() { return std::string(static_cast<std::size_t>(pick(m_random, 0, 2)), ' '); }

    std::string flow(int depth)
    {
        const std::int64_t kind = depth == 0 ? 0 : pick(m_random, 0, 3);
        if (kind < 2)
            return scalar(true);
        std::string out;
        std::set<std::string> used;
        for (std::int64_t i = pick(m_random, 0, 3); i > 0; --i) {
            const std::string name = key();
            if (kind == 2 && !used.insert(name).second)
                continue;
            out += (out.empty() ? "" : "," + std::string(" ") + space()) + (kind == 2 ? name + ": " + space() : "")
                + flow(depth - 1);
        }
        return kind == 2 ? "{" + space() + out + space() + "}" : "[" + space() + out + space() + "]";
    }

    std::string tail() { return chance(m_random, 25) ? space() + " # note: {x\n" : space() + "\n"; }

    void blockMap(std::string& out, std::size_t indent, int depth)
    {
        std::set<std::string> used;
        const std::int64_t count = pick(m_random, 1, 4);
        for (std::int64_t i = 0; i < count; ++i) {
            const std::string name = key();
            if (!used.insert(name).second)
                continue;
            if (chance(m_random, 15))
                out += std::string(indent, ' ') + "# about " + name + "\n";
            out += std::string(indent, ' ') + name + ":";
            blockValue(out, indent, depth);
            if (chance(m_random, 10))
                out += "\n";
        }
    }

    void blockValue(std::string& out, std::size_t indent, int depth)
    {
        const std::int64_t kind = depth == 0 ? 0 : pick(m_random, 0, 5);
        if (kind == 4) {
            out += tail();
            blockMap(out, indent + static_cast<std::size_t>(pick(m_random, 1, 3)), depth - 1);
        } else if (kind == 5) {
            out += tail();
            const std::size_t column = indent + static_cast<std::size_t>(pick(m_random, 0, 2));
            for (std::int64_t i = pick(m_random, 1, 3); i > 0; --i)
                out += std::string(column, ' ') + "- " + flow(1) + tail();
        } else if (chance(m_random, 10)) {
            out += tail(); // nothing
        } else {
            out += " " + space() + (kind < 2 ? scalar(false) : flow(2)) + tail();
        }
    }

    Random& m_random;
};

} // namespace

void TestEditText::randomTexts_data()
{
    tests::addSeeds({20240607, 20240608});
}

/// Random documents in all styles, random settings: the edited text reads as it should, and nearly always without being written anew.
void TestEditText::randomTexts()
{
    QFETCH(quint64, seed);
    Random random(seed);
    RandomText texts(random);
    int edits = 0;
    int rewritten = 0;
    for (int round = 0; round < 4000; ++round) {
        const std::string text = texts.document();
        std::vector<std::string> settings;
        for (std::int64_t i = pick(random, 1, 3); i > 0; --i)
            settings.push_back(texts.setting());
        Document document = parseDocument(text, "s.yaml");
        QVERIFY2(document.readable && document.problems.empty(), text.c_str());
        if (!applySettings(document.root, settings).empty())
            continue;
        const auto edited = editedText(text, "s.yaml", settings);
        const std::string what = text + "\n--set " + settings.front() + "\n";
        QVERIFY2(edited, (what + described(edited).toStdString()).c_str());
        const std::string wrong = difference(text, settings, *edited);
        QVERIFY2(wrong.empty(), (what + wrong).c_str());
        ++edits;
        rewritten += edited->rewritten ? 1 : 0;
    }
    QVERIFY2(edits > 1000, std::to_string(edits).c_str());
    QVERIFY2(rewritten * 50 < edits, fmt::format("{} of {} were written anew", rewritten, edits).c_str());
}

void TestEditText::randomSettings_data()
{
    tests::addSeeds({7, 8});
}

/// Any characters as text and as setting: a good edit or a refusal, never a broken text.
void TestEditText::randomSettings()
{
    const std::string alphabet = "ab:-?[]{},#&*!|>'\"=.1 \n\tP(";
    QFETCH(quint64, seed);
    Random random(seed);
    const auto any = [&](int length) {
        std::string text;
        for (int i = 0; i < length; ++i)
            text += alphabet[static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(alphabet.size()) - 1))];
        return text;
    };
    for (int round = 0; round < 6000; ++round) {
        const std::string text = chance(random, 50) ? any(14) : "a: 1\nb: {a: [1, 2], b: x}\n" + any(6);
        const std::vector<std::string> settings = {(chance(random, 50) ? "b.a=" : "a=") + any(6)};
        const auto edited = editedText(text, "s.yaml", settings);
        if (edited) {
            const std::string wrong = difference(text, settings, *edited);
            QVERIFY2(wrong.empty(), (text + "\n--set " + settings.front() + "\n" + wrong).c_str());
        }
    }
}

void TestEditText::rewrites_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<QString>("expected");

    QTest::newRow("through an alias") << "# head\n\na: &x {b: 1} # note\nc: *x\n"
                                      << QStringList{"c.b=2"} << "# head\n\na: {b: 1}\nc: {b: 2}\n";
    QTest::newRow("what an alias stands for") << "a: &x {b: 1}\nc: *x\n" << QStringList{"a.b=2"} << "a: {b: 2}\nc: {b: 1}\n";
    QTest::newRow("a complex key") << "? a\n: 1\nb: 2\n" << QStringList{"a=2"} << "a: 2\nb: 2\n";
    QTest::newRow("specs get lines") << "a: &x 1\nb: *x\nsharding: {x: \"P('data', None)\"}\n"
                                     << QStringList{"a=2"} << "a: 2\nb: 1\nsharding:\n  x: P('data', None)\n";
    QTest::newRow("all keys removed") << "a: 1\n" << QStringList{"a="} << "{}\n";
}

void TestEditText::rewrites()
{
    QFETCH(QString, text);
    QFETCH(QStringList, settings);
    QFETCH(QString, expected);

    const auto edited = editedText(text.toStdString(), "s.yaml", listOf(settings));
    QVERIFY2(edited, qPrintable(described(edited)));
    QCOMPARE(tests::text(edited->text), expected);
    QVERIFY(edited->rewritten);
    QCOMPARE(difference(text.toStdString(), listOf(settings), *edited), std::string());
}

void TestEditText::refuses_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("setting");
    QTest::addColumn<QString>("ids");

    QTest::newRow("no YAML") << "a: [1"
                             << "a=1"
                             << "MW1402";
    QTest::newRow("two documents") << "a: 1\n---\nb: 2\n"
                                   << "a=1"
                                   << "MW1407";
    QTest::newRow("empty") << ""
                           << "a=1"
                           << "MW1412";
    QTest::newRow("no setting") << "a: 1"
                                << "a"
                                << "MW1433";
    QTest::newRow("into a value") << "a: 1"
                                  << "a.b=1"
                                  << "MW1433";
    QTest::newRow("no value") << "a: 1"
                              << "a=[1"
                              << "MW1402";
}

void TestEditText::refuses()
{
    QFETCH(QString, text);
    QFETCH(QString, setting);
    QFETCH(QString, ids);
    QCOMPARE(idsOf(editedText(text.toStdString(), "s.yaml", listOf({setting}))), ids);
}

void TestEditText::withSetting_data()
{
    QTest::addColumn<QStringList>("before");
    QTest::addColumn<QString>("path");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QStringList>("after");

    QTest::newRow("first") << QStringList{} << "batch"
                           << "8" << QStringList{"batch=8"};
    QTest::newRow("replaces") << QStringList{"batch=4", "name=x"} << "batch"
                              << "8" << QStringList{"batch=8", "name=x"};
    QTest::newRow("adds") << QStringList{"batch=4"} << "batches"
                          << "8" << QStringList{"batch=4", "batches=8"};
    QTest::newRow("removes those below") << QStringList{"mesh.data=4", "batch=2", "mesh.model=2"} << "mesh"
                                         << "{data: 8}" << QStringList{"batch=2", "mesh={data: 8}"};
    QTest::newRow("below one that stays") << QStringList{"mesh={data: 8}"} << "mesh.data"
                                          << "4" << QStringList{"mesh={data: 8}", "mesh.data=4"};
    QTest::newRow("replaces a whole with those below") << QStringList{"mesh={data: 8}", "mesh.data=4"} << "mesh"
                                                       << "{a: 1}" << QStringList{"mesh={a: 1}"};
    QTest::newRow("brackets") << QStringList{"phases[0].steps=4"} << "phases.0.steps"
                              << "5" << QStringList{"phases.0.steps=5"};
    QTest::newRow("an array's brackets") << QStringList{"sharding.params['w']=P()"} << "sharding.params['w']"
                                         << "P('data')" << QStringList{"sharding.params['w']=P('data')"};
    QTest::newRow("equals sign in a value") << QStringList{"mesh=data=4"} << "mesh"
                                            << "data=8" << QStringList{"mesh=data=8"};
    QTest::newRow("removal") << QStringList{"sharding.x=P()"} << "sharding.x"
                             << "" << QStringList{"sharding.x="};
}

void TestEditText::withSetting()
{
    QFETCH(QStringList, before);
    QFETCH(QString, path);
    QFETCH(QString, value);
    QFETCH(QStringList, after);
    QCOMPARE(meshwright::withSetting(listOf(before), path.toStdString(), value.toStdString()), listOf(after));
}

void TestEditText::settingTexts()
{
    for (const char* text :
        {"plain", "P('data', None)", "P('data', None", "a: b", "# no", "3", "null", "", "{", "it's \"x\"", " x "}) {
        Document document = parseDocument("a: 1\n", "s.yaml");
        const std::vector<std::string> settings = {"a=" + settingText(text)};
        QVERIFY(applySettings(document.root, settings).empty());
        QCOMPARE(document.root.find("a")->text, std::string(text));
        QCOMPARE(document.root.find("a")->kind, DocNode::Kind::Scalar);
    }
    QCOMPARE(settingText("P('data', None)"), std::string("P('data', None)"));
    QCOMPARE(settingText("3"), std::string("\"3\""));
}

MESHWRIGHT_TEST(TestEditText)

} // namespace tst_edit_text

#include "tst_edit_text.moc"
