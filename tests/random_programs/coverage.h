// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/partition.h"
#include "core/program/body_collective.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>
#include <sstream>
#include <string>

/// How often random programs had each op, and with which of its dimensions split.
namespace meshwright::tests {

class Coverage {
public:
    static constexpr std::size_t kDims = 4;

    struct Counts {
        std::int64_t programs = 0; ///< that have the op
        std::array<std::int64_t, kDims>
            has{}; ///< in which an operand or a result of it has this dimension, of more than one element
        std::array<std::int64_t, kDims> split{}; ///< in which that is split
    };

    /// As lines that `add` reads. Ops of the drawn program that others stand for in the propagated one, such as batch norms, count without
    /// dimensions. `whole`: how many of the ops every device computes whole.
    static std::string textOf(const Function& drawn, const Function& propagated, std::size_t whole)
    {
        std::map<std::string, std::array<int, kDims>> found;
        std::size_t ops = 0;
        const std::set<BlockId> manual = manualBlocks(propagated);
        forEachOp(propagated, [&](OpId id) {
            const Op& op = propagated[id];
            ++ops;
            auto& dims = found[std::string(opName(op))];
            if (manual.contains(op.block) || isBodyCollective(op)) // dimensions there are those of pieces
                return;
            for (const auto* values : {&op.operands, &op.results}) {
                for (const ValueId value : *values) {
                    const Value& of = propagated[value];
                    for (std::size_t dim = 0; dim < std::min(kDims, of.type.shape.size()); ++dim) {
                        if (of.type.shape[dim] > 1)
                            dims[dim] |= of.sharding && shardCount(of.sharding->dims[dim].axes) > 1 ? 3 : 1;
                    }
                }
            }
        });
        forEachOp(drawn, [&](OpId id) { found.try_emplace(std::string(opName(drawn[id]))); });
        std::string text = fmt::format("{} {}", ops, whole);
        for (const auto& [name, dims] : found)
            text += fmt::format(" {} {} {} {} {}", name, dims[0], dims[1], dims[2], dims[3]);
        return text;
    }

    void add(const std::string& text)
    {
        std::istringstream in(text);
        std::size_t ops = 0;
        std::size_t whole = 0;
        in >> ops >> whole;
        m_lengths.push_back(ops);
        m_ops += ops;
        m_whole += whole;
        std::string name;
        while (in >> name) {
            Counts& counts = m_counts[name];
            ++counts.programs;
            for (std::size_t dim = 0; dim < kDims; ++dim) {
                int bits = 0;
                in >> bits;
                counts.has[dim] += bits & 1;
                counts.split[dim] += bits >> 1;
            }
        }
    }

    std::size_t medianLength()
    {
        if (m_lengths.empty())
            return 0;
        std::sort(m_lengths.begin(), m_lengths.end());
        return m_lengths[m_lengths.size() / 2];
    }

    const std::map<std::string, Counts>& counts() const { return m_counts; }

    /// Of all ops, those that every device computes whole though their operands are split.
    double wholeShare() const { return m_ops == 0 ? 0.0 : static_cast<double>(m_whole) / static_cast<double>(m_ops); }

    std::string table() const
    {
        std::string text
            = fmt::format("{:<28} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "op", "programs", "dim 0", "dim 1", "dim 2", "dim 3");
        for (const auto& [name, counts] : m_counts) {
            text += fmt::format("{:<28} {:>9}", name, counts.programs);
            for (std::size_t dim = 0; dim < kDims; ++dim)
                text += counts.has[dim] == 0 ? fmt::format(" {:>9}", "-") : fmt::format(" {:>9}", counts.split[dim]);
            text += "\n";
        }
        return text;
    }

private:
    /// The blocks inside of manual computations.
    static std::set<BlockId> manualBlocks(const Function& function)
    {
        std::set<BlockId> blocks;
        const auto isInside
            = [&](const Op& op) { return (op.kind == OpKind::Computation && isManual(op)) || blocks.contains(op.block); };
        for (bool grows = true; grows;) { // blocks in blocks
            const std::size_t before = blocks.size();
            forEachOp(function, [&](OpId id) {
                if (isInside(function[id]))
                    blocks.insert(function[id].bodies.begin(), function[id].bodies.end());
            });
            grows = before != blocks.size();
        }
        return blocks;
    }

    std::map<std::string, Counts> m_counts;
    std::vector<std::size_t> m_lengths;
    std::size_t m_ops = 0;
    std::size_t m_whole = 0;
};

} // namespace meshwright::tests
