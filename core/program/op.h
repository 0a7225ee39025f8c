// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/type.h"
#include "core/sharding/tensor_sharding.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace meshwright {

/// The operations, with StableHLO's names and meanings (repeat stands for a counted stablehlo.while).
enum class OpKind : std::uint8_t {
    // without operands, or made from a key
    Constant,
    Iota,
    RandomBits, ///< threefry-2x32 bits from a key u32[2]; each element depends only on the key and its index
    // element-wise, one operand
    Negate,
    Abs,
    Sign,
    Exp,
    Log,
    Log1p,
    Tanh,
    Logistic,
    Sqrt,
    Rsqrt,
    Sine,
    Cosine,
    Floor,
    Not,
    ErfInv,
    Convert,
    BitcastConvert,
    // element-wise, two operands
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Maximum,
    Minimum,
    Power,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRightLogical,
    Compare,
    Select, ///< element-wise, three operands: predicate, on true, on false; all of one shape
    // shape
    BroadcastInDim,
    Reshape,
    Transpose,
    // contractions
    Reduce, ///< one operand; the initial value is the kind's identity
    DotGeneral,
    // layout
    ShardingConstraint, ///< the identity, whose result has the given sharding
    // control
    Repeat,
    // collectives; only in programs on shards
    AllReduce,
    AllGather,
    AllSlice, ///< every device keeps its part of what it holds; moves nothing
    ReduceScatter,
    AllToAll,
    CollectivePermute,
    Reshard, ///< from any layout to any other over the same devices; lives only between the passes of core/partition
    // between pipeline stages
    Send,
    Receive,
};

inline constexpr std::size_t kOpKindCount = static_cast<std::size_t>(OpKind::Receive) + 1;

/// What kind of rule an op follows in most places.
enum class OpClass : std::uint8_t {
    Leaf,
    Unary,
    Binary,
    Ternary,
    Shaping,
    Contraction,
    Constraint,
    Control,
    Collective,
    Transfer
};

struct OpInfo {
    OpKind kind;
    const char* name; ///< "dot_general"
    OpClass opClass;
};

const OpInfo& opInfo(OpKind kind);
const char* opName(OpKind kind);
std::optional<OpKind> parseOpKind(std::string_view name);

/// True for ops whose result element i depends only on the operands' elements i.
bool isElementwise(OpKind kind);
bool isCollective(OpKind kind); ///< AllReduce .. Reshard

/// In which part of a training step an op works.
enum class Phase : std::uint8_t { Init, Forward, Backward, Update, Metrics };
const char* phaseName(Phase phase);

/// One value repeated, or the elements themselves. Never expanded by analysis.
struct ConstantData {
    /// A splat (floating values as double, everything else as integer; truth values 0 and 1), or a shared blob of the elements'
    /// bytes, row-major, in the machine's byte order.
    std::variant<double, std::int64_t, std::shared_ptr<const std::string>> value;

    bool isSplat() const { return value.index() != 2; }
    friend bool operator==(const ConstantData&, const ConstantData&) = default;
};

struct ConstantAttributes {
    TensorType type;
    ConstantData data;
    friend bool operator==(const ConstantAttributes&, const ConstantAttributes&) = default;
};

/// result[.., i, ..] = i along `dim`.
struct IotaAttributes {
    TensorType type;
    std::size_t dim = 0;
    friend bool operator==(const IotaAttributes&, const IotaAttributes&) = default;
};

/// JAX's random_bits of 32 bits: `partitionable` (counter = element index as 64 bits) or legacy (two halves of an iota).
struct RandomBitsAttributes {
    TensorType type; ///< dtype U32
    bool partitionable = true;
    friend bool operator==(const RandomBitsAttributes&, const RandomBitsAttributes&) = default;
};

/// Convert and BitcastConvert: the element type of the result.
struct ConvertAttributes {
    DType dtype = DType::F32;
    friend bool operator==(const ConvertAttributes&, const ConvertAttributes&) = default;
};

enum class CompareDirection : std::uint8_t { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual };
const char* compareDirectionName(CompareDirection direction); ///< "EQ", "NE", "LT", "LE", "GT", "GE"

struct CompareAttributes {
    CompareDirection direction = CompareDirection::Equal;
    friend bool operator==(const CompareAttributes&, const CompareAttributes&) = default;
};

