// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/kept_blocks.h"
#include "core/program/other_op.h"
#include "core/program/shape_rules.h"
#include "core/program/truth_values.h"
#include "core/support/text.h"
#include "core/text/attribute_lists.h"
#include "core/text/function_reader.h"
#include "core/text/line_tree.h"
#include "core/text/notation.h"
#include "core/text/op_table.h"
#include "core/text/parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace meshwright {

namespace {
using Kind = SyntaxAttribute::Kind;
}

bool appendIntegers(const SyntaxAttribute& attribute, std::vector<std::int64_t>& integers)
{
    constexpr std::int64_t kMost = std::int64_t{1} << 20;
    if (attribute.kind == Kind::Integer || attribute.kind == Kind::Bool) {
        integers.push_back(attribute.integer);
        return true;
    }
    if (attribute.kind == Kind::List)
        return std::all_of(attribute.items.begin(), attribute.items.end(),
            [&](const SyntaxAttribute& item) { return appendIntegers(item, integers); });
    const TensorType& type = attribute.constant.type;
    if (attribute.kind != Kind::Dense || attribute.constant.data.isElided() || type.elements() > kMost
        || !(isInteger(type.dtype) || type.dtype == DType::Pred))
        return false;
    const auto count = static_cast<std::size_t>(type.elements());
    if (const auto* splat = std::get_if<std::int64_t>(&attribute.constant.data.value)) {
        integers.insert(integers.end(), count, *splat);
        return true;
    }
    const std::string& bytes = **std::get_if<2>(&attribute.constant.data.value);
    const auto size = static_cast<std::size_t>(byteSize(type.dtype));
    const auto unused = static_cast<unsigned>(64 - 8 * size);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, bytes.data() + i * size, size);
        const bool isSigned = isInteger(type.dtype) && !isUnsigned(type.dtype);
        integers.push_back(isSigned ? static_cast<std::int64_t>(bits << unused) >> unused : static_cast<std::int64_t>(bits));
    }
    return true;
}

