// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

namespace tst_engine_verbs {

using namespace meshwright;

namespace {

using tests::errorsAgainst;
using tests::example;
using tests::hasLines;
using tests::interruptWhen;
using tests::Outcome;

Outcome run(const QStringList& arguments, const QByteArray& input = {})
{
    return tests::runProgram(MESHWRIGHT_PROGRAM, arguments, input);
}

} // namespace

/// The verbs that run the engine, as a process.
class TestEngineVerbs : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void headings_data();
    void headings();
    void exitCodes_data();
    void exitCodes();
    void simulationJson();
    void simulationIsTheSameTwice();
    void severalStudiesAreRows();
    void trainingJson();
    void trainingIsTheSameWhateverThePermits();
    void traces();
    void traceShowsThatParametersAreInitialisedSharded();
    void nothingHalfWritten();
    void interruptKeepsWhatThereIs();
    void tourSumsUp();
    void converts_data();
    void converts();
    void convertsLogicalNames();
    void convertsOnPrintedMeshes();
    void conversionJson();
};

void TestEngineVerbs::headings_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("said"); // first of all
    QTest::newRow("by the study's name") << QStringList{example("digits.yaml")} << "digits, data x model on ";
    QTest::newRow("by its file") << QStringList{example("digits.yaml"), "--set", "name="} << "digits.yaml on ";
    QTest::newRow("of standard input") << QStringList{"-", "--set", "name="} << "standard input on ";
}

/// What a simulation is of, also where the study has no name.
void TestEngineVerbs::headings()
{
    QFETCH(const QStringList, arguments);
    QFETCH(const QString, said);
    QFile study(example("digits.yaml"));
    QVERIFY(study.open(QIODevice::ReadOnly));
    const Outcome outcome = run(QStringList{"simulate"} + arguments, study.readAll());
    QVERIFY2(outcome.out.startsWith(said.toUtf8()), outcome.out + outcome.err);
}

