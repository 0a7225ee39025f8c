// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/gradient_function.h"
#include "core/autodiff/varying.h"
#include "core/partition/partition.h"
#include "core/program/body_collective.h"
#include "core/runtime/executor.h"
#include "core/support/file.h"
#include "tests/gradient_check.h"
#include "tests/manual_programs.h"
#include "tests/run_on_devices.h"
#include "tests/runtime_test.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <numeric>
#include <random>

namespace tst_manual {

using namespace meshwright;
using namespace meshwright::test;

namespace {

using tests::Array;
using tests::ManualProgram;

Program programOf(const std::string& text)
{
    auto program = readProgram(text, "program.mlir");
    if (!program)
        qFatal("%s\n%s", text.c_str(), describe(program.error()).c_str());
    if (const Problems problems = verify(*program); !problems.empty())
        qFatal("%s", describe(problems).c_str());
    return *std::move(program);
}

QStringList collectives(const DeviceFunction& device, const Mesh& mesh)
{
    QStringList lines;
    for (const CollectiveUse& use : collectivesOf(device, mesh))
        lines << QString("%1 %2").arg(opName(use.kind), QString::fromStdString(use.axes));
    lines.sort();
    return lines;
}

QStringList sorted(const std::vector<std::string>& lines)
{
    QStringList list;
    for (const std::string& line : lines)
        list << QString::fromStdString(line);
    list.sort();
    return list;
}

/// What a function gave on devices, and how.
struct Ran {
    std::vector<HostArray> results;
    QStringList collectives;
    bool replicasAgree = true;
};

Result<Ran> runOnDevices(const Function& function, const std::vector<NamedMesh>& meshes, const std::vector<HostArray>& arguments)
{
    Program program;
    program.meshes = meshes;
    program.functions = {function};
    auto run = tests::runOnDevices(std::move(program), arguments);
    if (!run)
        return run.error();
    return Ran{std::move(run->results), collectives(run->stage.functions.front(), run->stage.mesh()), run->replicasAgree};
}

std::vector<HostArray> argumentsOf(const Function& function)
{
    std::vector<HostArray> arguments;
    for (std::size_t i = 0; i < function.arguments().size(); ++i)
        arguments.push_back(randomArray(function[function.arguments()[i]].type, i + 1));
    return arguments;
}

Array plain(const HostArray& array)
{
    return {array.type().shape, array.values()};
}

/// The program's meaning in double precision.
std::vector<Array> evaluateWide(
    const Function& function, const std::vector<NamedMesh>& meshes, const std::vector<Array>& arguments)
{
    std::vector<HostArray> inputs;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const DType dtype = function[function.arguments()[i]].type.dtype;
        inputs.push_back(HostArray::of({isFloating(dtype) ? DType::F64 : dtype, arguments[i].shape}, arguments[i].data));
    }
    const auto results = evaluate(function, inputs, {.inDouble = true, .meshes = meshes});
    if (!results)
        qFatal("%s", describe(results.error()).c_str());
    std::vector<Array> outputs;
    for (const HostArray& result : *results)
        outputs.push_back(plain(result));
    return outputs;
}

/// A manual computation by the plain evaluator, device by device and op by op; collectives are written out here once more.
class Oracle {
public:
    Oracle(const Function& function, const Mesh& mesh)
        : m_function(function)
        , m_mesh(mesh)
        , m_values(static_cast<std::size_t>(mesh.deviceCount()))
    {
    }

    /// Nothing for a body with loops.
    std::optional<std::vector<Array>> run(const std::vector<HostArray>& arguments)
    {
        const Op& op = m_function[m_function.body().ops.front()];
        const auto& computation = op.as<ComputationAttributes>();
        const Block& body = m_function[op.bodies.front()];
        for (std::size_t p = 0; p < m_values.size(); ++p) {
            m_values[p].resize(m_function.values.size());
            for (std::size_t i = 0; i < arguments.size(); ++i)
                m_values[p][body.arguments[i].at()] = plain(
                    arguments[i].slice(box(arguments[i].type().shape, computation.inShardings[i], computation.manualAxes, p)));
        }
        for (const OpId id : body.ops) {
            if (m_function[id].kind == OpKind::Repeat)
                return std::nullopt;
            step(id);
        }
        std::vector<Array> results;
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            HostArray whole({DType::F64, m_function[op.results[i]].type.shape});
            for (std::size_t p = 0; p < m_values.size(); ++p) {
                const Array& piece = m_values[p][body.results[i].at()];
                whole.assign(box(whole.type().shape, computation.outShardings[i], computation.manualAxes, p),
                    HostArray::of({DType::F64, piece.shape}, piece.data));
            }
            results.push_back(plain(whole));
        }
        return results;
    }

private:
    IndexBox box(const Shape& shape, TensorSharding sharding, const std::vector<std::int32_t>& manual, std::size_t p) const
    {
        for (DimSharding& dim : sharding.dims)
            std::erase_if(
                dim.axes, [&](const AxisRef& a) { return std::find(manual.begin(), manual.end(), a.axis) == manual.end(); });
        return shardBox(shape, sharding, m_mesh, static_cast<std::int64_t>(p));
    }

