// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/bounds.h"
#include "sim/collective/ring.h"
#include "sim/collective/switch.h"
#include "sim/collective/torus.h"
#include "tests/sim/network/closed_forms.h"
#include "tests/sim/network/run_collectives.h"
#include "tests/test_class.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tst_fidelity {

using namespace meshwright;
using namespace meshwright::sim;
using namespace meshwright::tests;

namespace {

using enum CollectiveKind;
using Algorithm = CollectiveAlgorithm;

constexpr double kWidth = 50e9;
constexpr double kHop = 1e-6;
constexpr std::int64_t kMiB = std::int64_t(1) << 20;

const LinkSpec kLink{kWidth, kHop, LinkKind::Ici};

/// A torus or mesh, x fastest.
Topology torus(const std::vector<std::int64_t>& sizes, bool wraps)
{
    std::vector<PhysicalAxis> axes;
    std::vector<std::int64_t> strides;
    std::int64_t stride = 1;
    const char* names[] = {"x", "y", "z"};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        axes.push_back({names[i], AxisKind::Torus, sizes[i], wraps && sizes[i] >= 3, kLink, 0.0});
        strides.push_back(stride);
        stride *= sizes[i];
    }
    return {axes, strides};
}

Topology star(std::int64_t size, AxisKind kind = AxisKind::Switch, double inSwitch = 0.0)
{
    return {{{"gpu", kind, size, false, kLink, inSwitch}}, {1}};
}

Topology hosts(std::int64_t count, std::int64_t perHost)
{
    const LinkSpec nic{12.5e9, 9e-6, LinkKind::Nic};
    return {{{"host", AxisKind::Network, count, false, nic, 0.0}, {"gpu", AxisKind::Switch, perHost, false, kLink, 0.0}},
        {perHost, 1}};
}

/// How the whole machine is one group.
std::vector<GroupAxis> wholeGroup(const Topology& topology)
{
    std::vector<GroupAxis> result;
    for (std::size_t i = 0; i < topology.axes().size(); ++i) {
        const PhysicalAxis& axis = topology.axes()[i];
        GroupAxis group;
        group.size = axis.length;
        group.kind = axis.kind == AxisKind::Torus ? GroupKind::Torus
            : axis.kind == AxisKind::Switch       ? GroupKind::Switch
            : axis.kind == AxisKind::FullMesh     ? GroupKind::FullMesh
                                                  : GroupKind::Network;
        group.wraps = axis.wraps;
        group.link = axis.link;
        group.inSwitchBytesPerSecond = axis.inSwitchBytesPerSecond;
        group.physicalAxis = i;
        group.name = axis.name;
        result.push_back(group);
    }
    return result;
}

std::vector<std::size_t> allAxes(const Topology& topology)
{
    std::vector<std::size_t> axes(topology.axes().size());
    for (std::size_t i = 0; i < axes.size(); ++i)
        axes[i] = i;
    return axes;
}

RoutedCollective routed(const MachineLinks& links, const CollectiveRequest& request, const std::vector<std::size_t>& axes)
{
    return valueOf(routeCollective(request, groupsAlong(links.topology(), axes), links));
}

Ticks endOf(const MachineLinks& links, const RoutedCollective& collective, Fidelity fidelity)
{
    const StartedCollective started{&collective, 0, nullptr};
    return runCollectives({&started, 1}, links, fidelity).ends.front();
}

} // namespace

class TestFidelity : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void agree_data();
    void agree();
    void between_data();
    void between();
    void names();
    void disjointAxesDoNotMeet();
    void sharedLinks_data();
    void sharedLinks();
    void lastEndIsTheSame();
    void subAxes();
    void ringOnASwitchIsNotStoredAndForwarded();
    void startAtZero();
    void picosecondsAreKept();
    void latencyCountsForEveryStep();
    void failedLinkIsGoneRound();
    void noWay();
    void messagesAreCounted();
    void oversubscribedLeaves();
    void ringsPassOnWhatHasArrived_data();
    void ringsPassOnWhatHasArrived();
};

