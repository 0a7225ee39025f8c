// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/write_function.h"

#include "core/program/transform.h"
#include "core/text/function_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright {

std::string uses(std::size_t count)
{
    return fmt::format("{}", fmt::join(std::vector<std::string_view>(count, kUse), ", "));
}

std::vector<std::string> FunctionWriter::write(std::string& out)
{
    LineRegion body;
    for (const ValueId argument : m_function.arguments())
        body.arguments.push_back(m_textOf[argument.at()] = newValue());
    lowerBlock(m_function.body(), body);
    lowerReturn("return", m_function.results(), body);

    fmt::format_to(std::back_inserter(out), "  func.func public {}({}){}{} {{\n", symbolText(m_function.name), argumentsText(),
        resultsText(), functionAttributes());
    std::vector<std::string> names(m_nextValue);
    printLines(out, body, 4, names);
    out += "  }\n";

    std::vector<std::string> namesOfValues(m_textOf.size());
    std::vector<bool> isLive(m_textOf.size(), false);
    for (const ValueId argument : m_function.arguments())
        isLive[argument.at()] = true;
    forEachOp(m_function, [&](OpId op) {
        for (const ValueId result : m_function[op].results)
            isLive[result.at()] = true;
        for (const BlockId block : m_function[op].bodies) {
            for (const ValueId argument : m_function[block].arguments)
                isLive[argument.at()] = true;
        }
    });
    for (std::size_t value = 0; value < m_textOf.size(); ++value) {
        if (isLive[value])
            namesOfValues[value] = names[m_textOf[value]];
    }
    return namesOfValues;
}

const Mesh& FunctionWriter::meshFor(const Op& op) const
{
    const auto& sharding = m_function[op.results.front()].sharding;
    return sharding ? m_program.meshOf(*sharding) : m_program.meshes.front().mesh;
}

bool FunctionWriter::donationsAreOrdered() const
{
    return std::is_sorted(m_function.donations.begin(), m_function.donations.end(),
        [](const Donation& a, const Donation& b) { return a.argument <= b.argument; });
}

std::string FunctionWriter::argumentsText() const
{
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < m_function.arguments().size(); ++i) {
        const Value& value = m_function[m_function.arguments()[i]];
        AttributeList attributes;
        addNotes(attributes, value);
        if (value.sharding)
            attributes.add("sdy.sharding", "#sdy.sharding" + shardingOf(*value.sharding));
        if (value.kept != nullptr)
            attributes.add(value.kept->attributes);
        for (const Donation& donation : m_function.donations) {
            if (donation.argument == i && donationsAreOrdered())
                attributes.add("tf.aliasing_output", fmt::format("{} : i32", donation.result));
        }
        texts.push_back(fmt::format("%arg{}: {}{}", i, tensorText(value.type), attributes.optionalText()));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
}

std::string FunctionWriter::resultsText() const
{
    std::vector<std::string> texts;
    bool plain = true;
    for (std::size_t i = 0; i < m_function.results().size(); ++i) {
        AttributeList attributes;
        if (!m_function.resultNames.empty())
            attributes.add("jax.result_info", quoted(m_function.resultNames[i]));
        if (!m_function.resultShardings.empty() && m_function.resultShardings[i])
            attributes.add("sdy.sharding", "#sdy.sharding" + shardingOf(*m_function.resultShardings[i]));
        if (!m_function.resultsKept.empty())
            attributes.add(m_function.resultsKept[i]);
        plain = plain && attributes.empty();
        texts.push_back(tensorText(type(m_function.results()[i])) + attributes.optionalText());
    }
    if (texts.empty())
        return {};
    return plain && texts.size() == 1 ? " -> " + texts.front() : fmt::format(" -> ({})", fmt::join(texts, ", "));
}

std::string FunctionWriter::functionAttributes() const
{
    AttributeList attributes;
    attributes.add(m_function.kept);
    if (!donationsAreOrdered()) {
        std::vector<std::size_t> pairs;
        for (const Donation& donation : m_function.donations)
            pairs.insert(pairs.end(), {donation.argument, donation.result});
        attributes.add("mw.donations", fmt::format("array<i64: {}>", fmt::join(pairs, ", ")));
    }
    return attributes.empty() ? std::string() : " attributes " + attributes.text();
}

