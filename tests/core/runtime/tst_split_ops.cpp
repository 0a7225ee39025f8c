// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/shardy_text.h"
#include "core/support/text.h"
#include "core/text/program_text.h"
#include "tests/random_shardings.h"
#include "tests/run_on_devices.h"
#include "tests/runtime_test.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <cstdlib>

namespace tst_split_ops {

using namespace meshwright;
using namespace meshwright::test;

namespace {

/// One op, or a few that belong together, between sharding constraints: the arguments' in front, the results' behind.
struct SplitOps {
    QStringList arguments; ///< their types; in `ops` they are %0, %1 ..
    QStringList results; ///< their types; in `ops` they are %r0, %r1 ..
    QString ops;
};

std::size_t rankOf(const QString& type)
{
    return static_cast<std::size_t>(type.count('x'));
}

/// The layout alone, as a constraint has it: `<@mesh, [{"x"}, {}]>`.
std::string layoutOf(const TensorSharding& sharding, const Mesh& mesh)
{
    return fmt::format("<@mesh, {}>", shardyText(sharding, mesh));
}

/// The program with these layouts. What is behind the end of a split dimension becomes infinite on the way, and shows.
std::string programOf(const SplitOps& row, const Mesh& mesh, const std::vector<TensorSharding>& arguments,
    const std::vector<std::optional<TensorSharding>>& results)
{
    std::vector<std::string> axes;
    for (const MeshAxis& axis : mesh.axes())
        axes.push_back(fmt::format("\"{}\"={}", axis.name, axis.size));
    std::vector<std::string> declared;
    std::string text;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const QString& given = row.arguments[static_cast<qsizetype>(i)];
        const std::string type = given.toStdString();
        const bool isFloat = given.endsWith("f32");
        declared.push_back(fmt::format("%a{}: tensor<{}>", i, type));
        text += fmt::format(
            "    %c{0} = sdy.sharding_constraint %a{0} {1} : tensor<{2}>\n", i, layoutOf(arguments[i], mesh), type);
        text += fmt::format("    %k{} = stablehlo.constant dense<{}> : tensor<{}>\n", i,
            isFloat                    ? "1.0"
                : given.endsWith("i1") ? "true"
                                       : "1",
            type);
        text += fmt::format("    %in{0} = stablehlo.{1} %k{0}, %c{0} : tensor<{2}>\n", i,
            isFloat                    ? "divide"
                : given.endsWith("i1") ? "and"
                                       : "multiply",
            type);
    }
    text += row.ops.toStdString();
    std::vector<std::string> types;
    std::vector<std::string> returned;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const std::string type = row.results[static_cast<qsizetype>(i)].toStdString();
        types.push_back(fmt::format("tensor<{}>", type));
        returned.push_back(fmt::format("%end{}", i));
        if (results[i])
            text += fmt::format(
                "    %out{0} = sdy.sharding_constraint %r{0} {1} : tensor<{2}>\n", i, layoutOf(*results[i], mesh), type);
        // What a function returns must divide; what it is made of need not.
        text += fmt::format("    %end{0} = stablehlo.{1} {2}{0} : tensor<{3}>\n", i, type.ends_with("i1") ? "not" : "negate",
            results[i] ? "%out" : "%r", type);
    }
    return fmt::format(
        "module {{\n  sdy.mesh @mesh = <[{}]>\n  func.func public @main({}) -> ({}) {{\n{}    return {} : {}\n  }}\n}}\n",
        join(axes, ", "), join(declared, ", "), join(types, ", "), text, join(returned, ", "), join(types, ", "));
}

/// Why the program does not give on devices what it gives on one; empty when it does. `whole` says whether an op was partitioned whole.
std::string faultOf(const std::string& text, bool& whole)
{
    const auto program = readProgram(text, "program.mlir");
    if (!program)
        return describe(program.error());
    if (const Problems problems = verify(*program); !problems.empty())
        return describe(problems);
    const Function function = program->functions.front();
    std::vector<HostArray> arguments;
    for (const ValueId argument : function.arguments())
        arguments.push_back(randomArray(function[argument].type, arguments.size() + 1));
    const auto run = tests::runOnDevices(*program, arguments);
    if (!run)
        return describe(run.error());
    const Problems& warnings = run->stage.functions.front().warnings;
    whole = std::any_of(warnings.begin(), warnings.end(), [](const Problem& warning) { return warning.id == "MW1218"; });
    const auto expected = evaluate(function, arguments, {.meshes = program->meshes});
    if (!expected)
        return describe(expected.error());
    if (!run->replicasAgree)
        return "replicas differ";
    for (std::size_t i = 0; i < expected->size(); ++i) {
        if (const std::string wrong = difference(run->results[i], (*expected)[i].values(), 2e-5); !wrong.empty())
            return fmt::format("result {}: {}", i, wrong);
    }
    return {};
}

int drawsOfRow()
{
    const char* draws = std::getenv("MESHWRIGHT_SPLIT_OPS"); // a long run
    return draws == nullptr ? 12 : static_cast<int>(parseInteger(draws).value_or(12));
}

} // namespace

/// Every op that the runtime computes, with its operands and results split in any way: even and uneven pieces, one element a device, parts of
/// axes, layouts that do not agree.
class TestSplitOps : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        m_fresh = tests::freshSeed();
        qInfo("fresh seed %llu", static_cast<unsigned long long>(m_fresh));
    }
    void ops_data();
    void ops();
    void reshapes();
    void reshapesBehindWholeFactors_data();
    void reshapesBehindWholeFactors();
    void groupsOfOne_data();
    void groupsOfOne();
    void unknownOpsAreComputedWhole();
    void contextThatDoesNotDivide_data();
    void contextThatDoesNotDivide();
    void gatheredPiecesBelongToDevices();
    void partsBelongToDevices();
    void numbersOfEightBitsMove();
    void sumsBesidePartsInNoOneGrid();

private:
    void check(const SplitOps& row, std::uint64_t seed, int draws);

    std::uint64_t m_fresh = 0;
    int m_drawn = 0;
    int m_whole = 0; ///< with an op that was partitioned whole
};

