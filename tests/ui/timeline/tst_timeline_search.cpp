// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/read_trace.h"
#include "tests/seeds.h"
#include "tests/test_class.h"
#include "tests/ui/timeline/timelines.h"
#include "ui/jobs/latest_worker.h"
#include "ui/timeline/slice_facts.h"
#include "ui/timeline/timeline_search.h"
#include "ui/timeline/timeline_totals.h"

namespace tst_timeline_search {

using namespace meshwright;
using ui::SearchMatches;
using ui::SliceId;
using ui::TimelineModel;

/// What is found by name, what is said of a slice, what an area adds up to, and how such work is done off the UI thread.
class TestTimelineSearch : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void findsOverTheWholeTrace_data();
    void findsOverTheWholeTrace();
    void goesRound();
    void badPatterns();
    void rowsAreByDevice();
    void namesInEveryGroup();
    void factsOfACollective();
    void factsOfATraceAreOfAllItsSteps();
    void factsOfMeasuredWork();
    void foldedFactsCount();
    void totalsByHand();
    void totalsOfSomeRows();
    void figuresOfDevicesLeaveOutTheHost();
    void totalsMatchPlainLoops_data();
    void totalsMatchPlainLoops();
    void stopsWhenAsked();
    void onlyTheLatestJobDelivers();
    void workersEndWithTheirOwner();
};

namespace {

std::shared_ptr<const TimelineModel> smallModel()
{
    return test::modelOf(
        {test::timelineOf(Clock::Simulated, 2,
             {{0, 0.0, 4.0, SliceCategory::Compute, "dot_general h"}, {0, 4.0, 2.0, SliceCategory::Wait, "wait for grad.w"},
                 {0, 6.0, 2.0, SliceCategory::Compute, "update w"},
                 {1, 3.0, 3.0, SliceCategory::AllReduce, "all_reduce grad.w", 6'000'000, "ring: 2(n-1)/n * B / w"}}),
            test::timelineOf(Clock::Wall, 4,
                {{0, 0.0, 2.0, SliceCategory::Compute, "dot_general h"}, {2, 1.0, 2.0, SliceCategory::Compute, "dot_general h"},
                    {1, 2.0, 3.0, SliceCategory::AllReduce, "all_reduce grad.w", 3'000'000},
                    {3, 3.0, 2.0, SliceCategory::AllReduce, "all_reduce grad.w", 3'000'000}})});
}

SearchMatches find(const TimelineModel& model, const QString& text, bool isRegularExpression)
{
    return *ui::findSlices(model, *ui::searchPattern({text, isRegularExpression}));
}

QStringList described(const TimelineModel& model, const SearchMatches& matches)
{
    QStringList found;
    for (const SliceId id : matches.slices)
        found << QString("%1 %2").arg(QString::fromStdString(model.nameOf(id))).arg(model.slice(id).startSeconds);
    return found;
}

const ui::CategoryTotal& totalOf(const ui::GroupTotals& totals, SliceCategory category)
{
    return *std::find_if(totals.categories.begin(), totals.categories.end(),
        [&](const ui::CategoryTotal& total) { return total.category == category; });
}

} // namespace

void TestTimelineSearch::findsOverTheWholeTrace_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<bool>("isRegularExpression");
    QTest::addColumn<QStringList>("found");

    QTest::newRow("part of a name") << "GRAD.W" << false
                                    << QStringList{"all_reduce grad.w 3", "wait for grad.w 4", "all_reduce grad.w 2",
                                           "all_reduce grad.w 3"};
    QTest::newRow("regular expression") << "^dot|^update" << true
                                        << QStringList{"dot_general h 0", "update w 6", "dot_general h 0", "dot_general h 1"};
    QTest::newRow("signs are plain text") << "^dot" << false << QStringList{};
    QTest::newRow("a point stands for itself") << "gradxw" << false << QStringList{};
    QTest::newRow("nothing") << "all_gather" << false << QStringList{};
}

