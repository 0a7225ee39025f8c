// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/verify.h"

#include "core/program/kept_blocks.h"
#include "core/program/shape_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>
#include <span>
#include <string_view>

namespace meshwright {

namespace {

class FunctionVerifier {
public:
    FunctionVerifier(const Function& function, const std::vector<NamedMesh>& meshes)
        : m_function(function)
        , m_meshes(meshes)
        , m_defined(function.values.size(), false)
    {
    }

    Problems run()
    {
        verifyNames();
        verifyBlock(BlockId(std::int32_t{0}));
        for (const ValueId argument : m_function.arguments())
            verifySharding(argument);
        return std::move(m_problems);
    }

private:
    void report(const char* id, const std::string& message)
    {
        m_problems.push_back({id, message, {}, Place{{}, 0, 0, m_function.name}});
    }

    void verifyNames()
    {
        std::set<std::string_view> seen;
        const auto check = [&](ValueId id) {
            const std::string& name = m_function[id].name;
            if (!name.empty() && !seen.insert(name).second)
                report("MW1309", fmt::format("two values are named \"{}\"", name));
        };
        for (const ValueId argument : m_function.arguments())
            check(argument);
    }

    void verifyBlock(BlockId block)
    {
        for (const ValueId argument : m_function[block].arguments)
            m_defined[argument.at()] = true;
        for (const OpId op : m_function[block].ops) {
            verifyOp(m_function[op]);
            for (const ValueId result : m_function[op].results) {
                m_defined[result.at()] = true;
                verifySharding(result);
            }
        }
        for (const ValueId result : m_function[block].results)
            verifyUse(result, "the end of the block");
    }

    /// Its name, or its number: what is not sound cannot be called by what makes it.
    std::string called(ValueId value) const
    {
        const std::string& name = m_function[value].name;
        return name.empty() ? fmt::format("%{}", value.index) : name;
    }

    void verifyUse(ValueId value, const std::string& where)
    {
        if (!value.valid() || value.at() >= m_defined.size() || !m_defined[value.at()])
            report("MW1305",
                fmt::format("{} uses {} before it is defined", where,
                    value.valid() && value.at() < m_defined.size() ? called(value) : "an unknown value"));
    }

    void verifyOp(const Op& op)
    {
        const std::size_t before = m_problems.size();
        for (const ValueId operand : op.operands)
            verifyUse(operand, std::string(opName(op)));
        if (m_problems.size() != before)
            return;

        std::vector<TensorType> operands;
        for (const ValueId operand : op.operands)
            operands.push_back(m_function[operand].type);
        const auto expected = resultTypes(op.kind, op.attributes, operands);
        if (!expected) {
            append(m_problems, expected.error());
            return;
        }
        switch (op.kind) {
        case OpKind::Repeat:
            return verifyRepeat(op);
        case OpKind::While:
            return verifyWhile(op);
        case OpKind::Case:
            return verifyCase(op);
        case OpKind::Computation:
            return verifyComputation(op);
        default:
            if (isKept(op.kind))
                verifyOther(op);
            else if (!op.bodies.empty())
                report("MW1307", fmt::format("{}: takes no blocks", opName(op)));
            break;
        }
        compareResults(op, *expected);
    }

    void compareResults(const Op& op, const std::vector<TensorType>& expected)
    {
        bool same = expected.size() == op.results.size();
        for (std::size_t i = 0; same && i < expected.size(); ++i)
            same = m_function[op.results[i]].type == expected[i];
        if (!same)
            report("MW1306", fmt::format("{}: the results' types are not what the op makes", opName(op)));
    }

    std::vector<TensorType> typesOf(std::span<const ValueId> values) const
    {
        std::vector<TensorType> types;
        for (const ValueId value : values)
            types.push_back(m_function[value].type);
        return types;
    }

    /// The block's results; its arguments must be of these types.
    std::vector<TensorType> verifyBody(const Op& op, BlockId id, const std::vector<TensorType>& arguments)
    {
        verifyBlockFresh(id);
        if (typesOf(m_function[id].arguments) != arguments)
            report("MW1307", fmt::format("{}: the arguments of a block are not its operands", opName(op)));
        return typesOf(m_function[id].results);
    }

