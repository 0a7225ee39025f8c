// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_reshard.h"

#include "core/support/checked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace meshwright {

namespace {

constexpr double kFrameMargin = 16.0;
constexpr double kFrameGap = 14.0;
constexpr double kHeading = 52.0; ///< height of the lines above the panels
constexpr double kLabel = 18.0; ///< height of a panel's name
constexpr double kSheetGap = 4.0;
constexpr double kLargestAspect = 4.0;
constexpr double kPanelArea = 130.0 * 110.0;

/// The range of a dimension, all of it for one that is not there.
IndexRange rangeOf(const IndexBox& box, std::size_t dim)
{
    return dim < box.size() ? box[dim] : IndexRange{0, 1};
}

class ReshardPainter {
public:
    explicit ReshardPainter(const ReshardDrawing& drawing)
        : m_drawing(drawing)
        , m_colours(drawing.colours ? *drawing.colours : DeviceColours(drawing.devices))
        , m_rank(drawing.shape.size())
        , m_rows(m_rank >= 2 ? drawing.shape[m_rank - 2] : 1)
        , m_columns(m_rank >= 1 ? drawing.shape[m_rank - 1] : 1)
    {
        findSheets();
        measure();
    }

    DisplayList frame(std::size_t index) const
    {
        const ReshardFrame& frame = m_drawing.frames[index];
        DisplayList list;
        list.width = m_width;
        list.height = m_height;
        list.title = frame.heading;
        addText(list, {kFrameMargin, kFrameMargin + 8.0}, frame.heading, 15.0, TextAnchor::Start, ColourRole::Text, true);
        addText(list, {kFrameMargin, kFrameMargin + 28.0}, frame.caption, 12.0, TextAnchor::Start, ColourRole::MutedText);
        for (std::size_t i = 0; i < m_shown; ++i)
            addPanel(list, i, frame.held[i]);
        addFooter(list, index);
        return list;
    }

private:
    /// The distinct parts into which any frame cuts the leading dimensions.
    void findSheets()
    {
        m_sheets = {{}};
        for (std::size_t dim = 0; dim + 2 < m_rank; ++dim) {
            std::set<std::int64_t> cuts{0, m_drawing.shape[dim]};
            for (const ReshardFrame& frame : m_drawing.frames) {
                for (const auto& parts : frame.held) {
                    for (const HeldPart& part : parts)
                        cuts.insert({part.box[dim].start, part.box[dim].stop});
                }
            }
            std::vector<IndexBox> finer;
            for (const IndexBox& sheet : m_sheets) {
                for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
                    finer.push_back(sheet);
                    finer.back().push_back({*cut, *std::next(cut)});
                }
            }
            m_sheets = std::move(finer);
        }
        m_hiddenSheets = m_sheets.size() - std::min(m_sheets.size(), m_drawing.mostSheets);
        m_sheets.resize(m_sheets.size() - m_hiddenSheets);
    }

    void measure()
    {
        const double rows = static_cast<double>(std::max<std::int64_t>(m_rows, 1)) * static_cast<double>(m_sheets.size());
        const double aspect
            = std::clamp(static_cast<double>(std::max<std::int64_t>(m_columns, 1)) / rows, 1.0 / kLargestAspect, kLargestAspect);
        m_panelWidth = std::round(std::sqrt(kPanelArea * aspect));
        m_panelHeight = std::round(kPanelArea / m_panelWidth);
        m_shown = std::min(m_drawing.devices.size(), m_drawing.mostDevices);
        const double count = static_cast<double>(m_shown);
        const double tall = m_panelHeight + kLabel + kFrameGap;
        double words = estimatedWidth(legend(), 11.0); // the widest line of text
        for (const ReshardFrame& frame : m_drawing.frames)
            words = std::max({words, estimatedWidth(frame.heading, 15.0, true), estimatedWidth(frame.caption, 12.0)});
        // As many side by side as make a broad picture or as the words have room for, and all rows about equally full.
        const double wide = m_panelWidth + kFrameGap;
        const double across = std::max(std::ceil(std::sqrt(count * 1.6 * tall / wide)), std::floor((words + kFrameGap) / wide));
        const auto most = static_cast<std::size_t>(std::clamp(across, 1.0, std::max(count, 1.0)));
        const std::size_t down = std::max<std::size_t>((m_shown + most - 1) / most, 1);
        m_across = std::max<std::size_t>((m_shown + down - 1) / down, 1);
        const double panels = static_cast<double>(m_across) * wide - kFrameGap;
        m_width = std::ceil(2.0 * kFrameMargin + std::max(panels, words));
        m_height = kFrameMargin + kHeading + static_cast<double>(down) * tall + 24.0 + kFrameMargin;
    }

