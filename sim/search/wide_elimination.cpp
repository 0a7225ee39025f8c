// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/wide_elimination.h"

#include "sim/search/search_limits.h"
#include "sim/search/search_stop.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace meshwright::sim {

namespace {

constexpr int kPrices = 14;

/// Costs of the assignments of some variables, mixed radix, the last of the scope fastest.
struct Costs {
    std::vector<std::size_t> scope; ///< ascending
    std::vector<double> table;
};

using Choices = std::vector<std::uint32_t>;

std::size_t entryOf(const ChoiceGraph& graph, const std::vector<std::size_t>& scope, const Choices& choices)
{
    std::size_t entry = 0;
    for (const std::size_t variable : scope)
        entry = entry * graph.variables[variable].size() + choices[variable];
    return entry;
}

double entriesOf(const ChoiceGraph& graph, const std::set<std::size_t>& scope)
{
    double entries = 1.0;
    for (const std::size_t variable : scope)
        entries *= static_cast<double>(graph.variables[variable].size());
    return entries;
}

/// Graph with bytes counted as seconds, at a price.
ChoiceGraph priced(const ChoiceGraph& graph, double secondsPerByte)
{
    ChoiceGraph other = graph;
    for (auto& choices : other.variables) {
        for (ChoiceCost& cost : choices)
            cost = {cost.seconds + secondsPerByte * cost.bytes, 0.0};
    }
    return other;
}

/// One pass of mini-buckets over a graph without bytes.
class MiniBuckets {
public:
    /// Throws SearchStopped.
    MiniBuckets(const ChoiceGraph& graph, std::size_t entries, const std::stop_token& stop)
        : m_graph(graph)
        , m_entries(static_cast<double>(entries))
        , m_stop(stop)
        , m_of(graph.variables.size())
    {
        for (std::size_t variable = 0; variable < graph.variables.size(); ++variable) {
            Costs own{{variable}, {}};
            for (const ChoiceCost& cost : graph.variables[variable])
                own.table.push_back(cost.seconds);
            add(std::move(own));
        }
        for (const auto& edge : graph.edges)
            add(costsOf(edge));
        std::set<std::size_t> left;
        for (std::size_t variable = 0; variable < graph.variables.size(); ++variable)
            left.insert(left.end(), variable);
        while (!left.empty()) {
            throwIfStopped(m_stop);
            const std::size_t variable = next(left);
            eliminate(variable);
            left.erase(variable);
        }
        m_bound -= kRounding * static_cast<double>(graph.variables.size() + graph.edges.size()) * std::abs(m_bound);
    }

    double bound() const { return m_bound; }

    /// For every variable, last eliminated first, the choice that its tables like best.
    Choices choices() const
    {
        Choices chosen(m_graph.variables.size(), 0);
        for (auto bucket = m_buckets.rbegin(); bucket != m_buckets.rend(); ++bucket) {
            double least = kInfinite;
            std::uint32_t best = 0;
            for (std::uint32_t choice = 0; choice < m_graph.variables[bucket->variable].size(); ++choice) {
                chosen[bucket->variable] = choice;
                double seconds = 0.0;
                for (const Costs& joint : bucket->joint)
                    seconds += joint.table[entryOf(m_graph, joint.scope, chosen)];
                if (seconds < least) {
                    least = seconds;
                    best = choice;
                }
            }
            chosen[bucket->variable] = best;
        }
        return chosen;
    }

private:
    struct Bucket {
        std::size_t variable = 0;
        std::vector<Costs> joint; ///< what the variable was minimised over
    };

