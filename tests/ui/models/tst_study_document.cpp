// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "tests/test_class.h"
#include "ui/models/study_document.h"

namespace tst_study_document {

using namespace meshwright;

/// Edits, undo, saving: what a person does to a study.
class TestStudyDocument : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void editsUndoAndRedo();
    void quickEditsOfOneThingAreOneStep();
    void editsThatChangeNothingAreNone();
    void savingKeepsComments();
    void undoAfterSaving();
    void removingASpec();
    void examplesAskForAPlace();
    void programsAreStudies();
    void openFailsOnUnreadableFiles();
    void changesOfOthersAreNotOverwritten();
    void changesOfOthersAreReadAgain();
    void onlyStudiesAreOpened_data();
    void onlyStudiesAreOpened();
    void saveFailsWithoutPermission();
};

namespace {

const QByteArray kStudy = "# mine\n"
                          "meshwright: 1\n"
                          "name: small # short\n"
                          "mesh: {data: 4, model: 2}\n"
                          "model: {mlp: {layers: [8, 16, 8]}}\n"
                          "batch: 16\n"
                          "sharding:\n"
                          "  x: P('data', None) # rows\n";

QString writtenTo(const QTemporaryDir& folder, const QString& name = "study.yaml")
{
    QFile file(folder.filePath(name));
    file.open(QIODevice::WriteOnly);
    file.write(kStudy);
    return file.fileName();
}

QByteArray contentOf(const QString& path)
{
    QFile file(path);
    file.open(QIODevice::ReadOnly);
    return file.readAll();
}

} // namespace

void TestStudyDocument::editsUndoAndRedo()
{
    const QTemporaryDir folder;
    ui::StudyDocument document;
    QSignalSpy changed(&document, &ui::StudyDocument::sourceChanged);
    QVERIFY(document.open(writtenTo(folder)));
    QCOMPARE(document.title(), QString("study.yaml"));
    QVERIFY(!document.isModified());
    document.change({"mesh.data=8", "mesh.model=1"}, "Edit the mesh");
    document.change({"batch=32"}, "Edit the batch");
    QVERIFY(document.isModified());
    QCOMPARE(document.source().settings, (std::vector<std::string>{"mesh.data=8", "mesh.model=1", "batch=32"}));
    document.undoStack().undo();
    QCOMPARE(document.source().settings, (std::vector<std::string>{"mesh.data=8", "mesh.model=1"}));
    QCOMPARE(document.undoStack().redoText(), QString("Edit the batch"));
    document.undoStack().undo();
    QVERIFY(document.source().settings.empty());
    QVERIFY(!document.isModified());
    document.undoStack().redo();
    document.undoStack().redo();
    QCOMPARE(document.source().settings.size(), std::size_t{3});
    QCOMPARE(changed.count(), 7);
}

void TestStudyDocument::quickEditsOfOneThingAreOneStep()
{
    const QTemporaryDir folder;
    ui::StudyDocument document;
    QVERIFY(document.open(writtenTo(folder)));
    for (const char* batch : {"batch=3", "batch=32", "batch=320"})
        document.change({batch}, "Edit the batch");
    QCOMPARE(document.source().settings, std::vector<std::string>{"batch=320"});
    document.undoStack().undo();
    QVERIFY(document.source().settings.empty());
}

void TestStudyDocument::editsThatChangeNothingAreNone()
{
    const QTemporaryDir folder;
    ui::StudyDocument document;
    QVERIFY(document.open(writtenTo(folder)));
    document.change({"batch=32"}, "Edit the batch");
    document.change({"batch=32"}, "Edit the batch");
    QCOMPARE(document.undoStack().count(), 1);
}

void TestStudyDocument::savingKeepsComments()
{
    const QTemporaryDir folder;
    const QString path = writtenTo(folder);
    ui::StudyDocument document;
    QVERIFY(document.open(path));
    document.change({"mesh.data=8"}, "Edit the mesh");
    QVERIFY(document.save());
    QVERIFY(!document.isModified());
    QByteArray expected = kStudy;
    QCOMPARE(contentOf(path), expected.replace("data: 4", "data: 8"));
    QVERIFY(document.source().settings.empty());
}

void TestStudyDocument::undoAfterSaving()
{
    const QTemporaryDir folder;
    const QString path = writtenTo(folder);
    ui::StudyDocument document;
    QVERIFY(document.open(path));
    document.change({"mesh.data=8"}, "Edit the mesh");
    QVERIFY(document.save());
    document.undoStack().undo();
    QVERIFY(document.isModified());
    QVERIFY(document.save());
    QCOMPARE(contentOf(path), kStudy);
}

void TestStudyDocument::removingASpec()
{
    const QTemporaryDir folder;
    const QString path = writtenTo(folder);
    ui::StudyDocument document;
    QVERIFY(document.open(path));
    document.removeSpec("sharding.x");
    QVERIFY(document.save());
    QVERIFY(!contentOf(path).contains("P('data'"));
    QVERIFY(readStudy(contentOf(path).toStdString(), "study.yaml"));
}

void TestStudyDocument::examplesAskForAPlace()
{
    ui::StudyDocument document;
    QVERIFY(document.open(QString::fromStdString((resourcesDirectory() / "examples" / "digits.yaml").string()), true));
    QVERIFY(document.path().isEmpty());
    QCOMPARE(document.title(), QString("digits (example)"));
}

