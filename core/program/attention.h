// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/other_op.h"

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

namespace meshwright {

/// How queries meet keys where one mesh axis splits the sequence of both (context parallelism).
enum class ContextExchange : std::uint8_t {
    Gather, ///< every device has all keys and values
    Ring, ///< keys and values go round
    Ulysses, ///< devices have whole sequences of some of the heads (Jacobs et al., "DeepSpeed Ulysses", 2023)
};

/// Fused attention, and its derivative: of each head, result = softmax(mask(cap(scale q k^T))) v, whose scores no program sees. Heads come in groups
/// that share keys and values. OpKind::Attention and OpKind::AttentionGrad are kept ops of the names `mw.attention` and `mw.attention_grad`.
///
/// Operands: queries [batch.., s, groups, shares, d], keys [batch.., t, groups, d] and values [batch.., t, groups, e], all of one floating type; then,
/// as the form says, positions i32[s] and i32[t], the window i32[], segments i32[batch.., s] and i32[batch.., t]. Those of the derivative end in the
/// result, the statistics and the result's cotangent.
/// Results: [batch.., s, groups, shares, e] of the queries' type, and for each row of scores the logarithm of the sum of its exponentials,
/// [batch.., s, groups, shares], in f32 (f64 of f64): all that the derivative needs besides the operands. The derivative gives the cotangents of
/// queries, keys and values, of their types.
///
/// A row whose keys are all masked gives 0, with -infinity for its sum.
/// Source of the method: Dao, Fu, Ermon, Rudra, Re, "FlashAttention", NeurIPS 2022, algorithms 1 and 4.
///
/// On devices, an op may meet a part of the keys: its results are in f32 then (f64 of f64). Those of part 0 are over the device's own keys; of any
/// later one, the operands end in the results of the part before, which its own take in. The parts of the derivative, each by its keys and the
/// statistics over all of them, add up to it.
/// Source: Liu, Zaharia, Abbeel, "Ring Attention with Blockwise Transformers for Near-Infinite Context", ICLR 2024.
struct AttentionForm {
    double scale = 1.0; ///< of the scores
    double softcap = 0.0; ///< scores are c tanh(score / c); 0: as they are
    bool causal = false; ///< a query sees keys at positions up to its own
    bool windowed = false; ///< causal, and less than the window before it
    bool segmented = false; ///< a query sees keys of its own segment
    DType operandType = DType::F32; ///< operands of the products are rounded to this; sums are of f32 at least
    ContextExchange context = ContextExchange::Gather; ///< what devices exchange where one axis splits queries and keys
    bool isBalanced
        = false; ///< causal: every device sees as many keys as any other (zigzag order), which counts for the time alone
    std::int64_t part = -1; ///< the keys are those of the device so many places before along the axis; -1: all keys

    bool isPart() const { return part >= 0; }
    friend bool operator==(const AttentionForm&, const AttentionForm&) = default;
};

/// Where the operands behind the values are; one that the form has not has no place.
struct AttentionPlaces {
    AttentionPlaces(const AttentionForm& form, OpKind kind)
    {
        positions = end;
        end += form.causal ? 2 : 0;
        window = end;
        end += form.windowed ? 1 : 0;
        segments = end;
        end += form.segmented ? 2 : 0;
        before = end;
        end += form.part > 0 && kind == OpKind::Attention ? 2 : 0;
    }

    std::size_t positions; ///< of the queries; those of the keys follow
    std::size_t window;
    std::size_t segments; ///< likewise
    std::size_t before; ///< the result of the part before; its statistics follow
    std::size_t end = 3; ///< behind them; of the derivative, of the result
};

/// The sizes of the first three operands, which are well formed.
struct AttentionSizes {
    explicit AttentionSizes(std::span<const TensorType> operands);

    std::int64_t batches() const; ///< all batch dimensions together

    Shape batch;
    std::int64_t queries = 0;
    std::int64_t keys = 0;
    std::int64_t groups = 0;
    std::int64_t shares = 0;
    std::int64_t dims = 0; ///< of a query and of a key
    std::int64_t valueDims = 0;
};

/// What the attributes of a well-formed op say; nothing when one is missing or not of its type.
std::optional<AttentionForm> attentionForm(const OtherAttributes& other);

/// The attributes of an op of this form on these operands.
OtherAttributes attentionAttributes(OpKind kind, const AttentionForm& form, std::span<const TensorType> operands);

/// The attributes of a part of an op with these.
OtherAttributes attentionPart(OtherAttributes whole, std::int64_t part, std::span<const TensorType> operands);

/// The types that such an op makes of operands that fit it.
std::vector<TensorType> attentionResults(OpKind kind, const AttentionForm& form, std::span<const TensorType> operands);

/// The attributes of an op that say how it is computed, and not what.
std::set<std::string_view> attributesOfExchange();

/// MW1301 to MW1304 as `resultTypes`.
std::optional<Problem> attentionProblem(const OtherAttributes& other, std::span<const TensorType> operands);

} // namespace meshwright
