// SPDX-License-Identifier: GPL-3.0-or-later

// Compiled once for each instruction set, with MESHWRIGHT_TILE_TABLE naming the function that it defines and MESHWRIGHT_TILE_NAME the
// set. Everything else has internal linkage, so that no code for a newer processor can be linked into common functions.

#include "core/kernels/tile_table.h"
#include "core/kernels/narrow_float.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace meshwright {

const TileTable& MESHWRIGHT_TILE_TABLE();

namespace {

using Byte = std::uint8_t; // a truth value

// The loops may write in place: element i of the result depends on elements i of the operands only, which is what ivdep says.
template <typename Out, typename In, typename F>
void map1(std::byte* out, const std::byte* a, std::int64_t count, F f)
{
    auto* o = reinterpret_cast<Out*>(out);
    const auto* x = reinterpret_cast<const In*>(a);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i)
        o[i] = f(x[i]);
}

template <typename Out, typename In, typename F>
void map2(std::byte* out, const std::byte* a, const std::byte* b, std::int64_t count, F f)
{
    auto* o = reinterpret_cast<Out*>(out);
    const auto* x = reinterpret_cast<const In*>(a);
    const auto* y = reinterpret_cast<const In*>(b);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i)
        o[i] = f(x[i], y[i]);
}

// ---- Functions. For f32 they are computed in double precision by short polynomials, which rounds correctly but for rare cases.

constexpr double kRounder = 6755399441055744.0; // 1.5 * 2^52: adding it rounds to an integer, which then stands in the low bits
constexpr double kLog2E = 1.4426950408889634;
constexpr double kLn2 = 0.6931471805599453;

/// e^x for |x| <= 1000, else what that gives at the bound; NaN for NaN. Relative error below 1e-10.
inline double expShort(double x)
{
    x = x < -1000.0 ? -1000.0 : x;
    x = x > 1000.0 ? 1000.0 : x;
    const double shifted = x * kLog2E + kRounder;
    const double k = shifted - kRounder;
    const double r = x - k * kLn2; // |r| <= 0.347
    double p = 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    // 2^k in two factors, since 2^1443 would leave the exponent's range.
    const auto bits = std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(kRounder);
    const std::uint64_t biased = bits + 4096U; // positive, so that a logical shift halves it
    const std::uint64_t half = (biased >> 1) - 2048U;
    const std::uint64_t rest = bits - half;
    return p * std::bit_cast<double>((half + 1023U) << 52) * std::bit_cast<double>((rest + 1023U) << 52);
}

/// ln x for a positive normal double. Relative error below 1e-10 (absolute, near x = 1, too).
inline double logShort(double x)
{
    // x = m * 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172.
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const std::uint64_t offset = bits - 0x3fe6a09e667f3bcdULL; // of sqrt(1/2)
    const std::uint64_t exponentBits = offset & 0xfff0000000000000ULL;
    const double m = std::bit_cast<double>(bits - exponentBits);
    // The exponent as a double without a 64-bit conversion: its bits, biased, below those of 2^52.
    const std::uint64_t biased = ((exponentBits >> 52) + 2048U) & 0xfffU;
    const double e = std::bit_cast<double>(biased | 0x4330000000000000ULL) - (4503599627370496.0 + 2048.0);
    const double s = (m - 1.0) / (m + 1.0);
    const double q = s * s;
    double p = 2.0 / 13.0;
    p = p * q + 2.0 / 11.0;
    p = p * q + 2.0 / 9.0;
    p = p * q + 2.0 / 7.0;
    p = p * q + 2.0 / 5.0;
    p = p * q + 2.0 / 3.0;
    p = p * q + 2.0;
    return e * kLn2 + s * p;
}

inline double logOf(double x)
{
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    double y = logShort(x > 0.0 && x < kInfinity ? x : 1.0);
    y = x == kInfinity ? kInfinity : y;
    y = x == 0.0 ? -kInfinity : y;
    return x >= 0.0 ? y : kNan;
}

