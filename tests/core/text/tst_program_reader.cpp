// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/verify.h"
#include "core/support/file.h"
#include "core/text/program_text.h"
#include "tests/core/text/compare_programs.h"
#include "tests/test_class.h"

#include <QRegularExpression>

namespace tst_program_reader {

using namespace meshwright;

/// Text that JAX, people and other tools write, and text that is wrong.
class TestProgramReader : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void examples_data();
    void examples();
    void mlpIsInlined();
    void constraintExample();
    void sameAsGenericForm();
    void genericModule_data();
    void genericModule();
    void genericNames();
    void aliases();
    void rawConvolution();
    void regroupedBytes_data();
    void regroupedBytes();
    void genericCollectives();
    void annotationsOfOthers();
    void scan();
    void reversedScan();
    void counterAsAValue();
    void countersAlone();
    void turns_data();
    void turns();
    void unrolledToNothing();
    void reduceWithAnotherStart();
    void reducerBodies();
    void scalarPredicate();
    void constants_data();
    void constants();
    void globalCollectives();
    void privateFunctionTwice();
    void errors_data();
    void errors();
    void fixesOfAnnotations_data();
    void fixesOfAnnotations();
    void manyErrorsAtOnce();
    void faultsInSeveralFunctions();
    void unknownOps();
    void deepNesting();
    void callsTooDeep();
    void callsTooMany_data();
    void callsTooMany();
};

namespace {

Program readGood(const std::string& text)
{
    auto program = readProgram(text, "test.mlir");
    if (!program) {
        qWarning("%s", describe(program.error()).c_str());
        return {};
    }
    if (const Problems problems = verify(*program); !problems.empty())
        qWarning("%s", describe(problems).c_str());
    return *std::move(program);
}

/// The program alone, without what the text says beside it.
Program withoutKept(const Program& program)
{
    Program bare;
    bare.meshes = program.meshes;
    bare.functions = program.functions;
    for (Function& function : bare.functions) {
        function.kept = {};
        function.resultsKept = {};
        for (Op& op : function.ops)
            op.kept = nullptr;
        for (Value& value : function.values)
            value.kept = nullptr;
    }
    return bare;
}

/// The kinds of the live ops in order, the ops of bodies in brackets.
std::string kindsOf(const Function& function, BlockId block = BlockId(std::int32_t{0}))
{
    std::string text;
    for (const OpId op : function[block].ops) {
        text += (text.empty() ? "" : " ") + std::string(opName(function[op].kind));
        for (const BlockId body : function[op].bodies)
            text += "[" + kindsOf(function, body) + "]";
    }
    return text;
}

std::string inMain(
    const std::string& body, const std::string& arguments = "%x: tensor<4xf32>", const std::string& results = "tensor<4xf32>")
{
    return "func.func @main(" + arguments + ") -> " + results + " {\n" + body + "\n}\n";
}

} // namespace

void TestProgramReader::examples_data()
{
    QTest::addColumn<QString>("kinds");
    QTest::newRow("elementwise") << "sine";
    QTest::newRow("copy") << "reshape";
    QTest::newRow("matmul") << "dot_general";
    QTest::newRow("constraint") << "add sharding_constraint sine sharding_constraint";
    QTest::newRow("mlp") << "dot_general broadcast_in_dim broadcast_in_dim add constant broadcast_in_dim maximum dot_general "
                            "subtract multiply reduce constant divide";
}

void TestProgramReader::examples()
{
    QFETCH(QString, kinds);
    const std::string path = std::string(MESHWRIGHT_SOURCE_DIR "/resources/examples/") + QTest::currentDataTag() + ".mlir";
    const Program program = readGood(valueOf(readFile(path)));
    QCOMPARE(program.functions.size(), std::size_t{1});
    QCOMPARE(QString::fromStdString(kindsOf(program.functions.front())), kinds);
    QCOMPARE(differenceOf(program, readGood(writeProgram(program))), std::string());
}

void TestProgramReader::mlpIsInlined()
{
    const Program program = readGood(valueOf(readFile(MESHWRIGHT_SOURCE_DIR "/resources/examples/mlp.mlir")));
    const Function& function = program.functions.front();
    QCOMPARE(function.name, std::string("main"));
    QCOMPARE(function.resultNames, std::vector<std::string>{"loss"});
    const Value& w1 = function[function.arguments()[0]];
    QCOMPARE(w1.name, std::string("params['w1']"));
    QCOMPARE(w1.annotation, std::string("sdy.sharding of %arg0"));
    QCOMPARE(layoutText(*w1.sharding, program.meshes.front().mesh), std::string("P(None, 'model')"));
}

void TestProgramReader::constraintExample()
{
    const Program program = readGood(valueOf(readFile(MESHWRIGHT_SOURCE_DIR "/resources/examples/constraint.mlir")));
    const Function& function = program.functions.front();
    const Mesh& mesh = program.meshes.front().mesh;
    QCOMPARE(function[function.arguments()[0]].name, std::string("x"));
    QCOMPARE(layoutText(*function[function.arguments()[0]].sharding, mesh), std::string("P(('a', 'b'), 'c')"));
    QCOMPARE(layoutText(*function[function.results()[0]].sharding, mesh), std::string("P('a', ('b', 'c'))"));
    QCOMPARE(function[function.results()[0]].annotation, std::string("sdy.sharding_constraint of %0"));
    QVERIFY(function[function.results()[1]].sharding->isReplicated());
}

void TestProgramReader::sameAsGenericForm()
{
    const Program pretty = readGood(R"(
#loc = loc(unknown)
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4xf32> {mhlo.sharding = "{replicated}", mhlo.layout_mode = "default"} loc("a"), %arg1: tensor<4x2xf32> loc("b")) -> (tensor<2xf32> {jax.result_info = "out"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32> loc(#loc)
    %1 = stablehlo.compare  GT, %0, %0,  FLOAT : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xi1> loc(callsite("f"("x.py":3:4) at "g"))
    %2 = stablehlo.iota dim = 1 : tensor<8x2xf32>
    %3 = stablehlo.select %1, %0, %2 : tensor<8x2xi1>, tensor<8x2xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<8x2xf32>) -> tensor<2x8xf32>
    %cst = stablehlo.constant dense<0.0> : tensor<f32>
    %5 = stablehlo.reduce(%4 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
    return %5 : tensor<2xf32>
  }
}
)");
    const Program generic = readGood(R"(
module {
  func.func public @main(%a: tensor<8x4xf32>, %b: tensor<4x2xf32>) -> (tensor<2xf32> {jax.result_info = "out"}) {
    %0 = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    %1 = "stablehlo.compare"(%0, %0) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xi1>
    %2 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<8x2xf32>
    %3 = "stablehlo.select"(%1, %0, %2) : (tensor<8x2xi1>, tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
    %4 = "stablehlo.transpose"(%3) {permutation = dense<[1, 0]> : tensor<2xi64>} : (tensor<8x2xf32>) -> tensor<2x8xf32>
    %5 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.reduce"(%4, %5) <{dimensions = array<i64: 1>}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %7 = "stablehlo.add"(%l, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
    "func.return"(%6) : (tensor<2xf32>) -> ()
  }
}
)");
    QCOMPARE(pretty.functions.size(), std::size_t{1});
    QCOMPARE(differenceOf(withoutKept(pretty), withoutKept(generic)), std::string());
}

namespace {

constexpr const char* kPrettyModule = R"(
module @jit_f attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"), %arg1: tensor<4x2xf32> loc("w")) -> (tensor<8x2xf32> {jax.result_info = "out", sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"data", ?}, {}]> : tensor<8x2xf32>
    %2 = sdy.propagation_barrier %1 allowed_direction=FORWARD : tensor<8x2xf32>
    %3 = sdy.manual_computation(%2) in_shardings=[<@mesh, [{"data"}, {}]>] out_shardings=[<@mesh, [{"data"}, {}]>] manual_axes={"data", "model"} (%arg2: tensor<4x2xf32>) {
      %5 = stablehlo.sine %arg2 : tensor<4x2xf32>
      sdy.return %5 : tensor<4x2xf32>
    } : (tensor<8x2xf32>) -> tensor<8x2xf32>
    %4 = call @relu(%3) : (tensor<8x2xf32>) -> tensor<8x2xf32>
    return %4 : tensor<8x2xf32>
  }
  func.func private @relu(%arg0: tensor<8x2xf32>) -> tensor<8x2xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x2xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<8x2xf32>
    return %1 : tensor<8x2xf32>
  }
})";

