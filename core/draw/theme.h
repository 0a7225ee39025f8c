// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/colour.h"

#include <array>
#include <cstdint>

namespace meshwright {

enum class Theme : std::uint8_t { Light, Dark, HighContrast };

inline constexpr std::array kAllThemes = {Theme::Light, Theme::Dark, Theme::HighContrast};

/// What a colour is for. Pictures name roles, so that one list of shapes fits both themes.
enum class ColourRole : std::uint8_t {
    Background, ///< of the whole picture
    Surface, ///< of panels and of the plates behind labels
    Outline, ///< frames of cells and panels
    Grid, ///< faint lines
    Text, ///< on Background and Surface
    MutedText, ///< less important, on Background and Surface
    Accent, ///< selection and focus
    Warning, ///< text and marks of warnings, on Background and Surface
    Error, ///< text and marks of errors, on Background and Surface
    // Categories of time on a device. They are told apart by colour vision of every kind; text on them is black or white.
    Compute,
    AllGather,
    ReduceScatter,
    AllReduce,
    AllToAll,
    Permute,
    HostTransfer,
    Idle,
};

inline constexpr std::array kAllRoles = {ColourRole::Background, ColourRole::Surface, ColourRole::Outline, ColourRole::Grid,
    ColourRole::Text, ColourRole::MutedText, ColourRole::Accent, ColourRole::Warning, ColourRole::Error, ColourRole::Compute,
    ColourRole::AllGather, ColourRole::ReduceScatter, ColourRole::AllReduce, ColourRole::AllToAll, ColourRole::Permute,
    ColourRole::HostTransfer, ColourRole::Idle};

/// The roles that text is drawn in.
inline constexpr std::array kTextRoles = {ColourRole::Text, ColourRole::MutedText, ColourRole::Warning, ColourRole::Error};

/// The roles that text is drawn on, other than categories.
inline constexpr std::array kBackdropRoles = {ColourRole::Background, ColourRole::Surface};

/// The categories of a timeline, in the order of a legend.
inline constexpr std::array kCategoryRoles = {ColourRole::Compute, ColourRole::AllGather, ColourRole::ReduceScatter,
    ColourRole::AllReduce, ColourRole::AllToAll, ColourRole::Permute, ColourRole::HostTransfer, ColourRole::Idle};

/// `background`, `all-gather` and so on.
const char* colourRoleName(ColourRole role);

/// The colour of a role. Every text role has a contrast of at least 4.5 on every backdrop role, in every theme, and
/// of at least 7 with high contrast.
/// Source of the category hues: M. Okabe, K. Ito, "Color Universal Design", 2008.
Colour colourOf(ColourRole role, Theme theme);

} // namespace meshwright
