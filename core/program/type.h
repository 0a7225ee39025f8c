// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/shape.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace meshwright {

/// Element types, named as in StableHLO: i1, i32, ui32, bf16, f32 and so on. Those behind F8E5M2 are read, propagated and written, but
/// not computed with.
enum class DType : std::uint8_t {
    Pred,
    S8,
    S16,
    S32,
    S64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
    F8E4M3FN,
    F8E5M2,
    S4,
    U4,
    C64, ///< a pair of f32
    C128, ///< a pair of f64
    Token, ///< no array: orders ops with effects
};

/// As StableHLO writes it: "f32", "bf16", "i32", "ui32", "i1", "complex<f32>".
const char* dtypeName(DType dtype);

/// The type of a StableHLO name; also JAX's spellings (float32, bfloat16, int32, uint32, bool).
std::optional<DType> parseDType(std::string_view name);

/// Bytes that one element takes in memory (a truth value and an integer of 4 bits take one, a token none).
std::int64_t byteSize(DType dtype);

bool isFloating(DType dtype);
bool isInteger(DType dtype); ///< signed or unsigned; truth values are not
bool isUnsigned(DType dtype);
bool isComplex(DType dtype);

/// True for the types that ops are computed in.
bool isComputable(DType dtype);

/// The type of the real and the imaginary part of a complex type; any other type itself.
DType realType(DType dtype);

/// The type of a tensor: of a whole array in a Program, of one device's piece in a DeviceProgram.
struct TensorType {
    DType dtype = DType::F32;
    Shape shape;

    std::int64_t elements() const { return elementCount(shape); }
    std::int64_t bytes() const { return elements() * byteSize(dtype); }

    friend bool operator==(const TensorType&, const TensorType&) = default;
};

/// "f32[784,8192]", as JAX writes it.
std::string typeText(const TensorType& type);

} // namespace meshwright
