// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/builder.h"

#include <cstdint>
#include <optional>
#include <string>

namespace meshwright {

/// Which numbers of an array that is rounded to 8 bits have one scale, a power of two.
enum class SharedScale : std::uint8_t {
    Array, ///< all; gradients are rounded to F8E5M2, all else to F8E4M3FN (torchao's and Transformer Engine's scaling by tensors)
    Row, ///< those that a product sums up (torchao, rowwise)
    Block, ///< 128 of those that a product sums up; of a weight 128 x 128 (DeepSeek-V3, arXiv:2412.19437, section 3.3)
};

/// What an operand of a product is.
enum class OperandOf : std::uint8_t { Activation, Weight, Gradient };

/// `value` rounded to 8 bits and widened to its own type again: convert(convert(value scale S) to 8 bits) scale 1/S, where S is the largest power of two by
/// which nothing overflows. Products of two such values are products of 8-bit numbers, to the bit where they are accumulated in f32 at least; machines
/// that have those take them as such (XLA rewrites the same form), and its derivative is one of the unrounded value.
/// `contracted`: the dimensions over which products with it sum.
ValueId roundedToEightBits(
    Builder& builder, ValueId value, const std::vector<std::size_t>& contracted, SharedScale shared, OperandOf operand);

/// A value that `roundedToEightBits` made.
struct EightBitValue {
    ValueId source; ///< what was rounded
    SharedScale shared;
    OperandOf operand;
};
std::optional<EightBitValue> eightBitValue(const Function& function, ValueId value);

/// The 8-bit numbers that a value is made of by casts, scales, changes of shape and collectives alone; invalid: it is not.
ValueId eightBitSource(const Function& function, ValueId value);

/// What a value is of an array that is rounded to 8 bits.
enum class EightBitPart : std::uint8_t {
    Numbers, ///< of 8 bits
    Rounded, ///< widened again
    Largest, ///< the largest magnitude, from which the scale is made
    Scale,
};
struct EightBitPartOf {
    EightBitPart part;
    ValueId source; ///< the array
};

/// Looks through casts, changes of shape and collectives; nothing where a value is no such part.
std::optional<EightBitPartOf> eightBitPartOf(const Function& function, ValueId value);

/// "layers.ffn.up.w in 8 bits", "scale of act.layers": `source` names the array.
std::string eightBitText(EightBitPart part, const std::string& source);

/// True when both operands of a product are made of 8-bit numbers so.
bool isEightBitProduct(const Function& function, const Op& dot);

} // namespace meshwright
