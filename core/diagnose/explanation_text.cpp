// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/explain_message.h"

#include "core/partition/device_program.h"
#include "core/support/table.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

/// `text` in lines of at most `width` columns, all but the first after `indent` spaces; words are not cut.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width)
{
    std::string lines;
    std::size_t column = indent;
    for (const std::string& word : split(text, ' ')) {
        const std::size_t length = displayWidth(word);
        if (column > indent && column + 1 + length > width) {
            lines += "\n" + std::string(indent, ' ');
            column = indent;
        } else if (column > indent) {
            lines += ' ';
            ++column;
        }
        lines += word;
        column += length;
    }
    return lines + "\n";
}

/// Every line after `indent`.
std::string indented(const std::string& text, const std::string& indent)
{
    std::string lines;
    for (const std::string& line : split(text, '\n'))
        lines += line.empty() ? "\n" : indent + line + "\n";
    while (lines.ends_with("\n\n"))
        lines.pop_back();
    return lines;
}

std::string headingOf(const Explanation& message, std::size_t lineCount)
{
    std::string where;
    if (lineCount > 1) {
        std::vector<std::string> numbers;
        for (const std::size_t line : message.lines)
            numbers.push_back(fmt::format("{}", line));
        where = fmt::format(
            "line{} {}{}: ", numbers.size() == 1 ? "" : "s", join(numbers, ", "), message.times > numbers.size() ? ", .." : "");
    }
    return fmt::format("{}{}: {}{}\n", where, message.source, message.title,
        message.times > 1 ? fmt::format(" ({} times)", message.times) : std::string());
}

std::string factsText(const std::vector<MessageFact>& facts, std::size_t width)
{
    std::size_t column = 0;
    constexpr std::size_t kWidest = 32;
    for (const MessageFact& fact : facts)
        column = std::max(column, std::min(kWidest, displayWidth(fact.name)));
    std::string text;
    for (const MessageFact& fact : facts) {
        std::string name = fact.name;
        if (displayWidth(name) > column) {
            text += "  " + name + "\n";
            name.clear();
        }
        name.append(column - displayWidth(name), ' ');
        text += "  " + name + "  " + wrapped(fact.value, column + 4, width);
    }
    return text;
}

/// Side by side where there is room, else one below the other.
std::string picturesText(const std::vector<MessagePicture>& pictures, std::size_t width)
{
    const auto block = [](const MessagePicture& picture) { return picture.title + "\n" + picture.drawing; };
    if (pictures.size() == 2) {
        constexpr std::size_t kGap = 4;
        const std::string left = block(pictures[0]);
        const std::string both = sideBySide(left, block(pictures[1]), widestLine(left) + kGap);
        if (widestLine(both) + 2 <= width)
            return indented(both, "  ");
    }
    std::string text;
    for (const MessagePicture& picture : pictures)
        text += (text.empty() ? "" : "\n") + indented(block(picture), "  ");
    return text;
}

/// The steps as a table; where it is too wide, each step on two lines.
std::string stepsText(const LayoutChange& change, std::size_t width)
{
    const Mesh& mesh = change.layouts.mesh;
    using Align = TextTable::Align;
    TextTable table({{"step", Align::Right}, {"collective"}, {"axes"},
        {change.typeKnown ? "bytes/device" : "moved/device", Align::Right}, {"then"}});
    std::string list;
    std::size_t number = 0;
    for (const ReshardStep& step : change.cheapest.steps) {
        const std::string axes = axesText(step.attributes.axes, mesh);
        const std::string amount = amountText(movedBytes(step), change);
        const std::string layout = fullLayoutText(step.result, mesh);
        table.addRow({fmt::format("{}", ++number), opName(step.kind), axes, amount, layout});
        list += fmt::format(
            "  {}. {} over {}: {}\n     then {}\n", number, opName(step.kind), axes, amount, wrapped(layout, 10, width));
        list.pop_back();
    }
    const std::string text = table.text(2);
    return widestLine(text) <= width ? text : list;
}

std::string changeText(const LayoutChange& change, std::size_t width)
{
    if (change.cheapest.steps.empty())
        return "  Both layouts put the same pieces on the same devices: nothing need move.\n";
    return "  The cheaper way\n" + stepsText(change, width)
        + fmt::format("  moves {} a device, at most {} in use;\n  the full gather moves {} and needs {}\n",
            amountText(movedBytes(change.cheapest), change), amountText(change.cheapest.peakBytes, change),
            amountText(movedBytes(change.gather), change), amountText(change.gather.peakBytes, change));
}

std::string remediesText(const std::vector<Remedy>& remedies, std::size_t width)
{
    std::string text = "  What to do\n";
    for (std::size_t i = 0; i < remedies.size(); ++i) {
        const std::string number = remedies.size() == 1 ? "  " : fmt::format("  {}. ", i + 1);
        text += number + wrapped(remedies[i].text, number.size(), width);
        if (!remedies[i].code.empty())
            text += indented(remedies[i].code, std::string(number.size() + 2, ' '));
    }
    return text;
}

std::string messageText(const Explanation& message, std::size_t lineCount, std::size_t width)
{
    std::string text = headingOf(message, lineCount) + "\n";
    const std::string quote = wrapped(message.quote, 0, width - 4);
    text += indented(quote, "  > ") + "\n  " + wrapped(message.meaning, 2, width);
    if (!message.facts.empty())
        text += "\n" + factsText(message.facts, width);
    if (!message.pictures.empty())
        text += "\n" + picturesText(message.pictures, width);
    if (message.change)
        text += "\n" + changeText(*message.change, width);
    if (!message.remedies.empty())
        text += "\n" + remediesText(message.remedies, width);
    return text;
}

} // namespace

std::string explainedText(const ExplainedText& explained, std::size_t width)
{
    constexpr std::size_t kNarrowest = 40;
    width = std::max(width, kNarrowest);
    std::string text;
    for (const Explanation& message : explained.messages)
        text += (text.empty() ? "" : "\n") + messageText(message, explained.lineCount, width);
    if (explained.leftOut > 0)
        text += fmt::format("\n{} more messages are left out\n", explained.leftOut);
    if (explained.cut)
        text += fmt::format("\nonly the first {} were read\n", formatBytes(static_cast<double>(kMostExplainedBytes)));
    return text;
}

} // namespace meshwright
