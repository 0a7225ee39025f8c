// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/other_op.h"

#include "core/program/attention.h"
#include "core/program/convolution_windows.h"
#include "core/program/kept_blocks.h"
#include "core/program/placement.h"
#include "core/program/shape_problems.h"
#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

namespace meshwright {

namespace {

/// Names without their dialects; those of StableHLO, CHLO and MHLO do not contradict each other.
const std::unordered_map<std::string_view, OtherClass>& classes()
{
    static const auto kClasses = [] {
        std::unordered_map<std::string_view, OtherClass> known;
        for (const char* name : {"after_all", "create_token", "get_dimension_size", "optimization_barrier", "reverse"})
            known.emplace(name, OtherClass::Named);
        for (const char* name : {"asin_acos_kernel", "bessel_i1e", "constant_like", "map", "polygamma", "uniform_dequantize",
                 "uniform_quantize", "zeta"})
            known.emplace(name, OtherClass::Elementwise);
        for (const char* name : {"infeed", "outfeed", "recv", "send"})
            known.emplace(name, OtherClass::Effect);
        for (const OpInfo& info : kOpTable) { // in another dialect than ours
            if (info.takes != kNoType)
                known.emplace(info.name(), OtherClass::Elementwise);
        }
        return known;
    }();
    return kClasses;
}

/// The kinds that share a name with one whose attributes are read.
constexpr std::pair<std::string_view, OpKind> kSharedNames[] = {{"reduce", OpKind::VariadicReduce},
    {"scatter", OpKind::VariadicScatter}, {"bitcast_convert", OpKind::BitcastRegroup}, {"all_reduce", OpKind::OwnAllReduce},
    {"all_gather", OpKind::OwnAllGather}, {"reduce_scatter", OpKind::OwnReduceScatter}, {"all_to_all", OpKind::OwnAllToAll},
    {"collective_permute", OpKind::OwnPermute}, {"collective_broadcast", OpKind::OwnBroadcast}};

const std::unordered_map<std::string_view, OpKind>& kinds()
{
    static const auto kKinds = [] {
        std::unordered_map<std::string_view, OpKind> kinds(std::begin(kSharedNames), std::end(kSharedNames));
        for (const OpInfo& info : kOpTable) {
            if (isKept(info.kind) && info.kind != OpKind::Other)
                kinds.emplace(info.name(), info.kind);
        }
        return kinds;
    }();
    return kKinds;
}

bool isOfKnownDialect(std::string_view name)
{
    const std::string_view dialect = name.substr(0, name.find('.'));
    return dialect == "stablehlo" || dialect == "chlo" || dialect == "mhlo" || dialect == "mw";
}

} // namespace

std::string_view baseName(std::string_view name)
{
    const std::size_t dot = name.find('.');
    return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

OpKind keptKind(const OtherAttributes& other)
{
    const auto found = isOfKnownDialect(other.name) ? kinds().find(baseName(other.name)) : kinds().end();
    return found == kinds().end() ? OpKind::Other : found->second;
}

OtherClass otherClass(const OtherAttributes& other)
{
    if (other.name.starts_with("sdy."))
        return other.name == "sdy.data_flow_edge" || other.name.ends_with("_to_unreduced") ? OtherClass::Elementwise
                                                                                           : OtherClass::Unknown;
    if (movedTo(other))
        return OtherClass::Elementwise;
    if (keptKind(other) != OpKind::Other)
        return OtherClass::Named;
    const auto found = isOfKnownDialect(other.name) ? classes().find(baseName(other.name)) : classes().end();
    return found == classes().end() ? OtherClass::Unknown : found->second;
}

bool isElementwise(const Op& op)
{
    return isKept(op.kind) ? otherClass(op.as<OtherAttributes>()) == OtherClass::Elementwise : isElementwise(op.kind);
}

bool hasEffect(const OtherAttributes& other)
{
    const OtherClass known = otherClass(other);
    return known == OtherClass::Unknown || known == OtherClass::Effect || other.results.empty()
        || integerAt(other.attributes, "has_side_effect").value_or(0) != 0;
}

std::string_view callTarget(const OtherAttributes& other)
{
    if (keptKind(other) != OpKind::CustomCall)
        return {};
    const KeptAttribute* target = findAttribute(other.attributes, "call_target_name");
    const std::string_view text = target == nullptr ? std::string_view() : std::string_view(target->text);
    return text.size() < 2 || text.front() != '"' ? text : text.substr(1, text.size() - 2);
}

bool isShardMapBorder(const OtherAttributes& other)
{
    const std::string_view target = callTarget(other);
    return target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape";
}

namespace {

const KeptAttribute* attributeAt(const KeptAttributes& attributes, std::string_view path)
{
    const std::size_t dot = path.find('.');
    const KeptAttribute* attribute = findAttribute(attributes, path.substr(0, dot));
    if (attribute == nullptr || dot == std::string_view::npos)
        return attribute;
    return attributeAt(attribute->entries, path.substr(dot + 1));
}

} // namespace

std::span<const std::int64_t> integersAt(const KeptAttributes& attributes, std::string_view path)
{
    const KeptAttribute* attribute = attributeAt(attributes, path);
    return attribute == nullptr ? std::span<const std::int64_t>() : std::span(attribute->integers);
}

std::optional<std::int64_t> integerAt(const KeptAttributes& attributes, std::string_view path)
{
    const auto integers = integersAt(attributes, path);
    return integers.size() == 1 ? std::optional(integers.front()) : std::nullopt;
}

std::string_view wordAt(const KeptAttributes& attributes, std::string_view name)
{
    const KeptAttribute* attribute = findAttribute(attributes, name);
    std::string_view text = attribute == nullptr ? std::string_view() : std::string_view(attribute->text);
    text = text.substr(0, text.find('>'));
    return text.substr(text.rfind(' ') + 1); // npos + 1 is the start
}

std::optional<std::vector<std::size_t>> dimsAt(const KeptAttributes& attributes, std::string_view path, std::size_t rank)
{
    std::vector<std::size_t> dims;
    for (const std::int64_t dim : integersAt(attributes, path)) {
        if (dim < 0 || dim >= static_cast<std::int64_t>(rank))
            return std::nullopt;
        dims.push_back(static_cast<std::size_t>(dim));
    }
    return dims;
}

std::optional<IndexingDims> indexingDims(const KeptAttributes& attributes, bool isScatter)
{
    const std::string numbers = isScatter ? "scatter_dimension_numbers." : "dimension_numbers.";
    constexpr std::size_t kMost = 1U << 16;
    bool good = true;
    const auto read = [&](const char* gather, const char* scatter) {
        auto dims = dimsAt(attributes, numbers + (isScatter ? scatter : gather), kMost);
        good = good && dims.has_value();
        return dims.value_or(std::vector<std::size_t>());
    };
    IndexingDims dims;
    dims.window = read("offset_dims", "update_window_dims");
    dims.collapsed = read("collapsed_slice_dims", "inserted_window_dims");
    dims.operandBatch = read("operand_batching_dims", "input_batching_dims");
    dims.indicesBatch = read("start_indices_batching_dims", "scatter_indices_batching_dims");
    dims.indexMap = read("start_index_map", "scatter_dims_to_operand_dims");
    const std::vector<std::size_t> vector = read("index_vector_dim", "index_vector_dim");
    if (!good || vector.size() > 1) // MLIR leaves out what is 0 or empty
        return std::nullopt;
    dims.indexVectorDim = vector.empty() ? 0 : vector.front();
    return dims;
}

namespace {

/// Reads `[b, 0, 1, f]`: where the two letters and the numbers 0, 1 and so on stand.
std::optional<ConvolutionDims::Array> convolutionArray(std::string_view& text, char outer, char inner)
{
    const std::size_t open = text.find('[');
    const std::size_t close = text.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open)
        return std::nullopt;
    const std::vector<std::string> entries = split(text.substr(open + 1, close - open - 1), ',');
    text = text.substr(close + 1);
    ConvolutionDims::Array array;
    std::vector<std::optional<std::size_t>> spatial(entries.size());
    bool hasOuter = false;
    bool hasInner = false;
    for (std::size_t dim = 0; dim < entries.size(); ++dim) {
        const std::string entry(trimmed(entries[dim]));
        if (entry == std::string(1, outer)) {
            array.outer = dim;
            hasOuter = true;
        } else if (entry == std::string(1, inner)) {
            array.inner = dim;
            hasInner = true;
        } else {
            std::size_t index = 0;
            const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
            if (error != std::errc() || end != entry.data() + entry.size() || index >= entries.size())
                return std::nullopt;
            spatial[index] = dim;
        }
    }
    for (std::size_t i = 0; i + 2 < entries.size(); ++i) {
        if (!spatial[i])
            return std::nullopt;
        array.spatial.push_back(*spatial[i]);
    }
    return hasOuter && hasInner ? std::optional(array) : std::nullopt;
}

/// Reads `raw input_batch_dimension = 0, .., output_spatial_dimensions = [1, 2]`: one array's dimensions by the names that begin so.
std::optional<ConvolutionDims::Array> rawConvolutionArray(
    std::string_view text, std::string_view outer, std::string_view inner, std::string_view spatial)
{
    const auto numbersAt = [&](std::string_view name) {
        std::vector<std::size_t> numbers;
        std::size_t at = text.find(name);
        while (at != std::string_view::npos && at > 0 && text[at - 1] == '_') // of a longer name
            at = text.find(name, at + 1);
        at = at == std::string_view::npos ? text.size() : at + name.size();
        std::string_view rest = trimmed(text.substr(at));
        if (!rest.starts_with('='))
            return numbers;
        rest = trimmed(rest.substr(1));
        const bool isList = rest.starts_with('[');
        rest = isList ? rest.substr(1, rest.find(']') - 1) : rest.substr(0, rest.find_first_of(",>"));
        for (const std::string& entry : split(rest, ',')) {
            const auto number = parseInteger(trimmed(entry));
            if (!number || *number < 0)
                return std::vector<std::size_t>();
            numbers.push_back(static_cast<std::size_t>(*number));
        }
        return numbers;
    };
    const std::vector<std::size_t> first = numbersAt(outer);
    const std::vector<std::size_t> second = numbersAt(inner);
    if (first.size() != 1 || second.size() != 1)
        return std::nullopt;
    return ConvolutionDims::Array{first.front(), second.front(), numbersAt(spatial)};
}

/// True when every dimension of the array has one meaning.
bool isComplete(const ConvolutionDims::Array& array)
{
    std::vector<std::size_t> dims = array.spatial;
    dims.insert(dims.end(), {array.outer, array.inner});
    return areDims(dims, dims.size());
}

} // namespace

std::optional<ConvolutionDims> convolutionDims(const KeptAttributes& attributes)
{
    const KeptAttribute* numbers = findAttribute(attributes, "dimension_numbers");
    if (numbers == nullptr)
        return std::nullopt;
    std::string_view text = numbers->text;
    std::optional<ConvolutionDims::Array> input;
    std::optional<ConvolutionDims::Array> kernel;
    std::optional<ConvolutionDims::Array> result;
    if (text.find("input_batch_dimension") != std::string_view::npos) {
        input = rawConvolutionArray(text, "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions");
        kernel = rawConvolutionArray(
            text, "kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions");
        result = rawConvolutionArray(text, "output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions");
    } else {
        input = convolutionArray(text, 'b', 'f');
        kernel = input ? convolutionArray(text, 'i', 'o') : std::nullopt;
        result = kernel ? convolutionArray(text, 'b', 'f') : std::nullopt;
    }
    if (!input || !kernel || !result || input->spatial.size() != kernel->spatial.size()
        || input->spatial.size() != result->spatial.size() || !isComplete(*input) || !isComplete(*kernel) || !isComplete(*result))
        return std::nullopt;
    ConvolutionDims dims{*input, *kernel, *result, 1, 1};
    dims.batchGroups = integerAt(attributes, "batch_group_count").value_or(1);
    dims.featureGroups = integerAt(attributes, "feature_group_count").value_or(1);
    return dims.batchGroups >= 1 && dims.featureGroups >= 1 ? std::optional(dims) : std::nullopt;
}

namespace {

/// Takes one number of each window from an attribute, which may be absent; false: it has another number of entries.
bool fillWindows(
    std::vector<WindowDim>& windows, const KeptAttributes& attributes, const char* name, std::int64_t WindowDim::*member)
{
    const auto integers = integersAt(attributes, name);
    for (std::size_t i = 0; i < windows.size() && i < integers.size(); ++i)
        windows[i].*member = integers[i];
    return integers.empty() || integers.size() == windows.size();
}

/// The same of `padding`, two numbers for each window.
bool fillPadding(std::vector<WindowDim>& windows, const KeptAttributes& attributes)
{
    const auto padding = integersAt(attributes, "padding");
    if (!padding.empty() && padding.size() != 2 * windows.size())
        return false;
    for (std::size_t i = 0; i < padding.size(); ++i)
        (i % 2 == 0 ? windows[i / 2].low : windows[i / 2].high) = padding[i];
    return true;
}

} // namespace

std::optional<std::vector<WindowDim>> windowDims(const KeptAttributes& attributes, std::size_t rank)
{
    std::vector<WindowDim> dims(rank);
    if (!fillWindows(dims, attributes, "window_dimensions", &WindowDim::size)
        || !fillWindows(dims, attributes, "window_strides", &WindowDim::stride)
        || !fillWindows(dims, attributes, "base_dilations", &WindowDim::baseDilation)
        || !fillWindows(dims, attributes, "window_dilations", &WindowDim::windowDilation) || !fillPadding(dims, attributes))
        return std::nullopt;
    const bool positive = std::all_of(dims.begin(), dims.end(), [](const WindowDim& dim) {
        return dim.size >= 1 && dim.stride >= 1 && dim.baseDilation >= 1 && dim.windowDilation >= 1;
    });
    return positive ? std::optional(dims) : std::nullopt;
}

std::optional<std::vector<WindowDim>> convolutionWindows(
    const KeptAttributes& attributes, const ConvolutionDims& dims, const Shape& kernel)
{
    const std::size_t rank = dims.kernel.spatial.size();
    std::vector<WindowDim> windows(rank);
    const auto reversed = integersAt(attributes, "window_reversal");
    if (!fillWindows(windows, attributes, "window_strides", &WindowDim::stride)
        || !fillWindows(windows, attributes, "lhs_dilation", &WindowDim::baseDilation)
        || !fillWindows(windows, attributes, "rhs_dilation", &WindowDim::windowDilation) || !fillPadding(windows, attributes)
        || (!reversed.empty() && reversed.size() != rank))
        return std::nullopt;
    for (std::size_t i = 0; i < rank; ++i)
        windows[i].size = kernel[dims.kernel.spatial[i]];
    const bool positive = std::all_of(windows.begin(), windows.end(),
        [](const WindowDim& dim) { return dim.stride >= 1 && dim.baseDilation >= 1 && dim.windowDilation >= 1; });
    return positive ? std::optional(windows) : std::nullopt;
}

std::optional<ReduceKind> combinerIn(const Function& function, BlockId block)
{
    constexpr std::array kCombiners = {OpKind::Add, OpKind::Maximum, OpKind::Minimum, OpKind::Multiply, OpKind::And, OpKind::Or};
    const Block& body = function[block];
    const std::size_t count = body.results.size();
    if (count == 0 || body.arguments.size() != 2 * count || body.ops.size() != count)
        return std::nullopt;
    std::optional<ReduceKind> kind;
    for (std::size_t i = 0; i < count; ++i) {
        const OpId producer = function[body.results[i]].producer;
        if (!producer.valid())
            return std::nullopt;
        const Op& op = function[producer];
        const auto known = std::find(kCombiners.begin(), kCombiners.end(), op.kind);
        const ValueId a = body.arguments[i];
        const ValueId b = body.arguments[count + i];
        if (known == kCombiners.end() || (op.operands != std::vector{a, b} && op.operands != std::vector{b, a}))
            return std::nullopt;
        const auto found = static_cast<ReduceKind>(known - kCombiners.begin());
        if (kind && *kind != found)
            return std::nullopt;
        kind = found;
    }
    return kind;
}

// Checks -----------------------------------------------------------------------------------------------------------------------

namespace {

using Check = std::optional<Problem> (*)(const OtherAttributes&, OperandTypes);
using Found = std::optional<Problem>;

Found needOperands(const OtherAttributes& other, OperandTypes operands, std::size_t count, std::size_t results)
{
    if (operands.size() != count)
        return wrongCount(other.name, fmt::format("{} operands", count), operands.size());
    if (other.results.size() != results)
        return wrongShape(other.name, fmt::format("makes {} results, not {}", results, other.results.size()));
    return std::nullopt;
}

Found elementwiseProblem(const OtherAttributes& other, OperandTypes operands)
{
    if (other.results.empty())
        return wrongShape(other.name, "has no result");
    const Shape& shape = other.results.front().shape;
    for (const TensorType& result : other.results) {
        if (result.shape != shape)
            return wrongShape(
                other.name, fmt::format("the results differ: {} and {}", typeText(other.results.front()), typeText(result)));
    }
    for (const TensorType& operand : operands) {
        if (!operand.shape.empty() && operand.shape != shape)
            return wrongShape(
                other.name, fmt::format("{} does not fit the result {}", typeText(operand), typeText(other.results.front())));
    }
    return std::nullopt;
}

/// True for two floating types, two types of integers, two complex types and two truth values.
bool isOneSort(DType a, DType b)
{
    return isFloating(a) == isFloating(b) && isInteger(a) == isInteger(b) && isComplex(a) == isComplex(b);
}

/// Results are of the operands' types; all of one shape.
Found sameTypes(const OtherAttributes& other, OperandTypes operands)
{
    if (operands.empty())
        return wrongCount(other.name, "at least one operand", 0);
    if (auto problem = needOperands(other, operands, other.results.size(), other.results.size()))
        return problem;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (operands[i] != other.results[i] || operands[i].shape != operands[0].shape)
            return wrongShape(other.name,
                fmt::format("operand {} is {}, result {} is {}", i, typeText(operands[i]), i, typeText(other.results[i])));
    }
    return std::nullopt;
}

Found sortProblem(const OtherAttributes& other, OperandTypes operands)
{
    if (auto problem = sameTypes(other, operands))
        return problem;
    const auto rank = static_cast<std::int64_t>(operands[0].shape.size());
    const std::int64_t dim = integerAt(other.attributes, "dimension").value_or(-1);
    if (dim < -rank || dim >= rank)
        return wrongAttribute(other.name, fmt::format("{} has no dim {}", typeText(operands[0]), dim));
    return std::nullopt;
}

bool endsInSquare(const TensorType& type)
{
    const std::size_t rank = type.shape.size();
    return rank >= 2 && type.shape[rank - 1] == type.shape[rank - 2];
}

Found choleskyProblem(const OtherAttributes& other, OperandTypes operands)
{
    if (auto problem = needOperands(other, operands, 1, 1))
        return problem;
    if (!endsInSquare(operands[0]) || other.results[0] != operands[0])
        return wrongShape(other.name,
            fmt::format(
                "{} is not a square matrix, or the result is another: {}", typeText(operands[0]), typeText(other.results[0])));
    return std::nullopt;
}

Found triangularProblem(const OtherAttributes& other, OperandTypes operands)
{
    if (auto problem = needOperands(other, operands, 2, 1))
        return problem;
    const Shape& a = operands[0].shape;
    const Shape& b = operands[1].shape;
    const bool left = integerAt(other.attributes, "left_side").value_or(1) != 0;
    bool fits = endsInSquare(operands[0]) && a.size() == b.size() && other.results[0] == operands[1];
    fits = fits && std::equal(a.begin(), a.end() - 2, b.begin()) && a.back() == b[b.size() - (left ? 2 : 1)];
    if (!fits)
        return wrongShape(other.name, fmt::format("{} and {} do not fit", typeText(operands[0]), typeText(operands[1])));
    return std::nullopt;
}

Found fftProblem(const OtherAttributes& other, OperandTypes operands)
{
    if (auto problem = needOperands(other, operands, 1, 1))
        return problem;
    const std::size_t rank = operands[0].shape.size();
    const std::size_t transformed = integersAt(other.attributes, "fft_length").size();
    if (transformed < 1 || transformed > 3 || transformed > rank || other.results[0].shape.size() != rank)
        return wrongAttribute(other.name, fmt::format("{} lengths for {}", transformed, typeText(operands[0])));
    const Shape& from = operands[0].shape;
    const Shape& to = other.results[0].shape;
    const auto lengths = integersAt(other.attributes, "fft_length");
    const std::string_view word = wordAt(other.attributes, "fft_type");
    const bool toReal = word == "IRFFT";
    const bool fromReal = word == "RFFT";
    const auto half = [](std::int64_t size) { return size == 0 ? 0 : size / 2 + 1; };
    bool fits = std::equal(from.begin(), from.end() - 1, to.begin());
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        const std::size_t dim = rank - lengths.size() + i;
        const bool isLast = dim + 1 == rank;
        fits = fits && from[dim] == (isLast && toReal ? half(lengths[i]) : lengths[i])
            && to[dim] == (isLast && fromReal ? half(lengths[i]) : lengths[i]);
    }
    if (!fits)
        return wrongShape(other.name,
            fmt::format("{} does not become {} by transforms of [{}]", typeText(operands[0]), typeText(other.results[0]),
                fmt::join(lengths, ", ")));
    const DType given = operands[0].dtype;
    const DType made = other.results[0].dtype;
    if (isComplex(given) == fromReal || isComplex(made) == toReal || realType(given) != realType(made)
        || (realType(given) != DType::F32 && realType(given) != DType::F64))
        return wrongType(
            other.name, fmt::format("{} does not become {} by {}", typeText(operands[0]), typeText(other.results[0]), word));
    return std::nullopt;
}

