// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/quantity.h"
#include "core/mesh/mesh.h"
#include "core/sharding/shape.h"
#include "core/support/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// An array and how it lies on the mesh.
struct ComparedArray {
    std::string name; ///< "layers.1.w"
    std::string dtype = {}; ///< "f32"; empty: not known
    std::optional<Shape> shape = {}; ///< of the whole array
    std::string spec = {}; ///< "P('data', None)"
    std::optional<std::int64_t> pieceElements = {}; ///< of one device's piece, padding included
    std::optional<std::int64_t> pieceBytes = {};
    std::vector<std::int64_t> stages = {}; ///< of a pipeline: whose devices have it; none: all devices

    friend bool operator==(const ComparedArray&, const ComparedArray&) = default;
};

struct ComparedCollective {
    std::string op; ///< "all_reduce"
    std::string axes;
    std::string phase;
    std::string value; ///< that moves: "grad.layers.0.w"
    std::string reason = {};
    std::string annotation = {}; ///< that caused it: "sharding.x"
    std::int64_t calls = 0;
    std::int64_t bytes = 0; ///< payload of all calls, per device
    std::optional<std::int64_t> stage = {}; ///< of a pipeline: that does it, or sends it; nothing: all devices do

    friend bool operator==(const ComparedCollective&, const ComparedCollective&) = default;
};

/// A number of a result that can be compared.
struct ComparedFigure {
    std::string key; ///< "step_time_s": as results name it
    std::string name; ///< "step time"
    Quantity quantity = Quantity::Plain;
    double value = 0.0;

    friend bool operator==(const ComparedFigure&, const ComparedFigure&) = default;
};

/// What of a study, a result or a program can be compared. What it does not know is absent.
struct Comparable {
    std::string kind; ///< "study", "simulation", "named shardings"
    std::string file;
    std::optional<std::vector<MeshAxis>> mesh = {};
    std::optional<std::vector<ComparedArray>> arrays = {}; ///< names are unique
    std::optional<std::vector<ComparedCollective>> collectives = {};
    std::vector<ComparedFigure> figures = {}; ///< step time, peak memory
    std::optional<bool> fits = {};
    std::string boundBy = {};
    std::optional<Problems> problems = {}; ///< of a check, or of a study
};

/// Figures that all results have, by their keys.
ComparedFigure stepTimeFigure(double seconds);
ComparedFigure peakBytesFigure(double bytes);

/// True when a text is JSON that `readComparable` is for: a result of ours, or MaxText's named shardings. A study in JSON is none.
bool isComparableResult(std::string_view text);

/// Reads a result: JSON of `simulate`, `train`, `search` (its best plan), `check`, `propagate`, `partition` or `sweep` (its best point), or MaxText's
/// `named_shardings.json`, an object of arrays with `mesh`, `partition_spec` and, where it is known, `shape`. Never crashes, whatever the text.
///
/// Problems: MW1811 nothing that can be compared, MW1812 a part is missing or has the wrong form, MW1813 a schema of a newer version.
Result<Comparable> readComparable(std::string_view text, const std::string& file);

} // namespace meshwright::sim
