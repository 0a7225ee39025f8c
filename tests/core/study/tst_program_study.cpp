// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/program_study.h"
#include "core/study/study.h"
#include "tests/test_class.h"

namespace tst_program_study {

using namespace meshwright;

/// A program that stands in place of a study.
class TestProgramStudy : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void meshes_data();
    void meshes();
    void settings();
    void names();
    void withoutAFile();
    void programsByNameOrText_data();
    void programsByNameOrText();
};

namespace {

const std::string kFunction = "func.func public @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {\n"
                              "  return %x : tensor<8x8xf32>\n"
                              "}\n";

} // namespace

void TestProgramStudy::meshes_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("mesh"); // axes, then the device order
    QTest::newRow("no mesh: one device") << ""
                                         << "";
    QTest::newRow("a mesh") << "sdy.mesh @mesh = <[\"data\"=4, \"model\"=2]>\n"
                            << "data=4 model=2 ";
    QTest::newRow("a device order") << "sdy.mesh @mesh = <[\"a\"=4], device_ids=[0, 1, 3, 2]>\n"
                                    << "a=4 0132";
    QTest::newRow("an axis whose name YAML would read otherwise") << "sdy.mesh @mesh = <[\"y\"=2, \"no\"=2]>\n"
                                                                  << "y=2 no=2 ";
}

void TestProgramStudy::meshes()
{
    QFETCH(QString, text);
    QFETCH(QString, mesh);
    const auto study = readStudy(text.toStdString() + kFunction, "folder/step.mlir");
    QVERIFY2(study, study ? "" : describe(study.error()).c_str());
    QString found;
    for (const MeshAxis& axis : study->mesh)
        found += QString("%1=%2 ").arg(QString::fromStdString(axis.name)).arg(axis.size);
    for (const DeviceId id : study->deviceOrder)
        found += QString::number(id);
    QCOMPARE(found, mesh);
    QCOMPARE(study->name, std::string("step"));
    QCOMPARE(study->resolved(std::get<ProgramFile>(study->model).file), std::filesystem::path("folder/step.mlir"));
}

/// What a study says, settings say; they are over what the text has.
void TestProgramStudy::settings()
{
    const std::string text = "sdy.mesh @mesh = <[\"data\"=4]>\n" + kFunction;
    const std::vector<std::string> good
        = {"mesh=data=2,model=4", "hardware=p5.48xlarge x 8", "sharding.x=P('data', None)", "stack=plain"};
    const auto study = readStudy(text, "step.mlir", good);
    QVERIFY2(study, study ? "" : describe(study.error()).c_str());
    QCOMPARE(study->mesh.size(), std::size_t{2});
    QCOMPARE(study->hardware->chip, std::string("p5.48xlarge x 8"));
    QCOMPARE(study->sharding.entries.size(), std::size_t{1});
    const std::vector<std::string> bad = {"hardwear=h100x8"};
    const auto refused = readStudy(text, "step.mlir", bad);
    QVERIFY(!refused);
    QCOMPARE(refused.error().front().id, std::string("MW1420"));
    QCOMPARE(refused.error().front().place.file, std::string("--set hardwear=h100x8"));
}

/// File names that YAML would read otherwise.
void TestProgramStudy::names()
{
    for (const std::string name : {"a: b", "no", "#1", "\"quoted\"", "12", "{x}"}) {
        const auto study = readStudy(kFunction, name + ".mlir");
        QVERIFY2(study, name.c_str());
        QCOMPARE(study->name, name);
        QCOMPARE(std::get<ProgramFile>(study->model).file, name + ".mlir");
    }
}

void TestProgramStudy::withoutAFile()
{
    for (const char* file : {"", "-", "standard input"}) {
        const auto study = readStudy(kFunction, file);
        QVERIFY(!study);
        QCOMPARE(study.error().front().id, std::string("MW1492"));
    }
}

void TestProgramStudy::programsByNameOrText_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("text");
    QTest::addColumn<bool>("isProgram");
    QTest::newRow("by the text") << "step.txt" << QString::fromStdString(kFunction) << true;
    QTest::newRow("by the name") << "step.mlir"
                                 << "// cut short" << true;
    QTest::newRow("a study") << "study.yaml"
                             << "meshwright: 1\n"
                             << false;
}

void TestProgramStudy::programsByNameOrText()
{
    QFETCH(QString, file);
    QFETCH(QString, text);
    QFETCH(bool, isProgram);
    QCOMPARE(isProgramText(file.toStdString(), text.toStdString()), isProgram);
}

MESHWRIGHT_TEST(TestProgramStudy)

} // namespace tst_program_study

#include "tst_program_study.moc"
