// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/catalogue.h"

#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

struct VendorLibrary {
    std::string vendor;
    CollectiveLibrary library;
};

/// Reads one entry of the file and notes everything that is wrong with it.
class EntryReader {
public:
    EntryReader(const Json& json, std::string path, Problems& problems)
        : m_json(json)
        , m_path(std::move(path))
        , m_problems(problems)
    {
    }

    Chip readChip(const std::string& key, const std::vector<VendorLibrary>& libraries,
        const std::map<std::string, KernelFigures>& generations);
    VendorLibrary readLibrary();
    KernelFigures readKernels();
    /// Makes a chip that was read from the entry the one that stands in the instance `name`.
    void placeIn(const std::string& name, Chip& chip);

private:
    void complain(const std::string& where, const std::string& message)
    {
        m_problems.push_back({"MW1702", message, {}, {.path = where}});
    }

    std::string text(const Json& parent, const char* field, const std::string& path)
    {
        if (!parent.contains(field))
            return {};
        if (!parent.at(field).is_string()) {
            complain(path + "." + field, fmt::format("\"{}\" is not a text", field));
            return {};
        }
        return parent.at(field).get<std::string>();
    }

    /// The figure's JSON object, or nothing when the field is absent or unknown.
    const Json* known(const Json& parent, const std::string& field, const std::string& path)
    {
        if (!parent.contains(field))
            return nullptr;
        const Json& figure = parent.at(field);
        if (!figure.is_object() || !figure.contains("use")) {
            complain(path + "." + field, fmt::format("\"{}\" is not a figure: it has no \"use\"", field));
            return nullptr;
        }
        return figure.at("use") == "unknown" ? nullptr : &figure;
    }

    OptionalFigure figure(const Json& parent, const std::string& field, const std::string& path)
    {
        const Json* found = known(parent, field, path);
        if (!found)
            return std::nullopt;
        const Json& use = found->at("use");
        if (!use.is_number() || !std::isfinite(use.get<double>()) || use.get<double>() <= 0.0) {
            complain(
                path + "." + field, fmt::format("\"use\" of \"{}\" must be a number above 0, got: {}", field, jsonLine(use)));
            return std::nullopt;
        }
        Figure result{use.get<double>(), {}};
        addSource(*found, result);
        return result;
    }

    static void addSource(const Json& figure, Figure& result)
    {
        const auto values = figure.find("values");
        if (values == figure.end() || !values->is_array() || values->empty() || !values->front().is_object())
            return;
        const Json& first = values->front();
        if (const auto source = first.find("source"); source != first.end() && source->is_string())
            result.source = source->get<std::string>();
        if (const auto note = first.find("note"); note != first.end() && note->is_string())
            result.note = note->get<std::string>();
    }

    std::optional<std::int64_t> count(const std::string& field)
    {
        const auto found = figure(m_json, field, m_path);
        if (!found)
            return std::nullopt;
        if (found->value != std::floor(found->value) || found->value > 1e12) {
            complain(m_path + "." + field, fmt::format("\"{}\" must be a whole number, got: {}", field, found->value));
            return std::nullopt;
        }
        return static_cast<std::int64_t>(found->value);
    }

    /// A list of whole numbers above 0; a single number is a list of one.
    std::vector<std::int64_t> counts(const std::string& field)
    {
        const Json* found = known(m_json, field, m_path);
        if (!found)
            return {};
        Json list = found->at("use");
        if (!list.is_array())
            list = Json::array({list});
        std::vector<std::int64_t> result;
        for (const Json& entry : list) {
            if (!entry.is_number_integer() || entry.get<std::int64_t>() < 1) {
                complain(
                    m_path + "." + field, fmt::format("\"{}\" must list whole numbers above 0, got: {}", field, jsonLine(entry)));
                return {};
            }
            result.push_back(entry.get<std::int64_t>());
        }
        return result;
    }

