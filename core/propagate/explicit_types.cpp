// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/explicit_types.h"

#include "core/program/transform.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

/// Types a function, block by block.
class ExplicitChecker {
public:
    ExplicitChecker(Function& function, const std::vector<NamedMesh>& meshes, const ExplicitChooser* chooser)
        : m_function(function)
        , m_meshes(meshes)
        , m_chooser(chooser)
        , m_types(function.values.size())
    {
    }

    std::vector<ExplicitFinding> run()
    {
        findConstraints();
        for (const ValueId argument : m_function.arguments())
            m_types[argument.at()] = annotated(argument).value_or(replicated(argument));
        walk(BlockId(std::int32_t{0}));
        writeBack();
        return std::move(m_findings);
    }

private:
    // --- annotations

    /// For each value whose only use is a constraint, that constraint.
    void findConstraints()
    {
        const std::vector<std::size_t> uses = useCounts(m_function);
        m_constraintOf.resize(m_function.values.size());
        forEachOp(m_function, [&](OpId id) {
            const Op& op = m_function[id];
            if (op.kind == OpKind::ShardingConstraint && uses[op.operands.front().at()] == 1)
                m_constraintOf[op.operands.front().at()] = id;
        });
    }

    const Mesh& meshOf(const TensorSharding& sharding) const { return m_meshes[static_cast<std::size_t>(sharding.mesh)].mesh; }

    TensorSharding replicated(ValueId value) const { return TensorSharding::replicatedOf(m_function[value].type.shape.size()); }

