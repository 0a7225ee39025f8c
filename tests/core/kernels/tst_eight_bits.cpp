// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/eight_bits.h"

#include "core/autodiff/differentiate.h"
#include "core/kernels/narrow_float.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

#include <array>

namespace tst_eight_bits {

using namespace meshwright;
using namespace meshwright::test;

namespace {

/// The number that these bits are, by the format's definition; NaN and infinities as such.
double meaning(unsigned bits, int fractionBits, int bias, bool hasInfinity)
{
    const double sign = (bits & 0x80U) != 0 ? -1.0 : 1.0;
    const int exponent = static_cast<int>((bits & 0x7fU) >> fractionBits);
    const int fraction = static_cast<int>(bits) & ((1 << fractionBits) - 1);
    const int last = (1 << (7 - fractionBits)) - 1;
    if (exponent == last && hasInfinity)
        return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    if (exponent == last && fraction == (1 << fractionBits) - 1)
        return std::numeric_limits<double>::quiet_NaN();
    const double of = std::ldexp(static_cast<double>(fraction), -fractionBits);
    return sign * (exponent == 0 ? std::ldexp(of, 1 - bias) : std::ldexp(1.0 + of, exponent - bias));
}

double rounded(double value, DType type)
{
    return HostArray::of({type, {}}, std::array{value}).values().front();
}

} // namespace

/// Numbers of 8 bits, and products of what was rounded to them.
class TestEightBits : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyNumber_data();
    void everyNumber();
    void scales_data();
    void scales();
    void cotangentsPass_data();
    void cotangentsPass();
};

void TestEightBits::everyNumber_data()
{
    QTest::addColumn<DType>("type");
    QTest::addColumn<int>("fractionBits");
    QTest::addColumn<int>("bias");
    QTest::addColumn<double>("largest");
    QTest::newRow("f8E4M3FN") << DType::F8E4M3FN << 3 << 7 << 448.0;
    QTest::newRow("f8E5M2") << DType::F8E5M2 << 2 << 15 << 57344.0;
}

/// All 256 are what the format says; what lies between two of them goes to the nearer one, and from the middle to the one with an even fraction.
void TestEightBits::everyNumber()
{
    QFETCH(DType, type);
    QFETCH(int, fractionBits);
    QFETCH(int, bias);
    QFETCH(double, largest);
    std::vector<double> numbers;
    for (unsigned bits = 0; bits < 256; ++bits) {
        const auto byte = static_cast<std::uint8_t>(bits);
        const double is = type == DType::F8E4M3FN ? fromE4m3(byte) : fromE5m2(byte);
        const double expected = meaning(bits, fractionBits, bias, type == DType::F8E5M2);
        QVERIFY2(is == expected || (std::isnan(is) && std::isnan(expected)), qPrintable(QString::number(bits)));
        if (!std::isnan(is) && !std::isinf(is)) {
            QCOMPARE(rounded(is, type), is);
            if (bits < 128)
                numbers.push_back(is);
        }
    }
    QCOMPARE(numbers.back(), largest);
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) { // number i has the bits i
        const double low = numbers[i];
        const double high = numbers[i + 1];
        const double middle = (low + high) / 2.0;
        QCOMPARE(rounded(middle, type), i % 2 == 0 ? low : high);
        QCOMPARE(rounded(-std::nextafter(static_cast<float>(middle), 0.0F), type), -low);
        QCOMPARE(rounded(std::nextafter(static_cast<float>(middle), 1e9F), type), high);
    }
    QCOMPARE(rounded(1e-30, type), 0.0);
    const double beyond = rounded(1e9, type);
    QVERIFY(type == DType::F8E5M2 ? std::isinf(beyond) : std::isnan(beyond));
    QVERIFY(std::isnan(rounded(std::numeric_limits<double>::quiet_NaN(), type)));
}

void TestEightBits::scales_data()
{
    QTest::addColumn<SharedScale>("shared");
    QTest::addColumn<OperandOf>("operand");
    QTest::addColumn<int>("scales"); // how many numbers of one scale each
    QTest::newRow("an array") << SharedScale::Array << OperandOf::Activation << 1;
    QTest::newRow("a gradient") << SharedScale::Array << OperandOf::Gradient << 1;
    QTest::newRow("rows") << SharedScale::Row << OperandOf::Activation << 256;
    QTest::newRow("blocks of rows") << SharedScale::Block << OperandOf::Activation << 512;
    QTest::newRow("blocks of a weight") << SharedScale::Block << OperandOf::Weight << 4;
}

