// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/varying.h"

#include "core/program/transform.h"

#include <algorithm>

namespace meshwright {

namespace {

constexpr const char* kVaried = "meshwright.varied";

AxisSet united(AxisSet a, const AxisSet& b)
{
    a.insert(b.begin(), b.end());
    return a;
}

AxisSet without(AxisSet a, const AxisSet& b)
{
    for (const std::int32_t axis : b)
        a.erase(axis);
    return a;
}

/// The axes of `all` along which the collective moves data.
AxisSet touchedBy(const BodyCollective& collective, const Mesh& mesh, const AxisSet& all)
{
    AxisSet touched;
    for (const std::int32_t axis : axesTouched(collective, mesh)) {
        if (all.contains(axis))
            touched.insert(axis);
    }
    return touched;
}

AxisSet manualAxesOf(const Op& computation)
{
    const auto& axes = computation.as<ComputationAttributes>().manualAxes;
    return {axes.begin(), axes.end()};
}

/// True for collectives after which all members of a group have the same, where the groups are those of whole axes.
bool makesEqual(const BodyCollective& collective, const Mesh& mesh)
{
    return (collective.kind == OpKind::AllReduce || collective.kind == OpKind::AllGather)
        && axesOfGroups(collective.groups, mesh).has_value();
}

class Analysis {
public:
    Analysis(const Function& function, OpId computation, const Mesh& mesh)
        : m_function(function)
        , m_op(function[computation])
        , m_mesh(mesh)
        , m_sets(function.values.size())
        , m_all(manualAxesOf(m_op))
    {
    }

    std::vector<AxisSet> run()
    {
        const auto& computation = m_op.as<ComputationAttributes>();
        const BlockId body = m_op.bodies.front();
        for (std::size_t i = 0; i < m_op.operands.size(); ++i) {
            for (const DimSharding& dim : computation.inShardings[i].dims) {
                for (const AxisRef& axis : dim.axes) {
                    if (m_all.contains(axis.axis))
                        m_sets[m_function[body].arguments[i].at()].insert(axis.axis);
                }
            }
        }
        visit(body);
        return std::move(m_sets);
    }

private:
    AxisSet& at(ValueId value) { return m_sets[value.at()]; }

    void visit(BlockId block)
    {
        for (const OpId id : m_function[block].ops) {
            const Op& op = m_function[id];
            if (op.kind == OpKind::Repeat) {
                visitRepeat(op);
                continue;
            }
            if (op.kind == OpKind::Computation) {
                visitComputation(op);
                continue;
            }
            if (op.kind == OpKind::Case) {
                visitCase(op);
                continue;
            }
            const AxisSet made = resultOf(op);
            for (const ValueId result : op.results)
                at(result) = made;
        }
    }

    AxisSet resultOf(const Op& op)
    {
        AxisSet operands;
        for (const ValueId operand : op.operands)
            operands = united(std::move(operands), at(operand));
        if (isPartitionId(op))
            return m_all;
        if (const auto axes = axesOfPlace(m_function, op, m_mesh)) {
            AxisSet differing(axes->begin(), axes->end());
            std::erase_if(differing, [&](std::int32_t axis) { return !m_all.contains(axis); });
            return differing;
        }
        if (isVaried(op)) {
            for (const AxisRef& axis : variedAxes(op, m_mesh)) {
                if (m_all.contains(axis.axis))
                    operands.insert(axis.axis);
            }
            return operands;
        }
        if (isBodyCollective(op)) {
            const BodyCollective collective = valueOf(bodyCollective(m_function, op, m_mesh));
            const AxisSet touched = touchedBy(collective, m_mesh, m_all);
            return makesEqual(collective, m_mesh) ? without(std::move(operands), touched) : united(std::move(operands), touched);
        }
        // What loops without a count in the body do with devices is not looked into.
        return opInfo(op.kind).opClass == OpClass::Control ? m_all : operands;
    }

    /// One inside of this one, manual over other axes: along these its body is nothing but ops.
    void visitComputation(const Op& op)
    {
        const Block& body = m_function[op.bodies.front()];
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            at(body.arguments[i]) = at(op.operands[i]);
        visit(op.bodies.front());
        for (std::size_t i = 0; i < op.results.size(); ++i)
            at(op.results[i]) = at(body.results[i]);
    }