void TestFidelity::agree_data()
{
    QTest::addColumn<double>("expected");
    QTest::addColumn<int>("steps"); // a tick may be lost in each
    QTest::addColumn<Ticks>("closed");
    QTest::addColumn<Ticks>("fluid");
    QTest::addColumn<Ticks>("message");

    const double b = 3.0 * kMiB;
    const auto row = [&](const QByteArray& name, const Topology& topology, CollectiveKind kind, Algorithm algorithm,
                         double seconds, int steps, PermutePattern pattern = PermutePattern::Shift) {
        const MachineLinks links(topology);
        const CollectiveRequest request{kind, 3 * kMiB, wholeGroup(topology), pattern, algorithm};
        QVERIFY(std::abs(planCollective(request).secondsAlone() - estimateCollective(request).seconds) < 1e-15);
        const RoutedCollective collective = routed(links, request, allAxes(topology));
        QTest::newRow(name.constData()) << seconds << steps << endOf(links, collective, Fidelity::Closed)
                                        << endOf(links, collective, Fidelity::Fluid)
                                        << endOf(links, collective, Fidelity::Message);
    };
    using enum CollectiveAlgorithm;
    for (const std::int64_t k : {3, 4, 7, 8}) {
        const Topology ring = torus({k}, true);
        const auto name = [&](const char* text) { return QString("%1 of %2").arg(text).arg(k).toUtf8(); };
        const int n = static_cast<int>(k);
        row(name("ring one way, all-gather"), ring, AllGather, Ring, ringAllGatherSeconds(b, k, kLink, Directions::One), n);
        row(name("ring one way, all-reduce"), ring, AllReduce, Ring, ringAllReduceSeconds(b, k, kLink, Directions::One), 2 * n);
        row(name("ring both ways, all-gather"), ring, AllGather, BothWays, ringAllGatherSeconds(b, k, kLink, Directions::Both),
            n);
        row(name("ring both ways, reduce-scatter"), ring, ReduceScatter, BothWays,
            ringAllGatherSeconds(b, k, kLink, Directions::Both), n);
        row(name("ring both ways, all-reduce"), ring, AllReduce, BothWays, ringAllReduceSeconds(b, k, kLink, Directions::Both),
            2 * n);
        row(name("ring all-to-all"), ring, AllToAll, Automatic, ringAllToAllSeconds(b, k, kLink, Directions::Both), n);
        row(name("ring broadcast"), ring, Broadcast, Automatic, ringBroadcastSeconds(b, k, 48, kLink, Directions::Both), 48 + n);
        row(name("ring shift"), ring, Permute, Automatic, kHop + b / kWidth, 1);
        row(name("ring half to half"), ring, Permute, Automatic,
            static_cast<double>(k / 2) * kHop + std::max(1.0, static_cast<double>(k / 2) / 2.0) * b / kWidth, n,
            PermutePattern::Any);
        const Topology line = torus({k}, false);
        row(name("line all-gather"), line, AllGather, Automatic, lineAllGatherSeconds(b, k, kLink), n);
        row(name("line reduce-scatter"), line, ReduceScatter, Automatic, lineAllGatherSeconds(b, k, kLink), n);
        row(name("line all-reduce"), line, AllReduce, Automatic, lineAllReduceSeconds(b, k, kLink), 2 * n);
        row(name("line broadcast"), line, Broadcast, Automatic, lineBroadcastSeconds(b, k, 48, kLink), 48 + n);
        row(name("line shift"), line, Permute, Automatic, lineShiftSeconds(b, k, kLink), 1);

        const Topology crossbar = star(k);
        row(name("switch ring all-gather"), crossbar, AllGather, Ring, switchRingAllGatherSeconds(b, k, kLink), n);
        row(name("switch ring all-reduce"), crossbar, AllReduce, Ring, switchRingAllReduceSeconds(b, k, kLink), 2 * n);
        row(name("switch pairwise all-to-all"), crossbar, AllToAll, Pairwise, pairwiseAllToAllSeconds(b, k, kLink), n);
        row(name("switch chain broadcast"), crossbar, Broadcast, Chain, chainBroadcastSeconds(b, k, 48, kLink), 48 + n);
        row(name("switch permute"), crossbar, Permute, Direct, kHop + b / kWidth, 1);
        const Topology adding = star(k, AxisKind::Switch, 40e9);
        row(name("in-switch all-reduce"), adding, AllReduce, InSwitch, inSwitchAllReduceSeconds(b, k, {40e9, kHop}), 1);
        const Topology mesh = star(k, AxisKind::FullMesh);
        row(name("full mesh all-gather"), mesh, AllGather, Direct, directAllGatherSeconds(b, k, kLink), 1);
        row(name("full mesh all-reduce"), mesh, AllReduce, Direct, directAllReduceSeconds(b, k, kLink), 2);
        row(name("full mesh all-to-all"), mesh, AllToAll, Direct, directAllToAllSeconds(b, k, kLink), 1);
        row(name("full mesh broadcast"), mesh, Broadcast, Direct, directAllReduceSeconds(b, k, kLink), 2);
    }
    const Topology eight = star(8);
    row("halving-doubling", eight, AllReduce, HalvingDoubling, halvingDoublingAllReduceSeconds(b, 8, kLink), 6);
    row("doubling all-gather", eight, AllGather, HalvingDoubling, doublingAllGatherSeconds(b, 8, kLink), 3);
    row("doubling reduce-scatter", eight, ReduceScatter, HalvingDoubling, doublingAllGatherSeconds(b, 8, kLink), 3);
    row("recursive doubling", eight, AllReduce, RecursiveDoubling, recursiveDoublingAllReduceSeconds(b, 8, kLink), 3);
    row("Bruck all-to-all", eight, AllToAll, Bruck, bruckAllToAllSeconds(b, 8, kLink), 3);
    row("binomial broadcast", eight, Broadcast, Binomial, binomialBroadcastSeconds(b, 8, kLink), 3);
    row("pair of a switch", star(2), AllReduce, Ring, switchRingAllReduceSeconds(b, 2, kLink), 2);

    for (const bool wraps : {true, false}) {
        for (const std::vector<std::int64_t>& sizes :
            std::vector<std::vector<std::int64_t>>{{4, 4}, {4, 4, 4}, {3, 5}, {2, 4, 6}}) {
            const Topology box = torus(sizes, wraps);
            std::vector<TorusAxis> axes;
            int steps = 0;
            for (const PhysicalAxis& axis : box.axes()) {
                axes.push_back({axis.length, axis.wraps, axis.link});
                steps += 2 * static_cast<int>(axis.length);
            }
            const auto name = [&](const char* text) {
                return QString("%1 of rank %2, %3, from %4")
                    .arg(text)
                    .arg(sizes.size())
                    .arg(wraps ? "rings" : "lines")
                    .arg(sizes[0])
                    .toUtf8();
            };
            // Orders of unequal axes take equally long when all of them are of one kind, but for rounding.
            if (wraps && sizes[0] > 2)
                row(name("torus one way"), box, AllReduce, Ring, torusAllReduceSeconds(b, axes, Directions::One), steps);
            row(name("torus both ways"), box, AllReduce, BothWays,
                estimateCollective({AllReduce, 3 * kMiB, wholeGroup(box), {}, BothWays}).seconds, steps);
            row(name("torus all-gather, all axes"), box, AllGather, AllAxes,
                estimateCollective({AllGather, 3 * kMiB, wholeGroup(box), {}, AllAxes}).seconds, steps);
            row(name("torus all-reduce, all axes"), box, AllReduce, AllAxes,
                estimateCollective({AllReduce, 3 * kMiB, wholeGroup(box), {}, AllAxes}).seconds, steps);
        }
    }
    const Topology tiers = hosts(4, 8);
    const LinkSpec nic{12.5e9, 9e-6, LinkKind::Nic};
    row("hosts, all-reduce", tiers, AllReduce, Ring, hierarchicalAllReduceSeconds(b, 4, 8, kLink, nic), 32);
    row("hosts, all-gather", tiers, AllGather, Ring,
        switchRingAllGatherSeconds(b, 8, kLink) + switchRingAllGatherSeconds(b / 8, 4, nic), 16);
    row("hosts, permute", tiers, Permute, Direct, 9e-6 + b / 12.5e9, 1);
    const Topology slices{{{"slice", AxisKind::Network, 3, false, nic, 0.0}, {"x", AxisKind::Torus, 4, true, kLink, 0.0},
                              {"y", AxisKind::Torus, 4, true, kLink, 0.0}},
        {16, 1, 4}};
    const std::vector<TorusAxis> square{{4, true, kLink}, {4, true, kLink}};
    row("slices over a network, all-reduce", slices, AllReduce, Ring,
        2.0 * torusAllGatherSeconds(b, square, Directions::One) + switchRingAllReduceSeconds(b / 16, 3, nic), 24);
}

