// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/arrays.h"
#include "core/study/resolve.h"
#include "core/study/stage_share.h"
#include "core/study/study.h"
#include "core/support/file.h"

#include "tests/test_class.h"
#include "tests/values.h"

#include <QTemporaryDir>

namespace tst_transformer_study {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

/// The good study that rows break. Line 4 is the model, 5 the sequence, 6 the batch.
const QString kGood = "meshwright: 1\n"
                      "name: good\n"
                      "mesh: {data: 4, model: 2}\n"
                      "model: {transformer: {layers: 2, hidden: 32, heads: 4, vocabulary: 32, predict: last_token}}\n"
                      "sequence: 64\n"
                      "batch: 96\n"
                      "sharding:\n"
                      "  x: P('data', None)\n"
                      "  layers.attention: {q.w: \"P(None, None, 'model', None)\", out: \"P('data', None, None)\"}\n"
                      "train: {steps: 3, data: digits}\n";

QString changed(const QString& what, const QString& by)
{
    QString text = kGood;
    return text.replace(what, by);
}

Study studyOf(const QString& text)
{
    return valueOf(readStudy(text.toStdString(), "study.yaml"));
}

QString listed(const Problems& problems)
{
    QStringList list;
    for (const Problem& problem : problems)
        list << QString("%1 %2:%3").arg(text(problem.id)).arg(problem.place.line).arg(problem.place.column);
    return list.join(' ');
}

const StudyArray* findArray(const std::vector<StudyArray>& arrays, const std::string& name)
{
    const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const StudyArray& array) { return array.name == name; });
    return found == arrays.end() ? nullptr : &*found;
}

} // namespace

class TestTransformerStudy : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sizesFollow();
    void keptByPolicy_data();
    void keptByPolicy();
    void shippedConfig();
    void configFile();
    void configOfKinds();
    void configProblems_data();
    void configProblems();
    void readInPart();
    void writtenAndRead_data();
    void writtenAndRead();
    void arrays();
    void arraysAreTheProgram_data();
    void arraysAreTheProgram();
    void problems_data();
    void problems();
    void stagesHaveShares_data();
    void stagesHaveShares();
    void microbatchesPassOneByOne();
    void words();
    void fixes_data();
    void fixes();
};

void TestTransformerStudy::sizesFollow()
{
    const Study study = studyOf(kGood);
    const TransformerModel* model = study.transformer();
    QVERIFY(model != nullptr && study.trains() && study.mlp() == nullptr);
    QCOMPARE(model->config.keyValueHeads, std::int64_t{4});
    QCOMPARE(model->config.headDim, std::int64_t{8});
    QCOMPARE(model->config.ffn, std::int64_t{128});
    QCOMPARE(model->sequence, std::int64_t{64});
    QVERIFY(model->predict == Prediction::LastToken);
    const Study learned = studyOf(changed("predict: last_token", "position: learned, kv_heads: 2, head_dim: 16, ffn: 40"));
    QCOMPARE(learned.transformer()->config.maxPositions, std::int64_t{64});
    QCOMPARE(learned.transformer()->config.keyValueHeads, std::int64_t{2});
    QCOMPARE(learned.transformer()->config.headDim, std::int64_t{16});
    QCOMPARE(learned.transformer()->config.ffn, std::int64_t{40});
}

void TestTransformerStudy::keptByPolicy_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<QString>("kept");
    QTest::newRow("attention alone") << "save_context"
                                     << "{keep: [attention.mixed]}";
    QTest::newRow("products and attention") << "save_dot_with_context_except_mlp"
                                            << "{keep: [attention.q, attention.k, attention.v, attention.mixed, attention, ffn]}";
    QTest::newRow("in the host's memory") << "qkv_proj_offloaded"
                                          << "{offload: [attention.q, attention.k, attention.v]}";
    QTest::newRow("products in the host's memory") << "minimal_offloaded"
                                                   << "offload_dot_with_no_batch_dims";
}

