// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QJsonArray>
#include <QTemporaryDir>

namespace tst_plan_verb {

using namespace meshwright::tests;

/// `meshwright plan` as a process.
class TestPlanVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void pageHasTheAnswer_data();
    void pageHasTheAnswer();
    void bestPlanIsAStudy();
    void changesAreSimulated();
    void smallerBatchesTakeOtherKinds();
    void smallestClusterInTime();
    void largestClusterForTheMoney();
    void sizesThatCanBeBuilt_data();
    void sizesThatCanBeBuilt();
    void unmetWishesAreInfeasible_data();
    void unmetWishesAreInfeasible();
    void modelThatFitsNowhere();
    void timeLimit();
    void batchByItsName();
    void batchIsShared_data();
    void batchIsShared();
    void fullDisk();
    void numbers_data();
    void numbers();
    void layoutsThatAreNot();
    void faults_data();
    void faults();

private:
    QStringList words(const QString& machine) const;

    QTemporaryDir m_folder;
    QString m_model;
};

namespace {

Outcome run(const QStringList& arguments)
{
    return runProgram(MESHWRIGHT_PROGRAM, arguments);
}

QJsonObject json(const Outcome& outcome)
{
    return QJsonDocument::fromJson(outcome.out).object();
}

/// The row of the table of sizes; -1: none.
qsizetype chosenSize(const QJsonObject& answer)
{
    const QJsonArray sizes = answer["sizes"].toArray();
    for (qsizetype i = 0; i < sizes.size(); ++i) {
        if (sizes[i].toObject()["chosen"].toBool())
            return i;
    }
    return -1;
}

} // namespace

/// A model of four layers: each simulation takes a fraction of a second.
void TestPlanVerb::initTestCase()
{
    m_model = m_folder.filePath("small.json");
    QFile file(m_model);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 4,
        "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 4096})");
}

QStringList TestPlanVerb::words(const QString& machine) const
{
    return {"plan", m_model, "--on", machine, "--tokens", "100B", "--seq", "2k", "--batch", "512k", "--fix", "pipeline=1"};
}

void TestPlanVerb::pageHasTheAnswer_data()
{
    QTest::addColumn<QString>("format");
    QTest::addColumn<QByteArrayList>("said");

    QTest::newRow("text") << "text" << QByteArrayList{"what would change the answer"};
    QTest::newRow("json") << "json" << QByteArrayList{"\"meshwright.plan/1\""};
    // With the command and its choices, what launches it, and what is assumed.
    QTest::newRow("md") << "md"
                        << QByteArrayList{"## What would change the answer", "--batch 512k --fix pipeline=1", "torchrun \\\n  --",
                               "| assumed | a checkpoint holds"};
    // With what launches it, and how far off it may be.
    QTest::newRow("html") << "html"
                          << QByteArrayList{"<title>Training llama on 8 H100 SXM 80GB",
                                 "<h2 id=\"launch\">How it is launched</h2>",
                                 "<td>measured over simulated steps of published runs</td>"};
}

void TestPlanVerb::pageHasTheAnswer()
{
    QFETCH(QString, format);
    QFETCH(QByteArrayList, said);
    const Outcome outcome = run(words("8xH100") + QStringList{"--format", format});
    QVERIFY2(outcome.code == 0, outcome.err.constData());
    for (const QByteArray& text : said)
        QVERIFY2(outcome.out.contains(text), (text + " is missing in " + outcome.out).constData());
    if (format == "json") {
        QCOMPARE(errorsAgainst("plan-1.json", outcome.out), QStringList());
        QVERIFY(json(outcome)["plans"].toArray().first().toObject()["price_per_step"].toDouble() > 0.0); // H100 have one
    }
    // A file's ending chooses the same page.
    if (format == "html") {
        const QString file = m_folder.filePath("page.html");
        QCOMPARE(run(words("8xH100") + QStringList{"-o", file}).code, 0);
        QFile page(file);
        QVERIFY(page.open(QIODevice::ReadOnly));
        const QByteArray written = page.readAll();
        for (const QByteArray& text : said)
            QVERIFY2(written.contains(text), (text + " is missing in the file").constData());
    }
}

