// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "sim/session/launch_source.h"
#include "sim/session/search_study.h"
#include "sim/session/study_exports.h"
#include "sim/session/verdict.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <algorithm>
#include <array>

namespace tst_launch_source {

using namespace meshwright;
using namespace meshwright::sim;
using namespace meshwright::tests;

/// Launch lines in place of studies.
class TestLaunchSource : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void otherTextsStay_data();
    void otherTextsStay();
    void settings_data();
    void settings();
    void refused_data();
    void refused();
    void hasNoLines();
    void answersLikeItsPlan();
    void exportsComeBack_data();
    void exportsComeBack();
    void mastersLieWithMoments();
};

namespace {

const Catalogue& catalogue()
{
    static const Catalogue catalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    return catalogue;
}

const std::string kLine = "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 "
                          "--num-attention-heads 8 --vocab-size 1024 "
                          "--seq-length 256 --micro-batch-size 1 --global-batch-size 32 --bf16 --tensor-model-parallel-size 2 "
                          "--use-distributed-optimizer";

Result<Study> studyOf(const std::string& line, std::vector<std::string> given, std::string file = "run.sh")
{
    std::vector<std::string> notes;
    const auto source = studySourceOf({line, std::move(file), std::move(given)}, catalogue(), notes);
    return source ? readStudy(source->text, source->file, source->settings) : source.error();
}

QString textOf(const Study& study)
{
    QStringList axes;
    for (const MeshAxis& axis : study.mesh)
        axes << QString("%1=%2").arg(text(axis.name)).arg(axis.size);
    return QString("%1 on %2, %3").arg(axes.join(' '), text(valueOf(machineOf(study, catalogue())).text()), text(study.stack));
}

} // namespace

void TestLaunchSource::otherTextsStay_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("text");
    QTest::newRow("a study") << "a.yaml"
                             << "meshwright: 1\nmodel: {mlp: {layers: [2, 2]}}\n";
    QTest::newRow("a program") << "a.mlir"
                               << "module {\n}\n";
    QTest::newRow("a study of a line") << "run.sh"
                                       << "# made from a launch line\nmeshwright: 1\n";
    QTest::newRow("nothing") << ""
                             << "";
}

void TestLaunchSource::otherTextsStay()
{
    QFETCH(const QString, file);
    QFETCH(const QString, text);
    std::vector<std::string> notes;
    const StudySource given{text.toStdString(), file.toStdString(), {"hardware=h100x8"}};
    QVERIFY(valueOf(studySourceOf(given, catalogue(), notes)) == given);
    QVERIFY(notes.empty());
}

void TestLaunchSource::settings_data()
{
    QTest::addColumn<QString>("line");
    QTest::addColumn<QStringList>("given");
    QTest::addColumn<QString>("said");

    const QString line = text(kLine);
    const QString maxText = "python3 -m MaxText.train base.yml model_name=llama3-8b per_device_batch_size=1";
    QTest::newRow("the chips of the line") << line << QStringList{"hardware=h100"}
                                           << "data=8 tensor=2 on H100 SXM 80GB, 2 hosts of 8 GPUs, nemo";
    QTest::newRow("others") << line << QStringList{"hardware=a100x32"}
                            << "data=16 tensor=2 on A100 SXM 80GB, 4 hosts of 8 GPUs, nemo";
    QTest::newRow("the last counts") << line << QStringList{"hardware=a100x32", "hardware=h100x16"}
                                     << "data=8 tensor=2 on H100 SXM 80GB, 2 hosts of 8 GPUs, nemo";
    QTest::newRow("another stack") << line << QStringList{"hardware=h100x16", "stack=megatron"}
                                   << "data=8 tensor=2 on H100 SXM 80GB, 2 hosts of 8 GPUs, megatron";
    QTest::newRow("Megatron-LM's own layers") << line + " --transformer-impl local" << QStringList{"hardware=h100"}
                                              << "data=8 tensor=2 on H100 SXM 80GB, 2 hosts of 8 GPUs, megatron";
    QTest::newRow("with flash attention") << line + " --transformer-impl local --use-flash-attn" << QStringList{"hardware=h100"}
                                          << "data=8 tensor=2 on H100 SXM 80GB, 2 hosts of 8 GPUs, nemo";
    QTest::newRow("TPUs") << maxText << QStringList{"hardware=v5e-64"} << "fsdp=64 on TPU v5e, 8x8 chips, no wraparound, maxtext";
    QTest::newRow("a topology that is compiled for")
        << maxText + " compile_topology=v5e-16 compile_topology_num_slices=2" << QStringList{}
        << "data=2 fsdp=16 on TPU v5e, 2 slices of 4x4 chips, no wraparound, maxtext";
    QTest::newRow("chips by MaxText's axes")
        << maxText + " ici_fsdp_parallelism=8 ici_tensor_parallelism=2" << QStringList{"hardware=v5e"}
        << "fsdp=8 tensor=2 on TPU v5e, 4x4 chips, no wraparound, maxtext";
    QTest::newRow("a setting over the study")
        << line << QStringList{"hardware=h100x16", "mesh.data=4"} << "data=4 tensor=2 on H100 SXM 80GB, 2 hosts of 8 GPUs, nemo";
}

