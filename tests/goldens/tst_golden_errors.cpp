// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/goldens/golden_runner.h"

#include "core/diagnose/peer_errors.h"
#include "core/mesh/device_mesh.h"
#include "core/partition/partition.h"
#include "core/program/builder.h"
#include "core/sharding/named_sharding.h"
#include "core/sharding/tile_assignment.h"
#include "core/text/program_text.h"
#include "tests/test_class.h"

#include <fmt/ranges.h>

#include <map>

namespace tst_golden_errors {

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
    {"incompatible_devices", {"MW1120"}},
    {"out_spec_claims_replication", {"MW1266"}},
    {"bad_device_ids", {"MW1114", "MW1115"}},
    {"duplicate_device", {"MW1115"}},
    {"axes_not_in_mesh_order", {"MW1143"}},
    {"bad_maximal", {"MW1146"}},
    {"bad_sub_axis", {"MW1141"}},
    {"mergeable_sub_axes", {"MW1144"}},
    {"overlapping_sub_axes", {"MW1142"}},
    {"sub_axis_and_full_axis", {"MW1142"}},
    {"rank_mismatch", {"MW1330"}},
    {"unknown_mesh", {"MW1330"}},
    {"bad_mesh_shape", {"MW1117"}},
    {"no_contiguous_submeshes", {"MW1175"}},
    {"empty_dims", {"MW1151"}},
    {"size_mismatch", {"MW1151"}},
    {"perm_without_reshape", {"MW1151"}},
    {"too_many_subgroups", {"MW1155"}},
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
    const std::string kind = expect.at("kind").get<std::string>();
    if (kind == "none")
        return problems.empty() ? passed() : failed("refused: " + describe(problems));
    const auto ids = kProblemOfKind.find(kind);
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

Problems problemsOf(const std::string& module)
{
    const auto program = readProgram(module, "module.mlir");
    return program ? Problems() : program.error();
}

/// The body as JAX lowers it, for one of two values: twice the argument, or the sum of it over an axis.
std::string loweredBody(const std::string& body, const Mesh& mesh, const std::string& type)
{
    const std::size_t quote = body.find("psum(x,'");
    if (quote == std::string::npos)
        return fmt::format("%r = stablehlo.add %p, %p : {}", type);
    const std::size_t first = quote + std::string("psum(x,'").size();
    const std::string axis = body.substr(first, body.find('\'', first) - first);
    const auto groups = deviceGroups({wholeAxis(mesh, *mesh.findAxis(axis))}, mesh);
    return fmt::format("%r = \"stablehlo.all_reduce\"(%p) <{{replica_groups = dense<{}> : tensor<{}x{}xi64>}}> ({{\n^bb0(%a: "
                       "tensor<f32>, %b: tensor<f32>):\n%s = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %s : "
                       "tensor<f32>\n}}) : ({}) -> {}",
        groups, groups.size(), groups.front().size(), type, type);
}

/// `x=8` as Shardy writes it: `["x"=8]`.
std::string meshText(const Json& json)
{
    std::vector<std::string> axes;
    for (const Json& axis : json.at("axes"))
        axes.push_back(fmt::format("\"{}\"={}", axis.at(0).get<std::string>(), axis.at(1).get<std::int64_t>()));
    const auto ids = json.value("device_ids", std::vector<DeviceId>());
    return fmt::format(
        "<[{}]{}>", fmt::join(axes, ", "), ids.empty() ? "" : fmt::format(", device_ids=[{}]", fmt::join(ids, ", ")));
}

Outcome runShardMapOut(const Json& input, const Json& expect)
{
    const auto mesh = goldens::meshOf(input.at("mesh"));
    if (!mesh)
        return failed(describe(mesh.error()));
    if (!input.contains("out_spec"))
        return runSpec(input, expect, PeerPlace::ShardMapOut);
    const PartitionSpec in = specOf(input.at("in_spec"));
    const PartitionSpec out = specOf(input.at("out_spec"));
    const std::size_t rank = std::max(in.dims.size(), out.dims.size());
    const auto sharding
        = [&](const PartitionSpec& spec) { return shardyText(valueOf(toTensorSharding(spec, rank, *mesh)), *mesh); };
    const auto typeOf = [](const Shape& shape) { return fmt::format("tensor<{}xf32>", fmt::join(shape, "x")); };
    const Shape piece(rank, 2);
    const auto whole = [&](const PartitionSpec& spec) {
        Shape shape = piece;
        for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) {
            for (const std::string& axis : spec.dims[dim])
                shape[dim] *= *mesh->axisSize(axis);
        }
        return typeOf(shape);
    };
    std::vector<std::string> manual;
    for (const std::string& axis : mesh->axisNames())
        manual.push_back('"' + axis + '"');
    const std::string module = fmt::format(R"(sdy.mesh @mesh = {}
func.func @main(%x: {}) -> {} {{
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, {}>] out_shardings=[<@mesh, {}>] manual_axes={{{}}} (%p: {}) {{
    {}
    sdy.return %r : {}
  }} : ({}) -> {}
  return %0 : {}
}})",
        meshText(input.at("mesh")), whole(in), whole(out), sharding(in), sharding(out), fmt::join(manual, ", "), typeOf(piece),
        loweredBody(input.at("body").get<std::string>(), *mesh, typeOf(piece)), typeOf(piece), whole(in), whole(out), whole(out));
    const auto program = readProgram(module, "module.mlir");
    if (!program)
        return checkProblem(program.error(), expect);
    const auto partitioned = propagateAndPartition(*program);
    return checkProblem(partitioned ? Problems() : partitioned.error(), expect);
}

