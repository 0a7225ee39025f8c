// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partition.h"

#include "core/partition/split_exchange.h"
#include "core/program/builder.h"
#include "core/program/verify.h"
#include "tests/test_class.h"

namespace tst_partition {

using namespace meshwright;

namespace {

TensorSharding closed(const std::string& spec, std::size_t rank, const Mesh& mesh)
{
    return valueOf(toTensorSharding(valueOf(parseSpec(spec)), rank, mesh));
}

/// A function under construction on one mesh.
struct Fixture {
    explicit Fixture(const std::string& mesh)
        : meshes{{"mesh", valueOf(parseMesh(mesh))}}
        , builder(function)
    {
        function.name = "f";
    }

    ValueId argument(const std::string& name, Shape shape, const std::string& spec)
    {
        const std::size_t rank = shape.size();
        const ValueId id = builder.argument({DType::F32, std::move(shape)}, name, Role::Parameter);
        if (!spec.empty()) {
            function[id].sharding = closed(spec, rank, meshes.front().mesh);
            function[id].annotation = "sharding." + name;
        }
        return id;
    }

    void ask(ValueId value, const std::string& spec)
    {
        function[value].sharding = closed(spec, function[value].type.shape.size(), meshes.front().mesh);
        function[value].annotation = "sharding.result";
    }

    Result<DeviceFunction> run()
    {
        report = *propagate(function, meshes);
        PartitionOptions options;
        options.report = &report;
        return partition(function, meshes, options);
    }

    std::vector<NamedMesh> meshes;
    Function function;
    Builder builder;
    PropagationReport report;
};

/// `all_reduce data 128 forward h` for each collective.
QStringList collectives(const DeviceFunction& device, const Mesh& mesh)
{
    QStringList lines;
    for (const CollectiveUse& use : collectivesOf(device, mesh)) {
        lines << QString::fromStdString(fmt::format("{} {} {} {} {}{}", opName(use.kind), use.axes, use.payloadBytes,
            phaseName(use.phase), use.cause.value, use.count > 1 ? fmt::format(" x{}", use.count) : ""));
    }
    return lines;
}

} // namespace

class TestPartition : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void manyPieces();
    void matmul_data();
    void matmul();
    void localShapesVerify();
    void reducesOnceIntoTheWantedLayout();
    void sumsOfPartialSumsReduceOnce_data();
    void sumsOfPartialSumsReduceOnce();
    void partialSumsOverDifferentAxesReduceApart();
    void accumulatingCarryReducesAfterTheLoop();
    void whatIsSaidToBeASumOfPartsStaysOne();
    void gatherIsRepeatedInTheNextPhase();
    void causesNameTheAnnotation();
    void refusesUnevenArguments();
    void refusesWhatIsNotPropagated();
    void refusesAChangeOfMesh();
    void asShardyPlacesThem_data();
    void asShardyPlacesThem();
    void collectivesOfTheProgramItself();
    void onlyLocal();
    void wholeValuesBecomePartialSums();
    void manualComputation();
    void regroupingReshapes_data();
    void regroupingReshapes();
};

/// An array that a million devices turn round: each piece goes to another one, all in one round.
void TestPartition::manyPieces()
{
    constexpr std::int64_t kPieces = std::int64_t{1} << 20;
    const std::vector<PieceRound> rounds = roundsFor({4 * (kPieces - 1), -4, 4, 0, 4 * kPieces}, kPieces, 4);
    QCOMPARE(rounds.size(), std::size_t{1});
    QCOMPARE(std::ssize(rounds.front().transfers), kPieces);
    for (const PieceTransfer& transfer : rounds.front().transfers)
        QCOMPARE(transfer.from, kPieces - 1 - transfer.to);
}