namespace {

void fillParts(const SyntaxAttribute& attribute, KeptAttribute& kept)
{
    if (!appendIntegers(attribute, kept.integers))
        kept.integers.clear();
    for (std::size_t i = 0; i < attribute.keys.size(); ++i) {
        KeptAttribute& entry = kept.entries.emplace_back();
        entry.name = attribute.keys[i];
        fillParts(attribute.items[i], entry);
    }
}

/// `[1, 2]` as the generic form has it: `array<i64: 1, 2>`.
std::string arrayText(std::span<const std::int64_t> integers)
{
    return integers.empty() ? "array<i64>" : fmt::format("array<i64: {}>", fmt::join(integers, ", "));
}

std::string truthsText(std::span<const std::int64_t> integers)
{
    std::vector<std::string_view> words;
    for (const std::int64_t integer : integers)
        words.push_back(integer != 0 ? "true" : "false");
    return fmt::format("array<i1: {}>", fmt::join(words, ", "));
}

/// The numbers of a convolution's dimensions: `#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>`.
std::string convolutionText(const ConvolutionDims& dims)
{
    const auto listed = [](const ConvolutionDims::Array& array, char outer, char inner) {
        std::vector<std::string> entries(array.spatial.size() + 2);
        entries[array.outer] = outer;
        entries[array.inner] = inner;
        for (std::size_t i = 0; i < array.spatial.size(); ++i)
            entries[array.spatial[i]] = std::to_string(i);
        return fmt::format("[{}]", fmt::join(entries, ", "));
    };
    return fmt::format(
        "#stablehlo.conv<{}x{}->{}>", listed(dims.input, 'b', 'f'), listed(dims.kernel, 'i', 'o'), listed(dims.result, 'b', 'f'));
}

/// The pairs of a window's padding: `dense<[[0, 1], [0, 1]]> : tensor<2x2xi64>`.
std::string paddingText(std::span<const std::int64_t> padding)
{
    std::vector<std::string> pairs;
    for (std::size_t i = 0; i + 1 < padding.size(); i += 2)
        pairs.push_back(fmt::format("[{}, {}]", padding[i], padding[i + 1]));
    return fmt::format("dense<[{}]> : tensor<{}x2xi64>", fmt::join(pairs, ", "), pairs.size());
}

/// How ops in their own forms name what the generic form names otherwise, and how its text differs there.
enum class Renaming : std::uint8_t { AsItIs, Array, Enumerator, Quoted };
struct Renamed {
    std::string_view op; ///< without its dialect
    std::string_view own;
    const char* generic;
    Renaming text;
};
constexpr Renamed kRenamed[]
    = {{"custom_call", "callee", "call_target_name", Renaming::Quoted}, {"fft", "type", "fft_type", Renaming::Enumerator},
        {"fft", "length", "fft_length", Renaming::Array}, {"rng", "distribution", "rng_distribution", Renaming::Enumerator},
        {"rng_bit_generator", "algorithm", "rng_algorithm", Renaming::Enumerator},
        {"reduce", "dimensions", "dimensions", Renaming::Array}};

void rename(std::string_view op, KeptAttribute& kept)
{
    for (const Renamed& row : kRenamed) {
        if (row.op != op || row.own != kept.name)
            continue;
        kept.name = row.generic;
        if (row.text == Renaming::Array)
            kept.text = arrayText(kept.integers);
        else if (row.text == Renaming::Enumerator)
            kept.text = fmt::format("#stablehlo<{} {}>", row.generic, kept.text);
        else if (row.text == Renaming::Quoted)
            kept.text = quoted(kept.text.starts_with("@\"") ? unescaped(std::string_view(kept.text).substr(1))
                                                            : kept.text.substr(std::min<std::size_t>(1, kept.text.size())));
        return;
    }
}

/// `window = {stride = [2, 2], pad = [[0, 1], [0, 1]]}` of a convolution as the generic form has it.
void renameWindow(const KeptAttribute& window, KeptAttributes& into)
{
    for (const KeptAttribute& entry : window.entries) {
        KeptAttribute made = entry;
        const std::string& name = entry.name;
        made.name = name == "stride" ? "window_strides"
            : name == "pad"          ? "padding"
            : name == "lhs_dilate"   ? "lhs_dilation"
            : name == "rhs_dilate"   ? "rhs_dilation"
            : name == "reverse"      ? "window_reversal"
                                     : name;
        made.text = name == "pad" ? paddingText(entry.integers)
            : name == "reverse"   ? truthsText(entry.integers)
                                  : arrayText(entry.integers);
        into.push_back(std::move(made));
    }
}

void sortByName(KeptAttributes& attributes)
{
    std::stable_sort(
        attributes.begin(), attributes.end(), [](const KeptAttribute& a, const KeptAttribute& b) { return a.name < b.name; });
}

/// How precisely a product is made, where the text asks for more than the default: under the names of the op's own form.
void keepPrecision(const SyntaxOp& op, std::string_view text, KeptAttributes& kept)
{
    for (const SyntaxEntry& entry : op.attributes) {
        if (entry.name == "precision" || entry.name == "precision_config") {
            std::vector<std::string> words;
            for (const SyntaxAttribute& item : entry.value.items)
                words.push_back(item.text);
            if (std::any_of(words.begin(), words.end(), [](const std::string& word) { return word != "DEFAULT"; }))
                kept.push_back({"precision", fmt::format("[{}]", fmt::join(words, ", ")), false, {}, {}});
        }
        const SyntaxAttribute* type = entry.name == "algorithm" ? entry.value.find("lhs_precision_type") : nullptr;
        if (type != nullptr && !parseDType(type->text)) { // tf32 and the like
            const std::string_view whole
                = text.substr(entry.value.offset, std::max(entry.value.end, entry.value.offset) - entry.value.offset);
            kept.push_back({"algorithm", singleLine(whole.substr(std::min(whole.find('<'), whole.size()))), false, {}, {}});
        }
    }
}

} // namespace

KeptAttribute FunctionReader::keptAttribute(const SyntaxEntry& entry) const
{
    KeptAttribute kept;
    kept.name = entry.name;
    kept.isProperty = entry.isProperty;
    if (entry.value.kind != Kind::Unit)
        kept.text
            = singleLine(m_text.substr(entry.value.offset, std::max(entry.value.end, entry.value.offset) - entry.value.offset));
    fillParts(entry.value, kept);
    return kept;
}

