// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/axis_edits.h"
#include "core/study/edit_text.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_axis_edits {

using namespace meshwright;
using namespace meshwright::tests;

/// An axis gets another name or goes, everywhere at once.
class TestAxisEdits : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everywhere_data();
    void everywhere();
    void names_data();
    void names();
};

namespace {

const char* const kText = "meshwright: 1\n"
                          "mesh: {data: 4, model: 2} # axes\n"
                          "model: {mlp: {layers: [64, 32, 16, 16]}}\n"
                          "batch: 96\n"
                          "sharding:\n"
                          "  x: P(('data', 'model'), None)\n"
                          "  y: P()\n"
                          "  layers.1: {w: \"P(None, 'model')\"}\n"
                          "  match:\n"
                          "    - {path: \"*.w\", spec: [model, null]}\n"
                          "  rules: [[batch, data], [hidden, [data, model]]]\n"
                          "pipeline: {axis: model, stages: 1}\n"
                          "phases: [{steps: 3, mesh: {data: 2, model: 4}}]\n";

} // namespace

void TestAxisEdits::everywhere_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("to"); // empty: it goes
    QTest::addColumn<QString>("expected");

    const QString text = kText;
    QTest::newRow("renamed") << text << "tensor"
                             << QString(text)
                                    .replace("model: 2}", "tensor: 2}")
                                    .replace("model: 4}", "tensor: 4}")
                                    .replace("('data', 'model')", "('data', 'tensor')")
                                    .replace("P(None, 'model')", "P(None, 'tensor')")
                                    .replace("spec: [model, null]", "spec: \"P('tensor', None)\"")
                                    .replace("[data, model]]", "[data, tensor]]")
                                    .replace("axis: model", "axis: tensor");
    QTest::newRow("removed") << text << ""
                             << QString(text)
                                    .replace(", model: 2}", "}")
                                    .replace(", model: 4}", "}")
                                    .replace("('data', 'model')", "'data'")
                                    .replace("P(None, 'model')", "P(None, None)")
                                    .replace("spec: [model, null]", "spec: \"P(None, None)\"")
                                    .replace("[data, model]]", "data]")
                                    .replace("pipeline: {axis: model, stages: 1}\n", "");
    const QString staged = "meshwright: 1\nmesh: {data: 2, model: 2}\nmodel: {mlp: {layers: [4, 4, 4, 4, 4]}}\nbatch: 8\n"
                           "pipeline: {axis: model, stages: 2, chunks: 2, schedule: interleaved, microbatches: 4}\n";
    QTest::newRow("microbatches stay without stages")
        << staged << ""
        << QString(staged).replace(", model: 2", "").replace("axis: model, stages: 2, chunks: 2, schedule: interleaved, ", "");
    const QString small
        = "meshwright: 1\nmesh: {data: 2, model: 2, device_order: [0, 1, 3, 2]}\nmodel: {mlp: {layers: [4, 4]}}\nbatch: 4\n";
    QTest::newRow("the order stays with a new name") << small << "tensor" << QString(small).replace("model: 2", "tensor: 2");
    QTest::newRow("the order goes with the axis")
        << small << "" << QString(small).replace(", model: 2, device_order: [0, 1, 3, 2]", "");
    const QString beside
        = "meshwright: 1\nmesh: {data: 2, model: 2}\ndevice_order: [0, 1, 3, 2]\nmodel: {mlp: {layers: [4, 4]}}\nbatch: 4\n";
    QTest::newRow("an order beside the mesh stays") << beside << "tensor" << QString(beside).replace("model: 2", "tensor: 2");
    QTest::newRow("an order beside the mesh goes")
        << beside << "" << QString(beside).replace(", model: 2", "").replace("device_order: [0, 1, 3, 2]\n", "");
}

void TestAxisEdits::everywhere()
{
    QFETCH(QString, text);
    QFETCH(QString, to);
    QFETCH(QString, expected);

    const auto study = readStudy(text.toStdString(), "s.yaml");
    QVERIFY2(study, qPrintable(described(study)));
    const auto settings
        = to.isEmpty() ? removeAxisSettings(*study, "model") : renameAxisSettings(*study, "model", to.toStdString());
    const auto edited = editedText(text.toStdString(), "s.yaml", settings);
    QVERIFY2(edited, qPrintable(described(edited)));
    QCOMPARE(tests::text(edited->text), expected);
    QVERIFY(!edited->rewritten);
    const auto after = readStudy(edited->text, "s.yaml");
    QVERIFY2(after, qPrintable(described(after)));
}

void TestAxisEdits::names_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("problem");

    QTest::newRow("good") << "fsdp"
                          << "";
    QTest::newRow("taken") << "data"
                           << "two mesh axes are named \"data\"";
    QTest::newRow("empty") << ""
                           << "\"\" is not a name for a mesh axis";
    QTest::newRow("a digit first") << "2d"
                                   << "\"2d\" is not a name for a mesh axis";
    QTest::newRow("a key of the mesh") << "device_order"
                                       << "\"device_order\" is the key of the device order";
}

void TestAxisEdits::names()
{
    QFETCH(QString, name);
    QFETCH(QString, problem);
    const auto study = valueOf(readStudy(kText, "s.yaml"));
    QCOMPARE(tests::text(axisNameProblem(study, name.toStdString())), problem);
}

MESHWRIGHT_TEST(TestAxisEdits)

} // namespace tst_axis_edits

#include "tst_axis_edits.moc"
