// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/source_walk.h"

#include "core/program/body_collective.h"
#include "core/program/shape_rules.h"
#include "core/program/transform.h"
#include "core/prove/known_numbers.h"
#include "core/prove/lemmas.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

TensorSharding withoutUneven(TensorSharding layout, const Shape& shape)
{
    for (std::size_t dim = 0; dim < std::min(shape.size(), layout.dims.size()); ++dim) {
        AxisRefs& axes = layout.dims[dim].axes;
        while (!axes.empty() && shape[dim] % shardCount(axes) != 0)
            axes.pop_back();
    }
    return layout;
}

namespace {

std::uint64_t bitsOf(const std::vector<std::int32_t>& axes)
{
    std::uint64_t bits = 0;
    for (const std::int32_t axis : axes)
        bits |= std::uint64_t{1} << std::min(axis, 63);
    return bits;
}

} // namespace

void SourceWalk::run()
{
    for (const ValueId argument : walk.function.arguments())
        define(argument, fresh(argument, "argument", 0));
    walkBlock(BlockId(std::int32_t{0}), controls);
}

Standing SourceWalk::fresh(ValueId value, std::string_view what, std::uint64_t varies)
{
    const TensorType& type = walk.function[value].type;
    const GlobalId global = walk.globals.fresh(what, type.shape, type.dtype, varies);
    return standingOf(global, type.shape, std::vector<StandingDim>(type.shape.size()), type.shape, 0);
}

std::vector<Standing> SourceWalk::standingsOf(const std::vector<ValueId>& values) const
{
    std::vector<Standing> standings;
    for (const ValueId value : values)
        standings.push_back((*this)[value]);
    return standings;
}

void SourceWalk::walkBlock(BlockId block, Controls& inside)
{
    for (const OpId id : walk.function[block].ops) {
        const Op& op = walk.function[id];
        switch (op.kind) {
        case OpKind::Repeat:
            walkRepeat(op, inside);
            break;
        case OpKind::While:
            walkWhile(op, inside);
            break;
        case OpKind::Case:
            walkCase(op, inside);
            break;
        case OpKind::Computation:
            walkComputation(op, inside);
            break;
        default:
            walkOther(op);
        }
    }
}

void SourceWalk::walkOther(const Op& op)
{
    // On whole arrays a collective is a change of layout.
    const bool isIdentity = isCollective(op.kind) && !op.as<CollectiveAttributes>().pieces;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
        Site site{walk, op, {}, {}};
        for (const ValueId operand : op.operands)
            site.operands.push_back(&(*this)[operand]);
        std::optional<Standing> standing;
        const LemmaFunction lemma = isIdentity ? identityLemma : lemmaOf(op.kind);
        if (lemma != nullptr)
            standing = lemma(site, i);
        if (!standing && !isKept(op.kind) && lemma != nullptr && !isCollective(op.kind))
            standing = wholeOp(site, i);
        // What devices compute of their ids varies less than those do.
        const auto known
            = standing && walk.globals[standing->global].varies != 0 ? knownNumbers(walk, op.results[i]) : std::nullopt;
        if (known)
            walk.globals[standing->global].varies &= variesAlong(*known, walk.mesh());
        define(op.results[i], standing ? *std::move(standing) : fresh(op.results[i], opName(op), ~std::uint64_t{0}));
    }
}

/// What blocks compute may vary along the axes along which anything that comes in does, and along those of collectives inside.
std::uint64_t SourceWalk::variesIn(const Op& op) const
{
    std::uint64_t varies = 0;
    for (const ValueId operand : op.operands)
        varies |= walk.globals[(*this)[operand].global].varies;
    for (const BlockId body : op.bodies) {
        for (const OpId id : walk.function[body].ops)
            varies |= variesBy(walk.function[id]);
    }
    return varies;
}

/// Along which axes an op in a block, and what is in its own blocks, may make values that vary.
std::uint64_t SourceWalk::variesBy(const Op& op) const
{
    if (isPartitionId(op))
        return m_manual.value_or(~std::uint64_t{0});
    std::uint64_t varies = 0;
    if (isBodyCollective(op)) {
        const auto collective = bodyCollective(walk.function, op, walk.mesh());
        varies = m_manual.value_or(0) | (collective ? bitsOf(axesTouched(*collective, walk.mesh())) : ~std::uint64_t{0});
    }
    for (const BlockId body : op.bodies) {
        for (const OpId id : walk.function[body].ops)
            varies |= variesBy(walk.function[id]);
    }
    return varies;
}

