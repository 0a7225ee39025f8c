// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_program.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// How the names of some pieces of a model become those of others: "layers.0-7" -> "layers.8-15", wherever they stand as words of their own.
struct Renaming {
    struct Part {
        std::string from;
        std::string to;
    };
    std::vector<Part> parts; ///< of different names

    std::string operator()(std::string_view text) const;
};

/// The renaming after which the functions are the same, op by op, with all shardings and annotations; their own names are not compared.
/// None: they differ in more than names of parts of the model.
std::optional<Renaming> renamingOf(const Function& function, const Function& other);

/// A function with other names; its own stays.
Function renamed(Function function, const Renaming& names);

/// A device function with other names, in its causes too.
DeviceFunction renamed(DeviceFunction device, const Renaming& names);

} // namespace meshwright