/// The same as `mlir-opt --mlir-print-op-generic` prints it.
constexpr const char* kGenericModule = R"(
#loc = loc(unknown)
#loc1 = loc("x")
"builtin.module"() <{sym_name = "jit_f"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["data"=2, "model"=2]>, sym_name = "mesh"}> : () -> () loc(#loc)
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, {}], function_type = (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>, res_attrs = [{jax.result_info = "out", sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<8x4xf32> loc("x"), %arg1: tensor<4x2xf32> loc("w")):
    %0 = "stablehlo.dot_general"(%arg0, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32> loc(#loc)
    %1 = "sdy.sharding_constraint"(%0) <{sharding = #sdy.sharding<@mesh, [{"data", ?}, {}]>}> : (tensor<8x2xf32>) -> tensor<8x2xf32> loc(#loc)
    %2 = "sdy.propagation_barrier"(%1) <{allowed_direction = 1 : i32}> : (tensor<8x2xf32>) -> tensor<8x2xf32> loc(#loc)
    %3 = "sdy.manual_computation"(%2) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>, manual_axes = #sdy<manual_axes{"data", "model"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>}> ({
    ^bb0(%arg2: tensor<4x2xf32> loc(unknown)):
      %5 = "stablehlo.sine"(%arg2) : (tensor<4x2xf32>) -> tensor<4x2xf32> loc(#loc)
      "sdy.return"(%5) : (tensor<4x2xf32>) -> () loc(#loc)
    }) : (tensor<8x2xf32>) -> tensor<8x2xf32> loc(#loc)
    %4 = "func.call"(%3) <{callee = @relu}> : (tensor<8x2xf32>) -> tensor<8x2xf32> loc(#loc)
    "func.return"(%4) : (tensor<8x2xf32>) -> () loc(#loc)
  }) : () -> () loc(#loc)
  "func.func"() <{function_type = (tensor<8x2xf32>) -> tensor<8x2xf32>, sym_name = "relu", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<8x2xf32>):
    %0 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32> loc(#loc)
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8x2xf32> loc(#loc)
    %2 = "stablehlo.maximum"(%arg0, %1) : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32> loc(#loc)
    "func.return"(%2) : (tensor<8x2xf32>) -> () loc(#loc)
  }) : () -> () loc(#loc)
}) {mhlo.num_partitions = 4 : i32} : () -> () loc(#loc)
)";

/// The same as MLIR wrote it before ops had properties: attributes behind the region.
QString attributesBehind(QString text)
{
    static const QRegularExpression kFunction(R"(("func.func"\(\)|"builtin.module"\(\)) <(\{.*\})> \(\{\n)");
    // Functions end with their own line, in order.
    for (auto match = kFunction.match(text); match.hasMatch(); match = kFunction.match(text)) {
        const bool isModule = match.captured(1).contains("module");
        const QString own = match.captured(2);
        text.replace(match.capturedStart(), match.capturedLength(), match.captured(1) + " ({\n");
        const QString close = isModule ? "\n}) {" : "\n  }) : ";
        const qsizetype end = text.indexOf(close, match.capturedStart());
        const QString behind = isModule ? "\n}) " + own.chopped(1) + ", " : "\n  }) " + own + " : ";
        text.replace(end, close.size(), behind);
    }
    return text.replace(QRegularExpression(R"("sdy.mesh"\(\) <(\{.*\})> :)"), R"("sdy.mesh"() \1 :)");
}

} // namespace

void TestProgramReader::genericModule_data()
{
    QTest::addColumn<QString>("generic");
    QTest::newRow("properties") << QString(kGenericModule);
    QTest::newRow("attributes behind the regions") << attributesBehind(kGenericModule);
}

void TestProgramReader::genericModule()
{
    QFETCH(QString, generic);
    const Program pretty = readGood(kPrettyModule);
    const Program read = readGood(generic.toStdString());
    QCOMPARE(read.functions.size(), std::size_t{1});
    QCOMPARE(differenceOf(withoutKept(pretty), withoutKept(read)), std::string());
    QCOMPARE(read.moduleName, std::string("jit_f"));
    QCOMPARE(read.kept, pretty.kept);
    QCOMPARE(read.functions.front().resultNames, std::vector<std::string>{"out"});
    // What is written is in the pretty form, and the same program.
    const std::string written = writeProgram(read);
    QVERIFY(QString::fromStdString(written).contains("func.func public @main("));
    QCOMPARE(differenceOf(read, readGood(written)), std::string());
}

/// Ours in the generic form is ours still; declarations and ops of other dialects are kept as they stand.
void TestProgramReader::genericNames()
{
    const Program read = readGood(R"("builtin.module"() ({
  "ml_program.global"() <{sym_name = "state", type = tensor<4xf32>}> : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> (), sym_name = "log", sym_visibility = "private"}> ({
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>), sym_name = "main", arg_attrs = [{mw.name = "layers.0.w"}]}> ({
  ^bb0(%arg0: tensor<4xf32>):
    "func.return"(%arg0) : (tensor<4xf32>) -> ()
  }) {mw.donations = [[0, 0]], llvm.emit_c_interface} : () -> ()
}) {mw.version = 1 : i32} : () -> ())");
    QCOMPARE(read.functions.size(), std::size_t{1});
    const Function& main = read.functions.front();
    QCOMPARE(main[main.arguments()[0]].name, std::string("layers.0.w"));
    QCOMPARE(main.kept.size(), std::size_t{1});
    QCOMPARE(main.kept.front().name, std::string("llvm.emit_c_interface"));
    QVERIFY(QString::fromStdString(read.rest).contains("\"ml_program.global\"() <{sym_name = \"state\""));
    QVERIFY(QString::fromStdString(read.rest).contains("sym_name = \"log\""));
    QCOMPARE(differenceOf(read, readGood(writeProgram(read))), std::string());
}

/// An alias before the module is what it stands for.
void TestProgramReader::aliases()
{
    const std::string inverse = "#stablehlo<fft_type IFFT>";
    const auto text = [](const std::string& type) {
        return inMain("  %0 = \"stablehlo.fft\"(%x) <{fft_length = array<i64: 4>, fft_type = " + type
                + "}> : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>\n  return %0 : tensor<4xcomplex<f32>>",
            "%x: tensor<4xcomplex<f32>>", "tensor<4xcomplex<f32>>");
    };
    const Program plain = readGood(text(inverse));
    const Program aliased = readGood("#type = " + inverse + "\n" + text("#type"));
    QCOMPARE(writeProgram(withoutKept(aliased)), writeProgram(withoutKept(plain)));
    QVERIFY(QString::fromStdString(writeProgram(aliased)).contains("type = IFFT"));
}

/// Numbers that name each dimension are written as the op's own form has them.
void TestProgramReader::rawConvolution()
{
    const Program program
        = readGood(inMain(R"(  %0 = "stablehlo.convolution"(%x, %w) {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
    dimension_numbers = #stablehlo.conv<raw
      input_batch_dimension = 2, input_feature_dimension = 0, input_spatial_dimensions = [1],
      kernel_input_feature_dimension = 1, kernel_output_feature_dimension = 2, kernel_spatial_dimensions = [0],
      output_batch_dimension = 0, output_feature_dimension = 2, output_spatial_dimensions = [1]>
  } : (tensor<1x4x2xf32>, tensor<3x1x5xf32>) -> tensor<2x2x5xf32>
  return %0 : tensor<2x2x5xf32>)",
            "%x: tensor<1x4x2xf32>, %w: tensor<3x1x5xf32>", "tensor<2x2x5xf32>"));
    const std::string written = writeProgram(program);
    QVERIFY2(written.find("dim_numbers = [f, 0, b]x[0, i, o]->[b, 0, f]") != std::string::npos, written.c_str());
    QCOMPARE(differenceOf(readGood(written), program), std::string());
}

void TestProgramReader::regroupedBytes_data()
{
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<int>("ops");
    QTest::newRow("bytes of integers") << "4xi32"
                                       << "4x4xi8" << 1;
    QTest::newRow("bytes of numbers") << "4xf32"
                                      << "4x4xui8" << 2;
    QTest::newRow("numbers of bytes") << "4x2xi8"
                                      << "4xbf16" << 2;
    QTest::newRow("numbers of shorter ones") << "4x2xf32"
                                             << "4xf64" << 3;
}

/// The bytes of floating numbers are regrouped as those of integers.
void TestProgramReader::regroupedBytes()
{
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(int, ops);
    const QString source = "tensor<" + from + ">";
    const QString made = "tensor<" + to + ">";
    const Program program = readGood(inMain(
        QString("  %0 = stablehlo.bitcast_convert %x : (" + source + ") -> " + made + "\n  return %0 : " + made).toStdString(),
        QString("%x: " + source).toStdString(), made.toStdString()));
    const Function& function = program.functions.front();
    QCOMPARE(function.body().ops.size(), static_cast<std::size_t>(ops));
    for (const OpId op : function.body().ops) {
        if (function[op].kind == OpKind::BitcastRegroup)
            QVERIFY(isInteger(function[function[op].operands.front()].type.dtype)
                && isInteger(function[function[op].results.front()].type.dtype));
    }
}

void TestProgramReader::genericCollectives()
{
    const auto read = [](const char* ops) {
        return readGood(R"(sdy.mesh @m = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> tensor<8x8xf32> {
)" + std::string(ops)
            + "  return %6 : tensor<8x8xf32>\n}");
    };
    const Program pretty = read(R"(  %0 = sdy.all_gather [{"x"}, {}] %a out_sharding=<@m, [{}, {"y"}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{"x"}, {}] %0 out_sharding=<@m, [{"x"}, {"y"}]> : tensor<8x8xf32>
  %2 = sdy.all_to_all [{"y"}: 1->0] %1 out_sharding=<@m, [{"x", "y"}, {}]> : tensor<8x8xf32>
  %3 = sdy.collective_permute %2 out_sharding=<@m, [{"y", "x"}, {}]> : tensor<8x8xf32>
  %4 = sdy.all_gather [{"x"}, {}] %3 out_sharding=<@m, [{"y"}, {}]> : tensor<8x8xf32>
  %5 = sdy.all_reduce {"x"} %4 out_sharding=<@m, [{"y"}, {}]> : tensor<8x8xf32>
  %6 = sdy.reduce_scatter [{}, {"x"}] %5 out_sharding=<@m, [{"y"}, {"x"}]> : tensor<8x8xf32>
)");
    const Program generic = read(
        R"(  %0 = "sdy.all_gather"(%a) <{gathering_axes = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, out_sharding = #sdy.sharding<@m, [{}, {"y"}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "sdy.all_slice"(%0) <{out_sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>, slicing_axes = #sdy<list_of_axis_ref_lists[{"x"}, {}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = "sdy.all_to_all"(%1) <{out_sharding = #sdy.sharding<@m, [{"x", "y"}, {}]>, params = #sdy<all_to_all_param_list[{"y"}: 1->0]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = "sdy.collective_permute"(%2) <{out_sharding = #sdy.sharding<@m, [{"y", "x"}, {}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = "sdy.all_gather"(%3) <{gathering_axes = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, out_sharding = #sdy.sharding<@m, [{"y"}, {}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = "sdy.all_reduce"(%4) <{out_sharding = #sdy.sharding<@m, [{"y"}, {}]>, reduction_axes = #sdy<axis_ref_list{"x"}>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %6 = "sdy.reduce_scatter"(%5) <{out_sharding = #sdy.sharding<@m, [{"y"}, {"x"}]>, reduce_scatter_axes = #sdy<list_of_axis_ref_lists[{}, {"x"}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
)");
    QCOMPARE(kindsOf(pretty.functions.front()), kindsOf(generic.functions.front()));
    QCOMPARE(differenceOf(withoutKept(pretty), withoutKept(generic)), std::string());
}

void TestProgramReader::annotationsOfOthers()
{
    const Program program = readGood(R"(sdy.mesh @m = <["x"=4, "one"=1]>
func.func @main(%weights: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "one"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.sine %weights {sdy.sharding = #sdy.sharding_per_value<[<mesh<["x"=4, "one"=1]>, [{"x":(1)2, ?}p1]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
})");
    const Function& function = program.functions.front();
    QCOMPARE(function[function.arguments()[0]].name, std::string("weights"));
    QCOMPARE(function[function.arguments()[0]].annotation, std::string("sdy.sharding of %weights"));
    QCOMPARE(function[function.results()[0]].annotation, std::string("sdy.sharding of stablehlo.sine"));
    QCOMPARE(program.meshes.size(), std::size_t{1}); // the one written in place is the same
    const DimSharding expected{{{0, 1, 4}}, false, 0}; // without the axis of size 1
    QCOMPARE(function[function.arguments()[0]].sharding->dims.front(), expected);
}

/// As JAX lowers `lax.scan`: two counters, everything through a closed call, slices through functions of their own.
void TestProgramReader::scan()
{
    const Program program = readGood(R"(
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<6x4xf32>, %arg2: tensor<4xf32>) -> (tensor<4xf32> {jax.result_info = "[0]"}, tensor<6x4xf32> {jax.result_info = "[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1:6 = stablehlo.while(%iterArg = %arg1, %iterArg_1 = %arg2, %iterArg_2 = %c_0, %iterArg_3 = %c, %iterArg_4 = %arg0, %iterArg_5 = %0) : tensor<6x4xf32>, tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<4xf32>, tensor<6x4xf32>
    cond {
      %c_6 = stablehlo.constant dense<6> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg_2, %c_6, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2:3 = func.call @closed_call(%iterArg, %iterArg_1, %iterArg_3, %iterArg_4, %iterArg_5) : (tensor<6x4xf32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>, tensor<6x4xf32>) -> (tensor<i32>, tensor<4xf32>, tensor<6x4xf32>)
      %c_6 = stablehlo.constant dense<1> : tensor<i32>
      %3 = stablehlo.add %iterArg_2, %c_6 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_1, %3, %2#0, %2#1, %2#2 : tensor<6x4xf32>, tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<4xf32>, tensor<6x4xf32>
    }
    return %1#4, %1#5 : tensor<4xf32>, tensor<6x4xf32>
  }
  func.func private @closed_call(%arg0: tensor<6x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<i32>, %arg3: tensor<4xf32>, %arg4: tensor<6x4xf32>) -> (tensor<i32>, tensor<4xf32>, tensor<6x4xf32>) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %arg2, %c : tensor<i32>
    %1 = call @dynamic_index_in_dim(%arg0, %arg2) : (tensor<6x4xf32>, tensor<i32>) -> tensor<4xf32>
    %2 = stablehlo.multiply %arg3, %1 : tensor<4xf32>
    %3 = stablehlo.add %2, %arg1 : tensor<4xf32>
    %4 = call @dynamic_update_index_in_dim(%arg4, %3, %arg2) : (tensor<6x4xf32>, tensor<4xf32>, tensor<i32>) -> tensor<6x4xf32>
    return %0, %3, %4 : tensor<i32>, tensor<4xf32>, tensor<6x4xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<6x4xf32>, %arg1: tensor<i32>) -> tensor<4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.compare LT, %arg1, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<6> : tensor<i32>
    %1 = stablehlo.add %arg1, %c_0 : tensor<i32>
    %2 = stablehlo.select %0, %1, %arg1 : tensor<i1>, tensor<i32>
    %3 = stablehlo.dynamic_slice %arg0, %2, %c, sizes = [1, 4] : (tensor<6x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %4 = stablehlo.reshape %3 : (tensor<1x4xf32>) -> tensor<4xf32>
    return %4 : tensor<4xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<6x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<i32>) -> tensor<6x4xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<6x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>
    return %1 : tensor<6x4xf32>
  }
})");
    QCOMPARE(program.functions.size(), std::size_t{1});
    const Function& function = program.functions.front();
    QCOMPARE(kindsOf(function), std::string("repeat[multiply add]"));
    const Op& repeat = function.ops.front();
    const RepeatAttributes expected{6, 1, 1, false};
    QCOMPARE(repeat.as<RepeatAttributes>(), expected);
    QCOMPARE(repeat.operands, (std::vector<ValueId>{function.arguments()[0], function.arguments()[1], function.arguments()[2]}));
    QCOMPARE(repeat.results, function.results());
    QCOMPARE(differenceOf(program, readGood(writeProgram(program))), std::string());
}