void TestFidelity::agree()
{
    QFETCH(double, expected);
    QFETCH(int, steps);
    QFETCH(Ticks, closed);
    QFETCH(Ticks, fluid);
    QFETCH(Ticks, message);

    const Ticks wanted = ticksOf(expected);
    QVERIFY2(std::abs(closed - wanted) <= steps, qPrintable(QString("closed %1, expected %2").arg(closed).arg(wanted)));
    QVERIFY2(std::abs(fluid - wanted) <= steps, qPrintable(QString("fluid %1, expected %2").arg(fluid).arg(wanted)));
    QVERIFY2(std::abs(message - wanted) <= steps, qPrintable(QString("message %1, expected %2").arg(message).arg(wanted)));
}

/// Formulas that bound a schedule instead of being one: messages are quicker, but not than the lower bound.
void TestFidelity::between_data()
{
    QTest::addColumn<Ticks>("bound");
    QTest::addColumn<Ticks>("closed");
    QTest::addColumn<Ticks>("fluid");
    QTest::addColumn<Ticks>("message");
    QTest::addColumn<double>("slack"); // of the message time over the closed form

    const auto row = [&](const QByteArray& name, const Topology& topology, CollectiveKind kind, Algorithm algorithm, double slack,
                         PermutePattern pattern = PermutePattern::Shift) {
        const MachineLinks links(topology);
        const CollectiveRequest request{kind, 64 * kMiB, wholeGroup(topology), pattern, algorithm};
        const RoutedCollective collective = routed(links, request, allAxes(topology));
        QTest::newRow(name.constData()) << ticksOf(estimateCollective(request).lowerBoundSeconds)
                                        << endOf(links, collective, Fidelity::Closed) << endOf(links, collective, Fidelity::Fluid)
                                        << endOf(links, collective, Fidelity::Message) << slack;
    };
    using enum CollectiveAlgorithm;
    // First come first served, upward and downward pieces get into each other's way: a quarter is lost.
    for (const std::int64_t n : {3, 8, 11, 16})
        row(QString("double tree of %1").arg(n).toUtf8(), star(n), AllReduce, Tree, 1.3);
    // Members without an extra begin at once and share the ports of those that wait for theirs.
    for (const std::int64_t n : {3, 7})
        row(QString("halving-doubling of %1").arg(n).toUtf8(), star(n), AllReduce, HalvingDoubling, 1.2);
    row("binomial tree of 5", star(5), Broadcast, Binomial, 1.0);
    row("line all-to-all of 4", torus({4}, false), AllToAll, Automatic, 1.15);
    row("line all-to-all of 8", torus({8}, false), AllToAll, Automatic, 1.15);
    row("line half to half of 6", torus({6}, false), Permute, Automatic, 1.01, PermutePattern::Any);
    row("torus all-to-all", torus({4, 8}, true), AllToAll, Automatic, 1.0);
}

