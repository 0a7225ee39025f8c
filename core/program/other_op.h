// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

// What is known of the ops that are kept as they are (OpClass::Other).

/// What kind of op a kept one is.
enum class OtherClass : std::uint8_t {
    Unknown, ///< nothing is known: never dropped, nothing goes through it
    Elementwise, ///< all arrays have one shape, and element i of the results depends on element i of the operands only
    Named, ///< an op with a meaning, and most often a sharding rule, of its own
    Effect, ///< it does something besides making its results: never dropped
};

OtherClass otherClass(const OtherAttributes& other);

/// The kind that the name stands for; Other for a name of which no more is known than `otherClass` says. Builders give it to each op that is
/// added as an Other.
OpKind keptKind(const OtherAttributes& other);

/// The row of a kept kind in a table that `isTableOfKept`.
template <typename Row, std::size_t Count>
constexpr const Row& keptRow(const Row (&rows)[Count], OpKind kind)
{
    return rows[static_cast<std::size_t>(kind) + Count - kOpKindCount];
}

/// True for a table with a row for each kept kind, in their order; the kind is each row's first member.
template <typename Row, std::size_t Count>
constexpr bool isTableOfKept(const Row (&rows)[Count])
{
    bool isGood = kOpKindCount >= Count && (kOpKindCount == Count || !isKept(static_cast<OpKind>(kOpKindCount - Count - 1)));
    for (std::size_t i = 0; isGood && i < Count; ++i) {
        const auto& [kind, made] = rows[i];
        isGood = kind == static_cast<OpKind>(kOpKindCount - Count + i) && isKept(kind);
    }
    return isGood;
}

/// As the function of kinds, and true for kept ops that are known to work element by element.
bool isElementwise(const Op& op);

/// True for ops that stay though nobody uses what they make.
bool hasEffect(const OtherAttributes& other);

/// The name without its dialect: "sort".
std::string_view baseName(std::string_view name);

/// The target of a custom call; empty for other ops.
std::string_view callTarget(const OtherAttributes& other);

/// True for the calls at the border of a shard_map in XLA's form before Shardy: between them, arrays are one device's pieces.
bool isShardMapBorder(const OtherAttributes& other);

/// The integers of an attribute, or of an entry in it (`dimension_numbers.offset_dims`); empty when there is no such attribute.
std::span<const std::int64_t> integersAt(const KeptAttributes& attributes, std::string_view path);

/// The only integer of an attribute, or nothing.
std::optional<std::int64_t> integerAt(const KeptAttributes& attributes, std::string_view path);

/// The same as dimensions of an array of `rank` dimensions; nothing when one is out of range.
std::optional<std::vector<std::size_t>> dimsAt(const KeptAttributes& attributes, std::string_view path, std::size_t rank);

/// The word of an attribute that is an enumerator: `FFT` of `#stablehlo<fft_type FFT>`; empty when there is no such attribute.
std::string_view wordAt(const KeptAttributes& attributes, std::string_view name);

/// The numbers of a gather or a scatter from `dimension_numbers` or `scatter_dimension_numbers`; nothing when one is negative.
std::optional<IndexingDims> indexingDims(const KeptAttributes& attributes, bool isScatter);

/// How the dimensions of a convolution's arrays are numbered.
struct ConvolutionDims {
    struct Array {
        std::size_t outer = 0; ///< batch of the input and of the result, input features of the kernel
        std::size_t inner = 0; ///< features of the input and of the result, output features of the kernel
        std::vector<std::size_t> spatial;
    };
    Array input;
    Array kernel;
    Array result;
    std::int64_t batchGroups = 1;
    std::int64_t featureGroups = 1;
};

/// From `dimension_numbers`: `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, or `raw input_batch_dimension = 0, ..`, which names each of them; nothing when it
/// is of neither form.
std::optional<ConvolutionDims> convolutionDims(const KeptAttributes& attributes);

/// One window along each dimension of an array.
struct WindowDim {
    std::int64_t size = 1;
    std::int64_t stride = 1;
    std::int64_t low = 0; ///< padding
    std::int64_t high = 0;
    std::int64_t baseDilation = 1;
    std::int64_t windowDilation = 1;

    /// True when the windows are the elements themselves.
    bool isTrivial() const { return *this == WindowDim(); }
    friend bool operator==(const WindowDim&, const WindowDim&) = default;
};

/// The windows of reduce_window and select_and_scatter; nothing when an attribute does not fit the rank.
std::optional<std::vector<WindowDim>> windowDims(const KeptAttributes& attributes, std::size_t rank);

/// The reduction that a block of a reduce or a scatter of n arrays is: result i is its kind of argument i and argument n + i, for all i
/// the same. Nothing for any other block.
std::optional<ReduceKind> combinerIn(const Function& function, BlockId block);

/// What is wrong with an op of a known name: MW1301 to MW1304 as `resultTypes`.
std::optional<Problem> otherProblem(const OtherAttributes& other, std::span<const TensorType> operands);

} // namespace meshwright
