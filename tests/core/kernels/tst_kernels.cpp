// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/kernel.h"
#include "core/kernels/products.h"
#include "core/kernels/tile_table.h"
#include "core/support/threefry.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

#include <cmath>
#include <limits>

namespace tst_kernels {

using namespace meshwright;
using namespace meshwright::test;

namespace {

HostArray run(const Function& function, const std::vector<HostArray>& arguments, bool inDouble = false)
{
    const auto results = evaluate(function, arguments, {inDouble});
    if (!results)
        qFatal("%s", describe(results.error()).c_str());
    return results->front();
}

} // namespace

class TestKernels : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void unary_data();
    void unary();
    void functionsAreAccurate_data();
    void functionsAreAccurate();
    void specialValues();
    void binary_data();
    void binary();
    void integersWrap();
    void compareAndSelect();
    void converts_data();
    void converts();
    void floatsAreHeldAtBounds_data();
    void floatsAreHeldAtBounds();
    void bitcasts();
    void broadcasts_data();
    void broadcasts();
    void iotaAndConstants();
    void transposes_data();
    void transposes();
    void reductions_data();
    void reductions();
    void sumIsAccurate();
    void products_data();
    void products();
    void productsInBfloat16();
    void randomBits();
    void randomBitsOfAPiece();
    void flagEndsThem_data();
    void flagEndsThem();
    void tablesAgree();
    void membersAreCombinedInOrder();
    void randomWordsAreThoseOfTheirIndex();
    void dimensionsOfOneAreLeftOut();
};

void TestKernels::unary_data()
{
    QTest::addColumn<int>("kind");
    const std::vector<OpKind> kinds{OpKind::Negate, OpKind::Abs, OpKind::Sign, OpKind::Exp, OpKind::Log, OpKind::Log1p,
        OpKind::Tanh, OpKind::Logistic, OpKind::Sqrt, OpKind::Rsqrt, OpKind::Sine, OpKind::Cosine, OpKind::Tan, OpKind::Cbrt,
        OpKind::Expm1, OpKind::Square, OpKind::Floor, OpKind::Ceil, OpKind::RoundNearestEven, OpKind::RoundNearestAway,
        OpKind::IsFinite, OpKind::Erf, OpKind::Erfc, OpKind::ErfInv, OpKind::Not};
    for (const OpKind kind : kinds)
        QTest::newRow(opName(kind)) << static_cast<int>(kind);
}

double unaryReference(OpKind kind, double x)
{
    switch (kind) {
    case OpKind::Negate:
        return -x;
    case OpKind::Abs:
        return std::abs(x);
    case OpKind::Sign:
        return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
    case OpKind::Exp:
        return std::exp(x);
    case OpKind::Log:
        return std::log(x);
    case OpKind::Log1p:
        return std::log1p(x);
    case OpKind::Tanh:
        return std::tanh(x);
    case OpKind::Logistic:
        return 1.0 / (1.0 + std::exp(-x));
    case OpKind::Sqrt:
        return std::sqrt(x);
    case OpKind::Rsqrt:
        return 1.0 / std::sqrt(x);
    case OpKind::Sine:
        return std::sin(x);
    case OpKind::Cosine:
        return std::cos(x);
    case OpKind::Tan:
        return std::tan(x);
    case OpKind::Cbrt:
        return std::cbrt(x);
    case OpKind::Expm1:
        return std::expm1(x);
    case OpKind::Square:
        return x * x;
    case OpKind::Floor:
        return std::floor(x);
    case OpKind::Ceil:
        return std::ceil(x);
    case OpKind::RoundNearestEven:
        return std::nearbyint(x);
    case OpKind::RoundNearestAway:
        return std::round(x);
    case OpKind::IsFinite:
        return 1.0;
    case OpKind::Erf:
        return std::erf(x);
    case OpKind::Erfc:
        return std::erfc(x);
    default:
        return std::nan("");
    }
}

void TestKernels::unary()
{
    QFETCH(int, kind);
    const auto op = static_cast<OpKind>(kind);
    const bool needsPositive = op == OpKind::Log || op == OpKind::Log1p || op == OpKind::Sqrt || op == OpKind::Rsqrt;
    for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16, DType::S32, DType::S64, DType::U32, DType::U64,
             DType::S8, DType::Pred}) {
        const bool anyType = op == OpKind::Negate || op == OpKind::Abs || op == OpKind::Sign || op == OpKind::Square;
        const bool isFit = op == OpKind::Not ? !isFloating(dtype) : isFloating(dtype) || (anyType && dtype != DType::Pred);
        if (!isFit || (op == OpKind::Not && dtype != DType::Pred && dtype != DType::S32)
            || (isUnsigned(dtype) && op == OpKind::Negate))
            continue;
        for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{3, 2049}}) {
            HostArray x = randomArray({dtype, shape}, 3);
            std::vector<double> inputs = x.values();
            if (needsPositive || op == OpKind::ErfInv) {
                for (double& value : inputs)
                    value = op == OpKind::ErfInv ? value * 0.499 : std::abs(value) + 0.1;
                x = HostArray::of({dtype, shape}, inputs);
                inputs = x.values();
            }
            const HostArray y = run(functionOf({x.type()}, [&](Builder& b, const auto& a) { return b.unary(op, a[0]); }), {x});
            QVERIFY(y.type() == (op == OpKind::IsFinite ? TensorType{DType::Pred, shape} : x.type()));
            const double tolerance = dtype == DType::F64 ? 1e-14
                : dtype == DType::F32                    ? 1.2e-7
                : dtype == DType::BF16                   ? 0.004
                                                         : 0.0005;
            std::vector<double> expected;
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                if (op == OpKind::ErfInv) { // checked through its inverse
                    const double back = std::erf(y.at(static_cast<std::int64_t>(i)));
                    QVERIFY2(
                        std::abs(back - inputs[i]) <= tolerance * 2.0, qPrintable(QString("%1 %2").arg(back).arg(inputs[i])));
                } else if (op == OpKind::Not) {
                    expected.push_back(dtype == DType::Pred ? 1.0 - inputs[i] : -1.0 - inputs[i]);
                } else {
                    expected.push_back(unaryReference(op, inputs[i]));
                }
            }
            if (op != OpKind::ErfInv)
                QCOMPARE(difference(y, expected, tolerance), std::string());
        }
    }
}

void TestKernels::functionsAreAccurate_data()
{
    QTest::addColumn<int>("kind");
    QTest::addColumn<double>("low");
    QTest::addColumn<double>("high");
    QTest::newRow("exp") << static_cast<int>(OpKind::Exp) << -104.0 << 89.0;
    QTest::newRow("log") << static_cast<int>(OpKind::Log) << 1e-44 << 3e38;
    QTest::newRow("log near 1") << static_cast<int>(OpKind::Log) << 0.5 << 2.0;
    QTest::newRow("log1p") << static_cast<int>(OpKind::Log1p) << -0.999 << 100.0;
    QTest::newRow("log1p tiny") << static_cast<int>(OpKind::Log1p) << -1e-7 << 1e-7;
    QTest::newRow("tanh") << static_cast<int>(OpKind::Tanh) << -10.0 << 10.0;
    QTest::newRow("tanh tiny") << static_cast<int>(OpKind::Tanh) << -1e-3 << 1e-3;
    QTest::newRow("logistic") << static_cast<int>(OpKind::Logistic) << -80.0 << 30.0;
}