    void readPeaks(Chip& chip);
    void readOnChip(Chip& chip);
    void readInterconnect(Chip& chip);
    void chooseLibrary(Chip& chip, const std::vector<VendorLibrary>& libraries);
    void chooseKernels(Chip& chip, const std::map<std::string, KernelFigures>& generations);

    const Json& m_json;
    std::string m_path;
    Problems& m_problems;
};

void EntryReader::readPeaks(Chip& chip)
{
    const auto peaks = m_json.find("peak_flops_per_s");
    if (peaks == m_json.end() || !peaks->is_object()) {
        complain(m_path, fmt::format("chip \"{}\" has no \"peak_flops_per_s\"", chip.key));
        return;
    }
    const std::string path = m_path + ".peak_flops_per_s";
    for (const MathFormat format : kMathFormats) {
        const char* name = mathFormatName(format);
        if (!peaks->contains(name))
            continue;
        const Json& entry = peaks->at(name);
        if (entry.is_object() && entry.contains("use") && entry.at("use") == "not supported")
            chip.unsupported.insert(format);
        else if (const auto peak = figure(*peaks, name, path))
            chip.peakFlopsPerSecond[format] = *peak;
    }
}

void EntryReader::readOnChip(Chip& chip)
{
    const auto found = m_json.find("onchip_bytes");
    if (found == m_json.end() || !found->is_object())
        return;
    if (found->contains("use")) {
        chip.onchipBytes = figure(m_json, "onchip_bytes", m_path);
        return;
    }
    const std::string path = m_path + ".onchip_bytes";
    chip.onchipBytes = figure(*found, "l2", path);
    chip.multiprocessors = figure(*found, "sms", path);
}

VendorLibrary EntryReader::readLibrary()
{
    VendorLibrary result;
    if (!m_json.is_object()) {
        complain(m_path, "a library is an object");
        return result;
    }
    const auto need = [&](const Json& parent, const char* field, const std::string& path) {
        const auto found = figure(parent, field, path);
        if (!found)
            complain(path + "." + field, fmt::format("\"{}\" is missing", field));
        return found ? found->value : 1.0;
    };
    result.vendor = text(m_json, "vendor", m_path);
    CollectiveLibrary& library = result.library;
    library.name = text(m_json, "name", m_path);
    library.startSeconds = need(m_json, "start_s", m_path);
    if (const auto added = figure(m_json, "in_switch_s", m_path))
        library.inSwitchSeconds = added->value;
    if (const auto call = figure(m_json, "call_s", m_path))
        library.callSeconds = call->value;
    if (const auto call = figure(m_json, "call_device_s", m_path))
        library.callSecondsPerDevice = call->value;
    const auto protocols = m_json.find("protocols");
    if (protocols == m_json.end() || !protocols->is_object())
        return result;
    for (const auto& [name, json] : protocols->items()) {
        const std::string path = m_path + ".protocols." + name;
        CollectiveProtocol protocol{name, need(json, "bandwidth_share", path), need(json, "step_s", path)};
        if (const auto step = figure(json, "network_step_s", path))
            protocol.networkStepSeconds = step->value;
        if (protocol.bandwidthShare > 1.0)
            complain(path + ".bandwidth_share", "a share of the bandwidth is at most 1");
        library.protocols.push_back(std::move(protocol));
    }
    return result;
}

KernelFigures EntryReader::readKernels()
{
    KernelFigures kernels;
    if (!m_json.is_object()) {
        complain(m_path, "a generation of kernels is an object");
        return kernels;
    }
    if (const auto depth = figure(m_json, "fill_depth", m_path))
        kernels.fillDepth = depth->value;
    const auto shares = m_json.find("attention_share");
    if (shares == m_json.end() || !shares->is_object())
        return kernels;
    for (const auto& [name, json] : shares->items()) {
        const std::string path = m_path + ".attention_share." + name;
        const auto share = [&, &of = json](const char* field) {
            const auto found = figure(of, field, path);
            if (!found || found->value > 1.0)
                complain(path + "." + field, fmt::format("\"{}\" must be a share of the peak, above 0 and at most 1", field));
            return found ? found->value : 1.0;
        };
        kernels.attention[name] = {share("forward"), share("backward")};
    }
    return kernels;
}

