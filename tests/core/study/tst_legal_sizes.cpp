// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/legal_sizes.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_legal_sizes {

using namespace meshwright;
using namespace meshwright::tests;

/// The sizes at which a stepper stops, and the meshes along which a slider runs.
class TestLegalSizes : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sizes_data();
    void sizes();
    void reasons_data();
    void reasons();
    void factorisations_data();
    void factorisations();
    void legalSizesAreWhatTheCheckAccepts();
    void manyMeshesAreBounded();
    void settings();
};

namespace {

Study studyOf(const QString& mesh, int batch, const QString& more = {})
{
    const QString text
        = QString("meshwright: 1\nmesh: %1\nmodel: {mlp: {layers: [64, 256, 96, 10]}}\nbatch: %2\n").arg(mesh).arg(batch);
    auto study = readStudyInPart((text + more).toStdString(), "s.yaml");
    return std::move(study.study);
}

const QString kSharding = "sharding:\n  x: P('data', None)\n  layers.1: {w: \"P(None, 'model')\"}\n";

QString shown(const std::vector<std::int64_t>& sizes)
{
    QStringList list;
    for (const std::int64_t size : sizes)
        list << QString::number(size);
    return list.join(' ');
}

QString shown(const std::vector<MeshAxis>& mesh)
{
    QStringList list;
    for (const MeshAxis& axis : mesh)
        list << QString::number(axis.size);
    return list.join('x');
}

QString shown(const std::vector<std::vector<MeshAxis>>& meshes)
{
    QStringList list;
    for (const auto& mesh : meshes)
        list << shown(mesh);
    return list.join(' ');
}

} // namespace

void TestLegalSizes::sizes_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<int>("batch");
    QTest::addColumn<QString>("more");
    QTest::addColumn<QString>("axis");
    QTest::addColumn<int>("devices");
    QTest::addColumn<QString>("expected");

    const QString both = "{data: 4, model: 2}";
    QTest::newRow("what the other axis leaves") << both << 96 << kSharding << "data" << 8 << "1 2 4";
    QTest::newRow("the other axis") << both << 96 << kSharding << "model" << 8 << "1 2";
    QTest::newRow("a large slice") << both << 96 << kSharding << "data" << 128 << "1 2 4 8 16 32";
    QTest::newRow("the batch bounds") << both << 100 << kSharding << "data" << 128 << "1 2 4";
    QTest::newRow("the outputs bound") << both << 96 << kSharding << "model" << 256 << "1 2 4 8 16 32";
    QTest::newRow("without specs") << both << 97 << ""
                                   << "data" << 16 << "1 2 4 8";
    QTest::newRow("not a power of two") << both << 96 << kSharding << "data" << 24 << "1 2 3 4 6 12";
    QTest::newRow("now illegal") << QString("{data: 5, model: 2}") << 96 << kSharding << "data" << 8 << "1 2 4";
    QTest::newRow("the others leave nothing") << QString("{data: 4, model: 16}") << 96 << kSharding << "data" << 8 << "1";
    QTest::newRow("the others do not divide") << QString("{data: 4, model: 3}") << 96 << kSharding << "data" << 8 << "1 2";
    QTest::newRow("devices not known") << both << 12 << kSharding << "data" << 0 << "1 2 3 4 6 12";
    QTest::newRow("two axes on a dimension") << both << 96 << "sharding: {x: \"P(('data', 'model'), None)\"}\n"
                                             << "data" << 128 << "1 2 4 8 16";
    QTest::newRow(
        "rules that look for a dimension") // 10 takes the place of 96 where that does not divide: biases of 10 are not caught
        << both << 96 << "sharding:\n  match:\n    - {path: \"*.w\", divisible: largest_dim, spec: [data]}\n"
        << "data" << 32 << "1 2 4 8 16";
}

void TestLegalSizes::sizes()
{
    QFETCH(QString, mesh);
    QFETCH(int, batch);
    QFETCH(QString, more);
    QFETCH(QString, axis);
    QFETCH(int, devices);
    QFETCH(QString, expected);
    QCOMPARE(shown(legalAxisSizes(studyOf(mesh, batch, more), axis.toStdString(), devices)), expected);
}

