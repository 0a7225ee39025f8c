// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace meshwright {

// The library's reader and writer of JSON are templates: here they are compiled once.

/// Over several lines, the last one ended. Bytes that are not UTF-8 become U+FFFD, here and in `jsonLine`.
std::string jsonText(const nlohmann::ordered_json& document, int indent = 2);

/// On one line, without its end.
std::string jsonLine(const nlohmann::ordered_json& value);

/// What a text says; `is_discarded()` where it is not JSON.
nlohmann::ordered_json parsedJson(std::string_view text);

} // namespace meshwright
