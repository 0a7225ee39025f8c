// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace meshwright {

/// Seconds since some fixed moment, never going back.
double wallSeconds();

/// Seconds for which a core has worked on the calling thread.
double threadCpuSeconds();

} // namespace meshwright