void TestFidelity::between()
{
    QFETCH(Ticks, bound);
    QFETCH(Ticks, closed);
    QFETCH(Ticks, fluid);
    QFETCH(Ticks, message);
    QFETCH(double, slack);

    const QByteArray text
        = QString("bound %1, closed %2, fluid %3, message %4").arg(bound).arg(closed).arg(fluid).arg(message).toUtf8();
    QVERIFY2(fluid >= bound && fluid <= closed + 2, text.constData());
    QVERIFY2(message >= bound, text.constData());
    QVERIFY2(static_cast<double>(message) <= slack * static_cast<double>(closed) + 100.0, text.constData());
}

void TestFidelity::names()
{
    for (const Fidelity fidelity : {Fidelity::Closed, Fidelity::Fluid, Fidelity::Message})
        QVERIFY(findFidelity(fidelityName(fidelity)) == fidelity);
    QVERIFY(!findFidelity("packet"));
    QVERIFY(findAlgorithm("nvls") == Algorithm::InSwitch);
    QVERIFY(findAlgorithm("ring") == Algorithm::Ring);
    QVERIFY(!findAlgorithm("rings"));
}

void TestFidelity::disjointAxesDoNotMeet()
{
    const Topology box = torus({4, 4}, true);
    const MachineLinks links(box);
    const auto axes = wholeGroup(box);
    const auto x = routed(links, {AllGather, 5 * kMiB, {axes[0]}}, {0});
    const auto y = routed(links, {AllGather, 7 * kMiB, {axes[1]}}, {1});
    for (const Fidelity fidelity : {Fidelity::Fluid, Fidelity::Message}) {
        const StartedCollective both[] = {{&x}, {&y}};
        const auto run = runCollectives(both, links, fidelity);
        QCOMPARE(run.ends[0], endOf(links, x, fidelity));
        QCOMPARE(run.ends[1], endOf(links, y, fidelity));
    }
}

