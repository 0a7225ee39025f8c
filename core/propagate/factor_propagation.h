// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/propagate/projection.h"

#include <span>
#include <vector>

namespace meshwright {

/// Along which way a factor may be propagated through an op: who may bring new axes.
enum class FactorDirection : std::uint8_t { None, Forward, Backward, Both };

/// What the propagation through one op needs to know of it. Tensors are its operands, then its results.
struct FactorFlow {
    const OpShardingRule* rule = nullptr;
    const Mesh* mesh = nullptr;
    std::size_t operandCount = 0;
    bool elementwise = false;
    bool conservative = false; ///< take no parts of axes
    std::span<const std::int64_t> elements; ///< of each tensor
    std::span<const FactorDirection> directions; ///< of each factor
};

/// Room for the intermediate lists, to be kept from call to call.
struct FactorScratch {
    std::vector<AxisRefs> axes; ///< of each factor
    std::vector<std::size_t> order;
    std::vector<std::int64_t> sourceSize;
    std::vector<std::size_t> source;
    std::vector<char> updated; ///< of tensor t and factor f at [t * factors + f]: whether it got axes
};

/// Folds one tensor's list into the axes that all tensors so far agree on: [a] and [a, b] make [a, b];
/// [a, b] and [a, c] make [a], and nothing can be added any more.
void mergeCompatibleAxes(AxisRefs& axes, bool& canExpand, const AxisRefs& more);

/// The axes that a factor could have in all tensors, before conflicts are removed (2.3).
void compatibleMajorAxes(AxisRefs& axes, std::span<const TensorFactorShardings> tensors, std::size_t operandCount,
    std::size_t factor, FactorDirection direction);

/// The major part of `axis` that does not overlap any of `others` (2.4) and is of one grid with them; nothing when even the most major part
/// is not.
std::optional<AxisRef> prefixWithoutOverlap(AxisRef axis, const AxisRefs& others);

/// True when `longer` says all that `shorter` does, and more: `[a:(1)2]` and `[a:(1)4, b]`.
bool isStrictPrefix(const AxisRefs& shorter, const AxisRefs& longer);

/// Gives all tensors of an op what none of them objects to (2.5). Returns true when scratch.updated has an entry.
bool propagateBasic(const FactorFlow& flow, std::span<TensorFactorShardings> tensors, FactorScratch& scratch);

/// Resolves conflicts: the larger tensor's axes win, each tensor takes what it can (2.6).
bool propagateAggressive(const FactorFlow& flow, std::span<TensorFactorShardings> tensors, FactorScratch& scratch);

} // namespace meshwright