std::shared_ptr<Control> SourceWalk::begin(const Op& op, Controls& inside) const
{
    auto control = std::make_shared<Control>();
    control->op = &op;
    control->operands = standingsOf(op.operands);
    control->inside.resize(op.bodies.size());
    inside.push_back(control);
    return control;
}

void SourceWalk::walkRepeat(const Op& op, Controls& inside)
{
    const auto& repeat = op.as<RepeatAttributes>();
    const std::shared_ptr<Control> control = begin(op, inside);
    const Block& body = walk.function[op.bodies[0]];
    const std::uint64_t varies = variesIn(op);
    const auto isUnchanged = [&](std::size_t i) { return i < repeat.carries && body.results[i] == body.arguments[i]; };
    for (std::size_t i = 0; i < body.arguments.size(); ++i) {
        const bool isSame = i >= repeat.carries + repeat.stacked || isUnchanged(i); // what stays the same is what it is outside
        define(body.arguments[i], isSame ? control->operands[i] : fresh(body.arguments[i], "of an iteration", varies));
    }
    walkBlock(op.bodies[0], control->inside[0]);
    control->arguments = {standingsOf(body.arguments)};
    control->yields = {standingsOf(body.results)};
    for (std::size_t i = 0; i < op.results.size(); ++i)
        define(op.results[i], isUnchanged(i) ? control->operands[i] : fresh(op.results[i], "of a loop", varies));
    control->results = standingsOf(op.results);
}

void SourceWalk::walkWhile(const Op& op, Controls& inside)
{
    const std::shared_ptr<Control> control = begin(op, inside);
    const std::uint64_t varies = variesIn(op);
    std::vector<Standing> carries;
    for (std::size_t block = 0; block < 2; ++block) {
        const Block& body = walk.function[op.bodies[block]];
        for (std::size_t i = 0; i < body.arguments.size(); ++i) {
            const bool isCarry = i < op.as<WhileAttributes>().carries;
            if (isCarry && block == 0)
                carries.push_back(fresh(body.arguments[i], "of an iteration", varies));
            define(body.arguments[i], isCarry ? carries[i] : control->operands[i]);
        }
        walkBlock(op.bodies[block], control->inside[block]);
        control->arguments.push_back(standingsOf(body.arguments));
        control->yields.push_back(standingsOf(body.results));
    }
    for (const ValueId result : op.results)
        define(result, fresh(result, "of a loop", varies));
    control->results = standingsOf(op.results);
}

void SourceWalk::walkCase(const Op& op, Controls& inside)
{
    const std::shared_ptr<Control> control = begin(op, inside);
    const std::uint64_t varies = variesIn(op);
    for (std::size_t block = 0; block < op.bodies.size(); ++block) {
        const Block& body = walk.function[op.bodies[block]];
        for (std::size_t i = 0; i < body.arguments.size(); ++i)
            define(body.arguments[i], control->operands[i + 1]);
        walkBlock(op.bodies[block], control->inside[block]);
        control->arguments.push_back(standingsOf(body.arguments));
        control->yields.push_back(standingsOf(body.results));
    }
    for (const ValueId result : op.results)
        define(result, fresh(result, "of a branch", varies));
    control->results = standingsOf(op.results);
}