/// The attributes of a kept op, under the names of the generic form.
KeptAttributes FunctionReader::ownAttributes(const SyntaxOp& op) const
{
    KeptAttributes attributes;
    const std::string_view name = baseName(op.name);
    for (const SyntaxEntry& entry : op.attributes) {
        if (isNote(entry.name))
            continue;
        KeptAttribute kept = keptAttribute(entry);
        if (entry.isKeyword && entry.name == "window") {
            renameWindow(kept, attributes);
            continue;
        }
        if (entry.isKeyword && entry.name == "dim_numbers") {
            kept.name = "dimension_numbers";
            kept.text = fmt::format("#stablehlo.conv<{}>", entry.value.text);
        }
        if (entry.isKeyword)
            rename(name, kept);
        attributes.push_back(std::move(kept));
    }
    sortByName(attributes);
    if (const auto dims = name == "convolution" ? convolutionDims(attributes) : std::nullopt)
        std::ranges::find(attributes, "dimension_numbers", &KeptAttribute::name)->text = convolutionText(*dims);
    return attributes;
}

/// What an op of a kind of its own says besides what is read: its other attributes and its location.
std::shared_ptr<const KeptText> FunctionReader::keptText(const SyntaxOp& op, OpKind kind) const
{
    KeptText kept;
    kept.location = singleLine(op.location);
    for (const SyntaxEntry& entry : op.attributes) {
        if (!isKept(kind) && !entry.isKeyword && !isReadAttribute(entry.name))
            kept.attributes.push_back(keptAttribute(entry));
    }
    if (kind == OpKind::DotGeneral)
        keepPrecision(op, m_text, kept.attributes);
    sortByName(kept.attributes);
    return kept == KeptText() ? nullptr : std::make_shared<const KeptText>(std::move(kept));
}

// Parts of arrays --------------------------------------------------------------------------------------------------------------

