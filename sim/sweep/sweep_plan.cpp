// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/sweep/sweep_plan.h"

#include "core/support/quantity.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

namespace meshwright::sim {

namespace {

constexpr std::string_view kSequence = "sequence=";
constexpr std::int64_t kMostInteger = std::numeric_limits<std::int64_t>::max();

Problem unreadable(const std::string& path, std::string message, std::string fix)
{
    return {"MW1776", fmt::format("{}: {}", path, message), std::move(fix), Place{"--vary " + path}};
}

Problem tooMany(const std::string& path)
{
    return {"MW1777", fmt::format("{} takes more than {} values", path, kMostSweepPoints), "vary it in fewer steps",
        Place{"--vary " + path}};
}

/// `4096`, `4k`, `16GiB`, `2^6`; nothing for anything else.
std::optional<std::int64_t> integerOf(std::string_view text)
{
    if (const std::size_t caret = text.find('^'); caret != std::string_view::npos) {
        const auto base = parseInteger(text.substr(0, caret));
        const auto exponent = parseInteger(text.substr(caret + 1));
        if (!base || !exponent || *base < 2 || *exponent < 0 || *exponent > 62)
            return std::nullopt;
        std::int64_t value = 1;
        for (std::int64_t i = 0; i < *exponent; ++i) {
            if (value > kMostInteger / *base)
                return std::nullopt;
            value *= *base;
        }
        return value;
    }
    const auto count = parseCount(text);
    return count ? count : parseBytes(text);
}

/// True for `12` and `2^6`, of any size.
bool looksLikeNumber(std::string_view text)
{
    const std::string_view base = text.substr(0, text.find('^'));
    const std::string_view exponent = base.size() < text.size() ? text.substr(base.size() + 1) : std::string_view("0");
    const auto isDigits = [](std::string_view part) {
        return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    return isDigits(base) && isDigits(exponent);
}

/// The integers of `1..8` or `2^0..2^6`; nothing when the text is not a range.
std::optional<Result<std::vector<std::int64_t>>> rangeOf(const std::string& path, std::string_view text)
{
    const std::size_t dots = text.find("..");
    if (dots == std::string_view::npos)
        return std::nullopt;
    const std::string_view first = trimmed(text.substr(0, dots));
    const std::string_view last = trimmed(text.substr(dots + 2));
    const auto from = integerOf(first);
    const auto to = integerOf(last);
    if ((from || looksLikeNumber(first)) && !to && looksLikeNumber(last))
        return unreadable(path, fmt::format("the range {} goes beyond the largest whole number, {}", text, kMostInteger),
            fmt::format("end it earlier: a sweep has {} points at most", kMostSweepPoints));
    if (!from || !to)
        return std::nullopt; // `a..b` of a path or a text, then
    if (*from > *to)
        return unreadable(
            path, fmt::format("the range {} ends before it begins", text), fmt::format("write {}..{}", last, first));
    const std::string_view base = first.substr(0, std::min(first.find('^'), first.size()));
    const bool powers
        = base.size() < first.size() && last.starts_with(base) && last.size() > base.size() && last[base.size()] == '^';
    const std::int64_t factor = powers ? *parseInteger(base) : 0;
    std::vector<std::int64_t> values;
    for (std::int64_t value = *from;;) {
        values.push_back(value);
        if (static_cast<std::int64_t>(values.size()) > kMostSweepPoints)
            return tooMany(path);
        if (powers ? value > *to / factor : value >= *to)
            break;
        value = powers ? value * factor : value + 1;
    }
    return values;
}

/// The names before the `=` of `data*model=64`; empty when the text is nothing of that kind.
std::vector<std::string> factorNames(std::string_view text)
{
    const std::size_t equals = text.find('=');
    const std::size_t star = text.find('*');
    if (equals == std::string_view::npos || star == std::string_view::npos || star > equals)
        return {};
    std::vector<std::string> names;
    for (const std::string& part : split(text.substr(0, equals), '*')) {
        const std::string_view name = trimmed(part);
        if (name.empty() || !std::ranges::all_of(name, isNameLetter))
            return {};
        names.emplace_back(name);
    }
    return names;
}

/// In how many ways `total` is a product of `factors` factors in their order, at most `most`: each prime's e copies are shared out in C(e + f - 1, e).
std::int64_t factorisationCount(std::int64_t total, std::int64_t factors, std::int64_t most)
{
    std::int64_t count = 1;
    const auto share = [&](std::int64_t copies) {
        for (std::int64_t i = 1; i <= copies && count < most; ++i)
            count = count * (factors - 1 + i) / i;
    };
    for (std::int64_t prime = 2; prime <= total / prime; ++prime) {
        std::int64_t copies = 0;
        for (; total % prime == 0; total /= prime)
            ++copies;
        share(copies);
    }
    share(total > 1 ? 1 : 0);
    return std::min(count, most);
}

/// Adds a value for each way to write `total` as a product of one factor for each name, those of the first name ascending.
void addFactorisations(const std::string& path, const std::vector<std::string>& names, std::int64_t total,
    std::vector<std::int64_t>& factors, std::vector<SweepValue>& values)
{
    if (factors.size() + 1 == names.size()) {
        factors.push_back(total);
        SweepValue value;
        for (std::size_t i = 0; i < names.size(); ++i) {
            value.text += fmt::format("{}{}={}", i == 0 ? "" : ",", names[i], factors[i]);
            value.settings.push_back(fmt::format("{}.{}={}", path, names[i], factors[i]));
        }
        values.push_back(std::move(value));
        factors.pop_back();
        return;
    }
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= total / d; ++d) {
        if (total % d != 0)
            continue;
        divisors.push_back(d);
        if (d != total / d)
            divisors.push_back(total / d);
    }
    std::sort(divisors.begin(), divisors.end());
    for (const std::int64_t factor : divisors) {
        factors.push_back(factor);
        addFactorisations(path, names, total / factor, factors, values);
        factors.pop_back();
    }
}

Result<Done> addProducts(
    const std::string& path, const std::vector<std::string>& names, std::string_view text, std::vector<SweepValue>& values)
{
    constexpr std::int64_t kMostTotal = std::int64_t{1} << 24; // its divisors are found by trial
    const std::string_view total = trimmed(text.substr(text.find('=') + 1));
    std::vector<std::int64_t> totals;
    if (auto range = rangeOf(path, total)) {
        if (!*range)
            return range->error();
        totals = **std::move(range);
    } else if (const auto one = integerOf(total)) {
        totals = {*one};
    }
    if (totals.empty() || totals.front() < 1 || totals.back() > kMostTotal)
        return unreadable(path, fmt::format("\"{}\" is not a number of devices", total), "write data*model=64");
    if (std::set<std::string>(names.begin(), names.end()).size() < names.size())
        return unreadable(path, fmt::format("an axis occurs twice in \"{}\"", text), "name each axis once");
    std::int64_t count = static_cast<std::int64_t>(values.size());
    for (const std::int64_t one : totals) {
        count += factorisationCount(one, static_cast<std::int64_t>(names.size()), kMostSweepPoints + 1);
        if (count > kMostSweepPoints)
            return tooMany(path);
    }
    for (const std::int64_t one : totals) {
        std::vector<std::int64_t> factors;
        addFactorisations(path, names, one, factors, values);
    }
    return Done{};
}

/// Adds what one piece between commas stands for.
Result<Done> addValues(const std::string& path, const std::string& text, std::vector<SweepValue>& values)
{
    if (trimmed(text).empty())
        return unreadable(path, "a value is empty", "write the values with commas between them");
    if (const auto names = factorNames(text); !names.empty())
        return addProducts(path, names, text, values);
    const std::string value(trimmed(text));
    if (auto range = rangeOf(path, value)) {
        if (!*range)
            return range->error();
        for (const std::int64_t one : **range)
            values.push_back({fmt::format("{}", one), {fmt::format("{}={}", path, one)}});
        return Done{};
    }
    const auto integer = integerOf(value);
    const std::string exact = integer && !parseInteger(value) ? fmt::format("{}", *integer) : value;
    values.push_back({exact, {path + "=" + exact}});
    return Done{};
}

/// The pieces between commas that are in no brackets or quotes; nothing when those do not close.
std::optional<std::vector<std::string>> piecesOf(std::string_view text)
{
    std::vector<std::string> pieces(1);
    std::string open;
    char quote = '\0';
    for (const char c : text) {
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == '(' || c == '[' || c == '{') {
            open += c == '(' ? ')' : c == '[' ? ']' : '}';
        } else if (c == ')' || c == ']' || c == '}') {
            if (open.empty() || open.back() != c)
                return std::nullopt;
            open.pop_back();
        } else if (c == ',' && open.empty()) {
            pieces.emplace_back();
            continue;
        }
        pieces.back() += c;
    }
    if (!open.empty() || quote != '\0')
        return std::nullopt;
    return pieces;
}

} // namespace

