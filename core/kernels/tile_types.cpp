// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/narrow_float.h"
#include "core/kernels/tile_loops.h"
#include "core/kernels/tile_steps.h"

#include <limits>
#include <type_traits>

namespace meshwright::MESHWRIGHT_TILE_SET {
namespace {

/// Of `Held` and its lane `To`.
template <typename Held, typename To, typename From>
To converted(From x)
{
    if constexpr (std::is_same_v<To, From>)
        return x;
    else if constexpr (std::is_same_v<To, Byte>)
        return static_cast<Byte>(x != From(0));
    else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
        // Cut towards zero, held at the type's bounds; NaN becomes 0.
        using Bounds = std::numeric_limits<Held>;
        constexpr auto kLow = static_cast<From>(Bounds::min());
        constexpr From kBeyond = static_cast<From>(2) * static_cast<From>(std::uint64_t{1} << (Bounds::digits - 1));
        if (x != x)
            return To(0);
        return x < kLow ? To(Bounds::min()) : x >= kBeyond ? To(Bounds::max()) : static_cast<To>(x);
    } else
        return static_cast<To>(x);
}

template <typename Held, typename To, typename From>
void convertStep(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<To, From>(out, a, count, [](From x) { return converted<Held, To, From>(x); });
}

template <typename T>
void fillStep(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    auto* o = reinterpret_cast<T*>(out);
    const T value = *reinterpret_cast<const T*>(a);
    for (std::int64_t i = 0; i < count; ++i)
        o[i] = value;
}

template <typename To, typename From, To (*Converted)(From)>
void narrowStep(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<To, From>(out, a, count, [](From x) { return Converted(x); });
}

template <typename To, typename From>
void castStep(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<To, From>(out, a, count, [](From x) { return static_cast<To>(x); });
}

} // namespace

TileStep findConvert(Lane from, DType to)
{
    return withLane(from, [to](auto source) -> TileStep {
        using From = decltype(source);
        switch (to) {
        case DType::S8:
            return convertStep<std::int8_t, std::int32_t, From>;
        case DType::S16:
            return convertStep<std::int16_t, std::int32_t, From>;
        case DType::U8:
            return convertStep<std::uint8_t, std::uint32_t, From>;
        case DType::U16:
            return convertStep<std::uint16_t, std::uint32_t, From>;
        default:
            return withLane(
                laneOf(to), [](auto target) -> TileStep { return convertStep<decltype(target), decltype(target), From>; });
        }
    });
}

TileStep findFill(std::int64_t width)
{
    return width == 1 ? fillStep<Byte>
        : width == 2  ? fillStep<std::uint16_t>
        : width == 4  ? fillStep<std::uint32_t>
                      : fillStep<std::uint64_t>;
}

TileStep findLoad(DType narrow)
{
    switch (narrow) {
    case DType::S8:
        return castStep<std::int32_t, std::int8_t>;
    case DType::S16:
        return castStep<std::int32_t, std::int16_t>;
    case DType::U8:
        return castStep<std::uint32_t, std::uint8_t>;
    case DType::U16:
        return castStep<std::uint32_t, std::uint16_t>;
    case DType::F16:
        return narrowStep<float, std::uint16_t, fromHalf>;
    case DType::BF16:
        return narrowStep<float, std::uint16_t, fromBfloat16>;
    case DType::F8E4M3FN:
        return narrowStep<float, std::uint8_t, fromE4m3>;
    case DType::F8E5M2:
        return narrowStep<float, std::uint8_t, fromE5m2>;
    default:
        return nullptr;
    }
}

TileStep findStore(DType narrow)
{
    switch (narrow) {
    case DType::S8:
        return castStep<std::int8_t, std::int32_t>;
    case DType::S16:
        return castStep<std::int16_t, std::int32_t>;
    case DType::U8:
        return castStep<std::uint8_t, std::uint32_t>;
    case DType::U16:
        return castStep<std::uint16_t, std::uint32_t>;
    case DType::F16:
        return narrowStep<std::uint16_t, float, halfBits>;
    case DType::BF16:
        return narrowStep<std::uint16_t, float, bfloat16Bits>;
    case DType::F8E4M3FN:
        return narrowStep<std::uint8_t, float, e4m3Bits>;
    case DType::F8E5M2:
        return narrowStep<std::uint8_t, float, e5m2Bits>;
    default:
        return nullptr;
    }
}

} // namespace meshwright::MESHWRIGHT_TILE_SET