void TestTransformerStudy::keptByPolicy()
{
    QFETCH(QString, policy);
    QFETCH(QString, kept);
    const Study study
        = studyOf("meshwright: 1\nmodel: {transformer: {config: gpt2}}\nsequence: 1024\nbatch: 4\nrecompute: " + policy + "\n");
    QVERIFY2(text(writeStudy(study)).contains("recompute: " + kept), writeStudy(study).c_str());
}

void TestTransformerStudy::shippedConfig()
{
    const Study study
        = studyOf("meshwright: 1\nmodel: {transformer: {config: llama3_8b, layers: 2, lookup: one_hot, unroll: true}}\n"
                  "sequence: 8192\nbatch: 4\nrecompute: full\ndtype: {parameters: f32, matmul: bf16, activations: bf16, "
                  "gradients: bf16}\n");
    const TransformerModel* model = study.transformer();
    QCOMPARE(text(model->config.name), QString("Llama 3 8B"));
    QCOMPARE(model->config.layers, std::int64_t{2}); // what stands beside the file counts
    QCOMPARE(model->config.keyValueHeads, std::int64_t{8});
    QVERIFY(model->recompute == Recompute::Full && model->unrolled && model->lookup == TokenLookup::Product);
    QVERIFY(study.activationType == DType::BF16);
    QVERIFY(study.gradientType == DType::BF16);
    QVERIFY(valueOf(trainingOptions(study)).activationType == DType::BF16);
    QVERIFY(valueOf(trainingOptions(studyOf(kGood))).activationType == DType::F32);
}

void TestTransformerStudy::configFile()
{
    const QTemporaryDir folder;
    const std::filesystem::path path = folder.path().toStdString();
    QVERIFY(writeFileAtomically(path / "config.json", R"({"model_type": "gpt2", "n_layer": 3})"));
    const auto study
        = readStudy("meshwright: 1\nmodel: {transformer: {config: config.json, name: mine}}\nsequence: 10\nbatch: 4\n",
            (path / "s.yaml").string());
    QVERIFY2(study, qPrintable(described(study)));
    QCOMPARE(study->transformer()->config.layers, std::int64_t{3});
    QCOMPARE(text(study->transformer()->config.name), QString("mine"));
}

/// What stands beside a file with layers of several kinds counts for those that have it; the pattern is cut off.
void TestTransformerStudy::configOfKinds()
{
    const QTemporaryDir folder;
    const std::filesystem::path path = folder.path().toStdString();
    QVERIFY(writeFileAtomically(path / "config.json", R"({"num_hidden_layers": 8, "hidden_size": 64, "num_attention_heads": 4,
        "intermediate_size": 128, "vocab_size": 32, "ssm_state_size": 8, "mamba_head_dim": 16, "mamba_num_heads": 8,
        "layers_block_type": ["mamba", "mlp", "attention", "mlp"]})"));
    const auto study = readStudy(
        "meshwright: 1\nmodel: {transformer: {config: config.json, layers: 6, hidden: 16, heads: 2, kv_heads: 2, ffn: 32}}\n"
        "sequence: 8\nbatch: 4\n",
        (path / "s.yaml").string());
    QVERIFY2(study, qPrintable(described(study)));
    const TransformerConfig& c = study->transformer()->config;
    QVERIFY((c.pattern == std::vector<std::int64_t>{0, 1, 2, 1, 0, 1}));
    QCOMPARE(c.kinds[1].layers, std::int64_t{3});
    QCOMPARE(c.kinds[0].ffn, std::int64_t{0}); // still has none
    QCOMPARE(c.kinds[1].ffn, std::int64_t{32});
    QCOMPARE(c.kinds[2].heads, std::int64_t{2});
    QCOMPARE(c.kinds[0].hidden, std::int64_t{16});
}

void TestTransformerStudy::configProblems_data()
{
    QTest::addColumn<QByteArray>("json");
    QTest::addColumn<QString>("expected");
    QTest::newRow("no JSON") << QByteArray("{\n?") << "config.json:2:1: error MW1350";
    QTest::newRow("unknown") << QByteArray("{\"model_type\": \"rwkv\"}")
                             << "s.yaml:2:31: error MW1352: config.json: \"num_hidden_layers\", \"hidden_size\"";
    QTest::newRow("field") << QByteArray("{\"model_type\": \"gpt2\", \"n_head\": 0}")
                           << "s.yaml:2:31: error MW1352: config.json: \"n_head\"";
}

