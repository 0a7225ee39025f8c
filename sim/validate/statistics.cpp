// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/validate/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace meshwright::sim {

namespace {

std::vector<double> ranks(std::span<const double> values)
{
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    std::vector<double> rank(values.size());
    for (std::size_t from = 0; from < order.size();) {
        std::size_t to = from;
        while (to < order.size() && values[order[to]] == values[order[from]])
            ++to;
        for (std::size_t i = from; i < to; ++i)
            rank[order[i]] = (static_cast<double>(from) + static_cast<double>(to) - 1.0) / 2.0;
        from = to;
    }
    return rank;
}

} // namespace

double median(std::vector<double> values)
{
    assert(!values.empty());
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2.0;
}

std::optional<ErrorSummary> summarise(std::vector<double> errors)
{
    if (errors.empty())
        return std::nullopt;
    std::sort(errors.begin(), errors.end());
    ErrorSummary summary;
    summary.count = errors.size();
    summary.mean = std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
    // The smallest error that nine of ten do not exceed.
    const auto place = static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(errors.size()))) - 1;
    summary.p90 = errors[place];
    summary.median = median(std::move(errors));
    return summary;
}

std::optional<double> spearman(std::span<const double> left, std::span<const double> right)
{
    assert(left.size() == right.size());
    if (left.size() < 3)
        return std::nullopt;
    const auto a = ranks(left);
    const auto b = ranks(right);
    const double mean = (static_cast<double>(a.size()) - 1.0) / 2.0;
    double both = 0.0;
    double first = 0.0;
    double second = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        both += (a[i] - mean) * (b[i] - mean);
        first += (a[i] - mean) * (a[i] - mean);
        second += (b[i] - mean) * (b[i] - mean);
    }
    if (first == 0.0 || second == 0.0)
        return std::nullopt;
    return both / std::sqrt(first * second);
}

std::optional<double> kendallTau(std::span<const double> left, std::span<const double> right)
{
    assert(left.size() == right.size());
    double concordant = 0.0;
    double pairsLeft = 0.0;
    double pairsRight = 0.0;
    for (std::size_t i = 0; i < left.size(); ++i) {
        for (std::size_t j = i + 1; j < left.size(); ++j) {
            const double a = left[i] < left[j] ? -1.0 : left[i] > left[j] ? 1.0 : 0.0;
            const double b = right[i] < right[j] ? -1.0 : right[i] > right[j] ? 1.0 : 0.0;
            concordant += a * b;
            pairsLeft += a * a;
            pairsRight += b * b;
        }
    }
    if (pairsLeft == 0.0 || pairsRight == 0.0)
        return std::nullopt;
    return concordant / std::sqrt(pairsLeft * pairsRight);
}

double topRegret(std::span<const double> predicted, std::span<const double> measured)
{
    assert(!predicted.empty() && predicted.size() == measured.size());
    const auto pick = static_cast<std::size_t>(std::min_element(predicted.begin(), predicted.end()) - predicted.begin());
    return measured[pick] / *std::min_element(measured.begin(), measured.end()) - 1.0;
}

Detection& Detection::operator+=(const Detection& other)
{
    truePositive += other.truePositive;
    falsePositive += other.falsePositive;
    falseNegative += other.falseNegative;
    trueNegative += other.trueNegative;
    return *this;
}

std::optional<double> Detection::precision() const
{
    const std::size_t predicted = truePositive + falsePositive;
    if (predicted == 0)
        return std::nullopt;
    return static_cast<double>(truePositive) / static_cast<double>(predicted);
}

std::optional<double> Detection::recall() const
{
    const std::size_t real = truePositive + falseNegative;
    if (real == 0)
        return std::nullopt;
    return static_cast<double>(truePositive) / static_cast<double>(real);
}

} // namespace meshwright::sim
