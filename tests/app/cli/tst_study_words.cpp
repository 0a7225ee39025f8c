// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

namespace tst_study_words {

namespace {

using meshwright::tests::example;
using meshwright::tests::Outcome;

Outcome run(const QStringList& arguments)
{
    return meshwright::tests::runProgram(MESHWRIGHT_PROGRAM, arguments);
}

} // namespace

/// What verbs say of studies beside their results: warnings, reasons and figures that one verb has and another needs too.
class TestStudyWords : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void words_data();
    void words();
    void sweepWithAnotherHead();
    void exportThatDoesNotFit();
    void reportOfAnotherTraining();
    void modelFlops_data();
    void modelFlops();
};

void TestStudyWords::words_data()
{
    meshwright::tests::addExitCodeColumns();
    const QString digits = example("digits.yaml");
    const QString phases = example("phases.yaml");
    // Training warns of what `check` warns of.
    for (const char* verb : {"check", "train"}) {
        const auto row = [&](const char* name, const QStringList& more, const char* said) {
            QTest::newRow(qPrintable(QString("%1, %2").arg(verb, name)))
                << (QStringList{verb, digits, "--set", "train.steps=2"} + more) << 0 << QString(said);
        };
        QTest::newRow(qPrintable(QString("%1, steps beside phases").arg(verb)))
            << QStringList{verb, phases, "--set", "train.steps=7"} << 0 << QString("MW1434");
        row("nothing held out", {"--set", "train.data=random", "--set", "train.evaluate=2"}, "train.evaluate has no effect");
        row("only a warm-up", {"--set", "optimizer={adam: {learning_rate: 0.01, schedule: cosine, warmup_steps: 5}}"},
            "the warm-up takes 5 steps, and the training has 2");
    }
    QTest::newRow("too little memory for microbatches")
        << QStringList{"train", digits, "--set", "batch=96", "--set", "train.accumulate=2", "--device-memory", "1KiB"} << 4
        << QString("MW1513");
    QTest::newRow("both at once") << QStringList{"train", digits, "--device-memory", "1KiB"} << 4
                                  << QString("since both are there at once");
    QTest::newRow("one meaning of a device's memory") << QStringList{"train", digits, "--set", "train.steps=1"} << 0
                                                      << QString(" at most (while \"step\" takes over the arrays of \"init\")");
    QTest::newRow("a name that is near another")
        << QStringList{"check", digits, "--set", "model.mlp.activation=gelu"} << 3 << QString("The names are ");
    QTest::newRow("above nothing") << QStringList{"check", digits, "--set", "optimizer.adam.learning_rate=-1"} << 3
                                   << QString("give a number above 0");
    QTest::newRow("phases are simulated in part")
        << QStringList{"simulate", phases} << 0 << QString("the others are not simulated");
    QTest::newRow("checkpoints into a file")
        << QStringList{"train", digits, "--checkpoint", digits} << 3 << QString("name a folder that you may write to");
}

void TestStudyWords::words()
{
    QFETCH(QStringList, arguments);
    const Outcome outcome = run(arguments);
    meshwright::tests::checkExitCode(outcome, outcome.out + outcome.err);
}

/// 8 billion parameters with their moments in f32 take 96 GB of each device.
void TestStudyWords::exportThatDoesNotFit()
{
    const QByteArray study = "meshwright: 1\nhardware: h100x8\nmesh: {data: 8}\nmodel: {transformer: {config: llama3_8b}}\n"
                             "sequence: 4096\nbatch: 8\ndtype: {parameters: f32, matmul: bf16, activations: bf16}\n"
                             "sharding: {x: [data], y: [data]}\noptimizer: {adam: {learning_rate: 0.001}}\n";
    const Outcome outcome = meshwright::tests::runProgram(MESHWRIGHT_PROGRAM, {"export", "-", "--to", "torchtitan", "-q"}, study);
    QVERIFY2(outcome.code == 0 && outcome.out.contains("torchtitan.train"), outcome.out + outcome.err);
    QVERIFY2(outcome.err.contains("MW1793") && outcome.err.contains("does not fit"), outcome.err);
}