/// Inputs of one shape, then as many scalars of their types; `resultShape` is that of every result.
Found reducedProblem(const OtherAttributes& other, OperandTypes operands, const Shape& resultShape)
{
    const std::size_t count = operands.size() / 2;
    if (auto problem = needOperands(other, operands, 2 * std::max<std::size_t>(count, 1), std::max<std::size_t>(count, 1)))
        return problem;
    for (std::size_t i = 0; i < count; ++i) {
        if (operands[i].shape != operands[0].shape)
            return wrongShape(
                other.name, fmt::format("the inputs differ: {} and {}", typeText(operands[0]), typeText(operands[i])));
        if (!operands[count + i].shape.empty() || operands[count + i].dtype != operands[i].dtype)
            return wrongType(
                other.name, fmt::format("the initial value of {} is {}", typeText(operands[i]), typeText(operands[count + i])));
        if (other.results[i].dtype != operands[i].dtype)
            return wrongType(other.name, fmt::format("{} does not become {}", typeText(operands[i]), typeText(other.results[i])));
        if (other.results[i].shape != resultShape)
            return wrongShape(other.name,
                fmt::format("result {} is {}, not of shape {}", i, typeText(other.results[i]), shapeText(resultShape)));
    }
    return std::nullopt;
}

Found reduceProblem(const OtherAttributes& other, OperandTypes operands)
{
    if (operands.empty())
        return wrongCount(other.name, "at least two operands", 0);
    const std::size_t rank = operands[0].shape.size();
    const auto dims = dimsAt(other.attributes, "dimensions", rank);
    if (!dims || !areDims(*dims, rank))
        return wrongAttribute(other.name, fmt::format("its dimensions are not those of {}", typeText(operands[0])));
    Shape shape;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        if (std::find(dims->begin(), dims->end(), dim) == dims->end())
            shape.push_back(operands[0].shape[dim]);
    }
    return reducedProblem(other, operands, shape);
}

