// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/rule.h"

#include "core/program/other_op.h"
#include "core/propagate/rule_builder.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

namespace meshwright {

namespace {

using Types = std::span<const TensorType>;

OpShardingRule elementwiseRule(Types operands, Types results)
{
    RuleBuilder builder(operands, results);
    const Shape& shape = results.front().shape;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        const std::size_t factor = builder.factor(shape[dim]);
        for (std::size_t i = 0; i < operands.size(); ++i) {
            if (!operands[i].shape.empty()) // a scalar operand goes with every element
                builder.addToOperand(i, dim, factor);
        }
        builder.addToResult(dim, factor);
    }
    return builder.finish();
}

/// A factor of its own for each dimension of the result; the operands (a random key) are needed whole.
OpShardingRule leafRule(Types operands, Types results)
{
    RuleBuilder builder(operands, results);
    for (std::size_t i = 0; i < operands.size(); ++i)
        builder.needWhole(i, operands[i].shape);
    const Shape& shape = results.front().shape;
    for (std::size_t dim = 0; dim < shape.size(); ++dim)
        builder.addToResult(dim, builder.factor(shape[dim]));
    return builder.finish();
}

OpShardingRule broadcastRule(const BroadcastAttributes& attributes, Types operands, Types results)
{
    RuleBuilder builder(operands, results);
    const Shape& from = operands.front().shape;
    const Shape& to = results.front().shape;
    for (std::size_t dim = 0; dim < to.size(); ++dim) {
        const auto at = std::find(attributes.dims.begin(), attributes.dims.end(), dim);
        if (at == attributes.dims.end()) {
            builder.addToResult(dim, builder.factor(to[dim]));
            continue;
        }
        const auto source = static_cast<std::size_t>(at - attributes.dims.begin());
        const std::size_t factor = builder.factor(from[source]);
        builder.addToOperand(0, source, factor);
        builder.addToResult(dim, from[source] == to[dim] ? factor : builder.factor(to[dim]));
    }
    return builder.finish();
}

OpShardingRule transposeRule(const TransposeAttributes& attributes, Types operands, Types results)
{
    RuleBuilder builder(operands, results);
    for (std::size_t dim = 0; dim < attributes.permutation.size(); ++dim) {
        const std::size_t factor = builder.factor(results.front().shape[dim]);
        builder.addToOperand(0, attributes.permutation[dim], factor);
        builder.addToResult(dim, factor);
    }
    return builder.finish();
}

/// Walks the dimensions of one side of a reshape, major to minor.
struct ReshapeSide {
    const Shape& shape;
    std::size_t dim = 0; ///< the one after the current
    std::int64_t rest = 1; ///< of the current dimension, not yet in a factor
    std::int64_t done = 1; ///< the product of all factors so far: how far from the major end we are

