// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <filesystem>
#include <string>
#include <vector>

namespace meshwright {

/// Names of the models that come with Meshwright, in their order.
std::vector<std::string> shippedModels();

/// The configuration of a model, and where it was read.
struct ModelFile {
    std::filesystem::path path;
    std::string text;
};

/// The file at `path`, or, where none is there, the shipped model that `name` names.
/// Problems: those of `readFile`; MW1001 names the nearest shipped model.
Result<ModelFile> readModelFile(const std::string& name, const std::filesystem::path& path);

} // namespace meshwright
