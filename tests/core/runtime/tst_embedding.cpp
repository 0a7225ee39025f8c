// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/differentiate.h"
#include "core/autodiff/gradient_function.h"
#include "core/partition/partition.h"
#include "core/program/transform.h"
#include "core/program/verify.h"
#include "core/runtime/executor.h"
#include "tests/run_on_devices.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

#include <algorithm>

namespace tst_embedding {

using namespace meshwright;
using namespace meshwright::test;

namespace {

constexpr std::int64_t kRows = 12;
constexpr std::int64_t kColumns = 8;

/// The sum of the squares of the rows with these numbers, weighted, and its gradient for the table.
Function lookUp(DType indexType, const Shape& indices)
{
    Function loss;
    loss.name = "loss";
    Builder b(loss);
    const ValueId table = b.argument({DType::F32, {kRows, kColumns}}, "table");
    const ValueId ids = b.argument({indexType, indices}, "ids");
    Shape vectors = indices;
    vectors.push_back(1);
    GatherAttributes gather;
    gather.dims.window = {indices.size()};
    gather.dims.collapsed = {0};
    gather.dims.indexMap = {0};
    gather.dims.indexVectorDim = indices.size();
    gather.sliceSizes = {1, kColumns};
    const ValueId rows = b.add(OpKind::Gather, {table, b.reshape(ids, vectors)}, std::move(gather));
    std::vector<std::size_t> all;
    for (std::size_t dim = 0; dim <= indices.size(); ++dim)
        all.push_back(dim);
    b.setResults({b.reduce(ReduceKind::Sum, b.binary(OpKind::Multiply, rows, rows), all)});

    const auto derivative = valueOf(differentiate(loss, {0}, {0}));
    Function step;
    step.name = "step";
    Builder s(step);
    std::vector<ValueId> arguments;
    for (const ValueId argument : loss.arguments())
        arguments.push_back(s.argument(loss[argument].type, loss[argument].name));
    std::vector<ValueId> results = inlineCall(s, derivative.forward, arguments);
    std::vector<ValueId> inputs(results.begin() + 1, results.end());
    inputs.push_back(s.splat({DType::F32, {}}, 1.0));
    s.setResults({results.front(), inlineCall(s, derivative.backward, inputs).front()});
    return step;
}

/// A scatter that adds to an array that is not empty.
Function addTo(std::optional<ReduceKind> kind)
{
    Function function;
    function.name = "add";
    Builder b(function);
    const ValueId table = b.argument({DType::F32, {kRows, kColumns}}, "table");
    const ValueId ids = b.argument({DType::S32, {8}}, "ids");
    const ValueId updates = b.argument({DType::F32, {8, kColumns}}, "updates");
    const IndexingDims rows{{1}, {0}, {}, {}, {0}, 1};
    b.setResults({b.add(OpKind::Scatter, {table, b.reshape(ids, {8, 1}), updates}, ScatterAttributes{rows, kind, false, false})});
    return function;
}

struct OnDevices {
    std::vector<HostArray> results;
    QStringList collectives; ///< with how many elements of a whole array
};

OnDevices onDevices(Function function, const std::vector<std::string>& specs, const std::vector<HostArray>& arguments)
{
    const Mesh mesh = valueOf(parseMesh("a=2,b=2"));
    const std::vector<NamedMesh> meshes{{"mesh", mesh}};
    for (std::size_t i = 0; i < specs.size(); ++i) {
        const ValueId argument = function.arguments()[i];
        function[argument].sharding
            = valueOf(toTensorSharding(valueOf(parseSpec(specs[i])), function[argument].type.shape.size(), mesh));
    }
    function.resultShardings.assign(function.results().size(), std::nullopt);
    function.resultShardings.back() = function[function.arguments().front()].sharding; // the gradient as the table
    if (const auto report = propagate(function, meshes); !report)
        qFatal("%s", describe(report.error()).c_str());
    const auto device = partition(function, meshes);
    if (!device)
        qFatal("%s", describe(device.error()).c_str());
    OnDevices made;
    for (const CollectiveUse& use : collectivesOf(*device, mesh))
        made.collectives << QString("%1 %2").arg(opName(use.kind), use.axes.c_str());
    const auto devices = valueOf(VirtualDevices::create(mesh.deviceCount(), {0}));
    const auto loaded = valueOf(LoadedFunction::load(schedule(*device, SchedulePolicy::Host), meshes, *devices));
    for (std::size_t i = 0; i < arguments.size(); ++i)
        valueOf(loaded->writeArgument(i, arguments[i]));
    valueOf(loaded->run());
    for (std::size_t i = 0; i < function.results().size(); ++i)
        made.results.push_back(loaded->readResult(i));
    return made;
}

std::vector<double> numbers(std::size_t count, int step, int modulus, int first)
{
    std::vector<double> all;
    for (std::size_t i = 0; i < count; ++i)
        all.push_back(first + static_cast<int>(i) * step % modulus);
    return all;
}

} // namespace

/// Look-ups in a table that lies split on devices, and the gradient for the table.
class TestEmbedding : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void lookUps_data();
    void lookUps();
    void scattersAdd_data();
    void scattersAdd();
    void scatterGradients_data();
    void scatterGradients();
};

