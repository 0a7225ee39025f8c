// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/sweep/sweep_plan.h"

#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// A sweep that is written down:
///
///     sweep: 1
///     study: wide_mlp.yaml                  # relative to this file
///     set: {dtype.matmul: bf16}             # settings of all points
///     vary:
///       mesh: data*model=64                 # as --vary takes them, or a list
///       batch: [1k, 4k]
struct SweepFile {
    std::string study; ///< as written
    std::vector<std::string> settings; ///< `path=value`
    std::vector<SweepParameter> parameters; ///< in file order

    friend bool operator==(const SweepFile&, const SweepFile&) = default;
};

/// True when a text is meant to be a sweep: a document with the key `sweep`.
bool isSweepFile(std::string_view text);

/// Reads a sweep file; `fileName` is what problems name. Never crashes or hangs, whatever the text.
///
/// Problems: those of `parseDocument`; MW1779 a key that is missing, unknown or of the wrong kind, MW1780 a version that this program does not know;
/// MW1776, MW1777 of values, MW1778 something is varied twice.
Result<SweepFile> readSweepFile(std::string_view text, const std::string& fileName);

} // namespace meshwright::sim
