// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/explicit_reshards.h"

#include "core/partition/partition.h"
#include "core/partition/reshard_passes.h"
#include "core/program/builder.h"
#include "core/program/verify.h"
#include "core/sharding/shardy_text.h"
#include "core/text/program_text.h"
#include "tests/test_class.h"

namespace tst_explicit_reshards {

using namespace meshwright;

namespace {

/// A function on the mesh a=4, b=2 with shardings in Shardy's text.
struct Sketch {
    std::vector<NamedMesh> meshes{{"mesh", valueOf(parseMesh("a=4,b=2"))}};
    Function function;
    Builder b{function};

    void lies(ValueId value, const char* sharding)
    {
        function[value].sharding = valueOf(parseShardy(sharding, meshes.front().mesh));
    }
    ValueId argument(const char* name, Shape shape, const char* sharding)
    {
        const ValueId value = b.argument({DType::F32, std::move(shape)}, name);
        lies(value, sharding);
        return value;
    }
};

/// The ops of a block: `reshard [{"a"}, {}]` for each.
QStringList opsOf(const Sketch& sketch, const Function& function, BlockId block)
{
    QStringList lines;
    for (const OpId id : function[block].ops) {
        const Op& op = function[id];
        const auto& sharding = function[op.results.front()].sharding;
        lines << QString::fromStdString(fmt::format(
            "{} {}", opName(op.kind), sharding ? shardyText(*sharding, sketch.meshes.front().mesh) : std::string("none")));
    }
    return lines;
}

constexpr BlockId kBody{std::int32_t{0}};

/// A program of one function, whose body this is, on the meshes a=4, b=2 and one device.
Program programOf(const char* signature, const char* body)
{
    return valueOf(
        readProgram(fmt::format("module {{\nsdy.mesh @mesh = <[\"a\"=4, \"b\"=2]>\nsdy.mesh @one = <[], device_ids=[0]>\n"
                                "func.func public @main({} {{\n{}\n}}\n}}\n",
                        signature, body),
            "test.mlir"));
}

/// The ops of a block and where their first results lie.
QStringList linesOf(const Program& program, const Function& function, BlockId block)
{
    QStringList lines;
    for (const OpId id : function[block].ops) {
        const auto& sharding = function[function[id].results.front()].sharding;
        const bool isOne = sharding && program.meshes[static_cast<std::size_t>(sharding->mesh)].isMaximal;
        lines << QString("%1 %2").arg(QString::fromStdString(std::string(opName(function[id]))),
            isOne          ? QString("one")
                : sharding ? QString::fromStdString(shardyText(*sharding, program.meshes.front().mesh))
                           : QString("none"));
    }
    return lines;
}

Function explicitly(const Program& program)
{
    Function made = insertExplicitReshards(program.functions.front(), program.meshes);
    if (const Problems problems = verify(made, program.meshes); !problems.empty())
        qFatal("%s", describe(problems).c_str());
    return made;
}

} // namespace

/// What the golden cases leave out: loops, causes, what the passes make of each other.
class TestExplicitReshards : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void loops();
    void whileLoops();
    void branches();
    void computations();
    void barriers();
    void oneDevice();
    void customRules();
    void causes();
    void constraintsBecomeReshards();
    void unevenAxesAreDropped();
    void collectivesInPlaceOfReshards();
    void reductionsFuse();
    void aKeptReductionDoesNotFuse();
    void partitionedTexts_data();
    void partitionedTexts();
    void unevenSequencesGiveWay();
};

