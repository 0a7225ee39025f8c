// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace meshwright {

/// How products of a transformer's layers are taken in 8 bits: which values share a scale (32 bits), and when it is known. Norms, attention's
/// core, the embedding and the head stay as they are.
enum class Fp8Recipe : std::uint8_t {
    None, ///< not said
    Delayed, ///< a scale a tensor, of the largest values of steps before (NVIDIA Transformer Engine): operands are narrowed in one pass, and kept in 8 bits
    Current, ///< a scale a tensor, of its own largest value: one more pass looks for it first; weights are gathered in 8 bits (torchao, tensorwise)
    Rowwise, ///< a scale a row: narrowed along rows, and again along columns for the backward products; weights are gathered in 16 bits (torchao)
    Blockwise, ///< a scale for 1 x 128 values of an activation and 128 x 128 of a weight; what is kept for products, and tokens on their way to experts,
    ///< in 8 bits, moments in 16 (DeepSeek-V3, arXiv:2412.19437, section 3.3)
};

} // namespace meshwright
