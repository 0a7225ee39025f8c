// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/notation.h"

#include "core/sharding/book_text.h"
#include "core/sharding/jax_spec.h"
#include "core/sharding/placements.h"
#include "core/sharding/shardy_text.h"
#include "core/support/text.h"
#include "core/support/text_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace meshwright {

namespace {

struct NotationEntry {
    Notation notation;
    const char* name;
    const char* title;
};

constexpr std::array<NotationEntry, 10> kNotations = {{
    {Notation::Jax, "jax", "JAX's PartitionSpec"},
    {Notation::JaxNamed, "named", "JAX's NamedSharding"},
    {Notation::JaxType, "types", "JAX's types"},
    {Notation::Hlo, "hlo", "XLA's tiles"},
    {Notation::HloNamed, "hlo-named", "XLA's named shardings"},
    {Notation::Shardy, "sdy", "Shardy's shardings"},
    {Notation::DTensor, "dtensor", "DTensor's placements"},
    {Notation::DTensorShort, "dtensor-short", "DTensor's short placements"},
    {Notation::Book, "book", "the scaling book's notation"},
    {Notation::Positional, "positional", "JAX's PositionalSharding"},
}};

constexpr auto kOrder = [] {
    std::array<Notation, kNotations.size()> order{};
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = kNotations[i].notation;
    return order;
}();

} // namespace

const char* notationName(Notation notation)
{
    return kNotations[static_cast<std::size_t>(notation)].name;
}

const char* notationTitle(Notation notation)
{
    return kNotations[static_cast<std::size_t>(notation)].title;
}

std::span<const Notation> allNotations()
{
    return kOrder;
}

Result<Notation> notationOf(std::string_view name)
{
    std::vector<std::string> names;
    for (const NotationEntry& entry : kNotations) {
        if (entry.name == name)
            return entry.notation;
        names.emplace_back(entry.name);
    }
    return Problem{"MW1159", fmt::format("unknown notation \"{}\"", name), suggestion(name, names)};
}

namespace {

bool isShortPlacements(std::string_view text, const Mesh* mesh)
{
    // P alone and P(..) are specs, unless what stands in the brackets is a reduction.
    static const std::set<std::string_view> kReductions
        = {"sum", "max", "min", "product", "avg", "band", "bor", "bxor", "and", "or"};
    TextCursor cursor(text);
    bool any = false;
    while (!cursor.atEnd()) {
        if (cursor.take("_S(") || cursor.take("S(")) {
            const auto inside = cursor.untilClosed();
            if (!inside || !TextCursor(*inside).integer())
                return false;
        } else if (cursor.take("R")) {
            cursor.take("()");
        } else if (cursor.take("P")) {
            if (cursor.take("(")) {
                const auto inside = cursor.untilClosed();
                if (!inside || !kReductions.contains(trimmed(*inside)) || (mesh != nullptr && mesh->findAxis(trimmed(*inside))))
                    return false;
            }
        } else {
            return false;
        }
        any = true;
    }
    return any;
}

bool isPlacementList(std::string_view text, const Mesh* mesh)
{
    TextCursor cursor(text);
    if (!cursor.take("[") && !cursor.take("("))
        return false;
    for (const char* name :
        {"Shard(", "Replicate(", "Partial(", "_StridedShard(", "_NormPartial(", "_MaskPartial(", "S(", "_S("}) {
        if (cursor.peek(name))
            return true;
    }
    const std::string_view word = cursor.word();
    return (word == "R" || word == "P") && (mesh == nullptr || !mesh->findAxis(word));
}

/// Which notation the text is in, as far as its shape tells.
std::optional<Notation> recognise(std::string_view text, const Mesh* mesh)
{
    const auto begins = [&](std::initializer_list<std::string_view> starts) {
        return std::any_of(starts.begin(), starts.end(), [&](std::string_view start) { return text.starts_with(start); });
    };
    if (begins({"NamedSharding(", "jax.sharding.NamedSharding("}))
        return Notation::JaxNamed;
    if (begins({"PositionalSharding(", "jax.sharding.PositionalSharding("}))
        return Notation::Positional;
    if (begins({"GSPMDSharding(", "jax.sharding.GSPMDSharding("}))
        return Notation::Hlo;
    if (begins({"#sdy.sharding", "sdy.sharding", "<"}))
        return Notation::Shardy;
    if (isShortPlacements(text, mesh))
        return Notation::DTensorShort;
    if (isPlacementList(text, mesh))
        return Notation::DTensor;
    if (begins({"P(", "PartitionSpec(", "jax.sharding.PartitionSpec(", "jax.P(", "("}))
        return Notation::Jax;
    if (begins({"{"})) {
        TextCursor cursor(text);
        cursor.take("{");
        return cursor.peek("mesh[") || cursor.peek("maximal_mesh[") ? Notation::HloNamed : Notation::Hlo;
    }
    if (begins({"["})) {
        TextCursor cursor(text);
        cursor.take("[");
        return cursor.peek("{") || cursor.peek("]") ? Notation::Shardy : Notation::Jax;
    }
    TextCursor cursor(text);
    const std::string_view word = cursor.word();
    if (word.empty() || (!cursor.peek("[") && !cursor.peek("<")))
        return std::nullopt;
    return isDtypeName(word) ? Notation::JaxType : Notation::Book;
}

/// The sharding in an attribute of StableHLO or HLO text: `{mhlo.sharding = "{replicated}"}`, `sharding={replicated}`; others stay as they are.
std::string_view withoutAttribute(std::string_view text)
{
    text = trimmed(text);
    if ((text.starts_with("{sdy.sharding") || text.starts_with("{mhlo.sharding")) && text.ends_with('}'))
        text = trimmed(text.substr(1, text.size() - 2));
    for (const std::string_view name : {"mhlo.sharding", "sharding"}) {
        if (!text.starts_with(name))
            continue;
        std::string_view value = trimmed(text.substr(name.size()));
        if (!value.starts_with('='))
            break;
        value = trimmed(value.substr(1));
        const bool isQuoted = value.size() > 1 && value.starts_with('"') && value.ends_with('"');
        return isQuoted ? value.substr(1, value.size() - 2) : value;
    }
    return text;
}

class NotationReader {
public:
    NotationReader(std::string_view text, const SpellingContext& context)
        : m_text(withoutAttribute(text))
        , m_context(context)
    {
    }