void TestProgramReader::reversedScan()
{
    const Program program = readGood(inMain(R"(  %c = stablehlo.constant dense<2> : tensor<i32>
  %last = stablehlo.constant dense<8> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %h = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LE, %i, %last, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %top = stablehlo.constant dense<5> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %half = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.subtract %top, %i : tensor<i32>
    %2 = stablehlo.add %1, %half : tensor<i32>
    %3 = stablehlo.dynamic_slice %w, %2, %zero, sizes = [1, 4] : (tensor<7x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %4 = stablehlo.reshape %3 : (tensor<1x4xf32>) -> tensor<4xf32>
    %5 = stablehlo.add %h, %4 : tensor<4xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %6 = stablehlo.add %one, %i : tensor<i32>
    stablehlo.return %6, %5 : tensor<i32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>)",
        "%x: tensor<4xf32>, %w: tensor<7x4xf32>"));
    QCOMPARE(program.functions.size(), std::size_t{1});
    QCOMPARE(kindsOf(program.functions.front()), std::string("repeat[add]"));
    const RepeatAttributes expected{7, 1, 1, true};
    QCOMPARE(program.functions.front().ops.front().as<RepeatAttributes>(), expected);
}

/// As `fori_loop(0, 5, lambda i, h: h * i + w)`: the counter is a number, the bound is carried along, w comes from outside.
void TestProgramReader::counterAsAValue()
{
    const Program program = readGood(inMain(R"(  %c = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<5> : tensor<i32>
  %two = stablehlo.constant dense<2.0> : tensor<4xf32>
  %0:3 = stablehlo.while(%i = %c, %limit = %n, %h = %x) : tensor<i32>, tensor<i32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %3 = stablehlo.multiply %h, %2 : tensor<4xf32>
    %4 = stablehlo.add %3, %w : tensor<4xf32>
    %5 = stablehlo.add %4, %two : tensor<4xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %limit, %5 : tensor<i32>, tensor<i32>, tensor<4xf32>
  }
  return %0#2, %0#0 : tensor<4xf32>, tensor<i32>)",
        "%x: tensor<4xf32>, %w: tensor<4xf32>", "(tensor<4xf32>, tensor<i32>)"));
    QCOMPARE(program.functions.size(), std::size_t{1});
    const Function& function = program.functions.front();
    QCOMPARE(kindsOf(function), std::string("iota repeat[convert broadcast_in_dim multiply add constant add] constant"));
    const RepeatAttributes expected{5, 1, 1, false};
    QCOMPARE(function.ops[1].as<RepeatAttributes>(), expected);
    QCOMPARE(std::get<std::int64_t>(function[function[function.results()[1]].producer].as<ConstantAttributes>().data.value),
        std::int64_t{5});
}

