// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/step_run.h"
#include "tests/seeds.h"
#include "tests/sim/network/run_collectives.h"
#include "tests/test_class.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <tuple>

namespace tst_step_run {

using namespace meshwright;
using namespace meshwright::sim;
using namespace meshwright::tests;

namespace {

constexpr Ticks kMicrosecond = 1000000;
constexpr std::int64_t kMiB = std::int64_t(1) << 20;
const LinkSpec kLink{50e9, 1e-6, LinkKind::Ici};

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

GroupAxis groupAlong(const Topology& topology, std::size_t axis)
{
    GroupAxis group;
    group.size = topology.axes()[axis].length;
    group.wraps = topology.axes()[axis].wraps;
    group.link = topology.axes()[axis].link;
    group.physicalAxis = axis;
    return group;
}

StepSite site(const MachineLinks& links, std::size_t axis, CollectiveKind kind, std::int64_t bytes)
{
    return valueOf(routeFlows({kind, bytes, {groupAlong(links.topology(), axis)}}, groupsAlong(links.topology(), {axis}), links));
}

/// An op after others of its iteration, and after itself in the one before.
std::vector<StepDependency> after(std::initializer_list<std::uint32_t> ops, std::uint32_t self)
{
    std::vector<StepDependency> result{{self, StepLag::Iteration}};
    for (const std::uint32_t op : ops)
        result.push_back({op, StepLag::None});
    return result;
}

/// A layer: compute, two collectives at once over different axes and one more over the first, compute.
StepProgram layer(Ticks compute)
{
    StepProgram program;
    const StepDependency layerBefore[] = {{0, StepLag::Iteration}, {4, StepLag::Iteration}};
    program.compute(compute, layerBefore);
    program.collective(0, 0, after({0}, 1));
    program.collective(1, 0, after({0}, 2));
    program.collective(2, 0, after({0}, 3));
    program.compute(compute / 2, after({1, 3}, 4));
    return program;
}

/// Ops on a stream and beside it, which wait for earlier ones, for others of the iteration before and of the loop before; three meetings a site.
StepProgram randomProgram(std::mt19937& random, const StepProgram* before)
{
    const auto ops = static_cast<std::uint32_t>(18 + random() % 20);
    StepProgram program;
    std::uint32_t meetings = 0;
    std::uint32_t last = 0; // of the stream
    while (program.size() < ops || meetings < 6) {
        const auto op = static_cast<std::uint32_t>(program.size());
        std::vector<StepDependency> after;
        after.push_back(op == 0 ? StepDependency{ops - 1, StepLag::Iteration} : StepDependency{last, StepLag::None});
        if (op > 0 && random() % 4 == 0)
            after.push_back({static_cast<std::uint32_t>(random() % op), StepLag::None});
        if (random() % 8 == 0)
            after.push_back({static_cast<std::uint32_t>(random() % ops), StepLag::Iteration});
        if (before != nullptr && random() % 6 == 0)
            after.push_back({static_cast<std::uint32_t>(random() % before->size()), StepLag::Loop});
        const bool meets = meetings < 6 && (op >= ops || random() % 5 == 0);
        if (meets) {
            program.collective(meetings % 2, meetings / 2, after);
            ++meetings;
        } else {
            program.compute(static_cast<Ticks>(random() % 50) * kMicrosecond, after);
        }
        if (!meets || random() % 2 == 0)
            last = op;
    }
    return program;
}

/// When each op of a recorded device began and ended: by loop, op and iteration.
using OpSpans = std::map<std::tuple<std::size_t, std::size_t, std::uint32_t>, std::pair<Ticks, Ticks>>;
OpSpans spansOf(const StepRun& run, std::size_t recorded)
{
    std::map<std::uint32_t, std::vector<StepSpan>> ofNode;
    for (const StepSpan& span : run.spans)
        ofNode[span.node].push_back(span);
    OpSpans spans;
    for (std::size_t loop = 0; loop < run.nodeOf[recorded].size(); ++loop) {
        for (std::size_t op = 0; op < run.nodeOf[recorded][loop].size(); ++op) {
            for (const StepSpan& span : ofNode[run.nodeOf[recorded][loop][op]])
                spans[{loop, op, span.iteration}] = {span.begin, span.end};
        }
    }
    return spans;
}

/// Max-min by its definition: every flow is at its limit or crosses a full link on which no flow is quicker.
bool isMaxMin(const std::vector<double>& capacity, const std::vector<std::vector<LinkUse>>& uses,
    const std::vector<double>& limits, const std::vector<double>& rates)
{
    std::vector<double> load(capacity.size(), 0.0);
    std::vector<double> quickest(capacity.size(), 0.0);
    for (std::size_t flow = 0; flow < uses.size(); ++flow) {
        for (const LinkUse& use : uses[flow]) {
            load[use.link] += rates[flow] * static_cast<double>(use.amount) / kWholeLink;
            quickest[use.link] = std::max(quickest[use.link], rates[flow]);
        }
    }
    for (std::size_t link = 0; link < capacity.size(); ++link) {
        if (load[link] > capacity[link] * (1.0 + 1e-9))
            return false;
    }
    for (std::size_t flow = 0; flow < uses.size(); ++flow) {
        const bool held = std::ranges::any_of(uses[flow], [&](const LinkUse& use) {
            return load[use.link] >= capacity[use.link] * (1.0 - 1e-9) && rates[flow] >= quickest[use.link] * (1.0 - 1e-9);
        });
        if (!held && rates[flow] < limits[flow] * (1.0 - 1e-9))
            return false;
    }
    return true;
}

} // namespace

class TestStepRun : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void queueKeepsOrder_data();
    void queueKeepsOrder();
    void ratesAreMaxMin_data();
    void ratesAreMaxMin();
    void onlyTheTouchedAreFilled();
    void overlap();
    void meetingWaitsForAll();
    void togetherOrNot();
    void symmetricIsOneClass();
    void reflectionsAreOneClass();
    void joinedIsWhole();
    void foldedIsUnfolded_data();
    void foldedIsUnfolded();
    void jumpedIsUnrolled_data();
    void jumpedIsUnrolled();
    void pipelineTakesWhatItShould();
    void loopsFollowEachOther();
    void recordedSpansOfJumps();
    void messagesOfAStep_data();
    void messagesOfAStep();
    void delayedSites();
};

