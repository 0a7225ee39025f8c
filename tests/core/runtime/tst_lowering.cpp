// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/differentiate.h"
#include "core/partition/batch_norm.h"
#include "core/partition/complex_pairs.h"
#include "core/runtime/evaluate.h"
#include "core/text/program_text.h"
#include "tests/run_on_devices.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

namespace tst_lowering {

using namespace meshwright;
using namespace meshwright::test;

using Complex = std::complex<double>;
using Numbers = std::vector<double>;

namespace {

Program programOf(const std::string& text)
{
    auto program = readProgram(text, "program.mlir");
    if (!program)
        qFatal("%s\n%s", text.c_str(), describe(program.error()).c_str());
    return *std::move(program);
}

Program onPairs(Program program)
{
    auto pairs = withComplexPairs(program.functions.front());
    if (!pairs)
        qFatal("%s", describe(pairs.error()).c_str());
    if (const Problems problems = verify(*pairs, program.meshes); !problems.empty())
        qFatal("%s", describe(problems).c_str());
    program.functions.front() = *std::move(pairs);
    return program;
}

/// A function of arrays of eight, split four ways, that makes a complex array of the first two and gives the parts of what `op` makes of it.
std::string onEight(const std::string& op)
{
    return R"(sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %z = stablehlo.complex %a, %b : tensor<8xcomplex<f32>>
  )" + op
        + R"(
  %re = stablehlo.real %r : (tensor<8xcomplex<f32>>) -> tensor<8xf32>
  %im = stablehlo.imag %r : (tensor<8xcomplex<f32>>) -> tensor<8xf32>
  return %re, %im : tensor<8xf32>, tensor<8xf32>
})";
}

const Numbers kReal{1.0, -2.0, 0.5, 0.0, -0.25, 3.0, 0.0, -1.5};
const Numbers kImaginary{0.5, 1.0, -1.0, 0.0, -2.0, 0.0, 2.0, -0.5};

/// sum of line[j] exp(sign 2 pi i j k / n)
std::vector<Complex> transformed(const std::vector<Complex>& line, double sign)
{
    std::vector<Complex> result(line.size());
    const auto n = static_cast<double>(line.size());
    for (std::size_t k = 0; k < line.size(); ++k) {
        for (std::size_t j = 0; j < line.size(); ++j)
            result[k] += line[j] * std::polar(1.0, sign * 2.0 * std::numbers::pi * static_cast<double>(j * k) / n);
    }
    return result;
}

std::string describeDifference(const HostArray& got, const Numbers& wanted, double tolerance)
{
    const Numbers values = got.values();
    if (values.size() != wanted.size())
        return "sizes differ";
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (!(std::abs(values[i] - wanted[i]) <= tolerance * (1.0 + std::abs(wanted[i]))))
            return fmt::format("element {}: {}, not {}", i, values[i], wanted[i]);
    }
    return {};
}

QStringList collectives(const DeviceStage& stage)
{
    QStringList lines;
    for (const CollectiveUse& use : collectivesOf(stage.functions.front(), stage.mesh()))
        lines << opName(use.kind);
    return lines;
}

} // namespace

/// Ops that run as others: complex numbers as pairs, Fourier transforms, batch norms; and meshes without axes.
class TestLowering : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void complexFunctions_data();
    void complexFunctions();
    void complexEdges_data();
    void complexEdges();
    void complexProduct();
    void complexCarry();
    void notOnPairs();
    void fourier_data();
    void fourier();
    void fourierAlongASplitDimension();
    void fourierOfReals();
    void fourierGradients_data();
    void fourierGradients();
    void batchNorm();
    void batchNormGradient();
    void emptyMesh();
};

