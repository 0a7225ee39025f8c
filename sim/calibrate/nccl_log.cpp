// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/nccl_log.h"

#include "core/support/file.h"
#include "core/support/json_reader.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<const char*, CollectiveKind> kPrograms[] = {{"all_reduce", CollectiveKind::AllReduce},
    {"all_gather", CollectiveKind::AllGather}, {"reduce_scatter", CollectiveKind::ReduceScatter},
    {"alltoall", CollectiveKind::AllToAll}, {"all_to_all", CollectiveKind::AllToAll}, {"sendrecv", CollectiveKind::Permute},
    {"broadcast", CollectiveKind::Broadcast}};

std::optional<CollectiveKind> programIn(std::string_view text)
{
    for (const auto& [name, kind] : kPrograms) {
        if (text.find(std::string(name) + "_perf") != std::string_view::npos)
            return kind;
    }
    return std::nullopt;
}

std::vector<std::string> words(std::string_view line)
{
    std::vector<std::string> result;
    std::string word;
    for (const char letter : line) {
        if (letter == ' ' || letter == '\t' || letter == '\r') {
            if (!word.empty())
                result.push_back(std::move(word));
            word.clear();
        } else {
            word += letter;
        }
    }
    if (!word.empty())
        result.push_back(std::move(word));
    return result;
}

/// A line without what a launcher puts before it: `[1,0]<stdout>:` (mpirun --tag-output, also with a host or a time), `0: ` (srun --label).
std::string_view withoutTag(std::string_view line)
{
    for (const std::string_view tag : {std::string_view("]<stdout>:"), std::string_view("]<stderr>:")}) {
        if (const std::size_t at = line.find(tag); at != std::string_view::npos)
            return line.substr(at + tag.size());
    }
    const std::size_t first = line.find_first_not_of(' ');
    const std::size_t end = line.find_first_not_of("0123456789", std::min(first, line.size()));
    return end != std::string_view::npos && end > first && line.substr(end).starts_with(": ") ? line.substr(end + 2) : line;
}

/// Bus bandwidth over algorithm bandwidth, by nccl-tests' convention.
double busFactorOf(CollectiveKind operation, double ranks)
{
    switch (operation) {
    case CollectiveKind::AllReduce:
        return 2.0 * (ranks - 1.0) / ranks;
    case CollectiveKind::Permute:
    case CollectiveKind::Broadcast:
        return 1.0;
    default:
        return (ranks - 1.0) / ranks;
    }
}

/// `8`, `12.34`, `1e-5`; not `nan`, `N/A`.
std::optional<double> numberIn(const std::string& word)
{
    const auto number = parseNumber(word);
    return number && std::isfinite(*number) ? number : std::nullopt;
}

class LogReader {
public:
    explicit LogReader(std::string file)
        : m_file(std::move(file))
    {
    }

    Result<NcclLog> readText(std::string_view text)
    {
        m_operation = programIn(text);
        std::size_t number = 0;
        for (const std::string& line : split(text, '\n')) {
            ++number;
            const std::string_view untagged = withoutTag(line);
            const auto found = words(untagged);
            if (found.empty())
                continue;
            if (found.front().starts_with('#'))
                comment(std::string(untagged), found);
            else if (isRow(found))
                row(found, static_cast<int>(number));
        }
        if (m_ranksListed.size() >= 2)
            m_log.ranks = static_cast<std::int64_t>(m_ranksListed.size());
        return finish();
    }

    Result<NcclLog> readJson(const Json& json)
    {
        const auto devices = json.contains("config") && json["config"].is_object() && json["config"].contains("devices")
            ? json["config"]["devices"]
            : json.contains("devices") ? json["devices"]
                                       : Json::array();
        if (devices.is_array() && devices.size() >= 2) {
            m_log.ranks = static_cast<std::int64_t>(devices.size());
            for (const Json& device : devices) {
                if (device.is_object()) {
                    m_hosts.insert(textOf(device, "hostname"));
                    m_log.device = textOf(device, "device_info");
                }
            }
        }
        std::string said;
        for (const char* key : {"args", "program", "name", "test"}) {
            if (json.contains(key))
                said += jsonLine(json[key]) + " ";
        }
        const auto results = json.find("results");
        std::size_t index = 0;
        if (results != json.end() && results->is_array()) {
            for (const Json& result : *results) {
                if (result.is_object())
                    said += textOf(result, "experiment_name") + "_perf ";
                jsonRow(result, fmt::format("results[{}]", index++));
            }
        }
        m_operation = programIn(said);
        return finish();
    }

private:
    static std::string textOf(const Json& object, const char* key)
    {
        return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : std::string();
    }

