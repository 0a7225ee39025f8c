// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QJsonDocument>
#include <QTemporaryDir>

namespace tst_chakra_verb {

using namespace meshwright;

namespace {

using tests::Outcome;

Outcome run(const QStringList& arguments)
{
    return tests::runProgram(MESHWRIGHT_PROGRAM, arguments);
}

QString example(const QString& name)
{
    return QString(MESHWRIGHT_SOURCE_DIR "/resources/examples/%1.yaml").arg(name);
}

} // namespace

/// Chakra traces out of `simulate` and into it, as processes.
class TestChakraVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void outAndIn();
    void exitCodes_data();
    void exitCodes();
};

/// The traces of a step, replayed on the machine that it was simulated on, take its time.
void TestChakraVerb::outAndIn()
{
    QTemporaryDir directory;
    const QString folder = directory.filePath("traces");
    const QString timeline = directory.filePath("timeline.json");
    const Outcome out = run({"simulate", example("fsdp"), "--chakra", folder, "--format", "json"});
    QVERIFY2(out.code == 0, out.err);
    QVERIFY2(out.err.contains("wrote the traces of 8 ranks"), out.err);
    QVERIFY(QFile::exists(folder + "/step.7.et") && !QFile::exists(folder + "/step.8.et"));
    const Outcome in = run({"simulate", "--chakra-in", folder, "--hw", "v5e-8", "--format", "json", "--trace", timeline});
    QVERIFY2(in.code == 0, in.err);
    QCOMPARE(tests::resultErrors(in.out), QString());
    const double before = QJsonDocument::fromJson(out.out)["step_time_s"].toDouble();
    const double after = QJsonDocument::fromJson(in.out)["step_time_s"].toDouble();
    QVERIFY(before > 0.0 && qAbs(before - after) < 1e-9 * before);
    QVERIFY(QFile::exists(timeline));
    const Outcome text = run({"simulate", "--chakra-in", folder + "/step", "--hw", "h100x8"});
    QVERIFY2(text.code == 0 && text.out.contains("8 ranks") && text.out.contains("all_gather"), text.out + text.err);
    const Outcome csv = run({"simulate", "--chakra-in", folder, "--hw", "h100x8", "--fidelity", "closed", "--format", "csv"});
    QVERIFY2(csv.code == 0 && csv.out.startsWith("traces,hardware,ranks"), csv.out + csv.err);

    QFile last(folder + "/step.7.et");
    QVERIFY(last.resize(last.size() - 1));
    const Outcome cut = run({"simulate", "--chakra-in", folder, "--hw", "v5e-8", "--format", "json"});
    QCOMPARE(cut.code, 3);
    QCOMPARE(tests::resultErrors(cut.out), QString());
    QVERIFY2(cut.out.contains("MW1766") && cut.out.contains("step.7.et"), cut.out);
}

void TestChakraVerb::exitCodes_data()
{
    tests::addExitCodeColumns();
    const auto row = [](const char* name, const QStringList& arguments, int code, const char* said) {
        QTest::newRow(name) << QStringList{"simulate"} + arguments << code << said;
    };
    row("nothing", {}, 2, "MW1904: STUDY is missing");
    row("no hardware", {"--chakra-in", "x"}, 2, "MW1904: --hw is missing");
    row("a study beside traces", {example("fsdp"), "--chakra-in", "x", "--hw", "h100x8"}, 2, "MW1903");
    row("out and in", {"--chakra", "y", "--chakra-in", "x", "--hw", "h100x8"}, 2, "MW1903");
    row("no folder", {"--chakra-in", "no/such/folder", "--hw", "h100x8"}, 3, "MW1783");
    row("no chip", {"--chakra-in", "x", "--hw", "h1000x8"}, 3, "MW1701");
    row("no size of a slice", {"--chakra-in", "x", "--hw", "v5e"}, 3, "MW1703");
    row("two studies", {example("fsdp"), example("zero1"), "--chakra", "x"}, 2, "MW1903: --chakra writes the traces of one step");
    row("a folder that cannot be", {example("fsdp"), "--chakra", "/proc/x"}, 3, "MW1005");
}

void TestChakraVerb::exitCodes()
{
    QTemporaryDir directory;
    QFETCH(QStringList, arguments);
    const QString before = QDir::currentPath();
    QDir::setCurrent(directory.path());
    const Outcome outcome = run(arguments);
    QDir::setCurrent(before);
    tests::checkExitCode(outcome);
}

MESHWRIGHT_TEST(TestChakraVerb)

} // namespace tst_chakra_verb

#include "tst_chakra_verb.moc"
