// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/hardware_file.h"

#include "core/study/document.h"
#include "core/support/checked.h"
#include "core/support/file.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace meshwright::sim {

namespace {

constexpr std::pair<const char*, AxisKind> kAxisKinds[] = {
    {"torus", AxisKind::Torus}, {"switch", AxisKind::Switch}, {"full_mesh", AxisKind::FullMesh}, {"network", AxisKind::Network}};

/// Values from a description come with this source.
constexpr const char* kSource = "the hardware file";

class Reader {
public:
    Reader(std::string file, const Catalogue& catalogue)
        : m_file(std::move(file))
        , m_catalogue(catalogue)
    {
    }

    Result<Machine> read(std::string_view text);

private:
    void report(const char* id, const DocNode& node, const std::string& path, std::string message, std::string fix = {})
    {
        m_problems.push_back({id, std::move(message), std::move(fix), node.place(path)});
    }

    bool isMap(const DocNode& node, const std::string& path);
    void checkKeys(const DocNode& node, const std::string& path, const std::vector<std::string>& known);
    const DocNode* need(const DocNode& node, const std::string& path, const char* key);
    double number(const DocNode& map, const std::string& path, const char* key, double least, double most, double otherwise);
    std::int64_t whole(const DocNode& map, const std::string& path, const char* key, std::int64_t least, std::int64_t otherwise);
    std::string word(const DocNode& map, const char* key, const std::string& otherwise = {}) const;

    void readChip(const DocNode& node);
    void readClass(const DocNode& node, Chip& chip);
    void figure(const DocNode& map, const std::string& path, const char* key, OptionalFigure& value, bool required);
    void readTopology(const DocNode& node);
    PhysicalAxis readAxis(const DocNode& node, const std::string& path);
    void readFaults(const DocNode& node);