/// How many windows fit; nothing when the sizes are out of range.
std::optional<std::int64_t> windowCount(std::int64_t size, const WindowDim& window)
{
    constexpr std::int64_t kMost = std::int64_t{1} << 30; // products fit
    if (std::max({size, window.size, window.baseDilation, window.windowDilation, std::abs(window.low), std::abs(window.high)})
        > kMost)
        return std::nullopt;
    const std::int64_t dilated = size == 0 ? 0 : (size - 1) * window.baseDilation + 1;
    const std::int64_t padded = dilated + window.low + window.high;
    const std::int64_t reach = (window.size - 1) * window.windowDilation + 1;
    return padded < reach ? 0 : (padded - reach) / window.stride + 1;
}

std::optional<Shape> windowedShape(const Shape& shape, const std::vector<WindowDim>& windows)
{
    Shape counts;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        const auto count = windowCount(shape[dim], windows[dim]);
        if (!count)
            return std::nullopt;
        counts.push_back(*count);
    }
    return counts;
}

Found reduceWindowProblem(const OtherAttributes& other, OperandTypes operands)
{
    if (operands.empty())
        return wrongCount(other.name, "at least two operands", 0);
    const auto windows = windowDims(other.attributes, operands[0].shape.size());
    const auto shape = windows ? windowedShape(operands[0].shape, *windows) : std::nullopt;
    if (!shape)
        return wrongAttribute(other.name, fmt::format("its windows do not fit {}", typeText(operands[0])));
    return reducedProblem(other, operands, *shape);
}

