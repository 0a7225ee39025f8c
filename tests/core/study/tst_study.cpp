// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training.h"
#include "core/study/arrays.h"
#include "core/study/logical_names.h"
#include "core/study/study.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <filesystem>

namespace tst_study {

using namespace meshwright;

/// What studies say, and that writing them loses nothing.
class TestStudy : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyPart();
    void defaults();
    void json();
    void roundTrip_data();
    void roundTrip();
    void roundTripOfText();
    void settings();
    void phases();
    void examples_data();
    void examples();
    void arraysAreTheProgramsArrays();
    void globs_data();
    void globs();
    void rules();
    void logicalRules();
    void logicalNames_data();
    void logicalNames();
};

namespace {

const std::string kEverything = R"yaml(meshwright: 1
name: "all: parts"
hardware: {chip: h100, hosts: 4, per_host: 8}
mesh: {data: 4, model: 2, device_order: [0, 1, 2, 3, 6, 7, 4, 5]}
model:
  mlp: {layers: [784, 8192, 10], activation: tanh, bias: false, loss: sum_squared}
init: {w: normal/sqrt(fan_in), b: ones, random: legacy}
batch: 8192
dtype: {parameters: f32, matmul: bf16}
sharding:
  x: P('data', None)
  y: [data, null]
  layers.1: {w: "P(None, 'model')", out: "P('data', 'model')"}
  layers.0.w: [[data, model]]
  opt.m.*: P('data')
  match:
    - {path: "*.w", min_elements: 1025, divisible: largest_dim, spec: [data]}
    - {path: "*", spec: []}
  rules: [[batch, data], [hidden, [data, model]], [embed, null]]
optimizer: {sgd: {learning_rate: 1.0e-5, momentum: 0.9}}
train: {steps: 30, seed: 7, data: {file: a.csv, scale: 0.0625, held_out: 12, shuffle: true}}
pipeline: {axis: model, stages: 1, microbatches: 1, schedule: gpipe}
)yaml";

Study read(const std::string& text, const std::vector<std::string>& settings = {})
{
    auto study = readStudy(text, "s.yaml", settings);
    if (!study)
        qFatal("%s", describe(study.error()).c_str());
    return *study;
}

std::filesystem::path examplesFolder()
{
    return std::filesystem::path(MESHWRIGHT_SOURCE_DIR) / "resources" / "examples";
}

} // namespace

void TestStudy::everyPart()
{
    const Study study = read(kEverything);
    Study expected;
    expected.name = "all: parts";
    expected.hardware = HardwareChoice{"h100", {}, 4, 8, {}};
    expected.mesh = {{"data", 4}, {"model", 2}};
    expected.deviceOrder = {0, 1, 2, 3, 6, 7, 4, 5};
    expected.model = MlpModel{{784, 8192, 10}, Activation::Tanh, false, LossKind::SumSquared};
    expected.weightInit = Initializer::NormalOverSqrtFanIn;
    expected.biasInit = Initializer::Ones;
    expected.partitionableRandom = false;
    expected.batch = 8192;
    expected.matmulType = DType::BF16;
    expected.sharding.entries = {
        {"x", {{{"data"}, {}}}, "sharding.x"},
        {"y", {{{"data"}, {}}}, "sharding.y"},
        {"layers.1.w", {{{}, {"model"}}}, "sharding.layers.1.w"},
        {"act.layers.1", {{{"data"}, {"model"}}}, "sharding.layers.1.out"},
        {"layers.0.w", {{{"data", "model"}}}, "sharding.layers.0.w"},
        {"opt.m.*", {{{"data"}}}, "sharding.opt.m.*"},
    };
    expected.sharding.match = {{"*.w", 1025, true, {{{"data"}}}}, {"*", 0, false, {}}};
    expected.sharding.rules = {{"batch", {{"data"}}}, {"hidden", {{"data", "model"}}}, {"embed", {}}};
    expected.optimizer = SgdOptimizer{1e-5, 0.9};
    expected.train = {30, 7, {TrainingData::Kind::File, "a.csv", {}, 0.0625, 12, true}};
    expected.pipeline = {"model", 1, 1, PipelineOrder::GPipe};
    QVERIFY(study == expected);
    QCOMPARE(study.placeOf("sharding.layers.1.w").line, 13);
    QCOMPARE(study.placeOf("mesh.model").column, 24);
    QCOMPARE(study.placeOf("model.mlp.layers[2]").line, 6);
    QCOMPARE(study.placeOf("mesh.nothing").line, 4); // the nearest part around it
}

