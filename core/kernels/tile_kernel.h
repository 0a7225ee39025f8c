// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/host_array.h"
#include "core/kernels/kernel.h"
#include "core/kernels/tile_table.h"

#include <array>
#include <cstddef>
#include <vector>

/// What a fused pass over tiles is: the compiler (tile_compiler.cpp) makes it of ops, and TileKernel runs it.
namespace meshwright::tile {

inline constexpr std::int64_t kTile = 1024; ///< elements; a handful of tiles fits the first-level cache
inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// How the elements of a result, in order, lie in a source: sizes of its dimensions and the step of each in the source. Neighbouring
/// dimensions that continue each other are one.
struct Strides {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> steps;

    bool isScalar() const
    {
        return std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 0; });
    }
    bool isLinear() const { return sizes.empty() || (sizes.size() == 1 && steps[0] == 1); }

    /// The number of elements after which the pattern repeats, where the outer dimensions only repeat it; else 0.
    std::int64_t period() const
    {
        std::int64_t inner = 1;
        for (std::size_t dim = sizes.size(); dim-- > 0;) {
            const bool restRepeats = std::all_of(
                steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(dim + 1), [](std::int64_t s) { return s == 0; });
            if (restRepeats)
                return inner;
            inner *= sizes[dim];
        }
        return 0;
    }
};

/// Something that a pass reads or writes: a value in memory, a table made with the kernel, or a temporary of one run.
struct Memory {
    enum class Kind : std::uint8_t { Value, Table, Temporary };
    Kind kind = Kind::Value;
    ValueId value; ///< Kind::Value
    HostArray table; ///< Kind::Table
    TensorType type;
    std::size_t writtenIn = kNone; ///< the stage that writes it; none: read only
};

/// A column of the tile: one register of the tile machine, or a stretch of memory that moves along with the tile.
struct Slot {
    std::int64_t width = 4; ///< bytes of an element
    std::size_t memory = kNone; ///< the memory that it is a window on; none: a register
    std::int64_t offset = 0; ///< of the register in the register file
    std::size_t lastRead = 0; ///< the step that reads it last
};

struct Step {
    TileStep function = nullptr;
    std::size_t out = 0;
    std::array<std::size_t, 3> in{kNone, kNone, kNone};
};

/// Fills a register from a source that does not lie linearly.
struct Gather {
    std::size_t slot = 0;
    std::size_t memory = 0;
    Strides strides;
    bool once = false; ///< the pattern is the same in every tile
    bool direct = false; ///< every tile lies in one stretch of the source: the slot is a window on it
};

struct Output {
    std::size_t slot = 0; ///< the register, or with `memory` direct the window
    std::size_t memory = 0;
    std::size_t step = kNone; ///< that computes it; none: a copy
    TileStep store = nullptr; ///< for narrow types
};

/// All ops of one shape that need each other element by element.
struct TileStage {
    Shape shape;
    std::int64_t elements = 0;
    std::int64_t tile = kTile;
    std::int64_t runLength = 0; ///< tiles do not cross multiples of this; 0: no bound
    std::vector<Slot> slots;
    std::vector<Gather> gathers;
    std::vector<Step> loads; ///< widen narrow inputs, at the start of a tile
    std::vector<Step> steps;
    std::vector<Output> outputs;
    std::vector<std::size_t> inputs; ///< slots that are windows on memory read linearly
    std::int64_t registerBytes = 0;
};

/// The elements that a run of a stage computes, and the memory, if any, of which only these are there.
struct Stretch {
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::size_t windowed = kNone;
};

class TileKernel final : public Kernel {
public:
    void run(Addresses addresses, Scratch& scratch, const StopFlag& stop) const override;

    std::vector<Memory> memories;
    std::vector<TileStage> stages;

    /// Where each memory lies.
    std::vector<std::byte*> places(Addresses addresses, Scratch& scratch) const;
    void runStage(const TileStage& stage, std::size_t index, std::span<std::byte* const> at, Scratch& scratch,
        const StopFlag& stop, const Stretch& stretch) const;
};

} // namespace meshwright::tile
