// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"

#include <algorithm>
#include <string>

namespace meshwright {

/// "all-reduce" for "all_reduce": the name of an op, as people write it.
inline std::string spokenOp(std::string name)
{
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

inline std::string spokenOp(OpKind kind)
{
    return spokenOp(std::string(opName(kind)));
}

} // namespace meshwright
