// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/test_class.h"
#include "ui/models/recovery.h"
#include "ui/models/study_document.h"

#include <QProcess>

#include <csignal>
#include <unistd.h>

namespace tst_recovery {

using namespace meshwright;

/// Unsaved edits outlive the program, whatever ends it.
class TestRecovery : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void editsSurviveBeingKilled();
    void savedStudiesLeaveNothing();
    void runningProgramsKeepTheirs();
    void damagedCopiesAreLeftOut();
    void worksWithoutAPlace();
};

namespace {

/// What the killed program does: edits a study, and waits for its end.
int editAndWait(const QString& folder)
{
    ui::StudyDocument document;
    ui::Recovery recovery(document, folder);
    document.adopt({"meshwright: 1\n", "", {}}, "/tmp/mine.yaml");
    document.change({"batch=32"}, "Edit the batch");
    QTimer poll;
    QObject::connect(&poll, &QTimer::timeout, [&] {
        if (!QDir(folder).entryList({"*.json"}).isEmpty())
            ::kill(::getpid(), SIGKILL);
    });
    poll.start(10);
    return QCoreApplication::exec();
}

} // namespace

void TestRecovery::editsSurviveBeingKilled()
{
    const QTemporaryDir folder;
    QProcess program;
    program.start(QCoreApplication::applicationFilePath(), {"tst_recovery", "--edit-and-wait", folder.path()});
    QVERIFY(program.waitForFinished());
    QCOMPARE(program.exitStatus(), QProcess::CrashExit);

    QCOMPARE(ui::Recovery::leftBehind(folder.path()).size(), std::size_t{1}); // asked about, and not answered
    const auto studies = ui::Recovery::leftBehind(folder.path());
    QCOMPARE(studies.size(), std::size_t{1});
    QVERIFY(ui::Recovery::leftBehind(folder.path()).empty()); // one program asks at a time
    const auto* study = std::get_if<ui::EditedStudy>(&studies[0].work);
    QVERIFY(study != nullptr);
    QCOMPARE(study->source.text, std::string("meshwright: 1\n"));
    QCOMPARE(study->source.settings, std::vector<std::string>{"batch=32"});
    QCOMPARE(studies[0].path(), QString("/tmp/mine.yaml"));
    studies[0].forget();
    QVERIFY(!QFile::exists(studies[0].copy));
}

void TestRecovery::savedStudiesLeaveNothing()
{
    const QTemporaryDir folder;
    const QTemporaryDir copies;
    ui::StudyDocument document;
    ui::Recovery recovery(document, copies.path());
    document.adopt({"meshwright: 1\nmodel: {mlp: {layers: [4, 2]}}\nbatch: 8\n", "", {}}, folder.filePath("s.yaml"));
    document.change({"batch=32"}, "Edit the batch");
    QTRY_COMPARE(QDir(copies.path()).entryList({"*.json"}).size(), 1);
    QVERIFY(document.save());
    QCOMPARE(QDir(copies.path()).entryList({"*.json"}).size(), 0);
}

void TestRecovery::runningProgramsKeepTheirs()
{
    const QTemporaryDir copies;
    ui::StudyDocument document;
    ui::Recovery recovery(document, copies.path());
    document.adopt({"meshwright: 1\n", "", {}}, {});
    document.change({"batch=32"}, "Edit the batch");
    QTRY_COMPARE(QDir(copies.path()).entryList({"*.json"}).size(), 1);
    QVERIFY(ui::Recovery::leftBehind(copies.path()).empty());
    QCOMPARE(QDir(copies.path()).entryList({"*.json"}).size(), 1);
}

void TestRecovery::damagedCopiesAreLeftOut()
{
    const QTemporaryDir copies;
    QFile file(copies.filePath("damaged.json"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("{\"text\": ");
    file.close();
    QVERIFY(ui::Recovery::leftBehind(copies.path()).empty());
    QVERIFY(file.exists());
}

void TestRecovery::worksWithoutAPlace()
{
    ui::StudyDocument document;
    ui::Recovery recovery(document, "/proc/no/such/folder");
    document.adopt({"meshwright: 1\n", "", {}}, {});
    document.change({"batch=32"}, "Edit the batch");
    QTest::qWait(2 * ui::Recovery::kDelayMilliseconds);
    QVERIFY(document.isModified());
}

MESHWRIGHT_TEST_RUN(TestRecovery, [](int argc, char** argv) {
    if (argc == 3 && QByteArray(argv[1]) == "--edit-and-wait")
        return editAndWait(QString::fromLocal8Bit(argv[2]));
    TestRecovery test;
    return QTest::qExec(&test, argc, argv);
})

} // namespace tst_recovery

#include "tst_recovery.moc"
