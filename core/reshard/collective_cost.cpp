// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reshard/collective_cost.h"

namespace meshwright {

double BytesThenStepsCost::cost(const CollectiveQuery& query) const
{
    constexpr double kStepBytes = 1e-3; // less than any byte, so that it only decides ties
    const auto bytes = static_cast<double>(query.payloadBytes);
    const auto n = static_cast<double>(query.groupSize);
    const double share = n > 0.0 ? (n - 1.0) / n : 0.0;
    switch (query.kind) {
    case OpKind::AllSlice:
        return kStepBytes / 2;
    case OpKind::AllReduce:
        return 2.0 * bytes * share + kStepBytes;
    case OpKind::CollectivePermute:
        return bytes + kStepBytes;
    default:
        return bytes * share + kStepBytes;
    }
}

} // namespace meshwright
