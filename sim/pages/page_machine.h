// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/pages/page.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright::pages {

/// The machine that a page believes it runs on.
struct PageMachine {
    std::string platform = "cpu"; ///< as JAX names it: cpu, gpu or tpu
    std::string kind = "cpu"; ///< JAX's `device_kind`
    std::vector<std::int64_t> topology = {}; ///< chips of a TPU slice along each axis
    std::int64_t devices = 1;
    bool legacyRandom = false; ///< random numbers as JAX drew them before 0.5
    std::string reason = {}; ///< where the number of devices comes from
    std::string hardware = {}; ///< by its name, that times are simulated on; empty: CPU devices of any kind
};

/// The machine of a name as `--hw` takes it (v3-8, h100x8), or else the one that the page names. Where neither does, CPU devices, as many as the page
/// asks for: by XLA's flag, by `jax_num_cpu_devices`, or else by the largest mesh that it makes of all devices; 8 where it says nothing.
///
/// Problems: those of the catalogue, `namedChoice` and `buildMachine`.
Result<PageMachine> machineOfPage(const Page& page, const std::string& name = {});

/// Whether a page was written when JAX drew random numbers in the older way: it uses a name that is gone since, or what it says that it printed is of
/// a version before 0.5.
bool isOfLegacyRandom(const Page& page);

} // namespace meshwright::pages
