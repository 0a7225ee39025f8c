// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/machine.h"

#include "core/support/checked.h"
#include "core/support/counted.h"
#include "core/support/text.h"
#include "sim/hardware/hardware_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace meshwright::sim {

std::string sizesText(const std::vector<std::int64_t>& sizes)
{
    std::vector<std::string> texts;
    for (const std::int64_t size : sizes)
        texts.push_back(std::to_string(size));
    return join(texts, "x");
}

namespace {

Problem missingFigure(const Chip& chip, const std::string& what)
{
    return {"MW1709", fmt::format("the catalogue has no figure for {} of {}", what, chip.key),
        "choose another chip, or add the figure to the catalogue"};
}

/// A topology of this rank that fits the chip, for a hint.
std::string exampleTopology(const Chip& chip)
{
    if (!chip.hostShape.empty())
        return sizesText(chip.hostShape);
    return chip.interconnect.torusRank == 3 ? "2x2x1" : "4x2";
}

class MachineBuilder {
public:
    MachineBuilder(const ChipMatch& match, const HardwareChoice& choice)
        : m_match(match)
        , m_chip(*match.chip)
        , m_choice(choice)
    {
    }

    Result<Machine> build();

private:
    void checkTorus();
    void checkGpus();
    bool wraps(std::size_t axis) const;
    Topology torus();
    Topology gpus();
    PhysicalAxis island(std::int64_t devices);
    void assume(const std::string& text) { m_assumptions.push_back(text); }
    double figureOr(const OptionalFigure& figure, double assumed, const std::string& text)
    {
        if (figure)
            return figure->value;
        assume(text);
        return assumed;
    }

    const ChipMatch& m_match;
    const Chip& m_chip;
    HardwareChoice m_choice;
    Problems m_problems;
    std::vector<std::string> m_assumptions;
};

void MachineBuilder::checkTorus()
{
    const std::vector<std::int64_t>& sizes = m_choice.topology;
    if (m_choice.hosts != 0 || m_choice.perHost != 0) {
        m_problems.push_back({"MW1706", fmt::format("{} is a torus; hosts and per_host are for GPUs", m_chip.name),
            fmt::format("give a topology in chips, such as {}", exampleTopology(m_chip))});
    }
    if (m_match.devices) {
        if (!sizes.empty() || m_choice.slices != 0)
            m_problems.push_back({"MW1706",
                fmt::format("\"{}\" means {} of the {} devices of one chip; it takes no topology", m_choice.chip,
                    *m_match.devices, m_chip.devicesPerChip),
                fmt::format("choose {} for a slice", m_chip.key)});
        return;
    }
    const auto rank = static_cast<std::size_t>(m_chip.interconnect.torusRank);
    if (sizes.size() != rank) {
        const std::string got = sizes.empty() ? "none is given" : fmt::format("{} has {}", sizesText(sizes), sizes.size());
        m_problems.push_back({"MW1703", fmt::format("the topology of {} has {} axes; {}", m_chip.name, rank, got),
            fmt::format("for example {}", exampleTopology(m_chip))});
    }
    const bool positive = std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 1; });
    if (!positive)
        m_problems.push_back({"MW1704", fmt::format("every size of a topology must be at least 1, got: {}", sizesText(sizes))});
    if (m_choice.slices < 0)
        m_problems.push_back({"MW1704", fmt::format("slices must be at least 1, got: {}", m_choice.slices)});
    if (sizes.size() != rank || !positive || m_choice.slices < 0)
        return;
    const auto chips = checkedProduct(sizes);
    const std::int64_t slices = std::max<std::int64_t>(1, m_choice.slices);
    const auto ofSlice = chips ? checkedMultiply(*chips, m_chip.devicesPerChip) : std::nullopt;
    const auto devices = ofSlice ? checkedMultiply(*ofSlice, slices) : std::nullopt;
    if (!devices || *devices > kLargestMesh) {
        m_problems.push_back({"MW1707",
            fmt::format("{}a slice of {} chips has more than {} devices", slices > 1 ? fmt::format("{} times ", slices) : "",
                sizesText(sizes), kLargestMesh)});
        return;
    }
    // A slice may lie turned in the pod: compare the sorted lengths.
    std::vector<std::int64_t> sorted = sizes;
    std::vector<std::int64_t> largest = m_chip.maxSlice;
    std::ranges::sort(sorted);
    std::ranges::sort(largest);
    if (std::string unsold = unsoldSlice(m_chip, sizes); !unsold.empty())
        assume(unsold);
    bool fits = !m_chip.maxSliceChips || *chips <= *m_chip.maxSliceChips;
    for (std::size_t i = 0; i < sorted.size() && i < largest.size(); ++i)
        fits = fits && sorted[i] <= largest[i];
    if (!fits) {
        const std::string most = largest.empty() ? fmt::format("{} chips", *m_chip.maxSliceChips) : sizesText(m_chip.maxSlice);
        m_problems.push_back({"MW1705",
            fmt::format("a slice of {} chips is larger than the largest of {}: {}", sizesText(sizes), m_chip.name, most),
            fmt::format("use at most {}, or another chip", most)});
    }
    if (!m_chip.interconnect.linkBytesPerSecond)
        m_problems.push_back(missingFigure(m_chip, "the link bandwidth"));
    if (slices > 1 && !m_chip.dcnBytesPerSecond)
        m_problems.push_back(missingFigure(m_chip, "the network between slices"));
}

