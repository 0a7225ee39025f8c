// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/hardware_name.h"

#include "core/support/checked.h"
#include "core/support/text.h"
#include "sim/hardware/fitting_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

namespace meshwright::sim {

namespace {

/// A name such as "v5e-64" in its parts; the chip is not looked up.
struct CountedName {
    std::string chip;
    char separator = '-';
    std::string count;
};

std::optional<CountedName> countedName(const Catalogue& catalogue, const std::string& name)
{
    std::optional<CountedName> likely; // its chip is misspelt
    for (const char separator : {'-', 'x'}) {
        const auto at = name.rfind(separator);
        if (at == std::string::npos || at == 0 || at + 1 == name.size())
            continue;
        CountedName parts{name.substr(0, at), separator, name.substr(at + 1)};
        const bool isCounted = parseInteger(parts.count).has_value();
        if (catalogue.find(parts.chip) && (isCounted || name.find('x', at) == std::string::npos))
            return parts;
        if (isCounted)
            likely = std::move(parts);
    }
    return likely;
}

Problem unknownChip(const Catalogue& catalogue, const std::string& name, const std::optional<CountedName>& parts)
{
    const std::string chip = parts ? parts->chip : name;
    const auto near = nearestName(chip, catalogue.names());
    return {"MW1701", fmt::format("unknown chip: \"{}\"", name),
        near ? fmt::format("did you mean \"{}{}\"?", *near, parts ? parts->separator + parts->count : "")
             : std::string("`meshwright list hardware` names all chips")};
}

Problem noSlice(const Chip& chip, std::int64_t chips, std::string fix)
{
    return {"MW1914", fmt::format("no slice of {} has {} chips", chip.name, chips), std::move(fix)};
}

Result<HardwareChoice> torusOf(const Catalogue& catalogue, const Chip& chip, const std::string& name, std::int64_t chips)
{
    const std::int64_t devices = chips > kLargestMesh ? kLargestMesh : chips * chip.devicesPerChip;
    const auto fitting = fittingChoice(catalogue, {name, {}, 0, 0}, devices);
    if (!fitting)
        return noSlice(chip, chips, "name fewer chips");
    std::int64_t found = 1;
    for (const std::int64_t size : fitting->topology)
        found *= size;
    if (found != chips)
        return noSlice(chip, chips, fmt::format("the next larger one has {}", found));
    return *fitting;
}

Result<HardwareChoice> hostsOf(const Chip& chip, const std::string& name, std::int64_t chips)
{
    constexpr std::int64_t kPcieSlots = 8; // of a common host
    const bool isPcie = chip.interconnect.kind == InterconnectKind::Pcie;
    const std::int64_t perHost = std::min(chips, isPcie ? kPcieSlots : chip.fastDomain.value_or(1));
    if (chips % perHost != 0)
        return Problem{"MW1914", fmt::format("{} of {} do not fill a whole number of hosts of {}", chips, chip.name, perHost),
            fmt::format("name {}", ceilDiv(chips, perHost) * perHost)};
    return HardwareChoice{name, {}, chips / perHost, perHost};
}

} // namespace

std::string catalogueOrder(const std::string& name)
{
    static const std::regex kSlices(R"(\s*(\d+)\s+slices\s+of\s+(\S+)\s*)", std::regex::icase);
    static const std::regex kCountFirst(R"(\s*(\d+)\s*x\s*(\S*[a-z]\S*)\s*)", std::regex::icase);
    static const std::regex kCountLast(R"(\s*(\S*[a-z]\S*)\s+x\s*(\d+)\s*)", std::regex::icase);
    std::smatch parts;
    if (std::regex_match(name, parts, kSlices) || std::regex_match(name, parts, kCountFirst))
        return fmt::format("{}x{}", parts.str(2), parts.str(1));
    if (std::regex_match(name, parts, kCountLast))
        return fmt::format("{}x{}", parts.str(1), parts.str(2));
    return name;
}

Result<HardwareChoice> namedChoice(const Catalogue& catalogue, const HardwareChoice& choice)
{
    if (catalogue.find(choice.chip))
        return choice;
    const auto parts = countedName(catalogue, catalogueOrder(choice.chip));
    const auto match = parts ? catalogue.find(parts->chip) : catalogue.find(choice.chip);
    if (!match)
        return unknownChip(catalogue, choice.chip, parts);
    const Chip& chip = *match->chip;
    const auto count = parseInteger(parts->count);
    if (!count || *count < 1)
        return Problem{"MW1914", fmt::format("\"{}\" is not a number of chips in \"{}\"", parts->count, choice.chip),
            "write h100x64 or v5e-64 for one slice"};
    if (!choice.topology.empty() || choice.hosts != 0 || choice.perHost != 0)
        return Problem{"MW1914",
            fmt::format("\"{}\" states the number of chips, and so do the topology or the hosts", choice.chip),
            fmt::format("leave one of the two out: \"{}\"", parts->chip)};
    const bool cores = parts->separator == '-' && chip.slicesCountCores;
    if (cores && *count % 2 != 0)
        return Problem{
            "MW1914", fmt::format("\"{}\" counts cores, two a chip: {} is odd", choice.chip, *count), "write an even number"};
    const std::int64_t chips = cores ? *count / 2 : *count;
    return chip.interconnect.kind == InterconnectKind::Torus ? torusOf(catalogue, chip, parts->chip, chips)
                                                             : hostsOf(chip, parts->chip, chips);
}

} // namespace meshwright::sim
