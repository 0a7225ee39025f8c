// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/propagate/explicit_types.h"
#include "core/propagate/rule.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

using DimAxes = std::vector<AxisRefs>; ///< of each dimension

inline DimAxes axesOf(const TensorSharding& sharding)
{
    DimAxes axes;
    for (const DimSharding& dim : sharding.dims)
        axes.push_back(dim.axes);
    return axes;
}

inline TensorSharding shardingWith(DimAxes axes, std::int32_t mesh)
{
    TensorSharding sharding = TensorSharding::replicatedOf(axes.size());
    for (std::size_t dim = 0; dim < axes.size(); ++dim)
        sharding.dims[dim].axes = std::move(axes[dim]);
    sharding.mesh = mesh;
    return sharding;
}

inline bool overlapAny(const AxisRefs& a, const AxisRefs& b)
{
    return std::any_of(a.begin(), a.end(), [&](const AxisRef& one) {
        return std::any_of(b.begin(), b.end(), [&](const AxisRef& other) { return one == other || overlaps(one, other); });
    });
}

inline bool usesAny(const DimAxes& dims, const AxisRefs& axes)
{
    return std::any_of(dims.begin(), dims.end(), [&](const AxisRefs& dim) { return overlapAny(dim, axes); });
}

/// The first axis that splits two dimensions.
inline std::optional<AxisRef> duplicateIn(const DimAxes& dims)
{
    AxisRefs seen;
    for (const AxisRefs& dim : dims) {
        for (const AxisRef& axis : dim) {
            if (overlapAny(seen, {axis}))
                return axis;
            seen.push_back(axis);
        }
    }
    return std::nullopt;
}

inline bool divides(const DimAxes& dims, const Shape& shape)
{
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        if (shape[dim] % shardCount(dims[dim]) != 0)
            return false;
    }
    return true;
}

/// The rules, for one op.
class ExplicitRules {
public:
    explicit ExplicitRules(const ExplicitOp& op)
        : m_op(op)
    {
        for (const ExplicitSharding& sharding : op.operands) {
            if (sharding)
                m_mesh = sharding->mesh;
        }
        if (op.out)
            m_mesh = op.out->mesh;
    }

    ExplicitAnswer answer();

private:
    // --- answers

    void give(const TensorSharding& sharding);
    void fail(const char* id, std::string message, std::string fix);
    void give(DimAxes dims);
    std::string specOf(const TensorSharding& sharding) const;
    std::string specOf(const DimAxes& dims) const { return specOf(shardingWith(dims, m_mesh)); }

    std::string operandSpecs() const;
    DimAxes operandAxes(std::size_t operand) const;
    void choose(DimAxes result, std::vector<ExplicitSharding> operands, std::optional<TensorSharding> computed = {});

    // --- partial sums

    bool isLinear() const;
    std::string axisName(const AxisRef& axis) const;
    std::string axisNames(const AxisRefs& axes) const;
    const AxisRefs& unreducedOf(std::size_t operand) const;
    bool checkUnreducedOperands();
    bool checkUnreducedOut();
    std::string opText() const;

    // --- the rules

    void infer();
    void likeOperand(std::size_t operand);
    void broadcasting();
    void chooseOneForAll(std::size_t first, std::size_t count);
    void alike(std::size_t first, std::size_t count, const char* message);
    void select();
    void broadcastInDim();
    void transpose();
    void reduce();
    void reshape();
    std::vector<std::size_t> sameDims() const;
    void resized(const char* what, const std::vector<std::size_t>& dimOf);

    // --- contractions

    struct DotSides {
        DimAxes lhs;
        DimAxes rhs;
    };
    static DimAxes dotResult(const DotAttributes& dot, const DotSides& sides);
    static DimAxes picked(const DimAxes& dims, const std::vector<std::size_t>& which);

    /// As JAX prints the specs of some dimensions: `('x', None)`.
    std::string specsText(const DimAxes& dims) const { return specOf(dims).substr(1); }

    void dot();

    /// Whose sharding a shared dimension takes in a choice.
    enum class Side : std::uint8_t { Left, Right, Neither };
    static constexpr std::array kSides = {Side::Left, Side::Right, Side::Neither};
    static void agree(DotSides& sides, const std::vector<std::size_t>& left, const std::vector<std::size_t>& right, Side side);
    static void dropShared(
        DimAxes& from, const std::vector<std::size_t>& batch, const std::vector<std::size_t>& summed, const AxisRefs& taken);
    static AxisRefs ownAxes(const DimAxes& dims, const std::vector<std::size_t>& batch, const std::vector<std::size_t>& summed);
    void chooseForDot(const DotAttributes& dot, const DotSides& given);
    void chooseSums(const DotAttributes& dot, const DotSides& sides, bool untouched);
    void chooseOnce(
        DimAxes result, const std::vector<ExplicitSharding>& operands, const TensorSharding& computed, bool partial = false);
    void chooseWithoutDuplicates(const DimAxes& result);

    // --- indexing

    /// How the dimensions of a gather's or a scatter's arrays go together; `slices` is the gather's result or the updates.
    struct Indexing {
        std::vector<std::size_t> operandWindow; ///< dimensions of the operand that the windows have, in order
        std::vector<std::size_t> sliceBatch; ///< dimensions of `slices` that run along the indices', in order
        std::vector<std::size_t> indexDims; ///< the dimensions of the indices without that of the index vectors
    };
    static Indexing indexingOf(const IndexingDims& dims, std::size_t operandRank, std::size_t indicesRank, std::size_t sliceRank);
    static bool resolves(std::initializer_list<const AxisRefs*> axes);
    std::optional<DimAxes> gatherResult(const DimAxes& operand, const DimAxes& indices) const;
    void gather();
    std::optional<DimAxes> scatterResult(const DimAxes& operand, const DimAxes& indices, const DimAxes& updates) const;
    void scatter();

    // --- other ops

    void convolution();
    void unknown();
    void chooseByRule();
    void chooseByRule(const OpShardingRule& rule, bool sums);

    const ExplicitOp& m_op;
    std::int32_t m_mesh = 0;
    AxisRefs m_unreduced;
    ReduceKind m_unreducedKind = ReduceKind::Sum;
    ExplicitAnswer m_answer;
};

} // namespace meshwright