void TestTransformerStudy::configProblems()
{
    QFETCH(QByteArray, json);
    QFETCH(QString, expected);
    const QTemporaryDir folder;
    const std::filesystem::path path = folder.path().toStdString();
    QVERIFY(writeFileAtomically(path / "config.json", json.toStdString()));
    const auto study = readStudy(
        "meshwright: 1\nmodel: {transformer: {config: config.json}}\nsequence: 10\nbatch: 4\n", (path / "s.yaml").string());
    QVERIFY(!study);
    QVERIFY2(described(study).contains(expected), qPrintable(described(study)));
    QCOMPARE(study.error().size(), std::size_t{1});
}

/// A configuration of several towers is read, and the study says what of it is left out.
void TestTransformerStudy::readInPart()
{
    const QTemporaryDir folder;
    const std::filesystem::path path = folder.path().toStdString();
    QVERIFY(writeFileAtomically(path / "config.json",
        R"({"model_type": "sees", "vision_config": {}, "text_config": {"num_hidden_layers": 2, "hidden_size": 8,
            "num_attention_heads": 2, "vocab_size": 16, "strange": 5}})"));
    const Problems found = examineStudy(
        "meshwright: 1\nmodel: {transformer: {config: config.json}}\nsequence: 8\nbatch: 4\n", (path / "s.yaml").string());
    QCOMPARE(found.size(), std::size_t{2});
    for (const Problem& problem : found) {
        QCOMPARE(problem.id, std::string("MW1357"));
        QCOMPARE(problem.severity, Severity::Note);
    }
    QVERIFY(found.back().message.ends_with("ignored: strange"));
}

void TestTransformerStudy::writtenAndRead_data()
{
    QTest::addColumn<QString>("text");
    QTest::newRow("inline") << kGood;
    QTest::newRow("shipped") << QString(
        "meshwright: 1\nmodel: {transformer: {config: mixtral_8x7b, capacity_factor: 1.25, dispatch_groups: 2, unroll: true}}\n"
        "sequence: 4096\nbatch: 4\nrecompute: dots_with_no_batch_dims_saveable\n"
        "dtype: {parameters: f32, matmul: bf16, activations: bf16}\n");
    QTest::newRow("gemma") << QString("meshwright: 1\nmodel: {transformer: {config: gemma_7b, window: 8, window_layers: 3}}\n"
                                      "sequence: 128\nbatch: 4\nrecompute: selective\n");
    QTest::newRow("choices") << QString(
        "meshwright: 1\nmodel: {transformer: {config: gpt2, attention: plain, loss: {cross_entropy: "
        "{chunks: 8}}}}\nsequence: 1024\nbatch: 4\n");
    QTest::newRow("kernels of the loss") << QString(
        "meshwright: 1\nmodel: {transformer: {config: gpt2, loss: {cross_entropy: {chunks: 8, kernels: in_place}}}}\n"
        "sequence: 1024\nbatch: 4\n");
    QTest::newRow("heads exchanged") << QString(
        "meshwright: 1\nmodel: {transformer: {config: gpt2, attention: {context: ulysses}}}\nsequence: 1024\nbatch: 4\n");
    QTest::newRow("ring") << QString(
        "meshwright: 1\nmodel: {transformer: {config: gpt2, attention: {context: ring, zigzag: 8}}}\n"
        "sequence: 1024\nbatch: 4\n");
    QTest::newRow("kept by name") << QString("meshwright: 1\nmodel: {transformer: {config: gpt2}}\nsequence: 1024\nbatch: 4\n"
                                             "recompute: {keep: [attention.mixed, ffn.hidden]}\n");
    QTest::newRow("offloaded by name") << QString(
        "meshwright: 1\nmodel: {transformer: {config: gpt2}}\nsequence: 1024\nbatch: 4\n"
        "recompute: {keep: [attention.mixed], offload: [input, ffn.hidden]}\n");
    QTest::newRow("offloaded only") << QString("meshwright: 1\nmodel: {transformer: {config: gpt2}}\nsequence: 1024\nbatch: 4\n"
                                               "recompute: {offload: [input]}\n");
    QTest::newRow("a policy of MaxText") << QString("meshwright: 1\nmodel: {transformer: {config: gpt2}}\nsequence: 1024\n"
                                                    "batch: 4\nrecompute: save_dot_with_context_except_mlp\n");
    QTest::newRow("offloaded products") << QString(
        "meshwright: 1\nmodel: {transformer: {config: gpt2}}\nsequence: 1024\nbatch: 4\n"
        "recompute: offload_dot_with_no_batch_dims\n");
    QTest::newRow("gpt2") << QString("meshwright: 1\nmodel: {transformer: {config: gpt2}}\nsequence: 1024\nbatch: 4\n");
    QTest::newRow("layers of several kinds")
        << QString("meshwright: 1\nmodel: {transformer: {layers: 6, hidden: 8, heads: 2, vocabulary: 16, state_heads: 4, "
                   "state_key_heads: 2, "
                   "state_key_dim: 3, state_value_dim: 5, kinds: [{mixer: delta_rule, output_gate: true}, {ffn: 0, head_dim: 6}, "
                   "{mixer: none, "
                   "experts: 2, experts_per_token: 1, expert_ffn: 4, ffn: 0}], pattern: [0, 1, 2]}}\nsequence: 8\nbatch: 4\n");
    QTest::newRow("learned positions beside kinds")
        << QString("meshwright: 1\nmodel: {transformer: {layers: 2, hidden: 8, heads: 2, vocabulary: 16, position: learned, "
                   "kinds: [{ffn: 16}, {}], pattern: [0, 1]}}\nsequence: 8\nbatch: 4\n");
}

