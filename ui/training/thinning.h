// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QPointF>

#include <span>

namespace meshwright::ui {

/// The points (i, values[i]) for i from `first` to `last`, both included, thinned to `columns` stretches: of each stretch the first, lowest,
/// highest and last point, so that a line through them covers the same pixels as one through all. NaN is not a lowest or highest, but stays where
/// a stretch begins or ends. All points when there are at most four for each column. Preconditions: first <= last < values.size(), columns >= 1.
QList<QPointF> thinned(std::span<const double> values, std::size_t first, std::size_t last, int columns);

} // namespace meshwright::ui
