// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/python/trace.h"

#include "core/autodiff/custom_derivative.h"
#include "core/autodiff/differentiate.h"
#include "core/models/initializers.h"
#include "core/partition/complex_pairs.h"
#include "core/program/body_collective.h"
#include "core/program/shape_rules.h"
#include "core/program/transform.h"
#include "core/program/varying_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace meshwright::python {

namespace {

/// Reads attributes; what is not said has a default.
class Reader {
public:
    explicit Reader(const Attributes& attributes)
        : m_attributes(attributes)
    {
    }

    Shape shape(const char* name) const { return get<std::vector<std::int64_t>>(name, {}); }
    std::vector<std::size_t> dims(const char* name) const
    {
        std::vector<std::size_t> dims;
        for (const std::int64_t dim : shape(name))
            dims.push_back(static_cast<std::size_t>(dim));
        return dims;
    }
    std::int64_t integer(const char* name, std::int64_t otherwise = 0) const { return get<std::int64_t>(name, otherwise); }
    std::size_t dim(const char* name) const { return static_cast<std::size_t>(integer(name)); }
    bool truth(const char* name, bool otherwise = false) const { return get<bool>(name, otherwise); }
    std::string word(const char* name) const { return get<std::string>(name, {}); }
    double number(const char* name, double otherwise) const
    {
        const auto found = m_attributes.find(name);
        if (found != m_attributes.end() && std::holds_alternative<std::int64_t>(found->second))
            return static_cast<double>(std::get<std::int64_t>(found->second));
        return get<double>(name, otherwise);
    }
    DType dtype(const char* name, DType otherwise = DType::F32) const { return parseDType(word(name)).value_or(otherwise); }

private:
    template <typename T>
    T get(const char* name, T otherwise) const
    {
        const auto found = m_attributes.find(name);
        return found != m_attributes.end() && std::holds_alternative<T>(found->second) ? std::get<T>(found->second) : otherwise;
    }

    const Attributes& m_attributes;
};

ReduceKind reduceKindOf(const std::string& name)
{
    for (const ReduceKind kind : {ReduceKind::Max, ReduceKind::Min, ReduceKind::Product, ReduceKind::And, ReduceKind::Or}) {
        if (name == reduceKindName(kind))
            return kind;
    }
    return ReduceKind::Sum;
}

CompareDirection directionOf(const std::string& name)
{
    for (const CompareDirection direction : {CompareDirection::NotEqual, CompareDirection::Less, CompareDirection::LessEqual,
             CompareDirection::Greater, CompareDirection::GreaterEqual}) {
        if (name == compareDirectionName(direction))
            return direction;
    }
    return CompareDirection::Equal;
}

IndexingDims indexingOf(const Reader& read)
{
    return {read.dims("window"), read.dims("collapsed"), {}, {}, read.dims("index_map"), read.dim("index_vector_dim")};
}

struct Filled {
    OpAttributes attributes;

