// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace meshwright::MESHWRIGHT_TILE_SET {

// For f32 these they are computed in double precision by short polynomials, which rounds correctly but for rare cases.

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
inline double erfInvDouble(double x)
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
inline double digammaOf(double x)
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

} // namespace meshwright::MESHWRIGHT_TILE_SET
