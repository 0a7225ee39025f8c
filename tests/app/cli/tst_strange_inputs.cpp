// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QElapsedTimer>
#include <QTemporaryDir>

#include <sys/stat.h>

namespace tst_strange_inputs {

using namespace meshwright;

namespace {

/// True when a terminal would obey something of it.
bool obeysAnything(const QByteArray& words)
{
    const QString text = QString::fromUtf8(words);
    return text.toUtf8() != words || std::any_of(text.begin(), text.end(), [](QChar c) {
        return (c.category() == QChar::Other_Control && c != '\n' && c != '\t') || c == QChar(0x202E);
    });
}

} // namespace

/// Files that are not studies, programs or results at all, given to every verb that reads files: each ends soon, with a documented exit code and words
/// that a terminal may show.
class TestStrangeInputs : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void everyVerb_data();
    void everyVerb();
    void namesAreText_data();
    void namesAreText();
    void littleMemory_data();
    void littleMemory();

private:
    QString written(const QString& name, const QByteArray& content) const
    {
        QFile file(m_folder.filePath(name));
        return file.open(QIODevice::WriteOnly) && file.write(content) == content.size() ? file.fileName() : QString();
    }

    QTemporaryDir m_folder;
    QList<std::pair<QString, QString>> m_inputs; ///< what it is, and its path
};