void TestTransformerStudy::writtenAndRead()
{
    QFETCH(QString, text);
    const Study study = studyOf(text);
    const std::string written = writeStudy(study);
    const auto again = readStudy(written, "again.yaml");
    QVERIFY2(again, qPrintable(described(again) + "\n" + tests::text(written)));
    QVERIFY2(*again == study, written.c_str());
}

void TestTransformerStudy::arrays()
{
    const std::vector<StudyArray> arrays = studyArrays(studyOf(kGood));
    const StudyArray* query = findArray(arrays, "layers.attention.q.w");
    QVERIFY(query != nullptr);
    QCOMPARE(query->shape, (Shape{2, 32, 4, 8}));
    QCOMPARE(query->meaning, (std::vector<DimMeaning>{DimRole::Layers, DimRole::Hidden, DimRole::Heads, DimRole::HeadSize}));
    QCOMPARE(findArray(arrays, "x")->meaning, (std::vector<DimMeaning>{DimRole::Batch, DimRole::Sequence}));
    QCOMPARE(findArray(arrays, "y")->shape, (Shape{96}));
    QVERIFY(findArray(arrays, "act.layers") != nullptr && findArray(arrays, "grad.embedding.w") != nullptr);
    QVERIFY(globCatches("*.w", *query));
}

void TestTransformerStudy::arraysAreTheProgram_data()
{
    writtenAndRead_data();
}

// Every array that a study may name is in the program, with that shape.
void TestTransformerStudy::arraysAreTheProgram()
{
    QFETCH(QString, text);
    Study study = studyOf(text);
    study.sharding = {};
    study.mesh = {{"data", 1}};
    study.optimizer = AdamOptimizer{};
    const Program program = valueOf(buildTransformerTraining(*study.transformer(), valueOf(trainingOptions(study))));
    const Function& step = *program.find("step");
    for (const StudyArray& array : studyArrays(study)) {
        const auto value = step.findValue(array.name);
        QVERIFY2(value, array.name.c_str());
        QCOMPARE(step[*value].type.shape, array.shape);
    }
}