    void step(OpId id)
    {
        const Op& op = m_function[id];
        if (isBodyCollective(op))
            return exchange(op);
        for (std::size_t p = 0; p < m_values.size(); ++p) {
            if (isPartitionId(op)) {
                m_values[p][op.results.front().at()] = {{}, {static_cast<double>(m_mesh.deviceAt(static_cast<std::int64_t>(p)))}};
                continue;
            }
            Function alone;
            Builder builder(alone);
            std::vector<ValueId> mapping(m_function.values.size());
            std::vector<Array> operands;
            for (const ValueId operand : op.operands) {
                if (!mapping[operand.at()].valid()) {
                    mapping[operand.at()] = builder.argument(m_function[operand].type);
                    operands.push_back(m_values[p][operand.at()]);
                }
            }
            copyOp(builder, m_function, id, mapping);
            builder.setResults({mapping[op.results.front().at()]});
            m_values[p][op.results.front().at()] = tests::evaluatePlainly(alone, operands).front();
        }
    }

    /// Every element of every device's result, looked up where it comes from.
    void exchange(const Op& op)
    {
        const BodyCollective c = valueOf(bodyCollective(m_function, op, m_mesh));
        const Shape shape = m_function[op.results.front()].type.shape;
        const auto held
            = [&](std::int64_t p) -> const Array& { return m_values[static_cast<std::size_t>(p)][op.operands.front().at()]; };
        for (std::int64_t p = 0; p < m_mesh.deviceCount(); ++p) {
            Array made{shape, std::vector<double>(static_cast<std::size_t>(elementCount(shape)), 0.0)};
            for (std::int64_t flat = 0; flat < elementCount(shape); ++flat) {
                double& element = made.data[static_cast<std::size_t>(flat)];
                Shape index = indexOf(shape, flat);
                if (c.kind == OpKind::CollectivePermute) {
                    const std::int64_t source = c.sources[static_cast<std::size_t>(p)];
                    element = source < 0 ? 0.0 : held(source).data[static_cast<std::size_t>(flat)];
                    continue;
                }
                const auto& group = *std::find_if(
                    c.groups.begin(), c.groups.end(), [p](const auto& g) { return std::find(g.begin(), g.end(), p) != g.end(); });
                const std::int64_t place = std::find(group.begin(), group.end(), p) - group.begin();
                const Shape& from = held(p).shape;
                if (c.kind == OpKind::AllReduce || c.kind == OpKind::ReduceScatter) {
                    if (c.kind == OpKind::ReduceScatter)
                        index[c.split] += place * shape[c.split];
                    std::vector<double> each;
                    for (const std::int64_t member : group)
                        each.push_back(held(member).data[static_cast<std::size_t>(flatOf(from, index))]);
                    element = c.reduction == ReduceKind::Max ? *std::max_element(each.begin(), each.end())
                        : c.reduction == ReduceKind::Min     ? *std::min_element(each.begin(), each.end())
                                                             : std::accumulate(each.begin(), each.end(), 0.0);
                    continue;
                }
                const std::int64_t members = static_cast<std::int64_t>(group.size());
                const std::int64_t part = shape[c.join] / members;
                const std::int64_t giver = index[c.join] / part;
                index[c.join] %= part;
                if (c.kind == OpKind::AllToAll)
                    index[c.split] += place * (from[c.split] / members);
                element = held(group[static_cast<std::size_t>(giver)]).data[static_cast<std::size_t>(flatOf(from, index))];
            }
            m_values[static_cast<std::size_t>(p)][op.results.front().at()] = std::move(made);
        }
    }

    const Function& m_function;
    const Mesh& m_mesh;
    std::vector<std::vector<Array>> m_values; ///< by position, by value
};