void TestKernels::functionsAreAccurate()
{
    QFETCH(int, kind);
    QFETCH(double, low);
    QFETCH(double, high);
    // In single precision within one unit of the last place.
    constexpr std::int64_t kCount = 20000;
    std::vector<double> inputs;
    for (std::int64_t i = 0; i < kCount; ++i) {
        const double t = static_cast<double>(i) / static_cast<double>(kCount - 1);
        inputs.push_back(low > 0.0 ? low * std::pow(high / low, t) : low + (high - low) * t);
    }
    const HostArray x = HostArray::of({DType::F32, {kCount}}, inputs);
    const HostArray y
        = run(functionOf({x.type()}, [&](Builder& b, const auto& a) { return b.unary(static_cast<OpKind>(kind), a[0]); }), {x});
    for (std::int64_t i = 0; i < kCount; ++i) {
        const double exact = unaryReference(static_cast<OpKind>(kind), x.at(i));
        const auto nearest = static_cast<float>(exact);
        const double unit = static_cast<double>(std::nextafter(std::abs(nearest), std::numeric_limits<float>::infinity()))
            - std::abs(static_cast<double>(nearest));
        const double error
            = std::isinf(nearest) ? (y.at(i) == static_cast<double>(nearest) ? 0.0 : 9.0) : std::abs(y.at(i) - exact) / unit;
        QVERIFY2(
            error <= 0.51, qPrintable(QString("f(%1) = %2, exact %3: %4 units").arg(x.at(i)).arg(y.at(i)).arg(exact).arg(error)));
    }
}

void TestKernels::specialValues()
{
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const double kNan = std::nan("");
    const auto apply = [&](OpKind kind, const std::vector<double>& inputs) {
        const HostArray x = HostArray::of({DType::F32, {static_cast<std::int64_t>(inputs.size())}}, inputs);
        return run(functionOf({x.type()}, [&](Builder& b, const auto& a) { return b.unary(kind, a[0]); }), {x});
    };
    QCOMPARE(difference(apply(OpKind::Exp, {-kInf, kInf, kNan, 0.0, 100.0, -200.0}), {0.0, kInf, kNan, 1.0, kInf, 0.0}, 0.0),
        std::string());
    QCOMPARE(difference(apply(OpKind::Log, {0.0, -0.0, -1.0, kInf, kNan, 1.0}), {-kInf, -kInf, kNan, kInf, kNan, 0.0}, 0.0),
        std::string());
    QCOMPARE(difference(apply(OpKind::Log1p, {-1.0, -2.0, kInf, kNan, 0.0}), {-kInf, kNan, kInf, kNan, 0.0}, 0.0), std::string());
    QCOMPARE(difference(apply(OpKind::Tanh, {-kInf, kInf, kNan, 0.0}), {-1.0, 1.0, kNan, 0.0}, 0.0), std::string());
    QCOMPARE(difference(apply(OpKind::Logistic, {-kInf, kInf, kNan, 0.0}), {0.0, 1.0, kNan, 0.5}, 0.0), std::string());
    QCOMPARE(difference(apply(OpKind::ErfInv, {-1.0, 1.0, 0.0, kNan}), {-kInf, kInf, 0.0, kNan}, 0.0), std::string());

    const HostArray a = HostArray::of({DType::F32, {3}}, std::vector<double>{kNan, 1.0, 3.0});
    const HostArray b = HostArray::of({DType::F32, {3}}, std::vector<double>{1.0, kNan, 2.0});
    const auto pair = [&](OpKind kind) {
        return run(
            functionOf({a.type(), b.type()}, [&](Builder& builder, const auto& v) { return builder.binary(kind, v[0], v[1]); }),
            {a, b});
    };
    QCOMPARE(difference(pair(OpKind::Maximum), {kNan, kNan, 3.0}, 0.0), std::string());
    QCOMPARE(difference(pair(OpKind::Minimum), {kNan, kNan, 2.0}, 0.0), std::string());
}

double binaryReference(OpKind kind, double x, double y)
{
    const auto bits = [](double value) { return static_cast<std::int64_t>(value); };
    switch (kind) {
    case OpKind::Add:
        return x + y;
    case OpKind::Subtract:
        return x - y;
    case OpKind::Multiply:
        return x * y;
    case OpKind::Divide:
        return x / y;
    case OpKind::Remainder:
        return std::fmod(x, y);
    case OpKind::Maximum:
        return std::max(x, y);
    case OpKind::Minimum:
        return std::min(x, y);
    case OpKind::Power:
        return std::pow(x, y);
    case OpKind::Atan2:
        return std::atan2(x, y);
    case OpKind::And:
        return static_cast<double>(bits(x) & bits(y));
    case OpKind::Or:
        return static_cast<double>(bits(x) | bits(y));
    case OpKind::Xor:
        return static_cast<double>(bits(x) ^ bits(y));
    case OpKind::ShiftLeft:
        return static_cast<double>(bits(x) << bits(y));
    default:
        return static_cast<double>(bits(x) >> bits(y));
    }
}

void TestKernels::binary_data()
{
    QTest::addColumn<int>("kind");
    const std::vector<OpKind> kinds{OpKind::Add, OpKind::Subtract, OpKind::Multiply, OpKind::Divide, OpKind::Remainder,
        OpKind::Maximum, OpKind::Minimum, OpKind::Power, OpKind::Atan2, OpKind::And, OpKind::Or, OpKind::Xor, OpKind::ShiftLeft,
        OpKind::ShiftRightLogical, OpKind::ShiftRightArithmetic};
    for (const OpKind kind : kinds)
        QTest::newRow(opName(kind)) << static_cast<int>(kind);
}

