// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/type.h"
#include "core/sharding/tensor_sharding.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
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
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Asinh,
    Acosh,
    Atanh,
    Cbrt,
    Expm1,
    Square,
    Floor,
    Ceil,
    RoundNearestEven,
    RoundNearestAway, ///< halves go away from zero
    IsFinite, ///< a truth value
    IsInf,
    IsPosInf,
    IsNegInf,
    Not,
    PopulationCount,
    CountLeadingZeros,
    Erf,
    Erfc,
    ErfInv,
    LogGamma, ///< of the absolute value of the gamma function
    Digamma, ///< its derivative
    Real,
    Imag,
    Conjugate,
    ReducePrecision, ///< rounded to fewer bits, halves to even
    Convert,
    BitcastConvert,
    // element-wise, two operands
    Add,
    Subtract,
    Multiply,
    Scale, ///< a product with a power of two that is undone behind a rounding (eight_bits.h): cotangents pass through it as they are
    Divide,
    Remainder,
    Maximum,
    Minimum,
    Power,
    Atan2,
    NextAfter, ///< the next number of the type towards the second operand
    Complex, ///< of the real and the imaginary part
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRightLogical,
    ShiftRightArithmetic,
    Compare,
    // element-wise, three operands, all of one shape
    Select, ///< predicate, on true, on false
    Clamp, ///< lower bound, value, upper bound
    // shape
    BroadcastInDim,
    Reshape,
    Transpose,
    // parts of arrays, put together and taken out; start indices are one scalar operand for each dimension
    Slice,
    Pad,
    Concatenate,
    Reverse,
    DynamicSlice,
    DynamicUpdateSlice,
    Gather,
    Scatter, ///< of one array: operand, indices, updates
    // contractions
    Reduce, ///< one operand; the initial value is the kind's identity
    DotGeneral,
    // layout
    ShardingConstraint, ///< the identity, whose result has the given sharding
    PropagationBarrier, ///< the identity, through which shardings go in the given direction only
    OptimizationBarrier, ///< the identity of each operand
    // control: ops with blocks. What a block uses of the outside is an operand and an argument of the block
    Repeat,
    While, ///< condition and body; operands: the carries, then what stays the same
    Case, ///< a block for each branch; operands: which one (or a truth value, for the first or the second), then what they use
    Computation, ///< sdy.manual_computation, sdy.named_computation: a block with the shardings of its operands and results
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
    // kept: their attributes are as the text has them
    Sort,
    VariadicReduce, ///< of several arrays together, or by a block that is more than one op
    VariadicScatter, ///< so too
    ReduceWindow,
    SelectAndScatter,
    Convolution,
    TopK,
    Cholesky,
    TriangularSolve,
    Fft,
    FftOfPairs, ///< of real and imaginary parts
    RngBitGenerator,
    Rng,
    BatchNormTraining,
    BatchNormInference,
    BatchNormGrad,
    Attention, ///< fused: see attention.h
    AttentionGrad,
    BitcastRegroup, ///< a bitcast to a type of another size
    OwnAllReduce, ///< collectives of a program's own, in its manual computations
    OwnAllGather,
    OwnReduceScatter,
    OwnAllToAll,
    OwnPermute,
    OwnBroadcast,
    CrossReplicaSum,
    PartitionId,
    ReplicaId,
    CustomCall,
    // everything else
    Other, ///< kept as it is: nothing is known of it but its types, its text and, by its name, its sharding rule
};

inline constexpr std::size_t kOpKindCount = static_cast<std::size_t>(OpKind::Other) + 1;

/// What kind of rule an op follows in most places.
enum class OpClass : std::uint8_t {
    Leaf,
    Unary,
    Binary,
    Ternary,
    Shaping,
    Parts, ///< Slice .. Scatter
    Contraction,
    Constraint, ///< ShardingConstraint, PropagationBarrier
    Barrier,
    Control,
    Collective,
    Transfer,
    Other ///< kept: the attributes are OtherAttributes
};

