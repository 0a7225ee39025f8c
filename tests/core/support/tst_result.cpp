// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/id.h"
#include "core/support/problem_handler.h"
#include "core/support/result.h"
#include "tests/test_class.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <stdexcept>

namespace tst_result {

using namespace meshwright;

class TestResult : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void valueOrProblems();
    void valuesThatAreNoneStop_data();
    void valuesThatAreNoneStop();
    void valuesThatAreNoneAreHandled_data() { valuesThatAreNoneStop_data(); }
    void valuesThatAreNoneAreHandled();
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

void TestResult::valuesThatAreNoneStop_data()
{
    QTest::addColumn<std::function<int()>>("use");
    const auto none = [] { return Result<std::string>(Problem{"MW1104", "dim 0 of size 10 is not divisible by 4"}); };
    QTest::newRow("valueOf") << std::function<int()>([=] { return static_cast<int>(valueOf(none()).size()); });
    QTest::newRow("*") << std::function<int()>([=] { return static_cast<int>((*none()).size()); });
    QTest::newRow("->") << std::function<int()>([=] { return static_cast<int>(none()->size()); });
}

/// In every build: the program ends, and has said which problem it was.
void TestResult::valuesThatAreNoneStop()
{
    QFETCH(std::function<int()>, use);
    int ends[2];
    QCOMPARE(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);
        ::dup2(ends[1], STDERR_FILENO);
        ::_exit(use());
    }
    ::close(ends[1]);
    std::string said(1000, '\0');
    said.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], said.data(), said.size()))));
    ::close(ends[0]);
    int status = 0;
    QCOMPARE(::waitpid(child, &status, 0), child);
    QVERIFY(WIFSIGNALED(status));
    QCOMPARE(WTERMSIG(status), SIGABRT);
    QVERIFY2(QByteArray::fromStdString(said).contains("MW1104: dim 0 of size 10 is not divisible by 4"), said.c_str());
}

/// With a handler that throws, only what used the result ends.
void TestResult::valuesThatAreNoneAreHandled()
{
    QFETCH(std::function<int()>, use);
    setProblemHandler([](const Problems& problems) { throw std::runtime_error(problems.front().id); });
    std::string thrown;
    try {
        use();
    } catch (const std::runtime_error& error) {
        thrown = error.what();
    }
    setProblemHandler(nullptr);
    QCOMPARE(thrown, std::string("MW1104"));
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

MESHWRIGHT_TEST(TestResult)

} // namespace tst_result

#include "tst_result.moc"
