// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/hlo_report.h"

#include "tests/fuzz/targets.h"

#include <nlohmann/json.hpp>

namespace meshwright::fuzz {

/// Dumps of XLA; a first line `mesh: x=4,y=2` gives the mesh.
void feedHlo(std::string_view text)
{
    std::optional<Mesh> mesh;
    constexpr std::string_view kMesh = "mesh: ";
    if (text.starts_with(kMesh)) {
        if (const auto given = parseMesh(takeLine(text).substr(kMesh.size())))
            mesh = *given;
    }
    const auto report = sim::hloReport(text, "dump.txt", mesh, nullptr);
    if (!report)
        return;
    for (const sim::HloRow& row : report->rows) {
        require(row.count >= 0 && row.instructions >= 1 && row.collective.payloadBytes >= 0, "counts and bytes are counted");
        require(row.collective.groups != nullptr && row.collective.groups->size >= 1, "a collective has groups");
        require(row.collective.line >= 1, "a collective is on a line of the text");
    }
    require(nlohmann::json::accept(sim::hloJson(*report)), "the result is JSON");
    require(sim::hloChanges(*report, *report).empty(), "a dump does not differ from itself");
    (void)sim::hloText(*report);
}

} // namespace meshwright::fuzz