void TestTimelineSearch::findsOverTheWholeTrace()
{
    QFETCH(QString, text);
    QFETCH(bool, isRegularExpression);
    QFETCH(QStringList, found);
    const auto model = smallModel();
    QCOMPARE(described(*model, find(*model, text, isRegularExpression)), found);
}

void TestTimelineSearch::goesRound()
{
    const auto model = smallModel();
    const SearchMatches matches = find(*model, "grad", false);
    QCOMPARE(matches.slices.size(), std::size_t{4});
    QCOMPARE(matches.next(*model, std::nullopt, 1), std::size_t{0});
    QCOMPARE(matches.next(*model, std::nullopt, -1), std::size_t{3});
    QCOMPARE(matches.next(*model, matches.slices[0], 1), std::size_t{1});
    QCOMPARE(matches.next(*model, matches.slices[3], 1), std::size_t{0});
    QCOMPARE(matches.next(*model, matches.slices[0], -1), std::size_t{3});
    QCOMPARE(matches.next(*model, SliceId{0, 0}, 1), std::size_t{0}); // from a slice that does not match
    QVERIFY(matches.hasName(0, model->partOf({0, 0}).name(matches.slices[0].slice)));
    QVERIFY(!matches.hasName(0, model->partOf({0, 0}).name(0)));
}

void TestTimelineSearch::badPatterns()
{
    const auto pattern = ui::searchPattern({"all(reduce", true});
    QVERIFY(!pattern);
    QCOMPARE(pattern.error().front().id, std::string("MW1840"));
    QVERIFY2(
        pattern.error().front().message.find("at character 11") != std::string::npos, pattern.error().front().message.c_str());
    QVERIFY(ui::searchPattern({"all(reduce", false}));
}

void TestTimelineSearch::rowsAreByDevice()
{
    Timeline timeline(Clock::Wall);
    timeline.addRow(1, "compute");
    timeline.addRow(0, "compute");
    timeline.addRow(1, "collectives");
    const TimelineModel model(
        {{"measured", "measured", ui::TimelinePart::build(std::make_shared<const Timeline>(timeline)), false}});
    QStringList rows;
    for (const ui::ModelRow& row : model.groups()[0].rows)
        rows << QString("%1 %2%3").arg(QString::fromStdString(row.text())).arg(row.row).arg(row.isFirstOfDevice ? "!" : "");
    QCOMPARE(rows, (QStringList{"device 0, compute 1!", "device 1, compute 0!", "device 1, collectives 2"}));
    QVERIFY(model.isEmpty());
}

void TestTimelineSearch::namesInEveryGroup()
{
    const auto model = smallModel();
    const auto names = model->findName("all_reduce grad.w");
    QVERIFY(names[0] && names[1]);
    QVERIFY(!model->findName("update w")[1]);
    QVERIFY(!model->findName("no such")[0]);
    QCOMPARE(*model->firstNamed("update w"), (SliceId{0, 2}));
    QVERIFY(!model->firstNamed("no such"));
    QVERIFY(!model->firstNamed(""));
    QCOMPARE(model->categories(), (std::vector{SliceCategory::Compute, SliceCategory::AllReduce, SliceCategory::Wait}));
}

void TestTimelineSearch::factsOfACollective()
{
    const auto model = smallModel();
    const ui::SliceFacts facts = ui::factsOf(*model, {0, 3});
    QCOMPARE(facts.name, std::string("all_reduce grad.w"));
    QCOMPARE(facts.how, std::string("ring: 2(n-1)/n * B / w"));
    QStringList lines;
    for (const ui::Fact& fact : facts.facts)
        lines << QString::fromStdString(fact.label + ": " + fact.value);
    QCOMPARE(lines,
        (QStringList{"Kind: all-reduce", "Where: each device, collectives, simulated", "Start: 3.00 s",
            "Duration: 3.00 s (37.5 % of the step)", "Payload: 5.72 MiB per device", "Bandwidth: 2.00 MB/s",
            "Same name: the only one on this row"}));
}

