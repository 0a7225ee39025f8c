// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/bounds.h"
#include "sim/collective/ring.h"
#include "sim/collective/switch.h"
#include "sim/collective/torus.h"
#include "tests/sim/network/closed_forms.h"
#include "tests/test_class.h"

#include <algorithm>

namespace tst_formulas {

using namespace meshwright::sim;
using namespace meshwright::tests;

namespace {

// Round numbers, so that a reader can check each row: alpha = 1 s and B/w = 12 s.
constexpr double kBytes = 1200.0;
const LinkSpec kLink{100.0, 1.0, LinkKind::Ici};
const LinkSpec kSlow{50.0, 2.0, LinkKind::Nic};
constexpr auto kOne = Directions::One;
constexpr auto kBoth = Directions::Both;

TorusAxis ring(std::int64_t length)
{
    return {length, true, kLink};
}

TorusAxis line(std::int64_t length)
{
    return {length, false, kLink};
}

using Axes = std::vector<TorusAxis>;

} // namespace

class TestFormulas : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void values_data();
    void values();
    void bandwidthTelescopesForAnyOrder();
    void atOnceMeetsTheBound();
    void atOnceIsNeverUnderTheBound();
    void aLineIsTwiceARing();
    void aSwitchRingIsNotTwiceTooSlow();
    void latencyIsPaidForEveryStep();
    void oneDeviceTakesNoTime();
    void noBytesTakeOnlyLatency();
};

