// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/step_bounds.h"

#include "core/support/checked.h"
#include "sim/collective/network_cost.h"
#include "sim/search/transformer_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwright::sim {

namespace {

constexpr std::array<std::int64_t, 3> kGathered{1 << 16, 1 << 20, 1 << 26}; ///< bytes: what a device has afterwards

/// What collectives take in finer pieces, and how much can be computed meanwhile, of what it was.
struct Cut {
    MicrobatchFloor::Collectives moved = {};
    double computed = 0.0;

    /// What computing waits for at least.
    double exposed(const MicrobatchFloor& floor) const
    {
        double least = std::numeric_limits<double>::infinity();
        double shorter = 0.0;
        for (const auto part : {&MicrobatchFloor::Collectives::tensor, &MicrobatchFloor::Collectives::context,
                 &MicrobatchFloor::Collectives::states, &MicrobatchFloor::Collectives::others}) {
            const double all = floor.collectives.*part;
            if (all <= 0.0)
                continue;
            least = std::min(least, moved.*part);
            shorter += std::max(computed - moved.*part, 0.0) * all;
        }
        return shorter > 0.0       ? std::max(computed * floor.exposed - shorter, 0.0)
            : std::isfinite(least) ? least * floor.exposed
                                   : 0.0;
    }
};

/// A pipeline without chunks, if it has them, each of whose stages has as many layers; where there is none, the same.
std::int32_t plainChunks(const Candidate& candidate, std::int64_t layers)
{
    return layers % (std::int64_t{candidate.pp} * candidate.chunks) == 0 ? 1 : candidate.chunks;
}

} // namespace

double microbatchesOf(const Candidate& candidate, std::int64_t globalBatch)
{
    return asDouble(globalBatch) / candidate.dp / candidate.microbatch;
}

double Pieces::shareOf(const Pieces& finer) const
{
    const bool isCutFurther = finer.stages == stages && finer.chunks == chunks && finer.tp % tp == 0 && finer.cp % cp == 0
        && microbatch % finer.microbatch == 0 && finer.ep == ep && (finer.zero == zero || (tp == 1 && cp == 1 && zero == 3));
    const bool isSame = (recompute == 0 || recompute == finer.recompute) && (lossChunks == 1 || lossChunks == finer.lossChunks)
        && (tp == 1 || sequenceParallel || !finer.sequenceParallel) && (cp == 1 || ulysses == finer.ulysses);
    if (!isCutFurther || !isSame)
        return 0.0;
    return asDouble(finer.microbatch) / microbatch * tp / finer.tp * cp / finer.cp;
}

StepBounds::StepBounds(const TransformerSpace& space)
    : m_space(space)
{
    for (const Candidate& candidate : space.candidates())
        m_largestMicrobatch = std::max(m_largestMicrobatch, candidate.microbatch);
}

Pieces StepBounds::piecesOf(const Candidate& c) const
{
    return {c.pp, c.chunks, c.tp, c.cp, c.ep, c.microbatch, c.recompute, m_space.lossChunks(c), c.sequenceParallel, c.ulysses,
        static_cast<std::uint8_t>(c.zero == 1 ? 0 : c.zero)};
}

std::vector<Pieces> StepBounds::piecesFor(const Candidate& candidate) const
{
    std::vector<Pieces> all;
    const auto add = [&](std::int32_t stages, std::int32_t chunks, bool waits) {
        for (const std::uint8_t recompute : {std::uint8_t{0}, candidate.recompute}) {
            Pieces own = piecesOf(candidate);
            own.stages = stages;
            own.chunks = chunks;
            own.recompute = recompute;
            own.waits = waits;
            Pieces inHeads = own;
            inHeads.lossChunks = 1;
            Pieces inParts = inHeads;
            inHeads.cp = 1;
            inHeads.ulysses = false;
            inParts.tp = 1;
            inParts.sequenceParallel = false;
            Pieces inHalves = inHeads;
            inHalves.tp = std::min(candidate.tp, 2);
            Pieces whole = inHeads;
            whole.tp = 1;
            whole.sequenceParallel = false;
            Pieces largest = whole;
            largest.microbatch = m_largestMicrobatch;
            for (Pieces one : {largest, whole, inHalves, inParts, inHeads, own}) {
                const bool movesNothing = one.tp == 1 && one.cp == 1;
                one.zero = movesNothing ? 3 : one.zero;
                if (!waits || !movesNothing || one == own)
                    all.push_back(one);
            }
        }
    };
    const std::int32_t chunks = plainChunks(candidate, m_space.work().model.layers);
    add(1, 1, false);
    if (candidate.pp > 1 && chunks == 1)
        add(candidate.pp, 1, false);
    if (candidate.pp == 1)
        add(1, 1, true);
    else
        add(candidate.pp, chunks, candidate.chunks == 1);
    return all;
}

Candidate StepBounds::candidateOf(const Pieces& pieces) const
{
    Candidate candidate;
    candidate.pp = pieces.stages;
    candidate.chunks = pieces.chunks;
    candidate.schedule = pieces.chunks > 1 ? PipelineOrder::Interleaved : PipelineOrder::OneForwardOneBackward;
    candidate.tp = pieces.tp;
    candidate.cp = pieces.cp;
    candidate.ep = pieces.ep;
    candidate.microbatch = pieces.microbatch;
    candidate.recompute = pieces.recompute;
    candidate.sequenceParallel = pieces.sequenceParallel;
    candidate.ulysses = pieces.ulysses;
    candidate.dp = static_cast<std::int32_t>(m_space.machine().cluster.devices / pieces.tp / pieces.cp / pieces.stages);
    candidate.zero = candidate.dp * candidate.cp > 1 ? pieces.zero : 0;
    candidate.fsdp = candidate.zero == 3 ? candidate.dp : 1;
    return candidate;
}