void TestStudy::defaults()
{
    Study expected;
    expected.model = MlpModel{{4, 2}};
    expected.batch = 8;
    QVERIFY(read("meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\n") == expected);
    QCOMPARE(read("meshwright: 1\nmesh: {pipe: 2}\nmodel: {mlp: {layers: [4, 3, 2]}}\nbatch: 8\npipeline: {axis: pipe}\n")
                 .pipeline.stages,
        2);
    expected.optimizer = NoOptimizer{};
    QVERIFY(read("meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\noptimizer: none\n") == expected);
    expected.optimizer = AdamOptimizer{};
    QVERIFY(read("meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\noptimizer: adam\n") == expected);
    QVERIFY(read("meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\noptimizer: {adam: {}}\ntrain:\nmesh:\n") == expected);
    expected.model = ProgramFile{"step.mlir", {}};
    expected.optimizer = SgdOptimizer{};
    expected.batch = 1;
    QVERIFY(read("meshwright: 1\nmodel: {program: step.mlir}\n") == expected);
}

void TestStudy::json()
{
    const Study study
        = read("{\"meshwright\": 1,\n\t\"mesh\": {\"data\": 8},\n\t\"model\": {\"mlp\": {\"layers\": [4, 2]}}, \"batch\": 8,"
               "\"sharding\": {\"x\": \"P('data')\", \"y\": [\"data\", null]}, \"train\": {\"steps\": 1, \"seed\": 3}}");
    QCOMPARE(study.mesh.size(), std::size_t{1});
    QVERIFY(study.sharding.entries[0].spec == (PartitionSpec{{{"data"}}}));
    QVERIFY(study.sharding.entries[1].spec == (PartitionSpec{{{"data"}, {}}}));
}

void TestStudy::roundTrip_data()
{
    QTest::addColumn<QString>("text");
    QTest::newRow("everything") << tests::text(kEverything);
    QTest::newRow("little") << "meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\n";
    QTest::newRow("program") << "meshwright: 1\nmodel: {program: {file: 'a b.mlir', function: main}}\nsharding: {w: P(), '*': "
                                "\"P('d')\"}\nmesh: {d: 2}\n";
    QTest::newRow("odd names") << "meshwright: 1\nname: \"q\\\"uote\\\\ \\n tab\\t \\u00e9: # x\"\nmesh: {\"null\": 2, true: 1, "
                                  "\"a-b.c\": 1, _x: 1}\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\n"
                                  "sharding: {x: [\"null\"], rules: [[\"null\", _x], [\"a, b\", [true, \"null\"]]]}\n";
    QTest::newRow("phases") << "meshwright: 1\nmesh: {a: 2}\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\nphases: [{steps: 2, mesh: "
                               "{a: 4, device_order: [3, 2, 1, 0]}}, {steps: 3, mesh: {b: 2}}]\n";
    QTest::newRow("profile, adam")
        << "meshwright: 1\nhardware: {profile: a.json}\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\n"
           "optimizer: {adam: {learning_rate: 0.1, beta1: 0.30000000000000004, beta2: 0, epsilon: 1e-300}}\n";
    QTest::newRow("AdamW with everything")
        << "meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\n"
           "optimizer: {adamw: {weight_decay: 0.02, clip_norm: 1, schedule: cosine, warmup_steps: 3, decay_steps: 9, "
           "final_learning_rate: 1.0e-5}}\ntrain: {accumulate: 4, grad_norm: true, evaluate: {every: 5, file: a.npy, labels: "
           "b.npy}}\n";
    QTest::newRow("scaled loss")
        << "meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\noptimizer: {sgd: {loss_scale: 1024}}\n";
    QTest::newRow("dynamically scaled loss") << "meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\noptimizer: {adam: "
                                                "{loss_scale: {first: 0.5, growth_steps: 7}}}\n";
    QTest::newRow("AdamW as it is") << "meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\noptimizer: adamw\n";
    QTest::newRow("SGD with decay, evaluated")
        << "meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\noptimizer: {sgd: {weight_decay: 0.1, schedule: linear}}\n"
           "train: {evaluate: 10, data: {file: x-images.idx, labels: x-labels.idx}}\n";
    QTest::newRow("slices")
        << "meshwright: 1\nhardware: {chip: v5e, topology: [4, 4], slices: 3}\nmodel: {mlp: {layers: [64, 10]}}\nbatch: 8\n";
    QTest::newRow("topology, digits") << "meshwright: 1\nhardware: {chip: v5e, topology: 4x4}\nmodel: {mlp: {layers: [64, "
                                         "10]}}\nbatch: 8\ntrain: {data: digits}\n";
}