/// 4f: on the same links, V1 <= V2 and no latency.
void TestFidelity::sharedLinks_data()
{
    QTest::addColumn<std::vector<std::int64_t>>("bytes");
    QTest::addColumn<std::vector<double>>("starts"); // seconds
    QTest::addColumn<std::vector<double>>("ends");

    const double v = 1e9 / kWidth * 7 / 8; // an all-gather of 1 GB one way round 8
    using Bytes = std::vector<std::int64_t>;
    using Times = std::vector<double>;
    QTest::newRow("two equal") << Bytes{1000000000, 1000000000} << Times{0, 0} << Times{2 * v, 2 * v};
    QTest::newRow("three equal") << Bytes{1000000000, 1000000000, 1000000000} << Times{0, 0, 0} << Times{3 * v, 3 * v, 3 * v};
    QTest::newRow("one to three") << Bytes{1000000000, 3000000000} << Times{0, 0} << Times{2 * v, 4 * v};
    QTest::newRow("second later") << Bytes{1000000000, 3000000000} << Times{0, v / 4} << Times{2 * v - v / 4, 4 * v};
    QTest::newRow("second too late") << Bytes{1000000000, 3000000000} << Times{0, 2 * v} << Times{v, 5 * v};
}

void TestFidelity::sharedLinks()
{
    QFETCH(std::vector<std::int64_t>, bytes);
    QFETCH(std::vector<double>, starts);
    QFETCH(std::vector<double>, ends);

    for (const bool ports : {false, true}) {
        Topology topology = ports ? star(8) : torus({8}, true);
        PhysicalAxis axis = topology.axes()[0];
        axis.link.latencySeconds = 0.0;
        topology = Topology({axis}, {1});
        const MachineLinks links(topology);
        std::vector<RoutedCollective> collectives;
        for (const std::int64_t size : bytes)
            collectives.push_back(routed(links, {AllGather, size, wholeGroup(topology), {}, Algorithm::Ring}, {0}));
        std::vector<StartedCollective> started;
        for (std::size_t i = 0; i < collectives.size(); ++i)
            started.push_back({&collectives[i], ticksOf(starts[i]), nullptr});
        const auto fluid = runCollectives(started, links, Fidelity::Fluid);
        for (std::size_t i = 0; i < ends.size(); ++i)
            QVERIFY2(
                std::abs(fluid.ends[i] - ticksOf(ends[i])) <= 2, qPrintable(QString("%1 %2").arg(fluid.ends[i]).arg(ends[i])));
        // First come first served changes who waits, not when the last is over.
        const auto message = runCollectives(started, links, Fidelity::Message);
        const Ticks last = *std::max_element(message.ends.begin(), message.ends.end());
        QVERIFY2(std::abs(last - ticksOf(ends.back())) <= ticksOf(0.02 * ends.back()), qPrintable(QString::number(last)));
    }
}

