// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/cost/stack.h"

#include "core/study/transformer_keys.h"
#include "core/support/file.h"
#include "core/support/find.h"
#include "core/support/pattern.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "sim/cost/recomputation.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace meshwright::sim {

namespace {

using Json = nlohmann::json;

template <typename Field>
struct Named {
    std::string_view name;
    Field field;
};

template <typename Field, std::size_t N>
const Named<Field>* named(const std::array<Named<Field>, N>& table, std::string_view name)
{
    return findBy(table, name, &Named<Field>::name);
}

constexpr std::array<Named<double StackConstants::*>, 22> kConstants{
    {{"matmul_residual", &StackConstants::matmulResidual}, {"matmul_efficiency", &StackConstants::matmulEfficiency},
        {"narrow_efficiency", &StackConstants::narrowEfficiency}, {"memory_efficiency", &StackConstants::memoryEfficiency},
        {"attention_forward", &StackConstants::attentionForward}, {"attention_backward", &StackConstants::attentionBackward},
        {"kernel_s", &StackConstants::kernelSeconds}, {"host_kernel_s", &StackConstants::hostKernelSeconds},
        {"step_s", &StackConstants::stepSeconds}, {"microbatch_s", &StackConstants::microbatchSeconds},
        {"link_efficiency", &StackConstants::linkEfficiency}, {"network_efficiency", &StackConstants::networkEfficiency},
        {"tensor_overlap", &StackConstants::tensorOverlap}, {"data_overlap", &StackConstants::dataOverlap},
        {"pipeline_overlap", &StackConstants::pipelineOverlap}, {"expert_overlap", &StackConstants::expertOverlap},
        {"overlap_slowdown", &StackConstants::overlapSlowdown}, {"optimizer_bytes", &StackConstants::optimizerBytes},
        {"straggler_share", &StackConstants::stragglerShare}, {"straggler_slowdown", &StackConstants::stragglerSlowdown},
        {"staged_share", &StackConstants::stagedShare}, {"expert_layer_s", &StackConstants::expertLayerSeconds}}};

const Words<AttentionKernel>& attentionKernelWords()
{
    static const Words<AttentionKernel> words
        = {{"unfused", AttentionKernel::Unfused}, {"fused_softmax", AttentionKernel::FusedSoftmax},
            {"flash1", AttentionKernel::Flash1}, {"flash2", AttentionKernel::Flash2}, {"flash3", AttentionKernel::Flash3}};
    return words;
}

constexpr std::array<Named<bool StackTraits::*>, 22> kFlags{
    {{"waits_for_sums", &StackTraits::waitsForSums}, {"fused_norms", &StackTraits::fusedNorms},
        {"fused_rotary", &StackTraits::fusedRotary}, {"fused_elementwise", &StackTraits::fusedElementwise},
        {"compiles_narrow", &StackTraits::compilesNarrow}, {"dropout", &StackTraits::dropout},
        {"gradients_once_per_step", &StackTraits::gradientsOncePerStep}, {"sequence_parallel", &StackTraits::sequenceParallel},
        {"async_tensor_parallel", &StackTraits::asyncTensorParallel}, {"recomputes_layers", &StackTraits::recomputesLayers},
        {"gathers_context", &StackTraits::gathersContext}, {"gathers_narrow", &StackTraits::gathersNarrow},
        {"dispatches_once_a_host", &StackTraits::dispatchesOnceAHost}, {"parallel_logits", &StackTraits::parallelLogits},
        {"scatters_boundary", &StackTraits::scattersBoundary}, {"reduces_whole", &StackTraits::reducesWhole},
        {"gathers_ahead", &StackTraits::gathersAhead}, {"gathers_singly", &StackTraits::gathersSingly},
        {"parallel_block", &StackTraits::parallelBlock}, {"dispatches_by_product", &StackTraits::dispatchesByProduct},
        {"merges_products", &StackTraits::mergesProducts}, {"adds_gradients", &StackTraits::addsGradients}}};

constexpr std::array<Named<double StackTraits::*>, 6> kNumbers{
    {{"gradient_bytes", &StackTraits::gradientBytes}, {"reduced_bytes", &StackTraits::reducedBytes},
        {"step_bytes", &StackTraits::stepBytes}, {"accumulator_bytes", &StackTraits::accumulatorBytes},
        {"weight_bytes", &StackTraits::weightBytes}, {"optimizer_state_bytes", &StackTraits::optimizerStateBytes}}};

bool occurs(const std::string& pattern, const std::string& text)
{
    return pattern.empty() || Pattern(pattern, Pattern::Letters::InEitherCase).firstIn(text);
}

struct Reader {
    std::string file;
    Problems problems = {};