std::vector<std::size_t> indices(std::size_t count)
{
    std::vector<std::size_t> all(count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
}

/// Linear bodies of random collectives over random axes and groups, on whole numbers.
class RandomBody {
public:
    explicit RandomBody(std::uint64_t seed)
        : m_random(seed)
    {
        std::vector<MeshAxis> axes;
        for (std::int64_t i = 0; i < pick(1, 3); ++i)
            axes.push_back({std::string(1, static_cast<char>('x' + i)), pick(2, 3)});
        m_program.meshes.push_back({"mesh", valueOf(Mesh::create(axes, {}))});
    }

    Program make()
    {
        const Mesh& mesh = m_program.meshes.front().mesh;
        Function& function = m_program.functions.emplace_back();
        function.name = "main";
        Builder b(function);
        ComputationAttributes computation;
        for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis)
            computation.manualAxes.push_back(static_cast<std::int32_t>(axis));
        std::vector<ValueId> operands;
        std::vector<TensorType> pieces(2, TensorType{DType::F64, {6, 4}});
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            TensorSharding sharding = TensorSharding::replicatedOf(2);
            for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
                if (pick(0, 2) > 0)
                    sharding.dims[static_cast<std::size_t>(pick(0, 1))].axes.push_back(wholeAxis(mesh, axis));
            }
            operands.push_back(b.argument({DType::F64, wholeShape(pieces[i].shape, sharding)}, i == 0 ? "u" : "v"));
            computation.inShardings.push_back(std::move(sharding));
        }
        const OpId op = b.beginOp(OpKind::Computation, operands, computation);
        std::vector<ValueId> values = b.beginBody(op, pieces);
        for (int i = 0; i < 6; ++i)
            values.push_back(step(b, values, mesh));
        const std::vector<ValueId> results{values.back(), values[values.size() - 3]};
        b.setResults(results);
        const auto varying = varyingAxes(function, op, mesh);
        std::vector<TensorType> types;
        for (const ValueId result : results) {
            TensorSharding sharding = TensorSharding::replicatedOf(2);
            for (const std::int32_t axis : varying[result.at()])
                sharding.dims.front().axes.push_back(wholeAxis(mesh, static_cast<std::size_t>(axis)));
            types.push_back({DType::F64, wholeShape(b.type(result).shape, sharding)});
            computation.outShardings.push_back(std::move(sharding));
        }
        function[op].attributes = std::move(computation);
        b.setResults(b.endOp(op, types));
        return m_program;
    }

private:
    std::int64_t pick(std::int64_t low, std::int64_t high)
    {
        return low + static_cast<std::int64_t>(m_random() % static_cast<std::uint64_t>(high - low + 1));
    }

    static Shape wholeShape(Shape shape, const TensorSharding& sharding)
    {
        for (std::size_t dim = 0; dim < shape.size(); ++dim)
            shape[dim] *= shardCount(sharding.dims[dim].axes);
        return shape;
    }

    /// Groups over some axes in some order, or any groups of one size.
    std::vector<std::vector<std::int64_t>> groups(const Mesh& mesh)
    {
        if (pick(0, 3) > 0) {
            AxisRefs axes;
            for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
                if (axes.empty() || pick(0, 1) == 0)
                    axes.insert(axes.begin() + pick(0, static_cast<std::int64_t>(axes.size())), wholeAxis(mesh, axis));
            }
            return deviceGroups(axes, mesh);
        }
        std::vector<std::int64_t> order(static_cast<std::size_t>(mesh.deviceCount()));
        std::iota(order.begin(), order.end(), std::int64_t{0});
        std::shuffle(order.begin(), order.end(), m_random);
        const auto size = static_cast<std::size_t>(mesh.axes().front().size);
        std::vector<std::vector<std::int64_t>> made;
        for (std::size_t at = 0; at < order.size(); at += size)
            made.emplace_back(
                order.begin() + static_cast<std::ptrdiff_t>(at), order.begin() + static_cast<std::ptrdiff_t>(at + size));
        return made;
    }

    ValueId step(Builder& b, const std::vector<ValueId>& values, const Mesh& mesh)
    {
        const auto any = [&] { return values[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(values.size()) - 1))]; };
        const ValueId a = pick(0, 1) == 0 ? values.back() : any();
        BodyCollective collective;
        collective.split = static_cast<std::size_t>(pick(0, 1));
        collective.join = static_cast<std::size_t>(pick(0, 1));
        collective.groups = groups(mesh);
        const bool divides = b.type(a).shape[collective.split] % collective.groupSize() == 0;
        switch (pick(0, 6)) {
        case 0:
            collective.kind = OpKind::AllReduce;
            break;
        case 1:
            if (b.type(a).elements() * collective.groupSize() > 2000)
                return b.unary(OpKind::Negate, a);
            collective.kind = OpKind::AllGather;
            break;
        case 2:
        case 3:
            if (!divides)
                return b.binary(OpKind::Multiply, a, b.splat(TensorType(b.type(a)), 2.0));
            collective.kind = pick(0, 1) == 0 ? OpKind::ReduceScatter : OpKind::AllToAll;
            break;
        case 4: {
            collective.kind = OpKind::CollectivePermute;
            collective.groups.clear();
            std::vector<std::int64_t> order(static_cast<std::size_t>(mesh.deviceCount()));
            std::iota(order.begin(), order.end(), std::int64_t{0});
            std::shuffle(order.begin(), order.end(), m_random);
            for (std::int64_t& source : order)
                source = pick(0, 4) == 0 ? -1 : source;
            collective.sources = std::move(order);
            break;
        }
        default: {
            const ValueId other = any();
            return b.type(other) == b.type(a) ? b.binary(OpKind::Add, a, other) : b.unary(OpKind::Negate, a);
        }
        }
        return addBodyCollective(b, collective, a, mesh);
    }

    std::mt19937_64 m_random;
    Program m_program;
};

