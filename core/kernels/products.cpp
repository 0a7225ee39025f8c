// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/products.h"

#include "core/kernels/host_array.h"
#include "core/kernels/panel_product.h"
#include "core/support/checked.h"
#include "core/support/host_memory.h"
#include "core/support/thread_failure.h"

#include <Eigen/Core>

#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <cassert>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <semaphore>
#include <sstream>
#include <thread>
#include <type_traits>
#include <vector>

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
    using Text = char* (*)();

    Gemm<float> sgemm = nullptr;
    Gemm<double> dgemm = nullptr;
    SetThreads setThreads = nullptr;
    Text config = nullptr; ///< may be missing, as the next
    Text coreName = nullptr;

    bool isThere() const { return sgemm != nullptr && dgemm != nullptr && setThreads != nullptr; }
};

/// OpenBLAS multiplies with the kernels of a very old processor on one that is newer than itself. It listens to a name, which is the user's to
/// choose first.
void nameProcessorForOpenBlas()
{
#if defined(__x86_64__)
    const bool hasAvx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    const bool hasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (hasAvx512 || hasAvx2)
        setenv("OPENBLAS_CORETYPE", hasAvx512 ? "SkylakeX" : "Haswell", 0);
#endif
}

/// OpenBLAS tries for ever where the system refuses it memory (`ulimit -v`): a buffer for each thread that multiplies.
bool hasRoomForOpenBlas()
{
    constexpr std::int64_t kBufferBytes = std::int64_t{128} << 20;
    const auto room = addressSpaceLeftBytes();
    return !room || *room >= kBufferBytes * (static_cast<std::int64_t>(std::thread::hardware_concurrency()) + 1);
}

OpenBlas loadOpenBlas()
{
    OpenBlas blas;
    if (!hasRoomForOpenBlas())
        return blas;
    nameProcessorForOpenBlas();
    setenv("OPENBLAS_NUM_THREADS", "1", 0); // else it starts threads, each with a buffer, while it is loaded
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        return blas;
    blas.sgemm = reinterpret_cast<OpenBlas::Gemm<float>>(dlsym(library, "cblas_sgemm"));
    blas.dgemm = reinterpret_cast<OpenBlas::Gemm<double>>(dlsym(library, "cblas_dgemm"));
    blas.setThreads = reinterpret_cast<OpenBlas::SetThreads>(dlsym(library, "openblas_set_num_threads"));
    blas.config = reinterpret_cast<OpenBlas::Text>(dlsym(library, "openblas_get_config"));
    blas.coreName = reinterpret_cast<OpenBlas::Text>(dlsym(library, "openblas_get_corename"));
    if (blas.isThere())
        blas.setThreads(1); // its own threads would fight with ours for the cores
    return blas;
}

const OpenBlas& openBlas()
{
    static const OpenBlas blas = loadOpenBlas();
    return blas;
}

/// What is used of oneDNN: its product of row-major matrices, and the runtime that its threads come from. How many threads that runtime takes is a
/// setting of each calling thread.
struct OneDnn {
    static constexpr int kSuccess = 0;
    using Gemm = int (*)(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*, std::int64_t, const float*,
        std::int64_t, float, float*, std::int64_t);
    using SetThreads = void (*)(int);
    struct Version {
        int major;
        int minor;
        int patch;
    };
    using GetVersion = const Version* (*)();

    Gemm sgemm = nullptr;
    SetThreads setThreads = nullptr;
    GetVersion version = nullptr;

    bool isThere() const { return sgemm != nullptr && setThreads != nullptr && version != nullptr; }
};

OneDnn loadOneDnn()
{
    OneDnn dnn;
    void* library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        return dnn;
    dnn.sgemm = reinterpret_cast<OneDnn::Gemm>(dlsym(library, "dnnl_sgemm"));
    dnn.version = reinterpret_cast<OneDnn::GetVersion>(dlsym(library, "dnnl_version"));
    dnn.setThreads = reinterpret_cast<OneDnn::SetThreads>(dlsym(library, "omp_set_num_threads"));
    return dnn;
}

