// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/prove/walk.h"

#include <memory>
#include <vector>

namespace meshwright {

/// A loop or branch of the source: what its operands, the arguments and results of its blocks, and its own results are.
struct Control {
    const Op* op = nullptr;
    std::vector<Standing> operands;
    std::vector<std::vector<Standing>> arguments; ///< of each block
    std::vector<std::vector<Standing>> yields; ///< of each block
    std::vector<Standing> results;
    std::vector<std::vector<std::shared_ptr<Control>>> inside; ///< of each block, in program order
};
using Controls = std::vector<std::shared_ptr<Control>>;

/// At the border of a manual computation, a value whose dimensions are split by axes that begin in one way is another one whose axes begin in
/// another way and go on the same: the pieces of an array are the arrays of its body, and the other way round.
struct Border {
    Standing from;
    TensorSharding begin;
    Standing to;
    TensorSharding beginAfter;
};

/// Numbers the values of the source program.
struct SourceWalk {
    SourceWalk(GlobalValues& globals, const Function& function, const std::vector<NamedMesh>& meshes)
        : walk(globals, function, meshes, nullptr)
    {
    }

    void run();

    const Standing& operator[](ValueId value) const { return walk.standings[value.at()].front(); }

    Walk walk;
    Controls controls; ///< of the body, in program order; those inside of computations too
    std::unordered_map<GlobalId, std::vector<Border>> borders; ///< by what comes to them
    std::vector<std::string> faults; ///< of the source itself

private:
    void walkBlock(BlockId block, Controls& inside);
    /// The record of a loop or branch, with its operands and room for its blocks, at the end of `inside`.
    std::shared_ptr<Control> begin(const Op& op, Controls& inside) const;
    void walkRepeat(const Op& op, Controls& inside);
    void walkWhile(const Op& op, Controls& inside);
    void walkCase(const Op& op, Controls& inside);
    void walkComputation(const Op& op, Controls& inside);
    void walkOther(const Op& op);
    void define(ValueId value, Standing standing) { walk.standings[value.at()] = {std::move(standing)}; }
    Standing fresh(ValueId value, std::string_view what, std::uint64_t varies);
    std::uint64_t variesIn(const Op& op) const;
    std::uint64_t variesBy(const Op& op) const;
    std::vector<Standing> standingsOf(const std::vector<ValueId>& values) const;

    std::optional<std::uint64_t>
        m_manual; ///< the axes of the manual computations around an op, as `GlobalValue::varies`; none: it is in none
};

/// Drops axes from the minor end of every dimension that they do not divide.
TensorSharding withoutUneven(TensorSharding layout, const Shape& shape);

} // namespace meshwright