std::string pointsText(std::int64_t count)
{
    return fmt::format("{} {}", count, count == 1 ? "point" : "points");
}

std::int64_t SweepPlan::pointCount() const
{
    std::int64_t count = 1;
    for (const SweepParameter& parameter : parameters)
        count *= static_cast<std::int64_t>(parameter.values.size());
    return count;
}

std::vector<std::size_t> SweepPlan::valuesAt(std::int64_t point) const
{
    assert(point >= 0 && point < pointCount());
    std::vector<std::size_t> values(parameters.size());
    for (std::size_t i = parameters.size(); i-- > 0;) {
        const auto size = static_cast<std::int64_t>(parameters[i].values.size());
        values[i] = static_cast<std::size_t>(point % size);
        point /= size;
    }
    return values;
}

std::vector<std::string> SweepPlan::settingsAt(std::int64_t point) const
{
    std::vector<std::string> all = settings;
    const std::vector<std::size_t> values = valuesAt(point);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const SweepValue& value = parameters[i].values[values[i]];
        all.insert(all.end(), value.settings.begin(), value.settings.end());
    }
    return all;
}

bool SweepPlan::variesSequence() const
{
    return std::ranges::any_of(parameters, [](const SweepParameter& parameter) {
        return parameter.values.size() > 1 && std::ranges::any_of(parameter.values, [](const SweepValue& value) {
            return std::ranges::any_of(value.settings, [](const std::string& one) { return one.starts_with(kSequence); });
        });
    });
}