void TestEmbedding::lookUps_data()
{
    QTest::addColumn<int>("indexType");
    QTest::addColumn<QString>("table");
    QTest::addColumn<QString>("ids");
    QTest::addColumn<QString>("collectives");
    const auto row = [](const char* name, const char* table, const char* ids, const char* collectives, DType dtype = DType::S32) {
        QTest::newRow(name) << static_cast<int>(dtype) << table << ids << collectives;
    };
    row("on one device", "P()", "P()", "");
    row("batch", "P()", "P('a')", "all_reduce a|all_reduce a");
    // Rows: a masked look-up and a sum; each device's gradient is of its own rows.
    row("rows", "P('a')", "P()", "all_reduce a");
    row("rows over both axes", "P(('a', 'b'))", "P()", "all_reduce a,b");
    row("rows, unsigned", "P('a')", "P()", "all_reduce a", DType::U32);
    row("rows, small numbers", "P('a')", "P()", "all_reduce a", DType::U8);
    row("columns", "P(None, 'b')", "P()", "all_reduce b");
    row("rows and columns", "P('a', 'b')", "P()", "all_reduce a|all_reduce b");
    row("rows and batch", "P('a')", "P('b')", "all_reduce a|all_reduce b|all_reduce b");
}

void TestEmbedding::lookUps()
{
    QFETCH(int, indexType);
    QFETCH(QString, table);
    QFETCH(QString, ids);
    QFETCH(QString, collectives);
    const auto dtype = static_cast<DType>(indexType);
    const Shape indices{2, 4};
    const Function function = lookUp(dtype, indices);
    QVERIFY2(verify(function, {}).empty(), describe(verify(function, {})).c_str());
    // Some rows twice, some not at all, two that are not there.
    const std::vector<HostArray> arguments{randomArray({DType::F32, {kRows, kColumns}}, 5),
        HostArray::of({dtype, indices}, numbers(8, 5, 16, isUnsigned(dtype) ? 0 : -2))};
    const auto whole = evaluate(function, arguments);
    QVERIFY2(whole, whole ? "" : describe(whole.error()).c_str());
    const OnDevices split = onDevices(function, {table.toStdString(), ids.toStdString()}, arguments);
    for (std::size_t i = 0; i < 2; ++i) {
        const std::string wrong = difference(split.results[i], (*whole)[i].values(), 1e-6);
        QVERIFY2(wrong.empty(), qPrintable(QString("result %1: ").arg(i) + wrong.c_str()));
    }
    QStringList found = split.collectives;
    found.sort();
    QCOMPARE(found.join('|'), collectives);
}

void TestEmbedding::scattersAdd_data()
{
    QTest::addColumn<int>("kind");
    QTest::addColumn<QStringList>("specs");
    for (const auto& [name, kind] :
        {std::pair("sum", ReduceKind::Sum), {"max", ReduceKind::Max}, {"product", ReduceKind::Product}}) {
        const auto row = [&, title = std::string(name), which = static_cast<int>(kind)](const char* how,
                             const QStringList& specs) { QTest::newRow((title + ", " + how).c_str()) << which << specs; };
        row("rows", {"P('a')", "P()", "P()"});
        row("updates", {"P()", "P('b')", "P('b')"});
        row("rows and updates", {"P('a')", "P('b')", "P('b')"});
        row("columns and updates", {"P(None, 'a')", "P('b')", "P('b', 'a')"});
    }
}