void EntryReader::chooseKernels(Chip& chip, const std::map<std::string, KernelFigures>& generations)
{
    const Json* named = known(m_json, "kernel_generation", m_path);
    if (named == nullptr)
        return;
    const Json& use = named->at("use");
    const auto found = use.is_string() ? generations.find(use.get<std::string>()) : generations.end();
    if (found == generations.end())
        complain(m_path + ".kernel_generation", fmt::format("\"kernel_generations\" has no {}", jsonLine(use)));
    else
        chip.kernels = found->second;
}

/// The library of the chip's vendor, with what is the chip's own.
void EntryReader::chooseLibrary(Chip& chip, const std::vector<VendorLibrary>& libraries)
{
    const auto found = std::ranges::find_if(libraries, [&](const VendorLibrary& each) { return each.vendor == chip.vendor; });
    const auto net = m_json.find("interconnect");
    if (found == libraries.end() || net == m_json.end() || !net->is_object())
        return;
    CollectiveLibrary library = found->library;
    const std::string path = m_path + ".interconnect";
    const auto flag = [&](const char* field, bool& into) {
        const Json* value = known(*net, field, path);
        if (value != nullptr && value->at("use").is_boolean())
            into = value->at("use").get<bool>();
        else if (value != nullptr)
            complain(path + "." + field, fmt::format("\"{}\" must be true or false", field));
    };
    flag("reduces_axis_by_axis", library.reducesAxisByAxis);
    flag("synchronous_collectives", library.synchronous);
    const Json* links = known(*net, "ring_links", path);
    const Json* use = links == nullptr ? nullptr : &links->at("use");
    if (use != nullptr && (!use->is_array() || use->empty() || !chip.interconnect.linksPerChip))
        complain(path + ".ring_links",
            "\"ring_links\" must list the links that rings of 2, 3 ... devices use, beside the links of a device");
    else if (use != nullptr) {
        const double all = chip.interconnect.linksPerChip->value;
        for (const Json& count : *use) {
            if (!count.is_number() || count.get<double>() <= 0.0 || count.get<double>() > all) {
                complain(path + ".ring_links", fmt::format("a ring uses from 1 to all {} links, got: {}", all, jsonLine(count)));
                return;
            }
            library.ringShares.push_back(count.get<double>() / all);
        }
    }
    chip.interconnect.library = std::make_shared<const CollectiveLibrary>(std::move(library));
}

void EntryReader::readInterconnect(Chip& chip)
{
    const auto found = m_json.find("interconnect");
    if (found == m_json.end() || !found->is_object()) {
        complain(m_path, fmt::format("chip \"{}\" has no \"interconnect\"", chip.key));
        return;
    }
    const Json& json = *found;
    const std::string path = m_path + ".interconnect";
    Interconnect& net = chip.interconnect;
    net.kindText = text(json, "kind", path);
    if (net.kindText == "torus_2d" || net.kindText == "torus_3d") {
        net.kind = InterconnectKind::Torus;
        net.torusRank = net.kindText == "torus_2d" ? 2 : 3;
    } else if (net.kindText == "fully_connected") {
        net.kind = InterconnectKind::FullMesh;
    } else if (net.kindText == "pcie") {
        net.kind = InterconnectKind::Pcie;
    } else if (net.kindText == "nvswitch_all_to_all" || net.kindText == "hybrid_cube_mesh_or_nvswitch"
        || net.kindText == "partial_mesh") {
        net.kind = InterconnectKind::Switch;
    } else {
        complain(path + ".kind", fmt::format("unknown kind of interconnect: \"{}\"", net.kindText));
    }
    net.wrapText = text(json, "wraparound", path);
    const std::string rule = text(json, "wrap_rule", path);
    if (rule == "full_pod")
        net.wrapRule = WrapRule::FullPod;
    else if (rule == "full_axis")
        net.wrapRule = WrapRule::FullAxis;
    else if (rule == "cubes_of_4")
        net.wrapRule = WrapRule::CubesOf4;
    else if (!rule.empty())
        complain(path + ".wrap_rule", fmt::format("unknown wrap rule: \"{}\"", rule));
    net.note = text(json, "note", path);
    net.linksPerChip = figure(json, json.contains("links_per_chip") ? "links_per_chip" : "links_per_gpu", path);
    net.linkBytesPerSecond = figure(json, "link_oneway_bytes_per_s", path);
    net.totalBytesPerSecond = figure(json, "total_oneway_bytes_per_s", path);
    net.achievableFraction = figure(json, "achievable_fraction_ring", path);
    net.hopLatencySeconds = figure(json, json.contains("hop_latency_s") ? "hop_latency_s" : "latency_s", path);
    net.onChipLinkBytesPerSecond = figure(json, "on_chip_link_oneway_bytes_per_s", path);
    if (const auto reduces = json.find("reduces_in_switch"); reduces != json.end()) {
        if (reduces->is_boolean())
            net.reducesInSwitch = reduces->get<bool>();
        else
            complain(path + ".reduces_in_switch", "\"reduces_in_switch\" must be true or false");
    }
}

