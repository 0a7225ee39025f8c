// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compiled once for each instruction set: MESHWRIGHT_PANEL_PRODUCT is the function that gives its table, MESHWRIGHT_PANEL_NAME its name.
#include "core/kernels/panel_product.h"

#include "core/kernels/panel_blocks.h"

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
constexpr std::int64_t kTurn = 8; // terms of a tile between two things that it does beside its sums
#else
constexpr int kLanes = 8;
constexpr int kHeight = 6;
constexpr std::int64_t kTurn = 16;
#endif
constexpr int kVectors = 2;
constexpr int kWidth = kVectors * kLanes;

using Vector [[gnu::vector_size(kLanes * sizeof(float))]] = float;
using LooseVector [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(sizeof(float)), gnu::may_alias]] = float;

constexpr std::int64_t kMostDepth = 512; ///< terms that are summed in registers
constexpr std::int64_t kBlockLines
    = 192; ///< a packed block is 384 KiB: it, the next one and what that is packed from stay in the second-level cache
constexpr std::int64_t kWholeLines = 1536; ///< of the other operand, 3 MiB
constexpr std::int64_t kRowStep = kMostDepth + 16; ///< between packed rows: they share no place of the first-level cache
constexpr std::int64_t kCacheLine = 16; ///< elements

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

/// How a side lies packed.
enum class Form {
    Rows, ///< of the left side: panels of `kHeight` rows, `kRowStep` apart; they need not be turned, since a term's elements are taken one by one
    Columns, ///< panels that have the elements of one term side by side, from lines that lie side by side
    Turned, ///< the same from lines that lie one after the other
};

template <bool IsLeft>
Form formOf(const Lines<float>& from)
{
    return from.lineStep == 1 ? Form::Columns : IsLeft ? Form::Rows : Form::Turned;
}

/// Elements from one panel to the next: a little more than a panel, since panels a power of two apart share few places of the caches.
template <bool IsLeft>
std::int64_t panelSize(Form form, std::int64_t depth)
{
    return form == Form::Rows ? kHeight * kRowStep : (IsLeft ? kHeight : kWidth) * depth + kCacheLine;
}

/// Places of what a tile does beside its sums, one for each turn: so far from the first.
struct Offsets {
    std::int64_t at[kMostDepth / kTurn];
};
constexpr Offsets kNoOffsets{};

/// Cache lines that a tile asks for.
struct Ahead {
    const float* first = nullptr;
    const Offsets* offsets = &kNoOffsets;
};

/// What a tile does beside its sums: for each turn it asks for a line of either kind, and copies a vector of the next block.
struct Beside {
    Ahead wholeLines; ///< of the side that is packed as a whole
    Ahead blockLines;
    bool copies = false;
    const float* from = nullptr;
    const Offsets* fromOffsets = &kNoOffsets;
    float* to = nullptr;
    const Offsets* toOffsets = &kNoOffsets;
};

constexpr Offsets everyLine()
{
    Offsets offsets{};
    for (std::int64_t i = 0; i < kMostDepth / kTurn; ++i)
        offsets.at[i] = i * kCacheLine;
    return offsets;
}
constexpr Offsets kEveryLine = everyLine();

/// Lines of one side that become panels, bit by bit: tiles of the block before ask for their memory, and a little later copy it beside their sums. What has to be
/// turned is packed between tiles, and what is left at once. The memory is looked at as rows, a few of them, the stretch, for each tile: so few pages
/// are looked up, and rows a power of two apart, which share few places of the caches, are still there when they are packed.
template <bool IsLeft>
class Packing {
public:
    static constexpr int kGrain = IsLeft ? kHeight : kWidth;

    Packing() = default;