void TestPartition::matmul_data()
{
    QTest::addColumn<QString>("lhs");
    QTest::addColumn<QString>("rhs");
    QTest::addColumn<QStringList>("expected");

    // [64, 32] x [32, 16] on a=4, b=2; payloads in bytes of f32
    QTest::newRow("rows by columns need nothing") << "P('a', None)"
                                                  << "P(None, 'b')" << QStringList{};
    QTest::newRow("contracting split on both sides") << "P(None, 'b')"
                                                     << "P('b', None)" << QStringList{"all_reduce b 4096 forward y"};
    QTest::newRow("small weights are gathered") << "P('a', None)"
                                                << "P('a', None)" << QStringList{"all_gather a 2048 forward w"};
    QTest::newRow("replicated") << "P()"
                                << "P()" << QStringList{};
}

void TestPartition::matmul()
{
    QFETCH(QString, lhs);
    QFETCH(QString, rhs);
    QFETCH(QStringList, expected);
    Fixture f("a=4,b=2");
    const ValueId x = f.argument("x", {64, 32}, lhs.toStdString());
    const ValueId w = f.argument("w", {32, 16}, rhs.toStdString());
    const ValueId y = f.builder.named(f.builder.matmul(x, w, DType::F32), "y");
    f.builder.setResults({y});
    const auto device = f.run();
    QVERIFY2(device, device ? "" : describe(device.error()).c_str());
    QCOMPARE(collectives(*device, f.meshes.front().mesh), expected);
}

void TestPartition::localShapesVerify()
{
    Fixture f("a=4,b=2");
    const ValueId x = f.argument("x", {64, 32}, "P('a', 'b')");
    const ValueId bias = f.argument("bias", {32}, "");
    const ValueId sum = f.builder.binary(OpKind::Add, x, f.builder.broadcast(bias, {64, 32}, {1}));
    const ValueId relu
        = f.builder.binary(OpKind::Maximum, sum, f.builder.broadcastScalar(f.builder.splat({DType::F32, {}}, 0.0), {64, 32}));
    f.builder.setResults({f.builder.reduce(ReduceKind::Sum, relu, {0})});
    const auto device = f.run();
    QVERIFY(device);
    QVERIFY(verify(device->function, f.meshes).empty());
    QCOMPARE(device->function[device->function.arguments()[0]].type.shape, (Shape{16, 16}));
    QCOMPARE(device->function[device->function.arguments()[1]].type.shape, (Shape{16}));
    QCOMPARE(device->globalShapes[device->function.results().front().at()], (Shape{32}));
    QCOMPARE(device->function[device->function.results().front()].type.shape, (Shape{16}));
}

void TestPartition::reducesOnceIntoTheWantedLayout()
{
    Fixture f("a=4");
    const ValueId x = f.argument("x", {64, 32}, "P('a', None)");
    const ValueId g = f.builder.named(f.builder.reduce(ReduceKind::Sum, x, {0}), "g");
    f.ask(g, "P('a')");
    f.builder.setResults({g});
    const auto device = f.run();
    QVERIFY(device);
    QCOMPARE(collectives(*device, f.meshes.front().mesh), QStringList{"reduce_scatter a 128 forward g"});
}

void TestPartition::sumsOfPartialSumsReduceOnce_data()
{
    QTest::addColumn<DType>("summed");
    QTest::addColumn<DType>("added");
    QTest::addColumn<QStringList>("expected");
    QTest::newRow("as they are") << DType::F32 << DType::F32 << QStringList{"all_reduce a 128 forward sum"};
    QTest::newRow("widened first") << DType::BF16 << DType::F32 << QStringList{"all_reduce a 128 forward sum"};
    // A part may be larger than the sum, and is not rounded before it is made.
    QTest::newRow("narrowed first") << DType::F32 << DType::BF16
                                    << QStringList{"all_reduce a 128 forward ofX", "all_reduce a 128 forward ofZ"};
}