void TestTimelineSearch::factsOfATraceAreOfAllItsSteps()
{
    const ui::TimelineModel trace({{"trace", "run.json", smallModel()->groups()[0].part, false}});
    const ui::SliceFacts facts = ui::factsOf(trace, {0, 3});
    QCOMPARE(facts.facts[3].value, std::string("3.00 s (37.5 % of the trace)"));
}

void TestTimelineSearch::factsOfMeasuredWork()
{
    const auto model = smallModel();
    const ui::SliceFacts facts = ui::factsOf(*model, {1, 0});
    QStringList labels;
    for (const ui::Fact& fact : facts.facts)
        labels << QString::fromStdString(fact.label);
    QCOMPARE(labels, (QStringList{"Kind", "Where", "Start", "Duration", "CPU time", "Same name"}));
    QVERIFY(facts.how.empty());
    QVERIFY(QString::fromStdString(ui::shortFacts(*model, {1, 0})).contains("dot_general h"));
}

void TestTimelineSearch::foldedFactsCount()
{
    const auto model = test::modelOf({test::randomTimeline({.rows = 1, .slices = 300, .gapShare = 0.0})});
    const ui::TimelinePart& part = *model->groups()[0].part;
    const std::string all = ui::foldedFacts(*model, 0, 0, {0.0, part.endSeconds()});
    QVERIFY2(all.starts_with("300 slices in "), all.c_str());
    QVERIFY(ui::foldedFacts(*model, 0, 0, {part.endSeconds() + 1.0, part.endSeconds() + 2.0}).empty());
    const double middle = (part.start(10) + part.end(10)) / 2.0;
    QVERIFY(ui::foldedFacts(*model, 0, 0, {middle, std::nextafter(middle, 1.0)}).starts_with(part.nameText(10)));
}

void TestTimelineSearch::totalsByHand()
{
    const auto model = smallModel();
    const ui::TimeAxis axis(*model, false);
    const auto totals = *ui::totalsOf(*model, axis, {{2.0, 7.0}, {}});
    QCOMPARE(totals.size(), std::size_t{2});

    // Simulated: computes 2 to 4 and 6 to 7, waits 4 to 6, all-reduces 3 to 6.
    const ui::GroupTotals& simulated = totals[0];
    QCOMPARE(simulated.name, std::string("simulated"));
    QCOMPARE(simulated.devices, std::int64_t{1});
    QCOMPARE(totalOf(simulated, SliceCategory::Compute).slices, std::int64_t{2});
    QCOMPARE(totalOf(simulated, SliceCategory::Compute).seconds, 3.0);
    QCOMPARE(totalOf(simulated, SliceCategory::Wait).seconds, 2.0);
    QCOMPARE(totalOf(simulated, SliceCategory::AllReduce).bytes, 6e6);
    QCOMPARE(totalOf(simulated, SliceCategory::AllReduce).bytesPerSecond(), 2e6);
    QCOMPARE(simulated.computeSeconds, 3.0);
    QCOMPARE(simulated.communicationSeconds, 3.0);
    QCOMPARE(simulated.overlapSeconds, 1.0); // 3 to 4
    QCOMPARE(simulated.exposedSeconds(), 2.0);
    QCOMPARE(simulated.idleSeconds, 0.0);

    QCOMPARE(simulated.longest.size(), std::size_t{4});
    QCOMPARE(simulated.longest[0].name, std::string("all_reduce grad.w"));
    QCOMPARE(simulated.longest[0].total.seconds, 3.0);
    QCOMPARE(simulated.longest[3].name, std::string("update w"));

    // Measured: it ends at 5. Device 0 all-reduces 2 to 5; device 1 computes 2 to 3 and all-reduces 3 to 5.
    const ui::GroupTotals& measured = totals[1];
    QCOMPARE(measured.devices, std::int64_t{2});
    QCOMPARE(totalOf(measured, SliceCategory::Compute).seconds, 0.5);
    QCOMPARE(totalOf(measured, SliceCategory::AllReduce).seconds, 2.5);
    QCOMPARE(totalOf(measured, SliceCategory::AllReduce).bytes, 3e6);
    QCOMPARE(measured.overlapSeconds, 0.0);
    QCOMPARE(measured.idleSeconds, 0.0);
    QCOMPARE(measured.seconds, (ui::TimeWindow{2.0, 5.0}));
    QCOMPARE(measured.longest[0].total.seconds, 2.5);
    QCOMPARE(ui::slicesIn(*model, axis, {{2.0, 7.0}, {}}), std::size_t{7});
}

