// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/goldens/golden_runner.h"

#include "core/sharding/jax_spec.h"
#include "core/sharding/notation.h"
#include "core/sharding/shardy_text.h"
#include "tests/test_class.h"
#include "tests/tile_placement.h"

namespace tst_golden_notation {

using namespace meshwright;
using namespace meshwright::goldens;
using namespace meshwright::tests;

class TestGoldenNotation : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases();
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"notation.json"};
};

namespace {

JaxSpec jaxSpecOfJson(const Json& json)
{
    JaxSpec spec;
    for (const auto& axes : specOf(json).dims)
        spec.dims.push_back({axes, false});
    return spec;
}

std::vector<AxisType> axisTypesOf(const Json& json)
{
    std::vector<AxisType> types;
    for (const Json& type : json)
        types.push_back(type == "Explicit" ? AxisType::Explicit : type == "Manual" ? AxisType::Manual : AxisType::Auto);
    return types;
}

/// The named axes, whole, in order of the list.
AxisRefs axesNamed(const Json& names, const Mesh& mesh)
{
    AxisRefs axes;
    for (const Json& name : names)
        axes.push_back(wholeAxis(mesh, mesh.findAxis(name.get<std::string>()).value()));
    return axes;
}

Outcome runExport(const Json& golden)
{
    const auto mesh = goldens::meshOf(golden.at("mesh"));
    if (!mesh)
        return failed(describe(mesh.error()));
    const std::size_t rank = golden.at("ndim").get<std::size_t>();
    ParsedSharding parsed;
    parsed.mesh = *mesh;
    parsed.manual = axesNamed(golden.value("manual", Json::array()), *mesh);
    std::vector<Outcome> outcomes;
    if (golden.contains("sdy")) {
        const auto sharding = parseShardy(golden.at("sdy").get<std::string>(), *mesh);
        if (!sharding)
            return failed(describe(sharding.error()));
        parsed.sharding = *sharding;
        outcomes.push_back(same("Shardy's text", shardyText(*sharding, *mesh), golden.at("sdy").get<std::string>()));
    }
    if (golden.contains("spec")) {
        const auto sharding = onMesh(jaxSpecOfJson(golden.at("spec")), rank, *mesh);
        if (!sharding)
            return failed(describe(sharding.error()));
        if (golden.contains("sdy"))
            outcomes.push_back(same("spec", shardyText(sharding->sharding, *mesh), golden.at("sdy").get<std::string>()));
        parsed.sharding = sharding->sharding;
    }
    const std::string expected = golden.at("hlo").get<std::string>();
    const std::string list = tileText(toTiles(parsed.sharding, *mesh, parsed.manual));
    // A mesh with an order of its own may have been given by a list or by an iota, which its JSON does not tell: the peer writes the tiles
    // in the same way, so either of our two ways to write them may be meant.
    const std::string iota = tileText(toTiles(parsed.sharding, *mesh, parsed.manual, TileForm::IotaIfPossible));
    outcomes.push_back(same("hlo", !mesh->hasDefaultOrder() && iota == expected ? iota : list, expected));
    if (golden.contains("hlo_v3"))
        outcomes.push_back(same("named hlo", xlaNamedText(parsed.sharding, *mesh), golden.at("hlo_v3").get<std::string>()));

    // And back again: the same placement. What is open or replicated by name only is lost in tiles.
    const auto back = parseSharding(expected, {*mesh, rank});
    if (!back)
        return failed(describe(back.error()));
    outcomes.push_back(same("read again",
        samePlacement(toTiles(back->sharding, *mesh, back->manual), toTiles(parsed.sharding, *mesh, parsed.manual)), true));
    return all(outcomes);
}

Outcome runImport(const Json& golden)
{
    const auto mesh = goldens::meshOf(golden.at("mesh"));
    const auto tiles = parseTileSharding(golden.at("hlo").get<std::string>());
    if (!mesh || !tiles)
        return failed(mesh ? describe(tiles.error()) : describe(mesh.error()));
    const auto named = fromTiles(*tiles, golden.at("ndim").get<std::size_t>(), *mesh);
    if (!named)
        return failed(describe(named.error()));
    const std::string expected = golden.at("sdy").get<std::string>();
    const auto text = printSharding(named->sharding, *mesh, Notation::Shardy);
    std::vector<Outcome> outcomes = {text ? same("sdy", text->text, expected) : failed(describe(text.error()))};
    if (tiles->kind == TileKind::Tiled) {
        // The invented mesh of this sharding alone explains it too.
        const Mesh invented = valueOf(meshOfTiles(*tiles));
        const auto alone = fromTiles(*tiles, golden.at("ndim").get<std::size_t>(), invented);
        if (!alone)
            return failed(describe(alone.error()));
        outcomes.push_back(
            same("by its own mesh", samePlacement(toTiles(alone->sharding, invented, alone->manual), *tiles), true));
    }
    return all(outcomes);
}

Outcome runPrint(const Json& golden)
{
    const std::string kind = golden.at("print_kind").get<std::string>();
    const Json& input = golden.at("input");
    const std::string expected = golden.at("text").get<std::string>();
    if (kind == "hlo") {
        const std::string type = input.at("type").get<std::string>();
        if (type == "tuple") {
            std::vector<TileSharding> elements;
            for (const Json& element : input.at("elements"))
                elements.push_back(valueOf(parseTileSharding(element.get<std::string>())));
            return same("text", tileText(elements), expected);
        }
        TileSharding sharding;
        if (type == "tiled") {
            sharding.kind = TileKind::Tiled;
            sharding.tiles
                = valueOf(TileAssignment::list(input.at("dims").get<Shape>(), input.at("devices").get<std::vector<DeviceId>>()));
        } else if (type != "replicated") {
            const std::string place = type == "maximal"
                ? fmt::format(
                    " device={}", (input.contains("device") ? input.at("device") : input.at("devices").at(0)).get<DeviceId>())
                : std::string();
            const auto parsed = parseTileSharding("{" + type + place + "}");
            if (!parsed)
                return failed(describe(parsed.error()));
            sharding = *parsed;
        }
        return same("text", tileText(sharding), expected);
    }
    if (kind == "jax_pspec") {
        JaxSpec spec = jaxSpecOfJson(input.at("spec"));
        spec.unreduced = input.value("unreduced", std::vector<std::string>());
        spec.reduced = input.value("reduced", std::vector<std::string>());
        const auto again = parseJaxSpec(expected);
        return all({same("text", jaxSpecText(spec), expected), same("read again", again && *again == spec, true)});
    }
    const auto mesh = goldens::meshOf(input.at("mesh"));
    if (!mesh)
        return failed(describe(mesh.error()));
    if (kind == "jax_mesh") {
        const auto again = parseJaxMesh(expected);
        return all({same("text", jaxMeshText(*mesh, axisTypesOf(input.at("axis_types"))), expected),
            same("read again", again && *again == *mesh, true)});
    }
    if (kind == "jax_aval") {
        const JaxType type{
            input.at("dtype").get<std::string>(), input.at("shape").get<Shape>(), jaxSpecOfJson(input.at("spec")), {}};
        const auto again = parseJaxType(expected);
        return all({same("text", jaxTypeText(type), expected), same("read again", again && *again == type, true)});
    }
    if (kind == "hlo_v3") {
        const auto sharding = parseShardy(input.at("sdy").get<std::string>(), *mesh);
        if (!sharding)
            return failed(describe(sharding.error()));
        const auto again = parseXlaNamed(expected);
        return all({same("text", xlaNamedText(*sharding, *mesh), expected),
            same("read again", again && again->mesh == *mesh && again->sharding == *sharding, true)});
    }
    return failed("unknown print kind " + kind);
}

Outcome runSpecInType(const Json& golden)
{
    const Mesh mesh = valueOf(goldens::meshOf(golden.at("mesh")));
    const JaxSpec kept = specInType(jaxSpecOfJson(golden.at("spec")), mesh, axisTypesOf(golden.at("mesh").at("axis_types")),
        golden.at("ndim").get<std::size_t>());
    return same("spec", jaxSpecText(kept), jaxSpecText(jaxSpecOfJson(golden.at("expect").at("spec"))));
}

Outcome run(const Json& golden)
{
    const std::string direction = golden.at("direction").get<std::string>();
    if (direction == "export")
        return runExport(golden);
    if (direction == "import")
        return runImport(golden);
    if (direction == "print")
        return runPrint(golden);
    if (direction == "spec_equal")
        return same(
            "equal", jaxSpecOfJson(golden.at("a")) == jaxSpecOfJson(golden.at("b")), golden.at("expect").at("equal").get<bool>());
    if (direction == "spec_in_type")
        return runSpecInType(golden);
    return failed("unknown direction " + direction);
}

} // namespace

void TestGoldenNotation::cases()
{
    settleCase(m_file, run);
}

MESHWRIGHT_TEST(TestGoldenNotation)

} // namespace tst_golden_notation

#include "tst_golden_notation.moc"
