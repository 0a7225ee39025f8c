// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QXmlStreamReader>

#include <map>

namespace tst_command_line {

using namespace meshwright;

/// The program as a process: what it says where, and how it ends.
class TestCommandLine : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void exitCodes_data();
    void exitCodes();
    void usage_data();
    void usage();
    void showDraws();
    void showJson();
    void doctorJson();
    void configJson();
    void showShardShapes_data();
    void showShardShapes();
    void showSvg();
    void showColours();
    void checkReportsAll();
    void checkReadsStandardInput();
    void checkFailOn();
    void checkFixes();
    void checkFixesStandardInput();
    void checkFixKeepsWhatItCannotWrite();
    void memoryThatRunsOut_data();
    void memoryThatRunsOut();
    void unwritableOutput();
    void resultsOutliveFullDisks_data();
    void resultsOutliveFullDisks();
    void unwritableFileBeforeTheWork();
    void fileOnStandardOutputStandsAlone();
    void programsWithoutFunctions();
    void explain();
    void explainMessages();
    void explainDumps();
    void explainUnknown();
    void otherFiles_data();
    void otherFiles();
    void checkSpec();
    void checkLints();
    void lists();
    void helpBeginsWithExamples();
    void bashCompletes();
    void startsWithoutTheDesktop();
};

namespace {

using tests::example;
using tests::Outcome;

Outcome run(const QStringList& arguments, const QByteArray& input = {}, const QStringList& environment = {})
{
    QProcessEnvironment variables = tests::plainEnvironment();
    for (const QString& variable : environment)
        variables.insert(variable.section('=', 0, 0), variable.section('=', 1));
    return tests::runProgram(MESHWRIGHT_PROGRAM, arguments, input, variables);
}

const QStringList kShow = {"show", "--mesh", "data=4,model=2", "--shape", "128x512"};

QStringList show(const QStringList& more)
{
    return kShow + more;
}

} // namespace