    /// A tile asks for so many lines; 0: everything is packed at once.
    Packing(const Lines<float>& from, std::int64_t lines, std::int64_t depth, float* to, std::int64_t asks)
        : m_from(from)
        , m_form(formOf<IsLeft>(from))
        , m_lines(lines)
        , m_depth(depth)
        , m_to(to)
        , m_rows(m_form == Form::Columns ? depth : lines)
        , m_panelSize(panelSize<IsLeft>(m_form, depth))
        , m_columnWidth(m_form == Form::Columns ? std::min(kGrain, kLanes) : kLanes)
        , m_columns(m_form == Form::Columns ? lines / kGrain * kGrain / m_columnWidth : ceilOf(depth, m_columnWidth))
    {
        const std::int64_t rowLines = ceilOf((m_form == Form::Columns ? lines : depth), kCacheLine);
        m_stretch = asks / rowLines;
        std::int64_t at = 0;
        for (std::int64_t row = 0; row < m_stretch; ++row) {
            for (std::int64_t line = 0; line < rowLines; ++line)
                m_asks.at[at++] = row * rowStep() + line * kCacheLine;
        }
        std::fill(m_asks.at + at, m_asks.at + asks, std::int64_t{0});
    }

    /// Before the first tile: each may copy so many vectors, in whole rows. Turns to spare copy the last one again.
    void letTilesCopy(std::int64_t vectors)
    {
        if (m_form == Form::Turned || m_columnWidth != kLanes || m_columns == 0)
            return; // nor vectors that would lie across cache lines
        m_copied = vectors / m_columns;
        std::int64_t at = 0;
        for (std::int64_t row = 0; row < m_copied; ++row) {
            for (std::int64_t column = 0; column < m_columns; ++column, ++at) {
                m_sources.at[at] = source(row, column) - m_from.data;
                m_targets.at[at] = target(row, column) - m_to;
            }
        }
        for (; at > 0 && at < vectors; ++at) {
            m_sources.at[at] = m_sources.at[at - 1];
            m_targets.at[at] = m_targets.at[at - 1];
        }
    }

    /// What the next tile is to ask for.
    Ahead ask()
    {
        if (m_stretch == 0 || m_asked >= m_rows)
            return {m_from.data, &kNoOffsets};
        const Ahead ahead{m_from.data + m_asked * rowStep(), &m_asks};
        m_asked += m_stretch;
        return ahead;
    }

    /// Lets the next tile copy what was asked for some tiles ago, or packs it.
    void giveTo(Beside& beside)
    {
        beside.copies = false;
        if (m_stretch == 0)
            return;
        const std::int64_t asked = m_asked < m_rows ? m_asked - kLag * m_stretch : m_rows;
        if (m_form == Form::Turned) {
            if (m_packed + kGrain <= std::min(asked, m_lines))
                turnPanel();
            return;
        }
        if (m_copied == 0) {
            for (; m_packed + kGroup <= asked; m_packed += kGroup)
                copy(m_packed, m_packed + kGroup);
            return;
        }
        if (m_packed + m_copied
            > std::min(asked, m_rows - 1)) // vectors may reach past the end of a row, never past that of the last one
            return;
        beside.copies = true;
        beside.from = m_from.data + m_packed * rowStep();
        beside.to = m_to + m_packed * (m_form == Form::Rows ? kRowStep : kGrain);
        beside.fromOffsets = &m_sources;
        beside.toOffsets = &m_targets;
        m_packed += m_copied;
    }

    /// Packs what is missing.
    void finish()
    {
        while (m_form == Form::Turned && m_packed < m_rows)
            turnPanel();
        for (; m_packed < m_rows; m_packed += kGroup)
            copy(m_packed, std::min(m_rows, m_packed + kGroup));
        if (m_form != Form::Turned)
            padPanel();
    }

private:
    static constexpr std::int64_t kLag = 2; ///< tiles between asking and packing
    static constexpr std::int64_t kGroup = 8; ///< rows that are copied together, so that cache lines are read once

    std::int64_t rowStep() const { return m_form == Form::Columns ? m_from.depthStep : m_from.lineStep; }

    void turnPanel()
    {
        packTurned<kGrain>(m_from.from(m_packed, 0), m_lines - m_packed, m_depth, m_to + m_packed / kGrain * m_panelSize);
        m_packed += kGrain;
    }