Found selectAndScatterProblem(const OtherAttributes& other, OperandTypes operands)
{
    if (auto problem = needOperands(other, operands, 3, 1))
        return problem;
    const auto windows = windowDims(other.attributes, operands[0].shape.size());
    const auto shape = windows ? windowedShape(operands[0].shape, *windows) : std::nullopt;
    if (!shape)
        return wrongAttribute(other.name, fmt::format("its windows do not fit {}", typeText(operands[0])));
    if (operands[1].dtype != operands[0].dtype || operands[2].dtype != operands[0].dtype)
        return wrongType(other.name,
            fmt::format("the element types of {}, {} and {} differ", typeText(operands[0]), typeText(operands[1]),
                typeText(operands[2])));
    if (operands[1].shape != *shape || other.results[0] != operands[0] || !operands[2].shape.empty())
        return wrongShape(other.name,
            fmt::format(
                "{} does not fit the windows of {}: {}", typeText(operands[1]), typeText(operands[0]), shapeText(*shape)));
    return std::nullopt;
}

Found convolutionProblem(const OtherAttributes& other, OperandTypes operands)
{
    if (auto problem = needOperands(other, operands, 2, 1))
        return problem;
    const auto dims = convolutionDims(other.attributes);
    const Shape& input = operands[0].shape;
    const Shape& kernel = operands[1].shape;
    const Shape& result = other.results[0].shape;
    const std::size_t rank = dims ? dims->input.spatial.size() + 2 : 0;
    if (!dims || input.size() != rank || kernel.size() != rank || result.size() != rank)
        return wrongAttribute(
            other.name, fmt::format("its dimension numbers do not fit {} and {}", typeText(operands[0]), typeText(operands[1])));
    const auto groups = checkedMultiply(dims->batchGroups, dims->featureGroups);
    const bool fits = input[dims->input.outer] == checkedMultiply(result[dims->result.outer], dims->batchGroups)
        && input[dims->input.inner] == checkedMultiply(kernel[dims->kernel.outer], dims->featureGroups)
        && kernel[dims->kernel.inner] == result[dims->result.inner] && groups && kernel[dims->kernel.inner] % *groups == 0;
    if (!fits)
        return wrongShape(other.name,
            fmt::format("the batch and the features of {}, {} and {} do not fit", typeText(operands[0]), typeText(operands[1]),
                typeText(other.results[0])));
    if (operands[0].dtype != operands[1].dtype || !isOneSort(operands[0].dtype, other.results[0].dtype))
        return wrongType(other.name,
            fmt::format("the element types of {}, {} and {} do not go together", typeText(operands[0]), typeText(operands[1]),
                typeText(other.results[0])));
    const auto windows = convolutionWindows(other.attributes, *dims, kernel);
    if (!windows)
        return wrongAttribute(other.name,
            fmt::format("its strides, paddings, dilations or reversals do not fit {} spatial dimensions, or a stride or a "
                        "dilation is below 1",
                dims->kernel.spatial.size()));
    for (std::size_t i = 0; i < windows->size(); ++i) {
        const std::int64_t size = input[dims->input.spatial[i]];
        const std::int64_t given = result[dims->result.spatial[i]];
        // A window without elements fits nowhere.
        const auto count = (*windows)[i].size < 1 ? std::optional<std::int64_t>(given) : windowCount(size, (*windows)[i]);
        if (count != given)
            return wrongShape(other.name,
                count
                    ? fmt::format("{} windows fit along dim {} of {}, but dim {} of the result {} is {}", *count,
                        dims->input.spatial[i], typeText(operands[0]), dims->result.spatial[i], typeText(other.results[0]), given)
                    : fmt::format("the windows along dim {} of {} are too large", dims->input.spatial[i], typeText(operands[0])));
    }
    return std::nullopt;
}