/// Nothing but a counter: all that is left of the loop is made for the results.
void TestProgramReader::countersAlone()
{
    const Program program = readGood(R"(func.func @main() -> tensor<i64> {
  %c = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %n = stablehlo.constant dense<10> : tensor<i64>
  %0:2 = stablehlo.while(%i = %c, %sum = %c) : tensor<i64>, tensor<i64>
  cond {
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %sum, %one : tensor<i64>
    %2 = stablehlo.add %i, %one : tensor<i64>
    stablehlo.return %2, %1 : tensor<i64>, tensor<i64>
  }
  return %0#0 : tensor<i64>
})");
    QCOMPARE(program.functions.size(), std::size_t{1});
    const Function& function = program.functions.front();
    const Op& made = function[function[function.results().front()].producer];
    QCOMPARE(std::get<std::int64_t>(made.as<ConstantAttributes>().data.value), std::int64_t{10});
}

void TestProgramReader::turns_data()
{
    QTest::addColumn<QByteArray>("type");
    QTest::addColumn<QByteArray>("compare"); // of the counter i and the bound n
    QTest::addColumn<qint64>("first");
    QTest::addColumn<qint64>("bound");
    QTest::addColumn<QByteArray>("op");
    QTest::addColumn<qint64>("step");
    QTest::addColumn<qint64>("turns"); // -1: not counted
    const auto row = [](const char* name, const char* type, const char* compare, qint64 first, qint64 bound, const char* op,
                         qint64 step, qint64 turns) {
        QTest::newRow(name) << QByteArray(type) << QByteArray(compare) << first << bound << QByteArray(op) << step << turns;
    };
    row("up to", "i32", "LT, %i, %n", 0, 10, "add", 3, 4);
    row("up to, with the end", "i32", "LE, %i, %n", 0, 9, "add", 3, 4);
    row("from the bound's side", "i32", "GT, %n, %i", 0, 10, "add", 3, 4);
    row("down to", "i32", "GT, %i, %n", 10, 0, "subtract", 3, 4);
    row("down to, with the end", "i32", "GE, %i, %n", 9, 0, "subtract", 3, 4);
    row("down by a negative number", "i32", "LT, %n, %i", 10, 0, "add", -1, 10);
    row("until it is there", "i32", "NE, %i, %n", 3, 10, "add", 1, 7);
    row("until it is there, downwards", "i32", "NE, %n, %i", 10, 4, "subtract", 2, 3);
    row("past the number that it waits for", "i32", "NE, %i, %n", 0, 7, "add", 2, -1);
    row("away from the bound", "i32", "LT, %i, %n", 0, 10, "add", -1, -1);
    row("that begins again behind the largest number", "ui8", "NE, %i, %n", 250, 3, "add", 1, -1);
    row("that never falls below zero", "ui32", "GE, %i, %n", 5, 0, "subtract", 1, -1);
    row("that is doubled", "i32", "LT, %i, %n", 1, 100, "multiply", 2, -1);
}

/// Loops that count from one number to another become repetitions, whichever way they count.
void TestProgramReader::turns()
{
    QFETCH(QByteArray, type);
    QFETCH(QByteArray, compare);
    QFETCH(qint64, first);
    QFETCH(qint64, bound);
    QFETCH(QByteArray, op);
    QFETCH(qint64, step);
    QFETCH(qint64, turns);
    const QByteArray tensor = "tensor<" + type + ">";
    const QByteArray sign = type.startsWith('u') ? "UNSIGNED" : "SIGNED";
    const QByteArray text = "  %c = stablehlo.constant dense<" + QByteArray::number(first) + "> : " + tensor
        + "\n  %n = stablehlo.constant dense<" + QByteArray::number(bound) + "> : " + tensor
        + "\n  %0:2 = stablehlo.while(%i = %c, %h = %x) : " + tensor + ", tensor<4xf32>\n  cond {\n    %1 = stablehlo.compare "
        + compare + ", " + sign + " : (" + tensor + ", " + tensor
        + ") -> tensor<i1>\n    stablehlo.return %1 : tensor<i1>\n  } do {\n    %s = stablehlo.constant dense<"
        + QByteArray::number(step) + "> : " + tensor + "\n    %1 = stablehlo." + op + " %i, %s : " + tensor
        + "\n    %2 = stablehlo.sine %h : tensor<4xf32>\n    stablehlo.return %1, %2 : " + tensor
        + ", tensor<4xf32>\n  }\n  return %0#1 : tensor<4xf32>";
    const Program program = readGood(inMain(text.toStdString()));
    const Function& function = program.functions.front();
    const Op& loop = function[function[function.results().front()].producer];
    QCOMPARE(loop.kind, turns < 0 ? OpKind::While : OpKind::Repeat);
    if (turns >= 0)
        QCOMPARE(loop.as<RepeatAttributes>().count, turns);
}

void TestProgramReader::unrolledToNothing()
{
    const Program program = readGood(inMain(R"(  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %h = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.sine %h : tensor<4xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>)"));
    QCOMPARE(program.functions.size(), std::size_t{1});
    QCOMPARE(program.functions.front().results(), program.functions.front().arguments());
}

void TestProgramReader::reduceWithAnotherStart()
{
    const Program program = readGood(inMain(R"(  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>)",
        "%x: tensor<4xf32>", "tensor<f32>"));
    QCOMPARE(kindsOf(program.functions.at(0)), std::string("constant reduce add"));
}

void TestProgramReader::reducerBodies()
{
    const Program program = readGood(inMain(R"(  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
   reducer(%a: tensor<f32>, %b: tensor<f32>) {
    %1 = stablehlo.maximum %b, %a : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }
  return %0 : tensor<f32>)",
        "%x: tensor<4xf32>", "tensor<f32>"));
    QCOMPARE(kindsOf(program.functions.at(0)), std::string("reduce"));
    QCOMPARE(program.functions[0].ops[0].as<ReduceAttributes>().kind, ReduceKind::Max);
}

void TestProgramReader::scalarPredicate()
{
    const Program program
        = readGood(inMain("  %0 = stablehlo.select %p, %x, %x : tensor<i1>, tensor<4xf32>\n  return %0 : tensor<4xf32>",
            "%x: tensor<4xf32>, %p: tensor<i1>"));
    QCOMPARE(kindsOf(program.functions.at(0)), std::string("broadcast_in_dim select"));
}

