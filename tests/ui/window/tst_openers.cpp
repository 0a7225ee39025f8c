// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "sim/report/results.h"
#include "sim/report/trace.h"
#include "sim/session/report_of.h"
#include "tests/test_class.h"
#include "tests/ui/window/window_fixture.h"
#include "ui/explain/explain_view.h"
#include "ui/report/report_files.h"
#include "ui/report/report_view.h"
#include "ui/timeline/timeline_canvas.h"
#include "ui/timeline/timeline_view.h"
#include "ui/training/checkpoint_view.h"
#include "ui/why/compare_view.h"
#include "ui/window/openers.h"

namespace tst_openers {

using namespace meshwright;
using tests::WindowFixture;

/// A file is what its content says, whatever its name; and what is not a study is never written.
class TestOpeners : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void tellsFilesByTheirContent_data();
    void tellsFilesByTheirContent();
    void tellsEveryExample();
    void aModelBecomesAStudy_data();
    void aModelBecomesAStudy();
    void aLaunchLineBecomesAStudy();
    void launchLinesTakeTheDevicesTheyNeed_data();
    void launchLinesTakeTheDevicesTheyNeed();
    void launchLinesAreRefused_data();
    void launchLinesAreRefused();
    void aLogIsExplainedBesideTheStudy();
    void reportsAreOpened_data();
    void reportsAreOpened();
    void programsBecomeStudies();
    void aResultIsComparedWithTheStudy();
    void aReportOfNoStudyIsShown();
    void foldersOfCheckpointsAreOpened();
    void modelsAreNamedByTheirFiles_data();
    void modelsAreNamedByTheirFiles();
    void aTraceIsShownBelowTheStudy();
    void aTraceAloneHasAllRoom();
};

namespace {

const char* const kLlama = R"({"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 1024, "max_position_embeddings": 512})";
const char* const kGpt = R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 256, "n_layer": 2, "n_head": 4,
    "vocab_size": 1024, "n_positions": 512})";

/// {"traceEvents":[{"ph":"X","name":"a","ts":1682725898237042,"dur":40}]}, by gzip.
const char* const kCompressedTrace
    = "H4sIAAAAAAACA6tWKilKTE51LUvNKylWsoquVirIULJSilDSUcpLzE0FMhOBTJCUoZmFkbmRqYWlhZGxuYGJkY5SSmmRkpWJQW1sLQBMgdn+RgAAAA==";

QString writtenTo(const QTemporaryDir& folder, const QString& name, const QByteArray& content)
{
    const QString path = folder.filePath(name);
    return writeFileAtomically(path.toStdString(), content.toStdString()) ? path : QString();
}

} // namespace

