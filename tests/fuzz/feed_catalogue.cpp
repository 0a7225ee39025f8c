// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/catalogue.h"

#include "tests/fuzz/targets.h"

namespace meshwright::fuzz {

/// A catalogue of chips.
void feedCatalogue(std::string_view text)
{
    const auto catalogue = sim::Catalogue::parse(text, "fuzz.json");
    if (!catalogue)
        return;
    for (const std::string& name : catalogue->names())
        require(catalogue->find(name).has_value(), "every name of a catalogue is found");
}

} // namespace meshwright::fuzz
