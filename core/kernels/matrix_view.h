// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace meshwright {

/// A matrix in row-major memory. `transposed`: what is stored is the transpose of the matrix that is meant.
template <typename T>
struct MatrixView {
    T* data = nullptr;
    std::int64_t stride = 0; ///< elements from one stored row to the next
    bool transposed = false;
};

/// The matrix that begins so many elements further on.
template <typename T>
MatrixView<T> shifted(MatrixView<T> view, std::int64_t elements)
{
    view.data += elements;
    return view;
}

} // namespace meshwright