void TestKernels::binary()
{
    QFETCH(int, kind);
    const auto op = static_cast<OpKind>(kind);
    const bool isLogic = op == OpKind::And || op == OpKind::Or || op == OpKind::Xor;
    const bool isShift = op == OpKind::ShiftLeft || op == OpKind::ShiftRightLogical || op == OpKind::ShiftRightArithmetic;
    for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16, DType::S16, DType::S32, DType::S64, DType::U8,
             DType::U32, DType::U64, DType::Pred}) {
        if ((isFloating(dtype) && (isLogic || isShift)) || (!isFloating(dtype) && op == OpKind::Atan2)
            || (dtype == DType::Pred && !isLogic))
            continue;
        for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{5, 3}, Shape{4099}}) {
            std::vector<double> left = randomArray({dtype, shape}, 5).values();
            std::vector<double> right = randomArray({dtype, shape}, 6).values();
            for (std::size_t i = 0; i < left.size(); ++i) {
                if (op == OpKind::Power) {
                    left[i] = std::abs(left[i]) + 0.5;
                    right[i] = std::abs(right[i]) / 4.0;
                }
                if (isShift) {
                    left[i] = std::abs(left[i]);
                    right[i] = std::fmod(std::abs(right[i]), 4.0);
                }
                if ((op == OpKind::Divide || op == OpKind::Remainder) && right[i] == 0.0)
                    right[i] = 3.0;
                if (isUnsigned(dtype) && op == OpKind::Subtract)
                    std::tie(right[i], left[i]) = std::minmax(left[i], right[i]);
            }
            const HostArray x = HostArray::of({dtype, shape}, left);
            const HostArray y = HostArray::of({dtype, shape}, right);
            const HostArray z = run(
                functionOf({x.type(), y.type()}, [&](Builder& b, const auto& a) { return b.binary(op, a[0], a[1]); }), {x, y});
            std::vector<double> expected;
            for (std::int64_t i = 0; i < x.type().elements(); ++i) {
                double value = binaryReference(op, x.at(i), y.at(i));
                if (!isFloating(dtype))
                    value = dtype == DType::U8 ? std::fmod(std::trunc(value), 256.0) : std::trunc(value);
                expected.push_back(value);
            }
            const double tolerance = dtype == DType::F64 ? 1e-15
                : dtype == DType::F32                    ? 1.2e-7
                : dtype == DType::BF16                   ? 0.004
                : dtype == DType::F16                    ? 0.0005
                                                         : 0.0;
            QVERIFY2(difference(z, expected, tolerance).empty(),
                (std::string(dtypeName(dtype)) + " " + difference(z, expected, tolerance)).c_str());
        }
    }
}

void TestKernels::integersWrap()
{
    const auto one = [](OpKind kind, DType dtype, double x, double y) {
        const HostArray a = HostArray::of({dtype, {}}, std::vector<double>{x});
        const HostArray b = HostArray::of({dtype, {}}, std::vector<double>{y});
        return run(
            functionOf({a.type(), b.type()}, [&](Builder& builder, const auto& v) { return builder.binary(kind, v[0], v[1]); }),
            {a, b})
            .at(0);
    };
    QCOMPARE(one(OpKind::Add, DType::S32, 2147483647.0, 1.0), -2147483648.0);
    QCOMPARE(one(OpKind::Subtract, DType::U32, 0.0, 1.0), 4294967295.0);
    QCOMPARE(one(OpKind::Multiply, DType::U8, 200.0, 2.0), 144.0);
    QCOMPARE(one(OpKind::Add, DType::S8, 127.0, 1.0), -128.0);
    QCOMPARE(one(OpKind::Divide, DType::S32, -2147483648.0, -1.0), -2147483648.0);
    QCOMPARE(one(OpKind::Divide, DType::S32, 5.0, 0.0), -1.0);
    QCOMPARE(one(OpKind::Remainder, DType::S32, 5.0, 0.0), 5.0);
    QCOMPARE(one(OpKind::ShiftLeft, DType::U32, 1.0, 32.0), 0.0);
    QCOMPARE(one(OpKind::ShiftRightLogical, DType::S8, -1.0, 4.0), 15.0);
    QCOMPARE(one(OpKind::ShiftRightArithmetic, DType::S8, -16.0, 2.0), -4.0);
    QCOMPARE(one(OpKind::ShiftRightArithmetic, DType::S32, -16.0, 40.0), -1.0);
    QCOMPARE(one(OpKind::ShiftRightArithmetic, DType::U8, 240.0, 2.0), 252.0);
    QCOMPARE(one(OpKind::ShiftRightArithmetic, DType::U32, 4294967280.0, 2.0), 4294967292.0);
    QCOMPARE(one(OpKind::ShiftRightLogical, DType::S32, -1.0, 28.0), 15.0);
    QCOMPARE(one(OpKind::Power, DType::S32, 2.0, -1.0), 0.0);
    QCOMPARE(one(OpKind::Power, DType::S32, -3.0, 3.0), -27.0);
}

void TestKernels::compareAndSelect()
{
    const double kNan = std::nan("");
    const HostArray a = HostArray::of({DType::F32, {5}}, std::vector<double>{1.0, 2.0, 3.0, kNan, kNan});
    const HostArray b = HostArray::of({DType::F32, {5}}, std::vector<double>{2.0, 2.0, 2.0, 2.0, kNan});
    const auto compared = [&](CompareDirection direction) {
        return run(functionOf({a.type(), b.type()},
                       [&](Builder& builder, const auto& v) { return builder.compare(direction, v[0], v[1]); }),
            {a, b})
            .values();
    };
    using Values = std::vector<double>;
    QCOMPARE(compared(CompareDirection::Equal), (Values{0, 1, 0, 0, 0}));
    QCOMPARE(compared(CompareDirection::NotEqual), (Values{1, 0, 1, 1, 1}));
    QCOMPARE(compared(CompareDirection::Less), (Values{1, 0, 0, 0, 0}));
    QCOMPARE(compared(CompareDirection::LessEqual), (Values{1, 1, 0, 0, 0}));
    QCOMPARE(compared(CompareDirection::Greater), (Values{0, 0, 1, 0, 0}));
    QCOMPARE(compared(CompareDirection::GreaterEqual), (Values{0, 1, 1, 0, 0}));

    for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::S64, DType::U8, DType::Pred}) {
        const TensorType type{dtype, {3, 1001}};
        const HostArray p = randomArray({DType::Pred, type.shape}, 1);
        const HostArray x = randomArray(type, 2);
        const HostArray y = randomArray(type, 3);
        const HostArray z = run(
            functionOf({p.type(), type, type}, [](Builder& builder, const auto& v) { return builder.select(v[0], v[1], v[2]); }),
            {p, x, y});
        std::vector<double> expected;
        for (std::int64_t i = 0; i < type.elements(); ++i)
            expected.push_back(p.at(i) != 0.0 ? x.at(i) : y.at(i));
        QCOMPARE(difference(z, expected, 0.0), std::string());
    }
}

void TestKernels::converts_data()
{
    QTest::addColumn<int>("from");
    QTest::addColumn<int>("to");
    for (int from = 0; from <= static_cast<int>(DType::F64); ++from) {
        for (int to = 0; to <= static_cast<int>(DType::F64); ++to)
            QTest::addRow("%s to %s", dtypeName(static_cast<DType>(from)), dtypeName(static_cast<DType>(to))) << from << to;
    }
}