void TestOpeners::tellsFilesByTheirContent_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<int>("as"); // -1: cannot be opened
    QTest::addColumn<QString>("says");

    const auto row = [](const char* what, const char* name, const QByteArray& content, ui::OpenAs as) {
        QTest::newRow(what) << name << content << static_cast<int>(as) << "";
    };
    const auto refused = [](const char* what, const char* name, const QByteArray& content, const char* says) {
        QTest::newRow(what) << name << content << -1 << says;
    };
    row("a study", "a.yaml", "meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\n", ui::OpenAs::Study);
    row("a study of another name", "study.txt", "# mine\nmeshwright: 1\n", ui::OpenAs::Study);
    row("a study in JSON", "study.json", R"({"meshwright": 1, "model": {"mlp": {"layers": [4, 2]}}})", ui::OpenAs::Study);
    row("a broken study", "a.yaml", "name: [\n", ui::OpenAs::Study);
    row("llama", "config.json", kLlama, ui::OpenAs::Model);
    row("gpt2", "model.txt", kGpt, ui::OpenAs::Model);
    row("a program", "step.mlir", "module {\n}\n", ui::OpenAs::Program);
    row("a program without its ending", "step.txt", "module @step {\n}\n", ui::OpenAs::Program);
    row("a report", "r.html", "<!DOCTYPE html>\n<html></html>\n", ui::OpenAs::Report);
    row("a log", "train.log", "RESOURCE_EXHAUSTED: Out of memory\n", ui::OpenAs::Messages);
    row("an error without an ending", "error", "ValueError: no\n", ui::OpenAs::Messages);
    row("a notebook", "n.ipynb", R"({"cells": [{"cell_type": "code", "source": ["1"]}]})", ui::OpenAs::Page);
    row("a notebook of another name", "n.json", R"({"cells": [], "nbformat": 4})", ui::OpenAs::Page);
    row("a page", "p.md", "# Sharding\n\n```python\nimport jax\n```\n", ui::OpenAs::Page);
    row("a script", "p.py", "import jax\n", ui::OpenAs::Page);
    row("a page as text", "p.txt", "In [1]:\nimport jax\n", ui::OpenAs::Page);
    row("a launch script", "run.sh", "torchrun pretrain_gpt.py --bf16\n", ui::OpenAs::Launch);
    row("a launch line that was copied", "line", "python3 -m MaxText.train base.yml steps=5\n", ui::OpenAs::Launch);
    row("torchtitan's TOML", "llama3_8b.toml", "[training]\nseq_len = 8192\n", ui::OpenAs::Launch);
    row("torchrun's message", "error.txt", "ChildFailedError:\npretrain_gpt.py FAILED\n", ui::OpenAs::Messages);
    row("a trace", "t.json", R"({"displayTimeUnit": "ms", "traceEvents": []})", ui::OpenAs::Trace);
    row("a trace that is a list", "t.txt", R"([{"ph": "X", "ts": 1, "dur": 2}])", ui::OpenAs::Trace);
    row("a compressed trace", "t.json.gz", QByteArray::fromBase64(kCompressedTrace), ui::OpenAs::Trace);
    row("a result", "main.json", R"({"schema": "meshwright.simulation/1", "meshwright": "0.1.0", "model": "mlp"})",
        ui::OpenAs::Result);
    row("a check", "check.json", R"({"schema": "meshwright.problems/1", "meshwright": "0.1.0"})", ui::OpenAs::Result);
    row("a manifest", "checkpoint.json", R"({"schema": "meshwright.checkpoint/1", "meshwright": "0.1.0"})",
        ui::OpenAs::Checkpoint);
    refused("other JSON", "package.json", R"({"name": "x"})", "a JSON document");
    refused("other YAML", "ci.yaml", "on: push\njobs: {}\n", "another program");
    refused("an archive", "a.zip", QByteArray("PK\x03\x04zzzz", 8), "ZIP archive");
    refused("compressed", "log.gz", QByteArray("\x1f\x8b\x08\x00", 4), "compressed");
    refused("binary", "a.out",
        QByteArray("\x7f"
                   "ELF\0\0\0",
            7),
        "binary");
    refused("nothing", "empty.txt", "", "empty");
}

void TestOpeners::tellsFilesByTheirContent()
{
    QFETCH(QString, name);
    QFETCH(QByteArray, content);
    QFETCH(int, as);
    QFETCH(QString, says);
    const QTemporaryDir folder;
    const auto found = ui::recognised(writtenTo(folder, name, content));
    if (as >= 0) {
        QVERIFY2(found, found ? "" : describe(found.error()).c_str());
        QCOMPARE(static_cast<int>(*found), as);
        return;
    }
    QVERIFY(!found);
    const Problem& problem = found.error().front();
    QCOMPARE(problem.id, std::string("MW1830"));
    QVERIFY2(problem.message.find(says.toStdString()) != std::string::npos, problem.message.c_str());
    for (const ui::Opener& opener : ui::openers())
        QVERIFY(problem.fix.find(opener.what) != std::string::npos);
}

void TestOpeners::tellsEveryExample()
{
    const QDir folder(QString::fromStdString((resourcesDirectory() / "examples").string()));
    const QStringList names = folder.entryList(QDir::Files);
    QVERIFY(names.size() > 30);
    for (const QString& name : names) {
        const auto found = ui::recognised(folder.filePath(name));
        QVERIFY2(found, qPrintable(name));
        QCOMPARE(*found, name.endsWith(".mlir") ? ui::OpenAs::Program : ui::OpenAs::Study);
    }
    QVERIFY(!ui::recognised(folder.path()));
    QVERIFY(!ui::recognised(folder.filePath("no such file")));
}

void TestOpeners::aModelBecomesAStudy_data()
{
    QTest::addColumn<QByteArray>("config");

    QTest::newRow("llama") << QByteArray(kLlama);
    QTest::newRow("gpt2") << QByteArray(kGpt);
}

