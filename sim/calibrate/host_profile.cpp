// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_profile.h"

#include "core/support/file.h"
#include "core/support/json_reader.h"

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

/// Takes figures out of the `host` object and notes what is wrong with them.
class ProfileReader {
public:
    ProfileReader(const Json& json, std::string file)
        : m_json(json)
        , m_file(std::move(file))
    {
    }

    double number(const Json& parent, const std::string& name)
    {
        const auto found = parent.is_object() ? parent.find(name) : parent.end();
        if (found == parent.end() || !found->is_number() || !std::isfinite(found->template get<double>())
            || found->template get<double>() <= 0.0) {
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

double secondsFor(const std::vector<SizedTime>& times, double bytes)
{
    if (bytes <= times.front().bytes)
        return times.front().seconds;
    for (std::size_t i = 1; i < times.size(); ++i) {
        if (bytes > times[i].bytes)
            continue;
        const double share = std::log(bytes / times[i - 1].bytes) / std::log(times[i].bytes / times[i - 1].bytes);
        return times[i - 1].seconds * std::pow(times[i].seconds / times[i - 1].seconds, share);
    }
    return times.back().seconds * bytes / times.back().bytes;
}

std::string hostProfileJson(const HostProfile& profile)
{
    const double best = *std::ranges::max_element(profile.productFlopsPerSecond);
    const SizedTime& largest = profile.streams.back();
    const SizedTime& moved = profile.allGather.back();
    Json json;
    json["meshwright_hardware"] = 1;
    json["chip"]
        = {{"name", profile.name}, {"class", "cpu"}, {"memory_bytes", static_cast<double>(profile.memoryBytes) / profile.devices},
            {"memory_bytes_per_s", largest.bytes / largest.seconds}, {"flops", {{"fp32", best}}}};
    json["topology"] = Json::array({{{"name", "device"}, {"kind", "switch"}, {"length", profile.devices},
        {"bytes_per_s", moved.bytes * (profile.devices - 1) / profile.devices / moved.seconds},
        {"latency_s", profile.allGather.front().seconds / std::max(1, profile.devices - 1)}}});
    json["host"] = {{"permits", profile.permits}, {"devices", profile.devices}, {"sides", profile.sides},
        {"product_flops_per_s", profile.productFlopsPerSecond}, {"alone_flops_per_s", profile.aloneFlopsPerSecond},
        {"kernel_s", profile.kernelSeconds}, {"streams", listOf(profile.streams)},
        {"simple_s_per_element", profile.simpleSecondsPerElement}, {"math_s_per_element", profile.mathSecondsPerElement},
        {"divide_s_per_element", profile.divideSecondsPerElement}, {"reduce_s_per_element", profile.reduceSecondsPerElement},
        {"reduce_columns_s_per_element", profile.reduceColumnsSecondsPerElement}, {"spread", profile.spread},
        {"barrier_s", profile.barrierSeconds}, {"all_reduce", listOf(profile.allReduce)},
        {"all_gather", listOf(profile.allGather)}, {"memory_bytes", profile.memoryBytes}};
    return json.dump(2) + "\n";
}

Result<HostProfile> parseHostProfile(std::string_view text, const std::string& file)
{
    const Json json = jsonDepth(text) > kDeepestJson ? Json() : Json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("host") || !json["host"].is_object())
        return Problem{"MW1711", "the file is no profile of a computer: it is not JSON, or has no \"host\"",
            "make one with `meshwright calibrate -o host.json`", {.file = file}};
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
    profile.simpleSecondsPerElement = reader.number("simple_s_per_element");
    profile.mathSecondsPerElement = reader.number("math_s_per_element");
    profile.divideSecondsPerElement = reader.number("divide_s_per_element");
    profile.reduceSecondsPerElement = reader.number("reduce_s_per_element");
    profile.reduceColumnsSecondsPerElement = reader.number("reduce_columns_s_per_element");
    profile.spread = reader.number("spread");
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
