// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/plain_evaluator.h"

/// What PlainEvaluator does with ops that have blocks of whole arrays: loops, branches, manual computations.
namespace meshwright::tests {

inline std::vector<Array> PlainEvaluator::loop(const Op& op)
{
    std::vector<Array> state = operandsOf(op);
    const std::size_t carries = op.as<WhileAttributes>().carries;
    while (runBlock(op.bodies[0], state).front().scalar() != 0.0) {
        std::vector<Array> next = runBlock(op.bodies[1], state);
        std::move(next.begin(), next.end(), state.begin());
    }
    state.resize(carries);
    return state;
}

inline std::vector<Array> PlainEvaluator::branch(const Op& op)
{
    const bool isTruth = operandType(op, 0) == DType::Pred;
    const auto given = static_cast<std::int64_t>(operand(op, 0).scalar());
    const auto last = static_cast<std::int64_t>(op.bodies.size()) - 1;
    // The first block is the one for true; numbers out of range choose the last one.
    const std::int64_t which = isTruth ? (given != 0 ? 0 : 1) : (given < 0 || given > last ? last : given);
    std::vector<Array> arguments = operandsOf(op);
    arguments.erase(arguments.begin());
    return runBlock(op.bodies[static_cast<std::size_t>(which)], arguments);
}

/// Where the piece of a manual computation lies that one device has.
struct ManualPiece {
    ManualPiece(const TensorSharding& sharding, const std::vector<std::int32_t>& manualAxes, const Mesh& mesh,
        std::int64_t position, const Shape& whole)
        : shape(whole)
    {
        for (std::size_t dim = 0; dim < whole.size(); ++dim) {
            std::int64_t count = 1;
            std::int64_t index = 0;
            for (const AxisRef& axis : sharding.dims[dim].axes) {
                if (std::find(manualAxes.begin(), manualAxes.end(), axis.axis) == manualAxes.end())
                    continue;
                std::int64_t stride = 1; // of the mesh's positions, the last axis fastest
                for (std::size_t later = static_cast<std::size_t>(axis.axis) + 1; later < mesh.axes().size(); ++later)
                    stride *= mesh.axes()[later].size;
                const std::int64_t size = mesh.axes()[static_cast<std::size_t>(axis.axis)].size;
                index = index * size + position / stride % size;
                count *= size;
            }
            shape[dim] = whole[dim] / count;
            start.push_back(index * shape[dim]);
        }
    }

    std::vector<std::int64_t> inWhole(std::vector<std::int64_t> index) const
    {
        for (std::size_t dim = 0; dim < index.size(); ++dim)
            index[dim] += start[dim];
        return index;
    }

    Shape shape;
    Shape start;
};

/// All devices of the mesh side by side, op by op.
inline std::vector<Array> PlainEvaluator::manual(const Op& op)
{
    const auto& attributes = op.as<ComputationAttributes>();
    const auto& shardings = attributes.inShardings.empty() ? attributes.outShardings : attributes.inShardings;
    const Mesh& mesh = m_meshes[static_cast<std::size_t>(shardings.front().mesh)].mesh;
    const Block& body = m_function[op.bodies.front()];
    std::vector<std::vector<Array>> lanes(static_cast<std::size_t>(mesh.deviceCount()), m_values);
    const auto pieceOf = [&](const TensorSharding& sharding, std::size_t position, const Shape& whole) {
        return ManualPiece(sharding, attributes.manualAxes, mesh, static_cast<std::int64_t>(position), whole);
    };
    for (std::size_t position = 0; position < lanes.size(); ++position) {
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            const Array& whole = operand(op, i);
            const ManualPiece piece = pieceOf(attributes.inShardings[i], position, whole.shape);
            Array& cut = lanes[position][body.arguments[i].at()];
            cut = {piece.shape, {}};
            forEach(piece.shape,
                [&](const Index& index) { cut.data.push_back(whole.data[offset(whole.shape, piece.inWhole(index))]); });
        }
    }
    for (const OpId id : body.ops) {
        if (isBodyCollective(m_function[id])) {
            exchange(m_function[id], mesh, lanes);
            continue;
        }
        for (std::size_t position = 0; position < lanes.size(); ++position) {
            m_position = static_cast<std::int64_t>(mesh.deviceAt(static_cast<std::int64_t>(position)));
            std::swap(m_values, lanes[position]);
            runOp(m_function[id]);
            std::swap(m_values, lanes[position]);
        }
    }
    std::vector<Array> results;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
        Array& whole = results.emplace_back(emptyResult(op, i));
        for (std::size_t position = 0; position < lanes.size(); ++position) {
            const Array& made = lanes[position][body.results[i].at()];
            const ManualPiece piece = pieceOf(attributes.outShardings[i], position, whole.shape);
            std::size_t at = 0;
            forEach(
                made.shape, [&](const Index& index) { whole.data[offset(whole.shape, piece.inWhole(index))] = made.data[at++]; });
        }
    }
    return results;
}

/// A collective of a manual computation, between the devices that it lists.
inline void PlainEvaluator::exchange(const Op& op, const Mesh& mesh, std::vector<std::vector<Array>>& lanes)
{
    const BodyCollective collective = valueOf(bodyCollective(m_function, op, mesh));
    const std::size_t from = op.operands.front().at();
    const std::size_t to = op.results.front().at();
    const Shape shape = m_function[op.results.front()].type.shape;
    const auto lane = [&](std::int64_t position) -> std::vector<Array>& { return lanes[static_cast<std::size_t>(position)]; };
    if (collective.kind == OpKind::CollectivePermute) {
        for (std::size_t position = 0; position < lanes.size(); ++position) {
            const std::int64_t source = collective.sources[position];
            lanes[position][to] = source < 0 ? emptyResult(op) : lane(source)[from];
        }
        return;
    }
    for (const std::vector<std::int64_t>& group : collective.groups) {
        Array sum = lane(group.front())[from];
        for (std::size_t i = 1; i < group.size(); ++i) {
            for (std::size_t at = 0; at < sum.data.size(); ++at)
                sum.data[at] = combined(collective.reduction, sum.data[at], lane(group[i])[from].data[at]);
        }
        for (std::size_t member = 0; member < group.size(); ++member) {
            Array& made = lane(group[member])[to];
            made = {shape, {}};
            forEach(shape, [&](Index index) {
                const auto place = static_cast<std::int64_t>(member);
                switch (collective.kind) {
                case OpKind::AllReduce:
                    made.data.push_back(sum.data[offset(sum.shape, index)]);
                    return;
                case OpKind::ReduceScatter:
                    index[collective.split] += place * shape[collective.split];
                    made.data.push_back(sum.data[offset(sum.shape, index)]);
                    return;
                default: { // AllGather, AllToAll: whose part it is, and where in that member's array
                    const std::int64_t length = shape[collective.join] / static_cast<std::int64_t>(group.size());
                    const auto giver = static_cast<std::size_t>(index[collective.join] / length);
                    index[collective.join] %= length;
                    const Array& given = lane(group[giver])[from];
                    if (collective.kind == OpKind::AllToAll)
                        index[collective.split]
                            += place * given.shape[collective.split] / static_cast<std::int64_t>(group.size());
                    made.data.push_back(given.data[offset(given.shape, index)]);
                }
                }
            });
        }
    }
}

} // namespace meshwright::tests
