// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/prove/global_values.h"
#include "core/prove/standing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// A Repeat as it is; a While as one of which nothing is stacked.
inline RepeatAttributes loopOf(const Op& op)
{
    return op.kind == OpKind::Repeat ? op.as<RepeatAttributes>()
                                     : RepeatAttributes{1, op.as<WhileAttributes>().carries, 0, false};
}

/// The arguments of loops' blocks that are the same in each turn, with the loops' operands.
std::map<ValueId, ValueId> invariantsOf(const Function& function);

/// A function whose values are given their standings, op by op. The source program is walked as a function on one device, which numbers its
/// values; then the device function.
struct Walk {
    Walk(GlobalValues& values, const Function& walked, const std::vector<NamedMesh>& of, const std::vector<Shape>* wholeShapes)
        : globals(values)
        , function(walked)
        , meshes(of)
        , wholes(wholeShapes)
        , standings(walked.values.size())
        , invariants(invariantsOf(walked))
    {
    }

    bool isSource() const { return wholes == nullptr; }
    const Mesh& mesh(std::int32_t i = 0) const { return meshes[static_cast<std::size_t>(i)].mesh; }
    const Shape& local(ValueId value) const { return function[value].type.shape; }
    DType dtype(ValueId value) const { return function[value].type.dtype; }

    GlobalValues& globals;
    const Function& function;
    const std::vector<NamedMesh>& meshes;
    const std::vector<Shape>* wholes; ///< of the whole arrays, as the partitioner claims, by value; none: the source
    std::vector<Standings> standings; ///< by value; empty: none is known
    std::map<ValueId, ValueId> invariants; ///< see invariantsOf
    /// Of a pipeline's functions: the axis of the mesh along which their calls lie, of which their claims say nothing.
    std::optional<std::int32_t> calls = {};
    /// Whether `framed` takes copies for as many as the partitioner claims, and whether it has done so where pieces are fewer.
    mutable bool usesClaims = true;
    mutable bool hasUsedClaims = false;

    /// What `answer` says of the table of a permute, computed once: many permutes share a table, which is as long as the mesh has devices.
    template <typename Answer>
    const std::vector<std::int64_t>& ofTable(
        const std::vector<std::int64_t>& sources, std::string question, const Answer& answer) const
    {
        std::map<std::string, std::vector<std::int64_t>>& known = m_tables[sources];
        const auto found = known.find(question);
        return found != known.end() ? found->second : known.emplace(std::move(question), answer()).first->second;
    }

private:
    mutable std::map<std::vector<std::int64_t>, std::map<std::string, std::vector<std::int64_t>>> m_tables;
};

/// An op whose operands have been given one standing each.
struct Site {
    const Walk& walk;
    const Op& op;
    std::vector<const Standing*> operands; ///< of one mesh
    std::string refusal; ///< why the lemma does not give a standing

    ValueId value(std::size_t operand) const { return op.operands[operand]; }
    const Shape& local(std::size_t operand) const { return walk.local(op.operands[operand]); }
    const Shape& localResult(std::size_t result = 0) const { return walk.local(op.results[result]); }
    DType dtype(std::size_t result = 0) const { return walk.dtype(op.results[result]); }
    std::int32_t mesh() const { return *commonMesh(operands); }
    std::nullopt_t refuse(std::string why)
    {
        refusal = std::move(why);
        return std::nullopt;
    }
};

/// A standing with all dimensions of an array: copies are elements of a dimension that is as large as the partitioner claims, or whole.
struct Framed {
    GlobalId global = kNoGlobal;
    Shape shape; ///< of the whole array
    std::vector<StandingDim> dims; ///< `axes` have a meaning for copies too
    Shape local;
    AxisRefs partial;
    ReduceKind kind = ReduceKind::Sum;
    std::int32_t mesh = 0;
    std::string copies; ///< of an array of copies (`filled`): the text of what is copied