Chip EntryReader::readChip(
    const std::string& key, const std::vector<VendorLibrary>& libraries, const std::map<std::string, KernelFigures>& generations)
{
    Chip chip;
    chip.key = key;
    if (!m_json.is_object()) {
        complain(m_path, fmt::format("chip \"{}\" is not an object", key));
        return chip;
    }
    chip.name = text(m_json, "name", m_path);
    chip.vendor = text(m_json, "vendor", m_path);
    const std::string chipClass = text(m_json, "class", m_path);
    if (chipClass == "tpu")
        chip.chipClass = ChipClass::Tpu;
    else if (chipClass == "gpu")
        chip.chipClass = ChipClass::Gpu;
    else if (chipClass == "cpu")
        chip.chipClass = ChipClass::Cpu;
    else
        complain(m_path + ".class", fmt::format("\"class\" must be tpu, gpu or cpu, got: \"{}\"", chipClass));
    chip.devicesPerChip = count("devices_per_chip").value_or(1);
    if (m_json.contains("slices_count"))
        chip.slicesCountCores = text(m_json, "slices_count", m_path) == "cores";
    readPeaks(chip);
    readOnChip(chip);
    readInterconnect(chip);
    chooseLibrary(chip, libraries);
    chooseKernels(chip, generations);
    chip.achievableMatmulFraction = figure(m_json, "achievable_matmul", m_path);
    if (const auto side = counts("matrix_unit"); !side.empty()) {
        chip.matrixUnit = Figure{static_cast<double>(side.front()), {}};
        addSource(m_json.at("matrix_unit"), *chip.matrixUnit);
    }
    chip.hbmBytes = figure(m_json, "hbm_bytes", m_path);
    chip.hbmBytesPerSecond = figure(m_json, "hbm_bytes_per_s", m_path);
    const auto slice = counts("max_slice");
    if (slice.size() == 1 && chip.interconnect.torusRank != 1) {
        chip.maxSliceChips = slice.front();
    } else if (!slice.empty()) {
        chip.maxSlice = slice;
        std::int64_t chips = 1;
        for (const std::int64_t length : slice)
            chips *= length;
        chip.maxSliceChips = chips;
    }
    chip.hostShape = counts("host_shape");
    chip.chipsPerHost = count("chips_per_host");
    chip.fastDomain = count("gpus_per_fast_domain");
    chip.dcnBytesPerSecond = figure(m_json, "dcn_bytes_per_s_per_chip", m_path);
    chip.hostLinkBytesPerSecond = figure(m_json, "host_link_bytes_per_s_per_chip", m_path);
    chip.nicBytesPerSecond = figure(m_json, "nic_oneway_bytes_per_s_per_gpu", m_path);
    chip.networkLatencySeconds = figure(m_json, "network_latency_s", m_path);
    chip.tdpWatts = figure(m_json, "tdp_w", m_path);
    chip.dollarsPerHour = figure(m_json, "dollars_per_hour", m_path);
    return chip;
}

