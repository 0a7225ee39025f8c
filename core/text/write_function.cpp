// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/write_function.h"

#include "core/program/other_op.h"
#include "core/program/transform.h"
#include "core/text/line_tree.h"
#include "core/text/notation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace meshwright {

namespace {

constexpr std::string_view kUse = "\x01";
constexpr std::string_view kBlock = "\x02";
constexpr std::string_view kLabelled = "\x03";
static_assert(kUse.front() == kOperandMark && kBlock.front() == kRegionMark && kLabelled.front() == kLabelMark);

/// The word of an enumerator: `FFT` of `#stablehlo<fft_type FFT>`.
std::string wordOf(const KeptAttributes& attributes, std::string_view name)
{
    const KeptAttribute* attribute = findAttribute(attributes, name);
    if (attribute == nullptr)
        return {};
    const std::string_view text = attribute->text;
    const std::size_t close = text.find('>');
    const std::size_t space = text.rfind(' ', close);
    return std::string(
        space == std::string_view::npos || close == std::string_view::npos ? text : text.substr(space + 1, close - space - 1));
}

std::string uses(std::size_t count)
{
    return fmt::format("{}", fmt::join(std::vector<std::string_view>(count, kUse), ", "));
}

/// Turns one function into lines, then prints them.
class FunctionWriter {
public:
    FunctionWriter(const Program& program, const Function& function)
        : m_program(program)
        , m_function(function)
        , m_textOf(function.values.size(), 0)
    {
    }