void TestKernels::converts()
{
    QFETCH(int, from);
    QFETCH(int, to);
    const auto source = static_cast<DType>(from);
    const auto target = static_cast<DType>(to);
    const HostArray x = randomArray({source, {1500}}, 4);
    const HostArray y
        = run(functionOf({x.type()},
                  [&](Builder& b, const auto& a) { return b.add(OpKind::Convert, {a[0]}, ConvertAttributes{target}); }),
            {x});
    std::vector<double> inputs = x.values();
    const HostArray expected = HostArray::of({target, {1500}}, inputs);
    for (std::int64_t i = 0; i < 1500; ++i) {
        if (!isUnsigned(target)
            || inputs[static_cast<std::size_t>(i)] >= 0.0) // else held at 0 (from floating types) or wrapped (from integers)
            QCOMPARE(y.at(i), expected.at(i));
    }
}

void TestKernels::floatsAreHeldAtBounds_data()
{
    QTest::addColumn<DType>("target");
    QTest::addColumn<QVector<double>>("expected");
    QTest::newRow("i8") << DType::S8 << QVector<double>{127, -128, 127, 0, 127, -128, 0, 126};
    QTest::newRow("i16") << DType::S16 << QVector<double>{300, -300, 32767, 0, 32767, -32768, 0, 126};
    QTest::newRow("i32") << DType::S32 << QVector<double>{300, -300, 2147483647, 0, 2147483647, -2147483648.0, 0, 126};
    QTest::newRow("ui8") << DType::U8 << QVector<double>{255, 0, 255, 0, 255, 0, 0, 126};
    QTest::newRow("ui16") << DType::U16 << QVector<double>{300, 0, 65535, 0, 65535, 0, 0, 126};
    QTest::newRow("ui32") << DType::U32 << QVector<double>{300, 0, 4294967295, 0, 4294967295, 0, 0, 126};
}

/// What an integer type does not have is its nearest number, as XLA has it, in every width.
void TestKernels::floatsAreHeldAtBounds()
{
    QFETCH(DType, target);
    QFETCH(QVector<double>, expected);
    const double infinity = std::numeric_limits<double>::infinity();
    const std::vector<double> numbers = {300.0, -300.0, 1e10, std::nan(""), infinity, -infinity, -0.9, 126.9};
    for (const DType source : {DType::F32, DType::F64}) {
        const HostArray x = HostArray::of({source, {8}}, numbers);
        const HostArray y
            = run(functionOf({x.type()},
                      [&](Builder& b, const auto& a) { return b.add(OpKind::Convert, {a[0]}, ConvertAttributes{target}); }),
                {x});
        const auto values = y.values();
        QCOMPARE(QVector<double>(values.begin(), values.end()), expected);
        QCOMPARE(x.converted(target).values(), values);
    }
}

void TestKernels::bitcasts()
{
    const HostArray x = randomArray({DType::F32, {2000}}, 7);
    const Function toBits = functionOf({x.type()},
        [](Builder& b, const auto& a) { return b.add(OpKind::BitcastConvert, {a[0]}, ConvertAttributes{DType::U32}); });
    const HostArray bits = run(toBits, {x});
    QCOMPARE(std::memcmp(bits.data(), x.data(), 8000), 0);
    // In double precision the bits are still those of the single-precision value.
    QVERIFY(run(toBits, {x}, true) == bits);
    const Function back = functionOf({bits.type()},
        [](Builder& b, const auto& a) { return b.add(OpKind::BitcastConvert, {a[0]}, ConvertAttributes{DType::F32}); });
    QVERIFY(run(back, {bits}) == x);
    QVERIFY(run(back, {bits}, true) == x.converted(DType::F64));

    const HostArray half = randomArray({DType::BF16, {100}}, 8);
    const Function narrow = functionOf({half.type()},
        [](Builder& b, const auto& a) { return b.add(OpKind::BitcastConvert, {a[0]}, ConvertAttributes{DType::U16}); });
    QCOMPARE(std::memcmp(run(narrow, {half}).data(), half.data(), 200), 0);
}

void TestKernels::broadcasts_data()
{
    QTest::addColumn<Shape>("source");
    QTest::addColumn<Shape>("result");
    QTest::addColumn<std::vector<std::size_t>>("dims");
    using Dims = std::vector<std::size_t>;

    QTest::newRow("scalar") << Shape{} << Shape{3, 700} << Dims{};
    QTest::newRow("scalar to scalar") << Shape{} << Shape{} << Dims{};
    QTest::newRow("row") << Shape{5} << Shape{4, 5} << Dims{1};
    QTest::newRow("row, period not a power of two") << Shape{10} << Shape{2051, 10} << Dims{1};
    QTest::newRow("long row") << Shape{2500} << Shape{3, 2500} << Dims{1};
    QTest::newRow("column") << Shape{5} << Shape{5, 4} << Dims{0};
    QTest::newRow("tall column") << Shape{3000} << Shape{3000, 3} << Dims{0};
    QTest::newRow("long column") << Shape{3} << Shape{3, 2500} << Dims{0};
    QTest::newRow("size 1 stretched") << Shape{4, 1, 3} << Shape{4, 6, 3} << Dims{0, 1, 2};
    QTest::newRow("middle") << Shape{6} << Shape{40, 6, 30} << Dims{1};
    QTest::newRow("outer and inner") << Shape{4, 3} << Shape{4, 500, 3} << Dims{0, 2};
    QTest::newRow("transposing") << Shape{40, 60} << Shape{60, 40} << Dims{1, 0};
    QTest::newRow("to nothing") << Shape{1} << Shape{0, 3} << Dims{1};
    QTest::newRow("to rank 1 of itself") << Shape{5} << Shape{5} << Dims{0};
}

void TestKernels::broadcasts()
{
    QFETCH(Shape, source);
    QFETCH(Shape, result);
    QFETCH(std::vector<std::size_t>, dims);
    for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::S8, DType::Pred}) {
        const HostArray x = randomArray({dtype, source}, 9);
        const HostArray y
            = run(functionOf({x.type()}, [&](Builder& b, const auto& a) { return b.broadcast(a[0], result, dims); }), {x});
        std::vector<double> expected;
        for (std::int64_t i = 0; i < elementCount(result); ++i) {
            const Shape index = indexOf(result, i);
            Shape at;
            for (std::size_t dim = 0; dim < source.size(); ++dim)
                at.push_back(source[dim] == 1 ? 0 : index[dims[dim]]);
            expected.push_back(x.at(flatOf(source, at)));
        }
        QCOMPARE(difference(y, expected, 0.0), std::string());
    }
}

