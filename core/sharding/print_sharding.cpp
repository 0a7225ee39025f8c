// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/notation.h"

#include "core/sharding/book_text.h"
#include "core/sharding/jax_spec.h"
#include "core/sharding/placements.h"
#include "core/sharding/shardy_text.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

std::string axisList(const AxisRefs& axes, const Mesh& mesh)
{
    std::vector<std::string> names;
    for (const AxisRef& axis : axes)
        names.push_back(axisText(axis, mesh));
    return join(names, ", ");
}

/// Writes one sharding; notes what the text leaves unsaid.
class NotationWriter {
public:
    explicit NotationWriter(const ParsedSharding& parsed)
        : m_parsed(parsed)
        , m_sharding(parsed.sharding)
        , m_mesh(parsed.mesh)
    {
    }

    Result<Spelling> write(Notation notation)
    {
        std::string text;
        Problems problems;
        switch (notation) {
        case Notation::Jax:
        case Notation::JaxNamed:
            problems = writeSpec(notation, text);
            break;
        case Notation::JaxType:
            problems = writeType(text);
            break;
        case Notation::Hlo:
            problems = writeTiles(text);
            break;
        case Notation::HloNamed:
            text = xlaNamedText(m_sharding, m_mesh);
            problems = onlySums(notation);
            noteManual(notation);
            break;
        case Notation::Shardy:
            text = m_mesh.axes().empty() ? "[]" : shardyText(m_sharding, m_mesh);
            problems = onlySums(notation);
            noteManual(notation);
            noteOrder(notation);
            break;
        case Notation::DTensor:
        case Notation::DTensorShort:
            problems = writePlacements(notation, text);
            break;
        case Notation::Book:
            problems = writeBook(text);
            break;
        case Notation::Positional:
            problems = writePositional(text);
            break;
        }
        if (!problems.empty())
            return problems;
        noteHints(notation);
        return Spelling{std::move(text), std::move(m_notes)};
    }

private:
    Problems onlySums(Notation notation) const
    {
        if (m_sharding.unreduced.empty() || m_sharding.unreducedKind == ReduceKind::Sum)
            return {};
        return {{"MW1161",
            fmt::format("{} have partial sums only, the values combine by {}", notationTitle(notation),
                reduceKindName(m_sharding.unreducedKind)),
            "use P(.., unreduced_kind=..) or DTensor's Partial"}};
    }

    void noteManual(Notation notation)
    {
        if (!m_parsed.manual.empty())
            m_notes.push_back(
                fmt::format("{} cannot express that {} are manual", notationTitle(notation), axisList(m_parsed.manual, m_mesh)));
    }

    void noteOrder(Notation notation)
    {
        if (!m_mesh.hasDefaultOrder())
            m_notes.push_back(fmt::format("{} cannot express the device order of the mesh", notationTitle(notation)));
    }

    /// Hints to propagation, which most notations do not have.
    void noteHints(Notation notation)
    {
        const bool spec = notation == Notation::Jax || notation == Notation::JaxNamed;
        if (!m_parsed.reduced.empty() && !spec && notation != Notation::JaxType)
            m_notes.push_back(
                fmt::format("the text omits that {} are reduced in the cotangent", axisList(m_parsed.reduced, m_mesh)));
        const bool host = m_parsed.memoryKind.ends_with("host") && notation == Notation::JaxType;
        if (!m_parsed.memoryKind.empty() && m_parsed.memoryKind != "device" && notation != Notation::JaxNamed && !host)
            m_notes.push_back(fmt::format("the text omits the memory kind {}", m_parsed.memoryKind));
        if (notation == Notation::Shardy || notation == Notation::HloNamed)
            return;
        for (std::size_t dim = 0; dim < m_sharding.dims.size(); ++dim) {
            const DimSharding& entry = m_sharding.dims[dim];
            if (entry.open && !(spec && entry.axes.empty()))
                m_notes.push_back(fmt::format("dim {} is open to further axes, which the text omits", dim));
            if (entry.priority != 0)
                m_notes.push_back(fmt::format("dim {} has priority {}, which the text omits", dim, entry.priority));
        }
        if (!m_sharding.replicated.empty())
            m_notes.push_back(
                fmt::format("the text omits that {} are replicated explicitly", axisList(m_sharding.replicated, m_mesh)));
    }

    Problems writeSpec(Notation notation, std::string& text)
    {
        const auto spec = jaxSpecOf(m_sharding, m_parsed.reduced, m_mesh);
        if (!spec)
            return spec.error();
        text = notation == Notation::Jax
            ? jaxSpecText(*spec)
            : fmt::format("NamedSharding(mesh={}, spec={}{})", jaxMeshText(m_mesh, m_parsed.axisTypes), jaxSpecText(*spec),
                m_parsed.memoryKind.empty() ? "" : ", memory_kind=" + m_parsed.memoryKind);
        noteManual(notation);
        noteOrder(notation);
        return {};
    }