    /// Devices that take other branches have other values.
    void visitCase(const Op& op)
    {
        const AxisSet choice = at(op.operands.front());
        for (const ValueId result : op.results)
            at(result) = choice;
        for (const BlockId branch : op.bodies) {
            const Block& body = m_function[branch];
            for (std::size_t i = 0; i < body.arguments.size(); ++i)
                at(body.arguments[i]) = united(at(op.operands[i + 1]), choice);
            visit(branch);
            for (std::size_t i = 0; i < op.results.size(); ++i)
                at(op.results[i]) = united(at(op.results[i]), at(body.results[i]));
        }
    }

    void visitRepeat(const Op& op)
    {
        const std::size_t carries = op.as<RepeatAttributes>().carries;
        const Block& body = m_function[op.bodies.front()];
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            at(body.arguments[i]) = at(op.operands[i]);
        for (bool changed = true; changed;) {
            visit(op.bodies.front());
            changed = false;
            for (std::size_t i = 0; i < carries; ++i) {
                AxisSet grown = united(at(body.arguments[i]), at(body.results[i]));
                changed = changed || grown != at(body.arguments[i]);
                at(body.arguments[i]) = std::move(grown);
            }
        }
        for (std::size_t i = 0; i < op.results.size(); ++i)
            at(op.results[i]) = at(i < carries ? body.arguments[i] : body.results[i]);
    }

    const Function& m_function;
    const Op& m_op;
    const Mesh& m_mesh;
    std::vector<AxisSet> m_sets;
    AxisSet m_all;
};

class Inserter {
public:
    Inserter(Function& function, OpId computation, const Mesh& mesh, const std::function<bool(ValueId)>& wanted)
        : m_function(function)
        , m_computation(computation)
        , m_mesh(mesh)
        , m_all(manualAxesOf(function[computation]))
        , m_wanted(wanted)
        , m_sets(varyingAxes(function, computation, mesh))
    {
    }

    void run()
    {
        const BlockId body = m_function[m_computation].bodies.front();
        rewrite(body);
        const auto computation = m_function[m_computation].as<ComputationAttributes>();
        for (std::size_t i = 0; i < m_function[body].results.size(); ++i) {
            AxisSet split = m_sets[m_function[body].results[i].at()];
            for (const DimSharding& dim : computation.outShardings[i].dims) {
                for (const AxisRef& axis : dim.axes) {
                    if (std::binary_search(computation.manualAxes.begin(), computation.manualAxes.end(), axis.axis))
                        split.insert(axis.axis);
                }
            }
            const ValueId varied = variedTo(m_function[body].results[i], split, body, m_function[body].ops);
            m_function[body].results[i] = varied;
        }
    }

private:
    void rewrite(BlockId block)
    {
        std::vector<OpId> ops;
        for (const OpId id : std::vector<OpId>(m_function[block].ops)) {
            if (m_function[id].kind == OpKind::Repeat)
                rewriteRepeat(id, block, ops);
            else if (m_function[id].kind == OpKind::Case)
                rewriteCase(id, block, ops);
            else if (m_function[id].kind == OpKind::Computation)
                rewrite(m_function[id].bodies.front());
            else if (opInfo(m_function[id].kind).opClass != OpClass::Control)
                unify(id, block, ops);
            ops.push_back(id);
        }
        m_function[block].ops = std::move(ops);
    }

    /// Gives all operands of an op the axes of any of them, and of the op itself.
    void unify(OpId id, BlockId block, std::vector<OpId>& ops)
    {
        AxisSet all;
        for (const ValueId operand : m_function[id].operands)
            all = united(std::move(all), m_sets[operand.at()]);
        if (isBodyCollective(m_function[id]))
            all = united(std::move(all), touchedBy(valueOf(bodyCollective(m_function, m_function[id], m_mesh)), m_mesh, m_all));
        for (std::size_t i = 0; i < m_function[id].operands.size(); ++i) {
            const ValueId varied = variedTo(m_function[id].operands[i], all, block, ops);
            m_function[id].operands[i] = varied;
        }
    }

