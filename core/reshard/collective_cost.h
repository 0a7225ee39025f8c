// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"

#include <string>

namespace meshwright {

/// One collective whose cost is asked for.
struct CollectiveQuery {
    OpKind kind = OpKind::AllReduce;
    AxisRefs axes; ///< empty for a permute of everything
    std::int64_t groupSize = 1;
    std::int64_t payloadBytes = 0; ///< of one call: the operand's local bytes; for all-gather the result's
};

/// By what core/partition chooses between sequences of collectives that do the same. Units are the cost's own; only sums and
/// comparisons are made. Implementations must be pure.
class CollectiveCost {
public:
    virtual ~CollectiveCost() = default;
    virtual std::string id() const = 0; ///< recorded in every result
    virtual double cost(const CollectiveQuery& query) const = 0; ///< >= 0
};

/// Knows no hardware: the bytes that a device sends in a ring (all-reduce 2 B (n-1)/n, all-gather, reduce-scatter and all-to-all
/// B (n-1)/n, permute B, all-slice nothing), and a small charge for each step so that fewer collectives win ties.
class BytesThenStepsCost final : public CollectiveCost {
public:
    std::string id() const override { return "bytes-then-steps"; }
    double cost(const CollectiveQuery& query) const override;
};

} // namespace meshwright
