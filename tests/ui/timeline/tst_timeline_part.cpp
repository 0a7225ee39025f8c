// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/seeds.h"
#include "tests/test_class.h"
#include "tests/ui/timeline/timelines.h"
#include "ui/timeline/row_columns.h"

namespace tst_timeline_part {

using namespace meshwright;
using ui::Bucket;
using ui::Column;
using ui::ColumnKind;
using ui::RowColumns;
using ui::TimelinePart;
using ui::TimeWindow;

/// Slices as they are laid out for drawing, their pyramid, and the columns of pixels that come of them, against plain loops over all slices.
class TestTimelinePart : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void takesLittleMemory();
    void unsortedTimelinesAreSorted();
    void stopsWhenAsked();
    void pyramidIsWhatSlicesSay();
    void searchesByTime_data();
    void searchesByTime();
    void columnsOfFewSlices_data();
    void columnsOfFewSlices();
    void columnsAreExactWithoutPyramid_data();
    void columnsAreExactWithoutPyramid();
    void columnsOfPyramidMissNothing();
    void wideSlicesAmongManyAreDrawn();
    void columnsWithVeryManySlices();
};

namespace {

/// Seconds of a span that the slices of a row cover, by category.
std::array<double, ui::kSliceCategoryCount> timesIn(const TimelinePart& part, std::uint32_t row, TimeWindow window)
{
    std::array<double, ui::kSliceCategoryCount> times{};
    for (std::uint32_t slice = part.rowBegin(row); slice < part.rowEnd(row); ++slice)
        times[static_cast<std::size_t>(part.category(slice))]
            += std::max(0.0, std::min(part.end(slice), window.end) - std::max(part.start(slice), window.begin));
    return times;
}

double sumOf(const std::array<double, ui::kSliceCategoryCount>& times)
{
    return std::accumulate(times.begin(), times.end(), 0.0);
}

/// What a column shows, from the definition in row_columns.h and a loop over all slices.
Column plainColumn(const TimelinePart& part, std::uint32_t row, TimeWindow window, int width, int index)
{
    const double length = window.length() / width;
    const TimeWindow column{window.begin + index * length, window.begin + (index + 1) * length};
    const double middle = (column.begin + column.end) / 2.0;
    int touching = 0;
    int narrow = 0;
    for (std::uint32_t slice = part.rowBegin(row); slice < part.rowEnd(row); ++slice) {
        const bool isNarrow = part.end(slice) - part.start(slice) < length;
        if (!isNarrow && part.start(slice) <= middle && part.end(slice) > middle)
            return {ColumnKind::Solid, part.category(slice), 255};
        if (part.start(slice) < column.end && part.end(slice) > column.begin) {
            ++touching;
            narrow += isNarrow ? 1 : 0;
        }
    }
    if (touching == 0)
        return {};
    const auto times = timesIn(part, row, column);
    const auto main = std::max_element(times.begin(), times.end()) - times.begin();
    const long busy = std::clamp(std::lround(255.0 * sumOf(times) / length), 1L, 255L);
    return {touching > 1 && narrow > 0 ? ColumnKind::Folded : ColumnKind::Partial, static_cast<SliceCategory>(main),
        static_cast<std::uint8_t>(busy)};
}

/// The category with most time is clear: the second has clearly less.
bool hasClearMain(const TimelinePart& part, std::uint32_t row, TimeWindow window)
{
    auto times = timesIn(part, row, window);
    std::sort(times.rbegin(), times.rend());
    return times[0] - times[1] > 1e-3 * window.length();
}

} // namespace

void TestTimelinePart::takesLittleMemory()
{
    const auto part = TimelinePart::build(test::randomTimeline({.rows = 4, .slices = 20000}));
    const double bytes = static_cast<double>(part->byteCount()) / static_cast<double>(part->sliceCount());
    QVERIFY2(bytes >= 16.0 && bytes < 17.6, qPrintable(QString::number(bytes)));
}

void TestTimelinePart::unsortedTimelinesAreSorted()
{
    Timeline timeline(Clock::Wall);
    timeline.addRow(0, "compute");
    timeline.add({.startSeconds = 2.0, .durationSeconds = 1.0});
    timeline.add({.startSeconds = 0.0, .durationSeconds = 1.0});
    const auto part = TimelinePart::build(std::make_shared<const Timeline>(timeline));
    QCOMPARE(part->start(0), 0.0);
    QCOMPARE(part->start(1), 2.0);
    QCOMPARE(part->timeline().slices()[0].startSeconds, 0.0);
    QCOMPARE(part->endSeconds(), 3.0);
}

void TestTimelinePart::stopsWhenAsked()
{
    std::stop_source stop;
    stop.request_stop();
    QVERIFY(!TimelinePart::build(test::randomTimeline({}), stop.get_token()));
}