/// Carries, stacked operands and what is yielded are brought into the loop's layouts, and the body is made explicit too.
void TestExplicitReshards::loops()
{
    Sketch s;
    const ValueId start = s.argument("start", {8, 8}, "[{\"a\"}, {}]");
    const ValueId stack = s.argument("stack", {3, 8, 8}, "[{}, {\"b\"}, {}]");
    RepeatAttributes attributes;
    attributes.count = 3;
    attributes.carries = 1;
    attributes.stacked = 1;
    const OpId repeat = s.b.beginRepeat(attributes, {start, stack});
    const auto arguments = s.function[s.b.block()].arguments;
    s.lies(arguments[0], "[{}, {\"a\"}]");
    s.lies(arguments[1], "[{}, {\"a\"}]");
    const ValueId sum = s.b.binary(OpKind::Add, arguments[0], arguments[1]);
    s.lies(sum, "[{\"a\"}, {}]");
    s.b.setResults({sum});
    const ValueId result = s.b.endRepeat(repeat).front();
    s.lies(result, "[{}, {\"a\"}]");
    s.b.setResults({result});
    s.function.resultShardings = {s.function[result].sharding};

    const Function made = insertExplicitReshards(s.function, s.meshes);
    QVERIFY2(verify(made, s.meshes).empty(), describe(verify(made, s.meshes)).c_str());
    QCOMPARE(opsOf(s, made, kBody), (QStringList{"reshard [{}, {\"a\"}]", "reshard [{}, {}, {\"a\"}]", "repeat [{}, {\"a\"}]"}));
    const BlockId body = made[made.body().ops.back()].bodies.front();
    // The operands outweigh the result, which is brought to what was declared, and then to the carry.
    QCOMPARE(opsOf(s, made, body), (QStringList{"add [{}, {\"a\"}]", "reshard [{\"a\"}, {}]", "reshard [{}, {\"a\"}]"}));

    const Function moved = reshardsToCollectives(made, s.meshes, BytesThenStepsCost(), {.style = ReshardStyle::Shardy});
    QVERIFY(opsOf(s, moved, body).filter("reshard").isEmpty());
    QCOMPARE(collectivesOnArrays(moved, s.meshes).back().count, 3);
}

/// What a while carries comes as its blocks take it, and goes on as they take it.
void TestExplicitReshards::whileLoops()
{
    const Program program = programOf(
        "%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {}]>}, %n: tensor<f32>) -> tensor<8x8xf32>",
        R"(%0:2 = stablehlo.while(%c = %x, %s = %n) : tensor<8x8xf32>, tensor<f32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>, <@mesh, []>]>}
cond {
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.compare LT, %s, %z, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %1 : tensor<i1>
} do {
  %1 = stablehlo.negate %c {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {}]>]>} : tensor<8x8xf32>
  %2 = stablehlo.add %s, %s : tensor<f32>
  stablehlo.return %1, %2 : tensor<8x8xf32>, tensor<f32>
}
return %0#0 : tensor<8x8xf32>)");
    Program shaped = program; // the blocks' arguments lie as the results do, which propagation would say
    Function& function = shaped.functions.front();
    const Op loop = function[function.body().ops.front()];
    for (const BlockId body : loop.bodies) {
        for (std::size_t i = 0; i < loop.results.size(); ++i)
            function[function[body].arguments[i]].sharding = function[loop.results[i]].sharding;
    }
    const Function made = explicitly(shaped);
    QCOMPARE(linesOf(shaped, made, kBody), (QStringList{"reshard [{}, {\"a\"}]", "while [{}, {\"a\"}]", "reshard [{}, {}]"}));
    const BlockId body = made[made.body().ops[1]].bodies.back();
    QCOMPARE(linesOf(shaped, made, body).filter("reshard").size(), 2);
    QCOMPARE(linesOf(shaped, made, body).back(), QString("reshard [{}, {\"a\"}]"));
}

/// Each branch gives its result as the whole op does.
void TestExplicitReshards::branches()
{
    const Program program = programOf(
        "%i: tensor<i32>, %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {}]>}) -> tensor<8x8xf32>",
        R"(%0 = "stablehlo.case"(%i) ({
  %1 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : tensor<8x8xf32>
  stablehlo.return %1 : tensor<8x8xf32>
}, {
  stablehlo.return %x : tensor<8x8xf32>
}) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} : (tensor<i32>) -> tensor<8x8xf32>
return %0 : tensor<8x8xf32>)");
    Program shaped = program;
    Function& function = shaped.functions.front();
    for (const BlockId body : function[function.body().ops.front()].bodies)
        function[function[body].arguments.front()].sharding = function[function.arguments()[1]].sharding;
    const Function made = explicitly(shaped);
    const Op& branches = made[made.body().ops.front()];
    QCOMPARE(linesOf(shaped, made, branches.bodies[0]), (QStringList{"negate [{\"a\"}, {}]", "reshard [{}, {\"a\"}]"}));
    QCOMPARE(linesOf(shaped, made, branches.bodies[1]), (QStringList{"reshard [{}, {\"a\"}]"}));
}

