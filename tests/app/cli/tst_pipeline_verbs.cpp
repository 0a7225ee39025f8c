// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

namespace tst_pipeline_verbs {

namespace {

using meshwright::tests::errorsAgainst;
using meshwright::tests::example;
using meshwright::tests::Outcome;

Outcome run(const QStringList& arguments)
{
    return meshwright::tests::runProgram(MESHWRIGHT_PROGRAM, arguments);
}

QJsonObject object(const Outcome& outcome)
{
    return QJsonDocument::fromJson(outcome.out).object();
}

} // namespace

/// Pipelines from the command line.
class TestPipelineVerbs : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void trains_data();
    void trains();
    void goesOnWithoutStages();
    void faults();
    void exitCodes_data();
    void exitCodes();
};

void TestPipelineVerbs::trains_data()
{
    QTest::addColumn<QString>("study");
    QTest::addColumn<QStringList>("more");
    for (const char* name : {"pipeline_gpipe.yaml", "pipeline_1f1b.yaml", "pipeline_interleaved.yaml"})
        QTest::newRow(name) << name << QStringList{};
    QTest::newRow("transformer") << "pipeline_transformer.yaml" << QStringList{"--set", "batch=8"};
    QTest::newRow("transformer, tied, made again, dropout and loss scale")
        << "pipeline_transformer.yaml"
        << QStringList{"--set", "batch=8", "--set", "model.transformer.tied=true", "--set", "recompute=full", "--set",
               "dropout=0.1", "--set", "optimizer.adam.loss_scale=dynamic"};
    // The first of four pieces has the embedding alone, the last the head.
    const QStringList ends = {"--set", "batch=8", "--set", "model.transformer.layers=2", "--set",
        "pipeline={axis: pipe, stages: 2, chunks: 2, microbatches: 4, schedule: interleaved, layers: [0, 1, 1, 0]}"};
    QTest::newRow("embedding and head as pieces") << "pipeline_transformer.yaml" << ends;
    QTest::newRow("embedding and head as pieces, a loop")
        << "pipeline_transformer.yaml" << ends + QStringList{"--set", "model.transformer.unroll=false", "--set", "sharding={}"};
    QTest::newRow("embedding alone, tied") << "pipeline_transformer.yaml"
                                           << QStringList{"--set", "batch=8", "--set", "model.transformer.layers=1", "--set",
                                                  "model.transformer.tied=true", "--set", "pipeline.layers=[0, 1]"};
    QTest::newRow("head alone, two tasks of a backward pass")
        << "pipeline_transformer.yaml"
        << QStringList{"--set", "batch=8", "--set", "model.transformer.layers=1", "--set",
               "pipeline={axis: pipe, stages: 2, microbatches: 4, schedule: zb_h1, layers: [1, 0]}"};
    QTest::newRow("microbatches without stages")
        << "pipeline_gpipe.yaml" << QStringList{"--set", "pipeline={microbatches: 4}", "--set", "mesh={data: 1}"};
}

void TestPipelineVerbs::trains()
{
    QFETCH(QString, study);
    QFETCH(QStringList, more);
    const QTemporaryDir folder;
    const QString trace = folder.path() + "/trace.json";
    const Outcome outcome = run(QStringList{"train", example(study), "-q", "--verify", "--trace", trace, "--metrics",
                                    folder.path() + "/metrics.jsonl", "--format", "json", "--set", "train.steps=4"}
        + more);
    QVERIFY2(outcome.code == 0, outcome.err + outcome.out.right(2000));
    QCOMPARE(errorsAgainst("training-1.json", outcome.out), QStringList());
    QCOMPARE(object(outcome)["losses"].toArray().size(), 5);
    bool sends = false;
    for (const QJsonValue& collective : object(outcome)["collectives"].toArray()) {
        if (collective["op"].toString() == "send") {
            sends = true;
            QCOMPARE(collective["axes"].toString(), "pipe");
        }
    }
    QFile metrics(folder.path() + "/metrics.jsonl");
    QVERIFY(metrics.open(QIODevice::ReadOnly));
    const QList<QByteArray> lines = metrics.readAll().trimmed().split('\n');
    QCOMPARE(lines.size(), 4);
    for (const QByteArray& line : lines) {
        QCOMPARE(errorsAgainst("metrics-1.json", line), QStringList());
        QVERIFY(QJsonDocument::fromJson(line)["grad_norm"].toDouble() > 0.0);
    }
    const bool hasStages = !more.contains("pipeline={microbatches: 4}");
    QCOMPARE(sends, hasStages);
    QFile file(trace);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray text = file.readAll();
    QCOMPARE(text.contains("send activation"), hasStages);
    QVERIFY(text.contains("microbatch 3"));
}

