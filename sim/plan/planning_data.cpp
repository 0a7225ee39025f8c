// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/planning_data.h"

#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

/// Reads numbers and texts, and notes what is missing.
class Reader {
public:
    explicit Reader(const std::string& file)
        : m_file(file)
    {
    }

    const Json& object(const Json& parent, const char* field)
    {
        static const Json kNone = Json::object();
        const auto found = parent.find(field);
        if (found != parent.end() && found->is_object())
            return *found;
        complain(fmt::format("\"{}\" is missing", field));
        return kNone;
    }

    const Json& list(const Json& parent, const char* field)
    {
        static const Json kNone = Json::array();
        const auto found = parent.find(field);
        if (found != parent.end() && found->is_array())
            return *found;
        complain(fmt::format("\"{}\" is not a list", field));
        return kNone;
    }

    /// Above 0.
    double number(const Json& parent, const char* field)
    {
        if (parent.is_object()) {
            const auto found = parent.find(field);
            if (found != parent.end() && found->is_number() && found->get<double>() > 0.0)
                return found->get<double>();
        }
        complain(fmt::format("\"{}\" is not a number above 0", field));
        return 1.0;
    }

    std::string text(const Json& parent, const char* field)
    {
        if (parent.is_object()) {
            const auto found = parent.find(field);
            if (found != parent.end() && found->is_string())
                return found->get<std::string>();
        }
        complain(fmt::format("\"{}\" is not a text", field));
        return {};
    }

    Problems problems;

private:
    void complain(const std::string& message)
    {
        problems.push_back({"MW1702", message, "use the file that comes with the program", {.file = m_file}});
    }

    std::string m_file;
};

} // namespace

Result<PlanningData> PlanningData::load(const std::filesystem::path& path)
{
    const auto text = readFile(path);
    if (!text)
        return text.error();
    return parse(*text, path.string());
}

Result<PlanningData> PlanningData::parse(std::string_view text, const std::string& file)
{
    const Json json = parsedJson(text);
    if (!json.is_object())
        return Problem{
            "MW1702", "the planning data are not valid JSON", "use the file that comes with the program", {.file = file}};
    Reader reader(file);
    PlanningData data;
    for (const Json& one : reader.list(json, "prices")) {
        std::string source = reader.text(one, "source");
        if (one.is_object() && one.contains("note"))
            source += "; " + reader.text(one, "note");
        data.m_prices.push_back({reader.text(one, "chip"),
            {reader.number(one, "dollars_per_chip_hour"), reader.text(one, "date"), std::move(source)}});
    }
    const Json& failures = reader.object(json, "failures");
    data.m_chipSecondsPerFailure = {reader.number(failures, "days") * kSecondsPerDay * reader.number(failures, "chips")
            / reader.number(failures, "interruptions"),
        reader.text(failures, "source")};
    const Json& storage = reader.object(json, "checkpoints");
    data.m_storage = {reader.number(storage, "bytes_per_s") / reader.number(storage, "chips"), reader.text(storage, "source")};
    const Json& restart = reader.object(json, "restart");
    data.m_restart = {reader.number(restart, "seconds"), reader.text(restart, "source")};
    const Json& errors = reader.object(json, "program_errors");
    for (const Json& one : reader.list(errors, "files")) {
        FileErrors errorsOfFile{reader.text(one, "file"), reader.text(one, "chip"), {}};
        for (const Json& ratio : reader.list(one, "measured_over_simulated")) {
            const Json step = {{"measured_over_simulated", ratio}};
            errorsOfFile.ratios.push_back(reader.number(step, "measured_over_simulated"));
        }
        std::sort(errorsOfFile.ratios.begin(), errorsOfFile.ratios.end());
        data.m_errors.push_back(std::move(errorsOfFile));
    }
    data.m_errorsSource = reader.text(errors, "source");
    if (!reader.problems.empty())
        return std::move(reader.problems);
    return data;
}

std::optional<ChipPrice> PlanningData::priceOf(const Chip& chip) const
{
    if (chip.dollarsPerHour)
        return ChipPrice{chip.dollarsPerHour->value, {}, chip.dollarsPerHour->source};
    const auto found = std::find_if(m_prices.begin(), m_prices.end(), [&](const Priced& one) { return one.chip == chip.key; });
    return found == m_prices.end() ? std::nullopt : std::optional(found->price);
}

double StepErrors::share() const
{
    std::vector<double> shares;
    for (const double ratio : ratios)
        shares.push_back(std::abs(1.0 / ratio - 1.0));
    std::sort(shares.begin(), shares.end());
    return shares[most() - 1];
}

std::optional<StepErrors> PlanningData::errorsOf(const Chip& chip) const
{
    constexpr std::size_t kLeast = 5;
    const bool isTpu = chip.chipClass == ChipClass::Tpu;
    StepErrors own{chip.key, {}};
    StepErrors ofClass{isTpu ? "tpu" : "gpu", {}};
    for (const FileErrors& file : m_errors) {
        if (file.chip == chip.key)
            own.ratios.insert(own.ratios.end(), file.ratios.begin(), file.ratios.end());
        if (file.chip.starts_with("tpu") == isTpu)
            ofClass.ratios.insert(ofClass.ratios.end(), file.ratios.begin(), file.ratios.end());
    }
    StepErrors& errors = own.ratios.size() >= kLeast ? own : ofClass;
    if (errors.ratios.empty())
        return std::nullopt;
    std::sort(errors.ratios.begin(), errors.ratios.end());
    return std::move(errors);
}

std::vector<double> PlanningData::errorsOf(std::string_view file, std::string_view chip) const
{
    std::vector<double> ratios;
    for (const FileErrors& one : m_errors) { // one for each stack
        if (one.file == file && one.chip == chip)
            ratios.insert(ratios.end(), one.ratios.begin(), one.ratios.end());
    }
    std::sort(ratios.begin(), ratios.end());
    return ratios;
}

Goodput goodputOf(double failureSeconds, double checkpointSeconds, double restartSeconds)
{
    Goodput result{failureSeconds, checkpointSeconds, std::sqrt(2.0 * checkpointSeconds * failureSeconds), restartSeconds, 1.0};
    const double written = result.intervalSeconds > 0.0 ? checkpointSeconds / result.intervalSeconds : 0.0;
    const double lost = (restartSeconds + 0.5 * (result.intervalSeconds + checkpointSeconds)) / failureSeconds;
    result.share = 1.0 / ((1.0 + written) * (1.0 + lost));
    return result;
}

} // namespace meshwright::sim