void TestStepRun::queueKeepsOrder_data()
{
    tests::addSeeds({3, 4});
}

void TestStepRun::queueKeepsOrder()
{
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    EventQueue queue;
    std::vector<std::pair<Ticks, std::uint32_t>> pushed;
    Ticks last = 0;
    std::uint32_t number = 0;
    std::size_t popped = 0;
    std::pair<Ticks, std::uint32_t> before{-1, 0};
    for (int i = 0; i < 20000; ++i) {
        if (random() % 3 != 0 || queue.empty()) {
            const Ticks time = last + static_cast<Ticks>(random() % 50);
            queue.push(time, 7, number++);
        } else {
            const Event event = queue.pop();
            // Those of one time come in the order in which they were pushed.
            QVERIFY(event.time > before.first || (event.time == before.first && event.which > before.second));
            before = {event.time, event.which};
            last = event.time;
            ++popped;
        }
    }
    while (!queue.empty()) {
        const Event event = queue.pop();
        QVERIFY(event.time > before.first || (event.time == before.first && event.which > before.second));
        before = {event.time, event.which};
        ++popped;
    }
    QCOMPARE(popped, std::size_t(number));
    QCOMPARE(sizeof(Event), std::size_t(24));
}

void TestStepRun::ratesAreMaxMin_data()
{
    tests::addSeeds({11, 12});
}

void TestStepRun::ratesAreMaxMin()
{
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    for (int trial = 0; trial < 200; ++trial) {
        const std::size_t linkCount = 1 + random() % 12;
        std::vector<double> capacity;
        for (std::size_t i = 0; i < linkCount; ++i)
            capacity.push_back(1e9 * (1.0 + static_cast<double>(random() % 20)));
        MaxMinNetwork network(capacity);
        std::vector<std::vector<LinkUse>> uses;
        std::vector<double> limits;
        std::vector<std::uint32_t> ids;
        for (int step = 0; step < 30; ++step) {
            if (random() % 4 != 0 || ids.empty()) {
                std::vector<LinkUse> flow;
                for (std::uint32_t link = 0; link < linkCount; ++link) {
                    if (random() % 3 == 0)
                        flow.push_back({link, static_cast<std::int64_t>(kWholeLink) >> (random() % 3)});
                }
                limits.push_back(1e9 * (1.0 + static_cast<double>(random() % 30)));
                ids.push_back(network.start(flow, limits.back()));
                uses.push_back(flow);
            } else {
                const auto gone = static_cast<std::ptrdiff_t>(random() % ids.size());
                network.stop(ids[static_cast<std::size_t>(gone)]);
                ids.erase(ids.begin() + gone);
                uses.erase(uses.begin() + gone);
                limits.erase(limits.begin() + gone);
            }
            network.settle();
            std::vector<double> rates;
            for (const std::uint32_t id : ids)
                rates.push_back(network.rate(id));
            QVERIFY(isMaxMin(capacity, uses, limits, rates));
        }
    }
}