    /// Appends the function's text; gives the name of every value in it.
    std::vector<std::string> write(std::string& out)
    {
        LineRegion body;
        for (const ValueId argument : m_function.arguments())
            body.arguments.push_back(m_textOf[argument.at()] = newValue());
        lowerBlock(m_function.body(), body);
        lowerReturn("return", m_function.results(), body);

        fmt::format_to(std::back_inserter(out), "  func.func public {}({}){}{} {{\n", symbolText(m_function.name),
            argumentsText(), resultsText(), functionAttributes());
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

private:
    TextValue newValue() { return m_nextValue++; }
    std::string shardingOf(const TensorSharding& sharding) const { return shardingText(sharding, m_program.meshes); }
    const Mesh& meshFor(const Op& op) const
    {
        const auto& sharding = m_function[op.results.front()].sharding;
        return sharding ? m_program.meshOf(*sharding) : m_program.meshes.front().mesh;
    }
    const TensorType& type(ValueId value) const { return m_function[value].type; }

    // The header -----------------------------------------------------------------------------------------------------------

    /// True when each argument is given away at most once, in the order of the arguments: then attributes of arguments say it all.
    bool donationsAreOrdered() const
    {
        return std::is_sorted(m_function.donations.begin(), m_function.donations.end(),
            [](const Donation& a, const Donation& b) { return a.argument <= b.argument; });
    }

    std::string argumentsText() const
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

    std::string resultsText() const
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

    std::string functionAttributes() const
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

    // Attributes -----------------------------------------------------------------------------------------------------------

    /// What is known of a value but its type and its sharding.
    static void addNotes(AttributeList& attributes, const Value& value)
    {
        if (!value.annotation.empty())
            attributes.add("mw.annotation", quoted(value.annotation));
        if (!value.name.empty())
            attributes.add("mw.name", quoted(value.name));
        if (value.role != Role::Activation)
            attributes.add("mw.role", quoted(roleKeyword(value.role)));
    }

    static void addPhase(AttributeList& attributes, const Op& op)
    {
        if (op.phase != Phase::Forward)
            attributes.add("mw.phase", quoted(phaseName(op.phase)));
    }

    /// The attributes of an op that say what is known of it and its results, and those that are kept.
    AttributeList attributesOf(const Op& op) const
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

    /// For Shardy, which wants a sharding for every result when one has it.
    void addShardings(AttributeList& attributes, const std::vector<ValueId>& values) const
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

    static std::string locationOf(const Op& op)
    {
        return op.kept != nullptr && !op.kept->location.empty() ? " " + op.kept->location : std::string();
    }

    /// A list of dictionaries, one for each value: all that is known of the values of a loop.
    std::string notesList(const std::vector<ValueId>& values) const
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

    // Lines ----------------------------------------------------------------------------------------------------------------

    TextValue add(LineRegion& region, std::string text, std::vector<TextValue> operands, NameHint hint = NameHint::Number)
    {
        const TextValue result = newValue();
        region.lines.push_back({std::move(text), std::move(operands), result, 1, hint, {}});
        return result;
    }

    TextValue addConstant(LineRegion& region, const ConstantAttributes& constant, const std::string& attributes = {},
        const std::string& location = {})
    {
        return add(region,
            fmt::format("stablehlo.constant{} {} : {}{}", attributes, denseText(constant), tensorText(constant.type), location),
            {}, isFloating(constant.type.dtype) ? NameHint::Float : NameHint::Integer);
    }

    TextValue addCounter(LineRegion& region, DType dtype, std::int64_t value)
    {
        return addConstant(region, {{dtype, {}}, {value}});
    }

    void addStatement(LineRegion& region, std::string text, std::vector<TextValue> operands)
    {
        region.lines.push_back({std::move(text), std::move(operands), 0, 0, NameHint::Number, {}});
    }

    void lowerBlock(const Block& block, LineRegion& region)
    {
        for (const OpId op : block.ops) {
            if (m_function[op].kind == OpKind::Repeat)
                lowerRepeat(m_function[op], region);
            else if (m_function[op].kind == OpKind::While)
                lowerWhile(m_function[op], region);
            else if (m_function[op].kind == OpKind::Other || !m_function[op].bodies.empty())
                lowerWithBlocks(m_function[op], region);
            else
                lowerOp(m_function[op], region);
        }
        for (std::size_t group = 0; group < m_function.shardingGroups.size(); ++group) {
            for (const ValueId member : m_function.shardingGroups[group]) {
                if (&m_function[m_function[member].block] == &block)
                    addStatement(region,
                        fmt::format("sdy.sharding_group {} group_id={} : {}", kUse, group, tensorText(type(member))),
                        {m_textOf[member.at()]});
            }
        }
    }

    void lowerReturn(const char* name, const std::vector<ValueId>& values, LineRegion& region)
    {
        std::vector<TextValue> texts;
        std::vector<TensorType> types;
        for (const ValueId value : values) {
            texts.push_back(m_textOf[value.at()]);
            types.push_back(type(value));
        }
        addReturn(name, std::move(texts), types, region);
    }

    void addReturn(const char* name, std::vector<TextValue> values, const std::vector<TensorType>& types, LineRegion& region)
    {
        std::vector<std::string> typeTexts;
        for (const TensorType& each : types)
            typeTexts.push_back(tensorText(each));
        const std::vector<std::string_view> uses(values.size(), kUse);
        const std::string tail = values.empty() ? "" : fmt::format(" {} : {}", fmt::join(uses, ", "), fmt::join(typeTexts, ", "));
        addStatement(region, name + tail, std::move(values));
    }

    /// `(tensor<..>, tensor<..>) -> tensor<..>`.
    std::string functional(const Op& op) const { return functional(op, op.operands.size()); }

    /// The same of the first `count` operands.
    std::string functional(const Op& op, std::size_t count) const
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

    /// The one type when operand and result have the same, as most element-wise ops print.
    std::string sameOrFunctional(const Op& op) const
    {
        const bool same = std::all_of(
            op.operands.begin(), op.operands.end(), [&](ValueId operand) { return type(operand) == type(op.results.front()); });
        return same ? tensorText(type(op.results.front())) : functional(op);
    }

    void lowerOp(const Op& op, LineRegion& region)
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
            operands.push_back(
                addConstant(region, reduceIdentity(op.as<ReduceAttributes>().kind, type(op.operands.front()).dtype)));
        std::string text = (isCollective(op.kind) ? collectiveText(op) : opText(op, attributes)) + locationOf(op);
        Line line{std::move(text), std::move(operands), 0, 0, NameHint::Number, {}};
        if (op.kind == OpKind::Scatter)
            line.regions.push_back(combinerRegion(op.as<ScatterAttributes>().combiner, type(op.results.front()).dtype));
        addLine(region, op, std::move(line));
    }

    /// Adds the line, which makes the results of the op.
    void addLine(LineRegion& region, const Op& op, Line line)
    {
        line.resultCount = static_cast<std::uint32_t>(op.results.size());
        line.firstResult = m_nextValue;
        m_nextValue += line.resultCount;
        for (std::size_t i = 0; i < op.results.size(); ++i)
            m_textOf[op.results[i].at()] = line.firstResult + static_cast<TextValue>(i);
        region.lines.push_back(std::move(line));
    }

    /// A block that combines two elements, or takes the second one.
    LineRegion combinerRegion(std::optional<ReduceKind> kind, DType dtype)
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

