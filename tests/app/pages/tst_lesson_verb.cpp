// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QTemporaryDir>

namespace tst_lesson_verb {

using namespace meshwright;
using tests::Outcome;

/// `lesson`: every cell runs, every answer is what the engine computes, wrong answers get hints, and what is done is kept.
class TestLessonVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void init();
    void lessons_data();
    void lessons();
    void answersAtTheEnd();
    void hintsThenTheAnswer();
    void whatCannotBeRead();
    void otherWords();
    void picturesThatMove();
    void exitCodes_data();
    void exitCodes();

private:
    Outcome lesson(const QStringList& arguments, const QByteArray& input = {}) const;
    std::unique_ptr<QTemporaryDir> m_folder;
};

namespace {

QString said(const Outcome& outcome)
{
    return QString::fromUtf8(outcome.out + outcome.err);
}

/// An answer of the same kind.
QByteArray wrongAnswer(const QString& right)
{
    if (right == "yes" || right == "no")
        return right == "yes" ? "no" : "yes";
    if (right.contains("P("))
        return right.contains("), P(") ? "P(), P()" : "P('nothing')";
    if (right == "none" || right.contains(" over "))
        return "all-to-all over nothing";
    return right.contains(QRegularExpression("\\d")) ? "-1" : "nothing";
}

QStringList lessonFiles()
{
    return QDir(QString(MESHWRIGHT_SOURCE_DIR) + "/resources/lessons").entryList({"*.md"}, QDir::Files, QDir::Name);
}

} // namespace

void TestLessonVerb::initTestCase()
{
    init();
    if (said(lesson({"1"})).contains("MW1562"))
        QSKIP("this kernel cannot confine pages, so they are only read");
}

void TestLessonVerb::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    QVERIFY(m_folder->isValid());
}

Outcome TestLessonVerb::lesson(const QStringList& arguments, const QByteArray& input) const
{
    QProcessEnvironment environment = tests::plainEnvironment();
    environment.insert("XDG_DATA_HOME", m_folder->path());
    environment.insert("XDG_STATE_HOME", m_folder->path());
    return tests::runProgram(
        MESHWRIGHT_PROGRAM, arguments.value(0) == "open" ? arguments : QStringList{"lesson"} + arguments, input, environment);
}

void TestLessonVerb::lessons_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("number");
    const QStringList files = lessonFiles();
    QCOMPARE(files.size(), 6);
    for (qsizetype i = 0; i < files.size(); ++i)
        QTest::newRow(qPrintable(files[i])) << files[i] << QString::number(i + 1);
}

/// A reader who is wrong once at each question and right then: the right answers are what `open` computes from the lesson's cells.
void TestLessonVerb::lessons()
{
    QFETCH(QString, file);
    QFETCH(QString, number);
    const Outcome opened
        = lesson({"open", QString(MESHWRIGHT_SOURCE_DIR) + "/resources/lessons/" + file, "--format", "json", "-q"});
    QCOMPARE(tests::errorsAgainst("page-1.json", opened.out), QStringList());
    QByteArray input;
    qsizetype questions = 0;
    for (const QJsonValue value : QJsonDocument::fromJson(opened.out).object()["cells"].toArray()) {
        const QJsonObject cell = value.toObject();
        QVERIFY2(cell["status"] == "ran" && cell["findings"].toArray().isEmpty(), QJsonDocument(cell).toJson());
        if (cell["kind"] != "question")
            continue;
        ++questions;
        const QString right = cell["output"].toString().section('\n', 0, 0);
        input += wrongAnswer(right) + "\n" + right.toUtf8() + "\n";
    }
    QVERIFY(questions >= 5);
    const Outcome walked = lesson({number}, input);
    QCOMPARE(walked.code, 0);
    QCOMPARE(walked.out.count("\nNot so."), questions);
    QCOMPARE(walked.out.count("Hint: "), questions);
    QCOMPARE(walked.out.count("\nRight."), questions);
    QVERIFY2(said(lesson({})).contains(QString("%1 of %1\n").arg(questions)), qPrintable(said(lesson({}))));
}

void TestLessonVerb::answersAtTheEnd()
{
    const QString text = said(lesson({"1"}));
    QVERIFY2(text.indexOf("# Answers") > text.indexOf("Summary:"), qPrintable(text));
    QVERIFY2(text.mid(text.indexOf("# Answers")).contains("1. 4, 5\n"), qPrintable(text));
    QVERIFY(text.contains("0 of 5 questions"));
}

/// An empty answer asks for a hint; when there is none left, the answer is told and does not count.
void TestLessonVerb::hintsThenTheAnswer()
{
    const QString text = said(lesson({"1"}, "\n\n\n5, 7\n"));
    QVERIFY2(text.contains("Hint: ") && text.contains("The answer: 4, 5") && text.contains("0 of 5 questions"), qPrintable(text));
}

/// Words of another kind are not a try: neither a hint nor the answer follows.
void TestLessonVerb::whatCannotBeRead()
{
    const QString text = said(lesson({"1"}, "many\nmany\nmany\n4, 5\n"));
    QCOMPARE(text.count("Not understood: expected whole numbers, such as 0, 7 or 2x4.\n"), 3);
    QVERIFY2(!text.contains("Hint: ") && !text.contains("Not so.") && text.contains("1 of 5 questions"), qPrintable(text));
}

/// The last question of lesson 1, in other words than it asks for, and the last one of lesson 2.
void TestLessonVerb::otherWords()
{
    const QString sizes = said(lesson({"1"}, "4, 5\n1 3 5 7\n16\n28\n2x4\n"));
    QVERIFY2(sizes.contains("5 of 5 questions"), qPrintable(sizes));
    const QString specs
        = said(lesson({"2"}, "4x4\n16 by 1\n256 bytes\nno\nall-gather data\nnone\nalltoall data\nPartitionSpec('data')\n"));
    QVERIFY2(specs.contains("8 of 8 questions"), qPrintable(specs));
}

void TestLessonVerb::picturesThatMove()
{
    const QString file = m_folder->filePath("lesson.html");
    QCOMPARE(lesson({"5", "-o", file}).code, 0);
    QFile written(file);
    QVERIFY(written.open(QIODevice::ReadOnly));
    const QByteArray html = written.readAll();
    QCOMPARE(html.count("<summary>Answer</summary>"), html.count("<div class=\"question\">"));
    QVERIFY(!html.contains("<script") && html.contains("<h2>A collective, step by step</h2>"));
    const qsizetype begin = html.indexOf("base64,") + 7;
    const QByteArray picture = QByteArray::fromBase64(html.mid(begin, html.indexOf('"', begin) - begin));
    QVERIFY2(picture.startsWith("<svg") && picture.contains("<animateTransform"), picture);
}

void TestLessonVerb::exitCodes_data()
{
    tests::addExitCodeColumns();
    QTest::newRow("no such lesson") << QStringList{"7"} << 2 << "there are 1 to 6";
    QTest::newRow("no number") << QStringList{"three"} << 2 << "MW1903";
    QTest::newRow("unknown ending") << QStringList{"1", "-o", "lesson.pdf"} << 2 << "MW1903";
    QTest::newRow("leaves") << QStringList{"1"} << 0 << "";
}

void TestLessonVerb::exitCodes()
{
    QFETCH(QStringList, arguments);
    tests::checkExitCode(lesson(arguments, "q\n"));
}

MESHWRIGHT_TEST(TestLessonVerb)

} // namespace tst_lesson_verb

#include "tst_lesson_verb.moc"
