// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/transformer_config.h"
#include "core/support/file.h"
#include "core/support/resources.h"

#include "tests/test_class.h"
#include "tests/values.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>

namespace tst_transformer_config {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

using Json = nlohmann::json;

TransformerConfig shipped(const std::string& name)
{
    const auto path = findResource("models/" + name + ".json");
    if (!path)
        return {};
    return valueOf(readTransformerConfig(valueOf(readFile(path->string())), path->string()));
}

TransformerConfig configOf(const char* json)
{
    return valueOf(readTransformerConfig(json, "config.json"));
}

/// The model of a record of published measurements (kind training_step), whose fields have names of their own.
TransformerConfig recorded(const Json& m)
{
    const auto size = [&](const char* name) { return m.contains(name) && m[name].is_number() ? m[name].get<std::int64_t>() : 0; };
    TransformerConfig c;
    c.position = PositionKind::None; // the records do not say, and these counts do not ask
    c.layers = size("layers");
    c.hidden = size("hidden");
    c.heads = size("heads");
    c.keyValueHeads = size("kv_heads");
    c.headDim = size("head_dim");
    c.ffn = size("ffn");
    c.gatedFfn = m.value("gated_mlp", false);
    c.vocabulary = size("vocab");
    c.tiedEmbeddings = m.value("tied_embeddings", false);
    c.slidingWindow = size("window");
    c.slidingWindowLayers = size("window_layers");
    c.experts = size("experts");
    c.expertsPerToken = size("experts_per_token");
    c.expertFfn = size("moe_ffn");
    if (c.experts > 0) {
        c.denseLayers = c.layers - size("moe_layers");
        c.sharedExperts
            = size("shared_ffn") > 0 ? size("shared_experts") * size("shared_ffn") / c.expertFfn : size("shared_experts");
    }
    c.queryRank = size("q_lora_rank");
    c.keyValueRank = size("kv_lora_rank");
    c.latentRotaryDim = size("qk_rope_head_dim");
    c.valueHeadDim = size("v_head_dim");
    return c;
}

/// Equal as far as a file prints it, to six figures.
bool equalToSix(double a, double b)
{
    return std::abs(a - b) <= 0.5000001e-5 * std::pow(10.0, std::floor(std::log10(std::abs(b))));
}

} // namespace

class TestTransformerConfig : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void published_data();
    void published();
    void parts();
    void flops_data();
    void flops();
    void records();
    void byFields_data();
    void byFields();
    void kinds_data();
    void kinds();
    void maxText_data();
    void maxText();
    void maxTextLines();
    void numbersCount();
    void numbersOfKindsCount();
    void folder();
    void defaults_data();
    void defaults();
    void windows_data();
    void windows();
    void problems_data();
    void problems();
    void brokenOff();
    void sizeProblems_data();
    void sizeProblems();
};

/// Model files of MaxText say the same as the models' config.json.
void TestTransformerConfig::maxText_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("name"); // of the shipped config.json
    QTest::newRow("dense") << QByteArray("# a model\n"
                                         "base_emb_dim: 8192\nbase_num_query_heads: 64 # of queries\nbase_num_kv_heads: 8\n"
                                         "base_num_decoder_layers: 80\nbase_mlp_dim: 28_672\nhead_dim: 128\n"
                                         "mlp_activations: [\"silu\", \"linear\"]\nvocab_size: 128256\n"
                                         "logits_via_embedding: False\nnormalization_layer_epsilon: 1.0e-5\n"
                                         "rope_max_timescale: 500_000\ndecoder_block: \"llama2\" # as before\n"
                                         "num_experts: 1\nattention_type: 'global'\nq_lora_rank: 0\nkv_lora_rank: 512\n"
                                         "base_moe_mlp_dim: -1\nmax_position_embeddings: 8192\n")
                           << "llama3_70b";
    QTest::newRow("experts") << QByteArray("base_emb_dim: 4096\nbase_num_query_heads: 32\nbase_num_kv_heads: 8\n"
                                           "base_num_decoder_layers: 32\nbase_mlp_dim: 14336\nhead_dim: 128\n"
                                           "mlp_activations: [\"silu\",\"linear\"]\nvocab_size: 32000\nnum_experts: 8\n"
                                           "num_experts_per_tok: 2\nrope_max_timescale: 1_000_000\n"
                                           "max_position_embeddings: 32768\ndecoder_block: \"mixtral\"\n")
                             << "mixtral_8x7b";
    QTest::newRow("latent attention") << QByteArray(
        "base_emb_dim: 7168\nbase_num_query_heads: 128\nbase_num_kv_heads: 128\nbase_mlp_dim: 18432\n"
        "base_moe_mlp_dim: 2048\nbase_num_decoder_layers: 61\nfirst_num_dense_layers: 3\n"
        "mlp_activations: [\"silu\",\"linear\"]\nvocab_size: 129280\nnormalization_layer_epsilon: 1.0e-6\n"
        "num_experts: 256\nnum_experts_per_tok: 8\nshared_experts: 1\nattention_type: \"mla\"\nq_lora_rank: 1536\n"
        "kv_lora_rank: 512\nqk_nope_head_dim: 128\nqk_rope_head_dim: 64\nv_head_dim: 128\nrope_max_timescale: 10_000\n"
        "max_position_embeddings: 163840\n")
                                      << "deepseek_v3";
}

void TestTransformerConfig::maxText()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, name);
    const auto read = readTransformerConfig(text.toStdString(), "model.yml");
    QVERIFY2(read, read ? "" : describe(read.error()).c_str());
    const TransformerConfig json = shipped(name.toStdString());
    const ParameterCounts counts = parameterCounts(*read);
    QCOMPARE(counts.total, parameterCounts(json).total);
    QCOMPARE(counts.active, parameterCounts(json).active);
    QCOMPARE(modelFlopsPerToken(*read, 4096, AttentionCount::Causal), modelFlopsPerToken(json, 4096, AttentionCount::Causal));
    QCOMPARE(read->rotaryBase, json.rotaryBase);
    QCOMPARE(read->keyValueHeads, json.keyValueHeads);
    QCOMPARE(read->gatedFfn, json.gatedFfn);
}

/// What lines mean: comments, quotes, and what is left out.
void TestTransformerConfig::maxTextLines()
{
    const std::string sizes = "base_num_query_heads: 4\nbase_num_kv_heads: 4\nbase_num_decoder_layers: 2\nhead_dim: 16\n"
                              "base_mlp_dim: 256\nvocab_size: 100\n";
    std::vector<std::string> notes;
    const auto plain = readTransformerConfig(
        "run_name: ''\nbase_emb_dim: 64 # wide\nmlp_activations: ['gelu']\nsteps: 150_001\nlayers:\n  base_mlp_dim: 1\n" + sizes,
        "model.yml", &notes);
    QVERIFY2(plain, plain ? "" : describe(plain.error()).c_str());
    QCOMPARE(plain->hidden, std::int64_t{64});
    QCOMPARE(plain->ffn, std::int64_t{256}); // not the indented one
    QVERIFY(!plain->gatedFfn && plain->activation == TransformerActivation::GeluTanh);
    QCOMPARE(QString::fromStdString(notes.front()), QString("ignored: steps"));
    QVERIFY(readTransformerConfig("base_emb_dim: 32\nbase_emb_dim: 64\n" + sizes, "model.yml", &notes));
    QCOMPARE(QString::fromStdString(notes.front()), QString("\"base_emb_dim\" is given twice: the last one counts"));
    const auto missing = readTransformerConfig("base_emb_dim: 64\n", "model.yml");
    QVERIFY(!missing);
    QCOMPARE(missing.error().front().id, std::string("MW1352"));
    const auto wrong = readTransformerConfig("base_emb_dim: wide\n" + sizes, "model.yml");
    QVERIFY(!wrong);
    QCOMPARE(wrong.error().front().id, std::string("MW1352"));
}