void TestStudy::roundTrip()
{
    QFETCH(QString, text);
    const Study study = read(text.toStdString());
    const std::string written = writeStudy(study);
    const auto again = readStudy(written, "w.yaml");
    QVERIFY2(again, (written + tests::described(again).toStdString()).c_str());
    QVERIFY2(*again == study, written.c_str());
    QCOMPARE(tests::text(writeStudy(*again)), tests::text(written));
}

void TestStudy::roundTripOfText()
{
    const std::string written = writeStudy(
        read("meshwright: 1\nmesh: {data: 8}\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\nsharding: {x: \"P('data')\"}\n"));
    QCOMPARE(tests::text(written),
        "meshwright: 1\n"
        "mesh: {data: 8}\n"
        "model:\n"
        "  mlp: {layers: [4, 2], activation: relu, bias: true, loss: cross_entropy}\n"
        "init: {w: lecun_normal, b: zeros}\n"
        "batch: 8\n"
        "dtype: {parameters: f32, matmul: f32}\n"
        "sharding:\n"
        "  x: \"P('data',)\"\n"
        "optimizer: {sgd: {learning_rate: 0.01, momentum: 0}}\n"
        "train: {steps: 10, seed: 0, data: random}\n");
}

void TestStudy::settings()
{
    const Study study = read(kEverything,
        {"train.steps=0", "mesh.data=8", "mesh.expert=1", "mesh.device_order=", "model.mlp.layers[1]=4096",
            "optimizer.sgd.momentum=0.5", "sharding.layers.1.w=P('model')"});
    QCOMPARE(study.train.steps, 0);
    QVERIFY(study.mesh == (std::vector<MeshAxis>{{"data", 8}, {"model", 2}, {"expert", 1}}));
    QCOMPARE(study.mlp()->layers[1], 4096);
    QVERIFY(study.deviceOrder.empty());
    QVERIFY(study.optimizer == (Optimizer{SgdOptimizer{1e-5, 0.5}}));
    QVERIFY(study.sharding.entries[2].spec == (PartitionSpec{{{"model"}}}));
    QVERIFY(read(kEverything, {"mesh=data=4,model=2,expert=1"}).mesh
        == (std::vector<MeshAxis>{{"data", 4}, {"model", 2}, {"expert", 1}}));
}

void TestStudy::phases()
{
    const Study study = read("meshwright: 1\nmesh: {a: 4, b: 2}\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\ntrain: {seed: 3}\n"
                             "phases: [{steps: 2, mesh: {a: 8}}, {steps: 3, mesh: {b: 2, a: 4}}]\n");
    const Study first = phaseStudy(study, 0);
    QVERIFY(first.phases.empty());
    QCOMPARE(first.train.steps, 2);
    QCOMPARE(first.train.seed, 3);
    QVERIFY(first.mesh == (std::vector<MeshAxis>{{"a", 8}, {"b", 1}})); // specs may still name b
    QVERIFY(phaseStudy(study, 1).mesh == (std::vector<MeshAxis>{{"b", 2}, {"a", 4}}));
    const Study whole = read("meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\n");
    QVERIFY(phaseStudy(whole, 0) == whole);
}

