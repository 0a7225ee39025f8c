// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compiled once for each instruction set: MESHWRIGHT_PANEL_PRODUCT is the function that gives its table, MESHWRIGHT_PANEL_NAME its name.
#include "core/runtime/panel_product.h"

#include "core/runtime/panel_blocks.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace meshwright {

const PanelProduct& MESHWRIGHT_PANEL_PRODUCT();

namespace {

// The register tile: kHeight rows of two vectors; what is left of the registers holds two vectors of the right side and an element of the left.
#if defined(__AVX512F__)
constexpr int kLanes = 16;
constexpr int kHeight = 12;
#else
constexpr int kLanes = 8;
constexpr int kHeight = 6;
#endif
constexpr int kVectors = 2;
constexpr int kWidth = kVectors * kLanes;

using Vector [[gnu::vector_size(kLanes * sizeof(float))]] = float;
using LooseVector [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(sizeof(float)), gnu::may_alias]] = float;

constexpr std::int64_t kMostDepth = 512; ///< terms that are summed in registers
constexpr std::int64_t kBlockLines
    = 256; ///< a packed block is 512 KiB: with what the next one is packed from, half of a large second-level cache
constexpr std::int64_t kWholeLines = 1536; ///< of the other operand, 3 MiB
constexpr std::int64_t kStepsAhead = 8; ///< terms for each line that is fetched ahead

// ---- packing

/// A panel from lines that lie one after the other: element d of line l comes to to[d * Width + l]. Lines from `valid` on are zero.
template <int Width>
void packTurned(const Lines<float>& from, std::int64_t valid, std::int64_t depth, float* to)
{
    std::int64_t d = 0;
    for (; d + kLanes <= depth; d += kLanes) {
        for (int first = 0; first < Width; first += kLanes) {
            constexpr int kKept = Width < kLanes ? Width : kLanes;
            Vector rows[kLanes];
            for (int r = 0; r < kLanes; ++r)
                rows[r]
                    = r < kKept && first + r < valid ? *reinterpret_cast<const LooseVector*>(from.at(first + r, d)) : Vector{};
            turn<kLanes>(rows);
            for (int r = 0; r < kLanes; ++r)
                std::memcpy(to + (d + r) * Width + first, &rows[r], kKept * sizeof(float));
        }
    }
    for (; d < depth; ++d) {
        for (std::int64_t line = 0; line < Width; ++line)
            to[d * Width + line] = line < valid ? *from.at(line, d) : 0.0F;
    }
}

/// The same from lines that lie side by side.
template <int Width>
void packCopied(const Lines<float>& from, std::int64_t valid, std::int64_t depth, float* to)
{
    for (std::int64_t d = 0; d < depth; ++d) {
        if (valid >= Width) {
            std::memcpy(to + d * Width, from.at(0, d), Width * sizeof(float));
        } else {
            for (std::int64_t line = 0; line < Width; ++line)
                to[d * Width + line] = line < valid ? *from.at(line, d) : 0.0F;
        }
    }
}

/// Lines first .. first + lines - 1, depths begin .. begin + depth - 1, as panels of `Width` lines one after the other.
template <int Width>
void pack(const Lines<float>& from, std::int64_t first, std::int64_t lines, std::int64_t begin, std::int64_t depth, float* to)
{
    for (std::int64_t line = 0; line < lines; line += Width) {
        const Lines<float> panel = from.from(first + line, begin);
        if (from.lineStep == 1)
            packCopied<Width>(panel, lines - line, depth, to + line * depth);
        else
            packTurned<Width>(panel, lines - line, depth, to + line * depth);
    }
}

// ---- fetching ahead

/// Memory that is wanted soon, column of cache lines by column.
class Ahead {
public:
    static constexpr std::int64_t kLine = 64;

    Ahead() = default;
    Ahead(const Lines<float>& from, std::int64_t first, std::int64_t lines, std::int64_t begin, std::int64_t depth)
        : m_base(reinterpret_cast<std::uintptr_t>(from.at(first, begin)))
        , m_step(static_cast<std::uintptr_t>(std::max(from.lineStep, from.depthStep)) * sizeof(float))
        , m_rows(from.lineStep == 1 ? depth : lines)
        , m_columns(ceilOf((from.lineStep == 1 ? lines : depth) * static_cast<std::int64_t>(sizeof(float)), kLine))
    {
    }

    struct Part {
        std::uintptr_t at = 0;
        std::uintptr_t step = 0;
    };

    /// The next `rows` rows of a column; the same place again and again once there are no more.
    Part take(std::int64_t rows)
    {
        if (m_column == m_columns)
            return {m_base, 0};
        const Part part{
            m_base + static_cast<std::uintptr_t>(m_column * kLine) + static_cast<std::uintptr_t>(m_row) * m_step, m_step};
        m_row += rows;
        if (m_row >= m_rows) {
            m_row = 0;
            ++m_column;
        }
        return part;
    }

private:
    std::uintptr_t m_base = 0;
    std::uintptr_t m_step = 0;
    std::int64_t m_rows = 0;
    std::int64_t m_columns = 0;
    std::int64_t m_row = 0;
    std::int64_t m_column = 0;
};