bool FunctionReader::makeParts(const SyntaxOp& op, OpKind kind, OpAttributes& attributes)
{
    const auto integers = [&](std::string_view generic, Shape& into) {
        const SyntaxAttribute* attribute = op.find(generic);
        if (attribute == nullptr || !appendIntegers(*attribute, into))
            return m_problems.report("MW1326", attribute == nullptr ? op.offset : attribute->offset,
                fmt::format("{} needs {}, a list of integers", op.name, generic));
        return true;
    };
    const auto isSet = [&](std::string_view name) {
        const SyntaxAttribute* attribute = op.find(name);
        return attribute != nullptr && attribute->kind == Kind::Bool && attribute->integer != 0;
    };
    switch (kind) {
    case OpKind::Slice: {
        SliceAttributes slice;
        bool good = true;
        if (const SyntaxAttribute* ranges = op.find("ranges"); ranges != nullptr && ranges->kind == Kind::Ranges) {
            for (const SyntaxAttribute& range : ranges->items) {
                slice.starts.push_back(range.items[0].integer);
                slice.limits.push_back(range.items[1].integer);
                slice.strides.push_back(range.items[2].integer);
            }
        } else {
            good = integers("start_indices", slice.starts) && integers("limit_indices", slice.limits)
                && integers("strides", slice.strides);
        }
        attributes = std::move(slice);
        return good;
    }
    case OpKind::Gather: {
        const auto numbers = indexingDims(ownAttributes(op), false);
        if (!numbers)
            return m_problems.report("MW1326", op.offset, "the dimension numbers of stablehlo.gather are not of their form");
        GatherAttributes gather{*numbers, {}, isSet("indices_are_sorted")};
        const bool good = integers("slice_sizes", gather.sliceSizes);
        attributes = std::move(gather);
        return good;
    }
    case OpKind::Scatter: {
        const auto numbers = indexingDims(ownAttributes(op), true);
        if (!numbers)
            return m_problems.report("MW1326", op.offset, "the dimension numbers of stablehlo.scatter are not of their form");
        attributes = ScatterAttributes{*numbers, reduceKindOf(op), isSet("indices_are_sorted"), isSet("unique_indices")};
        return true;
    }
    case OpKind::PropagationBarrier: {
        const SyntaxAttribute* allowed = op.find("allowed_direction");
        constexpr std::string_view kWays[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"}; // by number in the generic form
        const bool isNumber
            = allowed != nullptr && allowed->kind == Kind::Integer && allowed->integer >= 0 && allowed->integer < 4;
        const std::string_view way = isNumber ? kWays[allowed->integer] : allowed == nullptr ? std::string_view() : allowed->text;
        const bool isWay = way == "NONE" || way == "FORWARD" || way == "BACKWARD" || way == "BOTH";
        attributes = BarrierAttributes{way == "FORWARD" || way == "BOTH", way == "BACKWARD" || way == "BOTH"};
        return isWay
            || m_problems.report("MW1326", allowed == nullptr ? op.offset : allowed->offset,
                "sdy.propagation_barrier needs allowed_direction=NONE, FORWARD, BACKWARD or BOTH");
    }
    default:
        return true;
    }
}

/// A scatter of one array whose block combines by one op, or takes the update, is one of a kind; all others are kept.
void FunctionReader::readScatter(const SyntaxOp& op, Bindings& bindings)
{
    const bool single = op.operands.size() == 3 && op.regions.size() == 1 && op.regions.front().arguments.size() == 2;
    const auto replaces = [&] {
        const SyntaxRegion& region = op.regions.front();
        return region.ops.size() == 1 && region.ops.front().operands.size() == 1
            && region.ops.front().operands.front().value == region.arguments[1];
    };
    const SyntaxUse* first = op.operands.empty() ? nullptr : &op.operands.front();
    const Binding* operand = first == nullptr || first->value < 0 ? nullptr : &bindings[static_cast<std::size_t>(first->value)];
    const bool isKnown = operand != nullptr && operand->kind != Binding::Kind::Unknown;
    if (single && (reduceKindOf(op) || replaces()) && (!isKnown || takesScalarsOf(op, typeOf(*operand).dtype)))
        readKind(op, OpKind::Scatter, bindings);
    else
        readOther(op, bindings);
}

// Kept ops ---------------------------------------------------------------------------------------------------------------------

/// The op's text behind its name, with marks for its operands.
std::string FunctionReader::verbatimText(const SyntaxOp& op) const
{
    std::string text;
    std::size_t at = op.offset + op.name.size();
    for (const SyntaxUse& use : op.operands) {
        appendSingleLine(text, m_text.substr(at, use.offset - at));
        text += kOperandMark;
        at = use.offset + use.length;
    }
    appendSingleLine(text, m_text.substr(at, std::max(op.end, at) - at));
    return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::optional<std::vector<TensorType>> FunctionReader::declaredResults(const SyntaxOp& op)
{
    const SyntaxList<SyntaxType>& declared = op.hasArrow ? op.resultTypes : op.operandTypes;
    std::vector<TensorType> types;
    for (const SyntaxType& type : declared) {
        if (!type.unsupported.empty()) {
            m_problems.report("MW1322", type.offset, fmt::format("{} is not supported", type.unsupported));
            return std::nullopt;
        }
        types.push_back(type.type());
    }
    const auto count = static_cast<std::size_t>(op.resultCount);
    if (!op.hasArrow && types.size() != count && !types.empty()) // one type for all, or those of all operands and the result
        types = std::vector<TensorType>(count, types.back());
    if (types.size() != count) {
        m_problems.report(
            "MW1325", op.offset, fmt::format("{} has {} results, but {} result types", op.name, count, types.size()));
        return std::nullopt;
    }
    return types;
}

/// `window = {stride = [2, 2]}`: its entries have names that a convolution knows, and its padding is of pairs, as is that of the generic form.
bool FunctionReader::checkWindow(const SyntaxOp& op)
{
    constexpr std::string_view kEntries[] = {"stride", "pad", "lhs_dilate", "rhs_dilate", "reverse"};
    const auto checkPairs = [&](const SyntaxAttribute* padding) {
        const auto isPair = [](const SyntaxAttribute& item) { return item.kind == Kind::List && item.items.size() == 2; };
        const bool arePairs = padding == nullptr
            || (padding->kind == Kind::Dense ? padding->constant.type.shape.size() == 2 && padding->constant.type.shape[1] == 2
                                             : std::ranges::all_of(padding->items, isPair));
        return arePairs
            || m_problems.report("MW1326", padding->offset,
                fmt::format("the padding of {} is not a pair for each dimension: [[low, high], ..]", op.name));
    };
    for (const SyntaxEntry& entry : op.attributes) {
        if (!entry.isKeyword || entry.name != "window")
            continue;
        for (const std::string_view key : entry.value.keys) {
            if (std::find(std::begin(kEntries), std::end(kEntries), key) == std::end(kEntries))
                return m_problems.report("MW1326", entry.value.offset,
                    fmt::format("the window of {} has no \"{}\": its entries are {}", op.name, key, fmt::join(kEntries, ", ")));
        }
        if (!checkPairs(entry.value.find("pad")))
            return false;
    }
    const std::string_view name = baseName(op.name);
    const bool hasWindows = name == "convolution" || name == "reduce_window" || name == "select_and_scatter";
    return !hasWindows || checkPairs(op.find("padding"));
}

/// A block may compute in a more precise type of the same sort than its arrays have: they are converted first.
void FunctionReader::promote(const SyntaxOp& op, OpKind kind, std::vector<ValueId>& operands, std::vector<TensorType>& types)
{
    const bool isScatter = kind == OpKind::VariadicScatter;
    if ((kind != OpKind::VariadicReduce && kind != OpKind::ReduceWindow && !isScatter) || op.regions.size() != 1)
        return;
    const auto count = static_cast<std::size_t>(op.resultCount);
    const SyntaxList<SyntaxType>& wanted = op.regions.front().argumentTypes;
    if (operands.size() != 2 * count + (isScatter ? 1 : 0) || wanted.size() != 2 * count)
        return;
    for (std::size_t i = 0; i < 2 * count; ++i) {
        const std::size_t at = i < count || !isScatter ? i : i + 1; // the indices stand between the inputs and the updates
        const DType from = types[at].dtype;
        if (!wanted[i].unsupported.empty() || wanted[i].type().dtype == from)
            continue;
        const DType to = wanted[i].type().dtype;
        const bool isMorePrecise = byteSize(to) > byteSize(from)
            && ((isFloating(from) && isFloating(to)) || (isComplex(from) && isComplex(to))
                || (isInteger(from) && isInteger(to) && isUnsigned(from) == isUnsigned(to)));
        if (!isMorePrecise)
            continue;
        operands[at] = m_builder.add(OpKind::Convert, {operands[at]}, ConvertAttributes{to});
        types[at].dtype = to;
    }
}

/// The block of `stablehlo.reduce(..) applies stablehlo.xor`, for an op that no kind of reduction is made of.
bool FunctionReader::addCombiner(const SyntaxOp& op, OpId id, DType dtype)
{
    const std::string_view name = op.words.empty() ? std::string_view() : op.words.front();
    const auto kind = opKindOf(name);
    const TensorType scalar{dtype, {}};
    const std::vector<TensorType> both{scalar, scalar};
    const auto made = kind && opInfo(*kind).opClass == OpClass::Binary
        ? resultTypes(dtype == DType::Pred ? onTruths(*kind) : *kind, opInfo(*kind).attributes(), both)
        : Result<std::vector<TensorType>>(Problem{"MW1326", {}});
    if (op.resultCount != 1 || !made || *made != std::vector<TensorType>{scalar})
        return m_problems.report(
            "MW1326", op.offset, fmt::format("{} cannot combine two elements of {} by \"{}\"", op.name, dtypeName(dtype), name));
    const BlockId outer = m_builder.block();
    const std::vector<ValueId> arguments = m_builder.beginBody(id, both);
    m_builder.setResults({m_builder.add(dtype == DType::Pred ? onTruths(*kind) : *kind, arguments, opInfo(*kind).attributes())});
    m_builder.setBlock(outer);
    return true;
}

/// The bytes of numbers in other groups. Those of floating numbers are regrouped as integers of the same bits, which a reference in double precision
/// has too.
void FunctionReader::addRegrouping(const SyntaxOp& op, ValueId operand, OtherAttributes other, Bindings& bindings)
{
    const auto bitsOf = [](DType dtype) {
        constexpr std::array kBySize{DType::U8, DType::U16, DType::U32, DType::U64};
        return isFloating(dtype)
            ? kBySize[static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(byteSize(dtype))))]
            : dtype;
    };
    const DType from = m_function[operand].type.dtype;
    const DType to = other.results.front().dtype;
    if (bitsOf(from) != from)
        operand = m_builder.add(OpKind::BitcastConvert, {operand}, ConvertAttributes{bitsOf(from)});
    other.results.front().dtype = bitsOf(to);
    if (bitsOf(to) == to)
        add(op, OpKind::Other, {operand}, std::move(other), bindings);
    else
        add(op, OpKind::BitcastConvert, m_builder.addMany(OpKind::Other, {operand}, std::move(other)), ConvertAttributes{to},
            bindings);
}