void TestPipelineVerbs::goesOnWithoutStages()
{
    const QTemporaryDir folder;
    const QStringList common{"train", example("pipeline_gpipe.yaml"), "-q", "--format", "json"};
    QCOMPARE(run(common + QStringList{"--set", "train.steps=2", "--checkpoint", folder.path()}).code, 0);
    const Outcome whole = run(common + QStringList{"--set", "train.steps=4"});
    const Outcome resumed = run(common
        + QStringList{"--set", "train.steps=4", "--set", "pipeline=", "--set", "mesh={data: 2}", "--resume", folder.path()});
    QVERIFY2(resumed.code == 0, resumed.err);
    const QJsonArray expected = object(whole)["losses"].toArray();
    const QJsonArray actual = object(resumed)["losses"].toArray();
    QCOMPARE(actual.size(), expected.size());
    for (int i = 0; i < expected.size(); ++i)
        QVERIFY(std::abs(actual[i].toDouble() - expected[i].toDouble()) < 1e-5 * expected[i].toDouble());
}

void TestPipelineVerbs::faults()
{
    const Outcome failed
        = run({"train", example("pipeline_1f1b.yaml"), "-q", "--set", "train.steps=3", "--inject", "fail:device=3,step=2"});
    QCOMPARE(failed.code, 6);
    QVERIFY2(failed.err.contains("MW1508") && failed.err.contains("device 3 failed in step 3"), failed.err);
}

void TestPipelineVerbs::exitCodes_data()
{
    meshwright::tests::addExitCodeColumns();
    const QString study = example("pipeline_gpipe.yaml");
    const auto row = [&](const char* name, const QStringList& settings, int code, const char* said) {
        QStringList arguments{"train", study};
        for (const QString& setting : settings)
            arguments += QStringList{"--set", setting};
        QTest::newRow(name) << arguments << code << QString(said);
    };
    row("axis of another size", {"mesh.pipe=2"}, 3, "MW1460");
    row("microbatches", {"pipeline.microbatches=7"}, 3, "MW1461");
    row("layers", {"pipeline.layers=[1, 2, 3]"}, 3, "MW1462");
    row("uneven without a list", {"model.mlp.layers=[64, 32, 32, 32, 32, 10]"}, 3, "pipeline.layers=[2, 1, 1, 1]");
    row("chunks", {"pipeline.chunks=2"}, 3, "MW1463");
    row("rounds", {"pipeline.chunks=2", "pipeline.schedule=interleaved", "pipeline.microbatches=6"}, 3, "MW1463");
    row("a spec over the stages", {"sharding.x=P('pipe')"}, 3, "MW1464");
    row("no optimizer", {"optimizer=none"}, 3, "MW1545");
    QTest::newRow("a program file") << QStringList{"check", example("jax_product.yaml"), "--set",
        "pipeline={stages: 1, microbatches: 2}"}
                                    << 3 << "MW1469";
    const auto transformer = [](const char* name, const QStringList& settings, const char* said) {
        QStringList arguments{"train", example("pipeline_transformer.yaml")};
        for (const QString& setting : settings)
            arguments += QStringList{"--set", setting};
        QTest::newRow(name) << arguments << 3 << QString(said);
    };
    transformer("layers in a loop, split over devices", {"model.transformer.unroll=false", "sharding={layers.ffn.up.w: [model]}"},
        "MW1546");
    transformer("tied embeddings, both on one stage",
        {"model.transformer.tied=true", "mesh={model: 2}", "pipeline={microbatches: 2, chunks: 2, schedule: interleaved}"},
        "MW1544");
    transformer("five layers", {"model.transformer.layers=5"}, "pipeline.layers=[3, 2]");
    const QString pieces = "pipeline={axis: pipe, stages: 2, chunks: 2, microbatches: 4, schedule: interleaved}";
    transformer("two layers more pieces", {"model.transformer.layers=2", pieces}, "pipeline.layers=[0, 1, 1, 0]");
    transformer("one layer more pieces", {"model.transformer.layers=3", pieces}, "pipeline.layers=[1, 1, 1, 0]");
    transformer("pieces without anything", {"model.transformer.layers=1", pieces},
        "2 stages of 2 chunks for a model of 1 layer, an embedding and a head");
    transformer("nothing in the middle", {"model.transformer.layers=2", pieces, "pipeline.layers=[1, 0, 1, 0]"},
        "the first and the last may have the embedding and the head alone");
    row("an MLP has no ends", {"pipeline.layers=[0, 4, 2, 2]"}, 3, "at least one layer");
    QTest::newRow("memory") << QStringList{"train", study, "--set", "train.steps=1", "--device-memory", "10KiB"} << 4
                            << "each of 4 devices needs ";
}

void TestPipelineVerbs::exitCodes()
{
    QFETCH(QStringList, arguments);
    const Outcome outcome = run(arguments);
    meshwright::tests::checkExitCode(outcome);
}

MESHWRIGHT_TEST(TestPipelineVerbs)

} // namespace tst_pipeline_verbs

#include "tst_pipeline_verbs.moc"
