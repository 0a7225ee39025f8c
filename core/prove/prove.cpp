// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/prove.h"

#include "core/program/transform.h"
#include "core/prove/known_numbers.h"
#include "core/prove/lemmas.h"
#include "core/prove/source_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace meshwright {

bool Proof::isProved() const
{
    return !functions.empty()
        && std::all_of(functions.begin(), functions.end(), [](const FunctionProof& function) { return function.isProved(); });
}

std::size_t Proof::ops() const
{
    return std::accumulate(functions.begin(), functions.end(), std::size_t{0},
        [](std::size_t sum, const FunctionProof& function) { return sum + function.ops; });
}

namespace {

constexpr std::size_t kMostStandings = 6; ///< of one value
constexpr std::size_t kMostChoices = 64; ///< of standings of an op's operands

class Prover {
public:
    Prover(const Function& source, const DeviceFunction& device, const std::vector<NamedMesh>& meshes)
        : m_live(withoutDeadOps(source))
        , m_source(m_globals, m_live, meshes)
        , m_device(device)
        , m_walk(m_globals, device.function, meshes, &device.globalShapes)
        , m_reasons(device.function.ops.size())
    {
    }

    FunctionProof run()
    {
        m_proof.name = m_device.function.name;
        if (m_device.globalShapes.size() < m_device.function.values.size()) {
            obstacle({}, "the layouts of its values are not known");
            return m_proof;
        }
        m_source.run();
        m_globals.setInSource(false);
        takeArguments();
        Cursor cursor{&m_source.controls, 0};
        walkBlock(BlockId(std::int32_t{0}), cursor);
        checkResults();
        if (!m_proof.obstacles.empty()) {
            for (const std::string& fault : m_source.faults)
                obstacle({}, fault);
        }
        return m_proof;
    }

private:
    /// The loops and branches of the source that are still to come in a block.
    struct Cursor {
        const Controls* controls = nullptr;
        std::size_t next = 0;
    };

    static Function withoutDeadOps(Function function)
    {
        eraseDeadOps(function);
        return function;
    }

    const Function& function() const { return m_device.function; }

