// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/prove/prove.h"
#include "core/prove/walk.h"

namespace meshwright {

/// Says where a proof ends, of what the walks of both functions have found.
class Obstacles {
public:
    Obstacles(const Walk& source, const Walk& device)
        : m_source(source)
        , m_device(device)
    {
    }

    /// A value of the device function stands to a value of the source function.
    bool standsInSource(ValueId value) const;

    /// Why an op has no standing; the first reason counts. `inside`: what is in the way in one of its blocks.
    void note(OpId op, const std::string& reason) { m_reasons.emplace(op.at(), reason); }
    void noteInside(OpId op, ProofObstacle inside) { m_inside.emplace(op.at(), std::move(inside)); }
    bool isNoted(OpId op) const { return m_reasons.contains(op.at()); }

    /// What has been noted of an op.
    ProofObstacle noted(OpId op) const;

    /// The first op on the way to a value that stands to nothing, or to nothing that the source has; else the one that makes the value, which is
    /// another one than `wanted`, or lies otherwise than `layout` says. `what` the value is: "result 0".
    ProofObstacle before(ValueId value, const std::string& what, const Standing& wanted, const TensorSharding* layout) const;

    /// At an op.
    ProofObstacle at(OpId op, std::string reason) const;

private:
    bool isGivenRightly(ValueId operand) const;
    std::string sourceName(GlobalId global) const;
    std::string pieces(ValueId value, const Standing& standing) const;
    std::string dimText(const StandingDim& along, std::int64_t local, const Mesh& mesh) const;
    ProofValue described(ValueId value) const;
    std::vector<OpId> opsBefore(OpId op, std::vector<ValueId>& leaves) const;
    Function deviceCut(OpId op, std::vector<ValueId>& leaves) const;
    Function sourceCut(OpId op, const std::vector<ValueId>& leaves, GlobalId wanted) const;

    const Walk& m_source;
    const Walk& m_device;
    std::map<std::size_t, std::string> m_reasons; ///< by op
    std::map<std::size_t, ProofObstacle> m_inside;
};

} // namespace meshwright