void TestPartition::sumsOfPartialSumsReduceOnce()
{
    QFETCH(DType, summed);
    QFETCH(DType, added);
    QFETCH(QStringList, expected);
    Fixture f("a=4");
    const auto term = [&](const char* argument, const char* name) {
        const ValueId rows = f.builder.convert(f.argument(argument, {64, 32}, "P('a', None)"), summed);
        return f.builder.convert(f.builder.named(f.builder.reduce(ReduceKind::Sum, rows, {0}), name), added);
    };
    const ValueId x = term("x", "ofX");
    const ValueId z = term("z", "ofZ");
    f.builder.setResults({f.builder.named(f.builder.binary(OpKind::Add, x, z), "sum")});
    const auto device = f.run();
    QVERIFY(device);
    QCOMPARE(collectives(*device, f.meshes.front().mesh), expected);
}

/// Sums that are partial over different axes do not make one partial sum: each is reduced over its own axis.
void TestPartition::partialSumsOverDifferentAxesReduceApart()
{
    Fixture f("a=4,b=2");
    const ValueId x = f.argument("x", {64, 32}, "P('a', None)");
    const ValueId z = f.argument("z", {64, 32}, "P('b', None)");
    const ValueId ofX = f.builder.named(f.builder.reduce(ReduceKind::Sum, x, {0}), "ofX");
    const ValueId ofZ = f.builder.named(f.builder.reduce(ReduceKind::Sum, z, {0}), "ofZ");
    f.builder.setResults({f.builder.binary(OpKind::Add, ofX, ofZ)});
    const auto device = f.run();
    QVERIFY2(device, device ? "" : describe(device.error()).c_str());
    QCOMPARE(collectives(*device, f.meshes.front().mesh),
        (QStringList{"all_reduce a 128 forward ofX", "all_reduce b 128 forward ofZ"}));
}

void TestPartition::accumulatingCarryReducesAfterTheLoop()
{
    Fixture f("a=4");
    const ValueId x = f.argument("x", {8, 64, 32}, "P(None, 'a', None)");
    const ValueId zero = f.builder.broadcastScalar(f.builder.splat({DType::F32, {}}, 0.0), {32});
    const OpId loop = f.builder.beginRepeat({8, 1, 1, false}, {zero, x});
    const auto arguments = f.function[f.builder.block()].arguments;
    f.builder.setResults({f.builder.binary(OpKind::Add, arguments[0], f.builder.reduce(ReduceKind::Sum, arguments[1], {0}))});
    const ValueId total = f.builder.named(f.builder.endRepeat(loop).front(), "total");
    f.builder.setResults({total});
    const auto device = f.run();
    QVERIFY2(device, device ? "" : describe(device.error()).c_str());
    QCOMPARE(collectives(*device, f.meshes.front().mesh), QStringList{"all_reduce a 128 forward total"});
}

/// A carry that begins as such a sum, a stacked result that leaves as one, and a sum that is added to itself: one reduction each, where a whole is asked for.
void TestPartition::whatIsSaidToBeASumOfPartsStaysOne()
{
    Fixture f("a=4");
    const auto constrained = [&](ValueId value, bool isWhole) {
        TensorSharding sharding = TensorSharding::replicatedOf(f.function[value].type.shape.size());
        if (!isWhole)
            sharding.unreduced = {wholeAxis(f.meshes.front().mesh, 0)};
        return f.builder.constrain(value, sharding, "said");
    };
    const ValueId x = f.argument("x", {8, 64, 32}, "P(None, 'a', None)");
    const ValueId start = constrained(f.builder.reduce(ReduceKind::Sum, f.argument("s", {64, 32}, "P('a', None)"), {0}), false);
    const OpId loop = f.builder.beginRepeat({8, 1, 1, false}, {start, x});
    const auto arguments = f.function[f.builder.block()].arguments;
    const ValueId row = f.builder.reduce(ReduceKind::Sum, arguments[1], {0});
    f.builder.setResults({constrained(f.builder.binary(OpKind::Add, arguments[0], constrained(row, false)), false), row});
    const auto results = f.builder.endRepeat(loop);
    const ValueId total = constrained(f.builder.binary(OpKind::Add, results[0], results[0]), false);
    f.builder.setResults({constrained(total, true), constrained(constrained(results[1], false), true)});
    const auto device = f.run();
    QVERIFY2(device, device ? "" : describe(device.error()).c_str());
    const QStringList found = collectives(*device, f.meshes.front().mesh);
    QVERIFY2(found.size() == 2 && found[0].startsWith("all_reduce a 128 ") && found[1].startsWith("all_reduce a 1024 "),
        qPrintable(found.join("; ")));
}

