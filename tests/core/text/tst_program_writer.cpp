// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/builder.h"
#include "core/text/program_text.h"
#include "tests/test_class.h"

#include <functional>
#include <limits>

namespace tst_program_writer {

using namespace meshwright;

using BuildOp = std::function<ValueId(Builder&)>;

/// The exact text of ops, as MLIR prints StableHLO, CHLO and Shardy.
class TestProgramWriter : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void op_data();
    void op();
    void wholeModule();
    void repeat();
    void namesOfValues();
};

namespace {

Mesh xyMesh()
{
    return valueOf(Mesh::create({{"x", 2}, {"y", 4}}));
}

TensorSharding sharded(std::vector<AxisRefs> dims)
{
    TensorSharding sharding;
    for (AxisRefs& axes : dims)
        sharding.dims.push_back({std::move(axes), false, 0});
    return sharding;
}

const AxisRef kX{0, 1, 2};
const AxisRef kY{1, 1, 4};

ValueId argument(Builder& builder, std::size_t index)
{
    return builder.function().arguments()[index];
}

ValueId withSharding(Builder& builder, ValueId value, TensorSharding sharding)
{
    builder.function()[value].sharding = std::move(sharding);
    return value;
}

ValueId collective(Builder& builder, OpKind kind, CollectiveAttributes attributes, std::optional<TensorSharding> sharding)
{
    const ValueId value = builder.add(kind, {argument(builder, 0)}, std::move(attributes));
    builder.function()[value].sharding = std::move(sharding);
    return value;
}

ValueId blob(Builder& builder, TensorType type, std::string bytes)
{
    return builder.add(
        OpKind::Constant, {}, ConstantAttributes{std::move(type), {std::make_shared<const std::string>(std::move(bytes))}});
}

} // namespace