    std::string opText(const Op& op, const std::string& attributes) const
    {
        const std::string name = dialectName(op.kind);
        switch (op.kind) {
        case OpKind::Iota:
            return fmt::format(
                "{} dim = {}{} : {}", name, op.as<IotaAttributes>().dim, attributes, tensorText(type(op.results.front())));
        case OpKind::RandomBits: {
            AttributeList list = attributesOf(op);
            list.add("mw.partitionable", op.as<RandomBitsAttributes>().partitionable ? "true" : "false");
            return fmt::format(
                "stablehlo.custom_call @meshwright.random_bits({}){} : {}", kUse, list.optionalText(), functional(op));
        }
        case OpKind::Erf:
        case OpKind::Erfc:
        case OpKind::ErfInv:
        case OpKind::Square:
            return fmt::format("{} {}{} : {} -> {}", name, kUse, attributes, tensorText(type(op.operands.front())),
                tensorText(type(op.results.front())));
        case OpKind::BitcastConvert:
        case OpKind::IsFinite:
        case OpKind::Reshape:
            return fmt::format("{} {}{} : {}", name, kUse, attributes, functional(op));
        case OpKind::Compare: {
            const DType dtype = type(op.operands.front()).dtype;
            const char* how = isFloating(dtype) ? "FLOAT" : isUnsigned(dtype) || dtype == DType::Pred ? "UNSIGNED" : "SIGNED";
            return fmt::format("{} {}, {}, {}, {}{} : {}", name, compareDirectionName(op.as<CompareAttributes>().direction), kUse,
                kUse, how, attributes, functional(op));
        }
        case OpKind::Select:
            return fmt::format("{} {}, {}, {}{} : {}, {}", name, kUse, kUse, kUse, attributes,
                tensorText(type(op.operands.front())), tensorText(type(op.results.front())));
        case OpKind::BroadcastInDim:
            return fmt::format("{} {}, dims = [{}]{} : {}", name, kUse, fmt::join(op.as<BroadcastAttributes>().dims, ", "),
                attributes, functional(op));
        case OpKind::Transpose:
            return fmt::format("{} {}, dims = [{}]{} : {}", name, kUse, fmt::join(op.as<TransposeAttributes>().permutation, ", "),
                attributes, functional(op));
        case OpKind::Reduce: {
            const auto& reduce = op.as<ReduceAttributes>();
            const TensorType& operand = type(op.operands.front());
            return fmt::format("{}({} init: {}) applies stablehlo.{} across dimensions = [{}]{} : ({}, {}) -> {}", name, kUse,
                kUse, opName(combinerOf(reduce.kind)), fmt::join(reduce.dims, ", "), attributes, tensorText(operand),
                tensorText({operand.dtype, {}}), tensorText(type(op.results.front())));
        }
        case OpKind::DotGeneral:
            return dotText(op, attributes);
        case OpKind::ShardingConstraint:
            return constraintText(op);
        case OpKind::Send:
        case OpKind::Receive:
            return transferText(op);
        case OpKind::PropagationBarrier: {
            const auto& barrier = op.as<BarrierAttributes>();
            const char* way = barrier.forward ? (barrier.backward ? "BOTH" : "FORWARD") : barrier.backward ? "BACKWARD" : "NONE";
            return fmt::format(
                "{} {} allowed_direction={}{} : {}", name, kUse, way, attributes, tensorText(type(op.results.front())));
        }
        case OpKind::OptimizationBarrier: {
            std::vector<TensorType> types;
            for (const ValueId result : op.results)
                types.push_back(type(result));
            return op.results.empty() ? fmt::format("\"{}\"(){} : () -> ()", name, attributes)
                                      : fmt::format("{} {}{} : {}", name, uses(op.operands.size()), attributes, typeList(types));
        }
        default:
            return opInfo(op.kind).opClass == OpClass::Parts
                ? partsText(op, name, attributes)
                : fmt::format("{} {}{} : {}", name, uses(op.operands.size()), attributes, sameOrFunctional(op));
        }
    }

    /// `name = [1, 2]`, left out when the list is empty.
    static std::string numbersText(const char* name, const std::vector<std::size_t>& numbers)
    {
        return numbers.empty() ? std::string() : fmt::format("{} = [{}], ", name, fmt::join(numbers, ", "));
    }