    static bool isSize(const std::string& word)
    {
        return std::ranges::all_of(word, [](char letter) { return letter >= '0' && letter <= '9'; });
    }

    /// True when a line begins with a size, a count and a type; launchers and libraries write lines of their own between the rows.
    static bool isRow(const std::vector<std::string>& found)
    {
        static constexpr std::string_view kTypes[] = {"int", "uint", "half", "float", "double", "bfloat", "f8", "fp8"};
        return found.size() >= 3 && isSize(found[0]) && isSize(found[1])
            && std::ranges::any_of(kTypes, [&](std::string_view type) { return found[2].starts_with(type); });
    }

    void complain(int line, const std::string& path, const std::string& what)
    {
        m_problems.push_back({"MW1714", what, "run the test again, or take the line out",
            {.file = m_file, .line = line, .column = line > 0 ? 1 : 0, .path = path}});
    }

    void comment(const std::string& line, const std::vector<std::string>& found)
    {
        // `#  Rank  0 Group  0 Pid  123 on  host device  0 [0x07] NVIDIA A100`
        for (std::size_t i = 0; i + 1 < found.size(); ++i) {
            if (found[i] == "Rank" && isSize(found[i + 1]))
                m_ranksListed.insert(found[i + 1]);
            if (found[i] == "on" && found.size() > 3 && !m_ranksListed.empty())
                m_hosts.insert(found[i + 1]);
        }
        if (const auto bracket = line.find(']'); line.find("Rank") != std::string::npos && bracket != std::string::npos)
            m_log.device = std::string(trimmed(line.substr(bracket + 1)));
        const auto after = [&](const char* name) -> std::int64_t {
            for (std::size_t i = 0; i + 1 < found.size(); ++i) {
                if (found[i] == name && isSize(found[i + 1]))
                    return parseInteger(found[i + 1]).value_or(0);
            }
            return 0;
        };
        if (m_log.ranks == 0 && after("nGpus") > 0)
            m_log.ranks = std::min<std::int64_t>(1 << 20, after("nGpus"))
                * std::max<std::int64_t>(1, std::min<std::int64_t>(1 << 20, after("nThread")));
        for (const std::string& word : found)
            m_timeColumns += word == "time" || word == "cputime" ? 1 : 0;
    }

    /// size count type [redop] [root], then time, algbw, busbw, #wrong out of place and again in place.
    void row(const std::vector<std::string>& found, int line)
    {
        constexpr std::size_t kGroup = 4;
        const std::size_t groups = m_timeColumns == 1 ? 1 : 2;
        std::size_t first = 2; // past size and count
        while (first < found.size() && (!numberIn(found[first]) || found[first] == "-1") && first < 5)
            ++first;
        // A root may be any rank: so many columns are left as there are names for.
        while (found.size() - first > groups * kGroup && first < 5)
            ++first;
        if (found.size() < first + groups * kGroup) {
            complain(line, {},
                fmt::format("a row of results has {} columns where {} must be: is the log truncated?", found.size(),
                    first + groups * kGroup));
            return;
        }
        const auto bytes = parseInteger(found.front());
        NcclPoint point{bytes.value_or(0)};
        for (std::size_t column = 3; column < first; ++column) { // behind size, count and type
            if (!numberIn(found[column]))
                m_reduces = found[column] != "none";
            else
                m_hasRoot = found[column] != "-1";
        }
        noteBandwidths(numberIn(found[first + 1]), numberIn(found[first + 2]));
        for (std::size_t group = 0; group < groups; ++group) {
            const auto time = numberIn(found[first + group * kGroup]);
            if (!time || *time <= 0.0) {
                complain(line, {}, fmt::format("\"{}\" is not a time in microseconds", found[first + group * kGroup]));
                return;
            }
            (group == 0 ? point.outOfPlaceSeconds : point.inPlaceSeconds) = *time * 1e-6;
            m_log.wrong
                += static_cast<std::int64_t>(std::clamp(numberIn(found[first + group * kGroup + 3]).value_or(0.0), 0.0, 1e15));
        }
        if (!bytes)
            complain(line, {}, fmt::format("\"{}\" is not a size", found.front()));
        else if (*bytes > 0)
            m_log.points.push_back(point);
    }

