// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/number.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdlib>

namespace meshwright {

namespace {

/// What makes up a binary floating format.
struct FloatFormat {
    int width; ///< bits altogether
    int precision; ///< bits of the significand, the implied one included
    int maxExponent; ///< of a finite value 1.x * 2^e; the smallest normal one has 1 - maxExponent
    bool isFinite = false; ///< has no infinity: all ones are NaN, the largest exponent is as any other
};

FloatFormat formatOf(DType dtype)
{
    switch (dtype) {
    case DType::F16:
        return {16, 11, 15};
    case DType::BF16:
        return {16, 8, 127};
    case DType::F32:
        return {32, 24, 127};
    case DType::F8E4M3FN:
        return {8, 4, 7, true};
    case DType::F8E5M2:
        return {8, 3, 15};
    default:
        return {64, 53, 1023};
    }
}

} // namespace

std::uint64_t floatBits(double value, DType dtype)
{
    if (dtype == DType::F64)
        return std::bit_cast<std::uint64_t>(value);
    const FloatFormat format = formatOf(dtype);
    const int fractionBits = format.precision - 1;
    const std::uint64_t sign = std::signbit(value) ? std::uint64_t{1} << (format.width - 1) : 0;
    const std::uint64_t infinity = format.isFinite
        ? (std::uint64_t{1} << (format.width - 1)) - 1
        : ((std::uint64_t{1} << (format.width - format.precision)) - 1) << fractionBits;
    if (std::isnan(value))
        return sign | infinity | (std::uint64_t{1} << (fractionBits - 1));
    const double magnitude = std::fabs(value);
    if (std::isinf(magnitude))
        return sign | infinity;
    if (magnitude == 0.0)
        return sign;

    const int minExponent = 1 - format.maxExponent;
    const int exponent = std::max(std::ilogb(magnitude), minExponent);
    // An integer of at most `precision` bits: rounding to even is that of nearbyint; a carry goes into the exponent by itself.
    const double scaled = std::nearbyint(std::ldexp(magnitude, fractionBits - exponent));
    const auto significand = static_cast<std::uint64_t>(scaled);
    const std::uint64_t implied = std::uint64_t{1} << fractionBits;
    const std::uint64_t bits = significand < implied
        ? significand
        : (static_cast<std::uint64_t>(exponent - minExponent) << fractionBits) + significand;
    return sign | std::min(bits, infinity);
}

double floatFromBits(std::uint64_t bits, DType dtype)
{
    if (dtype == DType::F64)
        return std::bit_cast<double>(bits);
    const FloatFormat format = formatOf(dtype);
    const int fractionBits = format.precision - 1;
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << fractionBits) - 1);
    const std::uint64_t exponentMask = (std::uint64_t{1} << (format.width - format.precision)) - 1;
    const std::uint64_t exponent = (bits >> fractionBits) & exponentMask;
    const bool negative = ((bits >> (format.width - 1)) & 1) != 0;
    double magnitude = 0.0;
    if (format.isFinite && exponent == exponentMask && fraction + 1 == std::uint64_t{1} << fractionBits)
        magnitude = std::nan("");
    else if (exponent == exponentMask && !format.isFinite)
        magnitude = fraction == 0 ? HUGE_VAL : std::nan("");
    else if (exponent == 0)
        magnitude = std::ldexp(static_cast<double>(fraction), 1 - format.maxExponent - fractionBits);
    else
        magnitude = std::ldexp(static_cast<double>(fraction | (std::uint64_t{1} << fractionBits)),
            static_cast<int>(exponent) - format.maxExponent - fractionBits);
    return negative ? -magnitude : magnitude;
}

