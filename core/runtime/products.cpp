// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/products.h"

#include <Eigen/Core>
#ifdef MESHWRIGHT_HAS_OPENBLAS
#include <cblas.h>
#endif

#include <atomic>
#include <cassert>
#include <limits>

namespace meshwright {

namespace {

#ifdef MESHWRIGHT_HAS_OPENBLAS
constexpr ProductBackend kDefaultBackend = ProductBackend::OpenBlas;

/// OpenBLAS's own threads would fight with ours for the cores.
void useOneThread()
{
    static const bool done = [] {
        openblas_set_num_threads(1);
        return true;
    }();
    static_cast<void>(done);
}

bool fitsBlas(std::int64_t size)
{
    return size <= std::numeric_limits<blasint>::max();
}

CBLAS_TRANSPOSE blasTranspose(bool transposed)
{
    return transposed ? CblasTrans : CblasNoTrans;
}
#else
constexpr ProductBackend kDefaultBackend = ProductBackend::Eigen;
#endif

std::atomic<ProductBackend> s_backend{kDefaultBackend};

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
    return s_backend.load(std::memory_order_relaxed);
}

bool setProductBackend(ProductBackend backend)
{
    if (backend == ProductBackend::OpenBlas && kDefaultBackend != ProductBackend::OpenBlas)
        return false;
    s_backend.store(backend, std::memory_order_relaxed);
    return true;
}

void setProductThreads(int threads)
{
    assert(threads >= 1);
#ifdef MESHWRIGHT_HAS_OPENBLAS
    useOneThread();
    openblas_set_num_threads(threads);
#else
    static_cast<void>(threads);
#endif
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const float> lhs, MatrixView<const float> rhs,
    MatrixView<float> result)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0)
        return fillZero(m, n, result);
#ifdef MESHWRIGHT_HAS_OPENBLAS
    if (productBackend() == ProductBackend::OpenBlas && fitsBlas(m) && fitsBlas(n) && fitsBlas(k) && fitsBlas(lhs.stride)
        && fitsBlas(rhs.stride)) {
        useOneThread();
        cblas_sgemm(CblasRowMajor, blasTranspose(lhs.transposed), blasTranspose(rhs.transposed), static_cast<blasint>(m),
            static_cast<blasint>(n), static_cast<blasint>(k), 1.0F, lhs.data, static_cast<blasint>(lhs.stride), rhs.data,
            static_cast<blasint>(rhs.stride), 0.0F, result.data, static_cast<blasint>(result.stride));
        return;
    }
#endif
    multiplyWithEigen(m, n, k, lhs, rhs, result);
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const double> lhs, MatrixView<const double> rhs,
    MatrixView<double> result)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0)
        return fillZero(m, n, result);
#ifdef MESHWRIGHT_HAS_OPENBLAS
    if (productBackend() == ProductBackend::OpenBlas && fitsBlas(m) && fitsBlas(n) && fitsBlas(k) && fitsBlas(lhs.stride)
        && fitsBlas(rhs.stride)) {
        useOneThread();
        cblas_dgemm(CblasRowMajor, blasTranspose(lhs.transposed), blasTranspose(rhs.transposed), static_cast<blasint>(m),
            static_cast<blasint>(n), static_cast<blasint>(k), 1.0, lhs.data, static_cast<blasint>(lhs.stride), rhs.data,
            static_cast<blasint>(rhs.stride), 0.0, result.data, static_cast<blasint>(result.stride));
        return;
    }
#endif
    multiplyWithEigen(m, n, k, lhs, rhs, result);
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