void TestLegalSizes::reasons_data()
{
    QTest::addColumn<QString>("axis");
    QTest::addColumn<int>("size");
    QTest::addColumn<int>("devices");
    QTest::addColumn<QString>("expected");

    QTest::newRow("legal") << "data" << 2 << 8 << "";
    QTest::newRow("batch") << "data" << 5 << 8 << "\"x\": dim 0 (batch) of size 96 is not divisible by 5";
    QTest::newRow("outputs") << "model" << 5 << 0
                             << "\"layers.1.w\": dim 1 (outputs of layer 1) of size 96 is not divisible by 5";
    QTest::newRow("hardware") << "data" << 8 << 8 << "8 x 2 makes 16 devices, the hardware has 8";
    QTest::newRow("part of the hardware") << "data" << 3 << 8 << "3 x 2 makes 6 devices, the hardware has 8";
    QTest::newRow("zero") << "data" << 0 << 8 << "a size is at least 1, got 0";
    QTest::newRow("too many") << "data" << (1 << 24) << 0 << "a mesh has at most 16777216 devices";
}

void TestLegalSizes::reasons()
{
    QFETCH(QString, axis);
    QFETCH(int, size);
    QFETCH(int, devices);
    QFETCH(QString, expected);
    const Study study = studyOf("{data: 4, model: 2}", 96, kSharding);
    QCOMPARE(tests::text(whyNotAxisSize(study, axis.toStdString(), size, devices)), expected);
}

void TestLegalSizes::factorisations_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<int>("batch");
    QTest::addColumn<int>("devices");
    QTest::addColumn<QString>("expected");

    QTest::newRow("two axes") << "{data: 4, model: 2}" << 96 << 8 << "8x1 4x2 2x4 1x8";
    QTest::newRow("what does not divide is left out") << "{data: 4, model: 2}" << 100 << 8 << "4x2 2x4 1x8";
    QTest::newRow("one axis") << "{data: 4}" << 96 << 8 << "8";
    QTest::newRow("three axes") << "{data: 4, model: 2, pipe: 1}" << 96 << 4 << "4x1x1 2x2x1 2x1x2 1x4x1 1x2x2 1x1x4";
    QTest::newRow("six devices") << "{data: 4, model: 2}" << 96 << 6 << "6x1 3x2 2x3 1x6";
    QTest::newRow("no axes") << "{}" << 96 << 8 << "";
    QTest::newRow("nothing divides") << "{data: 4}" << 97 << 8 << "";
}

void TestLegalSizes::factorisations()
{
    QFETCH(QString, mesh);
    QFETCH(int, batch);
    QFETCH(int, devices);
    QFETCH(QString, expected);
    QCOMPARE(shown(meshFactorisations(studyOf(mesh, batch, kSharding), devices)), expected);
}

/// Every size from 1 to 64: legal is what divides the devices and passes the study's own check.
void TestLegalSizes::legalSizesAreWhatTheCheckAccepts()
{
    const QString specs = "sharding:\n  x: P('data', None)\n  layers.0: {w: \"P('data', 'model')\", b: \"P('model')\"}\n"
                          "  match:\n    - {path: \"*.w\", min_elements: 100, divisible: largest_dim, spec: [data]}\n"
                          "    - {path: \"*\", spec: [model]}\n";
    for (const char* axis : {"data", "model"}) {
        Study study = studyOf("{data: 2, model: 2}", 48, specs);
        QCOMPARE(tests::text(describe(checkStudy(study))), QString());
        std::vector<std::int64_t> expected;
        for (std::int64_t size = 1; size <= 64; ++size) {
            for (MeshAxis& one : study.mesh)
                one.size = one.name == axis ? size : 2;
            if (64 % (size * 2) == 0 && !hasErrors(checkStudy(study)))
                expected.push_back(size);
        }
        QCOMPARE(shown(legalAxisSizes(study, axis, 64)), shown(expected));
    }
}

void TestLegalSizes::manyMeshesAreBounded()
{
    const Study study = studyOf("{a: 1, b: 1, c: 1, d: 1, e: 1, f: 1}", 96);
    const auto meshes = meshFactorisations(study, 1 << 20);
    QVERIFY(meshes.size() <= kMostFactorisations);
    QVERIFY(meshes.size() > 100);
}

void TestLegalSizes::settings()
{
    const Study study = studyOf("{data: 4, model: 2}", 96, kSharding);
    const auto nearest = nearestMesh(study, 32);
    QVERIFY(nearest);
    QCOMPARE(shown(*nearest), "16x2");
    QCOMPARE(meshSettings(study.mesh, *nearest), std::vector<std::string>{"mesh.data=16"});
    QCOMPARE(meshSettings(study.mesh, {{"data", 1}, {"model", 8}}, "phases[0].mesh"),
        (std::vector<std::string>{"phases[0].mesh.data=1", "phases[0].mesh.model=8"}));
    QVERIFY(!nearestMesh(study, 7));
}

MESHWRIGHT_TEST(TestLegalSizes)

} // namespace tst_legal_sizes

#include "tst_legal_sizes.moc"
