// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QDir>
#include <QJsonArray>
#include <QTemporaryDir>

namespace tst_launch_lines {

using namespace meshwright::tests;

/// Verbs that take studies, given the script that starts a training.
class TestLaunchLines : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void verbs_data();
    void verbs();
    void saidAsItsStudy();
    void trainsShrunken();
    void doesNotWriteIntoTheScript();

private:
    QTemporaryDir m_folder;
};

namespace {

const QByteArray kScript
    = "#!/bin/bash\n"
      "NODES=${NODES:-2}\n"
      "MODEL=(--num-layers 4 --hidden-size 512 --num-attention-heads 8 --swiglu\n"
      "    --vocab-size 1024)\n"
      "torchrun --nnodes $NODES --nproc-per-node 8 pretrain_gpt.py \"${MODEL[@]}\" \\\n"
      "    --seq-length 256 --micro-batch-size 1 --global-batch-size $((NODES * 16)) --bf16 \\\n"
      "    --tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer --overlap-moe-expert-parallel-comm\n";

Outcome run(const QStringList& arguments, const QByteArray& input = {})
{
    return runProgram(MESHWRIGHT_PROGRAM, arguments, input);
}

QString writtenTo(const QTemporaryDir& folder, const QString& name, const QByteArray& text)
{
    QFile file(folder.filePath(name));
    return file.open(QIODevice::WriteOnly) && file.write(text) == text.size() ? file.fileName() : QString();
}

} // namespace

void TestLaunchLines::initTestCase()
{
    QVERIFY(!writtenTo(m_folder, "run.sh", kScript).isEmpty());
    QByteArray wrong = kScript;
    QVERIFY(!writtenTo(m_folder, "wrong.sh", wrong.replace("--tensor-model-parallel-size 2", "--tensor-model-parallel-size 3"))
                 .isEmpty());
    QByteArray groups = kScript;
    groups.replace("--sequence-parallel", "--sequence-parallel --group-query-attention --num-query-groups 1");
    QVERIFY(!writtenTo(m_folder, "groups.sh", groups).isEmpty());
    QVERIFY(!writtenTo(m_folder, "none.sh", "ls -l\n").isEmpty());
}

void TestLaunchLines::verbs_data()
{
    addExitCodeColumns();
    const QString script = m_folder.filePath("run.sh");
    const QStringList chips = {"--set", "hardware=h100x16"};
    for (const char* verb : {"check", "simulate", "report", "prove", "config", "export"})
        QTest::newRow(verb) << QStringList{verb, script} + chips << 0 << "run.sh as Megatron-LM: ZeRO-1 + tensor";
    QTest::newRow("search") << QStringList{"search", script, "--hw", "h100x16", "--top", "1"} << 0 << "run.sh as Megatron-LM";
    QTest::newRow("sweep") << QStringList{"sweep", script, "--vary", "batch=32,64"} + chips << 0 << "run.sh as Megatron-LM";
    QTest::newRow("diff") << QStringList{"diff", script, script, "--set-b", "batch=64"} + chips << 0 << "run.sh as Megatron-LM";
    QTest::newRow("chips without a number") << QStringList{"simulate", script, "--hw", "h100"} << 0 << "run.sh as Megatron-LM";
    QTest::newRow("what is not read") << QStringList{"simulate", script, "--hw", "h100"} << 0
                                      << "not read, though it may change the step: --overlap-moe-expert-parallel-comm";
    QTest::newRow("no chips") << QStringList{"simulate", script} << 3
                              << "run.sh:5:1: error MW1494: a launch line does not say which chips";
    QTest::newRow("degrees that do not fit")
        << QStringList{"simulate", m_folder.filePath("wrong.sh")} + chips << 3 << "wrong.sh:5:1: error MW1496";
    QTest::newRow("what some releases refuse, checked")
        << QStringList{"check", m_folder.filePath("groups.sh")} + chips << 0 << "groups.sh:5:1: warning MW1497: 1 query group";
    QTest::newRow("what some releases refuse, not allowed")
        << QStringList{"check", m_folder.filePath("groups.sh"), "--fail-on", "warning"} + chips << 1 << "MW1497";
    QTest::newRow("what some releases refuse, simulated")
        << QStringList{"simulate", m_folder.filePath("groups.sh")} + chips << 0 << "1 query group is not a multiple of tensor 2";
    QTest::newRow("no training") << QStringList{"simulate", m_folder.filePath("none.sh")} + chips << 3
                                 << "none.sh: error MW1494: nothing here starts";
    QTest::newRow("several, one of them wrong")
        << QStringList{"check", script, m_folder.filePath("wrong.sh")} + chips << 3 << "wrong.sh:5:1: error MW1496";
}

void TestLaunchLines::verbs()
{
    QFETCH(QStringList, arguments);
    const Outcome outcome = run(arguments);
    checkExitCode(outcome, outcome.err + outcome.out);
}

/// The study that is exported answers alike, and nothing but it is on standard output.
void TestLaunchLines::saidAsItsStudy()
{
    const QString script = m_folder.filePath("run.sh");
    const Outcome exported = run({"export", script, "--set", "hardware=h100x16", "--to", "study"});
    QVERIFY2(exported.code == 0 && exported.out.startsWith("meshwright: 1\n"), exported.err + exported.out);
    const Outcome line = run({"simulate", script, "--hw", "h100x16", "--format", "json"});
    const Outcome study = run({"simulate", "-", "--format", "json"}, exported.out);
    const Outcome piped = run({"simulate", "-", "--hw", "h100x16", "--format", "json"}, kScript);
    QVERIFY2(line.code == 0 && study.code == 0 && piped.code == 0, line.err + study.err + piped.err);
    QCOMPARE(errorsAgainst("simulation-1.json", line.out), QStringList());
    for (const char* figure : {"step_time_s", "memory", "collectives", "mesh"}) {
        const QJsonValue wanted = QJsonDocument::fromJson(study.out)[figure];
        QVERIFY2(!wanted.isUndefined(), figure);
        QCOMPARE(QJsonDocument::fromJson(line.out)[figure], wanted);
        QCOMPARE(QJsonDocument::fromJson(piped.out)[figure], wanted);
    }
}

/// The layout of the line, really trained beside one device.
void TestLaunchLines::trainsShrunken()
{
    const Outcome outcome = run(
        {"train", m_folder.filePath("run.sh"), "--set", "hardware=h100x16", "--shrink", "--verify", "--set", "train.steps=2"});
    QVERIFY2(outcome.code == 0, outcome.err + outcome.out);
    QVERIFY2(outcome.out.contains("verified against one device at 2 steps: equal"), outcome.out);
}

void TestLaunchLines::doesNotWriteIntoTheScript()
{
    const QString script = m_folder.filePath("run.sh");
    const Outcome outcome = run({"check", script, "--set", "hardware=h100x16", "--fix"});
    QVERIFY2(outcome.code == 2 && outcome.err.contains("MW1903"), outcome.err);
    QFile file(script);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QCOMPARE(file.readAll(), kScript);
}

MESHWRIGHT_TEST(TestLaunchLines)

} // namespace tst_launch_lines

#include "tst_launch_lines.moc"
