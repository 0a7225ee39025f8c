// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/plan_reasons.h"

#include "core/study/pipeline_choice.h"
#include "core/support/checked.h"
#include "core/support/text.h"
#include "sim/collective/placement.h"
#include "sim/search/search_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace meshwright::sim {

namespace {

std::int64_t dataDegreeOf(const Candidate& c)
{
    return c.zero >= 3 && c.fsdp > 1 ? c.fsdp : c.dp;
}

/// The axes over which weights, states or gradients are exchanged.
std::string dataAxis(const Candidate& c)
{
    std::string name = c.zero >= 3 && c.fsdp > 1 ? "fsdp" : "data";
    if (dataDegreeOf(c) == 1)
        return c.cp > 1 ? "context" : name;
    if (c.ep > 1)
        name += " x expert";
    return c.cp > 1 ? name + " x context" : name;
}

std::int64_t dataDegree(const Candidate& c)
{
    return dataDegreeOf(c) * c.cp;
}

const char* partOf(const Chip& chip)
{
    return chip.chipClass == ChipClass::Tpu ? "slice" : "host";
}

/// Over how many hosts or slices the groups of mesh axes go.
class AxisPlaces {
public:
    AxisPlaces(const Candidate& candidate, const Cluster& cluster, const SearchMachine& machine)
        : m_candidate(candidate)
        , m_cluster(cluster)
        , m_machine(machine)
    {
        const auto mesh = machine.links ? Mesh::create(meshOf(candidate)) : Result<Mesh>(Problem{});
        if (auto placed = mesh ? placeMesh(*mesh, *machine.links) : Result<MeshPlacement>(Problem{}))
            m_placement = *std::move(placed);
    }

    /// Of the axes of a name such as "data x expert".
    std::int64_t parts(const std::string& axes) const { return m_placement ? placedParts(axes) : estimatedParts(axes); }

    std::string sentence(const std::string& axes, std::int64_t size) const
    {
        const std::int64_t count = parts(axes);
        return count <= 1 ? fmt::format("{}={} stays inside a {}", axes, size, partOf(m_machine.chip))
                          : fmt::format("{}={} spans {} {}s", axes, size, count, partOf(m_machine.chip));
    }

private:
    std::int64_t placedParts(const std::string& axes) const
    {
        const std::vector<PhysicalAxis>& physical = m_placement->topology().axes();
        std::int64_t count = 1;
        for (std::size_t axis = 0; axis < m_placement->mesh().axes().size(); ++axis) {
            if (!names(axes, m_placement->mesh().axes()[axis].name))
                continue;
            for (const AxisPart& part : m_placement->parts(axis)) {
                if (&physical[part.physicalAxis] == m_placement->topology().network())
                    count *= part.size;
            }
        }
        return count;
    }

    std::int64_t estimatedParts(const std::string& axes) const
    {
        std::int64_t size = 1;
        std::int64_t stride = 1;
        const std::vector<MeshAxis> mesh = meshOf(m_candidate);
        for (std::size_t i = mesh.size(); i-- > 0;) {
            if (names(axes, mesh[i].name))
                size *= mesh[i].size;
            else if (size == 1)
                stride *= mesh[i].size;
        }
        return static_cast<std::int64_t>(std::ceil(m_cluster.group(size, stride).outer));
    }

    static bool names(const std::string& axes, std::string_view axis)
    {
        const std::string all = " " + axes + " ";
        return all.find(fmt::format(" {} ", axis)) != std::string::npos;
    }

    const Candidate& m_candidate;
    const Cluster& m_cluster;
    const SearchMachine& m_machine;
    std::optional<MeshPlacement> m_placement; ///< nothing: the links are not known
};

} // namespace

std::string meshText(const std::vector<MeshAxis>& mesh)
{
    std::vector<std::string> parts;
    for (const MeshAxis& axis : mesh)
        parts.push_back(fmt::format("{}={}", axis.name, axis.size));
    return join(parts, " ");
}