void TestStrangeInputs::initTestCase()
{
    QVERIFY(m_folder.isValid());
    const auto add = [&](const QString& what, const QByteArray& content) { m_inputs.emplaceBack(what, written(what, content)); };
    add("empty", "");
    add("zeros", QByteArray(5000, '\0'));
    add("no UTF-8", "meshwright: 1\nname: \xFF\xFE\x80\n");
    add("lists", QByteArray(200'000, '['));
    add("objects", QByteArray("{\"a\":").repeated(100'000));
    add(
        "nested YAML", QByteArray("a:\n") + [] {
            QByteArray text;
            for (int i = 1; i < 2000; ++i)
                text += QByteArray(i, ' ') + "a:\n";
            return text;
        }());
    add("brackets in a program", "func.func @main() {\n" + QByteArray("%0 = \"a\"() ({").repeated(20'000));
    add("types in a program", "func.func @main(%a: " + QByteArray("tuple<").repeated(50'000) + ") { return }");
    add("numbers", "meshwright: 1\nbatch: 1e999999\nmesh: {a: 99999999999999999999999}\nmodel: {mlp: {layers: [-1, 1e400]}}\n");
    add("large sizes",
        "func.func @main(%a: tensor<9223372036854775807x9223372036854775807xf32>) -> tensor<f32> {\n"
        "  %0 = stablehlo.constant dense<0> : tensor<99999999999999999999xf32>\n  return %0 : tensor<f32>\n}\n");
    add("aliases",
        "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, "
        "*b]\n"
        "d: &d [*c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e]\n");
    add("escapes",
        "meshwright: 1\nname: \"\\e]0;owned\\a\\e[2J\"\nmesh: {\"\\e[31m\": 2}\nmodel: {mlp: {layers: [4, 2]}}\n\"\\e[8m\": 1\n");
    add("schema only", "{\"schema\": \"meshwright.report/1\"}");
    add("page",
        "<!doctype html><html><meta name=\"generator\" content=\"Meshwright\"><script type=\"application/json\">[[[</script>");
    m_inputs.emplaceBack("a folder", m_folder.path());
    m_inputs.emplaceBack("nothing", m_folder.filePath("\033[31mnothing\n"));
    m_inputs.emplaceBack("without end", "/dev/zero");
    m_inputs.emplaceBack("a device", "/dev/null");
    QVERIFY(QFile::link(m_folder.filePath("loop"), m_folder.filePath("loop")));
    m_inputs.emplaceBack("a link to itself", m_folder.filePath("loop"));
    m_inputs.emplaceBack("a name too long", m_folder.filePath(QString(5000, 'x')));
    m_inputs.emplaceBack("memory of the process", "/proc/self/mem");
}

void TestStrangeInputs::everyVerb_data()
{
    QTest::addColumn<QStringList>("arguments"); // INPUT stands for the file

    const QString study = tests::example("digits.yaml");
    const auto row = [](const char* name, const QStringList& arguments) { QTest::newRow(name) << arguments; };
    row("check", {"check", "INPUT"});
    row("check --fix", {"check", "--fix", "INPUT"});
    row("check as JSON", {"check", "INPUT", "--format", "json"});
    row("train", {"train", "INPUT"});
    row("train --resume", {"train", study, "--resume", "INPUT"});
    row("simulate", {"simulate", "INPUT"});
    row("search", {"search", "INPUT", "--time-limit", "1"});
    row("sweep", {"sweep", "INPUT", "--vary", "batch=1,2"});
    row("report", {"report", "INPUT"});
    row("report --result", {"report", study, "--result", "INPUT"});
    row("report --sweep", {"report", "--sweep", "INPUT"});
    row("diff", {"diff", study, "INPUT"});
    row("run", {"run", "INPUT"});
    row("propagate", {"propagate", "INPUT"});
    row("partition", {"partition", "INPUT"});
    row("reshard", {"reshard", "--from", "INPUT", "--to", study, "--dry-run"});
    row("explain", {"explain", "INPUT"});
    row("calibrate", {"calibrate", "INPUT"});
    row("validate", {"validate", "INPUT"});
}

void TestStrangeInputs::everyVerb()
{
    QFETCH(QStringList, arguments);
    for (const auto& [what, path] : m_inputs) {
        QStringList line = arguments;
        line.replaceInStrings("INPUT", path);
        QElapsedTimer time;
        time.start();
        const QByteArray before = [&, file = path] {
            QFile content(file);
            return QFileInfo(file).isFile() && content.open(QIODevice::ReadOnly) ? content.readAll() : QByteArray();
        }();
        const tests::Outcome outcome = tests::runProgram(MESHWRIGHT_PROGRAM, line);
        const QByteArray said = what.toUtf8() + ": exit code " + QByteArray::number(outcome.code) + ", "
            + QByteArray::number(time.elapsed()) + " ms\n" + (outcome.out + outcome.err).left(2000);
        const bool isExplained = line.front() == "explain" && outcome.code <= 1; // any text may be pasted
        QVERIFY2(isExplained || (outcome.code >= 1 && outcome.code <= 6), said);
        QVERIFY2(!obeysAnything(outcome.out) && !obeysAnything(outcome.err), said);
        QVERIFY2(!outcome.out.isEmpty() || !outcome.err.isEmpty(), said);
        QVERIFY2(time.elapsed() < 20'000, said);
        QFile content(path);
        if (QFileInfo(path).isFile() && content.open(QIODevice::ReadOnly) && !line.contains("--fix"))
            QVERIFY2(content.readAll() == before, said);
    }
}

void TestStrangeInputs::namesAreText_data()
{
    QTest::addColumn<QStringList>("arguments");

    const auto row = [](const char* name, const QStringList& arguments) { QTest::newRow(name) << arguments; };
    const QStringList formats = {"text", "json", "csv"};
    for (const QString& format : formats)
        row(qPrintable("simulate " + format), {"simulate", "STUDY", "--format", format});
    for (const char* format : {"text", "json", "csv", "md"})
        row(qPrintable(QString("sweep ") + format),
            {"sweep", "STUDY", "--vary", "batch=8,16", "--vary", "name==1+1,\033[31m", "--format", format});
    for (const char* format : {"md", "csv", "json", "html"})
        row(qPrintable(QString("report ") + format), {"report", "STUDY", "--format", format});
    row("train", {"train", "STUDY", "--set", "train.steps=2"});
    row("train as JSON", {"train", "STUDY", "--set", "train.steps=2", "--format", "json"});
    row("check", {"check", "STUDY", "--set", "mesh.data=3"});
    row("colours", {"check", "STUDY", "--set", "mesh.data=3", "--color", "always"});
    row("unknown flag", {"check", "--\033[31m"});
    row("unknown verb", {"\033]0;x\007"});
    row("a spec", {"show", "--mesh", "a=2", "--shape", "4", "--spec", "P('\033[31m')"});
    row("a program", {"propagate", "PROGRAM"});
    row("a partitioned program", {"partition", "PROGRAM", "--format", "json"});
    row("a program that runs", {"run", "PROGRAM"});
    row("a program that is wrong", {"check", "PROGRAM"});
}

/// A study and a program whose names hold what terminals obey and spreadsheets compute.
void TestStrangeInputs::namesAreText()
{
    QFETCH(QStringList, arguments);
    const QString study = written("names.yaml",
        "meshwright: 1\nname: \"=HYPERLINK(1)\\e[31m\\u009b2J\\u202e\\nx\"\nmesh: {data: 2}\n"
        "hardware: {chip: v3, topology: [1, 1]}\nmodel: {mlp: {layers: [64, 8, 10]}}\nbatch: 8\n"
        "sharding: {x: \"P('data', None)\"}\ntrain: {steps: 2, data: random}\n");
    const QString program = written("names.mlir",
        "sdy.mesh @\"m\\1B[2J\" = <[\"a\\1B[31m\"=2]>\n"
        "func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@\"m\\1B[2J\", [{\"a\\1B[31m\"}]>} "
        "loc(\"x\\1B]0;y\\07\"))"
        " -> tensor<4xf32> {\n  %0 = stablehlo.sine %arg0 : tensor<4xf32> loc(\"\x1B[5m\")\n  return %0 : tensor<4xf32>\n}\n");
    arguments.replaceInStrings("STUDY", study);
    arguments.replaceInStrings("PROGRAM", program);
    const tests::Outcome outcome = tests::runProgram(MESHWRIGHT_PROGRAM, arguments);
    QVERIFY2(outcome.code >= 0 && outcome.code <= 6, QByteArray::number(outcome.code) + outcome.err);
    QByteArray err = outcome.err;
    for (const char* ours : {"\033[1;31m", "\033[1;33m", "\033[1;36m", "\033[0m"})
        err.replace(ours, "");
    QVERIFY2(!obeysAnything(outcome.out), outcome.out);
    QVERIFY2(!obeysAnything(err), err);
    if (arguments.contains("csv")) {
        for (const QByteArray& line : outcome.out.split('\n'))
            for (const QByteArray& cell : line.split(','))
                QVERIFY2(!cell.startsWith('=') && !cell.startsWith("\"="), line);
    }
}

void TestStrangeInputs::littleMemory_data()
{
    QTest::addColumn<QStringList>("arguments");

    QTest::newRow("train") << QStringList{"train", tests::example("digits.yaml"), "--set", "train.steps=2", "-q"};
    QTest::newRow("in threads of its own") // where no caller could catch anything
        << QStringList{"sweep", tests::example("wide_mlp.yaml"), "--vary", "mesh=data*model=8", "--jobs", "2", "-q"};
    QTest::newRow("report") << QStringList{"report", tests::example("wide_mlp.yaml")};
}

/// Where the system gives no more memory, that is said.
void TestStrangeInputs::littleMemory()
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    QSKIP("sanitizers need terabytes of addresses");
#endif
    QFETCH(QStringList, arguments);
    const auto runWith = [](int megabytes, const QStringList& words) {
        return tests::runProgram("sh",
            QStringList{"-c", QString("ulimit -v %1; exec \"$@\"").arg(megabytes * 1024), "sh", MESHWRIGHT_PROGRAM} + words);
    };
    int refused = 0;
    for (int megabytes = 24; megabytes <= 104; megabytes += 8) {
        if (const int code = runWith(megabytes, {"--version"}).code; code != 0 && code != 6)
            continue; // it could not even be loaded, or its libraries could not begin
        const tests::Outcome outcome = runWith(megabytes, arguments);
        QVERIFY2(outcome.code == 6 || outcome.code == 0,
            QByteArray::number(megabytes) + " MB: exit code " + QByteArray::number(outcome.code) + "\n" + outcome.err);
        QVERIFY2(!outcome.err.contains("internal") && !outcome.err.contains("terminate"), outcome.err);
        refused += outcome.err.contains("MW1515") ? 1 : 0; // or the verb itself knew what it could not have
    }
    QVERIFY(refused > 0);
}

MESHWRIGHT_TEST(TestStrangeInputs)

} // namespace tst_strange_inputs

#include "tst_strange_inputs.moc"
