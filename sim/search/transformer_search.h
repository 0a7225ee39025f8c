// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/transformer.h"
#include "core/study/study.h"
#include "sim/search/search.h"
#include "sim/search/transformer_space.h"

#include <vector>

namespace meshwright::sim {

/// The quickest layouts of a transformer's training that fit, by the closed-form step model, and why the others lose.
///
/// Branch and bound over `TransformerSpace`: layouts are estimated in the order of their bounds, in rounds of a fixed size, until no bound is under
/// the slowest of the best meshes; so the answer is exact in the model, and the same for any number of threads. Cut short (options.stop, the time
/// limit) it has the best so far, and the least bound that was not looked at as its lower bound.
/// Several machines are searched one after the other, and then each tells of its best mesh only.
///
/// `larger`: chips that a plan which does not fit may be told of, by the size of their memory.
/// Preconditions: those of TransformerSpace; at least one machine; the names of `fixed` are among `fixedChoiceNames`.
SearchResult searchTransformer(const SearchWork& work, const std::vector<SearchMachine>& machines,
    const std::vector<FixedChoice>& fixed, const SearchOptions& options, const std::vector<SearchMachine>& larger = {});

/// The layout of a candidate as a plan, of which nothing else is known; it need not be one of the space's.
FoundPlan layoutOf(const TransformerSpace& space, const Candidate& candidate);

/// The PartitionSpecs of a candidate's arrays, by the names that `transformerParameters` gives them; x and y first.
std::vector<std::pair<std::string, std::string>> specsOf(const Candidate& candidate, const TransformerConfig& model);

/// Into how many parts a sequence's tokens are dealt to experts: one for each rank that has a part of it (`TransformerModel::dispatchGroups`).
constexpr std::int64_t dispatchGroups(std::int64_t context, std::int64_t tensor, bool sequenceParallel)
{
    return context * (sequenceParallel ? tensor : 1);
}

/// The same by the names of a study's model, whose layers may stand one by one.
std::vector<std::pair<std::string, std::string>> specsOf(const Candidate& candidate, const TransformerModel& model);

/// Plans say where Adam's moments lie. The states of a study's optimizer lie there, whichever they are: SGD's, and masters.
void giveSpecsOfMoments(StudySharding& sharding, const Optimizer& optimizer);

} // namespace meshwright::sim