void TestCommandLine::exitCodes_data()
{
    tests::addExitCodeColumns();

    QTest::newRow("version") << QStringList{"--version"} << 0 << "";
    QTest::newRow("a layout") << show({"--spec", "P('data')"}) << 0 << "";
    const auto check = [](const char* spec) {
        return QStringList{"check", "--mesh", "x=2,y=1,b=2", "--shape", "8x8", "--spec", spec};
    };
    QTest::newRow("check: a partial value over one device") << check("P(None, unreduced={'y'})") << 0 << "";
    QTest::newRow("check: an unconstrained dimension") << check("P(P.UNCONSTRAINED, 'b')") << 0 << "";
    QTest::newRow("check: whole values with partial cotangents") << check("P('b', reduced={'x'})") << 0 << "";
    QTest::newRow("check: a partial value") << check("P('b', unreduced={'x'})") << 3 << "MW1161";
    QTest::newRow("a type in place of a shape") << QStringList{"show", "bf16[8@data,4]", "--mesh", "data=4"} << 0 << "";
    QTest::newRow("neither shape nor type") << QStringList{"show", "P('data')", "--mesh", "data=4"} << 2
                                            << "MW1904: --shape is missing";
    QTest::newRow("a scalar") << QStringList{"show", "--mesh", "", "--shape", "scalar", "--spec", "P()"} << 0 << "";
    QTest::newRow("a study") << QStringList{"check", example("digits.yaml")} << 0 << "";
    QTest::newRow("doctor") << QStringList{"doctor"} << 0 << "";
    QTest::newRow("config") << QStringList{"config"} << 0 << "";
    QTest::newRow("config of a study") << QStringList{"config", example("digits.yaml"), "--hw", "v5e-8"} << 0 << "";
    QTest::newRow("config of settings alone") << QStringList{"config", "--set", "batch=8"} << 2 << "MW1904";
    QTest::newRow("config of a program") << QStringList{"config", example("mlp.mlir")} << 3 << "MW1830";
    QTest::newRow("config of no study") << QStringList{"config", "nowhere.yaml"} << 3 << "MW1001";
    QTest::newRow("config with a wrong setting")
        << QStringList{"config", example("digits.yaml"), "--set", "batch=x"} << 3 << "MW1422";
    QTest::newRow("doctor in no such form") << QStringList{"doctor", "--format", "csv"} << 2 << "one of: text, json";

    QTest::newRow("no verb") << QStringList{} << 2 << "MW1904";
    QTest::newRow("unknown verb") << QStringList{"chekc", "x"} << 2 << "did you mean \"check\"?";
    QTest::newRow("help for no verb") << QStringList{"help", "shwo"} << 2 << "did you mean \"show\"?";
    QTest::newRow("not a whole number") << QStringList{"mesh", "--hw", "h100", "--hosts", "abc", "--mesh",
        "a=8"} << 2 << "--hosts: \"abc\" is not a whole number of 1 or more\n  fix: see the examples of `meshwright mesh --help`";
    QTest::newRow("no hosts") << QStringList{"mesh", "--hw", "h100", "--hosts", "0", "--mesh", "a=8"} << 2
                              << "\"0\" is not a whole number";
    QTest::newRow("too few devices") << QStringList{"calibrate", "--devices", "1"} << 2 << "not a whole number from 2 to 1024";
    QTest::newRow("not an amount of memory") << QStringList{"run", example("mlp.mlir"), "--device-memory", "100XB"} << 2
                                             << "\"100XB\" is not an amount of memory; write 512MiB";
    QTest::newRow("permits") << QStringList{"run", example("mlp.mlir"), "--permits", "-1"} << 2
                             << "not a whole number from 1 to 1024";
    QTest::newRow("engine") << QStringList{"run", example("mlp.mlir"), "--engine", "thread"} << 2
                            << "MW1526: unknown engine \"thread\" for virtual devices\n  fix: did you mean \"threads\"?";
    QTest::newRow("seed") << QStringList{"run", example("mlp.mlir"), "--seed", "99999999999999999999"} << 2
                          << "not a whole number";
    QTest::newRow("stall") << QStringList{"run", example("mlp.mlir"), "--stall-timeout", "nan"} << 2 << "not a number of seconds";
    QTest::newRow("every without checkpoints") << QStringList{"train", example("fsdp.yaml"), "--every", "5"} << 2
                                               << "MW1912: --every has no effect without --checkpoint";
    QTest::newRow("profile without a prediction") << QStringList{"train", example("fsdp.yaml"), "--profile", "host.json"} << 2
                                                  << "MW1912: --profile has no effect without --predict";
    QTest::newRow("two files on standard output")
        << QStringList{"train", example("fsdp.yaml"), "--trace", "-", "-o", "-"} << 2 << "cannot both write to standard output";
    QTest::newRow("a study for a program") << QStringList{"propagate", example("fsdp.yaml")} << 3 << "MW1320: this is a study";
    QTest::newRow("a program for a study") << QStringList{"train", example("mlp.mlir")} << 3 << "MW1733";
    QTest::newRow("unknown flag") << QStringList{"show", "--mehs", "a=4", "--shape", "8", "--spec", "P()"} << 2
                                  << "did you mean \"--mesh\"?";
    QTest::newRow("unknown flag with a value") << show({"--spec", "P()", "--sacle=2"}) << 2 << "did you mean \"--scale\"?";
    QTest::newRow("unknown main flag") << QStringList{"--verison"} << 2 << "did you mean \"--version\"?";
    QTest::newRow("missing flag") << QStringList{"show", "--shape", "8"} << 2 << "MW1904: --mesh is missing";
    QTest::newRow("missing study") << QStringList{"check"} << 2 << "MW1904";
    QTest::newRow("too much") << QStringList{"doctor", "who"} << 2 << "MW1905";
    QTest::newRow("format") << show({"--spec", "P()", "--format", "jsn"}) << 2 << "one of: text, json, svg";
    QTest::newRow("colour") << show({"--spec", "P()", "--color", "red"}) << 2 << "MW1903";
    QTest::newRow("no number") << show({"--spec", "P()", "--scale", "big"}) << 2 << "MW1903";
    QTest::newRow("scale") << show({"--spec", "P()", "--scale", "0"}) << 2 << "MW1903";
    QTest::newRow("element type") << show({"--spec", "P()", "--dtype", "f31"}) << 2 << "MW1903";
    QTest::newRow("no mesh") << QStringList{"show", "--mesh", "data", "--shape", "8", "--spec", "P()"} << 2 << "MW1117";
    QTest::newRow("no order") << show({"--spec", "P()", "--device-order", "0,x"}) << 2 << "MW1118";
    QTest::newRow("no shape") << QStringList{"show", "--mesh", "a=2", "--shape", "8xy", "--spec", "P()"} << 2 << "MW1906";
    QTest::newRow("no spec") << show({"--spec", ""}) << 2 << "MW1105";
    QTest::newRow("unknown part of an axis") << show({"--spec", "[{\"data\":(1)3}, {}]"}) << 3 << "MW1141";
    QTest::newRow("tiles that do not divide")
        << QStringList{"show", "--mesh", "a=4", "--shape", "10", "--spec", "{devices=[4]<=[4]}"} << 3 << "MW1104";
    QTest::newRow("no id") << QStringList{"explain", "MW0001"} << 2 << "MW1908";
    QTest::newRow("no list") << QStringList{"list", "example"} << 2 << "did you mean \"examples\"?";

    QTest::newRow("unknown axis") << show({"--spec", "P('dta')"}) << 3 << "MW1102";
    QTest::newRow("axis twice") << show({"--spec", "P('data', 'data')"}) << 3 << "MW1103";
    QTest::newRow("rank") << show({"--spec", "P(None, None, 'data')"}) << 3 << "MW1101";
    QTest::newRow("not divisible") << QStringList{"show", "--mesh", "a=4", "--shape", "10", "--spec", "P('a')"} << 3 << "MW1104";
    QTest::newRow("size of zero") << QStringList{"show", "--mesh", "a=2", "--shape", "0x8", "--spec", "P()"} << 3 << "MW1401";
    QTest::newRow("2^63") << QStringList{"show", "--mesh", "a=2", "--shape", "9223372036854775808", "--spec", "P()"} << 3
                          << "MW1401";
    QTest::newRow("2^80 elements") << QStringList{"show", "--mesh", "a=2", "--shape", "1099511627776x1099511627776", "--spec",
        "P()"} << 3 << "MW1401";
    QTest::newRow("axis of zero") << QStringList{"show", "--mesh", "a=0", "--shape", "8", "--spec", "P()"} << 3 << "MW1112";
    QTest::newRow("axis of 2^62") << QStringList{"show", "--mesh", "a=4611686018427387904,b=4", "--shape", "8", "--spec", "P()"}
                                  << 3 << "MW1113";
    QTest::newRow("short order") << show({"--spec", "P()", "--device-order", "0,1"}) << 3 << "MW1114";
    QTest::newRow("missing file") << QStringList{"check", "/nonexistent.yaml"} << 3 << "MW1001";
    QTest::newRow("a directory") << QStringList{"check", "/"} << 3 << "MW1002";
    QTest::newRow("setting") << QStringList{"check", example("digits.yaml"), "--set", "mesh.data=3"} << 3 << "MW1104";
    QTest::newRow("no setting") << QStringList{"check", "--set", "mesh.data", example("digits.yaml")} << 3 << "MW1433";
    QTest::newRow("too many devices") << QStringList{"show", "--mesh", "a=16777216", "--shape", "8", "--spec", "P()"} << 2
                                      << "MW1907";
}

void TestCommandLine::exitCodes()
{
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QString, said);

    const Outcome outcome = run(arguments);
    tests::checkExitCode(outcome);
    if (said.isEmpty())
        QCOMPARE(outcome.err, QByteArray());
    if (code != 0 && arguments.value(0) != "check")
        QCOMPARE(outcome.out, QByteArray());
}

void TestCommandLine::usage_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("id");
    QTest::newRow("verb") << QStringList{"frobnicate"} << "MW1902";
    QTest::newRow("flag") << QStringList{"doctor", "--frobnicate"} << "MW1901";
    QTest::newRow("short flag") << QStringList{"doctor", "-z"} << "MW1901";
}

void TestCommandLine::usage()
{
    QFETCH(QStringList, arguments);
    QFETCH(QString, id);
    const Outcome outcome = run(arguments);
    QCOMPARE(outcome.code, 2);
    QVERIFY2(QString::fromUtf8(outcome.err).startsWith("error " + id), outcome.err.constData());
    QVERIFY(outcome.err.contains("fix: "));
}

