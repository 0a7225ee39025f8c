// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_ops.h"
#include "core/partition/op_layout.h"
#include "core/partition/partition.h"
#include "core/program/body_collective.h"
#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/propagate/rule.h"
#include "core/reshard/padding.h"
#include "core/reshard/reshard.h"
#include "core/reshard/reshard_steps.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// One layout in which a value exists on the devices.
struct Version {
    TensorSharding layout;
    ValueId local; ///< in the device function
    Phase phase = Phase::Forward;
    bool canonical = true; ///< as its op made it, or its reduced sum: to be used in every phase
};

bool sameLayout(const TensorSharding& a, const TensorSharding& b);
bool samePlacement(TensorSharding a, TensorSharding b);
/// True when what the devices make of their pieces along a factor is to be combined: of the elements of an array that a factor splits, each
/// device takes part with its own.
bool isCombined(const Function& function, const Op& op, const OpShardingRule& rule, std::size_t factor);
/// The rule by which an op can be computed on pieces: what needs a sum that the op is not part of is whole, and what needs elements of other
/// devices too, unless it `exchanges` them.
std::optional<OpShardingRule> computableRule(const Function& function, OpId id, bool exchanges);

/// Windows that slide along a dimension of the first operand, which lies along `resultDim` of the result: of a convolution or a
/// reduce_window. Nothing for other dimensions, and for windows that are not exchanged between devices.
struct SlidingWindow {
    std::size_t resultDim = 0;
    std::size_t place = 0; ///< among the dimensions that windows have attributes for
    std::int64_t span = 1; ///< elements from the first to the last one of a window
    std::int64_t stride = 1;
    std::int64_t low = 0; ///< padding before the first element
    std::size_t operands = 1; ///< that windows slide over
};
std::optional<SlidingWindow> slidingWindow(const Function& function, const Op& op, std::size_t dim);

/// From a function with shardings to what one device runs. Part of `partition`.
class Partitioner {
public:
    Partitioner(const Function& source, const std::vector<NamedMesh>& meshes, const PartitionOptions& options)
        : m_source(source)
        , m_meshes(meshes)
        , m_options(options)
        , m_cost(options.cost != nullptr ? *options.cost : m_defaultCost)
        , m_planner(m_cost, options.style)
        , m_pads(options.style == ReshardStyle::Cheapest && !options.localOnly)
        , m_builder(m_device.function)
        , m_versions(source.values.size())
        , m_uses(useCounts(source))
        , m_isCounted(source.values.size(), false)
        , m_accumulates(source.values.size(), false)
        , m_sinks(source.values.size(), false)
    {
        m_device.function.name = source.name;
        if (options.report != nullptr) {
            m_reasons.resize(source.values.size());
            for (const ShardingReason& reason : options.report->reasons)
                m_reasons[reason.value.at()].push_back(&reason);
        }
    }

    Result<DeviceFunction> run();

private:
    const Mesh& meshOf(const TensorSharding& layout) const { return m_meshes[static_cast<std::size_t>(layout.mesh)].mesh; }
    const Mesh& meshOfOp(const Op& op) const;
    const Shape& globalShape(ValueId value) const { return m_source[value].type.shape; }

    /// In manual computations, devices do what their author says.
    bool pads() const { return m_pads && m_manual.mesh < 0; }

    void checkShardings();
    void checkDivides(ValueId id);
    bool isOnlyConstrained(ValueId value) const;

    /// The layout that propagation gave a value; what leaves the function or a block, or comes in, is without padding.
    TensorSharding declared(ValueId value) const
    {
        const TensorSharding layout = layoutOnly(*m_source[value].sharding);
        return pads() ? withoutIdlePieces(layout, globalShape(value)) : evened(layout, globalShape(value));
    }
    TensorSharding declaredEven(ValueId value) const { return evened(layoutOnly(*m_source[value].sharding), globalShape(value)); }

    TensorSharding declaredResult(std::size_t result) const;

    bool isOverwrittenArgument(ValueId local, std::size_t result) const;
    Phase phaseOf(ValueId value) const;
    TensorType localType(ValueId value, const TensorSharding& layout) const;
    void describe(ValueId local, const TensorSharding& layout, const Shape& shape);
    void define(ValueId value, const TensorSharding& layout, ValueId local);
    void addArgument(ValueId value);