    void operator()(const Reader&, std::monostate) { attributes = std::monostate(); }
    void operator()(const Reader& read, IotaAttributes)
    {
        attributes = IotaAttributes{{read.dtype("dtype"), read.shape("shape")}, read.dim("dim")};
    }
    void operator()(const Reader& read, RandomBitsAttributes)
    {
        attributes = RandomBitsAttributes{{DType::U32, read.shape("shape")}, read.truth("partitionable", true)};
    }
    void operator()(const Reader& read, ConvertAttributes) { attributes = ConvertAttributes{read.dtype("dtype")}; }
    void operator()(const Reader& read, CompareAttributes)
    {
        attributes = CompareAttributes{directionOf(read.word("direction")), false};
    }
    void operator()(const Reader& read, BroadcastAttributes)
    {
        attributes = BroadcastAttributes{read.shape("shape"), read.dims("dims")};
    }
    void operator()(const Reader& read, ReshapeAttributes) { attributes = ReshapeAttributes{read.shape("shape")}; }
    void operator()(const Reader& read, TransposeAttributes) { attributes = TransposeAttributes{read.dims("permutation")}; }
    void operator()(const Reader& read, ReduceAttributes)
    {
        attributes = ReduceAttributes{reduceKindOf(read.word("kind")), read.dims("dims")};
    }
    void operator()(const Reader& read, DotAttributes)
    {
        attributes = DotAttributes{read.dims("lhs_batch"), read.dims("rhs_batch"), read.dims("lhs_contracting"),
            read.dims("rhs_contracting"), read.dtype("dtype"), read.dtype("operand_dtype")};
    }
    void operator()(const Reader& read, SliceAttributes)
    {
        attributes = SliceAttributes{read.shape("starts"), read.shape("limits"), read.shape("strides")};
    }
    void operator()(const Reader& read, PadAttributes)
    {
        attributes = PadAttributes{read.shape("low"), read.shape("high"), read.shape("interior")};
    }
    void operator()(const Reader& read, ConcatenateAttributes) { attributes = ConcatenateAttributes{read.dim("dim")}; }
    void operator()(const Reader& read, ReverseAttributes) { attributes = ReverseAttributes{read.dims("dims")}; }
    void operator()(const Reader& read, DynamicSliceAttributes) { attributes = DynamicSliceAttributes{read.shape("sizes")}; }
    void operator()(const Reader& read, GatherAttributes)
    {
        attributes = GatherAttributes{indexingOf(read), read.shape("slice_sizes"), false};
    }
    void operator()(const Reader& read, ScatterAttributes)
    {
        const std::string combiner = read.word("combiner");
        attributes = ScatterAttributes{
            indexingOf(read), combiner.empty() ? std::nullopt : std::optional(reduceKindOf(combiner)), false, false};
    }
    void operator()(const Reader& read, ReducePrecisionAttributes)
    {
        attributes = ReducePrecisionAttributes{read.integer("exponent_bits", 8), read.integer("mantissa_bits", 23)};
    }
    template <typename Unsaid>
    void operator()(const Reader&, Unsaid made)
    {
        attributes = std::move(made);
    }
};

OpAttributes attributesOf(OpKind kind, const Attributes& said)
{
    const Reader read(said);
    Filled filled;
    std::visit([&](auto made) { filled(read, std::move(made)); }, opInfo(kind).attributes());
    return filled.attributes;
}

/// The shape to which all broadcast as NumPy has it; nothing when they do not.
std::optional<Shape> commonShape(const std::vector<Shape>& shapes)
{
    Shape common;
    for (const Shape& shape : shapes) {
        if (shape.size() > common.size())
            common.insert(common.begin(), shape.size() - common.size(), 1);
        for (std::size_t i = 0; i < shape.size(); ++i) {
            std::int64_t& size = common[common.size() - shape.size() + i];
            if (size != shape[i] && size != 1 && shape[i] != 1)
                return std::nullopt;
            size = size == 1 ? shape[i] : size;
        }
    }
    return common;
}

ValueId broadcastTo(Builder& builder, ValueId value, const Shape& shape)
{
    const Shape& own = builder.type(value).shape;
    if (own == shape)
        return value;
    if (own.empty())
        return builder.broadcastScalar(value, shape);
    std::vector<std::size_t> dims(own.size());
    for (std::size_t i = 0; i < dims.size(); ++i)
        dims[i] = shape.size() - dims.size() + i;
    return builder.broadcast(value, shape, std::move(dims));
}

std::string shapeText(const Shape& shape)
{
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
    return text + (shape.size() == 1 ? ",)" : ")");
}

} // namespace

Trace::Trace(std::string name)
    : m_builder((m_traced.function.name = std::move(name), m_traced.function))
{
}

ValueId Trace::argument(TensorType type, std::string name)
{
    return m_builder.argument(std::move(type), std::move(name), Role::Input);
}

ValueId Trace::constant(const HostArray& array)
{
    if (array.type().elements() == 1 && isFloating(array.type().dtype))
        return m_builder.add(OpKind::Constant, {}, ConstantAttributes{array.type(), {array.at(0)}});
    return m_builder.add(OpKind::Constant, {},
        ConstantAttributes{array.type(),
            {std::make_shared<const std::string>(
                reinterpret_cast<const char*>(array.data()), static_cast<std::size_t>(array.bytes()))}});
}

