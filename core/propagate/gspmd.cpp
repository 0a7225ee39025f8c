// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/gspmd.h"

#include "core/program/other_op.h"
#include "core/program/transform.h"
#include "core/propagate/contraction_dims.h"
#include "core/propagate/rule.h"
#include "core/propagate/tile_rules.h"
#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace meshwright {

namespace {

constexpr const char* kAttribute = "mhlo.sharding";
constexpr int kAggressivenessLevels = 4;

/// How many tiles there are along the dimensions that `side` names of each.
std::int64_t tilesAlong(const std::optional<Tiling>& tiling, const std::vector<ContractionDim>& dims, int ContractionDim::*side)
{
    std::int64_t tiles = 1;
    for (const ContractionDim& dim : dims)
        tiles *= tiling ? tiling->tiles[static_cast<std::size_t>(dim.*side)] : 1;
    return tiles;
}

/// Of each dimension of the target the source's dimension; -1 where there is none.
using DimMap = std::vector<int>;

DimMap sameDims(std::size_t rank)
{
    DimMap map(rank);
    std::iota(map.begin(), map.end(), 0);
    return map;
}

DimMap inverse(const DimMap& map, std::size_t rank)
{
    DimMap inverted(rank, -1);
    for (std::size_t dim = 0; dim < map.size(); ++dim) {
        if (map[dim] >= 0)
            inverted[static_cast<std::size_t>(map[dim])] = static_cast<int>(dim);
    }
    return inverted;
}

/// The propagation over one function.
class TilePropagator {
public:
    TilePropagator(const Function& function, TileShardings annotated, bool spmd)
        : m_function(function)
        , m_spmd(spmd)
        , m_fixed(function.values.size())
    {
        m_result.shardings = std::move(annotated);
        m_result.shardings.resize(function.values.size());
        for (std::size_t i = 0; i < m_fixed.size(); ++i)
            m_fixed[i] = m_result.shardings[i].has_value();
        forEachOp(function, [&](OpId op) { m_ops.push_back(op); });
    }

    TilePropagation run()
    {
        for (m_level = 0; m_level < kAggressivenessLevels; ++m_level) {
            do {
                m_changed = false;
                for (const OpId op : m_ops)
                    visit(op, true);
                for (auto op = m_ops.rbegin(); op != m_ops.rend(); ++op)
                    visit(*op, false);
            } while (m_changed);
        }
        return std::move(m_result);
    }

private:
    const Shape& shapeOf(ValueId value) const { return m_function[value].type.shape; }
    const std::optional<TileSharding>& shardingOfValue(ValueId value) const { return m_result.shardings[value.at()]; }

    /// True when the value has a sharding that may go on: tiles, or copies everywhere.
    bool speaks(ValueId value) const
    {
        const auto& sharding = shardingOfValue(value);
        return sharding && (sharding->kind == TileKind::Replicated || tilingOf(*sharding).has_value());
    }

    /// How a value lies, where it is in tiles.
    std::optional<Tiling> tilingFor(ValueId value) const
    {
        auto tiling = speaks(value) ? tilingOf(*shardingOfValue(value)) : std::nullopt;
        return tiling && tiling->tiles.size() == shapeOf(value).size() ? std::move(tiling) : std::nullopt;
    }

    // --- improving

    /// Merging begins behind the first level, and only where XLA partitions one program for all devices.
    bool mayMerge() const { return m_spmd && m_level > 0; }

    void improve(ValueId value, TileSharding candidate, ValueId from, OpId through, bool forward)
    {
        if (m_fixed[value.at()] || !value.valid())
            return;
        auto& current = m_result.shardings[value.at()];
        bool merged = false;
        if (current) {
            const auto better = tilingOf(candidate);
            if (!better)
                return; // copies everywhere improve nothing
            if (const auto known = tilingOf(*current)) {
                const auto both = mayMerge() ? mergedTiling(*known, *better) : std::nullopt;
                merged = both && both->count() > known->count() && both->count() > better->count();
                if (both && both->count() > known->count())
                    candidate = shardingOf(*both);
                else if (better->count() <= known->count() || !refines(*better, *known))
                    return;
            } else if (current->kind != TileKind::Replicated) {
                return;
            }
        }
        current = candidate;
        m_changed = true;
        m_result.steps.push_back({value, from, through, forward, m_level, merged, std::move(candidate)});
    }