void TestFormulas::values_data()
{
    QTest::addColumn<double>("seconds");
    QTest::addColumn<double>("expected");

    const auto row = [](const char* name, double seconds, double expected) { QTest::newRow(name) << seconds << expected; };

    // 4a: rings. B/(k w) is 3 for k = 4 and 4 for k = 3.
    row("ring all-gather one way: 3 (1+3)", ringAllGatherSeconds(kBytes, 4, kLink, kOne), 12.0);
    row("ring all-gather both ways: 2 + 3/8 12", ringAllGatherSeconds(kBytes, 4, kLink, kBoth), 6.5);
    row("ring of 3 one way: 2 (1+4)", ringAllGatherSeconds(kBytes, 3, kLink, kOne), 10.0);
    row("ring of 3 both ways: 1 + 2/6 12", ringAllGatherSeconds(kBytes, 3, kLink, kBoth), 5.0);
    row("ring all-reduce one way", ringAllReduceSeconds(kBytes, 4, kLink, kOne), 24.0);
    row("ring all-reduce both ways: 4 + 3/4 12", ringAllReduceSeconds(kBytes, 4, kLink, kBoth), 13.0);
    row("ring all-to-all one way: 3 + 3/2 12", ringAllToAllSeconds(kBytes, 4, kLink, kOne), 21.0);
    row("ring all-to-all both ways, even: 2 + 4/8 12", ringAllToAllSeconds(kBytes, 4, kLink, kBoth), 8.0);
    row("ring all-to-all both ways, odd: 1 + 8/24 12", ringAllToAllSeconds(kBytes, 3, kLink, kBoth), 5.0);
    row("ring broadcast one way: 3 + 5 12/3", ringBroadcastSeconds(kBytes, 4, 3, kLink, kOne), 23.0);
    row("ring broadcast both ways: 3 + 5 12/6", ringBroadcastSeconds(kBytes, 4, 3, kLink, kBoth), 13.0);
    row("ring shift by 1", ringPermuteSeconds(kBytes, 4, 1, kLink), 13.0);
    row("ring shift by 3", ringPermuteSeconds(kBytes, 4, 3, kLink), 39.0);
    row("ring shift by 0", ringPermuteSeconds(kBytes, 4, 0, kLink), 0.0);

    // 4b: lines.
    row("line all-gather: 3 (1+3)", lineAllGatherSeconds(kBytes, 4, kLink), 12.0);
    row("line all-reduce", lineAllReduceSeconds(kBytes, 4, kLink), 24.0);
    row("line all-to-all, even: 3 + 4/4 12", lineAllToAllSeconds(kBytes, 4, kLink), 15.0);
    row("line all-to-all, odd: 2 + 8/12 12", lineAllToAllSeconds(kBytes, 3, kLink), 10.0);
    row("line broadcast: 3 + 5 4", lineBroadcastSeconds(kBytes, 4, 3, kLink), 23.0);
    row("line shift: 3 + 12", lineShiftSeconds(kBytes, 4, kLink), 15.0);

    // 4c: tori.
    row("4x2 one way: 3 (1+3) + (1+3/2)", torusAllGatherSeconds(kBytes, Axes{ring(4), ring(2)}, kOne), 14.5);
    row("2x4 one way: (1+6) + 3 (1+6/4)", torusAllGatherSeconds(kBytes, Axes{ring(2), ring(4)}, kOne), 14.5);
    row("4x4 both ways: 6.5 + (2 + 3/8 3)", torusAllGatherSeconds(kBytes, Axes{ring(4), ring(4)}, kBoth), 9.625);
    row("ring 4 then line 2: 6.5 + (1+3/2)", torusAllGatherSeconds(kBytes, Axes{ring(4), line(2)}, kBoth), 9.0);
    row("4x4 at once: 4 + 15/16 12/4", torusAllGatherAtOnceSeconds(kBytes, Axes{ring(4), ring(4)}), 6.8125);
    // 4x2 lines, B/2 = 6 s a part. Phase 1: 3 (1+6/4) = 7.5 against 1+3 = 4. Phase 2: part 0 has 1.5 s left on the 2: 1.75;
    // part 1 has 3 s left on the 4: 3 (1+3/4) = 5.25. Sum of the slower: 12.75.
    row("4x2 lines at once: 7.5 + 5.25", torusAllGatherAtOnceSeconds(kBytes, Axes{line(4), line(2)}), 12.75);
    row("4x8 all-to-all: 2+4 + 8/8 12", torusAllToAllSeconds(kBytes, Axes{ring(4), ring(8)}), 18.0);
    row("ring 4 x line 4 all-to-all: 2+3 + 4/4 12", torusAllToAllSeconds(kBytes, Axes{ring(4), line(4)}), 17.0);
    row("4x2 lines broadcast: 4 + 6 4", torusBroadcastSeconds(kBytes, Axes{line(4), line(2)}, 3), 28.0);
    row("4x4 rings broadcast: 6 + 8 2", torusBroadcastSeconds(kBytes, Axes{ring(4), ring(4)}, 3), 22.0);

    // 4d: switches, n = 4.
    row("switch ring all-gather: 3 (1+3)", switchRingAllGatherSeconds(kBytes, 4, kLink), 12.0);
    row("switch ring all-reduce", switchRingAllReduceSeconds(kBytes, 4, kLink), 24.0);
    row("doubling all-gather: 2 + 3/4 12", doublingAllGatherSeconds(kBytes, 4, kLink), 11.0);
    row("halving-doubling: 4 + 3/2 12", halvingDoublingAllReduceSeconds(kBytes, 4, kLink), 22.0);
    row("halving-doubling of 3: 2 + 12 + 2 (1+12)", halvingDoublingAllReduceSeconds(kBytes, 3, kLink), 40.0);
    row("recursive doubling: 2 (1+12)", recursiveDoublingAllReduceSeconds(kBytes, 4, kLink), 26.0);
    row("binomial broadcast of 5: 3 (1+12)", binomialBroadcastSeconds(kBytes, 5, kLink), 39.0);
    row("chain broadcast: 3 + 5 4", chainBroadcastSeconds(kBytes, 4, 3, kLink), 23.0);
    row("double tree, most: 24 + 8 (1+1)", doubleTreeAllReduceSeconds(kBytes, 4, 100.0, kLink), 40.0);
    row("in-switch all-reduce: 1 + 12", inSwitchAllReduceSeconds(kBytes, 4, kLink), 13.0);
    row("pairwise all-to-all: 3 (1+3)", pairwiseAllToAllSeconds(kBytes, 4, kLink), 12.0);
    row("Bruck all-to-all: 2 (1+6)", bruckAllToAllSeconds(kBytes, 4, kLink), 14.0);
    row("fat tree all-to-all: 3 + (1/4 + 2/4 3) 12", fatTreeAllToAllSeconds(kBytes, 4, kLink, 2, 3.0), 24.0);
    row("fat tree, full bandwidth: pairwise", fatTreeAllToAllSeconds(kBytes, 4, kLink, 2, 1.0), 12.0);
    row("direct all-gather: 1 + 3", directAllGatherSeconds(kBytes, 4, kLink), 4.0);
    row("direct all-reduce", directAllReduceSeconds(kBytes, 4, kLink), 8.0);
    row("direct all-to-all", directAllToAllSeconds(kBytes, 4, kLink), 4.0);
    row("2 hosts of 4: 6 (1+3) + 2 (2 + 1200/400)", hierarchicalAllReduceSeconds(kBytes, 2, 4, kLink, kSlow), 34.0);

    // 4e: bounds.
    row("all-gather traffic: 3 1200/800", allGatherTrafficBound(kBytes, 4, 800.0), 4.5);
    row("all-reduce traffic", allReduceTrafficBound(kBytes, 4, 800.0), 9.0);
    row("all-gather device: 3/4 1200/100", allGatherDeviceBound(kBytes, 4, 100.0), 9.0);
    row("all-reduce device", allReduceDeviceBound(kBytes, 4, 100.0), 18.0);
    row("all-gather cut, 1 of 4: 3/4 12", allGatherCutBound(kBytes, 4, 1, 100.0), 9.0);
    row("all-reduce cut", allReduceCutBound(kBytes, 100.0), 12.0);
    row("all-to-all cut: 2 2/4 12", allToAllCutBound(kBytes, 4, 2, 100.0), 12.0);
    row("latency", latencyBound(3.0, 1.0), 3.0);
}