void FunctionReader::readOther(const SyntaxOp& op, Bindings& bindings)
{
    std::vector<ValueId> operands;
    std::vector<TensorType> types;
    if (!useOperands(op, bindings, operands, types))
        return;
    auto results = declaredResults(op);
    if (!results || (op.hasArrow && !op.isVerbatim && !checkOperandTypes(op, types)))
        return;
    OtherAttributes other;
    other.name = op.name;
    other.results = *results;
    if (op.isVerbatim)
        other.attributes.push_back({{}, verbatimText(op), false, {}, {}});
    else
        other.attributes = ownAttributes(op);
    if (!checkWindow(op))
        return;
    const OpKind kind = keptKind(other);
    if (kind == OpKind::Sort && findAttribute(other.attributes, "dimension") == nullptr)
        other.attributes.push_back({"dimension", "-1 : i64", false, {-1}, {}}); // as the dialect has it
    promote(op, kind, operands, types);
    if (auto problem = otherProblem(other, types)) {
        m_problems.report(Problems{*std::move(problem)}, op.offset);
        return;
    }
    if (kind == OpKind::BitcastRegroup)
        return addRegrouping(op, operands.front(), std::move(other), bindings);
    if (otherClass(other) == OtherClass::Unknown) {
        UnknownOp& unknown = m_unknown[other.name];
        unknown.offset = unknown.count++ == 0 ? op.offset : unknown.offset;
    }
    const OpId id = m_builder.beginOp(OpKind::Other, std::move(operands), std::move(other));
    std::vector<BlockRead> blocks(op.regions.size());
    for (std::size_t i = 0; i < op.regions.size(); ++i) {
        std::vector<TensorType> arguments;
        for (const SyntaxType& type : op.regions[i].argumentTypes) {
            if (!type.unsupported.empty()) {
                m_problems.report("MW1322", type.offset, fmt::format("{} is not supported", type.unsupported));
                return drop(id);
            }
            arguments.push_back(type.type());
        }
        if (!readBlock(op, op.regions[i], id, arguments, false, bindings, blocks[i]))
            return drop(id);
    }
    if (op.regions.empty() && kind == OpKind::VariadicReduce && !addCombiner(op, id, results->front().dtype))
        return drop(id);
    m_function[id].as<OtherAttributes>().captures = shareCaptures(id, blocks);
    const std::vector<ValueId> values = m_builder.endOp(id, *results);
    if (auto problem = blocksProblem(m_function, m_function[id])) {
        m_problems.report(Problems{*std::move(problem)}, op.offset);
        return drop(id);
    }
    finishBlocks(op, id, values, bindings);
}

