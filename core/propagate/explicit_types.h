// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/sharding/partition_spec.h"
#include "core/support/result.h"

#include <optional>
#include <span>
#include <vector>

namespace meshwright {

// JAX's explicit mode ("sharding in types"): the sharding is part of a value's type and follows, op by op and forward only, from the
// types of the operands. Where that would need a choice, nothing is guessed: it is a type error, and the user says which result is meant.
// All axes of all meshes count as Explicit. Source: jax-ml/jax, jax/_src/lax/lax.py, slicing.py, convolution.py (the `*_sharding_rule`
// functions), docs/notebooks/explicit-sharding.

/// The sharding in a value's type. None: a constant, which JAX puts wherever the other operands are.
using ExplicitSharding = std::optional<TensorSharding>;

/// What a spec says in a type: axes of size 1 stay in it, as JAX keeps them, or not (JAX's `jax_remove_size_one_mesh_axis_from_type`).
/// Problems: MW1101, MW1102, MW1103 as `shardShape`.
Result<TensorSharding> explicitSharding(const PartitionSpec& spec, std::size_t rank, const Mesh& mesh, bool dropSizeOne = false);

/// An op whose result's type is asked for. All shardings are on the one mesh.
struct ExplicitOp {
    OpKind kind = OpKind::Add;
    const OpAttributes& attributes;
    std::span<const TensorType> operandTypes;
    std::span<const TensorType> resultTypes;
    std::span<const ExplicitSharding> operands;
    ExplicitSharding out; ///< the user's `out_sharding`, which the ops that `takesOutSharding` obey
    const Mesh& mesh;
};

/// A result that the user may ask for, and what has to happen to the operands and the result for it.
struct ExplicitChoice {
    TensorSharding result;
    std::vector<ExplicitSharding> operands; ///< how the op takes each of its operands
    TensorSharding computed; ///< what it makes of them, partial sums included
};

/// What JAX says of an op.
struct ExplicitAnswer {
    std::vector<ExplicitSharding> results; ///< one for each; with a problem: empty
    std::optional<Problem> problem;
    std::vector<ExplicitChoice> choices; ///< with a problem: all that are legal, each result once or more (the ways differ)
};

/// True for the ops whose JAX functions have an `out_sharding`.
bool takesOutSharding(OpKind kind, const OpAttributes& attributes);

/// The types of an op's results, or JAX's type error with the results that would be legal.
///
/// Preconditions: the op is not one with blocks; as many operands as types, each sharding with the rank of its type.
/// Problems: MW1250 operands of an element-wise op, MW1251 operands that must be sharded alike, MW1252 contracting dimensions, MW1253
/// batch dimensions, MW1254 a reshape, MW1255 a dimension of a changed size, MW1256 an axis twice in the result, MW1257 no rule, or none that
/// is unambiguous, MW1258 partial sums.
ExplicitAnswer explicitTypes(const ExplicitOp& op);

/// A type error, and where it is.
struct ExplicitFinding {
    Problem problem;
    OpId op; ///< invalid for arguments
    std::vector<ExplicitSharding> operands; ///< the types of the op's operands; empty where they do not matter
    std::vector<ExplicitChoice> choices;
};

/// Puts the legal results of an error in order.
class ExplicitChooser {
public:
    virtual ~ExplicitChooser() = default;
    /// Sorts the choices, the best first, and may add to the finding's fix. Precondition: there are choices.
    virtual void settle(const Function& function, const Mesh& mesh, ExplicitFinding& finding) const = 0;
};

/// Types every value of a function, forward: writes Value::sharding, closed, with axes of size 1 where the user wrote them. Annotations of
/// arguments are their types (replicated without one); those of op results, and constraints on the only use of one, are `out_sharding`s;
/// constraints are reshards otherwise. Function::resultShardings become those of the returned values where the user asked nothing.
/// After an error typing goes on with what the op makes of its operands as they are, or with the first choice, so that all errors are
/// found.
///
/// Problems, as findings: those of `explicitTypes`; MW1259 what a loop carries or a branch gives changes its type, or a scanned dimension
/// is sharded; MW1203 an annotation that does not fit, MW1104 one that does not divide, MW1212 operands on different meshes.
std::vector<ExplicitFinding> checkExplicitTypes(
    Function& function, const std::vector<NamedMesh>& meshes, const ExplicitChooser* chooser = nullptr);

} // namespace meshwright
