// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

namespace meshwright {

/// Takes the problems of a result that was used without a value. It throws; where it returns, the program ends.
using ProblemHandler = void (*)(const Problems&);

/// `stopOnProblems` calls this handler before it ends the program. For processes that run what others wrote, such as pages, where a fault of ours must fail
/// one call and not the process. What is thrown passes all folders, as `Stopped` does. Null, as at the start: there is none.
/// Precondition: no other thread works.
void setProblemHandler(ProblemHandler handler);

} // namespace meshwright
