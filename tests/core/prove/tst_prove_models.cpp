// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/prove.h"

#include "core/partition/complex_pairs.h"
#include "core/partition/partition.h"
#include "core/program/verify.h"
#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/text/program_text.h"
#include "sim/session/engine.h"
#include "tests/core/prove/why_not.h"
#include "tests/goldens/case_reader.h"
#include "tests/test_class.h"

#include <QDir>

#include <set>

namespace tst_prove_models {

using namespace meshwright;
using namespace meshwright::tests;

/// What the project has of models and programs is proved: every model, split in the usual ways, and the programs that its tests read.
class TestProveModels : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void models_data();
    void models();
    void programs_data();
    void programs();
    void goldens_data();
    void goldens();
    void cleanupTestCase();

private:
    void judge(const PartitionedProgram& made);

    std::set<std::string> m_proved; ///< ops of device programs that were proved
    std::set<std::string> m_met; ///< ops of all
};

namespace {

/// How a transformer is split: a mesh, and the shardings of a study.
struct Way {
    const char* name;
    const char* mesh;
    std::string sharding;
    bool ofExperts = false; ///< only of models that have some
};

std::vector<Way> ways()
{
    const auto entries = [](const char* batch, const char* more = "") {
        return fmt::format("  x: P({0})\n  y: P({0})\n{1}  match:\n", batch, more);
    };
    const std::string tensor = "    - {path: \"*.down.w\", divisible: largest_dim, spec: [tensor]}\n"
                               "    - {path: \"*attention.o.w\", spec: [null, tensor, null, null]}\n"
                               "    - {path: \"*attention.[qkv].w\", spec: [null, null, tensor, null]}\n"
                               "    - {path: \"*attention.[qkv].b\", spec: [null, tensor, null]}\n"
                               "    - {path: \"*ffn.up.w\", spec: [null, null, tensor]}\n"
                               "    - {path: \"*ffn.gate.w\", spec: [null, null, tensor]}\n"
                               "    - {path: \"*experts.up.w\", spec: [null, null, null, tensor]}\n"
                               "    - {path: \"*experts.gate.w\", spec: [null, null, null, tensor]}\n"
                               "    - {path: \"embedding.w\", divisible: largest_dim, spec: [tensor]}\n"
                               "    - {path: \"head.w\", divisible: largest_dim, spec: [tensor]}\n";
    const std::string rest = "    - {path: \"*\", spec: []}\n";
    const char* stream = "  act.embedding: P('data', 'tensor', None)\n"
                         "  act.layers: P('data', 'tensor', None)\n"
                         "  act.layers.attention.q: P('data', None, 'tensor', None)\n"
                         "  act.layers.attention: P('data', 'tensor', None)\n";
    // gpt2's vocabulary is odd: what has it as a dimension has an entry of its own.
    return {{"data", "{data: 8}", entries("'data', None") + rest},
        {"fully sharded", "{fsdp: 8}",
            entries("'fsdp', None") + "    - {path: \"*\", divisible: largest_dim, spec: [fsdp]}\n" + rest},
        {"tensor", "{tensor: 4}", entries("None, None") + tensor + rest},
        {"data and tensor", "{data: 2, tensor: 4}", entries("'data', None") + tensor + rest},
        {"sequence", "{data: 2, tensor: 4}", entries("'data', None", stream) + tensor + rest},
        {"context", "{data: 2, context: 4}", entries("'data', 'context'") + rest},
        {"logical axes", "{data: 2, fsdp: 2, tensor: 2}",
            "  embedding.w: P(None, 'fsdp')\n  act.logits: P(('data', 'fsdp'), None, None)\n  rules: maxtext\n"},
        {"experts", "{data: 2, expert: 4}",
            entries("'data', None") + "    - {path: \"*experts.up.w\", spec: [null, expert, null, null]}\n"
                + "    - {path: \"*experts.gate.w\", spec: [null, expert, null, null]}\n"
                + "    - {path: \"*experts.down.w\", spec: [null, expert, null, null]}\n" + rest,
            true}};
}

/// Programs of the goldens that are not proved, and why. One that is proved must not be here.
const std::map<std::string, std::string> kUnproved = {
    {"propagation-b21449fb", "only a rule of propagation says what its custom call does"},
    {"propagation-83eecfaf", "only a rule of propagation says what its custom call does"},
    {"propagation-4e4c7175", "only a rule of propagation says what its custom call does"},
    {"propagation-d5d4ae38", "nothing is known of its opaque op"},
    {"propagation-8f3c86ee", "nothing is known of its opaque op"},
    {"insert_reshards-5db430ec", "its collective takes several arrays"},
    {"insert_reshards-14881e93", "its collective takes several arrays"},
    {"insert_reshards-f76db52a", "its collective_broadcast takes pieces"},
    {"insert_reshards-69e35323", "its matrices are split"},
    {"insert_reshards-87f0ad26", "its matrices are split"},
    {"insert_reshards-f619217e", "it looks for the largest elements of pieces"},
    {"insert_reshards-faea4bc9", "it looks for the largest elements of pieces"},
    {"insert_reshards-8ed6759e", "it looks for the largest elements of pieces"},
};

Result<PartitionedProgram> partitioned(Program program)
{
    for (Function& function : program.functions) {
        if (!hasComplexValues(function))
            continue;
        auto pairs = withComplexPairs(function);
        if (!pairs)
            return pairs.error();
        function = *std::move(pairs);
    }
    return propagateAndPartition(std::move(program));
}

void addOps(const DeviceProgram& program, std::set<std::string>& names)
{
    for (const DeviceStage& stage : program.stages) {
        for (const DeviceFunction& function : stage.functions) {
            for (const Op& op : function.function.ops)
                names.emplace(opName(op));
        }
    }
}

} // namespace