    Result<ParsedSharding> read()
    {
        const auto notation = recognise(m_text, m_context.mesh ? &*m_context.mesh : nullptr);
        if (!notation)
            return Problem{"MW1158", fmt::format("\"{}\" is not a sharding in any known notation", m_text.substr(0, 60)),
                "write P('data', None), {devices=[4,1]<=[4]}, [{\"data\"}, {}], [Shard(0), Replicate()], f32[8@data,4] or A[I_X, "
                "J]",
                TextCursor::placeAt(0)};
        m_parsed.notation = *notation;
        Problems problems = readAs(*notation);
        if (!problems.empty())
            return problems;
        return std::move(m_parsed);
    }

private:
    Problems readAs(Notation notation)
    {
        switch (notation) {
        case Notation::Jax:
            return readSpec(m_text);
        case Notation::JaxNamed:
            return readNamed();
        case Notation::JaxType:
            return readType();
        case Notation::Hlo:
            return readTiles();
        case Notation::HloNamed:
            return readXlaNamed();
        case Notation::Shardy:
            return readShardy();
        case Notation::DTensor:
        case Notation::DTensorShort:
            return readPlacements();
        case Notation::Book:
            return readBook();
        case Notation::Positional:
            return readPositional();
        }
        return {};
    }

    /// The mesh of the context, or the one without axes when the text needs none.
    Problems needMesh(bool needed)
    {
        if (m_context.mesh)
            m_parsed.mesh = *m_context.mesh;
        else if (needed)
            return {{"MW1157", fmt::format("{} names axes, but no mesh is given", notationTitle(m_parsed.notation)),
                "give the mesh too, such as data=4,model=2"}};
        else
            m_parsed.meshInvented = true;
        return {};
    }

    Problems settleSpec(const JaxSpec& spec)
    {
        const auto on = onMesh(spec, m_context.rank, m_parsed.mesh);
        if (!on)
            return on.error();
        m_parsed.sharding = on->sharding;
        m_parsed.reduced = on->reduced;
        return {};
    }

    static bool namesAxes(const JaxSpec& spec)
    {
        return !spec.unreduced.empty() || !spec.reduced.empty()
            || std::any_of(spec.dims.begin(), spec.dims.end(), [](const JaxSpec::Entry& entry) { return !entry.axes.empty(); });
    }

