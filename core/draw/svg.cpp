// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/svg.h"

#include "core/support/escape.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>
#include <optional>

namespace meshwright {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr const char* kDashes = " stroke-dasharray=\"4 3\"";

/// The number of bytes of the well-formed UTF-8 character at `at` that XML 1.0 allows and `printable` keeps; 0 when there is none.
std::size_t xmlCharacterLength(std::string_view text, std::size_t at)
{
    const std::size_t length = characterLength(text, at);
    const char first = text[at];
    if (length == 1)
        return (static_cast<unsigned char>(first) >= 0x20 && first != 0x7F) || first == '\t' || first == '\n' || first == '\r'
            ? 1
            : 0;
    const std::string_view character = text.substr(at, length);
    const bool isForbidden = character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF"; // U+FFFE and U+FFFF
    return isForbidden || printable(character) != character ? 0 : length;
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

/// Writes the elements of a picture: a document has the colours of one theme in it, a fragment names roles as classes.
class SvgWriter {
public:
    explicit SvgWriter(Theme theme)
        : m_theme(theme)
    {
    }

    explicit SvgWriter(std::string idPrefix)
        : m_idPrefix(std::move(idPrefix))
    {
    }

    std::string document(const DisplayList& list)
    {
        return written(
            list, "xmlns=\"http://www.w3.org/2000/svg\"", "font-family=\"DejaVu Sans, Verdana, sans-serif\"", "<title>");
    }

    std::string fragment(const DisplayList& list)
    {
        return written(list, "class=\"picture\"", fmt::format("aria-labelledby=\"{}title\"", escapedXml(m_idPrefix)),
            fmt::format("<title id=\"{}title\">", escapedXml(m_idPrefix)));
    }

    std::string animation(const std::vector<DisplayList>& frames, double secondsEach)
    {
        std::string body;
        for (std::size_t i = 0; i < frames.size(); ++i) {
            const double total = secondsEach * static_cast<double>(frames.size());
            const auto count = static_cast<double>(frames.size());
            // Hidden until its turn and after it; the last one is what stands still.
            const bool isFirst = i == 0;
            const bool isLast = i + 1 == frames.size();
            const std::string from = number(static_cast<double>(i) / count);
            const std::string to = number(static_cast<double>(i + 1) / count);
            const std::string values = isFirst ? "visible;hidden" : isLast ? "hidden;visible" : "hidden;visible;hidden";
            const std::string times = isFirst ? "0;" + to : isLast ? "0;" + from : "0;" + from + ";" + to;
            body += fmt::format("<g visibility=\"{}\">\n<animate attributeName=\"visibility\" calcMode=\"discrete\" "
                                "values=\"{}\" keyTimes=\"{}\" dur=\"{}s\" repeatCount=\"indefinite\"/>\n",
                isLast ? "visible" : "hidden", values, times, number(total));
            for (const DisplayItem& item : frames[i].items)
                body += element(item);
            body += "</g>\n";
        }
        return page(frames.front(), body, "xmlns=\"http://www.w3.org/2000/svg\"",
            "font-family=\"DejaVu Sans, Verdana, sans-serif\"", "<title>");
    }

private:
    std::string written(const DisplayList& list, const char* first, const std::string& last, const std::string& title)
    {
        std::string body;
        for (const DisplayItem& item : list.items)
            body += element(item);
        return page(list, body, first, last, title);
    }

    /// The document around elements that are written already.
    std::string page(
        const DisplayList& list, const std::string& body, const char* first, const std::string& last, const std::string& title)
    {
        std::string out = fmt::format("<svg {0} width=\"{1}\" height=\"{2}\" viewBox=\"0 0 {1} {2}\" role=\"img\" {3}>\n", first,
            number(list.width), number(list.height), last);
        if (!list.title.empty() || !m_theme)
            out += fmt::format("{}{}</title>\n", title, escapedXml(list.title));
        if (!m_hatches.empty()) {
            out += "<defs>\n";
            for (const auto& [key, name] : m_hatches)
                out += pattern(key.first, key.second, name);
            out += "</defs>\n";
        }
        if (list.background.index() != 0)
            out += fmt::format(
                "<rect width=\"{}\" height=\"{}\"{}/>\n", number(list.width), number(list.height), painted(list.background, {}));
        return out + body + "</svg>\n";
    }

    /// The attributes of a fill and a line; what is not painted has none, but for a fill, which must say so.
    std::string painted(const Paint& fill, const Paint& line) const
    {
        std::string classes;
        std::string attributes;
        const auto add = [&](const char* attribute, const char* classPrefix, const Paint& paint) {
            const ColourRole* role = std::get_if<ColourRole>(&paint);
            if (role != nullptr && !m_theme)
                classes += fmt::format("{}{}{}", classes.empty() ? "" : " ", classPrefix, colourRoleName(*role));
            else if (const auto colour = colourOf(paint, m_theme.value_or(Theme::Light)))
                attributes += fmt::format(" {}=\"{}\"", attribute, hexText(*colour));
        };
        if (fill.index() == 0)
            attributes = " fill=\"none\"";
        add("fill", "fill-", fill);
        add("stroke", "line-", line);
        return classes.empty() ? attributes : fmt::format(" class=\"{}\"{}", classes, attributes);
    }

    std::string element(const DisplayItem& item)
    {
        const std::string shapes = std::visit([&](const auto& shape) { return drawn(shape); }, item.shape);
        if (item.id.empty() && item.tooltip.empty())
            return shapes;
        std::string out = item.id.empty() ? "<g>" : fmt::format("<g data-id=\"{}\">", escapedXml(item.id));
        if (!item.tooltip.empty())
            out += fmt::format("<title>{}</title>", escapedXml(item.tooltip));
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
        if (line.paint.index() == 0)
            return {};
        return fmt::format("<polyline points=\"{}\"{} stroke-width=\"{}\" stroke-linejoin=\"round\"{}/>\n",
            pointList(line.points), painted({}, line.paint), number(line.width), line.dashed ? kDashes : "");
    }

    std::string drawn(const LineShape& line)
    {
        if (line.paint.index() == 0)
            return {};
        return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{} stroke-width=\"{}\"{}/>\n", number(line.from.x),
            number(line.from.y), number(line.to.x), number(line.to.y), paintedLine(line.paint), number(line.width),
            line.dashed ? kDashes : "");
    }

    std::string drawn(const TextShape& text)
    {
        if (text.paint.index() == 0)
            return {};
        // Capitals are about 0.73 of the font size high; attributes for the middle are treated differently by viewers.
        std::string out = fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\"{}", number(text.at.x),
            number(text.at.y + 0.365 * text.size), number(text.size), painted(text.paint, {}));
        if (text.anchor != TextAnchor::Start)
            out += fmt::format(" text-anchor=\"{}\"", text.anchor == TextAnchor::Middle ? "middle" : "end");
        if (text.bold)
            out += " font-weight=\"bold\"";
        // In a page the style sheet keeps spaces.
        return fmt::format("{}{}>{}</text>\n", out, m_theme ? " xml:space=\"preserve\"" : "", escapedXml(text.text));
    }

