// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/transformer_search.h"

#include "core/models/array_name.h"
#include "core/models/transformer.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::sim {

namespace {

std::string listed(const std::vector<std::string>& axes)
{
    if (axes.empty())
        return "None";
    if (axes.size() == 1)
        return fmt::format("'{}'", axes.front());
    std::vector<std::string> quoted;
    for (const std::string& axis : axes)
        quoted.push_back(fmt::format("'{}'", axis));
    return fmt::format("({})", join(quoted, ", "));
}

/// What ranks of tensors have a part of.
bool isOfTensor(DimRole role)
{
    using enum DimRole;
    return role == Heads || role == KeyValueHeads || role == Vocabulary || role == Ffn || role == ExpertFfn || role == SharedFfn;
}

/// Axes of a mesh by what a candidate splits with them.
class PlanAxes {
public:
    explicit PlanAxes(const Candidate& candidate)
        : m_mesh(meshOf(candidate))
    {
        using enum AxisRole;
        batch = named({Data, Fsdp, Expert});
        if (candidate.zero >= 3)
            shards = named({Fsdp, Expert, Context});
        if (candidate.zero >= 1)
            states = named({Data, Expert, Context});
        expert = named({Expert});
        context = named({Context});
        tensor = named({Tensor});
        senders = context;
        if (candidate.sequenceParallel)
            senders.insert(senders.end(), tensor.begin(), tensor.end());
    }

    /// The spec of a weight whose rows are split over `over` besides what tensor and expert parallelism split: by what its dimensions mean.
    std::string ofWeight(const ModelArray& weight, const std::vector<std::string>& over) const
    {
        std::vector<std::string> rows = over;
        if (dimOf(DimRole::Experts, weight.meaning))
            std::erase(rows, axisRoleName(AxisRole::Expert));
        std::vector<std::string> dims;
        for (std::size_t dim = 0; dim < weight.shape.size(); ++dim) {
            const DimRole role = weight.meaning[dim].role;
            const bool isRank
                = (role == DimRole::QueryRank || role == DimRole::KeyValueRank) && !dimOf(DimRole::Hidden, weight.meaning);
            const std::vector<std::string> none;
            dims.push_back(listed(dividing(role == DimRole::Hidden || isRank ? rows
                    : role == DimRole::Experts                               ? expert
                    : isOfTensor(role)                                       ? tensor
                                                                             : none,
                weight.shape[dim])));
        }
        return fmt::format("P({})", join(dims, ", "));
    }

    /// Whether tensor or expert parallelism splits it: then the biases that are added to what a split weight makes are split like that.
    bool splits(const ModelArray& bias) const
    {
        const std::string spec = ofWeight(bias, {});
        return spec.find('\'') != std::string::npos;
    }

    /// The spec of a value between the weights where norms work on parts of the sequence (arXiv:2205.05198, section 4.2.2).
    std::string ofActivation(const ModelArray& value) const
    {
        std::vector<std::string> dims;
        const bool isStream = value.meaning.back().role == DimRole::Hidden;
        for (const DimMeaning& meaning : value.meaning) {
            const DimRole role = meaning.role;
            std::vector<std::string> axes;
            if (role == DimRole::Batch)
                axes = batch;
            else if (role == DimRole::Sequence)
                axes = context;
            else if (isOfTensor(role))
                axes = dividing(tensor, value.shape[dims.size()]);
            if (role == DimRole::Sequence && isStream)
                axes.insert(axes.end(), tensor.begin(), tensor.end());
            dims.push_back(listed(axes));
        }
        return fmt::format("P({})", join(dims, ", "));
    }

    /// The spec of tokens on their way to experts and back: rows by their devices, then experts by theirs, which changes by all-to-alls
    /// (GShard, arXiv:2006.16668, section 3.2). Where ranks of tensors have parts of the sequence each sends its own part: the ranks that share an expert
    /// gather what it takes and scatter the sum of what they make (Megatron-LM's dispatcher by all-to-all).
    std::string ofTokens(const ModelArray& value) const
    {
        const bool isInside = value.meaning.back().role == DimRole::Ffn;
        const std::string parts = listed(isInside ? context : senders);
        if (value.meaning.front().role == DimRole::Batch)
            return fmt::format("P({}, {}, None, None, None)", listed(batch), parts);
        std::vector<std::string> rows = batch;
        std::erase(rows, axisRoleName(AxisRole::Expert));
        const std::string width = isInside ? listed(dividing(tensor, value.shape.back())) : "None";
        return fmt::format("P({}, {}, {}, None, {})", listed(dividing(expert, value.shape.front())), listed(rows), parts, width);
    }