    std::string partsText(const Op& op, const std::string& name, const std::string& attributes) const
    {
        switch (op.kind) {
        case OpKind::Slice: {
            const auto& slice = op.as<SliceAttributes>();
            std::vector<std::string> ranges;
            for (std::size_t i = 0; i < slice.starts.size(); ++i)
                ranges.push_back(slice.strides[i] == 1
                        ? fmt::format("{}:{}", slice.starts[i], slice.limits[i])
                        : fmt::format("{}:{}:{}", slice.starts[i], slice.limits[i], slice.strides[i]));
            return fmt::format("{} {} [{}]{} : {}", name, kUse, fmt::join(ranges, ", "), attributes, functional(op));
        }
        case OpKind::Pad: {
            const auto& pad = op.as<PadAttributes>();
            return fmt::format("{} {}, low = [{}], high = [{}], interior = [{}]{} : {}", name, uses(2), fmt::join(pad.low, ", "),
                fmt::join(pad.high, ", "), fmt::join(pad.interior, ", "), attributes, functional(op));
        }
        case OpKind::Concatenate:
            return fmt::format("{} {}, dim = {}{} : {}", name, uses(op.operands.size()), op.as<ConcatenateAttributes>().dim,
                attributes, functional(op));
        case OpKind::Reverse:
            return fmt::format("{} {}, dims = [{}]{} : {}", name, kUse, fmt::join(op.as<ReverseAttributes>().dims, ", "),
                attributes, tensorText(type(op.results.front())));
        case OpKind::DynamicSlice:
            return fmt::format("{} {}, sizes = [{}]{} : {}", name, uses(op.operands.size()),
                fmt::join(op.as<DynamicSliceAttributes>().sizes, ", "), attributes, functional(op));
        case OpKind::Gather: {
            const auto& gather = op.as<GatherAttributes>();
            const IndexingDims& dims = gather.dims;
            return fmt::format("\"{}\"({}) <{{dimension_numbers = #stablehlo.gather<{}{}{}{}{}index_vector_dim = {}>, "
                               "indices_are_sorted = {}, slice_sizes = array<i64{}{}>}}>{} : {}",
                name, uses(2), numbersText("offset_dims", dims.window), numbersText("collapsed_slice_dims", dims.collapsed),
                numbersText("operand_batching_dims", dims.operandBatch),
                numbersText("start_indices_batching_dims", dims.indicesBatch), numbersText("start_index_map", dims.indexMap),
                dims.indexVectorDim, gather.sorted, gather.sliceSizes.empty() ? "" : ": ", fmt::join(gather.sliceSizes, ", "),
                attributes, functional(op));
        }
        case OpKind::Scatter: {
            const auto& scatter = op.as<ScatterAttributes>();
            const IndexingDims& dims = scatter.dims;
            return fmt::format("\"{}\"({}) <{{indices_are_sorted = {}, scatter_dimension_numbers = "
                               "#stablehlo.scatter<{}{}{}{}{}index_vector_dim = {}>, unique_indices = {}}}> ({}){} : {}",
                name, uses(3), scatter.sorted, numbersText("update_window_dims", dims.window),
                numbersText("inserted_window_dims", dims.collapsed), numbersText("input_batching_dims", dims.operandBatch),
                numbersText("scatter_indices_batching_dims", dims.indicesBatch),
                numbersText("scatter_dims_to_operand_dims", dims.indexMap), dims.indexVectorDim, scatter.unique, kLabelled,
                attributes, functional(op));
        }
        default: // DynamicUpdateSlice
            return fmt::format("{} {}{} : {}", name, uses(op.operands.size()), attributes, functional(op));
        }
    }

    std::string dotText(const Op& op, const std::string& attributes) const
    {
        const auto& dot = op.as<DotAttributes>();
        std::string text = fmt::format("stablehlo.dot_general {}, {}", kUse, kUse);
        if (!dot.lhsBatch.empty())
            text += fmt::format(", batching_dims = [{}] x [{}]", fmt::join(dot.lhsBatch, ", "), fmt::join(dot.rhsBatch, ", "));
        const auto kept = [&](const char* key) { return op.kept == nullptr ? nullptr : findAttribute(op.kept->attributes, key); };
        text += fmt::format(", contracting_dims = [{}] x [{}], precision = {}", fmt::join(dot.lhsContracting, ", "),
            fmt::join(dot.rhsContracting, ", "), kept("precision") != nullptr ? kept("precision")->text : "[DEFAULT, DEFAULT]");
        if (const KeptAttribute* algorithm = kept("algorithm"))
            text += ", algorithm = " + algorithm->text;
        else if (dot.operandType != type(op.operands.front()).dtype)
            text += fmt::format(", algorithm = <lhs_precision_type = {0}, rhs_precision_type = {0}, accumulation_type = {1}, "
                                "lhs_component_count = 1, "
                                "rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>",
                dtypeName(dot.operandType), dtypeName(dot.resultType));
        return fmt::format("{}{} : {}", text, attributes, functional(op));
    }

    /// Ops that name their result's sharding give it to the result too; these attributes say where the result differs.
    void addResultSharding(AttributeList& attributes, const Op& op, const TensorSharding& named) const
    {
        const Value& value = m_function[op.results.front()];
        if (!value.sharding)
            attributes.addUnit("mw.no_sharding");
        else if (*value.sharding != named)
            attributes.add("sdy.sharding", fmt::format("#sdy.sharding_per_value<[{}]>", shardingOf(*value.sharding)));
    }

