// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// `parts` with `separator` between them.
std::string join(std::span<const std::string> parts, std::string_view separator);

/// `text` without white space at either end.
std::string_view trimmed(std::string_view text);

/// True of letters from A to Z, digits and `_`, whatever the locale.
bool isNameLetter(char c);

/// The number that bytes make, the least significant first. Precondition: at most eight.
std::uint64_t littleEndian(std::string_view bytes);

/// `text` with the letters A to Z small, whatever the locale.
std::string lowerCase(std::string_view text);

/// The pieces of `text` between the separators, at least one, each as it stands.
std::vector<std::string> split(std::string_view text, char separator);

/// The whole of `text` as a decimal integer; nothing when it is not one or does not fit 64 bits.
std::optional<std::int64_t> parseInteger(std::string_view text);

/// The whole of `text` as a number; nothing when it is not one, or not finite.
std::optional<double> parseNumber(std::string_view text);

/// The candidate that differs from `name` by the fewest edits (of two, one that begins with it), at most a third of its length (at least one); else the only one that begins with it.
std::optional<std::string> nearestName(std::string_view name, std::span<const std::string> candidates);

/// `did you mean "data"?` or, when nothing is near, `one of: data, model`; empty without candidates.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

/// Bytes with a binary unit: `512 B`, `1.50 KiB`, `16.0 GiB`.
std::string formatBytes(double bytes);
inline std::string formatBytes(std::int64_t bytes)
{
    return formatBytes(static_cast<double>(bytes));
}

/// Seconds with three figures and a unit: `12.3 µs`, `4.56 ms`, `1.23 s`, `2 min 5 s`.
std::string formatSeconds(double seconds);

/// A count with a decimal unit: `950`, `12.3 k`, `4.56 M`, `1.23 T`.
std::string formatCount(double count);

/// What happens in a second, with three figures: `7.06`, `950`, `12.3 k`.
std::string formatRate(double rate);

/// Whole: "16,384".
std::string formatWhole(std::int64_t count);

/// `word` as a POSIX shell reads it: plain where it can be, in double quotes where it holds single ones, else in single quotes.
std::string shellQuoted(std::string_view word);

/// How many columns a terminal uses for `text` in UTF-8 (one for each code point; combining marks are not treated).
std::size_t displayWidth(std::string_view text);

/// The columns of the widest line of `text`.
std::size_t widestLine(std::string_view text);

} // namespace meshwright