const OneDnn& oneDnn()
{
    static const OneDnn dnn = loadOneDnn();
    return dnn;
}

std::atomic<int> s_threads{1}; ///< of one product

bool fitsBlas(std::int64_t size)
{
    return size <= std::numeric_limits<int>::max();
}

/// OpenBLAS has memory for so many callers at a time, and no check; permits are fewer on most hosts, but may be any number.
constexpr std::ptrdiff_t kMostCallers = 32;
std::counting_semaphore<kMostCallers> s_callers{kMostCallers};

constexpr int kFastest = -1;
std::atomic<int> s_chosen{kFastest}; ///< a ProductBackend, or kFastest

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
    constexpr const char* kNames[] = {"eigen", "openblas", "onednn", "panels", "amx"};
    return kNames[static_cast<std::size_t>(backend)];
}

namespace {

bool isThere(ProductBackend backend)
{
    switch (backend) {
    case ProductBackend::OpenBlas:
        return openBlas().isThere();
    case ProductBackend::OneDnn:
        return oneDnn().isThere();
    case ProductBackend::Panels:
        return panelProduct() != nullptr;
    case ProductBackend::Amx:
        return bfloat16Product() != nullptr; // which has AVX-512 too
    case ProductBackend::Eigen:
        break;
    }
    return true;
}

bool isOurs(ProductBackend backend)
{
    return backend == ProductBackend::Panels || backend == ProductBackend::Amx;
}

} // namespace

ProductBackend productBackend()
{
    if (const int chosen = s_chosen.load(std::memory_order_relaxed); chosen != kFastest)
        return static_cast<ProductBackend>(chosen);
    for (const ProductBackend backend : {ProductBackend::Amx, ProductBackend::Panels, ProductBackend::OpenBlas}) {
        if (isThere(backend))
            return backend;
    }
    return ProductBackend::Eigen;
}

ProductBackend singlePrecisionBackend()
{
    const ProductBackend backend = productBackend();
    return backend == ProductBackend::Amx ? ProductBackend::Panels : backend;
}

bool setProductBackend(ProductBackend backend)
{
    if (!isThere(backend))
        return false;
    s_chosen.store(static_cast<int>(backend), std::memory_order_relaxed);
    return true;
}

Result<Done> chooseProducts(const std::string& name)
{
    if (name.empty()) {
        s_chosen.store(kFastest, std::memory_order_relaxed);
        return Done{};
    }
    for (const ProductBackend backend :
        {ProductBackend::Amx, ProductBackend::Panels, ProductBackend::Eigen, ProductBackend::OpenBlas, ProductBackend::OneDnn}) {
        if (name != productBackendName(backend))
            continue;
        if (setProductBackend(backend))
            return Done{};
        if (backend == ProductBackend::Amx)
            return Problem{"MW1514",
                "the products' backend \"amx\" needs a processor with AMX tiles for bfloat16, and a system that lets programs "
                "use them",
                "use panels, openblas or eigen"};
        if (backend == ProductBackend::Panels)
            return Problem{
                "MW1514", "the products' backend \"panels\" needs a processor with AVX2 and FMA", "use openblas or eigen"};
        return Problem{"MW1514", fmt::format("the products' backend \"{}\" is not installed", name),
            backend == ProductBackend::OneDnn ? "install libdnnl2, or use openblas or eigen"
                                              : "install libopenblas0, or use eigen"};
    }
    return Problem{
        "MW1514", fmt::format("unknown backend \"{}\" for products", name), "use amx, panels, openblas, onednn or eigen"};
}

Result<Done> chooseProductsFromEnvironment()
{
    const char* wanted = std::getenv(kProductsVariable);
    return chooseProducts(wanted == nullptr ? "" : wanted);
}

bool multipliesBfloat16()
{
    return productBackend() == ProductBackend::Amx;
}

