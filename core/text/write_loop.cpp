// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/function_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace meshwright {

std::vector<TextValue> FunctionWriter::sliceIndices(TextValue index, TextValue zero, std::size_t rank)
{
    std::vector<TextValue> indices(rank, zero);
    indices.front() = index;
    return indices;
}

TensorType FunctionWriter::withLeadingOne(TensorType slice)
{
    slice.shape.insert(slice.shape.begin(), 1);
    return slice;
}

void FunctionWriter::lowerRepeat(const Op& op, LineRegion& region)
{
    const auto& repeat = op.as<RepeatAttributes>();
    const Block& block = m_function[op.bodies.front()];
    const DType counterType = repeat.count <= std::numeric_limits<std::int32_t>::max() ? DType::S32 : DType::S64;
    const TensorType counter{counterType, {}};
    const std::size_t outputs = op.results.size() - repeat.carries;

    std::vector<TensorType> types{counter};
    std::vector<TextValue> initial{addCounter(region, counterType, 0)};
    for (const ValueId operand : op.operands) {
        types.push_back(type(operand));
        initial.push_back(m_textOf[operand.at()]);
    }
    for (std::size_t i = 0; i < outputs; ++i) {
        const TensorType& stacked = type(op.results[repeat.carries + i]);
        const TextValue zero = addConstant(region, reduceIdentity(ReduceKind::Sum, stacked.dtype));
        types.push_back(stacked);
        initial.push_back(add(region,
            fmt::format("stablehlo.broadcast_in_dim {}, dims = [] : ({}) -> {}", kUse, tensorText({stacked.dtype, {}}),
                tensorText(stacked)),
            {zero}));
    }

    Line line;
    line.text = whileText(types, repeatAttributes(op, types)) + locationOf(op);
    line.resultCount = static_cast<std::uint32_t>(types.size());
    line.firstResult = m_nextValue;
    m_nextValue += line.resultCount;
    line.regions.push_back(conditionOf(types, repeat.count));
    line.regions.push_back(bodyOf(op, block, types));
    line.operands = interleaved(line.regions.front().arguments, initial);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
        const std::size_t position = i < repeat.carries ? 1 + i : 1 + op.operands.size() + (i - repeat.carries);
        m_textOf[op.results[i].at()] = line.firstResult + static_cast<TextValue>(position);
    }
    region.lines.push_back(std::move(line));
}

std::string FunctionWriter::whileText(const std::vector<TensorType>& types, const std::string& attributes)
{
    const std::vector<std::string> pairs(types.size(), fmt::format("{0} = {0}", kUse));
    return fmt::format("stablehlo.while({}){}{}{}\ncond {} do {}", fmt::join(pairs, ", "), types.empty() ? "" : " : ",
        typeList(types), attributes, kBlock, kBlock);
}

std::vector<TextValue> FunctionWriter::interleaved(const std::vector<TextValue>& a, const std::vector<TextValue>& b)
{
    std::vector<TextValue> all;
    for (std::size_t i = 0; i < a.size(); ++i)
        all.insert(all.end(), {a[i], b[i]});
    return all;
}

std::string FunctionWriter::typeList(const std::vector<TensorType>& types)
{
    std::vector<std::string> texts;
    for (const TensorType& each : types)
        texts.push_back(tensorText(each));
    return fmt::format("{}", fmt::join(texts, ", "));
}

std::string FunctionWriter::repeatAttributes(const Op& op, const std::vector<TensorType>& types) const
{
    const auto& repeat = op.as<RepeatAttributes>();
    AttributeList attributes;
    addPhase(attributes, op);
    attributes.add("mw.carries", fmt::format("{} : i64", repeat.carries));
    attributes.add("mw.stacked", fmt::format("{} : i64", repeat.stacked));
    if (repeat.reversed)
        attributes.addUnit("mw.reversed");
    if (const std::string notes = notesList(m_function[op.bodies.front()].arguments); !notes.empty())
        attributes.add("mw.arguments", notes);
    if (const std::string notes = notesList(op.results); !notes.empty())
        attributes.add("mw.results", notes);

    // The same for Shardy, which wants a sharding for everything the while carries.
    const auto first = std::find_if(
        op.results.begin(), op.results.end(), [&](ValueId result) { return m_function[result].sharding.has_value(); });
    if (first != op.results.end()) {
        std::vector<std::string> shardings;
        for (std::size_t i = 0; i < types.size(); ++i) {
            TensorSharding sharding = TensorSharding::openOf(types[i].shape.size());
            sharding.mesh = m_function[*first].sharding->mesh;
            const bool carried = i >= 1 && i <= repeat.carries;
            const std::size_t result = carried ? i - 1 : i - 1 - op.operands.size() + repeat.carries;
            if ((carried || i > op.operands.size()) && m_function[op.results[result]].sharding)
                sharding = *m_function[op.results[result]].sharding;
            shardings.push_back(shardingOf(sharding));
        }
        attributes.add("sdy.sharding", fmt::format("#sdy.sharding_per_value<[{}]>", fmt::join(shardings, ", ")));
    }
    if (op.kept != nullptr)
        attributes.add(op.kept->attributes);
    return " attributes " + attributes.text();
}

