// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/axis_use.h"

#include "core/program/transform.h"
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
            if (op.kind == OpKind::Repeat) {
                visitRepeat(op);
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

    void visitRepeat(const Op& op)
    {
        const Block& body = m_function[op.bodies.front()];
        const std::size_t carries = op.as<RepeatAttributes>().carries;
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            grow(body.arguments[i], m_sets[op.operands[i].at()]);
        for (bool changed = true; changed;) {
            visit(op.bodies.front());
            changed = false;
            for (std::size_t i = 0; i < carries; ++i)
                changed = grow(body.arguments[i], m_sets[body.results[i].at()]) || changed;
        }
        for (std::size_t i = 0; i < op.results.size(); ++i)
            grow(op.results[i], m_sets[i < carries ? body.arguments[i].at() : body.results[i].at()]);
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
                if (!differs(op.results.front()) && std::none_of(op.operands.begin(), op.operands.end(), differs))
                    each.alikeFlops += flops;
            }
        }
    };
    visit(visit, BlockId(std::int32_t{0}), 1.0);
    return work;
}

Problems unusedAxisWarnings(const DeviceFunction& device, const Mesh& mesh)
{
    Problems problems;
    for (const AxisWork& work : axisWork(device, mesh)) {
        const MeshAxis& axis = mesh.axes()[work.axis];
        if (work.isUsed || axis.size == 1)
            continue;
        Problem& problem = problems.emplace_back();
        problem.id = "MW1263";
        problem.severity = Severity::Warning;
        problem.message
            = fmt::format("nothing uses the mesh axis \"{}\": its {} devices hold and compute the same", axis.name, axis.size);
        if (work.flops > 0.0)
            problem.rule = fmt::format("each of {} devices computes {}, all of it {}", mesh.deviceCount(), flopText(work.flops),
                axis.size == 2 ? std::string("twice") : fmt::format("{} times", axis.size));
        problem.fix = "split the batch or the weights over it as well, or leave the axis out of the mesh";
        problem.place.path = "mesh." + axis.name;
    }
    return problems;
}

} // namespace meshwright
