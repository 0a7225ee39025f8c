// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/machine.h"
#include "sim/hardware/topology_graph.h"
#include "tests/test_class.h"

#include <algorithm>
#include <set>

namespace tst_topology {

using namespace meshwright;
using namespace meshwright::sim;

using Sizes = std::vector<std::int64_t>;

namespace {

const Catalogue& catalogue()
{
    static const Catalogue loaded = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    return loaded;
}

struct Shape {
    const char* name;
    HardwareChoice choice;
    std::int64_t devices;
    std::int64_t links; ///< directed
    std::int64_t diameterLinks;
};

/// Worked by hand. A line of k has 2 (k - 1) directed links, a ring 2 k, a switch 2 for each port.
const std::vector<Shape> kShapes = {
    {"v5e 1x1", {"v5e", {1, 1}}, 1, 0, 0},
    {"v5e 4x2: 2 lines of 4, 4 of 2", {"v5e", {4, 2}}, 8, 2 * 6 + 4 * 2, 4},
    {"v5e 16x4: 4 rings of 16, 16 lines of 4", {"v5e", {16, 4}}, 64, 4 * 32 + 16 * 6, 8 + 3},
    {"v3 2x2: 8 links for each core, 4 pairs", {"v3", {2, 2}}, 8, 2 * 8 + 4 * 2, 3},
    {"v4 4x4x4: 48 rings of 4", {"v4", {4, 4, 4}}, 64, 48 * 8, 6},
    {"v4 2x2x2", {"v4", {2, 2, 2}}, 8, 24, 3},
    {"one host", {"h100", {}, 1, 8}, 8, 16, 2},
    {"four hosts: islands, rails, spine", {"h100", {}, 4, 8}, 32, 64 + 64 + 16, 4},
    {"full mesh", {"mi300x", {}, 1, 8}, 8, 56, 1},
    {"two full meshes", {"mi300x", {}, 2, 8}, 16, 112 + 32 + 16, 3},
    {"hosts of one", {"gh200", {}, 4}, 4, 8, 2},
};

} // namespace

class TestTopology : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void closedFormsAgreeWithTheGraph_data();
    void closedFormsAgreeWithTheGraph();
    void minimumCuts_data();
    void minimumCuts();
    void nodesAndLinks();
    void tooLarge();
};

void TestTopology::closedFormsAgreeWithTheGraph_data()
{
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < kShapes.size(); ++i)
        QTest::newRow(kShapes[i].name) << int(i);
}

void TestTopology::closedFormsAgreeWithTheGraph()
{
    QFETCH(int, index);
    const Shape& shape = kShapes[std::size_t(index)];
    const auto machine = buildMachine(catalogue(), shape.choice);
    QVERIFY2(machine, machine ? "" : describe(machine.error()).c_str());
    const Topology& topology = machine->topology;
    const auto graph = TopologyGraph::build(topology);
    QVERIFY(graph);

    QCOMPARE(topology.deviceCount(), shape.devices);
    QCOMPARE(graph->deviceCount(), shape.devices);
    QCOMPARE(topology.linkCount(), shape.links);
    QCOMPARE(graph->linkCount(), shape.links);
    QCOMPARE(topology.diameterLinks(), shape.diameterLinks);

    std::int64_t diameter = 0;
    double latency = 0.0;
    std::vector<double> injection(std::size_t(graph->nodeCount()), 0.0);
    for (const TopologyLink& link : graph->links())
        injection[std::size_t(link.from)] += link.spec.bytesPerSecond;
    for (DeviceId device = 0; device < topology.deviceCount(); ++device) {
        const auto hops = graph->hopsFrom(device);
        const auto seconds = graph->latencyFrom(device);
        for (DeviceId other = 0; other < topology.deviceCount(); ++other) {
            diameter = std::max(diameter, hops[std::size_t(other)]);
            latency = std::max(latency, seconds[std::size_t(other)]);
        }
        QCOMPARE(topology.linksEntering(device), graph->linksEntering(device));
        QCOMPARE(topology.injectionBytesPerSecond(device), injection[std::size_t(device)]);
        QCOMPARE(topology.deviceAt(topology.coordinates(device)), device);
    }
    QCOMPARE(topology.diameterLinks(), diameter);
    QCOMPARE(topology.diameterSeconds() + 1.0, latency + 1.0);
}

void TestTopology::minimumCuts_data()
{
    closedFormsAgreeWithTheGraph_data();
}

void TestTopology::minimumCuts()
{
    QFETCH(int, index);
    const auto machine = valueOf(buildMachine(catalogue(), kShapes[std::size_t(index)].choice));
    const Topology& topology = machine.topology;
    const auto graph = valueOf(TopologyGraph::build(topology));
    for (std::size_t axis = 0; axis < topology.axes().size(); ++axis) {
        std::vector<DeviceId> lower;
        for (DeviceId device = 0; device < topology.deviceCount(); ++device) {
            if (topology.coordinate(device, axis) < topology.axes()[axis].length / 2)
                lower.push_back(device);
        }
        if (lower.empty())
            QCOMPARE(topology.halfCutBytesPerSecond(axis), 0.0);
        else
            QCOMPARE(topology.halfCutBytesPerSecond(axis), graph.minimumCutBytesPerSecond(lower));
    }
}

void TestTopology::nodesAndLinks()
{
    const auto machine = valueOf(buildMachine(catalogue(), {"h100", {}, 2, 4}));
    const auto graph = valueOf(TopologyGraph::build(machine.topology));
    QCOMPARE(graph.nodeCount(), 8 + 4 + 1 + 2); // devices, rails, spine, switches
    QCOMPARE(graph.node(5).name, std::string("device 5"));
    QCOMPARE(graph.node(5).coordinates, (Sizes{1, 1}));
    std::set<std::string> switches;
    for (std::int64_t vertex = 8; vertex < graph.nodeCount(); ++vertex) {
        QVERIFY(graph.node(vertex).kind == NodeKind::Switch);
        switches.insert(graph.node(vertex).name);
    }
    QCOMPARE(switches,
        (std::set<std::string>{"rail 0", "rail 1", "rail 2", "rail 3", "spine", "switch of host 0", "switch of host 1"}));
    // Every link has its opposite with the same figures.
    std::multiset<std::pair<std::int64_t, std::int64_t>> ends;
    for (const TopologyLink& link : graph.links())
        ends.insert({link.from, link.to});
    for (const auto& [from, to] : ends)
        QCOMPARE(ends.count({to, from}), ends.count({from, to}));
    // A step through a switch is two links of half the latency.
    QCOMPARE(graph.latencyFrom(0)[1], 3.4e-6);
    QCOMPARE(graph.latencyFrom(0)[4], 9.6e-6);
}

void TestTopology::tooLarge()
{
    const auto machine = valueOf(buildMachine(catalogue(), {"h100", {}, 100000, 8}));
    QCOMPARE(machine.deviceCount(), 800000);
    const auto graph = TopologyGraph::build(machine.topology);
    QVERIFY(!graph);
    QCOMPARE(graph.error().front().id, std::string("MW1710"));
}

MESHWRIGHT_TEST(TestTopology)

} // namespace tst_topology

#include "tst_topology.moc"