void TestLowering::complexFunctions_data()
{
    QTest::addColumn<QString>("op");
    QTest::addColumn<std::function<Complex(Complex)>>("expected");
    const auto row = [](const char* name, const char* op, std::function<Complex(Complex)> expected) {
        QTest::newRow(name) << QString(op) << std::move(expected);
    };
    row("multiply", "%r = stablehlo.multiply %z, %z : tensor<8xcomplex<f32>>", [](Complex z) { return z * z; });
    row("add and negate",
        "%n = stablehlo.negate %z : tensor<8xcomplex<f32>>\n  %s = stablehlo.add %n, %n : tensor<8xcomplex<f32>>\n  %r = "
        "stablehlo.subtract %s, %z : "
        "tensor<8xcomplex<f32>>",
        [](Complex z) { return -3.0 * z; });
    row("exp", "%r = stablehlo.exponential %z : tensor<8xcomplex<f32>>", [](Complex z) { return std::exp(z); });
    row("sqrt", "%r = stablehlo.sqrt %z : tensor<8xcomplex<f32>>", [](Complex z) { return std::sqrt(z); });
    row("tanh", "%r = stablehlo.tanh %z : tensor<8xcomplex<f32>>", [](Complex z) { return std::tanh(z); });
    row("sine", "%r = stablehlo.sine %z : tensor<8xcomplex<f32>>", [](Complex z) { return std::sin(z); });
    row("cosine", "%r = stablehlo.cosine %z : tensor<8xcomplex<f32>>", [](Complex z) { return std::cos(z); });
    row("logistic", "%r = stablehlo.logistic %z : tensor<8xcomplex<f32>>", [](Complex z) { return 1.0 / (1.0 + std::exp(-z)); });
    row("sign", "%r = stablehlo.sign %z : tensor<8xcomplex<f32>>",
        [](Complex z) { return std::abs(z) == 0.0 ? Complex() : z / std::abs(z); });
    row("log1p", "%r = stablehlo.log_plus_one %z : tensor<8xcomplex<f32>>", [](Complex z) { return std::log(1.0 + z); });
    row("divide and power",
        "%c = stablehlo.constant dense<(2.0, -1.5)> : tensor<8xcomplex<f32>>\n  %d = stablehlo.divide %z, %c : "
        "tensor<8xcomplex<f32>>\n  %r = "
        "stablehlo.power %d, %c : tensor<8xcomplex<f32>>",
        [](Complex z) { return z == Complex() ? Complex() : std::pow(z / Complex(2.0, -1.5), Complex(2.0, -1.5)); });
    row("conjugate", "%r = chlo.conj %z : tensor<8xcomplex<f32>> -> tensor<8xcomplex<f32>>",
        [](Complex z) { return std::conj(z); });
    row("length",
        "%l = stablehlo.abs %z : (tensor<8xcomplex<f32>>) -> tensor<8xf32>\n  %r = stablehlo.complex %l, %l : "
        "tensor<8xcomplex<f32>>",
        [](Complex z) { return Complex(std::abs(z), std::abs(z)); });
}

void TestLowering::complexFunctions()
{
    QFETCH(QString, op);
    using Function = std::function<Complex(Complex)>;
    QFETCH(Function, expected);
    const Program program = onPairs(programOf(onEight(op.toStdString())));
    const std::vector arguments{HostArray::of({DType::F32, {8}}, kReal), HostArray::of({DType::F32, {8}}, kImaginary)};
    Numbers real;
    Numbers imaginary;
    double tolerance = 2e-6; // of the longest: a part may be short beside the other
    for (std::size_t i = 0; i < kReal.size(); ++i) {
        const Complex value = expected({kReal[i], kImaginary[i]});
        tolerance = std::max(tolerance, 2e-6 * (1.0 + std::abs(value)));
        real.push_back(value.real());
        imaginary.push_back(value.imag());
    }
    const auto run = tests::runOnDevices(program, arguments);
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    QCOMPARE(describeDifference(run->results[0], real, tolerance), std::string());
    QCOMPARE(describeDifference(run->results[1], imaginary, tolerance), std::string());
    QCOMPARE(collectives(run->stage), QStringList());
}

