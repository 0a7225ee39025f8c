// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/layout.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// A part of a reshape dimension of an iota assignment that lies within one tile dimension.
struct TilePiece {
    std::size_t tileDim = 0;
    std::size_t tileSubDim = 0; ///< among the pieces of the tile dimension, 0 is the most minor
    std::size_t reshapeDim = 0;
    std::int64_t size = 1;

    friend bool operator==(const TilePiece&, const TilePiece&) = default;
};

/// An n-dimensional array of devices: which device computes which tile. Given by a list, or by an iota: 0..n-1 reshaped to `reshape`,
/// transposed by `perm`, flattened. The iota is canonical: no dimensions of size 1, and dimensions that stay adjacent and in order
/// are one.
/// Source: openxla/xla, xla/hlo/ir/tile_assignment.h.
class TileAssignment {
public:
    /// One tile on device 0.
    TileAssignment() = default;

    /// `reshape` and `perm` may both be left out: then 0..n-1 in order.
    ///
    /// Problems: MW1151 no dims, a size below 1, more than kLargestMesh tiles, reshape with another number of elements, perm no
    /// permutation of the reshape dimensions.
    static Result<TileAssignment> iota(Shape dims, Shape reshape = {}, std::vector<std::size_t> perm = {});

    /// `devices` row-major over `dims`. Problems: MW1151 as `iota`, MW1152 another number of devices than tiles, one twice, or a negative
    /// one.
    static Result<TileAssignment> list(Shape dims, std::vector<DeviceId> devices);

    const Shape& dims() const { return m_dims; }
    std::int64_t count() const { return elementCount(m_dims); }
    bool isIota() const { return m_devices.empty(); }
    const Shape& reshape() const { return m_reshape; } ///< means nothing for a list
    const std::vector<std::size_t>& perm() const { return m_perm; }

    /// The devices, row-major over the tiles.
    std::vector<DeviceId> devices() const;

    /// The tile dimensions in another order: dimension i of the result is `order[i]` of this. Precondition: a permutation.
    TileAssignment transposed(std::span<const std::size_t> order) const;

    /// The same tiles under other dims. Precondition: as many tiles.
    TileAssignment withDims(Shape dims) const;

    /// The iota that says the same, if there is one; an iota itself.
    std::optional<TileAssignment> asIota() const;

    /// The pieces of an iota in the order of its reshape dimensions; nothing for a list that no iota says, or when a cut between tile
    /// dimensions does not divide.
    std::optional<std::vector<TilePiece>> pieces() const;

    /// The sizes of the smallest mesh (in order of the device ids) whose axes explain the assignment; nothing when there is none.
    std::optional<Shape> smallestMesh() const;

    /// `[2,4]<=[4,2]T(1,0)` or `[2,2]0,1,3,2`.
    std::string text() const;

    friend bool operator==(const TileAssignment&, const TileAssignment&) = default;

private:
    Shape m_dims = {1};
    Shape m_reshape = {1};
    std::vector<std::size_t> m_perm = {0};
    std::vector<DeviceId> m_devices; ///< empty: an iota
};

enum class TileKind : std::uint8_t { Replicated, Manual, Unreduced, Unknown, Maximal, Tiled };

/// What the devices of one of the last tile dimensions have of a tile.
enum class Subgroup : std::uint8_t { Manual, Unreduced, Replicated };

/// XLA's tiled form of a sharding (HloSharding, OpSharding, what GSPMD uses).
struct TileSharding {
    TileKind kind = TileKind::Replicated;
    TileAssignment tiles = {}; ///< of Tiled
    std::vector<Subgroup> subgroups = {}; ///< of Tiled: the last tile dimensions; the others are the dimensions of the array
    DeviceId device = 0; ///< of Maximal

    /// The number of dimensions of the array. Precondition: Tiled.
    std::size_t rank() const { return tiles.dims().size() - subgroups.size(); }

    friend bool operator==(const TileSharding&, const TileSharding&) = default;
};

/// Reads `{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}`, device lists, `last_tile_dims={manual, replicated}`, `{replicated}`,
/// `{manual}`, `{unreduced}`, `{unknown}`, `{maximal device=3}`; `metadata={..}` is skipped.
///
/// Problems, with a column: MW1150 the text is not of that form, MW1155 more subgroups than tile dimensions, MW1151, MW1152.
Result<TileSharding> parseTileSharding(std::string_view text);

/// Reads a tuple `{{replicated}, {devices=[2]0,1}}` or a single sharding. Problems: as `parseTileSharding`.
Result<std::vector<TileSharding>> parseTileShardings(std::string_view text);

/// Reads device ids as a list `0,2,1,3` or as an iota `[2,2]T(1,0)`. Problems: MW1118, MW1150, MW1151.
Result<std::vector<DeviceId>> parseDeviceIds(std::string_view text);

/// As XLA prints it.
std::string tileText(const TileSharding& sharding);
std::string tileText(std::span<const TileSharding> tuple);

/// The same in its simplest form: subgroups in the order manual, unreduced, replicated, each at most once and larger than 1; a
/// sharding with one tile for the whole array by its name.
/// Source: openxla/xla, xla/hlo/ir/hlo_sharding.cc (`Subgroup`, `PartialTile`).
TileSharding normalized(const TileSharding& sharding);

/// Whether the sharding fits an array and a number of devices (0..n-1, all of them).
/// Problems: MW1153 a device beyond the last, or one that is left out; MW1154 another rank than the array has.
Problems tileProblems(const TileSharding& sharding, const Shape& shape, std::int64_t deviceCount);

/// How the devices of a mesh with an order of its own are written.
enum class TileForm : std::uint8_t {
    List, ///< as a list, as XLA does for a mesh that was given by a list
    IotaIfPossible, ///< as an iota where one says the same
};

/// The tiled form of a sharding: tile dims are the dims, then manual, unreduced and replicated groups, of which those that are larger
/// than 1 are written; the replicated group has all axes that are left over, in mesh order. Openness and priorities are lost.
/// Preconditions: the axes of `manual` are in no other list of the sharding.
TileSharding toTiles(
    const TensorSharding& sharding, const Mesh& mesh, const AxisRefs& manual = {}, TileForm form = TileForm::List);

/// A sharding over a mesh, and the axes that are manual.
struct NamedTiles {
    TensorSharding sharding;
    AxisRefs manual;

    friend bool operator==(const NamedTiles&, const NamedTiles&) = default;
};

/// A tiled sharding in the axes of a mesh, or parts of them, for an array of `rank` dimensions. Unknown is open everywhere.
///
/// Problems: MW1154 the tiles are for another rank, MW1156 the mesh has other devices, or no parts of its axes make these tiles.
Result<NamedTiles> fromTiles(const TileSharding& sharding, std::size_t rank, const Mesh& mesh);

/// The smallest mesh that explains a tiled sharding, with axes axis_0, axis_1 and so on in order of the device ids. Where none
/// explains it, a mesh with the tile dimensions as axes and the list as its order. Replicated and the like: a mesh without axes.
Result<Mesh> meshOfTiles(const TileSharding& sharding);

} // namespace meshwright