Found randomProblem(const OtherAttributes& other, OperandTypes operands)
{
    if (auto problem = needOperands(other, operands, 1, 2))
        return problem;
    if (operands[0] != other.results[0])
        return wrongType(
            other.name, fmt::format("the state changes from {} to {}", typeText(operands[0]), typeText(other.results[0])));
    return std::nullopt;
}

Found batchNormProblem(const OtherAttributes& other, OperandTypes operands)
{
    const OpKind kind = keptKind(other);
    const bool isInference = kind == OpKind::BatchNormInference;
    const bool isTraining = kind == OpKind::BatchNormTraining;
    if (auto problem = needOperands(other, operands, isTraining ? 3 : 5, isInference ? 1 : 3))
        return problem;
    const auto feature = dimsAt(other.attributes, "feature_index", operands[0].shape.size());
    if (!feature || feature->size() != 1)
        return wrongAttribute(other.name, fmt::format("feature_index is not a dimension of {}", typeText(operands[0])));
    const Shape& whole = operands[0].shape;
    const Shape features{whole[feature->front()]};
    bool fits = other.results[0].shape == whole;
    for (std::size_t i = 1; i < operands.size(); ++i)
        fits = fits && (operands[i].shape == features || (kind == OpKind::BatchNormGrad && i == 4 && operands[i].shape == whole));
    for (std::size_t i = 1; i < other.results.size(); ++i)
        fits = fits && other.results[i].shape == features;
    if (!fits)
        return wrongShape(other.name, fmt::format("its arrays do not fit {}", typeText(operands[0])));
    if (!isFloating(operands[0].dtype))
        return wrongType(other.name, fmt::format("not for elements of type {}", dtypeName(operands[0].dtype)));
    const auto differs = [&](const TensorType& type) { return type.dtype != operands[0].dtype; };
    if (std::any_of(operands.begin(), operands.end(), differs)
        || std::any_of(other.results.begin(), other.results.end(), differs))
        return wrongType(other.name, fmt::format("its arrays are not all of the elements of {}", typeText(operands[0])));
    return std::nullopt;
}

