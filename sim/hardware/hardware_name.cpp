// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/hardware_name.h"

#include "core/support/checked.h"
#include "core/support/pattern.h"
#include "core/support/quantity.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "sim/hardware/fitting_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

namespace meshwright::sim {

namespace {

/// The parts between dashes, in the order of the alphabet.
std::vector<std::string> sortedParts(const std::string& name)
{
    std::vector<std::string> parts = split(name, '-');
    std::ranges::sort(parts);
    return parts;
}

/// Whether a chip's memory is of so many GB, as they are printed: in powers of 1000 or of 1024.
bool hasGigabytes(const Chip& chip, std::int64_t gigabytes)
{
    if (!chip.hbmBytes || gigabytes < 1)
        return false;
    const double ratio = chip.hbmBytes->value / (1e9 * static_cast<double>(gigabytes));
    return ratio > 0.99 && ratio < 1.08;
}

/// The catalogue's name of a chip as people and drivers write it: with its maker before it, several of them, spaces for dashes, its parts in any order,
/// its memory behind it, and the kinds of its socket and memory: "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3", "A100-80GB-SXM", "H200 141GB".
std::optional<std::string> spelled(const Catalogue& catalogue, const std::string& chip)
{
    if (catalogue.knows(chip))
        return chip;
    std::string name = lowerCase(std::string(trimmed(chip)));
    std::ranges::replace(name, ' ', '-');
    for (const std::string_view maker :
        {"cloud-tpu-", "tpu-", "nvidia-", "tesla-", "geforce-", "amd-", "instinct-", "google-", "intel-", "habana-"}) {
        if (name.starts_with(maker))
            name.erase(0, maker.size());
    }
    if (constexpr std::string_view kModule = "-oam"; name.ends_with(kModule))
        name.erase(name.size() - kModule.size());
    static const Pattern kPackage(R"(-hbm\d\w*|(sxm)\d)");
    const std::string plain = kPackage.replacedIn(name, "$1");
    for (const std::string& form :
        {name, plain, "nvidia-" + plain}) { // whose keys name the maker, and whose chips have such sockets
        for (const std::string_view end : {"", "s", "gb"}) {
            const std::string one = form.ends_with(end) ? form.substr(0, form.size() - end.size()) : form;
            if (catalogue.knows(one))
                return one;
        }
    }
    constexpr std::size_t kMostParts = 8; // no chip's name has more
    if (const auto parts = sortedParts("nvidia-" + plain); parts.size() > 2 && parts.size() <= kMostParts) {
        const std::vector<std::string> known = catalogue.names();
        const auto same = std::ranges::find_if(known, [&](const std::string& one) { return sortedParts(one) == parts; });
        if (same != known.end())
            return *same;
    }
    const auto dash = plain.rfind('-');
    if (dash != std::string::npos && plain.ends_with("gb")) {
        const auto chipAlone = spelled(catalogue, plain.substr(0, dash));
        const auto gigabytes = parseInteger(std::string_view(plain).substr(dash + 1, plain.size() - dash - 3));
        if (chipAlone && gigabytes && hasGigabytes(*valueOf(catalogue.find(*chipAlone)).chip, *gigabytes))
            return chipAlone;
    }
    return std::nullopt;
}

constexpr std::int64_t kLeastRack = 32; ///< GPUs that share the fast links of a rack; hosts have fewer

/// What a word means that stands beside the machine's name.
struct Beside {
    enum class Meaning : std::uint8_t { Number, Hosts, Racks, Slices, Pods, Chips, Per, Nothing };
    Meaning meaning = Meaning::Nothing;
    std::int64_t number = 0;
};

const std::map<std::string_view, Beside>& wordsBeside()
{
    using enum Beside::Meaning;
    static const std::map<std::string_view, Beside> words = {{"a", {Number, 1}}, {"an", {Number, 1}}, {"one", {Number, 1}},
        {"single", {Number, 1}}, {"two", {Number, 2}}, {"three", {Number, 3}}, {"four", {Number, 4}}, {"five", {Number, 5}},
        {"six", {Number, 6}}, {"eight", {Number, 8}}, {"ten", {Number, 10}}, {"twelve", {Number, 12}}, {"sixteen", {Number, 16}},
        {"node", {Hosts}}, {"host", {Hosts}}, {"machine", {Hosts}}, {"server", {Hosts}}, {"instance", {Hosts}}, {"vm", {Hosts}},
        {"rack", {Racks}}, {"slice", {Slices}}, {"pod", {Pods}}, {"gpu", {Chips}}, {"tpu", {Chips}}, {"chip", {Chips}},
        {"card", {Chips}}, {"accelerator", {Chips}}, {"device", {Chips}}, {"per", {Per}}, {"of", {}}, {"with", {}}, {"and", {}},
        {"each", {}}, {"full", {}}, {"cluster", {}}, {"x", {}}};
    return words;
}

std::optional<Beside> besideOf(const std::string& word)
{
    const auto& known = wordsBeside();
    for (const std::string_view one : {std::string_view(word), std::string_view(word).substr(0, word.size() - 1)}) {
        if (const auto found = known.find(one); found != known.end() && (one.size() == word.size() || word.back() == 's'))
            return found->second;
    }
    if (const auto count = parseCount(word)) // k counts in 1,024s
        return Beside{Beside::Meaning::Number, *count};
    return std::nullopt;
}

/// "v5e" and "64" of "v5e-64", whether or not the catalogue knows it.
std::pair<std::string, std::string> withoutNumber(const std::string& name)
{
    const auto dash = name.rfind('-');
    if (dash == std::string::npos || dash == 0 || !parseInteger(name.substr(dash + 1)))
        return {name, {}};
    return {name.substr(0, dash), name.substr(dash + 1)};
}

/// The words of a machine's name, with an x between a number and what it counts as a word of its own: "8xH100", "4 x 8 H100", "h100x64".
std::vector<std::string> wordsOf(const Catalogue& catalogue, const std::string& name)
{
    static const Pattern kTimes("\\xc3\\x97|[*]"); // the sign of multiplication
    static const Pattern kApart(R"([():\[\]]|,(?=\s|$))"); // "gpu:h100:8", "4 nodes, 8 H100 each"
    const std::string text = kApart.replacedIn(kTimes.replacedIn(name, " x "), " ");
    std::vector<std::string> words;
    std::istringstream in(text);
    for (std::string word; in >> word;) {
        static const Pattern kCountFirst(R"((\d[\d,]*)[xX](.*))");
        while (const auto parts = kCountFirst.matchOf(word)) {
            words.insert(words.end(), {parts->groups[1], "x"});
            word = parts->groups[2];
        }
        const auto times = word.find_last_of("xX");
        const bool isName = spelled(catalogue, word) || spelled(catalogue, withoutNumber(word).first); // "tpu-v7x-64"
        if (!isName && times != std::string::npos && times + 1 < word.size()
            && (std::isdigit(static_cast<unsigned char>(word[times + 1])) != 0 || spelled(catalogue, word.substr(0, times)))) {
            if (times > 0)
                words.push_back(word.substr(0, times));
            words.insert(words.end(), {"x", word.substr(times + 1)});
        } else if (!word.empty()) {
            words.push_back(word);
        }
    }
    return words;
}

/// The words that name the machine: the most that stand together and that the catalogue knows, with a number behind a dash or a space ("v5e-64",
/// "v5e 256") where that is part of them.
struct NamedPart {
    std::size_t first = 0;
    std::size_t count = 0; ///< of words; 0: the catalogue knows none
    std::string chip; ///< as the catalogue has it
    std::string number; ///< behind the dash; empty: there is none
};

NamedPart namedPart(const Catalogue& catalogue, const std::vector<std::string>& words)
{
    for (std::size_t count = words.size(); count > 0; --count) {
        for (std::size_t first = 0; first + count <= words.size(); ++first) {
            const auto begin = words.begin() + static_cast<std::ptrdiff_t>(first);
            const std::vector<std::string> some(begin, begin + static_cast<std::ptrdiff_t>(count));
            if (const auto known = spelled(catalogue, join(some, " ")))
                return {first, count, *known, {}};
            const auto [chip, number] = withoutNumber(join(some, "-"));
            if (const auto known = number.empty() ? std::nullopt : spelled(catalogue, chip))
                return {first, count, *known, number};
        }
    }
    return {};
}

/// `words`: of the name; those that count nothing are taken for a chip's that is misspelt. `known`: what the others name, if anything; `stranger`:
/// the word beside it that is not known.
Problem unknownName(const Catalogue& catalogue, const std::string& name, const std::vector<std::string>& words,
    const MachineName* known = nullptr, const std::string& stranger = {})
{
    const char* const kChips = "`meshwright list hardware` names all chips";
    const auto isOfChip = [](const std::string& word) { return !besideOf(lowerCase(word)); };
    const auto first = std::ranges::find_if(words, isOfChip);
    const auto last = std::find_if(words.rbegin(), words.rend(), isOfChip).base();
    const bool isMisspelt = first < last;
    const std::string written = isMisspelt ? join(std::vector<std::string>(first, last), " ") : name;
    const auto [chip, number] = withoutNumber(lowerCase(written)); // as the catalogue's names are
    const auto near = isMisspelt ? nearestName(chip, catalogue.names()) : std::nullopt;
    if (!isMisspelt && !words.empty())
        return {"MW1701", fmt::format("\"{}\" names no chip", name), fmt::format("name it, too, as in 64xH100; {}", kChips)};
    const bool isOfKnown = known != nullptr && near && near->find(lowerCase(known->chip)) != std::string::npos;
    if (known != nullptr && !isOfKnown)
        return {"MW1701",
            fmt::format("\"{}\" in \"{}\" says nothing about a number of {}", stranger, name, known->match.chip->name),
            "write a number and what it counts: 64xH100, 8 nodes of 8 H100, 2 slices of v5e-256"};
    std::vector<std::string> meant(words.begin(), first);
    meant.push_back(near.value_or("") + (number.empty() ? "" : "-" + number));
    if (isMisspelt)
        meant.insert(meant.end(), last, words.end());
    return {"MW1701", fmt::format("unknown chip: \"{}\"", name),
        near ? fmt::format("did you mean \"{}\"?", join(meant, " ")) : std::string(kChips)};
}

Problem noSlice(const Chip& chip, std::int64_t chips, std::string fix)
{
    return {"MW1914", fmt::format("no slice of {} has {} chips", chip.name, chips), std::move(fix)};
}

} // namespace

Result<HardwareChoice> sliceOf(const Catalogue& catalogue, const Chip& chip, const std::string& name, std::int64_t chips)
{
    const std::int64_t devices = chips > kLargestMesh ? kLargestMesh : chips * chip.devicesPerChip;
    const auto fitting = fittingChoice(catalogue, {name, {}, 0, 0}, devices);
    if (!fitting)
        return noSlice(chip, chips,
            chip.maxSliceChips && *chip.maxSliceChips < chips
                ? fmt::format("the largest one has {}; several are joined as in v5e-256x2", *chip.maxSliceChips)
                : "name fewer chips");
    std::int64_t found = 1;
    for (const std::int64_t size : fitting->topology)
        found *= size;
    if (found != chips)
        return noSlice(chip, chips, fmt::format("the next larger one has {}", found));
    return *fitting;
}

Result<HardwareChoice> sliceOf(const Catalogue& catalogue, const MachineName& name)
{
    const Chip& chip = *name.match.chip;
    const std::string& chipName = name.match.chips ? chip.key : name.chip;
    const std::int64_t slices = name.slices > 1 ? name.slices : 0;
    if (!name.topology.empty())
        return HardwareChoice{chipName, name.topology, 0, 0, slices};
    auto slice = sliceOf(catalogue, chip, chipName, *name.chips);
    if (slice)
        slice->slices = slices;
    return slice;
}

std::string unsoldSlice(const Chip& chip, const std::vector<std::int64_t>& topology)
{
    const bool isFlat = chip.interconnect.torusRank == 2;
    const bool isSold = std::ranges::all_of(topology, [&](std::int64_t side) {
        return side < 1 || (isFlat ? std::has_single_bit(static_cast<std::uint64_t>(side)) : side <= 2 || side % 4 == 0);
    });
    return isSold || chip.interconnect.kind != InterconnectKind::Torus
        ? std::string()
        : fmt::format("{} chips of {} are not a slice that is sold: each side is {}", topologyText(topology), chip.name,
            isFlat ? "a power of two" : "1, 2 or a multiple of 4");
}

namespace {

Result<HardwareChoice> hostsOf(const MachineName& name)
{
    const Chip& chip = *name.match.chip;
    const std::int64_t perHost = name.perHost.value_or(std::min(*name.chips, largestHost(chip)));
    std::int64_t even = perHost; // of so many all hosts are full
    while (*name.chips % even != 0)
        --even;
    if (even != perHost)
        return Problem{"MW1914",
            fmt::format("{} of {} do not fill a whole number of hosts of {}", *name.chips, chip.name, perHost),
            fmt::format("name {}", ceilDiv(*name.chips, perHost) * perHost)
                + (chip.instance.empty() ? fmt::format(", or the hosts: {} nodes of {} {}", *name.chips / even, even, name.chip)
                                         : std::string())};
    return HardwareChoice{name.chip, {}, *name.chips / perHost, perHost};
}

} // namespace

namespace {

/// The shape of a slice in a name, and the name without it: "v4" and 8x8x8 of "v4-8x8x8".
struct ShapeInName {
    std::vector<std::int64_t> sizes;
    std::string rest;
    bool isBehindDash = false;
};

std::optional<ShapeInName> shapeIn(const std::string& name)
{
    static const Pattern kShape(R"((^|[\s-])(\d{1,9})[xX](\d{1,9})(?:[xX](\d{1,9}))?(?=[\s,]|$))");
    const auto found = kShape.firstIn(name);
    if (!found)
        return std::nullopt;
    ShapeInName shape{{}, name.substr(0, found->begin) + " " + name.substr(found->end), found->groups[1] == "-"};
    for (std::size_t i = 2; i < found->groups.size() && !found->groups[i].empty(); ++i)
        shape.sizes.push_back(parseInteger(found->groups[i]).value_or(0));
    return shape;
}

/// Reads a name without the shape of a slice, which stands apart; empty: it has none, or the machine takes none of so many axes.
Result<MachineName> readCounts(const Catalogue& catalogue, const std::string& name, const std::vector<std::int64_t>& shape)
{
    using enum Beside::Meaning;
    const std::vector<std::string> words = wordsOf(catalogue, name);
    const NamedPart part = namedPart(catalogue, words);
    if (part.count == 0)
        return unknownName(catalogue, name, words);
    MachineName read{valueOf(catalogue.find(part.chip)), part.chip};
    const Chip& chip = *read.match.chip;
    const bool isTorus = chip.interconnect.kind == InterconnectKind::Torus;
    const auto noNumber = [&](const std::string& word) {
        return Problem{"MW1914", fmt::format("\"{}\" is not a number of chips in \"{}\"", word, name),
            "write h100x64, v5e-64, or v5e-256x2 for two slices"};
    };

    // Each number counts what the next word says, over the machine's name: "4 nodes of 8 H100", "4 H100 nodes", "8 H100 per node".
    std::map<Beside::Meaning, std::vector<std::int64_t>> counts;
    if (!part.number.empty()) {
        const auto number = parseInteger(part.number);
        if (!number || *number < 1)
            return noNumber(part.number);
        read.countsCores = chip.slicesCountCores;
        if (read.countsCores && *number % 2 != 0)
            return Problem{
                "MW1914", fmt::format("\"{}\" counts cores, two a chip: {} is odd", name, *number), "write an even number"};
        counts[Chips].push_back(read.countsCores ? *number / 2 : *number);
    }
    const bool isShaped = isTorus && part.number.empty() && !read.match.chips && !shape.empty()
        && std::cmp_equal(shape.size(), chip.interconnect.torusRank);
    if (isShaped) {
        read.topology = shape;
        counts[Chips] = shape;
    }
    bool isPod = false;
    const bool isSlice = isTorus && (isShaped || !part.number.empty());
    std::optional<std::int64_t> open; // a number of which it is not known yet what it counts
    const auto close = [&](Beside::Meaning of) {
        if (open)
            counts[isSlice ? Slices : of].push_back(*open);
        open.reset();
    };
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i >= part.first && i < part.first + part.count)
            continue;
        const auto beside = besideOf(lowerCase(words[i]));
        if (!beside && i > 0 && lowerCase(words[i - 1]) == "x")
            return noNumber(words[i]);
        if (!beside)
            return unknownName(catalogue, name, words, &read, words[i]);
        const bool isRack
            = chip.fastDomain.value_or(1) >= kLeastRack && read.match.chips.value_or(*chip.fastDomain) == *chip.fastDomain;
        if ((beside->meaning == Racks && !isRack) || (beside->meaning == Pods && !isTorus))
            return Problem{"MW1914",
                fmt::format("\"{}\": a {} of {} has no fixed size", name, beside->meaning == Pods ? "pod" : "rack", chip.name),
                "write the hosts: 4 nodes of 8 H100"};
        if (beside->meaning == Number) {
            // "4x8 H100" and "4 nodes x 8 H100" are hosts first.
            close(i < part.first ? Hosts : Chips);
            if (beside->number < 1)
                return noNumber(words[i]);
            open = beside->number;
        } else if (beside->meaning == Pods) {
            isPod = true;
            close(Slices);
        } else if (beside->meaning != Nothing) {
            close(beside->meaning == Per ? Chips : beside->meaning == Racks ? Hosts : beside->meaning);
        }
    }
    close(Chips);
    if (isPod && counts[Chips].empty() && chip.maxSliceChips) {
        read.topology = chip.maxSlice;
        counts[Chips].push_back(*chip.maxSliceChips);
    }
    const auto product = [&](Beside::Meaning of) {
        std::optional<std::int64_t> all = 1;
        for (const std::int64_t count : counts[of])
            all = all ? checkedMultiply(*all, count) : std::nullopt;
        return all;
    };
    const bool isHost = read.match.chips.has_value(); // and has its own chips
    if (!counts[Hosts].empty() && !isTorus && !isHost) {
        read.perHost = counts[Chips].empty() ? largestHost(chip) : product(Chips).value_or(kLargestMesh);
        if (*read.perHost > largestHost(chip))
            return Problem{"MW1708",
                fmt::format("\"{}\" has hosts of {}, but {} of {} share the fast links", name, *read.perHost, largestHost(chip),
                    chip.name),
                fmt::format("name the chips alone: {}x64", read.chip)};
    }
    if (counts[Chips].empty() && read.perHost)
        counts[Chips].push_back(*read.perHost);
    read.isCounted = std::ranges::any_of(counts, [](const auto& one) { return !one.second.empty(); });
    const auto ofHost = product(Chips);
    const auto hosts = product(Hosts);
    const auto slices = product(Slices);
    const auto chips = ofHost && hosts ? checkedMultiply(*ofHost, *hosts) : std::nullopt;
    const auto all = chips ? checkedMultiply(*chips, read.match.chips.value_or(1)) : std::nullopt;
    if (!all || !slices)
        return Problem{"MW1914", fmt::format("\"{}\" names more chips than can be counted", name), "name fewer chips"};
    if (isHost || !counts[Chips].empty() || !counts[Hosts].empty() || (read.isCounted && !isTorus))
        read.chips = *all;
    if (isTorus)
        read.slices = *slices;
    else if (read.chips)
        read.chips = checkedMultiply(*all, *slices);
    return read;
}

} // namespace

