// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_profile.h"

#include "core/support/file.h"
#include "core/support/json_reader.h"
#include "core/support/json_text.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

/// Where a size lies on the grid: the point below, and how far towards the next, in logarithms.
struct Place {
    std::size_t below = 0;
    double share = 0.0;
};

Place placeOn(const std::vector<std::int64_t>& sides, double size)
{
    const double wanted = std::clamp(size, static_cast<double>(sides.front()), static_cast<double>(sides.back()));
    std::size_t below = 0;
    while (below + 2 < sides.size() && static_cast<double>(sides[below + 1]) <= wanted)
        ++below;
    if (sides.size() == 1)
        return {};
    const auto low = static_cast<double>(sides[below]);
    const auto high = static_cast<double>(sides[below + 1]);
    return {below, std::log(wanted / low) / std::log(high / low)};
}

Json listOf(const std::vector<SizedTime>& times)
{
    Json list = Json::array();
    for (const SizedTime& time : times)
        list.push_back({{"bytes", time.bytes}, {"s", time.seconds}});
    return list;
}

constexpr std::array<const char*, kHostCosts> kCostNames = {"pass_start", "pass_op", "pass_simple", "pass_divide", "pass_exp",
    "pass_math", "pass_spread", "pass_byte", "pass_far", "pass_memory", "reduce_start", "reduce_row", "reduce_row_element",
    "reduce_row_other", "reduce_row_tail", "reduce_column_call", "reduce_column_element", "reduce_turned", "reduce_byte",
    "reduce_far", "reduce_memory", "product_start", "product_part", "product_flop", "product_copied", "product_turned",
    "product_result", "product_edge", "product_far", "product_memory", "narrow_start", "narrow_part", "narrow_flop",
    "narrow_element", "narrow_result", "narrow_far", "narrow_memory", "move_start", "move_row", "move_fill", "move_element",
    "move_found", "move_added", "move_byte", "move_far", "move_memory", "meet_start", "meet_member", "meet_combine",
    "meet_update", "meet_tile", "meet_row", "meet_byte", "meet_far", "meet_memory", "wait_share", "wait_meeting"};

/// Of the figures under `host`; the first version had other constants.
constexpr int kHostVersion = 3;

Json costsJson(const HostCosts& costs)
{
    Json json = Json::object();
    for (std::size_t i = 0; i < kHostCosts; ++i)
        json[kCostNames[i]] = costs[i];
    return json;
}

/// Takes figures out of the `host` object and notes what is wrong with them.
class ProfileReader {
public:
    ProfileReader(const Json& json, std::string file)
        : m_json(json)
        , m_file(std::move(file))
    {
    }

    /// Beyond these nothing was measured.
    static constexpr double kLeastNumber = 1e-15;
    static constexpr double kMostNumber = 1e18;
    static constexpr double kMostSeconds = 1e3;

    double number(const Json& parent, const std::string& name)
    {
        const auto found = parent.is_object() ? parent.find(name) : parent.end();
        if (found == parent.end() || !found->is_number() || !std::isfinite(found->template get<double>())
            || found->template get<double>() < kLeastNumber || found->template get<double>() > kMostNumber) {
            complain(name, fmt::format("{} must be a number above 0", name));
            return 1.0;
        }
        return found->template get<double>();
    }
    double number(const std::string& name) { return number(m_json, name); }

    std::vector<double> numbers(const std::string& name)
    {
        std::vector<double> result;
        const auto found = m_json.find(name);
        if (found == m_json.end() || !found->is_array() || found->empty()) {
            complain(name, fmt::format("{} must be a list of numbers", name));
            return {1.0};
        }
        for (const Json& entry : *found) {
            if (!entry.is_number() || !std::isfinite(entry.get<double>()) || entry.get<double>() <= 0.0) {
                complain(name, fmt::format("{} must hold numbers above 0", name));
                return {1.0};
            }
            result.push_back(entry.get<double>());
        }
        return result;
    }

    std::vector<SizedTime> times(const std::string& name)
    {
        std::vector<SizedTime> result;
        const auto found = m_json.find(name);
        if (found == m_json.end() || !found->is_array() || found->empty()) {
            complain(name, fmt::format("{} must be a list of sizes and times", name));
            return {{1.0, 1.0}};
        }
        for (const Json& entry : *found)
            result.push_back({number(entry, "bytes"), number(entry, "s")});
        if (!std::ranges::is_sorted(result, {}, &SizedTime::bytes))
            complain(name, fmt::format("{} must go from small to large", name));
        return result;
    }

    /// Some things take no time that can be told from others: 0 is all right.
    HostCosts costs()
    {
        HostCosts result{};
        const Json list = m_json.value("costs_s", Json::object());
        for (std::size_t i = 0; i < kHostCosts; ++i) {
            const Json cost = list.is_object() ? list.value(kCostNames[i], Json()) : Json();
            result[i] = cost.is_number() ? cost.template get<double>() : -1.0;
            if (result[i] < 0.0 || !(result[i] <= kMostSeconds))
                complain(fmt::format("costs_s.{}", kCostNames[i]),
                    fmt::format("{} must be a number from 0 to {} s", kCostNames[i], kMostSeconds));
        }
        return result;
    }

    void complain(const std::string& path, const std::string& what)
    {
        m_problems.push_back({"MW1711", what, "make the profile again with `meshwright calibrate -o host.json`",
            {.file = m_file, .path = "host." + path}});
    }

    const Problems& problems() const { return m_problems; }

private:
    const Json& m_json;
    std::string m_file;
    Problems m_problems;
};

} // namespace