/// Pairs of operands and results of one rank, whose sizes differ along the named dimensions at most.
Found exchangeProblem(const OtherAttributes& other, OperandTypes operands, std::initializer_list<const char*> names)
{
    if (operands.empty())
        return wrongCount(other.name, "at least one operand", 0);
    if (auto problem = needOperands(other, operands, other.results.size(), other.results.size()))
        return problem;
    std::vector<std::size_t> changed;
    for (const char* name : names) {
        const auto dims = dimsAt(other.attributes, name, operands[0].shape.size());
        if (!dims || dims->size() != 1)
            return wrongAttribute(other.name, fmt::format("{} is not a dimension of {}", name, typeText(operands[0])));
        changed.push_back(dims->front());
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const Shape& from = operands[i].shape;
        const Shape& to = other.results[i].shape;
        bool fits = from.size() == operands[0].shape.size() && from.size() == to.size();
        for (std::size_t dim = 0; fits && dim < from.size(); ++dim)
            fits = from[dim] == to[dim] || std::find(changed.begin(), changed.end(), dim) != changed.end();
        if (!fits)
            return wrongShape(
                other.name, fmt::format("{} does not become {}", typeText(operands[i]), typeText(other.results[i])));
    }
    return std::nullopt;
}

Found allGatherProblem(const OtherAttributes& other, OperandTypes operands)
{
    return exchangeProblem(other, operands, {"all_gather_dim"});
}