void TestTransformerStudy::problems_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("expected");

    QTest::newRow("good") << kGood << "";
    QTest::newRow("no file") << changed("layers: 2, hidden: 32, heads: 4, vocabulary: 32", "config: absent.json")
                             << "MW1001 4:31";
    QTest::newRow("nothing said") << changed("{layers: 2, hidden: 32, heads: 4, vocabulary: 32, predict: last_token}", "")
                                  << "MW1421 4:8";
    QTest::newRow("missing sizes") << changed("hidden: 32, heads: 4, ", "") << "MW1421 4:22 MW1421 4:22";
    QTest::newRow("unknown key") << changed("heads: 4", "heads: 4, heds: 5") << "MW1420 4:56";
    QTest::newRow("wrong kind") << changed("heads: 4", "heads: four") << "MW1422 4:53";
    QTest::newRow("unknown word") << changed("last_token", "next_token") << "MW1423 4:81";
    QTest::newRow("no heads") << changed("heads: 4", "heads: 0, kv_heads: 1, head_dim: 8") << "MW1352 4:53";
    QTest::newRow("uneven heads") << changed("heads: 4", "heads: 4, kv_heads: 3") << "MW1353 4:66";
    QTest::newRow("experts") << changed("heads: 4", "heads: 4, experts: 2, experts_per_token: 3") << "MW1353 4:87";
    QTest::newRow("capacity") << changed("heads: 4", "heads: 4, capacity_factor: -1") << "MW1352 4:73";
    QTest::newRow("groups that do not divide") << changed("heads: 4", "heads: 4, dispatch_groups: 5") << "MW1352 4:73";
    QTest::newRow("attention") << changed("heads: 4", "heads: 4, attention: flash") << "MW1423 4:67";
    QTest::newRow("context") << changed("heads: 4", "heads: 4, attention: {context: round}") << "MW1423 4:77";
    QTest::newRow("no context") << changed("heads: 4", "heads: 4, attention: {zigzag: 2}") << "MW1421 4:67";
    QTest::newRow("zigzag that does not divide")
        << changed("heads: 4", "heads: 4, attention: {context: ring, zigzag: 5}") << "MW1352 4:91";
    QTest::newRow("zigzag below zero") << changed("heads: 4", "heads: 4, attention: {context: ring, zigzag: -1}")
                                       << "MW1352 4:91";
    QTest::newRow("chunks") << changed("heads: 4", "heads: 4, loss: {cross_entropy: {chunks: 5}}") << "MW1352 4:87";
    QTest::newRow("chunks of what") << changed("heads: 4", "heads: 4, loss: {chunks: 5}") << "MW1421 4:62 MW1420 4:63";
    QTest::newRow("unknown kernels") << changed("heads: 4", "heads: 4, loss: {cross_entropy: {kernels: one}}") << "MW1423 4:88";
    QTest::newRow("latent attention") << changed("heads: 4", "heads: 4, kv_rank: 3, latent_rotary_dim: 2") << "";
    QTest::newRow("8-bit products") << kGood + "dtype: {parameters: f32, matmul: bf16, fp8: blockwise}\n"
                                    << "";
    QTest::newRow("unknown recipe") << kGood + "dtype: {parameters: f32, matmul: bf16, fp8: columnwise}\n"
                                    << "MW1423 11:45";
    QTest::newRow("no sequence") << changed("sequence: 64\n", "") << "MW1421 1:1";
    QTest::newRow("sequence of zero") << changed("sequence: 64", "sequence: 0") << "MW1352 5:11 MW1436 5:11";
    QTest::newRow("sequence and digits") << changed("sequence: 64", "sequence: 32") << "MW1436 5:11";
    QTest::newRow("vocabulary and digits") << changed("vocabulary: 32", "vocabulary: 20") << "MW1436 4:68";
    QTest::newRow("positions") << changed("heads: 4", "heads: 4, position: learned, max_positions: 32") << "MW1355 5:11";
    QTest::newRow("too large") << changed("batch: 96", "batch: 1000000000000")
                                      .replace("digits", "random")
                                      .replace("x: P('data', None)\n", "y: P()\n")
                                      .replace("hidden: 32", "hidden: 1024")
                               << "MW1435 6:8";
    QTest::newRow("recompute") << changed("sequence: 64", "sequence: 64\nrecompute: all") << "MW1423 6:12";
    QTest::newRow("nothing to keep") << changed("sequence: 64", "sequence: 64\nrecompute: {keep: attention.q}") << "MW1422 6:19";
    QTest::newRow("a value that is not there")
        << changed("sequence: 64", "sequence: 64\nrecompute: {keep: [attention.q, attention.w]}") << "MW1423 6:33";
    QTest::newRow("a value to offload that is not there")
        << changed("sequence: 64", "sequence: 64\nrecompute: {offload: [input, output]}") << "MW1423 6:30";
    QTest::newRow("an input is kept anyway")
        << changed("sequence: 64", "sequence: 64\nrecompute: {keep: [input]}") << "MW1423 6:20";
    QTest::newRow("a value in two memories")
        << changed("sequence: 64", "sequence: 64\nrecompute: {keep: [ffn], offload: [ffn]}") << "MW1493 6:35";
    QTest::newRow("nothing that can be offloaded")
        << changed("sequence: 64", "sequence: 64\nrecompute: {offload: ffn}") << "MW1422 6:22";
    QTest::newRow("unknown array") << changed("layers.attention: {q.w", "layers.attention: {qq.w") << "MW1429 9:28";
    QTest::newRow("indivisible heads") << changed("heads: 4", "heads: 1") << "MW1104 9:27";
    QTest::newRow("rank") << changed("P(None, None, 'model', None)", "P(None, None, 'model', None, None)") << "MW1101 9:27";
    QTest::newRow("an MLP has no sequence") << QString(
        "meshwright: 1\nmodel: {mlp: {layers: [3, 2]}}\nbatch: 2\nsequence: 3\nrecompute: full\n"
        "dtype: {activations: bf16}\n") << "MW1490 4:11 MW1490 5:12 MW1490 6:22";
}

