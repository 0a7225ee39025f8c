// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"

#include <string>

namespace meshwright::ui {

/// Lines of text as a picture, for views whose content is words.
DisplayList textPicture(const std::string& title, const std::string& text);

} // namespace meshwright::ui
