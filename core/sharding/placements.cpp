// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/placements.h"

#include "core/sharding/jax_spec.h"
#include "core/support/text.h"
#include "core/support/text_cursor.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

std::string placementsText(const Placements& placements)
{
    std::vector<std::string> texts;
    for (const Placement& placement : placements) {
        switch (placement.kind) {
        case Placement::Kind::Replicate:
            texts.emplace_back("Replicate()");
            break;
        case Placement::Kind::Shard:
            texts.push_back(placement.splitFactor > 1
                    ? fmt::format("_StridedShard({}, split_factor={})", placement.dim, placement.splitFactor)
                    : fmt::format("Shard({})", placement.dim));
            break;
        case Placement::Kind::Partial:
            texts.push_back(placement.reduce == ReduceKind::Sum ? "Partial()"
                                                                : fmt::format("Partial('{}')", reduceKindName(placement.reduce)));
            break;
        }
    }
    return fmt::format("[{}]", join(texts, ", "));
}

std::string shortPlacementsText(const Placements& placements)
{
    std::string text;
    for (const Placement& placement : placements) {
        switch (placement.kind) {
        case Placement::Kind::Replicate:
            text += "R";
            break;
        case Placement::Kind::Shard:
            text += placement.splitFactor > 1 ? fmt::format("_S({}, {})", placement.dim, placement.splitFactor)
                                              : fmt::format("S({})", placement.dim);
            break;
        case Placement::Kind::Partial:
            text += placement.reduce == ReduceKind::Sum ? "P" : fmt::format("P({})", reduceKindName(placement.reduce));
            break;
        }
    }
    return text;
}

namespace {

class PlacementReader {
public:
    explicit PlacementReader(std::string_view text)
        : m_cursor(text)
    {
    }

    Result<Placements> read()
    {
        Placements placements;
        const char* close = m_cursor.take("[") ? "]" : m_cursor.take("(") ? ")" : nullptr;
        while (close != nullptr ? !m_cursor.take(close) : !m_cursor.atEnd()) {
            Placement placement;
            if (!readOne(placement))
                return m_problem;
            placements.push_back(placement);
            m_cursor.take(",");
        }
        if (!m_cursor.atEnd()) {
            fail("the end of the placements");
            return m_problem;
        }
        return placements;
    }

private:
    bool fail(const char* wanted)
    {
        m_problem
            = m_cursor.expected("MW1162", "list of placements", wanted, "write [Shard(0), Replicate(), Partial()], or S(0)RP");
        return false;
    }

    bool readOne(Placement& placement)
    {
        // Longer names first: each of the short ones begins a long one.
        if (m_cursor.take("_StridedShard") || m_cursor.take("_S")) {
            placement.kind = Placement::Kind::Shard;
            if (!m_cursor.take("("))
                return fail("\"(\"");
            if (!readInteger("dim", placement.dim))
                return false;
            if (!m_cursor.take(","))
                return fail("a split factor");
            if (!m_cursor.take("split_factor="))
                m_cursor.take("sf=");
            return readInteger("", placement.splitFactor) && (placement.splitFactor >= 1 || fail("a split factor of at least 1"))
                && (m_cursor.take(")") || fail("\")\""));
        }
        if (m_cursor.take("Shard") || m_cursor.take("S")) {
            placement.kind = Placement::Kind::Shard;
            return (m_cursor.take("(") || fail("\"(\"")) && readInteger("dim", placement.dim)
                && (m_cursor.take(")") || fail("\")\""));
        }
        if (m_cursor.take("Replicate") || m_cursor.take("R")) {
            placement.kind = Placement::Kind::Replicate;
            return !m_cursor.take("(") || m_cursor.take(")") || fail("\")\"");
        }
        if (m_cursor.take("Partial") || m_cursor.take("P")) {
            placement.kind = Placement::Kind::Partial;
            return !m_cursor.take("(") || readReduction(placement);
        }
        return fail("Shard, Replicate or Partial");
    }

    bool readInteger(const std::string& name, std::int64_t& value)
    {
        if (!name.empty())
            m_cursor.take(name + "=");
        const auto number = m_cursor.integer();
        if (!number)
            return fail("a number");
        value = *number;
        return true;
    }

    bool readReduction(Placement& placement)
    {
        m_cursor.take("reduce_op=");
        m_cursor.take("reduce_op =");
        const std::size_t at = m_cursor.at();
        const auto quoted = m_cursor.quoted();
        const std::string name = quoted ? *quoted : std::string(m_cursor.word());
        if (name == "max")
            placement.reduce = ReduceKind::Max;
        else if (name == "min")
            placement.reduce = ReduceKind::Min;
        else if (name == "product")
            placement.reduce = ReduceKind::Product;
        else if (name == "band" || name == "and")
            placement.reduce = ReduceKind::And;
        else if (name == "bor" || name == "or")
            placement.reduce = ReduceKind::Or;
        else if (!name.empty() && name != "sum") {
            m_problem = {"MW1163", fmt::format("partial values that combine by \"{}\" have no counterpart", name),
                "use sum, max, min or product", TextCursor::placeAt(at)};
            return false;
        }
        return m_cursor.take(")") || fail("\")\"");
    }