void TestSplitOps::ops_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QStringList>("results");
    QTest::addColumn<QString>("ops");

    const auto row = [](const char* name, const QStringList& arguments, const QStringList& results, const QString& ops) {
        QTest::newRow(name) << arguments << results << "    " + ops + "\n";
    };
    const auto combined = [](const char* op, const char* type) {
        return QString("^bb0(%x: tensor<%2>, %y: tensor<%2>):\n      %s = stablehlo.%1 %x, %y : tensor<%2>\n"
                       "      stablehlo.return %s : tensor<%2>\n    })")
            .arg(op, type);
    };

    // ---- element by element
    row("add", {"6x8xf32", "6x8xf32"}, {"6x8xf32"}, "%r0 = stablehlo.add %in0, %in1 : tensor<6x8xf32>");
    row("select by a scalar", {"i32", "6x5xf32", "6x5xf32"}, {"6x5xf32"},
        "%z = stablehlo.constant dense<0> : tensor<i32>\n"
        "    %p = stablehlo.compare GT, %in0, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "    %r0 = stablehlo.select %p, %in1, %in2 : tensor<i1>, tensor<6x5xf32>");
    row("clamp", {"f32", "6x5xf32", "f32"}, {"6x5xf32"},
        "%r0 = stablehlo.clamp %in0, %in1, %in2 : (tensor<f32>, tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xf32>");
    row("a constant of many elements", {"2x3xf32"}, {"2x3xf32"},
        "%k = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>\n"
        "    %r0 = stablehlo.multiply %in0, %k : tensor<2x3xf32>");
    row("only a constant", {"f32"}, {"4x2xi32"},
        "%r0 = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6], [7, 8]]> : tensor<4x2xi32>");
    row("iota", {"6x4xi32"}, {"6x4xi32"},
        "%i = stablehlo.iota dim = 0 : tensor<6x4xi32>\n    %r0 = stablehlo.add %i, %in0 : tensor<6x4xi32>");

    // ---- broadcasts
    row("bias of one row a device", {"16xf32", "8x16xf32"}, {"8x16xf32"},
        "%b = stablehlo.broadcast_in_dim %in0, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>\n"
        "    %c = stablehlo.broadcast_in_dim %b, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<8x16xf32>\n"
        "    %r0 = stablehlo.add %c, %in1 : tensor<8x16xf32>");
    row("broadcasts of broadcasts", {"4xf32"}, {"4x3x1xf32"},
        "%b = stablehlo.broadcast_in_dim %in0, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>\n"
        "    %c = stablehlo.broadcast_in_dim %b, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x1x1xf32>\n"
        "    %d = stablehlo.broadcast_in_dim %c, dims = [0, 1, 2] : (tensor<4x1x1xf32>) -> tensor<4x3x1xf32>\n"
        "    %r0 = stablehlo.negate %d : tensor<4x3x1xf32>");
    row("a column", {"5xf32", "5x6xf32"}, {"5x6xf32"},
        "%b = stablehlo.broadcast_in_dim %in0, dims = [0] : (tensor<5xf32>) -> tensor<5x6xf32>\n"
        "    %r0 = stablehlo.multiply %b, %in1 : tensor<5x6xf32>");
    row("a row of one", {"1x6xf32", "4x6xf32"}, {"4x6xf32"},
        "%b = stablehlo.broadcast_in_dim %in0, dims = [0, 1] : (tensor<1x6xf32>) -> tensor<4x6xf32>\n"
        "    %r0 = stablehlo.add %b, %in1 : tensor<4x6xf32>");

    // ---- shapes
    row("transpose", {"4x3x6xf32"}, {"6x4x3xf32"},
        "%r0 = stablehlo.transpose %in0, dims = [2, 0, 1] : (tensor<4x3x6xf32>) -> tensor<6x4x3xf32>");
    row("reshape of heads", {"8x6xf32"}, {"8x3x2xf32"}, "%r0 = stablehlo.reshape %in0 : (tensor<8x6xf32>) -> tensor<8x3x2xf32>");
    row("reshape that regroups", {"3x4xf32"}, {"2x6xf32"}, "%r0 = stablehlo.reshape %in0 : (tensor<3x4xf32>) -> tensor<2x6xf32>");

    // ---- contractions
    for (const char* kind : {"add", "maximum", "minimum", "multiply"}) {
        const QString start = QString(kind) == "add" ? "0.0"
            : QString(kind) == "multiply"            ? "1.0"
            : QString(kind) == "maximum"             ? "0xFF800000"
                                                     : "0x7F800000";
        row(qPrintable(QString("reduce %1").arg(kind)), {"6x5x4xf32"}, {"6x4xf32"},
            QString(
                "%z = stablehlo.constant dense<%1> : tensor<f32>\n"
                "    %r0 = stablehlo.reduce(%in0 init: %z) applies stablehlo.%2 across dimensions = [1] : (tensor<6x5x4xf32>, "
                "tensor<f32>) -> tensor<6x4xf32>")
                .arg(start, kind));
    }
    row("reduce all", {"5x7xi32"}, {"i32"},
        "%z = stablehlo.constant dense<0> : tensor<i32>\n"
        "    %r0 = stablehlo.reduce(%in0 init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x7xi32>, "
        "tensor<i32>) -> tensor<i32>");
    row("reduce to any and all", {"6x5xi32"}, {"6xi1", "5xi1"},
        "%z = stablehlo.constant dense<0> : tensor<6x5xi32>\n    %f = stablehlo.constant dense<false> : tensor<i1>\n"
        "    %t = stablehlo.constant dense<true> : tensor<i1>\n"
        "    %p = stablehlo.compare GT, %in0, %z : (tensor<6x5xi32>, tensor<6x5xi32>) -> tensor<6x5xi1>\n"
        "    %r0 = stablehlo.reduce(%p init: %f) applies stablehlo.or across dimensions = [1] : (tensor<6x5xi1>, tensor<i1>) -> "
        "tensor<6xi1>\n"
        "    %r1 = stablehlo.reduce(%p init: %t) applies stablehlo.and across dimensions = [0] : (tensor<6x5xi1>, tensor<i1>) -> "
        "tensor<5xi1>");
    row("product", {"6x5xf32", "5x4xf32"}, {"6x4xf32"},
        "%r0 = stablehlo.dot_general %in0, %in1, contracting_dims = [1] x [0] : (tensor<6x5xf32>, tensor<5x4xf32>) -> "
        "tensor<6x4xf32>");
    row("product of batches", {"2x6x4xf32", "2x4x3xf32"}, {"2x6x3xf32"},
        "%r0 = stablehlo.dot_general %in0, %in1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x6x4xf32>, "
        "tensor<2x4x3xf32>) -> tensor<2x6x3xf32>");
    row("product along two dimensions", {"3x4x5xf32", "4x5x2xf32"}, {"3x2xf32"},
        "%r0 = stablehlo.dot_general %in0, %in1, contracting_dims = [1, 2] x [0, 1] : (tensor<3x4x5xf32>, tensor<4x5x2xf32>) -> "
        "tensor<3x2xf32>");
    const QString places = "%p = stablehlo.iota dim = 0 : tensor<6xi32>\n    %k = stablehlo.iota dim = 0 : tensor<6xi32>\n    ";
    for (const char* context : {"", "context = \"ring\", ", "context = \"ulysses\", "}) {
        const QString form = QString("{causal = true, %1operand_type = f32, scale = 5.0e-1 : f64, segmented = false, softcap = "
                                     "2.0e+0 : f64, windowed = false}")
                                 .arg(context);
        row(qPrintable(QString("attention %1").arg(context)), {"3x6x4x2x3xf32", "3x6x4x3xf32", "3x6x4x5xf32"},
            {"3x6x4x2x5xf32", "3x6x4x2xf32"},
            places + "%r0, %r1 = \"mw.attention\"(%in0, %in1, %in2, %p, %k) " + form
                + " : (tensor<3x6x4x2x3xf32>, tensor<3x6x4x3xf32>, tensor<3x6x4x5xf32>, tensor<6xi32>, tensor<6xi32>) -> "
                  "(tensor<3x6x4x2x5xf32>, tensor<3x6x4x2xf32>)");
        row(qPrintable(QString("gradients of attention %1").arg(context)),
            {"2x6x4x2x3xf32", "2x6x4x3xf32", "2x6x4x5xf32", "2x6x4x2x5xf32"}, {"2x6x4x2x3xf32", "2x6x4x3xf32", "2x6x4x5xf32"},
            places + "%m, %s = \"mw.attention\"(%in0, %in1, %in2, %p, %k) " + form
                + " : (tensor<2x6x4x2x3xf32>, tensor<2x6x4x3xf32>, tensor<2x6x4x5xf32>, tensor<6xi32>, tensor<6xi32>) -> "
                  "(tensor<2x6x4x2x5xf32>, tensor<2x6x4x2xf32>)\n    %r0, %r1, %r2 = \"mw.attention_grad\"(%in0, %in1, %in2, %p, "
                  "%k, %m, %s, %in3) "
                + form
                + " : (tensor<2x6x4x2x3xf32>, tensor<2x6x4x3xf32>, tensor<2x6x4x5xf32>, tensor<6xi32>, tensor<6xi32>, "
                  "tensor<2x6x4x2x5xf32>, tensor<2x6x4x2xf32>, tensor<2x6x4x2x5xf32>) -> (tensor<2x6x4x2x3xf32>, "
                  "tensor<2x6x4x3xf32>, tensor<2x6x4x5xf32>)");
    }
    const QString argmax
        = "%i = stablehlo.iota dim = 1 : tensor<6x5xi32>\n"
          "    %z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
          "    %k = stablehlo.constant dense<0> : tensor<i32>\n"
          "    %v, %w = stablehlo.reduce(%in0 init: %z), (%i init: %k) across dimensions = [1] : (tensor<6x5xf32>, "
          "tensor<6x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<6xf32>, tensor<6xi32>)\n"
          "     reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<i32>, %d: tensor<i32>) {\n"
          "      %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
          "      %m = stablehlo.select %g, %a, %b : tensor<i1>, tensor<f32>\n"
          "      %n = stablehlo.select %g, %c, %d : tensor<i1>, tensor<i32>\n"
          "      stablehlo.return %m, %n : tensor<f32>, tensor<i32>\n    }\n";
    row("argmax, whose maximum nobody reads", {"6x5xf32"}, {"6xi32"},
        argmax + "    %o = stablehlo.constant dense<1> : tensor<6xi32>\n    %r0 = stablehlo.add %w, %o : tensor<6xi32>");
    row("the maximum, whose place nobody reads", {"6x5xf32"}, {"6xf32"},
        argmax + "    %r0 = stablehlo.negate %v : tensor<6xf32>");

    // ---- parts
    row("slice", {"12x5xf32"}, {"4x3xf32"}, "%r0 = stablehlo.slice %in0 [1:12:3, 2:5] : (tensor<12x5xf32>) -> tensor<4x3xf32>");
    row("pad", {"6x5xf32"}, {"9x4xf32"},
        "%z = stablehlo.constant dense<7.0> : tensor<f32>\n"
        "    %r0 = stablehlo.pad %in0, %z, low = [2, -2], high = [1, 1], interior = [0, 0] : (tensor<6x5xf32>, tensor<f32>) -> "
        "tensor<9x4xf32>");
    row("pad between", {"4x3xf32"}, {"7x8xf32"},
        "%z = stablehlo.constant dense<7.0> : tensor<f32>\n"
        "    %r0 = stablehlo.pad %in0, %z, low = [0, 1], high = [0, 0], interior = [1, 2] : (tensor<4x3xf32>, tensor<f32>) -> "
        "tensor<7x8xf32>");
    row("concatenate", {"3x4xf32", "5x4xf32", "1x4xf32"}, {"9x4xf32"},
        "%r0 = stablehlo.concatenate %in0, %in1, %in2, dim = 0 : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<1x4xf32>) -> "
        "tensor<9x4xf32>");
    row("reverse", {"6x5xf32"}, {"6x5xf32"}, "%r0 = stablehlo.reverse %in0, dims = [0, 1] : tensor<6x5xf32>");
    row("dynamic_slice", {"8x6xf32", "i32", "i32"}, {"3x2xf32"},
        "%r0 = stablehlo.dynamic_slice %in0, %in1, %in2, sizes = [3, 2] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> "
        "tensor<3x2xf32>");
    row("dynamic_slice of truths", {"8x6xi1", "i32", "i32"}, {"3x2xi1"},
        "%r0 = stablehlo.dynamic_slice %in0, %in1, %in2, sizes = [3, 2] : (tensor<8x6xi1>, tensor<i32>, tensor<i32>) -> "
        "tensor<3x2xi1>");
    row("dynamic_update_slice", {"8x6xf32", "3x6xf32", "i32", "i32"}, {"8x6xf32"},
        "%r0 = stablehlo.dynamic_update_slice %in0, %in1, %in2, %in3 : (tensor<8x6xf32>, tensor<3x6xf32>, tensor<i32>, "
        "tensor<i32>) -> "
        "tensor<8x6xf32>");
    row("dynamic_update_slice at a known place", {"8x6xf32", "3x2xf32"}, {"8x6xf32"},
        "%i = stablehlo.constant dense<2> : tensor<i32>\n    %j = stablehlo.constant dense<3> : tensor<i32>\n"
        "    %r0 = stablehlo.dynamic_update_slice %in0, %in1, %i, %j : (tensor<8x6xf32>, tensor<3x2xf32>, tensor<i32>, "
        "tensor<i32>) "
        "-> tensor<8x6xf32>");

    // ---- gathers and scatters
    row("rows of a table", {"10x4xf32", "6xi32"}, {"6x4xf32"},
        "%r0 = \"stablehlo.gather\"(%in0, %in1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims "
        "= "
        "[0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : "
        "(tensor<10x4xf32>, tensor<6xi32>) -> tensor<6x4xf32>");
    row("windows of a table", {"10x6xf32", "5x2xi32"}, {"5x3x6xf32"},
        "%r0 = \"stablehlo.gather\"(%in0, %in1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = "
        "[0, "
        "1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 3, 6>}> : (tensor<10x6xf32>, "
        "tensor<5x2xi32>) -> tensor<5x3x6xf32>");
    row("batches of rows", {"3x8x4xf32", "3x5x1xi32"}, {"3x5x4xf32"},
        "%r0 = \"stablehlo.gather\"(%in0, %in1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims "
        "= "
        "[1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, "
        "indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<3x8x4xf32>, tensor<3x5x1xi32>) -> "
        "tensor<3x5x4xf32>");
    row("single elements", {"6x5xf32", "7x2xi32"}, {"7xf32"},
        "%r0 = \"stablehlo.gather\"(%in0, %in1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], "
        "start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : "
        "(tensor<6x5xf32>, tensor<7x2xi32>) -> tensor<7xf32>");
    const QString scatter
        = "%r0 = \"stablehlo.scatter\"(%in0, %in1, %in2) <{indices_are_sorted = false, scatter_dimension_numbers = "
          "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
          "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({\n    ";
    for (const char* kind : {"add", "maximum", "multiply"})
        row(qPrintable(QString("scatter %1").arg(kind)), {"9x4xf32", "6xi32", "6x4xf32"}, {"9x4xf32"},
            scatter + combined(kind, "f32") + " : (tensor<9x4xf32>, tensor<6xi32>, tensor<6x4xf32>) -> tensor<9x4xf32>");
    row("scatter at known places", {"9x4xf32", "3x4xf32"}, {"9x4xf32"},
        "%i = stablehlo.constant dense<[1, 4, 8]> : tensor<3xi32>\n    "
            + QString(scatter).replace("(%in0, %in1, %in2)", "(%in0, %i, %in1)") + combined("add", "f32")
            + " : (tensor<9x4xf32>, tensor<3xi32>, tensor<3x4xf32>) -> tensor<9x4xf32>");
    row("scatter that replaces", {"9x4xf32", "3x4xf32"}, {"9x4xf32"},
        "%i = stablehlo.constant dense<[1, 4, 8]> : tensor<3xi32>\n    "
            + QString(scatter).replace("(%in0, %in1, %in2)", "(%in0, %i, %in1)")
            + "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n      stablehlo.return %y : tensor<f32>\n    })"
            + " : (tensor<9x4xf32>, tensor<3xi32>, tensor<3x4xf32>) -> tensor<9x4xf32>");
    row("scatter of windows", {"9x4xf32", "2x1xi32", "2x3x4xf32"}, {"9x4xf32"},
        "%r0 = \"stablehlo.scatter\"(%in0, %in1, %in2) <{indices_are_sorted = false, scatter_dimension_numbers = "
        "#stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, "
        "unique_indices = false}> ({\n    "
            + combined("add", "f32") + " : (tensor<9x4xf32>, tensor<2x1xi32>, tensor<2x3x4xf32>) -> tensor<9x4xf32>");
    const QString scatterTwo
        = "%r0, %r1 = \"stablehlo.scatter\"(%in0, %in1, %in2, %in3, %in4) <{indices_are_sorted = false, "
          "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
          "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({\n"
          "    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):\n"
          "      %s = stablehlo.%1 %a, %c : tensor<f32>\n      %t = stablehlo.%2 %b, %d : tensor<f32>\n"
          "      stablehlo.return %s, %t : tensor<f32>, tensor<f32>\n    }) : (tensor<9x4xf32>, tensor<9x4xf32>, "
          "tensor<6x1xi32>, tensor<6x4xf32>, tensor<6x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xf32>)";
    for (const auto& [first, second] : {std::pair("add", "add"), {"multiply", "multiply"}, {"maximum", "maximum"},
             {"add", "minimum"}}) // the last by no reduction of both
        row(qPrintable(QString("scatter to two arrays, %1 and %2").arg(first, second)),
            {"9x4xf32", "9x4xf32", "6x1xi32", "6x4xf32", "6x4xf32"}, {"9x4xf32", "9x4xf32"}, scatterTwo.arg(first, second));

    // ---- windows
    const auto conv = [](const QString& operands, const QString& result, const QString& dims, const QString& window,
                          int batchGroups, int featureGroups) {
        return "%r0 = stablehlo.convolution(%in0, %in1) dim_numbers = " + dims + ", window = {" + window
            + "} {batch_group_count = " + QString::number(batchGroups)
            + " : i64, feature_group_count = " + QString::number(featureGroups) + " : i64} : (" + operands + ") -> " + result;
    };
    const QString line = "[b, 0, f]x[0, i, o]->[b, 0, f]";
    row("convolution", {"2x12x3xf32", "3x3x4xf32"}, {"2x12x4xf32"},
        conv("tensor<2x12x3xf32>, tensor<3x3x4xf32>", "tensor<2x12x4xf32>", line, "stride = [1], pad = [[1, 1]]", 1, 1));
    row("convolution with strides", {"2x11x3xf32", "3x3x4xf32"}, {"2x6x4xf32"},
        conv("tensor<2x11x3xf32>, tensor<3x3x4xf32>", "tensor<2x6x4xf32>", line, "stride = [2], pad = [[1, 1]]", 1, 1));
    row("convolution with holes", {"2x12x3xf32", "3x3x4xf32"}, {"2x8x4xf32"},
        conv("tensor<2x12x3xf32>, tensor<3x3x4xf32>", "tensor<2x8x4xf32>", line, "stride = [1], pad = [[0, 0]], rhs_dilate = [2]",
            1, 1));
    row("transposed convolution", {"2x5x3xf32", "3x3x4xf32"}, {"2x9x4xf32"},
        conv("tensor<2x5x3xf32>, tensor<3x3x4xf32>", "tensor<2x9x4xf32>", line, "stride = [1], pad = [[1, 1]], lhs_dilate = [2]",
            1, 1));
    row("grouped convolution", {"2x6x8xf32", "3x2x12xf32"}, {"2x6x12xf32"},
        conv("tensor<2x6x8xf32>, tensor<3x2x12xf32>", "tensor<2x6x12xf32>", line, "stride = [1], pad = [[1, 1]]", 1, 4));
    row("convolution of each channel", {"2x6x8xf32", "3x1x8xf32"}, {"2x6x8xf32"},
        conv("tensor<2x6x8xf32>, tensor<3x1x8xf32>", "tensor<2x6x8xf32>", line, "stride = [1], pad = [[1, 1]]", 1, 8));
    row("convolution in groups of the batch", {"8x6x3xf32", "3x3x8xf32"}, {"2x6x8xf32"},
        conv("tensor<8x6x3xf32>, tensor<3x3x8xf32>", "tensor<2x6x8xf32>", line, "stride = [1], pad = [[1, 1]]", 4, 1));
    row("image convolution", {"2x3x6x5xf32", "4x3x3x3xf32"}, {"2x4x6x5xf32"},
        conv("tensor<2x3x6x5xf32>, tensor<4x3x3x3xf32>", "tensor<2x4x6x5xf32>", "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
            "stride = [1, 1], pad = [[1, 1], [1, 1]]", 1, 1));
    row("windows' maxima", {"2x12x5xf32"}, {"2x6x5xf32"},
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "    %r0 = \"stablehlo.reduce_window\"(%in0, %z) <{padding = dense<[[0, 0], [0, 1], [0, 0]]> : tensor<3x2xi64>, "
        "window_dimensions = array<i64: 1, 3, 1>, window_strides = array<i64: 1, 2, 1>}> ({\n    "
            + combined("maximum", "f32") + " : (tensor<2x12x5xf32>, tensor<f32>) -> tensor<2x6x5xf32>");
    row("windows of sums that begin with a number", {"2x12xf32"}, {"2x12xf32"},
        "%z = stablehlo.constant dense<2.0> : tensor<f32>\n"
        "    %r0 = \"stablehlo.reduce_window\"(%in0, %z) <{padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, "
        "window_dimensions = array<i64: 1, 3>}> ({\n    "
            + combined("add", "f32") + " : (tensor<2x12xf32>, tensor<f32>) -> tensor<2x12xf32>");
    row("sums so far", {"3x7xf32"}, {"3x7xf32"},
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "    %r0 = \"stablehlo.reduce_window\"(%in0, %z) <{padding = dense<[[0, 0], [6, 0]]> : tensor<2x2xi64>, "
        "window_dimensions = array<i64: 1, 7>}> ({\n    "
            + combined("add", "f32") + " : (tensor<3x7xf32>, tensor<f32>) -> tensor<3x7xf32>");
    row("select and scatter", {"3x8xf32", "3x4xf32"}, {"3x8xf32"},
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "    %r0 = \"stablehlo.select_and_scatter\"(%in0, %in1, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = "
        "array<i64: 1, 2>}> ({\n    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
        "      %g = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "      stablehlo.return %g : tensor<i1>\n    }, {\n    "
            + combined("add", "f32") + " : (tensor<3x8xf32>, tensor<3x4xf32>, tensor<f32>) -> tensor<3x8xf32>");

    row("scatter to batches", {"3x9x4xf32", "3x5x1xi32", "3x5x4xf32"}, {"3x9x4xf32"},
        "%r0 = \"stablehlo.scatter\"(%in0, %in1, %in2) <{indices_are_sorted = false, scatter_dimension_numbers = "
        "#stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], "
        "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = "
        "false}> ({\n    "
            + combined("add", "f32") + " : (tensor<3x9x4xf32>, tensor<3x5x1xi32>, tensor<3x5x4xf32>) -> tensor<3x9x4xf32>");

    // ---- several that belong together
    row("parts of parts", {"13x4xf32"}, {"5x4xf32"},
        "%b = stablehlo.slice %in0 [1:12, 0:4] : (tensor<13x4xf32>) -> tensor<11x4xf32>\n"
        "    %c = stablehlo.reverse %b, dims = [0] : tensor<11x4xf32>\n"
        "    %d = stablehlo.slice %c [0:10:2, 0:4] : (tensor<11x4xf32>) -> tensor<5x4xf32>\n"
        "    %r0 = stablehlo.negate %d : tensor<5x4xf32>");
    row("softmax", {"6x5xf32"}, {"6x5xf32"},
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n    %l = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "    %t = stablehlo.tanh %in0 : tensor<6x5xf32>\n"
        "    %m = stablehlo.reduce(%t init: %l) applies stablehlo.maximum across dimensions = [1] : (tensor<6x5xf32>, "
        "tensor<f32>) "
        "-> tensor<6xf32>\n"
        "    %n = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<6xf32>) -> tensor<6x1xf32>\n"
        "    %o = stablehlo.broadcast_in_dim %n, dims = [0, 1] : (tensor<6x1xf32>) -> tensor<6x5xf32>\n"
        "    %p = stablehlo.subtract %t, %o : tensor<6x5xf32>\n    %q = stablehlo.exponential %p : tensor<6x5xf32>\n"
        "    %s = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [1] : (tensor<6x5xf32>, tensor<f32>) "
        "-> "
        "tensor<6xf32>\n"
        "    %u = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<6xf32>) -> tensor<6x5xf32>\n"
        "    %r0 = stablehlo.divide %q, %u : tensor<6x5xf32>");
    row("regrouped, reduced and regrouped again", {"6x10xf32"}, {"4x3xf32"},
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "    %b = stablehlo.reshape %in0 : (tensor<6x10xf32>) -> tensor<5x12xf32>\n"
        "    %c = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = [0] : (tensor<5x12xf32>, tensor<f32>) "
        "-> tensor<12xf32>\n"
        "    %r0 = stablehlo.reshape %c : (tensor<12xf32>) -> tensor<4x3xf32>");
    row("a loop over rows", {"6x5xf32"}, {"6x5xf32"},
        "%z = stablehlo.constant dense<0> : tensor<i32>\n    %n = stablehlo.constant dense<6> : tensor<i32>\n"
        "    %one = stablehlo.constant dense<1> : tensor<i32>\n    %f = stablehlo.constant dense<0.0> : tensor<6x5xf32>\n"
        "    %q:3 = stablehlo.while(%i = %z, %x = %in0, %y = %f) : tensor<i32>, tensor<6x5xf32>, tensor<6x5xf32>\n"
        "     cond {\n      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "      stablehlo.return %c : tensor<i1>\n    } do {\n"
        "      %s = stablehlo.dynamic_slice %x, %i, %z, sizes = [1, 5] : (tensor<6x5xf32>, tensor<i32>, tensor<i32>) -> "
        "tensor<1x5xf32>\n"
        "      %t = stablehlo.multiply %s, %s : tensor<1x5xf32>\n"
        "      %u = stablehlo.dynamic_update_slice %y, %t, %i, %z : (tensor<6x5xf32>, tensor<1x5xf32>, tensor<i32>, tensor<i32>) "
        "-> tensor<6x5xf32>\n"
        "      %j = stablehlo.add %i, %one : tensor<i32>\n"
        "      stablehlo.return %j, %x, %u : tensor<i32>, tensor<6x5xf32>, tensor<6x5xf32>\n    }\n"
        "    %r0 = stablehlo.negate %q#2 : tensor<6x5xf32>");
    for (const char* type : {"i32", "f32"})
        row(qPrintable(QString("a loop that adds up halves of %1").arg(type)), {QString("3x8x") + type, QString("8x2x") + type},
            {QString("3x2x") + type},
            QString(
                "%z = stablehlo.constant dense<0> : tensor<i32>\n    %n = stablehlo.constant dense<3> : tensor<i32>\n"
                "    %one = stablehlo.constant dense<1> : tensor<i32>\n    %f = stablehlo.constant dense<0> : tensor<3x2xT>\n"
                "    %two = stablehlo.constant dense<2> : tensor<3x2xT>\n"
                "    %q:4 = stablehlo.while(%i = %z, %x = %in0, %w = %in1, %y = %f) : tensor<i32>, tensor<3x8xT>, tensor<8x2xT>, "
                "tensor<3x2xT>\n"
                "     cond {\n      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
                "      stablehlo.return %c : tensor<i1>\n    } do {\n"
                "      %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<3x8xT>, tensor<8x2xT>) -> "
                "tensor<3x2xT>\n"
                "      %h = stablehlo.divide %d, %two : tensor<3x2xT>\n      %s = stablehlo.add %y, %h : tensor<3x2xT>\n"
                "      %j = stablehlo.add %i, %one : tensor<i32>\n"
                "      stablehlo.return %j, %x, %w, %s : tensor<i32>, tensor<3x8xT>, tensor<8x2xT>, tensor<3x2xT>\n    }\n"
                "    %r0 = stablehlo.negate %q#3 : tensor<3x2xT>")
                .replace("xT>", QString("x%1>").arg(type))
                .replace("dense<0> : tensor<3", QString(type) == "f32" ? "dense<0.0> : tensor<3" : "dense<0> : tensor<3")
                .replace("dense<2> : tensor<3", QString(type) == "f32" ? "dense<2.0> : tensor<3" : "dense<2> : tensor<3"));
    row("one of two branches", {"i32", "6x5xf32"}, {"5x6xf32"},
        "%q = \"stablehlo.case\"(%in0) ({\n      %b = stablehlo.transpose %in1, dims = [1, 0] : (tensor<6x5xf32>) -> "
        "tensor<5x6xf32>\n      stablehlo.return %b : tensor<5x6xf32>\n    }, {\n"
        "      %b = stablehlo.reshape %in1 : (tensor<6x5xf32>) -> tensor<5x6xf32>\n      stablehlo.return %b : tensor<5x6xf32>\n"
        "    }) : (tensor<i32>) -> tensor<5x6xf32>\n    %r0 = stablehlo.negate %q : tensor<5x6xf32>");

    // ---- what needs all elements
    row("sort of columns", {"6x5xf32"}, {"6x5xf32"},
        "%r0 = \"stablehlo.sort\"(%in0) <{dimension = 0 : i64, is_stable = true}> ({\n"
        "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
        "      %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "      stablehlo.return %l : tensor<i1>\n    }) : (tensor<6x5xf32>) -> tensor<6x5xf32>");
    const QString sort = "%v, %w = \"stablehlo.sort\"(%in0, %i) <{dimension = 1 : i64, is_stable = true}> ({\n"
                         "    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):\n"
                         "      %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
                         "      stablehlo.return %l : tensor<i1>\n    }) : (tensor<5x6xf32>, tensor<5x6xi32>) -> "
                         "(tensor<5x6xf32>, tensor<5x6xi32>)\n";
    row("argsort, whose values nobody reads", {"5x6xf32"}, {"5x6xi32"},
        "%i = stablehlo.iota dim = 1 : tensor<5x6xi32>\n    " + sort
            + "    %o = stablehlo.constant dense<1> : tensor<5x6xi32>\n    %r0 = stablehlo.add %w, %o : tensor<5x6xi32>");
    row("sort, whose places nobody reads", {"5x6xf32"}, {"5x6xf32"},
        "%i = stablehlo.iota dim = 1 : tensor<5x6xi32>\n    " + sort + "    %r0 = stablehlo.negate %v : tensor<5x6xf32>");
    const auto bits = [&](const char* name, const char* algorithm, const QString& type) {
        row(name, {}, {type, "2xi64"},
            QString(
                "%s = stablehlo.constant dense<[5, 18446744073709551615]> : tensor<2xui64>\n"
                "    %n, %b = stablehlo.rng_bit_generator %s, algorithm = %1 : (tensor<2xui64>) -> (tensor<2xui64>, tensor<%2>)\n"
                "    %r0 = stablehlo.reshape %b : (tensor<%2>) -> tensor<%2>\n"
                "    %r1 = stablehlo.convert %n : (tensor<2xui64>) -> tensor<2xi64>")
                .arg(algorithm, type));
    };
    bits("bits of Threefry", "THREE_FRY", "5x3xi32");
    bits("bits of Threefry in pairs", "THREE_FRY", "5x6xi32");
    bits("bits of Philox", "PHILOX", "5x6xi32");
    row("bitcast to two of each", {"5x4xi32"}, {"5x4x2xi16"},
        "%r0 = stablehlo.bitcast_convert %in0 : (tensor<5x4xi32>) -> tensor<5x4x2xi16>");
    row("bitcast of pairs", {"5x4x2xi16"}, {"5x4xi32"},
        "%r0 = stablehlo.bitcast_convert %in0 : (tensor<5x4x2xi16>) -> tensor<5x4xi32>");
    row("top_k of all", {"5x4xf32"}, {"5x4xf32", "5x4xi32"},
        "%r0, %r1 = chlo.top_k(%in0, k = 4) : tensor<5x4xf32> -> (tensor<5x4xf32>, tensor<5x4xi32>)");
    row("top_k", {"5x8xf32"}, {"5x3xf32", "5x3xi32"},
        "%r0, %r1 = chlo.top_k(%in0, k = 3) : tensor<5x8xf32> -> (tensor<5x3xf32>, tensor<5x3xi32>)");
    row("triangular_solve", {"3x4x4xf32", "3x4x5xf32"}, {"3x4x5xf32"},
        "%r0 = \"stablehlo.triangular_solve\"(%in0, %in1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose "
        "NO_TRANSPOSE>, unit_diagonal = true}> : (tensor<3x4x4xf32>, tensor<3x4x5xf32>) -> tensor<3x4x5xf32>");
}

