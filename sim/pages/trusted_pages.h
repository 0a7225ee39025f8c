// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <string>

namespace meshwright::pages {

/// Whether somebody was told that this page, as its file is now, is a program, and trusts it. It decides about a question, not about what a page may do.
bool isTrusted(const std::string& text);

/// Remembers a page's text as trusted, in the user's state folder; without one nothing is remembered. Problems: those of writing the list.
Result<Done> trust(const std::string& text);

} // namespace meshwright::pages