/// Random traffic on a torus: the two fidelities end within 2 %, and never before the busiest link can.
void TestFidelity::lastEndIsTheSame()
{
    std::uint64_t seed = 7;
    const auto random = [&](std::uint64_t below) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        return (seed >> 33) % below;
    };
    const Topology box = torus({4, 8}, true);
    const MachineLinks links(box);
    const auto axes = wholeGroup(box);
    for (int trial = 0; trial < 20; ++trial) {
        std::vector<RoutedCollective> collectives;
        std::vector<StartedCollective> started;
        double onAxis[2] = {};
        for (int i = 0; i < 6; ++i) {
            const std::size_t axis = random(2);
            const auto bytes = static_cast<std::int64_t>(64 + random(64)) * kMiB;
            collectives.push_back(routed(links, {AllReduce, bytes, {axes[axis]}, {}, Algorithm::BothWays}, {axis}));
            const auto k = static_cast<double>(axes[axis].size);
            onAxis[axis] += (k - 1.0) / k * static_cast<double>(bytes) / kWidth;
        }
        for (const RoutedCollective& collective : collectives)
            started.push_back({&collective, 0, nullptr});
        const auto last = [&](Fidelity fidelity) {
            const auto run = runCollectives(started, links, fidelity);
            return *std::max_element(run.ends.begin(), run.ends.end());
        };
        const Ticks fluid = last(Fidelity::Fluid);
        const Ticks message = last(Fidelity::Message);
        const Ticks bound = ticksOf(std::max(onAxis[0], onAxis[1]));
        QVERIFY(fluid >= bound && message >= bound);
        QVERIFY2(std::abs(fluid - message) <= fluid / 50, qPrintable(QString("%1 %2").arg(fluid).arg(message)));
    }
}

/// Groups whose members are two apart share the links: half of the bandwidth, as the closed form has it.
void TestFidelity::subAxes()
{
    const Topology ring = torus({8}, true);
    const MachineLinks links(ring);
    GroupAxis every = wholeGroup(ring)[0];
    every.size = 4;
    every.stride = 2;
    every.link.bytesPerSecond /= 2.0;
    every.link.latencySeconds *= 2.0;
    const CollectiveRequest request{AllGather, 512 * kMiB, {every}};
    DeviceGroups groups{4, {0, 2, 4, 6, 1, 3, 5, 7}};
    const RoutedCollective collective = valueOf(routeCollective(request, groups, links));
    const Ticks closed = endOf(links, collective, Fidelity::Closed);
    QVERIFY(std::abs(endOf(links, collective, Fidelity::Fluid) - closed) <= 4);
    const auto off = static_cast<double>(endOf(links, collective, Fidelity::Message)) / static_cast<double>(closed);
    QVERIFY2(off > 0.98 && off < 1.02, qPrintable(QString::number(off)));

    // Opposite places of the ring have both ways round.
    GroupAxis pair = wholeGroup(ring)[0];
    pair.size = 2;
    pair.wraps = false;
    pair.stride = 4;
    pair.opposite = true;
    pair.link.bytesPerSecond /= 2.0;
    pair.link.latencySeconds *= 4.0;
    const RoutedCollective pairs
        = valueOf(routeCollective({AllGather, 512 * kMiB, {pair}}, {2, {0, 4, 1, 5, 2, 6, 3, 7}}, links));
    QVERIFY(std::abs(endOf(links, pairs, Fidelity::Fluid) - endOf(links, pairs, Fidelity::Closed)) <= 4);
}

// Faults that other simulators have.