    void noteBandwidths(std::optional<double> algorithm, std::optional<double> bus)
    {
        if (algorithm && bus && *algorithm > m_fastest && *bus > 0.0) { // which is printed to the most digits
            m_fastest = *algorithm;
            m_busFactor = *bus / *algorithm;
        }
    }

    /// The collectives that reduce or do not, and have a root or not, as the rows say, and whose bandwidths differ by the factor of the rows.
    std::vector<CollectiveKind> operationsOfRows() const
    {
        constexpr double kPrinted = 0.01; // of a factor
        std::vector<CollectiveKind> kinds;
        if (m_busFactor <= 0.0 || m_log.ranks < 2)
            return kinds;
        for (const auto& [name, kind] : kPrograms) {
            const bool reduces = kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
            const bool fits = std::abs(busFactorOf(kind, static_cast<double>(m_log.ranks)) / m_busFactor - 1.0) < kPrinted;
            if (fits && reduces == m_reduces && (kind == CollectiveKind::Broadcast) == m_hasRoot
                && std::ranges::find(kinds, kind) == kinds.end())
                kinds.push_back(kind);
        }
        return kinds;
    }

    void jsonRow(const Json& result, const std::string& path)
    {
        if (!result.is_object() || !result.contains("size") || !result["size"].is_number_integer()
            || result["size"].get<std::int64_t>() < 0) {
            complain(0, path, fmt::format("{} has no size", path));
            return;
        }
        NcclPoint point{result["size"].get<std::int64_t>()};
        m_reduces = textOf(result, "redop") != "none" && !textOf(result, "redop").empty();
        m_hasRoot = parseInteger(trimmed(textOf(result, "root"))).value_or(-1) >= 0;
        const auto time = [&](const char* key) -> std::optional<double> {
            const auto found = result.find(key);
            if (found == result.end() || !found->is_object())
                return std::nullopt;
            for (const char* name : {"time", "cpu_time"}) {
                if (const auto value = found->find(name); value != found->end() && value->is_number()
                    && value->get<double>() > 0.0 && std::isfinite(value->get<double>())) {
                    const auto bandwidth = [&](const char* which) {
                        const auto number = found->find(which);
                        return number != found->end() && number->is_number() ? std::optional(number->get<double>())
                                                                             : std::nullopt;
                    };
                    noteBandwidths(bandwidth("alg_bw"), bandwidth("bus_bw"));
                    if (const auto wrong = found->find("nwrong"); wrong != found->end() && wrong->is_number())
                        m_log.wrong += static_cast<std::int64_t>(std::clamp(wrong->get<double>(), 0.0, 1e15));
                    return value->get<double>() * 1e-6;
                }
            }
            complain(0, path + "." + key, fmt::format("{}.{} has no time", path, key));
            return std::nullopt;
        };
        point.outOfPlaceSeconds = time("out_of_place");
        point.inPlaceSeconds = time("in_place");
        if (!point.outOfPlaceSeconds && !point.inPlaceSeconds)
            complain(0, path, fmt::format("{} has no time", path));
        else if (point.bytes > 0)
            m_log.points.push_back(point);
    }

    std::string unnamed(const std::vector<CollectiveKind>& possible) const
    {
        std::string said = "the log does not name the collective";
        if (m_busFactor <= 0.0)
            return said;
        std::vector<std::string> names;
        for (const CollectiveKind kind : possible)
            names.emplace_back(collectiveKindName(kind));
        return said
            + fmt::format("; busbw is {:.3g} times algbw, which {}", m_busFactor,
                m_log.ranks < 2     ? "identifies the collective only together with the number of ranks"
                    : names.empty() ? fmt::format("no collective of {} ranks has", m_log.ranks)
                                    : fmt::format("of {} ranks {} have", m_log.ranks, join(names, " and ")));
    }