// Parameters as the models' repositories count them (sum of the elements of all tensors in the checkpoint).
void TestTransformerConfig::published_data()
{
    QTest::addColumn<TransformerConfig>("config");
    QTest::addColumn<qint64>("total");

    QTest::newRow("GPT-2") << shipped("gpt2") << qint64{124439808};
    QTest::newRow("GPT-2 XL") << configOf(R"({"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25})")
                              << qint64{1557611200};
    QTest::newRow("GPT-NeoX-20B") << shipped("gpt_neox_20b") << qint64{20554567680};
    QTest::newRow("Llama 2 7B") << shipped("llama2_7b") << qint64{6738415616};
    QTest::newRow("Llama 2 70B") << shipped("llama2_70b") << qint64{68976648192};
    QTest::newRow("Llama 3 8B") << shipped("llama3_8b") << qint64{8030261248};
    QTest::newRow("Llama 3 70B") << shipped("llama3_70b") << qint64{70553706496};
    QTest::newRow("Llama 3.1 405B") << shipped("llama3_405b") << qint64{405853388800};
    QTest::newRow("Mistral 7B") << shipped("mistral_7b") << qint64{7241732096};
    QTest::newRow("Qwen2 7B") << shipped("qwen2_7b") << qint64{7615616512};
    QTest::newRow("Gemma 7B") << shipped("gemma_7b") << qint64{8537680896};
    QTest::newRow("Mixtral 8x7B") << shipped("mixtral_8x7b") << qint64{46702792704};
    QTest::newRow("DeepSeek-V2-Lite") << shipped("deepseek_v2_lite") << qint64{15706484224};
    QTest::newRow("DeepSeek-V2") << shipped("deepseek_v2") << qint64{235741434880};
    // Without the layers that predict further tokens, and the 256 numbers a layer that balance the experts.
    QTest::newRow("DeepSeek-V3") << shipped("deepseek_v3") << qint64{671026404352};
    QTest::newRow("Gemma 3 27B: norms behind the blocks, and of queries and keys")
        << shipped("gemma3_27b") << qint64{27009002240};
    QTest::newRow("Gemma 2 2B") << configOf(R"({"model_type": "gemma2"})") << qint64{2614341888};
    QTest::newRow("Qwen3 8B") << configOf(R"({"model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 4096,
        "intermediate_size": 12288, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936})")
                              << qint64{8190735360};
    QTest::newRow("Qwen2 0.5B, tied") << configOf(R"({"model_type": "qwen2", "num_hidden_layers": 24, "hidden_size": 896,
        "intermediate_size": 4864, "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": true})")
                                      << qint64{494032768};
}

void TestTransformerConfig::published()
{
    QFETCH(TransformerConfig, config);
    QFETCH(qint64, total);
    const ParameterCounts counts = parameterCounts(config);
    QCOMPARE(qint64{counts.total}, total);
    if (config.experts == 0)
        QCOMPARE(counts.active, counts.total);
    else
        QVERIFY(counts.active < counts.total);
    // The parts add up to the whole.
    const std::int64_t dense = config.experts == 0 ? config.layers : config.denseLayers;
    const std::int64_t parts = counts.embedding + counts.head + counts.finalNorm
        + config.layers * (counts.attentionPerLayer + counts.normsPerLayer) + dense * counts.ffnPerLayer
        + (config.layers - dense) * counts.expertsPerLayer;
    QCOMPARE(parts, counts.total);
}

// GPT-2, by hand: h = 768, 12 h^2 + 13 h a layer of which 4 h are norms.
void TestTransformerConfig::parts()
{
    const ParameterCounts counts = parameterCounts(shipped("gpt2"));
    QCOMPARE(counts.embedding, std::int64_t{(50257 + 1024) * 768});
    QCOMPARE(counts.head, std::int64_t{0});
    QCOMPARE(counts.attentionPerLayer, std::int64_t{4 * 768 * 768 + 4 * 768});
    QCOMPARE(counts.ffnPerLayer, std::int64_t{8 * 768 * 768 + 5 * 768});
    QCOMPARE(counts.normsPerLayer, std::int64_t{4 * 768});
    QCOMPARE(counts.finalNorm, std::int64_t{2 * 768});
    QCOMPARE(counts.expertsPerLayer, std::int64_t{0});
    QCOMPARE(counts.matrices, std::int64_t{50257 * 768 + 12 * 12 * 768 * 768});
    // 12.9 billion of Mixtral's are active: two of eight experts
    QCOMPARE(parameterCounts(shipped("mixtral_8x7b")).active, std::int64_t{12879925248});
    // As their papers say: 21 billion of DeepSeek-V2, 37 of V3 (36.6 and the table of tokens), 2.4 of V2-Lite without that table.
    QCOMPARE(std::round(static_cast<double>(parameterCounts(shipped("deepseek_v2")).active) / 1e9), 21.0);
    const ParameterCounts v3 = parameterCounts(shipped("deepseek_v3"));
    QCOMPARE(std::round(static_cast<double>(v3.active - v3.embedding) / 1e9), 37.0);
    const ParameterCounts lite = parameterCounts(shipped("deepseek_v2_lite"));
    QVERIFY(std::abs(static_cast<double>(lite.active - lite.embedding) / 1e9 - 2.4) < 0.06);
}

// FLOPs of a token as records of the open-source projects' runs have them.
void TestTransformerConfig::flops_data()
{
    QTest::addColumn<TransformerConfig>("config");
    QTest::addColumn<qint64>("sequence");
    QTest::addColumn<double>("full");
    QTest::addColumn<double>("causal"); // printed with six figures

    QTest::newRow("Llama 3.1 405B") << shipped("llama3_405b") << qint64{8192} << 2625424588800.0 << 2523960000000.0;
    QTest::newRow("Llama 3 8B") << shipped("llama3_8b") << qint64{8192} << 57912852480.0 << 51470400000.0;
    TransformerConfig mixtral = shipped("mixtral_8x7b");
    QTest::newRow("Mixtral 8x7B") << mixtral << qint64{4096} << 82933972992.0 << 79712700000.0;
    TransformerConfig oss; // windows of 128 keys in half the layers
    oss.layers = 36;
    oss.hidden = oss.ffn = oss.expertFfn = 2880;
    oss.heads = oss.headDim = 64;
    oss.keyValueHeads = 8;
    oss.gatedFfn = true;
    oss.vocabulary = 201088;
    oss.experts = 128;
    oss.expertsPerToken = 4;
    oss.slidingWindow = 128;
    oss.slidingWindowLayers = 18;
    QTest::newRow("GPT-OSS 120B") << oss << qint64{4096} << 34523725824.0 << 32711800000.0;
    TransformerConfig deepseek;
    deepseek.layers = 61;
    deepseek.hidden = 7168;
    deepseek.heads = deepseek.keyValueHeads = deepseek.headDim = deepseek.valueHeadDim = 128;
    deepseek.ffn = 18432;
    deepseek.gatedFfn = true;
    deepseek.vocabulary = 129280;
    deepseek.experts = 256;
    deepseek.expertsPerToken = 8;
    deepseek.expertFfn = 2048;
    deepseek.sharedExperts = 1;
    deepseek.denseLayers = 3;
    deepseek.queryRank = 1536;
    deepseek.keyValueRank = 512;
    deepseek.latentRotaryDim = 64;
    QTest::newRow("DeepSeek-V3") << deepseek << qint64{4096} << 281152000000.0 << 250450000000.0;
}

