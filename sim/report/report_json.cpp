// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/escape.h"
#include "core/support/json_text.h"
#include "sim/report/report.h"
#include "sim/report/report_schema.h"

#include "core/draw/svg.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <limits>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

// What has its usual value is left out.

/// Whole numbers without a decimal point: pictures are full of them.
Json numberJson(double value)
{
    constexpr double kExact = 9007199254740992.0;
    if (value == std::floor(value) && std::fabs(value) < kExact)
        return static_cast<std::int64_t>(value);
    return value;
}

void put(Json& json, const char* key, const std::string& text)
{
    if (!text.empty())
        json[key] = text;
}

void put(Json& json, const char* key, const Paint& paint)
{
    if (const ColourRole* role = std::get_if<ColourRole>(&paint))
        json[key] = colourRoleName(*role);
    else if (const Colour* colour = std::get_if<Colour>(&paint))
        json[key] = hexText(*colour);
}

Json pointsJson(const std::vector<Point>& points)
{
    Json json = Json::array();
    for (const Point& point : points) {
        json.push_back(numberJson(point.x));
        json.push_back(numberJson(point.y));
    }
    return json;
}

void putStyle(Json& json, const ShapeStyle& style)
{
    put(json, "fill", style.fill);
    put(json, "line", style.outline);
    if (style.outlineWidth != 1.0)
        json["line_width"] = numberJson(style.outlineWidth);
    if (style.hatch != Hatch::None) {
        json["hatch"] = kHatchNames[static_cast<std::size_t>(style.hatch)];
        put(json, "hatch_line", style.hatchPaint);
    }
}

void putLine(Json& json, const Paint& paint, double width, bool dashed)
{
    put(json, "line", paint);
    if (width != 1.0)
        json["line_width"] = numberJson(width);
    if (dashed)
        json["dashed"] = true;
}

struct ShapeWriter {
    Json operator()(const RectShape& rect) const
    {
        Json json = {{"shape", "rect"}};
        json["at"] = {numberJson(rect.topLeft.x), numberJson(rect.topLeft.y), numberJson(rect.width), numberJson(rect.height)};
        putStyle(json, rect.style);
        if (rect.cornerRadius != 0.0)
            json["radius"] = numberJson(rect.cornerRadius);
        return json;
    }
    Json operator()(const PolygonShape& polygon) const
    {
        Json json = {{"shape", "polygon"}, {"at", pointsJson(polygon.corners)}};
        putStyle(json, polygon.style);
        return json;
    }
    Json operator()(const LineShape& line) const
    {
        Json json = {{"shape", "line"}, {"at", pointsJson({line.from, line.to})}};
        putLine(json, line.paint, line.width, line.dashed);
        return json;
    }
    Json operator()(const PolylineShape& line) const
    {
        Json json = {{"shape", "polyline"}, {"at", pointsJson(line.points)}};
        putLine(json, line.paint, line.width, line.dashed);
        return json;
    }
    Json operator()(const TextShape& text) const
    {
        Json json = {{"shape", "text"}, {"at", pointsJson({text.at})}, {"text", text.text}};
        if (text.size != 12.0)
            json["size"] = numberJson(text.size);
        if (text.anchor != TextAnchor::Start)
            json["anchor"] = kAnchorNames[static_cast<std::size_t>(text.anchor)];
        put(json, "fill", text.paint);
        if (text.bold)
            json["bold"] = true;
        return json;
    }
};

Json listJson(const DisplayList& list)
{
    Json json = {{"width", numberJson(list.width)}, {"height", numberJson(list.height)}};
    put(json, "title", list.title);
    put(json, "background", list.background);
    json["items"] = Json::array();
    for (const DisplayItem& item : list.items) {
        Json entry = std::visit(ShapeWriter{}, item.shape);
        put(entry, "id", item.id);
        put(entry, "tooltip", item.tooltip);
        json["items"].push_back(std::move(entry));
    }
    return json;
}

Json valueJson(const ReportValue& value)
{
    Json json = {{"text", value.text}};
    if (value.number)
        json["number"] = numberJson(*value.number);
    put(json, "unit", value.unit);
    return json;
}

Json inputsJson(const std::vector<ReportInput>& inputs)
{
    Json json = Json::array();
    for (const ReportInput& input : inputs) {
        Json entry = {{"name", input.name}, {"value", input.value}};
        put(entry, "source", input.source);
        json.push_back(std::move(entry));
    }
    return json;
}