std::vector<HostArray> wholeNumbers(const Function& function, const std::vector<ValueId>& values, std::uint64_t seed)
{
    std::vector<HostArray> arrays;
    for (const ValueId value : values) {
        std::vector<double> data = numbers(function[value].type.elements(), seed++);
        for (double& each : data)
            each = std::round(each * 2.0);
        arrays.push_back(HostArray::of(function[value].type, data));
    }
    return arrays;
}

/// The product of two matrices of the types of a function's arguments.
Function plainProduct(const Function& like)
{
    Function function;
    Builder b(function);
    const ValueId x = b.argument(like[like.arguments()[0]].type);
    const ValueId w = b.argument(like[like.arguments()[1]].type);
    b.setResults({b.matmul(x, w, DType::F32)});
    return function;
}

double inner(std::span<const HostArray> a, std::span<const HostArray> b)
{
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const std::vector<double> x = a[i].values();
        const std::vector<double> y = b[i].values();
        sum += std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
    }
    return sum;
}

} // namespace

/// Manual computations (shard_map): what they mean, on devices, and their derivatives.
class TestManual : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void runs_data() { addRows(); }
    void runs();
    void derivatives_data() { addRows(); }
    void derivatives();
    void problems_data();
    void problems();
    void reductions_data();
    void reductions();
    void programsOnShardsAreWritten_data() { addRows(); }
    void programsOnShardsAreWritten();
    void randomBodies();
    void nested();
    void nestedDerivatives_data();
    void nestedDerivatives();
    void beforeShardy();
    void namedComputationsAreDifferentiated();
    void needsMeshes();

private:
    static void addRows();
    static const ManualProgram& current();
};

void TestManual::addRows()
{
    QTest::addColumn<int>("index");
    const auto programs = tests::manualPrograms();
    for (std::size_t i = 0; i < programs.size(); ++i)
        QTest::newRow(programs[i].name.c_str()) << static_cast<int>(i);
}

const ManualProgram& TestManual::current()
{
    static const auto kPrograms = tests::manualPrograms();
    return kPrograms[static_cast<std::size_t>(*static_cast<int*>(QTest::qData("index", QMetaType::Int)))];
}

void TestManual::runs()
{
    const ManualProgram& row = current();
    const Program program = programOf(row.text());
    const Function& function = program.functions.front();
    const std::vector<HostArray> arguments = argumentsOf(function);
    const auto reference = evaluate(function, arguments, {.meshes = program.meshes});
    QVERIFY2(reference, problemsText(reference ? Problems() : reference.error()).c_str());
    const auto ran = runOnDevices(function, program.meshes, arguments);
    QVERIFY2(ran, problemsText(ran ? Problems() : ran.error()).c_str());
    QCOMPARE(ran->collectives, sorted(row.collectives));
    QVERIFY(ran->replicasAgree);
    const auto oracle = Oracle(function, program.meshes.front().mesh).run(arguments);
    for (std::size_t i = 0; i < reference->size(); ++i) {
        QVERIFY2(difference(ran->results[i], (*reference)[i].values(), 1e-5).empty(),
            difference(ran->results[i], (*reference)[i].values(), 1e-5).c_str());
        if (oracle)
            QCOMPARE(difference((*reference)[i], (*oracle)[i].data, 1e-5), std::string());
    }
    // Written and read again it is the same program.
    const Program again = programOf(writeProgram(program));
    QCOMPARE(writeProgram(again), writeProgram(program));
}

