// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/transformer/rooflines.h"

#include <cmath>

namespace meshwright::sim {

double bestShardDegree(double tokens, double devices, double width)
{
    return std::sqrt(2.0 * tokens * devices / width);
}

} // namespace meshwright::sim