    /// A sharding goes from one value to another along the dimensions of a map. `lossy`: dimensions that go nowhere may be replicated;
    /// otherwise nothing goes when they are tiled.
    void carry(ValueId from, ValueId to, const DimMap& map, OpId through, bool forward, bool lossy = true)
    {
        if (!speaks(from) || !to.valid())
            return;
        const auto tiling = tilingOf(*shardingOfValue(from));
        if (!tiling)
            return improve(to, {}, from, through, forward);
        if (tiling->tiles.size() != shapeOf(from).size())
            return;
        for (std::size_t dim = 0; dim < tiling->tiles.size(); ++dim) {
            const bool goes = std::find(map.begin(), map.end(), static_cast<int>(dim)) != map.end();
            if (!goes && tiling->tiles[dim] > 1 && !lossy)
                return;
        }
        improve(to, shardingOf(carried(*tiling, map)), from, through, forward);
    }

    // --- ops

    /// Ops that only pass shardings through come first, broadcasts last.
    bool takesPart(const Op& op, bool forward) const
    {
        if (op.kind == OpKind::BroadcastInDim)
            return m_level >= (forward ? 3 : 2);
        if (m_level > 0)
            return true;
        switch (op.kind) {
        case OpKind::Transpose:
        case OpKind::Reshape:
        case OpKind::DynamicSlice:
        case OpKind::DynamicUpdateSlice:
        case OpKind::OptimizationBarrier:
        case OpKind::ShardingConstraint:
        case OpKind::PropagationBarrier:
        case OpKind::Repeat:
        case OpKind::While:
        case OpKind::Case:
        case OpKind::Computation:
            return true;
        case OpKind::Concatenate:
            return forward;
        default:
            return isElementwise(op) || isShardingCall(op);
        }
    }

    static bool isShardingCall(const Op& op)
    {
        return op.kind == OpKind::CustomCall && callTarget(op.as<OtherAttributes>()) == "Sharding";
    }

    void visit(OpId id, bool forward)
    {
        const Op& op = m_function[id];
        if (!takesPart(op, forward))
            return;
        if (!op.bodies.empty() && !isKept(op.kind))
            return visitBlocks(id, op, forward);
        if (op.results.empty())
            return;
        if (isElementwise(op) || isShardingCall(op))
            return elementwise(id, op, forward);
        switch (op.kind) {
        case OpKind::OptimizationBarrier:
            for (std::size_t i = 0; i < op.operands.size(); ++i)
                link(op.operands[i], op.results[i], sameDims(shapeOf(op.operands[i]).size()), id, forward);
            return;
        case OpKind::ShardingConstraint:
        case OpKind::PropagationBarrier:
        case OpKind::Slice:
        case OpKind::Pad:
            return link(op.operands[0], op.results[0], sameDims(shapeOf(op.operands[0]).size()), id, forward);
        case OpKind::Reverse:
            return reverse(id, op, forward);
        case OpKind::Concatenate:
            return concatenate(id, op, forward);
        case OpKind::BroadcastInDim:
            return broadcast(id, op, forward);
        case OpKind::Transpose: {
            const auto& order = op.as<TransposeAttributes>().permutation;
            return link(op.operands[0], op.results[0], DimMap(order.begin(), order.end()), id, forward);
        }
        case OpKind::Reshape:
            return reshape(id, op, forward);
        case OpKind::Reduce:
            return reduce(id, op, forward);
        case OpKind::DynamicSlice:
        case OpKind::DynamicUpdateSlice:
            return dynamic(id, op, forward);
        case OpKind::DotGeneral:
            return dot(id, op, forward);
        case OpKind::Convolution:
            return convolution(id, op, forward);
        case OpKind::ReduceWindow:
            return reduceWindow(id, op, forward);
        default:
            return byRule(id, op, forward);
        }
    }