void TestTransformerConfig::flops()
{
    QFETCH(TransformerConfig, config);
    QFETCH(qint64, sequence);
    QFETCH(double, full);
    QFETCH(double, causal);
    QVERIFY(equalToSix(modelFlopsPerToken(config, sequence, AttentionCount::Full), full));
    QVERIFY(equalToSix(modelFlopsPerToken(config, sequence, AttentionCount::Causal), causal));
    const ParameterCounts counts = parameterCounts(config);
    QCOMPARE(modelFlopsPerToken(config, sequence, AttentionCount::None),
        6.0 * static_cast<double>(counts.activeMatrices - counts.head)); // one table is only looked up in
}

// Every record in the folder that MESHWRIGHT_PUBLISHED names: parameters in matrices, FLOPs of a token.
void TestTransformerConfig::records()
{
    const QByteArray folder = qgetenv("MESHWRIGHT_PUBLISHED");
    if (folder.isEmpty())
        QSKIP("MESHWRIGHT_PUBLISHED names no folder of records");
    int judged = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.toStdString())) {
        if (entry.path().extension() != ".json")
            continue;
        const Json records = Json::parse(valueOf(readFile(entry.path().string())));
        for (const Json& record : records) {
            if (!record.is_object() || !record.contains("derived") || !record["derived"].contains("params_computed"))
                continue;
            const TransformerConfig config = recorded(record["model"]);
            const std::int64_t sequence = record["model"]["seq"];
            const Json& derived = record["derived"];
            const std::string id = record["id"];
            QVERIFY2(transformerProblems(config).empty(), id.c_str());
            QVERIFY2(parameterCounts(config).matrices == derived["params_computed"].get<std::int64_t>(), id.c_str());
            const auto& full = derived["model_flops_per_token_full_attention"];
            const double ours = modelFlopsPerToken(config, sequence, AttentionCount::Full);
            QVERIFY2(full.is_number_integer() ? ours == full.get<double>() : equalToSix(ours, full.get<double>()), id.c_str());
            QVERIFY2(equalToSix(modelFlopsPerToken(config, sequence, AttentionCount::Causal),
                         derived["model_flops_per_token_causal_attention"].get<double>()),
                id.c_str());
            ++judged;
        }
    }
    qInfo("%d records agree", judged);
    QVERIFY(judged > 0);
}

