// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// An option as its framework has it: "num-layers" of Megatron-LM, "parallelism.tensor_parallel_degree" of torchtitan, "ici_fsdp_parallelism" of MaxText.
struct LaunchOption {
    std::string name;
    std::string value; ///< empty: the name alone switches something on
    int line = 0; ///< of the file, from 1
    bool isKnown = true; ///< or else the value is known only when the script runs, and is empty
};

/// What starts a training in somebody else's framework.
struct LaunchLine {
    std::string framework; ///< "megatron", "torchtitan", "maxtext"
    std::vector<LaunchOption> options; ///< in the order of the line; of those given twice the last counts
    std::optional<std::int64_t> devices; ///< where it says so: processes that it starts, or the product of MaxText's axes
    std::vector<std::string> unknown; ///< parts of it that are known only when the script runs: `$@`
    std::string hardware; ///< where it says so, as `--hw` takes it: MaxText's compile_topology
    int line = 0;
    std::size_t trainings = 1; ///< that the script starts; this is the first of them
};

/// True for a shell script, a line that starts a framework's training, and torchtitan's TOML: by the end of the file's name, or by what the text (of 1 MiB
/// at most) names.
bool isLaunchText(const std::string& file, std::string_view text);

/// The options of Megatron-LM (`pretrain_gpt.py`), torchtitan (`torchtitan.train`, `run_train.sh`, a TOML) or MaxText (`MaxText.train`), as a script
/// comes by them (`readShellScript`); nothing is run. A TOML that torchtitan's line names is read from beside the script.
/// Problems: MW1494 no such command, or one of a framework whose line does not say the model; MW1495 a TOML that is none; those of `readFile`.
Result<LaunchLine> readLaunchLine(const std::string& file, std::string_view text);

/// The software whose constants are those of what a line starts, as a study's `stack` has it. Megatron-LM's layers are Transformer Engine's, as NeMo's are,
/// unless the line asks for its own (`--transformer-impl local`), which keep attention's scores in memory.
std::string stackOf(const LaunchLine& launch);

} // namespace meshwright::sim