    std::string legend() const
    {
        std::string text = "A panel is the whole array; filled is what the device holds, in the colour of who gave it.";
        if (m_drawing.devices.size() > m_shown)
            text += fmt::format(" {} more devices.", m_drawing.devices.size() - m_shown);
        if (m_hiddenSheets > 0)
            text += fmt::format(" {} more parts of the leading dimensions.", m_hiddenSheets);
        return text;
    }

    void addFooter(DisplayList& list, std::size_t index) const
    {
        addText(list, {kFrameMargin, m_height - kFrameMargin - 4.0}, legend(), 11.0, TextAnchor::Start, ColourRole::MutedText);
        // Where in the sequence the picture is.
        const auto frames = m_drawing.frames.size();
        for (std::size_t i = 0; i < frames && frames > 1; ++i) {
            const double x = m_width - kFrameMargin - 8.0 - static_cast<double>(frames - 1 - i) * 14.0;
            ShapeStyle style{i == index ? Paint(ColourRole::Accent) : Paint(ColourRole::Grid), ColourRole::Outline};
            list.items.push_back({RectShape{{x, kFrameMargin + 4.0}, 8.0, 8.0, std::move(style), 4.0}});
        }
    }

    static void addText(
        DisplayList& list, Point at, std::string text, double size, TextAnchor anchor, Paint paint, bool bold = false)
    {
        list.items.push_back({TextShape{at, std::move(text), size, anchor, paint, bold}});
    }

    void addPanel(DisplayList& list, std::size_t index, const std::vector<HeldPart>& parts) const
    {
        const DeviceId device = m_drawing.devices[index];
        const Point at{kFrameMargin + static_cast<double>(index % m_across) * (m_panelWidth + kFrameGap),
            kFrameMargin + kHeading + static_cast<double>(index / m_across) * (m_panelHeight + kLabel + kFrameGap)};
        addText(
            list, {at.x, at.y + kLabel / 2.0 - 2.0}, fmt::format("device {}", device), 11.0, TextAnchor::Start, ColourRole::Text);
        const std::string id = fmt::format("device:{}", device);
        const std::string tooltip = tooltipOf(device, parts);
        const double sheetHeight
            = (m_panelHeight - kSheetGap * static_cast<double>(m_sheets.size() - 1)) / static_cast<double>(m_sheets.size());
        for (std::size_t s = 0; s < m_sheets.size(); ++s) {
            const Point corner{at.x, at.y + kLabel + static_cast<double>(s) * (sheetHeight + kSheetGap)};
            list.items.push_back(
                {RectShape{corner, m_panelWidth, sheetHeight, {ColourRole::Surface, ColourRole::Outline}}, id, tooltip});
            for (const HeldPart& part : parts) {
                if (isOn(part.box, m_sheets[s]))
                    addPart(list, device, part, corner, sheetHeight, id, tooltip);
            }
        }
    }

    static bool isOn(const IndexBox& box, const IndexBox& sheet)
    {
        for (std::size_t dim = 0; dim < sheet.size(); ++dim) {
            if (box[dim].start > sheet[dim].start || box[dim].stop < sheet[dim].stop)
                return false;
        }
        return std::all_of(box.begin(), box.end(), [](const IndexRange& range) { return range.size() > 0; });
    }