void TestProgramWriter::op_data()
{
    QTest::addColumn<BuildOp>("build");
    QTest::addColumn<QString>("expected");
    // Arguments: 0, 1: f32[8,4]; 2: f32[4,2]; 3: i32[8,4]; 4: i1[8,4]; 5: ui32[2]; 6: f32[]
    const auto row
        = [](const char* name, const BuildOp& build, const char* expected) { QTest::newRow(name) << build << QString(expected); };

    row(
        "add", [](Builder& b) { return b.binary(OpKind::Add, argument(b, 0), argument(b, 1)); },
        "%0 = stablehlo.add %arg0, %arg1 : tensor<8x4xf32>");
    row(
        "shift", [](Builder& b) { return b.binary(OpKind::ShiftRightLogical, argument(b, 3), argument(b, 3)); },
        "%0 = stablehlo.shift_right_logical %arg3, %arg3 : tensor<8x4xi32>");
    row(
        "exponential", [](Builder& b) { return b.unary(OpKind::Exp, argument(b, 0)); },
        "%0 = stablehlo.exponential %arg0 : tensor<8x4xf32>");
    row(
        "erf_inv", [](Builder& b) { return b.unary(OpKind::ErfInv, argument(b, 0)); },
        "%0 = chlo.erf_inv %arg0 : tensor<8x4xf32> -> tensor<8x4xf32>");
    row(
        "erfc", [](Builder& b) { return b.unary(OpKind::Erfc, argument(b, 0)); },
        "%0 = chlo.erfc %arg0 : tensor<8x4xf32> -> tensor<8x4xf32>");
    row(
        "two operands of CHLO", [](Builder& b) { return b.binary(OpKind::NextAfter, argument(b, 0), argument(b, 1)); },
        "%0 = chlo.next_after %arg0, %arg1 : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>");
    row(
        "complex", [](Builder& b) { return b.binary(OpKind::Complex, argument(b, 0), argument(b, 1)); },
        "%0 = stablehlo.complex %arg0, %arg1 : tensor<8x4xcomplex<f32>>");
    row(
        "numbers among the attributes",
        [](Builder& b) {
            return b.add(OpKind::ReducePrecision, {argument(b, 0)}, ReducePrecisionAttributes{5, 10});
        },
        "%0 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<8x4xf32>");
    row(
        "total order",
        [](Builder& b) {
            return b.add(OpKind::Compare, {argument(b, 0), argument(b, 1)}, CompareAttributes{CompareDirection::Less, true});
        },
        "%0 = stablehlo.compare LT, %arg0, %arg1, TOTALORDER : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>");
    row(
        "is_finite", [](Builder& b) { return b.unary(OpKind::IsFinite, argument(b, 0)); },
        "%0 = stablehlo.is_finite %arg0 : (tensor<8x4xf32>) -> tensor<8x4xi1>");
    row(
        "convert", [](Builder& b) { return b.convert(argument(b, 0), DType::BF16); },
        "%0 = stablehlo.convert %arg0 : (tensor<8x4xf32>) -> tensor<8x4xbf16>");
    row(
        "convert to the same", [](Builder& b) { return b.add(OpKind::Convert, {argument(b, 0)}, ConvertAttributes{DType::F32}); },
        "%0 = stablehlo.convert %arg0 : tensor<8x4xf32>");
    row(
        "bitcast", [](Builder& b) { return b.add(OpKind::BitcastConvert, {argument(b, 0)}, ConvertAttributes{DType::U32}); },
        "%0 = stablehlo.bitcast_convert %arg0 : (tensor<8x4xf32>) -> tensor<8x4xui32>");
    row(
        "compare floats", [](Builder& b) { return b.compare(CompareDirection::Equal, argument(b, 0), argument(b, 1)); },
        "%0 = stablehlo.compare EQ, %arg0, %arg1, FLOAT : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>");
    row(
        "compare integers", [](Builder& b) { return b.compare(CompareDirection::Less, argument(b, 3), argument(b, 3)); },
        "%0 = stablehlo.compare LT, %arg3, %arg3, SIGNED : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi1>");
    row(
        "compare unsigned", [](Builder& b) { return b.compare(CompareDirection::GreaterEqual, argument(b, 5), argument(b, 5)); },
        "%0 = stablehlo.compare GE, %arg5, %arg5, UNSIGNED : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xi1>");
    row(
        "select", [](Builder& b) { return b.select(argument(b, 4), argument(b, 0), argument(b, 1)); },
        "%0 = stablehlo.select %arg4, %arg0, %arg1 : tensor<8x4xi1>, tensor<8x4xf32>");
    row(
        "iota",
        [](Builder& b) {
            return b.iota({DType::S32, {3, 4}}, 1);
        },
        "%0 = stablehlo.iota dim = 1 : tensor<3x4xi32>");
    row(
        "broadcast a scalar",
        [](Builder& b) {
            return b.broadcast(argument(b, 6), {2, 3}, {});
        },
        "%0 = stablehlo.broadcast_in_dim %arg6, dims = [] : (tensor<f32>) -> tensor<2x3xf32>");
    row(
        "broadcast",
        [](Builder& b) {
            return b.broadcast(argument(b, 2), {4, 3, 2}, {0, 2});
        },
        "%0 = stablehlo.broadcast_in_dim %arg2, dims = [0, 2] : (tensor<4x2xf32>) -> tensor<4x3x2xf32>");
    row(
        "reshape", [](Builder& b) { return b.reshape(argument(b, 0), {32}); },
        "%0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<32xf32>");
    row(
        "transpose",
        [](Builder& b) {
            return b.transpose(argument(b, 0), {1, 0});
        },
        "%0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>");
    row(
        "dot_general", [](Builder& b) { return b.matmul(argument(b, 0), argument(b, 2), DType::F32); },
        "%0 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : "
        "(tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>");
    row(
        "dot_general with a batch",
        [](Builder& b) {
            return b.dot(argument(b, 0), argument(b, 1), {{0}, {0}, {1}, {1}, DType::F32, DType::F32});
        },
        "%0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, "
        "DEFAULT] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8xf32>");
    row(
        "dot_general in bf16", [](Builder& b) { return b.matmul(argument(b, 0), argument(b, 2), DType::BF16); },
        "%0 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT], algorithm = "
        "<lhs_precision_type = bf16, rhs_precision_type = bf16, "
        "accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, "
        "allow_imprecise_accumulation = false> : (tensor<8x4xf32>, "
        "tensor<4x2xf32>) -> tensor<8x2xf32>");
    row(
        "reduce", [](Builder& b) { return b.reduce(ReduceKind::Sum, argument(b, 0), {0}); },
        "%cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) "
        "-> tensor<4xf32>");
    row(
        "reduce by the maximum",
        [](Builder& b) {
            return b.reduce(ReduceKind::Max, argument(b, 0), {0, 1});
        },
        "%cst = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<8x4xf32>, "
        "tensor<f32>) -> tensor<f32>");
    row(
        "reduce by or", [](Builder& b) { return b.reduce(ReduceKind::Or, argument(b, 4), {1}); },
        "%c = stablehlo.constant dense<false> : tensor<i1>\n"
        "%0 = stablehlo.reduce(%arg4 init: %c) applies stablehlo.or across dimensions = [1] : (tensor<8x4xi1>, tensor<i1>) -> "
        "tensor<8xi1>");

    row(
        "constant",
        [](Builder& b) {
            return b.splat({DType::F32, {2}}, 1.5);
        },
        "%cst = stablehlo.constant dense<1.500000e+00> : tensor<2xf32>");
    row(
        "constant of integers",
        [](Builder& b) {
            return b.splat({DType::S32, {}}, -3);
        },
        "%c = stablehlo.constant dense<-3> : tensor<i32>");
    row(
        "constant of truth",
        [](Builder& b) {
            return b.splat({DType::Pred, {4}}, 1);
        },
        "%c = stablehlo.constant dense<true> : tensor<4xi1>");
    row(
        "largest unsigned",
        [](Builder& b) {
            return b.add(OpKind::Constant, {}, ConstantAttributes{{DType::U64, {}}, {std::int64_t{-1}}});
        },
        "%c = stablehlo.constant dense<18446744073709551615> : tensor<ui64>");
    row(
        "list",
        [](Builder& b) {
            return blob(b, {DType::S16, {2, 2}}, std::string("\x01\x00\xFF\xFF\x03\x00\x04\x00", 8));
        },
        "%c = stablehlo.constant dense<[[1, -1], [3, 4]]> : tensor<2x2xi16>");
    row(
        "list of floats",
        [](Builder& b) {
            return blob(b, {DType::BF16, {2}}, std::string("\x80\x3F\x80\x7F", 4));
        },
        "%cst = stablehlo.constant dense<[1.000000e+00, 0x7F80]> : tensor<2xbf16>");
    row(
        "no elements",
        [](Builder& b) {
            return blob(b, {DType::F32, {0, 3}}, {});
        },
        "%cst = stablehlo.constant dense<> : tensor<0x3xf32>");
    row(
        "long list",
        [](Builder& b) {
            return blob(b, {DType::U8, {101}}, std::string(101, '\x0A'));
        },
        qPrintable("%c = stablehlo.constant dense<\"0x" + QString("0A").repeated(101) + "\"> : tensor<101xui8>"));

    row(
        "random bits",
        [](Builder& b) {
            return b.add(OpKind::RandomBits, {argument(b, 5)}, RandomBitsAttributes{{DType::U32, {8}}, true});
        },
        "%0 = stablehlo.custom_call @meshwright.random_bits(%arg5) {mw.partitionable = true} : (tensor<2xui32>) -> "
        "tensor<8xui32>");
    row(
        "receive",
        [](Builder& b) {
            return b.add(OpKind::Receive, {}, TransferAttributes{{DType::F32, {8}}, 1, 7});
        },
        "%0 = stablehlo.custom_call @meshwright.recv() {has_side_effect = true, mw.channel = 7 : i32, mw.stage = 1 : i32} : () "
        "-> tensor<8xf32>");

    row(
        "constraint",
        [](Builder& b) {
            return b.constrain(argument(b, 0), sharded({{kX}, {}}), "");
        },
        "%0 = sdy.sharding_constraint %arg0 <@mesh, [{\"x\"}, {}]> : tensor<8x4xf32>");
    row(
        "sharding of an op",
        [](Builder& b) {
            return withSharding(b, b.unary(OpKind::Sine, argument(b, 0)), sharded({{kX, kY}, {}}));
        },
        "%0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\", \"y\"}, {}]>]>} : tensor<8x4xf32>");
    row(
        "sharding of a constant",
        [](Builder& b) {
            return withSharding(b, b.splat({DType::F32, {8}}, 0.0), sharded({{kX}}));
        },
        "%cst = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>} dense<0.000000e+00> : "
        "tensor<8xf32>");
    row(
        "partial",
        [](Builder& b) {
            TensorSharding sharding = sharded({{kX}, {}});
            sharding.dims[1].open = true;
            sharding.unreduced = {{1, 2, 2}};
            sharding.replicated = {{1, 1, 2}};
            return withSharding(b, b.unary(OpKind::Sine, argument(b, 0)), sharding);
        },
        "%0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {?}], replicated={\"y\":(1)2}, "
        "unreduced={\"y\":(2)2}>]>} : tensor<8x4xf32>");
    row(
        "name, phase and role",
        [](Builder& b) {
            b.setPhase(Phase::Backward);
            const ValueId value = b.named(b.unary(OpKind::Tanh, argument(b, 0)), "grad \"w\"");
            b.function()[value].role = Role::Gradient;
            return value;
        },
        R"(%0 = stablehlo.tanh %arg0 {mw.name = "grad \22w\22", mw.phase = "backward", mw.role = "gradient"} : tensor<8x4xf32>)");

    row(
        "all_reduce",
        [](Builder& b) {
            return collective(b, OpKind::AllReduce, {{kY}, {}, {}, ReduceKind::Sum, {}, {}, {}, {}}, sharded({{kX}, {}}));
        },
        "%0 = sdy.all_reduce {\"y\"} %arg0 out_sharding=<@mesh, [{\"x\"}, {}]> : tensor<8x4xf32>");
    row(
        "all_gather",
        [](Builder& b) {
            return collective(b, OpKind::AllGather, {{kX}, {{kX}, {}}, {}, ReduceKind::Sum, {}, {}, {}, {}}, sharded({{}, {}}));
        },
        "%0 = sdy.all_gather [{\"x\"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : (tensor<8x4xf32>) -> tensor<16x4xf32>");
    row(
        "all_slice",
        [](Builder& b) {
            return collective(b, OpKind::AllSlice, {{kX}, {{}, {kX}}, {}, ReduceKind::Sum, {}, {}, {}, {}}, sharded({{}, {kX}}));
        },
        "%0 = sdy.all_slice [{}, {\"x\"}] %arg0 out_sharding=<@mesh, [{}, {\"x\"}]> : (tensor<8x4xf32>) -> tensor<8x2xf32>");
    row(
        "reduce_scatter",
        [](Builder& b) {
            return collective(b, OpKind::ReduceScatter,
                {{kY}, {{kY}, {}}, {}, ReduceKind::Max, {}, {}, {}, {"grad.w", "dot_general", "", "sharding.x"}},
                sharded({{kY}, {}}));
        },
        "%0 = sdy.reduce_scatter max [{\"y\"}, {}] %arg0 out_sharding=<@mesh, [{\"y\"}, {}]> {mw.cause = {annotation = "
        "\"sharding.x\", op = \"dot_general\", value = \"grad.w\"}} : (tensor<8x4xf32>) -> tensor<2x4xf32>");
    row(
        "all_to_all",
        [](Builder& b) {
            return collective(
                b, OpKind::AllToAll, {{kX}, {}, {{{kX}, 0, 1}}, ReduceKind::Sum, {}, {}, {}, {}}, sharded({{}, {kX}}));
        },
        "%0 = sdy.all_to_all [{\"x\"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {\"x\"}]> : (tensor<8x4xf32>) -> tensor<16x2xf32>");
    row(
        "collective_permute",
        [](Builder& b) {
            return collective(b, OpKind::CollectivePermute,
                {{}, {}, {}, ReduceKind::Sum, {8, 4}, {1, 0, 2, 3, 4, 5, 6, 7}, {}, {}}, sharded({{kX}, {}}));
        },
        "%0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{\"x\"}, {}]> {mw.sources = array<i64: 1, 0, 2, 3, 4, 5, 6, 7>} "
        ": tensor<8x4xf32>");
    row(
        "reshard",
        [](Builder& b) {
            return collective(b, OpKind::Reshard, {{}, {}, {}, ReduceKind::Sum, {16, 2}, {}, {}, {}}, sharded({{}, {kX}}));
        },
        "%0 = sdy.reshard %arg0 <@mesh, [{}, {\"x\"}]> : (tensor<8x4xf32>) -> tensor<16x2xf32>");
    row(
        "replicas become partial sums",
        [](Builder& b) {
            TensorSharding sharding = sharded({{}, {}});
            sharding.unreduced = {kX};
            return collective(b, OpKind::Reshard, {{kX}, {}, {}, ReduceKind::Sum, {8, 4}, {}, {}, {}}, sharding);
        },
        "%0 = sdy.replicated_to_unreduced {\"x\"} %arg0 out_sharding=<@mesh, [{}, {}], unreduced={\"x\"}> : tensor<8x4xf32>");
    row(
        "pieces become partial sums",
        [](Builder& b) {
            TensorSharding sharding = sharded({{}, {}});
            sharding.unreduced = {kX};
            return collective(b, OpKind::Reshard, {{kX}, {{kX}, {}}, {}, ReduceKind::Sum, {8, 4}, {}, {}, {}}, sharding);
        },
        "%0 = sdy.sharded_to_unreduced [{\"x\"}, {}] %arg0 out_sharding=<@mesh, [{}, {}], unreduced={\"x\"}> : tensor<8x4xf32>");
}

