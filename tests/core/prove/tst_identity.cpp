// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/algebra.h"
#include "core/prove/prove.h"
#include "core/text/program_text.h"
#include "tests/core/prove/why_not.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <array>
#include <random>

namespace tst_identity {

using namespace meshwright;
using namespace meshwright::tests;

/// What no lemma says and an identity does: functions that compute the same in another way, and what differs from them by little.
class TestIdentity : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void residues();
    void elements();
    void functions_data();
    void functions();
    void largeFunctionsAreLeftAlone();
};

namespace {

/// By additions alone.
Residue timesBySums(Residue a, Residue b)
{
    Residue product = 0;
    for (; b != 0; b >>= 1) {
        product = (b & 1) != 0 ? (product + a) % kPrime : product;
        a = (a + a) % kPrime;
    }
    return product;
}

Program programOf(const QString& signature, const QString& ops)
{
    const QString text = QString("sdy.mesh @mesh = <[\"d\"=2, \"t\"=2]>\nfunc.func @main%1 {\n%2\n}\n").arg(signature, ops);
    auto program = readProgram(text.toStdString(), "a.mlir");
    if (!program)
        qWarning("%s", program.error().front().message.c_str());
    return program ? *std::move(program) : Program();
}

} // namespace

void TestIdentity::residues()
{
    const std::uint64_t seed = freshSeed();
    qInfo("seed %llu", static_cast<unsigned long long>(seed));
    std::mt19937_64 random(seed);
    std::vector<Residue> numbers
        = {0, 1, 2, kPrime - 1, kPrime / 2, (Residue{1} << 32) - 1, Residue{1} << 32, (Residue{1} << 60) + 1};
    for (int i = 0; i < 200; ++i)
        numbers.push_back(random() % kPrime);
    for (const Residue a : numbers) {
        for (const Residue b : numbers) {
            QCOMPARE(times(a, b), timesBySums(a, b));
            QCOMPARE(plus(a, b), (a + b) % kPrime);
            QCOMPARE(plus(minus(a, b), b), a);
        }
        Residue power = 1;
        for (int i = 0; i < 70; ++i, power = plus(power, power)) {
            QCOMPARE(timesPowerOfTwo(a, i), times(a, power));
            QCOMPARE(timesPowerOfTwo(timesPowerOfTwo(a, i), -i), a);
        }
    }
    QCOMPARE(residueOf(-1), kPrime - 1);
    QCOMPARE(plus(residueOf(std::numeric_limits<std::int64_t>::min()), residueOf(std::numeric_limits<std::int64_t>::max())),
        residueOf(-1));
}

/// Laws of numbers that hold, and those of numbers without an end or without rounding that do not.
void TestIdentity::elements()
{
    Algebra algebra(1);
    const DType f32 = DType::F32;
    const Element x = algebra.fresh();
    const Element y = algebra.fresh();
    const auto areEqual = [](const Element& a, const Element& b) { return a.residue == b.residue; };
    const auto max = [&](const Element& a, const Element& b) { return algebra.combined(ReduceKind::Max, std::array{a, b}, f32); };
    const Element sum = algebra.add(x, y, f32);
    QVERIFY(areEqual(algebra.multiply(sum, algebra.subtract(x, y, f32), f32),
        algebra.subtract(algebra.multiply(x, x, f32), algebra.multiply(y, y, f32), f32)));
    QVERIFY(!areEqual(x, y));
    QVERIFY(areEqual(max(max(x, y), x), max(y, x)));
    QVERIFY(areEqual(max(x, algebra.identity(ReduceKind::Max, f32)), x));
    QVERIFY(!areEqual(max(x, y), x));
    QVERIFY(areEqual(algebra.constant(0.75, f32), algebra.multiply(algebra.constant(0.25, f32), Algebra::known(3, f32), f32)));
    // 256 + 1 is 256 in eight bits
    const Element rounded = algebra.add(Algebra::known(256, DType::BF16), Algebra::known(1, DType::BF16), DType::BF16);
    QVERIFY(!areEqual(algebra.subtract(rounded, Algebra::known(256, DType::BF16), DType::BF16), Algebra::known(1, DType::BF16)));
    QCOMPARE(algebra.add(Algebra::known(127, DType::S8), Algebra::known(1, DType::S8), DType::S8).number, -128);
    // 0 times what may be infinite
    const Element any = Algebra::opaque(algebra.function("logarithm").add(x.residue));
    QVERIFY(!areEqual(algebra.multiply(any, Algebra::known(0, f32), f32), Algebra::known(0, f32)));
    QVERIFY(areEqual(algebra.multiply(x, Algebra::known(0, f32), f32), Algebra::known(0, f32)));
}

