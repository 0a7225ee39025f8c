// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QDir>
#include <QJsonArray>
#include <QTemporaryDir>

namespace tst_search_verb {

using namespace meshwright::tests;

/// `meshwright search` as a process.
class TestSearchVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void formats_data();
    void formats();
    void bestPlanIsAStudy();
    void plansAreStudies_data();
    void plansAreStudies();
    void allIsSimulated();
    void mlpStudyIsSimulated();
    void templatesSayWhatCannotBe_data();
    void templatesSayWhatCannotBe();
    void deepMlp();
    void programPlan();
    void infeasible();
    void choicesThatCannotBe_data();
    void choicesThatCannotBe();
    void instances();
    void faults_data();
    void faults();
    void studyFaults_data();
    void studyFaults();
    void timeLimit_data();
    void timeLimit();
    void interrupted();
    void largeExample();
};

namespace {

const QStringList kSmall = {"search", "--model", "llama3_8b", "--hw", "h100x16", "--tokens", "256k", "--seq", "4k"};

Outcome run(const QStringList& arguments)
{
    return runProgram(MESHWRIGHT_PROGRAM, arguments);
}

QJsonObject json(const Outcome& outcome)
{
    return QJsonDocument::fromJson(outcome.out).object();
}

/// The numbers that a report tells.
void addNumbers(const QJsonValue& value, QList<double>& numbers)
{
    if (value["number"].isDouble())
        numbers.push_back(value["number"].toDouble());
    for (const QJsonValue& one : value.toArray())
        addNumbers(one, numbers);
    for (const QJsonValue& one : value.toObject())
        addNumbers(one, numbers);
}

/// Steps and losses of what is told beside the plans are of one kind with them: none is quicker than the best.
void verifyAnswersAreSimulated(const QJsonObject& found)
{
    QCOMPARE(found["answers_of"].toString(), QString("simulated"));
    const double best = found["plans"].toArray().first().toObject()["step_time_s"].toDouble();
    for (const auto& other : found["next_best"].toArray()) {
        const double step = other.toObject()["step_time_s"].toDouble();
        QVERIFY(step >= best);
        QVERIFY(std::abs(other.toObject()["loss"].toDouble() - (step / best - 1.0)) < 1e-9);
    }
    for (const auto& score : found["templates"].toArray()) {
        const QJsonObject one = score.toObject();
        QVERIFY(!one["fits"].toBool() || one["step_time_s"].toDouble() >= best);
        QVERIFY2(!one["why"].toString().isEmpty(), qPrintable(one["name"].toString()));
    }
    for (const auto& plan : found["pareto_front"].toArray()) {
        QCOMPARE(plan.toObject()["step_time_by"].toString(), QString("simulator"));
        QVERIFY(plan.toObject()["step_time_s"].toDouble() >= best);
    }
}

} // namespace

void TestSearchVerb::formats_data()
{
    QTest::addColumn<QString>("format");
    QTest::addColumn<QByteArray>("said");

    QTest::newRow("text") << "text" << QByteArray("the next best choices");
    QTest::newRow("json") << "json" << QByteArray("\"meshwright.search/2\"");
    QTest::newRow("csv") << "csv" << QByteArray("\n1,16 H100");
    QTest::newRow("md") << "md" << QByteArray("| ---: |");
}

void TestSearchVerb::formats()
{
    QFETCH(QString, format);
    QFETCH(QByteArray, said);
    const QStringList parts = format == "text" ? QStringList{} : QStringList{"--plans-only"};
    const Outcome outcome = run(kSmall + parts + QStringList{"--top", "3", "--format", format});
    QVERIFY2(outcome.code == 0, outcome.err.constData());
    QVERIFY2(outcome.out.contains(said), outcome.out.constData());
    if (format != "json")
        return;
    QCOMPARE(errorsAgainst("search-2.json", outcome.out), QStringList());
    const QJsonArray plans = json(outcome)["plans"].toArray();
    QCOMPARE(plans.size(), 3);
    QVERIFY(json(outcome)["simulated"].toInt() >= 3);
    double before = 0.0; // simulated plans stand in the order of their steps
    for (const auto& plan : plans) {
        QCOMPARE(plan.toObject()["step_time_by"].toString(), QString("simulator"));
        QVERIFY(plan.toObject()["step_time_s"].toDouble() >= before);
        before = plan.toObject()["step_time_s"].toDouble();
        QVERIFY(plan.toObject()["step_time_s"].toDouble() >= json(outcome)["lower_bound_s"].toDouble());
        QVERIFY(!plan.toObject()["why"].toArray().isEmpty());
    }
}