void TestTransformerStudy::problems()
{
    QFETCH(QString, text);
    QFETCH(QString, expected);
    const Problems found = examineStudy(text.toStdString(), "study.yaml");
    QVERIFY2(
        listed(found) == expected, qPrintable(listed(found) + "\n" + (found.empty() ? QString() : tests::text(describe(found)))));
}

void TestTransformerStudy::stagesHaveShares_data()
{
    QTest::addColumn<QString>("pipeline");
    QTest::addColumn<QString>("array");
    QTest::addColumn<qint64>("stages");
    QTest::addColumn<qint64>("rows"); // of seven layers, or of the array, that a device keeps

    QTest::newRow("no stages") << "{}"
                               << "layers.ffn.up.w" << qint64{1} << qint64{7};
    QTest::newRow("microbatches alone") << "{microbatches: 4}"
                                        << "layers.ffn.up.w" << qint64{1} << qint64{7};
    const QString two = "{axis: data, stages: 2, microbatches: 4}";
    QTest::newRow("the first stage has one more") << two << "layers.ffn.up.w" << qint64{2} << qint64{4};
    QTest::newRow("states") << two << "opt.m.layers.ffn.up.w" << qint64{2} << qint64{4};
    QTest::newRow("as the study says") << "{axis: data, stages: 2, microbatches: 4, layers: [2, 5]}"
                                       << "grad.layers.ffn.up.w" << qint64{2} << qint64{5};
    QTest::newRow("chunks") << "{axis: data, stages: 2, chunks: 2, microbatches: 4, schedule: interleaved}"
                            << "new.layers.ffn.up.w" << qint64{2} << qint64{4};
    QTest::newRow("of one stage") << two << "embedding.w" << qint64{2} << qint64{7};
    QTest::newRow("activations of another shape") << two << "act.layers.ffn" << qint64{2} << qint64{7};
}

