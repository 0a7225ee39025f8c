// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/goldens/axis_text.h"
#include "tests/goldens/golden_runner.h"

#include "core/sharding/named_sharding.h"

#include <QtTest>

#include <numeric>

using namespace meshwright;
using namespace meshwright::goldens;

class TestGoldenLayout : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases();
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"layout.json"};
};

namespace {

Json boxJson(const IndexBox& box)
{
    Json json = Json::array();
    for (const IndexRange& range : box)
        json.push_back({range.start, range.stop});
    return json;
}

/// For each device in mesh order: the how manyth device that holds its piece.
std::vector<std::int64_t> replicaIds(const Layout& layout, const Mesh& mesh)
{
    std::map<DeviceId, std::int64_t> ids;
    for (const Shard& shard : layout.shards) {
        for (std::size_t i = 0; i < shard.devices.size(); ++i)
            ids[shard.devices[i]] = static_cast<std::int64_t>(i);
    }
    std::vector<std::int64_t> inOrder;
    for (const DeviceId device : mesh.deviceOrder())
        inOrder.push_back(ids[device]);
    return inOrder;
}

/// What `expect` (or `derived`) states about a layout.
Outcome checkLayout(const Layout& layout, const Mesh& mesh, const Json& expect)
{
    std::vector<Outcome> outcomes;
    if (expect.contains("shard_shape"))
        outcomes.push_back(same("shard shape", layout.shardShape, expect["shard_shape"].get<Shape>()));
    if (expect.contains("fully_replicated"))
        outcomes.push_back(same("fully replicated", layout.fullyReplicated, expect["fully_replicated"].get<bool>()));
    if (expect.contains("replica_ids"))
        outcomes.push_back(same("replica ids", replicaIds(layout, mesh), expect["replica_ids"].get<std::vector<std::int64_t>>()));
    if (expect.contains("device_slices")) {
        std::map<std::string, Json> slices;
        for (const Shard& shard : layout.shards) {
            for (const DeviceId device : shard.devices)
                slices[std::to_string(device)] = boxJson(shard.box);
        }
        for (const auto& [device, box] : expect["device_slices"].items())
            outcomes.push_back(same("slices of device " + device, slices[device], box));
    }
    if (expect.contains("hlo_tile_devices")) {
        // The devices of the tiles in row-major order, and how many tiles each dimension has.
        std::vector<DeviceId> devices;
        for (const Shard& shard : layout.shards)
            devices.insert(devices.end(), shard.devices.begin(), shard.devices.end());
        std::vector<std::int64_t> tiles;
        for (std::size_t dim = 0; dim < layout.shape.size(); ++dim)
            tiles.push_back(layout.shape[dim] / layout.shardShape[dim]);
        outcomes.push_back(same("tile devices", devices, expect["hlo_tile_devices"].get<std::vector<DeviceId>>()));
        outcomes.push_back(same("tile dims", tiles, expect["hlo_tile_dims"].get<std::vector<std::int64_t>>()));
    }
    return all(outcomes);
}

Outcome runNamed(const Json& golden)
{
    const auto mesh = goldens::meshOf(golden.at("mesh"));
    if (!mesh)
        return failed(describe(mesh.error()));
    const auto layout = placedLayout(golden.at("shape").get<Shape>(), {*mesh, specOf(golden.at("spec"))});
    if (!layout)
        return failed(describe(layout.error()));
    return all({checkLayout(*layout, *mesh, golden.at("expect")), checkLayout(*layout, *mesh, golden.at("derived"))});
}

/// Two shardings in Shardy's text: equal as XLA compares them, and then their placements are the same too.
Outcome runEquivalence(const Json& golden)
{
    const Json& a = golden.at("a");
    const Json& b = golden.at("b");
    if (a.contains("hlo") || b.contains("hlo"))
        return unsupported("XLA's tiled sharding strings are not read yet");
    const auto meshA = goldens::meshOf(a.at("mesh"));
    const auto meshB = goldens::meshOf(b.at("mesh"));
    if (!meshA || !meshB)
        return failed("a mesh is refused");
    const TensorSharding shardingA = AxisTextReader(a.at("sdy").get_ref<const std::string&>(), *meshA).sharding();
    const TensorSharding shardingB = AxisTextReader(b.at("sdy").get_ref<const std::string&>(), *meshB).sharding();
    const bool expected = golden.at("expect").at("equivalent").get<bool>();
    std::vector<Outcome> outcomes = {same("equivalent", sameSharding(shardingA, *meshA, shardingB, *meshB), expected)};
    if (expected && *meshA == *meshB)
        outcomes.push_back(same("same placement", equivalent({64, 96}, shardingA, *meshA, shardingB, *meshB), true));
    return all(outcomes);
}

std::string dimText(const AxisRefs& axes, bool open, const Mesh& mesh)
{
    TensorSharding sharding;
    sharding.dims.push_back({axes, open, 0});
    const std::string text = shardyText(sharding, mesh);
    return text.substr(1, text.size() - 2);
}

Outcome runSliceAxes(const Json& golden)
{
    const auto mesh = goldens::meshOf(golden.at("mesh"));
    const AxisRefs axes = AxisTextReader(golden.at("axes").get_ref<const std::string&>(), *mesh).dim().axes;
    const auto split = takeMajor(axes, golden.at("size").get<std::int64_t>());
    const Json& expect = golden.at("expect");
    if (!split || expect.at("taken").is_null())
        return same("possible", split.has_value(), !expect.at("taken").is_null());
    return all({same("taken", dimText(split->taken, false, *mesh), expect.at("taken").get<std::string>()),
        same("left", dimText(split->left, false, *mesh), expect.at("left").get<std::string>())});
}

Outcome runAppendAxes(const Json& golden)
{
    const auto mesh = goldens::meshOf(golden.at("mesh"));
    DimSharding dim = AxisTextReader(golden.at("a").get_ref<const std::string&>(), *mesh).dim();
    for (const AxisRef& axis : AxisTextReader(golden.at("b").get_ref<const std::string&>(), *mesh).dim().axes)
        appendMerging(dim.axes, axis);
    return same("result", dimText(dim.axes, dim.open, *mesh), golden.at("expect").at("result").get<std::string>());
}

Outcome run(const Json& golden)
{
    const std::string kind = golden.at("kind").get<std::string>();
    if (kind == "named")
        return runNamed(golden);
    if (kind == "equivalence")
        return runEquivalence(golden);
    if (kind == "slice_axes")
        return runSliceAxes(golden);
    if (kind == "append_axes")
        return runAppendAxes(golden);
    if (kind == "hlo" || kind == "hlo_validate")
        return unsupported("XLA's tiled sharding strings are not read yet");
    if (kind.starts_with("tile_assignment"))
        return unsupported("iota tile assignments are not modelled yet");
    return failed("unknown kind " + kind);
}

} // namespace

void TestGoldenLayout::cases()
{
    settleCase(m_file, run);
}

QTEST_APPLESS_MAIN(TestGoldenLayout)
#include "tst_golden_layout.moc"