    void complain(const std::string& path, const std::string& what)
    {
        problems.push_back({"MW1765", what, "see resources/hardware/README.md for the file's form", Place{file, 0, 0, path}});
    }

    void readConstants(const Json& json, const std::string& path, StackConstants& constants)
    {
        if (!json.is_object())
            return complain(path, "constants are not an object");
        for (const auto& [name, value] : json.items()) {
            const auto* found = named(kConstants, name);
            if (found == nullptr)
                complain(path + "." + name, fmt::format("\"{}\" is not a constant", name));
            else if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0.0)
                complain(path + "." + name, fmt::format("{} is not a number of 0 or more", name));
            else
                constants.*(found->field) = value.get<double>();
        }
    }

    template <typename T>
    void readWord(const Json& value, const std::string& path, const Words<T>& words, T& field)
    {
        const auto found
            = std::ranges::find_if(words, [&](const auto& word) { return value.is_string() && value == word.first; });
        if (found != words.end()) {
            field = found->second;
            return;
        }
        std::vector<std::string> names;
        for (const auto& word : words)
            names.emplace_back(word.first);
        complain(path, fmt::format("expected one of: {}", join(names, ", ")));
    }

    void readTraits(const Json& json, const std::string& path, StackTraits& traits)
    {
        if (!json.is_object())
            return complain(path, "traits are not an object");
        for (const auto& [name, value] : json.items()) {
            if (const auto* flag = named(kFlags, name)) {
                if (value.is_boolean())
                    traits.*(flag->field) = value.get<bool>();
                else
                    complain(path + "." + name, name + " is not true or false");
            } else if (const auto* number = named(kNumbers, name)) {
                if (value.is_number())
                    traits.*(number->field) = value.get<double>();
                else
                    complain(path + "." + name, name + " is not a number");
            } else if (name == "attention")
                readWord(value, path + ".attention", attentionKernelWords(), traits.attention);
            else if (name == "loss")
                readWord(value, path + ".loss", lossKernelWords(), traits.lossKernels);
            else if (name == "zero_stage" && value.is_number_integer())
                traits.zeroStage = value.get<int>();
            else if (name == "recompute" && value.is_string() && recomputationOf(value.get<std::string>()))
                traits.recompute = value.get<std::string>();
            else
                complain(path + "." + name, fmt::format("\"{}\" is not a trait, or has the wrong type", name));
        }
    }
};

} // namespace

double stragglerDelay(const StackConstants& constants, double hosts)
{
    return constants.stragglerSlowdown * (1.0 - std::pow(1.0 - constants.stragglerShare, hosts));
}

Result<Calibration> Calibration::load(const std::filesystem::path& path)
{
    auto text = readFile(path);
    if (!text)
        return text.error();
    return parse(*text, path.string());
}

