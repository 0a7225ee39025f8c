// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/model_file.h"

#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace meshwright {

std::vector<std::string> shippedModels()
{
    std::vector<std::string> names;
    if (const auto folder = findResource("models")) {
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(*folder, error)) {
            if (entry.path().extension() == ".json")
                names.push_back(entry.path().stem().string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

Result<ModelFile> readModelFile(const std::string& name, const std::filesystem::path& path)
{
    ModelFile file{path, {}};
    std::error_code error;
    const bool isName = name.find_first_of("./\\") == std::string::npos;
    if (isName && !std::filesystem::exists(path, error)) {
        if (const auto shipped = findResource(fmt::format("models/{}.json", name)))
            file.path = *shipped;
    }
    auto text = readFile(file.path);
    // "meta-llama/Llama-3.1-8B", as Hugging Face names models.
    const bool isFileName = name.ends_with(".json") || name.ends_with(".yml") || name.ends_with(".yaml");
    const bool isOfHub = std::count(name.begin(), name.end(), '/') == 1 && name.find_first_of("/.~\\") != 0 && !isFileName
        && !std::filesystem::exists(path.parent_path(), error);
    if (!text && (isName || isOfHub) && text.error().front().id == "MW1001") {
        Problem missing = text.error().front();
        missing.fix = isName
            ? suggestion(name, shippedModels()) + " (`meshwright list models`), or a config.json"
            : fmt::format("download its configuration: `hf download {} config.json --local-dir .`, and give config.json", name);
        return missing;
    }
    if (!text)
        return text.error();
    file.text = *std::move(text);
    return file;
}

} // namespace meshwright