void TestManual::derivatives()
{
    const ManualProgram& row = current();
    const Program program = programOf(row.text());
    const Function& function = program.functions.front();
    const auto evaluator = [&](const Function& f, const std::vector<Array>& a) { return evaluateWide(f, program.meshes, a); };
    std::vector<Array> arguments;
    for (const HostArray& argument : argumentsOf(function))
        arguments.push_back(plain(argument));
    const std::vector<std::size_t> wrt = indices(arguments.size());
    const std::vector<std::size_t> seeds = indices(function.results().size());
    QCOMPARE(tests::gradientFault(function, arguments, wrt, seeds, 2e-6, program.meshes, evaluator), QString());

    // The two programs on devices.
    const auto derivative = differentiate(function, wrt, seeds, {}, program.meshes);
    const std::vector<HostArray> given = argumentsOf(function);
    const auto forward = runOnDevices(derivative->forward, program.meshes, given);
    QVERIFY2(forward, problemsText(forward ? Problems() : forward.error()).c_str());
    std::vector<HostArray> inputs(
        forward->results.begin() + static_cast<std::ptrdiff_t>(function.results().size()), forward->results.end());
    std::vector<Array> cotangents;
    for (const std::size_t seed : seeds) {
        inputs.push_back(randomArray(function[function.results()[seed]].type, 77 + seed));
        cotangents.push_back(plain(inputs.back()));
    }
    const auto backward = runOnDevices(derivative->backward, program.meshes, inputs);
    QVERIFY2(backward, problemsText(backward ? Problems() : backward.error()).c_str());
    QVERIFY(backward->replicasAgree);
    const std::vector<Array> expected = tests::gradientsOf(*derivative, arguments, cotangents, evaluator);
    for (std::size_t i = 0; i < expected.size(); ++i)
        QCOMPARE(difference(backward->results[i], expected[i].data, 1e-4), std::string());
    QCOMPARE(backward->collectives, sorted(row.gradient));
    // As text they are read again.
    for (const Function* each : {&derivative->forward, &derivative->backward}) {
        Program written{program};
        written.functions = {*each};
        QCOMPARE(writeProgram(programOf(writeProgram(written))), writeProgram(written));
    }
}

void TestManual::problems_data()
{
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("said");

    QTest::newRow("an unknown device") << "[[0, 2], [1, 3]]"
                                       << "[[0, 2], [1, 4]]"
                                       << "MW1260"
                                       << "unknown device 4";
    QTest::newRow("a device twice") << "[[0, 2], [1, 3]]"
                                    << "[[0, 2], [1, 2]]"
                                    << "MW1260"
                                    << "device 2 is in the groups twice";
    QTest::newRow("a device missing") << "dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>"
                                      << "dense<[[0, 2]]> : tensor<1x2xi64>"
                                      << "MW1260"
                                      << "device 1 is in no group";
    QTest::newRow("groups of two sizes") << "dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>"
                                         << "dense<[[0, 1, 2], [3, -1, -1]]> : tensor<2x3xi64>"
                                         << "MW1261"
                                         << "differ in size";
    QTest::newRow("groups of another size") << "dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>"
                                            << "dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
                                            << "MW1261"
                                            << "groups of 4 devices do not make f32[4,6] of f32[2,6]";
    QTest::newRow("no groups") << "replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, "
                               << ""
                               << "MW1261"
                               << "has no replica_groups";
    QTest::newRow("groups of another form") << "dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>"
                                            << "array<i64: 0, 1>"
                                            << "MW1261"
                                            << "not a list of groups";
    QTest::newRow("along an automatic axis") << "manual_axes={\"data\", \"model\"}"
                                             << "manual_axes={\"data\"}"
                                             << ""
                                             << "";
    QTest::newRow("along another axis than the manual one") << "[[0, 2], [1, 3]]"
                                                            << "[[0, 1], [2, 3]]"
                                                            << "MW1262"
                                                            << "moves data along model, which is not one of its manual axes data";
}

void TestManual::problems()
{
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(QString, id);
    QFETCH(QString, said);
    ManualProgram row = tests::manualPrograms().front();
    if (id == "MW1262")
        row.axes = R"({"data"})";
    QString text = QString::fromStdString(row.text());
    QVERIFY(text.contains(from));
    const Program program = programOf(text.replace(from, to).toStdString());
    const Function& function = program.functions.front();
    const auto ran = runOnDevices(function, program.meshes, argumentsOf(function));
    const auto evaluated = evaluate(function, argumentsOf(function), {.meshes = program.meshes});
    if (id.isEmpty()) {
        QVERIFY(ran && evaluated);
        return;
    }
    for (const Problems& problems : {ran ? Problems() : ran.error(), evaluated ? Problems() : evaluated.error()}) {
        QCOMPARE(problems.size(), std::size_t{1});
        QCOMPARE(QString::fromStdString(problems.front().id), id);
        QVERIFY2(QString::fromStdString(problems.front().message).contains(said), problems.front().message.c_str());
    }
}

