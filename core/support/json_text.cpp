// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/json_text.h"

#include <nlohmann/json.hpp>

namespace meshwright {

namespace {

std::string written(const nlohmann::ordered_json& value, int indent)
{
    return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace

std::string jsonText(const nlohmann::ordered_json& document, int indent)
{
    return written(document, indent) + "\n";
}

std::string jsonLine(const nlohmann::ordered_json& value)
{
    return written(value, -1);
}

nlohmann::ordered_json parsedJson(std::string_view text)
{
    return nlohmann::ordered_json::parse(text, nullptr, false);
}

} // namespace meshwright