void TestLowering::complexEdges_data()
{
    QTest::addColumn<QString>("op");
    QTest::addColumn<Complex>("at");
    QTest::addColumn<Complex>("expected");
    const double infinity = std::numeric_limits<double>::infinity();
    QTest::newRow("far left of a sigmoid") << "logistic" << Complex(-80.0, 0.0) << Complex(std::exp(-80.0), 0.0);
    QTest::newRow("tanh next to zero") << "tanh" << Complex(1e-20, 1e-20) << Complex(1e-20, 1e-20);
    QTest::newRow("root below the cut") << "sqrt" << Complex(-1.0, -0.0) << Complex(0.0, -1.0);
    QTest::newRow("logarithm of a length of nearly 1")
        << "log" << Complex(-0.001, -1.0) << std::log(Complex(double{-0.001F}, -1.0));
    QTest::newRow("exponential of a large real number") << "exponential" << Complex(1e10, 0.0) << Complex(infinity, 0.0);
    QTest::newRow("sine of a large imaginary number") << "sine" << Complex(0.0, -90.0) << Complex(0.0, -infinity);
    QTest::newRow("little beside 1") << "exponential_minus_one" << Complex(1e-20, 1e-3) << Complex(-5e-7, 1e-3);
    QTest::newRow("1 and a little") << "log_plus_one" << Complex(1e-20, 0.0) << Complex(1e-20, 0.0);
}

/// Each part is right by itself, however small beside the other.
void TestLowering::complexEdges()
{
    QFETCH(QString, op);
    QFETCH(Complex, at);
    QFETCH(Complex, expected);
    const Program program = onPairs(programOf(onEight("%r = stablehlo." + op.toStdString() + " %z : tensor<8xcomplex<f32>>")));
    const std::vector arguments{HostArray::filled({DType::F32, {8}}, at.real()), HostArray::filled({DType::F32, {8}}, at.imag())};
    const auto run = tests::runOnDevices(program, arguments);
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    const std::array parts{expected.real(), expected.imag()};
    for (std::size_t part = 0; part < parts.size(); ++part) {
        const double made = run->results[part].at(0);
        const bool isRight = made == parts[part] || std::abs(made - parts[part]) <= 1e-4 * std::abs(parts[part]);
        QVERIFY2(isRight, qPrintable(QString("part %1: %2 in place of %3").arg(part).arg(made).arg(parts[part])));
    }
}

/// Contracted over a split dimension: each part of the product is one sum over the devices.
void TestLowering::complexProduct()
{
    const Program program = onPairs(programOf(R"(sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<2x4xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<4x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x4xcomplex<f32>>, tensor<4x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>>
  return %r : tensor<2x2xcomplex<f32>>
})"));
    std::vector<HostArray> arguments;
    for (const Shape& shape : {Shape{2, 4}, Shape{2, 4}, Shape{4, 2}, Shape{4, 2}})
        arguments.push_back(HostArray::of({DType::F32, shape}, randomArray({DType::S32, shape}, arguments.size() + 3).values()));
    Numbers real;
    Numbers imaginary;
    for (std::size_t i = 0; i < 2; ++i) {
        for (std::size_t j = 0; j < 2; ++j) {
            Complex sum;
            for (std::size_t k = 0; k < 4; ++k)
                sum += Complex(arguments[0].values()[4 * i + k], arguments[1].values()[4 * i + k])
                    * Complex(arguments[2].values()[2 * k + j], arguments[3].values()[2 * k + j]);
            real.push_back(sum.real());
            imaginary.push_back(sum.imag());
        }
    }
    const auto run = tests::runOnDevices(program, arguments);
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    QCOMPARE(describeDifference(run->results[0], real, 0.0), std::string()); // small integers
    QCOMPARE(describeDifference(run->results[1], imaginary, 0.0), std::string());
}