void TestTimelinePart::pyramidIsWhatSlicesSay()
{
    for (const unsigned seed : {1U, 2U, 3U}) {
        const auto part = TimelinePart::build(
            test::randomTimeline({.rows = 1, .slices = 6000, .gapShare = 0.1 * seed, .spread = seed * 0.8, .seed = seed}));
        const ui::RowPyramid& pyramid = part->pyramid(0);
        QVERIFY(!pyramid.levels.empty());
        QCOMPARE(pyramid.levels.back().size(), std::size_t{1024});
        for (std::size_t level = 0; level < pyramid.levels.size(); ++level) {
            const double length = pyramid.bucketSeconds(level);
            for (std::size_t i = 0; i < pyramid.levels[level].size(); i += 7) {
                const TimeWindow window{
                    pyramid.begin + length * static_cast<double>(i), pyramid.begin + length * static_cast<double>(i + 1)};
                const Bucket& bucket = pyramid.levels[level][i];
                const double busy = sumOf(timesIn(*part, 0, window)) / length;
                QVERIFY2(std::abs(255.0 * busy - bucket.busy) <= 1.001, qPrintable(QString("%1 %2").arg(busy).arg(bucket.busy)));
                if (hasClearMain(*part, 0, window)) {
                    const auto times = timesIn(*part, 0, window);
                    QCOMPARE(bucket.category(), std::max_element(times.begin(), times.end()) - times.begin());
                }
            }
        }
    }
}

void TestTimelinePart::searchesByTime_data()
{
    tests::addSeeds({7, 8});
}

void TestTimelinePart::searchesByTime()
{
    const auto part = TimelinePart::build(test::randomTimeline({.rows = 2, .slices = 500}));
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    std::uniform_real_distribution<double> moment(-1e-6, 1.1 * part->endSeconds());
    for (int i = 0; i < 500; ++i) {
        const double at = moment(random);
        for (std::uint32_t row = 0; row < 2; ++row) {
            std::uint32_t ending = part->rowBegin(row);
            while (ending < part->rowEnd(row) && part->end(ending) <= at)
                ++ending;
            std::uint32_t starting = part->rowBegin(row);
            while (starting < part->rowEnd(row) && part->start(starting) < at)
                ++starting;
            QCOMPARE(part->firstEndingAfter(row, at), ending);
            QCOMPARE(part->firstStartingFrom(row, at), starting);
            const std::uint32_t from = part->rowBegin(row) + static_cast<std::uint32_t>(random() % 500);
            QCOMPARE(part->firstStartingFrom(row, at, from), std::max(from, starting));
        }
    }
}

void TestTimelinePart::columnsOfFewSlices_data()
{
    QTest::addColumn<QString>("expected"); // one letter a column: . empty, p partial, f folded, the category's number for solid
    QTest::addColumn<double>("begin");
    QTest::addColumn<double>("end");

    // Slices: 0 to 4 compute (0), 4 to 6 all-reduce (1), 7.25 to 7.375 and 7.5 to 7.75 all-gather (2), 8.875 to 12 compute (0).
    QTest::newRow("a column a second") << "000011.fp000" << 0.0 << 12.0;
    QTest::newRow("half a second") << "00000000"
                                      "1111"
                                      ".."
                                      "pp"
                                      ".p"
                                      "00"
                                   << 0.0 << 10.0;
    QTest::newRow("an eighth") << "2.22" << 7.25 << 7.75;
    QTest::newRow("beyond the end") << "0...." << 11.0 << 16.0;
    QTest::newRow("all in one column") << "f" << 0.0 << 100.0;
}

void TestTimelinePart::columnsOfFewSlices()
{
    QFETCH(QString, expected);
    QFETCH(double, begin);
    QFETCH(double, end);
    const auto part = TimelinePart::build(test::timelineOf(Clock::Wall, 1,
        {{0, 0.0, 4.0, SliceCategory::Compute}, {0, 4.0, 2.0, SliceCategory::AllReduce},
            {0, 7.25, 0.125, SliceCategory::AllGather}, {0, 7.5, 0.25, SliceCategory::AllGather},
            {0, 8.875, 3.125, SliceCategory::Compute}}));
    RowColumns row;
    row.fill(*part, 0, {begin, end}, static_cast<int>(expected.size()));
    QString text;
    for (const Column& column : row.columns) {
        switch (column.kind) {
        case ColumnKind::Empty:
            text += '.';
            break;
        case ColumnKind::Partial:
            text += 'p';
            break;
        case ColumnKind::Folded:
            text += 'f';
            break;
        case ColumnKind::Solid:
            text += QString::number(static_cast<int>(column.category));
        }
    }
    QCOMPARE(text, expected);
}

void TestTimelinePart::columnsAreExactWithoutPyramid_data()
{
    tests::addSeeds({11, 12});
}

