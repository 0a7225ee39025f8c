// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/tile_arithmetic.h"
#include "core/kernels/tile_steps.h"

#include <utility>

namespace meshwright::MESHWRIGHT_TILE_SET {
namespace {

void notStep(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<Byte, Byte>(out, a, count, [](Byte x) { return static_cast<Byte>(x ^ 1U); });
}

/// How many bits a floating type has.
struct FloatBits {
    int exponent = 8;
    int mantissa = 23;

    constexpr int largest() const { return (1 << (exponent - 1)) - 1; }
    constexpr int smallest() const { return 1 - largest(); } ///< exponent of normal numbers
};

/// `x`, which has `own` bits, rounded to fewer, halves to even: what has too large an exponent then is infinite, what has too small a one zero.
inline double reducedPrecision(double x, FloatBits own, FloatBits kept)
{
    if (__builtin_isnan(x) && kept.mantissa == 0) // there is no such number then
        return __builtin_copysign(__builtin_inf(), x);
    if (!__builtin_isfinite(x) || x == 0.0)
        return x;
    if (kept.mantissa < own.mantissa) {
        const int exponent = __builtin_ilogb(x);
        const double step = __builtin_ldexp(1.0, (exponent > own.smallest() ? exponent : own.smallest()) - kept.mantissa);
        x = __builtin_nearbyint(x / step) * step;
    }
    if (kept.exponent >= own.exponent || x == 0.0)
        return x;
    const int exponent = __builtin_ilogb(x);
    return exponent > kept.largest() ? __builtin_copysign(__builtin_inf(), x)
        : exponent < kept.smallest() ? __builtin_copysign(0.0, x)
                                     : x;
}

template <typename T, int Exponent, int Mantissa>
void reducePrecisionStep(std::byte* out, const std::byte* a, const std::byte* b, const std::byte* c, std::int64_t count)
{
    const FloatBits kept{*reinterpret_cast<const std::int32_t*>(b), *reinterpret_cast<const std::int32_t*>(c)};
    map1<T, T>(out, a, count, [kept](T x) {
        return static_cast<T>(reducedPrecision(static_cast<double>(x), {Exponent, Mantissa}, kept));
    });
}

/// Counts in the low bits of numbers that are widened to 32.
template <OpKind Kind, typename Narrow>
void narrowCountStep(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<std::uint32_t, std::uint32_t>(out, a, count,
        [](std::uint32_t x) { return static_cast<std::uint32_t>(integerUnary<Narrow, Kind>(static_cast<Narrow>(x))); });
}

template <OpKind Kind>
TileStep countOf(DType dtype)
{
    if (dtype == DType::S8 || dtype == DType::U8)
        return narrowCountStep<Kind, std::uint8_t>;
    if (dtype == DType::S16 || dtype == DType::U16)
        return narrowCountStep<Kind, std::uint16_t>;
    return nullptr;
}

TileStep reducePrecisionOf(DType dtype)
{
    return dtype == DType::F16 ? reducePrecisionStep<float, 5, 10>
        : dtype == DType::BF16 ? reducePrecisionStep<float, 8, 7>
        : dtype == DType::F64  ? reducePrecisionStep<double, 11, 52>
                               : reducePrecisionStep<float, 8, 23>;
}

// ---- The step of each kind on each lane: of its function above.

template <typename T, OpKind Kind>
void unaryStep(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    const auto f = [](T x) {
        if constexpr (std::is_floating_point_v<T>)
            return floatingUnary<T, Kind>(x);
        else
            return integerUnary<T, Kind>(x);
    };
    map1<decltype(f(T())), T>(out, a, count, f);
}

template <typename T, OpKind Kind>
void binaryStep(std::byte* out, const std::byte* a, const std::byte* b, const std::byte*, std::int64_t count)
{
    map2<T, T>(out, a, b, count, [](T x, T y) {
        if constexpr (std::is_floating_point_v<T>)
            return floatingBinary<T, Kind>(x, y);
        else
            return integerBinary<T, Kind>(x, y);
    });
}

template <typename Made>
constexpr bool kIsMade = !std::is_same_v<Made, None>;

template <typename T, OpKind Kind>
constexpr TileStep stepOf()
{
    if constexpr (std::is_floating_point_v<T>) {
        if constexpr (kIsMade<decltype(floatingUnary<T, Kind>(T()))>)
            return unaryStep<T, Kind>;
        else if constexpr (kIsMade<decltype(floatingBinary<T, Kind>(T(), T()))>)
            return binaryStep<T, Kind>;
    } else {
        if constexpr (kIsMade<decltype(integerUnary<T, Kind>(T()))>)
            return unaryStep<T, Kind>;
        else if constexpr (kIsMade<decltype(integerBinary<T, Kind>(T(), T()))>)
            return binaryStep<T, Kind>;
    }
    return nullptr;
}

struct Steps {
    TileStep of[kOpKindCount];