void TestFidelity::ringOnASwitchIsNotStoredAndForwarded()
{
    // 2 (n-1)/n B/w, not twice that for the two links of each step.
    Topology topology = star(8);
    const MachineLinks links(topology);
    const RoutedCollective collective = routed(links, {AllReduce, 1 << 30, wholeGroup(topology), {}, Algorithm::Ring}, {0});
    const double expected = 2.0 * 7.0 / 8.0 * (1 << 30) / kWidth + 14 * kHop;
    for (const Fidelity fidelity : {Fidelity::Closed, Fidelity::Fluid, Fidelity::Message})
        QVERIFY(std::abs(secondsOf(endOf(links, collective, fidelity)) - expected) < 20e-12);
}

void TestFidelity::startAtZero()
{
    // No latency, no bytes, events at time 0.
    PhysicalAxis axis = torus({4}, true).axes()[0];
    axis.link.latencySeconds = 0.0;
    const Topology ring({axis}, {1});
    const MachineLinks links(ring);
    const RoutedCollective nothing = routed(links, {AllReduce, 0, wholeGroup(ring)}, {0});
    for (const Fidelity fidelity : {Fidelity::Closed, Fidelity::Fluid, Fidelity::Message})
        QCOMPARE(endOf(links, nothing, fidelity), Ticks(0));
}

void TestFidelity::picosecondsAreKept()
{
    // 1000 bytes at 1 GB/s (1e9, not 2^30) are 1 us; the 7 steps of 1 byte are not cut to whole ns.
    const Topology ring({{"x", AxisKind::Torus, 8, true, {1e9, 0.0, LinkKind::Ici}, 0.0}}, {1});
    const MachineLinks links(ring);
    const auto axes = wholeGroup(ring);
    QCOMPARE(endOf(links, routed(links, {Permute, 1000, axes}, {0}), Fidelity::Message), Ticks(1000000));
    QCOMPARE(endOf(links, routed(links, {AllGather, 10, axes, {}, Algorithm::Ring}, {0}), Fidelity::Message), Ticks(7 * 1250));
}

void TestFidelity::latencyCountsForEveryStep()
{
    // A flat ring of 4096 at 20 us a step: 164 ms of latency, not 20 us.
    GroupAxis axis;
    axis.kind = GroupKind::Switch;
    axis.size = 4096;
    axis.link = {50e9, 20e-6, LinkKind::NvLink};
    const double seconds = estimateCollective({AllReduce, 1, {axis}, {}, Algorithm::Ring}).seconds;
    QVERIFY(seconds > 0.1638 && seconds < 0.1639);
}

void TestFidelity::failedLinkIsGoneRound()
{
    const Topology box = torus({4, 4}, true);
    Faults faults;
    faults.links.push_back({5, 0, 0.0});
    const MachineLinks whole(box);
    const MachineLinks broken(box, faults);
    const auto axes = wholeGroup(box);
    const CollectiveRequest request{AllGather, 256 * kMiB, {axes[0]}};
    for (const Fidelity fidelity : {Fidelity::Fluid, Fidelity::Message}) {
        const Ticks before = endOf(whole, routed(whole, request, {0}), fidelity);
        const Ticks after = endOf(broken, routed(broken, request, {0}), fidelity);
        // The neighbouring line carries two rings' hop over one link.
        QVERIFY2(after > before * 19 / 10 && after < before * 22 / 10, qPrintable(QString("%1 %2").arg(before).arg(after)));
    }
    // A port at half speed is twice as slow.
    const Topology ports = star(8);
    Faults slow;
    slow.links.push_back({3, 0, 0.5});
    const MachineLinks half(ports, slow);
    const CollectiveRequest ring{AllGather, 256 * kMiB, wholeGroup(ports), {}, Algorithm::Ring};
    for (const Fidelity fidelity : {Fidelity::Fluid, Fidelity::Message}) {
        const double ratio = static_cast<double>(endOf(half, routed(half, ring, {0}), fidelity))
            / static_cast<double>(endOf(MachineLinks(ports), routed(MachineLinks(ports), ring, {0}), fidelity));
        QVERIFY2(ratio > 1.95 && ratio < 2.05, qPrintable(QString::number(ratio)));
    }
}