    std::string constraintText(const Op& op) const
    {
        const auto& constraint = op.as<ConstraintAttributes>();
        AttributeList attributes = attributesOf(op);
        addResultSharding(attributes, op, constraint.sharding);
        if (!constraint.origin.empty())
            attributes.add("mw.origin", quoted(constraint.origin));
        return fmt::format("sdy.sharding_constraint {} {}{} : {}", kUse, shardingOf(constraint.sharding),
            attributes.optionalText(), tensorText(type(op.results.front())));
    }

    std::string transferText(const Op& op) const
    {
        const auto& transfer = op.as<TransferAttributes>();
        AttributeList attributes = attributesOf(op);
        attributes.add("has_side_effect", "true");
        attributes.add("mw.channel", fmt::format("{} : i32", transfer.channel));
        attributes.add("mw.stage", fmt::format("{} : i32", transfer.stage));
        if (op.kind == OpKind::Send)
            return fmt::format(
                "stablehlo.custom_call @meshwright.send({}){} : {}", kUse, attributes.optionalText(), functional(op));
        return fmt::format("stablehlo.custom_call @meshwright.recv(){} : {}", attributes.optionalText(), functional(op));
    }

    std::string collectiveText(const Op& op) const
    {
        const auto& collective = op.as<CollectiveAttributes>();
        const Mesh& mesh = meshFor(op);
        // Reshards by which a value becomes a partial sum have ops of their own in Shardy.
        const bool fromDims = op.kind == OpKind::Reshard && !collective.perDim.empty();
        const bool fromReplicas = op.kind == OpKind::Reshard && !fromDims && !collective.axes.empty();
        std::string text = fromDims ? "sdy.sharded_to_unreduced"
            : fromReplicas          ? "sdy.replicated_to_unreduced"
                                    : dialectName(op.kind);
        if (op.kind == OpKind::AllReduce || fromReplicas) {
            text += " " + axisListText(collective.axes, mesh);
        } else if (op.kind == OpKind::AllToAll) {
            std::vector<std::string> moves;
            for (const AxisMove& move : collective.moves)
                moves.push_back(fmt::format("{}: {}->{}", axisListText(move.axes, mesh), move.from, move.to));
            text += fmt::format(" [{}]", fmt::join(moves, ", "));
        } else if ((op.kind != OpKind::CollectivePermute && op.kind != OpKind::Reshard) || fromDims) {
            std::vector<std::string> dims;
            for (const AxisRefs& axes : collective.perDim)
                dims.push_back(axisListText(axes, mesh));
            text += fmt::format(" [{}]", fmt::join(dims, ", "));
        }
        text += fmt::format(" {}", kUse);
        if (const auto& sharding = m_function[op.results.front()].sharding)
            text += (op.kind == OpKind::Reshard && !fromDims && !fromReplicas ? " " : " out_sharding=") + shardingOf(*sharding);

        AttributeList attributes = attributesOf(op);
        if (op.kind != OpKind::AllReduce && !fromReplicas && collective.axes != impliedAxes(op.kind, collective))
            attributes.add("mw.axes", fmt::format("#sdy<axis_ref_list{}>", axisListText(collective.axes, mesh)));
        if (collective.kind != ReduceKind::Sum)
            attributes.add("mw.reduction", quoted(reduceKindName(collective.kind)));
        if (!collective.sources.empty())
            attributes.add("mw.sources", fmt::format("array<i64: {}>", fmt::join(collective.sources, ", ")));
        if (collective.pieces) {
            attributes.add("mw.pieces", fmt::format("array<i64: {}, {}>", collective.pieces->split, collective.pieces->join));
            std::vector<std::string> groups;
            for (const std::vector<std::int64_t>& group : collective.pieces->groups)
                groups.push_back(fmt::format("array<i64: {}>", fmt::join(group, ", ")));
            if (!groups.empty())
                attributes.add("mw.groups", fmt::format("[{}]", fmt::join(groups, ", ")));
        }
        if (const Cause& cause = collective.cause; cause != Cause()) {
            AttributeList parts;
            for (const auto& [name, part] : {std::pair{"value", &cause.value}, {"op", &cause.op}, {"reason", &cause.reason},
                     {"annotation", &cause.annotation}}) {
                if (!part->empty())
                    parts.add(name, quoted(*part));
            }
            attributes.add("mw.cause", parts.text());
        }
        return fmt::format("{}{} : {}", text, attributes.optionalText(), sameOrFunctional(op));
    }