/// The study that is written is simulated to the step and bytes of the first plan; days and dollars follow from it.
void TestPlanVerb::bestPlanIsAStudy()
{
    const QString file = m_folder.filePath("plan.yaml");
    const Outcome found = run(words("8xH100") + QStringList{"--price", "2.50", "--format", "json", "-o", file});
    QVERIFY2(found.code == 0, found.err.constData());
    QCOMPARE(errorsAgainst("plan-1.json", found.out), QStringList());
    const QJsonObject answer = json(found);
    const QJsonObject best = answer["plans"].toArray().first().toObject();
    const Outcome simulated = run({"simulate", file, "--format", "json"});
    QVERIFY2(simulated.code == 0, simulated.err.constData());
    for (const char* field : {"step_time_s", "peak_bytes_per_device", "mfu"})
        QCOMPARE(best[field].toDouble(), json(simulated)[field].toDouble());
    const double batch = 512.0 * 1024.0;
    QCOMPARE(answer["tokens_per_s"].toDouble(), batch / best["step_time_s"].toDouble());
    const double share = answer["time"].toObject()["goodput"].toObject()["share"].toDouble();
    const double days = std::ceil(100e9 / batch) * best["step_time_s"].toDouble() / share / 86400.0;
    QCOMPARE(answer["days"].toDouble(), days);
    QCOMPARE(answer["cost_usd"].toDouble(), days * 24.0 * 8.0 * 2.5);
    QVERIFY(answer["range"].toObject()["low"].toDouble() < days && answer["range"].toObject()["high"].toDouble() > days);
}

/// No change is told of by an estimate. Less of a bad thing is never worse: memory is not, since the best plan may stay.
void TestPlanVerb::changesAreSimulated()
{
    const QJsonObject answer = json(run(words("16xH100") + QStringList{"--format", "json"}));
    QSet<QString> kinds;
    for (const auto& one : answer["changes"].toArray()) {
        const QJsonObject change = one.toObject();
        kinds.insert(change["kind"].toString());
        if (change["plan"].isNull()) {
            QVERIFY(!change["why_not"].toString().isEmpty());
            continue;
        }
        QCOMPARE(change["plan"].toObject()["step_time_by"].toString(), QString("simulator"));
        if (change["kind"].toString() == "memory" || change["what"].toString().startsWith("twice the network"))
            QVERIFY2(change["gain"].toDouble() > -1e-9, qPrintable(change["what"].toString()));
    }
    QCOMPARE(kinds, (QSet<QString>{"memory", "recompute", "batch", "network"}));
}

/// Half a batch of one sequence a device leaves no plan of the best one's kind: another kind is told of.
void TestPlanVerb::smallerBatchesTakeOtherKinds()
{
    const QJsonObject answer = json(run({"plan", m_model, "--on", "16xH100", "--tokens", "100B", "--seq", "2k", "--global-batch",
        "16", "--fix", "pipeline=1", "--format", "json"}));
    QVERIFY(!answer["changes"].toArray().isEmpty());
    for (const auto& one : answer["changes"].toArray()) {
        const QJsonObject change = one.toObject();
        QVERIFY2(change["kind"].toString() != "batch" || !change["plan"].isNull(), qPrintable(change["why_not"].toString()));
    }
}

/// The chosen size is simulated and done in time; the one before it is not.
void TestPlanVerb::smallestClusterInTime()
{
    const QStringList free = words("H100") + QStringList{"--format", "json"};
    const double days = json(run(words("8xH100") + QStringList{"--format", "json"}))["days"].toDouble();
    const Outcome outcome = run(free + QStringList{"--deadline", QString::number(0.7 * days) + "d"});
    QVERIFY2(outcome.code == 0, (outcome.out + outcome.err).constData());
    QCOMPARE(errorsAgainst("plan-1.json", outcome.out), QStringList());
    const QJsonObject answer = json(outcome);
    QVERIFY(answer["meets"].toBool());
    QVERIFY(answer["days"].toDouble() <= 0.7 * days);
    const qsizetype chosen = chosenSize(answer);
    QVERIFY(chosen >= 1);
    const QJsonArray sizes = answer["sizes"].toArray();
    QCOMPARE(sizes[chosen].toObject()["verdict"].toString(), QString("meets it"));
    QVERIFY(sizes[chosen].toObject()["simulated"].toBool());
    QCOMPARE(sizes[chosen].toObject()["chips"].toInt(), answer["cluster"].toObject()["chips"].toInt());
    QCOMPARE(sizes[chosen].toObject()["time"].toObject()["days"].toDouble(), answer["days"].toDouble()); // of the same search
    const QJsonObject before = sizes[chosen - 1].toObject();
    QVERIFY(before["simulated"].toBool());
    QVERIFY(before["time"].toObject()["days"].toDouble() > 0.7 * days);
    const QJsonObject least = json(run(free + QStringList{"--min-gpus"}));
    QCOMPARE(least["cluster"].toObject()["chips"].toInt(), 1);
}

