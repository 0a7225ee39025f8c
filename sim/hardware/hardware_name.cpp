// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/hardware_name.h"

#include "core/support/checked.h"
#include "core/support/quantity.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "sim/hardware/fitting_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>

namespace meshwright::sim {

namespace {

std::string inLowerCase(std::string text)
{
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

/// The catalogue's name of a chip as people and drivers write it: with its maker before it, several of them, spaces for dashes, "GB" behind its memory,
/// and the kinds of its socket and memory: "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3".
std::optional<std::string> spelled(const Catalogue& catalogue, const std::string& chip)
{
    if (catalogue.find(chip))
        return chip;
    std::string name = inLowerCase(std::string(trimmed(chip)));
    std::ranges::replace(name, ' ', '-');
    for (const std::string_view maker :
        {"gpu:", "cloud-tpu-", "tpu-", "nvidia-", "tesla-", "geforce-", "amd-", "instinct-", "google-", "intel-", "habana-"}) {
        if (name.starts_with(maker))
            name.erase(0, maker.size());
    }
    if (constexpr std::string_view kModule = "-oam"; name.ends_with(kModule))
        name.erase(name.size() - kModule.size());
    constexpr std::size_t kLongest = 100; // no chip has such a name, and std::regex takes a frame for each letter
    static const std::regex kPackage(R"(-hbm\d\w*|(sxm)\d)");
    const std::string plain = name.size() > kLongest ? name : std::regex_replace(name, kPackage, "$1");
    for (const std::string& form :
        {name, plain, "nvidia-" + plain}) { // whose keys name the maker, and whose chips have such sockets
        for (const std::string_view end : {"", "s", "gb"}) {
            const std::string one = form.ends_with(end) ? form.substr(0, form.size() - end.size()) : form;
            if (catalogue.find(one))
                return one;
        }
    }
    return std::nullopt;
}

/// A name such as "v5e-64" or "v5e-256x2" in its parts; the chip is not looked up.
struct CountedName {
    std::string chip;
    char separator = '-';
    std::string count;
    std::string slices = "1";

    std::string text() const { return separator + count + (slices == "1" ? "" : "x" + slices); }
};

std::optional<CountedName> countedName(const Catalogue& catalogue, const std::string& name)
{
    std::optional<CountedName> likely; // its chip is misspelt
    for (const char separator : {'x', '-'}) { // a100-80x4 is four, v5e-256x2 two slices
        const auto at = name.rfind(separator);
        if (at == std::string::npos || at == 0 || at + 1 == name.size())
            continue;
        CountedName parts{name.substr(0, at), separator, name.substr(at + 1)};
        if (const auto times = parts.count.find('x'); separator == '-' && times != std::string::npos) {
            parts.slices = parts.count.substr(times + 1);
            parts.count.resize(times);
        }
        const bool isCounted = parseInteger(parts.count).has_value();
        if (const auto known = spelled(catalogue, parts.chip)) {
            parts.chip = *known;
            return parts;
        }
        if (isCounted)
            likely = std::move(parts);
    }
    return likely;
}

Problem unknownChip(const Catalogue& catalogue, const std::string& name, const std::optional<CountedName>& parts)
{
    const std::string chip = inLowerCase(parts ? parts->chip : name); // as the catalogue's names are
    const auto near = nearestName(chip, catalogue.names());
    return {"MW1701", fmt::format("unknown chip: \"{}\"", name),
        near ? fmt::format("did you mean \"{}{}\"?", *near, parts ? parts->text() : "")
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
    const std::int64_t perHost = std::min(chips, largestHost(chip));
    if (chips % perHost != 0)
        return Problem{"MW1914", fmt::format("{} of {} do not fill a whole number of hosts of {}", chips, chip.name, perHost),
            fmt::format("name {}", ceilDiv(chips, perHost) * perHost)};
    return HardwareChoice{name, {}, chips / perHost, perHost};
}

} // namespace

std::string catalogueOrder(const std::string& name)
{
    static const std::regex kSlices(R"(\s*(\d+)\s+slices\s+of\s+(\S+)\s*)", std::regex::icase);
    static const std::regex kHosts(
        R"(\s*(\d+)\s*(?:x|(?:nodes|hosts|machines|servers)\s+(?:of|with))\s*(\d+)(?:\s*x\s*|\s+)(\S*[a-z]\S*(?:\s+\S+)*)\s*)",
        std::regex::icase);
    static const std::regex kCountOnly(R"(\s*(\d[\d,]*k?)\s+((?!x\s)[a-z]\S*(?:\s+\S+)*)\s*)", std::regex::icase);
    static const std::regex kColon(R"(\s*(\S*[a-z][^:\s]*)\s*:\s*(\d+)\s*)", std::regex::icase);
    static const std::regex kCountFirst(R"(\s*(\d+)\s*x\s*(\S*[a-z]\S*(?:\s+\S+)*)\s*)", std::regex::icase);
    static const std::regex kCountLast(R"(\s*(\S*[a-z]\S*(?:\s+\S+)*?)\s+x\s*(\d+)\s*)", std::regex::icase);
    constexpr std::size_t kLongest = 200; // no machine has such a name
    std::smatch parts;
    if (name.size() > kLongest)
        return name;
    if (std::regex_match(name, parts, kHosts)) {
        const auto hosts = parseInteger(parts.str(1));
        const auto each = parseInteger(parts.str(2));
        const auto all = hosts && each ? checkedMultiply(*hosts, *each) : std::nullopt;
        return all ? fmt::format("{}x{}", parts.str(3), *all) : name;
    }
    if (std::regex_match(name, parts, kColon))
        return fmt::format("{}x{}", parts.str(1), parts.str(2));
    if (std::regex_match(name, parts, kSlices) || std::regex_match(name, parts, kCountFirst))
        return fmt::format("{}x{}", parts.str(2), parts.str(1));
    if (std::regex_match(name, parts, kCountOnly)) {
        std::string digits = parts.str(1);
        std::erase(digits, ',');
        const auto count = parseCount(digits); // k counts in 1,024s
        return count ? fmt::format("{}x{}", parts.str(2), *count) : name;
    }
    if (std::regex_match(name, parts, kCountLast))
        return fmt::format("{}x{}", parts.str(1), parts.str(2));
    return name;
}

Result<MachineName> readMachineName(const Catalogue& catalogue, const std::string& name)
{
    if (auto whole = catalogue.find(name)) {
        const bool isInstance = !whole->chip->instance.empty();
        return MachineName{*whole, name, isInstance ? std::optional(whole->chip->instanceChips) : std::optional<std::int64_t>()};
    }
    if (const auto chip = spelled(catalogue, name))
        return readMachineName(catalogue, *chip);
    auto parts = countedName(catalogue, catalogueOrder(name));
    if (const auto space = name.rfind(' ');
        !parts && space != std::string::npos && parseInteger(name.substr(space + 1))) // "v5e 256"
        parts = countedName(catalogue, name.substr(0, space) + "-" + name.substr(space + 1));
    const auto match = parts ? catalogue.find(parts->chip) : catalogue.find(name);
    if (!match)
        return unknownChip(catalogue, name, parts);
    const Chip& chip = *match->chip;
    const auto count = parseInteger(parts->count);
    const auto slices = parseInteger(parts->slices);
    const auto chips = count ? checkedMultiply(*count, chip.instanceChips) : std::nullopt;
    if (!chips || *chips < 1 || !slices || *slices < 1)
        return Problem{"MW1914", fmt::format("\"{}\" is not a number of chips in \"{}\"", parts->count, name),
            "write h100x64, v5e-64, or v5e-256x2 for two slices"};
    const bool cores = parts->separator == '-' && chip.slicesCountCores;
    if (cores && *count % 2 != 0)
        return Problem{"MW1914", fmt::format("\"{}\" counts cores, two a chip: {} is odd", name, *count), "write an even number"};
    return MachineName{*match, parts->chip, cores ? *chips / 2 : *chips, *slices, cores};
}

Result<HardwareChoice> namedChoice(const Catalogue& catalogue, const HardwareChoice& choice)
{
    const bool hasHosts = choice.hosts != 0 || choice.perHost != 0;
    const auto whole = catalogue.find(choice.chip);
    if (whole && (whole->chip->instance.empty() || hasHosts))
        return choice;
    const auto named = readMachineName(catalogue, choice.chip);
    if (!named)
        return named.error();
    const Chip& chip = *named->match.chip;
    if (!choice.topology.empty() || (hasHosts && !whole))
        return Problem{"MW1914",
            fmt::format("\"{}\" states the number of chips, and so do the topology or the hosts", choice.chip),
            fmt::format("leave one of the two out: \"{}\"", named->chip)};
    if (named->slices > 1)
        return Problem{"MW1914", fmt::format("\"{}\" is {} slices; a study has one", choice.chip, named->slices),
            fmt::format("name one slice, or search over all of them: meshwright search --hw {}", catalogueOrder(choice.chip))};
    return chip.interconnect.kind == InterconnectKind::Torus ? torusOf(catalogue, chip, named->chip, *named->chips)
                                                             : hostsOf(chip, named->chip, *named->chips);
}

Result<Machine> machineNamed(const std::string& name)
{
    const auto catalogue = Catalogue::load(resourcesDirectory() / "hardware" / "catalogue.json");
    return catalogue ? buildMachine(*catalogue, {name}) : catalogue.error();
}

} // namespace meshwright::sim
