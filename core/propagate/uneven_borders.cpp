// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/uneven_borders.h"

#include <fmt/format.h>

namespace meshwright {

namespace {

/// `dim 1 of size 31 is not divisible by 4`, of the first such dimension; empty: all are even.
std::string unevenDim(const Shape& shape, const TensorSharding& sharding)
{
    const std::vector<UnequalPieces> unequal = unequalPieces(shape, sharding);
    return unequal.empty() ? std::string() : notDivisible(unequal.front()).message;
}

} // namespace

std::vector<std::string> openUnevenBorders(Function& function, std::span<const std::optional<TensorSharding>> asked)
{
    std::vector<std::string> opened;
    const std::vector<ValueId> arguments = function.arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        Value& value = function[arguments[i]];
        if (!value.sharding || !value.annotation.empty())
            continue;
        if (const std::string why = unevenDim(value.type.shape, *value.sharding); !why.empty()) {
            value.sharding.reset();
            opened.push_back(fmt::format("argument {} is left open: {}", i, why));
        }
    }
    for (std::size_t i = 0; i < function.resultShardings.size() && i < function.results().size(); ++i) {
        std::optional<TensorSharding>& sharding = function.resultShardings[i];
        if (!sharding
            || (i < asked.size() && asked[i] && !unevenDim(function[function.results()[i]].type.shape, *asked[i]).empty()))
            continue;
        if (const std::string why = unevenDim(function[function.results()[i]].type.shape, *sharding); !why.empty()) {
            sharding = i < asked.size() ? asked[i] : std::nullopt;
            opened.push_back(fmt::format("result {} is left open: {}", i, why));
        }
    }
    return opened;
}

} // namespace meshwright