std::vector<TextValue> FunctionWriter::newArguments(std::size_t count)
{
    std::vector<TextValue> arguments(count);
    std::iota(arguments.begin(), arguments.end(), m_nextValue);
    m_nextValue += static_cast<TextValue>(count);
    return arguments;
}

LineRegion FunctionWriter::conditionOf(const std::vector<TensorType>& types, std::int64_t count)
{
    LineRegion region;
    region.isLoop = true;
    region.arguments = newArguments(types.size());
    const TextValue limit = addCounter(region, types.front().dtype, count);
    const std::string counter = tensorText(types.front());
    const TextValue more
        = add(region, fmt::format("stablehlo.compare LT, {0}, {0}, SIGNED : ({1}, {1}) -> tensor<i1>", kUse, counter),
            {region.arguments.front(), limit});
    addReturn("stablehlo.return", {more}, {{DType::Pred, {}}}, region);
    return region;
}

LineRegion FunctionWriter::bodyOf(const Op& op, const Block& block, const std::vector<TensorType>& types)
{
    const auto& repeat = op.as<RepeatAttributes>();
    LineRegion region;
    region.isLoop = true;
    region.arguments = newArguments(types.size());
    const std::string counter = tensorText(types.front());
    const std::size_t outputs = op.results.size() - repeat.carries;

    TextValue index = region.arguments.front();
    TextValue zero = 0;
    if (repeat.stacked + outputs > 0) {
        bool isFlat = true; // nothing but the step's index is needed
        for (std::size_t i = 0; i < types.size(); ++i) {
            const bool sliced = (i > repeat.carries && i <= repeat.carries + repeat.stacked) || i > op.operands.size();
            isFlat = isFlat && !(sliced && types[i].shape.size() > 1);
        }
        if (!isFlat)
            zero = addCounter(region, types.front().dtype, 0);
        if (repeat.reversed)
            index = add(region, fmt::format("stablehlo.subtract {0}, {0} : {1}", kUse, counter),
                {addCounter(region, types.front().dtype, repeat.count - 1), index});
    }
    const auto indexUses = [](std::size_t rank) { return std::vector<std::string_view>(rank, kUse); };
    const auto indexTypes = [&](std::size_t rank) { return std::vector<std::string>(rank, counter); };

    for (std::size_t i = 0; i < block.arguments.size(); ++i) {
        const TextValue whole = region.arguments[1 + i];
        TextValue& text = m_textOf[block.arguments[i].at()];
        text = whole;
        if (i < repeat.carries || i >= repeat.carries + repeat.stacked)
            continue;
        const TensorType& stacked = types[1 + i];
        const TensorType slice = withLeadingOne(type(block.arguments[i]));
        std::vector<TextValue> operands = sliceIndices(index, zero, stacked.shape.size());
        operands.insert(operands.begin(), whole);
        const TextValue part = add(region,
            fmt::format("stablehlo.dynamic_slice {}, {}, sizes = [{}] : ({}, {}) -> {}", kUse,
                fmt::join(indexUses(stacked.shape.size()), ", "), fmt::join(slice.shape, ", "), tensorText(stacked),
                fmt::join(indexTypes(stacked.shape.size()), ", "), tensorText(slice)),
            std::move(operands));
        text = add(region,
            fmt::format("stablehlo.reshape {} : ({}) -> {}", kUse, tensorText(slice), tensorText(type(block.arguments[i]))),
            {part});
    }
    lowerBlock(block, region);

    std::vector<TextValue> next{0};
    for (std::size_t i = 0; i < op.operands.size(); ++i)
        next.push_back(i < repeat.carries ? m_textOf[block.results[i].at()] : region.arguments[1 + i]);
    for (std::size_t i = 0; i < outputs; ++i) {
        const ValueId part = block.results[repeat.carries + i];
        const TensorType& stacked = types[1 + op.operands.size() + i];
        const TensorType slice = withLeadingOne(type(part));
        const TextValue update
            = add(region, fmt::format("stablehlo.reshape {} : ({}) -> {}", kUse, tensorText(type(part)), tensorText(slice)),
                {m_textOf[part.at()]});
        std::vector<TextValue> operands = sliceIndices(index, zero, stacked.shape.size());
        operands.insert(operands.begin(), {region.arguments[1 + op.operands.size() + i], update});
        next.push_back(add(region,
            fmt::format("stablehlo.dynamic_update_slice {0}, {0}, {1} : ({2}, {3}, {4}) -> {2}", kUse,
                fmt::join(indexUses(stacked.shape.size()), ", "), tensorText(stacked), tensorText(slice),
                fmt::join(indexTypes(stacked.shape.size()), ", ")),
            std::move(operands)));
    }
    next.front() = add(region, fmt::format("stablehlo.add {0}, {0} : {1}", kUse, counter),
        {region.arguments.front(), addCounter(region, types.front().dtype, 1)});
    addReturn("stablehlo.return", std::move(next), types, region);
    return region;
}