    Problems readSpec(std::string_view text)
    {
        const auto spec = parseJaxSpec(text);
        if (!spec)
            return spec.error();
        if (Problems problems = needMesh(namesAxes(*spec)); !problems.empty())
            return problems;
        return settleSpec(*spec);
    }

    /// `NamedSharding(mesh=Mesh(..), spec=P(..), memory_kind=device)`; the keywords may be left out.
    Problems readNamed()
    {
        TextCursor cursor(m_text);
        cursor.take("jax.sharding.");
        cursor.take("NamedSharding(");
        const auto problem = [&](const char* wanted) {
            return Problems{
                cursor.expected("MW1105", "NamedSharding", wanted, "write NamedSharding(mesh=Mesh('x': 2), spec=P('x',))")};
        };
        const auto inside = cursor.untilClosed();
        if (!inside || !cursor.atEnd())
            return problem("\")\" at the end");
        // The spec begins at its keyword, or at the first P( outside the mesh.
        std::size_t specAt = inside->find("spec=");
        for (const char* start : {", PartitionSpec(", ", P("}) {
            if (specAt == std::string_view::npos)
                specAt = inside->find(start);
        }
        if (specAt == std::string_view::npos)
            return problem("\"spec=\"");
        std::string_view meshText = trimmed(inside->substr(0, specAt));
        if (meshText.ends_with(','))
            meshText.remove_suffix(1);
        if (meshText.starts_with("mesh="))
            meshText.remove_prefix(5);
        std::string_view specText = inside->substr(specAt);
        specText.remove_prefix(specText.starts_with("spec=") ? 5 : 1);
        specText = trimmed(specText);
        std::string_view keywords;
        if (const std::size_t open = specText.find('('); open != std::string_view::npos) {
            TextCursor spec(specText);
            spec.goTo(open + 1);
            if (spec.untilClosed()) {
                keywords = specText.substr(spec.at());
                specText = specText.substr(0, spec.at());
            }
        }
        auto mesh = meshText.find('=') == std::string_view::npos && meshText.find('(') == std::string_view::npos && m_context.mesh
            ? Result<TypedMesh>(TypedMesh{*m_context.mesh, {}}) // a name such as `mesh`
            : parseTypedMesh(meshText);
        if (!mesh)
            return mesh.error();
        m_parsed.axisTypes = std::move(mesh->types);
        // The printed mesh has no device order: that of the known mesh, if it is the same otherwise.
        m_parsed.mesh = m_context.mesh && m_context.mesh->axes() == mesh->mesh.axes() && mesh->mesh.hasDefaultOrder()
            ? *m_context.mesh
            : std::move(mesh->mesh);
        if (Problems problems = readKeywords(keywords); !problems.empty())
            return problems;
        const auto spec = parseJaxSpec(specText);
        if (!spec)
            return spec.error();
        return settleSpec(*spec);
    }

    /// `, memory_kind=device, logical_device_ids=(0, 2, 1, 3)` behind a spec.
    Problems readKeywords(std::string_view text)
    {
        TextCursor cursor(text);
        while (cursor.take(",") && !cursor.atEnd()) {
            const std::string_view name = cursor.word();
            const bool isIds = name == "logical_device_ids" || name == "_logical_device_ids";
            if (!cursor.take("="))
                return {cursor.expected("MW1105", "NamedSharding", "\"=\" after a keyword", "write memory_kind=device")};
            if (name == "memory_kind") {
                const auto quoted = cursor.quoted();
                const std::string kind = quoted ? *quoted : std::string(cursor.word());
                m_parsed.memoryKind = kind == "None" ? "" : kind;
            } else if (isIds && cursor.take("(")) {
                const auto inside = cursor.untilClosed();
                std::string_view list = inside ? trimmed(*inside) : std::string_view();
                if (list.ends_with(','))
                    list.remove_suffix(1);
                auto order = parseDeviceOrder(list);
                if (!order)
                    return order.error();
                auto mesh = Mesh::create(m_parsed.mesh.axes(), *std::move(order));
                if (!mesh)
                    return mesh.error();
                m_parsed.mesh = *std::move(mesh);
            } else if (cursor.take("(") || cursor.take("[") || cursor.take("{")) {
                cursor.untilClosed();
            } else if (!cursor.quoted() && cursor.word().empty()) {
                return {cursor.expected("MW1105", "NamedSharding", "a value", "write memory_kind=device")};
            }
        }
        if (!cursor.atEnd())
            return {cursor.expected("MW1105", "NamedSharding", "\",\" or \")\"", "write memory_kind=device")};
        return {};
    }

