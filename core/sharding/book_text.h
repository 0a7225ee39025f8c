// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/tensor_sharding.h"

#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// A sharded array as "How to Scale Your Model" writes it: `A[I_X, J_{YZ}]{U_W}` is split along I over mesh axis X, along J over Y and Z
/// (Y major), and holds partial sums over W.
struct BookArray {
    std::string name = "A";
    std::vector<std::string> dimNames; ///< one for each dimension
    TensorSharding sharding;

    friend bool operator==(const BookArray&, const BookArray&) = default;
};

/// Reads the notation; subscripts as `I_X`, `I_XY`, `I_{X,Y}`, `I_{XY}`. Letters that name no axis together are one axis each, as far as
/// the mesh has them; capitals stand for the axes of a mesh in lower case too.
///
/// Problems, with a column: MW1168 the text is not of that form, MW1102 unknown axis, MW1103 an axis used twice, MW1169 a subscript that
/// reads as axes in two ways.
/// Source: J. Austin et al., "How to Scale Your Model", 2025, chapter "Sharded Matrices and How to Multiply Them".
Result<BookArray> parseBook(std::string_view text, const Mesh& mesh);

/// `A[I_X, J_{YZ}]{U_W}`; axes with longer names are separated: `I_{data,model}`. Missing names of dimensions are I, J, K and so on.
/// Openness and what is explicitly replicated are left out. Problems: MW1161 a part of an axis, or partial values that combine otherwise
/// than by a sum.
Result<std::string> bookText(const BookArray& array, const Mesh& mesh);

} // namespace meshwright