std::vector<NamedShare> timeShares(const StepEstimate& s, const Candidate& c)
{
    using enum StepPart::Kind;
    const char* data = c.zero >= 3 ? "all-gather" : c.zero == 0 ? "all-reduce" : "reduce-scatter";
    const OpKind dataOp = c.zero >= 3 ? OpKind::AllGather : c.zero == 0 ? OpKind::AllReduce : OpKind::ReduceScatter;
    const std::string axes = dataAxis(c);
    return {{"compute", s.products + s.attention, {Compute}}, {"memory bandwidth", s.elementwise, {Memory}},
        {"kernel launches", s.launch, {Launch}},
        {c.sequenceParallel ? "all-gather over tensor" : "all-reduce over tensor", s.tensor,
            {Collective, c.sequenceParallel ? OpKind::AllGather : OpKind::AllReduce, "tensor"}},
        {c.ulysses ? "all-to-all over context" : "ring over context", s.context,
            {Collective, c.ulysses ? OpKind::AllToAll : OpKind::CollectivePermute, "context"}},
        {"all-to-all over expert", s.expert, {Collective, OpKind::AllToAll, "expert"}},
        {"sends over pipeline", s.send, {Collective, OpKind::Send, "pipeline"}},
        {fmt::format("{} over {}", data, axes), s.data, {Collective, dataOp, axes}}, {"pipeline bubble", s.bubble, {Bubble}},
        {"optimizer", s.optimizer}, {"host", s.overhead}};
}

std::vector<NamedShare> memoryShares(const StageMemory& m)
{
    return {{"weights", m.weights}, {"gradients", m.gradients}, {"optimizer", m.optimizer}, {"activations", m.activations},
        {"gathered weights", m.gathered}, {"temporaries", m.working}, {"logits", m.logits}, {"collective buffers", m.buffers},
        {"reserve", m.reserve}};
}

std::string largestShare(const std::vector<NamedShare>& shares)
{
    const auto largest = std::max_element(
        shares.begin(), shares.end(), [](const NamedShare& a, const NamedShare& b) { return a.amount < b.amount; });
    return largest == shares.end() ? std::string{} : largest->name;
}

std::string largestShares(const std::vector<NamedShare>& shares)
{
    double all = 0.0;
    for (const NamedShare& share : shares)
        all += share.amount;
    std::vector<NamedShare> sorted = shares;
    std::stable_sort(sorted.begin(), sorted.end(), [](const NamedShare& a, const NamedShare& b) { return a.amount > b.amount; });
    std::vector<std::string> parts;
    for (const NamedShare& share : sorted) {
        if (parts.size() < 4 && share.amount > 0.02 * all)
            parts.push_back(fmt::format("{} {:.0f} %", share.name, 100.0 * share.amount / all));
    }
    return join(parts, ", ");
}

std::vector<std::string> placeSentences(const Candidate& c, const Cluster& cluster, const SearchMachine& machine)
{
    const AxisPlaces places(c, cluster, machine);
    std::vector<std::string> sentences;
    const auto add = [&](const std::string& axes, std::int64_t size) {
        if (size > 1)
            sentences.push_back(places.sentence(axes, size));
    };
    add("tensor", c.tp);
    add("context", c.cp);
    add("expert", c.ep);
    add(dataAxis(c), dataDegree(c));
    add("pipeline", c.pp);
    return sentences;
}

std::string causeOf(
    const StepPart& part, const Candidate& c, const Candidate& b, const TransformerSpace& space, const Cluster& cluster)
{
    const SearchMachine& machine = space.machine();
    const TransformerConfig& model = space.work().model;
    const auto waitsFor = [&](std::string_view axis) {
        return part.kind == StepPart::Kind::Collective && part.axes.find(axis) != std::string::npos;
    };
    if (part.kind == StepPart::Kind::Compute || part.kind == StepPart::Kind::Launch) {
        if (c.recompute != b.recompute && space.recomputeName(c) != std::string_view("none"))
            return fmt::format("recomputation ({})", space.recomputeName(c));
        if (c.pp != b.pp && c.pp > 1 && model.layers % (std::int64_t{c.pp} * c.chunks) != 0)
            return c.chunks > 1
                ? fmt::format("{} layers are not divisible by {} stages x {} chunks", model.layers, c.pp, c.chunks)
                : fmt::format("{} layers are not divisible by {} stages", model.layers, c.pp);
        if (c.tp > b.tp)
            return fmt::format("tensor={} cuts products into narrower ones", c.tp);
        if (c.cp > b.cp)
            return fmt::format("context={} leaves shorter sequences to multiply", c.cp);
        if (c.microbatch < b.microbatch)
            return fmt::format("microbatches of {} in place of {}", c.microbatch, b.microbatch);
        return c.zero < 3 && b.zero >= 3 ? "each rank updates more parameters" : std::string{};
    }
    if (part.kind == StepPart::Kind::Bubble && c.pp > 1)
        return fmt::format("{} stages for {} microbatches", c.pp, space.work().globalBatch / c.dp / c.microbatch);
    const AxisPlaces places(c, cluster, machine);
    if (waitsFor("tensor"))
        return places.parts("tensor") > 1 ? fmt::format("tensor={} crosses the {}", c.tp, partOf(machine.chip))
                                          : fmt::format("tensor={} exchanges activations in every layer", c.tp);
    if (waitsFor("pipeline"))
        return fmt::format("{} stages pass activations on", c.pp);
    if (waitsFor("fsdp") || waitsFor("data"))
        return places.sentence(dataAxis(c), dataDegree(c));
    if (waitsFor("context"))
        return places.sentence("context", c.cp);
    return waitsFor("expert") ? places.sentence("expert", c.ep) : std::string{};
}