/// What -o writes is checked without an error, and simulated to the step, the bytes and the MFU of the first plan; the estimate is near them.
void TestSearchVerb::bestPlanIsAStudy()
{
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.yaml");
    const Outcome found = run(kSmall
        + QStringList{"--fix", "zero=1,tensor=2", "--fix", "context=1,pipeline=2,recompute=full", "--plans-only", "--format",
            "json", "-o", file});
    QVERIFY2(found.code == 0, found.err.constData());
    const Outcome checked = run({"check", file});
    QVERIFY2(checked.code == 0, checked.err.constData());
    const Outcome simulated = run({"simulate", file, "--format", "json"});
    QVERIFY2(simulated.code == 0, simulated.err.constData());
    const QJsonObject best = json(found)["plans"].toArray().first().toObject();
    QCOMPARE(best["step_time_by"].toString(), QString("simulator"));
    for (const char* field : {"step_time_s", "peak_bytes_per_device", "capacity_bytes", "mfu"})
        QCOMPARE(best[field].toDouble(), json(simulated)[field].toDouble());
    const double estimated = best["estimate_s"].toDouble();
    const double step = best["step_time_s"].toDouble();
    QVERIFY2(std::abs(step / estimated - 1.0) < 0.25, qPrintable(QString("%1 against %2").arg(step).arg(estimated)));
    QVERIFY(!json(simulated)["collectives"].toArray().isEmpty());
    QCOMPARE(run({"train", file}).code, 6); // a good study, for which this computer has no memory
}

/// Of models, clusters and templates: the study that is written is right, proved, and simulated and reported to the plan's step and bytes.
void TestSearchVerb::plansAreStudies_data()
{
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("hardware");
    QTest::addColumn<QString>("plan");
    QTest::newRow("HSDP on hosts of four") << "llama3_8b"
                                           << "4 nodes of 4 H100"
                                           << "HSDP";
    QTest::newRow("tensors in an instance") << "mistral_7b"
                                            << "p4d.24xlarge x 2"
                                            << "ZeRO-1 + TP 8";
    QTest::newRow("all ranks' states on a torus") << "gemma_7b"
                                                  << "v5p-32"
                                                  << "FSDP2";
    QTest::newRow("experts, two devices a chip") << "mixtral_8x7b"
                                                 << "mi250xx16"
                                                 << "expert=8,pipeline=1";
    QTest::newRow("cards without a network") << "gpt2"
                                             << "8x RTX 4090"
                                             << "dp8";
    QTest::newRow("slices") << "gpt2"
                            << "v5e-4x4"
                            << "data=4,fsdp=4";
    QTest::newRow("every second product kept") << "llama3_8b"
                                               << "h100x16"
                                               << "fsdp=16,recompute=selective_op";
    QTest::newRow("kept by name") << "llama3_8b"
                                  << "v5p-64"
                                  << "fsdp=32,recompute=save_qkv_proj";
    QTest::newRow("interleaved stages") << "gpt2"
                                        << "h20x8"
                                        << "tp2pp4,schedule=interleaved";
}

void TestSearchVerb::plansAreStudies()
{
    QFETCH(QString, model);
    QFETCH(QString, hardware);
    QFETCH(QString, plan);
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.yaml");
    const QString sequence = model == "gpt2" ? "1k" : "4k";
    const Outcome found = run({"search", "--model", model, "--hw", hardware, "--tokens", "0.5M", "--seq", sequence, "--plan",
        plan, "--plans-only", "--format", "json", "-o", file});
    QVERIFY2(found.code == 0, found.err + found.out);
    const QJsonObject best = json(found)["plans"].toArray().first().toObject();
    const Outcome checked = run({"check", file});
    QVERIFY2(checked.code == 0, checked.err + checked.out);
    const Outcome simulated = run({"simulate", file, "--format", "json"});
    QVERIFY2(simulated.code == 0, simulated.err);
    QVERIFY(json(simulated)["proof"].toObject()["proved"].toBool());
    const Outcome reported = run({"report", file, "--format", "json"});
    QVERIFY2(reported.code == 0, reported.err);
    QList<double> told;
    addNumbers(json(reported), told);
    for (const char* field : {"step_time_s", "peak_bytes_per_device"}) {
        QVERIFY(best[field].toDouble() > 0.0);
        QCOMPARE(best[field].toDouble(), json(simulated)[field].toDouble());
        QVERIFY2(told.contains(best[field].toDouble()), field);
    }
}

