// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/partition.h"
#include "core/study/arrays.h"
#include "core/support/result.h"

#include <utility>
#include <vector>

namespace meshwright {

/// A function whose layouts are looked at for waste: propagated, and as one device runs it.
struct LintedFunction {
    const Function& propagated; ///< every value has a sharding
    const DeviceFunction& device;
    const std::vector<NamedMesh>& meshes; ///< not empty
};

/// What fixes a lint in the program that was propagated, without a decision of its author: constraints that go (by their number in program
/// order), and layouts of constraints, arguments and results.
struct ProgramEdit {
    std::vector<std::size_t> constraints;
    std::vector<std::pair<std::size_t, TensorSharding>> layouts; ///< of constraints, by their number
    std::vector<std::pair<std::size_t, TensorSharding>> arguments;
    std::vector<std::pair<std::size_t, TensorSharding>> results;

    bool empty() const { return constraints.empty() && layouts.empty() && arguments.empty() && results.empty(); }
};

struct Lint {
    Problem problem;
    std::vector<ProgramEdit> edits; ///< each may fix it: the first that does is taken
    std::string noEdit = {}; ///< why nothing is known that fixes it
};

/// What is allowed but surely not meant. All are warnings (notes, where little is lost), with the bytes or FLOPs that are lost in the rule.
/// `place.path` is the value, or where the user wrote the layout.
///
/// Problems: MW1270 a mesh axis that nothing uses, MW1271 products that devices compute alike, MW1272 a constraint that gathers what the next op
/// shards again, MW1273 an array whose layout changes from step to step, MW1274 an optimiser state that is pinned whole beside its sharded
/// parameter, MW1275 a large parameter whole on every device beside sharded ones, MW1276 an array gathered only to be reduced (logits),
/// MW1277 a batch that is whole on every device while all parameters are split over all of them, where that moves more, MW1278 an array gathered
/// for a reshape, MW1279 loops of which the program does not say how many turns they take, MW1280 arrays
/// split along the dimension that a loop takes slices of; and DeviceFunction::warnings.
Problems lintFunction(const LintedFunction& linted);

/// The same, with what fixes each.
std::vector<Lint> lintsOf(const LintedFunction& linted);

/// The same for one step of a study that has these arrays, with places in the study and, where a setting fixes it, `fixSettings`.
Problems lintStudy(const Study& study, const StudyArrays& arrays, const LintedFunction& step);

/// Loops of which a program does not say how many turns they take: one is counted.
std::size_t openLoops(const Function& function);

} // namespace meshwright
