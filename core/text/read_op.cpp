// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/shape_rules.h"
#include "core/program/truth_values.h"
#include "core/support/checked.h"
#include "core/support/text.h"
#include "core/text/attribute_lists.h"
#include "core/text/function_reader.h"
#include "core/text/notation.h"
#include "core/text/op_table.h"
#include "core/text/parser.h"
#include "core/text/tile_import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace meshwright {

namespace {

/// Equal types and elements, whoever holds them.
bool sameConstant(const ConstantAttributes& a, const ConstantAttributes& b)
{
    const auto* bytesOfA = std::get_if<2>(&a.data.value);
    const auto* bytesOfB = std::get_if<2>(&b.data.value);
    if (bytesOfA == nullptr || bytesOfB == nullptr || *bytesOfA == nullptr || *bytesOfB == nullptr)
        return a == b;
    return a.type == b.type && **bytesOfA == **bytesOfB;
}

using Kind = SyntaxAttribute::Kind;

/// The integers of an attribute: a list, or the elements of a dense constant.
std::optional<std::vector<std::int64_t>> integersOf(const SyntaxAttribute& attribute)
{
    std::vector<std::int64_t> integers;
    if (attribute.kind == Kind::Integer)
        return std::vector<std::int64_t>{attribute.integer};
    if (attribute.kind == Kind::List) {
        for (const SyntaxAttribute& item : attribute.items) {
            if (item.kind != Kind::Integer)
                return std::nullopt;
            integers.push_back(item.integer);
        }
        return integers;
    }
    if (attribute.kind != Kind::Dense || !isInteger(attribute.constant.type.dtype))
        return std::nullopt;
    constexpr std::int64_t kMost = 64; // dimensions
    const ConstantAttributes& constant = attribute.constant;
    if (constant.type.elements() > kMost)
        return std::nullopt;
    if (const auto* splat = std::get_if<std::int64_t>(&constant.data.value))
        return std::vector<std::int64_t>(static_cast<std::size_t>(constant.type.elements()), *splat);
    const auto* blob = std::get_if<std::shared_ptr<const std::string>>(&constant.data.value);
    if (blob == nullptr || byteSize(constant.type.dtype) != 8)
        return std::nullopt;
    integers.resize((*blob)->size() / 8);
    std::memcpy(integers.data(), (*blob)->data(), integers.size() * 8);
    return integers;
}

/// True for forms of the op that its kind does not have: it is then kept as it is.
bool isBeyondKind(const SyntaxOp& op, OpKind kind)
{
    const auto firstShape
        = [](const SyntaxList<SyntaxType>& types) { return types.empty() ? Shape() : types.front().type().shape; };
    return kind == OpKind::BitcastConvert && op.hasArrow && firstShape(op.operandTypes) != firstShape(op.resultTypes);
}

} // namespace

// Types ------------------------------------------------------------------------------------------------------------------------

bool FunctionReader::checkType(const SyntaxType& type, const TensorType& actual, std::string_view what)
{
    if (!type.unsupported.empty())
        return m_problems.report("MW1322", type.offset, fmt::format("{} is not supported", type.unsupported));
    if (type.type() != actual)
        return m_problems.report(
            "MW1325", type.offset, fmt::format("{} is {}, not {}", what, typeText(actual), typeText(type.type())));
    return true;
}

bool FunctionReader::checkOperandType(const SyntaxType& type, const TensorType& actual, const SyntaxUse& use)
{
    return (type.unsupported.empty() && type.type() == actual) || checkType(type, actual, textOf(use));
}

bool FunctionReader::checkResultType(const SyntaxOp& op, const SyntaxType& type, const TensorType& actual, std::size_t index)
{
    if (type.unsupported.empty() && type.type() == actual)
        return true;
    return checkType(type, actual,
        op.resultCount == 1 ? fmt::format("the result of {}", op.name) : fmt::format("result {} of {}", index, op.name));
}