    Result<NcclLog> finish()
    {
        if (!m_operation)
            m_operation = programIn(std::filesystem::path(m_file).filename().string());
        if (!m_operation) {
            for (const auto& [name, kind] : kPrograms) {
                if (std::filesystem::path(m_file).filename().string().starts_with(name))
                    m_operation = kind;
            }
        }
        const std::vector<CollectiveKind> possible = operationsOfRows();
        if (!m_operation && possible.size() == 1)
            m_operation = possible.front();
        if (m_log.points.empty() && m_problems.empty())
            m_problems.push_back({"MW1712", "there is no row of results of nccl-tests",
                "give the output of all_reduce_perf, all_gather_perf and so on, or what -J wrote", {.file = m_file}});
        else if (!m_operation || m_log.ranks < 2)
            m_problems.push_back(
                {"MW1713", m_operation ? "the log does not state the number of ranks, or it was one" : unnamed(possible),
                    m_operation
                        ? "keep the lines that begin with #: the list of devices has a line for each rank"
                        : "keep the line \"Collective test starting\", or name the file after the program: all_reduce_perf.txt",
                    {.file = m_file}});
        if (!m_problems.empty())
            return m_problems;
        m_log.operation = *m_operation;
        m_log.hosts = std::max<std::int64_t>(1, static_cast<std::int64_t>(m_hosts.size()));
        if (m_log.ranks % m_log.hosts != 0)
            m_log.hosts = 1;
        std::ranges::stable_sort(m_log.points, {}, &NcclPoint::bytes);
        return std::move(m_log);
    }

    std::string m_file;
    NcclLog m_log;
    std::optional<CollectiveKind> m_operation;
    std::set<std::string> m_ranksListed;
    std::set<std::string> m_hosts;
    int m_timeColumns = 0;
    // Of the rows: whether there is a reduction and a root, and busbw over algbw of the fastest.
    bool m_reduces = false;
    bool m_hasRoot = false;
    double m_fastest = 0.0;
    double m_busFactor = 0.0;
    Problems m_problems;
};

Result<std::string> chipOf(const NcclLog& log, const std::string& base, const Catalogue& catalogue)
{
    if (!base.empty()) {
        const auto chip = catalogue.find(base);
        return chip ? Result<std::string>(base) : Result<std::string>(inFile(chip.error(), "--base"));
    }
    if (const Chip* chip = catalogue.ofDevice(log.device))
        return chip->key;
    return Problem{"MW1715",
        log.device.empty() ? std::string("the log does not say which GPU was measured")
                           : fmt::format("the catalogue has no GPU \"{}\", which the log names", log.device),
        "name the nearest one: --base h100"};
}

} // namespace

Result<NcclLog> parseNcclLog(std::string_view text, const std::string& file)
{
    LogReader reader(file);
    const auto start = text.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos || text[start] != '{')
        return reader.readText(text);
    const Json json = !isWithinJsonLimits(text) ? Json() : parsedJson(text);
    if (!json.is_object())
        return Problem{"MW1712", "the file begins like JSON, but is not valid JSON", "is it truncated?", {.file = file}};
    return reader.readJson(json);
}

Result<NcclLog> readNcclLog(const std::filesystem::path& path)
{
    const auto text = readFile(path);
    if (!text)
        return text.error();
    return parseNcclLog(*text, path.string());
}

namespace {

/// A line in bytes: seconds = latency + bytes * secondsPerByte.
struct FittedLine {
    double latency = 0.0;
    double secondsPerByte = 0.0;
};

/// Of the lines that do not fall and have no latency below zero, the one with the least sum of relative errors. That sum is least on a line through two
/// points, or through one point and the origin, so one row that is far off does not move it.
FittedLine lineThrough(const std::vector<NcclPoint>& points)
{
    constexpr std::size_t kMostPoints = 64; // that lines are drawn through
    constexpr double kLeastShare = 0.01; // of the largest size's time: a bandwidth that shorter rows do not show
    std::vector<const NcclPoint*> through;
    const std::size_t step = (points.size() + kMostPoints - 1) / kMostPoints;
    for (std::size_t i = points.size(); i > 0; i -= std::min(i, step)) // the largest size is one of them
        through.push_back(&points[i - 1]);
    const NcclPoint& largest = points.back();
    const double least = kLeastShare * largest.seconds() / static_cast<double>(largest.bytes);
    FittedLine best;
    double leastError = std::numeric_limits<double>::infinity();
    const auto consider = [&](FittedLine line) {
        if (line.latency < 0.0 || line.secondsPerByte < least)
            return;
        double error = 0.0;
        for (const NcclPoint& point : points)
            error += std::abs((line.latency + line.secondsPerByte * static_cast<double>(point.bytes)) / point.seconds() - 1.0);
        if (error < leastError) {
            leastError = error;
            best = line;
        }
    };
    for (std::size_t i = 0; i < through.size(); ++i) {
        const auto bytes = static_cast<double>(through[i]->bytes);
        consider({0.0, through[i]->seconds() / bytes});
        consider({through[i]->seconds() - least * bytes, least});
        for (std::size_t j = i + 1; j < through.size(); ++j) {
            const double more = bytes - static_cast<double>(through[j]->bytes);
            if (more <= 0.0)
                continue;
            const double slope = (through[i]->seconds() - through[j]->seconds()) / more;
            consider({through[i]->seconds() - slope * bytes, slope});
        }
    }
    return best;
}

} // namespace