    void rewriteRepeat(OpId id, BlockId block, std::vector<OpId>& ops)
    {
        const BlockId body = m_function[id].bodies.front();
        const std::size_t carries = m_function[id].as<RepeatAttributes>().carries;
        rewrite(body);
        for (std::size_t i = 0; i < carries; ++i) {
            const AxisSet carried = m_sets[m_function[body].arguments[i].at()];
            const ValueId initial = variedTo(m_function[id].operands[i], carried, block, ops);
            m_function[id].operands[i] = initial;
            const ValueId next = variedTo(m_function[body].results[i], carried, body, m_function[body].ops);
            m_function[body].results[i] = next;
        }
    }

    void rewriteCase(OpId id, BlockId block, std::vector<OpId>& ops)
    {
        const AxisSet choice = m_sets[m_function[id].operands.front().at()];
        for (std::size_t i = 1; i < m_function[id].operands.size(); ++i) {
            const ValueId operand = m_function[id].operands[i];
            const ValueId varied = variedTo(operand, united(m_sets[operand.at()], choice), block, ops);
            m_function[id].operands[i] = varied;
        }
        for (const BlockId branch : std::vector<BlockId>(m_function[id].bodies)) {
            rewrite(branch);
            for (std::size_t i = 0; i < m_function[id].results.size(); ++i) {
                const AxisSet made = m_sets[m_function[id].results[i].at()];
                const ValueId varied = variedTo(m_function[branch].results[i], made, branch, m_function[branch].ops);
                m_function[branch].results[i] = varied;
            }
        }
    }

    /// The value as one that differs over `axes`: itself, or through an op that is appended to `ops`.
    ValueId variedTo(ValueId value, const AxisSet& axes, BlockId block, std::vector<OpId>& ops)
    {
        const AxisSet missing = without(axes, m_sets[value.at()]);
        if (missing.empty() || !isWanted(value))
            return value;
        OtherAttributes attributes;
        attributes.name = kVaried;
        attributes.results = {m_function[value].type};
        KeptAttribute& named = attributes.attributes.emplace_back();
        named.name = "axes";
        named.integers.assign(missing.begin(), missing.end());
        Op op;
        op.kind = OpKind::Other;
        op.operands = {value};
        op.attributes = std::move(attributes);
        op.block = block;
        const OpId id(m_function.ops.size());
        const ValueId result(m_function.values.size());
        op.results = {result};
        Value made;
        made.type = m_function[value].type;
        made.role = m_function[value].role;
        made.block = block;
        made.producer = id;
        m_function.values.push_back(std::move(made));
        m_sets.push_back(axes);
        m_function.ops.push_back(std::move(op));
        ops.push_back(id);
        return result;
    }

    /// What was inserted for a computation around this one stands for its operand.
    bool isWanted(ValueId value) const
    {
        const OpId producer = m_function[value].producer;
        return producer.valid() && isVaried(m_function[producer]) ? isWanted(m_function[producer].operands.front())
                                                                  : m_wanted(value);
    }

    Function& m_function;
    OpId m_computation;
    const Mesh& m_mesh;
    AxisSet m_all;
    const std::function<bool(ValueId)>& m_wanted;
    std::vector<AxisSet> m_sets;
};

} // namespace

std::vector<AxisSet> varyingAxes(const Function& function, OpId computation, const Mesh& mesh)
{
    return Analysis(function, computation, mesh).run();
}

void insertVaried(Function& function, OpId computation, const Mesh& mesh, const std::function<bool(ValueId)>& wanted)
{
    Inserter(function, computation, mesh, wanted).run();
}

bool isVaried(const Op& op)
{
    return op.kind == OpKind::Other && op.as<OtherAttributes>().name == kVaried;
}

AxisRefs variedAxes(const Op& op, const Mesh& mesh)
{
    AxisRefs axes;
    for (const std::int64_t axis : findAttribute(op.as<OtherAttributes>().attributes, "axes")->integers)
        axes.push_back(wholeAxis(mesh, static_cast<std::size_t>(axis)));
    return axes;
}

void eraseVaried(Function& function)
{
    for (std::size_t block = 0; block < function.blocks.size(); ++block) {
        for (const OpId id : std::vector<OpId>(function.blocks[block].ops)) {
            if (!isVaried(function[id]))
                continue;
            replaceUses(function, function[id].results.front(), function[id].operands.front());
            std::erase(function.blocks[block].ops, id);
        }
    }
}

} // namespace meshwright
