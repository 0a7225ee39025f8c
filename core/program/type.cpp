// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/type.h"

#include "core/program/type_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace meshwright {

namespace {

constexpr std::size_t kDTypeCount = static_cast<std::size_t>(DType::Token) + 1;

const ElementName& namesOf(DType dtype)
{
    return elementNames()[static_cast<std::size_t>(dtype)];
}

} // namespace

const char* dtypeName(DType dtype)
{
    return namesOf(dtype).stableHlo.data(); // of a literal
}

const char* hloTypeName(DType dtype)
{
    return namesOf(dtype).hlo.data();
}

std::optional<DType> parseDType(std::string_view name)
{
    return parseDType(name, {TypeSpelling::StableHlo, TypeSpelling::Jax});
}

std::optional<DType> parseDType(std::string_view name, std::initializer_list<TypeSpelling> spellings)
{
    const auto found = findElementName(name, spellings);
    if (!found || *found >= kDTypeCount || static_cast<DType>(*found) == DType::Token)
        return std::nullopt;
    return static_cast<DType>(*found);
}

std::int64_t byteSize(DType dtype)
{
    return (namesOf(dtype).bits + 7) / 8;
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
