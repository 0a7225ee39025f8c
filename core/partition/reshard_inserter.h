// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/explicit_reshards.h"
#include "core/partition/factor_choice.h"
#include "core/partition/op_layout.h"
#include "core/program/builder.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// Copies a function with the reshards that its ops need. Part of `insertExplicitReshards`.
class ReshardInserter {
public:
    ReshardInserter(const Function& source, const std::vector<NamedMesh>& meshes, ReshardDepth depth)
        : m_source(source)
        , m_meshes(meshes)
        , m_full(depth == ReshardDepth::Full)
        , m_builder(m_target)
        , m_now(source.values.size())
    {
        m_target.name = source.name;
    }

    Function run();

private:
    using MaybeSharding = std::optional<TensorSharding>;
    static bool splitsNothing(const MaybeSharding& sharding);
    static AxisRefs unreducedOf(const MaybeSharding& sharding);

    const Mesh& meshOf(const TensorSharding& sharding) const { return m_meshes[static_cast<std::size_t>(sharding.mesh)].mesh; }

    /// Where nothing else is said, the result of a propagation barrier keeps the layout of its operand.
    const MaybeSharding& shardingOf(ValueId value) const;
    void copyNotes(ValueId from, ValueId to);

    /// Both say the same of where elements lie; no sharding is the replicated one.
    bool isSameLayout(const MaybeSharding& a, const MaybeSharding& b) const;

    // ---- ops that change layouts

    /// Who asks for another layout: an op that uses the value, or the one that makes it otherwise than it is wanted.
    struct Asker {
        std::string op;
        bool makes = false;
    };

    ValueId emit(OpKind kind, ValueId operand, CollectiveAttributes attributes, TensorSharding layout, const Asker& asker);
    Cause causeOf(OpKind kind, ValueId operand, const TensorSharding& to, const Asker& asker) const;

    /// The value's name, or what it was made from.
    std::string nameOf(ValueId value) const;

    /// Adds up the partial sums that the target does not leave partial.
    ValueId reduce(ValueId value, const AxisRefs& leftPartial, const std::string& consumer);

    /// Gives a value the unreduced axes that the target has and it has not: axes that replicate, and ends of dimensions.
    ValueId makeUnreduced(ValueId value, const TensorSharding& target, const std::string& consumer);
    TensorSharding replicated(std::size_t rank, std::int32_t mesh) const;

    /// The value as something outside of any rule wants it.
    ValueId bring(ValueId value, const MaybeSharding& target, const std::string& consumer);

    // ---- values on one device

    bool isOnOneDevice(const MaybeSharding& sharding) const;

    /// Where an op is computed, as far as it matters to values on one device: as its first result that has a sharding.
    MaybeSharding placeOf(const Op& op) const;

    /// The way to one device and back from it goes by the whole array on all devices. The value, on one device when the target is, and not
    /// on one when it is not.
    ValueId throughWhole(ValueId value, const MaybeSharding& target, const std::string& consumer);

    // ---- ops

    void insertInBlock(const Block& block);
    bool addsUnreduced(const Op& op) const;
    void insertAround(OpId id);

    /// The op on these operands. Its blocks, if any, compute on single elements or on what nothing is known of: they stay as they are.
    std::vector<ValueId> addOp(const Op& op, std::vector<ValueId> operands);
    std::vector<TensorType> typesOf(const std::vector<ValueId>& values) const;

    /// How an op is computed on shards, where that differs from how its tensors lie.
    struct Placed {
        std::vector<MaybeSharding> operands; ///< those that have to be brought into another layout
        std::vector<MaybeSharding> results; ///< the layouts that it makes, where they are not the wanted ones
        AxisRefs reduced; ///< every result is a partial sum over these, beyond its own unreduced axes
        std::int32_t mesh = 0;
    };

    ValueId finishResult(const Op& op, std::size_t index, ValueId result, const Placed& placed);

    /// The mesh of an op's tensors, the most frequent device order of those that are split; nothing when axes differ or none has a sharding.
    std::optional<std::int32_t> commonMesh(const std::vector<MaybeSharding>& shardings) const;
    Placed place(OpId id, const OpShardingRule& rule, const std::vector<ValueId>& operands);

    /// The tensor's layout under new axes for its factors; nothing when it lies so already.
    MaybeSharding relaid(const MaybeSharding& sharding, TensorFactorShardings& tensor, const DimFactors& dims,
        const OpShardingRule& rule, const AxesPerFactor& axes, std::int32_t mesh) const;

    void setReduced(const Op& op, const OpShardingRule& rule, const AxesPerFactor& axes, Placed& placed) const;

    // ---- the light version

    /// Of a concatenation even the light version makes pieces that fit, when it does not lie as one of its operands.
    bool isFullFor(const Op& op) const;

    /// Only a result that is declared partial has what is left of its sum reduced.
    void reduceDeclared(const Op& op, const OpShardingRule& rule, const ShardingProjection& projection, Placed& placed) const;

    /// A product whose operands agree keeps their layout when its result, not larger than the operand that it disagrees with, wants the axes of
    /// the sum there: moving the result is less than scattering the sum and gathering an operand.
    void preferOperandsOfDot(const OpShardingRule& rule, ShardingProjection& projection,
        const std::vector<std::int64_t>& elements, const std::vector<MaybeSharding>& shardings, Placed& placed) const;

    // ---- reshapes whose factors share no divisor with the axes

    static bool hasOverflow(const ShardingProjection& projection);
    static AxisRefs allAxes(const TensorFactorShardings& tensor);

    /// Gives every axis of the side with more pieces to the factors one after the other, as much of it as each can take, on both sides; what
    /// both can say then is taken.
    static AxesPerFactor redistributed(ShardingProjection projection, const OpShardingRule& rule);

    static void redistribute(
        TensorFactorShardings& tensor, const DimFactors& dims, const OpShardingRule& rule, const AxisRefs& axes);

    // ---- loops

    void insertInRepeat(const Op& op);

    /// Fills the builder's current block, whose arguments are there, with what `body` does; what it yields is brought to these layouts.
    void fillBody(const Block& body, const std::vector<MaybeSharding>& yielded, const std::string& consumer);
    void addBody(OpId target, BlockId body, const std::vector<MaybeSharding>& yielded, const std::string& consumer);

    /// Ends an op with blocks, whose results have the types that they had.
    void finishOp(const Op& op, OpId copy);
    void noteResults(const Op& op, OpId copy);
    std::vector<MaybeSharding> shardingsOf(const std::vector<ValueId>& values) const;
    void insertInWhile(const Op& op);

    /// Its operands come as its results are to lie.
    void insertInBarrier(const Op& op);
    void insertInCase(const Op& op);

    /// What goes into a computation lies as it says; inside, the manual axes split nothing.
    void insertInComputation(const Op& op);

    /// The layout of an array whose slices lie so: dimension 0 whole; and back.
    static MaybeSharding stacked(MaybeSharding slice);
    static MaybeSharding sliceOf(MaybeSharding whole);

    const Function& m_source;
    const std::vector<NamedMesh>& m_meshes;
    bool m_full;
    Function m_target;
    Builder m_builder;
    std::vector<ValueId> m_now; ///< by value of the source: what uses of it get from here on
};

} // namespace meshwright
