// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verbs.h"

#include "tests/fuzz/targets.h"

namespace meshwright::fuzz {

/// Values of flags that have a form of their own.
void feedFlags(std::string_view text)
{
    const std::string value(text);
    if (const auto shape = cli::parseShape(value))
        require(shape->size() <= value.size() + 1, "a shape has no more sizes than letters");
    (void)cli::parseTopology(value);
}

} // namespace meshwright::fuzz