    std::vector<std::string> batch;
    std::vector<std::string> shards; ///< of weights
    std::vector<std::string> states; ///< of the optimizer, with ZeRO-1 and 2
    std::vector<std::string> tensor;
    std::vector<std::string> context;
    std::vector<std::string> senders; ///< of parts of a sequence to experts
    std::vector<std::string> expert;

private:
    /// The axes of these roles that the mesh has.
    std::vector<std::string> named(std::initializer_list<AxisRole> roles) const
    {
        std::vector<std::string> names;
        for (const AxisRole role : roles) {
            if (std::ranges::find(m_mesh, axisRoleName(role), &MeshAxis::name) != m_mesh.end())
                names.emplace_back(axisRoleName(role));
        }
        return names;
    }

    /// The first of these axes, as many as divide a dimension.
    std::vector<std::string> dividing(std::vector<std::string> axes, std::int64_t size) const
    {
        std::int64_t parts = 1;
        for (std::size_t i = 0; i < axes.size(); ++i) {
            parts *= std::ranges::find(m_mesh, axes[i], &MeshAxis::name)->size;
            if (size % parts != 0)
                axes.resize(i);
        }
        return axes;
    }

    std::vector<MeshAxis> m_mesh;
};

} // namespace

std::vector<std::pair<std::string, std::string>> specsOf(const Candidate& candidate, const TransformerConfig& model)
{
    return specsOf(candidate, TransformerModel{.config = model, .sequence = 1});
}

std::vector<std::pair<std::string, std::string>> specsOf(const Candidate& candidate, const TransformerModel& model)
{
    const PlanAxes axes(candidate);
    const std::string tokens = fmt::format("P({}, {})", listed(axes.batch), listed(axes.context));
    std::vector<std::pair<std::string, std::string>> specs = {{"x", tokens}, {"y", tokens}};
    const auto addWeights = [&](ArrayName::Family family, const std::vector<std::string>& over) {
        for (const ModelArray& array : transformerParameters(model)) {
            const bool isSmall = array.name.ends_with("router.w") || array.name == "positions.w";
            if (array.kind == ModelArray::Kind::Weight && !isSmall)
                specs.emplace_back(ArrayName{family, array.name}.text(), axes.ofWeight(array, over));
        }
    };
    addWeights(ArrayName::Family::Own, axes.shards);
    for (const ModelArray& array : transformerParameters(model)) {
        if (array.kind == ModelArray::Kind::Bias && axes.splits(array))
            specs.emplace_back(array.name, axes.ofWeight(array, {}));
    }
    for (const ModelArray& value : transformerActivations(model, 1)) {
        const bool isGathered = value.name.ends_with(".input");
        const bool isWhole = (value.name.ends_with(".mixed") && value.shape[2] % candidate.tp != 0)
            || (value.name == "act.logits" && value.shape.back() % candidate.tp != 0);
        if (dimOf(DimRole::Capacity, value.meaning)) {
            if (!axes.batch.empty() || !axes.senders.empty())
                specs.emplace_back(value.name, axes.ofTokens(value));
        } else if (candidate.sequenceParallel && !axes.tensor.empty() && !isGathered && !isWhole) {
            specs.emplace_back(value.name, axes.ofActivation(value));
        }
    }
    if (candidate.zero == 2)
        addWeights(ArrayName::Family::Gradient, axes.states);
    if (candidate.zero == 1 || candidate.zero == 2) {
        addWeights(ArrayName::Family::Momentum, axes.states);
        addWeights(ArrayName::Family::SecondMoment, axes.states);
    }
    return specs;
}

void giveSpecsOfMoments(StudySharding& sharding, const Optimizer& optimizer)
{
    std::vector<ShardingEntry> entries;
    std::vector<std::pair<std::string, PartitionSpec>> moments; // by their parameters
    for (ShardingEntry& entry : sharding.entries) {
        ArrayName name = arrayNameOf(entry.name);
        if (name.family == ArrayName::Family::Momentum)
            moments.emplace_back(std::move(name.base), std::move(entry.spec));
        else if (!name.isState())
            entries.push_back(std::move(entry));
    }
    for (const ArrayName::Family family : stateFamilies(optimizer)) {
        for (const auto& [parameter, spec] : moments) {
            const std::string state = ArrayName{family, parameter}.text();
            entries.push_back({state, spec, "sharding." + state});
        }
    }
    sharding.entries = std::move(entries);
}

} // namespace meshwright::sim