// ---- tiles

enum class Store { Set, Add, Stream };

[[gnu::always_inline]] inline void stream(float* to, Vector value)
{
#if defined(__AVX512F__)
    _mm512_stream_ps(to, value);
#else
    _mm256_stream_ps(to, value);
#endif
}

template <int Vectors, std::size_t... Row>
[[gnu::always_inline]] inline void addTerm(Vector (*sums)[kVectors], const float* a, const float* b, std::index_sequence<Row...>)
{
    const Vector first = *reinterpret_cast<const Vector*>(b);
    if constexpr (Vectors == 2) {
        const Vector second = *reinterpret_cast<const Vector*>(b + kLanes);
        ((sums[Row][0] += a[Row] * first, sums[Row][1] += a[Row] * second), ...);
    } else {
        ((sums[Row][0] += a[Row] * first), ...);
    }
}

/// Rows times vectors of the result: the products of a panel of each side, summed over `depth` terms.
template <std::size_t Rows, int Vectors>
void tile(std::int64_t depth, const float* a, const float* b, Store store, float* c, std::int64_t stride, Ahead::Part ahead)
{
    constexpr auto kRows = std::make_index_sequence<Rows>();
    Vector sums[Rows][kVectors] = {};
    if (store == Store::Add) {
        for (std::size_t row = 0; row < Rows; ++row) {
            for (int v = 0; v < Vectors; ++v)
                __builtin_prefetch(c + static_cast<std::int64_t>(row) * stride + v * kLanes, 1, 3);
        }
    }
    std::int64_t d = 0;
    for (; d + kStepsAhead <= depth; d += kStepsAhead) {
        __builtin_prefetch(reinterpret_cast<const void*>(ahead.at), 0, 2);
        ahead.at += ahead.step;
        [&]<std::size_t... Step>(std::index_sequence<Step...>) __attribute__((always_inline))
        {
            (addTerm<Vectors>(sums, a + Step * kHeight, b + Step * kWidth, kRows), ...);
        }
        (std::make_index_sequence<kStepsAhead>());
        a += kStepsAhead * kHeight;
        b += kStepsAhead * kWidth;
    }
    for (; d < depth; ++d, a += kHeight, b += kWidth)
        addTerm<Vectors>(sums, a, b, kRows);
    for (std::size_t row = 0; row < Rows; ++row) {
        for (int v = 0; v < Vectors; ++v) {
            float* to = c + static_cast<std::int64_t>(row) * stride + v * kLanes;
            if (store == Store::Stream)
                stream(to, sums[row][v]);
            else if (store == Store::Add)
                *reinterpret_cast<LooseVector*>(to) += sums[row][v];
            else
                *reinterpret_cast<LooseVector*>(to) = sums[row][v];
        }
    }
}

/// The same for a tile at the result's edge.
template <std::size_t Rows, int Vectors>
void edgeTile(std::int64_t rows, std::int64_t columns, std::int64_t depth, const float* a, const float* b, Store store, float* c,
    std::int64_t stride, Ahead::Part ahead)
{
    alignas(64) float sums[Rows * kWidth];
    tile<Rows, Vectors>(depth, a, b, Store::Set, sums, kWidth, ahead);
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
            float& to = c[row * stride + column];
            to = store == Store::Add ? to + sums[row * kWidth + column] : sums[row * kWidth + column];
        }
    }
}

void anyTile(std::int64_t rows, std::int64_t columns, std::int64_t depth, const float* a, const float* b, Store store, float* c,
    std::int64_t stride, Ahead::Part ahead)
{
    constexpr int kThird = kHeight / 3;
    if (rows >= kHeight && columns >= kWidth)
        return tile<kHeight, 2>(depth, a, b, store, c, stride, ahead);
    if (columns > kLanes) {
        if (rows <= kThird)
            return edgeTile<kThird, 2>(std::min<std::int64_t>(rows, kThird), std::min<std::int64_t>(columns, kWidth), depth, a, b,
                store, c, stride, ahead);
        return edgeTile<kHeight, 2>(
            std::min<std::int64_t>(rows, kHeight), std::min<std::int64_t>(columns, kWidth), depth, a, b, store, c, stride, ahead);
    }
    if (rows <= kThird)
        return edgeTile<kThird, 1>(rows, columns, depth, a, b, store, c, stride, ahead);
    edgeTile<kHeight, 1>(std::min<std::int64_t>(rows, kHeight), columns, depth, a, b, store, c, stride, ahead);
}

// ---- blocks