    const float* source(std::int64_t row, std::int64_t column) const
    {
        return m_form == Form::Columns ? m_from.at(column * m_columnWidth, row) : m_from.at(row, column * m_columnWidth);
    }

    float* target(std::int64_t row, std::int64_t column) const
    {
        const std::int64_t first = column * m_columnWidth;
        return m_form == Form::Rows ? m_to + row * kRowStep + first
                                    : m_to + first / kGrain * m_panelSize + row * kGrain + first % kGrain;
    }

    void copy(std::int64_t first, std::int64_t end) const
    {
        for (std::int64_t column = 0; column < m_columns; ++column) {
            const std::int64_t width = m_form == Form::Rows ? m_depth - column * kLanes : m_columnWidth;
            if (width >= kLanes)
                copyColumn(first, end, column, std::integral_constant<int, kLanes>());
            else if (width == kHeight)
                copyColumn(first, end, column, std::integral_constant<int, kHeight>());
            else
                copyColumn(first, end, column, width);
        }
    }

    template <typename Width>
    [[gnu::always_inline]] void copyColumn(std::int64_t first, std::int64_t end, std::int64_t column, Width width) const
    {
        const float* from = source(first, column);
        float* to = target(first, column);
        const std::int64_t fromStep = rowStep();
        const std::int64_t toStep = m_form == Form::Rows ? kRowStep : kGrain;
        for (std::int64_t row = first; row < end; ++row, from += fromStep, to += toStep)
            std::memcpy(to, from, static_cast<std::size_t>(width) * sizeof(float));
    }

    /// The rest of lines that fill no whole panel, and zeros.
    void padPanel() const
    {
        const std::int64_t valid = m_lines % kGrain;
        const std::int64_t first = m_lines - valid;
        if (valid == 0)
            return;
        if (m_form == Form::Rows) {
            for (std::int64_t row = m_lines; row < first + kGrain; ++row)
                std::fill_n(m_to + row * kRowStep, m_depth, 0.0F);
            return;
        }
        for (std::int64_t d = 0; d < m_depth; ++d) {
            for (std::int64_t line = 0; line < kGrain; ++line)
                m_to[first / kGrain * m_panelSize + d * kGrain + line] = line < valid ? *m_from.at(first + line, d) : 0.0F;
        }
    }

    Lines<float> m_from{};
    Form m_form = Form::Columns;
    std::int64_t m_lines = 0;
    std::int64_t m_depth = 0;
    float* m_to = nullptr;
    std::int64_t m_rows = 0;
    std::int64_t m_panelSize = 0;
    int m_columnWidth = 1;
    std::int64_t m_columns = 0; ///< of whole panels
    std::int64_t m_stretch = 0; ///< rows; 0: asks for nothing
    std::int64_t m_asked = 0; ///< rows
    std::int64_t m_copied = 0; ///< rows that a tile copies; 0: none
    std::int64_t m_packed = 0;
    Offsets m_asks;
    Offsets m_sources;
    Offsets m_targets;
};

// ---- tiles

enum class Store { Set, Add };

/// One term of a tile's sums; elements of the left side are `Step` apart.
template <int Vectors, std::int64_t Step, std::size_t... Row>
[[gnu::always_inline]] inline void addTerm(Vector (*sums)[kVectors], const float* a, const float* b, std::index_sequence<Row...>)
{
    const Vector first = *reinterpret_cast<const Vector*>(b);
    if constexpr (Vectors == 2) {
        const Vector second = *reinterpret_cast<const Vector*>(b + kLanes);
        ((sums[Row][0] += a[Row * Step] * first, sums[Row][1] += a[Row * Step] * second), ...);
    } else {
        ((sums[Row][0] += a[Row * Step] * first), ...);
    }
}