void FunctionWriter::addNotes(AttributeList& attributes, const Value& value)
{
    if (!value.annotation.empty())
        attributes.add("mw.annotation", quoted(value.annotation));
    if (!value.name.empty())
        attributes.add("mw.name", quoted(value.name));
    if (value.role != Role::Activation)
        attributes.add("mw.role", quoted(roleKeyword(value.role)));
}

void FunctionWriter::addPhase(AttributeList& attributes, const Op& op)
{
    if (op.phase != Phase::Forward)
        attributes.add("mw.phase", quoted(phaseName(op.phase)));
}

AttributeList FunctionWriter::attributesOf(const Op& op) const
{
    AttributeList attributes;
    addPhase(attributes, op);
    if (op.results.size() == 1) {
        const Value& value = m_function[op.results.front()];
        addNotes(attributes, value);
        const bool namesIt = isCollective(op.kind) || op.kind == OpKind::ShardingConstraint;
        if (value.sharding && !namesIt)
            attributes.add("sdy.sharding", fmt::format("#sdy.sharding_per_value<[{}]>", shardingOf(*value.sharding)));
    } else if (!op.results.empty()) {
        if (const std::string notes = notesList(op.results); !notes.empty())
            attributes.add("mw.results", notes);
        addShardings(attributes, op.results);
    }
    if (op.kept != nullptr) {
        for (const KeptAttribute& kept : op.kept->attributes) {
            if (op.kind != OpKind::DotGeneral || (kept.name != "precision" && kept.name != "algorithm"))
                attributes.add(kept.name, kept.text);
        }
    }
    return attributes;
}

void FunctionWriter::addShardings(AttributeList& attributes, const std::vector<ValueId>& values) const
{
    const auto first
        = std::find_if(values.begin(), values.end(), [&](ValueId value) { return m_function[value].sharding.has_value(); });
    if (first == values.end())
        return;
    std::vector<std::string> shardings;
    for (const ValueId value : values) {
        TensorSharding open = TensorSharding::openOf(type(value).shape.size());
        open.mesh = m_function[*first].sharding->mesh;
        shardings.push_back(shardingOf(m_function[value].sharding.value_or(open)));
    }
    attributes.add("sdy.sharding", fmt::format("#sdy.sharding_per_value<[{}]>", fmt::join(shardings, ", ")));
}

std::string FunctionWriter::locationOf(const Op& op)
{
    return op.kept != nullptr && !op.kept->location.empty() ? " " + op.kept->location : std::string();
}

std::string FunctionWriter::notesList(const std::vector<ValueId>& values) const
{
    std::vector<std::string> texts;
    bool any = false;
    for (const ValueId id : values) {
        AttributeList notes;
        addNotes(notes, m_function[id]);
        if (m_function[id].sharding)
            notes.add("sdy.sharding", "#sdy.sharding" + shardingOf(*m_function[id].sharding));
        any = any || !notes.empty();
        texts.push_back(notes.text());
    }
    return any ? fmt::format("[{}]", fmt::join(texts, ", ")) : std::string();
}

TextValue FunctionWriter::add(LineRegion& region, std::string text, std::vector<TextValue> operands, NameHint hint)
{
    const TextValue result = newValue();
    region.lines.push_back({std::move(text), std::move(operands), result, 1, hint, {}});
    return result;
}

TextValue FunctionWriter::addConstant(
    LineRegion& region, const ConstantAttributes& constant, const std::string& attributes, const std::string& location)
{
    return add(region,
        fmt::format("stablehlo.constant{} {} : {}{}", attributes, denseText(constant), tensorText(constant.type), location), {},
        isFloating(constant.type.dtype) ? NameHint::Float : NameHint::Integer);
}

TextValue FunctionWriter::addCounter(LineRegion& region, DType dtype, std::int64_t value)
{
    return addConstant(region, {{dtype, {}}, {value}});
}

void FunctionWriter::addStatement(LineRegion& region, std::string text, std::vector<TextValue> operands)
{
    region.lines.push_back({std::move(text), std::move(operands), 0, 0, NameHint::Number, {}});
}

void FunctionWriter::lowerBlock(const Block& block, LineRegion& region)
{
    for (const OpId op : block.ops) {
        if (m_function[op].kind == OpKind::Repeat)
            lowerRepeat(m_function[op], region);
        else if (m_function[op].kind == OpKind::While)
            lowerWhile(m_function[op], region);
        else if (isKept(m_function[op].kind) || !m_function[op].bodies.empty())
            lowerWithBlocks(m_function[op], region);
        else
            lowerOp(m_function[op], region);
    }
    for (std::size_t group = 0; group < m_function.shardingGroups.size(); ++group) {
        for (const ValueId member : m_function.shardingGroups[group]) {
            if (&m_function[m_function[member].block] == &block)
                addStatement(region, fmt::format("sdy.sharding_group {} group_id={} : {}", kUse, group, tensorText(type(member))),
                    {m_textOf[member.at()]});
        }
    }
}