/// Every figure that is told is of a simulated step: nothing is quicker than the first plan, and the bound is below it.
void TestSearchVerb::allIsSimulated()
{
    const Outcome outcome = run(kSmall + QStringList{"--top", "3", "--format", "json"});
    QVERIFY2(outcome.code == 0, outcome.err.constData());
    const QJsonObject found = json(outcome);
    QCOMPARE(found["answers_of"].toString(), QString("simulated"));
    QCOMPARE(errorsAgainst("search-2.json", outcome.out), QStringList());
    QCOMPARE(found["gap_of"].toString(), QString("simulated"));
    const double best = found["plans"].toArray().first().toObject()["step_time_s"].toDouble();
    QVERIFY(found["lower_bound_s"].toDouble() > 0.5 * best && found["lower_bound_s"].toDouble() <= best);
    const Outcome asked = run(kSmall + QStringList{"--top", "1", "--plans-only", "--gap", "90%", "--format", "json"});
    QVERIFY2(asked.code == 0, asked.err.constData());
    for (const auto& plan : found["pareto_front"].toArray()) {
        QCOMPARE(plan.toObject()["step_time_by"].toString(), QString("simulator"));
        QVERIFY(plan.toObject()["step_time_s"].toDouble() >= best);
    }
    QVERIFY(!found["next_best"].toArray().isEmpty());
    verifyAnswersAreSimulated(found);
}

void TestSearchVerb::mlpStudyIsSimulated()
{
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.yaml");
    const Outcome outcome = run({"search", example("two_d.yaml"), "--format", "json", "-o", file});
    QVERIFY2(outcome.code == 0, outcome.err.constData());
    QCOMPARE(errorsAgainst("search-2.json", outcome.out), QStringList());
    const QJsonObject best = json(outcome)["plans"].toArray().first().toObject();
    QCOMPARE(best["step_time_by"].toString(), QString("simulator"));
    QVERIFY(best["specs"].toObject().contains("layers.0.w"));
    const Outcome simulated = run({"simulate", file, "--format", "json"});
    QVERIFY2(simulated.code == 0, simulated.err.constData());
    QCOMPARE(json(simulated)["step_time_s"].toDouble(), best["step_time_s"].toDouble());
    QVERIFY(json(outcome)["templates"].toArray().size() >= 3);
    verifyAnswersAreSimulated(json(outcome));
}

/// Why a template has no layout is said of what cannot be split, or of the memory.
void TestSearchVerb::templatesSayWhatCannotBe_data()
{
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("why");

    QTest::newRow("the batch") << QStringList() << "data parallel"
                               << "100 examples are not divisible by data=8";
    QTest::newRow("a layer's outputs") << QStringList() << "tensor parallel pairs (Megatron)"
                                       << "10 outputs of layers.2 are not divisible by model=8";
    QTest::newRow("both dimensions of a weight")
        << QStringList{"batch=96", "model.mlp.layers=[63, 9, 10]", "train.data=random", "sharding={}"} << "FSDP (ZeRO-3)"
        << "63 inputs and 9 outputs of layers.0 are not divisible by data=8";
    QTest::newRow("no such mesh") << QStringList{"hardware=h100x1", "mesh={data: 1}", "sharding={}"}
                                  << "data x tensor parallel pairs"
                                  << "no mesh of 1 device is of this kind";
}