void TestStepRun::onlyTheTouchedAreFilled()
{
    MaxMinNetwork network(std::vector<double>(100, 1e9));
    for (std::uint32_t link = 0; link < 100; ++link) {
        const LinkUse use{link, static_cast<std::int64_t>(kWholeLink)};
        network.start({&use, 1}, 1e12);
    }
    network.settle();
    QCOMPARE(network.filled(), 100);
    const LinkUse use{42, static_cast<std::int64_t>(kWholeLink)};
    const std::uint32_t second = network.start({&use, 1}, 1e12);
    network.settle();
    QCOMPARE(network.filled(), 102);
    QCOMPARE(network.rate(second), 0.5e9);
    QCOMPARE(network.changed().size(), std::size_t(2));
}

/// Layers whose weights are gathered ahead: comm_end_i = max(comm_end_{i-1}, comp_end_{i-2}) + A, comp after both (4g).
void TestStepRun::overlap()
{
    const Topology ring = torus({8}, true);
    const MachineLinks links(ring);
    StepWork work;
    work.links = &links;
    work.kindOf.assign(8, 0);
    work.sites.push_back(site(links, 0, CollectiveKind::AllGather, 64 * kMiB));
    // 4 us of latency and 7/16 of 64 MiB at 50 GB/s.
    const Ticks a = 4 * kMicrosecond + ticksOf(7.0 / 16.0 * 64.0 * kMiB / 50e9);
    for (const Ticks c : {a / 2, a * 2}) {
        StepProgram program;
        const std::uint32_t layers = 10;
        for (std::uint32_t i = 0; i < layers; ++i) {
            std::vector<StepDependency> gather;
            if (i > 0)
                gather.push_back({2 * (i - 1), StepLag::None});
            if (i > 1)
                gather.push_back({2 * (i - 2) + 1, StepLag::None});
            program.collective(0, i, gather);
            std::vector<StepDependency> compute{{2 * i, StepLag::None}};
            if (i > 0)
                compute.push_back({2 * (i - 1) + 1, StepLag::None});
            program.compute(c, compute);
        }
        work.loops = {{{program}, 1}};
        const StepRun run = runStep(work);
        const Ticks expected = c >= a ? a + layers * c : layers * a + c;
        QVERIFY2(std::abs(run.end - expected) <= 10, qPrintable(QString("%1 %2").arg(run.end).arg(expected)));
        QCOMPARE(run.computeOfClass, std::vector<Ticks>{layers * c});
    }
}

void TestStepRun::meetingWaitsForAll()
{
    const Topology ring = torus({4}, true);
    const MachineLinks links(ring);
    StepWork work;
    work.links = &links;
    work.kindOf.assign(4, 0);
    work.speed = {1.0, 1.0, 0.5, 1.0};
    work.sites.push_back(site(links, 0, CollectiveKind::AllReduce, 0));
    StepProgram program;
    program.compute(10 * kMicrosecond, {});
    const StepDependency first{0, StepLag::None};
    program.collective(0, 0, {&first, 1});
    work.loops = {{{program}, 1}};
    const StepRun run = runStep(work);
    QCOMPARE(run.end, 24 * kMicrosecond); // the slow one's 20, and 4 hops
    QCOMPARE(run.classes, 2);
    QCOMPARE(run.endOf(0), run.endOf(2));
}

/// What devices of a kind are to begin together ends the run where one is late: here behind its own of two pairs, one of which takes longer.
void TestStepRun::togetherOrNot()
{
    const Topology line = torus({4}, false);
    const MachineLinks links(line);
    for (const Ticks late : {Ticks(0), kMicrosecond}) {
        StepWork work;
        work.links = &links;
        work.kindOf = {0, 0, 0, 0};
        work.speed = {1.0, 1.0, late > 0 ? 0.5 : 1.0, 1.0};
        StepProgram program;
        const std::uint32_t own = program.compute(kMicrosecond, {});
        program.compute(kMicrosecond, std::vector<StepDependency>{{own, StepLag::None}}, true);
        work.loops = {{{program}, 1}};
        const StepRun run = runStep(work);
        QCOMPARE(run.isOutOfStep, late > 0);
        if (late == 0)
            QCOMPARE(run.end, 2 * kMicrosecond);
    }
}