Result<std::vector<ValueId>> Trace::add(const std::string& op, const std::vector<ValueId>& operands, const Attributes& attributes)
{
    const Reader read(attributes);
    if (op == "normal")
        return std::vector{normal(m_builder, operands.at(0), read.shape("shape"), read.truth("partitionable", true))};
    if (op == "uniform")
        return std::vector{uniform(m_builder, operands.at(0), read.shape("shape"), read.number("low", 0.0),
            read.number("high", 1.0), read.truth("partitionable", true))};
    if (op == "sort")
        return sorted(operands.at(0), read.dim("dim"));
    if (op == "fft")
        return transformed(operands.at(0), read.word("type"), read.shape("lengths"));
    if (op == "full") { // a scalar everywhere
        const Shape shape = read.shape("shape");
        return std::vector{broadcastTo(m_builder, operands.at(0), shape)};
    }
    const auto kind = parseOpKind(op);
    if (!kind)
        return Problem{"MW1561", fmt::format("no op is called \"{}\"", op)};
    std::vector<ValueId> used = operands;
    if (isElementwise(*kind) && operands.size() > 1) {
        std::vector<Shape> shapes;
        for (const ValueId operand : operands)
            shapes.push_back(type(operand).shape);
        const auto common = commonShape(shapes);
        if (!common) {
            std::string text;
            for (const Shape& shape : shapes)
                text += (text.empty() ? "" : ", ") + shapeText(shape);
            return Problem{"MW1303", fmt::format("{} got incompatible shapes for broadcasting: {}.", op, text)};
        }
        for (ValueId& value : used)
            value = broadcastTo(m_builder, value, *common);
    }
    OpAttributes made = attributesOf(*kind, attributes);
    std::vector<TensorType> types;
    for (const ValueId value : used)
        types.push_back(type(value));
    if (const auto fits = resultTypes(*kind, made, types); !fits)
        return fits.error();
    return m_builder.addMany(*kind, std::move(used), std::move(made));
}

std::vector<ValueId> Trace::sorted(ValueId operand, std::size_t dim)
{
    const TensorType type = this->type(operand);
    const TensorType places{DType::S32, type.shape};
    const auto along = static_cast<std::int64_t>(dim);
    OtherAttributes attributes{"stablehlo.sort",
        {{"dimension", fmt::format("{} : i64", dim), false, {along}, {}}, {"is_stable", "true", false, {1}, {}}}, {type, places},
        0};
    const OpId op = m_builder.beginOp(OpKind::Sort, {operand, m_builder.iota(places, dim)}, std::move(attributes));
    const TensorType element{type.dtype, {}};
    const TensorType place{DType::S32, {}};
    const std::vector<ValueId> both = m_builder.beginBody(op, std::array{element, element, place, place});
    m_builder.setResults(
        {m_builder.add(OpKind::Compare, {both[0], both[1]}, CompareAttributes{CompareDirection::Less, isFloating(type.dtype)})});
    return m_builder.endOp(op, {type, places});
}

/// A Fourier transform along the last dimensions. `type`: FFT, IFFT, RFFT or IRFFT.
Result<std::vector<ValueId>> Trace::transformed(ValueId operand, const std::string& type, const Shape& lengths)
{
    const TensorType from = this->type(operand);
    TensorType to = from;
    if (type == "IRFFT")
        to.dtype = realType(from.dtype);
    else if (type == "RFFT")
        to.dtype = from.dtype == DType::F64 ? DType::C128 : DType::C64;
    if (!to.shape.empty() && !lengths.empty())
        to.shape.back() = type == "RFFT" ? lengths.back() / 2 + 1 : lengths.back();
    const KeptAttribute word{"fft_type", fmt::format("#stablehlo<fft_type {}>", type), false, {}, {}};
    const KeptAttribute numbers{"fft_length", fmt::format("array<i64: {}>", fmt::join(lengths, ", ")), false, lengths, {}};
    OtherAttributes attributes{"stablehlo.fft", {numbers, word}, {to}, 0};
    if (const auto fits = resultTypes(OpKind::Fft, attributes, std::array{from}); !fits)
        return fits.error();
    return m_builder.addMany(OpKind::Fft, {operand}, std::move(attributes));
}