#define S(dims) "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [" dims "]>]>}"
#define A(dims) "{sdy.sharding = #sdy.sharding<@mesh, [" dims "]>}"

void TestIdentity::functions_data()
{
    QTest::addColumn<QString>("signature"); // of the whole program
    QTest::addColumn<QString>("source");
    QTest::addColumn<QString>("local"); // signature of the devices' program
    QTest::addColumn<QString>("device");
    QTest::addColumn<QString>("right"); // a part of it, and ..
    QTest::addColumn<QString>("wrong"); // .. what stands in its place
    QTest::newRow("products in another order")
        << "(%x: tensor<4x6xf32> " A("{\"d\"}, {}") ", %w: tensor<6x8xf32> " A("{}, {}") ", %v: tensor<8x2xf32> " A(
               "{}, {}") ") -> (tensor<4x2xf32> " A("{\"d\"}, {}") ")"
        << "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x8xf32>) -> "
           "tensor<4x8xf32>\n"
           "%1 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x2xf32>) -> "
           "tensor<4x2xf32>\n"
           "return %1 : tensor<4x2xf32>"
        << "(%x: tensor<2x6xf32> " A("{\"d\"}, {}") ", %w: tensor<6x8xf32> " A("{}, {}") ", %v: tensor<8x2xf32> " A(
               "{}, {}") ") -> (tensor<2x2xf32> " A("{\"d\"}, {}") ")"
        << "%0 = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<6x8xf32>, tensor<8x2xf32>) -> "
           "tensor<6x2xf32>\n"
           "%1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] " S(
               "{\"d\"}, {}") " : (tensor<2x6xf32>, tensor<6x2xf32>) -> tensor<2x2xf32>\n"
                              "%2 = stablehlo.add %1, %1 " S("{\"d\"}, {}") " : tensor<2x2xf32>\nreturn %1 : tensor<2x2xf32>"
        << "return %1"
        << "return %2";
    QTest::newRow("a difference of squares")
        << "(%x: tensor<4xf32> " A("{\"t\"}") ", %y: tensor<4xf32> " A("{\"t\"}") ") -> (tensor<4xf32> " A("{\"t\"}") ")"
        << "%0 = stablehlo.multiply %x, %x : tensor<4xf32>\n%1 = stablehlo.multiply %y, %y : tensor<4xf32>\n"
           "%2 = stablehlo.subtract %0, %1 : tensor<4xf32>\nreturn %2 : tensor<4xf32>"
        << "(%x: tensor<2xf32> " A("{\"t\"}") ", %y: tensor<2xf32> " A("{\"t\"}") ") -> (tensor<2xf32> " A("{\"t\"}") ")"
        << "%0 = stablehlo.add %x, %y : tensor<2xf32>\n%1 = stablehlo.subtract %x, %y : tensor<2xf32>\n"
           "%2 = stablehlo.multiply %0, %1 " S("{\"t\"}") " : tensor<2xf32>\nreturn %2 : tensor<2xf32>"
        << "stablehlo.multiply %0, %1"
        << "stablehlo.multiply %0, %0";
    QTest::newRow("a mean of halves, reduced with twice the weight")
        << "(%x: tensor<8xf32> " A("{\"d\"}") ") -> (tensor<f32> " A("") ")"
        << "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%c = stablehlo.constant dense<0.25> : tensor<f32>\n"
           "%0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> "
           "tensor<f32>\n"
           "%1 = stablehlo.multiply %0, %c : tensor<f32>\nreturn %1 : tensor<f32>"
        << "(%x: tensor<4xf32> " A("{\"d\"}") ") -> (tensor<f32> " A("") ")"
        << "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%c = stablehlo.constant dense<0.125> : tensor<f32>\n"
           "%0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> "
           "tensor<f32>\n"
           "%1 = stablehlo.add %0, %0 : tensor<f32>\n%2 = stablehlo.multiply %1, %c : tensor<f32>\n"
           "%3 = sdy.all_reduce {\"d\"} %2 out_sharding=<@mesh, []> : tensor<f32>\nreturn %3 : tensor<f32>"
        << "all_reduce {\"d\"}"
        << "all_reduce {\"t\"}";
    QTest::newRow("turns that are unrolled")
        << "(%x: tensor<4xf32> " A("{\"d\"}") ") -> (tensor<4xf32> " A("{\"d\"}") ")"
        << "%i = stablehlo.constant dense<0> : tensor<i32>\n"
           "%0:2 = stablehlo.while(%a = %i, %b = %x) : tensor<i32>, tensor<4xf32> cond {\n"
           "%n = stablehlo.constant dense<3> : tensor<i32>\n%c = stablehlo.compare LT, %a, %n, SIGNED : (tensor<i32>, "
           "tensor<i32>) -> "
           "tensor<i1>\nstablehlo.return %c : tensor<i1>\n} do {\n%o = stablehlo.constant dense<1> : tensor<i32>\n"
           "%1 = stablehlo.add %a, %o : tensor<i32>\n%2 = stablehlo.add %b, %x : tensor<4xf32>\n"
           "stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>\n}\nreturn %0#1 : tensor<4xf32>"
        << "(%x: tensor<2xf32> " A("{\"d\"}") ") -> (tensor<2xf32> " A("{\"d\"}") ")"
        << "%c = stablehlo.constant dense<4.0> : tensor<2xf32>\n%0 = stablehlo.multiply %x, %c " S(
               "{\"d\"}") " : tensor<2xf32>\n"
                          "return %0 : tensor<2xf32>"
        << "dense<4.0>"
        << "dense<3.0>";
}