void TestKernels::iotaAndConstants()
{
    for (const DType dtype : {DType::F32, DType::S32, DType::U64, DType::BF16}) {
        for (const std::size_t dim : {0U, 1U, 2U}) {
            const Shape shape{3, 50, 40};
            const HostArray y = run(functionOf({}, [&](Builder& b, const auto&) { return b.iota({dtype, shape}, dim); }), {});
            std::vector<double> expected;
            for (std::int64_t i = 0; i < elementCount(shape); ++i)
                expected.push_back(static_cast<double>(indexOf(shape, i)[dim]));
            QCOMPARE(difference(y, expected, 0.0), std::string());
        }
    }
    QCOMPARE(run(functionOf({},
                     [](Builder& b, const auto&) {
                         return b.splat({DType::F32, {2, 2}}, 0.1);
                     }),
                 {})
                 .at(3),
        static_cast<double>(0.1F));
    ConstantData large;
    large.value = std::int64_t{0x7fffffffffffffff};
    const HostArray wide = run(functionOf({},
                                   [&](Builder& b, const auto&) {
                                       return b.add(OpKind::Constant, {}, ConstantAttributes{{DType::S64, {2}}, large});
                                   }),
        {});
    QCOMPARE(wide.as<std::int64_t>()[1], std::int64_t{0x7fffffffffffffff});

    const HostArray numbers = randomArray({DType::F32, {5, 300}}, 11);
    ConstantData blob;
    blob.value = std::make_shared<const std::string>(
        reinterpret_cast<const char*>(numbers.data()), static_cast<std::size_t>(numbers.bytes()));
    const Function constant = functionOf({}, [&](Builder& b, const auto&) {
        return b.add(OpKind::Constant, {}, ConstantAttributes{numbers.type(), blob});
    });
    QVERIFY(run(constant, {}) == numbers);
    QVERIFY(run(constant, {}, true) == numbers.converted(DType::F64));
}

void TestKernels::transposes_data()
{
    QTest::addColumn<Shape>("shape");
    QTest::addColumn<std::vector<std::size_t>>("permutation");
    using Dims = std::vector<std::size_t>;
    QTest::newRow("matrix") << Shape{37, 50} << Dims{1, 0};
    QTest::newRow("identity") << Shape{3, 4, 5} << Dims{0, 1, 2};
    QTest::newRow("swap the last") << Shape{3, 20, 17} << Dims{0, 2, 1};
    QTest::newRow("swap the first") << Shape{3, 20, 17} << Dims{1, 0, 2};
    QTest::newRow("rotate") << Shape{3, 4, 5} << Dims{1, 2, 0};
    QTest::newRow("rotate back") << Shape{3, 4, 5} << Dims{2, 0, 1};
    QTest::newRow("reverse") << Shape{3, 4, 5, 2} << Dims{3, 2, 1, 0};
    QTest::newRow("heads") << Shape{2, 7, 3, 4} << Dims{0, 2, 1, 3};
    QTest::newRow("with ones") << Shape{1, 7, 1, 4} << Dims{2, 3, 0, 1};
    QTest::newRow("empty") << Shape{3, 0} << Dims{1, 0};
    QTest::newRow("scalar") << Shape{} << Dims{};
}

void TestKernels::transposes()
{
    QFETCH(Shape, shape);
    QFETCH(std::vector<std::size_t>, permutation);
    for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::U8}) {
        const HostArray x = randomArray({dtype, shape}, 12);
        const HostArray y
            = run(functionOf({x.type()}, [&](Builder& b, const auto& a) { return b.transpose(a[0], permutation); }), {x});
        std::vector<double> expected;
        for (std::int64_t i = 0; i < x.type().elements(); ++i) {
            const Shape index = indexOf(y.type().shape, i);
            Shape at(shape.size());
            for (std::size_t dim = 0; dim < shape.size(); ++dim)
                at[permutation[dim]] = index[dim];
            expected.push_back(x.at(flatOf(shape, at)));
        }
        QCOMPARE(difference(y, expected, 0.0), std::string());
    }
}

void TestKernels::reductions_data()
{
    QTest::addColumn<Shape>("shape");
    QTest::addColumn<std::vector<std::size_t>>("dims");
    using Dims = std::vector<std::size_t>;
    QTest::newRow("all") << Shape{30, 50} << Dims{0, 1};
    QTest::newRow("rows") << Shape{3, 5000} << Dims{1};
    QTest::newRow("columns") << Shape{500, 700} << Dims{0};
    QTest::newRow("few columns") << Shape{1000, 3} << Dims{0};
    QTest::newRow("middle") << Shape{3, 70, 5} << Dims{1};
    QTest::newRow("outer and inner") << Shape{4, 5, 6} << Dims{0, 2};
    QTest::newRow("alternating") << Shape{2, 3, 4, 5} << Dims{0, 2};
    QTest::newRow("none of size") << Shape{0, 3} << Dims{0};
    QTest::newRow("to nothing") << Shape{0, 3} << Dims{1};
    QTest::newRow("ones") << Shape{1, 7, 1} << Dims{0, 2};
    QTest::newRow("vector") << Shape{17} << Dims{0};
}

void TestKernels::reductions()
{
    QFETCH(Shape, shape);
    QFETCH(std::vector<std::size_t>, dims);
    constexpr double kInf = std::numeric_limits<double>::infinity();
    for (const ReduceKind kind :
        {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Product, ReduceKind::And, ReduceKind::Or}) {
        const bool isLogic = kind == ReduceKind::And || kind == ReduceKind::Or;
        for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::S32, DType::U64, DType::Pred}) {
            if (isLogic ? dtype != DType::Pred : dtype == DType::Pred)
                continue;
            if (kind == ReduceKind::Product && (dtype == DType::U64 || dtype == DType::S32))
                continue; // would not fit a double
            HostArray x = randomArray({dtype, shape}, 13);
            if (isLogic) // mostly one value, so that both outcomes occur
                x = HostArray::of(x.type(), [&] {
                    std::vector<double> values = numbers(x.type().elements(), 14);
                    for (double& value : values)
                        value = (std::abs(value) < 0.01) != (kind == ReduceKind::And) ? 1.0 : 0.0;
                    return values;
                }());
            const HostArray y
                = run(functionOf({x.type()}, [&](Builder& b, const auto& a) { return b.reduce(kind, a[0], dims); }), {x});
            const bool isEmpty = elementCount(shape) == 0;
            const double identity = kind == ReduceKind::Sum || kind == ReduceKind::Or ? 0.0
                : kind == ReduceKind::Product || kind == ReduceKind::And              ? 1.0
                                                                                      : (kind == ReduceKind::Max ? -kInf : kInf);
            if (isEmpty && !isFloating(dtype))
                continue;
            std::vector<double> expected(static_cast<std::size_t>(y.type().elements()), identity);
            for (std::int64_t i = 0; i < x.type().elements(); ++i) {
                const Shape index = indexOf(shape, i);
                Shape at;
                for (std::size_t dim = 0; dim < shape.size(); ++dim) {
                    if (std::find(dims.begin(), dims.end(), dim) == dims.end())
                        at.push_back(index[dim]);
                }
                double& value = expected[static_cast<std::size_t>(flatOf(y.type().shape, at))];
                const double element = x.at(i);
                value = kind == ReduceKind::Sum                         ? value + element
                    : kind == ReduceKind::Product                       ? value * element
                    : kind == ReduceKind::Max || kind == ReduceKind::Or ? std::max(value, element)
                                                                        : std::min(value, element);
            }
            const std::string wrong = difference(y, expected, dtype == DType::BF16 ? 0.004 : dtype == DType::F32 ? 1e-5 : 1e-13);
            QVERIFY2(wrong.empty(), (std::string(dtypeName(dtype)) + " " + reduceKindName(kind) + " " + wrong).c_str());
        }
    }
}

