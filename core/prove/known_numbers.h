// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/prove/walk.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace meshwright {

/// Integers and truth values of a device's value that depend on nothing but the device's place and the index along one dimension: masks,
/// where pieces begin.
struct KnownNumbers {
    AxisRefs axes; ///< whose piece number they depend on; none: they are the same on all devices
    int dim = -1; ///< along which they differ; -1: along none
    std::vector<std::vector<std::int64_t>> at; ///< by piece number and index

    std::int64_t pieces() const { return static_cast<std::int64_t>(at.size()); }
    std::int64_t operator()(std::int64_t piece, std::int64_t index) const
    {
        const auto& numbers = at[at.size() == 1 ? 0 : static_cast<std::size_t>(piece)];
        return numbers[numbers.size() == 1 ? 0 : static_cast<std::size_t>(index)];
    }
};

/// The numbers of a value of a device function, or of the source's manual computations, from the ops that make it; nothing when they depend on anything else.
std::optional<KnownNumbers> knownNumbers(const Walk& walk, ValueId value);

/// The operand that a selection takes everywhere, as its predicate is the same truth value on all devices and in all places; nothing for other ops, and
/// where that is not known.
std::optional<std::size_t> takenCase(const Walk& walk, const Op& op);

/// The axes along which devices have different numbers, as `GlobalValue::varies`.
std::uint64_t variesAlong(const KnownNumbers& known, const Mesh& mesh);

bool compares(CompareDirection direction, std::int64_t a, std::int64_t b);

/// True when a collective from one layout to another does what both its axes and the layouts of its operand and result say.
/// `wholes` are the shapes of the whole arrays, as the partitioner claims, by value.
bool isExchangeAsClaimed(const Function& function, const std::vector<Shape>& wholes, const Op& op);

} // namespace meshwright