// Ops with blocks --------------------------------------------------------------------------------------------------------------

void FunctionReader::drop(OpId op)
{
    m_builder.setBlock(m_function[op].block);
    std::erase(m_function[m_function[op].block].ops, op);
}

bool FunctionReader::readBlock(const SyntaxOp& op, const SyntaxRegion& region, OpId id, const std::vector<TensorType>& arguments,
    bool isIsolated, Bindings& bindings, BlockRead& read)
{
    if (region.arguments.size() != arguments.size())
        return m_problems.report("MW1325", op.offset,
            fmt::format("a block of {} has {} arguments, not {}", op.name, region.arguments.size(), arguments.size()));
    Frame frame;
    frame.outer = m_builder.block();
    frame.isIsolated = isIsolated;
    frame.offset = op.offset;
    const std::vector<ValueId> own = m_builder.beginBody(id, arguments);
    frame.body = m_builder.block();
    read.block = frame.body;
    m_frames.push_back(std::move(frame));
    for (std::size_t i = 0; i < own.size(); ++i)
        bindings[static_cast<std::size_t>(region.arguments[i])] = bind(own[i]);
    const auto yielded = readRegion(region, bindings, op.offset);
    bool good = yielded.has_value();
    for (std::size_t i = 0; good && i < yielded->size(); ++i) {
        read.yielded.push_back(use((*yielded)[i], op.offset));
        good = read.yielded.back().valid();
    }
    const Frame done = std::move(m_frames.back());
    m_frames.pop_back();
    m_builder.setResults(read.yielded);
    m_builder.setBlock(done.outer);
    read.captured = done.invariantOperands;
    read.arguments = done.invariantArguments;
    return good;
}

