// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/program/op.h"
#include "core/support/id.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

using ValueId = Id<struct ValueTag>;
using OpId = Id<struct OpTag>;
using BlockId = Id<struct BlockTag>;

/// What a value is to a training step; memory is accounted by it.
enum class Role : std::uint8_t { Activation, Parameter, Gradient, OptimizerState, Input, Metric };

/// A tensor: an argument of a block or a result of an op.
struct Value {
    TensorType type;
    std::string name; ///< "layers.0.w", "act.h1", "grad.layers.0.w"; empty for values nobody names
    Role role = Role::Activation;
    std::optional<TensorSharding> sharding; ///< before propagation: the user's; after it: the value's
    std::string
        annotation; ///< where the user wrote its sharding ("sharding.layers.0.w"); empty when no user did. Such arrays are committed
    BlockId block; ///< where it is defined
    OpId producer; ///< invalid for an argument
    std::size_t index = 0; ///< among the arguments or results
    std::shared_ptr<const KeptText> kept; ///< of an argument of a function
};

struct Op {
    OpKind kind = OpKind::Constant;
    Phase phase = Phase::Forward;
    std::vector<ValueId> operands;
    std::vector<ValueId> results;
    OpAttributes attributes;
    std::vector<BlockId> bodies; ///< Repeat, Computation: one; While: condition and body; Case: the branches; Other: any
    BlockId block;
    std::shared_ptr<const KeptText> kept; ///< often none

    /// The attributes of the type that this kind has. Precondition: it has them.
    template <typename T>
    const T& as() const
    {
        assert(std::holds_alternative<T>(attributes));
        return *std::get_if<T>(&attributes);
    }
    template <typename T>
    T& as()
    {
        assert(std::holds_alternative<T>(attributes));
        return *std::get_if<T>(&attributes);
    }
};

/// A list of ops in an order in which every operand is defined before its use.
struct Block {
    std::vector<ValueId> arguments;
    std::vector<OpId> ops;
    std::vector<ValueId> results;
};

/// A result that takes the place of an argument (an updated parameter): the argument's memory may be reused for it.
struct Donation {
    std::size_t argument = 0;
    std::size_t result = 0;
};

/// A function in static single assignment form. Values, ops and blocks are entries of its tables; block 0 is its body.
/// Entries of dead ops stay in the tables until `compact` (transform.h); only what a block lists is alive.
struct Function {
    std::string name;
    std::vector<Value> values;
    std::vector<Op> ops;
    std::vector<Block> blocks;
    std::vector<std::string> resultNames; ///< one for each result of the body, or empty
    std::vector<std::optional<TensorSharding>> resultShardings; ///< asked of each result; empty: none
    std::vector<std::vector<ValueId>> shardingGroups; ///< members always have the same sharding
    std::vector<Donation> donations;
    KeptAttributes kept; ///< attributes of the function that are not used
    std::vector<KeptAttributes> resultsKept; ///< of each result; empty: none

    const Block& body() const { return blocks.front(); }
    Block& body() { return blocks.front(); }
    const std::vector<ValueId>& arguments() const { return body().arguments; }
    const std::vector<ValueId>& results() const { return body().results; }

    const Value& operator[](ValueId id) const { return values[id.at()]; }
    Value& operator[](ValueId id) { return values[id.at()]; }
    const Op& operator[](OpId id) const { return ops[id.at()]; }
    Op& operator[](OpId id) { return ops[id.at()]; }
    const Block& operator[](BlockId id) const { return blocks[id.at()]; }
    Block& operator[](BlockId id) { return blocks[id.at()]; }

    /// The value of this name.
    std::optional<ValueId> findValue(std::string_view wanted) const;
};

/// The name of the op's kind, "dot_general"; of one that is kept as it is, its own: "stablehlo.sort".
std::string_view opName(const Op& op);

/// The name of a value, or what made it: "add(act.h1, ..)", "sine(from x)", "%arg0". What a loop stacks is called as in one of its turns.
std::string valueText(const Function& function, ValueId value);

struct NamedMesh {
    std::string name;
    Mesh mesh;
    bool isMaximal = false; ///< stands for its one device, on which a value lies as a whole
};

/// Functions of ops on whole tensors, and the meshes that their shardings speak of.
struct Program {
    std::vector<NamedMesh> meshes; ///< TensorSharding::mesh is an index into these
    std::vector<Function> functions;
    std::string moduleName; ///< often none
    KeptAttributes kept; ///< attributes of the module that are not used
    std::string aliases; ///< lines before the module that name attributes which kept text mentions
    std::string rest; ///< what else is in the module, as it stands: functions that kept ops call
    std::string trailer; ///< lines behind the module, which name locations and hold data

    const Function* find(std::string_view name) const;
    Function* find(std::string_view name);
    const Mesh& meshOf(const TensorSharding& sharding) const { return meshes[static_cast<std::size_t>(sharding.mesh)].mesh; }
};

} // namespace meshwright
