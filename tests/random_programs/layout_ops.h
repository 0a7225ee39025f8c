// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/random_programs/draft.h"

/// Ops that say how values lie.
namespace meshwright::tests::draw {

/// Axes need not divide what they split.
inline void constrain(Draft& draft, Random& random)
{
    const ValueId a = draft.any(random);
    if (!draft.isManual)
        draft.keepMoved(draft.builder.constrain(a, draft.sharding(random, draft.shapeOf(a).size()), "constraint"), {a});
}

/// The last value that was made is split, and with it, most often, what made it.
inline void split(Draft& draft, Random& random)
{
    const ValueId a = draft.values().back();
    if (!draft.isManual && !draft.shapeOf(a).empty())
        draft.keepMoved(draft.builder.constrain(a, draft.splitting(random, draft.shapeOf(a)), "constraint"), {a});
}

inline void hold(Draft& draft, Random& random)
{
    const ValueId a = draft.any(random);
    const BarrierAttributes attributes{chance(random, 40), chance(random, 40)};
    draft.keepMoved(draft.builder.add(OpKind::PropagationBarrier, {a}, attributes), {a});
}

inline constexpr DrawOp kLayoutOps[] = {constrain, constrain, split, split, hold};

} // namespace meshwright::tests::draw
