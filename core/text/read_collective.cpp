// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/shape_rules.h"
#include "core/support/checked.h"
#include "core/text/function_reader.h"
#include "core/text/notation.h"
#include "core/text/parser.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

using Kind = SyntaxAttribute::Kind;

namespace {

/// What the axes of a collective are called, in its own form and in the generic ones.
const SyntaxAttribute* axesOf(const SyntaxOp& op)
{
    for (const char* name : {"axes", "gathering_axes", "slicing_axes", "reduce_scatter_axes", "reduction_axes", "params"}) {
        if (const SyntaxAttribute* axes = op.find(name))
            return axes;
    }
    return nullptr;
}

/// Takes `end` off the minor end of `axes`; nothing when they do not end in it.
std::optional<AxisRefs> withoutEnd(AxisRefs axes, const AxisRefs& end)
{
    for (auto axis = end.rbegin(); axis != end.rend(); ++axis) {
        if (axes.empty())
            return std::nullopt;
        AxisRef& last = axes.back();
        if (last == *axis)
            axes.pop_back();
        else if (last.axis == axis->axis && last.pre * last.size == axis->pre * axis->size && axis->pre > last.pre
            && axis->pre % last.pre == 0)
            last.size = axis->pre / last.pre;
        else
            return std::nullopt;
    }
    return axes;
}

AxisRefs withEnd(AxisRefs axes, const AxisRefs& end)
{
    for (const AxisRef& axis : end)
        appendMerging(axes, axis);
    return axes;
}

/// What an explicit collective on a whole array makes of the layout of its operand, as far as that follows from its axes.
class CollectiveCheck {
public:
    CollectiveCheck(OpKind kind, const CollectiveAttributes& collective, const TensorSharding& from, const TensorSharding& to,
        const Mesh& mesh)
        : m_kind(kind)
        , m_collective(collective)
        , m_from(from)
        , m_to(to)
        , m_mesh(mesh)
    {
    }

    /// Why the sharding of the result is not what comes of the operand's; empty when it is.
    std::string contradiction()
    {
        if (m_from.dims.size() != m_to.dims.size() || m_collective.perDim.size() > m_to.dims.size())
            return fmt::format("it names {} dimensions, its operand has {} and its result {}",
                std::max(m_collective.perDim.size(), m_to.dims.size()), m_from.dims.size(), m_to.dims.size());
        if (m_kind == OpKind::CollectivePermute)
            return permuted();
        std::vector<AxisRefs> dims;
        for (const DimSharding& dim : m_from.dims)
            dims.push_back(dim.axes);
        if (std::string wrong = applied(dims); !wrong.empty())
            return wrong;
        for (std::size_t dim = 0; dim < dims.size(); ++dim) {
            if (dims[dim] != m_to.dims[dim].axes)
                return fmt::format(
                    "it makes dimension {} {}, out_sharding says {}", dim, text(dims[dim]), text(m_to.dims[dim].axes));
        }
        return partial();
    }

private:
    std::string text(const AxisRefs& axes) const { return axisListText(axes, m_mesh); }

    std::string permuted() const
    {
        for (std::size_t dim = 0; dim < m_to.dims.size(); ++dim) {
            const std::int64_t before = shardCount(m_from.dims[dim].axes);
            const std::int64_t after = shardCount(m_to.dims[dim].axes);
            if (before != after)
                return fmt::format(
                    "it keeps the number of pieces, and out_sharding makes {} of the {} of dimension {}", after, before, dim);
        }
        return {};
    }

    bool takesOff() const { return m_kind == OpKind::AllGather || m_kind == OpKind::Reshard; }

    std::string taken(AxisRefs& axes, const AxisRefs& off, std::size_t dim) const
    {
        auto rest = withoutEnd(axes, off);
        if (!rest)
            return fmt::format("it takes {} off dimension {}, which is split by {}", text(off), dim, text(axes));
        axes = *std::move(rest);
        return {};
    }

    std::string applied(std::vector<AxisRefs>& dims) const
    {
        std::string wrong;
        for (std::size_t dim = 0; dim < m_collective.perDim.size() && wrong.empty(); ++dim) {
            if (takesOff())
                wrong = taken(dims[dim], m_collective.perDim[dim], dim);
            else
                dims[dim] = withEnd(std::move(dims[dim]), m_collective.perDim[dim]);
        }
        for (const AxisMove& move : m_collective.moves) {
            if (std::max(move.from, move.to) >= dims.size())
                return fmt::format("it moves axes from dimension {} to {}, and there are {}", move.from, move.to, dims.size());
            if (wrong.empty())
                wrong = taken(dims[move.from], move.axes, move.from);
            dims[move.to] = withEnd(std::move(dims[move.to]), move.axes);
        }
        return wrong;
    }

