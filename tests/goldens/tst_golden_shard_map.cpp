// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/goldens/golden_runner.h"

#include "core/partition/partition.h"
#include "core/program/body_collective.h"
#include "core/program/verify.h"
#include "core/runtime/evaluate.h"
#include "core/runtime/executor.h"
#include "core/text/program_text.h"
#include "tests/run_on_devices.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <map>

namespace tst_golden_shard_map {

using namespace meshwright;
using namespace meshwright::goldens;

class TestGoldenShardMap : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases();
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"shard_map.json"};
};

namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

/// Where a case does not state the type it is one that holds the whole numbers of the answers exactly.
TensorType typeOf(const Json& array)
{
    return {parseDType(array.value("dtype", "f64")).value(), array.at("shape").get<Shape>()};
}

HostArray dataOf(const Json& input)
{
    const TensorType type = typeOf(input);
    std::vector<double> values;
    if (input.contains("data"))
        values = input.at("data").get<std::vector<double>>();
    for (std::int64_t i = 0; !input.contains("data") && i < type.elements(); ++i)
        values.push_back(static_cast<double>(i));
    return HostArray::of(type, values);
}

/// Writes the body of a case as JAX lowers it.
class BodyBuilder {
public:
    BodyBuilder(Builder& builder, const Mesh& mesh)
        : m_builder(builder)
        , m_mesh(mesh)
    {
    }

    void define(const std::string& name, ValueId value) { m_values[name] = value; }
    ValueId at(const std::string& name) const { return m_values.at(name); }

    /// False for an op that is not known.
    bool add(const Json& op)
    {
        m_op = &op;
        const auto name = op.at("op").get<std::string>();
        static const std::map<std::string, ValueId (BodyBuilder::*)()> kMakers
            = {{"psum", &BodyBuilder::psum}, {"all_gather", &BodyBuilder::allGather}, {"psum_scatter", &BodyBuilder::psumScatter},
                {"ppermute", &BodyBuilder::ppermute}, {"all_to_all", &BodyBuilder::allToAll}, {"matmul", &BodyBuilder::matmul},
                {"axis_index", &BodyBuilder::axisIndex}};
        const auto maker = kMakers.find(name);
        if (maker == kMakers.end())
            return false;
        define(op.at("out").get<std::string>(), (this->*maker->second)());
        return true;
    }

private:
    ValueId operand(std::size_t index = 0) const { return at(m_op->at("in").at(index).get<std::string>()); }
    const Shape& shapeOf(ValueId value) const { return m_builder.type(value).shape; }
    bool isTiled() const { return m_op->value("tiled", false); }

    std::size_t dim(const char* key, std::size_t rank) const
    {
        const auto given = m_op->at(key).get<std::int64_t>();
        return static_cast<std::size_t>(given < 0 ? given + static_cast<std::int64_t>(rank) : given);
    }

    /// The groups along the axes taken as one, or those that the case lists of each of these.
    Groups groups() const
    {
        AxisRefs axes;
        for (const auto& name : m_op->at("axes").get<std::vector<std::string>>())
            axes.push_back(wholeAxis(m_mesh, m_mesh.findAxis(name).value()));
        Groups along = deviceGroups(axes, m_mesh);
        if (!m_op->contains("groups") || m_op->at("groups").is_null())
            return along;
        Groups listed;
        for (const std::vector<std::int64_t>& whole : along) {
            for (const auto& group : m_op->at("groups").get<Groups>()) {
                listed.emplace_back();
                for (const std::int64_t place : group)
                    listed.back().push_back(whole.at(static_cast<std::size_t>(place)));
            }
        }
        return listed;
    }

    ValueId exchange(OpKind kind, ValueId value, std::size_t split = 0, std::size_t join = 0)
    {
        BodyCollective collective;
        collective.kind = kind;
        collective.split = split;
        collective.join = join;
        collective.groups = groups();
        return addBodyCollective(m_builder, collective, value, m_mesh);
    }

