// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/prove.h"

#include "core/partition/partition.h"
#include "core/text/program_text.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QDir>
#include <QFile>

namespace tst_prove {

using namespace meshwright;

/// Programs that are proved, and what is said of those that are wrong.
class TestProve : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void examplesAreProved_data();
    void examplesAreProved();
};

namespace {

std::string textOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string();
}

std::string whyNot(const Proof& proof)
{
    std::string text;
    for (const FunctionProof& function : proof.functions) {
        for (const ProofObstacle& obstacle : function.obstacles)
            text += fmt::format("{} {} {}: {}\n", function.name, obstacle.opName, obstacle.value, obstacle.reason);
    }
    return text;
}

} // namespace

void TestProve::examplesAreProved_data()
{
    QTest::addColumn<QString>("path");
    const QDir examples(QString(MESHWRIGHT_SOURCE_DIR) + "/resources/examples");
    for (const QString& name : examples.entryList({"*.mlir"}, QDir::Files, QDir::Name))
        QTest::newRow(qPrintable(name)) << examples.filePath(name);
}

void TestProve::examplesAreProved()
{
    QFETCH(QString, path);
    const auto program = readProgram(textOf(path), path.toStdString());
    QVERIFY(program);
    if (program->meshes.empty())
        QSKIP("it has no mesh");
    const auto made = propagateAndPartition(*program);
    QVERIFY2(made, made ? "" : made.error().front().message.c_str());
    const Proof proof = prove(made->propagated, made->device);
    QVERIFY2(proof.isProved(), whyNot(proof).c_str());
}

MESHWRIGHT_TEST(TestProve)

} // namespace tst_prove

#include "tst_prove.moc"