void TestEngineVerbs::exitCodes_data()
{
    tests::addExitCodeColumns();

    QTest::newRow("simulate") << QStringList{"simulate", example("tensor_parallel.yaml")} << 0 << "";
    QTest::newRow("train") << QStringList{"train", example("tensor_parallel.yaml"), "--verify", "-q", "--set", "train.steps=3"}
                           << 0 << "";
    QTest::newRow("no steps") << QStringList{"train", example("tensor_parallel.yaml"), "-q", "--set", "train.steps=0"} << 0 << "";
    QTest::newRow("run") << QStringList{"run", example("mlp.mlir"), "--verify"} << 0 << "";

    QTest::newRow("convert") << QStringList{"convert", "P('data', None)", "--mesh", "data=4,model=2", "--to", "hlo"} << 0 << "";
    QTest::newRow("no notation") << QStringList{"convert", "P('data')", "--mesh", "data=4", "--to", "hol"} << 3 << "MW1159";
    QTest::newRow("no sharding") << QStringList{"convert", "???", "--mesh", "data=4"} << 3 << "MW1158";
    QTest::newRow("no mesh") << QStringList{"convert", "P('data')"} << 3 << "MW1157";
    QTest::newRow("no text") << QStringList{"convert"} << 2 << "MW1184";
    QTest::newRow("a sharding and names") << QStringList{"convert", "P()", "--logical", "a", "--rules", "maxtext"} << 2
                                          << "MW1184";
    QTest::newRow("names without rules") << QStringList{"convert", "--logical", "a"} << 2 << "MW1184";
    QTest::newRow("rules without names") << QStringList{"convert", "P()", "--rules", "maxtext"} << 2 << "MW1184";
    QTest::newRow("no rules") << QStringList{"convert", "--logical", "a", "--rules", "maxtxt"} << 3 << "MW1185";
    QTest::newRow("no list of rules") << QStringList{"convert", "--logical", "a", "--rules", "[['a']]"} << 3 << "MW1180";
    QTest::newRow("no names") << QStringList{"convert", "--logical", "a b", "--rules", "maxtext"} << 3 << "MW1180";
    QTest::newRow("hardware by its name") << QStringList{"simulate", example("digits.yaml"), "--set", "hardware=v5e-8"} << 0
                                          << "";
    QTest::newRow("batch with a unit") << QStringList{"simulate", example("notebook_mlp.yaml"), "--set", "batch=4k"} << 0 << "";
    QTest::newRow("no semantics") << QStringList{"convert", "--logical", "a", "--rules", "maxtext", "--semantics", "haiku"} << 2
                                  << "MW1903";
    QTest::newRow("no place") << QStringList{"convert", "--logical", "a", "--rules", "maxtext", "--stacked", "layers@3"} << 3
                              << "MW1186";
    QTest::newRow("no order") << QStringList{"convert", "P()", "--mesh", "a=2", "--device-order", "0"} << 3 << "MW1114";
    QTest::newRow("no study") << QStringList{"train"} << 2 << "MW1904";
    QTest::newRow("unknown flag") << QStringList{"simulate", example("digits.yaml"), "--trase", "x"} << 2
                                  << "did you mean \"--trace\"?";
    QTest::newRow("missing file") << QStringList{"train", "nowhere.yaml"} << 3 << "MW1001";
    QTest::newRow("a directory") << QStringList{"simulate", "/"} << 3 << "MW1002";
    QTest::newRow("no such chip") << QStringList{"simulate", example("digits.yaml"), "--set", "hardware={chip: v5x}"} << 3
                                  << "MW1701";
    QTest::newRow("slice too large") << QStringList{"simulate", example("digits.yaml"), "--set",
        "hardware={chip: v5e, topology: [64, 2]}"}
                                     << 3 << "MW1705";
    QTest::newRow("no hardware") << QStringList{"simulate", example("digits.yaml"), "--set", "hardware=null"} << 3 << "MW1731";
    QTest::newRow("mesh larger than the slice")
        << QStringList{"simulate", example("digits.yaml"), "--set", "mesh.data=100", "--set", "sharding={}"} << 4 << "MW1430";
    QTest::newRow("check of a mesh larger than the slice")
        << QStringList{"check", example("digits.yaml"), "--set", "mesh.data=100", "--set", "sharding={}"} << 4 << "MW1430";
    QTest::newRow("does not fit") << QStringList{"simulate", example("wide_mlp.yaml"), "--set", "mesh={data: 1}", "--set",
        "sharding={}", "--set", "batch=1048576"}
                                  << 4 << "";
    QTest::newRow("batch does not divide") << QStringList{"train", example("tensor_parallel.yaml"), "--set", "batch=97"} << 3
                                           << "MW1104";
    QTest::newRow("batch larger than the data")
        << QStringList{"train", example("tensor_parallel.yaml"), "--set", "batch=4096"} << 3 << "MW1436";
    QTest::newRow("loss blows up") << QStringList{"train", example("fsdp.yaml"), "-q", "--set",
        "optimizer={sgd: {learning_rate: 1.0e+30}}"}
                                   << 6 << "MW1620";
    QTest::newRow("training a program") << QStringList{"train", "-"} << 3 << "MW1733";
    QTest::newRow("no such function") << QStringList{"run", example("mlp.mlir"), "--function", "nope"} << 3 << "MW1732";
    QTest::newRow("program text") << QStringList{"run", example("digits.yaml")} << 3 << "MW1320";
    QTest::newRow("trace into no folder") << QStringList{"simulate", example("digits.yaml"), "--trace", "/no/such/folder/t.json"}
                                          << 3 << "MW1005";
    QTest::newRow("result into a folder") << QStringList{"train", example("tensor_parallel.yaml"), "-q", "--set", "train.steps=1",
        "-o", "/"} << 3 << "MW1005";
}

void TestEngineVerbs::exitCodes()
{
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    const QByteArray programStudy
        = "meshwright: 1\nname: p\nmodel: {program: " + example("mlp.mlir").toUtf8() + "}\nmesh: {data: 4, model: 2}\n";
    const Outcome outcome = run(arguments, programStudy);
    tests::checkExitCode(outcome);
    QVERIFY(code == 4 || outcome.out.isEmpty() == (code != 0));
}

