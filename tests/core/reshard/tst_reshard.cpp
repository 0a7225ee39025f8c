// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reshard/reshard.h"

#include "core/reshard/padding.h"
#include "core/sharding/layout.h"
#include "core/sharding/shardy_text.h"
#include "tests/random_shardings.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <random>

namespace tst_reshard {

using namespace meshwright;

namespace {

Mesh meshFrom(const std::string& text)
{
    return valueOf(parseMesh(text));
}

/// A layout written as axis names for each dimension, `x,y|z|` being [{x,y},{z},{}], and after `~` the unreduced axes.
TensorSharding layoutFrom(const std::string& text, const Mesh& mesh)
{
    const auto refs = [&](const std::string& list) {
        AxisRefs axes;
        std::stringstream names(list);
        for (std::string name; std::getline(names, name, ',');)
            axes.push_back(wholeAxis(mesh, mesh.findAxis(name).value()));
        return axes;
    };
    const auto tilde = text.find('~');
    TensorSharding layout;
    std::string dims = text.substr(0, tilde) + "|";
    for (std::size_t start = 0, end = dims.find('|'); end != std::string::npos; start = end + 1, end = dims.find('|', start))
        layout.dims.push_back({refs(dims.substr(start, end - start)), false, 0});
    if (tilde != std::string::npos)
        layout.unreduced = refs(text.substr(tilde + 1));
    return layout;
}

std::string stepNames(const ReshardPlan& plan)
{
    std::string names;
    for (const ReshardStep& step : plan.steps)
        names += (names.empty() ? "" : " ") + std::string(opName(step.kind));
    return names;
}

bool contains(const IndexBox& outer, const IndexBox& inner)
{
    for (std::size_t i = 0; i < outer.size(); ++i) {
        if (inner[i].start < outer[i].start || inner[i].stop > outer[i].stop)
            return false;
    }
    return true;
}

/// Every element of `wanted` lies in one of the boxes. Boxes of one layout are tiles of a grid, so corners decide.
bool covered(const IndexBox& wanted, const std::vector<IndexBox>& boxes)
{
    std::int64_t elements = 0;
    std::set<IndexBox> distinct(boxes.begin(), boxes.end());
    for (const IndexBox& box : distinct) {
        std::int64_t common = 1;
        for (std::size_t i = 0; i < wanted.size(); ++i)
            common *= std::max<std::int64_t>(0, std::min(wanted[i].stop, box[i].stop) - std::max(wanted[i].start, box[i].start));
        elements += common;
    }
    std::int64_t all = 1;
    for (const IndexRange& range : wanted)
        all *= range.size();
    return elements == all;
}

} // namespace

class TestReshard : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sequence_data();
    void sequence();
    void gatheredPartsAreOneAxis();
    void shardySequence_data();
    void shardySequence();
    void neverCostsMoreThanShardy_data();
    void neverCostsMoreThanShardy();
    void fullGather();
    void plannerSeparatesReductions_data();
    void plannerSeparatesReductions();
    void everyStepMovesOnlyWhatItsGroupHas_data();
    void everyStepMovesOnlyWhatItsGroupHas();
};