void TestCommandLine::showDraws()
{
    const Outcome outcome = run({"show", "--mesh", "a=2,b=2", "--device-order", "0,1,3,2", "--shape", "64x64", "--spec",
        "P('a', 'b')", "--platform", "GPU"});
    QCOMPARE(outcome.code, 0);
    QCOMPARE(QString::fromUtf8(outcome.out),
        "┌──────────┬──────────┐\n"
        "│          │          │\n"
        "│  GPU 0   │  GPU 1   │\n"
        "│          │          │\n"
        "│          │          │\n"
        "├──────────┼──────────┤\n"
        "│          │          │\n"
        "│  GPU 3   │  GPU 2   │\n"
        "│          │          │\n"
        "│          │          │\n"
        "└──────────┴──────────┘\n");
}

void TestCommandLine::doctorJson()
{
    const Outcome outcome = run({"doctor", "--format", "json"});
    QCOMPARE(outcome.code, 0);
    QCOMPARE(tests::resultErrors(outcome.out), QString());
    const QJsonObject found = QJsonDocument::fromJson(outcome.out).object();
    QCOMPARE(found["fit"].toBool(), true);
    QStringList names;
    for (const auto& check : found["checks"].toArray())
        names << check.toObject()["name"].toString();
    QVERIFY(names.contains("matrix_products"));
    QVERIFY(names.contains("virtual_devices"));
    QVERIFY(names.contains("problem_ids"));
}

/// Each value of a study with its place: what the file says, what was set, and what nobody said.
void TestCommandLine::configJson()
{
    const QStringList settings = {"--set", "mesh.data=2", "--set", "optimizer.adam.beta1=0.8"};
    const Outcome outcome = run(QStringList{"config", example("digits.yaml"), "--format", "json"} + settings);
    QCOMPARE(outcome.code, 0);
    QCOMPARE(tests::resultErrors(outcome.out), QString());
    std::map<QString, std::pair<QString, QString>> values;
    for (const QJsonValue& value : QJsonDocument::fromJson(outcome.out).object()["values"].toArray())
        values[value["name"].toString()] = {value["value"].toString(), value["from"].toString()};
    const auto valueOf = [](const QString& value, const QString& from) { return std::pair(value, from); };
    const QString file = example("digits.yaml");
    QCOMPARE(values["batch"], valueOf("100", file + ":9"));
    QCOMPARE(values["mesh.data"], valueOf("2", "--set mesh.data=2"));
    QCOMPARE(values["mesh.model"], valueOf("2", file + ":5"));
    QCOMPARE(values["sharding.layers.1.w"], valueOf("P(None, 'model')", file + ":13"));
    QCOMPARE(values["optimizer.adam.beta1"], valueOf("0.8", "--set optimizer.adam.beta1=0.8"));
    QCOMPARE(values["optimizer.adam.beta2"], valueOf("0.999", "default"));
    QCOMPARE(values["stack"], valueOf("jax", "the usual one on this chip"));
    QCOMPARE(values["machine"].second, QString("hardware"));

    const Outcome unknown = run({"config", example("digits.yaml"), "--hw", "h1000"}); // the values are shown all the same
    QCOMPARE(unknown.code, 3);
    QVERIFY(unknown.out.contains("batch") && unknown.err.contains("MW1701"));
}

void TestCommandLine::showJson()
{
    const Outcome outcome = run(show({"--spec", "P('data', None)", "--dtype", "bf16", "--format", "json"}));
    QCOMPARE(outcome.code, 0);
    QCOMPARE(tests::resultErrors(outcome.out), QString());
    const QJsonObject layout = QJsonDocument::fromJson(outcome.out).object();
    QCOMPARE(layout["dtype"].toString(), "bf16");
    QCOMPARE(layout["spec"].toString(), "P('data', None)");
    QCOMPARE(layout["mesh"]["axes"].toArray(), (QJsonArray{QJsonArray{"data", 4}, QJsonArray{"model", 2}}));
    QCOMPARE(layout["shards"].toArray().size(), 4);
    QCOMPARE(layout["shards"][1]["index"].toArray(), (QJsonArray{QJsonArray{32, 64}, QJsonArray{0, 512}}));
    QCOMPARE(layout["shards"][1]["devices"].toArray(), (QJsonArray{2, 3}));
    QCOMPARE(layout["fully_replicated"].toBool(), false);

    const Outcome failed = run(show({"--spec", "P('nope', 'data', 'data')", "--format", "json"}));
    QCOMPARE(failed.code, 3);
    QCOMPARE(failed.err, QByteArray());
    QCOMPARE(tests::resultErrors(failed.out), QString());
    QCOMPARE(QJsonDocument::fromJson(failed.out)["problems"].toArray().size(), 3);
}

void TestCommandLine::showShardShapes_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("shape");
    QTest::addColumn<QString>("spec");
    QTest::addColumn<QJsonArray>("shardShape");
    QTest::newRow("rows") << "data=8"
                          << "128x512"
                          << "P('data', None)" << QJsonArray{16, 512};
    QTest::newRow("columns") << "data=8"
                             << "128x512"
                             << "P(None, 'data')" << QJsonArray{128, 64};
    QTest::newRow("both") << "data=4,model=2"
                          << "128x512"
                          << "P('data', 'model')" << QJsonArray{32, 256};
    QTest::newRow("model") << "model=8"
                           << "512x512"
                           << "P(None, 'model')" << QJsonArray{512, 64};
    // In other notations than JAX's.
    QTest::newRow("Shardy") << "data=8"
                            << "128x512"
                            << "[{\"data\":(1)4}, {?}]" << QJsonArray{32, 512};
    QTest::newRow("tiles") << "data=8"
                           << "128x512"
                           << "{devices=[2,1,4]<=[8] last_tile_dim_replicate}" << QJsonArray{64, 512};
    QTest::newRow("placements") << "data=4,model=2"
                                << "128x512"
                                << "[Shard(1), Partial()]" << QJsonArray{128, 128};
    QTest::newRow("the scaling book") << "data=4,model=2"
                                      << "128x512"
                                      << "A[I_data, J_model]" << QJsonArray{32, 256};
}

void TestCommandLine::showShardShapes()
{
    QFETCH(QString, mesh);
    QFETCH(QString, shape);
    QFETCH(QString, spec);
    QFETCH(QJsonArray, shardShape);
    const Outcome outcome = run({"show", "--mesh", mesh, "--shape", shape, "--spec", spec, "--format", "json"});
    QCOMPARE(QJsonDocument::fromJson(outcome.out)["shard_shape"].toArray(), shardShape);
}

