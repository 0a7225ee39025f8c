// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/validate/record.h"

#include "core/support/file.h"
#include "core/support/json_reader.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace meshwright::sim {

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

void flatten(const Json& json, const std::string& path, Record& record)
{
    if (json.is_object()) {
        for (const auto& [name, value] : json.items())
            flatten(value, path.empty() ? name : path + "." + name, record);
    } else if (json.is_boolean())
        record.numbers[path] = json.get<bool>() ? 1.0 : 0.0;
    else if (json.is_number())
        record.numbers[path] = json.get<double>();
    else if (json.is_string())
        record.texts[path] = json.get<std::string>();
    else if (json.is_array() && path == "shape" && !json.empty()) {
        // Rows and columns of a memory operation: all but the last dimension are rows.
        double rows = 1.0;
        for (std::size_t i = 0; i + 1 < json.size(); ++i)
            rows *= json[i].is_number() ? json[i].get<double>() : 1.0;
        record.numbers["rows"] = rows;
        record.numbers["columns"] = json.back().is_number() ? json.back().get<double>() : 0.0;
    }
}

constexpr std::size_t kLongestText = 4096;
constexpr double kLargestSize = 0x1p40;
constexpr double kLargestNumber = 1e40;

/// Bytes, rates, parameters and what came out may be large; everything else counts things or gives a length.
bool isSize(std::string_view path)
{
    for (const char* prefix : {"measured.", "derived.", "answer.", "inputs."}) {
        if (path.starts_with(prefix))
            return false;
    }
    for (const char* part : {"params", "bytes", "flops", "tokens", "per_s"}) {
        if (path.find(part) != std::string_view::npos)
            return false;
    }
    return true;
}

/// What no prediction may be made of.
std::string faultOf(const Record& record)
{
    for (const auto& [path, text] : record.texts) {
        if (text.size() > kLongestText)
            return fmt::format("`{}` has {} letters, more than {}", path, text.size(), kLongestText);
    }
    for (const auto& [path, number] : record.numbers) {
        const double largest = isSize(path) ? kLargestSize : kLargestNumber;
        if (std::abs(number) > largest)
            return fmt::format("`{}` is {:g}, more than {:g}", path, number, largest);
    }
    for (const Record::Point& point : record.points) {
        if (point.bytes < 0.0 || point.bytes > kLargestSize)
            return fmt::format("a message has {:g} bytes: not from 0 to {:g}", point.bytes, kLargestSize);
    }
    return {};
}

double pointSeconds(const Json& point, const std::string& operation, double devices)
{
    for (const char* name : {"time_s", "time_s_from_bus_bandwidth", "time_s_from_reported"}) {
        if (point.contains(name) && point[name].is_number())
            return point[name].get<double>();
    }
    const double bytes = point.value("message_bytes", 0.0);
    for (const char* name : {"bus_bandwidth_bytes_per_s", "bus_bandwidth_bytes_per_s_from_time"}) {
        if (point.contains(name) && point[name].is_number() && point[name].get<double>() > 0.0)
            return bytes * (operation == "all_reduce" ? 2.0 : 1.0) * (devices - 1.0) / devices / point[name].get<double>();
    }
    return 0.0;
}

Record recordOf(const Json& json, const std::string& file)
{
    Record record;
    record.file = file;
    flatten(json, "", record);
    record.id = record.text("id");
    record.kind = record.text("kind");
    record.flagged = json.contains("flags") && json["flags"].is_array() && !json["flags"].empty();
    if (json.contains("points") && json["points"].is_array()) {
        const double devices = record.numberOr("points.0.gather_degree", record.numberOr("chips", 1.0));
        for (const Json& point : json["points"]) {
            if (!point.is_object() || !point.contains("message_bytes") || !point["message_bytes"].is_number())
                continue;
            const double seconds = pointSeconds(point, record.text("operation"), devices);
            record.points.push_back({point["message_bytes"].get<double>(), seconds});
            if (point.contains("gather_degree") && point["gather_degree"].is_number())
                record.numbers["gather_degree"] = point["gather_degree"].get<double>();
        }
    }
    record.fault = faultOf(record);
    return record;
}

/// What plans call otherwise than measurements do.
constexpr std::pair<const char*, const char*> kModelNames[]
    = {{"seq_len", "seq"}, {"top_k", "experts_per_token"}, {"expert_ffn", "moe_ffn"}};