void TestStudy::examples_data()
{
    QTest::addColumn<QString>("path");
    for (const auto& entry : std::filesystem::directory_iterator(examplesFolder())) {
        if (entry.path().extension() == ".yaml")
            QTest::newRow(entry.path().filename().c_str()) << tests::text(entry.path().string());
    }
}

void TestStudy::examples()
{
    QFETCH(QString, path);
    const auto study = loadStudy(path.toStdString());
    QVERIFY2(study, qPrintable(tests::described(study)));
    QCOMPARE(tests::text(describe(checkStudy(*study))), QString());
    QCOMPARE(tests::text(describe(checkFiles(*study))), QString());
    QVERIFY(!study->name.empty());
    const auto again = readStudy(writeStudy(*study), "again.yaml");
    QVERIFY2(again, qPrintable(tests::described(again)));
    QVERIFY(*again == *study);
}

/// The study's own table of names and shapes is that of the program that is built.
void TestStudy::arraysAreTheProgramsArrays()
{
    for (const Optimizer& optimizer : {Optimizer{SgdOptimizer{}}, Optimizer{SgdOptimizer{0.1, 0.9}}, Optimizer{AdamOptimizer{}},
             Optimizer{SgdOptimizer{0.1, 0.0, {0.0, 0.0, {LearningRateSchedule::Kind::Linear, 0, 5, 0.0}}}}}) {
        for (const bool bias : {false, true}) {
            Study study;
            study.model = MlpModel{{5, 4, 3, 2}, Activation::Relu, bias, LossKind::CrossEntropy};
            study.batch = 7;
            study.optimizer = optimizer;
            TrainingOptions options;
            options.batch = 7;
            options.optimizer = optimizer;
            const Program program = valueOf(buildMlpTraining(*study.mlp(), options));
            const Function* step = program.find("step");
            QVERIFY(step != nullptr);
            std::set<std::string> arguments;
            for (const ValueId argument : step->arguments())
                arguments.insert((*step)[argument].name);
            for (const StudyArray& array : studyArrays(study)) {
                const auto value = step->findValue(array.name);
                QVERIFY2(value, array.name.c_str());
                QVERIFY2((*step)[*value].type.shape == array.shape, array.name.c_str());
                QCOMPARE(array.meaning.size(), array.shape.size());
                arguments.erase(array.name);
            }
            QVERIFY(arguments.empty());
        }
    }
}

void TestStudy::globs_data()
{
    QTest::addColumn<QString>("glob");
    QTest::addColumn<QString>("caught");

    QTest::newRow("all parameters") << "*"
                                    << "layers.0.w layers.0.b layers.1.w layers.1.b";
    QTest::newRow("weights") << "*.w"
                             << "layers.0.w layers.1.w";
    QTest::newRow("one layer") << "layers.1.*"
                               << "layers.1.w layers.1.b";
    QTest::newRow("one character") << "layers.?.b"
                                   << "layers.0.b layers.1.b";
    QTest::newRow("states, no scalar") << "opt.*.w"
                                       << "opt.m.layers.0.w opt.m.layers.1.w opt.v.layers.0.w opt.v.layers.1.w";
    QTest::newRow("gradients") << "grad.*.b"
                               << "grad.layers.0.b grad.layers.1.b";
    QTest::newRow("an input by its name") << "x"
                                          << "x";
    QTest::newRow("inputs by no glob") << "?"
                                       << "";
    QTest::newRow("the scalar by its name") << "opt.step"
                                            << "opt.step";
    QTest::newRow("activations") << "act.layers.0*"
                                 << "act.layers.0 act.layers.0.activated";
}

void TestStudy::globs()
{
    QFETCH(QString, glob);
    QFETCH(QString, caught);
    Study study;
    study.model = MlpModel{{4, 4, 4}};
    study.optimizer = AdamOptimizer{};
    QStringList names;
    for (const StudyArray& array : studyArrays(study)) {
        if (globCatches(glob.toStdString(), array))
            names << tests::text(array.name);
    }
    QCOMPARE(names.join(' '), caught);
}

