// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/search_request.h"

#include "core/models/model_file.h"
#include "core/models/transformer.h"
#include "core/study/study.h"
#include "core/support/checked.h"
#include "core/support/pattern.h"
#include "core/support/quantity.h"
#include "core/support/text.h"
#include "sim/hardware/fitting_choice.h"
#include "sim/hardware/hardware_name.h"
#include "sim/search/search_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <map>
#include <numeric>
#include <set>

namespace meshwright::sim {

namespace {

constexpr std::int64_t kLargestCount = std::int64_t{1} << 40;

std::vector<std::int64_t> chipCounts(const std::string& text, Problems& problems)
{
    const auto dots = text.find("..");
    const auto first = parseInteger(text.substr(0, dots));
    const auto last = dots == std::string::npos ? first : parseInteger(text.substr(dots + 2));
    if (!first || !last || *first < 1 || *last < *first || *last > kMostChips) {
        problems.push_back({"MW1937", fmt::format("--chips: \"{}\" is not a number of chips from 1 to {}", text, kMostChips),
            "write 64, or 16..256 for 16, 32, 64, 128 and 256"});
        return {};
    }
    std::vector<std::int64_t> counts;
    for (std::int64_t count = *first; count <= *last; count *= 2)
        counts.push_back(count);
    return counts;
}

/// The links of all slices or hosts; null where they cannot be built.
std::shared_ptr<const Machine> linksOf(const SearchMachine& of, const Catalogue& catalogue)
{
    const Chip& chip = of.chip;
    HardwareChoice choice;
    choice.chip = chip.catalogueName();
    if (chip.interconnect.kind == InterconnectKind::Torus) {
        choice.topology = of.cluster.slice;
        choice.slices = of.cluster.slices > 1 ? of.cluster.slices : 0;
    } else {
        choice.perHost = chipsOfHost(of.chips, fastChips(of));
        choice.hosts = of.chips / choice.perHost;
    }
    auto machine = buildMachine(catalogue, choice);
    return machine ? std::make_shared<const Machine>(*std::move(machine)) : nullptr;
}

/// What is said of GPUs that do not fill hosts of the usual size; empty where they do, or fit in one host.
std::string unusualHosts(const SearchMachine& machine)
{
    constexpr std::int64_t kLeastRack = 32; // so many GPUs share the fast links of a rack
    const std::int64_t usual = fastChips(machine);
    if (machine.chip.interconnect.kind == InterconnectKind::Torus || machine.chips <= usual || machine.chips % usual == 0)
        return {};
    const std::int64_t ofHost = chipsOfHost(machine.chips, usual);
    const char* const host = usual >= kLeastRack ? "rack" : "host";
    const std::int64_t below = machine.chips / usual * usual;
    return fmt::format("{} are taken as {} {}s of {}: usual {}s have {}, which {} or {} chips fill", machine.name,
        machine.chips / ofHost, host, ofHost, host, usual, below, below + usual);
}

/// The nearest numbers of chips below and above with slices that are sold: "slices of 4 or 8 chips are".
std::string nearestSlices(const Chip& chip, std::int64_t chips)
{
    const auto isSold
        = [&](std::int64_t count) { return unsoldSlice(chip, compactTopology(count, chip.interconnect.torusRank)).empty(); };
    std::int64_t below = chips - 1;
    while (below > 1 && !isSold(below))
        --below;
    const std::int64_t most = largestSlice(chip).value_or(2 * chips);
    std::int64_t above = chips + 1;
    while (above <= most && !isSold(above))
        ++above;
    return above <= most ? fmt::format("slices of {} or {} chips are", below, above)
                         : fmt::format("slices of at most {} chips are", below);
}

std::vector<double> pricesOf(const SearchWords& words, Problems& problems)
{
    std::vector<double> prices;
    for (const std::string& text : words.prices) {
        const auto price = parseNumber(text);
        if (!price || *price < 0.0)
            problems.push_back(
                {"MW1939", fmt::format("\"{}\" is not a price", text), "write dollars an hour for one chip: --price 2.50"});
        else
            prices.push_back(*price);
    }
    if (prices.size() > 1 && prices.size() != words.hardware.size())
        problems.push_back({"MW1939", fmt::format("{} prices for {} machines", prices.size(), words.hardware.size()),
            "give one for all, or one each in the order of --hw"});
    return prices;
}

} // namespace

Result<TransformerConfig> modelNamed(const std::string& name, std::vector<std::string>* notes, std::vector<std::string>& ignored)
{
    const auto file = readModelFile(name, name);
    if (!file)
        return file.error();
    const std::string path = file->path.string();
    auto config = readTransformerConfig(file->text, path, notes, &ignored);
    if (!config)
        return config.error();
    if (Problems problems = transformerProblems(*config); hasErrors(problems))
        return inFile(std::move(problems), path);
    if (config->name.empty())
        config->name = file->path.stem().string();
    Problems problems = programProblems(*config);
    if (!problems.empty()) {
        const ParameterCounts counts = parameterCounts(*config);
        problems.front().message += fmt::format("; it has {} parameters, {} active",
            formatCount(static_cast<double>(counts.total)), formatCount(static_cast<double>(counts.active)));
        return inFile(std::move(problems), path);
    }
    return config;
}

Result<std::int64_t> parseCount(std::string_view text, std::string_view what)
{
    const auto count = meshwright::parseCount(text);
    if (count && *count >= 1 && *count <= kLargestCount)
        return *count;
    const bool isLarge = count && *count > kLargestCount;
    return Problem{"MW1935",
        isLarge ? fmt::format("{}: {} is {}, more than the {} that one step may have", what, text, *count, kLargestCount)
                : fmt::format("{}: \"{}\" is not a whole number from 1 to {}", what, text, kLargestCount),
        isLarge ? std::string("give what one step takes, not the whole training: 1M, 4M")
                : std::string("k, M, G and T count in 1,024s: 4k is 4,096, and 0.5M is 524,288")};
}

Result<SearchWork> workOf(const SearchWords& words, std::vector<std::string>* notes)
{
    Problems problems;
    SearchWork work;
    if (auto model = modelNamed(words.model, notes, work.ignoredKeys))
        work.model = *std::move(model);
    else
        append(problems, model.error());
    const auto take = [&](const std::string& text, const char* what) -> std::optional<std::int64_t> {
        if (text.empty())
            return std::nullopt;
        const auto count = parseCount(text, what);
        if (count)
            return *count;
        append(problems, count.error());
        return std::nullopt;
    };
    const auto sequence = take(words.sequence, "--seq");
    const auto tokens = take(words.tokens, "--tokens");
    const auto batch = take(words.globalBatch, "--global-batch");
    work.sequence = sequence.value_or(std::min<std::int64_t>(4096, work.model.maxPositions > 0 ? work.model.maxPositions : 4096));
    if (work.model.position == PositionKind::Learned && work.model.maxPositions > 0 && work.sequence > work.model.maxPositions)
        problems.push_back({"MW1355",
            fmt::format("a sequence of {} tokens, but only {} positions are learned", work.sequence, work.model.maxPositions),
            fmt::format("use a sequence of at most {}", work.model.maxPositions)});
    if (words.tokens.empty() == words.globalBatch.empty())
        problems.push_back(
            {"MW1936", words.tokens.empty() ? "the batch of a step is missing" : "--tokens and --global-batch are both given",
                "give one of them: --tokens 1M, or --global-batch 256"});
    if (batch)
        work.globalBatch = *batch;
    if (tokens && (sequence || words.sequence.empty())) {
        if (*tokens % work.sequence != 0)
            problems.push_back(
                {"MW1936", fmt::format("{} tokens are not a whole number of sequences of {}", *tokens, work.sequence),
                    fmt::format("--tokens {}",
                        std::max<std::int64_t>(1, (*tokens + work.sequence / 2) / work.sequence) * work.sequence)});
        work.globalBatch = *tokens / work.sequence;
    }
    const auto format = mathFormatNamed(words.format);
    if (format && *format != MathFormat::Int8) // no training multiplies in it
        work.format = *format;
    else
        problems.push_back({"MW1903", fmt::format("--dtype: unknown number format \"{}\"", words.format),
            "one of: fp32, tf32, bf16, fp16, fp8, fp4"});
    if (!words.recipe.empty()) {
        using enum Fp8Recipe;
        for (const Fp8Recipe recipe : {Delayed, Current, Rowwise, Blockwise}) {
            if (words.recipe == fp8RecipeName(recipe))
                work.recipe = recipe;
        }
        work.format = MathFormat::Fp8;
        if (work.recipe == None)
            problems.push_back({"MW1903", fmt::format("--fp8: unknown recipe \"{}\"", words.recipe),
                "one of: delayed, current, rowwise, blockwise"});
    }
    if (!problems.empty())
        return problems;
    return work;
}

namespace {

} // namespace

std::string joinedSlices(const Chip& chip, std::int64_t chips)
{
    const std::int64_t largest = largestSlice(chip).value_or(chips);
    const std::int64_t slices = ceilDiv(chips, largest);
    // Slices of many chips are cubes of 4 a side, or flat with sides that are powers of two.
    const std::int64_t least = ceilDiv(chips, slices);
    const std::int64_t each = std::min(largest,
        chip.interconnect.torusRank == 2 ? static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(least)))
                                         : ceilDiv(least, 64) * 64);
    const std::string name = chip.key.starts_with("tpu-") ? chip.key.substr(4) : chip.key;
    return fmt::format("{}-{}x{}", name, chip.slicesCountCores ? 2 * each : each, slices);
}