void TestStepRun::symmetricIsOneClass()
{
    const Topology box = torus({8, 8, 8}, true);
    const MachineLinks links(box);
    StepWork work;
    work.links = &links;
    work.kindOf.assign(512, 0);
    for (std::size_t axis = 0; axis < 3; ++axis)
        work.sites.push_back(site(links, axis, CollectiveKind::AllReduce, kMiB));
    const FoldedStep folded = foldStep(work);
    QCOMPARE(folded.representative.size(), std::size_t(1));
    QCOMPARE(folded.members.front(), 512);
    QCOMPARE(folded.groups.size(), std::size_t(3));
    QCOMPARE(folded.fluid.capacity.size(), std::size_t(3)); // an axis: its two directions are alike
    // A pipeline of 8 along z: as many classes as stages.
    for (std::uint32_t device = 0; device < 512; ++device)
        work.kindOf[device] = device / 64;
    QCOMPARE(foldStep(work).representative.size(), std::size_t(8));
}

void TestStepRun::foldedIsUnfolded_data()
{
    QTest::addColumn<std::vector<std::int64_t>>("sizes");
    QTest::addColumn<bool>("wraps");
    QTest::addColumn<int>("slow");
    QTest::addColumn<int>("failed");

    using Sizes = std::vector<std::int64_t>;
    QTest::newRow("symmetric") << Sizes{4, 4} << true << 0 << 0;
    QTest::newRow("one slow") << Sizes{4, 4} << true << 1 << 0;
    QTest::newRow("lines") << Sizes{4, 6} << false << 2 << 0;
    QTest::newRow("one failed") << Sizes{6, 4} << true << 0 << 1;
    QTest::newRow("some of both") << Sizes{8, 8} << true << 3 << 2;
    QTest::newRow("three axes") << Sizes{4, 4, 4} << true << 2 << 2;
    QTest::newRow("lines with faults") << Sizes{5, 3, 2} << false << 2 << 1;
    QTest::newRow("1024") << Sizes{16, 16, 4} << true << 2 << 2;
}

void TestStepRun::foldedIsUnfolded()
{
    QFETCH(std::vector<std::int64_t>, sizes);
    QFETCH(bool, wraps);
    QFETCH(int, slow);
    QFETCH(int, failed);

    const Topology box = torus(sizes, wraps);
    const auto devices = static_cast<std::uint32_t>(box.deviceCount());
    for (const std::uint32_t seed : tests::seedRange(1, devices > 500 ? 1 : 6)) {
        std::mt19937 random(seed);
        Faults faults;
        for (int i = 0; i < failed; ++i) {
            const std::size_t axis = random() % sizes.size();
            auto device = static_cast<DeviceId>(random() % devices);
            if (!wraps && box.coordinate(device, axis) + 1 == sizes[axis])
                device -= box.stride(axis); // the end of a line has no link onward
            faults.links.push_back({device, axis, random() % 2 == 0 ? 0.0 : 0.25});
        }
        const MachineLinks links(box, faults);
        StepWork work;
        work.links = &links;
        work.kindOf.assign(devices, 0);
        work.speed.assign(devices, 1.0);
        for (int i = 0; i < slow; ++i)
            work.speed[random() % devices] = 0.8;
        work.sites.push_back(site(links, 0, CollectiveKind::AllReduce, 8 * kMiB));
        work.sites.push_back(site(links, 1, CollectiveKind::AllGather, 5 * kMiB));
        work.sites.push_back(site(links, 0, CollectiveKind::AllToAll, 3 * kMiB));
        work.loops = {{{layer(40 * kMicrosecond)}, 4}};

        const StepRun folded = runStep(work, {true, false});
        const StepRun whole = runStep(work, {false, false});
        QCOMPARE(whole.classes, std::int64_t(devices));
        QVERIFY(folded.classes <= whole.classes);
        if (slow == 0 && failed == 0 && wraps)
            QCOMPARE(folded.classes, 1);
        QCOMPARE(folded.end, whole.end);
        for (std::uint32_t device = 0; device < devices; ++device)
            QCOMPARE(folded.endOf(device), whole.endOf(device));
    }
}