void TestSplitOps::ops()
{
    QFETCH(QStringList, arguments);
    QFETCH(QStringList, results);
    QFETCH(QString, ops);
    const int draws = drawsOfRow();
    for (const std::uint64_t seed : {std::uint64_t{1}, m_fresh})
        check({arguments, results, ops}, seed, draws / 2);
}

void TestSplitOps::check(const SplitOps& row, std::uint64_t seed, int draws)
{
    tests::Random random(seed);
    const tests::RandomLimits limits{.open = false, .unreduced = false, .replicated = false};
    for (int draw = 0; draw < draws; ++draw) {
        Mesh mesh = tests::randomMesh(random, limits);
        if (mesh.deviceCount() > 16)
            mesh = valueOf(parseMesh(draw % 2 == 0 ? "x=2,y=2,z=2" : "x=8"));
        std::vector<TensorSharding> arguments;
        std::vector<std::optional<TensorSharding>> results;
        for (const QString& type : row.arguments)
            arguments.push_back(tests::randomSharding(random, rankOf(type), mesh, limits));
        for (const QString& type : row.results) {
            results.emplace_back();
            if (tests::chance(random, 50))
                results.back() = tests::randomSharding(random, rankOf(type), mesh, limits);
        }
        const std::string text = programOf(row, mesh, arguments, results);
        bool whole = false;
        const std::string fault = faultOf(text, whole);
        ++m_drawn;
        m_whole += whole ? 1 : 0;
        QVERIFY2(fault.empty(), fmt::format("seed {}, draw {}: {}\n{}", seed, draw, fault, text).c_str());
        QVERIFY2(!whole, fmt::format("seed {}, draw {}: partitioned whole\n{}", seed, draw, text).c_str());
    }
}

