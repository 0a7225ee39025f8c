// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/products.h"

#include <Eigen/Core>

#include <dlfcn.h>

#include <atomic>
#include <cassert>
#include <limits>

namespace meshwright {

namespace {

/// What is used of OpenBLAS, found in its library when the first product is asked for: programs that multiply nothing do not load it.
/// The signatures are those of CBLAS with 32-bit integers, as Debian builds it.
struct OpenBlas {
    static constexpr int kRowMajor = 101;
    static constexpr int kNoTranspose = 111;
    static constexpr int kTranspose = 112;

    template <typename T>
    using Gemm = void (*)(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);
    using SetThreads = void (*)(int);

    Gemm<float> sgemm = nullptr;
    Gemm<double> dgemm = nullptr;
    SetThreads setThreads = nullptr;

    bool isThere() const { return sgemm != nullptr && dgemm != nullptr && setThreads != nullptr; }
};

OpenBlas loadOpenBlas()
{
    OpenBlas blas;
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        return blas;
    blas.sgemm = reinterpret_cast<OpenBlas::Gemm<float>>(dlsym(library, "cblas_sgemm"));
    blas.dgemm = reinterpret_cast<OpenBlas::Gemm<double>>(dlsym(library, "cblas_dgemm"));
    blas.setThreads = reinterpret_cast<OpenBlas::SetThreads>(dlsym(library, "openblas_set_num_threads"));
    if (blas.isThere())
        blas.setThreads(1); // its own threads would fight with ours for the cores
    return blas;
}

const OpenBlas& openBlas()
{
    static const OpenBlas blas = loadOpenBlas();
    return blas;
}

bool fitsBlas(std::int64_t size)
{
    return size <= std::numeric_limits<int>::max();
}

enum class Chosen : std::uint8_t { Fastest, Eigen, OpenBlas };
std::atomic<Chosen> s_chosen{Chosen::Fastest};

template <typename T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using RowMajorMap = Eigen::Map<T, Eigen::Unaligned, Eigen::OuterStride<>>;

template <typename T>
void multiplyWithEigen(
    std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const T> lhs, MatrixView<const T> rhs, MatrixView<T> result)
{
    const auto stored = [](const MatrixView<const T>& view, std::int64_t rows, std::int64_t columns) {
        return RowMajorMap<const RowMajor<T>>(
            view.data, view.transposed ? columns : rows, view.transposed ? rows : columns, Eigen::OuterStride<>(view.stride));
    };
    const auto a = stored(lhs, m, k);
    const auto b = stored(rhs, k, n);
    RowMajorMap<RowMajor<T>> c(result.data, m, n, Eigen::OuterStride<>(result.stride));
    if (lhs.transposed && rhs.transposed)
        c.noalias() = a.transpose() * b.transpose();
    else if (lhs.transposed)
        c.noalias() = a.transpose() * b;
    else if (rhs.transposed)
        c.noalias() = a * b.transpose();
    else
        c.noalias() = a * b;
}

template <typename T>
void fillZero(std::int64_t m, std::int64_t n, const MatrixView<T>& result)
{
    for (std::int64_t row = 0; row < m; ++row)
        std::fill_n(result.data + row * result.stride, n, T(0));
}

} // namespace

const char* productBackendName(ProductBackend backend)
{
    return backend == ProductBackend::Eigen ? "eigen" : "openblas";
}

ProductBackend productBackend()
{
    switch (s_chosen.load(std::memory_order_relaxed)) {
    case Chosen::Eigen:
        return ProductBackend::Eigen;
    case Chosen::OpenBlas:
        return ProductBackend::OpenBlas;
    case Chosen::Fastest:
        break;
    }
    return openBlas().isThere() ? ProductBackend::OpenBlas : ProductBackend::Eigen;
}

bool setProductBackend(ProductBackend backend)
{
    if (backend == ProductBackend::OpenBlas && !openBlas().isThere())
        return false;
    s_chosen.store(backend == ProductBackend::OpenBlas ? Chosen::OpenBlas : Chosen::Eigen, std::memory_order_relaxed);
    return true;
}

void setProductThreads(int threads)
{
    assert(threads >= 1);
    if (openBlas().isThere())
        openBlas().setThreads(threads);
}

namespace {

template <typename T>
void multiplyFloating(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const T> lhs, MatrixView<const T> rhs,
    MatrixView<T> result, OpenBlas::Gemm<T> OpenBlas::*gemm)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0)
        return fillZero(m, n, result);
    const bool fits
        = fitsBlas(m) && fitsBlas(n) && fitsBlas(k) && fitsBlas(lhs.stride) && fitsBlas(rhs.stride) && fitsBlas(result.stride);
    if (!fits || productBackend() != ProductBackend::OpenBlas)
        return multiplyWithEigen(m, n, k, lhs, rhs, result);
    const auto transposeOf = [](bool transposed) { return transposed ? OpenBlas::kTranspose : OpenBlas::kNoTranspose; };
    (openBlas().*gemm)(OpenBlas::kRowMajor, transposeOf(lhs.transposed), transposeOf(rhs.transposed), static_cast<int>(m),
        static_cast<int>(n), static_cast<int>(k), T(1), lhs.data, static_cast<int>(lhs.stride), rhs.data,
        static_cast<int>(rhs.stride), T(0), result.data, static_cast<int>(result.stride));
}

} // namespace

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const float> lhs, MatrixView<const float> rhs,
    MatrixView<float> result)
{
    multiplyFloating(m, n, k, lhs, rhs, result, &OpenBlas::sgemm);
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const double> lhs, MatrixView<const double> rhs,
    MatrixView<double> result)
{
    multiplyFloating(m, n, k, lhs, rhs, result, &OpenBlas::dgemm);
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const std::uint32_t> lhs,
    MatrixView<const std::uint32_t> rhs, MatrixView<std::uint32_t> result)
{
    multiplyWithEigen(m, n, k, lhs, rhs, result);
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const std::uint64_t> lhs,
    MatrixView<const std::uint64_t> rhs, MatrixView<std::uint64_t> result)
{
    multiplyWithEigen(m, n, k, lhs, rhs, result);
}

} // namespace meshwright
