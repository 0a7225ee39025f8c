// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/goldens/golden_runner.h"

#include "core/sharding/layout_grid.h"
#include "core/sharding/named_sharding.h"
#include "core/sharding/positional_sharding.h"
#include "core/sharding/visualize.h"
#include "core/support/text.h"
#include "tests/positional_layout.h"
#include "tests/test_class.h"

namespace tst_golden_visualization {

using namespace meshwright;
using namespace meshwright::goldens;

class TestGoldenVisualization : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases();
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"visualization.json"};
};

namespace {

Result<PositionalSharding> positionalOf(const Json& golden)
{
    auto sharding = PositionalSharding::create(golden.at("devices").get<std::vector<DeviceId>>());
    for (const Json& op : golden.at("ops")) {
        if (!sharding)
            return sharding;
        const std::string name = op.at(0).get<std::string>();
        if (name == "reshape")
            sharding = sharding->reshape(op.at(1).get<Shape>());
        else if (name == "replicate" && op.at(1).is_null())
            sharding = sharding->replicateAll();
        else if (name == "replicate")
            sharding = sharding->replicate(op.at(1).get<std::int64_t>());
        else if (name == "T")
            sharding = sharding->transposed();
        else
            return Problem{"", "unknown operation " + name};
    }
    return sharding;
}

Result<Layout> layoutFor(const Json& golden)
{
    const auto shape = golden.at("shape").get<Shape>();
    if (golden.at("kind") == "positional") {
        const auto sharding = positionalOf(golden);
        if (!sharding)
            return sharding.error();
        return tests::positionalLayout(*sharding, shape);
    }
    const auto mesh = goldens::meshOf(golden.at("mesh"));
    if (!mesh)
        return mesh.error();
    return placedLayout(shape, {*mesh, specOf(golden.at("spec"))});
}

Outcome run(const Json& golden)
{
    const auto layout = layoutFor(golden);
    if (!layout)
        return failed(describe(layout.error()));
    const LayoutGrid grid = layoutGrids(*layout).front();
    Json cells = Json::array();
    for (std::size_t row = 0; row < grid.rows.size(); ++row) {
        cells.push_back(Json::array());
        for (std::size_t column = 0; column < grid.columns.size(); ++column) {
            auto devices = layout->shards[grid.cellAt(row, column).value()].devices;
            std::sort(devices.begin(), devices.end());
            cells.back().push_back(devices);
        }
    }
    TextDrawing drawing;
    drawing.platform = golden.at("platform").get<std::string>();
    drawing.scale = golden.value("scale", 1.0);
    std::vector<std::string> lines = split(drawingText(*layout, drawing), '\n');
    lines.pop_back(); // after the last newline
    return all({same("grid", cells, golden.at("expect").at("grid")),
        same("text", lines, golden.at("expect").at("text").get<std::vector<std::string>>())});
}

} // namespace

void TestGoldenVisualization::cases()
{
    settleCase(m_file, run);
}

MESHWRIGHT_TEST(TestGoldenVisualization)

} // namespace tst_golden_visualization

#include "tst_golden_visualization.moc"