void TestSearchVerb::templatesSayWhatCannotBe()
{
    QFETCH(QStringList, settings);
    QFETCH(QString, name);
    QFETCH(QString, why);
    QStringList words = {"search", example("digits.yaml"), "--format", "json"};
    for (const QString& setting : settings)
        words << "--set" << setting;
    const Outcome outcome = run(words);
    QVERIFY2(outcome.code == 0, outcome.err.constData());
    bool isFound = false;
    for (const auto& score : json(outcome)["templates"].toArray()) {
        if (score.toObject()["name"].toString() != name)
            continue;
        isFound = true;
        QCOMPARE(score.toObject()["why"].toString(), why);
        QVERIFY(!score.toObject()["fits"].toBool());
    }
    QVERIFY(isFound);
}

/// Of many layers those that take most are told of, and steps in one list are all simulated or all estimated, also where time runs out between.
void TestSearchVerb::deepMlp()
{
    QTemporaryDir folder;
    const QString file = folder.filePath("deep.yaml");
    const QByteArray study = "meshwright: 1\nmodel: {mlp: {layers: [64" + QByteArray(", 64").repeated(400)
        + "], loss: mse}}\nbatch: 4096\nhardware: h100x4\noptimizer: {sgd: {learning_rate: 0.1}}\n";
    QFile deep(file);
    QVERIFY(deep.open(QIODevice::WriteOnly) && deep.write(study) == study.size());
    deep.close();
    for (const QString& limit : {QString("1000"), QString("1")}) {
        const Outcome outcome = run({"search", file, "--format", "json", "--time-limit", limit});
        QVERIFY2(outcome.code == 0 || limit == "1", outcome.err.constData());
        QVERIFY(json(outcome)["next_best"].toArray().size() <= 12);
        QStringList ways;
        for (const auto& plan : json(outcome)["plans"].toArray())
            ways += plan.toObject()["step_time_by"].toString();
        ways.removeDuplicates();
        QVERIFY2(ways.size() <= 1, qPrintable(ways.join(", ")));
    }
}

/// A program's plan is a study and a program; both simulate to the step that was found, and the program really runs to the unsharded values.
void TestSearchVerb::programPlan()
{
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.yaml");
    const QByteArray study
        = "meshwright: 1\nname: perceptron\nhardware: {chip: v5e, topology: [4, 2]}\nmesh: {x: 8}\nmodel: {program: "
        + example("mlp.mlir").toUtf8() + "}\n";
    const Outcome found = runProgram(MESHWRIGHT_PROGRAM, {"search", "-", "--format", "json", "-o", file}, study);
    QVERIFY2(found.code == 0, found.err.constData());
    QCOMPARE(errorsAgainst("search-2.json", found.out), QStringList());
    const QJsonObject best = json(found)["plans"].toArray().first().toObject();
    QCOMPARE(best["step_time_by"].toString(), QString("simulator"));
    QVERIFY(best["estimate_s"].toDouble() >= json(found)["lower_bound_s"].toDouble());
    QVERIFY(!json(found)["next_best"].toArray().isEmpty());
    verifyAnswersAreSimulated(json(found));
    const Outcome simulated = run({"simulate", file, "--format", "json"});
    QVERIFY2(simulated.code == 0, simulated.err.constData());
    QCOMPARE(json(simulated)["step_time_s"].toDouble(), best["step_time_s"].toDouble());
    const Outcome ran = run({"run", folder.filePath("plan.mlir"), "--verify"});
    QVERIFY2(ran.code == 0, (ran.err + ran.out).constData());
    const Outcome alone = runProgram(MESHWRIGHT_PROGRAM, {"search", "-", "-o", folder.filePath("other.mlir")}, study);
    QVERIFY2(alone.code == 0, alone.err.constData());
    QVERIFY(!QFile::exists(folder.filePath("other.yaml")));
    QVERIFY(QFile::exists(folder.filePath("other.mlir")));
}

void TestSearchVerb::infeasible()
{
    const Outcome outcome
        = run({"search", "--model", "llama3_70b", "--hw", "h100x8", "--tokens", "32k", "--seq", "4k", "--format", "json"});
    QCOMPARE(outcome.code, 4);
    QCOMPARE(errorsAgainst("search-2.json", outcome.out), QStringList());
    QVERIFY(!json(outcome)["changes_that_fit"].toArray().isEmpty());
    QVERIFY(!json(outcome)["plans"].toArray().first().toObject()["fits"].toBool());
}