void TestManual::reductions_data()
{
    QTest::addColumn<QString>("combiner");
    QTest::addColumn<QString>("type");
    for (const char* type : {"f32", "f64", "bf16", "i32", "ui32", "i64", "i8"}) {
        for (const char* combiner : {"add", "maximum", "minimum", "multiply"})
            QTest::newRow(qPrintable(QString("%1 %2").arg(combiner, type))) << combiner << type;
    }
    for (const char* type : {"i1", "i32"}) {
        for (const char* combiner : {"and", "or"})
            QTest::newRow(qPrintable(QString("%1 %2").arg(combiner, type))) << combiner << type;
    }
}

void TestManual::reductions()
{
    QFETCH(QString, combiner);
    QFETCH(QString, type);
    const std::string t = type.toStdString();
    const ManualProgram row{"reduce", R"(["x"=4])", R"({"x"})", {{"x", "12x" + t, "3x" + t, R"([{"x"}])"}},
        tests::allReduce("%1", "%l.x", "3x" + t, "[[2, 0, 1, 3]]", "1x4", combiner.toStdString()),
        {{"%1", "3x" + t, "3x" + t, "[{}]"}}, {}, {}};
    const Program program = programOf(row.text());
    const Function& function = program.functions.front();
    const auto arguments = argumentsOf(function);
    const auto ran = runOnDevices(function, program.meshes, arguments);
    QVERIFY2(ran, problemsText(ran ? Problems() : ran.error()).c_str());
    const auto reference = valueOf(evaluate(function, arguments, {.meshes = program.meshes}));
    const bool exact = type.contains('i');
    QCOMPARE(difference(ran->results.front(), reference.front().values(),
                 exact                ? 0.0
                     : type == "bf16" ? 2e-2
                                      : 1e-6),
        std::string());
    QVERIFY(ran->replicasAgree);
}

/// Devices give what one thread gives, what is said to be the same on several of them is, and the derivative is the adjoint: <f(u), c> is
/// <u, f'(c)>, exactly.
void TestManual::randomBodies()
{
    for (const std::uint64_t round : tests::seedRange(0, 120)) {
        const Program program = RandomBody(round).make();
        const Function& function = program.functions.front();
        const std::string what = fmt::format("round {}\n{}", round, writeProgram(program));
        QVERIFY2(verify(program).empty(), what.c_str());
        const auto arguments = wholeNumbers(function, function.arguments(), round);
        const auto reference = evaluate(function, arguments, {.meshes = program.meshes});
        QVERIFY2(reference, what.c_str());
        const auto ran = runOnDevices(function, program.meshes, arguments);
        QVERIFY2(ran && ran->results == *reference && ran->replicasAgree, what.c_str());

        const auto derivative = differentiate(function, {0, 1}, {0, 1}, {}, program.meshes);
        QVERIFY2(derivative, what.c_str());
        const auto forward = valueOf(evaluate(derivative->forward, arguments, {.meshes = program.meshes}));
        std::vector<HostArray> inputs(forward.begin() + 2, forward.end());
        const auto cotangents = wholeNumbers(function, function.results(), round + 1000);
        inputs.insert(inputs.end(), cotangents.begin(), cotangents.end());
        const auto gradients = runOnDevices(derivative->backward, program.meshes, inputs);
        QVERIFY2(gradients && gradients->replicasAgree, what.c_str());
        QVERIFY2(inner(*reference, cotangents) == inner(gradients->results, arguments), what.c_str());
    }
}

/// What `partition` writes reads back as it was, and is not partitioned again.
void TestManual::programsOnShardsAreWritten()
{
    const ManualProgram& row = current();
    const auto partitioned = propagateAndPartition(programOf(row.text()));
    const DeviceStage& stage = partitioned->device.stages.front();
    Program program;
    program.meshes = stage.meshes;
    program.functions = {stage.functions.front().function};
    const std::string written = writeProgram(program);
    const Program again = programOf(written);
    QCOMPARE(writeProgram(again), written);
    if (row.collectives.empty())
        return;
    const auto twice = propagateAndPartition(again);
    QVERIFY(!twice);
    QCOMPARE(twice.error().front().id, std::string("MW1265"));
}

