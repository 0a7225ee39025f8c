// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright {

/// A value of the text: an index into the numbering of one function's text.
using TextValue = std::uint32_t;

/// What MLIR makes of a result's name: `%0`, or `%c` and `%cst` of integer and floating constants.
enum class NameHint : std::uint8_t { Number, Integer, Float };

struct LineRegion;

/// One op of the text. `text` is what follows ` = `: with a kOperandMark where the name of the next of `operands` goes (arguments of its
/// regions too), a kRegionMark for the next region in braces, and a kLabelMark for one that shows its arguments.
struct Line {
    std::string text;
    std::vector<TextValue> operands;
    TextValue firstResult = 0;
    std::uint32_t resultCount = 0;
    NameHint hint = NameHint::Number;
    std::vector<LineRegion> regions;
};

struct LineRegion {
    std::vector<TextValue> arguments;
    std::vector<Line> lines;
    std::vector<std::string> types; ///< of the arguments, for the label
    bool isLoop = false; ///< a while calls its arguments %iterArg
};

inline constexpr char kOperandMark = '\x01';
inline constexpr char kRegionMark = '\x02';
inline constexpr char kLabelMark = '\x03';

/// Appends the lines of a function's body, indented by `indent` spaces. Values are numbered as MLIR numbers them: all of a region
/// before the regions inside it, `%arg0` and so on for arguments, `%cst_1` with one running number for whatever is not the first of its name.
/// `names` gets the name of every value (at least one entry for each).
void printLines(std::string& out, const LineRegion& body, std::size_t indent, std::vector<std::string>& names);

} // namespace meshwright
