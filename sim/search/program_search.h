// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"
#include "sim/cost/device_cost.h"
#include "sim/hardware/machine.h"
#include "sim/search/search.h"

#include <string>

namespace meshwright::sim {

/// A program whose layouts are looked for.
struct ProgramWork {
    std::string name;
    Program program; ///< its own meshes and shardings do not count
    std::string function; ///< the one that runs
    CostOptions cost; ///< by which its kernels are timed
};

/// Meshes and the layouts of every array and op of a program, the quickest first, one for each mesh.
///
/// Outside, all meshes: the devices as a product of one, two or (in programs of up to kOpsOnThreeAxes ops) three axes in every order, placed on the machine as
/// `placeMesh` does; so an axis lies on other links as its place among the axes changes, and collectives take what those links give. Inside, a strategy for every op (op_graph.h) by
/// variable elimination with labels of time and memory (elimination.h), where that is too wide by mini-buckets (wide_elimination.h); then the gap is not 0, and is told.
/// Each plan carries its program. With a test what the strategies add up to only says what is worth simulating, as in `searchMlp`.
///
/// Precondition: the program has the function.
/// Problems: MW1782 the program is written for one mesh; MW1709 the chip has no figures for the cost of products.
Result<SearchResult> searchProgram(
    const ProgramWork& work, const Machine& machine, const SearchOptions& options, const PlanTest& test = {});

/// Whether `searchProgram` takes it. Problems: as there.
Result<Done> checkSearchable(const ProgramWork& work, const Machine& machine);

inline constexpr std::size_t kOpsOnThreeAxes = 40;

/// All ways to write a number as a product of `most` factors above 1 or fewer, in every order; the number 1 as one factor.
std::vector<std::vector<std::int64_t>> orderedFactors(std::int64_t number, std::size_t most);

} // namespace meshwright::sim
