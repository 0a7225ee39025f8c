// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/test_class.h"

#include <QJsonArray>
#include <QTemporaryDir>

namespace tst_check_plans {

using namespace meshwright::tests;

/// `meshwright check` of studies without specs: the plans that they could have.
class TestCheckPlans : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void offered();
    void asJson();
    void written();
    void faults_data();
    void faults();
};

namespace {

const QByteArray kStudy = "meshwright: 1 # of plans\nname: bare\nmesh: {data: 4, model: 2}\n"
                          "model: {mlp: {layers: [64, 32, 32, 10], activation: relu, loss: cross_entropy}}\nbatch: 16\n"
                          "train: {steps: 2, data: digits}\n";

Outcome run(const QStringList& arguments, const QByteArray& input = {})
{
    return runProgram(MESHWRIGHT_PROGRAM, arguments, input);
}

} // namespace

void TestCheckPlans::offered()
{
    const Outcome outcome = run({"check", "-"}, kStudy);
    QCOMPARE(outcome.code, 0);
    for (const char* words : {"Plans that fit this model and mesh (data=4,model=2)", "FSDP + TP 2", "batch and weights over data",
             "meshwright check - --plan 'FSDP + TP 2' --fix"})
        QVERIFY2(outcome.out.contains(words), outcome.out);
    QVERIFY(!run({"check", example("fsdp.yaml")}).out.contains("Plans that fit")); // it has specs
}

/// The settings of each plan make a study that is right, has no axis without use, and trains to the values of one device.
void TestCheckPlans::asJson()
{
    const Outcome outcome = run({"check", "-", "--format", "json", "--mesh", "data=2,model=2"}, kStudy);
    QCOMPARE(outcome.code, 0);
    QCOMPARE(errorsAgainst("problems-1.json", outcome.out), QStringList());
    const QJsonArray templates = QJsonDocument::fromJson(outcome.out)["templates"].toArray();
    QCOMPARE(templates.size(), 2);
    for (const auto& entry : templates) {
        const QJsonObject plan = entry.toObject();
        QStringList settings = {"--set", "mesh={data: 2, model: 2}"};
        for (const auto& setting : plan["settings"].toArray())
            settings += {"--set", setting.toString()};
        const Outcome checked = run(QStringList{"check", "-", "--fail-on", "warning"} + settings, kStudy);
        QVERIFY2(checked.code == 0, checked.err);
        const Outcome trained = run(QStringList{"train", "-", "--verify", "--quiet"} + settings, kStudy);
        QVERIFY2(trained.code == 0, trained.out + trained.err);
        QVERIFY(trained.out.contains("verified against one device at 2 steps: equal"));
        QVERIFY(plan["specs"].toObject().contains("layers.0.w"));
        QVERIFY(plan["command"].toString().startsWith("meshwright check - --mesh data=2,model=2 --plan '"));
    }
}

/// --fix writes the plan that was named, and keeps the comments.
void TestCheckPlans::written()
{
    QTemporaryDir folder;
    const QString path = folder.filePath("bare.yaml");
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(kStudy) == kStudy.size());
    file.close();
    const Outcome checked = run({"check", path, "--plan", "FSDP"});
    QVERIFY2(checked.code == 0 && checked.err.isEmpty(), checked.err);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QCOMPARE(file.readAll(), kStudy);
    file.close();
    QCOMPARE(run({"check", path, "--plan", "FSDP", "--fix"}).code, 0);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray text = file.readAll();
    QVERIFY2(text.startsWith(kStudy), text);
    QVERIFY2(text.contains("\nsharding:\n  x: P('data', None)\n"), text);
    QCOMPARE(run({"check", path, "--fail-on", "warning"}).code, 0);
    const Outcome again = run({"check", path, "--plan", "FSDP"});
    QCOMPARE(again.code, 2);
    QVERIFY2(again.err.contains("no plan can be put into this study"), again.err);
}

void TestCheckPlans::faults_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QByteArray>("said");

    QTest::newRow("no such plan") << QStringList{"--plan", "FSDPP"} << QByteArray("one of: DDP + TP 2; FSDP + TP 2");
    QTest::newRow("of a program's types") << QStringList{"--plan", "FSDP", "--explicit"} << QByteArray("MW1903");
    QTest::newRow("several") << QStringList{"--plan", "TP 2"} << QByteArray("is 2 plans on this mesh");
}

void TestCheckPlans::faults()
{
    QFETCH(QStringList, arguments);
    QFETCH(QByteArray, said);
    const Outcome outcome = run(QStringList{"check", "-"} + arguments, kStudy);
    QCOMPARE(outcome.code, 2);
    QVERIFY2(outcome.err.contains(said), outcome.err);
}

MESHWRIGHT_TEST(TestCheckPlans)

} // namespace tst_check_plans

#include "tst_check_plans.moc"
