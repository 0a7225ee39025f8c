// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/quantity.h"
#include "tests/test_class.h"

namespace tst_quantity {

using namespace meshwright;

class TestQuantity : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void counts_data();
    void counts();
    void bytes_data();
    void bytes();
};

namespace {

constexpr qint64 kNone = -1;

void addColumns()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<qint64>("value");
}

} // namespace

void TestQuantity::counts_data()
{
    addColumns();
    QTest::newRow("plain") << "4096" << qint64{4096};
    QTest::newRow("k") << "4k" << qint64{4096};
    QTest::newRow("K") << "4K" << qint64{4096};
    QTest::newRow("M") << "1M" << qint64{1048576};
    QTest::newRow("G") << "2G" << qint64{2147483648};
    QTest::newRow("a unit alone") << "k" << kNone;
    QTest::newRow("milli") << "4m" << kNone;
    QTest::newRow("T is 2^40") << "15T" << qint64{15} * 1099511627776;
    QTest::newRow("a fraction") << "1.5k" << qint64{1536};
    QTest::newRow("half a million") << "0.5M" << qint64{524288};
    QTest::newRow("zeros behind a fraction") << "2.500k" << qint64{2560};
    QTest::newRow("a fraction that leaves no whole number") << "0.1k" << kNone;
    QTest::newRow("a fraction without a unit") << "1.5" << kNone;
    QTest::newRow("a point alone") << "1.k" << kNone;
    QTest::newRow("two points") << "1.5.5M" << kNone;
    QTest::newRow("below zero") << "-0.5M" << kNone;
    QTest::newRow("too large") << "9007199254740992G" << kNone;
    QTest::newRow("groups of digits") << "1,048,576" << qint64{1048576};
    QTest::newRow("a group too short") << "1,048,57" << kNone;
    QTest::newRow("a group too long") << "1048,576" << kNone;
    QTest::newRow("nothing before a comma") << ",576" << kNone;
    QTest::newRow("a fraction behind a comma") << "1,5" << kNone;
    QTest::newRow("signs in groups") << "-1,048" << kNone;
    QTest::newRow("powers of ten") << "1e6" << qint64{1000000};
    QTest::newRow("powers of ten with a fraction") << "1.5E+12" << qint64{1500000000000};
    QTest::newRow("a power that leaves a fraction") << "1.25e1" << kNone;
    QTest::newRow("a power below zero") << "1e-3" << kNone;
    QTest::newRow("a power beyond 64 bits") << "1e30" << kNone;
    QTest::newRow("a power without a number") << "e6" << kNone;
    QTest::newRow("a power of a unit") << "1e3k" << kNone;
    QTest::newRow("empty") << "" << kNone;
    QTest::newRow("words") << "many" << kNone;
}

void TestQuantity::counts()
{
    QFETCH(QString, text);
    QFETCH(qint64, value);
    QCOMPARE(parseCount(text.toStdString()).value_or(kNone), value);
}

void TestQuantity::bytes_data()
{
    addColumns();
    QTest::newRow("plain") << "512" << qint64{512};
    QTest::newRow("B") << "512B" << qint64{512};
    QTest::newRow("KiB") << "2KiB" << qint64{2048};
    QTest::newRow("MiB") << "512MiB" << qint64{536870912};
    QTest::newRow("GiB in lower case") << "1gib" << qint64{1073741824};
    QTest::newRow("GB") << "2GB" << qint64{2000000000};
    QTest::newRow("kB") << "3kB" << qint64{3000};
    QTest::newRow("a letter") << "512M" << qint64{536870912};
    QTest::newRow("a fraction") << "1.5GiB" << qint64{1610612736};
    QTest::newRow("a fraction in 1,000s") << "0.25kB" << qint64{250};
    QTest::newRow("part of a byte") << "0.0005kB" << kNone;
    QTest::newRow("no unit") << "100XB" << kNone;
    QTest::newRow("no number") << "MiB" << kNone;
    QTest::newRow("too large") << "99999999TiB" << kNone;
}

void TestQuantity::bytes()
{
    QFETCH(QString, text);
    QFETCH(qint64, value);
    QCOMPARE(parseBytes(text.toStdString()).value_or(kNone), value);
}

MESHWRIGHT_TEST(TestQuantity)

} // namespace tst_quantity

#include "tst_quantity.moc"