void EntryReader::placeIn(const std::string& name, Chip& chip)
{
    chip.instance = name;
    chip.name += " in " + name;
    const auto chips = count("chips");
    if (!chips)
        complain(m_path + ".chips", fmt::format("instance \"{}\" does not say how many chips it has", name));
    chip.instanceChips = chips.value_or(1);
    const bool isPcie = chip.interconnect.kind == InterconnectKind::Pcie;
    if (!m_json.contains("joins_instances"))
        chip.fastDomain = isPcie ? chip.instanceChips : std::min(chip.instanceChips, chip.fastDomain.value_or(1));
}

/// The entry of a chip with what an instance says of its own over it.
Json chipInInstance(const Json& chip, const Json& instance)
{
    Json merged = chip;
    for (const auto& [field, value] : instance.items()) {
        if (field != "chip" && field != "also")
            merged[field] = value;
    }
    return merged;
}

} // namespace

Result<Catalogue> Catalogue::load(const std::filesystem::path& path)
{
    const auto text = readFile(path);
    if (!text)
        return text.error();
    return parse(*text, path.string());
}

Result<Catalogue> Catalogue::parse(std::string_view text, const std::string& file)
{
    const Json json = parsedJson(text);
    const auto failed = [&](const std::string& message) {
        return Problem{"MW1702", message, "use the catalogue that comes with the program", {.file = file}};
    };
    if (json.is_discarded())
        return failed("the hardware catalogue is not valid JSON");
    if (!json.is_object() || !json.contains("chips") || !json.at("chips").is_object() || json.at("chips").empty())
        return failed("the hardware catalogue has no \"chips\"");

    Problems problems;
    Catalogue result;
    std::vector<VendorLibrary> libraries;
    if (const auto listed = json.find("collective_libraries"); listed != json.end() && listed->is_object()) {
        for (const auto& [key, library] : listed->items())
            libraries.push_back(EntryReader(library, "collective_libraries." + key, problems).readLibrary());
    }
    std::map<std::string, KernelFigures> generations;
    if (const auto listed = json.find("kernel_generations"); listed != json.end() && listed->is_object()) {
        for (const auto& [key, kernels] : listed->items()) {
            generations[key] = EntryReader(kernels, "kernel_generations." + key, problems).readKernels();
            generations[key].generation = key;
        }
    }
    std::map<std::string, std::size_t> keys;
    for (const auto& [key, chip] : json.at("chips").items())
        keys[key] = 0;
    for (auto& [key, index] : keys) {
        index = result.m_chips.size();
        result.m_chips.push_back(
            EntryReader(json.at("chips").at(key), "chips." + key, problems).readChip(key, libraries, generations));
        result.m_names[lowerCase(key)] = {index};
    }
    if (json.contains("aliases") && json.at("aliases").is_object()) {
        for (const auto& [name, alias] : json.at("aliases").items()) {
            const Place place{.path = "aliases." + name};
            const bool names = alias.is_object() && alias.contains("chip") && alias.at("chip").is_string();
            const std::string target = names ? alias.at("chip").get<std::string>() : std::string{};
            if (!keys.contains(target)) {
                problems.push_back(
                    {"MW1702", fmt::format("alias \"{}\" names no chip of the catalogue: \"{}\"", name, target), {}, place});
                continue;
            }
            Alias entry{keys.at(target)};
            if (alias.contains("devices") && alias.at("devices").is_number_integer())
                entry.devices = alias.at("devices").get<std::int64_t>();
            if (alias.contains("approximation") && alias.at("approximation").is_string())
                entry.approximation = alias.at("approximation").get<std::string>();
            if (alias.contains("chips") && alias.at("chips").is_number_integer())
                entry.chips = alias.at("chips").get<std::int64_t>();
            if (entry.chips && *entry.chips < 1) {
                problems.push_back(
                    {"MW1702", fmt::format("alias \"{}\" means {} chips, expected at least 1", name, *entry.chips), {}, place});
                continue;
            }
            if (entry.devices && (*entry.devices < 1 || *entry.devices > result.m_chips[entry.chip].devicesPerChip)) {
                problems.push_back({"MW1702",
                    fmt::format("alias \"{}\" means {} devices of a chip that has {}", name, *entry.devices,
                        result.m_chips[entry.chip].devicesPerChip),
                    {}, place});
                continue;
            }
            result.m_names.try_emplace(lowerCase(name), entry);
        }
    }
    if (json.contains("instances") && json.at("instances").is_object()) {
        for (const auto& [name, instance] : json.at("instances").items()) {
            const std::string path = "instances." + name;
            const auto complain = [&](const std::string& message) {
                problems.push_back({"MW1702", message, {}, {.path = path}});
            };
            const bool says = instance.is_object() && instance.contains("chip") && instance.at("chip").is_string();
            const std::string target = says ? instance.at("chip").get<std::string>() : std::string{};
            if (!keys.contains(target)) {
                complain(fmt::format("instance \"{}\" names no chip of the catalogue: \"{}\"", name, target));
                continue;
            }
            const Json merged = chipInInstance(json.at("chips").at(target), instance);
            EntryReader reader(merged, path, problems);
            Chip chip = reader.readChip(target, libraries, generations);
            reader.placeIn(name, chip);
            std::vector<std::string> also = {name};
            if (const auto others = instance.find("also"); others != instance.end() && others->is_array()) {
                for (const Json& other : *others)
                    also.push_back(other.is_string() ? other.get<std::string>() : std::string{});
            }
            for (const std::string& one : also) {
                if (!result.m_names.try_emplace(lowerCase(one), Alias{.chip = result.m_instances.size(), .isInstance = true})
                         .second)
                    complain(fmt::format("\"{}\" is the name of something else, too", one));
            }
            result.m_instances.push_back(std::move(chip));
        }
    }
    if (!problems.empty())
        return inFile(std::move(problems), file);
    return result;
}