/// All reshapes between small shapes of as many elements, with every dimension split in every way.
void TestSplitOps::reshapes()
{
    const Mesh mesh = valueOf(parseMesh("x=2,y=2"));
    std::map<std::int64_t, std::vector<Shape>> shapes; // by elements
    for (std::int64_t a = 1; a <= 6; ++a) {
        shapes[a].push_back({a});
        for (std::int64_t b = 1; b <= 6; ++b) {
            shapes[a * b].push_back({a, b});
            for (std::int64_t c = 1; c <= 4; ++c) {
                if (a <= 4)
                    shapes[a * b * c].push_back({a, b, c});
            }
        }
    }
    tests::Random random(m_fresh);
    const tests::RandomLimits limits{.open = false, .unreduced = false, .replicated = false};
    const auto typeOf = [](const Shape& shape) {
        QString text;
        for (const std::int64_t size : shape)
            text += QString::number(size) + "x";
        return text + "f32";
    };
    for (const std::int64_t elements : {6, 8, 12, 24}) {
        for (const Shape& from : shapes[elements]) {
            for (const Shape& to : shapes[elements]) {
                if (drawsOfRow() <= 12 && !tests::chance(random, 12))
                    continue;
                const SplitOps row{{typeOf(from)}, {typeOf(to)},
                    "    %r0 = stablehlo.reshape %in0 : (tensor<" + typeOf(from) + ">) -> tensor<" + typeOf(to) + ">\n"};
                const std::string text = programOf(row, mesh, {tests::randomSharding(random, from.size(), mesh, limits)},
                    {tests::randomSharding(random, to.size(), mesh, limits)});
                bool whole = false;
                const std::string fault = faultOf(text, whole);
                QVERIFY2(fault.empty(), fmt::format("{}\n{}", fault, text).c_str());
                QVERIFY2(!whole, text.c_str());
            }
        }
    }
}