Found reduceScatterProblem(const OtherAttributes& other, OperandTypes operands)
{
    return exchangeProblem(other, operands, {"scatter_dimension"});
}

Found allToAllProblem(const OtherAttributes& other, OperandTypes operands)
{
    return exchangeProblem(other, operands, {"split_dimension", "concat_dimension"});
}

/// Several arrays at once: inputs, the indices, as many updates.
Found scatterProblem(const OtherAttributes& other, OperandTypes operands)
{
    const std::size_t count = operands.size() / 2;
    if (auto problem = needOperands(other, operands, 2 * std::max<std::size_t>(count, 1) + 1, std::max<std::size_t>(count, 1)))
        return problem;
    const auto dims = indexingDims(other.attributes, true);
    if (!dims)
        return wrongAttribute(other.name, "its dimension numbers are none");
    for (std::size_t i = 0; i < count; ++i) {
        const TensorType types[] = {operands[i], operands[count], operands[count + 1 + i]};
        const auto made = partsTypes(OpKind::Scatter, ScatterAttributes{*dims, {}, false, false}, types);
        if (!made)
            return made.error().front();
        if (made->front() != other.results[i] || operands[i].shape != operands[0].shape)
            return wrongShape(
                other.name, fmt::format("result {} is {}, not {}", i, typeText(other.results[i]), typeText(operands[i])));
    }
    return std::nullopt;
}

Found bitcastProblem(const OtherAttributes& other, OperandTypes operands)
{
    if (auto problem = needOperands(other, operands, 1, 1))
        return problem;
    const bool narrows = other.results[0].shape.size() > operands[0].shape.size();
    const TensorType& wide = narrows ? operands[0] : other.results[0];
    const TensorType& narrow = narrows ? other.results[0] : operands[0];
    const std::size_t rank = wide.shape.size();
    const bool sameRank = narrow.shape.size() == rank && byteSize(wide.dtype) == byteSize(narrow.dtype);
    const bool split
        = narrow.shape.size() == rank + 1 && checkedMultiply(narrow.shape.back(), byteSize(narrow.dtype)) == byteSize(wide.dtype);
    if ((!sameRank && !split) || !std::equal(wide.shape.begin(), wide.shape.end(), narrow.shape.begin()))
        return wrongShape(other.name, fmt::format("{} does not become {}", typeText(operands[0]), typeText(other.results[0])));
    return std::nullopt;
}

Found topProblem(const OtherAttributes& other, OperandTypes operands)
{
    if (auto problem = needOperands(other, operands, 1, 2))
        return problem;
    const Shape& from = operands[0].shape;
    const Shape& to = other.results[0].shape;
    if (from.empty() || from.size() != to.size() || !std::equal(from.begin(), from.end() - 1, to.begin())
        || to.back() > from.back() || other.results[1].shape != to)
        return wrongShape(other.name, fmt::format("{} does not become {}", typeText(operands[0]), typeText(other.results[0])));
    return std::nullopt;
}

Found drawProblem(const OtherAttributes& other, OperandTypes operands)
{
    return needOperands(other, operands, 3, 1);
}

