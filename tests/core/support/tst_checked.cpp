// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/checked.h"
#include "tests/test_class.h"

#include <limits>
#include <vector>

namespace tst_checked {

using namespace meshwright;

class TestChecked : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void multiply_data();
    void multiply();
    void product();
    void ceilDivision_data();
    void ceilDivision();
};

namespace {
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
}

void TestChecked::multiply_data()
{
    QTest::addColumn<qint64>("a");
    QTest::addColumn<qint64>("b");
    QTest::addColumn<bool>("fits");

    QTest::newRow("small") << qint64{6} << qint64{7} << true;
    QTest::newRow("zero") << qint64{kMax} << qint64{0} << true;
    QTest::newRow("largest") << qint64{kMax} << qint64{1} << true;
    QTest::newRow("negative") << qint64{-3} << qint64{4} << true;
    QTest::newRow("too large") << qint64{kMax} << qint64{2} << false;
    QTest::newRow("2^32 squared") << (qint64{1} << 32) << (qint64{1} << 32) << false;
}

void TestChecked::multiply()
{
    QFETCH(qint64, a);
    QFETCH(qint64, b);
    QFETCH(bool, fits);
    const auto result = checkedMultiply(a, b);
    QCOMPARE(result.has_value(), fits);
    if (fits)
        QCOMPARE(*result, std::int64_t{a * b});
}

void TestChecked::product()
{
    QCOMPARE(checkedProduct(std::vector<std::int64_t>{}), std::optional<std::int64_t>(1));
    QCOMPARE(checkedProduct(std::vector<std::int64_t>{2, 3, 7}), std::optional<std::int64_t>(42));
    QCOMPARE(checkedProduct(std::vector<std::int64_t>{kMax, 2}), std::optional<std::int64_t>());
}

void TestChecked::ceilDivision_data()
{
    QTest::addColumn<qint64>("value");
    QTest::addColumn<qint64>("divisor");
    QTest::addColumn<qint64>("expected");

    QTest::newRow("exact") << qint64{12} << qint64{4} << qint64{3};
    QTest::newRow("up") << qint64{13} << qint64{4} << qint64{4};
    QTest::newRow("zero") << qint64{0} << qint64{4} << qint64{0};
    QTest::newRow("less than one") << qint64{1} << qint64{4} << qint64{1};
    QTest::newRow("no overflow") << qint64{kMax} << qint64{2} << (qint64{1} << 62);
}

void TestChecked::ceilDivision()
{
    QFETCH(qint64, value);
    QFETCH(qint64, divisor);
    QFETCH(qint64, expected);
    QCOMPARE(qint64{ceilDiv(value, divisor)}, expected);
}

MESHWRIGHT_TEST(TestChecked)

} // namespace tst_checked

#include "tst_checked.moc"