void TestStudy::rules()
{
    // By hand: layers.0.w is 12x16 (192 elements), layers.1.w 16x6 (96), layers.2.w 6x9 (54); fsdp has 4 devices.
    const Study study = read("meshwright: 1\nmesh: {fsdp: 4}\nmodel: {mlp: {layers: [12, 16, 6, 9], bias: false}}\nbatch: 8\n"
                             "sharding: {layers.2.w: P(), match: [{path: 'layers.0.*', min_elements: 193, spec: []}, "
                             "{path: '*.w', divisible: largest_dim, spec: [fsdp]}, {path: '*', spec: []}]}\n");
    QStringList lines;
    for (const AssignedSpec& one : assignedSpecs(study))
        lines << tests::text(fmt::format("{} {} {}", one.array.name, specText(one.spec), one.path));
    QCOMPARE(lines.join('\n'),
        "layers.0.w P(None, 'fsdp') sharding.match[1]\n"
        "layers.1.w P('fsdp',) sharding.match[1]\n"
        "layers.2.w P() sharding.layers.2.w");
}

namespace {

/// The specs that logical axis rules give, a line each.
QString ruledSpecs(const Study& study)
{
    QStringList lines;
    for (const AssignedSpec& one : assignedSpecs(study)) {
        if (one.path == "sharding.rules")
            lines << tests::text(one.array.name + " " + specText(one.spec));
    }
    return lines.join('\n');
}

} // namespace

/// Linen's semantics on the names batch, embed and hidden; specs by name and match rules come first.
void TestStudy::logicalRules()
{
    const std::string text = "meshwright: 1\nmesh: {data: 2, model: 2}\nmodel: {mlp: {layers: [8, 16, 8]}}\nbatch: 8\n"
                             "sharding: {x: P(), match: [{path: '*.1.b', spec: []}], rules: RULES}\n";
    const auto with = [&](const std::string& rules) {
        std::string whole = text;
        return whole.replace(whole.find("RULES"), 5, rules);
    };
    const Study study = read(with("[[batch, data], [hidden, model], [embed, [data, model]], [embed, data]]"));
    // layers.0.w is (embed, hidden): hidden takes model, so embed's first rule is refused and the second applies.
    QCOMPARE(ruledSpecs(study),
        "layers.0.w P('data', 'model')\n"
        "layers.0.b P('model',)\n"
        "layers.1.w P('model', 'data')\n"
        "y P('data', None)\n"
        "act.layers.0 P('data', 'model')\n"
        "act.layers.0.activated P('data', 'model')\n"
        "act.layers.1 P('data', None)");
    const auto assigned = assignedSpecs(study);
    QCOMPARE(tests::text(assigned.front().trace.at(1).text),
        QString("rule 3 (embed -> [data, model]): refused for dim 0 (embed), model is used by dim 1 (hidden)"));
    QCOMPARE(study, read(writeStudy(study)));

    // A spec may be typed in any notation.
    const Study typed = read(with("[]"), {"sharding.x='[{\"data\"}, {}]'", "sharding.y='[Replicate(), Shard(1)]'"});
    QCOMPARE(specText(typed.sharding.entries.front().spec), std::string("P('data', None)"));
    QCOMPARE(specText(typed.sharding.entries.back().spec), std::string("P(None, 'model')"));

    const Study maxText = read(with("maxtext"), {"mesh={data: 2, fsdp: 2, tensor: 2}"});
    QCOMPARE(ruledSpecs(maxText).split('\n').first(), QString("layers.0.w P('fsdp', 'tensor')"));
    QVERIFY(ruledSpecs(maxText).contains("act.layers.0 P(('data', 'fsdp'), 'tensor')"));
    QCOMPARE(maxText, read(writeStudy(maxText)));

    const auto unknown = readStudy(with("maxtxt"), "s.yaml");
    QCOMPARE(tests::idsOf(unknown), QString("MW1423"));
    QVERIFY(tests::described(unknown).contains("maxtext"));
    const Problems unused = examineStudy(with("[[batch, data], [heads, model]]"), "s.yaml");
    QCOMPARE(unused.size(), std::size_t{1});
    QCOMPARE(tests::text(unused.front().message), QString("the rule for the logical axis heads applies to nothing"));
}