    bool isCopy(std::size_t dim) const { return dims[dim].from < 0; }
    bool isEven(std::size_t dim) const { return !dims[dim].window && local[dim] * shardCount(dims[dim].axes) == shape[dim]; }
    bool isWhole(std::size_t dim) const { return dims[dim].axes.empty() && isEven(dim); }
    std::string
    text() const; ///< which elements of which global value; the same for an array of copies and for the copies themselves
    /// Copies along a dimension are as many as the device has.
    void unclaim(std::size_t dim)
    {
        shape[dim] = local[dim];
        dims[dim].axes.clear();
    }
};

/// The description of an array with copies as a value of its own (`GlobalValues::number`).
std::string filledText(const Framed& array);

/// The same elements as those of a value that has all dimensions, so that it can be padded and joined with others.
/// Without copies of several elements the array itself, unless this `isNeeded`.
Framed filled(const Walk& walk, Framed array, bool isNeeded = false);

/// A dimension of an array of copies along which they are; else it is one of what is copied, or the value is no such array.
inline bool isAlongCopies(const GlobalValue& global, const StandingDim& along)
{
    return global.copied != kNoGlobal && along.from >= 0 && global.copiedFrom[static_cast<std::size_t>(along.from)] < 0;
}

/// The standings of a value, those of copies also as arrays of as many as the partitioner claims, where it claims that they are split.
Standings asArrays(const Walk& walk, ValueId value);

Framed framed(const Site& site, std::size_t operand);
Framed framed(const Walk& walk, ValueId value, const Standing& standing);

/// A local dimension of one element that is a dimension of the global value, though it is not said to be.
bool ownsUnit(const GlobalValues& globals, GlobalId global, const std::vector<StandingDim>& dims, std::size_t dim);

/// The piece numbers of copies may be chosen: as those of another array along a dimension.
void adopt(Framed& array, std::size_t dim, const Framed& other, std::size_t otherDim);
/// Same size, axes and windows.
bool sameAlong(const Framed& a, std::size_t dimA, const Framed& b, std::size_t dimB);

/// Axes as `GlobalValue::varies` has them.
inline std::uint64_t axisBits(const AxisRefs& axes)
{
    std::uint64_t bits = 0;
    for (const AxisRef& axis : axes)
        bits |= axis.size > 1 ? std::uint64_t{1} << std::min(axis.axis, 63) : 0;
    return bits;
}

/// True when devices that differ along some axes may have different values of this one.
inline bool variesAlong(const Walk& walk, GlobalId global, const AxisRefs& axes)
{
    return (walk.globals[global].varies & axisBits(axes)) != 0;
}

inline bool contains(const std::vector<std::size_t>& dims, std::size_t dim)
{
    return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

/// The value itself, laid out by these dimensions (axes, fill, windows are taken from them).
Standing standingOf(
    GlobalId global, const Shape& shape, const std::vector<StandingDim>& dims, const Shape& local, std::int32_t mesh);

/// True when a standing of a device's value says that it is `wanted` (of the source), laid out by `layout` without padding: each of its
/// dimensions that is a dimension of the global value is split by these axes; copies may be split by any.
bool standsAs(const Walk& walk, ValueId value, const Standing& standing, const Standing& wanted, const TensorSharding& layout);

/// True when any value of these elements may be taken as partial over any axes: the reduction of equal parts is the part.
bool canBePartial(const Walk& walk, const Standing& standing, ReduceKind kind);

/// The attributes of an op, but for those that only say shapes; and what its blocks compute.
std::string attributesText(const Walk& walk, const Op& op);

/// The dimensions of a gather or a scatter: equal for equal ones.
std::string indexingText(const IndexingDims& dims);

/// The same of a kept op, but for some of its attributes.
std::string attributesTextWithout(const Walk& walk, const Op& op, const std::set<std::string_view>& left);

} // namespace meshwright
