// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

namespace meshwright {

/// Where a name of an element type is written.
enum class TypeSpelling : std::uint8_t {
    Hlo, ///< "pred", "s8", "u32", "bf16", "f8e4m3fn", "c64"
    StableHlo, ///< "i1", "i8", "ui32", "bf16", "f8E4M3FN", "complex<f32>"
    Jax, ///< "bool", "int8", "uint32", "bfloat16", "float8_e4m3fn", "complex64"
    JaxShort, ///< of printed types: "bool", "i8", "u32", "bf16", "f8_e4m3fn", "c64"
};

/// The names of an element type; empty where there is none.
struct ElementName {
    std::string_view hlo;
    std::string_view stableHlo;
    std::string_view jax;
    std::string_view jaxShort;
    std::int64_t bits = 0; ///< of one element; 0: there are no elements
};

/// All element types. The first ones are those of `DType` (core/program/type.h), in its order; the others are only known by name and size.
/// Sources: openxla/xla, xla/xla_data.proto (PrimitiveType); openxla/stablehlo, docs/spec.md (Types); jax-ml/jax, jax/_src/dtypes.py.
std::span<const ElementName> elementNames();

/// The place in `elementNames` of the type that has this name in one of the spellings; nothing for other names.
std::optional<std::size_t> findElementName(std::string_view name, std::initializer_list<TypeSpelling> spellings);

} // namespace meshwright
