// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/program/type.h"
#include "core/reshard/reshard.h"
#include "core/sharding/tensor_sharding.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// An array's layout on a mesh before and after, as a message tells it.
struct LayoutPair {
    Mesh mesh;
    bool meshInvented = false; ///< the message names no axes: they are x, y, z and so on
    TensorSharding from;
    TensorSharding to;
};

/// The layouts of two tile strings of one array, on the given mesh if it has these tiles, else on the smallest that has both. Nothing when the
/// strings are not tilings of arrays of one rank, or no mesh of at most kMostPlannedDevices has both.
std::optional<LayoutPair> layoutsOfTiles(std::string_view from, std::string_view to, const std::optional<Mesh>& mesh);
inline constexpr std::int64_t kMostPlannedDevices = std::int64_t{1} << 14;

/// The way from one layout to another.
struct LayoutChange {
    LayoutPair layouts;
    TensorType type; ///< of the array; with `typeKnown` false one that every layout divides
    bool typeKnown = false;
    ReshardPlan cheapest;
    ReshardPlan gather; ///< everything to every device first
};

/// Nothing when the layouts do not divide the array evenly, which the planner needs.
std::optional<LayoutChange> planChange(const LayoutPair& layouts, const std::optional<TensorType>& type);

/// The bytes that the steps of a plan move per device.
std::int64_t movedBytes(const ReshardPlan& plan);
std::int64_t movedBytes(const ReshardStep& step);

/// Bytes with a unit, or where the array is not known the part of it: "1/8 of the array".
std::string amountText(std::int64_t bytes, const LayoutChange& change);

/// `P('y', None, 'x')` with an entry for every dimension; Shardy's text where a spec cannot say it.
std::string fullLayoutText(const TensorSharding& sharding, const Mesh& mesh);

/// `P('y', None, 'x')` for JAX's code; nothing where a spec cannot say it.
std::optional<std::string> specCode(const TensorSharding& sharding, const Mesh& mesh);

/// A drawing with box characters that is at most `width` columns wide (or one cell); lines end with newlines.
std::string pictureOf(
    const Shape& shape, const TensorSharding& sharding, const Mesh& mesh, const std::string& platform, std::size_t width);

/// Two texts side by side, the second from column `column` on.
std::string sideBySide(const std::string& left, const std::string& right, std::size_t column);

} // namespace meshwright