    /// The shape filled and outlined; between the two, over the fill, the hatch.
    std::string styled(const std::string& geometry, const ShapeStyle& style)
    {
        const bool hatched = style.hatch != Hatch::None && style.hatchPaint.index() != 0;
        const std::string outlineWidth
            = style.outline.index() == 0 ? std::string() : fmt::format(" stroke-width=\"{}\"", number(style.outlineWidth));
        if (!hatched)
            return fmt::format("{}{}{}/>\n", geometry, painted(style.fill, style.outline), outlineWidth);
        const auto [place, isNew] = m_hatches.try_emplace(
            {style.hatch, style.hatchPaint}, fmt::format("{}hatch{}", escapedXml(m_idPrefix), m_hatches.size()));
        return fmt::format("{0}{1}/>\n{0} fill=\"url(#{2})\"{3}{4}/>\n", geometry, painted(style.fill, {}), place->second,
            paintedLine(style.outline), outlineWidth);
    }

    /// The attributes of a line alone.
    std::string paintedLine(const Paint& line) const
    {
        const ColourRole* role = std::get_if<ColourRole>(&line);
        if (role != nullptr && !m_theme)
            return fmt::format(" class=\"line-{}\"", colourRoleName(*role));
        const auto colour = colourOf(line, m_theme.value_or(Theme::Light));
        return colour ? fmt::format(" stroke=\"{}\"", hexText(*colour)) : std::string();
    }

    std::string pattern(Hatch hatch, const Paint& paint, const std::string& name) const
    {
        std::string path;
        if (hatch == Hatch::Rising || hatch == Hatch::Crossed)
            path += "M-2 2L2 -2M0 8L8 0M6 10L10 6";
        if (hatch == Hatch::Falling || hatch == Hatch::Crossed)
            path += "M-2 6L2 10M0 0L8 8M6 -2L10 2";
        return fmt::format("<pattern id=\"{}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><path d=\"{}\"{} "
                           "fill=\"none\"/></pattern>\n",
            name, path, paintedLine(paint));
    }

    std::optional<Theme> m_theme; ///< nothing: a fragment
    std::string m_idPrefix;
    std::map<std::pair<Hatch, Paint>, std::string> m_hatches;
};

} // namespace

std::string validXmlText(std::string_view text)
{
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = xmlCharacterLength(text, at);
        out += length == 0 ? kReplacement : text.substr(at, length);
        at += std::max<std::size_t>(1, length);
    }
    return out;
}

std::string escapedXml(std::string_view text)
{
    std::string out;
    for (const char c : validXmlText(text)) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '"')
            out += "&quot;";
        else
            out += c;
    }
    return out;
}

std::string svgText(const DisplayList& list, Theme theme)
{
    return SvgWriter(theme).document(list);
}

std::string animatedSvgText(const std::vector<DisplayList>& frames, Theme theme, double secondsEach)
{
    return frames.size() == 1 ? svgText(frames.front(), theme) : SvgWriter(theme).animation(frames, secondsEach);
}

std::string svgFragment(const DisplayList& list, const std::string& idPrefix)
{
    return SvgWriter(idPrefix).fragment(list);
}

std::string themeVariables(Theme theme)
{
    std::string css;
    for (const ColourRole role : kAllRoles)
        css += fmt::format("--{}:{};", colourRoleName(role), hexText(colourOf(role, theme)));
    return css;
}

std::string svgClassRules()
{
    std::string css;
    for (const ColourRole role : kAllRoles)
        css += fmt::format(".fill-{0}{{fill:var(--{0})}}.line-{0}{{stroke:var(--{0})}}\n", colourRoleName(role));
    return css;
}

} // namespace meshwright
