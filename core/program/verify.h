// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

namespace meshwright {

/// Everything that is wrong with a function: MW1301 to MW1304 as the shape rules, MW1305 an operand that is not defined before its
/// use (or in no enclosing block), MW1306 a result whose type is not what its op makes, MW1307 a body that does not fit its op,
/// MW1308 a sharding that is not well formed (rank, unknown or repeated axes, sub-axes that do not divide their axis),
/// MW1309 two values or functions of one name.
Problems verify(const Function& function, const std::vector<NamedMesh>& meshes);
Problems verify(const Program& program);

/// Whether passes over a program look at what they made (`faultsAfter`). At first: whether MESHWRIGHT_VERIFY_PASSES is 1 in the environment.
bool verifiesPasses();
void setVerifyPasses(bool on);

/// What `verify` finds in a function that a pass has made, if `verifiesPasses`: MW1215 for each fault, with the name of the pass.
Problems faultsAfter(const char* pass, const Function& function, const std::vector<NamedMesh>& meshes);

} // namespace meshwright