/// Twice as many chips as the budget pays for are too expensive.
void TestPlanVerb::largestClusterForTheMoney()
{
    const QStringList priced = {"--price", "2", "--format", "json"};
    const double dollars = json(run(words("16xH100") + priced))["cost_usd"].toDouble();
    const Outcome outcome = run(words("H100") + priced + QStringList{"--budget", QString::number(1.01 * dollars, 'f', 0)});
    QVERIFY2(outcome.code == 0, (outcome.out + outcome.err).constData());
    QCOMPARE(errorsAgainst("plan-1.json", outcome.out), QStringList());
    const QJsonObject answer = json(outcome);
    QVERIFY(answer["cluster"].toObject()["chips"].toInt() >= 16);
    QVERIFY(answer["cost_usd"].toDouble() <= 1.01 * dollars);
    const qsizetype chosen = chosenSize(answer);
    const QJsonArray sizes = answer["sizes"].toArray();
    QVERIFY(chosen >= 0 && chosen + 1 < sizes.size());
    QVERIFY(sizes[chosen].toObject()["simulated"].toBool());
    QVERIFY(sizes[chosen + 1].toObject()["simulated"].toBool());
    QCOMPARE(sizes[chosen + 1].toObject()["verdict"].toString(), QString("too expensive"));
}

void TestPlanVerb::sizesThatCanBeBuilt_data()
{
    QTest::addColumn<QString>("machine");
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("cluster"); // of the first size
    QTest::addColumn<QString>("verdict");
    QTest::newRow("hosts whose network is not known") << "l40s"
                                                      << "llama3_70b"
                                                      << "32 L40S 48GB"
                                                      << "the catalogue has no figure for the network between hosts of L40S 48GB";
    QTest::newRow("slices") << "v5e"
                            << "llama3_405b"
                            << "2 slices of 256 TPU v5e"
                            << "";
}

/// Sizes end with the first that cannot be built, and none is recommended; TPUs go on in several slices.
void TestPlanVerb::sizesThatCanBeBuilt()
{
    QFETCH(QString, machine);
    QFETCH(QString, model);
    QFETCH(QString, cluster);
    QFETCH(QString, verdict);
    const Outcome outcome = run(
        {"plan", model, "--on", machine, "--tokens", "1T", "--seq", "4k", "--min-gpus", "--time-limit", "3", "--format", "json"});
    QVERIFY2(outcome.code == 0 || outcome.code == 4, outcome.err.constData());
    QCOMPARE(errorsAgainst("plan-1.json", outcome.out), QStringList());
    const QJsonObject answer = json(outcome);
    const QJsonObject first = answer["sizes"].toArray().first().toObject();
    QCOMPARE(first["cluster"].toString(), cluster);
    QVERIFY2(verdict.isEmpty() || first["verdict"].toString() == verdict, qPrintable(first["verdict"].toString()));
    for (const auto& change : answer["changes_that_fit"].toArray())
        QVERIFY2(!change.toString().contains("chips in place of"), qPrintable(change.toString()));
}

void TestPlanVerb::unmetWishesAreInfeasible_data()
{
    QTest::addColumn<QStringList>("wish");
    QTest::newRow("an hour on eight chips") << QStringList{"--deadline", "1h"};
    QTest::newRow("ten dollars for eight chips") << QStringList{"--budget", "10"};
}

/// The best answer is shown, and the exit code says that it is not what was asked for.
void TestPlanVerb::unmetWishesAreInfeasible()
{
    QFETCH(QStringList, wish);
    const Outcome outcome = run(words("8xH100") + wish + QStringList{"--format", "json"});
    QVERIFY2(outcome.code == 4, outcome.err.constData());
    QCOMPARE(errorsAgainst("plan-1.json", outcome.out), QStringList());
    QVERIFY(!json(outcome)["meets"].toBool());
    QVERIFY(json(outcome)["fits"].toBool());
}

void TestPlanVerb::modelThatFitsNowhere()
{
    const QStringList large = {"plan", "llama3_70b", "--on", "8xH100", "--tokens", "1T", "--seq", "4k", "--batch", "32k"};
    const Outcome outcome = run(large + QStringList{"--format", "json"});
    QCOMPARE(outcome.code, 4);
    QCOMPARE(errorsAgainst("plan-1.json", outcome.out), QStringList());
    QVERIFY(json(outcome)["days"].isNull());
    QVERIFY(!json(outcome)["changes_that_fit"].toArray().isEmpty());
    const Outcome text = run(large);
    QCOMPARE(text.code, 4);
    QVERIFY2(text.out.contains("no plan fits"), text.out.constData());
}

