// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// The deepest nesting of lists and objects that is read.
inline constexpr int kDeepestJson = 32;

/// The most values (numbers, texts, lists, objects) of a text that is read: as values of nlohmann's they take 100 bytes each and more.
inline constexpr std::size_t kMostJsonValues = std::size_t{4} << 20;

/// Whether a JSON text nests as deep, and has as many values, as is read. Nothing need be right about the text.
inline bool isWithinJsonLimits(std::string_view text, std::size_t mostValues = kMostJsonValues)
{
    int depth = 0;
    int deepest = 0;
    std::size_t values = 1;
    bool inText = false;
    for (std::size_t i = 0; i < text.size() && deepest <= kDeepestJson && values <= mostValues; ++i) {
        const char c = text[i];
        if (inText) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                inText = false;
        } else if (c == '"') {
            inText = true;
        } else if (c == '[' || c == '{') {
            deepest = std::max(deepest, ++depth);
            ++values;
        } else if (c == ']' || c == '}') {
            --depth;
        } else if (c == ',') {
            ++values;
        }
    }
    return deepest <= kDeepestJson && values <= mostValues;
}

/// Takes members out of JSON objects of one type of document and notes everything that is missing or has the wrong form, each with its path, all
/// under one problem id. `Json` is nlohmann's: a template, so that its costly header stays in the sources.
template <typename Json>
class JsonReader {
public:
    JsonReader(std::string id, std::string file)
        : m_id(std::move(id))
        , m_file(std::move(file))
    {
    }

    const Problems& problems() const { return m_problems; }
    bool tooMany() const { return m_problems.size() >= kMostProblems; }

    void wrong(const std::string& path, const std::string& message)
    {
        if (!tooMany())
            m_problems.push_back({m_id, message, {}, Place{m_file, 0, 0, path}});
    }

    /// The member; null, and noted unless it may be absent, when there is none.
    const Json* member(const Json& object, const char* key, const std::string& path, bool mayBeAbsent = false)
    {
        if (!object.is_object()) {
            wrong(path, fmt::format("expected an object, found {}", object.type_name()));
            return nullptr;
        }
        const auto found = object.find(key);
        if (found != object.end())
            return &*found;
        if (!mayBeAbsent)
            wrong(path, fmt::format("\"{}\" is missing", key));
        return nullptr;
    }

    std::string text(const Json& object, const char* key, const std::string& path, bool mayBeAbsent = false)
    {
        const Json* value = member(object, key, path, mayBeAbsent);
        if (value == nullptr)
            return {};
        if (value->is_string())
            return value->template get<std::string>();
        wrong(join(path, key), fmt::format("expected text, found {}", value->type_name()));
        return {};
    }

    bool truth(const Json& object, const char* key, const std::string& path, bool mayBeAbsent = false)
    {
        const Json* value = member(object, key, path, mayBeAbsent);
        if (value == nullptr)
            return false;
        if (value->is_boolean())
            return value->template get<bool>();
        wrong(join(path, key), fmt::format("expected true or false, found {}", value->type_name()));
        return false;
    }

    /// A finite number; null is not a number where that is allowed.
    double number(const Json& object, const char* key, const std::string& path, double otherwise = 0.0, bool mayBeAbsent = false)
    {
        const Json* value = member(object, key, path, mayBeAbsent);
        return value == nullptr ? otherwise : numberOf(*value, join(path, key));
    }

    std::optional<double> optionalNumber(const Json& object, const char* key, const std::string& path)
    {
        const Json* value = member(object, key, path, true);
        if (value == nullptr)
            return std::nullopt;
        return numberOf(*value, join(path, key));
    }

    double numberOf(const Json& value, const std::string& path)
    {
        if (value.is_number()) {
            const double number = value.template get<double>();
            if (std::isfinite(number))
                return number;
        }
        wrong(path, fmt::format("expected a number, found {}", value.type_name()));
        return 0.0;
    }

    /// As `number`, but what was not finite when it was written (null) is NaN.
    double measured(const Json& object, const char* key, const std::string& path)
    {
        const Json* value = member(object, key, path);
        return value == nullptr ? 0.0 : measuredOf(*value, join(path, key));
    }

    double measuredOf(const Json& value, const std::string& path)
    {
        return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : numberOf(value, path);
    }

    /// An integer from `least` on.
    std::int64_t integer(
        const Json& object, const char* key, const std::string& path, std::int64_t least = 0, bool mayBeAbsent = false)
    {
        const Json* value = member(object, key, path, mayBeAbsent);
        return value == nullptr ? least : integerOf(*value, join(path, key), least);
    }

    std::int64_t integerOf(const Json& value, const std::string& path, std::int64_t least = 0)
    {
        const bool fits = value.is_number_integer()
            && (!value.is_number_unsigned()
                || value.template get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
        if (fits && value.template get<std::int64_t>() >= least)
            return value.template get<std::int64_t>();
        wrong(path,
            fmt::format("expected an integer from {} on, found {}", least, value.is_number() ? value.dump() : value.type_name()));
        return least;
    }

    /// Calls `read(element, path)` for each element of a list. Stops early when there are too many problems.
    template <typename Read>
    void list(const Json& object, const char* key, const std::string& path, bool mayBeAbsent, Read read)
    {
        const Json* value = member(object, key, path, mayBeAbsent);
        if (value == nullptr)
            return;
        if (!value->is_array()) {
            wrong(join(path, key), fmt::format("expected a list, found {}", value->type_name()));
            return;
        }
        std::size_t index = 0;
        for (const Json& element : *value) {
            if (tooMany())
                return;
            read(element, fmt::format("{}[{}]", join(path, key), index++));
        }
    }

    static std::string join(const std::string& path, const char* key)
    {
        return path.empty() ? key : fmt::format("{}.{}", path, key);
    }

private:
    static constexpr std::size_t kMostProblems = 20;

    std::string m_id;
    std::string m_file;
    Problems m_problems;
};

} // namespace meshwright