void TestKernels::sumIsAccurate()
{
    // A million times 0.1f, which a running f32 sum misses by 1 %; in pairs the error stays below a few units of the last place.
    const HostArray x = HostArray::filled({DType::F32, {1000000}}, 0.1);
    const double exact = static_cast<double>(0.1F) * 1e6;
    const HostArray row
        = run(functionOf({x.type()}, [](Builder& b, const auto& a) { return b.reduce(ReduceKind::Sum, a[0], {0}); }), {x});
    QVERIFY(std::abs(row.at(0) - exact) / exact < 3e-7);
    const HostArray y = HostArray::filled({DType::F32, {100000, 3}}, 0.1);
    const HostArray columns
        = run(functionOf({y.type()}, [](Builder& b, const auto& a) { return b.reduce(ReduceKind::Sum, a[0], {0}); }), {y});
    QVERIFY(std::abs(columns.at(2) - exact / 10.0) / exact * 10.0 < 1e-6);
}

void TestKernels::products_data()
{
    QTest::addColumn<Shape>("lhs");
    QTest::addColumn<Shape>("rhs");
    QTest::addColumn<std::vector<std::vector<std::size_t>>>("dims"); // batch of both, contracting of both
    using Dims = std::vector<std::vector<std::size_t>>;
    QTest::newRow("A B") << Shape{7, 9} << Shape{9, 11} << Dims{{}, {}, {1}, {0}};
    QTest::newRow("A^T B") << Shape{9, 7} << Shape{9, 11} << Dims{{}, {}, {0}, {0}};
    QTest::newRow("A B^T") << Shape{7, 9} << Shape{11, 9} << Dims{{}, {}, {1}, {1}};
    QTest::newRow("A^T B^T") << Shape{9, 7} << Shape{11, 9} << Dims{{}, {}, {0}, {1}};
    QTest::newRow("vector dot") << Shape{9} << Shape{9} << Dims{{}, {}, {0}, {0}};
    QTest::newRow("outer") << Shape{3} << Shape{4} << Dims{{}, {}, {}, {}};
    QTest::newRow("matrix vector") << Shape{7, 9} << Shape{9} << Dims{{}, {}, {1}, {0}};
    QTest::newRow("vector matrix") << Shape{9} << Shape{9, 7} << Dims{{}, {}, {0}, {0}};
    QTest::newRow("column") << Shape{7, 1} << Shape{1, 5} << Dims{{}, {}, {1}, {0}};
    QTest::newRow("no terms") << Shape{7, 0} << Shape{0, 5} << Dims{{}, {}, {1}, {0}};
    QTest::newRow("no rows") << Shape{0, 4} << Shape{4, 5} << Dims{{}, {}, {1}, {0}};
    QTest::newRow("batch") << Shape{3, 7, 9} << Shape{3, 9, 5} << Dims{{0}, {0}, {2}, {1}};
    QTest::newRow("batch inside, as attention has heads")
        << Shape{2, 6, 3, 4} << Shape{2, 8, 3, 4} << Dims{{0, 2}, {0, 2}, {3}, {3}};
    QTest::newRow("weights times values") << Shape{2, 3, 6, 8} << Shape{2, 8, 3, 4} << Dims{{0, 1}, {0, 2}, {3}, {1}};
    QTest::newRow("batch last") << Shape{7, 9, 3} << Shape{9, 5, 3} << Dims{{2}, {2}, {1}, {0}};
    QTest::newRow("two contracted") << Shape{5, 3, 4} << Shape{3, 4, 6} << Dims{{}, {}, {1, 2}, {0, 1}};
    QTest::newRow("two contracted, orders differ") << Shape{5, 3, 4} << Shape{4, 3, 6} << Dims{{}, {}, {1, 2}, {1, 0}};
    QTest::newRow("two contracted, the left one's second first")
        << Shape{5, 3, 4} << Shape{4, 3, 6} << Dims{{}, {}, {2, 1}, {0, 1}};
    QTest::newRow("contracted around a free one") << Shape{3, 5, 4} << Shape{3, 4, 6} << Dims{{}, {}, {0, 2}, {0, 1}};
    QTest::newRow("free ones around") << Shape{2, 4, 3, 5} << Shape{4, 3} << Dims{{}, {}, {1, 2}, {0, 1}};
    QTest::newRow("larger") << Shape{17, 40} << Shape{40, 13} << Dims{{}, {}, {1}, {0}};
}

