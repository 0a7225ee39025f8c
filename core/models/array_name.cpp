// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/array_name.h"

#include <array>
#include <utility>

namespace meshwright {

namespace {

/// What is found first counts.
constexpr std::array<std::pair<ArrayName::Family, std::string_view>, 7> kFamilyWords
    = {{{ArrayName::Family::Gradient, "grad."}, {ArrayName::Family::Momentum, "opt.m."},
        {ArrayName::Family::SecondMoment, "opt.v."}, {ArrayName::Family::Master, "opt.master."},
        {ArrayName::Family::SharedState, "opt."}, {ArrayName::Family::Activation, "act."}, {ArrayName::Family::Updated, "new."}}};

} // namespace

std::string ArrayName::text() const
{
    for (const auto& [of, word] : kFamilyWords) {
        if (of == family)
            return std::string(word) + base;
    }
    return base;
}

ArrayName arrayNameOf(std::string_view name)
{
    for (const auto& [family, word] : kFamilyWords) {
        if (name.starts_with(word) && name.size() > word.size())
            return {family, std::string(name.substr(word.size()))};
    }
    return {ArrayName::Family::Own, std::string(name)};
}

} // namespace meshwright
