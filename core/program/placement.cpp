// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/placement.h"

#include "core/program/other_op.h"

#include <algorithm>

namespace meshwright {

namespace {

constexpr BlockId kBody{std::int32_t{0}};

/// The block argument that an operand of a loop is in its body.
ValueId insideOf(const Function& function, const Op& loop, std::size_t operand)
{
    return function[loop.bodies.front()].arguments[operand];
}

class HostValues {
public:
    explicit HostValues(const Function& function)
        : m_function(function)
        , m_onHost(function.values.size(), false)
    {
    }

    std::vector<bool> find()
    {
        const bool moves
            = std::any_of(m_function.ops.begin(), m_function.ops.end(), [](const Op& op) { return movedTo(op).has_value(); });
        if (!moves)
            return std::move(m_onHost);
        findReaders();
        for (const ValueId argument : m_function.arguments())
            m_onHost[argument.at()] = isOnlyMovedBack(argument);
        visit(kBody);
        return std::move(m_onHost);
    }

private:
    void findReaders()
    {
        m_readers.resize(m_function.values.size());
        for (std::size_t id = 0; id < m_function.ops.size(); ++id) {
            for (std::size_t i = 0; i < m_function.ops[id].operands.size(); ++i)
                m_readers[m_function.ops[id].operands[i].at()].emplace_back(OpId{id}, i);
        }
    }

    bool isOnlyMovedBack(ValueId value) const
    {
        const auto& readers = m_readers[value.at()];
        return !readers.empty() && std::all_of(readers.begin(), readers.end(), [this](const auto& reader) {
            const Op& op = m_function[reader.first];
            return op.kind == OpKind::Repeat ? isOnlyMovedBack(insideOf(m_function, op, reader.second))
                                             : movedTo(op) == Placement::Device;
        });
    }

    void visit(BlockId block)
    {
        for (const OpId id : m_function[block].ops) {
            const Op& op = m_function[id];
            if (movedTo(op) == Placement::Host)
                m_onHost[op.results.front().at()] = true;
            if (op.kind == OpKind::Repeat)
                visitLoop(op);
        }
    }

    void visitLoop(const Op& loop)
    {
        for (std::size_t i = 0; i < loop.operands.size(); ++i)
            m_onHost[insideOf(m_function, loop, i).at()] = m_onHost[loop.operands[i].at()];
        visit(loop.bodies.front());
        const Block& body = m_function[loop.bodies.front()];
        for (std::size_t i = 0; i < loop.results.size(); ++i)
            m_onHost[loop.results[i].at()] = m_onHost[body.results[i].at()];
    }

    const Function& m_function;
    std::vector<bool> m_onHost;
    std::vector<std::vector<std::pair<OpId, std::size_t>>> m_readers; ///< by value: ops, and which of their operands it is
};

/// The quoted string behind a key of a dictionary's text; empty without one.
std::string_view stringAfter(std::string_view text, std::string_view key)
{
    const std::size_t at = text.find(key);
    const std::size_t open = at == std::string_view::npos ? at : text.find('"', at);
    const std::size_t close = open == std::string_view::npos ? open : text.find('"', open + 1);
    return close == std::string_view::npos ? std::string_view() : text.substr(open + 1, close - open - 1);
}

} // namespace

std::optional<Placement> movedTo(const OtherAttributes& other)
{
    const std::string_view target = callTarget(other);
    if (target == "MoveToHost")
        return Placement::Host;
    if (target == "MoveToDevice")
        return Placement::Device;
    if (target != "annotate_device_placement")
        return std::nullopt;
    const KeptAttribute* frontend = findAttribute(other.attributes, "mhlo.frontend_attributes");
    const std::string_view memory
        = frontend == nullptr ? std::string_view() : stringAfter(frontend->text, "_xla_buffer_placement");
    if (memory == "pinned_host" || memory == "unpinned_host")
        return Placement::Host;
    return memory == "device" ? std::optional(Placement::Device) : std::nullopt;
}

std::optional<Placement> movedTo(const Op& op)
{
    return op.kind == OpKind::CustomCall ? movedTo(op.as<OtherAttributes>()) : std::nullopt;
}

OtherAttributes moveCall(Placement to, const TensorType& type)
{
    OtherAttributes call;
    call.name = "stablehlo.custom_call";
    call.attributes = {{"call_target_name", to == Placement::Host ? "\"MoveToHost\"" : "\"MoveToDevice\"", false, {}, {}}};
    call.results = {type};
    return call;
}

std::vector<bool> valuesOnHost(const Function& function)
{
    return HostValues(function).find();
}

} // namespace meshwright
