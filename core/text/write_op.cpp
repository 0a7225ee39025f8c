// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/function_writer.h"

#include "core/text/attribute_lists.h"

#include <fmt/args.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace meshwright {

std::string FunctionWriter::opText(const Op& op, const std::string& attributes) const
{
    const std::string name = dialectName(op.kind);
    switch (op.kind) {
    case OpKind::Iota:
        return fmt::format(
            "{} dim = {}{} : {}", name, op.as<IotaAttributes>().dim, attributes, tensorText(type(op.results.front())));
    case OpKind::RandomBits: {
        AttributeList list = attributesOf(op);
        list.add("mw.partitionable", op.as<RandomBitsAttributes>().partitionable ? "true" : "false");
        return fmt::format("stablehlo.custom_call @meshwright.random_bits({}){} : {}", kUse, list.optionalText(), functional(op));
    }
    case OpKind::Compare: {
        const DType dtype = type(op.operands.front()).dtype;
        const char* how = op.as<CompareAttributes>().isTotalOrder ? "TOTALORDER"
            : isFloating(dtype) || isComplex(dtype)               ? "FLOAT"
            : isUnsigned(dtype) || dtype == DType::Pred           ? "UNSIGNED"
                                                                  : "SIGNED";
        return fmt::format("{} {}, {}, {}, {}{} : {}", name, compareDirectionName(op.as<CompareAttributes>().direction), kUse,
            kUse, how, attributes, functional(op));
    }
    case OpKind::Select:
        return fmt::format("{} {}, {}, {}{} : {}, {}", name, kUse, kUse, kUse, attributes, tensorText(type(op.operands.front())),
            tensorText(type(op.results.front())));
    case OpKind::Reduce: {
        const auto& reduce = op.as<ReduceAttributes>();
        const TensorType& operand = type(op.operands.front());
        return fmt::format("{}({} init: {}) applies stablehlo.{} across dimensions = [{}]{} : ({}, {}) -> {}", name, kUse, kUse,
            opName(combinerOf(reduce.kind)), fmt::join(reduce.dims, ", "), attributes, tensorText(operand),
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
    case OpKind::Slice:
    case OpKind::Gather:
    case OpKind::Scatter:
        return partsText(op, name, attributes);
    default:
        return fmt::format("{} {}{}{}{} : {}", name, uses(op.operands.size()), listsText(op.attributes),
            numbersText(op.attributes), attributes, typesText(op));
    }
}

/// Types as the op's dialect has them.
std::string FunctionWriter::typesText(const Op& op) const
{
    const std::string_view name = opInfo(op.kind).text;
    if (opInfo(op.kind).makes == ElementResult::Complex)
        return tensorText(type(op.results.front()));
    const bool isMoved = opInfo(op.kind).opClass == OpClass::Shaping || opInfo(op.kind).opClass == OpClass::Parts;
    if (!name.starts_with("chlo."))
        return (isMoved && op.kind != OpKind::Reverse) || op.kind == OpKind::BitcastConvert ? functional(op)
                                                                                            : sameOrFunctional(op);
    std::vector<std::string> operands;
    for (const ValueId operand : op.operands)
        operands.push_back(tensorText(type(operand)));
    return fmt::format("{} -> {}", fmt::join(operands, ", "), tensorText(type(op.results.front())));
}

/// The lists of the attributes in the op's own form: `, low = [0], high = [1], interior = [0]`.
std::string FunctionWriter::listsText(OpAttributes attributes)
{
    std::string text;
    forEachList(attributes, [&](const char* own, const char*, const auto& list) {
        if constexpr (std::is_same_v<decltype(list), const std::size_t&>)
            text += fmt::format(", {} = {}", own, list);
        else
            text += fmt::format(", {} = [{}]", own, fmt::join(list, ", "));
        return true;
    });
    return text;
}

/// The numbers of the attributes in the op's own form: `, format = e5m10`.
std::string FunctionWriter::numbersText(const OpAttributes& attributes)
{
    fmt::dynamic_format_arg_store<fmt::format_context> numbers;
    forEachNumber(attributes, [&](const auto&, std::int64_t value) { numbers.push_back(value); });
    const auto text = [&](const auto& made) {
        if constexpr (requires { made.numbers(); })
            return ", " + fmt::vformat(made.kForm, numbers);
        else
            return std::string();
    };
    return std::visit(text, attributes);
}

std::string FunctionWriter::dimsText(const char* name, const std::vector<std::size_t>& numbers)
{
    return numbers.empty() ? std::string() : fmt::format("{} = [{}], ", name, fmt::join(numbers, ", "));
}

std::string FunctionWriter::partsText(const Op& op, const std::string& name, const std::string& attributes) const
{
    switch (op.kind) {
    case OpKind::Slice: {
        const auto& slice = op.as<SliceAttributes>();
        std::vector<std::string> ranges;
        for (std::size_t i = 0; i < slice.starts.size(); ++i)
            ranges.push_back(slice.strides[i] == 1 ? fmt::format("{}:{}", slice.starts[i], slice.limits[i])
                                                   : fmt::format("{}:{}:{}", slice.starts[i], slice.limits[i], slice.strides[i]));
        return fmt::format("{} {} [{}]{} : {}", name, kUse, fmt::join(ranges, ", "), attributes, functional(op));
    }
    case OpKind::Gather: {
        const auto& gather = op.as<GatherAttributes>();
        const IndexingDims& dims = gather.dims;
        return fmt::format("\"{}\"({}) <{{dimension_numbers = #stablehlo.gather<{}{}{}{}{}index_vector_dim = {}>, "
                           "indices_are_sorted = {}, slice_sizes = array<i64{}{}>}}>{} : {}",
            name, uses(2), dimsText("offset_dims", dims.window), dimsText("collapsed_slice_dims", dims.collapsed),
            dimsText("operand_batching_dims", dims.operandBatch), dimsText("start_indices_batching_dims", dims.indicesBatch),
            dimsText("start_index_map", dims.indexMap), dims.indexVectorDim, gather.sorted, gather.sliceSizes.empty() ? "" : ": ",
            fmt::join(gather.sliceSizes, ", "), attributes, functional(op));
    }
    case OpKind::Scatter: {
        const auto& scatter = op.as<ScatterAttributes>();
        const IndexingDims& dims = scatter.dims;
        return fmt::format("\"{}\"({}) <{{indices_are_sorted = {}, scatter_dimension_numbers = "
                           "#stablehlo.scatter<{}{}{}{}{}index_vector_dim = {}>, unique_indices = {}}}> ({}){} : {}",
            name, uses(3), scatter.sorted, dimsText("update_window_dims", dims.window),
            dimsText("inserted_window_dims", dims.collapsed), dimsText("input_batching_dims", dims.operandBatch),
            dimsText("scatter_indices_batching_dims", dims.indicesBatch), dimsText("scatter_dims_to_operand_dims", dims.indexMap),
            dims.indexVectorDim, scatter.unique, kLabelled, attributes, functional(op));
    }
    default:
        return {};
    }
}

std::string FunctionWriter::dotText(const Op& op, const std::string& attributes) const
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

void FunctionWriter::addResultSharding(AttributeList& attributes, const Op& op, const TensorSharding& named) const
{
    const Value& value = m_function[op.results.front()];
    if (!value.sharding)
        attributes.addUnit("mw.no_sharding");
    else if (*value.sharding != named)
        attributes.add("sdy.sharding", fmt::format("#sdy.sharding_per_value<[{}]>", shardingOf(*value.sharding)));
}

std::string FunctionWriter::constraintText(const Op& op) const
{
    const auto& constraint = op.as<ConstraintAttributes>();
    AttributeList attributes = attributesOf(op);
    addResultSharding(attributes, op, constraint.sharding);
    if (!constraint.origin.empty())
        attributes.add("mw.origin", quoted(constraint.origin));
    return fmt::format("sdy.sharding_constraint {} {}{} : {}", kUse, shardingOf(constraint.sharding), attributes.optionalText(),
        tensorText(type(op.results.front())));
}

std::string FunctionWriter::transferText(const Op& op) const
{
    const auto& transfer = op.as<TransferAttributes>();
    AttributeList attributes = attributesOf(op);
    attributes.add("has_side_effect", "true");
    attributes.add("mw.channel", fmt::format("{} : i32", transfer.channel));
    attributes.add("mw.stage", fmt::format("{} : i32", transfer.stage));
    if (op.kind == OpKind::Send)
        return fmt::format("stablehlo.custom_call @meshwright.send({}){} : {}", kUse, attributes.optionalText(), functional(op));
    return fmt::format("stablehlo.custom_call @meshwright.recv(){} : {}", attributes.optionalText(), functional(op));
}

std::string FunctionWriter::collectiveText(const Op& op) const
{
    const auto& collective = op.as<CollectiveAttributes>();
    const Mesh& mesh = meshFor(op);
    // Reshards by which a value becomes a partial sum have ops of their own in Shardy.
    const bool fromDims = op.kind == OpKind::Reshard && !collective.perDim.empty();
    const bool fromReplicas = op.kind == OpKind::Reshard && !fromDims && !collective.axes.empty();
    std::string text = fromDims ? "sdy.sharded_to_unreduced"
        : fromReplicas          ? "sdy.replicated_to_unreduced"
                                : dialectName(op.kind);
    const bool saysHow = (op.kind == OpKind::AllReduce || op.kind == OpKind::ReduceScatter)
        && (collective.kind == ReduceKind::Max || collective.kind == ReduceKind::Min); // Shardy has no others
    if (saysHow)
        text += fmt::format(" {}", reduceKindName(collective.kind));
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
    if (collective.kind != ReduceKind::Sum && !saysHow)
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
        for (const auto& [name, part] :
            {std::pair{"value", &cause.value}, {"op", &cause.op}, {"reason", &cause.reason}, {"annotation", &cause.annotation}}) {
            if (!part->empty())
                parts.add(name, quoted(*part));
        }
        attributes.add("mw.cause", parts.text());
    }
    return fmt::format("{}{} : {}", text, attributes.optionalText(), sameOrFunctional(op));
}

} // namespace meshwright
