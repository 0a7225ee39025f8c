// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/config_fields.h"
#include "tests/test_class.h"

#include <QDir>
#include <nlohmann/json.hpp>

#include <set>

namespace tst_config_numbers {

using namespace meshwright;

/// No number or flag of a model's configuration is passed over in silence: doubled, a number changes what is read, or it is known to be inert.
class TestConfigNumbers : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void doubled_data();
    void doubled();
    void unknownNumbersAreNamed_data();
    void unknownNumbersAreNamed();
};

namespace {

using Json = nlohmann::json;

/// What a vision model's file has around and inside of its language model.
const std::string kTowers
    = R"({"model_type": "some_vl", "image_token_id": 151655, "vision_config": {"hidden_size": 1152, "depth": 27,
    "rope_parameters": {"rope_theta": 10000.0}}, "tie_word_embeddings": false, "text_config": {"model_type": "some_text",
    "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128,
    "intermediate_size": 6144, "vocab_size": 151936, "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "rope_theta": 5000000.0,
    "rope_scaling": {"factor": 8.0, "original_max_position_embeddings": 4096, "mrope_section": [24, 20, 20]},
    "quantization_config": {"weight_block_size": [128, 128], "config_groups": {"group_0": {"weights": {"num_bits": 4}}}},
    "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 768, "router_aux_loss_coef": 0.001}})";

/// Numbers of rotations in an object of their own.
const std::string kRotations
    = R"({"model_type": "some_text", "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16,
    "intermediate_size": 6144, "vocab_size": 32000, "rope_parameters": {"rope_theta": 10000.0, "partial_rotary_factor": 0.25, "factor": 4.0,
    "beta_fast": 32.0}, "sliding_window": 1024, "sliding_window_pattern": 2})";

/// Layers with a recurrence, sizes in an object of their own.
const std::string kRecurrent
    = R"({"model_type": "some_linear", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 4096, "vocab_size": 32000, "linear_attn_config": {"kda_layers": [1, 2, 3],
    "full_attn_layers": [4], "num_heads": 8, "head_dim": 128, "short_conv_kernel_size": 4}})";

/// Numbers without an effect in one file only, and why.
const std::map<QString, std::set<std::string>> kWithoutEffectHere = {
    {"qwen2_7b", {"sliding_window"}}, // use_sliding_window is false
};

/// The numbers of a document, and lists of numbers, by their paths.
void findNumbers(const Json& node, const std::string& prefix, std::vector<std::string>& paths)
{
    for (const auto& [name, value] : node.items()) {
        if (value.is_object())
            findNumbers(value, prefix + name + ".", paths);
        else if (value.is_number() || (value.is_array() && !value.empty() && value.front().is_number()))
            paths.push_back(prefix + name);
    }
}

Json* nodeAt(Json& document, const std::string& path)
{
    Json* node = &document;
    std::size_t begin = 0;
    for (std::size_t dot = path.find('.'); dot != std::string::npos; begin = dot + 1, dot = path.find('.', begin))
        node = &(*node)[path.substr(begin, dot - begin)];
    return &(*node)[path.substr(begin)];
}

void doubleNumber(Json& number)
{
    if (number.is_array()) {
        for (Json& entry : number)
            doubleNumber(entry);
    } else if (number.is_number_integer()) {
        number = 2 * number.get<std::int64_t>();
    } else if (number.is_number()) {
        number = 2.0 * number.get<double>();
    }
}

std::string inLanguagePart(const std::string& path)
{
    return path.starts_with("text_config.") ? path.substr(12) : path;
}

} // namespace

void TestConfigNumbers::doubled_data()
{
    QTest::addColumn<QString>("text");

    const QDir models(QString(MESHWRIGHT_SOURCE_DIR) + "/resources/models");
    for (const QString& name : models.entryList({"*.json"}, QDir::Files, QDir::Name)) {
        QFile file(models.filePath(name));
        QVERIFY(file.open(QIODevice::ReadOnly));
        QTest::newRow(qPrintable(name.chopped(5))) << QString::fromUtf8(file.readAll());
    }
    QTest::newRow("towers") << QString::fromStdString(kTowers);
    QTest::newRow("rotations") << QString::fromStdString(kRotations);
    QTest::newRow("recurrent") << QString::fromStdString(kRecurrent);
}

void TestConfigNumbers::doubled()
{
    QFETCH(QString, text);
    const Json document = Json::parse(text.toStdString());
    std::vector<std::string> ignored;
    const auto before = readTransformerConfig(document.dump(), "config.json", nullptr, &ignored);
    QVERIFY2(before, before ? "" : before.error().front().message.c_str());
    QCOMPARE(ignored, std::vector<std::string>());
    const auto exceptions = kWithoutEffectHere.find(QTest::currentDataTag());
    std::vector<std::string> paths;
    findNumbers(document, {}, paths);
    QStringList wrong;
    for (const std::string& path : paths) {
        Json changed = document;
        doubleNumber(*nodeAt(changed, path));
        if (changed == document) // it is 0
            continue;
        const auto after = readTransformerConfig(changed.dump(), "config.json");
        const bool hasEffect = !after || *after != *before;
        const bool isListed
            = isInertField(inLanguagePart(path)) || (exceptions != kWithoutEffectHere.end() && exceptions->second.contains(path));
        if (hasEffect == isListed)
            wrong.push_back(
                QString("%1 %2").arg(QString::fromStdString(path), hasEffect ? "is listed and has an effect" : "has none"));
    }
    QCOMPARE(wrong, QStringList());
}

void TestConfigNumbers::unknownNumbersAreNamed_data()
{
    QTest::addColumn<QString>("path"); ///< where a number is added
    QTest::addColumn<QString>("text");

    const QString llama = R"({"model_type": "llama", "hidden_size": 2048, "num_attention_heads": 16})";
    QTest::newRow("of a family that is known") << "number_of_wings" << llama;
    QTest::newRow("in an object") << "wings.count" << llama;
    QTest::newRow("in an object that is read") << "rope_parameters.wings" << QString::fromStdString(kRotations);
    QTest::newRow("a flag") << "has_wings" << llama;
    QTest::newRow("in a list") << "linear_attn_config.wing_layers" << QString::fromStdString(kRecurrent);
    QTest::newRow("of the language model") << "text_config.wings" << QString::fromStdString(kTowers);
    QTest::newRow("beside the language model") << "wings" << QString::fromStdString(kTowers);
}

void TestConfigNumbers::unknownNumbersAreNamed()
{
    QFETCH(QString, path);
    QFETCH(QString, text);
    Json document = Json::parse(text.toStdString());
    *nodeAt(document, path.toStdString()) = path.endsWith("layers") ? Json::array({2, 3})
        : path.startsWith("has")                                    ? Json(true)
                                                                    : Json(2);
    std::vector<std::string> notes;
    std::vector<std::string> ignored;
    const auto config = readTransformerConfig(document.dump(), "config.json", &notes, &ignored);
    QVERIFY2(config, config ? "" : config.error().front().message.c_str());
    QCOMPARE(ignored, std::vector<std::string>{inLanguagePart(path.toStdString())});
    QVERIFY(std::ranges::find(notes, "ignored: " + ignored.front()) != notes.end());
}

MESHWRIGHT_TEST(TestConfigNumbers)

} // namespace tst_config_numbers

#include "tst_config_numbers.moc"
