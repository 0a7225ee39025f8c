// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/resources.h"
#include "sim/chakra/replay.h"
#include "sim/chakra/trace.h"

#include "tests/fuzz/targets.h"

#include <cmath>

namespace meshwright::fuzz {

/// A Chakra trace: read, written and read again, replayed as that of both ranks of a pair and of the first of two.
void feedChakra(std::string_view bytes)
{
    static const auto kCatalogue = sim::Catalogue::load(resourcesDirectory() / "hardware" / "catalogue.json");
    require(kCatalogue.has_value(), "the catalogue is there");
    static const auto kMachine = sim::buildMachine(*kCatalogue, {"v5e", {2, 1}, 0, 0});
    require(kMachine.has_value(), "the machine can be built");
    static const auto kCost = sim::costOptionsOf(kMachine->chip);
    require(kCost.has_value(), "the constants are there");
    const auto trace = sim::readChakra(bytes, "fuzz.et");
    if (!trace)
        return;
    const std::string written = sim::writeChakra(*trace);
    const auto again = sim::readChakra(written, "fuzz.et");
    require(again.has_value() && sim::writeChakra(*again) == written, "a trace is written and read again");
    const sim::ProcessGroups groups{{"1", {0, 1}}, {"2", {0}}, {"3", {1, 0}}};
    for (const sim::ChakraTrace& other : {*trace, sim::ChakraTrace{}}) {
        const auto step = sim::replayTraces({*trace, other}, groups, *kMachine, *kCost, {});
        require(
            !step || (std::isfinite(step->simulation.stepSeconds) && step->simulation.stepSeconds >= 0.0), "a step takes a time");
    }
}

} // namespace meshwright::fuzz