    ValueId withDim(ValueId value, std::size_t at)
    {
        Shape shape = shapeOf(value);
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), 1);
        return m_builder.reshape(value, shape);
    }

    ValueId withoutDim(ValueId value, std::size_t at)
    {
        Shape shape = shapeOf(value);
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
        return m_builder.reshape(value, shape);
    }

    ValueId psum() { return exchange(OpKind::AllReduce, operand()); }

    ValueId allGather()
    {
        const std::size_t rank = shapeOf(operand()).size();
        const std::size_t at = dim("dim", isTiled() ? rank : rank + 1);
        return exchange(OpKind::AllGather, isTiled() ? operand() : withDim(operand(), at), 0, at);
    }

    ValueId psumScatter()
    {
        const std::size_t at = dim("dim", shapeOf(operand()).size());
        const ValueId scattered = exchange(OpKind::ReduceScatter, operand(), at);
        return isTiled() ? scattered : withoutDim(scattered, at);
    }

    ValueId ppermute()
    {
        BodyCollective collective;
        collective.kind = OpKind::CollectivePermute;
        collective.sources.assign(static_cast<std::size_t>(m_mesh.deviceCount()), -1);
        for (const std::vector<std::int64_t>& group : groups()) {
            for (const auto& pair : m_op->at("perm").get<Groups>())
                collective.sources[static_cast<std::size_t>(group.at(static_cast<std::size_t>(pair.at(1))))]
                    = group.at(static_cast<std::size_t>(pair.at(0)));
        }
        return addBodyCollective(m_builder, collective, operand(), m_mesh);
    }

    ValueId allToAll()
    {
        const std::size_t rank = shapeOf(operand()).size();
        std::size_t split = dim("split_dim", rank);
        std::size_t join = dim("concat_dim", rank);
        if (isTiled() || split == join)
            return exchange(OpKind::AllToAll, operand(), split, join);
        join += split < join ? 1 : 0; // it counts the dimensions that are left
        split += join < split ? 1 : 0;
        return withoutDim(exchange(OpKind::AllToAll, withDim(operand(), join), split, join), split);
    }

    ValueId matmul() { return m_builder.matmul(operand(0), operand(1), m_builder.type(operand(0)).dtype); }
    ValueId axisIndex() { return addPlaceInGroup(m_builder, groups(), m_mesh); }

    Builder& m_builder;
    const Mesh& m_mesh;
    const Json* m_op = nullptr;
    std::map<std::string, ValueId> m_values;
};

struct Case {
    Program program;
    std::vector<HostArray> arguments;
    std::string unknownOp;
};

/// A function of the inputs that gives the outputs, and then for each of them what every device has, one row a device.
Case read(const Json& golden)
{
    Case made;
    made.program.meshes.push_back({"mesh", valueOf(goldens::meshOf(golden.at("mesh")))});
    const Mesh& mesh = made.program.meshes.front().mesh;
    Function& function = made.program.functions.emplace_back();
    function.name = "main";
    Builder b(function);
    ComputationAttributes computation;
    AxisRefs all;
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        computation.manualAxes.push_back(static_cast<std::int32_t>(axis));
        all.push_back(wholeAxis(mesh, axis));
    }
    std::vector<ValueId> operands;
    std::vector<TensorType> pieces;
    for (const Json& input : golden.at("inputs")) {
        made.arguments.push_back(dataOf(input));
        const TensorType& type = made.arguments.back().type();
        operands.push_back(b.argument(type, input.at("name").get<std::string>()));
        computation.inShardings.push_back(valueOf(toTensorSharding(specOf(input.at("in_spec")), type.shape.size(), mesh)));
        pieces.push_back({type.dtype, localShape(type.shape, computation.inShardings.back())});
    }
    const OpId manual = b.beginOp(OpKind::Computation, operands, {});
    const std::vector<ValueId> arguments = b.beginBody(manual, pieces);
    BodyBuilder body(b, mesh);
    for (std::size_t i = 0; i < arguments.size(); ++i)
        body.define(golden.at("inputs").at(i).at("name").get<std::string>(), arguments[i]);
    for (const Json& op : golden.at("body")) {
        if (!body.add(op)) {
            made.unknownOp = op.at("op").get<std::string>();
            return made;
        }
    }
    std::vector<ValueId> yields;
    std::vector<TensorType> results;
    const auto yield = [&](ValueId value, TensorSharding sharding) {
        TensorType type = b.type(value);
        for (std::size_t dim = 0; dim < type.shape.size(); ++dim)
            type.shape[dim] *= shardCount(sharding.dims[dim].axes);
        yields.push_back(value);
        results.push_back(std::move(type));
        computation.outShardings.push_back(std::move(sharding));
    };
    for (const Json& output : golden.at("expect").at("outputs")) {
        const ValueId value = body.at(output.at("name").get<std::string>());
        const Shape shape = b.type(value).shape;
        yield(value, valueOf(toTensorSharding(specOf(output.at("out_spec")), shape.size(), mesh)));
    }
    for (const Json& output : golden.at("expect").at("outputs")) {
        const ValueId value = body.at(output.at("name").get<std::string>());
        Shape row = b.type(value).shape;
        row.insert(row.begin(), 1);
        TensorSharding spread = TensorSharding::replicatedOf(row.size());
        spread.dims.front().axes = all;
        yield(b.add(OpKind::Reshape, {value}, ReshapeAttributes{row}), std::move(spread));
    }
    b.setResults(yields);
    const std::vector<ValueId> whole = b.endOp(manual, results);
    function[manual].attributes = std::move(computation);
    b.setResults(whole);
    return made;
}

