// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/axis_order.h"

#include "core/support/text.h"
#include "sim/collective/network_cost.h"
#include "sim/search/plan_reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace meshwright::sim {

namespace {

constexpr double kSameOrder = 1.005; ///< slowdowns below this are not worth a word

double loadOf(const std::vector<AxisLoad>& loads, const std::string& axis)
{
    const auto found = std::find_if(loads.begin(), loads.end(), [&](const AxisLoad& load) { return load.axis == axis; });
    return found == loads.end() ? 0.0 : found->seconds;
}

std::string bandwidths(const PlacedOrder& order)
{
    std::vector<std::string> texts;
    for (std::size_t axis = 0; axis < order.mesh.size(); ++axis) {
        if (order.bytesPerSecond[axis] > 0.0)
            texts.push_back(fmt::format("{} {:.0f} GB/s", order.mesh[axis].name, order.bytesPerSecond[axis] / 1e9));
    }
    return join(texts, ", ");
}

} // namespace

std::vector<PlacedOrder> placedOrders(
    const std::vector<MeshAxis>& mesh, const std::vector<AxisLoad>& loads, const Machine& machine)
{
    std::vector<std::size_t> order(mesh.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<PlacedOrder> orders;
    std::vector<double> costs;
    do {
        PlacedOrder placed;
        for (const std::size_t axis : order)
            placed.mesh.push_back(mesh[axis]);
        const auto made = Mesh::create(placed.mesh);
        const auto placement = made ? placeMesh(*made, machine) : Result<MeshPlacement>(made.error());
        if (!placement)
            continue;
        placed.where = placement->text();
        double cost = 0.0;
        for (std::size_t axis = 0; axis < placed.mesh.size(); ++axis) {
            const std::int64_t size = placed.mesh[axis].size;
            double seconds = 0.0;
            if (size > 1)
                seconds = estimateOn(*placement, OpKind::AllGather, {wholeAxis(*made, axis)}, kOrderBytes).seconds;
            const double received = static_cast<double>(kOrderBytes) * static_cast<double>(size - 1) / static_cast<double>(size);
            placed.bytesPerSecond.push_back(seconds > 0.0 ? received / seconds : 0.0);
            // Seconds are waited for in proportion to what a byte over the axis takes.
            cost += placed.bytesPerSecond.back() > 0.0 ? loadOf(loads, placed.mesh[axis].name) / placed.bytesPerSecond.back()
                                                       : 0.0;
        }
        orders.push_back(std::move(placed));
        costs.push_back(cost);
    } while (std::next_permutation(order.begin(), order.end()));
    if (orders.empty())
        return orders;
    const double least = *std::min_element(costs.begin(), costs.end());
    for (std::size_t i = 0; i < orders.size(); ++i)
        orders[i].slowdown = least > 0.0 ? costs[i] / least : 1.0;
    std::stable_sort(orders.begin(), orders.end(),
        [](const PlacedOrder& a, const PlacedOrder& b) { return a.slowdown < b.slowdown * (1.0 - 1e-12); });
    return orders;
}

std::vector<std::string> orderSentences(
    const std::vector<MeshAxis>& mesh, const std::vector<AxisLoad>& loads, const Machine& machine)
{
    const std::vector<PlacedOrder> orders = placedOrders(mesh, loads, machine);
    const auto own = std::find_if(orders.begin(), orders.end(), [&](const PlacedOrder& order) { return order.mesh == mesh; });
    if (own == orders.end())
        return {};
    std::vector<std::string> sentences = {fmt::format(
        "on the machine as create_device_mesh places it: {}; an all-gather of 64 MiB over {}", own->where, bandwidths(*own))};
    if (own->slowdown > kSameOrder)
        sentences.push_back(
            fmt::format("by these rates, not simulated, the collectives of the order {} ({}) would be {:.2f} times as quick",
                meshText(orders.front().mesh), orders.front().where, own->slowdown));
    else if (orders.back().slowdown > kSameOrder)
        sentences.push_back(fmt::format(
            "this order of the axes is the best for these links: {} ({}) would make its collectives {:.2f} times as slow",
            meshText(orders.back().mesh), orders.back().where, orders.back().slowdown));
    return sentences;
}

} // namespace meshwright::sim