/// Operands come as a computation says; inside it, its manual axes split nothing.
void TestExplicitReshards::computations()
{
    const Program program = programOf(
        "%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"b\"}, {}]>}) -> tensor<8x8xf32>",
        R"(%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {"b"}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"a"} (%y: tensor<2x8xf32>) {
  %1 = stablehlo.negate %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {}]>]>} : tensor<2x8xf32>
  sdy.return %1 : tensor<2x8xf32>
} : (tensor<8x8xf32>) -> tensor<8x8xf32>
return %0 : tensor<8x8xf32>)");
    Program shaped = program;
    Function& function = shaped.functions.front();
    const Op block = function[function.body().ops.front()];
    TensorSharding inside = TensorSharding::replicatedOf(2);
    inside.dims[1].axes = {{1, 1, 2}};
    function[function[block.bodies.front()].arguments.front()].sharding = inside;
    function[block.results.front()].sharding = block.as<ComputationAttributes>().outShardings.front();
    const Function made = explicitly(shaped);
    QCOMPARE(linesOf(shaped, made, kBody).mid(0, 1), (QStringList{"reshard [{\"a\"}, {\"b\"}]"}));
    const BlockId body = made[made.body().ops[1]].bodies.front();
    QCOMPARE(linesOf(shaped, made, body).back(), QString("reshard [{}, {\"b\"}]"));
    QCOMPARE(
        linesOf(shaped, made, body).filter("reshard").size(), 2); // to what the result is declared as, and to what is given back
}

void TestExplicitReshards::barriers()
{
    const Program program = programOf(
        "%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {}]>}) -> tensor<8x8xf32>",
        R"(%0 = stablehlo.optimization_barrier %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} : tensor<8x8xf32>
return %0 : tensor<8x8xf32>)");
    QCOMPARE(linesOf(program, explicitly(program), kBody).mid(0, 2),
        (QStringList{"reshard [{}, {\"a\"}]", "optimization_barrier [{}, {\"a\"}]"}));
}

/// To one device and back by the whole array.
void TestExplicitReshards::oneDevice()
{
    const Program program = programOf("%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {}]>}) -> "
                                      "(tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"b\"}, {}]>})",
        R"(%0 = stablehlo.custom_call @host(%x) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
return %0 : tensor<8x8xf32>)");
    QCOMPARE(linesOf(program, explicitly(program), kBody),
        (QStringList{
            "reshard [{}, {}]", "reshard one", "stablehlo.custom_call one", "reshard [{}, {}]", "reshard [{\"b\"}, {}]"}));
}

/// Who brings a rule of their own brings what goes with it.
void TestExplicitReshards::customRules()
{
    const Program program = programOf("%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {}]>}) -> "
                                      "(tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"b\"}, {}]>})",
        R"(%0 = stablehlo.custom_call @mine(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
return %0 : tensor<8x8xf32>)");
    QCOMPARE(linesOf(program, explicitly(program), kBody), (QStringList{"stablehlo.custom_call [{\"b\"}, {}]"}));
}

void TestExplicitReshards::causes()
{
    Sketch s;
    const ValueId x = s.argument("x", {8, 16}, "[{}, {\"b\"}]");
    const ValueId w = s.argument("w", {16, 8}, "[{\"b\"}, {}]");
    const ValueId y = s.b.matmul(x, w, DType::F32);
    s.lies(y, "[{\"a\"}, {}]");
    s.b.setResults({y});
    s.function.resultShardings = {s.function[y].sharding};
    const Function made = insertExplicitReshards(s.function, s.meshes);
    const auto uses = collectivesOnArrays(made, s.meshes);
    QCOMPARE(uses.size(), std::size_t{2});
    QCOMPARE(uses[0].kind, OpKind::Reshard);
    QCOMPARE(QString::fromStdString(uses[0].cause.reason),
        QString("dot_general needs x as P('a', 'b'), but it is sharded as P(None, 'b')"));
    QCOMPARE(uses[0].payloadBytes, 8 * 16 * 4 / 2);
    QCOMPARE(uses[1].kind, OpKind::AllReduce);
    QCOMPARE(uses[1].axes, std::string("b"));
    QCOMPARE(uses[1].payloadBytes, 8 * 8 * 4 / 4);
}