    Problems readType()
    {
        const auto type = parseJaxType(m_text);
        if (!type)
            return type.error();
        if (Problems problems = needMesh(namesAxes(type->spec) || !type->varying.empty()); !problems.empty())
            return problems;
        m_parsed.shape = type->shape;
        m_parsed.dtype = type->dtype;
        m_parsed.memoryKind = type->memorySpace == "host" ? "pinned_host" : type->memorySpace;
        Problems problems = settleSpec(type->spec);
        for (const std::string& name : type->varying) {
            if (const auto index = m_parsed.mesh.findAxis(name))
                m_parsed.manual.push_back(wholeAxis(m_parsed.mesh, *index));
            else
                problems.push_back(
                    {"MW1102", fmt::format("unknown axis name: \"{}\"", name), suggestion(name, m_parsed.mesh.axisNames())});
        }
        std::sort(m_parsed.manual.begin(), m_parsed.manual.end());
        return problems;
    }

    Problems settleTiles(const TileSharding& tiles)
    {
        const std::size_t rank = tiles.kind == TileKind::Tiled ? tiles.rank() : m_context.rank.value_or(0);
        if (m_context.mesh && tiles.kind != TileKind::Maximal) {
            m_parsed.mesh = *m_context.mesh;
        } else {
            const auto mesh = meshOfTiles(tiles);
            if (!mesh)
                return mesh.error();
            m_parsed.mesh = *mesh;
            m_parsed.meshInvented = true;
        }
        if (m_context.rank && rank != *m_context.rank)
            return fromTiles(tiles, *m_context.rank, m_parsed.mesh).error();
        const auto named = fromTiles(tiles, rank, m_parsed.mesh);
        if (!named)
            return named.error();
        m_parsed.sharding = named->sharding;
        m_parsed.manual = named->manual;
        return {};
    }

    Problems readTiles()
    {
        std::string_view text = m_text;
        if (const std::size_t open = text.find("GSPMDSharding("); open != std::string_view::npos) {
            text = text.substr(open + 14);
            const std::size_t end = text.rfind('}');
            const std::string_view rest = end == std::string_view::npos ? std::string_view() : trimmed(text.substr(end + 1));
            text = text.substr(0, end == std::string_view::npos ? text.size() : end + 1);
            if (!rest.ends_with(')'))
                return {
                    TextCursor(m_text).expected("MW1150", "sharding with tiles", "\")\" at the end", "write {devices=[2]<=[2]}")};
            if (Problems problems = readKeywords(rest.substr(0, rest.size() - 1)); !problems.empty())
                return problems;
        }
        const auto tiles = parseTileSharding(text);
        return tiles ? settleTiles(*tiles) : tiles.error();
    }

    Problems readXlaNamed()
    {
        const auto named = parseXlaNamed(m_text);
        if (!named)
            return named.error();
        m_parsed.mesh = named->mesh;
        m_parsed.sharding = named->sharding;
        return settleRank();
    }

    /// The text of a mesh without axes says nothing of the array's rank; every other has an entry a dimension.
    Problems settleRank()
    {
        if (!m_context.rank)
            return {};
        if (m_parsed.mesh.axes().empty())
            m_parsed.sharding.dims.resize(*m_context.rank);
        return shardingProblems(m_parsed.sharding, m_parsed.mesh, m_context.rank);
    }