void TestProgramWriter::op()
{
    QFETCH(BuildOp, build);
    QFETCH(QString, expected);

    Program program;
    program.meshes.push_back({"mesh", xyMesh()});
    Function& function = program.functions.emplace_back();
    function.name = "main";
    Builder builder(function);
    for (const TensorType& type : {TensorType{DType::F32, {8, 4}}, {DType::F32, {8, 4}}, {DType::F32, {4, 2}},
             {DType::S32, {8, 4}}, {DType::Pred, {8, 4}}, {DType::U32, {2}}, {DType::F32, {}}})
        builder.argument(type);
    build(builder);
    builder.setResults({});

    const QStringList lines = QString::fromStdString(writeProgram(program)).split('\n');
    QCOMPARE(lines.mid(3, lines.size() - 7).replaceInStrings(QRegularExpression("^    "), "").join('\n'), expected);
}

void TestProgramWriter::wholeModule()
{
    Program program;
    program.meshes.push_back({"mesh", valueOf(Mesh::create({{"data", 4}, {"model", 2}}))});
    program.meshes.push_back({"ring", valueOf(Mesh::create({{"a", 2}, {"b", 2}}, {3, 2, 1, 0}))});
    Function& function = program.functions.emplace_back();
    function.name = "step";
    Builder builder(function);
    const ValueId x = builder.argument({DType::F32, {64, 256}}, "x", Role::Input);
    const ValueId w = builder.argument({DType::F32, {256, 256}}, "w", Role::Parameter);
    function[x].sharding = sharded({{{0, 1, 4}}, {}});
    function[x].annotation = "sharding.x";
    const ValueId y = builder.matmul(x, w, DType::F32);
    const ValueId next = builder.binary(OpKind::Subtract, w, w);
    builder.setResults({y, next}, {"loss", "w"});
    function.resultShardings = {std::nullopt, sharded({{}, {}})};
    function.donations = {{1, 1}};

    const char* expected = R"(module attributes {mw.version = 1 : i64} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  sdy.mesh @ring = <["a"=2, "b"=2], device_ids=[3, 2, 1, 0]>
  func.func public @step(%arg0: tensor<64x256xf32> {mw.annotation = "sharding.x", mw.name = "x", mw.role = "input", sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg1: tensor<256x256xf32> {mw.name = "w", mw.role = "parameter", tf.aliasing_output = 1 : i32}) -> (tensor<64x256xf32> {jax.result_info = "loss"}, tensor<256x256xf32> {jax.result_info = "w", sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
    %1 = stablehlo.subtract %arg1, %arg1 : tensor<256x256xf32>
    return %0, %1 : tensor<64x256xf32>, tensor<256x256xf32>
  }
}
)";
    QCOMPARE(QString::fromStdString(writeProgram(program)), QString(expected));
}

