// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QTemporaryDir>

#include <algorithm>
#include <cmath>

namespace tst_export_verb {

using namespace meshwright;
using tests::example;
using tests::Outcome;

/// `export`: code that trains what the study trains, and commands.
class TestExportVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void jaxTrainsTheSame_data();
    void jaxTrainsTheSame();
    void flaxTrains_data();
    void flaxTrains();
    void otherModels();
    void commands_data();
    void commands();
    void listsAll();
    void refused_data();
    void refused();

private:
    /// What a cell of this code prints where it runs as a page: the numbers at the ends of its lines, and the collectives of the step.
    std::pair<QList<double>, QStringList> printed(const QByteArray& code);
    QTemporaryDir m_folder;
};

namespace {

Outcome run(const QStringList& arguments)
{
    return tests::runProgram(MESHWRIGHT_PROGRAM, arguments);
}

QStringList withSettings(QStringList words, const QStringList& settings)
{
    for (const QString& setting : settings)
        words << "--set" << setting;
    return words;
}

QJsonObject objectOf(const Outcome& outcome)
{
    return QJsonDocument::fromJson(outcome.out).object();
}

QList<double> lossesOf(const Outcome& trained)
{
    QList<double> losses;
    for (const QJsonValue& loss : objectOf(trained)["losses"].toArray())
        losses << loss.toDouble();
    return losses;
}

const QStringList kRandom = {"train.data=random", "train.steps=4"};

} // namespace

std::pair<QList<double>, QStringList> TestExportVerb::printed(const QByteArray& code)
{
    const QString path = m_folder.filePath("page.py");
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly | QIODevice::Truncate) || file.write(code) < 0)
        return {};
    file.close();
    const Outcome outcome = run({"open", path, "--format", "json"});
    const QJsonObject cell = objectOf(outcome)["cells"].toArray().first().toObject();
    if (cell["status"].toString() != "ran")
        qWarning("%s", qPrintable(QString::fromUtf8(code + outcome.out + outcome.err)));
    QList<double> numbers;
    for (const QString& line : cell["output"].toString().split('\n', Qt::SkipEmptyParts))
        numbers << line.section(' ', -1).toDouble();
    QStringList collectives;
    for (const QJsonValue& one : cell["collectives"].toArray())
        collectives << one.toObject()["op"].toString() + " " + one.toObject()["axes"].toString();
    return {numbers, collectives};
}

void TestExportVerb::jaxTrainsTheSame_data()
{
    QTest::addColumn<QString>("study");
    QTest::addColumn<QStringList>("settings");
    QTest::newRow("data and tensor parallel, Adam, cross entropy") << "digits.yaml" << kRandom;
    QTest::newRow("constraints inside") << "sequence_parallel.yaml" << kRandom;
    QTest::newRow("fully sharded") << "fsdp.yaml" << kRandom;
    QTest::newRow("moments apart") << "zero1.yaml" << kRandom;
    QTest::newRow("three axes") << "three_d.yaml" << kRandom;
    QTest::newRow("16 bits") << "digits.yaml" << kRandom + QStringList{"dtype.parameters=bf16", "dtype.matmul=bf16"};
    QTest::newRow("products of 16 bits, JAX's draws before 0.5, all normal")
        << "digits.yaml"
        << kRandom + QStringList{"dtype.matmul=bf16", "init.random=legacy", "init.w=normal/sqrt(fan_in)", "init.b=normal"};
    QTest::newRow("biases that are scaled") << "digits.yaml" << kRandom + QStringList{"init.w=lecun_normal", "init.b=he_normal"};
    QTest::newRow("no biases, tanh, mean square") << "digits.yaml"
                                                  << kRandom
            + QStringList{"model.mlp.bias=false", "model.mlp.activation=tanh", "model.mlp.loss=mse", "sharding.layers.1.b="};
    QTest::newRow("sum of squares, momentum")
        << "digits.yaml"
        << kRandom + QStringList{"model.mlp.loss=sum_squared", "optimizer={sgd: {learning_rate: 0.001, momentum: 0.9}}"};
    QTest::newRow("decay beside momentum") << "digits.yaml"
                                           << kRandom
            + QStringList{"optimizer={sgd: {learning_rate: 0.05, momentum: 0.5, weight_decay: 0.1}}"};
    QTest::newRow("AdamW, clipped, warm-up and cosine") << "digits.yaml"
                                                        << kRandom
            + QStringList{"optimizer={adamw: {learning_rate: 0.01, clip_norm: 0.5, schedule: cosine, warmup_steps: 2, "
                          "final_learning_rate: 0.001}}"};
    QTest::newRow("linear schedule") << "digits.yaml"
                                     << kRandom
            + QStringList{"optimizer={adam: {learning_rate: 0.01, schedule: linear, decay_steps: 3}}"};
    QTest::newRow("microbatches") << "digits.yaml" << kRandom + QStringList{"train.accumulate=5"};
    QTest::newRow("another seed, devices in another order")
        << "digits.yaml" << kRandom + QStringList{"train.seed=7", "mesh.device_order=[7, 6, 5, 4, 3, 2, 1, 0]"};
}