    std::string m_file;
    const Catalogue& m_catalogue;
    Problems m_problems;
    Machine m_machine;
};

bool Reader::isMap(const DocNode& node, const std::string& path)
{
    if (node.kind == DocNode::Kind::Map)
        return true;
    report("MW1742", node, path, fmt::format("{} must be a mapping, got {}", path.empty() ? "the file" : path, node.kindText()));
    return false;
}

void Reader::checkKeys(const DocNode& node, const std::string& path, const std::vector<std::string>& known)
{
    for (const DocEntry& entry : node.entries) {
        if (std::ranges::find(known, entry.key) != known.end())
            continue;
        const auto near = nearestName(entry.key, known);
        m_problems.push_back({"MW1743", fmt::format("unknown key \"{}\"", entry.key),
            near ? fmt::format("did you mean {}?", *near) : "known keys: " + join(known, ", "),
            entry.place(path.empty() ? entry.key : path + "." + entry.key)});
    }
}

const DocNode* Reader::need(const DocNode& node, const std::string& path, const char* key)
{
    const DocNode* found = node.find(key);
    if (found == nullptr)
        report("MW1745", node, path, fmt::format("{} has no {}", path.empty() ? "the file" : path, key));
    return found;
}

double Reader::number(const DocNode& map, const std::string& path, const char* key, double least, double most, double otherwise)
{
    const DocNode* node = map.find(key);
    if (node == nullptr)
        return otherwise;
    const std::string where = path + "." + key;
    const auto value = node->kind == DocNode::Kind::Scalar && !node->quoted ? parseNumber(node->text) : std::nullopt;
    if (!value) {
        report("MW1742", *node, where, fmt::format("{} must be a number, got {}", where, node->kindText()));
        return otherwise;
    }
    if (!std::isfinite(*value) || *value < least || *value > most) {
        report("MW1744", *node, where, fmt::format("{} must be {:g} to {:g}, got: {}", where, least, most, node->text));
        return otherwise;
    }
    return *value;
}

std::int64_t Reader::whole(
    const DocNode& map, const std::string& path, const char* key, std::int64_t least, std::int64_t otherwise)
{
    const DocNode* node = map.find(key);
    if (node == nullptr)
        return otherwise;
    const std::string where = path + "." + key;
    const auto value = node->kind == DocNode::Kind::Scalar && !node->quoted ? parseInteger(node->text) : std::nullopt;
    if (!value) {
        report("MW1742", *node, where, fmt::format("{} must be an integer, got {}", where, node->kindText()));
        return otherwise;
    }
    if (*value < least || *value > kLargestMesh) {
        report("MW1744", *node, where, fmt::format("{} must be {} to {}, got: {}", where, least, kLargestMesh, *value));
        return otherwise;
    }
    return *value;
}

std::string Reader::word(const DocNode& map, const char* key, const std::string& otherwise) const
{
    const DocNode* node = map.find(key);
    return node != nullptr && node->kind == DocNode::Kind::Scalar ? node->text : otherwise;
}

void Reader::figure(const DocNode& map, const std::string& path, const char* key, OptionalFigure& value, bool required)
{
    if (map.find(key) != nullptr)
        value = Figure{number(map, path, key, 1.0, 1e30, 1.0), kSource};
    else if (required)
        report("MW1745", map, path, fmt::format("{} has no {}", path, key), "give it, or a base from the catalogue");
}

/// Rates of a computer are measured: what is given is reached.
void Reader::readClass(const DocNode& node, Chip& chip)
{
    const DocNode* given = node.find("class");
    if (given == nullptr)
        return;
    for (const ChipClass known : {ChipClass::Tpu, ChipClass::Gpu, ChipClass::Cpu}) {
        if (given->text == chipClassName(known)) {
            chip.chipClass = known;
            if (known == ChipClass::Cpu)
                chip.achievableMatmulFraction = Figure{1.0, kSource};
            return;
        }
    }
    report("MW1744", *given, "chip.class", fmt::format("unknown class of chip: \"{}\"", given->text), "use tpu, gpu or cpu");
}

void Reader::readChip(const DocNode& node)
{
    const std::string path = "chip";
    if (!isMap(node, path))
        return;
    checkKeys(node, path,
        {"base", "name", "class", "devices_per_chip", "memory_bytes", "memory_bytes_per_s", "cache_bytes", "flops",
            "dollars_per_hour"});
    Chip chip;
    const std::string base = word(node, "base");
    if (!base.empty()) {
        const auto match = m_catalogue.find(base);
        if (!match) {
            Problems problems = match.error();
            for (Problem& problem : problems)
                problem.place = node.find("base")->place("chip.base");
            append(m_problems, std::move(problems));
            return;
        }
        chip = *match->chip;
    } else {
        chip.key = "custom";
        if (node.find("name") == nullptr)
            report("MW1745", node, path, "chip has no name", "give it, or a base from the catalogue");
    }
    chip.name = word(node, "name", chip.name);
    readClass(node, chip);
    chip.devicesPerChip = whole(node, path, "devices_per_chip", 1, chip.devicesPerChip);
    figure(node, path, "memory_bytes", chip.hbmBytes, base.empty());
    figure(node, path, "memory_bytes_per_s", chip.hbmBytesPerSecond, base.empty());
    figure(node, path, "cache_bytes", chip.onchipBytes, false);
    if (node.find("dollars_per_hour") != nullptr)
        chip.dollarsPerHour = Figure{number(node, path, "dollars_per_hour", 0.0, 1e9, 0.0), kSource};
    if (const DocNode* flops = node.find("flops"); flops != nullptr && isMap(*flops, "chip.flops")) {
        std::vector<std::string> names;
        for (const MathFormat format : kMathFormats) {
            names.emplace_back(mathFormatName(format));
            if (flops->find(mathFormatName(format)) != nullptr)
                chip.peakFlopsPerSecond[format] = {number(*flops, "chip.flops", mathFormatName(format), 1.0, 1e30, 1.0), kSource};
        }
        checkKeys(*flops, "chip.flops", names);
    } else if (flops == nullptr && base.empty()) {
        report("MW1745", node, path, "chip has no flops", "give them by format, such as flops: {bf16: 1e15}");
    }
    if (!base.empty() && (!chip.hbmBytes || !chip.hbmBytesPerSecond))
        report("MW1745", node, path, fmt::format("the catalogue has no memory figures for {}", chip.key),
            "give memory_bytes and memory_bytes_per_s");
    chip.interconnect.library.reset(); // the links are the user's, with their latencies
    m_machine.chip = std::move(chip);
}

PhysicalAxis Reader::readAxis(const DocNode& node, const std::string& path)
{
    PhysicalAxis axis;
    checkKeys(node, path,
        {"name", "kind", "length", "wraps", "bytes_per_s", "latency_s", "in_switch_bytes_per_s", "per_leaf", "oversubscription"});
    for (const char* key : {"name", "kind", "length", "bytes_per_s"})
        need(node, path, key);
    axis.name = word(node, "name");
    const std::string kind = word(node, "kind", "torus");
    const auto* found = std::ranges::find_if(kAxisKinds, [&](const auto& known) { return kind == known.first; });
    if (found == std::end(kAxisKinds))
        report("MW1744", *node.find("kind"), path + ".kind", fmt::format("unknown kind of axis: \"{}\"", kind),
            "use torus, switch, full_mesh or network");
    else
        axis.kind = found->second;
    axis.length = whole(node, path, "length", 1, 1);
    axis.link.bytesPerSecond = number(node, path, "bytes_per_s", 1.0, 1e18, 1.0);
    axis.link.latencySeconds = number(node, path, "latency_s", 0.0, 1.0, 0.0);
    axis.link.kind = axis.kind == AxisKind::Torus ? LinkKind::Ici
        : axis.kind == AxisKind::Switch           ? LinkKind::NvLink
        : axis.kind == AxisKind::FullMesh         ? LinkKind::PeerLink
                                                  : LinkKind::Nic;
    axis.inSwitchBytesPerSecond = number(node, path, "in_switch_bytes_per_s", 0.0, 1e18, 0.0);
    axis.perLeaf = whole(node, path, "per_leaf", 1, 0);
    axis.oversubscription = number(node, path, "oversubscription", 1.0, 1e6, 1.0);
    if (const DocNode* wraps = node.find("wraps")) {
        if (wraps->text != "true" && wraps->text != "false")
            report("MW1742", *wraps, path + ".wraps",
                fmt::format("{}.wraps must be true or false, got {}", path, wraps->kindText()));
        axis.wraps = wraps->text == "true";
        if (axis.wraps && (axis.kind != AxisKind::Torus || axis.length < 3)) {
            report("MW1744", *wraps, path + ".wraps",
                fmt::format("only a torus axis of 3 or more wraps; {} has kind {} and length {}", axis.name, kind, axis.length));
            axis.wraps = false;
        }
    }
    return axis;
}

void Reader::readTopology(const DocNode& node)
{
    if (node.kind != DocNode::Kind::List || node.entries.empty()) {
        report("MW1742", node, "topology", fmt::format("topology must be a list of axes, got {}", node.kindText()));
        return;
    }
    std::vector<PhysicalAxis> axes;
    for (std::size_t i = 0; i < node.entries.size(); ++i) {
        const std::string path = fmt::format("topology[{}]", i);
        if (isMap(node.entries[i].value, path))
            axes.push_back(readAxis(node.entries[i].value, path));
    }
    if (hasErrors(m_problems))
        return;
    const auto count
        = [&](AxisKind kind) { return std::ranges::count_if(axes, [&](const PhysicalAxis& axis) { return axis.kind == kind; }); };
    const auto islands = count(AxisKind::Switch) + count(AxisKind::FullMesh);
    if (count(AxisKind::Network) > 1 || islands > 1 || (islands > 0 && count(AxisKind::Torus) > 0)) {
        report("MW1744", node, "topology",
            fmt::format("a machine has at most one network, and in it one switch or full mesh or torus axes; got {} networks, {} "
                        "switches "
                        "or meshes and {} torus axes",
                count(AxisKind::Network), islands, count(AxisKind::Torus)));
        return;
    }
    std::vector<std::int64_t> strides(axes.size());
    std::int64_t devices = 1;
    for (std::size_t i = axes.size(); i-- > 0;) {
        strides[i] = devices;
        const auto more = checkedMultiply(devices, axes[i].length);
        if (!more || *more > kLargestMesh) {
            report("MW1707", node, "topology", fmt::format("the topology has more than {} devices", kLargestMesh));
            return;
        }
        devices = *more;
    }
    m_machine.topology = Topology(std::move(axes), std::move(strides));
}

void Reader::readFaults(const DocNode& node)
{
    if (!isMap(node, "faults"))
        return;
    checkKeys(node, "faults", {"slow", "links"});
    const Topology& topology = m_machine.topology;
    const auto each = [&](const char* key, auto visit) {
        const DocNode* list = node.find(key);
        if (list == nullptr)
            return;
        if (list->kind != DocNode::Kind::List) {
            report("MW1742", *list, fmt::format("faults.{}", key),
                fmt::format("faults.{} must be a list, got {}", key, list->kindText()));
            return;
        }
        for (std::size_t i = 0; i < list->entries.size(); ++i) {
            const DocNode& entry = list->entries[i].value;
            const std::string path = fmt::format("faults.{}[{}]", key, i);
            if (!isMap(entry, path))
                continue;
            need(entry, path, "device");
            const std::int64_t device = whole(entry, path, "device", 0, 0);
            if (device >= topology.deviceCount())
                report("MW1744", entry, path + ".device",
                    fmt::format("{}.device must be 0 to {}, got: {}", path, topology.deviceCount() - 1, device));
            else
                visit(entry, path, device);
        }
    };
    each("slow", [&](const DocNode& entry, const std::string& path, DeviceId device) {
        checkKeys(entry, path, {"device", "speed"});
        need(entry, path, "speed");
        m_machine.faults.devices.push_back({device, number(entry, path, "speed", 1e-3, 1.0, 1.0)});
    });
    each("links", [&](const DocNode& entry, const std::string& path, DeviceId device) {
        checkKeys(entry, path, {"device", "axis", "share"});
        const DocNode* name = need(entry, path, "axis");
        const double share = number(entry, path, "share", 0.0, 1.0, 0.0);
        if (name == nullptr)
            return;
        const auto found = std::ranges::find(topology.axes(), name->text, &PhysicalAxis::name);
        if (found == topology.axes().end()) {
            std::vector<std::string> names;
            for (const PhysicalAxis& axis : topology.axes())
                names.push_back(axis.name);
            report("MW1744", *name, path + ".axis", fmt::format("the topology has no axis \"{}\"", name->text),
                "it has " + join(names, ", "));
            return;
        }
        const auto axis = static_cast<std::size_t>(found - topology.axes().begin());
        if (found->kind == AxisKind::Torus && !found->wraps && topology.coordinate(device, axis) + 1 == found->length) {
            report("MW1744", entry, path + ".device",
                fmt::format(
                    "device {} is the last along {}, which does not wrap: it has no link to a next one", device, found->name));
            return;
        }
        m_machine.faults.links.push_back({device, axis, share});
    });
}

Result<Machine> Reader::read(std::string_view text)
{
    const Document document = parseDocument(text, m_file);
    m_problems = document.problems;
    if (!document.readable || !isMap(document.root, ""))
        return m_problems;
    const DocNode& root = document.root;
    checkKeys(root, "", {"schema", "meshwright", "meshwright_hardware", "chip", "topology", "faults", "host", "links"});
    if (const DocNode* version = need(root, "", "meshwright_hardware"); version != nullptr && version->text != "1")
        report("MW1744", *version, "meshwright_hardware", fmt::format("this program reads version 1, got: {}", version->text));
    if (const DocNode* chip = need(root, "", "chip"))
        readChip(*chip);
    if (const DocNode* topology = need(root, "", "topology"))
        readTopology(*topology);
    if (const DocNode* faults = root.find("faults"); faults != nullptr && !hasErrors(m_problems))
        readFaults(*faults);
    if (hasErrors(m_problems))
        return m_problems;
    const auto share = static_cast<double>(m_machine.chip.devicesPerChip);
    m_machine.choice.chip = m_machine.chip.key;
    m_machine.hbmBytesPerDevice = static_cast<std::int64_t>(m_machine.chip.hbmBytes->value / share);
    m_machine.hbmBytesPerSecondPerDevice = m_machine.chip.hbmBytesPerSecond->value / share;
    m_machine.assumptions.push_back(fmt::format("the machine is as {} describes it", m_file));
    return std::move(m_machine);
}

} // namespace

Result<Machine> parseHardware(std::string_view text, const std::string& file, const Catalogue& catalogue)
{
    return Reader(file, catalogue).read(text);
}

Result<Machine> readHardware(const std::filesystem::path& path, const Catalogue& catalogue)
{
    const auto text = readFile(path);
    if (!text)
        return text.error();
    return parseHardware(*text, path.string(), catalogue);
}

} // namespace meshwright::sim