std::string productBackendText()
{
    if (multipliesBfloat16())
        return fmt::format("panels, {} kernels; bf16: {}", panelProduct()->name, bfloat16Product()->name);
    if (productBackend() == ProductBackend::Panels)
        return fmt::format("panels, {} kernels", panelProduct()->name);
    if (productBackend() == ProductBackend::Eigen)
        return fmt::format("eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
    if (productBackend() == ProductBackend::OneDnn) {
        const OneDnn::Version& version = *oneDnn().version();
        return fmt::format("onednn {}.{}.{}", version.major, version.minor, version.patch);
    }
    const auto wordOf = [](OpenBlas::Text text, std::size_t index) { // "OpenBLAS 0.3.21 NO_LAPACKE .."
        std::istringstream words(text == nullptr ? "" : text());
        std::string word;
        for (std::size_t i = 0; i <= index && words; ++i)
            words >> word;
        return words ? word : std::string();
    };
    const std::string version = wordOf(openBlas().config, 1);
    const std::string kernels = wordOf(openBlas().coreName, 0);
    return fmt::format("openblas{}{}", version.empty() ? "" : " " + version, kernels.empty() ? "" : ", " + kernels + " kernels");
}

void setProductThreads(int threads)
{
    assert(threads >= 1);
    s_threads.store(threads);
    if (!isOurs(productBackend()) && openBlas().isThere())
        openBlas().setThreads(threads);
}

ProductPart productPart(std::int64_t m, std::int64_t n, std::int64_t k, double operations)
{
    constexpr std::int64_t kGrain = 192; // a multiple of what the kernels of all processors take at once
    ProductPart part{m, n};
    for (;;) {
        std::int64_t& larger = part.rows >= part.columns ? part.rows : part.columns;
        const double needed = 2.0 * static_cast<double>(part.rows) * static_cast<double>(part.columns) * static_cast<double>(k);
        if (needed <= operations || larger <= kGrain)
            return part;
        larger = ceilDiv(ceilDiv(larger, 2), kGrain) * kGrain;
    }
}

namespace {

/// At most what a core does in 0.2 s (OpenBLAS with AVX-512: 110 G/s for floats) to 0.45 s (its oldest kernels: 40 G/s). Parts are often half
/// of it, and smaller ones cost: 6 % more time with parts of 576 x 1152 x 8192 than with 2304 x 2304 x 8192, 14 % with 576 x 576 x 8192.
template <typename T>
double partOperations(bool withBlas)
{
    const double floats = withBlas ? 18e9 : 6e9;
    if (std::is_integral_v<T>)
        return 6e8;
    return floats * static_cast<double>(sizeof(float)) / static_cast<double>(sizeof(T));
}

/// The same of bfloat16 on tiles, at 0.5 to 1.2 T/s.
constexpr double kBfloat16PartOperations = 150e9;

/// A matrix without its first rows and columns.
template <typename View>
View movedBy(const View& view, std::int64_t rows, std::int64_t columns)
{
    return shifted(view, view.transposed ? columns * view.stride + rows : rows * view.stride + columns);
}

/// Calls `part` for each part of the result, of so many operations unless the stop says otherwise, until stopped. A rest that is too small for the
/// kernels belongs to the part before it.
template <typename Operand, typename T, typename Multiply>
void multiplyInParts(std::int64_t m, std::int64_t n, std::int64_t k, Operand lhs, Operand rhs, MatrixView<T> result,
    const ProductStop& stop, double operations, Multiply part)
{
    constexpr std::int64_t kSmallestRest = 64;
    const ProductPart size = productPart(m, n, k, stop.operations > 0.0 ? stop.operations : operations);
    const auto extent = [](std::int64_t left, std::int64_t wanted) { return left < wanted + kSmallestRest ? left : wanted; };
    for (std::int64_t row = 0; row < m;) {
        const std::int64_t rows = extent(m - row, size.rows);
        for (std::int64_t column = 0; column < n;) {
            if (stop.flag != nullptr && stop.flag->isSet())
                return;
            const std::int64_t columns = extent(n - column, size.columns);
            part(rows, columns, movedBy(lhs, row, 0), movedBy(rhs, 0, column), movedBy(result, row, column));
            column += columns;
        }
        row += rows;
    }
}

/// True when oneDNN did it.
bool multiplyWithOneDnn(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const float> lhs, MatrixView<const float> rhs,
    MatrixView<float> result)
{
    thread_local int threads = 0;
    if (const int wanted = s_threads.load(std::memory_order_relaxed); threads != wanted) {
        oneDnn().setThreads(wanted);
        threads = wanted;
    }
    const auto letter = [](bool transposed) { return transposed ? 'T' : 'N'; };
    return oneDnn().sgemm(letter(lhs.transposed), letter(rhs.transposed), m, n, k, 1.0F, lhs.data, lhs.stride, rhs.data,
               rhs.stride, 0.0F, result.data, result.stride)
        == OneDnn::kSuccess;
}

/// Memory for as many products as are computed at once, used again and again, the warmest first.
class Workspaces {
public:
    AlignedBytes take(std::int64_t bytes)
    {
        {
            const std::lock_guard lock(m_mutex);
            if (!m_free.empty()) {
                AlignedBytes workspace = std::move(m_free.back());
                m_free.pop_back();
                return workspace;
            }
        }
        return AlignedBytes(bytes);
    }

    void giveBack(AlignedBytes workspace)
    {
        const std::lock_guard lock(m_mutex);
        m_free.push_back(std::move(workspace));
    }

private:
    std::mutex m_mutex;
    std::vector<AlignedBytes> m_free;
};

Workspaces s_workspaces;
Workspaces s_bfloat16Workspaces;

void multiplyWithKernels(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const float> lhs, MatrixView<const float> rhs,
    MatrixView<float> result)
{
    const PanelProduct& panels = *panelProduct();
    AlignedBytes workspace = s_workspaces.take(panels.workspaceBytes);
    panels.multiply(m, n, k, lhs, rhs, result, workspace.data());
    s_workspaces.giveBack(std::move(workspace));
}

void multiplyWithKernels(
    std::int64_t m, std::int64_t n, std::int64_t k, Bfloat16Operand lhs, Bfloat16Operand rhs, MatrixView<float> result)
{
    const Bfloat16Product& tiles = *bfloat16Product();
    AlignedBytes workspace = s_bfloat16Workspaces.take(tiles.workspaceBytes);
    tiles.multiply(m, n, k, lhs, rhs, result, workspace.data());
    s_bfloat16Workspaces.giveBack(std::move(workspace));
}

// Operations that are worth a thread, which takes as long to start as a core for a fifth of them.
constexpr double kThreadOperations = 2e7;
constexpr double kBfloat16ThreadOperations = 1.5e8;

/// Shares the longer side of the result among the threads that one product may use.
template <typename Operand>
void multiplyWithThreads(
    std::int64_t m, std::int64_t n, std::int64_t k, Operand lhs, Operand rhs, MatrixView<float> result, double threadOperations)
{
    const double operations = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const auto threads = std::min<std::int64_t>(
        s_threads.load(std::memory_order_relaxed), static_cast<std::int64_t>(operations / threadOperations));
    if (threads <= 1)
        return multiplyWithKernels(m, n, k, lhs, rhs, result);
    constexpr std::int64_t kGrain = 96; // whole register tiles and cache lines
    std::int64_t& shared = m >= n ? m : n;
    const std::int64_t total = shared;
    const std::int64_t share = ceilDiv(ceilDiv(total, threads), kGrain) * kGrain;
    ThreadFailure failure;
    {
        std::vector<std::jthread> helpers;
        for (std::int64_t first = share; first < total; first += share) {
            shared = std::min(share, total - first);
            const std::int64_t row = &shared == &m ? first : 0;
            const std::int64_t column = first - row;
            helpers.emplace_back([=, &failure] {
                failure.guard([&] {
                    multiplyWithKernels(m, n, k, movedBy(lhs, row, 0), movedBy(rhs, 0, column), movedBy(result, row, column));
                });
            });
        }
        shared = std::min(share, total);
        failure.guard([&] { multiplyWithKernels(m, n, k, lhs, rhs, result); });
    }
    failure.rethrow();
}

template <typename T>
void multiplyFloating(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const T> lhs, MatrixView<const T> rhs,
    MatrixView<T> result, const ProductStop& stop, OpenBlas::Gemm<T> OpenBlas::*gemm)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0)
        return fillZero(m, n, result);
    const bool fits
        = fitsBlas(m) && fitsBlas(n) && fitsBlas(k) && fitsBlas(lhs.stride) && fitsBlas(rhs.stride) && fitsBlas(result.stride);
    const ProductBackend backend = productBackend();
    if constexpr (std::is_same_v<T, float>) {
        if (isOurs(backend)) {
            multiplyInParts(m, n, k, lhs, rhs, result, stop, partOperations<T>(true),
                [k](std::int64_t rows, std::int64_t columns, MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c) {
                    multiplyWithThreads(rows, columns, k, a, b, c, kThreadOperations);
                });
            return;
        }
        if (backend == ProductBackend::OneDnn) {
            multiplyInParts(m, n, k, lhs, rhs, result, stop, partOperations<T>(true),
                [&](std::int64_t rows, std::int64_t columns, MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c) {
                    if (!multiplyWithOneDnn(rows, columns, k, a, b, c))
                        multiplyWithEigen(rows, columns, k, a, b, c);
                });
            return;
        }
    }
    const bool withBlas = fits && backend != ProductBackend::Eigen && openBlas().isThere();
    multiplyInParts(m, n, k, lhs, rhs, result, stop, partOperations<T>(withBlas),
        [&](std::int64_t rows, std::int64_t columns, MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c) {
            if (!withBlas)
                return multiplyWithEigen(rows, columns, k, a, b, c);
            const auto transposeOf = [](bool transposed) { return transposed ? OpenBlas::kTranspose : OpenBlas::kNoTranspose; };
            s_callers.acquire();
            (openBlas().*gemm)(OpenBlas::kRowMajor, transposeOf(a.transposed), transposeOf(b.transposed), static_cast<int>(rows),
                static_cast<int>(columns), static_cast<int>(k), T(1), a.data, static_cast<int>(a.stride), b.data,
                static_cast<int>(b.stride), T(0), c.data, static_cast<int>(c.stride));
            s_callers.release();
        });
}