void TestProgramReader::constants_data()
{
    QTest::addColumn<QString>("literal");
    QTest::addColumn<QString>("again"); // as we write it

    const auto row = [](const char* literal, const char* again) { QTest::newRow(literal) << QString(literal) << QString(again); };
    row("dense<1> : tensor<2xf32>", "dense<1.000000e+00> : tensor<2xf32>");
    row("dense<0x7FC00000> : tensor<f32>", "dense<0x7FC00000> : tensor<f32>");
    row("dense<255> : tensor<i8>", "dense<-1> : tensor<i8>");
    row("dense<[ [1,2] ,\n [3, -4] ]> : tensor<2x2xi64>", "dense<[[1, 2], [3, -4]]> : tensor<2x2xi64>");
    row("dense<\"0x0000803F00000040\"> : tensor<2xf32>", "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>");
    row("dense<\"0x0000803F\"> : tensor<5xf32>", "dense<1.000000e+00> : tensor<5xf32>");
    row("dense<\"0x05\"> : tensor<3xi1>", "dense<[true, false, true]> : tensor<3xi1>");
    row("dense<[true, false]> : tensor<2xi1>", "dense<[true, false]> : tensor<2xi1>");
    row("dense<> : tensor<0xf32>", "dense<> : tensor<0xf32>");
    row("dense<[[], []]> : tensor<2x0xi32>", "dense<> : tensor<2x0xi32>");
    row("dense<0.1> : tensor<bf16>", "dense<1.000980e-01> : tensor<bf16>");
}

void TestProgramReader::constants()
{
    QFETCH(QString, literal);
    QFETCH(QString, again);
    const std::string type = literal.mid(literal.lastIndexOf("tensor")).toStdString();
    const Program program
        = readGood(inMain("  %c = stablehlo.constant " + literal.toStdString() + "\n  return %c : " + type, "", type));
    QCOMPARE(program.functions.size(), std::size_t{1});
    QVERIFY2(QString::fromStdString(writeProgram(program)).contains(again + "\n"), writeProgram(program).c_str());
}

/// Shardy's own text has global types: a gather is the identity with another sharding.
void TestProgramReader::globalCollectives()
{
    const Program program = readGood("sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]>\n"
        + inMain(R"(  %0 = sdy.all_gather [{"x"}] %x out_sharding=<@mesh, [{}]> :  tensor<4xf32>
  %1 = sdy.all_reduce {"y"} %0 out_sharding=<@mesh, [{}]> : tensor<4xf32>
  return %1 : tensor<4xf32>)",
            "%x: tensor<4xf32> {sdy.sharding=#sdy.sharding<@mesh, [{\"x\"}]>}"));
    QCOMPARE(kindsOf(program.functions.at(0)), std::string("sharding_constraint all_reduce"));
}

void TestProgramReader::privateFunctionTwice()
{
    const Program program = readGood(R"(module {
  func.func private @twice(%arg0: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<f32>
    return %0, %arg0 : tensor<f32>, tensor<f32>
  }
  func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
    %0:2 = call @twice(%arg0) : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %1:2 = call @twice(%0#0) : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %2 = stablehlo.add %1#0, %1#1 : tensor<f32>
    return %2 : tensor<f32>
  }
})");
    QCOMPARE(kindsOf(program.functions.at(0)), std::string("add add add"));
}