/// Stores a tile's sums. Neither this nor the loop over the terms may have a sum in memory.
template <int Vectors, bool IsAdded, std::size_t... Row>
[[gnu::always_inline]] inline void storeTile(
    const Vector (*sums)[kVectors], float* c, std::int64_t stride, std::index_sequence<Row...>)
{
    const auto storeVector = [](float* to, const Vector& sum) __attribute__((always_inline))
    {
        if constexpr (IsAdded)
            *reinterpret_cast<LooseVector*>(to) += sum;
        else
            *reinterpret_cast<LooseVector*>(to) = sum;
    };
    const auto storeRow = [&](float* to, const Vector* row) __attribute__((always_inline))
    {
        storeVector(to, row[0]);
        if constexpr (Vectors == 2)
            storeVector(to + kLanes, row[1]);
    };
    (storeRow(c + static_cast<std::int64_t>(Row) * stride, sums[Row]), ...);
}

/// Rows times vectors of the result: the products of a panel of each side, summed over `depth` terms. `HasRest`: the terms do not make whole turns.
template <std::size_t Rows, int Vectors, bool IsLeftRows, bool Copies, bool HasRest>
void tile(std::int64_t depth, const float* a, const float* b, Store store, float* c, std::int64_t stride, const Beside& beside)
{
    constexpr auto kRows = std::make_index_sequence<Rows>();
    constexpr std::int64_t kStep = IsLeftRows ? kRowStep : 1; // between the left side's elements of a term
    constexpr std::int64_t kTerm = IsLeftRows ? 1 : kHeight; // between its terms
    constexpr std::int64_t kLastRow = Rows - 1;
    Vector sums[Rows][kVectors] = {};
    const std::int64_t turns = depth / kTurn;
    const std::int64_t firstFetch
        = turns - kLastRow - 5; // of the result's rows, one for each turn, so that they are there in the end
    for (std::int64_t turn = 0; turn < turns; ++turn) {
        __builtin_prefetch(beside.wholeLines.first + beside.wholeLines.offsets->at[turn], 0, 2);
        __builtin_prefetch(beside.blockLines.first + beside.blockLines.offsets->at[turn], 0, 2);
        const float* row = c + std::clamp<std::int64_t>(turn - firstFetch, 0, kLastRow) * stride;
        __builtin_prefetch(row, 1, 3);
        if constexpr (Vectors == 2)
            __builtin_prefetch(row + kLanes, 1, 3);
        if constexpr (Copies)
            *reinterpret_cast<LooseVector*>(beside.to + beside.toOffsets->at[turn])
                = *reinterpret_cast<const LooseVector*>(beside.from + beside.fromOffsets->at[turn]);
        [&]<std::size_t... Term>(std::index_sequence<Term...>) __attribute__((always_inline))
        {
            (addTerm<Vectors, kStep>(sums, a + Term * kTerm, b + Term * kWidth, kRows), ...);
        }
        (std::make_index_sequence<kTurn>());
        a += kTurn * kTerm;
        b += kTurn * kWidth;
    }
    if constexpr (HasRest) {
        for (std::int64_t d = turns * kTurn; d < depth; ++d, a += kTerm, b += kWidth)
            addTerm<Vectors, kStep>(sums, a, b, kRows);
    }
    if (store == Store::Add)
        storeTile<Vectors, true>(sums, c, stride, kRows);
    else
        storeTile<Vectors, false>(sums, c, stride, kRows);
}

/// A tile that is not an edge.
template <bool IsLeftRows>
void wholeTile(
    std::int64_t depth, const float* a, const float* b, Store store, float* c, std::int64_t stride, const Beside& beside)
{
    if (depth % kTurn != 0)
        return beside.copies ? tile<kHeight, kVectors, IsLeftRows, true, true>(depth, a, b, store, c, stride, beside)
                             : tile<kHeight, kVectors, IsLeftRows, false, true>(depth, a, b, store, c, stride, beside);
    return beside.copies ? tile<kHeight, kVectors, IsLeftRows, true, false>(depth, a, b, store, c, stride, beside)
                         : tile<kHeight, kVectors, IsLeftRows, false, false>(depth, a, b, store, c, stride, beside);
}

