// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verbs.h"
#include "core/support/quantity.h"
#include "core/support/resources.h"
#include "sim/hardware/hardware_name.h"

#include "tests/fuzz/targets.h"

namespace meshwright::fuzz {

/// Values of flags that have a form of their own: shapes, topologies, counts, names of machines.
void feedFlags(std::string_view text)
{
    const std::string value(text);
    if (const auto shape = cli::parseShape(value))
        require(shape->size() <= value.size() + 1, "a shape has no more sizes than letters");
    (void)cli::parseTopology(value);
    (void)parseCount(value);
    static const auto kCatalogue = sim::Catalogue::load(resourcesDirectory() / "hardware" / "catalogue.json");
    require(kCatalogue.has_value(), "the catalogue is there");
    const auto choice = sim::namedChoice(*kCatalogue, {value, {}, 0, 0});
    require(!choice || !choice->chip.empty(), "a machine has chips of a name");
}

} // namespace meshwright::fuzz