/// A search that has no time says so.
void TestPlanVerb::timeLimit()
{
    QElapsedTimer timer;
    timer.start();
    const Outcome outcome = run({"plan", "llama3_405b", "--on", "16384xH100", "--tokens", "15T", "--seq", "8k", "--batch", "16M",
        "--time-limit", "0.5", "--format", "json"});
    constexpr qint64 kCrowded = 8'000; // milliseconds that a test of many at once may wait for a core
    QVERIFY2(timer.elapsed() < 500 + kCrowded, qPrintable(QString::number(timer.elapsed())));
    QVERIFY2(outcome.code == 0 || outcome.code == 4, outcome.err);
    QCOMPARE(errorsAgainst("plan-1.json", outcome.out), QStringList());
    QVERIFY(!json(outcome)["not_simulated"].toArray().isEmpty() || json(outcome)["plans"].toArray().isEmpty());
    // What there was no time to look for is not said to fit nowhere.
    const Outcome none = run({"plan", "llama3_405b", "--on", "16384xH100", "--tokens", "15T", "--time-limit", "0.001"});
    QVERIFY2(!none.out.contains("no plan fits"), none.out);
}

/// What a search calls tokens is the batch here, and problems call it so.
void TestPlanVerb::batchByItsName()
{
    const Outcome outcome = run({"plan", m_model, "--on", "8xH100", "--tokens", "100B", "--seq", "4k", "--batch", "5000"});
    QCOMPARE(outcome.code, 2);
    QVERIFY2(outcome.err.contains("fix: --batch 4096"), outcome.err);
}

void TestPlanVerb::batchIsShared_data()
{
    QTest::addColumn<QString>("machine");
    QTest::addColumn<int>("sequence");
    QTest::addColumn<int>("batch");
    QTest::newRow("a usual one") << "64xH100" << 4096 << 1024;
    QTest::newRow("sequences of no power of two") << "8xH100" << 5000 << 832;
    QTest::newRow("more devices than sequences") << "512xH100" << 12000 << 256;
    QTest::newRow("devices of no power of two") << "96xH100" << 6000 << 672;
    QTest::newRow("few of them") << "7xH100" << 4096 << 1008;
}

/// Without a batch it is about 4M tokens, in sequences that the devices share evenly.
void TestPlanVerb::batchIsShared()
{
    QFETCH(QString, machine);
    QFETCH(int, sequence);
    QFETCH(int, batch);
    const Outcome outcome = run({"plan", m_model, "--on", machine, "--tokens", "100B", "--seq", QString::number(sequence),
        "--time-limit", "0.1", "--format", "json"});
    QCOMPARE(json(outcome)["global_batch"].toInt(), batch);
}

/// The answer took its time: it is shown although its file cannot be written.
void TestPlanVerb::fullDisk()
{
    const Outcome outcome = run(words("8xH100") + QStringList{"--format", "md", "-o", "/dev/full"});
    QVERIFY2(outcome.code == 6, outcome.err);
    QVERIFY2(outcome.err.contains("MW1007"), outcome.err);
    QVERIFY(outcome.out.contains("# Training"));
}

/// Amounts and times as people write them.
void TestPlanVerb::numbers_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("field");
    QTest::addColumn<QVariant>("value");
    for (const char* tokens : {"100B", "100 billion", "1e11", "100,000,000,000", "0.1T", "100 B", "100G"})
        QTest::newRow(tokens) << QStringList{"--on", "8xH100", "--tokens", tokens} << "tokens" << QVariant(1e11);
    for (const char* time : {"14d", "14 days", "2w", "2 weeks", "336h", "336 hours"})
        QTest::newRow(time) << QStringList{"--on", "8xH100", "--tokens", "100B", "--deadline", time} << "wanted"
                            << QVariant("in 14.0 days");
    for (const char* budget : {"2M", "$2M", "$2 million", "2,000,000"})
        QTest::newRow(budget) << QStringList{"--on", "8xH100", "--tokens", "100B", "--budget", budget} << "wanted"
                              << QVariant("for $2.00 M");
}

void TestPlanVerb::numbers()
{
    QFETCH(QStringList, arguments);
    QFETCH(QString, field);
    QFETCH(QVariant, value);
    const Outcome outcome
        = run(QStringList{"plan", m_model} + arguments + QStringList{"--time-limit", "0.001", "--format", "json"});
    QVERIFY2(outcome.code == 0 || outcome.code == 4, outcome.err.constData());
    QCOMPARE(json(outcome)[field].toVariant(), value);
}