void TestLowering::complexCarry()
{
    const Program program = onPairs(programOf(R"(sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xcomplex<f32>> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<(0.0, 1.0)> : tensor<8xcomplex<f32>>
  %r:2 = stablehlo.while(%i = %c0, %z = %a) : tensor<i32>, tensor<8xcomplex<f32>>
  cond {
    %sq = stablehlo.multiply %i, %i : tensor<i32>
    %l = stablehlo.constant dense<5> : tensor<i32>
    %p = stablehlo.compare LT, %sq, %l : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.multiply %z, %i1 : tensor<8xcomplex<f32>>
    stablehlo.return %n, %t : tensor<i32>, tensor<8xcomplex<f32>>
  }
  return %r#1 : tensor<8xcomplex<f32>>
})"));
    const std::vector arguments{HostArray::of({DType::F32, {8}}, kReal), HostArray::of({DType::F32, {8}}, kImaginary)};
    const auto run = tests::runOnDevices(program, arguments); // three times i is -i: the parts are b and -a
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    Numbers minusReal;
    for (const double a : kReal)
        minusReal.push_back(-a);
    QCOMPARE(describeDifference(run->results[0], kImaginary, 0.0), std::string());
    QCOMPARE(describeDifference(run->results[1], minusReal, 0.0), std::string());
}

void TestLowering::notOnPairs()
{
    const Program program = programOf(onEight("%r = stablehlo.tan %z : tensor<8xcomplex<f32>>"));
    const auto pairs = withComplexPairs(program.functions.front());
    QVERIFY(!pairs);
    QCOMPARE(QString::fromStdString(pairs.error().front().id), "MW1231");
}

void TestLowering::fourier_data()
{
    QTest::addColumn<int>("length");
    QTest::addColumn<bool>("inverse");
    for (const int length : {1, 2, 5, 6, 8, 11, 12, 16, 22}) {
        QTest::newRow(qPrintable(QString("forward %1").arg(length))) << length << false;
        QTest::newRow(qPrintable(QString("inverse %1").arg(length))) << length << true;
    }
}

/// Four lines, one on each device.
void TestLowering::fourier()
{
    QFETCH(int, length);
    QFETCH(bool, inverse);
    const std::string type = fmt::format("tensor<4x{}xcomplex<f32>>", length);
    const Program program = onPairs(programOf(fmt::format(R"(sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: {0} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> {0} {{
  %r = stablehlo.fft %a, type = {1}, length = [{2}] : ({0}) -> {0}
  return %r : {0}
}})",
        type, inverse ? "IFFT" : "FFT", length)));
    const Shape shape{4, length};
    const std::vector arguments{randomArray({DType::F32, shape}, 1), randomArray({DType::F32, shape}, 2)};
    Numbers real;
    Numbers imaginary;
    const auto n = static_cast<std::size_t>(length);
    for (std::size_t row = 0; row < 4; ++row) {
        std::vector<Complex> line;
        for (std::size_t i = 0; i < n; ++i)
            line.emplace_back(arguments[0].values()[row * n + i], arguments[1].values()[row * n + i]);
        for (const Complex value : transformed(line, inverse ? 1.0 : -1.0)) {
            real.push_back(value.real() / (inverse ? length : 1.0));
            imaginary.push_back(value.imag() / (inverse ? length : 1.0));
        }
    }
    const auto run = tests::runOnDevices(program, arguments);
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    QCOMPARE(describeDifference(run->results[0], real, 1e-6), std::string());
    QCOMPARE(describeDifference(run->results[1], imaginary, 1e-6), std::string());
    QCOMPARE(collectives(run->stage), QStringList());
}

