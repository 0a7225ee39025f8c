// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/function_proof.h"

#include "core/program/transform.h"
#include "core/prove/identity.h"
#include "core/prove/known_numbers.h"
#include "core/prove/lemmas.h"
#include "core/prove/obstacle.h"
#include "core/prove/pipeline_proof.h"
#include "core/prove/source_walk.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

constexpr std::size_t kMostObstacles = 16; ///< of a function that are looked for: each is shown by programs of its own

constexpr std::size_t kMostStandings = 12; ///< of one value
constexpr std::size_t kMostChoices = 64; ///< of standings of an op's operands

class Prover {
public:
    Prover(const Function& source, const DeviceFunction& device, const std::vector<NamedMesh>& meshes, std::stop_token stop,
        std::optional<std::int32_t> calls = {})
        : m_live(withoutDeadOps(source, false))
        , m_source(m_globals, m_live, meshes)
        , m_simpler(withoutBarriers(device))
        , m_device(m_simpler ? *m_simpler : device)
        , m_walk(m_globals, m_device.function, meshes, &m_device.globalShapes)
        , m_obstacles(m_source.walk, m_walk)
        , m_stop(std::move(stop))
    {
        if (calls && m_walk.mesh().axes()[static_cast<std::size_t>(*calls)].size > 1) {
            m_walk.calls = calls;
            m_varies = variesByCall(m_device.function, *calls);
        }
    }

    FunctionProof run()
    {
        m_proof.name = m_device.function.name;
        if (m_device.globalShapes.size() < m_device.function.values.size()) {
            fault("the layouts of its values are not known");
            return m_proof;
        }
        m_source.run();
        m_globals.setInSource(false);
        takeArguments();
        if (m_proof.obstacles.empty())
            m_identities.emplace(m_source.walk, m_walk, m_stop);
        Cursor cursor{&m_source.controls, 0};
        walkBlock(BlockId(std::int32_t{0}), cursor);
        if (m_stop.stop_requested()) {
            fault("it was stopped");
            return m_proof;
        }
        checkResults();
        if (!m_proof.obstacles.empty()) {
            for (const std::string& why : m_source.faults)
                fault(why);
        }
        return m_proof;
    }

private:
    /// The loops and branches of the source that are still to come in a block.
    struct Cursor {
        const Controls* controls = nullptr;
        std::size_t next = 0;
    };

    /// Barriers compute nothing. Without them, loops of both functions have only the carries that are needed.
    static Function withoutDeadOps(Function function, bool isOnShards)
    {
        std::vector<ValueId> stands(function.values.size()); // of a barrier's result: what it is
        const auto replace = [&](std::vector<ValueId>& values) {
            for (ValueId& value : values)
                value = stands[value.at()].valid() ? stands[value.at()] : value;
        };
        forEachOp(function, [&](OpId id) {
            Op& op = function[id];
            replace(op.operands);
            for (std::size_t i = 0; op.kind == OpKind::OptimizationBarrier && i < op.results.size(); ++i) {
                const Value& before = function[op.operands[i]];
                if (!isOnShards || function[op.results[i]].sharding == before.sharding) // by which devices meet, and results lie
                    stands[op.results[i].at()] = op.operands[i];
            }
        });
        for (Block& block : function.blocks)
            replace(block.results);
        eraseDeadOps(function);
        return function;
    }

    static bool hasBarriers(const Function& function)
    {
        return std::any_of(
            function.ops.begin(), function.ops.end(), [](const Op& op) { return op.kind == OpKind::OptimizationBarrier; });
    }

    static std::optional<DeviceFunction> withoutBarriers(const DeviceFunction& device)
    {
        if (!hasBarriers(device.function))
            return std::nullopt;
        return DeviceFunction{withoutDeadOps(device.function, true), device.globalShapes, {}};
    }

    const Function& function() const { return m_device.function; }

    void obstacle(ProofObstacle made)
    {
        const auto& known = m_proof.obstacles;
        const bool isKnown = made.op.valid()
            && std::any_of(known.begin(), known.end(), [&](const ProofObstacle& other) { return other.op == made.op; });
        if (!isKnown) // once is enough
            m_proof.obstacles.push_back(std::move(made));
    }

    void fault(std::string reason) { obstacle(m_obstacles.at({}, std::move(reason))); }