/// The results against the case: the whole arrays, their pieces' shape, and what each device has.
Outcome compare(const std::string& how, const Json& golden, const Mesh& mesh, const std::vector<HostArray>& results)
{
    const Json& outputs = golden.at("expect").at("outputs");
    std::vector<Outcome> outcomes;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Json& output = outputs[i];
        const std::string what = how + ", " + output.at("name").get<std::string>();
        const HostArray& rows = results[outputs.size() + i];
        outcomes.push_back(same(what + " shape", results[i].type().shape, output.at("shape").get<Shape>()));
        if (output.contains("data"))
            outcomes.push_back(same(what, results[i].values(), output.at("data").get<std::vector<double>>()));
        if (output.contains("shard_shape"))
            outcomes.push_back(same(what + " shard shape", Shape(rows.type().shape.begin() + 1, rows.type().shape.end()),
                output.at("shard_shape").get<Shape>()));
        const Json shards = output.value("shards", Json::object());
        for (const auto& [device, data] : shards.items()) {
            for (std::int64_t position = 0; position < mesh.deviceCount(); ++position) {
                if (std::to_string(mesh.deviceAt(position)) != device)
                    continue;
                IndexBox row = wholeBox(rows.type().shape);
                row.front() = {position, position + 1};
                outcomes.push_back(same(what + " on " + device, rows.slice(row).values(), data.get<std::vector<double>>()));
            }
        }
    }
    return all(outcomes);
}

Outcome run(const Json& golden)
{
    const Case made = read(golden);
    if (!made.unknownOp.empty())
        return unsupported("there is no op " + made.unknownOp);
    const Function& function = made.program.functions.front();
    if (const Problems problems = verify(made.program); !problems.empty())
        return failed(describe(problems));
    const Mesh& mesh = made.program.meshes.front().mesh;
    const auto reference = evaluate(function, made.arguments, {.meshes = made.program.meshes});
    if (!reference)
        return failed(describe(reference.error()));
    const auto reread = readProgram(writeProgram(made.program), "case.mlir");
    if (!reread)
        return failed(describe(reread.error()));
    const auto sharded = tests::runOnDevices(*reread, made.arguments);
    if (!sharded)
        return failed(describe(sharded.error()));
    return all({compare("on one thread", golden, mesh, *reference), compare("on devices", golden, mesh, sharded->results)});
}

} // namespace

void TestGoldenShardMap::cases()
{
    settleCase(m_file, run);
}

MESHWRIGHT_TEST(TestGoldenShardMap)

} // namespace tst_golden_shard_map

#include "tst_golden_shard_map.moc"
