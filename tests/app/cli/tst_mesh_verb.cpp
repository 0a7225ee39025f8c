// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QTemporaryDir>
#include <QXmlStreamReader>

namespace tst_mesh_verb {

using namespace meshwright;

namespace {

using tests::Outcome;

Outcome run(const QString& arguments)
{
    return tests::runProgram(MESHWRIGHT_PROGRAM, QProcess::splitCommand(arguments));
}

} // namespace

/// `meshwright mesh`, and what `show` has beside it, as processes.
class TestMeshVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void exitCodes_data();
    void exitCodes();
    void text();
    void hybridText();
    void json_data();
    void json();
    void intoAFile();
    void svg_data();
    void svg();
    void whatCreateDeviceMeshAllows();
    void examplesWork();
    void showPads();
};

void TestMeshVerb::exitCodes_data()
{
    QTest::addColumn<QString>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("said");

    QTest::newRow("good") << "mesh --hw v3 --topology 2x2 --mesh a=8" << 0 << "";
    QTest::newRow("no chip") << "mesh --topology 2x2 --mesh a=8" << 2 << "MW1904";
    QTest::newRow("no mesh") << "mesh --hw v3 --topology 2x2" << 2 << "MW1911";
    QTest::newRow("two meshes") << "mesh --hw v3 --topology 2x2 --mesh a=8 --ici a=8 --dcn a=2" << 2 << "MW1911";
    QTest::newRow("half a mesh") << "mesh --hw v3 --topology 2x2 --ici a=8" << 2 << "MW1911";
    QTest::newRow("no topology") << "mesh --hw v3 --topology 2y2 --mesh a=8" << 2 << "MW1910";
    QTest::newRow("not a mesh") << "mesh --hw v3 --topology 2x2 --mesh a8" << 2 << "MW1117";
    QTest::newRow("not an order") << "mesh --hw v3 --topology 2x2 --mesh a=8 --order best" << 2 << "MW1903";
    QTest::newRow("flag") << "mesh --hw v3 --topolgy 2x2 --mesh a=8" << 2 << "did you mean \"--topology\"?";
    QTest::newRow("topology missing") << "mesh --hw v3 --mesh a=8" << 3 << "MW1703";
    QTest::newRow("a slice by its chips") << "mesh --hw v5e-16 --mesh data=4,model=4" << 0 << "";
    QTest::newRow("GPUs by their number") << "mesh --hw h100x64 --mesh data=8,model=8" << 0 << "";
    QTest::newRow("part of a host") << "mesh --hw h100x4 --mesh a=4" << 0 << "";
    QTest::newRow("no whole hosts") << "mesh --hw h100x12 --mesh a=12" << 3 << "do not fill a whole number of hosts of 8";
    QTest::newRow("cores") << "mesh --hw v4-16 --mesh a=8" << 0 << "";
    QTest::newRow("no such slice") << "mesh --hw v5e-251 --mesh a=251" << 3
                                   << "no slice of TPU v5e has 251 chips\n  fix: the next larger one has 256";
    QTest::newRow("chips twice") << "mesh --hw v5e-16 --topology 4x4 --mesh a=16" << 3 << "MW1914";
    QTest::newRow("misspelt with chips") << "mesh --hw v5z-16 --mesh a=16" << 3 << "did you mean \"v5e-16\"?";
    QTest::newRow("unknown chip") << "mesh --hw v33 --topology 2x2 --mesh a=8" << 3 << "MW1701";
    QTest::newRow("no axis of size 0") << "mesh --hw v3 --topology 2x2 --mesh a=0" << 3 << "MW1112";
    QTest::newRow("topology of a GPU") << "mesh --hw h100 --topology 2x2 --mesh a=8" << 3 << "MW1706";
    QTest::newRow("larger than the slice") << "mesh --hw v3 --topology 2x2 --mesh a=16" << 4 << "MW1720";
    QTest::newRow("larger than a slice") << "mesh --hw v3 --topology 2x2 --ici a=16 --dcn a=2" << 4 << "MW1720";
    QTest::newRow("no such block") << "mesh --hw v5e --topology 4x4 --mesh a=11" << 3 << "MW1722";
    QTest::newRow("what is left") << "mesh --hw v5e --topology 4x4 --mesh data=-1,model=4" << 0 << "";
    QTest::newRow("what is left within a slice") << "mesh --hw v4 --topology 2x2x2 --ici data=-1,model=2 --dcn data=2" << 0 << "";
    QTest::newRow("nothing is left") << "mesh --hw v5e --topology 4x4 --mesh data=-1,model=3" << 2 << "MW1950: 16 devices";
    QTest::newRow("two that are open") << "mesh --hw v5e --topology 4x4 --mesh data=-1,model=-1" << 2 << "MW1950: only one";
    QTest::newRow("a negative size") << "mesh --hw v5e --topology 4x4 --mesh data=-2" << 3 << "MW1112";
    QTest::newRow("no folder") << "mesh --hw v3 --topology 2x2 --mesh a=8 -o /no/such/folder/m.txt" << 3 << "MW1005";
}

