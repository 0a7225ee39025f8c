// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/number.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <cmath>
#include <limits>
#include <random>

namespace tst_number_text {

using namespace meshwright;

/// Floating values as MLIR prints them. The texts of f32 are those of dumps that JAX and MLIR made.
class TestNumberText : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void text_data();
    void text();
    void bits_data();
    void bits();
    void everyHalfRoundTrips_data();
    void everyHalfRoundTrips();
    void textReadsBackTheSame_data();
    void textReadsBackTheSame();
};

void TestNumberText::text_data()
{
    QTest::addColumn<double>("value");
    QTest::addColumn<int>("dtype");
    QTest::addColumn<QString>("expected");

    const auto row = [](double value, DType dtype, const char* expected) {
        QTest::newRow(expected) << value << static_cast<int>(dtype) << QString(expected);
    };
    row(0.0, DType::F32, "0.000000e+00");
    row(-0.0, DType::F32, "-0.000000e+00");
    row(1.0, DType::F32, "1.000000e+00");
    row(13.0, DType::F32, "1.300000e+01");
    row(0.1, DType::F32, "1.000000e-01");
    row(0.125, DType::BF16, "1.250000e-01");
    row(3.140625, DType::BF16, "3.140630e+00"); // half up, as MLIR does
    row(1e-5, DType::F32, "9.99999974E-6");
    row(0.7, DType::F32, "0.699999988");
    row(0.9, DType::F32, "0.899999976");
    row(0.196349546, DType::F32, "0.196349546");
    row(2.3561945, DType::F32, "2.3561945");
    row(6.28318548, DType::F32, "6.28318548");
    row(4.31969, DType::F32, "4.319690e+00");
    row(1.0 / 3.0, DType::F32, "0.333333343");
    row(16777216.0, DType::F32, "0x4B800000");
    row(3.14159265358979, DType::F64, "3.14159265358979");
    row(std::numeric_limits<double>::infinity(), DType::F32, "0x7F800000");
    row(-std::numeric_limits<double>::infinity(), DType::F32, "0xFF800000");
    row(std::numeric_limits<double>::quiet_NaN(), DType::F32, "0x7FC00000");
    row(-std::numeric_limits<double>::infinity(), DType::BF16, "0xFF80");
    row(1e300, DType::F16, "0x7C00");
}

void TestNumberText::text()
{
    QFETCH(double, value);
    QFETCH(int, dtype);
    QFETCH(QString, expected);
    QCOMPARE(QString::fromStdString(floatText(value, static_cast<DType>(dtype))), expected);
}

void TestNumberText::bits_data()
{
    QTest::addColumn<double>("value");
    QTest::addColumn<int>("dtype");
    QTest::addColumn<quint64>("expected");

    const auto row = [](const char* name, double value, DType dtype, quint64 expected) {
        QTest::newRow(name) << value << static_cast<int>(dtype) << expected;
    };
    row("one as bf16", 1.0, DType::BF16, 0x3F80);
    row("one as f16", 1.0, DType::F16, 0x3C00);
    row("ties to even, down", 1.0 + 1.0 / 256.0, DType::BF16, 0x3F80);
    row("ties to even, up", 1.0 + 3.0 / 256.0, DType::BF16, 0x3F82);
    row("rounds up to the next power of two", 1.9999, DType::BF16, 0x4000);
    row("largest f16", 65504.0, DType::F16, 0x7BFF);
    row("just too large for f16", 65520.0, DType::F16, 0x7C00);
    row("smallest subnormal f16", std::ldexp(1.0, -24), DType::F16, 0x0001);
    row("half of it", std::ldexp(1.0, -25), DType::F16, 0x0000);
    row("subnormal f32", std::ldexp(3.0, -149), DType::F32, 0x00000003);
    row("negative", -2.5, DType::F32, 0xC0200000);
    row("f64", 1.0, DType::F64, 0x3FF0000000000000);
}

void TestNumberText::bits()
{
    QFETCH(double, value);
    QFETCH(int, dtype);
    QFETCH(quint64, expected);
    QCOMPARE(quint64(floatBits(value, static_cast<DType>(dtype))), expected);
}

void TestNumberText::everyHalfRoundTrips_data()
{
    QTest::addColumn<int>("dtype");
    QTest::newRow("f16") << static_cast<int>(DType::F16);
    QTest::newRow("bf16") << static_cast<int>(DType::BF16);
}

void TestNumberText::everyHalfRoundTrips()
{
    QFETCH(int, dtype);
    const auto type = static_cast<DType>(dtype);
    for (std::uint64_t bits = 0; bits < 0x10000; ++bits) {
        const double value = floatFromBits(bits, type);
        if (!std::isnan(value))
            QCOMPARE(floatBits(value, type), bits);
    }
}

void TestNumberText::textReadsBackTheSame_data()
{
    tests::addSeeds({7, 8});
}

void TestNumberText::textReadsBackTheSame()
{
    QFETCH(quint64, seed);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 4000; ++i) {
        for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
            const double value = floatFromBits(random() >> (64 - 8 * byteSize(dtype)), dtype);
            const std::string text = floatText(value, dtype);
            if (!std::isnan(value) && !text.starts_with("0x"))
                QCOMPARE(floatBits(std::strtod(text.c_str(), nullptr), dtype), floatBits(value, dtype));
        }
    }
}

MESHWRIGHT_TEST(TestNumberText)

} // namespace tst_number_text

#include "tst_number_text.moc"