void TestStudyWords::sweepWithAnotherHead()
{
    const QTemporaryDir folder;
    QFile file(folder.filePath("sweep.yaml"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("meshwright: 1\nstudy: study.yaml\nvary: {batch: [8, 16]}\n");
    file.close();
    const Outcome outcome = run({"sweep", file.fileName(), "--dry-run"});
    QCOMPARE(outcome.code, 3);
    QVERIFY2(outcome.err.contains("unknown key \"meshwright\"") && outcome.err.contains("\"sweep\" is missing"), outcome.err);
}

void TestStudyWords::reportOfAnotherTraining()
{
    const QTemporaryDir folder;
    const QString result = folder.filePath("result.json");
    QCOMPARE(run({"train", example("digits.yaml"), "-q", "--set", "train.steps=1", "-o", result}).code, 0);
    const QStringList report{"report", "--result", result, "-o", folder.filePath("report.md")};
    const Outcome same = run(report + QStringList{example("digits.yaml"), "--set", "train.steps=1"});
    QVERIFY2(same.code == 0 && !same.err.contains("MW1841"), same.err);
    const Outcome other = run(report + QStringList{example("pipeline_gpipe.yaml")});
    QCOMPARE(other.code, 5);
    QVERIFY2(other.err.contains("MW1841"), other.err);
    // And of a pipeline its own.
    QCOMPARE(run({"train", example("pipeline_gpipe.yaml"), "-q", "--set", "train.steps=1", "-o", result}).code, 0);
    const Outcome own = run(report + QStringList{example("pipeline_gpipe.yaml"), "--set", "train.steps=1"});
    QVERIFY2(own.code == 0 && !own.err.contains("MW1841"), own.err);
}

/// The model's work does not depend on how a program does it.
void TestStudyWords::modelFlops_data()
{
    QTest::addColumn<QStringList>("settings");
    QTest::newRow("capacity") << QStringList{"model.transformer.capacity_factor=2"};
    QTest::newRow("plain attention") << QStringList{"model.transformer.attention=plain"};
    QTest::newRow("products for lookups") << QStringList{"model.transformer.lookup=one_hot"};
    QTest::newRow("recomputation") << QStringList{"recompute=full"};
    QTest::newRow("all of it") << QStringList{
        "model.transformer.capacity_factor=1.5", "model.transformer.attention=plain", "model.transformer.lookup=one_hot"};
}

void TestStudyWords::modelFlops()
{
    QFETCH(QStringList, settings);
    QStringList simulate{"simulate", "-", "--format", "json", "--no-prove"};
    const QByteArray study
        = "meshwright: 1\nhardware: h100x8\nmesh: {data: 8}\nmodel:\n  transformer: {layers: 2, hidden: 64, "
          "heads: 4, ffn: 128, vocabulary: 96, experts: 8, experts_per_token: 2, expert_ffn: 48}\n"
          "sequence: 64\nbatch: 16\nsharding: {x: [data], y: [data]}\noptimizer: {sgd: {learning_rate: 0.1}}\n";
    const auto flops = [&](const QStringList& arguments) {
        const Outcome outcome = meshwright::tests::runProgram(MESHWRIGHT_PROGRAM, arguments, study);
        return QJsonDocument::fromJson(outcome.out)["model_flops"].toDouble();
    };
    const double usual = flops(simulate);
    // Forward and backward, of a token: attention's four products, the router, two experts of two matrices, the head; and the causal half of scores
    // and mixing.
    const double ofToken = 2 * (4.0 * 64 * 64 + 64 * 8 + 2 * 2 * 64 * 48 + 2.0 * 64 * 65 / 2) + 64 * 96;
    QCOMPARE(usual, 3 * 2 * ofToken * 64 * 16);
    for (const QString& setting : settings)
        simulate << "--set" << setting;
    QCOMPARE(flops(simulate), usual);
}

MESHWRIGHT_TEST(TestStudyWords)

} // namespace tst_study_words

#include "tst_study_words.moc"
