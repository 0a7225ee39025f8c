// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/theme.h"

namespace meshwright {

namespace {

struct RoleColours {
    ColourRole role;
    const char* name;
    std::uint32_t light;
    std::uint32_t dark;
    std::uint32_t highContrast;
};

// The only place with colours of the themes; one row for each role, in the order of the enumeration.
constexpr std::array kTable = {
    RoleColours{ColourRole::Background, "background", 0xffffff, 0x16191d, 0x000000},
    RoleColours{ColourRole::Surface, "surface", 0xf3f5f7, 0x22272d, 0x101010},
    RoleColours{ColourRole::Outline, "outline", 0x4b5563, 0x9aa5b1, 0xffffff},
    RoleColours{ColourRole::Grid, "grid", 0xd5dae0, 0x3a424b, 0x8c8c8c},
    RoleColours{ColourRole::Text, "text", 0x1a1d21, 0xe8ebee, 0xffffff},
    RoleColours{ColourRole::MutedText, "muted-text", 0x555e68, 0xa9b3bd, 0xe2e2e2},
    RoleColours{ColourRole::Accent, "accent", 0x0b5fc0, 0x6cb2ff, 0x5cd6ff},
    RoleColours{ColourRole::Warning, "warning", 0x8a4b00, 0xf0b35a, 0xffd24d},
    RoleColours{ColourRole::Error, "error", 0xb00020, 0xff8f8f, 0xffa0a0},
    RoleColours{ColourRole::Compute, "compute", 0x0072b2, 0x2a8fd0, 0x4aa8ff},
    RoleColours{ColourRole::AllGather, "all-gather", 0xe69f00, 0xe69f00, 0xffb52e},
    RoleColours{ColourRole::ReduceScatter, "reduce-scatter", 0x009e73, 0x12a97f, 0x19d9a3},
    RoleColours{ColourRole::AllReduce, "all-reduce", 0xd55e00, 0xd55e00, 0xff7a29},
    RoleColours{ColourRole::AllToAll, "all-to-all", 0xcc79a7, 0xcc79a7, 0xf29acb},
    RoleColours{ColourRole::Permute, "permute", 0x56b4e9, 0x7cc7f2, 0x9fdcff},
    RoleColours{ColourRole::HostTransfer, "host-transfer", 0xf0e442, 0xf0e442, 0xfff152},
    RoleColours{ColourRole::Idle, "idle", 0xc9ced4, 0x4a525b, 0x505860},
};
static_assert(kTable.size() == kAllRoles.size());

} // namespace

const char* colourRoleName(ColourRole role)
{
    return kTable[static_cast<std::size_t>(role)].name;
}

Colour colourOf(ColourRole role, Theme theme)
{
    const RoleColours& colours = kTable[static_cast<std::size_t>(role)];
    switch (theme) {
    case Theme::Light:
        return colourFromHex(colours.light);
    case Theme::Dark:
        return colourFromHex(colours.dark);
    case Theme::HighContrast:
        break;
    }
    return colourFromHex(colours.highContrast);
}

} // namespace meshwright