constexpr std::pair<const char*, const char*> kLayoutNames[] = {{"dp", "dp"}, {"tp", "tp"}, {"pp", "pp"}, {"cp", "cp"},
    {"ep", "ep"}, {"vpp", "virtual_pipeline"}, {"zero_stage", "zero_stage"}, {"sequence_parallel", "sequence_parallel"},
    {"schedule", "schedule"}, {"async_tp", "async_tp"}, {"slices", "slices"}};

Json renamed(const Json& from, std::span<const std::pair<const char*, const char*>> names)
{
    Json to = from;
    for (const auto& [old, name] : names) {
        if (from.contains(old) && !to.contains(name))
            to[name] = from[old];
    }
    return to;
}

/// A candidate of a plan in the form of a measurement.
Record candidateOf(const Json& plan, const Json& candidate, std::size_t index, const std::string& file)
{
    const auto part
        = [&](const char* name) { return plan.contains(name) && plan[name].is_object() ? plan[name] : Json::object(); };
    const Json workload = part("workload");
    const Json cluster = part("cluster");
    const Json source = part("source");
    Json json;
    json["id"] = fmt::format("{}#{}", plan.value("id", ""), index);
    json["kind"] = "training_step";
    json["model"] = renamed(part("model"), kModelNames);
    for (const char* name : {"heads"}) {
        if (candidate.contains(name))
            json["model"][name] = json["model"]["kv_heads"] = candidate[name];
    }
    if (candidate.contains("seq_len"))
        json["model"]["seq"] = candidate["seq_len"];
    json["parallel"] = Json::object();
    for (const auto& [old, name] : kLayoutNames) {
        if (candidate.contains(old))
            json["parallel"][name] = candidate[old];
    }
    if (!json["parallel"].contains("schedule") && workload.contains("pipeline_schedule"))
        json["parallel"]["schedule"] = workload["pipeline_schedule"];
    json["system"] = cluster.value("accelerator", "");
    json["chips"] = candidate.contains("chips") ? candidate["chips"] : cluster.contains("chips") ? cluster["chips"] : Json();
    json["topology"] = cluster.contains("inter_node") && cluster["inter_node"].is_string() ? cluster["inter_node"] : Json("");
    if (cluster.contains("per_node"))
        json["per_node"] = cluster["per_node"];
    for (const Json* from : {&candidate, &workload}) {
        if (from->contains("global_batch_seqs") && !json.contains("global_batch_sequences"))
            json["global_batch_sequences"] = (*from)["global_batch_seqs"];
        if (from->contains("local_batch") && (*from)["local_batch"].is_number() && !json.contains("local_batch"))
            json["local_batch"] = (*from)["local_batch"];
        if (from->contains("per_chip_batch") && (*from)["per_chip_batch"].is_number() && !json.contains("local_batch"))
            json["local_batch"] = (*from)["per_chip_batch"];
    }
    if (candidate.contains("micro_batch"))
        json["microbatch_sequences"] = candidate["micro_batch"];
    if (candidate.contains("grad_accum"))
        json["parallel"]["gradient_accumulation_steps"] = candidate["grad_accum"];
    json["recompute"] = candidate.contains("recompute") ? candidate["recompute"] : Json("not stated");
    json["dtype"] = candidate.contains("precision") ? candidate["precision"]
        : workload.contains("dtype")                ? workload["dtype"]
                                                    : Json("bf16");
    json["software"] = source.value("name", "") + "; kernel: " + workload.value("kernel", "");
    if (candidate.contains("compile"))
        json["compile"] = candidate["compile"];
    const std::string status = candidate.value("status", "");
    if (status == "oom")
        json["measured"]["outcome"] = "out_of_memory";
    else if (status != "ok")
        json["measured"]["outcome"] = "not_run";
    else {
        for (const char* name : {"step_time_s", "tokens_per_s_per_chip", "tflops_per_chip", "mfu"}) {
            if (candidate.contains(name))
                json["measured"][name] = candidate[name];
        }
    }
    Record record = recordOf(json, file);
    if (plan.value("kind", "") == "sweep")
        record.sweep = fmt::format("{}|{}|{}|{}|{}|{}|{}", plan.value("id", ""), record.text("software"), record.text("dtype"),
            record.numberOr("model.heads", 0.0), record.numberOr("chips", 0.0), record.numberOr("model.seq", 0.0),
            record.numberOr("global_batch_sequences", 0.0));
    return record;
}