void TestReshard::sequence_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<Shape>("shape");
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("steps");

    QTest::newRow("nothing") << "x=2,y=2" << Shape{16, 8} << "x|y"
                             << "x|y"
                             << "";
    QTest::newRow("gather the minor part") << "x=2,y=2,z=2" << Shape{16, 8} << "x,y,z|"
                                           << "x|"
                                           << "all_gather";
    QTest::newRow("gather two dimensions at once") << "x=2,y=2" << Shape{16, 8} << "x|y"
                                                   << "|"
                                                   << "all_gather";
    QTest::newRow("slice") << "x=2,y=2,z=2" << Shape{16, 8} << "|"
                           << "x|y,z"
                           << "all_slice";
    QTest::newRow("all-to-all") << "x=2,y=2,z=2" << Shape{16, 8, 8} << "x||y,z"
                                << "x|y,z|"
                                << "all_to_all";
    QTest::newRow("two all-to-alls") << "x=2,y=2" << Shape{16, 8, 8} << "y|x|"
                                     << "||x,y"
                                     << "all_to_all all_to_all";
    QTest::newRow("other axis") << "x=2,y=2,z=2" << Shape{16, 8} << "z|y"
                                << "z|x"
                                << "collective_permute";
    QTest::newRow("swap") << "x=2,y=2" << Shape{16, 8} << "x|y"
                          << "y|x"
                          << "collective_permute";
    QTest::newRow("slice before gather") << "x=2,y=2" << Shape{16, 8} << "x|"
                                         << "|y"
                                         << "all_slice all_gather";
    QTest::newRow("reduce") << "x=2,y=2" << Shape{16, 8} << "|~x"
                            << "|"
                            << "all_reduce";
    QTest::newRow("reduce both axes at once") << "x=2,y=2" << Shape{16, 8} << "|~x,y"
                                              << "|"
                                              << "all_reduce";
    QTest::newRow("reduce into shards") << "x=4" << Shape{16, 8} << "|~x"
                                        << "x|"
                                        << "reduce_scatter";
    QTest::newRow("reduce into shards of two axes") << "x=4,y=2" << Shape{16, 8} << "|~x,y"
                                                    << "x,y|"
                                                    << "reduce_scatter";
    QTest::newRow("scatter what is sliced, reduce the rest") << "x=4,y=2" << Shape{16, 8} << "|~x,y"
                                                             << "x|"
                                                             << "reduce_scatter all_reduce";
    QTest::newRow("involuntary rematerialisation is two all-to-alls") << "x=4,y=2" << Shape{8, 8, 8} << "y||x"
                                                                      << "|x,y|"
                                                                      << "all_to_all all_to_all";
    QTest::newRow("a larger axis in place of a smaller one") << "x=2,y=4" << Shape{4, 3} << "x|"
                                                             << "y|"
                                                             << "all_slice collective_permute";
    QTest::newRow("no common divisor") << "x=2,y=3" << Shape{12, 12} << "x|"
                                       << "y|"
                                       << "all_slice collective_permute all_gather";
}

void TestReshard::sequence()
{
    QFETCH(QString, mesh);
    QFETCH(Shape, shape);
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(QString, steps);
    const Mesh devices = meshFrom(mesh.toStdString());
    const ReshardPlan plan = planReshard(
        shape, 4, layoutFrom(from.toStdString(), devices), layoutFrom(to.toStdString(), devices), devices, BytesThenStepsCost());
    QCOMPARE(QString::fromStdString(stepNames(plan)), steps);
}

/// Parts of one axis that split two dimensions are the axis where both are gathered.
void TestReshard::gatheredPartsAreOneAxis()
{
    const Mesh mesh = meshFrom("x=4");
    const TensorSharding from = valueOf(parseShardy("[{\"x\":(1)2}, {\"x\":(2)2}]", mesh));
    const ReshardPlan plan = planReshard({16, 8}, 4, from, TensorSharding::replicatedOf(2), mesh, BytesThenStepsCost());
    QCOMPARE(plan.steps.size(), std::size_t{1});
    QCOMPARE(plan.steps.front().attributes.axes, AxisRefs{wholeAxis(mesh, 0)});
}