/// A line of 4x4 devices is the same seen from either end.
void TestStepRun::reflectionsAreOneClass()
{
    const Topology box = torus({4, 4}, false);
    const MachineLinks links(box);
    StepWork work;
    work.links = &links;
    work.kindOf.assign(16, 0);
    work.sites.push_back(site(links, 0, CollectiveKind::AllReduce, kMiB));
    work.sites.push_back(site(links, 1, CollectiveKind::AllReduce, kMiB));
    work.sites.push_back(site(links, 0, CollectiveKind::AllToAll, kMiB));
    work.loops = {{{layer(40 * kMicrosecond)}, 1}};
    const FoldedStep folded = foldStep(work);
    QVERIFY2(folded.representative.size() <= 4, qPrintable(QString::number(folded.representative.size())));
    QCOMPARE(runFolded(work, folded).end, runStep(work, {false, false}).end);
}

/// Devices that are not recorded run what `joinRuns` makes: all recorded, none or some, everything happens at the same time.
void TestStepRun::joinedIsWhole()
{
    const Topology box = torus({2, 4}, false);
    const MachineLinks links(box);
    const std::vector<std::uint32_t> all{0, 1, 2, 3, 4, 5, 6, 7};
    std::int64_t fewer = 0;
    for (const std::uint32_t seed : tests::seedRange(1, 40)) {
        std::mt19937 random(seed);
        StepWork work;
        work.links = &links;
        work.kindOf = {0, 0, 0, 0, 1, 1, 1, 1};
        work.sites.push_back(site(links, 1, CollectiveKind::AllGather, 5 * kMiB));
        work.sites.push_back(site(links, 0, CollectiveKind::AllReduce, kMiB));
        for (const std::int64_t repeat : {1, 1 + static_cast<int>(random() % 6), 1}) {
            StepLoop loop;
            loop.repeat = repeat;
            for (std::uint32_t kind = 0; kind < 2; ++kind)
                loop.programs.push_back(randomProgram(random, work.loops.empty() ? nullptr : &work.loops.back().programs[kind]));
            work.loops.push_back(std::move(loop));
        }
        const StepRun whole = runStep(work, {.jump = false, .recorded = all});
        for (const std::size_t recorded : {std::size_t(0), std::size_t(1), std::size_t(5)}) {
            const StepRun joined = runStep(work, {.recorded = std::span(all).first(recorded)});
            QCOMPARE(joined.end, whole.end);
            QCOMPARE(joined.endOfClass, whole.endOfClass);
            QCOMPARE(joined.computeOfClass, whole.computeOfClass);
            QCOMPARE(joined.endOfSite, whole.endOfSite);
            QVERIFY(joined.events <= whole.events);
            fewer += whole.events - joined.events;
            for (std::size_t device = 0; device < recorded; ++device)
                QCOMPARE(spansOf(joined, device), spansOf(whole, device));
        }
    }
    QVERIFY(fewer > 0);
}

void TestStepRun::jumpedIsUnrolled_data()
{
    QTest::addColumn<bool>("wraps");
    QTest::addColumn<double>("speed"); // of one device
    QTest::addColumn<std::int64_t>("repeat");
    QTest::addColumn<bool>("jumps");

    QTest::newRow("ten") << true << 1.0 << std::int64_t(10) << true;
    QTest::newRow("thousand") << true << 1.0 << std::int64_t(1000) << true;
    QTest::newRow("three are not worth it") << true << 1.0 << std::int64_t(3) << false;
}

void TestStepRun::jumpedIsUnrolled()
{
    QFETCH(bool, wraps);
    QFETCH(double, speed);
    QFETCH(std::int64_t, repeat);
    QFETCH(bool, jumps);

    const Topology box = torus({4, 4}, wraps);
    const MachineLinks links(box);
    StepWork work;
    work.links = &links;
    work.kindOf.assign(16, 0);
    work.speed.assign(16, 1.0);
    work.speed[5] = speed;
    work.sites.push_back(site(links, 0, CollectiveKind::AllReduce, 8 * kMiB));
    work.sites.push_back(site(links, 1, CollectiveKind::AllGather, 5 * kMiB));
    work.sites.push_back(site(links, 0, CollectiveKind::AllToAll, 3 * kMiB));
    work.loops = {{{layer(40 * kMicrosecond)}, repeat}};
    const StepRun jumped = runStep(work, {true, true});
    const StepRun unrolled = runStep(work, {true, false});
    QCOMPARE(jumped.end, unrolled.end);
    QCOMPARE(jumped.endOfClass, unrolled.endOfClass);
    QCOMPARE(jumped.computeOfClass, unrolled.computeOfClass);
    QCOMPARE(unrolled.iterationsJumped, 0);
    QCOMPARE(jumped.iterationsJumped > 0, jumps);
    QVERIFY(jumped.events <= unrolled.events);
}