    // ---- bringing a value into the layout that something needs

    bool isLeaf(ValueId value) const;
    bool isBroadcastScalar(ValueId value) const;
    const Version* find(ValueId value, const TensorSharding& layout, Phase phase) const;
    bool isVisible(const Version& version, Phase phase) const;
    ValueId obtain(ValueId value, const TensorSharding& wanted, Phase phase, const std::string& consumer,
        const std::string& reason = {}, bool mayMove = false);
    ValueId madePartial(ValueId value, const TensorSharding& wanted, Phase phase, const std::string& consumer,
        const std::string& reason, bool mayMove);
    ValueId remake(ValueId value, const TensorSharding& wanted, Phase phase);
    bool isCounted(const Op& op) const;
    bool isWidened(ValueId value) const;
    ValueId makeAgain(ValueId value, const TensorSharding& wanted, Phase phase, const std::string& consumer,
        const std::string& reason, bool mayMove);

    /// A change of layout that may pad: parts, and the collectives of each.
    struct Route {
        std::vector<PaddedMove> moves;
        std::vector<const ReshardPlan*> plans;
        double cost = 0.0;
        bool communicates = false;
    };
    Route routeBetween(ValueId value, const TensorSharding& from, const TensorSharding& to);
    ValueId emitRoute(ValueId value, const Version from, const Route& route, Phase phase, const std::string& consumer,
        const std::string& reason);
    ValueId resized(ValueId local, const TensorSharding& layout, const Shape& whole);
    Cause causeOf(ValueId value, const TensorSharding& from, const TensorSharding& to, const std::string& consumer,
        const std::string& reason) const;
    std::string nameOf(ValueId value) const;
    bool isCopy(ValueId value) const;
    std::string gradientOf(ValueId value) const;
    std::string describeUnnamed(ValueId value) const;
    static AxisRefs movedAxes(const TensorSharding& from, const TensorSharding& to);
    std::string annotationOf(ValueId value, const AxisRefs& axes) const;

    // ---- ops

    void partitionBlock(const Block& block);
    void partitionConstraint(const Op& op, const char* consumer, const std::string& origin);

    void alias(const Op& op, ValueId local, const TensorSharding& layout) { alias(op.results.front(), op.phase, local, layout); }

    void alias(ValueId result, Phase phase, ValueId local, const TensorSharding& layout);
    void partitionCollective(const Op& op);
    void partitionBarrier(const Op& op);
    void pass(ValueId from, ValueId to, const Op& op);
    void partitionComputation(const Op& op);

    // ---- manual computations

    void partitionManual(const Op& op);
    bool hasAutomaticAxes(const Mesh& mesh) const;
    ValueId copied(ValueId local);
    void partitionBodyCollective(const Op& op);
    static std::vector<std::size_t> exchangedDims(const BodyCollective& collective);
    void makeUp(ValueId value);
    void partitionDeviceId(const Op& op);
    void partitionByRule(OpId id);
    Result<Done> emitOnPieces(const Op& op, std::vector<ValueId> operands, const std::vector<TensorSharding>& wanted,
        const std::vector<TensorSharding>& layouts, const AxisRefs& reduced);
    std::int64_t gatheredBytes(const Op& op) const;
    void warnOfWhole(const Op& op, const std::string& why);
    bool refusePart(const Op& op);
    std::optional<std::size_t> exchangeContext(const Op& op, const OpShardingRule& rule, OpLayout& layout);
    bool emitRing(const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted,
        const std::vector<TensorSharding>& layouts);
    bool emitGather(const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted,
        const std::vector<TensorSharding>& layouts, const AxisRefs& reduced);
    void scatterToPieces(
        const Op& op, std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted, const AxisRefs& reduced);
    void partitionWhole(const Op& op);

    // ---- ops along split dimensions of which devices need more than they have, or which end in padding