/// The same for a tile at the result's edge.
template <std::size_t Rows, int Vectors, bool IsLeftRows>
void edgeTile(std::int64_t rows, std::int64_t columns, std::int64_t depth, const float* a, const float* b, Store store, float* c,
    std::int64_t stride)
{
    alignas(64) float sums[Rows * kWidth];
    Beside nothing;
    nothing.wholeLines.first = a;
    nothing.blockLines.first = b;
    tile<Rows, Vectors, IsLeftRows, false, true>(depth, a, b, Store::Set, sums, kWidth, nothing);
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
            float& to = c[row * stride + column];
            to = store == Store::Add ? to + sums[row * kWidth + column] : sums[row * kWidth + column];
        }
    }
}

template <bool IsLeftRows>
void anyEdgeTile(std::int64_t rows, std::int64_t columns, std::int64_t depth, const float* a, const float* b, Store store,
    float* c, std::int64_t stride)
{
    constexpr int kThird = kHeight / 3;
    rows = std::min<std::int64_t>(rows, kHeight);
    columns = std::min<std::int64_t>(columns, kWidth);
    if (columns > kLanes) {
        if (rows <= kThird)
            return edgeTile<kThird, 2, IsLeftRows>(rows, columns, depth, a, b, store, c, stride);
        return edgeTile<kHeight, 2, IsLeftRows>(rows, columns, depth, a, b, store, c, stride);
    }
    if (rows <= kThird)
        return edgeTile<kThird, 1, IsLeftRows>(rows, columns, depth, a, b, store, c, stride);
    edgeTile<kHeight, 1, IsLeftRows>(rows, columns, depth, a, b, store, c, stride);
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
};

constexpr std::int64_t kWholeElements = (kWholeLines + kWidth) * kRowStep;
constexpr std::int64_t kBlockElements = (kBlockLines + kWidth) * kRowStep;