    Costs costsOf(const ChoiceGraph::Edge& edge) const
    {
        if (edge.from < edge.to)
            return {{edge.from, edge.to}, edge.seconds};
        Costs turned{{edge.to, edge.from}, std::vector<double>(edge.seconds.size())};
        const std::size_t rows = m_graph.variables[edge.from].size();
        const std::size_t columns = m_graph.variables[edge.to].size();
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t column = 0; column < columns; ++column)
                turned.table[column * rows + row] = edge.seconds[row * columns + column];
        }
        return turned;
    }

    void add(Costs costs)
    {
        if (costs.scope.empty()) {
            m_bound += costs.table.front();
            return;
        }
        for (const std::size_t variable : costs.scope)
            m_of[variable].insert(m_costs.size());
        m_costs.push_back(std::move(costs));
    }

    /// The variable with the smallest table, the first of equal ones.
    std::size_t next(const std::set<std::size_t>& left) const
    {
        std::size_t best = *left.begin();
        double least = kInfinite;
        for (const std::size_t variable : left) {
            std::set<std::size_t> scope;
            for (const std::size_t costs : m_of[variable])
                scope.insert(m_costs[costs].scope.begin(), m_costs[costs].scope.end());
            const double entries = entriesOf(m_graph, scope);
            if (entries < least) {
                least = entries;
                best = variable;
            }
        }
        return best;
    }

    /// The sum of some costs.
    Costs joined(const std::set<std::size_t>& scope, const std::vector<std::size_t>& parts) const
    {
        Costs sum{{scope.begin(), scope.end()}, {}};
        std::size_t entries = 1;
        for (const std::size_t variable : sum.scope)
            entries *= m_graph.variables[variable].size();
        sum.table.assign(entries, 0.0);
        for (const std::size_t part : parts) {
            throwIfStopped(m_stop);
            // Steps of the part's entry as each variable of the sum goes on by one.
            const Costs& costs = m_costs[part];
            std::vector<std::size_t> strides(sum.scope.size(), 0);
            std::size_t stride = 1;
            for (std::size_t i = costs.scope.size(); i-- > 0;) {
                const auto at = std::lower_bound(sum.scope.begin(), sum.scope.end(), costs.scope[i]) - sum.scope.begin();
                strides[static_cast<std::size_t>(at)] = stride;
                stride *= m_graph.variables[costs.scope[i]].size();
            }
            std::vector<std::size_t> digits(sum.scope.size(), 0);
            std::size_t entry = 0;
            for (double& seconds : sum.table) {
                seconds += costs.table[entry];
                for (std::size_t i = digits.size(); i-- > 0;) {
                    entry += strides[i];
                    if (++digits[i] < m_graph.variables[sum.scope[i]].size())
                        break;
                    entry -= strides[i] * digits[i];
                    digits[i] = 0;
                }
            }
        }
        return sum;
    }

    /// Calls `use(entry, choice of the variable, entry without the variable)` for all entries.
    template <typename Use>
    void forEachEntry(const Costs& joint, std::size_t variable, const Use& use) const
    {
        std::size_t inner = 1;
        for (std::size_t i = joint.scope.size(); joint.scope[--i] != variable;)
            inner *= m_graph.variables[joint.scope[i]].size();
        const std::size_t count = m_graph.variables[variable].size();
        for (std::size_t entry = 0; entry < joint.table.size(); ++entry)
            use(entry, entry / inner % count, entry / (inner * count) * inner + entry % inner);
    }

    void eliminate(std::size_t variable)
    {
        std::vector<std::size_t> parts(m_of[variable].begin(), m_of[variable].end());
        std::stable_sort(parts.begin(), parts.end(),
            [&](std::size_t a, std::size_t b) { return m_costs[a].table.size() > m_costs[b].table.size(); });
        std::vector<std::pair<std::set<std::size_t>, std::vector<std::size_t>>> groups;
        for (const std::size_t part : parts) {
            bool placed = false;
            for (auto& [scope, members] : groups) {
                std::set<std::size_t> wider = scope;
                wider.insert(m_costs[part].scope.begin(), m_costs[part].scope.end());
                if (wider.size() > scope.size() && entriesOf(m_graph, wider) > m_entries)
                    continue;
                scope = std::move(wider);
                members.push_back(part);
                placed = true;
                break;
            }
            if (!placed)
                groups.push_back({{m_costs[part].scope.begin(), m_costs[part].scope.end()}, {part}});
        }
        Bucket bucket{variable, {}};
        for (const auto& [scope, members] : groups)
            bucket.joint.push_back(joined(scope, members));
        agree(bucket);
        for (const std::size_t part : parts) {
            for (const std::size_t other : m_costs[part].scope)
                m_of[other].erase(part);
            m_costs[part].table.clear();
        }
        for (const Costs& joint : bucket.joint) {
            Costs least{joint.scope, {}};
            std::erase(least.scope, variable);
            least.table.assign(joint.table.size() / m_graph.variables[variable].size(), kInfinite);
            forEachEntry(joint, variable, [&](std::size_t entry, std::size_t, std::size_t rest) {
                least.table[rest] = std::min(least.table[rest], joint.table[entry]);
            });
            add(std::move(least));
        }
        m_buckets.push_back(std::move(bucket));
    }

    /// Shifts costs between the copies of a variable until each choice costs all of them the same at the least.
    void agree(Bucket& bucket) const
    {
        if (bucket.joint.size() < 2)
            return;
        const std::size_t count = m_graph.variables[bucket.variable].size();
        std::vector<std::vector<double>> least(bucket.joint.size(), std::vector<double>(count, kInfinite));
        std::vector<double> mean(count, 0.0);
        for (std::size_t copy = 0; copy < bucket.joint.size(); ++copy) {
            forEachEntry(bucket.joint[copy], bucket.variable, [&](std::size_t entry, std::size_t choice, std::size_t) {
                least[copy][choice] = std::min(least[copy][choice], bucket.joint[copy].table[entry]);
            });
            for (std::size_t choice = 0; choice < count; ++choice)
                mean[choice] += least[copy][choice] / static_cast<double>(bucket.joint.size());
        }
        for (std::size_t copy = 0; copy < bucket.joint.size(); ++copy) {
            forEachEntry(bucket.joint[copy], bucket.variable, [&](std::size_t entry, std::size_t choice, std::size_t) {
                if (mean[choice] < kInfinite)
                    bucket.joint[copy].table[entry] += mean[choice] - least[copy][choice];
            });
        }
    }

    const ChoiceGraph& m_graph;
    double m_entries;
    const std::stop_token& m_stop;
    std::vector<Costs> m_costs;
    std::vector<std::set<std::size_t>> m_of; ///< of each variable: live costs with it in their scope
    std::vector<Bucket> m_buckets;
    double m_bound = 0.0;
};

