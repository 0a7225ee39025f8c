// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/prove/walk.h"

#include <array>
#include <optional>

namespace meshwright {

/// From the standings of an op's operands to that of a result, or why there is none (`Site::refusal`).
using LemmaFunction = std::optional<Standing> (*)(Site&, std::size_t result);

/// The lemma of a kind: its class's (element by element, kept) or that of its row in lemmas.cpp. None: the op has blocks, or is not an op of device
/// programs.
LemmaFunction lemmaOf(OpKind kind);

/// Which index each dimension of an op's operands and results runs along, where the op computes the same for each index by itself; -1: the op
/// needs, or makes, the dimension whole.
struct Passing {
    std::vector<std::vector<int>> operands;
    std::vector<std::vector<int>> results;
};

/// Every dimension is needed whole.
Passing wholePassing(const Site& site);

/// An op that computes the same for each index by itself. `text`: what it computes.
std::optional<Standing> apart(Site& site, std::size_t result, const Passing& passing, std::string text);

/// Every device computes the op as a whole, on whole operands. The last resort for every op.
std::optional<Standing> wholeOp(Site& site, std::size_t result);

// lemmas_elements.cpp: element by element, and what has no operands
std::optional<Standing> constantLemma(Site& site, std::size_t result);
std::optional<Standing> iotaLemma(Site& site, std::size_t result);
std::optional<Standing> randomBitsLemma(Site& site, std::size_t result);
std::optional<Standing> bitGeneratorLemma(Site& site, std::size_t result);
std::optional<Standing> elementwiseLemma(Site& site, std::size_t result);
std::optional<Standing> identityLemma(Site& site, std::size_t result);

/// What a conversion makes of a value with this standing.
Standing convertedStanding(const Walk& walk, Standing standing, DType dtype);

// lemmas_shapes.cpp: other shapes, and parts at places that the program says
std::optional<Standing> broadcastLemma(Site& site, std::size_t result);
std::optional<Standing> reshapeLemma(Site& site, std::size_t result);
std::optional<Standing> transposeLemma(Site& site, std::size_t result);
std::optional<Standing> sliceLemma(Site& site, std::size_t result);
std::optional<Standing> padLemma(Site& site, std::size_t result);
std::optional<Standing> concatenateLemma(Site& site, std::size_t result);
std::optional<Standing> reverseLemma(Site& site, std::size_t result);

// lemmas_combining.cpp: products and reductions
std::optional<Standing> reduceLemma(Site& site, std::size_t result);
std::optional<Standing> dotLemma(Site& site, std::size_t result);

// lemmas_indexing.cpp: parts at places that are computed
std::optional<Standing> dynamicSliceLemma(Site& site, std::size_t result);
std::optional<Standing> dynamicUpdateLemma(Site& site, std::size_t result);
std::optional<Standing> gatherLemma(Site& site, std::size_t result);
std::optional<Standing> scatterLemma(Site& site, std::size_t result);

// lemmas_collectives.cpp
std::optional<Standing> allReduceLemma(Site& site, std::size_t result);
std::optional<Standing> allGatherLemma(Site& site, std::size_t result);
std::optional<Standing> allSliceLemma(Site& site, std::size_t result);
std::optional<Standing> reduceScatterLemma(Site& site, std::size_t result);
std::optional<Standing> allToAllLemma(Site& site, std::size_t result);
std::optional<Standing> permuteLemma(Site& site, std::size_t result);

/// Axes as a text that is the same for the same axes.
std::string axesKey(const AxisRefs& axes);

/// Every device receives from one of its group over the axes, or from none.
bool sendsWithinGroups(const Walk& walk, const CollectiveAttributes& permute, const Mesh& mesh);

// lemmas_kept.cpp: ops that are kept as they are, by their names
std::optional<Standing> keptLemma(Site& site, std::size_t result);

std::optional<Standing> attentionLemma(Site& site, std::size_t result); ///< lemmas_attention.cpp

/// A gather or scatter by other indices than the op's own. `lookedUp`: split dimensions of which each device takes the slices that it has, and
/// zeros otherwise, or leaves them out.
std::optional<Standing> gathered(Site& site, const Standing& indicesStanding, ValueId indicesValue,
    const GatherAttributes& gather, const std::vector<std::size_t>& lookedUp);
std::optional<Standing> scattered(Site& site, std::size_t result, const Standing& indicesStanding, ValueId indicesValue,
    const std::vector<std::size_t>& lookedUp);

/// How a scatter's dimensions are numbered; nothing when they cannot be followed.
std::optional<IndexingDims> numbersOfScatter(const Op& scatter);

// lemmas_compound.cpp: what several ops do together, every further standing of a result that is known.
Standings compoundStandings(const Walk& walk, const Op& op, std::size_t result);

/// lemmas_windows.cpp: the same of the first result by windows of split dimensions, and what those that were `made` are pieces of.
Standings windowStandings(const Walk& walk, const Op& op, Standings made);

std::string sliceText(std::int64_t start, std::int64_t count, std::int64_t stride);
std::string padText(std::int64_t low, std::int64_t high, std::int64_t interior);

/// pad: more room behind the last element of a dimension (lemmas_shapes.cpp).
std::optional<Standing> withMoreRoom(const Site& site);

} // namespace meshwright