namespace {

/// There are too many names to list them in a message.
std::string knownChips(const std::string& name, const std::vector<std::string>& names)
{
    const auto near = nearestName(name, names);
    return near ? fmt::format("did you mean \"{}\"?", *near) : std::string("`meshwright list hardware` names all chips");
}

} // namespace

bool Catalogue::knows(std::string_view name) const
{
    return m_names.contains(lowerCase(trimmed(name)));
}

Result<ChipMatch> Catalogue::find(std::string_view name) const
{
    const auto found = m_names.find(lowerCase(trimmed(name)));
    if (found == m_names.end())
        return Problem{"MW1701", fmt::format("unknown chip: \"{}\"", name), knownChips(lowerCase(name), names())};
    const Alias& alias = found->second;
    return ChipMatch{&chipOf(alias), alias.devices, alias.approximation,
        alias.isInstance ? std::optional(chipOf(alias).instanceChips) : alias.chips};
}

const Chip* Catalogue::ofDevice(std::string_view device) const
{
    const std::string text = lowerCase(device);
    const auto isWordAt = [&](std::size_t at, std::size_t length) {
        const auto isPart
            = [&](std::size_t i) { return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0; };
        return !(at > 0 && isPart(at - 1)) && !isPart(at + length);
    };
    std::size_t longest = 0;
    const Chip* found = nullptr;
    for (const auto& [name, alias] : m_names) {
        const Chip& chip = chipOf(alias);
        if (alias.isInstance || chip.chipClass != ChipClass::Gpu || name.size() <= longest)
            continue;
        for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
            if (isWordAt(at, name.size())) {
                longest = name.size();
                found = &chip;
                break;
            }
        }
    }
    return found;
}

std::vector<std::string> Catalogue::names() const
{
    std::vector<std::string> result;
    result.reserve(m_names.size());
    for (const auto& [name, alias] : m_names)
        result.push_back(name);
    return result;
}

} // namespace meshwright::sim