    /// Moves to the next dimension if the current one is used up; `onUnit` is called with each dimension of size 1 on the way.
    template <typename OnUnit>
    void advance(const OnUnit& onUnit)
    {
        while (rest == 1 && dim < shape.size()) {
            rest = shape[dim++];
            if (rest == 1)
                onUnit(dim - 1);
        }
    }
    void take(std::int64_t size)
    {
        rest /= size;
        done *= size;
    }
};

/// Both sides are walked from the major end. A factor belongs to both where they stand at the same place and their rests have a
/// common divisor; otherwise each side gets factors of its own until both stand at the same place again.
OpShardingRule reshapeRule(Types operands, Types results)
{
    RuleBuilder builder(operands, results);
    const Shape& from = operands.front().shape;
    const Shape& to = results.front().shape;
    if (operands.front().elements() == 0) {
        // No elements: equal major dimensions go together, the others do not.
        const auto same
            = static_cast<std::size_t>(std::mismatch(from.begin(), from.end(), to.begin(), to.end()).first - from.begin());
        for (std::size_t dim = 0; dim < std::max(from.size(), to.size()); ++dim) {
            const std::size_t operandFactor = dim < from.size() ? builder.factor(from[dim]) : 0;
            if (dim < from.size())
                builder.addToOperand(0, dim, operandFactor);
            if (dim < to.size())
                builder.addToResult(dim, dim < same ? operandFactor : builder.factor(to[dim]));
        }
        return builder.finish();
    }

    ReshapeSide in{from};
    ReshapeSide out{to};
    const auto addIn = [&](std::int64_t size) {
        builder.addToOperand(0, in.dim - 1, builder.factor(size));
        in.take(size);
    };
    const auto addOut = [&](std::int64_t size) {
        builder.addToResult(out.dim - 1, builder.factor(size));
        out.take(size);
    };
    // How much the side that is behind takes: towards the nearest place where both can meet.
    const auto step = [](const ReshapeSide& behind, const ReshapeSide& ahead) {
        const std::int64_t common = std::gcd(behind.rest, std::lcm(behind.done, ahead.done) / behind.done);
        return common > 1 ? common : behind.rest;
    };
    for (;;) {
        in.advance([&](std::size_t dim) { builder.addToOperand(0, dim, builder.factor(1)); });
        out.advance([&](std::size_t dim) { builder.addToResult(dim, builder.factor(1)); });
        if (in.rest == 1 && out.rest == 1)
            return builder.finish();
        if (in.done < out.done) {
            addIn(step(in, out));
        } else if (out.done < in.done) {
            addOut(step(out, in));
        } else if (const std::int64_t common = std::gcd(in.rest, out.rest); common > 1) {
            const std::size_t factor = builder.factor(common);
            builder.addToOperand(0, in.dim - 1, factor);
            builder.addToResult(out.dim - 1, factor);
            in.take(common);
            out.take(common);
        } else {
            addIn(in.rest);
            addOut(out.rest);
        }
    }
}

OpShardingRule reduceRule(const ReduceAttributes& attributes, Types operands, Types results)
{
    RuleBuilder builder(operands, results);
    const Shape& shape = operands.front().shape;
    std::size_t kept = 0;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        const bool reduced = std::find(attributes.dims.begin(), attributes.dims.end(), dim) != attributes.dims.end();
        const std::size_t factor = builder.factor(shape[dim], reduced ? FactorKind::Reduction : FactorKind::PassThrough);
        builder.addToOperand(0, dim, factor);
        if (!reduced)
            builder.addToResult(kept++, factor);
    }
    return builder.finish();
}

OpShardingRule dotRule(const DotAttributes& attributes, Types operands, Types results)
{
    RuleBuilder builder(operands, results);
    std::size_t resultDim = 0;
    for (std::size_t i = 0; i < attributes.lhsBatch.size(); ++i) {
        const std::size_t factor = builder.factor(operands[0].shape[attributes.lhsBatch[i]]);
        builder.addToOperand(0, attributes.lhsBatch[i], factor);
        builder.addToOperand(1, attributes.rhsBatch[i], factor);
        builder.addToResult(resultDim++, factor);
    }
    const auto contains = [](const std::vector<std::size_t>& dims, std::size_t dim) {
        return std::find(dims.begin(), dims.end(), dim) != dims.end();
    };
    const auto addFree
        = [&](std::size_t operand, const std::vector<std::size_t>& batch, const std::vector<std::size_t>& contracting) {
              const Shape& shape = operands[operand].shape;
              for (std::size_t dim = 0; dim < shape.size(); ++dim) {
                  if (contains(batch, dim) || contains(contracting, dim))
                      continue;
                  const std::size_t factor = builder.factor(shape[dim]);
                  builder.addToOperand(operand, dim, factor);
                  builder.addToResult(resultDim++, factor);
              }
          };
    addFree(0, attributes.lhsBatch, attributes.lhsContracting);
    addFree(1, attributes.rhsBatch, attributes.rhsContracting);
    for (std::size_t i = 0; i < attributes.lhsContracting.size(); ++i) {
        const std::size_t factor = builder.factor(operands[0].shape[attributes.lhsContracting[i]], FactorKind::Reduction);
        builder.addToOperand(0, attributes.lhsContracting[i], factor);
        builder.addToOperand(1, attributes.rhsContracting[i], factor);
    }
    return builder.finish();
}