/// Partial sums and axes cut in ways that no grid has, of which the golden cases say nothing.
void TestReshard::shardySequence_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<Shape>("shape");
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("steps");

    QTest::newRow("reduce") << "x=2,y=2" << Shape{16, 8} << "[{}, {}], unreduced={\"x\"}"
                            << "[{}, {}]"
                            << "all_reduce";
    QTest::newRow("reduce and slice") << "x=2,y=2" << Shape{16, 8} << "[{}, {}], unreduced={\"x\"}"
                                      << "[{\"x\"}, {}]"
                                      << "reduce_scatter";
    QTest::newRow("the slice goes on") << "x=2,y=2" << Shape{16, 8} << "[{}, {}], unreduced={\"x\"}"
                                       << "[{\"x\", \"y\"}, {}]"
                                       << "reduce_scatter all_slice";
    QTest::newRow("the slice takes but a part") << "x=2,y=2" << Shape{16, 8} << "[{}, {}], unreduced={\"x\", \"y\"}"
                                                << "[{\"x\"}, {}]"
                                                << "all_reduce all_slice";
    QTest::newRow("scattered over two dimensions") << "x=4" << Shape{16, 8} << "[{}, {}], unreduced={\"x\"}"
                                                   << "[{\"x\":(1)2}, {\"x\":(2)2}]"
                                                   << "reduce_scatter";
    QTest::newRow("some stay partial") << "x=2,y=2" << Shape{16, 8} << "[{}, {}], unreduced={\"x\", \"y\"}"
                                       << "[{}, {}], unreduced={\"y\"}"
                                       << "all_reduce";
    QTest::newRow("halves and thirds of an axis") << "x=6" << Shape{12, 6} << "[{\"x\":(1)2}, {}]"
                                                  << "[{\"x\":(1)3}, {}]"
                                                  << "all_gather all_slice";
}

void TestReshard::shardySequence()
{
    QFETCH(QString, mesh);
    QFETCH(Shape, shape);
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(QString, steps);
    const Mesh devices = meshFrom(mesh.toStdString());
    const TensorSharding before = valueOf(parseShardy(from.toStdString(), devices));
    const TensorSharding after = valueOf(parseShardy(to.toStdString(), devices));
    const auto plan = planShardyReshard(shape, 4, before, devices, after, devices, BytesThenStepsCost());
    QCOMPARE(QString::fromStdString(stepNames(*plan)), steps);
    QCOMPARE(shardyText(plan->steps.back().result, devices), shardyText(after, devices));
}

void TestReshard::neverCostsMoreThanShardy_data()
{
    tests::addSeeds({11, 12});
}

/// Random layouts, parts of axes and partial sums included: by the cost that plans are chosen by, and no layout on the way larger than
/// both ends where Shardy keeps to that too.
void TestReshard::neverCostsMoreThanShardy()
{
    QFETCH(quint64, seed);
    tests::Random random(seed);
    const tests::RandomLimits limits{.open = false, .replicated = false};
    const BytesThenStepsCost cost;
    int cheaper = 0;
    int compared = 0;
    for (int round = 0; round < 1500; ++round) {
        const Mesh mesh = tests::randomMesh(random, limits);
        const auto rank = static_cast<std::size_t>(tests::pick(random, 1, 3));
        const TensorSharding from = tests::randomSharding(random, rank, mesh, limits);
        TensorSharding to = tests::randomSharding(random, rank, mesh, limits);
        to.unreduced.clear();
        const Shape shape = tests::dividedBy(random, from, to);
        const ReshardPlan plan = planReshard(shape, 4, from, to, mesh, cost);
        const auto shardy = planShardyReshard(shape, 4, from, mesh, to, mesh, cost);
        QVERIFY(shardy);
        const std::string what
            = fmt::format("round {}: {} {} {} -> {}: {} ({}) against {} ({})", round, mesh.text(), fmt::join(shape, "x"),
                shardyText(from, mesh), shardyText(to, mesh), stepNames(plan), plan.cost, stepNames(*shardy), shardy->cost);
        const bool isEvenThroughout = std::all_of(
            shardy->steps.begin(), shardy->steps.end(), [&](const ReshardStep& step) { return isEven(step.result, shape); });
        if (isEvenThroughout) // devices run no others
            QVERIFY2(std::tuple(plan.cost, plan.steps.size()) <= std::tuple(shardy->cost, shardy->steps.size()), what.c_str());
        compared += isEvenThroughout ? 1 : 0;
        QVERIFY2(plan.steps.empty() || shardyText(plan.steps.back().result, mesh) == shardyText(to, mesh), what.c_str());
        cheaper += plan.cost < shardy->cost ? 1 : 0;
    }
    QVERIFY(cheaper > 50);
    QVERIFY(compared > 1000);
}

