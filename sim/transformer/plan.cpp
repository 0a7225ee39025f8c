// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/transformer/plan.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace meshwright::sim {

Result<Done> checkFormat(const Chip& chip, MathFormat format)
{
    const auto own = chip.peakFlopsPerSecond.find(format);
    const auto wide = chip.peakFlopsPerSecond.find(MathFormat::Bf16);
    const bool gains = own != chip.peakFlopsPerSecond.end()
        && (wide == chip.peakFlopsPerSecond.end() || own->second.value > wide->second.value);
    if (bytesPerElement(format) >= 2.0 || gains)
        return Done{};
    return Problem{"MW1763", fmt::format("{} has no {} products in hardware", chip.name, mathFormatName(format)),
        "choose bf16, or a chip that has them: h100, h200, b200, mi300x, v7x"};
}

Result<Done> checkPlan(const TrainingPlan& plan)
{
    Problems problems;
    const ParallelLayout& layout = plan.layout;
    const TransformerConfig& model = plan.model;
    const std::array<std::pair<const char*, std::int64_t>, 13> sizes{{{"layers", model.layers}, {"hidden", model.hidden},
        {"heads", model.heads}, {"key-value heads", model.keyValueHeads}, {"head size", model.headDim},
        {"vocabulary", model.vocabulary}, {"sequence", plan.work.sequence}, {"batch", plan.work.globalBatch}, {"dp", layout.dp},
        {"tp", layout.tp}, {"pp", layout.pp}, {"cp", layout.cp}, {"ep", layout.ep}}};
    for (const auto& [name, size] : sizes) {
        if (size < 1)
            problems.push_back({"MW1760", fmt::format("{} must be at least 1, got: {}", name, size), "give a size of 1 or more"});
    }
    if (!(plan.work.microbatch > 0.0))
        problems.push_back(
            {"MW1760", fmt::format("the microbatch must be above 0, got: {}", plan.work.microbatch), "give a size of 1 or more"});
    if (layout.virtualStages < 1)
        problems.push_back(
            {"MW1760", fmt::format("virtual stages must be at least 1, got: {}", layout.virtualStages), "give 1 or more"});
    if (!problems.empty())
        return problems;
    if (model.heads % layout.tp != 0)
        problems.push_back({"MW1761", fmt::format("{} heads are not divisible by tp {}", model.heads, layout.tp),
            "choose a tensor-parallel degree that divides the heads"});
    if (model.experts > 0 && model.experts % layout.ep != 0)
        problems.push_back({"MW1761", fmt::format("{} experts are not divisible by ep {}", model.experts, layout.ep),
            "choose an expert-parallel degree that divides the experts"});
    // Embedding and head may stand for a layer each.
    if (layout.pp * layout.virtualStages > model.layers + 2)
        problems.push_back({"MW1762",
            fmt::format("{} stages of {} chunks are more than {} layers", layout.pp, layout.virtualStages, model.layers),
            "choose fewer stages or chunks"});
    if (!problems.empty())
        return problems;
    return Done{};
}

} // namespace meshwright::sim
