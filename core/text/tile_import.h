// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/text/report.h"
#include "core/text/syntax.h"

#include <optional>

namespace meshwright {

/// The fix for what the forms before Shardy leave unclear.
inline constexpr const char* kPrintWithShardy
    = "print the program with Shardy: jax.config.update('jax_use_shardy_partitioner', True)";

/// The fix for what is left of Shardy's dialect where JAX exported it for XLA's import (MW1364).
inline constexpr const char* kPrintAsLowered
    = "print the program as it is lowered, before it is compiled or exported: print(jax.jit(f).lower(x).as_text())";

// Shardings in XLA's tiled form (`mhlo.sharding = "{devices=[4,2]<=[8]}"`), which JAX writes without Shardy: of arguments, results and calls of
// @Sharding.

/// Gives a module without meshes the smallest mesh whose axes (axis_0, axis_1 and so on) and their parts make all its tiled shardings; in a module with
/// meshes they are on the first one of as many devices. A module whose shardings have no such mesh in common stays as it is. Problems: a warning,
/// MW1332.
void addTileMesh(SyntaxModule& module, TextProblems& problems);

/// What a tiled sharding says of an array of `rank` dimensions on that mesh; nothing when it says nothing (manual, unknown), when the module has no
/// such mesh, or with a warning (MW1332) when it is not understood.
std::optional<TensorSharding> tiledSharding(
    const SyntaxModule& module, const SyntaxAttribute& attribute, std::size_t rank, TextProblems& problems);

} // namespace meshwright
