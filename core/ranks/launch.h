// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ranks/rank_watch.h"
#include "core/ranks/ranks.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace meshwright {

/// What a launcher of several processes (mpirun, mpiexec, srun) says in the environment.
struct Launch {
    int rank = 0;
    int size = 1;
};

/// Nothing when the process was started alone, or as the only one. `variable` gives a variable of the environment, null when it is not set.
/// Read are Open MPI's OMPI_COMM_WORLD_SIZE and _RANK, MPICH's and Intel's PMI_SIZE and PMI_RANK, MVAPICH's MV2_COMM_WORLD_SIZE and _RANK.
std::optional<Launch> launchedAs(const std::function<const char*(const char*)>& variable);
std::optional<Launch> launched();

/// A job of several processes that this one has joined.
struct RankJob {
    std::shared_ptr<Ranks> ranks;
    std::unique_ptr<RankWatch> watch; ///< ends before `ranks`
};

/// The module that carries messages by MPI: `meshwright-mpi.so` beside the program, or in `../lib/meshwright`; nothing where there is none.
std::optional<std::filesystem::path> rankModule();

/// Joins the job that a launcher started. Only this loads the module, and with it MPI's library.
/// Problems: MW1550 there is no such module, MW1555 MPI does not start, or knows of other processes than the launcher started.
Result<RankJob> joinJob(const Launch& launch);

} // namespace meshwright