void TestPartition::gatherIsRepeatedInTheNextPhase()
{
    Fixture f("a=4");
    const ValueId x = f.argument("x", {256, 32}, "P('a', None)");
    const ValueId w = f.argument("w", {32, 32}, "P('a', None)");
    const ValueId h = f.builder.matmul(x, w, DType::F32);
    f.builder.setPhase(Phase::Backward);
    const ValueId back = f.builder.matmul(h, w, DType::F32);
    f.builder.setResults({back});
    auto device = f.run();
    QVERIFY(device);
    QCOMPARE(collectives(*device, f.meshes.front().mesh),
        (QStringList{"all_gather a 4096 forward w", "all_gather a 4096 backward w"}));

    PartitionOptions keep;
    keep.regather = Regather::Keep;
    device = partition(f.function, f.meshes, keep);
    QVERIFY(device);
    QCOMPARE(collectives(*device, f.meshes.front().mesh), QStringList{"all_gather a 4096 forward w"});
}

void TestPartition::causesNameTheAnnotation()
{
    Fixture f("a=4");
    const ValueId x = f.argument("x", {256, 32}, "P('a', None)");
    const ValueId w = f.argument("w", {32, 32}, "P('a', None)");
    f.builder.setResults({f.builder.matmul(x, w, DType::F32)});
    const auto device = f.run();
    QVERIFY(device);
    const Cause cause = collectivesOf(*device, f.meshes.front().mesh).front().cause;
    QCOMPARE(cause.annotation, std::string("sharding.w"));
    QCOMPARE(cause.op, std::string("dot_general"));
    QVERIFY2(
        cause.reason.find("dot_general needs w as P(), but it is sharded as P('a',)") != std::string::npos, cause.reason.c_str());
}

void TestPartition::refusesUnevenArguments()
{
    Fixture f("a=4");
    const ValueId x = f.argument("x", {10}, "P('a')");
    f.builder.setResults({f.builder.unary(OpKind::Negate, x)});
    const auto device = f.run();
    QVERIFY(!device);
    QCOMPARE(device.error().front().id, std::string("MW1104"));
    QCOMPARE(device.error().front().message, std::string("x: dim 0 of size 10 is not divisible by 4"));
}

void TestPartition::refusesWhatIsNotPropagated()
{
    Fixture f("a=4");
    f.builder.setResults({f.builder.unary(OpKind::Negate, f.argument("x", {8}, "P('a')"))});
    const auto device = partition(f.function, f.meshes);
    QVERIFY(!device);
    QCOMPARE(device.error().front().id, std::string("MW1210"));
}

void TestPartition::refusesAChangeOfMesh()
{
    Fixture f("a=4");
    f.meshes.push_back({"other", valueOf(parseMesh("b=2,c=2"))});
    TensorSharding onOther = closed("P('b')", 1, f.meshes[1].mesh);
    onOther.mesh = 1;
    f.builder.setResults({f.builder.constrain(f.argument("x", {8}, "P('a')"), onOther, "here")});
    const auto device = f.run();
    QVERIFY(!device);
    QCOMPARE(device.error().front().id, std::string("MW1212"));
}

