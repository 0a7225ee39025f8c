// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/quantity.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <cmath>

namespace meshwright {

std::string quantityText(double value, Quantity quantity)
{
    if (!std::isfinite(value))
        return std::isnan(value) ? "nan" : value > 0.0 ? "inf" : "-inf";
    switch (quantity) {
    case Quantity::Plain:
        return fmt::format("{:.4g}", value == 0.0 ? 0.0 : value);
    case Quantity::Count:
        return formatCount(value);
    case Quantity::Seconds:
        return formatSeconds(value);
    case Quantity::Bytes:
        return formatBytes(value);
    }
    return {};
}

double niceStep(double least)
{
    const double power = std::pow(10.0, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor * power >= least * (1.0 - 1e-9))
            return factor * power;
    }
    return 10.0 * power;
}

} // namespace meshwright
