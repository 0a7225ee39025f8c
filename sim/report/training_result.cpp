// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/training_result.h"

#include "core/support/json_reader.h"
#include "core/support/json_text.h"
#include "sim/report/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;
using Reader = JsonReader<Json>;

MeasuredCollective readCollective(Reader& reader, const Json& json, const std::string& path)
{
    MeasuredCollective collective;
    collective.op = reader.text(json, "op", path);
    collective.axes = reader.text(json, "axes", path);
    collective.phase = reader.text(json, "phase", path);
    collective.mesh = reader.text(json, "mesh", path);
    collective.count = reader.integer(json, "count", path);
    collective.payloadBytes = reader.integer(json, "bytes_per_device", path);
    collective.countedCalls = reader.integer(json, "counted_calls", path);
    collective.countedBytes = reader.integer(json, "counted_bytes_per_device", path);
    if (const Json* cause = reader.member(json, "cause", path))
        collective.value = reader.text(*cause, "value", Reader::join(path, "cause"));
    return collective;
}

MeasuredVerification readVerification(Reader& reader, const Json& json, const std::string& path)
{
    MeasuredVerification verification;
    const std::string verdict = reader.text(json, "verdict", path);
    if (!verdict.empty() && verdict != "equal" && verdict != "different" && verdict != "nothing proved")
        reader.wrong(Reader::join(path, "verdict"), fmt::format("\"{}\" is neither equal nor different", verdict));
    verification.passed = verdict == "equal" || verdict == "nothing proved";
    verification.provesAnything = verdict != "nothing proved";
    verification.maxAbsError = reader.measured(json, "max_abs_error", path);
    verification.maxRelError = reader.measured(json, "max_rel_error", path);
    reader.list(json, "checked_steps", path, true,
        [&](const Json& step, const std::string& at) { verification.checkedSteps.push_back(reader.integerOf(step, at)); });
    reader.list(json, "tensors", path, false, [&](const Json& tensor, const std::string& at) {
        verification.tensors.push_back({reader.text(tensor, "name", at), reader.measured(tensor, "error", at),
            reader.measured(tensor, "unsharded_error", at), reader.measured(tensor, "tolerance", at),
            reader.measured(tensor, "scale", at), reader.truth(tensor, "passed", at)});
    });
    return verification;
}

MeasuredTraining readAll(Reader& reader, const Json& json)
{
    MeasuredTraining training;
    training.version = reader.text(json, "meshwright", {});
    reader.list(json, "losses", {}, false,
        [&](const Json& loss, const std::string& at) { training.losses.push_back(reader.measuredOf(loss, at)); });
    if (const Json* metrics = reader.member(json, "metrics", {})) {
        reader.list(*metrics, "accuracy", "metrics", false,
            [&](const Json& accuracy, const std::string& at) { training.accuracies.push_back(reader.measuredOf(accuracy, at)); });
        if (reader.member(*metrics, "held_out_accuracy", "metrics", true) != nullptr)
            training.heldOutAccuracy = reader.measured(*metrics, "held_out_accuracy", "metrics");
        training.heldOutExamples = reader.integer(*metrics, "held_out_examples", "metrics", 0, true);
    }
    if (const Json* seconds = reader.member(json, "step_time_s", {})) {
        training.stepSecondsMedian = reader.number(*seconds, "median", "step_time_s");
        training.stepSecondsMin = reader.number(*seconds, "min", "step_time_s");
        training.stepSecondsMax = reader.number(*seconds, "max", "step_time_s");
    }
    training.samplesPerSecond = reader.number(json, "samples_per_s", {});
    training.devices = reader.integer(json, "devices", {}, 1);
    training.stepArenaBytes = reader.integer(json, "peak_bytes_per_device", {});
    training.interrupted = reader.truth(json, "interrupted", {});
    if (training.losses.empty() && !training.interrupted) // a run may be stopped before its first step
        reader.wrong("losses", "there is no loss");
    reader.list(json, "phases", {}, false, [&](const Json& phase, const std::string& at) {
        training.phases.push_back({reader.text(phase, "mesh", at), reader.integer(phase, "steps", at),
            reader.integer(phase, "arena_bytes", at), reader.integer(phase, "moved_bytes", at)});
    });
    reader.list(json, "collectives", {}, false, [&](const Json& collective, const std::string& at) {
        training.collectives.push_back(readCollective(reader, collective, at));
    });
    if (const Json* verify = reader.member(json, "verify", {}, true))
        training.verification = readVerification(reader, *verify, "verify");
    return training;
}

} // namespace

Result<MeasuredTraining> readTrainingResult(std::string_view text, const std::string& file)
{
    if (text.size() > kLargestReportBytes || !isWithinJsonLimits(text))
        return Problem{"MW1824", "the training result is too large or nested too deep to be one",
            "name a file that `meshwright train -o` wrote", Place{file}};
    const Json json = parsedJson(text);
    if (!json.is_object())
        return Problem{"MW1825", json.is_discarded() ? "the text is not JSON" : "the JSON is not a training result",
            "name a file that `meshwright train -o` wrote", Place{file}};
    const auto schema = json.find("schema");
    const std::string name = schema != json.end() && schema->is_string() ? schema->get<std::string>() : std::string();
    if (name != "meshwright.training/1")
        return Problem{"MW1825",
            name.empty() ? std::string("the JSON names no schema") : fmt::format("the result is a \"{}\"", name),
            "name a \"meshwright.training/1\": `meshwright train STUDY -o result.json` writes one", Place{file}};
    Reader reader("MW1826", file);
    MeasuredTraining training = readAll(reader, json);
    if (!reader.problems().empty())
        return reader.problems();
    training.json = jsonText(json);
    return training;
}

} // namespace meshwright::sim
