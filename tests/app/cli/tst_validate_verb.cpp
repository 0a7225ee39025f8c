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
    void programs_data();
    void programs();
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

void TestValidateVerb::programs_data()
{
    QTest::addColumn<QString>("change"); // of the record's text
    QTest::addColumn<QString>("instead");
    QTest::addColumn<QString>("why"); // there is no program; empty: there is
    QTest::newRow("fsdp") << ""
                          << ""
                          << "";
    QTest::newRow("tensor and pipeline") << R"("fsdp_shard_degree": 8)"
                                         << R"("tp": 2, "pp": 2, "zero_stage": 1)"
                                         << "";
    QTest::newRow("no whole sequence") << R"("microbatch_sequences": 2)"
                                       << R"("microbatch_sequences": 3)"
                                       << "not whole sequences";
}

/// A published step is simulated as a program, whose parts add up; or the record is skipped and it is said why.
void TestValidateVerb::programs()
{
    QFETCH(QString, change);
    QFETCH(QString, instead);
    QFETCH(QString, why);
    QString text = R"([{"id": "a", "kind": "training_step", "system": "h100", "chips": 8, "global_batch_sequences": 32,
      "microbatch_sequences": 2, "model": {"layers": 16, "hidden": 2048, "heads": 16, "kv_heads": 8, "ffn": 8192, "gated_mlp": true,
      "vocab": 32768, "seq": 4096}, "parallel": {"dp": 8, "fsdp_shard_degree": 8}, "recompute": "none", "dtype": "bf16",
      "measured": {"step_time_s": 0.6}}])";
    if (!change.isEmpty())
        QVERIFY(text.contains(change));
    QTemporaryDir folder;
    const QString file
        = written(folder, text.replace(change.isEmpty() ? text : change, change.isEmpty() ? text : instead).toUtf8());
    const tests::Outcome outcome = run({"validate", file, "--format", "csv"});
    QCOMPARE(outcome.code, 0);
    const QList<QByteArray> lines = outcome.out.trimmed().split('\n');
    const tests::Outcome said = run({"validate", file});
    if (!why.isEmpty()) {
        QCOMPARE(lines.size(), 1);
        QVERIFY2(said.out.contains("skipped a: ") && said.out.contains(why.toUtf8()), said.out.constData());
        return;
    }
    QCOMPARE(lines.size(), 2);
    const QList<QByteArray> names = lines[0].split(',');
    const QList<QByteArray> cells = lines[1].split(',');
    const auto cell = [&](const char* name) { return cells.value(names.indexOf(name)).toDouble(); };
    const double seconds = cell("predicted");
    QVERIFY2(seconds > 0.1 && seconds < 0.6, outcome.out.constData());
    double parts = 0.0;
    for (const char* part : {"compute", "communication", "bubble", "launch", "stack_s", "other"})
        parts += cell(part);
    QVERIFY2(std::abs(parts - seconds) < 1e-3 * seconds, outcome.out.constData());
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
