// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/transformer.h"
#include "core/study/study_parts.h"

#include <algorithm>
#include <span>
#include <string>

namespace meshwright {

/// A key of `model.transformer` and the member of TransformerConfig that it sets.
template <typename T>
struct TransformerKey {
    const char* key; ///< "kv_heads"
    T TransformerConfig::*member;
    const char* name; ///< of the member, as problems have it: "keyValueHeads"
};
std::span<const TransformerKey<std::int64_t>> transformerSizes();
std::span<const TransformerKey<double>> transformerNumbers();
std::span<const TransformerKey<bool>> transformerFlags();

const Words<NormKind>& normWords();
const Words<PositionKind>& positionWords();
const Words<TransformerActivation>& transformerActivationWords();
const Words<MixerKind>& mixerWords();
const Words<Prediction>& predictionWords();
const Words<TokenLookup>& lookupWords();
const Words<AttentionOp>& attentionWords();
const Words<ContextExchange>& contextWords();
const Words<LossKernels>& lossKernelWords();
const Words<Recompute>& recomputeWords();

/// A policy of MaxText that keeps values by their names.
struct KeptByName {
    const char* policy;
    std::vector<std::string> kept;
    std::vector<std::string> offloaded;
};
const std::vector<KeptByName>& keptByName();

/// The word of a value. Precondition: the words have it.
template <typename T>
std::string wordOf(const Words<T>& words, T value)
{
    const auto found = std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.second == value; });
    return found->first;
}

/// Where the study writes what a problem of `sizeProblems` is about ("keyValueHeads" -> "model.transformer.kv_heads"), and the problem in
/// the study's words.
Problem inStudyWords(Problem problem);

/// `selective`, or `{keep: [attention.q, ffn.hidden]}`.
std::string recomputeText(const TransformerModel& model);

/// `transformer: {..}` with every key that does not have its default, and the keys that must be there. Reading it gives an equal model.
std::string transformerText(const TransformerModel& model);

} // namespace meshwright
