// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/op.h"

#include <algorithm>
#include <array>

namespace meshwright {

namespace {

constexpr std::array<OpInfo, kOpKindCount> kOps = {{
    {OpKind::Constant, "constant", OpClass::Leaf},
    {OpKind::Iota, "iota", OpClass::Leaf},
    {OpKind::RandomBits, "random_bits", OpClass::Leaf},
    {OpKind::Negate, "negate", OpClass::Unary},
    {OpKind::Abs, "abs", OpClass::Unary},
    {OpKind::Sign, "sign", OpClass::Unary},
    {OpKind::Exp, "exponential", OpClass::Unary},
    {OpKind::Log, "log", OpClass::Unary},
    {OpKind::Log1p, "log_plus_one", OpClass::Unary},
    {OpKind::Tanh, "tanh", OpClass::Unary},
    {OpKind::Logistic, "logistic", OpClass::Unary},
    {OpKind::Sqrt, "sqrt", OpClass::Unary},
    {OpKind::Rsqrt, "rsqrt", OpClass::Unary},
    {OpKind::Sine, "sine", OpClass::Unary},
    {OpKind::Cosine, "cosine", OpClass::Unary},
    {OpKind::Tan, "tan", OpClass::Unary},
    {OpKind::Cbrt, "cbrt", OpClass::Unary},
    {OpKind::Expm1, "exponential_minus_one", OpClass::Unary},
    {OpKind::Square, "square", OpClass::Unary},
    {OpKind::Floor, "floor", OpClass::Unary},
    {OpKind::Ceil, "ceil", OpClass::Unary},
    {OpKind::RoundNearestEven, "round_nearest_even", OpClass::Unary},
    {OpKind::RoundNearestAway, "round_nearest_afz", OpClass::Unary},
    {OpKind::IsFinite, "is_finite", OpClass::Unary},
    {OpKind::Not, "not", OpClass::Unary},
    {OpKind::Erf, "erf", OpClass::Unary},
    {OpKind::Erfc, "erfc", OpClass::Unary},
    {OpKind::ErfInv, "erf_inv", OpClass::Unary},
    {OpKind::Convert, "convert", OpClass::Unary},
    {OpKind::BitcastConvert, "bitcast_convert", OpClass::Unary},
    {OpKind::Add, "add", OpClass::Binary},
    {OpKind::Subtract, "subtract", OpClass::Binary},
    {OpKind::Multiply, "multiply", OpClass::Binary},
    {OpKind::Divide, "divide", OpClass::Binary},
    {OpKind::Remainder, "remainder", OpClass::Binary},
    {OpKind::Maximum, "maximum", OpClass::Binary},
    {OpKind::Minimum, "minimum", OpClass::Binary},
    {OpKind::Power, "power", OpClass::Binary},
    {OpKind::Atan2, "atan2", OpClass::Binary},
    {OpKind::And, "and", OpClass::Binary},
    {OpKind::Or, "or", OpClass::Binary},
    {OpKind::Xor, "xor", OpClass::Binary},
    {OpKind::ShiftLeft, "shift_left", OpClass::Binary},
    {OpKind::ShiftRightLogical, "shift_right_logical", OpClass::Binary},
    {OpKind::ShiftRightArithmetic, "shift_right_arithmetic", OpClass::Binary},
    {OpKind::Compare, "compare", OpClass::Binary},
    {OpKind::Select, "select", OpClass::Ternary},
    {OpKind::Clamp, "clamp", OpClass::Ternary},
    {OpKind::BroadcastInDim, "broadcast_in_dim", OpClass::Shaping},
    {OpKind::Reshape, "reshape", OpClass::Shaping},
    {OpKind::Transpose, "transpose", OpClass::Shaping},
    {OpKind::Slice, "slice", OpClass::Parts},
    {OpKind::Pad, "pad", OpClass::Parts},
    {OpKind::Concatenate, "concatenate", OpClass::Parts},
    {OpKind::Reverse, "reverse", OpClass::Parts},
    {OpKind::DynamicSlice, "dynamic_slice", OpClass::Parts},
    {OpKind::DynamicUpdateSlice, "dynamic_update_slice", OpClass::Parts},
    {OpKind::Gather, "gather", OpClass::Parts},
    {OpKind::Scatter, "scatter", OpClass::Parts},
    {OpKind::Reduce, "reduce", OpClass::Contraction},
    {OpKind::DotGeneral, "dot_general", OpClass::Contraction},
    {OpKind::ShardingConstraint, "sharding_constraint", OpClass::Constraint},
    {OpKind::PropagationBarrier, "propagation_barrier", OpClass::Constraint},
    {OpKind::OptimizationBarrier, "optimization_barrier", OpClass::Barrier},
    {OpKind::Repeat, "repeat", OpClass::Control},
    {OpKind::While, "while", OpClass::Control},
    {OpKind::Case, "case", OpClass::Control},
    {OpKind::Computation, "manual_computation", OpClass::Control},
    {OpKind::AllReduce, "all_reduce", OpClass::Collective},
    {OpKind::AllGather, "all_gather", OpClass::Collective},
    {OpKind::AllSlice, "all_slice", OpClass::Collective},
    {OpKind::ReduceScatter, "reduce_scatter", OpClass::Collective},
    {OpKind::AllToAll, "all_to_all", OpClass::Collective},
    {OpKind::CollectivePermute, "collective_permute", OpClass::Collective},
    {OpKind::Reshard, "reshard", OpClass::Collective},
    {OpKind::Send, "send", OpClass::Transfer},
    {OpKind::Receive, "recv", OpClass::Transfer},
    {OpKind::Other, "other", OpClass::Other},
}};

} // namespace

const OpInfo& opInfo(OpKind kind)
{
    const OpInfo& info = kOps[static_cast<std::size_t>(kind)];
    assert(info.kind == kind);
    return info;
}

const char* opName(OpKind kind)
{
    return opInfo(kind).name;
}

std::optional<OpKind> parseOpKind(std::string_view name)
{
    for (const OpInfo& info : kOps) {
        if (name == info.name)
            return info.kind;
    }
    return std::nullopt;
}

bool isElementwise(OpKind kind)
{
    const OpClass opClass = opInfo(kind).opClass;
    return opClass == OpClass::Unary || opClass == OpClass::Binary || opClass == OpClass::Ternary
        || opClass == OpClass::Constraint;
}

bool isCollective(OpKind kind)
{
    return opInfo(kind).opClass == OpClass::Collective;
}

const KeptAttribute* findAttribute(const KeptAttributes& attributes, std::string_view name)
{
    const auto found = std::find_if(attributes.begin(), attributes.end(), [&](const KeptAttribute& a) { return a.name == name; });
    return found == attributes.end() ? nullptr : &*found;
}

const char* phaseName(Phase phase)
{
    constexpr std::array kNames = {"init", "forward", "backward", "update", "metrics"};
    return kNames[static_cast<std::size_t>(phase)];
}

const char* compareDirectionName(CompareDirection direction)
{
    constexpr std::array kNames = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    return kNames[static_cast<std::size_t>(direction)];
}

} // namespace meshwright