namespace {

/// A magnitude as `digits * 10^exponent`, without trailing zeros.
struct Decimal {
    std::string digits;
    int exponent = 0;
};

/// The first digits of a positive value as APFloat finds them: the exact significand is first cut (not rounded) to about as many
/// digits as asked for, then rounded half up. So 0.9f has the six digits 899999, and not 9.
Decimal decimalOf(double magnitude, int precision)
{
    int exponent = 0;
    const double fraction = std::frexp(magnitude, &exponent);
    auto significand = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
    exponent += std::countr_zero(significand) - 53;
    significand >>= std::countr_zero(significand);
    const int places = std::max(0, -exponent);

    Decimal decimal{fmt::format("{:.{}f}", magnitude, places), -places};
    std::erase(decimal.digits, '.');
    decimal.digits.erase(0, decimal.digits.find_first_not_of('0'));

    const int bits = static_cast<int>(std::floor(std::log2(static_cast<long double>(magnitude)) + places * std::log2(10.0L))) + 1;
    const int needed = (precision * 196 + 58) / 59;
    const int cut = bits > needed ? (bits - needed) * 59 / 196 : 0;
    decimal.digits.resize(decimal.digits.size() - static_cast<std::size_t>(cut));
    decimal.exponent += cut;

    const auto wanted = static_cast<std::size_t>(precision);
    if (decimal.digits.size() > wanted) {
        const bool up = decimal.digits[wanted] >= '5';
        decimal.exponent += static_cast<int>(decimal.digits.size() - wanted);
        decimal.digits.resize(wanted);
        std::size_t last = wanted;
        while (up && last > 0 && decimal.digits[last - 1] == '9')
            decimal.digits[--last] = '0';
        if (up && last > 0) {
            ++decimal.digits[last - 1];
        } else if (up) {
            decimal.digits[0] = '1';
            ++decimal.exponent;
        }
    }
    const std::size_t used = decimal.digits.find_last_not_of('0') + 1;
    decimal.exponent += static_cast<int>(decimal.digits.size() - used);
    decimal.digits.resize(used);
    return decimal;
}

/// `1.250000e+00`: six decimals and an exponent of at least two digits.
std::string exponentText(const Decimal& decimal)
{
    const int leading = decimal.exponent + static_cast<int>(decimal.digits.size()) - 1;
    std::string decimals = decimal.digits.substr(1);
    decimals.resize(6, '0');
    return fmt::format("{}.{}e{}{:02}", decimal.digits[0], decimals, leading < 0 ? '-' : '+', std::abs(leading));
}

/// As a decimal fraction where that needs few zeros, else with an exponent; integers have no point.
std::string plainText(const Decimal& decimal, int precision)
{
    constexpr int kPadding = 3;
    const std::string& digits = decimal.digits;
    const int count = static_cast<int>(digits.size());
    const int leading = decimal.exponent + count - 1;
    if (decimal.exponent >= 0 ? decimal.exponent > kPadding || count + decimal.exponent > precision : leading < -kPadding)
        return fmt::format(
            "{}.{}E{}{}", digits[0], count == 1 ? "0" : digits.substr(1), leading < 0 ? '-' : '+', std::abs(leading));
    if (decimal.exponent >= 0)
        return digits + std::string(static_cast<std::size_t>(decimal.exponent), '0');
    if (leading >= 0)
        return digits.substr(0, static_cast<std::size_t>(leading) + 1) + "."
            + digits.substr(static_cast<std::size_t>(leading) + 1);
    return "0." + std::string(static_cast<std::size_t>(-leading - 1), '0') + digits;
}

} // namespace

std::string floatText(double value, DType dtype)
{
    const FloatFormat format = formatOf(dtype);
    const std::uint64_t bits = floatBits(value, dtype);
    const double magnitude = std::fabs(floatFromBits(bits, dtype));
    const std::string sign = std::signbit(value) ? "-" : "";
    if (magnitude == 0.0)
        return sign + "0.000000e+00";
    if (std::isfinite(magnitude)) {
        std::string text = sign + exponentText(decimalOf(magnitude, 6));
        if (floatBits(std::strtod(text.c_str(), nullptr), dtype) == bits)
            return text;
        const int precision = 2 + format.precision * 59 / 196;
        text = sign + plainText(decimalOf(magnitude, precision), precision);
        if (text.find('.') != std::string::npos)
            return text;
    }
    return fmt::format("0x{:X}", bits);
}

void appendIntegerText(std::string& out, std::int64_t value, DType dtype)
{
    switch (dtype) {
    case DType::Pred:
        out += value != 0 ? "true" : "false";
        return;
    case DType::U8:
        fmt::format_to(std::back_inserter(out), "{}", static_cast<std::uint8_t>(value));
        return;
    case DType::U16:
        fmt::format_to(std::back_inserter(out), "{}", static_cast<std::uint16_t>(value));
        return;
    case DType::U32:
        fmt::format_to(std::back_inserter(out), "{}", static_cast<std::uint32_t>(value));
        return;
    case DType::U64:
        fmt::format_to(std::back_inserter(out), "{}", static_cast<std::uint64_t>(value));
        return;
    default:
        fmt::format_to(std::back_inserter(out), "{}", value);
    }
}

} // namespace meshwright