bool FunctionReader::checkOperandTypes(const SyntaxOp& op, const std::vector<TensorType>& types)
{
    if (!op.hasArrow && op.operandTypes.size() == 1) {
        for (std::size_t i = 0; i < types.size(); ++i) {
            if (!checkOperandType(op.operandTypes.front(), types[i], op.operands[i]))
                return false;
        }
        return true;
    }
    // A select may name the predicate's type and that of the others.
    const bool isSelect = !op.hasArrow && op.operandTypes.size() == 2 && types.size() == 3;
    if (op.operandTypes.size() != types.size() && !isSelect)
        return m_problems.report("MW1325", op.offset,
            fmt::format("{} has {} operands but {} operand types", op.name, types.size(), op.operandTypes.size()));
    for (std::size_t i = 0; i < types.size(); ++i) {
        if (!checkOperandType(op.operandTypes[std::min(i, op.operandTypes.size() - 1)], types[i], op.operands[i]))
            return false;
    }
    return true;
}

/// The type that the text gives the only result.
const TensorType* FunctionReader::resultType(const SyntaxOp& op)
{
    const SyntaxList<SyntaxType>& types = op.hasArrow ? op.resultTypes : op.operandTypes;
    if (types.empty() || (op.hasArrow && types.size() != 1)) {
        m_problems.report("MW1325", op.offset, fmt::format("{} has one result, but {} result types", op.name, types.size()));
        return nullptr;
    }
    if (!types.back().unsupported.empty()) {
        m_problems.report("MW1322", types.back().offset, fmt::format("{} is not supported", types.back().unsupported));
        return nullptr;
    }
    return types.back().known;
}

std::optional<std::vector<std::size_t>> FunctionReader::dimsOf(
    const SyntaxOp& op, const SyntaxAttribute* attribute, std::string_view what)
{
    if (attribute == nullptr) {
        m_problems.report("MW1326", op.offset, fmt::format("{} needs {}", op.name, what));
        return std::nullopt;
    }
    const auto integers = integersOf(*attribute);
    if (!integers || std::any_of(integers->begin(), integers->end(), [](std::int64_t i) { return i < 0; })) {
        m_problems.report("MW1326", attribute->offset, fmt::format("{} of {} is not a list of dimensions", what, op.name));
        return std::nullopt;
    }
    return std::vector<std::size_t>(integers->begin(), integers->end());
}

// Ops --------------------------------------------------------------------------------------------------------------------------

/// The operands in the innermost block and their types; false when one is not known.
bool FunctionReader::useOperands(
    const SyntaxOp& op, const Bindings& bindings, std::vector<ValueId>& operands, std::vector<TensorType>& types)
{
    for (const SyntaxUse& each : op.operands) {
        const ValueId value = each.value < 0 ? ValueId() : use(bindings[static_cast<std::size_t>(each.value)], each.offset);
        if (!value.valid())
            return false;
        operands.push_back(value);
        types.push_back(m_function[value].type);
    }
    return true;
}

void FunctionReader::readKind(const SyntaxOp& op, OpKind kind, Bindings& bindings)
{
    if (foldIndex(op, kind, bindings))
        return;
    if (kind == OpKind::Reduce)
        return readReduce(op, bindings);
    if (isBeyondKind(op, kind))
        return readOther(op, bindings);

    std::vector<ValueId> operands;
    std::vector<TensorType> types;
    // The own forms of some ops have the result's type only.
    const bool hasOperandTypes = kind != OpKind::Constant && (op.hasArrow || opInfo(kind).makes != ElementResult::Complex);
    if (!useOperands(op, bindings, operands, types) || (hasOperandTypes && !checkOperandTypes(op, types)))
        return;
    if (!types.empty() && types.front().dtype == DType::Pred)
        kind = onTruths(kind);
    // A scalar goes with every element.
    if ((kind == OpKind::Select || kind == OpKind::Clamp) && types.size() == 3) {
        for (std::size_t i = 0; i < 3; ++i) {
            if (i != 1 && types[i].shape.empty() && !types[1].shape.empty() && (kind == OpKind::Clamp || i == 0)) {
                operands[i] = m_builder.broadcast(operands[i], types[1].shape, {});
                types[i].shape = types[1].shape;
            }
        }
    }
    OpAttributes attributes = opInfo(kind).attributes();
    if (!types.empty() || kind == OpKind::Constant || kind == OpKind::Iota) {
        if (!makeAttributes(op, kind, types, attributes))
            return;
    }
    if (isCollective(kind) && !types.empty() && !readWholeCollective(op, operands.front(), kind, attributes))
        return;
    add(op, kind, std::move(operands), types, std::move(attributes), bindings);
}

