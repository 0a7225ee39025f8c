// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace meshwright::python {

// What a propagated function does that costs and need not be.

/// Axes, with their sizes, along which all devices compute the same products although an argument is split over them: it is gathered first.
std::vector<std::pair<std::string, std::int64_t>> repeatedAxes(const Function& function, const std::vector<NamedMesh>& meshes);

/// A dimension of an argument or a result, and a mesh axis.
struct DimOverAxis {
    std::size_t index = 0; ///< of the argument or result
    std::size_t dim = 0;
    std::string axis;
    friend bool operator==(const DimOverAxis&, const DimOverAxis&) = default;
};

/// Results that are asked for whole along a dimension over which an axis splits the value that is returned: they are gathered.
std::vector<DimOverAxis> gatheredResults(const Function& function, const std::vector<NamedMesh>& meshes);

/// Arguments that are whole along a dimension which a product contracts with a dimension that an axis splits: each device takes its part of them.
std::vector<DimOverAxis> argumentsTakenApart(const Function& function, const std::vector<NamedMesh>& meshes);

/// Values that a constraint gathers over an axis, and that a product takes apart over the same axis: their names, and the axis.
std::vector<std::pair<std::string, std::string>> gatheredAndTakenApart(
    const Function& function, const std::vector<NamedMesh>& meshes);

} // namespace meshwright::python