void TestCommandLine::showSvg()
{
    const QTemporaryDir folder;
    const QString path = folder.filePath("layout.svg");
    const Outcome outcome = run(show({"--spec", "P('data')", "--format", "svg", "-o", path}));
    QCOMPARE(outcome.code, 0);
    QCOMPARE(outcome.out, QByteArray());
    QCOMPARE(outcome.err, "wrote " + path.toUtf8() + "\n");
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray svg = file.readAll();
    QXmlStreamReader reader(svg);
    while (!reader.atEnd())
        reader.readNext();
    QVERIFY2(!reader.hasError(), qPrintable(reader.errorString()));
    QCOMPARE(run(show({"--spec", "P('data')", "--format", "svg"})).out, svg);
}

void TestCommandLine::showColours()
{
    const QStringList arguments = show({"--spec", "P('data')"});
    QVERIFY(!run(arguments).out.contains('\033')); // no terminal
    QVERIFY(run(arguments, {}, {"CLICOLOR_FORCE=1"}).out.contains('\033'));
    QVERIFY(!run(arguments, {}, {"CLICOLOR_FORCE=1", "NO_COLOR=1"}).out.contains('\033'));
    QVERIFY(run(arguments + QStringList{"--color", "always"}, {}, {"NO_COLOR=1"}).out.contains('\033'));
    QVERIFY(!run(arguments + QStringList{"--color=never"}, {}, {"CLICOLOR_FORCE=1"}).out.contains('\033'));
    QVERIFY(run({"check", "/nonexistent", "--color", "always"}).err.contains("\033[1;31merror MW1001"));
}

void TestCommandLine::checkReportsAll()
{
    const QByteArray study = "meshwright: 1\nbacth: 3\nmesh: {data: 4}\nmodel: {mlp: {layers: [6, 0]}}\nbatch: 10\n"
                             "sharding: {x: \"P('dta')\"}\ntrain: {steps: nan}\n";
    const Outcome text = run({"check", "-"}, study);
    QCOMPARE(text.code, 3);
    QCOMPARE(text.out, "standard input: 4 errors, 0 warnings\n");
    const QString said = QString::fromUtf8(text.err);
    for (const char* line : {"standard input:2:1: error MW1420", "standard input:4:27: error MW1401",
             "standard input:6:15: error MW1102", "standard input:7:16: error MW1424"})
        QVERIFY2(said.contains(line), qPrintable(said));

    const Outcome json = run({"check", "-", "--format", "json"}, study);
    QCOMPARE(json.code, 3);
    QCOMPARE(json.err, QByteArray());
    QCOMPARE(tests::resultErrors(json.out), QString());
    const QJsonArray problems = QJsonDocument::fromJson(json.out)["problems"].toArray();
    QCOMPARE(problems.size(), 4);
    QCOMPARE(problems[0]["id"].toString(), "MW1420");
    QCOMPARE(problems[0]["line"].toInt(), 2);
    QCOMPARE(problems[0]["column"].toInt(), 1);
    QCOMPARE(problems[0]["fix"].toString(), "did you mean \"batch\"?");

    // Several files: all of their problems.
    const Outcome several = run({"check", example("digits.yaml"), "/nonexistent", "/"});
    QCOMPARE(several.code, 3);
    QVERIFY(several.out.contains("digits.yaml: no problems\n"));
    QVERIFY(several.err.contains("MW1001") && several.err.contains("MW1002"));
}

void TestCommandLine::checkReadsStandardInput()
{
    const Outcome outcome = run({"check", "-", "--set", "mesh.data=2", "--set", "sharding.x=P('data')", "--format", "json"},
        "meshwright: 1\nmodel: {mlp: {layers: [6, 4]}}\nbatch: 10\n");
    QCOMPARE(outcome.code, 0);
    QCOMPARE(tests::resultErrors(outcome.out), QString());
    QCOMPARE(QJsonDocument::fromJson(outcome.out)["problems"].toArray().size(), 0);
}

void TestCommandLine::checkFailOn()
{
    const QByteArray study
        = "meshwright: 1\nmodel: {mlp: {layers: [6, 4]}}\nbatch: 10\nsharding: {match: [{path: 'nothing*', spec: []}]}\n";
    QCOMPARE(run({"check", "-"}, study).code, 0);
    const Outcome outcome = run({"check", "--fail-on", "warning", "-"}, study);
    QCOMPARE(outcome.code, 1);
    QVERIFY(outcome.err.contains("warning MW1431"));
    QVERIFY(outcome.out.contains("rule \"nothing*\" matches no array"));
    QCOMPARE(run({"check", "--fail-on", "warnings", "-"}, study).code, 2);
}

namespace {

void writeFile(const QString& path, const QByteArray& content)
{
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(content);
}

QByteArray contentOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray("unreadable");
}

/// Three mistakes that a program can fix, and one that it cannot.
const QByteArray kFixable = "meshwright: 1 # a note\n"
                            "mesh: {data: \"1\"}\n"
                            "model: {mlp: {layers: [6, 4], loss: crossentropy}}\n"
                            "batch: 10\n"
                            "sharding: {x: P('dta', None)}\n";

} // namespace

void TestCommandLine::checkFixes()
{
    const QTemporaryDir folder;
    const QString path = folder.filePath("study.yaml");
    writeFile(path, kFixable + "bacth: 3\n");

    // Overrides are looked at, not written: with data=4 a batch of 10 does not divide.
    const Outcome outcome = run({"check", path, "--fix", "--set", "mesh.data=4"});
    QCOMPARE(outcome.code, 3);
    const QByteArray fixed = "meshwright: 1 # a note\nmesh: {data: 1}\n"
                             "model: {mlp: {layers: [6, 4], loss: cross_entropy}}\nbatch: 10\n"
                             "sharding: {x: \"P('data', None)\"}\nbacth: 3\n";
    QCOMPARE(contentOf(path), fixed);
    for (const char* line : {"fixed MW1409: P('dta', None) needs quotes", "fixed MW1422: expected an integer", "  mesh.data=1\n",
             "fixed MW1423: unknown name \"crossentropy\"", "  sharding.x=P('data', None)\n",
             "study.yaml: 2 errors, 0 warnings\n"})
        QVERIFY2(outcome.out.contains(line), outcome.out.constData());
    QVERIFY(outcome.err.contains("MW1420") && outcome.err.contains("MW1104"));

    // Once more: nothing to do, and the file is not touched.
    const QDateTime before = QFileInfo(path).lastModified();
    const Outcome again = run({"check", path, "--fix", "--format", "json"});
    QCOMPARE(again.code, 3);
    QCOMPARE(tests::resultErrors(again.out), QString());
    QVERIFY(!again.out.contains("fixed"));
    QCOMPARE(QFileInfo(path).lastModified(), before);

    writeFile(path, kFixable);
    const Outcome json = run({"check", path, "--fix", "--format", "json"});
    QCOMPARE(json.code, 0);
    QCOMPARE(tests::resultErrors(json.out), QString());
    const QJsonDocument document = QJsonDocument::fromJson(json.out);
    QCOMPARE(document["problems"].toArray().size(), 0);
    QCOMPARE(document["fixed"].toArray().size(), 4);
    QCOMPARE(document["fixed"][1]["fix_settings"][0].toString(), "mesh.data=1");
}