void TestFormulas::values()
{
    QFETCH(double, seconds);
    QFETCH(double, expected);
    QCOMPARE(seconds, expected);
}

void TestFormulas::bandwidthTelescopesForAnyOrder()
{
    const LinkSpec noLatency{100.0, 0.0, LinkKind::Ici};
    for (std::vector<std::int64_t> lengths : {std::vector<std::int64_t>{2, 3, 5}, {4, 4, 4}, {2, 4, 8, 3}, {16}, {7, 6}}) {
        double n = 1.0;
        for (const std::int64_t length : lengths)
            n *= double(length);
        std::ranges::sort(lengths);
        do {
            Axes axes;
            for (const std::int64_t length : lengths)
                axes.push_back({length, true, noLatency});
            const double whole = 2.0 * (n - 1.0) / n * kBytes / 100.0;
            QCOMPARE(torusAllReduceSeconds(kBytes, axes, kOne), whole);
            QCOMPARE(torusAllReduceSeconds(kBytes, axes, kBoth), whole / 2.0);
        } while (std::ranges::next_permutation(lengths).found);
    }
}

void TestFormulas::atOnceMeetsTheBound()
{
    // Equal rings: 2 (n-1)/n B/(2 D w), the device bound with 2 D links.
    const LinkSpec noLatency{100.0, 0.0, LinkKind::Ici};
    for (const std::int64_t k : {2, 3, 4, 8, 16}) {
        for (std::size_t count = 1; count <= 3; ++count) {
            const Axes axes(count, TorusAxis{k, true, noLatency});
            std::int64_t n = 1;
            for (std::size_t i = 0; i < count; ++i)
                n *= k;
            QCOMPARE(2.0 * torusAllGatherAtOnceSeconds(kBytes, axes), allReduceDeviceBound(kBytes, n, 200.0 * double(count)));
        }
    }
}