/// Layouts of one model on one machine under one software may be compared.
std::string sweepOf(const Record& record)
{
    std::string key = record.file;
    for (const auto& [path, value] : record.numbers) {
        if (path.starts_with("model.") || path == "chips" || path == "global_batch_sequences")
            key += fmt::format("|{}={}", path, value);
    }
    for (const char* path : {"system", "software", "dtype", "topology"})
        key += "|" + record.text(path);
    return key;
}

Result<std::vector<Record>> recordsOf(const Json& json, const std::string& file)
{
    const std::string name = fs::path(file).filename().string();
    const bool plans = json.is_object() && json.contains("records") && json["records"].is_array();
    if (!plans && !json.is_array())
        return Problem{
            "MW1771", "the file is not a list of records", "give an array of records, or an object with `records`", Place{file}};
    const Json& list = plans ? json["records"] : json;
    std::vector<Record> records;
    Problems problems;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Json& one = list[i];
        const std::string path = fmt::format("[{}]", i);
        if (!one.is_object() || !one.contains("id") || !one["id"].is_string() || !one.contains("kind")
            || !one["kind"].is_string()) {
            problems.push_back({"MW1772", "a record has no id or no kind", "give both, as text", Place{file, 0, 0, path}});
            continue;
        }
        if (!one.contains("candidates") || !one["candidates"].is_array()) {
            records.push_back(recordOf(one, name));
            if (records.back().kind == "training_step")
                records.back().sweep = sweepOf(records.back());
            continue;
        }
        for (std::size_t c = 0; c < one["candidates"].size(); ++c) {
            if (one["candidates"][c].is_object())
                records.push_back(candidateOf(one, one["candidates"][c], c, name));
        }
    }
    if (!problems.empty())
        return problems;
    return records;
}

} // namespace

Problem lacking(const std::string& why)
{
    return {"MW1774", why, "add the field to the record"};
}

std::optional<double> Record::number(std::string_view path) const
{
    const auto found = numbers.find(path);
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

double Record::numberOr(std::string_view path, double otherwise) const
{
    return number(path).value_or(otherwise);
}

std::string Record::text(std::string_view path) const
{
    const auto found = texts.find(path);
    return found == texts.end() ? std::string() : found->second;
}

bool Record::has(std::string_view path) const
{
    return numbers.contains(path) || texts.contains(path);
}

Result<std::vector<Record>> parseRecords(std::string_view text, const std::string& file)
{
    const Json json = !isWithinJsonLimits(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
    if (json.is_discarded())
        return Problem{"MW1770", "the file is not JSON", "give a file of records, as JSON", Place{file}};
    try {
        return recordsOf(json, file);
    } catch (const Json::exception& error) {
        return Problem{"MW1772", fmt::format("a record has a field of another type: {}", error.what()), "see the file's README",
            Place{file}};
    }
}

Result<std::vector<Record>> readRecords(const fs::path& path)
{
    auto text = readFile(path);
    if (!text)
        return text.error();
    return parseRecords(*text, path.string());
}

Result<std::vector<fs::path>> recordFiles(const std::vector<std::string>& arguments)
{
    std::vector<fs::path> files;
    Problems problems;
    for (const std::string& argument : arguments) {
        std::error_code error;
        if (fs::is_directory(argument, error)) {
            std::set<fs::path> found;
            for (const auto& entry : fs::directory_iterator(argument, error)) {
                if (entry.path().extension() == ".json" && entry.path().filename() != "stacks.json")
                    found.insert(entry.path());
            }
            if (found.empty())
                problems.push_back({"MW1773", fmt::format("{} has no record files", argument),
                    "name a folder with .json files of records", Place{argument}});
            files.insert(files.end(), found.begin(), found.end());
        } else if (fs::exists(argument, error)) {
            if (fs::path(argument).filename() != "stacks.json")
                files.emplace_back(argument);
        } else {
            problems.push_back({"MW1773", fmt::format("{} does not exist", argument),
                "name files of records, or folders with them", Place{argument}});
        }
    }
    if (!problems.empty())
        return problems;
    return files;
}

} // namespace meshwright::sim