    TextCursor m_cursor;
    Problem m_problem;
};

std::string meshSizes(const Mesh& mesh)
{
    return fmt::format("the mesh {} has {} dimensions", mesh.text(), mesh.axes().size());
}

} // namespace

Result<Placements> parsePlacements(std::string_view text)
{
    return PlacementReader(text).read();
}

Result<TensorSharding> onMesh(const Placements& placements, std::optional<std::size_t> rank, const Mesh& mesh)
{
    if (placements.size() != mesh.axes().size())
        return Problem{"MW1164", fmt::format("{} placements, but {}", placements.size(), meshSizes(mesh)),
            "give one placement for each mesh dimension", {}, Severity::Error, "one placement for each mesh dimension"};
    std::size_t least = 0;
    for (const Placement& placement : placements) {
        if (placement.kind == Placement::Kind::Shard && placement.dim >= 0)
            least = std::max(least, static_cast<std::size_t>(std::min<std::int64_t>(placement.dim, 64)) + 1);
    }
    Problems problems;
    TensorSharding sharding = TensorSharding::replicatedOf(rank.value_or(least));
    const auto dims = static_cast<std::int64_t>(sharding.dims.size());
    // From the right, so that all that a strided shard comes after is known.
    for (std::size_t axis = placements.size(); axis > 0; --axis) {
        const Placement& placement = placements[axis - 1];
        const AxisRef whole = wholeAxis(mesh, axis - 1);
        if (placement.kind == Placement::Kind::Partial && whole.size > 1) {
            if (!sharding.unreduced.empty() && sharding.unreducedKind != placement.reduce)
                problems.push_back({"MW1163",
                    fmt::format("partial values combine by {} and by {}", reduceKindName(placement.reduce),
                        reduceKindName(sharding.unreducedKind)),
                    "use one kind of reduction"});
            sharding.unreduced.insert(sharding.unreduced.begin(), whole);
            sharding.unreducedKind = placement.reduce;
        }
        if (placement.kind != Placement::Kind::Shard)
            continue;
        const std::int64_t dim = placement.dim < 0 ? placement.dim + dims : placement.dim;
        if (dim < 0 || dim >= dims) {
            problems.push_back({"MW1165",
                fmt::format("mesh dimension \"{}\" shards dim {} of a tensor of rank {}", mesh.axes()[axis - 1].name,
                    placement.dim, dims),
                "name a dimension of the tensor"});
            continue;
        }
        if (whole.size == 1)
            continue;
        AxisRefs& axes = sharding.dims[static_cast<std::size_t>(dim)].axes;
        std::size_t before = 0;
        std::int64_t shards = 1;
        while (before < axes.size() && shards < placement.splitFactor)
            shards *= axes[before++].size;
        if (shards != placement.splitFactor)
            problems.push_back({"MW1165",
                fmt::format("mesh dimension \"{}\" shards dim {} with split factor {}, which the mesh dimensions to its right do "
                            "not make",
                    mesh.axes()[axis - 1].name, placement.dim, placement.splitFactor),
                "give the number of shards that the mesh dimensions make which shard before it"});
        else
            axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(before), whole);
    }
    if (!problems.empty())
        return problems;
    return sharding;
}

Result<Placements> placementsOf(const TensorSharding& sharding, const Mesh& mesh)
{
    Problems problems;
    Placements placements(mesh.axes().size());
    const auto checked = [&](const AxisRef& axis) {
        const bool whole = axis == wholeAxis(mesh, static_cast<std::size_t>(axis.axis));
        if (!whole)
            problems.push_back(noNameForPart(axis, mesh, "a placement"));
        return whole;
    };
    for (std::size_t dim = 0; dim < sharding.dims.size(); ++dim) {
        const AxisRefs& axes = sharding.dims[dim].axes;
        for (std::size_t i = 0; i < axes.size(); ++i) {
            if (!checked(axes[i]))
                continue;
            Placement& placement = placements[static_cast<std::size_t>(axes[i].axis)];
            placement.kind = Placement::Kind::Shard;
            placement.dim = static_cast<std::int64_t>(dim);
            for (std::size_t before = 0; before < i; ++before)
                placement.splitFactor *= axes[before].axis > axes[i].axis ? axes[before].size : 1;
        }
    }
    for (const AxisRef& axis : sharding.unreduced) {
        if (checked(axis)) {
            Placement& placement = placements[static_cast<std::size_t>(axis.axis)];
            placement.kind = Placement::Kind::Partial;
            placement.reduce = sharding.unreducedKind;
        }
    }
    if (!problems.empty())
        return problems;
    return placements;
}

} // namespace meshwright