void MachineBuilder::checkGpus()
{
    if (m_choice.slices != 0)
        m_problems.push_back({"MW1706", fmt::format("{} comes in hosts, not in slices", m_chip.name),
            fmt::format("for example hosts: 2, per_host: {}", m_chip.fastDomain.value_or(8))});
    if (!m_choice.topology.empty()) {
        m_problems.push_back({"MW1706",
            fmt::format(
                "{} is not a torus; it takes hosts and per_host, not the topology {}", m_chip.name, sizesText(m_choice.topology)),
            fmt::format("for example hosts: 2, per_host: {}", m_chip.fastDomain.value_or(8))});
    }
    if (m_match.devices && (m_choice.hosts != 0 || m_choice.perHost != 0))
        m_problems.push_back({"MW1706",
            fmt::format("\"{}\" means {} of the {} devices of one chip; it takes no hosts", m_choice.chip, *m_match.devices,
                m_chip.devicesPerChip),
            fmt::format("choose {} for hosts", m_chip.key)});
    if (m_choice.hosts < 0)
        m_problems.push_back({"MW1704", fmt::format("hosts must be at least 1, got: {}", m_choice.hosts)});
    if (m_choice.perHost < 0)
        m_problems.push_back({"MW1704", fmt::format("per_host must be at least 1, got: {}", m_choice.perHost)});
    if (m_choice.hosts < 0 || m_choice.perHost < 0)
        return;
    if (m_choice.hosts == 0)
        m_choice.hosts = 1;
    const std::int64_t fast = m_chip.fastDomain.value_or(1);
    if (m_choice.perHost == 0)
        m_choice.perHost = fast;
    if (m_chip.interconnect.kind != InterconnectKind::Pcie && m_choice.perHost > fast) {
        m_problems.push_back(
            {"MW1708", fmt::format("per_host is {}, but {} of {} share the fast links", m_choice.perHost, fast, m_chip.name),
                fmt::format("use per_host: {} and more hosts", fast)});
    }
    const std::int64_t factors[] = {m_choice.hosts, m_choice.perHost, m_chip.devicesPerChip};
    const auto devices = checkedProduct(factors);
    if (!devices || *devices > kLargestMesh)
        m_problems.push_back({"MW1707",
            fmt::format("{} hosts of {} chips have more than {} devices", m_choice.hosts, m_choice.perHost, kLargestMesh)});
    if (!m_chip.interconnect.totalBytesPerSecond && !m_chip.interconnect.linkBytesPerSecond)
        m_problems.push_back(missingFigure(m_chip, "the link bandwidth"));
    if (m_choice.hosts > 1 && !m_chip.nicBytesPerSecond)
        m_problems.push_back(missingFigure(m_chip, "the network between hosts"));
}

bool MachineBuilder::wraps(std::size_t axis) const
{
    const std::vector<std::int64_t>& sizes = m_choice.topology;
    if (sizes[axis] < 3)
        return false;
    switch (m_chip.interconnect.wrapRule) {
    case WrapRule::Never:
        return false;
    case WrapRule::FullPod:
        return sizes == m_chip.maxSlice;
    case WrapRule::FullAxis:
        return axis < m_chip.maxSlice.size() && sizes[axis] == m_chip.maxSlice[axis];
    case WrapRule::CubesOf4:
        return sizes[axis] % 4 == 0 && std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 4; });
    }
    return false;
}

Topology MachineBuilder::torus()
{
    static constexpr const char* kNames[] = {"x", "y", "z"};
    const Interconnect& net = m_chip.interconnect;
    if (m_match.devices)
        m_choice.topology.assign(static_cast<std::size_t>(net.torusRank), 1);
    const std::int64_t cores = m_match.devices.value_or(m_chip.devicesPerChip);
    const double hop = figureOr(net.hopLatencySeconds, kAssumedIciHopSeconds, "ICI hop latency: 1 µs assumed, as later TPUs");
    const double chipLink = net.linkBytesPerSecond->value;
    const LinkSpec link{chipLink / static_cast<double>(m_chip.devicesPerChip), hop, LinkKind::Ici};
    if (m_chip.devicesPerChip > 1)
        assume(fmt::format("the {} devices of a chip share its ICI links evenly", m_chip.devicesPerChip));

    std::vector<PhysicalAxis> axes;
    std::vector<std::int64_t> strides;
    std::int64_t stride = cores;
    for (std::size_t i = 0; i < m_choice.topology.size(); ++i) {
        axes.push_back({kNames[i], AxisKind::Torus, m_choice.topology[i], wraps(i), link, 0.0});
        strides.push_back(stride);
        stride *= m_choice.topology[i];
    }
    if (m_choice.slices > 1) {
        const double step
            = figureOr(m_chip.networkLatencySeconds, kAssumedSliceStepSeconds, "latency of a step between slices: 50 µs assumed");
        const double port = m_chip.dcnBytesPerSecond->value / static_cast<double>(m_chip.devicesPerChip);
        axes.insert(axes.begin(), {"slice", AxisKind::Network, m_choice.slices, false, {port, step, LinkKind::Nic}, 0.0});
        strides.insert(strides.begin(), stride);
    }
    if (m_chip.devicesPerChip > 1) {
        const double between = figureOr(net.onChipLinkBytesPerSecond, kAssumedOnChipLinks * chipLink,
            fmt::format("link between the devices of a chip: {} ICI links assumed, as on TPU7x", kAssumedOnChipLinks));
        axes.push_back({"core", AxisKind::Torus, cores, false, {between, hop, LinkKind::OnChip}, 0.0});
        strides.push_back(1);
    }
    return {std::move(axes), std::move(strides)};
}