    constexpr TileStep operator[](OpKind kind) const { return of[static_cast<std::size_t>(kind)]; }
};

template <typename T, std::size_t... Kind>
constexpr Steps stepsOf(std::index_sequence<Kind...>)
{
    return {{stepOf<T, static_cast<OpKind>(Kind)>()...}};
}

template <typename T>
constexpr Steps kSteps = stepsOf<T>(std::make_index_sequence<kOpKindCount>());

constexpr bool hasEveryKindItsStep()
{
    for (const OpInfo& info : kOpTable) {
        const bool isMap = info.opClass == OpClass::Unary || info.opClass == OpClass::Binary;
        const bool isFound = isMadeOfOtherSteps(info.kind) || info.kind == OpKind::ReducePrecision
            || kSteps<float>[info.kind] != nullptr || kSteps<std::int32_t>[info.kind] != nullptr;
        if (isMap && !isFound)
            return false;
    }
    return true;
}
#ifndef __SANITIZE_ADDRESS__ // under which g++ takes no address of a function for a constant
static_assert(hasEveryKindItsStep(), "every element-wise op of one or two operands has its function on some lane");
#endif

TileStep truthOp(OpKind kind)
{
    return kind == OpKind::And ? binaryStep<Byte, OpKind::And>
        : kind == OpKind::Or   ? binaryStep<Byte, OpKind::Or>
        : kind == OpKind::Xor  ? binaryStep<Byte, OpKind::Xor>
        : kind == OpKind::Not  ? notStep
                               : nullptr;
}

template <typename T, CompareDirection Direction>
void compareStep(std::byte* out, const std::byte* a, const std::byte* b, const std::byte*, std::int64_t count)
{
    map2<Byte, T>(out, a, b, count, [](T x, T y) -> Byte {
        if constexpr (Direction == CompareDirection::Equal)
            return static_cast<Byte>(x == y);
        else if constexpr (Direction == CompareDirection::NotEqual)
            return static_cast<Byte>(x != y);
        else if constexpr (Direction == CompareDirection::Less)
            return static_cast<Byte>(x < y);
        else if constexpr (Direction == CompareDirection::LessEqual)
            return static_cast<Byte>(x <= y);
        else if constexpr (Direction == CompareDirection::Greater)
            return static_cast<Byte>(x > y);
        else
            return static_cast<Byte>(x >= y);
    });
}

template <typename T>
TileStep compareOf(CompareDirection direction)
{
    switch (direction) {
    case CompareDirection::Equal:
        return compareStep<T, CompareDirection::Equal>;
    case CompareDirection::NotEqual:
        return compareStep<T, CompareDirection::NotEqual>;
    case CompareDirection::Less:
        return compareStep<T, CompareDirection::Less>;
    case CompareDirection::LessEqual:
        return compareStep<T, CompareDirection::LessEqual>;
    case CompareDirection::Greater:
        return compareStep<T, CompareDirection::Greater>;
    case CompareDirection::GreaterEqual:
        return compareStep<T, CompareDirection::GreaterEqual>;
    }
    return nullptr;
}

/// Bits as an integer in the order of IEEE's totalOrder: -NaN, -infinity .. -0, +0 .. infinity, NaN.
template <typename Bits>
struct InTotalOrder {
    Bits bits;

    Bits key() const { return bits < 0 ? static_cast<Bits>(bits ^ std::numeric_limits<Bits>::max()) : bits; }
    friend bool operator==(InTotalOrder a, InTotalOrder b) { return a.bits == b.bits; }
    friend bool operator<(InTotalOrder a, InTotalOrder b) { return a.key() < b.key(); }
    friend bool operator>(InTotalOrder a, InTotalOrder b) { return b < a; }
    friend bool operator<=(InTotalOrder a, InTotalOrder b) { return !(b < a); }
    friend bool operator>=(InTotalOrder a, InTotalOrder b) { return !(a < b); }
};

template <typename T>
void selectStep(std::byte* out, const std::byte* a, const std::byte* b, const std::byte* c, std::int64_t count)
{
    auto* o = reinterpret_cast<T*>(out);
    const auto* p = reinterpret_cast<const Byte*>(a);
    const auto* x = reinterpret_cast<const T*>(b);
    const auto* y = reinterpret_cast<const T*>(c);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
        const T onTrue = x[i]; // loaded in any case, so that the choice needs no branch
        const T onFalse = y[i];
        o[i] = p[i] != 0 ? onTrue : onFalse;
    }
}

} // namespace

TileStep findOp(OpKind kind, DType operands)
{
    if (kind == OpKind::ReducePrecision)
        return reducePrecisionOf(operands);
    if (kind == OpKind::NextAfter && isNarrow(operands)) // the lane's numbers are others
        return nullptr;
    if (kind == OpKind::PopulationCount && isNarrow(operands))
        return countOf<OpKind::PopulationCount>(operands);
    if (kind == OpKind::CountLeadingZeros && isNarrow(operands))
        return countOf<OpKind::CountLeadingZeros>(operands);
    switch (laneOf(operands)) {
    case Lane::F32:
        return kSteps<float>[kind];
    case Lane::F64:
        return kSteps<double>[kind];
    case Lane::S32:
        return kSteps<std::int32_t>[kind];
    case Lane::U32:
        return kSteps<std::uint32_t>[kind];
    case Lane::S64:
        return kSteps<std::int64_t>[kind];
    case Lane::U64:
        return kSteps<std::uint64_t>[kind];
    case Lane::Pred:
        return truthOp(kind);
    }
    return nullptr;
}

TileStep findCompare(const CompareAttributes& compare, Lane operands)
{
    if (compare.isTotalOrder && operands == Lane::F32)
        return compareOf<InTotalOrder<std::int32_t>>(compare.direction);
    if (compare.isTotalOrder && operands == Lane::F64)
        return compareOf<InTotalOrder<std::int64_t>>(compare.direction);
    return withLane(operands, [&](auto element) { return compareOf<decltype(element)>(compare.direction); });
}

TileStep findSelect(std::int64_t width)
{
    return width == 1 ? selectStep<Byte> : width == 4 ? selectStep<std::uint32_t> : selectStep<std::uint64_t>;
}

} // namespace meshwright::MESHWRIGHT_TILE_SET
