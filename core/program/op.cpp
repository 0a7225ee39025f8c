// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/op.h"

#include "core/program/complex_splat.h"
#include "core/support/find.h"

#include <algorithm>
#include <array>
#include <limits>

namespace meshwright {

namespace {

/// The largest (or smallest) value of an integer type, as its 64 bits.
std::int64_t integerLimit(DType dtype, bool largest)
{
    if (dtype == DType::Pred)
        return largest ? 1 : 0;
    const bool isHalfByte = dtype == DType::S4 || dtype == DType::U4;
    const auto bits = isHalfByte ? 4U : static_cast<unsigned>(8 * byteSize(dtype));
    if (isUnsigned(dtype))
        return largest ? static_cast<std::int64_t>(~std::uint64_t{0} >> (64 - bits)) : 0;
    const auto top = static_cast<std::int64_t>((~std::uint64_t{0} >> 1) >> (64 - bits));
    return largest ? top : -top - 1;
}

/// The end of a floating type's numbers.
double floatLimit(DType dtype, bool largest)
{
    const double end
        = dtype == DType::F8E4M3FN ? 448.0 : std::numeric_limits<double>::infinity(); // the one type without infinities
    return largest ? end : -end;
}

} // namespace

ConstantAttributes reduceIdentity(ReduceKind kind, DType dtype)
{
    const TensorType type{dtype, {}};
    const std::int64_t start = kind == ReduceKind::Product ? 1 : 0;
    if (isComplex(dtype))
        return {type, complexSplat(dtype, static_cast<double>(start))};
    const bool isLimit = kind == ReduceKind::Max || kind == ReduceKind::Min;
    if (isFloating(dtype))
        return {type, {isLimit ? floatLimit(dtype, kind == ReduceKind::Min) : static_cast<double>(start)}};
    if (isLimit)
        return {type, {integerLimit(dtype, kind == ReduceKind::Min)}};
    if (kind == ReduceKind::And)
        return {type, {isUnsigned(dtype) || dtype == DType::Pred ? integerLimit(dtype, true) : std::int64_t{-1}}};
    return {type, {start}};
}

std::optional<OpKind> parseOpKind(std::string_view name)
{
    const auto found = std::find_if(kOpTable.begin(), kOpTable.end(), [&](const OpInfo& info) { return name == info.name(); });
    return found == kOpTable.end() ? std::nullopt : std::optional(found->kind);
}

const KeptAttribute* findAttribute(const KeptAttributes& attributes, std::string_view name)
{
    return findBy(attributes, name, &KeptAttribute::name);
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