    /// `map` leads from the operand to the result.
    void link(ValueId operand, ValueId result, const DimMap& map, OpId through, bool forward, bool lossy = true)
    {
        if (forward)
            carry(operand, result, map, through, true, lossy);
        else
            carry(result, operand, inverse(map, shapeOf(operand).size()), through, false, lossy);
    }

    void elementwise(OpId id, const Op& op, bool forward)
    {
        for (const ValueId result : op.results) {
            if (!forward) {
                for (const ValueId operand : op.operands) {
                    if (shapeOf(operand) == shapeOf(result))
                        carry(result, operand, sameDims(shapeOf(result).size()), id, false);
                }
                continue;
            }
            // Where nothing is merged the finest operand speaks.
            std::vector<ValueId> speakers;
            for (const ValueId operand : op.operands) {
                if (shapeOf(operand) == shapeOf(result) && speaks(operand))
                    speakers.push_back(operand);
            }
            const auto tiles = [&](ValueId value) {
                const auto tiling = tilingOf(*shardingOfValue(value));
                return tiling ? tiling->count() : 1;
            };
            std::stable_sort(speakers.begin(), speakers.end(), [&](ValueId a, ValueId b) { return tiles(a) > tiles(b); });
            if (!mayMerge() && speakers.size() > 1)
                speakers.resize(1);
            for (const ValueId operand : speakers)
                carry(operand, result, sameDims(shapeOf(result).size()), id, true);
        }
    }

    void broadcast(OpId id, const Op& op, bool forward)
    {
        const auto& dims = op.as<BroadcastAttributes>().dims;
        DimMap map(shapeOf(op.results[0]).size(), -1);
        for (std::size_t dim = 0; dim < dims.size(); ++dim) {
            if (shapeOf(op.operands[0])[dim] == shapeOf(op.results[0])[dims[dim]])
                map[dims[dim]] = static_cast<int>(dim);
        }
        const bool fromCopies = forward && speaks(op.operands[0]) && !tilingOf(*shardingOfValue(op.operands[0]));
        if (!fromCopies) // a copy on every device says nothing of what it is stretched to
            link(op.operands[0], op.results[0], map, id, forward, forward || m_spmd);
    }

    void reshape(OpId id, const Op& op, bool forward)
    {
        const ValueId from = forward ? op.operands[0] : op.results[0];
        const ValueId to = forward ? op.results[0] : op.operands[0];
        if (!speaks(from))
            return;
        const auto tiling = tilingOf(*shardingOfValue(from));
        if (!tiling)
            return improve(to, {}, from, id, forward);
        if (tiling->tiles.size() != shapeOf(from).size())
            return;
        if (const auto whole = reshapedTiling(*tiling, shapeOf(from), shapeOf(to)))
            return improve(to, shardingOf(*whole), from, id, forward);
        if (!m_spmd)
            return;
        // What of it passes: the tiles of one dimension after the other are given up, the most minor first.
        DimMap map = sameDims(tiling->tiles.size());
        for (std::size_t dim = map.size(); dim-- > 0;) {
            if (tiling->tiles[dim] == 1)
                continue;
            map[dim] = -1;
            const Tiling part = carried(*tiling, map);
            if (part.count() == 1)
                return;
            if (const auto passed = reshapedTiling(part, shapeOf(from), shapeOf(to)))
                return improve(to, shardingOf(*passed), from, id, forward);
        }
    }

    void reduce(OpId id, const Op& op, bool forward)
    {
        const auto& dims = op.as<ReduceAttributes>().dims;
        DimMap map;
        bool tiled = false;
        const auto tiling = speaks(op.operands[0]) ? tilingOf(*shardingOfValue(op.operands[0])) : std::nullopt;
        for (std::size_t dim = 0; dim < shapeOf(op.operands[0]).size(); ++dim) {
            if (!contains(dims, dim))
                map.push_back(static_cast<int>(dim));
            else
                tiled = tiled || (tiling && tiling->tiles[dim] > 1);
        }
        if (forward && tiled && !m_spmd)
            return improve(op.results[0], {}, op.operands[0], id, true);
        link(op.operands[0], op.results[0], map, id, forward);
    }