/// Each operand with its result.
OpShardingRule barrierRule(Types operands, Types results)
{
    RuleBuilder builder(operands, results);
    for (std::size_t i = 0; i < operands.size(); ++i) {
        for (std::size_t dim = 0; dim < operands[i].shape.size(); ++dim) {
            const std::size_t factor = builder.factor(operands[i].shape[dim]);
            builder.addToOperand(i, dim, factor);
            builder.addToResult(i, dim, factor);
        }
    }
    return builder.finish();
}

/// Reads a rule's text, one sign after the other.
class RuleReader {
public:
    explicit RuleReader(std::string_view text)
        : m_text(text)
    {
        if (constexpr std::string_view kOpening = "#sdy.op_sharding_rule<"; m_text.starts_with(kOpening) && m_text.ends_with('>'))
            m_text = m_text.substr(kOpening.size(), m_text.size() - kOpening.size() - 1);
    }

    std::optional<OpShardingRule> read()
    {
        bool good = tensors(m_rule.operands) && accept("->") && tensors(m_rule.results);
        if (good && accept("{"))
            good = sizes();
        while (good && !atEnd()) {
            if (accept(","))
                good = accept("custom") && atEnd();
            else
                good = kind();
        }
        const bool sized = std::all_of(m_sized.begin(), m_sized.end(), [](bool known) { return known; });
        return good && sized && isOnce(m_rule.operands) && isOnce(m_rule.results) ? std::optional(std::move(m_rule))
                                                                                  : std::nullopt;
    }

private:
    /// True when no tensor has a factor twice.
    static bool isOnce(const std::vector<DimFactors>& tensors)
    {
        return std::all_of(tensors.begin(), tensors.end(), [](const DimFactors& dims) {
            std::set<std::size_t> seen;
            return std::all_of(dims.begin(), dims.end(), [&](const auto& factors) {
                return std::all_of(factors.begin(), factors.end(), [&](std::size_t f) { return seen.insert(f).second; });
            });
        });
    }
    void skipBlank() { m_at = std::min(m_text.find_first_not_of(" \t\n\r", m_at), m_text.size()); }
    bool atEnd()
    {
        skipBlank();
        return m_at == m_text.size();
    }
    bool accept(std::string_view sign)
    {
        skipBlank();
        if (!m_text.substr(m_at).starts_with(sign))
            return false;
        m_at += sign.size();
        return true;
    }
    std::optional<std::int64_t> number()
    {
        skipBlank();
        const std::size_t end = std::min(m_text.find_first_not_of("0123456789", m_at), m_text.size());
        const auto value = parseInteger(m_text.substr(m_at, end - m_at));
        m_at = end;
        return value;
    }
    /// `i`, or `z_2`.
    std::optional<std::size_t> factor(bool isNew)
    {
        skipBlank();
        std::size_t end = m_at;
        if (end == m_text.size() || m_text[end] < 'i' || m_text[end] > 'z')
            return std::nullopt;
        if (++end < m_text.size() && m_text[end] == '_')
            end = std::min(m_text.find_first_not_of("0123456789", end + 1), m_text.size());
        const std::string name(m_text.substr(m_at, end - m_at));
        m_at = end;
        const auto known = m_names.find(name);
        if (known != m_names.end())
            return known->second;
        if (!isNew)
            return std::nullopt;
        m_rule.factors.emplace_back();
        m_sized.push_back(false);
        return m_names[name] = m_rule.factors.size() - 1;
    }
    bool tensors(std::vector<DimFactors>& list)
    {
        if (!accept("("))
            return false;
        while (!accept(")")) {
            if (!list.empty() && !accept(","))
                return false;
            DimFactors& dims = list.emplace_back();
            if (!accept("["))
                return false;
            while (!accept("]")) {
                if (!dims.empty() && !accept(","))
                    return false;
                auto& factors = dims.emplace_back();
                while (const auto found = factor(true))
                    factors.push_back(*found);
                if (factors.empty())
                    return false;
            }
        }
        return true;
    }
    bool sizes()
    {
        for (bool first = true; !accept("}"); first = false) {
            if (!first && !accept(","))
                return false;
            const auto found = factor(false);
            if (!found || !accept("="))
                return false;
            const auto size = number();
            if (!size || *size < 0)
                return false;
            m_rule.factors[*found].size = *size;
            m_sized[*found] = true;
        }
        return true;
    }
    bool kind()
    {
        constexpr std::array kTitles
            = {std::pair{"reduction", FactorKind::Reduction}, std::pair{"need_replication", FactorKind::NeedReplication},
                std::pair{"permutation", FactorKind::Permutation}, std::pair{"blocked_propagation", FactorKind::PassThrough}};
        for (const auto& [title, factorKind] : kTitles) {
            if (!accept(title))
                continue;
            if (!accept("=") || !accept("{"))
                return false;
            for (bool first = true; !accept("}"); first = false) {
                const auto found = first || accept(",") ? factor(false) : std::nullopt;
                if (!found)
                    return false;
                if (factorKind == FactorKind::PassThrough)
                    m_rule.factors[*found].blocked = true;
                else
                    m_rule.factors[*found].kind = factorKind;
            }
            return true;
        }
        return false;
    }