/// Both dimensions are transformed, and the rows are split: they are gathered first, each part for itself.
void TestLowering::fourierAlongASplitDimension()
{
    const Program program = onPairs(programOf(R"(sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<4x6xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x6xcomplex<f32>> {
  %r = stablehlo.fft %a, type = FFT, length = [4, 6] : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>>
  return %r : tensor<4x6xcomplex<f32>>
})"));
    const std::vector arguments{randomArray({DType::F32, {4, 6}}, 1), randomArray({DType::F32, {4, 6}}, 2)};
    std::vector<Complex> expected;
    for (std::size_t row = 0; row < 4; ++row) {
        std::vector<Complex> line;
        for (std::size_t i = 0; i < 6; ++i)
            line.emplace_back(arguments[0].values()[row * 6 + i], arguments[1].values()[row * 6 + i]);
        for (const Complex value : transformed(line, -1.0))
            expected.push_back(value);
    }
    Numbers real(24);
    for (std::size_t i = 0; i < 6; ++i) {
        const std::vector<Complex> column = transformed({expected[i], expected[6 + i], expected[12 + i], expected[18 + i]}, -1.0);
        for (std::size_t row = 0; row < 4; ++row)
            real[row * 6 + i] = column[row].real();
    }
    const auto run = tests::runOnDevices(program, arguments);
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    QCOMPARE(describeDifference(run->results[0], real, 1e-6), std::string());
    QCOMPARE(collectives(run->stage), (QStringList{"all_gather", "all_gather"}));
}

/// There and back again, along two dimensions of odd and even sizes.
void TestLowering::fourierOfReals()
{
    for (const int length : {7, 8}) {
        const std::string complexType = fmt::format("tensor<4x5x{}xcomplex<f32>>", length / 2 + 1);
        const Program program = onPairs(programOf(fmt::format(R"(sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<4x5x{0}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}, {{}}]>}}) -> ({1}, tensor<4x5x{0}xf32>) {{
  %f = stablehlo.fft %a, type = RFFT, length = [5, {0}] : (tensor<4x5x{0}xf32>) -> {1}
  %r = stablehlo.fft %f, type = IRFFT, length = [5, {0}] : ({1}) -> tensor<4x5x{0}xf32>
  return %f, %r : {1}, tensor<4x5x{0}xf32>
}})",
            length, complexType)));
        const std::vector arguments{randomArray({DType::F32, {4, 5, length}}, 1)};
        const auto run = tests::runOnDevices(program, arguments);
        QVERIFY2(run, run ? "" : describe(run.error()).c_str());
        QCOMPARE(run->results.size(), std::size_t{3});
        QCOMPARE(describeDifference(run->results[2], arguments[0].values(), 2e-6), std::string());
        double sum = 0.0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(5 * length); ++i)
            sum += arguments[0].values()[i];
        QVERIFY(std::abs(run->results[0].values().front() - sum) < 1e-4); // the first one is the sum of all
        QVERIFY(std::abs(run->results[1].values().front()) < 1e-5);
    }
}

void TestLowering::fourierGradients_data()
{
    QTest::addColumn<QString>("type");
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("lengths");
    QTest::newRow("forward") << "FFT"
                             << "tensor<3x5x4xcomplex<f32>>"
                             << "tensor<3x5x4xcomplex<f32>>"
                             << "5, 4";
    QTest::newRow("inverse") << "IFFT"
                             << "tensor<3x6xcomplex<f32>>"
                             << "tensor<3x6xcomplex<f32>>"
                             << "6";
    QTest::newRow("of real numbers, even") << "RFFT"
                                           << "tensor<3x5x6xf32>"
                                           << "tensor<3x5x4xcomplex<f32>>"
                                           << "5, 6";
    QTest::newRow("of real numbers, odd") << "RFFT"
                                          << "tensor<3x7xf32>"
                                          << "tensor<3x4xcomplex<f32>>"
                                          << "7";
    QTest::newRow("to real numbers, even") << "IRFFT"
                                           << "tensor<3x5x4xcomplex<f32>>"
                                           << "tensor<3x5x6xf32>"
                                           << "5, 6";
    QTest::newRow("to real numbers, odd") << "IRFFT"
                                          << "tensor<3x4xcomplex<f32>>"
                                          << "tensor<3x7xf32>"
                                          << "7";
}