void TestKernels::products()
{
    QFETCH(Shape, lhs);
    QFETCH(Shape, rhs);
    QFETCH(std::vector<std::vector<std::size_t>>, dims);
    for (const ProductBackend backend :
        {ProductBackend::Amx, ProductBackend::Panels, ProductBackend::Eigen, ProductBackend::OpenBlas, ProductBackend::OneDnn}) {
        if (!setProductBackend(backend))
            continue;
        for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16, DType::S32, DType::U64, DType::S8}) {
            DotAttributes attributes;
            attributes.lhsBatch = dims[0];
            attributes.rhsBatch = dims[1];
            attributes.lhsContracting = dims[2];
            attributes.rhsContracting = dims[3];
            attributes.operandType = dtype;
            attributes.resultType = dtype == DType::S8 ? DType::S32 : dtype == DType::BF16 ? DType::F32 : dtype;
            const HostArray a = randomArray({dtype, lhs}, 15);
            const HostArray b = randomArray({dtype, rhs}, 16);
            const HostArray y = run(functionOf({a.type(), b.type()},
                                        [&](Builder& builder, const auto& v) { return builder.dot(v[0], v[1], attributes); }),
                {a, b});
            QVERIFY(y.type().dtype == attributes.resultType);

            // Every pair of elements whose batch and contracting indices agree contributes to one element.
            const auto freeOf
                = [](const Shape& shape, const std::vector<std::size_t>& batch, const std::vector<std::size_t>& contracting) {
                      std::vector<std::size_t> free;
                      for (std::size_t dim = 0; dim < shape.size(); ++dim) {
                          if (std::find(batch.begin(), batch.end(), dim) == batch.end()
                              && std::find(contracting.begin(), contracting.end(), dim) == contracting.end())
                              free.push_back(dim);
                      }
                      return free;
                  };
            const auto pick = [](const Shape& index, const std::vector<std::size_t>& which) {
                Shape picked;
                for (const std::size_t dim : which)
                    picked.push_back(index[dim]);
                return picked;
            };
            std::vector<double> expected(static_cast<std::size_t>(y.type().elements()), 0.0);
            for (std::int64_t i = 0; i < a.type().elements(); ++i) {
                const Shape left = indexOf(lhs, i);
                for (std::int64_t j = 0; j < b.type().elements(); ++j) {
                    const Shape right = indexOf(rhs, j);
                    if (pick(left, dims[0]) != pick(right, dims[1]) || pick(left, dims[2]) != pick(right, dims[3]))
                        continue;
                    Shape at = pick(left, dims[0]);
                    for (const std::int64_t k : pick(left, freeOf(lhs, dims[0], dims[2])))
                        at.push_back(k);
                    for (const std::int64_t k : pick(right, freeOf(rhs, dims[1], dims[3])))
                        at.push_back(k);
                    expected[static_cast<std::size_t>(flatOf(y.type().shape, at))] += a.at(i) * b.at(j);
                }
            }
            std::vector<double> actual = y.values();
            for (std::size_t i = 0; i < expected.size(); ++i) {
                const double tolerance = dtype == DType::F16 ? 0.002
                    : dtype == DType::F64                    ? 1e-13
                    : isFloating(dtype)                      ? 2e-5
                                                             : 0.0;
                QVERIFY2(std::abs(actual[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i])) + 0.0,
                    qPrintable(
                        QString("%1 element %2: %3 instead of %4").arg(dtypeName(dtype)).arg(i).arg(actual[i]).arg(expected[i])));
            }
        }
        // Rounded on the way or stored rounded: the same bits.
        DotAttributes rounding;
        rounding.lhsBatch = dims[0];
        rounding.rhsBatch = dims[1];
        rounding.lhsContracting = dims[2];
        rounding.rhsContracting = dims[3];
        rounding.operandType = DType::BF16;
        const auto productOf = [&](const HostArray& a, const HostArray& b) {
            return run(functionOf({a.type(), b.type()},
                           [&](Builder& builder, const auto& v) { return builder.dot(v[0], v[1], rounding); }),
                {a, b});
        };
        const HostArray a = randomArray({DType::F32, lhs}, 17);
        const HostArray b = randomArray({DType::F32, rhs}, 18);
        QVERIFY(productOf(a.converted(DType::BF16), b.converted(DType::BF16)) == productOf(a, b));
    }
    QVERIFY(chooseProducts(""));
}

void TestKernels::productsInBfloat16()
{
    // 1 + 2^-8 rounds to 1 in bfloat16; the sum of 256 products is exact in f32.
    const HostArray a = HostArray::filled({DType::F32, {2, 256}}, 1.0 + 0x1p-8);
    const HostArray b = HostArray::filled({DType::F32, {256, 3}}, 1.0);
    const Function product = functionOf(
        {a.type(), b.type()}, [](Builder& builder, const auto& v) { return builder.matmul(v[0], v[1], DType::BF16); });
    for (const ProductBackend backend : {ProductBackend::Amx, ProductBackend::Panels, ProductBackend::Eigen}) {
        if (!setProductBackend(backend))
            continue;
        QCOMPARE(run(product, {a, b}).at(5), 256.0);
        QCOMPARE(run(product, {a, b}, true).at(5), 257.0);
    }
    QVERIFY(chooseProducts(""));
}

void TestKernels::randomBits()
{
    // jax.random.uniform(jax.random.key(42), (24,)) + jnp.arange(24); as JAX prints them.
    const HostArray key = HostArray::of({DType::U32, {2}}, std::vector<double>{0, 42});
    const auto uniform = [&](bool partitionable) {
        return run(functionOf({key.type()},
                       [&](Builder& b, const auto& a) {
                           const Shape shape{24};
                           const ValueId bits
                               = b.add(OpKind::RandomBits, {a[0]}, RandomBitsAttributes{{DType::U32, shape}, partitionable});
                           const ValueId mantissa = b.binary(OpKind::ShiftRightLogical, bits, b.splat({DType::U32, shape}, 9));
                           const ValueId oneToTwo = b.binary(OpKind::Or, mantissa, b.splat({DType::U32, shape}, 0x3f800000));
                           const ValueId value = b.add(OpKind::BitcastConvert, {oneToTwo}, ConvertAttributes{DType::F32});
                           const ValueId unit = b.binary(OpKind::Subtract, value, b.splat({DType::F32, shape}, 1.0));
                           return b.binary(OpKind::Add, unit, b.iota({DType::F32, shape}, 0));
                       }),
            {key});
    };
    const auto check = [](const HostArray& values, const std::vector<std::pair<std::int64_t, float>>& expected) {
        for (const auto& [at, value] : expected)
            QCOMPARE(values.as<float>()[static_cast<std::size_t>(at)], value);
    };
    check(uniform(false),
        {{0, 0.72503686F}, {1, 1.8532515F}, {2, 2.983416F}, {3, 3.083253F}, {4, 4.0332246F}, {5, 5.4782867F}, {22, 22.858128F},
            {23, 23.223194F}});
    check(uniform(true),
        {{0, 0.48870957F}, {1, 1.6797972F}, {2, 2.6162715F}, {3, 3.561016F}, {4, 4.4506445F}, {5, 5.585866F}, {22, 22.026257F},
            {23, 23.63918F}});
}

void TestKernels::randomBitsOfAPiece()
{
    // The bits of a piece are those of the whole, in both modes, also for an odd number of elements.
    const Shape whole{5, 7, 3};
    const Shape part{2, 7, 2};
    const Shape start{3, 0, 1};
    std::vector<std::uint32_t> key{123, 456};
    for (const bool partitionable : {false, true}) {
        std::vector<std::vector<std::uint32_t>> made;
        for (const bool isPart : {false, true}) {
            const Shape& shape = isPart ? part : whole;
            const Function function = functionOf({{DType::U32, {2}}}, [&](Builder& b, const auto& a) {
                return b.add(OpKind::RandomBits, {a[0]}, RandomBitsAttributes{{DType::U32, shape}, partitionable});
            });
            const KernelSite site{function, [&](ValueId) { return PieceOfWhole{whole, isPart ? start : Shape(3, 0)}; }};
            const OpId op = function.body().ops.front();
            const auto kernel = makeKernel(site, std::span(&op, 1), function[op].results, [](ValueId) { return true; });
            std::vector<std::uint32_t> bits(static_cast<std::size_t>(elementCount(shape)));
            std::vector<std::byte*> addresses{
                reinterpret_cast<std::byte*>(key.data()), reinterpret_cast<std::byte*>(bits.data())};
            Scratch scratch;
            kernel->run(addresses, scratch, StopFlag{});
            made.push_back(std::move(bits));
        }
        for (std::int64_t i = 0; i < elementCount(part); ++i) {
            Shape index = indexOf(part, i);
            for (std::size_t dim = 0; dim < index.size(); ++dim)
                index[dim] += start[dim];
            QCOMPARE(made[1][static_cast<std::size_t>(i)], made[0][static_cast<std::size_t>(flatOf(whole, index))]);
        }
    }
}

