// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_program.h"

#include <optional>
#include <string>
#include <string_view>

namespace meshwright {

/// How the names of one piece of a model become those of another: "layers.0-7" -> "layers.8-15", wherever it stands as words of its own.
struct Renaming {
    std::string from;
    std::string to;

    std::string operator()(std::string_view text) const;
};

/// The renaming after which the functions are the same, op by op, with all shardings and annotations; their own names are not compared.
/// None: they differ in more than the name of one part of the model.
std::optional<Renaming> renamingOf(const Function& function, const Function& other);

/// A device function with other names, in its causes too.
DeviceFunction renamed(DeviceFunction device, const Renaming& names);

} // namespace meshwright