void TestTimelineSearch::totalsOfSomeRows()
{
    const auto model = smallModel();
    const ui::TimeAxis axis(*model, false);
    // Half of the collective is inside, so half of its bytes are.
    const auto totals = *ui::totalsOf(*model, axis, {{0.0, 4.5}, {{0, 1}}});
    QCOMPARE(totals.size(), std::size_t{1});
    QCOMPARE(totals[0].categories.size(), std::size_t{1});
    QCOMPARE(totals[0].categories[0].seconds, 1.5);
    QCOMPARE(totals[0].categories[0].bytes, 3e6);
    QCOMPARE(totals[0].idleSeconds, 3.0);
}

/// A foreign trace: a device that computes 1 s of 4, and a thread of the host.
void TestTimelineSearch::figuresOfDevicesLeaveOutTheHost()
{
    auto timeline = std::make_shared<Timeline>(Clock::Wall);
    const std::array<std::uint32_t, 2> rows = {timeline->addRow(sim::kHostRow, "thread 1"), timeline->addRow(0, "stream 7")};
    for (const std::uint32_t row : rows) {
        Slice slice;
        slice.row = row;
        slice.durationSeconds = row == rows[0] ? 4.0 : 1.0;
        slice.category = row == rows[0] ? SliceCategory::Host : SliceCategory::Compute;
        timeline->add(slice);
    }
    timeline->sort();
    const auto model = test::modelOf({timeline});
    const std::vector<ui::ModelRow>& shown = model->groups()[0].rows;
    QCOMPARE(shown[0].text(), std::string("device 0, stream 7"));
    QCOMPARE(shown[1].text(), std::string("host, thread 1"));
    const ui::TimeAxis axis(*model, false);
    const auto whole = *ui::totalsOf(*model, axis, {axis.whole(), {}});
    QCOMPARE(whole[0].devices, std::int64_t{1});
    QCOMPARE(whole[0].categories.size(), std::size_t{1});
    QCOMPARE(whole[0].computeSeconds, 1.0);
    QCOMPARE(whole[0].idleSeconds, 3.0);
    const auto host = *ui::totalsOf(*model, axis, {axis.whole(), {{0, 1}}});
    QCOMPARE(host[0].devices, std::int64_t{0});
    QCOMPARE(host[0].categories[0].seconds, 4.0);
}

void TestTimelineSearch::totalsMatchPlainLoops_data()
{
    tests::addSeeds({5, 6});
}

