// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reshard/reshard.h"
#include "core/sharding/shardy_text.h"
#include "tests/goldens/golden_runner.h"
#include "tests/test_class.h"

#include <map>

namespace tst_golden_reshard_collectives {

namespace {

using namespace meshwright;
using namespace meshwright::goldens;

/// The meshes of a case, in the order of their names; shardings name them by index.
struct Meshes {
    std::vector<std::string> names;
    std::vector<Mesh> meshes;

    explicit Meshes(const Json& json)
    {
        for (const auto& [name, mesh] : json.items()) {
            names.push_back(name);
            meshes.push_back(valueOf(goldens::meshOf(mesh)));
        }
    }

    const Mesh& of(const TensorSharding& sharding) const { return meshes[static_cast<std::size_t>(sharding.mesh)]; }

    std::string text(const TensorSharding& sharding) const
    {
        return names[static_cast<std::size_t>(sharding.mesh)] + " " + shardyText(sharding, of(sharding));
    }

    /// Without axes there is nothing to name, and a mesh of one device puts everything there.
    TensorSharding read(const Json& json, std::size_t rank) const
    {
        const auto found = std::find(names.begin(), names.end(), json.at("mesh").get<std::string>());
        const auto index = static_cast<std::size_t>(found - names.begin());
        TensorSharding sharding = TensorSharding::replicatedOf(rank);
        if (!meshes.at(index).axes().empty())
            sharding = valueOf(parseShardy(json.at("sharding").get<std::string>(), meshes[index]));
        sharding.mesh = static_cast<std::int32_t>(index);
        return sharding;
    }
};

std::string axesPerDim(const std::vector<AxisRefs>& perDim, const Mesh& mesh)
{
    TensorSharding sharding;
    for (const AxisRefs& axes : perDim)
        sharding.dims.push_back({axes, false, 0});
    return shardyText(sharding, mesh);
}

/// A step as the cases have it, without the layout after it.
Json describeStep(const ReshardStep& step, const Mesh& mesh)
{
    Json json = {{"op", opName(step.kind)}};
    if (!step.attributes.perDim.empty())
        json["axes_per_dim"] = axesPerDim(step.attributes.perDim, mesh);
    for (const AxisMove& move : step.attributes.moves) {
        const std::string axes = axesPerDim({move.axes}, mesh);
        json["moves"].push_back({{"axes", axes.substr(1, axes.size() - 2)}, {"src_dim", move.from}, {"tgt_dim", move.to}});
    }
    return json;
}

Outcome run(const Json& json)
{
    const Meshes meshes(json.at("meshes"));
    const auto shape = json.at("shape").get<Shape>();
    const TensorSharding to = meshes.read(json.at("out"), shape.size());
    TensorSharding from = TensorSharding::replicatedOf(shape.size());
    from.mesh = to.mesh;
    if (!json.at("in").is_null())
        from = meshes.read(json.at("in"), shape.size());

    const auto plan = planShardyReshard(shape, 4, from, meshes.of(from), to, meshes.of(to), BytesThenStepsCost());
    const Json& expected = json.at("steps");
    if (!plan)
        return same("steps", Json(1), Json(expected.size() == 1 && expected[0].at("op") == "reshard" ? 1 : expected.size() + 1));
    std::vector<Outcome> outcomes = {same("number of steps", plan->steps.size(), expected.size())};
    for (std::size_t i = 0; i < std::min(plan->steps.size(), expected.size()); ++i) {
        const ReshardStep& step = plan->steps[i];
        Json found = describeStep(step, meshes.of(step.result));
        found["out"] = meshes.text(step.result);
        Json wanted = expected[i];
        wanted["out"] = meshes.text(meshes.read(wanted.at("out"), shape.size()));
        outcomes.push_back(same(fmt::format("step {}", i), found, wanted));
    }
    return all(outcomes);
}

} // namespace

class TestGoldenReshardCollectives : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases() { settleCase(m_file, run); }
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"reshard_collectives.json"};
};

MESHWRIGHT_TEST(TestGoldenReshardCollectives)

} // namespace tst_golden_reshard_collectives

#include "tst_golden_reshard_collectives.moc"