void FunctionWriter::lowerReturn(const char* name, const std::vector<ValueId>& values, LineRegion& region)
{
    std::vector<TextValue> texts;
    std::vector<TensorType> types;
    for (const ValueId value : values) {
        texts.push_back(m_textOf[value.at()]);
        types.push_back(type(value));
    }
    addReturn(name, std::move(texts), types, region);
}

void FunctionWriter::addReturn(
    const char* name, std::vector<TextValue> values, const std::vector<TensorType>& types, LineRegion& region)
{
    std::vector<std::string> typeTexts;
    for (const TensorType& each : types)
        typeTexts.push_back(tensorText(each));
    const std::vector<std::string_view> uses(values.size(), kUse);
    const std::string tail = values.empty() ? "" : fmt::format(" {} : {}", fmt::join(uses, ", "), fmt::join(typeTexts, ", "));
    addStatement(region, name + tail, std::move(values));
}

std::string FunctionWriter::functional(const Op& op, std::size_t count) const
{
    std::vector<TensorType> operands;
    for (std::size_t i = 0; i < count; ++i)
        operands.push_back(type(op.operands[i]));
    std::vector<TensorType> results;
    for (const ValueId result : op.results)
        results.push_back(type(result));
    const std::string made = results.size() == 1 ? typeList(results) : fmt::format("({})", typeList(results));
    return fmt::format("({}) -> {}", typeList(operands), made);
}

std::string FunctionWriter::sameOrFunctional(const Op& op) const
{
    const bool same = std::all_of(
        op.operands.begin(), op.operands.end(), [&](ValueId operand) { return type(operand) == type(op.results.front()); });
    return same ? tensorText(type(op.results.front())) : functional(op);
}

void FunctionWriter::lowerOp(const Op& op, LineRegion& region)
{
    const std::string attributes = attributesOf(op).optionalText();
    std::vector<TextValue> operands;
    for (const ValueId operand : op.operands)
        operands.push_back(m_textOf[operand.at()]);

    if (op.kind == OpKind::Constant) {
        m_textOf[op.results.front().at()] = addConstant(region, op.as<ConstantAttributes>(), attributes, locationOf(op));
        return;
    }
    if (op.kind == OpKind::Reduce)
        operands.push_back(addConstant(region, reduceIdentity(op.as<ReduceAttributes>().kind, type(op.operands.front()).dtype)));
    std::string text = (isCollective(op.kind) ? collectiveText(op) : opText(op, attributes)) + locationOf(op);
    Line line{std::move(text), std::move(operands), 0, 0, NameHint::Number, {}};
    if (op.kind == OpKind::Scatter)
        line.regions.push_back(combinerRegion(op.as<ScatterAttributes>().combiner, type(op.results.front()).dtype));
    addLine(region, op, std::move(line));
}

void FunctionWriter::addLine(LineRegion& region, const Op& op, Line line)
{
    line.resultCount = static_cast<std::uint32_t>(op.results.size());
    line.firstResult = m_nextValue;
    m_nextValue += line.resultCount;
    for (std::size_t i = 0; i < op.results.size(); ++i)
        m_textOf[op.results[i].at()] = line.firstResult + static_cast<TextValue>(i);
    region.lines.push_back(std::move(line));
}

LineRegion FunctionWriter::combinerRegion(std::optional<ReduceKind> kind, DType dtype)
{
    LineRegion region;
    region.arguments = newArguments(2);
    region.types.assign(2, tensorText({dtype, {}}));
    TextValue result = region.arguments[1];
    if (kind)
        result = add(region, fmt::format("stablehlo.{} {} : {}", opName(combinerOf(*kind)), uses(2), tensorText({dtype, {}})),
            {region.arguments[0], region.arguments[1]});
    addReturn("stablehlo.return", {result}, {{dtype, {}}}, region);
    return region;
}

void writeFunction(std::string& out, const Program& program, const Function& function)
{
    FunctionWriter(program, function).write(out);
}

std::vector<std::string> namesInText(const Program& program, const Function& function)
{
    std::string text;
    return FunctionWriter(program, function).write(text);
}

} // namespace meshwright