void TestExplicitReshards::constraintsBecomeReshards()
{
    Sketch s;
    const ValueId x = s.argument("x", {8, 8}, "[{\"a\"}, {}]");
    const ValueId y = s.b.constrain(x, valueOf(parseShardy("[{}, {\"a\"}]", s.meshes.front().mesh)), "here");
    s.b.setResults({y});
    constraintsToReshards(s.function);
    QCOMPARE(opsOf(s, s.function, kBody), QStringList{"reshard [{}, {\"a\"}]"});
    QVERIFY(verify(s.function, s.meshes).empty());
}

void TestExplicitReshards::unevenAxesAreDropped()
{
    Sketch s;
    const ValueId x = s.argument("x", {6, 8}, "[{\"b\", \"a\"}, {}]");
    s.b.setResults({x});
    dropUnevenAxes(s.function);
    QCOMPARE(shardyText(*s.function[x].sharding, s.meshes.front().mesh), std::string("[{\"b\"}, {}]"));
}

void TestExplicitReshards::collectivesInPlaceOfReshards()
{
    Sketch s;
    const ValueId x = s.argument("x", {8, 8}, "[{\"a\"}, {}]");
    CollectiveAttributes attributes;
    attributes.resultShape = {8, 8};
    const ValueId y = s.b.add(OpKind::Reshard, {x}, attributes);
    s.lies(y, "[{}, {\"b\", \"a\"}]");
    s.b.setResults({s.b.unary(OpKind::Exp, y)});
    const Function made = reshardsToCollectives(s.function, s.meshes, BytesThenStepsCost());
    QCOMPARE(opsOf(s, made, kBody),
        (QStringList{"all_slice [{\"a\"}, {\"b\"}]", "all_to_all [{}, {\"b\", \"a\"}]", "exponential none"}));
    for (const OpId op : made.body().ops)
        QCOMPARE(made[made[op].results.front()].type.shape, (Shape{8, 8}));
}

/// An all-reduce that only a reshard uses becomes a part of it.
void TestExplicitReshards::reductionsFuse()
{
    Sketch s;
    const ValueId x = s.argument("x", {8, 16}, "[{}, {\"b\"}]");
    const ValueId w = s.argument("w", {16, 8}, "[{\"b\"}, {}]");
    const ValueId y = s.b.matmul(x, w, DType::F32);
    s.lies(y, "[{\"b\"}, {}]");
    s.b.setResults({y});
    s.function.resultShardings = {s.function[y].sharding};
    const Function made = insertExplicitReshards(s.function, s.meshes);
    QCOMPARE(opsOf(s, made, kBody), (QStringList{"dot_general [{}, {}]", "all_reduce [{}, {}]", "reshard [{\"b\"}, {}]"}));
    const Function fused
        = reshardsToCollectives(made, s.meshes, BytesThenStepsCost(), {.style = ReshardStyle::Shardy, .fuseReductions = true});
    QCOMPARE(opsOf(s, fused, kBody), (QStringList{"dot_general [{}, {}]", "reduce_scatter [{\"b\"}, {}]"}));
    const Function apart = reshardsToCollectives(made, s.meshes, BytesThenStepsCost(), {.style = ReshardStyle::Shardy});
    QCOMPARE(opsOf(s, apart, kBody), (QStringList{"dot_general [{}, {}]", "all_reduce [{}, {}]", "all_slice [{\"b\"}, {}]"}));
}

void TestExplicitReshards::aKeptReductionDoesNotFuse()
{
    Sketch s;
    const ValueId x = s.argument("x", {8, 16}, "[{}, {\"b\"}]");
    const ValueId w = s.argument("w", {16, 8}, "[{\"b\"}, {}]");
    const ValueId y = s.b.matmul(x, w, DType::F32);
    s.lies(y, "[{}, {}]");
    const ValueId z = s.b.unary(OpKind::Exp, y);
    s.lies(z, "[{\"b\"}, {}]");
    s.b.setResults({y, z});
    s.function.resultShardings = {s.function[y].sharding, s.function[z].sharding};
    const Function made = reshardsToCollectives(insertExplicitReshards(s.function, s.meshes), s.meshes, BytesThenStepsCost(),
        {.style = ReshardStyle::Shardy, .fuseReductions = true});
    QCOMPARE(opsOf(s, made, kBody),
        (QStringList{"dot_general [{}, {}]", "all_reduce [{}, {}]", "all_slice [{\"b\"}, {}]", "exponential [{\"b\"}, {}]"}));
}

