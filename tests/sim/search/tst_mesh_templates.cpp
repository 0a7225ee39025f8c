// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/study.h"
#include "sim/search/mesh_templates.h"
#include "sim/search/search_request.h"
#include "tests/test_class.h"

#include <array>

namespace tst_mesh_templates {

using namespace meshwright;
using namespace meshwright::sim;

/// The plans with a name that a study's model can have on the study's own mesh.
class TestMeshTemplates : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void names_data();
    void names();
    void specs_data();
    void specs();
    void byName_data();
    void byName();
};

namespace {

const std::string kTransformer
    = "model: {transformer: {layers: 4, hidden: 32, heads: 4, ffn: 64, vocabulary: 32, position: none}}\n"
      "sequence: 16\nbatch: 16\noptimizer: {adam: {learning_rate: 1.0e-3}}\n";
const std::string kExperts
    = "model: {transformer: {layers: 2, hidden: 32, heads: 4, ffn: 64, experts: 4, experts_per_token: 2, vocabulary: 32, "
      "position: none}}\nsequence: 16\nbatch: 16\noptimizer: {adam: {learning_rate: 1.0e-3}}\n";
const std::string kMlp = "model: {mlp: {layers: [64, 32, 32, 10], activation: relu, loss: cross_entropy}}\nbatch: 16\n";

Study studyOf(const std::string& mesh, const std::string& rest, std::span<const std::string> settings = {})
{
    return valueOf(readStudy("meshwright: 1\nmesh: {" + mesh + "}\n" + rest, "study.yaml", settings));
}

QStringList namesOf(const std::vector<MeshTemplate>& templates)
{
    QStringList names;
    for (const MeshTemplate& one : templates)
        names.push_back(QString::fromStdString(one.name));
    return names;
}

} // namespace

void TestMeshTemplates::names_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("rest");
    QTest::addColumn<QStringList>("names");
    const auto transformer = QString::fromStdString(kTransformer);
    const auto mlp = QString::fromStdString(kMlp);

    QTest::newRow("one device") << "data: 1" << transformer << QStringList();
    QTest::newRow("data alone") << "data: 8" << transformer << QStringList{"DDP", "ZeRO-1", "ZeRO-2", "FSDP"};
    QTest::newRow("two axes for the batch") << "replica: 2, fsdp: 4" << transformer
                                            << QStringList{"DDP", "ZeRO-1", "ZeRO-2", "FSDP", "HSDP fsdp=4"};
    QTest::newRow("data and tensor") << "data: 4, model: 2" << transformer
                                     << QStringList{
                                            "DDP + TP 2", "ZeRO-1 + TP 2", "ZeRO-2 + TP 2", "FSDP + TP 2", "Megatron + TP 2"};
    QTest::newRow("tensor alone") << "tp: 4" << transformer << QStringList{"TP 4"};
    QTest::newRow("no such number of heads") << "data: 2, tp: 8" << transformer << QStringList();
    QTest::newRow("no such batch") << "data: 32" << transformer << QStringList();
    QTest::newRow("a pipeline") << "pipe: 2, data: 4" << transformer
                                << QStringList{"DDP + PP 2", "ZeRO-1 + PP 2", "ZeRO-2 + PP 2", "FSDP + PP 2"};
    QTest::newRow("stages of unequal length")
        << "pipe: 3, data: 2" << transformer << QStringList{"DDP + PP 3", "ZeRO-1 + PP 3", "ZeRO-2 + PP 3", "FSDP + PP 3"};
    QTest::newRow("more stages than layers") << "pipe: 8, data: 2" << transformer << QStringList();
    QTest::newRow("names that say nothing") << "x: 2, y: 4" << mlp
                                            << QStringList{"DDP", "FSDP", "HSDP fsdp=4", "DDP + TP 4", "FSDP + TP 4"};
    QTest::newRow("no states to split") << "data: 4, model: 2" << mlp << QStringList{"DDP + TP 2", "FSDP + TP 2"};
    QTest::newRow("states of an MLP") << "data: 4" << mlp + "optimizer: {adam: {learning_rate: 1.0e-3}}\n"
                                      << QStringList{"DDP", "ZeRO-1", "ZeRO-2", "FSDP"};
    QTest::newRow("experts") << "data: 2, expert: 2" << QString::fromStdString(kExperts)
                             << QStringList{"DDP + EP 2", "ZeRO-1 + EP 2", "ZeRO-2 + EP 2", "FSDP + EP 2"};
    QTest::newRow("no experts for the axis") << "expert: 4" << transformer << QStringList{"DDP", "ZeRO-1", "ZeRO-2", "FSDP"};
    QTest::newRow("specs of its own") << "data: 4" << mlp + "sharding: {x: \"P('data', None)\"}\n" << QStringList();
    QTest::newRow("a rule of its own") << "data: 4" << mlp + "sharding: {match: [{path: \"*\", spec: []}]}\n" << QStringList();
}

void TestMeshTemplates::names()
{
    QFETCH(QString, mesh);
    QFETCH(QString, rest);
    QFETCH(QStringList, names);
    const Study study = studyOf(mesh.toStdString(), rest.toStdString());
    const std::vector<MeshTemplate> templates = meshTemplates(study);
    QCOMPARE(namesOf(templates), names);
    for (const MeshTemplate& one : templates) {
        QVERIFY2(parseFixed(std::array{one.name}), one.name.c_str()); // the search takes the same names
        const Study planned = studyOf(mesh.toStdString(), rest.toStdString(), one.settings);
        QVERIFY2(!hasErrors(checkStudy(planned)), one.name.c_str());
        QVERIFY(meshTemplates(planned).empty());
    }
}

