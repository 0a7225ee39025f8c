// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <vector>

namespace meshwright {

/// Which values devices hold alike. A layout says it of what it splits, but not of what one device's ops have made of a split value or of the
/// device's own position: a mask "is this the first device?" has no dimension that an axis could split.
///
/// An op of one device hands on the axes of its operands' layouts and what hides behind them, but for the axes that its result's layout names;
/// sums and gathers over axes end them there.
class DeviceDependence {
public:
    /// Precondition: a function on shards.
    explicit DeviceDependence(const Function& function);

    /// True when all devices of a group over `axes` hold the same piece of the value.
    bool isEqualOver(ValueId value, const AxisRefs& axes, std::int32_t mesh) const;

private:
    struct Part {
        std::int32_t mesh = 0;
        AxisRef axis;
        friend bool operator==(const Part&, const Part&) = default;
    };
    using Parts = std::vector<Part>;

    Parts layoutOf(ValueId value) const;
    bool add(ValueId value, const Parts& parts);
    bool visit(const Op& op);
    bool visitBodies(const Op& op);

    const Function& m_function;
    std::vector<Parts> m_hidden; ///< by value: axes over which it may differ, though its layout names none of them
};

} // namespace meshwright
