// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/changed_hardware.h"
#include "core/support/json_text.h"

#include <nlohmann/json.hpp>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

void scale(Json* figure, double factor)
{
    if (figure != nullptr && figure->is_object() && figure->contains("use") && figure->at("use").is_number())
        (*figure)["use"] = figure->at("use").get<double>() * factor;
}

Json* member(Json* parent, const std::string& name)
{
    return parent != nullptr && parent->is_object() && parent->contains(name) ? &(*parent)[name] : nullptr;
}

} // namespace

Result<Catalogue> changedCatalogue(std::string_view text, const Chip& chip, ChangedPart part, double factor)
{
    Json json = parsedJson(text);
    for (Json* entry : {member(member(&json, "chips"), chip.key), member(member(&json, "instances"), chip.instance)}) {
        if (part == ChangedPart::Memory)
            scale(member(entry, "hbm_bytes"), factor);
        else if (chip.chipClass == ChipClass::Tpu)
            scale(member(member(entry, "interconnect"), "link_oneway_bytes_per_s"), factor);
        else
            scale(member(entry, "nic_oneway_bytes_per_s_per_gpu"), factor);
    }
    return Catalogue::parse(jsonLine(json), "catalogue.json");
}

} // namespace meshwright::sim