/// Operand dimension i becomes result dimension `dims[i]` (strictly increasing is not required); a size 1 is stretched.
struct BroadcastAttributes {
    Shape shape;
    std::vector<std::size_t> dims;
    friend bool operator==(const BroadcastAttributes&, const BroadcastAttributes&) = default;
};

struct ReshapeAttributes {
    Shape shape;
    friend bool operator==(const ReshapeAttributes&, const ReshapeAttributes&) = default;
};

/// Result dimension i is operand dimension `permutation[i]`.
struct TransposeAttributes {
    std::vector<std::size_t> permutation;
    friend bool operator==(const TransposeAttributes&, const TransposeAttributes&) = default;
};

struct ReduceAttributes {
    ReduceKind kind = ReduceKind::Sum;
    std::vector<std::size_t> dims; ///< ascending; removed from the shape
    friend bool operator==(const ReduceAttributes&, const ReduceAttributes&) = default;
};

/// Result dimensions: batch, then the left operand's free ones, then the right one's.
struct DotAttributes {
    std::vector<std::size_t> lhsBatch;
    std::vector<std::size_t> rhsBatch;
    std::vector<std::size_t> lhsContracting;
    std::vector<std::size_t> rhsContracting;
    DType resultType = DType::F32; ///< also that of the accumulation
    DType operandType = DType::F32; ///< operands are rounded to this before they are multiplied (TPUs: bf16)
    friend bool operator==(const DotAttributes&, const DotAttributes&) = default;
};

struct ConstraintAttributes {
    TensorSharding sharding;
    std::string origin; ///< where the user wrote it, for explanations
    friend bool operator==(const ConstraintAttributes&, const ConstraintAttributes&) = default;
};

/// `count` times: the body's arguments are the carries, then one slice (along dimension 0) of each stacked operand, then the
/// operands that stay the same; it yields the next carries, then one slice of each stacked result.
/// Operands: initial carries, stacked operands, invariants. Results: final carries, stacked results.
struct RepeatAttributes {
    std::int64_t count = 1; ///< >= 1; dimension 0 of every stacked operand and result
    std::size_t carries = 0;
    std::size_t stacked = 0; ///< stacked operands
    bool reversed = false; ///< slices are taken and put from the last to the first
    friend bool operator==(const RepeatAttributes&, const RepeatAttributes&) = default;
};

/// Why a collective exists.
struct Cause {
    std::string value; ///< the value that moves: "grad.layers.1.w"
    std::string op; ///< the op that makes or needs it: "dot_general", "return"
    std::string reason; ///< one sentence for people
    std::string annotation; ///< the user's annotation behind it, if one is known: "sharding.x"
    friend bool operator==(const Cause&, const Cause&) = default;
};

/// Some axes that leave one dimension's minor end for that of another.
struct AxisMove {
    AxisRefs axes;
    std::size_t from = 0;
    std::size_t to = 0;
    friend bool operator==(const AxisMove&, const AxisMove&) = default;
};

/// A collective over mesh axes. Devices that differ only along `axes` form a group.
struct CollectiveAttributes {
    AxisRefs axes; ///< all axes taking part, first most major
    std::vector<AxisRefs> perDim; ///< AllGather: removed from each dimension's minor end; AllSlice, ReduceScatter: appended there
    std::vector<AxisMove> moves; ///< AllToAll
    ReduceKind kind = ReduceKind::Sum; ///< AllReduce, ReduceScatter
    Shape resultShape; ///< CollectivePermute, Reshard: of one device's result
    std::vector<std::int64_t> sources; ///< CollectivePermute: the position that each mesh position receives from
    Cause cause;
    friend bool operator==(const CollectiveAttributes&, const CollectiveAttributes&) = default;
};

/// Send and Receive: the other stage, and the channel that pairs them.
struct TransferAttributes {
    TensorType type; ///< Receive: of the value
    std::int32_t stage = 0;
    std::int32_t channel = 0;
    friend bool operator==(const TransferAttributes&, const TransferAttributes&) = default;
};

using OpAttributes = std::variant<std::monostate, ConstantAttributes, IotaAttributes, RandomBitsAttributes, ConvertAttributes,
    CompareAttributes, BroadcastAttributes, ReshapeAttributes, TransposeAttributes, ReduceAttributes, DotAttributes,
    ConstraintAttributes, RepeatAttributes, CollectiveAttributes, TransferAttributes>;

} // namespace meshwright
