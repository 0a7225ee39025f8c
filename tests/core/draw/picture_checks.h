// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"

#include <QString>
#include <QStringList>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

/// What every picture has to keep to, and short ways to look into one.
namespace meshwright::tests {

inline QStringList textsOf(const DisplayList& list)
{
    QStringList texts;
    for (const DisplayItem& item : list.items) {
        if (const auto* shape = std::get_if<TextShape>(&item.shape))
            texts << QString::fromStdString(shape->text);
    }
    return texts;
}

/// Items by their ids; several with one id in drawing order.
inline std::multimap<std::string, DisplayItem> itemsOf(const DisplayList& list)
{
    std::multimap<std::string, DisplayItem> items;
    for (const DisplayItem& item : list.items) {
        if (!item.id.empty())
            items.emplace(item.id, item);
    }
    return items;
}

inline const DisplayItem* itemOf(const DisplayList& list, const std::string& id)
{
    const auto found = std::find_if(list.items.begin(), list.items.end(), [&](const DisplayItem& item) { return item.id == id; });
    return found == list.items.end() ? nullptr : &*found;
}

inline QString tooltipOf(const DisplayList& list, const std::string& id)
{
    const DisplayItem* item = itemOf(list, id);
    return item == nullptr ? QString("no item " + QString::fromStdString(id)) : QString::fromStdString(item->tooltip);
}

struct TextFrame {
    double left = 0.0;
    double right = 0.0;
    double top = 0.0;
    double bottom = 0.0;
};

/// About where a text lies. `share` of its estimated width, which is rather too much.
inline TextFrame frameOf(const TextShape& text, double share = 0.85)
{
    const double width = share * estimatedWidth(text.text, text.size, text.bold);
    const double left = text.anchor == TextAnchor::Start ? text.at.x
        : text.anchor == TextAnchor::End                 ? text.at.x - width
                                                         : text.at.x - width / 2.0;
    return {left, left + width, text.at.y - 0.4 * text.size, text.at.y + 0.4 * text.size};
}

/// The style of the topmost filled shape under a text, of those drawn before it.
inline ShapeStyle behind(const DisplayList& list, std::size_t index)
{
    ShapeStyle style;
    style.fill = list.background;
    const Point at = std::get<TextShape>(list.items[index].shape).at;
    for (std::size_t i = 0; i < index; ++i) {
        DisplayList one;
        one.items.push_back(list.items[i]);
        one.items.back().id = "x";
        const ShapeStyle* found = nullptr;
        if (const auto* rect = std::get_if<RectShape>(&list.items[i].shape))
            found = &rect->style;
        else if (const auto* polygon = std::get_if<PolygonShape>(&list.items[i].shape))
            found = &polygon->style;
        if (found != nullptr && !std::holds_alternative<std::monostate>(found->fill) && one.itemAt(at) != nullptr)
            style = *found;
    }
    return style;
}

/// Everything that a designer would send back, as far as a program sees it; empty when all is well.
inline QString faultsOf(const DisplayList& list)
{
    QStringList faults;
    std::vector<std::pair<TextFrame, std::string>> frames;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
        const auto* text = std::get_if<TextShape>(&list.items[i].shape);
        if (text == nullptr)
            continue;
        const QString words = QString::fromStdString(text->text);
        const TextFrame frame = frameOf(*text);
        if (frame.left < 0.0 || frame.right > list.width || frame.top < 0.0 || frame.bottom > list.height)
            faults << "outside the picture: " + words;
        const ShapeStyle back = behind(list, i);
        if (back.hatch != Hatch::None)
            faults << "on a hatch: " + words;
        for (const Theme theme : kAllThemes) {
            if (contrast(*colourOf(text->paint, theme), *colourOf(back.fill, theme)) < 4.5)
                faults << QString("hard to read (%1): %2")
                              .arg(theme == Theme::Light     ? "light"
                                      : theme == Theme::Dark ? "dark"
                                                             : "high contrast",
                                  words);
        }
        for (const auto& [other, otherWords] : frames) {
            if (frame.left < other.right && other.left < frame.right && frame.top < other.bottom && other.top < frame.bottom)
                faults << words + " lies on " + QString::fromStdString(otherWords);
        }
        frames.emplace_back(frame, text->text);
    }
    return faults.join("; ");
}

} // namespace meshwright::tests
