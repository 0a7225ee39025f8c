// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"
#include "core/text/syntax.h"

namespace meshwright {

/// Calls `visit` with each list of dimensions or sizes among the attributes, until it says no: its name in the op's own form, that in the
/// generic one, and the list (or the only dimension).
template <typename Visit>
bool forEachList(OpAttributes& attributes, const Visit& visit)
{
    const auto visitAll = [&](auto& made) {
        using Made = std::remove_cvref_t<decltype(made)>;
        if constexpr (std::is_same_v<Made, BroadcastAttributes>)
            return visit("dims", "broadcast_dimensions", made.dims);
        else if constexpr (std::is_same_v<Made, TransposeAttributes>)
            return visit("dims", "permutation", made.permutation);
        else if constexpr (std::is_same_v<Made, ReverseAttributes>)
            return visit("dims", "dimensions", made.dims);
        else if constexpr (std::is_same_v<Made, ConcatenateAttributes>)
            return visit("dim", "dimension", made.dim);
        else if constexpr (std::is_same_v<Made, DynamicSliceAttributes>)
            return visit("sizes", "slice_sizes", made.sizes);
        else if constexpr (std::is_same_v<Made, PadAttributes>)
            return visit("low", "edge_padding_low", made.low) && visit("high", "edge_padding_high", made.high)
                && visit("interior", "interior_padding", made.interior);
        else
            return true;
    };
    return std::visit(visitAll, attributes);
}

/// Appends the integers of an attribute: of lists of any depth, of the elements of a dense constant. False when it has something else.
bool appendIntegers(const SyntaxAttribute& attribute, std::vector<std::int64_t>& integers);

} // namespace meshwright