// Families that are not known, by their fields alone: totals of the models' own cards, in units of 10^9.
void TestTransformerConfig::byFields_data()
{
    QTest::addColumn<QByteArray>("json");
    QTest::addColumn<double>("billions");
    QTest::addColumn<double>("active");
    QTest::addColumn<QString>("note");
    const auto row = [](const char* name, const char* json, double billions, double active, const char* note) {
        QTest::newRow(name) << QByteArray(json) << billions << active << QString(note);
    };
    row("qwen3 30B-A3B", R"({"model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32,
        "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128,
        "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 151936, "rms_norm_eps": 1e-6})",
        30.5, 3.3, "");
    row("qwen3 235B-A22B, in a part of its own",
        R"({"model_type": "qwen3_vl_moe", "vision_config": {"depth": 27}, "text_config": {
        "model_type": "qwen3_vl_moe_text", "num_hidden_layers": 94, "hidden_size": 4096, "num_attention_heads": 64,
        "num_key_value_heads": 4, "head_dim": 128, "moe_intermediate_size": 1536, "num_experts": 128, "num_experts_per_tok": 8,
        "vocab_size": 151936}})",
        235.0, 22.0, "the language model alone is read");
    row("gpt-oss-120b", R"({"model_type": "gpt_oss", "num_hidden_layers": 36, "hidden_size": 2880, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "num_local_experts": 128, "num_experts_per_tok": 4,
        "attention_bias": true, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"], "vocab_size": 201088,
        "something_new": 7})",
        116.8, 0.0, "ignored: something_new");
    row("minimax m2", R"({"model_type": "minimax_m2", "num_hidden_layers": 62, "hidden_size": 3072, "num_attention_heads": 48,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 1536, "num_local_experts": 256, "num_experts_per_tok": 8,
        "use_qk_norm": true, "rotary_dim": 64, "vocab_size": 200064})",
        230.0, 0.0, "");
    row("kimi k2", R"({"model_type": "kimi_k2", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 64,
        "num_key_value_heads": 64, "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 384,
        "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1, "kv_lora_rank": 512, "q_lora_rank": 1536,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 163840, "rope_scaling": {"factor": 32.0}})",
        1026.0, 32.9, "");
    row("llama 4 scout", R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "num_hidden_layers": 48,
        "hidden_size": 5120, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192,
        "intermediate_size_mlp": 16384, "num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1,
        "use_qk_norm": true, "vocab_size": 202048}})",
        107.8, 17.2, "the language model alone is read");
    // Layers of several kinds.
    const char* linear = R"({"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text", "num_hidden_layers": 64,
        "hidden_size": 5120, "intermediate_size": 17408, "num_attention_heads": 24, "num_key_value_heads": 4, "head_dim": 256,
        "attn_output_gate": true, "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"],
        "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 48,
        "linear_value_head_dim": 128, "vocab_size": 248320}})";
    row("qwen3.5 27B: delta rule", linear, 27.0, 27.0, "the language model alone is read");
    const char* step = R"({"num_hidden_layers": 60, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 2,
        "head_dim": 256, "attn_output_gate": true, "full_attention_interval": 4, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 64, "linear_value_head_dim": 128,
        "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 1024, "shared_expert_intermediate_size": 1024,
        "vocab_size": 248320})";
    row("qwen3.5 397B-A17B: a step between layers of attention", step, 397.0, 17.0, "");
    row("kimi linear 48B-A3B: lists of layers", R"({"num_hidden_layers": 27, "hidden_size": 2304, "intermediate_size": 9216,
        "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 72, "kv_lora_rank": 512, "q_lora_rank": null,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "first_k_dense_replace": 1, "num_experts": 256,
        "num_experts_per_token": 8, "num_shared_experts": 1, "moe_intermediate_size": 1024, "moe_layer_freq": 1, "vocab_size": 163840,
        "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim": 128, "num_heads": 32,
        "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26], "short_conv_kernel_size": 4}})",
        49.1, 0.0, "");
    row("nemotron 3 nano: one block a layer", R"({"num_hidden_layers": 52, "hidden_size": 2688, "intermediate_size": 1856,
        "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", "num_attention_heads": 32,
        "num_key_value_heads": 2, "head_dim": 128, "mlp_hidden_act": "relu2", "mamba_num_heads": 64, "mamba_head_dim": 64,
        "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4, "expand": 2, "n_routed_experts": 128, "num_experts_per_tok": 6,
        "n_shared_experts": 1, "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712, "vocab_size": 131072})",
        31.6, 3.6, "the activation is taken as relu");
    row("nemotron 3 super: experts of latents", R"({"num_hidden_layers": 88, "hidden_size": 4096, "intermediate_size": 2688,
        "hybrid_override_pattern":
        "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME", "num_attention_heads": 32,
        "num_key_value_heads": 2, "head_dim": 128, "mlp_hidden_act": "relu2", "mamba_num_heads": 128, "mamba_head_dim": 64,
        "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4, "n_routed_experts": 512, "num_experts_per_tok": 22,
        "n_shared_experts": 1, "moe_latent_size": 1024, "moe_intermediate_size": 2688,
        "moe_shared_expert_intermediate_size": 5376, "vocab_size": 131072})",
        120.6, 12.7, "the activation is taken as relu");
    row("nemotron-h 56B",
        R"({"num_hidden_layers": 118, "hidden_size": 8192, "intermediate_size": 32768, "num_attention_heads": 64,
        "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
        "num_key_value_heads": 8, "attention_head_dim": 128, "mlp_hidden_act": "relu2", "mamba_num_heads": 256, "mamba_head_dim": 64,
        "n_groups": 8, "ssm_state_size": 256, "conv_kernel": 4, "vocab_size": 131072})",
        56.0, 56.0, "the activation is taken as relu");
    row("gemma 4 26B-A4B: other heads without a window",
        R"({"num_hidden_layers": 30, "hidden_size": 2816, "intermediate_size": 2112,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "global_head_dim": 512, "num_global_key_value_heads": 2,
        "attention_k_eq_v": true, "enable_moe_block": true, "num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704,
        "sliding_window": 1024, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
        "sliding_attention", "full_attention"], "tie_word_embeddings": true, "vocab_size": 262144})",
        25.2, 3.8, "");
    row("mimo v2 flash: other heads behind windows", R"({"num_hidden_layers": 48, "hidden_size": 4096, "intermediate_size": 16384,
        "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128, "sliding_window": 128,
        "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8, "swa_head_dim": 192, "swa_v_head_dim": 128,
        "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0], "first_k_dense_replace": 1, "moe_intermediate_size": 2048,
        "n_routed_experts": 256, "num_experts_per_tok": 8, "vocab_size": 152576})",
        309.0, 0.0, "");
    std::string ratios = "[0, 0"; // and in turns 4 and 128
    for (int i = 2; i < 43; ++i)
        ratios += i % 2 == 0 ? ", 4" : ", 128";
    const std::string compressed = R"({"num_hidden_layers": 43, "hidden_size": 4096, "num_attention_heads": 64,
        "num_key_value_heads": 1, "head_dim": 512, "q_lora_rank": 1024, "o_lora_rank": 1024, "o_groups": 8, "qk_rope_head_dim": 64,
        "index_head_dim": 128, "index_n_heads": 64, "index_topk": 512, "hc_mult": 4, "sliding_window": 128,
        "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 6, "moe_intermediate_size": 2048,
        "vocab_size": 129280, "compress_ratios": )"
        + ratios + ", 0]}"; // the last one is of what predicts a further token
    row("deepseek v4 flash: compressed keys", compressed.c_str(), 284.0, 13.8, "");
    row("llama-nemotron super 49B: blocks left out", R"({"num_hidden_layers": 3, "hidden_size": 8192, "num_attention_heads": 64,
        "num_key_value_heads": null, "intermediate_size": null, "vocab_size": 128256, "block_configs": [
        {"attention": {"n_heads_in_group": 8, "no_op": false}, "ffn": {"ffn_mult": 2.625, "no_op": false}},
        {"attention": {"n_heads_in_group": null, "no_op": true}, "ffn": {"ffn_mult": 1.3125, "no_op": false}},
        {"attention": {"n_heads_in_group": null, "no_op": true}, "ffn": {"ffn_mult": null, "no_op": true}}]})",
        2.783, 2.783, ""); // 2 x 128,256 x 8,192, 2 x 64 + 2 x 8 heads of 128, widths of 14,336 and 7,168
    row("experts in every other layer",
        R"({"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
        "intermediate_size": 256, "num_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 128, "decoder_sparse_step": 2})",
        375.0e-6, 227.6e-6, ""); // 12.8 k + 4 x 16.4 k + 2 x 49.2 k + 2 x (256 + 4 x 24.6 k)
    row("gemma 3 27B: a step that does not divide the layers", R"({"model_type": "gemma3_text", "hidden_size": 5376,
        "intermediate_size": 21504, "head_dim": 128, "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16,
        "sliding_window": 1024, "sliding_window_pattern": 6, "vocab_size": 262208, "tie_word_embeddings": true})",
        27.0, 27.0, "");
    // Blocks of older forms have no gate, and four times the width where none is given.
    row("falcon 40B", R"({"model_type": "falcon", "hidden_size": 8192, "num_attention_heads": 128, "num_hidden_layers": 60,
        "num_kv_heads": 8, "vocab_size": 65024, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true})",
        41.3, 41.3, "");
    row("bloom 176B",
        R"({"model_type": "bloom", "n_embed": 14336, "n_layer": 70, "num_attention_heads": 112, "vocab_size": 250880,
        "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true})",
        176.2, 176.2, "");
    row("bert large",
        R"({"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 1024, "num_hidden_layers": 24,
        "intermediate_size": 4096, "num_attention_heads": 16, "vocab_size": 30522, "hidden_act": "gelu",
        "max_position_embeddings": 512})",
        0.334, 0.334, "the model is taken as a decoder");
    row("starcoder2 15B",
        R"({"model_type": "starcoder2", "hidden_size": 6144, "intermediate_size": 24576, "num_attention_heads": 48,
        "num_key_value_heads": 4, "num_hidden_layers": 40, "vocab_size": 49152, "use_bias": true, "norm_epsilon": 1e-5,
        "hidden_act": "gelu_pytorch_tanh", "norm_type": "layer_norm", "tie_word_embeddings": true})",
        15.66, 15.66, "");
    row("starcoder2 15B, by its kind",
        R"({"model_type": "starcoder2", "hidden_size": 6144, "intermediate_size": 24576, "num_attention_heads": 48,
        "num_key_value_heads": 4, "num_hidden_layers": 40, "vocab_size": 49152, "hidden_act": "gelu_pytorch_tanh"})",
        15.66, 15.66, "\"tie_word_embeddings\" is not given: true");
    row("starcoder 15.5B: one key head", R"({"model_type": "gpt_bigcode", "n_embd": 6144, "n_head": 48, "n_inner": 24576,
        "n_layer": 40, "n_positions": 8192, "vocab_size": 49152, "activation_function": "gelu", "tie_word_embeddings": true})",
        15.52, 15.52, "");
    row("gpt-neo 2.7B: windows in turns", R"({"model_type": "gpt_neo", "hidden_size": 2560, "num_heads": 20, "num_layers": 32,
        "intermediate_size": null, "window_size": 256, "attention_types": [[["global", "local"], 16]], "vocab_size": 50257,
        "max_position_embeddings": 2048, "tie_word_embeddings": true})",
        2.651, 2.651, "");
    row("arctic: a dense block beside experts", R"({"model_type": "arctic", "hidden_size": 7168, "intermediate_size": 4864,
        "num_attention_heads": 56, "num_key_value_heads": 8, "num_hidden_layers": 35, "vocab_size": 32000,
        "num_local_experts": 128, "num_experts_per_tok": 2, "moe_layer_frequency": 1, "parallel_attn_mlp_res": true})",
        479.0, 17.0, "");
    row("a flag that is not known", R"({"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "use_cache": true,
        "intermediate_size": 16, "vocab_size": 10, "residual_mlp": true, "other_block": false})",
        1.480e-6, 1.480e-6, "ignored: residual_mlp");
    row("hunyuan A13B: lists of one number for all layers", R"({"model_type": "hunyuan_v1_moe", "hidden_size": 4096,
        "intermediate_size": 3072, "moe_intermediate_size": [3072, 3072], "num_attention_heads": 32, "num_key_value_heads": 8,
        "attention_head_dim": 128, "num_hidden_layers": 32, "vocab_size": 128167, "num_experts": 64, "moe_topk": [8, 8],
        "num_shared_expert": [1, 1], "use_mixed_mlp_moe": true, "use_qk_norm": true, "tie_word_embeddings": true})",
        80.4, 13.0, "");
    row("xglm 7.5B: other names", R"({"model_type": "xglm", "d_model": 4096, "ffn_dim": 16384, "attention_heads": 32,
        "num_layers": 32, "vocab_size": 256008, "activation_function": "gelu", "tie_word_embeddings": true})",
        7.493, 7.493, "");
    // Classes whose files leave out what they have true.
    row("gemma 3 1B: tied by its kind", R"({"model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912,
        "num_hidden_layers": 26, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "sliding_window": 512,
        "sliding_window_pattern": 6, "vocab_size": 262144})",
        1.0, 1.0, "\"tie_word_embeddings\" is not given: true");
    row("gemma 3 4B: sizes of its kind", R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
        "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}})",
        3.88, 3.88, "\"vocab_size\" is not given: 262208");
    row("phi 3 small: an activation that is not ours", R"({"model_type": "phi3small", "hidden_size": 4096, "hidden_act": "gegelu",
        "ff_intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 100352, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true})",
        7.392, 7.392, "the activation is taken as gelu");
    row("olmo 2 7B: queries and keys are normalised", R"({"model_type": "olmo2", "hidden_size": 4096, "intermediate_size": 11008,
        "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 100352, "rms_norm_eps": 1e-6})",
        7.299, 7.299, "");
    row("modernbert large: gated, and two layers of three have a window",
        R"({"model_type": "modernbert", "hidden_size": 1024, "intermediate_size": 2624, "num_hidden_layers": 28,
        "num_attention_heads": 16, "vocab_size": 50368, "global_attn_every_n_layers": 3, "local_attention": 128,
        "tie_word_embeddings": true})",
        0.3948, 0.3948, "");
    row("falcon 7B: tied by its kind", R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
        "num_attention_heads": 71, "multi_query": true, "vocab_size": 65024})",
        6.92, 6.92, "\"tie_word_embeddings\" is not given: true");
    row("command R7B: tied by its kind", R"({"model_type": "cohere2", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 256000,
        "layer_norm_eps": 1e-5, "sliding_window": 4096, "sliding_window_pattern": 4})",
        8.03, 8.03, "\"tie_word_embeddings\" is not given: true");
    row("qwen 7B: a width that counts the gate", R"({"model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016,
        "num_hidden_layers": 32, "num_attention_heads": 32, "kv_channels": 128, "vocab_size": 151936})",
        7.72, 7.72, "");
    row("ernie 4.5 21B-A3B: other names of experts", R"({"model_type": "ernie4_5_moe", "hidden_size": 2560,
        "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 28, "num_attention_heads": 20,
        "num_key_value_heads": 4, "head_dim": 128, "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2,
        "moe_layer_start_index": 1, "vocab_size": 103424, "tie_word_embeddings": true})",
        21.83, 0.0, "");
    row("dbrx: sizes in objects by parts", R"({"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40,
        "vocab_size": 100352, "attn_config": {"kv_n_heads": 8, "rope_theta": 500000},
        "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}})",
        131.6, 36.5, "");
    row("a key that is given twice",
        R"({"model_type": "plain", "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2,
        "intermediate_size": 16, "vocab_size": 10, "hidden_size": 8})",
        1.480e-6, 1.480e-6, "\"hidden_size\" is given twice: the last one counts");
    row("llama 2 7B: a size that is left to its kind",
        R"({"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008,
        "vocab_size": 32000})",
        6.738, 6.738, "\"hidden_size\" is not given: 4096");
    row("llama 2 7B: a width that is left to its kind",
        R"({"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096, "vocab_size": 32000})",
        6.738, 6.738, "\"intermediate_size\" is not given: 11008");
    row("limits that are infinite", R"({"model_type": "plain", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2,
        "intermediate_size": 16, "vocab_size": 10, "time_limits": [0.0, Infinity], "nothing": NaN, "word": "Infinity"})",
        1.480e-6, 1.480e-6, "");
}