    /// What a value of the source is to the devices that hold it by a layout.
    std::optional<Standing> laidOut(const Standing& wanted, const TensorSharding& layout, ValueId value) const
    {
        Standing standing = wanted;
        standing.mesh = layout.mesh;
        standing.partial = canonicalSet(layout.unreduced);
        standing.kind = layout.unreducedKind;
        if (layout.dims.size() != wanted.dims.size() || function()[value].type.shape.size() != wanted.dims.size())
            return std::nullopt;
        for (std::size_t dim = 0; dim < wanted.dims.size(); ++dim) {
            StandingDim& along = standing.dims[dim];
            along.axes = along.from >= 0 ? canonical(layout.dims[dim].axes) : AxisRefs();
            if (along.from >= 0
                && function()[value].type.shape[dim] * shardCount(along.axes)
                    != m_globals[standing.global].shape[static_cast<std::size_t>(along.from)])
                return std::nullopt;
        }
        const AxisRefs places = placeAxes(standing);
        AxisRefs seen;
        for (const AxisRef& axis : places) {
            if (!disjoint(seen, {axis}))
                return std::nullopt;
            seen.push_back(axis);
        }
        if (!disjoint(standing.partial, places))
            return std::nullopt;
        return standing;
    }

    void takeArguments()
    {
        const std::vector<ValueId>& arguments = function().arguments();
        const std::vector<ValueId>& given = m_live.arguments();
        if (arguments.size() != given.size()) {
            fault(fmt::format("it has {} arguments, and its source {}", arguments.size(), given.size()));
            return;
        }
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            const auto& layout = function()[arguments[i]].sharding;
            const auto& declared = m_live[given[i]].sharding;
            const auto standing = layout ? laidOut(m_source[given[i]], *layout, arguments[i]) : std::nullopt;
            const bool isAsDeclared = !declared || !layout || liesAs(*layout, *declared, m_live[given[i]].type.shape);
            if (function()[arguments[i]].type.dtype != m_live[given[i]].type.dtype) {
                fault(fmt::format("argument {} ({}) has another element type", i, valueText(m_live, given[i])));
                continue;
            }
            if (!standing || !isAsDeclared || m_device.globalShapes[arguments[i].at()] != m_live[given[i]].type.shape) {
                fault(fmt::format("argument {} ({}) is not laid out as it is declared", i, valueText(m_live, given[i])));
                continue;
            }
            give(arguments[i], {*standing});
        }
    }

    /// Without the axes that do not divide, which are left out.
    static bool liesAs(const TensorSharding& layout, const TensorSharding& declared, const Shape& shape)
    {
        const TensorSharding even = withoutUneven(declared, shape);
        if (layout.dims.size() != even.dims.size())
            return false;
        for (std::size_t dim = 0; dim < even.dims.size(); ++dim) {
            const AxisRefs wanted = canonical(even.dims[dim].axes);
            const AxisRefs axes = canonical(layout.dims[dim].axes);
            if (axes != wanted && !(even.dims[dim].open && withoutStart(axes, wanted)))
                return false;
        }
        return canonicalSet(layout.unreduced) == canonicalSet(even.unreduced)
            && (layout.unreduced.empty() || layout.unreducedKind == even.unreducedKind);
    }

    void checkResults()
    {
        const std::vector<ValueId>& results = function().results();
        const std::vector<ValueId>& wanted = m_live.results();
        if (results.size() != wanted.size()) {
            fault(fmt::format("it has {} results, and its source {}", results.size(), wanted.size()));
            return;
        }
        std::size_t lookedFor = 0; // several results may have one obstacle
        for (std::size_t i = 0; i < results.size(); ++i) {
            const auto& layout = function()[results[i]].sharding;
            const Shape& shape = m_live[wanted[i]].type.shape;
            if (m_live[wanted[i]].type.dtype == DType::Token)
                continue;
            const auto* declared
                = i < m_live.resultShardings.size() && m_live.resultShardings[i] ? &*m_live.resultShardings[i] : nullptr;
            if (!layout || m_device.globalShapes[results[i].at()] != shape || !hasPieces(results[i], *layout)
                || (declared != nullptr && !liesAs(*layout, *declared, shape))) {
                fault(fmt::format("result {} is not laid out as it is declared", i));
                continue;
            }
            const auto& own = m_live[wanted[i]].sharding;
            const AxisRefs partial = canonicalSet(layout->unreduced);
            if (declared == nullptr && !partial.empty() && (!own || canonicalSet(own->unreduced) != partial)) {
                fault(fmt::format("result {} is a partial result, and its source's is whole", i));
                continue;
            }
            if (lookedFor < kMostObstacles && !stands(results[i], m_source[wanted[i]], *layout)) {
                ++lookedFor;
                obstacle(m_obstacles.before(results[i], fmt::format("result {}", i), m_source[wanted[i]], &*layout));
            }
        }
        for (const Donation& donation : function().donations) {
            const auto& given = m_live.donations;
            if (std::none_of(
                    given.begin(), given.end(), [&](const Donation& other) { return other.argument == donation.argument; }))
                fault(fmt::format(
                    "result {} takes the place of argument {}, which stays in the source", donation.result, donation.argument));
            const Value& before = function()[function().arguments()[donation.argument]];
            const Value& after = function()[results[donation.result]];
            if (before.type != after.type)
                fault(fmt::format(
                    "result {} takes the place of argument {}, which is of another type", donation.result, donation.argument));
            else if (before.sharding && after.sharding
                && (before.sharding->mesh != after.sharding->mesh
                    || !liesAs(*after.sharding, *before.sharding, m_device.globalShapes[results[donation.result].at()])))
                fault(fmt::format(
                    "result {} takes the place of argument {}, which lies otherwise", donation.result, donation.argument));
        }
    }

    /// The value is of the size that its layout makes of the whole.
    bool hasPieces(ValueId value, const TensorSharding& layout) const
    {
        const Shape& whole = m_device.globalShapes[value.at()];
        return layout.dims.size() == whole.size() && function()[value].type.shape == localShape(whole, layout);
    }

    bool isKnownToStand(ValueId value, const Standing& wanted, const TensorSharding& layout) const
    {
        const Standings& known = m_walk.standings[value.at()];
        return std::any_of(known.begin(), known.end(),
            [&](const Standing& standing) { return standsAs(m_walk, value, standing, wanted, layout); });
    }

    /// By the lemmas, or else by an identity.
    bool stands(ValueId value, const Standing& wanted, const TensorSharding& layout)
    {
        if (isKnownToStand(value, wanted, layout))
            return true;
        const auto standing = laidOut(wanted, layout, value);
        if (!standing || !m_identities || !m_identities->stands(value, wanted, layout))
            return false;
        m_proof.isByIdentity = true;
        give(value, {*standing});
        return true;
    }

    // ---- the ops

    /// Notes what a value stands to: first to values of the source, in pieces rather than windows, and to those of which it has more.
    void give(ValueId value, Standings standings)
    {
        Standings& known = m_walk.standings[value.at()];
        for (std::size_t i = 0; i < standings.size(); ++i) { // grows by what borders make of them
            const Standing standing = tidied(standings[i], value);
            const bool isOfOneValue = !variesAlong(m_walk, standing.global, followedBy(placeAxes(standing), standing.partial));
            if (!isOfOneValue || std::find(known.begin(), known.end(), standing) != known.end())
                continue;
            known.push_back(standing);
            cross(value, standing, standings);
            if (auto copies = asCopies(standing, value))
                standings.push_back(*std::move(copies));
        }
        const auto rank = [&](const Standing& standing) {
            const bool hasWindow = std::any_of(
                standing.dims.begin(), standing.dims.end(), [](const StandingDim& dim) { return dim.window != nullptr; });
            return std::pair((m_globals[standing.global].isInSource ? 0 : 2) + (hasWindow ? 1 : 0), -knownPart(standing, value));
        };
        if (known.size() > 1)
            std::stable_sort(known.begin(), known.end(), [&](const Standing& a, const Standing& b) { return rank(a) < rank(b); });
        if (known.size() > kMostStandings)
            known.resize(kMostStandings);
    }

    /// The part of the devices' elements that a standing says something of, as far as windows tell.
    double knownPart(const Standing& standing, ValueId value) const
    {
        double part = 1.0;
        for (std::size_t dim = 0; dim < standing.dims.size(); ++dim) {
            const StandingDim& along = standing.dims[dim];
            if (along.from < 0)
                continue;
            const std::int64_t all = function()[value].type.shape[dim] * shardCount(along.axes);
            std::int64_t known = std::min(all, m_globals[standing.global].shape[static_cast<std::size_t>(along.from)]);
            if (along.window) {
                known = 0;
                for (const std::vector<Run>& runs : *along.window) {
                    for (const Run& run : runs)
                        known += run.length;
                }
            }
            part *= all > 0 ? static_cast<double>(known) / static_cast<double>(all) : 1.0;
        }
        return part;
    }

    /// The only element of a dimension is the same as a copy.
    Standing tidied(Standing standing, ValueId value) const
    {
        for (std::size_t dim = 0; dim < standing.dims.size(); ++dim) {
            StandingDim& along = standing.dims[dim];
            if (along.from >= 0 && along.axes.empty() && !along.window && function()[value].type.shape[dim] == 1
                && m_globals[standing.global].shape[static_cast<std::size_t>(along.from)] == 1)
                along = {};
        }
        return standing;
    }

    /// Of an array of copies that has nothing else: the copies.
    std::optional<Standing> asCopies(Standing standing, ValueId value) const
    {
        const GlobalValue& array = m_globals[standing.global];
        if (array.copied == kNoGlobal || !standing.isWhole())
            return std::nullopt;
        for (std::size_t dim = 0; dim < standing.dims.size(); ++dim) {
            StandingDim& along = standing.dims[dim];
            if (along.from < 0)
                continue;
            const auto from = static_cast<std::size_t>(along.from);
            if (!isAlongCopies(array, along)) {
                along.from = array.copiedFrom[from];
                continue;
            }
            if (along.window || function()[value].type.shape[dim] * shardCount(along.axes) > array.shape[from])
                return std::nullopt;
            along = {};
        }
        standing.global = array.copied;
        if (!hasMesh(standing))
            standing.mesh = 0;
        return standing;
    }

    /// What the value is to others that the source makes of it: arrays of its copies, and what is on the other side of a border.
    void cross(ValueId value, const Standing& standing, Standings& made) const
    {
        const bool hasCopies
            = std::any_of(standing.dims.begin(), standing.dims.end(), [](const StandingDim& dim) { return dim.from < 0; });
        if (hasCopies && standing.isWhole() && m_globals.hasFilled()) {
            const Framed array = framed(m_walk, value, standing);
            if (m_globals.find(filledText(array)) != kNoGlobal) {
                const Framed all = filled(m_walk, array, true);
                made.push_back(standingOf(all.global, all.shape, all.dims, all.local, all.mesh));
            }
        }
        const auto borders = m_source.borders.find(standing.global);
        if (borders == m_source.borders.end())
            return;
        for (const Border& border : borders->second) {
            TensorSharding layout = border.begin;
            TensorSharding after = border.beginAfter;
            if (!standing.isWhole() || !goOnAs(standing, layout, after)
                || !standsAs(m_walk, value, standing, border.from, layout))
                continue;
            if (auto other = laidOut(border.to, after, value); other && other->isWhole())
                made.push_back(*std::move(other));
        }
    }

    /// Appends to the axes of both layouts those that a standing has behind the first one's; false where it does not begin so.
    static bool goOnAs(const Standing& standing, TensorSharding& layout, TensorSharding& after)
    {
        for (std::size_t dim = 0; dim < std::min({standing.dims.size(), layout.dims.size(), after.dims.size()}); ++dim) {
            if (standing.dims[dim].from < 0)
                continue;
            const auto rest = withoutStart(standing.dims[dim].axes, canonical(layout.dims[dim].axes));
            if (!rest)
                return false;
            for (TensorSharding* of : {&layout, &after})
                of->dims[dim].axes.insert(of->dims[dim].axes.end(), rest->begin(), rest->end());
        }
        return true;
    }

    void walkBlock(BlockId block, Cursor& cursor)
    {
        for (const OpId id : function()[block].ops) {
            if (m_stop.stop_requested())
                return;
            ++m_proof.ops;
            const Op& op = function()[id];
            const bool isControl = op.kind == OpKind::Repeat || op.kind == OpKind::While || op.kind == OpKind::Case;
            if (!isControl) {
                walkOp(id);
                continue;
            }
            walkControl(id, cursor);
            // Though nothing that is asked for depends on it, it may never end, or devices that take other ways wait for each other.
            if (!m_obstacles.isNoted(id) || !mayStall(op))
                continue;
            if (m_identities && m_identities->takesOneWay(id))
                m_proof.isByIdentity = true;
            else
                obstacle(m_obstacles.noted(id));
        }
    }

    template <typename Predicate>
    bool anyInside(const Op& op, const Predicate& is) const
    {
        return std::any_of(op.bodies.begin(), op.bodies.end(), [&](BlockId body) {
            const std::vector<OpId>& ops = function()[body].ops;
            return std::any_of(
                ops.begin(), ops.end(), [&](OpId inside) { return is(function()[inside]) || anyInside(function()[inside], is); });
        });
    }

    /// Whether it may have no end, or devices meet in it only where they take the same branches and turns.
    bool mayStall(const Op& op) const
    {
        const auto decides = [&](const Op& inside) {
            return (inside.kind == OpKind::While || inside.kind == OpKind::Case)
                && anyInside(inside, [](const Op& met) { return isCollective(met.kind); });
        };
        const auto isOpen = [](const Op& inside) { return inside.kind == OpKind::While; };
        return isOpen(op) || anyInside(op, isOpen) || decides(op) || anyInside(op, decides);
    }

    void walkOp(OpId id)
    {
        const Op& op = function()[id];
        for (std::size_t result = 0; result < op.results.size(); ++result) {
            Standings made;
            made = compoundStandings(m_walk, op, result);
            if (result == 0)
                made = windowStandings(m_walk, op, std::move(made));
            if (const LemmaFunction lemma = lemmaOf(op.kind))
                applyLemma(id, lemma, result, made);
            else
                m_obstacles.note(id, "there is no lemma of it");
            give(op.results[result], std::move(made));
        }
    }

    /// The lemma on every choice of standings of the operands.
    void applyLemma(OpId id, LemmaFunction lemma, std::size_t result, Standings& made)
    {
        const Op& op = function()[id];
        if (const auto taken = takenCase(m_walk, op)) {
            const Standings& known = m_walk.standings[op.operands[*taken].at()];
            made.insert(made.end(), known.begin(), known.end());
            return;
        }
        std::size_t choices = 1;
        for (const ValueId operand : op.operands) {
            const std::size_t count = m_walk.standings[operand.at()].size();
            if (count == 0)
                return; // said of the operand
            choices = std::min(kMostChoices, choices * count);
        }
        for (std::size_t choice = 0; choice < choices; ++choice) {
            Site site{m_walk, op, {}, {}};
            std::size_t rest = choice;
            for (const ValueId operand : op.operands) {
                const Standings& known = m_walk.standings[operand.at()];
                site.operands.push_back(&known[rest % known.size()]);
                rest /= known.size();
            }
            if (!commonMesh(site.operands)) {
                m_obstacles.note(id, "its operands are on different meshes");
                continue;
            }
            // Copies may be as many as is claimed, or as many as there are.
            for (const bool usesClaims : {true, false}) {
                m_walk.usesClaims = usesClaims;
                m_walk.hasUsedClaims = false;
                auto standing = lemma(site, result);
                m_walk.usesClaims = true;
                const bool isDone = !m_walk.hasUsedClaims || (standing && m_globals[standing->global].isInSource);
                if (standing)
                    made.push_back(*std::move(standing));
                else
                    m_obstacles.note(id, site.refusal.empty() ? "its lemma gives nothing" : site.refusal);
                if (isDone)
                    break;
            }
        }
    }

    // ---- loops and branches

    void walkControl(OpId id, Cursor& cursor)
    {
        const Op& op = function()[id];
        const bool isLoop = op.kind == OpKind::Repeat || op.kind == OpKind::While;
        std::optional<ControlMatch> match;
        const auto fits = [&](const Control& control) {
            if (control.op->kind != op.kind || control.op->bodies.size() != op.bodies.size())
                return false;
            match = isLoop ? matchOf(op, control, false) : matchOfBranch(op, control);
            if (!match && isLoop)
                match = matchOf(op, control, true);
            return match.has_value();
        };
        std::size_t at = cursor.next;
        while (at < cursor.controls->size() && !fits(*(*cursor.controls)[at]))
            ++at;
        if (at == cursor.controls->size()) {
            m_obstacles.note(id, "the source has no such loop or branch");
            return;
        }
        cursor.next = at + 1;
        const Control& control = *(*cursor.controls)[at];
        const std::string why = op.kind == OpKind::Repeat ? walkRepeat(id, control, *match)
            : op.kind == OpKind::While                    ? walkWhile(id, control, *match)
                                                          : walkCase(id, control, *match);
        if (!why.empty())
            m_obstacles.note(id, why);
    }

    static TensorSharding stacked(TensorSharding slice)
    {
        slice.dims.insert(slice.dims.begin(), DimSharding{});
        return slice;
    }

    static TensorSharding sliceOf(TensorSharding stack)
    {
        stack.dims.erase(stack.dims.begin());
        return stack;
    }

    /// What the layout of a loop's value, which is that of one call, is of all: they have rows of it each, or else each a part of a sum.
    std::optional<TensorSharding> overCalls(std::optional<TensorSharding> layout, const Standing& wanted, ValueId value) const
    {
        const bool fits = layout && layout->dims.size() == wanted.dims.size();
        if (!m_walk.calls || !m_varies[value.at()] || !fits)
            return layout;
        const AxisRef calls = wholeAxis(m_walk.mesh(), static_cast<std::size_t>(*m_walk.calls));
        for (std::size_t dim = 0; dim < wanted.dims.size(); ++dim) {
            const auto from = wanted.dims[dim].from;
            AxisRefs axes = layout->dims[dim].axes;
            axes.insert(axes.begin(), calls);
            if (from >= 0
                && function()[value].type.shape[dim] * shardCount(axes)
                    == m_globals[wanted.global].shape[static_cast<std::size_t>(from)]) {
                layout->dims[dim].axes = std::move(axes);
                return layout;
            }
        }
        layout->unreduced.push_back(calls);
        return layout;
    }

    /// Takes an argument of a block as what it is claimed to be; "" when the operand is that, of which it is the value or (with `isStacked`) a slice.
    std::string assume(ValueId argument, const Standing& inside, ValueId operand, const Standing& outside, bool isStacked)
    {
        const auto layout = overCalls(function()[argument].sharding, inside, argument);
        if (!layout)
            return "an argument of its block has no layout";
        const auto standing = laidOut(inside, *layout, argument);
        if (!standing)
            return "an argument of its block has no pieces of its layout";
        if (!stands(operand, outside, isStacked ? stacked(*layout) : *layout))
            return fmt::format("{} does not come in as its block has it", valueText(function(), operand));
        give(argument, {*standing});
        return {};
    }

    /// Which carry or stacked array of a loop of the source each of a loop is, and which result; nothing for those that nobody reads. Of a branch, the
    /// results alone.
    struct ControlMatch {
        std::vector<std::optional<std::size_t>> operands;
        std::vector<std::optional<std::size_t>> results;
    };

    /// Whether something that the function gives depends on a value. Of a selection by a constant only one case counts.
    bool isRead(ValueId value)
    {
        if (m_isRead.empty()) {
            m_isRead.resize(function().values.size());
            Function live = function();
            forEachOp(live, [&](OpId op) {
                if (const auto taken = takenCase(m_walk, live[op]))
                    std::ranges::fill(live[op].operands, ValueId(live[op].operands[*taken]));
            });
            eraseDeadOps(live);
            const auto mark = [&](const std::vector<ValueId>& values) {
                for (const ValueId each : values)
                    m_isRead[each.at()] = true;
            };
            forEachOp(live, [&](OpId op) {
                mark(live[op].results);
                for (const BlockId body : live[op].bodies)
                    mark(live[body].arguments);
            });
        }
        return m_isRead[value.at()];
    }

    /// The source has only what is read. The devices' loop may have more than that, and fewer carries and stacked arrays: what stays the same
    /// comes in from outside. Nothing when the loops differ otherwise.
    std::optional<ControlMatch> matchOf(const Op& op, const Control& control, bool byIdentity)
    {
        const RepeatAttributes own = loopOf(op);
        const RepeatAttributes whole = loopOf(*control.op);
        if (own.count != whole.count || own.reversed != whole.reversed)
            return std::nullopt;
        ControlMatch match;
        const bool isSame = own == whole && op.results.size() == control.results.size();
        std::size_t next = whole.carries;
        for (std::size_t i = own.carries; i < op.results.size(); ++i)
            match.results.push_back(isSame || isRead(op.results[i]) ? std::optional(next++) : std::nullopt);
        if (next != control.results.size())
            return std::nullopt;

        const auto isReadInside = [&](std::size_t i) {
            return isSame || std::any_of(op.bodies.begin(), op.bodies.end(), [&](BlockId block) {
                return isRead(function()[block].arguments[i]);
            });
        };
        std::vector<std::size_t> carries;
        std::vector<std::size_t> stacks;
        for (std::size_t i = 0; i < own.carries + own.stacked; ++i) {
            if (isReadInside(i))
                (i < own.carries ? carries : stacks).push_back(i);
        }
        match.operands.resize(own.carries + own.stacked);
        const bool isAll = carries.size() == whole.carries && stacks.size() == whole.stacked;
        next = 0;
        for (const std::vector<std::size_t>* operands : {&carries, &stacks}) {
            const bool isStacked = operands == &stacks;
            next = isStacked ? whole.carries : next;
            const std::size_t end = whole.carries + (isStacked ? whole.stacked : 0);
            for (const std::size_t i : *operands) {
                const ValueId argument = function()[op.bodies.back()].arguments[i];
                const auto comesIn = [&](std::size_t operand) {
                    const auto layout = overCalls(function()[argument].sharding, control.arguments.back()[operand], argument);
                    if (!layout)
                        return false;
                    const TensorSharding outside = isStacked ? stacked(*layout) : *layout;
                    return byIdentity ? stands(op.operands[i], control.operands[operand], outside)
                                      : isKnownToStand(op.operands[i], control.operands[operand], outside);
                };
                while (!isAll && next < end && !comesIn(next))
                    ++next;
                if (next >= end)
                    return std::nullopt;
                match.operands[i] = next++;
            }
        }
        match.results.insert(
            match.results.begin(), match.operands.begin(), match.operands.begin() + static_cast<std::ptrdiff_t>(own.carries));
        return match;
    }

    std::optional<ControlMatch> matchOfBranch(const Op& op, const Control& control)
    {
        ControlMatch match;
        const bool isSame = op.results.size() == control.results.size();
        std::size_t next = 0;
        for (const ValueId result : op.results)
            match.results.push_back(isSame || isRead(result) ? std::optional(next++) : std::nullopt);
        return next == control.results.size() ? std::optional(std::move(match)) : std::nullopt;
    }

    std::string walkRepeat(OpId id, const Control& control, const ControlMatch& match)
    {
        const Op& op = function()[id];
        const auto& repeat = op.as<RepeatAttributes>();
        const Block& body = function()[op.bodies[0]];
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            if (i >= repeat.carries + repeat.stacked) {
                give(body.arguments[i], m_walk.standings[op.operands[i].at()]);
                continue;
            }
            if (!match.operands[i])
                continue;
            std::string why = assume(body.arguments[i], control.arguments[0][*match.operands[i]], op.operands[i],
                control.operands[*match.operands[i]], i >= repeat.carries);
            if (!why.empty())
                return why;
        }
        Cursor cursor{&control.inside[0], 0};
        walkBlock(op.bodies[0], cursor);
        const auto layoutOf = [&](std::size_t i) {
            return i < repeat.carries
                ? overCalls(function()[body.arguments[i]].sharding, control.arguments[0][*match.results[i]], body.arguments[i])
                : overCalls(function()[op.results[i]].sharding, control.results[*match.results[i]], op.results[i]);
        };
        for (std::size_t i = 0; i < body.results.size(); ++i) {
            if (!match.results[i])
                continue;
            const bool isCarry = i < repeat.carries;
            const auto layout = layoutOf(i);
            if (!layout || (!isCarry && layout->dims.empty()) || (!isCarry && !canonical(layout->dims.front().axes).empty()))
                return "a result has no layout";
            const Standing& yield = control.yields[0][*match.results[i]];
            if (!stands(body.results[i], yield, isCarry ? *layout : sliceOf(*layout)))
                return whyYield(id, body.results[i], i, yield, &*layout);
        }
        // Each carry may depend on all: none is shown before all are.
        for (std::size_t i = 0; i < body.results.size(); ++i) {
            if (!match.results[i])
                continue;
            if (auto standing = laidOut(control.results[*match.results[i]], *layoutOf(i), op.results[i]))
                give(op.results[i], {*std::move(standing)});
        }
        return {};
    }

    /// What a block gives is not what it must be.
    std::string whyYield(OpId control, ValueId value, std::size_t i, const Standing& wanted, const TensorSharding* layout)
    {
        m_obstacles.noteInside(
            control, m_obstacles.before(value, fmt::format("what its block gives as result {}", i), wanted, layout));
        return fmt::format("what its block gives as result {} is not shown", i);
    }

    std::string walkWhile(OpId id, const Control& control, const ControlMatch& match)
    {
        const Op& op = function()[id];
        const std::size_t carries = op.as<WhileAttributes>().carries;
        for (std::size_t block = 0; block < 2; ++block) {
            const Block& body = function()[op.bodies[block]];
            for (std::size_t i = 0; i < op.operands.size(); ++i) {
                if (i >= carries) {
                    give(body.arguments[i], m_walk.standings[op.operands[i].at()]);
                    continue;
                }
                if (!match.operands[i])
                    continue;
                const std::size_t of = *match.operands[i];
                std::string why
                    = assume(body.arguments[i], control.arguments[block][of], op.operands[i], control.operands[of], false);
                if (!why.empty())
                    return why;
                if (block == 1
                    && m_walk.standings[body.arguments[i].at()] != m_walk.standings[function()[op.bodies[0]].arguments[i].at()])
                    return "its blocks have a carry in different layouts";
            }
            Cursor cursor{&control.inside[block], 0};
            walkBlock(op.bodies[block], cursor);
        }
        const Block& condition = function()[op.bodies[0]];
        const Block& body = function()[op.bodies[1]];
        if (!stands(condition.results[0], control.yields[0][0], TensorSharding::replicatedOf(0)))
            return whyYield(id, condition.results[0], 0, control.yields[0][0], nullptr);
        const auto layoutOf = [&](std::size_t i) {
            return *overCalls(function()[body.arguments[i]].sharding, control.arguments[1][*match.results[i]], body.arguments[i]);
        };
        for (std::size_t i = 0; i < carries; ++i) {
            if (!match.results[i])
                continue;
            const TensorSharding layout = layoutOf(i);
            const Standing& yield = control.yields[1][*match.results[i]];
            if (!stands(body.results[i], yield, layout))
                return whyYield(id, body.results[i], i, yield, &layout);
        }
        // Each carry may depend on all: none is shown before all are.
        for (std::size_t i = 0; i < carries; ++i) {
            if (!match.results[i])
                continue;
            if (auto standing = laidOut(control.results[*match.results[i]], layoutOf(i), op.results[i]))
                give(op.results[i], {*std::move(standing)});
        }
        return {};
    }

    std::string walkCase(OpId id, const Control& control, const ControlMatch& match)
    {
        const Op& op = function()[id];
        const TensorSharding whole = TensorSharding::replicatedOf(0);
        if (!stands(op.operands[0], control.operands[0], whole)) {
            m_obstacles.noteInside(id,
                m_obstacles.before(
                    op.operands[0], "the number of its branch, in which devices may differ", control.operands[0], &whole));
            return "devices may take different branches";
        }
        for (std::size_t block = 0; block < op.bodies.size(); ++block) {
            const Block& body = function()[op.bodies[block]];
            for (std::size_t i = 0; i < body.arguments.size(); ++i)
                give(body.arguments[i], m_walk.standings[op.operands[i + 1].at()]);
            Cursor cursor{&control.inside[block], 0};
            walkBlock(op.bodies[block], cursor);
            for (std::size_t i = 0; i < body.results.size(); ++i) {
                const auto& layout = function()[op.results[i]].sharding;
                if (!match.results[i])
                    continue;
                const Standing& yield = control.yields[block][*match.results[i]];
                if (!layout || !stands(body.results[i], yield, *layout))
                    return whyYield(id, body.results[i], i, yield, layout ? &*layout : nullptr);
            }
        }
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            if (!match.results[i])
                continue;
            if (auto standing = laidOut(control.results[*match.results[i]], *function()[op.results[i]].sharding, op.results[i]))
                give(op.results[i], {*std::move(standing)});
        }
        return {};
    }

    GlobalValues m_globals;
    Function m_live; ///< the source without dead ops
    SourceWalk m_source;
    std::optional<DeviceFunction> m_simpler; ///< the device function without barriers, if it has some
    const DeviceFunction& m_device;
    Walk m_walk;
    std::vector<bool> m_varies; ///< with `calls` of more than one: what differs from call to call
    std::vector<bool> m_isRead; ///< by value; empty until it is asked for
    Obstacles m_obstacles;
    std::stop_token m_stop;
    FunctionProof m_proof;
    std::optional<Identities> m_identities; ///< none: the arguments do not lie as they are declared
};

} // namespace

FunctionProof proveFunction(const Function& source, const DeviceFunction& device, const std::vector<NamedMesh>& meshes,
    const std::stop_token& stop, std::optional<std::int32_t> calls)
{
    FunctionProof proof = Prover(source, device, meshes, stop, calls).run();
    proof.meshes = meshes;
    return proof;
}

} // namespace meshwright