bool FunctionReader::fits(const SyntaxOp& op, OpKind kind, const OpAttributes& attributes, std::span<const TensorType> operands,
    std::vector<TensorType>& results)
{
    auto made = resultTypes(kind, attributes, operands);
    if (!made)
        return m_problems.report(made.error(), op.offset);
    results = *std::move(made);
    if (results.size() != static_cast<std::size_t>(op.resultCount))
        return m_problems.report(
            "MW1325", op.offset, fmt::format("{} has {} results, not {}", op.name, results.size(), op.resultCount));
    return true;
}

bool FunctionReader::add(
    const SyntaxOp& op, OpKind kind, std::vector<ValueId> operands, OpAttributes attributes, Bindings& bindings)
{
    std::vector<TensorType> types;
    for (const ValueId operand : operands)
        types.push_back(m_function[operand].type);
    return add(op, kind, std::move(operands), types, std::move(attributes), bindings);
}

/// Appends the op, on operands of these types, when it and the types in the text agree.
bool FunctionReader::add(const SyntaxOp& op, OpKind kind, std::vector<ValueId> operands, std::span<const TensorType> types,
    OpAttributes attributes, Bindings& bindings)
{
    std::vector<TensorType> results;
    if (!fits(op, kind, attributes, types, results))
        return false;
    if (results.size() == 1 && (kind != OpKind::Constant || op.hasArrow)) { // a constant's own form has its type in the literal
        const SyntaxList<SyntaxType>& declared = op.hasArrow ? op.resultTypes : op.operandTypes;
        if (resultType(op) == nullptr || !checkResultType(op, declared.back(), results.front(), 0))
            return false;
    }
    for (std::size_t i = 0; results.size() > 1 && op.hasArrow && i < results.size(); ++i) {
        if (i >= op.resultTypes.size() || !checkResultType(op, op.resultTypes[i], results[i], i))
            return false;
    }
    const OpId id = m_builder.beginOp(kind, std::move(operands), std::move(attributes));
    const std::vector<ValueId> values = m_builder.endOp(id, results);
    m_function[id].kept = keptText(op, kind);
    finish(op, kind, values);
    for (std::size_t i = 0; i < values.size(); ++i)
        bindings[static_cast<std::size_t>(op.firstResult) + i] = bind(values[i]);
    return true;
}

/// The shardings that an op gives its results, to those of `values` (one for each) that have none.
void FunctionReader::setShardings(const SyntaxOp& op, const std::vector<ValueId>& values, const char* what)
{
    const SyntaxAttribute* given = op.find("sdy.sharding");
    if (given == nullptr || given->kind != Kind::Shardings)
        return;
    if (given->shardings.size() != values.size()) {
        m_problems.report("MW1330", given->offset,
            fmt::format("{} shardings for {} {}", given->shardings.size(), values.size(), what),
            fmt::format("write one sharding for each of them, {} in all", values.size()));
        return;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!values[i].valid() || m_function[values[i]].sharding)
            continue;
        setSharding(values[i], given->shardings[i], given->offset);
        if (!m_module.isOurs && m_function[values[i]].annotation.empty())
            m_function[values[i]].annotation = fmt::format("sdy.sharding of {}", op.name);
    }
}

/// What the text says about the results besides their types.
void FunctionReader::finish(const SyntaxOp& op, OpKind kind, const std::vector<ValueId>& results)
{
    if (results.size() == 1)
        return finishOne(op, kind, results.front());
    if (results.empty())
        return;
    if (op.find("mw.results") != nullptr)
        readLoopNotes(op, "mw.results", results);
    else
        setShardings(op, results, "results");
}

void FunctionReader::finishOne(const SyntaxOp& op, OpKind kind, ValueId result)
{
    for (const auto& [name, attribute, isProperty, isKeyword] : op.attributes) {
        if (name == "mw.name")
            m_function[result].name = attribute.text;
        else if (name == "mw.annotation")
            m_function[result].annotation = attribute.text;
        else if (name == "mw.role") {
            if (const auto role = parseRoleKeyword(attribute.text))
                m_function[result].role = *role;
            else
                m_problems.report("MW1326", attribute.offset, fmt::format("\"{}\" is not a role of a value", attribute.text));
        }
    }
    const bool namesSharding = kind == OpKind::ShardingConstraint || isCollective(kind);
    const SyntaxAttribute* named = namesSharding ? op.findEither("out_sharding", "sharding") : nullptr;
    if (op.find("sdy.sharding") != nullptr) {
        setShardings(op, {result}, "result");
    } else if (named != nullptr && named->shardings.size() == 1 && op.find("mw.no_sharding") == nullptr) {
        setSharding(result, named->shardings.front(), named->offset);
        if (!m_module.isOurs && kind == OpKind::ShardingConstraint)
            m_function[result].annotation
                = std::get<ConstraintAttributes>(m_function[m_function[result].producer].attributes).origin;
    }
}

