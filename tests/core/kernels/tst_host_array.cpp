// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/host_array.h"
#include "core/kernels/narrow_float.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

#include <limits>

namespace tst_host_array {

using namespace meshwright;
using namespace meshwright::test;

class TestHostArray : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void conversions();
    void narrowFloats();
    void boxes_data();
    void boxes();
    void memoryIsAligned();
};

void TestHostArray::conversions()
{
    const std::vector<double> values{-1.5, 0.0, 2.75, 300.0};
    QCOMPARE(HostArray::of({DType::F32, {4}}, values).values(), values);
    QCOMPARE(HostArray::of({DType::F64, {2, 2}}, values).values(), values);
    QCOMPARE(HostArray::of({DType::S32, {4}}, values).values(), (std::vector<double>{-1, 0, 2, 300}));
    QCOMPARE(HostArray::of({DType::Pred, {4}}, values).values(), (std::vector<double>{1, 0, 1, 1}));
    QCOMPARE(HostArray::of({DType::F16, {4}}, values).values(), values);
    QCOMPARE(HostArray::of({DType::F32, {4}}, values).converted(DType::S64).values(), (std::vector<double>{-1, 0, 2, 300}));
    QCOMPARE(HostArray::filled({DType::U8, {3}}, 7.0).values(), (std::vector<double>{7, 7, 7}));
    QVERIFY(HostArray::of({DType::F32, {4}}, values) == HostArray::of({DType::F32, {4}}, values));
    QVERIFY(!(HostArray::of({DType::F32, {4}}, values) == HostArray::of({DType::F32, {2, 2}}, values)));
}

void TestHostArray::narrowFloats()
{
    // bfloat16 has 8 bits of mantissa: 1 + 2^-8 is half-way between 1 and 1 + 2^-7 and goes to the even one, 1.
    QCOMPARE(fromBfloat16(bfloat16Bits(1.0F + 0x1p-8F)), 1.0F);
    QCOMPARE(fromBfloat16(bfloat16Bits(1.0F + 0x1.8p-7F)), 1.0F + 0x1p-6F);
    QVERIFY(std::isnan(fromBfloat16(bfloat16Bits(std::numeric_limits<float>::quiet_NaN()))));
    QCOMPARE(fromBfloat16(bfloat16Bits(std::numeric_limits<float>::max())), std::numeric_limits<float>::infinity());
    // Halves: largest 65504, smallest normal 2^-14, smallest 2^-24.
    QCOMPARE(fromHalf(halfBits(65504.0F)), 65504.0F);
    QCOMPARE(fromHalf(halfBits(65519.0F)), 65504.0F);
    QCOMPARE(fromHalf(halfBits(65520.0F)), std::numeric_limits<float>::infinity());
    QCOMPARE(fromHalf(halfBits(0x1p-24F)), 0x1p-24F);
    QCOMPARE(fromHalf(halfBits(0x1.8p-25F)), 0x1p-24F);
    QCOMPARE(fromHalf(halfBits(0x1p-25F)), 0.0F);
    QCOMPARE(fromHalf(halfBits(-1.0F - 0x1p-11F)), -1.0F);
    for (std::uint32_t bits = 0; bits < 0x7c00U; ++bits) { // every finite half survives
        const auto half = static_cast<std::uint16_t>(bits);
        QCOMPARE(halfBits(fromHalf(half)), half);
    }
}

void TestHostArray::boxes_data()
{
    QTest::addColumn<Shape>("shape");
    QTest::addColumn<Shape>("starts");
    QTest::addColumn<Shape>("stops");

    QTest::newRow("scalar") << Shape{} << Shape{} << Shape{};
    QTest::newRow("whole") << Shape{3, 4} << Shape{0, 0} << Shape{3, 4};
    QTest::newRow("rows") << Shape{3, 4} << Shape{1, 0} << Shape{3, 4};
    QTest::newRow("columns") << Shape{3, 4} << Shape{0, 1} << Shape{3, 3};
    QTest::newRow("inner") << Shape{4, 5, 3, 2} << Shape{1, 2, 0, 0} << Shape{3, 5, 3, 2};
    QTest::newRow("corner") << Shape{2, 3, 4} << Shape{1, 1, 2} << Shape{2, 3, 4};
    QTest::newRow("empty") << Shape{2, 3, 4} << Shape{1, 1, 2} << Shape{2, 1, 4};
}

void TestHostArray::boxes()
{
    QFETCH(Shape, shape);
    QFETCH(Shape, starts);
    QFETCH(Shape, stops);
    IndexBox box;
    for (std::size_t dim = 0; dim < shape.size(); ++dim)
        box.push_back({starts[dim], stops[dim]});

    const HostArray whole = randomArray({DType::F32, shape}, 1);
    const HostArray part = whole.slice(box);
    QCOMPARE(part.type().elements(), boxElements(box));
    for (std::int64_t i = 0; i < part.type().elements(); ++i) {
        Shape index = indexOf(part.type().shape, i);
        for (std::size_t dim = 0; dim < index.size(); ++dim)
            index[dim] += starts[dim];
        QCOMPARE(part.at(i), whole.at(flatOf(shape, index)));
    }
    HostArray target = randomArray({DType::F32, shape}, 2);
    const HostArray before = target;
    target.assign(box, part);
    for (std::int64_t i = 0; i < whole.type().elements(); ++i) {
        const Shape index = indexOf(shape, i);
        bool isInside = true;
        for (std::size_t dim = 0; dim < index.size(); ++dim)
            isInside = isInside && index[dim] >= starts[dim] && index[dim] < stops[dim];
        QCOMPARE(target.at(i), isInside ? whole.at(i) : before.at(i));
    }
}

void TestHostArray::memoryIsAligned()
{
    for (const std::int64_t size : {1, 63, 64, 4096}) {
        const AlignedBytes bytes(size);
        QCOMPARE(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, std::uintptr_t{0});
    }
    QCOMPARE(AlignedBytes(0).size(), 0);
}

MESHWRIGHT_TEST(TestHostArray)

} // namespace tst_host_array

#include "tst_host_array.moc"