Result<SearchMachine> machineOf(
    const Chip& chip, std::int64_t chips, std::int64_t slices, const Calibration& calibration, std::string_view stack)
{
    Problems problems;
    if (chips > kMostChips / std::max<std::int64_t>(1, slices) || chips < 1)
        return Problem{
            "MW1747", fmt::format("{} chips are more than the {} that are searched for", chips, kMostChips), "name fewer chips"};
    const bool torus = chip.interconnect.kind == InterconnectKind::Torus;
    if (const auto largest = largestSlice(chip); largest && chips > *largest)
        problems.push_back(
            {"MW1747", fmt::format("{} chips are more than the largest slice of {}, {}", chips, chip.name, *largest),
                "join slices: " + joinedSlices(chip, chips)});
    if (!torus && slices > 1)
        problems.push_back({"MW1747", fmt::format("{} comes in hosts, not in slices", chip.name),
            fmt::format("{}x{}", chip.key, chips * slices)});
    if (!matmulRate(chip, MathFormat::Bf16) || !chip.hbmBytes || !chip.hbmBytesPerSecond)
        problems.push_back({"MW1709",
            fmt::format("the catalogue lacks a figure of {} that a search needs: rate, memory or bandwidth", chip.name),
            "choose another chip"});
    if (!problems.empty())
        return problems;
    SearchMachine machine;
    machine.chip = chip;
    machine.chips = chips * slices;
    machine.name
        = slices > 1 ? fmt::format("{} slices of {} {}", slices, chips, chip.name) : fmt::format("{} {}", chips, chip.name);
    machine.cluster.devices = machine.chips * chip.devicesPerChip;
    machine.cluster.slices = slices;
    if (chip.interconnect.kind == InterconnectKind::Pcie)
        machine.cluster.fastDomain = largestHost(chip);
    if (!canBeBuilt(machine))
        return Problem{"MW1709", fmt::format("the catalogue has no figure for the network between hosts of {}", chip.name),
            fmt::format("name at most {} chips, which share a host, or a cloud's machine that has them", fastChips(machine))};
    machine.stack = std::string(stack);
    machine.constants = calibration.constants(calibration.stackFor(stack, chip), chip);
    if (chip.interconnect.kind != InterconnectKind::Torus)
        machine.constants.networkEfficiency = 1.0; // a program's collectives go at the links' own rates
    machine.traits = calibration.traits(calibration.stackFor(stack, chip));
    machine.traits.gradientsOncePerStep = false; // programs reduce those of split parameters with each microbatch
    if (chip.dollarsPerHour)
        machine.dollarsPerChipHour = chip.dollarsPerHour->value;
    return machine;
}

