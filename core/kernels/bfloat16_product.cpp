// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compiled for AMX and AVX-512.
#include "core/kernels/bfloat16_product.h"

#include "core/kernels/panel_blocks.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace meshwright {

const Bfloat16Product& amxBfloat16Product();

namespace {

// The register tile: 2 x 2 tiles of sums, 32 x 32, from two tiles of each side; a tile has 16 rows of 64 bytes.
constexpr int kTileLines = 16;
constexpr int kTileDepth = 32; ///< terms
constexpr int kTileElements = kTileLines * kTileDepth;
constexpr int kWidth = 2 * kTileLines;
constexpr int kPairs = kTileDepth / 2;

constexpr std::int64_t kMostDepth = 1024; ///< terms that are summed in registers
constexpr std::int64_t kBlockLines = 256; ///< a packed block is 512 KiB, its sums with the other operand's lines 1 MiB
constexpr std::int64_t kWholeLines = 1024; ///< of the other operand
constexpr std::int64_t kHeldDepth = 8192; ///< terms of it, 16 MiB in all

using Word = std::uint16_t;
using Vector [[gnu::vector_size(64)]] = float;

// ---- packing

/// The lowest bits, as many as there are elements left, all at most.
template <typename Mask>
Mask maskOf(std::int64_t left)
{
    constexpr auto kAll = static_cast<std::int64_t>(8 * sizeof(Mask));
    return left >= kAll ? static_cast<Mask>(~Mask{0}) : left <= 0 ? Mask{0} : static_cast<Mask>((std::uint64_t{1} << left) - 1);
}

/// 32 terms of a line, of which `left` are there; the others are zero.
__m512i termsOf(const float* from, std::int64_t left)
{
    const __m512 low = _mm512_maskz_loadu_ps(maskOf<__mmask16>(left), from);
    const __m512 high = _mm512_maskz_loadu_ps(maskOf<__mmask16>(left - kPairs), from + kPairs);
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

__m512i termsOf(const Word* from, std::int64_t left)
{
    return _mm512_maskz_loadu_epi16(maskOf<__mmask32>(left), from);
}

/// 16 lines' pairs of terms from two rows, of which each has one term of `lines` lines.
__m512i pairsOf(const float* first, bool hasSecond, const float* second, std::int64_t lines)
{
    const __m512i together = _mm512_set_epi16(
        31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const auto mask = maskOf<__mmask16>(lines);
    const __m512 odd = hasSecond ? _mm512_maskz_loadu_ps(mask, second) : _mm512_setzero_ps();
    const __m512 even = _mm512_maskz_loadu_ps(mask, first);
    return _mm512_permutexvar_epi16(together, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even)));
}

__m512i pairsOf(const Word* first, bool hasSecond, const Word* second, std::int64_t lines)
{
    const __m512i together = _mm512_set_epi16(
        47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const auto mask = maskOf<__mmask32>(std::min<std::int64_t>(lines, kTileLines));
    const __m512i odd = hasSecond ? _mm512_maskz_loadu_epi16(mask, second) : _mm512_setzero_si512();
    return _mm512_permutex2var_epi16(_mm512_maskz_loadu_epi16(mask, first), together, odd);
}

/// 16 lines by 32 terms as a tile: of the left side, a row is a line; of the right one, a row is a pair of terms of all lines. What is not there
/// is zero.
template <bool IsRight, typename T>
void packTile(const Lines<T>& from, std::int64_t lines, std::int64_t depth, Word* to)
{
    Vector rows[kTileLines];
    const bool hasLinesInRow = from.depthStep != 1;
    if (hasLinesInRow) {
        for (int pair = 0; pair < kPairs; ++pair) {
            const std::int64_t left = depth - 2 * pair;
            rows[pair] = left <= 0
                ? Vector{}
                : reinterpret_cast<Vector>(pairsOf(from.at(0, 2 * pair), left > 1, from.at(0, 2 * pair + 1), lines));
        }
    } else {
        for (int line = 0; line < kTileLines; ++line)
            rows[line] = line < lines ? reinterpret_cast<Vector>(termsOf(from.at(line, 0), depth)) : Vector{};
    }
    if (hasLinesInRow != IsRight)
        turn<kTileLines>(rows);
    for (int row = 0; row < kTileLines; ++row)
        _mm512_store_ps(to + row * kTileDepth, rows[row]);
}

/// An operand's lines, in one of two types.
struct Side {
    bool isRounded;
    Lines<float> single;
    Lines<Word> rounded;
};

Side sideOf(const Bfloat16Operand& operand, bool hasLinesInRow)
{
    const std::int64_t lineStep = hasLinesInRow ? 1 : operand.stride;
    const std::int64_t depthStep = hasLinesInRow ? operand.stride : 1;
    return {operand.isRounded, {static_cast<const float*>(operand.data), lineStep, depthStep},
        {static_cast<const Word*>(operand.data), lineStep, depthStep}};
}

/// A panel of 32 lines is one register tile's operand after the other along the depth, and panels lie one after the other. The memory is read
/// in the order in which it lies, nearly.
template <bool IsRight, typename T>
void packLines(const Lines<T>& from, std::int64_t lines, std::int64_t depth, Word* to)
{
    const std::int64_t padded = ceilOf(depth, kTileDepth) * kTileDepth;
    const auto packOne = [&](std::int64_t line, std::int64_t d) {
        for (int half = 0; half < kWidth; half += kTileLines) {
            Word* tile = to + line * padded + d * kWidth + half * kTileDepth;
            if (line + half < lines)
                packTile<IsRight>(from.from(line + half, d), lines - line - half, depth - d, tile);
            else
                std::fill_n(tile, kTileElements, Word{0});
        }
    };
    if (from.depthStep == 1) {
        for (std::int64_t line = 0; line < lines; line += kWidth) {
            for (std::int64_t d = 0; d < depth; d += kTileDepth)
                packOne(line, d);
        }
    } else {
        for (std::int64_t d = 0; d < depth; d += kTileDepth) {
            for (std::int64_t line = 0; line < lines; line += kWidth)
                packOne(line, d);
        }
    }
}

template <bool IsRight>
void pack(const Side& side, std::int64_t first, std::int64_t lines, std::int64_t begin, std::int64_t depth, Word* to)
{
    if (side.isRounded)
        packLines<IsRight>(side.rounded.from(first, begin), lines, depth, to);
    else
        packLines<IsRight>(side.single.from(first, begin), lines, depth, to);
}

// ---- tiles

struct alignas(64) TileConfiguration { // as LDTILECFG reads it
    std::uint8_t palette = 1;
    std::uint8_t startRow = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t bytesOfRow[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);
constexpr TileConfiguration kConfiguration;

enum class Store { Set, Add, Stream };

/// What is fetched into the second-level cache meanwhile: some of the bytes for each step of a tile.
struct Ahead {
    const std::byte* at;
    std::int64_t step; ///< 0: the same again and again
};
constexpr int kAheadLines = 4; ///< cache lines for each step

/// The 32 x 32 sums of a panel of each side. `IsWide`, `IsHigh`: not only the first 16 columns, rows.
template <bool IsHigh, bool IsWide>
void sumTile(std::int64_t depth, const Word* a, const Word* b, float* sums, Ahead ahead)
{
    std::atomic_signal_fence(std::memory_order_seq_cst); // GCC 12 does not know that these instructions read memory
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (std::int64_t d = 0; d < depth; d += kTileDepth, a += 2 * kTileElements, b += 2 * kTileElements) {
        for (int line = 0; line < kAheadLines; ++line)
            __builtin_prefetch(ahead.at + line * 64, 0, 2);
        ahead.at += ahead.step;
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 64);
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (IsWide) {
            _tile_loadd(7, b + kTileElements, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if constexpr (IsHigh) {
            _tile_loadd(5, a + kTileElements, 64);
            _tile_dpbf16ps(2, 5, 6);
        }
        if constexpr (IsHigh && IsWide)
            _tile_dpbf16ps(3, 5, 7);
    }
    constexpr int kStride = kWidth * static_cast<int>(sizeof(float));
    _tile_stored(0, sums, kStride);
    _tile_stored(1, sums + kTileLines, kStride);
    _tile_stored(2, sums + kTileLines * kWidth, kStride);
    _tile_stored(3, sums + kTileLines * kWidth + kTileLines, kStride);
}

/// The rows and columns of such a tile that the result has, at most 32 of each.
void tile(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Word* a, const Word* b, Store store, float* c,
    std::int64_t stride, Ahead ahead)
{
    alignas(64) float sums[kWidth * kWidth];
    if (store == Store::Add) {
        for (std::int64_t row = 0; row < rows; ++row) {
            __builtin_prefetch(c + row * stride, 1, 3);
            __builtin_prefetch(c + row * stride + std::min<std::int64_t>(columns - 1, kTileLines), 1, 3);
        }
    }
    if (rows > kTileLines)
        columns > kTileLines ? sumTile<true, true>(depth, a, b, sums, ahead) : sumTile<true, false>(depth, a, b, sums, ahead);
    else
        columns > kTileLines ? sumTile<false, true>(depth, a, b, sums, ahead) : sumTile<false, false>(depth, a, b, sums, ahead);
    const auto lowMask = maskOf<__mmask16>(columns);
    const auto highMask = maskOf<__mmask16>(columns - kTileLines);
    const bool streams = store == Store::Stream && columns == kWidth;
    for (std::int64_t row = 0; row < rows; ++row) {
        float* to = c + row * stride;
        __m512 low = _mm512_load_ps(sums + row * kWidth);
        __m512 high = _mm512_load_ps(sums + row * kWidth + kTileLines);
        if (streams) {
            _mm512_stream_ps(to, low);
            _mm512_stream_ps(to + kTileLines, high);
            continue;
        }
        if (store == Store::Add) {
            low = _mm512_add_ps(_mm512_maskz_loadu_ps(lowMask, to), low);
            high = _mm512_add_ps(_mm512_maskz_loadu_ps(highMask, to + kTileLines), high);
        }
        _mm512_mask_storeu_ps(to, lowMask, low);
        _mm512_mask_storeu_ps(to + kTileLines, highMask, high);
    }
}

// ---- blocks

struct Product {
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t depth;
    Side lhs;
    Side rhs;
    float* result;
    std::int64_t stride;
    bool streams;
};

struct Range {
    std::int64_t first;
    std::int64_t size;
};

/// Calls `f` for pieces of a range.
template <typename F>
void forPieces(Range range, std::int64_t piece, F f)
{
    for (std::int64_t done = 0; done < range.size; done += piece)
        f(Range{range.first + done, std::min(piece, range.size - done)});
}

/// The packed lines of both sides, multiplied. `RowsWhole`: the first ones are the left side's.
template <bool RowsWhole>
void multiplyPanels(const Product& product, Range whole, const Word* wholePanels, Range block, const Word* blockPanels,
    std::int64_t depth, Store store)
{
    const std::int64_t padded = ceilOf(depth, kTileDepth) * kTileDepth;
    const std::int64_t panelBytes = padded * kWidth * static_cast<std::int64_t>(sizeof(Word));
    const std::int64_t aheadBytes = padded / kTileDepth * kAheadLines * 64; // that a tile fetches of the next panel
    for (std::int64_t i = 0; i < whole.size; i += kWidth) {
        const bool hasNext = i + kWidth < whole.size;
        const auto* next = reinterpret_cast<const std::byte*>(wholePanels + (hasNext ? i + kWidth : i) * padded);
        const auto aheadOf = [&](std::int64_t j) {
            const std::int64_t done = j / kWidth * aheadBytes;
            return hasNext && done < panelBytes ? Ahead{next + done, kAheadLines * 64} : Ahead{next, 0};
        };
        for (std::int64_t j = 0; j < block.size; j += kWidth) {
            const std::int64_t row = RowsWhole ? whole.first + i : block.first + j;
            const std::int64_t column = RowsWhole ? block.first + j : whole.first + i;
            const Word* x = wholePanels + i * padded;
            const Word* y = blockPanels + j * padded;
            const std::int64_t wholeLines = std::min<std::int64_t>(kWidth, whole.size - i);
            const std::int64_t blockLines = std::min<std::int64_t>(kWidth, block.size - j);
            tile(RowsWhole ? wholeLines : blockLines, RowsWhole ? blockLines : wholeLines, depth, RowsWhole ? x : y,
                RowsWhole ? y : x, store, product.result + row * product.stride + column, product.stride, aheadOf(j));
        }
    }
}

/// One side is packed as a whole, or nearly, the other block by block. `RowsWhole`: the left one is.
template <bool RowsWhole>
void multiplyBlocks(const Product& product, Word* wholePanels, Word* blockPanels)
{
    const Side& wholeSide = RowsWhole ? product.lhs : product.rhs;
    const Side& blockSide = RowsWhole ? product.rhs : product.lhs;
    const std::int64_t wholeLines = RowsWhole ? product.rows : product.columns;
    const std::int64_t blockLines = RowsWhole ? product.columns : product.rows;
    const std::int64_t depthPiece = pieceOf(product.depth, kMostDepth, kTileDepth);
    const std::int64_t wholePiece = pieceOf(wholeLines, kWholeLines, kWidth);
    const std::int64_t blockPiece = pieceOf(blockLines, kBlockLines, kWidth);
    forPieces({0, wholeLines}, wholePiece, [&](Range whole) {
        const std::int64_t paddedLines = ceilOf(whole.size, kWidth) * kWidth;
        forPieces({0, product.depth}, kHeldDepth / depthPiece * depthPiece, [&](Range held) {
            const auto heldPanels = [&](Range depth) { return wholePanels + (depth.first - held.first) * paddedLines; };
            forPieces(held, depthPiece, [&](Range depth) {
                pack<!RowsWhole>(wholeSide, whole.first, whole.size, depth.first, depth.size, heldPanels(depth));
            });
            forPieces({0, blockLines}, blockPiece, [&](Range block) {
                forPieces(held, depthPiece, [&](Range depth) {
                    pack<RowsWhole>(blockSide, block.first, block.size, depth.first, depth.size, blockPanels);
                    multiplyPanels<RowsWhole>(product, whole, heldPanels(depth), block, blockPanels, depth.size,
                        depth.first > 0       ? Store::Add
                            : product.streams ? Store::Stream
                                              : Store::Set);
                });
            });
        });
    });
}

constexpr std::int64_t kWholeBytes = kWholeLines * kHeldDepth * static_cast<std::int64_t>(sizeof(Word));
constexpr std::int64_t kBlockBytes = kBlockLines * kMostDepth * static_cast<std::int64_t>(sizeof(Word));
static_assert(kWholeLines % kWidth == 0 && kBlockLines % kWidth == 0 && kHeldDepth % kTileDepth == 0
    && kMostDepth % kTileDepth == 0); // no piece is larger than the largest

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Bfloat16Operand lhs, Bfloat16Operand rhs, MatrixView<float> result,
    std::byte* workspace)
{
    Product product{m, n, k, sideOf(lhs, lhs.transposed), sideOf(rhs, !rhs.transposed), result.data, result.stride, false};
    product.streams = k <= kMostDepth && m * n * static_cast<std::int64_t>(sizeof(float)) >= kStreamedBytes
        && result.stride % kTileLines == 0 && reinterpret_cast<std::uintptr_t>(result.data) % 64 == 0;
    auto* wholePanels = reinterpret_cast<Word*>(workspace);
    auto* blockPanels = reinterpret_cast<Word*>(workspace + kWholeBytes);
    _tile_loadconfig(&kConfiguration);
    if (m <= n)
        multiplyBlocks<true>(product, wholePanels, blockPanels);
    else
        multiplyBlocks<false>(product, wholePanels, blockPanels);
    _tile_release(); // what tiles hold would be saved whenever the thread gives its core away
    if (product.streams)
        _mm_sfence(); // whoever is told that the result is there sees it
}

constexpr Bfloat16Product kTable{"amx", multiply, kWholeBytes + kBlockBytes};

} // namespace

const Bfloat16Product& amxBfloat16Product()
{
    return kTable;
}

} // namespace meshwright