    Problems writeType(std::string& text)
    {
        if (!m_parsed.shape)
            return {{"MW1161", "a type states the sizes of the array, which are not known", "give the shape of the array"}};
        const auto spec = jaxSpecOf(m_sharding, m_parsed.reduced, m_mesh);
        if (!spec)
            return spec.error();
        JaxType type{m_parsed.dtype.empty() ? "f32" : m_parsed.dtype, *m_parsed.shape, *spec, {},
            m_parsed.memoryKind.ends_with("host") ? "host" : ""};
        const auto& types = m_parsed.axisTypes;
        if (std::find(types.begin(), types.end(), AxisType::Explicit) != types.end()) {
            type.spec = specInType(*spec, m_mesh, types, m_parsed.shape->size());
            if (type.spec.dims != spec->dims)
                m_notes.emplace_back("axes that are not Explicit are not in the type");
        }
        for (const AxisRef& axis : m_parsed.manual) {
            const auto index = static_cast<std::size_t>(axis.axis);
            if (axis != wholeAxis(m_mesh, index))
                return {noNameForPart(axis, m_mesh, "a type")};
            type.varying.push_back(m_mesh.axes()[index].name);
        }
        text = jaxTypeText(type);
        noteOrder(Notation::JaxType);
        return {};
    }

    Problems writeTiles(std::string& text)
    {
        text = tileText(toTiles(m_sharding, m_mesh, m_parsed.manual));
        return onlySums(Notation::Hlo);
    }

    Problems writePlacements(Notation notation, std::string& text)
    {
        const auto placements = placementsOf(m_sharding, m_mesh);
        if (!placements)
            return placements.error();
        if (placements->empty())
            return {{"MW1161", "a mesh without axes has no dimensions to place on", "use a mesh with one axis of size 1"}};
        text = notation == Notation::DTensor ? placementsText(*placements) : shortPlacementsText(*placements);
        noteManual(notation);
        noteOrder(notation);
        return {};
    }

    Problems writeBook(std::string& text)
    {
        const auto written
            = bookText({m_parsed.arrayName.empty() ? "A" : m_parsed.arrayName, m_parsed.dimNames, m_sharding}, m_mesh);
        if (!written)
            return written.error();
        text = *written;
        noteManual(Notation::Book);
        noteOrder(Notation::Book);
        return {};
    }

    Problems writePositional(std::string& text)
    {
        Problems problems;
        if (!m_sharding.unreduced.empty())
            problems.push_back({"MW1161",
                fmt::format("a PositionalSharding places whole values, and this one is a partial result over {}",
                    axisList(m_sharding.unreduced, m_mesh)),
                "reduce the value first"});
        if (m_mesh.deviceCount() > kLargestPositional)
            problems.push_back(
                {"MW1161", fmt::format("a PositionalSharding lists every device, and {} are too many", m_mesh.deviceCount()),
                    "use another notation"});
        if (!m_parsed.manual.empty())
            problems.push_back(
                {"MW1161", fmt::format("a PositionalSharding has no manual axes, and {} are", axisList(m_parsed.manual, m_mesh)),
                    "write the sharding of the whole value"});
        if (!problems.empty())
            return problems;
        // The devices tile by tile, then the sets of replicas.
        AxisRefs order;
        Shape shape;
        for (const DimSharding& dim : m_sharding.dims) {
            order.insert(order.end(), dim.axes.begin(), dim.axes.end());
            shape.push_back(shardCount(dim.axes));
        }
        const AxisRefs rest = unusedAxes(order, m_mesh);
        order.insert(order.end(), rest.begin(), rest.end());
        shape.push_back(shardCount(rest));
        std::vector<DeviceId> devices(static_cast<std::size_t>(m_mesh.deviceCount()));
        for (std::int64_t position = 0; position < m_mesh.deviceCount(); ++position)
            devices[static_cast<std::size_t>(shardIndex(position, order, m_mesh))] = m_mesh.deviceAt(position);
        const auto grid = valueOf(valueOf(PositionalSharding::create(std::move(devices))).reshape(std::move(shape)));
        text = valueOf(grid.replicate(-1, false)).text();
        return {};
    }

    const ParsedSharding& m_parsed;
    const TensorSharding& m_sharding;
    const Mesh& m_mesh;
    std::vector<std::string> m_notes;
};

} // namespace

Result<Spelling> printSharding(const ParsedSharding& sharding, Notation notation)
{
    return NotationWriter(sharding).write(notation);
}

Result<Spelling> printSharding(const TensorSharding& sharding, const Mesh& mesh, Notation notation)
{
    ParsedSharding parsed;
    parsed.mesh = mesh;
    parsed.sharding = sharding;
    return printSharding(parsed, notation);
}

} // namespace meshwright