/// In which part of a training step an op works.
enum class Phase : std::uint8_t { Init, Forward, Backward, Update, Metrics };
const char* phaseName(Phase phase);

/// One value repeated, or the elements themselves. Never expanded by analysis.
struct ConstantData {
    /// A splat (floating values as double, everything else as integer; truth values 0 and 1), or a shared blob of the elements'
    /// bytes, row-major, in the machine's byte order. A splat of complex numbers is a blob of one element. No blob: the text left
    /// the elements out.
    std::variant<double, std::int64_t, std::shared_ptr<const std::string>> value;

    bool isSplat() const { return value.index() != 2; }
    bool isElided() const { return value.index() == 2 && std::get<2>(value) == nullptr; }
    friend bool operator==(const ConstantData&, const ConstantData&) = default;
};

struct ConstantAttributes {
    TensorType type;
    ConstantData data;
    friend bool operator==(const ConstantAttributes&, const ConstantAttributes&) = default;
};

/// The value that a reduction starts with, which changes nothing. Of max and min: an infinity, or the end of the numbers of a type that has none
/// (as JAX's lax.reduce_max starts). Sums and products alone have complex numbers.
ConstantAttributes reduceIdentity(ReduceKind kind, DType dtype);

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

/// A number among an op's attributes.
template <typename Attributes>
struct NumberAttribute {
    const char* name; ///< in the generic form of the text
    std::int64_t Attributes::*value;
    std::int64_t least;
};

/// Attributes that are numbers say so by `numbers()`, and the op's own form in the text by `kForm`. They are read and written by these, and
/// the kernel of an element-wise op gets them as further operands.
struct ReducePrecisionAttributes {
    std::int64_t exponentBits = 8;
    std::int64_t mantissaBits = 23;

    static constexpr std::string_view kForm = "format = e{}m{}";
    static constexpr auto numbers()
    {
        using Number = NumberAttribute<ReducePrecisionAttributes>;
        return std::array{Number{"exponent_bits", &ReducePrecisionAttributes::exponentBits, 1},
            Number{"mantissa_bits", &ReducePrecisionAttributes::mantissaBits, 0}};
    }
    friend bool operator==(const ReducePrecisionAttributes&, const ReducePrecisionAttributes&) = default;
};

enum class CompareDirection : std::uint8_t { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual };
const char* compareDirectionName(CompareDirection direction); ///< "EQ", "NE", "LT", "LE", "GT", "GE"