/// ln(1 + x), accurate for small x: the rounding of 1 + x is taken back by the ratio x / ((1 + x) - 1) (W. Kahan).
inline double log1pOf(double x)
{
    const double u = 1.0 + x;
    const double d = u - 1.0;
    const double scaled = logOf(u) * (x / (d == 0.0 ? 1.0 : d));
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double y = u == kInfinity || u <= 0.0 ? logOf(u) : scaled;
    return d == 0.0 ? x : y;
}

inline double tanhOf(double x)
{
    const double magnitude = x < 0.0 ? -x : x;
    const double t = expShort(-2.0 * magnitude);
    const double y = (1.0 - t) / (1.0 + t);
    const double small = magnitude * (1.0 - magnitude * magnitude * (1.0 / 3.0));
    const double positive = magnitude < 1e-4 ? small : y;
    return x < 0.0 ? -positive : positive;
}

/// The inverse error function in single precision.
/// Source: M. Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition, 2011, table 5 (the form that XLA uses too).
inline float erfInvSingle(float x)
{
    const auto w = static_cast<float>(-log1pOf(-static_cast<double>(x * x)));
    const float central = w - 2.5F;
    float p = 2.81022636e-08F;
    p = 3.43273939e-07F + p * central;
    p = -3.5233877e-06F + p * central;
    p = -4.39150654e-06F + p * central;
    p = 0.00021858087F + p * central;
    p = -0.00125372503F + p * central;
    p = -0.00417768164F + p * central;
    p = 0.246640727F + p * central;
    p = 1.50140941F + p * central;
    const float tail = __builtin_sqrtf(w) - 3.0F;
    float q = -0.000200214257F;
    q = 0.000100950558F + q * tail;
    q = 0.00134934322F + q * tail;
    q = -0.00367342844F + q * tail;
    q = 0.00573950773F + q * tail;
    q = -0.0076224613F + q * tail;
    q = 0.00943887047F + q * tail;
    q = 1.00167406F + q * tail;
    q = 2.83297682F + q * tail;
    const float magnitude = x < 0.0F ? -x : x;
    const float y = (w < 5.0F ? p : q) * x;
    return magnitude == 1.0F ? x * std::numeric_limits<float>::infinity() : y;
}

/// erf(x) to 6.5e-8 of its value: an odd rational function, that of Eigen 3.4 (MathFunctionsImpl), beyond 4 its value there.
inline double erfShort(double x)
{
    const double bounded = x > 4.0 ? 4.0 : x < -4.0 ? -4.0 : x;
    const double square = bounded * bounded;
    double p = -2.72614225801306e-10;
    p = 2.77068142495902e-08 + p * square;
    p = -2.10102402082508e-06 + p * square;
    p = -5.69250639462346e-05 + p * square;
    p = -7.34990630326855e-04 + p * square;
    p = -2.95459980854025e-03 + p * square;
    p = -1.60960333262415e-02 + p * square;
    double q = -1.45660718464996e-05;
    q = -2.13374055278905e-04 + q * square;
    q = -1.68282697438203e-03 + q * square;
    q = -7.37332916720468e-03 + q * square;
    q = -1.42647390514189e-02 + q * square;
    return bounded * p / q;
}

/// To full double precision: Giles's value, then two steps of Halley's method on erf (on erfc in the tails).
double erfInvDouble(double x)
{
    const double magnitude = __builtin_fabs(x);
    if (!(magnitude < 1.0))
        return magnitude == 1.0 ? x * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    constexpr double kTwoOverSqrtPi = 1.1283791670955126;
    // Single precision loses 1 - |x|; start the far tail from its leading term.
    double y = magnitude < 0.999999
        ? static_cast<double>(erfInvSingle(static_cast<float>(magnitude)))
        : __builtin_sqrt(
            -__builtin_log((1.0 - magnitude) * 1.7724538509055159 * __builtin_sqrt(-__builtin_log(1.0 - magnitude))));
    for (int step = 0; step < (magnitude < 0.999999 ? 2 : 5); ++step) {
        const double error = magnitude < 0.5 ? __builtin_erf(y) - magnitude : (1.0 - magnitude) - __builtin_erfc(y);
        const double newton = error / (kTwoOverSqrtPi * __builtin_exp(-y * y));
        y -= newton / (1.0 + y * newton);
    }
    return x < 0.0 ? -y : y;
}

