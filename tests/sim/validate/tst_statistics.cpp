// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/validate/statistics.h"
#include "tests/test_class.h"

#include <cmath>

namespace tst_statistics {

using namespace meshwright::sim;

/// Small samples whose figures are worked out by hand.
class TestStatistics : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void summaries();
    void ranks_data();
    void ranks();
    void regret();
    void detection();
};

void TestStatistics::summaries()
{
    QVERIFY(!summarise({}));
    const auto summary = summarise({0.4, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0});
    QCOMPARE(summary->count, std::size_t{10});
    QCOMPARE(summary->median, 0.55);
    QCOMPARE(summary->mean, 0.55);
    QCOMPARE(summary->p90, 0.9);
    QCOMPARE(median({3.0, 1.0, 2.0}), 2.0);
}

void TestStatistics::ranks_data()
{
    QTest::addColumn<QList<double>>("left");
    QTest::addColumn<QList<double>>("right");
    QTest::addColumn<double>("rho");
    QTest::addColumn<double>("tau");

    QTest::newRow("same order") << QList<double>{1, 2, 3, 4} << QList<double>{10, 20, 30, 50} << 1.0 << 1.0;
    QTest::newRow("reversed") << QList<double>{1, 2, 3} << QList<double>{3, 2, 1} << -1.0 << -1.0;
    // One of six pairs is the wrong way round; differences of rank 0, 1, 1, 0: 1 - 6 * 2 / (4 * 15).
    QTest::newRow("one swap") << QList<double>{1, 2, 3, 4} << QList<double>{1, 3, 2, 4} << 0.8 << 4.0 / 6;
    // Ties: one pair says nothing; 2 / sqrt(3 * 2).
    QTest::newRow("tie") << QList<double>{1, 2, 3} << QList<double>{1, 1, 2} << std::sqrt(0.75) << 2.0 / std::sqrt(6.0);
}

void TestStatistics::ranks()
{
    QFETCH(QList<double>, left);
    QFETCH(QList<double>, right);
    QFETCH(double, rho);
    QFETCH(double, tau);
    QVERIFY(std::abs(*spearman(left, right) - rho) < 1e-12);
    QVERIFY(std::abs(*kendallTau(left, right) - tau) < 1e-12);
    QVERIFY(!spearman(std::vector<double>{1, 2}, std::vector<double>{1, 2}));
    QVERIFY(!kendallTau(std::vector<double>{1, 1}, std::vector<double>{1, 2}));
}

void TestStatistics::regret()
{
    QCOMPARE(topRegret(std::vector<double>{2.0, 1.0}, std::vector<double>{4.0, 5.0}), 0.25);
    QCOMPARE(topRegret(std::vector<double>{1.0, 2.0}, std::vector<double>{4.0, 5.0}), 0.0);
}

void TestStatistics::detection()
{
    Detection detection{3, 1, 2, 10};
    detection += Detection{1, 0, 0, 0};
    QCOMPARE(*detection.precision(), 0.8);
    QCOMPARE(*detection.recall(), 4.0 / 6);
    QVERIFY(!Detection{}.precision());
    QVERIFY(!Detection{}.recall());
}

MESHWRIGHT_TEST(TestStatistics)

} // namespace tst_statistics

#include "tst_statistics.moc"