NcclFit fitNccl(const NcclLog& log)
{
    NcclFit fit;
    fit.busFactor = busFactorOf(log.operation, static_cast<double>(log.ranks));
    const FittedLine line = lineThrough(log.points);
    fit.latencySeconds = line.latency < 1e-9 * log.points.back().seconds() ? 0.0 : line.latency; // rounding
    fit.busBytesPerSecond = fit.busFactor / line.secondsPerByte;
    fit.kneeBytes = fit.latencySeconds * fit.busBytesPerSecond / fit.busFactor;
    double after = log.points.back().seconds();
    for (auto point = log.points.rbegin(); point != log.points.rend(); ++point) {
        if (point->seconds() > 1.02 * after)
            fit.slower.push_back(point->bytes);
        after = std::min(after, point->seconds());
        const double error = std::abs(fit.seconds(static_cast<double>(point->bytes)) / point->seconds() - 1.0);
        if (error > fit.worstError) {
            fit.worstError = error;
            fit.worstBytes = point->bytes;
        }
    }
    std::ranges::reverse(fit.slower);
    return fit;
}

Problems doubtfulFit(const NcclLog& log, const std::string& file)
{
    constexpr double kMostError = 0.5;
    const NcclFit fit = fitNccl(log);
    if (fit.worstError <= kMostError)
        return {};
    return {{"MW1716",
        fmt::format(
            "the line of latency {} and {:.4g} GB/s is off by {:.0f} % at {}, and by at most {:.0f} % a line that is used",
            formatSeconds(fit.latencySeconds), fit.busBytesPerSecond / 1e9, 100.0 * fit.worstError,
            formatBytes(static_cast<double>(fit.worstBytes)), 100.0 * kMostError),
        "run the test again with more warm-up (-w) and iterations (-n), or from smaller sizes on (-b 8)", {.file = file},
        Severity::Warning}};
}

Problems doubtfulLinks(const NcclLog& log, const std::string& file, const std::string& base, const Catalogue& catalogue)
{
    constexpr double kTolerance = 1.02; // of rounded figures
    Problems problems;
    const NcclFit fit = fitNccl(log);
    const auto key = chipOf(log, base, catalogue);
    const auto chip = key ? catalogue.find(*key) : Result<ChipMatch>(key.error());
    const OptionalFigure links = chip ? chip->chip->interconnect.totalBytesPerSecond : OptionalFigure();
    if (links) {
        // A switch that adds up takes each byte once, whatever nccl-tests counts.
        const bool addsInSwitch = chip->chip->interconnect.reducesInSwitch && log.operation == CollectiveKind::AllReduce;
        const double most = links->value * (addsInSwitch ? std::max(1.0, fit.busFactor) : 1.0);
        if (fit.busBytesPerSecond > kTolerance * most)
            problems.push_back({"MW1717",
                fmt::format("a bus bandwidth of {:.4g} GB/s is more than the {:.4g} GB/s that the links of {} allow",
                    fit.busBytesPerSecond / 1e9, most / 1e9, chip->chip->name),
                "check which GPUs were measured and the unit of the times, or name the chip: --base", {.file = file},
                Severity::Warning,
                addsInSwitch ? fmt::format("{:.4g} GB/s one way, times {:.4g} where the switch adds up", links->value / 1e9,
                    std::max(1.0, fit.busFactor))
                             : fmt::format("{:.4g} GB/s one way for each GPU", links->value / 1e9)});
    }
    const auto isOfOneSize = [&](const NcclPoint& point) { return point.bytes == log.points.front().bytes; };
    if (std::ranges::all_of(log.points, isOfOneSize))
        problems.push_back({"MW1718",
            fmt::format("all rows are of one size, {}: a latency cannot be fitted, and {} is taken",
                formatBytes(static_cast<double>(log.points.front().bytes)), formatSeconds(fit.latencySeconds)),
            "measure several sizes: -b 8 -e 1G -f 2", {.file = file}, Severity::Warning,
            "latency and bandwidth are those of a line through the times of two sizes or more"});
    return problems;
}