void TestExportVerb::jaxTrainsTheSame()
{
    QFETCH(QString, study);
    QFETCH(QStringList, settings);
    const Outcome trained = run(withSettings({"train", example(study), "--format", "json"}, settings));
    QCOMPARE(trained.code, 0);
    const Outcome code = run(withSettings({"export", example(study), "--to", "jax"}, settings));
    QVERIFY2(code.code == 0, code.err.constData());
    const QList<double> expected = lossesOf(trained);
    const auto [losses, collectives] = printed(code.out);
    QCOMPARE(losses.size(), expected.size());
    const bool isNarrow = std::any_of(settings.begin(), settings.end(), [](const QString& one) { return one.contains("bf16"); });
    for (qsizetype i = 0; i < losses.size(); ++i)
        QVERIFY2(std::abs(losses[i] - expected[i]) <= (isNarrow ? 5e-3 : 2e-5) * std::abs(expected[i]),
            qPrintable(QString("loss %1: %2 in JAX, %3 here\n%4")
                           .arg(i)
                           .arg(losses[i])
                           .arg(expected[i])
                           .arg(QString::fromUtf8(code.out))));
    QVERIFY2(!collectives.isEmpty(), code.out.constData());
}

void TestExportVerb::flaxTrains_data()
{
    QTest::addColumn<QString>("study");
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<QString>("collective"); ///< that the layout cannot do without
    QTest::newRow("tensor parallel") << "digits.yaml" << kRandom << "all_reduce model";
    QTest::newRow("fully sharded") << "fsdp.yaml" << kRandom << "all_gather data";
    QTest::newRow("no biases, 16 bits, microbatches") << "digits.yaml"
                                                      << kRandom
            + QStringList{"model.mlp.bias=false", "sharding.layers.1.b=", "dtype.matmul=bf16", "train.accumulate=2", "batch=80"}
                                                      << "all_reduce model";
}

void TestExportVerb::flaxTrains()
{
    QFETCH(QString, study);
    QFETCH(QStringList, settings);
    QFETCH(QString, collective);
    const Outcome code = run(withSettings({"export", example(study), "--to", "flax"}, settings));
    QVERIFY2(code.code == 0, code.err.constData());
    const auto [losses, collectives] = printed(code.out);
    QCOMPARE(losses.size(), 5);
    QVERIFY2(losses.last() < losses.first(), code.out.constData());
    QVERIFY2(collectives.contains(collective), qPrintable(collectives.join(", ") + "\n" + QString::fromUtf8(code.out)));
}

void TestExportVerb::otherModels()
{
    const Outcome code = run({"export", example("transformer_64.yaml"), "--to", "jax"});
    QCOMPARE(code.code, 0);
    QVERIFY2(code.out.contains("'layers.attention.q.w': P("), code.out.constData());
    QVERIFY(!code.out.contains("'act.layers.attention.q'")); // it follows from the others
    const auto [numbers, collectives] = printed(code.out + "print(len(specs))\n");
    QVERIFY(!numbers.isEmpty() && numbers.first() > 5);

    const Outcome study = run({"export", example("digits.yaml"), "--to", "study", "--set", "batch=60"});
    QVERIFY2(study.out.contains("batch: 60"), study.out.constData());
    const Outcome trace = run({"export", example("digits.yaml"), "--to", "perfetto"});
    QVERIFY(!objectOf(trace)["traceEvents"].toArray().isEmpty());
}

void TestExportVerb::commands_data()
{
    QTest::addColumn<QString>("to");
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<QString>("words");
    const QStringList plain; // axes data=8, model=8 of 64 H100
    QTest::newRow("tensor parallel, an axis of another name")
        << "megatron" << plain << "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 1";
    QTest::newRow("the same with other sizes")
        << "megatron" << QStringList{"mesh={data: 16, model: 4}"} << "--tensor-model-parallel-size 4";
    QTest::newRow("an axis of one device") << "megatron" << QStringList{"mesh={data: 64, model: 1}"}
                                           << "--tensor-model-parallel-size 1";
    QTest::newRow("all made again, as NeMo does it")
        << "megatron" << QStringList{"stack=nemo", "recompute=full"} << "--recompute-granularity full --recompute-method uniform";
    QTest::newRow("all made again, as Megatron-LM does it")
        << "torchtitan" << QStringList{"stack=megatron", "recompute=full"} << "activation-checkpoint:full";
    QTest::newRow("the loss in chunks") << "torchtitan" << QStringList{"model.transformer.loss={cross_entropy: {chunks: 8}}"}
                                        << "--loss.num_chunks 8 ";
    QTest::newRow("values by name") << "maxtext" << QStringList{"recompute={keep: [attention.mixed], offload: [ffn.up]}"}
                                    << "remat_policy=custom context=device mlpwi_0=offload";
    QTest::newRow("accumulated") << "megatron" << QStringList{"train.accumulate=4"}
                                 << "--micro-batch-size 2 --global-batch-size 64";
    QTest::newRow("fully sharded by a rule, small arrays too")
        << "accelerate"
        << QStringList{"mesh={data: 64}", "recompute=full",
               "sharding.embedding.w=", "sharding.head.w=", "sharding.layers.attention=", "sharding.layers.ffn=",
               R"yaml(sharding.match=[{path: "*", divisible: largest_dim, spec: [data]}, {path: "*", spec: []}])yaml"}
        << "--fsdp_sharding_strategy FULL_SHARD";
    QTest::newRow("fully sharded in groups")
        << "torchtitan"
        << QStringList{"mesh={replica: 4, shard: 16}", "recompute=full", "sharding.x=P(('replica', 'shard'), None)",
               "sharding.y=P(('replica', 'shard'), None)", "sharding.embedding.w=P(None, 'shard')",
               "sharding.head.w=P('shard', None)",
               R"yaml(sharding.layers.attention={q.w: "P(None, 'shard')", k.w: "P(None, 'shard')", v.w: "P(None, 'shard')", o.w: "P(None, None, None, 'shard')"})yaml",
               R"yaml(sharding.layers.ffn={up.w: "P(None, 'shard')", down.w: "P(None, None, 'shard')"})yaml"}
        << "--parallelism.data_parallel_replicate_degree 4 --parallelism.data_parallel_shard_degree 16";
}

