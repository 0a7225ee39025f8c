// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/text.h"
#include "sim/collective/collective.h"
#include "sim/collective/torus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>
#include <vector>

/// The parts of `estimateCollective`, a source for each kind of links; not for others.
namespace meshwright::sim {

std::vector<TorusAxis> torusAxes(const std::vector<GroupAxis>& axes);

/// One way to run a collective.
struct CollectiveCandidate {
    double seconds = 0.0;
    double wireShare = 0.0; ///< wire bytes of a device, as a share of the payload
    std::string algorithm;
    std::string formula;
    ChosenAlgorithm chosen = {};
};

/// The ways to run one collective on the links of its group, and the quickest of them. Preconditions: those of `estimateCollective`.
class CollectiveEstimator {
public:
    CollectiveEstimator(const CollectiveRequest& request, bool texts)
        : m_kind(request.kind)
        , m_pattern(request.pattern)
        , m_wanted(request.algorithm)
        , m_texts(texts)
        , m_payload(request.payloadBytes)
        , m_bytes(static_cast<double>(request.payloadBytes))
    {
        assert(request.payloadBytes >= 0);
        for (const GroupAxis& axis : request.axes) {
            assert(axis.size >= 1);
            if (axis.size == 1)
                continue;
            assert(axis.link.bytesPerSecond > 0.0 && axis.link.latencySeconds >= 0.0);
            m_devices *= axis.size;
            if (axis.kind == GroupKind::Torus) {
                m_axes.push_back(axis);
                continue;
            }
            // The parts of a switch are all alike: a device reaches each as well as any other.
            GroupAxis& tier = axis.kind == GroupKind::Network ? m_network : m_inner;
            const std::int64_t size = tier.size * axis.size;
            tier = axis;
            tier.size = size;
        }
        assert(m_axes.empty() || m_inner.size == 1);
        const auto possible = algorithms();
        if (std::ranges::find(possible, m_wanted) == possible.end())
            m_wanted = CollectiveAlgorithm::Automatic;
    }

    CollectiveEstimate run();
    std::vector<CollectiveAlgorithm> algorithms() const;

private:
    bool gathers() const { return m_kind == CollectiveKind::AllGather || m_kind == CollectiveKind::ReduceScatter; }
    bool wants(CollectiveAlgorithm algorithm) const { return m_wanted == algorithm; }
    bool admits(CollectiveAlgorithm algorithm) const { return wants(CollectiveAlgorithm::Automatic) || wants(algorithm); }
    double othersShare() const { return static_cast<double>(m_devices - 1) / static_cast<double>(m_devices); }
    bool onePartAnAxis() const;

    // Texts are made only where they are asked for: planners ask for seconds.
    template <typename... Args>
    std::string say(fmt::format_string<Args...> text, Args&&... args) const
    {
        return m_texts ? fmt::format(text, std::forward<Args>(args)...) : std::string();
    }
    std::string bytesText(double bytes) const { return m_texts ? formatBytes(bytes) : std::string(); }
    std::string payloadText() const { return say("B={}", bytesText(m_bytes)); }
    std::string linkText(const LinkSpec& link) const
    {
        return m_texts ? fmt::format("w={:.4g} GB/s, alpha={}", link.bytesPerSecond / 1e9, formatSeconds(link.latencySeconds))
                       : std::string();
    }

    CollectiveCandidate torus() const;
    CollectiveCandidate torusGather(double bytes) const;
    CollectiveCandidate torusPermute() const;
    std::string torusInputs(const std::vector<GroupAxis>& axes) const;
    double torusBound(const std::vector<GroupAxis>& axes, std::int64_t devices) const;

    CollectiveCandidate star(const GroupAxis& axis) const;
    CollectiveCandidate switchAllReduce(const GroupAxis& axis, double bytes) const;
    CollectiveCandidate switchGather(const GroupAxis& axis, double bytes) const;
    CollectiveCandidate fullMesh(const GroupAxis& axis) const;
    CollectiveCandidate hosts() const;
    CollectiveCandidate innerGather() const;
    double networkAllToAllSeconds(double bytes) const;
    double starBound(const GroupAxis* network, const GroupAxis* inner) const;
    double slicesBound() const;

    CollectiveKind m_kind;
    PermutePattern m_pattern;
    CollectiveAlgorithm m_wanted;
    bool m_texts;
    std::int64_t m_payload;
    double m_bytes;
    std::int64_t m_devices = 1;
    std::vector<GroupAxis> m_axes; ///< torus
    GroupAxis m_inner; ///< switch, full mesh or scattered
    GroupAxis m_network;
};

} // namespace meshwright::sim