void TestLaunchSource::settings()
{
    QFETCH(const QString, line);
    QFETCH(const QStringList, given);
    QFETCH(const QString, said);
    std::vector<std::string> settings;
    for (const QString& setting : given)
        settings.push_back(setting.toStdString());
    const auto study = studyOf(line.toStdString(), settings);
    QVERIFY2(study, qPrintable(described(study)));
    QCOMPARE(textOf(*study), said);
}

void TestLaunchSource::refused_data()
{
    QTest::addColumn<QStringList>("given");
    QTest::addColumn<QString>("id");
    QTest::newRow("no chips") << QStringList{} << "MW1494";
    QTest::newRow("an unknown chip") << QStringList{"hardware=h1000x8"} << "MW1701";
    QTest::newRow("an unknown stack") << QStringList{"hardware=h100x16", "stack=megatrom"} << "MW1903";
    QTest::newRow("chips that its degrees do not divide") << QStringList{"hardware=h100x9"} << "MW1496";
    QTest::newRow("no such configuration") << QStringList{"hardware=h100x16", "model.transformer.config=none.json"} << "MW1001";
}

void TestLaunchSource::refused()
{
    QFETCH(const QStringList, given);
    QFETCH(const QString, id);
    std::vector<std::string> settings;
    for (const QString& setting : given)
        settings.push_back(setting.toStdString());
    QCOMPARE(idsOf(studyOf(kLine, settings)), id);
}

/// What is wrong with the study has no line of the script, which is another text.
void TestLaunchSource::hasNoLines()
{
    std::vector<std::string> notes;
    const auto source = valueOf(studySourceOf({kLine, "run.sh", {"hardware=h100x16"}}, catalogue(), notes));
    QVERIFY(!notes.empty());
    QVERIFY(!isProgramText(source.file, source.text));
    StudySource wrong = source;
    wrong.settings = {"mesh.data=3"};
    const Verdict verdict = verdictOf(wrong, catalogue(), false);
    QVERIFY(hasErrors(verdict.problems));
    for (const Problem& problem : verdict.problems)
        QVERIFY2(problem.place.line == 0, describe(problem).c_str());
}