ValueId Trace::constrain(ValueId operand, const Placement& placement)
{
    TensorSharding sharding = placement.sharding;
    std::size_t mesh = 0;
    while (mesh < m_traced.meshes.size() && !(m_traced.meshes[mesh].mesh == placement.mesh))
        ++mesh;
    if (mesh == m_traced.meshes.size())
        m_traced.meshes.push_back({fmt::format("mesh_{}", mesh), placement.mesh, placement.mesh.axes().empty()});
    sharding.mesh = static_cast<std::int32_t>(mesh);
    return m_builder.constrain(operand, std::move(sharding), "with_sharding_constraint");
}

namespace {

/// A function whose shardings speak of the meshes of another; what is not there yet is added.
Function onMeshesOf(const TracedFunction& traced, std::vector<NamedMesh>& meshes)
{
    std::vector<std::int32_t> indices;
    for (const NamedMesh& named : traced.meshes) {
        std::size_t mesh = 0;
        while (mesh < meshes.size() && !(meshes[mesh].mesh == named.mesh))
            ++mesh;
        if (mesh == meshes.size())
            meshes.push_back({fmt::format("mesh_{}", mesh), named.mesh, named.isMaximal});
        indices.push_back(static_cast<std::int32_t>(mesh));
    }
    Function function = traced.function;
    const auto move = [&](TensorSharding& sharding) {
        if (!indices.empty())
            sharding.mesh = indices[static_cast<std::size_t>(sharding.mesh)];
    };
    for (Value& value : function.values) {
        if (value.sharding)
            move(*value.sharding);
    }
    for (Op& op : function.ops) {
        if (op.kind == OpKind::ShardingConstraint)
            move(op.as<ConstraintAttributes>().sharding);
        if (op.kind == OpKind::Computation) {
            for (TensorSharding& sharding : op.as<ComputationAttributes>().inShardings)
                move(sharding);
            for (TensorSharding& sharding : op.as<ComputationAttributes>().outShardings)
                move(sharding);
        }
    }
    return function;
}

} // namespace

std::vector<ValueId> Trace::call(const TracedFunction& callee, const std::vector<ValueId>& operands)
{
    Function copied = onMeshesOf(callee, m_traced.meshes);
    std::set<std::string> taken; // a name is one value's
    for (const Value& value : m_traced.function.values)
        taken.insert(value.name);
    for (Value& value : copied.values) {
        if (taken.contains(value.name))
            value.name.clear();
    }
    return inlineCall(m_builder, copied, operands);
}

std::vector<ValueId> Trace::custom(const TracedFunction& rule, std::size_t reads, const std::vector<ValueId>& values,
    const std::vector<ValueId>& inputs, const std::vector<ValueId>& read)
{
    return addCustomDerivative(m_builder, onMeshesOf(rule, m_traced.meshes), reads, values, inputs, read);
}

std::vector<TensorType> Trace::typesOf(const std::vector<ValueId>& values) const
{
    std::vector<TensorType> types;
    for (const ValueId value : values)
        types.push_back(type(value));
    return types;
}

/// Fills the block that was begun last.
void Trace::fill(const LoopBlock& block, const std::vector<ValueId>& arguments)
{
    std::vector<ValueId> used;
    for (const std::size_t operand : block.operands)
        used.push_back(arguments.at(operand));
    m_builder.setResults(inlineCall(m_builder, onMeshesOf(block.function, m_traced.meshes), used));
}