    Problems readShardy()
    {
        std::string_view text = m_text;
        const std::size_t open = text.find('<');
        std::optional<Mesh> ownMesh;
        if (!text.starts_with('[') && open != std::string_view::npos) {
            // #sdy.sharding<@mesh, [..]> or <mesh<["a"=2]>, [..]>: the sharding begins at the bracket after the mesh.
            const auto wrong = [&] {
                return Problems{TextCursor(text).expected(
                    "MW1140", "Shardy sharding", "#sdy.sharding<@mesh, [..]>", "write [{\"data\"}, {}]")};
            };
            if (!text.ends_with('>'))
                return wrong();
            text = trimmed(text.substr(open + 1, text.size() - open - 2));
            if (text.starts_with("mesh<")) {
                const std::size_t end = text.find('>');
                if (end == std::string_view::npos)
                    return wrong();
                const auto inlined = parseShardyMesh(text.substr(5, end - 5));
                if (!inlined)
                    return inlined.error();
                ownMesh = inlined->mesh;
                text = text.substr(end + 1);
            } else if (!text.starts_with('@')) {
                return wrong();
            }
            const std::size_t comma = text.find(',');
            if (comma == std::string_view::npos)
                return wrong();
            text = trimmed(text.substr(comma + 1));
        }
        if (ownMesh) {
            m_parsed.mesh = *ownMesh;
        } else {
            if (Problems problems
                = needMesh(text.find('"') != std::string_view::npos || text.find('\'') != std::string_view::npos);
                !problems.empty())
                return problems;
            if (m_parsed.meshInvented && text != "[]")
                m_parsed.mesh = valueOf(Mesh::create({{"axis_0", 1}})); // Shardy's mesh without axes has shardings of rank 0 only
        }
        const auto sharding = parseShardy(text, m_parsed.mesh);
        if (!sharding)
            return sharding.error();
        m_parsed.sharding = *sharding;
        return settleRank();
    }

    Problems readPlacements()
    {
        const auto placements = parsePlacements(m_text);
        if (!placements)
            return placements.error();
        if (Problems problems = needMesh(true); !problems.empty()) {
            problems.front().message = "placements are one for each mesh dimension, but no mesh is given";
            return problems;
        }
        const auto sharding = onMesh(*placements, m_context.rank, m_parsed.mesh);
        if (!sharding)
            return sharding.error();
        m_parsed.sharding = *sharding;
        return {};
    }

    Problems readBook()
    {
        if (Problems problems = needMesh(m_text.find('_') != std::string_view::npos); !problems.empty())
            return problems;
        auto array = parseBook(m_text, m_parsed.mesh);
        if (!array)
            return array.error();
        if (m_context.rank && array->dimNames.size() != *m_context.rank)
            return {{"MW1145",
                fmt::format("{} has {} dimensions, the array has rank {}", array->name, array->dimNames.size(), *m_context.rank),
                fmt::format("name {} dimensions", *m_context.rank)}};
        m_parsed.sharding = std::move(array->sharding);
        m_parsed.arrayName = std::move(array->name);
        m_parsed.dimNames = std::move(array->dimNames);
        return {};
    }

    Problems readPositional()
    {
        const auto positional = parsePositional(m_text);
        if (!positional)
            return positional.error();
        TileSharding tiles;
        tiles.kind = TileKind::Tiled;
        Shape dims = positional->shape();
        // A rank promotion: leading dimensions of one tile that the array does not have.
        while (m_context.rank && dims.size() > *m_context.rank && dims.front() == 1)
            dims.erase(dims.begin());
        while (m_context.rank && dims.size() < *m_context.rank && positional->isFullyReplicated())
            dims.push_back(1);
        std::vector<DeviceId> devices;
        for (std::int64_t cell = 0; cell < elementCount(positional->shape()); ++cell) {
            const auto held = positional->devicesAt(cell);
            devices.insert(devices.end(), held.begin(), held.end());
        }
        dims.push_back(static_cast<std::int64_t>(positional->devices().size()) / elementCount(positional->shape()));
        tiles.subgroups = {Subgroup::Replicated};
        const auto list = TileAssignment::list(std::move(dims), std::move(devices));
        if (!list)
            return list.error();
        tiles.tiles = *list;
        if (m_context.mesh)
            return settleTiles(tiles);
        // Without a mesh: one of these devices, even when they all hold the same.
        Problems problems = settleTiles(tiles);
        if (problems.empty() && normalized(tiles).kind == TileKind::Replicated && tiles.tiles.count() > 1)
            m_parsed.mesh = valueOf(Mesh::create({{"axis_0", tiles.tiles.count()}}, tiles.tiles.devices()));
        return problems;
    }

    std::string_view m_text;
    const SpellingContext& m_context;
    ParsedSharding m_parsed;
};

} // namespace

Result<ParsedSharding> parseSharding(std::string_view text, const SpellingContext& context)
{
    return NotationReader(text, context).read();
}

} // namespace meshwright