bool countsOnly(const std::string& text)
{
    std::istringstream in(lowerCase(text));
    bool hasWord = false;
    for (std::string word; in >> word; hasWord = true) {
        if (!besideOf(word))
            return false;
    }
    return hasWord;
}

Result<MachineName> readMachineName(const Catalogue& catalogue, const std::string& name)
{
    constexpr std::size_t kLongest = 200; // no machine has such a name
    if (name.size() > kLongest)
        return unknownName(catalogue, name, {});
    if (const auto shape = shapeIn(name)) {
        // "v5e-8x16" is a shape, whose sides do not fall as Google writes them, and "v5e-256x2" two slices.
        const bool isTwoNumbers = shape->isBehindDash && shape->sizes.size() == 2 && shape->sizes[0] > shape->sizes[1];
        const auto read = readCounts(catalogue, shape->rest, shape->sizes);
        if (read && !read->topology.empty() && !isTwoNumbers)
            return read;
    }
    return readCounts(catalogue, name, {});
}

Result<HardwareChoice> namedChoice(const Catalogue& catalogue, const HardwareChoice& choice)
{
    const bool hasHosts = choice.hosts != 0 || choice.perHost != 0;
    const auto whole = catalogue.find(choice.chip);
    const bool isMachine = whole && whole->chips;
    if (whole && (!isMachine || hasHosts || (whole->chip->instance.empty() && !choice.topology.empty())))
        return choice;
    const auto named = readMachineName(catalogue, choice.chip);
    if (!named)
        return named.error();
    const Chip& chip = *named->match.chip;
    if (!named->chips) {
        HardwareChoice alone = choice;
        alone.chip = named->chip;
        alone.slices = named->slices > 1 ? named->slices : choice.slices;
        return alone;
    }
    if (!choice.topology.empty() || (hasHosts && !whole))
        return Problem{"MW1914",
            fmt::format("\"{}\" states the number of chips, and so do the topology or the hosts", choice.chip),
            fmt::format("leave one of the two out: \"{}\"", named->chip)};
    if (named->slices > 1 && choice.slices != 0)
        return Problem{"MW1914", fmt::format("\"{}\" states the number of slices, and so does `slices`", choice.chip),
            "leave one of the two out"};
    if (chip.interconnect.kind != InterconnectKind::Torus)
        return hostsOf(*named);
    auto slice = sliceOf(catalogue, *named);
    if (slice && named->slices == 1)
        slice->slices = choice.slices;
    return slice;
}

Result<Machine> machineNamed(const std::string& name)
{
    const auto catalogue = Catalogue::load(resourcesDirectory() / "hardware" / "catalogue.json");
    return catalogue ? buildMachine(*catalogue, {name}) : catalogue.error();
}

} // namespace meshwright::sim