/// The devices' program is proved, by an identity; and is not with the wrong part in it.
void TestIdentity::functions()
{
    QFETCH(QString, signature);
    QFETCH(QString, source);
    QFETCH(QString, local);
    QFETCH(QString, device);
    QFETCH(QString, right);
    QFETCH(QString, wrong);
    const Program whole = programOf(signature, source);
    QCOMPARE(whole.functions.size(), std::size_t{1});
    for (const bool isRight : {true, false}) {
        QVERIFY(device.contains(right));
        const Program pieces = programOf(local, isRight ? device : QString(device).replace(right, wrong));
        QCOMPARE(pieces.functions.size(), std::size_t{1});
        const Proof proof = prove(whole, deviceProgramOf(pieces));
        QVERIFY2(proof.isProved() == isRight, whyNot(proof).c_str());
        QCOMPARE(proof.functions.front().isByIdentity, isRight);
    }
}

void TestIdentity::largeFunctionsAreLeftAlone()
{
    const QString signature = "(%x: tensor<4000000xf32> " A("{}") ") -> (tensor<4000000xf32> " A("{}") ")";
    const Program twice
        = programOf(signature, "%0 = stablehlo.add %x, %x : tensor<4000000xf32>\nreturn %0 : tensor<4000000xf32>");
    const Program scaled = programOf(signature,
        "%c = stablehlo.constant dense<2.0> : tensor<4000000xf32>\n%0 = stablehlo.multiply %x, %c : tensor<4000000xf32>\n"
        "return %0 : tensor<4000000xf32>");
    QVERIFY(!prove(twice, deviceProgramOf(scaled)).isProved());
}

MESHWRIGHT_TEST(TestIdentity)

} // namespace tst_identity

#include "tst_identity.moc"