std::int64_t SweepPlan::unitsAt(std::int64_t point) const
{
    std::int64_t units = 1;
    for (const std::string& setting : variesSequence() ? settingsAt(point) : std::vector<std::string>()) {
        if (setting.starts_with(kSequence)) {
            const std::string text = setting.substr(kSequence.size());
            units = std::max<std::int64_t>(1, parseInteger(text).value_or(parseCount(text).value_or(1)));
        }
    }
    return units;
}

Result<std::vector<SweepValue>> sweepValues(const std::string& path, std::span<const std::string> texts)
{
    std::vector<SweepValue> values;
    for (const std::string& text : texts) {
        if (const auto added = addValues(path, text, values); !added)
            return added.error();
        if (static_cast<std::int64_t>(values.size()) > kMostSweepPoints)
            return tooMany(path);
    }
    return values;
}

Result<SweepParameter> parseVary(std::string_view text)
{
    const std::size_t equals = text.find('=');
    const std::string path(trimmed(text.substr(0, std::min(equals, text.size()))));
    if (equals == std::string_view::npos || path.empty())
        return Problem{"MW1775", fmt::format("\"{}\" does not state what to vary and over which values", text),
            "write path=values, such as batch=1k,4k or mesh=\"data*model=64\"", Place{"--vary"}};
    const auto pieces = piecesOf(text.substr(equals + 1));
    if (!pieces)
        return unreadable(path, "brackets or quotes do not close", "close them, or put the value in quotes");
    auto values = sweepValues(path, *pieces);
    if (!values)
        return values.error();
    return SweepParameter{path, *std::move(values)};
}

Problems checkPlan(const SweepPlan& plan)
{
    Problems problems;
    if (plan.parameters.empty())
        return {Problem{"MW1781", "nothing is varied", "add --vary batch=1k,4k, or `vary:` to the sweep file"}};
    for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) {
            const std::string& a = plan.parameters[k].name;
            const std::string& b = plan.parameters[i].name;
            const std::string& longer = a.size() > b.size() ? a : b;
            const std::string& shorter = a.size() > b.size() ? b : a;
            if (a == b || (longer.starts_with(shorter) && (longer[shorter.size()] == '.' || longer[shorter.size()] == '[')))
                problems.push_back({"MW1778",
                    a == b ? fmt::format("{} is varied twice", a)
                           : fmt::format("{} is a part of {}, which is varied too", longer, shorter),
                    a == b ? "give all its values in one --vary" : "vary one of the two"});
        }
    }
    double count = 1.0;
    for (const SweepParameter& parameter : plan.parameters)
        count *= static_cast<double>(parameter.values.size());
    if (count > static_cast<double>(kMostSweepPoints))
        problems.push_back({"MW1777", fmt::format("the sweep has {:.4g} points; {} is the most", count, kMostSweepPoints),
            "vary less, or in larger steps"});
    return problems;
}

} // namespace meshwright::sim