void TestTransformerConfig::byFields()
{
    QFETCH(QByteArray, json);
    QFETCH(double, billions);
    QFETCH(double, active);
    QFETCH(QString, note);
    std::vector<std::string> notes;
    const TransformerConfig config = valueOf(readTransformerConfig(json.toStdString(), "config.json", &notes));
    const ParameterCounts counts = parameterCounts(config);
    const double total = static_cast<double>(counts.total) / 1e9;
    QVERIFY2(std::fabs(total / billions - 1.0) < 0.01, qPrintable(QString::number(total)));
    const double used = static_cast<double>(counts.active) / 1e9; // some cards count it without the embedding, or round it
    QVERIFY2(active == 0.0 || std::fabs(used / active - 1.0) < 0.05, qPrintable(QString::number(used)));
    const bool isNoted = note.isEmpty()
        ? notes.empty() || notes.front().starts_with("ignored: time_limits")
        : std::any_of(notes.begin(), notes.end(), [&](const std::string& said) { return said.starts_with(note.toStdString()); });
    QVERIFY2(isNoted, notes.empty() ? "nothing" : notes.front().c_str());
}

/// Norms, positions, activations and biases: by the file's fields, and where it is silent as the model's kind has them.
void TestTransformerConfig::kinds_data()
{
    QTest::addColumn<QString>("fields");
    QTest::addColumn<QString>("expected"); // norm position activation, what it has
    const auto row = [](const char* name, const char* fields, const char* expected) {
        QTest::newRow(name) << QString(fields) << QString(expected);
    };
    row("none", "", "rms rotary silu gated");
    row("bloom", R"("model_type": "bloom")", "layer none gelu_tanh qkv out ffn");
    row("mpt", R"("model_type": "mpt", "attn_config": {"alibi": true}, "no_bias": true)", "layer none gelu");
    row("mpt, learned positions and biases", R"("model_type": "mpt", "attn_config": {"alibi": false}, "no_bias": false)",
        "layer learned gelu qkv out ffn");
    row("opt", R"("model_type": "opt", "ffn_dim": 16)", "layer learned relu qkv out ffn");
    row("falcon", R"("model_type": "falcon", "ffn_hidden_size": 16, "alibi": false)", "layer rotary gelu parallel");
    row("falcon, by its flags", R"("model_type": "falcon", "alibi": true, "bias": true, "parallel_attn": false)",
        "layer none gelu qkv out ffn");
    row("gpt-neo", R"("model_type": "gpt_neo")", "layer learned gelu_tanh out ffn");
    row("starcoder2", R"("model_type": "starcoder2", "intermediate_size": 16, "use_bias": false)", "layer rotary gelu_tanh");
    row("modernbert", R"("model_type": "modernbert", "intermediate_size": 16, "position_embedding_type": "absolute",
        "norm_eps": 1e-5, "embedding_dropout": 0.1, "global_rope_theta": 160000.0)",
        "layer rotary gelu gated");
    row("a bias of queries alone", R"("intermediate_size": 16, "attention_bias": true, "attention_out_bias": false)",
        "rms rotary silu gated qkv");
    row("norm by name", R"("intermediate_size": 16, "norm_type": "low_precision_layernorm", "hidden_act": "gelu")",
        "layer rotary gelu");
    row("norm by its epsilon", R"("intermediate_size": 16, "layer_norm_eps": 1e-5)", "layer rotary silu gated");
    row("positions by name", R"("intermediate_size": 16, "position_embedding_type": "nope")", "rms none silu gated");
}