Result<std::string> ncclProfileJson(const std::vector<NcclLog>& logs, const std::string& base, const Catalogue& catalogue)
{
    // The largest group says most of the links; an all-reduce more than the others.
    const auto weight
        = [](const NcclLog& log) { return std::pair(log.ranks, log.operation == CollectiveKind::AllReduce ? 1 : 0); };
    const NcclLog& main = *std::ranges::max_element(logs, {}, weight);
    const auto chip = chipOf(main, base, catalogue);
    if (!chip)
        return chip.error();
    const auto steps = [](const NcclLog& log, std::int64_t size) {
        return static_cast<double>(size - 1) * (log.operation == CollectiveKind::AllReduce ? 2.0 : 1.0);
    };
    const NcclFit whole = fitNccl(main);
    Json topology = Json::array();
    const std::int64_t perHost = main.ranks / main.hosts;
    const auto inside = std::ranges::find_if(logs, [](const NcclLog& log) { return log.hosts == 1; });
    if (main.hosts > 1)
        topology.push_back({{"name", "host"}, {"kind", "network"}, {"length", main.hosts},
            {"bytes_per_s", whole.busBytesPerSecond / static_cast<double>(perHost)},
            {"latency_s", std::min(1.0, whole.latencySeconds / steps(main, main.hosts))}});
    if (perHost > 1 || main.hosts == 1) {
        const NcclLog& near = inside == logs.end() ? main : *inside;
        const NcclFit fit = fitNccl(near);
        topology.push_back({{"name", "gpu"}, {"kind", "switch"}, {"length", perHost}, {"bytes_per_s", fit.busBytesPerSecond},
            {"latency_s", std::min(1.0, fit.latencySeconds / steps(near, near.ranks))}});
    }
    Json links = Json::array();
    for (const NcclLog& log : logs) {
        const NcclFit fit = fitNccl(log);
        Json points = Json::array();
        for (const NcclPoint& point : log.points)
            points.push_back({{"bytes", point.bytes}, {"s", point.seconds()}});
        links.push_back({{"collective", collectiveKindName(log.operation)}, {"ranks", log.ranks}, {"hosts", log.hosts},
            {"latency_s", fit.latencySeconds}, {"bus_bytes_per_s", fit.busBytesPerSecond}, {"knee_bytes", fit.kneeBytes},
            {"worst_error", fit.worstError}, {"slower_than_larger", fit.slower}, {"points", std::move(points)}});
    }
    const Json json = {{"schema", "meshwright.hardware/1"}, {"meshwright", kVersion}, {"meshwright_hardware", 1},
        {"chip", {{"base", *chip}}}, {"topology", std::move(topology)}, {"links", std::move(links)}};
    return jsonText(json);
}

std::string ncclText(const std::vector<NcclLog>& logs)
{
    using Align = TextTable::Align;
    TextTable table({{"collective"}, {"ranks", Align::Right}, {"hosts", Align::Right}, {"latency", Align::Right},
        {"bus bandwidth", Align::Right}, {"knee", Align::Right}, {"worst error", Align::Right}, {"remarks"}});
    for (const NcclLog& log : logs) {
        const NcclFit fit = fitNccl(log);
        std::vector<std::string> remarks;
        if (log.wrong > 0)
            remarks.push_back(fmt::format("{} elements were wrong", log.wrong));
        if (!fit.slower.empty())
            remarks.push_back(fmt::format("{} took longer than a larger size", formatBytes(fit.slower.front())));
        table.addRow({collectiveKindName(log.operation), std::to_string(log.ranks), std::to_string(log.hosts),
            formatSeconds(fit.latencySeconds), fmt::format("{:.4g} GB/s", fit.busBytesPerSecond / 1e9),
            formatBytes(fit.kneeBytes), fmt::format("{:.0f} %", 100.0 * fit.worstError), join(remarks, "; ")});
    }
    return table.text();
}

} // namespace meshwright::sim