bool FunctionReader::makeAttributes(
    const SyntaxOp& op, OpKind kind, const std::vector<TensorType>& types, OpAttributes& attributes)
{
    attributes = opInfo(kind).attributes();
    switch (kind) {
    case OpKind::Constant: {
        const SyntaxAttribute* value = op.find("value");
        if (value == nullptr || value->kind != Kind::Dense)
            return m_problems.report("MW1326", op.offset, "a constant needs its value");
        attributes = value->constant;
        return true;
    }
    case OpKind::Iota: {
        const auto dims = dimsOf(op, op.findEither("dim", "iota_dimension"), "its dimension");
        const TensorType* type = resultType(op);
        if (!dims || type == nullptr)
            return false;
        if (dims->size() != 1)
            return m_problems.report("MW1326", op.offset, "iota needs one dimension");
        attributes = IotaAttributes{*type, dims->front()};
        return true;
    }
    case OpKind::Convert:
    case OpKind::BitcastConvert:
    case OpKind::Reshape: {
        const TensorType* type = resultType(op);
        if (type == nullptr)
            return false;
        if (kind == OpKind::Reshape)
            attributes = ReshapeAttributes{type->shape};
        else
            attributes = ConvertAttributes{type->dtype};
        return true;
    }
    case OpKind::BroadcastInDim: {
        const TensorType* type = resultType(op);
        if (type == nullptr)
            return false;
        std::get<BroadcastAttributes>(attributes).shape = type->shape;
        break;
    }
    case OpKind::Compare: {
        CompareAttributes compare;
        const bool good = makeCompare(op, types.front(), compare);
        attributes = compare;
        return good;
    }
    case OpKind::DotGeneral: {
        DotAttributes dot;
        const bool good = makeDot(op, types, dot);
        attributes = std::move(dot);
        return good;
    }
    case OpKind::ShardingConstraint: {
        const SyntaxAttribute* sharding = op.find("sharding");
        if (sharding == nullptr || sharding->shardings.size() != 1)
            return m_problems.report("MW1326", op.offset, "a sharding constraint needs its sharding");
        TensorSharding wanted = sharding->shardings.front();
        fillMaximal(wanted, types.front());
        if (wanted.dims.size() != types.front().shape.size())
            return m_problems.report("MW1330", sharding->offset,
                fmt::format("a sharding of {} dimensions for {}", wanted.dims.size(), typeText(types.front())),
                entriesFix(types.front().shape.size()));
        const SyntaxAttribute* origin = op.find("mw.origin");
        std::string from = origin != nullptr ? origin->text
            : m_module.isOurs                ? std::string()
                                             : fmt::format("sdy.sharding_constraint of {}", textOf(op.operands.front()));
        attributes = ConstraintAttributes{std::move(wanted), std::move(from)};
        return true;
    }
    default:
        break;
    }
    if (kind == OpKind::Slice || kind == OpKind::Gather || kind == OpKind::Scatter || kind == OpKind::PropagationBarrier)
        return makeParts(op, kind, attributes);
    if (!isCollective(kind))
        return readLists(op, attributes) && readNumbers(op, attributes);
    CollectiveAttributes collective;
    const bool good = makeCollective(op, kind, types.front(), collective);
    attributes = std::move(collective);
    return good;
}

namespace {

/// The numbers in a text like `e5m10` of the form `e{}m{}`; empty when it is not of that form.
std::vector<std::int64_t> numbersIn(std::string_view text, std::string_view form)
{
    std::vector<std::int64_t> numbers;
    std::string found;
    while (!text.empty()) {
        const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
        if (const auto number = parseInteger(text.substr(0, digits)); number && digits > 0)
            numbers.push_back(*number);
        found += digits > 0 ? std::string_view("{}") : text.substr(0, 1);
        text.remove_prefix(std::max<std::size_t>(digits, 1));
    }
    return found == form ? numbers : std::vector<std::int64_t>();
}

} // namespace

