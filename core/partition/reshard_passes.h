// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_program.h"
#include "core/reshard/reshard.h"

#include <vector>

namespace meshwright {

struct CollectiveChoices {
    ReshardStyle style = ReshardStyle::Cheapest;
    bool fuseReductions
        = false; ///< an all-reduce whose only use is resharded takes part in the choice: a reduce-scatter where that does both
    bool evenOnly
        = false; ///< where Shardy's sequence would leave pieces of different sizes on the way, the cheapest one is taken
};

/// Puts the collectives that do them in the place of all Reshards between layouts on meshes of the same axes. Values keep the types of whole
/// arrays: a collective is the identity with another sharding, as in Shardy's text, and takes the cause of its Reshard. Such a
/// function can be written and partitioned, but `verify` knows collectives on shards only. Reshards that make partial sums stay.
/// Source: openxla/shardy, shardy/dialect/sdy/transforms/export/reshard_to_collectives.cc.
Function reshardsToCollectives(
    Function function, const std::vector<NamedMesh>& meshes, const CollectiveCost& cost, const CollectiveChoices& choices = {});

/// All changes of layout of a function on whole arrays that move data, Reshards included, in program order; bytes are what one device holds of
/// the operand (of an all-gather's result) as it lies.
std::vector<CollectiveUse> collectivesOnArrays(const Function& function, const std::vector<NamedMesh>& meshes);

/// True for a Reshard by which a value becomes a partial sum (see `insertExplicitReshards`).
bool makesPartialSum(const Op& op);

} // namespace meshwright