void TestTransformerConfig::kinds()
{
    QFETCH(QString, fields);
    QFETCH(QString, expected);
    const std::string json = R"({"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 10)"
        + (fields.isEmpty() ? std::string(R"(, "intermediate_size": 16)") : ", " + fields.toStdString()) + "}";
    std::vector<std::string> ignored;
    const TransformerConfig c = valueOf(readTransformerConfig(json, "config.json", nullptr, &ignored));
    constexpr std::array kPositions = {"none", "learned", "rotary"};
    constexpr std::array kActivations = {"gelu", "silu", "relu", "gelu_tanh"};
    QStringList got = {c.norm == NormKind::LayerNorm ? "layer" : "rms", kPositions[static_cast<std::size_t>(c.position)],
        kActivations[static_cast<std::size_t>(c.activation)]};
    for (const auto& [has, word] : {std::pair{c.gatedFfn, "gated"}, {c.attentionBias, "qkv"}, {c.outputBias, "out"},
             {c.ffnBias, "ffn"}, {c.parallelBlock, "parallel"}}) {
        if (has)
            got.append(word);
    }
    QCOMPARE(got.join(' '), expected);
    QCOMPARE(ignored, std::vector<std::string>());
}

// Any number of a file changes what is read, or is noted as ignored, or is known to change nothing.
void TestTransformerConfig::numbersCount()
{
    const Json whole = Json::parse(R"({"model_type": "new", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 96, "moe_intermediate_size": 48, "n_routed_experts": 8,
        "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "sliding_window": 16, "vocab_size": 100,
        "rope_theta": 5000.0, "rotary_dim": 16, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "stranger": 3})");
    const TransformerConfig before = valueOf(readTransformerConfig(whole.dump(), "config.json"));
    for (const auto& [name, value] : whole.items()) {
        if (!value.is_number())
            continue;
        Json changed = whole;
        changed[name] = value.is_number_integer() ? Json(2 * value.get<std::int64_t>()) : Json(2.0 * value.get<double>());
        std::vector<std::string> notes;
        const auto after = readTransformerConfig(changed.dump(), "config.json", &notes);
        const bool isIgnored = !notes.empty() && notes.back() == "ignored: stranger" && name == "stranger";
        QVERIFY2(!after || !(*after == before) || isIgnored, name.c_str());
    }
}

// The same of layers of several kinds.
void TestTransformerConfig::numbersOfKindsCount()
{
    const Json whole
        = Json::parse(R"({"num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 32, "intermediate_size": 96, "vocab_size": 100, "layer_types": ["mamba", "linear_attention", "sliding_attention",
        "full_attention", "moe", "mlp"], "sliding_window": 16, "swa_num_key_value_heads": 1, "num_global_key_value_heads": 2,
        "global_head_dim": 64, "mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 2, "ssm_state_size": 32, "conv_kernel": 3,
        "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 8,
        "linear_conv_kernel_dim": 2, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 48,
        "moe_latent_size": 16, "hc_mult": 2})");
    std::vector<std::string> notes;
    const TransformerConfig before = valueOf(readTransformerConfig(whole.dump(), "config.json", &notes));
    QVERIFY2(notes.empty(), notes.empty() ? "" : notes.front().c_str());
    QCOMPARE(before.kinds.size(), std::size_t{6});
    for (const auto& [name, value] : whole.items()) {
        if (!value.is_number())
            continue;
        Json changed = whole;
        changed[name] = 2 * value.get<std::int64_t>();
        const auto after = readTransformerConfig(changed.dump(), "config.json");
        QVERIFY2(!after || !(*after == before), name.c_str());
    }
}

/// All configurations in the folder that MESHWRIGHT_CONFIGS names are read, and their numbers are all known.
void TestTransformerConfig::folder()
{
    const QByteArray folder = qgetenv("MESHWRIGHT_CONFIGS");
    if (folder.isEmpty())
        QSKIP("MESHWRIGHT_CONFIGS names no folder of configurations");
    int refused = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.toStdString())) {
        std::vector<std::string> notes;
        const auto config
            = readTransformerConfig(valueOf(readFile(entry.path().string())), entry.path().filename().string(), &notes);
        refused += config ? 0 : 1;
        if (!config) {
            qInfo("%s", describe(config.error()).c_str());
            continue;
        }
        const ParameterCounts counts = parameterCounts(*config);
        qInfo("%-60s %8.2f %8.2f G, %d kinds", entry.path().filename().c_str(), static_cast<double>(counts.total) / 1e9,
            static_cast<double>(counts.active) / 1e9, static_cast<int>(config->kinds.size()));
        for (const std::string& note : notes)
            qInfo("    %s", note.c_str());
    }
    QCOMPARE(refused, 0);
}

// What that library's configuration classes have where the file says nothing: the total tells most of them.
void TestTransformerConfig::defaults_data()
{
    QTest::addColumn<QString>("type");
    QTest::addColumn<qint64>("layers");
    QTest::addColumn<qint64>("hidden");
    QTest::addColumn<qint64>("keyValueHeads");
    QTest::addColumn<qint64>("headDim");
    QTest::addColumn<qint64>("ffn");
    QTest::addColumn<qint64>("vocabulary");
    QTest::addColumn<qint64>("window");
    QTest::addColumn<bool>("tied");

    const auto row = [](const char* type, std::array<qint64, 7> sizes, bool tied) {
        QTest::newRow(type) << QString(type) << sizes[0] << sizes[1] << sizes[2] << sizes[3] << sizes[4] << sizes[5] << sizes[6]
                            << tied;
    };
    row("gpt2", {12, 768, 12, 64, 3072, 50257, 0}, true);
    row("gpt_neox", {44, 6144, 64, 96, 24576, 50432, 0}, false);
    row("llama", {32, 4096, 32, 128, 11008, 32000, 0}, false);
    row("mistral", {32, 4096, 8, 128, 14336, 32000, 4096}, false);
    row("mixtral", {32, 4096, 8, 128, 14336, 32000, 0}, false);
    row("qwen2", {32, 4096, 32, 128, 22016, 151936, 0}, false);
    row("qwen3", {32, 4096, 32, 128, 22016, 151936, 0}, false);
    row("gemma", {28, 3072, 16, 256, 24576, 256000, 0}, true);
    row("deepseek_v2", {32, 4096, 32, 128, 11008, 102400, 0}, false);
    row("deepseek_v3", {61, 7168, 128, 128, 18432, 129280, 0}, false);
    row("gemma2", {26, 2304, 4, 256, 9216, 256000, 4096}, true);
}