    /// Dimensions that are cut are not tiled.
    void dynamic(OpId id, const Op& op, bool forward)
    {
        const bool isUpdate = op.kind == OpKind::DynamicUpdateSlice;
        const auto cut = [&](ValueId part, ValueId whole) {
            DimMap map = sameDims(shapeOf(whole).size());
            for (std::size_t dim = 0; dim < map.size(); ++dim) {
                if (shapeOf(part)[dim] != shapeOf(whole)[dim])
                    map[dim] = -1;
            }
            return map;
        };
        if (!isUpdate)
            return link(op.operands[0], op.results[0], cut(op.results[0], op.operands[0]), id, forward, false);
        link(op.operands[0], op.results[0], sameDims(shapeOf(op.operands[0]).size()), id, forward);
        link(op.operands[1], op.results[0], cut(op.operands[1], op.results[0]), id, forward, false);
    }

    /// Tiles change places along the dimensions that are reversed.
    void reverse(OpId id, const Op& op, bool forward)
    {
        const ValueId from = forward ? op.operands[0] : op.results[0];
        const ValueId to = forward ? op.results[0] : op.operands[0];
        const auto tiling = tilingFor(from);
        if (!tiling)
            return carry(from, to, sameDims(shapeOf(from).size()), id, forward);
        if (m_spmd || !forward)
            improve(to, shardingOf(reversedTiling(*tiling, op.as<ReverseAttributes>().dims)), from, id, forward);
    }

    /// Where not all devices run one program, an operand of a result in tiles along its dimension lies where its part of the result does.
    void concatenate(OpId id, const Op& op, bool forward)
    {
        const std::size_t dim = op.as<ConcatenateAttributes>().dim;
        const auto tiling = tilingFor(op.results[0]);
        const bool inParts = !forward && !m_spmd && tiling && tiling->tiles[dim] > 1;
        std::int64_t begin = 0;
        for (const ValueId operand : op.operands) {
            const std::int64_t end = begin + shapeOf(operand)[dim];
            if (!inParts) {
                link(operand, op.results[0], sameDims(shapeOf(operand).size()), id, forward);
            } else if (tiling->copies == 1 && end > begin) {
                const std::int64_t tile = ceilDiv(shapeOf(op.results[0])[dim], tiling->tiles[dim]);
                const Tiling part = tilesBetween(*tiling, dim, begin / tile, ceilDiv(end, tile));
                if (part.count() > 1)
                    improve(operand, shardingOf(part), op.results[0], id, false);
            }
            begin = end;
        }
    }

    void dot(OpId id, const Op& op, bool forward)
    {
        contract(id, op, contractionDims(op.as<DotAttributes>(), shapeOf(op.operands[0]).size(), shapeOf(op.operands[1]).size()),
            forward);
    }

    void contract(OpId id, const Op& op, const ContractionDims& dims, bool forward)
    {
        const std::size_t resultRank = shapeOf(op.results[0]).size();
        DimMap fromLhs(resultRank, -1);
        DimMap fromRhs(resultRank, -1);
        DimMap lhsFromRhs(shapeOf(op.operands[0]).size(), -1);
        const auto set = [](DimMap& map, int at, int source) { map[static_cast<std::size_t>(at)] = source; };
        for (const ContractionDim& dim : dims.batch) {
            set(fromLhs, dim.result, dim.lhs);
            set(fromRhs, dim.result, dim.rhs);
            set(lhsFromRhs, dim.lhs, dim.rhs);
        }
        for (const ContractionDim& dim : dims.lhsFree)
            set(fromLhs, dim.result, dim.lhs);
        for (const ContractionDim& dim : dims.rhsFree)
            set(fromRhs, dim.result, dim.rhs);
        for (const ContractionDim& dim : dims.contracting)
            set(lhsFromRhs, dim.lhs, dim.rhs);
        // The larger operand speaks first.
        const bool rhsFirst = m_function[op.operands[1]].type.elements() > m_function[op.operands[0]].type.elements();
        for (int turn = 0; turn < 2; ++turn) {
            const bool isLhs = (turn == 0) != rhsFirst;
            link(op.operands[isLhs ? 0 : 1], op.results[0], isLhs ? fromLhs : fromRhs, id, forward);
        }
        if (forward || !mayMerge())
            return;
        // Each operand also hears the other's contracting and batch dimensions.
        if (hears(op.operands[1], lhsFromRhs))
            carry(op.operands[1], op.operands[0], lhsFromRhs, id, false);
        const DimMap rhsFromLhs = inverse(lhsFromRhs, shapeOf(op.operands[1]).size());
        if (hears(op.operands[0], rhsFromLhs))
            carry(op.operands[0], op.operands[1], rhsFromLhs, id, false);
    }