    /// What is left of, or becomes, a partial sum.
    std::string partial() const
    {
        const bool reduces = m_kind == OpKind::AllReduce || m_kind == OpKind::ReduceScatter;
        const AxisRefs& axes = m_collective.axes;
        if (reduces && !areIndependent(axes, m_from.unreduced) && m_collective.kind != m_from.unreducedKind)
            return fmt::format("it combines by {} what is partial by {}", reduceKindName(m_collective.kind),
                reduceKindName(m_from.unreducedKind));
        if (reduces && !areIndependent(axes, m_to.unreduced))
            return fmt::format("it reduces over {}, and out_sharding leaves {} unreduced", text(axes), text(m_to.unreduced));
        for (const DimSharding& dim : m_from.dims) {
            if (reduces && !areIndependent(axes, dim.axes))
                return fmt::format("it reduces over {}, and its operand is split by {}", text(axes), text(dim.axes));
        }
        if (m_kind == OpKind::Reshard) {
            if (!areIndependent(axes, m_from.unreduced))
                return fmt::format("it makes partial sums over {}, and its operand has them already", text(axes));
            return {};
        }
        const bool adds = std::any_of(m_to.unreduced.begin(), m_to.unreduced.end(),
            [&](const AxisRef& axis) { return areIndependent(AxisRefs{axis}, m_from.unreduced); });
        if (adds)
            return fmt::format(
                "out_sharding is partial over {}, its operand over {}", text(m_to.unreduced), text(m_from.unreduced));
        return {};
    }

    OpKind m_kind;
    const CollectiveAttributes& m_collective;
    const TensorSharding& m_from;
    const TensorSharding& m_to;
    const Mesh& m_mesh;
};

} // namespace

/// A collective as Shardy writes it keeps the type of the whole array: it is the identity, with another sharding. False, and said, when that
/// is not the sharding which its axes make of its operand's.
bool FunctionReader::readWholeCollective(const SyntaxOp& op, ValueId operand, OpKind& kind, OpAttributes& attributes)
{
    const SyntaxAttribute* sharding = op.findEither("out_sharding", "sharding");
    const bool isNamed = sharding != nullptr && sharding->shardings.size() == 1;
    const TensorType* declared = resultType(op);
    if (!isNamed || declared == nullptr || *declared != m_function[operand].type)
        return true;
    const TensorSharding& to = sharding->shardings.front();
    const auto& collective = *std::get_if<CollectiveAttributes>(&attributes);
    const auto& from = m_function[operand].sharding;
    const bool isPlain = kind == OpKind::Reshard && collective.axes.empty() && collective.perDim.empty();
    if (from && !isPlain && !m_module.isOurs) {
        const Mesh& before = m_module.meshes[static_cast<std::size_t>(from->mesh)].mesh;
        const Mesh& mesh = m_module.meshes[static_cast<std::size_t>(to.mesh)].mesh;
        const bool mayReorder = kind == OpKind::CollectivePermute && before.axes() == mesh.axes();
        const std::string wrong = before != mesh && !mayReorder
            ? fmt::format("its operand is on the mesh {}, its result on {}", before.text(), mesh.text())
            : CollectiveCheck(kind, collective, *from, to, mesh).contradiction();
        if (!wrong.empty())
            return m_problems.report("MW1333", op.offset, fmt::format("{} contradicts its shardings: {}", op.name, wrong),
                "give the axes that lead from the operand's sharding to the result's");
    }
    if (kind == OpKind::Reshard || kind == OpKind::AllReduce || (kind == OpKind::CollectivePermute && from))
        return true;
    const auto onShards = resultTypes(kind, attributes, std::vector<TensorType>{*declared});
    if (!onShards || (m_module.isOurs && onShards->front() == *declared))
        return true; // it does not fit, which is said where it is added; or it is of a program on shards
    kind = OpKind::ShardingConstraint;
    attributes = ConstraintAttributes{to, std::string(op.name)};
    return true;
}

