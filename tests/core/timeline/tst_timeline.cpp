// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/timeline/timeline.h"
#include "tests/test_class.h"

#include <tuple>

namespace tst_timeline {

using namespace meshwright;

class TestTimeline : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void slicesLieByRowThenStart();
    void memoryChangesOfEachDeviceStay();
    void textsAreKeptOnce();
    void endIsThatOfTheLastSlice();
};

void TestTimeline::slicesLieByRowThenStart()
{
    Timeline timeline;
    timeline.addRow(0, "compute");
    timeline.addRow(1, "compute");
    const std::uint32_t first = timeline.intern("first of two at once");
    const std::uint32_t second = timeline.intern("second of two at once");
    timeline.add({.startSeconds = 2.0, .row = 1});
    timeline.add({.startSeconds = 1.0, .row = 1, .name = first});
    timeline.add({.startSeconds = 1.0, .row = 1, .name = second});
    timeline.add({.startSeconds = 3.0, .row = 0});
    timeline.sort();
    std::vector<std::tuple<std::uint32_t, double, std::uint32_t>> found;
    for (const Slice& slice : timeline.slices())
        found.emplace_back(slice.row, slice.startSeconds, slice.name);
    QCOMPARE(found, (decltype(found){{0, 3.0, 0}, {1, 1.0, first}, {1, 1.0, second}, {1, 2.0, 0}}));
}

/// A device may begin with as many bytes in use as the one before it ended with: both are told.
void TestTimeline::memoryChangesOfEachDeviceStay()
{
    Timeline timeline;
    timeline.addMemory({2.0, 1, 30});
    timeline.addMemory({0.5, 1, 20});
    timeline.addMemory({1.0, 0, 20});
    timeline.addMemory({1.5, 0, 20}); // nothing changes
    timeline.addMemory({0.5, 0, 10});
    timeline.sort();
    std::vector<std::tuple<std::int64_t, double, std::int64_t>> found;
    for (const MemoryUse& point : timeline.memory())
        found.emplace_back(point.device, point.seconds, point.bytes);
    QCOMPARE(found, (decltype(found){{0, 0.5, 10}, {0, 1.0, 20}, {1, 0.5, 20}, {1, 2.0, 30}}));
}

void TestTimeline::textsAreKeptOnce()
{
    Timeline timeline;
    const std::uint32_t dot = timeline.intern("dot");
    const std::uint32_t add = timeline.intern("add");
    QVERIFY(dot != add);
    QCOMPARE(timeline.intern("dot"), dot);
    QCOMPARE(timeline.text(add), std::string("add"));
    QCOMPARE(timeline.find("add"), std::optional(add));
    QCOMPARE(timeline.find("bdd"), std::nullopt);
    QCOMPARE(timeline.intern(""), 0U);
}

void TestTimeline::endIsThatOfTheLastSlice()
{
    Timeline timeline;
    QCOMPARE(timeline.endSeconds(), 0.0);
    timeline.add({.startSeconds = 1.0, .durationSeconds = 5.0});
    timeline.add({.startSeconds = 3.0, .durationSeconds = 1.0}); // begins last, ends earlier
    QCOMPARE(timeline.endSeconds(), 6.0);
}

MESHWRIGHT_TEST(TestTimeline)

} // namespace tst_timeline

#include "tst_timeline.moc"
