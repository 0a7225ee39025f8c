// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/autodiff/activity.h"
#include "core/autodiff/differentiate.h"
#include "core/autodiff/varying.h"
#include "core/program/builder.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace meshwright {

/// The mesh of a computation's shardings: an index into the program's meshes, 0 where it has none.
std::int32_t meshIndexOf(const ComputationAttributes& computation);

/// Where a block stands.
struct Surroundings {
    const std::vector<NamedMesh>& meshes;
    const ResidualChoice& residualOf;
    std::size_t ops = 0; ///< of the function; later ones are ours, of which `residualOf` knows nothing
    const Mesh* manual = nullptr; ///< of the manual computation around it; none: it is in none
    OpId loop = {}; ///< the Repeat whose body the block is, if it is one

    Residual residual(OpId op) const { return residualOf && op.valid() && op.at() < ops ? residualOf(op) : Residual::Kept; }
};

/// A seeded result of a block, and what its cotangent is multiplied with.
struct Seed {
    std::size_t result = 0;
    double scale = 1.0;
};

/// The backward run of one block, as a function: (residuals.., cotangents of the seeded results) -> cotangents of the wanted arguments.
class BlockReverse {
public:
    /// `forward` is given further results where a backward Repeat or computation needs values from inside a forward one.
    BlockReverse(Function& forward, const Activity& active, BlockId block, const std::vector<Seed>& seeds,
        const Surroundings& surroundings);

    /// The cotangent of a forward value; invalid when nothing reaches it.
    ValueId cotangent(ValueId value) const { return value.at() < m_cotangents.size() ? m_cotangents[value.at()] : ValueId{}; }
    bool isNameless(ValueId value) const { return m_backward[value].producer.valid() && m_backward[value].name.empty(); }
    Builder& builder() { return m_builder; }
    const std::vector<ValueId>& seedArguments() const { return m_seedArguments; }

    /// The finished function, and the forward values that its first arguments stand for.
    std::pair<Function, std::vector<ValueId>> finish(std::vector<ValueId> results);

private:
    void accumulate(ValueId value, ValueId cotangent);

    /// Once every use of a named value has been reversed, its cotangent is known by that name: "grad.act.layers.1".
    void nameCotangent(ValueId value);

    void reverse(OpId id);

    static bool isCheap(OpKind kind);

    /// True for what is made, element by element or by changes of shape, of values that have fewer elements together: they are the smaller residuals.
    /// Constants and iotas count as nothing. A mask of labels is made of the labels, a broadcast of what it spreads.
    bool isMadeOfLess(ValueId value) const;

    bool isCarriedOutAgain(ValueId value) const;

    /// Of a Repeat, what its iterations begin with: what it ends with is read by other ops.
    bool isOffloaded(ValueId value) const;

    /// The forward value moved to the host's memory, for the backward run to move back.
    ValueId broughtBack(ValueId value);

    /// The name of a forward value, where no value of the backward run has it yet.
    std::string nameOnce(ValueId value);

    ValueId primal(ValueId value);

    /// Makes a forward value though nothing here reads it: its cotangent waits for it.
    void makeAgain(ValueId value);

    ValueId zeros(ValueId forwardValue) { return m_builder.splat(m_forward[forwardValue].type, 0.0); }

    void reverseRepeat(OpId id);
    ValueId stackedResidual(OpId repeat, ValueId inner);
    void reverseCase(OpId id);
    ValueId branchResidual(OpId id, BlockId branch, ValueId inner);
    ValueId furtherResult(OpId id, TensorType type, Role role);
    void runAgain(OpId repeat);

    /// What a backward computation takes: values of this block, and how they lie.
    struct ComputationInput {
        ValueId value;
        std::optional<TensorSharding> sharding; ///< none: a named computation that says nothing
    };
    void reverseComputation(OpId id);
    void reverseCustom(OpId id);
    ComputationInput computationResidual(OpId computation, ValueId inner);
    std::vector<Seed> computationSeeds(const Op& op, const std::vector<AxisSet>& varying, const Mesh& mesh) const;
    ValueId singleElement(BlockId block, ValueId scalar);
    std::vector<ValueId> addManual(const ComputationAttributes& forward, const std::vector<ComputationInput>& inputs,
        const Function& body, const std::vector<std::size_t>& wanted);

    Function& m_forward;
    const Activity& m_active;
    BlockId m_block;
    const Surroundings& m_surroundings;
    Function m_backward;
    Builder m_builder;
    std::vector<ValueId> m_cotangents; ///< by forward value
    std::map<ValueId, ValueId> m_primals; ///< forward value -> backward value
    std::map<ValueId, ValueId> m_residuals; ///< forward value -> backward argument
    std::vector<ValueId> m_seedArguments;
    std::set<std::string> m_names;
};

} // namespace meshwright