/// Two arrays on meshes of their own, added.
Outcome runCombine(const Json& input, const Json& expect)
{
    Program program;
    Function& function = program.functions.emplace_back();
    function.name = "main";
    Builder builder(function);
    std::vector<ValueId> arguments;
    for (const char* name : {"a", "b"}) {
        const auto devices = input.at(std::string(name) + "_devices").get<std::vector<DeviceId>>();
        const auto mesh = Mesh::create({{"x", static_cast<std::int64_t>(devices.size())}}, devices);
        if (!mesh)
            return failed(describe(mesh.error()));
        TensorSharding sharding = valueOf(toTensorSharding(PartitionSpec{{{"x"}}}, 1, *mesh));
        sharding.mesh = static_cast<std::int32_t>(program.meshes.size());
        program.meshes.push_back({name, *mesh});
        arguments.push_back(builder.argument({DType::F32, {mesh->deviceCount()}}, name));
        function[arguments.back()].sharding = sharding;
    }
    builder.setResults({builder.binary(OpKind::Add, arguments[0], arguments[1])});
    const auto partitioned = propagateAndPartition(program);
    return checkProblem(partitioned ? Problems() : partitioned.error(), expect);
}

Outcome runShardyMesh(const Json& input, const Json& expect)
{
    return checkProblem(
        problemsOf("sdy.mesh @mesh = " + meshText(input.at("mesh")) + "\nfunc.func @main() {\n  return\n}\n"), expect);
}

Outcome runShardy(const Json& input, const Json& expect)
{
    std::string module;
    for (const auto& [name, json] : input.at("meshes").items())
        module += fmt::format("sdy.mesh @{} = {}\n", name, meshText(json));
    module += fmt::format("func.func @main(%x: tensor<{}f32> {{sdy.sharding = #sdy.sharding<@{}, {}>}}) {{\n  return\n}}\n",
        input.at("shape").empty() ? "" : fmt::format("{}x", fmt::join(input.at("shape").get<Shape>(), "x")),
        input.at("mesh").get<std::string>(), input.at("sdy").get<std::string>());
    return checkProblem(problemsOf(module), expect);
}

Outcome runDeviceMesh(const Json& input, const Json& expect)
{
    if (!input.contains("topology")) { // what is not a number is none in a mesh's text either
        std::vector<std::string> axes;
        for (const Json& size : input.at("mesh_shape"))
            axes.push_back(fmt::format("x{}={}", axes.size(), size.dump()));
        const auto mesh = parseMesh(fmt::format("{}", fmt::join(axes, ",")));
        return checkProblem(mesh ? Problems() : mesh.error(), expect);
    }
    const auto devices = tpuDevices(DeviceKind::TpuV4, input.at("topology").get<Shape>());
    if (!devices)
        return failed(describe(devices.error()));
    const auto mesh = createDeviceMesh(
        input.at("mesh_shape").get<Shape>(), DeviceKind::TpuV4, *devices, {input.value("contiguous_submeshes", false), false});
    return checkProblem(mesh ? Problems() : mesh.error(), expect);
}

/// The arguments of XLA's iota tile assignment as the text that they would print.
Outcome runIotaTile(const Json& input, const Json& expect)
{
    const Shape dims = input.at("dims").get<Shape>();
    const Shape reshape = input.value("reshape", Shape());
    const auto perm = input.value("perm", std::vector<std::size_t>());
    std::int64_t devices = 1;
    for (const std::int64_t size : dims)
        devices *= size;
    std::string text = fmt::format("{{devices=[{}]<=[{}]", fmt::join(dims, ","),
        reshape.empty() ? std::to_string(devices) : fmt::format("{}", fmt::join(reshape, ",")));
    if (!perm.empty())
        text += fmt::format("T({})", fmt::join(perm, ","));
    if (input.contains("subgroups"))
        text += fmt::format(" last_tile_dims={{{}}}", fmt::join(input.at("subgroups").get<std::vector<std::string>>(), ", "));
    const auto tiles = parseTileSharding(text + "}");
    return checkProblem(tiles ? Problems() : tiles.error(), expect);
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
        return unsupported("arrays are put together from pieces while Python runs: no study and no program says it");
    if (check == "collective")
        return unsupported("jax.lax.ppermute is refused while Python traces: a program has its pairs of devices only");
    if (check == "combine")
        return runCombine(input, expect);
    if (check == "sdy_mesh")
        return runShardyMesh(input, expect);
    if (check == "sdy_sharding")
        return runShardy(input, expect);
    if (check == "iota_tile")
        return runIotaTile(input, expect);
    if (check == "create_device_mesh")
        return runDeviceMesh(input, expect);
    return failed("unknown check " + check);
}

} // namespace

void TestGoldenErrors::cases()
{
    settleCase(m_file, run);
}

MESHWRIGHT_TEST(TestGoldenErrors)

} // namespace tst_golden_errors

#include "tst_golden_errors.moc"
