// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace meshwright {

/// An opaque colour in sRGB, 8 bits for each channel.
struct Colour {
    std::uint8_t red = 0;
    std::uint8_t green = 0;
    std::uint8_t blue = 0;

    friend auto operator<=>(const Colour&, const Colour&) = default;
};

inline constexpr Colour kBlack{0, 0, 0};
inline constexpr Colour kWhite{255, 255, 255};

/// `0x1b9e77` as a colour. Precondition: rgb <= 0xffffff.
Colour colourFromHex(std::uint32_t rgb);

/// `#1b9e77`.
std::string hexText(Colour colour);

/// Relative luminance, 0 (black) to 1 (white). Source: WCAG 2.1, definition of relative luminance.
double luminance(Colour colour);

/// The contrast ratio of two colours, 1 to 21. Source: WCAG 2.1, definition of contrast ratio.
double contrast(Colour a, Colour b);

/// Black or white, whichever has more contrast on `background`; that is always at least 4.5.
Colour readableOn(Colour background);

/// `amount` of the way from `from` (0) to `to` (1), channel by channel.
Colour blend(Colour from, Colour to, double amount);

/// The colour at `at` (0 to 1) of a scale given by colours at equal distances. Precondition: not empty.
Colour onScale(std::span<const Colour> scale, double at);

/// The index of the closest colour of the 256 that a terminal has: the 6x6x6 cube (16 to 231) and the greys (232 to 255).
int nearestTerminalColour(Colour colour);

} // namespace meshwright