void TestProgramReader::errors_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("id");
    QTest::addColumn<int>("line");
    QTest::addColumn<int>("column");
    QTest::addColumn<QString>("message");

    const auto row = [](const char* name, const std::string& text, const char* id, int line, int column, const char* message) {
        QTest::newRow(name) << QString::fromStdString(text) << QString(id) << line << column << QString(message);
    };
    // One op on line 2, from column 3.
    const auto op = [&](const char* name, const char* body, const char* id, int column, const char* message) {
        row(name, inMain("  " + std::string(body) + "\n  return %x : tensor<4xf32>"), id, 2, column, message);
    };
    row("an op of another dialect that has no end", "other.op @main(%x: i<) {\n}\n", "MW1320", 3, 1,
        "expected a closing bracket");
    row("no text at all: nothing to read", "garbage", "MW1320", 1, 1, "expected 'func.func' or 'sdy.mesh', found 'garbage'");
    row("truncated module", "module {\n  func.func @main() {", "MW1320", 2, 22, "expected '}', found the end of the text");
    const auto inModule = [](const std::string& body) { return "\"builtin.module\"() ({\n" + body + "\n}) : () -> ()"; };
    row("a generic module without functions", "\"builtin.module\"() : () -> ()", "MW1320", 1, 20,
        "expected '({' and the functions of the module");
    row("a generic function without its name",
        inModule("\"func.func\"() <{function_type = () -> ()}> ({\n  \"func.return\"() : () -> ()\n}) : () -> ()"), "MW1326", 2,
        1, "func.func needs sym_name");
    row("a generic function without its type", inModule("\"func.func\"() <{sym_name = \"f\"}> ({\n}) : () -> ()"), "MW1326", 2, 1,
        "func.func needs function_type");
    row("a generic function of another type",
        inModule("\"func.func\"() <{function_type = (tensor<2xf32>) -> (), sym_name = \"f\"}> ({\n^bb0(%a: tensor<3xf32>):\n  "
                 "\"func.return\"() : () -> ()\n}) : () -> ()"),
        "MW1325", 2, 33, "function_type of @f has other arguments than its block");
    row("attributes for more arguments",
        inModule("\"func.func\"() <{arg_attrs = [{}], function_type = () -> (), sym_name = \"f\"}> ({\n  "
                 "\"func.return\"() : () -> ()\n}) : () -> ()"),
        "MW1326", 2, 29, "arg_attrs of @f has 1 entries, not 0");
    row("a generic mesh without axes", inModule("\"sdy.mesh\"() <{sym_name = \"m\"}> : () -> ()"), "MW1326", 2, 1,
        "sdy.mesh needs mesh");
    row("no return", "func.func @main() {\n}", "MW1320", 1, 11, "expected a return at the end of the block");
    row("op behind the return", inMain("  return %x : tensor<4xf32>\n  %0 = stablehlo.sine %x : tensor<4xf32>"), "MW1320", 3, 8,
        "nothing may follow the return");
    row("only private", "func.func private @f() {\n  return\n}", "MW1320", 1, 19, "all functions are private");
    row("NUL", inMain(std::string("  %0 = \0 %x", 11)), "MW1320", 2, 8, "found a byte of value 0");
    op("open string", "%0 = stablehlo.sine %x {a = \"b} : tensor<4xf32>", "MW1320", 31, "the string has no end on its line");
    op("no comma", "%0 = stablehlo.add %x %x [", "MW1320", 28, "expected an operand, an attribute or ':'");
    op("no op", "%0 = sine %x : tensor<4xf32>", "MW1321", 8, "sine is not an op");
    op("an odd name", "%0 = \"a b\"(%x) : (tensor<4xf32>) -> tensor<4xf32>", "MW1320", 8, "expected the name of an op");
    op("a form without types", "%0 = foo.bar %x, 3", "MW1321", 8, "foo.bar is not known, and shows no types");
    op("a form with blocks", "%0 = foo.bar(%x) { %1 = foo.baz } : tensor<4xf32>", "MW1321", 8,
        "foo.bar is not known, and has blocks");
    op("a form with odd types", "%0 = foo.bar %x : tensor<4xf32> and more", "MW1321", 8, "nor are its types");
    op("results of a kept op", "%0:2 = foo.bar %x : (tensor<4xf32>) -> tensor<4xf32>", "MW1325", 10,
        "2 results, but 1 result types");
    op("a start that is not an integer",
        "%0 = stablehlo.dynamic_slice %x, %x, sizes = [1] : (tensor<4xf32>, tensor<4xf32>) -> tensor<1xf32>", "MW1303", 8,
        "start 0 is f32[4]");
    op("no range", "%0 = stablehlo.slice %x [0] : (tensor<4xf32>) -> tensor<1xf32>", "MW1320", 29, "expected ':', found ']'");
    op("no part", "%0 = stablehlo.slice %x [2:5] : (tensor<4xf32>) -> tensor<3xf32>", "MW1304", 8,
        "2:5:1 is not a part of dim 0");
    op("no direction", "%0 = sdy.propagation_barrier %x allowed_direction=SIDEWAYS : tensor<4xf32>", "MW1326", 53,
        "NONE, FORWARD");
    op("a shape of a kept op", "%0 = chlo.bessel_i1e %x : tensor<4xf32> -> tensor<5xf32>", "MW1302", 8,
        "does not fit the result");
    op("gather",
        "%0 = \"stablehlo.gather\"(%x, %x) <{dimension_numbers = #stablehlo.gather<offset_dims = [-1]>, slice_sizes = "
        "array<i64: 1>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
        "MW1326", 8, "dimension numbers");
    op("dynamic size", "%0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<?xf32>", "MW1322", 50,
        "tensor<?xf32> is not supported");
    op("complex", "%0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xcomplex<i32>>", "MW1322", 50,
        "tensor<4xcomplex<i32>> is not supported");
    op("2^63", "%0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<4xf32>) -> tensor<9223372036854775808xf32>", "MW1322",
        78, "does not fit 64 bits");
    op("2^62 elements", "%0 = stablehlo.iota dim = 0 : tensor<4611686018427387904xf32>", "MW1322", 33, "does not fit 64 bits");
    op("nothing to concatenate", "%0 = stablehlo.concatenate dim = 0 : () -> tensor<4xf32>", "MW1301", 8,
        "concatenate: needs at least one operand, got 0");
    const auto convolution
        = [&](const char* name, const std::string& window, const char* result, const char* id, int column, const char* message) {
              row(name,
                  inMain("  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {" + window
                          + "} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x2xf32>, "
                            "tensor<3x2x4xf32>) -> "
                          + result + "\n  return %x : tensor<1x5x2xf32>",
                      "%x: tensor<1x5x2xf32>, %w: tensor<3x2x4xf32>", "tensor<1x5x2xf32>"),
                  id, 2, column, message);
          };
    convolution("more windows than fit", "stride = [1]", "tensor<1x4x4xf32>", "MW1302", 8,
        "3 windows fit along dim 1 of f32[1,5,2], but dim 1 of the result f32[1,4,4] is 4");
    convolution("a window's entry of no name", "stide = [2]", "tensor<1x2x4xf32>", "MW1326", 93, "has no \"stide\"");
    convolution("a stride of 0", "stride = [0]", "tensor<1x3x4xf32>", "MW1304", 8, "a stride or a dilation is below 1");
    convolution(
        "a reversal too many", "reverse = [true, false]", "tensor<1x3x4xf32>", "MW1304", 8, "do not fit 1 spatial dimensions");
    row("a convolution of two types",
        inMain(
            "  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = "
            "1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x1xi64>, tensor<3x1x1xi32>) -> tensor<1x2x1xi64>\n  return "
            "%0 : tensor<1x2x1xi64>",
            "%x: tensor<1x4x1xi64>, %w: tensor<3x1x1xi32>", "tensor<1x2x1xi64>"),
        "MW1303", 2, 8, "do not go together");
    convolution("a padding that is not of pairs", "pad = [[1, 0, 0, 1]]", "tensor<1x3x4xf32>", "MW1326", 100,
        "is not a pair for each dimension");
    convolution("a result of integers", "stride = [1]", "tensor<1x3x4xi32>", "MW1303", 8, "do not go together");
    const auto block = [&](const char* name, const std::string& text, const char* message) {
        row(name, inMain("  %z = stablehlo.constant dense<0.0> : tensor<f32>\n  %0 = " + text + "\n  return %x : tensor<4xf32>"),
            "MW1307", 3, 8, message);
    };
    const std::string sum = "    %s = stablehlo.add %a, %b : tensor<f32>\n    stablehlo.return %s : tensor<f32>\n  })";
    block("a comparison of one argument",
        "\"stablehlo.sort\"(%x) ({\n  ^bb0(%a: tensor<f32>):\n    %p = stablehlo.compare LT, %a, %a : (tensor<f32>, tensor<f32>) "
        "-> "
        "tensor<i1>\n    stablehlo.return %p : tensor<i1>\n  }) : (tensor<4xf32>) -> tensor<4xf32>",
        "stablehlo.sort: block 0 takes (f32[]), not (f32[], f32[])");
    block("a comparison that gives a number",
        "\"stablehlo.sort\"(%x) ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n" + sum + " : (tensor<4xf32>) -> tensor<4xf32>",
        "stablehlo.sort: block 0 gives (f32[]), not (i1[])");
    block("windows combined by nothing",
        "\"stablehlo.reduce_window\"(%x, %z) <{window_dimensions = array<i64: 2>}> ({\n  ^bb0(%a: tensor<f32>, %b: "
        "tensor<f32>):\n    "
        "stablehlo.return\n  }) : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>",
        "stablehlo.reduce_window: block 0 gives (), not (f32[])");
    block("a reduction that takes vectors",
        "\"stablehlo.reduce\"(%x, %z) <{dimensions = array<i64: 0>}> ({\n  ^bb0(%a: tensor<1xf32>, %b: tensor<1xf32>):\n    %s = "
        "stablehlo.add %a, %b : tensor<1xf32>\n    stablehlo.return %s : tensor<1xf32>\n  }) : (tensor<4xf32>, tensor<f32>) -> "
        "tensor<f32>",
        "stablehlo.reduce: block 0 takes (f32[1], f32[1]), not (f32[], f32[])");
    op("integers from numbers",
        "%0 = stablehlo.reduce(%x init: %x) applies stablehlo.xor across dimensions = [0] : (tensor<4xf32>, "
        "tensor<4xf32>) -> tensor<f32>",
        "MW1303", 8, "the initial value of f32[4] is f32[4]");
    op("a transform of another length",
        "%0 = stablehlo.fft %x, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<4xcomplex<f32>>", "MW1302", 8,
        "f32[4] does not become complex<f32>[4] by transforms of [4]");
    op("undefined", "%0 = stablehlo.add %x, %y : tensor<4xf32>", "MW1323", 26, "%y is not defined here");
    op("no such result", "%0 = stablehlo.sine %x#1 : tensor<4xf32>", "MW1323", 23, "%x has 1 results, there is no #1");
    op("defined twice", "%x = stablehlo.sine %x : tensor<4xf32>", "MW1324", 3, "%x is defined already");
    row("function twice", "func.func @f() {\n return\n}\nfunc.func @f() {\n return\n}", "MW1324", 4, 11,
        "the function @f is already defined");
    row("mesh twice", "sdy.mesh @m = <[]>\nsdy.mesh @m = <[]>", "MW1324", 2, 10, "the mesh @m is already defined");
    op("operand type", "%0 = stablehlo.sine %x : tensor<5xf32>", "MW1325", 28, "%x is f32[4], not f32[5]");
    op("result type", "%0 = stablehlo.transpose %x, dims = [0] : (tensor<4xf32>) -> tensor<3xf32>", "MW1325", 64,
        "the result of stablehlo.transpose is f32[4], not f32[3]");
    op("number of results", "%0:2 = stablehlo.sine %x : tensor<4xf32>", "MW1325", 10, "stablehlo.sine has 1 results, not 2");
    row("returned type", inMain("  return %x : tensor<4xf32>", "%x: tensor<4xf32>", "tensor<5xf32>"), "MW1325", 1, 39,
        "result 0 is f32[4], not f32[5]");
    op("no dims", "%0 = stablehlo.transpose %x : (tensor<4xf32>) -> tensor<4xf32>", "MW1326", 8,
        "stablehlo.transpose needs its permutation");
    op("negative dim", "%0 = stablehlo.transpose %x, dims = [-1] : (tensor<4xf32>) -> tensor<4xf32>", "MW1326", 39,
        "is not a list of dimensions");
    op("a number that is too small", "%0 = stablehlo.reduce_precision %x, format = e0m3 : tensor<4xf32>", "MW1326", 8,
        "needs exponent_bits, an integer of at least 1");
    op("floats compared as integers",
        "%0 = stablehlo.compare LT, %x, %x, SIGNED : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>", "MW1326", 8,
        "'SIGNED' is not how elements of f32[4] are compared: FLOAT");
    const auto compared = [&](const char* name, const char* dtype, const char* how, const char* own) {
        const std::string type = std::string("tensor<4x") + dtype + ">";
        row(name,
            inMain("  %i = stablehlo.convert %x : (tensor<4xf32>) -> " + type + "\n  %0 = stablehlo.compare LT, %i, %i, " + how
                + " : (" + type + ", " + type + ") -> tensor<4xi1>\n  return %x : tensor<4xf32>"),
            "MW1326", 3, 8, own);
    };
    compared("signed integers compared as unsigned", "i32", "UNSIGNED", "compared: SIGNED");
    compared("unsigned integers compared as signed", "ui32", "SIGNED", "compared: UNSIGNED");
    compared("integers compared as floats", "i32", "FLOAT", "compared: SIGNED");
    op("no numbers", "%0 = stablehlo.reduce_precision %x, format = 5.10 : tensor<4xf32>", "MW1326", 8,
        "needs exponent_bits, an integer of at least 1");
    op("a type that the op does not take", "%0 = stablehlo.popcnt %x : tensor<4xf32>", "MW1303", 8,
        "popcnt: not for elements of type f32");
    op("direction", "%0 = stablehlo.compare LIKE, %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>", "MW1326", 8,
        "'LIKE' is not a direction of a comparison");
    op("a kind of transform", "%0 = stablehlo.fft %x, type = RFTT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>",
        "MW1326", 33, "\"RFTT\" is not a kind of Fourier transform: FFT, IFFT, RFFT, IRFFT");
    op("an algorithm that is a number",
        "%0 = \"stablehlo.rng_bit_generator\"(%x) <{rng_algorithm = 1 : i32}> : (tensor<4xf32>) -> tensor<4xf32>", "MW1326", 60,
        "\"1 : i32\" is not an algorithm of random bits: DEFAULT, THREE_FRY, PHILOX");
    op("a transposition in small letters",
        "%0 = \"stablehlo.triangular_solve\"(%x, %x) <{transpose_a = #stablehlo<transpose transpose>}> : (tensor<4xf32>, "
        "tensor<4xf32>) -> tensor<4xf32>",
        "MW1326", 61, "\"transpose\" is not a transposition: NO_TRANSPOSE, TRANSPOSE, ADJOINT");
    op("a precision",
        "%0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0], precision = [DEFAULT, LOW] : (tensor<4xf32>, "
        "tensor<4xf32>) -> tensor<f32>",
        "MW1326", 90, "\"LOW\" is not a precision of products: DEFAULT, HIGH, HIGHEST");
    op("dimension out of range", "%0 = stablehlo.transpose %x, dims = [1] : (tensor<4xf32>) -> tensor<4xf32>", "MW1304", 8,
        "not a permutation");
    op("shape rule", "%0 = stablehlo.add %x, %x : (tensor<4xf32>) -> tensor<4xf32>", "MW1325", 8,
        "has 2 operands but 1 operand types");
    op("too few elements", "%0 = stablehlo.constant dense<[1, 2]> : tensor<3xi32>", "MW1327", 38,
        "2 entries for dim 0 of i32[3]");
    op("out of range", "%0 = stablehlo.constant dense<300> : tensor<i8>", "MW1327", 33, "300 is not i8");
    op("no number", "%0 = stablehlo.constant dense<[1.0, abc]> : tensor<2xf32>", "MW1327", 39, "abc is not f32");
    op("bad hex", "%0 = stablehlo.constant dense<\"0x00G0\"> : tensor<1xi16>", "MW1327", 33, "expected hexadecimal digits");
    op("half a complex number", "%0 = stablehlo.constant dense<(1.0, )> : tensor<2xcomplex<f32>>", "MW1327", 39, " is not f32");
    op("no complex number", "%0 = stablehlo.constant dense<1.0> : tensor<2xcomplex<f32>>", "MW1327", 33,
        "expected a complex number");
    op("unknown function", "%0 = call @mian(%x) : (tensor<4xf32>) -> tensor<4xf32>", "MW1329", 13, "unknown function @mian");
    op("recursion", "%0 = call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>", "MW1329", 13, "@main calls itself");
    op("no mesh", "%0 = sdy.sharding_constraint %x <@mesh, [{}]> : tensor<4xf32>", "MW1330", 36, "unknown mesh @mesh");
    const std::string mesh = "sdy.mesh @mesh = <[\"x\"=4]> ";
    const auto sharded = [&](const char* name, const char* sharding, const char* id, int column, const char* message) {
        row(name,
            mesh
                + inMain("  %0 = sdy.sharding_constraint %x " + std::string(sharding)
                    + " : tensor<4xf32>\n  return %0 : tensor<4xf32>"),
            id, 2, column, message);
    };
    sharded("unknown axis", "<@mesh, [{\"w\"}]>", "MW1102", 45, "unknown axis name: \"w\"");
    sharded("part of an axis", "<@mesh, [{\"x\":(1)3}]>", "MW1141", 45, "3 doesn't divide the size of the full axis 4");
    sharded("no brace", "<@mesh, [\"x\"]>", "MW1140", 44, "expected \"{\"");
    sharded("priority", "<@mesh, [{\"x\"}p]>", "MW1140", 50, "expected a priority");
    sharded("axis twice", "<@mesh, [{\"x\", \"x\"}]>", "MW1103", 35, "");
    sharded("rank", "<@mesh, [{\"x\"}, {}]>", "MW1330", 35, "a sharding of 2 dimensions for f32[4]");
    row("bad mesh", "sdy.mesh @m = <[\"x\"=0]>", "MW1112", 1, 10, "");
    row("no mesh text", "sdy.mesh @m = <[\"x\"]>", "MW1119", 1, 20, "expected an axis such as \"a\"=2");

    const auto loop = [&](const char* name, const char* condition, const char* yields, const char* id, int line, int column,
                          const char* message) {
        row(name,
            inMain(std::string("  %c = stablehlo.constant dense<0> : tensor<i32>\n  %0:2 = stablehlo.while(%i = %c, %h = "
                               "%x) : tensor<i32>, tensor<4xf32>\n  cond {\n    ")
                + condition + "\n  } do {\n    stablehlo.return " + yields + "\n  }\n  return %0#1 : tensor<4xf32>"),
            id, line, column, message);
    };
    const char* less
        = "%1 = stablehlo.compare LT, %i, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %1 : "
          "tensor<i1>";
    loop("a value too few", less, "%i : tensor<i32>", "MW1328", 3, 10, "differ in number");
    loop("no truth value", "stablehlo.return %i : tensor<i32>", "%i, %h : tensor<i32>, tensor<4xf32>", "MW1325", 5, 5,
        "the condition of the loop does not yield a boolean");
    loop("values change", less, "%h, %i : tensor<4xf32>, tensor<i32>", "MW1325", 8, 5, "does not give the loop's values");

    const auto branch = [&](const char* name, const char* text, const char* id, int line, const char* message) {
        row(name, inMain(text, "%x: tensor<4xf32>, %i: tensor<i32>, %p: tensor<i1>"), id, line,
            line == 1       ? 1
                : line == 2 ? 8
                            : 5,
            message);
    };
    branch("a branch that gives something else",
        "  %0 = \"stablehlo.if\"(%p) ({\n    stablehlo.return %x : tensor<4xf32>\n  }, {\n    stablehlo.return %i : "
        "tensor<i32>\n  }) : "
        "(tensor<i1>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>",
        "MW1325", 5, "branch 1 does not give the results");
    branch("one branch for two",
        "  %0 = \"stablehlo.if\"(%p) ({\n    stablehlo.return %x : tensor<4xf32>\n  }) : (tensor<i1>) -> tensor<4xf32>\n  return "
        "%0 : "
        "tensor<4xf32>",
        "MW1325", 2, "takes a truth value and has two blocks");

    const auto computation = [&](const char* name, const char* text, const char* id, int line, int column, const char* message) {
        row(name, mesh + inMain(text), id, line, column, message);
    };
    computation("manual axes that do not divide",
        "  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"x\"}]>] out_shardings=[<@mesh, [{\"x\"}]>] "
        "manual_axes={\"x\"} (%a: "
        "tensor<2xf32>) {\n    sdy.return %a : tensor<2xf32>\n  } : (tensor<4xf32>) -> tensor<4xf32>\n  return %0 : "
        "tensor<4xf32>",
        "MW1325", 2, 123, "argument 0 of the block is f32[1], not f32[2]");
    computation("outside of a computation",
        "  %0 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, [{}]>] manual_axes={} () {\n    %1 = "
        "stablehlo.sine %x : "
        "tensor<4xf32>\n    sdy.return %1 : tensor<4xf32>\n  } : () -> tensor<4xf32>\n  return %0 : tensor<4xf32>",
        "MW1323", 2, 8, "uses a value from outside");
}