/// Variables to hold, so that no table of the others is too wide. `turn` chooses others among those that would help.
std::vector<bool> heldVariables(const ChoiceGraph& graph, std::size_t entries, std::size_t turn)
{
    std::vector<std::set<std::size_t>> neighbours(graph.variables.size());
    for (const auto& edge : graph.edges) {
        neighbours[edge.from].insert(edge.to);
        neighbours[edge.to].insert(edge.from);
    }
    std::vector<bool> held(graph.variables.size(), false);
    std::set<std::size_t> left;
    for (std::size_t variable = 0; variable < graph.variables.size(); ++variable)
        left.insert(left.end(), variable);
    const auto drop = [&](std::size_t variable) {
        for (const std::size_t other : neighbours[variable])
            neighbours[other].erase(variable);
        left.erase(variable);
    };
    while (!left.empty()) {
        std::size_t best = *left.begin();
        double least = kInfinite;
        for (const std::size_t variable : left) {
            const double size = entriesOf(graph, neighbours[variable]) * static_cast<double>(graph.variables[variable].size());
            if (size < least) {
                least = size;
                best = variable;
            }
        }
        if (least <= static_cast<double>(entries) || neighbours[best].empty()) {
            for (const std::size_t one : neighbours[best]) {
                for (const std::size_t other : neighbours[best]) {
                    if (one != other)
                        neighbours[one].insert(other);
                }
            }
            drop(best);
            continue;
        }
        // One of those around the smallest table, in turns.
        auto which = neighbours[best].begin();
        std::advance(which, static_cast<std::ptrdiff_t>(turn++ % neighbours[best].size()));
        const std::size_t chosen = *which;
        held[chosen] = true;
        drop(chosen);
    }
    return held;
}

