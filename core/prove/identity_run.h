// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/body_collective.h"
#include "core/prove/algebra.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <vector>

namespace meshwright {

/// Runs a function on elements at a random point: of a source on one lane, of a device function on one for each position of the mesh, side by side. What it
/// does not know how to compute is like nothing else (`Algebra::fresh`).
class IdentityRun {
public:
    /// `wholes` are the shapes of the whole arrays, by value; none: a source. `work` counts down; below 0 the run ends without results.
    IdentityRun(Algebra& algebra, const Function& function, const std::vector<NamedMesh>& meshes,
        const std::vector<Shape>* wholes, std::int64_t& work, std::stop_token stop)
        : m_algebra(algebra)
        , m_function(function)
        , m_meshes(meshes)
        , m_wholes(wholes)
        , m_work(work)
        , m_stop(std::move(stop))
    {
    }

    using Arrays = std::vector<Elements>; ///< by lane

    /// Of the body's arguments.
    void begin(std::vector<Arrays> arguments);

    /// Changes what an op made of a value.
    using Change = std::function<void(ValueId, Arrays&)>;

    /// Runs the ops of the body that are left, as far as the one that makes `last`.
    void goOn(std::optional<ValueId> last = {}, const Change& change = {});

    /// A value of the body, where it is made.
    const Arrays* find(ValueId value) const;

    /// In an op of the body that has been run, it was the same on all lanes which branches and turns were taken, and known when a loop ends.
    bool takesOneWay(OpId op) const { return !m_dividing.contains(op); }

    /// Where the device at a position of the first mesh is on another one.
    std::int64_t positionOn(std::int32_t mesh, std::int64_t position) const;

    bool isOver() const { return m_work < 0 || m_stop.stop_requested(); }

private:
    static constexpr std::int64_t kStepsOfOp = 64; ///< on a lane
    static constexpr std::int64_t kStepsOfElement = 4;
    static constexpr std::int64_t kStepsOfPart = 16; ///< of what is reduced

    struct Lanes {
        const Mesh* mesh = nullptr; ///< of devices, or of the manual computations around; else none
        std::vector<std::int64_t> positions; ///< on it, by lane
        std::map<ValueId, Arrays> memory;

        std::size_t count() const { return positions.size(); }
        const Arrays& operator[](ValueId value) const { return memory.at(value); }
    };

    // --- blocks and what holds them

    std::vector<Arrays> runBlock(BlockId id, Lanes& lanes, std::vector<Arrays> arguments);
    void runOp(const Op& op, Lanes& lanes);
    bool areOne(const Arrays& decisions);
    void runOnLanes(const Op& op, Lanes& lanes);
    void runRepeat(const Op& op, Lanes& lanes);
    void runWhile(const Op& op, Lanes& lanes);
    void runCase(const Op& op, Lanes& lanes);
    void runManual(const Op& op, Lanes& lanes);
    std::vector<Arrays> given(const Op& op, const Lanes& lanes, std::size_t first) const;
    Arrays freshArrays(ValueId value, std::size_t lanes);
    Residue meaningOf(BlockId block);
    Hash meaningOf(const Op& op);

    // --- collectives

    using Members = std::vector<std::size_t>; ///< lanes
    void exchange(const Op& op, Lanes& lanes);
    Arrays exchanged(const Op& op, const CollectiveAttributes& attributes, const Lanes& lanes);
    std::optional<Arrays> exchangedPieces(const Op& op, const BodyCollective& collective, const Lanes& lanes);
    Arrays permuted(
        const std::vector<std::int64_t>& sources, const AxisRefs& axes, const Mesh& mesh, ValueId operand, const Lanes& lanes);
    Elements combined(ReduceKind kind, const Arrays& arrays, const Members& members, DType dtype);

    // --- ops of one lane

    std::vector<Elements> compute(const Op& op, const Lanes& lanes, std::size_t lane);
    Elements constant(const ConstantAttributes& constant) const;
    Shape startOf(ValueId value, const Lanes& lanes, std::size_t lane) const;
    Elements elementwise(const Op& op, std::span<const Elements* const> operands);
    Elements moved(const Op& op, std::span<const Elements* const> operands);
    Elements dynamicSlice(const Op& op, std::span<const Elements* const> operands);
    Elements dynamicUpdate(const Op& op, std::span<const Elements* const> operands);
    Elements gathered(const Op& op, const GatherAttributes& gather, std::span<const Elements* const> operands);
    std::vector<Elements> scattered(
        const Op& op, const IndexingDims& dims, std::optional<ReduceKind> combiner, std::span<const Elements* const> operands);
    Elements reduced(const Op& op, std::span<const Elements* const> operands);
    Elements dot(const Op& op, std::span<const Elements* const> operands);
    Elements convolution(const Op& op, std::span<const Elements* const> operands);
    std::vector<Elements> windowReduction(const Op& op, std::span<const Elements* const> operands);
    Elements selectAndScatter(const Op& op, std::span<const Elements* const> operands);
    std::vector<Elements> alongWhole(
        const Op& op, const std::vector<std::size_t>& dims, std::span<const Elements* const> operands, const Hash& meaning);
    std::vector<Elements> kept(const Op& op, std::span<const Elements* const> operands);
    std::vector<Elements> generatedBits(
        const Op& op, std::span<const Elements* const> operands, const Lanes& lanes, std::size_t lane);

    const Shape& shape(ValueId value) const { return m_function[value].type.shape; }
    DType dtype(ValueId value) const { return m_function[value].type.dtype; }
    Elements freshElements(ValueId value);
    Residue lineAlong(const Elements& array, const Shape& shape, const std::vector<std::size_t>& dims, Shape at, Hash hash);
    Element at(std::span<const Element> elements, const Shape& index, const Shape& shape) const;

    Algebra& m_algebra;
    const Function& m_function;
    const std::vector<NamedMesh>& m_meshes;
    const std::vector<Shape>* m_wholes;
    std::int64_t& m_work;
    std::stop_token m_stop;
    Lanes m_lanes;
    std::size_t m_next = 0; ///< op of the body
    std::set<OpId> m_dividing; ///< ops of the body in which lanes part
};

} // namespace meshwright
