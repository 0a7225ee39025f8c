// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// A value of the source program, or one that an op would make of such values (see `GlobalValues`).
using GlobalId = std::int32_t;
inline constexpr GlobalId kNoGlobal = -1;

/// Elements of a device's dimension that are consecutive elements of a global dimension.
struct Run {
    std::int64_t at = 0; ///< the first one, in the device's dimension
    std::int64_t length = 0;
    std::int64_t start = 0; ///< the first one, in the global dimension
    friend bool operator==(const Run&, const Run&) = default;
};

/// The elements of one dimension that the devices have, for each piece number along its axes; all others are undefined, or the fill.
using Window = std::vector<std::vector<Run>>;

/// What the elements of one local dimension are.
struct StandingDim {
    int from = -1; ///< the global dimension; -1: the elements along this dimension are copies
    AxisRefs axes; ///< whose piece number gives the place of the piece, major to minor, canonical; means nothing for copies
    GlobalId fill = kNoGlobal; ///< the scalar behind the last global element (outside of the window); kNoGlobal: undefined
    std::shared_ptr<const Window> window = nullptr; ///< none: piece k begins at k times the local size
    friend bool operator==(const StandingDim& a, const StandingDim& b)
    {
        const bool sameWindow = (a.window == b.window) || (a.window && b.window && *a.window == *b.window);
        return a.from == b.from && a.axes == b.axes && a.fill == b.fill && sameWindow;
    }
};

/// How a device's value stands to a global one. On each device, the element at local indices i is the global element whose index along
/// dimension `from` is (piece number) * (local size) + i. Global dimensions of size 1 may have no local dimension. With partial axes, this holds of the
/// reduction over all devices that differ along these axes only, and neither the place nor the global value depends on them.
///
/// Example: f32[8,12] as P('x', ('y','z')) on x=2, y=3, z=2 has dims {0, [x]}, {1, [y, z]}: element (i, j) of the device at (x, y, z) is the global
/// element (4x + i, 2(2y + z) + j).
struct Standing {
    GlobalId global = kNoGlobal;
    std::vector<StandingDim> dims;
    AxisRefs partial; ///< in mesh order, canonical
    ReduceKind kind = ReduceKind::Sum; ///< means nothing while partial is empty
    std::int32_t mesh = 0; ///< of the axes; means nothing without any

    bool isWhole() const { return partial.empty(); }
    bool isUniform() const; ///< every element on every device is the same scalar
    friend bool operator==(const Standing& a, const Standing& b)
    {
        return a.global == b.global && a.dims == b.dims && a.partial == b.partial && a.mesh == b.mesh
            && (a.partial.empty() || a.kind == b.kind);
    }
};
using Standings = std::vector<Standing>;

/// Without axes of size 1; neighbours that continue each other merged.
AxisRefs canonical(const AxisRefs& axes);

/// Canonical and in mesh order.
AxisRefs canonicalSet(AxisRefs axes);

/// True when no axis of one has a part in common with an axis of the other, so that a place along the ones says nothing of the others.
bool disjoint(const AxisRefs& a, const AxisRefs& b);

/// All axes that the places of a standing depend on.
AxisRefs placeAxes(const Standing& standing);

/// It says something of places or of partial results, and `mesh` of which mesh.
bool hasMesh(const Standing& standing);

/// The mesh of all that have one, else the first one; nothing where two differ.
std::optional<std::int32_t> commonMesh(const std::vector<const Standing*>& standings);

/// `axes` without the minor end `removed`; nothing when they do not end so.
std::optional<AxisRefs> withoutEnd(const AxisRefs& axes, const AxisRefs& removed);

/// `axes` without the major end `first`; nothing when they do not begin so.
std::optional<AxisRefs> withoutStart(const AxisRefs& axes, const AxisRefs& first);

/// `axes` and then `more`.
AxisRefs followedBy(AxisRefs axes, const AxisRefs& more);

/// `all` without all of `removed`, both as sets; nothing when `removed` has a part that `all` lacks.
std::optional<AxisRefs> setWithout(const AxisRefs& all, const AxisRefs& removed);

/// After some elements have become `filler` along all other dimensions too: what else lies behind ends does not lie there.
void keepOnlyFill(Standing& standing, GlobalId filler);

/// Combining a value with itself gives the value: max, min, and, or.
bool isIdempotent(ReduceKind kind);

} // namespace meshwright