std::vector<std::string> machineTexts(const std::vector<std::string>& lists)
{
    std::vector<std::string> names;
    for (const std::string& list : lists) {
        std::vector<std::string> parts; // of one name: "16" and "384 H100", "4 nodes" and "8 H100 each"
        bool isFirst = true;
        for (const std::string& part : split(list, ',')) {
            parts.push_back(part);
            if (countsOnly(part))
                continue;
            names.push_back(join(parts, ","));
            parts.clear();
            isFirst = false;
        }
        if (!parts.empty() && isFirst)
            names.push_back(join(parts, ","));
        else if (!parts.empty()) // "H100, 64"
            names.back() += "," + join(parts, ",");
    }
    return names;
}

Result<std::vector<SearchMachine>> machinesOf(
    const SearchWords& words, const Catalogue& catalogue, const Calibration& calibration, std::vector<std::string>& notes)
{
    Problems problems;
    std::vector<SearchMachine> machines;
    const std::vector<std::int64_t> counts
        = words.chips.empty() ? std::vector<std::int64_t>{} : chipCounts(words.chips, problems);
    const std::vector<double> prices = pricesOf(words, problems);
    if (!words.stack.empty() && !calibration.stackNamed(words.stack))
        problems.push_back(
            {"MW1903", fmt::format("--stack: unknown name \"{}\"", words.stack), suggestion(words.stack, stackWords())});
    for (std::size_t i = 0; i < words.hardware.size(); ++i) {
        const std::string& name = words.hardware[i];
        const auto named = readMachineName(catalogue, name);
        if (!named) {
            append(problems, named.error());
            continue;
        }
        const Chip& chip = *named->match.chip;
        std::vector<std::int64_t> own = counts;
        if (words.chips.empty() && !named->chips)
            problems.push_back({"MW1937", fmt::format("\"{}\" does not say how many chips", name),
                fmt::format("write {}x64, or add --chips 64", name)});
        else if (words.chips.empty())
            own = {*named->chips};
        for (const std::int64_t count : own) {
            if (count % chip.instanceChips != 0)
                problems.push_back({"MW1937",
                    fmt::format("{} chips are not a whole number of {}, which has {}", count, chip.instance, chip.instanceChips),
                    fmt::format("--chips {}", ceilDiv(count, chip.instanceChips) * chip.instanceChips)});
        }
        if (words.chips.empty() && named->chips && (named->countsCores || named->match.chips))
            notes.push_back(named->countsCores
                    ? fmt::format("{} is {}{} chips: the name counts cores", name,
                        named->slices > 1 ? fmt::format("{} slices of ", named->slices) : std::string(), *named->chips)
                    : fmt::format("{} is {} chips: the name counts machines of {}", name, *named->chips, *named->match.chips));
        if (!words.chips.empty() && named->chips)
            notes.push_back(fmt::format("--chips {} replaces the {} chips of {}", words.chips, *named->chips, name));
        for (const std::int64_t count : own) {
            auto machine = machineOf(chip, count, named->slices, calibration, words.stack);
            if (!machine) {
                append(problems, machine.error());
                continue;
            }
            if (chip.interconnect.kind == InterconnectKind::Torus) {
                const auto slice = words.chips.empty() ? sliceOf(catalogue, *named) : sliceOf(catalogue, chip, chip.key, count);
                const auto built = slice ? buildMachine(catalogue, *slice) : slice.error();
                if (!built) {
                    append(problems, built.error());
                    continue;
                }
                machine->cluster.slice = slice->topology;
                if (const std::string unsold = unsoldSlice(chip, slice->topology); !unsold.empty())
                    notes.push_back(fmt::format("{} is read as a slice of {}: {}; {}", name, topologyText(slice->topology),
                        unsold, nearestSlices(chip, count)));
            }
            if (!prices.empty())
                machine->dollarsPerChipHour = prices.size() == 1 ? prices.front() : prices[std::min(i, prices.size() - 1)];
            if (named->perHost)
                machine->cluster.fastDomain = *named->perHost;
            if (std::string unusual = unusualHosts(*machine); !unusual.empty())
                notes.push_back(std::move(unusual));
            machine->links = linksOf(*machine, catalogue);
            machines.push_back(*std::move(machine));
        }
    }
    if (!problems.empty())
        return problems;
    return machines;
}