    // Repeat ---------------------------------------------------------------------------------------------------------------

    /// One step's part of a stacked array: its index along dimension 0, and zeros.
    std::vector<TextValue> sliceIndices(TextValue index, TextValue zero, std::size_t rank)
    {
        std::vector<TextValue> indices(rank, zero);
        indices.front() = index;
        return indices;
    }

    static TensorType withLeadingOne(TensorType slice)
    {
        slice.shape.insert(slice.shape.begin(), 1);
        return slice;
    }

    /// A counted while, in the order counter, carries, stacked operands, invariants, stacked results.
    void lowerRepeat(const Op& op, LineRegion& region)
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

    /// `stablehlo.while(%iterArg = %0) : type attributes {..}` and its two blocks.
    static std::string whileText(const std::vector<TensorType>& types, const std::string& attributes)
    {
        const std::vector<std::string> pairs(types.size(), fmt::format("{0} = {0}", kUse));
        return fmt::format("stablehlo.while({}){}{}{}\ncond {} do {}", fmt::join(pairs, ", "), types.empty() ? "" : " : ",
            typeList(types), attributes, kBlock, kBlock);
    }

    static std::vector<TextValue> interleaved(const std::vector<TextValue>& a, const std::vector<TextValue>& b)
    {
        std::vector<TextValue> all;
        for (std::size_t i = 0; i < a.size(); ++i)
            all.insert(all.end(), {a[i], b[i]});
        return all;
    }

    static std::string typeList(const std::vector<TensorType>& types)
    {
        std::vector<std::string> texts;
        for (const TensorType& each : types)
            texts.push_back(tensorText(each));
        return fmt::format("{}", fmt::join(texts, ", "));
    }

    std::string repeatAttributes(const Op& op, const std::vector<TensorType>& types) const
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

    std::vector<TextValue> newArguments(std::size_t count)
    {
        std::vector<TextValue> arguments(count);
        std::iota(arguments.begin(), arguments.end(), m_nextValue);
        m_nextValue += static_cast<TextValue>(count);
        return arguments;
    }

    LineRegion conditionOf(const std::vector<TensorType>& types, std::int64_t count)
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

    LineRegion bodyOf(const Op& op, const Block& block, const std::vector<TensorType>& types)
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

    // Other ops with blocks, and kept ones -----------------------------------------------------------------------------------

    /// A block whose first `own` arguments are its own; the others stand for the last operands of the op.
    LineRegion lowerBody(const Op& op, BlockId id, std::size_t own, const std::string& returns)
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

    std::vector<TextValue> textsOf(const std::vector<ValueId>& values, std::size_t count) const
    {
        std::vector<TextValue> texts;
        for (std::size_t i = 0; i < count; ++i)
            texts.push_back(m_textOf[values[i].at()]);
        return texts;
    }

    void lowerWhile(const Op& op, LineRegion& region)
    {
        const std::size_t carries = op.as<WhileAttributes>().carries;
        std::vector<TensorType> types;
        for (const ValueId result : op.results)
            types.push_back(type(result));
        const AttributeList attributes = attributesOf(op);
        Line line{whileText(types, attributes.empty() ? std::string() : " attributes " + attributes.text()) + locationOf(op), {},
            0, 0, NameHint::Number, {}};
        for (const BlockId body : op.bodies) {
            line.regions.push_back(lowerBody(op, body, carries, "stablehlo.return"));
            line.regions.back().isLoop = true;
        }
        line.operands = interleaved(line.regions.front().arguments, textsOf(op.operands, carries));
        addLine(region, op, std::move(line));
    }

    void lowerWithBlocks(const Op& op, LineRegion& region)
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

    void lowerCase(const Op& op, LineRegion& region)
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

    std::string shardingList(const char* name, const std::vector<TensorSharding>& shardings) const
    {
        std::vector<std::string> texts;
        for (const TensorSharding& sharding : shardings)
            texts.push_back(shardingOf(sharding));
        return fmt::format(" {}=[{}]", name, fmt::join(texts, ", "));
    }

