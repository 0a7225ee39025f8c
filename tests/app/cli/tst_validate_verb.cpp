// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

namespace tst_validate_verb {

using namespace meshwright;

/// `meshwright validate` as a process.
class TestValidateVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void formats_data();
    void formats();
    void faults_data();
    void faults();
};

namespace {

tests::Outcome run(const QStringList& arguments)
{
    return tests::runProgram(MESHWRIGHT_PROGRAM, arguments);
}

QString written(const QTemporaryDir& folder, const QByteArray& text)
{
    QFile file(folder.filePath("records.json"));
    if (!file.open(QIODevice::WriteOnly))
        return {};
    file.write(text);
    return file.fileName();
}

} // namespace

void TestValidateVerb::formats_data()
{
    QTest::addColumn<QString>("format");
    QTest::addColumn<QString>("said");

    QTest::newRow("text") << "text"
                          << "records.json";
    QTest::newRow("json") << "json"
                          << "\"meshwright.validation/1\"";
    QTest::newRow("csv") << "csv"
                         << "records.json,a,";
}

void TestValidateVerb::formats()
{
    QFETCH(QString, format);
    QFETCH(QString, said);
    QTemporaryDir folder;
    const QString file
        = written(folder, R"([{"id": "a", "kind": "gemm", "system": "a100", "m": 8192, "n": 8192, "k": 8192, "dtype": "fp16",
      "measured": {"flops_per_s": 2.6e14}}])");
    const tests::Outcome outcome = run({"validate", file, "--format", format});
    QCOMPARE(outcome.code, 0);
    QVERIFY2(outcome.out.contains(said.toUtf8()), outcome.out.constData());
}

void TestValidateVerb::faults_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<int>("code");
    QTest::addColumn<QByteArray>("said");

    QTest::newRow("not JSON") << QByteArray("[") << 3 << QByteArray("MW1770");
    QTest::newRow("no list") << QByteArray("{}") << 3 << QByteArray("MW1771");
    QTest::newRow("empty") << QByteArray("[]") << 0 << QByteArray();
}

void TestValidateVerb::faults()
{
    QFETCH(QByteArray, text);
    QFETCH(int, code);
    QFETCH(QByteArray, said);
    QTemporaryDir folder;
    const tests::Outcome outcome = run({"validate", written(folder, text)});
    QCOMPARE(outcome.code, code);
    QVERIFY2(outcome.err.contains(said), outcome.err.constData());
    QCOMPARE(run({"validate", folder.filePath("none.json")}).code, 3);
}

MESHWRIGHT_TEST(TestValidateVerb)

} // namespace tst_validate_verb

#include "tst_validate_verb.moc"
