// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>

#include <functional>

namespace tst_shrunken_plans {

using namespace meshwright::tests;

/// Plans of all kinds, made small enough to train here: they are proved, learn what one device learns, and move what the simulation says.
class TestShrunkenPlans : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void plans_data();
    void plans();
    void settings_data();
    void settings();
};

namespace {

Outcome run(const QStringList& arguments)
{
    return runProgram(MESHWRIGHT_PROGRAM, arguments);
}

QJsonObject json(const Outcome& outcome)
{
    return QJsonDocument::fromJson(outcome.out).object();
}

/// Sums over collectives, by op and axes.
QString sumsOf(const QJsonArray& collectives, const std::function<double(const QJsonObject&)>& amount)
{
    QMap<QString, double> sums;
    for (const QJsonValue& value : collectives) {
        const QJsonObject one = value.toObject();
        sums[one["op"].toString() + ' ' + one["axes"].toString()] += amount(one);
    }
    QStringList lines;
    for (auto sum = sums.begin(); sum != sums.end(); ++sum)
        lines << QString("%1: %2").arg(sum.key()).arg(sum.value(), 0, 'f', 0);
    return lines.join('\n');
}

double bytesOf(const QJsonObject& collective)
{
    return collective["count"].toDouble() * collective["bytes_per_device"].toDouble();
}

} // namespace

void TestShrunkenPlans::plans_data()
{
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("hardware");
    QTest::addColumn<QString>("tokens");
    QTest::addColumn<QString>("sequence");
    QTest::addColumn<QString>("choices");
    QTest::addColumn<QString>("says"); ///< what stands in the plan

    const auto row = [](const char* name, const char* model, const char* hardware, const char* tokens, const char* sequence,
                         const char* choices,
                         const char* says) { QTest::newRow(name) << model << hardware << tokens << sequence << choices << says; };
    row("fully sharded", "llama3_8b", "h100x64", "1M", "8k", "context=1,tensor=1,pipeline=1", "fsdp: ");
    row("fully sharded, TPU", "gemma_7b", "v5p-64", "1M", "4k", "", "fsdp");
    row("optimizer's states split", "qwen2_7b", "h100x32", "1M", "4k", "zero=1", "opt.m");
    row("tensor beside data", "mistral_7b", "a100x32", "512k", "8k", "tensor=4", "tensor: 4");
    row("Megatron's pipeline", "llama3_70b", "h100x512", "4M", "8k", "pipeline=4,tensor=8", "stages: 4");
    row("a pipeline without tensor", "gpt_neox_20b", "a100x64", "1M", "2k", "pipeline=4,context=1", "stages: 4");
    row("ring over long sequences", "llama3_8b", "h100x64", "1M", "128k", "context=16", "zigzag: 16");
    row("a loss in chunks", "gemma_7b", "h100x16", "1M", "1M", "context=16", "cross_entropy: {chunks:");
    row("experts", "mixtral_8x7b", "h100x64", "1M", "4k", "expert=8", "expert: 8");
    row("latent attention and experts", "deepseek_v2_lite", "h100x64", "1M", "4k", "expert=8", "expert: 8");
    row("layers of several kinds", R"({"num_hidden_layers": 16, "hidden_size": 1024, "num_attention_heads": 8,
        "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 2048, "vocab_size": 32000, "full_attention_interval": 4,
        "linear_conv_kernel_dim": 4, "linear_key_head_dim": 64, "linear_num_key_heads": 8, "linear_num_value_heads": 8,
        "linear_value_head_dim": 64})",
        "h100x8", "256k", "4k", "pipeline=1", "layers.0-15.3.");
    row("one host", "gpt2", "h100x8", "128k", "1k", "", "mesh");
}

void TestShrunkenPlans::plans()
{
    QFETCH(QString, model);
    QFETCH(QString, hardware);
    QFETCH(QString, tokens);
    QFETCH(QString, sequence);
    QFETCH(QString, choices);
    QFETCH(QString, says);
    const QTemporaryDir folder;
    const QString plan = folder.filePath("plan.yaml");
    if (model.startsWith('{')) {
        QFile config(folder.filePath("config.json"));
        QVERIFY(config.open(QIODevice::WriteOnly) && config.write(model.toUtf8()) > 0);
        model = config.fileName();
    }
    QStringList search{
        "search", "--model", model, "--hw", hardware, "--tokens", tokens, "--seq", sequence, "--plans-only", "-o", plan};
    if (!choices.isEmpty())
        search << "--fix" << choices;
    const Outcome found = run(search);
    QVERIFY2(found.code == 0, found.err);
    QFile file(plan);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray text = file.readAll();
    QVERIFY2(text.contains(says.toUtf8()), text);

    const Outcome simulated = run({"simulate", plan, "--shrink", "--format", "json"});
    QVERIFY2(simulated.code == 0, simulated.err);
    QVERIFY(json(simulated)["proof"].toObject()["proved"].toBool());
    if (says == "layers.0-15.3.") // 16 layers in turns of four, of which two turns are left
        QVERIFY2(simulated.out.contains("\"layers.0-7.3."), simulated.out.left(2000));
    const Outcome trained = run({"train", plan, "--shrink", "--set", "train.steps=2", "--verify", "--quiet", "--format", "json"});
    QVERIFY2(trained.code == 0, trained.err);
    QCOMPARE(json(trained)["verify"].toObject()["verdict"].toString(), QString("equal"));
    QVERIFY(json(trained)["devices"].toInt() <= 32);
    const QJsonArray counted = json(trained)["collectives"].toArray();
    QVERIFY(!counted.isEmpty());
    for (const QJsonValue& one : counted)
        QCOMPARE(one.toObject()["counted_calls"].toDouble(), 2.0 * one.toObject()["count"].toDouble());
    if (text.contains("stages:"))
        return; // the simulation lists a stage's collectives, and the training those of all stages
    // On accelerators small reductions join, so that calls may be fewer there.
    const QString bytes
        = sumsOf(counted, [](const QJsonObject& one) { return one["counted_bytes_per_device"].toDouble() / 2.0; });
    QCOMPARE(bytes, sumsOf(json(simulated)["collectives"].toArray(), bytesOf));
}

void TestShrunkenPlans::settings_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("message");
    QTest::newRow("a truth value") << "three_d" << QStringList{"shrink=true"} << 0 << "";
    QTest::newRow("not shrunken") << "three_d" << QStringList{"shrink=false"} << 0 << "";
    QTest::newRow("a number") << "three_d" << QStringList{"shrink=3"} << 3 << "MW1422";
    QTest::newRow("wrong at its own sizes") << "ring_attention" << QStringList{"shrink=true", "mesh.context=5"} << 3 << "MW1104";
    QTest::newRow("a program") << "jax_product" << QStringList{"shrink=true"} << 3 << "MW1468";
}

void TestShrunkenPlans::settings()
{
    QFETCH(QString, example);
    QFETCH(QStringList, settings);
    QFETCH(int, code);
    QFETCH(QString, message);
    QStringList words{"check", QString(MESHWRIGHT_SOURCE_DIR "/resources/examples/%1.yaml").arg(example), "--format", "json"};
    for (const QString& setting : settings)
        words << "--set" << setting;
    const Outcome outcome = run(words);
    QVERIFY2(outcome.code == code, outcome.out);
    QVERIFY2(outcome.out.contains(message.toUtf8()), outcome.out);
}

MESHWRIGHT_TEST(TestShrunkenPlans)

} // namespace tst_shrunken_plans

#include "tst_shrunken_plans.moc"