/// A program is opened as a study beside it, which the program's own file never becomes.
void TestStudyDocument::programsAreStudies()
{
    const QTemporaryDir folder;
    const QString program = folder.filePath("step.mlir");
    QVERIFY(QFile::copy(QString::fromStdString((resourcesDirectory() / "examples/matmul.mlir").string()), program));
    ui::StudyDocument document;
    QVERIFY(document.open(program));
    QCOMPARE(document.path(), QString());
    QCOMPARE(document.title(), QString("step (not saved)"));
    QVERIFY(!document.isModified());
    document.change({"hardware=h100x8"}, "Choose hardware");
    const QString file = folder.filePath("mine.yaml");
    QVERIFY(document.save(file));
    QCOMPARE(document.title(), QString("mine.yaml"));
    const auto study = loadStudy(file.toStdString());
    QVERIFY(study && study->hardware && study->hardware->chip == "h100x8");
    QCOMPARE(study->resolved(std::get<ProgramFile>(study->model).file), std::filesystem::path(program.toStdString()));
}

void TestStudyDocument::openFailsOnUnreadableFiles()
{
    const QTemporaryDir folder;
    ui::StudyDocument document;
    QVERIFY(document.open(writtenTo(folder)));
    const auto absent = document.open(folder.filePath("absent.yaml"));
    QVERIFY(!absent);
    QCOMPARE(absent.error().front().id, std::string("MW1001"));
    QVERIFY(!document.open(folder.path()));
    QCOMPARE(document.title(), QString("study.yaml")); // what was open stays
}

void TestStudyDocument::changesOfOthersAreNotOverwritten()
{
    const QTemporaryDir folder;
    const QString path = writtenTo(folder);
    ui::StudyDocument document;
    QVERIFY(document.open(path));
    document.change({"batch=32"}, "Edit the batch");
    QVERIFY(!document.isChangedOnDisk());
    QVERIFY(document.save()); // our own writing is not a change of others
    document.change({"batch=64"}, "Edit the batch");
    QVERIFY(writeFileAtomically(path.toStdString(), "meshwright: 1\nmodel: theirs\n"));
    QVERIFY(document.isChangedOnDisk());
    const auto saved = document.save();
    QVERIFY(!saved);
    QCOMPARE(saved.error().front().id, std::string("MW1829"));
    QCOMPARE(contentOf(path), QByteArray("meshwright: 1\nmodel: theirs\n"));
    QVERIFY(document.isModified());
    QVERIFY(document.save(path)); // said to be wanted
    QVERIFY(contentOf(path).contains("batch: 64"));

    document.change({"batch=16"}, "Edit the batch");
    QVERIFY(QFile::remove(path)); // nothing is lost by writing it again
    QVERIFY(document.save());
    QVERIFY(contentOf(path).contains("batch: 16"));
}

void TestStudyDocument::changesOfOthersAreReadAgain()
{
    const QTemporaryDir folder;
    const QString path = writtenTo(folder);
    ui::StudyDocument document;
    QVERIFY(document.open(path));
    const std::string before = document.source().text;
    QVERIFY(writeFileAtomically(path.toStdString(), before + "# theirs\n"));
    QVERIFY(document.isChangedOnDisk());
    QVERIFY(document.reload());
    QCOMPARE(document.source().text, before + "# theirs\n");
    QVERIFY(!document.isModified() && !document.isChangedOnDisk());
    document.undoStack().undo();
    QCOMPARE(document.source().text, before);
    QVERIFY(document.isModified());
}

void TestStudyDocument::onlyStudiesAreOpened_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("id");

    QTest::newRow("config.json") << QByteArray(R"({"model_type": "llama", "hidden_size": 64})") << "MW1830";
    QTest::newRow("a list") << QByteArray("- a\n- b\n") << "MW1830";
    QTest::newRow("words") << QByteArray("just words") << "MW1830";
    QTest::newRow("a study that lacks its version") << QByteArray("model: {mlp: {layers: [4, 2]}}\nbatch: 8\n") << "";
    QTest::newRow("a study that has only begun") << QByteArray("meshwright: 1\n") << "";
    QTest::newRow("one that cannot be read") << QByteArray("meshwright: [") << ""; // its problems say why
    QTest::newRow("much too large") << QByteArray(9 << 20, ' ') << "MW1004";
}

/// What is not a study is not opened, so that nothing is ever written into it.
void TestStudyDocument::onlyStudiesAreOpened()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, id);
    const QTemporaryDir folder;
    const QString path = folder.filePath("file.json");
    QVERIFY(writeFileAtomically(path.toStdString(), text.toStdString()));
    ui::StudyDocument document;
    const auto opened = document.open(path);
    QCOMPARE(opened ? QString() : QString::fromStdString(opened.error().front().id), id);
    QCOMPARE(contentOf(path), text);
}

void TestStudyDocument::saveFailsWithoutPermission()
{
    const QTemporaryDir folder;
    ui::StudyDocument document;
    QVERIFY(document.open(writtenTo(folder)));
    document.change({"batch=32"}, "Edit the batch");
    const auto saved = document.save(folder.filePath("no/such/folder.yaml"));
    QVERIFY(!saved);
    QCOMPARE(saved.error().front().id, std::string("MW1005"));
    QVERIFY(document.isModified());
    QCOMPARE(document.title(), QString("study.yaml"));
}

MESHWRIGHT_TEST(TestStudyDocument)

} // namespace tst_study_document

#include "tst_study_document.moc"