    /// True when something of the sharding is left along the map.
    bool hears(ValueId from, const DimMap& map) const
    {
        const auto tiling = speaks(from) ? tilingOf(*shardingOfValue(from)) : std::nullopt;
        return tiling && tiling->tiles.size() == shapeOf(from).size() && carried(*tiling, map).count() > 1;
    }

    // --- ops that are kept

    void reduceWindow(OpId id, const Op& op, bool forward)
    {
        for (std::size_t i = 0; i < op.results.size() && i < op.operands.size(); ++i) {
            const auto windows = windowDims(op.as<OtherAttributes>().attributes, shapeOf(op.operands[i]).size());
            const bool dilated = !windows || std::any_of(windows->begin(), windows->end(), [](const WindowDim& dim) {
                return dim.baseDilation != 1 || dim.windowDilation != 1;
            });
            if (!dilated)
                link(op.operands[i], op.results[i], sameDims(shapeOf(op.operands[i]).size()), id, forward);
        }
    }

    /// As a dot where the windows say no more, or nothing is tiled where they slide. Else a kernel that is small against the result leaves
    /// the input's tiles where they are, features must be whole, and behind a large kernel is a copy on every device.
    void convolution(OpId id, const Op& op, bool forward)
    {
        const auto& attributes = op.as<OtherAttributes>().attributes;
        const auto dims = convolutionDims(attributes);
        const Shape& kernel = shapeOf(op.operands[1]);
        const auto contraction = dims ? contractionDims(*dims, attributes, shapeOf(op.operands[0]), kernel) : std::nullopt;
        if (!contraction)
            return;
        const auto input = tilingFor(op.operands[0]);
        const bool slidesOverWhole = tilesAlong(input, contraction->windows, &ContractionDim::lhs) == 1
            && tilesAlong(tilingFor(op.operands[1]), contraction->windows, &ContractionDim::rhs) == 1 && dims->batchGroups == 1
            && dims->featureGroups == 1;
        if (contraction->windows.empty() || (forward && slidesOverWhole))
            return contract(id, op, *contraction, forward);
        if (!forward || !speaks(op.operands[0]) || (input && input->tiles[dims->input.inner] > 1))
            return;
        if (!input || !isKernelSmall(*dims, kernel, shapeOf(op.results[0])))
            return improve(op.results[0], {}, op.operands[0], id, true);
        DimMap map(input->tiles.size(), -1);
        map[dims->result.outer] = static_cast<int>(dims->input.outer);
        for (std::size_t i = 0; i < dims->input.spatial.size(); ++i)
            map[dims->result.spatial[i]] = static_cast<int>(dims->input.spatial[i]);
        carry(op.operands[0], op.results[0], map, id, true);
    }

    /// Along dimensions that have one factor in common that passes shardings through.
    void byRule(OpId id, const Op& op, bool forward)
    {
        const auto rule = shardingRule(m_function, id);
        if (!rule)
            return;
        for (std::size_t operand = 0; operand < op.operands.size(); ++operand) {
            for (std::size_t result = 0; result < op.results.size(); ++result) {
                DimMap map(shapeOf(op.results[result]).size(), -1);
                for (std::size_t dim = 0; dim < map.size(); ++dim) {
                    const auto& factors = rule->results[result][dim];
                    if (factors.size() != 1 || rule->factors[factors.front()].blocked
                        || rule->factors[factors.front()].kind == FactorKind::NeedReplication)
                        continue;
                    for (std::size_t from = 0; from < rule->operands[operand].size(); ++from) {
                        if (rule->operands[operand][from] == factors)
                            map[dim] = static_cast<int>(from);
                    }
                }
                const ValueId source = forward ? op.operands[operand] : op.results[result];
                const DimMap way = forward ? map : inverse(map, shapeOf(op.operands[operand]).size());
                if (hears(source, way))
                    carry(source, forward ? op.results[result] : op.operands[operand], way, id, forward);
            }
        }
    }