namespace {

/// What of the model or of the batch an axis of this size cannot split; empty when it can.
std::string indivisible(const std::string& axis, std::int64_t size, const SearchWork& work)
{
    const TransformerConfig& model = work.model;
    const auto whole = [&](std::int64_t all, const char* what) {
        return all % size == 0 ? std::string() : fmt::format("{}={}: {} {} are not divisible by {}", axis, size, all, what, size);
    };
    if (axis == "tensor") {
        const std::string heads = whole(model.heads, "heads");
        return heads.empty() ? whole(model.experts > 0 ? model.expertFfn : model.ffn, "columns of the feed-forward block")
                             : heads;
    }
    if (axis == "expert" && model.experts == 0 && size > 1)
        return fmt::format("expert={}: the model has no experts", size);
    if (axis == "expert" && model.experts > 0)
        return whole(model.experts, "experts");
    if (axis == "pipeline" && size > model.layers)
        return fmt::format("pipeline={}: the model has {} layers", size, model.layers);
    if (axis == "context" && size > 1 && work.sequence % (2 * size) != 0)
        return fmt::format("context={}: a sequence of {} tokens is not divisible by 2 x {}", size, work.sequence, size);
    return axis == "data" || axis == "fsdp" || axis == "microbatch" ? whole(work.globalBatch, "sequences") : std::string();
}

} // namespace

std::vector<std::string> whyNoLayout(const SearchWork& work, const SearchMachine& machine, const std::vector<FixedChoice>& fixed)
{
    static const std::vector<std::string> kAxes = {"data", "fsdp", "expert", "context", "tensor", "pipeline"};
    const std::int64_t devices = machine.cluster.devices;
    std::vector<std::string> reasons;
    std::vector<std::string> mesh;
    std::optional<std::int64_t> product = 1;
    for (const FixedChoice& choice : fixed) {
        const auto size = parseInteger(choice.value);
        if (choice.name == "microbatch" && size && work.globalBatch % *size != 0)
            reasons.push_back(indivisible(choice.name, *size, work));
        if (!size || std::find(kAxes.begin(), kAxes.end(), choice.name) == kAxes.end())
            continue;
        if (*size > devices)
            reasons.push_back(fmt::format("{}={} is more than the {} devices of {}", choice.name, *size, devices, machine.name));
        else if (devices % *size != 0)
            reasons.push_back(
                fmt::format("{}={} does not divide the {} devices of {}", choice.name, *size, devices, machine.name));
        if (std::string reason = indivisible(choice.name, *size, work); !reason.empty())
            reasons.push_back(std::move(reason));
        mesh.push_back(choice.name + "=" + choice.value);
        product = product ? checkedMultiply(*product, *size) : std::nullopt;
    }
    if (reasons.empty() && mesh.size() > 1 && (!product || devices % *product != 0))
        reasons.push_back(product ? fmt::format("{} take {} devices, which do not divide the {} of {}", join(mesh, " "), *product,
                              devices, machine.name)
                                  : fmt::format("{} take more devices than can be counted", join(mesh, " ")));
    std::int64_t ranks = devices; // of data, where all else is fixed
    const bool leavesData = std::ranges::all_of(std::array{"tensor", "pipeline", "context"}, [&](const char* axis) {
        const auto given = std::ranges::find(fixed, axis, &FixedChoice::name);
        ranks /= given == fixed.end() ? 1 : std::max<std::int64_t>(1, parseInteger(given->value).value_or(1));
        return given != fixed.end();
    });
    if (reasons.empty() && leavesData && ranks > 0 && work.globalBatch % ranks != 0)
        reasons.push_back(fmt::format(
            "{} sequences are not divisible by the {} data ranks that the fixed axes leave", work.globalBatch, ranks));
    if (fixed.empty())
        reasons.push_back(fmt::format(
            "no degrees that {} sequences of {} tokens, {} heads and {} layers can be split by, in at most {} "
            "microbatches, make the {} devices of {}",
            work.globalBatch, work.sequence, work.model.heads, work.model.layers, kMostStepMicrobatches, devices, machine.name));
    return reasons;
}

} // namespace meshwright::sim