/// Texts as devices compute them with Shardy's reshards. What has no pieces of one size is computed whole.
void TestExplicitReshards::partitionedTexts_data()
{
    QTest::addColumn<QString>("signature");
    QTest::addColumn<QString>("body");
    QTest::addColumn<QStringList>("expected");
    const QString products = "%p: tensor<8x8xf32>, %v: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {}]>}) -> ";
    const QString ofB = "(tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"b\"}, {}]>}";
    const QString product
        = "%o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> "
          "tensor<8x8xf32>\n%w = sdy.sharding_constraint %o <@mesh, [{}, {}]> : tensor<8x8xf32>\n"
          "%r = stablehlo.tanh %w : tensor<8x8xf32>\n";
    QTest::newRow("two changes after one sum") << products + ofB + ")" << product + "return %r : tensor<8x8xf32>"
                                               << QStringList{"dot_general", "all_reduce", "all_slice", "tanh"};
    QTest::newRow("the first of them is kept")
        << products + ofB + ", tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})"
        << product + "return %r, %w : tensor<8x8xf32>, tensor<8x8xf32>"
        << QStringList{"dot_general", "all_reduce", "all_slice", "tanh"};
    QTest::newRow("windows of a stride")
        << "%x: tensor<4x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"a\", \"b\"}, {}]>}, %w: tensor<3x8x8xf32>) -> "
           "tensor<4x4x8xf32>"
        << "%r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[2, "
           "2]], "
           "rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8xf32>, "
           "tensor<3x8x8xf32>) -> tensor<4x4x8xf32>\nreturn %r : tensor<4x4x8xf32>"
        << QStringList{"all_gather", "stablehlo.convolution", "all_slice"};
    QTest::newRow("parts of other sizes")
        << "%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\", \"b\"}, {}]>}) -> tensor<14x4xf32>"
        << "%s = stablehlo.slice %x [0:3, 0:4] : (tensor<8x4xf32>) -> tensor<3x4xf32>\n"
           "%t = stablehlo.slice %x [5:8, 0:4] : (tensor<8x4xf32>) -> tensor<3x4xf32>\n"
           "%r = stablehlo.concatenate %x, %s, %t, dim = 0 : (tensor<8x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> "
           "tensor<14x4xf32>\nreturn %r : tensor<14x4xf32>"
        << QStringList{"all_gather", "slice", "all_gather", "slice", "all_gather", "concatenate"};
}

void TestExplicitReshards::partitionedTexts()
{
    QFETCH(QString, signature);
    QFETCH(QString, body);
    QFETCH(QStringList, expected);
    const auto made = propagateAndPartition(
        programOf(signature.toUtf8().constData(), body.toUtf8().constData()), {.style = ReshardStyle::Shardy});
    QVERIFY2(made, made ? "" : describe(made.error()).c_str());
    const Function& device = made->device.stages.front().functions.front().function;
    QStringList found;
    for (const OpId op : device.body().ops)
        found << QString::fromStdString(std::string(opName(device[op])));
    QCOMPARE(found, expected);
}

/// Shardy moves axes to dimensions that are too small for them, which pads; where that may not be, the cheapest way is taken.
void TestExplicitReshards::unevenSequencesGiveWay()
{
    Sketch s;
    const ValueId x = s.argument("x", {8, 2}, "[{\"b\"}, {}]");
    CollectiveAttributes attributes;
    attributes.resultShape = {8, 2};
    const ValueId y = s.b.add(OpKind::Reshard, {x}, attributes);
    s.lies(y, "[{\"a\"}, {}]");
    s.b.setResults({y});
    const CollectiveChoices even{.style = ReshardStyle::Shardy, .evenOnly = true};
    const Function made = reshardsToCollectives(s.function, s.meshes, BytesThenStepsCost(), even);
    for (const OpId op : made.body().ops) {
        const Value& value = made[made[op].results.front()];
        for (std::size_t dim = 0; dim < 2; ++dim)
            QCOMPARE(value.type.shape[dim] % shardCount(value.sharding->dims[dim].axes), 0);
    }
}

MESHWRIGHT_TEST(TestExplicitReshards)

} // namespace tst_explicit_reshards

#include "tst_explicit_reshards.moc"
