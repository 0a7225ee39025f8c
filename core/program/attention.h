// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/other_op.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace meshwright {

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
struct AttentionForm {
    double scale = 1.0; ///< of the scores
    double softcap = 0.0; ///< scores are c tanh(score / c); 0: as they are
    bool causal = false; ///< a query sees keys at positions up to its own
    bool windowed = false; ///< causal, and less than the window before it
    bool segmented = false; ///< a query sees keys of its own segment
    DType operandType = DType::F32; ///< operands of the products are rounded to this; sums are of f32 at least

    friend bool operator==(const AttentionForm&, const AttentionForm&) = default;
};

/// Where the operands behind the values are; one that the form has not has no place.
struct AttentionPlaces {
    explicit AttentionPlaces(const AttentionForm& form)
    {
        positions = end;
        end += form.causal ? 2 : 0;
        window = end;
        end += form.windowed ? 1 : 0;
        segments = end;
        end += form.segmented ? 2 : 0;
    }

    std::size_t positions; ///< of the queries; those of the keys follow
    std::size_t window;
    std::size_t segments; ///< likewise
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

/// The types that such an op makes of operands that fit it.
std::vector<TensorType> attentionResults(OpKind kind, std::span<const TensorType> operands);

/// MW1301 to MW1304 as `resultTypes`.
std::optional<Problem> attentionProblem(const OtherAttributes& other, std::span<const TensorType> operands);

} // namespace meshwright
