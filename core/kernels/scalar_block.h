// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/tile_table.h"
#include "core/program/program.h"

#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace meshwright {

/// A block of scalar ops (the comparator of a sort, what a reduction does), ready to be run over and over. Its arithmetic is that of
/// tiles: values are in the form of their lanes, and rounded after each op where their type is narrower.
class ScalarBlock {
public:
    /// Nothing when the block does anything but element-wise ops on scalars.
    static std::optional<ScalarBlock> create(const Function& function, BlockId block);

    /// Memory for one run at a time: a slot for each value, in which the constants are already.
    std::vector<std::uint64_t> memory() const { return m_initial; }

    std::size_t resultCount() const { return m_results.size(); }

    /// An element of memory to the slot of an argument, and from that of a result; `from` and `to` are of the value's type.
    void load(std::vector<std::uint64_t>& memory, std::size_t argument, const std::byte* from) const
    {
        read(m_arguments[argument], slot(memory, argument), from);
    }
    void store(std::vector<std::uint64_t>& memory, std::size_t result, std::byte* to) const;
    /// A result becomes an argument of the same type.
    void feedBack(std::vector<std::uint64_t>& memory, std::size_t result, std::size_t argument) const
    {
        memory[argument] = memory[m_results[result].slot];
    }
    bool truth(const std::vector<std::uint64_t>& memory, std::size_t result) const
    {
        return *reinterpret_cast<const std::uint8_t*>(&memory[m_results[result].slot]) != 0;
    }

    void run(std::vector<std::uint64_t>& memory) const;

private:
    struct Step {
        TileStep step = nullptr;
        TileStep narrow = nullptr; ///< rounds the result: to its type ..
        TileStep widen = nullptr; ///< .. and back
        std::size_t out = 0;
        std::size_t operands[3] = {0, 0, 0};
    };
    struct Result {
        std::size_t slot = 0;
        DType dtype = DType::F32;
    };

    static std::byte* slot(std::vector<std::uint64_t>& memory, std::size_t index)
    {
        return reinterpret_cast<std::byte*>(&memory[index]);
    }
    static void read(DType dtype, std::byte* to, const std::byte* from)
    {
        if (isNarrow(dtype))
            tileTable().load(dtype)(to, from, nullptr, nullptr, 1);
        else
            std::memcpy(to, from, static_cast<std::size_t>(byteSize(dtype)));
    }
    bool add(const Function& function, const Op& op, std::vector<std::size_t>& slotOf);
    std::size_t newSlot();
    bool addConstant(const Op& op, std::vector<std::size_t>& slotOf);

    std::vector<DType> m_arguments; ///< in the first slots
    std::vector<Step> m_steps;
    std::vector<Result> m_results;
    std::vector<std::uint64_t> m_initial;
};

} // namespace meshwright
