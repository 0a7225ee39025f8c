// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/verbs.h"

#include "core/diagnose/problem_table.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace meshwright::cli {

int runExplain(const ExplainOptions& options, Output& output)
{
    const auto path = findResource("problems.yaml");
    if (!path)
        return fail(path.error(), output);
    const auto table = ProblemTable::load(*path);
    if (!table)
        return fail(table.error(), output);
    const ProblemEntry* entry = table->find(options.what);
    if (entry == nullptr) {
        const auto near = nearestName(options.what, table->ids());
        return fail({Problem{"MW1908", fmt::format("\"{}\" is no problem id", options.what),
                        near ? fmt::format("did you mean {}? `meshwright list problems` names all", *near)
                             : std::string("`meshwright list problems` names all ids")}},
            output);
    }
    const ProblemRange* range = table->rangeOf(entry->id);
    const std::string part = range != nullptr ? range->part : std::string();
    if (output.format == Format::Json) {
        using Json = nlohmann::ordered_json;
        const Json document = {{"schema", "meshwright.explanation/1"}, {"meshwright", kVersion}, {"id", entry->id},
            {"title", entry->title}, {"part", part}, {"meaning", entry->meaning}, {"fix", entry->fix}};
        output.result(document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
        return kExitOk;
    }
    output.result(
        fmt::format("{}: {} ({})\n\n{}\n\nWhat to do: {}\n", entry->id, entry->title, part, entry->meaning, entry->fix));
    return kExitOk;
}

} // namespace meshwright::cli
