// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/partition.h"
#include "core/partition/reshard.h"
#include "core/partition/reshard_steps.h"
#include "core/program/body_collective.h"
#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/propagate/rule.h"

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
/// Drops axes from the minor end of every dimension that they do not divide.
TensorSharding evened(TensorSharding layout, const Shape& shape);
/// True when what the devices make of their pieces along a factor is to be combined: of the elements of an array that a factor splits, each
/// device takes part with its own.
bool isCombined(const Function& function, const Op& op, const OpShardingRule& rule, std::size_t factor);
/// The rule by which an op can be computed on pieces: what needs elements of a neighbour, or a sum that the op is not part of, is whole.
std::optional<OpShardingRule> computableRule(const Function& function, OpId id);

/// From a function with shardings to what one device runs. Part of `partition`.
class Partitioner {
public:
    Partitioner(const Function& source, const std::vector<NamedMesh>& meshes, const PartitionOptions& options)
        : m_source(source)
        , m_meshes(meshes)
        , m_options(options)
        , m_cost(options.cost != nullptr ? *options.cost : m_defaultCost)
        , m_planner(m_cost, options.style)
        , m_builder(m_device.function)
        , m_versions(source.values.size())
        , m_uses(useCounts(source))
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

    void checkShardings();
    void checkDivides(ValueId id);

    /// The layout that propagation gave a value.
    TensorSharding declared(ValueId value) const { return evened(layoutOnly(*m_source[value].sharding), globalShape(value)); }

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
    Problem whyUnreachable(ValueId value, const TensorSharding& wanted, const std::string& consumer, bool isOnMesh) const;
    ValueId remake(ValueId value, const TensorSharding& wanted, Phase phase);
    ValueId emitPlan(ValueId value, const Version from, const ReshardPlan& plan, Phase phase, const std::string& consumer,
        const std::string& reason);
    Cause causeOf(ValueId value, const TensorSharding& from, const TensorSharding& to, const std::string& consumer,
        const std::string& reason) const;
    std::string nameOf(ValueId value) const;
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
    bool emitIndexed(const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted,
        const std::vector<TensorSharding>& layouts, const AxisRefs& reduced);
    void partitionWhole(const Op& op);
    void emitOp(const Op& op, std::vector<ValueId> operands, const std::vector<TensorSharding>& layouts);
    std::vector<ValueId> emitWithBodies(
        const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& layouts);
    OpAttributes localAttributes(
        const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& layouts) const;

    // ---- sums that stay partial

    const Version* partialVersion(ValueId value) const;
    bool keepPartial(const Op& op);
    bool sinkReduction(const Op& op);
    bool emitPartialSum(const Op& op);

    // ---- loops

    bool isZero(ValueId value) const;
    bool onlyAccumulates(const Op& repeat, std::size_t carry) const;
    bool isConstantEverywhere(ValueId value) const;
    std::optional<std::size_t> linearOperand(const Op& op) const;
    void markSinks(const Op& repeat, std::size_t carry);
    static TensorSharding stackedLayout(const TensorSharding& slice);
    void partitionRepeat(const Op& op);

    const Function& m_source;
    const std::vector<NamedMesh>& m_meshes;
    const PartitionOptions& m_options;
    BytesThenStepsCost m_defaultCost;
    const CollectiveCost& m_cost;
    ReshardPlanner m_planner;
    DeviceFunction m_device;
    Builder m_builder;
    std::vector<std::vector<Version>> m_versions; ///< by value of the source
    std::vector<std::size_t> m_uses;
    std::vector<std::vector<const ShardingReason*>> m_reasons; ///< by value of the source, as they came; empty without a report
    std::vector<bool> m_accumulates; ///< by value of the source: carries that may stay partial
    std::vector<bool> m_sinks; ///< by value of the source: scaled or converted on the way to such a carry, before its sum is made
    /// The manual computations around the ops at work.
    struct Manual {
        std::int32_t mesh = -1; ///< none
        std::vector<std::int32_t> axes; ///< ascending
    };
    Manual m_manual;
    std::map<ValueId, ValueId> m_passed; ///< to the blocks of manual computations, by their arguments
    Problems m_problems;
};

} // namespace meshwright