/// Attributes that are enumerators have one of their words.
bool FunctionReader::checkEnumerators(const SyntaxOp& op)
{
    for (const SyntaxEntry& entry : op.attributes) {
        const Enumerators* known = enumeratorsOf(op.name, entry.name);
        if (known == nullptr)
            continue;
        const SyntaxAttribute& value = entry.value;
        const bool isList = value.kind == Kind::List;
        for (const SyntaxAttribute& word : isList ? std::span<const SyntaxAttribute>(value.items) : std::span(&value, 1)) {
            if (std::ranges::find(known->words, word.text) == known->words.end())
                return m_problems.report("MW1326", word.offset,
                    fmt::format("\"{}\" is not {}: {}",
                        word.text.empty() ? m_text.substr(word.offset, word.end - word.offset) : word.text, known->what,
                        fmt::join(known->words, ", ")));
        }
    }
    return true;
}

/// Attributes that are lists, in the op's own form or in the generic one.
bool FunctionReader::readLists(const SyntaxOp& op, OpAttributes& attributes)
{
    return forEachList(attributes, [&](const char* own, const char* generic, auto& into) {
        const SyntaxAttribute* attribute = op.findEither(own, generic);
        if constexpr (std::is_same_v<decltype(into), Shape&>) {
            return (attribute != nullptr && appendIntegers(*attribute, into))
                || m_problems.report("MW1326", attribute == nullptr ? op.offset : attribute->offset,
                    fmt::format("{} needs {}, a list of integers", op.name, generic));
        } else {
            auto dims = dimsOf(op, attribute, fmt::format("its {}", generic));
            if (!dims)
                return false;
            if constexpr (!std::is_same_v<decltype(into), std::size_t&>)
                into = *std::move(dims);
            else if (dims->size() == 1)
                into = dims->front();
            else
                return m_problems.report("MW1326", op.offset, fmt::format("{} needs one {}", op.name, generic));
            return true;
        }
    });
}

/// Attributes that are numbers, in the generic form or in the op's own one.
bool FunctionReader::readNumbers(const SyntaxOp& op, OpAttributes& attributes)
{
    std::vector<std::int64_t> own;
    const auto readOwn = [&](const auto& made) {
        if constexpr (requires { made.kForm; }) {
            constexpr std::string_view kEquals = " = ";
            const std::size_t equals = made.kForm.find(kEquals);
            const SyntaxAttribute* written = op.find(made.kForm.substr(0, equals));
            if (written != nullptr && written->end >= written->offset)
                own = numbersIn(trimmed(m_text.substr(written->offset, written->end - written->offset)),
                    made.kForm.substr(equals + kEquals.size()));
        }
    };
    std::visit(readOwn, attributes);
    std::size_t next = 0;
    bool good = true;
    forEachNumber(attributes, [&](const auto& number, std::int64_t& value) {
        const SyntaxAttribute* generic = op.find(number.name);
        const std::size_t place = next++;
        const bool isGiven = generic != nullptr ? generic->kind == Kind::Integer : place < own.size();
        if (isGiven)
            value = generic != nullptr ? generic->integer : own[place];
        if (good && (!isGiven || value < number.least))
            good = m_problems.report("MW1326", generic != nullptr ? generic->offset : op.offset,
                fmt::format("{} needs {}, an integer of at least {}", op.name, number.name, number.least));
    });
    return good;
}

bool FunctionReader::makeCompare(const SyntaxOp& op, const TensorType& type, CompareAttributes& compare)
{
    const SyntaxAttribute* order = op.find("compare_type");
    const std::string_view how = order != nullptr ? std::string_view(order->text) : op.words.size() > 1 ? op.words[1] : "";
    const bool isUnsignedOrder = isUnsigned(type.dtype) || type.dtype == DType::Pred;
    const bool hasFloats = isFloating(type.dtype) || isComplex(type.dtype);
    const std::string_view own = hasFloats ? "FLOAT" : isUnsignedOrder ? "UNSIGNED" : "SIGNED";
    compare.isTotalOrder = how == "TOTALORDER" && isFloating(type.dtype);
    if (!how.empty() && how != "NOTYPE" && how != own && !compare.isTotalOrder)
        return m_problems.report("MW1326", order != nullptr ? order->offset : op.offset,
            fmt::format("'{}' is not how elements of {} are compared: {}", how, typeText(type), own));
    std::string_view direction = op.words.empty() ? std::string_view() : op.words.front();
    if (const SyntaxAttribute* attribute = op.find("comparison_direction"))
        direction = attribute->text;
    for (int i = 0; i <= static_cast<int>(CompareDirection::GreaterEqual); ++i) {
        compare.direction = static_cast<CompareDirection>(i);
        if (direction == compareDirectionName(compare.direction))
            return true;
    }
    return m_problems.report(
        "MW1326", op.offset, fmt::format("'{}' is not a direction of a comparison: EQ, NE, LT, LE, GT or GE", direction));
}