namespace {

/// The parts of a dimension's axes that the author of a manual computation uses.
AxisRefs manualPart(const AxisRefs& axes, const std::vector<std::int32_t>& manual)
{
    AxisRefs part;
    for (const AxisRef& axis : axes) {
        if (std::binary_search(manual.begin(), manual.end(), axis.axis))
            part.push_back(axis);
    }
    return canonical(part);
}

TensorSharding manualPart(TensorSharding layout, const std::vector<std::int32_t>& manual)
{
    for (DimSharding& dim : layout.dims)
        dim.axes = manualPart(dim.axes, manual);
    return layout;
}

std::string manualText(const TensorSharding& layout, const std::vector<std::int32_t>& manual)
{
    std::string text = fmt::format("mesh {}", layout.mesh);
    for (const DimSharding& dim : layout.dims) {
        text += " [";
        for (const AxisRef& axis : manualPart(dim.axes, manual))
            text += fmt::format("{}:{}:{} ", axis.axis, axis.pre, axis.size);
        text += "]";
    }
    return text;
}

std::uint64_t manualBits(const TensorSharding& layout, const std::vector<std::int32_t>& manual, const Mesh& mesh, bool wholeOnly)
{
    std::uint64_t bits = 0;
    for (const DimSharding& dim : layout.dims) {
        for (const AxisRef& axis : manualPart(dim.axes, manual)) {
            const bool isWhole = axis.pre == 1 && axis.size == mesh.axes()[static_cast<std::size_t>(axis.axis)].size;
            if (isWhole || !wholeOnly)
                bits |= std::uint64_t{1} << std::min(axis.axis, 63);
        }
    }
    return bits;
}

} // namespace

void SourceWalk::walkComputation(const Op& op, Controls& inside)
{
    const auto& computation = op.as<ComputationAttributes>();
    const Block& body = walk.function[op.bodies[0]];
    const auto& manual = computation.manualAxes;
    const bool isTheAuthors = isManual(op);
    const Mesh& mesh = walk.mesh();
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        Standing outside = (*this)[op.operands[i]];
        if (!isTheAuthors || i >= computation.inShardings.size() || outside.isUniform()) {
            define(body.arguments[i], outside);
            continue;
        }
        const TensorSharding layout = withoutUneven(computation.inShardings[i], walk.function[op.operands[i]].type.shape);
        const std::uint64_t bits = manualBits(layout, manual, mesh, false);
        if (bits == 0) {
            define(body.arguments[i], outside);
            continue;
        }
        const ValueId argument = body.arguments[i];
        const TensorType& type = walk.function[argument].type;
        const Framed array = framed(walk, op.operands[i], outside);
        const GlobalId piece = walk.globals.number(fmt::format("piece {} {}", array.text(), manualText(layout, manual)),
            type.shape, type.dtype, walk.globals[outside.global].varies | bits);
        const Standing own = standingOf(piece, type.shape, std::vector<StandingDim>(type.shape.size()), type.shape, 0);
        const TensorSharding pieces = manualPart(layout, manual);
        borders[outside.global].push_back({outside, pieces, own, withoutManualAxes(pieces, manual)});
        define(argument, own);
    }
    const std::optional<std::uint64_t> around = m_manual;
    if (isTheAuthors)
        m_manual = around.value_or(0) | bitsOf(manual);
    walkBlock(op.bodies[0], inside);
    m_manual = around;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
        const Standing own = (*this)[body.results[i]];
        const ValueId result = op.results[i];
        const TensorType& type = walk.function[result].type;
        if (!isTheAuthors || i >= computation.outShardings.size()) {
            define(result, own);
            continue;
        }
        const TensorSharding layout = withoutUneven(computation.outShardings[i], type.shape);
        const std::uint64_t named = manualBits(layout, manual, mesh, true);
        const std::uint64_t varies = walk.globals[own.global].varies;
        AxisRefs all;
        for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis)
            all.push_back(wholeAxis(mesh, axis));
        if ((varies & axisBits(all) & ~named & ~around.value_or(0)) != 0) { // devices' results may differ, and one is kept
            faults.push_back(
                fmt::format("result {} of a manual computation may differ along an axis that its out_sharding does not name", i));
            define(result, fresh(result, "of a manual computation", varies));
            continue;
        }
        if (own.isUniform() && varies == 0) {
            define(result, own);
            continue;
        }
        if (manualBits(layout, manual, mesh, false) == 0) {
            define(result, own);
            continue;
        }
        const Framed array = framed(walk, body.results[i], own);
        const GlobalId whole
            = walk.globals.number(fmt::format("of pieces {} {} {}", typeText(type), array.text(), manualText(layout, manual)),
                type.shape, type.dtype, varies & ~named);
        const Standing outside = standingOf(whole, type.shape, std::vector<StandingDim>(type.shape.size()), type.shape, 0);
        const TensorSharding pieces = manualPart(layout, manual);
        borders[own.global].push_back({own, withoutManualAxes(pieces, manual), outside, pieces});
        define(result, outside);
    }
}

} // namespace meshwright
