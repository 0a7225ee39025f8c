// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/propagate/explicit_types.h"
#include "core/reshard/collective_cost.h"
#include "core/reshard/reshard.h"

#include <string>
#include <vector>

namespace meshwright {

/// One collective on the way to a legal result.
struct PricedStep {
    std::string moves; ///< "operand 0" or "the result"
    OpKind kind = OpKind::AllReduce;
    AxisRefs axes; ///< none: all
    std::int64_t payloadBytes = 0; ///< payload, as ReshardStep
};

/// A result that an ambiguous op may have in explicit mode, and the cheapest way to it.
struct PricedChoice {
    ExplicitChoice choice;
    std::vector<PricedStep> steps; ///< those that move data
    std::int64_t totalPayloadBytes = 0; ///< of all steps
    double cost = 0.0; ///< by the CollectiveCost
};

/// The legal results of a type error, each once with its cheapest way, the cheapest first; those that stay partial sums last.
std::vector<PricedChoice> pricedChoices(
    const Function& function, const Mesh& mesh, const ExplicitFinding& finding, const CollectiveCost& cost);

/// `P('x', None): all-reduce over y of the result, 256 B per device`, or `..: nothing moves`.
std::string priceText(const PricedChoice& choice, const Mesh& mesh);

/// Puts the cheapest result first, and writes all of them and their costs into the fix.
class PricingChooser final : public ExplicitChooser {
public:
    /// The cost must outlive the chooser.
    explicit PricingChooser(const CollectiveCost& cost)
        : m_cost(cost)
    {
    }
    void settle(const Function& function, const Mesh& mesh, ExplicitFinding& finding) const override;

private:
    const CollectiveCost& m_cost;
};

} // namespace meshwright