/// With Shardy's placement every change of layout is made for one use, and a slice after a sum becomes a reduce-scatter.
void TestPartition::asShardyPlacesThem_data()
{
    QTest::addColumn<QString>("lhs");
    QTest::addColumn<QString>("rhs");
    QTest::addColumn<QString>("result");
    QTest::addColumn<QStringList>("expected");

    // [64, 32] x [32, 16] on a=4, b=2; payloads in bytes of f32
    QTest::newRow("nothing to do") << "P('a', None)"
                                   << "P(None, 'b')"
                                   << "" << QStringList{};
    QTest::newRow("sum") << "P(None, 'b')"
                         << "P('b', None)"
                         << "" << QStringList{"all_reduce b 4096 forward the result of dot_general"};
    QTest::newRow("sum and slice") << "P(None, 'b')"
                                   << "P('b', None)"
                                   << "P('b', None)" << QStringList{"reduce_scatter b 4096 forward the result of dot_general"};
    QTest::newRow("gathered operand") << "P('a', None)"
                                      << "P('a', None)"
                                      << "P('a', None)" << QStringList{"all_gather a 2048 forward w"};
}

void TestPartition::asShardyPlacesThem()
{
    QFETCH(QString, lhs);
    QFETCH(QString, rhs);
    QFETCH(QString, result);
    QFETCH(QStringList, expected);
    Fixture f("a=4,b=2");
    const ValueId x = f.argument("x", {64, 32}, lhs.toStdString());
    const ValueId w = f.argument("w", {32, 16}, rhs.toStdString());
    const ValueId y = f.builder.matmul(x, w, DType::F32);
    if (!result.isEmpty())
        f.ask(y, result.toStdString());
    f.builder.setResults({y});
    QVERIFY(propagate(f.function, f.meshes));
    const auto device = partition(f.function, f.meshes, {.style = ReshardStyle::Shardy});
    QVERIFY2(device, device ? "" : describe(device.error()).c_str());
    QStringList found = collectives(*device, f.meshes.front().mesh);
    QCOMPARE(found, expected);
    QVERIFY2(verify(device->function, f.meshes).empty(), describe(verify(device->function, f.meshes)).c_str());
}

/// Reshards and collectives on whole arrays, as Shardy writes them, are what is done.
void TestPartition::collectivesOfTheProgramItself()
{
    Fixture f("a=4,b=2");
    const Mesh& mesh = f.meshes.front().mesh;
    const ValueId x = f.argument("x", {64, 32}, "P(None, 'b')");
    const ValueId w = f.argument("w", {32, 16}, "P('b', None)");
    const ValueId y = f.builder.matmul(x, w, DType::F32);
    f.function[y].sharding = closed("P()", 2, mesh);
    CollectiveAttributes sum;
    sum.axes = {wholeAxis(mesh, 1)};
    const ValueId added = f.builder.add(OpKind::AllReduce, {y}, sum);
    f.function[added].sharding = closed("P()", 2, mesh);
    CollectiveAttributes reshard;
    reshard.resultShape = {64, 16};
    const ValueId moved = f.builder.add(OpKind::Reshard, {added}, reshard);
    f.function[moved].sharding = closed("P('a')", 2, mesh);
    // Nothing is partial any more: adding up again changes nothing.
    const ValueId again = f.builder.add(OpKind::AllReduce, {moved}, sum);
    f.function[again].sharding = closed("P('a')", 2, mesh);
    f.builder.setResults({again});
    const auto device = partition(f.function, f.meshes, {.localOnly = true});
    QVERIFY2(device, device ? "" : describe(device.error()).c_str());
    QCOMPARE(collectives(*device, mesh), QStringList{"all_reduce b 4096 forward "});
    QCOMPARE(device->function[device->function.results().front()].type.shape, (Shape{16, 16}));
}

void TestPartition::onlyLocal()
{
    Fixture f("a=4,b=2");
    const ValueId x = f.argument("x", {64, 32}, "P('a', None)");
    const ValueId w = f.argument("w", {32, 16}, "P('a', None)");
    f.builder.setResults({f.builder.matmul(x, w, DType::F32)});
    QVERIFY(propagate(f.function, f.meshes));
    const auto device = partition(f.function, f.meshes, {.localOnly = true});
    QVERIFY(!device);
    QCOMPARE(QString::fromStdString(device.error().front().id), QString("MW1221"));
    QVERIFY(device.error().front().message.find("dot_general needs w as P()") != std::string::npos);
}