/// One side is packed as a whole, or nearly, the other block by block; there is room for two blocks. `RowsWhole`: the left side is the whole one.
template <bool RowsWhole>
void multiplyBlocks(const Product& product, float* wholePanels, float* blockPanels)
{
    using WholePacking = Packing<RowsWhole>;
    using BlockPacking = Packing<!RowsWhole>;
    constexpr int kWholeGrain = WholePacking::kGrain;
    constexpr int kBlockGrain = BlockPacking::kGrain;
    const Lines<float>& whole = RowsWhole ? product.lhs : product.rhs;
    const Lines<float>& block = RowsWhole ? product.rhs : product.lhs;
    const std::int64_t wholeLines = RowsWhole ? product.rows : product.columns;
    const std::int64_t blockLines = RowsWhole ? product.columns : product.rows;
    const std::int64_t depthPiece = pieceOf(product.depth, kMostDepth, 1);
    const std::int64_t wholePiece = pieceOf(wholeLines, kWholeLines, kWholeGrain);
    const std::int64_t blockPiece = pieceOf(blockLines, kBlockLines / kBlockGrain * kBlockGrain, kBlockGrain);
    const bool isLeftRows = formOf<true>(product.lhs) == Form::Rows;
    float* panels = blockPanels;
    float* nextPanels = blockPanels + kBlockElements;
    const auto packingOf = [&](std::int64_t d, std::int64_t b, float* to, std::int64_t turns) {
        BlockPacking packing(
            block.from(b, d), std::min(blockPiece, blockLines - b), std::min(depthPiece, product.depth - d), to, turns);
        packing.letTilesCopy(turns);
        return packing;
    };
    packingOf(0, 0, panels, 0).finish();
    for (std::int64_t w = 0; w < wholeLines; w += wholePiece) {
        const std::int64_t wide = std::min(wholePiece, wholeLines - w);
        for (std::int64_t d = 0; d < product.depth; d += depthPiece) {
            const std::int64_t depth = std::min(depthPiece, product.depth - d);
            const Store store = d > 0 ? Store::Add : Store::Set;
            const std::int64_t wholeSize = panelSize<RowsWhole>(formOf<RowsWhole>(whole), depth);
            const std::int64_t blockSize = panelSize<!RowsWhole>(formOf<!RowsWhole>(block), depth);
            // The whole side is packed in groups of panels, each of whole cache lines, while tiles of the group before ask for it.
            const std::int64_t group
                = RowsWhole && formOf<RowsWhole>(whole) == Form::Columns ? 3 * kCacheLine : std::int64_t{kWholeGrain};
            const auto wholePackingOf = [&](std::int64_t i) {
                return WholePacking(whole.from(w + i, d), std::min(group, wide - i), depth,
                    wholePanels + i / kWholeGrain * wholeSize, depth / kTurn);
            };
            for (std::int64_t b = 0; b < blockLines; b += blockPiece) {
                const std::int64_t lines = std::min(blockPiece, blockLines - b);
                BlockPacking next;
                const std::int64_t turns = depth / kTurn;
                if (b + blockPiece < blockLines)
                    next = packingOf(d, b + blockPiece, nextPanels, turns);
                else if (d + depthPiece < product.depth)
                    next = packingOf(d + depthPiece, 0, nextPanels, turns);
                else if (w + wholePiece < wholeLines)
                    next = packingOf(0, 0, nextPanels, turns);
                WholePacking nextGroup;
                if (b == 0)
                    nextGroup = wholePackingOf(0);
                Beside beside;
                for (std::int64_t i = 0; i < wide; i += kWholeGrain) {
                    if (b == 0 && i % group == 0) {
                        nextGroup.finish();
                        nextGroup = i + group < wide ? wholePackingOf(i + group) : WholePacking();
                    }
                    for (std::int64_t j = 0; j < lines; j += kBlockGrain) {
                        const std::int64_t rows = RowsWhole ? wide - i : lines - j;
                        const std::int64_t columns = RowsWhole ? lines - j : wide - i;
                        const float* x = wholePanels + i / kWholeGrain * wholeSize;
                        const float* y = panels + j / kBlockGrain * blockSize;
                        const float* left = RowsWhole ? x : y;
                        const float* right = RowsWhole ? y : x;
                        float* to = product.result + (RowsWhole ? w + i : b + j) * product.stride + (RowsWhole ? b + j : w + i);
                        if (rows < kHeight || columns < kWidth) {
                            isLeftRows ? anyEdgeTile<true>(rows, columns, depth, left, right, store, to, product.stride)
                                       : anyEdgeTile<false>(rows, columns, depth, left, right, store, to, product.stride);
                            continue;
                        }
                        beside.wholeLines
                            = b == 0 ? nextGroup.ask() : Ahead{x + wholeSize + j / kBlockGrain * turns * kCacheLine, &kEveryLine};
                        beside.blockLines = next.ask();
                        next.giveTo(beside);
                        isLeftRows ? wholeTile<true>(depth, left, right, store, to, product.stride, beside)
                                   : wholeTile<false>(depth, left, right, store, to, product.stride, beside);
                    }
                }
                next.finish();
                std::swap(panels, nextPanels);
            }
        }
    }
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const float> lhs, MatrixView<const float> rhs,
    MatrixView<float> result, std::byte* workspace)
{
    Product product{m, n, k, {lhs.data, lhs.stride, 1}, {rhs.data, 1, rhs.stride}, result.data, result.stride};
    if (lhs.transposed)
        std::swap(product.lhs.lineStep, product.lhs.depthStep);
    if (rhs.transposed)
        std::swap(product.rhs.lineStep, product.rhs.depthStep);
    auto* wholePanels = reinterpret_cast<float*>(workspace);
    float* blockPanels = wholePanels + kWholeElements;
    if (m <= n)
        multiplyBlocks<true>(product, wholePanels, blockPanels);
    else
        multiplyBlocks<false>(product, wholePanels, blockPanels);
}

constexpr PanelProduct kTable{
    MESHWRIGHT_PANEL_NAME, multiply, (kWholeElements + 2 * kBlockElements) * static_cast<std::int64_t>(sizeof(float))};

} // namespace

const PanelProduct& MESHWRIGHT_PANEL_PRODUCT()
{
    return kTable;
}

} // namespace meshwright