void TestMeshVerb::exitCodes()
{
    QFETCH(QString, arguments);
    tests::checkExitCode(run(arguments));
}

void TestMeshVerb::text()
{
    const Outcome outcome = run("mesh --hw v5e --topology 16x16 --mesh data=16,model=16");
    QCOMPARE(outcome.code, 0);
    const QString text = QString::fromUtf8(outcome.out);
    QVERIFY(text.startsWith("TPU v5e, 16x16 chips, wraparound on x, y: 256 devices\n"));
    QVERIFY(text.contains(QRegularExpression("\n  data +16 +y +yes +[0-9.]+ GB/s +1.00 µs\n")));
    QVERIFY(text.contains("\n  device order\n  [[  0   1   2 "));
    QVERIFY(text.contains("mesh = jax.sharding.Mesh(mesh_utils.create_device_mesh((16, 16)), ('data', 'model'))\n"));
    QCOMPARE(run("mesh --hw v5e --topology 16x16 --mesh data=-1,model=16").out, outcome.out);
    QVERIFY(run("mesh --hw v3 --topology 2x2 --mesh a=8").out.contains("\n  [0 1 2 3 6 7 4 5]\n"));
}

void TestMeshVerb::hybridText()
{
    const QString text = QString::fromUtf8(run("mesh --hw v4 --topology 2x2x2 --ici data=4,model=2 --dcn replica=2,data=2").out);
    QVERIFY2(text.contains("\n4 such slices, "), qPrintable(text)); // replica is only over slices, and comes first
    QVERIFY2(text.contains("create_hybrid_device_mesh((1, 4, 2), (2, 2, 1))"), qPrintable(text));
    QVERIFY(
        QString::fromUtf8(run("mesh --hw h100 --ici model=8 --dcn data=4").out).contains("\n4 such hosts, 50.0 GB/s a device"));
}

void TestMeshVerb::json_data()
{
    QTest::addColumn<QString>("arguments");
    QTest::newRow("v3") << "--hw v3 --topology 2x2 --mesh a=8";
    QTest::newRow("scattered") << "--hw v5e --topology 4x2 --mesh data=4,model=2";
    QTest::newRow("size 1") << "--hw v5e --topology 4x2 --mesh data=8,model=1";
    QTest::newRow("GPUs") << "--hw h100 --hosts 2 --mesh data=2,model=8";
    QTest::newRow("hybrid") << "--hw v4 --topology 2x2x2 --ici data=4,model=2 --dcn data=2";
    QTest::newRow("v2") << "--hw v2 --topology 4x4 --mesh data=8,model=4";
    QTest::newRow("v4") << "--hw v4 --topology 4x4x4 --mesh data=16,model=4";
    QTest::newRow("v5p, parts of axes") << "--hw v5p --topology 4x4x4 --mesh data=2,model=32";
    QTest::newRow("v6e") << "--hw v6e --topology 8x8 --mesh data=8,model=8";
    QTest::newRow("v7x") << "--hw v7x --topology 2x2x4 --mesh data=8,model=4";
    QTest::newRow("one chip") << "--hw v5e --topology 1x1 --mesh a=1";
}

void TestMeshVerb::json()
{
    QFETCH(QString, arguments);
    const Outcome outcome = run("mesh --format json " + arguments);
    QCOMPARE(outcome.code, 0);
    QFile schema(QString(MESHWRIGHT_SOURCE_DIR) + "/resources/schemas/mesh-1.json");
    QVERIFY(schema.open(QIODevice::ReadOnly));
    const QJsonObject document = QJsonDocument::fromJson(outcome.out).object();
    const QStringList errors = tests::schemaErrors(document, QJsonDocument::fromJson(schema.readAll()).object());
    QVERIFY2(errors.isEmpty(), qPrintable(errors.join('\n')));
    int devices = 1;
    for (const auto& axis : document["mesh"].toObject()["axes"].toArray())
        devices *= axis.toArray()[1].toInt();
    QCOMPARE(document["mesh"].toObject()["device_ids"].toArray().size(), devices);
    QCOMPARE(run("mesh --format json " + arguments).out, outcome.out);
}

void TestMeshVerb::intoAFile()
{
    const QTemporaryDir folder;
    const QString path = folder.filePath("mesh.json");
    const Outcome outcome = run("mesh --hw v3 --topology 2x2 --mesh a=8 --format json -o " + path);
    QCOMPARE(outcome.code, 0);
    QVERIFY(outcome.out.isEmpty());
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QVERIFY(!QJsonDocument::fromJson(file.readAll()).isNull());
}