void TestProgramReader::errors()
{
    QFETCH(QString, text);
    QFETCH(QString, id);
    QFETCH(int, line);
    QFETCH(int, column);
    QFETCH(QString, message);

    const auto program = readProgram(text.toStdString(), "file.mlir");
    QVERIFY(!program.has_value());
    const Problem& problem = program.error().front();
    const QString all = QString::fromStdString(describe(program.error()));
    QVERIFY2(QString::fromStdString(problem.id) == id, qPrintable(all));
    QCOMPARE(problem.place.file, std::string("file.mlir"));
    QVERIFY2(problem.place.line == line && problem.place.column == column, qPrintable(all));
    QVERIFY2(QString::fromStdString(problem.message).contains(message), qPrintable(all));
}

void TestProgramReader::fixesOfAnnotations_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("fix");
    const QString mesh = "sdy.mesh @mesh = <[\"x\"=4]>\n";
    const auto argument = [&](const char* name, const char* type, const char* entries, const char* fix) {
        QTest::newRow(name) << mesh
                + QString("func.func @main(%a: tensor<%1> {sdy.sharding = #sdy.sharding<@mesh, %2>}) -> tensor<%1> {\n"
                          "  return %a : tensor<%1>\n}\n")
                      .arg(type, entries)
                            << fix;
    };
    argument("too few entries", "8x4x2xf32", "[{\"x\"}, {}]", "write an entry for each of the 3 dimensions, as in [{}, {}, {}];");
    argument("too many entries", "8xf32", "[{\"x\"}, {}]", "write an entry for each of the 1 dimension, as in [{}];");
    argument("entries of a scalar", "f32", "[{\"x\"}]", "write [], since a scalar has no dimensions");
    const auto op = [&](const char* name, const char* line, const char* fix) {
        QTest::newRow(name) << mesh
                + QString("func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {\n  %0 = %1\n  return %0 : "
                          "tensor<8x4xf32>\n}\n")
                      .replace("%1", line)
                            << fix;
    };
    op("a constraint", "sdy.sharding_constraint %a <@mesh, [{\"x\"}]> : tensor<8x4xf32>", "for each of the 2 dimensions");
    op("two for one result",
        "stablehlo.sine %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>]>} : tensor<8x4xf32>",
        "one sharding for each of them, 1 in all");
    QTest::newRow("a result") << mesh
            + "func.func @main(%a: tensor<8x4xf32>) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, "
              "[{}]>}) {\n  return %a : tensor<8x4xf32>\n}\n"
                              << "for each of the 2 dimensions";
}