    std::string_view m_text;
    std::size_t m_at = 0;
    OpShardingRule m_rule;
    std::vector<bool> m_sized;
    std::map<std::string, std::size_t> m_names;
};

std::optional<OpShardingRule> ruleIn(
    OpKind kind, const OpAttributes& attributes, Types operands, Types results, const RuleContext& context)
{
    switch (opInfo(kind).opClass) {
    case OpClass::Leaf:
        if (kind == OpKind::Constant && results.front().shape.empty())
            return std::nullopt;
        return leafRule(operands, results);
    case OpClass::Unary:
    case OpClass::Binary:
    case OpClass::Ternary:
    case OpClass::Constraint:
        return elementwiseRule(operands, results);
    case OpClass::Shaping:
        if (kind == OpKind::BroadcastInDim)
            return broadcastRule(std::get<BroadcastAttributes>(attributes), operands, results);
        if (kind == OpKind::Reshape)
            return reshapeRule(operands, results);
        return transposeRule(std::get<TransposeAttributes>(attributes), operands, results);
    case OpClass::Parts:
        return partsRule(kind, attributes, operands, results, context);
    case OpClass::Contraction:
        if (kind == OpKind::Reduce)
            return reduceRule(std::get<ReduceAttributes>(attributes), operands, results);
        return dotRule(std::get<DotAttributes>(attributes), operands, results);
    case OpClass::Barrier:
        return barrierRule(operands, results);
    case OpClass::Other:
        return otherRule(kind == OpKind::Other ? keptKind(std::get<OtherAttributes>(attributes)) : kind,
            std::get<OtherAttributes>(attributes), operands, results, context);
    case OpClass::Control:
    case OpClass::Collective:
    case OpClass::Transfer:
        return std::nullopt;
    }
    return std::nullopt;
}

/// The array that a slice is taken from, or the value itself.
ValueId unsliced(const Function& function, ValueId value)
{
    const OpId producer = function[value].producer;
    return producer.valid() && function[producer].kind == OpKind::Slice ? function[producer].operands.front() : value;
}

