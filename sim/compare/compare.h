// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/compare/comparable.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

/// Two versions of one thing; what only one side has is new or gone.
template <typename T>
struct Change {
    std::optional<T> before;
    std::optional<T> after;

    bool isNew() const { return !before; }
    bool isGone() const { return !after; }
    const T& either() const { return after ? *after : *before; }

    friend bool operator==(const Change&, const Change&) = default;
};

/// A figure that both sides have.
struct FigureChange {
    ComparedFigure before;
    ComparedFigure after;

    bool changed() const { return before.value != after.value; }
    /// `after / before - 1`; infinite when before is 0 and after is not.
    double relative() const;
};

/// What differs. A part that one side does not know is not compared: its list is empty, and `compares...` false.
struct Comparison {
    std::string beforeKind;
    std::string beforeFile;
    std::string afterKind;
    std::string afterFile;
    std::optional<Change<std::vector<MeshAxis>>> mesh; ///< present when it differs
    bool comparesMesh = false;
    std::vector<FigureChange> figures; ///< all that both sides have, changed or not
    std::vector<Change<ComparedArray>> arrays; ///< that differ, by name
    bool comparesArrays = false;
    std::int64_t sameArrays = 0;
    std::vector<Change<ComparedCollective>> collectives; ///< that differ in calls, bytes or axes: by phase, op, value and axes
    bool comparesCollectives = false;
    std::int64_t sameCollectives = 0;
    std::optional<Change<bool>> fits; ///< present when it differs
    bool comparesFits = false;
    std::optional<Change<std::string>> boundBy; ///< present when it differs
    std::vector<Change<Problem>> problems; ///< new and gone
    bool comparesProblems = false;
    std::string sentence; ///< why the step time differs, where both sides were simulated here (see explainStepChange)

    /// True when nothing differs.
    bool same() const;

    /// Payload bytes a device of all collectives, on each side; absent unless collectives are compared.
    std::optional<FigureChange> collectiveBytes;
    /// Bytes (or, where types are not known, elements) a device of all arrays that both sides know.
    std::optional<FigureChange> arrayBytes;
};

/// Compares two things, whatever they are. Collectives are the same as `explainStepChange` takes them to be: by op, axes, phase and value; what is left
/// with the same op, phase and value has changed its axes. Specs are compared without whole dimensions at their ends. The order of the results
/// depends on names only.
Comparison compare(const Comparable& before, const Comparable& after);

/// True when an array that both sides have lies otherwise, whatever its size.
bool hasOtherSpec(const Change<ComparedArray>& change);

/// What changed of an array, in words: "P('data') -> P()", "32.0 KiB -> 128 KiB a device"; of a new or gone one what it is.
std::string changeText(const Change<ComparedArray>& change);

/// "all_gather of layers.1.w over data, forward".
std::string collectiveText(const ComparedCollective& use);
/// "1 x 128 KiB -> 2 x 128 KiB", "over data instead of model".
std::string changeText(const Change<ComparedCollective>& change);

/// "92.9 µs -> 88.1 µs (-5.2 %)".
std::string changeText(const FigureChange& change);

/// "data=4,model=2"; "one device" without axes.
std::string axesText(const std::vector<MeshAxis>& mesh);

} // namespace meshwright::sim