void TestSplitOps::reshapesBehindWholeFactors_data()
{
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("fromLayout");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("toLayout");
    QTest::newRow("of the operand") << "3x4xf32"
                                    << R"([{}, {"x", "y"}])"
                                    << "2x3x2xf32"
                                    << R"([{}, {}, {"y"}])";
    QTest::newRow("of the result") << "2x3x2xf32"
                                   << R"([{}, {}, {"y"}])"
                                   << "3x4xf32"
                                   << R"([{}, {"x", "y"}])";
}

/// 3x4 and 2x3x2 share the last factor of 2. In 3x4 it stands behind another factor of 2, which 2x3x2 does not have: that one is whole while
/// the array is reshaped, and so no device has a piece of what is behind it.
void TestSplitOps::reshapesBehindWholeFactors()
{
    QFETCH(QString, from);
    QFETCH(QString, fromLayout);
    QFETCH(QString, to);
    QFETCH(QString, toLayout);
    const QString text = QString(R"(module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<%1> {sdy.sharding = #sdy.sharding<@mesh, %2>})
      -> (tensor<%3> {sdy.sharding = #sdy.sharding<@mesh, %4>}) {
    %b = stablehlo.reshape %a : (tensor<%1>) -> tensor<%3>
    return %b : tensor<%3>
  }
}
)")
                             .arg(from, fromLayout, to, toLayout);
    bool whole = false;
    const std::string fault = faultOf(text.toStdString(), whole);
    QVERIFY2(fault.empty(), fault.c_str());
    QVERIFY(!whole);
}