FoundPlan StepBounds::layoutOf(const Pieces& pieces) const
{
    FoundPlan plan = sim::layoutOf(m_space, candidateOf(pieces));
    plan.lossChunks = pieces.lossChunks;
    return plan;
}

std::optional<std::int64_t> StepBounds::fewestMicrobatches(const Pieces& pieces) const
{
    if (!pieces.waits)
        return std::nullopt;
    return pieces.zero == 0 ? 1 : static_cast<std::int64_t>(microbatchesOf(candidateOf(pieces), m_space.work().globalBatch));
}

double StepBounds::leastSeconds(const Candidate& candidate, const Pieces& pieces, const StepFloor& floor) const
{
    Pieces own = piecesOf(candidate);
    own.chunks = pieces.stages > 1 ? plainChunks(candidate, m_space.work().model.layers) : 1;
    own.stages = pieces.stages > 1 ? own.stages : 1;
    const double share = pieces.shareOf(own);
    if (share <= 0.0)
        return 0.0;
    const double tokens = asDouble(own.microbatch) / pieces.microbatch;
    const double tensor = asDouble(pieces.tp) / own.tp;
    const double context = asDouble(pieces.cp) / own.cp;
    const auto part = [](std::int32_t ranks) { return asDouble(ranks - 1) / ranks; };
    const auto slower = [](const Links::Seconds& before, const Links::Seconds& now, double most) {
        for (std::size_t i = 0; i < before.size(); ++i)
            most = before[i] > 0.0 ? std::min(most, now[i] / before[i]) : 0.0;
        return most;
    };
    // The next task hides what one waits for, but where the same tasks were simulated.
    const bool isTimed = candidate.pp == 1 || (pieces.stages > 1 && candidate.chunks == 1);
    const auto secondsOf = [&](const MicrobatchFloor& microbatch) {
        if (own.zero != pieces.zero || !isTimed || microbatch.exposed <= 0.0)
            return share * microbatch.computing;
        const Links& known = linksOf(candidateOf(pieces));
        const Links& here = linksOf(candidate);
        const bool isSameInHeads = pieces.tp == 1 || pieces.sequenceParallel == own.sequenceParallel;
        Cut cut;
        cut.computed = share;
        if (isSameInHeads && pieces.tp > 1)
            cut.moved.tensor = tokens * context * slower(known.tensor, here.tensor, part(own.tp) / part(pieces.tp));
        if (isSameInHeads && pieces.cp > 1)
            cut.moved.context = tokens * tensor * slower(known.context, here.context, part(own.cp) / part(pieces.cp));
        cut.moved.states = tensor * slower(known.states, here.states, 1.0);
        return share * microbatch.computing + cut.exposed(microbatch);
    };
    const double microbatches = microbatchesOf(candidate, m_space.work().globalBatch);
    MicrobatchFloor more = floor.more;
    if (candidate.zero < 3) // gradients that are split are summed up sooner
        more.computing = std::min(more.computing, floor.alone.computing);
    if (pieces.stages > 1)
        return microbatches * secondsOf(more);
    if (candidate.pp > 1)
        return leastSeconds(candidate, secondsOf(more));
    const double update = pieces.zero == 3 ? floor.updateSeconds : 0.0; // which states that are whole here may be, too
    return (microbatches > 1.0 ? microbatches * secondsOf(more) : secondsOf(floor.alone)) + update;
}

double StepBounds::leastSeconds(const Candidate& candidate, double microbatchSeconds) const
{
    const double microbatches = microbatchesOf(candidate, m_space.work().globalBatch);
    const double stages = candidate.pp;
    const double chunks = candidate.chunks;
    if (candidate.pp == 1 || splitsBackward(candidate.schedule))
        return microbatches * microbatchSeconds / stages;
    const double left = 1.0 - 1.0 / (microbatches * chunks);
    if (plainChunks(candidate, m_space.work().model.layers) == 1)
        return microbatchSeconds / (chunks * (1.0 - std::pow(left, stages)));
    return microbatchSeconds / (1.0 / microbatches + chunks * (1.0 - std::pow(left, stages - 1.0)));
}

const StepBounds::Links& StepBounds::linksOf(const Candidate& candidate) const
{
    const std::int32_t fsdp = candidate.zero >= 3 ? candidate.fsdp : 1;
    const auto [links, isNew] = m_links.try_emplace(
        {candidate.zero >= 3 ? 1 : 0, candidate.pp, candidate.dp, fsdp, candidate.ep, candidate.cp, candidate.tp});
    const auto& machine = m_space.machine().links;
    const auto mesh = isNew && machine ? Mesh::create(meshOf(candidate)) : Result<Mesh>(Problem{});
    const auto placement = mesh ? placeMesh(*mesh, *machine) : Result<MeshPlacement>(Problem{});
    if (!placement)
        return links->second;
    const auto gathered = [&](std::initializer_list<std::string_view> names) {
        AxisRefs axes;
        for (std::size_t axis = 0; axis < mesh->axes().size(); ++axis) {
            if (mesh->axes()[axis].size > 1 && std::ranges::find(names, mesh->axes()[axis].name) != names.end())
                axes.push_back(wholeAxis(*mesh, axis));
        }
        Links::Seconds seconds = {};
        for (std::size_t i = 0; i < seconds.size() && !axes.empty(); ++i)
            seconds[i] = estimateOn(*placement, OpKind::AllGather, axes, kGathered[i]).seconds;
        return seconds;
    };
    links->second
        = {gathered({"tensor"}), gathered({"context"}), candidate.zero >= 3 ? gathered({"fsdp", "context"}) : Links::Seconds{}};
    return links->second;
}

} // namespace meshwright::sim