void TestProveModels::judge(const PartitionedProgram& made)
{
    addOps(made.device, m_met);
    const Proof proof = prove(made.propagated, made.device);
    QVERIFY2(proof.isProved(), whyNot(proof).c_str());
    addOps(made.device, m_proved);
}

void TestProveModels::models_data()
{
    QTest::addColumn<QString>("study");
    const QDir models(QString::fromStdString((resourcesDirectory() / "models").string()));
    for (const QString& file : models.entryList({"*.json"}, QDir::Files, QDir::Name)) {
        const std::string model = file.chopped(5).toStdString();
        for (const Way& way : ways()) {
            if (way.ofExperts && !model.starts_with("mixtral") && !model.starts_with("deepseek"))
                continue;
            const std::string study = fmt::format("meshwright: 1\nname: {}, {}\nhardware: {{chip: h100, hosts: 1}}\nmesh: {}\n"
                                                  "model: {{transformer: {{config: {}}}}}\nsequence: 1024\nbatch: 16\n"
                                                  "dtype: {{parameters: f32, matmul: bf16, activations: bf16}}\nsharding:\n{}"
                                                  "optimizer: {{adam: {{learning_rate: 1.0e-4}}}}\n"
                                                  "train: {{steps: 1, seed: 0, data: random}}\n",
                model, way.name, way.mesh, model, way.sharding);
            QTest::newRow(fmt::format("{}, {}", model, way.name).c_str()) << QString::fromStdString(study);
        }
    }
}

void TestProveModels::models()
{
    QFETCH(QString, study);
    const auto read = readStudy(study.toStdString(), "study.yaml");
    QVERIFY2(read, read ? "" : describe(read.error()).c_str());
    const auto built = sim::buildPhase(*read);
    QVERIFY2(built, built ? "" : describe(built.error()).c_str());
    judge(built->partitioned);
}

void TestProveModels::programs_data()
{
    QTest::addColumn<QString>("path");
    for (const char* folder : {"resources/examples", "tests/core/text/programs", "tests/fuzz/corpus/program"}) {
        const QDir files(QString(MESHWRIGHT_SOURCE_DIR) + "/" + folder);
        for (const QString& name : files.entryList({"*.mlir"}, QDir::Files, QDir::Name))
            QTest::newRow(qPrintable(QString(folder) + "/" + name)) << files.filePath(name);
    }
}

void TestProveModels::programs()
{
    QFETCH(QString, path);
    const auto text = readFile(path.toStdString());
    QVERIFY(text);
    auto program = readProgram(*text, path.toStdString());
    if (!program || program->meshes.empty())
        QSKIP("it is no program on a mesh");
    const auto made = partitioned(*std::move(program));
    QVERIFY2(made, made ? "" : describe(made.error()).c_str());
    judge(*made);
}

void TestProveModels::goldens_data()
{
    QTest::addColumn<QString>("text");
    for (const char* name : {"propagation.json", "insert_reshards.json"}) {
        const auto text = readFile(std::filesystem::path(MESHWRIGHT_SOURCE_DIR) / "tests/goldens" / name);
        QVERIFY(text);
        const goldens::Json document = goldens::Json::parse(*text);
        for (const goldens::Json& golden : document.at("cases"))
            QTest::newRow(golden.at("id").get<std::string>().c_str()) << QString::fromStdString(golden.dump());
    }
}

void TestProveModels::goldens()
{
    QFETCH(QString, text);
    const goldens::Json golden = goldens::Json::parse(text.toStdString());
    goldens::CaseReader reader(golden);
    reader.read();
    reader.function.name = "main";
    if (!verify(reader.function, reader.meshes).empty())
        QSKIP("its program is not valid");
    Program program;
    program.meshes = reader.meshes;
    program.functions.push_back(reader.function);
    const auto made = partitioned(std::move(program));
    if (!made)
        QSKIP(describe(made.error()).c_str());
    if (const auto known = kUnproved.find(QTest::currentDataTag()); known != kUnproved.end()) {
        addOps(made->device, m_met);
        QVERIFY2(!prove(made->propagated, made->device).isProved(), "it is proved: take it out of the list");
        QSKIP(known->second.c_str());
    }
    judge(*made);
}

/// How many of the ops that occur have been proved somewhere.
void TestProveModels::cleanupTestCase()
{
    std::string missing;
    for (const std::string& name : m_met)
        missing += m_proved.contains(name) ? "" : " " + name;
    fmt::print(
        "{} of {} ops of device programs proved{}{}\n", m_proved.size(), m_met.size(), missing.empty() ? "" : "; not", missing);
}

MESHWRIGHT_TEST(TestProveModels)

} // namespace tst_prove_models

#include "tst_prove_models.moc"