std::int64_t chipsOfHost(std::int64_t chips, std::int64_t fastDomain)
{
    std::int64_t ofHost = std::clamp<std::int64_t>(fastDomain, 1, chips);
    while (chips % ofHost != 0)
        --ofHost;
    return ofHost;
}

std::vector<std::int64_t> compactTopology(std::int64_t chips, std::int64_t rank)
{
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(rank), 1);
    for (std::int64_t factor = 2; chips > 1;) {
        if (chips % factor != 0) {
            ++factor;
            continue;
        }
        *std::min_element(sizes.begin(), sizes.end()) *= factor;
        chips /= factor;
    }
    return sizes;
}

std::vector<SearchMachine> largerMachines(
    const SearchMachine& machine, const Catalogue& catalogue, const Calibration& calibration)
{
    const auto deviceBytes
        = [](const Chip& chip) { return chip.hbmBytes ? chip.hbmBytes->value / static_cast<double>(chip.devicesPerChip) : 0.0; };
    std::vector<SearchMachine> larger;
    for (const Chip& chip : catalogue.chips()) {
        if (chip.chipClass != machine.chip.chipClass || deviceBytes(chip) <= deviceBytes(machine.chip))
            continue;
        if (auto other = machineOf(chip, machine.chips, 1, calibration, machine.stack))
            larger.push_back(*std::move(other));
    }
    std::stable_sort(larger.begin(), larger.end(),
        [&](const SearchMachine& a, const SearchMachine& b) { return deviceBytes(a.chip) < deviceBytes(b.chip); });
    return larger;
}

