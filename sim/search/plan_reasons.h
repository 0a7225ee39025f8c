// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/search.h"
#include "sim/search/transformer_space.h"

#include <string>
#include <vector>

namespace meshwright::sim {

/// `fsdp=32 tensor=2`.
std::string meshText(const std::vector<MeshAxis>& mesh);

/// Seconds of a step by what they are spent on, in a fixed order; the parts add up to the step.
std::vector<NamedShare> timeShares(const StepEstimate& step, const Candidate& candidate);

/// Bytes of the device that needs most, likewise.
std::vector<NamedShare> memoryShares(const StageMemory& memory);

/// The part that takes the most.
std::string largestShare(const std::vector<NamedShare>& shares);

/// "compute 71 %, pipeline bubble 12 %, all-reduce over tensor 9 %": the largest parts, of those above 2 %.
std::string largestShares(const std::vector<NamedShare>& shares);

/// Where the groups of a mesh axis lie as `placeMesh` puts the mesh on the machine's links: "tensor=8 stays inside a host", "fsdp=128 spans 16 hosts". A
/// sentence for each axis above 1. Where the links are not known, the axes are taken to lie in their order, host by host.
std::vector<std::string> placeSentences(const Candidate& candidate, const Cluster& cluster, const SearchMachine& machine);

/// What made a part of a simulated step grow from one layout to another: "tensor=16 crosses the host". Empty: not known.
std::string causeOf(const StepPart& part, const Candidate& candidate, const Candidate& best, const TransformerSpace& space,
    const Cluster& cluster);

/// Why no layout is legal with these choices, a sentence for each that cannot be on the machine or in the model: "expert=64 is more than the 32 devices
/// of 32 H100 SXM 80GB". Empty where each of them, and the mesh of all, can be; never without choices.
std::vector<std::string> whyNoLayout(const SearchWork& work, const SearchMachine& machine, const std::vector<FixedChoice>& fixed);

} // namespace meshwright::sim