void TestTransformerConfig::defaults()
{
    QFETCH(QString, type);
    const TransformerConfig c
        = valueOf(readTransformerConfig(("{\"model_type\": \"" + type + "\"}").toStdString(), "config.json"));
    QTEST(qint64{c.layers}, "layers");
    QTEST(qint64{c.hidden}, "hidden");
    QTEST(qint64{c.keyValueHeads}, "keyValueHeads");
    QTEST(qint64{c.headDim}, "headDim");
    QTEST(qint64{c.ffn}, "ffn");
    QTEST(qint64{c.vocabulary}, "vocabulary");
    QTEST(qint64{c.slidingWindow}, "window");
    QTEST(c.tiedEmbeddings, "tied");
    QCOMPARE(c.name, type.toStdString());
}

/// Which layers of a family of attention alone have a window: by a list of kinds, else by the family's rule.
void TestTransformerConfig::windows_data()
{
    QTest::addColumn<QString>("fields");
    QTest::addColumn<qint64>("window");
    QTest::addColumn<qint64>("layers"); // that have it, of four
    const auto row = [](const char* name, const char* fields, qint64 window, qint64 layers) {
        QTest::newRow(name) << QString(fields) << window << layers;
    };
    const QString used = R"("model_type": "qwen2", "use_sliding_window": true, "sliding_window": 16)";
    row("qwen2 from a layer on", qPrintable(used + R"(, "max_window_layers": 3)"), 16, 1);
    row("qwen2, a list", qPrintable(used + R"(, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention",
        "full_attention"])"),
        16, 3);
    row("qwen2, a list beside a number", qPrintable(used + R"(, "max_window_layers": 0, "layer_types": ["full_attention",
        "full_attention", "full_attention", "full_attention"])"),
        0, 0);
    row("qwen3, windows not used", R"("model_type": "qwen3", "sliding_window": 16, "layer_types": ["sliding_attention",
        "sliding_attention", "full_attention", "full_attention"])",
        0, 0);
    row("llama, which has none", R"("model_type": "llama", "layer_types": ["sliding_attention",
        "sliding_attention", "sliding_attention", "sliding_attention"])",
        0, 0);
    row("gemma2, every other", R"("model_type": "gemma2", "sliding_window": 16)", 16, 2);
    row("gemma2, a list", R"("model_type": "gemma2", "sliding_window": 16, "layer_types": ["sliding_attention",
        "sliding_attention", "sliding_attention", "sliding_attention"])",
        16, 4);
    row("gemma2, none", R"("model_type": "gemma2", "sliding_window": 16, "layer_types": ["full_attention", "full_attention",
        "full_attention", "full_attention"])",
        0, 0);
}

void TestTransformerConfig::windows()
{
    QFETCH(QString, fields);
    std::vector<std::string> notes;
    const TransformerConfig c
        = valueOf(readTransformerConfig("{\"num_hidden_layers\": 4, " + fields.toStdString() + "}", "config.json", &notes));
    QTEST(qint64{c.slidingWindow}, "window");
    QTEST(qint64{c.slidingWindowLayers}, "layers");
    const bool isNoted = std::ranges::find(notes, "ignored: layer_types") != notes.end();
    QCOMPARE(isNoted, fields.contains("llama"));
}