RuleContext contextOf(const Function& function, const Op& op, bool conservative)
{
    RuleContext context;
    context.conservative = conservative;
    if (op.kind == OpKind::Concatenate) {
        const auto all = [&](const auto& holds) { return std::all_of(op.operands.begin(), op.operands.end(), holds); };
        const ValueId first = unsliced(function, op.operands.front());
        context.joinsSlices = all([&](ValueId operand) { return unsliced(function, operand) != operand; })
            || all([&](ValueId operand) { return unsliced(function, operand) == first; });
        // One array with itself is joined, not cut.
        context.joinsSlices = context.joinsSlices && std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId operand) {
            return unsliced(function, operand) != operand;
        });
    }
    if (op.kind == OpKind::DynamicUpdateSlice)
        context.startsAreConstant = std::all_of(op.operands.begin() + 2, op.operands.end(), [&](ValueId start) {
            const OpId producer = function[start].producer;
            return producer.valid() && function[producer].kind == OpKind::Constant;
        });
    if (isKept(op.kind)) {
        const auto& other = op.as<OtherAttributes>();
        if (!op.bodies.empty())
            context.combiner = combinerIn(function, op.bodies.back());
        if (callTarget(other) == "X64Combine") {
            for (const OpId user : function[op.block].ops) {
                const auto& operands = function[user].operands;
                context.feedsRandomBits = context.feedsRandomBits
                    || (function[user].kind == OpKind::RngBitGenerator
                        && std::find(operands.begin(), operands.end(), op.results.front()) != operands.end());
            }
        }
    }
    return context;
}

bool fits(const std::vector<DimFactors>& tensors, const std::vector<TensorType>& types)
{
    return std::equal(tensors.begin(), tensors.end(), types.begin(), types.end(),
        [](const DimFactors& dims, const TensorType& type) { return dims.size() == type.shape.size(); });
}

const KeptAttribute* attachedText(const Op& op)
{
    const KeptAttribute* attribute = op.kept != nullptr ? findAttribute(op.kept->attributes, "sdy.sharding_rule") : nullptr;
    if (const auto* other = std::get_if<OtherAttributes>(&op.attributes); other != nullptr && attribute == nullptr)
        attribute = findAttribute(other->attributes, "sdy.sharding_rule");
    return attribute;
}

struct OpTypes {
    std::vector<TensorType> operands;
    std::vector<TensorType> results;
};

OpTypes typesOf(const Function& function, const Op& op)
{
    OpTypes types;
    for (const ValueId operand : op.operands)
        types.operands.push_back(function[operand].type);
    for (const ValueId result : op.results)
        types.results.push_back(function[result].type);
    return types;
}

/// The rule that the user attached to the op.
std::optional<OpShardingRule> attachedRule(const Op& op, const OpTypes& types)
{
    const KeptAttribute* attribute = attachedText(op);
    auto rule = attribute == nullptr ? std::nullopt : parseRule(attribute->text);
    return rule && fits(rule->operands, types.operands) && fits(rule->results, types.results) ? rule : std::nullopt;
}

} // namespace

std::optional<OpShardingRule> parseRule(std::string_view text)
{
    return RuleReader(text).read();
}

std::optional<OpShardingRule> shardingRule(OpKind kind, const OpAttributes& attributes, Types operands, Types results)
{
    return ruleIn(kind, attributes, operands, results, {});
}

std::optional<OpShardingRule> shardingRule(const Function& function, OpId id, bool conservative)
{
    const OpTypes types = typesOf(function, function[id]);
    if (auto rule = attachedRule(function[id], types))
        return rule;
    return ownShardingRule(function, id, conservative);
}

std::optional<OpShardingRule> ownShardingRule(const Function& function, OpId id, bool conservative)
{
    const Op& op = function[id];
    const OpTypes types = typesOf(function, op);
    return ruleIn(op.kind, op.attributes, types.operands, types.results, contextOf(function, op, conservative));
}

bool hasCustomRule(const Op& op)
{
    const KeptAttribute* attribute = attachedText(op);
    return attribute != nullptr && attribute->text.find(", custom") != std::string::npos;
}

} // namespace meshwright
