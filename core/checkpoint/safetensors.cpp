// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/safetensors.h"
#include "core/support/json_text.h"

#include <nlohmann/json.hpp>

#include <cassert>

namespace meshwright {

namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kHeaderAlignment = 64;

} // namespace

std::optional<std::string_view> safetensorsTypeName(DType dtype)
{
    switch (dtype) {
    case DType::Pred:
        return "BOOL";
    case DType::S8:
        return "I8";
    case DType::S16:
        return "I16";
    case DType::S32:
        return "I32";
    case DType::S64:
        return "I64";
    case DType::U8:
        return "U8";
    case DType::U16:
        return "U16";
    case DType::U32:
        return "U32";
    case DType::U64:
        return "U64";
    case DType::F16:
        return "F16";
    case DType::F8E4M3FN:
        return "F8_E4M3";
    case DType::F8E5M2:
        return "F8_E5M2";
    case DType::BF16:
        return "BF16";
    case DType::F32:
        return "F32";
    case DType::F64:
        return "F64";
    default:
        return std::nullopt;
    }
}

std::string safetensorsHeader(std::vector<SafetensorsEntry>& entries, const std::map<std::string, std::string>& metadata)
{
    nlohmann::ordered_json header;
    header["__metadata__"] = metadata;
    std::int64_t end = 0;
    for (SafetensorsEntry& entry : entries) {
        entry.offset = end;
        end += entry.type.bytes();
        header[entry.name] = {{"dtype", safetensorsTypeName(entry.type.dtype).value()}, {"shape", entry.type.shape},
            {"data_offsets", {entry.offset, end}}};
    }
    std::string text = jsonLine(header);
    while ((kLengthBytes + text.size()) % kHeaderAlignment != 0)
        text += ' ';

    std::string bytes(kLengthBytes, '\0');
    for (std::size_t i = 0; i < kLengthBytes; ++i)
        bytes[i] = static_cast<char>((text.size() >> (8 * i)) & 0xff);
    bytes += text;
    for (SafetensorsEntry& entry : entries)
        entry.offset += static_cast<std::int64_t>(bytes.size());
    return bytes;
}

} // namespace meshwright