void TestReshard::fullGather()
{
    const Mesh mesh = meshFrom("x=4,y=2");
    const ReshardPlan plan
        = planByFullGather({8, 8, 8}, 4, layoutFrom("y||x", mesh), layoutFrom("|x,y|", mesh), mesh, BytesThenStepsCost());
    QCOMPARE(stepNames(plan), "all_gather all_slice");
    QCOMPARE(plan.steps.front().payloadBytes, 2048);
    QCOMPARE(plan.peakBytes, 2048 + 2048 / 8);
}

void TestReshard::plannerSeparatesReductions_data()
{
    QTest::addColumn<ReshardStyle>("style");
    QTest::newRow("the cheapest") << ReshardStyle::Cheapest;
    QTest::newRow("Shardy's") << ReshardStyle::Shardy;
}

/// A plan that was made for partial sums is none for partial maxima that lie alike.
void TestReshard::plannerSeparatesReductions()
{
    QFETCH(ReshardStyle, style);
    const Mesh mesh = valueOf(parseMesh("x=4"));
    const BytesThenStepsCost cost;
    ReshardPlanner planner(cost, style);
    TensorSharding from = TensorSharding::replicatedOf(1);
    from.unreduced = {wholeAxis(mesh, 0)};
    for (const ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Sum}) {
        from.unreducedKind = kind;
        const ReshardPlan& plan = planner.plan({8}, 4, from, TensorSharding::replicatedOf(1), mesh);
        QCOMPARE(plan.steps.size(), std::size_t{1});
        QCOMPARE(plan.steps.front().attributes.kind, kind);
    }
}

void TestReshard::everyStepMovesOnlyWhatItsGroupHas_data()
{
    tests::addSeeds({7, 8});
}

/// Random layouts on random meshes: replayed on boxes, each device receives only from its group and ends with its own piece.
void TestReshard::everyStepMovesOnlyWhatItsGroupHas()
{
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    const std::vector<std::string> meshes = {"a=2,b=3", "a=4,b=2", "a=2,b=2,c=3", "a=6,b=2", "a=12", "a=2,b=2,c=2"};
    for (int round = 0; round < 300; ++round) {
        const Mesh mesh = meshFrom(meshes[random() % meshes.size()]);
        const Shape shape = {12, 24, 12};
        const auto randomLayout = [&] {
            for (;;) {
                TensorSharding layout = TensorSharding::replicatedOf(shape.size());
                std::vector<std::size_t> order(mesh.axes().size());
                std::iota(order.begin(), order.end(), std::size_t{0});
                std::shuffle(order.begin(), order.end(), random);
                for (const std::size_t axis : order) {
                    const std::size_t dim = random() % 4;
                    if (dim < 3)
                        layout.dims[dim].axes.push_back(wholeAxis(mesh, axis));
                }
                bool even = true;
                for (std::size_t dim = 0; dim < shape.size(); ++dim)
                    even = even && shape[dim] % shardCount(layout.dims[dim].axes) == 0;
                if (even)
                    return layout;
            }
        };
        const TensorSharding from = randomLayout();
        const TensorSharding to = randomLayout();
        const ReshardPlan plan = planReshard(shape, 4, from, to, mesh, BytesThenStepsCost());
        TensorSharding at = from;
        for (const ReshardStep& step : plan.steps) {
            for (const auto& group : deviceGroups(step.attributes.axes, mesh)) {
                std::vector<IndexBox> held;
                for (const std::int64_t position : group)
                    held.push_back(shardBox(shape, at, mesh, position));
                for (std::size_t i = 0; i < group.size(); ++i) {
                    const IndexBox wanted = shardBox(shape, step.result, mesh, group[i]);
                    if (step.kind == OpKind::AllSlice)
                        QVERIFY(contains(held[i], wanted));
                    else if (step.kind == OpKind::CollectivePermute)
                        QCOMPARE(shardBox(shape, at, mesh, step.attributes.sources[static_cast<std::size_t>(group[i])]), wanted);
                    else
                        QVERIFY(covered(wanted, held));
                }
            }
            at = step.result;
        }
        for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
            QCOMPARE(shardBox(shape, at, mesh, position), shardBox(shape, to, mesh, position));
    }
}

MESHWRIGHT_TEST(TestReshard)

} // namespace tst_reshard

#include "tst_reshard.moc"