void TestSplitOps::groupsOfOne_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("groups");
    QTest::newRow("one device") << R"("x"=1)"
                                << "dense<[[0]]> : tensor<1x1xi64>";
    QTest::newRow("two devices apart") << R"("y"=2)"
                                       << "dense<[[0], [1]]> : tensor<2x1xi64>";
}

/// A sum over one device is what the device has.
void TestSplitOps::groupsOfOne()
{
    QFETCH(QString, mesh);
    QFETCH(QString, groups);
    const std::string axis = mesh.left(3).toStdString();
    const std::string text = fmt::format(
        "module {{\n  sdy.mesh @mesh = <[{0}]>\n  func.func public @main(%a: tensor<4x2xf32>) -> tensor<4x2xf32> {{\n"
        "    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{}}, {{}}]>] out_shardings=[<@mesh, [{{}}, {{}}]>] "
        "manual_axes={{{1}}} "
        "(%b: tensor<4x2xf32>) {{\n"
        "      %1 = \"stablehlo.all_reduce\"(%b) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
        "replica_groups = {2}, "
        "use_global_device_ids}}> ({{\n      ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n        %s = stablehlo.add %x, %y : "
        "tensor<f32>\n"
        "        stablehlo.return %s : tensor<f32>\n      }}) : (tensor<4x2xf32>) -> tensor<4x2xf32>\n"
        "      sdy.return %1 : tensor<4x2xf32>\n    }} : (tensor<4x2xf32>) -> tensor<4x2xf32>\n"
        "    %2 = stablehlo.negate %0 : tensor<4x2xf32>\n    return %2 : tensor<4x2xf32>\n  }}\n}}\n",
        mesh.toStdString(), axis, groups.toStdString());
    bool whole = false;
    const std::string fault = faultOf(text, whole);
    QVERIFY2(fault.empty(), fmt::format("{}\n{}", fault, text).c_str());
}