/// A transform is linear, so its derivative is its transpose: (F x) . g = x . (F^T g) for all x and g.
void TestLowering::fourierGradients()
{
    QFETCH(QString, type);
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(QString, lengths);
    const QString text = "func.func @main(%a: " + from + ") -> " + to + " {\n  %r = stablehlo.fft %a, type = " + type
        + ", length = [" + lengths + "] : (" + from + ") -> " + to + "\n  return %r : " + to + "\n}";
    const Program program = onPairs(programOf(text.toStdString()));
    const Function& function = program.functions.front();
    const auto indices = [](std::size_t count) {
        std::vector<std::size_t> all(count);
        std::iota(all.begin(), all.end(), std::size_t{0});
        return all;
    };
    const std::size_t results = function.results().size();
    const auto derivative = differentiate(function, indices(function.arguments().size()), indices(results));
    QVERIFY2(derivative, derivative ? "" : describe(derivative.error()).c_str());
    const auto dot = [](const std::vector<HostArray>& a, const std::vector<HostArray>& b) {
        double sum = 0.0;
        for (std::size_t i = 0; i < b.size(); ++i) {
            const Numbers x = a[i].values();
            const Numbers y = b[i].values();
            sum = std::inner_product(x.begin(), x.end(), y.begin(), sum);
        }
        return sum;
    };
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        std::vector<HostArray> x;
        for (const ValueId argument : function.arguments())
            x.push_back(randomArray(function[argument].type, 10 * seed + x.size()));
        std::vector<HostArray> g;
        for (const ValueId result : function.results())
            g.push_back(randomArray(function[result].type, 10 * seed + 5 + g.size()));
        const auto forward = evaluate(function, x);
        const auto backward = evaluate(derivative->backward, g);
        QVERIFY(forward && backward);
        const double expected = dot(*forward, g);
        QVERIFY2(std::abs(dot(x, *backward) - expected) <= 1e-4 * (10.0 + std::abs(expected)),
            qPrintable(QString("%1 in place of %2").arg(dot(x, *backward)).arg(expected)));
    }
}

void TestLowering::batchNorm()
{
    const Program program = programOf(R"(sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %s: tensor<2xf32>, %o: tensor<2xf32>) -> (tensor<8x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<8x2xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%a, %s, %o) {epsilon = 1.0e-3 : f32, feature_index = 1 : i64} : (tensor<8x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<8x2xf32>, tensor<2xf32>, tensor<2xf32>)
  %i = "stablehlo.batch_norm_inference"(%a, %s, %o, %r#1, %r#2) {epsilon = 1.0e-3 : f32, feature_index = 1 : i64} : (tensor<8x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<8x2xf32>
  return %r#0, %r#1, %r#2, %i : tensor<8x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<8x2xf32>
})");
    const std::vector arguments{randomArray({DType::F32, {8, 2}}, 1), HostArray::of({DType::F32, {2}}, Numbers{2.0, 0.5}),
        HostArray::of({DType::F32, {2}}, Numbers{1.0, -1.0})};
    const Numbers x = arguments[0].values();
    Numbers normed(16);
    Numbers means(2);
    Numbers variances(2);
    for (std::size_t f = 0; f < 2; ++f) {
        for (std::size_t i = 0; i < 8; ++i)
            means[f] += x[2 * i + f] / 8.0;
        for (std::size_t i = 0; i < 8; ++i)
            variances[f] += (x[2 * i + f] - means[f]) * (x[2 * i + f] - means[f]) / 8.0;
        for (std::size_t i = 0; i < 8; ++i)
            normed[2 * i + f] = (x[2 * i + f] - means[f]) / std::sqrt(variances[f] + 1e-3) * arguments[1].values()[f]
                + arguments[2].values()[f];
    }
    const auto run = tests::runOnDevices(program, arguments);
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    QCOMPARE(describeDifference(run->results[0], normed, 1e-5), std::string());
    QCOMPARE(describeDifference(run->results[1], means, 1e-6), std::string());
    QCOMPARE(describeDifference(run->results[2], variances, 1e-5), std::string());
    QCOMPARE(describeDifference(run->results[3], normed, 1e-5), std::string());
    // The batch stays split: a mean and a variance over the devices.
    QCOMPARE(collectives(run->stage), (QStringList{"all_reduce", "all_reduce"}));
}