namespace {

/// A layout that people know by a name, as choices; of the axes that it does not name all but these are 1.
struct NamedPlan {
    const char* name; ///< as in words of a plan, in lower case
    std::vector<FixedChoice> choices;
    std::vector<const char*> free;
};

const std::vector<NamedPlan>& namedPlans()
{
    static const std::vector<NamedPlan> plans = {{"fsdp", {{"zero", "3"}, {"data", "1"}}, {"fsdp"}},
        {"zero-3", {{"zero", "3"}, {"data", "1"}}, {"fsdp"}}, {"hsdp", {{"zero", "3"}, {"fsdp", "host"}}, {"data"}},
        {"ddp", {{"zero", "0"}}, {"data"}}, {"zero-1", {{"zero", "1"}}, {"data"}}, {"zero-2", {{"zero", "2"}}, {"data"}},
        {"2d", {{"zero", "3"}, {"data", "1"}}, {"fsdp", "tensor"}},
        {"megatron", {{"zero", "1"}}, {"data", "tensor", "pipeline"}}};
    return plans;
}

/// Words for choices and plans: people's, and those of options of Megatron-LM, torchtitan and MaxText. Other words are left as they are.
std::string choiceName(const std::string& word)
{
    static const std::map<std::string, std::string, std::less<>> names = {{"tp", "tensor"}, {"pp", "pipeline"}, {"dp", "data"},
        {"cp", "context"}, {"ep", "expert"}, {"mbs", "microbatch"}, {"vp", "chunks"}, {"micro-batch-size", "microbatch"},
        {"tensor-model-parallel-size", "tensor"}, {"pipeline-model-parallel-size", "pipeline"},
        {"context-parallel-size", "context"}, {"expert-model-parallel-size", "expert"}, {"dp-shard", "fsdp"},
        {"dp-replicate", "data"}, {"data-parallel-shard-degree", "fsdp"}, {"data-parallel-replicate-degree", "data"},
        {"tensor-parallel-degree", "tensor"}, {"pipeline-parallel-degree", "pipeline"}, {"context-parallel-degree", "context"},
        {"expert-parallel-degree", "expert"}, {"ici-fsdp-parallelism", "fsdp"}, {"ici-tensor-parallelism", "tensor"},
        {"dcn-data-parallelism", "data"}, {"fsdp2", "fsdp"}, {"fully-sharded", "fsdp"}, {"zero1", "zero-1"}, {"zero2", "zero-2"},
        {"zero3", "zero-3"}, {"3d", "megatron"}};
    const auto found = names.find(word);
    return found == names.end() ? word : found->second;
}

bool isPlanName(const std::string& word)
{
    return std::ranges::find(namedPlans(), word, &NamedPlan::name) != namedPlans().end();
}

/// "tensor=8" and "pipeline=4" of "tp8pp4"; empty where the word is not of names with numbers.
std::vector<std::string> degreesOf(const std::string& word)
{
    const auto isDigit = [](unsigned char c) { return std::isdigit(c) != 0; };
    const auto& known = fixedChoiceNames();
    std::vector<std::string> parts;
    for (auto at = word.begin(); at != word.end();) {
        const auto digits = std::find_if(at, word.end(), isDigit);
        const auto end = std::find_if_not(digits, word.end(), isDigit);
        const std::string name = choiceName({at, digits});
        if (digits == end || std::ranges::find(known, name) == known.end())
            return {};
        parts.push_back(name + "=" + std::string(digits, end));
        at = end;
    }
    return parts;
}

} // namespace