/// Of an op that nothing is known of every device has its operands whole, and the program's author hears of what that costs.
void TestSplitOps::unknownOpsAreComputedWhole()
{
    for (const bool isSplit : {true, false}) {
        const std::string text
            = fmt::format("module {{\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func public @main(%a: tensor<8x3xf32> "
                          "{{sdy.sharding = #sdy.sharding<@mesh, [{{{}}}, {{}}]>}}) -> tensor<8x3xf32> {{\n"
                          "    %0 = stablehlo.custom_call @something(%a) : (tensor<8x3xf32>) -> tensor<8x3xf32>\n"
                          "    return %0 : tensor<8x3xf32>\n  }}\n}}\n",
                isSplit ? "\"x\"" : "");
        const auto partitioned = propagateAndPartition(valueOf(readProgram(text, "program.mlir")));
        QVERIFY2(partitioned, partitioned ? "" : describe(partitioned.error()).c_str());
        const Problems& warnings = partitioned->device.stages.front().functions.front().warnings;
        QCOMPARE(warnings.size(), std::size_t{isSplit ? 1U : 0U});
        if (!isSplit)
            continue;
        QCOMPARE(QString::fromStdString(warnings.front().id), QString("MW1218"));
        QCOMPARE(warnings.front().severity, Severity::Warning);
        QVERIFY2(warnings.front().message.find("96 B") != std::string::npos, warnings.front().message.c_str());
    }
}