void TestTransformerStudy::stagesHaveShares()
{
    QFETCH(const QString, pipeline);
    QFETCH(const QString, array);
    QFETCH(const qint64, stages);
    QFETCH(const qint64, rows);
    const QString text = changed("layers: 2", "layers: 7");
    const Study study = readStudyInPart((text + "pipeline: " + pipeline + "\n").toStdString(), "study.yaml").study;
    const StageShare share = stageShareOf(study, array.toStdString(), {7, 32, 128});
    QCOMPARE(qint64{share.stages}, stages);
    QCOMPARE(share.pieceOf({7, 32, 64}), (Shape{rows, 32, 64}));
    QCOMPARE(stageShareOf(study, "opt.step", {}).stages, std::int64_t{1});
}

// 96 rows in 4 microbatches: a device that has 48 of them sees 12 at a time.
void TestTransformerStudy::microbatchesPassOneByOne()
{
    const auto studyOf = [](const QString& pipeline) {
        return readStudyInPart((changed("layers: 2", "layers: 7") + "pipeline: " + pipeline + "\n").toStdString(), "study.yaml")
            .study;
    };
    const Study stages = studyOf("{axis: data, stages: 2, microbatches: 4}");
    const StageShare folded = stageShareOf(stages, "act.layers.ffn", {96, 32, 128});
    QCOMPARE(folded.pieceOf({48, 32, 128}), (Shape{12, 32, 128}));
    QVERIFY(folded.isOfEachStage);
    const StageShare ends = stageShareOf(stages, "grad.act.embedding", {96, 32, 128});
    QCOMPARE(ends.pieceOf({48, 32, 128}), (Shape{12, 32, 128}));
    QVERIFY(!ends.isOfEachStage);
    QCOMPARE(stageShareOf(stages, "x", {96, 32}).pieceOf({96, 32}), (Shape{24, 32}));
    QCOMPARE(stageShareOf(stages, "layers.ffn.up.w", {96, 32}).microbatches, std::int64_t{1});
    QCOMPARE(stageShareOf(studyOf("{microbatches: 4}"), "y", {96, 32}).pieceOf({48, 32}), (Shape{12, 32}));
    QCOMPARE(stageShareOf(studyOf("{}"), "y", {96, 32}).pieceOf({48, 32}), (Shape{48, 32}));
}

// Problems speak of the study's keys, and of what a dimension means.
void TestTransformerStudy::words()
{
    const auto wordsOf
        = [](const QString& text) { return tests::text(describe(examineStudy(text.toStdString(), "study.yaml"))); };
    QString words = wordsOf(changed("heads: 4", "heads: 0, kv_heads: 0"));
    QVERIFY2(words.contains("kv_heads must be 1 to 2^40, got: 0"), qPrintable(words));
    words = wordsOf(changed("heads: 4", "heads: 1"));
    QVERIFY2(words.contains("heads"), qPrintable(words));
    words = wordsOf(changed("layers.attention: {q.w", "layers.atention: {q.w"));
    QVERIFY2(words.contains("did you mean \"layers.attention.q.w\"?"), qPrintable(words));
}

void TestTransformerStudy::fixes_data()
{
    QTest::addColumn<QString>("text");
    QTest::newRow("sequence") << changed("sequence: 64", "sequence: 32");
    QTest::newRow("vocabulary") << changed("vocabulary: 32", "vocabulary: 20");
    QTest::newRow("heads") << changed("heads: 4", "heads: 1");
    QTest::newRow("batch") << changed("batch: 96", "batch: 99");
    QTest::newRow("an MLP") << QString("meshwright: 1\nmodel: {mlp: {layers: [3, 2]}}\nbatch: 2\nsequence: 3\n");
}

// With the settings that a problem names it is gone.
void TestTransformerStudy::fixes()
{
    QFETCH(QString, text);
    const Problems found = examineStudy(text.toStdString(), "study.yaml");
    QVERIFY(!found.empty());
    std::vector<std::string> settings;
    for (const Problem& problem : found)
        settings.insert(settings.end(), problem.fixSettings.begin(), problem.fixSettings.end());
    const Problems left = examineStudy(text.toStdString(), "study.yaml", settings);
    QVERIFY2(left.empty(), left.empty() ? "" : describe(left).c_str());
}

MESHWRIGHT_TEST(TestTransformerStudy)

} // namespace tst_transformer_study

#include "tst_transformer_study.moc"