void TestProgramWriter::repeat()
{
    Program program;
    Function& function = program.functions.emplace_back();
    function.name = "main";
    Builder builder(function);
    const ValueId h = builder.argument({DType::F32, {4}});
    const ValueId w = builder.argument({DType::F32, {3, 4}});
    const OpId repeat = builder.beginRepeat({3, 1, 1, true}, {h, w});
    const auto& arguments = function[builder.block()].arguments;
    const ValueId next = builder.binary(OpKind::Multiply, arguments[0], arguments[1]);
    builder.setResults({next, next});
    const std::vector<ValueId> results = builder.endRepeat(repeat);
    builder.setResults({results[1]});

    // Values inside are numbered after all of the function's, c and cst share one running number, as MLIR does it.
    const char* expected = R"(module attributes {mw.version = 1 : i64} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %1:4 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0, %iterArg_1 = %arg1, %iterArg_2 = %0) : tensor<i32>, tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32> attributes {mw.carries = 1 : i64, mw.reversed, mw.stacked = 1 : i64}
    cond {
      %c_3 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %c_3 = stablehlo.constant dense<0> : tensor<i32>
      %c_4 = stablehlo.constant dense<2> : tensor<i32>
      %2 = stablehlo.subtract %c_4, %iterArg : tensor<i32>
      %3 = stablehlo.dynamic_slice %iterArg_1, %2, %c_3, sizes = [1, 4] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %4 = stablehlo.reshape %3 : (tensor<1x4xf32>) -> tensor<4xf32>
      %5 = stablehlo.multiply %iterArg_0, %4 : tensor<4xf32>
      %6 = stablehlo.reshape %5 : (tensor<4xf32>) -> tensor<1x4xf32>
      %7 = stablehlo.dynamic_update_slice %iterArg_2, %6, %2, %c_3 : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
      %c_5 = stablehlo.constant dense<1> : tensor<i32>
      %8 = stablehlo.add %iterArg, %c_5 : tensor<i32>
      stablehlo.return %8, %5, %iterArg_1, %7 : tensor<i32>, tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
    }
    return %1#3 : tensor<3x4xf32>
  }
}
)";
    QCOMPARE(QString::fromStdString(writeProgram(program)), QString(expected));
}

/// What values are called is what stands in the text, constants and dead ops included.
void TestProgramWriter::namesOfValues()
{
    Program program;
    program.functions.emplace_back();
    Function& function = program.functions.front();
    function.name = "f";
    Builder b(function);
    const ValueId x = b.argument({DType::F32, {4}}, "x");
    const ValueId one = b.splat({DType::F32, {4}}, 1.0);
    const ValueId sum = b.binary(OpKind::Add, x, one);
    const ValueId total = b.reduce(ReduceKind::Sum, sum, {0});
    const ValueId last = b.unary(OpKind::Exp, total);
    b.setResults({last});
    const std::vector<std::string> names = valueNames(program, function);
    QCOMPARE(names, (std::vector<std::string>{"%arg0", "%cst", "%0", "%1", "%2"}));
    QVERIFY(writeProgram(program).find(names[last.at()] + " = stablehlo.exponential " + names[total.at()]) != std::string::npos
        || writeProgram(program).find(names[last.at()] + " = stablehlo.exp") != std::string::npos);
}

MESHWRIGHT_TEST(TestProgramWriter)

} // namespace tst_program_writer

#include "tst_program_writer.moc"