void TestOpeners::aModelBecomesAStudy()
{
    QFETCH(QByteArray, config);
    WindowFixture fixture;
    fixture.window.show();
    const QString path = writtenTo(fixture.folder, "config.json", config);
    QVERIFY(fixture.window.openFile(path));
    QTRY_VERIFY(fixture.isShown());
    QVERIFY2(fixture.analysis()->simulated != nullptr, describe(fixture.analysis()->problems).c_str());
    QCOMPARE(fixture.analysis()->study->transformer()->config.hidden, 256);
    QVERIFY(!fixture.window.document().isModified()); // who only looks is asked nothing
    QVERIFY(fixture.window.document().path().isEmpty() && !fixture.window.document().hasFile()); // Save asks for a place
    fixture.window.document().change({"batch=16"}, "Edit the batch");
    QVERIFY(fixture.window.document().isModified());
    QCOMPARE(valueOf(readFile(path.toStdString())), config.toStdString());
    fixture.window.document().undoStack().setClean();
}

void TestOpeners::aLaunchLineBecomesAStudy()
{
    WindowFixture fixture;
    fixture.window.show();
    const QByteArray line = "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 2 --hidden-size 256 "
                            "--num-attention-heads 4 --vocab-size 1024 "
                            "--seq-length 128 --micro-batch-size 1 --global-batch-size 16 --bf16 --tensor-model-parallel-size 2 "
                            "--rampup-batch-size 1 1 1\n";
    const QString path = writtenTo(fixture.folder, "run.sh", line);
    QVERIFY(fixture.window.openFile(path));
    QTRY_VERIFY(fixture.isShown());
    QVERIFY2(fixture.analysis()->simulated != nullptr, describe(fixture.analysis()->problems).c_str());
    QCOMPARE(fixture.analysis()->mesh().deviceCount(), 16);
    const sim::StudySource& source = fixture.window.document().source();
    QVERIFY(source.text.starts_with("# The training that run.sh starts, on h100x16: the line does not say its chips.\n# "));
    QVERIFY(source.text.find("--rampup-batch-size") != std::string::npos); // what is not read
    QVERIFY(source.file.ends_with("run.yaml") && fixture.window.document().path().isEmpty());
    QCOMPARE(valueOf(readFile(path.toStdString())), line.toStdString());
    // What is wrong from now on is in the study's text, and has its line.
    fixture.window.document().change({"mesh.data=3"}, "Edit the mesh");
    QTRY_VERIFY(
        hasErrors(fixture.window.document().source() == fixture.analysis()->source ? fixture.analysis()->problems : Problems{}));
    fixture.window.document().undoStack().setClean();
}

void TestOpeners::launchLinesTakeTheDevicesTheyNeed_data()
{
    QTest::addColumn<QByteArray>("degrees");
    QTest::addColumn<QString>("machine");
    QTest::newRow("as many as it starts") << QByteArray("--tensor-model-parallel-size 4")
                                          << "h100x8: the line does not say its chips.";
    QTest::newRow("twice as many") << QByteArray("--tensor-model-parallel-size 4 --pipeline-model-parallel-size 4")
                                   << "h100x16, the fewest on which its degrees go: the line starts 8.";
    QTest::newRow("three times as many") << QByteArray("--tensor-model-parallel-size 4 --pipeline-model-parallel-size 6")
                                         << "h100x24, the fewest on which its degrees go: the line starts 8.";
}

/// Scripts that people share start one host, and have degrees for many.
void TestOpeners::launchLinesTakeTheDevicesTheyNeed()
{
    QFETCH(const QByteArray, degrees);
    QFETCH(const QString, machine);
    const QTemporaryDir folder;
    const QByteArray line
        = "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 12 --hidden-size 256 --num-attention-heads 4 "
          "--vocab-size 1024 --seq-length 128 --micro-batch-size 1 --global-batch-size 16 --bf16 "
        + degrees + "\n";
    const sim::StudySource source = valueOf(ui::studyOfLaunch(writtenTo(folder, "run.sh", line)));
    const QString first = QString::fromStdString(source.text.substr(0, source.text.find('\n')));
    QCOMPARE(first, "# The training that run.sh starts, on " + machine);
}

void TestOpeners::launchLinesAreRefused_data()
{
    QTest::addColumn<QByteArray>("line");
    QTest::addColumn<QString>("id");
    QTest::newRow("no training") << QByteArray("ls -l\n") << "MW1494";
    QTest::newRow("a value that is none") << QByteArray(
        "torchrun -m torchtitan.train --module llama3 --config llama3_8b --parallelism.tensor_parallel_degree x\n")
                                          << "MW1495";
    QTest::newRow("degrees that do not fit")
        << QByteArray("torchrun --nproc-per-node 8 -m torchtitan.train --module llama3 --config llama3_8b "
                      "--parallelism.tensor_parallel_degree 3\n")
        << "MW1496";
}

