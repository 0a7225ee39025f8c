// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "tests/test_class.h"
#include "ui/models/selection.h"
#include "ui/models/step_collectives.h"

namespace tst_selection {

using namespace meshwright;

/// Views hear of every change of the selection, and of nothing else.
class TestSelection : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void signalsChangesOnly();
    void goesBackAndForward();
    void aNewChoiceForgetsWhatLayAhead();
    void collectivesAreFoundAgain();
    void idsOfOtherAnalysesAreNotTaken();
    void slicesAreCallsOfTheirCollectives_data();
    void slicesAreCallsOfTheirCollectives();
    void arraysHaveNamesOfTheirOwn_data() { slicesAreCallsOfTheirCollectives_data(); }
    void arraysHaveNamesOfTheirOwn();
};

namespace {

std::shared_ptr<const sim::Analysis> analysed(const QString& study, const std::vector<std::string>& settings = {})
{
    static const sim::Catalogue catalogue = valueOf(sim::defaultCatalogue());
    const std::string path = (resourcesDirectory() / "examples" / study.toStdString()).string();
    return sim::analysed({valueOf(readFile(path)), path, settings}, catalogue, {}, false);
}

} // namespace

void TestSelection::signalsChangesOnly()
{
    ui::Selection selection;
    QSignalSpy arrays(&selection, &ui::Selection::arrayChanged);
    QSignalSpy devices(&selection, &ui::Selection::devicesChanged);
    QSignalSpy axes(&selection, &ui::Selection::hoveredAxisChanged);
    QSignalSpy operations(&selection, &ui::Selection::operationChanged);
    for (int i = 0; i < 2; ++i) {
        selection.setArray("layers.1.w");
        selection.setDevices({1, 2});
        selection.setHoveredAxis("data");
        selection.setOperation("all_reduce loss.sum");
    }
    QCOMPARE(arrays.count(), 1);
    QCOMPARE(devices.count(), 1);
    QCOMPARE(axes.count(), 1);
    QCOMPARE(operations.count(), 1);
    QCOMPARE(arrays.at(0).at(0).toString(), QString("layers.1.w"));
    QCOMPARE(selection.devices(), (std::set<DeviceId>{1, 2}));
}

void TestSelection::goesBackAndForward()
{
    ui::Selection selection;
    QVERIFY(!selection.canGoBack());
    for (const char* name : {"x", "layers.0.w", "layers.1.w"}) {
        selection.setArray(name);
        selection.setOperation(QString("all_reduce ") + name); // one gesture with the array
        QCoreApplication::processEvents();
    }
    QVERIFY(!selection.canGoForward());
    selection.back();
    QCOMPARE(selection.array(), QString("layers.0.w"));
    QCOMPARE(selection.operation(), QString("all_reduce layers.0.w"));
    selection.back();
    QCOMPARE(selection.array(), QString("x"));
    QVERIFY(!selection.canGoBack()); // not to nothing
    selection.back();
    QCOMPARE(selection.array(), QString("x"));
    selection.forward();
    selection.forward();
    QCOMPARE(selection.array(), QString("layers.1.w"));
    QVERIFY(!selection.canGoForward());
}

void TestSelection::aNewChoiceForgetsWhatLayAhead()
{
    ui::Selection selection;
    for (std::size_t i = 0; i < ui::Selection::kMostSteps + 10; ++i) {
        selection.setArray(QString::number(i));
        QCoreApplication::processEvents();
    }
    selection.back();
    selection.setArray("other");
    selection.back(); // before the gesture was over: it counts as one
    QCOMPARE(selection.array(), QString::number(ui::Selection::kMostSteps + 8));
    selection.forward();
    QCOMPARE(selection.array(), QString("other"));
    QVERIFY(!selection.canGoForward());
    std::size_t steps = 0;
    for (; selection.canGoBack(); ++steps)
        selection.back();
    QCOMPARE(steps, ui::Selection::kMostSteps - 1);
}

void TestSelection::collectivesAreFoundAgain()
{
    ui::Selection selection;
    selection.setAnalysis(*analysed("notebook_mlp.yaml"));
    const auto before = ui::stepCollectives(*analysed("notebook_mlp.yaml"));
    const auto last = before.size() - 1;
    selection.setCollective(ui::CollectiveId{last, selection.generation()});
    QVERIFY(selection.collective().has_value());
    const auto edited = analysed("notebook_mlp.yaml", {"mesh={data: 8, model: 1}"});
    selection.setAnalysis(*edited);
    const auto after = ui::stepCollectives(*edited);
    QVERIFY(after.size() < before.size());
    QVERIFY(selection.collective().has_value());
    QCOMPARE(after[selection.collective()->index].use.cause.value, before[last].use.cause.value);
    QCOMPARE(after[selection.collective()->index].use.axes, before[last].use.axes);
    selection.setAnalysis(*analysed("notebook_mlp.yaml", {"batch=none"})); // has none: what is shown stays
    QVERIFY(selection.collective().has_value());
    selection.setAnalysis(*analysed("notebook_mlp.yaml", {"mesh={}", "sharding="}));
    QVERIFY(!selection.collective().has_value());
}

void TestSelection::idsOfOtherAnalysesAreNotTaken()
{
    ui::Selection selection;
    selection.setAnalysis(*analysed("notebook_mlp.yaml"));
    const std::uint64_t old = selection.generation();
    selection.setAnalysis(*analysed("notebook_mlp.yaml"));
    selection.setCollective(ui::CollectiveId{0, old});
    QVERIFY(!selection.collective());
    selection.setCollective(ui::CollectiveId{100'000, selection.generation()});
    QVERIFY(!selection.collective());
}

void TestSelection::slicesAreCallsOfTheirCollectives_data()
{
    QTest::addColumn<QString>("study");

    for (const char* study : {"notebook_mlp.yaml", "transformer_64.yaml", "fsdp.yaml", "pipeline_1f1b.yaml", "three_d.yaml"})
        QTest::newRow(study) << study;
}

/// Of each collective as many slices as it has calls, all with its bytes, over its axes, in its formula.
void TestSelection::slicesAreCallsOfTheirCollectives()
{
    QFETCH(QString, study);
    const auto analysis = analysed(study);
    const sim::Simulation& simulation = analysis->simulated->simulation;
    std::vector<std::int64_t> calls(simulation.collectives.size());
    const std::int64_t device = simulation.timeline.rows().front().device;
    for (const Slice& slice : simulation.timeline.slices()) {
        if (slice.collective == kNoCollective)
            continue;
        const auto index = static_cast<std::size_t>(slice.collective);
        const sim::SimulatedCollective& collective = simulation.collectives[index];
        QCOMPARE(simulation.timeline.text(slice.name), collective.label);
        QCOMPARE(slice.bytes, collective.use.payloadBytes);
        if (simulation.timeline.rows()[slice.row].device == device)
            ++calls[index];
    }
    const bool isPipeline = study.startsWith("pipeline"); // whose stages have collectives of their own
    for (std::size_t i = 0; i < calls.size() && !isPipeline; ++i)
        QCOMPARE(calls[i], simulation.collectives[i].use.count);
}

void TestSelection::arraysHaveNamesOfTheirOwn()
{
    QFETCH(QString, study);
    std::set<std::string> names;
    const auto analysis = analysed(study);
    for (const sim::ProgramArray& array : analysis->arrays)
        QVERIFY2(names.insert(array.name).second, array.name.c_str());
}

MESHWRIGHT_TEST(TestSelection)

} // namespace tst_selection

#include "tst_selection.moc"