    void verifyWhile(const Op& op)
    {
        const std::vector<TensorType> operands = typesOf(op.operands);
        const auto carries = static_cast<std::ptrdiff_t>(op.as<WhileAttributes>().carries);
        const std::vector<TensorType> carried(operands.begin(), operands.begin() + carries);
        if (op.bodies.size() != 2)
            return report("MW1307", "while: needs a condition and a body");
        if (verifyBody(op, op.bodies[0], operands) != std::vector<TensorType>{{DType::Pred, {}}})
            report("MW1307", "while: the condition does not yield a boolean");
        if (verifyBody(op, op.bodies[1], operands) != carried)
            report("MW1307", "while: the body does not yield the carries");
        compareResults(op, carried);
    }

    void verifyCase(const Op& op)
    {
        const std::vector<TensorType> operands = typesOf(op.operands);
        const std::size_t branches = operands.front().dtype == DType::Pred ? 2 : 1;
        if (op.bodies.size() < branches || (branches == 2 && op.bodies.size() > 2))
            return report("MW1307", fmt::format("case: {} branches", op.bodies.size()));
        const std::vector<TensorType> arguments(operands.begin() + 1, operands.end());
        for (const BlockId body : op.bodies)
            compareResults(op, verifyBody(op, body, arguments));
    }

    /// One value inside a computation is one device's piece, over the manual axes, of the value outside.
    bool isPiece(const ComputationAttributes& computation, const TensorSharding* sharding, ValueId whole, ValueId piece) const
    {
        const TensorType& type = m_function[whole].type;
        const auto local = sharding != nullptr ? manualPiece(type, *sharding, computation.manualAxes) : type;
        return local == m_function[piece].type;
    }

    void verifyComputation(const Op& op)
    {
        const auto& computation = op.as<ComputationAttributes>();
        if (op.bodies.size() != 1)
            return report("MW1307", fmt::format("{}: needs one block", opName(op)));
        const Block& body = m_function[op.bodies.front()];
        bool fits = body.arguments.size() == op.operands.size() && body.results.size() == op.results.size()
            && (computation.outShardings.empty() || computation.outShardings.size() == op.results.size())
            && std::is_sorted(computation.manualAxes.begin(), computation.manualAxes.end());
        for (std::size_t i = 0; fits && i < computation.outShardings.size(); ++i)
            fits = computation.outShardings[i].dims.size() == m_function[op.results[i]].type.shape.size();
        if (!fits)
            return report("MW1307", fmt::format("{}: the block's arguments or results do not fit the op", opName(op)));
        verifyBlockFresh(op.bodies.front());
        const auto shardingAt = [](const std::vector<TensorSharding>& shardings, std::size_t i) {
            return shardings.empty() ? nullptr : &shardings[i];
        };
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            if (!isPiece(computation, shardingAt(computation.inShardings, i), op.operands[i], body.arguments[i]))
                report("MW1307",
                    fmt::format("{}: argument {} of its block is not a piece of {}", opName(op), i,
                        typeText(m_function[op.operands[i]].type)));
        }
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            if (!isPiece(computation, shardingAt(computation.outShardings, i), op.results[i], body.results[i]))
                report("MW1307",
                    fmt::format("{}: result {} of its block is not a piece of {}", opName(op), i,
                        typeText(m_function[op.results[i]].type)));
        }
    }

    /// Blocks of kept ops may be anything, but what they use of the outside comes last among their arguments.
    void verifyOther(const Op& op)
    {
        const std::size_t captures = op.as<OtherAttributes>().captures;
        const std::vector<TensorType> captured = typesOf(std::span(op.operands).last(captures));
        for (const BlockId body : op.bodies) {
            verifyBlockFresh(body);
            const auto& arguments = m_function[body].arguments;
            if (arguments.size() < captures || typesOf(std::span(arguments).last(captures)) != captured)
                report(
                    "MW1307", fmt::format("{}: the arguments of a block do not end in what it uses of the outside", opName(op)));
        }
        if (const auto problem = blocksProblem(m_function, op))
            report("MW1307", problem->message);
    }