/// Choices that exclude each other are not changes that would fit.
void TestPlanVerb::layoutsThatAreNot()
{
    const QStringList command = {"plan", m_model, "--on", "8xH100", "--tokens", "100B", "--plan", "tp=3"};
    const Outcome outcome = run(command + QStringList{"--format", "json"});
    QCOMPARE(outcome.code, 4);
    QCOMPARE(errorsAgainst("plan-1.json", outcome.out), QStringList());
    QCOMPARE(json(outcome)["why_none"].toArray().first().toString(),
        QString("tensor=3 does not divide the 8 devices of 8 H100 SXM 80GB"));
    for (const auto& change : json(outcome)["changes_that_fit"].toArray())
        QVERIFY2(change.toString().contains(" in place of "), qPrintable(change.toString()));
    const Outcome text = run(command);
    QVERIFY2(text.out.contains("no legal layout\n  tensor=3 does not divide"), text.out.constData());
    QVERIFY(!text.out.contains("no plan fits"));
}

void TestPlanVerb::faults_data()
{
    addExitCodeColumns();

    const QStringList model = {"llama3_8b"};
    const QStringList whole = {"llama3_8b", "--on", "8xH100", "--tokens", "1T"};
    QTest::newRow("nothing") << QStringList{} << 2 << "MW1904";
    QTest::newRow("tokens below 0") << model + QStringList{"--on", "8xH100", "--tokens", "-3"} << 2 << "MW1943";
    QTest::newRow("tokens that are no number") << model + QStringList{"--on", "8xH100", "--tokens", "nan"} << 2 << "MW1943";
    QTest::newRow("tokens above 10^18") << model + QStringList{"--on", "8xH100", "--tokens", "2e18"} << 2 << "MW1943";
    QTest::newRow("a deadline without a unit") << whole + QStringList{"--deadline", "30"} << 2 << "MW1943";
    QTest::newRow("a deadline below 0") << whole + QStringList{"--deadline", "-3d"} << 2 << "MW1943";
    QTest::newRow("a deadline in months") << whole + QStringList{"--deadline", "2 months"} << 2 << "MW1943";
    QTest::newRow("a number with wrong commas") << model + QStringList{"--on", "8xH100", "--tokens", "1,00"} << 2 << "MW1943";
    QTest::newRow("a budget of words") << whole + QStringList{"--budget", "much"} << 2 << "MW1943";
    QTest::newRow("a chip without a number") << model + QStringList{"--on", "H100", "--tokens", "1T"} << 2 << "MW1944";
    QTest::newRow("a number that is looked for") << whole + QStringList{"--min-gpus"} << 2 << "MW1944";
    QTest::newRow("a budget without a price")
        << model + QStringList{"--on", "v2", "--tokens", "1T", "--budget", "1M"} << 2 << "MW1944";
    QTest::newRow("a price below 0 for a budget")
        << model + QStringList{"--on", "L40S", "--tokens", "1T", "--budget", "2M", "--price", "-1"} << 2 << "MW1939";
    QTest::newRow("a price that is none") << whole + QStringList{"--price", "nan"} << 2 << "MW1939";
    QTest::newRow("a choice that is none") << whole + QStringList{"--fix", "tensr=2"} << 2 << "MW1938";
    QTest::newRow("two batches") << whole + QStringList{"--batch", "1M", "--global-batch", "8"} << 2 << "MW1936";
    QTest::newRow("a sequence of nothing") << whole + QStringList{"--seq", "0"} << 2 << "MW1935";
    QTest::newRow("no time") << whole + QStringList{"--time-limit", "0"} << 2 << "MW1903";
    QTest::newRow("no such model") << QStringList{"no_model", "--on", "8xH100", "--tokens", "1T"} << 3 << "MW1001";
    QTest::newRow("no such chip") << model + QStringList{"--on", "8xH999", "--tokens", "1T"} << 3 << "MW1701";
    QTest::newRow("no chips") << model + QStringList{"--on", "0xH100", "--tokens", "1T"} << 3 << "MW1914";
    QTest::newRow("an ending that no page has") << whole + QStringList{"-o", "plan.pdf"} << 2 << "MW1903";
}

void TestPlanVerb::faults()
{
    QFETCH(QStringList, arguments);
    checkExitCode(run(QStringList{"plan"} + arguments));
}

MESHWRIGHT_TEST(TestPlanVerb)

} // namespace tst_plan_verb

#include "tst_plan_verb.moc"