/// By kind; nullptr: nothing but the results' types is known.
constexpr std::pair<OpKind, Check> kChecks[] = {{OpKind::Sort, sortProblem}, {OpKind::VariadicReduce, reduceProblem},
    {OpKind::VariadicScatter, scatterProblem}, {OpKind::ReduceWindow, reduceWindowProblem},
    {OpKind::SelectAndScatter, selectAndScatterProblem}, {OpKind::Convolution, convolutionProblem}, {OpKind::TopK, topProblem},
    {OpKind::Cholesky, choleskyProblem}, {OpKind::TriangularSolve, triangularProblem}, {OpKind::Fft, fftProblem},
    {OpKind::FftOfPairs, nullptr}, {OpKind::RngBitGenerator, randomProblem}, {OpKind::Rng, drawProblem},
    {OpKind::BatchNormTraining, batchNormProblem}, {OpKind::BatchNormInference, batchNormProblem},
    {OpKind::BatchNormGrad, batchNormProblem}, {OpKind::Attention, attentionProblem}, {OpKind::AttentionGrad, attentionProblem},
    {OpKind::BitcastRegroup, bitcastProblem}, {OpKind::OwnAllReduce, elementwiseProblem},
    {OpKind::OwnAllGather, allGatherProblem}, {OpKind::OwnReduceScatter, reduceScatterProblem},
    {OpKind::OwnAllToAll, allToAllProblem}, {OpKind::OwnPermute, elementwiseProblem}, {OpKind::OwnBroadcast, elementwiseProblem},
    {OpKind::CrossReplicaSum, elementwiseProblem}, {OpKind::PartitionId, nullptr}, {OpKind::ReplicaId, nullptr},
    {OpKind::CustomCall, nullptr}, {OpKind::Other, nullptr}};
static_assert(isTableOfKept(kChecks), "every kept kind has its check, in the order of the kinds");

} // namespace

std::optional<Problem> blocksProblem(const Function& function, const Op& op)
{
    if (!isKept(op.kind) || op.bodies.empty())
        return std::nullopt;
    const auto& other = op.as<OtherAttributes>();
    const auto wrong = [&](std::size_t body, const std::string& what) {
        return Problem{"MW1307", fmt::format("{}: block {} {}", other.name, body, what)};
    };
    const auto scalarsOf = [&](const std::vector<ValueId>& values, std::size_t count) {
        std::vector<TensorType> types;
        for (std::size_t i = 0; i < count; ++i)
            types.push_back({function[values[i]].type.dtype, {}});
        return types;
    };
    const auto listed = [](const std::vector<TensorType>& types) {
        std::vector<std::string> texts;
        for (const TensorType& type : types)
            texts.push_back(typeText(type));
        return fmt::format("({})", fmt::join(texts, ", "));
    };
    const auto check = [&](std::size_t body, const std::vector<TensorType>& arguments, const std::vector<TensorType>& results) {
        const Block& block = function[op.bodies[body]];
        std::vector<TensorType> taken;
        for (std::size_t i = 0; i + other.captures < block.arguments.size(); ++i)
            taken.push_back(function[block.arguments[i]].type);
        std::vector<TensorType> given;
        for (const ValueId result : block.results)
            given.push_back(function[result].type);
        if (taken != arguments)
            return std::optional(wrong(body, fmt::format("takes {}, not {}", listed(taken), listed(arguments))));
        if (given != results)
            return std::optional(wrong(body, fmt::format("gives {}, not {}", listed(given), listed(results))));
        return std::optional<Problem>();
    };
    const auto needBlocks = [&](std::size_t count) {
        return op.bodies.size() == count
            ? std::optional<Problem>()
            : Problem{"MW1307", fmt::format("{}: has {} blocks, not {}", other.name, op.bodies.size(), count)};
    };
    const std::vector<TensorType> truth{{DType::Pred, {}}};
    switch (op.kind) {
    case OpKind::Sort: {
        if (auto problem = needBlocks(1))
            return problem;
        std::vector<TensorType> pairs; // two elements of each array, one behind the other
        for (const TensorType& type : scalarsOf(op.operands, op.results.size()))
            pairs.insert(pairs.end(), 2, type);
        return check(0, pairs, truth);
    }
    case OpKind::VariadicReduce:
    case OpKind::ReduceWindow:
    case OpKind::VariadicScatter: {
        if (auto problem = needBlocks(1))
            return problem;
        const std::vector<TensorType> one = scalarsOf(op.results, op.results.size());
        std::vector<TensorType> both = one;
        both.insert(both.end(), one.begin(), one.end());
        return check(0, both, one);
    }
    case OpKind::SelectAndScatter: {
        if (auto problem = needBlocks(2))
            return problem;
        const std::vector<TensorType> one = scalarsOf(op.results, 1);
        const std::vector<TensorType> both{one.front(), one.front()};
        if (auto problem = check(0, both, truth))
            return problem;
        return check(1, both, one);
    }
    default:
        return std::nullopt;
    }
}

std::optional<Problem> otherProblem(const OtherAttributes& other, std::span<const TensorType> operands)
{
    if (other.captures > operands.size())
        return wrongCount(other.name, fmt::format("{} operands that its blocks use", other.captures), operands.size());
    for (const TensorType& result : other.results) {
        if (const auto checked = checkedType(other.name, result); !checked)
            return checked.error().front();
    }
    const auto own = operands.first(operands.size() - other.captures);
    switch (otherClass(other)) {
    case OtherClass::Elementwise:
        return elementwiseProblem(other, own);
    case OtherClass::Named: {
        const Check check = keptRow(kChecks, keptKind(other)).second;
        return check == nullptr ? std::nullopt : check(other, own);
    }
    case OtherClass::Unknown:
    case OtherClass::Effect:
        break;
    }
    return std::nullopt;
}

} // namespace meshwright
