// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/random_programs/program_generator.h"

/// Ops that say how values lie.
namespace meshwright::tests::draw {

/// Axes need not divide what they split.
inline void constrain(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    generator.keepMoved(
        generator.builder.constrain(a, generator.sharding(random, generator.shapeOf(a).size()), "constraint"), {a});
}

/// The last value that was made is split, and with it, most often, what made it.
inline void split(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.values().back();
    if (!generator.shapeOf(a).empty())
        generator.keepMoved(generator.builder.constrain(a, generator.splitting(random, generator.shapeOf(a)), "constraint"), {a});
}

inline void hold(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    const BarrierAttributes attributes{chance(random, 40), chance(random, 40)};
    generator.keepMoved(generator.builder.add(OpKind::PropagationBarrier, {a}, attributes), {a});
}

inline constexpr DrawOp kLayoutOps[] = {constrain, constrain, split, split, hold};

} // namespace meshwright::tests::draw