namespace {

/// Problems: MW1303 the first results of a block are not of the carries' types.
Result<Done> carriesFit(const Function& body, const std::vector<TensorType>& operands, std::size_t carries)
{
    for (std::size_t i = 0; i < carries; ++i) {
        if (i >= body.results().size() || !(body[body.results()[i]].type == operands[i]))
            return Problem{"MW1303",
                fmt::format("carry {} of the loop is {} before it and another type after a turn", i, typeText(operands[i]))};
    }
    return Done{};
}

} // namespace

Result<std::vector<ValueId>> Trace::repeat(
    const LoopBlock& body, const std::vector<ValueId>& operands, const RepeatAttributes& attributes)
{
    const std::vector<TensorType> types = typesOf(operands);
    if (const auto fits = resultTypes(OpKind::Repeat, attributes, types); !fits)
        return fits.error();
    if (const auto fits = carriesFit(body.function.function, types, attributes.carries); !fits)
        return fits.error();
    const OpId op = m_builder.beginRepeat(attributes, operands);
    fill(body, m_traced.function[m_builder.block()].arguments);
    return m_builder.endRepeat(op);
}

Result<std::vector<ValueId>> Trace::whileLoop(
    const LoopBlock& condition, const LoopBlock& body, const std::vector<ValueId>& operands, std::size_t carries)
{
    const std::vector<TensorType> types = typesOf(operands);
    if (const auto fits = carriesFit(body.function.function, types, carries); !fits)
        return fits.error();
    const std::vector<ValueId> held = condition.function.function.results();
    if (held.size() != 1 || !(condition.function.function[held.front()].type == TensorType{DType::Pred, {}}))
        return Problem{"MW1303", "the condition of a loop is one truth value"};
    const OpId op = m_builder.beginOp(OpKind::While, operands, WhileAttributes{carries});
    fill(condition, m_builder.beginBody(op, types));
    fill(body, m_builder.beginBody(op, types));
    return m_builder.endOp(op, {types.begin(), types.begin() + static_cast<std::ptrdiff_t>(carries)});
}

Result<std::vector<ValueId>> Trace::choose(const std::vector<LoopBlock>& branches, const std::vector<ValueId>& operands)
{
    const std::vector<TensorType> types = typesOf(operands);
    if (const auto fits = resultTypes(OpKind::Case, {}, types); !fits)
        return fits.error();
    std::vector<TensorType> results;
    for (const LoopBlock& branch : branches) {
        const Function& function = branch.function.function;
        std::vector<TensorType> own;
        for (const ValueId result : function.results())
            own.push_back(function[result].type);
        if (&branch != &branches.front() && own != results)
            return Problem{"MW1303", "the branches give other types than the first"};
        results = std::move(own);
    }
    const OpId op = m_builder.beginOp(OpKind::Case, operands, {});
    for (const LoopBlock& branch : branches)
        fill(branch, m_builder.beginBody(op, std::span(types).subspan(1)));
    return m_builder.endOp(op, results);
}

Result<std::vector<ValueId>> Trace::manual(const TracedFunction& body, const std::vector<ValueId>& operands, const Mesh& mesh,
    const std::vector<TensorSharding>& in, const std::vector<TensorSharding>& out)
{
    const Function callee = onMeshesOf(body, m_traced.meshes);
    std::size_t index = 0;
    while (index < m_traced.meshes.size() && !(m_traced.meshes[index].mesh == mesh))
        ++index;
    if (index == m_traced.meshes.size())
        m_traced.meshes.push_back({fmt::format("mesh_{}", index), mesh, false});
    ComputationAttributes attributes{{}, in, out, {}};
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis)
        attributes.manualAxes.push_back(static_cast<std::int32_t>(axis));
    for (TensorSharding& sharding : attributes.inShardings)
        sharding.mesh = static_cast<std::int32_t>(index);
    for (TensorSharding& sharding : attributes.outShardings)
        sharding.mesh = static_cast<std::int32_t>(index);

    std::vector<TensorType> pieces;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const auto piece = manualPiece(type(operands[i]), attributes.inShardings[i], attributes.manualAxes);
        if (!piece)
            return Problem{
                "MW1302", fmt::format("operand {} of {} does not divide by its in_spec", i, typeText(type(operands[i])))};
        pieces.push_back(*piece);
    }
    std::vector<TensorType> results;
    for (std::size_t i = 0; i < callee.results().size(); ++i) {
        TensorType type = callee[callee.results()[i]].type;
        for (std::size_t dim = 0; dim < type.shape.size(); ++dim)
            type.shape[dim] *= shardCount(out[i].dims[dim].axes);
        results.push_back(std::move(type));
    }
    const OpId op = m_builder.beginOp(OpKind::Computation, operands, attributes);
    const std::vector<ValueId> arguments = m_builder.beginBody(op, pieces);
    m_builder.setResults(inlineCall(m_builder, callee, arguments));
    std::vector<ValueId> made = m_builder.endOp(op, results);
    if (Problems problems = varyingResults(m_traced.function, m_traced.function[op], mesh); !problems.empty())
        return problems;
    return made;
}