void TestEngineVerbs::simulationJson()
{
    const Outcome outcome = run({"simulate", example("digits.yaml"), "--format", "json"});
    QCOMPARE(outcome.code, 0);
    QCOMPARE(errorsAgainst("simulation-1.json", outcome.out), QStringList());
    const QJsonObject result = QJsonDocument::fromJson(outcome.out).object();
    const double step = result["step_time_s"].toDouble();
    QVERIFY(qAbs(step - result["compute_s"].toDouble() - result["exposed_communication_s"].toDouble()) < 1e-9);
    double exposed = 0.0;
    for (const QJsonValue collective : result["collectives"].toArray())
        exposed += collective["exposed_s"].toDouble();
    QVERIFY(qAbs(exposed - result["exposed_communication_s"].toDouble()) < 1e-9);
    QVERIFY2(result["proof"]["proved"].toBool(), qPrintable(result["proof"]["obstacle"].toString()));
    QCOMPARE(result["proof"]["devices"].toInt(), 8);
    const Outcome text = run({"simulate", example("digits.yaml")});
    QVERIFY2(text.out.contains("\n  proved: "), text.out);
    QVERIFY(!run({"simulate", example("digits.yaml"), "--no-prove"}).out.contains("proved"));
}

/// Equal bytes but for the field that the schema calls measured.
void TestEngineVerbs::simulationIsTheSameTwice()
{
    const auto withoutWall = [] {
        QByteArray out = run({"simulate", example("fsdp.yaml"), "--format", "json"}).out;
        const auto at = out.indexOf("\"wall_s\"");
        return out.remove(at, out.indexOf(',', at) - at);
    };
    QCOMPARE(withoutWall(), withoutWall());
}

void TestEngineVerbs::severalStudiesAreRows()
{
    const Outcome text = run({"simulate", example("digits.yaml"), example("fsdp.yaml"), example("zero1.yaml")});
    QCOMPARE(text.code, 0);
    QCOMPARE(text.out.count('\n'), 4);
    const Outcome csv = run({"simulate", example("digits.yaml"), example("fsdp.yaml"), "--format", "csv"});
    QCOMPARE(csv.out.count('\n'), 3);
    const Outcome json = run({"simulate", example("digits.yaml"), example("fsdp.yaml"), "--format", "json"});
    QCOMPARE(QJsonDocument::fromJson(json.out).array().size(), 2);
}

void TestEngineVerbs::trainingJson()
{
    const Outcome outcome = run({"train", example("phases.yaml"), "--verify", "-q", "--format", "json"});
    QCOMPARE(outcome.code, 0);
    QCOMPARE(errorsAgainst("training-1.json", outcome.out), QStringList());
    const QJsonObject result = QJsonDocument::fromJson(outcome.out).object();
    QCOMPARE(result["losses"].toArray().size(), 21);
    QCOMPARE(result["phases"].toArray().size(), 2);
    QCOMPARE(result["verify"].toObject()["verdict"].toString(), QString("equal"));
}

void TestEngineVerbs::trainingIsTheSameWhateverThePermits()
{
    QJsonArray losses;
    for (const char* permits : {"1", "2", "8"}) {
        const Outcome outcome = run({"train", example("two_d.yaml"), "-q", "--format", "json", "--permits", permits});
        QCOMPARE(outcome.code, 0);
        const QJsonArray now = QJsonDocument::fromJson(outcome.out).object()["losses"].toArray();
        QVERIFY(losses.isEmpty() || losses == now);
        losses = now;
    }
}

void TestEngineVerbs::traces()
{
    QTemporaryDir folder;
    const QStringList files = {folder.filePath("simulated.json"), folder.filePath("measured.json")};
    QCOMPARE(run({"simulate", example("digits.yaml"), "--trace", files[0]}).code, 0);
    QCOMPARE(run({"train", example("digits.yaml"), "-q", "--set", "train.steps=2", "--trace", files[1]}).code, 0);
    for (const QString& name : files) {
        QFile file(name);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QJsonArray events = QJsonDocument::fromJson(file.readAll()).object()["traceEvents"].toArray();
        QMap<QPair<int, int>, double> endOf;
        int slices = 0;
        for (const QJsonValue event : events) {
            if (event["ph"].toString() != "X")
                continue;
            ++slices;
            const QPair<int, int> row(event["pid"].toInt(), event["tid"].toInt());
            QVERIFY2(event["ts"].toDouble() >= endOf.value(row) - 0.002,
                qPrintable(name)); // a viewer refuses slices of a row that overlap
            endOf[row] = event["ts"].toDouble() + event["dur"].toDouble();
        }
        QVERIFY(slices > 20);
    }
}