std::vector<std::string> planWords(const std::string& text)
{
    static const std::set<std::string_view> filling = {"parallel", "parallelism", "stage", "degree", "and", "with", "x"};
    static const Pattern kEquals(R"( *[=:] *)"); // "tp = 8", "tp:8"
    std::string apart = lowerCase(kEquals.replacedIn(text, "="));
    std::ranges::replace_if(
        apart, [](char c) { return std::string_view(",+/;").find(c) != std::string_view::npos; }, ' ');
    std::vector<std::string> parts;
    for (const std::string& one : split(apart, ' ')) {
        const auto equals = std::min(one.find('='), one.size());
        std::string name = one.substr(std::min(one.find_first_not_of('-'), equals), equals); // "--tensor-model-parallel-size"
        std::ranges::replace(name, '_', '-');
        name = choiceName(name.substr(0, name.find('=')));
        if (one.empty() || filling.contains(one))
            continue;
        const std::vector<std::string> degrees = isPlanName(name) ? std::vector<std::string>{} : degreesOf(one);
        const bool isValue = parseInteger(one).has_value() && !parts.empty() && parts.back().find('=') == std::string::npos;
        if (isValue)
            parts.back() += "=" + one;
        else if (!degrees.empty())
            parts.insert(parts.end(), degrees.begin(), degrees.end());
        else
            parts.push_back(name + one.substr(equals));
    }
    std::ranges::replace(parts, std::string("data"), std::string("ddp")); // "data parallel"
    return parts;
}

namespace {

/// What a choice's value may be; empty: this one is.
std::string wrongValue(const FixedChoice& choice)
{
    const auto number = parseInteger(choice.value);
    if (choice.name == "recompute")
        return recomputationOf(choice.value) ? "" : fmt::format("one of: {}", fmt::join(recomputationNames(), ", "));
    if (choice.name == "schedule")
        return scheduleNamed(choice.value) ? "" : "one of: gpipe, 1f1b, interleaved, zb_h1, zb_h2";
    if (choice.name == "zero")
        return number && *number >= 0 && *number <= 3 ? "" : "one of: 0, 1, 2, 3";
    if (choice.name == "fsdp" && choice.value == "host")
        return {};
    return number && *number >= 1 ? "" : "write a whole number of 1 or more";
}

} // namespace

Result<std::vector<FixedChoice>> parseFixed(std::span<const std::string> texts)
{
    Problems problems;
    std::vector<FixedChoice> choices;
    const NamedPlan* named = nullptr;
    std::vector<std::string> known = fixedChoiceNames();
    for (const NamedPlan& plan : namedPlans()) {
        if (std::ranges::find(known, plan.name) == known.end()) // "fsdp" is both
            known.emplace_back(plan.name);
    }
    const auto isGiven = [&](const std::string& name) {
        return std::any_of(choices.begin(), choices.end(), [&](const FixedChoice& other) { return other.name == name; });
    };
    for (const std::string& text : texts) {
        for (const std::string& part : planWords(text)) {
            const auto equals = part.find('=');
            const FixedChoice choice{part.substr(0, equals), equals == std::string::npos ? "" : part.substr(equals + 1)};
            const auto& names = fixedChoiceNames();
            const auto plan = std::ranges::find(namedPlans(), part, &NamedPlan::name);
            const bool isChoice = std::find(names.begin(), names.end(), choice.name) != names.end();
            if (plan != namedPlans().end() && named == nullptr)
                named = &*plan;
            else if (plan != namedPlans().end())
                problems.push_back({"MW1938", fmt::format("\"{}\" and \"{}\" are two plans", named->name, part), "name one"});
            else if (!isChoice)
                problems.push_back({"MW1938", fmt::format("\"{}\" is not a choice of a plan, nor a plan's name", choice.name),
                    suggestion(choice.name, known)});
            else if (const std::string wrong = wrongValue(choice); !wrong.empty())
                problems.push_back({"MW1938", fmt::format("{}: \"{}\" is not allowed", choice.name, choice.value), wrong});
            else if (isGiven(choice.name))
                problems.push_back({"MW1938", fmt::format("\"{}\" is given twice", choice.name), "give it once"});
            else
                choices.push_back(choice);
        }
    }
    if (!problems.empty())
        return problems;
    if (named == nullptr)
        return choices;
    for (const FixedChoice& choice : named->choices) {
        if (!isGiven(choice.name))
            choices.push_back(choice);
    }
    for (const char* axis : {"tensor", "pipeline", "context", "expert"}) {
        if (!isGiven(axis) && std::ranges::find(named->free, std::string_view(axis)) == named->free.end())
            choices.push_back({axis, "1"});
    }
    return choices;
}

} // namespace meshwright::sim