void TestSearchVerb::choicesThatCannotBe_data()
{
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("fixed");
    QTest::addColumn<QStringList>("reasons");

    const QString on = " of 32 H100 SXM 80GB";
    QTest::newRow("an axis longer than the machine")
        << "mixtral_8x7b"
        << "expert=64"
        << QStringList{"expert=64 is more than the 32 devices" + on, "expert=64: 8 experts are not divisible by 64"};
    QTest::newRow("a mesh that is too large")
        << "llama3_8b"
        << "tensor=16,pipeline=8" << QStringList{"tensor=16 pipeline=8 take 128 devices, which do not divide the 32" + on};
    QTest::newRow("a size that divides nothing")
        << "llama3_8b"
        << "tensor=12"
        << QStringList{"tensor=12 does not divide the 32 devices" + on, "tensor=12: 32 heads are not divisible by 12"};
    QTest::newRow("experts of a model without") << "llama3_8b"
                                                << "expert=8" << QStringList{"expert=8: the model has no experts"};
    const QString possible = ": with the other choices as they are, possible ";
    QTest::newRow("a microbatch that the batch does not have")
        << "llama3_8b"
        << "microbatch=1000000"
        << QStringList{"microbatch=1000000: 256 sequences are not divisible by 1000000",
               "microbatch=1000000" + possible + "are 1, 2, 4, 8, 16, 32, 64, 128, 256; the nearest is 256"};
    QTest::newRow("chunks that no stages have")
        << "llama3_8b"
        << "chunks=9" << QStringList{"chunks=9" + possible + "are 1, 2, 4, 8, 16, 17; the nearest is 8"};
    QTest::newRow("a schedule of no pipeline") << "llama3_8b"
                                               << "pipeline=1,schedule=gpipe"
                                               << QStringList{"pipeline=1" + possible + "are 2, 4, 8, 16, 32; the nearest is 2",
                                                      "schedule=gpipe" + possible + "is schedule none"};
    QTest::newRow("more experts' ranks than experts")
        << "mixtral_8x7b"
        << "expert=16" << QStringList{"expert=16: 8 experts are not divisible by 16"};
}

void TestSearchVerb::choicesThatCannotBe()
{
    QFETCH(QString, model);
    QFETCH(QString, fixed);
    QFETCH(QStringList, reasons);
    const QStringList words = {"search", "--model", model, "--hw", "32xH100", "--tokens", "1M", "--seq", "4k", "--fix", fixed};
    const Outcome found = run(words + QStringList{"--format", "json"});
    QCOMPARE(found.code, 4);
    QCOMPARE(errorsAgainst("search-2.json", found.out), QStringList());
    QStringList why = json(found)["why_none"].toVariant().toStringList();
    QVERIFY2(why.last().contains("with the other choices as they are, possible "), why.last().toUtf8());
    why.resize(reasons.size());
    QCOMPARE(why, reasons);
    const Outcome text = run(words);
    QCOMPARE(text.code, 4);
    for (const QString& reason : reasons)
        QVERIFY2(text.out.contains(reason.toUtf8()), text.out.constData());
    QVERIFY(!text.out.contains("templates"));
    QVERIFY2(text.out.contains("the smallest changes that fit"), text.out.constData());
}

/// A plan on a cloud's machines is written with them, and simulated on their network. With ZeRO-1 the program of the step gathers more than they hold.
void TestSearchVerb::instances()
{
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.yaml");
    const auto plan = [&](const QString& machine) {
        return run({"search", "--model", "llama3_8b", "--hw", machine, "--tokens", "0.5M", "--seq", "4k", "--fix",
            "data=16,fsdp=1,zero=2,pipeline=1", "--format", "json", "-o", file});
    };
    const Outcome quick = plan("p5.48xlarge x 2");
    QVERIFY2(quick.code == 0, quick.err.constData());
    QVERIFY2(quick.err.contains("p5.48xlarge x 2 is 16 chips: the name counts machines of 8"), quick.err.constData());
    const Outcome simulated = run({"simulate", file, "--no-prove"});
    QVERIFY2(simulated.out.contains("p5.48xlarge"), (simulated.out + simulated.err).constData());
    const Outcome slow = plan("a3-highgpu-8g x 2"); // the same GPUs, a quarter of the network
    for (const char* field : {"estimate_s", "step_time_s"}) {
        const auto seconds
            = [&](const Outcome& outcome) { return json(outcome)["plans"].toArray().first().toObject()[field].toDouble(); };
        QVERIFY2(seconds(slow) > seconds(quick), field);
    }
}

