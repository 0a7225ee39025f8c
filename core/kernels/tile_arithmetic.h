// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/tile_functions.h"
#include "core/kernels/tile_loops.h"

#include <limits>
#include <type_traits>

namespace meshwright::MESHWRIGHT_TILE_SET {

/// What no function of a kind gives.
struct None { };

template <typename T, OpKind Kind>
auto floatingUnary(T x)
{
    constexpr bool isSingle = std::is_same_v<T, float>;
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    if constexpr (Kind == OpKind::Negate)
        return -x;
    else if constexpr (Kind == OpKind::Abs)
        return isSingle ? static_cast<T>(__builtin_fabsf(static_cast<float>(x)))
                        : static_cast<T>(__builtin_fabs(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Sign)
        return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
    else if constexpr (Kind == OpKind::Sqrt)
        return isSingle ? static_cast<T>(__builtin_sqrtf(static_cast<float>(x)))
                        : static_cast<T>(__builtin_sqrt(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Rsqrt)
        return static_cast<T>(1.0 / __builtin_sqrt(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Floor)
        return isSingle ? static_cast<T>(__builtin_floorf(static_cast<float>(x)))
                        : static_cast<T>(__builtin_floor(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Ceil)
        return static_cast<T>(__builtin_ceil(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::RoundNearestEven)
        return static_cast<T>(__builtin_nearbyint(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::RoundNearestAway)
        return static_cast<T>(__builtin_round(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Square)
        return x * x;
    else if constexpr (Kind == OpKind::Tan)
        return static_cast<T>(__builtin_tan(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Cbrt)
        return static_cast<T>(__builtin_cbrt(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Expm1)
        return static_cast<T>(__builtin_expm1(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Erf)
        return isSingle ? static_cast<T>(erfShort(static_cast<double>(x)))
                        : static_cast<T>(__builtin_erf(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Erfc)
        return static_cast<T>(__builtin_erfc(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Exp)
        return isSingle ? static_cast<T>(expShort(static_cast<double>(x)))
                        : static_cast<T>(__builtin_exp(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Log)
        return isSingle ? static_cast<T>(logOf(static_cast<double>(x))) : static_cast<T>(__builtin_log(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Log1p)
        return isSingle ? static_cast<T>(log1pOf(static_cast<double>(x)))
                        : static_cast<T>(__builtin_log1p(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Tanh)
        return isSingle ? static_cast<T>(tanhOf(static_cast<double>(x))) : static_cast<T>(__builtin_tanh(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Logistic)
        return isSingle ? static_cast<T>(1.0 / (1.0 + expShort(-static_cast<double>(x))))
                        : static_cast<T>(1.0 / (1.0 + __builtin_exp(-static_cast<double>(x))));
    else if constexpr (Kind == OpKind::Sine)
        return static_cast<T>(__builtin_sin(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Cosine)
        return static_cast<T>(__builtin_cos(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Asin)
        return static_cast<T>(__builtin_asin(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Acos)
        return static_cast<T>(__builtin_acos(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Atan)
        return static_cast<T>(__builtin_atan(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Sinh)
        return static_cast<T>(__builtin_sinh(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Cosh)
        return static_cast<T>(__builtin_cosh(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Asinh)
        return static_cast<T>(__builtin_asinh(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Acosh)
        return static_cast<T>(__builtin_acosh(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Atanh)
        return static_cast<T>(__builtin_atanh(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::LogGamma)
        return static_cast<T>(__builtin_lgamma(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Digamma)
        return static_cast<T>(digammaOf(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::ErfInv)
        return isSingle ? static_cast<T>(erfInvSingle(static_cast<float>(x)))
                        : static_cast<T>(erfInvDouble(static_cast<double>(x)));
    else if constexpr (Kind == OpKind::Real || Kind == OpKind::Conjugate)
        return x;
    else if constexpr (Kind == OpKind::Imag)
        return T(0);
    else if constexpr (Kind == OpKind::IsFinite)
        return static_cast<Byte>(x - x == T(0));
    else if constexpr (Kind == OpKind::IsInf)
        return static_cast<Byte>(x == kInfinity || x == -kInfinity);
    else if constexpr (Kind == OpKind::IsPosInf)
        return static_cast<Byte>(x == kInfinity);
    else if constexpr (Kind == OpKind::IsNegInf)
        return static_cast<Byte>(x == -kInfinity);
    else
        return None();
}

template <typename T, OpKind Kind>
auto integerUnary(T x)
{
    using U = std::make_unsigned_t<T>;
    if constexpr (Kind == OpKind::Negate)
        return static_cast<T>(U(0) - static_cast<U>(x));
    else if constexpr (Kind == OpKind::Abs)
        return x < T(0) ? static_cast<T>(U(0) - static_cast<U>(x)) : x;
    else if constexpr (Kind == OpKind::Sign)
        return x > T(0) ? T(1) : x < T(0) ? static_cast<T>(-1) : T(0);
    else if constexpr (Kind == OpKind::Square)
        return static_cast<T>(static_cast<U>(x) * static_cast<U>(x));
    else if constexpr (Kind == OpKind::Not)
        return static_cast<T>(~static_cast<U>(x));
    else if constexpr (Kind == OpKind::PopulationCount)
        return static_cast<T>(__builtin_popcountll(static_cast<std::uint64_t>(static_cast<U>(x))));
    else if constexpr (Kind == OpKind::CountLeadingZeros)
        return static_cast<T>(x == T(0)
                ? static_cast<int>(8 * sizeof(T))
                : __builtin_clzll(static_cast<std::uint64_t>(static_cast<U>(x))) + static_cast<int>(8 * sizeof(T)) - 64);
    else
        return None();
}

/// What both maximum and a max-reduction do: a NaN on either side wins.
template <typename T>
inline T larger(T a, T b)
{
    return a > b || a != a ? a : b;
}
template <typename T>
inline T smaller(T a, T b)
{
    return a < b || a != a ? a : b;
}

template <typename T, OpKind Kind>
auto floatingBinary(T a, T b)
{
    if constexpr (Kind == OpKind::Add)
        return a + b;
    else if constexpr (Kind == OpKind::Subtract)
        return a - b;
    else if constexpr (Kind == OpKind::Multiply || Kind == OpKind::Scale)
        return a * b;
    else if constexpr (Kind == OpKind::Divide)
        return a / b;
    else if constexpr (Kind == OpKind::Maximum)
        return larger(a, b);
    else if constexpr (Kind == OpKind::Minimum)
        return smaller(a, b);
    else if constexpr (Kind == OpKind::Remainder)
        return static_cast<T>(__builtin_fmod(static_cast<double>(a), static_cast<double>(b)));
    else if constexpr (Kind == OpKind::Atan2)
        return static_cast<T>(__builtin_atan2(static_cast<double>(a), static_cast<double>(b)));
    else if constexpr (Kind == OpKind::NextAfter)
        return std::is_same_v<T, float> ? static_cast<T>(__builtin_nextafterf(static_cast<float>(a), static_cast<float>(b)))
                                        : static_cast<T>(__builtin_nextafter(static_cast<double>(a), static_cast<double>(b)));
    else if constexpr (Kind == OpKind::Power)
        return static_cast<T>(__builtin_pow(static_cast<double>(a), static_cast<double>(b)));
    else
        return None();
}

template <typename T>
T integerPower(T base, T exponent)
{
    using U = std::make_unsigned_t<T>;
    if (exponent < T(0)) // 1 / base^n, cut towards zero
        return base == T(1)                                                     ? T(1)
            : static_cast<U>(base) == static_cast<U>(-1) && std::is_signed_v<T> ? ((exponent & 1) != 0 ? base : T(1))
                                                                                : T(0);
    U result = 1;
    auto square = static_cast<U>(base);
    for (auto left = static_cast<U>(exponent); left != 0; left >>= 1U) {
        if ((left & 1U) != 0)
            result *= square;
        square *= square;
    }
    return static_cast<T>(result);
}

template <typename T, OpKind Kind>
auto integerBinary(T a, T b)
{
    using U = std::make_unsigned_t<T>; // signed overflow wraps
    const auto x = static_cast<U>(a);
    const auto y = static_cast<U>(b);
    constexpr U kBits = sizeof(T) * 8;
    if constexpr (Kind == OpKind::Add)
        return static_cast<T>(x + y);
    else if constexpr (Kind == OpKind::Subtract)
        return static_cast<T>(x - y);
    else if constexpr (Kind == OpKind::Multiply)
        return static_cast<T>(x * y);
    else if constexpr (Kind == OpKind::Divide)
        return y == 0                           ? static_cast<T>(~U(0))
            : std::is_signed_v<T> && y == ~U(0) ? static_cast<T>(U(0) - x)
                                                : static_cast<T>(a / b);
    else if constexpr (Kind == OpKind::Remainder)
        return y == 0 ? a : std::is_signed_v<T> && y == ~U(0) ? T(0) : static_cast<T>(a % b);
    else if constexpr (Kind == OpKind::Maximum)
        return a > b ? a : b;
    else if constexpr (Kind == OpKind::Minimum)
        return a < b ? a : b;
    else if constexpr (Kind == OpKind::And)
        return static_cast<T>(x & y);
    else if constexpr (Kind == OpKind::Or)
        return static_cast<T>(x | y);
    else if constexpr (Kind == OpKind::Xor)
        return static_cast<T>(x ^ y);
    else if constexpr (Kind == OpKind::ShiftLeft)
        return y < kBits ? static_cast<T>(x << (y & (kBits - 1))) : T(0);
    else if constexpr (Kind == OpKind::ShiftRightLogical)
        return y < kBits ? static_cast<T>(x >> (y & (kBits - 1))) : T(0);
    else if constexpr (Kind == OpKind::ShiftRightArithmetic) // past the width, copies of the sign
        return static_cast<T>(static_cast<std::make_signed_t<T>>(a) >> (y < kBits ? y : kBits - 1));
    else if constexpr (Kind == OpKind::Power)
        return integerPower(a, b);
    else
        return None();
}

} // namespace meshwright::MESHWRIGHT_TILE_SET
