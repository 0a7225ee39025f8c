// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/propagate/rule.h"
#include "core/reshard/collective_cost.h"
#include "core/support/result.h"
#include "sim/cost/device_cost.h"
#include "sim/search/elimination.h"

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// For each dimension of an array the mesh axes that split it, one bit each; within a dimension in mesh order.
using GridLayout = std::vector<std::uint32_t>;

/// The parts of a program's step that its layouts are compared by.
enum class OpPart : std::uint8_t { Products, Memory, PartialSums, Reshards };
inline constexpr std::size_t kOpPartCount = 4;
const char* opPartName(OpPart part); ///< "products", "memory bandwidth", "reductions of partial sums", "reshards"
using OpParts = std::array<double, kOpPartCount>; ///< seconds

/// One function without any layout: constraints are gone and no value has a sharding, so that a search is free.
/// Problems: MW1782 the program is written for one mesh: it has a manual computation, collectives or stages.
Result<Function> withoutLayouts(const Function& function);

/// Calls `use` with the number of every axis in a set, ascending.
template <typename Use>
void forEachAxis(std::uint32_t axes, const Use& use)
{
    for (; axes != 0; axes &= axes - 1)
        use(static_cast<std::size_t>(std::countr_zero(axes)));
}

/// The layouts of a whole program on one mesh as a choice graph.
///
/// Variables are the arguments (which axes split which dimension), the carries of loops, and the ops that bring arrays together (products, gathers,
/// scatters, convolutions): every axis of the mesh splits one factor of the op's sharding rule (core/propagate) or none, so that a factor lies on no axis, on one or
/// on several. Partial sums are reduced where they are made, whole or scattered over a dimension of the result. All other ops follow their largest, latest operand, as
/// its layout goes through their rule; broadcasts and constants lie as their users want them. Edges are reshards by `planReshard`, as often as they run: the body
/// of a loop is there once, with its times counted `count` times.
///
/// Seconds: products by DeviceCost, the bytes of what is kept or read again by HBM bandwidth, collectives by the CollectiveCost; nothing is hidden behind
/// anything. Bytes: what is alive when the unsharded program has the most alive, arguments always: no plan's peak is less.
/// Only layouts that divide evenly are made.
class OpGraph {
public:
    /// Preconditions: `function` is from `withoutLayouts`; the mesh has at most 31 axes; both costs are of that mesh's machine (in seconds).
    /// Throws SearchStopped when `stop` asks before it is made.
    OpGraph(const Function& function, const Mesh& mesh, const DeviceCost& device, const CollectiveCost& network,
        MatmulPrecision unstated = MatmulPrecision::Highest, std::stop_token stop = {});

    const ChoiceGraph& graph() const { return m_graph; }

    struct Variable {
        std::string name; ///< "w1", "dot_general act.h"
        ValueId value; ///< the argument, or the op's first result
        bool isArgument = false;
        std::vector<std::string> texts; ///< of each choice: "P('x', None)", "P('x', None) x P(None, 'y')"
        std::vector<OpParts> parts; ///< of each choice
        std::vector<bool> splits; ///< whether any axis splits anything
        std::vector<bool> partial; ///< whether it makes partial sums
    };
    const std::vector<Variable>& variables() const { return m_variables; }

    /// Where the seconds of an assignment go.
    OpParts partsOf(const std::vector<std::uint32_t>& choices) const;

    /// The layout of an argument.
    std::string specOf(ValueId argument, const std::vector<std::uint32_t>& choices) const;

    /// The function with the shardings of an assignment on its values, and a constraint wherever an array changes its layout.
    /// `mesh`: index of the mesh in the program that it will stand in.
    Function annotated(const std::vector<std::uint32_t>& choices, std::int32_t mesh = 0) const;

private:
    /// Who decides how a value lies; no variable: it lies as its users want.
    struct Source {
        static constexpr std::size_t kFree = ~std::size_t{0};
        std::size_t variable = kFree;
        std::vector<GridLayout> layouts; ///< for each choice of the variable
        bool isFree() const { return variable == kFree; }
    };
    /// A layout that an op, or a block's result, needs of a value.
    struct Need {
        OpId op; ///< invalid: the result of `block`
        BlockId block;
        std::size_t index = 0; ///< of the operand or result
        ValueId value;
        std::size_t variable = 0;
        std::vector<GridLayout> layouts;
    };
    /// How an op splits its factors, and the layouts that follow.
    struct Split {
        std::vector<std::uint32_t> factors;
        std::vector<GridLayout> operands;
        std::vector<GridLayout> results; ///< partial sums whole
        GridLayout landing; ///< of the first result, once its partial sums are reduced
        std::uint32_t partial = 0;
    };
    using Reshards = std::map<std::pair<GridLayout, GridLayout>, double>;

    void addBlock(BlockId block, double runs);
    void addOp(OpId op, double runs);
    void addRepeat(OpId op, double runs);
    void addOpaque(OpId op, double runs);
    void addOwn(OpId op, const OpShardingRule& rule, double runs);
    void addFollower(OpId op, const OpShardingRule& rule, std::size_t leader, double runs);
    std::size_t addLayoutVariable(ValueId value, const Shape& shape, bool keepFirstWhole, bool isArgument);
    std::size_t addVariable(Variable variable, std::vector<ChoiceCost> costs);
    void need(Need wanted, double runs);
    void addParts(std::size_t variable, std::size_t choice, OpPart part, double seconds);
    void addDonations();
    void countBytes();

    std::vector<GridLayout> layoutsOf(const Shape& shape, bool keepFirstWhole) const;
    std::vector<Split> splitsOf(const OpShardingRule& rule, const Shape& result, bool reduces) const;
    Split splitBy(const OpShardingRule& rule, std::size_t leader, const GridLayout& layout, bool reduces) const;
    bool lays(const OpShardingRule& rule, Split& split) const;
    std::optional<GridLayout> laidOut(const DimFactors& dims, const OpShardingRule& rule, const Split& split) const;
    double reshardSeconds(const TensorType& type, const GridLayout& from, const GridLayout& to, std::uint32_t partial = 0) const;
    OpWork workOf(const Op& op, const Split& split) const;
    TensorType localType(const TensorType& type, const GridLayout& layout) const;
    std::int64_t pieces(std::uint32_t axes) const;
    std::int64_t localBytes(ValueId value, const GridLayout& layout) const;
    TensorSharding shardingOf(const GridLayout& layout, std::int32_t mesh) const;
    std::string textOf(const GridLayout& layout) const;
    bool isKept(ValueId value) const; ///< it is written to memory: it has several users, or one that no fused pass reaches

    const Function& m_function;
    const Mesh& m_mesh;
    const DeviceCost& m_device;
    const CollectiveCost& m_network;
    const MatmulPrecision m_unstated;
    const std::stop_token m_stop;
    ChoiceGraph m_graph;
    std::vector<Variable> m_variables;
    std::vector<Source> m_sources; ///< of each value
    std::vector<Need> m_needs;
    std::vector<std::pair<OpId, std::vector<GridLayout>>>
        m_landings; ///< own ops whose first result is scattered: its layout while partial sums are whole
    std::vector<ValueId> m_aliases; ///< of each value: the broadcast's operand that stands for it, or itself
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> m_edgeOf;
    std::vector<std::size_t> m_uses; ///< of each value
    std::vector<bool> m_fusedUse; ///< of each value: its only user is element-wise
    mutable std::map<std::pair<Shape, std::int64_t>, Reshards> m_reshards;
    mutable std::map<std::tuple<Shape, std::int64_t, std::uint32_t>, Reshards> m_reductions;
};

} // namespace meshwright::sim