Result<ValueId> Trace::collective(const std::string& op, const std::vector<ValueId>& operands, const Mesh& mesh,
    const std::vector<std::string>& axes, const Attributes& attributes)
{
    const Reader read(attributes);
    AxisRefs over;
    for (const std::string& axis : axes)
        over.push_back(wholeAxis(mesh, mesh.findAxis(axis).value_or(0)));
    const auto groups = deviceGroups(over, mesh);
    if (op == "axis_index")
        return addPlaceInGroup(m_builder, groups, mesh);
    BodyCollective collective;
    collective.groups = groups;
    collective.split = read.dim("split");
    collective.join = read.dim("join");
    const std::map<std::string, std::pair<OpKind, ReduceKind>> kinds = {{"psum", {OpKind::AllReduce, ReduceKind::Sum}},
        {"pmax", {OpKind::AllReduce, ReduceKind::Max}}, {"pmin", {OpKind::AllReduce, ReduceKind::Min}},
        {"all_gather", {OpKind::AllGather, ReduceKind::Sum}}, {"psum_scatter", {OpKind::ReduceScatter, ReduceKind::Sum}},
        {"all_to_all", {OpKind::AllToAll, ReduceKind::Sum}}, {"ppermute", {OpKind::CollectivePermute, ReduceKind::Sum}}};
    const auto found = kinds.find(op);
    if (found == kinds.end())
        return Problem{"MW1561", fmt::format("no collective is called \"{}\"", op)};
    std::tie(collective.kind, collective.reduction) = found->second;
    const TensorType type = this->type(operands.front());
    const bool reduces = collective.kind == OpKind::AllReduce || collective.kind == OpKind::ReduceScatter;
    if (reduces && type.dtype == DType::Pred)
        collective.reduction = collective.reduction == ReduceKind::Min ? ReduceKind::And : ReduceKind::Or;
    if (const auto fits = resultTypes(OpKind::Reduce, ReduceAttributes{collective.reduction, {}}, std::array{type});
        reduces && !fits)
        return fits.error();
    if (collective.join >= std::max<std::size_t>(type.shape.size(), 1))
        return Problem{"MW1302", fmt::format("{} joins dimension {} of {}, which it lacks", op, collective.join, typeText(type))};
    const bool splits = collective.kind == OpKind::ReduceScatter || collective.kind == OpKind::AllToAll;
    if (const std::int64_t size = collective.groupSize();
        splits && (collective.split >= type.shape.size() || type.shape[collective.split] % size != 0))
        return Problem{
            "MW1302", fmt::format("{} splits dimension {} of {} into {} parts", op, collective.split, typeText(type), size)};
    if (collective.kind == OpKind::CollectivePermute) {
        const Shape within = read.shape("sources"); // by place in a group; -1: none
        collective.sources.assign(static_cast<std::size_t>(mesh.deviceCount()), -1);
        for (const auto& group : groups) {
            for (std::size_t place = 0; place < group.size(); ++place) {
                if (within[place] >= 0)
                    collective.sources[static_cast<std::size_t>(group[place])] = group[static_cast<std::size_t>(within[place])];
            }
        }
        collective.groups.clear();
    }
    return addBodyCollective(m_builder, collective, operands.front(), mesh);
}