/// What the updates are added to counts once, however many devices have updates.
void TestEmbedding::scattersAdd()
{
    QFETCH(int, kind);
    QFETCH(QStringList, specs);
    const Function function = addTo(static_cast<ReduceKind>(kind));
    const std::vector<HostArray> arguments{randomArray({DType::F32, {kRows, kColumns}}, 7),
        HostArray::of({DType::S32, {8}}, numbers(8, 5, 16, -2)), randomArray({DType::F32, {8, kColumns}}, 8)};
    const auto whole = evaluate(function, arguments);
    QVERIFY2(whole, whole ? "" : describe(whole.error()).c_str());
    std::vector<std::string> texts;
    for (const QString& spec : specs)
        texts.push_back(spec.toStdString());
    const OnDevices split = onDevices(function, texts, arguments);
    const std::string wrong = difference(split.results.front(), whole->front().values(), 1e-6);
    QVERIFY2(wrong.empty(), wrong.c_str());
    QVERIFY2(!split.collectives.join(' ').contains("all_gather"), qPrintable(split.collectives.join(' ')));
}

void TestEmbedding::scatterGradients_data()
{
    QTest::addColumn<bool>("adds");
    QTest::addColumn<QStringList>("specs");
    for (const bool adds : {true, false}) {
        const auto row = [&](const char* how, const QStringList& specs) {
            QTest::newRow(qPrintable(QString(adds ? "add, " : "replace, ") + how)) << adds << specs;
        };
        row("rows", {"P('a')", "P()", "P()"});
        row("columns", {"P(None, 'b')", "P()", "P(None, 'b')"});
        row("rows and columns", {"P('a', 'b')", "P()", "P()"});
        if (adds) {
            row("updates", {"P()", "P('b')", "P('b')"});
            row("rows and updates", {"P('a')", "P('b')", "P('b')"});
        }
    }
}

/// The gradients for what a scatter writes into, and for what it writes, on devices as on one.
void TestEmbedding::scatterGradients()
{
    QFETCH(bool, adds);
    QFETCH(QStringList, specs);
    Function function = addTo(adds ? std::optional(ReduceKind::Sum) : std::nullopt);
    Builder b(function);
    const ValueId made = function.results().front();
    b.setResults({b.reduce(ReduceKind::Sum, b.binary(OpKind::Multiply, made, made), {0, 1})});
    Program program;
    const Mesh mesh = valueOf(parseMesh("a=2,b=2"));
    program.meshes = {{"mesh", mesh}};
    for (std::size_t i = 0; i < function.arguments().size(); ++i) {
        Value& argument = function[function.arguments()[i]];
        argument.sharding = valueOf(toTensorSharding(
            valueOf(parseSpec(specs[static_cast<qsizetype>(i)].toStdString())), argument.type.shape.size(), mesh));
    }
    const auto both = withGradients(function, program.meshes);
    QVERIFY2(both, both ? "" : describe(both.error()).c_str());
    program.functions = {*both};
    const std::vector<HostArray> arguments{randomArray({DType::F32, {kRows, kColumns}}, 7),
        HostArray::of({DType::S32, {8}}, numbers(8, 5, 16, -2)), randomArray({DType::F32, {8, kColumns}}, 8)};
    const auto whole = evaluate(*both, arguments);
    QVERIFY2(whole, whole ? "" : describe(whole.error()).c_str());
    const auto run = tests::runOnDevices(program, arguments);
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    QVERIFY(run->replicasAgree);
    QCOMPARE(run->results.size(), std::size_t{3});
    for (std::size_t i = 0; i < 3; ++i) {
        const std::string wrong = difference(run->results[i], (*whole)[i].values(), 1e-6);
        QVERIFY2(wrong.empty(), qPrintable(QString("result %1: ").arg(i) + wrong.c_str()));
    }
}

MESHWRIGHT_TEST(TestEmbedding)

} // namespace tst_embedding

#include "tst_embedding.moc"