void TestCommandLine::checkFixesStandardInput()
{
    const Outcome outcome = run({"check", "-", "--fix"}, kFixable);
    QCOMPARE(outcome.code, 0);
    QVERIFY2(outcome.out.startsWith("meshwright: 1 # a note\nmesh: {data: 1}\n"), outcome.out.constData());
    QVERIFY(outcome.err.contains("standard input: fixed MW1422"));
    QCOMPARE(run({"check", "-", "--fix", "--format", "json"}, kFixable).code, 2);
    QCOMPARE(run({"check", "-", "--fix", example("digits.yaml")}, kFixable).code, 2);
    const Outcome unreadable = run({"check", "-", "--fix"}, "mesh: [");
    QCOMPARE(unreadable.code, 3);
    QCOMPARE(unreadable.out, QByteArray());
}

void TestCommandLine::checkFixKeepsWhatItCannotWrite()
{
    const QTemporaryDir folder;
    const QString path = folder.filePath("study.yaml");
    writeFile(path, "mesh: [");
    QCOMPARE(run({"check", path, "--fix"}).code, 3);
    QCOMPARE(contentOf(path), QByteArray("mesh: ["));
    QCOMPARE(run({"check", folder.filePath("none.yaml"), "--fix"}).code, 3);
    QVERIFY(!QFile::exists(folder.filePath("none.yaml")));
}

void TestCommandLine::memoryThatRunsOut_data()
{
    QTest::addColumn<int>("kibibytes");
    QTest::addColumn<QStringList>("arguments");

    for (const int kibibytes : {60'000, 100'000, 160'000}) {
        QTest::addRow("train within %d KiB", kibibytes)
            << kibibytes << QStringList{"train", example("wide_mlp.yaml"), "--set", "train.steps=1", "--quiet"};
        QTest::addRow("search within %d KiB", kibibytes)
            << kibibytes
            << QStringList{"search", "--model", "llama3_405b", "--hw", "h100x16384", "--tokens", "64M", "--seq", "8k"};
        QTest::addRow("sweep within %d KiB", kibibytes)
            << kibibytes << QStringList{"sweep", example("wide_mlp.yaml"), "--vary", "mesh=data*model=8", "--quiet"};
    }
}

/// A limit is a clear problem wherever it is met, in threads too; what needs less is done.
void TestCommandLine::memoryThatRunsOut()
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    QSKIP("the sanitizer reserves more address space than the limit leaves");
#endif
    QFETCH(int, kibibytes);
    QFETCH(QStringList, arguments);
    const Outcome outcome = tests::runProgram(
        "/bin/sh", QStringList{"-c", QString("ulimit -v %1; exec \"$0\" \"$@\"").arg(kibibytes), MESHWRIGHT_PROGRAM} + arguments);
    if (outcome.code == 0)
        return;
    QVERIFY2(outcome.code == 6, QByteArray::number(outcome.code) + outcome.err);
    const auto says = [&](const char* id) { return outcome.err.contains(id); }; // MW1630: nor has the machine so much
    QVERIFY2(says("error MW1515: there is not enough memory") || says("error MW1521") || says("error MW1630"), outcome.err);
}

