// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/id.h"
#include "core/support/result.h"

#include <QtTest>

using namespace meshwright;

class TestResult : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void valueOrProblems();
    void description_data();
    void description();
    void listsOfProblems();
    void ids();
};

void TestResult::valueOrProblems()
{
    const Result<int> good = 4;
    QVERIFY(good.has_value());
    QCOMPARE(*good, 4);
    const Result<int> bad = Problem{"MW0001", "no"};
    QVERIFY(!bad);
    QCOMPARE(bad.error().size(), std::size_t{1});
    const Result<int> worse = Problems{{"MW0001", "no"}, {"MW0002", "never"}};
    QCOMPARE(worse.error().size(), std::size_t{2});
    QCOMPARE(valueOf(Result<std::string>(std::string("x"))), std::string("x"));
    const Result<std::unique_ptr<int>> moved = std::make_unique<int>(3);
    QCOMPARE(**moved, 3);
}

void TestResult::description_data()
{
    QTest::addColumn<Problem>("problem");
    QTest::addColumn<std::string>("expected");

    QTest::newRow("message only") << Problem{"MW1104", "dim 0 of size 10 is not divisible by 4"}
                                  << std::string("error MW1104: dim 0 of size 10 is not divisible by 4");
    QTest::newRow("file") << Problem{"MW1001", "no", {}, Place{"a.yaml"}} << std::string("a.yaml: error MW1001: no");
    QTest::newRow("everything") << Problem{"MW1104", "no", "make it 8", Place{"a.yaml", 3, 7, "mesh.axes[1]"}, Severity::Warning,
        "8 = 2 * 4"} << std::string("a.yaml:3:7: warning MW1104: no [mesh.axes[1]]\n  rule: 8 = 2 * 4\n  fix: make it 8");
    QTest::newRow("line without file") << Problem{"MW1105", "no", {}, Place{{}, 1, 5}, Severity::Note}
                                       << std::string("1:5: note MW1105: no");
}

void TestResult::description()
{
    QFETCH(Problem, problem);
    QFETCH(std::string, expected);
    QCOMPARE(describe(problem), expected);
}

void TestResult::listsOfProblems()
{
    Problems problems = {{"MW0001", "a", {}, {}, Severity::Warning}};
    QVERIFY(!hasErrors(problems));
    append(problems, {{"MW0002", "b"}});
    QVERIFY(hasErrors(problems));
    QCOMPARE(describe(problems), std::string("warning MW0001: a\nerror MW0002: b"));
    QCOMPARE(describe(Problems{}), std::string());
    problems[1].place.file = "other";
    problems = inFile(std::move(problems), "file");
    QCOMPARE(problems[0].place.file, std::string("file"));
    QCOMPARE(problems[1].place.file, std::string("other")); // a known file stays
    QCOMPARE(std::string(severityName(Severity::Note)), std::string("note"));
}

void TestResult::ids()
{
    using RowId = Id<struct Row>;
    QVERIFY(!RowId().valid());
    QVERIFY(RowId(std::size_t{3}).valid());
    QCOMPARE(RowId(std::int32_t{3}).at(), std::size_t{3});
    QVERIFY(RowId(std::size_t{1}) < RowId(std::size_t{2}));
    QCOMPARE(std::hash<RowId>{}(RowId(std::size_t{1})), std::hash<RowId>{}(RowId(std::int32_t{1})));
}

QTEST_APPLESS_MAIN(TestResult)
#include "tst_result.moc"