/// Gives every block an argument for each value of the outside that one of them uses, in one order. Returns how many there are.
std::size_t FunctionReader::shareCaptures(OpId op, std::vector<BlockRead>& blocks)
{
    std::vector<ValueId> all;
    for (const BlockRead& block : blocks) {
        for (const ValueId captured : block.captured) {
            if (std::find(all.begin(), all.end(), captured) == all.end())
                all.push_back(captured);
        }
    }
    const BlockId current = m_builder.block();
    for (const BlockRead& block : blocks) {
        std::vector<ValueId>& arguments = m_function[block.block].arguments;
        arguments.resize(arguments.size() - block.arguments.size());
        for (const ValueId captured : all) {
            const auto at = std::find(block.captured.begin(), block.captured.end(), captured);
            m_builder.setBlock(block.block);
            if (at == block.captured.end()) {
                m_builder.argument(m_function[captured].type);
                continue;
            }
            const ValueId argument = block.arguments[static_cast<std::size_t>(at - block.captured.begin())];
            m_function[argument].index = m_function[block.block].arguments.size();
            m_function[block.block].arguments.push_back(argument);
        }
    }
    m_builder.setBlock(current);
    m_function[op].operands.insert(m_function[op].operands.end(), all.begin(), all.end());
    return all.size();
}

void FunctionReader::finishBlocks(const SyntaxOp& op, OpId id, const std::vector<TensorType>& results, Bindings& bindings)
{
    finishBlocks(op, id, m_builder.endOp(id, results), bindings);
}

void FunctionReader::finishBlocks(const SyntaxOp& op, OpId id, const std::vector<ValueId>& values, Bindings& bindings)
{
    m_function[id].kept = keptText(op, m_function[id].kind);
    for (std::size_t i = 0; i < values.size(); ++i)
        bindings[static_cast<std::size_t>(op.firstResult) + i] = bind(values[i]);
    finish(op, m_function[id].kind, values);
}

void FunctionReader::readPlainWhile(const SyntaxOp& op, Bindings& bindings)
{
    std::vector<ValueId> operands;
    std::vector<TensorType> types;
    if (!useOperands(op, bindings, operands, types))
        return;
    const OpId id = m_builder.beginOp(OpKind::While, operands, WhileAttributes{operands.size()});
    std::vector<BlockRead> blocks(2);
    for (std::size_t i = 0; i < 2; ++i) {
        if (!readBlock(op, op.regions[i], id, types, false, bindings, blocks[i]))
            return drop(id);
        const std::vector<TensorType> wanted = i == 0 ? std::vector<TensorType>{{DType::Pred, {}}} : types;
        std::vector<TensorType> given;
        for (const ValueId value : blocks[i].yielded)
            given.push_back(m_function[value].type);
        if (given != wanted) {
            m_problems.report("MW1325", op.regions[i].ops.back().offset,
                i == 0 ? "the condition of the loop does not yield a boolean"
                       : "the body of the loop does not give the loop's values");
            return drop(id);
        }
    }
    shareCaptures(id, blocks);
    finishBlocks(op, id, types, bindings);
}

/// stablehlo.case and stablehlo.if: branches without arguments.
void FunctionReader::readCase(const SyntaxOp& op, Bindings& bindings)
{
    std::vector<ValueId> operands;
    std::vector<TensorType> types;
    const auto results = declaredResults(op);
    if (!results || !useOperands(op, bindings, operands, types))
        return;
    const bool isIf = op.name == "stablehlo.if";
    if (types != std::vector<TensorType>{{isIf ? DType::Pred : DType::S32, {}}} || op.regions.empty()
        || (isIf && op.regions.size() != 2)) {
        m_problems.report("MW1325", op.offset,
            fmt::format("{} takes {} and has {}", op.name, isIf ? "a truth value" : "an i32",
                isIf ? "two blocks" : "a block for each branch"));
        return;
    }
    const OpId id = m_builder.beginOp(OpKind::Case, std::move(operands), {});
    std::vector<BlockRead> blocks(op.regions.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (!readBlock(op, op.regions[i], id, {}, false, bindings, blocks[i]))
            return drop(id);
        std::vector<TensorType> given;
        for (const ValueId value : blocks[i].yielded)
            given.push_back(m_function[value].type);
        if (given != *results) {
            m_problems.report(
                "MW1325", op.regions[i].ops.back().offset, fmt::format("branch {} does not give the results of {}", i, op.name));
            return drop(id);
        }
    }
    shareCaptures(id, blocks);
    finishBlocks(op, id, *results, bindings);
}

