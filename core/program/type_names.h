// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/type.h"
#include "core/support/element_names.h"

#include <initializer_list>
#include <optional>
#include <string_view>

namespace meshwright {

/// As HLO writes it: "pred", "s32", "u32", "bf16", "f8e4m3fn", "c64".
const char* hloTypeName(DType dtype);

/// The type that has this name in one of the spellings; nothing for tokens and for types that DType lacks.
std::optional<DType> parseDType(std::string_view name, std::initializer_list<TypeSpelling> spellings);

} // namespace meshwright
