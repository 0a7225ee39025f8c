// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/type.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// Hugging Face's safetensors, version 0.4: eight bytes, the length of a JSON header (little-endian); the header, which says of every tensor its
/// type, its shape and the bytes that it takes; then the tensors, row-major and little-endian, one after the other without gaps.

/// A tensor of a file. Offsets count from the file's start.
struct SafetensorsEntry {
    std::string name;
    TensorType type;
    std::int64_t offset = 0;
};

/// "F32", "BF16", "BOOL", ...; nothing for a type that the format does not have.
std::optional<std::string_view> safetensorsTypeName(DType dtype);

/// The bytes before the first tensor. The offsets of `entries`, which lie in the file in this order, are filled in. `metadata` is free text under
/// free names. Precondition: every type has a name.
std::string safetensorsHeader(std::vector<SafetensorsEntry>& entries, const std::map<std::string, std::string>& metadata);

} // namespace meshwright
