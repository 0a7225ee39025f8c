// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/element_names.h"

#include <algorithm>
#include <iterator>

namespace meshwright {

namespace {

constexpr ElementName kNames[] = {
    // Those of DType, in its order.
    {"pred", "i1", "bool", "bool", 8},
    {"s8", "i8", "int8", "i8", 8},
    {"s16", "i16", "int16", "i16", 16},
    {"s32", "i32", "int32", "i32", 32},
    {"s64", "i64", "int64", "i64", 64},
    {"u8", "ui8", "uint8", "u8", 8},
    {"u16", "ui16", "uint16", "u16", 16},
    {"u32", "ui32", "uint32", "u32", 32},
    {"u64", "ui64", "uint64", "u64", 64},
    {"f16", "f16", "float16", "f16", 16},
    {"bf16", "bf16", "bfloat16", "bf16", 16},
    {"f32", "f32", "float32", "f32", 32},
    {"f64", "f64", "float64", "f64", 64},
    {"f8e4m3fn", "f8E4M3FN", "float8_e4m3fn", "f8_e4m3fn", 8},
    {"f8e5m2", "f8E5M2", "float8_e5m2", "f8_e5m2", 8},
    {"s4", "i4", "int4", "i4", 4},
    {"u4", "ui4", "uint4", "u4", 4},
    {"c64", "complex<f32>", "complex64", "c64", 64},
    {"c128", "complex<f64>", "complex128", "c128", 128},
    {"token", "token", "", "", 0},
    // Others.
    {"s1", "", "int1", "i1", 1},
    {"u1", "", "uint1", "u1", 1},
    {"s2", "i2", "int2", "i2", 2},
    {"u2", "ui2", "uint2", "u2", 2},
    {"f4e2m1fn", "f4E2M1FN", "float4_e2m1fn", "f4_e2m1fn", 4},
    {"f8e3m4", "f8E3M4", "float8_e3m4", "f8_e3m4", 8},
    {"f8e4m3", "f8E4M3", "float8_e4m3", "f8_e4m3", 8},
    {"f8e4m3b11fnuz", "f8E4M3B11FNUZ", "float8_e4m3b11fnuz", "f8_e4m3b11fnuz", 8},
    {"f8e4m3fnuz", "f8E4M3FNUZ", "float8_e4m3fnuz", "f8_e4m3fnuz", 8},
    {"f8e5m2fnuz", "f8E5M2FNUZ", "float8_e5m2fnuz", "f8_e5m2fnuz", 8},
    {"f8e8m0fnu", "f8E8M0FNU", "float8_e8m0fnu", "f8_e8m0fnu", 8},
    {"opaque", "", "", "", 0},
    {"", "", "float0", "float0", 0},
    {"", "", "key", "key", 0},
};

std::string_view spelled(const ElementName& names, TypeSpelling spelling)
{
    switch (spelling) {
    case TypeSpelling::Hlo:
        return names.hlo;
    case TypeSpelling::StableHlo:
        return names.stableHlo;
    case TypeSpelling::Jax:
        return names.jax;
    case TypeSpelling::JaxShort:
        return names.jaxShort;
    }
    return {};
}

} // namespace

std::span<const ElementName> elementNames()
{
    return kNames;
}

std::optional<std::size_t> findElementName(std::string_view name, std::initializer_list<TypeSpelling> spellings)
{
    const auto* const found = std::find_if(std::begin(kNames), std::end(kNames), [&](const ElementName& names) {
        return std::any_of(
            spellings.begin(), spellings.end(), [&](TypeSpelling spelling) { return spelled(names, spelling) == name; });
    });
    return name.empty() || found == std::end(kNames) ? std::nullopt
                                                     : std::optional(static_cast<std::size_t>(found - std::begin(kNames)));
}

} // namespace meshwright
