// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/chakra/step_traces.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// Which ranks are in each process group, by the group's name; none: everybody.
using ProcessGroups = std::map<std::string, std::vector<std::int64_t>>;

/// The traces of a step as ASTRA-sim is given them: `--workload-configuration=FOLDER/step --comm-group-configuration=FOLDER/comm_groups.json`.
struct ChakraFolder {
    std::vector<std::filesystem::path> files; ///< for each rank
    ProcessGroups groups; ///< of comm_groups.json; without one there are none
};

/// Writes step.RANK.et and comm_groups.json; makes the folder where it is not there.
/// Problems: MW1005; MW1783 the folder has a step of more ranks, which would be mixed with this one.
Result<Done> writeChakraFolder(const StepTraces& traces, const std::filesystem::path& folder);

/// Looks for traces in a folder, or for those that begin with FOLDER/NAME.
/// Problems: MW1783 no traces, those of several steps, a rank that is missing, a comm_groups.json that is not right; those of `readFile`.
Result<ChakraFolder> findChakraFolder(const std::filesystem::path& path);

/// Reads `{"1": [0, 1], "2": [2, 3]}`. Problems: MW1783 it is no such JSON; a rank below 0 or twice in a group.
Result<ProcessGroups> readProcessGroups(std::string_view text, const std::string& file);

/// What a Metadata node of PyTorch says of process groups: `['[{"pg_name": "3", "ranks": [0, 1]}]']`; a group of no ranks is everybody.
/// Adds to `groups`; texts of other kinds add nothing.
void addPyTorchGroups(std::string_view inputs, ProcessGroups& groups);

} // namespace meshwright::sim