/// No device ever holds an array that its spec splits, not even while it is drawn.
void TestEngineVerbs::traceShowsThatParametersAreInitialisedSharded()
{
    QTemporaryDir folder;
    QFile file(folder.filePath("trace.json"));
    const Outcome outcome
        = run({"train", example("fsdp.yaml"), "-q", "--set", "train.steps=3", "--trace", file.fileName(), "--format", "json"});
    QCOMPARE(outcome.code, 0);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QMap<int, QString> names;
    QMap<QString, double> most; // bytes, by device
    for (const QJsonValue event : QJsonDocument::fromJson(file.readAll()).object()["traceEvents"].toArray()) {
        const QString& device = names[event["pid"].toInt()];
        if (event["name"].toString() == "process_name")
            names[event["pid"].toInt()] = event["args"]["name"].toString();
        else if (event["ph"].toString() == "X" && device.startsWith("measured (wall"))
            QCOMPARE(event["args"]["step"].toInt(), 2);
        else if (event["ph"].toString() == "C" && device.startsWith("initialisation"))
            most[device] = std::max(most[device], event["args"]["bytes"].toDouble());
    }
    QCOMPARE(most.size(), 8);
    constexpr double kOneWeight = 64.0 * 64.0 * 4.0;
    for (const double bytes : most) {
        QVERIFY(bytes > 3 * kOneWeight / 8);
        QVERIFY(bytes < kOneWeight);
        QCOMPARE(bytes, QJsonDocument::fromJson(outcome.out).object()["init_bytes_per_device"].toDouble());
    }
}

void TestEngineVerbs::nothingHalfWritten()
{
    QTemporaryDir folder;
    const QString target = folder.filePath("result.json");
    QFile before(target);
    QVERIFY(before.open(QIODevice::WriteOnly));
    before.write("before");
    before.close();
    QCOMPARE(
        run({"train", example("fsdp.yaml"), "-q", "-o", target, "--set", "optimizer={sgd: {learning_rate: 1.0e+30}}"}).code, 6);
    QVERIFY(before.open(QIODevice::ReadOnly));
    QCOMPARE(before.readAll(), QByteArray("before"));
    QCOMPARE(QDir(folder.path()).entryList(QDir::Files).size(), 1);
}