void TestTransformerConfig::problems_data()
{
    QTest::addColumn<QByteArray>("json");
    QTest::addColumn<QString>("expected");

    const auto row = [](const char* name, const char* json, const char* expected) {
        QTest::newRow(name) << QByteArray(json) << QString(expected);
    };
    row("empty", "", "config.json:1:1: error MW1350: the text ends in the middle of JSON");
    row("cut off", R"({"hidden_size": 40)", "fix: the file was cut off, or is empty: download it again");
    row("experts in some layers", R"({"model_type": "deepseek_v3", "moe_layer_freq": 2})", "MW1353: moe_layer_freq must be 1");
    row("biases of latents", R"({"model_type": "deepseek_v2", "attention_bias": true})", "MW1353: attention_bias must be false");
    row("no JSON", "{\n  model_type: llama}", "config.json:2:3: error MW1350: this is not JSON");
    row("a list", "[1]", "config.json: error MW1350: a model's configuration is a JSON object");
    row("no kind", "{}", "config.json: error MW1352: \"model_type\" is missing");
    row("kind is a number", R"({"model_type": 3})", "\"model_type\" must be a text, got: 3");
    row("unknown kind", R"({"model_type": "lama"})",
        "MW1352: \"num_hidden_layers\", \"hidden_size\", \"num_attention_heads\", \"vocab_size\" are missing");
    row("layers that are not known", R"({"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
        "layer_types": ["retention", "full_attention"]})",
        "MW1351: the kind \"retention\" of layers is not known");
    row("blocks that are not known, of a list that ends early", R"({"num_hidden_layers": 26, "hidden_size": 2560,
        "num_attention_heads": 10, "vocab_size": 100, "block_types": ["recurrent", "recurrent", "attention"]})",
        "MW1351: the kind \"recurrent\" of layers is not known");
    row("states without heads", R"({"num_hidden_layers": 8, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
        "attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_dt_rank": 256})",
        "MW1351: mamba_dt_rank: layers of Mamba 1 are not known");
    row("states beside attention in each layer", R"({"num_hidden_layers": 8, "hidden_size": 64, "num_attention_heads": 4,
        "vocab_size": 100, "mamba_d_state": 256, "mamba_n_heads": 24})",
        "MW1351: mamba_d_state: no list says which layers have a state");
    row("keys of several layers", R"({"num_hidden_layers": 8, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
        "use_cla": true, "cla_share_factor": 2})",
        "MW1351: cla_share_factor: layers that share keys are not known");
    row("a model of images", R"({"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "image_size": 224})",
        "a model that has none is not a decoder with attention");
    row("an encoder beside the decoder", R"({"model_type": "t5", "d_model": 1024, "num_heads": 16, "num_layers": 24,
        "num_decoder_layers": 24, "is_encoder_decoder": true, "vocab_size": 32128})",
        "MW1351: \"is_encoder_decoder\": an encoder and a decoder that attends to it are not known");
    row("a class of both", R"({"model_type": "t5", "d_model": 1024, "num_heads": 16, "num_layers": 24, "vocab_size": 32128})",
        "MW1351: \"model_type\": an encoder and a decoder that attends to it are not known");
    row("layers of an encoder", R"({"d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "vocab_size": 50265})",
        "MW1351: \"encoder_layers\": an encoder");
    row("states alone", R"({"num_hidden_layers": 64, "hidden_size": 2560, "num_heads": 80, "head_dim": 64, "state_size": 128,
        "vocab_size": 50288})",
        "MW1351: state_size: layers of a state space");
    row("too many kinds",
        R"({"model_type": "qwen2", "num_hidden_layers": 1, "layer_types": ["full_attention", "full_attention"]})",
        "MW1353: 2 kinds of layers for 1 layers");
    row("a kind that is not known, of a family", R"({"model_type": "gemma2", "num_hidden_layers": 1, "layer_types": ["slidng"]})",
        "MW1351: the kind \"slidng\" of layers is not known");
    row("too few kinds", R"({"num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
        "layer_types": ["mamba", "attention"]})",
        "MW1353: 2 kinds of layers for 3 layers");
    row("a recurrence without sizes", R"({"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
        "layer_types": ["linear_attention", "full_attention"]})",
        "MW1352: \"linear_num_value_heads\", \"linear_key_head_dim\" are missing");
    row("blocks of other layers", R"({"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
        "block_configs": [{}]})",
        "MW1353: block_configs has 1 layers, and the model 2");
    row("wrong type", R"({"model_type": "gpt2", "n_layer": "twelve"})",
        "MW1352: \"n_layer\" must be a whole number from 1 to 2^40, got: \"twelve\"");
    row("heads of a hidden size that nobody gave", R"({"model_type": "qwen2", "hidden_size": null, "num_attention_heads": 14})",
        "MW1353: hidden size 4096, as its kind of model has it where the file does not say it, is not divisible by 14 heads");
    row("fraction", R"({"model_type": "gpt2", "n_layer": 1.5})", "got: 1.5");
    row("no number", R"({"model_type": "llama", "hidden_size": NaN})",
        "\"hidden_size\" must be a whole number from 1 to 2^40, got: \"NaN\"");
    row("no finite number", R"({"model_type": "llama", "rope_theta": -Infinity})",
        "\"rope_theta\" must be a number, got: \"-Infinity\"");
    row("layers of several widths", R"({"model_type": "new", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
        "vocab_size": 100, "intermediate_size": [128, 256]})",
        "\"intermediate_size\" must be a whole number from 1 to 2^40, got: [128,256]");
    row("negative", R"({"model_type": "llama", "num_attention_heads": -1})",
        "\"num_attention_heads\" must be a whole number from 1 to 2^40, got: -1");
    row("zero heads", R"({"model_type": "llama", "num_attention_heads": 0})", "got: 0");
    row("too large", R"({"model_type": "llama", "vocab_size": 18446744073709551615})", "got: 18446744073709551615");
    row("too many parameters", R"({"model_type": "llama", "hidden_size": 1000000000000, "intermediate_size": 1000000000000})",
        "parameters, more than 2^53");
    row("activation", R"({"model_type": "llama", "hidden_act": "mish"})",
        "\"hidden_act\" must be gelu, gelu_new, gelu_pytorch_tanh, silu or relu, got: \"mish\"");
    row("flag", R"({"model_type": "llama", "tie_word_embeddings": "no"})",
        "\"tie_word_embeddings\" must be true or false, got: \"no\"");
    row("uneven heads", R"({"model_type": "llama", "num_key_value_heads": 5})",
        "MW1353: 32 query heads cannot be shared evenly by 5 key and value heads");
    row("head size", R"({"model_type": "gpt2", "n_embd": 770})", "MW1353: hidden size 770 is not divisible by 12 heads");
    row("no head left", R"({"model_type": "llama", "hidden_size": 16})", "MW1353: hidden size 16 is not divisible by 32 heads");
    row("odd rotation", R"({"model_type": "llama", "head_dim": 7})",
        "MW1353: rotary positions rotate pairs, but 7 dims of a head are rotated");
    row("experts", R"({"model_type": "mixtral", "num_experts_per_tok": 9})", "MW1353: a token cannot use 9 of 8 experts");
    row("infinite", R"({"model_type": "llama", "rope_theta": 1e999})", "MW1350");
    row("fraction of a head", R"({"model_type": "gpt_neox", "rotary_pct": 2})", "rotaryFraction must be 0 to 1, got: 2");
    row("two at once", R"({"model_type": "gpt2", "n_layer": 0, "n_head": []})", "\"n_head\" must be");
    row("nothing is said of sizes made up",
        R"({"hidden_size": -64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100})",
        "config.json: error MW1352: \"hidden_size\" must be a whole number from 1 to 2^40, got: -64 [hidden_size]");
    row("deep", "[[[[[[[[[[[[[[[[[[[[", "MW1350");
    static const std::string kDeep
        = "{\"a\": " + std::string(100000, '[') + std::string(100000, ']') + "}"; // too deep for whatever calls itself
    row("deep and whole", kDeep.c_str(), "MW1350: a model's configuration is at most 100 objects and lists deep");
}

void TestTransformerConfig::problems()
{
    QFETCH(QByteArray, json);
    QFETCH(QString, expected);
    const auto config = readTransformerConfig(json.toStdString(), "config.json");
    QVERIFY(!config);
    QVERIFY2(described(config).contains(expected), qPrintable(described(config)));
    QVERIFY2(!described(config).contains("hidden size 1 "), qPrintable(described(config))); // stands in for a wrong one
}

// A text that breaks off anywhere is a problem with a place, or a smaller whole; never a crash.
void TestTransformerConfig::brokenOff()
{
    const auto path = findResource("models/mixtral_8x7b.json");
    QVERIFY(path);
    const std::string whole = valueOf(readFile(path->string()));
    for (std::size_t length = 0; length + 2 < whole.size(); ++length)
        QCOMPARE(idsOf(readTransformerConfig(whole.substr(0, length), "config.json")), QString("MW1350"));
}

void TestTransformerConfig::sizeProblems_data()
{
    QTest::addColumn<TransformerConfig>("config");
    QTest::addColumn<QString>("expected");

    const auto row = [](const char* name, auto change, const char* expected) {
        TransformerConfig config = shipped("mixtral_8x7b");
        change(config);
        QTest::newRow(name) << config << QString(expected);
    };
    row(
        "good", [](TransformerConfig&) {}, "");
    row(
        "no layers", [](TransformerConfig& c) { c.layers = 0; }, "MW1352: layers must be 1 to 4096, got: 0");
    row(
        "no vocabulary", [](TransformerConfig& c) { c.vocabulary = 0; }, "MW1352: vocabulary must be 1 to 2^40, got: 0");
    row(
        "dense layers", [](TransformerConfig& c) { c.denseLayers = 33; }, "MW1353: 33 dense layers in a model of 32 layers");
    row(
        "windows", [](TransformerConfig& c) { c.slidingWindowLayers = 40; },
        "MW1353: 40 layers with a window in a model of 32 layers");
    row(
        "epsilon", [](TransformerConfig& c) { c.normEpsilon = std::nan(""); }, "MW1352: normEpsilon must be at least 0");
    row(
        "all experts, no dense block", [](TransformerConfig& c) { c.ffn = 0; }, "");
}

void TestTransformerConfig::sizeProblems()
{
    QFETCH(TransformerConfig, config);
    QFETCH(QString, expected);
    const Problems found = transformerProblems(config);
    const QString words = found.empty() ? QString() : text(describe(found));
    QVERIFY2(expected.isEmpty() ? words.isEmpty() : words.contains(expected), qPrintable(words));
    for (const Problem& problem : found)
        QVERIFY2(problem.id != "MW1352" || !problem.fix.empty(), problem.message.c_str());
}

MESHWRIGHT_TEST(TestTransformerConfig)

} // namespace tst_transformer_config

#include "tst_transformer_config.moc"
