// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/transformer/constants.h"

#include "core/support/file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>

namespace meshwright::sim {

namespace {

using Json = nlohmann::json;

struct ConstantName {
    const char* name;
    double StackConstants::*field;
};
constexpr std::array<ConstantName, 22> kConstants{
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

constexpr std::array<std::pair<const char*, AttentionKernel>, 5> kKernels{
    {{"unfused", AttentionKernel::Unfused}, {"fused_softmax", AttentionKernel::FusedSoftmax}, {"flash1", AttentionKernel::Flash1},
        {"flash2", AttentionKernel::Flash2}, {"flash3", AttentionKernel::Flash3}}};

bool isPattern(const std::string& text)
{
    try {
        static_cast<void>(std::regex(text, std::regex::icase));
        return true;
    } catch (const std::regex_error&) {
        return false;
    }
}

bool occurs(const std::string& pattern, const std::string& text)
{
    return pattern.empty() || std::regex_search(text, std::regex(pattern, std::regex::icase));
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
            const auto found = std::find_if(kConstants.begin(), kConstants.end(),
                [&, &key = name](const ConstantName& constant) { return key == constant.name; });
            if (found == kConstants.end())
                complain(path + "." + name, fmt::format("\"{}\" is not a constant", name));
            else if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0.0)
                complain(path + "." + name, fmt::format("{} is not a number of 0 or more", name));
            else
                constants.*(found->field) = value.get<double>();
        }
    }

    void readTraits(const Json& json, const std::string& path, StackTraits& traits)
    {
        if (!json.is_object())
            return complain(path, "traits are not an object");
        for (const auto& [name, value] : json.items()) {
            const auto flag = [&, &key = name, &given = value](bool& to) {
                if (given.is_boolean())
                    to = given.get<bool>();
                else
                    complain(path + "." + key, key + " is not true or false");
            };
            const auto number = [&, &key = name, &given = value](double& to) {
                if (given.is_number())
                    to = given.get<double>();
                else
                    complain(path + "." + key, key + " is not a number");
            };
            if (name == "attention") {
                const auto found = std::find_if(kKernels.begin(), kKernels.end(), [&given = value](const auto& kernel) {
                    return given.is_string() && given.get<std::string>() == kernel.first;
                });
                if (found == kKernels.end())
                    complain(path + ".attention", "attention must be unfused, fused_softmax, flash1, flash2 or flash3");
                else
                    traits.attention = found->second;
            } else if (name == "fused_norms")
                flag(traits.fusedNorms);
            else if (name == "fused_rotary")
                flag(traits.fusedRotary);
            else if (name == "fused_elementwise")
                flag(traits.fusedElementwise);
            else if (name == "compiles_narrow")
                flag(traits.compilesNarrow);
            else if (name == "dropout")
                flag(traits.dropout);
            else if (name == "gradients_once_per_step")
                flag(traits.gradientsOncePerStep);
            else if (name == "sequence_parallel")
                flag(traits.sequenceParallel);
            else if (name == "async_tensor_parallel")
                flag(traits.asyncTensorParallel);
            else if (name == "gathers_context")
                flag(traits.gathersContext);
            else if (name == "gathers_narrow")
                flag(traits.gathersNarrow);
            else if (name == "dispatches_once_a_host")
                flag(traits.dispatchesOnceAHost);
            else if (name == "zero_stage" && value.is_number_integer())
                traits.zeroStage = value.get<int>();
            else if (name == "parallel_logits")
                flag(traits.parallelLogits);
            else if (name == "scatters_boundary")
                flag(traits.scattersBoundary);
            else if (name == "gradient_bytes")
                number(traits.gradientBytes);
            else if (name == "reduced_bytes")
                number(traits.reducedBytes);
            else if (name == "reduces_whole")
                flag(traits.reducesWhole);
            else if (name == "gathers_ahead")
                flag(traits.gathersAhead);
            else if (name == "gathers_singly")
                flag(traits.gathersSingly);
            else if (name == "parallel_block")
                flag(traits.parallelBlock);
            else if (name == "dispatches_by_product")
                flag(traits.dispatchesByProduct);
            else if (name == "adds_gradients")
                flag(traits.addsGradients);
            else if (name == "step_bytes")
                number(traits.stepBytes);
            else if (name == "accumulator_bytes")
                number(traits.accumulatorBytes);
            else if (name == "logit_bytes")
                number(traits.logitBytes);
            else if (name == "weight_bytes")
                number(traits.weightBytes);
            else if (name == "optimizer_state_bytes")
                number(traits.optimizerStateBytes);
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
            if (stack[key].is_string() && isPattern(stack[key].get<std::string>()))
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
    std::sort(calibration.m_fittedIds.begin(), calibration.m_fittedIds.end());
    if (!reader.problems.empty())
        return reader.problems;
    return calibration;
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

} // namespace meshwright::sim