struct CompareAttributes {
    CompareDirection direction = CompareDirection::Equal;
    bool isTotalOrder = false; ///< of floating numbers: -NaN, -infinity .. -0, +0 .. infinity, NaN
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

/// Along each dimension the elements start, start + stride and so on, below limit.
struct SliceAttributes {
    Shape starts;
    Shape limits;
    Shape strides; ///< >= 1
    friend bool operator==(const SliceAttributes&, const SliceAttributes&) = default;
};

/// How many elements of operand 1, a scalar, come before, behind and between those of operand 0 along each dimension; before and
/// behind may be negative.
struct PadAttributes {
    Shape low;
    Shape high;
    Shape interior; ///< >= 0
    friend bool operator==(const PadAttributes&, const PadAttributes&) = default;
};

struct ConcatenateAttributes {
    std::size_t dim = 0;
    friend bool operator==(const ConcatenateAttributes&, const ConcatenateAttributes&) = default;
};

struct ReverseAttributes {
    std::vector<std::size_t> dims;
    friend bool operator==(const ReverseAttributes&, const ReverseAttributes&) = default;
};

struct DynamicSliceAttributes {
    Shape sizes;
    friend bool operator==(const DynamicSliceAttributes&, const DynamicSliceAttributes&) = default;
};

/// How slices of an array, one for each index vector, lie in another array: the result of Gather, the updates of Scatter.
/// Source: openxla/stablehlo, docs/spec.md (gather, scatter).
struct IndexingDims {
    std::vector<std::size_t>
        window; ///< dimensions of the slices' array that run along the operand; all others run along the indices
    std::vector<std::size_t> collapsed; ///< dimensions of the operand that the slices lack
    std::vector<std::size_t> operandBatch; ///< dimensions of the operand that go with ..
    std::vector<std::size_t> indicesBatch; ///< .. these of the indices
    std::vector<std::size_t> indexMap; ///< the dimension of the operand that each entry of an index vector counts along
    std::size_t indexVectorDim = 0; ///< of the indices; their rank: each index is a vector of its own
    friend bool operator==(const IndexingDims&, const IndexingDims&) = default;
};

struct GatherAttributes {
    IndexingDims dims;
    Shape sliceSizes;
    bool sorted = false;
    friend bool operator==(const GatherAttributes&, const GatherAttributes&) = default;
};

struct ScatterAttributes {
    IndexingDims dims;
    std::optional<ReduceKind> combiner; ///< none: an update takes the place of what was there
    bool sorted = false;
    bool unique = false;
    friend bool operator==(const ScatterAttributes&, const ScatterAttributes&) = default;
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

/// Where PropagationBarrier lets shardings through.
struct BarrierAttributes {
    bool forward = false; ///< from the operand to the result
    bool backward = false;
    friend bool operator==(const BarrierAttributes&, const BarrierAttributes&) = default;
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

/// While: the condition's and the body's arguments are the operands; the body yields the next carries, which are the results.
struct WhileAttributes {
    std::size_t carries = 0; ///< the first operands
    friend bool operator==(const WhileAttributes&, const WhileAttributes&) = default;
};

/// The body's arguments and results are pieces over the manual axes of the operands and results, which lie as the shardings say.
struct ComputationAttributes {
    std::string name; ///< of a named computation; empty: a manual one
    std::vector<TensorSharding> inShardings; ///< one for each operand; none: nothing is said (a named computation)
    std::vector<TensorSharding> outShardings; ///< likewise of the results
    std::vector<std::int32_t> manualAxes; ///< of the mesh of the shardings, ascending
    friend bool operator==(const ComputationAttributes&, const ComputationAttributes&) = default;
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

/// What a collective of a manual computation does with the devices' pieces, which are parts of no array that anything else knows of.
struct PieceExchange {
    std::size_t split = 0; ///< ReduceScatter, AllToAll: the dimension that is cut into one part for each member of a group
    std::size_t join
        = 0; ///< AllGather, AllToAll: the dimension along which the members' parts are put together, in the group's order
    std::vector<std::vector<std::int64_t>> groups; ///< mesh positions; none: the groups over the axes
    friend bool operator==(const PieceExchange&, const PieceExchange&) = default;
};

/// A collective over mesh axes. Devices that differ only along `axes` form a group.
struct CollectiveAttributes {
    AxisRefs axes; ///< all axes taking part, first most major
    std::vector<AxisRefs> perDim; ///< AllGather: removed from each dimension's minor end; AllSlice, ReduceScatter: appended there
    std::vector<AxisMove> moves; ///< AllToAll
    ReduceKind kind = ReduceKind::Sum; ///< AllReduce, ReduceScatter
    Shape resultShape; ///< CollectivePermute, Reshard, and with `pieces`: of one device's result
    std::vector<std::int64_t>
        sources; ///< CollectivePermute: the position that each mesh position receives from; -1: zeros, from none
    std::optional<PieceExchange> pieces; ///< of a manual computation; `perDim` and `moves` are empty then
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

/// An attribute as it stands in the text, with the integers and the entries in it, where it is made of such.
struct KeptAttribute {
    std::string name;
    std::string text; ///< `array<i64: 1, 2>`, `"a"`, `#stablehlo.gather<..>`; empty: the name says it all
    bool isProperty = false; ///< between <{ and }> in the generic form
    std::vector<std::int64_t> integers; ///< of an integer, a truth value, or lists and constants of these, row-major
    std::vector<KeptAttribute> entries; ///< of a dictionary, and of what stands in < and > of an attribute like #stablehlo.gather

