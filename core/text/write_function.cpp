// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/write_function.h"

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
static_assert(kUse.front() == kOperandMark);

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
            plain = plain && attributes.empty();
            texts.push_back(tensorText(type(m_function.results()[i])) + attributes.optionalText());
        }
        if (texts.empty())
            return {};
        return plain && texts.size() == 1 ? " -> " + texts.front() : fmt::format(" -> ({})", fmt::join(texts, ", "));
    }

    std::string functionAttributes() const
    {
        if (donationsAreOrdered())
            return {};
        std::vector<std::size_t> pairs;
        for (const Donation& donation : m_function.donations)
            pairs.insert(pairs.end(), {donation.argument, donation.result});
        return fmt::format(" attributes {{mw.donations = array<i64: {}>}}", fmt::join(pairs, ", "));
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

    /// The attributes of an op with at most one result.
    AttributeList attributesOf(const Op& op) const
    {
        AttributeList attributes;
        addPhase(attributes, op);
        if (!op.results.empty()) {
            const Value& value = m_function[op.results.front()];
            addNotes(attributes, value);
            if (value.sharding && !isCollective(op.kind) && op.kind != OpKind::ShardingConstraint)
                attributes.add("sdy.sharding", fmt::format("#sdy.sharding_per_value<[{}]>", shardingOf(*value.sharding)));
        }
        return attributes;
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

    TextValue addConstant(LineRegion& region, const ConstantAttributes& constant, const std::string& attributes = {})
    {
        return add(region,
            fmt::format("stablehlo.constant{} {} : {}", attributes, denseText(constant), tensorText(constant.type)), {},
            isFloating(constant.type.dtype) ? NameHint::Float : NameHint::Integer);
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
    std::string functional(const Op& op) const
    {
        std::vector<std::string> operands;
        for (const ValueId operand : op.operands)
            operands.push_back(tensorText(type(operand)));
        return fmt::format(
            "({}) -> {}", fmt::join(operands, ", "), op.results.empty() ? "()" : tensorText(type(op.results.front())));
    }

    /// The one type when operand and result have the same, as most element-wise ops print.
    std::string sameOrFunctional(const Op& op) const
    {
        return type(op.operands.front()) == type(op.results.front()) ? tensorText(type(op.results.front())) : functional(op);
    }

    void lowerOp(const Op& op, LineRegion& region)
    {
        const std::string attributes = attributesOf(op).optionalText();
        std::vector<TextValue> operands;
        for (const ValueId operand : op.operands)
            operands.push_back(m_textOf[operand.at()]);

        if (op.kind == OpKind::Constant) {
            m_textOf[op.results.front().at()] = addConstant(region, op.as<ConstantAttributes>(), attributes);
            return;
        }
        if (op.kind == OpKind::Reduce)
            operands.push_back(
                addConstant(region, reduceIdentity(op.as<ReduceAttributes>().kind, type(op.operands.front()).dtype)));
        std::string text = isCollective(op.kind) ? collectiveText(op) : opText(op, attributes);
        if (op.results.empty())
            addStatement(region, std::move(text), std::move(operands));
        else
            m_textOf[op.results.front().at()] = add(region, std::move(text), std::move(operands));
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
        case OpKind::ErfInv:
            return fmt::format("{} {}{} : {} -> {}", name, kUse, attributes, tensorText(type(op.operands.front())),
                tensorText(type(op.results.front())));
        case OpKind::BitcastConvert:
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
        default: {
            const std::vector<std::string_view> uses(op.operands.size(), kUse);
            return fmt::format("{} {}{} : {}", name, fmt::join(uses, ", "), attributes, sameOrFunctional(op));
        }
        }
    }

    std::string dotText(const Op& op, const std::string& attributes) const
    {
        const auto& dot = op.as<DotAttributes>();
        std::string text = fmt::format("stablehlo.dot_general {}, {}", kUse, kUse);
        if (!dot.lhsBatch.empty())
            text += fmt::format(", batching_dims = [{}] x [{}]", fmt::join(dot.lhsBatch, ", "), fmt::join(dot.rhsBatch, ", "));
        text += fmt::format(", contracting_dims = [{}] x [{}], precision = [DEFAULT, DEFAULT]",
            fmt::join(dot.lhsContracting, ", "), fmt::join(dot.rhsContracting, ", "));
        if (dot.operandType != type(op.operands.front()).dtype)
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
        line.text = fmt::format(" : {}{}", typeList(types), repeatAttributes(op, types));
        line.operands = std::move(initial);
        line.resultCount = static_cast<std::uint32_t>(types.size());
        line.firstResult = m_nextValue;
        m_nextValue += line.resultCount;
        line.regions.push_back(conditionOf(types, repeat.count));
        line.regions.push_back(bodyOf(op, block, types));
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            const std::size_t position = i < repeat.carries ? 1 + i : 1 + op.operands.size() + (i - repeat.carries);
            m_textOf[op.results[i].at()] = line.firstResult + static_cast<TextValue>(position);
        }
        region.lines.push_back(std::move(line));
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
