// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/walk.h"

#include "core/program/other_op.h"
#include "core/support/checked.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright {

std::map<ValueId, ValueId> invariantsOf(const Function& function)
{
    std::map<ValueId, ValueId> invariants;
    for (const Op& op : function.ops) {
        if (op.kind != OpKind::Repeat && op.kind != OpKind::While)
            continue;
        const RepeatAttributes loop = loopOf(op);
        for (const BlockId body : op.bodies) {
            for (std::size_t i = loop.carries + loop.stacked; i < op.operands.size(); ++i)
                invariants.emplace(function[body].arguments[i], op.operands[i]);
        }
    }
    return invariants;
}

std::string Framed::text() const
{
    if (!copies.empty()) {
        std::size_t own = 0;
        while (own < dims.size() && (dims[own].from == static_cast<int>(own) || (dims[own].from < 0 && shape[own] == 1)))
            ++own;
        if (own == dims.size())
            return copies;
    }
    std::string text;
    addNumber(text, global);
    text += '[';
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        addNumber(text, shape[dim]);
        text += ':';
        addNumber(text, dims[dim].from);
        text += ' ';
    }
    text += ']';
    return text;
}

std::string filledText(const Framed& array)
{
    return "filled " + array.text();
}

Framed filled(const Walk& walk, Framed array, bool isNeeded)
{
    bool hasCopies = isNeeded;
    for (std::size_t dim = 0; dim < array.dims.size(); ++dim)
        hasCopies = hasCopies || (array.isCopy(dim) && array.shape[dim] != 1);
    if (!hasCopies)
        return array;
    walk.globals.noteFilled();
    const DType dtype = walk.globals[array.global].dtype;
    const GlobalId copied = array.global;
    array.copies = array.text();
    array.global = walk.globals.number(filledText(array), array.shape, dtype, walk.globals[copied].varies);
    GlobalValue& all = walk.globals[array.global];
    all.copies = array.copies;
    if (all.copied == kNoGlobal && array.global != copied) {
        all.copied = copied;
        for (const StandingDim& along : array.dims)
            all.copiedFrom.push_back(along.from);
    }
    for (std::size_t dim = 0; dim < array.dims.size(); ++dim)
        array.dims[dim].from = array.shape[dim] == 1 ? -1 : static_cast<int>(dim);
    return array;
}

Framed framed(const Walk& walk, ValueId value, const Standing& standing)
{
    const GlobalValue& global = walk.globals[standing.global];
    Framed array{standing.global, {}, standing.dims, walk.local(value), standing.partial, standing.kind,
        hasMesh(standing) ? standing.mesh : 0, standing.dims.size() == global.shape.size() ? global.copies : std::string()};
    for (std::size_t dim = 0; dim < array.dims.size(); ++dim) {
        StandingDim& along = array.dims[dim];
        if (along.from >= 0) {
            array.shape.push_back(walk.globals[standing.global].shape[static_cast<std::size_t>(along.from)]);
            continue;
        }
        array.shape.push_back(array.local[dim]);
        along.axes.clear();
        const auto& claimed = walk.function[value].sharding;
        if (walk.isSource() || !walk.usesClaims || !claimed || dim >= claimed->dims.size() || claimed->mesh != array.mesh)
            continue;
        const AxisRefs axes = canonical(claimed->dims[dim].axes);
        const Shape& whole = (*walk.wholes)[value.at()];
        if (dim < whole.size() && array.local[dim] == ceilDiv(whole[dim], shardCount(axes))) {
            array.shape[dim] = whole[dim];
            along.axes = axes;
            walk.hasUsedClaims = walk.hasUsedClaims || !axes.empty();
        }
    }
    return array;
}

Standings asArrays(const Walk& walk, ValueId value)
{
    Standings all = walk.standings[value.at()];
    for (std::size_t i = 0, count = all.size(); i < count; ++i) {
        const Framed array = framed(walk, value, all[i]);
        bool isSplit = false;
        for (std::size_t dim = 0; dim < array.dims.size(); ++dim)
            isSplit = isSplit || (array.isCopy(dim) && !array.dims[dim].axes.empty());
        if (!isSplit || array.mesh != 0 || !array.partial.empty())
            continue;
        const Framed filledArray = filled(walk, array, true);
        all.push_back(standingOf(filledArray.global, filledArray.shape, filledArray.dims, filledArray.local, filledArray.mesh));
    }
    return all;
}

Framed framed(const Site& site, std::size_t operand)
{
    return framed(site.walk, site.value(operand), *site.operands[operand]);
}

