// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/bfloat16_product.h"
#include "core/kernels/matrix_view.h"
#include "core/support/result.h"
#include "core/support/stop_flag.h"

#include <cstdint>
#include <string>

namespace meshwright {

/// Who multiplies matrices.
enum class ProductBackend : std::uint8_t {
    Eigen, ///< always there
    OpenBlas, ///< when its library is installed where the program runs
    OneDnn, ///< likewise; single precision only, the rest as without it
    Panels, ///< ours (see panel_product.h), on processors with AVX2 or AVX-512; likewise
    Amx, ///< as Panels, and bfloat16 by the tiles of processors that have them (see bfloat16_product.h)
};
const char* productBackendName(ProductBackend backend);

/// The backend in use: the fastest that there is, until `setProductBackend`. Trained values are equal bit for bit for one backend only.
ProductBackend productBackend();
/// The same for operands of single precision, which tiles do not take: Panels for Amx.
ProductBackend singlePrecisionBackend();

/// False when it is not there. Not while products are being computed.
bool setProductBackend(ProductBackend backend);

/// The environment variable that names the backend to use: "amx", "panels", "openblas", "onednn" or "eigen".
inline constexpr const char* kProductsVariable = "MESHWRIGHT_PRODUCTS";

/// Uses the backend of this name; the fastest that there is when it is empty. Not while products are being computed.
/// Problems: MW1514 no such backend, or it is not there.
Result<Done> chooseProducts(const std::string& name);

/// `chooseProducts` of what the environment says.
Result<Done> chooseProductsFromEnvironment();

/// True when the backend in use multiplies bfloat16 itself; with the others operands are rounded, and multiplied in single precision.
bool multipliesBfloat16();

/// The backend in use and what is known of it: "panels, avx512 kernels; bf16: amx", "panels, avx512 kernels", "openblas 0.3.21, Cooperlake kernels", "onednn 2.6.3",
/// "eigen 3.4.0".
std::string productBackendText();

/// How many threads one product may use: 1 by default, since devices run side by side. More only for a single device.
/// Not while products are being computed.
void setProductThreads(int threads);

/// The part of a result that is computed in one go, so that a product can be stopped: rows and columns of all parts but the last ones.
struct ProductPart {
    std::int64_t rows = 0;
    std::int64_t columns = 0;

    friend bool operator==(const ProductPart&, const ProductPart&) = default;
};

/// The whole result when its 2 m n k operations are at most `operations`; else its larger side is halved, rounded up to whole kernel
/// tiles (multiples of 192), until a part is that small. Never fewer than 192 rows or columns.
ProductPart productPart(std::int64_t m, std::int64_t n, std::int64_t k, double operations);

/// How much of a product is computed between two looks at a flag: at most so many operations, 0 being what takes 0.1 to 0.45 s. The bits of
/// the result do not depend on whether there is a flag.
struct ProductStop {
    const StopFlag* flag = nullptr; ///< nullptr: cannot be stopped
    double operations = 0.0;
};

/// result[m, n] = lhs[m, k] times rhs[k, n]; sums of no terms are zero. `result` is not transposed and overlaps neither operand. Once the
/// flag is set, the rest of the result is left as it was.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const float> lhs, MatrixView<const float> rhs,
    MatrixView<float> result, ProductStop stop = {});
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const double> lhs, MatrixView<const double> rhs,
    MatrixView<double> result, ProductStop stop = {});

/// Of operands rounded to bfloat16, summed in single precision. Precondition: multipliesBfloat16().
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Bfloat16Operand lhs, Bfloat16Operand rhs, MatrixView<float> result,
    ProductStop stop = {});

/// Integers, wrapping at overflow as unsigned ones do (which gives the right bits for signed ones too).
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const std::uint32_t> lhs,
    MatrixView<const std::uint32_t> rhs, MatrixView<std::uint32_t> result, ProductStop stop = {});
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const std::uint64_t> lhs,
    MatrixView<const std::uint64_t> rhs, MatrixView<std::uint64_t> result, ProductStop stop = {});

} // namespace meshwright