template <typename T>
void multiplyIntegers(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const T> lhs, MatrixView<const T> rhs,
    MatrixView<T> result, const ProductStop& stop)
{
    multiplyInParts(m, n, k, lhs, rhs, result, stop, partOperations<T>(false),
        [k](std::int64_t rows, std::int64_t columns, MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c) {
            multiplyWithEigen(rows, columns, k, a, b, c);
        });
}

} // namespace

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const float> lhs, MatrixView<const float> rhs,
    MatrixView<float> result, ProductStop stop)
{
    multiplyFloating(m, n, k, lhs, rhs, result, stop, &OpenBlas::sgemm);
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const double> lhs, MatrixView<const double> rhs,
    MatrixView<double> result, ProductStop stop)
{
    multiplyFloating(m, n, k, lhs, rhs, result, stop, &OpenBlas::dgemm);
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Bfloat16Operand lhs, Bfloat16Operand rhs, MatrixView<float> result,
    ProductStop stop)
{
    assert(multipliesBfloat16());
    if (m == 0 || n == 0)
        return;
    if (k == 0)
        return fillZero(m, n, result);
    multiplyInParts(m, n, k, lhs, rhs, result, stop, kBfloat16PartOperations,
        [k](std::int64_t rows, std::int64_t columns, Bfloat16Operand a, Bfloat16Operand b, MatrixView<float> c) {
            multiplyWithThreads(rows, columns, k, a, b, c, kBfloat16ThreadOperations);
        });
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const std::uint32_t> lhs,
    MatrixView<const std::uint32_t> rhs, MatrixView<std::uint32_t> result, ProductStop stop)
{
    multiplyIntegers(m, n, k, lhs, rhs, result, stop);
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const std::uint64_t> lhs,
    MatrixView<const std::uint64_t> rhs, MatrixView<std::uint64_t> result, ProductStop stop)
{
    multiplyIntegers(m, n, k, lhs, rhs, result, stop);
}

} // namespace meshwright
