// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/finding_files.h"

#include "core/draw/svg.h"
#include "core/support/json_text.h"
#include "core/support/version.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

/// A path as a relative reference of a URI: what is not a letter, digit or one of `-._~/` is escaped.
std::string uriOf(const std::string& path)
{
    std::string uri;
    for (const char c : path) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
            || std::string_view("-._~/").find(c) != std::string_view::npos;
        uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return uri;
}

const char* levelOf(Severity severity)
{
    return severity == Severity::Error ? "error" : severity == Severity::Warning ? "warning" : "note";
}

Json resultJson(const Problem& finding, std::size_t rule, const std::string& file)
{
    const Place& place = finding.place;
    const bool isFile = !place.file.empty() && place.file != "standard input" && !place.file.starts_with("--");
    const std::string& name = isFile ? place.file : file;
    Json region = {{"startLine", std::max(1, place.line)}};
    if (place.line > 0 && place.column > 0)
        region["startColumn"] = place.column;
    std::string message = finding.message;
    if (!finding.rule.empty())
        message += "\n" + finding.rule;
    if (!finding.fix.empty())
        message += "\nFix: " + finding.fix;
    Json location = {{"physicalLocation", {{"artifactLocation", {{"uri", uriOf(name)}}}, {"region", std::move(region)}}}};
    if (!place.path.empty())
        location["logicalLocations"] = Json::array({{{"fullyQualifiedName", place.path}}});
    return {{"ruleId", finding.id}, {"ruleIndex", rule}, {"level", levelOf(finding.severity)},
        {"message", {{"text", std::move(message)}}}, {"locations", Json::array({std::move(location)})}};
}

} // namespace

std::string sarifText(const std::vector<FindingCase>& cases, const std::map<std::string, std::string>& titles)
{
    std::map<std::string, std::size_t> rules; // ids in order; then their indices
    for (const FindingCase& one : cases) {
        for (const Problem& finding : one.findings)
            rules[finding.id] = 0;
    }
    Json described = Json::array();
    for (auto& [id, index] : rules) {
        index = described.size();
        const auto title = titles.find(id);
        described.push_back({{"id", id}, {"shortDescription", {{"text", title == titles.end() ? id : title->second}}}});
    }
    Json results = Json::array();
    for (const FindingCase& one : cases) {
        for (const Problem& finding : one.findings)
            results.push_back(resultJson(finding, rules[finding.id], one.file));
    }
    const Json document = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"},
        {"runs",
            Json::array(
                {{{"tool",
                      {{"driver", {{"name", "Meshwright"}, {"semanticVersion", kVersion}, {"rules", std::move(described)}}}}},
                    {"results", std::move(results)}}})}};
    return jsonText(document);
}

std::string junitText(const std::string& suite, const std::vector<FindingCase>& cases, Severity failOn)
{
    const auto fails = [&](const FindingCase& one) {
        return std::any_of(
            one.findings.begin(), one.findings.end(), [&](const Problem& finding) { return finding.severity >= failOn; });
    };
    const auto failures = std::count_if(cases.begin(), cases.end(), fails);
    const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\"", cases.size(), failures);
    std::string xml = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"Meshwright\" {}>\n  <testsuite name=\"{}\" {}>\n", counts,
        escapedXml(suite), counts);
    for (const FindingCase& one : cases) {
        xml += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", escapedXml(suite), escapedXml(one.name));
        if (one.findings.empty()) {
            xml += "/>\n";
            continue;
        }
        const char* element = fails(one) ? "failure" : "system-out";
        xml += fmt::format(">\n      <{}", element);
        if (fails(one))
            xml += fmt::format(
                " type=\"{}\" message=\"{}\"", escapedXml(one.findings.front().id), escapedXml(one.findings.front().message));
        xml += fmt::format(">{}</{}>\n    </testcase>\n", escapedXml(describe(one.findings)), element);
    }
    return xml + "  </testsuite>\n</testsuites>\n";
}

} // namespace meshwright::sim