bool FunctionReader::makeDot(const SyntaxOp& op, const std::vector<TensorType>& types, DotAttributes& dot)
{
    const TensorType* type = resultType(op);
    if (type == nullptr)
        return false;
    dot.resultType = type->dtype;
    dot.operandType = types.front().dtype;
    const auto read = [&](const SyntaxAttribute* attribute, std::vector<std::size_t>& dims) {
        if (attribute == nullptr)
            return true;
        auto found = dimsOf(op, attribute, "a list of dimensions");
        if (found)
            dims = *std::move(found);
        return found.has_value();
    };
    bool good = true;
    if (const SyntaxAttribute* numbers = op.find("dot_dimension_numbers")) {
        good = read(numbers->find("lhs_batching_dimensions"), dot.lhsBatch)
            && read(numbers->find("rhs_batching_dimensions"), dot.rhsBatch)
            && read(numbers->find("lhs_contracting_dimensions"), dot.lhsContracting)
            && read(numbers->find("rhs_contracting_dimensions"), dot.rhsContracting);
    }
    const auto readPair = [&](std::string_view name, std::vector<std::size_t>& lhs, std::vector<std::size_t>& rhs) {
        const SyntaxAttribute* pair = op.find(name);
        if (pair == nullptr)
            return true;
        if (pair->items.size() != 2 || pair->items[0].kind != Kind::List)
            return m_problems.report("MW1326", pair->offset, fmt::format("{} needs two lists: [..] x [..]", name));
        return read(&pair->items[0], lhs) && read(&pair->items[1], rhs);
    };
    good = good && readPair("batching_dims", dot.lhsBatch, dot.rhsBatch)
        && readPair("contracting_dims", dot.lhsContracting, dot.rhsContracting);
    if (op.name == "stablehlo.dot" && types.size() == 2 && !types[0].shape.empty()) { // matrices and vectors
        dot.lhsContracting = {types[0].shape.size() - 1};
        dot.rhsContracting = {0};
    }
    if (const SyntaxAttribute* algorithm = op.find("algorithm")) {
        const SyntaxAttribute* precision = algorithm->find("lhs_precision_type");
        const auto dtype = precision != nullptr ? parseDType(precision->text) : std::nullopt;
        if (dtype && isFloating(*dtype))
            dot.operandType = *dtype;
    }
    return good;
}

// Reduce -----------------------------------------------------------------------------------------------------------------------

/// The reduction that the named op, or a body of one such op on its two arguments, is.
std::optional<ReduceKind> FunctionReader::reduceKindOf(const SyntaxOp& op)
{
    std::string_view combiner = op.words.empty() ? std::string_view() : op.words.front();
    if (op.regions.size() == 1 && op.regions.front().ops.size() == 2 && op.regions.front().arguments.size() == 2) {
        const SyntaxRegion& body = op.regions.front();
        const SyntaxOp& combine = body.ops.front();
        const SyntaxOp& last = body.ops.back();
        const auto uses = [&](std::size_t i) { return combine.operands[i].value; };
        const bool plain = combine.operands.size() == 2 && last.operands.size() == 1 && combine.resultCount == 1
            && last.operands.front().value == combine.firstResult
            && ((uses(0) == body.arguments[0] && uses(1) == body.arguments[1])
                || (uses(0) == body.arguments[1] && uses(1) == body.arguments[0]));
        combiner = plain ? combine.name : std::string_view();
    }
    for (int i = 0; i <= static_cast<int>(ReduceKind::Or); ++i) {
        const auto kind = static_cast<ReduceKind>(i);
        if (combiner == dialectName(combinerOf(kind)))
            return kind;
    }
    return std::nullopt;
}

/// True for an op without a block, and for one whose block takes scalars of this type.
bool FunctionReader::takesScalarsOf(const SyntaxOp& op, DType dtype)
{
    const auto isScalar = [&](const SyntaxType& type) {
        return type.unsupported.empty() && type.type() == TensorType{dtype, {}};
    };
    return std::all_of(op.regions.begin(), op.regions.end(), [&](const SyntaxRegion& region) {
        return std::all_of(region.argumentTypes.begin(), region.argumentTypes.end(), isScalar);
    });
}