    void lowerComputation(const Op& op, LineRegion& region)
    {
        const auto& computation = op.as<ComputationAttributes>();
        const bool isNamed = !computation.name.empty();
        const auto& shardings = computation.inShardings.empty() ? computation.outShardings : computation.inShardings;
        std::string text = isNamed
            ? fmt::format("sdy.named_computation<{}>({})", quoted(computation.name), uses(op.operands.size()))
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

    void lowerOther(const Op& op, LineRegion& region)
    {
        const auto& other = op.as<OtherAttributes>();
        const std::size_t own = op.operands.size() - other.captures;
        Line line{{}, textsOf(op.operands, own), 0, 0, NameHint::Number, {}};
        const std::size_t dot = other.name.find('.');
        const std::string dialect = other.name.substr(0, dot == std::string::npos ? 0 : dot);
        for (const BlockId body : op.bodies)
            line.regions.push_back(lowerBody(op, body, m_function[body].arguments.size() - other.captures,
                dialect.empty() || dialect == "chlo" ? "stablehlo.return" : dialect + ".return"));
        if (const KeptAttribute* verbatim = findAttribute(other.attributes, {}))
            line.text = other.name + verbatim->text;
        else if (auto pretty = otherText(op, other, line))
            line.text = *std::move(pretty);
        else
            line.text = genericText(op, other);
        line.text += locationOf(op);
        addLine(region, op, std::move(line));
    }

    std::string genericText(const Op& op, const OtherAttributes& other) const
    {
        AttributeList properties;
        AttributeList attributes = attributesOf(op);
        for (const KeptAttribute& attribute : other.attributes)
            (attribute.isProperty ? properties : attributes).add(attribute.name, attribute.text);
        const std::size_t own = op.operands.size() - other.captures;
        std::string text = fmt::format("\"{}\"({})", other.name, uses(own));
        if (!properties.empty())
            text += fmt::format(" <{}>", properties.text());
        if (!op.bodies.empty())
            text += fmt::format(" ({})", fmt::join(std::vector<std::string_view>(op.bodies.size(), kLabelled), ", "));
        return fmt::format("{}{} : {}", text, attributes.optionalText(), functional(op, own));
    }

    /// The form of its own that MLIR prints a kept op in; nothing where that is the generic one.
    std::optional<std::string> otherText(const Op& op, const OtherAttributes& other, Line& line) const
    {
        const std::size_t own = op.operands.size() - other.captures;
        const std::string_view name = baseName(other.name);
        const bool isStableHlo = other.name.starts_with("stablehlo.");
        const OtherClass known = otherClass(other);
        std::vector<std::string_view> shown; // attributes that the form itself has
        std::string text;
        std::string types = functional(op, own);
        const auto textOf = [&](const char* key) {
            const KeptAttribute* attribute = findAttribute(other.attributes, key);
            return attribute == nullptr ? std::string() : attribute->text;
        };
        const auto integers
            = [&](const char* key) { return fmt::format("[{}]", fmt::join(integersAt(other.attributes, key), ", ")); };
        const auto has = [&](std::initializer_list<const char*> keys) {
            shown.assign(keys.begin(), keys.end());
            return std::all_of(
                keys.begin(), keys.end(), [&](const char* key) { return findAttribute(other.attributes, key) != nullptr; });
        };
        if (name == "reduce" && isStableHlo && op.bodies.size() == 1 && has({"dimensions"})) {
            reduceText(op, other, line, text);
            return fmt::format("{}{} : {}{}", text, restOf(op, other, shown), types, reducerText(op, line));
        }
        if (!op.bodies.empty() || op.results.empty() || (known != OtherClass::Elementwise && !isStableHlo))
            return std::nullopt;
        if (name == "custom_call" && has({"call_target_name"})) {
            text = fmt::format("{} {}({})", other.name, symbolText(callTarget(other)), uses(own));
        } else if (name == "fft" && has({"fft_type", "fft_length"})) {
            text = fmt::format(
                "{} {}, type = {}, length = {}", other.name, kUse, wordOf(other.attributes, "fft_type"), integers("fft_length"));
        } else if (name == "cholesky" && has({"lower"})) {
            text = fmt::format("{} {}, lower = {}", other.name, kUse, textOf("lower"));
            types = tensorText(type(op.results.front()));
        } else if (name == "rng_bit_generator" && has({"rng_algorithm"})) {
            text = fmt::format("{} {}, algorithm = {}", other.name, kUse, wordOf(other.attributes, "rng_algorithm"));
        } else if (name == "rng" && has({"rng_distribution"})) {
            text = fmt::format("{} {}, distribution = {}", other.name, uses(own), wordOf(other.attributes, "rng_distribution"));
        } else if (name == "reduce_precision" && has({"exponent_bits", "mantissa_bits"})) {
            text = fmt::format("{} {}, format = e{}m{}", other.name, kUse,
                integerAt(other.attributes, "exponent_bits").value_or(0),
                integerAt(other.attributes, "mantissa_bits").value_or(0));
            types = sameOrFunctional(op);
        } else if (name == "compare" && has({"comparison_direction", "compare_type"})) {
            text = fmt::format("{} {}, {}, {}", other.name, wordOf(other.attributes, "comparison_direction"), uses(own),
                wordOf(other.attributes, "compare_type"));
        } else if (name == "convolution" && has({"dimension_numbers"})) {
            text = convolutionText(other, shown);
        } else if (name == "bitcast_convert") {
            text = fmt::format("{} {}", other.name, kUse);
        } else if (known == OtherClass::Elementwise && other.attributes.empty() && own > 0 && own < 4) {
            text = fmt::format("{} {}", other.name, uses(own));
            types = name == "complex" ? tensorText(type(op.results.front()))
                : isStableHlo         ? sameOrFunctional(op)
                : own == 1 ? fmt::format("{} -> {}", tensorText(type(op.operands.front())), tensorText(type(op.results.front())))
                           : types;
        } else {
            return std::nullopt;
        }
        return fmt::format("{}{} : {}", text, restOf(op, other, shown), types);
    }

    /// The attributes that a form does not show by itself.
    std::string restOf(const Op& op, const OtherAttributes& other, const std::vector<std::string_view>& shown) const
    {
        AttributeList attributes = attributesOf(op);
        for (const KeptAttribute& attribute : other.attributes) {
            if (std::find(shown.begin(), shown.end(), attribute.name) == shown.end())
                attributes.add(attribute.name, attribute.text);
        }
        return attributes.optionalText();
    }

    /// `stablehlo.reduce(%0 init: %1), (%2 init: %3) across dimensions = [1]`.
    void reduceText(const Op& op, const OtherAttributes& other, Line& line, std::string& text) const
    {
        const std::size_t count = op.results.size();
        std::vector<std::string> pairs(count, fmt::format("({0} init: {0})", kUse));
        text = fmt::format("{}{} across dimensions = [{}]", other.name, fmt::join(pairs, ", "),
            fmt::join(integersAt(other.attributes, "dimensions"), ", "));
        line.operands = interleaved({line.operands.begin(), line.operands.begin() + static_cast<std::ptrdiff_t>(count)},
            {line.operands.begin() + static_cast<std::ptrdiff_t>(count), line.operands.end()});
    }

    /// Its block on a line of its own, with a pair of arguments for each operand.
    std::string reducerText(const Op& op, Line& line) const
    {
        const LineRegion& block = line.regions.front();
        const std::size_t count = op.results.size();
        std::string text = "\n  reducer";
        for (std::size_t i = 0; i < count; ++i) {
            text += fmt::format("({0}: {1}, {0}: {2}) ", kUse, block.types[i], block.types[count + i]);
            line.operands.insert(line.operands.end(), {block.arguments[i], block.arguments[count + i]});
        }
        return fmt::format("{} {}", text, kBlock);
    }

    static std::string convolutionText(const OtherAttributes& other, std::vector<std::string_view>& shown)
    {
        const std::string numbers = findAttribute(other.attributes, "dimension_numbers")->text;
        const std::size_t open = numbers.find('<');
        const std::size_t from = open == std::string::npos ? 0 : open + 1;
        std::vector<std::string> window;
        const auto add = [&](const char* key, const char* name, const auto& format) {
            const auto integers = integersAt(other.attributes, key);
            if (!integers.empty()) {
                window.push_back(fmt::format("{} = [{}]", name, fmt::join(format(integers), ", ")));
                shown.push_back(key);
            }
        };
        const auto plain
            = [](std::span<const std::int64_t> integers) { return std::vector<std::int64_t>(integers.begin(), integers.end()); };
        const auto pairs = [](std::span<const std::int64_t> integers) {
            std::vector<std::string> texts;
            for (std::size_t i = 0; i + 1 < integers.size(); i += 2)
                texts.push_back(fmt::format("[{}, {}]", integers[i], integers[i + 1]));
            return texts;
        };
        const auto truths = [](std::span<const std::int64_t> integers) {
            std::vector<std::string> texts;
            for (const std::int64_t integer : integers)
                texts.push_back(integer != 0 ? "true" : "false");
            return texts;
        };
        add("window_strides", "stride", plain);
        add("padding", "pad", pairs);
        add("lhs_dilation", "lhs_dilate", plain);
        add("rhs_dilation", "rhs_dilate", plain);
        add("window_reversal", "reverse", truths);
        return fmt::format("{}({}) dim_numbers = {}, window = {{{}}}", other.name, uses(2),
            numbers.substr(from,
                numbers.rfind('>') == std::string::npos || open == std::string::npos ? std::string::npos
                                                                                     : numbers.rfind('>') - from),
            fmt::join(window, ", "));
    }

    const Program& m_program;
    const Function& m_function;
    std::vector<TextValue> m_textOf; ///< of every value of the function
    TextValue m_nextValue = 0;
};

} // namespace

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
