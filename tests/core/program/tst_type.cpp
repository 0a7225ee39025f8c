// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/op.h"
#include "core/program/program.h"
#include "core/program/type_names.h"

#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_type {

using namespace meshwright;
using namespace meshwright::tests;

class TestType : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void names_data();
    void names();
    void unknownName();
    void sizes();
    void opNames();
    void classes();
    void labels();
};

void TestType::names_data()
{
    QTest::addColumn<DType>("dtype");
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("jaxName");
    QTest::addColumn<QString>("hloName");
    QTest::addColumn<int>("bytes");
    QTest::addColumn<QString>("kind");

    QTest::newRow("i1") << DType::Pred << "i1"
                        << "bool"
                        << "pred" << 1 << "truth";
    QTest::newRow("i8") << DType::S8 << "i8"
                        << "int8"
                        << "s8" << 1 << "signed";
    QTest::newRow("i64") << DType::S64 << "i64"
                         << "int64"
                         << "s64" << 8 << "signed";
    QTest::newRow("ui16") << DType::U16 << "ui16"
                          << "uint16"
                          << "u16" << 2 << "unsigned";
    QTest::newRow("ui32") << DType::U32 << "ui32"
                          << "uint32"
                          << "u32" << 4 << "unsigned";
    QTest::newRow("f16") << DType::F16 << "f16"
                         << "float16"
                         << "f16" << 2 << "floating";
    QTest::newRow("bf16") << DType::BF16 << "bf16"
                          << "bfloat16"
                          << "bf16" << 2 << "floating";
    QTest::newRow("f32") << DType::F32 << "f32"
                         << "float32"
                         << "f32" << 4 << "floating";
    QTest::newRow("f64") << DType::F64 << "f64"
                         << "float64"
                         << "f64" << 8 << "floating";
    QTest::newRow("f8E4M3FN") << DType::F8E4M3FN << "f8E4M3FN"
                              << "float8_e4m3fn"
                              << "f8e4m3fn" << 1 << "floating";
    QTest::newRow("i4") << DType::S4 << "i4"
                        << "int4"
                        << "s4" << 1 << "signed";
    QTest::newRow("complex<f64>") << DType::C128 << "complex<f64>"
                                  << "complex128"
                                  << "c128" << 16 << "complex";
}

void TestType::names()
{
    QFETCH(DType, dtype);
    QFETCH(QString, name);
    QFETCH(QString, jaxName);
    QFETCH(QString, hloName);
    QFETCH(int, bytes);
    QFETCH(QString, kind);
    QCOMPARE(text(dtypeName(dtype)), name);
    QVERIFY(parseDType(name.toStdString()) == dtype);
    QVERIFY(parseDType(jaxName.toStdString()) == dtype);
    QCOMPARE(text(hloTypeName(dtype)), hloName);
    QVERIFY(parseDType(hloName.toStdString(), {TypeSpelling::Hlo}) == dtype);
    QCOMPARE(byteSize(dtype), std::int64_t{bytes});
    QCOMPARE(isFloating(dtype), kind == "floating");
    QCOMPARE(isInteger(dtype), kind == "signed" || kind == "unsigned");
    QCOMPARE(isUnsigned(dtype), kind == "unsigned");
}

void TestType::unknownName()
{
    QVERIFY(!parseDType("f33"));
    QVERIFY(!parseDType(""));
    QVERIFY(!parseDType("", {TypeSpelling::Hlo, TypeSpelling::StableHlo, TypeSpelling::Jax, TypeSpelling::JaxShort}));
    QVERIFY(!parseDType("u32")); // HLO's
    QVERIFY(!parseDType("ui32", {TypeSpelling::Hlo}));
    QVERIFY(!parseDType("token", {TypeSpelling::Hlo}));
    QVERIFY(!parseDType("s2", {TypeSpelling::Hlo})); // known by name and size alone
    QVERIFY(parseDType("f8_e4m3fn", {TypeSpelling::JaxShort}) == DType::F8E4M3FN);
}

void TestType::sizes()
{
    const TensorType type{DType::BF16, {784, 8192}};
    QCOMPARE(type.elements(), std::int64_t{784 * 8192});
    QCOMPARE(type.bytes(), std::int64_t{784 * 8192 * 2});
    QCOMPARE(text(typeText(type)), QString("bf16[784,8192]"));
    QCOMPARE(text(typeText({DType::F32, {}})), QString("f32[]"));
    QCOMPARE((TensorType{DType::F32, {3, 0}}.bytes()), std::int64_t{0});
}

void TestType::opNames()
{
    std::set<std::string> seen;
    for (std::size_t i = 0; i < kOpKindCount; ++i) {
        const auto kind = static_cast<OpKind>(i);
        QVERIFY(opInfo(kind).kind == kind);
        QVERIFY(parseOpKind(opName(kind)) == kind);
        QVERIFY(seen.insert(opName(kind)).second);
    }
    QVERIFY(!parseOpKind("no_such_op"));
}

void TestType::classes()
{
    QVERIFY(isElementwise(OpKind::Select) && isElementwise(OpKind::ShardingConstraint) && isElementwise(OpKind::Convert));
    QVERIFY(!isElementwise(OpKind::Reduce) && !isElementwise(OpKind::BroadcastInDim) && !isElementwise(OpKind::AllReduce));
    QVERIFY(isCollective(OpKind::AllReduce) && isCollective(OpKind::Reshard) && !isCollective(OpKind::Send));
}

void TestType::labels()
{
    QCOMPARE(text(phaseName(Phase::Backward)), QString("backward"));
    QCOMPARE(text(compareDirectionName(CompareDirection::GreaterEqual)), QString("GE"));
}

MESHWRIGHT_TEST(TestType)

} // namespace tst_type

#include "tst_type.moc"
