// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/attention.h"

#include "core/program/shape_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>

namespace meshwright {

namespace {

constexpr std::pair<const char*, bool AttentionForm::*> kFlags[]
    = {{"causal", &AttentionForm::causal}, {"windowed", &AttentionForm::windowed}, {"segmented", &AttentionForm::segmented}};

// Those that an op has only where they are not the usual ones.
constexpr const char* kContext = "context";
constexpr const char* kBalanced = "balanced";
constexpr const char* kPart = "part";
constexpr std::pair<const char*, ContextExchange> kContexts[]
    = {{"gather", ContextExchange::Gather}, {"ring", ContextExchange::Ring}, {"ulysses", ContextExchange::Ulysses}};

DType wideType(DType type)
{
    return type == DType::F64 ? DType::F64 : DType::F32;
}

KeptAttribute textAttribute(const char* name, std::string text)
{
    return {name, std::move(text), false, {}, {}};
}

KeptAttribute number(const char* name, double value)
{
    return textAttribute(name, fmt::format("{:.17e} : f64", value));
}

KeptAttribute partAttribute(std::int64_t part)
{
    return {kPart, fmt::format("{} : i64", part), false, {part}, {}};
}

std::optional<double> numberIn(const OtherAttributes& other, const char* name)
{
    const KeptAttribute* attribute = findAttribute(other.attributes, name);
    if (attribute == nullptr)
        return std::nullopt;
    char* end = nullptr;
    const double value = std::strtod(attribute->text.c_str(), &end);
    return end != attribute->text.c_str() && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

Shape joined(Shape shape, std::initializer_list<std::int64_t> rest)
{
    shape.insert(shape.end(), rest);
    return shape;
}

/// The types of all operands, by those of the first three.
std::vector<TensorType> operandTypes(OpKind kind, const AttentionForm& form, std::span<const TensorType> given)
{
    const AttentionSizes sizes(given);
    const DType type = given[0].dtype;
    std::vector<TensorType> types{{type, joined(sizes.batch, {sizes.queries, sizes.groups, sizes.shares, sizes.dims})},
        {type, joined(sizes.batch, {sizes.keys, sizes.groups, sizes.dims})},
        {type, joined(sizes.batch, {sizes.keys, sizes.groups, sizes.valueDims})}};
    if (form.causal)
        types.insert(types.end(), {{DType::S32, {sizes.queries}}, {DType::S32, {sizes.keys}}});
    if (form.windowed)
        types.push_back({DType::S32, {}});
    if (form.segmented)
        types.insert(
            types.end(), {{DType::S32, joined(sizes.batch, {sizes.queries})}, {DType::S32, joined(sizes.batch, {sizes.keys})}});
    if (AttentionPlaces(form, kind).before != AttentionPlaces(form, kind).end) {
        const std::vector<TensorType> made = attentionResults(kind, form, given);
        types.insert(types.end(), {made[0], made[1]});
    }
    if (kind == OpKind::AttentionGrad) {
        const std::vector<TensorType> made = attentionResults(OpKind::Attention, {}, given);
        types.insert(types.end(), {made[0], made[1], made[0]});
    }
    return types;
}

} // namespace

AttentionSizes::AttentionSizes(std::span<const TensorType> operands)
{
    const Shape& query = operands[0].shape;
    const std::size_t rank = query.size();
    batch.assign(query.begin(), query.end() - 4);
    queries = query[rank - 4];
    groups = query[rank - 3];
    shares = query[rank - 2];
    dims = query[rank - 1];
    keys = operands[1].shape[rank - 4];
    valueDims = operands[2].shape.back();
}

std::int64_t AttentionSizes::batches() const
{
    return std::accumulate(batch.begin(), batch.end(), std::int64_t{1}, std::multiplies<>());
}

std::optional<AttentionForm> attentionForm(const OtherAttributes& other)
{
    AttentionForm form;
    const auto scale = numberIn(other, "scale");
    const auto softcap = numberIn(other, "softcap");
    const KeptAttribute* type = findAttribute(other.attributes, "operand_type");
    form.operandType = (type == nullptr ? std::nullopt : parseDType(type->text)).value_or(DType::Token);
    if (!scale || !softcap || *softcap < 0.0 || !isFloating(form.operandType))
        return std::nullopt;
    form.scale = *scale;
    form.softcap = *softcap;
    for (const auto& [name, member] : kFlags) {
        const auto flag = integerAt(other.attributes, name);
        if (!flag)
            return std::nullopt;
        form.*member = *flag != 0;
    }
    if (const KeptAttribute* balanced = findAttribute(other.attributes, kBalanced)) {
        if (balanced->text != "true" && balanced->text != "false")
            return std::nullopt;
        form.isBalanced = balanced->text == "true";
    }
    if (const KeptAttribute* part = findAttribute(other.attributes, kPart)) {
        constexpr std::int64_t kMostParts = std::int64_t{1} << 24; // devices of a mesh
        form.part
            = part->text.ends_with("i64") || part->text.ends_with("i32") ? integerAt(other.attributes, kPart).value_or(-1) : -1;
        if (form.part < 0 || form.part >= kMostParts)
            return std::nullopt;
    }
    if (const KeptAttribute* context = findAttribute(other.attributes, kContext)) {
        const auto* const word = std::find_if(std::begin(kContexts), std::end(kContexts),
            [&](const auto& one) { return context->text == fmt::format("\"{}\"", one.first); });
        if (word == std::end(kContexts))
            return std::nullopt;
        form.context = word->second;
    }
    return !form.windowed || form.causal ? std::optional(form) : std::nullopt;
}

OtherAttributes attentionAttributes(OpKind kind, const AttentionForm& form, std::span<const TensorType> operands)
{
    OtherAttributes other{fmt::format("mw.{}", opName(kind)), {}, attentionResults(kind, form, operands), 0};
    const auto addTruth = [&](const char* name, bool isSet) {
        other.attributes.push_back({name, isSet ? "true" : "false", false, {isSet ? 1 : 0}, {}});
    };
    if (form.isBalanced)
        addTruth(kBalanced, true);
    for (const auto& [name, member] : kFlags)
        addTruth(name, form.*member);
    for (const auto& [word, context] : kContexts) {
        if (form.context == context && context != ContextExchange::Gather)
            other.attributes.push_back(textAttribute(kContext, fmt::format("\"{}\"", word)));
    }
    other.attributes.push_back(textAttribute("operand_type", dtypeName(form.operandType)));
    if (form.isPart())
        other.attributes.push_back(partAttribute(form.part));
    other.attributes.push_back(number("scale", form.scale));
    other.attributes.push_back(number("softcap", form.softcap));
    return other;
}

OtherAttributes attentionPart(OtherAttributes whole, std::int64_t part, std::span<const TensorType> operands)
{
    whole.attributes.push_back(partAttribute(part));
    whole.results = attentionResults(keptKind(whole), *attentionForm(whole), operands);
    return whole;
}

std::vector<TensorType> attentionResults(OpKind kind, const AttentionForm& form, std::span<const TensorType> operands)
{
    const DType wide = wideType(operands[0].dtype);
    const DType made = form.isPart() ? wide : operands[0].dtype;
    if (kind == OpKind::AttentionGrad)
        return {{made, operands[0].shape}, {made, operands[1].shape}, {made, operands[2].shape}};
    const AttentionSizes sizes(operands);
    const Shape rows = joined(sizes.batch, {sizes.queries, sizes.groups, sizes.shares});
    return {{made, joined(rows, {sizes.valueDims})}, {wide, rows}};
}

std::set<std::string_view> attributesOfExchange()
{
    return {kContext, kBalanced, kPart};
}

std::optional<Problem> attentionProblem(const OtherAttributes& other, std::span<const TensorType> operands)
{
    const auto form = attentionForm(other);
    if (!form)
        return wrongAttribute(other.name,
            "needs causal, windowed (with causal) and segmented (truth values), operand_type (a floating type), scale and "
            "softcap (numbers, softcap at least 0); it may have context (\"gather\", \"ring\" or \"ulysses\"), balanced (a truth "
            "value) and part (a number from 0)");
    const OpKind kind = keptKind(other);
    const std::size_t count = AttentionPlaces(*form, kind).end + (kind == OpKind::AttentionGrad ? 3 : 0);
    if (operands.size() != count)
        return wrongCount(other.name, fmt::format("{} operands", count), operands.size());
    if (!isFloating(operands[0].dtype))
        return wrongType(other.name, fmt::format("queries are {}, not floating", typeText(operands[0])));
    if (operands[0].shape.size() < 4 || operands[1].shape.size() + 1 != operands[0].shape.size()
        || operands[2].shape.size() != operands[1].shape.size())
        return wrongShape(other.name,
            fmt::format("queries {}, keys {} and values {} are not [batch.., queries, groups, shares, size], [batch.., keys, "
                        "groups, size] and [batch.., keys, groups, value size]",
                typeText(operands[0]), typeText(operands[1]), typeText(operands[2])));
    const std::vector<TensorType> wanted = operandTypes(kind, *form, operands);
    for (std::size_t i = 0; i < count; ++i) {
        if (operands[i].dtype != wanted[i].dtype)
            return wrongType(
                other.name, fmt::format("operand {} is {}, needed is {}", i, typeText(operands[i]), typeText(wanted[i])));
        if (operands[i].shape != wanted[i].shape)
            return wrongShape(
                other.name, fmt::format("operand {} is {}, needed is {}", i, typeText(operands[i]), typeText(wanted[i])));
    }
    if (const auto made = attentionResults(kind, *form, operands); other.results != made)
        return wrongShape(other.name, fmt::format("makes {} results of other types than its operands say", other.results.size()));
    return std::nullopt;
}

} // namespace meshwright