void TestFormulas::atOnceIsNeverUnderTheBound()
{
    for (const std::int64_t a : {2, 3, 4, 7, 16}) {
        for (const std::int64_t b : {2, 5, 8}) {
            for (const std::int64_t c : {1, 2, 6}) {
                const Axes axes{ring(a), ring(b), ring(c)};
                QVERIFY(2.0 * torusAllGatherAtOnceSeconds(kBytes, axes) >= allReduceDeviceBound(kBytes, a * b * c, 600.0));
            }
        }
    }
}

void TestFormulas::aLineIsTwiceARing()
{
    const LinkSpec noLatency{100.0, 0.0, LinkKind::Ici};
    for (std::int64_t k = 3; k <= 17; ++k) {
        QCOMPARE(lineAllGatherSeconds(kBytes, k, noLatency), 2.0 * ringAllGatherSeconds(kBytes, k, noLatency, kBoth));
        QCOMPARE(lineAllToAllSeconds(kBytes, k, noLatency), 2.0 * ringAllToAllSeconds(kBytes, k, noLatency, kBoth));
    }
}

void TestFormulas::aSwitchRingIsNotTwiceTooSlow()
{
    const LinkSpec port{450e9, 0.0, LinkKind::NvLink};
    QCOMPARE(switchRingAllReduceSeconds(1e9, 8, port), 2.0 * 7.0 / 8.0 * 1e9 / 450e9);
}

void TestFormulas::latencyIsPaidForEveryStep()
{
    const LinkSpec port{50e9, 20e-6, LinkKind::Nic};
    QCOMPARE(switchRingAllReduceSeconds(0.0, 4096, port), 2.0 * 4095.0 * 20e-6); // 164 ms, not 20 us
}

void TestFormulas::oneDeviceTakesNoTime()
{
    for (const double seconds : {ringAllGatherSeconds(kBytes, 1, kLink, kOne), ringAllGatherSeconds(kBytes, 1, kLink, kBoth),
             ringAllToAllSeconds(kBytes, 1, kLink, kBoth), ringAllToAllSeconds(kBytes, 1, kLink, kOne),
             ringBroadcastSeconds(kBytes, 1, 4, kLink, kBoth), ringPermuteSeconds(kBytes, 1, 0, kLink),
             lineAllGatherSeconds(kBytes, 1, kLink), lineAllToAllSeconds(kBytes, 1, kLink), lineShiftSeconds(kBytes, 1, kLink),
             torusAllGatherSeconds(kBytes, {}, kBoth), torusAllGatherAtOnceSeconds(kBytes, {}),
             torusAllToAllSeconds(kBytes, Axes{ring(1)}), torusBroadcastSeconds(kBytes, Axes{ring(1)}, 2),
             switchRingAllReduceSeconds(kBytes, 1, kLink), halvingDoublingAllReduceSeconds(kBytes, 1, kLink),
             recursiveDoublingAllReduceSeconds(kBytes, 1, kLink), binomialBroadcastSeconds(kBytes, 1, kLink),
             chainBroadcastSeconds(kBytes, 1, 4, kLink), doubleTreeAllReduceSeconds(kBytes, 1, 10.0, kLink),
             inSwitchAllReduceSeconds(kBytes, 1, kLink), bruckAllToAllSeconds(kBytes, 1, kLink),
             directAllReduceSeconds(kBytes, 1, kLink), hierarchicalAllReduceSeconds(kBytes, 1, 1, kLink, kSlow)})
        QCOMPARE(seconds, 0.0);
}

void TestFormulas::noBytesTakeOnlyLatency()
{
    QCOMPARE(ringAllGatherSeconds(0.0, 4, kLink, kBoth), 2.0);
    QCOMPARE(switchRingAllReduceSeconds(0.0, 4, kLink), 6.0);
    QCOMPARE(inSwitchAllReduceSeconds(0.0, 4, kLink), 1.0);
}

MESHWRIGHT_TEST(TestFormulas)

} // namespace tst_formulas

#include "tst_formulas.moc"