void FunctionReader::readReduce(const SyntaxOp& op, Bindings& bindings)
{
    auto kind = reduceKindOf(op);
    if (op.operands.size() != 2 || !kind)
        return readOther(op, bindings);
    const auto dims = dimsOf(op, op.find("dimensions"), "its dimensions");
    if (!dims || op.operands[0].value < 0 || op.operands[1].value < 0)
        return;
    const Binding& initial = bindings[static_cast<std::size_t>(op.operands[1].value)];
    const ValueId operand = use(bindings[static_cast<std::size_t>(op.operands[0].value)], op.operands[0].offset);
    if (!operand.valid() || initial.kind == Binding::Kind::Unknown)
        return;
    const TensorType type = m_function[operand].type;
    if (!takesScalarsOf(op, type.dtype)) // its block has other types, or is none
        return readOther(op, bindings);
    if (!checkOperandTypes(op, {type, typeOf(initial)}))
        return;
    if (typeOf(initial) != TensorType{type.dtype, {}}) {
        m_problems.report("MW1325", op.operands[1].offset,
            fmt::format("the initial value is {}, not {}", typeText(typeOf(initial)), typeText({type.dtype, {}})));
        return;
    }
    if (type.dtype == DType::Pred)
        kind = onTruths(*kind);
    std::vector<std::size_t> sorted = *dims;
    std::sort(sorted.begin(), sorted.end());
    bool isIdentity = false;
    if (initial.kind == Binding::Kind::Value) {
        const OpId producer = m_function[initial.value].producer;
        isIdentity = producer.valid() && m_function[producer].kind == OpKind::Constant
            && sameConstant(m_function[producer].as<ConstantAttributes>(), reduceIdentity(*kind, type.dtype));
    }
    if (isIdentity) {
        consume(initial.value);
        add(op, OpKind::Reduce, {operand}, ReduceAttributes{*kind, std::move(sorted)}, bindings);
        return;
    }
    // With another initial value: the reduction, combined with it.
    std::vector<TensorType> results;
    const ReduceAttributes attributes{*kind, std::move(sorted)};
    if (!fits(op, OpKind::Reduce, attributes, {&type, 1}, results))
        return;
    const ValueId reduced = m_builder.add(OpKind::Reduce, {operand}, attributes);
    const ValueId start = m_builder.broadcastScalar(use(initial, op.operands[1].offset), results.front().shape);
    add(op, combinerOf(*kind), {reduced, start}, {}, bindings);
}

// Others -----------------------------------------------------------------------------------------------------------------------

/// The calls that stand for ops of ours; false for all others.
/// A constraint as JAX writes it without Shardy: `stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{devices=[4,2]<=[8]}"}`. False when its tiles
/// say nothing.
bool FunctionReader::readTiledConstraint(const SyntaxOp& op, Bindings& bindings)
{
    const SyntaxAttribute* tiles = op.find("mhlo.sharding");
    if (tiles == nullptr || op.operands.size() != 1 || op.operands.front().value < 0)
        return false;
    const TensorType type = typeOf(bindings[static_cast<std::size_t>(op.operands.front().value)]);
    auto sharding = tiledSharding(m_module, *tiles, type.shape.size(), m_problems);
    if (!sharding)
        return false;
    // `unspecified_dims=[0,1]`: propagation may split these further.
    const SyntaxAttribute* config = op.find("backend_config");
    constexpr std::string_view kOpen = "unspecified_dims=[";
    if (const std::size_t at = config == nullptr ? std::string::npos : config->text.find(kOpen); at != std::string::npos) {
        const std::size_t start = at + kOpen.size();
        for (const std::string& dim : split(config->text.substr(start, config->text.find(']', start) - start), ',')) {
            const auto index = parseInteger(trimmed(dim));
            if (index && *index >= 0 && *index < static_cast<std::int64_t>(sharding->dims.size()))
                sharding->dims[static_cast<std::size_t>(*index)].open = true;
        }
    }
    std::vector<ValueId> operands;
    std::vector<TensorType> types;
    if (!useOperands(op, bindings, operands, types) || !checkOperandTypes(op, types))
        return true;
    if (add(op, OpKind::ShardingConstraint, std::move(operands), ConstraintAttributes{*sharding, "mhlo.sharding"}, bindings)) {
        Value& result = m_function[bindings[static_cast<std::size_t>(op.firstResult)].value];
        result.sharding = std::move(sharding);
        result.annotation = "mhlo.sharding";
        if (const auto& kept = m_function[result.producer].kept; kept != nullptr) {
            KeptText rest = *kept; // without what was all about the sharding
            std::erase_if(rest.attributes, [](const KeptAttribute& attribute) {
                return attribute.name == "mhlo.sharding" || attribute.name == "backend_config"
                    || attribute.name == "call_target_name";
            });
            m_function[result.producer].kept = rest == KeptText() ? nullptr : std::make_shared<const KeptText>(std::move(rest));
        }
    }
    return true;
}

