// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/axis_use.h"

#include "core/program/transform.h"
#include "core/support/counted.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

using AxisSet = std::set<std::int32_t>;

void add(AxisSet& axes, const AxisRefs& refs)
{
    for (const AxisRef& ref : refs)
        axes.insert(ref.axis);
}

class Differences {
public:
    explicit Differences(const DeviceFunction& device)
        : m_function(device.function)
        , m_sets(m_function.values.size())
    {
    }

    std::vector<AxisSet> run()
    {
        for (const ValueId argument : m_function.arguments())
            m_sets[argument.at()] = ofLayout(argument);
        visit(BlockId(std::int32_t{0}));
        return std::move(m_sets);
    }

private:
    AxisSet ofLayout(ValueId value) const
    {
        AxisSet axes;
        if (const auto& sharding = m_function[value].sharding) {
            for (const DimSharding& dim : sharding->dims)
                add(axes, dim.axes);
            add(axes, sharding->unreduced);
        }
        return axes;
    }

    /// Adds; true when that changed something.
    bool grow(ValueId value, const AxisSet& axes)
    {
        const std::size_t before = m_sets[value.at()].size();
        m_sets[value.at()].insert(axes.begin(), axes.end());
        return m_sets[value.at()].size() != before;
    }

    void visit(BlockId block)
    {
        for (const OpId id : m_function[block].ops) {
            const Op& op = m_function[id];
            if (op.kind == OpKind::Repeat || op.kind == OpKind::While || op.kind == OpKind::Case) {
                visitControl(op);
                continue;
            }
            AxisSet made;
            for (const ValueId operand : op.operands)
                made.insert(m_sets[operand.at()].begin(), m_sets[operand.at()].end());
            if (isCollective(op.kind))
                exchange(op, made);
            for (const ValueId result : op.results) {
                grow(result, made);
                grow(result, ofLayout(result));
            }
        }
    }

    /// A collective leaves what its result's layout says along its own axes; one of a manual computation makes equal or different.
    static void exchange(const Op& op, AxisSet& made)
    {
        const auto& collective = op.as<CollectiveAttributes>();
        AxisSet own;
        add(own, collective.axes);
        const bool makesEqual = op.kind == OpKind::AllReduce || op.kind == OpKind::AllGather;
        const bool hasGroups = collective.pieces && !collective.pieces->groups.empty();
        if (collective.pieces && (hasGroups || !makesEqual)) {
            made.insert(own.begin(), own.end());
            return;
        }
        for (const std::int32_t axis : own)
            made.erase(axis);
    }

    /// Loops and branches. What decides which way a device takes makes what comes out differ too.
    void visitControl(const Op& op)
    {
        const bool branches = op.kind == OpKind::Case;
        const std::size_t carries = branches ? 0
            : op.kind == OpKind::Repeat      ? op.as<RepeatAttributes>().carries
                                             : op.as<WhileAttributes>().carries;
        for (const BlockId body : op.bodies) {
            const std::vector<ValueId>& arguments = m_function[body].arguments;
            for (std::size_t i = 0; i < arguments.size(); ++i)
                grow(arguments[i], m_sets[op.operands[branches ? i + 1 : i].at()]);
        }
        for (bool changed = true; changed;) {
            changed = false;
            for (const BlockId body : op.bodies) {
                visit(body);
                for (std::size_t i = 0; i < carries; ++i)
                    changed
                        = grow(m_function[body].arguments[i], m_sets[m_function[op.bodies.back()].results[i].at()]) || changed;
            }
        }
        const AxisSet decides = branches ? m_sets[op.operands.front().at()]
            : op.kind == OpKind::While   ? m_sets[m_function[op.bodies.front()].results.front().at()]
                                         : AxisSet();
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            grow(op.results[i], decides);
            for (const BlockId body : op.bodies) {
                if (i < carries)
                    grow(op.results[i], m_sets[m_function[body].arguments[i].at()]);
                else
                    grow(op.results[i], m_sets[m_function[body].results[i].at()]);
            }
        }
    }

    const Function& m_function;
    std::vector<AxisSet> m_sets;
};

double productFlops(const Function& function, const Op& op)
{
    double flops = 2.0 * static_cast<double>(function[op.results.front()].type.elements());
    for (const std::size_t dim : op.as<DotAttributes>().lhsContracting)
        flops *= static_cast<double>(function[op.operands.front()].type.shape[dim]);
    return flops;
}

/// The name of a value, or of what is made from it next.
std::string nameNear(const Function& function, ValueId value)
{
    std::string name = function[value].name;
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        if (name.empty() && !op.results.empty() && std::find(op.operands.begin(), op.operands.end(), value) != op.operands.end())
            name = function[op.results.front()].name;
    });
    return name.empty() ? valueText(function, value) : name;
}