TracedFunction Trace::finished(const std::vector<ValueId>& results) const
{
    TracedFunction made = m_traced;
    made.function.body().results = results;
    eraseDeadOps(made.function);
    made.function = compacted(std::move(made.function));
    return made;
}

namespace {

/// Where each of some values begins among its parts: complex ones have two.
std::vector<std::size_t> firstParts(const Function& function, const std::vector<ValueId>& values)
{
    std::vector<std::size_t> first;
    std::size_t at = 0;
    for (const ValueId value : values) {
        first.push_back(at);
        at += isComplex(function[value].type.dtype) ? 2U : 1U;
    }
    return first;
}

/// The parts of the chosen ones.
std::vector<std::size_t> partsOf(
    const Function& function, const std::vector<ValueId>& values, const std::vector<std::size_t>& chosen)
{
    const std::vector<std::size_t> first = firstParts(function, values);
    std::vector<std::size_t> parts;
    for (const std::size_t i : chosen) {
        parts.push_back(first[i]);
        if (isComplex(function[values[i]].type.dtype))
            parts.push_back(first[i] + 1);
    }
    return parts;
}

void addParts(Builder& builder, ValueId value, bool isConjugate, std::vector<ValueId>& parts)
{
    if (!isComplex(builder.type(value).dtype)) {
        parts.push_back(value);
        return;
    }
    parts.push_back(builder.unary(OpKind::Real, value));
    const ValueId imaginary = builder.unary(OpKind::Imag, value);
    parts.push_back(isConjugate ? builder.unary(OpKind::Negate, imaginary) : imaginary);
}

} // namespace

Result<TracedFunction> withCotangents(
    const TracedFunction& traced, const std::vector<std::size_t>& wrt, const std::vector<std::size_t>& seeds, bool isOne)
{
    const Function& given = traced.function;
    Function function = given;
    if (hasComplexValues(given)) {
        auto pairs = withComplexPairs(given);
        if (!pairs)
            return pairs.error();
        function = *std::move(pairs);
    }
    const auto parts = differentiate(
        function, partsOf(given, given.arguments(), wrt), partsOf(given, given.results(), seeds), {}, traced.meshes);
    if (!parts)
        return parts.error();
    TracedFunction made{{}, traced.meshes};
    made.function.name = given.name;
    Builder builder(made.function);
    std::vector<ValueId> arguments;
    for (const ValueId argument : given.arguments())
        addParts(builder, builder.argument(given[argument].type, given[argument].name, Role::Input), false, arguments);
    std::vector<ValueId> seedParts;
    for (const std::size_t seed : seeds) {
        const TensorType& type = given[given.results()[seed]].type;
        addParts(builder, isOne ? builder.splat(type, 1.0) : builder.argument(type), true, seedParts);
    }
    std::vector<ValueId> results;
    const auto join = [&](const std::vector<ValueId>& all, std::size_t& next, ValueId like, bool isConjugate) {
        const ValueId first = all[next++];
        if (!isComplex(given[like].type.dtype)) {
            results.push_back(first);
            return;
        }
        const ValueId second = all[next++];
        results.push_back(builder.binary(OpKind::Complex, first, isConjugate ? builder.unary(OpKind::Negate, second) : second));
    };
    std::vector<ValueId> values = inlineCall(builder, parts->forward, arguments);
    std::size_t at = 0;
    for (const ValueId result : given.results())
        join(values, at, result, false);
    std::vector<ValueId> operands(values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
    operands.insert(operands.end(), seedParts.begin(), seedParts.end());
    builder.setPhase(Phase::Backward);
    const std::vector<ValueId> cotangents = inlineCall(builder, parts->backward, operands);
    at = 0;
    for (const std::size_t argument : wrt)
        join(cotangents, at, given.arguments()[argument], true);
    builder.setResults(std::move(results));
    eraseDeadOps(made.function);
    made.function = compacted(std::move(made.function));
    return made;
}

} // namespace meshwright::python
