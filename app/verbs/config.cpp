// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/study_file.h"
#include "app/verbs/verbs.h"

#include "core/study/document.h"
#include "core/study/program_study.h"
#include "core/study/setting_path.h"
#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/resources.h"
#include "core/support/table.h"
#include "core/support/version.h"
#include "sim/cost/stack.h"
#include "sim/session/study_machine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

/// One value that the program goes by, and where it has it from.
struct Resolved {
    std::string name; ///< "train.steps", "resources"
    std::string value;
    std::string from; ///< "study.yaml:3", "--set mesh.data=8", "default"
};

std::string valueText(const DocNode& node)
{
    if (node.kind == DocNode::Kind::Null)
        return "null";
    if (node.kind == DocNode::Kind::Scalar)
        return node.text;
    std::string text;
    const bool isMap = node.kind == DocNode::Kind::Map;
    for (const DocEntry& entry : node.entries)
        text += fmt::format("{}{}{}", text.empty() ? "" : ", ", isMap ? entry.key + ": " : "", valueText(entry.value));
    return isMap ? "{" + text + "}" : "[" + text + "]";
}

/// Takes the whole study apart, beside what of it was written.
class StudyValues {
public:
    StudyValues(std::string file, const StudyPlaces& places)
        : m_file(std::move(file))
        , m_places(places)
    {
    }

    void add(const DocNode& whole, const DocNode* written, const std::string& path)
    {
        for (const DocEntry& entry : whole.entries) {
            const std::string name = path.empty() ? entry.key : path + "." + entry.key;
            const DocNode* own = written != nullptr && written->kind == DocNode::Kind::Map ? written->find(entry.key) : nullptr;
            // Beside a value that was written in another form (`hardware: v5e-8`) its parts are of it.
            const DocNode* from = own != nullptr                            ? own
                : written != nullptr && written->kind != DocNode::Kind::Map ? written
                                                                            : nullptr;
            if (entry.value.kind == DocNode::Kind::Map)
                add(entry.value, from, name);
            else
                values.push_back({name, valueText(entry.value), fromText(name, from)});
        }
    }

    std::vector<Resolved> values;

private:
    std::string fromText(const std::string& name, const DocNode* written) const
    {
        const auto found = m_places.at.find(name);
        if (found == m_places.at.end() && written == nullptr)
            return "default";
        const Place place = found != m_places.at.end() ? found->second : written->place();
        if (!place.file.empty() && place.file != m_file)
            return place.file;
        return place.line > 0 ? fmt::format("{}:{}", m_file, place.line)
                              : m_file; // the study of a launch line has no lines of its own
    }

    std::string m_file;
    const StudyPlaces& m_places;
};

std::vector<Resolved> installation()
{
    const std::filesystem::path resources = resourcesDirectory();
    const char* named = std::getenv("MESHWRIGHT_RESOURCES");
    const std::string from = named != nullptr && resources == named ? "MESHWRIGHT_RESOURCES"
                                                                    : "beside this program, or the sources it was built from";
    std::vector<Resolved> values = {{"version", kVersion, "this program"}, {"resources", resources.string(), from}};
    for (const auto& [name, path] :
        {std::pair{"hardware", "hardware"}, std::pair{"models", "models"}, std::pair{"examples", "examples"},
            std::pair{"problem texts", "problems.yaml"}, std::pair{"constants of stacks", "hardware/calibration.json"}})
        values.push_back({name, (resources / path).string(), "resources"});
    return values;
}

std::string text(const std::vector<Resolved>& values)
{
    TextTable table({{"what"}, {"value"}, {"from"}});
    for (const Resolved& value : values)
        table.addRow({value.name, value.value, value.from});
    return table.text();
}

std::string json(const std::vector<Resolved>& values)
{
    Json list = Json::array();
    for (const Resolved& value : values)
        list.push_back({{"name", value.name}, {"value", value.value}, {"from", value.from}});
    const Json document = {{"schema", "meshwright.config/1"}, {"meshwright", kVersion}, {"values", std::move(list)}};
    return jsonText(document);
}

/// What follows from hardware: the machine and the stack.
Result<std::vector<Resolved>> machineValues(const Study& study)
{
    const auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return catalogue.error();
    const auto machine = sim::machineOf(study, *catalogue);
    if (!machine)
        return machine.error();
    const Result<sim::Calibration>& calibration = sim::defaultCalibration();
    if (!calibration)
        return calibration.error();
    std::vector<Resolved> values = {{"machine", machine->text(), "hardware"}};
    if (study.stack.empty())
        values.push_back({"stack", std::string(calibration->usualStack(machine->chip)), "the usual one on this chip"});
    return values;
}

} // namespace

int runConfig(const ConfigOptions& options, Output& output)
{
    if (options.file.empty() && !options.settings.empty())
        return fail({Problem{"MW1904", "STUDY is missing: --hw, --mesh, --stack and --set are of a study",
                        "meshwright config study.yaml --set mesh.data=8"}},
            output);
    std::vector<Resolved> values = installation();
    Problems problems;
    if (!options.file.empty()) {
        const auto written = readFile(options.file);
        if (!written)
            return fail(written.error(), output);
        const std::string file = options.file == "-" ? "standard input" : options.file;
        if (isProgramText(options.file, *written))
            return fail({Problem{"MW1830", "a program states its mesh and its specs, and no values of a study",
                            "see its layouts with `meshwright propagate`", Place{file}}},
                output);
        const auto source = sourceOf({*written, file, options.settings}, output);
        if (!source)
            return fail(source.error(), output);
        const auto study = readStudy(source->text, file, source->settings);
        if (!study)
            return fail(study.error(), output);
        Document document = parseDocument(source->text, file);
        if (source->text.starts_with(kMadeStudy))
            clearLines(document.root);
        append(document.problems, applySettings(document.root, source->settings));
        StudyValues parts(file, study->places);
        parts.add(parseDocument(writeStudy(*study), "").root, &document.root, {});
        values = std::move(parts.values);
        if (study->hardware) {
            if (const auto more = machineValues(*study))
                values.insert(values.end(), more->begin(), more->end());
            else
                problems = more.error(); // the values are shown all the same
        }
    }
    output.result(output.format == Format::Json ? json(values) : text(values));
    return problems.empty() ? int{kExitOk} : failAfterResult(problems, output);
}

} // namespace meshwright::cli