bool FunctionReader::makeCollective(const SyntaxOp& op, OpKind kind, const TensorType& operand, CollectiveAttributes& collective)
{
    const SyntaxAttribute* sharding = op.findEither("out_sharding", "sharding");
    if (m_module.meshes.empty())
        return m_problems.report("MW1330", op.offset, fmt::format("{} needs a mesh, and the module has none", op.name),
            "declare one before the function, such as: sdy.mesh @mesh = <[\"x\"=4]>");
    const bool named = sharding != nullptr && sharding->shardings.size() == 1;
    const Mesh& mesh = m_module.meshes[named ? static_cast<std::size_t>(sharding->shardings.front().mesh) : 0].mesh;
    const bool hasOneList = kind == OpKind::AllReduce || op.name == "sdy.replicated_to_unreduced";
    if (const SyntaxAttribute* axes = axesOf(op)) {
        if (hasOneList) {
            if (axes->kind != Kind::Axes)
                return m_problems.report("MW1326", axes->offset, fmt::format("{} needs one list of axes: {{\"x\"}}", op.name));
            collective.axes = resolvedAxes(*axes, mesh, m_problems);
        }
        for (const SyntaxAttribute& item : axes->items) {
            const bool isMove = item.kind == Kind::Moves;
            if (!hasOneList && isMove != (kind == OpKind::AllToAll))
                return m_problems.report("MW1326", axes->offset, fmt::format("{} does not take axes of this form", op.name));
            if (isMove && (item.integer < 0 || item.second < 0))
                return m_problems.report("MW1326", axes->offset, "a dimension is negative");
            if (isMove)
                collective.moves.push_back({resolvedAxes(item.items.front(), mesh, m_problems),
                    static_cast<std::size_t>(item.integer), static_cast<std::size_t>(item.second)});
            else if (!hasOneList)
                collective.perDim.push_back(resolvedAxes(item, mesh, m_problems));
        }
    }
    if (!hasOneList)
        collective.axes = impliedAxes(kind, collective);
    const SyntaxAttribute* reduction = op.find("reduction_op");
    const std::string_view combines = reduction != nullptr ? std::string_view(reduction->text)
        : op.words.empty()                                 ? std::string_view()
                                                           : op.words.front();
    if (!combines.empty()) {
        const auto known = parseReduceKindKeyword(combines);
        if (!known || (kind != OpKind::AllReduce && kind != OpKind::ReduceScatter))
            return m_problems.report("MW1326", op.offset, fmt::format("{} does not take '{}'", op.name, combines));
        collective.kind = *known;
    }
    // Sizes that a gather multiplies must stay in range.
    std::int64_t bytes = operand.bytes();
    for (const AxisRef& axis : collective.axes) {
        const auto grown = checkedMultiply(bytes, axis.size);
        if (!grown)
            return m_problems.report(
                "MW1322", op.offset, fmt::format("the result of {} on {} does not fit 64 bits", op.name, typeText(operand)));
        bytes = *grown;
    }
    if (kind == OpKind::CollectivePermute || kind == OpKind::Reshard) {
        const TensorType* type = resultType(op);
        if (type == nullptr)
            return false;
        collective.resultShape = type->shape;
    }
    readCollectiveNotes(op, mesh, collective);
    return true;
}

/// A collective of a manual computation, in a program on shards.
void FunctionReader::readPieces(const SyntaxOp& op, const SyntaxAttribute& dims, CollectiveAttributes& collective)
{
    const TensorType* type = resultType(op);
    const auto listed = dimsOf(op, &dims, "the dimensions that it splits and joins");
    if (type == nullptr || !listed)
        return;
    const std::size_t rank = std::max<std::size_t>(type->shape.size(), 1);
    if (listed->size() != 2 || listed->front() >= rank || listed->back() >= rank) {
        m_problems.report("MW1326", dims.offset, fmt::format("mw.pieces of {} needs two dimensions of its result", op.name));
        return;
    }
    collective.resultShape = type->shape;
    collective.pieces = PieceExchange{listed->front(), listed->back(), {}};
    const SyntaxAttribute* groups = op.find("mw.groups");
    for (std::size_t i = 0; groups != nullptr && i < groups->items.size(); ++i) {
        collective.pieces->groups.emplace_back();
        for (const SyntaxAttribute& member : groups->items[i].items)
            collective.pieces->groups.back().push_back(member.integer);
    }
}

void FunctionReader::readCollectiveNotes(const SyntaxOp& op, const Mesh& mesh, CollectiveAttributes& collective)
{
    if (const SyntaxAttribute* axes = op.find("mw.axes"); axes != nullptr && axes->kind == Kind::Axes)
        collective.axes = resolvedAxes(*axes, mesh, m_problems);
    if (const SyntaxAttribute* kind = op.find("mw.reduction")) {
        if (const auto known = parseReduceKindKeyword(kind->text))
            collective.kind = *known;
        else
            m_problems.report("MW1326", kind->offset, fmt::format("unknown kind of reduction: \"{}\"", kind->text));
    }
    if (const SyntaxAttribute* sources = op.find("mw.sources")) {
        for (const SyntaxAttribute& source : sources->items)
            collective.sources.push_back(source.integer);
    }
    if (const SyntaxAttribute* dims = op.find("mw.pieces"))
        readPieces(op, *dims, collective);
    if (const SyntaxAttribute* cause = op.find("mw.cause")) {
        const auto text = [&](std::string_view key) {
            const SyntaxAttribute* part = cause->find(key);
            return part == nullptr ? std::string() : part->text;
        };
        collective.cause = {text("value"), text("op"), text("reason"), text("annotation")};
    }
}

} // namespace meshwright
