// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/prove.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace meshwright {

namespace {

/// Gives the values of a function of one device that have no layout one: in its blocks that of what comes in and goes out, elsewhere whole.
class LayoutsOfText {
public:
    explicit LayoutsOfText(Function& function)
        : m_function(function)
    {
    }

    void run()
    {
        for (const ValueId argument : m_function.arguments())
            orWhole(argument);
        if (!m_function.blocks.empty())
            layBlock(BlockId(std::int32_t{0}));
        for (std::size_t value = 0; value < m_function.values.size(); ++value)
            orWhole(ValueId(value));
    }

private:
    std::optional<TensorSharding>& of(ValueId value) { return m_function[value].sharding; }

    void orWhole(ValueId value) { orAs(value, TensorSharding::replicatedOf(m_function[value].type.shape.size())); }

    void orAs(ValueId value, const std::optional<TensorSharding>& layout)
    {
        if (!of(value) && layout && layout->dims.size() == m_function[value].type.shape.size())
            of(value) = layout;
    }

    void layBlock(BlockId block)
    {
        for (const OpId id : m_function[block].ops) {
            for (const BlockId body : m_function[id].bodies) {
                layArguments(m_function[id], body);
                layBlock(body);
            }
            layResults(m_function[id]);
        }
    }

    static std::size_t carriesOf(const Op& op)
    {
        return op.kind == OpKind::Repeat ? op.as<RepeatAttributes>().carries
            : op.kind == OpKind::While   ? op.as<WhileAttributes>().carries
                                         : 0;
    }

    void layArguments(const Op& op, BlockId body)
    {
        const std::vector<ValueId>& arguments = m_function[body].arguments;
        const std::size_t carries = carriesOf(op);
        const std::size_t stacked = op.kind == OpKind::Repeat ? op.as<RepeatAttributes>().stacked : 0;
        const std::size_t own = op.operands.size() - std::min(op.operands.size(), arguments.size()); // a branch's number
        for (std::size_t i = 0; i < std::min(arguments.size(), op.operands.size()); ++i) {
            std::optional<TensorSharding> layout = of(op.operands[i + own]);
            if (i < carries) {
                orAs(arguments[i], of(op.results[i]));
            } else if (i < carries + stacked && layout && !layout->dims.empty()) {
                layout->dims.erase(layout->dims.begin());
            }
            orAs(arguments[i], layout);
        }
    }

    void layResults(const Op& op)
    {
        const std::size_t carries = carriesOf(op);
        for (std::size_t i = 0; i < op.results.size() && !op.bodies.empty(); ++i) {
            const Block& body = m_function[op.bodies.back()];
            if (i < carries) {
                orAs(op.results[i], of(body.arguments[i]));
            } else if (i < body.results.size()) {
                std::optional<TensorSharding> layout = of(body.results[i]);
                if (layout && op.kind == OpKind::Repeat)
                    layout->dims.insert(layout->dims.begin(), DimSharding{});
                orAs(op.results[i], layout);
            }
        }
        for (const ValueId result : op.results)
            orWhole(result);
    }

    Function& m_function;
};

} // namespace

DeviceProgram deviceProgramOf(Program program)
{
    DeviceProgram made;
    DeviceStage& stage = made.stages.emplace_back();
    stage.meshes = std::move(program.meshes);
    for (Function& function : program.functions) {
        LayoutsOfText(function).run();
        DeviceFunction& device = stage.functions.emplace_back();
        for (const Value& value : function.values) {
            Shape shape = value.type.shape;
            for (std::size_t dim = 0; dim < std::min(shape.size(), value.sharding->dims.size()); ++dim)
                shape[dim] *= shardCount(value.sharding->dims[dim].axes);
            device.globalShapes.push_back(std::move(shape));
        }
        device.function = std::move(function);
    }
    return made;
}

} // namespace meshwright