void TestExportVerb::commands()
{
    QFETCH(QString, to);
    QFETCH(QStringList, settings);
    QFETCH(QString, words);
    const Outcome command = run(withSettings({"export", example("transformer_64.yaml"), "--to", to}, settings));
    QVERIFY2(command.code == 0 && command.out.contains(words.toUtf8()), (command.out + command.err).constData());
    QCOMPARE(command.out.count('\n'), 1);
}

void TestExportVerb::listsAll()
{
    const Outcome text = run({"export", example("digits.yaml")});
    QCOMPARE(text.code, 0);
    QVERIFY2(text.out.contains("jax: meshwright export ") && text.out.contains("megatron: -, "), text.out.constData());
    const Outcome json = run({"export", example("digits.yaml"), "--format", "json"});
    QCOMPARE(tests::errorsAgainst("export-1.json", json.out), QStringList());
    QStringList programs;
    for (const QJsonValue& one : objectOf(json)["exports"].toArray()) {
        programs << one.toObject()["to"].toString();
        QVERIFY(one.toObject()["text"].isNull() != one.toObject()["why_not"].isNull());
    }
    QCOMPARE(programs, (QStringList{"study", "jax", "flax", "maxtext", "torchtitan", "megatron", "accelerate"}));
}

void TestExportVerb::refused_data()
{
    QTest::addColumn<QStringList>("words");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("says");
    QTest::newRow("no such program") << QStringList{example("digits.yaml"), "--to", "megatorn"} << 2 << "megatron";
    QTest::newRow("nothing") << QStringList{} << 2 << "STUDY is missing";
    QTest::newRow("no such study") << QStringList{"nowhere.yaml"} << 3 << "MW1001";
    QTest::newRow("a study with a mistake") << QStringList{example("digits.yaml"), "--set", "batch=3"} << 3 << "MW1104";
    QTest::newRow("a model without options") << QStringList{example("digits.yaml"), "--to", "megatron"} << 4 << "MW1759";
    QTest::newRow("a layout without a name") << QStringList{example("transformer_64.yaml"), "--to", "megatron", "--set",
        "sharding.embedding.w=P()"} << 4 << "no framework has options for the sharding of embedding.w";
    QTest::newRow("a recomputation of another framework")
        << QStringList{example("transformer_64.yaml"), "--to", "megatron", "--set", "recompute=minimal_with_context"} << 4
        << "MW1759: megatron: Megatron-LM has no recomputation \"minimal_with_context\"";
    QTest::newRow("states that are split as no plan splits them")
        << QStringList{example("llama3_405b_h100.yaml"), "--to", "megatron", "--set", "sharding.opt.master.embedding.w=P()"} << 4
        << "no framework has options for the sharding of opt.master.embedding.w";
    QTest::newRow("an attention of another kind") << QStringList{example("transformer_64.yaml"), "--to", "megatron", "--set",
        "model.transformer.attention=plain"} << 4 << "no framework has options for attention: plain";
    QTest::newRow("an axis that splits nothing") << QStringList{example("transformer_64.yaml"), "--to", "megatron", "--set",
        "mesh={data: 8, model: 4, idle: 2}"} << 4 << "axis \"idle\" splits neither the batch, the sequence nor weights";
    QTest::newRow("a model without code") << QStringList{example("transformer_64.yaml"), "--to", "flax"} << 4 << "MW1759";
}

void TestExportVerb::refused()
{
    QFETCH(QStringList, words);
    QFETCH(int, code);
    QFETCH(QString, says);
    const Outcome outcome = run(QStringList{"export"} + words);
    QCOMPARE(outcome.code, code);
    QVERIFY2(outcome.err.contains(says.toUtf8()) && outcome.out.isEmpty(), (outcome.out + outcome.err).constData());
}

MESHWRIGHT_TEST(TestExportVerb)

} // namespace tst_export_verb

#include "tst_export_verb.moc"