/// A pipeline of 4 stages without communication time: m (f + b) + (p - 1)(f + b), with 1F1B's order per stage; jumped or not.
void TestStepRun::pipelineTakesWhatItShould()
{
    PhysicalAxis axis = torus({4}, false).axes()[0];
    axis.link.latencySeconds = 0.0;
    const Topology line({axis}, {1});
    const MachineLinks links(line);
    const Ticks f = 10 * kMicrosecond;
    for (const std::int64_t m : {8, 500}) {
        StepWork work;
        work.links = &links;
        for (std::uint32_t stage = 0; stage < 4; ++stage)
            work.kindOf.push_back(stage);
        // Between stage s and s + 1, no bytes: sites 0 to 2.
        for (std::uint32_t stage = 0; stage + 1 < 4; ++stage) {
            GroupAxis pair = groupAlong(line, 0);
            pair.size = 2;
            work.sites.push_back(valueOf(routeFlows({CollectiveKind::Permute, 0, {pair}}, {2, {stage, stage + 1}}, links)));
        }
        StepLoop loop;
        loop.repeat = m;
        for (std::uint32_t stage = 0; stage < 4; ++stage) {
            // Forward of micro-batch i of stage s: ops 0 (received), 1; sent: 2.
            StepProgram program;
            std::uint32_t received = kNothing;
            if (stage > 0)
                received = program.collective(stage - 1, 0, after({}, 0));
            const auto self = static_cast<std::uint32_t>(program.size());
            const std::uint32_t compute
                = program.compute(3 * f, received == kNothing ? after({}, self) : after({received}, self));
            if (stage < 3)
                program.collective(stage, 0, after({compute}, compute + 1));
            loop.programs.push_back(program);
        }
        work.loops = {loop};
        const StepRun jumped = runStep(work);
        QCOMPARE(jumped.classes, 4);
        QCOMPARE(jumped.end, (m + 3) * 3 * f);
        QCOMPARE(runStep(work, {true, false}).end, jumped.end);
        QCOMPARE(runStep(work, {false, false}).end, jumped.end);
        QVERIFY(m < 100 || jumped.events < 400);
    }
}

void TestStepRun::loopsFollowEachOther()
{
    const Topology ring = torus({4}, true);
    const MachineLinks links(ring);
    StepWork work;
    work.links = &links;
    work.kindOf.assign(4, 0);
    StepProgram first;
    first.compute(kMicrosecond, after({}, 0));
    StepProgram second;
    const StepDependency waits[] = {{0, StepLag::Loop}, {0, StepLag::Iteration}};
    second.compute(2 * kMicrosecond, waits);
    work.loops = {{{first}, 100}, {{second}, 50}};
    const StepRun run = runStep(work);
    QCOMPARE(run.end, 200 * kMicrosecond);
    QVERIFY(run.iterationsJumped > 100);
    QCOMPARE(run.computeOfClass, std::vector<Ticks>{200 * kMicrosecond});
}

/// What is recorded of a run that jumped is what an unrolled run records, span by span; both say what each op took.
void TestStepRun::recordedSpansOfJumps()
{
    const Topology box = torus({4, 4}, true);
    const MachineLinks links(box);
    StepWork work;
    work.links = &links;
    work.kindOf.assign(16, 0);
    work.sites.push_back(site(links, 0, CollectiveKind::AllReduce, 8 * kMiB));
    work.sites.push_back(site(links, 1, CollectiveKind::AllGather, 5 * kMiB));
    work.sites.push_back(site(links, 0, CollectiveKind::AllToAll, 3 * kMiB));
    work.loops = {{{layer(40 * kMicrosecond)}, 300}};
    const std::uint32_t device[] = {7};
    StepRunOptions options;
    options.recorded = device;
    const StepRun jumped = runStep(work, options);
    options.jump = false;
    const StepRun unrolled = runStep(work, options);
    QVERIFY(jumped.iterationsJumped > 200);
    QCOMPARE(jumped.spans.size(), std::size_t(300 * 5));
    const auto sorted = [](std::vector<StepSpan> spans) {
        std::ranges::sort(spans, {}, [](const StepSpan& s) { return std::tuple(s.end, s.node, s.iteration, s.begin); });
        return spans;
    };
    QVERIFY(sorted(jumped.spans) == sorted(unrolled.spans));
    QCOMPARE(jumped.nodeOf, unrolled.nodeOf);
    const std::uint32_t first = jumped.nodeOf[0][0][0];
    for (const StepSpan& span : jumped.spans)
        QVERIFY(span.node != first || span.end - span.begin == 40 * kMicrosecond);
}

