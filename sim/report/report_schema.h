// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <string_view>

/// The words of a report's JSON, for its writer and its reader; not for others.
namespace meshwright::sim {

inline constexpr const char* kSchema = "meshwright.report/1";
inline constexpr std::string_view kSchemaName = "meshwright.report/";

inline constexpr std::array kHatchNames = {"none", "rising", "falling", "crossed"};
inline constexpr std::array kAnchorNames = {"start", "middle", "end"};
inline constexpr std::array kToneNames = {"neutral", "good", "warning", "error"};
inline constexpr std::array kSeverityNames = {"note", "warning", "error"};

} // namespace meshwright::sim
