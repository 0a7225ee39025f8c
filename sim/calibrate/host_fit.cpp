// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_fit.h"

#include <Eigen/Core>

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
    const auto count = static_cast<Eigen::Index>(last - first + 1);
    Eigen::Map<Eigen::VectorXd> fitted(&costs[first], count);
    Eigen::MatrixXd amounts(static_cast<Eigen::Index>(samples.size()), count);
    Eigen::VectorXd rests(amounts.rows());
    for (Eigen::Index s = 0; s < amounts.rows(); ++s) {
        const HostSample& sample = samples[static_cast<std::size_t>(s)];
        const double scale = std::sqrt(trust[static_cast<std::size_t>(s)] * sample.weight) / sample.seconds;
        amounts.row(s) = scale * Eigen::Map<const Eigen::RowVectorXd>(&sample.amounts[first], count);
        rests[s] = scale * (sample.seconds - predicted(sample, costs)) + amounts.row(s).dot(fitted);
    }
    const Eigen::MatrixXd products = amounts.transpose() * amounts;
    const Eigen::VectorXd targets = amounts.transpose() * rests;
    Eigen::VectorXd before = Eigen::VectorXd::Constant(count, -1.0);
    for (int round = 0; round < kRounds && fitted != before; ++round) {
        before = fitted;
        for (Eigen::Index i = 0; i < count; ++i) {
            const double own = products(i, i);
            fitted[i] = own > 0.0 ? std::max(0.0, fitted[i] + (targets[i] - products.col(i).dot(fitted)) / own) : 0.0;
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