void TestSearchVerb::faults_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QByteArray>("said");

    const QStringList model = {"--model", "llama3_8b"};
    QTest::newRow("nothing") << QStringList{} << 2 << QByteArray("MW1933");
    QTest::newRow("per op without a study") << model + QStringList{"--hw", "h100x8", "--tokens", "1M", "--per-op"} << 2
                                            << QByteArray("MW1933");
    QTest::newRow("no hardware") << model + QStringList{"--tokens", "1M"} << 2 << QByteArray("MW1933");
    QTest::newRow("study and model") << model + QStringList{example("two_d.yaml")} << 2 << QByteArray("MW1934");
    QTest::newRow("no such model") << QStringList{"--model", "no_model", "--hw", "h100x8", "--tokens", "1M"} << 3
                                   << QByteArray("MW1001");
    QTest::newRow("no such chip") << model + QStringList{"--hw", "h999x8", "--tokens", "1M"} << 3 << QByteArray("MW1701");
    QTest::newRow("zero chips") << model + QStringList{"--hw", "h100x0", "--tokens", "1M"} << 3 << QByteArray("MW1914");
    QTest::newRow("2^63 tokens") << model + QStringList{"--hw", "h100x8", "--tokens", "9223372036854775808"} << 2
                                 << QByteArray("MW1935");
    QTest::newRow("NaN tokens") << model + QStringList{"--hw", "h100x8", "--tokens", "nan"} << 2 << QByteArray("MW1935");
    QTest::newRow("no batch") << model + QStringList{"--hw", "h100x8"} << 2 << QByteArray("MW1936");
    QTest::newRow("more tokens than positions are learned")
        << QStringList{"--model", "gpt2", "--hw", "h100x8", "--tokens", "128k", "--seq", "2k"} << 3 << QByteArray("MW1355");
    QTest::newRow("choice") << model + QStringList{"--hw", "h100x8", "--tokens", "1M", "--fix", "tensr=2"} << 2
                            << QByteArray("MW1938");
    QTest::newRow("price") << model + QStringList{"--hw", "h100x8", "--tokens", "1M", "--price", "nan"} << 2
                           << QByteArray("MW1939");
    QTest::newRow("top") << model + QStringList{"--hw", "h100x8", "--tokens", "1M", "--top", "0"} << 2 << QByteArray("MW1903");
    QTest::newRow("time limit") << model + QStringList{"--hw", "h100x8", "--tokens", "1M", "--time-limit", "-1"} << 2
                                << QByteArray("MW1903");
    QTest::newRow("slice too large") << model + QStringList{"--hw", "v5e-1024", "--tokens", "1M"} << 3 << QByteArray("MW1747");
    QTest::newRow("impossible mesh") << model + QStringList{"--hw", "h100x8", "--tokens", "1M", "--fix", "tensor=7"} << 4
                                     << QByteArray();
}

void TestSearchVerb::faults()
{
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QByteArray, said);
    const Outcome outcome = run(QStringList{"search"} + arguments);
    QVERIFY2(outcome.code == code, (outcome.err + outcome.out).constData());
    QVERIFY2(outcome.err.contains(said), outcome.err.constData());
}

void TestSearchVerb::studyFaults_data()
{
    QTest::addColumn<QString>("verb");
    QTest::addColumn<QByteArray>("study");
    QTest::addColumn<QByteArray>("said");

    const QByteArray head = "meshwright: 1\nname: n\nhardware: {chip: h100, hosts: 1, per_host: 4}\n";
    const QByteArray model = "model: {transformer: {layers: 4, hidden: 64, heads: 4, vocabulary: 128}}\nsequence: 32\n";
    QTest::newRow("no such program") << "search" << head + "mesh: {data: 4}\nmodel: {program: step.mlir}\n"
                                     << QByteArray("MW1001");
    QTest::newRow("a program for one mesh") << "search"
                                            << head + "mesh: {data: 4}\nmodel: {program: " + example("pmap_step.mlir").toUtf8()
            + "}\n" << QByteArray("MW1782");
    QTest::newRow("stages that are not the axis")
        << "simulate" << head + "mesh: {pipe: 4}\n" + model + "batch: 8\npipeline: {axis: pipe, stages: 2, microbatches: 2}\n"
        << QByteArray("MW1460");
    QTest::newRow("microbatches that do not divide")
        << "simulate" << head + "mesh: {pipe: 4}\n" + model + "batch: 8\npipeline: {axis: pipe, stages: 4, microbatches: 3}\n"
        << QByteArray("MW1461");
}