/// The best choices of all variables but the held ones.
Choices completed(const ChoiceGraph& graph, const std::vector<bool>& held, const Choices& now, const WideLimits& limits)
{
    ChoiceGraph rest;
    rest.variables.resize(graph.variables.size());
    for (std::size_t variable = 0; variable < graph.variables.size(); ++variable) {
        if (held[variable])
            rest.variables[variable] = {graph.variables[variable][now[variable]]};
        else
            rest.variables[variable] = graph.variables[variable];
    }
    for (const auto& edge : graph.edges) {
        ChoiceGraph::Edge other{edge.from, edge.to, {}};
        const std::size_t columns = graph.variables[edge.to].size();
        for (std::size_t row = 0; row < rest.variables[edge.from].size(); ++row) {
            for (std::size_t column = 0; column < rest.variables[edge.to].size(); ++column)
                other.seconds.push_back(
                    edge.seconds[(held[edge.from] ? now[edge.from] : row) * columns + (held[edge.to] ? now[edge.to] : column)]);
        }
        rest.edges.push_back(std::move(other));
    }
    Choices choices = MiniBuckets(rest, limits.entries, limits.stop).choices(); // exact: nothing is too wide
    for (std::size_t variable = 0; variable < graph.variables.size(); ++variable) {
        if (held[variable])
            choices[variable] = now[variable];
    }
    return choices;
}

Choices improved(const ChoiceGraph& graph, Choices choices, double bound, const WideLimits& limits)
{
    double seconds = costOf(graph, choices).seconds;
    std::size_t turn = 0;
    for (int idle = 0; idle < limits.rounds && seconds > bound * (1.0 + 1e-9) && !limits.stop.stop_requested(); ++idle) {
        Choices other = completed(graph, heldVariables(graph, limits.entries, turn++), choices, limits);
        const double less = costOf(graph, other).seconds;
        if (less < seconds * (1.0 - 1e-9))
            idle = -1;
        if (less <= seconds) {
            seconds = less;
            choices = std::move(other);
        }
    }
    return choices;
}

} // namespace

EliminationResult eliminateWide(const ChoiceGraph& graph, const WideLimits& limits)
{
    EliminationResult result;
    result.exact = false;
    std::vector<Assignment> met; // within the budget
    const auto attempt = [&](double price) {
        const ChoiceGraph other = priced(graph, price);
        const MiniBuckets buckets(other, limits.entries, limits.stop);
        const double rent = price > 0.0 ? price * limits.budgetBytes : 0.0;
        result.lowerBoundSeconds = std::max(
            result.lowerBoundSeconds, buckets.bound() - rent - kRounding * static_cast<double>(graph.variables.size()) * rent);
        const Assignment found = costOf(graph, improved(other, buckets.choices(), buckets.bound(), limits));
        const bool fits = found.bytes <= limits.budgetBytes && found.seconds < kInfinite;
        if (fits)
            met.push_back(found);
        return std::pair(fits, found);
    };
    const auto attemptAll = [&] {
        const auto [fits, quickest] = attempt(0.0);
        const bool allowed = quickest.seconds < kInfinite;
        if (allowed && !fits && limits.budgetBytes < kInfinite) {
            double low = 0.0;
            double high = std::max(quickest.seconds, 1e-12) / std::max(limits.budgetBytes, 1.0);
            bool reached = false;
            for (int i = 0; i < kPrices; ++i) {
                const double price = reached ? (low + high) / 2.0 : high;
                if (attempt(price).first) {
                    reached = true;
                    high = price;
                } else {
                    low = price;
                    if (!reached)
                        high *= 10.0;
                }
            }
        }
        // What a byte costs when memory is worth about as much as time, and below and above.
        const double unit = allowed && quickest.bytes > 0.0 ? quickest.seconds / quickest.bytes : 0.0;
        for (int i = 0; i < limits.morePoints && unit > 0.0; ++i)
            attempt(unit * std::pow(10.0, i - limits.morePoints / 2));
    };
    try {
        attemptAll();
    } catch (const SearchStopped&) { // what was met stays
    }
    std::stable_sort(met.begin(), met.end(), [](const Assignment& a, const Assignment& b) {
        return a.seconds != b.seconds ? a.seconds < b.seconds : a.bytes < b.bytes;
    });
    double least = kInfinite;
    for (Assignment& found : met) {
        if (found.bytes >= least)
            continue;
        least = found.bytes;
        result.front.push_back(std::move(found));
    }
    if (!result.front.empty()) {
        result.lowerBoundSeconds = std::min(result.lowerBoundSeconds, result.front.front().seconds);
        result.exact = result.front.front().seconds <= result.lowerBoundSeconds * (1.0 + 1e-9);
    }
    return result;
}

} // namespace meshwright::sim
