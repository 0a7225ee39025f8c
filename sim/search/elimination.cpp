// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/elimination.h"

#include "sim/search/search_limits.h"
#include "sim/search/search_stop.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>
#include <utility>

namespace meshwright::sim {

namespace {

constexpr int kRelaxations = 40;

/// A way to assign the variables that are eliminated so far: its costs, the choice of the last one, and which label of each table went into it.
struct Label {
    double seconds = 0.0;
    double bytes = 0.0;
    std::uint32_t choice = 0;
    std::vector<std::uint32_t> parts;
};

/// What an eliminated variable leaves: labels for each assignment of its neighbours.
struct Table {
    std::size_t variable = 0;
    std::vector<std::size_t> scope; ///< neighbours, ascending
    std::vector<std::size_t> sources; ///< tables that went into it
    std::vector<std::vector<Label>> entries; ///< mixed radix, the last of the scope fastest
};

/// Keeps labels (or assignments) that no other beats, by growing seconds.
template <typename T>
void keepFront(std::vector<T>& labels)
{
    std::stable_sort(labels.begin(), labels.end(),
        [](const T& a, const T& b) { return a.seconds != b.seconds ? a.seconds < b.seconds : a.bytes < b.bytes; });
    double least = kInfinite;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (labels[i].bytes >= least)
            continue;
        least = labels[i].bytes;
        if (kept != i)
            labels[kept] = std::move(labels[i]);
        ++kept;
    }
    labels.resize(kept);
}

class Eliminator {
public:
    /// `weight`: seconds of a byte; with it labels are single and bytes count as seconds.
    Eliminator(const ChoiceGraph& graph, const EliminationLimits& limits, double weight)
        : m_graph(graph)
        , m_limits(limits)
        , m_weight(weight)
        , m_neighbours(graph.variables.size())
        , m_edgesOf(graph.variables.size())
        , m_tablesOf(graph.variables.size())
        , m_choices(graph.variables.size(), 0)
    {
        for (std::size_t e = 0; e < graph.edges.size(); ++e) {
            const auto& edge = graph.edges[e];
            assert(edge.from != edge.to);
            m_neighbours[edge.from].insert(edge.to);
            m_neighbours[edge.to].insert(edge.from);
            m_edgesOf[edge.from].push_back(e);
            m_edgesOf[edge.to].push_back(e);
        }
        for (std::size_t variable = 0; variable < graph.variables.size(); ++variable)
            m_entries.push_back(entriesOf(variable));
    }

    /// False: a table would be too wide.
    bool run();
    bool exact() const { return m_exact; }
    std::vector<Assignment> assignments() const;
    double least() const; ///< seconds (and weighed bytes) of the best; infinite when there is none

private:
    double entriesOf(std::size_t variable) const;
    void eliminate(std::size_t variable);
    std::vector<Label> labelsOf(const Table& table, std::vector<std::uint32_t>& choices);
    std::size_t entryOf(const Table& table, const std::vector<std::uint32_t>& choices) const;

