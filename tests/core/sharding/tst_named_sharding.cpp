// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/named_sharding.h"

#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_named_sharding {

using namespace meshwright;
using namespace meshwright::tests;

class TestNamedSharding : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void placing();
    void placingProblems();
};

void TestNamedSharding::placing()
{
    const auto layout = placedLayout({8, 6}, {meshOf("data=4,model=2"), valueOf(parseSpec("P('data', 'model')"))});
    QVERIFY(layout);
    QCOMPARE(layout->shards.size(), std::size_t{8});
    QCOMPARE(layout->shardShape, (Shape{2, 3}));
}

void TestNamedSharding::placingProblems()
{
    const auto place = [](const char* spec) {
        return placedLayout({10, 6}, {meshOf("data=4,model=2"), valueOf(parseSpec(spec))});
    };
    QCOMPARE(idsOf(place("P('data')")), QString("MW1104"));
    QCOMPARE(idsOf(place("P(None, 'data', 'model')")), QString("MW1101 MW1104"));
    QCOMPARE(idsOf(place("P('x')")), QString("MW1102"));
    QCOMPARE(idsOf(place("P('model', 'model')")), QString("MW1103"));
}

MESHWRIGHT_TEST(TestNamedSharding)

} // namespace tst_named_sharding

#include "tst_named_sharding.moc"
