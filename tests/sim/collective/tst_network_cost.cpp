// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/network_cost.h"

#include "core/reshard/reshard.h"
#include "core/sharding/shardy_text.h"
#include "sim/hardware/catalogue.h"
#include "sim/hardware/machine.h"
#include "tests/test_class.h"

namespace tst_network_cost {

using namespace meshwright;
using namespace meshwright::sim;

/// Collectives of programs on hardware, and the choice that follows from their times.
class TestNetworkCost : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void secondsOfTheEstimate();
    void choosesTheQuickestWay();
};

namespace {

MeshPlacement placed(const char* mesh, const char* chip, std::vector<std::int64_t> topology)
{
    const Catalogue catalogue = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    return valueOf(placeMesh(valueOf(parseMesh(mesh)), valueOf(buildMachine(catalogue, {chip, std::move(topology)}))));
}

} // namespace

void TestNetworkCost::secondsOfTheEstimate()
{
    const MeshPlacement placement = placed("x=4,y=2", "v5e", {4, 2});
    const NetworkCost cost(placement);
    const AxisRefs x = {wholeAxis(placement.mesh(), 0)};
    for (const OpKind kind :
        {OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter, OpKind::AllToAll, OpKind::CollectivePermute}) {
        const double seconds = estimateOn(placement, kind, x, 1 << 20).seconds;
        QVERIFY(seconds > 0.0);
        QVERIFY(qAbs(cost.cost({kind, x, 4, 1 << 20}) - seconds) < 1e-11);
    }
    QCOMPARE(estimateOn(placement, OpKind::AllSlice, x, 1 << 20).seconds, 0.0);
    QVERIFY(cost.cost({OpKind::AllSlice, x, 4, 1 << 20}) < 1e-11);
}

/// By time, too, no way is dearer than Shardy's.
void TestNetworkCost::choosesTheQuickestWay()
{
    const MeshPlacement placement = placed("x=4,y=2", "v5e", {4, 2});
    const Mesh& mesh = placement.mesh();
    const NetworkCost cost(placement);
    for (const auto& [from, to] : {std::pair{R"([{"x"}, {}])", R"([{}, {"x"}])"}, {R"([{"y"}, {}])", R"([{"x"}, {"y"}])"},
             {R"([{"x", "y"}, {}])", R"([{}, {}])"}, {R"([{"x"}, {}])", R"([{"y"}, {}])"}}) {
        const TensorSharding before = valueOf(parseShardy(from, mesh));
        const TensorSharding after = valueOf(parseShardy(to, mesh));
        const ReshardPlan plan = planReshard({1024, 1024}, 4, before, after, mesh, cost);
        QVERIFY(plan.cost > 0.0);
        QVERIFY(plan.cost <= planShardyReshard({1024, 1024}, 4, before, mesh, after, mesh, cost)->cost);
    }
}

MESHWRIGHT_TEST(TestNetworkCost)

} // namespace tst_network_cost

#include "tst_network_cost.moc"