void TestTimelineSearch::totalsMatchPlainLoops()
{
    const auto model = test::modelOf({test::randomTimeline({.rows = 6, .slices = 400})});
    const ui::TimelinePart& part = *model->groups()[0].part;
    const ui::TimeAxis axis(*model, false);
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    std::uniform_real_distribution<double> moment(0.0, part.endSeconds());
    for (int i = 0; i < 20; ++i) {
        const double a = moment(random);
        const double b = moment(random);
        const ui::TimeWindow window{std::min(a, b), std::max(a, b)};
        const auto totals = *ui::totalsOf(*model, axis, {window, {}});
        double overlap = 0.0;
        double idle = 0.0;
        for (std::uint32_t device = 0; device < 3; ++device) {
            // Between two neighbouring edges nothing changes: so look at the middle of each such stretch.
            std::set<double> edges = {window.begin, window.end};
            for (std::uint32_t slice = part.rowBegin(2 * device); slice < part.rowEnd(2 * device + 1); ++slice) {
                for (const double edge : {part.start(slice), part.end(slice)}) {
                    if (edge > window.begin && edge < window.end)
                        edges.insert(edge);
                }
            }
            for (auto edge = edges.begin(); std::next(edge) != edges.end(); ++edge) {
                const double middle = (*edge + *std::next(edge)) / 2.0;
                bool computes = false;
                bool exchanges = false;
                bool isAnything = false;
                for (const std::uint32_t row : {2 * device, 2 * device + 1}) {
                    if (const auto slice = part.sliceAt(row, middle)) {
                        isAnything = true;
                        computes = computes || part.category(*slice) == SliceCategory::Compute;
                        exchanges = exchanges || ui::isCommunication(part.category(*slice));
                    }
                }
                overlap += computes && exchanges ? *std::next(edge) - *edge : 0.0;
                idle += isAnything ? 0.0 : *std::next(edge) - *edge;
            }
        }
        QVERIFY(std::abs(totals[0].overlapSeconds - overlap / 3.0) < 1e-9 * part.endSeconds() + 1e-5 * overlap);
        QVERIFY(std::abs(totals[0].idleSeconds - idle / 3.0) < 1e-9 * part.endSeconds() + 1e-5 * idle);
    }
}

void TestTimelineSearch::stopsWhenAsked()
{
    std::stop_source stop;
    stop.request_stop();
    const auto model = smallModel();
    QVERIFY(!ui::findSlices(*model, *ui::searchPattern({"op", false}), stop.get_token()));
    QVERIFY(!ui::totalsOf(*model, ui::TimeAxis(*model, false), {{0.0, 1.0}, {}}, stop.get_token()));
}

void TestTimelineSearch::onlyTheLatestJobDelivers()
{
    ui::LatestWorker worker;
    QStringList delivered;
    std::atomic<bool> wasStopped = false;
    std::atomic<bool> hasBegun = false;
    worker.start([&](const std::stop_token& stop) -> std::function<void()> {
        hasBegun = true;
        while (!stop.stop_requested())
            QThread::msleep(1);
        wasStopped = true;
        return [&] { delivered << "first"; }; // too late, whatever it returns
    });
    QVERIFY(QTest::qWaitFor([&] { return hasBegun.load(); }));
    worker.start([&](const std::stop_token&) { return [&] { delivered << "second"; }; });
    worker.start([&](const std::stop_token&) { return [&] { delivered << "third"; }; });
    QVERIFY(worker.isBusy());
    QVERIFY(QTest::qWaitFor([&] { return !worker.isBusy(); }));
    QCOMPARE(delivered, QStringList{"third"});
    QVERIFY(wasStopped);

    worker.start([&](const std::stop_token&) { return [&] { delivered << "dropped"; }; });
    worker.cancel();
    QVERIFY(!worker.isBusy());
    QTest::qWait(20);
    QCOMPARE(delivered, QStringList{"third"});
}

void TestTimelineSearch::workersEndWithTheirOwner()
{
    std::atomic<bool> wasStopped = false;
    std::atomic<bool> hasBegun = false;
    {
        ui::LatestWorker worker;
        worker.start([&](const std::stop_token& stop) -> std::function<void()> {
            hasBegun = true;
            while (!stop.stop_requested())
                QThread::msleep(1);
            wasStopped = true;
            return {};
        });
        QVERIFY(QTest::qWaitFor([&] { return hasBegun.load(); }));
    }
    QVERIFY(wasStopped);
}

MESHWRIGHT_TEST(TestTimelineSearch)

} // namespace tst_timeline_search

#include "tst_timeline_search.moc"
