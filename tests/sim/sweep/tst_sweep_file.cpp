// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/sweep/sweep_file.h"

#include "core/support/text.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_sweep_file {

using namespace meshwright;
using namespace meshwright::sim;

/// Sweeps that are written down, and damaged ones.
class TestSweepFile : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void reads();
    void sameAsTheCommandLine();
    void whatIsASweep();
    void wrong_data();
    void wrong();
    void cutAnywhere();
    void damagedAnywhere();
};

namespace {

constexpr const char* kGood = R"yaml(sweep: 1
study: wide_mlp.yaml
set: {dtype.matmul: bf16, train: {steps: 3}}
vary:
  mesh: data*model=8
  batch: [1k, 4k, 8..9]
  optimizer: [{adam: {learning_rate: 0.001}}, none]
  "sharding.x": ["P('data', None)", P()]
)yaml";

} // namespace

void TestSweepFile::reads()
{
    const auto file = readSweepFile(kGood, "sweep.yaml");
    QVERIFY2(file, file ? "" : describe(file.error()).c_str());
    QCOMPARE(tests::text(file->study), "wide_mlp.yaml");
    QCOMPARE(tests::text(join(file->settings, " ; ")), "dtype.matmul=bf16 ; train={steps: 3}");
    QCOMPARE(file->parameters.size(), std::size_t(4));
    QCOMPARE(file->parameters[0].values.size(), std::size_t(4));
    QStringList words;
    for (const SweepParameter& parameter : file->parameters) {
        for (const SweepValue& value : parameter.values)
            words << tests::text(join(value.settings, " "));
    }
    QCOMPARE(words.mid(4).join(" | "),
        "batch=1024 | batch=4096 | batch=8 | batch=9 | optimizer={adam: {learning_rate: 0.001}} | optimizer=none | "
        "sharding.x=P('data', None) | "
        "sharding.x=P()");
}

void TestSweepFile::sameAsTheCommandLine()
{
    const auto file = readSweepFile("sweep: 1\nstudy: s.yaml\nvary: {batch: \"1k,4k\", mesh: data*model=8}\n", "sweep.yaml");
    QVERIFY(file);
    QCOMPARE(file->parameters,
        (std::vector<SweepParameter>{valueOf(parseVary("batch=1k,4k")), valueOf(parseVary("mesh=data*model=8"))}));
}

void TestSweepFile::whatIsASweep()
{
    QVERIFY(isSweepFile(kGood));
    QVERIFY(isSweepFile("{\"sweep\": 1}"));
    QVERIFY(!isSweepFile("meshwright: 1\nname: sweep\n"));
    QVERIFY(!isSweepFile(""));
    QVERIFY(!isSweepFile("sweep"));
}

void TestSweepFile::wrong_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("ids");
    QTest::addColumn<int>("line");
    const QByteArray head = "sweep: 1\nstudy: s.yaml\n";
    QTest::newRow("empty") << QByteArray() << "MW1412" << 1;
    QTest::newRow("no YAML") << QByteArray("sweep: [") << "MW1402" << 1;
    QTest::newRow("a list") << QByteArray("- sweep") << "MW1779" << 1;
    QTest::newRow("nothing else") << QByteArray("sweep: 1\n") << "MW1779 MW1779" << 1;
    QTest::newRow("a newer version") << QByteArray("sweep: 2\nstudy: s\nvary: {a: 1}\n") << "MW1780" << 1;
    QTest::newRow("a version that is none") << QByteArray("sweep: x\nstudy: s\nvary: {a: 1}\n") << "MW1779" << 1;
    QTest::newRow("a version of 2^63") << QByteArray("sweep: 9223372036854775808\nstudy: s\nvary: {a: 1}\n") << "MW1779" << 1;
    QTest::newRow("a version that is not a number") << QByteArray("sweep: .nan\nstudy: s\nvary: {a: 1}\n") << "MW1779" << 1;
    QTest::newRow("a study that is not a name") << QByteArray("sweep: 1\nstudy: [s]\nvary: {a: 1}\n") << "MW1779" << 2;
    QTest::newRow("an unknown key") << head + "varry: {a: 1}\nvary: {a: 1}\n"
                                    << "MW1779" << 3;
    QTest::newRow("settings that are none") << head + "set: [a]\nvary: {a: 1}\n"
                                            << "MW1779" << 3;
    QTest::newRow("nothing varied") << head + "vary: {}\n"
                                    << "MW1779" << 3;
    QTest::newRow("vary is a list") << head + "vary: [a]\n"
                                    << "MW1779" << 3;
    QTest::newRow("no values") << head + "vary: {a: []}\n"
                               << "MW1779" << 3;
    QTest::newRow("a mapping of values") << head + "vary:\n  a: {b: 1}\n"
                                         << "MW1779" << 4;
    QTest::newRow("a range backwards") << head + "vary:\n  b: 1\n  a: 8..1\n"
                                       << "MW1776" << 5;
    QTest::newRow("a value that is empty") << head + "vary:\n  a: [1, \"\"]\n"
                                           << "MW1776" << 4;
    QTest::newRow("too many values") << head + "vary:\n  a: 1..99999999\n"
                                     << "MW1777" << 4;
    QTest::newRow("a part of another") << head + "vary: {mesh: a*b=4, mesh.a: 2}\n"
                                       << "MW1778" << 3;
    QTest::newRow("a key twice") << head + "vary: {a: 1}\nvary: {b: 1}\n"
                                 << "MW1408" << 4;
    QTest::newRow("an alias of itself") << head + "vary: &v {a: *v}\n"
                                        << "MW1405" << 3;
}

void TestSweepFile::wrong()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, ids);
    QFETCH(int, line);
    const auto file = readSweepFile(text.toStdString(), "sweep.yaml");
    QVERIFY(!file);
    QStringList found;
    for (const Problem& problem : file.error())
        found << tests::text(problem.id);
    QCOMPARE(found.join(' '), ids);
    QCOMPARE(file.error().front().place.line, line);
}

void TestSweepFile::cutAnywhere()
{
    const std::string good = kGood;
    for (std::size_t length = 0; length < good.size(); ++length) {
        const auto file = readSweepFile(std::string_view(good).substr(0, length), "sweep.yaml");
        QVERIFY(file || !file.error().empty());
    }
}

void TestSweepFile::damagedAnywhere()
{
    const std::string good = kGood;
    for (std::size_t at = 0; at < good.size(); ++at) {
        for (const char c : {'[', '{', '"', '\'', '*', '=', ',', '\n', ':', '^', '.', '9', '\0', '\xff'}) {
            std::string text = good;
            text[at] = c;
            const auto file = readSweepFile(text, "sweep.yaml");
            QVERIFY(file || !file.error().empty());
        }
    }
}

MESHWRIGHT_TEST(TestSweepFile)

} // namespace tst_sweep_file

#include "tst_sweep_file.moc"