bool ownsUnit(const GlobalValues& globals, GlobalId global, const std::vector<StandingDim>& dims, std::size_t dim)
{
    const Shape& own = globals[global].shape;
    return own.size() == dims.size() && own[dim] == 1 && dims[dim].from < 0
        && std::none_of(dims.begin(), dims.end(), [&](const StandingDim& along) { return along.from == static_cast<int>(dim); });
}

void adopt(Framed& array, std::size_t dim, const Framed& other, std::size_t otherDim)
{
    if (!array.isCopy(dim) || array.local[dim] != other.local[otherDim])
        return;
    array.shape[dim] = other.shape[otherDim];
    array.dims[dim].axes = other.dims[otherDim].axes;
    array.dims[dim].window = other.dims[otherDim].window;
}

bool sameAlong(const Framed& a, std::size_t dimA, const Framed& b, std::size_t dimB)
{
    const StandingDim& x = a.dims[dimA];
    const StandingDim& y = b.dims[dimB];
    return a.shape[dimA] == b.shape[dimB] && a.local[dimA] == b.local[dimB] && x.axes == y.axes
        && (x.axes.empty() || a.mesh == b.mesh) && (x.window == y.window || (x.window && y.window && *x.window == *y.window));
}

Standing standingOf(
    GlobalId global, const Shape& shape, const std::vector<StandingDim>& dims, const Shape& local, std::int32_t mesh)
{
    Standing standing;
    standing.global = global;
    standing.mesh = mesh;
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        StandingDim along = dims[dim];
        const bool isUnit = shape[dim] == 1 && along.axes.empty() && !along.window && local[dim] == 1;
        along.from = isUnit ? -1 : static_cast<int>(dim);
        standing.dims.push_back(std::move(along));
    }
    return standing;
}

bool canBePartial(const Walk& walk, const Standing& standing, ReduceKind kind)
{
    return standing.isWhole() && (isIdempotent(kind) || (standing.isUniform() && walk.globals.isIdentity(standing.global, kind)));
}

bool standsAs(const Walk& walk, ValueId value, const Standing& standing, const Standing& wanted, const TensorSharding& layout)
{
    if (standing.global != wanted.global || standing.dims.size() != wanted.dims.size()
        || layout.dims.size() != wanted.dims.size())
        return false;
    const AxisRefs partial = canonicalSet(layout.unreduced);
    AxisRefs places;
    for (std::size_t dim = 0; dim < wanted.dims.size(); ++dim) {
        const StandingDim& along = standing.dims[dim];
        if (along.from != wanted.dims[dim].from)
            return false;
        if (along.from < 0)
            continue;
        const AxisRefs axes = canonical(layout.dims[dim].axes);
        places.insert(places.end(), axes.begin(), axes.end());
        const std::int64_t size = walk.globals[standing.global].shape[static_cast<std::size_t>(along.from)];
        if (along.axes != axes || along.window || walk.local(value)[dim] * shardCount(axes) != size
            || (!axes.empty() && standing.mesh != layout.mesh))
            return false;
    }
    if (standing.partial == partial)
        return partial.empty() || (standing.kind == layout.unreducedKind && standing.mesh == layout.mesh);
    return disjoint(partial, places) && canBePartial(walk, standing, layout.unreducedKind);
}

std::string indexingText(const IndexingDims& dims)
{
    return fmt::format("{} {} {} {} {} {}", dims.window, dims.collapsed, dims.operandBatch, dims.indicesBatch, dims.indexMap,
        dims.indexVectorDim);
}

namespace {

std::string keptText(const KeptAttributes& attributes)
{
    std::string text;
    for (const KeptAttribute& attribute : attributes)
        text += fmt::format("{}={} {} ({});", attribute.name, attribute.text, attribute.integers, keptText(attribute.entries));
    return text;
}

std::string blockText(const Walk& walk, BlockId id);

struct AttributesText {
    const Walk& walk;

