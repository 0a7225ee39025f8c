// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/tile_arithmetic.h"
#include "core/kernels/tile_steps.h"

#include <utility>

namespace meshwright::MESHWRIGHT_TILE_SET {
namespace {

template <typename T, ReduceKind Kind>
inline T combined(T a, T b)
{
    if constexpr (Kind == ReduceKind::Max)
        return larger(a, b);
    else if constexpr (Kind == ReduceKind::Min)
        return smaller(a, b);
    else if constexpr (std::is_floating_point_v<T>)
        return Kind == ReduceKind::Sum ? a + b : a * b;
    else if constexpr (Kind == ReduceKind::Sum)
        return integerBinary<T, OpKind::Add>(a, b);
    else if constexpr (Kind == ReduceKind::Product)
        return integerBinary<T, OpKind::Multiply>(a, b);
    else if constexpr (Kind == ReduceKind::And)
        return static_cast<T>(a & b);
    else
        return static_cast<T>(a | b);
}

template <typename T, ReduceKind Kind>
constexpr T identityOf()
{
    if constexpr (Kind == ReduceKind::Sum || Kind == ReduceKind::Or)
        return T(0);
    else if constexpr (Kind == ReduceKind::Product)
        return T(1);
    else if constexpr (Kind == ReduceKind::And)
        return std::is_same_v<T, Byte> ? T(1) : static_cast<T>(~T(0));
    else if constexpr (std::is_floating_point_v<T>)
        return Kind == ReduceKind::Max ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
    else
        return Kind == ReduceKind::Max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
}

template <typename T, ReduceKind Kind>
void combineStep(std::byte* out, const std::byte* a, const std::byte* b, const std::byte*, std::int64_t count)
{
    map2<T, T>(out, a, b, count, [](T x, T y) { return combined<T, Kind>(x, y); });
}

/// out = `first` combined with other operands, one after the other.
template <typename T, ReduceKind Kind, std::size_t... Other>
void combineOthers(std::byte* out, const std::byte* first, const std::byte* const* others, std::int64_t offset,
    std::int64_t count, std::index_sequence<Other...>)
{
    auto* o = reinterpret_cast<T*>(out);
    const auto* x = reinterpret_cast<const T*>(first);
    const T* const y[] = {reinterpret_cast<const T*>(others[Other] + offset)...};
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
        T value = x[i];
        ((value = combined<T, Kind>(value, y[Other][i])), ...);
        o[i] = value;
    }
}

template <typename T, ReduceKind Kind>
void combineMembersStep(
    std::byte* out, const std::byte* const* operands, std::size_t members, std::int64_t offset, std::int64_t count)
{
    const std::byte* first = operands[0] + offset;
    if (members == 1)
        __builtin_memcpy(out, first, static_cast<std::size_t>(count) * sizeof(T));
    for (std::size_t member = 1; member < members; first = out) {
        const std::byte* const* others = operands + member;
        const std::size_t left = members - member;
        if (left >= 7)
            combineOthers<T, Kind>(out, first, others, offset, count, std::make_index_sequence<7>());
        else if (left >= 3)
            combineOthers<T, Kind>(out, first, others, offset, count, std::make_index_sequence<3>());
        else
            combineOthers<T, Kind>(out, first, others, offset, count, std::make_index_sequence<1>());
        member += left >= 7 ? 7 : left >= 3 ? 3 : 1;
    }
}

/// One block with 16 accumulators that are then combined as a tree.
template <typename T, ReduceKind Kind>
T reduceBlock(const T* x, std::int64_t count)
{
    constexpr std::int64_t kLanes = 16;
    T lanes[kLanes];
    for (T& lane : lanes)
        lane = identityOf<T, Kind>();
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane)
            lanes[lane] = combined<T, Kind>(lanes[lane], x[i + lane]);
    }
    for (std::int64_t lane = 0; i < count; ++i, ++lane)
        lanes[lane] = combined<T, Kind>(lanes[lane], x[i]);
    for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
        for (std::int64_t lane = 0; lane < width; ++lane)
            lanes[lane] = combined<T, Kind>(lanes[lane], lanes[lane + width]);
    }
    return lanes[0];
}

/// Blocks combined pairwise: the rounding error of a sum grows with the logarithm of the count.
template <typename T, ReduceKind Kind>
void reduceRowStep(std::byte* out, const std::byte* in, std::int64_t count)
{
    constexpr std::int64_t kBlock = 256;
    const auto* x = reinterpret_cast<const T*>(in);
    T waiting[64];
    int height = 0;
    std::uint64_t blocks = 0;
    for (std::int64_t start = 0; start < count; start += kBlock) {
        T value = reduceBlock<T, Kind>(x + start, count - start < kBlock ? count - start : kBlock);
        for (std::uint64_t carry = blocks; (carry & 1U) != 0; carry >>= 1U)
            value = combined<T, Kind>(waiting[--height], value);
        waiting[height++] = value;
        ++blocks;
    }
    T result = height > 0 ? waiting[--height] : identityOf<T, Kind>();
    while (height > 0)
        result = combined<T, Kind>(waiting[--height], result);
    *reinterpret_cast<T*>(out) = result;
}

template <typename T, template <typename, ReduceKind> class Function>
auto reductionOf(ReduceKind kind) -> decltype(&Function<T, ReduceKind::Sum>::run)
{
    constexpr bool isTruth = std::is_same_v<T, Byte>;
    if constexpr (!isTruth) {
        switch (kind) {
        case ReduceKind::Sum:
            return &Function<T, ReduceKind::Sum>::run;
        case ReduceKind::Max:
            return &Function<T, ReduceKind::Max>::run;
        case ReduceKind::Min:
            return &Function<T, ReduceKind::Min>::run;
        case ReduceKind::Product:
            return &Function<T, ReduceKind::Product>::run;
        default:
            break;
        }
    }
    if constexpr (std::is_integral_v<T>) {
        if (kind == ReduceKind::And)
            return &Function<T, ReduceKind::And>::run;
        if (kind == ReduceKind::Or)
            return &Function<T, ReduceKind::Or>::run;
    }
    return nullptr;
}

template <typename T, ReduceKind Kind>
struct Combine {
    static void run(std::byte* out, const std::byte* a, const std::byte* b, const std::byte* c, std::int64_t count)
    {
        combineStep<T, Kind>(out, a, b, c, count);
    }
};
template <typename T, ReduceKind Kind>
struct CombineMembers {
    static void run(
        std::byte* out, const std::byte* const* operands, std::size_t members, std::int64_t offset, std::int64_t count)
    {
        combineMembersStep<T, Kind>(out, operands, members, offset, count);
    }
};
template <typename T, ReduceKind Kind>
struct ReduceRow {
    static void run(std::byte* out, const std::byte* in, std::int64_t count) { reduceRowStep<T, Kind>(out, in, count); }
};

} // namespace

TileStep findCombine(ReduceKind kind, Lane lane)
{
    return withLane(lane, [kind](auto element) -> TileStep { return reductionOf<decltype(element), Combine>(kind); });
}

MemberStep findCombineMembers(ReduceKind kind, Lane lane)
{
    return withLane(lane, [kind](auto element) -> MemberStep { return reductionOf<decltype(element), CombineMembers>(kind); });
}

RowReduction findReduceRow(ReduceKind kind, Lane lane)
{
    return withLane(lane, [kind](auto element) -> RowReduction { return reductionOf<decltype(element), ReduceRow>(kind); });
}

} // namespace meshwright::MESHWRIGHT_TILE_SET