void TestSearchVerb::studyFaults()
{
    QFETCH(QString, verb);
    QFETCH(QByteArray, study);
    QFETCH(QByteArray, said);
    const Outcome outcome = runProgram(MESHWRIGHT_PROGRAM, {verb, "-"}, study);
    QVERIFY2(outcome.code == 3, (outcome.err + outcome.out).constData());
    QVERIFY2((outcome.err + outcome.out).contains(said), (outcome.err + outcome.out).constData());
}

void TestSearchVerb::timeLimit_data()
{
    QTest::addColumn<QStringList>("what");
    QTest::newRow("a very large model") << QStringList{
        "--model", "llama3_405b", "--hw", "h100x16384", "--tokens", "64M", "--seq", "8k"};
    QTest::newRow("experts") << QStringList{"--model", "deepseek_v3", "--hw", "h100x16384", "--tokens", "64M", "--seq", "1k"};
    QTest::newRow("op by op") << QStringList{example("transformer_64.yaml"), "--per-op"};
}

/// The limit holds whatever the search is at: in enumerating, bounding, playing pipelines, eliminating or simulating.
void TestSearchVerb::timeLimit()
{
    QFETCH(QStringList, what);
    QElapsedTimer timer;
    timer.start();
    const Outcome outcome = run(QStringList{"search"} + what + QStringList{"--time-limit", "0.2", "--format", "json"});
    constexpr qint64 kCrowded = 8'000; // milliseconds that a test of many at once may wait for a core
    QVERIFY2(timer.elapsed() < 200 + kCrowded, qPrintable(QString::number(timer.elapsed())));
    QVERIFY2(outcome.code == 0 || outcome.code == 4, outcome.err);
    QCOMPARE(errorsAgainst("search-2.json", outcome.out), QStringList());
}

/// Ctrl-C ends with what was found, and says so.
void TestSearchVerb::interrupted()
{
    QProcess process;
    process.start(MESHWRIGHT_PROGRAM,
        {"search", "--model", "llama3_405b", "--hw", "h100x16384", "--tokens", "64M", "--seq", "8k", "--format", "json",
            "--threads", "1"});
    QVERIFY(process.waitForStarted());
    QVERIFY(interruptWhen(process, [&] { return waitsForInterrupts(process); }));
    QVERIFY(process.waitForFinished(30'000));
    const QByteArray out = process.readAllStandardOutput();
    if (process.exitCode() == 0)
        QSKIP("it was done before the signal");
    QCOMPARE(process.exitCode(), 130);
    QCOMPARE(errorsAgainst("search-2.json", out), QStringList());
    QVERIFY(!QJsonDocument::fromJson(out).object()["complete"].toBool());
}

/// LLaMA 3 405B on 16,384 H100: its authors report 38 to 43 % model FLOPs utilisation (arXiv:2407.21783, table 4).
void TestSearchVerb::largeExample()
{
    const Outcome outcome = run({"simulate", example("llama3_405b_h100.yaml"), "--format", "json"});
    QVERIFY2(outcome.code == 0, (outcome.err + outcome.out).constData());
    QCOMPARE(errorsAgainst("simulation-1.json", outcome.out), QStringList());
    QVERIFY(json(outcome)["fits"].toBool());
    const double mfu = json(outcome)["mfu"].toDouble();
    QVERIFY2(mfu > 0.25 && mfu < 0.6, qPrintable(QString::number(mfu)));
    QVERIFY(json(outcome)["bubble_s"].toDouble() > 0.0);
}

MESHWRIGHT_TEST(TestSearchVerb)

} // namespace tst_search_verb

#include "tst_search_verb.moc"
