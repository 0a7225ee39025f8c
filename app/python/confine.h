// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright::python {

/// What a page's process may do from now on.
struct Confinement {
    std::vector<std::string> readable; ///< files and folders; what does not exist is left out
    std::vector<std::string> writable; ///< folders
};

/// Takes from the calling process, for ever, all that a page does not need: other files (Landlock), new processes and programs, sockets, signals
/// to others, raised limits (seccomp), and every capability of its user. Threads stay allowed. Before other threads exist.
///
/// Problems: MW1562 the kernel has no Landlock, or it or seccomp refuses.
Result<Done> confine(const Confinement& confinement);

/// Whether this kernel can confine a process. Problems: MW1562.
Result<Done> canConfine();

} // namespace meshwright::python
