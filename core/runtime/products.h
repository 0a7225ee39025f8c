// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace meshwright {

/// Who multiplies matrices.
enum class ProductBackend : std::uint8_t {
    Eigen, ///< always there
    OpenBlas, ///< when its library is installed where the program runs
};
const char* productBackendName(ProductBackend backend);

/// The backend in use: the fastest that there is, until `setProductBackend`. Trained values are equal bit for bit for one backend only.
ProductBackend productBackend();

/// False when it is not there. Not while products are being computed.
bool setProductBackend(ProductBackend backend);

/// How many threads one product may use: 1 by default, since devices run side by side. More only for a single device.
/// Not while products are being computed.
void setProductThreads(int threads);

/// A matrix in row-major memory. `transposed`: what is stored is the transpose of the matrix that is meant.
template <typename T>
struct MatrixView {
    T* data = nullptr;
    std::int64_t stride = 0; ///< elements from one stored row to the next
    bool transposed = false;
};

/// result[m, n] = lhs[m, k] times rhs[k, n]; sums of no terms are zero. `result` is not transposed and overlaps neither operand.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const float> lhs, MatrixView<const float> rhs,
    MatrixView<float> result);
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const double> lhs, MatrixView<const double> rhs,
    MatrixView<double> result);

/// Integers, wrapping at overflow as unsigned ones do (which gives the right bits for signed ones too).
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const std::uint32_t> lhs,
    MatrixView<const std::uint32_t> rhs, MatrixView<std::uint32_t> result);
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const std::uint64_t> lhs,
    MatrixView<const std::uint64_t> rhs, MatrixView<std::uint64_t> result);

} // namespace meshwright
