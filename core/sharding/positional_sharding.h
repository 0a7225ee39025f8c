// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/layout.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace meshwright {

/// The most devices that a positional sharding has: it holds a set for each of its cells, and is written device by device.
inline constexpr std::int64_t kLargestPositional = std::int64_t{1} << 16;

/// An n-dimensional array of sets of devices, as `jax.sharding.PositionalSharding`: cell (i, j) of the array of sets holds
/// tile (i, j) of the data.
///
/// It begins as a one-dimensional array with one device in each cell; every operation yields a new sharding.
/// All sets have the same size, and each device is in exactly one of them.
class PositionalSharding {
public:
    /// One device in each cell of a one-dimensional array.
    ///
    /// Problems: MW1130 no device, one twice, a negative one, or more than kLargestPositional.
    static Result<PositionalSharding> create(std::vector<DeviceId> devices);

    /// The cells in the same row-major order under another shape; one dimension may be -1, which stands for what is left.
    ///
    /// Problems: MW1131 the shape has another number of cells, or more than one -1.
    Result<PositionalSharding> reshape(Shape shape) const;

    /// The union of the sets along `axis` (negative: from the end), which stays with size 1 or, without `keepDims`, goes.
    ///
    /// Problems: MW1132 there is no such axis.
    Result<PositionalSharding> replicate(std::int64_t axis, bool keepDims = true) const;

    /// The union of all sets: every device holds everything. Without `keepDims` the sharding has rank 0.
    PositionalSharding replicateAll(bool keepDims = true) const;

    /// Dimension i of the result is dimension `axes[i]` of this. Problems: MW1132 `axes` is not a permutation of the dimensions.
    Result<PositionalSharding> transpose(std::span<const std::int64_t> axes) const;

    /// All dimensions in reverse: `.T`.
    PositionalSharding transposed() const;

    const Shape& shape() const { return m_shape; }
    /// The devices as they were given to `create`.
    const std::vector<DeviceId>& devices() const { return m_devices; }
    /// The devices of a cell (row-major), ascending. Precondition: 0 <= cell < elementCount(shape()).
    std::vector<DeviceId> devicesAt(std::int64_t cell) const;
    /// True when every device holds everything: all dimensions are 1.
    bool isFullyReplicated() const;

    /// As JAX prints it: `PositionalSharding([[{TPU 0, 1}]\n                    [{TPU 2, 3}]], shape=(2, 1))`, wrapped at 100 columns as NumPy does.
    std::string text(const std::string& platform = "TPU") const;

    friend bool operator==(const PositionalSharding&, const PositionalSharding&) = default;

private:
    PositionalSharding() = default;

    std::vector<DeviceId> m_devices;
    Shape m_shape;
    std::vector<std::vector<std::size_t>> m_cells; ///< row-major; ascending indices into m_devices
};

} // namespace meshwright