    // --- loops and branches

    /// Values that are one: each hears the other.
    void join(ValueId a, ValueId b, const DimMap& map)
    {
        carry(a, b, map, OpId(), true);
        carry(b, a, inverse(map, shapeOf(a).size()), OpId(), false);
    }

    void joinSame(ValueId a, ValueId b) { join(a, b, sameDims(shapeOf(a).size())); }

    void visitBlocks(OpId, const Op& op, bool)
    {
        switch (op.kind) {
        case OpKind::Repeat:
            return loop(op, op.as<RepeatAttributes>().carries, op.as<RepeatAttributes>().stacked);
        case OpKind::While:
            return loop(op, op.as<WhileAttributes>().carries, 0);
        case OpKind::Case:
            return branches(op);
        default:
            return; // what is manual says itself how it lies
        }
    }

    /// A stacked array without its dimension 0.
    DimMap sliceMap(ValueId slice) const
    {
        DimMap map = sameDims(shapeOf(slice).size());
        for (int& dim : map)
            ++dim;
        return map;
    }

    void loop(const Op& op, std::size_t carries, std::size_t stacked)
    {
        for (const BlockId body : op.bodies) {
            const auto& arguments = m_function[body].arguments;
            for (std::size_t i = 0; i < arguments.size() && i < op.operands.size(); ++i) {
                if (i >= carries && i < carries + stacked)
                    join(op.operands[i], arguments[i], sliceMap(arguments[i]));
                else
                    joinSame(op.operands[i], arguments[i]);
            }
        }
        const auto& yielded = m_function[op.bodies.back()].results;
        for (std::size_t i = 0; i < op.results.size() && i < yielded.size(); ++i) {
            if (i >= carries) {
                join(op.results[i], yielded[i], sliceMap(yielded[i]));
                continue;
            }
            joinSame(yielded[i], op.results[i]);
            joinSame(op.operands[i], op.results[i]);
        }
    }

    void branches(const Op& op)
    {
        for (const BlockId branch : op.bodies) {
            const auto& arguments = m_function[branch].arguments;
            const std::size_t first = op.operands.size() - arguments.size();
            for (std::size_t i = 0; i < arguments.size(); ++i)
                joinSame(op.operands[first + i], arguments[i]);
            for (std::size_t i = 0; i < op.results.size(); ++i)
                joinSame(m_function[branch].results[i], op.results[i]);
        }
    }

    const Function& m_function;
    bool m_spmd;
    std::vector<bool> m_fixed; ///< annotated by the user
    std::vector<OpId> m_ops;
    int m_level = 0;
    bool m_changed = false;
    TilePropagation m_result;
};

// --- text

std::string_view unquoted(std::string_view text)
{
    return text.size() >= 2 && text.front() == '"' && text.back() == '"' ? text.substr(1, text.size() - 2) : text;
}

const KeptAttribute* shardingIn(const KeptAttributes& attributes)
{
    return findAttribute(attributes, kAttribute);
}

/// The shardings that an attribute gives to some values.
void readInto(TileShardings& shardings, const KeptAttribute& attribute, const Function& function,
    const std::vector<ValueId>& values, Problems& problems)
{
    auto parsed = parseTileShardings(unquoted(attribute.text));
    if (!parsed) {
        for (Problem problem : parsed.error()) {
            problem.place.path = values.empty() ? std::string() : valueText(function, values.front());
            problems.push_back(std::move(problem));
        }
        return;
    }
    for (std::size_t i = 0; i < values.size() && i < parsed->size(); ++i) {
        const TileSharding sharding = normalized((*parsed)[i]);
        const std::int64_t devices = sharding.kind == TileKind::Tiled ? sharding.tiles.count() : 1;
        Problems wrong
            = sharding.kind == TileKind::Tiled ? tileProblems(sharding, function[values[i]].type.shape, devices) : Problems();
        for (Problem& problem : wrong)
            problem.place.path = valueText(function, values[i]);
        if (wrong.empty() && sharding.kind != TileKind::Unknown && !shardings[values[i].at()])
            shardings[values[i].at()] = sharding;
        append(problems, std::move(wrong));
    }
}

void setAttribute(KeptAttributes& attributes, const std::string& text)
{
    std::erase_if(attributes, [](const KeptAttribute& attribute) { return attribute.name == kAttribute; });
    if (text.empty())
        return;
    KeptAttribute attribute;
    attribute.name = kAttribute;
    attribute.text = fmt::format("\"{}\"", text);
    const auto place = std::find_if(attributes.begin(), attributes.end(),
        [](const KeptAttribute& other) { return !other.isProperty && other.name > kAttribute; });
    attributes.insert(place, std::move(attribute));
}

std::shared_ptr<const KeptText> withAttribute(const std::shared_ptr<const KeptText>& kept, const std::string& text)
{
    KeptText changed = kept == nullptr ? KeptText() : *kept;
    setAttribute(changed.attributes, text);
    return changed == KeptText() ? nullptr : std::make_shared<const KeptText>(std::move(changed));
}

} // namespace