void TestOpeners::launchLinesAreRefused()
{
    QFETCH(const QByteArray, line);
    QFETCH(const QString, id);
    const QTemporaryDir folder;
    const auto study = ui::studyOfLaunch(writtenTo(folder, "run.sh", line));
    QVERIFY(!study);
    QCOMPARE(QString::fromStdString(study.error().front().id), id);
}

void TestOpeners::aLogIsExplainedBesideTheStudy()
{
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openExample(fixture.example("digits.yaml"));
    QTRY_VERIFY(fixture.isShown());
    fixture.window.document().change({"batch=64"}, "Edit the batch");
    const QString path = writtenTo(
        fixture.folder, "train.log", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.\n");
    QVERIFY(fixture.window.openFile(path)); // and asks nothing: the study stays
    QCOMPARE(fixture.window.workbench().perspective().id, QString("explain"));
    QTRY_VERIFY(fixture.window.workbench().explain().explained() != nullptr);
    QCOMPARE(fixture.window.workbench().explain().explained()->messages.size(), std::size_t{1});
    QVERIFY(fixture.window.document().isModified());
    QCOMPARE(fixture.window.document().source().settings, std::vector<std::string>{"batch=64"});
    fixture.window.document().undoStack().setClean();
}

void TestOpeners::reportsAreOpened_data()
{
    QTest::addColumn<QString>("name");

    QTest::newRow("HTML") << "report.html";
    QTest::newRow("JSON") << "report.json";
}

/// What was saved as a report is the study again.
void TestOpeners::reportsAreOpened()
{
    QFETCH(QString, name);
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openExample(fixture.example("digits.yaml"));
    fixture.window.document().change({"batch=96"}, "Edit the batch");
    QTRY_VERIFY(fixture.isShown());
    const QString path = fixture.folder.filePath(name);
    QVERIFY(ui::writeReport(fixture.window.workbench().currentReport(), path));
    fixture.window.document().undoStack().setClean();
    fixture.window.openExample(fixture.example("fsdp.yaml"));
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(fixture.window.openFile(path));
    QTRY_COMPARE(fixture.window.document().source().settings, std::vector<std::string>{"batch=96"});
    QTRY_VERIFY(fixture.isShown());
    QCOMPARE(fixture.analysis()->study->batch, 96);
    QTRY_COMPARE(fixture.window.workbench().perspective().id, QString("report")); // as it was written
    QVERIFY(fixture.window.workbench().report().isOpened());
    fixture.window.document().undoStack().setClean();
}

/// Without a study there are no collectives to list beside it.
void TestOpeners::aTraceAloneHasAllRoom()
{
    WindowFixture fixture;
    fixture.window.show();
    ui::Workbench& workbench = fixture.window.workbench();
    QVERIFY(fixture.window.openFile(writtenTo(fixture.folder, "run.json.gz", QByteArray::fromBase64(kCompressedTrace))));
    QTRY_VERIFY(workbench.timeline().hasForeign());
    QVERIFY(workbench.timeline().isVisible());
    QVERIFY(!workbench.findView("collectives")->isVisible());
    QVERIFY(fixture.window.openFile(fixture.copyOf("digits.yaml")));
    workbench.showPerspective("time");
    QVERIFY(workbench.findView("collectives")->isVisible());
}

void TestOpeners::aTraceIsShownBelowTheStudy()
{
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openExample(fixture.example("wide_mlp.yaml"));
    QTRY_VERIFY(fixture.isShown());
    const Timeline& simulated = fixture.analysis()->simulated->simulation.timeline;
    const QString path
        = writtenTo(fixture.folder, "run.json", QByteArray::fromStdString(sim::traceJson({{"a run", &simulated}})));
    QVERIFY(fixture.window.openFile(path));
    QTRY_COMPARE(fixture.window.workbench().perspective().id, QString("time"));
    const auto groups = [&] { return fixture.window.workbench().timeline().canvas().model().groups(); };
    QTRY_COMPARE(groups().size(), std::size_t{2});
    QCOMPARE(groups()[1].title, std::string("run.json"));
    QCOMPARE(groups()[1].part->sliceCount(), simulated.slices().size());
    QVERIFY(fixture.window.openFile(writtenTo(fixture.folder, "run.json.gz", QByteArray::fromBase64(kCompressedTrace))));
    QTRY_COMPARE(groups()[1].title, std::string("run.json.gz"));
    QCOMPARE(groups()[1].part->sliceCount(), std::size_t{1});
    QVERIFY(!fixture.window.document().isModified());
}

void TestOpeners::programsBecomeStudies()
{
    WindowFixture fixture;
    fixture.window.show();
    const QString path = fixture.copyOf("tensor_parallel_matmul.mlir");
    QVERIFY(fixture.window.openFile(path));
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(fixture.analysis()->built);
    QVERIFY(!fixture.analysis()->arrays.empty());
    QVERIFY(fixture.window.document().path().isEmpty());
}

/// A study, then what was written of another state of it: what differs is seen.
void TestOpeners::aResultIsComparedWithTheStudy()
{
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openExample(fixture.example("wide_mlp.yaml"));
    QTRY_VERIFY(fixture.isShown());
    const QString path = writtenTo(
        fixture.folder, "main.json", QByteArray::fromStdString(sim::simulationJson({*fixture.analysis()->simulated})));
    fixture.window.document().change({"batch=4096"}, "Edit the batch");
    QTRY_VERIFY(fixture.isShown());
    QVERIFY(fixture.window.openFile(path));
    QCOMPARE(fixture.window.workbench().perspective().id, QString("why"));
    QTRY_VERIFY(fixture.window.workbench().baselines().current() != nullptr);
    QTRY_VERIFY(fixture.window.workbench().compare().comparison());
    QCOMPARE(fixture.window.workbench().compare().comparison()->beforeFile, path.toStdString());
    QVERIFY(!fixture.window.workbench().compare().comparison()->same());
    QCOMPARE(fixture.window.document().source().settings, std::vector<std::string>{"batch=4096"}); // the study is as it was
    fixture.window.document().undoStack().setClean();
}

/// A comparison of clusters has no study inside.
void TestOpeners::aReportOfNoStudyIsShown()
{
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openExample(fixture.example("digits.yaml"));
    QTRY_VERIFY(fixture.isShown());
    sim::Report report;
    report.title = "Training a and b";
    report.sections = {{"clusters", "Clusters", {sim::ReportParagraph{"Each row is a plan."}}}};
    const QString path = writtenTo(fixture.folder, "clusters.html", QByteArray::fromStdString(sim::reportHtml(report)));
    QVERIFY(fixture.window.openFile(path));
    ui::ReportView& view = fixture.window.workbench().report();
    QTRY_VERIFY(view.isOpened());
    QCOMPARE(fixture.window.workbench().perspective().id, QString("report"));
    QCOMPARE(view.currentReport(), report);
    QVERIFY(fixture.window.document().title().contains("digits"));
    view.leaveOpened();
    QTRY_VERIFY(view.pageCount() > 1);
    QCOMPARE(view.currentReport().title, fixture.analysis()->study->name);
}

void TestOpeners::foldersOfCheckpointsAreOpened()
{
    WindowFixture fixture;
    const QDir folder(fixture.folder.path());
    QVERIFY(folder.mkpath("kept/step-000000003"));
    const QString manifest
        = writtenTo(fixture.folder, "kept/step-000000003/checkpoint.json", R"({"schema": "meshwright.checkpoint/1"})");
    for (const QString& path : {folder.filePath("kept"), folder.filePath("kept/step-000000003"), manifest}) {
        const auto as = ui::recognised(path);
        QVERIFY2(as, qPrintable(path));
        QCOMPARE(*as, ui::OpenAs::Checkpoint);
    }
    fixture.window.show();
    QVERIFY(fixture.window.openFile(manifest));
    QCOMPARE(fixture.window.workbench().perspective().id, QString("train"));
    QVERIFY2(fixture.window.workbench().checkpoint().isVisible(), "the view of checkpoints is raised");
}

void TestOpeners::modelsAreNamedByTheirFiles_data()
{
    QTest::addColumn<QString>("path");
    QTest::addColumn<QString>("name");

    QTest::newRow("the usual name says nothing") << "/models/Qwen3-8B/config.json"
                                                 << "Qwen3-8B";
    QTest::newRow("a name of its own") << "/models/qwen3_8b.json"
                                       << "qwen3_8b";
}

void TestOpeners::modelsAreNamedByTheirFiles()
{
    QFETCH(QString, path);
    QFETCH(QString, name);
    QVERIFY(ui::studyOfModel(path).text.find("\nname: " + name.toStdString() + "\n") != std::string::npos);
}

MESHWRIGHT_TEST(TestOpeners)

} // namespace tst_openers

#include "tst_openers.moc"
