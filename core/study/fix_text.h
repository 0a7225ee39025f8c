// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// A study's text after all problems were fixed whose fix has one answer.
struct FixedText {
    std::string text;
    std::vector<Problem>
        fixed; ///< in the order in which they were; `fixSettings` is what was written (nothing for missing quotes)
    bool rewritten = false; ///< as in `EditedText`
};

/// Applies the fixes of a study's problems that have one answer (names, quotes, wasteful layouts; no sizes) one after the other, until none is left
/// that does away with its problem. `examine` finds the problems of a text; without it `examineStudy` does.
/// Problems: those of `parseDocument` that make the text unreadable.
Result<FixedText> fixedText(
    std::string_view text, const std::string& file, const std::function<Problems(std::string_view text)>& examine = {});

} // namespace meshwright