void put(Json& json, const ReportOpening& opening)
{
    if (opening.empty())
        return;
    Json entry = Json::object();
    put(entry, "text", opening.text);
    put(entry, "formula", opening.formula);
    if (!opening.inputs.empty())
        entry["inputs"] = inputsJson(opening.inputs);
    json["opening"] = std::move(entry);
}

void putTone(Json& json, ReportTone tone)
{
    if (tone != ReportTone::Neutral)
        json["tone"] = reportToneName(tone);
}

struct BlockWriter {
    Json operator()(const ReportParagraph& paragraph) const
    {
        Json json = {{"block", "paragraph"}, {"text", paragraph.text}};
        putTone(json, paragraph.tone);
        return json;
    }
    Json operator()(const ReportFigures& figures) const
    {
        Json json = {{"block", "figures"}, {"figures", Json::array()}};
        for (const ReportFigure& figure : figures.figures) {
            Json entry = {{"label", figure.label}, {"value", valueJson(figure.value)}};
            put(entry, figure.opening);
            json["figures"].push_back(std::move(entry));
        }
        return json;
    }
    Json operator()(const ReportTable& table) const
    {
        Json json = {{"block", "table"}, {"title", table.title}, {"columns", Json::array()}, {"rows", Json::array()}};
        for (const ReportColumn& column : table.columns) {
            Json entry = {{"title", column.title}};
            if (column.numeric)
                entry["numeric"] = true;
            json["columns"].push_back(std::move(entry));
        }
        for (const ReportRow& row : table.rows) {
            Json entry = {{"cells", Json::array()}};
            for (const ReportValue& cell : row.cells)
                entry["cells"].push_back(valueJson(cell));
            put(entry, row.opening);
            json["rows"].push_back(std::move(entry));
        }
        put(json, "note", table.note);
        return json;
    }
    Json operator()(const ReportPictures& pictures) const
    {
        Json json = {{"block", "pictures"}, {"pictures", Json::array()}};
        for (const ReportPicture& picture : pictures.pictures) {
            Json entry = {{"id", picture.id}, {"title", picture.title}};
            put(entry, "caption", picture.caption);
            entry["picture"] = listJson(picture.list);
            json["pictures"].push_back(std::move(entry));
        }
        return json;
    }
    Json operator()(const ReportProblems& problems) const
    {
        Json json = {{"block", "problems"}, {"problems", Json::array()}};
        for (const ReportProblem& problem : problems.problems) {
            Json entry = {{"severity", severityName(problem.severity)}, {"id", problem.id}, {"message", problem.message}};
            put(entry, "where", problem.where);
            put(entry, "rule", problem.rule);
            put(entry, "fix", problem.fix);
            json["problems"].push_back(std::move(entry));
        }
        return json;
    }
    Json operator()(const ReportCode& code) const { return {{"block", "code"}, {"title", code.title}, {"text", code.text}}; }
};

Json answerJson(const ReportAnswer& answer)
{
    Json json = {{"id", answer.id}, {"question", answer.question}};
    putTone(json, answer.tone);
    json["headline"] = answer.headline;
    json["value"] = valueJson(answer.value);
    put(json, "sentence", answer.sentence);
    if (answer.share)
        json["share"] = numberJson(*answer.share);
    put(json, "command", answer.command);
    put(json, answer.opening);
    return json;
}

Json reportObject(const Report& report)
{
    Json json = {{"schema", kSchema}, {"meshwright", report.version}, {"title", report.title},
        {"facts", inputsJson(report.facts)}, {"command", report.command}};
    json["study"] = {{"file", report.study.file}, {"text", report.study.text}, {"settings", report.study.settings}};
    json["answers"] = Json::array();
    for (const ReportAnswer& answer : report.answers)
        json["answers"].push_back(answerJson(answer));
    json["sections"] = Json::array();
    for (const ReportSection& section : report.sections) {
        Json entry = {{"id", section.id}, {"title", section.title}, {"blocks", Json::array()}};
        for (const ReportBlock& block : section.blocks)
            entry["blocks"].push_back(std::visit(BlockWriter{}, block));
        json["sections"].push_back(std::move(entry));
    }
    if (!report.trainingResult.empty())
        json["training"] = parsedJson(report.trainingResult);
    return json;
}

} // namespace

std::string reportJson(const Report& report)
{
    const std::string json = printableJson(jsonLine(reportObject(report)));
    std::string safe;
    safe.reserve(json.size() + json.size() / 64);
    for (const char c : json)
        safe += c == '<' ? std::string_view("\\u003c") : std::string_view(&c, 1);
    return safe + "\n";
}

} // namespace meshwright::sim
