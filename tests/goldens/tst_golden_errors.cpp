// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/goldens/golden_runner.h"

#include "core/diagnose/peer_errors.h"
#include "core/sharding/named_sharding.h"

#include <QtTest>

#include <map>

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

/// Our problems for the peers' classes of errors: the checks that users meet must find the same mistakes.
const std::map<std::string, std::vector<std::string>> kProblemOfKind = {
    {"not_divisible", {"MW1104"}},
    {"rank_too_small", {"MW1101"}},
    {"unknown_axis", {"MW1102"}},
    {"duplicate_axis", {"MW1103", "MW1111"}},
    {"nested_tuple", {"MW1105"}},
};

/// Passed when the verdict is of the class, and one of its messages has the phrase.
Outcome checkVerdict(const PeerVerdict& verdict, const Json& expect)
{
    const std::string kind = expect.at("kind").get<std::string>();
    if (kind == "none")
        return verdict ? failed("refused: " + verdict->messages.front()) : passed();
    if (!verdict)
        return failed("accepted, expected " + kind);
    if (verdict->kind != kind)
        return failed(fmt::format("expected {}, found {}: {}", kind, verdict->kind, verdict->messages.front()));
    const std::string phrase = expect.value("phrase", "");
    for (const std::string& message : verdict->messages) {
        if (message.find(phrase) != std::string::npos)
            return passed();
    }
    return failed(fmt::format("\"{}\" is not in: {}", phrase, verdict->messages.front()));
}