void TestSplitOps::contextThatDoesNotDivide_data()
{
    QTest::addColumn<QString>("context");
    QTest::addColumn<int>("sequence");
    QTest::addColumn<int>("heads");
    QTest::addColumn<QString>("why"); ///< keys and values are gathered; empty: they are not
    QTest::newRow("ring") << "ring" << 8 << 3 << "";
    QTest::newRow("ring of uneven pieces") << "ring" << 6 << 4 << "6 keys and 6 queries do not divide by 4 devices";
    QTest::newRow("heads") << "ulysses" << 8 << 4 << "";
    QTest::newRow("too few heads") << "ulysses" << 8 << 2 << "2 heads with keys of their own do not divide by 4 devices";
}

/// Right all the same, and said.
void TestSplitOps::contextThatDoesNotDivide()
{
    QFETCH(QString, context);
    QFETCH(int, sequence);
    QFETCH(int, heads);
    QFETCH(QString, why);
    const std::string q = fmt::format("tensor<1x{}x{}x1x2xf32>", sequence, heads);
    const std::string k = fmt::format("tensor<1x{}x{}x2xf32>", sequence, heads);
    const std::string attributes
        = fmt::format("{{causal = false, context = \"{}\", operand_type = f32, scale = 5.0e-1 : f64, segmented = "
                      "false, softcap = 0.0e+0 : f64, windowed = false}}",
            context.toStdString());
    const std::string split = "sdy.sharding_constraint %{0} <@mesh, [{{}}, {{\"x\"}}, {{}}, {{}}{2}]> : {1}\n";
    const std::string text = "module {\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func public @main(%q: " + q + ", %k: " + k
        + ", %v: " + k + ") -> " + q + " {\n    %a = " + fmt::format(fmt::runtime(split), "q", q, ", {}")
        + "    %b = " + fmt::format(fmt::runtime(split), "k", k, "") + "    %c = " + fmt::format(fmt::runtime(split), "v", k, "")
        + "    %r:2 = \"mw.attention\"(%a, %b, %c) " + attributes + " : (" + q + ", " + k + ", " + k + ") -> (" + q
        + fmt::format(", tensor<1x{}x{}x1xf32>)\n    return %r#0 : {}\n  }}\n}}\n", sequence, heads, q);
    bool whole = false;
    QCOMPARE(QString::fromStdString(faultOf(text, whole)), QString());
    const auto partitioned = propagateAndPartition(valueOf(readProgram(text, "program.mlir")));
    QVERIFY(partitioned);
    const Problems& warnings = partitioned->device.stages.front().functions.front().warnings;
    QCOMPARE(warnings.size(), std::size_t{why.isEmpty() ? 0U : 1U});
    if (why.isEmpty())
        return;
    QCOMPARE(QString::fromStdString(warnings.front().id), QString("MW1219"));
    QVERIFY2(warnings.front().message.find(why.toStdString()) != std::string::npos, warnings.front().message.c_str());
}

/// What partition writes is not partitioned again, even where its pieces divide.
void TestSplitOps::gatheredPiecesBelongToDevices()
{
    const auto partitioned = propagateAndPartition(valueOf(readProgram(R"(
module attributes {mw.version = 1 : i64} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%p: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
    %0 = sdy.all_gather [{"x"}, {}] %p out_sharding=<@mesh, [{}, {}]> : (tensor<4x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
})",
        "program.mlir")));
    QVERIFY(!partitioned);
    QCOMPARE(QString::fromStdString(partitioned.error().front().id), QString("MW1265"));
}

/// A part by the keys of one device means nothing of whole arrays.
void TestSplitOps::partsBelongToDevices()
{
    const auto partitioned = propagateAndPartition(valueOf(readProgram(R"(
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%q: tensor<1x4x2x1x2xf32>, %k: tensor<1x4x2x2xf32>) -> tensor<1x4x2x1x2xf32> {
    %r:2 = "mw.attention"(%q, %k, %k) {causal = false, context = "ring", operand_type = f32, part = 0 : i64, scale = 1.0 : f64,
      segmented = false, softcap = 0.0 : f64, windowed = false} : (tensor<1x4x2x1x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>)
      -> (tensor<1x4x2x1x2xf32>, tensor<1x4x2x1xf32>)
    return %r#0 : tensor<1x4x2x1x2xf32>
  }
})",
        "program.mlir")));
    QVERIFY(!partitioned);
    QCOMPARE(QString::fromStdString(partitioned.error().front().id), QString("MW1265"));
}

/// An argument of 8 bits is moved as it is, and cast where it is needed.
void TestSplitOps::numbersOfEightBitsMove()
{
    bool whole = false;
    const std::string fault = faultOf(R"(
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<4x6xf8E4M3FN> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x6xf32> {
    %0 = stablehlo.convert %a : (tensor<4x6xf8E4M3FN>) -> tensor<4x6xf32>
    %1 = stablehlo.sine %0 : tensor<4x6xf32>
    %2 = sdy.sharding_constraint %0 <@mesh, [{}, {"x"}]> : tensor<4x6xf32>
    %3 = sdy.sharding_constraint %1 <@mesh, [{}, {"x"}]> : tensor<4x6xf32>
    %4 = stablehlo.add %2, %3 : tensor<4x6xf32>
    return %4 : tensor<4x6xf32>
  }
})",
        whole);
    QVERIFY2(fault.empty(), fault.c_str());
}

/// The update's place is a maximum over x:(1)2, less where a piece by x:(3)2 begins: no device of a group can compute it for the others.
void TestSplitOps::sumsBesidePartsInNoOneGrid()
{
    bool whole = false;
    const std::string fault = faultOf(R"(
module {
  sdy.mesh @mesh = <["x"=6]>
  func.func public @main(%arg0: tensor<2xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>}, %arg1: tensor<4xi32>)
      -> (tensor<4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(3)2}]>}) {
    %least = stablehlo.constant dense<-2147483648> : tensor<i32>
    %0 = stablehlo.reduce(%arg0 init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %1 = stablehlo.remainder %0, %five : tensor<i32>
    %update = stablehlo.constant dense<[-2, -3]> : tensor<2xi32>
    %2 = stablehlo.dynamic_update_slice %arg1, %update, %1 : (tensor<4xi32>, tensor<2xi32>, tensor<i32>) -> tensor<4xi32>
    return %2 : tensor<4xi32>
  }
}
)",
        whole);
    QVERIFY2(fault.empty(), fault.c_str());
}

MESHWRIGHT_TEST(TestSplitOps)

} // namespace tst_split_ops

#include "tst_split_ops.moc"