void TestFidelity::noWay()
{
    const Topology line = torus({4}, false);
    Faults faults;
    faults.links.push_back({1, 0, 0.0});
    const MachineLinks links(line, faults);
    const auto found = routeCollective({AllGather, kMiB, wholeGroup(line)}, groupsAlong(line, {0}), links);
    QVERIFY(!found);
    QCOMPARE(found.error().front().id, std::string("MW1741"));
    QCOMPARE(found.error().front().message, std::string("failed links leave no path from device 1 to device 2"));
}

void TestFidelity::messagesAreCounted()
{
    // 64 devices, each 2 * 3 messages an axis, one way.
    const Topology box = torus({4, 4, 4}, true);
    const MachineLinks links(box);
    const RoutedCollective collective = routed(links, {AllReduce, kMiB, wholeGroup(box), {}, Algorithm::Ring}, {0, 1, 2});
    const StartedCollective started{&collective};
    const auto run = runCollectives({&started, 1}, links, Fidelity::Message);
    QCOMPARE(run.messages, 64 * 18);
    QCOMPARE(run.events, 64 * 18 + 64);
}

void TestFidelity::oversubscribedLeaves()
{
    // 8 hosts of one device, 4 a leaf, a third of the bandwidth up: rings do not mind, an all-to-all does.
    PhysicalAxis axis{"host", AxisKind::Network, 8, false, {12.5e9, 9e-6, LinkKind::Nic}, 0.0};
    axis.perLeaf = 4;
    axis.oversubscription = 3.0;
    const Topology tree({axis}, {1});
    const MachineLinks links(tree);
    GroupAxis group = wholeGroup(tree)[0];
    group.perLeaf = 4;
    group.oversubscription = 3.0;
    const double b = 64.0 * kMiB;
    const RoutedCollective ring = routed(links, {AllReduce, 64 * kMiB, {group}, {}, Algorithm::Ring}, {0});
    for (const Fidelity fidelity : {Fidelity::Closed, Fidelity::Fluid, Fidelity::Message})
        QVERIFY(std::abs(secondsOf(endOf(links, ring, fidelity)) - switchRingAllReduceSeconds(b, 8, axis.link)) < 20e-12);
    const RoutedCollective exchange = routed(links, {AllToAll, 64 * kMiB, {group}, {}, Algorithm::Pairwise}, {0});
    const double closed = fatTreeAllToAllSeconds(b, 8, axis.link, 4, 3.0);
    QVERIFY(std::abs(secondsOf(endOf(links, exchange, Fidelity::Closed)) - closed) < 20e-12);
    const double message = secondsOf(endOf(links, exchange, Fidelity::Message));
    QVERIFY2(message > pairwiseAllToAllSeconds(b, 8, axis.link) * 1.3 && message < closed * 1.1,
        qPrintable(QString::number(message / closed)));
}

void TestFidelity::ringsPassOnWhatHasArrived_data()
{
    QTest::addColumn<int>("size");
    for (int size = 3; size <= 9; ++size)
        QTest::addRow("%d", size) << size;
}

/// Round a ring no step of a gather moves more than the step before brought; a scatter is a gather backwards in time.
void TestFidelity::ringsPassOnWhatHasArrived()
{
    QFETCH(int, size);
    for (const bool scatters : {false, true}) {
        CollectiveRequest request{CollectiveKind::AllGather, size * kMiB, wholeGroup(torus({size}, true)), PermutePattern::Any};
        if (scatters)
            request.kind = CollectiveKind::ReduceScatter;
        const CollectivePlan plan = planCollective(request);
        QCOMPARE(plan.phases.size(), std::size_t(1));
        double moved = 0.0;
        for (const PlanLane& lane : plan.phases.front()) {
            QCOMPARE(lane.shape, LaneShape::Ring);
            auto steps = lane.stepBytes;
            if (scatters)
                std::ranges::reverse(steps);
            QVERIFY(std::ranges::is_sorted(steps, std::ranges::greater()));
            moved = std::accumulate(steps.begin(), steps.end(), moved);
        }
        QCOMPARE(moved, static_cast<double>(size - 1) * kMiB); // all pieces but its own, both ways together
    }
}

MESHWRIGHT_TEST(TestFidelity)

} // namespace tst_fidelity

#include "tst_fidelity.moc"