void TestMeshVerb::svg_data()
{
    QTest::addColumn<QString>("arguments");
    QTest::addColumn<QStringList>("shown");
    QTest::newRow("torus") << "--hw v5e --topology 4x4 --mesh data=4,model=4"
                           << QStringList{"TPU v5e, 4x4 chips", "mesh data=4,model=4"};
    QTest::newRow("a ring with an order of its own") << "--hw v3 --topology 2x2 --mesh a=8" << QStringList{"TPU v3", "mesh a=8"};
    QTest::newRow("three dimensions") << "--hw v4 --topology 4x4x4 --mesh data=16,model=4"
                                      << QStringList{"4x4x4 chips", "mesh data=16,model=4"};
    QTest::newRow("GPUs") << "--hw h100 --hosts 2 --mesh data=2,model=8" << QStringList{"mesh data=2,model=8"};
    QTest::newRow("a part of the slice") << "--hw v5e --topology 4x4 --mesh data=4" << QStringList{"mesh data=4"};
    QTest::newRow("hybrid") << "--hw v4 --topology 2x2x2 --ici data=4,model=2 --dcn data=2" << QStringList{"one of 2 such"};
}

void TestMeshVerb::svg()
{
    QFETCH(QString, arguments);
    QFETCH(QStringList, shown);
    const Outcome outcome = run("mesh --format svg " + arguments);
    QVERIFY2(outcome.code == 0, outcome.err.constData());
    QXmlStreamReader reader(outcome.out);
    QString words;
    int shapes = 0;
    while (!reader.atEnd()) {
        if (reader.readNext() == QXmlStreamReader::Characters)
            words += reader.text();
        shapes += reader.isStartElement() && reader.name() != QLatin1String("text") ? 1 : 0;
    }
    QVERIFY2(!reader.hasError(), qPrintable(reader.errorString()));
    QVERIFY(shapes > 8);
    for (const QString& word : shown)
        QVERIFY2(words.contains(word), qPrintable(words.left(400)));
    QCOMPARE(run("mesh --format svg " + arguments).out, outcome.out);
}

/// Parts of physical axes are refused when whole ones are asked for; contiguous submeshes are JAX's.
void TestMeshVerb::whatCreateDeviceMeshAllows()
{
    const QString split = "mesh --hw v4 --topology 4x4x4 --mesh a=2,b=32";
    QVERIFY(run(split).out.contains("allow_split_physical_axes=True"));
    const Outcome whole = run(split + " --whole-axes");
    QCOMPARE(whole.code, 3);
    QVERIFY2(whole.err.contains("MW1174"), whole.err.constData());

    const Outcome contiguous = run("mesh --hw v4 --topology 4x4x4 --mesh a=16,b=4 --contiguous-submeshes");
    QVERIFY2(contiguous.code == 0, contiguous.err.constData());
    QVERIFY(contiguous.out.contains("contiguous_submeshes=True"));
    const QStringList wrong = {"--mesh a=16,b=4 --order axes", "--ici a=16,b=4 --dcn a=2", "--mesh a=4"};
    for (const QString& arguments : wrong) {
        const Outcome refused = run("mesh --hw v4 --topology 4x4x4 --contiguous-submeshes " + arguments);
        QCOMPARE(refused.code, 3);
        QVERIFY2(refused.err.contains("MW1177"), refused.err.constData());
    }
}

/// Help begins with examples, and every one of them works.
void TestMeshVerb::examplesWork()
{
    const QString help = QString::fromUtf8(run("mesh --help").out);
    const qsizetype examples = help.indexOf("Examples:");
    QVERIFY(examples > 0 && examples < help.indexOf("--topology SIZES"));
    int count = 0;
    for (const QString& line : help.split('\n')) {
        if (!line.startsWith("  meshwright mesh "))
            continue;
        ++count;
        QVERIFY2(run(line.trimmed().mid(int(qstrlen("meshwright ")))).code == 0, qPrintable(line));
    }
    QVERIFY(count >= 3);
}

void TestMeshVerb::showPads()
{
    const QString arguments = "show --mesh a=4 --shape 10x4 --spec \"P('a',)\"";
    QCOMPARE(run(arguments).code, 3);
    const Outcome padded = run(arguments + " --pad --format json");
    QCOMPARE(padded.code, 0);
    const QJsonArray shards = QJsonDocument::fromJson(padded.out).object()["shards"].toArray();
    QCOMPARE(shards.size(), 4);
    QCOMPARE(shards[3].toObject()["index"].toArray()[0].toArray()[0].toInt(), 9);
    QCOMPARE(run("show --mesh a=4 --shape 10x4 --spec \"P('b',)\" --pad").code, 3);
}

MESHWRIGHT_TEST(TestMeshVerb)

} // namespace tst_mesh_verb

#include "tst_mesh_verb.moc"