/// The same of a check of ours: it finds a problem of the class.
Outcome checkProblem(const Problems& problems, const Json& expect)
{
    const auto ids = kProblemOfKind.find(expect.at("kind").get<std::string>());
    if (ids == kProblemOfKind.end())
        return passed();
    for (const Problem& problem : problems) {
        if (std::find(ids->second.begin(), ids->second.end(), problem.id) != ids->second.end())
            return passed();
    }
    return failed("our own check finds " + (problems.empty() ? std::string("nothing") : describe(problems)));
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

std::string specOfCase(const Json& input)
{
    std::string written = "P" + writtenSpec(input.at("spec"));
    if (!input.contains("unreduced"))
        return written;
    std::string axes;
    for (const Json& axis : input.at("unreduced"))
        axes += writtenSpec(axis) + ", ";
    return written.insert(written.size() - 1, "unreduced={" + axes + "}");
}

Outcome runSpec(const Json& input, const Json& expect, PeerPlace place)
{
    PeerRequest request{specOfCase(input), {}, {}, place, input.value("arg_name", "NamedSharding"), true};
    if (input.contains("mesh")) {
        const auto mesh = goldens::meshOf(input.at("mesh"));
        if (!mesh)
            return failed(describe(mesh.error()));
        request.mesh = *mesh;
    }
    if (input.contains("shape"))
        request.shape = input.at("shape").get<Shape>();
    const Outcome verdict = checkVerdict(jaxVerdict(request), expect);
    if (place != PeerPlace::Array || input.contains("unreduced") || !request.mesh)
        return verdict;
    const auto spec = parseSpec(request.spec);
    // Without a shape only the spec is in question: sizes that divide by everything.
    const auto shape = request.shape.value_or(Shape(spec ? spec->dims.size() : 0, 0));
    const auto layout = spec ? placedLayout(shape, {*request.mesh, *spec}) : Result<Layout>(spec.error());
    return all({verdict, checkProblem(layout ? Problems() : layout.error(), expect)});
}

Outcome runShardMapOut(const Json& input, const Json& expect)
{
    const auto mesh = goldens::meshOf(input.at("mesh"));
    if (!mesh)
        return failed(describe(mesh.error()));
    if (!input.contains("out_spec"))
        return runSpec(input, expect, PeerPlace::ShardMapOut);
    std::set<std::string> varying;
    for (const auto& axes : specOf(input.at("in_spec")).dims)
        varying.insert(axes.begin(), axes.end());
    return checkVerdict(
        replicationVerdict(specOf(input.at("out_spec")), varyingAxes(input.at("body").get<std::string>(), varying), *mesh),
        expect);
}

Outcome runAssembly(const Json& input, const Json& expect)
{
    const auto mesh = goldens::meshOf(input.at("mesh"));
    if (!mesh)
        return failed(describe(mesh.error()));
    std::optional<Shape> piece;
    if (input.contains("given_shard_shape"))
        piece = input.at("given_shard_shape").get<Shape>();
    return checkVerdict(assemblyVerdict(input.at("shape").get<Shape>(), specOf(input.at("spec")), *mesh,
                            input.value("given_devices", std::vector<DeviceId>()), piece),
        expect);
}

/// One axis, or several.
std::vector<std::string> axesOf(const Json& json)
{
    return json.is_string() ? std::vector<std::string>{json.get<std::string>()} : json.get<std::vector<std::string>>();
}

Outcome runShardyMesh(const Json& input, const Json& expect)
{
    const Json& json = input.at("mesh");
    std::vector<MeshAxis> axes;
    for (const Json& axis : json.at("axes"))
        axes.push_back({axis.at(0).get<std::string>(), axis.at(1).get<std::int64_t>()});
    return checkVerdict(shardyMeshVerdict(axes, json.value("device_ids", std::vector<DeviceId>())), expect);
}

Outcome runShardy(const Json& input, const Json& expect)
{
    std::map<std::string, Mesh> meshes;
    for (const auto& [name, json] : input.at("meshes").items()) {
        const auto mesh = goldens::meshOf(json);
        if (!mesh)
            return failed(describe(mesh.error()));
        meshes[name] = *mesh;
    }
    return checkVerdict(
        shardyVerdict(input.at("sdy").get<std::string>(), input.at("mesh").get<std::string>(), meshes, input.at("shape").size()),
        expect);
}

Outcome runDeviceMesh(const Json& input, const Json& expect)
{
    std::vector<std::string> sizes;
    for (const Json& size : input.at("mesh_shape"))
        sizes.push_back(size.dump());
    return checkVerdict(
        deviceMeshVerdict(sizes, input.value("topology", Shape()), input.value("contiguous_submeshes", false)), expect);
}

Outcome run(const Json& golden)
{
    const std::string check = golden.at("check").get<std::string>();
    const Json& input = golden.at("input");
    const Json& expect = golden.at("expect");
    if (check == "shard_shape" || check == "device_slices" || check == "place" || check == "rank" || check == "spec")
        return runSpec(input, expect, PeerPlace::Array);
    if (check == "type")
        return runSpec(input, expect, PeerPlace::Type);
    if (check == "shard_map_in_spec")
        return runSpec(input, expect, PeerPlace::ShardMapIn);
    if (check == "shard_map_out_spec")
        return runShardMapOut(input, expect);
    if (check == "context")
        return checkVerdict(jaxVerdict({specOfCase(input), {}, {}, PeerPlace::Array, "NamedSharding", false}), expect);
    if (check == "assemble")
        return runAssembly(input, expect);
    if (check == "combine")
        return checkVerdict(combinationVerdict(input.at("a_devices").get<std::vector<DeviceId>>(),
                                input.at("b_devices").get<std::vector<DeviceId>>(), input.value("platform", "TPU")),
            expect);
    if (check == "collective") {
        const auto mesh = goldens::meshOf(input.at("mesh"));
        return mesh ? checkVerdict(permuteVerdict(axesOf(input.at("axis_name")), *mesh), expect) : failed(describe(mesh.error()));
    }
    if (check == "sdy_mesh")
        return runShardyMesh(input, expect);
    if (check == "sdy_sharding")
        return runShardy(input, expect);
    if (check == "iota_tile")
        return checkVerdict(iotaVerdict(input.at("dims").get<Shape>(), input.value("reshape", Shape()),
                                input.value("perm", std::vector<std::size_t>()), input.value("subgroups", Json::array()).size()),
            expect);
    if (check == "create_device_mesh")
        return runDeviceMesh(input, expect);
    return failed("unknown check " + check);
}

} // namespace

void TestGoldenErrors::cases()
{
    settleCase(m_file, run);
}

QTEST_APPLESS_MAIN(TestGoldenErrors)
#include "tst_golden_errors.moc"