/// A manual computation over one axis inside of one over another.
void TestManual::nested()
{
    const std::string text = R"(module @nested {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {?}]>] out_shardings=[<@mesh, [{"a"}, {?}]>] manual_axes={"a"} (%y: tensor<2x4xf32>) {
      %1 = sdy.manual_computation(%y) in_shardings=[<@mesh, [{}, {"b"}]>] out_shardings=[<@mesh, [{}, {"b"}]>] manual_axes={"b"} (%z: tensor<2x2xf32>) {
)" + tests::permute("%2", "%z", "2x2xf32", "[[0, 1], [1, 0], [2, 3], [3, 2]]", 4)
        + tests::allReduce("%3", "%2", "2x2xf32", "[[0, 2], [1, 3]]", "2x2") + R"(
        sdy.return %3 : tensor<2x2xf32>
      } : (tensor<2x4xf32>) -> tensor<2x4xf32>
      sdy.return %1 : tensor<2x4xf32>
    } : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}
)";
    const Program program = programOf(text);
    const Function& function = program.functions.front();
    std::vector<double> counted(16);
    std::iota(counted.begin(), counted.end(), 0.0);
    const std::vector<HostArray> arguments{HostArray::of({DType::F32, {4, 4}}, counted)};
    const auto ran = runOnDevices(function, program.meshes, arguments);
    QVERIFY2(ran, problemsText(ran ? Problems() : ran.error()).c_str());
    // Halves of the columns swapped, rows i and i + 2 added.
    const std::vector<double> expected{12, 14, 8, 10, 20, 22, 16, 18, 12, 14, 8, 10, 20, 22, 16, 18};
    QCOMPARE(difference(ran->results.front(), expected, 0.0), std::string());
    const auto reference = valueOf(evaluate(function, arguments, {.meshes = program.meshes}));
    QCOMPARE(difference(reference.front(), expected, 0.0), std::string());
    const auto evaluator = [&](const Function& f, const std::vector<Array>& a) { return evaluateWide(f, program.meshes, a); };
    QCOMPARE(tests::gradientFault(function, {plain(arguments.front())}, {0}, {0}, 2e-6, program.meshes, evaluator), QString());
}

/// What is the same over the outer axis, the inner one, or both, meets what is not, inside of both; a value in between is read backward.
void TestManual::nestedDerivatives_data()
{
    QTest::addColumn<QString>("sum"); // in the inner body
    QTest::addColumn<QString>("groups");
    QTest::newRow("over the inner axis") << "maximum"
                                         << "[[0, 1], [2, 3]]";
    QTest::newRow("over the outer axis") << "add"
                                         << "[[0, 2], [1, 3]]";
    QTest::newRow("over both") << "add"
                               << "[[0, 1, 2, 3]]";
}

void TestManual::nestedDerivatives()
{
    QFETCH(QString, sum);
    QFETCH(QString, groups);
    const std::string text = R"(module @nested {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%x: tensor<4x4xf32>, %w: tensor<4xf32>, %s: tensor<f32>) -> tensor<4x4xf32> {
    %0 = sdy.manual_computation(%x, %w, %s) in_shardings=[<@mesh, [{"a"}, {?}]>, <@mesh, [{?}]>, <@mesh, []>] out_shardings=[<@mesh, [{"a"}, {?}]>] manual_axes={"a"} (%y: tensor<2x4xf32>, %v: tensor<4xf32>, %t: tensor<f32>) {
      %u = stablehlo.tanh %y : tensor<2x4xf32>
      %1 = sdy.manual_computation(%u, %v, %t) in_shardings=[<@mesh, [{}, {"b"}]>, <@mesh, [{"b"}]>, <@mesh, []>] out_shardings=[<@mesh, [{}, {"b"}]>] manual_axes={"b"} (%z: tensor<2x2xf32>, %p: tensor<2xf32>, %q: tensor<f32>) {
        %2 = stablehlo.broadcast_in_dim %p, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
        %3 = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
        %4 = stablehlo.multiply %z, %2 : tensor<2x2xf32>
        %5 = stablehlo.sine %4 : tensor<2x2xf32>
)" + tests::allReduce("%6", "%5", "2x2xf32", groups.toStdString(), groups.contains("0, 1, 2") ? "1x4" : "2x2", sum.toStdString())
        + R"(
        %7 = stablehlo.multiply %6, %3 : tensor<2x2xf32>
        %8 = stablehlo.multiply %7, %z : tensor<2x2xf32>
        sdy.return %8 : tensor<2x2xf32>
      } : (tensor<2x4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<2x4xf32>
      %9 = stablehlo.multiply %1, %y : tensor<2x4xf32>
      sdy.return %9 : tensor<2x4xf32>
    } : (tensor<4x4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}
)";
    const Program program = programOf(text);
    const Function& function = program.functions.front();
    const std::vector<HostArray> given = argumentsOf(function);
    std::vector<Array> arguments;
    for (const HostArray& argument : given)
        arguments.push_back(plain(argument));
    const auto evaluator = [&](const Function& f, const std::vector<Array>& a) { return evaluateWide(f, program.meshes, a); };
    QCOMPARE(tests::gradientFault(function, arguments, {0, 1, 2}, {0}, 2e-6, program.meshes, evaluator), QString());
    const auto both = withGradients(function, program.meshes);
    QVERIFY2(both, problemsText(both ? Problems() : both.error()).c_str());
    const auto whole = valueOf(evaluate(*both, given, {.meshes = program.meshes}));
    const auto ran = runOnDevices(*both, program.meshes, given);
    QVERIFY2(ran, problemsText(ran ? Problems() : ran.error()).c_str());
    QVERIFY(ran->replicasAgree);
    for (std::size_t i = 0; i < whole.size(); ++i)
        QCOMPARE(difference(ran->results[i], whole[i].values(), 1e-5), std::string());
}