void TestCommandLine::unwritableOutput()
{
    const Outcome outcome = run(show({"--spec", "P()", "-o", "/nonexistent/layout.txt"}));
    QCOMPARE(outcome.code, 3);
    QVERIFY(outcome.err.contains("MW1005"));
    QCOMPARE(run(show({"--spec", "P()", "-o", "/"})).code, 3);

    for (const QStringList& words : {show({"--spec", "P()"}), QStringList{"--help"}, QStringList{"--version"}}) {
        QProcess full; // a full disk
        full.setStandardOutputFile("/dev/full");
        full.start(MESHWRIGHT_PROGRAM, words);
        QVERIFY(full.waitForFinished(30'000));
        QCOMPARE(full.exitCode(), 6);
        QVERIFY(full.readAllStandardError().contains("MW1007"));
    }

    QProcess unread; // a reader that is gone
    unread.start("sh", {"-c", "(sleep 0.3; \"$0\" list problems; echo \"code $?\" >&2) | true", MESHWRIGHT_PROGRAM});
    QVERIFY(unread.waitForFinished(30'000));
    QCOMPARE(unread.readAllStandardError(), QByteArray("code 0\n"));
}

void TestCommandLine::resultsOutliveFullDisks_data()
{
    QTest::addColumn<QStringList>("arguments");

    QTest::newRow("simulate --trace") << QStringList{"simulate", example("fsdp.yaml"), "--trace", "/dev/full"};
    QTest::newRow("propagate -o") << QStringList{"propagate", example("mlp.mlir"), "-o", "/dev/full", "--format", "text"};
    QTest::newRow("sweep -o") << QStringList{
        "sweep", example("wide_mlp.yaml"), "--vary", "batch=1024,2048", "-o", "/dev/full", "--format", "csv"};
    QTest::newRow("search -o") << QStringList{"search", example("wide_mlp.yaml"), "-o", "/dev/full"};
}

/// A disk that fills up while a verb works: what it found is on standard output, and the exit code says that the file is missing.
void TestCommandLine::resultsOutliveFullDisks()
{
    QFETCH(QStringList, arguments);
    const Outcome outcome = run(arguments);
    QVERIFY2(outcome.code == 6, outcome.err);
    QVERIFY2(outcome.err.contains("MW1007"), outcome.err);
    QVERIFY(!outcome.out.isEmpty());
}

/// What could not be written in the end is said before anything is done.
void TestCommandLine::unwritableFileBeforeTheWork()
{
    const QStringList train = {"train", example("fsdp.yaml")};
    for (const QStringList& more : {QStringList{"-o", "/no/such/folder/r.json"}, QStringList{"--trace", "/no/such/folder/t.json"},
             QStringList{"--metrics", "/"}, QStringList{"--checkpoint", example("fsdp.yaml")}}) {
        const Outcome outcome = run(train + more);
        QCOMPARE(outcome.code, 3);
        QVERIFY2(outcome.err.contains("MW1005"), outcome.err);
        QVERIFY2(!outcome.err.contains("step 1/"), outcome.err);
    }
    QCOMPARE(run({"tour", "--report", "/no/such/folder/r.html"}).code, 3);
}

void TestCommandLine::fileOnStandardOutputStandsAlone()
{
    const Outcome traced = run({"simulate", example("fsdp.yaml"), "--trace", "-"});
    QCOMPARE(traced.code, 0);
    QVERIFY(!QJsonDocument::fromJson(traced.out).isNull());
    QVERIFY2(traced.err.contains("bound by"), traced.err);
    QCOMPARE(run({"simulate", example("fsdp.yaml"), "--trace", "-", "-q"}).err, QByteArray());
}

void TestCommandLine::programsWithoutFunctions()
{
    for (const char* verb : {"check", "run", "propagate", "partition"}) {
        const Outcome outcome = run({verb, "-"}, "module {\n}\n");
        QCOMPARE(outcome.code, 3);
        QVERIFY2(outcome.err.contains("MW1732: the program has no function"), outcome.err);
        QVERIFY2(outcome.err.contains("standard input"), outcome.err);
    }
}

void TestCommandLine::explain()
{
    const Outcome text = run({"explain", "mw1104"});
    QCOMPARE(text.code, 0);
    QVERIFY(text.out.startsWith("MW1104: a dimension is not divisible"));
    const Outcome json = run({"explain", "MW1104", "--format", "json"});
    QCOMPARE(tests::resultErrors(json.out), QString());
    QVERIFY(run({"explain", "MW1263"}).out.contains("MW1263 was replaced by MW1270"));
    const Outcome retired = run({"explain", "MW1263", "--format", "json"});
    QCOMPARE(tests::resultErrors(retired.out), QString());
    QCOMPARE(QJsonDocument::fromJson(retired.out).object()["replaced_by"].toString(), QString("MW1270"));
    QVERIFY(run({"explain", "MW1540"}).out.contains("Pipelines are simulated."));
    QVERIFY(run({"explain", "MW1199"}).err.contains("did you mean MW11"));
    const Outcome nothing = run({"explain", "MW1104"}, {}, {"MESHWRIGHT_RESOURCES=/nowhere"});
    QCOMPARE(nothing.code, 3);
    QVERIFY(nothing.err.contains("MW1006"));
}

void TestCommandLine::explainMessages()
{
    const QByteArray log
        = "starting\n[spmd] Involuntary full rematerialization. The compiler was not able to go from sharding "
          "{devices=[2,1,4]<=[4,2]T(1,0)} to {devices=[1,8,1]<=[8]} without doing a full rematerialization of the tensor.\n"
          "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x784 and 392x10)\n";
    const Outcome text = run({"explain", "-", "--mesh", "x=4,y=2", "--shape", "16x16x16"}, log);
    QCOMPARE(text.code, 0);
    QVERIFY(text.out.startsWith("line 2: XLA: involuntary full rematerialization\n"));
    QVERIFY(text.out.contains("all_to_all  x         2.00 KiB  P('y', 'x', None)\n"));
    QVERIFY(text.out.contains("all_to_all  y         2.00 KiB  P(None, ('x', 'y'), None)\n"));
    QVERIFY(text.out.contains("line 3: PyTorch: "));

    const QTemporaryDir folder;
    const QString path = folder.filePath("train.log");
    writeFile(path, log);
    const Outcome json = run({"explain", path, "--format", "json"});
    QCOMPARE(json.code, 0);
    QCOMPARE(tests::resultErrors(json.out), QString());
    const QJsonArray messages = QJsonDocument::fromJson(json.out)["messages"].toArray();
    QCOMPARE(messages.size(), 2);
    QCOMPARE(messages[0]["change"]["cheapest"]["steps"][0]["result_spec"].toString(), "P('y', 'x', None)");
    QCOMPARE(messages[1]["lines"][0].toInt(), 3);

    const Outcome given = run({"explain", "mat1 and mat2 shapes cannot be multiplied (64x784 and 392x10)"});
    QVERIFY(given.out.startsWith("PyTorch: the sizes of a matrix product do not fit\n"));
}

/// The collectives of a dump, timed, and what two dumps differ in.
void TestCommandLine::explainDumps()
{
    QFile corpus(QString(MESHWRIGHT_SOURCE_DIR) + "/tests/fuzz/corpus/hlo/training_step");
    QVERIFY(corpus.open(QIODevice::ReadOnly));
    corpus.readLine(); // the mesh
    const QByteArray dump = corpus.readAll();
    const QTemporaryDir folder;
    const QString before = folder.filePath("before.txt");
    const QString after = folder.filePath("after.txt");
    writeFile(before, dump);
    writeFile(after, QByteArray(dump).replace("constant(12)", "constant(6)"));

    const Outcome text = run({"explain", before, "--mesh", "data=4,model=2", "--hw", "v5e-8"});
    QCOMPARE(text.code, 0);
    QVERIFY2(text.out.contains("jit_step, 8 devices (data=4,model=2): 27 calls of collectives, 13.5 KiB of data a device, "),
        text.out);
    QVERIFY2(QString(text.out).contains(QRegularExpression(
                 "all_gather +data +12 +512 B +[0-9.]+ .s +jit\\(step\\)/while/body/dot_general +model.py:41\n")),
        text.out);
    const Outcome json = run({"explain", before, "--mesh", "data=4,model=2", "--hw", "v5e-8", "--format", "json"});
    QCOMPARE(tests::resultErrors(json.out), QString());
    const QJsonDocument document = QJsonDocument::fromJson(json.out);
    QCOMPARE(document["devices"].toInt(), 8);
    QVERIFY(document["collectives"][0]["time_s"].toDouble() > 0.0);

    const Outcome changed = run({"explain", before, after, "--mesh", "data=4,model=2"});
    QCOMPARE(changed.code, 0);
    QVERIFY2(
        QString(changed.out).contains(QRegularExpression("fewer +all_reduce +model +512 B +12 -> 6 +-3.00 KiB")), changed.out);
    const Outcome changes = run({"explain", before, after, "--format", "json"});
    QCOMPARE(tests::resultErrors(changes.out), QString());
    QCOMPARE(QJsonDocument::fromJson(changes.out)["changes"].toArray().size(), 2);
    QVERIFY(run({"explain", before, before}).out.contains("  the same collectives\n"));

    QCOMPARE(run({"explain", before, "--mesh", "data=4"}).code, 3);
    QVERIFY(run({"explain", before, "--mesh", "data=4"}).err.contains("MW1363"));
    QCOMPARE(run({"explain", before, "--hw", "v5e-4"}).code, 4);
    QVERIFY(run({"explain", "MW1104", "--hw", "v5e-4"}).err.contains("MW1951"));
    QVERIFY(run({"explain", "all is well", before}).err.contains("MW1951"));
    QCOMPARE(run({"explain", "-"}, dump.left(dump.size() - 40)).code, 3);
}

void TestCommandLine::explainUnknown()
{
    const Outcome unknown = run({"explain", "all is well"});
    QCOMPARE(unknown.code, 4);
    QVERIFY(unknown.err.contains("MW1930"));
    const Outcome json = run({"explain", "all is well", "--format", "json"});
    QCOMPARE(json.code, 4);
    QCOMPARE(tests::resultErrors(json.out), QString());
    QVERIFY(run({"explain", "-"}, " \n").err.contains("MW1931"));
    QCOMPARE(run({"explain", "/nowhere/train.log"}).code, 3);
    QCOMPARE(run({"explain", "all is well", "--mesh", "x"}).code, 3);
}

void TestCommandLine::otherFiles_data()
{
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QString>("what");
    QTest::addColumn<QString>("fix"); ///< FILE is the file's name
    QTest::addColumn<bool>("isRefused"); ///< where a study is read
    QTest::newRow("nccl-tests") << QByteArray(
        "# out-of-place in-place\n#  size  count  type  time  algbw  busbw\n  64  16  float  5.0  0.01  0.02\n")
                                << "the output of nccl-tests"
                                << "meshwright calibrate --nccl FILE" << true;
    QTest::newRow("nccl-tests, JSON") << QByteArray(
        R"({"results": [{"size": 64, "out_of_place": {"time": 5, "alg_bw": 1, "bus_bw": 2}}]})")
                                      << "the output of nccl-tests"
                                      << "meshwright calibrate --nccl FILE" << true;
    QTest::newRow("trace") << QByteArray(R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "ts": 0, "dur": 1}]})")
                           << "a trace of a profiler"
                           << "meshwright gui FILE" << true;
    QTest::newRow("index") << QByteArray(R"({"metadata": {"total_size": 8}, "weight_map": {"a": "b.safetensors"}})")
                           << "the index of a checkpoint's files"
                           << "meshwright plan config.json" << true;
    QTest::newRow("study") << QByteArray("# mine\nmeshwright: 1\nmesh: {data: 2}\n") << "a study"
                           << "meshwright check FILE" << false;
    QTest::newRow("program") << QByteArray(
        "module @m {\n  func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n    return %a : "
        "tensor<2xf32>\n  }\n}\n")
                             << "a program"
                             << "meshwright check FILE" << false;
}

/// What is not a log and not a study is called by its name, with the command that reads it.
void TestCommandLine::otherFiles()
{
    QFETCH(QByteArray, content);
    QFETCH(QString, what);
    QFETCH(QString, fix);
    QFETCH(bool, isRefused);
    const QTemporaryDir folder;
    const QString path = folder.filePath("file.json");
    writeFile(path, content);
    fix.replace("FILE", path);
    const Outcome explained = run({"explain", path});
    QCOMPARE(explained.code, 4);
    QVERIFY2(explained.err.contains("the text is " + what.toUtf8()), explained.err);
    QVERIFY2(explained.err.contains(fix.toUtf8()), explained.err);
    if (!isRefused)
        return;
    for (const char* verb : {"check", "simulate"}) {
        const Outcome refused = run({verb, path});
        QCOMPARE(refused.code, 3);
        const QByteArray said = refused.err + refused.out;
        QVERIFY2(said.contains("this is " + what.toUtf8() + ", not a study"), said);
        QVERIFY2(said.contains(fix.toUtf8()), said);
        QVERIFY2(!said.contains("meshwright: 1"), said);
    }
}

void TestCommandLine::checkSpec()
{
    const QStringList check = {"check", "--mesh", "x=4,y=2", "--shape", "8x3", "--spec"};
    const Outcome good = run(check + QStringList{"P('x', None)"});
    QCOMPARE(good.code, 0);
    QCOMPARE(good.out, "P('x', None) on x=4,y=2: no problems; each device holds 2x3 of 8x3\n");
    const Outcome uneven = run(check + QStringList{"P('x', 'y')"});
    QCOMPARE(uneven.code, 3);
    QVERIFY(uneven.err.contains("--spec:1:8: error MW1104"));
    QVERIFY(uneven.err.contains("the nearest that fits is P('x', None)"));
    QVERIFY(uneven.out.contains("should evenly divide the shape"));
    QCOMPARE(tests::resultErrors(run(check + QStringList{"P('z')", "--format", "json"}).out), QString());
    QVERIFY(run({"check", "--spec", "P('x')"}).err.contains("--mesh is missing"));
    QVERIFY(run(check + QStringList{"P('x')", example("digits.yaml")}).err.contains("MW1932"));
    QCOMPARE(run({"check", example("digits.yaml"), "--shape", "8x8"}).code, 2);
}

void TestCommandLine::checkLints()
{
    const Outcome study = run({"check", example("replicated.yaml"), "--fail-on", "warning"});
    QCOMPARE(study.code, 1);
    QVERIFY(study.err.contains("warning MW1270: the mesh axis \"data\" splits nothing"));
    QVERIFY(study.out.contains("0 errors, 1 warning\n"));
    const Outcome fixed = run({"check", "-", "--fix"},
        "meshwright: 1\nmesh: {data: 2}\nbatch: 8\nmodel: {mlp: {layers: [4, 4]}}\nsharding: {x: [], y: []}\n");
    QVERIFY(fixed.out.contains("x: \"P('data', None)\", y: \"P('data', None)\""));
    QVERIFY(fixed.err.contains("fixed MW1270"));
    const Outcome program = run({"check", example("mlp.mlir")});
    QCOMPARE(program.code, 0);
    QVERIFY(program.out.contains("mlp.mlir: no problems\n  proved: 15 ops on 8 devices, 1 function"));
    const Outcome unproved = run({"check", example("mlp.mlir"), "--no-prove"});
    QVERIFY(unproved.out.endsWith("mlp.mlir: no problems\n"));
    const Outcome proofs = run({"check", example("mlp.mlir"), example("pipeline_1f1b.yaml"), "--format", "json"});
    QCOMPARE(tests::resultErrors(proofs.out), QString());
    const QJsonArray proved = QJsonDocument::fromJson(proofs.out)["proofs"].toArray();
    QCOMPARE(proved.size(), 2);
    for (const QJsonValue proof : proved)
        QVERIFY2(proof["proved"].toBool(), qPrintable(proof["obstacle"].toString()));
    const Outcome fixedProgram = run({"check", "-", "--fix"},
        "sdy.mesh @m = <[\"a\"=2]>\nfunc.func @main(%w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"a\"}, {}]>, "
        "tf.aliasing_output = 0 : i32}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"a\"}]>}) {\n  %0 = "
        "stablehlo.sine %w : tensor<8x8xf32>\n  return %0 : tensor<8x8xf32>\n}\n");
    QVERIFY2(fixedProgram.err.contains("fixed MW1273"), fixedProgram.err);
    QVERIFY2(fixedProgram.out.count("sdy.sharding = #sdy.sharding<@m, [{\"a\"}, {}]>") >= 2, fixedProgram.out);
    const Outcome broken = run({"check", "-"}, "func.func @main(%x: tensor<8xf32) {\n}\n");
    QCOMPARE(broken.code, 3);
    QVERIFY(broken.err.contains("standard input:3:1: error MW1320"));
}

void TestCommandLine::lists()
{
    const Outcome examples = run({"list", "examples", "--format", "json"});
    QCOMPARE(tests::resultErrors(examples.out), QString());
    QVERIFY(QJsonDocument::fromJson(examples.out)["examples"].toArray().size() >= 11);
    QVERIFY(!examples.out.contains("cannot be read"));
    QVERIFY(run({"list", "examples"}).out.contains("digits.yaml"));
    const Outcome models = run({"list", "models", "--format", "json"});
    QCOMPARE(tests::resultErrors(models.out), QString());
    QVERIFY(QJsonDocument::fromJson(models.out)["models"].toArray().size() >= 10);
    QVERIFY(run({"list", "models"}).out.contains("mixtral_8x7b"));
    const Outcome hardware = run({"list", "hardware", "--format", "json"});
    QCOMPARE(tests::resultErrors(hardware.out), QString());
    QVERIFY(run({"list", "hardware"}).out.contains("v5e"));
    const Outcome problems = run({"list", "problems", "--format", "json"});
    QCOMPARE(tests::resultErrors(problems.out), QString());
    QVERIFY(run({"list", "problems"}).out.contains("MW1104"));
}

void TestCommandLine::helpBeginsWithExamples()
{
    for (const QStringList& arguments :
        {QStringList{"--help"}, QStringList{"show", "--help"}, QStringList{"help", "check"}, QStringList{"help", "search"}}) {
        const Outcome outcome = run(arguments);
        QCOMPARE(outcome.code, 0);
        QVERIFY2(!outcome.out.contains("{false}"), outcome.out); // what CLI11 puts behind flags that turn something off
        QVERIFY(outcome.out.indexOf("Examples:\n  meshwright ") > 0);
        QVERIFY(outcome.out.indexOf("Examples:") < outcome.out.indexOf("Usage:"));
    }
}

/// A terminal needs no desktop.
/// What the shell offers comes from the program's own help.
void TestCommandLine::bashCompletes()
{
    const auto offered = [](const QStringList& words) {
        const QString script
            = QString("source '%1/resources/completions/meshwright.bash'; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); "
                      "_meshwright; echo \"${COMPREPLY[*]}\"")
                  .arg(MESHWRIGHT_SOURCE_DIR);
        const Outcome outcome = tests::runProgram("bash", QStringList{"-c", script, "bash", MESHWRIGHT_PROGRAM} + words);
        return QString::fromUtf8(outcome.out).trimmed().split(' ');
    };
    QCOMPARE(offered({"simu"}), QStringList("simulate"));
    QVERIFY(offered({""}).contains("doctor"));
    QCOMPARE(offered({"simulate", "--fid"}), QStringList("--fidelity"));
    QCOMPARE(offered({"simulate", "--format", ""}), (QStringList{"text", "json", "csv"}));
    QCOMPARE(offered({"plan", "llama3_8"}), QStringList("llama3_8b"));
    QCOMPARE(offered({"plan", "llama3_8b", "--on", "nvidia-h100-sxm-8"}), QStringList("nvidia-h100-sxm-80gb"));
    QCOMPARE(offered({"help", "sho"}), QStringList("show"));
    QVERIFY(offered({"list", ""}).contains("examples"));
    QCOMPARE(offered({"check", "stu"}), QStringList(QString())); // files are the shell's own
}

void TestCommandLine::startsWithoutTheDesktop()
{
    QProcess maps;
    maps.setProcessEnvironment([] {
        QProcessEnvironment variables = QProcessEnvironment::systemEnvironment();
        variables.insert("LD_TRACE_LOADED_OBJECTS", "1");
        return variables;
    }());
    maps.start(MESHWRIGHT_PROGRAM, {});
    QVERIFY(maps.waitForFinished(30'000));
    const QByteArray libraries = maps.readAllStandardOutput();
    QVERIFY(libraries.contains("libc.so"));
    for (const char* heavy : {"Qt6", "libmpi"})
        QVERIFY2(!libraries.contains(heavy), heavy);
}

MESHWRIGHT_TEST(TestCommandLine)

} // namespace tst_command_line

#include "tst_command_line.moc"
