// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/quantity.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <string>

namespace meshwright {

namespace {

/// `number`, which may have a fraction, times a power of `base`. Exact, or nothing.
std::optional<std::int64_t> scaled(std::string_view number, std::int64_t base, std::size_t power)
{
    const std::size_t point = number.find('.');
    std::string digits(number.substr(0, point));
    std::string_view fraction = point == std::string_view::npos ? std::string_view() : number.substr(point + 1);
    if (digits.empty() || (point != std::string_view::npos && (fraction.empty() || digits.front() == '-')))
        return std::nullopt;
    while (fraction.ends_with('0'))
        fraction.remove_suffix(1);
    auto value = parseInteger(digits.append(fraction));
    for (std::size_t i = 0; i < power && value; ++i)
        value = checkedMultiply(*value, base);
    for (std::size_t i = 0; i < fraction.size() && value; ++i)
        value = *value % 10 == 0 ? std::optional(*value / 10) : std::nullopt;
    return value;
}

/// Likewise, times the power of `base` that a letter stands for.
std::optional<std::int64_t> inUnits(std::string_view number, char letter, std::int64_t base)
{
    constexpr std::string_view kLetters = "kmgt";
    const std::size_t power = kLetters.find(letter);
    return power == std::string_view::npos ? std::nullopt : scaled(number, base, power + 1);
}

/// "1048576" of "1,048,576"; empty: the text has no groups of three digits.
std::string withoutGroups(std::string_view text)
{
    std::string digits;
    for (std::size_t at = text.find(','); at != std::string_view::npos; at = text.find(',')) {
        const bool isFirst = digits.empty();
        if (at > 3 || at == 0 || (!isFirst && at != 3) || text.find_first_not_of("0123456789,") != std::string_view::npos)
            return {};
        digits += text.substr(0, at);
        text.remove_prefix(at + 1);
    }
    return digits.empty() || text.size() != 3 ? std::string() : digits + std::string(text);
}

char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

} // namespace

std::optional<std::int64_t> parseCount(std::string_view text)
{
    if (const auto plain = parseInteger(text))
        return plain;
    if (const std::string digits = withoutGroups(text); !digits.empty())
        return parseInteger(digits);
    constexpr std::int64_t kMostDigits = 18; // of 64 bits
    if (const auto e = text.find_first_of("eE"); e != std::string_view::npos) {
        std::string_view power = text.substr(e + 1);
        if (power.starts_with('+'))
            power.remove_prefix(1);
        const auto zeros = parseInteger(power);
        return zeros && *zeros >= 0 && *zeros <= kMostDigits ? scaled(text.substr(0, e), 10, static_cast<std::size_t>(*zeros))
                                                             : std::nullopt;
    }
    constexpr std::string_view kUnits = "kKMGT";
    if (text.size() < 2 || kUnits.find(text.back()) == std::string_view::npos)
        return std::nullopt;
    return inUnits(text.substr(0, text.size() - 1), lower(text.back()), 1024);
}

std::optional<std::int64_t> parseBytes(std::string_view text)
{
    if (const auto plain = parseInteger(text))
        return plain;
    std::string unit;
    while (!text.empty() && (text.back() < '0' || text.back() > '9')) {
        unit.insert(unit.begin(), lower(text.back()));
        text.remove_suffix(1);
    }
    if (unit == "b")
        return parseInteger(text);
    if (unit.size() == 1 || (unit.size() == 3 && unit.ends_with("ib")))
        return inUnits(text, unit.front(), 1024);
    if (unit.size() == 2 && unit.back() == 'b')
        return inUnits(text, unit.front(), 1000);
    return std::nullopt;
}

} // namespace meshwright