struct Product {
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t depth;
    Lines<float> lhs;
    Lines<float> rhs;
    float* result;
    std::int64_t stride;
    bool streams;
};

/// One side is packed as a whole, or nearly, the other block by block. `RowsWhole`: the left one is.
template <bool RowsWhole>
void multiplyBlocks(const Product& product, float* wholePanels, float* blockPanels)
{
    constexpr int kWholeGrain = RowsWhole ? kHeight : kWidth;
    constexpr int kBlockGrain = RowsWhole ? kWidth : kHeight;
    const Lines<float>& whole = RowsWhole ? product.lhs : product.rhs;
    const Lines<float>& block = RowsWhole ? product.rhs : product.lhs;
    const std::int64_t wholeLines = RowsWhole ? product.rows : product.columns;
    const std::int64_t blockLines = RowsWhole ? product.columns : product.rows;
    const std::int64_t depthPiece = pieceOf(product.depth, kMostDepth, 1);
    const std::int64_t wholePiece = pieceOf(wholeLines, kWholeLines, kWholeGrain);
    const std::int64_t blockPiece = pieceOf(blockLines, kBlockLines / kBlockGrain * kBlockGrain, kBlockGrain);
    for (std::int64_t w = 0; w < wholeLines; w += wholePiece) {
        const std::int64_t wide = std::min(wholePiece, wholeLines - w);
        for (std::int64_t d = 0; d < product.depth; d += depthPiece) {
            const std::int64_t depth = std::min(depthPiece, product.depth - d);
            const Store store = d > 0 ? Store::Add : product.streams ? Store::Stream : Store::Set;
            pack<kWholeGrain>(whole, w, wide, d, depth, wholePanels);
            for (std::int64_t b = 0; b < blockLines; b += blockPiece) {
                const std::int64_t lines = std::min(blockPiece, blockLines - b);
                pack<kBlockGrain>(block, b, lines, d, depth, blockPanels);
                Ahead ahead;
                if (b + blockPiece < blockLines)
                    ahead = Ahead(block, b + blockPiece, std::min(blockPiece, blockLines - b - blockPiece), d, depth);
                else if (d + depthPiece < product.depth)
                    ahead = Ahead(block, 0, std::min(blockPiece, blockLines), d + depthPiece,
                        std::min(depthPiece, product.depth - d - depthPiece));
                for (std::int64_t i = 0; i < wide; i += kWholeGrain) {
                    for (std::int64_t j = 0; j < lines; j += kBlockGrain) {
                        const std::int64_t row = RowsWhole ? w + i : b + j;
                        const std::int64_t column = RowsWhole ? b + j : w + i;
                        const float* x = wholePanels + i * depth;
                        const float* y = blockPanels + j * depth;
                        anyTile(RowsWhole ? wide - i : lines - j, RowsWhole ? lines - j : wide - i, depth, RowsWhole ? x : y,
                            RowsWhole ? y : x, store, product.result + row * product.stride + column, product.stride,
                            ahead.take(depth / kStepsAhead));
                    }
                }
            }
        }
    }
}

constexpr std::int64_t kWholeBytes = (kWholeLines + kWidth) * kMostDepth * static_cast<std::int64_t>(sizeof(float));
constexpr std::int64_t kBlockBytes = (kBlockLines + kWidth) * kMostDepth * static_cast<std::int64_t>(sizeof(float));

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const float> lhs, MatrixView<const float> rhs,
    MatrixView<float> result, std::byte* workspace)
{
    Product product{m, n, k, {lhs.data, lhs.stride, 1}, {rhs.data, 1, rhs.stride}, result.data, result.stride, false};
    if (lhs.transposed)
        std::swap(product.lhs.lineStep, product.lhs.depthStep);
    if (rhs.transposed)
        std::swap(product.rhs.lineStep, product.rhs.depthStep);
    const std::int64_t bytes = m * n * static_cast<std::int64_t>(sizeof(float));
    product.streams = k <= kMostDepth && bytes >= kStreamedBytes && result.stride % kLanes == 0
        && reinterpret_cast<std::uintptr_t>(result.data) % (kLanes * sizeof(float)) == 0;
    auto* wholePanels = reinterpret_cast<float*>(workspace);
    auto* blockPanels = reinterpret_cast<float*>(workspace + kWholeBytes);
    if (m <= n)
        multiplyBlocks<true>(product, wholePanels, blockPanels);
    else
        multiplyBlocks<false>(product, wholePanels, blockPanels);
    if (product.streams)
        _mm_sfence(); // whoever is told that the result is there sees it
}

constexpr PanelProduct kTable{MESHWRIGHT_PANEL_NAME, multiply, kWholeBytes + kBlockBytes};

} // namespace

const PanelProduct& MESHWRIGHT_PANEL_PRODUCT()
{
    return kTable;
}

} // namespace meshwright
