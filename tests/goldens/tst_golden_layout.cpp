// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/goldens/golden_runner.h"

#include "core/sharding/named_sharding.h"
#include "core/sharding/shardy_text.h"
#include "core/sharding/tile_assignment.h"
#include "tests/test_class.h"
#include "tests/tile_placement.h"

#include <numeric>

namespace tst_golden_layout {

using namespace meshwright;
using namespace meshwright::goldens;
using namespace meshwright::tests;

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

/// One side of an equivalence in the terms of all three notations, as far as they are given.
struct Side {
    std::optional<MeshedSharding> named;
    std::optional<TileSharding> tiles;
    std::optional<std::vector<DeviceId>> devices;
};

Result<Side> sideOf(const Json& json, const Json& golden)
{
    Side side;
    if (json.contains("devices"))
        side.devices = json.at("devices").get<std::vector<DeviceId>>();
    if (json.contains("hlo")) {
        const auto tiles = parseTileSharding(json.at("hlo").get<std::string>());
        if (!tiles)
            return tiles.error();
        side.tiles = *tiles;
        return side;
    }
    const auto mesh = goldens::meshOf(json.at("mesh"));
    if (!mesh)
        return mesh.error();
    side.devices = mesh->deviceOrder();
    const PartitionSpec spec = json.contains("dims") ? specOf(json.at("dims")) : PartitionSpec{};
    const std::size_t rank = golden.contains("shape") ? golden.at("shape").size() : golden.value("ndim", spec.dims.size());
    const auto sharding
        = json.contains("sdy") ? parseShardy(json.at("sdy").get<std::string>(), *mesh) : toTensorSharding(spec, rank, *mesh);
    if (!sharding)
        return sharding.error();
    side.named = MeshedSharding{*mesh, *sharding};
    return side;
}

/// Two shardings of one mesh: equal as XLA compares them, and then their placements are the same too. Others: by their placements.
Outcome runEquivalence(const Json& golden)
{
    const auto a = sideOf(golden.at("a"), golden);
    const auto b = sideOf(golden.at("b"), golden);
    if (!a || !b)
        return failed(describe(a ? b.error() : a.error()));
    const bool expected = golden.at("expect").at("equivalent").get<bool>();
    if (a->named && b->named) {
        std::vector<Outcome> outcomes = {
            same("equivalent", sameSharding(a->named->sharding, a->named->mesh, b->named->sharding, b->named->mesh), expected)};
        if (expected && a->named->mesh == b->named->mesh)
            outcomes.push_back(same("same placement",
                equivalent(Shape(a->named->sharding.dims.size(), 96), a->named->sharding, a->named->mesh, b->named->sharding,
                    b->named->mesh),
                true));
        return all(outcomes);
    }
    const auto tilesOf
        = [](const Side& side) { return side.tiles ? *side.tiles : toTiles(side.named->sharding, side.named->mesh); };
    const bool sameDevices = !a->devices || !b->devices || a->devices == b->devices;
    std::vector<Outcome> outcomes = {same("equivalent", sameDevices && samePlacement(tilesOf(*a), tilesOf(*b)), expected)};
    if (expected && golden.contains("shape")) {
        const auto shape = golden.at("shape").get<Shape>();
        const auto layoutA = tileLayout(shape, tilesOf(*a), {});
        const auto layoutB = tileLayout(shape, tilesOf(*b), {});
        outcomes.push_back(same("same tiles", layoutA && layoutB && layoutA->shards == layoutB->shards, true));
    }
    return all(outcomes);
}

Outcome runTiles(const Json& golden)
{
    const auto shape = golden.at("shape").get<Shape>();
    const auto sharding = parseTileSharding(golden.at("hlo").get<std::string>());
    if (!sharding)
        return failed(describe(sharding.error()));
    const Json& expect = golden.at("expect");
    if (golden.contains("num_devices"))
        return same("valid", tileProblems(*sharding, shape, golden.at("num_devices").get<std::int64_t>()).empty(),
            expect.at("valid").get<bool>());
    const auto layout = tileLayout(shape, *sharding, {});
    if (!layout)
        return failed(describe(layout.error()));
    const Mesh mesh = valueOf(meshOfTiles(*sharding));
    std::vector<Outcome> outcomes = {checkLayout(*layout, mesh, expect)};
    if (golden.contains("derived"))
        outcomes.push_back(checkLayout(*layout, mesh, golden.at("derived")));
    if (expect.contains("valid"))
        outcomes.push_back(
            same("valid", tileProblems(*sharding, shape, sharding->tiles.count()).empty(), expect.at("valid").get<bool>()));
    return all(outcomes);
}

Outcome runTileAssignment(const Json& golden, const std::string& kind)
{
    auto tiles = TileAssignment::iota(
        golden.at("dims").get<Shape>(), golden.value("reshape", Shape()), golden.value("perm", std::vector<std::size_t>()));
    if (!tiles)
        return failed(describe(tiles.error()));
    if (kind == "tile_assignment_transpose")
        tiles = tiles->transposed(golden.at("transpose").get<std::vector<std::size_t>>());
    const Json& expect = golden.at("expect");
    std::vector<Outcome> outcomes;
    if (expect.contains("dims"))
        outcomes.push_back(same("dims", tiles->dims(), expect.at("dims").get<Shape>()));
    if (expect.contains("canonical_reshape"))
        outcomes.push_back(same("reshape", tiles->reshape(), expect.at("canonical_reshape").get<Shape>()));
    if (expect.contains("canonical_perm"))
        outcomes.push_back(same("perm", tiles->perm(), expect.at("canonical_perm").get<std::vector<std::size_t>>()));
    if (expect.contains("devices"))
        outcomes.push_back(same("devices", tiles->devices(), expect.at("devices").get<std::vector<DeviceId>>()));
    if (expect.contains("string"))
        outcomes.push_back(same("string", tiles->text(), expect.at("string").get<std::string>()));
    if (expect.contains("local_mesh")) {
        const auto sizes = tiles->smallestMesh();
        outcomes.push_back(same("mesh", sizes ? Json(*sizes) : Json(), expect.at("local_mesh")));
    }
    if (expect.contains("sub_dims")) {
        Json found = Json::array();
        for (const TilePiece& piece : tiles->pieces().value_or(std::vector<TilePiece>()))
            found.push_back({{"tile_dim", piece.tileDim}, {"tile_sub_dim", piece.tileSubDim}, {"reshape_dim", piece.reshapeDim},
                {"size", piece.size}});
        outcomes.push_back(same("sub dims", found, expect.at("sub_dims")));
    }
    return outcomes.empty() ? failed("nothing of the expectation is known") : all(outcomes);
}

/// `{"a", "b":(1)2, ?}`: one dimension in Shardy's text.
DimSharding dimOf(const Json& text, const Mesh& mesh)
{
    return valueOf(parseShardy("[" + text.get<std::string>() + "]", mesh)).dims.front();
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
    const AxisRefs axes = dimOf(golden.at("axes"), *mesh).axes;
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
    DimSharding dim = dimOf(golden.at("a"), *mesh);
    for (const AxisRef& axis : dimOf(golden.at("b"), *mesh).axes)
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
        return runTiles(golden);
    if (kind.starts_with("tile_assignment"))
        return runTileAssignment(golden, kind);
    return failed("unknown kind " + kind);
}

} // namespace

void TestGoldenLayout::cases()
{
    settleCase(m_file, run);
}

MESHWRIGHT_TEST(TestGoldenLayout)

} // namespace tst_golden_layout

#include "tst_golden_layout.moc"
