// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// A PartitionSpec without quotes inside `{...}` or `[...]`, where its commas end it.
struct UnquotedSpec {
    int line = 0; ///< from 1
    int column = 0; ///< in bytes, from 1
    std::string text; ///< `P('data', None)`
    int quotedColumn = 0; ///< of its opening quote in the changed text
    int bracketLine = 0; ///< where the outermost bracket around it opens
};

/// A document with quotes put around the specs that lacked them.
struct QuotedSpecs {
    std::string text;
    std::vector<UnquotedSpec> specs; ///< in order

    /// The column in the original text of a position in `text`.
    int originalColumn(int line, int column) const;
};

/// Finds the specs that need quotes and puts them there. What is not recognised as one stays as it is.
QuotedSpecs quoteSpecs(std::string_view text);

/// True for a plain scalar that is the torn-off beginning of a spec: `P('data'`.
bool isTornSpec(std::string_view scalar);

} // namespace meshwright