/// The derivative of ln|gamma(x)|: by reflection from 1/2 on, by recurrence from 10 on, there by its asymptotic series.
/// Source: J. M. Bernardo, "Algorithm AS 103: Psi (digamma) function", Applied Statistics 25(3), 1976.
double digammaOf(double x)
{
    if (x <= 0.0 && x == __builtin_floor(x))
        return std::numeric_limits<double>::quiet_NaN();
    constexpr double kPi = 3.141592653589793;
    double y = x < 0.5 ? -kPi / __builtin_tan(kPi * (x - __builtin_floor(x))) : 0.0;
    for (x = x < 0.5 ? 1.0 - x : x; x < 10.0; x += 1.0)
        y -= 1.0 / x;
    const double s = 1.0 / (x * x);
    const double series = s
        * (1.0 / 12.0 - s * (1.0 / 120.0 - s * (1.0 / 252.0 - s * (1.0 / 240.0 - s * (1.0 / 132.0 - s * (691.0 / 32760.0))))));
    return y + __builtin_log(x) - 0.5 / x - series;
}

// ---- Unary ops

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

// ---- Binary ops

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

// ---- Compare, select, convert

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

/// Calls `f` with a value of the lane's element type.
template <typename F>
auto withLane(Lane lane, F f)
{
    switch (lane) {
    case Lane::F64:
        return f(double{});
    case Lane::S32:
        return f(std::int32_t{});
    case Lane::U32:
        return f(std::uint32_t{});
    case Lane::S64:
        return f(std::int64_t{});
    case Lane::U64:
        return f(std::uint64_t{});
    case Lane::Pred:
        return f(Byte{});
    case Lane::F32:
        break;
    }
    return f(float{});
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

TileStep findCompare(const CompareAttributes& compare, Lane operands)
{
    if (compare.isTotalOrder && operands == Lane::F32)
        return compareOf<InTotalOrder<std::int32_t>>(compare.direction);
    if (compare.isTotalOrder && operands == Lane::F64)
        return compareOf<InTotalOrder<std::int64_t>>(compare.direction);
    return withLane(operands, [&](auto element) { return compareOf<decltype(element)>(compare.direction); });
}

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

TileStep findSelect(std::int64_t width)
{
    return width == 1 ? selectStep<Byte> : width == 4 ? selectStep<std::uint32_t> : selectStep<std::uint64_t>;
}

template <typename To, typename From>
To converted(From x)
{
    if constexpr (std::is_same_v<To, From>)
        return x;
    else if constexpr (std::is_same_v<To, Byte>)
        return static_cast<Byte>(x != From(0));
    else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
        // Cut towards zero, held at the type's bounds; NaN becomes 0.
        constexpr auto kLow = static_cast<From>(std::numeric_limits<To>::min());
        constexpr From kBeyond
            = static_cast<From>(2) * static_cast<From>(std::uint64_t{1} << (std::numeric_limits<To>::digits - 1));
        if (x != x)
            return To(0);
        return x < kLow ? std::numeric_limits<To>::min() : x >= kBeyond ? std::numeric_limits<To>::max() : static_cast<To>(x);
    } else
        return static_cast<To>(x);
}

template <typename To, typename From>
void convertStep(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<To, From>(out, a, count, [](From x) { return converted<To, From>(x); });
}

TileStep findConvert(Lane from, Lane to)
{
    return withLane(from, [to](auto source) {
        return withLane(to, [](auto target) -> TileStep { return convertStep<decltype(target), decltype(source)>; });
    });
}

template <typename T>
void fillStep(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    auto* o = reinterpret_cast<T*>(out);
    const T value = *reinterpret_cast<const T*>(a);
    for (std::int64_t i = 0; i < count; ++i)
        o[i] = value;
}