void TestTimelinePart::columnsAreExactWithoutPyramid()
{
    const auto part = TimelinePart::build(test::randomTimeline({.rows = 2, .slices = 3000, .spread = 1.5}));
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    std::uniform_real_distribution<double> share(0.0, 1.0);
    for (int i = 0; i < 12; ++i) {
        const double length = part->endSeconds() * std::pow(10.0, -3.0 * share(random));
        const double begin = share(random) * (part->endSeconds() - length);
        const TimeWindow window{begin, begin + length};
        const int width = 50 + static_cast<int>(random() % 200);
        RowColumns row;
        row.fill(*part, 1, window, width);
        for (int column = 0; column < width; ++column) {
            const Column expected = plainColumn(*part, 1, window, width, column);
            const Column& actual = row.columns[static_cast<std::size_t>(column)];
            QCOMPARE(static_cast<int>(actual.kind), static_cast<int>(expected.kind));
            QVERIFY(std::abs(actual.busy - expected.busy) <= 1);
            const double columnSeconds = length / width;
            if (hasClearMain(*part, 1, {begin + column * columnSeconds, begin + (column + 1) * columnSeconds}))
                QCOMPARE(static_cast<int>(actual.category), static_cast<int>(expected.category));
        }
        for (const ui::DrawnSlice& slice : row.slices) {
            for (std::int32_t x = slice.left; x < slice.right; ++x)
                QCOMPARE(row.columns[static_cast<std::size_t>(x)].category, part->category(slice.slice));
        }
    }
}

void TestTimelinePart::columnsOfPyramidMissNothing()
{
    for (const double coarseness : {1.0, 2.0}) {
        const auto part = TimelinePart::build(test::randomTimeline({.rows = 1, .slices = 30000, .gapShare = 0.4, .spread = 2.0}));
        const int width = 700;
        const TimeWindow window{0.1 * part->endSeconds(), 0.9 * part->endSeconds()};
        RowColumns row;
        row.fill(*part, 0, window, width, coarseness);
        std::vector<Column> plain;
        for (int column = 0; column < width; ++column)
            plain.push_back(plainColumn(*part, 0, window, width, column));
        double busy = 0.0;
        double plainBusy = 0.0;
        for (std::size_t x = 1; x + 1 < plain.size(); ++x) {
            if (plain[x].kind != ColumnKind::Empty)
                QVERIFY2(row.columns[x].kind != ColumnKind::Empty, qPrintable(QString::number(x)));
            else if (row.columns[x].kind != ColumnKind::Empty)
                QVERIFY(plain[x - 1].kind != ColumnKind::Empty || plain[x + 1].kind != ColumnKind::Empty);
            busy += row.columns[x].busy;
            plainBusy += plain[x].busy;
        }
        QVERIFY2(std::abs(busy / plainBusy - 1.0) < 0.03, qPrintable(QString::number(busy / plainBusy)));
    }
}

void TestTimelinePart::wideSlicesAmongManyAreDrawn()
{
    auto timeline = std::make_shared<Timeline>(*test::randomTimeline({.rows = 1, .slices = 20000}));
    const double end = timeline->endSeconds();
    Slice wide;
    wide.startSeconds = end;
    wide.durationSeconds = end / 3.0;
    wide.name = timeline->intern("wide");
    wide.category = SliceCategory::Wait;
    timeline->add(wide);
    const auto part = TimelinePart::build(timeline);
    QVERIFY(!part->pyramid(0).levels.empty());
    RowColumns row;
    row.fill(*part, 0, {0.0, part->endSeconds()}, 400);
    QVERIFY(!row.slices.empty());
    const ui::DrawnSlice& last = row.slices.back();
    QCOMPARE(part->nameText(last.slice), std::string("wide"));
    QCOMPARE(last.left, 300);
    QCOMPARE(last.right, 400);
    QCOMPARE(row.columns[350].kind, ColumnKind::Solid);
    QCOMPARE(row.columns[100].kind, ColumnKind::Folded);
}

void TestTimelinePart::columnsWithVeryManySlices()
{
    // Half of the row's slices lie in a thousandth of its time, where a base bucket holds thousands.
    Timeline timeline(Clock::Wall);
    timeline.addRow(0, "compute");
    for (int i = 0; i < 20000; ++i)
        timeline.add({.startSeconds = i * 1e-9, .durationSeconds = 0.5e-9, .category = SliceCategory::AllToAll});
    for (int i = 0; i < 20000; ++i)
        timeline.add({.startSeconds = 20e-6 + i * 1e-6, .durationSeconds = 1e-6, .category = SliceCategory::Permute});
    const auto part = TimelinePart::build(std::make_shared<const Timeline>(timeline));
    RowColumns row;
    row.fill(*part, 0, {0.0, 40e-6}, 40); // a column a microsecond, 1000 slices in each of the first 20
    for (std::size_t x = 0; x < 19; ++x) {
        QCOMPARE(row.columns[x].kind, ColumnKind::Folded);
        QCOMPARE(row.columns[x].category, SliceCategory::AllToAll);
        QVERIFY2(row.columns[x].busy > 110 && row.columns[x].busy < 145, qPrintable(QString::number(row.columns[x].busy)));
    }
    for (std::size_t x = 20; x < 40; ++x)
        QCOMPARE(row.columns[x].category, SliceCategory::Permute);
}

MESHWRIGHT_TEST(TestTimelinePart)

} // namespace tst_timeline_part

#include "tst_timeline_part.moc"