void TestMeshTemplates::specs_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("rest");
    QTest::addColumn<QString>("plan");
    QTest::addColumn<QString>("array");
    QTest::addColumn<QString>("spec");
    const auto transformer = QString::fromStdString(kTransformer);
    const auto mlp = QString::fromStdString(kMlp);

    QTest::newRow("batch over both") << "dp: 2, fsdp: 4" << transformer << "HSDP"
                                     << "x"
                                     << "P(('dp', 'fsdp'), None)";
    QTest::newRow("weights over one") << "dp: 2, fsdp: 4" << transformer << "HSDP"
                                      << "layers.ffn.up.w"
                                      << "P(None, 'fsdp', None)";
    QTest::newRow("weights over both") << "dp: 2, fsdp: 4" << transformer << "FSDP"
                                       << "layers.ffn.up.w"
                                       << "P(None, ('dp', 'fsdp'), None)";
    QTest::newRow("states") << "dp: 4" << transformer << "zero-1"
                            << "opt.m.layers.ffn.up.w"
                            << "P(None, 'dp', None)";
    const auto withOptimizer
        = [&](const char* optimizer) { return QString(transformer).replace("{adam: {learning_rate: 1.0e-3}}", optimizer); };
    QTest::newRow("masters") << "dp: 4"
                             << withOptimizer("{adam: {masters: true}}")
            + "dtype: {parameters: bf16, matmul: bf16, activations: bf16}\n"
                             << "zero-1"
                             << "opt.master.layers.ffn.up.w"
                             << "P(None, 'dp', None)";
    QTest::newRow("one moment") << "dp: 4" << withOptimizer("{sgd: {momentum: 0.5}}") << "zero-1"
                                << "opt.m.layers.ffn.up.w"
                                << "P(None, 'dp', None)";
    QTest::newRow("logits between parts of the sequence") << "data: 2, model: 4" << transformer << "megatron"
                                                          << "act.logits"
                                                          << "P('data', None, 'model')";
    QTest::newRow("gradients") << "dp: 4" << transformer << "zero-2"
                               << "grad.layers.ffn.up.w"
                               << "P(None, 'dp', None)";
    QTest::newRow("heads") << "data: 2, model: 4" << transformer << "DDP"
                           << "layers.attention.q.w"
                           << "P(None, None, 'model', None)";
    QTest::newRow("sequence") << "data: 2, model: 4" << transformer << "megatron"
                              << "act.layers"
                              << "P('data', 'model', None)";
    // Layers 0 and 1 are a pair; the third has no partner.
    QTest::newRow("first of a pair") << "data: 2, model: 2" << mlp << "DDP"
                                     << "layers.0.w"
                                     << "P(None, 'model')";
    QTest::newRow("its bias") << "data: 2, model: 2" << mlp << "DDP"
                              << "layers.0.b"
                              << "P('model',)";
    QTest::newRow("second of a pair") << "data: 2, model: 2" << mlp << "DDP"
                                      << "layers.1.w"
                                      << "P('model', None)";
    QTest::newRow("without a partner") << "data: 2, model: 2" << mlp << "DDP"
                                       << "layers.2.w"
                                       << "P(None, None)";
    QTest::newRow("pairs of split weights") << "data: 2, model: 2" << mlp << "FSDP"
                                            << "layers.1.w"
                                            << "P(('model', 'data'), None)";
}

void TestMeshTemplates::specs()
{
    QFETCH(QString, mesh);
    QFETCH(QString, rest);
    QFETCH(QString, plan);
    QFETCH(QString, array);
    QFETCH(QString, spec);
    const auto found = templateNamed(meshTemplates(studyOf(mesh.toStdString(), rest.toStdString())), plan.toStdString());
    QVERIFY2(found, found ? "" : found.error().front().message.c_str());
    for (const auto& [name, text] : found->specs) {
        if (name == array.toStdString()) {
            QCOMPARE(QString::fromStdString(text), spec);
            return;
        }
    }
    QFAIL("no spec of this array");
}

void TestMeshTemplates::byName_data()
{
    QTest::addColumn<QString>("plan");
    QTest::addColumn<QString>("found"); ///< or what is wrong

    QTest::newRow("its name") << "FSDP + TP 2"
                              << "FSDP + TP 2";
    QTest::newRow("other letters") << "fsdp,tp=2"
                                   << "FSDP + TP 2";
    QTest::newRow("a part") << "megatron"
                            << "Megatron + TP 2";
    QTest::newRow("a part of several") << "TP 2"
                                       << "\"TP 2\" is 5 plans on this mesh";
    QTest::newRow("another degree") << "FSDP + TP 4"
                                    << "\"FSDP + TP 4\" is not a plan that fits this model and mesh";
    QTest::newRow("nothing") << ""
                             << "\"\" is 5 plans on this mesh";
}

void TestMeshTemplates::byName()
{
    QFETCH(QString, plan);
    QFETCH(QString, found);
    const auto named = templateNamed(meshTemplates(studyOf("data: 4, model: 2", kTransformer)), plan.toStdString());
    QCOMPARE(QString::fromStdString(named ? named->name : named.error().front().message), found);
    if (!named)
        QVERIFY(QString::fromStdString(named.error().front().fix).startsWith("one of: DDP + TP 2; "));
}

MESHWRIGHT_TEST(TestMeshTemplates)

} // namespace tst_mesh_templates

#include "tst_mesh_templates.moc"
