// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <filesystem>
#include <string_view>

namespace meshwright {

/// The folder with the examples, the hardware catalogue, the data sets and the table of problems: what the environment variable
/// MESHWRIGHT_RESOURCES names, else that of an installation around the running program (`../share/meshwright`), else that of the
/// source tree which it was built from.
std::filesystem::path resourcesDirectory();

/// A file or folder in it. Problems: MW1006 there is none.
Result<std::filesystem::path> findResource(std::string_view relativePath);

} // namespace meshwright
