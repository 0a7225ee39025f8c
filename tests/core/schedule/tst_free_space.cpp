// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/free_space.h"
#include "tests/test_class.h"

#include <algorithm>
#include <random>
#include <vector>

namespace tst_free_space {

using namespace meshwright;

namespace {

struct Taken {
    std::int64_t offset;
    std::int64_t bytes;
    std::size_t first;
    std::size_t last;
};

/// Every candidate in turn: offset 0, and the end of everything that is taken.
std::int64_t lowestFitPlainly(const std::vector<Taken>& all, std::int64_t bytes, std::size_t first, std::size_t last)
{
    std::vector<std::int64_t> candidates = {0};
    for (const Taken& taken : all)
        candidates.push_back(taken.offset + taken.bytes);
    std::sort(candidates.begin(), candidates.end());
    for (const std::int64_t offset : candidates) {
        const bool free = std::none_of(all.begin(), all.end(), [&](const Taken& taken) {
            return taken.first <= last && first <= taken.last && taken.offset < offset + bytes
                && offset < taken.offset + taken.bytes;
        });
        if (free)
            return offset;
    }
    return -1;
}

} // namespace

class TestFreeSpace : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void byHand();
    void asPlainly_data();
    void asPlainly();
};

void TestFreeSpace::byHand()
{
    FreeSpace space(4);
    QCOMPARE(space.lowestFit(10, {{0, 3}}), std::int64_t{0});
    space.take(0, 10, {0, 1});
    space.take(20, 10, {1, 2});
    QCOMPARE(space.lowestFit(10, {{0, 0}}), std::int64_t{10});
    QCOMPARE(space.lowestFit(10, {{1, 1}}), std::int64_t{10});
    QCOMPARE(space.lowestFit(11, {{1, 1}}), std::int64_t{30});
    QCOMPARE(space.lowestFit(20, {{2, 3}}), std::int64_t{0});
    QCOMPARE(space.lowestFit(21, {{2, 3}}), std::int64_t{30});
    QCOMPARE(space.lowestFit(99, {{3, 3}}), std::int64_t{0});
    QCOMPARE(space.lowestFit(0, {{0, 3}}), std::int64_t{0});
    space.take(0, 0, {3, 3}); // takes nothing
    QCOMPARE(space.lowestFit(1, {{3, 3}}), std::int64_t{0});
}

void TestFreeSpace::asPlainly_data()
{
    QTest::addColumn<int>("moments");
    QTest::addColumn<int>("longest");
    QTest::newRow("one moment") << 1 << 1;
    QTest::newRow("short lives") << 37 << 3;
    QTest::newRow("long lives") << 64 << 64;
    QTest::newRow("mixed") << 100 << 30;
}

void TestFreeSpace::asPlainly()
{
    QFETCH(int, moments);
    QFETCH(int, longest);
    std::mt19937 engine(7);
    const auto below = [&](int limit) { return static_cast<std::size_t>(engine()) % static_cast<std::size_t>(limit); };
    for (int round = 0; round < 10; ++round) {
        FreeSpace space(static_cast<std::size_t>(moments));
        std::vector<Taken> all;
        for (int i = 0; i < 120; ++i) {
            const std::size_t first = below(moments);
            const std::size_t last = std::min(static_cast<std::size_t>(moments) - 1, first + below(longest));
            const auto bytes = static_cast<std::int64_t>(1 + below(20)) * 8;
            const std::int64_t offset = space.lowestFit(bytes, {{first, last}});
            QCOMPARE(offset, lowestFitPlainly(all, bytes, first, last));
            space.take(offset, bytes, {first, last});
            all.push_back({offset, bytes, first, last});
        }
    }
}

MESHWRIGHT_TEST(TestFreeSpace)

} // namespace tst_free_space

#include "tst_free_space.moc"
