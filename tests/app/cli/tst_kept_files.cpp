// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

namespace tst_kept_files {

namespace {

using meshwright::tests::Outcome;

Outcome run(const QStringList& arguments)
{
    return meshwright::tests::runProgram(MESHWRIGHT_PROGRAM, arguments);
}

const char* const kStudy = R"study(meshwright: 1
hardware: {chip: v5e, topology: [2, 1]}
mesh: {data: 2}
model: {mlp: {layers: [3, 4, 2], activation: tanh, loss: mse}}
batch: 4
sharding: {x: "P('data', None)", y: "P('data', None)"}
optimizer: {sgd: {learning_rate: 0.1}}
train: {steps: 4, data: random}
)study";

} // namespace

/// Files that a command reads stay as they are, whichever output has their name, and a folder of checkpoints stays one training's.
class TestKeptFiles : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init();
    void inputsStay_data();
    void inputsStay();
    void otherFilesAreWritten_data();
    void otherFilesAreWritten();
    void spoiledStateIsNotSaved();
    void usedFolderIsNamed();
    void damagedCheckpointIsNamedQuietly();

private:
    QString at(const QString& name) const { return m_folder->filePath(name); }
    void write(const QString& name, const QByteArray& content) const;

    std::unique_ptr<QTemporaryDir> m_folder;
};

void TestKeptFiles::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    write("study.yaml", kStudy);
    QByteArray data = kStudy;
    data.replace("data: random", "data: {file: rows.csv}")
        .replace("loss: mse", "loss: cross_entropy")
        .replace("y: \"P('data', None)\"", "y: \"P('data')\"");
    QByteArray rows;
    for (int i = 0; i < 8; ++i)
        rows += "0.1,0.2,0.3,1\n";
    write("rows.csv", rows);
    write("rows.yaml", data);
    write("sweep.yaml", "sweep: 1\nstudy: study.yaml\nvary: {batch: [4, 8]}\n");
    QVERIFY(QFile::link(at("study.yaml"), at("link.yaml")));
}

void TestKeptFiles::write(const QString& name, const QByteArray& content) const
{
    QFile file(at(name));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(content);
}

void TestKeptFiles::inputsStay_data()
{
    QTest::addColumn<QStringList>("arguments"); // @ stands for the folder
    QTest::addColumn<QString>("kept");
    const auto row = [](const char* name, const QStringList& arguments, const char* kept = "study.yaml") {
        QTest::newRow(name) << arguments << QString(kept);
    };
    row("train, result", {"train", "@/study.yaml", "-o", "@/study.yaml"});
    row("train, metrics", {"train", "@/study.yaml", "--metrics", "@/study.yaml"});
    row("train, trace", {"train", "@/study.yaml", "--trace", "@/study.yaml"});
    row("simulate", {"simulate", "@/study.yaml", "--trace", "@/study.yaml"});
    row("simulate, the second of two", {"simulate", "@/rows.yaml", "@/study.yaml", "--trace", "@/study.yaml"});
    row("report", {"report", "@/study.yaml", "-o", "@/study.yaml", "--format", "html"});
    row("export", {"export", "@/study.yaml", "--to", "study", "-o", "@/study.yaml"});
    row("search", {"search", "@/study.yaml", "-o", "@/study.yaml"});
    row("diff", {"diff", "@/rows.yaml", "@/study.yaml", "-o", "@/study.yaml", "--format", "json"});
    row("sweep", {"sweep", "@/study.yaml", "--vary", "batch=4,8", "-o", "@/study.yaml", "--format", "json"});
    row("the study that a sweep names", {"sweep", "@/sweep.yaml", "-o", "@/study.yaml", "--format", "json"});
    row("another path", {"train", "@/study.yaml", "-o", "@/../" + QString("@@") + "/study.yaml"});
    row("through a link", {"train", "@/study.yaml", "-o", "@/link.yaml"});
    row("of a link", {"train", "@/link.yaml", "-o", "@/study.yaml"});
    row("the data", {"train", "@/rows.yaml", "--metrics", "@/rows.csv"}, "rows.csv");
    row("two outputs", {"train", "@/study.yaml", "--metrics", "@/new.json", "-o", "@/new.json"});
}

