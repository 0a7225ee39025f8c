// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/overlap.h"
#include "tests/test_class.h"

#include <cmath>
#include <numeric>
#include <vector>

namespace tst_overlap {

using namespace meshwright::sim;

using Times = std::vector<double>;

class TestOverlap : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void prefetch_data();
    void prefetch();
    void prefetchStaysBetweenItsBounds();
    void buckets();
    void collectiveMatmul();
    void slowed();
    void pipeline();
};

void TestOverlap::prefetch_data()
{
    QTest::addColumn<Times>("communication");
    QTest::addColumn<Times>("computation");
    QTest::addColumn<qint64>("window");
    QTest::addColumn<double>("expected");

    QTest::newRow("nothing") << Times{} << Times{} << qint64(1) << 0.0;
    QTest::newRow("computation rules: A + L C") << Times(4, 1.0) << Times(4, 3.0) << qint64(4) << 13.0;
    QTest::newRow("communication rules: L A + C") << Times(4, 3.0) << Times(4, 1.0) << qint64(4) << 13.0;
    QTest::newRow("window 1: one after the other") << Times(4, 1.0) << Times(4, 3.0) << qint64(1) << 16.0;
    // comm ends 2, 4, 6 (after comp 0 at 4), then comp 2 + 2, 4 + 2, 6 + 2, 8 + 2.
    QTest::newRow("window 2 hides all when equal") << Times(4, 2.0) << Times(4, 2.0) << qint64(2) << 10.0;
    // comm 1, comp 2; comm 2 ends 6 (start 1), comp 7; comm 3 starts max(6, 2), ends 7, comp 8.
    QTest::newRow("unequal") << Times{1, 5, 1} << Times{1, 1, 1} << qint64(2) << 8.0;
}

void TestOverlap::prefetch()
{
    QFETCH(Times, communication);
    QFETCH(Times, computation);
    QFETCH(qint64, window);
    QFETCH(double, expected);
    QCOMPARE(prefetchOverlap(communication, computation, window).endSeconds(), expected);
}

void TestOverlap::prefetchStaysBetweenItsBounds()
{
    for (int seed = 1; seed <= 50; ++seed) {
        Times communication;
        Times computation;
        for (int i = 0; i < 12; ++i) {
            communication.push_back(double((seed * 7 + i * 13) % 10));
            computation.push_back(double((seed * 11 + i * 5) % 10));
        }
        const double a = std::accumulate(communication.begin(), communication.end(), 0.0);
        const double c = std::accumulate(computation.begin(), computation.end(), 0.0);
        double before = a + c + 1.0;
        for (const std::int64_t window : {1, 2, 4, 12}) {
            const double end = prefetchOverlap(communication, computation, window).endSeconds();
            QVERIFY(end >= std::max(a, c) && end <= a + c && end <= before);
            before = end;
        }
    }
}

void TestOverlap::buckets()
{
    // Ready at 2, 4, 6; 3 s each: ends 5, 8, 11; the computation ends at 6, so 5 s are exposed.
    const auto end = bucketOverlap(Times{2, 4, 6}, Times{3, 3, 3}, 6.0);
    QCOMPARE(end.communicationSeconds, 11.0);
    QCOMPARE(end.endSeconds() - end.computationSeconds, 5.0);
    // The last bucket is exposed at least.
    QCOMPARE(bucketOverlap(Times{2, 4, 6}, Times{1, 1, 1}, 6.0).endSeconds(), 7.0);
    QCOMPARE(bucketOverlap({}, {}, 6.0).endSeconds(), 6.0);
}

void TestOverlap::collectiveMatmul()
{
    QCOMPARE(collectiveMatmulSeconds(8.0, 4, 1.0, 0.5), 8.0); // 2 + 3 max(2, 1.5): hidden
    QCOMPARE(collectiveMatmulSeconds(8.0, 4, 3.0, 0.5), 12.5); // 2 + 3 3.5
    QCOMPARE(collectiveMatmulSeconds(8.0, 1, 3.0, 0.5), 8.0);
}

void TestOverlap::slowed()
{
    QCOMPARE(slowedOverlapSeconds(10.0, 4.0, 0.25), 11.0); // 4 s at 3/4 do 3, 7 s more
    QCOMPARE(slowedOverlapSeconds(2.0, 4.0, 0.25), 4.0);
    QCOMPARE(slowedOverlapSeconds(3.0, 4.0, 1.0), 7.0); // not at once at all
    QCOMPARE(slowedOverlapSeconds(3.0, 4.0, 0.0), 4.0);
}

void TestOverlap::pipeline()
{
    QCOMPARE(pipelineSeconds(4, 8, 1, 1.0, 2.0), 33.0); // 8 3 + 3 3
    QCOMPARE(pipelineSeconds(4, 8, 3, 1.0, 2.0), 27.0); // 8 3 + 3 3/3
    QCOMPARE(pipelineBubbleShare(4, 8, 1), 3.0 / 11.0);
    QCOMPARE(pipelineBubbleShare(4, 8, 3), 3.0 / 27.0);
    QCOMPARE(pipelineBubbleShare(1, 8, 1), 0.0);
    for (const std::int64_t chunks : {1, 2, 5})
        QVERIFY(std::abs(pipelineSeconds(4, 8, chunks, 1.0, 2.0) * (1.0 - pipelineBubbleShare(4, 8, chunks)) - 24.0) < 1e-12);
}

MESHWRIGHT_TEST(TestOverlap)

} // namespace tst_overlap

#include "tst_overlap.moc"