void TestPartition::wholeValuesBecomePartialSums()
{
    Fixture f("a=4,b=2");
    const ValueId x = f.argument("x", {64, 32}, "P('a', None)");
    TensorSharding partial = closed("P('a')", 2, f.meshes.front().mesh);
    partial.unreduced = {wholeAxis(f.meshes.front().mesh, 1)};
    f.builder.setResults({f.builder.constrain(x, partial, "sharding.y")});
    const auto device = f.run();
    QVERIFY2(device, device ? "" : describe(device.error()).c_str());
    // The first device along b keeps the value, the others have zeros; nothing moves.
    QVERIFY(collectives(*device, f.meshes.front().mesh).isEmpty());
    const ValueId result = device->function.results().front();
    QCOMPARE(opName(device->function[device->function[result].producer].kind), "select");
    QCOMPARE(device->function[result].sharding->unreduced, partial.unreduced);
}

void TestPartition::manualComputation()
{
    Fixture f("a=2");
    const ValueId x = f.argument("x", {8}, "P('a')");
    const TensorSharding layout = *f.function[x].sharding;
    const OpId manual = f.builder.beginOp(OpKind::Computation, {x}, ComputationAttributes{{}, {layout}, {layout}, {0}});
    const std::vector<TensorType> piece{{DType::F32, {4}}};
    f.builder.setResults({f.builder.unary(OpKind::Negate, f.builder.beginBody(manual, piece).front())});
    const std::vector<TensorType> whole{{DType::F32, {8}}};
    f.builder.setResults(f.builder.endOp(manual, whole));
    QVERIFY(verify(f.function, f.meshes).empty());
    // Its body in its own shapes, and nothing moves.
    const auto device = f.run();
    QVERIFY(device);
    QVERIFY(verify(device->function, f.meshes).empty());
    QCOMPARE(collectives(*device, f.meshes.front().mesh), QStringList());
    const ValueId result = device->function.results().front();
    QCOMPARE(device->function[result].type.shape, Shape{4});
    QCOMPARE(device->globalShapes[result.at()], Shape{8});
    QVERIFY(device->function[result].sharding->dims == layout.dims);
}

void TestPartition::regroupingReshapes_data()
{
    QTest::addColumn<Shape>("from"); ///< the minor dimension split over a and b
    QTest::addColumn<Shape>("to"); ///< and over b
    QTest::addColumn<QString>("expected");

    // The factors of 2x12 and 4x6 are 2, 2 and 6: a splits the second and is gathered, b stays on the third.
    QTest::newRow("even factors") << Shape{2, 12} << Shape{4, 6}
                                  << "all_gather a 48 forward reshape(x, ..), all_reduce b 16 forward sum";
    // Four pieces of 10 are of 3, with padding 12; those of the factors 2 and 5 begin elsewhere, and on the way through them the array would be
    // gathered twice.
    QTest::newRow("a factor that does not divide")
        << Shape{2, 10} << Shape{4, 5} << "all_gather a,b 96 forward x, all_reduce b 16 forward sum";
}

/// A reshape that regroups dimensions gathers what it must, once.
void TestPartition::regroupingReshapes()
{
    QFETCH(Shape, from);
    QFETCH(Shape, to);
    QFETCH(QString, expected);
    Fixture f("a=2,b=2");
    const ValueId x = f.builder.named(f.builder.unary(OpKind::Negate, f.argument("argument", from, "P()")), "x");
    f.ask(x, "P(None, ('a', 'b'))");
    const ValueId y = f.builder.reshape(x, to);
    f.ask(y, "P(None, 'b')");
    const ValueId result = f.builder.named(f.builder.reduce(ReduceKind::Sum, y, {1}), "sum");
    f.ask(result, "P()");
    f.builder.setResults({result});
    const auto device = f.run();
    QVERIFY2(device, device ? "" : describe(device.error()).c_str());
    QCOMPARE(collectives(*device, f.meshes.front().mesh).join(", "), expected);
}

MESHWRIGHT_TEST(TestPartition)

} // namespace tst_partition

#include "tst_partition.moc"