    const ChoiceGraph& m_graph;
    const EliminationLimits& m_limits;
    double m_weight;
    bool m_exact = true;
    std::vector<std::set<std::size_t>> m_neighbours;
    std::vector<std::vector<std::size_t>> m_edgesOf;
    std::vector<Table> m_tables;
    std::vector<std::vector<std::size_t>> m_tablesOf; ///< of a variable: those with it in their scope
    std::vector<bool> m_used; ///< of tables: they went into another
    std::set<std::pair<double, std::size_t>> m_left; ///< variables by the entries that their tables would have
    std::vector<double> m_entries; ///< likewise, by variable
    std::vector<std::uint32_t> m_choices; ///< of the entry that is worked out
    std::vector<bool> m_gone = std::vector<bool>(m_graph.variables.size(), false);
    std::vector<std::size_t> m_roots; ///< tables without a scope
    std::vector<Label> m_final; ///< of all parts of the graph together; parts index m_roots
};

/// Entries of the table that a variable would leave.
double Eliminator::entriesOf(std::size_t variable) const
{
    double entries = 1.0;
    for (const std::size_t neighbour : m_neighbours[variable])
        entries *= static_cast<double>(m_graph.variables[neighbour].size());
    return entries;
}

std::size_t Eliminator::entryOf(const Table& table, const std::vector<std::uint32_t>& choices) const
{
    std::size_t entry = 0;
    for (const std::size_t variable : table.scope)
        entry = entry * m_graph.variables[variable].size() + choices[variable];
    return entry;
}

/// The labels of one entry: for every choice of the variable what it costs with the neighbours as they are, joined with the tables that it is in.
std::vector<Label> Eliminator::labelsOf(const Table& table, std::vector<std::uint32_t>& choices)
{
    std::vector<Label> all;
    const auto& costs = m_graph.variables[table.variable];
    for (std::uint32_t choice = 0; choice < costs.size(); ++choice) {
        choices[table.variable] = choice;
        double seconds = costs[choice].seconds + m_weight * costs[choice].bytes;
        for (const std::size_t e : m_edgesOf[table.variable]) {
            const auto& edge = m_graph.edges[e];
            const std::size_t other = edge.from == table.variable ? edge.to : edge.from;
            if (!m_gone[other])
                seconds += edge.seconds[choices[edge.from] * m_graph.variables[edge.to].size() + choices[edge.to]];
        }
        if (seconds == kInfinite)
            continue;
        std::vector<Label> joined = {{seconds, m_weight > 0.0 ? 0.0 : costs[choice].bytes, choice, {}}};
        for (const std::size_t source : table.sources) {
            const std::vector<Label>& more = m_tables[source].entries[entryOf(m_tables[source], choices)];
            std::vector<Label> sums;
            sums.reserve(joined.size() * more.size());
            for (const Label& label : joined) {
                for (std::uint32_t part = 0; part < more.size(); ++part) {
                    Label sum{label.seconds + more[part].seconds, label.bytes + more[part].bytes, choice, label.parts};
                    if (sum.bytes > m_limits.budgetBytes)
                        continue;
                    sum.parts.push_back(part);
                    sums.push_back(std::move(sum));
                }
            }
            keepFront(sums);
            joined = std::move(sums);
        }
        for (Label& label : joined) {
            if (label.bytes <= m_limits.budgetBytes)
                all.push_back(std::move(label));
        }
    }
    keepFront(all);
    if (all.size() > m_limits.labels) {
        // The quickest and the smallest stay, and those between at even distances.
        m_exact = false;
        std::vector<Label> some;
        const std::size_t count = std::max<std::size_t>(2, m_limits.labels);
        for (std::size_t i = 0; i < count; ++i)
            some.push_back(std::move(all[i * (all.size() - 1) / (count - 1)]));
        all = std::move(some);
    }
    return all;
}

void Eliminator::eliminate(std::size_t variable)
{
    Table table;
    table.variable = variable;
    table.scope.assign(m_neighbours[variable].begin(), m_neighbours[variable].end());
    for (const std::size_t t : m_tablesOf[variable]) {
        if (!m_used[t]) {
            table.sources.push_back(t);
            m_used[t] = true;
        }
    }
    std::size_t count = 1;
    for (const std::size_t neighbour : table.scope)
        count *= m_graph.variables[neighbour].size();
    table.entries.resize(count);
    for (std::size_t entry = 0; entry < count; ++entry) {
        throwIfStopped(m_limits.stop);
        std::size_t rest = entry;
        for (std::size_t i = table.scope.size(); i-- > 0;) {
            const std::size_t size = m_graph.variables[table.scope[i]].size();
            m_choices[table.scope[i]] = static_cast<std::uint32_t>(rest % size);
            rest /= size;
        }
        table.entries[entry] = labelsOf(table, m_choices);
    }
    for (const std::size_t neighbour : table.scope) {
        m_neighbours[neighbour].erase(variable);
        for (const std::size_t other : table.scope) {
            if (other != neighbour)
                m_neighbours[neighbour].insert(other);
        }
        m_tablesOf[neighbour].push_back(m_tables.size());
    }
    for (const std::size_t neighbour : table.scope) {
        m_left.erase({m_entries[neighbour], neighbour});
        m_entries[neighbour] = entriesOf(neighbour);
        m_left.insert({m_entries[neighbour], neighbour});
    }
    m_gone[variable] = true;
    if (table.scope.empty())
        m_roots.push_back(m_tables.size());
    m_tables.push_back(std::move(table));
    m_used.push_back(m_roots.size() > 0 && m_roots.back() == m_tables.size() - 1);
}

bool Eliminator::run()
{
    for (std::size_t variable = 0; variable < m_graph.variables.size(); ++variable)
        m_left.insert({m_entries[variable], variable});
    while (!m_left.empty()) {
        const auto [entries, variable] = *m_left.begin();
        if (entries > static_cast<double>(m_limits.entries))
            return false;
        m_left.erase(m_left.begin());
        eliminate(variable);
    }
    m_final = {{0.0, 0.0, 0, {}}};
    for (const std::size_t root : m_roots) {
        std::vector<Label> sums;
        const std::vector<Label>& more = m_tables[root].entries.front();
        for (const Label& label : m_final) {
            for (std::uint32_t part = 0; part < more.size(); ++part) {
                Label sum{label.seconds + more[part].seconds, label.bytes + more[part].bytes, 0, label.parts};
                if (sum.bytes > m_limits.budgetBytes)
                    continue;
                sum.parts.push_back(part);
                sums.push_back(std::move(sum));
            }
        }
        keepFront(sums);
        m_final = std::move(sums);
    }
    return true;
}

double Eliminator::least() const
{
    return m_final.empty() ? kInfinite : m_final.front().seconds;
}

std::vector<Assignment> Eliminator::assignments() const
{
    std::vector<Assignment> found;
    for (const Label& label : m_final) {
        std::vector<std::uint32_t> choices(m_graph.variables.size(), 0);
        std::vector<std::uint32_t> labelOf(m_tables.size(), 0);
        for (std::size_t i = 0; i < m_roots.size(); ++i)
            labelOf[m_roots[i]] = label.parts[i];
        // Later tables have what earlier ones depend on.
        for (std::size_t t = m_tables.size(); t-- > 0;) {
            const Table& table = m_tables[t];
            const Label& chosen = table.entries[entryOf(table, choices)][labelOf[t]];
            choices[table.variable] = chosen.choice;
            for (std::size_t i = 0; i < table.sources.size(); ++i)
                labelOf[table.sources[i]] = chosen.parts[i];
        }
        found.push_back(costOf(m_graph, std::move(choices)));
    }
    return found;
}

/// The largest bound that a price of memory gives: min over all assignments of seconds + price * (bytes - budget). `feasible` gets what was met on
/// the way and lies within the budget.
double relaxedBound(const ChoiceGraph& graph, const EliminationLimits& limits, double quickest, std::vector<Assignment>& feasible)
{
    double bound = quickest;
    if (limits.budgetBytes == kInfinite)
        return bound;
    EliminationLimits single = limits;
    single.labels = 2;
    single.budgetBytes = kInfinite;
    const auto boundAt = [&](double price) {
        Eliminator eliminator(graph, single, price);
        if (!eliminator.run())
            return 0.0;
        for (Assignment& met : eliminator.assignments()) {
            if (met.bytes <= limits.budgetBytes)
                feasible.push_back(std::move(met));
        }
        const double rent = price * limits.budgetBytes;
        return eliminator.least() - rent - kRounding * static_cast<double>(graph.variables.size()) * (eliminator.least() + rent);
    };
    // The bound is concave in the price: a wide scan by factors of ten, then by thirds between the best one's neighbours.
    double low = 0.0;
    double high = 0.0;
    const double unit = std::max(quickest, 1e-12) / std::max(limits.budgetBytes, 1.0);
    double best = bound;
    for (int power = -4; power <= 6; ++power) {
        const double price = unit * std::pow(10.0, power);
        const double value = boundAt(price);
        if (value > best) {
            best = value;
            low = price / 10.0;
            high = price * 10.0;
        }
    }
    for (int i = 0; i < kRelaxations && high - low > 1e-9 * high; ++i) {
        const double a = low + (high - low) / 3.0;
        const double b = high - (high - low) / 3.0;
        const double atA = boundAt(a);
        const double atB = boundAt(b);
        best = std::max({best, atA, atB});
        (atA < atB ? low : high) = atA < atB ? a : b;
    }
    return best;
}

} // namespace