void TestKeptFiles::inputsStay()
{
    QFETCH(QStringList, arguments);
    QFETCH(QString, kept);
    const QString folder = m_folder->path();
    for (QString& argument : arguments)
        argument.replace("@@", QFileInfo(folder).fileName()).replace("@", folder);
    QFile file(at(kept));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray before = file.readAll();
    file.close();
    const Outcome outcome = run(arguments);
    QCOMPARE(outcome.code, 2);
    QVERIFY2((outcome.err + outcome.out).contains("MW1952"), outcome.err + outcome.out);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QCOMPARE(file.readAll(), before);
    QVERIFY(!QFile::exists(at("new.json")));
}

void TestKeptFiles::otherFilesAreWritten_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::newRow("outputs of their own") << QStringList{
        "train", "@/study.yaml", "-q", "--metrics", "@/m.jsonl", "-o", "@/r.json", "--trace", "@/t.json"};
    QTest::newRow("nowhere twice") << QStringList{"train", "@/study.yaml", "-q", "--metrics", "/dev/null", "-o", "/dev/null"};
    QTest::newRow("a plan of its own") << QStringList{"export", "@/study.yaml", "--to", "study", "-o", "@/copy.yaml"};
}

void TestKeptFiles::otherFilesAreWritten()
{
    QFETCH(QStringList, arguments);
    for (QString& argument : arguments)
        argument.replace("@", m_folder->path());
    const Outcome outcome = run(arguments);
    QVERIFY2(outcome.code == 0, outcome.err);
}

/// The NaN of one step is in its parameters, and in the loss of the next one.
void TestKeptFiles::spoiledStateIsNotSaved()
{
    const Outcome outcome = run({"train", at("study.yaml"), "--set", "train.steps=6", "--inject", "nan:device=0,step=2",
        "--checkpoint", at("ck"), "--every", "1"});
    QCOMPARE(outcome.code, 6);
    QVERIFY2(outcome.err.contains("after 2 steps"), outcome.err);
    QVERIFY2(outcome.err.contains("no checkpoint is written after step 3"), outcome.err); // MW1650
    QVERIFY(QFile::exists(at("ck/step-000000002/checkpoint.json")));
    QVERIFY(!QFile::exists(at("ck/step-000000003")));
}

void TestKeptFiles::usedFolderIsNamed()
{
    const QStringList train{"train", at("study.yaml"), "-q", "--checkpoint", at("ck")};
    const Outcome first = run(train);
    QCOMPARE(first.code, 0);
    QVERIFY2(!first.err.contains("MW1651"), first.err);
    const Outcome second = run(train + QStringList{"--set", "train.steps=2"});
    QCOMPARE(second.code, 0);
    QVERIFY2(second.err.contains("MW1651") && second.err.contains("up to step 4"), second.err);
    const Outcome resumed = run(train + QStringList{"--set", "train.steps=6", "--resume", at("ck")});
    QCOMPARE(resumed.code, 0);
    QVERIFY2(!resumed.err.contains("MW1651"), resumed.err);
}

void TestKeptFiles::damagedCheckpointIsNamedQuietly()
{
    QCOMPARE(run({"train", at("study.yaml"), "-q", "--checkpoint", at("ck"), "--every", "2"}).code, 0);
    QVERIFY(QFile::resize(at("ck/step-000000004/device-00000.safetensors"), 3));
    const Outcome resumed = run({"train", at("study.yaml"), "-q", "--resume", at("ck")});
    QCOMPARE(resumed.code, 0);
    QVERIFY2(resumed.err.contains("MW1645"), resumed.err);
}

MESHWRIGHT_TEST(TestKeptFiles)

} // namespace tst_kept_files

#include "tst_kept_files.moc"