    void obstacle(OpId op, std::string reason)
    {
        const auto& known = m_proof.obstacles;
        if (op.valid() && std::any_of(known.begin(), known.end(), [&](const ProofObstacle& other) { return other.op == op; }))
            return; // once is enough
        ProofObstacle made{op, {}, {}, {}, std::move(reason)};
        if (op.valid()) {
            made.opName = opName(function()[op]);
            if (!function()[op].results.empty())
                made.value = valueText(function(), function()[op].results.front());
            made.place = function()[op].kept ? function()[op].kept->location : std::string();
        }
        m_proof.obstacles.push_back(std::move(made));
    }

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
            obstacle({}, fmt::format("it has {} arguments, and its source {}", arguments.size(), given.size()));
            return;
        }
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            const auto& layout = function()[arguments[i]].sharding;
            const auto& declared = m_live[given[i]].sharding;
            const auto standing = layout ? laidOut(m_source[given[i]], *layout, arguments[i]) : std::nullopt;
            const bool isAsDeclared = !declared || !layout || liesAs(*layout, *declared, m_live[given[i]].type.shape);
            if (function()[arguments[i]].type.dtype != m_live[given[i]].type.dtype) {
                obstacle({}, fmt::format("argument {} ({}) has another element type", i, valueText(m_live, given[i])));
                continue;
            }
            if (!standing || !isAsDeclared || m_device.globalShapes[arguments[i].at()] != m_live[given[i]].type.shape) {
                obstacle({}, fmt::format("argument {} ({}) is not laid out as it is declared", i, valueText(m_live, given[i])));
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
            const bool mayBeMore = even.dims[dim].open
                && std::equal(wanted.begin(), wanted.end(), axes.begin(),
                    axes.begin() + static_cast<std::ptrdiff_t>(std::min(wanted.size(), axes.size())));
            if (axes != wanted && !mayBeMore)
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
            obstacle({}, fmt::format("it has {} results, and its source {}", results.size(), wanted.size()));
            return;
        }
        for (std::size_t i = 0; i < results.size(); ++i) {
            const auto& layout = function()[results[i]].sharding;
            const Shape& shape = m_live[wanted[i]].type.shape;
            if (m_live[wanted[i]].type.dtype == DType::Token)
                continue;
            const auto* declared
                = i < m_live.resultShardings.size() && m_live.resultShardings[i] ? &*m_live.resultShardings[i] : nullptr;
            if (!layout || m_device.globalShapes[results[i].at()] != shape
                || (declared != nullptr && !liesAs(*layout, *declared, shape))) {
                obstacle({}, fmt::format("result {} is not laid out as it is declared", i));
                continue;
            }
            if (!stands(results[i], m_source[wanted[i]], *layout))
                explain(results[i], fmt::format("result {}", i));
        }
        for (const Donation& donation : function().donations) {
            if (function()[function().arguments()[donation.argument]].type != function()[results[donation.result]].type)
                obstacle({},
                    fmt::format("result {} takes the place of argument {}, which is of another type", donation.result,
                        donation.argument));
        }
    }

    bool stands(ValueId value, const Standing& wanted, const TensorSharding& layout) const
    {
        const Standings& known = m_walk.standings[value.at()];
        return std::any_of(known.begin(), known.end(),
            [&](const Standing& standing) { return standsAs(m_walk, value, standing, wanted, layout); });
    }

    bool standsInSource(ValueId value) const
    {
        const Standings& known = m_walk.standings[value.at()];
        return std::any_of(
            known.begin(), known.end(), [&](const Standing& standing) { return m_globals[standing.global].isInSource; });
    }

    /// What an op is given may be right: it is of the source, or a constant.
    bool isGivenRightly(ValueId operand) const
    {
        const Standings& known = m_walk.standings[operand.at()];
        return standsInSource(operand)
            || std::any_of(known.begin(), known.end(), [](const Standing& standing) { return standing.isUniform(); });
    }

    /// The first op on the way to a value that stands to nothing, or to nothing that the source has.
    void explain(ValueId value, const std::string& what)
    {
        std::vector<bool> seen(function().values.size(), false);
        std::vector<ValueId> pending{value};
        OpId unknown;
        OpId strange;
        seen[value.at()] = true;
        while (!pending.empty()) {
            const ValueId at = pending.back();
            pending.pop_back();
            const OpId producer = function()[at].producer;
            if (!producer.valid())
                continue;
            const bool isKnown = !m_walk.standings[at.at()].empty();
            // Where pieces begin, and masks, are used as what they are.
            if (!isKnown && knownNumbers(m_walk, at))
                continue;
            if (!isKnown && !m_reasons[producer.at()].empty() && (!unknown.valid() || producer.at() < unknown.at()))
                unknown = producer;
            const auto& operands = function()[producer].operands;
            if (isKnown && !standsInSource(at) && !operands.empty()
                && std::all_of(operands.begin(), operands.end(), [&](ValueId operand) { return isGivenRightly(operand); })
                && (!strange.valid() || producer.at() < strange.at()))
                strange = producer;
            for (const ValueId operand : operands) {
                if (!seen[operand.at()])
                    pending.push_back(operand);
                seen[operand.at()] = true;
            }
            for (const BlockId body : function()[producer].bodies) {
                for (const ValueId result : function()[body].results) {
                    if (!seen[result.at()])
                        pending.push_back(result);
                    seen[result.at()] = true;
                }
            }
        }
        if (unknown.valid())
            obstacle(unknown, fmt::format("{}: {}{}", what, m_reasons[unknown.at()], operandsText(unknown)));
        else if (strange.valid())
            obstacle(strange, fmt::format("{}: the source computes no such value{}", what, operandsText(strange)));
        else
            obstacle(
                function()[value].producer, fmt::format("{} is another value of the source, or is laid out otherwise", what));
    }

    /// How the operands of an op are laid out, as far as is shown.
    std::string operandsText(OpId id) const
    {
        std::string text;
        const auto& operands = function()[id].operands;
        for (std::size_t i = 0; i < std::min<std::size_t>(operands.size(), 4); ++i) {
            const Standings& known = m_walk.standings[operands[i].at()];
            if (known.empty())
                continue;
            const Standing& standing = known.front();
            const Mesh& mesh = m_walk.mesh(standing.mesh);
            TensorSharding layout = TensorSharding::replicatedOf(standing.dims.size());
            for (std::size_t dim = 0; dim < standing.dims.size(); ++dim)
                layout.dims[dim].axes = standing.dims[dim].from >= 0 ? standing.dims[dim].axes : AxisRefs();
            layout.unreduced = standing.partial;
            layout.unreducedKind = standing.kind;
            text += fmt::format("{}{} of {} devices' {}", text.empty() ? "; its operands are " : ", ", layoutText(layout, mesh),
                mesh.deviceCount(), typeText(function()[operands[i]].type));
        }
        return text;
    }

    // ---- the ops

    /// Notes what a value stands to; those to values of the source come first.
    void give(ValueId value, Standings standings)
    {
        Standings& known = m_walk.standings[value.at()];
        for (std::size_t i = 0; i < standings.size(); ++i) { // grows by what borders make of them
            const Standing standing = tidied(standings[i], value);
            if (std::find(known.begin(), known.end(), standing) != known.end())
                continue;
            known.push_back(standing);
            cross(value, standing, standings);
        }
        std::stable_partition(
            known.begin(), known.end(), [&](const Standing& standing) { return m_globals[standing.global].isInSource; });
        if (known.size() > kMostStandings)
            known.resize(kMostStandings);
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
            if (!standing.isWhole() || !standsAs(m_walk, value, standing, border.from, border.layout))
                continue;
            if (auto other = laidOut(border.to, border.layoutAfter, value); other && other->isWhole())
                made.push_back(*std::move(other));
        }
    }

    void walkBlock(BlockId block, Cursor& cursor)
    {
        for (const OpId id : function()[block].ops) {
            ++m_proof.ops;
            const Op& op = function()[id];
            const bool isControl = op.kind == OpKind::Repeat || op.kind == OpKind::While || op.kind == OpKind::Case;
            if (!isControl) {
                walkOp(id);
                continue;
            }
            walkControl(id, cursor);
            // Though nothing that is asked for depends on it, devices that take other ways wait for each other for ever.
            if (!m_reasons[id.at()].empty() && mayStall(op))
                obstacle(id, m_reasons[id.at()]);
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

    /// Whether devices meet in it only where they take the same branches and turns.
    bool mayStall(const Op& op) const
    {
        const auto decides = [&](const Op& inside) {
            return (inside.kind == OpKind::While || inside.kind == OpKind::Case)
                && anyInside(inside, [](const Op& met) { return isCollective(met.kind); });
        };
        return decides(op) || anyInside(op, decides);
    }

    void walkOp(OpId id)
    {
        const Op& op = function()[id];
        for (std::size_t result = 0; result < op.results.size(); ++result) {
            Standings made;
            if (result == 0) {
                made = compoundStandings(m_walk, op);
                for (Standing& standing : windowStandings(m_walk, op))
                    made.push_back(std::move(standing));
            }
            if (const LemmaFunction lemma = lemmaOf(op.kind))
                applyLemma(id, lemma, result, made);
            else
                m_reasons[id.at()] = "there is no lemma of it";
            give(op.results[result], std::move(made));
        }
    }

    /// The lemma on every choice of standings of the operands.
    void applyLemma(OpId id, LemmaFunction lemma, std::size_t result, Standings& made)
    {
        const Op& op = function()[id];
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
            if (auto standing = lemma(site, result))
                made.push_back(*std::move(standing));
            else if (m_reasons[id.at()].empty())
                m_reasons[id.at()] = site.refusal.empty() ? "its lemma gives nothing" : site.refusal;
        }
    }

    // ---- loops and branches

    void walkControl(OpId id, Cursor& cursor)
    {
        const Op& op = function()[id];
        const auto fits = [&](const Control& control) {
            return control.op->kind == op.kind && control.op->bodies.size() == op.bodies.size()
                && control.operands.size() == op.operands.size() && control.results.size() == op.results.size()
                && control.op->attributes == op.attributes;
        };
        std::size_t at = cursor.next;
        while (at < cursor.controls->size() && !fits(*(*cursor.controls)[at]))
            ++at;
        if (at == cursor.controls->size()) {
            m_reasons[id.at()] = "the source has no such loop or branch";
            return;
        }
        cursor.next = at + 1;
        const Control& control = *(*cursor.controls)[at];
        m_reasons[id.at()] = op.kind == OpKind::Repeat ? walkRepeat(op, control)
            : op.kind == OpKind::While                 ? walkWhile(op, control)
                                                       : walkCase(op, control);
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

    /// Takes an argument of a block as what it is claimed to be; "" when the operand is that, of which it is the value or (with `isStacked`) a slice.
    std::string assume(ValueId argument, const Standing& inside, ValueId operand, const Standing& outside, bool isStacked)
    {
        const auto& layout = function()[argument].sharding;
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

    std::string walkRepeat(const Op& op, const Control& control)
    {
        const auto& repeat = op.as<RepeatAttributes>();
        const Block& body = function()[op.bodies[0]];
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            if (i >= repeat.carries + repeat.stacked) {
                give(body.arguments[i], m_walk.standings[op.operands[i].at()]);
                continue;
            }
            std::string why
                = assume(body.arguments[i], control.arguments[0][i], op.operands[i], control.operands[i], i >= repeat.carries);
            if (!why.empty())
                return why;
        }
        Cursor cursor{&control.inside[0], 0};
        walkBlock(op.bodies[0], cursor);
        for (std::size_t i = 0; i < body.results.size(); ++i) {
            const bool isCarry = i < repeat.carries;
            const auto& layout = function()[isCarry ? body.arguments[i] : op.results[i]].sharding;
            if (!layout || (!isCarry && layout->dims.empty()) || (!isCarry && !canonical(layout->dims.front().axes).empty()))
                return "a result has no layout";
            if (!stands(body.results[i], control.yields[0][i], isCarry ? *layout : sliceOf(*layout)))
                return whyYield(body.results[i], i);
            if (auto standing = laidOut(control.results[i], *layout, op.results[i]))
                give(op.results[i], {*std::move(standing)});
        }
        return {};
    }

    std::string whyYield(ValueId value, std::size_t i)
    {
        std::vector<ProofObstacle> others;
        std::swap(others, m_proof.obstacles);
        explain(value, fmt::format("what its block gives as result {}", i));
        std::swap(others, m_proof.obstacles);
        return fmt::format("{} ({} of {})", others.front().reason, others.front().opName, others.front().value);
    }

    std::string walkWhile(const Op& op, const Control& control)
    {
        const std::size_t carries = op.as<WhileAttributes>().carries;
        for (std::size_t block = 0; block < 2; ++block) {
            const Block& body = function()[op.bodies[block]];
            for (std::size_t i = 0; i < op.operands.size(); ++i) {
                if (i >= carries) {
                    give(body.arguments[i], m_walk.standings[op.operands[i].at()]);
                    continue;
                }
                std::string why
                    = assume(body.arguments[i], control.arguments[block][i], op.operands[i], control.operands[i], false);
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
            return whyYield(condition.results[0], 0);
        for (std::size_t i = 0; i < carries; ++i) {
            const TensorSharding& layout = *function()[body.arguments[i]].sharding;
            if (!stands(body.results[i], control.yields[1][i], layout))
                return whyYield(body.results[i], i);
            if (auto standing = laidOut(control.results[i], layout, op.results[i]))
                give(op.results[i], {*std::move(standing)});
        }
        return {};
    }

    std::string walkCase(const Op& op, const Control& control)
    {
        if (!stands(op.operands[0], control.operands[0], TensorSharding::replicatedOf(0)))
            return "devices may take different branches";
        for (std::size_t block = 0; block < op.bodies.size(); ++block) {
            const Block& body = function()[op.bodies[block]];
            for (std::size_t i = 0; i < body.arguments.size(); ++i)
                give(body.arguments[i], m_walk.standings[op.operands[i + 1].at()]);
            Cursor cursor{&control.inside[block], 0};
            walkBlock(op.bodies[block], cursor);
            for (std::size_t i = 0; i < body.results.size(); ++i) {
                const auto& layout = function()[op.results[i]].sharding;
                if (!layout || !stands(body.results[i], control.yields[block][i], *layout))
                    return whyYield(body.results[i], i);
            }
        }
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            if (auto standing = laidOut(control.results[i], *function()[op.results[i]].sharding, op.results[i]))
                give(op.results[i], {*std::move(standing)});
        }
        return {};
    }

    GlobalValues m_globals;
    Function m_live; ///< the source without dead ops
    SourceWalk m_source;
    const DeviceFunction& m_device;
    Walk m_walk;
    std::vector<std::string> m_reasons; ///< by op of the device function: why it has no standing
    FunctionProof m_proof;
};

} // namespace

FunctionProof prove(const Function& source, const DeviceFunction& device, const std::vector<NamedMesh>& meshes)
{
    return Prover(source, device, meshes).run();
}

Proof prove(const Program& source, const DeviceProgram& device)
{
    Proof proof;
    proof.devices = 0;
    const auto refuse = [&](const Function& function, const char* why) {
        proof.functions.push_back({function.name, function.ops.size(), {{{}, {}, {}, {}, why}}});
    };
    for (const DeviceStage& stage : device.stages) {
        proof.devices += stage.mesh().deviceCount();
        for (const DeviceFunction& function : stage.functions) {
            const Function* of = source.find(function.function.name);
            if (of == nullptr)
                refuse(function.function, "the source has no such function");
            else if (!(source.meshes.front().mesh == stage.mesh()))
                refuse(function.function, "its mesh has other axes, or another order of devices, than the source's");
            else
                proof.functions.push_back(prove(*of, function, stage.meshes));
        }
    }
    for (const Function& function : source.functions) {
        if (std::none_of(device.stages.begin(), device.stages.end(),
                [&](const DeviceStage& stage) { return stage.find(function.name) != nullptr; }))
            refuse(function, "the device program has no such function");
    }
    return proof;
}

DeviceProgram deviceProgramOf(Program program)
{
    DeviceProgram made;
    DeviceStage& stage = made.stages.emplace_back();
    stage.meshes = std::move(program.meshes);
    for (Function& function : program.functions) {
        DeviceFunction& device = stage.functions.emplace_back();
        for (Value& value : function.values) {
            Shape shape = value.type.shape;
            if (!value.sharding)
                value.sharding = TensorSharding::replicatedOf(shape.size());
            for (std::size_t dim = 0; dim < std::min(shape.size(), value.sharding->dims.size()); ++dim)
                shape[dim] *= shardCount(value.sharding->dims[dim].axes);
            device.globalShapes.push_back(std::move(shape));
        }
        device.function = std::move(function);
    }
    return made;
}

} // namespace meshwright