bool FunctionReader::readCustomCall(const SyntaxOp& op, Bindings& bindings)
{
    const SyntaxAttribute* target = op.findEither("callee", "call_target_name");
    const std::string name = target == nullptr ? std::string() : target->text;
    if (name == "Sharding")
        return readTiledConstraint(op, bindings);
    if (name.starts_with("xla.sdy.")) { // the ends of a manual computation, on their way through StableHLO
        m_problems.report("MW1364", op.offset,
            fmt::format(
                "a call of @{} stands for a part of Shardy's dialect, whose meaning is in mhlo.frontend_attributes", name),
            kPrintAsLowered);
        return true;
    }
    if (name != "meshwright.random_bits" && name != "meshwright.send" && name != "meshwright.recv")
        return false;
    std::vector<ValueId> operands;
    std::vector<TensorType> types;
    if (!useOperands(op, bindings, operands, types) || !checkOperandTypes(op, types))
        return true;
    if (name == "meshwright.random_bits") {
        const SyntaxAttribute* partitionable = op.find("mw.partitionable");
        if (const TensorType* type = resultType(op))
            add(op, OpKind::RandomBits, std::move(operands),
                RandomBitsAttributes{*type, partitionable == nullptr || partitionable->integer != 0}, bindings);
        return true;
    }
    TransferAttributes transfer;
    if (const SyntaxAttribute* stage = op.find("mw.stage"))
        transfer.stage = static_cast<std::int32_t>(stage->integer);
    if (const SyntaxAttribute* channel = op.find("mw.channel"))
        transfer.channel = static_cast<std::int32_t>(channel->integer);
    const OpKind kind = name == "meshwright.send" ? OpKind::Send : OpKind::Receive;
    if (kind == OpKind::Receive) {
        const TensorType* type = resultType(op);
        if (type == nullptr)
            return true;
        transfer.type = *type;
    }
    add(op, kind, std::move(operands), std::move(transfer), bindings);
    return true;
}

void FunctionReader::readGroup(const SyntaxOp& op, Bindings& bindings)
{
    const SyntaxAttribute* id = op.find("group_id");
    if (op.operands.size() != 1 || id == nullptr || id->kind != Kind::Integer) {
        m_problems.report("MW1326", op.offset, "sdy.sharding_group needs one value and a group_id");
        return;
    }
    if (op.operands.front().value < 0)
        return;
    const Binding& member = bindings[static_cast<std::size_t>(op.operands.front().value)];
    if (member.kind == Binding::Kind::Value)
        m_groups[id->integer].push_back(member.value);
}

/// A value as what a loop, a branch or a computation passes on: itself, with the sharding of that edge.
void FunctionReader::readDataFlowEdge(const SyntaxOp& op, Bindings& bindings)
{
    if (op.operands.size() != 1 || op.resultCount != 1) {
        m_problems.report("MW1326", op.offset, fmt::format("{} needs one value", op.name));
        return;
    }
    if (op.operands.front().value < 0)
        return;
    const Binding passed = bindings[static_cast<std::size_t>(op.operands.front().value)];
    bindings[static_cast<std::size_t>(op.firstResult)] = passed;
    if (passed.kind != Binding::Kind::Value || m_function[passed.value].sharding)
        return;
    const OpId producer = m_function[passed.value].producer;
    const bool hasItsOwn = producer.valid() && m_function[producer].kind == OpKind::Computation; // its out_sharding
    const SyntaxAttribute* sharding = op.find("sharding");
    if (!hasItsOwn && sharding != nullptr && sharding->shardings.size() == 1)
        setSharding(passed.value, sharding->shardings.front(), sharding->offset);
}

} // namespace meshwright