    DeviceOps deviceOps(const TensorSharding& layout);
    OpLayout layoutFor(OpId id, OpShardingRule& rule) const;
    bool isWorthExchanging(const Op& op, const OpShardingRule& rule, const OpLayout& layout, std::size_t factor) const;
    void maskPadding(const Op& op, std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted);
    bool emitExchange(const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted,
        const std::vector<TensorSharding>& layouts);
    ValueId exchangedSlice(const Op& op, ValueId operand, const TensorSharding& layout);
    ValueId exchangedPad(const Op& op, const std::vector<ValueId>& operands, const TensorSharding& layout);
    ValueId exchangedConcatenation(const Op& op, const std::vector<ValueId>& operands, const TensorSharding& layout);
    ValueId exchangedReversal(const Op& op, ValueId operand, const TensorSharding& layout);
    std::optional<Op> slidOp(const Op& op, std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted);
    ValueId slidWindow(const Op& op, ValueId operand, const TensorSharding& layout, std::size_t dim, const SlidingWindow& window,
        ValueId padding);
    ValueId splitDynamicSlice(
        const Op& op, const std::vector<ValueId>& operands, const TensorSharding& from, const TensorSharding& to);
    ValueId splitDynamicUpdate(const Op& op, const std::vector<ValueId>& operands, const TensorSharding& layout);
    std::vector<ValueId> startsInPiece(const Op& op, const std::vector<ValueId>& starts, const Shape& sizes, const Shape& piece,
        const TensorSharding& layout, const Shape& margins);

    Result<Done> emitOp(const Op& op, std::vector<ValueId> operands, const std::vector<TensorSharding>& layouts);
    std::vector<ValueId> emitWithBodies(
        const Op& op, const std::vector<ValueId>& operands, OpAttributes attributes, const std::vector<TensorType>& types);
    OpAttributes localAttributes(
        const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& layouts) const;

    // ---- sums that stay partial

    const Version* partialVersion(ValueId value) const;
    bool keepPartial(const Op& op);
    bool sinkReduction(const Op& op);
    bool emitPartialSum(const Op& op);
    ValueId summedAt(ValueId value) const;

    // ---- loops

    bool isZero(ValueId value) const;
    bool onlyAccumulates(const Op& repeat, std::size_t carry) const;
    bool isConstantEverywhere(ValueId value) const;
    std::optional<std::size_t> linearOperand(const Op& op) const;
    bool leadsToSum(ValueId term) const;
    void markWay(ValueId term);
    void markConversion(ValueId gradient);
    void markSums();
    void markSinks(const Op& repeat, std::size_t carry);
    static TensorSharding stackedLayout(const TensorSharding& slice);
    std::optional<TensorSharding> scatteredSlice(ValueId stack, ValueId slice) const;
    TensorSharding unreducedAs(ValueId outside, TensorSharding layout, bool isStacked) const;
    void partitionRepeat(const Op& op);
    void partitionWhile(const Op& op);
    void partitionCase(const Op& op);
    void passTo(const std::vector<BlockId>& bodies, std::size_t i, ValueId outside);
    void finish(const Op& op, OpId made, const std::vector<TensorSharding>& layouts);
    void partitionBody(BlockId body, OpId made, const std::vector<ValueId>& outside, const std::vector<TensorSharding>& yields);

    const Function& m_source;
    const std::vector<NamedMesh>& m_meshes;
    const PartitionOptions& m_options;
    BytesThenStepsCost m_defaultCost;
    const CollectiveCost& m_cost;
    ReshardPlanner m_planner;
    bool m_pads; ///< values on the way may lie unevenly, and devices exchange what ops need of each other's pieces
    DeviceFunction m_device;
    Builder m_builder;
    std::vector<std::vector<Version>> m_versions; ///< by value of the source
    std::vector<std::size_t> m_uses;
    std::vector<std::vector<const ShardingReason*>> m_reasons; ///< by value of the source, as they came; empty without a report
    std::vector<bool>
        m_isCounted; ///< by value of the source: lists of numbers that devices make themselves where they would exchange them
    std::vector<bool> m_accumulates; ///< by value of the source: carries that may stay partial
    std::vector<bool>
        m_sinks; ///< by value of the source: scaled or converted on the way to such a carry or to another sum, before its sum is made
    /// The manual computations around the ops at work.
    struct Manual {
        std::int32_t mesh = -1; ///< none
        std::vector<std::int32_t> axes; ///< ascending
    };
    Manual m_manual;
    std::map<ValueId, ValueId> m_passed; ///< to the blocks of manual computations, loops and branches, by their arguments
    std::vector<ValueId>
        m_becomes; ///< by value of the source: what has its elements next, among others perhaps; invalid: nothing
    Problems m_problems;
};

} // namespace meshwright
