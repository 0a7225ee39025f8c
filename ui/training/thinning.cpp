// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/training/thinning.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace meshwright::ui {

QList<QPointF> thinned(std::span<const double> values, std::size_t first, std::size_t last, int columns)
{
    assert(first <= last && last < values.size() && columns >= 1);
    const std::size_t count = last - first + 1;
    const auto stretches = static_cast<std::size_t>(columns);
    const auto point = [&](std::size_t i) { return QPointF(static_cast<double>(i), values[i]); };
    QList<QPointF> points;
    if (count <= 4 * stretches) {
        for (std::size_t i = first; i <= last; ++i)
            points.append(point(i));
        return points;
    }
    for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
        const std::size_t begin = first + count * stretch / stretches;
        const std::size_t end = first + count * (stretch + 1) / stretches;
        std::size_t lowest = begin;
        std::size_t highest = begin;
        for (std::size_t i = begin; i < end; ++i) {
            if (values[i] < values[lowest])
                lowest = i;
            if (values[i] > values[highest])
                highest = i;
        }
        std::array<std::size_t, 4> kept = {begin, lowest, highest, end - 1};
        std::sort(kept.begin(), kept.end());
        const auto unique = std::unique(kept.begin(), kept.end());
        std::for_each(kept.begin(), unique, [&](std::size_t i) { points.append(point(i)); });
    }
    return points;
}

} // namespace meshwright::ui
