// SPDX-License-Identifier: GPL-3.0-or-later
//
// Products of square matrices in single precision on one thread, beside what the processor's multiply-and-add units can do at most; and products
// with operands rounded to bfloat16, where the backend multiplies these itself, beside the same in single precision.
// Usage: bench_products [repetitions]
// Prints for each: gemm,ours <backend>,t1,square,M,N,K,median GFLOP/s,min,max
// and: peak-share,ours <backend>,M,N,K,<median of its rates, each divided by the peak measured just before and after>
// For bfloat16: gemm-bf16,ours <backend>,t1,<which>,M,N,K,median GFLOP/s,min,max,GFLOP/s in single precision,<median of the ratios>

#include "core/kernels/host_array.h"
#include "core/kernels/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace meshwright;

namespace {

double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double medianOf(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

volatile float s_sink; ///< keeps results from being optimised away

constexpr std::int64_t kSmallestArena = std::int64_t{4} << 20; ///< elements
constexpr int kChains = 12; ///< sums that do not wait for each other

#if defined(__x86_64__)
// FLOPs of so many rounds of multiplications and additions in registers.

[[gnu::target("avx512f")]] double wide(std::int64_t rounds)
{
    __m512 sums[kChains];
    for (__m512& sum : sums)
        sum = _mm512_set1_ps(1.0F);
    const __m512 factor = _mm512_set1_ps(0.999999F);
    const __m512 term = _mm512_set1_ps(1e-7F);
    for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
        for (__m512& sum : sums)
            sum = _mm512_fmadd_ps(sum, factor, term);
    }
    for (const __m512& sum : sums)
        s_sink = _mm512_cvtss_f32(sum);
    return 2.0 * 16.0 * kChains * static_cast<double>(rounds);
}

[[gnu::target("avx2,fma")]] double narrow(std::int64_t rounds)
{
    __m256 sums[kChains];
    for (__m256& sum : sums)
        sum = _mm256_set1_ps(1.0F);
    const __m256 factor = _mm256_set1_ps(0.999999F);
    const __m256 term = _mm256_set1_ps(1e-7F);
    for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
        for (__m256& sum : sums)
            sum = _mm256_fmadd_ps(sum, factor, term);
    }
    for (const __m256& sum : sums)
        s_sink = _mm256_cvtss_f32(sum);
    return 2.0 * 8.0 * kChains * static_cast<double>(rounds);
}
#endif

/// Multiplications and additions a second in about 5 ms; 0 where it is not known how to reach the peak.
double peak()
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 0.0;
    constexpr std::int64_t kRounds = 2000000;
    const double start = now();
    const double flops = __builtin_cpu_supports("avx512f") ? wide(kRounds) : narrow(kRounds);
    return flops / (now() - start);
#else
    return 0.0;
#endif
}

void measure(std::int64_t size, int repetitions)
{
    // In one stretch of memory, as a device's arrays lie in its arena.
    const std::int64_t elements = size * size;
    AlignedBytes arena(std::max(3 * elements, kSmallestArena) * static_cast<std::int64_t>(sizeof(float)));
    auto* const lhs = reinterpret_cast<float*>(arena.data());
    float* const rhs = lhs + elements;
    float* const result = rhs + elements;
    std::fill_n(lhs, elements, 1.0F);
    std::fill_n(rhs, elements, 0.5F);
    const double flops = 2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
    const int times = std::max(1, static_cast<int>(2e9 / flops)); // a tenth of a second or less
    std::vector<double> rates;
    std::vector<double> shares;
    double before = peak();
    for (int i = 0; i <= repetitions; ++i) {
        const double start = now();
        for (int j = 0; j < times; ++j)
            multiply(size, size, size, {lhs, size, false}, {rhs, size, false}, {result, size, false});
        const double rate = flops * times / (now() - start);
        const double after = peak();
        if (i > 0) { // the first warms up
            rates.push_back(rate);
            shares.push_back(before + after > 0.0 ? rate / (0.5 * (before + after)) : 0.0);
        }
        before = after;
    }
    s_sink = result[0];
    const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
    const char* backend = productBackendName(singlePrecisionBackend());
    fmt::print("gemm,ours {},t1,square,{},{},{},{:.1f},{:.1f},{:.1f}\n", backend, size, size, size, medianOf(rates) / 1e9,
        *least / 1e9, *most / 1e9);
    fmt::print("peak-share,ours {},{},{},{},{:.3f}\n", backend, size, size, size, medianOf(shares));
    std::fflush(stdout);
}

/// A product on one device: the left side as [k, m] or the right one as [n, k] in memory where it is transposed.
struct Case {
    const char* name;
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    bool lhsTransposed = false;
    bool rhsTransposed = false;
};

/// Single precision and bfloat16 in turns.
void measureBfloat16(const Case& product, int repetitions)
{
    const auto [name, m, n, k, lhsTransposed, rhsTransposed] = product;
    const std::vector<float> left(static_cast<std::size_t>(m * k), 1.0F);
    const std::vector<float> right(static_cast<std::size_t>(k * n), 0.5F);
    std::vector<float> result(static_cast<std::size_t>(m * n));
    const MatrixView<const float> lhs{left.data(), lhsTransposed ? m : k, lhsTransposed};
    const MatrixView<const float> rhs{right.data(), rhsTransposed ? k : n, rhsTransposed};
    const MatrixView<float> to{result.data(), n, false};
    const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const auto rateOf = [&](auto multiplyOnce) {
        const int times = std::max(1, static_cast<int>(2e9 / flops));
        const double start = now();
        for (int i = 0; i < times; ++i)
            multiplyOnce();
        return flops * times / (now() - start);
    };
    std::vector<double> single;
    std::vector<double> rounded;
    std::vector<double> ratios;
    for (int i = 0; i <= repetitions; ++i) {
        const double before = rateOf([&] { multiply(m, n, k, lhs, rhs, to); });
        const double rate = rateOf([&] { multiply(m, n, k, Bfloat16Operand(lhs), Bfloat16Operand(rhs), to); });
        if (i == 0)
            continue; // warms up
        single.push_back(before);
        rounded.push_back(rate);
        ratios.push_back(rate / before);
    }
    s_sink = result[0];
    const auto [least, most] = std::minmax_element(rounded.begin(), rounded.end());
    fmt::print("gemm-bf16,ours {},t1,{},{},{},{},{:.1f},{:.1f},{:.1f},{:.1f},{:.2f}\n", productBackendName(productBackend()),
        name, m, n, k, medianOf(rounded) / 1e9, *least / 1e9, *most / 1e9, medianOf(single) / 1e9, medianOf(ratios));
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv)
{
    const int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
    if (const auto chosen = chooseProductsFromEnvironment(); !chosen) {
        fmt::print(stderr, "{}\n", describe(chosen.error()));
        return 1;
    }
    for (const std::int64_t size : {256, 512, 1024, 2048, 4096})
        measure(size, repetitions);
    if (!multipliesBfloat16())
        return 0;
    for (const std::int64_t size : {64, 512, 1024, 2048, 4096})
        measureBfloat16({"square", size, size, size}, repetitions);
    // What a device of eight multiplies in the notebook's step.
    measureBfloat16({"notebook forward", 1024, 8192, 8192}, repetitions);
    measureBfloat16({"notebook gradient of activations", 1024, 8192, 8192, false, true}, repetitions);
    measureBfloat16({"notebook gradient of weights", 8192, 8192, 1024, true, false}, repetitions);
    measureBfloat16({"notebook first layer", 1024, 8192, 784}, repetitions);
    measureBfloat16({"notebook last layer", 1024, 10, 8192}, repetitions);
    return 0;
}