void TestStepRun::messagesOfAStep_data()
{
    QTest::addColumn<bool>("contends");
    QTest::newRow("one after the other") << false;
    QTest::newRow("two at once on the same links") << true;
}

/// Where nothing contends messages and flows end within a tick for each message; where two share links, never later in sum.
void TestStepRun::messagesOfAStep()
{
    QFETCH(bool, contends);
    const Topology box = torus({4, 4}, true);
    const MachineLinks links(box);
    StepWork work;
    work.links = &links;
    work.kindOf.assign(16, 0);
    const auto add = [&](std::size_t axis, CollectiveKind kind, std::int64_t bytes) {
        auto routed = valueOf(routeCollective({kind, bytes, {groupAlong(box, axis)}}, groupsAlong(box, {axis}), links));
        StepSite made = flowsOf(routed);
        made.messages = std::make_shared<const RoutedCollective>(std::move(routed));
        work.sites.push_back(std::move(made));
    };
    add(0, CollectiveKind::AllReduce, 8 * kMiB);
    add(contends ? 0 : 1, CollectiveKind::AllReduce, 8 * kMiB);
    work.sites.push_back(delaySite(groupsAlong(box, {1}), 3 * kMicrosecond));
    StepProgram program;
    const std::uint32_t begin = program.compute(10 * kMicrosecond, {});
    const StepDependency begun[] = {{begin, StepLag::None}};
    const std::uint32_t a = program.collective(0, 0, begun);
    const std::uint32_t b = program.collective(1, 0, begun);
    const StepDependency both[] = {{a, StepLag::None}, {b, StepLag::None}};
    const std::uint32_t delayed = program.collective(2, 0, both);
    const StepDependency last[] = {{delayed, StepLag::None}};
    const std::uint32_t again = program.collective(0, 1, last); // the same links a second time
    const StepDependency end[] = {{again, StepLag::None}};
    program.compute(kMicrosecond, end);
    work.loops = {{{program}, 1}};

    StepRunOptions options;
    const StepRun flows = runStep(work, options);
    options.fidelity = Fidelity::Message;
    const StepRun messages = runStep(work, options);
    QCOMPARE(messages.classes, 16);
    QVERIFY(messages.messages > 16);
    const double difference = std::abs(secondsOf(messages.end - flows.end));
    if (contends)
        QVERIFY2(difference < 0.02 * secondsOf(flows.end), qPrintable(QString::number(difference)));
    else
        QVERIFY2(difference < 50e-12, qPrintable(QString::number(difference)));
}

/// A start that is later makes the whole later; a negative one takes from latencies no more than there is.
void TestStepRun::delayedSites()
{
    const Topology ring = torus({8}, true);
    const MachineLinks links(ring);
    const auto ends = [&](Ticks delay) {
        StepWork work;
        work.links = &links;
        work.kindOf.assign(8, 0);
        work.sites.push_back(site(links, 0, CollectiveKind::AllReduce, 8 * kMiB));
        delayStart(work.sites.front(), delay);
        StepProgram program;
        program.collective(0, 0, {});
        work.loops = {{{program}, 1}};
        return runStep(work).end;
    };
    const Ticks plain = ends(0);
    QCOMPARE(ends(5 * kMicrosecond), plain + 5 * kMicrosecond);
    QCOMPARE(ends(-5 * kMicrosecond), plain - 5 * kMicrosecond);
    QCOMPARE(ends(-1000 * kMicrosecond), plain - 8 * kMicrosecond); // four hops, there and again
}

MESHWRIGHT_TEST(TestStepRun)

} // namespace tst_step_run

#include "tst_step_run.moc"
