// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/resources.h"
#include "sim/hardware/catalogue.h"
#include "sim/hardware/hardware_file.h"
#include "sim/search/axis_order.h"
#include "sim/search/mlp_search.h"
#include "sim/search/search_output.h"
#include "sim/search/search_request.h"
#include "tests/test_class.h"

namespace tst_axis_order {

using namespace meshwright;
using namespace meshwright::sim;

/// Which mesh axis lies on which links, and what a step costs in money.
class TestAxisOrder : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void longerAxesAreRings();
    void ordersOfAllAxes();
    void namesDoNotMatter();
    void prices();
};

namespace {

const Catalogue& catalogue()
{
    static const Catalogue kCatalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    return kCatalogue;
}

} // namespace

/// On 4x16 chips of v5e only the axis of 16 closes to a ring: whatever is put there has twice the links.
void TestAxisOrder::longerAxesAreRings()
{
    const Machine machine = valueOf(buildMachine(catalogue(), {"v5e", {4, 16}}));
    const auto orders = placedOrders({{"data", 16}, {"tensor", 4}}, {{"tensor", 1.0}, {"data", 1.0}}, machine);
    QCOMPARE(orders.size(), std::size_t{2});
    for (const PlacedOrder& order : orders) {
        QCOMPARE(order.mesh.size(), std::size_t{2});
        const std::size_t data = order.mesh[0].name == "data" ? 0 : 1;
        QVERIFY2(order.bytesPerSecond[data] > 1.5 * order.bytesPerSecond[1 - data], order.where.c_str());
    }
    QCOMPARE(orders.front().slowdown, 1.0);
    const auto sentences = orderSentences({{"data", 16}, {"tensor", 4}}, {{"tensor", 1.0}}, machine);
    QVERIFY(!sentences.empty());
    QVERIFY2(QString::fromStdString(sentences.front()).contains("GB/s"), sentences.front().c_str());
}

void TestAxisOrder::ordersOfAllAxes()
{
    const Machine machine = valueOf(buildMachine(catalogue(), {"v5p", {4, 4, 4}}));
    const std::vector<MeshAxis> mesh = {{"data", 2}, {"fsdp", 8}, {"tensor", 4}};
    const auto orders = placedOrders(mesh, {{"tensor", 2.0}, {"fsdp", 1.0}}, machine);
    QCOMPARE(orders.size(), std::size_t{6});
    for (std::size_t i = 1; i < orders.size(); ++i)
        QVERIFY(orders[i].slowdown >= orders[i - 1].slowdown);
    // What is waited for decides: without loads all orders are as good.
    for (const PlacedOrder& order : placedOrders(mesh, {}, machine))
        QCOMPARE(order.slowdown, 1.0);
    QCOMPARE(placedOrders(mesh, {}, machine).front().mesh, mesh);
    // A mesh that the machine has no room for has no order.
    QVERIFY(placedOrders({{"data", 128}}, {}, machine).empty());
    QVERIFY(orderSentences({{"data", 128}}, {}, machine).empty());
}

void TestAxisOrder::namesDoNotMatter()
{
    const Machine machine = valueOf(buildMachine(catalogue(), {"v5p", {4, 4, 2}}));
    const auto a = placedOrders({{"data", 8}, {"tensor", 4}}, {{"data", 1.0}, {"tensor", 3.0}}, machine);
    const auto b = placedOrders({{"p", 8}, {"q", 4}}, {{"p", 1.0}, {"q", 3.0}}, machine);
    QCOMPARE(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        QCOMPARE(a[i].slowdown, b[i].slowdown);
        QCOMPARE(a[i].bytesPerSecond, b[i].bytesPerSecond);
    }
}

/// A chip's price is the user's: without one nothing is reckoned and that is said, with one every plan has its price.
void TestAxisOrder::prices()
{
    for (const Chip& chip : catalogue().chips())
        QVERIFY2(!chip.dollarsPerHour, chip.key.c_str());
    const char* text = "meshwright_hardware: 1\nchip: {base: v3, dollars_per_hour: 4.5}\ntopology:\n"
                       "  - {name: x, kind: torus, length: 4, bytes_per_s: 7.0e10}\n";
    const Machine machine = valueOf(parseHardware(text, "own.yaml", catalogue()));
    QVERIFY(machine.chip.dollarsPerHour);
    QCOMPARE(machine.chip.dollarsPerHour->value, 4.5);
    QCOMPARE(parseHardware("meshwright_hardware: 1\nchip: {base: v3, dollars_per_hour: -1}\ntopology:\n  - {name: x, kind: "
                           "torus, length: 4, bytes_per_s: "
                           "7.0e10}\n",
                 "own.yaml", catalogue())
                 .error()
                 .front()
                 .id,
        std::string("MW1744"));
    const Calibration calibration = valueOf(Calibration::load(resourcesDirectory() / "hardware/calibration.json"));
    MlpWork work;
    work.name = "small";
    work.model.layers = {256, 512, 256};
    work.batch = 1024;
    Chip chip = *valueOf(catalogue().find("v3")).chip;
    const SearchResult plain = searchMlp(work, valueOf(machineOf(chip, 4, 1, calibration)), {});
    QVERIFY(!plain.plans.front().dollarsPerStep);
    QVERIFY(searchText(plain).find("no price") != std::string::npos);
    chip.dollarsPerHour = Figure{3600.0, "own"};
    const SearchResult priced = searchMlp(work, valueOf(machineOf(chip, 4, 1, calibration)), {});
    QVERIFY(std::abs(*priced.plans.front().dollarsPerStep - 4.0 * priced.plans.front().modelSeconds) < 1e-12);
    QVERIFY(searchText(priced).find("no price") == std::string::npos);
}

MESHWRIGHT_TEST(TestAxisOrder)

} // namespace tst_axis_order

#include "tst_axis_order.moc"