TileStep findFill(std::int64_t width)
{
    return width == 1 ? fillStep<Byte>
        : width == 2  ? fillStep<std::uint16_t>
        : width == 4  ? fillStep<std::uint32_t>
                      : fillStep<std::uint64_t>;
}

void loadHalf(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<float, std::uint16_t>(out, a, count, [](std::uint16_t x) { return fromHalf(x); });
}
void loadBfloat16(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<float, std::uint16_t>(out, a, count, [](std::uint16_t x) { return fromBfloat16(x); });
}
void storeHalf(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<std::uint16_t, float>(out, a, count, [](float x) { return halfBits(x); });
}
void storeBfloat16(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<std::uint16_t, float>(out, a, count, [](float x) { return bfloat16Bits(x); });
}

void loadE4m3(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<float, std::uint8_t>(out, a, count, [](std::uint8_t x) { return fromE4m3(x); });
}
void loadE5m2(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<float, std::uint8_t>(out, a, count, [](std::uint8_t x) { return fromE5m2(x); });
}
void storeE4m3(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<std::uint8_t, float>(out, a, count, [](float x) { return e4m3Bits(x); });
}
void storeE5m2(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<std::uint8_t, float>(out, a, count, [](float x) { return e5m2Bits(x); });
}

template <typename To, typename From>
void castStep(std::byte* out, const std::byte* a, const std::byte*, const std::byte*, std::int64_t count)
{
    map1<To, From>(out, a, count, [](From x) { return static_cast<To>(x); });
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
        return loadHalf;
    case DType::BF16:
        return loadBfloat16;
    case DType::F8E4M3FN:
        return loadE4m3;
    case DType::F8E5M2:
        return loadE5m2;
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
        return storeHalf;
    case DType::BF16:
        return storeBfloat16;
    case DType::F8E4M3FN:
        return storeE4m3;
    case DType::F8E5M2:
        return storeE5m2;
    default:
        return nullptr;
    }
}

// ---- Reductions

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

// ---- Random numbers

inline std::uint32_t rotated(std::uint32_t bits, int by)
{
    return bits << by | bits >> (32 - by);
}

/// `threefry2x32` (core/support/threefry.h, which also has the source), both words combined, for counters with the same upper half.
void threefryRun(
    std::uint32_t* out, std::uint32_t key0, std::uint32_t key1, std::uint32_t upper, std::uint32_t lower, std::int64_t count)
{
    constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const std::uint32_t schedule[] = {key0, key1, key0 ^ key1 ^ 0x1BD11BDAU};
    for (std::int64_t i = 0; i < count; ++i) {
        std::uint32_t x = upper + schedule[0];
        std::uint32_t y = lower + static_cast<std::uint32_t>(i) + schedule[1];
#pragma GCC unroll 5
        for (std::uint32_t group = 0; group < 5; ++group) {
#pragma GCC unroll 4
            for (int round = 0; round < 4; ++round) {
                x += y;
                y = rotated(y, kRotations[group % 2][round]) ^ x;
            }
            x += schedule[(group + 1) % 3];
            y += schedule[(group + 2) % 3] + group + 1;
        }
        out[i] = x ^ y;
    }
}

void randomWordsStep(std::uint32_t* out, std::uint32_t key0, std::uint32_t key1, std::uint64_t first, std::int64_t count)
{
    while (count > 0) {
        const auto lower = static_cast<std::uint32_t>(first);
        const auto left = static_cast<std::int64_t>((std::uint64_t{1} << 32) - lower);
        const std::int64_t run = count < left ? count : left;
        threefryRun(out, key0, key1, static_cast<std::uint32_t>(first >> 32), lower, run);
        out += run;
        first += static_cast<std::uint64_t>(run);
        count -= run;
    }
}

} // namespace

const TileTable& MESHWRIGHT_TILE_TABLE()
{
    static constexpr TileTable kTable{MESHWRIGHT_TILE_NAME, findOp, findCompare, findConvert, findSelect, findFill, findLoad,
        findStore, findCombine, findCombineMembers, findReduceRow, randomWordsStep};
    return kTable;
}

} // namespace meshwright
