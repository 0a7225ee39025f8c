// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/propagate/rule.h"
#include "core/support/text.h"

#include <fmt/format.h>

namespace meshwright::tests {

/// `i` to `z`, then `z_1` and so on.
inline std::string factorName(std::size_t factor)
{
    constexpr std::size_t kLetters = 'z' - 'i' + 1;
    return factor < kLetters ? std::string(1, static_cast<char>('i' + factor)) : fmt::format("z_{}", factor - kLetters + 1);
}

inline std::string tensorsText(const std::vector<DimFactors>& tensors)
{
    std::vector<std::string> texts;
    for (const DimFactors& dims : tensors) {
        std::vector<std::string> dimTexts;
        for (const auto& factors : dims) {
            std::string text;
            for (const std::size_t factor : factors)
                text += factorName(factor);
            dimTexts.push_back(std::move(text));
        }
        texts.push_back(fmt::format("[{}]", join(dimTexts, ", ")));
    }
    return fmt::format("({})", join(texts, ", "));
}

template <typename Predicate>
inline std::string factorList(const OpShardingRule& rule, const char* title, const Predicate& wanted)
{
    std::vector<std::string> names;
    for (std::size_t i = 0; i < rule.factors.size(); ++i) {
        if (wanted(rule.factors[i]))
            names.push_back(factorName(i));
    }
    return names.empty() ? std::string() : fmt::format(" {}={{{}}}", title, join(names, ", "));
}

/// As Shardy writes it; `parseRule` reads it.
inline std::string ruleText(const OpShardingRule& rule)
{
    std::string text = tensorsText(rule.operands) + "->" + tensorsText(rule.results);
    std::vector<std::string> sizes;
    for (std::size_t i = 0; i < rule.factors.size(); ++i)
        sizes.push_back(fmt::format("{}={}", factorName(i), rule.factors[i].size));
    if (!sizes.empty())
        text += fmt::format(" {{{}}}", join(sizes, ", "));
    text += factorList(rule, "reduction", [](const Factor& f) { return f.kind == FactorKind::Reduction; });
    text += factorList(rule, "need_replication", [](const Factor& f) { return f.kind == FactorKind::NeedReplication; });
    text += factorList(rule, "permutation", [](const Factor& f) { return f.kind == FactorKind::Permutation; });
    text += factorList(rule, "blocked_propagation", [](const Factor& f) { return f.blocked; });
    return text;
}

} // namespace meshwright::tests
