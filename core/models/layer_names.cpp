// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/layer_names.h"

#include "core/support/pattern.h"

#include <algorithm>
#include <string_view>

namespace meshwright {

std::string layerIn(const std::string& name)
{
    static constexpr std::string_view kLayers = "layers.";
    const std::size_t number = name.find(kLayers);
    if (number == std::string::npos)
        return {};
    const std::size_t begin = name.rfind('.', number) + 1;
    const auto behind
        = [&](std::size_t at, const char* letters) { return std::min(name.size(), name.find_first_not_of(letters, at)); };
    const auto isEnd = [&](std::size_t at) { return at == name.size() || name[at] == '.'; };
    const std::size_t first = number + kLayers.size();
    std::size_t end = behind(first, "0123456789-");
    if (end == first || !isEnd(end))
        return {};
    if (end < name.size() && name.find('-', first) < end) {
        if (const std::size_t one = behind(end + 1, "0123456789"); one > end + 1 && isEnd(one))
            end = one;
    }
    return name.substr(begin, end - begin);
}

std::string ofAnyLayer(const std::string& name)
{
    static const Pattern kNumbers(R"(layers\.\d+(-\d+(\.\d+)?)?)");
    return kNumbers.replacedIn(name, "layers.*");
}

std::string ofAnyLoop(const std::string& name)
{
    static const Pattern kNumbers(R"(layers\.\d+-\d+(\.\d+)?)");
    return kNumbers.replacedIn(name, "layers.*");
}

std::string ofWholeLoop(const std::string& name)
{
    static const Pattern kNumbers(R"(layers\.\d+-\d+)");
    return kNumbers.replacedIn(name, "layers");
}

} // namespace meshwright