const char* hostCostName(HostCost cost)
{
    return kCostNames[static_cast<std::size_t>(cost)];
}

double HostProfile::productRate(double m, double n, double k) const
{
    const std::array<Place, 3> places = {placeOn(sides, m), placeOn(sides, n), placeOn(sides, k)};
    double logRate = 0.0;
    for (std::size_t corner = 0; corner < 8; ++corner) {
        double weight = 1.0;
        std::size_t index = 0;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const bool above = (corner >> axis & 1U) != 0U;
            weight *= above ? places[axis].share : 1.0 - places[axis].share;
            index = index * sides.size() + std::min(places[axis].below + (above ? 1 : 0), sides.size() - 1);
        }
        if (weight > 0.0)
            logRate += weight * std::log(productFlopsPerSecond[index]);
    }
    return std::exp(logRate);
}

std::string hostProfileJson(const HostProfile& profile)
{
    const double best = *std::ranges::max_element(profile.productFlopsPerSecond);
    const SizedTime& largest = profile.streams.back();
    const SizedTime& moved = profile.allGather.back();
    Json json;
    json["schema"] = "meshwright.hardware/1";
    json["meshwright"] = kVersion;
    json["meshwright_hardware"] = 1;
    json["chip"]
        = {{"name", profile.name}, {"class", "cpu"}, {"memory_bytes", static_cast<double>(profile.memoryBytes) / profile.devices},
            {"memory_bytes_per_s", largest.bytes / largest.seconds}, {"flops", {{"fp32", best}}}};
    json["topology"] = Json::array({{{"name", "device"}, {"kind", "switch"}, {"length", profile.devices},
        {"bytes_per_s", moved.bytes * (profile.devices - 1) / profile.devices / moved.seconds},
        {"latency_s", profile.allGather.front().seconds / std::max(1, profile.devices - 1)}}});
    json["host"]
        = {{"version", kHostVersion}, {"permits", profile.permits}, {"devices", profile.devices}, {"sides", profile.sides},
            {"product_flops_per_s", profile.productFlopsPerSecond}, {"alone_flops_per_s", profile.aloneFlopsPerSecond},
            {"kernel_s", profile.kernelSeconds}, {"streams", listOf(profile.streams)}, {"costs_s", costsJson(profile.costs)},
            {"reference_s", {{"products", profile.reference.productSeconds}, {"others", profile.reference.otherSeconds}}},
            {"cache_bytes", profile.cacheBytes}, {"barrier_s", profile.barrierSeconds}, {"all_reduce", listOf(profile.allReduce)},
            {"all_gather", listOf(profile.allGather)}, {"memory_bytes", profile.memoryBytes}};
    return jsonText(json);
}

Result<HostProfile> parseHostProfile(std::string_view text, const std::string& file)
{
    const Json json = !isWithinJsonLimits(text) ? Json() : parsedJson(text);
    if (!json.is_object() || !json.contains("host") || !json["host"].is_object())
        return Problem{"MW1711", "the file is not a profile of a computer: it is not JSON, or has no \"host\"",
            "make one with `meshwright calibrate -o host.json`", {.file = file}};
    if (json["host"].value("version", Json(1)) != Json(kHostVersion))
        return Problem{"MW1711", "the profile is of another version of this program, which measured other figures",
            "make it again with `meshwright calibrate -o host.json`", {.file = file, .path = "host.version"}};
    ProfileReader reader(json["host"], file);
    HostProfile profile;
    if (json.contains("chip") && json["chip"].is_object() && json["chip"].contains("name") && json["chip"]["name"].is_string())
        profile.name = json["chip"]["name"].get<std::string>();
    profile.permits = static_cast<int>(std::clamp(reader.number("permits"), 1.0, 1e6));
    profile.devices = static_cast<int>(std::clamp(reader.number("devices"), 1.0, 1e6));
    for (const double side : reader.numbers("sides"))
        profile.sides.push_back(static_cast<std::int64_t>(std::clamp(side, 1.0, 1e12)));
    profile.productFlopsPerSecond = reader.numbers("product_flops_per_s");
    profile.aloneFlopsPerSecond = reader.number("alone_flops_per_s");
    profile.kernelSeconds = reader.number("kernel_s");
    profile.streams = reader.times("streams");
    profile.costs = reader.costs();
    const Json reference = json["host"].value("reference_s", Json::object());
    profile.reference = {reader.number(reference, "products"), reader.number(reference, "others")};
    if (const auto levels = reader.numbers("cache_bytes"); levels.size() == profile.cacheBytes.size())
        std::ranges::copy(levels, profile.cacheBytes.begin());
    else
        reader.complain("cache_bytes", "cache_bytes must be two sizes");
    profile.barrierSeconds = reader.number("barrier_s");
    profile.allReduce = reader.times("all_reduce");
    profile.allGather = reader.times("all_gather");
    profile.memoryBytes = static_cast<std::int64_t>(std::min(reader.number("memory_bytes"), 1e18));
    const std::size_t sides = profile.sides.size();
    if (std::ranges::adjacent_find(profile.sides, std::greater_equal{}) != profile.sides.end())
        reader.complain("sides", "sides must rise");
    if (sides > 1000 || profile.productFlopsPerSecond.size() != sides * sides * sides)
        reader.complain(
            "product_flops_per_s", fmt::format("product_flops_per_s must have a rate for each of {}^3 products", sides));
    if (!reader.problems().empty())
        return reader.problems();
    return profile;
}

Result<HostProfile> readHostProfile(const std::filesystem::path& path)
{
    const auto text = readFile(path);
    if (!text)
        return text.error();
    return parseHostProfile(*text, path.string());
}

} // namespace meshwright::sim
