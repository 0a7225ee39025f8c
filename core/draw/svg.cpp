// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/svg.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>

namespace meshwright {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// The number of bytes of the well-formed UTF-8 character at `at` that XML 1.0 allows; 0 when there is none.
std::size_t characterLength(std::string_view text, std::size_t at)
{
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const unsigned first = byte(at);
    if (first < 0x80)
        return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    std::uint32_t code = first & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xC0U) != 0x80U)
            return 0;
        code = code << 6U | (byte(at + i) & 0x3FU);
    }
    const bool tooLong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    const bool forbidden = (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF || code == 0xFFFE || code == 0xFFFF;
    return tooLong || forbidden ? 0 : length;
}

std::string escaped(std::string_view text)
{
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = characterLength(text, at);
        if (length == 0)
            out += kReplacement;
        else if (text[at] == '&')
            out += "&amp;";
        else if (text[at] == '<')
            out += "&lt;";
        else if (text[at] == '>')
            out += "&gt;";
        else if (text[at] == '"')
            out += "&quot;";
        else
            out += text.substr(at, length);
        at += std::max<std::size_t>(1, length);
    }
    return out;
}

/// At most two decimals, no trailing zeros, never "-0".
std::string number(double value)
{
    const double rounded = std::round(value * 100.0) / 100.0;
    std::string text = fmt::format("{:.2f}", rounded == 0.0 ? 0.0 : rounded);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
        text.pop_back();
    return text;
}

class SvgWriter {
public:
    explicit SvgWriter(Theme theme)
        : m_theme(theme)
    {
    }

    std::string document(const DisplayList& list)
    {
        std::string body;
        for (const DisplayItem& item : list.items)
            body += element(item);

        std::string out = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
            "font-family=\"DejaVu Sans, Verdana, sans-serif\">\n",
            number(list.width), number(list.height));
        if (!list.title.empty())
            out += fmt::format("<title>{}</title>\n", escaped(list.title));
        if (!m_hatches.empty()) {
            out += "<defs>\n";
            for (const auto& [key, name] : m_hatches)
                out += pattern(key.first, key.second, name);
            out += "</defs>\n";
        }
        if (const auto background = colourOf(list.background, m_theme))
            out += fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", number(list.width), number(list.height),
                hexText(*background));
        return out + body + "</svg>\n";
    }

private:
    std::string element(const DisplayItem& item)
    {
        const std::string shapes = std::visit([&](const auto& shape) { return drawn(shape); }, item.shape);
        if (item.id.empty() && item.tooltip.empty())
            return shapes;
        std::string out = item.id.empty() ? "<g>" : fmt::format("<g data-id=\"{}\">", escaped(item.id));
        if (!item.tooltip.empty())
            out += fmt::format("<title>{}</title>", escaped(item.tooltip));
        return out + "\n" + shapes + "</g>\n";
    }

    std::string drawn(const RectShape& rect)
    {
        std::string geometry = fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", number(rect.topLeft.x),
            number(rect.topLeft.y), number(rect.width), number(rect.height));
        if (rect.cornerRadius > 0.0)
            geometry += fmt::format(" rx=\"{}\"", number(rect.cornerRadius));
        return styled(geometry, rect.style);
    }

    static std::string pointList(const std::vector<Point>& points)
    {
        std::string text;
        for (const Point& point : points)
            text += fmt::format("{}{},{}", text.empty() ? "" : " ", number(point.x), number(point.y));
        return text;
    }

    std::string drawn(const PolygonShape& polygon)
    {
        return styled(fmt::format("<polygon fill-rule=\"evenodd\" points=\"{}\"", pointList(polygon.corners)), polygon.style);
    }

    std::string drawn(const PolylineShape& line)
    {
        const auto colour = colourOf(line.paint, m_theme);
        if (!colour)
            return {};
        return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{}/>\n",
            pointList(line.points), hexText(*colour), number(line.width), line.dashed ? " stroke-dasharray=\"4 3\"" : "");
    }

    std::string drawn(const LineShape& line)
    {
        const auto colour = colourOf(line.paint, m_theme);
        if (!colour)
            return {};
        return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
            number(line.from.x), number(line.from.y), number(line.to.x), number(line.to.y), hexText(*colour), number(line.width),
            line.dashed ? " stroke-dasharray=\"4 3\"" : "");
    }

    std::string drawn(const TextShape& text)
    {
        const auto colour = colourOf(text.paint, m_theme);
        if (!colour)
            return {};
        // Capitals are about 0.73 of the font size high; attributes for the middle are treated differently by viewers.
        std::string out = fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"", number(text.at.x),
            number(text.at.y + 0.365 * text.size), number(text.size), hexText(*colour));
        if (text.anchor != TextAnchor::Start)
            out += fmt::format(" text-anchor=\"{}\"", text.anchor == TextAnchor::Middle ? "middle" : "end");
        if (text.bold)
            out += " font-weight=\"bold\"";
        return out + " xml:space=\"preserve\">" + escaped(text.text) + "</text>\n";
    }

    /// The shape filled and outlined; between the two, over the fill, the hatch.
    std::string styled(const std::string& geometry, const ShapeStyle& style)
    {
        const auto fill = colourOf(style.fill, m_theme);
        const auto outline = colourOf(style.outline, m_theme);
        const auto hatch = style.hatch == Hatch::None ? std::nullopt : colourOf(style.hatchPaint, m_theme);
        const std::string outlineText = outline
            ? fmt::format(" stroke=\"{}\" stroke-width=\"{}\"", hexText(*outline), number(style.outlineWidth))
            : std::string();
        const std::string first = fmt::format("{} fill=\"{}\"", geometry, fill ? hexText(*fill) : "none");
        if (!hatch)
            return first + outlineText + "/>\n";
        const auto [place, isNew] = m_hatches.try_emplace({style.hatch, *hatch}, fmt::format("hatch{}", m_hatches.size()));
        return fmt::format("{}/>\n{} fill=\"url(#{})\"{}/>\n", first, geometry, place->second, outlineText);
    }

    static std::string pattern(Hatch hatch, Colour colour, const std::string& name)
    {
        std::string path;
        if (hatch == Hatch::Rising || hatch == Hatch::Crossed)
            path += "M-2 2L2 -2M0 8L8 0M6 10L10 6";
        if (hatch == Hatch::Falling || hatch == Hatch::Crossed)
            path += "M-2 6L2 10M0 0L8 8M6 -2L10 2";
        return fmt::format("<pattern id=\"{}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><path d=\"{}\" "
                           "stroke=\"{}\" fill=\"none\"/></pattern>\n",
            name, path, hexText(colour));
    }

    Theme m_theme;
    std::map<std::pair<Hatch, Colour>, std::string> m_hatches;
};

} // namespace

std::string svgText(const DisplayList& list, Theme theme)
{
    return SvgWriter(theme).document(list);
}

} // namespace meshwright