    std::string operator()(const std::monostate&) const { return {}; }
    std::string operator()(const ConstantAttributes& a) const
    {
        return fmt::format("{} {}", typeText(a.type), walk.globals.scalar(a.type.dtype, a.data));
    }
    std::string operator()(const IotaAttributes& a) const { return fmt::format("{} {}", typeText(a.type), a.dim); }
    std::string operator()(const RandomBitsAttributes& a) const
    {
        return fmt::format("{} {}", typeText(a.type), a.partitionable);
    }
    std::string operator()(const ConvertAttributes& a) const { return dtypeName(a.dtype); }
    std::string operator()(const CompareAttributes& a) const
    {
        return fmt::format("{} {}", compareDirectionName(a.direction), a.isTotalOrder);
    }
    std::string operator()(const ReducePrecisionAttributes& a) const
    {
        return fmt::format("{} {}", a.exponentBits, a.mantissaBits);
    }
    std::string operator()(const BroadcastAttributes& a) const { return fmt::format("{} {}", a.shape, a.dims); }
    std::string operator()(const ReshapeAttributes& a) const { return fmt::format("{}", a.shape); }
    std::string operator()(const TransposeAttributes& a) const { return fmt::format("{}", a.permutation); }
    std::string operator()(const ReduceAttributes& a) const { return fmt::format("{} {}", reduceKindName(a.kind), a.dims); }
    std::string operator()(const DotAttributes& a) const
    {
        return fmt::format("{} {} {} {} {} {}", a.lhsBatch, a.rhsBatch, a.lhsContracting, a.rhsContracting,
            dtypeName(a.resultType), dtypeName(a.operandType));
    }
    std::string operator()(const SliceAttributes& a) const { return fmt::format("{} {} {}", a.starts, a.limits, a.strides); }
    std::string operator()(const PadAttributes& a) const { return fmt::format("{} {} {}", a.low, a.high, a.interior); }
    std::string operator()(const ConcatenateAttributes& a) const { return fmt::format("{}", a.dim); }
    std::string operator()(const ReverseAttributes& a) const { return fmt::format("{}", a.dims); }
    std::string operator()(const DynamicSliceAttributes& a) const { return fmt::format("{}", a.sizes); }
    std::string operator()(const GatherAttributes& a) const { return fmt::format("{} {}", indexingText(a.dims), a.sliceSizes); }
    std::string operator()(const ScatterAttributes& a) const
    {
        return fmt::format("{} {}", indexingText(a.dims), a.combiner ? reduceKindName(*a.combiner) : "put");
    }
    std::string operator()(const RepeatAttributes& a) const
    {
        return fmt::format("{} {} {} {}", a.count, a.carries, a.stacked, a.reversed);
    }
    std::string operator()(const WhileAttributes& a) const { return fmt::format("{}", a.carries); }
    std::string operator()(const OtherAttributes& a) const
    {
        return fmt::format("{} {} {}", a.name, keptText(a.attributes), a.captures);
    }
    // Of layouts and of communication: they compute nothing. There is no row for all: what a new type says may count.
    std::string operator()(const ConstraintAttributes&) const { return {}; }
    std::string operator()(const BarrierAttributes&) const { return {}; }
    std::string operator()(const ComputationAttributes&) const { return {}; }
    std::string operator()(const CollectiveAttributes&) const { return {}; }
    std::string operator()(const TransferAttributes&) const { return {}; }
};

std::string blockText(const Walk& walk, BlockId id)
{
    const Block& block = walk.function[id];
    std::map<ValueId, std::size_t> numbers;
    std::string text = "{";
    const auto define = [&](ValueId value) {
        numbers.emplace(value, numbers.size());
        text += typeText(walk.function[value].type) + " ";
    };
    const auto use = [&](ValueId value) {
        const auto found = numbers.find(value);
        text += found == numbers.end() ? "?" : fmt::format("%{} ", found->second);
    };
    std::for_each(block.arguments.begin(), block.arguments.end(), define);
    for (const OpId op : block.ops) {
        text += fmt::format("{} {} ", opName(walk.function[op]), attributesText(walk, walk.function[op]));
        std::for_each(walk.function[op].operands.begin(), walk.function[op].operands.end(), use);
        text += ":";
        std::for_each(walk.function[op].results.begin(), walk.function[op].results.end(), define);
    }
    text += "return ";
    std::for_each(block.results.begin(), block.results.end(), use);
    return text + "}";
}

} // namespace

std::string attributesText(const Walk& walk, const Op& op)
{
    std::string text = std::visit(AttributesText{walk}, op.attributes);
    for (const BlockId body : op.bodies)
        text += blockText(walk, body);
    return text;
}

std::string attributesTextWithout(const Walk& walk, const Op& op, const std::set<std::string_view>& left)
{
    Op rest = op;
    std::erase_if(
        rest.as<OtherAttributes>().attributes, [&](const KeptAttribute& attribute) { return left.contains(attribute.name); });
    return attributesText(walk, rest);
}

} // namespace meshwright