void TestEngineVerbs::interruptKeepsWhatThereIs()
{
    const QTemporaryDir folder;
    const QString metrics = folder.filePath("metrics.jsonl");
    QProcess process;
    process.start(MESHWRIGHT_PROGRAM,
        {"train", example("digits.yaml"), "--format", "json", "--set", "train.steps=1000000", "--metrics", metrics});
    QVERIFY(process.waitForStarted());
    QVERIFY(interruptWhen(process, [&] { return hasLines(metrics, 2); }));
    QVERIFY(process.waitForFinished(30'000));
    QCOMPARE(process.exitCode(), 130);
    const QJsonObject result = QJsonDocument::fromJson(process.readAllStandardOutput()).object();
    QCOMPARE(result["interrupted"].toBool(), true);
    QVERIFY(result["losses"].toArray().size() > 1);
}

void TestEngineVerbs::tourSumsUp()
{
    const Outcome outcome = run({"tour"});
    QCOMPARE(outcome.code, 0);
    QVERIFY(outcome.out.contains("equal to one device: yes"));
    QVERIFY2(outcome.out.count('\n') <= 32, outcome.out);
}

void TestEngineVerbs::converts_data()
{
    QTest::addColumn<QString>("sharding");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("written");
    QTest::newRow("to XLA") << "P('data', None)"
                            << "hlo"
                            << "{devices=[4,1,2]<=[8] last_tile_dim_replicate}";
    QTest::newRow("to Shardy") << "P('data', None)"
                               << "sdy"
                               << "[{\"data\"}, {}]";
    QTest::newRow("from XLA") << "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"
                              << "jax"
                              << "P('data', None)";
    QTest::newRow("to DTensor") << "P(None, 'model')"
                                << "dtensor"
                                << "[Replicate(), Shard(1)]";
}

void TestEngineVerbs::convertsLogicalNames()
{
    const QStringList names = {"convert", "--logical", "embed,mlp", "--rules", "maxtext", "--mesh", "data=2,fsdp=4,tensor=2"};
    const Outcome one = run(names + QStringList{"--to", "jax"});
    QVERIFY2(one.code == 0, one.err);
    QCOMPARE(one.out, QByteArray("P('fsdp', 'tensor')\n"));
    QVERIFY2(one.err.contains("refused for dim 0 (embed), fsdp_transpose is used by dim 1 (mlp)"), one.err);
    QVERIFY2(one.err.contains("dim 0 (embed) gets [fsdp, sequence, tensor_transpose, context, expert]"), one.err);
    QVERIFY(run(names).out.contains("dim 1 (mlp) gets"));
    QCOMPARE(run(names + QStringList{"--to", "jax", "--stacked", "layers@1"}).out, QByteArray("P('fsdp', None, 'tensor')\n"));

    const Outcome json = run(names + QStringList{"--format", "json"});
    QCOMPARE(errorsAgainst("conversion-1.json", json.out), QStringList());
    const QJsonObject logical = QJsonDocument::fromJson(json.out).object()["logical"].toObject();
    QCOMPARE(logical["names"].toArray(), (QJsonArray{"embed", "mlp"}));
    QCOMPARE(logical["trace"].toArray().first().toObject()["verdict"].toString(), QString("applied")); // of mlp
    QCOMPARE(logical["trace"].toArray().at(1).toObject()["verdict"].toString(), QString("axis_taken"));

    // The same table, two answers: Linen gives an axis once, NNX renames both.
    const QStringList both
        = {"convert", "--logical", "a,b", "--rules", "[['a', 'x'], ['b', 'x']]", "--mesh", "x=2", "--to", "jax"};
    QCOMPARE(run(both).out, QByteArray("P('x', None)\n"));
    QCOMPARE(run(both + QStringList{"--semantics", "nnx"}).code, 3); // the spec then names x twice

    const QTemporaryDir folder;
    QFile file(folder.filePath("rules.yml"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("mesh_axes: ['data']\nlogical_axis_rules: [\n  ['batch', ['data', 'fsdp']], # both\n  ['embed', null]]\n");
    file.close();
    QCOMPARE(run({"convert", "--logical", "batch,embed", "--rules", file.fileName(), "--mesh", "data=2", "--to", "jax"}).out,
        QByteArray("P('data', None)\n"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("logical_axis_rules: [[batch]]\n");
    file.close();
    const Outcome wrong = run({"convert", "--logical", "batch", "--rules", file.fileName(), "--mesh", "data=2"});
    QVERIFY2(wrong.err.contains("rules.yml:1:22: error MW1180"), wrong.err);
}

/// Meshes as JAX and PyTorch print them, and orders of devices.
void TestEngineVerbs::convertsOnPrintedMeshes()
{
    QCOMPARE(run({"convert", "P('x')", "--mesh", "Mesh('x': 2, 'y': 2, axis_types=(Auto, Auto))", "--to", "hlo"}).out,
        QByteArray("{devices=[2,2]<=[4] last_tile_dim_replicate}\n"));
    QCOMPARE(run({"convert", "[Shard(0), Replicate()]", "--mesh",
                     "DeviceMesh('cuda', [[0, 2], [1, 3]], mesh_dim_names=('dp', 'tp'))", "--to", "hlo"})
                 .out,
        QByteArray("{devices=[2,2]0,2,1,3 last_tile_dim_replicate}\n"));
    QCOMPARE(run({"convert", "P('x')", "--mesh", "x=4", "--device-order", "0,2,1,3", "--to", "hlo"}).out,
        QByteArray("{devices=[4]0,2,1,3}\n"));
}

void TestEngineVerbs::converts()
{
    QFETCH(QString, sharding);
    QFETCH(QString, to);
    QFETCH(QString, written);
    const Outcome outcome = run({"convert", sharding, "--mesh", "data=4,model=2", "--to", to});
    QVERIFY2(outcome.code == 0, outcome.err);
    QCOMPARE(QString::fromUtf8(outcome.out).trimmed(), written);
}

void TestEngineVerbs::conversionJson()
{
    const Outcome outcome = run({"convert", "P('data', None)", "--mesh", "data=4,model=2", "--shape", "8x8", "--format", "json"});
    QCOMPARE(outcome.code, 0);
    QCOMPARE(errorsAgainst("conversion-1.json", outcome.out), QStringList());
    QCOMPARE(QJsonDocument::fromJson(outcome.out).object()["written"].toObject().size(), 10);
}

MESHWRIGHT_TEST(TestEngineVerbs)

} // namespace tst_engine_verbs

#include "tst_engine_verbs.moc"
