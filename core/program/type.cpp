// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace meshwright {

namespace {

struct DTypeInfo {
    DType dtype;
    const char* name;
    const char* jaxName;
    std::int64_t bytes;
};

constexpr std::array kDTypes = {
    DTypeInfo{DType::Pred, "i1", "bool", 1},
    DTypeInfo{DType::S8, "i8", "int8", 1},
    DTypeInfo{DType::S16, "i16", "int16", 2},
    DTypeInfo{DType::S32, "i32", "int32", 4},
    DTypeInfo{DType::S64, "i64", "int64", 8},
    DTypeInfo{DType::U8, "ui8", "uint8", 1},
    DTypeInfo{DType::U16, "ui16", "uint16", 2},
    DTypeInfo{DType::U32, "ui32", "uint32", 4},
    DTypeInfo{DType::U64, "ui64", "uint64", 8},
    DTypeInfo{DType::F16, "f16", "float16", 2},
    DTypeInfo{DType::BF16, "bf16", "bfloat16", 2},
    DTypeInfo{DType::F32, "f32", "float32", 4},
    DTypeInfo{DType::F64, "f64", "float64", 8},
    DTypeInfo{DType::F8E4M3FN, "f8E4M3FN", "float8_e4m3fn", 1},
    DTypeInfo{DType::F8E5M2, "f8E5M2", "float8_e5m2", 1},
    DTypeInfo{DType::S4, "i4", "int4", 1},
    DTypeInfo{DType::U4, "ui4", "uint4", 1},
    DTypeInfo{DType::C64, "complex<f32>", "complex64", 8},
    DTypeInfo{DType::C128, "complex<f64>", "complex128", 16},
    DTypeInfo{DType::Token, "token", "token", 0},
};

const DTypeInfo& infoOf(DType dtype)
{
    const DTypeInfo& info = kDTypes[static_cast<std::size_t>(dtype)];
    assert(info.dtype == dtype);
    return info;
}

} // namespace

const char* dtypeName(DType dtype)
{
    return infoOf(dtype).name;
}

std::optional<DType> parseDType(std::string_view name)
{
    for (const DTypeInfo& info : kDTypes) {
        if ((name == info.name || name == info.jaxName) && info.bytes > 0)
            return info.dtype;
    }
    return std::nullopt;
}

std::int64_t byteSize(DType dtype)
{
    return infoOf(dtype).bytes;
}

bool isFloating(DType dtype)
{
    return dtype >= DType::F16 && dtype <= DType::F8E5M2;
}

bool isInteger(DType dtype)
{
    return (dtype >= DType::S8 && dtype <= DType::U64) || dtype == DType::S4 || dtype == DType::U4;
}

bool isUnsigned(DType dtype)
{
    return (dtype >= DType::U8 && dtype <= DType::U64) || dtype == DType::U4;
}

bool isComplex(DType dtype)
{
    return dtype == DType::C64 || dtype == DType::C128;
}

bool isComputable(DType dtype)
{
    return dtype <= DType::F8E5M2;
}

DType realType(DType dtype)
{
    return dtype == DType::C64 ? DType::F32 : dtype == DType::C128 ? DType::F64 : dtype;
}

std::string typeText(const TensorType& type)
{
    return fmt::format("{}[{}]", dtypeName(type.dtype), fmt::join(type.shape, ","));
}

} // namespace meshwright