void TestStudy::logicalNames_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("kind");
    QTest::addColumn<std::vector<DimRole>>("roles");
    QTest::addColumn<QString>("own");
    QTest::addColumn<QString>("maxText");
    const auto row
        = [](const char* name, StudyArray::Kind kind, const std::vector<DimRole>& roles, const char* own, const char* maxText) {
              QTest::newRow(name) << name << static_cast<int>(kind) << roles << own << maxText;
          };
    using Kind = StudyArray::Kind;
    row("layers.1.w", Kind::Parameter, {DimRole::LayerInputs, DimRole::LayerOutputs}, "hidden embed", "mlp embed");
    row("x", Kind::Input, {DimRole::Batch, DimRole::Sequence}, "batch length", "activation_batch activation_length");
    row("layers.attention.q.w", Kind::Parameter, {DimRole::Layers, DimRole::Hidden, DimRole::Heads, DimRole::HeadSize},
        "layers embed heads kv", "layers embed heads kv");
    row("layers.attention.k.w", Kind::Parameter, {DimRole::Layers, DimRole::Hidden, DimRole::KeyValueHeads, DimRole::HeadSize},
        "layers embed kv_heads kv", "layers embed kv_heads kv");
    row("layers.ffn.norm.scale", Kind::Parameter, {DimRole::Layers, DimRole::Hidden}, "layers embed", "layers norm");
    row("layers.experts.up.w", Kind::Parameter, {DimRole::Layers, DimRole::Experts, DimRole::Hidden, DimRole::ExpertFfn},
        "layers exp embed mlp", "layers exp embed_no_exp mlp");
    row("embedding.w", Kind::Parameter, {DimRole::Vocabulary, DimRole::Hidden}, "vocab embed", "vocab embed");
    row("positions.w", Kind::Parameter, {DimRole::Positions, DimRole::Hidden}, "positions embed", "- embed");
    row("act.layers", Kind::Activation, {DimRole::Batch, DimRole::Sequence, DimRole::Hidden}, "batch length embed",
        "activation_batch activation_norm_length activation_embed");
    row("act.logits", Kind::Activation, {DimRole::Batch, DimRole::Sequence, DimRole::Vocabulary}, "batch length vocab",
        "activation_embed_and_logits_batch activation_length_no_exp activation_vocab");
    row("other", Kind::Parameter, {DimRole::Tokens}, "-", "-");
}

void TestStudy::logicalNames()
{
    QFETCH(QString, name);
    QFETCH(int, kind);
    QFETCH(std::vector<DimRole>, roles);
    QFETCH(QString, own);
    QFETCH(QString, maxText);
    StudyArray array{name.toStdString(), static_cast<StudyArray::Kind>(kind), {}, {}};
    for (const DimRole role : roles)
        array.meaning.emplace_back(role, 1);
    const auto names = [&](const char* list) {
        QStringList words;
        for (const LogicalName& one : logicalNamesOf(array, list))
            words += one.name.empty() ? QString("-") : tests::text(one.name);
        return words.join(' ');
    };
    QCOMPARE(names(""), own);
    QCOMPARE(names("maxtext"), maxText);
    // MaxText has a rule for each of its names.
    for (const QString& word : maxText.split(' ')) {
        const LogicalRules& rules = findLogicalRuleList("maxtext")->rules;
        QVERIFY2(word == "-"
                || std::any_of(
                    rules.begin(), rules.end(), [&](const LogicalRule& rule) { return tests::text(rule.name) == word; }),
            qPrintable(word));
    }
}

MESHWRIGHT_TEST(TestStudy)

} // namespace tst_study

#include "tst_study.moc"