/// A sharding that does not fit its value comes with what to write.
void TestProgramReader::fixesOfAnnotations()
{
    QFETCH(QString, text);
    QFETCH(QString, fix);
    const auto program = readProgram(text.toStdString(), "file.mlir");
    QVERIFY(!program.has_value());
    const Problem& problem = program.error().front();
    QVERIFY2(problem.id == "MW1330", describe(program.error()).c_str());
    QVERIFY2(QString::fromStdString(problem.fix).contains(fix), problem.fix.c_str());
}

void TestProgramReader::manyErrorsAtOnce()
{
    const auto program = readProgram(inMain(R"(  %0 = stablehlo.sin %x : tensor<4xf32>
  %1 = stablehlo.add %0, %x : tensor<4xf32>
  %2 = stablehlo.add %1, %missing : tensor<4xf32>
  %3 = stablehlo.sine %x : tensor<5xf32>
  %4 = stablehlo.sine ]
  %5 = foo.sort %x
  return %5 : tensor<4xf32>)"),
        "file.mlir");
    QVERIFY(!program.has_value());
    std::string found;
    for (const Problem& problem : program.error())
        found += fmt::format("{}:{} ", problem.place.line, problem.id);
    // An unknown op is not an error; what depends on a broken one is not reported again.
    QCOMPARE(QString::fromStdString(found), QString("4:MW1323 5:MW1325 6:MW1320 7:MW1321 "));
}

/// A fault in what stands before a function's block leaves the rest of that function out, and nothing else.
void TestProgramReader::faultsInSeveralFunctions()
{
    const auto program = readProgram(R"(module {
  sdy.mesh @mesh = <["a"=2]>
  func.func @first(%x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"a"}]>},
      %z: tensor<4xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.sine ]
    return %x : tensor<4x4xf32>
  }
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine ]
    return %x : tensor<4xf32>
  }
})",
        "file.mlir");
    QVERIFY(!program.has_value());
    std::string found;
    for (const Problem& problem : program.error())
        found += fmt::format("{}:{} ", problem.place.line, problem.id);
    QCOMPARE(QString::fromStdString(found), QString("3:MW1103 9:MW1320 "));
}

void TestProgramReader::unknownOps()
{
    Problems warnings;
    const auto program = readProgram(inMain(R"(  %0 = stablehlo.cosin %x : tensor<4xf32>
  %1 = chlo.lgamma %0 : tensor<4xf32> -> tensor<4xf32>
  %2 = stablehlo.cosin %1 : tensor<4xf32>
  return %2 : tensor<4xf32>)"),
        "file.mlir", &warnings);
    QVERIFY(program);
    QCOMPARE(warnings.size(), std::size_t{1});
    const Problem& warning = warnings.front();
    QCOMPARE(warning.id, std::string("MW1331"));
    QCOMPARE(warning.place.line, 2);
    QVERIFY2(warning.message.find("stablehlo.cosin") != std::string::npos && warning.message.find("2 times") != std::string::npos,
        warning.message.c_str());
    QVERIFY2(warning.fix.find("cosine") != std::string::npos, warning.fix.c_str());
}

void TestProgramReader::deepNesting()
{
    std::string regions = "func.func @main() {\n";
    std::string lists = "func.func @main() {\n  %0 = stablehlo.sine %0 {a = ";
    for (int i = 0; i < 100'000; ++i) {
        regions += "\"stablehlo.while\"() ({\n";
        lists += "[";
    }
    for (const std::string& text : {regions, lists, std::string(1'000'000, '['), std::string(1'000'000, '{')})
        QVERIFY(!readProgram(text, "deep.mlir").has_value());
}

void TestProgramReader::callsTooDeep()
{
    std::string text = "func.func private @f0(%a: tensor<f32>) -> tensor<f32> {\n  return %a : tensor<f32>\n}\n";
    for (int i = 1; i <= 120; ++i) {
        text += fmt::format(
            "func.func {} @f{}(%a: tensor<f32>) -> tensor<f32> {{\n  %0 = call @f{}(%a) : (tensor<f32>) -> tensor<f32>\n"
            "  return %0 : tensor<f32>\n}}\n",
            i == 120 ? "public" : "private", i, i - 1);
    }
    const auto program = readProgram(text, "calls.mlir");
    QVERIFY(!program.has_value());
    QCOMPARE(program.error().front().id, std::string("MW1329"));
}

void TestProgramReader::callsTooMany_data()
{
    QTest::addColumn<int>("doublings");
    QTest::addColumn<int>("line"); // of the first call of @main that is too large; 0: none is
    QTest::newRow("few") << 4 << 0;
    QTest::newRow("two million ops") << 20 << 100;
    QTest::newRow("more than fit 64 bits") << 90 << 450;
}

void TestProgramReader::callsTooMany()
{
    QFETCH(int, doublings);
    QFETCH(int, line);
    std::string text = "func.func private @f0(%a: tensor<f32>) -> tensor<f32> {\n  return %a : tensor<f32>\n}\n";
    for (int i = 1; i <= doublings; ++i) {
        text += fmt::format("func.func {0} @f{1}(%a: tensor<f32>) -> tensor<f32> {{\n  %0 = call @f{2}(%a) : (tensor<f32>) -> "
                            "tensor<f32>\n  %1 = call @f{2}(%0) : (tensor<f32>) -> tensor<f32>\n  return %1 : tensor<f32>\n}}\n",
            i == doublings ? "public" : "private", i, i - 1);
    }
    const auto program = readProgram(text, "calls.mlir");
    QCOMPARE(program.has_value(), line == 0);
    if (program)
        return;
    QCOMPARE(program.error().size(), std::size_t{1});
    const Problem& problem = program.error().front();
    QCOMPARE(problem.id, std::string("MW1329"));
    QCOMPARE(problem.message, std::string("with all calls inlined the program has more than 1000000 ops"));
    QCOMPARE(problem.place.line, line);
}

MESHWRIGHT_TEST(TestProgramReader)

} // namespace tst_program_reader

#include "tst_program_reader.moc"