    friend bool operator==(const KeptAttribute& a, const KeptAttribute& b) { return a.name == b.name && a.text == b.text; }
};
using KeptAttributes = std::vector<KeptAttribute>;

/// The attribute of this name, or none.
const KeptAttribute* findAttribute(const KeptAttributes& attributes, std::string_view name);

/// What a text says that Meshwright keeps for whoever reads it next, and does not use.
struct KeptText {
    KeptAttributes attributes;
    std::string location; ///< `loc("a.py":3:4)`
    friend bool operator==(const KeptText&, const KeptText&) = default;
};

/// Other: what the text says. Its blocks may compute anything; what they use of the outside are the last operands, which stand in
/// the text at no other place, and the last arguments of every block.
struct OtherAttributes {
    std::string name; ///< with its dialect: "stablehlo.sort"
    KeptAttributes attributes;
    std::vector<TensorType> results;
    std::size_t captures = 0; ///< how many operands are used by blocks only
    friend bool operator==(const OtherAttributes&, const OtherAttributes&) = default;
};

using OpAttributes = std::variant<std::monostate, ConstantAttributes, IotaAttributes, RandomBitsAttributes, ConvertAttributes,
    CompareAttributes, BroadcastAttributes, ReshapeAttributes, TransposeAttributes, ReduceAttributes, DotAttributes,
    ConstraintAttributes, RepeatAttributes, CollectiveAttributes, TransferAttributes, SliceAttributes, PadAttributes,
    ConcatenateAttributes, ReverseAttributes, DynamicSliceAttributes, GatherAttributes, ScatterAttributes, BarrierAttributes,
    WhileAttributes, ComputationAttributes, OtherAttributes, ReducePrecisionAttributes>;

/// Calls `visit` with each number of the attributes and its value, in the order of `numbers()`.
template <typename Attributes, typename Visit>
void forEachNumber(Attributes&& attributes, const Visit& visit)
{
    const auto visitAll = [&](auto& made) {
        if constexpr (requires { made.numbers(); }) {
            for (const auto& number : made.numbers())
                visit(number, made.*number.value);
        }
    };
    std::visit(visitAll, attributes);
}

/// Sums of these are the element types that an element-wise op takes.
enum ElementTypes : std::uint8_t { kNoType = 0, kFloats = 1, kIntegers = 2, kComplexes = 4, kTruths = 8, kAnyType = 15 };
constexpr ElementTypes operator|(ElementTypes a, ElementTypes b)
{
    return static_cast<ElementTypes>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

/// The element type of an element-wise op's result: that of its last operand, its real or complex one, truth values, or what attributes say.
enum class ElementResult : std::uint8_t { Same, Real, Complex, Truth, Named };

/// How long an element takes in a pass over memory.
enum class ElementCost : std::uint8_t { Simple, Division, Exponential, Function };

template <typename Attributes>
OpAttributes madeAttributes()
{
    return Attributes();
}

/// A row of the op table. By its class an op has its shape rule, its sharding rule and its place in passes over memory. Its derivative is a row
/// in core/autodiff/derivatives.cpp, its kernel one in core/kernels; without them nothing compiles.
struct OpInfo {
    OpKind kind;
    const char* text; ///< in the text, with its dialect: "stablehlo.dot_general"; without one: the text has another form for it
    OpClass opClass;
    OpAttributes (*attributes)(); ///< of this kind's type
    ElementTypes takes; ///< element-wise ops, as all below
    ElementResult makes;
    ElementCost cost;

    /// "dot_general"
    constexpr const char* name() const
    {
        const char* at = text;
        for (const char* c = text; *c != '\0'; ++c)
            at = *c == '.' ? c + 1 : at;
        return at;
    }
    constexpr bool hasDialect() const { return name() != text; }
};

template <typename Attributes = std::monostate>
constexpr OpInfo opRow(OpKind kind, const char* text, OpClass opClass, ElementTypes takes = kNoType,
    ElementResult makes = ElementResult::Same, ElementCost cost = ElementCost::Simple)
{
    return {kind, text, opClass, madeAttributes<Attributes>, takes, makes, cost};
}

inline constexpr std::array<OpInfo, kOpKindCount> kOpTable = {{
    opRow<ConstantAttributes>(OpKind::Constant, "stablehlo.constant", OpClass::Leaf),
    opRow<IotaAttributes>(OpKind::Iota, "stablehlo.iota", OpClass::Leaf),
    opRow<RandomBitsAttributes>(OpKind::RandomBits, "random_bits", OpClass::Leaf),
    opRow(OpKind::Negate, "stablehlo.negate", OpClass::Unary, kFloats | kIntegers | kComplexes),
    opRow(OpKind::Abs, "stablehlo.abs", OpClass::Unary, kFloats | kIntegers | kComplexes, ElementResult::Real),
    opRow(OpKind::Sign, "stablehlo.sign", OpClass::Unary, kFloats | kIntegers | kComplexes),
    opRow(OpKind::Exp, "stablehlo.exponential", OpClass::Unary, kFloats | kComplexes, ElementResult::Same,
        ElementCost::Exponential),
    opRow(OpKind::Log, "stablehlo.log", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Log1p, "stablehlo.log_plus_one", OpClass::Unary, kFloats | kComplexes, ElementResult::Same,
        ElementCost::Function),
    opRow(OpKind::Tanh, "stablehlo.tanh", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Exponential),
    opRow(OpKind::Logistic, "stablehlo.logistic", OpClass::Unary, kFloats | kComplexes, ElementResult::Same,
        ElementCost::Exponential),
    opRow(OpKind::Sqrt, "stablehlo.sqrt", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Division),
    opRow(OpKind::Rsqrt, "stablehlo.rsqrt", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Division),
    opRow(OpKind::Sine, "stablehlo.sine", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Cosine, "stablehlo.cosine", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Tan, "stablehlo.tan", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Asin, "chlo.asin", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Acos, "chlo.acos", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Atan, "chlo.atan", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Sinh, "chlo.sinh", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Cosh, "chlo.cosh", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Asinh, "chlo.asinh", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Acosh, "chlo.acosh", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Atanh, "chlo.atanh", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Cbrt, "stablehlo.cbrt", OpClass::Unary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Expm1, "stablehlo.exponential_minus_one", OpClass::Unary, kFloats | kComplexes, ElementResult::Same,
        ElementCost::Function),
    opRow(OpKind::Square, "chlo.square", OpClass::Unary, kFloats | kIntegers | kComplexes),
    opRow(OpKind::Floor, "stablehlo.floor", OpClass::Unary, kFloats),
    opRow(OpKind::Ceil, "stablehlo.ceil", OpClass::Unary, kFloats),
    opRow(OpKind::RoundNearestEven, "stablehlo.round_nearest_even", OpClass::Unary, kFloats),
    opRow(OpKind::RoundNearestAway, "stablehlo.round_nearest_afz", OpClass::Unary, kFloats),
    opRow(OpKind::IsFinite, "stablehlo.is_finite", OpClass::Unary, kFloats, ElementResult::Truth),
    opRow(OpKind::IsInf, "chlo.is_inf", OpClass::Unary, kFloats, ElementResult::Truth),
    opRow(OpKind::IsPosInf, "chlo.is_pos_inf", OpClass::Unary, kFloats, ElementResult::Truth),
    opRow(OpKind::IsNegInf, "chlo.is_neg_inf", OpClass::Unary, kFloats, ElementResult::Truth),
    opRow(OpKind::Not, "stablehlo.not", OpClass::Unary, kIntegers | kTruths),
    opRow(OpKind::PopulationCount, "stablehlo.popcnt", OpClass::Unary, kIntegers),
    opRow(OpKind::CountLeadingZeros, "stablehlo.count_leading_zeros", OpClass::Unary, kIntegers),
    opRow(OpKind::Erf, "chlo.erf", OpClass::Unary, kFloats, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Erfc, "chlo.erfc", OpClass::Unary, kFloats, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::ErfInv, "chlo.erf_inv", OpClass::Unary, kFloats, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::LogGamma, "chlo.lgamma", OpClass::Unary, kFloats, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Digamma, "chlo.digamma", OpClass::Unary, kFloats, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::Real, "stablehlo.real", OpClass::Unary, kFloats | kComplexes, ElementResult::Real),
    opRow(OpKind::Imag, "stablehlo.imag", OpClass::Unary, kFloats | kComplexes, ElementResult::Real),
    opRow(OpKind::Conjugate, "chlo.conj", OpClass::Unary, kFloats | kComplexes),
    opRow<ReducePrecisionAttributes>(OpKind::ReducePrecision, "stablehlo.reduce_precision", OpClass::Unary, kFloats),
    opRow<ConvertAttributes>(OpKind::Convert, "stablehlo.convert", OpClass::Unary, kAnyType, ElementResult::Named),
    opRow<ConvertAttributes>(OpKind::BitcastConvert, "stablehlo.bitcast_convert", OpClass::Unary, kAnyType, ElementResult::Named),
    opRow(OpKind::Add, "stablehlo.add", OpClass::Binary, kFloats | kIntegers | kComplexes),
    opRow(OpKind::Subtract, "stablehlo.subtract", OpClass::Binary, kFloats | kIntegers | kComplexes),
    opRow(OpKind::Multiply, "stablehlo.multiply", OpClass::Binary, kFloats | kIntegers | kComplexes),
    opRow(OpKind::Scale, "mw.scale", OpClass::Binary, kFloats),
    opRow(OpKind::Divide, "stablehlo.divide", OpClass::Binary, kFloats | kIntegers | kComplexes, ElementResult::Same,
        ElementCost::Division),
    opRow(OpKind::Remainder, "stablehlo.remainder", OpClass::Binary, kFloats | kIntegers, ElementResult::Same,
        ElementCost::Division),
    opRow(OpKind::Maximum, "stablehlo.maximum", OpClass::Binary, kFloats | kIntegers),
    opRow(OpKind::Minimum, "stablehlo.minimum", OpClass::Binary, kFloats | kIntegers),
    opRow(OpKind::Power, "stablehlo.power", OpClass::Binary, kFloats | kIntegers | kComplexes, ElementResult::Same,
        ElementCost::Function),
    opRow(OpKind::Atan2, "stablehlo.atan2", OpClass::Binary, kFloats | kComplexes, ElementResult::Same, ElementCost::Function),
    opRow(OpKind::NextAfter, "chlo.next_after", OpClass::Binary, kFloats),
    opRow(OpKind::Complex, "stablehlo.complex", OpClass::Binary, kFloats, ElementResult::Complex),
    opRow(OpKind::And, "stablehlo.and", OpClass::Binary, kIntegers | kTruths),
    opRow(OpKind::Or, "stablehlo.or", OpClass::Binary, kIntegers | kTruths),
    opRow(OpKind::Xor, "stablehlo.xor", OpClass::Binary, kIntegers | kTruths),
    opRow(OpKind::ShiftLeft, "stablehlo.shift_left", OpClass::Binary, kIntegers),
    opRow(OpKind::ShiftRightLogical, "stablehlo.shift_right_logical", OpClass::Binary, kIntegers),
    opRow(OpKind::ShiftRightArithmetic, "stablehlo.shift_right_arithmetic", OpClass::Binary, kIntegers),
    opRow<CompareAttributes>(OpKind::Compare, "stablehlo.compare", OpClass::Binary, kAnyType, ElementResult::Truth),
    opRow(OpKind::Select, "stablehlo.select", OpClass::Ternary, kAnyType),
    opRow(OpKind::Clamp, "stablehlo.clamp", OpClass::Ternary, kFloats | kIntegers),
    opRow<BroadcastAttributes>(OpKind::BroadcastInDim, "stablehlo.broadcast_in_dim", OpClass::Shaping),
    opRow<ReshapeAttributes>(OpKind::Reshape, "stablehlo.reshape", OpClass::Shaping),
    opRow<TransposeAttributes>(OpKind::Transpose, "stablehlo.transpose", OpClass::Shaping),
    opRow<SliceAttributes>(OpKind::Slice, "stablehlo.slice", OpClass::Parts),
    opRow<PadAttributes>(OpKind::Pad, "stablehlo.pad", OpClass::Parts),
    opRow<ConcatenateAttributes>(OpKind::Concatenate, "stablehlo.concatenate", OpClass::Parts),
    opRow<ReverseAttributes>(OpKind::Reverse, "stablehlo.reverse", OpClass::Parts),
    opRow<DynamicSliceAttributes>(OpKind::DynamicSlice, "stablehlo.dynamic_slice", OpClass::Parts),
    opRow(OpKind::DynamicUpdateSlice, "stablehlo.dynamic_update_slice", OpClass::Parts),
    opRow<GatherAttributes>(OpKind::Gather, "stablehlo.gather", OpClass::Parts),
    opRow<ScatterAttributes>(OpKind::Scatter, "stablehlo.scatter", OpClass::Parts),
    opRow<ReduceAttributes>(OpKind::Reduce, "stablehlo.reduce", OpClass::Contraction),
    opRow<DotAttributes>(OpKind::DotGeneral, "stablehlo.dot_general", OpClass::Contraction),
    opRow<ConstraintAttributes>(OpKind::ShardingConstraint, "sdy.sharding_constraint", OpClass::Constraint),
    opRow<BarrierAttributes>(OpKind::PropagationBarrier, "sdy.propagation_barrier", OpClass::Constraint),
    opRow(OpKind::OptimizationBarrier, "stablehlo.optimization_barrier", OpClass::Barrier),
    opRow<RepeatAttributes>(OpKind::Repeat, "repeat", OpClass::Control),
    opRow<WhileAttributes>(OpKind::While, "while", OpClass::Control),
    opRow(OpKind::Case, "case", OpClass::Control),
    opRow<ComputationAttributes>(OpKind::Computation, "manual_computation", OpClass::Control),
    opRow<CollectiveAttributes>(OpKind::AllReduce, "sdy.all_reduce", OpClass::Collective),
    opRow<CollectiveAttributes>(OpKind::AllGather, "sdy.all_gather", OpClass::Collective),
    opRow<CollectiveAttributes>(OpKind::AllSlice, "sdy.all_slice", OpClass::Collective),
    opRow<CollectiveAttributes>(OpKind::ReduceScatter, "sdy.reduce_scatter", OpClass::Collective),
    opRow<CollectiveAttributes>(OpKind::AllToAll, "sdy.all_to_all", OpClass::Collective),
    opRow<CollectiveAttributes>(OpKind::CollectivePermute, "sdy.collective_permute", OpClass::Collective),
    opRow<CollectiveAttributes>(OpKind::Reshard, "sdy.reshard", OpClass::Collective),
    opRow<TransferAttributes>(OpKind::Send, "send", OpClass::Transfer),
    opRow<TransferAttributes>(OpKind::Receive, "recv", OpClass::Transfer),
    opRow<OtherAttributes>(OpKind::Sort, "sort", OpClass::Other),
    opRow<OtherAttributes>(OpKind::VariadicReduce, "variadic_reduce", OpClass::Other),
    opRow<OtherAttributes>(OpKind::VariadicScatter, "variadic_scatter", OpClass::Other),
    opRow<OtherAttributes>(OpKind::ReduceWindow, "reduce_window", OpClass::Other),
    opRow<OtherAttributes>(OpKind::SelectAndScatter, "select_and_scatter", OpClass::Other),
    opRow<OtherAttributes>(OpKind::Convolution, "convolution", OpClass::Other),
    opRow<OtherAttributes>(OpKind::TopK, "top_k", OpClass::Other),
    opRow<OtherAttributes>(OpKind::Cholesky, "cholesky", OpClass::Other),
    opRow<OtherAttributes>(OpKind::TriangularSolve, "triangular_solve", OpClass::Other),
    opRow<OtherAttributes>(OpKind::Fft, "fft", OpClass::Other),
    opRow<OtherAttributes>(OpKind::FftOfPairs, "fft_of_pairs", OpClass::Other),
    opRow<OtherAttributes>(OpKind::RngBitGenerator, "rng_bit_generator", OpClass::Other),
    opRow<OtherAttributes>(OpKind::Rng, "rng", OpClass::Other),
    opRow<OtherAttributes>(OpKind::BatchNormTraining, "batch_norm_training", OpClass::Other),
    opRow<OtherAttributes>(OpKind::BatchNormInference, "batch_norm_inference", OpClass::Other),
    opRow<OtherAttributes>(OpKind::BatchNormGrad, "batch_norm_grad", OpClass::Other),
    opRow<OtherAttributes>(OpKind::Attention, "attention", OpClass::Other),
    opRow<OtherAttributes>(OpKind::AttentionGrad, "attention_grad", OpClass::Other),
    opRow<OtherAttributes>(OpKind::BitcastRegroup, "bitcast_regroup", OpClass::Other),
    opRow<OtherAttributes>(OpKind::OwnAllReduce, "own_all_reduce", OpClass::Other),
    opRow<OtherAttributes>(OpKind::OwnAllGather, "own_all_gather", OpClass::Other),
    opRow<OtherAttributes>(OpKind::OwnReduceScatter, "own_reduce_scatter", OpClass::Other),
    opRow<OtherAttributes>(OpKind::OwnAllToAll, "own_all_to_all", OpClass::Other),
    opRow<OtherAttributes>(OpKind::OwnPermute, "own_permute", OpClass::Other),
    opRow<OtherAttributes>(OpKind::OwnBroadcast, "own_broadcast", OpClass::Other),
    opRow<OtherAttributes>(OpKind::CrossReplicaSum, "cross-replica-sum", OpClass::Other),
    opRow<OtherAttributes>(OpKind::PartitionId, "partition_id", OpClass::Other),
    opRow<OtherAttributes>(OpKind::ReplicaId, "replica_id", OpClass::Other),
    opRow<OtherAttributes>(OpKind::CustomCall, "custom_call", OpClass::Other),
    opRow<OtherAttributes>(OpKind::Other, "other", OpClass::Other),
}};

constexpr bool isOpTableInOrder()
{
    for (std::size_t i = 0; i < kOpKindCount; ++i) {
        if (kOpTable[i].kind != static_cast<OpKind>(i) || kOpTable[i].text == nullptr)
            return false;
    }
    return true;
}
static_assert(isOpTableInOrder(), "every OpKind has its row, in the order of the kinds");

constexpr const OpInfo& opInfo(OpKind kind)
{
    return kOpTable[static_cast<std::size_t>(kind)];
}
constexpr const char* opName(OpKind kind) ///< "dot_general"
{
    return opInfo(kind).name();
}
std::optional<OpKind> parseOpKind(std::string_view name);

/// True for ops whose result element i depends only on the operands' elements i.
constexpr bool isElementwise(OpKind kind)
{
    const OpClass opClass = opInfo(kind).opClass;
    return opClass == OpClass::Unary || opClass == OpClass::Binary || opClass == OpClass::Ternary
        || opClass == OpClass::Constraint;
}
constexpr bool isKept(OpKind kind) ///< its attributes are OtherAttributes
{
    return opInfo(kind).opClass == OpClass::Other;
}
constexpr bool isCollective(OpKind kind) ///< AllReduce .. Reshard
{
    return opInfo(kind).opClass == OpClass::Collective;
}

} // namespace meshwright