Result<TileShardings> tileAnnotations(const Function& function, const std::vector<NamedMesh>& meshes)
{
    TileShardings shardings(function.values.size());
    Problems problems;
    if (function.blocks.empty())
        return shardings;
    for (const ValueId argument : function.arguments()) {
        const auto& kept = function[argument].kept;
        if (const KeptAttribute* attribute = kept == nullptr ? nullptr : shardingIn(kept->attributes))
            readInto(shardings, *attribute, function, {argument}, problems);
    }
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        const KeptAttribute* attribute = op.kept == nullptr ? nullptr : shardingIn(op.kept->attributes);
        if (attribute == nullptr && isKept(op.kind))
            attribute = shardingIn(op.as<OtherAttributes>().attributes);
        if (attribute != nullptr)
            readInto(shardings, *attribute, function, op.results, problems);
    });
    for (std::size_t i = 0; i < function.resultsKept.size(); ++i) {
        const KeptAttribute* attribute = shardingIn(function.resultsKept[i]);
        if (attribute != nullptr && function[function.results()[i]].producer.valid())
            readInto(shardings, *attribute, function, {function.results()[i]}, problems);
    }
    for (std::size_t i = 0; i < shardings.size(); ++i) {
        const auto& sharding = function.values[i].sharding;
        if (shardings[i] || !sharding || static_cast<std::size_t>(sharding->mesh) >= meshes.size())
            continue;
        const NamedMesh& named = meshes[static_cast<std::size_t>(sharding->mesh)];
        const bool isAnywhere = named.mesh.axes().empty() && !named.isMaximal; // a mesh without axes says nothing of devices
        shardings[i] = isAnywhere ? TileSharding{TileKind::Replicated} : normalized(toTiles(*sharding, named.mesh));
    }
    if (!problems.empty())
        return problems;
    return shardings;
}

TilePropagation propagateTiles(const Function& function, TileShardings annotated, bool spmd)
{
    return TilePropagator(function, std::move(annotated), spmd).run();
}

void writeTileShardings(Function& function, const TileShardings& shardings)
{
    if (function.blocks.empty())
        return;
    const auto textOf = [&](const std::vector<ValueId>& values) {
        const bool any
            = std::any_of(values.begin(), values.end(), [&](ValueId value) { return shardings[value.at()].has_value(); });
        if (!any)
            return std::string();
        std::vector<TileSharding> all;
        for (const ValueId value : values)
            all.push_back(shardings[value.at()].value_or(TileSharding()));
        return all.size() == 1 ? tileText(all.front()) : tileText(all);
    };
    for (const ValueId argument : function.arguments())
        function[argument].kept = withAttribute(function[argument].kept, textOf({argument}));
    forEachOp(function, [&](OpId id) {
        Op& op = function[id];
        if (isKept(op.kind))
            setAttribute(op.as<OtherAttributes>().attributes, textOf(op.results));
        else
            op.kept = withAttribute(op.kept, textOf(op.results));
    });
    for (Value& value : function.values)
        value.sharding.reset();
    function.resultShardings.clear();
}

} // namespace meshwright