Result<Calibration> Calibration::parse(std::string_view text, const std::string& file)
{
    const Json json = Json::parse(text, nullptr, false);
    Reader reader{file};
    if (!json.is_object() || !json.contains("classes") || !json["classes"].is_object()) {
        reader.complain("", "the file is not a calibration: it is not JSON, or has no classes");
        return reader.problems;
    }
    Calibration calibration;
    for (const auto& [name, constants] : json["classes"].items())
        reader.readConstants(constants, "classes." + name, calibration.m_classes[name]);
    for (const char* name : {"gpu", "tpu", "cpu"})
        calibration.m_classes.try_emplace(name);
    const Json& stacks = json.contains("stacks") ? json["stacks"] : Json::object();
    for (const auto& [name, stack] : stacks.items()) {
        const std::string path = "stacks." + name;
        Stack& into = calibration.m_stacks[name];
        for (const auto& [key, pattern] : {std::pair{"file", &into.file}, std::pair{"software", &into.software}}) {
            if (!stack.contains(key))
                continue;
            if (stack[key].is_string() && Pattern::isValid(stack[key].get<std::string>()))
                *pattern = stack[key].get<std::string>();
            else
                reader.complain(path + "." + key, fmt::format("{} is not a regular expression", key));
        }
        if (stack.contains("traits"))
            reader.readTraits(stack["traits"], path + ".traits", into.traits);
        for (const auto& [chipClass, constants] : calibration.m_classes) {
            into.byClass[chipClass] = constants;
            if (stack.contains("constants"))
                reader.readConstants(stack["constants"], path + ".constants", into.byClass[chipClass]);
        }
        const Json chips = stack.contains("chips") ? stack["chips"] : Json::object();
        for (const auto& [chip, entry] : chips.items()) {
            StackChip& of = into.byChip[chip];
            of.constants = into.byClass[chip.starts_with("tpu") ? "tpu" : "gpu"];
            if (entry.contains("constants"))
                reader.readConstants(entry["constants"], path + ".chips." + chip, of.constants);
            if (entry.contains("fitted_on") && entry["fitted_on"].is_array()) {
                for (const Json& id : entry["fitted_on"]) {
                    if (id.is_string())
                        of.fittedOn.push_back(id.get<std::string>());
                    else
                        reader.complain(path + ".chips." + chip + ".fitted_on", "an id is not text");
                }
            }
            calibration.m_fittedIds.insert(calibration.m_fittedIds.end(), of.fittedOn.begin(), of.fittedOn.end());
        }
    }
    const Json usual = json.contains("usual_stacks") ? json["usual_stacks"] : Json::object();
    for (const auto& [chipClass, stack] : usual.items()) {
        if (stack.is_string() && calibration.m_stacks.contains(stack.get<std::string>()))
            calibration.m_usual[chipClass] = stack.get<std::string>();
        else
            reader.complain("usual_stacks." + chipClass, "it is not one of the stacks");
    }
    const Json words = json.contains("stack_words") ? json["stack_words"] : Json::object();
    for (const auto& [word, named] : words.items()) {
        const Json byGeneration = named.is_object() ? named : Json::object({{"", named}});
        for (const auto& [generation, stack] : byGeneration.items()) {
            if (stack.is_string() && (stack == "" || calibration.m_stacks.contains(stack.get<std::string>())))
                calibration.m_words[word][generation] = stack.get<std::string>();
            else
                reader.complain("stack_words." + word, "it is not one of the stacks");
        }
        if (!byGeneration.contains(""))
            reader.complain("stack_words." + word, "it names no stack for chips of other generations (\"\")");
    }
    std::sort(calibration.m_fittedIds.begin(), calibration.m_fittedIds.end());
    if (!reader.problems.empty())
        return reader.problems;
    return calibration;
}

std::string_view Calibration::usualStack(const Chip& chip) const
{
    const auto found = m_usual.find(chipClassName(chip.chipClass));
    return found == m_usual.end() ? std::string_view{} : found->second;
}

std::optional<std::string_view> Calibration::stackNamed(std::string_view word) const
{
    if (const auto found = m_words.find(word); found != m_words.end())
        return found->second.at("");
    const auto itself = m_stacks.find(word);
    return itself == m_stacks.end() ? std::nullopt : std::optional<std::string_view>(itself->first);
}

std::string_view Calibration::stackFor(std::string_view word, const Chip& chip) const
{
    if (const auto found = m_words.find(word); found != m_words.end()) {
        const auto ofGeneration = found->second.find(chip.kernels.generation);
        return ofGeneration == found->second.end() ? found->second.at("") : ofGeneration->second;
    }
    return word.empty() ? usualStack(chip) : stackNamed(word).value_or(std::string_view());
}

const StackConstants& Calibration::constants(std::string_view stack, const Chip& chip) const
{
    const char* chipClass = chipClassName(chip.chipClass);
    const auto found = m_stacks.find(stack);
    if (found == m_stacks.end())
        return m_classes.find(chipClass)->second;
    const auto own = found->second.byChip.find(chip.key);
    return own != found->second.byChip.end() ? own->second.constants : found->second.byClass.find(chipClass)->second;
}

const StackTraits& Calibration::traits(std::string_view stack) const
{
    static const StackTraits kPlain;
    const auto found = m_stacks.find(stack);
    return found == m_stacks.end() ? kPlain : found->second.traits;
}

std::string Calibration::stackOf(const std::string& file, const std::string& software) const
{
    for (const auto& [name, stack] : m_stacks) {
        if ((!stack.file.empty() || !stack.software.empty()) && occurs(stack.file, file) && occurs(stack.software, software))
            return name;
    }
    return {};
}

const Result<Calibration>& defaultCalibration()
{
    static const Result<Calibration> kDefault = [] {
        const auto path = findResource("hardware/calibration.json");
        return path ? Calibration::load(*path) : Result<Calibration>(path.error());
    }();
    return kDefault;
}

} // namespace meshwright::sim