LineRegion FunctionWriter::lowerBody(const Op& op, BlockId id, std::size_t own, const std::string& returns)
{
    const Block& block = m_function[id];
    LineRegion region;
    region.arguments = newArguments(own);
    for (std::size_t i = 0; i < own; ++i) {
        m_textOf[block.arguments[i].at()] = region.arguments[i];
        region.types.push_back(tensorText(type(block.arguments[i])));
    }
    const std::size_t captures = block.arguments.size() - own;
    for (std::size_t i = 0; i < captures; ++i)
        m_textOf[block.arguments[own + i].at()] = m_textOf[op.operands[op.operands.size() - captures + i].at()];
    lowerBlock(block, region);
    lowerReturn(returns.c_str(), block.results, region);
    return region;
}

std::vector<TextValue> FunctionWriter::textsOf(const std::vector<ValueId>& values, std::size_t count) const
{
    std::vector<TextValue> texts;
    for (std::size_t i = 0; i < count; ++i)
        texts.push_back(m_textOf[values[i].at()]);
    return texts;
}

void FunctionWriter::lowerWhile(const Op& op, LineRegion& region)
{
    const std::size_t carries = op.as<WhileAttributes>().carries;
    std::vector<TensorType> types;
    for (const ValueId result : op.results)
        types.push_back(type(result));
    const AttributeList attributes = attributesOf(op);
    Line line{whileText(types, attributes.empty() ? std::string() : " attributes " + attributes.text()) + locationOf(op), {}, 0,
        0, NameHint::Number, {}};
    for (const BlockId body : op.bodies) {
        line.regions.push_back(lowerBody(op, body, carries, "stablehlo.return"));
        line.regions.back().isLoop = true;
    }
    line.operands = interleaved(line.regions.front().arguments, textsOf(op.operands, carries));
    addLine(region, op, std::move(line));
}

void FunctionWriter::lowerWithBlocks(const Op& op, LineRegion& region)
{
    switch (op.kind) {
    case OpKind::Case:
        return lowerCase(op, region);
    case OpKind::Computation:
        return lowerComputation(op, region);
    default:
        return lowerOther(op, region);
    }
}

void FunctionWriter::lowerCase(const Op& op, LineRegion& region)
{
    const bool isIf = type(op.operands.front()).dtype == DType::Pred;
    const std::vector<std::string_view> blocks(op.bodies.size(), kLabelled);
    Line line{fmt::format("\"stablehlo.{}\"({}) ({}){} : {}{}", isIf ? "if" : "case", kUse, fmt::join(blocks, ", "),
                  attributesOf(op).optionalText(), functional(op, 1), locationOf(op)),
        textsOf(op.operands, 1), 0, 0, NameHint::Number, {}};
    for (const BlockId body : op.bodies)
        line.regions.push_back(lowerBody(op, body, 0, "stablehlo.return"));
    addLine(region, op, std::move(line));
}

std::string FunctionWriter::shardingList(const char* name, const std::vector<TensorSharding>& shardings) const
{
    std::vector<std::string> texts;
    for (const TensorSharding& sharding : shardings)
        texts.push_back(shardingOf(sharding));
    return fmt::format(" {}=[{}]", name, fmt::join(texts, ", "));
}

void FunctionWriter::lowerComputation(const Op& op, LineRegion& region)
{
    const auto& computation = op.as<ComputationAttributes>();
    const bool isNamed = !computation.name.empty();
    const auto& shardings = computation.inShardings.empty() ? computation.outShardings : computation.inShardings;
    std::string text = isNamed ? fmt::format("sdy.named_computation<{}>({})", quoted(computation.name), uses(op.operands.size()))
                               : fmt::format("sdy.manual_computation({})", uses(op.operands.size()));
    if (!isNamed || !computation.inShardings.empty())
        text += shardingList("in_shardings", computation.inShardings);
    if (!isNamed || !computation.outShardings.empty())
        text += shardingList("out_shardings", computation.outShardings);
    if (!isNamed) {
        AxisRefs axes;
        for (const std::int32_t axis : computation.manualAxes)
            axes.push_back(wholeAxis(m_program.meshOf(shardings.front()), static_cast<std::size_t>(axis)));
        text += " manual_axes=" + (axes.empty() ? "{}" : axisListText(axes, m_program.meshOf(shardings.front())));
    }
    Line line{{}, textsOf(op.operands, op.operands.size()), 0, 0, NameHint::Number, {}};
    line.regions.push_back(lowerBody(op, op.bodies.front(), op.operands.size(), "sdy.return"));
    std::vector<std::string> arguments;
    for (const std::string& each : line.regions.front().types)
        arguments.push_back(fmt::format("{}: {}", kUse, each));
    line.operands.insert(line.operands.end(), line.regions.front().arguments.begin(), line.regions.front().arguments.end());
    line.text = fmt::format("{} ({}) {}{} : {}{}", text, fmt::join(arguments, ", "), kBlock, attributesOf(op).optionalText(),
        functional(op), locationOf(op));
    addLine(region, op, std::move(line));
}

} // namespace meshwright