/// The line that Meshwright writes for a plan is simulated to the digits of the plan's study.
void TestLaunchSource::answersLikeItsPlan()
{
    std::vector<std::string> notes;
    const auto source = valueOf(studySourceOf({kLine, "run.sh", {"hardware=h100x16"}}, catalogue(), notes));
    const Study study = valueOf(readStudy(source.text, source.file));
    const FoundPlan plan = valueOf(planOf(study, catalogue(), valueOf(defaultCalibration())));
    const auto commands = valueOf(commandsOf(study, plan, catalogue(), valueOf(defaultCalibration())));
    const auto megatron = std::ranges::find(commands, "megatron", &StudyExport::to);
    QVERIFY2(!megatron->text.empty(), megatron->whyNot.c_str());
    const Study again = valueOf(studyOf(megatron->text, {"hardware=h100x16"}));
    const auto first = simulateStudy(study, catalogue(), {}, false);
    const auto second = simulateStudy(again, catalogue(), {}, false);
    QVERIFY2(first && second, qPrintable(described(first) + described(second)));
    QCOMPARE(second->simulation.stepSeconds, first->simulation.stepSeconds);
    QCOMPARE(second->simulation.peakBytes, first->simulation.peakBytes);
}

void TestLaunchSource::exportsComeBack_data()
{
    QTest::addColumn<QString>("framework");
    QTest::addColumn<QString>("line");
    const auto megatron
        = [](const char* name, const char* options) { QTest::newRow(name) << "megatron" << text(kLine) + options; };
    megatron("a distributed optimizer", "");
    megatron("its own layers", " --transformer-impl local");
    megatron("a ring", " --context-parallel-size 2");
    megatron("heads over context ranks", " --context-parallel-size 2 --cp-comm-type a2a");
    megatron("keys and values gathered", " --context-parallel-size 2 --cp-comm-type all_gather");
    megatron("another optimizer", " --optimizer sgd --sgd-momentum 0");
    megatron("another optimizer with momentum", " --optimizer sgd --sgd-momentum 0.5");
    megatron("gradients of 16 bits", " --grad-reduce-in-bf16");
    const QString maxText = "python3 -m MaxText.train base.yml hardware=gpu per_device_batch_size=4 dcn_data_parallelism=2 ";
    QTest::newRow("MaxText's weights") << "maxtext" << maxText + "weight_dtype=bfloat16";
    QTest::newRow("MaxText's context") << "maxtext" << maxText + "ici_context_parallelism=2";
    QTest::newRow("MaxText's ring") << "maxtext" << maxText + "ici_context_parallelism=2 context_parallel_strategy=ring";
    QTest::newRow("MaxText's optimizer") << "maxtext" << maxText + "opt_type=sgd";
}

/// The study of a line, written as a line again, is that study.
void TestLaunchSource::exportsComeBack()
{
    QFETCH(const QString, framework);
    QFETCH(const QString, line);
    const auto study = studyOf(line.toStdString(), {"hardware=h100x16"});
    QVERIFY2(study, qPrintable(described(study)));
    const auto plan = planOf(*study, catalogue(), valueOf(defaultCalibration()));
    QVERIFY2(plan, qPrintable(described(plan)));
    const auto commands = valueOf(commandsOf(*study, *plan, catalogue(), valueOf(defaultCalibration())));
    const auto command = std::ranges::find(commands, framework.toStdString(), &StudyExport::to);
    QVERIFY2(!command->text.empty(), command->whyNot.c_str());
    const auto again = studyOf(command->text, {"hardware=h100x16"});
    QVERIFY2(again, qPrintable(described(again)));
    QCOMPARE(text(writeStudy(*again)), text(writeStudy(*study)));
}

/// Megatron's distributed optimizer splits whatever states there are, however many microbatches a step has.
void TestLaunchSource::mastersLieWithMoments()
{
    for (const char* batch : {"8", "32"}) {
        const Study study = valueOf(studyOf(kLine + " --global-batch-size " + batch, {"hardware=h100x16"}));
        const auto specOf = [&](std::string_view array) {
            const auto entry = std::ranges::find(study.sharding.entries, array, &ShardingEntry::name);
            return entry == study.sharding.entries.end() ? std::string() : specText(entry->spec);
        };
        QVERIFY(!specOf("opt.m.layers.ffn.up.w").empty());
        QCOMPARE(specOf("opt.master.layers.ffn.up.w"), specOf("opt.m.layers.ffn.up.w"));
    }
}

MESHWRIGHT_TEST(TestLaunchSource)

} // namespace tst_launch_source

#include "tst_launch_source.moc"
