// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace meshwright::sim {

namespace {

double predicted(const HostSample& sample, const HostCosts& costs)
{
    return std::inner_product(sample.amounts.begin(), sample.amounts.end(), costs.begin(), 0.0);
}

/// Least squares over costs that may not be negative, one cost after the other until nothing changes. The sum is convex, so they come to
/// the least there is (Franc, Hlavac and Navara, "Sequential Coordinate-Wise Algorithm for the Non-negative Least Squares Problem", CAIP 2005).
void leastSquares(
    std::span<const HostSample> samples, std::span<const double> trust, std::size_t first, std::size_t last, HostCosts& costs)
{
    constexpr int kRounds = 4000;
    const std::size_t count = last - first + 1;
    std::vector<double> products(count * count, 0.0);
    std::vector<double> targets(count, 0.0);
    for (std::size_t s = 0; s < samples.size(); ++s) {
        const HostSample& sample = samples[s];
        double rest = sample.seconds - predicted(sample, costs);
        for (std::size_t i = first; i <= last; ++i)
            rest += sample.amounts[i] * costs[i];
        const double scale = trust[s] * sample.weight / (sample.seconds * sample.seconds);
        for (std::size_t i = 0; i < count; ++i) {
            const double amount = sample.amounts[first + i] * scale;
            targets[i] += amount * rest;
            for (std::size_t j = 0; j < count && amount != 0.0; ++j)
                products[i * count + j] += amount * sample.amounts[first + j];
        }
    }
    for (int round = 0; round < kRounds; ++round) {
        for (std::size_t i = 0; i < count; ++i) {
            const double own = products[i * count + i];
            double left = targets[i];
            for (std::size_t j = 0; j < count; ++j)
                left -= j == i ? 0.0 : products[i * count + j] * costs[first + j];
            costs[first + i] = own > 0.0 ? std::max(0.0, left / own) : 0.0;
        }
    }
}

} // namespace

void fitCosts(std::span<const HostSample> samples, HostCost first, HostCost last, HostCosts& costs, bool distrusts)
{
    constexpr int kRounds = 6;
    constexpr double kUsualError = 0.15;
    std::vector<double> trust(samples.size(), 1.0);
    for (int round = 0; round < (distrusts ? kRounds : 1); ++round) {
        leastSquares(samples, trust, static_cast<std::size_t>(first), static_cast<std::size_t>(last), costs);
        for (std::size_t s = 0; s < samples.size(); ++s) {
            const double error = predicted(samples[s], costs) / samples[s].seconds - 1.0;
            trust[s] = 1.0 / (1.0 + std::abs(error) / kUsualError);
        }
    }
}

} // namespace meshwright::sim