/// The shardings and axes that a computation names, checked against the types outside.
bool FunctionReader::makeComputation(const SyntaxOp& op, const std::vector<TensorType>& operands,
    const std::vector<TensorType>& results, ComputationAttributes& attributes)
{
    if (const SyntaxAttribute* name = op.find("name"))
        attributes.name = name->text;
    const auto shardings = [&](const char* key, const std::vector<TensorType>& types, std::vector<TensorSharding>& into) {
        const SyntaxAttribute* given = op.find(key);
        if (given == nullptr)
            return attributes.name.empty() && !types.empty()
                ? m_problems.report("MW1326", op.offset, fmt::format("{} needs {}", op.name, key))
                : true;
        into = given->shardings;
        bool fits = into.size() == types.size();
        for (std::size_t i = 0; fits && i < into.size(); ++i) {
            if (m_module.meshes[static_cast<std::size_t>(into[i].mesh)].isMaximal && into[i].dims.empty())
                into[i].dims.resize(types[i].shape.size());
            fits = into[i].dims.size() == types[i].shape.size();
        }
        return fits
            || m_problems.report("MW1330", given->offset, fmt::format("{} of {} do not fit its values", key, op.name),
                "write one sharding for each value, with an entry for each of its dimensions");
    };
    if (!shardings("in_shardings", operands, attributes.inShardings)
        || !shardings("out_shardings", results, attributes.outShardings))
        return false;
    const SyntaxAttribute* axes = op.find("manual_axes");
    if (axes == nullptr || axes->items.empty())
        return true;
    const auto& named = attributes.inShardings.empty() ? attributes.outShardings : attributes.inShardings;
    if (named.empty())
        return true;
    for (const AxisRef& axis :
        resolvedAxes(*axes, m_module.meshes[static_cast<std::size_t>(named.front().mesh)].mesh, m_problems))
        attributes.manualAxes.push_back(axis.axis);
    std::sort(attributes.manualAxes.begin(), attributes.manualAxes.end());
    attributes.manualAxes.erase(
        std::unique(attributes.manualAxes.begin(), attributes.manualAxes.end()), attributes.manualAxes.end());
    return true;
}

void FunctionReader::readComputation(const SyntaxOp& op, Bindings& bindings)
{
    std::vector<ValueId> operands;
    std::vector<TensorType> types;
    const auto results = declaredResults(op);
    ComputationAttributes attributes;
    if (!results || !useOperands(op, bindings, operands, types) || !makeComputation(op, types, *results, attributes))
        return;
    if (op.regions.size() != 1) {
        m_problems.report("MW1325", op.offset, fmt::format("{} has {} blocks, not one", op.name, op.regions.size()));
        return;
    }
    const SyntaxRegion& region = op.regions.front();
    const auto pieces
        = [&](const std::vector<TensorType>& whole, const std::vector<TensorSharding>& shardings, const char* what) {
              std::vector<TensorType> made;
              for (std::size_t i = 0; i < whole.size(); ++i) {
                  const auto piece = shardings.empty() ? whole[i] : manualPiece(whole[i], shardings[i], attributes.manualAxes);
                  if (!piece)
                      m_problems.report("MW1330", op.offset,
                          fmt::format("the manual axes do not divide {} {} of {}, {}", what, i, op.name, typeText(whole[i])),
                          "let the dimension be a multiple of the axes that split it, or leave an axis out of manual_axes");
                  made.push_back(piece.value_or(whole[i]));
              }
              return made;
          };
    const std::size_t before = m_problems.size();
    const std::vector<TensorType> arguments = pieces(types, attributes.inShardings, "operand");
    const std::vector<TensorType> yields = pieces(*results, attributes.outShardings, "result");
    for (std::size_t i = 0; i < region.argumentTypes.size() && i < arguments.size(); ++i)
        checkType(region.argumentTypes[i], arguments[i], fmt::format("argument {} of the block", i));
    if (m_problems.size() != before)
        return;
    const OpId id = m_builder.beginOp(OpKind::Computation, std::move(operands), std::move(attributes));
    BlockRead block;
    if (!readBlock(op, region, id, arguments, true, bindings, block))
        return drop(id);
    std::vector<TensorType> given;
    for (const ValueId value : block.yielded)
        given.push_back(m_function[value].type);
    if (given != yields) {
        m_problems.report(
            "MW1325", region.ops.back().offset, fmt::format("the block of {} does not give the pieces of its results", op.name));
        return drop(id);
    }
    finishBlocks(op, id, *results, bindings);
}

} // namespace meshwright