    void addPart(DisplayList& list, DeviceId device, const HeldPart& part, Point corner, double sheetHeight,
        const std::string& id, const std::string& tooltip) const
    {
        const IndexRange rows = m_rank >= 2 ? rangeOf(part.box, m_rank - 2) : IndexRange{0, 1};
        const IndexRange columns = m_rank >= 1 ? rangeOf(part.box, m_rank - 1) : IndexRange{0, 1};
        const auto across = [&](std::int64_t index) {
            return m_panelWidth * static_cast<double>(index) / static_cast<double>(std::max<std::int64_t>(m_columns, 1));
        };
        const auto down = [&](std::int64_t index) {
            return sheetHeight * static_cast<double>(index) / static_cast<double>(std::max<std::int64_t>(m_rows, 1));
        };
        const bool isSum = part.from.size() > 1;
        const DeviceId giver = isSum || part.from.empty() ? device : part.from.front();
        const Colour fill = m_colours.of(giver);
        ShapeStyle style{fill, ColourRole::Outline};
        style.hatch = isSum ? Hatch::Rising : Hatch::None;
        style.hatchPaint = blend(fill, readableOn(fill), 0.35);
        const RectShape rect{{corner.x + across(columns.start), corner.y + down(rows.start)},
            across(columns.stop) - across(columns.start), down(rows.stop) - down(rows.start), style};
        list.items.push_back({rect, id, tooltip});
        const std::string label = isSum ? fmt::format("sum of {}", part.from.size())
            : giver != device           ? fmt::format("from {}", giver)
                                        : "";
        if (label.empty() || rect.height < 13.0 || rect.width < 4.0)
            return;
        const std::string fitting = estimatedWidth(label, 10.0) + 4.0 <= rect.width ? label
            : isSum                                                                 ? "\u03a3"
                                                                                    : fmt::format("{}", giver);
        if (estimatedWidth(fitting, 10.0) + 2.0 > rect.width)
            return;
        const Point middle{rect.topLeft.x + rect.width / 2.0, rect.topLeft.y + rect.height / 2.0};
        if (isSum) { // over the hatch
            const double width = estimatedWidth(fitting, 10.0) + 6.0;
            list.items.push_back(
                {RectShape{{middle.x - width / 2.0, middle.y - 7.0}, width, 14.0, {fill, {}}, 3.0}, id, tooltip});
        }
        addText(list, middle, fitting, 10.0, TextAnchor::Middle, readableOn(fill));
    }

    static std::string tooltipOf(DeviceId device, const std::vector<HeldPart>& parts)
    {
        std::string text = fmt::format("device {}", device);
        for (const HeldPart& part : parts) {
            text += "\n" + boxText(part.box);
            if (part.from.size() > 1)
                text += fmt::format(": the sum of {} devices' parts", part.from.size());
            else if (!part.from.empty() && part.from.front() != device)
                text += fmt::format(" from device {}", part.from.front());
        }
        return text;
    }

    const ReshardDrawing& m_drawing;
    DeviceColours m_colours;
    std::size_t m_rank;
    std::int64_t m_rows;
    std::int64_t m_columns;
    std::vector<IndexBox> m_sheets; ///< of the leading dimensions
    std::size_t m_hiddenSheets = 0;
    double m_panelWidth = 0.0;
    double m_panelHeight = 0.0;
    std::size_t m_shown = 0; ///< devices
    std::size_t m_across = 1;
    double m_width = 0.0;
    double m_height = 0.0;
};

} // namespace

std::vector<DisplayList> drawReshard(const ReshardDrawing& drawing)
{
    const ReshardPainter painter(drawing);
    std::vector<DisplayList> frames;
    for (std::size_t i = 0; i < drawing.frames.size(); ++i)
        frames.push_back(painter.frame(i));
    return frames;
}

} // namespace meshwright