/// `67.1 MFLOP`, `950 FLOP`.
std::string flopText(double flops)
{
    const std::string count = formatCount(flops);
    return count + (count.find(' ') == std::string::npos ? " FLOP" : "FLOP");
}

} // namespace

std::vector<std::set<std::int32_t>> differingAxes(const DeviceFunction& device)
{
    return Differences(device).run();
}

std::vector<AxisWork> axisWork(const DeviceFunction& device, const Mesh& mesh)
{
    const Function& function = device.function;
    const std::vector<AxisSet> differing = differingAxes(device);
    std::vector<AxisWork> work(mesh.axes().size());
    for (std::size_t axis = 0; axis < work.size(); ++axis) {
        work[axis].axis = axis;
        work[axis].isUsed = std::any_of(differing.begin(), differing.end(),
            [axis](const AxisSet& axes) { return axes.contains(static_cast<std::int32_t>(axis)); });
    }
    std::vector<std::pair<ValueId, double>> largest(work.size());
    const auto visit = [&](const auto& self, BlockId block, double times) -> void {
        for (const OpId id : function[block].ops) {
            const Op& op = function[id];
            for (const BlockId body : op.bodies)
                self(self, body, times * static_cast<double>(blockRuns(op)));
            if (op.kind != OpKind::DotGeneral)
                continue;
            const double flops = times * productFlops(function, op);
            for (AxisWork& each : work) {
                const auto differs
                    = [&](ValueId value) { return differing[value.at()].contains(static_cast<std::int32_t>(each.axis)); };
                each.flops += flops;
                if (differs(op.results.front()) || std::any_of(op.operands.begin(), op.operands.end(), differs))
                    continue;
                each.alikeFlops += flops;
                if (flops > largest[each.axis].second)
                    largest[each.axis] = {op.results.front(), flops};
            }
        }
    };
    visit(visit, BlockId(std::int32_t{0}), 1.0);
    for (AxisWork& each : work) {
        if (const ValueId value = largest[each.axis].first; value.valid())
            each.largestAlike = nameNear(function, value);
    }
    return work;
}

std::optional<Problem> axisProblem(const AxisWork& work, const Mesh& mesh)
{
    constexpr double kWorthANote = 1.0 / 3.0;
    constexpr double kWorthAWarning = 0.5;
    const MeshAxis& axis = mesh.axes()[work.axis];
    const double part = work.flops > 0.0 ? work.alikeFlops / work.flops : 0.0;
    if (axis.size == 1 || (work.isUsed && part < kWorthANote))
        return std::nullopt;
    Problem problem;
    problem.id = work.isUsed ? "MW1271" : "MW1270";
    problem.severity = !work.isUsed || part >= kWorthAWarning ? Severity::Warning : Severity::Note;
    problem.place.path = "mesh." + axis.name;
    const std::string often = axis.size == 2 ? std::string("twice") : fmt::format("{} times", axis.size);
    if (work.isUsed) {
        const double without = work.flops - work.alikeFlops + work.alikeFlops / static_cast<double>(axis.size);
        problem.message = fmt::format(
            "{:.0f} % of the FLOPs are computed {}, once by each device along \"{}\"", 100.0 * part, often, axis.name);
        problem.rule = fmt::format("each device computes {} in products; with no work done twice it would be {}",
            flopText(work.flops), flopText(without));
        problem.fix
            = fmt::format("let the axis split a dimension of those products; the largest makes \"{}\"", work.largestAlike);
        return problem;
    }
    const std::int64_t enough = mesh.deviceCount() / axis.size;
    const std::string devices = counted(enough, "device");
    problem.message = fmt::format(
        "the mesh axis \"{}\" splits nothing: all {} devices along it hold and compute the same", axis.name, axis.size);
    problem.rule = work.flops > 0.0 ? fmt::format("each of {} devices computes {}, all of it {}; {} could do the same work",
                       mesh.deviceCount(), flopText(work.flops), often, devices)
                                    : fmt::format("{} devices hold what {} could", mesh.deviceCount(), devices);
    problem.fix = "split the batch or the weights over it too, or leave it out of the mesh";
    return problem;
}

Problems unusedAxisWarnings(const DeviceFunction& device, const Mesh& mesh)
{
    Problems problems;
    for (const AxisWork& work : axisWork(device, mesh)) {
        auto problem = work.isUsed ? std::nullopt : axisProblem(work, mesh);
        if (problem)
            problems.push_back(*std::move(problem));
    }
    return problems;
}

} // namespace meshwright