/// A shard_map as JAX lowered it before Shardy is the same program, and has the same derivative.
void TestManual::beforeShardy()
{
    const Program program = programOf(valueOf(readFile(MESHWRIGHT_SOURCE_DIR "/tests/core/text/programs/gspmd_shard_map.mlir")));
    const Function& function = program.functions.front();
    const std::vector<HostArray> given = argumentsOf(function);
    const auto both = withGradients(function, program.meshes);
    QVERIFY2(both, problemsText(both ? Problems() : both.error()).c_str());
    const auto whole = valueOf(evaluate(*both, given, {.meshes = program.meshes}));
    const auto ran = runOnDevices(*both, program.meshes, given);
    QVERIFY2(ran, problemsText(ran ? Problems() : ran.error()).c_str());
    QCOMPARE(ran->collectives, QStringList({"all_gather axis_0", "reduce_scatter axis_0"}));
    const std::vector<Array> product = tests::evaluatePlainly(plainProduct(function), {plain(given[0]), plain(given[1])});
    QCOMPARE(difference(whole.front(), product.front().data, 1e-5), std::string());
    for (std::size_t i = 0; i < whole.size(); ++i)
        QCOMPARE(difference(ran->results[i], whole[i].values(), 1e-5), std::string());
}

void TestManual::namedComputationsAreDifferentiated()
{
    const Program program = programOf(R"(module @named {
  sdy.mesh @mesh = <["a"=2]>
  func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0:2 = sdy.named_computation<"square">(%x, %y) in_shardings=[<@mesh, [{"a"}]>, <@mesh, [{?}]>] out_shardings=[<@mesh, [{?}]>, <@mesh, [{?}]>] (%u: tensor<4xf32>, %v: tensor<4xf32>) {
      %1 = stablehlo.tanh %u : tensor<4xf32>
      %2 = stablehlo.multiply %1, %v : tensor<4xf32>
      sdy.return %2, %1 : tensor<4xf32>, tensor<4xf32>
    } : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %3 = stablehlo.multiply %0#0, %0#1 : tensor<4xf32>
    return %3 : tensor<4xf32>
  }
}
)");
    const auto evaluator = [&](const Function& f, const std::vector<Array>& a) { return evaluateWide(f, program.meshes, a); };
    QCOMPARE(tests::gradientFault(program.functions.front(), {tests::ramp({4}), tests::ramp({4}, 1.0)}, {0, 1}, {0}, 2e-6,
                 program.meshes, evaluator),
        QString());
}

void TestManual::needsMeshes()
{
    const Program program = programOf(tests::manualPrograms().front().text());
    const Function& function = program.functions.front();
    const auto evaluated = evaluate(function, argumentsOf(function));
    QVERIFY(!evaluated);
    QCOMPARE(QString::fromStdString(evaluated.error().front().id), QString("MW1504"));
    const auto derivative = differentiate(function, {0}, {0});
    QVERIFY(!derivative);
    QCOMPARE(QString::fromStdString(derivative.error().front().id), QString("MW1310"));
}

MESHWRIGHT_TEST(TestManual)

} // namespace tst_manual

#include "tst_manual.moc"