Assignment costOf(const ChoiceGraph& graph, std::vector<std::uint32_t> choices)
{
    Assignment assignment;
    for (std::size_t variable = 0; variable < graph.variables.size(); ++variable) {
        assignment.seconds += graph.variables[variable][choices[variable]].seconds;
        assignment.bytes += graph.variables[variable][choices[variable]].bytes;
    }
    for (const auto& edge : graph.edges)
        assignment.seconds += edge.seconds[choices[edge.from] * graph.variables[edge.to].size() + choices[edge.to]];
    assignment.choices = std::move(choices);
    return assignment;
}

namespace {

EliminationResult eliminated(const ChoiceGraph& graph, const EliminationLimits& limits)
{
    EliminationResult result;
    Eliminator eliminator(graph, limits, 0.0);
    if (!eliminator.run()) {
        result.exact = false;
        result.tooWide = true;
        return result;
    }
    result.exact = eliminator.exact();
    result.front = eliminator.assignments();
    if (result.exact) {
        result.lowerBoundSeconds = eliminator.least();
        return result;
    }
    EliminationLimits free = limits;
    free.budgetBytes = kInfinite;
    free.labels = 2;
    // Without a budget two labels keep the quickest exactly.
    Eliminator unbound(graph, free, 0.0);
    result.lowerBoundSeconds = unbound.run() ? relaxedBound(graph, limits, unbound.least(), result.front) : 0.0;
    keepFront(result.front);
    if (!result.front.empty())
        result.lowerBoundSeconds = std::min(result.lowerBoundSeconds, result.front.front().seconds);
    return result;
}

} // namespace

EliminationResult eliminate(const ChoiceGraph& graph, const EliminationLimits& limits)
{
    try {
        return eliminated(graph, limits);
    } catch (const SearchStopped&) {
        return {{}, 0.0, false, false};
    }
}

} // namespace meshwright::sim
