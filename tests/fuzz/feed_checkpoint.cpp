// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/manifest.h"
#include "core/kernels/npy.h"

#include "tests/fuzz/targets.h"

#include <nlohmann/json.hpp>
#include <zlib.h>

namespace meshwright::fuzz {

namespace {

/// The text as the body of a manifest whose checksum is right; itself when it is not JSON.
std::string withChecksum(std::string_view text)
{
    const auto body = nlohmann::json::parse(text, nullptr, false);
    if (body.is_discarded())
        return std::string(text);
    const std::string dumped = body.dump();
    const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(dumped.data()), dumped.size());
    return nlohmann::json{{"schema", "meshwright.checkpoint/1"}, {"crc32", sum}, {"checkpoint", body}}.dump();
}

} // namespace

/// A checkpoint's manifest. The checksum is made right, so that what it says is looked at.
void feedManifest(std::string_view text)
{
    (void)readManifest(text, "checkpoint.json");
    const auto read = readManifest(withChecksum(text), "checkpoint.json");
    if (!read)
        return;
    const auto again = readManifest(manifestText(*read), "again.json");
    require(again && manifestText(*again) == manifestText(*read), "a manifest that is written is read as it was");
}

/// An array as NumPy writes it.
void feedNpy(std::string_view bytes)
{
    const auto array = parseNpy(bytes, "fuzz.npy");
    if (!array)
        return;
    const auto again = parseNpy(npyBytes(*array), "again.npy");
    require(again && again->type() == array->type(), "an array that is written can be read");
}

} // namespace meshwright::fuzz
