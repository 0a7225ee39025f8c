// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/goldens/golden_runner.h"

#include "core/sharding/named_sharding.h"

#include <QtTest>

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

Outcome runPlacement(const Json& input, const Json& expect)
{
    if (input.contains("unreduced"))
        return unsupported("a PartitionSpec of ours has no unreduced axes");
    const auto spec = parseSpec("P" + writtenSpec(input.at("spec")));
    if (!spec)
        return checkKind(spec, expect);
    if (!input.contains("mesh"))
        return unsupported("there is no spec without a mesh");
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

    static const std::map<std::string, const char*> kReasons = {
        {"type", "shardings as part of a value's type (explicit mode) are not checked yet"},
        {"shard_map_in_spec", "shard_map is not modelled yet"},
        {"shard_map_out_spec", "shard_map is not modelled yet"},
        {"context", "a spec is never given without its mesh"},
        {"assemble", "arrays are not assembled from pieces that a user holds"},
        {"collective", "collectives with axis names are not written by users yet"},
        {"iota_tile", "iota tile assignments are not modelled yet"},
        {"create_device_mesh", "create_device_mesh is not modelled yet"},
        {"sdy_sharding", "Shardy's text of shardings is not read here yet"},
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