/// Each number is off by at most half a step of the format under the largest one that shares its scale, and is recognised as rounded.
void TestEightBits::scales()
{
    QFETCH(SharedScale, shared);
    QFETCH(OperandOf, operand);
    QFETCH(int, scales);
    const Shape shape{256, 256};
    ValueId made;
    Function function = functionOf({{DType::F32, shape}},
        [&](Builder& b, const std::vector<ValueId>& in) { return made = roundedToEightBits(b, in[0], {1}, shared, operand); });
    const auto known = eightBitValue(function, made);
    QVERIFY(known && known->shared == shared && known->source == function.arguments().front());
    QCOMPARE(known->operand == OperandOf::Gradient, operand == OperandOf::Gradient);
    QCOMPARE(known->operand == OperandOf::Weight, operand == OperandOf::Weight);
    QVERIFY(eightBitSource(function, made).valid());

    HostArray given = randomArray({DType::F32, shape}, 7);
    std::vector<double> values = given.values();
    for (std::size_t i = 0; i < values.size(); ++i) // rows and blocks of very different sizes
        values[i] *= std::ldexp(1.0, static_cast<int>(i / 256 % 5) * 3 + static_cast<int>(i % 256 / 128) * 4 - 20);
    given = HostArray::of({DType::F32, shape}, values);
    const auto result = evaluate(function, std::array{given});
    QVERIFY2(result, result ? "" : problemsText(result.error()).c_str());
    const std::vector<double> rounded = result->front().values();
    const auto group = [&](std::size_t i) -> std::size_t {
        const std::size_t row = i / 256;
        const std::size_t block = i % 256 / 128;
        if (shared == SharedScale::Array)
            return 0;
        if (shared == SharedScale::Row)
            return row;
        return operand == OperandOf::Weight ? row / 128 * 2 + block : row * 2 + block;
    };
    std::map<std::size_t, double> largest;
    for (std::size_t i = 0; i < values.size(); ++i)
        largest[group(i)] = std::max(largest[group(i)], std::abs(values[i]));
    QCOMPARE(static_cast<int>(largest.size()), scales);
    const bool isWide = shared == SharedScale::Array && operand == OperandOf::Gradient;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double most = std::exp2(std::ceil(std::log2(largest[group(i)])));
        const double step
            = isWide ? std::max(std::abs(values[i]) / 8.0, most * 0x1p-31) : std::max(std::abs(values[i]) / 16.0, most * 0x1p-18);
        QVERIFY2(std::abs(values[i] - rounded[i]) <= step,
            qPrintable(QString("%1 became %2 beside %3").arg(values[i]).arg(rounded[i]).arg(largest[group(i)])));
    }
}

void TestEightBits::cotangentsPass_data()
{
    QTest::addColumn<SharedScale>("shared");
    QTest::newRow("array") << SharedScale::Array;
    QTest::newRow("row") << SharedScale::Row;
    QTest::newRow("block") << SharedScale::Block;
}

/// The gradients of a product in 8 bits are those of the product, within what rounding three arrays to 8 bits does, and their products are in 8 bits too.
void TestEightBits::cotangentsPass()
{
    QFETCH(SharedScale, shared);
    const auto product = [&](bool isEightBits) {
        return functionOf({{DType::F32, {160, 256}}, {DType::F32, {256, 192}}}, [&](Builder& b, const std::vector<ValueId>& in) {
            const ValueId x = isEightBits ? roundedToEightBits(b, in[0], {1}, shared, OperandOf::Activation) : in[0];
            const ValueId w = isEightBits ? roundedToEightBits(b, in[1], {0}, shared, OperandOf::Weight) : in[1];
            DotAttributes attributes;
            attributes.lhsContracting = {1};
            attributes.rhsContracting = {0};
            return b.dot(x, w, std::move(attributes));
        });
    };
    const std::array arguments{randomArray({DType::F32, {160, 256}}, 1), randomArray({DType::F32, {256, 192}}, 2)};
    const HostArray cotangent = randomArray({DType::F32, {160, 192}}, 3);
    const auto gradients = [&](bool isEightBits) {
        const Function function = product(isEightBits);
        const auto derivative = differentiate(function, {0, 1}, {0});
        if (!derivative)
            qFatal("%s", problemsText(derivative.error()).c_str());
        int products = 0;
        for (const Op& op : derivative->backward.ops)
            products += op.kind == OpKind::DotGeneral && isEightBitProduct(derivative->backward, op) ? 1 : 0;
        // Residuals of 8 bits are arguments of the backward run, and known to be.
        if (products != (isEightBits ? 2 : 0))
            qFatal("%d products of 8 bits", products);
        std::vector<HostArray> made = *evaluate(derivative->forward, arguments);
        std::vector<HostArray> inputs(made.begin() + 1, made.end());
        inputs.push_back(cotangent);
        return *evaluate(derivative->backward, inputs);
    };
    const std::vector<HostArray> wide = gradients(false);
    const std::vector<HostArray> narrow = gradients(true);
    for (std::size_t i = 0; i < 2; ++i) {
        const std::vector<double> expected = wide[i].values();
        const std::vector<double> actual = narrow[i].values();
        double error = 0.0;
        double size = 0.0;
        for (std::size_t at = 0; at < expected.size(); ++at) {
            error += (actual[at] - expected[at]) * (actual[at] - expected[at]);
            size += expected[at] * expected[at];
        }
        const double relative = std::sqrt(error / size);
        QVERIFY2(relative > 1e-3 && relative < 0.1, qPrintable(QString("gradient %1 is off by %2").arg(i).arg(relative)));
    }
}

MESHWRIGHT_TEST(TestEightBits)

} // namespace tst_eight_bits

#include "tst_eight_bits.moc"
