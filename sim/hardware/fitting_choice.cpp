// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/fitting_choice.h"

#include "core/support/checked.h"
#include "core/support/text.h"
#include "sim/hardware/hardware_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace meshwright::sim {

namespace {

/// The factors of `chips` over `rank` axes, largest first, with the smallest sum that the chip allows.
class CompactTopology {
public:
    CompactTopology(const Catalogue& catalogue, const std::string& chip)
        : m_catalogue(catalogue)
        , m_chip(chip)
    {
    }

    std::optional<std::vector<std::int64_t>> find(std::int64_t chips, std::size_t rank)
    {
        m_best.reset();
        std::vector<std::int64_t> sizes;
        search(chips, rank, chips, sizes);
        return m_best;
    }

private:
    void search(std::int64_t left, std::size_t rank, std::int64_t most, std::vector<std::int64_t>& sizes)
    {
        if (rank == 0) {
            const auto sum = [](const std::vector<std::int64_t>& list) {
                return std::accumulate(list.begin(), list.end(), std::int64_t{0});
            };
            if (left == 1 && (!m_best || sum(sizes) < sum(*m_best)) && buildMachine(m_catalogue, {m_chip, sizes, 0, 0}))
                m_best = sizes;
            return;
        }
        for (std::int64_t size = 1; size <= std::min(left, most); ++size) {
            if (left % size != 0)
                continue;
            sizes.push_back(size);
            search(left / size, rank - 1, size, sizes);
            sizes.pop_back();
        }
    }

    const Catalogue& m_catalogue;
    const std::string& m_chip;
    std::optional<std::vector<std::int64_t>> m_best;
};

/// `slices`: as in HardwareChoice.
std::optional<HardwareChoice> torusChoice(
    const Catalogue& catalogue, const Chip& chip, const std::string& name, std::int64_t slices, std::int64_t devices)
{
    constexpr std::int64_t kMostChips = 16'384; // no slice is larger
    CompactTopology compact(catalogue, name);
    const std::int64_t chips = ceilDiv(devices, std::max<std::int64_t>(1, slices) * chip.devicesPerChip);
    for (std::int64_t count = chips; count <= std::min(kMostChips, 2 * chips); ++count) {
        if (const auto sizes = compact.find(count, static_cast<std::size_t>(chip.interconnect.torusRank)))
            return HardwareChoice{name, *sizes, 0, 0, slices};
    }
    return std::nullopt;
}

std::optional<HardwareChoice> hostsChoice(
    const Catalogue& catalogue, const Chip& chip, const std::string& name, std::int64_t devices)
{
    const std::int64_t chips = ceilDiv(devices, chip.devicesPerChip);
    const std::int64_t perHost = std::min(chips, largestHost(chip));
    const HardwareChoice choice{name, {}, ceilDiv(chips, perHost), perHost};
    return buildMachine(catalogue, choice) ? std::optional(choice) : std::nullopt;
}

} // namespace

std::optional<HardwareChoice> fittingChoice(const Catalogue& catalogue, const HardwareChoice& wanted, std::int64_t devices)
{
    HardwareChoice choice = wanted;
    if (!catalogue.find(choice.chip)) {
        const auto named = readMachineName(catalogue, choice.chip);
        const auto near = named ? std::optional(named->chip) : nearestName(choice.chip, catalogue.names());
        if (!near)
            return std::nullopt;
        choice.chip = *near;
    }
    const ChipMatch match = valueOf(catalogue.find(choice.chip));
    if (const auto machine = buildMachine(catalogue, choice); machine && (machine->deviceCount() >= devices || match.devices))
        return choice;
    if (match.devices)
        return HardwareChoice{choice.chip, {}, 0, 0};
    return match.chip->interconnect.kind == InterconnectKind::Torus
        ? torusChoice(catalogue, *match.chip, choice.chip, std::max<std::int64_t>(0, choice.slices), devices)
        : hostsChoice(catalogue, *match.chip, choice.chip, devices);
}

std::int64_t largestHost(const Chip& chip)
{
    constexpr std::int64_t kPcieSlots = 8;
    const bool isPcie = chip.interconnect.kind == InterconnectKind::Pcie;
    return isPcie && chip.instance.empty() ? kPcieSlots : std::max<std::int64_t>(1, chip.fastDomain.value_or(1));
}

std::string topologyText(const std::vector<std::int64_t>& sizes)
{
    return fmt::format("{}", fmt::join(sizes, "x"));
}

std::vector<std::string> hardwareSettings(const HardwareChoice& from, const HardwareChoice& to)
{
    std::vector<std::string> settings;
    if (to.chip != from.chip)
        settings.push_back("hardware.chip=" + to.chip);
    if (to.topology != from.topology)
        settings.push_back(to.topology.empty() ? std::string("hardware.topology=")
                                               : fmt::format("hardware.topology=[{}]", fmt::join(to.topology, ", ")));
    const auto addCount = [&](const char* key, std::int64_t before, std::int64_t after) {
        if (before != after)
            settings.push_back(after == 0 ? fmt::format("hardware.{}=", key) : fmt::format("hardware.{}={}", key, after));
    };
    addCount("hosts", from.hosts, to.hosts);
    addCount("per_host", from.perHost, to.perHost);
    addCount("slices", from.slices, to.slices);
    return settings;
}

} // namespace meshwright::sim
