// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/goldens/golden_runner.h"

#include "core/mesh/device_mesh.h"
#include "core/sharding/jax_spec.h"
#include "core/sharding/named_sharding.h"
#include "core/sharding/shardy_text.h"
#include "core/sharding/tile_assignment.h"

#include <QtTest>

#include <fmt/ranges.h>

#include <map>
#include <numeric>

using namespace meshwright;
using namespace meshwright::goldens;

class TestGoldenErrors : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases();
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"errors.json"};
};

namespace {

/// Our problems for the peers' classes of errors.
const std::map<std::string, std::vector<std::string>> kProblemOfKind = {
    {"not_divisible", {"MW1104"}},
    {"rank_too_small", {"MW1101"}},
    {"rank_mismatch", {"MW1145"}},
    {"none_in_unreduced", {"MW1105"}},
    {"axis_both_sharded_and_unreduced", {"MW1103"}},
    {"axes_not_in_mesh_order", {"MW1143"}},
    {"sub_axis_and_full_axis", {"MW1142"}},
    {"overlapping_sub_axes", {"MW1142"}},
    {"mergeable_sub_axes", {"MW1144"}},
    {"bad_sub_axis", {"MW1141"}},
    {"bad_maximal", {"MW1146"}},
    {"empty_dims", {"MW1151"}},
    {"size_mismatch", {"MW1151"}},
    {"perm_without_reshape", {"MW1151"}},
    {"too_many_subgroups", {"MW1155"}},
    {"no_contiguous_submeshes", {"MW1175"}},
    {"unknown_axis", {"MW1102"}},
    {"duplicate_axis", {"MW1103", "MW1111"}},
    {"nested_tuple", {"MW1105"}},
    {"incompatible_devices", {"MW1120"}},
    {"duplicate_device", {"MW1115"}},
    {"bad_device_ids", {"MW1114"}},
};

/// Passed when a problem of the right class is among those found.
template <typename T>
Outcome checkKind(const Result<T>& result, const Json& expect)
{
    const std::string kind = expect.at("kind").get<std::string>();
    if (kind == "none")
        return result ? passed() : failed("refused: " + describe(result.error()));
    if (result)
        return failed("accepted, expected " + kind);
    const auto ids = kProblemOfKind.find(kind);
    if (ids == kProblemOfKind.end())
        return failed("no problem of ours is known to mean " + kind);
    for (const Problem& problem : result.error()) {
        if (std::find(ids->second.begin(), ids->second.end(), problem.id) != ids->second.end())
            return passed();
    }
    return failed("expected " + kind + ", found " + describe(result.error()));
}

/// The spec as a user would write it: `P('x', ('y', 'z'))`, with nested tuples as they are.
std::string writtenSpec(const Json& json)
{
    if (json.is_null())
        return "None";
    if (json.is_string())
        return "'" + json.get<std::string>() + "'";
    std::string text = "(";
    for (const Json& entry : json)
        text += writtenSpec(entry) + ", ";
    return text + ")";
}

Outcome runUnreduced(const Json& input, const Json& expect)
{
    std::string written = "P" + writtenSpec(input.at("spec"));
    written.insert(written.size() - 1, "unreduced={");
    for (const Json& axis : input.at("unreduced"))
        written.insert(written.size() - 1, writtenSpec(axis) + ", ");
    written.insert(written.size() - 1, "}");
    const auto spec = parseJaxSpec(written);
    if (!spec || !input.contains("mesh"))
        return checkKind(spec, expect);
    const auto mesh = goldens::meshOf(input.at("mesh"));
    return mesh ? checkKind(onMesh(*spec, std::nullopt, *mesh), expect) : checkKind(mesh, expect);
}

Outcome runPlacement(const Json& input, const Json& expect)
{
    if (input.contains("unreduced"))
        return runUnreduced(input, expect);
    const auto spec = parseSpec("P" + writtenSpec(input.at("spec")));
    if (!spec)
        return checkKind(spec, expect);
    if (!input.contains("mesh"))
        return checkKind(Result<Done>(Done()), expect);
    const auto mesh = goldens::meshOf(input.at("mesh"));
    if (!mesh)
        return checkKind(mesh, expect);
    // Without a shape only the spec is in question: sizes that divide by everything.
    const auto shape = input.value("shape", Shape(spec->dims.size(), 0));
    return checkKind(placedLayout(shape, {*mesh, *spec}), expect);
}

Outcome runCombine(const Json& input, const Json& expect)
{
    const auto array = [](const char* name, const Json& devices) {
        const auto order = devices.get<std::vector<DeviceId>>();
        const Mesh mesh = valueOf(Mesh::create({{"x", static_cast<std::int64_t>(order.size())}}, order));
        return PlacedArray{name, {8}, {mesh, {}}, true};
    };
    return checkKind(placeComputation({array("a", input.at("a_devices")), array("b", input.at("b_devices"))}), expect);
}

/// Shardy's modules number their devices 0..n-1; ours may use any.
Outcome runShardyMesh(const Json& input, const Json& expect)
{
    const Json& json = input.at("mesh");
    if (json.contains("device_ids") && json.at("device_ids").size() > 1 && !json.at("axes").empty()) {
        auto sorted = json.at("device_ids").get<std::vector<DeviceId>>();
        std::sort(sorted.begin(), sorted.end());
        const bool distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
        if (distinct && sorted.front() >= 0)
            return unsupported("a mesh of ours may use a part of the devices, so their ids need not be 0..n-1");
    }
    return checkKind(goldens::meshOf(json), expect);
}

/// A sharding as a module of Shardy's has it: the mesh is named.
Outcome runShardy(const Json& input, const Json& expect)
{
    const std::string name = input.at("mesh").get<std::string>();
    if (!input.at("meshes").contains(name))
        return unsupported("the meshes of a program have no names in a sharding of ours; the reader of programs finds this");
    const auto mesh = goldens::meshOf(input.at("meshes").at(name));
    if (!mesh)
        return checkKind(mesh, expect);
    const auto sharding = parseShardy(input.at("sdy").get<std::string>(), *mesh);
    if (!sharding)
        return checkKind(sharding, expect);
    const Problems problems = shardingProblems(*sharding, *mesh, input.at("shape").size());
    return checkKind(problems.empty() ? Result<Done>(Done()) : Result<Done>(problems), expect);
}

Outcome runIota(const Json& input, const Json& expect)
{
    const auto dims = input.at("dims").get<Shape>();
    const auto tiles
        = TileAssignment::iota(dims, input.value("reshape", Shape()), input.value("perm", std::vector<std::size_t>()));
    if (!tiles || !input.contains("subgroups"))
        return checkKind(tiles, expect);
    return checkKind(parseTileSharding(fmt::format("{{devices={} last_tile_dims={{{}}}}}", tiles->text(),
                         fmt::join(input.at("subgroups").get<std::vector<std::string>>(), ", "))),
        expect);
}

Outcome runDeviceMesh(const Json& input, const Json& expect)
{
    const Json& sizes = input.at("mesh_shape");
    if (std::any_of(sizes.begin(), sizes.end(), [](const Json& size) { return !size.is_number_integer(); }))
        return unsupported("the sizes of a mesh are integers by their type here");
    const auto devices = tpuDevices(DeviceKind::TpuV4, input.at("topology").get<Shape>());
    if (!devices)
        return checkKind(devices, expect);
    return checkKind(
        createDeviceMesh(sizes.get<Shape>(), DeviceKind::TpuV4, *devices, {input.value("contiguous_submeshes", false), false}),
        expect);
}

Outcome run(const Json& golden)
{
    const std::string check = golden.at("check").get<std::string>();
    const Json& input = golden.at("input");
    const Json& expect = golden.at("expect");
    if (check == "shard_shape" || check == "device_slices" || check == "place" || check == "rank" || check == "spec")
        return runPlacement(input, expect);
    if (check == "combine")
        return runCombine(input, expect);
    if (check == "sdy_mesh")
        return runShardyMesh(input, expect);
    if (check == "sdy_sharding")
        return runShardy(input, expect);
    if (check == "iota_tile")
        return runIota(input, expect);
    if (check == "create_device_mesh")
        return runDeviceMesh(input, expect);

    static const std::map<std::string, const char*> kReasons = {
        {"type", "shardings as part of a value's type (explicit mode) are not checked yet"},
        {"shard_map_in_spec", "shard_map is not modelled yet"},
        {"shard_map_out_spec", "shard_map is not modelled yet"},
        {"context", "a spec is never given without its mesh"},
        {"assemble", "arrays are not assembled from pieces that a user holds"},
        {"collective", "collectives with axis names are not written by users yet"},
    };
    const auto reason = kReasons.find(check);
    return reason == kReasons.end() ? failed("unknown check " + check) : unsupported(reason->second);
}

} // namespace

void TestGoldenErrors::cases()
{
    settleCase(m_file, run);
}

QTEST_APPLESS_MAIN(TestGoldenErrors)
#include "tst_golden_errors.moc"