PhysicalAxis MachineBuilder::island(std::int64_t devices)
{
    const Interconnect& net = m_chip.interconnect;
    const double step
        = figureOr(net.hopLatencySeconds, kAssumedGpuStepSeconds, "latency of a step between GPUs: 3.4 µs assumed, as NVLink's");
    const double fraction = figureOr(net.achievableFraction, kAssumedRingFraction,
        "share of the link bandwidth that collectives reach: 0.78 assumed, as A100's");
    PhysicalAxis axis{"gpu", AxisKind::Switch, devices, false, {0.0, step, LinkKind::NvLink}, 0.0};
    if (net.kind == InterconnectKind::FullMesh && net.linkBytesPerSecond) {
        axis.kind = AxisKind::FullMesh;
        axis.link.bytesPerSecond = net.linkBytesPerSecond->value * fraction / static_cast<double>(m_chip.devicesPerChip);
        axis.link.kind = LinkKind::PeerLink;
        return axis;
    }
    const double total = net.totalBytesPerSecond ? net.totalBytesPerSecond->value : net.linkBytesPerSecond->value;
    axis.link.bytesPerSecond = total * fraction / static_cast<double>(m_chip.devicesPerChip);
    if (net.kind == InterconnectKind::Pcie)
        axis.link.kind = LinkKind::Pcie;
    else if (net.kindText != "nvswitch_all_to_all")
        assume(fmt::format("the links between the GPUs of a host ({}) are taken as one switch", net.kindText));
    if (net.reducesInSwitch)
        axis.inSwitchBytesPerSecond = axis.link.bytesPerSecond * kInSwitchShareOfRing;
    return axis;
}

Topology MachineBuilder::gpus()
{
    const std::int64_t devices = m_match.devices.value_or(m_choice.perHost * m_chip.devicesPerChip);
    PhysicalAxis network{"host", AxisKind::Network, m_choice.hosts, false, {1.0, 0.0, LinkKind::Nic}, 0.0};
    if (m_choice.hosts > 1) {
        network.link.bytesPerSecond = m_chip.nicBytesPerSecond->value / static_cast<double>(m_chip.devicesPerChip);
        network.link.latencySeconds = figureOr(m_chip.networkLatencySeconds, kAssumedNetworkStepSeconds,
            "latency of a step between hosts: 9.6 µs assumed, as NCCL's");
    }
    return {{std::move(network), island(devices)}, {devices, 1}};
}

Result<Machine> MachineBuilder::build()
{
    const bool isTorus = m_chip.interconnect.kind == InterconnectKind::Torus;
    if (isTorus)
        checkTorus();
    else
        checkGpus();
    if (!m_chip.hbmBytes)
        m_problems.push_back(missingFigure(m_chip, "the memory size"));
    if (!m_chip.hbmBytesPerSecond)
        m_problems.push_back(missingFigure(m_chip, "the memory bandwidth"));
    if (!m_problems.empty())
        return m_problems;
    if (!m_match.approximation.empty())
        assume(fmt::format("\"{}\": {}", m_choice.chip, m_match.approximation));
    Topology topology = isTorus ? torus() : gpus();
    const auto share = static_cast<double>(m_chip.devicesPerChip);
    return Machine{m_chip, m_choice, std::move(topology),
        static_cast<std::int64_t>(m_chip.hbmBytes->value) / m_chip.devicesPerChip, m_chip.hbmBytesPerSecond->value / share,
        std::move(m_assumptions)};
}

} // namespace

std::string Machine::text() const
{
    // A computer that was measured has devices of no chip's kind.
    return fmt::format(
        "{}, {}", chip.name, chip.chipClass == ChipClass::Cpu ? counted(deviceCount(), "virtual device") : topology.text());
}

Result<Machine> buildMachine(const Catalogue& catalogue, const HardwareChoice& choice)
{
    const auto named = namedChoice(catalogue, choice);
    if (!named)
        return named.error();
    return MachineBuilder(valueOf(catalogue.find(named->chip)), *named).build();
}

} // namespace meshwright::sim
