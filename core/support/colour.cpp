// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/colour.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

namespace meshwright {

Colour colourFromHex(std::uint32_t rgb)
{
    assert(rgb <= 0xffffffU);
    return {static_cast<std::uint8_t>(rgb >> 16U), static_cast<std::uint8_t>(rgb >> 8U & 0xffU),
        static_cast<std::uint8_t>(rgb & 0xffU)};
}

std::string hexText(Colour colour)
{
    return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

double luminance(Colour colour)
{
    const auto linear = [](std::uint8_t channel) {
        const double c = channel / 255.0;
        return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

double contrast(Colour a, Colour b)
{
    const auto [darker, lighter] = std::minmax({luminance(a), luminance(b)});
    return (lighter + 0.05) / (darker + 0.05);
}

Colour readableOn(Colour background)
{
    return contrast(kBlack, background) >= contrast(kWhite, background) ? kBlack : kWhite;
}

Colour blend(Colour from, Colour to, double amount)
{
    const double t = std::clamp(amount, 0.0, 1.0);
    const auto mix = [t](std::uint8_t a, std::uint8_t b) { return static_cast<std::uint8_t>(std::lround(a + (b - a) * t)); };
    return {mix(from.red, to.red), mix(from.green, to.green), mix(from.blue, to.blue)};
}

Colour onScale(std::span<const Colour> scale, double at)
{
    assert(!scale.empty());
    const double place = std::clamp(at, 0.0, 1.0) * static_cast<double>(scale.size() - 1);
    const auto before = static_cast<std::size_t>(place);
    const std::size_t after = std::min(before + 1, scale.size() - 1);
    return blend(scale[before], scale[after], place - static_cast<double>(before));
}

int nearestTerminalColour(Colour colour)
{
    constexpr std::array<int, 6> kLevels = {0, 95, 135, 175, 215, 255};
    const auto distance = [&](int r, int g, int b) {
        return (r - colour.red) * (r - colour.red) + (g - colour.green) * (g - colour.green)
            + (b - colour.blue) * (b - colour.blue);
    };
    int best = 16;
    int bestDistance = std::numeric_limits<int>::max();
    for (int index = 16; index < 256; ++index) {
        int at = 0;
        if (index < 232) {
            const auto level = [&](int digit) { return kLevels[static_cast<std::size_t>(digit)]; };
            const int cube = index - 16;
            at = distance(level(cube / 36), level(cube / 6 % 6), level(cube % 6));
        } else {
            const int grey = 8 + 10 * (index - 232);
            at = distance(grey, grey, grey);
        }
        if (at < bestDistance) {
            bestDistance = at;
            best = index;
        }
    }
    return best;
}

} // namespace meshwright