/// Against differences of the loss sum(g * training(x)).
void TestLowering::batchNormGradient()
{
    const Program program = programOf(R"(sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<6x2xf64> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %s: tensor<2xf64>, %m: tensor<2xf64>, %v: tensor<2xf64>, %g: tensor<6x2xf64>) -> (tensor<6x2xf64>, tensor<2xf64>, tensor<2xf64>) {
  %r:3 = "stablehlo.batch_norm_grad"(%a, %s, %m, %v, %g) {epsilon = 1.0e-2 : f32, feature_index = 1 : i64} : (tensor<6x2xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2xf64>, tensor<6x2xf64>) -> (tensor<6x2xf64>, tensor<2xf64>, tensor<2xf64>)
  return %r#0, %r#1, %r#2 : tensor<6x2xf64>, tensor<2xf64>, tensor<2xf64>
})");
    const Numbers x = randomArray({DType::F64, {6, 2}}, 1).values();
    const Numbers g = randomArray({DType::F64, {6, 2}}, 2).values();
    const Numbers scale{1.5, -0.5};
    const auto statistics = [](const Numbers& at, std::size_t f) {
        double mean = 0.0;
        double variance = 0.0;
        for (std::size_t i = 0; i < 6; ++i)
            mean += at[2 * i + f] / 6.0;
        for (std::size_t i = 0; i < 6; ++i)
            variance += (at[2 * i + f] - mean) * (at[2 * i + f] - mean) / 6.0;
        return std::pair(mean, variance);
    };
    const auto loss = [&](const Numbers& at) {
        double sum = 0.0;
        for (std::size_t f = 0; f < 2; ++f) {
            const auto [mean, variance] = statistics(at, f);
            for (std::size_t i = 0; i < 6; ++i)
                sum += g[2 * i + f] * scale[f] * (at[2 * i + f] - mean) / std::sqrt(variance + 1e-2);
        }
        return sum;
    };
    Numbers expected(12);
    for (std::size_t i = 0; i < 12; ++i) {
        Numbers up = x;
        Numbers down = x;
        up[i] += 1e-5;
        down[i] -= 1e-5;
        expected[i] = (loss(up) - loss(down)) / 2e-5;
    }
    const auto [mean0, variance0] = statistics(x, 0);
    const auto [mean1, variance1] = statistics(x, 1);
    const std::vector arguments{HostArray::of({DType::F64, {6, 2}}, x), HostArray::of({DType::F64, {2}}, scale),
        HostArray::of({DType::F64, {2}}, Numbers{mean0, mean1}), HostArray::of({DType::F64, {2}}, Numbers{variance0, variance1}),
        HostArray::of({DType::F64, {6, 2}}, g)};
    const auto run = tests::runOnDevices(program, arguments);
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    QCOMPARE(describeDifference(run->results[0], expected, 1e-6), std::string());
    QCOMPARE(describeDifference(
                 run->results[2], {g[0] + g[2] + g[4] + g[6] + g[8] + g[10], g[1] + g[3] + g[5] + g[7] + g[9] + g[11]}, 1e-9),
        std::string());
}

/// JAX writes `@empty_mesh` first for arrays of which it knows no mesh.
void TestLowering::emptyMesh()
{
    const Program program = programOf(R"(sdy.mesh @empty_mesh = <[]>
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@empty_mesh, [{}]>}) -> tensor<8xf32> {
  %r = stablehlo.add %a, %b : tensor<8xf32>
  return %r : tensor<8xf32>
})");
    const std::vector arguments{HostArray::filled({DType::F32, {8}}, 1.0), HostArray::filled({DType::F32, {8}}, 2.0)};
    const auto run = tests::runOnDevices(program, arguments);
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    QCOMPARE(run->results.front().values(), Numbers(8, 3.0));
    QCOMPARE(run->stage.mesh().deviceCount(), std::int64_t{2});
    QCOMPARE(collectives(run->stage), QStringList());
}

MESHWRIGHT_TEST(TestLowering)

} // namespace tst_lowering

#include "tst_lowering.moc"
