// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/notation.h"
#include "core/support/text.h"

#include "tests/fuzz/targets.h"

namespace meshwright::fuzz {

namespace {

/// Enough for every shape of mesh, and few enough for device lists.
constexpr std::int64_t kMostDevices = 1 << 10;

void writeAndReadAgain(const ParsedSharding& parsed, Notation notation)
{
    const auto written = printSharding(parsed, notation);
    if (!written)
        return;
    SpellingContext context{parsed.mesh, parsed.sharding.dims.size()};
    const auto again = parseSharding(written->text, context);
    require(again.has_value(), "what is written can be read: " + written->text);
    require(again->sharding.dims.size() == parsed.sharding.dims.size(), "the rank stays: " + written->text);
    for (std::size_t dim = 0; dim < parsed.sharding.dims.size(); ++dim)
        require(shardCount(again->sharding.dims[dim].axes) == shardCount(parsed.sharding.dims[dim].axes),
            "each dimension is split into as many pieces: " + written->text);
}

} // namespace

/// A mesh on the first line (it may be empty), a rank on the second (it may be empty), then a sharding in any notation.
void feedSharding(std::string_view text)
{
    const std::string_view meshText = takeLine(text);
    const std::string_view rankText = takeLine(text);
    SpellingContext context;
    if (!meshText.empty()) {
        auto mesh = parseMesh(meshText);
        if (!mesh)
            return;
        context.mesh = *std::move(mesh);
    }
    if (const auto rank = parseInteger(rankText); rank && *rank >= 0 && *rank < 8)
        context.rank = static_cast<std::size_t>(*rank);
    const auto parsed = parseSharding(text, context);
    if (!parsed || parsed->mesh.deviceCount() > kMostDevices)
        return;
    for (const Notation notation : allNotations())
        writeAndReadAgain(*parsed, notation);
}

} // namespace meshwright::fuzz