    void verifyRepeat(const Op& op)
    {
        const auto& attributes = op.as<RepeatAttributes>();
        if (op.bodies.size() != 1)
            return report("MW1307", "repeat: needs one body");
        const Block& body = m_function[op.bodies.front()];
        if (body.arguments.size() != op.operands.size() || body.results.size() < attributes.carries
            || body.results.size() != op.results.size())
            return report("MW1307", "repeat: the body's arguments or results do not fit the op");
        verifyBlockFresh(op.bodies.front());

        std::vector<TensorType> expected;
        for (std::size_t i = 0; i < body.results.size(); ++i) {
            TensorType type = m_function[body.results[i]].type;
            if (i < attributes.carries) {
                if (type != m_function[body.arguments[i]].type || type != m_function[op.operands[i]].type)
                    report("MW1307",
                        fmt::format("repeat: carry {} changes its type from {} to {}", i,
                            typeText(m_function[op.operands[i]].type), typeText(type)));
            } else {
                type.shape.insert(type.shape.begin(), attributes.count);
            }
            expected.push_back(std::move(type));
        }
        compareResults(op, expected);
    }

    /// A body is verified with nothing defined but its own arguments.
    void verifyBlockFresh(BlockId body)
    {
        std::vector<bool> outside(m_function.values.size(), false);
        std::swap(outside, m_defined);
        verifyBlock(body);
        std::swap(outside, m_defined);
    }

    void verifySharding(ValueId id)
    {
        const Value& value = m_function[id];
        if (!value.sharding)
            return;
        const TensorSharding& sharding = *value.sharding;
        const auto fail
            = [&](const std::string& what) { report("MW1308", fmt::format("the sharding of {}: {}", called(id), what)); };
        if (sharding.mesh < 0 || static_cast<std::size_t>(sharding.mesh) >= m_meshes.size())
            return fail("unknown mesh");
        if (sharding.dims.size() != value.type.shape.size())
            return fail(fmt::format("{} dimensions for {}", sharding.dims.size(), typeText(value.type)));

        const Mesh& mesh = m_meshes[static_cast<std::size_t>(sharding.mesh)].mesh;
        AxisRefs all = sharding.replicated;
        all.insert(all.end(), sharding.unreduced.begin(), sharding.unreduced.end());
        for (const DimSharding& dim : sharding.dims)
            all.insert(all.end(), dim.axes.begin(), dim.axes.end());
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto axis = static_cast<std::size_t>(all[i].axis);
            if (all[i].axis < 0 || axis >= mesh.axes().size())
                return fail("an axis is not in the mesh");
            if (all[i].pre < 1 || all[i].size < 1 || mesh.axes()[axis].size % (all[i].pre * all[i].size) != 0)
                return fail(fmt::format("{} does not divide its axis", axisText(all[i], mesh)));
            for (std::size_t j = 0; j < i; ++j) {
                if (overlaps(all[i], all[j]))
                    return fail(fmt::format("{} is used twice", axisText(all[i], mesh)));
                if (!areIndependent(all[i], all[j]))
                    return fail(fmt::format("{} and {} do not belong to one factorisation of their axis", axisText(all[j], mesh),
                        axisText(all[i], mesh)));
            }
        }
    }

    const Function& m_function;
    const std::vector<NamedMesh>& m_meshes;
    std::vector<bool> m_defined;
    Problems m_problems;
};

} // namespace

Problems verify(const Function& function, const std::vector<NamedMesh>& meshes)
{
    if (function.blocks.empty())
        return {{"MW1307", "a function needs a body", {}, Place{{}, 0, 0, function.name}}};
    return FunctionVerifier(function, meshes).run();
}

namespace {

std::atomic<bool>& passesAreVerified()
{
    static std::atomic<bool> verified = [] {
        const char* wanted = std::getenv("MESHWRIGHT_VERIFY_PASSES");
        return wanted != nullptr && std::string_view(wanted) == "1";
    }();
    return verified;
}

} // namespace

bool verifiesPasses()
{
    return passesAreVerified();
}

void setVerifyPasses(bool on)
{
    passesAreVerified() = on;
}

Problems faultsAfter(const char* pass, const Function& function, const std::vector<NamedMesh>& meshes)
{
    Problems faults;
    if (!verifiesPasses())
        return faults;
    for (const Problem& fault : verify(function, meshes))
        faults.push_back({"MW1215",
            fmt::format("after {}, the function \"{}\" is not well formed: {} {}", pass, function.name, fault.id, fault.message),
            "report it with the command and its files"});
    return faults;
}

Problems verify(const Program& program)
{
    Problems problems;
    std::set<std::string_view> names;
    for (const Function& function : program.functions) {
        if (!names.insert(function.name).second)
            problems.push_back({"MW1309", fmt::format("two functions are named \"{}\"", function.name)});
        append(problems, verify(function, program.meshes));
    }
    return problems;
}

} // namespace meshwright