    /// A user's sharding as the part of a type; nothing, with a finding, when it does not fit.
    std::optional<TensorSharding> typeFrom(TensorSharding sharding, ValueId value, OpId op)
    {
        const Shape& shape = m_function[value].type.shape;
        if (sharding.mesh < 0 || static_cast<std::size_t>(sharding.mesh) >= m_meshes.size()
            || sharding.dims.size() != shape.size()) {
            find({"MW1203",
                     fmt::format(
                         "the sharding of {} does not fit {}", valueText(m_function, value), typeText(m_function[value].type)),
                     "write it for this value and its mesh"},
                op);
            return std::nullopt;
        }
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            DimSharding& own = sharding.dims[dim];
            own.open = false;
            own.priority = 0;
            const std::int64_t pieces = shardCount(own.axes);
            if (shape[dim] % pieces == 0)
                continue;
            find({"MW1104",
                     fmt::format(
                         "Sharding spec {} implies that array axis {} is partitioned {} times, but does not evenly divide the "
                         "dimension size {} of {}",
                         layoutText(sharding, meshOf(sharding)), dim, pieces, shape[dim], valueText(m_function, value)),
                     fmt::format("a size of {}, or another spec", divisibleSizesText(shape[dim], pieces))},
                op);
            own.axes.clear();
        }
        sharding.replicated.clear();
        return sharding;
    }

    std::optional<TensorSharding> annotated(ValueId value)
    {
        const Value& known = m_function[value];
        return known.sharding ? typeFrom(*known.sharding, value, known.producer) : std::nullopt;
    }

    /// What the user asks of the op's one result.
    std::optional<TensorSharding> asked(const Op& op)
    {
        if (op.results.size() != 1)
            return std::nullopt;
        const ValueId result = op.results.front();
        if (auto own = annotated(result))
            return own;
        const OpId constraint = m_constraintOf[result.at()];
        if (!constraint.valid())
            return std::nullopt;
        return typeFrom(
            m_function[constraint].as<ConstraintAttributes>().sharding, m_function[constraint].results.front(), constraint);
    }

    // --- findings

    void find(Problem problem, OpId op)
    {
        const auto same = [&](const ExplicitFinding& known) {
            return known.op == op && known.problem.id == problem.id && known.problem.message == problem.message;
        };
        if (std::none_of(m_findings.begin(), m_findings.end(), same))
            m_findings.push_back({std::move(problem), op, {}, {}});
    }

    /// What the op makes of its operands as they are, summed up; nothing when it cannot take them so.
    static ExplicitSharding plainResult(const ExplicitFinding& finding)
    {
        for (const ExplicitChoice& choice : finding.choices) {
            if (choice.operands == finding.operands && choice.result.dims == choice.computed.dims
                && choice.result.unreduced.empty())
                return choice.result;
        }
        return std::nullopt;
    }

    /// The types to go on with after an error.
    void settle(const Op& op, OpId id, ExplicitAnswer answer, std::vector<ExplicitSharding> operands, const Mesh& mesh)
    {
        ExplicitFinding finding{*std::move(answer.problem), id, std::move(operands), std::move(answer.choices)};
        if (finding.problem.place.path.empty() && !op.results.empty())
            finding.problem.place.path = valueText(m_function, op.results.front());
        ExplicitSharding next = plainResult(finding);
        if (!finding.choices.empty() && m_chooser != nullptr) {
            m_chooser->settle(m_function, mesh, finding);
        } else if (!finding.choices.empty()) {
            std::vector<std::string> legal;
            for (const ExplicitChoice& choice : finding.choices) {
                const std::string text = layoutText(choice.result, mesh);
                if (std::find(legal.begin(), legal.end(), text) == legal.end())
                    legal.push_back(text);
            }
            finding.problem.fix += "; legal results: " + join(legal, ", ");
        }
        if (!next && !finding.choices.empty())
            next = finding.choices.front().result;
        for (const ValueId result : op.results) {
            const bool fits = next && next->dims.size() == m_function[result].type.shape.size();
            m_types[result.at()] = fits ? *next : replicated(result);
        }
        if (next)
            finding.problem.fix += fmt::format("; the rest is checked with {}", layoutText(*next, mesh));
        m_findings.push_back(std::move(finding));
    }

    // --- ops

    void walk(BlockId block)
    {
        // By index: findings and types change, the function does not.
        for (const OpId id : m_function[block].ops)
            visit(id, m_function[id]);
    }

    void visit(OpId id, const Op& op)
    {
        switch (op.kind) {
        case OpKind::ShardingConstraint:
            m_types[op.results.front().at()] = typeFrom(op.as<ConstraintAttributes>().sharding, op.results.front(), id)
                                                   .value_or(replicated(op.results.front()));
            return;
        case OpKind::Repeat:
            return visitLoop(id, op, op.as<RepeatAttributes>().carries, op.as<RepeatAttributes>().stacked, "scan body function");
        case OpKind::While:
            return visitLoop(id, op, op.as<WhileAttributes>().carries, 0, "while_loop body function");
        case OpKind::Case:
            return visitCase(id, op);
        case OpKind::Computation:
            return visitComputation(op);
        case OpKind::Receive:
            for (const ValueId result : op.results)
                m_types[result.at()] = annotated(result).value_or(replicated(result));
            return;
        default:
            break;
        }
        if (isCollective(op.kind)) { // they say themselves what they make
            for (const ValueId result : op.results)
                m_types[result.at()] = annotated(result).value_or(replicated(result));
            return;
        }
        visitPlain(id, op);
    }

    void visitPlain(OpId id, const Op& op)
    {
        std::vector<TensorType> operandTypes;
        std::vector<TensorType> resultTypes;
        std::vector<ExplicitSharding> operands;
        std::int32_t mesh = -1;
        bool oneMesh = true;
        const auto meet = [&](const ExplicitSharding& sharding) {
            if (!sharding || sharding->isReplicated())
                return;
            oneMesh = oneMesh && (mesh < 0 || meshOf(*sharding) == m_meshes[static_cast<std::size_t>(mesh)].mesh);
            mesh = mesh < 0 ? sharding->mesh : mesh;
        };
        for (const ValueId operand : op.operands) {
            operandTypes.push_back(m_function[operand].type);
            operands.push_back(m_types[operand.at()]);
            meet(operands.back());
        }
        for (const ValueId result : op.results)
            resultTypes.push_back(m_function[result].type);
        const std::optional<TensorSharding> out = asked(op);
        if (!oneMesh) {
            find({"MW1212", "Mesh for all inputs should be equal: the operands are on different meshes",
                     "reshard them to one mesh"},
                id);
            for (const ValueId result : op.results)
                m_types[result.at()] = replicated(result);
            return;
        }
        if (out)
            meet(out);
        mesh = std::max(mesh, 0);
        for (ExplicitSharding& operand : operands) {
            if (operand)
                operand->mesh = mesh;
        }
        ExplicitSharding wanted = out;
        if (wanted)
            wanted->mesh = mesh;
        static const Mesh kNone;
        const Mesh& where = m_meshes.empty() ? kNone : m_meshes[static_cast<std::size_t>(mesh)].mesh;
        ExplicitAnswer answer = explicitTypes({op.kind, op.attributes, operandTypes, resultTypes, operands, wanted, where});
        if (answer.problem)
            return settle(op, id, std::move(answer), std::move(operands), where);
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            const auto own = annotated(op.results[i]);
            m_types[op.results[i].at()] = own ? own : answer.results[i];
        }
    }

    std::string typed(ValueId value, const ExplicitSharding& type) const
    {
        return fmt::format(
            "{} {}", typeText(m_function[value].type), type && !m_meshes.empty() ? layoutText(*type, meshOf(*type)) : "P()");
    }

    static bool sameType(const ExplicitSharding& a, const ExplicitSharding& b)
    {
        return !a || !b || (a->dims == b->dims && a->unreduced == b->unreduced);
    }

    void visitLoop(OpId id, const Op& op, std::size_t carries, std::size_t stacked, const char* body)
    {
        const Block& block = m_function[op.bodies.back()];
        std::vector<ExplicitSharding> inside;
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            ExplicitSharding type = m_types[op.operands[i].at()];
            if (type && i >= carries && i < carries + stacked) {
                if (!type->dims.front().axes.empty())
                    find({"MW1259",
                             fmt::format("0th dimension of all xs should be replicated. Got {}", typed(op.operands[i], type)),
                             "reshard it so that the scanned dimension is whole"},
                        id);
                type->dims.erase(type->dims.begin());
            }
            inside.push_back(std::move(type));
        }
        const std::size_t before = m_findings.size();
        for (int round = 0; round < 2; ++round) {
            for (const BlockId each : op.bodies) {
                const auto& arguments = m_function[each].arguments;
                for (std::size_t i = 0; i < arguments.size() && i < inside.size(); ++i)
                    m_types[arguments[i].at()] = inside[i];
                walk(each);
            }
            // A carry that begins as a constant has the type that the body gives it.
            bool again = false;
            for (std::size_t i = 0; i < carries; ++i) {
                const ExplicitSharding& yielded = m_types[block.results[i].at()];
                if (!inside[i] && yielded) {
                    inside[i] = yielded;
                    again = round == 0;
                }
            }
            if (!again)
                break;
            m_findings.resize(before, {});
        }
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            ExplicitSharding yielded = m_types[block.results[i].at()];
            if (i >= carries) {
                if (yielded)
                    yielded->dims.insert(yielded->dims.begin(), DimSharding());
                m_types[op.results[i].at()] = std::move(yielded);
                continue;
            }
            if (!sameType(inside[i], yielded))
                find({"MW1259",
                         fmt::format(
                             "{} carry input and carry output must have equal types, but they differ: carry {} has type {} but "
                             "comes out as {}",
                             body, i, typed(op.operands[i], inside[i]), typed(block.results[i], yielded)),
                         "reshard what the body returns to the sharding that goes in"},
                    id);
            m_types[op.results[i].at()] = inside[i];
        }
    }

    void visitCase(OpId id, const Op& op)
    {
        for (const BlockId branch : op.bodies) {
            const auto& arguments = m_function[branch].arguments;
            const std::size_t first = op.operands.size() - arguments.size();
            for (std::size_t i = 0; i < arguments.size(); ++i)
                m_types[arguments[i].at()] = m_types[op.operands[first + i].at()];
            walk(branch);
        }
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            ExplicitSharding& type = m_types[op.results[i].at()];
            type.reset();
            for (std::size_t branch = 0; branch < op.bodies.size(); ++branch) {
                const ValueId given = m_function[op.bodies[branch]].results[i];
                const ExplicitSharding& other = m_types[given.at()];
                if (!sameType(type, other))
                    find({"MW1259",
                             fmt::format("cond branches must have equal output types but they differ: output {} of branch {} is "
                                         "{}, before "
                                         "it was {}",
                                 i, branch, typed(given, other), typed(given, type)),
                             "reshard the output of one branch"},
                        id);
                if (!type)
                    type = other;
            }
        }
    }

    void visitComputation(const Op& op)
    {
        const auto& computation = op.as<ComputationAttributes>();
        const Block& block = m_function[op.bodies.front()];
        for (std::size_t i = 0; i < block.arguments.size(); ++i) {
            ExplicitSharding type
                = i < computation.inShardings.size() ? computation.inShardings[i] : m_types[op.operands[i].at()];
            for (DimSharding& dim : type ? type->dims : m_noDims) {
                dim.open = false;
                std::erase_if(dim.axes, [&](const AxisRef& axis) {
                    return std::binary_search(computation.manualAxes.begin(), computation.manualAxes.end(), axis.axis);
                });
            }
            m_types[block.arguments[i].at()] = std::move(type);
        }
        walk(op.bodies.front());
        for (std::size_t i = 0; i < op.results.size(); ++i)
            m_types[op.results[i].at()] = i < computation.outShardings.size() ? ExplicitSharding(computation.outShardings[i])
                                                                              : m_types[block.results[i].at()];
    }

    void writeBack()
    {
        if (m_meshes.empty())
            return;
        for (std::size_t i = 0; i < m_types.size(); ++i) {
            TensorSharding type = m_types[i].value_or(replicated(ValueId(i)));
            for (DimSharding& dim : type.dims)
                dim.open = false;
            m_function.values[i].sharding = std::move(type);
        }
        m_function.resultShardings.resize(m_function.results().size());
        for (std::size_t i = 0; i < m_function.results().size(); ++i) {
            if (!m_function.resultShardings[i])
                m_function.resultShardings[i] = m_function[m_function.results()[i]].sharding;
        }
    }

    Function& m_function;
    const std::vector<NamedMesh>& m_meshes;
    const ExplicitChooser* m_chooser;
    std::vector<ExplicitSharding> m_types; ///< of each value
    std::vector<OpId> m_constraintOf;
    std::vector<ExplicitFinding> m_findings;
    std::vector<DimSharding> m_noDims;
};

} // namespace

std::vector<ExplicitFinding> checkExplicitTypes(
    Function& function, const std::vector<NamedMesh>& meshes, const ExplicitChooser* chooser)
{
    if (function.blocks.empty())
        return {};
    return ExplicitChecker(function, meshes, chooser).run();
}

} // namespace meshwright
