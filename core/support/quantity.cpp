// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/quantity.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <string>

namespace meshwright {

namespace {

/// `number` in units of the power of `base` that a letter stands for.
std::optional<std::int64_t> scaled(std::string_view number, char letter, std::int64_t base)
{
    constexpr std::string_view kLetters = "kmgt";
    auto value = parseInteger(number);
    const std::size_t power = kLetters.find(letter);
    if (!value || power == std::string_view::npos)
        return std::nullopt;
    for (std::size_t i = 0; i <= power && value; ++i)
        value = checkedMultiply(*value, base);
    return value;
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
    if (text.size() < 2 || (text.back() != 'k' && text.back() != 'K' && text.back() != 'M' && text.back() != 'G'))
        return std::nullopt;
    return scaled(text.substr(0, text.size() - 1), lower(text.back()), 1024);
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
        return scaled(text, unit.front(), 1024);
    if (unit.size() == 2 && unit.back() == 'b')
        return scaled(text, unit.front(), 1000);
    return std::nullopt;
}

} // namespace meshwright