void TestKernels::flagEndsThem_data()
{
    using Build = std::function<ValueId(Builder&, const std::vector<ValueId>&)>;
    QTest::addColumn<DType>("dtype");
    QTest::addColumn<Build>("build");
    QTest::newRow("product") << DType::F32 << Build([](Builder& b, const auto& a) { return b.matmul(a[0], a[0], DType::F32); });
    QTest::newRow("product of narrow numbers")
        << DType::BF16 << Build([](Builder& b, const auto& a) { return b.matmul(a[0], a[0], DType::BF16); });
    QTest::newRow("element by element") << DType::F32
                                        << Build([](Builder& b, const auto& a) { return b.unary(OpKind::Negate, a[0]); });
    QTest::newRow("rows reduced") << DType::F32
                                  << Build([](Builder& b, const auto& a) { return b.reduce(ReduceKind::Sum, a[0], {1}); });
    QTest::newRow("columns reduced") << DType::F32
                                     << Build([](Builder& b, const auto& a) { return b.reduce(ReduceKind::Sum, a[0], {0}); });
    QTest::newRow("transposed") << DType::F32 << Build([](Builder& b, const auto& a) {
        return b.add(OpKind::Transpose, {a[0]}, TransposeAttributes{{1, 0}});
    });
}

/// A kernel that begins with the flag set leaves its result as it was; so it ends within one piece of work when the flag is set later.
void TestKernels::flagEndsThem()
{
    using Build = std::function<ValueId(Builder&, const std::vector<ValueId>&)>;
    QFETCH(DType, dtype);
    QFETCH(Build, build);
    const Function function = functionOf({{dtype, {64, 64}}}, build);
    const KernelSite site{function, [&](ValueId value) { return wholePiece(function[value].type.shape); }};
    const OpId op = function.body().ops.front();
    const ValueId result = function.results().front();
    const auto kernel = makeKernel(site, std::span(&op, 1), function[op].results, [](ValueId) { return true; });
    HostArray in = randomArray({dtype, {64, 64}}, 5);
    const HostArray untouched = HostArray::filled(function[result].type, 77.0);
    StopFlag stop;
    stop.set();
    for (const bool stopped : {true, false}) {
        HostArray out = untouched;
        std::vector<std::byte*> addresses(function.values.size(), nullptr);
        addresses[function.arguments().front().at()] = in.data();
        addresses[result.at()] = out.data();
        Scratch scratch;
        kernel->run(addresses, scratch, stop);
        QCOMPARE(out == untouched, stopped);
        stop.clear();
    }
}

void TestKernels::tablesAgree()
{
    // The same bits from every instruction set, at every position within a tile.
    const TileTable& fast = tileTable();
    const TileTable& plain = baselineTileTable();
    for (const OpKind kind : {OpKind::Exp, OpKind::Log, OpKind::Log1p, OpKind::Tanh, OpKind::Logistic, OpKind::Sqrt,
             OpKind::Rsqrt, OpKind::ErfInv, OpKind::Sine}) {
        const HostArray x = randomArray({DType::F32, {1000}}, 17);
        HostArray a(x.type());
        HostArray b(x.type());
        fast.op(kind, DType::F32)(a.data(), x.data(), nullptr, nullptr, 1000);
        plain.op(kind, DType::F32)(b.data(), x.data(), nullptr, nullptr, 1000);
        QVERIFY(a == b);
        for (std::int64_t at = 0; at < 1000; ++at)
            fast.op(kind, DType::F32)(b.data() + at * 4, x.data() + at * 4, nullptr, nullptr, 1);
        QVERIFY(a == b);
    }
    const HostArray x = randomArray({DType::F32, {5001}}, 18);
    float sums[2] = {};
    fast.reduceRow(ReduceKind::Sum, Lane::F32)(reinterpret_cast<std::byte*>(&sums[0]), x.data(), 5001);
    plain.reduceRow(ReduceKind::Sum, Lane::F32)(reinterpret_cast<std::byte*>(&sums[1]), x.data(), 5001);
    QCOMPARE(sums[0], sums[1]);
}

void TestKernels::membersAreCombinedInOrder()
{
    constexpr std::int64_t kCount = 77;
    constexpr std::int64_t kFirst = 3;
    for (const TileTable* table : {&tileTable(), &baselineTileTable()}) {
        for (const ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Product}) {
            for (const std::size_t members : std::initializer_list<std::size_t>{1, 2, 3, 4, 5, 8, 9, 11, 19}) {
                std::vector<HostArray> operands;
                std::vector<const std::byte*> at;
                for (std::size_t member = 0; member < members; ++member)
                    operands.push_back(randomArray({DType::F32, {kFirst + kCount}}, static_cast<unsigned>(40 + member)));
                for (const HostArray& operand : operands)
                    at.push_back(operand.data());
                const HostArray start = operands.front();
                std::vector<float> expected(start.as<float>().begin() + kFirst, start.as<float>().end());
                auto* sum = reinterpret_cast<std::byte*>(expected.data());
                for (std::size_t member = 1; member < members; ++member)
                    baselineTileTable().combine(kind, Lane::F32)(sum, sum, at[member] + kFirst * 4, nullptr, kCount);
                std::vector<float> made(kCount);
                table->combineMembers(kind, Lane::F32)(
                    reinterpret_cast<std::byte*>(made.data()), at.data(), members, kFirst * 4, kCount);
                QVERIFY(made == expected);
            }
        }
    }
}

void TestKernels::randomWordsAreThoseOfTheirIndex()
{
    const RandomKey key{123, 456};
    constexpr std::uint64_t kCount = std::uint64_t{1} << 40;
    for (const TileTable* table : {&tileTable(), &baselineTileTable()}) {
        for (const std::uint64_t first :
            {std::uint64_t{0}, std::uint64_t{5}, (std::uint64_t{1} << 32) - 40, std::uint64_t{7} << 33}) {
            std::vector<std::uint32_t> words(77);
            table->randomWords(words.data(), key[0], key[1], first, 77);
            for (std::uint64_t i = 0; i < words.size(); ++i)
                QCOMPARE(words[i], randomWord(key, first + i, kCount, true));
        }
    }
}

/// A reduction along them copies, whatever the type.
void TestKernels::dimensionsOfOneAreLeftOut()
{
    for (const DType dtype : {DType::F32, DType::BF16, DType::S8}) {
        const HostArray x = randomArray({dtype, {5, 1, 7, 1}}, 3);
        const HostArray made = run(functionOf({x.type()},
                                       [](Builder& b, const auto& a) {
                                           return b.reduce(ReduceKind::Sum, a[0], {1, 3});
                                       }),
            {x});
        QCOMPARE(made.type().shape, Shape({5, 7}));
        QVERIFY(std::equal(made.data(), made.data() + made.bytes(), x.data()));
    }
}

MESHWRIGHT_TEST(TestKernels)

} // namespace tst_kernels

#include "tst_kernels.moc"
