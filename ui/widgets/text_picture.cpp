// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/text_picture.h"

#include <algorithm>
#include <sstream>

namespace meshwright::ui {

DisplayList textPicture(const std::string& title, const std::string& text)
{
    constexpr double kMargin = 16.0;
    constexpr double kLine = 16.0;
    constexpr double kText = 12.0;
    DisplayList picture;
    picture.title = title;
    std::istringstream lines(text);
    double widest = 0.0;
    double y = kMargin;
    for (std::string line; std::getline(lines, line); y += kLine) {
        widest = std::max(widest, estimatedWidth(line, kText));
        if (line.empty())
            continue;
        DisplayItem& item = picture.items.emplace_back();
        item.shape = TextShape{{kMargin, y + kLine / 2.0}, line, kText};
    }
    picture.width = widest + 2.0 * kMargin;
    picture.height = y + kMargin;
    return picture;
}

} // namespace meshwright::ui
