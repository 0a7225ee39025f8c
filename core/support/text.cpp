// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

namespace meshwright {

std::string join(std::span<const std::string> parts, std::string_view separator)
{
    return fmt::format("{}", fmt::join(parts, separator));
}

std::string_view trimmed(std::string_view text)
{
    constexpr std::string_view kSpace = " \t\r\n";
    const auto first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos)
        return {};
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool isNameLetter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::uint64_t littleEndian(std::string_view bytes)
{
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
        value = value << 8U | static_cast<unsigned char>(bytes[i]);
    return value;
}

std::string lowerCase(std::string_view text)
{
    std::string lower(text);
    for (char& letter : lower) {
        if (letter >= 'A' && letter <= 'Z')
            letter = static_cast<char>(letter - 'A' + 'a');
    }
    return lower;
}

std::vector<std::string> split(std::string_view text, char separator)
{
    std::vector<std::string> parts;
    std::size_t start = 0;
    for (;;) {
        const std::size_t end = text.find(separator, start);
        if (end == std::string_view::npos) {
            parts.emplace_back(text.substr(start));
            return parts;
        }
        parts.emplace_back(text.substr(start, end - start));
        start = end + 1;
    }
}

std::optional<std::int64_t> parseInteger(std::string_view text)
{
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

std::optional<double> parseNumber(std::string_view text)
{
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
        return std::nullopt;
    return value;
}

namespace {

/// Insertions, deletions, substitutions and swaps of neighbours ("optimal string alignment").
std::size_t editDistance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1);
    std::vector<std::size_t> previous(b.size() + 1);
    std::vector<std::size_t> beforePrevious(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        beforePrevious.swap(previous);
        previous.swap(row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], beforePrevious[j - 2] + 1);
        }
    }
    return row[b.size()];
}

} // namespace

std::optional<std::string> nearestName(std::string_view name, std::span<const std::string> candidates)
{
    const std::size_t limit = std::max<std::size_t>(1, name.size() / 3);
    const std::string* best = nullptr;
    std::size_t bestDistance = limit + 1;
    for (const std::string& candidate : candidates) {
        if (std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size()) > limit)
            continue; // as many edits at least
        const std::size_t distance = editDistance(name, candidate);
        const bool isBegun = best != nullptr && distance == bestDistance && candidate.starts_with(name)
            && !best->starts_with(name); // "h10" is "h100" rather than "a10"
        if (distance < bestDistance || isBegun) {
            bestDistance = distance;
            best = &candidate;
        }
    }
    if (best != nullptr)
        return *best;
    const auto begins = [&](const std::string& candidate) { return name.size() >= 3 && candidate.starts_with(name); };
    const auto longer = std::ranges::find_if(candidates, begins);
    if (longer == candidates.end() || std::any_of(longer + 1, candidates.end(), begins))
        return std::nullopt;
    return *longer;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates)
{
    if (candidates.empty())
        return {};
    if (const auto near = nearestName(name, candidates))
        return fmt::format("did you mean \"{}\"?", *near);
    return "one of: " + join(candidates, ", ");
}

namespace {

/// Three significant figures, without an exponent for values from 1 up to 1000.
std::string threeFigures(double value)
{
    const double size = std::fabs(value);
    if (size >= 99.95)
        return fmt::format("{:.0f}", value);
    if (size >= 9.995)
        return fmt::format("{:.1f}", value);
    return fmt::format("{:.2f}", value);
}

} // namespace

std::string formatBytes(double bytes)
{
    constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    std::size_t unit = 0;
    while (std::fabs(bytes) >= 1024.0 && unit + 1 < kUnits.size()) {
        bytes /= 1024.0;
        ++unit;
    }
    return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{} {}", threeFigures(bytes), kUnits[unit]);
}

std::string formatSeconds(double seconds)
{
    if (seconds == 0.0)
        return "0 s";
    if (seconds < 0.0)
        return "-" + formatSeconds(-seconds);
    if (seconds >= 120.0) {
        constexpr double kHour = 3600.0;
        constexpr double kDay = 24.0 * kHour;
        // In two units, of which the smaller one is rounded.
        const auto twoUnits = [&](double unit, std::int64_t most, const char* larger, const char* smaller) {
            const auto whole = static_cast<std::int64_t>(std::llround(seconds / unit));
            return fmt::format("{} {} {} {}", whole / most, larger, whole % most, smaller);
        };
        if (std::llround(seconds / kHour) >= 48 && seconds < 1e15)
            return twoUnits(kHour, 24, "d", "h");
        if (seconds >= 1e15)
            return fmt::format("{:.3g} d", seconds / kDay);
        return std::llround(seconds) >= 3600 ? twoUnits(60.0, 60, "h", "min") : twoUnits(1.0, 60, "min", "s");
    }
    if (seconds >= 0.9995)
        return threeFigures(seconds) + " s";
    if (seconds >= 0.9995e-3)
        return threeFigures(seconds * 1e3) + " ms";
    if (seconds >= 0.9995e-6)
        return threeFigures(seconds * 1e6) + " µs";
    return threeFigures(seconds * 1e9) + " ns";
}

std::string formatCount(double count)
{
    constexpr std::array kUnits = {"", " k", " M", " G", " T", " P", " E"};
    std::size_t unit = 0;
    while (std::fabs(count) >= 999.5 && unit + 1 < kUnits.size()) {
        count /= 1000.0;
        ++unit;
    }
    return unit == 0 ? fmt::format("{:.0f}", count) : threeFigures(count) + kUnits[unit];
}

std::string formatRate(double rate)
{
    return std::fabs(rate) < 999.5 ? threeFigures(rate) : formatCount(rate);
}

std::string formatWhole(std::int64_t count)
{
    std::string text = fmt::format("{}", count);
    const std::ptrdiff_t digits = count < 0 ? 1 : 0;
    for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > digits; at -= 3)
        text.insert(static_cast<std::size_t>(at), ",");
    return text;
}

std::string shellQuoted(std::string_view word)
{
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos)
        return std::string(word);
    constexpr std::string_view kSpecialInDoubleQuotes = "\"$`\\!";
    if (word.find('\'') != std::string_view::npos && word.find_first_of(kSpecialInDoubleQuotes) == std::string_view::npos)
        return fmt::format("\"{}\"", word);
    std::string quoted = "'";
    for (const char c : word)
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::size_t displayWidth(std::string_view text)
{
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::size_t widestLine(std::string_view text)
{
    std::size_t widest = 0;
    while (true) {
        const std::size_t end = text.find('\n');
        widest = std::max(widest, displayWidth(text.substr(0, end)));
        if (end == std::string_view::npos)
            return widest;
        text.remove_prefix(end + 1);
    }
}

} // namespace meshwright
